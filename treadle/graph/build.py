"""The primitives of the graph: one function per operation, with its checks and light folding.

Every public function is written with these, and so are the rules of gradients. A builder checks
what it is given (errors are in the user's words), broadcasts and promotes, and folds what is free
to fold: movement of movement, casts to the same type, operations on constants, x * 1. The rest is
the business of `graph/simplify.py`.

An *operand* is a node or a Python scalar. Scalars are weak: they take the dtype of the arrays they
meet (`operands`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, overload

import numpy as np

from treadle.extras import load
from treadle.graph import shapes
from treadle.graph.constants import (
    const,
    constant_of,
    full_like,
    ones_like,
    quiet_cast,
    stretch,
    zeros_like,
)
from treadle.graph.parts import by_parts, complex_of, imag, real
from treadle.graph.shapes import (
    Dim,
    as_shape,
    at_most,
    broadcast_shapes,
    normalize_axes,
    normalize_axis,
    text,
)
from treadle.graph.weak import is_weak, weak_dtype
from treadle.ir import ops
from treadle.ir.dtype import (
    DType,
    bool_,
    complex64,
    float32,
    float64,
    from_numpy,
    int64,
    promote,
    round_to,
)
from treadle.ir.monoid import find
from treadle.ir.node import Node, Shape
from treadle.ir.ops import Op

Operand = Any  # Node | bool | int | float | complex | NumPy scalar
SCALARS = (bool, int, float, complex)  # Python's numbers

__all__ = [
    "alu", "as_float", "bitcast", "broadcast", "broadcast_shapes", "broadcast_to", "cast",
    "const", "constant_of", "contiguous", "dim_value", "expand", "flip", "full_like", "gather",
    "iota", "node_of", "normalize_axes", "normalize_axis", "ones_like", "operands", "pad",
    "permute", "reduce", "reshape", "scatter", "shrink", "stop_gradient", "unwindow", "update",
    "weak_dtype", "where", "window", "window_pair", "zeros_like",
]  # fmt: skip

# How a message spells an operation that the user writes with a sign or another name.
_WORDS = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "idiv": "//", "mod": "%", "and": "&", "or": "|",
    "xor": "^", "not": "~", "lshift": "<<", "rshift": ">>", "lt": "comparison", "le": "comparison",
    "eq": "==", "ne": "!=", "max": "maximum", "min": "minimum", "neg": "negation", "rint": "round",
}  # fmt: skip
_KINDS = {
    "b": "bool",
    "u": "unsigned",
    "i": "signed",
    "f": "floating-point",
    "c": "complex",
    "x": "",
}

# Of complex numbers, by the modules that are loaded when the first is met: the operation on pairs,
# given the nodes of one dtype and shape and what they were made of (CAST: the dtype); by the name
# of a monoid, the reduction over axes.
ON_PAIRS: dict[Op | str, Callable[..., Node]] = {}


# ---- constants and scalars -----------------------------------------------------------------------
def dim_value(dim: Dim, dtype: DType) -> Node:
    """A dimension as a number of shape (): a constant, or a run-time value if it is symbolic."""
    if type(dim) is int:
        return const(dim, dtype)
    if dtype.kind == "c":
        return cast(dim_value(dim, dtype.real), dtype)
    return Node(ops.CAST, dtype, (dim,))


def node_of(x: Operand) -> Node:
    """An operand as a node by itself: bool, int64, float32, complex64 for Python scalars, a NumPy
    scalar in its own dtype."""
    if isinstance(x, Node):
        return x
    if isinstance(x, bool):
        return const(x, bool_)
    if isinstance(x, int):
        return const(x, int64)
    if isinstance(x, float):
        return const(x, float32)
    if isinstance(x, complex):
        return const(x, complex64)
    if isinstance(x, np.generic):
        return const(x.item(), from_numpy(x.dtype))
    raise TypeError(f"expected a tensor or a number, not {type(x).__name__}: {x!r}")


def operands(*xs: Operand) -> tuple[Node, ...]:
    """Operands as nodes of one dtype. Arrays decide it by `dtype.promote`; Python scalars are weak:
    an int with a float array becomes that float, a float with an integer array makes both float32,
    an int with a bool array makes both int64. OverflowError for an int that does not fit."""
    common: DType | None = None
    for x in xs:
        if not isinstance(x, SCALARS) and not is_weak(x):
            dtype = node_of(x).dtype
            common = dtype if common is None else promote(common, dtype)
    if common is None and any(isinstance(x, Node) for x in xs):
        common = float64  # arithmetic of run-time floats is Python's own
    for x in xs:
        if isinstance(x, SCALARS):
            common = weak_dtype(common, x)
        elif is_weak(x):
            common = weak_dtype(common, 0.0)
    assert common is not None, "an operation has at least one operand"
    try:
        return tuple(
            [const(x, common) if isinstance(x, SCALARS) else cast(node_of(x), common) for x in xs]
        )
    except OverflowError as error:
        wider = "a float" if common.bits == 64 else "a wider"
        hint = f": cast the tensor to {wider} dtype first" if common.is_int else ""
        raise OverflowError(f"{error}{hint}") from None


def as_float(x: Operand) -> Node:
    """The operand as floating point (or complex): integers and bools become float32."""
    node = node_of(x)
    return node if node.dtype.is_inexact else cast(node, float32)


# ---- elementwise ---------------------------------------------------------------------------------
def alu(op: Op, *xs: Operand, dtype: DType | None = None) -> Node:
    """The elementwise operation `op` on operands that are promoted and broadcast.

    TypeError if `op` is not for their dtype, ValueError if their shapes do not broadcast. Of
    complex numbers it is what `complexes.py` makes of their parts. Folds constants by the op's own
    meaning, and x+0, x-0, x*1, x/1 where that is exact.
    """
    first = xs[0]
    given = xs
    for x in xs:
        if not isinstance(x, Node) or x.dtype is not first.dtype:
            xs = operands(*xs)
            break
    nodes = broadcast(*xs, name=_WORDS.get(op.name, op.name))
    source = nodes[0].dtype
    if source.kind not in op.accepts:
        if source.kind == "c" and on_pairs(op):
            return ON_PAIRS[op](nodes, given)
        allowed = ", ".join(_KINDS[kind] for kind in op.accepts if kind != "x")
        word = _WORDS.get(op.name, op.name)
        raise TypeError(f"{word} is for {allowed}, not for {source}: cast the tensor first")
    folded = _fold(op, nodes)
    if folded is not None:
        return folded
    if dtype is None:
        dtype = bool_ if op.dtype == "bool" else source
    return Node(op, dtype, nodes)


def on_pairs(what: Op | str) -> bool:
    """Whether complex numbers have an operation, or a reduction. It is in ON_PAIRS then."""
    if what not in ON_PAIRS:
        for name in ("complexes", "analytic", "angles"):
            load(f"{__package__}.{name}")
    return what in ON_PAIRS


# The constant that, as the second operand (of a commutative op: as either), leaves the other as it
# is. x + 0 is not exact for the float x = -0.0: there -0.0 is neutral.
_NEUTRAL: dict[Op, Callable[[DType], Node]] = {
    ops.ADD: lambda d: const(-0.0, d),
    ops.SUB: lambda d: const(0, d),
    ops.MUL: lambda d: const(1, d),
    ops.DIV: lambda d: const(1, d),
    ops.IDIV: lambda d: const(1, d),
    ops.OR: lambda d: const(0, d),
    ops.XOR: lambda d: const(0, d),
    ops.AND: lambda d: const(d.max if d.kind != "i" else -1, d),
    ops.LSHIFT: lambda d: const(0, d),
    ops.RSHIFT: lambda d: const(0, d),
}


def _fold(op: Op, nodes: Sequence[Node]) -> Node | None:
    """The operation done now, if it is on constants or with a neutral element."""
    found = [constant_of(node) for node in nodes]
    last = found[-1]
    if last is None and found[0] is None:
        return None
    constants = [constant for constant in found if constant is not None]
    if len(constants) == len(nodes):
        return _evaluated(op, constants, nodes[0].shape)
    neutral = _NEUTRAL.get(op)
    if neutral is None:
        return None
    if last is neutral(nodes[0].dtype):
        return nodes[0]
    if "commutative" in op.flags and found[0] is neutral(nodes[0].dtype):
        return nodes[1]
    return None


def _evaluated(op: Op, constants: Sequence[Node], shape: Shape) -> Node:
    """The constant `op(constants)`, by the op's meaning on 0-d arrays."""
    source = constants[0].dtype
    result = bool_ if op.dtype == "bool" else source
    values = [np.asarray(c.value, dtype=c.dtype.compute) for c in constants]
    node = Node(op, result, tuple(constants))
    assert op.meaning is not None, op.name
    return expand(_of_array(op.meaning(node, *values), result), shape)


