"""The representation on which schedules act: statements under shared loops.

A `Kernel` is a list of statements. Each names, outermost first, the *leaves* (loops) it runs under;
adjacent statements share the loops of the longest common prefix, so the loop tree follows from the
list. Values are nodes of the kernel stage over the RANGE nodes of leaves. There are two kinds of
statement:

    store    writes `values[0]` to `targets[0][index]` (a buffer of the call), under `guard`; with a
             monoid it combines into what is there, in order (scatter)
    reduce   accumulates `values` over the leaves in `reduced` into scratch buffers. It starts from
             the monoid's identity when the first reduced loop opens; its result can be read after
             that loop has closed
    copy     a reduce without reduced leaves and without a monoid: writes scratch (staging)

A scratch buffer is addressed logically, one index per dimension, like any other buffer. What it
occupies follows from the schedule: the leaves that its writer and all its readers share need no
room.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import takewhile
from math import prod
from typing import Any

from treadle.backend.base import Target
from treadle.ir import index, ops
from treadle.ir.monoid import spell
from treadle.ir.node import Node, toposort

Extent = int | Node

# the order in which leaves of these kinds stand in a statement, outermost first
KINDS = ("grid", "local", "loop", "unroll", "vector", "mma")
INSIDE = ("unroll", "vector", "mma")  # those of a tile
TAILS = ("peel", "mask", "shift")
SCOPES = ("thread", "shared", "root")


class ScheduleError(ValueError):
    """An action that cannot be applied. The message says why, in the words of the action."""


@dataclass(frozen=True)
class Leaf:
    """One loop: its name, how often it runs, its number in expressions, and what becomes of it.

    kind: "grid" (tasks of the pool, blocks of a GPU) | "local" (threads of a block) | "loop" |
    "unroll" | "vector" (lanes) | "mma" (inside a matrix or dot instruction). slot: threads of a
    block that several local leaves share. snake: an unrolled leaf that is walked to and fro.
    """

    name: str
    extent: Extent
    number: int
    kind: str = "loop"
    slot: int | None = None
    snake: bool = False

    @cached_property
    def node(self) -> Node:
        """Its value in an expression (the constant 0 if it runs once)."""
        return index.range_(self.number, self.extent)

    @property
    def bit(self) -> int:
        """Its bit in `Node.free`."""
        return 1 << self.number


@dataclass(frozen=True)
class Range:
    """A range of the kernel in one loop of the tree: the leaves it was split into, outermost first,
    and its value over them. Expressions of statements are over the nodes of ranges; which leaves
    these are is looked up last, so an action need not rewrite expressions.

    Points with value >= extent do not exist; `tail` says how they are avoided: "peel" (the code
    again with static limits) | "mask" (a second, rolled copy with limits computed at run time) |
    "shift" (the last tile moves back and repeats some points). Two kinds of ranges have no leaves:
    a part of a fused range, whose value is over the node of the whole; and, if `is_place`, the
    place in a tile of its own (`Detach`), whose value is over the leaves around the tile and the
    node of the range inside it.
    """

    name: str
    extent: Extent
    number: int
    leaves: tuple[str, ...]
    value: Node
    tail: str = "peel"
    is_place: bool = False

    @cached_property
    def node(self) -> Node:
        """What stands for it in expressions (the constant 0 if it has one point)."""
        return index.range_(self.number, self.extent)


@dataclass(frozen=True)
class Stmt:
    """One statement; see the head of this file.

    targets, values: one per component of the monoid's state. order: leaves, outermost first.
    partial: reduced leaves that keep an accumulator each, folded when the reduction closes.
    guard: a store happens only where it is true. hint: "nontemporal" or None.
    mma: the leaves (m, n, k) that a matrix instruction computes; inflight: its groups left running;
    skew: iterations of the loop by which the statement runs late. prefetch: (buffer, leaf, n, past
    the caches or not): what is read of the buffer n iterations of the leaf later is asked for now.
    turned: the unrolled leaf along which a copy writes vectors, where it reads them along another.
    """

    name: str
    targets: tuple[Node, ...]
    index: tuple[Node, ...]
    values: tuple[Node, ...]
    monoid: str | Node | None
    order: tuple[str, ...]
    reduced: frozenset[str] = frozenset()
    partial: frozenset[str] = frozenset()
    guard: Node | None = None
    hint: str | None = None
    mma: tuple[str, ...] = ()
    inflight: int = 0
    skew: int = 0
    prefetch: tuple[tuple[str, str, int, bool], ...] = ()
    turned: str = ""

    @property
    def is_store(self) -> bool:
        """Whether it writes a buffer of the call."""
        return isinstance(self.targets[0].arg[0], int)

    @property
    def roots(self) -> tuple[Node, ...]:
        """Every expression in it: values, index, guard."""
        return (
            (*self.values, *self.index)
            if self.guard is None
            else (*self.values, *self.index, self.guard)
        )

    def first_reduced(self) -> int:
        """The position in `order` of the first reduced leaf (the length if there is none)."""
        for position, name in enumerate(self.order):
            if name in self.reduced:
                return position
        return len(self.order)


@dataclass(frozen=True)
class Scratch:
    """Memory of the kernel's own: one per component of a reduction, and one per stage.

    node: the ARG by which expressions address it. scope: "thread" | "shared" (of a block) | "root"
    (of the whole kernel: what writes it is a phase of its own). layout: names of a staged
    operand's dimensions, outermost first. block: the innermost of them is cut in blocks of so many
    elements, with everything else inside a block. group: (dimension, size): so many elements of
    this dimension lie side by side, inside everything else. pad: elements added to a row; swizzle:
    bytes, 0 for none; copy: "plain" | "register" | "cp4" | "cp16" | "tma"; depth: slots of the
    pipeline; producer: a warp of its own issues the copies. shape: the piece that is held at a
    time, by dimension.
    """

    name: str
    node: Node
    scope: str = "thread"
    layout: tuple[str, ...] = ()
    pad: int = 0
    swizzle: int = 0
    copy: str = "plain"
    depth: int = 1
    producer: int = 0
    shape: tuple[int, ...] = ()
    block: int = 0
    group: tuple[int, int] | None = None


@dataclass(frozen=True)
class Kernel:
    """Statements, their leaves and ranges, and scratch buffers, for a target."""

    statements: tuple[Stmt, ...]
    leaves: Mapping[str, Leaf]
    ranges: Mapping[str, Range]
    scratch: Mapping[str, Scratch]
    target: Target
    persist: int = 0
    occupancy: int = 0

    # ---- looking up ------------------------------------------------------------------------------
    def leaf(self, name: str) -> Leaf:
        """The leaf called `name`."""
        if name not in self.leaves:
            raise ScheduleError(f"no leaf is called {name!r}; there are {', '.join(self.leaves)}")
        return self.leaves[name]

    def statement(self, name: str) -> Stmt:
        """The statement called `name`."""
        for statement in self.statements:
            if statement.name == name:
                return statement
        names = ", ".join(s.name for s in self.statements)
        raise ScheduleError(f"no statement is called {name!r}; there are {names}")

    @cached_property
    def range_of(self) -> dict[str, Range]:
        """The range that each leaf belongs to."""
        return {name: r for r in self.ranges.values() for name in r.leaves}

    @cached_property
    def by_number(self) -> dict[int, Leaf]:
        """Leaves by the number of their RANGE node."""
        return {leaf.number: leaf for leaf in self.leaves.values()}

    @cached_property
    def reads(self) -> tuple[frozenset[str], ...]:
        """For each statement, the names of the scratch buffers that it reads."""
        return tuple(scratch_reads(s) for s in self.statements)

    @cached_property
    def parts(self) -> dict[Node, Node]:
        """The node of every range that was fused, as an expression over the node of the whole."""
        owners = [r for r in self.ranges.values() if not r.leaves and not r.is_place]
        found = {r.node: r.value for r in owners if r.node.op is ops.RANGE}
        fused = sum(node.free for node in found)
        for node in found:
            while found[node].free & fused:  # a part of a whole that is itself a part
                found[node] = index.substitute(found[node], found)
        return found

    @cached_property
    def values(self) -> dict[Node, Node]:
        """The node of every range that is not itself a leaf, as an expression over leaves."""
        found: dict[Node, Node] = {}
        for owner in self.ranges.values():
            if owner.leaves and owner.node.op is ops.RANGE:
                value = self._shifted(owner) if owner.tail == "shift" else owner.value
                if value is not owner.node:
                    found[owner.node] = value
        for owner in self.ranges.values():
            if owner.is_place and owner.node.op is ops.RANGE:
                found[owner.node] = index.substitute(self.over_ranges(owner.value), found)
        return found

    def _shifted(self, owner: Range) -> Node:
        """The value of a range whose last tile moves back, so as to end where the range does."""
        assert isinstance(owner.extent, int)
        inner = {n for n in owner.leaves if self.leaves[n].kind in INSIDE}
        within = {self.leaves[n].node: 0 for n in owner.leaves if n not in inner}
        outside = {self.leaves[n].node: 0 for n in inner}
        tile = index.substitute(owner.value, _ranges_only(within))
        start = index.substitute(owner.value, _ranges_only(outside))
        last = owner.extent - 1 - index.bounds(tile)[1]
        return owner.value if last < 0 else index.add(index.minimum(start, last), tile)

    @cached_property
    def facts(self) -> dict[str, Any]:
        """What was found out about this kernel, to be looked up again."""
        return {}

    @cached_property
    def _moved(self) -> list[tuple[Node, Node]]:
        return list(self.values.items())

    def over_ranges(self, root: Node) -> Node:
        """An expression of a statement, over the nodes of ranges that have leaves. Addresses must
        be whole by then: a sum over the parts of a fused range folds to the range, its terms do
        not."""
        return index.substitute(root, self.parts) if self.parts else root

    def over_leaves(self, root: Node) -> Node:
        """An expression of a statement, over the nodes of leaves."""
        root = self.over_ranges(root)
        free = root.free
        moved = tuple([pair for pair in self._moved if pair[0].free & free])
        return _substituted(root, moved) if moved else root

    def fresh_numbers(self) -> Iterator[int]:
        """Numbers that no leaf and no range has."""
        used = (*self.by_number, *(r.number for r in self.ranges.values()))
        number = max(used, default=-1) + 1
        while True:
            yield number
            number += 1

    def step(self, name: str) -> int:
        """By how much the leaf's range grows with it: the points of the leaves inside it."""
        leaves = self.range_of[name].leaves
        inner = leaves[leaves.index(name) + 1 :]
        return prod(index.as_int(self.leaves[n].extent) for n in inner)

    # ---- changing --------------------------------------------------------------------------------
    def with_leaves(self, *changed: Leaf) -> Kernel:
        """The kernel with these leaves in place of those of the same name."""
        return replace(self, leaves={**self.leaves, **{leaf.name: leaf for leaf in changed}})

    def with_statement(self, changed: Stmt) -> Kernel:
        """The kernel with this statement in place of the one of the same name."""
        statements = tuple(changed if s.name == changed.name else s for s in self.statements)
        return replace(self, statements=statements)

    def arranged(self) -> Kernel:
        """The kernel with the leaves of every statement in the order of their kinds."""

        def rank(name: str) -> int:
            return KINDS.index(self.leaves[name].kind)

        orders = [tuple(sorted(s.order, key=rank)) for s in self.statements]
        if all(s.order == order for s, order in zip(self.statements, orders)):
            return self
        statements = tuple(replace(s, order=o) for s, o in zip(self.statements, orders))
        return replace(self, statements=statements)

    def __str__(self) -> str:
        return show_kernel(self)


