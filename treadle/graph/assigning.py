"""Writing at indices along a dimension, and at places of the flattened tensor.

`scatter` of `selection.py` has an index for every element; in the names that begin with "index" one
index stands for a whole slice. Indices are checked when the program runs.
"""

from __future__ import annotations

from collections.abc import Sequence

from treadle.graph import shapes
from treadle.graph.build import (
    Operand,
    cast,
    const,
    dim_value,
    expand,
    gather,
    normalize_axis,
    reshape,
    scatter,
    where,
)
from treadle.graph.elementwise import add, div, floor_divide, lt, maximum, mul
from treadle.graph.indexing import setitem
from treadle.graph.masks import Read
from treadle.graph.public import public
from treadle.graph.selection import scattered
from treadle.graph.shapes import Dim, text
from treadle.ir.dtype import bool_, int64
from treadle.ir.monoid import MONOIDS
from treadle.ir.node import Node

# PyTorch's word for what is done with several values for one place -> the monoid
_REDUCTIONS = {"sum": "add", "prod": "mul", "mean": "add", "amax": "max", "amin": "min"}
_OF_SLICES = ("prod", "mean", "amax", "amin")


# ---- a slice for each index ----------------------------------------------------------------------
def _spread(x: Node, dim: int, index: Node, source: Node, name: str) -> tuple[Node, Node, Node]:
    """(x, index, source) for `scatter`, of one shape but for the axis: x of one dimension or
    more, the index with its number for every element of its slice."""
    axis = normalize_axis(dim, len(x.shape))
    if len(index.shape) > 1:
        raise ValueError(f"{name}: the index is 1-d, not of shape {text(index.shape)}")
    count = shapes.total(index.shape)
    base = x if x.shape else reshape(x, (1,))
    before, after = base.shape[:axis], base.shape[axis + 1 :]
    wanted = (*before, count, *after)
    have = source.shape or (1,) * len(wanted)
    if not shapes.same_shape(have, wanted):
        raise ValueError(
            f"{name}: the source has shape {text(source.shape)}; {shapes.dim_text(count)} slices "
            f"along dimension {axis} of {text(x.shape)} have {text(wanted)}"
        )
    if source.dtype is not x.dtype:
        raise TypeError(
            f"{name}: the source is {source.dtype} and the tensor is {x.dtype}; cast one of them"
        )
    column = reshape(index, (count,) + (1,) * len(after))
    return base, expand(column, wanted), reshape(source, wanted)


def _counted(index: Node, size: Dim, name: str) -> Node:
    """Indices into so many elements, those below 0 counted from the end."""
    if not index.dtype.is_int:
        raise TypeError(f"{name}: the indices are {index.dtype}; they must be integers")
    places = cast(index, int64)
    return where(lt(places, 0), add(places, dim_value(size, int64)), places)


@public("index_add", source="PyTorch")
def index_add(
    x: Node, dim: int, index: Node, source: Node, *, alpha: bool | int | float = 1
) -> Node:
    """x with alpha * source added, slice by slice, at the indices along a dimension; several for
    one place add up.

    >>> Tensor([1, 2, 3]).index_add(0, Tensor([0, 0]), Tensor([10, 20]))
    Tensor([31,  2,  3])
    """
    base, rows, values = _spread(x, dim, index, source, "index_add")
    if alpha != 1:
        whole = x.dtype.is_int and isinstance(alpha, int)
        factor = cast(const(alpha, int64), x.dtype) if whole else alpha  # -1 of uint8 wraps
        values = cast(mul(values, factor), x.dtype)
    return reshape(_added(base, rows, values, normalize_axis(dim, len(x.shape))), x.shape)


def _added(base: Node, index: Node, values: Node, axis: int) -> Node:
    """scatter with "add"; of bools with "or"."""
    return scatter(base, index, values, axis, "max" if base.dtype is bool_ else "add")


@public("index_copy", source="PyTorch")
def index_copy(x: Node, dim: int, index: Node, source: Node) -> Node:
    """x with the slices of the source in the place of those at the indices along a dimension; of
    several for one place the last stays.

    >>> Tensor([1, 2, 3]).index_copy(0, Tensor([2, 0]), Tensor([10, 20]))
    Tensor([20,  2, 10])
    """
    base, rows, values = _spread(x, dim, index, source, "index_copy")
    return reshape(scatter(base, rows, values, normalize_axis(dim, len(x.shape))), x.shape)


@public("index_fill", source="PyTorch")
def index_fill(x: Node, dim: int, index: Node, value: Operand) -> Node:
    """x with one value (a number, or a tensor of shape ()) in the slices at the indices along a
    dimension; indices below 0 count from the end.

    >>> Tensor([1, 2, 3]).index_fill(0, Tensor([0, 2]), 7)
    Tensor([7, 2, 7])
    """
    number = cast(value, x.dtype) if isinstance(value, Node) else const(value, x.dtype)
    if number.shape:
        raise ValueError(f"index_fill: the value is one number, not of shape {text(number.shape)}")
    axis = normalize_axis(dim, len(x.shape))
    count = shapes.total(index.shape)
    part = (*x.shape[:axis], count, *x.shape[axis + 1 :]) if x.shape else (count,)
    places = _counted(index, x.shape[axis] if x.shape else 1, "index_fill")
    base, rows, values = _spread(x, dim, places, expand(number, part), "index_fill")
    return reshape(scatter(base, rows, values, axis), x.shape)