def _of_array(value: np.ndarray, dtype: DType) -> Node:
    """A 0-d array in `dtype.compute` as a constant, bit for bit."""
    return Node(ops.CONST, dtype, (), dtype.to_bits(np.asarray(round_to(dtype, value)).item()))


def where(condition: Operand, x: Operand, y: Operand) -> Node:
    """x where the condition holds, else y; all three broadcast, x and y are promoted. TypeError for
    a condition that is not bool.

    `where(True, x, y)` is x, and counts as computed from y, too: its derivative by y is zero.
    """
    test = node_of(condition)
    if test.dtype is not bool_:
        raise TypeError(f"where: the condition is {test.dtype}, not bool: write condition != 0")
    test, a, b = broadcast(test, *operands(x, y), name="where")
    if a.dtype.kind == "c":
        return by_parts(lambda one, other: where(test, one, other), a, b)
    known = constant_of(test)
    kept, left = (a, b) if known is None or known.value else (b, a)
    no_path = known is not None and (not left.dtype.is_float or constant_of(left) is not None)
    if a is b or no_path:
        return kept
    return Node(ops.WHERE, a.dtype, (test, a, b))


def cast(x: Node, dtype: DType) -> Node:
    """Values of `x` as another dtype: float to integer truncates, saturates, and NaN gives 0;
    integers wrap; to bool asks whether it is not 0. TypeError for complex numbers to real ones:
    whoever wants that says which part."""
    if x.dtype is dtype:
        return x
    if x.dtype.kind == "c" or dtype.kind == "c":
        on_pairs(ops.CAST)
        return ON_PAIRS[ops.CAST]((x,), (dtype,))
    known = constant_of(x)
    if known is not None:
        value = np.asarray(known.value, dtype=x.dtype.compute)
        return expand(_of_array(quiet_cast(value, x.dtype, dtype), dtype), x.shape)
    return Node(ops.CAST, dtype, (x,))


