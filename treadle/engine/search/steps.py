"""One step more: the actions that may follow a list, in groups that are of use together.

Each rule of `STEPS` looks at a kernel as it is scheduled so far and yields lists of actions. They
need not be legal: `moves.py` tries them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise, permutations

from treadle.ir import index
from treadle.ir.node import Node
from treadle.kernel.actions import (
    Action,
    Fuse,
    Hint,
    Prefetch,
    Reorder,
    Split,
    Tail,
    grid,
    unroll,
    vector,
)
from treadle.kernel.analysis import upper
from treadle.kernel.cooperate import Cooperate, CooperateTasks
from treadle.kernel.kernel import Kernel, Leaf, Stmt, exact, kept, loads, shared_prefix
from treadle.kernel.layout import ROOT, buffer_offset
from treadle.kernel.retile import Detach
from treadle.kernel.stage import Keep, Stage, stage_name

UNROLL = (2, 3, 4, 6, 8, 12)  # steps that are written out
MOST_STEPS = 16  # of a whole range that is written out
TILES = ((8, 3), (6, 4), (4, 4), (8, 2), (4, 2), (12, 2), (3, 3), (7, 2))  # rows, columns
BLOCKS = (32, 128, 512)  # points of a block
TASKS = (1, 2, 4, 8, 32)  # tasks for each thread, about
AHEAD = (1, 2, 4, 8, 16)  # iterations by which memory is asked ahead

Actions = Sequence[Action]
Steps = Iterator[Actions]


def _fresh(kernel: Kernel, name: str) -> str:
    """A name like this one that nothing has yet."""
    taken = {*kernel.leaves, *kernel.ranges, *kernel.scratch}
    found, number = name, 2
    while found in taken or any(t.startswith(found) and t[len(found) :].isdigit() for t in taken):
        found, number = f"{name}{number}", number + 1
    return found


def _loops(kernel: Kernel) -> list[Leaf]:
    """The leaves that are still loops and run more than once; what only copies has lanes and tasks
    from the step that staged it."""
    computing = {n for s in kernel.statements if not s.name.startswith("copy_") for n in s.order}
    leaves = (kernel.leaves[name] for name in kernel.leaves if name in computing)
    return [n for n in leaves if n.kind == "loop" and n.extent != 1]


def _users(kernel: Kernel, name: str) -> list[Stmt]:
    return [s for s in kernel.statements if name in s.order]


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
        taken = {s.name for s in _users(kernel, leaf.name)}
        for other in loops:
            own = {s.name for s in _users(kernel, other.name)}
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
    outer, inner = _fresh(kernel, f"{leaf.name}o"), _fresh(kernel, f"{leaf.name}{letter}")
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
        for lanes in _widths(kernel, leaves):
            actions, names = _cut_all(kernel, leaves, "v", lanes)
            if not names:
                continue
            step: list[Action] = [*actions, vector(*names)]
            yield step
            extent = leaves[0].extent
            if not isinstance(extent, int) or extent % lanes:
                yield [*step, *(Tail(name, "mask") for name in names)]
            if len(leaves) == 1:
                yield from ([*packing, *step] for packing in _packings(kernel, leaves[0], lanes))


def _widths(kernel: Kernel, leaves: Sequence[Leaf]) -> list[int]:
    """Lanes of a whole register, and of half a one."""
    users = [s for leaf in leaves for s in _users(kernel, leaf.name)]
    narrowest = min((v.dtype.itemsize for s in users for v in s.values), default=4)
    whole = kernel.target.vector_bytes // max(4, narrowest)
    extent = min(upper(leaf.extent) for leaf in leaves)
    while whole // 2 >= extent:
        whole //= 2
    return [n for n in (whole, whole // 2) if n >= 2]


def _packings(kernel: Kernel, leaf: Leaf, lanes: int) -> Steps:
    """What is read at a stride along a leaf, copied so that the leaf is contiguous."""
    for load in _strided(kernel, leaf):
        axis = _axis(kernel, load, leaf)
        if axis is None:
            continue
        buffer, name = stage_name(kernel, load), _fresh(kernel, "panel")
        layout = (*(a for a in range(load.arg) if a != axis), axis)
        stage = Stage(buffer, ROOT, name, ROOT, layout)
        own = f"{name}{axis}"
        copied: list[Action] = [Split(own, f"{own}o", ((f"{own}v", lanes),)), vector(f"{own}v")]
        yield [stage, *copied]
        for other in range(load.arg):
            if other != axis:
                yield [stage, *copied, grid(f"{name}{other}")]


def _strided(kernel: Kernel, leaf: Leaf) -> list[Node]:
    """The loads of buffers that move with a leaf, but not by one element."""
    found: dict[Node, None] = {}
    for statement in _users(kernel, leaf.name):
        for load in loads(statement):
            if not isinstance(load.src[0].arg[0], int):
                continue
            offset = kernel.over_leaves(buffer_offset(load.src[0], load.src[1 : 1 + load.arg]))
            if offset.free & leaf.bit and index.coefficient(offset, leaf.node) != 1:
                found[load] = None
    return list(found)


def _axis(kernel: Kernel, load: Node, leaf: Leaf) -> int | None:
    """The one axis of a load that moves with a leaf."""
    places = load.src[1 : 1 + load.arg]
    found = [a for a, p in enumerate(places) if kernel.over_leaves(p).free & leaf.bit]
    return found[0] if len(found) == 1 else None


def _unrolled(kernel: Kernel) -> Steps:
    """A range written out, for reductions also with an accumulator each."""
    for leaves in _alike(kernel):
        for count in (*UNROLL, *{n.extent for n in leaves if isinstance(n.extent, int)}):
            if count > MOST_STEPS:
                continue
            actions, names = _cut_all(kernel, leaves, "u", count)
            if not names:
                continue
            old = [n.name for n in kernel.leaves.values() if n.kind == "unroll"]
            yield [*actions, unroll(*names)]
            if old:
                yield [*actions, unroll(*names, *old)]
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
    extent = upper(leaf.extent)
    pieces = {-(-extent // (count * kernel.target.threads)) for count in TASKS}
    even = {d for p in pieces for d in range(p // 2 + 1, p + 1) if extent % d == 0}
    return sorted(p for p in pieces | even if 1 < p < extent)[-8:]


def _task_sums(kernel: Kernel, leaf: Leaf) -> Steps:
    """Pieces of a sum as tasks, which a second phase adds up."""
    for piece in _pieces(kernel, leaf)[-3:]:
        cut = _cut(kernel, leaf, "p", piece)
        if cut is not None and cut[0]:
            split = cut[0][0]
            assert isinstance(split, Split)
            again = _fresh(kernel, f"{leaf.name}t")
            front = [n for n in _users(kernel, leaf.name)[0].order if n != leaf.name]
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


def _staged(kernel: Kernel) -> Steps:
    """What several iterations read, copied inside a loop or once for the whole kernel."""
    for load, readers in _shared_loads(kernel).items():
        buffer, name = stage_name(kernel, load), _fresh(kernel, "panel")
        lane = _lane_axis(kernel, load)
        last = load.arg - 1
        layouts_tried = [()] if lane in (None, last) else [_lane_last(load, lane), ()]
        common = shared_prefix([r.order for r in readers])
        places = [n for n in common if kernel.leaves[n].kind in ("loop", "grid")]
        for layout in layouts_tried:
            own = f"{name}{layout[-1] if layout else last}"
            lanes = kernel.target.lanes(load.dtype)
            vectors: list[Action] = [
                Split(own, f"{own}o", ((f"{own}v", lanes),)),
                vector(f"{own}v"),
            ]
            for at in places:
                yield [Stage(buffer, at, name, layout=layout), *vectors]
            whole: list[Action] = [Stage(buffer, ROOT, name, ROOT, layout), *vectors]
            yield whole
            for axis in range(load.arg):
                if f"{name}{axis}" != own:
                    yield [*whole, grid(f"{name}{axis}")]


def _shared_loads(kernel: Kernel) -> dict[Node, list[Stmt]]:
    """Every load of a buffer of the call in a reduction, with the statements that do it."""
    found: dict[Node, list[Stmt]] = {}
    for statement in kernel.statements:
        for load in loads(statement):
            if isinstance(load.src[0].arg[0], int) and load.arg and not statement.is_store:
                found.setdefault(load, []).append(statement)
    copied = {s.values[0] for s in kernel.statements if s.name.startswith("copy_")}
    return {load: users for load, users in found.items() if load not in copied}


def _lane_axis(kernel: Kernel, load: Node) -> int | None:
    """The axis of a load that moves with lanes."""
    for leaf in kernel.leaves.values():
        if leaf.kind == "vector":
            axis = _axis(kernel, load, leaf)
            if axis is not None:
                return axis
    return None


def _lane_last(load: Node, axis: int | None) -> tuple[int, ...]:
    return (*(a for a in range(load.arg) if a != axis), axis or 0)


def _detached(kernel: Kernel) -> Steps:
    """The results of a tile stored by loops of their own, with lanes along another range."""
    for statement in kernel.statements:
        if not statement.reduced or statement.name.startswith("copy_"):
            continue
        results = kept(statement)
        loops = [n for n in results if kernel.leaves[n].kind in ("loop", "grid")]
        tiled = [kernel.range_of[n].name for n in results if kernel.leaves[n].kind == "unroll"]
        tiled += [kernel.range_of[n].name for n in results if kernel.leaves[n].kind == "vector"]
        for at in loops[-1:]:
            name = _fresh(kernel, "t")
            detach = Detach(statement.name, at, name)
            for along in dict.fromkeys(tiled):
                own = f"{name}{along}"
                others = tuple(f"{name}{n}" for n in dict.fromkeys(tiled) if n != along)
                order: Actions = [Reorder((*others, own))] if others else []
                for lanes in (16, 8, 4):
                    split = Split(own, f"{own}o", ((f"{own}v", lanes),))
                    yield [detach, *order, split, vector(f"{own}v")]
                    yield [detach, *order, vector(own)]


def _moved(kernel: Kernel) -> int:
    """Bytes of all buffers of the call."""
    buffers = {
        node
        for s in kernel.statements
        for node in (*s.targets, *(load.src[0] for load in loads(s)))
        if isinstance(node.arg[0], int)
    }
    return sum(n.dtype.itemsize * upper(index.product(n.shape)) for n in buffers)


def _hinted(kernel: Kernel) -> Steps:
    """Stores past the caches; partial tiles otherwise."""
    large = _moved(kernel) > kernel.target.cache_bytes[-1] // 2
    for statement in kernel.statements:
        if large and statement.is_store and statement.hint is None and statement.monoid is None:
            yield [Hint(statement.name, "nontemporal")]
    for owner in kernel.ranges.values():
        if len(owner.leaves) > 1 and not exact(kernel, owner):
            for how in ("mask", "shift", "peel"):
                if how != owner.tail:
                    yield [Tail(owner.leaves[0], how)]


def _asked_ahead(kernel: Kernel) -> Steps:
    """Memory asked for before it is read."""
    caches = kernel.target.cache_bytes
    if (
        "prefetch" not in kernel.target.intrinsics
        or _moved(kernel) <= caches[min(1, len(caches) - 1)]
    ):
        return
    for statement in kernel.statements:
        buffers = {load.src[0].arg[0] for load in loads(statement)}
        wished = {(buffer, leaf) for buffer, leaf, _, _ in statement.prefetch}
        loops = [n for n in statement.order if kernel.leaves[n].kind in ("loop", "grid")]
        for buffer in sorted(f"arg{b}" for b in buffers if isinstance(b, int)):
            for leaf in loops[-2:]:
                if (buffer, leaf) not in wished:
                    yield from ([Prefetch(buffer, statement.name, leaf, n)] for n in AHEAD)


def _fused(kernel: Kernel) -> Steps:
    """Neighbouring whole ranges as one."""
    for statement in kernel.statements:
        whole = [n for n in statement.order if kernel.range_of[n].leaves == (n,)]
        for a, b in pairwise(whole):
            yield [Fuse((a, b), _fresh(kernel, f"{a}{b}"))]


def _stored(kernel: Kernel) -> Steps:
    """Values that are computed again later, kept."""
    for statement in kernel.statements:
        if statement.reduced:
            yield [Keep(statement.name, _fresh(kernel, f"{statement.name}_row"))]


STEPS: dict[str, Callable[[Kernel], Steps]] = {
    "fuse": _fused,
    "keep": _stored,
    "lanes": _lanes,
    "unroll": _unrolled,
    "tile": _tiles,
    "tasks": _tasks,
    "reorder": _reordered,
    "block": _blocked,
    "stage": _staged,
    "detach": _detached,
    "hint": _hinted,
    "prefetch": _asked_ahead,
}

OF_WHOLE_RANGES = {"fuse", "keep"}  # steps that come before all others
