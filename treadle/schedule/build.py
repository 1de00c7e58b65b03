"""From a draft to its kernel: the expression that its demands describe, over buffers by position.

Everything in a kernel is named by position: ranges by axis, then in the order in which they are
met; buffers, scalars and checks likewise. So equal kernels are the same node whatever they run on,
and a program of hundreds of kernels needs a few dozen compilations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from treadle.ir import index, ops
from treadle.ir.dtype import DType, int64, void
from treadle.ir.dtype import index as INDEX
from treadle.ir.monoid import find
from treadle.ir.node import Node, remember, toposort
from treadle.ir.ops import Op
from treadle.schedule.demand import Demand, Draft, Output, Value, covers
from treadle.schedule.graph import TRANSPARENT
from treadle.schedule.movement import PURE, ZERO, Movements, Position, flatten, is_partition
from treadle.schedule.plan import BufferInfo, Call
from treadle.schedule.split import split_ranges, takes_apart

# f(0, .., 0) is 0 (and not -0): if all sources are 0 where a padding is read, so is the result
_ZERO_OF_ZEROS = frozenset((
    ops.ADD, ops.SUB, ops.MUL, ops.MAX, ops.MIN, ops.ABS, ops.SQRT, ops.FLOOR, ops.TRUNC, ops.RINT,
    ops.CEIL, ops.SIN, ops.TAN, ops.ATAN, ops.TANH, ops.ERF, ops.ERFINV, ops.EXPM1, ops.LOG1P,
    ops.CAST, ops.BITCAST, ops.AND, ops.OR, ops.XOR, ops.LSHIFT, ops.RSHIFT, ops.IDIV,
    ops.MOD, ops.ZMUL,
))  # fmt: skip

# lengths up to which flat kernels share a body: one task, the caches, memory
FLAT_CLASSES = (1 << 14, 1 << 22, 1 << 40)
FLAT_LENGTH = "#length"


@dataclass(eq=False)
class Binding:
    """Where a PLACEHOLDER of a loop's body is: a buffer of this shape, or a node of the level
    around the loop; in both under the leading indices `prefix`."""

    prefix: Position
    buffer: int = -1
    node: Node | None = None


@dataclass(eq=False)
class Level:
    """What the kernels of one level share: memory, and where leaves are. parent: the level around
    a loop's body; a body shares its buffers."""

    values: dict[Node, Value]
    buffers: list[BufferInfo]
    movements: Movements
    bindings: dict[Node, Binding] = field(default_factory=dict)
    parent: Level | None = None

    def locate(self, leaf: Node, position: Position) -> tuple[int | Node, Position]:
        """The buffer of a leaf or stored node and the element in it; or, of a leaf that is no
        memory (a constant), the leaf itself."""
        level = self
        while True:
            if leaf.op is ops.PLACEHOLDER and leaf in level.bindings:
                binding = level.bindings[leaf]
                position = (*binding.prefix, *position)
                if binding.node is None:
                    return binding.buffer, position
                assert level.parent is not None
                leaf, position = level.base(binding.node, position)
                level = level.parent
                continue
            if leaf.op is ops.BUFFER:
                return leaf.arg[0], position
            if leaf.op.kind in ("leaf", "index"):
                return leaf, position
            component = leaf.arg if leaf.op is ops.OUT else 0
            value = level.values[leaf.src[0] if leaf.op is ops.OUT else leaf]
            buffer, prefix = value.places[component][0]
            return buffer, (*prefix, *position)

    def base(self, node: Node, position: Position) -> tuple[Node, Position]:
        """Down a chain of movements that only re-index."""
        while node.op in PURE or node.op in TRANSPARENT:
            if node.op in PURE:
                position, _ = self.movements.source_index(node, position)
            node = node.src[0]
        return node, position


