"""A Program as a list of records, and the runner of such programs that is written in Python.

    builder = ProgramBuilder(slot_count=3)
    builder.phase([(kernel, [1, 2, 2], 8, 0)])
    program = builder.build()
    program.slots[1:] = x.ctypes.data, 1
    Runner(launch).run(program)

The CPU's pool of threads runs programs of its own with the same methods (`backend/llvm/pool.py`).
What a record means is the same for both:

KERNEL      `fn` runs `ntasks` times, with `map`; `phase_length` records from here on are one phase
LOOP_BEGIN  repeat up to `target` for the steps 0 .. trips - 1 in the slot `counter_slot`; with a
            slot `test`, only as long as the byte at the address in it is `wanted`
LOOP_END    the end of the loop that begins at `target`
HOLD        from here on the program cannot be given up: in-place stores follow

Before a phase, the runner stops if the error flag (the word whose address is slots[0]) is not 0.
"""

from __future__ import annotations

import ctypes
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, Final

import numpy as np
import numpy.typing as npt

KERNEL: Final = "kernel"
LOOP_BEGIN: Final = "loop begin"
LOOP_END: Final = "loop end"
HOLD: Final = "hold"

Launched = tuple[int, Sequence[int], int, int]  # fn, map, tasks, chunks
Record = dict[str, Any]


class Program:
    """Records and slots, ready to run. `ProgramBuilder.build` makes one.

    records: `records[i]["ntasks"]` and `["trips"]` may be rewritten between runs. slots: the table
    of int64 that kernels read; slot 0 is the address of `flag`, one int64. start: the record that
    a run begins with. completed: whether the last run came to the last record.
    """

    def __init__(self, records: list[Record], slot_count: int) -> None:
        self.records = records
        self.slots: npt.NDArray[np.int64] = np.zeros(slot_count, np.int64)
        self.flag: npt.NDArray[np.int64] = np.zeros(1, np.int64)
        self.slots[0] = self.flag.ctypes.data
        self.start = 0
        self.completed = False


class ProgramBuilder:
    """Lists the records of a program. Each method returns the number of the (first) record it adds.

    slot_count: how many slots the program has, slot 0 (the error flag's address) included.
    """

    def __init__(self, slot_count: int) -> None:
        self._slot_count = slot_count
        self._records: list[Record] = []
        self._open: list[int] = []

    def kernel(self, fn: int, map: Sequence[int], tasks: int, chunks: int = 0) -> int:
        """A phase of one kernel. chunks: into how many pieces it is worth cutting; 1 for none, 0
        for as many as there are tasks."""
        return self.phase([(fn, map, tasks, chunks)])

    def phase(self, kernels: Sequence[Launched]) -> int:
        """Kernels (fn, map, tasks, chunks) that do not depend on each other, run as one phase."""
        for position, (fn, map, tasks, chunks) in enumerate(kernels):
            if not all(0 <= slot < self._slot_count for slot in map):
                raise ValueError(f"slots {list(map)} are not all among the {self._slot_count}")
            self._add(
                kind=KERNEL,
                fn=fn,
                map=np.array(map, np.int32),
                ntasks=tasks,
                chunks=chunks,
                phase_length=len(kernels) - position,
            )
        return len(self._records) - len(kernels)

    def begin_loop(self, counter_slot: int, trips: int, test: int = 0, wanted: int = 1) -> int:
        """Repeat what follows, up to `end_loop`, for steps 0 .. trips - 1 in `counter_slot`. With a
        slot `test`, end before the first step at which the byte at its address is not `wanted`."""
        begin = self._add(
            kind=LOOP_BEGIN, counter_slot=counter_slot, trips=trips, test=test, wanted=wanted
        )
        self._open.append(begin)
        return begin

    def end_loop(self) -> int:
        """End the innermost loop that is open."""
        begin = self._open.pop()
        end = self._add(kind=LOOP_END, target=begin)
        self._records[begin]["target"] = end
        return end

    def hold(self) -> int:
        """From here on the program runs to its end."""
        return self._add(kind=HOLD)

    def build(self) -> Program:
        """The program. Its slots are 0 but for slot 0; fill them before running."""
        if self._open:
            raise ValueError(f"{len(self._open)} loops are not ended")
        return Program(self._records, self._slot_count)

    def _add(self, **record: Any) -> int:
        self._records.append(record)
        return len(self._records) - 1


class Runner:
    """Runs programs record by record.

    launch(program, record): runs a KERNEL record. An exception in it, or Ctrl-C, ends the program;
    after a HOLD, Ctrl-C waits for the end.
    """

    builder: ClassVar[type[ProgramBuilder]] = ProgramBuilder

    def __init__(self, launch: Callable[[Program, Record], None]) -> None:
        self._launch = launch

    def run(self, program: Program) -> None:
        """Run a program to its end, or to the first phase that finds the error flag set."""
        program.completed = False
        place = self._run(program, program.start, stop_at=HOLD)
        if place < len(program.records) and not program.flag[0]:
            with _without_interrupts():
                place = self._run(program, place + 1, stop_at="")
        program.completed = place == len(program.records) and not program.flag[0]

    def _run(self, program: Program, place: int, stop_at: str) -> int:
        """Run from a record to the first of the kind `stop_at`; the place reached."""
        records, slots = program.records, program.slots
        while place < len(records) and not program.flag[0]:
            record = records[place]
            kind = record["kind"]
            if kind == stop_at:
                return place
            if kind == KERNEL:
                end = place + record["phase_length"]
                for member in records[place:end]:
                    self._launch(program, member)
                place = end - 1
            elif kind == LOOP_BEGIN:
                place = _trip(program, place, 0)
            elif kind == LOOP_END:
                begin = record["target"]
                place = _trip(program, begin, int(slots[records[begin]["counter_slot"]]) + 1)
            place += 1
        return place


def _trip(program: Program, begin: int, step: int) -> int:
    """The record behind which the loop that begins at `begin` goes on with this step: its first,
    or, if there is no such step, its last."""
    loop = program.records[begin]
    program.slots[loop["counter_slot"]] = step
    goes_on = step < loop["trips"]
    if goes_on and loop["test"]:
        address = int(program.slots[loop["test"]])
        goes_on = ctypes.c_uint8.from_address(address).value == loop["wanted"]
    return begin if goes_on else int(loop["target"])


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """Ctrl-C inside takes effect at the end. (Only the main thread is ever interrupted.)"""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[tuple[Any, ...]] = []
    before = signal.signal(signal.SIGINT, lambda *what: came.append(what))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if came and callable(before):
        before(*came[0])
