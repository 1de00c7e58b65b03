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

from collections.abc import Callable, Sequence
from math import prod

from treadle.backend.base import Target
from treadle.ir import index, ops
from treadle.ir.node import Node, toposort
from treadle.ir.ops import Op
from treadle.schedule import cost
from treadle.schedule.demand import Demand, Draft, Output, Scope, Value, covers, free_ranges
from treadle.schedule.movement import PURE, ZERO, Movements, Position, is_partition
from treadle.schedule.plan import Reason

SMALL = 1 << 15  # elements that one core folds in a few microseconds: not worth more tasks
OVERLAP = 4.5  # how often a sum inside a sum may be computed: the windows of a stride of 2 by 2
SEARCHED = 64  # drafts that the search for a cycle visits before it gives up
_TRANSPARENT = (ops.RESHAPE, ops.STOP, ops.CONTIGUOUS)
_PASSING = ("alu", "movement")  # kinds of ops that have no loop of their own
_INDICES = tuple([op for op in ops.TABLE.values() if op.kind == "index"])
_FREE = (ops.CONST, ops.SCALAR, ops.VARIABLE, ops.IOTA, *_INDICES)  # leaves that are no memory
_LEAVES = (ops.BUFFER, ops.PLACEHOLDER, *_FREE)
_STORES: tuple[Scope | None, ...] = (None,)  # the loops of a draft's stores


class Graph:
    """The nodes of one level (a program, or the body of a loop) and what is asked of all of them."""

    def __init__(self, roots: Sequence[Node], kept_shape: set[int]) -> None:
        """kept_shape: the roots that must be stored in their own shape (they have a place)."""
        self.roots = roots
        self.order = toposort(roots)
        self.place = {node: number for number, node in enumerate(self.order)}
        self.uses = dict.fromkeys(self.order, 0)
        self.user: dict[Node, Node] = {}  # one of the users of a node
        self.above_reduce: set[Node] = set()
        for node in self.order:
            for source in node.src:
                self.uses[source] += 1
                self.user[source] = node
                if source in self.above_reduce:
                    self.above_reduce.add(node)
                elif source.op is ops.REDUCE and not is_partition(source):
                    self.above_reduce.add(node)
            if node.op.kind not in _PASSING and node.op is not ops.OUT and not is_partition(node):
                self.above_reduce.discard(node)
        # a reshape of a stored value is the same memory: what is stored is what it reshapes
        self.targets = [
            root if number in kept_shape else _underlying(root) for number, root in enumerate(roots)
        ]
        for target in self.targets:
            self.uses[target] += 1


def _underlying(root: Node) -> Node:
    node = root
    while node.op in _TRANSPARENT:
        node = node.src[0]
    if node.op in _LEAVES and node is not root:
        return root  # a copy: the leaf's own memory is not given away
    return node


def pure_base(node: Node) -> Node:
    """What is left below movements that only re-index."""
    while node.op in PURE or node.op in (ops.STOP, ops.CONTIGUOUS):
        node = node.src[0]
    return node