class Builder:
    """Builds one kernel."""

    def __init__(self, draft: Draft, level: Level) -> None:
        self.draft = draft
        self.level = level
        self.arguments: dict[tuple[int, str], Node] = {}  # (buffer, which access) -> ARG
        self.scalars: dict[Node, Node] = {}
        self.checks: dict[Node, int] = {}
        self.tests: dict[tuple[Node, Any], bool] = {}
        self.order = _in_order([d for o in draft.outputs for d in _roots(o)])
        self.divides = False  # whether an index has a quotient or a remainder
        self.length: int | Node | None = None  # of a flat kernel
        self.flat_range = ZERO

    def call(self) -> Call:
        """The launch of the draft's kernel."""
        draft = self.draft
        self._flatten()
        targets = [self._targets(output) for output in draft.outputs]
        for demand in self.order:
            if demand.same is not None:
                demand.value = demand.same.value
            elif demand.stored is not None:
                demand.value = self._stored(demand)
            else:
                _BUILD.get(demand.node.op, Builder._elementwise)(self, demand)
        stores = [
            store
            for output, places in zip(draft.outputs, targets)
            for store in self._stores(output, places)
        ]
        sink = self._renumbered(Node(ops.SINK, void, tuple(stores)))
        if self.divides:
            rank = draft.rank
            sink = remember(sink, ("split", rank), lambda kernel: split_ranges(kernel, rank))
        variables = {} if self.length is None else {FLAT_LENGTH: self.length}
        return Call(
            kernel=sink,
            buffers=tuple([buffer for buffer, _ in self.arguments]),
            scalars=tuple(self.scalars),
            variables=variables,
            checks=tuple(self.checks),
            tests=self.tests,
            may_fail=bool(self.checks),
            reasons=tuple(draft.reasons),
            device=draft.device,
            reads=frozenset([b for b, access in self.arguments if not access.startswith("store")]),
            writes=frozenset([b for b, access in self.arguments if access.startswith("store")]),
            waits=draft.awaited(),
        )

    def _renumbered(self, sink: Node) -> Node:
        """The kernel with the ranges of its reductions numbered in the order they are met in."""
        rank = self.draft.rank
        met = {r: None for demand in self.order for r in demand.ranges if r.op is ops.RANGE}
        inner = [r for r in met if r.arg[0] >= rank]
        if all(r.arg[0] == number for number, r in enumerate(inner, rank)):
            return sink
        new = {r: index.range_(number, r.arg[1]) for number, r in enumerate(inner, rank)}
        for node in toposort(sink):
            if node not in new:
                new[node] = index.rebuild(node, tuple([new[source] for source in node.src]))
        return new[sink]

    # ---- stores ----------------------------------------------------------------------------------
    def _targets(self, output: Output) -> list[tuple[Node, Position]]:
        """The buffers that a store goes to. They come first among a kernel's buffers."""
        scatter = output.index is not None  # its index is checked even along an axis of size 1
        access = "store all" if scatter else "store"
        places = output.value.places[output.component]
        return [(self._argument(buffer, access), prefix) for buffer, prefix in places]

    def _stores(self, output: Output, targets: Sequence[tuple[Node, Position]]) -> list[Node]:
        value = _result(_component(output.demand, output.component), output.component)
        position, monoid = output.position, None
        if output.region is not None:
            position, monoid = self._region(output.region, output)
        places = output.value.places[output.component]
        stores = []
        for (argument, prefix), (buffer, _) in zip(targets, places):
            at = self._index(argument, self.level.buffers[buffer], (*prefix, *position))
            whole = value if monoid is None else _every_time(monoid, value, output.position, at)
            stores.append(Node(ops.STORE, void, (argument, whole, *at), (len(at), monoid)))
        return stores

    def _region(self, region: Node, output: Output) -> tuple[Position, str | None]:
        if region.op is ops.UPDATE:
            spans = zip(region.arg, output.position)
            return tuple([index.add(index.mul(i, step), start) for (start, step), i in spans]), None
        assert output.index is not None
        axis, monoid = region.arg
        place = self._checked(region, output.index, region.shape[axis])
        position = (*output.position[:axis], place, *output.position[axis + 1 :])
        return position, None if monoid == "set" else monoid

    # ---- memory ----------------------------------------------------------------------------------
    def _argument(self, buffer: int, access: str) -> Node:
        """The ARG of a buffer, without its axes of size 1, so that kernels are equal whatever
        stands between their axes. access: "store" or "load"; "store all": with the axes of size 1;
        "first": in a flat kernel, a load of only the first element, in every step of the loop."""
        key = buffer, access
        found = self.arguments.get(key)
        if found is None:
            info = self.level.buffers[buffer]
            shape = info.shape
            if self.length is not None and access != "first":
                shape = (self.flat_range.arg[1],)
            elif access != "store all":
                shape = tuple([size for size in shape if size != 1])
            found = Node(ops.ARG, info.dtype, (), (len(self.arguments), shape))
            self.arguments[key] = found
        return found

    def _index(self, argument: Node, info: BufferInfo, position: Position) -> Position:
        """A position in a buffer as indices of its ARG."""
        if self.length is not None and argument.shape == (self.flat_range.arg[1],):
            return (self.flat_range,)
        if len(argument.shape) == len(position):
            return position
        return tuple([i for size, i in zip(info.shape, position) if size != 1])

    def _load(self, leaf: Node, position: Position, valid: Node | None) -> Node:
        place, position = self.level.locate(leaf, position)
        if isinstance(place, Node):
            return self._constant(place, position)
        self.divides = self.divides or takes_apart(position)
        info = self.level.buffers[place]
        first = self.length is not None and all(i is ZERO for i in position)
        argument = self._argument(place, "first" if first else "load")
        at = self._index(argument, info, position)
        guard = () if valid is None else (valid,)
        return Node(ops.LOAD, leaf.dtype, (argument, *at, *guard), len(at))

    def _stored(self, demand: Demand) -> Any:
        """The element in memory; of a node with several outputs nothing: OUT reads one of them."""
        node = demand.node
        if demand.position is None or isinstance(node.dtype, tuple):
            return None
        demand.vanishes = demand.valid is not None
        return self._load(node, demand.position, demand.valid)

    def _constant(self, leaf: Node, position: Position) -> Node:
        if leaf.op is ops.IOTA:
            place = position[0] if self.length is None else self.flat_range
            return ops.CAST(place, dtype=leaf.dtype)
        if leaf.op is ops.SCALAR:
            found = self.scalars.get(leaf)
            if found is None:
                found = Node(ops.SCALAR, leaf.dtype, (), len(self.scalars))
                self.scalars[leaf] = found
            return found
        return leaf

    def _checked(self, node: Node, where: Demand, size: Any) -> Node:
        """An index that comes from data, brought into its axis; reported if it lies outside."""
        place = ops.CAST(where.value, dtype=INDEX)
        if where.valid is not None:
            place = ops.WHERE(where.valid, place, ZERO, dtype=INDEX)
        test = _tested(where.node), size
        every = where.valid is None and covers(where.position or (), where.node.shape, -1)
        self.tests[test] = self.tests.get(test, False) or every
        number = self.checks.setdefault(node, len(self.checks))
        return Node(ops.CHECK, INDEX, (place, index.as_node(size)), number)

    # ---- the value of a demand, from those of its sources ----------------------------------------
    def _elementwise(self, demand: Demand) -> None:
        node = demand.node
        sources = tuple([source.value for source in demand.sources])
        demand.value = Node(node.op, node.dtype, sources, node.arg)
        if demand.valid is not None and (node.op in _ZERO_OF_ZEROS or node.op is ops.WHERE):
            read = demand.sources[1:] if node.op is ops.WHERE else demand.sources
            demand.vanishes = all(source.vanishes for source in read)

    def _leaf(self, demand: Demand) -> None:
        node, position = demand.node, demand.position
        if position is None:
            return
        demand.value = self._load(node, position, demand.valid)
        value = demand.value
        loaded = value.op is ops.LOAD and demand.valid is not None
        demand.vanishes = loaded or (value.op is ops.CONST and value.arg == 0)

    def _movement(self, demand: Demand) -> None:
        if not demand.sources:
            demand.value, demand.vanishes = _zero(demand.node.dtype), True
            return
        source = demand.sources[0]
        demand.value, demand.vanishes = source.value, source.vanishes
        condition = demand.condition
        if condition is not None and not source.vanishes:
            demand.value = _select(condition, source.value)

    def _out(self, demand: Demand) -> None:
        node = demand.node
        if demand.position is None:
            return
        if demand.sources[0].stored is not None:
            demand.value = self._load(node, demand.position, demand.valid)
            demand.vanishes = demand.valid is not None
        else:
            demand.value = _result(_component(demand.sources[0], node.arg), node.arg)

    def _reduce(self, demand: Demand) -> None:
        node = demand.node
        if is_partition(node):
            self._movement(demand)
            return
        monoid, several = node.arg[0], isinstance(node.dtype, tuple)
        dtypes = node.dtype if several else (node.dtype,)
        values: tuple[Node, ...] = tuple([source.value for source in demand.sources])
        if not values:  # nothing to fold
            identity = find(monoid).identity
            values = tuple(
                [Node(ops.CONST, d, (), d.to_bits(identity(c, d))) for c, d in enumerate(dtypes)]
            )
            demand.value = values if several else values[0]
            return
        ranges = tuple([r for r in demand.ranges if r.op is ops.RANGE])
        if not ranges:
            demand.value = values if several else values[0]
        else:
            inner = values[0]
            nested = inner.op is ops.KREDUCE and inner.arg == (monoid, 1)
            if nested and not any(r in ranges for r in inner.src[1:]):
                # a sum of sums is one sum, unless both fold over the same range
                values, ranges = inner.src[:1], (*ranges, *inner.src[1:])
            fold = Node(ops.KREDUCE, node.dtype, (*values, *ranges), (monoid, len(values)))
            outs = [Node(ops.OUT, d, (fold,), c) for c, d in enumerate(dtypes)] if several else []
            demand.value = tuple(outs) if several else fold
        demand.vanishes = monoid == "add" and demand.sources[0].vanishes

    def _gather(self, demand: Demand) -> None:
        node = demand.node
        x, axis = node.src[0], node.arg
        where = demand.sources[0]
        place = self._checked(node, where, x.shape[axis])
        position = demand.position or ()
        position = (*position[:axis], place, *position[axis + 1 :])
        below, position = self.level.base(x, position)
        demand.value = self._load(below, position, demand.valid)
        if place not in toposort(demand.value):  # it does not along an axis that was expanded
            demand.value = _select(_passed(place), demand.value)
        demand.vanishes = demand.valid is not None

    # ---- flat kernels ----------------------------------------------------------------------------
    def _flatten(self) -> None:
        """A kernel without reductions whose every access is to element number i of a buffer, in
        the same order, runs over one range of the length of all, which is a parameter: so the
        update of every weight of a network is the same kernel."""
        draft = self.draft
        if draft.kind != "kernel" or not draft.rank or not self._is_flat():
            return
        length = index.product(draft.sizes[: draft.rank])
        low, high = index.bounds(length)
        if low > FLAT_CLASSES[-1]:
            shape = ", ".join(map(index.spell, draft.sizes[: draft.rank]))
            raise MemoryError(f"no memory for an array of sizes {shape}: {low:,} elements")
        below = 0
        for limit in FLAT_CLASSES:
            if high <= limit:
                break
            below = limit
        variable = index.variable(FLAT_LENGTH, below + 1 if low > below else 0, limit)
        self.length = length
        self.flat_range = index.range_(0, variable)

    def _is_flat(self) -> bool:
        draft = self.draft
        for output in draft.outputs:
            prefixed = any(prefix for _, prefix in output.value.places[output.component])
            if prefixed or output.position != draft.position:
                return False
        sizes = draft.sizes[: draft.rank]
        linear = flatten(sizes, [i for i in draft.position if i is not ZERO])
        return all(
            demand.same is not None or self._in_step(demand, linear) for demand in self.order
        )

    def _in_step(self, demand: Demand, linear: Node) -> bool:
        """Whether what a demand reads of memory is the element number `linear`, or the first."""
        node, position = demand.node, demand.position or ()
        if demand.valid is not None or node.op in (ops.REDUCE, ops.GATHER, ops.PLACEHOLDER):
            return False
        in_memory = demand.stored is not None or node.op is ops.BUFFER
        if not in_memory and node.op is not ops.IOTA:
            return True
        if isinstance(node.dtype, tuple):
            return False
        if in_memory and all(i is ZERO for i in position):
            return True
        return flatten(list(node.shape), list(position)) is linear


