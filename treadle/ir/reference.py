"""What the special functions mean that NumPy lacks: one number at a time, in float64.

They are the meanings of operations in `ops.py`: the interpreter runs them, and constants are folded
with them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

# B(2k) / 2k of the asymptotic series of digamma, for k = 1, 2 ..
_DIGAMMA = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12)


def each(function: Callable[[float], float]) -> Callable[[Array], Array]:
    """A function of a float as one of an array of floats."""

    def run(values: Array) -> Array:
        flat = [function(v) for v in np.asarray(values, np.float64).ravel().tolist()]
        return np.asarray(flat, np.float64).reshape(np.shape(values)).astype(values.dtype)

    return run


def normal_cdf(x: float) -> float:
    """The probability that a normal variable is below x."""
    return math.erfc(-x * math.sqrt(0.5)) / 2


def lgamma(x: float) -> float:
    """The logarithm of |gamma(x)|; inf at the poles and at both infinities."""
    try:
        return math.lgamma(x)
    except (ValueError, OverflowError):  # Python's words for a pole and for what is too large
        return math.inf


def digamma(x: float) -> float:
    """The derivative of `lgamma`: -inf at 0.0, inf at -0.0, NaN at the other poles and at -inf."""
    if x == 0:
        return -math.copysign(math.inf, x)
    if x < 0:
        rest = math.nan if math.isinf(x) else x - round(x)
        if math.isnan(rest) or rest == 0:
            return math.nan
        return digamma(1 - x) - math.pi / math.tan(math.pi * rest)
    terms = []
    while x < 12:
        terms.append(-1 / x if x > 5.6e-309 else -math.inf)
        x += 1
    terms += [math.log(x), -0.5 / x]
    power = 1.0
    for coefficient in _DIGAMMA:
        power /= x * x
        terms.append(-coefficient * power)
    return math.fsum(terms)


def erfinv(x: float) -> float:
    """The number whose error function is x: inf at 1, NaN outside [-1, 1]. Newton's steps, on the
    tail 1 - |x|, which is exact where it matters."""
    a = abs(x)
    if not a < 1:
        return math.copysign(math.inf, x) if a == 1 else math.nan
    y = math.sqrt(-math.log1p(-a)) if a > 0.9 else a
    for _ in range(60):
        excess = math.erf(y) - a if a < 0.5 else (1 - a) - math.erfc(y)
        step = excess * math.sqrt(math.pi) / 2 * math.exp(y * y)
        step /= 1 + y * step
        y -= step
        if abs(step) <= 1e-16 * y:
            break
    return math.copysign(y, x)
