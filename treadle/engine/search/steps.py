"""One step more: the actions that may follow a list, in groups that are of use together. Those that
bring data nearer are in `nearer.py`.

Each rule of `STEPS` looks at a kernel as it is scheduled so far and yields lists of actions. They
need not be legal: `moves.py` tries them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import pairwise, permutations

from treadle.engine.search.nearer import (
    Actions,
    Steps,
    asked_ahead,
    detached,
    fresh,
    hinted,
    packings,
    panel,
    staged,
    stored,
    users,
)
from treadle.kernel.actions import (
    Action,
    Fuse,
    Reorder,
    Split,
    Tail,
    grid,
    unroll,
    vector,
)
from treadle.kernel.analysis import upper
from treadle.kernel.bound import Bound
from treadle.kernel.cooperate import Cooperate, CooperateTasks
from treadle.kernel.dot import Inside, dot_for
from treadle.kernel.kernel import (
    Kernel,
    Leaf,
    ScheduleError,
    kept,
)
from treadle.kernel.retile import Fission
from treadle.kernel.sieve import sieves
from treadle.kernel.trim import Trim

UNROLL = (2, 4, 8)  # steps that are written out; others are a change away
MOST_STEPS = 16  # of a whole range that is written out
TILES = ((8, 2), (6, 4), (4, 4), (3, 3))  # rows, columns
PANELS = ((6, 4), (8, 3), (12, 2), (4, 4))  # rows, vectors
BLOCKS = (32, 128, 512)  # points of a block
TASKS = (1, 2, 4, 8, 32)  # tasks for each thread, about
BOUNDS = (16, 64)  # points to which the end of a loop is rounded


def _loops(kernel: Kernel) -> list[Leaf]:
    """The leaves that are still loops and run more than once; what only copies has lanes and tasks
    from the step that staged it."""
    computing = {n for s in kernel.statements if not s.name.startswith("copy_") for n in s.order}
    leaves = (kernel.leaves[name] for name in kernel.leaves if name in computing)
    return [n for n in leaves if n.kind == "loop" and n.extent != 1]


def _reduced(kernel: Kernel, name: str) -> bool:
    return any(name in s.reduced for s in kernel.statements)


def _alike(kernel: Kernel) -> Iterator[tuple[Leaf, ...]]:
    """Each loop alone; and loops of one extent in different statements (the rows of a softmax)
    together."""
    loops = _loops(kernel)
    yield from ((leaf,) for leaf in loops)
    seen: set[str] = set()
    for leaf in loops:
        group = [leaf]
        taken = {s.name for s in users(kernel, leaf.name)}
        for other in loops:
            own = {s.name for s in users(kernel, other.name)}
            same = other.extent is leaf.extent or other.extent == leaf.extent
            if same and not own & taken:
                group.append(other)
                taken |= own
        if len(group) > 1 and leaf.name not in seen:
            seen |= {n.name for n in group}
            yield tuple(group)


def _cut(kernel: Kernel, leaf: Leaf, letter: str, size: int) -> tuple[Actions, str] | None:
    """The inner part of a leaf, of this size: what cuts it off, and its name."""
    if leaf.extent == size:
        return [], leaf.name
    if isinstance(leaf.extent, int) and leaf.extent < size:
        return None
    outer, inner = fresh(kernel, f"{leaf.name}o"), fresh(kernel, f"{leaf.name}{letter}")
    return [Split(leaf.name, outer, ((inner, size),))], inner


def _cut_all(
    kernel: Kernel, leaves: Sequence[Leaf], letter: str, size: int
) -> tuple[Actions, list[str]]:
    actions: list[Action] = []
    names = []
    for leaf in leaves:
        cut = _cut(kernel, leaf, letter, size)
        if cut is not None:
            actions += cut[0]
            names.append(cut[1])
    return actions, names


def _lanes(kernel: Kernel) -> Steps:
    """A range in lanes; also with what is read at a stride packed first."""
    if not kernel.target.vector_bytes:
        return
    for leaves in _alike(kernel):
        if any(kernel.step(leaf.name) != 1 for leaf in leaves):
            continue
        lanes = _width(kernel, leaves)
        actions, names = _cut_all(kernel, leaves, "v", lanes)
        if lanes < 2 or not names:
            continue
        step: list[Action] = [*actions, vector(*names)]
        yield step
        extent = leaves[0].extent
        if not isinstance(extent, int) or extent % lanes:
            yield [*step, *(Tail(name, "mask") for name in names)]
        if len(leaves) == 1:
            yield from ([*packing, *step] for packing in packings(kernel, leaves[0], lanes))


def _width(kernel: Kernel, leaves: Sequence[Leaf]) -> int:
    """Lanes of a whole register, or of the least part of one that takes the whole range."""
    found = [s for leaf in leaves for s in users(kernel, leaf.name)]
    narrowest = min((v.dtype.itemsize for s in found for v in s.values), default=4)
    whole = kernel.target.vector_bytes // max(4, narrowest)
    extent = min(upper(leaf.extent) for leaf in leaves)
    while whole // 2 >= extent:
        whole //= 2
    return whole


def _unrolled(kernel: Kernel) -> Steps:
    """A range written out, for reductions also with an accumulator each."""
    for leaves in _alike(kernel):
        for count in (*UNROLL, *{n.extent for n in leaves if isinstance(n.extent, int)}):
            if count > MOST_STEPS:
                continue
            actions, names = _cut_all(kernel, leaves, "u", count)
            if not names:
                continue
            yield [*actions, unroll(*names)]
            summed = [leaf.name for leaf in leaves if _reduced(kernel, leaf.name)]
            partial = [n for n, leaf in zip(names, leaves) if leaf.name in summed]
            if partial:
                yield [*actions, unroll(*names), *(Cooperate(n) for n in partial)]


def _tiles(kernel: Kernel) -> Steps:
    """A tile of registers: two results' ranges written out at once."""
    for statement in kernel.statements:
        if not statement.reduced:
            continue
        results = [n for n in kept(statement) if kernel.leaves[n].kind == "loop"]
        for a, b in permutations(results, 2):
            for rows, columns in TILES:
                first = _cut(kernel, kernel.leaves[a], "u", rows)
                second = _cut(kernel, kernel.leaves[b], "u", columns)
                if first is not None and second is not None:
                    yield [*first[0], *second[0], unroll(first[1], second[1])]


