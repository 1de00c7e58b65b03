"""What is computed together: from the cells that are asked for to a list of jobs, in rounds.

Two things add to the cells that were named. A deferred leaf that their graphs read is computed in
an earlier round. A cell that is assigned takes over the memory of the leaf it held; then every live
cell that reads this leaf joins, because the old value is about to go. (And `passed.py` adds what is
computed a second time.)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from treadle.engine import device as devices
from treadle.engine import inside, passed
from treadle.engine.cell import Cell, bind, dependants, readers
from treadle.engine.history import carries_gradient, remember
from treadle.engine.storage import Buffer, memory
from treadle.graph.body import substitute
from treadle.graph.call import inline, may_call
from treadle.ir import ops
from treadle.ir.node import Node, toposort
from treadle.ir.node import remember as remember_on


class Job:
    """One value to compute.

    value: its graph; node: the same, with the bodies of CALLs in their places, and cut at copies
    between devices (cut: whether it is). target: the leaf whose memory it may take over. cell: who
    asked for it; leaf: the deferred leaf that it fills (one of the two is None). level: in which
    round it runs. reads: the leaves below it, a bit each. tracked: whether the value may be
    differentiated. device: where it runs, that of its leaves. transfer: the node is a leaf on
    another device, whose bytes are copied.
    """

    __slots__ = (
        "buffer", "cell", "cut", "device", "in_place", "leaf", "level", "node", "reads", "target",
        "tracked", "transfer", "value",
    )  # fmt: skip

    def __init__(
        self, node: Node, target: Node | None, cell: Cell | None, leaf: Node | None
    ) -> None:
        self.value = self.node = node
        self.target = target
        self.cell = cell
        self.leaf = leaf
        self.reads = 0
        self.tracked = False
        self.device = ""
        self.level = 0
        self.buffer: Buffer | None = None
        self.in_place = target is not None
        self.transfer = False
        self.cut = False

    def finish(self, clock: int) -> None:
        """The value is in `buffer` and every job has run: give it to the cell. clock: the memory's
        when the first job began."""
        if self.cell is None:
            return
        assert self.buffer is not None
        if self.target is not None:
            if memory.buffers.get(self.target.arg[0]) is not self.buffer:  # else that is noted
                memory.fill(self.target, self.buffer)
                memory.overwritten(self.target)
            self.cell.hold(self.target)
            return
        self.cell.hold(memory.leaf(self.node.dtype, self.node.shape, self.device, self.buffer))
        if self.tracked:
            remember(self.cell.node, self.value, clock)


def settled(cell: Cell) -> bool:
    """Whether the cell's value is in memory."""
    return cell.is_realized and not memory.is_deferred(cell.node)


def gather(cells: Sequence[Cell]) -> tuple[list[Job], dict[str, int]]:
    """The jobs that computing the cells takes: themselves, the deferred leaves they read, and the
    live readers of every leaf that is overwritten; with the union of their bindings."""
    jobs: list[Job] = []
    order: list[Node] = []  # of the graphs of the jobs; nodes that several batches share recur
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
        below = toposort([job.node for job in found])
        for cell in passed.again(below, bindings):
            add_cell(cell)
        if may_call(below):
            for job, node in zip(found, inline([job.node for job in found]), strict=True):
                job.node = node
            below = toposort([job.node for job in found])
        copied = split_copies(found, below)
        if copied:
            new += copied
            below = toposort([job.node for job in found])
        jobs += found
        order += below
        for node in below:
            if node.op is ops.BUFFER and memory.is_deferred(node):
                add_leaf(node)
        targets = [job.target for job in found if job.target is not None]
        if targets:
            for cell in readers(targets, seen):
                add_cell(cell)
            values = {leaf: memory.deferred[slot][0] for slot, leaf in memory.deferred_leaves()}
            for leaf in dependants(values, targets):
                add_leaf(leaf)
    order_levels(jobs, order)
    return jobs, bindings


