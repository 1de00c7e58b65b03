"""Gather and scatter along a dimension, as PyTorch has them.

Indices count from 0. One that is out of range is an IndexError when the program runs.
"""

from __future__ import annotations

from typing import Any

from treadle.graph import shapes
from treadle.graph.build import (
    Operand,
    broadcast_shapes,
    const,
    expand,
    gather,
    normalize_axis,
    reduce,
    reshape,
    scatter,
    shrink,
    update,
    where,
)
from treadle.graph.elementwise import add, lt
from treadle.graph.public import public
from treadle.graph.shapes import Dim, at_most, text
from treadle.ir.node import Node, Shape


def _part(x: Node, shape: Shape, free: int | None, name: str) -> Node:
    """The leading part of `x` of a shape, in every dimension but `free`. ValueError if it is not
    there."""
    fits = len(shape) == len(x.shape)
    region: list[tuple[Dim, Dim]] = []
    for axis, (have, want) in enumerate(zip(x.shape, shape)):
        fits = fits and (axis == free or at_most(want, have) is True)
        region.append((0, have if axis == free else want))
    if not fits:
        raise ValueError(
            f"{name}: the index of shape {text(shape)} is larger than a tensor of shape "
            f"{text(x.shape)}" + ("" if free is None else f" outside dimension {free}")
        )
    return shrink(x, region)


@public("gather", source="PyTorch")
def gather_method(x: Node, dim: int, index: Node, *, sparse_grad: bool = False) -> Node:
    """out[i][j][k] = x[i][index[i][j][k]][k], for dim=1. The index has as many dimensions as x and
    is no larger in the others; the result has its shape. NotImplementedError for sparse_grad.

    >>> Tensor([[1, 2], [3, 4]]).gather(1, Tensor([[1], [0]]))
    Tensor([[2],
            [3]])
    """
    if sparse_grad:
        raise NotImplementedError("gather: sparse_grad=True: gradients are dense here")
    axis = normalize_axis(dim, len(x.shape))
    if not x.shape and len(index.shape) < 2:  # a 0-d tensor stands for one of one element
        flat = reshape(index, (shapes.total(index.shape),))
        return reshape(gather(reshape(x, (1,)), flat, 0), index.shape)
    if shapes.is_empty(index.shape) and len(index.shape) != len(x.shape):
        return expand(reduce("add", x), index.shape)  # of nothing, through which derivatives flow
    return gather(_part(x, index.shape, axis, "gather"), index, axis)


@public("take_along_dim", source="PyTorch", aliases=("take_along_axis",))
def take_along_dim(x: Node, indices: Node, dim: int | None = None) -> Node:
    """The elements at `indices` along a dimension, the other dimensions broadcast; without `dim`
    from the flattened tensor. Negative indices count from the end.

    >>> Tensor([[3, 1, 2]]).take_along_dim(Tensor([[1, 2, 0]]), 1)
    Tensor([[1, 2, 3]])
    """
    if dim is None:
        flat = reshape(x, (shapes.total(x.shape),))
        return take_along_dim(flat, reshape(indices, (shapes.total(indices.shape),)), 0)
    axis = normalize_axis(dim, len(x.shape))
    if len(indices.shape) != len(x.shape):
        raise ValueError(
            f"take_along_dim: indices of shape {text(indices.shape)} for a tensor of shape "
            f"{text(x.shape)}: give as many dimensions"
        )
    size, count = x.shape[axis], indices.shape[axis]
    before, after = slice(0, axis), slice(axis + 1, None)
    one = (1,)
    common = broadcast_shapes(
        x.shape[before] + one + x.shape[after],
        indices.shape[before] + one + indices.shape[after],
        name="take_along_dim",
    )
    stretched = expand(x, (*common[before], size, *common[after]))
    places = where(lt(indices, 0), add(indices, size), indices)
    return gather(stretched, expand(places, (*common[before], count, *common[after])), axis)