def _every_time(monoid: str, value: Node, position: Position, at: Sequence[Node]) -> Node:
    """What a scatter combines into memory: along a range that neither the value nor its place
    depends on, it is as many equal values as the range is long."""
    used = value.free
    for i in at:
        used |= i.free
    missing = [i for i in position if i.op is ops.RANGE and not i.free & used]
    return Node(ops.KREDUCE, value.dtype, (value, *missing), (monoid, 1)) if missing else value


def _roots(output: Output) -> list[Demand]:
    answer = _component(output.demand, output.component)
    return [answer] if output.index is None else [answer, output.index]


def _component(demand: Demand, number: int) -> Demand:
    """What has result `number` of a demand: of a reduction over single elements, its source."""
    node = demand.node
    if demand.stored is None and node.op is ops.REDUCE and isinstance(node.dtype, tuple):
        single = all(r.op is not ops.RANGE for r in demand.ranges)
        if single and demand.sources:
            return demand.sources[number]
    return demand


def _result(demand: Demand, number: int) -> Node:
    """Result `number` of a demand for a node with several, or its value."""
    value = demand.value
    result: Node = value[number] if isinstance(value, tuple) else value
    return result


def _below(demand: Demand) -> Sequence[Demand]:
    """The demands whose values make the value of this one."""
    if demand.same is not None:
        return (demand.same,)
    if demand.node.op is ops.OUT:
        return (_component(demand.sources[0], demand.node.arg),)
    return demand.sources


