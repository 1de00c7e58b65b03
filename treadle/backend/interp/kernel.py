"""What a kernel node means before it is scheduled: a SINK of stores over ranges, with NumPy.

Every range is an axis of every array: an expression is an array of size 1 along the ranges that it
does not depend on, a reduction folds along those that it binds. So the meaning has no loops, and no
choice of loops can be wrong against it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableSequence, Sequence
from typing import Any

import numpy as np

from treadle.backend.interp.graph import Sizes, _combiner, _fold, _means
from treadle.ir import ops
from treadle.ir.dtype import from_compute, round_to, to_compute
from treadle.ir.monoid import find
from treadle.ir.node import Node, toposort
from treadle.ir.ops import Op

Array = np.ndarray

_UFUNC: dict[str, Any] = {
    "add": np.add, "mul": np.multiply, "and": np.bitwise_and, "or": np.bitwise_or,
}  # fmt: skip


def evaluate_kernel(
    kernel: Node,
    arrays: MutableSequence[Array] | Mapping[int, Array],
    scalars: Sequence[Any] = (),
    variables: Mapping[str, int] | None = None,
) -> None:
    """Run a kernel-stage SINK: read and write `arrays` (by position, in `dtype.storage`, of any
    shape that has the elements of the ARG's).

    scalars: the value of SCALAR n. variables: the ints of VARIABLEs, by name. All loads come before
    all stores. IndexError for a CHECK that fails (then nothing is stored), and for an access
    outside its buffer.
    """
    run = _Run(kernel, arrays, scalars, Sizes(variables or {}))
    stores = [run.prepare(store) for store in kernel.src]
    for write in stores:
        write()


class _Run:
    def __init__(self, kernel: Node, arrays: Any, scalars: Sequence[Any], sizes: Sizes) -> None:
        self.arrays = arrays
        self.scalars = scalars
        self.sizes = sizes
        order = toposort(kernel)
        ranges = sorted({n for n in order if n.op is ops.RANGE}, key=lambda n: n.arg[0])
        self.axis = {r: axis for axis, r in enumerate(ranges)}
        self.length = [sizes.of(r.arg[1]) for r in ranges]
        self.values: dict[Node, Any] = {}
        for node in order:
            if node.op not in (ops.SINK, ops.STORE, ops.ARG):
                meaning: Callable[..., Any] = _MEANING.get(node.op, _Run.elementwise)
                self.values[node] = meaning(self, node, *[self.values.get(s) for s in node.src])

    # ---- expressions -----------------------------------------------------------------------------
    def elementwise(self, node: Node, *sources: Array) -> Array:
        if node.op.meaning is None:
            raise NotImplementedError(f"{node.op.name} has no meaning in the kernel stage")
        result = np.asarray(node.op.meaning(node, *sources))
        return round_to(node.dtype, result.astype(node.dtype.compute, copy=False))

    def constant(self, node: Node) -> Array:
        return np.asarray(node.value, node.dtype.compute)

    def variable(self, node: Node) -> Array:
        return np.asarray(self.sizes.of(node), np.int64)

    def scalar(self, node: Node) -> Array:
        return np.asarray(self.scalars[node.arg], node.dtype.compute)

    def range(self, node: Node) -> Array:
        axis = self.axis[node]
        shape = [1] * len(self.length)
        shape[axis] = self.length[axis]
        return np.arange(self.length[axis], dtype=np.int64).reshape(shape)

    def sum(self, node: Node, *atoms: Array) -> Array:
        constant, factors = node.arg
        total = np.asarray(constant, np.int64)
        for factor, atom in zip(factors, atoms):
            total = total + factor * atom
        return total

    def product(self, node: Node, *atoms: Array) -> Array:
        total = np.asarray(1, np.int64)
        for atom in atoms:
            total = total * atom
        return total

    def quotient(self, node: Node, a: Array, b: Array) -> Array:
        return np.where(b == 0, 0, a // np.where(b == 0, 1, b))

    def remainder(self, node: Node, a: Array, b: Array) -> Array:
        return np.where(b == 0, 0, a % np.where(b == 0, 1, b))

    def check(self, node: Node, place: Array, size: Array) -> Array:
        outside = (place < 0) | (place >= size)
        if outside.any():
            worst = int(np.broadcast_to(place, outside.shape)[outside].flat[0])
            raise IndexError(f"check {node.arg}: index {worst} is out of range for size {size}")
        return place

    def out(self, node: Node, outputs: Sequence[Array]) -> Array:
        return outputs[int(node.arg)]

    def reduce(self, node: Node, *sources: Array) -> Any:
        name, count = node.arg
        monoid = find(name)
        ranges = node.src[count:]
        axes = tuple([self.axis[r] for r in ranges])
        dtypes = node.dtype if isinstance(node.dtype, tuple) else (node.dtype,)
        # a value that does not depend on a range is folded as often as the range is long
        state = [self.spread(source, axes) for source in sources[:count]]
        if name in _UFUNC:
            with np.errstate(all="ignore"):
                identity = np.asarray(monoid.identity(0, dtypes[0]), state[0].dtype)
                folded = _UFUNC[name].reduce(state[0], axis=axes, initial=identity, keepdims=True)
            return round_to(dtypes[0], np.asarray(folded, dtypes[0].compute))
        joint = np.broadcast_shapes(*[s.shape for s in state])
        moved = [np.moveaxis(np.broadcast_to(s, joint), axes, range(len(axes))) for s in state]
        rest = moved[0].shape[len(axes) :]
        length = int(np.prod([self.length[axis] for axis in axes], dtype=np.int64))
        results = _fold(monoid, dtypes, [m.reshape(length, *rest) for m in moved])
        results = [np.expand_dims(r, tuple(sorted(axes))) for r in results]
        return results if isinstance(node.dtype, tuple) else results[0]

    def spread(self, value: Array, axes: Sequence[int]) -> Array:
        """The value with its whole length along some axes."""
        shape = list(value.shape) or [1] * len(self.length)
        for axis in axes:
            shape[axis] = self.length[axis]
        return np.broadcast_to(value, shape)

    # ---- memory ----------------------------------------------------------------------------------
    def memory(self, argument: Node) -> Array:
        """The buffer in its logical shape, sharing memory."""
        position, shape = argument.arg
        whole: Array = self.arrays[position]
        wanted = self.sizes.shape(shape)
        elements = int(np.prod(wanted, dtype=np.int64))
        return whole.reshape(-1)[:elements].reshape(wanted)

    def load(self, node: Node, _: None, *sources: Array) -> Array:
        buffer = self.memory(node.src[0])
        place, guard = sources[: node.arg], sources[node.arg :]
        zero = np.zeros((), node.dtype.compute)
        if guard and not buffer.size:
            return zero
        if guard:
            place = tuple([np.where(guard[0], i, 0) for i in place])
        self.bounded(node, buffer, place)
        value = to_compute(node.dtype, np.asarray(buffer[place]))
        return np.where(guard[0], value, zero) if guard else value

    def bounded(self, node: Node, buffer: Array, place: Sequence[Array]) -> None:
        for i, size in zip(place, buffer.shape):
            if i.size and (i.min() < 0 or i.max() >= size):
                raise IndexError(f"{node!r} leaves its buffer of shape {buffer.shape}")

    def prepare(self, store: Node) -> Callable[[], None]:
        """The store as a function to call when every value is known."""
        axes, monoid = store.arg
        buffer = self.memory(store.src[0])
        value, *sources = [self.values[s] for s in store.src[1:]]
        place, guard = sources[:axes], sources[axes:]
        shape = np.broadcast_shapes(*[np.shape(s) for s in (value, *sources)])
        indices = [np.broadcast_to(i, shape).ravel() for i in place]
        values = np.broadcast_to(value, shape).ravel()
        if guard:
            holds = np.broadcast_to(guard[0], shape).ravel()
            indices, values = [i[holds] for i in indices], values[holds]
        self.bounded(store, buffer, indices)
        dtype = store.src[0].dtype

        def write() -> None:
            if monoid is None:
                stored = from_compute(dtype, values)
                buffer[tuple(indices)] = stored if indices else stored[-1]
                return
            combine = _combiner(find(monoid), (dtype,))
            for number, new in enumerate(values):  # in order: a later one finds the earlier
                where = tuple([i[number] for i in indices])
                old = to_compute(dtype, np.asarray(buffer[where]))
                buffer[where] = from_compute(dtype, np.asarray(combine([old], [new])[0]))

        return write


_MEANING: dict[Op, Callable[..., Any]] = {
    ops.CONST: _Run.constant,
    ops.VARIABLE: _Run.variable,
    ops.SCALAR: _Run.scalar,
    ops.RANGE: _Run.range,
    ops.ISUM: _Run.sum,
    ops.IPROD: _Run.product,
    ops.IFLOOR: _Run.quotient,
    ops.IMOD: _Run.remainder,
    ops.IMAX: lambda run, node, a, b: np.maximum(a, b),
    ops.IMIN: lambda run, node, a, b: np.minimum(a, b),
    ops.CHECK: _Run.check,
    ops.OUT: _Run.out,
    ops.KREDUCE: _Run.reduce,
    ops.LOAD: _Run.load,
}


@_means(ops.KERNEL)
def _kernel(node: Node, sizes: Sizes, *sources: Array) -> list[Array]:
    """A kernel that the user wrote, in a graph."""
    sink, shapes, _ = node.arg
    shapes_now = [sizes.shape(shape) for shape in shapes]
    outputs = [np.empty(s, dtype.storage) for s, dtype in zip(shapes_now, node.dtype)]
    inputs = [from_compute(s.dtype, value) for s, value in zip(node.src, sources)]
    evaluate_kernel(sink, [*outputs, *inputs], sources, sizes.variables)
    return [to_compute(dtype, array) for dtype, array in zip(node.dtype, outputs)]
