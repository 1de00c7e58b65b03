"""What belongs to the numbers of a transform: their frequencies, and their order."""

from __future__ import annotations

from typing import Any

from treadle.graph import shapes
from treadle.graph.build import cast, iota
from treadle.graph.elementwise import mul, sub
from treadle.graph.movement import roll
from treadle.graph.public import public
from treadle.ir.dtype import DType, float32, float64, int64
from treadle.ir.node import Node


def _count(name: str, n: Any) -> int:
    count = shapes.as_dim(n)
    if not isinstance(count, int) or count < 1:
        raise ValueError(f"{name}: n is a number of at least 1, not {shapes.words(n)}")
    return count


def _frequencies(numbers: Node, n: int, d: float, dtype: DType | None) -> Node:
    """Numbers of turns as frequencies, rounded once."""
    wanted = dtype or float32
    if not wanted.is_inexact:
        raise TypeError(f"frequencies are floating-point numbers, not {wanted}")
    return cast(mul(cast(numbers, float64), 1 / (n * d)), wanted)


@public("fftfreq", source="Array API", method=False, fft=True, kind="creates", gradient="no")
def fftfreq(n: int, d: float = 1.0, *, dtype: DType | None = None) -> Node:
    """The frequencies of the n numbers that `fft` gives, of samples that are `d` apart: 0, 1 ..
    (n - 1) // 2, then -(n // 2) .. -1, each divided by n * d.

    >>> treadle.fft.fftfreq(4).tolist()
    [0.0, 0.25, -0.5, -0.25]
    """
    count = _count("fftfreq", n)
    half = count // 2
    return _frequencies(roll(sub(iota(count, int64), half), -half, 0), count, d, dtype)


@public("rfftfreq", source="Array API", method=False, fft=True, kind="creates", gradient="no")
def rfftfreq(n: int, d: float = 1.0, *, dtype: DType | None = None) -> Node:
    """The frequencies of the n // 2 + 1 numbers that `rfft` gives, of samples that are `d` apart:
    0, 1 .. n // 2, each divided by n * d.

    >>> treadle.fft.rfftfreq(4).tolist()
    [0.0, 0.25, 0.5]
    """
    count = _count("rfftfreq", n)
    return _frequencies(iota(count // 2 + 1, int64), count, d, dtype)


def _rolled(x: Node, dims: Any, sign: int) -> Node:
    """Every dimension of `dims` rolled by half of its size, rounded down."""
    axes = shapes.normalize_axes(dims, len(x.shape))
    for axis in axes:
        if not isinstance(x.shape[axis], int):
            raise ValueError(
                f"the size {shapes.dim_text(x.shape[axis])} of a dimension is symbolic"
            )
    return roll(x, tuple([sign * (x.shape[axis] // 2) for axis in axes]), axes)


@public("fftshift", source="Array API", method=False, fft=True)
def fftshift(x: Node, dims: Any = None) -> Node:
    """The number of frequency 0 moved from the front to the middle, along some dimensions (all
    unless `dims` or axes names them).

    >>> treadle.fft.fftshift(Tensor([0, 1, 2, -2, -1])).tolist()
    [-2, -1, 0, 1, 2]
    """
    return _rolled(x, dims, 1)


@public("ifftshift", source="Array API", method=False, fft=True)
def ifftshift(x: Node, dims: Any = None) -> Node:
    """The inverse of `fftshift`.

    >>> treadle.fft.ifftshift(Tensor([-2, -1, 0, 1, 2])).tolist()
    [0, 1, 2, -2, -1]
    """
    return _rolled(x, dims, -1)
