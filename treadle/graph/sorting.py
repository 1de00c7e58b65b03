"""Sorting and what is read off sorted elements: topk, median, quantile, mode, searchsorted.

NaN is greater than every number (it stands last, in descending order first), -0.0 equals 0.0, and
every sort is stable. Values are read where the order says, so their gradients go back there.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from treadle.graph import shapes
from treadle.graph.build import (
    Operand,
    alu,
    cast,
    const,
    dim_value,
    expand,
    gather,
    iota,
    node_of,
    normalize_axis,
    operands,
    pad,
    reduce,
    reshape,
    stop_gradient,
    where,
)
from treadle.graph.elementwise import add, eq, le, logical_and, logical_not, lt, mul, ne, sub
from treadle.graph.movement import movedim, narrow
from treadle.graph.ordering import first_of_order, key_of, order
from treadle.graph.public import public
from treadle.graph.reduction import argmax
from treadle.graph.results import ValuesIndices
from treadle.graph.running import last_extreme
from treadle.graph.shapes import Dim, text
from treadle.ir import ops
from treadle.ir.dtype import bool_, int32, int64
from treadle.ir.node import Node, Shape


# ---- orders --------------------------------------------------------------------------------------
def _last(x: Node, dim: int) -> tuple[Node, int]:
    """x with a dimension moved to the end, and which it was; a 0-d tensor has one of size 1."""
    axis = normalize_axis(dim, len(x.shape))
    if not x.shape:
        return reshape(x, (1,)), 0
    return movedim(x, axis, -1), axis


def _back(x: Node, axis: int, rank: int) -> Node:
    """The last dimension moved back to where it was."""
    return movedim(x, -1, axis) if rank else reshape(x, ())


def _pick(x: Node, index: Node) -> Node:
    """The elements of the last dimension at an index, which the derivative goes back to."""
    return gather(x, index, len(x.shape) - 1)


@public("sort", source="PyTorch")
def sort(
    x: Node, dim: int = -1, descending: bool = False, *, stable: bool = True
) -> ValuesIndices[Node]:
    """(values, indices): the elements in order along a dimension, and where each stood, int64.
    NaN counts as greatest. Always stable: equal elements stay in their order.

    >>> Tensor([3, 1, 2]).sort()
    ValuesIndices(values=Tensor([1, 2, 3]), indices=Tensor([1, 2, 0]))
    """
    rows, axis = _last(x, dim)
    found = order(key_of(rows, descending))
    rank = len(x.shape)
    values, indices = _pick(rows, found), cast(found, int64)
    return ValuesIndices(_back(values, axis, rank), _back(indices, axis, rank))


@public("argsort", source="PyTorch", gradient="int")
def argsort(x: Node, dim: int = -1, descending: bool = False, *, stable: bool = True) -> Node:
    """Where the elements in order stood, int64: the indices of `sort`.

    >>> Tensor([3, 1, 2]).argsort()
    Tensor([1, 2, 0])
    """
    return sort(x, dim, descending)[1]


@public("msort", source="PyTorch")
def msort(x: Node) -> Node:
    """The elements in ascending order along the first dimension.

    >>> Tensor([3, 1, 2]).msort()
    Tensor([1, 2, 3])
    """
    return sort(x, 0)[0]


def _axis_of_standard(x: Node, name: str) -> None:
    if not x.shape:
        raise ValueError(f"{name}: a 0-d tensor has no dimension to sort along")


@public("sort", source="Array API", method=False, namespace=True)
def sort_of_standard(
    x: Node, /, *, axis: int = -1, descending: bool = False, stable: bool = True
) -> Node:
    """The elements in order along an axis (values only). NaN counts as greatest.

    >>> treadle.sort(Tensor([3, 1, 2]))
    Tensor([1, 2, 3])
    """
    _axis_of_standard(x, "sort")
    return sort(x, axis, descending)[0]


@public("argsort", source="Array API", method=False, namespace=True, gradient="int")
def argsort_of_standard(
    x: Node, /, *, axis: int = -1, descending: bool = False, stable: bool = True
) -> Node:
    """Where the elements in order along an axis stood, int64.

    >>> treadle.argsort(Tensor([3, 1, 2]))
    Tensor([1, 2, 0])
    """
    _axis_of_standard(x, "argsort")
    return sort(x, axis, descending)[1]


@public("topk", source="PyTorch")
def topk(
    x: Node, k: int, dim: int = -1, largest: bool = True, sorted: bool = True
) -> ValuesIndices[Node]:
    """(values, indices): the k greatest (or least) elements along a dimension, in order, whatever
    `sorted` says; of equals those that stand first. What cannot be among them is not sorted.

    >>> Tensor([1, 3, 2]).topk(2)
    ValuesIndices(values=Tensor([3, 2]), indices=Tensor([1, 2]))
    """
    k = shapes.as_int(k, "k")
    rows, axis = _last(x, dim)
    if k < (0 if x.shape else 1) or shapes.at_most(k, rows.shape[-1]) is not True:
        raise ValueError(
            f"topk: k={k} is not a number of elements of dimension {axis} of {text(x.shape)}"
        )
    found = first_of_order(key_of(rows, largest), k)
    rank = len(x.shape)
    values, indices = _pick(rows, found), cast(found, int64)
    return ValuesIndices(_back(values, axis, rank), _back(indices, axis, rank))


# ---- one element of the order --------------------------------------------------------------------
def _kept(x: Node, axis: int, keepdim: bool, rank: int) -> Node:
    """A result whose last dimension has size 1: without it, or with it at its place."""
    if not rank:
        return reshape(x, ())
    return movedim(x, -1, axis) if keepdim else reshape(x, x.shape[:-1])


def _of_index(
    x: Node, dim: int, keepdim: bool, choose: Callable[[Node], Node]
) -> ValuesIndices[Node]:
    """(values, indices): along a dimension the element whose index `choose(rows)` gives, as rows of
    one element."""
    rows, axis = _last(x, dim)
    index = choose(rows)
    rank = len(x.shape)
    values = _kept(_pick(rows, index), axis, keepdim, rank)
    return ValuesIndices(values, _kept(cast(index, int64), axis, keepdim, rank))


def _not_empty(x: Node, dim: int, name: str) -> None:
    if x.shape and x.shape[normalize_axis(dim, len(x.shape))] == 0:
        raise ValueError(f"{name}: dimension {dim} of shape {text(x.shape)} has no elements")


@public("kthvalue", source="PyTorch")
def kthvalue(x: Node, k: int, dim: int = -1, keepdim: bool = False) -> ValuesIndices[Node]:
    """(values, indices): the k-th least element (from 1) along a dimension, and where it stands.

    >>> Tensor([3, 1, 2]).kthvalue(2)
    ValuesIndices(values=Tensor(2), indices=Tensor(2))
    """
    k = shapes.as_int(k, "k")
    size = x.shape[normalize_axis(dim, len(x.shape))] if x.shape else 1
    if k < 1 or shapes.at_most(k, size) is not True:
        raise ValueError(f"kthvalue: k={k} is not one of 1 to {shapes.dim_text(size)}")

    def choose(rows: Node) -> Node:
        return narrow(first_of_order(key_of(rows), k), len(rows.shape) - 1, k - 1, k)

    return _of_index(x, dim, keepdim, choose)


def _median_index(rows: Node) -> Node:
    """Of an even number the lower of the two in the middle; NaN if there is one."""
    size, last = rows.shape[-1], len(rows.shape) - 1
    middle = shapes.divide(shapes.subtract(size, 1), 2)
    ordered = order(key_of(rows))
    found = narrow(ordered, last, middle, shapes.add(middle, 1), inside=True)
    if not rows.dtype.is_float:
        return found
    bad = reduce("or", ne(rows, rows), last, True)
    return where(bad, cast(argmax(rows, last, True), found.dtype), found)


def _nanmedian_index(rows: Node) -> Node:
    last = len(rows.shape) - 1
    ordered = order(key_of(rows))
    numbers = reduce("add", cast(eq(rows, rows), ordered.dtype), last, True)
    middle = alu(ops.IDIV, alu(ops.MAX, sub(numbers, 1), 0), 2)
    return gather(ordered, middle, last)


def _median(name: str, index: Callable[[Node], Node], text_: str) -> Callable[..., Any]:
    def function(x: Node, dim: int | None = None, keepdim: bool = False) -> Any:
        if dim is None:
            count = shapes.total(x.shape)
            if count == 0:
                nothing = reduce("add", x)  # through which derivatives flow
                return add(nothing, math.nan) if x.dtype.is_float else nothing
            return _shared(x, _of_index(reshape(x, (count,)), 0, False, index)[0])
        _not_empty(x, dim, name)
        return _of_index(x, dim, keepdim, index)

    function.__doc__ = (
        f"The middle element{text_}; of an even number the lower of the two in the middle. Along "
        "`dim` (values, indices); without it the value for all elements."
    )
    return public(name, source="PyTorch")(function)


def _shared(x: Node, value: Node) -> Node:
    """One value of a tensor, of which all elements that equal it share the derivative evenly, as
    those of a maximum do."""
    if not x.dtype.is_float:
        return value
    equals = reduce("max", where(eq(x, stop_gradient(value)), x, const(x.dtype.min, x.dtype)))
    return where(ne(value, value), value, equals)


median = _median("median", _median_index, ", NaN if there is a NaN")
nanmedian = _median("nanmedian", _nanmedian_index, " of those that are not NaN")


@public("mode", source="PyTorch")
def mode(x: Node, dim: int = -1, keepdim: bool = False) -> ValuesIndices[Node]:
    """(values, indices): the most frequent element along a dimension, of several the least, and
    where it stands last.

    >>> Tensor([2, 1, 2, 1, 3]).mode()
    ValuesIndices(values=Tensor(1), indices=Tensor(3))
    """
    _not_empty(x, dim, "mode")
    return _of_index(x, dim, keepdim, _mode_index)


def _mode_index(rows: Node) -> Node:
    """In the order, the end of the longest run of equal elements."""
    last, size = len(rows.shape) - 1, rows.shape[-1]
    ordered = order(key_of(rows))
    start = run_starts(_pick(rows, ordered))
    length = sub(iota(size, start.dtype), start)
    return gather(ordered, cast(argmax(length, last, True), ordered.dtype), last)


def run_starts(ordered: Node) -> Node:
    """For each element of the last dimension the place at which its run of equal ones begins."""
    last, size = len(ordered.shape) - 1, ordered.shape[-1]
    place = expand(iota(size, int64), ordered.shape)
    marks = where(is_new(ordered, last), place, const(-1, int64))
    return last_extreme(marks, last, "argmax")


def is_new(x: Node, axis: int) -> Node:
    """Whether each element differs from the one before it along an axis; the first does."""
    size = x.shape[axis]
    shape = (*x.shape[:axis], 1, *x.shape[axis + 1 :])
    first = const(True, bool_, shape)
    if shapes.at_most(size, 1) is True:
        return narrow(first, axis, 0, size)
    later, earlier = narrow(x, axis, 1, size), narrow(x, axis, 0, shapes.subtract(size, 1))
    amounts: list[tuple[Dim, Dim]] = [(0, 0)] * len(x.shape)
    amounts[axis] = (1, 0)
    return pad(ne(later, earlier), amounts, True)


# ---- quantiles -----------------------------------------------------------------------------------
_INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")


def _quantile(
    name: str, x: Node, q: Any, dim: int | None, keepdim: bool, interpolation: str, skip_nan: bool
) -> Node:
    if not x.dtype.is_float:
        raise TypeError(f"{name}: the tensor must be floating-point, not {x.dtype}")
    if interpolation not in _INTERPOLATIONS:
        allowed = ", ".join(map(repr, _INTERPOLATIONS))
        raise ValueError(f"{name}: interpolation is one of {allowed}, not {interpolation!r}")
    wanted = _probabilities(name, q, x)
    rows, axis = _last(x if dim is not None else reshape(x, (shapes.total(x.shape),)), dim or 0)
    _not_empty(rows, -1, name)
    last, size, before = len(rows.shape) - 1, rows.shape[-1], rows.shape[:-1]
    ordered = _pick(rows, order(key_of(rows)))
    nan = ne(rows, rows)
    if skip_nan:
        numbers = reduce("add", cast(logical_not(nan), int64), last, True)
        highest = cast(alu(ops.MAX, sub(numbers, 1), 0), x.dtype)
    else:
        highest = expand(dim_value(shapes.subtract(size, 1), x.dtype), (*before, 1))
    count = shapes.total(wanted.shape)
    rank = mul(expand(reshape(wanted, (count,)), (*before, count)), highest)
    if not skip_nan:  # NaN stands last
        rank = where(reduce("or", nan, last, True), highest, rank)
    found = _interpolated(ordered, rank, interpolation)
    if isinstance(q, Node):
        found = where(eq(rank, rank), found, rank)
    result = movedim(found, -1, 0) if wanted.shape else reshape(found, before)
    if not keepdim:
        return result
    kept = (1,) * len(x.shape) if dim is None else (*x.shape[:axis], 1, *x.shape[axis + 1 :])
    return reshape(result, (*wanted.shape, *(kept if x.shape else ())))


def _probabilities(name: str, q: Any, x: Node) -> Node:
    """The probabilities as one or as a row of them, in the dtype of x; NaN for what is none."""
    if isinstance(q, Node):
        if len(q.shape) > 1 or not q.dtype.is_float:
            raise ValueError(f"{name}: q is a number or a row of floats, not {shapes.words(q)}")
        return cast(where(logical_and(le(0, q), le(q, 1)), q, math.nan), x.dtype)
    if isinstance(q, bool) or not isinstance(q, (int, float)) or not 0 <= q <= 1:
        raise ValueError(f"{name}: q is a probability from 0 to 1, not {shapes.words(q)}")
    return const(float(q), x.dtype)


def _interpolated(ordered: Node, rank: Node, interpolation: str) -> Node:
    """The ordered elements read between the two places around each rank."""
    if interpolation == "nearest":
        return _pick(ordered, cast(alu(ops.RINT, rank), int64))
    low, high = alu(ops.FLOOR, rank), alu(ops.CEIL, rank)
    if interpolation in ("lower", "higher"):
        return _pick(ordered, cast(low if interpolation == "lower" else high, int64))
    weight = sub(rank, low) if interpolation == "linear" else const(0.5, rank.dtype)
    below, above = _pick(ordered, cast(low, int64)), _pick(ordered, cast(high, int64))
    between = add(below, mul(weight, sub(above, below)))
    return where(eq(low, high), below, between)  # infinity - infinity is NaN


@public("quantile", source="PyTorch")
def quantile(
    x: Node,
    q: Any,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
) -> Node:
    """The value below which the part q of the elements lies, of all or along a dimension; NaN if
    there is one. q: a number from 0 to 1, or a row of them, which the result then has as its first
    dimension (NaN for one in it that is beyond). interpolation: "linear", "lower", "higher",
    "midpoint" or "nearest" element.

    >>> Tensor([1.0, 2.0, 4.0]).quantile(0.75)
    Tensor(3.)
    """
    return _quantile("quantile", x, q, dim, keepdim, interpolation, False)


@public("nanquantile", source="PyTorch")
def nanquantile(
    x: Node,
    q: Any,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
) -> Node:
    """As `quantile`, of the elements that are not NaN; NaN if there are none.

    >>> Tensor([1.0, float("nan"), 3.0]).nanquantile(0.5)
    Tensor(2.)
    """
    return _quantile("nanquantile", x, q, dim, keepdim, interpolation, True)


# ---- places in an order --------------------------------------------------------------------------
@public("searchsorted", source="PyTorch", gradient="int")
def searchsorted(
    x: Node,
    values: Operand,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Node | None = None,
) -> Node:
    """Where each of `values` is to be inserted into the ascending last dimension of x: before its
    equals, or after them with right=True (or side="right"). x is one row for all values, or has the
    leading dimensions of `values`. sorter: the order of x (`argsort`) if it is not sorted.

    int64 (int32 with out_int32), by as many steps as the size has bits, each a read. NaN counts as
    greatest.

    >>> Tensor([1, 3, 5]).searchsorted(Tensor([3, 6]))
    Tensor([1, 3])
    """
    if side not in (None, "left", "right"):
        raise ValueError(f"searchsorted: side is 'left' or 'right', not {side!r}")
    if side == "left" and right:
        raise ValueError(f"searchsorted: side={side!r} and right={right} say different things")
    if not x.shape:
        raise ValueError("searchsorted: the sorted tensor needs a dimension, and is 0-d")
    if sorter is not None:
        if not shapes.same_shape(sorter.shape, x.shape):
            raise ValueError(
                f"searchsorted: the sorter has the shape {text(sorter.shape)}, not {text(x.shape)}"
            )
        x = _pick(x, sorter)
    wanted = node_of(values)
    if len(x.shape) > 1 and not shapes.same_shape(x.shape[:-1], wanted.shape[:-1]):
        raise ValueError(
            f"searchsorted: values of shape {text(wanted.shape)} for rows of {text(x.shape)}: give "
            "the same leading dimensions, or one row for all"
        )
    shape = wanted.shape
    if len(x.shape) == 1:
        wanted = reshape(wanted, (shapes.total(shape),))
    rows, wanted = operands(x, wanted)
    found = _search(rows, wanted, right or side == "right")
    return cast(reshape(found, shape), int32 if out_int32 else int64)


def _search(rows: Node, values: Node, right: bool) -> Node:
    """How many elements of each row come before the values. Powers of two are added to the number
    as long as the element before the place that it gives does."""
    size = rows.shape[-1]
    count: Shape = values.shape
    place = const(0, int64, count)
    if size == 0:
        return place
    limit = dim_value(size, int64)
    for bit in reversed(range(shapes.bounds(size)[1].bit_length())):
        further = add(place, 1 << bit)
        probe = _pick(rows, sub(alu(ops.MIN, further, limit), 1))
        before = (le if right else lt)(probe, values)
        if rows.dtype.is_float:  # NaN stands after all numbers
            nan = ne(values, values)
            before = alu(ops.OR, before, nan if right else alu(ops.AND, nan, eq(probe, probe)))
        place = where(alu(ops.AND, before, le(further, limit)), further, place)
    return place


@public("bucketize", source="PyTorch", gradient="int")
def bucketize(
    x: Operand, boundaries: Node, *, out_int32: bool = False, right: bool = False
) -> Node:
    """Which of the buckets between ascending boundaries each element is in: `searchsorted` of x in
    the boundaries.

    >>> Tensor([1.0, 2.5]).bucketize(Tensor([1.0, 2.0, 3.0]))
    Tensor([0, 2])
    """
    if len(boundaries.shape) != 1:
        raise ValueError(f"bucketize: boundaries are a row, not of shape {text(boundaries.shape)}")
    return searchsorted(boundaries, x, out_int32=out_int32, right=right)


@public("searchsorted", source="Array API", method=False, namespace=True, gradient="int")
def searchsorted_of_standard(
    x1: Node, x2: Operand, /, *, side: str = "left", sorter: Node | None = None
) -> Node:
    """Where each of `x2` is to be inserted into the ascending row `x1`, int64: before its equals,
    or after them with side="right".

    >>> treadle.searchsorted(Tensor([1, 3, 5]), Tensor([3, 4]))
    Tensor([1, 2])
    """
    return searchsorted(x1, x2, side=side, sorter=sorter)