@public("index_reduce", source="PyTorch")
def index_reduce(
    x: Node, dim: int, index: Node, source: Node, reduce: str, *, include_self: bool = True
) -> Node:
    """As `scatter_reduce`, with one index for each slice; reduce: "prod", "mean", "amax", "amin".

    >>> Tensor([1, 2]).index_reduce(0, Tensor([0, 0]), Tensor([7, 5]), "amax")
    Tensor([7, 2])
    """
    if reduce not in _OF_SLICES:
        raise ValueError(f"index_reduce: reduce is one of {_OF_SLICES}, not {reduce!r}")
    base, rows, values = _spread(x, dim, index, source, "index_reduce")
    found = _combined(base, normalize_axis(dim, len(x.shape)), rows, values, reduce, include_self)
    return reshape(found, x.shape)


# ---- an index for each element -------------------------------------------------------------------
@public("scatter_reduce", source="PyTorch")
def scatter_reduce(
    x: Node, dim: int, index: Node, src: Node, reduce: str, *, include_self: bool = True
) -> Node:
    """x with all values of `src` for one place combined into it: places as in `scatter`.

    reduce: "sum", "prod", "mean", "amax" or "amin"; the mean of integers is rounded down.
    include_self=False leaves the value of x out where there are others.

    >>> Tensor([1.0, 2.0]).scatter_reduce(0, Tensor([0, 0]), Tensor([4.0, 7.0]), "mean")
    Tensor([4., 2.])
    """
    if reduce not in _REDUCTIONS:
        raise ValueError(f"scatter_reduce: reduce is one of {tuple(_REDUCTIONS)}, not {reduce!r}")
    return _combined(x, normalize_axis(dim, len(x.shape)), index, src, reduce, include_self)


def _combined(x: Node, axis: int, index: Node, src: Node, reduce: str, include_self: bool) -> Node:
    monoid = _REDUCTIONS[reduce]
    if x.dtype is bool_ and monoid in ("add", "mul"):
        monoid = "max" if monoid == "add" else "min"
    instead = None if include_self else const(MONOIDS[monoid].identity(0, x.dtype), x.dtype)
    found = scattered(x, axis, index, src, monoid, "scatter_reduce", instead)
    if reduce != "mean":
        return found
    ones = const(1, int64, index.shape)
    start = const(int(include_self), int64, x.shape)
    count = maximum(scattered(start, axis, index, ones, "add", "scatter_reduce"), 1)
    if x.dtype.is_float:
        return div(found, cast(count, x.dtype))
    return cast(floor_divide(cast(found, int64), count), x.dtype)


# ---- places of the flattened tensor --------------------------------------------------------------
def _flat(x: Node, index: Node, name: str) -> tuple[Node, Node]:
    """x with one dimension, and indices into it as one dimension; below 0 they count from the
    end."""
    size = shapes.total(x.shape)
    places = reshape(index, (shapes.total(index.shape),))
    return reshape(x, (size,)), _counted(places, size, name)


@public("take", source="PyTorch")
def take(x: Node, index: Node) -> Node:
    """The elements of the flattened tensor at indices, in the shape of the indices.

    >>> Tensor([[1, 2], [3, 4]]).take(Tensor([3, 0]))
    Tensor([4, 1])
    """
    flat, places = _flat(x, index, "take")
    return reshape(gather(flat, places, 0), index.shape)


@public("take", source="Array API", method=False, namespace=True)
def take_of_standard(x: Node, indices: Node, /, *, axis: int | None = None) -> Node:
    """The slices that 1-d indices name along `axis`, which may be left out of a tensor of one
    dimension; indices below 0 count from the end.

    >>> treadle.take(Tensor([5, 6, 7]), Tensor([2, 0]), axis=0)
    Tensor([7, 5])
    """
    if axis is None and len(x.shape) != 1:
        raise ValueError(f"take: give the axis of a tensor of {len(x.shape)} dimensions")
    place = normalize_axis(0 if axis is None else axis, len(x.shape))
    size = dim_value(x.shape[place], int64)
    rows = where(lt(indices, 0), add(indices, size), indices)
    count = shapes.total(rows.shape)
    column = reshape(rows, (count,) + (1,) * (len(x.shape) - place - 1))
    return gather(x, expand(column, (*x.shape[:place], count, *x.shape[place + 1 :])), place)


@public("put", source="PyTorch")
def put(x: Node, index: Node, source: Node, accumulate: bool = False) -> Node:
    """x with the elements of `source`, in order, at indices of the flattened tensor; with
    `accumulate` added to those that stand there.

    >>> Tensor([[1, 2], [3, 4]]).put(Tensor([3, 0]), Tensor([7, 8]))
    Tensor([[8, 2],
            [3, 7]])
    """
    if source.dtype is not x.dtype:
        raise TypeError(
            f"put: the source is {source.dtype} and the tensor is {x.dtype}; cast one of them"
        )
    flat, places = _flat(x, index, "put")
    values = reshape(source, places.shape)
    written = _added(flat, places, values, 0) if accumulate else scatter(flat, places, values, 0)
    return reshape(written, x.shape)


@public("index_put", source="PyTorch", kind="reads")
def index_put(
    x: Node, indices: Sequence[Node], values: Node, accumulate: bool = False, *, read: Read
) -> Node:
    """x after `x[indices] = values`, for a tuple of tensors (ints that broadcast, or bool masks);
    with `accumulate` the values are added, several for one place too.

    >>> Tensor([1, 2, 3]).index_put((Tensor([0, 0]),), Tensor([10, 20]), accumulate=True)
    Tensor([31,  2,  3])
    """
    if not isinstance(indices, (tuple, list)):
        raise TypeError(f"index_put: give a tuple of tensors, not {shapes.words(indices)}")
    if values.dtype is not x.dtype:
        raise TypeError(
            f"index_put: the values are {values.dtype} and the tensor is {x.dtype}; cast one"
        )
    monoid = "set" if not accumulate else "max" if x.dtype is bool_ else "add"
    return setitem(x, tuple(indices), values, read, monoid)
