"""Kernels over the same ranges that have something in common become one kernel.

    below     a kernel that reads, element by element, only what one other kernel makes
              (a mean that a variance made, an epilogue with two results)
    siblings  kernels that do not wait for each other and load the same large buffer
              (the two sums of batch norm's gradient, the states of an optimizer)

A draft's level is the longest chain of drafts that it waits for. A draft joins another of its own
level, or the one draft of the level before that it reads; then nothing that it waits for can wait
for the other, so no circle arises, whatever else is joined.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from treadle.backend.base import Target
from treadle.ir import ops
from treadle.ir.node import Node
from treadle.schedule.decide import Decider
from treadle.schedule.demand import Demand, Draft, Value
from treadle.schedule.movement import Position
from treadle.schedule.plan import Reason

Load = tuple[Node, Position]


def merge_siblings(decided: Decider, target: Target) -> None:
    """Join drafts of `decided`, and take out stores that nobody reads any more. Afterwards its
    drafts are such that, from the last to the first, each comes after what it waits for."""
    _Merger(decided, target).run()


def makers_first(drafts: Sequence[Draft]) -> list[Draft]:
    """The drafts in an order in which each comes after what it waits for, else as they are."""
    order: list[Draft] = []
    done: set[Draft] = set()
    stack = list(reversed(drafts))
    while stack:
        draft = stack[-1]
        if draft in done:
            stack.pop()
            continue
        pending = [maker for maker in draft.makers() if maker not in done]
        if pending:
            stack.extend(pending)
            continue
        stack.pop()
        done.add(draft)
        order.append(draft)
    return order


class _Merger:
    def __init__(self, decided: Decider, target: Target) -> None:
        self.decided = decided
        self.target = target
        self.level: dict[Draft, int] = {}
        self.joined: set[Draft] = set()  # what became part of others
        self.groups: dict[Any, dict[Load, Draft]] = {}  # by level and ranges: who loads what
        self.readers: dict[Value, int] = {}
        self.wanted = set(decided.graph.targets)

    def run(self) -> None:
        drafts = self.decided.drafts
        for draft in drafts:
            for value in draft.reads:
                self.readers[value] = self.readers.get(value, 0) + 1
        for draft in makers_first(drafts[::-1]):
            below = set(draft.makers())
            level = 1 + max([self.level[m] for m in below], default=-1)
            host = None
            if draft.kind == "kernel" and not draft.device:
                host = self.maker_to_join(draft, below, level) or self.sibling(draft, level)
            if host is None:
                self.level[draft] = level
                self.enter(draft, level)
            else:
                self.join(draft, host)
        left = [draft for draft in reversed(drafts) if draft not in self.joined]
        drafts[:] = reversed(makers_first(left))

    # ---- finding a partner -----------------------------------------------------------------------
    def maker_to_join(self, draft: Draft, below: set[Draft], level: int) -> Draft | None:
        """The draft of the level before that makes all that this one reads from that level, each
        element where this one reads it."""
        above = [maker for maker in below if self.level[maker] == level - 1]
        if len(above) != 1 or not self.fits(draft, above[0]):
            return None
        (host,) = above
        made = {o.value: o for o in host.outputs if len(o.value.makers) == 1}
        for demand in draft.demands.values():
            if demand.stored is not None and host in demand.stored.makers:
                output = made.get(demand.stored)
                if output is None or isinstance(demand.node.dtype, tuple):
                    return None
                if demand.position != output.position or demand.valid is not None:
                    return None
                if demand.scopes != (None,):
                    return None
        return host

    def sibling(self, draft: Draft, level: int) -> Draft | None:
        """A draft of this level over the same ranges that loads a buffer as large at the same
        element."""
        if draft.contraction:
            return None
        group = self.groups.get(self.key(draft, level), {})
        if group:
            for load in self.loads(draft):
                other = group.get(load)
                if other is not None and not other.contraction and self.fits(draft, other):
                    return other
        return None

    def key(self, draft: Draft, level: int) -> Any:
        return level, tuple(draft.sizes[: draft.rank])

    def fits(self, draft: Draft, host: Draft) -> bool:
        """Whether the two can be one kernel: the same ranges by number, room, and at most one
        contraction, which shares its kernel with no loops over rows."""
        shorter, longer = sorted((draft.sizes, host.sizes), key=len)
        return (
            host.kind == "kernel"
            and not (host.device or host.apart)
            and draft.rank == host.rank
            and longer[: len(shorter)] == shorter
            and not (draft.contraction and (host.contraction or host.chains))
            and not (host.contraction and draft.chains)
            and draft.open + host.open + len(draft.outputs) + len(host.outputs)
            <= self.target.buffers
            and draft.operations + host.operations <= self.target.ops
        )

    def loads(self, draft: Draft) -> list[Load]:
        """The elements that a draft reads of buffers that have one for each of its own."""
        whole = draft.count(draft.own)
        return [
            (demand.node, demand.position)
            for demand in draft.demands.values()
            if demand.position is not None
            and (demand.stored is not None or demand.node.op in (ops.BUFFER, ops.PLACEHOLDER))
            and not isinstance(demand.node.dtype, tuple)
            and self.decided.numel(demand.node.shape) >= whole
            and whole > 1
        ]

    # ---- joining ---------------------------------------------------------------------------------
    def enter(self, draft: Draft, level: int) -> None:
        """Let later drafts find this one by what it loads."""
        if draft.kind == "kernel" and not draft.device and not draft.contraction:
            loads = self.loads(draft)
            if loads:
                group = self.groups.setdefault(self.key(draft, level), {})
                for load in loads:
                    group.setdefault(load, draft)

    def join(self, draft: Draft, host: Draft) -> None:
        """Make the draft's stores stores of the host, which computes what they read of it."""
        own = {o.value: o.demand for o in host.outputs if len(o.value.makers) == 1}
        for demand in draft.demands.values():
            source = None if demand.stored is None else own.get(demand.stored)
            if source is not None and demand is not source:
                self.forward(demand, source, host)
        text = "{} ranges and {} of its loads are those of another kernel"
        shared = len(set(self.loads(draft)) & set(self.loads(host)))
        host.reasons += draft.reasons
        host.reasons.append(Reason("one kernel", text, (draft.rank, shared), draft.node))
        host.outputs += draft.outputs
        host.sizes = max(host.sizes, draft.sizes, key=len)
        host.chains += draft.chains
        host.contraction |= draft.contraction
        host.operations += draft.operations
        host.open += draft.open
        for value in draft.reads:
            if value in host.reads:
                self.readers[value] -= 1
            elif self.readers[value] > 0:
                host.reads[value] = None
        for key, demand in draft.demands.items():
            host.demands.setdefault(key, demand)
        for output in draft.outputs:  # several may be parts of one value
            makers = output.value.makers
            makers[:] = [host if maker is draft else maker for maker in makers]
        self.joined.add(draft)
        self.enter(host, self.level[host])

    def forward(self, demand: Demand, source: Demand, host: Draft) -> None:
        """The demand is answered by a value of its own kernel; if it was the last reader of that
        value's memory, and nobody outside wants it, the value is stored no more."""
        value = demand.stored
        assert value is not None
        demand.stored, demand.same = None, source
        demand.draft.reads.pop(value, None)
        self.readers[value] -= 1
        if self.readers[value] == 0 and value.node not in self.wanted:
            host.outputs = [output for output in host.outputs if output.value is not value]
            self.decided.values.pop(value.node)
