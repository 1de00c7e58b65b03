"""Memory: buffers that are used again, and the map from a leaf's slot to its buffer.

A leaf node names a slot, as plain data; `memory` knows which buffer that is. When nobody holds the
leaf any more, its buffer goes back to the allocator, which hands the same (already touched) pages
out again: fresh pages cost more than most kernels.
"""

from __future__ import annotations

import weakref
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import count, repeat
from typing import Any

import numpy as np

from treadle import host
from treadle.host import ALIGNMENT
from treadle.ir import ops
from treadle.ir.dtype import DType
from treadle.ir.node import Key, Node, Reference, Shape, leave

KEEP_BYTES = 4 << 30  # freed memory that is kept for reuse
FIRST_SLOT = 1000  # normal forms number their leaves from 0: a leaf with a slot is none of those


class Allocator:
    """Free lists by size. Sizes are rounded up to 64 bytes, large ones to an eighth of their power
    of two, so that shapes that differ a little share memory."""

    def __init__(self) -> None:
        self.free: defaultdict[int, list[tuple[np.ndarray, int]]] = defaultdict(list)
        self.kept = 0
        self.most = KEEP_BYTES  # (here: when Python ends, names of the module may be gone)
        self.in_use = 0
        self.peak = 0
        self.rest = np.empty(0, dtype=np.uint8)  # of the last block of large pages

    @staticmethod
    @lru_cache(maxsize=4096)
    def rounded(nbytes: int) -> int:
        """The size that is really allocated for `nbytes`."""
        step = max(ALIGNMENT, 1 << max(0, nbytes.bit_length() - 4))
        return max(ALIGNMENT, (nbytes + step - 1) // step * step)

    def take(self, nbytes: int) -> tuple[np.ndarray, int]:
        """(memory, its address): at least `nbytes` bytes, aligned, with arbitrary content.
        MemoryError says how much is held already."""
        size = self.rounded(nbytes)
        in_use = self.in_use = self.in_use + size
        if in_use > self.peak:
            self.peak = in_use
        waiting = self.free[size]
        if waiting:
            self.kept -= size
            return waiting.pop()
        try:
            return self._fresh(size)
        except (MemoryError, ValueError):  # ValueError: more than an address can count
            self.in_use -= size
            self.clear()
            raise MemoryError(
                f"no memory for a buffer of {nbytes:,} bytes; {self.in_use:,} bytes are in use by "
                "tensors"
            ) from None

    def _fresh(self, size: int) -> tuple[np.ndarray, int]:
        """Memory of the system. What has many pages lies in large ones, where the system has them:
        NumPy asks for those in blocks of 4 MiB and more. An array in small pages is strewn over
        the places of the second cache, and overwrites itself there long before that is full."""
        if size < host.LARGE_PAGE // 32:
            return _aligned(np.empty(size + ALIGNMENT, dtype=np.uint8), size)
        if size > host.LARGE_PAGE // 2:
            return _aligned(_large_pages(size), size)
        if self.rest.nbytes < size + host.PAGE:  # smaller ones share a block
            self.rest = _large_pages(host.LARGE_PAGE)
        memory, address = _aligned(self.rest, size)
        self.rest = self.rest[address + size - self.rest.ctypes.data :]
        return memory, address

    def give(self, memory: np.ndarray, address: int) -> None:
        """Take memory back for reuse."""
        size = memory.nbytes
        self.in_use -= size
        if self.kept + size <= self.most:
            self.kept += size
            self.free[size].append((memory, address))

    def clear(self) -> None:
        """Return what is kept to the system."""
        self.free.clear()
        self.kept = 0
        self.rest = np.empty(0, dtype=np.uint8)


def _aligned(block: np.ndarray, size: int) -> tuple[np.ndarray, int]:
    """(memory, its address): the first `size` bytes of a block that begin where they may."""
    address = block.ctypes.data
    start = host.place(address, size) - address
    return block[start : start + size], address + start


def _large_pages(size: int) -> np.ndarray:
    """At least `size` bytes that begin at a large page."""
    block = np.empty(max(size, host.LARGE_PAGE) + host.LARGE_PAGE, dtype=np.uint8)
    return block[-block.ctypes.data % host.LARGE_PAGE :]


allocator = Allocator()


class Buffer:
    """Bytes of one array. `lent` memory has left the library (DLPack, a NumPy view): it is never
    overwritten and never reused. Others may write to it, so who lends it calls `memory.disturb`."""

    __slots__ = ("address", "lent", "memory", "nbytes")

    def __init__(self, nbytes: int, memory: np.ndarray | None = None) -> None:
        self.nbytes = nbytes
        self.lent = True  # until there is memory of our own, which `__del__` has to give back
        self.memory: np.ndarray
        self.address: int
        if memory is None:
            self.memory, self.address = allocator.take(nbytes)
            self.lent = False
        else:
            self.memory = memory
            self.address = memory.__array_interface__["data"][0]

    def __del__(self, give: Callable[[np.ndarray, int], None] = allocator.give) -> None:
        if not self.lent:  # (a default: when Python ends, names of the module may be gone)
            give(self.memory, self.address)

    def copy(self) -> Buffer:
        """The same bytes in memory of their own."""
        new = Buffer(self.nbytes)
        new.assign(self)
        return new

    def lend(self) -> None:
        """The memory is others' too from now on, and lives as long as they want."""
        if not self.lent:
            self.lent = True
            allocator.in_use -= self.memory.nbytes

    def assign(self, other: Buffer) -> None:
        """Take over the bytes of another buffer of this size."""
        self.memory[: self.nbytes] = other.memory[: self.nbytes]

    def array(self, dtype: DType, shape: tuple[int, ...]) -> np.ndarray:
        """The bytes as a NumPy array of the dtype's storage type, without a copy."""
        return self.memory[: self.nbytes].view(dtype.storage).reshape(shape)


class _Memory:
    """slot -> Buffer, for every leaf alive; or, for a *deferred* leaf, the assignment that will
    fill it: a node for its value, and the older leaf whose memory it may take over (or None).

    clock: counts the times that values were overwritten; versions: the clock when that last
    happened to a leaf. moves: counts the times that a leaf alive got other memory. watched: slots
    of values that somebody has made something from. disturbances: counts the times that
    nobody knows what was overwritten.
    """

    def __init__(self) -> None:
        self.buffers: dict[int, Buffer] = {}
        self.deferred: dict[int, tuple[Node, Node | None]] = {}
        self.tracked: dict[int, Callable[[], Any]] = {}  # what gives the cell that wants a gradient
        self.history: dict[int, tuple[Node | Callable[[], Node], int]] = {}  # engine/history.py
        self.spent: set[int] = set()  # slots of leaves whose history has been overwritten
        self.clock = 0
        self.versions: dict[int, int] = {}
        self.moves = 0
        self.watched: set[int] = set()
        self.disturbances = 0
        self.alive: dict[Reference, Key] = {}  # every leaf alive, with its place among nodes
        self.waiting: dict[int, Reference] = {}  # the deferred ones by their slots
        self.numbers = count(FIRST_SLOT)
        self.when_gone = self._gone  # (one object for all; it lives as long as a leaf does)

    def leaf(self, dtype: DType, shape: Shape, device: str, buffer: Buffer | None = None) -> Node:
        """A new leaf node with a slot of its own, whose memory is `buffer`."""
        slot = next(self.numbers)
        node = Node.watched(
            ops.BUFFER, dtype, (slot, shape, device), shape, self.alive, self.when_gone
        )
        if buffer is not None:
            self.buffers[slot] = buffer
        return node

    def _gone(self, reference: Reference, leave: Callable[..., None] = leave) -> None:
        """Nobody holds the leaf any more. (A default: as in `Buffer.__del__`.)"""
        key = self.alive.pop(reference)
        leave(key)
        slot = key[3][0]
        self.buffers.pop(slot, None)
        if slot in self.versions:
            del self.versions[slot]
        if slot in self.watched:
            self.watched.discard(slot)
        if slot in self.tracked:
            del self.tracked[slot]
        if slot in self.history:
            del self.history[slot]
        if slot in self.deferred:
            del self.deferred[slot], self.waiting[slot]
        if slot in self.spent:
            self.spent.discard(slot)

    def defer(self, value: Node, device: str, target: Node | None = None) -> Node:
        """A new leaf that stands for `value`, computed when somebody needs it. So a parameter has
        an identity of its own from the start, although nothing has run."""
        node = self.leaf(value.dtype, value.shape, device)
        self.deferred[node.arg[0]] = (value, target)
        self.waiting[node.arg[0]] = weakref.ref(node)
        return node

    def is_deferred(self, leaf: Node) -> bool:
        """Whether nothing has computed the value of a leaf yet."""
        return leaf.arg[0] in self.deferred

    def is_plain(self, slot: int) -> bool:
        """Whether a leaf is nothing but its memory, of which nobody knows anything."""
        return not (
            self.buffers[slot].lent
            or slot in self.watched
            or slot in self.versions
            or slot in self.tracked
            or slot in self.history
            or slot in self.spent
        )

    def deferred_leaves(self) -> list[tuple[int, Node]]:
        """(slot, leaf) of every deferred leaf alive."""
        found = ((slot, self.waiting[slot]()) for slot in list(self.deferred))
        return [(slot, leaf) for slot, leaf in found if leaf is not None]

    def version(self, leaf: Node) -> int:
        """The clock when the value of a leaf was last overwritten; 0 if it never was."""
        return self.versions.get(leaf.arg[0], 0)

    def overwritten(self, leaf: Node) -> None:
        """The leaf's value is gone: another one is in its memory."""
        self.overwritten_slots([leaf.arg[0]])

    def overwritten_slots(self, slots: Iterable[int]) -> None:
        """`overwritten`, for the leaves of these slots."""
        self.clock += 1
        self.versions.update(zip(slots, repeat(self.clock)))
        if self.history:
            for slot in slots:
                self.history.pop(slot, None)

    def stamp(self, slots: Sequence[int]) -> list[tuple[int, int]]:
        """What is equal as long as the values of these slots are the same: slots and versions."""
        versions = self.versions
        return [(-1, self.disturbances), *[(slot, versions.get(slot, 0)) for slot in slots]]

    def disturb(self) -> None:
        """Any memory may have been overwritten: a program has failed, or others can write to it."""
        self.clock += 1
        self.disturbances += 1

    def fill(self, leaf: Node, buffer: Buffer) -> None:
        """The memory of a leaf is `buffer` from now on."""
        slot = leaf.arg[0]
        if self.buffers.get(slot, buffer) is not buffer:
            self.moves += 1
        self.buffers[slot] = buffer
        if self.deferred.pop(slot, None) is not None:
            del self.waiting[slot]

    def lend(self, leaf: Node) -> Buffer:
        """The memory of a leaf, which others may read and write from now on."""
        buffer = self[leaf]
        buffer.lend()
        self.moves += 1  # captured functions look again at what they overwrite
        self.disturb()
        return buffer

    def recover(self, leaf: Node) -> None:
        """Give a leaf that is about to be overwritten memory of its own, if others see its own."""
        buffer = self[leaf]
        if buffer.lent:
            self.fill(leaf, buffer.copy())

    def __getitem__(self, leaf: Node) -> Buffer:
        try:
            return self.buffers[leaf.arg[0]]
        except KeyError:
            raise RuntimeError(
                f"this tensor of shape {leaf.shape} has no value any more: it was donated to a "
                "captured function, or made inside of one whose trace failed"
            ) from None


memory = _Memory()
