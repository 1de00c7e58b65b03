"""Window functions: weights that fall off towards both ends of a piece of a signal.

All are symmetric in n points; `periodic` ones are the first n of n + 1 such points, so that copies
of them side by side have one period (which is what transforms want). Names and arguments are
PyTorch's. They are computed in float64 and rounded once. Source: Harris, "On the use of windows for
harmonic analysis with the discrete Fourier transform", Proc. IEEE 66, 1978.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from treadle.graph import shapes
from treadle.graph.build import alu, cast, const, iota
from treadle.graph.elementwise import abs_, add, maximum, mul, remainder, sub
from treadle.graph.fourier.roots import roots
from treadle.graph.public import public
from treadle.ir import ops
from treadle.ir.dtype import DType, float32, float64, int64
from treadle.ir.node import Node

STEEPEST = 600.0  # of Kaiser's windows: beyond, the numbers of the series overflow


def _points(name: str, length: Any, periodic: bool, dtype: DType | None) -> tuple[int, int, DType]:
    """How many points are wanted, of how many that are symmetric, and their dtype."""
    n = shapes.as_dim(length)
    if not isinstance(n, int) or n < 0:
        raise ValueError(f"{name}: the length is a number of at least 0, not {shapes.words(n)}")
    wanted = dtype or float32
    if not wanted.is_float:
        raise TypeError(f"{name}: a window is of floating-point numbers, not of {wanted}")
    return n, n + 1 if periodic and n > 1 else n, wanted


def _of_cosines(count: int, whole: int, weights: Sequence[float], dtype: DType) -> Node:
    """The sum of w_m cos(2 pi m k / (whole - 1)) for k below `count`."""
    if whole < 2:
        return const(1, dtype, (count,))
    total = const(weights[0], float64, (count,))
    for m, weight in enumerate(weights[1:], 1):
        cosine, _ = roots(remainder(mul(iota(count, int64), m), whole - 1), whole - 1)
        total = add(total, mul(cosine, weight))
    return cast(total, dtype)


@public("hann_window", source="PyTorch", method=False, namespace=True, kind="creates")
def hann_window(window_length: int, periodic: bool = True, *, dtype: DType | None = None) -> Node:
    """Hann's window, 1/2 - 1/2 cos(2 pi k / (n - 1)): float32 unless a dtype is given.

    >>> treadle.hann_window(4).tolist()
    [0.0, 0.5, 1.0, 0.5]
    """
    count, whole, wanted = _points("hann_window", window_length, periodic, dtype)
    return _of_cosines(count, whole, (0.5, -0.5), wanted)


@public("hamming_window", source="PyTorch", method=False, namespace=True, kind="creates")
def hamming_window(
    window_length: int,
    periodic: bool = True,
    alpha: float = 0.54,
    beta: float = 0.46,
    *,
    dtype: DType | None = None,
) -> Node:
    """Hamming's window, alpha - beta cos(2 pi k / (n - 1)).

    >>> treadle.hamming_window(3, periodic=False).shape
    (3,)
    """
    count, whole, wanted = _points("hamming_window", window_length, periodic, dtype)
    return _of_cosines(count, whole, (alpha, -beta), wanted)


@public("blackman_window", source="PyTorch", method=False, namespace=True, kind="creates")
def blackman_window(
    window_length: int, periodic: bool = True, *, dtype: DType | None = None
) -> Node:
    """Blackman's window, 0.42 - 0.5 cos(2 pi k / (n - 1)) + 0.08 cos(4 pi k / (n - 1)).

    >>> treadle.blackman_window(5, periodic=False).shape
    (5,)
    """
    count, whole, wanted = _points("blackman_window", window_length, periodic, dtype)
    return _of_cosines(count, whole, (0.42, -0.5, 0.08), wanted)


def _from_middle(count: int, whole: int) -> Node:
    """2k / (whole - 1) - 1 for k below `count`: from -1 at one end to 1 at the other."""
    k = cast(sub(mul(iota(count, int64), 2), whole - 1), float64)
    return alu(ops.DIV, k, float(max(whole - 1, 1)))


@public("bartlett_window", source="PyTorch", method=False, namespace=True, kind="creates")
def bartlett_window(
    window_length: int, periodic: bool = True, *, dtype: DType | None = None
) -> Node:
    """Bartlett's window, a triangle: 1 - |2k / (n - 1) - 1|.

    >>> treadle.bartlett_window(5, periodic=False).tolist()
    [0.0, 0.5, 1.0, 0.5, 0.0]
    """
    count, whole, wanted = _points("bartlett_window", window_length, periodic, dtype)
    return cast(sub(1.0, abs_(_from_middle(count, whole))), wanted)


@public("kaiser_window", source="PyTorch", method=False, namespace=True, kind="creates")
def kaiser_window(
    window_length: int,
    periodic: bool = True,
    beta: float = 12.0,
    *,
    dtype: DType | None = None,
) -> Node:
    """Kaiser's window, I0(beta sqrt(1 - u**2)) / I0(beta) with u = 2k / (n - 1) - 1.

    I0 is the modified Bessel function of order 0. beta, up to 600, says how narrow the window is.

    >>> treadle.kaiser_window(3, periodic=False, beta=0.0).tolist()
    [1.0, 1.0, 1.0]
    """
    count, whole, wanted = _points("kaiser_window", window_length, periodic, dtype)
    if not abs(beta) <= STEEPEST:
        raise ValueError(f"kaiser_window: beta is at most {STEEPEST}, not {beta}")
    middle = _from_middle(count, whole)
    # I0(x) is the sum of (x**2 / 4)**k / (k!)**2, here of y = (x / beta)**2 and divided by I0(beta)
    terms, quarter = [1.0], beta * beta / 4
    while terms[-1] > 1e-17 * sum(terms) or len(terms) <= abs(beta) / 2:
        terms.append(terms[-1] * quarter / len(terms) ** 2)
    scale = sum(terms)
    y = maximum(sub(1.0, mul(middle, middle)), 0.0)
    total = const(0.0, float64, (count,))
    for term in reversed(terms):
        total = add(mul(total, y), term / scale)
    return cast(total, wanted)
