"""From a graph to a schedule: kernels in launch order, with memory for every value between them.

    normal graph -> decide (drafts, stored values) -> build (kernels) -> order, in place -> memory

`schedule` is the entry. The rules of fusion are in `decide.py`, the meaning of a kernel node is in
docs/design.md, section 3.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from treadle.backend.base import Target
from treadle.ir import index, ops
from treadle.ir.dtype import index as INDEX
from treadle.ir.dtype import uint8, void
from treadle.ir.node import Node, Shape, toposort
from treadle.schedule import cost, custom, memory
from treadle.schedule.build import FLAT_LENGTH, Binding, Builder, Level
from treadle.schedule.chain import divide_last
from treadle.schedule.decide import Decider, decide
from treadle.schedule.demand import Draft, Value
from treadle.schedule.graph import Graph
from treadle.schedule.movement import Movements, Position
from treadle.schedule.order import (
    Dependences,
    everything,
    launch_order,
    number_phases,
    rename,
)
from treadle.schedule.plan import FOREVER, BufferInfo, Call, Item, Loop, Reason, Schedule
from treadle.schedule.siblings import merge_siblings

__all__ = ["BufferInfo", "Call", "Loop", "Reason", "Schedule", "schedule"]

Place = tuple[int, Position]  # a buffer, and the leading indices of a value in it


def schedule(roots: Sequence[Node], assigns: dict[int, int], target: Target) -> Schedule:
    """The kernels that compute the roots of a normal graph (its BUFFER leaves are numbered from 0
    in order of first use), each stored in memory.

    assigns: {root: buffer}, the old buffer that a root replaces and may be written over. It is not
    if somebody still needs the old value then, or if an index of the program may prove to be out of
    range afterwards; such a root gets fresh memory and is missing in `Schedule.in_place`.
    """
    return _Scheduler(target).run(list(roots), assigns)


class _Scheduler:
    def __init__(self, target: Target) -> None:
        self.target = target
        self.buffers: list[BufferInfo] = []
        self.movements = Movements()
        self.numel = cost.Sizes()

    def run(self, roots: list[Node], assigns: dict[int, int]) -> Schedule:
        graph = self._graph(roots, set(assigns))
        self._number_inputs(graph, assigns)
        inputs = set(range(len(self.buffers)))
        level = Level({}, self.buffers, self.movements)
        decided = self._decide(graph, level, {})
        outputs = [self._output(decided, root, node) for root, node in zip(roots, graph.targets)]
        items = Dependences(self._items(decided, level, 0), inputs)
        items.join_updates(set(outputs))
        renamed: dict[int, int] = {}
        in_place = set()
        for root, old in assigns.items():
            new = outputs[root]
            if (
                new not in renamed
                and self._same_memory(new, old)
                and items.overwrite(new, old, True)
            ):
                renamed[new] = old
            if renamed.get(new) == old:
                in_place.add(root)
        ordered = launch_order(items, self._nbytes)
        rename(ordered, renamed)
        overwritten = set(renamed.values())
        for item in ordered:
            if isinstance(item, Call):
                item.in_place = not overwritten.isdisjoint(item.writes)
        outputs = [renamed.get(buffer, buffer) for buffer in outputs]
        number_phases(ordered)
        _share_flat_bodies(ordered)
        arena = memory.plan(ordered, self.buffers)
        buffers = _compact(ordered, self.buffers, outputs)
        return Schedule(ordered, buffers, arena, outputs, in_place)

    # ---- buffers ---------------------------------------------------------------------------------
    def _number_inputs(self, graph: Graph, assigns: dict[int, int]) -> None:
        leaves = {node.arg[0]: node for node in graph.order if node.op is ops.BUFFER}
        count = max([-1, *leaves, *assigns.values()]) + 1
        replaced = {buffer: graph.roots[root] for root, buffer in assigns.items()}
        for number in range(count):
            node = leaves.get(number)
            if node is not None:
                info = BufferInfo(node.dtype, node.shape, "input", node.arg[2])
            elif number in replaced:
                info = BufferInfo(replaced[number].dtype, replaced[number].shape, "input")
            else:
                info = BufferInfo(uint8, (0,), "input")  # a leaf that the graph no longer reads
            self.buffers.append(info)

    def _new_buffer(self, dtype: Any, shape: Shape) -> int:
        self.buffers.append(BufferInfo(dtype, shape, "temporary"))
        return len(self.buffers) - 1

    def _output(self, decided: Decider, root: Node, target: Node) -> int:
        component = target.arg if target.op is ops.OUT else 0
        value = decided.values[target.src[0] if target.op is ops.OUT else target]
        buffer = value.places[component][0][0]
        self.buffers[buffer].role = "output"
        return buffer

    def _same_memory(self, new: int, old: int) -> bool:
        a, b = self.buffers[new], self.buffers[old]
        return a.dtype is b.dtype and a.shape == b.shape

    def _nbytes(self, buffer: int) -> int:
        info = self.buffers[buffer]
        return memory.nbytes(info) if info.role == "temporary" else 0

    def _graph(self, roots: Sequence[Node], placed: set[int]) -> Graph:
        """The graph of a level; placed: the numbers of the roots that keep their own shape."""
        graph = Graph(roots, placed)
        divided = divide_last(graph, self.target, self.numel)
        return graph if divided is graph.roots else Graph(divided, placed)

    # ---- one level -------------------------------------------------------------------------------
    def _decide(self, graph: Graph, level: Level, places: dict[Node, list[Place]]) -> Decider:
        """Decide a level and give its values memory. places: where its results have to go."""
        decided = decide(graph, self.target, self.movements, self.numel)
        merge_siblings(decided, self.target)
        level.values = decided.values
        for node, value in decided.values.items():
            if value.node is not node:
                continue  # it shares the memory of an update of it
            for component in sorted(decided.components.get(node, (0,))):
                result = node
                if isinstance(node.dtype, tuple):
                    dtype = node.dtype[component]
                    result = Node(ops.OUT, dtype, (node,), component)
                own = places.get(result)
                if own is None:
                    own = [(self._new_buffer(result.dtype, result.shape), ())]
                value.places[component] = own
        return decided

    def _items(self, decided: Decider, level: Level, depth: int) -> list[Item | None]:
        """The launches of a level, in the order of the program."""
        items: list[Item | None] = []
        for draft in reversed(decided.drafts):
            if draft.kind == "loop":
                items.extend(self._loop(draft, decided.values[draft.node], level, depth))
            elif draft.kind == "custom":
                items.append(custom.call(draft, level))
            else:
                items.append(Builder(draft, level).call())
        for item in items:
            if isinstance(item, Call):
                self._set_device(item)
        return items

    def _set_device(self, call: Call) -> None:
        if not call.device:
            devices = (self.buffers[buffer].device for buffer in sorted(call.reads))
            call.device = next((device for device in devices if device), "")
        for buffer in call.writes:
            if self.buffers[buffer].role != "input":
                self.buffers[buffer].device = call.device

    # ---- loops -----------------------------------------------------------------------------------
    def _loop(self, draft: Draft, value: Value, level: Level, depth: int) -> list[Item]:
        """A loop: its body is scheduled as a level of its own. What a WHILE or a COND tests is its
        first value; a COND is two loops of at most one trip, of which one is made."""
        node = draft.node
        if node.op is ops.COND:
            counter = _counter(depth, 1)
            bodies = [self._branch(node, body, value, level, depth) for body in node.arg]
            return [
                self._repeat(draft, body, 1, counter, (value.places[0][0][0], wanted))
                for body, wanted in zip(bodies, (True, False))
                if body
            ]
        if node.op is ops.WHILE:
            body, carries = node.arg
            test = (value.places[0][0][0], True)
            counter = _counter(depth, FOREVER)
            items = self._steps(node, (body, carries, 0), counter, value, level, depth)
            return [self._repeat(draft, items, FOREVER, counter, test)]
        body, carries, inputs, length, reverse = node.arg
        if length == 0:
            return []
        last = index.sub(length, 1)
        counter = _counter(depth, index.bounds(last)[1])
        step = index.sub(last, counter) if reverse else counter
        items = self._steps(node, (body, carries, inputs), step, value, level, depth)
        return [self._repeat(draft, items, index.dim(length), counter, None)]

    def _repeat(
        self,
        draft: Draft,
        items: list[Item],
        trips: Any,
        counter: Node,
        test: tuple[int, bool] | None,
    ) -> Loop:
        reads: set[int] = set() if test is None else {test[0]}
        reads.update(*[item.reads for item in items])
        writes: frozenset[int] = frozenset().union(*[item.writes for item in items])
        return Loop(
            items,
            trips,
            counter,
            test,
            reads=frozenset(reads),
            writes=writes,
            waits=draft.awaited(),
        )

    def _branch(self, node: Node, body: Node, value: Value, level: Level, depth: int) -> list[Item]:
        """The body of a COND: its results go where those of the COND do."""
        places: dict[Node, list[Place]] = {}
        for number, root in enumerate(body.src, 1):
            if number in value.places:
                _goes_to(places, root, value.places[number])

        def bind(number: int) -> Binding:
            return Binding((), node=node.src[1 + number])

        return self._body(node, places, bind, {}, level, depth)

    def _steps(
        self,
        node: Node,
        kind: tuple[Node, int, int],
        step: Node,
        value: Value,
        level: Level,
        depth: int,
    ) -> list[Item]:
        """The body of a SCAN or WHILE. kind: (body, carries, inputs). A new carry is written over
        the old one if nothing else reads that; else it is copied there at the end of the step."""
        body, carries, inputs = kind
        carried = {number: value.places[number][0][0] for number in range(carries)}
        places: dict[Node, list[Place]] = {}
        fresh: dict[int, int] = {}
        for number, root in enumerate(body.src):
            if number >= carries:
                if number in value.places:
                    prefixed = [(b, (*prefix, step)) for b, prefix in value.places[number]]
                    _goes_to(places, root, prefixed)
            elif not (root.op is ops.PLACEHOLDER and root.arg[0] == number) and 0 not in root.shape:
                new = self._new_buffer(root.dtype, root.shape)
                fresh[new] = carried[number]
                _goes_to(places, root, [(new, ())])

        def bind(number: int) -> Binding:
            if number < carries:
                return Binding((), buffer=carried[number])
            return Binding((step,) if number < carries + inputs else (), node=node.src[number])

        return self._body(node, places, bind, fresh, level, depth)

    def _body(
        self,
        node: Node,
        places: dict[Node, list[Place]],
        bind: Callable[[int], Binding],
        fresh: dict[int, int],
        level: Level,
        depth: int,
    ) -> list[Item]:
        """The launches of a body whose results go to `places`. bind: where a parameter is.
        fresh: {new: old} of the buffers that hold carries."""
        graph = self._graph(list(places), set(range(len(places))))
        if graph.roots != list(places):
            changed: dict[Node, list[Place]] = {}
            for root, own in zip(graph.roots, places.values()):
                changed.setdefault(root, []).extend(own)
            places = changed
        inner = Level({}, self.buffers, self.movements, parent=level)
        for leaf in graph.order:
            if leaf.op is ops.PLACEHOLDER:
                inner.bindings[leaf] = bind(leaf.arg[0])
        decided = self._decide(graph, inner, places)
        items = Dependences(self._items(decided, inner, depth + 1), set(fresh.values()))
        items.join_updates({buffer for group in places.values() for buffer, _ in group})
        renamed: dict[int, int] = {}
        for new, old in fresh.items():
            if items.overwrite(new, old, False):
                renamed[new] = old
            else:
                before = {*items.readers.get(old, ()), *items.writers.get(new, ())}
                items.add(self._copy(new, old, node), before)
        ordered = launch_order(items, self._nbytes)
        rename(ordered, renamed)
        return ordered

    def _copy(self, source: int, target: int, node: Node) -> Call:
        info = self.buffers[source]
        ranges = [index.range_(number, size) for number, size in enumerate(info.shape)]
        arguments = [Node(ops.ARG, info.dtype, (), (n, info.shape)) for n in range(2)]
        load = Node(ops.LOAD, info.dtype, (arguments[1], *ranges), len(ranges))
        store = Node(ops.STORE, void, (arguments[0], load, *ranges), (len(ranges), None))
        reason = Reason(
            node.op.name,
            "the old carry is still read: {} elements",
            (self.numel(info.shape),),
            node,
        )
        return Call(
            Node(ops.SINK, void, (store,)),
            (target, source),
            reasons=(reason,),
            device=info.device,
            reads=frozenset((source,)),
            writes=frozenset((target,)),
        )


def _counter(depth: int, most: int) -> Node:
    """What counts the trips of a loop inside `depth` others."""
    return Node(ops.VARIABLE, INDEX, (), (f"#step{depth}", 0, max(1, most)))


def _goes_to(places: dict[Node, list[Place]], root: Node, own: Sequence[Place]) -> None:
    """Send a result of a body to more places. Where a loop inside the body keeps a carry no other
    place can be: what it ends with is copied from there."""
    inner = root.src[0] if root.op is ops.OUT else root
    if inner.op in (ops.SCAN, ops.WHILE) and root.arg < inner.arg[1]:
        root = ops.CONTIGUOUS(root)
    places.setdefault(root, []).extend(own)


# ---- last touches --------------------------------------------------------------------------------
def _share_flat_bodies(items: Sequence[Item]) -> None:
    """A flat kernel that is launched once gets its length as a constant: it is better code."""
    launches: dict[Node, list[Call]] = {}
    for item in everything(items):
        if isinstance(item, Call) and item.variables:
            launches.setdefault(item.kernel, []).append(item)
    for kernel, calls in launches.items():
        lengths = {call.variables[FLAT_LENGTH] for call in calls}
        if len(lengths) == 1:
            (length,) = lengths
            (variable,) = (
                n
                for n in toposort(kernel, into_args=True)
                if n.op is ops.VARIABLE and n.arg[0] == FLAT_LENGTH
            )
            fixed = index.substitute(kernel, {variable: length})
            for call in calls:
                call.kernel, call.variables = fixed, {}


def _compact(
    items: Sequence[Item], buffers: Sequence[BufferInfo], outputs: list[int]
) -> list[BufferInfo]:
    """The buffers that are left, numbered anew (inputs keep their numbers); `outputs` too."""
    new: dict[int, int] = {}
    kept: list[BufferInfo] = []
    used = [item.buffers for item in everything(items) if isinstance(item, Call)]
    inputs = [number for number, info in enumerate(buffers) if info.role == "input"]
    for number in (*inputs, *outputs, *(buffer for group in used for buffer in group)):
        if number not in new:
            new[number] = len(kept)
            kept.append(buffers[number])
    rename(items, {old: number for old, number in new.items() if old != number})
    outputs[:] = [new[number] for number in outputs]
    return kept