def _panels(kernel: Kernel) -> Steps:
    """A tile of rows by vectors at once, with and without the panel that all rows read."""
    for statement in kernel.statements:
        whole = all(kernel.leaves[name].kind == "loop" for name in statement.order)
        width = kernel.target.lanes(statement.targets[0].dtype)
        if not statement.reduced or not whole or width < 2:
            continue
        results = [n for n in kept(statement) if kernel.leaves[n].extent != 1]
        summed = [n for n in statement.order if n in statement.reduced]
        for a, b in permutations(results, 2):
            for rows, vectors in PANELS:
                size = kernel.leaves[b].extent
                if isinstance(size, int) and size < vectors * width:
                    continue
                cut = _cut(kernel, kernel.leaves[a], "u", rows)
                if cut is None:
                    continue
                outer, unrolled, lanes = (fresh(kernel, f"{b}{letter}") for letter in "ouv")
                tile: list[Action] = [
                    Split(b, outer, ((unrolled, vectors), (lanes, width))),
                    *cut[0],
                    unroll(cut[1], unrolled),
                    vector(lanes),
                    grid(outer),
                    *(Reorder((each.outer, *summed)) for each in cut[0] if isinstance(each, Split)),
                ]
                yield tile
                yield from ([*tile, *panel] for panel in panel(kernel, statement, a, b, outer))


def _tasks(kernel: Kernel) -> Steps:
    """More tasks: a whole range, or pieces of one."""
    old = [n.name for n in kernel.leaves.values() if n.kind == "grid"]
    for leaf in _loops(kernel):
        if _reduced(kernel, leaf.name):
            yield from _task_sums(kernel, leaf)
            continue
        yield [grid(*old, leaf.name)]
        if old:
            yield [grid(leaf.name, *old)]
        for piece in _pieces(kernel, leaf):
            cut = _cut(kernel, leaf, "r", piece)
            if cut is not None and cut[0]:
                outer = cut[0][0]
                assert isinstance(outer, Split)
                yield [*cut[0], grid(*old, outer.outer)]


