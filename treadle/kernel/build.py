"""From a kernel node to statements: `build(sink, target) -> Kernel`.

The sinks of a kernel are its stores and its reductions. Each runs under the ranges that are free in
it and, a reduction, under those that it binds: its *path*. A reduction must be complete before a
loop that it does not depend on is entered by what reads it, so

    level(q, sink) = the longest chain of reductions below the sink that do not depend on range q

and sinks with equal paths so far and equal (level, range) share the loop. This one rule places loop
invariants, merges sibling reductions (sum and sum of squares) and makes the three loops of a
softmax one row loop with three inner ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from treadle.backend.base import Target
from treadle.ir import index, ops
from treadle.ir.monoid import spell
from treadle.ir.node import Node, toposort
from treadle.kernel.kernel import Kernel, Leaf, Range, Scratch, Stmt

_LETTERS = "ijklmnopqrstuvwxyz"


@dataclass
class _Sink:
    """A store or a reduction on its way to a statement.

    free: the ranges it depends on, bound: those it reduces, both by number. below: the reductions
    it reads, as a mask of sink positions. chain[q]: level(q, sink).
    """

    node: Node
    position: int
    free: int
    bound: tuple[int, ...]
    below: int
    path: tuple[int, ...] = ()
    chain: dict[int, int] = field(default_factory=dict)


def build(sink: Node, target: Target) -> Kernel:
    """The kernel of a SINK of stores (docs/design.md, section 3), unscheduled: every leaf a
    loop. Ranges that vmap added to a kernel with a written schedule stand outermost."""
    order = toposort(sink)
    sizes = {n.arg[0]: n.arg[1] for n in order if n.op is ops.RANGE}
    sinks = _collect(order)
    _find_paths(sinks, sizes, () if sink.arg is None else sink.arg[1])
    placer = _Placer(sizes, target)
    placer.rewrite(order, sinks)
    placer.place(sinks, 0, ())
    return Kernel(tuple(placer.statements), placer.leaves, placer.ranges, placer.scratch, target)


def _collect(order: Sequence[Node]) -> list[_Sink]:
    """The sinks in dependency order, each with the reductions that it reads directly."""
    below: dict[Node, int] = {}
    sinks: list[_Sink] = []
    for node in order:
        mask = 0
        for s in node.src:
            mask |= below[s]
        if node.op is ops.KREDUCE or node.op is ops.STORE:
            ranges = node.src[node.arg[1] :] if node.op is ops.KREDUCE else ()
            bound = tuple(sorted(r.arg[0] for r in ranges if r.op is ops.RANGE))
            position = len(sinks)
            sinks.append(_Sink(node, position, node.free, bound, mask))
            mask = 1 << position
        below[node] = mask
    return sinks


def _bits(mask: int) -> list[int]:
    """The positions of the bits that are set, lowest first."""
    found = []
    while mask:
        low = mask & -mask
        found.append(low.bit_length() - 1)
        mask ^= low
    return found


def _find_paths(sinks: list[_Sink], sizes: dict[int, int | Node], outermost: Sequence[int]) -> None:
    """Paths and levels. Ranges that no reduction binds stand outermost, so that reductions nest in
    the loops of what reads them; else ranges stand in the order of their numbers."""
    times_bound = dict.fromkeys(sizes, 0)
    for sink in sinks:
        for number in sink.bound:
            times_bound[number] += 1
    for sink in sinks:
        free = sorted(
            _bits(sink.free),
            key=lambda number: (number not in outermost, times_bound[number], number),
        )
        sink.path = (*free, *sink.bound)
        for number in sizes:
            reads = (sinks[p] for p in _bits(sink.below))
            sink.chain[number] = max(
                (r.chain[number] + (not r.free >> number & 1) for r in reads), default=0
            )
    # a store may wait for the last loop that stores over the same ranges: they share it
    stores = [s for s in sinks if s.node.op is ops.STORE]
    for sink in stores:
        alike = [s for s in stores if s.path == sink.path]
        for number in sink.path:
            sink.chain[number] = max(s.chain[number] for s in alike)


class _Placer:
    """Makes statements, leaves and ranges while it walks down the tree of loops."""

    def __init__(self, sizes: dict[int, int | Node], target: Target) -> None:
        self.sizes = sizes
        self.target = target
        self.statements: list[Stmt] = []
        self.leaves: dict[str, Leaf] = {}
        self.ranges: dict[str, Range] = {}
        self.scratch: dict[str, Scratch] = {}
        self.uses: dict[int, int] = {}  # how many loops a range has so far
        self.next_number = max(sizes, default=-1) + 1
        self.value: dict[Node, Node] = {}  # with reductions replaced by loads of scratch
        self.results: dict[Node, tuple[Node, ...]] = {}  # of a reduction: one node per component

    # ---- expressions -----------------------------------------------------------------------------
    def rewrite(self, order: Sequence[Node], sinks: list[_Sink]) -> None:
        """Fills `value`: every node with each reduction read from its scratch buffer."""
        position = {s.node: s for s in sinks}
        for node in order:
            if node.op is ops.KREDUCE:
                self.results[node] = self._results(position[node])
                self.value[node] = self.results[node][0]
            elif node.op is ops.OUT:
                self.value[node] = self.results[node.src[0]][node.arg]
            else:
                self.value[node] = index.rebuild(node, tuple([self.value[s] for s in node.src]))

    def _results(self, sink: _Sink) -> tuple[Node, ...]:
        """What stands for a reduction in expressions: loads of its scratch buffers, or its values
        where it has nothing to reduce over (all its ranges are of size 1)."""
        monoid, count = sink.node.arg
        values = sink.node.src[:count]
        if not sink.bound:
            return tuple(self.value[v] for v in values)
        free = sink.path[: len(sink.path) - len(sink.bound)]
        place = tuple(index.range_(n, self.sizes[n]) for n in free)
        shape = tuple(self.sizes[n] for n in free)
        number = len(self.scratch)
        loads = []
        for component, value in enumerate(values):
            name = f"{spell(monoid)}{number}" + (f"_{component}" if component else "")
            target = Node(ops.ARG, value.dtype, (), (name, shape))
            self.scratch[name] = Scratch(name, target)
            loads.append(Node(ops.LOAD, target.dtype, (target, *place), len(place)))
        return tuple(loads)

    # ---- the tree of loops -----------------------------------------------------------------------
    def place(self, sinks: list[_Sink], depth: int, prefix: tuple[tuple[int, str], ...]) -> None:
        """Emits the statements of sinks whose paths begin with the ranges of `prefix`, a sequence
        of (range, leaf)."""
        remaining = list(sinks)
        while remaining:
            group = self._next_group(remaining, depth)
            taken = {s.position for s in group}
            remaining = [s for s in remaining if s.position not in taken]
            if len(group[0].path) == depth:
                self._emit(group[0], prefix)
                continue
            number = group[0].path[depth]
            leaf = self._open(number)
            self.place(group, depth + 1, (*prefix, (number, leaf)))

    def _next_group(self, remaining: list[_Sink], depth: int) -> list[_Sink]:
        """The sinks that come next: of the lowest level whose members wait for none outside."""
        groups: dict[tuple[int, int, int], list[_Sink]] = {}
        for sink in remaining:
            if len(sink.path) == depth:
                key = (0, -1, sink.position)
            else:
                key = (sink.chain[sink.path[depth]], sink.path[depth], 0)
            groups.setdefault(key, []).append(sink)
        waiting = 0
        for sink in remaining:
            waiting |= 1 << sink.position
        for key in sorted(groups):
            group = groups[key]
            own = sum(1 << s.position for s in group)
            if all(not s.below & waiting & ~own for s in group):
                return group
        return [next(s for s in remaining if not s.below & waiting)]

    def _open(self, number: int) -> str:
        """A new loop over a range. The first keeps the range's own RANGE node."""
        used = self.uses[number] = self.uses.get(number, 0) + 1
        letter = _LETTERS[number] if number < len(_LETTERS) else f"r{number}_"
        name = letter if used == 1 else f"{letter}{used}"
        own = number
        if used > 1:
            own = self.next_number
            self.next_number += 1
        leaf = Leaf(name, self.sizes[number], own)
        self.leaves[name] = leaf
        self.ranges[name] = Range(name, leaf.extent, own, (name,), leaf.node)
        return name

    def _emit(self, sink: _Sink, prefix: tuple[tuple[int, str], ...]) -> None:
        renamed = {}
        for number, name in prefix:
            old = index.range_(number, self.sizes[number])
            if self.leaves[name].node is not old:
                renamed[old] = self.leaves[name].node
        order = tuple(name for _, name in prefix)
        node = sink.node
        if node.op is ops.KREDUCE:
            if not sink.bound:
                return
            monoid, count = node.arg
            targets = tuple(load.src[0] for load in self.results[node])
            place = self.results[node][0].src[1:]
            values = tuple(self.value[s] for s in node.src[:count])
            if monoid == "add":
                values = tuple(without_needless_guards(v) for v in values)
            reduced = frozenset(name for number, name in prefix if number in sink.bound)
            statement = Stmt(targets[0].arg[0], targets, place, values, monoid, order, reduced)
        else:
            axes, monoid = node.arg
            target, value, *rest = (self.value[s] for s in node.src)
            guard = rest[axes] if len(rest) > axes else None
            name = f"store{sum(s.is_store for s in self.statements)}"
            statement = Stmt(
                name, (target,), tuple(rest[:axes]), (value,), monoid, order, guard=guard
            )
        self.statements.append(substituted(statement, renamed))


