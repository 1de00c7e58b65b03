"""The closed-over tensors of a captured function: where they are, and who else reads them.

The addresses of their memory are in the program's slots already; counters of the engine say whether
any of them can have another leaf or other memory since. What the program overwrites must not be
seen by anybody else: whoever reads it computes what he has pending before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from treadle.engine.cell import Cell, dependants, live, puts
from treadle.engine.history import carries_gradient, forget
from treadle.engine.jobs import settled
from treadle.engine.realize import realize
from treadle.engine.recipe import Recipe, Stale
from treadle.engine.storage import memory
from treadle.engine.survey import held_elsewhere, places
from treadle.engine.trace import JitError
from treadle.ir.node import Node


class Closed:
    """cells: in the order of the recipe, which begins with those that are overwritten; slots: where
    the program finds the address of each, 0 if nowhere; table: the program's slots."""

    def __init__(self, recipe: Recipe, slots: Sequence[int], table: Any) -> None:
        self.cells: list[Any] = list(recipe.cells)
        self.kinds = [_kind(*pair) for pair in zip(recipe.cells, recipe.leaves, strict=True)]
        self.slots = slots
        self.table = table
        self.places: list[Any] = []  # what the cells held when they were looked at last
        self.moves = -1  # the memory's count then
        self.puts = -1  # and how often cells had got another node
        first = len(recipe.arguments)
        owners = {effect.owner for effect in recipe.effects if not effect.new_leaf}
        self.overwritten = sum(owner >= first for owner in owners)
        self.overwritten_slots: frozenset[int] = frozenset()  # of the memory
        arguments = {owner for owner in owners if owner < first}
        self.arguments = sorted(arguments.union(recipe.donated))  # that are overwritten
        touched = {e.owner for e in recipe.effects} | {g.owner for g in recipe.new_gradients}
        self.changed = {id(self.cells[o - first]) for o in touched if o >= first}
        self.owners = self.cells[: self.overwritten]

    def look(self) -> None:
        """See whether a cell holds another leaf now, or a leaf has other memory."""
        self.puts = puts[0]
        if self.moves != memory.moves or places(self.cells) != self.places:
            self.look_again()

    def look_again(self) -> None:
        """Find the memory of the cells; compute those that are pending. Stale if one has become
        another kind of tensor."""
        pending = [cell for cell in self.cells if not settled(cell)]
        if pending:
            realize(pending)
        for cell in self.owners:
            memory.recover(cell.node)
        for cell, kind, slot in zip(self.cells, self.kinds, self.slots, strict=True):
            now = _kind(cell, cell.node)
            if now != kind:
                self.moves = -1
                raise Stale(f"a closed-over tensor was {_described(kind)} and is {_described(now)}")
            if slot:
                self.table[slot] = memory[cell.node].address
        self.places = places(self.cells)
        self.moves, self.puts = memory.moves, puts[0]
        self.overwritten_slots = frozenset(place[0] for place in self.places[: self.overwritten])

    def replace(self, new: Mapping[Any, Any]) -> None:
        """Cells have been replaced by others. Stale if one of these is among the closed-over ones
        already."""
        known = set(map(id, self.cells))
        if any(id(cell) in known for cell in new.values()):
            raise Stale("a closed-over tensor now stands in two places")
        self.changed = {id(new.get(cell, cell)) for cell in self.cells if id(cell) in self.changed}
        self.cells = [new.get(cell, cell) for cell in self.cells]
        self.owners = self.cells[: self.overwritten]
        self.moves = -1

    # ---- who else reads them ---------------------------------------------------------------------
    def secure(self, arguments: Sequence[Any]) -> None:
        """Nobody but this program reads what it is about to overwrite: other readers do it now."""
        if not self.changed.isdisjoint(map(id, arguments)):
            raise JitError(
                "an argument is a tensor that the function also changes through a variable or an "
                "attribute: pass x.clone(), or use it in one of the two ways only"
            )
        more = [arguments[position] for position in self.arguments]
        for cell in more:
            memory.recover(cell.node)
        if held_elsewhere(self.owners) or (more and held_elsewhere(more)):
            _release([*self.owners, *more])
            if memory.moves != self.moves or puts[0] != self.puts:
                self.look_again()


def _release(owners: Sequence[Cell]) -> None:
    """Compute what others have pending that reads the leaves of these cells."""
    leaves = [cell.node for cell in owners]
    besides = set(map(id, owners))
    others = {cell: cell.node for cell in live() if id(cell) not in besides}
    reading = dependants(others, leaves)
    for cell in reading:
        node = cell.node
        if node in leaves:  # it shares the leaf: its value is the one before this call
            cell.hold(memory.leaf(node.dtype, node.shape, node.arg[2], memory[node].copy()))
            if carries_gradient([node]):
                forget(cell.node)
    deferred = {leaf: memory.deferred[slot][0] for slot, leaf in memory.deferred_leaves()}
    realize([*reading, *[Cell(leaf) for leaf in dependants(deferred, leaves)]])


def _kind(cell: Any, leaf: Node) -> tuple[Any, ...]:
    """What a program depends on in a closed-over tensor, beside its numbers."""
    return (leaf.dtype, *leaf.arg[1:], cell._requires_grad)


def _described(kind: tuple[Any, ...]) -> str:
    dtype, shape, device, learns = kind
    return f"{dtype} {shape} on {device}" + (" with requires_grad" if learns else "")
