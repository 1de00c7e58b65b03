"""How far to go along a direction: a step that fulfils the strong Wolfe conditions.

The loss falls by at least ENOUGH times what the slope promises, and the slope has become at most
FLATTER times as steep. Source: Nocedal and Wright, "Numerical optimization", 2006, algorithms 3.5
and 3.6, with steps by cubic interpolation.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from treadle.tensor import Tensor

ENOUGH = 1e-4
FLATTER = 0.9
CALLS = 25  # of the function, at most


class Point(NamedTuple):
    """A step that was tried: its size, the loss, the gradient, the slope along the direction."""

    size: float
    loss: float
    gradient: Tensor
    slope: float


Evaluate = Callable[[float], tuple[float, Tensor]]


def strong_wolfe(
    evaluate: Evaluate,
    direction: Tensor,
    size: float,
    loss: float,
    gradient: Tensor,
    slope: float,
    narrow: float,
) -> tuple[float, float, Tensor, int]:
    """(size, loss and gradient there, calls of `evaluate`) of a good step along `direction`.

    size: the first to try. loss, gradient, slope: where it starts. narrow: an interval in which
    nothing moves by more than this is not searched any further.
    """
    start = Point(0.0, loss, gradient, slope)
    extent = float(direction.abs().max())
    calls = 0

    def at(size: float) -> Point:
        nonlocal calls
        calls += 1
        value, found = evaluate(size)
        return Point(size, value, found, float((found * direction).sum()))

    def has_risen(point: Point) -> bool:
        return not point.loss <= loss + ENOUGH * point.size * slope

    before, point = start, at(size)
    while calls < CALLS:
        if has_risen(point) or (before is not start and point.loss >= before.loss):
            low, high = before, point
            break
        if abs(point.slope) <= -FLATTER * slope:
            return point.size, point.loss, point.gradient, calls
        if point.slope >= 0:
            low, high = point, before
            break
        further = _minimum(before, point, point.size * 1.01, point.size * 10)
        before, point = point, at(further)
    else:
        low, high = (before, point) if has_risen(point) else (point, before)
    while calls < CALLS and abs(high.size - low.size) * extent > narrow:
        left, right = sorted((low.size, high.size))
        margin = 0.1 * (right - left)
        point = at(_minimum(low, high, left + margin, right - margin))
        if has_risen(point) or point.loss >= low.loss:
            high = point
            continue
        if abs(point.slope) <= -FLATTER * slope:
            low = point
            break
        if point.slope * (high.size - low.size) >= 0:
            high = low
        low = point
    return low.size, low.loss, low.gradient, calls


def _minimum(one: Point, other: Point, least: float, most: float) -> float:
    """Where the cubic through two points with their slopes is least, between two bounds; the middle
    of the bounds if it has no minimum."""
    first, second = (one, other) if one.size <= other.size else (other, one)
    middle = (least + most) / 2
    width = second.size - first.size
    if not width or not math.isfinite(first.loss + second.loss + first.slope + second.slope):
        return middle
    chord = first.slope + second.slope - 3 * (second.loss - first.loss) / width
    square = chord * chord - first.slope * second.slope
    if square < 0:
        return middle
    root = math.sqrt(square)
    share = (second.slope + root - chord) / (second.slope - first.slope + 2 * root or math.inf)
    return min(max(second.size - width * share, least), most)
