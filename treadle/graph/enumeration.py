"""Integers and places: common divisors, combinations, coordinates, lines on a logarithmic scale."""

from __future__ import annotations

import itertools
import math
from typing import Any

from treadle.graph import shapes
from treadle.graph.build import Operand, alu, broadcast, cast, const, iota, operands, reduce, where
from treadle.graph.creation import linspace
from treadle.graph.elementwise import abs_, eq, floor_divide, mul, ne, pow_, remainder
from treadle.graph.loops import while_loop
from treadle.graph.masks import coordinates, places, ranks
from treadle.graph.movement import narrow, stack
from treadle.graph.public import public
from treadle.graph.selection import index_select
from treadle.graph.shapes import text
from treadle.ir import ops
from treadle.ir.dtype import DType, bool_, float32, float64, int64
from treadle.ir.node import Node


# ---- divisors ------------------------------------------------------------------------------------
def _integers(name: str, x: Operand, other: Operand) -> tuple[Node, ...]:
    nodes = operands(x, other)
    if nodes[0].dtype is bool_ or not nodes[0].dtype.is_int:
        raise TypeError(f"{name} is for integers, not for {nodes[0].dtype}: cast the tensor first")
    return broadcast(*nodes, name=name)


@public("gcd", source="PyTorch", gradient="int")
def gcd(x: Operand, other: Operand) -> Node:
    """The greatest common divisor of integers, 0 of 0 and 0; by Euclid's algorithm, as many steps
    as the slowest pair takes.

    >>> Tensor([12, -8, 0]).gcd(Tensor([18, 12, 5]))
    Tensor([6, 4, 5])
    """
    a, b = _integers("gcd", x, other)
    if shapes.is_empty(a.shape):
        return a

    def unfinished(pair: tuple[Node, Node]) -> Node:
        return reduce("or", ne(pair[1], 0))

    def step(pair: tuple[Node, Node]) -> tuple[Node, Node]:
        rest = remainder(*pair)  # x % 0 is 0
        return where(eq(pair[1], 0), pair[0], pair[1]), rest

    found: Node = while_loop(unfinished, step, (abs_(a), abs_(b)))[0]
    return found


@public("lcm", source="PyTorch", gradient="int")
def lcm(x: Operand, other: Operand) -> Node:
    """The least common multiple of integers, 0 if one of them is 0; it wraps at the width.

    >>> Tensor([4, 0]).lcm(Tensor([6, 5]))
    Tensor([12,  0])
    """
    a, b = _integers("lcm", x, other)
    return abs_(mul(floor_divide(a, gcd(a, b)), b))


# ---- choices and places --------------------------------------------------------------------------
@public("combinations", source="PyTorch")
def combinations(x: Node, r: int = 2, with_replacement: bool = False) -> Node:
    """All choices of r elements of a row, as rows, in the order of their places; with replacement
    an element may be chosen again.

    >>> Tensor([1, 2, 3]).combinations()
    Tensor([[1, 2],
            [1, 3],
            [2, 3]])
    """
    if len(x.shape) != 1 or type(r) is not int or r < 0:
        raise ValueError(
            f"combinations: takes a row and a number r of 0 or more, not shape {text(x.shape)} and "
            f"r={shapes.words(r)}"
        )
    size = x.shape[0]
    if not isinstance(size, int):
        raise ValueError(
            f"combinations: the size {shapes.dim_text(size)} is not known here: give x a size that "
            "is an int"
        )
    if r == 0:
        return narrow(x, 0, 0, 0)
    picked = choices(size, r, with_replacement)
    return stack([index_select(x, 0, each) for each in picked], dim=1)


def _all(conditions: list[Node]) -> Node:
    """Where every one of some conditions holds."""
    found = conditions[0]
    for each in conditions[1:]:
        found = alu(ops.AND, found, each)
    return found


def choices(size: int, r: int, with_replacement: bool) -> list[Node]:
    """The places of all choices of r of `size` elements, the first ones, the second ones .. in
    lexicographic order."""
    count = math.comb(size + r - 1, r) if with_replacement and size else math.comb(size, r)
    every = coordinates(iota(size**r, int64), (size,) * r)
    if r == 1:
        return list(every)
    rising = _all(
        [
            alu(ops.LE if with_replacement else ops.LT, before, after)
            for before, after in itertools.pairwise(every)
        ]
    )
    chosen = places(rising, ranks(rising), count)
    return list(coordinates(chosen, (size,) * r))


@public("unravel_index", source="PyTorch", gradient="int")
def unravel_index(x: Node, shape: Any) -> tuple[Node, ...]:
    """Places in a flattened tensor of a shape as its coordinates, one tensor for each dimension.
    A place beyond the end begins again at the start.

    >>> Tensor([5, 2]).unravel_index((2, 3))
    (Tensor([1, 0]), Tensor([2, 2]))
    """
    if not x.dtype.is_int:
        raise TypeError(f"unravel_index: places are integers, not {x.dtype}")
    sizes = shapes.check_sizes(shapes.as_shape(shape), "unravel_index")
    if not all(isinstance(size, int) for size in sizes):
        raise ValueError(f"unravel_index: the sizes {text(sizes)} must be ints")
    found = coordinates(cast(x, int64), sizes)
    return tuple(remainder(each, size) for each, size in zip(found, sizes, strict=True))


# ---- a line --------------------------------------------------------------------------------------
@public("logspace", source="PyTorch", kind="creates")
def logspace(
    start: Any, end: Any, steps: int, base: float = 10.0, *, dtype: DType | None = None
) -> Node:
    """`steps` numbers from base**start to base**end, whose logarithms are at equal distances.

    >>> Tensor.logspace(0, 2, 3)
    Tensor([  1.,  10., 100.])
    """
    wanted = dtype or float32
    wide = wanted.accumulator if wanted.is_float else float64
    return cast(pow_(const(base, wide), linspace(start, end, steps, dtype=wide)), wanted)