def bitcast(x: Node, dtype: DType) -> Node:
    """The bits of `x` read as another dtype of the same width."""
    if x.dtype is dtype:
        return x
    if x.dtype.is_complex or dtype.is_complex:
        raise TypeError(f"bitcast: {x.dtype} to {dtype}: view_as_real gives the parts")
    if x.dtype.itemsize != dtype.itemsize or bool_ in (x.dtype, dtype):
        raise TypeError(f"bitcast: {x.dtype} and {dtype} do not have the same number of bits")
    return Node(ops.BITCAST, dtype, (x,))


def stop_gradient(x: Node) -> Node:
    """`x`, through which no derivative passes."""
    return x if x.op is ops.STOP or constant_of(x) is not None else ops.STOP(x)


def broadcast(*xs: Node, name: str = "broadcast") -> tuple[Node, ...]:
    """The nodes expanded to their common shape. ValueError naming two shapes that do not fit."""
    shape = xs[0].shape
    for x in xs:
        if x.shape != shape:
            shape = broadcast_shapes(*[each.shape for each in xs], name=name)
            return tuple([x if x.shape == shape else stretch(x, shape) for x in xs])
    return xs


def expand(x: Node, shape: Sequence[Dim]) -> Node:
    """`x` stretched to a shape: dimensions of size 1 become any size, new ones are added in front;
    -1 keeps a size. ValueError if another size would have to change."""
    target = as_shape(shape)
    missing = len(target) - len(x.shape)
    if missing >= 0 and -1 in target:
        old = (None,) * missing + x.shape
        target = tuple([size if size != -1 else keep for size, keep in zip(target, old)])
    if x.shape == target:
        return x
    fits = missing >= 0 and None not in target
    for have, want in zip(x.shape, target[max(missing, 0) :]):
        fits = fits and (have == 1 or shapes.same(have, want))
    if not fits:
        raise ValueError(f"expand: a tensor of shape {text(x.shape)} does not fit {text(shape)}")
    return stretch(x, shapes.check_sizes(target, "expand"))


