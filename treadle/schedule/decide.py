"""What is stored in memory: legality rules and one cost function, each decision with its reason.

Nodes are visited once, users before sources, so that all demands for a node are known when it is
decided. Either the node is fused (every draft that needs it computes it, and its demands go on to
its sources) or it is stored, by a draft of its own or by one that computes each of its elements
once anyway (its *host*). What must be stored is decided by rules; what may be is decided by
`cost.recompute`. That function sees a value's whole cone, but not which values inside the cone will
be stored further on. So a second pass looks again, sources first, at what was stored for its cost
alone, and if some of it is cheap after all the first pass is done once more without.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection

from treadle.backend.base import Target
from treadle.ir import ops
from treadle.ir.node import Node
from treadle.ir.ops import Op
from treadle.schedule import cost, custom
from treadle.schedule.chain import find_chains
from treadle.schedule.demand import Demand, Draft, Output, Value, covers, free_ranges
from treadle.schedule.graph import FREE, LEAVES, TRANSPARENT, Graph
from treadle.schedule.movement import PURE, Movements, is_partition
from treadle.schedule.plan import Reason
from treadle.schedule.propagate import STORES
from treadle.schedule.rules import Rules

_APART = ("limit", "contiguous", "copy")  # rules that ask for a kernel of the value's own
SEARCHED = 64  # drafts that the search for a cycle visits before it gives up


class Decider(Rules):
    """One pass over a graph. Afterwards: `drafts` (users before sources) and `values`."""

    def __init__(
        self, graph: Graph, target: Target, movements: Movements, sizes: cost.Sizes
    ) -> None:
        super().__init__(graph, target, movements, sizes)
        self.inherited: dict[Node, Value] = {}  # base of an update that writes into its memory

    def run(self) -> None:
        """Decide every node."""
        for node in self.graph.targets:
            self.force(node, "root", "its {} elements are asked for", self.numel(node.shape))
        for node in reversed(self.graph.order):
            demands = self.demands.get(node)
            if demands is not None or node in self.forced:
                _VISIT.get(node.op, Decider.visit_elementwise)(self, node, demands or [])

    # ---- storing -------------------------------------------------------------------------------
    def store(self, node: Node, demands: list[Demand], reason: Reason) -> None:
        """Put the node's value in memory: by a host among its readers, or by a draft of its own."""
        top, demands = self.last_form(node, demands)
        self.forms[node] = top
        value = self.values[top] = self.inherited.get(top) or Value(top)
        if 0 in top.shape:
            self.read(demands, value, None)
            return
        host = None if reason.rule in _APART else self.find_host(top, node, demands)
        if host is None:
            draft = self.new_draft(top, top.shape)
            draft.apart = reason.rule == "contiguous"
            host = self.push(top, draft, draft.position, None, STORES)
        draft = host.draft
        value.makers.insert(0, draft)
        draft.reasons.append(reason)
        for component in sorted(self.components.get(top, (0,))):
            draft.outputs.append(Output(host, value, component, host.position or ()))
        self.read(demands, value, host)
        while host.node is not node:
            if not host.sources:
                self.fuse(host)
            host = host.sources[0]
        if node.op is ops.REDUCE and not is_partition(node):
            self.admit(host)
        self.fuse(host)

    def last_form(self, node: Node, demands: list[Demand]) -> tuple[Node, list[Demand]]:
        """If all that reads a value are reshapes of it, one of the other, the last of them: stored
        in that shape it is the same memory, and what reads it finds it as it needs it."""
        top = node
        while self.graph.uses[top] == 1 and top not in self.forced:
            user = self.graph.user.get(top)
            if user is not None and user.op is ops.UNWINDOW and self.graph.uses[user] == 1:
                user = self.graph.user.get(user)  # a partition has the elements below its UNWINDOW
            if user is None or not (user.op in TRANSPARENT or is_partition(user)):
                break
            same = self.numel(user.shape) == self.numel(top.shape)
            if not same or user in self.values or user not in self.demands:
                break
            top = user
        return top, demands if top is node else self.demands[top]

    def new_draft(self, node: Node, shape: tuple[object, ...], kind: str = "kernel") -> Draft:
        draft = Draft(node, shape, kind)
        self.drafts.append(draft)
        return draft

    def read(self, demands: list[Demand], value: Value, host: Demand | None) -> None:
        """Every demand but the host's is answered by the value's memory."""
        for demand in demands:
            if demand is not host:
                demand.stored = value
                demand.draft.reads[value] = None

    def find_host(self, top: Node, node: Node, demands: list[Demand]) -> Demand | None:
        """The demand of a draft that computes each element of the value exactly once in the loops
        of its stores, and does not wait for any other reader of it. Earliest drafts first.

        top: the form in which the value is stored (see `last_form`); node: what computes it.
        """
        readers = Counter([demand.draft for demand in demands])
        for demand in reversed(demands):
            draft = demand.draft
            if (
                draft.kind == "kernel"
                and demand.position is not None
                and demand.valid is None
                and None in demand.scopes
                and draft.device == ""
                and draft.chain is None
                and readers[draft] == 1
                and covers(demand.position, top.shape, draft.own)
                and len(draft.outputs) + draft.open < self.target.buffers
                and self.can_host(node, demand)
                and not self.waits(draft, readers)
            ):
                return demand
        return None

    def can_host(self, node: Node, demand: Demand) -> bool:
        if node.op is ops.REDUCE and not is_partition(node):
            while demand.node is not node:
                demand = demand.sources[0]
            return self.obstacle(node, demand) is None
        free = free_ranges(demand.position or (), None)
        return free == demand.draft.own or free in demand.draft.chains

    def waits(self, draft: Draft, readers: Collection[Draft]) -> bool:
        """Whether a draft needs, directly or not, what another of the readers makes."""
        others = set(readers) - {draft}
        seen = {draft}
        stack = [draft]
        while stack and others:
            for maker in stack.pop().makers():
                if maker in others or len(seen) > SEARCHED:
                    return True
                if maker not in seen:
                    seen.add(maker)
                    stack.append(maker)
        return False

    # ---- visits --------------------------------------------------------------------------------
    def visit_leaf(self, node: Node, demands: list[Demand]) -> None:
        """A leaf is where it is; one that is asked for as a result is copied."""
        reason = self.forced.get(node)
        if reason is not None:
            value = self.values[node] = Value(node)
            if 0 not in node.shape:
                draft = self.new_draft(node, node.shape)
                leaf = self.push(node, draft, draft.position, None, STORES)
                draft.outputs.append(Output(leaf, value, 0, draft.position))
                draft.reasons.append(reason)
                value.makers.append(draft)

    def visit_movement(self, node: Node, demands: list[Demand]) -> None:
        if node in self.forced:
            self.store(node, demands, self.forced[node])
            return
        for demand in demands:
            self.fuse(demand)

    def visit_contiguous(self, node: Node, demands: list[Demand]) -> None:
        if node.op is ops.CONTIGUOUS:
            size = self.numel(node.shape)
            self.force(node.src[0], "contiguous", "the program asks for its {} elements", size)
        self.visit_movement(node, demands)

    def visit_again(self, node: Node, demands: list[Demand]) -> None:
        for draft in {demand.draft: None for demand in demands}:
            self.begin_again(node, draft)
        self.visit_movement(node, demands)

    def visit_out(self, node: Node, demands: list[Demand]) -> None:
        source = node.src[0]
        self.components.setdefault(source, set()).add(node.arg)
        for demand in demands:
            demand.draft.open -= 1
            below = self.push(source, demand.draft, demand.position, demand.valid, demand.scopes)
            demand.sources = (below,)

    def visit_copy(self, node: Node, demands: list[Demand]) -> None:
        text = "a transfer to {} reads it from memory"
        self.force(node.src[0], "copy", text, node.arg)
        value = self.values[node] = Value(node)
        self.read(demands, value, None)
        if 0 in node.shape:
            return
        draft = self.new_draft(node, node.shape)
        draft.device = node.arg
        draft.reasons.append(Reason("copy", "moved to device {}", (node.arg,), node))
        value.makers.append(draft)
        source = self.push(node.src[0], draft, draft.position, None, STORES)
        draft.outputs.append(Output(source, value, 0, draft.position))

    def visit_region(self, node: Node, demands: list[Demand]) -> None:
        """UPDATE and SCATTER: the base is put into the value's memory, then a part is written."""
        base, written = node.src[0], node.src[-1]
        value = self.inherited.get(node) or Value(node)
        self.values[node] = value
        self.read(demands, value, None)
        if 0 in node.shape:
            return
        numbers = (self.numel(written.shape), self.numel(node.shape))
        if 0 not in written.shape:
            draft = self.new_draft(node, written.shape, "region")
            draft.continues = value
            below = self.push(written, draft, draft.position, None, STORES)
            output = Output(below, value, 0, draft.position, node)
            if node.op is ops.SCATTER:
                output.index = self.push(node.src[1], draft, draft.position, None, STORES)
            draft.outputs.append(output)
            text = "a part of it is written, {} of {} elements"
            draft.reasons.append(Reason(node.op.name, text, numbers, node))
            value.makers.insert(0, draft)
        alone = self.graph.uses[base] == 1
        if base.op in (ops.UPDATE, ops.SCATTER) and alone and base not in self.forced:
            self.inherited[base] = value
            text = "the next update writes {} of its {} elements"
            self.force(base, "update", text, *numbers)
            return
        start = self.new_draft(node, node.shape)
        start.outputs.append(
            Output(self.push(base, start, start.position, None, STORES), value, 0, start.position)
        )
        start.reasons.append(Reason(node.op.name, "its base, {} elements", numbers[1:], node))
        value.makers.insert(0, start)

    def visit_loop(self, node: Node, demands: list[Demand]) -> None:
        """SCAN, WHILE, COND: the first sources begin values that the loop goes on to write (COND's
        test is only read there), its bodies read the others."""
        carries = 1 if node.op is ops.COND else node.arg[1]
        name = node.op.name
        value = self.values[node] = Value(node)
        self.components.setdefault(node, set()).update(range(carries))
        self.read(demands, value, None)
        loop = self.new_draft(node, (), "loop")
        loop.continues = value
        for number, source in enumerate(node.src):
            if number >= carries:
                text = "the body of a loop reads its {} elements"
                self.need_whole(source, loop, name, text, self.numel(source.shape))
            elif 0 not in source.shape:
                start = self.new_draft(node, source.shape)
                below = self.push(source, start, start.position, None, STORES)
                start.outputs.append(Output(below, value, number, start.position))
                text = "what it tests" if node.op is ops.COND else "the first value of carry {}"
                start.reasons.append(Reason(name, text, (number,), node))
                value.makers.append(start)
        value.makers.append(loop)

    def visit_kernel(self, node: Node, demands: list[Demand]) -> None:
        """A kernel that the user wrote: all it reads is in memory, and so is every result."""
        value = self.values[node] = Value(node)
        self.components.setdefault(node, set()).update(range(len(node.dtype)))
        self.read(demands, value, None)
        draft = self.new_draft(node, (), "custom")
        value.makers.append(draft)
        draft.reasons.append(
            Reason("custom", "the kernel {}, as it was written", (str(node.arg[2]),), node)
        )
        text = "a kernel that the user wrote reads its {} elements"
        for source in custom.read_from_memory(node):
            base = custom.memory_of(source)
            if base is not source:
                self.graph.uses[base] += 1  # the kernel reads it too, in another shape
            self.begin_where_needed(source, base, draft)
            rule = "root" if base.op in FREE else "custom"  # even a constant
            self.force(base, rule, text, self.numel(base.shape))
            self.push(base, draft, None, None, STORES)

    def visit_reduce(self, node: Node, demands: list[Demand]) -> None:
        if is_partition(node):
            self.visit_movement(node, demands)
            return
        reason = self.forced.get(node)
        if reason is None and not self.in_chain(node, demands):
            reason = self.reduce_reason(node, demands)
        if reason is not None:
            self.store(node, demands, reason)
            return
        self.admit(demands[0])
        self.fuse(demands[0])

    def visit_elementwise(self, node: Node, demands: list[Demand]) -> None:
        reason = self.forced.get(node)
        if reason is None and not self.in_chain(node, demands):
            reason = self.elementwise_reason(node, demands)
        if reason is not None:
            self.store(node, demands, reason)
            return
        for demand in demands:
            self.fuse(demand)