def without_needless_guards(value: Node) -> Node:
    """A product of which one factor is a load under a guard: the other factor's loads need not have
    that guard too, if they stay inside their buffers without it. Where it is false the product is 0
    all the same (of finite numbers)."""
    if value.op is not ops.MUL or not value.dtype.is_float:
        return value
    first, second = value.src
    for guarded, other in ((first, second), (second, first)):
        if guarded.op is ops.LOAD and len(guarded.src) > 1 + guarded.arg:
            given = set(_conditions(guarded.src[-1]))
            new = _unguarded(other, given)
            if new is not other:
                other_first = guarded is second
                return Node(ops.MUL, value.dtype, (new, guarded) if other_first else (guarded, new))
    return value


def _conditions(guard: Node) -> list[Node]:
    """The conditions that a guard demands."""
    found: list[Node] = []
    stack = [guard]
    while stack:
        part = stack.pop()
        if part.op is ops.AND:
            stack.extend(part.src)
        else:
            found.append(part)
    return found


def _unguarded(root: Node, given: set[Node]) -> Node:
    """An expression whose loads are without the given conditions, where they stay inside."""
    new: dict[Node, Node] = {}
    for node in toposort(root):
        src = tuple([new[s] for s in node.src])
        if node.op is ops.LOAD and len(src) > 1 + node.arg:
            place = src[1 : 1 + node.arg]
            inside = all(
                index.le(0, i) is index.TRUE and index.lt(i, size) is index.TRUE
                for i, size in zip(place, node.src[0].shape)
            )
            left = [c for c in _conditions(src[-1]) if c not in given]
            if inside:
                rest = (index.both(*left),) if left else ()
                new[node] = Node(ops.LOAD, node.dtype, (*src[: 1 + node.arg], *rest), node.arg)
                continue
        new[node] = index.rebuild(node, src) if src else node
    return new[root]


def substituted(statement: Stmt, mapping: dict[Node, Node]) -> Stmt:
    """The statement with leaves' nodes replaced in all its expressions."""
    if not mapping:
        return statement
    replaced = [index.substitute(root, mapping) for root in statement.roots]
    values, place = len(statement.values), len(statement.index)
    return replace(
        statement,
        values=tuple(replaced[:values]),
        index=tuple(replaced[values : values + place]),
        guard=replaced[-1] if statement.guard is not None else None,
    )
