"""Where elements lie: flat offsets into the buffers of a call and into scratch buffers.

A scratch buffer is addressed logically. In memory a dimension needs room only for what varies
inside the buffer's home (the leaves that its writer shares with all its readers):

    position in dimension d = index of d with the home's leaves at 0

and the dimensions lie row-major, the one that the writer walks with vector lanes innermost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from math import prod

from treadle.ir import index, ops
from treadle.ir.node import Node
from treadle.kernel.kernel import (
    INSIDE,
    Extent,
    Kernel,
    ScheduleError,
    Scratch,
    Stmt,
    home,
    kept,
    loads,
)

ROOT = "root"


@dataclass(frozen=True)
class Layout:
    """How one scratch buffer lies in memory: its strides by dimension, what its least place would
    be without a correction, its elements, and the leaves of its home, which do not move it (their
    nodes, and all of them as a mask). blocks: a dimension that is cut in blocks, how long they are,
    and the stride from one to the next. group: a dimension that lies in groups, and their size: its
    place in a group is a dimension more, the last."""

    strides: tuple[Extent, ...]
    first: Node
    size: Extent
    home: tuple[Node, ...]
    mask: int
    blocks: tuple[int, int, Extent] | None = None
    group: tuple[int, int] | None = None

    def offset(self, place: Sequence[Node]) -> Node:
        """The flat offset of the element at a logical place, before `inside` the home."""
        place = in_groups(self.group, place)
        block = index.as_node(0)
        if self.blocks is not None:
            cut, length, apart = self.blocks
            block = index.mul(index.floordiv(place[cut], length), apart)
            place = [index.mod(i, length) if d == cut else i for d, i in enumerate(place)]
        flat = index.add(block, *(index.mul(i, stride) for i, stride in zip(place, self.strides)))
        return index.sub(flat, self.first)

    def inside(self, offset: Node) -> Node:
        """A flat offset over leaves, with those of the home at 0."""
        return index.substitute(offset, dict.fromkeys(self.home, 0)) if self.home else offset


def in_groups(group: tuple[int, int] | None, place: Sequence[Node]) -> Sequence[Node]:
    """A place in memory that lies in groups: which group, and where in it as a dimension more."""
    if group is None:
        return place
    axis, size = group
    inside = index.mod(place[axis], size)
    return [*place[:axis], index.floordiv(place[axis], size), *place[axis + 1 :], inside]


def strides_of(shape: Sequence[Extent]) -> tuple[Extent, ...]:
    """Row-major strides in elements."""
    strides: list[Extent] = []
    step: Extent = 1
    for size in reversed(shape):
        strides.append(step)
        step = index.dim(index.mul(step, size))
    return tuple(reversed(strides))


def buffer_offset(buffer: Node, place: Sequence[Node]) -> Node:
    """The flat offset of an element of a buffer of the call."""
    return index.add(*(index.mul(i, s) for i, s in zip(place, strides_of(buffer.shape))))


def layouts(kernel: Kernel) -> dict[str, Layout]:
    """The layout of every scratch buffer, by name."""
    if "layouts" not in kernel.facts:
        kernel.facts["layouts"] = _layouts(kernel)
    return kernel.facts["layouts"]  # type: ignore[no-any-return]


def _layouts(kernel: Kernel) -> dict[str, Layout]:
    places: dict[str, list[tuple[Node, ...]]] = {name: [] for name in kernel.scratch}
    writers: dict[str, Stmt] = {}
    for statement in kernel.statements:
        for target in statement.targets:
            if target.arg[0] in places:
                places[target.arg[0]].append(statement.index)
                writers.setdefault(target.arg[0], statement)
        for load in loads(statement):
            if load.src[0].arg[0] in places:
                places[load.src[0].arg[0]].append(load.src[1 : 1 + load.arg])
    for name, writer in writers.items():
        _require_one_value(kernel, name, writer)
    return {
        name: _layout(kernel, name, found, writers[name])
        for name, found in places.items()
        if name in writers
    }


def _layout(kernel: Kernel, name: str, places: list[tuple[Node, ...]], writer: Stmt) -> Layout:
    scratch, logical = kernel.scratch[name], places
    shared = () if scratch.scope == ROOT else home(kernel, name)
    if scratch.scope == "shared":  # each thread of the block has a part of it
        shared = tuple(leaf for leaf in shared if kernel.leaves[leaf].kind != "local")
    bits = sum(kernel.leaves[leaf].bit for leaf in shared)
    # a read may not be hoisted out of a loop around the writer, even if that runs only once
    loops = (leaf for leaf in writer.order if kernel.leaves[leaf].kind not in INSIDE)
    mask = sum(kernel.leaves[leaf].bit for leaf in {*shared, *loops})
    nodes = (kernel.leaves[leaf].node for leaf in shared)
    leaves = tuple(n for n in nodes if n.op is ops.RANGE)
    fixed = dict.fromkeys(leaves, 0)
    order = [int(d) for d in scratch.layout] or _order(kernel, writer, len(writer.index))
    cut = order[-1] if order else 0
    places = [tuple(in_groups(scratch.group, place)) for place in places]
    shape = _shape(scratch)
    order += range(len(order), len(shape))
    rank = len(shape)
    slack = _slack(kernel, writer)
    spans = [
        _span(kernel, scratch, shape[d], [place[d] for place in places], fixed, slack)
        for d in range(rank)
    ]
    lows = [low for low, _ in spans]
    extents = [extent for _, extent in spans]
    written = [kernel.over_ranges(i).free for i in in_groups(scratch.group, writer.index)]
    blocks = _cut_in_blocks(scratch, cut, extents)
    if blocks is not None:
        inside = (index.mod(place[cut], blocks[1]) for place in places)
        places = [(*p[:cut], i, *p[cut + 1 :]) for p, i in zip(places, inside)]
    strides: list[Extent] = [0] * rank
    step: Extent = 1
    for d, outer in zip(order[::-1], (*order[-2::-1], None)):
        strides[d] = step
        step = index.dim(index.mul(step, extents[d]))
        apart = outer is None or not written[d] & written[outer]
        if apart and scratch.scope != ROOT:  # a last vector may go past the end of a fused range
            step = max(index.bounds(step)[1], _reach(kernel, places, strides, lows, fixed))
    first = index.add(*(index.mul(stride, low) for stride, low in zip(strides, lows)))
    size = index.product(extents)
    layout = Layout(tuple(strides), first, size, leaves, mask, group=scratch.group)
    if blocks is not None:
        cut, length, count = blocks
        size = index.dim(index.mul(step, count))
        layout = replace(layout, size=size, blocks=(cut, length, step))
    offsets = {kernel.over_leaves(layout.offset(place)) for place in logical}
    if scratch.scope != ROOT:
        for offset in offsets:
            if any(a.free & bits and a.free & ~bits for _, a in index.terms(offset)[1]):
                raise ScheduleError(f"where {name} is used jumps with the loops around it")
        if len({index.sub(offset, layout.inside(offset)) for offset in offsets}) > 1:
            raise ScheduleError(f"the places of {name} move apart with the loops around it")
        offsets = {layout.inside(offset) for offset in offsets}
        layout = replace(layout, size=max(1, *(index.bounds(i)[1] + 1 for i in offsets)))
    for offset in offsets:
        _require_inside(name, offset, layout.size)
    return layout


def _require_one_value(kernel: Kernel, name: str, writer: Stmt) -> None:
    """Points of a statement that differ in what they write have places of their own, or are of
    different iterations of the buffer's home. Of a sum that is every point; of a copy each of which
    the value moves with. (Several may fall on one place where that is a quotient, and a guard may
    say another thing for each.)"""
    around = sum(kernel.leaves[leaf].bit for leaf in home(kernel, name))
    moving = sum(kernel.leaves[leaf].bit for leaf in kept(writer))
    if not writer.reduced:
        moving = kernel.over_leaves(writer.values[0]).free
    guarded = any(len(n.src) > 1 + n.arg for n in loads(writer))
    for place in map(kernel.over_leaves, writer.index):
        for _, atom in index.terms(place)[1]:
            if atom.op is ops.RANGE or writer.reduced or not guarded:
                moving &= ~atom.free
    if moving & ~around & sum(leaf.bit for leaf in kernel.leaves.values() if leaf.extent != 1):
        raise ScheduleError(f"{writer.name} would write several values to one place of {name}")


def _shape(scratch: Scratch) -> tuple[Extent, ...]:
    """The logical shape of a scratch buffer, with the groups of a dimension as one dimension and
    the places in them as another."""
    if scratch.group is None:
        return scratch.node.shape
    axis, size = scratch.group
    shape = list(scratch.node.shape)
    shape[axis] = index.dim(index.floordiv(index.add(shape[axis], size - 1), size))
    return (*shape, size)


def _cut_in_blocks(
    scratch: Scratch, cut: int, extents: list[Extent]
) -> tuple[int, int, Extent] | None:
    """Cuts a dimension of a scratch buffer in blocks, if that is its layout: it becomes as long as
    one. (dimension, length of a block, how many there are)."""
    if not scratch.block:
        return None
    count = index.dim(index.floordiv(index.add(extents[cut], scratch.block - 1), scratch.block))
    extents[cut] = scratch.block
    return cut, scratch.block, count


def _require_inside(name: str, offset: Node, size: Extent) -> None:
    """A schedule may not use a scratch buffer outside of its memory: what is beside it is not its
    own. Whatever the schedule was, this is checked of the result, as far as bounds decide it."""
    inside = index.both(index.le(0, offset), index.lt(offset, size))
    undecided = isinstance(size, Node) and inside is not index.FALSE  # depends on variables
    if inside is not index.TRUE and not undecided:
        raise ScheduleError(
            f"{name} would be used at {index.spell(offset)}, outside of its "
            f"{index.spell(size)} elements"
        )


def _reach(
    kernel: Kernel,
    places: list[tuple[Node, ...]],
    strides: Sequence[Extent],
    lows: Sequence[int],
    fixed: dict[Node, int],
) -> int:
    """Elements from the first to the last that is touched, by the dimensions that have a stride."""
    reach = 0
    for place in set(places):
        parts = (index.mul(index.sub(i, low), n) for i, low, n in zip(place, lows, strides) if n)
        offset = index.substitute(kernel.over_leaves(index.add(*parts)), fixed)
        reach = max(reach, index.bounds(offset)[1] + 1)
    return reach


def _span(
    kernel: Kernel,
    scratch: Scratch,
    size: Extent,
    places: Sequence[Node],
    fixed: dict[Node, int],
    slack: int,
) -> tuple[int, Extent]:
    """The least place in a dimension (a box with a border begins below 0) and the room from there
    on. Parts of a fused range get the whole dimension: only then they fold to the range again."""
    inside = [index.substitute(kernel.over_leaves(i), fixed) for i in set(places)]
    low = min(index.bounds(i)[0] for i in inside)
    whole = any(kernel.over_ranges(i) is not i for i in places)
    if scratch.scope != ROOT:
        high = max(index.bounds(i)[1] for i in inside)
        return low, size if whole else max(1, high + 1 - low)
    if not whole:
        last = reduce(index.maximum, map(greatest, inside))
        return low, index.dim(index.maximum(0, index.sub(index.add(last, 1), low)))
    low = min(low, 0)
    if isinstance(size, int):
        stop: Extent = max(size, *(index.bounds(i)[1] + 1 for i in inside))
    else:
        last = reduce(index.maximum, (greatest(i, slack) for i in places))
        stop = index.dim(index.maximum(size, index.add(last, 1)))
    return low, index.dim(index.sub(stop, low))


def greatest(place: Node, slack: int = 0) -> Node:
    """The greatest value of a place, with symbolic sizes and variables as they are; ranges of a
    symbolic size may go `slack` points past their end."""
    constant, parts = index.terms(place)
    ends: list[Node] = []
    for factor, atom in parts:
        low, high = index.bounds(atom)
        end: Extent = high if factor > 0 else low
        if atom.op is ops.VARIABLE:
            end = atom
        elif atom.op is ops.RANGE and _is_symbolic(atom.arg[1]) and factor > 0:
            end = index.add(atom.arg[1], slack - 1)
        ends.append(index.mul(end, factor))
    return index.add(constant, *ends)


def _is_symbolic(extent: Extent) -> bool:
    """Whether a size is known only when the program runs, and is the same all the time then."""
    return isinstance(extent, Node) and not extent.free


def _slack(kernel: Kernel, writer: Stmt) -> int:
    """How many points past its end the last tile of a range may write."""
    inner = (kernel.leaves[name] for name in writer.order)
    return prod(index.as_int(n.extent) for n in inner if n.kind in INSIDE) - 1


def root_buffers(kernel: Kernel) -> dict[str, Node]:
    """The scratch buffers that the caller provides: each as an ARG at a position after the buffers
    of the call, of one dimension."""
    positions = [-1]
    for statement in kernel.statements:
        used = (*statement.targets, *(load.src[0] for load in loads(statement)))
        positions += [node.arg[0] for node in used if isinstance(node.arg[0], int)]
    first = max(positions) + 1
    layout = layouts(kernel)
    names = [s.name for s in kernel.scratch.values() if s.scope == ROOT and s.name in layout]
    return {
        name: Node(ops.ARG, kernel.scratch[name].node.dtype, (), (first + n, (layout[name].size,)))
        for n, name in enumerate(names)
    }


def _order(kernel: Kernel, writer: Stmt, rank: int) -> list[int]:
    """Dimensions from the outermost to the innermost in memory. Parts of a fused range that has
    lanes stay together: apart, their places would not fold to the range."""
    lanes = 0
    for name in writer.order:
        if kernel.leaves[name].kind == "vector":
            lanes |= kernel.leaves[name].bit | kernel.range_of[name].node.free
    moving = [kernel.over_leaves(i).free | kernel.over_ranges(i).free for i in writer.index]
    return sorted(range(rank), key=lambda d: bool(moving[d] & lanes))
