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
from functools import cache
from itertools import product

from treadle.backend.base import Function
from treadle.ir import index, ops
from treadle.ir.dtype import DType, bool_, void
from treadle.ir.dtype import index as INDEX
from treadle.ir.monoid import MONOIDS
from treadle.ir.node import Node, toposort
from treadle.kernel.emit import Emitter, Scope, constant
from treadle.kernel.kernel import Extent, Kernel, Leaf, Range, ScheduleError, Stmt, exact
from treadle.kernel.layout import Layout, layouts, root_buffers
from treadle.kernel.tree import Loop, Phase, phases

Body = Callable[[], None]
OUTER = ("grid", "local", "loop")


def lower(kernel: Kernel, name: str) -> list[Function]:
    """The functions of a kernel, to be run one after the other; `name` begins their names."""
    found = phases(kernel)
    layout, roots = layouts(kernel), root_buffers(kernel)
    return [
        _Walker(kernel, layout, roots).function(phase, name if len(found) == 1 else f"{name}_{n}")
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

    def __init__(
        self, kernel: Kernel, layout: dict[str, Layout], roots: dict[str, Node]
    ) -> None:
        super().__init__(kernel, layout, roots)
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
            self.plans[statement.name] = self._plan(statement)
        tasks = index.product(leaf.extent for leaf in phase.grid)
        self._decode(phase.grid, tasks)
        self.define(phase.scratch)
        self.grid(list(phase.grid), lambda: self.walk(phase.body))
        self.flush()
        params = sorted(self.params, key=_parameter_order)
        return Function(name, tuple(params), tuple(self.scopes[0].items), tasks)

    def _plan(self, statement: Stmt) -> _Plan:
        target = statement.targets[0]
        guards = () if statement.guard is None else (statement.guard,)
        roots = (*statement.values, *guards, self.offset(target, statement.index))
        *values, offset = self.flatten(roots)
        if target.arg[0] in self.layouts:
            offset = self.layouts[target.arg[0]].inside(offset)
            self.prepare([offset])
        guard = values.pop() if guards else None
        plan = _Plan(statement, values, offset, guard)
        if not statement.reduced:
            return plan
        accumulators = 1
        parts: list[Node] = []
        for name in statement.order:
            leaf = self.kernel.leaves[name]
            if name not in statement.reduced:
                continue
            if leaf.kind == "vector":
                assert isinstance(leaf.extent, int)
                plan.lanes = leaf.extent
            elif name in statement.partial:
                assert isinstance(leaf.extent, int)
                parts.append(index.mul(leaf.node, accumulators))
                accumulators *= leaf.extent
        if accumulators * plan.lanes > 1:
            size = self.layouts[statement.targets[0].arg[0]].size
            flat = index.add(offset, *(index.mul(p, size) for p in parts))
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
        expression = index.as_node(extent)
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
                number = index.as_node(rest)
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
    def _inside(self, statement: Stmt) -> list[Leaf]:
        """The leaves inside a reduction that tell its results apart."""
        names = statement.order[statement.first_reduced() :]
        return [self.kernel.leaves[name] for name in names if name not in statement.reduced]

    def _nest(self, leaves: Sequence[Leaf], body: Body) -> None:
        """The body for every point of some leaves."""
        if not leaves:
            body()
            return
        self.leaf(leaves[0], lambda: self._nest(leaves[1:], body))

    def _element(self, plan: _Plan, offset: Node) -> tuple[Node, int]:
        """(program offset, lanes) of the accumulators at this point."""
        rolled = {
            leaf.node: 0
            for leaf in map(self.kernel.leaves.__getitem__, plan.statement.partial)
            if isinstance(self.env.get(leaf.number), Node)
        }
        if rolled:  # in a rolled tail all partial accumulators are the first one
            offset = index.substitute(offset, rolled)
            self.prepare([offset])
        if self.vector is None or self.vector.name in plan.statement.reduced:
            return self.value(offset), plan.lanes
        first, step = self.stride(offset, self.vector)
        assert step == 1 and isinstance(self.vector.extent, int)
        return self.value(first), self.vector.extent

    def _buffers(self, plan: _Plan) -> list[Node]:
        targets = plan.statement.targets
        if plan.accumulator is not None:
            return [self.partials[target.arg[0]] for target in targets]
        return [self.buffer(target) for target in targets]

    def initialise(self, plan: _Plan) -> None:
        """Accumulators at the identity."""
        statement = plan.statement
        if plan.accumulator is not None:
            for target in statement.targets:
                memory = self._memory(f"{target.arg[0]}_partial", target.dtype, plan.accumulators)
                self.partials[target.arg[0]] = memory
        partial = [self.kernel.leaves[name] for name in statement.order if name in statement.partial]
        monoid = MONOIDS[statement.monoid or ""]

        def set_identity() -> None:
            place = plan.offset if plan.accumulator is None else plan.accumulator
            offset, lanes = self._element(plan, place)
            for component, buffer in enumerate(self._buffers(plan)):
                value = constant(monoid.identity(component, buffer.dtype), buffer.dtype)
                self.scopes[-1].registers[buffer, offset] = self.splat(value, lanes, 0)

        self._nest(self._inside(statement) + partial, set_identity)

    def _accumulate(self, plan: _Plan) -> None:
        statement = plan.statement
        place = plan.offset if plan.accumulator is None else plan.accumulator
        offset, lanes = self._element(plan, place)
        registers = self.scopes[-1].registers
        buffers = self._buffers(plan)
        old = []
        for buffer in buffers:
            held = registers.get((buffer, offset))
            if held is None:
                held = self.append(Node(ops.READ, buffer.dtype.vec(lanes), (buffer, offset)))
            old.append(held)
        depth = len(self.scopes) - 1
        if _is_product(statement):
            factors = [self.splat(self.value(f), lanes, depth) for f in plan.values[0].src]
            new = [self.append(ops.FMA(*factors, old[0]))]
        else:
            values = [self.splat(self.value(v), lanes, depth) for v in plan.values]
            new = self._combine(statement.monoid or "", old, values)
        if self.lanes_mask is not None and plan.lanes > 1:  # lanes past the end keep what they have
            new = [
                self.append(Node(ops.WHERE, n.dtype, (self.lanes_mask, n, o)))
                for n, o in zip(new, old)
            ]
        for buffer, value in zip(buffers, new):
            registers[buffer, offset] = value

    def fold(self, plan: _Plan) -> None:
        """Partial accumulators, and then their lanes, into the result."""
        statement, place = plan.statement, plan.accumulator
        if place is None:
            return
        self.flush()
        partial = [self.kernel.leaves[name] for name in statement.order if name in statement.partial]
        monoid = statement.monoid or ""

        def fold_one() -> None:
            states = []
            for numbers in product(*(range(index.as_int(leaf.extent)) for leaf in partial)):
                at = {
                    leaf.node: n for leaf, n in zip(partial, numbers) if leaf.node.op is ops.RANGE
                }
                expression = index.substitute(place, at)
                self.prepare([expression])
                offset, lanes = self._element(plan, expression)
                states.append(
                    [
                        self.append(Node(ops.READ, buffer.dtype.vec(lanes), (buffer, offset)))
                        for buffer in self._buffers(plan)
                    ]
                )
            state = self._tree(monoid, states)
            if plan.lanes > 1:
                state = self._across(monoid, state, plan.lanes)
            offset, _ = self._element(plan, plan.offset)
            for target, value in zip(statement.targets, state):
                self.scopes[-1].registers[self.buffer(target), offset] = value

        self._nest(self._inside(statement), fold_one)

    def _across(self, monoid: str, state: list[Node], lanes: int) -> list[Node]:
        """The lanes of a state combined: halves against halves, or lane by lane."""
        if "shuffle" not in self.kernel.target.intrinsics or lanes & (lanes - 1):
            apart = [
                [self.append(Node(ops.LANE, s.dtype.scalar, (s,), lane)) for s in state]
                for lane in range(lanes)
            ]
            return self._tree(monoid, apart)
        half = lanes // 2
        while half:
            turn = tuple((lane + half) % lanes for lane in range(lanes))
            turned = [
                self.append(Node(ops.INTRINSIC, s.dtype, (s, s), ("shuffle", turn)))
                for s in state
            ]
            state = self._combine(monoid, state, turned)
            half //= 2
        return [self.append(Node(ops.LANE, s.dtype.scalar, (s,), 0)) for s in state]

    def _tree(self, monoid: str, states: list[list[Node]]) -> list[Node]:
        """States combined pairwise, neighbours at half the distance each time."""
        while len(states) > 1:
            half = (len(states) + 1) // 2
            low, high = states[:half], states[half:]
            states = [self._combine(monoid, a, b) for a, b in zip(low, high)] + low[len(high) :]
        return states[0]

    def _combine(self, monoid: str, a: Sequence[Node], b: Sequence[Node]) -> list[Node]:
        """The monoid's operation on program nodes."""
        places, roots, order = _template(monoid, tuple(n.dtype.scalar for n in a))
        made: dict[Node, Node] = dict(zip(places, (*a, *b)))
        lanes = max(n.dtype.lanes for n in (*a, *b))
        for node in order:
            if node in made:
                continue
            if node.op is ops.CONST:
                made[node] = self.splat(node, lanes, 0)
                continue
            src = tuple([self.splat(made[s], lanes, len(self.scopes) - 1) for s in node.src])
            made[node] = self.append(Node(node.op, node.dtype.vec(lanes), src, node.arg))
        return [made[root] for root in roots]


def _statements(items: Sequence[Loop | Stmt]) -> list[Stmt]:
    """The statements under some loops, in order."""
    found: list[Stmt] = []
    stack = list(reversed(items))
    while stack:
        item = stack.pop()
        if isinstance(item, Loop):
            stack.extend(reversed(item.body))
        else:
            found.append(item)
    return found


def _ceiling(value: Node, divisor: int) -> Node:
    return index.floordiv(index.add(value, divisor - 1), divisor)


def _is_product(statement: Stmt) -> bool:
    """Whether the statement sums float products, each rounded once with the sum (fma)."""
    value = statement.values[0]
    return statement.monoid == "add" and value.op is ops.MUL and value.dtype.is_float


_PARAMETERS = (ops.ARG, ops.SCALAR, ops.VARIABLE)


def _parameter_order(node: Node) -> tuple[int, int | str]:
    which = node.arg if node.op is ops.SCALAR else node.arg[0]
    return _PARAMETERS.index(node.op), which


@cache
def _template(
    monoid: str, dtypes: tuple[DType, ...]
) -> tuple[tuple[Node, ...], tuple[Node, ...], tuple[Node, ...]]:
    """(places for two states, their combination, every node of it in order)."""
    size = len(dtypes)
    places = tuple(
        Node(ops.PLACEHOLDER, d, (), (number, ())) for number, d in enumerate((*dtypes, *dtypes))
    )
    roots = MONOIDS[monoid].combine(places[:size], places[size:])
    return places, roots, tuple(toposort(roots))
