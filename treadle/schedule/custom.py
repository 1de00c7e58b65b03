"""Kernels that the user wrote, in a schedule: each is one launch, over what it reads in memory."""

from __future__ import annotations

from treadle.ir import index, ops
from treadle.ir.dtype import DType
from treadle.ir.node import Node, Shape, toposort
from treadle.schedule.build import Level
from treadle.schedule.demand import Draft
from treadle.schedule.graph import TRANSPARENT
from treadle.schedule.movement import Position
from treadle.schedule.plan import Call

# an ARG of the launch, and what comes before the indices that the kernel was written with
Place = tuple[Node, Position]


def read_from_memory(node: Node) -> list[Node]:
    """The sources that a KERNEL reads from memory: all that it uses, but for numbers that come with
    the launch."""
    outputs = len(node.dtype)
    numbers: dict[int, None] = {}
    for leaf in toposort(node.arg[0]):
        if leaf.op is ops.ARG and leaf.arg[0] >= outputs:
            numbers[leaf.arg[0] - outputs] = None
        elif leaf.op is ops.SCALAR and not is_number(node.src[leaf.arg]):
            numbers[leaf.arg] = None
    return [node.src[number] for number in numbers]


def is_number(source: Node) -> bool:
    """Whether a value is made of constants and run-time numbers alone."""
    if source.shape:
        return False
    return all(
        node.op.kind == "alu" or node.op in (ops.CONST, ops.SCALAR) for node in toposort(source)
    )


def memory_of(source: Node) -> Node:
    """What has the elements of a source in the same order, and is in memory anyway."""
    node = source
    while node.op in TRANSPARENT:
        node = node.src[0]
    return source if node.op is ops.PLACEHOLDER else node


def call(draft: Draft, level: Level) -> Call:
    """The launch of a draft's KERNEL."""
    return _Custom(draft, level).call()


