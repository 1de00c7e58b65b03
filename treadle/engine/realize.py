"""Realize: from pending cells to values in memory.

    cells -> roots -> normal form -> (schedule cache) -> Program -> one native call -> leaves

Three things decide what is computed together. A deferred leaf that the graph reads is computed
first. A cell that is assigned takes over the memory of the leaf it held; then every live cell that
reads this leaf joins the batch, because the old value is about to go. And an array on another device
is computed there first, then copied.
"""

from __future__ import annotations

import threading
import weakref
import sys
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import Any

from treadle import config
from treadle.engine import device as devices
from treadle.engine.cell import Cell, bind, dependants, readers
from treadle.engine.compile import Compiler
from treadle.engine.history import carries_gradient, remember
from treadle.engine.normal import Normal, normalise
from treadle.engine.program import Program, nbytes
from treadle.engine.storage import Buffer, memory
from treadle.graph import simplify
from treadle.ir import ops
from treadle.ir.node import Node, toposort
from treadle.log import emit, wanted
from treadle.schedule.schedule import schedule as make_schedule

LOCK = threading.RLock()
PROGRAMS = 512  # kept programs; the one used longest ago goes first

programs: OrderedDict[Any, Program] = OrderedDict()
compilers: dict[str, Compiler] = {}
places: weakref.WeakKeyDictionary[Node, str] = weakref.WeakKeyDictionary()  # of indexing nodes


class Job:
    """One value to compute. node: the value. target: the leaf whose memory it may take over. cell:
    who asked for it; leaf: the deferred leaf that it fills (one of the two is None). level: in which
    round it runs."""

    __slots__ = ("node", "target", "cell", "leaf", "leaves", "level", "buffer", "in_place")

    def __init__(self, node: Node, target: Node | None, cell: Cell | None, leaf: Node | None) -> None:
        self.node = node
        self.target = target
        self.cell = cell
        self.leaf = leaf
        self.leaves: list[Node] = []  # those below `node`
        self.level = 0
        self.buffer: Buffer | None = None
        self.in_place = target is not None

    def finish(self) -> None:
        """The value is in `buffer` and every job has run: give it to the cell."""
        assert self.buffer is not None
        if self.cell is None:
            return
        if self.target is not None:
            memory.fill(self.target, self.buffer)
            memory.overwritten(self.target)
            self.cell.node, self.cell.target = self.target, None
            return
        device = device_of(self.node)
        self.cell.node = memory.leaf(self.node.dtype, self.node.shape, device, self.buffer)
        if self.node.op is not ops.STOP and carries_gradient(self.leaves):
            remember(self.cell.node, self.node, self.leaves)


def realize(cells: Iterable[Cell]) -> None:
    """Compute every cell given that is pending, in one Program (and one before it for deferred
    leaves that it needs). Afterwards each cell holds a leaf in memory. If the last Program fails, no
    cell has changed."""
    with LOCK:
        wanted_cells = [cell for cell in cells if not settled(cell)]
        if not wanted_cells:
            return
        jobs, bindings = gather(wanted_cells)
        for level in range(max(job.level for job in jobs) + 1):
            run([job for job in jobs if job.level == level], bindings)
        for job in jobs:
            job.finish()


def settled(cell: Cell) -> bool:
    """Whether the cell's value is in memory."""
    return cell.is_realized and not memory.is_deferred(cell.node)


def gather(cells: Sequence[Cell]) -> tuple[list[Job], dict[str, int]]:
    """The jobs that computing the cells takes: themselves, the deferred leaves they read, and the
    live readers of every leaf that is overwritten; with the union of their bindings."""
    jobs: list[Job] = []
    seen: set[Any] = set()
    bindings: dict[str, int] = {}
    new: list[Job] = []

    def add_cell(cell: Cell) -> None:
        nonlocal bindings
        node = cell.node
        bindings = bind(bindings, cell.bindings)
        if node.op is ops.BUFFER and memory.is_deferred(node):
            add_leaf(node)
        elif id(cell) not in seen:
            seen.add(id(cell))
            new.append(Job(node, cell.target, cell, None))

    def add_leaf(leaf: Node) -> None:
        if leaf not in seen:
            seen.add(leaf)
            value, target = memory.deferred[leaf.arg[0]]
            new.append(Job(value, target, None, leaf))

    for cell in cells:
        add_cell(cell)
    while new:
        found, new = new, []
        jobs.extend(found)
        for node in toposort([job.node for job in found]):
            if node.op is ops.BUFFER and memory.is_deferred(node):
                add_leaf(node)
        targets = [job.target for job in found if job.target is not None]
        if targets:
            for cell in readers(targets, seen):
                add_cell(cell)
            values = {leaf: memory.deferred[slot][0] for slot, leaf in memory.deferred_leaves()}
            for leaf in dependants(values, targets):
                add_leaf(leaf)
    order_levels(jobs)
    return jobs, bindings


