"""Reading and writing parts of a tensor: `x[...]` as NumPy defines it.

An index is a tuple of ints, slices with any step, None, Ellipsis, tensors of ints, and bool masks
(each stands for the positions where it holds, in the flattened form of its dimensions). Its *basic*
part (ints and slices: a region of each dimension) becomes movement to read and UPDATE to write; the
tensors together become one GATHER or SCATTER along one dimension. Ints below 0 count from the end,
in tensors too; one that is out of range is an IndexError, also when the program runs.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn

from treadle.graph import masks, shapes
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
from treadle.graph.masks import Read
from treadle.graph.movement import movedim
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


class Selection(NamedTuple):
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
    """The items of an index; True and False are masks of no dimension."""
    items = index if isinstance(index, tuple) else (index,)
    return tuple([const(item, bool_) if isinstance(item, bool) else item for item in items])


def _spread_ellipsis(index: tuple[Any, ...], rank: int) -> list[Any]:
    """The index with one item per dimension (and None for new ones): Ellipsis, or the end, stands
    for whole dimensions. An Ellipsis for none stays: it keeps tensors apart as a slice does.
    IndexError if there are too many items."""
    used = 0
    for item in index:
        used += len(item.shape) if _is_mask(item) else _consumes(item)
    if used > rank:
        raise IndexError(f"an index of {used} dimensions is too long for a {rank}-d tensor")
    dots = [place for place, item in enumerate(index) if item is Ellipsis]
    if len(dots) > 1:
        raise IndexError("an index can have only one '...'")
    at = dots[0] if dots else len(index)
    whole = [WHOLE] * (rank - used)
    return [*index[:at], *(whole or index[at : at + 1]), *index[at + 1 :]]


def _is_mask(item: Any) -> bool:
    return isinstance(item, Node) and item.dtype is bool_


def _consumes(item: Any) -> int:
    """How many dimensions an item that is no mask stands for, in an index that is spread out."""
    return int(item is not None and item is not Ellipsis)


def _is_tensor(item: Any) -> bool:
    return isinstance(item, Node) and item.dtype is not INDEX and item.dtype is not bool_


def _no_reading(what: str, number: Node, *others: Node) -> NoReturn:
    """For callers on nodes, where nothing runs."""
    raise IndexError(f"{what} cannot be read here")


# ---- masks ---------------------------------------------------------------------------------------
def _masks_of_one_dimension(x: Node, items: tuple[Any, ...]) -> tuple[Node, list[Any]]:
    """The dimensions of each mask merged into one (a mask of none adds one of size 1), and the
    index, spread out, for that tensor. IndexError if a mask has not their sizes."""
    spread = _spread_ellipsis(items, len(x.shape))
    sizes: list[Dim] = []
    axis = 0
    for place, item in enumerate(spread):
        covered = len(item.shape) if _is_mask(item) else _consumes(item)
        part = x.shape[axis : axis + covered]
        axis += covered
        if _is_mask(item):
            masks.check_shapes(item, part, x.shape)
            part = (shapes.total(part),)
            spread[place] = reshape(item, part)
        sizes += part
    return reshape(x, sizes), spread


def _as_positions(spread: list[Any], read: Read) -> tuple[Any, ...]:
    """An index with the positions of what they select in place of masks of one dimension."""
    return tuple(
        [
            masks.chosen(item, None, read, "x[mask]")[0] if _is_mask(item) else item
            for item in spread
        ]
    )


def _understand(shape: Shape, index: Any) -> Selection:
    """The index for a tensor of a shape. IndexError and TypeError in the user's words."""
    regions: list[Region] = []
    kept: list[int | None] = []
    tensors: list[tuple[int, Node]] = []
    places: list[int] = []  # of ints and tensors in the index
    for place, item in enumerate(_spread_ellipsis(_as_tuple(index), len(shape))):
        if item is Ellipsis:
            continue
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
    if not item.dtype.is_int:
        raise IndexError(f"a tensor used as an index must be of integers, not {item.dtype}")


