"""Results of earlier calls that nobody holds any more: their leaves and memory are used again.

A loop that calls a captured function drops a small result at every call. To make a leaf and find
memory for it costs more than the rest of such a call; a leaf that nobody else can see can as well
stand for the next result.
"""

from __future__ import annotations

from sys import getrefcount

from treadle.engine.storage import Buffer, memory
from treadle.ir.dtype import DType
from treadle.ir.node import Node, Shape

MOST_BYTES = 1 << 16  # larger results are not held back
LEAVES = 2  # of a result: what a caller still holds, and what it held before


def _references(leaves: list[Node]) -> int:
    """The references to the first leaf of a list."""
    for leaf in leaves:
        return getrefcount(leaf)
    return 0


_ALONE = _references([object()])  # type: ignore[list-item]


class Spare:
    """The leaves of one result: of a dtype, a shape, a number of bytes, on a device."""

    __slots__ = ("device", "dtype", "leaves", "nbytes", "shape")

    def __init__(self, dtype: DType, shape: Shape, device: str, nbytes: int) -> None:
        self.dtype = dtype
        self.shape = shape
        self.device = device
        self.nbytes = nbytes
        self.leaves: list[Node] = []

    def leaf(self) -> Node:
        """A leaf that nobody holds, with memory whose content is arbitrary."""
        for leaf in self.leaves:
            if getrefcount(leaf) == _ALONE and memory.is_plain(leaf.arg[0]):
                return leaf
        new = memory.leaf(self.dtype, self.shape, self.device, Buffer(self.nbytes))
        if self.nbytes <= MOST_BYTES:
            if len(self.leaves) == LEAVES:
                del self.leaves[0]
            self.leaves.append(new)
        return new
