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
from treadle.graph.scan import substitute
from treadle.ir import ops
from treadle.ir.node import Node, toposort
from treadle.ir.node import remember as remember_on


class Job:
    """One value to compute.

    value: its graph; node: the same, cut at copies between devices. target: the leaf whose memory it
    may take over. cell: who asked for it; leaf: the deferred leaf that it fills (one of the two is
    None). level: in which round it runs. leaves: what it reads. device: where it runs, that of its
    leaves. transfer: the node is a leaf on another device, whose bytes are copied.
    """

    __slots__ = (
        "value", "node", "target", "cell", "leaf", "leaves", "device", "level", "buffer", "in_place", "transfer",
    )  # fmt: skip

    def __init__(self, node: Node, target: Node | None, cell: Cell | None, leaf: Node | None) -> None:
        self.value = self.node = node
        self.target = target
        self.cell = cell
        self.leaf = leaf
        self.leaves: list[Node] = []
        self.device = ""
        self.level = 0
        self.buffer: Buffer | None = None
        self.in_place = target is not None
        self.transfer = False

    def sources(self) -> list[Node]:
        """The leaves of the whole graph."""
        if self.node is self.value:
            return self.leaves
        return [node for node in toposort(self.value) if node.op is ops.BUFFER]

    def carries_gradient(self) -> bool:
        """Whether the value may be differentiated."""
        return self.value.op is not ops.STOP and carries_gradient(self.sources())

    def finish(self) -> None:
        """The value is in `buffer` and every job has run: give it to the cell."""
        if self.cell is None:
            return
        assert self.buffer is not None
        if self.target is not None:
            memory.fill(self.target, self.buffer)
            memory.overwritten(self.target)
            self.cell.node, self.cell.target = self.target, None
            return
        self.cell.node = memory.leaf(self.node.dtype, self.node.shape, self.device, self.buffer)
        if self.carries_gradient():
            remember(self.cell.node, self.value, self.sources())


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
        new += split_copies(found)
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


def split_copies(jobs: Sequence[Job]) -> list[Job]:
    """Cut the graphs at copies between devices: a copy becomes a leaf. Returns the jobs that fill
    these leaves: what is copied, computed where it is, and the transfer of its bytes."""
    more: list[Job] = []
    leaves: dict[Node, Node] = {}
    for node in toposort([job.node for job in jobs]):
        if node.op is not ops.COPY:
            continue
        (source,) = substitute([node.src[0]], leaves)
        if source.op is not ops.BUFFER:
            filled = memory.leaf(source.dtype, source.shape, device_of(source))
            more.append(Job(source, None, None, filled))
            source = filled
        leaves[node] = memory.leaf(node.dtype, node.shape, node.arg)
        more.append(Job(source, None, None, leaves[node]))
        more[-1].transfer = True
    if leaves:
        for job, node in zip(jobs, substitute([job.node for job in jobs], leaves), strict=True):
            job.node = node
    return more


def device_of(root: Node) -> str:
    """The device on which a graph is computed: that of the first leaf or copy in it, or the
    default where there is none."""
    return remember_on(root, "device", _find_device) or devices.canonical(None)


def _find_device(root: Node) -> str:
    seen = set()
    stack = [root]
    while stack:
        node = stack.pop()
        if node.op is ops.BUFFER:
            return str(node.arg[2])
        if node.op is ops.COPY:
            return str(node.arg)
        if node not in seen:
            seen.add(node)
            stack.extend(reversed(node.src))
    return ""


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
        places = sorted({str(leaf.arg[2]) for leaf in job.leaves})
        if len(places) > 1:
            raise ValueError(
                f"tensors on the devices {' and '.join(places)} meet in one operation: move one of them, "
                f'for example x.to("{places[0]}")'
            )
        job.device = places[0] if places else default


def order_levels(jobs: Sequence[Job]) -> None:
    """A job runs in a round after the deferred leaves it reads. It takes over its target's memory
    only if nobody reads the target in a later round."""
    fills = {job.leaf: job for job in jobs if job.leaf is not None}
    find_leaves(jobs)
    for job in jobs:
        if job.cell is not None and job.target is not None and job.carries_gradient():
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