def _int_region(item: Any, size: Dim, axis: int) -> Region:
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
def getitem(x: Node, index: Any, read: Read = _no_reading) -> Node:
    """`x[index]`. How many elements a mask selects is read by `read` (see `masks.py`)."""
    items = _as_tuple(index)
    if any(_is_mask(item) for item in items):
        x, spread = _masks_of_one_dimension(x, items)
        index = _as_positions(spread, read)
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
def setitem(
    x: Node, index: Any, value: Operand, read: Read = _no_reading, monoid: str = "set"
) -> Node:
    """`x` with `value`, cast to its dtype and broadcast, at `index`: what `x[index] = value` puts
    into the cell. Where a tensor names an element more than once the last value stays; another
    monoid than "set" combines all with what stands there (where `index` has tensors).

    A mask reads nothing (see `_set_mask`) unless tensors or other masks stand beside it.
    """
    items = _as_tuple(index)
    new = cast(value, x.dtype) if isinstance(value, Node) else const(value, x.dtype)
    held = sum(_is_mask(item) for item in items)
    if held:
        merged, spread = _masks_of_one_dimension(x, items)
        at = next(place for place, item in enumerate(spread) if _is_mask(item))
        if monoid == "set" and held == 1 and not any(_is_tensor(item) for item in items):
            written = _set_mask(merged, spread, at, new)
        else:
            written = setitem(merged, _as_positions(spread, read), new, read, monoid)
        return reshape(written, x.shape)
    selection = _understand(x.shape, index)
    if not selection.tensors:
        return _put(x, selection, _fitted(new, _result_shape(selection)))
    part = _kept_dimensions(_take(x, selection.regions), selection)
    merged, places, at, common = _merged(part, selection)
    rows = _flat_positions(merged.shape, places, at)
    fitted = _fitted(new, (*merged.shape[:at], *common, *merged.shape[at + 1 :]))
    written = scatter(merged, rows, reshape(fitted, rows.shape), at, monoid)
    order, _ = _order(selection)
    moved = reshape(written, [part.shape[place] for place in order])
    return _put(x, selection, permute(moved, [order.index(place) for place in range(len(order))]))


def _result_shape(selection: Selection) -> Shape:
    """The shape that the basic part of an index selects."""
    counts = [region.count for region in selection.regions]
    return tuple([1 if axis is None else counts[axis] for axis in selection.kept])


def _fitted(value: Node, shape: Shape) -> Node:
    """A value broadcast to the shape of the place it is put into; leading 1s do not count."""
    have = _without_leading_ones(value.shape, len(shape))
    try:
        return expand(reshape(value, have), shape)
    except ValueError:
        raise ValueError(
            f"a value of shape {text(value.shape)} does not fit a place of shape {text(shape)}"
        ) from None


def _without_leading_ones(shape: Shape, rank: int) -> Shape:
    """A shape without the sizes of 1 by which its rank is too high."""
    while len(shape) > rank and shape[0] == 1:
        shape = shape[1:]
    return shape


def _put(x: Node, selection: Selection, part: Node) -> Node:
    """`x` with its regions replaced by `part`, whose dimensions are the kept ones."""
    regions = selection.regions
    value = reshape(part, [region.count for region in regions])
    value = flip(value, [axis for axis, region in enumerate(regions) if region.reverse])
    return update(x, value, [(region.low, region.step) for region in regions], inside=True)


def _set_mask(x: Node, items: list[Any], at: int, value: Node) -> Node:
    """`x[.., mask, ..] = value` for a mask of one dimension, item number `at`, beside ints, slices
    and None. Nothing is read: each element is chosen by `where`.

    value: one for all that is selected, or as many as the mask selects, in order.
    """
    mask = items[at]
    selection = _understand(x.shape, (*items[:at], WHOLE, *items[at + 1 :]))
    axis = sum(map(_consumes, items[:at]))
    ints = [n for n, item in enumerate(items) if _consumes(item) and not _is_slice(item)]
    apart = ints[-1] - ints[0] + 1 != len(ints)
    stands = selection.kept.index(axis)
    place = 0 if apart else stands
    part = movedim(_kept_dimensions(_take(x, selection.regions), selection), stands, place)
    size, after = mask.shape[0], part.shape[place + 1 :]
    have = _without_leading_ones(value.shape, len(part.shape))
    have = (1,) * (len(part.shape) - len(have)) + have
    values = reshape(value, have) if len(have) == len(part.shape) else value
    count = values.shape[place] if len(have) == len(part.shape) else 1
    fitted = _fitted(values, (*part.shape[:place], count, *after))
    if count == 1:
        fitted = expand(fitted, part.shape)
    else:
        fitted = masks.spread_values(fitted, mask, place, all_of_them=True)
    condition = reshape(mask, (*[1] * place, size, *[1] * len(after)))
    written = where(condition, fitted, part)
    return _put(x, selection, movedim(written, place, stands))


def _is_slice(item: Any) -> bool:
    return isinstance(item, slice)
