"""A Program: what one native call runs. It is made from a schedule and a backend.

`Program.run` fills the table of slots (the addresses of inputs, outputs and temporaries; run-time
numbers; the values of variables) and calls the runner once, which does the kernels in order.
"""

from __future__ import annotations

import time
from collections.abc import Container, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, NamedTuple

import numpy as np

from treadle import config, host
from treadle.backend.base import Backend
from treadle.engine.compile import Compiler
from treadle.engine.storage import Buffer, memory
from treadle.events import emit
from treadle.ir import index, ops
from treadle.ir.node import Node, toposort
from treadle.schedule.plan import BufferInfo, Call, Item, Loop, Schedule

Size = int | Node


@dataclass
class Slots:
    """Numbers the program's slots. Slot 0 is the error flag's address."""

    count: int = 1
    constants: dict[int, int] = field(default_factory=dict)  # slot -> value
    known: dict[Any, int] = field(default_factory=dict)  # what -> slot

    def of(self, what: Any) -> int:
        """The slot of `what`: ("buffer", n), ("scalar", n), ("scratch", n), ("variable", name),
        ("size", node) or ("constant", value)."""
        if what not in self.known:
            self.known[what] = self.count
            self.count += 1
        return self.known[what]

    def constant(self, value: int) -> int:
        """A slot that always holds `value`."""
        slot = self.of(("constant", value))
        self.constants[slot] = value
        return slot


class Launched(NamedTuple):
    """One function as it is called: its address, the slot of each parameter, tasks and chunks.
    writes: the slots of the buffers that it stores to."""

    address: int
    slots: tuple[int, ...]
    tasks: Size
    chunks: int
    writes: frozenset[int]

    @property
    def reads(self) -> frozenset[int]:
        """The slots of all other parameters. (What is only added to is not told from what is
        written: a slot that is read and written is in `writes`.)"""
        return frozenset(self.slots) - self.writes


class Phase(NamedTuple):
    """Launches that do not depend on each other, of these calls; hold: it writes in place."""

    launches: tuple[Launched, ...]
    calls: tuple[Call, ...]
    hold: bool


class Repeat(NamedTuple):
    """Steps that run `trips` times, the step's number in `slot`; with a slot `test`, only as long
    as the bool at its address is `wanted`."""

    slot: int
    trips: Size
    steps: tuple[Step, ...]
    test: int = 0
    wanted: bool = True


Step = Phase | Repeat


class Native:
    """Records of a runner, with the counts in them that depend on variables."""

    def __init__(self, steps: Sequence[Step], slots: Slots, builder: Any) -> None:
        self.sizes: list[tuple[int, str, Node]] = []  # (record, field, size)
        build = builder(slots.count)
        held = False
        stack: list[Step | None] = list(reversed(steps))
        while stack:
            step = stack.pop()
            if step is None:
                build.end_loop()
            elif isinstance(step, Repeat):
                trips = self._count(step.trips)
                record = build.begin_loop(step.slot, trips, step.test, int(step.wanted))
                self._note(record, "trips", step.trips)
                stack += [None, *reversed(step.steps)]
            else:
                if step.hold and not held:
                    build.hold()
                    held = True
                launches = [
                    (n.address, n.slots, self._count(n.tasks), n.chunks) for n in step.launches
                ]
                first = build.phase(launches)
                for offset, launch in enumerate(step.launches):
                    self._note(first + offset, "ntasks", launch.tasks)
        self.records = build.build()

    @staticmethod
    def _count(size: Size) -> int:
        return size if isinstance(size, int) else 0

    def _note(self, record: int, name: str, size: Size) -> None:
        if not isinstance(size, int):
            self.sizes.append((record, name, size))

    def set_sizes(self, variables: dict[str, int]) -> None:
        """Write the counts for these values of the variables."""
        for record, name, size in self.sizes:
            self.records.records[record][name] = index.evaluate(size, variables)