@lru_cache(maxsize=4096)  # an action changes few ranges: what depends on the others stays
def _substituted(root: Node, pairs: tuple[tuple[Node, Node], ...]) -> Node:
    return index.substitute(root, dict(pairs))


def _ranges_only(mapping: dict[Node, int]) -> dict[Node, int]:
    """Without the nodes of leaves that run once: those are the constant 0 already."""
    return {node: value for node, value in mapping.items() if node.op is ops.RANGE}


def shared_prefix(orders: Iterable[Sequence[str]]) -> tuple[str, ...]:
    """The longest common prefix of some orders."""
    first, *others = orders
    length = len(first)
    for order in others:
        same = 0
        while same < min(length, len(order)) and order[same] == first[same]:
            same += 1
        length = same
    return tuple(first[:length])


def kept(statement: Stmt) -> tuple[str, ...]:
    """The leaves that tell a statement's results apart: those that it does not reduce over."""
    return tuple(name for name in statement.order if name not in statement.reduced)


def loads(statement: Stmt) -> tuple[Node, ...]:
    """Every LOAD of a statement, sources before users."""
    return _loads_below(statement.roots)


def memory_name(node: Node) -> str:
    """What actions call memory: a scratch buffer's name, or `arg` and a buffer's position."""
    name: int | str = node.arg[0]
    return name if isinstance(name, str) else f"arg{name}"


