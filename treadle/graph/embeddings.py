"""Rows of tables by integer ids: `embedding`, and sums of several rows.

An id that is no row is an IndexError when it is read.
"""

from __future__ import annotations

from typing import Any

from treadle.graph import shapes
from treadle.graph.build import (
    alu,
    cast,
    const,
    expand,
    gather,
    iota,
    reduce,
    reshape,
    scatter,
    stop_gradient,
    where,
)
from treadle.graph.elementwise import add, div, eq, maximum, mul, ne, sub
from treadle.graph.movement import narrow
from treadle.graph.public import public
from treadle.graph.running import cumsum
from treadle.ir import ops
from treadle.ir.dtype import bool_, int64
from treadle.ir.node import Node


@public("embedding", source="PyTorch")
def embedding(
    ids: Node,
    weight: Node,
    padding_idx: int | None = None,
    scale_grad_by_freq: bool = False,
) -> Node:
    """The rows of a table that ids name: ids (..) and weight (rows, ..) give (.., ..).

    padding_idx: a row that gets no gradient. scale_grad_by_freq: divide the gradient of a row by
    how often ids name it. An id that is no row is an IndexError when it is read.

    >>> Tensor([1, 0]).embedding(Tensor([[1.0, 2.0], [3.0, 4.0]])).tolist()
    [[3.0, 4.0], [1.0, 2.0]]
    """
    _check_ids("embedding", ids)
    if len(weight.shape) < 1:
        raise ValueError("embedding: the table has shape (); it must have a dimension of rows")
    found = _rows(weight, ids, padding_idx, scale_grad_by_freq)
    return reshape(found, (*ids.shape, *weight.shape[1:]))


def _check_ids(name: str, ids: Node) -> None:
    if not ids.dtype.is_int:
        raise TypeError(f"{name}: the ids are {ids.dtype}; they must be integers")


def _rows(weight: Node, ids: Node, padding_idx: int | None, by_frequency: bool) -> Node:
    """The rows that ids name, in one dimension."""
    count, rest = shapes.total(ids.shape), weight.shape[1:]
    flat = reshape(ids, (count,))
    column = reshape(ids, (count, *[1] * len(rest)))
    found = gather(weight, expand(column, (count, *rest)), 0)
    if by_frequency:
        once = const(1, found.dtype.accumulator, (count,))
        zeros = const(0, once.dtype, (weight.shape[0],))
        times = gather(scatter(zeros, cast(flat, int64), once, 0, "add"), flat, 0)
        share = cast(div(1.0, times), found.dtype)
        share = reshape(share, column.shape)
        # the value is the row itself, its derivative the share
        found = add(mul(sub(found, stop_gradient(found)), share), stop_gradient(found))
    if padding_idx is not None:
        row = padding_row("embedding", padding_idx, weight.shape[0])
        found = where(eq(column, row), stop_gradient(found), found)
    return found


def padding_row(name: str, padding_idx: int, rows: Any) -> int:
    """A row counted from 0. ValueError if the table has none such."""
    last = shapes.bounds(rows)[1]
    if type(padding_idx) is not int or not -last <= padding_idx < last:
        raise ValueError(
            f"{name}: padding_idx={padding_idx!r} is not a row of {shapes.dim_text(rows)}"
        )
    return padding_idx % last