def _pieces(kernel: Kernel, leaf: Leaf) -> list[int]:
    """Points of a task, for some numbers of tasks: such that all are equal, if that is near."""
    extent = upper(leaf.extent)
    pieces = {-(-extent // (count * kernel.target.threads)) for count in TASKS}
    even = {p: [d for d in range(p // 2 + 1, p + 1) if extent % d == 0] or [p] for p in pieces}
    return sorted(p for p in {divisors[-1] for divisors in even.values()} if 1 < p < extent)


def _task_sums(kernel: Kernel, leaf: Leaf) -> Steps:
    """Pieces of a sum as tasks, which a second phase adds up."""
    for piece in _pieces(kernel, leaf)[-3:]:
        cut = _cut(kernel, leaf, "p", piece)
        if cut is not None and cut[0]:
            split = cut[0][0]
            assert isinstance(split, Split)
            again = fresh(kernel, f"{leaf.name}t")
            front = [n for n in users(kernel, leaf.name)[0].order if n != leaf.name]
            loops = [n for n in front if kernel.leaves[n].kind == "loop"]
            yield [split, CooperateTasks(split.outer, again)]
            if loops:
                moved = Reorder((split.outer, *loops))
                yield [split, moved, CooperateTasks(split.outer, again)]


def _blocked(kernel: Kernel) -> Steps:
    """A range in blocks, walked outside of the other loops."""
    for leaf in _loops(kernel):
        for size in BLOCKS:
            cut = _cut(kernel, leaf, "b", size)
            if cut is None or not cut[0]:
                continue
            split = cut[0][0]
            assert isinstance(split, Split)
            order = next(s.order for s in kernel.statements if leaf.name in s.order)
            others = [n for n in order if kernel.leaves[n].kind == "loop" and n != leaf.name]
            yield [split, Reorder((split.outer, *others))]


def _reordered(kernel: Kernel) -> Steps:
    """Two neighbouring loops exchanged, or one put in front of all others."""
    seen: set[tuple[str, ...]] = set()
    for statement in kernel.statements:
        loops = [n for n in statement.order if kernel.leaves[n].kind == "loop"]
        for place in range(1, len(loops)):
            exchanged = (loops[place], loops[place - 1])
            first = (loops[place], *loops[:place])
            for order in (exchanged, first):
                if order not in seen:
                    seen.add(order)
                    yield [Reorder(order)]


def _fused(kernel: Kernel) -> Steps:
    """Neighbouring whole ranges as one."""
    for statement in kernel.statements:
        whole = [n for n in statement.order if kernel.range_of[n].leaves == (n,)]
        for a, b in pairwise(whole):
            yield [Fuse((a, b), fresh(kernel, f"{a}{b}"))]


def _sieved(kernel: Kernel) -> Steps:
    """A sum over the terms that count alone, with the remainders that tell which outermost."""
    for sieve in sieves(kernel):
        (statement,) = (s for s in kernel.statements if sieve.summed in s.reduced)
        rest, own = f"{sieve.leaf}r", f"{sieve.leaf}q"
        others = (own if name == sieve.leaf else name for name in kept(statement))
        yield [sieve, Reorder((rest, *others))]


def _trimmed(kernel: Kernel) -> Steps:
    """A sum without its padding."""
    yield from ([Trim(leaf.name)] for leaf in _loops(kernel) if _reduced(kernel, leaf.name))


def _instructions(kernel: Kernel) -> Steps:
    """Products that one instruction sums."""
    for statement in kernel.statements:
        dot = dot_for(kernel, statement)
        for name in statement.order if dot is not None else ():
            if name in statement.reduced and kernel.leaves[name].kind == "loop":
                assert dot is not None
                cut = _cut(kernel, kernel.leaves[name], "p", dot.size)
                if cut is not None:
                    yield [*cut[0], Inside(statement.name, cut[1])]


def _apart(kernel: Kernel) -> Steps:
    """A statement for a whole block before those that it shares loops with."""
    for statement in kernel.statements:
        for at in kept(statement) if not statement.is_store else ():
            if kernel.leaves[at].kind in ("loop", "grid"):
                yield [Fission(statement.name, at, fresh(kernel, "s"))]


def _bounded(kernel: Kernel) -> Steps:
    """Loops that end, in each block, where nothing more counts: of the reductions from the last to
    the first, and of what they read."""
    blocks = [n for s in kernel.statements for n in kept(s)]
    for at in dict.fromkeys(blocks):
        if kernel.leaves[at].kind not in ("loop", "grid"):
            continue
        for step in BOUNDS:
            state, done = kernel, []
            for leaf in reversed(_loops(kernel)):
                with suppress(ScheduleError):
                    bound = Bound(leaf.name, at, step)
                    state = bound(state)
                    done.append(bound)
            if done:
                yield done


STEPS: dict[str, Callable[[Kernel], Steps]] = {
    "sieve": _sieved,
    "fuse": _fused,
    "keep": stored,
    "trim": _trimmed,
    "instruction": _instructions,
    "fission": _apart,
    "bound": _bounded,
    "lanes": _lanes,
    "unroll": _unrolled,
    "tile": _tiles,
    "panel": _panels,
    "tasks": _tasks,
    "reorder": _reordered,
    "block": _blocked,
    "stage": staged,
    "detach": detached,
    "hint": hinted,
    "prefetch": asked_ahead,
}

OF_WHOLE_RANGES = {"sieve", "fuse", "keep"}  # steps that come before all others
