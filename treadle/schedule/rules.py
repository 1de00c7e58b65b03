"""The rules: why a value is stored and not computed where it is needed.

Legality for reductions, a price for elementwise values. Every rule has a name and gives a `Reason`
with the numbers that it compared.
"""

from __future__ import annotations

from math import prod

from treadle.backend.base import Target
from treadle.ir import index, ops
from treadle.ir.node import Node
from treadle.schedule import cost
from treadle.schedule.demand import Demand, free_ranges
from treadle.schedule.graph import Graph
from treadle.schedule.movement import Movements
from treadle.schedule.plan import Reason
from treadle.schedule.propagate import STORES, Propagation

SMALL = 1 << 15  # elements that one core folds in a few microseconds: not worth more tasks
ROW_LOOPS = 8  # reductions over rows in one kernel: each more is a loop that evaluates the row
OVERLAP = 4.5  # how often a sum inside a sum may be computed: the windows of a stride of 2 by 2


class Rules(Propagation):
    """cheap: what is not to be stored for its cost (the second pass found it so); kept: what the
    first pass stored, without that. priced: what was stored for its cost: repeats and readers.
    forms: the last reshape of a stored value, which stands for it in memory."""

    def __init__(
        self, graph: Graph, target: Target, movements: Movements, sizes: cost.Sizes
    ) -> None:
        super().__init__(graph, target, movements, sizes)
        self.cheap: set[Node] = set()
        self.kept: set[Node] = set()
        self.priced: dict[Node, tuple[float, int]] = {}
        self.forms: dict[Node, Node] = {}

    # ---- the rules for reductions ----------------------------------------------------------------
    def reduce_reason(self, node: Node, demands: list[Demand]) -> Reason | None:
        """Why a reduction is stored; None if its only reader can compute it."""
        if len(demands) > 1:
            drafts = len({id(demand.draft) for demand in demands})
            text = "a reduction over {} elements is read by {} kernels, at {} positions"
            folded = prod(index.bounds(node.src[0].shape[axis])[1] for axis in node.arg[1])
            return Reason("shared reduction", text, (folded, drafts, len(demands)), node)
        return self.obstacle(node, demands[0])

    def obstacle(self, node: Node, demand: Demand) -> Reason | None:
        """Why this draft cannot compute the reduction where it needs it; None if it can."""
        draft = demand.draft
        whole = max(1, self.numel(node.shape))
        if draft.kind != "kernel" or demand.missing:
            inside = "a product" if demand.missing else "a scatter"
            return Reason("inner loop", "a reduction below {} is computed first", (inside,), node)
        free = free_ranges(demand.position or (), demand.valid)
        times = draft.count(free) * len(demand.scopes)
        within = demand.through == node.arg[0] and len(demand.scopes) == 1
        selectable = demand.valid is None or node.arg[0] == "add"  # a padding's 0 adds nothing
        if within and selectable and times <= OVERLAP * whole:
            return None  # a sum of sums is one sum
        if times > whole:
            text = "it would be computed {} times for its {} elements"
            return Reason("recomputed reduction", text, (times, whole), node)
        if demand.valid is not None:
            text = "it is read under the condition of a padding, for {} elements"
            return Reason("padded reduction", text, (whole,), node)
        contraction = self.contraction(demand)
        if contraction and (draft.contraction or draft.chains or demand.scopes != STORES):
            loops = len(draft.chains)
            text = "a contraction shares no kernel with another or with row loops ({} of them)"
            return Reason("contraction", text, (loops,), node)
        if free == draft.own and demand.scopes == STORES:
            return None
        return self.row_obstacle(node, demand, free)

    def row_obstacle(self, node: Node, demand: Demand, free: int) -> Reason | None:
        """Why a reduction cannot be a loop inside the loops around some of its draft's ranges."""
        draft = demand.draft
        if draft.contraction:
            text = "the kernel that reads its {} elements holds a contraction"
            return Reason("row", text, (self.numel(node.shape),), node)
        if len(draft.chains) >= ROW_LOOPS:
            text = "the kernel that reads it has {} loops over its rows already"
            return Reason("row", text, (len(draft.chains),), node)
        for other in draft.chains:
            if free & other not in (free, other):
                text = "its loops cross those of another reduction: {} and {}"
                return Reason("row", text, (f"{free:b}", f"{other:b}"), node)
        rows = draft.count(free)
        work = max(self.numel(node.src[0].shape), draft.count(_around(demand)))
        if rows < self.target.min_parallel and work > SMALL:
            text = "only {} rows of {} elements in all: fewer than {} tasks"
            return Reason("row", text, (rows, work, self.target.min_parallel), node)
        return None

    def admit(self, demand: Demand) -> None:
        """Note what a reduction that is fused into a draft means for the next ones."""
        draft = demand.draft
        free = free_ranges(demand.position or (), demand.valid)
        if demand.through == demand.node.arg[0]:
            draft.contraction |= self.contraction(demand)
        elif self.contraction(demand):
            draft.contraction = True
        elif free != draft.own or demand.scopes != STORES:
            draft.chains.append(free)

    def in_chain(self, node: Node, demands: list[Demand]) -> bool:
        """Whether a node is computed by the kernel of its chain, and only there. The first node of
        a chain that is seen makes the draft that needs it the chain's."""
        chain = self.chains.get(node)
        draft = demands[0].draft
        if chain is None or any(demand.draft is not draft for demand in demands):
            return False
        if draft.chain is chain:
            for demand in demands:  # the sum reads it from a block's memory, whatever it cost
                demand.missing = 0
            return node.op is not ops.REDUCE or len(demands) == 1
        (demand,) = demands[:1]
        begins = node is chain.total or node not in chain.members or node in chain.rows
        free = draft.kind == "kernel" and not (draft.contraction or draft.chains or draft.chain)
        if not (begins and free and len(demands) == 1 and demand.scopes == STORES):
            return False
        if demand.missing or demand.valid is not None:
            return False
        draft.chain = chain
        draft.apart = True
        return True

    # ---- the rules for elementwise values --------------------------------------------------------
    def elementwise_reason(self, node: Node, demands: list[Demand]) -> Reason | None:
        """Why an elementwise value is stored; None if every reader computes it."""
        if cost.widens(node):
            return None
        first = demands[0]
        for demand in demands:
            draft = demand.draft
            if demand.product and all(demand.product):
                return None  # the product of a contraction is never stored, only its operands
            room = self.target.buffers - 1 - len(draft.outputs)
            if draft.open - 1 + len(node.src) > room:
                text = "its kernel has {} buffers and may have {}"
                return Reason("limit", text, (draft.open + len(draft.outputs), room + 1), node)
            if draft.operations >= self.target.ops:
                text = "its kernel has {} operations and may have {}"
                return Reason("limit", text, (draft.operations, self.target.ops), node)
        alone = len(demands) == 1 and not first.missing and first.scopes == STORES
        if node in self.cheap or (alone and first.position is first.draft.position):
            return None
        return self.priced_reason(node, demands)

    def priced_reason(self, node: Node, demands: list[Demand]) -> Reason | None:
        whole = max(1, self.numel(node.shape))
        repeats = 0.0
        operand = inner = tiled = False
        for demand in demands:
            times = demand.draft.count(free_ranges(demand.position or (), demand.valid)) / whole
            if demand.missing:
                operand = True
                tiled |= demand.tiled
                times *= cost.operand_repeats(demand.missing)
            inner |= demand.scopes != STORES
            repeats += times
        below = node in self.graph.above_reduce and (operand or inner)
        if repeats <= 1 and not below:
            return None
        here = cost.cone(node, self.kept or self.forced, self.numel)
        if below and self.cut_here(node, here.reductions, operand):
            self.priced[node] = repeats, len(demands)
            text = "a reduction below is stored anyway: here, after {} operations, costs no more"
            return Reason("epilogue", text, (here.operations,), node)
        if operand and not tiled and here.operations <= cost.HIDDEN:
            repeats = 1.0
        price = cost.recompute(here, repeats, len(demands))
        if price <= cost.ROUND_TRIP:
            return None
        self.priced[node] = repeats, len(demands)
        text = "recompute {} operations x {} + {} leaves x {} readers > {} of a round trip"
        numbers = (here.operations, repeats, here.leaves, len(demands), cost.ROUND_TRIP)
        return Reason("recompute", text, numbers, node)

    def cut_here(self, node: Node, reductions: list[Node], operand: bool) -> bool:
        """Whether a reduction below, which cannot be fused through this value, is better stored
        here, after the operations that follow it."""
        if operand:
            return bool(reductions)
        return any(
            _sums_products(reduction) and self.numel(reduction.shape) == self.numel(node.shape)
            for reduction in reductions
        )

    # ---- the second pass -----------------------------------------------------------------------
    def find_cheap(self) -> set[Node]:
        """What was stored for its cost alone although it is cheap from the values that are kept."""
        kept = set(self.values)
        cheap = set()
        for node in sorted(self.priced, key=self.graph.place.__getitem__):
            form = self.forms[node]
            kept.discard(form)
            here = cost.cone(node, kept, self.numel)
            repeats, readers = self.priced[node]
            if not here.reductions and cost.recompute(here, repeats, readers) <= cost.ROUND_TRIP:
                cheap.add(node)
            else:
                kept.add(form)
        self.kept = kept
        return cheap


def _around(demand: Demand) -> int:
    """The ranges of all the loops around a demand, as a mask."""
    mask = demand.draft.own
    for scope in demand.scopes:
        while scope is not None:
            mask |= scope.bound
            scope = scope.parent
    return mask


def _sums_products(node: Node) -> bool:
    """Whether a reduction may be a contraction, as far as the graph alone shows."""
    product = node.src[0]
    while product.op is ops.CAST:
        product = product.src[0]
    return node.arg[0] == "add" and product.op is ops.MUL
