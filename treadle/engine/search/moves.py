"""The lists of actions that are one step away from a list: with a step more, with a parameter
changed, with an action taken away.

Whether a list is legal is decided by the actions themselves: what raises `ScheduleError` is no
candidate. A step is an action together with those without which it is no good: lanes are a split
and a `vector`, a staged operand is copied by lanes too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import permutations

from treadle.ir import index
from treadle.ir.node import Node
from treadle.kernel.actions import (
    Action,
    Fuse,
    Hint,
    Kind,
    Prefetch,
    Reorder,
    Split,
    Tail,
    apply,
    grid,
    unroll,
    vector,
)
from treadle.kernel.analysis import upper
from treadle.kernel.cooperate import Cooperate, CooperateTasks
from treadle.kernel.kernel import (
    Kernel,
    Leaf,
    ScheduleError,
    Stmt,
    exact,
    kept,
    loads,
    shared_prefix,
)
from treadle.kernel.layout import ROOT, buffer_offset, layouts
from treadle.kernel.retile import Detach
from treadle.kernel.stage import Keep, Stage, stage_name

UNROLL = (2, 3, 4, 5, 6, 7, 8, 12, 14)  # steps that are written out
BLOCKS = (32, 128, 512)  # points of a block
TASKS = (1, 2, 4, 8, 32)  # tasks for each thread, about
AHEAD = (1, 2, 4, 8, 16)  # iterations by which memory is asked ahead
MOST_UNROLLED = 512  # points of a statement that are written out, lanes not counted
MOST_SCRATCH = 1 << 20  # bytes of a scratch buffer on a thread's stack

Steps = Iterator[list[Action]]


@dataclass(frozen=True)
class Candidate:
    """A list of actions, the kernel after it, and the step that led to it."""

    actions: tuple[Action, ...]
    kernel: Kernel
    step: str

    @property
    def text(self) -> str:
        """The list as text."""
        return "\n".join(map(str, self.actions))


def start(kernel: Kernel, actions: Iterable[Action]) -> Candidate:
    """A list to begin with. ScheduleError if it does not apply."""
    listed = tuple(actions)
    return Candidate(listed, _checked(apply(kernel, listed)), "start")


def neighbours(kernel: Kernel, candidate: Candidate) -> Iterator[Candidate]:
    """Every legal list one step away. kernel: as it is before any action."""
    actions = candidate.actions
    yield from _longer(kernel, candidate)
    for number, action in enumerate(actions):
        for other in _changed(action, candidate.kernel):
            made = _made(kernel, (*actions[:number], other, *actions[number + 1 :]), "change")
            if made is not None:
                yield made
        yield _without(kernel, actions, number)


def _longer(kernel: Kernel, candidate: Candidate) -> Iterator[Candidate]:
    """One step more: at the end, and before the first action that fixes what a tile is."""
    actions = candidate.actions
    fixing = (n for n, a in enumerate(actions) if isinstance(a, Stage | Detach))
    for position in dict.fromkeys((len(actions), next(fixing, len(actions)))):
        before, after = actions[:position], actions[position:]
        state = apply(kernel, before) if after else candidate.kernel
        for name, step in STEPS.items():
            for more in step(state):
                made = _made(state, (*more, *after), name)
                if made is not None:
                    yield replace(made, actions=(*before, *made.actions))


def _made(kernel: Kernel, actions: tuple[Action, ...], step: str) -> Candidate | None:
    try:
        return Candidate(actions, _checked(apply(kernel, actions)), step)
    except ScheduleError:
        return None


def _checked(kernel: Kernel) -> Kernel:
    """The kernel, if its code is of a reasonable size and its scratch memory fits a stack."""
    for statement in kernel.statements:
        written = 1
        for name in statement.order:
            leaf = kernel.leaves[name]
            written *= leaf.extent if leaf.kind == "unroll" and isinstance(leaf.extent, int) else 1
        if written > MOST_UNROLLED:
            raise ScheduleError(f"{statement.name} would be written out {written} times")
    for name, layout in layouts(kernel).items():
        scratch = kernel.scratch[name]
        if scratch.scope != ROOT and upper(layout.size) * scratch.node.dtype.itemsize > MOST_SCRATCH:
            raise ScheduleError(f"{name} is too large for a stack")
    return kernel


def _without(kernel: Kernel, actions: tuple[Action, ...], number: int) -> Candidate:
    """The list without an action, and without those that do not apply any more."""
    left = list(actions[:number])
    state = apply(kernel, left)
    for action in actions[number + 1 :]:
        try:
            state = _checked(action(state))
        except ScheduleError:
            continue
        left.append(action)
    return Candidate(tuple(left), state, "remove")


# ---- changed parameters --------------------------------------------------------------------------
def _changed(action: Action, kernel: Kernel) -> Iterator[Action]:
    """The action with one of its parameters another."""
    match action:
        case Split():
            yield from _resized(action, kernel)
        case Kind(kind, leaves) if kind in ("unroll", "grid") and 1 < len(leaves) <= 4:
            for order in permutations(leaves):
                if order != leaves:
                    yield replace(action, leaves=order)
        case Kind(kind, leaves) if len(leaves) > 1:
            yield from (replace(action, leaves=rest) for rest in _one_less(leaves))
        case Reorder(leaves):
            for place in range(len(leaves) - 1):
                a, b = leaves[place : place + 2]
                yield Reorder((*leaves[:place], b, a, *leaves[place + 2 :]))
        case Prefetch():
            for ahead in AHEAD:
                if ahead != action.ahead:
                    yield replace(action, ahead=ahead)
        case Tail():
            yield from (Tail(action.leaf, how) for how in ("peel", "mask", "shift"))
        case Stage() if action.at != ROOT:
            loops = (leaf.name for leaf in kernel.leaves.values() if leaf.kind in ("loop", "grid"))
            yield from (replace(action, at=name) for name in loops if name != action.at)


def _one_less(names: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    for place in range(len(names)):
        yield names[:place] + names[place + 1 :]


def _resized(action: Split, kernel: Kernel) -> Iterator[Action]:
    """Other sizes of one part: near ones, halves and doubles; powers of 2 where lanes are."""
    for place, (name, size) in enumerate(action.inner):
        leaf = kernel.leaves.get(name)
        if leaf is not None and leaf.kind == "vector":
            sizes = {size // 2, size * 2}
        elif size <= 16:
            sizes = {size - 2, size - 1, size + 1, size + 2, size // 2, size * 2}
        else:
            sizes = {size // 2, size * 2, size * 3 // 4, size * 3 // 2, *_divisors(action, kernel)}
        for other in sorted(sizes - {size}):
            if other >= 2:
                inner = (*action.inner[:place], (name, other), *action.inner[place + 1 :])
                yield replace(action, inner=inner)


def _divisors(action: Split, kernel: Kernel) -> set[int]:
    """Sizes near that of a part's which cut the range evenly."""
    ranges = [kernel.range_of[n] for n, _ in action.inner if n in kernel.leaves]
    if len(action.inner) != 1 or not ranges or not isinstance(ranges[0].extent, int):
        return set()
    extent, size = ranges[0].extent, action.inner[0][1]
    return {n for n in range(size // 2, size * 2) if n and extent % n == 0}


# ---- one step more -------------------------------------------------------------------------------
def _fresh(kernel: Kernel, name: str) -> str:
    """A name like this one that nothing has yet."""
    taken = {*kernel.leaves, *kernel.ranges, *kernel.scratch}
    found, number = name, 2
    while found in taken or any(t.startswith(found) and t[len(found) :].isdigit() for t in taken):
        found, number = f"{name}{number}", number + 1
    return found


def _loops(kernel: Kernel) -> list[Leaf]:
    """The leaves that are still loops and run more than once."""
    return [n for n in kernel.leaves.values() if n.kind == "loop" and n.extent != 1]


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


def _cut(kernel: Kernel, leaf: Leaf, letter: str, size: int) -> tuple[list[Action], str] | None:
    """The inner part of a leaf, of this size: what cuts it off, and its name."""
    if leaf.extent == size:
        return [], leaf.name
    if isinstance(leaf.extent, int) and leaf.extent < size:
        return None
    outer, inner = _fresh(kernel, f"{leaf.name}o"), _fresh(kernel, f"{leaf.name}{letter}")
    return [Split(leaf.name, outer, ((inner, size),))], inner


def _cut_all(
    kernel: Kernel, leaves: Sequence[Leaf], letter: str, size: int
) -> tuple[list[Action], list[str]]:
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
            step = [*actions, vector(*names)]
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
        copied = [Split(own, f"{own}o", ((f"{own}v", lanes),)), vector(f"{own}v")]
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
            if count > UNROLL[-1] + 2:
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
            for rows, columns in ((8, 3), (6, 4), (4, 4), (8, 2), (4, 2), (12, 2), (3, 3), (7, 2)):
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
    return sorted(p for p in pieces | even if 1 < p < extent)[-12:]


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
            vectors = [Split(own, f"{own}o", ((f"{own}v", lanes),)), vector(f"{own}v")]
            for at in places:
                yield [Stage(buffer, at, name, layout=layout), *vectors]
            whole = [Stage(buffer, ROOT, name, ROOT, layout), *vectors]
            yield whole
            yield from ([*whole, grid(f"{name}{a}")] for a in range(load.arg) if f"{name}{a}" != own)


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
                order: list[Action] = [Reorder((*others, own))] if others else []
                for lanes in (16, 8, 4):
                    split = Split(own, f"{own}o", ((f"{own}v", lanes),))
                    yield [detach, *order, split, vector(f"{own}v")]
                    yield [detach, *order, vector(own)]


def _hinted(kernel: Kernel) -> Steps:
    """Stores past the caches; partial tiles otherwise."""
    for statement in kernel.statements:
        if statement.is_store and statement.hint is None and statement.monoid is None:
            yield [Hint(statement.name, "nontemporal")]
    for owner in kernel.ranges.values():
        if len(owner.leaves) > 1 and not exact(kernel, owner):
            for how in ("mask", "shift", "peel"):
                if how != owner.tail:
                    yield [Tail(owner.leaves[0], how)]


def _asked_ahead(kernel: Kernel) -> Steps:
    """Memory asked for before it is read."""
    if "prefetch" not in kernel.target.intrinsics:
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
        for a, b in zip(whole, whole[1:]):
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