def decide(graph: Graph, target: Target, movements: Movements, sizes: cost.Sizes) -> Decider:
    """The drafts and stored values of a graph."""
    chains = find_chains(graph, target, sizes)
    first = Decider(graph, target, movements, sizes)
    first.chains = chains
    first.run()
    cheap = first.find_cheap() if first.priced else set()
    if not cheap:
        return first
    second = Decider(graph, target, movements, sizes)
    second.chains = chains
    second.cheap, second.kept = cheap, first.kept
    second.run()
    return second


_Visit = Callable[[Decider, Node, list[Demand]], None]
_VISIT: dict[Op, _Visit] = {
    **dict.fromkeys(LEAVES, Decider.visit_leaf),
    **dict.fromkeys((*PURE, ops.PAD, ops.UNWINDOW, ops.STOP), Decider.visit_movement),
    ops.CONTIGUOUS: Decider.visit_contiguous,
    ops.AGAIN: Decider.visit_again,
    ops.OUT: Decider.visit_out,
    ops.COPY: Decider.visit_copy,
    ops.UPDATE: Decider.visit_region,
    ops.SCATTER: Decider.visit_region,
    **dict.fromkeys((ops.SCAN, ops.WHILE, ops.COND), Decider.visit_loop),
    ops.KERNEL: Decider.visit_kernel,
    ops.REDUCE: Decider.visit_reduce,
}
