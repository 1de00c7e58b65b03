"""The gradients that a captured function leaves in `grad`, with memory that is used again.

A training step gives every weight a new gradient. What the last call gave is used again, the tensor
with its memory, unless somebody else has got hold of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter, is_
from sys import getrefcount
from typing import Any

from treadle.engine.realize import realize
from treadle.engine.recipe import Call, Stale
from treadle.engine.storage import Buffer, memory
from treadle.engine.survey import ALONE, IN_LIST, held_elsewhere, references

_grad = attrgetter("_grad")

NewTensor = Callable[[int, Buffer | None, dict[str, int]], Any]  # root, memory, variables


@dataclass
class Placed:
    """A gradient to be made. root, owner, is_first: see `recipe.Gradient`. in_place: whether the
    program overwrites the old one; is_read: whether it reads it; slot: where the program finds the
    address of the new one, 0 if it writes none."""

    root: int
    owner: int
    is_first: bool
    in_place: bool
    is_read: bool
    slot: int


class Gradients:
    """new: the gradients to be made; reads: (owner, slot) of those that are read and not written
    over. new_tensor: makes the tensor of a root, in given memory or in its own. arguments: how many
    tensor arguments there are."""

    def __init__(
        self,
        new: Sequence[Placed],
        reads: Sequence[tuple[int, int]],
        slots: Any,
        new_tensor: NewTensor,
        arguments: int,
    ) -> None:
        self.new = new
        self.reads = reads
        self.slots = slots
        self.new_tensor = new_tensor
        self.owners = [gradient.owner for gradient in new]
        self.arguments = arguments
        self.holders: list[Any] | None = None
        self.any_first = any(gradient.is_first for gradient in new)
        self.made: list[Any] = []  # what the last call gave to each
        self.before: list[Any] = []  # what each must have had then, for nothing to be done now
        self.count = -1  # the references to `made` if nobody else holds them
        self.moves = -1  # the memory's count when the slots were filled

    def hold(self, closed: Sequence[Any]) -> None:
        """The closed-over tensors are these from now on."""
        if all(owner >= self.arguments for owner in self.owners):
            self.holders = [closed[owner - self.arguments] for owner in self.owners]

    def _holders(self, call: Call) -> Sequence[Any]:
        """The tensors to which the gradients belong."""
        return self.holders or list(map(call.cells.__getitem__, self.owners))

    def release(self) -> None:
        """Hold no memory: something else makes the gradients from now on."""
        self.made, self.before = [], []

    def place(self, call: Call) -> bool:
        """Write the addresses of all gradients to the slots. Returns whether `hand_out` has to be
        called afterwards."""
        if self.reads:
            self._read(call.cells)
        holders = self._holders(call)
        made = self.made
        if (
            made
            and memory.moves == self.moves
            and all(map(is_, map(_grad, holders), self.before))
            and sum(map(getrefcount, made)) == self.count
            and not held_elsewhere(made)
        ):
            return self.any_first
        self._place_again(list(map(_grad, holders)), call.variables)
        return True

    def _read(self, cells: Sequence[Any]) -> None:
        found = [cells[owner]._grad for owner, _ in self.reads]
        realize(found)
        for gradient, (_, slot) in zip(found, self.reads, strict=True):
            self.slots[slot] = memory[gradient.node].address

    def _place_again(self, before: list[Any], variables: dict[str, int]) -> None:
        if [now is None for now in before] != [gradient.is_first for gradient in self.new]:
            raise Stale("a tensor has a gradient that had none, or the other way round")
        realize([now for now, new in zip(before, self.new, strict=True) if new.in_place])
        mine = self._free(before)
        for number, (new, now) in enumerate(zip(self.new, before, strict=True)):
            own = mine[number]
            if new.in_place and (own is None or now is not own):
                own = self.new_tensor(new.root, memory[now.node].copy(), variables)
            elif own is None or (new.is_read and not new.in_place):
                own = self.new_tensor(new.root, None, variables)
            mine[number] = own
            if new.slot:
                self.slots[new.slot] = memory[own.node].address
        self.made = mine
        self.before = [
            None if new.is_first else own for new, own in zip(self.new, mine, strict=True)
        ]
        # the lists `made` and `before`, and the cell
        self.count = sum(IN_LIST + (0 if new.is_first else 2) for new in self.new)
        self.moves = memory.moves

    def _free(self, before: Sequence[Any]) -> list[Any]:
        """What was made by the last call, where nobody else holds or sees it; None elsewhere."""
        made = self.made
        if not made:
            return [None] * len(self.new)
        counts = map(getrefcount, made)
        known = zip(made, self.before, before, references(made), counts, strict=True)
        return [
            own
            if leaf == ALONE
            and count == IN_LIST + (old is own) + 2 * (now is own)
            and not memory[own.node].lent
            else None
            for own, old, now, leaf, count in known
        ]

    def hand_out(self, call: Call) -> None:
        """Give every cell its gradient."""
        for holder, mine in zip(self._holders(call), self.made, strict=True):
            holder._grad = mine

    def drop(self, call: Call) -> None:
        """The program ended half-way: what stood in memory that it writes to is lost."""
        for holder, new, mine in zip(self._holders(call), self.new, self.made, strict=False):
            if holder._grad is mine and not new.in_place:
                holder._grad = None