@lru_cache(maxsize=64)  # most actions change the loops of a statement, and none of its expressions
def _loads_below(roots: tuple[Node, ...]) -> tuple[Node, ...]:
    return tuple(n for n in toposort(roots) if n.op is ops.LOAD)


def replaced(statement: Stmt, mapping: dict[Node, Node]) -> Stmt:
    """The statement with nodes replaced in its values and guard."""
    new: dict[Node, Node] = dict(mapping)
    for node in toposort(statement.roots):
        if node not in new:
            new[node] = index.rebuild(node, tuple([new[s] for s in node.src]))
    values = tuple(new[v] for v in statement.values)
    guard = None if statement.guard is None else new[statement.guard]
    return replace(
        statement, values=values, guard=guard, index=tuple(new[i] for i in statement.index)
    )


def scratch_reads(statement: Stmt) -> frozenset[str]:
    """The names of the scratch buffers that a statement reads."""
    names = (n.src[0].arg[0] for n in loads(statement))
    return frozenset(name for name in names if isinstance(name, str))


def home(kernel: Kernel, name: str) -> tuple[str, ...]:
    """The leaves that the writer of a scratch buffer shares with all its readers, and with every
    statement between: inside them the buffer lives. A reduced leaf of the writer is never shared,
    and lanes are not: all of them are written before one is read. What one statement writes has one
    home."""
    written = [{target.arg[0] for target in s.targets} for s in kernel.statements]
    names = next(targets for targets in written if name in targets)
    touching = [
        n
        for n, targets in enumerate(written)
        if not names.isdisjoint(targets) or not names.isdisjoint(kernel.reads[n])
    ]
    between = kernel.statements[touching[0] : touching[-1] + 1]
    writer = between[0]
    shared = shared_prefix([writer.order[: writer.first_reduced()], *(s.order for s in between)])
    return tuple(takewhile(lambda leaf: kernel.leaves[leaf].kind != "vector", shared))


