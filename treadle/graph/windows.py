"""Windows over the last axes of a tensor: what convolutions, pools and patches have in common.

The windows of a padded tensor are a movement (WINDOW), not an array: every axis becomes a pair
(window, element of the window).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from treadle.graph import shapes
from treadle.graph.build import expand, reshape, window_pair
from treadle.graph.shapes import Dim
from treadle.ir.node import Node

Sizes = Any  # an int, or one int per spatial dimension
Padding = Any  # Sizes, "same", "valid", or one pair (before, after) per spatial dimension
Pairs = tuple[tuple[int, int], ...]


# ---- arguments -----------------------------------------------------------------------------------
def per_axis(name: str, what: str, value: Sizes, count: int, least: int) -> tuple[int, ...]:
    """An argument given once for all spatial dimensions, or for each of them."""
    value = shapes.plain(value)
    given = tuple(value) if isinstance(value, (tuple, list)) else (value,) * count
    if len(given) == 1:
        given *= count
    if len(given) != count or any(type(n) is not int or n < least for n in given):
        raise ValueError(
            f"{name}: {what}={value!r} must be an int of at least {least}, or {count} of them"
        )
    return given


def padding_pairs(name: str, padding: Padding, count: int) -> Pairs:
    """Padding as (before, after) for each spatial dimension."""
    each = list(padding) if isinstance(padding, (tuple, list)) else [padding]
    if not any(isinstance(pair, (tuple, list)) for pair in each):
        return tuple((n, n) for n in per_axis(name, "padding", padding, count, 0))
    if len(each) != count or not all(isinstance(pair, (tuple, list)) for pair in each):
        raise ValueError(f"{name}: padding={padding!r} must have one pair for each of {count} axes")
    if not all(len(pair) == 2 and all(type(n) is int and n >= 0 for n in pair) for pair in each):
        raise ValueError(f"{name}: padding={padding!r} must hold pairs of ints of at least 0")
    return tuple((before, after) for before, after in each)


def convolution_padding(
    name: str, padding: Padding, count: int, reach: Sequence[int], stride: Sizes
) -> Pairs:
    """The padding of a convolution as pairs: "same" keeps the size of x, "valid" is none."""
    if padding == "same":
        if any(step != 1 for step in per_axis(name, "stride", stride, count, 1)):
            raise ValueError(f"{name}: padding='same' is for stride=1, not stride={stride!r}")
        return tuple(((span - 1) // 2, span // 2) for span in reach)
    if isinstance(padding, str) and padding != "valid":
        raise ValueError(
            f"{name}: padding is an int, {count} of them, pairs, 'valid' or 'same', not {padding!r}"
        )
    return padding_pairs(name, 0 if padding == "valid" else padding, count)


def reach_of(kernel: Sequence[int], dilation: Sequence[int]) -> tuple[int, ...]:
    """How many elements a window spans on each axis."""
    return tuple(step * (size - 1) + 1 for size, step in zip(kernel, dilation))


def count_windows(name: str, size: Dim, pair: tuple[Dim, Dim], reach: int, stride: int) -> Dim:
    """How many windows fit an axis. ValueError if none does."""
    padded = shapes.add(size, shapes.add(*pair))
    if shapes.at_most(reach, padded) is not True:
        raise ValueError(
            f"{name}: a window that spans {reach} elements does not fit a dimension of "
            f"{shapes.dim_text(padded)} (padding included)"
        )
    return shapes.add(shapes.divide(shapes.subtract(padded, reach), stride), 1)


def windows_of(
    x: Node,
    counts: Sequence[Dim],
    kernel: Sequence[int],
    stride: Sequence[int],
    dilation: Sequence[int],
) -> Node:
    """Every one of the last axes of x as a pair of axes (window, element of the window)."""
    first = len(x.shape) - len(kernel)
    for number in reversed(range(len(kernel))):
        axis = first + number
        before, size, after = x.shape[:axis], x.shape[axis], x.shape[axis + 1 :]
        repeated = reshape(x, (*before, size, 1, *after))
        repeated = expand(repeated, (*before, size, kernel[number], *after))
        x = window_pair(repeated, axis, counts[number], stride[number], dilation[number])
    return x


def interleave(first: Sequence[Dim], second: Sequence[Dim]) -> tuple[Dim, ...]:
    """first[0], second[0], first[1] ..: the sizes of pairs of axes."""
    return tuple(size for pair in zip(first, second) for size in pair)
