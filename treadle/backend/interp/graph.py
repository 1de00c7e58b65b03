"""What a graph means before anything is scheduled: every operation of the graph stage, with NumPy.

`evaluate` is the judge of the scheduler, of the compiler and of the rules: slow, plain, complete.
Values are arrays in `dtype.compute` (bfloat16 is held in float32 and rounded after each operation);
a node with several outputs has a list of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from treadle.ir import index, ops
from treadle.ir.dtype import DType, round_to
from treadle.ir.monoid import Monoid, find
from treadle.ir.node import Node, Shape, toposort
from treadle.ir.ops import Op

Array = np.ndarray
Values = dict[Node, Any]  # node -> its array, or a list of arrays

# op -> the value of a node of it, given its sources' values; sizes turn dimensions into ints
_MEANING: dict[Op, Callable[..., Any]] = {}


def _means(*rows: Op) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        for op in rows:
            _MEANING[op] = function
        return function

    return register


class Sizes:
    """The numbers that symbolic dimensions have in one evaluation."""

    def __init__(self, variables: Mapping[str, int]) -> None:
        self.variables = variables
        self.known: dict[Node, int] = {}

    def of(self, dim: Any) -> int:
        """One dimension. KeyError if a variable in it was given no value."""
        if not isinstance(dim, Node):
            return int(dim)
        if dim not in self.known:
            atoms = [node for node in toposort(dim) if node.op is ops.VARIABLE]
            values = {atom: self.variables[atom.arg[0]] for atom in atoms}
            self.known[dim] = index.evaluate(dim, values)
        return self.known[dim]

    def shape(self, shape: Shape) -> tuple[int, ...]:
        """All dimensions of a shape."""
        return tuple([self.of(dim) for dim in shape])

    def pairs(self, pairs: Iterable[tuple[Any, Any]]) -> list[tuple[int, int]]:
        """Pairs of dimensions, as in the arg of PAD."""
        return [(self.of(low), self.of(high)) for low, high in pairs]


def evaluate(
    roots: Iterable[Node],
    leaves: Mapping[Node, Array],
    variables: Mapping[str, int] | None = None,
) -> list[Any]:
    """The values of the roots, in `dtype.compute`; for a root with several outputs a list.

    leaves: the arrays (in `dtype.compute`) of BUFFER, SCALAR and PLACEHOLDER nodes.
    variables: the ints of VARIABLE nodes, by name.
    IndexError for a gather or scatter out of range; KeyError for a leaf without a value.
    """
    return _evaluate(list(roots), leaves, Sizes(variables or {}))


def _evaluate(roots: list[Node], leaves: Mapping[Node, Array], sizes: Sizes) -> list[Any]:
    values: Values = {}
    for node in toposort(roots):
        if node in leaves:
            values[node] = np.asarray(leaves[node], dtype=node.dtype.compute)
        elif node.op.kind == "index" or node.op is ops.VARIABLE:
            values[node] = np.asarray(sizes.of(node), dtype=np.int64)
        else:
            meaning: Callable[..., Any] = _MEANING.get(node.op, _elementwise)
            values[node] = meaning(node, sizes, *[values[s] for s in node.src])
    return [values[root] for root in roots]


# ---- elementwise and leaves ----------------------------------------------------------------------
def _elementwise(node: Node, sizes: Sizes, *sources: Array) -> Array:
    if node.op.meaning is None:
        raise NotImplementedError(f"{node.op.name} has no meaning in the graph stage")
    result = np.asarray(node.op.meaning(node, *sources))
    return round_to(node.dtype, result.astype(node.dtype.compute, copy=False))


@_means(ops.CONST)
def _const(node: Node, sizes: Sizes) -> Array:
    return np.asarray(node.value, dtype=node.dtype.compute)


@_means(ops.IOTA)
def _iota(node: Node, sizes: Sizes) -> Array:
    return np.arange(sizes.of(node.arg)).astype(node.dtype.compute)


@_means(ops.BUFFER, ops.SCALAR, ops.PLACEHOLDER)
def _missing_leaf(node: Node, sizes: Sizes) -> Array:
    raise KeyError(f"no value was given for the leaf {node!r}")


@_means(ops.CONTIGUOUS, ops.COPY)
def _same(node: Node, sizes: Sizes, x: Array) -> Array:
    return x


# ---- movement ------------------------------------------------------------------------------------
@_means(ops.RESHAPE)
def _reshape(node: Node, sizes: Sizes, x: Array) -> Array:
    return x.reshape(sizes.shape(node.arg))


@_means(ops.PERMUTE)
def _permute(node: Node, sizes: Sizes, x: Array) -> Array:
    return x.transpose(node.arg)


@_means(ops.EXPAND)
def _expand(node: Node, sizes: Sizes, x: Array) -> Array:
    return np.broadcast_to(x, sizes.shape(node.arg))


@_means(ops.PAD)
def _pad(node: Node, sizes: Sizes, x: Array) -> Array:
    return np.pad(x, sizes.pairs(node.arg))


@_means(ops.SHRINK)
def _shrink(node: Node, sizes: Sizes, x: Array) -> Array:
    return x[tuple([slice(start, stop) for start, stop in sizes.pairs(node.arg)])]


@_means(ops.FLIP)
def _flip(node: Node, sizes: Sizes, x: Array) -> Array:
    return np.flip(x, node.arg)


@_means(ops.WINDOW)
def _window(node: Node, sizes: Sizes, x: Array) -> Array:
    """out[o, k] = x[o*stride + k*dilation, k] on (axis, axis + 1)."""
    axis, windows, stride, dilation = node.arg
    o = np.arange(sizes.of(windows))[:, None]
    k = np.arange(x.shape[axis + 1])[None, :]
    moved = np.moveaxis(x, (axis, axis + 1), (0, 1))
    return np.moveaxis(moved[o * stride + k * dilation, k], (0, 1), (axis, axis + 1))


@_means(ops.UNWINDOW)
def _unwindow(node: Node, sizes: Sizes, x: Array) -> Array:
    """out[i, k] = x[(i - k*dilation)/stride, k] where that is whole and there, else 0."""
    axis, size, stride, dilation = node.arg
    moved = np.moveaxis(x, (axis, axis + 1), (0, 1))
    out = np.zeros((sizes.of(size), *moved.shape[1:]), x.dtype)
    for k in range(moved.shape[1]):
        positions = np.arange(moved.shape[0]) * stride + k * dilation
        inside = positions < len(out)
        out[positions[inside], k] = moved[inside, k]
    return np.moveaxis(out, (0, 1), (axis, axis + 1))


# ---- reduce --------------------------------------------------------------------------------------
_UFUNC = {
    "add": np.add,
    "mul": np.multiply,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
}


@_means(ops.REDUCE)
def _reduce(node: Node, sizes: Sizes, *state: Array) -> Any:
    monoid = find(node.arg[0])
    axes = node.arg[1]
    dtypes = node.dtype if isinstance(node.dtype, tuple) else (node.dtype,)
    if monoid.name in _UFUNC:
        with np.errstate(all="ignore"):
            identity = np.asarray(monoid.identity(0, dtypes[0]), state[0].dtype)
            folded = _UFUNC[monoid.name].reduce(state[0], axis=axes, initial=identity)
        return round_to(dtypes[0], np.asarray(folded, dtype=dtypes[0].compute))
    results = _fold(monoid, dtypes, [_axes_first(s, axes) for s in state])
    return results if isinstance(node.dtype, tuple) else results[0]


def _axes_first(x: Array, axes: tuple[int, ...]) -> Array:
    """The reduced axes of an array merged into one, in front."""
    moved = np.moveaxis(x, axes, range(len(axes)))
    count = int(np.prod(moved.shape[: len(axes)], dtype=np.int64))
    return moved.reshape(count, *moved.shape[len(axes) :])


def _fold(monoid: Monoid, dtypes: tuple[DType, ...], state: list[Array]) -> list[Array]:
    """The state folded over its first axis by halves, in order: combine is associative."""
    if len(state[0]) == 0:
        rest = state[0].shape[1:]
        return [np.full(rest, monoid.identity(c, d), d.compute) for c, d in enumerate(dtypes)]
    combine = _combiner(monoid, dtypes)
    while len(state[0]) > 1:
        even = len(state[0]) // 2 * 2
        joined = combine([s[0:even:2] for s in state], [s[1:even:2] for s in state])
        state = [np.concatenate([j, s[even:]]) for j, s in zip(joined, state)]
    return [s[0] for s in state]


_combiners: dict[Any, Callable[[list[Array], list[Array]], list[Array]]] = {}


def _combiner(
    monoid: Monoid, dtypes: tuple[DType, ...]
) -> Callable[[list[Array], list[Array]], list[Array]]:
    """`monoid.combine` as a function of arrays: its nodes over placeholders, evaluated."""
    key = (monoid, dtypes)
    if key not in _combiners:
        count = len(dtypes)
        left = tuple([ops.PLACEHOLDER(arg=(c, ()), dtype=d) for c, d in enumerate(dtypes)])
        right = tuple([ops.PLACEHOLDER(arg=(count + c, ()), dtype=d) for c, d in enumerate(dtypes)])
        joined = list(monoid.combine(left, right))

        def combine(a: list[Array], b: list[Array]) -> list[Array]:
            leaves = dict(zip((*left, *right), (*a, *b)))
            return _evaluate(joined, leaves, Sizes({}))

        _combiners[key] = combine
    return _combiners[key]


@_means(ops.OUT)
def _out(node: Node, sizes: Sizes, outputs: list[Array]) -> Any:
    return outputs[node.arg]


# ---- gather, scatter, update ---------------------------------------------------------------------
def _checked(where: Array, size: int, name: str) -> Array:
    """Indices as int64. IndexError for one that is not in [0, size)."""
    outside = (where < 0) | (where >= size)
    if outside.any():
        worst = int(where[outside].flat[0])
        raise IndexError(f"{name}: index {worst} is out of range for a dimension of size {size}")
    return where.astype(np.int64)


@_means(ops.GATHER)
def _gather(node: Node, sizes: Sizes, x: Array, where: Array) -> Array:
    return np.take_along_axis(x, _checked(where, x.shape[node.arg], "gather"), node.arg)


@_means(ops.SCATTER)
def _scatter(node: Node, sizes: Sizes, base: Array, where: Array, value: Array) -> Array:
    axis, name = node.arg
    where = np.moveaxis(_checked(where, base.shape[axis], "scatter"), axis, 0)
    value = np.moveaxis(value, axis, 0)
    out = np.moveaxis(base.copy(), axis, 0)
    combine = None if name == "set" else _combiner(find(name), (node.dtype,))
    for row, new in zip(where, value):  # one after another along the axis: later ones win
        place = row[None]
        if combine is not None:
            old = np.take_along_axis(out, place, 0)
            (new,) = combine([old[0]], [new])
        np.put_along_axis(out, place, np.asarray(new)[None], 0)
    return np.moveaxis(out, 0, axis)


@_means(ops.UPDATE)
def _update(node: Node, sizes: Sizes, x: Array, value: Array) -> Array:
    out = x.copy()
    region = []
    for (start, step), count in zip(node.arg, value.shape):
        first = sizes.of(start)
        region.append(slice(first, first + count * step, step))
    out[tuple(region)] = value
    return out


# ---- bodies --------------------------------------------------------------------------------------
@_means(ops.AGAIN)
def _again(node: Node, sizes: Sizes, x: Array, after: Array) -> Array:
    return x


@_means(ops.CALL)
def _call(node: Node, sizes: Sizes, *sources: Array) -> list[Any]:
    return _run_body(node.arg[0], sources, sizes)


@_means(ops.SCAN)
def _scan(node: Node, sizes: Sizes, *sources: Array) -> list[Array]:
    """The loop as it is written: carries pass from step to step, each step's ys are stacked."""
    body, carries, xs, length, reverse = node.arg
    steps = sizes.of(length)
    state = list(sources[:carries])
    sequences, constants = sources[carries : carries + xs], sources[carries + xs :]
    stacked: list[list[Any]] = [[None] * steps for _ in body.src[carries:]]
    for step in reversed(range(steps)) if reverse else range(steps):
        now = [*state, *[sequence[step] for sequence in sequences], *constants]
        results = _run_body(body, now, sizes)
        state = results[:carries]
        for rows, result in zip(stacked, results[carries:]):
            rows[step] = result
    ys = [
        np.stack(rows) if rows else np.zeros((0, *sizes.shape(y.shape)), y.dtype.compute)
        for rows, y in zip(stacked, body.src[carries:])
    ]
    return [*state, *ys]


@_means(ops.WHILE)
def _while(node: Node, sizes: Sizes, *sources: Array) -> list[Array]:
    body, carries = node.arg
    state, constants = list(sources[:carries]), sources[carries:]
    while state[0]:
        state = _run_body(body, [*state, *constants], sizes)
    return state


@_means(ops.COND)
def _cond(node: Node, sizes: Sizes, test: Array, *operands: Array) -> list[Array]:
    return [test, *_run_body(node.arg[0 if test else 1], operands, sizes)]


def _run_body(body: Node, arguments: Sequence[Array], sizes: Sizes) -> list[Array]:
    """The results of a body for these values of its parameters. The parameters of a body inside it
    are its own."""
    leaves = [node for node in toposort(body) if node.op is ops.PLACEHOLDER]
    return _evaluate(list(body.src), {leaf: arguments[leaf.arg[0]] for leaf in leaves}, sizes)
