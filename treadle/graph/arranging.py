"""More functions that move elements: joining by rows and columns, splitting, views of a part.

All are made of those in `movement.py`; nothing is copied by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from treadle.graph import shapes
from treadle.graph.build import (
    broadcast,
    cast,
    dim_value,
    expand,
    flip,
    iota,
    normalize_axis,
    pad,
    permute,
    reshape,
    where,
    window,
)
from treadle.graph.elementwise import add, lt
from treadle.graph.masks import Read
from treadle.graph.movement import cat, listed, narrow, split, stack, transpose, unbind
from treadle.graph.public import public
from treadle.graph.reduction import sum_
from treadle.graph.selection import index_select
from treadle.graph.shapes import Dim, text
from treadle.ir.dtype import int64
from treadle.ir.node import Node


# ---- at least so many dimensions -----------------------------------------------------------------
def _with_one(x: Node) -> Node:
    return x if x.shape else reshape(x, (1,))


def _with_two(x: Node) -> Node:
    return x if len(x.shape) > 1 else reshape(x, (1, *_with_one(x).shape))


def _with_three(x: Node) -> Node:
    x = _with_two(x)
    return x if len(x.shape) > 2 else reshape(x, (*x.shape, 1))


def _at_least(name: str, widen: Callable[[Node], Node], text_: str) -> None:
    def function(*tensors: Any) -> Any:
        parts, _ = listed(tensors, None, name)
        found = tuple([widen(part) for part in parts])
        return found[0] if len(tensors) == 1 and isinstance(tensors[0], Node) else found

    function.__doc__ = f"{text_} Several tensors give a tuple of results."
    public(name, source="PyTorch")(function)


_at_least("atleast_1d", _with_one, "With one dimension or more: a 0-d tensor becomes 1-d.")
_at_least("atleast_2d", _with_two, "With two dimensions or more: new ones stand in front.")
_at_least(
    "atleast_3d",
    _with_three,
    "With three dimensions or more: of a matrix, the new one is the last.",
)


# ---- joining -------------------------------------------------------------------------------------
@public("hstack", source="PyTorch")
def hstack(*tensors: Any) -> Node:
    """Tensors joined along their second dimension, those of one dimension along it.

    >>> Tensor.hstack([Tensor([1, 2]), Tensor([3])])
    Tensor([1, 2, 3])
    """
    parts, _ = listed(tensors, None, "hstack")
    parts = [_with_one(part) for part in parts]
    return cat(parts, dim=0 if len(parts[0].shape) == 1 else 1)


@public("vstack", source="PyTorch", aliases=("row_stack",))
def vstack(*tensors: Any) -> Node:
    """Tensors joined along their first dimension, those of one dimension as rows.

    >>> Tensor.vstack([Tensor([1, 2]), Tensor([3, 4])])
    Tensor([[1, 2],
            [3, 4]])
    """
    parts, _ = listed(tensors, None, "vstack")
    return cat([_with_two(part) for part in parts], dim=0)


@public("dstack", source="PyTorch")
def dstack(*tensors: Any) -> Node:
    """Tensors joined along their third dimension, after `atleast_3d`.

    >>> Tensor([1, 2]).dstack(Tensor([3, 4]))
    Tensor([[[1, 3],
             [2, 4]]])
    """
    parts, _ = listed(tensors, None, "dstack")
    return cat([_with_three(part) for part in parts], dim=2)


@public("column_stack", source="PyTorch")
def column_stack(*tensors: Any) -> Node:
    """Tensors of one dimension (or none) as columns, joined with the columns of matrices.

    >>> Tensor.column_stack([Tensor([1, 2]), Tensor([3, 4])])
    Tensor([[1, 3],
            [2, 4]])
    """
    parts, _ = listed(tensors, None, "column_stack")
    columns = [
        part if len(part.shape) > 1 else reshape(part, (shapes.total(part.shape), 1))
        for part in parts
    ]
    return cat(columns, dim=1)


# ---- splitting -----------------------------------------------------------------------------------
@public("tensor_split", source="PyTorch", kind="reads")
def tensor_split(
    x: Node, indices_or_sections: Any, dim: int = 0, *, read: Read
) -> tuple[Node, ...]:
    """Parts along a dimension: `indices_or_sections` of them, the first of one element more where
    that does not divide; or parts that end where a list of indices says. A tensor that says it is
    read.

    >>> Tensor([1, 2, 3]).tensor_split(2)
    (Tensor([1, 2]), Tensor([3]))
    """
    parts = indices_or_sections
    if isinstance(parts, Node):
        if not parts.dtype.is_int or len(parts.shape) > 1:
            raise TypeError(
                "tensor_split: the parts are decided by an integer, or by 1-d integers, not by "
                f"{parts.dtype} of shape {text(parts.shape)}"
            )
        numbers = unbind(parts) if parts.shape else (parts,)
        ends = [read("tensor_split, which a tensor decides,", number)[0] for number in numbers]
        parts = ends if parts.shape else ends[0]
    return _split_at(x, parts, dim, "tensor_split")


def _split_at(x: Node, parts: Any, dim: int, name: str) -> tuple[Node, ...]:
    if not x.shape:
        raise ValueError(f"{name}: a 0-d tensor has no dimension to divide")
    axis = normalize_axis(dim, len(x.shape))
    size = x.shape[axis]
    if not isinstance(size, int):
        raise ValueError(f"{name}: the dimension's size is not known: take parts with slices")
    if isinstance(parts, (tuple, list)):
        bounds = [slice(shapes.as_int(end, "an index")).indices(size)[1] for end in parts]
        ends = [*bounds, size]
        return tuple([narrow(x, axis, a, max(a, b)) for a, b in zip([0, *bounds], ends)])
    count = shapes.as_int(parts, "the number of sections")
    if count < 1:
        raise ValueError(f"{name}: the number of sections must be 1 or more, not {count}")
    least, longer = divmod(size, count)
    return split(x, [least + (part < longer) for part in range(count)], axis)


def _split_along(name: str, rank: int, axis: int, text_: str) -> None:
    def function(x: Node, indices_or_sections: Any) -> tuple[Node, ...]:
        if len(x.shape) < rank:
            raise ValueError(
                f"{name} needs {rank} dimensions or more, not the shape {text(x.shape)}"
            )
        at = 0 if name == "hsplit" and len(x.shape) == 1 else axis
        size = x.shape[at]
        sections = indices_or_sections
        if isinstance(sections, int) and isinstance(size, int) and sections and size % sections:
            raise ValueError(f"{name}: {sections} does not divide the size {size}")
        return _split_at(x, sections, at, name)

    function.__doc__ = (
        f"Parts along the {text_} dimension: so many equal ones, or ending at a list of indices."
    )
    public(name, source="PyTorch")(function)


_split_along("hsplit", 1, 1, "second (of one dimension: the first)")
_split_along("vsplit", 2, 0, "first")
_split_along("dsplit", 3, 2, "third")


@public("split_with_sizes", source="PyTorch")
def split_with_sizes(x: Node, split_sizes: Sequence[int], dim: int = 0) -> tuple[Node, ...]:
    """Parts of the given sizes along a dimension, which add up to it.

    >>> Tensor([1, 2, 3]).split_with_sizes([1, 2])
    (Tensor([1]), Tensor([2, 3]))
    """
    return split(x, list(split_sizes), dim)


# ---- a part, or another shape --------------------------------------------------------------------
@public("narrow", source="PyTorch")
def narrow_method(x: Node, dim: int, start: Any, length: Dim) -> Node:
    """`length` elements from `start` on along a dimension; a start below 0 counts from the end. The
    start may be a tensor of shape (), which is not read: an IndexError when it runs if it is wrong.

    >>> Tensor([1, 2, 3, 4]).narrow(0, 1, 2)
    Tensor([2, 3])
    """
    if not x.shape:
        raise ValueError("narrow: a 0-d tensor has no dimension to take a part of")
    axis = normalize_axis(dim, len(x.shape))
    size = x.shape[axis]
    if isinstance(start, Node):
        if start.shape or not start.dtype.is_int:
            raise TypeError(f"narrow: start is an integer of shape (), not {shapes.words(start)}")
        begin = cast(start, int64)
        begin = where(lt(begin, 0), add(begin, dim_value(size, int64)), begin)
        return index_select(x, axis, add(begin, iota(length, int64)))
    first = shapes.as_dim(start)
    if isinstance(first, int) and first < 0:
        first = shapes.add(size, first)
    stop = shapes.add(first, shapes.as_dim(length))
    if shapes.at_most(stop, size) is not True or shapes.at_most(0, first) is not True:
        raise IndexError(
            f"narrow: {shapes.dim_text(length)} elements from {start} on do not lie within "
            f"dimension {axis} of {text(x.shape)}"
        )
    return narrow(x, axis, first, stop)


@public("select", source="PyTorch")
def select(x: Node, dim: int, index: int) -> Node:
    """The slice at an index along a dimension, without it; below 0 it counts from the end.

    >>> Tensor([[1, 2], [3, 4]]).select(1, 0)
    Tensor([1, 3])
    """
    axis, place = slot(x, dim, index, "select")
    return reshape(
        narrow(x, axis, place, shapes.add(place, 1)), (*x.shape[:axis], *x.shape[axis + 1 :])
    )


def slot(x: Node, dim: int, index: int, name: str) -> tuple[int, Dim]:
    """The axis and a place in it. IndexError if there is none."""
    if not x.shape:
        raise IndexError(f"{name}: a 0-d tensor has no dimension to choose from")
    axis = normalize_axis(dim, len(x.shape))
    number = shapes.as_int(index, "the index")
    size = x.shape[axis]
    place = number if number >= 0 else shapes.add(size, number)
    if shapes.at_most(0, place) is False or shapes.at_most(size, place) is True:
        raise IndexError(f"{name}: index {index} is out of range for size {shapes.dim_text(size)}")
    return axis, place


@public("view_as", source="PyTorch", aliases=("reshape_as",))
def view_as(x: Node, other: Node) -> Node:
    """The elements in the shape of `other`.

    >>> Tensor([1, 2, 3, 4]).view_as(Tensor.ones(2, 2))
    Tensor([[1, 2],
            [3, 4]])
    """
    return reshape(x, other.shape)


@public("ravel", source="PyTorch")
def ravel(x: Node) -> Node:
    """All elements in one dimension.

    >>> Tensor([[1, 2], [3, 4]]).ravel()
    Tensor([1, 2, 3, 4])
    """
    return reshape(x, (shapes.total(x.shape),))


@public("t", source="PyTorch")
def t(x: Node) -> Node:
    """The transpose of a matrix; a vector or a number as it is.

    >>> Tensor([[1, 2, 3], [4, 5, 6]]).t()
    Tensor([[1, 4],
            [2, 5],
            [3, 6]])
    """
    if len(x.shape) > 2:
        raise ValueError(f"t is for two dimensions at most, not the shape {text(x.shape)}: use mT")
    return permute(x, range(len(x.shape))[::-1])


@public("swapdims", source="PyTorch")
def swapdims(x: Node, dim0: int, dim1: int) -> Node:
    """Two dimensions exchanged.

    >>> Tensor.ones(2, 3, 4).swapdims(0, 2).shape
    (4, 3, 2)
    """
    return transpose(x, dim0, dim1)


@public("sum_to_size", source="PyTorch")
def sum_to_size(x: Node, *size: Any) -> Node:
    """Summed over the dimensions that broadcasting from `size` would have stretched; to () always
    as `sum` does it, in whose dtype the result then is.

    >>> Tensor.ones(3, 2).sum_to_size(1, 2)
    Tensor([[3., 3.]])
    """
    wanted = shapes.as_shape(*size)
    missing = len(x.shape) - len(wanted)
    if missing < 0 or shapes.broadcast_shapes(wanted, x.shape) != x.shape:
        raise ValueError(f"sum_to_size: {text(wanted)} does not broadcast to {text(x.shape)}")
    stretched = enumerate(zip(x.shape, (1,) * missing + wanted))
    axes = [axis for axis, (have, want) in stretched if axis < missing or have != want]
    return reshape(sum_(x, axes), wanted) if axes or not wanted else x


@public("unfold", source="PyTorch")
def unfold(x: Node, dimension: int, size: int, step: int) -> Node:
    """All windows of `size` elements along a dimension, `step` apart; the elements of a window are
    the new last dimension.

    >>> Tensor([1, 2, 3, 4]).unfold(0, 2, 1)
    Tensor([[1, 2],
            [2, 3],
            [3, 4]])
    """
    size, step = shapes.as_int(size, "size"), shapes.as_int(step, "step")
    if step < 1 or size < 0:
        raise ValueError(f"unfold: size is 0 or more and step 1 or more, not {size} and {step}")
    axis = normalize_axis(dimension, len(x.shape))
    flat = x if x.shape else reshape(x, (1,))
    length = flat.shape[axis]
    if shapes.at_most(size, length) is not True:
        raise ValueError(
            f"unfold: windows of {size} do not fit a dimension of {shapes.dim_text(length)}"
        )
    if size == 0:
        windows = shapes.add(shapes.divide(length, step), 1)
        shape = (*flat.shape[:axis], windows, *flat.shape[axis + 1 :])
        empty = narrow(reshape(flat, (*flat.shape, 1)), len(flat.shape), 0, 0)
        found = expand(narrow(empty, axis, 0, 1), (*shape, 0))
    else:
        found = window(flat, axis, size, step)
        order = [n for n in range(len(found.shape)) if n != axis + 1]
        found = permute(found, [*order, axis + 1])
    return found if x.shape else reshape(found, found.shape[1:])


# ---- order ---------------------------------------------------------------------------------------
@public("fliplr", source="PyTorch")
def fliplr(x: Node) -> Node:
    """In reverse order along the second dimension.

    >>> Tensor([[1, 2], [3, 4]]).fliplr()
    Tensor([[2, 1],
            [4, 3]])
    """
    if len(x.shape) < 2:
        raise ValueError(f"fliplr needs two dimensions or more, not the shape {text(x.shape)}")
    return flip(x, 1)


@public("flipud", source="PyTorch")
def flipud(x: Node) -> Node:
    """In reverse order along the first dimension.

    >>> Tensor([[1, 2], [3, 4]]).flipud()
    Tensor([[3, 4],
            [1, 2]])
    """
    if not x.shape:
        raise ValueError("flipud: a 0-d tensor has no dimension to reverse")
    return flip(x, 0)


@public("rot90", source="PyTorch")
def rot90(x: Node, k: int = 1, dims: Sequence[int] = (0, 1)) -> Node:
    """Turned k times by 90 degrees in the plane of two dimensions, from the first towards the
    second.

    >>> Tensor([[1, 2], [3, 4]]).rot90()
    Tensor([[2, 4],
            [1, 3]])
    """
    if len(dims) != 2:
        raise ValueError(f"rot90: dims names two dimensions, not {len(dims)}")
    first, second = (normalize_axis(dim, len(x.shape), "dims") for dim in dims)
    if first == second:
        raise ValueError(f"rot90: dims names dimension {first} twice")
    turns = shapes.as_int(k, "k") % 4
    if turns == 2:
        return flip(x, (first, second))
    if turns == 1:
        return transpose(flip(x, second), first, second)
    return flip(transpose(x, first, second), second) if turns else x


# ---- to a size --------- -------------------------------------------------------------------------
@public("pad_to", source="tinygrad")
def pad_to(x: Node, *shape: Any) -> Node:
    """With zeros added at the ends of dimensions up to a shape; None keeps a size.

    >>> Tensor([1, 2]).pad_to(4)
    Tensor([1, 2, 0, 0])
    """
    wanted = _sizes(x, shape, "pad_to")
    return pad(x, [(0, shapes.subtract(new, old)) for new, old in zip(wanted, x.shape)])


@public("shrink_to", source="tinygrad")
def shrink_to(x: Node, *shape: Any) -> Node:
    """The first elements of each dimension, of a shape; None keeps a size.

    >>> Tensor([1, 2, 3]).shrink_to(2)
    Tensor([1, 2])
    """
    wanted = _sizes(x, shape, "shrink_to")
    for axis, size in enumerate(wanted):
        x = narrow(x, axis, 0, size)
    return x


def _sizes(x: Node, shape: tuple[Any, ...], name: str) -> tuple[Dim, ...]:
    given = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
    if len(given) != len(x.shape):
        raise ValueError(f"{name}: {len(given)} sizes for a tensor of {len(x.shape)} dimensions")
    return tuple([old if new is None else shapes.as_dim(new) for new, old in zip(given, x.shape)])


# ---- several tensors -----------------------------------------------------------------------------
@public("broadcast_tensors", source="PyTorch")
def broadcast_tensors(*tensors: Any) -> tuple[Node, ...]:
    """The tensors stretched to their common shape.

    >>> [x.shape for x in Tensor.broadcast_tensors(Tensor.ones(3, 1), Tensor.ones(4))]
    [(3, 4), (3, 4)]
    """
    parts, _ = listed(tensors, None, "broadcast_tensors")
    return tuple(broadcast(*parts, name="broadcast_tensors"))


@public("broadcast_arrays", source="Array API", method=False, namespace=True)
def broadcast_arrays(*arrays: Any) -> list[Node]:
    """The arrays stretched to their common shape.

    >>> [x.shape for x in treadle.broadcast_arrays(Tensor.ones(3, 1), Tensor.ones(4))]
    [(3, 4), (3, 4)]
    """
    return list(broadcast_tensors(*arrays))


@public("meshgrid", source="PyTorch")
def meshgrid(*tensors: Any, indexing: str = "ij") -> tuple[Node, ...]:
    """The coordinates of a grid: for each tensor of one dimension (or none) its numbers along a
    dimension of its own. indexing="xy" exchanges the first two dimensions.

    >>> Tensor([1, 2]).meshgrid(Tensor([3]))
    (Tensor([[1],
            [2]]), Tensor([[3],
            [3]]))
    """
    parts, _ = listed(tensors, None, "meshgrid")
    if indexing not in ("ij", "xy"):
        raise ValueError(f"meshgrid: indexing is 'ij' or 'xy', not {indexing!r}")
    wrong = next((part for part in parts if len(part.shape) > 1), None)
    if wrong is not None:
        raise ValueError(f"meshgrid takes 1-d tensors, not one of shape {text(wrong.shape)}")
    sizes = tuple([shapes.total(part.shape) for part in parts])
    grids = []
    for axis, part in enumerate(parts):
        column = (1,) * axis + (sizes[axis],) + (1,) * (len(parts) - axis - 1)
        grids.append(expand(reshape(part, column), sizes))
    if indexing == "xy" and len(parts) > 1:
        grids = [transpose(grid, 0, 1) for grid in grids]
    return tuple(grids)


@public("meshgrid", source="Array API", method=False, namespace=True)
def meshgrid_of_standard(*arrays: Any, indexing: str = "xy") -> list[Node]:
    """The coordinates of a grid, as the method gives them, but indexing="xy" unless given.

    >>> treadle.meshgrid(Tensor([1, 2, 3]), Tensor([4, 5]))[0]
    Tensor([[1, 2, 3],
            [1, 2, 3]])
    """
    return list(meshgrid(*arrays, indexing=indexing))


@public("cartesian_prod", source="PyTorch")
def cartesian_prod(*tensors: Any) -> Node:
    """All combinations of one element of each tensor of one dimension, a row for each.

    >>> Tensor.cartesian_prod(Tensor([1, 2]), Tensor([3, 4]))
    Tensor([[1, 3],
            [1, 4],
            [2, 3],
            [2, 4]])
    """
    parts, _ = listed(tensors, None, "cartesian_prod")
    if len(parts) == 1:
        return parts[0]
    return stack([ravel(grid) for grid in meshgrid(parts)], dim=1)
