"""What a scheduled kernel would cost, without compiling it: cycles of the busiest thread.

A model of loops over registers and caches, good enough to say which candidates are worth measuring.
Per statement, and per depth of its loops:

    operations    as many vectors a cycle as the target has units for; what does not move with a
                  loop is done outside of it
    chains        an accumulator takes a new term every 4 cycles
    registers     accumulators beyond those that there are go to memory and come back
    accesses      two loads and one store a cycle; at a stride each lane is one
    instructions  six a cycle, those of the loop too; what follows a loop begins late
    caches        the bytes that come from beyond a cache: what is touched inside the outermost loop
                  whose data fit it, times the loops around that one; a line that is stored to is
                  read first, unless the store goes past the caches

Constants are of the order of today's processors; nothing here is exact, and what is measured
decides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import gcd, prod

from treadle.ir import index, ops
from treadle.ir.dtype import index as INDEX
from treadle.ir.node import Node, toposort
from treadle.kernel.analysis import WEIGHTS
from treadle.kernel.kernel import INSIDE, Extent, Kernel, Leaf, Stmt, exact, loads, memory_name
from treadle.kernel.layout import buffer_offset, layouts

LATENCY = 4  # cycles until an accumulator takes the next term
ISSUED = 6  # instructions that begin in a cycle
LOOP = 2  # instructions of a loop beside its body
LEAVE = 8.0  # cycles until what follows a loop is under way
UNIT = 32  # bytes: two such units compute where registers are short, one for each product else
OPERAND = 0.05  # cycles of an access beside its unit: addresses, lines that collide
MASKED = 1.5  # times as long for a tile that is masked
LINE_OF_CODE = 20.0  # cycles: code is compiled and fetched once
LINE = 64  # bytes
# bytes a cycle that one core gets from beyond its first, its second and the last cache
BANDWIDTH = (32.0, 6.0, 4.0)
UNASKED = 1.15  # times as long for what nothing asked for ahead, from beyond the second cache
FAR = 4096  # bytes: rows so far apart are on pages of their own
FAR_LINE = (4.0, 40.0, 60.0)  # cycles for a line on a page of its own, likewise
FAR_ROW = 512  # bytes: what is shorter leaves most of its page alone
PAGES = 64  # whose places the processor remembers
SETS = 64  # of the first cache: rows at a power of 2 fall on few of them
TASK = 150  # cycles to claim a task
PHASE = 4000  # cycles to begin a phase that runs on several threads
ALONE = 3  # lines of code for a lane at a stride: its place, the access, its way into the vector
NEST_LINES = 12  # of code around a statement


@dataclass(frozen=True)
class Cost:
    """cycles: of the busiest thread. lines: of code, about. spilled: registers too few."""

    cycles: float
    lines: float
    spilled: int


@dataclass(frozen=True)
class _Reach:
    """An access: how its flat offset moves with each leaf of the statement, in elements."""

    buffer: str
    moves: Mapping[str, int]
    itemsize: int
    is_store: bool
    is_scratch: bool

    def copies(self, leaves: list[Leaf]) -> int:
        """How many of these leaves' points are places of their own."""
        return prod(_size(n.extent) for n in leaves if self.moves.get(n.name, 0))


@dataclass(frozen=True)
class _Touched:
    """What is touched in some loops. bytes: of whole lines. crowded: one of so many sets of the
    first cache has room for them. far: whether the lines are on pages of their own."""

    bytes: float
    crowded: int
    far: bool

    def held(self, level: int) -> float:
        """The bytes of a cache that this takes up. Beyond the first, pages lie where they may."""
        return self.bytes * self.crowded if level == 0 else self.bytes

    def cycles(self, level: int) -> float:
        """Until the lines are there, from beyond a cache."""
        lines = self.bytes / LINE
        return lines * FAR_LINE[level] if self.far else self.bytes / BANDWIDTH[level]


