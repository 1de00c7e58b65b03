"""Expressions of the kernel stage as nodes of the program stage, each at the outermost place.

The walker (`lower.py`) opens and closes scopes (loops, conditions) and says what every leaf is now:
a loop counter, a number (unrolled), or the lanes of a vector. `Emitter.value(node)` then gives the
program node of a kernel node. It is emitted once, in the outermost open scope that binds what it
depends on: loop-invariant hoisting and common subexpressions are the same look-up, since kernel and
program nodes are interned. Addresses are sums; each partial sum is placed by the same rule.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import reduce

from treadle import config
from treadle.ir import index, ops
from treadle.ir.dots import GROUP
from treadle.ir.dtype import DType, bool_, uint8, uint16
from treadle.ir.dtype import index as INDEX
from treadle.ir.node import Node, toposort
from treadle.kernel.kernel import Kernel, Leaf
from treadle.kernel.layout import Layout, buffer_offset

Register = tuple[Node, Node]  # (buffer, offset)
STRIDES = (2, 3, 4)  # elements from lane to lane that are read as whole vectors


def constant(value: int | float | bool, dtype: DType) -> Node:
    """A CONST with this value."""
    return Node(ops.CONST, dtype, (), dtype.to_bits(value))


@dataclass
class Scope:
    """An open loop, condition or block. items: what is emitted in it so far. bound: the leaves that
    it binds, as a mask. memo: values by (kernel node, state). placed: program nodes that stand in
    it. registers: elements of scratch that have not been written back: their current values."""

    head: Node | None = None
    bound: int = 0
    items: list[Node] = field(default_factory=list)
    memo: dict[tuple[Node, int], Node] = field(default_factory=dict)
    placed: set[Node] = field(default_factory=set)
    registers: dict[Register, Node] = field(default_factory=dict)


class Emitter:
    """Turns values into program nodes; the base of the walker."""

    def __init__(self, kernel: Kernel, layouts: dict[str, Layout], roots: dict[str, Node]) -> None:
        self.kernel = kernel
        self.layouts = layouts
        self.roots = roots  # scratch buffers that the caller provides
        self.scopes = [Scope()]
        self.params: dict[Node, None] = {}
        self.defined: dict[str, Node] = {}  # scratch buffer -> the DEFINE that is it now
        self.defines = 0
        self.depths: dict[int, int] = {}  # needs -> depth, for the scopes that are open now
        # what the leaves are: by number, a program node or a plain number
        self.env: dict[int, Node | int] = {}
        self.state = 0  # the numbers of unrolled leaves, each in a field of its own
        self.fields: dict[int, tuple[int, int]] = {}  # leaf number -> (shift, mask) in the state
        self.vector: Leaf | None = None  # the leaf that is in lanes now
        self.lanes_mask: Node | None = None  # which lanes exist, where not all of them do
        self.lane: int | None = None  # set while one lane is computed by itself
        self.group: Leaf | None = None  # the leaf whose steps are inside an instruction now
        self.members = 0  # how many of its steps exist
        self.groups: dict[tuple[Node, int], Node] = {}  # (value, members) -> its group
        self.tile: tuple[Leaf, ...] = ()  # the leaves that are inside a matrix instruction now
        # by kernel node: the leaves that its value depends on now, and their fields of the state
        self.info: dict[Node, tuple[int, int]] = {}
        self.closure: dict[
            int, int
        ] = {}  # leaf number -> leaves that its tail depends on, as a mask
        self.over_leaves: dict[Node, Node] = {}  # flat expressions over ranges -> over leaves
        self.strides: dict[tuple[Node, int], tuple[Node, int | None]] = {}
        self._assign_fields()

    def _assign_fields(self) -> None:
        shift = 0
        for leaf in self.kernel.leaves.values():
            if leaf.kind in ("unroll", "vector"):
                assert isinstance(leaf.extent, int)
                width = (leaf.extent + 2).bit_length()
                self.fields[leaf.number] = (shift, ((1 << width) - 1) << shift)
                shift += width

    def set_field(self, leaf: Leaf, value: int) -> None:
        """Writes a leaf's field of the state."""
        shift, mask = self.fields[leaf.number]
        self.state = self.state & ~mask | value << shift

    # ---- preparation -----------------------------------------------------------------------------
    def flatten(self, roots: Sequence[Node]) -> list[Node]:
        """The expressions over leaves, with every LOAD as a READ at a flat offset."""
        new: dict[Node, Node] = {}
        for node in toposort(roots):
            src = tuple([new[s] for s in node.src])
            if node.op is ops.LOAD:
                new[node] = self._flat_load(node, src)
            else:
                new[node] = index.rebuild(node, src) if src else node
        flat = [self.kernel.over_ranges(new[root]) for root in roots]
        over = self.over_leaves
        for node in toposort(flat):
            if node in over:
                continue
            src = tuple([over[s] for s in node.src])
            if node.op is ops.RANGE:
                over[node] = self.kernel.values.get(node, node)
            elif node.op is ops.READ and node.src[0].arg[0] in self.layouts:
                inside = self.layouts[node.src[0].arg[0]].inside(src[1])
                over[node] = index.rebuild(node, (src[0], inside, *src[2:]))
            else:
                over[node] = index.rebuild(node, src) if src else node
        flat = [over[root] for root in flat]
        self.prepare(flat)
        return flat

    def _flat_load(self, node: Node, src: tuple[Node, ...]) -> Node:
        buffer, place = src[0], src[1 : 1 + node.arg]
        if ops.numel(buffer.shape) == 0:
            return constant(0, node.dtype)  # nothing can be read from an empty buffer
        return Node(
            ops.READ, node.dtype, (buffer, self.offset(buffer, place), *src[1 + node.arg :])
        )

    def offset(self, buffer: Node, place: Sequence[Node]) -> Node:
        """The flat offset of an element."""
        if isinstance(buffer.arg[0], str):
            return self.layouts[buffer.arg[0]].offset(place)
        return buffer_offset(buffer, place)

    def prepare(self, roots: Sequence[Node]) -> None:
        """Finds what each node depends on."""
        info = self.info
        for node in toposort([r for r in roots if r not in info]):
            if node in info:
                continue
            needs = 0
            if node.op is ops.RANGE:
                needs = node.free | self.closure.get(node.arg[0], 0)
            elif node.op is ops.READ and isinstance(node.src[0].arg[0], str):
                needs = self.layouts[node.src[0].arg[0]].mask
            for s in node.src:
                needs |= info[s][0]
            fields = 0
            for number, (_, mask) in self.fields.items():
                if needs >> number & 1:
                    fields |= mask
            info[node] = (needs, fields)

    # ---- placing ---------------------------------------------------------------------------------
    def depth(self, needs: int) -> int:
        """The outermost open scope in which a value that depends on these leaves can stand."""
        found = self.depths.get(needs)
        if found is None:
            found = len(self.scopes) - 1
            while found and not needs & self.scopes[found].bound:
                found -= 1
            self.depths[needs] = found
        return found

    def enter(self, scope: Scope) -> None:
        """Opens a scope."""
        self.scopes.append(scope)
        self.depths.clear()

    def exit(self) -> Scope:
        """Closes the innermost scope."""
        self.depths.clear()
        return self.scopes.pop()

    def place(self, node: Node, depth: int) -> Node:
        """The program node, emitted in the scope at `depth` unless it stands there already."""
        scope = self.scopes[depth]
        if node not in scope.placed:
            scope.placed.add(node)
            scope.items.append(node)
        return node

    def append(self, node: Node) -> Node:
        """The program node, emitted here and now: for what changes or reads changing memory."""
        self.scopes[-1].items.append(node)
        return node

    def flush(self) -> None:
        """Writes scratch elements that are held in values back to memory."""
        registers = self.scopes[-1].registers
        for (buffer, offset), value in registers.items():
            self.append(Node(ops.WRITE, value.dtype, (buffer, offset, value)))
        registers.clear()

    def splat(self, value: Node, lanes: int, depth: int) -> Node:
        """The value in every lane (as it is if it is a vector already)."""
        if value.dtype.lanes > 1 or lanes == 1:
            return value
        return self.place(Node(ops.SPLAT, value.dtype.vec(lanes), (value,)), depth)

    def param(self, node: Node) -> Node:
        """A buffer, a run-time number or a variable, noted as a parameter."""
        self.params[node] = None
        return node

    # ---- values ----------------------------------------------------------------------------------
    def value(self, root: Node) -> Node:
        """The program node that has the value of a prepared kernel node at this point."""
        found = self._known(root)
        stack = [] if found is not None else [root]
        while stack:
            node = stack[-1]
            sources = self._operands(node)
            known = [self._known(s) for s in sources]
            operands = [value for value in known if value is not None]
            if len(operands) < len(sources):
                missing = [s for s, value in zip(sources, known) if value is None]
                stack.extend(reversed(missing))
                continue
            stack.pop()
            needs, fields = self.info[node]
            depth = self.depth(needs)
            found = _RULES[node.op](self, node, depth, operands)
            self.scopes[depth].memo[node, self.state & fields] = found
        assert found is not None
        return found

    def _known(self, node: Node) -> Node | None:
        """The value of a node, if it stands in an open scope."""
        needs, fields = self.info[node]
        depth = self.depths.get(needs)
        if depth is None:
            depth = self.depth(needs)
        return self.scopes[depth].memo.get((node, self.state & fields))

    def _operands(self, node: Node) -> Sequence[Node]:
        """The nodes that must have values before this one: usually its sources."""
        if node.op is ops.READ or node.op is ops.CHECK:
            if self._in_lanes(node):
                return self._vector_operands(node)
            return node.src[1:] if node.op is ops.READ else node.src
        return node.src

    def _in_lanes(self, node: Node) -> bool:
        return self.vector is not None and bool(node.free & self.vector.bit)

    def at_lane(self, node: Node, lane: int) -> Node:
        """The value of a node in one lane of the vector, as a scalar."""
        leaf = self.vector
        assert leaf is not None
        before = self.state
        self.vector, self.lane, self.env[leaf.number] = None, lane, lane
        self.set_field(leaf, lane + 1)
        found = self.value(node)
        self.vector, self.lane, self.state = leaf, None, before
        del self.env[leaf.number]
        return found

    def pack(self, node: Node, depth: int) -> Node:
        """A vector computed lane by lane: gathers and whatever else has no vector form."""
        assert self.vector is not None
        lanes = self.vector.extent
        assert isinstance(lanes, int)
        parts = tuple([self.at_lane(node, lane) for lane in range(lanes)])
        return self.place(Node(ops.PACK, node.dtype.vec(lanes), parts), depth)

    # ---- memory ----------------------------------------------------------------------------------
    def stride(self, offset: Node, leaf: Leaf) -> tuple[Node, int | None]:
        """(offset of lane 0, stride of the lanes); a stride of None if the offset is not affine in
        the lane or the stride is not known."""
        key = (offset, leaf.number)
        found = self.strides.get(key)
        if found is None:
            rest, moving = index.split(offset, leaf.node)
            step = index.coefficient(moving, leaf.node)
            affine = isinstance(step, int) and moving is index.mul(leaf.node, step)
            self.prepare([rest])
            found = self.strides[key] = (rest, step if affine and isinstance(step, int) else None)
        return found

    def grouped(self, node: Node) -> Node:
        """The values of a prepared kernel node at all steps of the group, as one number each."""
        assert self.group is not None
        found = self.groups.get((node, self.members))
        if found is None:
            found = _in_one_read(node, self.group, self._whole(node)) or _by_parts(
                node, self.group, self.members
            )
            self.prepare([found])
            self.groups[node, self.members] = found
        return found

    def _whole(self, node: Node) -> bool:
        """Whether memory has all elements of the group: also those past the end, as zeros, where it
        is scratch memory in groups."""
        assert self.group is not None
        scratch = self.kernel.scratch.get(node.src[0].arg[0]) if node.op is ops.READ else None
        return self.members == self.group.extent or (scratch is not None and bool(scratch.group))

    def _vector_operands(self, node: Node) -> Sequence[Node]:
        if node.op is ops.READ and self.vector is not None:
            first, step = self.stride(node.src[1], self.vector)
            if step == elements(node) or self._is_strided(node, step):
                return (first, *node.src[2:])
        return ()  # computed lane by lane

    def _is_strided(self, node: Node, step: int | None) -> bool:
        """Whether lanes that are a few elements apart are read as whole vectors: no guard says that
        what lies between two of them is not in the buffer."""
        plain = len(node.src) == 2 and elements(node) == 1
        return plain and step in STRIDES and "shuffle" in self.kernel.target.intrinsics

    def buffer(self, node: Node) -> Node:
        """What a program addresses for a buffer: a parameter, or the scratch buffer as it is
        now."""
        name = node.arg[0]
        if name in self.defined:
            return self.defined[name]
        return self.param(self.roots.get(name, node))

    def lane_exists(self, depth: int) -> Node | None:
        """The condition under which the lane that is computed now exists; None: always."""
        if self.lane is None or self.lanes_mask is None:
            return None
        return self.place(Node(ops.LANE, bool_, (self.lanes_mask,), self.lane), depth)

    def both(self, a: Node | None, b: Node | None, depth: int) -> Node | None:
        """Both conditions (None is true), scalars spread over the lanes of the other."""
        if a is None or b is None:
            return a if b is None else b
        lanes = max(a.dtype.lanes, b.dtype.lanes)
        a, b = self.splat(a, lanes, depth), self.splat(b, lanes, depth)
        return self.place(Node(ops.AND, bool_.vec(lanes), (a, b)), depth)

    def _read(self, node: Node, depth: int, operands: Sequence[Node]) -> Node:
        in_lanes = self._in_lanes(node)
        lanes = 1
        if in_lanes:
            if not operands:
                return self.pack(node, depth)
            assert self.vector is not None and isinstance(self.vector.extent, int)
            lanes = self.vector.extent
            first, step = self.stride(node.src[1], self.vector)
            if step != elements(node):
                assert step is not None
                return self._strided(node, first, step, depth)
        offset, *guards = operands
        own = node.src[0].arg[0] in self.defined
        buffer = self.buffer(node.src[0])
        if isinstance(node.src[0].arg[0], str):
            held = self.scopes[-1].registers.get((buffer, offset))
            if held is not None and held.dtype.lanes == lanes and depth == len(self.scopes) - 1:
                return held
            self.flush()
        guard = self.splat(guards[0], lanes, depth) if guards else None
        if not own and (in_lanes or self.lane is not None):
            exists = self.lanes_mask if in_lanes else self.lane_exists(depth)
            guard = self.both(guard, exists, depth)
        src = (buffer, offset) if guard is None else (buffer, offset, guard)
        return self.place(Node(ops.READ, node.dtype.vec(lanes), src), depth)

    def _strided(self, node: Node, first: Node, step: int, depth: int) -> Node:
        """Every step-th of some elements, from vectors side by side. The last of them ends with the
        last element that counts, so none goes past it."""
        assert self.vector is not None and isinstance(self.vector.extent, int)
        lanes = self.vector.extent
        if isinstance(node.src[0].arg[0], str):
            self.flush()
        buffer = self.buffer(node.src[0])
        own = node.src[0].arg[0] in self.defined
        dtype = node.dtype.vec(lanes)
        last = (step - 1) * (lanes - 1)
        starts = [*range(0, last, lanes), last]
        parts = []
        for start in starts:
            begin = index.add(first, start)
            self.prepare([begin])
            guard = None if own else self._between(step, start, depth)
            src = (buffer, self.value(begin), *(() if guard is None else (guard,)))
            parts.append(self.place(Node(ops.READ, dtype, src), depth))
        result, *others = parts
        chosen = [step * lane % lanes for lane in range(lanes)]
        for part, start in zip(others, starts[1:]):
            for lane in range(lanes):
                if 0 <= step * lane - start < lanes:
                    chosen[lane] = lanes + step * lane - start
            shuffle = ("shuffle", tuple(chosen))
            result = self.place(Node(ops.INTRINSIC, dtype, (result, part), shuffle), depth)
            chosen = list(range(lanes))
        return result

    def _between(self, step: int, start: int, depth: int) -> Node | None:
        """Which elements of a vector that begins `start` after the first lie up to the last lane
        that exists, if not all lanes do."""
        if self.lanes_mask is None:
            return None
        lane, existing = self.lanes_mask.src
        end = self._times(existing, step, depth)
        before = self.splat(constant(1 - step - start, INDEX), lane.dtype.lanes, 0)
        end = self.place(ops.ADD(end, before), depth)
        return self.place(Node(ops.LT, self.lanes_mask.dtype, (lane, end)), depth)

    # ---- rules by op -----------------------------------------------------------------------------
    def _leaf_value(self, node: Node, depth: int, operands: Sequence[Node]) -> Node:
        now = self.env.get(node.arg[0])
        if now is None:
            assert self.vector is not None and isinstance(self.vector.extent, int)
            return self.place(Node(ops.LANES, INDEX.vec(self.vector.extent)), 0)
        return now if isinstance(now, Node) else constant(now, INDEX)

    def _as_it_is(self, node: Node, depth: int, operands: Sequence[Node]) -> Node:
        return node if node.op is ops.CONST else self.param(node)

    def _alu(self, node: Node, depth: int, operands: Sequence[Node]) -> Node:
        """The operation on program nodes, scalars spread where one is a vector."""
        dtype = node.dtype
        lanes = max([o.dtype.lanes for o in operands])
        if lanes > 1:
            dtype = dtype.vec(lanes)
            operands = [
                o if o.dtype.lanes > 1 else self.splat(o, lanes, self.depth(self.info[s][0]))
                for o, s in zip(operands, node.src)
            ]
        return self.place(Node(node.op, dtype, tuple(operands), node.arg), depth)

    def _sum(self, node: Node, depth: int, operands: Sequence[Node]) -> Node:
        """constant + sum of coefficient * atom, outer atoms first, so that each partial sum is
        invariant in the loops inside it. Numbers are added here; vectors come last."""
        total: int = node.arg[0]
        scalars: list[tuple[int, Node, int]] = []
        vectors: list[tuple[Node, int]] = []
        for atom, factor, value in zip(node.src, node.arg[1], operands):
            if value.op is ops.CONST:
                total += factor * value.arg
            elif value.dtype.lanes > 1:
                vectors.append((value, factor))
            else:
                scalars.append((self.depth(self.info[atom][0]), value, factor))
        scalars.sort(key=lambda part: part[0])
        result: Node | None = None
        for at, value, factor in scalars:
            term = self._times(value, factor, at)
            result = term if result is None else self.place(ops.ADD(result, term), at)
        if result is None:
            result = constant(total, INDEX)
        elif total:
            result = self.place(ops.ADD(result, constant(total, INDEX)), depth)
        for value, factor in vectors:
            term = self._times(value, factor, depth)
            spread = self.splat(result, value.dtype.lanes, depth)
            result = self.place(ops.ADD(spread, term), depth)
        return result

    def _times(self, value: Node, factor: int, depth: int) -> Node:
        if factor == 1:
            return value
        by = self.splat(constant(factor, INDEX), value.dtype.lanes, 0)
        return self.place(ops.MUL(value, by), depth)

    def _product(self, node: Node, depth: int, operands: Sequence[Node]) -> Node:
        first, *others = operands
        for other in others:
            lanes = max(first.dtype.lanes, other.dtype.lanes)
            pair = self.splat(first, lanes, depth), self.splat(other, lanes, depth)
            first = self.place(ops.MUL(*pair), depth)
        return first

    def _divide(self, node: Node, depth: int, operands: Sequence[Node]) -> Node:
        """floor(a / b) or a mod b for b > 0 by the truncating operations. A dividend that may be
        negative is first moved up by a multiple of a constant divisor, or corrected afterwards."""
        quotient = node.op is ops.IFLOOR
        op = ops.TDIV if quotient else ops.TMOD
        a, b = operands
        lanes = max(a.dtype.lanes, b.dtype.lanes)
        a, b = self.splat(a, lanes, depth), self.splat(b, lanes, depth)

        def number(n: int) -> Node:
            return self.splat(constant(n, INDEX), lanes, 0)

        low = index.bounds(node.src[0])[0]
        divisor = node.src[1]
        if low >= 0:
            return self.place(op(a, b), depth)
        if divisor.op is ops.CONST:
            up = -(low // divisor.arg)
            moved = self.place(ops.ADD(a, number(up * divisor.arg)), depth)
            result = self.place(op(moved, b), depth)
            return self.place(ops.SUB(result, number(up)), depth) if quotient else result
        rest = self.place(ops.TMOD(a, b), depth)
        below = self.place(ops.LT(rest, number(0), dtype=bool_.vec(lanes)), depth)
        truncated = self.place(ops.TDIV(a, b), depth) if quotient else rest
        change = ops.SUB(truncated, number(1)) if quotient else ops.ADD(rest, b)
        corrected = self.place(change, depth)
        return self.place(ops.WHERE(below, corrected, truncated, dtype=a.dtype), depth)

    def _extreme(self, node: Node, depth: int, operands: Sequence[Node]) -> Node:
        op = ops.MAX if node.op is ops.IMAX else ops.MIN
        return self._alu(Node(op, INDEX, node.src), depth, operands)

    def _check(self, node: Node, depth: int, operands: Sequence[Node]) -> Node:
        """The index brought into [0, size); outside, the error flag is set."""
        if self._in_lanes(node):
            return self.pack(node, depth)
        position, size = operands
        zero = constant(0, INDEX)
        if config.CHECK_INDEX:
            below = self.place(ops.LT(position, zero), depth)
            above = self.place(ops.LE(size, position), depth)
            wrong: Node | None = self.place(ops.OR(below, above), depth)
            wrong = self.both(wrong, self.lane_exists(depth), depth)
            assert wrong is not None
            self.place(Node(ops.FLAG, wrong.dtype, (wrong,), node.arg), depth)
        last = self.place(ops.ADD(size, constant(-1, INDEX)), depth)
        inside = self.place(ops.MIN(position, last), depth)
        return self.place(ops.MAX(inside, zero), depth)


def elements(node: Node) -> int:
    """How many elements of its buffer one lane of a READ holds."""
    held, element = node.dtype.itemsize, node.src[0].dtype.itemsize
    return int(held // element)


def _in_one_read(node: Node, group: Leaf, whole: bool) -> Node | None:
    """A group that lies in memory as it is, as a READ; None if it does not."""
    if node.op is not ops.READ or not whole or any(s.free & group.bit for s in node.src[2:]):
        return None
    first, moving = index.split(node.src[1], group.node)
    if moving is not group.node:
        return None
    return Node(ops.READ, GROUP, (node.src[0], first, *node.src[2:]))


def _by_parts(node: Node, group: Leaf, members: int) -> Node:
    """A group put together from its members; those that do not exist are zeros."""
    bits = next(d for d in (uint8, uint16) if d.itemsize == node.dtype.itemsize)
    parts: list[Node] = []
    for member in range(members):
        one = index.substitute(node, {group.node: member})
        one = one if node.dtype is bits else Node(ops.BITCAST, bits, (one,))
        wide = Node(ops.CAST, GROUP, (one,))
        shift = constant(bits.bits * member, GROUP)
        parts.append(Node(ops.SHL, GROUP, (wide, shift)) if member else wide)
    return reduce(lambda a, b: Node(ops.OR, GROUP, (a, b)), parts)


_Rule = Callable[[Emitter, Node, int, Sequence[Node]], Node]
_RULES: dict[ops.Op, _Rule] = {
    op: Emitter._alu for op in ops.TABLE.values() if op.kind == "alu" and "k" in op.stages
}
_RULES |= {
    ops.CONST: Emitter._as_it_is,
    ops.SCALAR: Emitter._as_it_is,
    ops.VARIABLE: Emitter._as_it_is,
    ops.RANGE: Emitter._leaf_value,
    ops.READ: Emitter._read,
    ops.ISUM: Emitter._sum,
    ops.IPROD: Emitter._product,
    ops.IFLOOR: Emitter._divide,
    ops.IMOD: Emitter._divide,
    ops.IMAX: Emitter._extreme,
    ops.IMIN: Emitter._extreme,
    ops.CHECK: Emitter._check,
}
