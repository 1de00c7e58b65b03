"""sin, cos, tan and atan, in spelled operations, for float32 and float64."""

from __future__ import annotations

from treadle.ir import polynomials
from treadle.ir.angles import reduce
from treadle.ir.formula import Pair, Value, fast_two_sum, fma, polynomial, where
from treadle.ir.transcendental import absolute, sign_of, with_sign_of

# pi/4 in two parts
PI_OVER_4 = {
    32: (0.7853981852531433, -2.1855694e-08),
    64: (0.7853981633974483, 3.061616997868383e-17),
}


def _sine(y: Value, low: Value | None, bits: int) -> Pair:
    """sin(y + low) as y and what is to be added, good enough for a float of so many bits."""
    square = y * y
    tail = square * y * polynomial(square, polynomials.SIN[bits])
    if low is not None:
        tail = tail + fma(low * -0.5, square, low)  # sin' = cos, about 1 - y^2/2
    return y, tail


def _cosine(y: Value, low: Value | None, bits: int) -> Pair:
    """cos(y + low) as 1 and what is to be added."""
    square = y * y
    tail = square * polynomial(square, (-0.5, *polynomials.COS[bits]))
    if low is not None:
        tail = fma(-low, y, tail)  # cos' = -sin, about -y
    return y.like(1.0), tail


def _choose(condition: Value, a: Pair, b: Pair) -> Pair:
    return where(condition, a[0], b[0]), where(condition, a[1], b[1])


def _quadrant_sign(quadrant: Value) -> Value:
    """The sign bit that the second bit of the quadrant gives."""
    return (quadrant & 2) << (quadrant.dtype.bits - 2)


def sin(x: Value) -> Value:
    """Sine or cosine of the rest, and the sign of x and of the quadrant."""
    bits = x.dtype.bits
    rest, low, quadrant = reduce(absolute(x))
    y = rest.cast(x.dtype)
    even = (quadrant & 1) == 0
    value, tail = _choose(even, _sine(y, low, bits), _cosine(y, low, bits))
    sign = _quadrant_sign(quadrant) ^ sign_of(x)
    return ((value + tail).bits ^ sign).bitcast(x.dtype)


def cos(x: Value) -> Value:
    """The sine a quadrant later."""
    bits = x.dtype.bits
    rest, low, quadrant = reduce(absolute(x))
    y = rest.cast(x.dtype)
    even = (quadrant & 1) == 0
    value, tail = _choose(even, _cosine(y, low, bits), _sine(y, low, bits))
    return ((value + tail).bits ^ _quadrant_sign(quadrant + 1)).bitcast(x.dtype)


def tan(x: Value) -> Value:
    """Sine through cosine of the rest, or -cosine through sine. The quotient has the errors of
    three roundings; so of a float32 it is taken in float64, and of a float64 in pairs."""
    y, low, quadrant = reduce(absolute(x))
    even = (quadrant & 1) == 0
    sine, cosine = _sine(y, low, x.dtype.bits), _cosine(y, low, x.dtype.bits)
    above = _choose(even, sine, cosine)
    below = _choose(even, cosine, sine)
    if low is None:
        value = ((above[0] + above[1]) / (below[0] + below[1])).cast(x.dtype)
    else:
        numerator, numerator_low = fast_two_sum(*above)
        denominator, denominator_low = fast_two_sum(*below)
        inverse = 1.0 / denominator
        value = numerator * inverse
        remainder = fma(-value, denominator, numerator)
        remainder = remainder + fma(-value, denominator_low, numerator_low)
        value = fma(remainder, inverse, value)
    sign = _quadrant_sign(quadrant << 1) ^ sign_of(x)  # an odd quadrant is negative
    return (value.bits ^ sign).bitcast(x.dtype)


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
