"""Functions of the namespace that follow the Array API standard where PyTorch's method of the same
name means something else, or where there is none.

https://data-apis.org/array-api/2024.12
"""

from __future__ import annotations

from typing import Any

from treadle.graph import creation, movement, reduction, selection, shapes
from treadle.graph.build import Operand, cast, iota, node_of, permute, reshape, shrink
from treadle.graph.counting import repeat_interleave
from treadle.graph.elementwise import clamp, eq, sub
from treadle.graph.masks import Read
from treadle.graph.public import public
from treadle.graph.shapes import Dim, as_dim, as_shape, check_sizes, normalize_axes
from treadle.ir.dtype import DType, float32, int64
from treadle.ir.node import Node


# ---- statistics ----------------------------------------------------------------------------------
@public("sum", source="Array API", method=False, namespace=True)
def sum_(x: Node, dim: Any = None, keepdim: bool = False, *, dtype: DType | None = None) -> Node:
    """The sum; 0 of nothing. Unless `dtype` is given, bools and signed integers add up in int64 and
    unsigned ones in uint64 (the method `x.sum` has int64 for all but uint64, as in PyTorch).

    >>> treadle.sum(Tensor([200, 100], dtype="uint8"))
    Tensor(300, dtype=uint64)
    """
    return reduction.sum_(x, dim, keepdim, dtype=dtype or reduction.summed_by_standard(x.dtype))


@public("prod", source="Array API", method=False, namespace=True)
def prod(x: Node, dim: Any = None, keepdim: bool = False, *, dtype: DType | None = None) -> Node:
    """The product; 1 of nothing. The dtype is that of `treadle.sum`.

    >>> treadle.prod(Tensor([200, 100], dtype="uint8"))
    Tensor(20000, dtype=uint64)
    """
    return reduction.prod(x, dim, keepdim, dtype=dtype or reduction.summed_by_standard(x.dtype))


@public("var", source="Array API", method=False, namespace=True)
def var(
    x: Node, /, *, axis: Any = None, correction: int | float = 0.0, keepdims: bool = False
) -> Node:
    """The mean square distance from the mean, the sum of squares divided by `count - correction`
    (the method `x.var` has correction 1, as in PyTorch).

    >>> treadle.var(Tensor([1.0, 3.0]))
    Tensor(1.)
    """
    return reduction.var(x, axis, None, keepdims, correction=correction)


@public("std", source="Array API", method=False, namespace=True)
def std(
    x: Node, /, *, axis: Any = None, correction: int | float = 0.0, keepdims: bool = False
) -> Node:
    """The square root of `var` (the method `x.std` has correction 1, as in PyTorch).

    >>> treadle.std(Tensor([1.0, 3.0]))
    Tensor(1.)
    """
    return reduction.std(x, axis, None, keepdims, correction=correction)


# ---- shapes --------------------------------------------------------------------------------------
@public("expand_dims", source="Array API", method=False, namespace=True)
def expand_dims(x: Node, /, axis: Any) -> Node:
    """With dimensions of size 1 more, at `axis` (an int or several) of the result.

    >>> treadle.expand_dims(Tensor([1, 2]), axis=0)
    Tensor([[1, 2]])
    """
    wanted = axis if isinstance(axis, tuple | list) else (axis,)
    places = normalize_axes(tuple(wanted), len(x.shape) + len(wanted))
    sizes = iter(x.shape)
    ndim = len(x.shape) + len(places)
    return reshape(x, tuple([1 if n in places else next(sizes) for n in range(ndim)]))


@public("squeeze", source="Array API", method=False, namespace=True)
def squeeze(x: Node, /, axis: Any) -> Node:
    """Without the dimensions `axis` (an int or several), which have size 1: ValueError if not (the
    method `x.squeeze` leaves them).

    >>> treadle.squeeze(Tensor([[1, 2]]), 0)
    Tensor([1, 2])
    """
    axes = normalize_axes(axis, len(x.shape)) if x.shape or axis != () else ()
    wrong = next((n for n in axes if x.shape[n] != 1), None)
    if wrong is not None:
        raise ValueError(
            f"squeeze: dimension {wrong} of a tensor of shape {shapes.text(x.shape)} has size "
            f"{x.shape[wrong]}, not 1"
        )
    return reshape(x, tuple([size for n, size in enumerate(x.shape) if n not in axes]))


