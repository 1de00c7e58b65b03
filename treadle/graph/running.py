"""Running folds along a dimension: sums, products and extremes of all elements up to each.

One mechanism for all of them (`_running`): blocks of at most 32 are folded directly, each place by
a window that ends there (8 operations an element in blocks of 8, lanes along the places, a kernel
whose loops are all affine); what comes before a block is the running fold of the folds of the
blocks, found in the same way. So the work grows with the size alone and the depth is its logarithm.
A loop over the elements would do less work, but one element after another; and sums of sums round
less than one long sum.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from treadle.graph import shapes
from treadle.graph.build import (
    Operand,
    as_float,
    broadcast,
    cast,
    const,
    contiguous,
    expand,
    gather,
    iota,
    node_of,
    normalize_axis,
    pad,
    permute,
    reduce,
    reshape,
    stop_gradient,
    where,
    window,
)
from treadle.graph.elementwise import add, div, logical_xor, mul, rounded_once, sub
from treadle.graph.movement import cat, narrow, on_or_below, stack
from treadle.graph.public import public
from treadle.graph.reduction import logsumexp, sum_, summed_by_standard, summed_type
from treadle.graph.results import ValuesIndices
from treadle.graph.shapes import Dim, text
from treadle.ir.dtype import DType, bool_, int32, int64, uint64
from treadle.ir.monoid import MONOIDS
from treadle.ir.node import Node

_MOST = 32  # elements that are folded directly
_FEW = 8  # elements of the first blocks of many
_MANY = 1 << 16  # elements whose operations cost more than a kernel

State = tuple[Node, ...]


# ---- the mechanism -------------------------------------------------------------------------------
class Fold(NamedTuple):
    """What is done along a dimension.

    along: a state folded along its last dimension, which goes. combine: two states of one shape,
    the earlier first. neutral: per component, what changes nothing.
    """

    along: Callable[[State], State]
    combine: Callable[[State, State], State]
    neutral: tuple[bool | int | float, ...]


def of_monoid(name: str, *dtypes: DType) -> Fold:
    """The fold by a monoid of `ir/monoid.py`, whose state has these dtypes."""
    monoid = MONOIDS[name]

    def along(state: State) -> State:
        if monoid.size == 1:
            return (reduce(name, state[0], -1),)
        return reduce(name, state, -1)

    return Fold(
        along, monoid.combine, tuple([monoid.identity(i, dtype) for i, dtype in enumerate(dtypes)])
    )


def _running(state: State, fold: Fold, before: bool = False) -> State:
    """At each place of the last dimension the fold of all up to it; `before`: without its own."""
    size, others = state[0].shape[-1], state[0].shape[:-1]
    most = shapes.bounds(size)[1]
    if most <= _MOST:
        return _masked(state, fold) if before else _windows(state, fold, most)
    many = shapes.bounds(shapes.total(state[0].shape))[1] > _MANY
    block = _block(most, many and not before)
    axis = len(others)
    keep: list[tuple[Dim, Dim]] = [(0, 0)] * axis
    extra = -size % block if isinstance(size, int) else block
    rows = tuple(
        [
            window(pad(x, [*keep, (0, extra)], neutral), axis, block, stride=block)
            for x, neutral in zip(state, fold.neutral)
        ]
    )
    blocks = rows[0].shape[axis]
    earlier = []
    for x in _running(fold.along(rows), fold, before=True):
        stored = contiguous(x) if many else x  # one reduction a kernel is what `windows` is for
        earlier.append(expand(reshape(stored, (*others, blocks, 1)), (*others, blocks, block)))
    both = fold.combine(tuple(earlier), _windows(rows, fold, block, before))
    flat = (*others, shapes.multiply(blocks, block))
    return tuple([narrow(reshape(x, flat), axis, 0, size, inside=True) for x in both])


def _block(size: int, first: bool) -> int:
    """Elements of a block in a row of `size`. `first`: few, as operations are most of the cost.
    Else so many that there are no more levels than with the most: each rounds once more. A row
    that ends with a block needs no guards."""
    least = _FEW
    if not first:
        rest = 1
        while rest * _MOST < size:
            rest *= _MOST
        least = max(2 * _FEW, -(-size // rest))
    return next((n for n in range(least, _MOST + 1) if size % n == 0), least)


def _windows(state: State, fold: Fold, most: int, before: bool = False) -> State:
    """The running fold as the folds of windows of as many elements as there are at most, which
    begin in neutral ones. Window n is what stands before place n."""
    size, axis = state[0].shape[-1], len(state[0].shape) - 1
    edges: list[tuple[Dim, Dim]] = [(0, 0)] * axis
    windows = []
    for x, neutral in zip(state, fold.neutral):
        every = window(pad(x, [*edges, (most, 0)], neutral), axis, most)
        start = 0 if before else 1
        windows.append(narrow(every, axis, start, shapes.add(size, start), inside=True))
    return fold.along(tuple(windows))


def _masked(state: State, fold: Fold) -> State:
    """The fold of all before each place as one over a triangle. It reads all of a row at every
    place, so it is one kernel with what computes the row."""
    size, others = state[0].shape[-1], state[0].shape[:-1]
    inside = on_or_below(size, size, -1)
    squares = []
    for x, neutral in zip(state, fold.neutral):
        square = expand(reshape(x, (*others, 1, size)), (*others, size, size))
        squares.append(where(inside, square, const(neutral, x.dtype)))
    return fold.along(tuple(squares))


def running(state: State, axis: int, fold: Fold) -> State:
    """At each place of a dimension the fold of all elements up to and including it."""
    rank = len(state[0].shape)
    if not rank or shapes.is_empty(state[0].shape):
        return state
    last = [*(n for n in range(rank) if n != axis), axis]
    back = [last.index(n) for n in range(rank)]
    return tuple(
        [permute(x, back) for x in _running(tuple([permute(x, last) for x in state]), fold)]
    )


def _folded(name: str, x: Node, dim: int, dtype: DType | None) -> Node:
    """A running sum or product, in the accumulator of what it gives."""
    wanted = dtype or summed_type(x.dtype)
    wide = wanted.accumulator
    axis = normalize_axis(dim, len(x.shape))
    (found,) = running((cast(cast(x, wanted), wide),), axis, of_monoid(name, wide))
    return cast(found, wanted)


# ---- sums and products ---------------------------------------------------------------------------
@public("cumsum", source="PyTorch")
def cumsum(x: Node, dim: int, *, dtype: DType | None = None) -> Node:
    """The sum of the elements up to and including each, along a dimension. Bools and integers add
    up in int64 unless `dtype` says otherwise.

    >>> Tensor([1, 2, 3]).cumsum(0)
    Tensor([1, 3, 6])
    """
    return _folded("add", x, dim, dtype)


@public("cumprod", source="PyTorch")
def cumprod(x: Node, dim: int, *, dtype: DType | None = None) -> Node:
    """The product of the elements up to and including each, along a dimension. Bools and integers
    multiply in int64 unless `dtype` says otherwise.

    >>> Tensor([1, 2, 3]).cumprod(0)
    Tensor([1, 2, 6])
    """
    return _folded("mul", x, dim, dtype)


def _of_standard(name: str, monoid: str, text_: str) -> None:
    """The standard's name, which has the `axis` optional for one dimension."""

    def function(
        x: Node,
        *,
        axis: int | None = None,
        dtype: DType | None = None,
        include_initial: bool = False,
    ) -> Node:
        if axis is None and len(x.shape) != 1:
            raise ValueError(f"{name}: give the axis of a tensor of {len(x.shape)} dimensions")
        place = normalize_axis(0 if axis is None else axis, len(x.shape))
        found = _folded(monoid, x, place, dtype or summed_by_standard(x.dtype))
        if not include_initial:
            return found
        first = (*x.shape[:place], 1, *x.shape[place + 1 :])
        return cat([const(int(monoid == "mul"), found.dtype, first), found], dim=place)

    function.__doc__ = (
        f"The {text_} up to and including each element along `axis`, which may be left out of a "
        "tensor of one dimension. include_initial: begin with that of no elements."
    )
    public(name, source="Array API", method=False, namespace=True)(function)