broadcast_to = expand


# ---- movement ------------------------------------------------------------------------------------
def reshape(x: Node, shape: Sequence[Dim]) -> Node:
    """The elements of `x`, in row-major order, in another shape; one size may be -1 (what is left).
    ValueError if the numbers of elements differ."""
    target = as_shape(shape)
    if x.shape == target:
        return x
    target = shapes.infer_size(x.shape, target)
    if not shapes.same(shapes.total(x.shape), shapes.total(target)):
        raise ValueError(f"reshape: {text(x.shape)} does not have the elements of {text(target)}")
    shapes.check_sizes(target, "reshape")
    if x.dtype.kind == "c":
        return by_parts(lambda part: reshape(part, target), x)
    if x.op is ops.RESHAPE:
        x = x.src[0]
    return x if x.shape == target else Node(ops.RESHAPE, x.dtype, (x,), target)


def permute(x: Node, order: Sequence[int]) -> Node:
    """Dimension `order[i]` of `x` becomes dimension i. ValueError if `order` is no permutation."""
    rank = len(x.shape)
    axes = tuple([normalize_axis(axis, rank) for axis in order])
    if len(axes) != rank or len(set(axes)) != rank:
        raise ValueError(f"permute: {tuple(order)} does not name each of {rank} dimensions once")
    if x.dtype.kind == "c":
        return by_parts(lambda part: permute(part, axes), x)
    if x.op is ops.PERMUTE:
        axes = tuple([x.arg[axis] for axis in axes])
        x = x.src[0]
    return x if axes == tuple(range(rank)) else Node(ops.PERMUTE, x.dtype, (x,), axes)


def pad(x: Node, pairs: Sequence[tuple[Dim, Dim]], value: bool | int | float | complex = 0) -> Node:
    """`x` with `low` and `high` elements of `value` added before and after, a pair per dimension.
    ValueError for negative amounts (`shrink` removes)."""
    amounts = tuple([(shapes.as_dim(low), shapes.as_dim(high)) for low, high in pairs])
    if len(amounts) != len(x.shape):
        raise ValueError(f"pad: {len(amounts)} pairs for a tensor of shape {text(x.shape)}")
    if all(low == 0 and high == 0 for low, high in amounts):
        return x
    for low, high in amounts:
        if at_most(0, low) is not True or at_most(0, high) is not True:
            raise ValueError(f"pad: the amounts {text((low, high))} must not be below 0")
    if x.dtype.kind == "c":
        filled = complex(value)
        re, im = pad(real(x), amounts, filled.real), pad(imag(x), amounts, filled.imag)
        return complex_of(re, im)
    filling = const(value, x.dtype)
    if filling.arg != 0:
        inside = pad(const(True, bool_, x.shape), amounts)
        return where(inside, pad(x, amounts), filling)
    if x.op is ops.PAD:
        amounts = tuple(
            [(shapes.add(a, c), shapes.add(b, d)) for (a, b), (c, d) in zip(x.arg, amounts)]
        )
        x = x.src[0]
    return Node(ops.PAD, x.dtype, (x,), amounts)


