"""Reading and writing parts of a tensor: `x[...]` as NumPy defines it.

An index is a tuple of ints, slices with any step, None, Ellipsis, and tensors of ints. Its *basic*
part (ints and slices: a region of each dimension) becomes movement to read and UPDATE to write; the
tensors together become one GATHER or SCATTER along one dimension. Ints below 0 count from the end,
in tensors too; one that is out of range is an IndexError, also when the program runs.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from treadle.graph import shapes
from treadle.graph.build import (
    Operand,
    broadcast,
    cast,
    const,
    dim_value,
    expand,
    flip,
    gather,
    permute,
    reshape,
    scatter,
    shrink,
    update,
    where,
    window_pair,
)
from treadle.graph.elementwise import add, ge, logical_and, lt, minimum, mul
from treadle.graph.shapes import Dim, at_most, dim_text, text
from treadle.ir.dtype import bool_, int64, uint64
from treadle.ir.dtype import index as INDEX
from treadle.ir.node import Node, Shape

WHOLE = slice(None)


# ---- what an index says --------------------------------------------------------------------------
@dataclass(frozen=True)
class Region:
    """The elements low, low + step .. (count of them) of a dimension, perhaps in reverse order; a
    dimension that an int selects is dropped from the result."""

    low: Dim
    step: int
    count: Dim
    reverse: bool = False
    dropped: bool = False


@dataclass(frozen=True)
class Selection:
    """An index, understood.

    regions: one per dimension of the tensor (a dimension with a tensor has all of it).
    kept: the result's dimensions before the tensors apply: the number of a dimension of the
    tensor, or None for a new one. tensors: (place in `kept`, indices), in order.
    front: whether the tensors' common shape goes to the front of the result, which it does where a
    slice or None stands between them (NumPy's rule, in which ints count as tensors).
    """

    regions: tuple[Region, ...]
    kept: tuple[int | None, ...]
    tensors: tuple[tuple[int, Node], ...]
    front: bool


def _as_tuple(index: Any) -> tuple[Any, ...]:
    return index if isinstance(index, tuple) else (index,)


def _spread_ellipsis(index: tuple[Any, ...], rank: int) -> list[Any]:
    """The index with one item per dimension (and None for new ones): Ellipsis, or the end, stands
    for whole dimensions. IndexError if there are too many items."""
    used = 0
    for item in index:
        used += len(item.shape) if _is_mask(item) else item is not None and item is not Ellipsis
    if used > rank:
        raise IndexError(f"an index of {used} dimensions is too long for a {rank}-d tensor")
    dots = [place for place, item in enumerate(index) if item is Ellipsis]
    if len(dots) > 1:
        raise IndexError("an index can have only one '...'")
    at = dots[0] if dots else len(index)
    return [*index[:at], *[WHOLE] * (rank - used), *index[at + 1 :]]


def _is_mask(item: Any) -> bool:
    return isinstance(item, Node) and item.dtype is bool_


def _understand(shape: Shape, index: Any) -> Selection:
    """The index for a tensor of a shape. IndexError and TypeError in the user's words."""
    regions: list[Region] = []
    kept: list[int | None] = []
    tensors: list[tuple[int, Node]] = []
    places: list[int] = []  # of ints and tensors in the index
    for place, item in enumerate(_spread_ellipsis(_as_tuple(index), len(shape))):
        if item is None:
            kept.append(None)
            continue
        axis = len(regions)
        size = shape[axis]
        if isinstance(item, slice):
            regions.append(_slice_region(item, size))
        elif isinstance(item, Node) and item.dtype is not INDEX:
            _check_index_tensor(item)
            regions.append(Region(0, 1, size))
            tensors.append((len(kept), item))
            places.append(place)
        else:
            regions.append(_int_region(item, size, axis))
            places.append(place)
            continue
        kept.append(axis)
    apart = bool(places) and places[-1] - places[0] + 1 != len(places)
    return Selection(tuple(regions), tuple(kept), tuple(tensors), bool(tensors) and apart)


def _check_index_tensor(item: Node) -> None:
    if item.dtype is bool_:
        raise IndexError(
            "a bool mask selects a number of elements that is known only after the program has "
            "run; this needs masked_select, which is not there yet: use where(mask, x, other)"
        )
    if not item.dtype.is_int:
        raise IndexError(f"a tensor used as an index must be of integers, not {item.dtype}")


def _int_region(item: Any, size: Dim, axis: int) -> Region:
    if isinstance(item, bool):
        raise IndexError("True and False are not indices; use 0 and 1, or None for a new dimension")
    try:
        number = shapes.as_dim(item)
    except TypeError:
        raise IndexError(
            f"an index is an int, a slice, None, '...' or a tensor of integers, not "
            f"{shapes.words(item)}"
        ) from None
    place = shapes.add(size, number) if at_most(number, -1) else number
    inside = at_most(0, place), at_most(shapes.add(place, 1), size)
    if inside != (True, True):
        what = f"out of range for dimension {axis} of size {dim_text(size)}"
        if False in inside or not isinstance(number, int):
            raise IndexError(f"index {dim_text(number)} is {what}")
        low, high = shapes.bounds(size)
        raise IndexError(
            f"index {number} may be {what}, which is between {low} and {high}: write "
            f"x[Tensor({number})], which is checked when it runs"
        )
    return Region(place, 1, 1, dropped=True)


def _slice_region(item: slice, size: Dim) -> Region:
    """A slice by Python's rule: bounds below 0 count from the end, and all are clamped."""
    try:
        step = 1 if item.step is None else operator.index(item.step)
        given = [None if b is None else shapes.as_dim(b) for b in (item.start, item.stop)]
    except TypeError:
        bounds = [shapes.words(b) for b in (item.start, item.stop, item.step) if b is not None]
        raise IndexError(
            f"the bounds of a slice are ints, not {' and '.join(bounds)}; of a tensor give .item()"
        ) from None
    if step == 0:
        raise ValueError("the step of a slice must not be 0")
    if step > 0:
        start = 0 if given[0] is None else _clamped(given[0], size, 0, size)
        stop = size if given[1] is None else _clamped(given[1], size, 0, size)
        count = shapes.divide_up(shapes.subtract(stop, start), step)
        count = shapes.greatest(0, count)
        return Region(0 if count == 0 else start, step, count)
    last = shapes.subtract(size, 1)
    start = last if given[0] is None else _clamped(given[0], size, -1, last)
    stop = -1 if given[1] is None else _clamped(given[1], size, -1, last)
    count = shapes.greatest(0, shapes.divide_up(shapes.subtract(start, stop), -step))
    reach = shapes.multiply(shapes.subtract(count, 1), -step)
    return Region(0 if count == 0 else shapes.subtract(start, reach), -step, count, reverse=True)


def _clamped(bound: Dim, size: Dim, low: Dim, high: Dim) -> Dim:
    """A bound of a slice, counted from the end if it is below 0, brought into [low, high]."""
    below = at_most(bound, -1)
    if below is None:
        raise IndexError(f"the bound {dim_text(bound)} of a slice may be below 0 or not")
    place = shapes.add(size, bound) if below else bound
    return shapes.greatest(low, shapes.least(place, high))


# ---- reading -------------------------------------------------------------------------------------
def getitem(x: Node, index: Any) -> Node:
    """`x[index]`."""
    selection = _understand(x.shape, index)
    part = _kept_dimensions(_take(x, selection.regions), selection)
    if not selection.tensors:
        return part
    merged, places, at, common = _merged(part, selection)
    rows = _flat_positions(merged.shape, places, at)
    found = gather(merged, rows, at)
    return reshape(found, (*merged.shape[:at], *common, *merged.shape[at + 1 :]))


def _take(x: Node, regions: Sequence[Region]) -> Node:
    """The regions of the dimensions, each a dimension of the result (an int's has size 1)."""
    bounds = []
    for region in regions:
        reach = shapes.add(shapes.multiply(shapes.subtract(region.count, 1), region.step), 1)
        bounds.append((region.low, shapes.add(region.low, 0 if region.count == 0 else reach)))
    x = shrink(x, bounds, inside=True)
    x = flip(x, [axis for axis, region in enumerate(regions) if region.reverse])
    for axis, region in enumerate(regions):
        if region.step > 1 and region.count != 0:
            x = _every(x, axis, region.step, region.count)
    return x


def _every(x: Node, axis: int, step: int, count: Dim) -> Node:
    """Every `step`-th element: windows of one element."""
    before, after = x.shape[:axis], x.shape[axis + 1 :]
    pair = reshape(x, (*before, x.shape[axis], 1, *after))
    return reshape(window_pair(pair, axis, count, step, 1), (*before, count, *after))


def _kept_dimensions(part: Node, selection: Selection) -> Node:
    """Without the dimensions of ints, with those of None."""
    return reshape(part, [1 if axis is None else part.shape[axis] for axis in selection.kept])


def _order(selection: Selection) -> tuple[list[int], int]:
    """The kept dimensions with those of the tensors side by side, where their common shape is to
    stand, and that place."""
    indexed = [place for place, _ in selection.tensors]
    others = [place for place in range(len(selection.kept)) if place not in indexed]
    at = 0 if selection.front else indexed[0]
    return [*others[:at], *indexed, *others[at:]], at


def _merged(part: Node, selection: Selection) -> tuple[Node, Node, int, Shape]:
    """The dimensions of the tensors merged into one, which one index can address.

    Returns that tensor, the flat index into the dimension, its number, and the common shape of the
    tensors. An index that is out of range in its own dimension becomes -1, which is so in the
    merged one.
    """
    sizes = [part.shape[place] for place, _ in selection.tensors]
    order, at = _order(selection)
    moved = permute(part, order)
    after = moved.shape[at + len(sizes) :]
    merged = reshape(moved, (*moved.shape[:at], shapes.total(sizes), *after))
    tensors = broadcast(
        *[_from_start(t, n) for (_, t), n in zip(selection.tensors, sizes)], name="index"
    )
    position = tensors[0]
    if len(tensors) > 1:
        inside = const(True, bool_)
        for tensor, size in zip(tensors, sizes):
            within = logical_and(ge(tensor, 0), lt(tensor, dim_value(size, int64)))
            inside = logical_and(inside, within)
        for tensor, size in zip(tensors[1:], sizes[1:]):
            position = add(mul(position, dim_value(size, int64)), tensor)
        position = where(inside, position, -1)
    return merged, position, at, position.shape


def _from_start(tensor: Node, size: Dim) -> Node:
    """Indices as int64, those below 0 counted from the end."""
    if tensor.dtype is uint64:
        tensor = minimum(tensor, 2**62)  # int64 would take more for numbers below 0
    tensor = cast(tensor, int64)
    return where(lt(tensor, 0), add(tensor, dim_value(size, int64)), tensor)


def _flat_positions(shape: Shape, position: Node, at: int) -> Node:
    """The positions, flat, along dimension `at`, for every element of the other dimensions."""
    count = shapes.total(position.shape)
    column = reshape(position, (*[1] * at, count, *[1] * (len(shape) - at - 1)))
    return expand(column, (*shape[:at], count, *shape[at + 1 :]))


# ---- writing -------------------------------------------------------------------------------------
def setitem(x: Node, index: Any, value: Operand) -> Node:
    """`x` with `value`, cast to its dtype and broadcast, at `index`: what `x[index] = value` puts
    into the cell. Where a tensor names an element more than once the last value stays."""
    items = _as_tuple(index)
    new = cast(value, x.dtype) if isinstance(value, Node) else const(value, x.dtype)
    if any(_is_mask(item) for item in items):
        return _set_mask(x, items, new)
    selection = _understand(x.shape, index)
    if not selection.tensors:
        return _put(x, selection, _fitted(new, _result_shape(selection)))
    part = _kept_dimensions(_take(x, selection.regions), selection)
    merged, places, at, common = _merged(part, selection)
    rows = _flat_positions(merged.shape, places, at)
    fitted = _fitted(new, (*merged.shape[:at], *common, *merged.shape[at + 1 :]))
    written = scatter(merged, rows, reshape(fitted, rows.shape), at)
    order, _ = _order(selection)
    moved = reshape(written, [part.shape[place] for place in order])
    return _put(x, selection, permute(moved, [order.index(place) for place in range(len(order))]))


def _result_shape(selection: Selection) -> Shape:
    """The shape that the basic part of an index selects."""
    counts = [region.count for region in selection.regions]
    return tuple([1 if axis is None else counts[axis] for axis in selection.kept])


def _fitted(value: Node, shape: Shape) -> Node:
    """A value broadcast to the shape of the place it is put into; leading 1s do not count."""
    have = value.shape
    while len(have) > len(shape) and have[0] == 1:
        have = have[1:]
    try:
        return expand(reshape(value, have), shape)
    except ValueError:
        raise ValueError(
            f"a value of shape {text(value.shape)} does not fit a place of shape {text(shape)}"
        ) from None


def _put(x: Node, selection: Selection, part: Node) -> Node:
    """`x` with its regions replaced by `part`, whose dimensions are the kept ones."""
    regions = selection.regions
    value = reshape(part, [region.count for region in regions])
    value = flip(value, [axis for axis, region in enumerate(regions) if region.reverse])
    return update(x, value, [(region.low, region.step) for region in regions], inside=True)


def _set_mask(x: Node, items: tuple[Any, ...], value: Node) -> Node:
    """`x[mask] = value`, for a value that is the same wherever the mask holds."""
    spread = _spread_ellipsis(items, len(x.shape))
    masks = [place for place, item in enumerate(spread) if _is_mask(item)]
    plain = all(isinstance(item, slice) and item == WHOLE for item in spread if not _is_mask(item))
    if len(masks) > 1 or not plain:
        raise IndexError("a bool mask in an assignment stands alone, or beside ':' and '...'")
    at = masks[0]
    mask = spread[at]
    covered = len(mask.shape)
    if mask.shape != x.shape[at : at + covered]:
        raise IndexError(
            f"a mask of shape {text(mask.shape)} does not match a tensor of shape {text(x.shape)}"
        )
    rest = len(x.shape) - at - covered
    have = (1,) * (at + 1 + rest - len(value.shape)) + value.shape
    if len(have) != at + 1 + rest or have[at] != 1:
        raise ValueError(
            f"x[mask] = value puts one value wherever the mask holds; a tensor of shape "
            f"{text(value.shape)} has several: write where(mask, values, x) with values of the "
            "shape of x"
        )
    same = reshape(value, (*have[:at], *[1] * covered, *have[at + 1 :]))
    condition = reshape(mask, (*[1] * at, *mask.shape, *[1] * rest))
    return where(condition, expand(same, x.shape), x)