_of_standard("cumulative_sum", "add", "sum of the elements")
_of_standard("cumulative_prod", "mul", "product of the elements")


@public("logcumsumexp", source="PyTorch")
@rounded_once
def logcumsumexp(x: Node, dim: int) -> Node:
    """log(sum(exp(x))) of the elements up to and including each, along a dimension; it does not
    overflow.

    >>> Tensor([0.0, 0.0]).logcumsumexp(0).exp()
    Tensor([1., 2.])
    """

    def combine(a: State, b: State) -> State:
        return (logsumexp(stack(a[0], b[0], dim=-1), -1),)

    fold = Fold(lambda state: (logsumexp(state[0], -1),), combine, (-math.inf,))
    return running((x,), normalize_axis(dim, len(x.shape)), fold)[0]


# ---- extremes ------------------------------------------------------------------------------------
def _running_extreme(name: str, alias: str, word: str) -> Callable[..., ValuesIndices[Node]]:
    def function(x: Node, dim: int) -> ValuesIndices[Node]:
        axis = normalize_axis(dim, len(x.shape))
        if not x.shape:
            return ValuesIndices(x, const(0, int64))
        position = last_extreme(x, axis, alias)
        return ValuesIndices(gather(x, position, axis), position)

    function.__doc__ = (
        f"(values, indices): the {word} of the elements up to and including each, along a "
        "dimension, and where it stands, int64; of equals the last. NaN stays from where it first "
        "stands."
    )
    return public(name, source="PyTorch")(function)


