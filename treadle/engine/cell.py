"""Cells: the named places that hold values. A Tensor is a cell with methods.

A cell holds a node. When the node is a leaf, its value is in memory; otherwise it is pending. A
cell may also hold a *target*: the leaf it held before `assign`, whose memory the new value takes
over when it is realized.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import Any

from treadle.ir import ops
from treadle.ir.node import Node, toposort


class Cell:
    """node: the value. target: the leaf to be overwritten, or None. bindings: the values of the
    Variables in the shape. Every live cell is in `cells`, which is how the engine knows the readers
    of a leaf. A cell gets another node by `put`."""

    __slots__ = ("__weakref__", "bindings", "node", "target")
    node: Node
    target: Node | None
    bindings: dict[str, int]

    def __init__(self, node: Node, bindings: dict[str, int] | None = None) -> None:
        self.node = node
        self.target = None
        self.bindings = bindings or NO_BINDINGS
        cells[_reference(self, _leave)] = None

    def hold(self, node: Node, target: Node | None = None) -> None:
        """Hold another node. (Who has looked at many cells can tell by `puts` that none of them
        holds another one since.)"""
        self.node, self.target = node, target
        puts[0] += 1

    @property
    def is_realized(self) -> bool:
        """Whether the value is in memory."""
        return self.node.op is ops.BUFFER and self.target is None


NO_BINDINGS: dict[str, int] = {}
cells: dict[weakref.ref[Cell], None] = {}  # (a dictionary keeps its order)
_reference, _leave = weakref.ref, cells.pop
puts = [0]  # how often a cell got another node


def live() -> list[Cell]:
    """Every cell that somebody holds."""
    return [cell for ref in list(cells) if (cell := ref()) is not None]


def pending_assigns() -> list[Cell]:
    """The cells whose assigned value has not been realized."""
    return with_values({cell: cell.node for cell in live() if cell.target is not None})


def readers(leaves: Iterable[Node], besides: set[Any]) -> list[Cell]:
    """The live cells whose value depends on one of the leaves (or is one), besides those whose
    `id` is given. One visit a node, however many cells share it."""
    candidates = {cell: cell.node for cell in live() if id(cell) not in besides}
    return list(dependants(candidates, leaves))


def with_values(values: dict[Any, Node]) -> list[Any]:
    """The keys whose node has a value: not those that are left over from inside of a function
    (engine/inside.py)."""
    unreal: set[Node] = set()
    for node in toposort(values.values()):
        if node.op is ops.PLACEHOLDER or (unreal and not unreal.isdisjoint(node.src)):
            unreal.add(node)
    return [key for key, node in values.items() if node not in unreal]


def dependants(values: dict[Any, Node], leaves: Iterable[Node]) -> list[Any]:
    """The keys whose node depends on one of the leaves, and has a value."""
    found = set(leaves)
    for node in toposort(values.values()):
        if not found.isdisjoint(node.src):
            found.add(node)
    return with_values({key: node for key, node in values.items() if node in found})


def bind(into: dict[str, int], more: dict[str, int]) -> dict[str, int]:
    """The union of two sets of bindings. ValueError if a Variable has two values."""
    if not more or into is more:
        return into
    for name, value in more.items():
        if into.get(name, value) != value:
            raise ValueError(
                f"Variable {name} is bound to {into[name]} in one operand and to {value} in another"
            )
    return {**into, **more}