def shrink(x: Node, regions: Sequence[tuple[Dim, Dim]], inside: bool = False) -> Node:
    """The elements from `start` up to `stop`, a pair per dimension.

    ValueError unless 0 <= start <= stop <= size; with `inside` the caller has made sure of it, as a
    slice does, where the bounds of a symbolic size may not be able to tell.
    """
    bounds = tuple([(shapes.as_dim(start), shapes.as_dim(stop)) for start, stop in regions])
    if len(bounds) != len(x.shape):
        raise ValueError(f"shrink: {len(bounds)} pairs for a tensor of shape {text(x.shape)}")
    changed = False
    for (start, stop), size in zip(bounds, x.shape):
        if start == 0 and (stop is size or stop == size):
            continue
        changed = True
        if not inside and not (at_most(0, start) and at_most(start, stop) and at_most(stop, size)):
            raise ValueError(
                f"shrink: {text((start, stop))} is not a part of a dimension of size "
                f"{shapes.dim_text(size)}"
            )
    if not changed:
        return x
    if x.dtype.kind == "c":
        return by_parts(lambda part: shrink(part, bounds, inside=True), x)
    if x.op is ops.SHRINK:
        bounds = tuple(
            [(shapes.add(a, c), shapes.add(a, d)) for (a, _), (c, d) in zip(x.arg, bounds)]
        )
        x = x.src[0]
    known = constant_of(x)
    if known is not None:
        return expand(known, tuple([shapes.subtract(stop, start) for start, stop in bounds]))
    return Node(ops.SHRINK, x.dtype, (x,), bounds)


def flip(x: Node, axes: Any) -> Node:
    """`x` in reverse order along some dimensions."""
    found = set(normalize_axes(axes, len(x.shape)))
    if x.dtype.kind == "c":
        return by_parts(lambda part: flip(part, tuple(found)), x)
    if x.op is ops.FLIP:
        found ^= set(x.arg)
        x = x.src[0]
    turned = tuple(sorted([axis for axis in found if x.shape[axis] != 1]))
    return Node(ops.FLIP, x.dtype, (x,), turned) if turned and constant_of(x) is None else x


def window(x: Node, axis: int, size: int, stride: int = 1, dilation: int = 1) -> Node:
    """All windows of `size` elements along an axis, `dilation` apart within a window, and `stride`
    from window to window: the axis becomes the pair (window, element).

    out[.., o, k, ..] = x[.., o*stride + k*dilation, ..]
    ValueError if not even one window fits.
    """
    axis = normalize_axis(axis, len(x.shape))
    length = x.shape[axis]
    reach = dilation * (size - 1) + 1
    if size < 1 or stride < 1 or dilation < 1 or at_most(reach, length) is not True:
        raise ValueError(
            f"window: size {size}, stride {stride}, dilation {dilation} does not fit a dimension "
            f"of size {shapes.dim_text(length)}"
        )
    windows = shapes.add(shapes.divide(shapes.subtract(length, reach), stride), 1)
    before, after = x.shape[:axis], x.shape[axis + 1 :]
    pair = reshape(x, (*before, length, 1, *after))
    pair = expand(pair, (*before, length, size, *after))
    return window_pair(pair, axis, windows, stride, dilation)


def window_pair(x: Node, axis: int, windows: Dim, stride: int, dilation: int) -> Node:
    """The op WINDOW as it is: out[o, k] = x[o*stride + k*dilation, k] on (axis, axis + 1), with
    `windows` values of o. The adjoint of `unwindow`."""
    if x.dtype.kind == "c":
        return by_parts(lambda part: window_pair(part, axis, windows, stride, dilation), x)
    return Node(ops.WINDOW, x.dtype, (x,), (axis, windows, stride, dilation))


def unwindow(x: Node, axis: int, size: Dim, stride: int, dilation: int) -> Node:
    """The op UNWINDOW as it is: out[i, k] = x[(i - k*dilation)/stride, k], or 0 where that is not
    whole or not there, on (axis, axis + 1), with `size` values of i. The adjoint of `window_pair`;
    summed over k it is the adjoint of `window`."""
    if x.dtype.kind == "c":
        return by_parts(lambda part: unwindow(part, axis, size, stride, dilation), x)
    return Node(ops.UNWINDOW, x.dtype, (x,), (axis, size, stride, dilation))


