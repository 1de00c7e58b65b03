"""Where temporaries lie: one arena, in which memory is used again when its last reader is done.

Time is counted in phases, since the kernels of one phase may run at once.
"""

from __future__ import annotations

import bisect
from collections.abc import Sequence

from treadle.host import ALIGNMENT, place
from treadle.ir import index
from treadle.schedule.plan import BufferInfo, Item, Loop


def nbytes(info: BufferInfo) -> int:
    """The most bytes that a buffer may need: symbolic dimensions count with their upper bounds."""
    total = info.dtype.itemsize
    for size in info.shape:
        total *= index.bounds(size)[1]
    return total


def plan(items: Sequence[Item], buffers: Sequence[BufferInfo]) -> int:
    """Give every temporary that the items use an offset. Returns the size of the arena."""
    lives = lifetimes(items)
    temporary = [number for number in lives if buffers[number].role == "temporary"]
    starts = sorted(temporary, key=lambda number: (lives[number][0], number))
    ends = sorted(temporary, key=lambda number: (lives[number][1], number))
    arena = _Arena()
    finished = 0
    for number in starts:
        while lives[ends[finished]][1] < lives[number][0]:
            arena.free(ends[finished])
            finished += 1
        buffers[number].offset = arena.allocate(number, nbytes(buffers[number]))
    return arena.size


def lifetimes(items: Sequence[Item]) -> dict[int, tuple[int, int]]:
    """For every buffer the first and the last phase in which it holds something that is needed."""
    lives: dict[int, tuple[int, int]] = {}
    spans: list[tuple[Loop, int, int]] = []
    stack = list(items)
    while stack:
        item = stack.pop()
        if isinstance(item, Loop):
            spans.append((item, item.phase, last_phase(item)))
            stack.extend(item.body)
            continue
        for number in item.reads | item.writes:
            first, last = lives.get(number, (item.phase, item.phase))
            lives[number] = min(first, item.phase), max(last, item.phase)
    # what is used outside a loop too must keep its value through all of its steps
    for loop, start, stop in sorted(spans, key=lambda span: -span[1]):  # inner loops first
        for number in loop.reads | loop.writes:
            first, last = lives[number]
            if first < start or last > stop:
                lives[number] = min(first, start), max(last, stop)
    return lives


def last_phase(loop: Loop) -> int:
    """The number of the last phase in a loop's body."""
    item: Item = loop
    while isinstance(item, Loop) and item.body:
        item = item.body[-1]
    return item.phase


class _Arena:
    """Gaps between live blocks; a block takes the smallest gap that holds it."""

    def __init__(self) -> None:
        self.size = 0
        self.blocks: dict[int, tuple[int, int]] = {}  # buffer -> (offset, bytes)
        self.gaps: list[tuple[int, int]] = []  # (offset, bytes), by offset

    def allocate(self, number: int, size: int) -> int:
        size = -(-max(size, 1) // ALIGNMENT) * ALIGNMENT
        fitting = [
            (length, at) for at, length in self.gaps if place(at, size) + size <= at + length
        ]
        if fitting:
            length, at = min(fitting)
            self.gaps.remove((at, length))
        elif self.gaps and sum(self.gaps[-1]) == self.size:  # the last gap grows
            at, length = self.gaps.pop()
        else:
            at, length = self.size, 0
        start = place(at, size)
        end = start + size
        self.size = max(self.size, end)
        for gap, rest in ((at, start - at), (end, at + length - end)):
            if rest > 0:
                self._insert(gap, rest)
        self.blocks[number] = start, size
        return start

    def free(self, number: int) -> None:
        self._insert(*self.blocks.pop(number))

    def _insert(self, start: int, length: int) -> None:
        position = bisect.bisect(self.gaps, (start, length))
        if position < len(self.gaps) and self.gaps[position][0] == start + length:
            length += self.gaps.pop(position)[1]
        if position > 0 and sum(self.gaps[position - 1]) == start:
            position -= 1
            start, before = self.gaps.pop(position)
            length += before
        self.gaps.insert(position, (start, length))