@public("matrix_transpose", source="Array API", method=False, namespace=True)
def matrix_transpose(x: Node, /) -> Node:
    """Every matrix, in the last two dimensions, transposed.

    >>> treadle.matrix_transpose(Tensor([[1, 2]]))
    Tensor([[1],
            [2]])
    """
    ndim = len(x.shape)
    if ndim < 2:
        raise ValueError(
            f"matrix_transpose needs two dimensions or more, not the shape {shapes.text(x.shape)}"
        )
    return permute(x, (*range(ndim - 2), ndim - 1, ndim - 2))


@public("reshape", source="Array API", method=False, namespace=True)
def reshape_of_standard(x: Node, /, *shape: Any, copy: bool | None = None) -> Node:
    """The elements in row-major order in another shape; one size may be -1. copy: has no meaning
    for results that nobody can see change, so every value of it is fine.

    >>> treadle.reshape(Tensor([1, 2, 3, 4]), (2, -1))
    Tensor([[1, 2],
            [3, 4]])
    """
    return reshape(x, as_shape(*shape))


@public("repeat", source="Array API", method=False, namespace=True, kind="reads")
def repeat(x: Node, repeats: Any, /, *, axis: int | None = None, read: Read) -> Node:
    """Each element `repeats` times (a number, or a tensor of one for each place), along a dimension
    or of the flattened tensor (the method `x.repeat` repeats the whole, as in PyTorch).

    >>> treadle.repeat(Tensor([1, 2]), 2)
    Tensor([1, 1, 2, 2])
    """
    return repeat_interleave(x, repeats, axis, read=read)


@public("concat", source="Array API", method=False, namespace=True, aliases=("cat", "concatenate"))
def concat(arrays: Any, /, dim: int | None = 0) -> Node:
    """The tensors of a list joined along a dimension, or all of them flattened if it is None.

    >>> treadle.concat([Tensor([[1], [2]]), Tensor([[3]])], axis=None)
    Tensor([1, 2, 3])
    """
    if dim is not None:
        return movement.cat(arrays, dim=dim)
    return movement.cat([reshape(x, (shapes.total(x.shape),)) for x in arrays], dim=0)


# ---- limits --------------------------------------------------------------------------------------
@public("clip", source="Array API", method=False, namespace=True, aliases=("clamp",))
def clip(x: Operand, /, min: Operand = None, max: Operand = None) -> Node:
    """x brought into [min, max]; None is no limit.

    >>> treadle.clip(Tensor([1, 5, 9]), 2, 8)
    Tensor([2, 5, 8])
    """
    return node_of(x) if min is None and max is None else clamp(x, min, max)


# ---- selection -----------------------------------------------------------------------------------
@public("take_along_axis", source="Array API", method=False, namespace=True)
def take_along_axis(x: Node, indices: Node, /, *, axis: int = -1) -> Node:
    """The elements at `indices` along a dimension, the other dimensions broadcast.

    >>> treadle.take_along_axis(Tensor([[1, 2], [3, 4]]), Tensor([[1], [0]]))
    Tensor([[2],
            [3]])
    """
    return selection.take_along_dim(x, indices, axis)


# ---- creation ------------------------------------------------------------------------------------
@public("eye", source="Array API", method=False, namespace=True, kind="creates")
def eye(
    n_rows: Dim, n_cols: Dim | None = None, /, *, k: int = 0, dtype: DType | None = None
) -> Node:
    """The matrix of n_rows rows and n_cols columns (n_rows unless given) with ones on its diagonal
    k, above the main one if k is above 0.

    >>> treadle.eye(2, 3, k=1)
    Tensor([[0., 1., 0.],
            [0., 0., 1.]])
    """
    wanted = (as_dim(n_rows), as_dim(n_rows if n_cols is None else n_cols))
    rows, columns = check_sizes(wanted, "eye")
    row, column = reshape(iota(rows, int64), (rows, 1)), iota(columns, int64)
    return cast(eq(sub(reshape(column, (1, columns)), row), k), dtype or float32)


@public("linspace", source="Array API", method=False, namespace=True, kind="creates")
def linspace(
    start: Any, stop: Any, /, num: int, *, dtype: DType | None = None, endpoint: bool = True
) -> Node:
    """`num` numbers at equal distances from `start` to `stop`, which is the last one unless
    endpoint=False.

    >>> treadle.linspace(0, 1, 4, endpoint=False)
    Tensor([0.  , 0.25, 0.5 , 0.75])
    """
    if endpoint:
        return creation.linspace(start, stop, num, dtype=dtype)
    if type(num) is not int or num < 0:
        raise ValueError(f"linspace: num is a number of 0 or more, not {shapes.words(num)}")
    return shrink(creation.linspace(start, stop, num + 1, dtype=dtype), ((0, num),))
