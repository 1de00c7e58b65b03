"""sin, cos, tan and atan, in spelled operations, for float32 and float64."""

from __future__ import annotations

from treadle.ir import polynomials
from treadle.ir.dtype import float32, float64, uint32
from treadle.ir.formula import Value, constant, fma, polynomial, rint, where
from treadle.ir.transcendental import absolute, sign_of, with_sign_of

PI_OVER_2 = (
    float.fromhex("0x1.921fb54442d18p+0"),
    float.fromhex("0x1.1a62633145c07p-54"),
    float.fromhex("-0x1.f1976b7ed8fbcp-110"),
)
PI_OVER_4 = {
    32: (0.7853981852531433, -2.1855694e-08),
    64: (PI_OVER_2[0] / 2, PI_OVER_2[1] / 2),
}
TWO_OVER_PI = 0.6366197723675814
TWO_PI = 6.283185307179586
MAGIC = 1.5 * 2.0**52  # see Format.round_magic

# The fractional part of 1/(2 pi) and of 2^53/(2 pi), each in three parts, of which the first has
# 29 bits: so its product with a float32 is exact in float64.
TURNS = tuple(
    tuple(float.fromhex(part) for part in parts)
    for parts in (
        ("0x1.45f306c000000p-3", "0x1.c9c882a53f84fp-31", "-0x1.4170565911f92p-85"),
        ("0x1.529fc27000000p-1", "0x1.5f47d4d377037p-31", "-0x1.3ad4cd8778df8p-86"),
    )
)


def _reduce_float32(a: Value) -> tuple[Value, Value]:
    """y in +-pi/4, as float64, and a quadrant (its low 2 bits), with a = y + quadrant pi/2, for
    every float32 a >= 0.

    In turns. A product with a part of 1/(2 pi) is reduced to less than a turn
    before the next is added, so nothing is lost. From 2^76 on, a = k 2^53 with a whole k, so whole
    turns in 2^53/(2 pi) are whole turns in a/(2 pi), and k times the fraction is all that counts.
    """
    large = a >= 2.0**76
    scaled = where(large, a * 2.0**-53, a).cast(float64)
    first, second, third = (
        where(large, constant(float64, high), low) for low, high in zip(*TURNS, strict=True)
    )
    turns = scaled * first  # exact
    fraction = turns - rint(turns)
    shifted = fma(fma(scaled, second, fraction), 4.0, MAGIC)
    quarter = shifted - MAGIC
    # the subtraction is exact, and each sum is rounded relative to what remains
    rest = fma(scaled, second, fma(quarter, -0.25, fraction))
    rest = fma(scaled, third, rest)
    return rest * TWO_PI, shifted.bits.cast(uint32)


def _reduce_float64(a: Value) -> tuple[Value, Value]:
    """The same for float64, by subtracting n pi/2 in three parts."""
    shifted = fma(a, TWO_OVER_PI, MAGIC)
    n = shifted - MAGIC
    y = fma(n, -PI_OVER_2[0], a)  # exact
    y = fma(n, -PI_OVER_2[1], y)
    return fma(n, -PI_OVER_2[2], y), shifted.bits


def _reduce(a: Value) -> tuple[Value, Value]:
    return _reduce_float32(a) if a.dtype is float32 else _reduce_float64(a)


def _sin_cos(y: Value, bits: int) -> tuple[Value, Value]:
    """sin(y) and cos(y) for y in +-pi/4, as good as a float of so many bits asks."""
    square = y * y
    sine = fma(square * y, polynomial(square, polynomials.SIN[bits]), y)
    cosine = polynomial(square, (1.0, -0.5, *polynomials.COS[bits]))
    return sine, cosine


def _quadrant_sign(quadrant: Value) -> Value:
    """The sign bit that the second bit of the quadrant gives."""
    return (quadrant & 2) << (quadrant.dtype.bits - 2)


def sin(x: Value) -> Value:
    """sin or cos of the rest, and the sign of x and of the quadrant."""
    y, quadrant = _reduce(absolute(x))
    sine, cosine = _sin_cos(y.cast(x.dtype), x.dtype.bits)
    value = where((quadrant & 1) == 0, sine, cosine)
    return (value.bits ^ _quadrant_sign(quadrant) ^ sign_of(x)).bitcast(x.dtype)


def cos(x: Value) -> Value:
    """The sine a quadrant later."""
    y, quadrant = _reduce(absolute(x))
    sine, cosine = _sin_cos(y.cast(x.dtype), x.dtype.bits)
    value = where((quadrant & 1) == 0, cosine, sine)
    return (value.bits ^ _quadrant_sign(quadrant + 1)).bitcast(x.dtype)


def tan(x: Value) -> Value:
    """sin/cos of the rest, or -cos/sin: three roundings, so for float32 all is done in float64."""
    y, quadrant = _reduce(absolute(x))
    sine, cosine = _sin_cos(y, x.dtype.bits)
    even = (quadrant & 1) == 0
    value = where(even, sine, -cosine) / where(even, cosine, sine)
    return (value.cast(x.dtype).bits ^ sign_of(x)).bitcast(x.dtype)


def atan(x: Value) -> Value:
    """atan(a) = atan((a - c)/(1 + a c)) + atan(c) for c = 0, 1 or infinity, with one division."""
    a = absolute(x)
    small, large = a < 0.5, a > 2.0
    numerator = where(large, -1.0, where(small, a, a - 1.0))  # exact
    denominator = where(large, a, where(small, x.like(1.0), a + 1.0))
    t = numerator / denominator
    square = t * t
    tail = t * square * polynomial(square, polynomials.ATAN[x.dtype.bits])
    eighths = where(large, x.like(2.0), where(small, x.like(0.0), 1.0))
    high, low = PI_OVER_4[x.dtype.bits]
    return with_sign_of(fma(eighths, high, t + fma(eighths, low, tail)), x)
