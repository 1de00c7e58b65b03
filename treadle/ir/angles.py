"""Angles brought into +-pi/4, for every float32 and float64 however large.

After Payne and Hanek, "Radian reduction for trigonometric functions" (1983), in floats instead of
integers. An angle a is a/(2 pi) turns, of which the whole ones do not count. If a = k 2^s with a
whole k, then the whole part of 2^s/(2 pi) gives whole turns, so k times its fraction is enough:
of the digits of 1/(2 pi), only those after the first s are needed.
"""

from __future__ import annotations

from treadle.ir.dtype import float32, float64, uint32
from treadle.ir.formula import Value, constant, fma, rint, two_product, two_sum, where

DIGITS = 23 * 53
ONE_OVER_TWO_PI = int(
    "145f306dc9c882a53f84eafa3ea69bb81b6c52b3278872083fca2c757bd778ac36e48dc74849ba5c00c925dd"
    "413a32439fc3bd63962534e7dd1046bea5d768909d338e04d68befc827323ac7306a673e93908bf177bf250763"
    "ff12fffbc0b301fde5e2316b414da3eda6cfd9e4f96136e9e8c7ecd3cbfd45aea4f758fd7cbe2f67a0e73ef14a"
    "525d4d7f6bf623f1aba10ac06608df8f6d757",
    16,
)  # the first binary digits of 1/(2 pi), as one integer
TWO_PI = (6.283185307179586, 2.4492935982947064e-16)
MAGIC = 1.5 * 2.0**52  # x + MAGIC has x to the nearest whole number in its low bits


def digits(start: int, count: int) -> float:
    """`count` binary digits of 1/(2 pi), from digit `start` on, as a fraction of 1."""
    below = ONE_OVER_TWO_PI >> (DIGITS - start - count)
    return (below & ((1 << count) - 1)) / (1 << count)


def reduce(a: Value) -> tuple[Value, Value | None, Value]:
    """(y, low, quadrant) with a = y + low + quadrant pi/2, for a that is not negative.

    y: float64, in +-pi/4 (a little more where a is large); NaN where a is NaN or inf. low: what y
    lacks, of a float64; None for a float32, of which y is exact to much less than its rounding.
    quadrant: only its low 2 bits are meant.
    """
    return _reduce_float32(a) if a.dtype is float32 else _reduce_float64(a)


def _fraction(turns: Value) -> Value:
    """Turns without whole ones, in +-1/2. Exact."""
    return turns - rint(turns)


def _quarters(turns: Value) -> tuple[Value, Value]:
    """The nearest number of quarters of a turn, and the same in the low bits of an integer."""
    shifted = fma(turns, 4.0, MAGIC)
    return shifted - MAGIC, shifted.bits


# ---- float32 -------------------------------------------------------------------------------------


def _reduce_float32(a: Value) -> tuple[Value, None, Value]:
    """In float64, with s = 0 or, from 2^76 on, s = 53."""
    large = a >= 2.0**76
    k = where(large, a * 2.0**-53, a).cast(float64)
    first, second, third = (
        where(large, *(constant(float64, digits(s + start, count) * 2.0**-start) for s in (53, 0)))
        for start, count in ((0, 29), (29, 53), (82, 53))
    )
    turns = _fraction(k * first)  # 24 + 29 bits: exact
    quarters, quadrant = _quarters(fma(k, second, turns))
    # the first of these sums is exact, each other is rounded relative to what remains
    rest = fma(k, second, fma(quarters, -0.25, turns))
    rest = fma(k, third, rest)
    return rest * TWO_PI[0], None, quadrant.cast(uint32)


# ---- float64 -------------------------------------------------------------------------------------


def _window(a: Value) -> tuple[Value, list[Value]]:
    """k and five pieces of 53 digits of 1/(2 pi), from digit s on, where a = k 2^s: k is a whole
    number below 2^105, or s is 0. Piece j is to be multiplied by 2^(-53 j).

    s = 53 n: the digits are moved by 16, 8, 4, 2 and 1 pieces, each time if a is large enough.
    """
    pieces = [constant(float64, digits(53 * n, 53)) for n in range(DIGITS // 53)]
    for step in (16, 8, 4, 2, 1):
        large = a >= 2.0 ** (52 + 53 * step)
        a = where(large, a * 2.0 ** (-53 * step), a)
        kept = pieces[: 4 + step]  # a later step moves by less than this one
        moved = pieces[step:][: len(kept)]
        pieces = [where(large, m, p) for m, p in zip(moved, kept)] + kept[len(moved) :]
    return a, pieces


def _reduce_float64(a: Value) -> tuple[Value, Value, Value]:
    """In pairs of float64: the rest is known to about 2^-105 of a turn."""
    k, pieces = _window(a)
    products = [two_product(k * 2.0 ** (-53 * j), piece) for j, piece in enumerate(pieces)]
    (p0, e0), (p1, e1), (p2, e2), (p3, _), _ = products
    high = _fraction(p0)
    others = (_fraction(e0), _fraction(p1), e1, p2)  # like high, these may be large
    total = high
    for other in others:
        total = total + other
    quarters, quadrant = _quarters(total)
    high = fma(quarters, -0.25, high)  # exact
    low = e2 + p3
    for other in others:
        high, error = two_sum(high, other)
        low = low + error
    high, low = two_sum(high, low)
    y, error = two_product(high, high.like(TWO_PI[0]))
    error = fma(low, TWO_PI[0], fma(high, TWO_PI[1], error))
    tiny = a < 2.0**-28  # of denormals, products would lose bits
    return where(tiny, a, y), where(tiny, 0.0, error), quadrant
