"""Memory: buffers that are used again, and the map from a leaf's slot to its buffer.

A leaf node names a slot, as plain data; `memory` knows which buffer that is. When nobody holds the
leaf any more, its buffer goes back to the allocator, which hands the same (already touched) pages
out again: fresh pages cost more than most kernels.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from itertools import count
from typing import Any

import numpy as np

from treadle.ir import ops
from treadle.ir.dtype import DType
from treadle.ir.node import Node, Shape

ALIGNMENT = 64  # bytes: a cache line and the widest vector
KEEP_BYTES = 4 << 30  # freed memory that is kept for reuse


class Allocator:
    """Free lists by size. Sizes are rounded up to 64 bytes, large ones to an eighth of their power
    of two, so that shapes that differ a little share memory."""

    def __init__(self) -> None:
        self.free: dict[int, list[np.ndarray]] = {}
        self.kept = 0
        self.in_use = 0
        self.peak = 0

    @staticmethod
    def rounded(nbytes: int) -> int:
        """The size that is really allocated for `nbytes`."""
        step = max(ALIGNMENT, 1 << max(0, nbytes.bit_length() - 4))
        return max(ALIGNMENT, (nbytes + step - 1) // step * step)

    def take(self, nbytes: int) -> np.ndarray:
        """At least `nbytes` bytes, aligned, with arbitrary content. MemoryError says how much is
        held already."""
        size = self.rounded(nbytes)
        self.in_use += size
        self.peak = max(self.peak, self.in_use)
        waiting = self.free.get(size)
        if waiting:
            self.kept -= size
            return waiting.pop()
        try:
            raw = np.empty(size + ALIGNMENT, dtype=np.uint8)
        except (MemoryError, ValueError):  # ValueError: more than an address can count
            self.in_use -= size
            self.clear()
            raise MemoryError(
                f"no memory for a buffer of {nbytes:,} bytes; {self.in_use:,} bytes are in use by "
                "tensors"
            ) from None
        start = -raw.ctypes.data % ALIGNMENT
        return raw[start : start + size]

    def give(self, memory: np.ndarray) -> None:
        """Take memory back for reuse."""
        size = memory.nbytes
        self.in_use -= size
        if self.kept + size <= KEEP_BYTES:
            self.kept += size
            self.free.setdefault(size, []).append(memory)

    def clear(self) -> None:
        """Return what is kept to the system."""
        self.free.clear()
        self.kept = 0


allocator = Allocator()


class Buffer:
    """Bytes of one array. `lent` memory has left the library (DLPack, a NumPy view): it is never
    overwritten and never reused."""

    __slots__ = ("address", "lent", "memory", "nbytes")

    def __init__(self, nbytes: int, memory: np.ndarray | None = None) -> None:
        self.nbytes = nbytes
        self.lent = True  # until there is memory of our own, which `__del__` has to give back
        self.memory = allocator.take(nbytes) if memory is None else memory
        self.lent = memory is not None
        self.address: int = self.memory.__array_interface__["data"][0]

    def __del__(self) -> None:
        if not self.lent:
            allocator.give(self.memory)

    def array(self, dtype: DType, shape: tuple[int, ...]) -> np.ndarray:
        """The bytes as a NumPy array of the dtype's storage type, without a copy."""
        return self.memory[: self.nbytes].view(dtype.storage).reshape(shape)


class _Memory:
    """slot -> Buffer, for every leaf alive; or, for a *deferred* leaf, the assignment that will
    fill it: a node for its value, and the older leaf whose memory it may take over (or None)."""

    def __init__(self) -> None:
        self.buffers: dict[int, Buffer] = {}
        self.deferred: dict[int, tuple[Node, Node | None]] = {}
        self.tracked: dict[int, Callable[[], Any]] = {}  # what gives the cell that wants a gradient
        self.history: dict[int, tuple[Node, list[tuple[Node, int]]]] = {}  # see engine/history.py
        self.versions: dict[int, int] = {}
        self.watch: dict[int, weakref.ref[Node]] = {}
        self.tables: tuple[dict[int, Any], ...] = (
            self.buffers, self.deferred, self.tracked, self.history, self.versions, self.watch,
        )  # fmt: skip
        self.numbers = count()

    def leaf(self, dtype: DType, shape: Shape, device: str, buffer: Buffer | None = None) -> Node:
        """A new leaf node with a slot of its own, whose memory is `buffer`."""
        slot = next(self.numbers)
        node = Node(ops.BUFFER, dtype, (), (slot, shape, device))
        if buffer is not None:
            self.buffers[slot] = buffer

        def gone(_: object, slot: int = slot) -> None:
            for table in self.tables:
                table.pop(slot, None)

        self.watch[slot] = weakref.ref(node, gone)
        return node

    def defer(self, value: Node, device: str, target: Node | None = None) -> Node:
        """A new leaf that stands for `value`, computed when somebody needs it. So a parameter has
        an identity of its own from the start, although nothing has run."""
        node = self.leaf(value.dtype, value.shape, device)
        self.deferred[node.arg[0]] = (value, target)
        return node

    def is_deferred(self, leaf: Node) -> bool:
        """Whether nothing has computed the value of a leaf yet."""
        return leaf.arg[0] in self.deferred

    def deferred_leaves(self) -> list[tuple[int, Node]]:
        """(slot, leaf) of every deferred leaf alive."""
        found = ((slot, self.watch[slot]()) for slot in list(self.deferred))
        return [(slot, leaf) for slot, leaf in found if leaf is not None]

    def version(self, leaf: Node) -> int:
        """How often the value of a leaf has been overwritten."""
        return self.versions.get(leaf.arg[0], 0)

    def overwritten(self, leaf: Node) -> None:
        """The leaf's value is gone: another one is in its memory."""
        self.versions[leaf.arg[0]] = self.version(leaf) + 1
        self.history.pop(leaf.arg[0], None)

    def fill(self, leaf: Node, buffer: Buffer) -> None:
        """The memory of a leaf is `buffer` from now on."""
        self.buffers[leaf.arg[0]] = buffer
        self.deferred.pop(leaf.arg[0], None)

    def __getitem__(self, leaf: Node) -> Buffer:
        return self.buffers[leaf.arg[0]]


memory = _Memory()
