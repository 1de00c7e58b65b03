"""Steps that bring data nearer: copies, panels, values that are kept, stores apart from sums; and
what is asked ahead of its use. The names that steps give to what they make.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from treadle.ir import index, ops
from treadle.ir.node import Node, toposort
from treadle.kernel.actions import Action, Hint, Prefetch, Reorder, Split, Tail, grid, vector
from treadle.kernel.analysis import upper
from treadle.kernel.dot import Inside
from treadle.kernel.kernel import Kernel, Leaf, Stmt, exact, kept, loads, shared_prefix
from treadle.kernel.layout import ROOT, buffer_offset
from treadle.kernel.retile import Detach
from treadle.kernel.stage import Keep, Stage, stage_name

AHEAD = (1, 2, 4, 8, 16)  # iterations by which memory is asked ahead

Actions = Sequence[Action]
Steps = Iterator[Actions]


def fresh(kernel: Kernel, name: str) -> str:
    """A name like this one that nothing has yet."""
    taken = {*kernel.leaves, *kernel.ranges, *kernel.scratch}
    found, number = name, 2
    while found in taken or any(t.startswith(found) and t[len(found) :].isdigit() for t in taken):
        found, number = f"{name}{number}", number + 1
    return found


def _axis(kernel: Kernel, load: Node, leaf: Leaf) -> int | None:
    """The one axis of a load that moves with a leaf."""
    places = load.src[1 : 1 + load.arg]
    found = [a for a, p in enumerate(places) if kernel.over_leaves(p).free & leaf.bit]
    return found[0] if len(found) == 1 else None


def _lane_last(load: Node, axis: int | None) -> tuple[int, ...]:
    return (*(a for a in range(load.arg) if a != axis), axis or 0)


def panel(kernel: Kernel, statement: Stmt, a: str, b: str, at: str) -> Steps:
    """What a tile reads along its lanes and not along its rows, copied once for all rows."""
    row, column = kernel.leaves[a], kernel.leaves[b]
    for load in loads(statement):
        axis = _axis(kernel, load, column)
        if axis is None or _axis(kernel, load, row) is not None:
            continue
        name = fresh(kernel, "panel")
        own, lanes = f"{name}{axis}", kernel.target.lanes(load.dtype)
        stage = Stage(stage_name(kernel, load), at, name, layout=_lane_last(load, axis))
        yield [stage, Split(own, f"{own}o", ((f"{own}v", lanes),)), vector(f"{own}v")]


def packings(kernel: Kernel, leaf: Leaf, lanes: int) -> Steps:
    """What is read at a stride along a leaf, copied so that the leaf is contiguous."""
    for load in _strided(kernel, leaf):
        axis = _axis(kernel, load, leaf)
        if axis is None:
            continue
        buffer, name = stage_name(kernel, load), fresh(kernel, "panel")
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
    for statement in users(kernel, leaf.name):
        for load in loads(statement):
            if not isinstance(load.src[0].arg[0], int):
                continue
            offset = kernel.over_leaves(buffer_offset(load.src[0], load.src[1 : 1 + load.arg]))
            if offset.free & leaf.bit and index.coefficient(offset, leaf.node) != 1:
                found[load] = None
    return list(found)


def staged(kernel: Kernel) -> Steps:
    """What several iterations read, copied inside a loop or once for the whole kernel."""
    for load, readers in _shared_loads(kernel).items():
        buffer, name = stage_name(kernel, load), fresh(kernel, "panel")
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
                for cast in ("", *_casts(readers, load)):
                    yield [Stage(buffer, at, name, layout=layout, cast=cast), *vectors]
                yield from _in_groups(kernel, load, readers, Stage(buffer, at, name), lane)
            whole: list[Action] = [Stage(buffer, ROOT, name, ROOT, layout), *vectors]
            yield whole
            for axis in range(load.arg):
                if f"{name}{axis}" != own:
                    yield [*whole, grid(f"{name}{axis}")]


def _casts(readers: Sequence[Stmt], load: Node) -> list[str]:
    """The dtypes to which a load is converted where it is read."""
    nodes = (node for reader in readers for node in toposort(reader.roots))
    return [n.dtype.name for n in dict.fromkeys(nodes) if n.op is ops.CAST and n.src[0] is load]


def _in_groups(
    kernel: Kernel, load: Node, readers: Sequence[Stmt], stage: Stage, lane: int | None
) -> Steps:
    """A copy that lies as an instruction takes it, with lanes along the readers' lanes."""
    inside = {
        leaf
        for reader in readers
        for name in reader.order
        if (leaf := kernel.leaves[name]).kind == "mma"
    }
    for leaf in inside:
        axis = _axis(kernel, load, leaf)
        if axis is None or lane is None or axis == lane or not isinstance(leaf.extent, int):
            continue
        layout = (*(a for a in range(load.arg) if a not in (axis, lane)), axis, lane)
        own, along = f"{stage.name}{axis}", f"{stage.name}{lane}"
        yield [
            replace(stage, layout=layout, group=(axis, leaf.extent)),
            Split(own, f"{own}q", ((f"{own}p", leaf.extent),)),
            Inside(f"copy_{stage.name}", f"{own}p"),
            Split(along, f"{along}o", ((f"{along}v", kernel.target.vector_bytes // 4),)),
            vector(f"{along}v"),
        ]


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


def stored(kernel: Kernel) -> Steps:
    """Values that are computed again later, kept."""
    for statement in kernel.statements:
        if statement.reduced:
            yield [Keep(statement.name, fresh(kernel, f"{statement.name}_row"))]


def detached(kernel: Kernel) -> Steps:
    """The results of a tile stored by loops of their own, with lanes along another range."""
    for statement in kernel.statements:
        if not statement.reduced or statement.name.startswith("copy_"):
            continue
        results = kept(statement)
        loops = [n for n in results if kernel.leaves[n].kind in ("loop", "grid")]
        tiled = [kernel.range_of[n].name for n in results if kernel.leaves[n].kind == "unroll"]
        tiled += [kernel.range_of[n].name for n in results if kernel.leaves[n].kind == "vector"]
        for at in loops[-1:]:
            name = fresh(kernel, "t")
            detach = Detach(statement.name, at, name)
            for along in dict.fromkeys(tiled):
                own = f"{name}{along}"
                others = tuple(f"{name}{n}" for n in dict.fromkeys(tiled) if n != along)
                order: Actions = [Reorder((*others, own))] if others else []
                yield [detach, *order, vector(own)]
                for lanes in (16, 4):
                    split = Split(own, f"{own}o", ((f"{own}v", lanes),))
                    yield [detach, *order, split, vector(f"{own}v")]


def _stays_nowhere(kernel: Kernel) -> bool:
    """Whether the buffers of the call are together larger than the second cache."""
    caches = kernel.target.cache_bytes
    buffers = {
        node
        for s in kernel.statements
        for node in (*s.targets, *(load.src[0] for load in loads(s)))
        if isinstance(node.arg[0], int)
    }
    size = sum(n.dtype.itemsize * upper(index.product(n.shape)) for n in buffers)
    return bool(size > caches[min(1, len(caches) - 1)])


def hinted(kernel: Kernel) -> Steps:
    """Stores past the caches; partial tiles otherwise."""
    large = _stays_nowhere(kernel)
    for statement in kernel.statements:
        if large and statement.is_store and statement.hint is None and statement.monoid is None:
            yield [Hint(statement.name, "nontemporal")]
    for owner in kernel.ranges.values():
        if len(owner.leaves) > 1 and not exact(kernel, owner):
            for how in ("mask", "shift", "peel"):
                if how != owner.tail:
                    yield [Tail(owner.leaves[0], how)]


def asked_ahead(kernel: Kernel) -> Steps:
    """Memory asked for before it is read."""
    if "prefetch" not in kernel.target.intrinsics or not _stays_nowhere(kernel):
        return
    for statement in kernel.statements:
        buffers = {load.src[0].arg[0] for load in loads(statement)}
        wished = {(buffer, leaf) for buffer, leaf, _, _ in statement.prefetch}
        loops = [n for n in statement.order if kernel.leaves[n].kind in ("loop", "grid")]
        for buffer in sorted(f"arg{b}" for b in buffers if isinstance(b, int)):
            for leaf in loops[-2:]:
                if (buffer, leaf) not in wished:
                    yield [Prefetch(buffer, statement.name, leaf, AHEAD[1])]


def users(kernel: Kernel, name: str) -> list[Stmt]:
    return [s for s in kernel.statements if name in s.order]