# ---- reduce --------------------------------------------------------------------------------------
@overload
def reduce(monoid: str, x: Node, axes: Any = None, keepdim: bool = False) -> Node:
    """Of one component."""


@overload
def reduce(
    monoid: str, x: tuple[Node, ...], axes: Any = None, keepdim: bool = False
) -> tuple[Node, ...]:
    """Of several."""


def reduce(monoid: str, x: Any, axes: Any = None, keepdim: bool = False) -> Any:
    """`x` folded over axes (None: all) by a monoid of `ir/monoid.py`. For a monoid with several
    components (argmax) `x` is a tuple of them and so is the result.

    Sums and products of half and bfloat16 are carried in float32 and rounded at the end.
    """
    state = x if isinstance(x, tuple) else (x,)
    first = state[0]
    found = normalize_axes(axes, len(first.shape))
    if not found:
        return x
    if isinstance(x, tuple):
        result: Any = _reduce_pair(monoid, x, found)
    else:
        result = _reduce_one(monoid, first, found)
    if not keepdim:
        return result
    kept = tuple([1 if axis in found else size for axis, size in enumerate(first.shape)])
    return (
        tuple([reshape(r, kept) for r in result]) if isinstance(x, tuple) else reshape(result, kept)
    )


def _reduce_one(monoid: str, x: Node, axes: tuple[int, ...]) -> Node:
    if x.dtype.kind == "c":
        if not on_pairs(monoid):
            raise TypeError(f"{_WORDS.get(monoid, monoid)} is not for {x.dtype}")
        return ON_PAIRS[monoid](x, axes)
    wide = x.dtype.accumulator if monoid in ("add", "mul") else x.dtype
    if wide is not x.dtype:
        return cast(_reduce_one(monoid, cast(x, wide), axes), x.dtype)
    left = tuple([size for axis, size in enumerate(x.shape) if axis not in axes])
    if constant_of(x) is not None and any(x.shape[axis] == 0 for axis in axes):
        return const(find(monoid).identity(0, x.dtype), x.dtype, left)
    longer = tuple([axis for axis in axes if x.shape[axis] != 1])
    if not longer:
        single = reshape(x, left)
        # a float sum of one element is 0 + x, which makes -0.0 to 0.0; the other folds give x
        return alu(ops.ADD, single, 0) if monoid == "add" else single
    if len(longer) < len(axes):
        merged = [size for axis, size in enumerate(x.shape) if axis not in axes or axis in longer]
        shift = [axis for axis in axes if axis not in longer]
        longer = tuple([axis - sum(gone < axis for gone in shift) for axis in longer])
        x = reshape(x, tuple(merged))
    return Node(ops.REDUCE, x.dtype, (x,), (monoid, longer))


def _reduce_pair(monoid: str, state: tuple[Node, ...], axes: tuple[int, ...]) -> tuple[Node, ...]:
    dtypes = tuple([s.dtype for s in state])
    whole = Node(ops.REDUCE, dtypes, state, (monoid, axes))
    return tuple([Node(ops.OUT, d, (whole,), number) for number, d in enumerate(dtypes)])


# ---- memory --------------------------------------------------------------------------------------
def gather(x: Node, index: Node, axis: int) -> Node:
    """out[.., i, ..] = x[.., index[.., i, ..], ..] along an axis: `index` has the shape of `x` in
    every other. Indices count from 0; one out of range is an error when the program runs."""
    axis = _index_axis("gather", x, index, axis)
    if x.dtype.kind == "c":
        return by_parts(lambda part: gather(part, index, axis), x)
    return Node(ops.GATHER, x.dtype, (x, index), axis)


