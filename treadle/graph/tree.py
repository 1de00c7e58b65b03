"""Trees: tuples, lists, dictionaries and dataclasses, nested at will, whose leaves are everything
else. (An object of a dataclass that can be called is a leaf: it is a function, not data.)

`scan`, and every other function that takes a tree of tensors, flattens it to a list of leaves and
a structure, works on the list, and puts the results back. None is a tree without leaves.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from typing import Any


@dataclass(frozen=True)
class Structure:
    """What is left of a tree without its leaves. Equal structures are equal objects by `==`.

    kind: `tuple` or a named tuple's class, `list`, `dict`, a dataclass, `None`'s type, or None for
    a leaf. keys: of a dict, sorted by their text, so that the order of insertion does not matter;
    or the fields of a dataclass.
    parts: the structures of what it holds.
    """

    kind: type | None
    keys: tuple[Any, ...] = ()
    parts: tuple[Structure, ...] = ()

    @property
    def plain(self) -> Structure:
        """With tuples for named tuples, in whose place users may give them."""
        parts = tuple([part.plain for part in self.parts])
        return Structure(_plain(self.kind), self.keys, parts)

    def __str__(self) -> str:
        if self.kind is None:
            return "*"
        if self.kind is type(None):
            return "None"
        if self.kind is dict:
            return f"{{{', '.join(f'{k!r}: {p}' for k, p in zip(self.keys, self.parts))}}}"
        inside = ", ".join(map(str, self.parts))
        if self.kind is list:
            return f"[{inside}]"
        name = "" if self.kind is tuple else self.kind.__name__
        if is_dataclass(self.kind):
            inside = ", ".join(f"{k}={p}" for k, p in zip(self.keys, self.parts))
            return f"{name}({inside})"
        return f"{name}({inside}{',' if len(self.parts) == 1 and not name else ''})"


LEAF = Structure(None)


def _plain(kind: type | None) -> type | None:
    return tuple if hasattr(kind, "_fields") else kind


def flatten(tree: Any) -> tuple[list[Any], Structure]:
    """The leaves from left to right, and the structure that puts them back."""
    top = opened(tree)
    if top is None:
        return [tree], LEAF
    kind, keys, held = top
    leaves: list[Any] = []
    parts = []
    for part in held:
        below, structure = flatten(part)
        leaves += below
        parts.append(structure)
    return leaves, Structure(kind, keys, tuple(parts))


def opened(tree: Any) -> tuple[type, tuple[Any, ...], list[Any]] | None:
    """(kind, keys, what it holds) of the topmost part of a tree; None for a leaf."""
    if tree is None:
        return type(None), (), []
    if isinstance(tree, dict):
        keys = tuple(sorted(tree, key=repr))
        return dict, keys, [tree[key] for key in keys]
    if isinstance(tree, (tuple, list)):
        return type(tree), (), list(tree)
    if is_dataclass(tree) and not isinstance(tree, type) and not callable(tree):
        keys = tuple([field.name for field in fields(tree)])
        return type(tree), keys, [getattr(tree, key) for key in keys]
    return None


def unflatten(structure: Structure, leaves: Iterable[Any]) -> Any:
    """The tree with this structure and these leaves, as many as `flatten` gave."""
    return _take(structure, iter(leaves))


def _take(structure: Structure, leaves: Iterator[Any]) -> Any:
    if structure.kind is None:
        return next(leaves)
    if structure.kind is type(None):
        return None
    parts = [_take(part, leaves) for part in structure.parts]
    if structure.kind is dict:
        return dict(zip(structure.keys, parts))
    if is_dataclass(structure.kind):
        made = object.__new__(structure.kind)
        for key, part in zip(structure.keys, parts):
            object.__setattr__(made, key, part)  # a frozen one has no other way
        return made
    if hasattr(structure.kind, "_fields"):  # a named tuple takes its fields one by one
        return structure.kind(*parts)
    return structure.kind(parts)


def leaves_like(structure: Structure, tree: Any) -> list[Any]:
    """The leaves of a tree of this structure, in which None may stand for any part: then for each
    leaf in it. ValueError says how a tree of another structure differs."""
    found: list[Any] = []
    stack = [(structure, tree)]
    while stack:
        wanted, part = stack.pop()
        if wanted.kind is None:
            found.append(part)
        elif part is None:
            stack += [(below, None) for below in reversed(wanted.parts)]
        else:
            kind, keys, held = opened(part) or (None, (), [])
            own = _plain(kind), keys, len(held)
            if own != (_plain(wanted.kind), wanted.keys, len(wanted.parts)):
                raise ValueError(f"of structure {flatten(part)[1]}, which must be {wanted}")
            stack += reversed(list(zip(wanted.parts, held)))
    return found


def paths(structure: Structure, root: str) -> list[str]:
    """What a user would write to reach each leaf of the tree `root`, as flatten orders them:
    `carry[0]['weight']`."""
    if structure.kind is None:
        return [root]
    return [path for name, part in _named(structure, root) for path in paths(part, name)]


def difference(one: Structure, other: Structure, root: str) -> tuple[str, str, str]:
    """The first place in the tree `root` at which two structures differ, and what is there."""
    if one.kind is other.kind and one.keys == other.keys and len(one.parts) == len(other.parts):
        for (name, part), counterpart in zip(_named(one, root), other.parts):
            if part != counterpart:
                return difference(part, counterpart, name)
    here, there = ["a tensor" if tree == LEAF else str(tree) for tree in (one, other)]
    return root, here, there


def _named(structure: Structure, root: str) -> Iterator[tuple[str, Structure]]:
    """(how a user reaches it, part) of each part of the tree `root`."""
    fields_ = getattr(structure.kind, "_fields", ())
    for number, part in enumerate(structure.parts):
        if structure.kind is dict:
            yield f"{root}[{structure.keys[number]!r}]", part
        elif is_dataclass(structure.kind):
            yield f"{root}.{structure.keys[number]}", part
        else:
            yield f"{root}.{fields_[number]}" if fields_ else f"{root}[{number}]", part