def exact(kernel: Kernel, owner: Range) -> bool:
    """Whether the leaves of a range cover its extent and no more (or repeat points of it)."""
    if len(owner.leaves) < 2:
        return True
    if isinstance(owner.extent, Node):
        outer, *inner = [kernel.leaves[name].extent for name in owner.leaves]
        return index.product([outer, *inner]) is owner.extent
    if owner.tail == "shift" and kernel.values.get(owner.node) is not owner.value:
        return True
    return index.bounds(owner.value)[1] < owner.extent


# ---- text ----------------------------------------------------------------------------------------
def show_extent(extent: Extent, names: Mapping[int, str] | None = None) -> str:
    """An extent in words: a number, or the formula of a symbolic one."""
    return str(extent) if isinstance(extent, int) else show_expression(extent, names)


_LONG = 60  # characters
# fmt: off
_INFIX = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "lt": "<", "le": "<=", "eq": "==", "ne": "!=",
    "and": "&", "or": "|", "xor": "^",
}
# fmt: on


def show_expression(root: Node, names: Mapping[int, str] | None = None) -> str:
    """An expression as a formula; ranges by the names of their leaves. A long part that stands in
    it more than once is written after it, under a name."""
    order = toposort(root)
    uses = Counter([source for node in order for source in node.src])
    text: dict[Node, str] = {}
    shared: list[str] = []
    for node in order:
        formula = _formula(node, [text[s] for s in node.src], names or {})
        if uses[node] > 1 and len(formula) > _LONG:
            name = f"part{len(shared)}"
            shared.append(f"{name} = {formula}")
            formula = name
        text[node] = formula
    return f"{text[root]} where {', '.join(shared)}" if shared else text[root]


