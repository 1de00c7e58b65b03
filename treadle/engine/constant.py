"""The part of a captured program that need not be run at every call.

A weight is packed into panels before a product, transposed, or cast. While nobody writes to the
weight, what that gives is the same at every call. So the functions whose inputs cannot differ from
call to call stand first in the records of a captured program, what the others read of them has
memory that is kept, and a replay begins after them. The kept memory belongs to *versions* of the
memory that it was made from (`storage.py`): when one has changed, the next call runs all records.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from treadle.engine.program import Launched, Phase, Program, Repeat, Step, nbytes
from treadle.engine.storage import Buffer, memory


@dataclass
class Division:
    """The steps of a program in two parts. constant: those whose results are the same at every
    call, and `sources`, the slots of inputs that they read; rest: all others, and `kept`, the slots
    that these read of what the constant ones wrote."""

    constant: tuple[Phase, ...]
    sources: set[int]
    rest: tuple[Step, ...]
    kept: set[int]


def divide(steps: Sequence[Step], same: set[int], writable: set[int]) -> Division:
    """Find the launches that read only `same`, the slots that hold the same at every call, and what
    other such launches wrote. writable: the slots of memory that may be kept.

    A slot with several writers holds several values in the course of a program, and counts as
    none. So a launch inside a loop may go before it: it does the same in every trip. But what a
    test decides may not run at all (an index out of range would be reported): it stays.
    """
    writers = Counter(slot for launch in _launches(steps) for slot in launch.writes)
    known, read = set(same), set[int]()
    moved: set[int] = set()  # by id: equal launches are two
    for launch in _launches(steps, tested=False):
        alone = launch.writes <= writable and all(writers[slot] == 1 for slot in launch.writes)
        if alone and launch.reads <= known and isinstance(launch.tasks, int):
            moved.add(id(launch))
            known |= launch.writes
            read |= launch.reads
    phases: list[Phase] = []
    rest = _without(steps, moved, phases)
    read_later = {slot for launch in _launches(rest) for slot in launch.reads}
    read_later |= {repeat.test for repeat in _repeats(rest)}
    return Division(tuple(phases), read & same, rest, (known - same) & read_later)


def _launches(steps: Sequence[Step], tested: bool = True) -> Iterator[Launched]:
    """Every launch, in order; tested: also those in loops that a test may end."""
    for step in steps:
        if not isinstance(step, Repeat):
            yield from step.launches
        elif tested or not step.test:
            yield from _launches(step.steps, tested)


def _repeats(steps: Sequence[Step]) -> Iterator[Repeat]:
    """Every loop, also those inside of others."""
    for step in steps:
        if isinstance(step, Repeat):
            yield step
            yield from _repeats(step.steps)


def _without(steps: Sequence[Step], moved: set[int], phases: list[Phase]) -> tuple[Step, ...]:
    """The steps without the launches that move, which are appended to `phases`."""
    rest: list[Step] = []
    for step in steps:
        if isinstance(step, Repeat):
            body = _without(step.steps, moved, phases)
            rest += [step._replace(steps=body)] if body else []
            continue
        first = tuple(launch for launch in step.launches if id(launch) in moved)
        last = tuple(launch for launch in step.launches if id(launch) not in moved)
        phases += [Phase(first, (), False)] if first else []
        rest += [step._replace(launches=last)] if last else []
    return tuple(rest)


class Kept:
    """The constant part of a captured program, and the memory of what it gives.

    count: how many records it has; sizes: (slot, bytes) of what is kept; cells: the numbers of the
    closed-over tensors that it reads; leaves: the slots of the leaves that it reads beside them.
    """

    def __init__(
        self,
        count: int,
        sizes: Sequence[tuple[int, int]],
        cells: Sequence[int],
        leaves: Sequence[int],
    ) -> None:
        self.count = count
        self.sizes = sizes
        self.cells = cells
        self.leaves = leaves
        self.bytes = sum(size for _, size in sizes)
        self.buffers: list[Buffer] = []
        self.clock = -1  # the memory's when this was last seen to hold; -1: look again
        self.stamp: list[tuple[int, int]] = []  # (slot, version) of what it was made from
        self.lent = False  # whether others can write to that
        self.places: Sequence[Any] = ()  # of the closed-over tensors then

    def prepare(self, records: Any, slots: Any, places: Sequence[Any]) -> None:
        """Begin the next run before or after the constant part, as the memory is now. slots: where
        the program finds addresses; places: the arg of the leaf of each closed-over tensor."""
        if not self.buffers:
            self.buffers = [Buffer(size) for _, size in self.sizes]
            for (slot, _), buffer in zip(self.sizes, self.buffers, strict=True):
                slots[slot] = buffer.address
        self.places = places
        read = [*[places[number][0] for number in self.cells], *self.leaves]
        stamp = memory.stamp(read)
        self.lent = any(memory.buffers[slot].lent for slot in read)
        holds = stamp == self.stamp and not self.lent
        self.clock = memory.clock if holds else -1
        self.stamp = stamp
        records.start = self.count if holds else 0

    def made(self, records: Any) -> None:
        """The run that `prepare` began has made it. (What it makes of lent memory never holds.)"""
        if not self.lent:
            self.clock = memory.clock
            memory.watched.update(slot for slot, _ in self.stamp)
            records.start = self.count


def fixed_sizes(program: Program) -> dict[int, int]:
    """{slot: bytes} of the temporaries and scratch buffers whose size is known."""
    found = {slot: size for slot, size in program.scratch if isinstance(size, int)}
    for number, info in enumerate(program.schedule.buffers):
        slot = program.slots.known.get(("buffer", number))
        if slot and info.role == "temporary" and all(isinstance(n, int) for n in info.shape):
            found[slot] = nbytes(info, {})
    return found
