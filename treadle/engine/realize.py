"""Realize: from pending cells to values in memory.

The way of a value, with the module that knows each part:

    cells    -> jobs    -> normal form -> Program     -> one native call -> leaves
    cell.py     jobs.py    normal.py      programs.py    program.py         storage.py
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence

import numpy as np

from treadle.collector import without_collector
from treadle.engine import device as devices
from treadle.engine import failure, passed, programs, trace
from treadle.engine.cell import Cell
from treadle.engine.jobs import Job, gather, settled
from treadle.engine.normal import Normal, normalise
from treadle.engine.program import Program, nbytes
from treadle.engine.storage import Buffer, memory
from treadle.ir.node import Node, toposort

LOCK = threading.RLock()


def realize(cells: Iterable[Cell]) -> None:
    """Compute every cell given that is pending. Afterwards each holds a leaf in memory. If a
    Program fails, no cell has a new value."""
    with LOCK:
        if trace.current() is not None:
            return  # what a traced function computes is run when it is replayed
        clock = memory.clock
        jobs, bindings = jobs_of(cells)
        for level in sorted({job.level for job in jobs}):
            run([job for job in jobs if job.level == level], bindings)
        passed.mark([job.value for job in jobs])
        for job in jobs:
            job.finish(clock)


@without_collector
def jobs_of(cells: Iterable[Cell]) -> tuple[list[Job], dict[str, int]]:
    """What computing the cells takes, and the values of the Variables in it; no jobs if every value
    is in memory."""
    pending = [cell for cell in cells if not settled(cell)]
    return gather(pending) if pending else ([], {})


def run(jobs: Sequence[Job], bindings: dict[str, int]) -> None:
    """Run the jobs of one round: those of each device as one Program, and the transfers."""
    by_device: dict[str, list[Job]] = {}
    for job in jobs:
        if job.transfer:
            transfer(job)
        else:
            by_device.setdefault(job.device, []).append(job)
    for name, group in by_device.items():
        run_on(name, group, bindings)


def transfer(job: Job) -> None:
    """Copy the bytes of a leaf to one on another device: all of them are the host's memory."""
    assert job.leaf is not None
    source = memory[job.node]
    memory.fill(job.leaf, source.copy())


def run_on(device: str, jobs: list[Job], bindings: dict[str, int]) -> None:
    """Schedule (or find) and run the Program of these jobs, then hand out its results."""
    program, normal = program_of(device, jobs)
    schedule = program.schedule
    buffers = {
        n: memory[leaf]
        for n, (leaf, info) in enumerate(zip(normal.leaves, schedule.buffers, strict=False))
        if info.role == "input"  # simplified graphs may read fewer leaves
    }
    results: list[Buffer] = []
    for n in range(len(jobs)):
        number = schedule.outputs[n]
        if number not in buffers:
            buffers[number] = Buffer(nbytes(schedule.buffers[number], bindings))
        results.append(buffers[number])
    scalars = [node.arg for node in normal.scalars]
    flag = program.run(devices.runner(device), buffers, scalars, bindings)
    if flag:
        failed = program.checks[min(flag, len(program.checks)) - 1]
        raise out_of_range(failed, normal, jobs, bindings)
    taken: set[int] = set()
    for job, buffer in zip(jobs, results, strict=True):
        if id(buffer) in taken:  # equal values: a write to one must not show in the other
            buffer = buffer.copy()
        taken.add(id(buffer))
        job.buffer = buffer
        if job.target is not None and buffer is memory[job.target]:
            memory.overwritten(job.target)
        if job.leaf is not None:
            memory.fill(job.leaf, buffer)


def out_of_range(
    failed: Node, normal: Normal, jobs: Sequence[Job], bindings: dict[str, int]
) -> IndexError:
    """The error for a check that failed. A cell whose assigned value needs what failed goes back to
    the value that it has in memory."""
    own = failure.find(failed, normal, [job.node for job in jobs])

    def compute(node: Node) -> np.ndarray:
        cell = Cell(node, bindings)
        realize([cell])
        return memory[cell.node].array(node.dtype, (-1,)).copy()

    message = failure.describe(failed, own, bindings, compute)
    for job in jobs:
        if job.cell is not None and job.target is not None and own in toposort(job.node):
            job.cell.hold(job.target)
    return IndexError(message)


@without_collector
def program_of(device: str, jobs: Sequence[Job]) -> tuple[Program, Normal]:
    """The Program that computes these jobs, and the normal form that says what its numbers mean."""
    normal = normalise([job.node for job in jobs])
    numbers = {leaf: n for n, leaf in enumerate(normal.leaves)}
    assigns = {
        n: numbers[job.target]
        for n, job in enumerate(jobs)
        if job.in_place and job.target in numbers and not memory[job.target].lent
    }
    return programs.find(device, normal, assigns), normal


def prepare(cells: Iterable[Cell]) -> list[Program]:
    """The Programs that `realize` would run, in order; nothing is run."""
    with LOCK:
        groups: dict[tuple[int, str], list[Job]] = {}
        for job in jobs_of(cells)[0]:
            if not job.transfer:
                groups.setdefault((job.level, job.device), []).append(job)
        return [program_of(device, groups[level, device])[0] for level, device in sorted(groups)]