# ---- bags ----------------------------------------------------------------------------------------
@public("embedding_bag", source="PyTorch")
def embedding_bag(
    ids: Node,
    weight: Node,
    offsets: Node | None = None,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    per_sample_weights: Node | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Node:
    """The rows of a table that each bag of ids names, reduced to one: (bags, dimension).

    ids: (bags, n); or (n,) with `offsets` (bags,), where each bag begins, from 0 and ascending.
    weight: (rows, dimension). mode: "sum", "mean" or "max"; an empty bag gives 0.
    per_sample_weights: what rows are multiplied by, of the shape of ids, for "sum".
    include_last_offset: the last of the offsets is where the last bag ends. padding_idx: a row that
    does not count. scale_grad_by_freq: as of `embedding`; not for "max".

    >>> Tensor([[0, 1]]).embedding_bag(Tensor([[1.0], [3.0]])).tolist()
    [[2.0]]
    """
    name = "embedding_bag"
    _check_ids(name, ids)
    _check_bags(name, ids, weight, offsets, mode, per_sample_weights)
    if mode == "max" and scale_grad_by_freq:
        raise ValueError(f"{name}: scale_grad_by_freq is for 'sum' and 'mean', not for 'max'")
    if include_last_offset and offsets is None:
        raise ValueError(f"{name}: include_last_offset needs offsets")
    wide = weight.dtype.accumulator
    found = cast(_rows(weight, ids, None, scale_grad_by_freq), wide)
    count = found.shape[0]
    if per_sample_weights is not None:
        found = mul(found, reshape(cast(per_sample_weights, wide), (count, 1)))
    kept = const(True, bool_, (count,))
    if padding_idx is not None:
        row = padding_row(name, padding_idx, weight.shape[0])
        kept = ne(reshape(ids, (count,)), row)
    if offsets is None:
        result = _equal_bags(found, kept, ids.shape, mode)
    else:
        bags = shapes.subtract(offsets.shape[0], int(include_last_offset))
        result = _uneven_bags(found, kept, _bag_of_each(offsets, count), bags, mode)
    return cast(result, weight.dtype)


def _check_bags(
    name: str, ids: Node, weight: Node, offsets: Node | None, mode: str, per_sample: Node | None
) -> None:
    """Errors for arguments that do not fit each other."""
    if mode not in ("sum", "mean", "max"):
        raise ValueError(f"{name}: mode is 'sum', 'mean' or 'max', not {mode!r}")
    if len(weight.shape) != 2:
        raise ValueError(
            f"{name}: the table has shape {shapes.text(weight.shape)}; it must be (rows, dimension)"
        )
    if offsets is None and len(ids.shape) != 2:
        raise ValueError(
            f"{name}: ids of shape {shapes.text(ids.shape)} need offsets; without, they are "
            "(bags, n)"
        )
    if offsets is not None:
        _check_ids(f"{name}: offsets", offsets)
        if len(ids.shape) != 1 or len(offsets.shape) != 1:
            raise ValueError(
                f"{name}: with offsets (bags,) the ids are (n,): the shapes are "
                f"{shapes.text(offsets.shape)} and {shapes.text(ids.shape)}"
            )
    if per_sample is not None and mode != "sum":
        raise ValueError(f"{name}: per_sample_weights is for mode='sum', not for {mode!r}")
    if per_sample is not None and not shapes.same_shape(per_sample.shape, ids.shape):
        raise ValueError(
            f"{name}: per_sample_weights has shape {shapes.text(per_sample.shape)}; it must have "
            f"that of the ids, {shapes.text(ids.shape)}"
        )


def _equal_bags(found: Node, kept: Node, shape: tuple[Any, ...], mode: str) -> Node:
    """Bags of one size: a reduction along an axis."""
    rows = reshape(found, (*shape, found.shape[1]))
    column = reshape(kept, (*shape, 1))
    number = reduce("add", cast(column, found.dtype), 1)
    if mode == "max":
        greatest = reduce("max", where(column, rows, found.dtype.min), 1)
        return where(ne(number, 0), greatest, 0)
    total = reduce("add", where(column, rows, 0), 1)
    return div(total, maximum(number, 1)) if mode == "mean" else total


def _bag_of_each(offsets: Node, count: shapes.Dim) -> Node:
    """The bag that each of `count` ids is in: how many bags have begun there, less one."""
    starts = cast(offsets, int64)
    zeros = const(0, int64, (shapes.add(count, 1),))  # (an empty last bag begins behind the ids)
    begun = cumsum(scatter(zeros, starts, const(1, int64, starts.shape), 0, "add"), 0)
    return sub(narrow(begun, 0, 0, count), 1)


def _uneven_bags(found: Node, kept: Node, bag: Node, bags: shapes.Dim, mode: str) -> Node:
    """Bags of any size: rows are added up where their bag is. What is behind the last bag goes to
    one more, which is dropped."""
    count, width = found.shape
    more = shapes.add(bags, 1)
    one = const(0, found.dtype, (more,))
    number = narrow(scatter(one, bag, cast(kept, found.dtype), 0, "add"), 0, 0, bags)
    number = reshape(number, (bags, 1))
    column = reshape(kept, (count, 1))
    places = expand(reshape(bag, (count, 1)), (count, width))
    if mode == "max":
        return _greatest_row(found, column, places, bags)
    zeros = const(0, found.dtype, (more, width))
    total = narrow(scatter(zeros, places, where(column, found, 0), 0, "add"), 0, 0, bags)
    return div(total, maximum(number, 1)) if mode == "mean" else total


def _greatest_row(found: Node, kept: Node, places: Node, bags: shapes.Dim) -> Node:
    """The greatest element of every column of a bag: its number is found first (the first of equal
    ones), so that the derivative is that of reading it."""
    count, width = found.shape
    more = (shapes.add(bags, 1), width)
    if shapes.is_empty((count,)):
        return expand(reduce("add", found, 0, True), (bags, width))
    values = stop_gradient(where(kept, found, found.dtype.min))
    peaks = scatter(const(found.dtype.min, found.dtype, more), places, values, 0, "max")
    peak = eq(values, gather(peaks, places, 0))
    number = expand(reshape(iota(count, int64), (count, 1)), (count, width))
    wins = where(alu(ops.AND, peak, kept), number, int64.max)
    first = scatter(const(int64.max, int64, more), places, wins, 0, "min")
    chosen = narrow(first, 0, 0, bags)
    empty = eq(chosen, int64.max)
    return where(empty, 0, gather(found, where(empty, 0, chosen), 0))
