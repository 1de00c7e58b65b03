"""How demands spread: what a draft that computes a node needs of the node's sources.

An elementwise node needs its sources at its own position, a movement maps the position, a padding
adds the condition under which it reads, a reduction adds the ranges that it folds over.
"""

from __future__ import annotations

from collections.abc import Callable

from treadle.backend.base import Target
from treadle.ir import index, ops
from treadle.ir.node import Node
from treadle.ir.ops import Op
from treadle.schedule import cost
from treadle.schedule.chain import Chain
from treadle.schedule.demand import Demand, Draft, Scope, Value, free_ranges
from treadle.schedule.graph import FREE, LEAVES, TRANSPARENT, Graph, pure_base
from treadle.schedule.movement import PURE, ZERO, Movements, Position, is_partition
from treadle.schedule.plan import Reason

STORES: tuple[Scope | None, ...] = (None,)  # the loops of a draft's stores


class Propagation:
    """The demands of every node of a graph. drafts: users before sources. values: what is stored.
    forced: what has to be. components: of a node with several results, those that are read. chains:
    those of the graph, by their nodes."""

    def __init__(
        self, graph: Graph, target: Target, movements: Movements, sizes: cost.Sizes
    ) -> None:
        self.graph = graph
        self.target = target
        self.chains: dict[Node, Chain] = {}
        self.movements = movements
        self.numel = sizes
        self.drafts: list[Draft] = []
        self.values: dict[Node, Value] = {}
        self.demands: dict[Node, list[Demand]] = {}
        self.forced: dict[Node, Reason] = {}
        self.components: dict[Node, set[int]] = {}

    # ---- demands -------------------------------------------------------------------------------
    def push(
        self,
        node: Node,
        draft: Draft,
        position: Position | None,
        valid: Node | None,
        scopes: tuple[Scope | None, ...],
    ) -> Demand:
        """The draft's demand for this element: a new one, or the one that it has, now used in these
        scopes too."""
        key = (node, position, valid)
        demand = draft.demands.get(key)
        if demand is None:
            demand = draft.demands[key] = Demand(node, draft, position, valid)
            self.demands.setdefault(node, []).append(demand)
            if node.op not in FREE:
                draft.open += 1
        if scopes is STORES and not demand.scopes:
            demand.scopes = scopes
        elif scopes is not demand.scopes:
            self.add_scopes(demand, scopes)
        return demand

    def add_scopes(self, demand: Demand, scopes: tuple[Scope | None, ...]) -> None:
        """The value is used in these scopes too: in each, outside the loops it does not need."""
        free = free_ranges(demand.position or (), demand.valid)
        for scope in scopes:
            while scope is not None and not free & scope.bound:
                scope = scope.parent
            if scope not in demand.scopes:
                demand.scopes += (scope,)

    def force(self, node: Node, rule: str, text: str, *numbers: float | int | str) -> None:
        """The node's value must be in memory."""
        if node.op is ops.OUT:
            source = node.src[0]
            self.components.setdefault(source, set()).add(node.arg)
            node = source
        if node.op not in LEAVES or rule == "root":
            self.forced.setdefault(node, Reason(rule, text, numbers, node))

    def need_whole(
        self, node: Node, draft: Draft, rule: str, text: str, *numbers: float | int | str
    ) -> Demand:
        """A draft reads this value at places that are known only when it runs, or all of it; what
        only re-indexes it is left out."""
        base = pure_base(node)
        self.begin_where_needed(node, base, draft)
        self.force(base, rule, text, *numbers)
        return self.push(base, draft, None, None, STORES)

    def begin_where_needed(self, node: Node, base: Node, draft: Draft) -> None:
        """Note every AGAIN on the way from a node down to what is left of it."""
        while node is not base:
            if node.op is ops.AGAIN:
                self.begin_again(node, draft)
            node = node.src[0]

    def begin_again(self, node: Node, draft: Draft) -> None:
        """A draft begins with an AGAIN, whose source is in memory, and waits for another value: so
        it runs when its results are needed, and is no part of a kernel that ran the first time."""
        base, late = map(pure_base, node.src)
        size = self.numel(base.shape)
        self.force(base, "again", "a later computation begins from its {} elements", size)
        if late.op not in LEAVES and 0 not in late.shape:
            text = "a later computation waits for its {} elements"
            self.need_whole(late, draft, "again", text, self.numel(late.shape))

    # ---- fusing --------------------------------------------------------------------------------
    def fuse(self, demand: Demand) -> None:
        """The draft computes the value: the demand goes on to the node's sources."""
        draft = demand.draft
        draft.open -= 1
        _EXPAND.get(demand.node.op, Propagation.expand_elementwise)(self, demand)

    def expand_elementwise(self, demand: Demand) -> None:
        draft = demand.draft
        draft.operations += 1
        product = demand.product
        position, valid, scopes = demand.position, demand.valid, demand.scopes
        sources = [self.push(s, draft, position, valid, scopes) for s in demand.node.src]
        demand.sources = sources
        if product is not None and demand.node.op is ops.CAST:
            sources[0].product = product
        elif product is not None:
            for below, outputs in zip(sources, product):
                below.missing = max(below.missing, outputs)
                below.tiled |= all(product)
        elif demand.missing:
            for below in sources:
                below.missing = max(below.missing, demand.missing)
                below.tiled |= demand.tiled

    def expand_movement(self, demand: Demand) -> None:
        node = demand.node
        source = node.src[0]
        assert demand.position is not None
        if node.op is ops.REDUCE:
            source = source.src[0]
            position, condition = self.movements.partition_index(node, demand.position)
        elif node.op in TRANSPARENT and node.op is not ops.RESHAPE:
            position, condition = demand.position, None
        else:
            position, condition = self.movements.source_index(node, demand.position)
        valid = demand.valid
        if condition is not None:
            demand.condition = condition
            valid = condition if valid is None else index.both(valid, condition)
        if valid is index.FALSE or 0 in source.shape:
            return  # every element is one of the padding: 0
        below = self.push(source, demand.draft, position, valid, demand.scopes)
        below.missing = max(below.missing, demand.missing)
        below.tiled |= demand.tiled
        below.through = demand.through
        below.product = demand.product
        demand.sources = (below,)

    def expand_reduce(self, demand: Demand) -> None:
        node, draft = demand.node, demand.draft
        if is_partition(node):
            self.expand_movement(demand)
            return
        self.bind(demand)
        bound = 0
        for r in demand.ranges:
            bound |= r.free
        scope = Scope(bound, demand.scopes[0])
        inside = _inserted(demand.position or (), node.arg[1], demand.ranges)
        if 0 in node.src[0].shape:
            return  # nothing to fold: the identity
        scopes = (scope,)
        sources = [self.push(source, draft, inside, demand.valid, scopes) for source in node.src]
        demand.sources = sources
        if len(sources) == 1:
            sources[0].through = node.arg[0]
            sources[0].product = self.lacking(demand)

    def expand_gather(self, demand: Demand) -> None:
        x, where = demand.node.src
        below = self.push(where, demand.draft, demand.position, demand.valid, demand.scopes)
        base = self.need_whole(
            x,
            demand.draft,
            "gather",
            "{} of its elements are read at indices that come from data",
            self.numel(demand.node.shape),
        )
        demand.sources = (below, base)

    def bind(self, demand: Demand) -> None:
        """Choose the ranges that a reduction folds over."""
        if not demand.ranges:
            node = demand.node
            shape = node.src[0].shape
            taken = free_ranges(demand.position or (), demand.valid)
            chain = self.chains.get(node)
            if chain is not None and node in chain.rows:  # they share the range of the total
                taken |= demand.draft.own
            sizes = [shape[axis] for axis in node.arg[1]]
            long = demand.draft.choose([size for size in sizes if size != 1], taken)
            chosen = iter(long)
            demand.ranges = tuple([ZERO if size == 1 else next(chosen) for size in sizes])

    def contraction(self, demand: Demand) -> bool:
        """Whether a reduction is a sum of products whose operands each lack some of its outputs,
        and each use what it folds."""
        lacking = self.lacking(demand)
        return lacking is not None and all(lacking)

    def lacking(self, demand: Demand) -> tuple[int, int] | None:
        """Of a sum of products, how many outputs each operand lacks: so many use one of its
        elements (0: an operand that lacks none, or uses nothing that is folded). None if none lacks
        any, or if only one does and the other does not come from memory."""
        if not demand.tested:
            demand.tested = True
            demand.lacking = self.find_lacking(demand)
        return demand.lacking

    def find_lacking(self, demand: Demand) -> tuple[int, int] | None:
        """What `lacking` remembers."""
        node = demand.node
        product = node.src[0]
        if node.arg[0] != "add":
            return None
        while product.op is ops.CAST:
            product = product.src[0]
        if product.op is not ops.MUL:
            return None
        self.bind(demand)
        position = demand.position or ()
        outputs = free_ranges(position, demand.valid)
        folded = free_ranges(demand.ranges, None)
        inside = _inserted(position, node.arg[1], demand.ranges)
        lacking = []
        for operand in product.src:
            used = free_ranges(self.below_movement(operand, inside)[1], None)
            lacks = bool(used & folded and outputs & ~used)
            lacking.append(demand.draft.count(outputs & ~used) if lacks else 0)
        first, second = lacking
        if bool(first) != bool(second):  # a matrix by a vector, if the matrix comes from memory
            matrix, _ = self.below_movement(product.src[bool(first)], inside)
            if matrix.op not in LEAVES:
                return None
        return (first, second) if first or second else None

    def below_movement(self, node: Node, position: Position) -> tuple[Node, Position]:
        """What a chain of movements reads, and the position in it."""
        while node.op.kind == "movement" or node.op in (ops.STOP, ops.CAST):
            if node.op.kind == "movement":
                position, _ = self.movements.source_index(node, position)
            node = node.src[0]
        return node, position


def _inserted(position: Position, axes: tuple[int, ...], ranges: tuple[Node, ...]) -> Position:
    """A position in a reduction's result, and its ranges, as a position in its source."""
    outer = iter(position)
    folded = dict(zip(axes, ranges))
    rank = len(position) + len(ranges)
    return tuple([folded[axis] if axis in folded else next(outer) for axis in range(rank)])


_EXPAND: dict[Op, Callable[[Propagation, Demand], None]] = {
    **dict.fromkeys((*PURE, ops.PAD, ops.UNWINDOW, *TRANSPARENT), Propagation.expand_movement),
    **dict.fromkeys(LEAVES, lambda propagation, demand: None),
    ops.REDUCE: Propagation.expand_reduce,
    ops.GATHER: Propagation.expand_gather,
}
