"""The short way into a captured function that changes nothing: one look at each argument.

A leaf stays what it is, so where it was found to fit, its address is kept; a tensor that holds the
same leaf again is one lookup. Whatever is not as usual (a value that is pending, a gradient,
another shape) is for the long way, which knows what to do about it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from treadle.engine.storage import memory
from treadle.ir.node import Node
from treadle.ir.ops import BUFFER

MOST_LEAVES = 64  # of an argument whose addresses are kept


class Direct:
    """kinds: what each argument has to be, (class, dtype, shape, device, requires_grad), or the id
    of an object. places: where the program finds the address of each tensor among them, 0 if
    nowhere; table: the program's slots."""

    __slots__ = ("count", "moves", "objects", "table", "tensors")

    def __init__(self, kinds: Sequence[Any], places: Sequence[int], table: Any) -> None:
        self.count = len(kinds)
        self.objects = [(n, kind) for n, kind in enumerate(kinds) if type(kind) is int]
        tensors = [(n, kind) for n, kind in enumerate(kinds) if type(kind) is not int]
        self.tensors: list[tuple[int, Any, bool, dict[int, int], int, tuple[Any, ...]]] = [
            (n, kind[0], kind[-1], {}, place, kind[1:-1])
            for (n, kind), place in zip(tensors, places, strict=True)
        ]
        self.table = table
        self.moves = memory.moves

    def take(self, args: Sequence[Any]) -> bool:
        """Whether the arguments are of these kinds. Then their addresses are in the table."""
        if len(args) != self.count:
            return False
        for number, identity in self.objects:
            if id(args[number]) != identity:
                return False
        if self.moves != memory.moves:
            self._forget()
        table, history = self.table, memory.history
        for number, cls, learns, known, place, kind in self.tensors:
            arg = args[number]
            if type(arg) is not cls or arg._requires_grad is not learns:
                return False
            node = arg.node
            if node.op is not BUFFER or arg.target is not None or arg._grad is not None:
                return False
            slot = node.arg[0]
            address = known.get(slot) or _look(node, known, kind)
            if not address or slot in history:
                return False
            if place:
                table[place] = address
        return True

    def _forget(self) -> None:
        """Leaves have got other memory."""
        self.moves = memory.moves
        for _, _, _, known, _, _ in self.tensors:
            known.clear()


def _look(leaf: Node, known: dict[int, int], kind: tuple[Any, ...]) -> int:
    """The address of a leaf in memory, kept from now on; 0 if it is not of this kind."""
    slot, shape, device = leaf.arg
    if (leaf.dtype, shape, device) != kind or slot not in memory.buffers:
        return 0
    if len(known) == MOST_LEAVES:
        known.clear()
    known[slot] = memory.buffers[slot].address
    return known[slot]
