"""Movement operations as maps of indices: which element of the source an element of the result is.

`source_index(node, position) -> (position in the source, condition)`. The condition is a bool node,
or None where every element of the result is an element of the source; where it is false the result
is 0 and the source position may lie outside.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from treadle.ir import index, ops
from treadle.ir.node import Node, Shape
from treadle.ir.ops import Op

Position = tuple[Node, ...]
Mapped = tuple[Position, Node | None]

ZERO = index.const(0)

# movements that only re-index: no element of the result is made up
PURE = frozenset((ops.RESHAPE, ops.PERMUTE, ops.EXPAND, ops.SHRINK, ops.FLIP, ops.WINDOW))


def is_partition(node: Node) -> bool:
    """Whether a sum over the windows that meet an element has one term: windows as long as their
    stride do not overlap. sum over k of unwindow(x)[i, k] = x[i // stride, i mod stride]"""
    if node.op is not ops.REDUCE or node.arg[0] != "add" or node.src[0].op is not ops.UNWINDOW:
        return False
    axis, _, stride, dilation = node.src[0].arg
    length = node.src[0].shape[axis + 1]
    return bool(node.arg[1] == (axis + 1,) and dilation == 1 and length == stride)


class Movements:
    """The maps, remembered by what they depend on, so that the layers of a network share them."""

    def __init__(self) -> None:
        self._mapped: dict[Any, Mapped] = {}
        self._groups: dict[tuple[Shape, Shape], list[tuple[list[int], list[int]]]] = {}

    def source_index(self, node: Node, position: Position) -> Mapped:
        """Where the element at `position` of a movement node comes from."""
        shape = node.src[0].shape
        key = (node.op, node.arg, shape, position)
        found = self._mapped.get(key)
        if found is None:
            if node.op is ops.RESHAPE:
                found = self._reshaped(shape, node.arg, position), None
            else:
                found = _MAPS[node.op](node.arg, shape, position)
            self._mapped[key] = found
        return found

    def partition_index(self, node: Node, position: Position) -> Mapped:
        """As `source_index`, for a sum that is a partition; the source is that of its UNWINDOW."""
        axis, _, stride, _ = node.src[0].arg
        place = index.floordiv(position[axis], stride)
        element = index.mod(position[axis], stride)
        condition = index.lt(place, node.src[0].src[0].shape[axis])
        inner = (*position[:axis], place, element, *position[axis + 1 :])
        return inner, _condition([condition])

    def _reshaped(self, old: Shape, new: Shape, position: Position) -> Position:
        groups = self._groups.get((old, new))
        if groups is None:
            groups = self._groups[old, new] = matched_groups(old, new)
        result = [ZERO] * len(old)
        for inner, outer in groups:
            linear = flatten([new[axis] for axis in outer], [position[axis] for axis in outer])
            for axis in reversed(inner[1:]):
                result[axis] = index.mod(linear, old[axis])
                linear = index.floordiv(linear, old[axis])
            if inner:
                result[inner[0]] = linear
        return tuple(result)


def flatten(shape: list[Any], position: list[Node]) -> Node:
    """The row-major number of an element."""
    linear = position[0] if position else ZERO
    for size, i in zip(shape[1:], position[1:]):
        linear = index.add(index.mul(linear, size), i)
    return linear


def matched_groups(old: Shape, new: Shape) -> list[tuple[list[int], list[int]]]:
    """Runs of adjacent axes (of old, of new) of equal product, as short as possible, without the
    axes of size 1. A quotient or remainder arises only inside a run of unequal axes."""
    left = [axis for axis, size in enumerate(old) if size != 1]
    right = [axis for axis, size in enumerate(new) if size != 1]
    groups: list[tuple[list[int], list[int]]] = []
    i = j = 0
    while i < len(left) or j < len(right):
        start_i, start_j = i, j
        a: Any = 1
        b: Any = 1
        while True:
            # take from the side that is behind; a symbolic product counts with its upper bound
            behind = index.bounds(a)[1] <= index.bounds(b)[1]
            if (behind and i < len(left)) or j == len(right):
                a = index.product((a, old[left[i]]))
                i += 1
            else:
                b = index.product((b, new[right[j]]))
                j += 1
            if a is b or a == b or (i == len(left) and j == len(right)):
                break
        groups.append((left[start_i:i], right[start_j:j]))
    return groups


def _permuted(order: tuple[int, ...], shape: Shape, position: Position) -> Mapped:
    result = [ZERO] * len(order)
    for axis, source in enumerate(order):
        result[source] = position[axis]
    return tuple(result), None


def _expanded(new: Shape, shape: Shape, position: Position) -> Mapped:
    return tuple([ZERO if size == 1 else i for size, i in zip(shape, position)]), None


def _padded(pairs: Any, shape: Shape, position: Position) -> Mapped:
    result = []
    conditions = []
    for (low, high), size, i in zip(pairs, shape, position):
        inner = i if low == 0 else index.sub(i, low)
        if low != 0:
            conditions.append(index.le(0, inner))
        if high != 0:
            conditions.append(index.lt(inner, size))
        result.append(inner)
    return tuple(result), _condition(conditions)


def _shrunk(pairs: Any, shape: Shape, position: Position) -> Mapped:
    moved = [i if start == 0 else index.add(i, start) for (start, _), i in zip(pairs, position)]
    return tuple(moved), None


def _flipped(axes: tuple[int, ...], shape: Shape, position: Position) -> Mapped:
    result = list(position)
    for axis in axes:
        result[axis] = index.sub(index.sub(shape[axis], 1), result[axis])
    return tuple(result), None


def _windowed(arg: Any, shape: Shape, position: Position) -> Mapped:
    axis, _, stride, dilation = arg
    place, element = position[axis], position[axis + 1]
    moved = index.add(index.mul(place, stride), index.mul(element, dilation))
    return (*position[:axis], moved, *position[axis + 1 :]), None


def _unwindowed(arg: Any, shape: Shape, position: Position) -> Mapped:
    axis, _, stride, dilation = arg
    moved = index.sub(position[axis], index.mul(position[axis + 1], dilation))
    place = index.floordiv(moved, stride)
    conditions = [
        index.le(0, moved),
        index.eq(index.mod(moved, stride), 0),
        index.lt(place, shape[axis]),
    ]
    return (*position[:axis], place, *position[axis + 1 :]), _condition(conditions)


def _condition(conditions: list[Node]) -> Node | None:
    both = index.both(*conditions)
    return None if both is index.TRUE else both


_MAPS: dict[Op, Callable[[Any, Shape, Position], Mapped]] = {
    ops.PERMUTE: _permuted,
    ops.EXPAND: _expanded,
    ops.PAD: _padded,
    ops.SHRINK: _shrunk,
    ops.FLIP: _flipped,
    ops.WINDOW: _windowed,
    ops.UNWINDOW: _unwindowed,
}
