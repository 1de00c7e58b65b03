"""Actions: named, checked, printable steps that turn one kernel into another with the same meaning.

A schedule is a list of them. Each is one line of text that parses back (`schedule_text.py`):

    split j: j1 | ju(4) | jv(16)
    split k: k1 | ku(4)
    unroll ku, iu, ju
    vector jv
    grid i0, j1

An action is a frozen dataclass; calling it with a kernel returns the new kernel or raises
`ScheduleError`, which says why it does not apply. Where the leaves of a statement stand follows
from their kinds (grid, local, loop, unroll, vector, outermost first); within a kind, `grid` and
`unroll` put them in the order in which they name them, and `reorder` arranges the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from math import prod

from treadle.ir import index, ops
from treadle.ir.node import Node
from treadle.kernel.kernel import (
    INSIDE,
    TAILS,
    Extent,
    Kernel,
    Leaf,
    Range,
    ScheduleError,
    Stmt,
    home,
    loads,
    memory_name,
)

Action = Callable[[Kernel], Kernel]
LONGEST_TILE = 1 << 16  # of a range that is shorter


def apply(kernel: Kernel, actions: Iterable[Action]) -> Kernel:
    """The kernel after a list of actions. ScheduleError names the action that does not apply."""
    for action in actions:
        try:
            kernel = action(kernel)
        except ScheduleError as error:
            raise ScheduleError(f"{action}: {error}") from None
    return kernel


def require_reached(leaf: Leaf, tile: int) -> None:
    """ScheduleError for a tile that goes further beyond the end of its range than any vector or
    instruction would: all of its points are visited, if only to leave them out."""
    most = index.bounds(index.as_node(leaf.extent))[1]
    if tile > max(most, LONGEST_TILE):
        raise ScheduleError(f"a tile of {tile} is longer than {leaf.name}, which runs {most} times")


@dataclass(frozen=True)
class Split:
    """Splits a leaf in two or more. The sizes are of the parts after the first, outermost first;
    the first part runs as often as needed. Only the outermost part of a range may cover more than
    there is (then the range has a tail); an inner leaf must be divided evenly."""

    leaf: str
    outer: str
    inner: tuple[tuple[str, int], ...]

    def __str__(self) -> str:
        parts = " | ".join(f"{name}({size})" for name, size in self.inner)
        return f"split {self.leaf}: {self.outer} | {parts}"

    def __call__(self, kernel: Kernel) -> Kernel:
        leaf, owner = kernel.leaf(self.leaf), kernel.range_of[self.leaf]
        names = [self.outer, *(name for name, _ in self.inner)]
        require_new(kernel, names)
        if leaf.kind != "loop":
            raise ScheduleError(f"{leaf.name} is already {leaf.kind}; split it first")
        _require_free(kernel, leaf, owner, "split")
        tile = prod(size for _, size in self.inner)
        if tile < 1 or any(size < 1 for _, size in self.inner):
            raise ScheduleError("sizes of parts must be at least 1")
        require_reached(leaf, tile)
        if leaf.extent == 1 and len(owner.leaves) > 1 and tile > 1:
            raise ScheduleError(f"{leaf.name} runs once: there is nothing to split")
        count = _count(kernel, leaf, owner, tile)
        numbers = kernel.fresh_numbers()
        parts = [replace(leaf, name=self.outer, extent=count, number=next(numbers))]
        for name, size in self.inner:
            parts.append(Leaf(name, size, next(numbers)))
        value: list[Node] = []
        step = 1
        for part in reversed(parts):
            value.append(index.mul(part.node, step))
            step *= part.extent if isinstance(part.extent, int) else 1
        whole = index.add(*value)
        if leaf.node.op is ops.RANGE:
            whole = index.substitute(owner.value, {leaf.node: whole})
        elif len(owner.leaves) > 1:
            whole = owner.value
        leaves = _exchanged(owner.leaves, leaf.name, {leaf.name}, tuple(p.name for p in parts))
        changed = replace(owner, leaves=leaves, value=whole)
        kernel = exchange(kernel, [leaf], parts)
        kernel = replace(kernel, ranges={**kernel.ranges, owner.name: changed})
        return legal(kernel)


def _require_free(kernel: Kernel, leaf: Leaf, owner: Range, what: str) -> None:
    """A part of a range may change as long as no address is over the part itself: those of what
    is staged or detached inside it are. what: the action that has to come before."""
    if owner.node is leaf.node or leaf.node.op is not ops.RANGE:
        return
    for statement in kernel.statements:
        if any(root.free & leaf.bit for root in statement.roots):
            raise ScheduleError(
                f"{statement.name} has its place in {leaf.name} already; {what} {leaf.name} before "
                "something is staged or detached inside it"
            )
    for other in kernel.ranges.values():
        if other.is_place and other.value.free & leaf.bit:
            raise ScheduleError(
                f"the place {other.name} is counted from {leaf.name} already; {what} {leaf.name} "
                "before something is detached inside it"
            )


def _count(kernel: Kernel, leaf: Leaf, owner: Range, tile: int) -> Extent:
    """How often the outer part of a split leaf runs."""
    if isinstance(leaf.extent, int) and leaf.extent % tile == 0:
        return leaf.extent // tile
    if owner.leaves[0] != leaf.name:
        raise ScheduleError(
            f"{tile} does not divide the {index.spell(leaf.extent)} of {leaf.name}: the last part "
            f"would run into the next block of {owner.leaves[0]}"
        )
    return index.dim(index.floordiv(index.add(leaf.extent, tile - 1), tile))


def require_new(kernel: Kernel, names: Sequence[str]) -> None:
    for name in names:
        if name in kernel.leaves or names.count(name) > 1:
            raise ScheduleError(f"there is a leaf called {name!r} already")
        if not name.replace("_", "a").isalnum():
            raise ScheduleError(f"{name!r} is no name: use letters, digits and _")


def require_new_ranges(kernel: Kernel, names: Sequence[str]) -> None:
    """ScheduleError unless names are new, also of loops that have been split since."""
    require_new(kernel, names)
    for name in names:
        if name in kernel.ranges:
            raise ScheduleError(f"there was a loop called {name!r}, which has parts now")


def exchange(kernel: Kernel, old: Sequence[Leaf], new: Sequence[Leaf]) -> Kernel:
    """The kernel with adjacent leaves `old` replaced by `new` in every order. The ranges remain."""
    first = old[0].name
    gone = {leaf.name for leaf in old}
    names = tuple(leaf.name for leaf in new)
    for leaf in kernel.leaves.values():
        if isinstance(leaf.extent, Node) and any(leaf.extent.free & each.bit for each in old):
            raise ScheduleError(f"where {leaf.name} ends is counted from {first} already")
    statements = []
    for statement in kernel.statements:
        for buffer, along, _, _ in statement.prefetch:
            if along in gone:
                raise ScheduleError(
                    f"{statement.name} asks for {buffer} ahead along {along}: prefetch afterwards"
                )
        if first in statement.order:
            statement = replace(
                statement,
                order=_exchanged(statement.order, first, gone, names),
                reduced=frozenset(_exchanged(sorted(statement.reduced), first, gone, names)),
            )
        statements.append(statement)
    leaves = {name: leaf for name, leaf in kernel.leaves.items() if name not in gone}
    leaves |= {leaf.name: leaf for leaf in new}
    return replace(kernel, statements=tuple(statements), leaves=leaves)


def _exchanged(
    sequence: Iterable[str], first: str, gone: set[str], names: tuple[str, ...]
) -> tuple[str, ...]:
    """The sequence with `names` in place of `first` and without the others of `gone`."""
    out: list[str] = []
    for name in sequence:
        if name == first:
            out.extend(names)
        elif name not in gone:
            out.append(name)
    return tuple(out)


@dataclass(frozen=True)
class Fuse:
    """Makes one leaf of several whole ranges that stand next to each other in every statement that
    has one of them: the inverse of split, for flat loops over arrays that are contiguous."""

    leaves: tuple[str, ...]
    name: str

    def __str__(self) -> str:
        return f"fuse {', '.join(self.leaves)}: {self.name}"

    def __call__(self, kernel: Kernel) -> Kernel:
        old = [kernel.leaf(name) for name in self.leaves]
        if len(old) < 2:
            raise ScheduleError("it takes two leaves or more")
        if self.name not in self.leaves:
            require_new(kernel, [self.name])
        for leaf in old:
            if kernel.range_of[leaf.name].leaves != (leaf.name,) or leaf.kind != "loop":
                raise ScheduleError(f"{leaf.name} is not a whole range any more")
            if isinstance(leaf.extent, Node) and leaf.extent.free:
                raise ScheduleError(f"where {leaf.name} ends depends on other loops")
        _require_adjacent(kernel, self.leaves)
        extent = index.product(leaf.extent for leaf in old)
        number = next(kernel.fresh_numbers())
        flat = Leaf(self.name, extent, number)
        ranges = dict(kernel.ranges)
        rest: Node = flat.node
        for leaf in reversed(old):
            part = kernel.range_of[leaf.name]
            value = rest if leaf is old[0] or leaf.extent == 0 else index.mod(rest, leaf.extent)
            rest = rest if leaf.extent == 0 else index.floordiv(rest, leaf.extent)
            ranges[part.name] = replace(part, leaves=(), value=value)
        name = self.name
        while name in ranges:
            name = f"{name}_fused"
        ranges[name] = Range(name, extent, number, (self.name,), flat.node)
        return replace(exchange(kernel, old, [flat]), ranges=ranges)


def _require_adjacent(kernel: Kernel, names: tuple[str, ...]) -> None:
    for statement in kernel.statements:
        present = [name for name in names if name in statement.order]
        if not present:
            continue
        start = statement.order.index(present[0])
        if statement.order[start : start + len(names)] != names:
            raise ScheduleError(f"{', '.join(names)} do not stand together in {statement.name}")
        if len({name in statement.reduced for name in names}) > 1:
            raise ScheduleError(f"{statement.name} reduces over some of {', '.join(names)} only")


@dataclass(frozen=True)
class Reorder:
    """Puts leaves in this order where they stand in a statement: each place that held one of them
    gets the next. Reductions allow any order (it decides the order of summation)."""

    leaves: tuple[str, ...]

    def __str__(self) -> str:
        return f"reorder {', '.join(self.leaves)}"

    def __call__(self, kernel: Kernel) -> Kernel:
        _require_distinct(kernel, self.leaves)
        statements = []
        for statement in kernel.statements:
            present = iter([name for name in self.leaves if name in statement.order])
            order = tuple(
                next(present) if name in self.leaves else name for name in statement.order
            )
            _require_serial(kernel, statement, order)
            statements.append(replace(statement, order=order))
        return legal(replace(kernel, statements=tuple(statements)).arranged())


def _require_distinct(kernel: Kernel, names: tuple[str, ...]) -> None:
    for name in names:
        kernel.leaf(name)
        if names.count(name) > 1:
            raise ScheduleError(f"{name} is named twice")


def serial_leaves(kernel: Kernel, statement: Stmt) -> frozenset[str]:
    """The leaves over which a store may write one element several times: their order is part of its
    meaning (scatter). Empty where the place that is written tells the point."""
    if not statement.is_store:
        return frozenset()
    free = 0
    for i in statement.index:
        place = kernel.over_leaves(i)
        if all(atom.op is ops.RANGE for _, atom in index.terms(i)[1]):
            free |= place.free
    leaves = (kernel.leaves[name] for name in statement.order)
    return frozenset(n.name for n in leaves if n.extent != 1 and not free & n.bit)


def _require_serial(kernel: Kernel, statement: Stmt, order: tuple[str, ...]) -> None:
    serial = serial_leaves(kernel, statement)
    before = [name for name in statement.order if name in serial]
    if before != [name for name in order if name in serial]:
        raise ScheduleError(
            f"{statement.name} writes one element several times over {', '.join(before)}: "
            "their order must stay"
        )


def legal(kernel: Kernel) -> Kernel:
    """The kernel, if everything that is read from scratch has been written by then, and a loop
    whose end depends on others is inside them."""
    complete: dict[str, Stmt] = {}
    for statement, names in zip(kernel.statements, kernel.reads):
        _require_ends_known(kernel, statement)
        for name in names:
            writer = complete.get(name)
            if writer is None:
                raise ScheduleError(f"{statement.name} reads {name} before it is computed")
            shared = set(_common(writer.order, statement.order)) & writer.reduced
            if shared:
                raise ScheduleError(
                    f"{statement.name} would read {name} inside the loop {min(shared)}, which it "
                    "is still summed over"
                )
        for target in statement.targets:
            if isinstance(target.arg[0], str):
                complete[target.arg[0]] = statement
    return kernel


def _require_ends_known(kernel: Kernel, statement: Stmt) -> None:
    around = 0
    for leaf in map(kernel.leaf, statement.order):
        moving = leaf.extent.free if isinstance(leaf.extent, Node) else 0
        whole = kernel.range_of[leaf.name].extent
        ends = whole.free if isinstance(whole, Node) else 0
        if (moving | ends) & ~around or (moving and leaf.kind != "loop"):
            raise ScheduleError(
                f"where {leaf.name} of {statement.name} ends depends on other loops: it has to be "
                "a loop inside them"
            )
        around |= leaf.bit


def _common(a: Sequence[str], b: Sequence[str]) -> list[str]:
    same: list[str] = []
    for x, y in zip(a, b):
        if x != y:
            break
        same.append(x)
    return same


@dataclass(frozen=True)
class Kind:
    """`grid`, `local`, `unroll` or `vector`: what becomes of leaves, in the order named."""

    kind: str
    leaves: tuple[str, ...]
    slot: int | None = None

    def __str__(self) -> str:
        slot = "" if self.slot is None else f" slot {self.slot}"
        return f"{self.kind} {', '.join(self.leaves)}{slot}"

    def __call__(self, kernel: Kernel) -> Kernel:
        _require_distinct(kernel, self.leaves)
        for name in self.leaves:  # each beside what those before it have become
            leaf = kernel.leaf(name)
            _CHECKS[self.kind](kernel, leaf)
            kernel = kernel.with_leaves(replace(leaf, kind=self.kind, slot=self.slot))
        rank = {name: n for n, name in enumerate(self.leaves)}
        statements = []
        for statement in kernel.statements:
            named = sorted((n for n in statement.order if n in rank), key=rank.__getitem__)
            others = tuple(n for n in statement.order if n not in rank)
            order = (*named, *others) if self.kind == "grid" else (*others, *named)
            _require_serial(kernel, statement, order)
            statements.append(replace(statement, order=order))
        return legal(replace(kernel, statements=tuple(statements)).arranged())


def _check_parallel(kernel: Kernel, leaf: Leaf) -> None:
    if leaf.kind not in ("loop", "grid", "local"):
        raise ScheduleError(f"{leaf.name} is {leaf.kind} already")
    for statement in kernel.statements:
        if leaf.name in statement.order and leaf.name in serial_leaves(kernel, statement):
            raise ScheduleError(
                f"{statement.name} writes one element several times over {leaf.name}: it must run "
                "in order"
            )


def _check_grid(kernel: Kernel, leaf: Leaf) -> None:
    _check_parallel(kernel, leaf)
    for statement in kernel.statements:
        if leaf.name in statement.reduced and kernel.target.kind == "cpu":
            raise ScheduleError(
                f"{statement.name} reduces over {leaf.name}: tasks cannot share its accumulator; "
                f"use `cooperate {leaf.name} tasks`"
            )


def _check_local(kernel: Kernel, leaf: Leaf) -> None:
    if kernel.target.kind != "gpu":
        raise ScheduleError(f"target {kernel.target.name} has no threads of a block; use grid")
    _check_parallel(kernel, leaf)


def _check_unroll(kernel: Kernel, leaf: Leaf) -> None:
    if leaf.kind not in ("loop", "unroll"):
        raise ScheduleError(f"{leaf.name} is {leaf.kind} already")
    if not isinstance(leaf.extent, int):
        raise ScheduleError(
            f"{leaf.name} runs {index.spell(leaf.extent)} times, which is not known"
        )


def _check_vector(kernel: Kernel, leaf: Leaf) -> None:
    _check_unroll(kernel, leaf)
    _check_parallel(kernel, leaf)
    assert isinstance(leaf.extent, int)
    if leaf.extent < 2 or leaf.extent & (leaf.extent - 1):
        raise ScheduleError(f"{leaf.name} runs {leaf.extent} times: lanes are a power of 2, from 2")
    owner = kernel.range_of[leaf.name]
    inside = owner.leaves[owner.leaves.index(leaf.name) + 1 :]
    if any(kernel.leaves[name].kind != "mma" for name in inside):
        raise ScheduleError(f"{leaf.name} is not the innermost part of its range: lanes must be")
    if inside and (not isinstance(owner.extent, int) or owner.extent % kernel.step(leaf.name)):
        raise ScheduleError(f"a group of {inside[0]} is not whole: {leaf.name} cannot be lanes")
    for statement in kernel.statements:
        others = [
            n for n in statement.order if kernel.leaves[n].kind == "vector" and n != leaf.name
        ]
        if leaf.name in statement.order and others:
            raise ScheduleError(f"{statement.name} has lanes already: {others[0]}")


_CHECKS: dict[str, Callable[[Kernel, Leaf], None]] = {
    "grid": _check_grid,
    "local": _check_local,
    "unroll": _check_unroll,
    "vector": _check_vector,
}


def grid(*leaves: str) -> Kind:
    """These leaves as the tasks of a pool (CPU) or blocks (GPU); the last varies fastest."""
    return Kind("grid", leaves)


def local(*leaves: str, slot: int | None = None) -> Kind:
    """These leaves as the threads of a block. slot: threads shared by the leaves of several
    ranges."""
    return Kind("local", leaves, slot)


def unroll(*leaves: str) -> Kind:
    """These leaves written out; their order decides which operands stay in registers."""
    return Kind("unroll", leaves)


def vector(*leaves: str) -> Kind:
    """These leaves (of different statements) as the lanes of vectors."""
    return Kind("vector", leaves)


@dataclass(frozen=True)
class Tail:
    """What becomes of the last, partial tile of the range that a leaf belongs to."""

    leaf: str
    how: str

    def __str__(self) -> str:
        return f"tail {self.leaf} {self.how}"

    def __call__(self, kernel: Kernel) -> Kernel:
        kernel.leaf(self.leaf)
        owner = kernel.range_of[self.leaf]
        if self.how not in TAILS:
            raise ScheduleError(f"a tail is one of {', '.join(TAILS)}, not {self.how!r}")
        if any(kernel.leaves[name].kind == "mma" for name in owner.leaves) and self.how != "peel":
            raise ScheduleError(f"{owner.name} has a last group: it can only be peeled")
        if self.how != "mask" and not isinstance(owner.extent, int):
            raise ScheduleError(
                f"range {owner.name} has {index.spell(owner.extent)} points, known only at run "
                "time: only mask works"
            )
        if self.how != owner.tail and "shift" in (self.how, owner.tail):  # points move
            for name in owner.leaves:
                _require_free(kernel, kernel.leaves[name], owner, f"tail .. {self.how} of")
        if self.how == "shift":
            require_repeatable(kernel, owner)
        return replace(kernel, ranges={**kernel.ranges, owner.name: replace(owner, tail=self.how)})


def require_repeatable(kernel: Kernel, owner: Range) -> None:
    """A tile that moves back computes some points twice: they must not be summed, nor added once
    more to a sum that has begun outside of them, and a store must not have overwritten what the
    second time reads (an input may be the buffer of the result)."""
    kinds = [kernel.leaves[name].kind in INSIDE for name in owner.leaves]
    if kinds != sorted(kinds):
        raise ScheduleError(f"the tile of {owner.name} is not in one piece: it cannot move back")
    for statement in kernel.statements:
        if not set(owner.leaves) & set(statement.order):
            continue
        outer = [n for n in owner.leaves if kernel.leaves[n].kind not in INSIDE]
        summing = statement.order[statement.first_reduced() :]
        twice = set(owner.leaves) & (statement.reduced | serial_leaves(kernel, statement))
        combines = statement.is_store and statement.monoid is not None
        if twice or combines or set(outer) & set(summing):
            raise ScheduleError(f"{statement.name} would take some points of {owner.name} twice")
        if statement.is_store and any(
            load.src[0].shape == statement.targets[0].shape
            and load.src[1 : 1 + load.arg] == statement.index
            for load in loads(statement)
            if isinstance(load.src[0].arg[0], int)
        ):
            raise ScheduleError(
                f"{statement.name} may overwrite what it reads: it cannot do a point twice"
            )


@dataclass(frozen=True)
class Hint:
    """A store that goes past the caches ("nontemporal"): for results that are not read soon."""

    statement: str
    hint: str

    def __str__(self) -> str:
        return f"hint {self.statement} {self.hint}"

    def __call__(self, kernel: Kernel) -> Kernel:
        statement = kernel.statement(self.statement)
        if self.hint != "nontemporal":
            raise ScheduleError(f"the hint of a store is nontemporal, not {self.hint!r}")
        if not statement.is_store or statement.monoid is not None:
            raise ScheduleError(f"{self.statement} does not simply store to a buffer")
        return kernel.with_statement(replace(statement, hint=self.hint))


@dataclass(frozen=True)
class Prefetch:
    """Asks for what a statement reads of a buffer, or writes to it, some iterations of a leaf
    before it does.

    past_caches: what is read is not wanted again soon, and leaves the outer caches to others.
    """

    buffer: str
    statement: str
    leaf: str
    ahead: int
    past_caches: bool = False

    def __str__(self) -> str:
        how = " nontemporal" if self.past_caches else ""
        return f"prefetch {self.buffer} in {self.statement} along {self.leaf} {self.ahead}{how}"

    def __call__(self, kernel: Kernel) -> Kernel:
        statement = kernel.statement(self.statement)
        leaf = kernel.leaf(self.leaf)
        if "prefetch" not in kernel.target.intrinsics:
            raise ScheduleError(f"{kernel.target.name} has no prefetch")
        if leaf.name not in statement.order or leaf.kind not in ("loop", "grid"):
            raise ScheduleError(f"{leaf.name} is no loop around {statement.name}")
        touched = [*statement.targets, *(load.src[0] for load in loads(statement))]
        if not any(memory_name(buffer) == self.buffer for buffer in touched):
            raise ScheduleError(f"{statement.name} does not touch {self.buffer}")
        if self.ahead < 1:
            raise ScheduleError("it must look ahead by at least 1")
        wish = (self.buffer, leaf.name, self.ahead, self.past_caches)
        return kernel.with_statement(replace(statement, prefetch=(*statement.prefetch, wish)))


@dataclass(frozen=True)
class Place:
    """Where a scratch buffer lives: "thread", or "root" for what is too large for a stack."""

    name: str
    scope: str

    def __str__(self) -> str:
        return f"place {self.name} {self.scope}"

    def __call__(self, kernel: Kernel) -> Kernel:
        if self.name not in kernel.scratch:
            names = ", ".join(kernel.scratch)
            raise ScheduleError(f"no scratch buffer is called {self.name!r}; there are {names}")
        if self.scope not in ("thread", "root"):
            raise ScheduleError(f"a buffer lives in thread or root, not {self.scope!r}")
        for leaf in home(kernel, self.name):
            if self.scope == "root" and kernel.leaves[leaf].kind == "grid":
                raise ScheduleError(f"each task of {leaf} has its own {self.name}")
        changed = replace(kernel.scratch[self.name], scope=self.scope)
        return replace(kernel, scratch={**kernel.scratch, self.name: changed})