def _formula(node: Node, parts: list[str], names: Mapping[int, str]) -> str:
    name = node.op.name
    if node.op is ops.CONST:
        return str(node.value)
    if node.op is ops.RANGE:
        return names.get(node.arg[0], f"r{node.arg[0]}")
    if node.op is ops.VARIABLE:
        return str(node.arg[0])
    if node.op is ops.SCALAR:
        return f"scalar{node.arg}"
    if node.op is ops.ARG:
        return memory_name(node)
    if node.op is ops.LOAD:
        axes = node.arg
        guard = f" if {parts[1 + axes]}" if len(parts) > 1 + axes else ""
        return f"{parts[0]}[{', '.join(parts[1 : 1 + axes])}{guard}]"
    if node.op is ops.ISUM:
        constant, factors = node.arg
        terms = [p if f == 1 else f"{f}*{p}" for f, p in zip(factors, parts)]
        return "(" + " + ".join([*terms, *([str(constant)] if constant else [])]) + ")"
    if name in _INFIX and len(parts) == 2:
        return f"({parts[0]} {_INFIX[name]} {parts[1]})"
    if node.op in (ops.CAST, ops.BITCAST):
        name = f"{name} {node.dtype}"
    return f"{name}({', '.join(parts)})"


def show_kernel(kernel: Kernel) -> str:
    """The loop nest as indented text, a line per loop and per statement."""
    names = {r.number: r.name for r in kernel.ranges.values()}
    names |= {leaf.number: leaf.name for leaf in kernel.leaves.values()}
    lines: list[str] = []
    opened: tuple[str, ...] = ()
    for statement in kernel.statements:
        common = shared_prefix([opened, statement.order]) if opened else ()
        for depth, name in enumerate(statement.order[len(common) :], start=len(common)):
            leaf = kernel.leaves[name]
            mark = " reduced" if name in statement.reduced else ""
            lines.append(
                f"{'  ' * depth}{leaf.kind} {name} < {show_extent(leaf.extent, names)}{mark}"
            )
        opened = statement.order
        lines.append("  " * len(opened) + _show_statement(statement, names))
    for owner in kernel.ranges.values():
        if owner.value is not owner.node:
            tail = "" if exact(kernel, owner) else f", tail {owner.tail}"
            value = show_expression(owner.value, names)
            lines.append(f"{owner.name} = {value} < {show_extent(owner.extent, names)}{tail}")
    for scratch in kernel.scratch.values():
        if scratch.scope != "thread":
            lines.append(f"{scratch.name}: {scratch.scope}, {scratch.node.dtype}")
    return "\n".join(lines)


def _show_statement(statement: Stmt, names: Mapping[int, str]) -> str:
    targets = ", ".join(_formula(t, [], names) for t in statement.targets)
    place = ", ".join(show_expression(i, names) for i in statement.index)
    values = ", ".join(show_expression(v, names) for v in statement.values)
    how = f" {spell(statement.monoid)}=" if statement.monoid else " ="
    guard = f" if {show_expression(statement.guard, names)}" if statement.guard is not None else ""
    hint = f"  ; {statement.hint}" if statement.hint else ""
    return f"{statement.name}: {targets}[{place}]{how} {values}{guard}{hint}"