def scatter(base: Node, index: Node, value: Node, axis: int, monoid: str = "set") -> Node:
    """`base` with `value` written ("set") or combined (add, mul, max, min) at `index` along an
    axis, in order. `index` and `value` have one shape, that of `base` in every other axis.

    Sums and products of half and bfloat16 are carried in float32 and rounded at the end.
    """
    axis = _index_axis("scatter", base, index, axis)
    if value.shape != index.shape:
        raise ValueError(
            f"scatter: the values of shape {text(value.shape)} do not match the indices of shape "
            f"{text(index.shape)}"
        )
    if value.dtype is not base.dtype:
        raise TypeError(f"scatter: cannot put {value.dtype} into {base.dtype}: cast it first")
    if base.dtype.kind == "c":
        if monoid not in ("set", "add"):
            raise TypeError(f"scatter: {monoid} is not for {base.dtype}")
        return by_parts(lambda one, other: scatter(one, index, other, axis, monoid), base, value)
    wide = base.dtype.accumulator if monoid in ("add", "mul") else base.dtype
    if wide is not base.dtype:
        return cast(scatter(cast(base, wide), index, cast(value, wide), axis, monoid), base.dtype)
    return Node(ops.SCATTER, base.dtype, (base, index, value), (axis, monoid))


def _index_axis(name: str, x: Node, index: Node, axis: int) -> int:
    """The axis that is indexed, counted from 0, after a check of dtype and shapes."""
    axis = normalize_axis(axis, len(x.shape))
    if not index.dtype.is_int:
        raise TypeError(f"{name}: the indices are {index.dtype}; they must be integers")
    fits = len(index.shape) == len(x.shape) and len(x.shape) > 0
    for number, (have, want) in enumerate(zip(index.shape, x.shape)):
        fits = fits and (number == axis or shapes.same(have, want))
    if not fits:
        raise ValueError(
            f"{name}: indices of shape {text(index.shape)} do not match a tensor of shape "
            f"{text(x.shape)} in every dimension but {axis}"
        )
    return shapes.check_places(x.shape, axis, index.shape, name)


def update(x: Node, value: Node, region: Sequence[tuple[Dim, int]], inside: bool = False) -> Node:
    """`x` with `value` in the region that starts at `start` and goes on in steps of `step` >= 1, a
    pair (start, step) per dimension.

    ValueError if the region does not lie within `x`; with `inside` the caller has made sure of it.
    """
    pairs = tuple([(shapes.as_dim(start), step) for start, step in region])
    if value.dtype is not x.dtype:
        raise TypeError(f"update: cannot put {value.dtype} into {x.dtype}: cast it first")
    fits = len(pairs) == len(x.shape) == len(value.shape)
    whole = fits
    for (start, step), count, size in zip(pairs, value.shape, x.shape):
        if start == 0 and step == 1 and (count is size or count == size):
            continue
        whole = False
        if not inside:
            room = shapes.divide_up(shapes.subtract(size, start), step)
            fits = fits and bool(count == 0 or (at_most(0, start) and at_most(count, room)))
    if not fits:
        starts = text([start for start, _ in pairs])
        raise ValueError(
            f"update: values of shape {text(value.shape)} at {starts} do not lie within a tensor "
            f"of shape {text(x.shape)}"
        )
    if x.dtype.kind == "c" and not whole:
        return by_parts(lambda one, other: update(one, other, pairs, inside=True), x, value)
    return value if whole else Node(ops.UPDATE, x.dtype, (x, value), pairs)


def contiguous(x: Node) -> Node:
    """`x`, stored in memory here: what follows reads it instead of computing it again."""
    if x.op in (ops.CONTIGUOUS, ops.BUFFER, ops.COPY) or constant_of(x) is not None:
        return x
    return ops.CONTIGUOUS(x)


def iota(count: Dim, dtype: DType) -> Node:
    """0, 1 .. count-1 as integers of `dtype`."""
    size = shapes.as_dim(count)
    shapes.check_sizes((size,), "iota")
    if not dtype.is_int:
        return cast(iota(size, int64), dtype)
    if shapes.bounds(size)[1] - 1 > dtype.max:
        raise OverflowError(f"{shapes.dim_text(size)} numbers from 0 do not fit {dtype}")
    return Node(ops.IOTA, dtype, (), size)