def last_extreme(x: Node, axis: int, monoid: str) -> Node:
    """Where the extreme (argmax or argmin) of all up to each element stands; of equals the last.

    The monoid takes the lowest index among equals, so positions are counted from the end.
    """
    size = x.shape[axis]
    count = int32 if shapes.bounds(size)[1] < 2**31 - 1 else int64
    column = (size,) + (1,) * (len(x.shape) - axis - 1)
    last = shapes.subtract(size, 1)
    from_end = sub(_number(last, count), iota(size, count))
    positions = expand(reshape(from_end, column), x.shape)
    _, found = running((stop_gradient(x), positions), axis, of_monoid(monoid, x.dtype, count))
    return cast(sub(_number(last, count), found), int64)


def _number(dim: Dim, dtype: DType) -> Node:
    return const(dim, dtype) if isinstance(dim, int) else cast(dim, dtype)


cummax = _running_extreme("cummax", "argmax", "greatest")
cummin = _running_extreme("cummin", "argmin", "least")


# ---- differences and areas -----------------------------------------------------------------------
@public("diff", source="PyTorch", namespace=True)
def diff(
    x: Node, n: int = 1, dim: int = -1, prepend: Node | None = None, append: Node | None = None
) -> Node:
    """Each element less the one before it along a dimension, n times over; of bools, whether they
    differ. prepend, append: joined to the ends first, unless n is 0.

    >>> Tensor([1, 4, 9]).diff()
    Tensor([3, 5])
    """
    if not x.shape:
        raise ValueError("diff: a 0-d tensor has no dimension to take differences along")
    n = shapes.as_int(n, "n")
    if n < 0:
        raise ValueError(f"diff: n is 0 or more, not {n}")
    axis = normalize_axis(dim, len(x.shape))
    if n == 0:
        return x  # nothing is joined to what is not differenced
    parts = [_slab(part, x, axis) for part in (prepend, x, append) if part is not None]
    x = cat(parts, dim=axis) if len(parts) > 1 else x
    for _ in range(n):
        size = x.shape[axis]
        if size == 0:
            break
        later, earlier = narrow(x, axis, 1, size), narrow(x, axis, 0, shapes.subtract(size, 1))
        x = logical_xor(later, earlier) if x.dtype is bool_ else sub(later, earlier)
    return x


def _slab(part: Node, x: Node, axis: int) -> Node:
    """What is joined to the end of x: a 0-d tensor stands for a slice of it."""
    if part.shape:
        return part
    return expand(part, (*x.shape[:axis], 1, *x.shape[axis + 1 :]))


def _signed(x: Node) -> Node:
    """Integers in a type in which neither sums nor differences of two of them wrap."""
    if x.dtype.is_float:
        return x
    return as_float(x) if x.dtype is uint64 else cast(x, int64)


def _areas(name: str, y: Node, x: Node | None, dx: Operand, dim: int) -> tuple[Node, int]:
    """The areas of the strips between neighbours, and their dimension."""
    if x is not None and dx is not None:
        raise TypeError(f"{name}: x and dx say the same; give one of them")
    if not y.shape:
        raise ValueError(f"{name}: a 0-d tensor has no dimension to add up along")
    axis = normalize_axis(dim, len(y.shape))
    size = y.shape[axis]
    if size == 0:
        return y, axis
    y, x = _signed(y), None if x is None else _signed(x)
    later, earlier = narrow(y, axis, 1, size), narrow(y, axis, 0, shapes.subtract(size, 1))
    heights = div(add(later, earlier), 2)
    if x is None:
        return mul(heights, 1 if dx is None else dx), axis
    if len(x.shape) == 1:
        if not shapes.same(x.shape[0], size):
            raise ValueError(
                f"{name}: x has the shape {text(x.shape)}; dimension {axis} of {text(y.shape)} "
                "needs as many numbers"
            )
        widths = reshape(diff(x), (shapes.subtract(size, 1),) + (1,) * (len(y.shape) - axis - 1))
    else:
        wide, _ = broadcast(x, y, name=name)
        widths = diff(wide, 1, axis)
    return mul(heights, widths), axis


@public("trapezoid", source="PyTorch", aliases=("trapz",))
def trapezoid(y: Node, x: Node | None = None, *, dx: Operand = None, dim: int = -1) -> Node:
    """The area under y along a dimension by the trapezoidal rule, its points at x, or `dx` apart (1
    unless given); 0 of fewer than two points.

    >>> Tensor([1.0, 2.0, 3.0]).trapezoid()
    Tensor(4.)
    """
    strips, axis = _areas("trapezoid", node_of(y), x, dx, dim)
    return sum_(strips, axis)


@public("cumulative_trapezoid", source="PyTorch")
def cumulative_trapezoid(
    y: Node, x: Node | None = None, *, dx: Operand = None, dim: int = -1
) -> Node:
    """The areas of `trapezoid` up to each point but the first.

    >>> Tensor([1.0, 2.0, 3.0]).cumulative_trapezoid()
    Tensor([1.5, 4. ])
    """
    strips, axis = _areas("cumulative_trapezoid", node_of(y), x, dx, dim)
    return cumsum(strips, axis)