def order_levels(jobs: Sequence[Job]) -> None:
    """A job runs in a round after the deferred leaves it reads. It takes over its target's memory
    only if nobody reads the target in a later round."""
    fills = {job.leaf: job for job in jobs if job.leaf is not None}
    for job in jobs:
        job.leaves = [node for node in toposort(job.node) if node.op is ops.BUFFER]
        free = job.node.op is ops.STOP or not carries_gradient(job.leaves)
        if job.cell is not None and job.target is not None and not free:
            job.target = job.cell.target = None  # the old value may be asked for by a derivative
    if fills:
        changed = True
        while changed:  # as many times as there are rounds
            changed = False
            for job in jobs:
                level = max((fills[n].level + 1 for n in job.leaves if n in fills), default=0)
                if level > job.level:
                    job.level, changed = level, True
        awaited = {leaf for job in jobs for leaf in job.leaves}
        last = max(job.level for job in jobs)
        for job in jobs:
            if job.leaf not in awaited:
                job.level = last  # nobody waits for it: the last program is the same every time
    last_read: dict[Node, int] = {}
    for job in jobs:
        for leaf in job.leaves:
            last_read[leaf] = max(last_read.get(leaf, 0), job.level)
    for job in jobs:
        if job.target is not None:
            job.in_place = last_read.get(job.target, 0) <= job.level


def run(jobs: list[Job], bindings: dict[str, int]) -> None:
    """Run the jobs of each device as one Program."""
    by_device: dict[str, list[Job]] = {}
    for job in jobs:
        by_device.setdefault(device_of(job.node), []).append(job)
    for name, group in by_device.items():
        run_on(name, group, bindings)


def device_of(root: Node) -> str:
    """The device on which a graph runs: that of its first leaf, or the default."""
    for node in toposort(root):
        if node.op is ops.BUFFER:
            return str(node.arg[2])
    return devices.canonical(None)


def run_on(device: str, jobs: list[Job], bindings: dict[str, int]) -> None:
    """Schedule (or find) and run the Program of these jobs, then hand out its results."""
    program, normal = program_of(device, jobs)
    schedule = program.schedule
    buffers = {n: memory[leaf] for n, leaf in enumerate(normal.leaves)}
    results: list[Buffer] = []
    for n in range(len(jobs)):
        number = schedule.outputs[n]
        if number not in buffers:
            buffers[number] = Buffer(nbytes(schedule.buffers[number], bindings))
        results.append(buffers[number])
    scalars = [node.arg for node in normal.scalars]
    flag = program.run(devices.runner(device), buffers, scalars, bindings)
    if flag:
        raise IndexError(describe(program, flag, normal, jobs))
    for job, buffer in zip(jobs, results, strict=True):
        job.buffer = buffer
        if job.target is not None and buffer is memory[job.target]:
            memory.overwritten(job.target)
        if job.leaf is not None:
            memory.fill(job.leaf, buffer)


def program_of(device: str, jobs: Sequence[Job]) -> tuple[Program, Normal]:
    """The Program that computes these jobs, and the normal form that says what its numbers mean."""
    normal = normalise([job.node for job in jobs])
    numbers = {leaf: n for n, leaf in enumerate(normal.leaves)}
    assigns = {
        n: numbers[job.target]
        for n, job in enumerate(jobs)
        if job.in_place and job.target in numbers and not memory[job.target].lent
    }
    return find(device, normal, assigns), normal


def prepare(cells: Iterable[Cell]) -> list[Program]:
    """The Programs that `realize` would run, in order; nothing is run."""
    with LOCK:
        wanted_cells = [cell for cell in cells if not settled(cell)]
        if not wanted_cells:
            return []
        jobs, _ = gather(wanted_cells)
        groups: dict[tuple[int, str], list[Job]] = {}
        for job in jobs:
            groups.setdefault((job.level, device_of(job.node)), []).append(job)
        return [program_of(device, groups[level, device])[0] for level, device in sorted(groups)]


def find(device: str, normal: Normal, assigns: dict[int, int]) -> Program:
    """The Program for a normal graph: from the cache, or scheduled and compiled now."""
    knobs = tuple(knob.value for knob in config.KNOBS.values() if knob.changes_code)
    key = (device, normal.roots, tuple(assigns.items()), knobs)
    program = programs.get(key)
    if program is not None:
        programs.move_to_end(key)
        return program
    program = build(device, normal.roots, assigns)
    programs[key] = program
    if len(programs) > PROGRAMS:
        programs.popitem(last=False)
    return program


def build(device: str, roots: tuple[Node, ...], assigns: dict[int, int]) -> Program:
    """Simplify, schedule, compile."""
    backend = devices.backend(device)
    if device not in compilers:
        compilers[device] = Compiler(backend, devices.PLUGINS[device])
    simple = simplify.simplify(roots)
    schedule = make_schedule(simple, assigns, backend.target)
    if wanted("schedule"):
        emit("schedule", schedule=schedule, roots=simple, device=device)
    return Program(schedule, backend, compilers[device], devices.runner(device).builder)


def describe(program: Program, flag: int, normal: Normal, jobs: Sequence[Job]) -> str:
    """The message for a failed check: the operation and the user's line."""
    node = program.checks[min(flag, len(program.checks)) - 1]
    size = node.src[0].shape[node.arg if isinstance(node.arg, int) else node.arg[0]]
    # the original graph and its normal form have the same order
    originals = dict(zip(toposort(normal.roots), toposort([job.node for job in jobs]), strict=False))
    place = places.get(originals.get(node, node))
    where = f", at {place}" if place else ""
    return f"index out of range for an axis of size {size} in {node.op.name}{where}"


def note(result: Node) -> None:
    """Remember the user's line for the indexing nodes just below `result`, for error messages."""
    node = result
    for _ in range(8):
        if node.op in (ops.GATHER, ops.SCATTER):
            places[node] = user_line()
            return
        if not node.src:
            return
        node = node.src[0]


def user_line() -> str:
    """The innermost line on the stack that is not inside treadle."""
    frame: Any = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").split(".")[0] == "treadle":
        frame = frame.f_back
    return "" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"
