"""The order of elements along a dimension: what every sort, rank and quantile is made of.

An element is sorted by its *key*, an unsigned integer of the same width whose order is the one that
is wanted: NaN last, -0.0 equal to 0.0, and for descending order all bits turned around. Short rows
are ordered by counting, for each element, those that come before it. Longer ones by a radix sort
from the lowest digit to the highest (Knuth, "The art of computer programming", volume 3, 5.2.5):
each pass is a loop that counts digits, and the passes are a loop too, so a program is as long for a
million elements as for a hundred. Both are stable: equal keys stay in their order.
"""

from __future__ import annotations

import math
from typing import Any

from treadle.graph import shapes
from treadle.graph.build import (
    alu,
    bitcast,
    cast,
    const,
    contiguous,
    expand,
    gather,
    iota,
    pad,
    permute,
    reduce,
    reshape,
    scatter,
    stop_gradient,
    where,
)
from treadle.graph.elementwise import add, eq, lt, mul, ne, sub
from treadle.graph.movement import narrow
from treadle.graph.running import of_monoid, running
from treadle.graph.scan import scan
from treadle.graph.shapes import Dim
from treadle.ir import ops
from treadle.ir.dtype import BY_NAME, DType, bool_, int32, int64, uint8
from treadle.ir.node import Node

_COUNTED = 48  # up to so many elements a row is ordered by counting: each meets every other
_FEW = 1 << 19  # .. or if there are no more meetings in all rows
_LANES = 1024  # digits that are counted at once, each in a part of the data of its own
_BITS = 8  # of a digit


def key_of(x: Node, descending: bool = False) -> Node:
    """Unsigned integers that are ordered as the elements are to be; no gradient flows through."""
    x = stop_gradient(x)
    if x.dtype is bool_:
        found = cast(x, uint8)
    elif x.dtype.kind == "u":
        found = x
    else:
        unsigned = BY_NAME[f"uint{8 * x.dtype.itemsize}"]
        sign = const(1 << (8 * x.dtype.itemsize - 1), unsigned)
        if x.dtype.is_float:
            bits = bitcast(where(eq(x, 0), const(0, x.dtype), x), unsigned)
            below = ne(alu(ops.AND, bits, sign), 0)
            found = alu(ops.XOR, bits, where(below, const(unsigned.max, unsigned), sign))
            found = where(ne(x, x), const(unsigned.max, unsigned), found)
        else:
            found = alu(ops.XOR, bitcast(x, unsigned), sign)
    return alu(ops.NOT, found) if descending else found


def position_type(size: Dim) -> DType:
    """The integers that hold positions in a dimension: 32 bits if they fit."""
    return int32 if shapes.bounds(size)[1] < 2**31 - 1 else int64


def order(key: Node, bits: int | None = None) -> Node:
    """For each row of keys (the last dimension) the positions of its elements, in ascending order
    of the keys; equal ones in their order. Of `position_type`. bits: how many low bits of the keys
    may differ, if not all."""
    size, before = key.shape[-1], key.shape[:-1]
    count = shapes.bounds(size)[1]
    if count < 2:
        return const(0, position_type(size), key.shape)
    rows = shapes.total(before)
    flat = reshape(key, (rows, size))
    meetings = shapes.bounds(rows)[1] * count * count
    if count <= _COUNTED or meetings <= _FEW:
        found = _by_counting(flat)
    else:
        found = _by_digits(flat, bits or 8 * key.dtype.itemsize)
    return reshape(found, key.shape)


def place_along(order_: Node, values: Node) -> Node:
    """`values` written, in each row, at the positions `order_`."""
    return scatter(const(0, values.dtype, values.shape), order_, values, len(values.shape) - 1)


def _positions(shape: tuple[Dim, ...]) -> Node:
    """0, 1 .. along the last dimension of a shape."""
    return expand(iota(shape[-1], position_type(shape[-1])), shape)


def _by_counting(key: Node) -> Node:
    """Each element stands after those that are less, and those that are equal and before it."""
    rows, size = key.shape
    mine, other = reshape(key, (rows, size, 1)), reshape(key, (rows, 1, size))
    place = _positions((1, size))
    earlier = lt(reshape(place, (1, 1, size)), reshape(place, (1, size, 1)))
    before = alu(ops.OR, lt(other, mine), alu(ops.AND, eq(other, mine), earlier))
    rank = reduce("add", cast(before, place.dtype), 2)
    return place_along(rank, _positions(key.shape))