class Program:
    """A schedule made ready for one backend: see `run`.

    checks: the graph node of each checked index, by the code (from 1) that a failure gives.
    """

    def __init__(
        self, schedule: Schedule, backend: Backend, compiler: Compiler, builder: Any
    ) -> None:
        self.schedule = schedule
        self.backend = backend
        kernels = [(call.kernel, call.unchanging) for call in schedule.calls()]
        self.kernels = dict(zip(kernels, compiler.get(kernels), strict=True))
        self.checks: list[Node] = []
        self.slots = Slots()
        self.scratch: list[tuple[int, Size]] = []  # (slot, bytes)
        self.phases: dict[int, int] = {}  # slot of a scratch buffer -> the phase of its call
        self.steps = self._steps(schedule.items)
        self.builder = builder
        self.native = Native(self.steps, self.slots, builder)
        for slot, value in self.slots.constants.items():
            self.native.records.slots[slot] = value
        known = self.slots.known
        placed = [
            (known["buffer", number], info.offset)
            for number, info in enumerate(schedule.buffers)
            if info.role == "temporary" and ("buffer", number) in known
        ]
        self.temporary_slots = np.array([slot for slot, _ in placed], np.int64)
        self.temporary_offsets = np.array([offset for _, offset in placed], np.int64)
        placed, self.scratch_bytes = self.place_scratch()
        self.scratch_slots = np.array([slot for slot, _ in placed], np.int64)
        self.scratch_offsets = np.array([offset for _, offset in placed], np.int64)
        self.variables = [(what[1], slot) for what, slot in known.items() if what[0] == "variable"]
        self.sizes = [(what[1], slot) for what, slot in known.items() if what[0] == "size"]
        self.timed: list[tuple[Step, Native]] | None = None

    # ---- building --------------------------------------------------------------------------------
    def _steps(self, items: Sequence[Item]) -> tuple[Step, ...]:
        """The items as phases: neighbours of equal `phase` together. The first functions of all
        their kernels are one phase, then the second ones, and so on."""
        steps: list[Step] = []
        position = 0
        while position < len(items):
            item = items[position]
            position += 1
            if isinstance(item, Loop):
                slot = self.slots.of(("variable", item.counter.arg[0]))
                buffer, wanted = item.test or (-1, True)
                test = 0 if item.test is None else self.slots.of(("buffer", buffer))
                steps.append(Repeat(slot, item.trips, self._steps(item.body), test, wanted))
                continue
            calls = [item]
            while position < len(items):
                following = items[position]
                if isinstance(following, Loop) or following.phase != item.phase:
                    break
                calls.append(following)
                position += 1
            launches = [self._launches(call) for call in calls]
            hold = any(call.in_place for call in calls)
            for turn in range(max(map(len, launches))):
                phase = tuple([these[turn] for these in launches if turn < len(these)])
                steps.append(Phase(phase, tuple(calls) if turn == 0 else (), hold))
        return tuple(steps)

    def place_scratch(self, besides: Container[int] = ()) -> tuple[list[tuple[int, int]], int]:
        """([(slot, offset)], bytes): places for the scratch buffers of known size in one block of
        memory. Calls of different phases use the same places. besides: other slots."""
        placed = []
        ends: dict[int, int] = {}
        for slot, size in self.scratch:
            if isinstance(size, int) and slot not in besides:
                phase = self.phases[slot]
                offset = host.place(ends.get(phase, 0), size)
                placed.append((slot, offset))
                ends[phase] = offset + size
        return placed, max(ends.values(), default=0)

    def _launches(self, call: Call) -> list[Launched]:
        """The functions of a call's kernel, in order. Their last parameter is the code of the
        call's first check."""
        compiled = self.kernels[call.kernel, call.unchanging]
        first_code = self.slots.constant(len(self.checks) + 1)
        self.checks += call.checks
        scratch = []
        for size in compiled.scratch:
            scratch.append(self.slots.of(("scratch", len(self.scratch))))
            self.scratch.append((scratch[-1], size))
            self.phases[scratch[-1]] = call.phase
        launches = []
        for launch, address in zip(compiled.launches, compiled.addresses, strict=True):
            slots = [self._slot(call, kind, which, scratch) for kind, which in launch.params]
            tasks = launch.tasks
            if isinstance(tasks, Node):
                tasks = index.dim(index.substitute(tasks, _given(call, tasks)))
            writes = frozenset(
                self._slot(call, "buffer", position, scratch) for position in launch.writes
            )
            launches.append(Launched(address, (*slots, first_code), tasks, launch.chunks, writes))
        return launches

    def _slot(self, call: Call, kind: str, which: Any, scratch: list[int]) -> int:
        """The slot of one parameter (see `Launch.params`); scratch: the slots of scratch buffers,
        which are numbered after the call's own."""
        if kind == "buffer":
            position, own = int(which), len(call.buffers)
            if position >= own:
                return scratch[position - own]
            return self.slots.of(("buffer", call.buffers[position]))
        if kind == "scalar":
            return self.slots.of(("scalar", call.scalars[which].arg))
        value = call.variables.get(which)
        if value is None:
            return self.slots.of(("variable", which))
        if isinstance(value, int):
            return self.slots.constant(value)
        return self.slots.of(("size", value))

    # ---- running ---------------------------------------------------------------------------------
    def run(
        self,
        runner: Any,
        buffers: dict[int, Buffer],
        scalars: Sequence[int],
        variables: dict[str, int],
    ) -> int:
        """Run once. buffers: memory of every input and output by its number in the schedule;
        scalars: the bits of each run-time number; variables: the value of each Variable.
        Returns the error flag: 0, or the code of a check that failed."""
        records, known = self.native.records, self.slots.known
        slots = records.slots
        for number, buffer in buffers.items():
            slot = known.get(("buffer", number))
            if slot is not None:
                slots[slot] = buffer.address
        for number, bits in enumerate(scalars):
            slot = known.get(("scalar", number))
            if slot is not None:
                slots[slot] = bits if bits < 1 << 63 else bits - (1 << 64)
        for name, slot in self.variables:
            if name in variables:
                slots[slot] = variables[name]
        for size, slot in self.sizes:
            slots[slot] = index.evaluate(size, variables)
        self.native.set_sizes(variables)
        held = self._temporary_memory(slots, variables)
        records.flag[0] = 0
        try:
            if config.DEBUG:
                self.run_timed(runner, records, variables)
            else:
                runner.run(records)
        except BaseException:
            memory.disturb()
            raise
        del held  # not before: from here on others may write to this memory
        return int(records.flag[0])

    def _temporary_memory(self, slots: Any, variables: dict[str, int]) -> list[Buffer]:
        """The arena and the scratch buffers, from the allocator for this run; their addresses are
        written to the slots."""
        held = []
        if self.schedule.arena:
            arena = Buffer(self.schedule.arena)
            held.append(arena)
            slots[self.temporary_slots] = self.temporary_offsets + arena.address
        if self.scratch_bytes:
            block = Buffer(self.scratch_bytes)
            held.append(block)
            slots[self.scratch_slots] = self.scratch_offsets + block.address
        for slot, size in self.scratch:
            if not isinstance(size, int):
                held.append(Buffer(index.evaluate(size, variables)))
                slots[slot] = held[-1].address
        return held

    def run_timed(self, runner: Any, own: Any, variables: dict[str, int]) -> None:
        """Run step by step, with the seconds of each step in the event "run". own: the runner's
        records of the whole, whose slots are filled."""
        if self.timed is None:
            self.timed = [(step, Native([step], self.slots, self.builder)) for step in self.steps]
        seconds = []
        for _, native in self.timed:
            native.set_sizes(variables)
            native.records.slots[1:] = own.slots[1:]
            native.records.flag[0] = own.flag[0]
            start = time.perf_counter()
            runner.run(native.records)
            seconds.append(time.perf_counter() - start)
            own.flag[0] = native.records.flag[0]
        emit("run", program=self, seconds=seconds, steps=self.steps, variables=variables)


def _given(call: Call, size: Node) -> dict[Node, int | Node]:
    """The variables in a size to which the call itself gives a value."""
    return {
        node: call.variables[node.arg[0]]
        for node in toposort(size, into_args=True)
        if node.op is ops.VARIABLE and node.arg[0] in call.variables
    }


def nbytes(info: BufferInfo, variables: dict[str, int]) -> int:
    """The bytes of a buffer under these values of the variables."""
    return info.dtype.itemsize * prod(index.evaluate(size, variables) for size in info.shape)
