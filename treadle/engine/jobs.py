"""What is computed together: from the cells that are asked for to a list of jobs, in rounds.

Two things add to the cells that were named. A deferred leaf that their graphs read is computed in an
earlier round. A cell that is assigned takes over the memory of the leaf it held; then every live
cell that reads this leaf joins, because the old value is about to go.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from treadle.engine import device as devices
from treadle.engine.cell import Cell, bind, dependants, readers
from treadle.engine.history import carries_gradient, remember
from treadle.engine.storage import Buffer, memory
from treadle.ir import ops
from treadle.ir.node import Node, toposort


class Job:
    """One value to compute. node: the value. target: the leaf whose memory it may take over. cell:
    who asked for it; leaf: the deferred leaf that it fills (one of the two is None). level: in which
    round it runs. leaves: what it reads. device: where it runs, that of its first leaf."""

    __slots__ = ("node", "target", "cell", "leaf", "leaves", "device", "level", "buffer", "in_place")

    def __init__(self, node: Node, target: Node | None, cell: Cell | None, leaf: Node | None) -> None:
        self.node = node
        self.target = target
        self.cell = cell
        self.leaf = leaf
        self.leaves: list[Node] = []
        self.device = ""
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
        self.cell.node = memory.leaf(self.node.dtype, self.node.shape, self.device, self.buffer)
        if self.node.op is not ops.STOP and carries_gradient(self.leaves):
            remember(self.cell.node, self.node, self.leaves)


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


def find_leaves(jobs: Sequence[Job]) -> None:
    """Set the leaves and the device of every job. One visit a node, with a bit for each leaf."""
    leaves: list[Node] = []
    masks: dict[Node, int] = {}
    for node in toposort([job.node for job in jobs]):
        if node.op is ops.BUFFER:
            masks[node] = 1 << len(leaves)
            leaves.append(node)
        else:
            mask = 0
            for source in node.src:
                mask |= masks[source]
            masks[node] = mask
    default = devices.canonical(None)
    for job in jobs:
        mask = masks[job.node]
        while mask:
            low = mask & -mask
            job.leaves.append(leaves[low.bit_length() - 1])
            mask ^= low
        job.device = str(job.leaves[0].arg[2]) if job.leaves else default


def order_levels(jobs: Sequence[Job]) -> None:
    """A job runs in a round after the deferred leaves it reads. It takes over its target's memory
    only if nobody reads the target in a later round."""
    fills = {job.leaf: job for job in jobs if job.leaf is not None}
    find_leaves(jobs)
    for job in jobs:
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
        if job.target is not None and job.target not in fills and memory.is_deferred(job.target):
            job.target = None  # it was never computed, and nobody wants it any more
        if job.target is not None:
            job.in_place = last_read.get(job.target, 0) <= job.level