def _by_digits(key: Node, width: int) -> Node:
    """A radix sort of each row by the low `width` bits."""
    size = key.shape[-1]
    key, parts, steps = _whole_parts(key)
    shifts = mul(iota(-(-width // _BITS), key.dtype), _BITS)

    def one_pass(carried: Any, shift: Node) -> Any:
        keys, places = carried
        digit = cast(alu(ops.AND, alu(ops.RSHIFT, keys, shift), (1 << _BITS) - 1), places.dtype)
        target = contiguous(_targets(digit, parts, steps, 1 << _BITS))
        return (place_along(target, keys), place_along(target, places)), ()

    (_, found), _ = scan(one_pass, (key, _positions(key.shape)), shifts)
    return narrow(found, 1, 0, size, inside=True)


def _whole_parts(key: Node) -> tuple[Node, int, int]:
    """The rows made longer by the greatest key, so that each has `parts` parts of `steps` elements:
    (rows, parts, steps). As many parts as make `_LANES` of all rows, but none below 16 elements."""
    rows, size = key.shape
    count = shapes.bounds(size)[1]
    lanes = max(1, _LANES // max(1, shapes.bounds(rows)[1]))
    parts = max(1, min(lanes, count // 16, math.isqrt(4 * count)))
    steps = -(-count // parts)
    extra = shapes.subtract(parts * steps, size)
    return pad(key, [(0, 0), (0, extra)], key.dtype.max), parts, steps


def _targets(digit: Node, parts: int, steps: int, kinds: int) -> Node:
    """Where each element of a row goes if the row is ordered by a digit: after all lower digits,
    the equal ones in earlier parts, and those before it in its own part.

    The parts of all rows are counted side by side, a step of a loop for each of their elements.
    """
    rows, size = digit.shape
    lanes = shapes.multiply(rows, parts)
    dtype = digit.dtype
    by_step = permute(reshape(digit, (lanes, steps)), (1, 0))

    def count(counts: Node, digits: Node) -> tuple[Node, Node]:
        seen = gather(counts, digits, 0)
        return scatter(counts, digits, add(seen, 1), 0), seen

    counts, seen = scan(count, const(0, dtype, (kinds, lanes)), reshape(by_step, (steps, 1, lanes)))
    by_row = permute(reshape(counts, (kinds, rows, parts)), (1, 0, 2))
    flat = reshape(by_row, (rows, kinds * parts))
    upto = running((flat,), 1, of_monoid("add", dtype))[0]
    first = permute(reshape(sub(upto, flat), (rows, kinds, parts)), (1, 0, 2))
    start = gather(reshape(first, (kinds, lanes)), by_step, 0)
    return reshape(permute(add(start, reshape(seen, start.shape)), (1, 0)), (rows, size))


def first_of_order(key: Node, count: int) -> Node:
    """The first `count` positions of `order`, without ordering everything.

    A row is cut into blocks. The `count` least elements stand in the `count` blocks whose least
    elements come first, so the others are left out: with blocks of sqrt(size / count) that leaves
    2 * sqrt(size * count) elements to order.
    """
    size, before = key.shape[-1], key.shape[:-1]
    if not isinstance(size, int) or size < 16 * max(1, count) or size <= _COUNTED:
        return narrow(order(key), len(before), 0, count)
    if count == 0:
        return const(0, position_type(size), (*before, 0))
    width = math.isqrt(size // count)
    blocks = -(-size // width)
    keep: list[tuple[Dim, Dim]] = [(0, 0)] * len(before)
    rows = reshape(
        pad(key, [*keep, (0, blocks * width - size)], key.dtype.max), (*before, blocks, width)
    )
    found = first_of_order(reduce("min", rows, -1), count)
    # blocks in the order in which they stand, so that equal elements are
    found = contiguous(gather(found, order(_as_key(found), blocks.bit_length()), len(before)))
    stretched = expand(reshape(found, (*before, count, 1)), (*before, count, width))
    candidates = reshape(gather(rows, stretched, len(before)), (*before, count * width))
    inside = iota(width, found.dtype)
    place = reshape(add(mul(stretched, width), inside), candidates.shape)
    chosen = narrow(order(candidates), len(before), 0, count)
    return gather(place, chosen, len(before))


def _as_key(positions: Node) -> Node:
    return bitcast(positions, BY_NAME[f"uint{8 * positions.dtype.itemsize}"])
