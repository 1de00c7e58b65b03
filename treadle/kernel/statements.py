"""Statements and reductions as program nodes, one execution at a time.

Accumulators of a reduction are scratch elements. Between loops they are kept in values
(`registers`), so that an unrolled tile with constant offsets needs no memory at all after
promotion. Partial accumulators (one per step of a `cooperate` leaf, one per lane of a reduced
vector) are memory of their own, folded into the result when the reduction closes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product

from treadle.ir import index, ops
from treadle.ir.dtype import DType, bool_, void
from treadle.ir.monoid import find, places
from treadle.ir.node import Node, toposort
from treadle.kernel.dot import dot_for, narrow_factors
from treadle.kernel.emit import constant
from treadle.kernel.kernel import Kernel, Leaf, ScheduleError, Stmt, memory_name
from treadle.kernel.layout import Layout
from treadle.kernel.tile_values import TileEmitter

Body = Callable[[], None]


@dataclass
class Plan:
    """A statement with its loads flattened. offset: of its target. accumulator: of the partial
    accumulators, where there are any; lanes: how wide each is."""

    statement: Stmt
    values: list[Node]
    offset: Node
    guard: Node | None
    accumulator: Node | None = None
    accumulators: int = 0
    lanes: int = 1
    prefetched: tuple[tuple[Node, Node, bool], ...] = ()  # (buffer, offset, past the caches)


class StatementEmitter(TileEmitter):
    """Emits statements; `lower.py` walks the loops around them."""

    def __init__(self, kernel: Kernel, layout: dict[str, Layout], roots: dict[str, Node]) -> None:
        super().__init__(kernel, layout, roots)
        self.partials: dict[str, Node] = {}  # scratch buffer -> the DEFINE of partial accumulators
        self.square: list[Node] = []  # vectors of a square that is being copied

    def leaf(self, leaf: Leaf, body: Body) -> None:
        """The body for every value of a leaf."""
        raise NotImplementedError

    def exists(self, at: dict[Leaf, int]) -> bool:
        """Whether accumulators that a tail leaves out are among these: leaves and their values."""
        raise NotImplementedError

    def memory(self, name: str, dtype: DType, size: int) -> Node:
        """New scratch memory, defined at the head of the function."""
        self.defines += 1
        node = Node(ops.DEFINE, dtype, (), (f"{name}_{self.defines}", size, "thread"))
        return self.place(node, 0)

    def plan(self, statement: Stmt) -> Plan:
        target = statement.targets[0]
        guards = () if statement.guard is None else (statement.guard,)
        roots = (*statement.values, *guards, self.offset(target, statement.index))
        *values, offset = self.flatten(roots)
        if target.arg[0] in self.layouts:
            offset = self.layouts[target.arg[0]].inside(offset)
            self.prepare([offset])
        guard = values.pop() if guards else None
        asked = self._prefetched(statement, values, offset) if statement.prefetch else ()
        plan = Plan(statement, values, offset, guard, prefetched=asked)
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
        outside = statement.order[: statement.first_reduced()]
        nodes = (self.kernel.leaves[name].node for name in outside)
        inside = index.substitute(offset, {n: 0 for n in nodes if n.op is ops.RANGE})
        if accumulators * plan.lanes > 1 or inside is not offset:  # it may not stay in registers
            size = index.bounds(inside)[1] + 1  # results of one run of the reduction
            flat = index.add(inside, *(index.mul(p, size) for p in parts))
            plan.accumulator = index.mul(flat, plan.lanes)
            plan.accumulators = accumulators * size * plan.lanes
            self.prepare([plan.accumulator])
        return plan

    def _prefetched(
        self, statement: Stmt, values: Sequence[Node], offset: Node
    ) -> tuple[tuple[Node, Node, bool], ...]:
        """(buffer, offset, past the caches) of what is to be asked for beside each execution. An
        index that lies in memory is the one of now: there may be none ahead."""
        found: list[tuple[Node, Node, bool]] = []
        places = [n.src[:2] for n in toposort(values) if n.op is ops.READ]
        if statement.is_store:
            places.append((statement.targets[0], offset))
        for buffer, name, ahead, past_caches in statement.prefetch:
            node = self.kernel.leaves[name].node
            for accessed, place in places:
                if memory_name(accessed) == buffer and node.op is ops.RANGE:
                    now = {n: n for n in toposort(place) if n.op is ops.READ}
                    later = index.substitute(place, {node: index.add(node, ahead), **now})
                    found.append((accessed, later, past_caches))
        self.prepare([offset for _, offset, _ in found])
        return tuple(found)

    def _prefetch(self, plan: Plan) -> None:
        inside = (*self.tile, *(() if self.group is None else (self.group,)))
        for buffer, offset, past_caches in plan.prefetched:
            offset = index.substitute(offset, {leaf.node: 0 for leaf in inside})
            self.prepare([offset])
            if self.vector is not None:
                offset, _ = self.stride(offset, self.vector)
            place = (self.buffer(buffer), self.value(offset))
            name = ("prefetch", "nontemporal") if past_caches else ("prefetch",)
            # what is written out asks once for what it reads several times
            self.place(Node(ops.INTRINSIC, void, place, name), len(self.scopes) - 1)

    # ---- statements ------------------------------------------------------------------------------
    def statement(self, plan: Plan) -> None:
        """One execution of a statement (for every lane at once under a vector leaf)."""
        self._prefetch(plan)
        if plan.statement.is_store:
            self._store(plan)
        elif self.tile and plan.statement.monoid is None:
            self.copy_tile(plan.statement.targets[0], plan.offset, plan.values[0])
        elif self.group is not None and plan.statement.monoid is None:
            first = index.substitute(plan.offset, {self.group.node: 0})
            self.prepare([first])
            self._write_scratch(plan, first, self.value(self.grouped(plan.values[0])))
        elif plan.statement.monoid is None:
            self._write_scratch(plan, plan.offset, self.value(plan.values[0]))
        else:
            self._accumulate(plan)

    def _store(self, plan: Plan) -> None:
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

    def _write(self, plan: Plan, offset: Node, value: Node, guard: Node | None) -> None:
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

    def _write_scratch(self, plan: Plan, place: Node, value: Node) -> None:
        """A copy into scratch: staging."""
        buffer = self.buffer(plan.statement.targets[0])
        leaf = self.vector
        if leaf is None:
            self.append(Node(ops.WRITE, value.dtype, (buffer, self.value(place), value)))
            return
        assert isinstance(leaf.extent, int)
        value = self.splat(value, leaf.extent, len(self.scopes) - 1)
        if plan.statement.turned:
            self._write_turned(plan, leaf, place, value)
            return
        first, step = self.stride(place, leaf)
        if step == value.dtype.itemsize // buffer.dtype.itemsize:
            self.append(Node(ops.WRITE, value.dtype, (buffer, self.value(first), value)))
            return
        for lane in range(leaf.extent):
            part = self.append(Node(ops.LANE, value.dtype.scalar, (value,), lane))
            offset = self.at_lane(place, lane)
            self.append(Node(ops.WRITE, part.dtype, (buffer, offset, part)))

    def _write_turned(self, plan: Plan, read: Leaf, place: Node, value: Node) -> None:
        """Once all vectors of a square are there, writes it along the other leaf."""
        self.square.append(value)
        if len(self.square) < value.dtype.lanes:
            return
        write = self.kernel.leaves[plan.statement.turned]
        buffer = self.buffer(plan.statement.targets[0])
        first, step = self.stride(place, write)
        if step != value.dtype.itemsize // buffer.dtype.itemsize:
            raise ScheduleError(f"what is written along {write.name} does not lie side by side")
        for lane, row in enumerate(self._transposed(self.square)):
            offset = index.substitute(first, {read.node: lane})
            self.prepare([offset])
            self.append(Node(ops.WRITE, row.dtype, (buffer, self.value(offset), row)))
        self.square = []

    def _transposed(self, rows: list[Node]) -> list[Node]:
        """A square of vectors, turned: blocks off the diagonal change places, large ones first."""
        size = len(rows)
        half = size // 2
        while half:
            low = tuple(n if not n & half else size + n - half for n in range(size))
            high = tuple(n + half if not n & half else size + n for n in range(size))
            rows = [
                self.append(
                    Node(
                        ops.INTRINSIC,
                        row.dtype,
                        (rows[n & ~half], rows[n | half]),
                        ("shuffle", high if n & half else low),
                    )
                )
                for n, row in enumerate(rows)
            ]
            half //= 2
        return rows

    # ---- reductions ------------------------------------------------------------------------------
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

    def _element(self, plan: Plan, offset: Node) -> tuple[Node, int]:
        """(program offset, lanes) of the accumulators at this point."""
        rolled = {
            leaf.node: 0
            for leaf in map(self.kernel.leaves.__getitem__, plan.statement.partial)
            if isinstance(self.env.get(leaf.number), Node)
        }
        if rolled:  # in a rolled tail all partial accumulators are the first one
            offset = index.substitute(offset, rolled)
            self.prepare([offset])
        if self.tile:
            return self.tile_place(offset)
        if self.vector is None or self.vector.name in plan.statement.reduced:
            return self.value(offset), plan.lanes
        first, step = self.stride(offset, self.vector)
        if step != 1:
            raise ScheduleError(
                f"the results of {plan.statement.name} do not lie side by side along "
                f"{self.vector.name}"
            )
        assert isinstance(self.vector.extent, int)
        return self.value(first), self.vector.extent

    def _buffers(self, plan: Plan) -> list[Node]:
        targets = plan.statement.targets
        if plan.accumulator is not None:
            return [self.partials[target.arg[0]] for target in targets]
        return [self.buffer(target) for target in targets]

    def initialise(self, plan: Plan) -> None:
        """Accumulators at the identity."""
        statement = plan.statement
        if plan.accumulator is not None:
            for target in statement.targets:
                memory = self.memory(f"{target.arg[0]}_partial", target.dtype, plan.accumulators)
                self.partials[target.arg[0]] = memory
        partial = [
            self.kernel.leaves[name] for name in statement.order if name in statement.partial
        ]
        monoid = find(statement.monoid or "")

        def set_identity() -> None:
            place = plan.offset if plan.accumulator is None else plan.accumulator
            offset, lanes = self._element(plan, place)
            for component, buffer in enumerate(self._buffers(plan)):
                value = constant(monoid.identity(component, buffer.dtype), buffer.dtype)
                self.scopes[-1].registers[buffer, offset] = self.splat(value, lanes, 0)

        self._nest(self._inside(statement) + partial, set_identity)

    def _accumulate(self, plan: Plan) -> None:
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
        if self.tile:
            new = [self.products(statement, plan.values[0], old[0])]
        elif self.group is not None:
            new = [self._dot(plan, old[0], lanes, depth)]
        elif _is_product(statement):
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

    def _dot(self, plan: Plan, old: Node, lanes: int, depth: int) -> Node:
        """A sum after the products of a group, by one instruction."""
        dot = dot_for(self.kernel, plan.statement)
        assert dot is not None
        groups = [self.grouped(f) for f in narrow_factors(dot, plan.values[0])]
        factors = [self.splat(self.value(g), lanes, depth) for g in groups]
        return self.append(Node(ops.INTRINSIC, old.dtype, (old, *factors), dot.arg))

    def fold(self, plan: Plan) -> None:
        """Partial accumulators, and then their lanes, into the result."""
        statement, place = plan.statement, plan.accumulator
        if place is None:
            return
        self.flush()
        partial = [
            self.kernel.leaves[name] for name in statement.order if name in statement.partial
        ]
        monoid = statement.monoid or ""

        def fold_one() -> None:
            states = []
            for numbers in product(*(range(index.as_int(leaf.extent)) for leaf in partial)):
                if not self.exists(dict(zip(partial, numbers))):
                    continue
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

    def _across(self, monoid: str | Node, state: list[Node], lanes: int) -> list[Node]:
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
                self.append(Node(ops.INTRINSIC, s.dtype, (s, s), ("shuffle", turn))) for s in state
            ]
            state = self._combine(monoid, state, turned)
            half //= 2
        return [self.append(Node(ops.LANE, s.dtype.scalar, (s,), 0)) for s in state]

    def _tree(self, monoid: str | Node, states: list[list[Node]]) -> list[Node]:
        """States combined pairwise, neighbours at half the distance each time."""
        while len(states) > 1:
            half = (len(states) + 1) // 2
            low, high = states[:half], states[half:]
            states = [self._combine(monoid, a, b) for a, b in zip(low, high)] + low[len(high) :]
        return states[0]

    def _combine(self, monoid: str | Node, a: Sequence[Node], b: Sequence[Node]) -> list[Node]:
        """The monoid's operation on program nodes."""
        states, roots, order = _template(monoid, tuple(n.dtype.scalar for n in a))
        made: dict[Node, Node] = dict(zip(states, (*a, *b)))
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


def _is_product(statement: Stmt) -> bool:
    """Whether the statement sums float products, each rounded once with the sum (fma)."""
    value = statement.values[0]
    return statement.monoid == "add" and value.op is ops.MUL and value.dtype.is_float


@cache
def _template(
    monoid: str | Node, dtypes: tuple[DType, ...]
) -> tuple[tuple[Node, ...], tuple[Node, ...], tuple[Node, ...]]:
    """(places for two states, their combination, every node of it in order)."""
    first, second = places(dtypes)
    roots = find(monoid).combine(first, second)
    return (*first, *second), roots, tuple(toposort(roots))