def split_copies(jobs: Sequence[Job], order: Sequence[Node]) -> list[Job]:
    """Cut the graphs, whose nodes are `order`, at copies between devices: a copy becomes a leaf.
    Returns the jobs that fill these leaves: what is copied, computed where it is, and the transfer
    of its bytes."""
    more: list[Job] = []
    leaves: dict[Node, Node] = {}
    for node in order:
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
            job.cut = job.node is not node
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
        if node.op is ops.PLACEHOLDER and (place := inside.device_of_parameter(node)):
            return place
        if node not in seen:
            seen.add(node)
            stack.extend(reversed(node.src))
            if node.op is ops.CALL:
                stack.append(node.arg[0])
    return ""


def number_leaves(jobs: Sequence[Job], order: Sequence[Node]) -> dict[Node, int]:
    """A bit for each leaf, and the leaves that each job reads. order: the nodes of all graphs,
    sources before users."""
    bits: dict[Node, int] = {}
    masks: dict[Node, int] = {}
    for node in order:
        if node in masks:
            continue
        if node.op is ops.BUFFER:
            masks[node] = bits[node] = 1 << len(bits)
        elif node.op is ops.PLACEHOLDER:
            raise inside.refusal(node)
        else:
            mask = 0
            for source in node.src:
                mask |= masks[source]
            masks[node] = mask
    for job in jobs:
        job.reads = masks[job.node]
    return bits


def set_devices(jobs: Sequence[Job], bits: dict[Node, int]) -> None:
    """Every job runs where its leaves are. ValueError if they are on several devices."""
    masks: dict[str, int] = {}
    for leaf, bit in bits.items():
        masks[leaf.arg[2]] = masks.get(leaf.arg[2], 0) | bit
    default = devices.canonical(None)
    for job in jobs:
        places = [device for device, mask in masks.items() if job.reads & mask]
        if len(places) > 1:
            raise ValueError(
                f"tensors on the devices {' and '.join(sorted(places))} meet in one operation: "
                f'move one of them, for example x.to("{min(places)}")'
            )
        job.device = places[0] if places else default


def set_tracked(jobs: Sequence[Job], bits: dict[Node, int]) -> None:
    """A job is tracked if it reads a leaf whose gradient somebody may want. Such a value does not
    overwrite the old one, which a derivative may ask for."""
    wanted = 0
    for leaf, bit in bits.items():
        if carries_gradient([leaf]):
            wanted |= bit
    for job in jobs:
        if job.cell is None or job.value.op is ops.STOP:
            continue
        if job.cut:  # the leaves of what was copied count too
            below = [node for node in toposort(job.value) if node.op is ops.BUFFER]
            job.tracked = carries_gradient(below)
        else:
            job.tracked = bool(job.reads & wanted)
        if job.tracked and job.target is not None:
            job.target = job.cell.target = None


def order_levels(jobs: Sequence[Job], order: Sequence[Node]) -> None:
    """A job runs in a round after the deferred leaves it reads. It takes over its target's memory
    only if nobody reads the target in a later round."""
    bits = number_leaves(jobs, order)
    set_devices(jobs, bits)
    set_tracked(jobs, bits)
    fills = {bits[job.leaf]: job for job in jobs if job.leaf in bits}
    awaiting = [job for job in jobs if any(job.reads & bit for bit in fills)]
    changed = bool(awaiting)
    while changed:  # as many times as there are rounds
        changed = False
        for job in awaiting:
            level = max(filler.level for bit, filler in fills.items() if job.reads & bit) + 1
            if level > job.level:
                job.level, changed = level, True
    last = max(job.level for job in jobs)
    for job in jobs:
        if job.leaf not in bits:
            job.level = last  # nobody waits for it: the last program is the same every time
    read_later = [0] * (last + 2)  # by level: what is read in rounds after it
    for job in jobs:
        read_later[job.level] |= job.reads
    for level in range(last, -1, -1):
        read_later[level] |= read_later[level + 1]
    own = {job.leaf for job in jobs if job.leaf is not None}
    for job in jobs:
        if job.target is not None and job.target not in own and memory.is_deferred(job.target):
            job.target = None  # it was never computed, and nobody wants it any more
        if job.target is not None:
            job.in_place = not read_later[job.level + 1] & bits.get(job.target, 0)
