"""What a function of the program stage means: its list of steps, run one by one with NumPy.

This is the judge of the renderers. It is slow and strict: it knows what every buffer holds, lets a
value be read only where it is visible, and refuses an access outside of a buffer. A scalar is a
NumPy scalar and a vector is an array of one axis, both in the dtype's `compute` type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from treadle.backend.base import Function
from treadle.ir import index, ops
from treadle.ir.dots import dot_of
from treadle.ir.dtype import DType, from_compute, round_to, to_compute
from treadle.ir.matrix import matrix_of
from treadle.ir.node import Node
from treadle.ir.ops import Op

Array = Any  # an ndarray or a NumPy scalar
Buffers = Sequence[np.ndarray] | Mapping[int, np.ndarray]
Scalars = Sequence[Any] | Mapping[int, Any]


def run_function(
    function: Function,
    buffers: Buffers,
    scalars: Scalars = (),
    variables: Mapping[str, int] | None = None,
    task: int = 0,
) -> int | None:
    """Run one task of a function. Returns the number of the first check that failed, or None.

    buffers: by the position of their ARG, contiguous arrays of its dtype's storage type; they are
    written in place. scalars: by the number of their SCALAR, in the dtype's compute type.
    variables: by name. With threads, they run in turns from barrier to barrier.
    IndexError for an access outside of a buffer, ValueError for a program that breaks the law.
    """
    shared: dict[Node, np.ndarray] = {}
    flags: list[int] = []
    runs = [
        _Thread(function, buffers, scalars, variables or {}, task, thread, shared, flags).steps()
        for thread in np.ndindex(function.block)
    ]
    while runs:
        runs = [run for run in runs if next(run, "ended") != "ended"]
    return flags[0] if flags else None


def run_tasks(
    function: Function,
    buffers: Buffers,
    scalars: Scalars = (),
    variables: Mapping[str, int] | None = None,
) -> int | None:
    """Run every task of a function in order; otherwise as `run_function`."""
    flag = None
    for task in range(count_tasks(function, variables or {})):
        failed = run_function(function, buffers, scalars, variables, task)
        flag = failed if flag is None else flag
    return flag


def count_tasks(function: Function, variables: Mapping[str, int]) -> int:
    """How many tasks a function has under these bindings."""
    tasks = function.tasks
    return tasks if isinstance(tasks, int) else index.evaluate(tasks, dict(variables))


class _Thread:
    """One thread of one task, in the midst of running."""

    def __init__(
        self,
        function: Function,
        buffers: Buffers,
        scalars: Scalars,
        variables: Mapping[str, int],
        task: int,
        thread: tuple[int, ...],
        shared: dict[Node, np.ndarray],
        flags: list[int],
    ) -> None:
        self.function = function
        self.coordinates = {"task": (task,), "thread": thread}
        self.shared = shared
        self.flags = flags
        self.memory: dict[Node, np.ndarray] = {}
        self.values: dict[Node, Array] = {}
        self.defined: list[tuple[Node, Array | None]] = []  # what each definition has hidden
        self.open: list[tuple[Node, int, int]] = []  # loop or branch, its place, len(defined)
        for param in function.params:
            if param.op is ops.ARG:
                self.memory[param] = _flat(buffers[param.arg[0]], param)
            elif param.op is ops.SCALAR:
                self.values[param] = np.asarray(scalars[param.arg], param.dtype.compute)[()]
            else:
                self.values[param] = np.int64(variables[param.arg[0]])

    def steps(self) -> Iterator[None]:
        """Run to the end; stops at every barrier."""
        body = self.function.body
        ends = _ends(body)
        place = 0
        while place < len(body):
            node = body[place]
            op = node.op
            if op is ops.INTRINSIC and node.arg[0] == "barrier":
                yield
            elif op is ops.LOOP or op is ops.IF:
                place = self.enter(node, place, ends[place])
            elif op is ops.END:
                place = self.leave(place)
            else:
                step = _STEPS.get(op)
                value = self.operation(node) if step is None else step(self, node)
                if value is not None:
                    self.define(node, value)
            place += 1

    def enter(self, node: Node, place: int, end: int) -> int:
        """Begin a loop or a branch, or go past it; the place from which to go on."""
        if node.op is ops.IF:
            if not self.value(node.src[0]):
                return end
            self.open.append((node, place, len(self.defined)))
            return place
        first, stop = (int(self.value(s)) for s in node.src)
        if first >= stop:
            return end
        self.open.append((node, place, len(self.defined)))
        self.define(node, node.dtype.compute.type(first))
        return place

    def leave(self, place: int) -> int:
        """The end of the innermost loop or branch; the place from which to go on."""
        node, begin, mark = self.open[-1]
        last = self.values.get(node)
        for hidden, before in reversed(self.defined[mark:]):
            if before is None:
                del self.values[hidden]
            else:
                self.values[hidden] = before
        del self.defined[mark:]
        if node.op is ops.LOOP and last is not None:
            following = int(last) + node.arg[1]
            if following < int(self.value(node.src[1])):
                self.define(node, node.dtype.compute.type(following))
                return begin
        self.open.pop()
        return place

    def define(self, node: Node, value: Array) -> None:
        """The node has this value until the innermost open loop or branch ends."""
        self.defined.append((node, self.values.get(node)))
        self.values[node] = value

    def value(self, node: Node) -> Array:
        """The value of a source."""
        found = self.values.get(node)
        if found is not None:
            return found
        if node.op is ops.CONST or node.op is ops.LANES:
            self.values[node] = found = _leaf(self, node)  # the same everywhere
            return found
        raise ValueError(f"{node!r} is used before it is defined, or outside its loop")

    def operation(self, node: Node) -> Array:
        """The value of a scalar operation, by its meaning."""
        meaning = node.op.meaning
        if meaning is None or "p" not in node.op.stages:
            raise ValueError(f"{node.op.name} may not stand in a program")
        return round_to(node.dtype, meaning(node, *[self.value(s) for s in node.src]))

    def place(
        self, buffer: Node, offset: Node, dtype: DType, mask: Sequence[Node]
    ) -> tuple[np.ndarray, np.ndarray | slice, np.ndarray | slice]:
        """(the buffer's memory, the elements of it, which of the lanes) of an access."""
        each = _elements(buffer, dtype)
        if mask:
            lanes = np.ones(dtype.lanes, bool) & self.value(mask[0])
            return *self.elements(buffer, offset, dtype, np.flatnonzero(lanes) * each), lanes
        first = int(self.value(offset))
        after = first + dtype.lanes * each
        return self.within(buffer, first, after - 1), slice(first, after), slice(None)

    def elements(
        self, buffer: Node, offset: Node, dtype: DType, lanes: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """(the buffer's memory, the offsets of all elements in it) of an access. lanes: where each
        begins, counted from the offset."""
        offsets = int(self.value(offset)) + lanes
        each = _elements(buffer, dtype)
        if each > 1:  # the bits of several elements as one number
            offsets = (offsets[:, None] + np.arange(each)).reshape(-1)
        ends = (offsets.min(), offsets.max()) if offsets.size else (0, -1)
        return self.within(buffer, *ends), offsets

    def within(self, buffer: Node, first: int, last: int) -> np.ndarray:
        """A buffer's memory, where the elements from `first` to `last` are in it."""
        memory = self.memory.get(buffer)
        if memory is None:
            raise ValueError(f"{buffer!r} is not a buffer of {self.function.name}")
        if first <= last and (first < 0 or last >= memory.size):
            raise IndexError(
                f"{self.function.name} touches elements {first} to {last} of "
                f"{buffer!r}, which has {memory.size}"
            )
        return memory


def _elements(buffer: Node, dtype: DType) -> int:
    """How many elements of a buffer one lane of a dtype holds."""
    return 1 if dtype.scalar is buffer.dtype.scalar else dtype.itemsize // buffer.dtype.itemsize


def _flat(array: np.ndarray, param: Node) -> np.ndarray:
    if not array.flags.c_contiguous or array.dtype != param.dtype.storage:
        raise ValueError(
            f"buffer {param.arg[0]} takes a contiguous array of {param.dtype.storage}, "
            f"not one of {array.dtype} with strides {array.strides}"
        )
    return array.reshape(-1)


@lru_cache(1024)
def _ends(body: tuple[Node, ...]) -> dict[int, int]:
    """The place of the END of each LOOP and IF, by their places."""
    ends: dict[int, int] = {}
    open_: list[int] = []
    for place, node in enumerate(body):
        if node.op is ops.LOOP or node.op is ops.IF:
            open_.append(place)
        elif node.op is ops.END:
            if not open_ or node.src[0] is not body[open_[-1]]:
                raise ValueError(f"step {place} closes {node.src[0]!r}, which is not the innermost")
            ends[open_.pop()] = place
    if open_:
        raise ValueError(f"{body[open_[-1]]!r} is not closed")
    return ends


# ---- steps that are not operations ---------------------------------------------------------------

_Step = Callable[[_Thread, Node], "Array | None"]
_STEPS: dict[Op, _Step] = {}


def _step(*rows: Op) -> Callable[[_Step], _Step]:
    def register(function: _Step) -> _Step:
        _STEPS.update(dict.fromkeys(rows, function))
        return function

    return register


@_step(ops.ARG, ops.SCALAR, ops.VARIABLE)
def _parameter(thread: _Thread, node: Node) -> None:
    if node not in thread.values and node not in thread.memory:
        raise ValueError(f"{node!r} is not a parameter of {thread.function.name}")


@_step(ops.CONST, ops.LANES)
def _leaf(thread: _Thread, node: Node) -> Array:
    dtype = node.dtype
    if node.op is ops.LANES:
        return np.arange(dtype.lanes, dtype=dtype.compute)
    shape = () if dtype.lanes == 1 else (dtype.lanes,)
    return np.full(shape, node.value, dtype.compute)[()]


@_step(ops.SPECIAL)
def _special(thread: _Thread, node: Node) -> Array:
    kind, axis, _ = node.arg
    return np.int64(thread.coordinates[kind][axis])


@_step(ops.DEFINE)
def _define(thread: _Thread, node: Node) -> None:
    """New memory, filled with what nobody may read: NaN, or a large odd number."""
    _, size, scope = node.arg
    storage = node.dtype.storage
    filling = np.frombuffer(b"\xff" * storage.itemsize, storage)[0]
    if scope == "shared":
        if node not in thread.shared:
            thread.shared[node] = np.full(size, filling)
        thread.memory[node] = thread.shared[node]
    else:
        thread.memory[node] = np.full(size, filling)


@_step(ops.READ)
def _read(thread: _Thread, node: Node) -> Array:
    buffer, offset, *mask = node.src
    memory, offsets, lanes = thread.place(buffer, offset, node.dtype, mask)
    stored = np.zeros(node.dtype.lanes, node.dtype.storage)
    stored[lanes] = memory[offsets].view(node.dtype.storage)
    values = to_compute(node.dtype, stored)
    return values[0] if node.dtype.lanes == 1 else values


@_step(ops.WRITE)
def _write(thread: _Thread, node: Node) -> None:
    buffer, offset, value, *mask = node.src
    memory, offsets, lanes = thread.place(buffer, offset, value.dtype, mask)
    stored = from_compute(value.dtype, np.atleast_1d(thread.value(value)))[lanes]
    memory[offsets] = stored.view(memory.dtype)


@_step(ops.SPLAT)
def _splat(thread: _Thread, node: Node) -> Array:
    return np.full(node.dtype.lanes, thread.value(node.src[0]))


@_step(ops.PACK)
def _pack(thread: _Thread, node: Node) -> Array:
    return np.array([thread.value(s) for s in node.src], node.dtype.compute)


@_step(ops.LANE)
def _lane(thread: _Thread, node: Node) -> Array:
    return thread.value(node.src[0])[node.arg]


@_step(ops.FLAG)
def _flag(thread: _Thread, node: Node) -> None:
    if np.any(thread.value(node.src[0])):
        thread.flags.append(node.arg)


@_step(ops.INTRINSIC)
def _intrinsic(thread: _Thread, node: Node) -> Array | None:
    name = node.arg[0]
    if name == "prefetch":
        return None
    if name == "shuffle":
        return np.concatenate([thread.value(s) for s in node.src])[list(node.arg[1])]
    if name == "dot":
        return dot_of(node.arg).meaning(*(thread.value(s) for s in node.src))
    if name == "mma":
        return matrix_of(node.arg).meaning(*(thread.value(s) for s in node.src))
    if name == "tile_read":
        memory, offsets = _tile(thread, node, node.dtype)
        return to_compute(node.dtype, memory[offsets].view(node.dtype.storage))
    if name == "tile_write":
        value = node.src[3]
        memory, offsets = _tile(thread, node, value.dtype)
        stored = from_compute(value.dtype, thread.value(value))
        memory[offsets] = stored.view(memory.dtype)
        return None
    raise ValueError(
        f"no intrinsic {name!r} here; there are barrier, dot, mma, prefetch, shuffle, tile_read "
        "and tile_write"
    )


def _tile(thread: _Thread, node: Node, dtype: DType) -> tuple[np.ndarray, np.ndarray]:
    """(memory, offsets of the elements) of a tile, whose rows are a stride apart."""
    buffer, offset, stride = node.src[:3]
    rows, columns = node.arg[1:]
    lanes = np.arange(columns) * _elements(buffer, dtype)
    starts = np.arange(rows)[:, None] * int(thread.value(stride))
    return thread.elements(buffer, offset, dtype, (starts + lanes).reshape(-1))