class Decider:
    """One pass over a graph. Afterwards: `drafts` (users before sources) and `values`."""

    def __init__(self, graph: Graph, target: Target, movements: Movements, sizes: cost.Sizes) -> None:
        self.graph = graph
        self.target = target
        self.movements = movements
        self.numel = sizes
        self.cheap: set[Node] = set()  # not to be stored for their cost: the second pass found so
        self.kept: set[Node] = set()  # the values that the first pass stored, without the cheap
        self.drafts: list[Draft] = []
        self.values: dict[Node, Value] = {}
        self.demands: dict[Node, list[Demand]] = {}
        self.forced: dict[Node, Reason] = {}
        self.components: dict[Node, set[int]] = {}
        self.inherited: dict[Node, Value] = {}  # base of an update that writes into its memory
        self.priced: dict[Node, tuple[float, int]] = {}  # stored for its cost: repeats, readers

    def run(self) -> None:
        """Decide every node."""
        for node in self.graph.targets:
            self.force(node, "root", "its {} elements are asked for", self.numel(node.shape))
        for node in reversed(self.graph.order):
            demands = self.demands.get(node)
            if demands is not None or node in self.forced:
                _VISIT.get(node.op, Decider.visit_elementwise)(self, node, demands or [])

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
            if node.op not in _FREE:
                draft.open += 1
        if scopes is _STORES and not demand.scopes:
            demand.scopes = scopes
        elif scopes is not demand.scopes:
            self.add_scopes(demand, scopes)
        return demand

    def add_scopes(self, demand: Demand, scopes: tuple[Scope | None, ...]) -> None:
        """The value is used in these scopes too: in each, outside the loops it does not depend on."""
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
        if node.op not in _LEAVES or rule == "root":
            self.forced.setdefault(node, Reason(rule, text, numbers, node))

    def need_whole(self, node: Node, draft: Draft, rule: str, text: str) -> Demand:
        """A draft reads this value at places that are known only when it runs, or all of it."""
        self.force(node, rule, text)
        return self.push(node, draft, None, None, _STORES)

    # ---- fusing --------------------------------------------------------------------------------
    def fuse(self, demand: Demand) -> None:
        """The draft computes the value: the demand goes on to the node's sources."""
        draft = demand.draft
        draft.open -= 1
        _EXPAND.get(demand.node.op, Decider.expand_elementwise)(self, demand)

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
        elif demand.missing:
            for below in sources:
                below.missing = max(below.missing, demand.missing)

    def expand_movement(self, demand: Demand) -> None:
        node = demand.node
        source = node.src[0]
        assert demand.position is not None
        if node.op is ops.REDUCE:
            source = source.src[0]
            position, condition = self.movements.partition_index(node, demand.position)
        elif node.op in _TRANSPARENT and node.op is not ops.RESHAPE:
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
            sources[0].product = self.contraction(demand)

    def expand_gather(self, demand: Demand) -> None:
        x, where = demand.node.src
        below = self.push(where, demand.draft, demand.position, demand.valid, demand.scopes)
        base = self.need_whole(
            pure_base(x), demand.draft, "gather", "it is read at indices that come from data"
        )
        demand.sources = (below, base)

    def bind(self, demand: Demand) -> None:
        """Choose the ranges that a reduction folds over."""
        if not demand.ranges:
            shape = demand.node.src[0].shape
            taken = free_ranges(demand.position or (), demand.valid)
            sizes = [shape[axis] for axis in demand.node.arg[1]]
            long = demand.draft.choose([size for size in sizes if size != 1], taken)
            chosen = iter(long)
            demand.ranges = tuple([ZERO if size == 1 else next(chosen) for size in sizes])

    def contraction(self, demand: Demand) -> tuple[int, int] | None:
        """Whether a reduction is a sum of products whose operands each lack some of its outputs and
        each use what it folds. Then, per operand, the number of outputs it lacks; else None."""
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
        missing = []
        for operand in product.src:
            used = free_ranges(self.below_movement(operand, inside), None)
            if not used & folded or not outputs & ~used:
                return None
            missing.append(demand.draft.count(outputs & ~used))
        return missing[0], missing[1]

    def below_movement(self, node: Node, position: Position) -> Position:
        """The position in what a chain of movements reads."""
        while node.op.kind == "movement" or node.op in (ops.STOP, ops.CAST):
            if node.op.kind == "movement":
                position, _ = self.movements.source_index(node, position)
            node = node.src[0]
        return position

    # ---- storing -------------------------------------------------------------------------------
    def store(self, node: Node, demands: list[Demand], reason: Reason) -> None:
        """Put the node's value in memory: by a host among its readers, or by a draft of its own."""
        top, demands = self.last_form(node, demands)
        value = self.values[top] = self.inherited.get(top) or Value(top)
        if 0 in top.shape:
            self.read(demands, value, None)
            return
        host = self.find_host(top, node, demands)
        if host is None:
            draft = self.new_draft(top, top.shape)
            host = self.push(top, draft, draft.position, None, _STORES)
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
            user = self.graph.user[top]
            reshapes = user.op in _TRANSPARENT or is_partition(user)
            if user.op is ops.UNWINDOW and self.graph.uses[user] == 1:
                user = self.graph.user[user]  # a partition has the elements below its UNWINDOW
                reshapes = is_partition(user)
            same = reshapes and self.numel(user.shape) == self.numel(top.shape)
            if not same or user in self.values or user not in self.demands:
                break
            top = user
        return top, demands if top is node else self.demands[top]

    def new_draft(self, node: Node, shape: tuple[object, ...], kind: str = "kernel") -> Draft:
        draft = Draft(node, shape, self.graph.place[node], kind)
        self.drafts.append(draft)
        return draft

    def read(self, demands: list[Demand], value: Value, host: Demand | None) -> None:
        """Every demand but the host's is answered by the value's memory."""
        for demand in demands:
            if demand is not host:
                demand.stored = value
                demand.draft.reads[value] = None

    def find_host(self, top: Node, node: Node, demands: list[Demand]) -> Demand | None:
        """The demand of a draft that computes each element of the value exactly once in the loops of
        its stores, and does not wait for any other reader of it. Earliest drafts first.

        top: the form in which the value is stored (see `last_form`); node: what computes it.
        """
        readers = [demand.draft for demand in demands]
        for demand in reversed(demands):
            draft = demand.draft
            if (
                draft.kind == "kernel"
                and demand.position is not None
                and demand.valid is None
                and None in demand.scopes
                and draft.device == ""
                and readers.count(draft) == 1
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

    def waits(self, draft: Draft, readers: list[Draft]) -> bool:
        """Whether a draft needs, directly or not, what another of the readers makes."""
        others = {id(reader) for reader in readers if reader is not draft}
        seen = {id(draft)}
        stack = [draft]
        while stack and others:
            for value in stack.pop().reads:
                for maker in value.makers:
                    if id(maker) in others or len(seen) > SEARCHED:
                        return True
                    if id(maker) not in seen:
                        seen.add(id(maker))
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
                leaf = self.push(node, draft, draft.position, None, _STORES)
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
            self.force(node.src[0], "contiguous", "the program asks for it in memory")
        self.visit_movement(node, demands)

    def visit_out(self, node: Node, demands: list[Demand]) -> None:
        source = node.src[0]
        self.components.setdefault(source, set()).add(node.arg)
        for demand in demands:
            demand.draft.open -= 1
            below = self.push(source, demand.draft, demand.position, demand.valid, demand.scopes)
            demand.sources = (below,)

    def visit_copy(self, node: Node, demands: list[Demand]) -> None:
        self.force(node.src[0], "copy", "a transfer between devices reads it from memory")
        value = self.values[node] = Value(node)
        draft = self.new_draft(node, node.shape)
        draft.device = node.arg
        draft.reasons.append(Reason("copy", "moved to device {}", (node.arg,), node))
        value.makers.append(draft)
        source = self.push(node.src[0], draft, draft.position, None, _STORES)
        draft.outputs.append(Output(source, value, 0, draft.position))
        self.read(demands, value, None)

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
            below = self.push(written, draft, draft.position, None, _STORES)
            output = Output(below, value, 0, draft.position, node)
            if node.op is ops.SCATTER:
                output.index = self.push(node.src[1], draft, draft.position, None, _STORES)
            draft.outputs.append(output)
            text = "a part of it is written, {} of {} elements"
            draft.reasons.append(Reason(node.op.name, text, numbers, node))
            value.makers.insert(0, draft)
        alone = self.graph.uses[base] == 1
        if base.op in (ops.UPDATE, ops.SCATTER) and alone and base not in self.forced:
            self.inherited[base] = value
            self.force(base, "update", "the next update writes into its memory")
            return
        start = self.new_draft(node, node.shape)
        start.outputs.append(
            Output(self.push(base, start, start.position, None, _STORES), value, 0, start.position)
        )
        start.reasons.append(Reason(node.op.name, "its base, {} elements", numbers[1:], node))
        value.makers.insert(0, start)

    def visit_scan(self, node: Node, demands: list[Demand]) -> None:
        _, carries, *_ = node.arg
        value = self.values[node] = Value(node)
        self.components.setdefault(node, set()).update(range(carries))
        self.read(demands, value, None)
        loop = self.new_draft(node, (), "loop")
        for number, source in enumerate(node.src):
            if number >= carries:
                base = pure_base(source)
                loop_source = self.need_whole(base, loop, "scan", "every step of a loop reads it")
                loop.outputs.append(Output(loop_source, value, number, ()))
            elif 0 not in source.shape:
                start = self.new_draft(node, source.shape)
                below = self.push(source, start, start.position, None, _STORES)
                start.outputs.append(Output(below, value, number, start.position))
                start.reasons.append(Reason("scan", "the first value of carry {}", (number,), node))
                value.makers.append(start)
        value.makers.append(loop)

    def visit_reduce(self, node: Node, demands: list[Demand]) -> None:
        if is_partition(node):
            self.visit_movement(node, demands)
            return
        reason = self.forced.get(node)
        if reason is None:
            reason = self.reduce_reason(node, demands)
        if reason is not None:
            self.store(node, demands, reason)
            return
        self.admit(demands[0])
        self.fuse(demands[0])

    def visit_elementwise(self, node: Node, demands: list[Demand]) -> None:
        reason = self.forced.get(node)
        if reason is None:
            reason = self.elementwise_reason(node, demands)
        if reason is not None:
            self.store(node, demands, reason)
            return
        for demand in demands:
            self.fuse(demand)

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
            why = "a contraction" if demand.missing else "a scatter"
            return Reason("inner loop", "a reduction below {} is computed first", (why,), node)
        free = free_ranges(demand.position or (), demand.valid)
        times = draft.count(free) * len(demand.scopes)
        if demand.through == node.arg[0] and len(demand.scopes) == 1 and times <= OVERLAP * whole:
            if demand.valid is None or node.arg[0] == "add":
                return None  # a sum of sums is one sum
        if times > whole:
            text = "it would be computed {} times for its {} elements"
            return Reason("recomputed reduction", text, (times, whole), node)
        if demand.valid is not None:
            return Reason("padded reduction", "it is read under the condition of a padding", (), node)
        contraction = self.contraction(demand) is not None
        if contraction and (draft.contraction or draft.chains or demand.scopes != _STORES):
            loops = len(draft.chains)
            text = "a contraction shares no kernel with another or with row loops ({} of them)"
            return Reason("contraction", text, (loops,), node)
        if free == draft.own and demand.scopes == _STORES:
            return None
        return self.row_obstacle(node, demand, free)

    def row_obstacle(self, node: Node, demand: Demand, free: int) -> Reason | None:
        """Why a reduction cannot be a loop inside the loops around some of its draft's ranges."""
        draft = demand.draft
        if draft.contraction:
            return Reason("row", "the kernel that reads it holds a contraction", (), node)
        for other in draft.chains:
            if free & other not in (free, other):
                text = "its loops cross those of another reduction: {:b} and {:b}"
                return Reason("row", text, (free, other), node)
        rows = draft.count(free)
        work = self.numel(node.src[0].shape)
        if rows < self.target.min_parallel and work > SMALL:
            text = "only {} rows of {} elements in all: fewer than {} tasks"
            return Reason("row", text, (rows, work, self.target.min_parallel), node)
        return None

    def admit(self, demand: Demand) -> None:
        """Note what a reduction that is fused into a draft means for the next ones."""
        draft = demand.draft
        free = free_ranges(demand.position or (), demand.valid)
        if demand.through == demand.node.arg[0]:
            draft.contraction |= self.contraction(demand) is not None
        elif self.contraction(demand) is not None:
            draft.contraction = True
        elif free != draft.own or demand.scopes != _STORES:
            draft.chains.append(free)

    # ---- the rules for elementwise values ----------------------------------------------------------
    def elementwise_reason(self, node: Node, demands: list[Demand]) -> Reason | None:
        """Why an elementwise value is stored; None if every reader computes it."""
        if widens(node):
            return None
        first = demands[0]
        for demand in demands:
            draft = demand.draft
            if demand.product:
                return None  # the product of a contraction is never stored, only its operands
            room = self.target.buffers - 1 - len(draft.outputs)
            if draft.open - 1 + len(node.src) > room:
                text = "its kernel has {} buffers and may have {}"
                return Reason("limit", text, (draft.open + len(draft.outputs), room + 1), node)
            if draft.operations >= self.target.ops:
                text = "its kernel has {} operations and may have {}"
                return Reason("limit", text, (draft.operations, self.target.ops), node)
        if len(demands) == 1 and not first.missing and first.scopes == _STORES:
            if first.position is first.draft.position:
                return None
        if node in self.cheap:
            return None
        return self.priced_reason(node, demands)

    def priced_reason(self, node: Node, demands: list[Demand]) -> Reason | None:
        whole = max(1, self.numel(node.shape))
        repeats = 0.0
        operand = inner = False
        for demand in demands:
            times = demand.draft.count(free_ranges(demand.position or (), demand.valid)) / whole
            if demand.missing:
                operand = True
                times *= cost.operand_repeats(demand.missing)
            inner |= demand.scopes != _STORES
            repeats += times
        below = node in self.graph.above_reduce and (operand or inner)
        if repeats <= 1 and not below:
            return None
        here = cost.cone(node, self.kept or self.forced, self.numel)
        if below and self.cut_here(node, here.reductions, operand):
            self.priced[node] = repeats, len(demands)
            text = "a reduction below is stored anyway: here, after {} operations, costs no more"
            return Reason("epilogue", text, (here.operations,), node)
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
            kept.discard(node)
            here = cost.cone(node, kept, self.numel)
            repeats, readers = self.priced[node]
            if not here.reductions and cost.recompute(here, repeats, readers) <= cost.ROUND_TRIP:
                cheap.add(node)
            else:
                kept.add(node)
        self.kept = kept
        return cheap


def widens(node: Node) -> bool:
    """Whether storing a node would take more memory than its source, which is as good."""
    return cost.widens(node)


def _inserted(position: Position, axes: tuple[int, ...], ranges: tuple[Node, ...]) -> Position:
    """A position in a reduction's result, and its ranges, as a position in its source."""
    outer = iter(position)
    folded = dict(zip(axes, ranges))
    rank = len(position) + len(ranges)
    return tuple([folded[axis] if axis in folded else next(outer) for axis in range(rank)])


def _sums_products(node: Node) -> bool:
    """Whether a reduction may be a contraction, as far as the graph alone shows."""
    product = node.src[0]
    while product.op is ops.CAST:
        product = product.src[0]
    return node.arg[0] == "add" and product.op is ops.MUL


def decide(graph: Graph, target: Target, movements: Movements, sizes: cost.Sizes) -> Decider:
    """The drafts and stored values of a graph."""
    first = Decider(graph, target, movements, sizes)
    first.run()
    cheap = first.find_cheap() if first.priced else set()
    if not cheap:
        return first
    second = Decider(graph, target, movements, sizes)
    second.cheap, second.kept = cheap, first.kept
    second.run()
    return second


_Visit = Callable[[Decider, Node, list[Demand]], None]
_VISIT: dict[Op, _Visit] = {
    **dict.fromkeys(_LEAVES, Decider.visit_leaf),
    **dict.fromkeys((*PURE, ops.PAD, ops.UNWINDOW, ops.STOP), Decider.visit_movement),
    ops.CONTIGUOUS: Decider.visit_contiguous,
    ops.OUT: Decider.visit_out,
    ops.COPY: Decider.visit_copy,
    ops.UPDATE: Decider.visit_region,
    ops.SCATTER: Decider.visit_region,
    ops.SCAN: Decider.visit_scan,
    ops.REDUCE: Decider.visit_reduce,
}
_EXPAND: dict[Op, Callable[[Decider, Demand], None]] = {
    **dict.fromkeys((*PURE, ops.PAD, ops.UNWINDOW, ops.STOP, ops.CONTIGUOUS), Decider.expand_movement),
    **dict.fromkeys(_LEAVES, lambda decider, demand: None),
    ops.REDUCE: Decider.expand_reduce,
    ops.GATHER: Decider.expand_gather,
}