def _in_order(roots: Sequence[Demand]) -> list[Demand]:
    """The demands below the roots once each, sources before users, in the order of the program."""
    order: list[Demand] = []
    done: set[Demand] = set()
    stack = list(reversed(roots))
    while stack:
        demand = stack[-1]
        if demand in done:
            stack.pop()
            continue
        if demand.stored is None:
            pending = [source for source in _below(demand) if source not in done]
            if pending:
                stack.extend(reversed(pending))
                continue
        stack.pop()
        done.add(demand)
        order.append(demand)
    return order


def _passed(check: Node) -> Node:
    """A condition that always holds: a checked index is not negative. It keeps a check in a kernel
    where no index needs it; as a comparison of integers it is not decided by bounds."""
    return ops.LE(Node(ops.CONST, int64, (), 0), ops.CAST(check, dtype=int64))


def _tested(indices: Node) -> Node:
    """What holds the same numbers as a tensor of indices, however they are arranged."""
    while indices.op in (ops.RESHAPE, ops.PERMUTE, ops.EXPAND, ops.FLIP, ops.STOP, ops.AGAIN):
        indices = indices.src[0]
    return indices


def _zero(dtype: DType) -> Node:
    return Node(ops.CONST, dtype, (), dtype.to_bits(0))


def _select(condition: Node, value: Node) -> Node:
    """value where the condition holds, else 0. A sum's terms are selected, not the sum: so that it
    can become part of a sum around it. Of a mask that is padded the condition itself is left."""
    if value is index.TRUE:
        return condition
    if value.op is ops.KREDUCE and value.arg == ("add", 1):
        inside = _select(condition, value.src[0])
        return Node(ops.KREDUCE, value.dtype, (inside, *value.src[1:]), value.arg)
    return ops.WHERE(condition, value, _zero(value.dtype), dtype=value.dtype)


_BUILD: dict[Op, Callable[[Builder, Demand], None]] = {
    **dict.fromkeys((*PURE, ops.PAD, ops.UNWINDOW, *TRANSPARENT), Builder._movement),
    **dict.fromkeys(
        (ops.BUFFER, ops.PLACEHOLDER, ops.CONST, ops.SCALAR, ops.VARIABLE, ops.IOTA), Builder._leaf
    ),
    **dict.fromkeys([op for op in ops.TABLE.values() if op.kind == "index"], Builder._leaf),
    ops.OUT: Builder._out,
    ops.REDUCE: Builder._reduce,
    ops.GATHER: Builder._gather,
}
