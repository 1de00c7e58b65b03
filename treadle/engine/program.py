"""A Program: what one native call runs. Kernels in order, a memory plan, inputs and outputs.

`build` makes it from a schedule; `Program.run` fills the table of slots (addresses of inputs, outputs
and the arena; run-time scalars; bound variables) and calls the runner once. Eager evaluation runs
every graph this way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from treadle.backend.base import Backend
from treadle.engine.compile import Compiler
from treadle.engine.storage import Buffer
from treadle.ir import index, ops
from treadle.ir.node import Node, toposort
from treadle.schedule.plan import BufferInfo, Call, Item, Loop, Schedule

@dataclass(frozen=True)
class Check:
    """A checked index of a program: the code that its kernel writes to the error flag, and the graph
    node that it serves."""

    code: int
    node: Node


@dataclass
class Slots:
    """Numbers the program's slots. Slot 0 is the error flag's address."""

    count: int = 1
    constants: dict[int, int] = field(default_factory=dict)  # slot -> value
    known: dict[Any, int] = field(default_factory=dict)  # what -> slot

    def of(self, what: Any) -> int:
        """The slot of `what`: ("buffer", n), ("scalar", n), ("variable", name) ..."""
        if what not in self.known:
            self.known[what] = self.count
            self.count += 1
        return self.known[what]

    def constant(self, value: int) -> int:
        """A slot that always holds `value`."""
        slot = self.of(("constant", value))
        self.constants[slot] = value
        return slot


class Program:
    """A schedule made ready for one backend: see `run`."""

    def __init__(self, schedule: Schedule, backend: Backend, compiler: Compiler, builder: type) -> None:
        self.schedule = schedule
        self.backend = backend
        kernels = [call.kernel for call in schedule.calls()]
        self.kernels = dict(zip(kernels, compiler.get(kernels), strict=True))
        self.checks: list[Check] = []
        self.slots = Slots()
        self.symbolic: list[tuple[int, str, Node]] = []  # (record, field, size)
        self.scratch: list[tuple[int, int | Node]] = []  # (slot, bytes)
        self._plan(builder)

    # ---- building --------------------------------------------------------------------------------
    def _plan(self, builder: type) -> None:
        records: list[tuple[str, Any]] = []
        self._collect(self.schedule.items, records)
        # slots are numbered while collecting, so the table is made afterwards
        build = builder(self.slots.count)
        held = False
        for kind, what in records:
            if kind == "phase":
                if what[1] and not held:
                    build.hold()
                    held = True
                first = build.phase([(fn, map_, tasks if isinstance(tasks, int) else 0, chunks)
                                     for fn, map_, tasks, chunks in what[0]])
                for offset, (_, _, tasks, _) in enumerate(what[0]):
                    if not isinstance(tasks, int):
                        self.symbolic.append((first + offset, "ntasks", tasks))
            elif kind == "loop":
                slot, trips = what
                record = build.begin_loop(slot, trips if isinstance(trips, int) else 0)
                if not isinstance(trips, int):
                    self.symbolic.append((record, "trips", trips))
            else:
                build.end_loop()
        self.native = build.build()
        for slot, value in self.slots.constants.items():
            self.native.slots[slot] = value
        infos = self.schedule.buffers
        self.temporaries = [n for n, b in enumerate(infos) if b.role == "temporary"]
        self.temporary_slots = np.array([self.slots.of(("buffer", n)) for n in self.temporaries], np.int64)
        self.temporary_offsets = np.array([infos[n].offset for n in self.temporaries], np.int64)
        self.variable_names = [what[1] for what in self.slots.known if what[0] == "variable"]

    def _collect(self, items: Sequence[Item], records: list[tuple[str, Any]]) -> None:
        position = 0
        while position < len(items):
            item = items[position]
            if isinstance(item, Loop):
                records.append(("loop", (self.slots.of(("variable", item.counter.arg[0])), item.trips)))
                self._collect(item.body, records)
                records.append(("end", None))
                position += 1
                continue
            together = [item]
            while position + len(together) < len(items):
                following = items[position + len(together)]
                if isinstance(following, Loop) or following.phase != item.phase:
                    break
                together.append(following)
            position += len(together)
            # the first launches of all calls form one phase, then the second ones, and so on
            launches = [self._launches(call) for call in together]
            in_place = any(call.in_place for call in together)
            for step in range(max(len(these) for these in launches)):
                phase = [these[step] for these in launches if step < len(these)]
                records.append(("phase", (phase, in_place)))

    def _launches(self, call: Call) -> list[tuple[int, list[int], int | Node, int]]:
        compiled = self.kernels[call.kernel]
        base = self.slots.constant(len(self.checks) + 1)
        for node in call.checks:
            self.checks.append(Check(len(self.checks) + 1, node))
        scratch = []
        for number, size in enumerate(compiled.scratch):
            slot = self.slots.of(("scratch", len(self.scratch), number))
            scratch.append(slot)
            self.scratch.append((slot, size))
        out = []
        for launch, address in zip(compiled.launches, compiled.addresses, strict=True):
            slots = [self._slot(call, kind, which, scratch) for kind, which in launch.params]
            tasks = launch.tasks
            if isinstance(tasks, Node):
                tasks = index.dim(index.substitute(tasks, _variables(call, tasks)))
            out.append((address, [*slots, base], tasks, launch.chunks))
        return out

    def _slot(self, call: Call, kind: str, which: int | str, scratch: list[int]) -> int:
        if kind == "buffer":
            assert isinstance(which, int)
            if which >= len(call.buffers):
                return scratch[which - len(call.buffers)]
            return self.slots.of(("buffer", call.buffers[which]))
        if kind == "scalar":
            assert isinstance(which, int)
            return self.slots.of(("scalar", call.scalars[which].arg))
        if which in call.variables:
            value = call.variables[which]
            if isinstance(value, int):
                return self.slots.constant(value)
            return self.slots.of(("size", value))
        return self.slots.of(("variable", which))

    # ---- running -----------------------------------------------------------------------------------
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
        native, slots, known = self.native, self.native.slots, self.slots.known
        for number, buffer in buffers.items():
            slot = known.get(("buffer", number))
            if slot is not None:
                slots[slot] = buffer.address
        for number, bits in enumerate(scalars):
            slot = known.get(("scalar", number))
            if slot is not None:
                slots[slot] = bits if bits < 1 << 63 else bits - (1 << 64)
        for name in self.variable_names:
            if name in variables:
                slots[known["variable", name]] = variables[name]
        for what, slot in known.items():
            if what[0] == "size":
                slots[slot] = index.evaluate(what[1], variables)
        for record, name, size in self.symbolic:
            native.records[record][name] = index.evaluate(size, variables)
        hold = self._temporary_memory(variables)
        native.flag[0] = 0
        runner.run(native)
        del hold
        return int(native.flag[0])

    def _temporary_memory(self, variables: dict[str, int]) -> list[Buffer]:
        """The arena and the scratch buffers, from the allocator for this run; their addresses are
        written to the slots."""
        hold = []
        if self.schedule.arena:
            arena = Buffer(self.schedule.arena)
            hold.append(arena)
            self.native.slots[self.temporary_slots] = self.temporary_offsets + arena.address
        for slot, size in self.scratch:
            buffer = Buffer(size if isinstance(size, int) else index.evaluate(size, variables))
            hold.append(buffer)
            self.native.slots[slot] = buffer.address
        return hold


def _variables(call: Call, size: Node) -> dict[Node, int | Node]:
    """The variables in a size to which the call itself gives a value."""
    return {
        node: call.variables[node.arg[0]]
        for node in toposort(size, into_args=True)
        if node.op is ops.VARIABLE and node.arg[0] in call.variables
    }


def nbytes(info: BufferInfo, variables: dict[str, int]) -> int:
    """The bytes of a buffer under these bindings."""
    total = info.dtype.itemsize
    for size in info.shape:
        total *= size if isinstance(size, int) else index.evaluate(size, variables)
    return total
