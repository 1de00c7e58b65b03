"""From a scheduled kernel to functions: `lower(kernel, name) -> list[Function]`, one per phase.

The walker goes down the loop tree and emits the program stage in order. Where the leaves of a range
cover more than its extent, the innermost loop above the tile (the unrolled and vector leaves) runs
over whole tiles, and a second copy of what is inside runs the rest:

    peel    with static limits: fewer unrolled copies, and lanes masked in the last vector
    mask    rolled: unrolled leaves become loops to a limit computed at run time
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

from treadle.backend.base import Function
from treadle.ir import index, ops
from treadle.ir.dtype import bool_, void
from treadle.ir.dtype import index as INDEX
from treadle.ir.node import Node
from treadle.kernel.actions import require_repeatable
from treadle.kernel.emit import Scope, constant
from treadle.kernel.kernel import Extent, Kernel, Leaf, Range, ScheduleError, Stmt, exact
from treadle.kernel.layout import Layout, layouts, root_buffers
from treadle.kernel.mma import require_tiles_apart
from treadle.kernel.statements import Body, Plan, StatementEmitter
from treadle.kernel.tree import Loop, Phase, phases, require_within_phases

OUTER = ("grid", "local", "loop")


def lower(kernel: Kernel, name: str) -> list[Function]:
    """The functions of a kernel, to be run one after the other; `name` begins their names.

    ScheduleError if the schedule has parts that a CPU cannot run.
    """
    _require_cpu(kernel)
    found = phases(kernel)
    layout, roots = layouts(kernel), root_buffers(kernel)
    return [
        _Walker(kernel, layout, roots).function(phase, name if len(found) == 1 else f"{name}_{n}")
        for n, phase in enumerate(found)
    ]


def _require_cpu(kernel: Kernel) -> None:
    for leaf in kernel.leaves.values():
        if leaf.kind == "local":
            raise ScheduleError(f"{leaf.name} is {leaf.kind}: no CPU has that")
    for owner in kernel.ranges.values():
        if owner.tail == "shift":  # loops may have been exchanged since
            require_repeatable(kernel, owner)
    for scratch in kernel.scratch.values():
        if scratch.scope == "shared":
            raise ScheduleError(f"{scratch.name} is shared by a block: a CPU has no blocks")
    require_within_phases(kernel)
    require_tiles_apart(kernel)


def _inexact(owner: Range, outside: str, inside: str) -> ScheduleError:
    """The error for a tail whose tiles are not walked from the first to the last."""
    return ScheduleError(
        f"range {owner.name}: {outside} is outside {inside}, so its parts must cover exactly "
        f"{index.spell(owner.extent)}; choose sizes that divide it"
    )


@dataclass
class _Limit:
    """What is left of a range in a tail: points of the tile below `size` exist. rolled: the
    unrolled leaves are loops there."""

    size: Extent
    rolled: bool


class _Walker(StatementEmitter):
    """Emits one phase."""

    def __init__(self, kernel: Kernel, layout: dict[str, Layout], roots: dict[str, Node]) -> None:
        super().__init__(kernel, layout, roots)
        self.limits: dict[str, _Limit] = {}
        self.opened: dict[str, list[Leaf]] = {}  # range -> its leaves that are open
        self.plans: dict[str, Plan] = {}
        self.tiles = {
            r.name: self._tile_leaf(r) for r in kernel.ranges.values() if not exact(kernel, r)
        }
        self.matrices = frozenset(name for s in kernel.statements for name in s.mma)

    def _tile_leaf(self, owner: Range) -> Leaf | None:
        """The innermost loop of an inexact range: above it whole tiles are counted. What depends on
        the tile depends on it, for a tail is another piece of code."""
        leaves = [self.kernel.leaves[name] for name in owner.leaves]
        outer = [leaf for leaf in leaves if leaf.kind in OUTER]
        inner = [leaf for leaf in leaves if leaf.kind not in OUTER]
        if leaves != outer + inner:
            raise _inexact(owner, inner[0].name, outer[-1].name)
        names = [leaf.name for leaf in outer]
        for statement in self.kernel.statements:
            walked = [name for name in statement.order if name in names]
            for found, wanted in zip(walked, names):
                if found != wanted:
                    raise _inexact(owner, found, wanted)
        if not outer:
            self.limits[owner.name] = _Limit(owner.extent, not isinstance(owner.extent, int))
            return None
        for leaf in leaves:
            self.closure[leaf.number] = self.closure.get(leaf.number, 0) | outer[-1].bit
        return outer[-1]

    # ---- a phase ---------------------------------------------------------------------------------
    def function(self, phase: Phase, name: str) -> Function:
        """The phase as a function."""
        for statement in _statements(phase.body):
            self.plans[statement.name] = self.plan(statement)
        tasks = index.product(leaf.extent for leaf in phase.grid)
        self._decode(phase.grid, tasks)
        self.define(phase.scratch)
        self.grid(list(phase.grid), lambda: self.walk(phase.body))
        self.flush()
        params = sorted(self.params, key=_parameter_order)
        return Function(name, tuple(params), tuple(self.scopes[0].items), tasks)

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
        inside = functools.partial(self.grid, rest, body)
        if self.tiles.get(owner.name) is not leaf:
            self._open(owner, leaf, inside)
            return
        full, partial, limit = self._division(owner, leaf)
        self._when(index.lt(leaf.node, full), leaf, lambda: self._open(owner, leaf, inside))
        last = index.le(full, leaf.node)
        if leaf.name != owner.leaves[0]:  # there may be none, or more than one beyond the end
            last = index.both(partial, index.eq(leaf.node, full))
        self._when(last, leaf, lambda: self._tail(owner, limit, leaf, inside))

    def walk(self, items: Sequence[Loop | Stmt]) -> None:
        """Emits loops and statements in order."""
        for item in items:
            if isinstance(item, Stmt):
                self.statement(self.plans[item.name])
                continue
            for statement in item.opens:
                self.initialise(self.plans[statement.name])
            self.leaf(item.leaf, functools.partial(self._body, item))
            for statement in item.opens:
                self.fold(self.plans[statement.name])

    def _body(self, loop: Loop) -> None:
        self.define(loop.scratch)
        self.walk(loop.body)

    def define(self, names: Sequence[str]) -> None:
        """New memory for scratch buffers that live from here on."""
        for name in names:
            size = index.as_int(self.layouts[name].size)
            self.defined[name] = self.memory(name, self.kernel.scratch[name].node.dtype, size)

    # ---- leaves ----------------------------------------------------------------------------------
    def leaf(self, leaf: Leaf, body: Body) -> None:
        """The body for every value of a leaf."""
        owner = self.kernel.range_of[leaf.name]
        limit = self.limits.get(owner.name)
        if leaf.kind == "vector":
            self._in_vector(owner, leaf, limit, body)
        elif leaf.name in self.matrices:
            self._in_tile(owner, leaf, body)
        elif leaf.kind == "mma":
            self._in_group(owner, leaf, limit, body)
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
        closed = {self.kernel.leaves[name].node: 0 for name in owner.leaves if name not in opened}
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
        limit = index.dim(index.mod(rest, tile))
        if limit == 0:
            return full, index.FALSE, limit
        partial = index.both(index.lt(full, leaf.extent), index.lt(index.mul(full, tile), rest))
        return full, partial, limit

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
        self.enter(scope)
        body()
        self.flush()
        self.exit()
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
        inside = functools.partial(self._open, owner, leaf, body)
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
        count = leaf.extent
        if limit is not None:
            assert isinstance(limit.size, int)
            count = min(count, -(-(limit.size - self._static_inner(owner)) // step))
        for position in range(count):
            self.env[leaf.number] = position
            self.set_field(leaf, position)
            self._open(owner, leaf, body)
        self.env.pop(leaf.number, None)
        self.set_field(leaf, 0)

    def exists(self, at: dict[Leaf, int]) -> bool:
        """Whether a range that is a single tile has the point where these leaves have these values;
        where the tile is rolled, there is one for all."""
        for name, limit in self.limits.items():
            owner = self.kernel.ranges[name]
            inside = {leaf: n for leaf, n in at.items() if leaf.name in owner.leaves}
            place = sum(self.kernel.step(leaf.name) * n for leaf, n in inside.items())
            end = 1 if limit.rolled else limit.size
            assert isinstance(end, int)
            if inside and place >= end:
                return False
        return True

    def _static_inner(self, owner: Range) -> int:
        """The position inside the tile, where all its open leaves are unrolled."""
        total = 0
        for leaf in self.opened.get(owner.name, ()):
            if leaf.kind not in OUTER:
                position = self.env[leaf.number]
                assert isinstance(position, int)
                total += self.kernel.step(leaf.name) * position
        return total

    def _in_vector(self, owner: Range, leaf: Leaf, limit: _Limit | None, body: Body) -> None:
        assert isinstance(leaf.extent, int)
        if limit is not None:
            left = index.sub(limit.size, self._inner_now(owner))
            rest = index.dim(_ceiling(left, self.kernel.step(leaf.name)))
            if isinstance(rest, Node) or rest < leaf.extent:
                lanes = leaf.extent
                number = index.as_node(rest)
                self.prepare([number])
                depth = self.depth(self.info[number][0])
                existing = self.splat(self.value(number), lanes, depth)
                lane = self.place(Node(ops.LANES, INDEX.vec(lanes)), 0)
                self.lanes_mask = self.place(
                    Node(ops.LT, bool_.vec(lanes), (lane, existing)), depth
                )
                self.set_field(leaf, lanes + 1)
        self.vector = leaf
        self._open(owner, leaf, body)
        self.vector = self.lanes_mask = None
        self.set_field(leaf, 0)

    def _in_group(self, owner: Range, leaf: Leaf, limit: _Limit | None, body: Body) -> None:
        """The body once, for all steps that are inside an instruction; `members` of them exist."""
        assert isinstance(leaf.extent, int)
        members = leaf.extent
        lanes = self.vector is not None and self.vector.name in owner.leaves  # of whole groups
        if limit is not None and not lanes:
            assert isinstance(limit.size, int)
            members = min(members, limit.size - self._static_inner(owner))
        self.group, self.members = leaf, members
        self._open(owner, leaf, body)
        self.group = None

    def _in_tile(self, owner: Range, leaf: Leaf, body: Body) -> None:
        """The body once, for all points of a leaf that is inside a matrix instruction."""
        self.tile = (*self.tile, leaf)
        self._open(owner, leaf, body)
        self.tile = self.tile[:-1]

    def _inner_now(self, owner: Range) -> Node:
        """The position inside the tile with unrolled leaves as the numbers that they are."""
        numbers: dict[Node, int] = {}
        for leaf in self.opened.get(owner.name, ()):
            position = self.env.get(leaf.number)
            if isinstance(position, int) and leaf.node.op is ops.RANGE:
                numbers[leaf.node] = position
        return index.substitute(self._inner(owner), numbers)


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


_PARAMETERS = (ops.ARG, ops.SCALAR, ops.VARIABLE)


def _parameter_order(node: Node) -> tuple[int, int | str]:
    which = node.arg if node.op is ops.SCALAR else node.arg[0]
    return _PARAMETERS.index(node.op), which
