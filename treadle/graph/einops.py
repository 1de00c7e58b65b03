"""`rearrange`: a tensor's dimensions named, split, merged, moved in one line of text.

The language is that of einops (Rogozhnikov, "Einops: clear and reliable tensor manipulations with
Einstein-like notation", 2022): "b (h 2) w -> b h (w 2)" with names, sizes of 1, numbers, one "...".
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, NamedTuple

from treadle.graph import shapes
from treadle.graph.build import permute, reshape
from treadle.graph.movement import listed, stack
from treadle.graph.public import public
from treadle.graph.shapes import Dim, as_dim, text
from treadle.ir.node import Node

_WORD = re.compile(r"\.\.\.|[A-Za-z_]\w*|\d+|[()]|\S")
_DOTS = "..."

Group = tuple[str, ...]  # the names that one dimension is made of; () is a dimension of size 1


class Pattern(NamedTuple):
    """Both sides: for each dimension the names that it is made of."""

    left: tuple[Group, ...]
    right: tuple[Group, ...]


@lru_cache(maxsize=256)
def _parsed(pattern: str) -> Pattern:
    """The pattern, checked by itself. ValueError says what is wrong."""
    sides = pattern.split("->")
    if len(sides) != 2:
        raise ValueError(f"rearrange: {pattern!r} has not one '->' between two sides")
    left, right = (_side(side, pattern) for side in sides)
    names = [[name for group in side for name in group] for side in (left, right)]
    for found in names:
        for name in found:
            if found.count(name) > 1:
                raise ValueError(f"rearrange: {name!r} stands twice on one side of {pattern!r}")
    lone = sorted(set(names[0]) ^ set(names[1]))
    if lone:
        raise ValueError(f"rearrange: {lone[0]!r} stands on one side only of {pattern!r}")
    return Pattern(left, right)


def _side(side: str, pattern: str) -> tuple[Group, ...]:
    groups: list[Group] = []
    inside: list[str] | None = None
    for word in _WORD.findall(side):
        if word == "(" and inside is None:
            inside = []
        elif word == ")" and inside is not None:
            groups.append(tuple(inside))
            inside = None
        elif word == "1":
            groups += [()] if inside is None else []
        elif word == _DOTS or word.isidentifier():
            if inside is None:
                groups.append((word,))
            else:
                inside.append(word)
        else:
            what = "a number other than 1: name it" if word.isdigit() else "out of place"
            raise ValueError(f"rearrange: {word!r} in {pattern!r} is {what}")
    if inside is not None:
        raise ValueError(f"rearrange: a '(' in {pattern!r} is not closed")
    return tuple(groups)


@public("rearrange", source="tinygrad")
def rearrange(x: Any, pattern: str, **sizes: Any) -> Node:
    """The dimensions named on the left of the pattern, in the order and grouping on its right.

    (a b) is a dimension made of two, a the outer one; their sizes are given by keyword where they
    do not follow. 1 is a dimension of size 1, "..." stands for any number of dimensions. A list of
    tensors has its number as the first dimension.

    >>> Tensor([[1, 2], [3, 4]]).rearrange("h w -> (w h)")
    Tensor([1, 3, 2, 4])
    """
    node = stack(listed((x,), None, "rearrange")[0]) if isinstance(x, (tuple, list)) else x
    sides = _parsed(pattern)
    left, right = _with_dots(sides, node, pattern)
    known = {name: as_dim(size) for name, size in sizes.items()}
    flat: list[str] = []
    for axis, group in enumerate(left):
        _solve(group, node.shape[axis], known, pattern)
        flat += group
    unused = sorted(set(sizes) - set(flat))
    if unused:
        raise ValueError(f"rearrange: there is no {unused[0]!r} in {pattern!r}")
    apart = reshape(node, [known[name] for name in flat])
    order = [flat.index(name) for group in right for name in group]
    merged = [shapes.total([known[name] for name in group]) for group in right]
    return reshape(permute(apart, order), merged)


def _with_dots(sides: Pattern, x: Node, pattern: str) -> tuple[list[Group], list[Group]]:
    """Both sides with "..." replaced by names for the dimensions that it stands for."""
    given = len(x.shape)
    dotted = (_DOTS,) in sides.left
    count = given - len(sides.left) + dotted
    if count < 0 or (count and not dotted):
        raise ValueError(
            f"rearrange: {pattern!r} names {len(sides.left) - dotted} dimensions of a tensor of "
            f"shape {text(x.shape)}"
        )
    if any(_DOTS in group and len(group) > 1 for group in sides.left):
        raise ValueError(f"rearrange: '...' stands in parentheses on the left of {pattern!r}")
    names = [f"...{number}" for number in range(count)]

    def expanded(groups: tuple[Group, ...]) -> list[Group]:
        found: list[Group] = []
        for group in groups:
            if group == (_DOTS,):
                found += [(name,) for name in names]
            else:
                found.append(tuple([n for word in group for n in _named(word, names)]))
        return found

    return expanded(sides.left), expanded(sides.right)


def _named(word: str, names: list[str]) -> list[str]:
    return names if word == _DOTS else [word]


def _solve(group: Group, size: Dim, known: dict[str, Dim], pattern: str) -> None:
    """Find the size of the one name of a dimension whose size is not known."""
    missing = [name for name in group if name not in known]
    product = shapes.total([known[name] for name in group if name in known])
    if len(missing) > 1:
        raise ValueError(
            f"rearrange: give the size of {missing[0]!r} or {missing[1]!r}: {pattern!r} does not "
            f"say how {shapes.dim_text(size)} divides"
        )
    if missing:
        rest = shapes.divide(size, product) if product != 0 else 0
        known[missing[0]] = rest
        product = shapes.multiply(product, rest)
    if not shapes.same(product, size):
        words = " ".join(group) or "1"
        raise ValueError(
            f"rearrange: a dimension of size {shapes.dim_text(size)} does not divide into "
            f"({words}) of {pattern!r}"
        )