@public("index_select", source="PyTorch")
def index_select(x: Node, dim: int, index: Node) -> Node:
    """The slices of `x` that a 1-d (or 0-d) index names along a dimension.

    >>> Tensor([[1, 2], [3, 4]]).index_select(1, Tensor([1, 1, 0]))
    Tensor([[2, 2, 1],
            [4, 4, 3]])
    """
    if len(index.shape) > 1:
        raise ValueError(f"index_select: the index is 1-d, not of shape {text(index.shape)}")
    axis = normalize_axis(dim, len(x.shape))
    if not x.shape:
        return reshape(gather(reshape(x, (1,)), reshape(index, (1,)), 0), ())
    count = shapes.total(index.shape)
    column = reshape(index, (count,) + (1,) * (len(x.shape) - axis - 1))
    return gather(x, expand(column, (*x.shape[:axis], count, *x.shape[axis + 1 :])), axis)


# PyTorch's word -> the monoid
_COMBINED = {"add": "add", "multiply": "mul"}


@public("scatter", source="PyTorch")
def scatter_method(
    x: Node,
    dim: int,
    index: Node,
    src: Operand = None,
    *,
    value: Operand = None,
    reduce: Any = None,
) -> Node:
    """x with x[i][index[i][j][k]][k] = src[i][j][k], for dim=1; `src` may be a number (or named
    `value`). reduce="add" or "multiply" combines instead. The index is no larger than `src`, nor
    than x outside `dim`; where it names an element twice the later value stays.

    >>> Tensor.zeros(3).scatter(0, Tensor([2, 0]), Tensor([5.0, 6.0]))
    Tensor([6., 0., 5.])
    """
    source = value if src is None else src
    if source is None or (src is not None and value is not None):
        raise TypeError("scatter: give either src or value")
    if reduce is not None and reduce not in _COMBINED:
        raise ValueError(f"scatter: reduce is None, 'add' or 'multiply', not {reduce!r}")
    return scattered(
        x, dim, index, source, "set" if reduce is None else _COMBINED[reduce], "scatter"
    )


@public("scatter_add", source="PyTorch")
def scatter_add(x: Node, dim: int, index: Node, src: Operand) -> Node:
    """x with src[i][j][k] added to x[i][index[i][j][k]][k], for dim=1, in order. The index is no
    larger than `src`, nor than x outside `dim`.

    >>> Tensor.zeros(3).scatter_add(0, Tensor([2, 2]), Tensor([5.0, 6.0]))
    Tensor([ 0.,  0., 11.])
    """
    return scattered(x, dim, index, src, "add", "scatter_add")


def scattered(
    x: Node,
    dim: int,
    index: Node,
    source: Operand,
    monoid: str,
    name: str,
    instead: Node | None = None,
) -> Node:
    """x with the values of a source combined into it. instead: of shape (), what they meet in the
    place of x's own values."""
    axis = normalize_axis(dim, len(x.shape))
    if not x.shape and len(index.shape) < 2:  # a 0-d tensor stands for one of one element
        if isinstance(source, Node):
            source = reshape(source, (1,))
        index = reshape(index, (1,))
        return reshape(scattered(reshape(x, (1,)), 0, index, source, monoid, name, instead), ())
    if not isinstance(source, Node) or not source.shape:
        number = source if isinstance(source, Node) else const(source, x.dtype)
        source = expand(number, index.shape)
    if source.dtype is not x.dtype:
        raise TypeError(
            f"{name}: src is {source.dtype} and the tensor is {x.dtype}; cast one of them"
        )
    values = _part(source, index.shape, None, name)
    base = _part(x, index.shape, axis, name)
    if instead is not None:
        base = scatter(base, index, expand(instead, index.shape), axis)
    written = scatter(base, index, values, axis, monoid)
    return update(x, written, [(0, 1)] * len(x.shape))
