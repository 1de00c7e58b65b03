"""Matrices made from diagonals and blocks, parts put back into a tensor, indices of triangles."""

from __future__ import annotations

from typing import Any

from treadle.graph import shapes
from treadle.graph.arranging import ravel, slot
from treadle.graph.build import (
    alu,
    cast,
    const,
    expand,
    iota,
    normalize_axis,
    pad,
    reshape,
    update,
    where,
)
from treadle.graph.elementwise import add, eq
from treadle.graph.indexing import setitem
from treadle.graph.masks import coordinates, places, ranks
from treadle.graph.movement import diagonal as diagonal_of
from treadle.graph.movement import listed, movedim, on_or_below, stack
from treadle.graph.public import public
from treadle.graph.shapes import Dim, as_dim, check_sizes, text
from treadle.ir import ops
from treadle.ir.dtype import DType, float32, int64, promote
from treadle.ir.node import Node


# ---- diagonals -----------------------------------------------------------------------------------
@public("diag_embed", source="PyTorch")
def diag_embed(x: Node, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Node:
    """Matrices, in the dimensions dim1 and dim2 of the result, with the last dimension of x on a
    diagonal (offset > 0: above the main one) and 0 elsewhere.

    >>> Tensor([1, 2]).diag_embed()
    Tensor([[1, 0],
            [0, 2]])
    """
    if not x.shape:
        raise ValueError("diag_embed: a 0-d tensor has no dimension to put on a diagonal")
    rank = len(x.shape) + 1
    rows, columns = normalize_axis(dim1, rank, "dim1"), normalize_axis(dim2, rank, "dim2")
    if rows == columns:
        raise ValueError(f"diag_embed: dim1 and dim2 are both dimension {rows}")
    length, before = x.shape[-1], x.shape[:-1]
    square = expand(reshape(x, (*before, length, 1)), (*before, length, length))
    main = eq(reshape(iota(length, int64), (length, 1)), iota(length, int64))
    square = where(main, square, const(0, x.dtype))
    offset = shapes.as_int(offset, "offset")
    down, right = max(0, -offset), max(0, offset)
    keep: list[tuple[Dim, Dim]] = [(0, 0)] * len(before)
    square = pad(square, [*keep, (down, right), (right, down)])
    return movedim(square, (rank - 2, rank - 1), (rows, columns))


@public("diag", source="PyTorch")
def diag(x: Node, diagonal: int = 0) -> Node:
    """Of a vector the matrix with it on a diagonal; of a matrix that diagonal.

    >>> Tensor([[1, 2], [3, 4]]).diag()
    Tensor([1, 4])
    """
    diagonal = shapes.as_int(diagonal, "diagonal")
    if len(x.shape) == 1:
        return diag_embed(x, diagonal)
    if len(x.shape) != 2:
        raise ValueError(f"diag is for one or two dimensions, not for shape {text(x.shape)}")
    return diagonal_of(x, diagonal)


@public("diagflat", source="PyTorch")
def diagflat(x: Node, offset: int = 0) -> Node:
    """The matrix with all elements on a diagonal.

    >>> Tensor([1, 2]).diagflat()
    Tensor([[1, 0],
            [0, 2]])
    """
    return diag_embed(ravel(x), offset)


@public("block_diag", source="PyTorch")
def block_diag(*tensors: Any) -> Node:
    """The matrix with the given matrices along its diagonal; a vector is a row.

    >>> Tensor.block_diag(Tensor([[1, 2]]), Tensor(3))
    Tensor([[1, 2, 0],
            [0, 0, 3]])
    """
    parts, _ = listed(tensors, None, "block_diag")
    wrong = next((part for part in parts if len(part.shape) > 2), None)
    if wrong is not None:
        raise ValueError(f"block_diag takes matrices, not a tensor of shape {text(wrong.shape)}")
    blocks = [reshape(part, (1,) * (2 - len(part.shape)) + part.shape) for part in parts]
    dtype = blocks[0].dtype
    for block in blocks:
        dtype = promote(dtype, block.dtype)
    height: Dim = 0
    width: Dim = 0
    for block in blocks:
        height = shapes.add(height, block.shape[0])
        width = shapes.add(width, block.shape[1])
    result = const(0, dtype, (height, width))
    row: Dim = 0
    column: Dim = 0
    for block in blocks:
        result = update(result, cast(block, dtype), [(row, 1), (column, 1)])
        row = shapes.add(row, block.shape[0])
        column = shapes.add(column, block.shape[1])
    return result


# ---- a part put back -----------------------------------------------------------------------------
def _same_part(name: str, src: Node, x: Node, wanted: tuple[Dim, ...]) -> Node:
    if not shapes.same_shape(src.shape, wanted):
        raise ValueError(f"{name}: src has shape {text(src.shape)}, the part {text(wanted)}")
    return cast(src, x.dtype)


@public("diagonal_scatter", source="PyTorch")
def diagonal_scatter(x: Node, src: Node, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Node:
    """x with `src` in the place of its `diagonal`.

    >>> Tensor.zeros(2, 2).diagonal_scatter(Tensor([1.0, 2.0]))
    Tensor([[1., 0.],
            [0., 2.]])
    """
    rank = len(x.shape)
    src = _same_part("diagonal_scatter", src, x, diagonal_of(x, offset, dim1, dim2).shape)
    rows, columns = normalize_axis(dim1, rank), normalize_axis(dim2, rank)
    moved = movedim(x, (rows, columns), (rank - 2, rank - 1))
    height, width = moved.shape[-2:]
    row = reshape(iota(height, int64), (height, 1))
    here = eq(iota(width, int64), add(row, offset))
    down = 0 if src.shape[-1] == 0 else max(0, -offset)
    rest = shapes.subtract(shapes.subtract(height, down), src.shape[-1])
    column = pad(src, [*[(0, 0)] * (rank - 2), (down, rest)])  # element i, for row i
    wide = expand(reshape(column, (*column.shape, 1)), moved.shape)
    return movedim(where(here, wide, moved), (rank - 2, rank - 1), (rows, columns))


@public("select_scatter", source="PyTorch")
def select_scatter(x: Node, src: Node, dim: int, index: int) -> Node:
    """x with `src` in the place of the slice at an index along a dimension.

    >>> Tensor.zeros(2, 2).select_scatter(Tensor([1.0, 2.0]), 0, 1)
    Tensor([[0., 0.],
            [1., 2.]])
    """
    axis, place = slot(x, dim, index, "select_scatter")
    left = (*x.shape[:axis], *x.shape[axis + 1 :])
    src = _same_part("select_scatter", src, x, left)
    region: list[tuple[Dim, int]] = [(0, 1)] * len(x.shape)
    region[axis] = (place, 1)
    return update(x, reshape(src, (*x.shape[:axis], 1, *x.shape[axis + 1 :])), region)


@public("slice_scatter", source="PyTorch")
def slice_scatter(
    x: Node,
    src: Node,
    dim: int = 0,
    start: Dim | None = None,
    end: Dim | None = None,
    step: int = 1,
) -> Node:
    """x with `src` in the place of the elements start:end:step along a dimension.

    >>> Tensor.zeros(4).slice_scatter(Tensor([1.0, 2.0]), start=1, end=3)
    Tensor([0., 1., 2., 0.])
    """
    axis = normalize_axis(dim, len(x.shape))
    size = x.shape[axis]
    if isinstance(size, int):
        count = len(range(*slice(start, end, step).indices(size)))
        src = _same_part("slice_scatter", src, x, (*x.shape[:axis], count, *x.shape[axis + 1 :]))
    return setitem(x, (*[slice(None)] * axis, slice(start, end, step)), src)


# ---- triangles -----------------------------------------------------------------------------------
@public("tri", source="tinygrad", kind="creates")
def tri(r: Any, c: Any = None, diagonal: int = 0, *, dtype: DType | None = None) -> Node:
    """A matrix of r rows and c columns (r unless given): 1 on and below a diagonal, 0 above.

    >>> Tensor.tri(2, 3)
    Tensor([[1., 0., 0.],
            [1., 1., 0.]])
    """
    height, width = check_sizes((as_dim(r), as_dim(r if c is None else c)), "tri")
    below = on_or_below(height, width, shapes.as_int(diagonal, "diagonal"))
    return cast(below, dtype or float32)


def _indices(name: str, lower: bool, text_: str) -> None:
    def function(row: int, col: int, offset: int = 0, *, dtype: DType | None = None) -> Node:
        row, col = shapes.as_int(row, "row"), shapes.as_int(col, "col")
        offset = shapes.as_int(offset, "offset")
        height, width = check_sizes((row, col), name)
        ends = [min(max(number + offset + lower, 0), col) for number in range(row)]
        count = sum(ends) if lower else row * col - sum(ends)
        below = on_or_below(height, width, offset if lower else offset - 1)
        mask = ravel(below if lower else alu(ops.NOT, below))
        found = coordinates(places(mask, ranks(mask), count), (height, width))
        return cast(stack(found, dim=0), dtype or int64)

    function.__doc__ = (
        f"The indices of the elements on and {text_} a diagonal of a matrix of `row` rows and "
        "`col` columns: a row of row numbers, and a row of column numbers, int64."
    )
    public(name, source="PyTorch", kind="creates", gradient="int")(function)


_indices("tril_indices", True, "below")
_indices("triu_indices", False, "above")
