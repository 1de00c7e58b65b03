"""Staging: what several iterations read is brought closer, once.

`Stage` copies the part of a buffer that runs inside a leaf needs into a scratch buffer: a packed
panel of a matrix, a patch of an image with its border of zeros. `Keep` stores an expression while
it is reduced, for the loops that need it again. Both add an ordinary statement (a copy) whose
leaves are scheduled like any others; what reads them then reads the scratch buffer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

from treadle.ir import index, ops
from treadle.ir.dtype import BY_NAME
from treadle.ir.node import Node, toposort
from treadle.kernel.actions import legal, require_new_ranges
from treadle.kernel.kernel import (
    Kernel,
    Leaf,
    Range,
    ScheduleError,
    Scratch,
    Stmt,
    loads,
    memory_name,
    replaced,
    shared_prefix,
)
from treadle.kernel.layout import ROOT, greatest


@dataclass(frozen=True)
class Stage:
    """Copies what is read of a buffer inside the leaf `at` into scratch memory called `name`.

    buffer: `arg` and its position; `arg1#0`, `arg1#1` where it is read at several places. at: a
    leaf of every reader, or "root" for the whole kernel (then the copy is a phase of its own,
    before). scope: "thread" | "shared" | "root". layout: the buffer's axes as they lie in the
    scratch memory, outermost first; all of them if it is empty. block: the last of them is cut in
    blocks of so many elements, and the blocks lie outermost (panels). group: (axis, size): so many
    elements of this axis lie side by side, innermost of all (as a dot instruction takes them).
    cast: the elements are converted to this dtype on the way, where the readers would do that. The
    copy's leaves are called name0, name1, ... by axis; axes that do not vary have none.

    For GPU targets: pad, swizzle, copy, depth and producer say how the memory is laid out and
    filled (see `Scratch`); readers names the statements that read it (all, if it is empty).
    """

    buffer: str
    at: str
    name: str
    scope: str = "thread"
    layout: tuple[int, ...] = ()
    pad: int = 0
    swizzle: int = 0
    copy: str = "plain"
    depth: int = 1
    producer: int = 0
    readers: tuple[str, ...] = ()
    block: int = 0
    group: tuple[int, int] | None = None
    cast: str = ""

    def __str__(self) -> str:
        words = [f"stage {self.buffer} at {self.at} as {self.name}"]
        if self.scope != "thread":
            words.append(self.scope)
        if self.layout:
            words.append("layout " + ",".join(map(str, self.layout)))
        if self.group:
            words.append("group " + ",".join(map(str, self.group)))
        for word in ("block", "pad", "swizzle", "depth", "producer"):
            value = getattr(self, word)
            if value != Stage.__dataclass_fields__[word].default:
                words.append(f"{word} {value}")
        for word in ("copy", "cast"):
            if getattr(self, word) not in ("", "plain"):
                words.append(f"{word} {getattr(self, word)}")
        if self.readers:
            words.append("readers " + ",".join(self.readers))
        return " ".join(words)

    def __call__(self, kernel: Kernel) -> Kernel:
        readers, load = self._readers(kernel)
        _check_scratch(kernel, self)
        shared = self._shared(kernel, readers)
        inner = 0
        for reader in readers:
            for name in reader.order[len(shared) :]:
                inner |= kernel.leaves[name].bit
        place = [kernel.over_leaves(i) for i in load.src[1 : 1 + load.arg]]
        guard = kernel.over_leaves(load.src[-1]) if len(load.src) > 1 + load.arg else None
        box = _Box(kernel, self.name, place, inner, self.group)
        copied = box.load(load, guard)
        rank = len(place)
        if self.layout and sorted(self.layout) != list(range(rank)):
            raise ScheduleError(f"layout {self.layout} does not name each of {rank} axes once")
        if self.group and not 0 <= self.group[0] < rank:
            raise ScheduleError(f"there is no axis {self.group[0]} of {rank} to lie in groups")
        if self.block and not rank:
            raise ScheduleError(f"{self.buffer} is one element: it has no axis to cut in blocks")
        buffer = load.src[0]
        wanted = self._converted(kernel, load, readers)
        if wanted is not load:
            copied = Node(ops.CAST, wanted.dtype, (copied,))
        node = Node(ops.ARG, wanted.dtype, (), (self.name, buffer.shape))
        scratch = Scratch(
            self.name, node, self.scope, tuple(map(str, self.layout)), self.pad, self.swizzle,
            self.copy, self.depth, self.producer, block=self.block, group=self.group,
        )  # fmt: skip
        order = (*shared, *(leaf.name for leaf in box.leaves))
        statement = Stmt(f"copy_{self.name}", (node,), tuple(box.place), (copied,), None, order)
        staged = Node(ops.LOAD, wanted.dtype, (node, *load.src[1 : 1 + load.arg]), load.arg)
        statements: list[Stmt] = []
        for current in kernel.statements:
            if current is readers[0]:
                statements.append(statement)
            if current in readers:
                current = replaced(current, {wanted: staged})
            statements.append(current)
        changed = replace(
            kernel,
            statements=tuple(statements),
            leaves={**kernel.leaves, **{leaf.name: leaf for leaf in box.leaves}},
            ranges={**kernel.ranges, **{r.name: r for r in box.ranges}},
            scratch={**kernel.scratch, self.name: scratch},
        )
        return legal(changed.arranged())

    def _readers(self, kernel: Kernel) -> tuple[list[Stmt], Node]:
        """The statements that read the buffer, and the load that they share."""
        buffer, _, which = self.buffer.partition("#")
        found = _reads_of(kernel, buffer)
        if self.readers:
            found = {
                load: [s for s in statements if s.name in self.readers]
                for load, statements in found.items()
                if any(s.name in self.readers for s in statements)
            }
        if not found:
            raise ScheduleError(f"nothing reads {buffer}")
        if len(found) > 1 and not which:
            raise ScheduleError(
                f"{buffer} is read at {len(found)} different places: say which, from {buffer}#0 to "
                f"{buffer}#{len(found) - 1}"
            )
        number = int(which) if which.isdigit() else 0
        if number >= len(found):
            raise ScheduleError(f"{buffer} is read at {len(found)} places only")
        load, readers = list(found.items())[number]
        return readers, load

    def _converted(self, kernel: Kernel, load: Node, readers: Sequence[Stmt]) -> Node:
        """What the scratch memory stands for: the load, or what the readers make of it."""
        if not self.cast:
            return load
        found = BY_NAME.get(self.cast)
        wanted = None if found is None else Node(ops.CAST, found, (load,))
        if any(wanted not in toposort(reader.roots) for reader in readers):
            raise ScheduleError(f"not every reader of {self.buffer} converts it to {self.cast}")
        for reader in readers:
            if any(kernel.leaves[name].kind == "mma" for name in reader.order):
                raise ScheduleError(f"{reader.name} takes {self.buffer} as it is, not converted")
        assert wanted is not None
        return wanted

    def _shared(self, kernel: Kernel, readers: Sequence[Stmt]) -> tuple[str, ...]:
        """The leaves of the readers down to `at`."""
        if self.at == ROOT:
            if self.scope != ROOT:
                raise ScheduleError("what is staged at root lives in scope root")
            return ()
        kernel.leaf(self.at)
        common = shared_prefix([reader.order for reader in readers])
        if self.at not in common:
            raise ScheduleError(f"{self.at} is no loop that all readers of {self.buffer} share")
        return common[: common.index(self.at) + 1]


def _reads_of(kernel: Kernel, buffer: str) -> dict[Node, list[Stmt]]:
    """Every load of a buffer (`arg1`, or a scratch buffer's name), with the statements that do
    it."""
    found: dict[Node, list[Stmt]] = {}
    for statement in kernel.statements:
        for load in loads(statement):
            if buffer == memory_name(load.src[0]):
                found.setdefault(load, []).append(statement)
    return found


def stage_name(kernel: Kernel, load: Node) -> str:
    """What `Stage` calls a load: its buffer, and which of the buffer's loads if there are
    several."""
    buffer = memory_name(load.src[0])
    found = list(_reads_of(kernel, buffer))
    return buffer if len(found) == 1 else f"{buffer}#{found.index(load)}"


def _check_scratch(kernel: Kernel, stage: Stage) -> None:
    if stage.name in kernel.scratch:
        raise ScheduleError(f"there is a scratch buffer called {stage.name!r} already")
    if stage.scope == "shared" and kernel.target.kind != "gpu":
        raise ScheduleError(f"target {kernel.target.name} has no memory shared by a block")
    gpu_only = stage.pad or stage.swizzle or stage.copy != "plain" or stage.producer
    if kernel.target.kind != "gpu" and (gpu_only or stage.depth != 1):
        raise ScheduleError(f"pad, swizzle, copy, depth, producer are not for {kernel.target.name}")
    if stage.block < 0:
        raise ScheduleError("a block has a size of at least 1")
    if stage.group and (stage.group[1] < 2 or not stage.layout):
        raise ScheduleError("group names an axis and a size of at least 2, and needs a layout")
    if stage.depth < 1:
        raise ScheduleError("a pipeline has a depth of at least 1")


class _Box:
    """The part of a buffer that is read inside a leaf: per axis its first place, and a new range
    over what varies. It begins with a whole group."""

    def __init__(
        self,
        kernel: Kernel,
        name: str,
        place: Sequence[Node],
        inner: int,
        group: tuple[int, int] | None,
    ) -> None:
        self.leaves: list[Leaf] = []
        self.ranges: list[Range] = []
        self.place: list[Node] = []
        self.read = list(place)
        self.inner = inner
        self.moving: list[Node | None] = []
        numbers = kernel.fresh_numbers()
        for axis, i in enumerate(place):
            outer, rest = index.split(i, inner)
            if rest.op is ops.CONST:
                self.place.append(i)
                self.moving.append(None)
                continue
            if any(atom.op is not ops.RANGE for _, atom in index.terms(rest)[1]):
                if i.free & ~inner:
                    raise ScheduleError(f"the places on axis {axis} jump with the outer loops")
                outer, rest = index.as_node(0), i  # all that it can be
            low = index.bounds(rest)[0]
            if group is not None and axis == group[0]:
                low -= (index.terms(outer)[0] + low) % group[1]
            extent = index.dim(index.maximum(0, index.add(greatest(rest), 1 - low)))
            own = f"{name}{axis}"
            require_new_ranges(kernel, [own])
            leaf = Leaf(own, extent, next(numbers))
            self.leaves.append(leaf)
            self.ranges.append(Range(own, leaf.extent, leaf.number, (own,), leaf.node))
            self.place.append(index.add(outer, low, leaf.node))
            self.moving.append(rest)

    def load(self, load: Node, guard: Node | None) -> Node:
        """The load of one element of the box; outside of the buffer, or where the readers' guard is
        false, it is 0."""
        conditions = [] if guard is None else [self._translated(guard)]
        for i, size in zip(self.place, load.src[0].shape):
            conditions.append(index.le(0, i))
            conditions.append(index.lt(i, size))
        condition = index.both(*conditions)
        rest = () if condition is index.TRUE else (condition,)
        return Node(ops.LOAD, load.dtype, (load.src[0], *self.place, *rest), load.arg)

    def _translated(self, guard: Node) -> Node:
        """The readers' guard as a condition on places of the buffer."""
        parts = []
        stack = [guard]
        while stack:
            part = stack.pop()
            if part.op is ops.AND:
                stack.extend(part.src)
            else:
                parts.append(self._condition(part))
        return index.both(*parts)

    def _condition(self, part: Node) -> Node:
        """One comparison, with what varies in it expressed by the axis that it limits."""
        if not part.free & self.inner:
            return part
        if part.op is ops.LT and part.src[0].dtype is index.as_node(0).dtype:
            difference = index.sub(*part.src)  # < 0
            _, rest = index.split(difference, self.inner)
            for axis, moving in enumerate(self.moving):
                for factor in (1, -1):
                    if moving is not None and index.mul(moving, factor) is rest:
                        place = index.sub(self.place[axis], self.read[axis])
                        moved = index.add(difference, index.mul(place, factor))
                        return index.lt(moved, 0)
        raise ScheduleError("the guard of the load does not limit the places of the buffer alone")


@dataclass(frozen=True)
class Keep:
    """Stores what a statement reduces, element by element, in scratch memory called `name`, and
    reads it there in every later statement that computes the same of another loop over the
    range."""

    statement: str
    name: str

    def __str__(self) -> str:
        return f"keep {self.statement} as {self.name}"

    def __call__(self, kernel: Kernel) -> Kernel:
        writer = kernel.statement(self.statement)
        if self.name in kernel.scratch:
            raise ScheduleError(f"there is a scratch buffer called {self.name!r} already")
        if len(writer.values) != 1 or writer.is_store:
            raise ScheduleError(f"{self.statement} does not reduce one value")
        value = writer.values[0]
        own = [kernel.range_of[name] for name in writer.order]
        if any(
            kernel.leaves[name].kind != "loop" or len(r.leaves) > 1
            for name, r in zip(writer.order, own)
        ):
            raise ScheduleError("keep what is reduced before its loops are split")
        place = tuple(r.node for r in own)
        node = Node(ops.ARG, value.dtype, (), (self.name, tuple(r.extent for r in own)))
        load = Node(ops.LOAD, value.dtype, (node, *place), len(place))
        copy = Stmt(f"copy_{self.name}", (node,), place, (value,), None, writer.order)
        statements: list[Stmt] = []
        found = 0
        position = kernel.statements.index(writer)
        for number, statement in enumerate(kernel.statements):
            if number == position:
                statements += [copy, replace(writer, values=(load,))]
                continue
            for mapping in _renamings(kernel, own, statement) if number > position else ():
                same = index.substitute(value, mapping)
                changed = replaced(statement, {same: index.substitute(load, mapping)})
                if changed != statement:
                    found += 1
                    statement = changed
                    break
            statements.append(statement)
        if not found:
            raise ScheduleError(f"no later statement computes what {self.statement} reduces")
        scratch = {**kernel.scratch, self.name: Scratch(self.name, node)}
        return legal(replace(kernel, statements=tuple(statements), scratch=scratch))


def _renamings(kernel: Kernel, own: Sequence[Range], statement: Stmt) -> Iterator[dict[Node, Node]]:
    """Which ranges of another statement may stand for the writer's: each that they share for
    itself, else others of the same extent."""
    theirs = [kernel.range_of[name] for name in statement.order]
    choices = [
        [a] if a in theirs else [b for b in theirs if b not in own and b.extent == a.extent]
        for a in own
    ]
    for chosen in product(*choices):
        if len({b.number for b in chosen}) == len(own):
            yield {a.node: b.node for a, b in zip(own, chosen) if a.node.op is ops.RANGE}