class _Custom:
    """One KERNEL on its way to a launch: its ARGs become those of buffers, numbered by use."""

    def __init__(self, draft: Draft, level: Level) -> None:
        self.draft = draft
        self.level = level
        self.node = draft.node
        self.outputs = len(self.node.dtype)
        self.buffers: list[int] = []
        self.scalars: dict[Node, Node] = {}
        self.written: set[int] = set()
        self.sources: dict[Node, Place | None] = {}
        self.new: dict[Node, Node] = {}

    def call(self) -> Call:
        sink = self.node.arg[0]
        order = toposort(sink)
        targets = {store: self._targets(store) for store in sink.src}
        for argument in sorted(self._arguments(order), key=lambda node: node.arg[0]):
            self.sources[argument] = self._source(argument)
        for node in order:
            if node.op is ops.LOAD:
                at = tuple([self.new[s] for s in node.src[1:]])
                self.new[node] = self._load(node.src[0], at[: node.arg], at[node.arg :])
            elif node.op is ops.SCALAR:
                self.new[node] = self._number(node)
            elif node.op not in (ops.ARG, ops.STORE, ops.SINK):
                self.new[node] = index.rebuild(node, tuple([self.new[s] for s in node.src]))
        stores = [self._store(store, place) for store in sink.src for place in targets[store]]
        checks = sum(node.op is ops.CHECK for node in order)
        read = [b for n, b in enumerate(self.buffers) if n not in self.written]
        return Call(
            kernel=Node(ops.SINK, sink.dtype, tuple(stores), sink.arg),
            buffers=tuple(self.buffers),
            scalars=tuple(self.scalars),
            checks=(self.node,) * checks,
            may_fail=bool(checks),
            reasons=tuple(self.draft.reasons),
            reads=frozenset(read),
            writes=frozenset([self.buffers[n] for n in self.written]),
        )

    def _arguments(self, order: list[Node]) -> set[Node]:
        """The ARGs of the sources, numbers that are in memory among them."""
        found = {node for node in order if node.op is ops.ARG and node.arg[0] >= self.outputs}
        for node in order:
            if node.op is ops.SCALAR and not is_number(self.node.src[node.arg]):
                found.add(self._number_argument(node))
        return found

    def _number_argument(self, node: Node) -> Node:
        return Node(ops.ARG, node.dtype, (), (self.outputs + node.arg, ()))

    def _targets(self, store: Node) -> list[Place]:
        """Where a result goes: it may be a step of what a loop stacks, or wanted in two places."""
        argument = store.src[0]
        places = self.level.values[self.node].places[argument.arg[0]]
        found = []
        for buffer, prefix in places:
            self.written.add(len(self.buffers))
            found.append(self._place(argument, buffer, prefix))
        return found

    def _argument(self, dtype: DType, shape: Shape, buffer: int) -> Node:
        made = Node(ops.ARG, dtype, (), (len(self.buffers), shape))
        self.buffers.append(buffer)
        return made

    def _place(self, argument: Node, buffer: int, prefix: Position) -> Place:
        """A buffer, or the part of it under some leading indices, for an ARG of the kernel."""
        outer = self.level.buffers[buffer].shape[: len(prefix)]
        return self._argument(argument.dtype, (*outer, *argument.shape), buffer), prefix

    def _source(self, argument: Node) -> Place | None:
        """Where a source of the kernel is; None for one that a loop gives its body and that is in
        no memory."""
        base = self._base(argument)
        value = self.level.values.get(base)
        if value is not None:
            return self._place(argument, *value.places[0][0])
        if base.op is not ops.PLACEHOLDER:
            buffer, prefix = self.level.locate(base, ())
            assert isinstance(buffer, int)
            return self._place(argument, buffer, prefix)
        place, _ = self.level.locate(base, tuple([index.const(0) for _ in base.shape]))
        if isinstance(place, Node):
            return None
        return self._argument(argument.dtype, self.level.buffers[place].shape, place), ()

    def _base(self, argument: Node) -> Node:
        return memory_of(self.node.src[argument.arg[0] - self.outputs])

    def _load(self, argument: Node, position: Position, guard: tuple[Node, ...]) -> Node:
        place = self.sources[argument]
        base = self._base(argument)
        if base.op is ops.PLACEHOLDER:  # a step of what the loop runs over, perhaps of a view of it
            leaf, position = self.level.locate(base, position)
            if isinstance(leaf, Node):
                return self._constant(leaf, position)
        assert place is not None
        made, prefix = place
        position = (*prefix, *position)
        return Node(ops.LOAD, argument.dtype, (made, *position, *guard), len(position))

    def _constant(self, leaf: Node, position: Position) -> Node:
        if leaf.op is ops.IOTA:
            return ops.CAST(position[0], dtype=leaf.dtype)
        return self._launched(leaf)

    def _store(self, store: Node, place: Place) -> Node:
        argument, prefix = place
        value, *rest = [self.new[source] for source in store.src[1:]]
        axes, monoid = store.arg
        source = (argument, value, *prefix, *rest)
        return Node(ops.STORE, store.dtype, source, (len(prefix) + axes, monoid))

    def _number(self, node: Node) -> Node:
        """A run-time number: from the launch, or an element of memory."""
        source = self.node.src[node.arg]
        if not is_number(source):
            return self._load(self._number_argument(node), (), ())
        new: dict[Node, Node] = {}
        for below in toposort(source):
            if below.op is ops.SCALAR:
                new[below] = self._launched(below)
            else:
                new[below] = below.with_src(tuple([new[s] for s in below.src]))
        return new[source]

    def _launched(self, leaf: Node) -> Node:
        """A constant, or a number of the program as one of the launch."""
        if leaf.op is not ops.SCALAR:
            return leaf
        if leaf not in self.scalars:
            self.scalars[leaf] = Node(ops.SCALAR, leaf.dtype, (), len(self.scalars))
        return self.scalars[leaf]
