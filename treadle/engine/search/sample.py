"""The values that some outputs of a kernel should have, in float64.

A kernel node says what it stores at each point of its ranges, so the value at a few points can be
computed without the rest. A range has two meanings in one kernel: free, it is the point of the
store; bound by a reduction, it runs over all its values. So a node is evaluated for a set of bound
ranges (a mask): axis 0 of every array is the sample, and each bound range has an axis of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from treadle.ir import index, ops
from treadle.ir.dtype import to_compute
from treadle.ir.monoid import find, places
from treadle.ir.node import Node, toposort

Array = np.ndarray

SAMPLES = 64  # outputs that are looked at, of each store
MOST_POINTS = 1 << 24  # values that a sample may take at once


class Unknown(ValueError):
    """A kernel whose outputs cannot be sampled. The message says why."""


@dataclass(frozen=True)
class Expected:
    """Some outputs of a store. buffer: the position of its buffer; at: places, an array per axis;
    values: in float64 (or the integers that they are); tolerance: how far a float may be off."""

    buffer: int
    at: tuple[Array, ...]
    values: Array
    tolerance: float


def expected(
    kernel: Node, arrays: Mapping[int, Array], variables: Mapping[str, int], seed: int = 0
) -> list[Expected]:
    """What a kernel should store at random points. arrays: the contents of its buffers before it
    runs, by position, in their storage and shape. Unknown if that cannot be told point by point.
    """
    random = np.random.default_rng(seed)
    found = []
    for store in kernel.src:
        axes, monoid = store.arg
        if monoid is not None:
            raise Unknown("it combines into memory")
        where = store.src[2 : 2 + axes]
        if any(n.op in (ops.LOAD, ops.CHECK) for n in toposort(where)):
            raise Unknown("where it stores depends on data")
        found.append(_sampled(kernel, store, arrays, variables, random))
    return found


def _sampled(
    kernel: Node,
    store: Node,
    arrays: Mapping[int, Array],
    variables: Mapping[str, int],
    random: Any,
) -> Expected:
    axes = store.arg[0]
    free = [n for n in toposort(store) if n.op is ops.RANGE and n.free & store.free]
    sizes = {n.arg[0]: index.evaluate(n.arg[1], variables) for n in free}
    if 0 in sizes.values():
        return Expected(store.src[0].arg[0], (), np.zeros(0), 0.0)
    summed = _summands(store, variables)
    count = max(1, min(SAMPLES, MOST_POINTS // max(1, summed)))
    if summed > 4 * MOST_POINTS:
        raise Unknown(f"each of its outputs takes {summed:,} values")
    points = {
        number: np.unique(random.integers(0, size, count)) if len(sizes) == 1
        else random.integers(0, size, count)
        for number, size in sizes.items()
    }  # fmt: skip
    for values in points.values():  # the ends, where partial tiles are
        values[0] = 0
    for number, values in points.items():
        values[-1] = sizes[number] - 1
    run = _Run(arrays, variables, points)
    at = tuple(run.point(i) for i in store.src[2 : 2 + axes])
    value = run.point(store.src[1])
    if len(store.src) > 2 + axes:
        present = np.broadcast_to(run.point(store.src[-1]), (run.count,)).astype(bool)
        at, value = tuple(np.broadcast_to(i, present.shape)[present] for i in at), value[present]
    return Expected(store.src[0].arg[0], at, value, _tolerance(kernel, store, value, summed))


def _tolerance(kernel: Node, store: Node, values: Array, summed: int) -> float:
    """How far the result may be off: rounding errors of the coarsest float on the way, which add up
    like a random walk over the summands, beside the largest value that was expected."""
    if not store.src[0].dtype.is_float or not values.size:
        return 0.0
    nodes = toposort(store)
    coarsest = max(
        float(np.finfo(n.dtype.storage).eps) if n.dtype.storage.kind == "f" else 2.0**-7
        for n in nodes
        if getattr(n.dtype, "is_float", False)
    )
    finite = np.abs(values[np.isfinite(values)])
    scale = float(finite.max()) if finite.size else 0.0
    steps = 16 + sum(n.op.kind == "alu" for n in nodes) + 4 * float(np.sqrt(summed))
    return coarsest * steps * max(scale, 1e-30)


def _summands(store: Node, variables: Mapping[str, int]) -> int:
    """Values that one output takes, at most: the points of the largest nest of reductions."""
    inside: dict[Node, int] = {}
    for node in toposort(store):
        most = max((inside[s] for s in node.src), default=1)
        if node.op is ops.KREDUCE:
            ranges = node.src[node.arg[1] :]
            most *= prod(index.evaluate(r.arg[1], variables) for r in ranges if r.op is ops.RANGE)
        inside[node] = most
    return inside[store]


class _Run:
    """Values of nodes at the sampled points. A mask says which ranges are bound."""

    def __init__(
        self, arrays: Mapping[int, Array], variables: Mapping[str, int], points: dict[int, Array]
    ) -> None:
        self.arrays = arrays
        self.variables = variables
        self.points = points
        self.count = max((len(values) for values in points.values()), default=1)
        self.axis: dict[int, int] = {}  # range number -> its axis where it is bound

    def point(self, root: Node) -> Array:
        """The values of a node at the points."""
        for node in toposort(root):
            if node.op is ops.RANGE:
                self.axis.setdefault(node.arg[0], 1 + len(self.axis))
        self.rank = 1 + len(self.axis)
        value = np.asarray(self._evaluate(root))
        return np.broadcast_to(value, (self.count, *(1,) * (self.rank - 1))).reshape(-1)

    def _evaluate(self, root: Node) -> Any:
        done: dict[tuple[Node, int], Any] = {}
        stack = [(root, 0)]
        while stack:
            place = stack[-1]
            node, bound = place
            inner = bound
            if node.op is ops.KREDUCE:
                for r in node.src[node.arg[1] :]:
                    inner |= r.free
            below = [(s, inner & s.free) for s in node.src if s.op is not ops.ARG]
            missing = [p for p in below if p not in done]
            if place in done or not missing:
                stack.pop()
                if place not in done:
                    done[place] = self._value(node, bound, [done[p] for p in below])
            else:
                stack.extend(missing)
        return done[root, 0]

    def _value(self, node: Node, bound: int, src: list[Any]) -> Any:
        if node.op is ops.RANGE:
            return self._range(node, bound)
        if node.op is ops.VARIABLE:
            return np.asarray(self.variables[node.arg[0]], np.int64)
        if node.op is ops.CONST:
            return _wide(node, np.asarray(node.value, node.dtype.compute))
        if node.op is ops.SCALAR:
            return _wide(node, np.asarray(scalar_value(node), node.dtype.compute))
        if node.op is ops.LOAD:
            return self._load(node, src)
        if node.op is ops.KREDUCE:
            return self._reduce(node, src[: node.arg[1]])
        if node.op is ops.OUT:
            return src[0][int(node.arg)]
        if node.op is ops.CHECK:
            return src[0]
        if node.op in _INDEX:
            return _INDEX[node.op](node, *src)
        return self._elementwise(node, src)

    def _range(self, node: Node, bound: int) -> Array:
        number, size = node.arg
        shape = [1] * self.rank
        if bound & node.free:
            shape[self.axis[number]] = -1
            return np.arange(index.evaluate(size, self.variables)).reshape(shape)
        shape[0] = -1
        return self.points[number].reshape(shape)

    def _load(self, node: Node, src: list[Any]) -> Array:
        array = self.arrays[node.src[0].arg[0]]
        inside = src[node.arg] if len(src) > node.arg else np.asarray(True)
        at = []
        for i, size in zip(src[: node.arg], array.shape):
            inside = inside & (i >= 0) & (i < size)
            at.append(np.clip(i, 0, max(0, size - 1)))
        value = to_compute(node.dtype, array[tuple(at)] if at else array[()])
        return _wide(node, np.where(inside, value, np.zeros((), value.dtype)))

    def _reduce(self, node: Node, values: list[Any]) -> Any:
        monoid, count = node.arg
        axes = {self.axis[r.arg[0]]: r for r in node.src[count:] if r.op is ops.RANGE}
        dtypes = node.dtype if isinstance(node.dtype, tuple) else (node.dtype,)
        whole = []
        for value in values:
            shape = list(np.shape(value)) or [1] * self.rank
            for axis, r in axes.items():
                shape[axis] = index.evaluate(r.arg[1], self.variables)
            moved = np.moveaxis(np.broadcast_to(value, shape), tuple(axes), range(len(axes)))
            whole.append(moved.reshape(-1, *moved.shape[len(axes) :]))
        folded = _fold(monoid, whole, dtypes)
        folded = [np.expand_dims(value, tuple(sorted(axes))) for value in folded]
        return tuple(folded) if isinstance(node.dtype, tuple) else folded[0]

    def _elementwise(self, node: Node, src: list[Any]) -> Any:
        """The meaning of the operation; floats stay float64, where they have a wider mantissa."""
        if node.op is ops.CAST and node.dtype.is_float:
            return src[0].astype(np.float64)
        if node.op is ops.BITCAST and node.src[0].dtype.is_float:
            src = [src[0].astype(node.src[0].dtype.compute)]
        assert node.op.meaning is not None
        with np.errstate(all="ignore"):
            return _wide(node, np.asarray(node.op.meaning(node, *src)))


def scalar_value(node: Node) -> float | int | bool:
    """What stands for a run-time number while a kernel is tried."""
    if node.dtype.is_float:
        return 0.75
    return True if node.dtype.storage.kind == "b" else 3


def _wide(node: Node, value: Array) -> Array:
    """A float as float64; anything else as its own type computes."""
    if isinstance(node.dtype, tuple):
        return value
    return value.astype(np.float64 if node.dtype.is_float else node.dtype.compute, copy=False)


def _fold(monoid: Any, states: list[Array], dtypes: Sequence[Any]) -> list[Array]:
    """States combined along axis 0, neighbours with neighbours, so that it takes few steps."""
    first, second = places(dtypes)
    roots = find(monoid).combine(first, second)
    order = toposort(roots)
    if not len(states[0]):
        shapes = (state.shape[1:] for state in states)
        identity = find(monoid).identity
        return [np.full(s, identity(n, d)) for n, (s, d) in enumerate(zip(shapes, dtypes))]
    states = list(np.broadcast_arrays(*states))
    while len(states[0]) > 1:
        odd = [state[len(state) // 2 * 2 :] for state in states]
        pairs = [state[0 : len(state) // 2 * 2 : 2] for state in states]
        pairs += [state[1 : len(state) // 2 * 2 : 2] for state in states]
        values: dict[Node, Array] = dict(zip((*first, *second), pairs))
        for node in order:
            if node not in values:
                assert node.op.meaning is not None
                below = [values[s] for s in node.src]
                if node.op is ops.CONST:
                    values[node] = _wide(node, np.asarray(node.value, node.dtype.compute))
                else:
                    with np.errstate(all="ignore"):
                        values[node] = _wide(node, np.asarray(node.op.meaning(node, *below)))
        states = [np.concatenate([values[r], rest]) for r, rest in zip(roots, odd)]
    return [state[0] for state in states]


def _sum(node: Node, *atoms: Array) -> Any:
    total: Any = np.asarray(node.arg[0], np.int64)
    for atom, factor in zip(atoms, node.arg[1]):
        total = total + factor * atom
    return total


def _product(node: Node, *factors: Array) -> Any:
    result = factors[0]
    for factor in factors[1:]:
        result = result * factor
    return result


_INDEX: dict[ops.Op, Any] = {
    ops.ISUM: _sum,
    ops.IPROD: _product,
    ops.IFLOOR: lambda node, a, b: np.floor_divide(a, np.where(b == 0, 1, b)),
    ops.IMOD: lambda node, a, b: np.remainder(a, np.where(b == 0, 1, b)),
    ops.IMAX: lambda node, a, b: np.maximum(a, b),
    ops.IMIN: lambda node, a, b: np.minimum(a, b),
}
