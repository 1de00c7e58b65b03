"""What the trace of a function found, as graphs: from this a `Captured` is made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from treadle.engine.cell import Cell
from treadle.ir.node import Node


class Stale(Exception):
    """A captured function does not fit any more; the message is the reason."""


@dataclass
class Effect:
    """A cell that the function gives a new value. root: its number; owner: the cell's number, among
    the arguments and then the closed-over cells; in_place: whether it may overwrite the old value;
    new_leaf: whether the cell gets a leaf of its own, because a gradient may flow through the
    value, or its shape or dtype is another."""

    root: int
    owner: int
    in_place: bool
    new_leaf: bool


@dataclass
class Gradient:
    """A cell whose `grad` the function sets. root: the number of the value, or -1 for None; owner:
    the cell's number; is_first: whether it had no gradient before."""

    root: int
    owner: int
    is_first: bool


@dataclass
class Recipe:
    """device: where it runs. roots: graphs of all values to compute, whose leaves are stand-ins,
    leaves of closed-over cells, and constants; whole: the same as derivatives see them, with CALLs.
    arguments: the stand-in of each tensor argument. cells: the closed-over cells, first those that
    keep their leaf and get another value; leaves: what they held. gradients: stand-ins of
    `cell.grad` that are read, by the number of the cell. floats, keys: stand-ins of numbers.
    results: the root of each tensor returned. donated: the arguments whose memory is free.
    carrying: the roots through which a gradient flows back. moving: the closed-over cells in whose
    place every call puts another one.
    """

    device: str
    roots: list[Node]
    whole: list[Node]
    arguments: list[Node]
    cells: list[Cell]
    leaves: list[Node]
    gradients: dict[int, Node]
    floats: list[Node]
    keys: list[Node]
    results: list[int]
    effects: list[Effect] = field(default_factory=list)
    new_gradients: list[Gradient] = field(default_factory=list)
    donated: tuple[int, ...] = ()
    carrying: frozenset[int] = frozenset()
    moving: frozenset[int] = frozenset()

    def leaf_of(self, owner: int) -> Node:
        """The leaf that a cell held at the trace; for an argument, its stand-in."""
        count = len(self.arguments)
        return self.arguments[owner] if owner < count else self.leaves[owner - count]

    def unchanging(self) -> set[Node]:
        """The leaves of closed-over cells that the function itself gives no other value."""
        owners = {effect.owner for effect in self.effects} | self.moving
        return set(self.leaves) - {self.leaf_of(owner) for owner in owners}


class Call:
    """One call of a captured function. arguments: the tensor arguments; closed: the closed-over
    cells; floats: the float arguments; keys: a random key for each draw; variables: their
    values."""

    __slots__ = ("arguments", "closed", "floats", "keys", "variables")

    def __init__(
        self,
        arguments: Sequence[Any],
        closed: Sequence[Any],
        floats: Sequence[float],
        keys: Sequence[int],
        variables: dict[str, int],
    ) -> None:
        self.arguments = arguments
        self.closed = closed
        self.floats = floats
        self.keys = keys
        self.variables = variables

    @property
    def cells(self) -> list[Any]:
        """The cells by the numbers of owners: the arguments, then the closed-over ones."""
        return [*self.arguments, *self.closed]
