"""From a scheduled kernel to functions: `lower(kernel, name) -> list[Function]`, one per phase.

The walker goes down the loop tree and emits the program stage in order. Where the leaves of a range
cover more than its extent, the innermost loop above the tile (the unrolled and vector leaves) runs
over whole tiles, and a second copy of what is inside runs the rest:

    peel    with static limits: fewer unrolled copies, and lanes masked in the last vector
    mask    rolled: unrolled leaves become loops to a limit computed at run time

Accumulators of a reduction are scratch elements. Between loops they are kept in values (`registers`),
so that an unrolled tile with constant offsets needs no memory at all after promotion.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product

from treadle.backend.base import Function
from treadle.ir import index, ops
from treadle.ir.dtype import DType, bool_, void
from treadle.ir.dtype import index as INDEX
from treadle.ir.monoid import MONOIDS
from treadle.ir.node import Node, toposort
from treadle.kernel.emit import Emitter, Scope, constant
from treadle.kernel.kernel import Extent, Kernel, Leaf, Range, ScheduleError, Stmt
from treadle.kernel.layout import Layout, layouts
from treadle.kernel.tree import Loop, Phase, phases

Body = Callable[[], None]
OUTER = ("grid", "local", "loop")


def lower(kernel: Kernel, name: str) -> list[Function]:
    """The functions of a kernel, to be run one after the other; `name` begins their names."""
    found = phases(kernel)
    layout = layouts(kernel)
    return [
        _Walker(kernel, layout).function(phase, name if len(found) == 1 else f"{name}_{n}")
        for n, phase in enumerate(found)
    ]


@dataclass
class _Plan:
    """A statement with its loads flattened. offset: of its target. accumulator: of the partial
    accumulators, where there are any; lanes: how wide each is."""

    statement: Stmt
    values: list[Node]
    offset: Node
    guard: Node | None
    accumulator: Node | None = None
    accumulators: int = 0
    lanes: int = 1


@dataclass
class _Limit:
    """What is left of a range in a tail: points of the tile below `size` exist. rolled: the
    unrolled leaves are loops there."""

    size: Extent
    rolled: bool


class _Walker(Emitter):
    """Emits one phase."""

    def __init__(self, kernel: Kernel, layout: dict[str, Layout]) -> None:
        super().__init__(kernel, layout)
        self.limits: dict[str, _Limit] = {}
        self.opened: dict[str, list[Leaf]] = {}  # range -> its leaves that are open
        self.plans: dict[str, _Plan] = {}
        self.partials: dict[str, Node] = {}  # scratch buffer -> the DEFINE of its partial accumulators
        self.tiles = {r.name: self._tile_leaf(r) for r in kernel.ranges.values() if not exact(kernel, r)}

    def _tile_leaf(self, owner: Range) -> Leaf | None:
        """The innermost loop of an inexact range: above it whole tiles are counted. What depends on
        the tile depends on it, for a tail is another piece of code."""
        leaves = [self.kernel.leaves[name] for name in owner.leaves]
        outer = [leaf for leaf in leaves if leaf.kind in OUTER]
        inner = [leaf for leaf in leaves if leaf.kind not in OUTER]
        if leaves != outer + inner:
            raise ScheduleError(
                f"range {owner.name}: {inner[0].name} is outside {outer[-1].name}, so its parts must "
                f"cover exactly {index.spell(owner.extent)}; choose sizes that divide it"
            )
        if not outer:
            self.limits[owner.name] = _Limit(owner.extent, not isinstance(owner.extent, int))
            return None
        for leaf in leaves:
            self.closure[leaf.number] = self.closure.get(leaf.number, 0) | outer[-1].bit
        return outer[-1]

    # ---- a phase -----------------------------------------------------------------------------------
    def function(self, phase: Phase, name: str) -> Function:
        """The phase as a function."""
        for statement in _statements(phase.body):
            for target in statement.targets:
                if isinstance(target.arg[0], str):
                    home = self.layouts[target.arg[0]].home
                    mask = 0
                    for leaf in home:
                        mask |= leaf.free
                    self.homes[target.arg[0]] = mask
        for statement in _statements(phase.body):
            self.plans[statement.name] = self._plan(statement)
        tasks = index.product(leaf.extent for leaf in phase.grid)
        self._decode(phase.grid, tasks)
        self.define(phase.scratch)
        self.grid(list(phase.grid), lambda: self.walk(phase.body))
        self.flush()
        params = sorted(self.params, key=_parameter_order)
        return Function(name, tuple(params), tuple(self.scopes[0].items), tasks)

    def _plan(self, statement: Stmt) -> _Plan:
        offset = self.offset(statement.targets[0], statement.index)
        guards = () if statement.guard is None else (statement.guard,)
        *values, offset = self.flatten([*statement.values, *guards, offset])
        guard = values.pop() if guards else None
        plan = _Plan(statement, values, offset, guard)
        if not statement.reduced:
            return plan
        accumulators = 1
        place: list[Node] = []
        for name in statement.order:
            leaf = self.kernel.leaves[name]
            if name not in statement.reduced:
                continue
            if leaf.kind == "vector":
                assert isinstance(leaf.extent, int)
                plan.lanes = leaf.extent
            elif name in statement.partial:
                assert isinstance(leaf.extent, int)
                place.append(index.mul(leaf.node, accumulators))
                accumulators *= leaf.extent
        if accumulators * plan.lanes > 1:
            size = index.as_int(self.layouts[statement.targets[0].arg[0]].size)
            flat = index.add(offset, *(index.mul(p, size) for p in place))
            plan.accumulator = index.mul(flat, plan.lanes)
            plan.accumulators = accumulators * size * plan.lanes
            self.prepare([plan.accumulator])
        return plan

    def _decode(self, grid: Sequence[Leaf], tasks: Extent) -> None:
        """Grid leaves from the number of the task, the last one fastest."""
        if not grid:
            return
        rest = self.place(Node(ops.SPECIAL, INDEX, (), ("task", 0, tasks)), 0)
        for leaf in reversed(grid[1:]):
            size = self._extent(leaf.extent)
            self.env[leaf.number] = self.place(ops.TMOD(rest, size), 0)
            rest = self.place(ops.TDIV(rest, size), 0)
        self.env[grid[0].number] = rest

    def _extent(self, extent: Extent) -> Node:
        expression = index.to_node(extent)
        self.prepare([expression])
        return self.value(expression)

    def grid(self, leaves: list[Leaf], body: Body) -> None:
        """The body under grid leaves: inexact ones choose between whole tiles and the rest."""
        if not leaves:
            body()
            return
        leaf, rest = leaves[0], leaves[1:]
        owner = self.kernel.range_of[leaf.name]
        if self.tiles.get(owner.name) is not leaf:
            self._open(owner, leaf, lambda: self.grid(rest, body))
            return
        full, _, limit = self._division(owner, leaf)
        inside = lambda: self.grid(rest, body)  # noqa: E731
        self._when(index.lt(leaf.node, full), leaf, lambda: self._open(owner, leaf, inside))
        self._when(
            index.le(full, leaf.node), leaf, lambda: self._tail(owner, limit, leaf, inside)
        )

    def walk(self, items: Sequence[Loop | Stmt]) -> None:
        """Emits loops and statements in order."""
        for item in items:
            if isinstance(item, Stmt):
                self.statement(self.plans[item.name])
                continue
            for statement in item.opens:
                self.initialise(self.plans[statement.name])
            self.leaf(item.leaf, lambda item=item: self._body(item))  # type: ignore[misc]
            for statement in item.opens:
                self.fold(self.plans[statement.name])

    def _body(self, loop: Loop) -> None:
        self.define(loop.scratch)
        self.walk(loop.body)

    def define(self, names: Sequence[str]) -> None:
        """New memory for scratch buffers that live from here on."""
        for name in names:
            size = index.as_int(self.layouts[name].size)
            self.defined[name] = self._memory(name, self.kernel.scratch[name].node.dtype, size)

    def _memory(self, name: str, dtype: DType, size: int) -> Node:
        self.defines += 1
        node = Node(ops.DEFINE, dtype, (), (f"{name}_{self.defines}", size, "thread"))
        return self.place(node, 0)

    # ---- leaves ------------------------------------------------------------------------------------
    def leaf(self, leaf: Leaf, body: Body) -> None:
        """The body for every value of a leaf."""
        owner = self.kernel.range_of[leaf.name]
        limit = self.limits.get(owner.name)
        if leaf.kind == "vector":
            self._in_vector(owner, leaf, limit, body)
        elif leaf.kind == "unroll":
            if limit is not None and limit.rolled:
                rest = index.sub(limit.size, self._inner(owner))
                stop = _ceiling(rest, self.kernel.step(leaf.name))
                self._loop(owner, leaf, index.minimum(stop, leaf.extent), body)
            else:
                self._unrolled(owner, leaf, limit, body)
        elif owner.name not in self.tiles:
            self._loop(owner, leaf, leaf.extent, body)
        elif self.tiles[owner.name] is leaf:
            self._tiles(owner, leaf, body)
        else:
            rest = index.sub(owner.extent, self._outer(owner))
            stop = _ceiling(rest, self.kernel.step(leaf.name))
            self._loop(owner, leaf, index.minimum(stop, leaf.extent), body)

    def _outer(self, owner: Range) -> Node:
        """The value of a range so far: its leaves that are not open are 0."""
        opened = {leaf.name for leaf in self.opened.get(owner.name, ())}
        closed = {
            self.kernel.leaves[name].node: 0 for name in owner.leaves if name not in opened
        }
        return index.substitute(owner.value, {n: 0 for n in closed if n.op is ops.RANGE})

    def _inner(self, owner: Range) -> Node:
        """The position inside the tile so far: only leaves below the tile's loop count."""
        outer = {
            leaf.node: 0
            for leaf in self.opened.get(owner.name, ())
            if leaf.kind in OUTER and leaf.node.op is ops.RANGE
        }
        return index.substitute(self._outer(owner), outer)

    def _division(self, owner: Range, leaf: Leaf) -> tuple[Node, Node, Extent]:
        """(whole tiles, condition under which there is a rest, size of the rest)."""
        tile = self.kernel.step(leaf.name)
        rest = index.sub(owner.extent, self._outer(owner))
        full = index.minimum(index.floordiv(rest, tile), leaf.extent)
        partial = index.both(index.lt(full, leaf.extent), index.lt(index.mul(full, tile), rest))
        return full, partial, index.dim(index.mod(rest, tile))

    def _tiles(self, owner: Range, leaf: Leaf, body: Body) -> None:
        full, partial, limit = self._division(owner, leaf)
        self._loop(owner, leaf, full, body)

        def rest() -> None:
            self.prepare([full])
            self.env[leaf.number] = self.value(full)
            self._tail(owner, limit, leaf, body)
            del self.env[leaf.number]

        self._when(partial, leaf, rest)

    def _tail(self, owner: Range, limit: Extent, leaf: Leaf, body: Body) -> None:
        rolled = owner.tail == "mask" or not isinstance(limit, int)
        self.limits[owner.name] = _Limit(limit, rolled)
        self._open(owner, leaf, body)
        del self.limits[owner.name]

    def _open(self, owner: Range, leaf: Leaf, body: Body) -> None:
        opened = self.opened.setdefault(owner.name, [])
        opened.append(leaf)
        body()
        opened.pop()

    def _when(self, condition: Node, leaf: Leaf, body: Body) -> None:
        """The body in a scope of its own, under a condition (folded where it is known)."""
        if condition is index.FALSE:
            return
        head = None
        if condition is not index.TRUE:
            self.prepare([condition])
            head = Node(ops.IF, void, (self.value(condition),))
        self._scope(head, leaf, body)

    def _scope(self, head: Node | None, leaf: Leaf, body: Body) -> None:
        self.flush()
        scope = Scope(head, leaf.bit)
        self.scopes.append(scope)
        body()
        self.flush()
        self.scopes.pop()
        items = self.scopes[-1].items
        if head is None:
            items.extend(scope.items)
        else:
            items.append(head)
            items.extend(scope.items)
            items.append(Node(ops.END, void, (head,)))

    def _loop(self, owner: Range, leaf: Leaf, stop: Extent, body: Body) -> None:
        stop = index.dim(stop)
        if stop == 0:
            return
        inside = lambda: self._open(owner, leaf, body)  # noqa: E731
        if stop == 1:
            self.env[leaf.number] = 0
            self._scope(None, leaf, inside)
        else:
            first, last = constant(0, INDEX), self._extent(stop)
            head = Node(ops.LOOP, INDEX, (first, last), (leaf.number, 1))
            self.env[leaf.number] = head
            self._scope(head, leaf, inside)
        del self.env[leaf.number]

    def _unrolled(self, owner: Range, leaf: Leaf, limit: _Limit | None, body: Body) -> None:
        assert isinstance(leaf.extent, int)
        step = self.kernel.step(leaf.name)
        for position in range(leaf.extent):
            if limit is not None and self._static_inner(owner) + position * step >= limit.size:  # type: ignore[operator]
                break
            self.env[leaf.number] = position
            self.set_field(leaf, position)
            self._open(owner, leaf, body)
        self.env.pop(leaf.number, None)
        self.set_field(leaf, 0)

    def _static_inner(self, owner: Range) -> int:
        """The position inside the tile, where all its open leaves are unrolled."""
        inner = (leaf for leaf in self.opened.get(owner.name, ()) if leaf.kind not in OUTER)
        return sum(self.kernel.step(leaf.name) * self.env[leaf.number] for leaf in inner)  # type: ignore[misc]

    def _in_vector(self, owner: Range, leaf: Leaf, limit: _Limit | None, body: Body) -> None:
        assert isinstance(leaf.extent, int)
        if limit is not None:
            rest = index.dim(index.sub(limit.size, self._inner_now(owner)))
            if isinstance(rest, Node) or rest < leaf.extent:
                lanes = leaf.extent
                number = index.to_node(rest)
                self.prepare([number])
                depth = self.depth(self.info[number][0])
                existing = self.splat(self.value(number), lanes, depth)
                lane = self.place(Node(ops.LANES, INDEX.vec(lanes)), 0)
                self.lanes_mask = self.place(Node(ops.LT, bool_.vec(lanes), (lane, existing)), depth)
                self.set_field(leaf, lanes + 1)
        self.vector = leaf
        self._open(owner, leaf, body)
        self.vector = self.lanes_mask = None
        self.set_field(leaf, 0)

    def _inner_now(self, owner: Range) -> Node:
        """The position inside the tile with unrolled leaves as the numbers that they are."""
        numbers = {
            leaf.node: self.env[leaf.number]
            for leaf in self.opened.get(owner.name, ())
            if isinstance(self.env.get(leaf.number), int) and leaf.node.op is ops.RANGE
        }
        return index.substitute(self._inner(owner), numbers)  # type: ignore[arg-type]

    # ---- statements ----------------------------------------------------------------------------------
    def statement(self, plan: _Plan) -> None:
        """One execution of a statement (for every lane at once under a vector leaf)."""
        if plan.statement.is_store:
            self._store(plan)
        elif plan.statement.monoid is None:
            self._write_scratch(plan, self.value(plan.values[0]))
        else:
            self._accumulate(plan)

    def _store(self, plan: _Plan) -> None:
        statement = plan.statement
        target = statement.targets[0]
        if ops.numel(target.shape) == 0:
            return
        value = self.value(plan.values[0])
        depth = len(self.scopes) - 1
        guard = None if plan.guard is None else self.value(plan.guard)
        leaf = self.vector
        if leaf is None:
            self._write(plan, self.value(plan.offset), value, guard)
            return
        lanes = leaf.extent
        assert isinstance(lanes, int)
        value = self.splat(value, lanes, depth)
        guard = self.both(guard, self.lanes_mask, depth)
        first, step = self.stride(plan.offset, leaf)
        if step == 1:
            self._write(plan, self.value(first), value, guard)
            return
        for lane in range(lanes):
            part = self.append(Node(ops.LANE, value.dtype.scalar, (value,), lane))
            exists = guard
            if guard is not None and guard.dtype.lanes > 1:
                exists = self.append(Node(ops.LANE, bool_, (guard,), lane))
            self._write(plan, self.at_lane(plan.offset, lane), part, exists)

    def _write(self, plan: _Plan, offset: Node, value: Node, guard: Node | None) -> None:
        """Writes, or combines into what is there."""
        statement = plan.statement
        buffer = self.buffer(statement.targets[0])
        if guard is not None:
            guard = self.splat(guard, value.dtype.lanes, len(self.scopes) - 1)
        rest = () if guard is None else (guard,)
        if statement.monoid is not None:
            old = self.append(Node(ops.READ, value.dtype, (buffer, offset, *rest)))
            (value,) = self._combine(statement.monoid, [old], [value])
        self.append(Node(ops.WRITE, value.dtype, (buffer, offset, value, *rest), statement.hint))

    def _write_scratch(self, plan: _Plan, value: Node) -> None:
        """A copy into scratch: staging."""
        buffer = self.buffer(plan.statement.targets[0])
        leaf = self.vector
        if leaf is None:
            self.append(Node(ops.WRITE, value.dtype, (buffer, self.value(plan.offset), value)))
            return
        assert isinstance(leaf.extent, int)
        value = self.splat(value, leaf.extent, len(self.scopes) - 1)
        first, step = self.stride(plan.offset, leaf)
        if step == 1:
            self.append(Node(ops.WRITE, value.dtype, (buffer, self.value(first), value)))
            return
        for lane in range(leaf.extent):
            part = self.append(Node(ops.LANE, value.dtype.scalar, (value,), lane))
            offset = self.at_lane(plan.offset, lane)
            self.append(Node(ops.WRITE, part.dtype, (buffer, offset, part)))

    # ---- reductions ----------------------------------------------------------------------------------
    def _accumulators(self, plan: _Plan) -> tuple[list[Node], Node, DType | None]:
        """(buffers, one per component; offset; None) of the accumulators at this point."""
        raise NotImplementedError