def estimate(kernel: Kernel) -> Cost:
    """The cost of a kernel as it is scheduled."""
    cycles = lines = 0.0
    spilled = 0
    phases: dict[tuple[str, ...], None] = {}
    near: set[tuple[float, str, tuple[str, ...]]] = set()
    for statement in kernel.statements:
        own = _Statement(kernel, statement)
        accesses = own.accesses()
        cycles += own.cycles(accesses, near)
        lines += own.lines([access for access, _ in accesses])
        spilled = max(spilled, own.spilled)
        tasks = tuple(n for n in statement.order if kernel.leaves[n].kind == "grid")
        phases[tasks] = None
    for tasks in filter(None, phases):
        count = prod(_size(kernel.leaves[name].extent) for name in tasks)
        cycles += PHASE + TASK * -(-count // max(1, kernel.target.threads))
    cycles += LINE_OF_CODE * lines
    return Cost(cycles, lines, spilled)


def _size(extent: Extent) -> int:
    """An extent; a symbolic one is taken to be large."""
    return max(1, extent if isinstance(extent, int) else min(index.bounds(extent)[1], 512))


class _Statement:
    """One statement, with its leaves by kind."""

    def __init__(self, kernel: Kernel, statement: Stmt) -> None:
        self.kernel = kernel
        self.statement = statement
        leaves = [kernel.leaves[name] for name in statement.order]
        self.loops = [n for n in leaves if n.kind in ("grid", "loop")]
        self.unrolled = [n for n in leaves if n.kind == "unroll"]
        lanes = [n for n in leaves if n.kind == "vector"]
        self.lane = lanes[0] if lanes else None
        itemsize = statement.targets[0].dtype.itemsize
        width = kernel.target.vector_bytes // max(1, itemsize) or 1
        self.vectors = -(-_size(self.lane.extent) // width) if self.lane else 1
        units = 2 * UNIT // max(UNIT, kernel.target.vector_bytes)
        self.begun = max(units, kernel.target.products)  # operations in a cycle
        self.spilled = 0
        self.nodes = toposort(tuple(kernel.over_leaves(root) for root in statement.roots))
        values = [kernel.over_leaves(value) for value in statement.values]
        fused = statement.monoid == "add"  # a product is part of its addition
        self.free = {v for v in values if fused and v.op is ops.MUL}

    # ---- points ----------------------------------------------------------------------------------
    def _trips(self, depth: int) -> float:
        """How often the body of the loop at a depth runs, by the busiest thread."""
        total = 1.0
        tasks = 1
        for leaf in self.loops[:depth]:
            if leaf.kind == "grid":
                tasks *= _size(leaf.extent)
            else:
                total *= _size(leaf.extent)
        threads = max(1, self.kernel.target.threads)
        return total * -(-tasks // threads)

    def _depth(self, free: int) -> int:
        """The number of loops that a value with these leaves is inside of."""
        return max((d for d, n in enumerate(self.loops, start=1) if free & n.bit), default=0)

    def _written(self, free: int) -> float:
        """How many values of it are written out in the body: vectors, or single numbers."""
        count = prod(_size(n.extent) for n in self.unrolled if free & n.bit)
        return count * (self.vectors if self.lane and free & self.lane.bit else 1)

    # ---- cycles ----------------------------------------------------------------------------------
    def cycles(
        self, accesses: Sequence[tuple[_Reach, int]], near: set[tuple[float, str, tuple[str, ...]]]
    ) -> float:
        """Of the busiest thread. accesses: what `accesses()` gave; near: see `_memory`."""
        depths = len(self.loops)
        work = [0.0] * (depths + 1)
        reads = [0.0] * (depths + 1)
        writes = [0.0] * (depths + 1)
        beside = [LEAVE] * depths + [0.0]
        for node in self.nodes:
            if node.op.kind == "alu" and node.dtype is not INDEX and node not in self.free:
                weight = WEIGHTS.get(node.op.name, 1)
                work[self._depth(node.free)] += weight * self._written(node.free)
        everything = sum(n.bit for n in (*self.loops, *self.unrolled))
        everything |= self.lane.bit if self.lane else 0
        chain = 0.0
        if self.statement.monoid is not None:
            work[-1] += self._written(everything) * len(self.statement.values)
            chain = self._chain()
            spills = self._spills()
            reads[-1] += spills
            writes[-1] += spills
        for access, depth in accesses:
            (writes if access.is_store else reads)[depth] += self._instructions(access)
            beside[depth] += OPERAND * access.copies(self.unrolled)
        total = 0.0
        for depth in range(depths + 1):
            instructions = work[depth] + reads[depth] + writes[depth] + LOOP
            body = max(work[depth] / self.begun, reads[depth] / 2, writes[depth])
            body = max(body, chain if depth == depths else 0.0, instructions / ISSUED)
            body = body * (MASKED if depth == depths and self._masked() else 1.0) + beside[depth]
            total += self._trips(depth) * body
        memory = self._memory([access for access, _ in accesses], near)
        return max(total, memory) + 0.3 * min(total, memory)

    def _masked(self) -> bool:
        """Whether each of the copies that are written out asks whether it counts."""
        owners = [self.kernel.range_of[n.name] for n in self.unrolled]
        return any(o.tail == "mask" and not exact(self.kernel, o) for o in owners)

    def _accumulators(self) -> int:
        """Accumulators of the body: one for each result, and each part of a reduction that keeps
        its own."""
        reduced, partial = self.statement.reduced, self.statement.partial
        own = (n for n in self.unrolled if n.name not in reduced or n.name in partial)
        lanes = self.vectors if self.lane else 1
        return prod(_size(n.extent) for n in own) * lanes * len(self.statement.values)

    def _chain(self) -> float:
        """Cycles that the additions to one accumulator take, one after the other."""
        if not self.loops or self.loops[-1].name not in self.statement.reduced:
            return 0.0
        reduced, partial = self.statement.reduced, self.statement.partial
        again = (n for n in self.unrolled if n.name in reduced and n.name not in partial)
        return float(LATENCY * prod(_size(n.extent) for n in again))

    def _spills(self) -> int:
        """Accumulators that are read and written in the body: all of them if a loop over results
        is inside one over the sum, else those that find no register."""
        reduced = self.statement.reduced
        rows = [_size(n.extent) for n in self.unrolled if n.name not in reduced]
        accumulators = self._accumulators()
        operands = min(rows, default=1) + 1
        self.spilled = max(0, accumulators + operands - self.kernel.target.registers)
        return 2 * self.spilled + (accumulators if self._kept_in_memory() else 0)

    def _kept_in_memory(self) -> bool:
        """Whether a loop over results is inside one over their sum."""
        order = self.statement.order[self.statement.first_reduced() :]
        inner = (n for n in order if self.kernel.leaves[n].kind == "loop")
        return any(name not in self.statement.reduced for name in inner)

    def _instructions(self, access: _Reach) -> float:
        """Loads or stores in the body."""
        count = float(access.copies(self.unrolled))
        if self.lane is None:
            return count
        step = abs(access.moves.get(self.lane.name, 0))
        if step == 0:
            return count
        if step == 1:
            return count * self.vectors
        return count * _size(self.lane.extent) * 1.5

    # ---- memory ----------------------------------------------------------------------------------
    def accesses(self) -> list[tuple[_Reach, int]]:
        """Every access with the depth of loops that it is inside of."""
        statement = self.statement
        found = []
        for load in loads(statement):
            reach = self._reach(load.src[0], load.src[1 : 1 + load.arg], is_store=False)
            if reach is not None:
                found.append((reach, self._depth_of(reach)))
        copies = statement.monoid is None and not statement.is_store
        if statement.is_store or copies or self._kept_in_memory():
            reach = self._reach(statement.targets[0], statement.index, is_store=True)
            if reach is not None:
                found.append((reach, len(self.loops)))
        return found

    def _depth_of(self, reach: _Reach) -> int:
        moving = (d for d, n in enumerate(self.loops, start=1) if reach.moves.get(n.name, 0))
        return max(moving, default=0)

    def _reach(self, buffer: Node, place: tuple[Node, ...], *, is_store: bool) -> _Reach | None:
        kernel = self.kernel
        name = buffer.arg[0]
        scratch = isinstance(name, str)
        if scratch:
            layout = layouts(kernel).get(name)
            if layout is None or not place:
                return None
            offset = layout.inside(kernel.over_leaves(layout.offset(place)))
        else:
            offset = kernel.over_leaves(buffer_offset(buffer, place))
        moves = {}
        for leaf in (*self.loops, *self.unrolled, *([self.lane] if self.lane else ())):
            if offset.free & leaf.bit:
                step = index.coefficient(offset, leaf.node)
                moves[leaf.name] = step if isinstance(step, int) and step else FAR
        return _Reach(memory_name(buffer), moves, buffer.dtype.itemsize, is_store, scratch)

    def _memory(
        self, accesses: list[_Reach], near: set[tuple[float, str, tuple[str, ...]]]
    ) -> float:
        """Cycles in which bytes come from beyond the caches. near: which cache holds what of which
        buffer in an iteration of which loops already, since a statement before read or wrote it."""
        total = 0.0
        depths = range(len(self.loops), -1, -1)
        touched = {d: [self._touched(a, d) for a in accesses] for d in depths}
        for level, capacity in enumerate(self.kernel.target.cache_bytes[: len(BANDWIDTH)]):
            held = [d for d in depths if sum(t.held(level) for t in touched[d]) <= capacity]
            fitting = min(held, default=len(self.loops))
            if fitting == 0:
                break
            inside = tuple(n.name for n in self.loops[:fitting])
            around = self.loops[fitting - 1]
            for access, touch in zip(accesses, touched[fitting]):
                times = self._trips(fitting)
                if held:  # what the iteration before touched is still there
                    step = abs(access.moves.get(around.name, 0)) * access.itemsize
                    times *= max(1 / _size(around.extent), min(1.0, step / LINE))
                place = (capacity, access.buffer, inside)
                came = place not in near  # else only what was stored goes back
                near.add(place)
                ways = self._ways(access, came, beyond=level > 0)
                total += max(1.0, times) * ways * touch.cycles(level)
        return total

    def _ways(self, access: _Reach, came: bool, beyond: bool) -> float:
        """How often the bytes of an access go over the way between two caches. came: they were not
        there before; beyond: it is one beyond the second cache."""
        if access.is_store:
            return came + (1.0 if beyond and self.statement.hint is None else 0.0)
        asked = any(buffer == access.buffer for buffer, *_ in self.statement.prefetch)
        return came * (UNASKED if beyond and not asked else 1.0)

    def _touched(self, access: _Reach, depth: int) -> _Touched:
        """What an access touches in the loops inside a depth."""
        tile = [*self.unrolled, *([self.lane] if self.lane else ())]
        inner = [n for n in (*self.loops[depth:], *tile) if access.moves.get(n.name, 0)]
        if not inner:
            return _Touched(float(LINE), 1, far=False)
        steps = [abs(access.moves[n.name]) for n in inner]
        apart = min(LINE, min(steps) * access.itemsize)
        size = float(max(LINE, prod(_size(n.extent) for n in inner) * apart))
        strides = [step * access.itemsize // LINE for step in steps]
        whole = prod(_size(n.extent) for n, stride in zip(inner, strides) if stride <= 1)
        crowded = gcd(SETS, *(n for n in strides if n > 1)) // max(1, whole * apart // LINE)
        distant = any(stride > 1 for stride in strides)
        far = not access.is_scratch and self._is_far(access, self.loops[max(0, depth - 1) :])
        return _Touched(size, max(1, crowded) if distant else 1, far)

    def _is_far(self, access: _Reach, loops: Sequence[Leaf]) -> bool:
        """Whether an access walks in these loops over many pages, a few lines of each."""
        tile = [*self.unrolled, *([self.lane] if self.lane else ())]
        moving = [n for n in (*loops, *tile) if access.moves.get(n.name, 0)]
        row = prod(_size(n.extent) for n in moving if abs(access.moves[n.name]) < FAR // 4)
        pages = prod(_size(n.extent) for n in moving) / row
        return pages > PAGES and row * access.itemsize < FAR_ROW

    # ---- code ------------------------------------------------------------------------------------
    def lines(self, accesses: Sequence[_Reach]) -> float:
        """Lines of code, the copies for partial tiles included."""
        kernel = self.kernel
        values = sum(n.dtype is not INDEX for n in self.nodes)
        written = values * prod(_size(n.extent) for n in self.unrolled) * self.vectors
        if self.lane:  # at a stride, each lane is a number of its own
            apart = (a for a in accesses if abs(a.moves.get(self.lane.name, 0)) > 1)
            written += ALONE * _size(self.lane.extent) * sum(a.copies(self.unrolled) for a in apart)
        partial = {
            kernel.range_of[n.name].name
            for n in self.unrolled
            if kernel.range_of[n.name].tail == "peel"
        }
        return (written + NEST_LINES) * prod(1 + _left(kernel, name) for name in partial)


def _left(kernel: Kernel, name: str) -> float:
    """How much of a whole tile the last tile of a range is, if that is a partial one; else 0."""
    owner = kernel.ranges[name]
    tile = prod(
        _size(kernel.leaves[n].extent) for n in owner.leaves if kernel.leaves[n].kind in INSIDE
    )
    return owner.extent % tile / tile if isinstance(owner.extent, int) else 1.0
