"""sin, cos, tan and atan, in spelled operations, for float32 and float64."""

from __future__ import annotations

from treadle.ir import polynomials
from treadle.ir.angles import reduce
from treadle.ir.formula import Value, fma, polynomial, where
from treadle.ir.transcendental import absolute, sign_of, with_sign_of

# pi/4 in two parts
PI_OVER_4 = {
    32: (0.7853981852531433, -2.1855694e-08),
    64: (0.7853981633974483, 3.061616997868383e-17),
}


def _sin_cos(y: Value, low: Value | None, bits: int) -> tuple[Value, Value]:
    """sin(y + low) and cos(y + low) for y in +-pi/4, as good as a float of so many bits asks."""
    square = y * y
    cube = square * y
    sine_tail = polynomial(square, polynomials.SIN[bits])
    cosine_tail = polynomial(square, (-0.5, *polynomials.COS[bits]))
    if low is None:
        return fma(cube, sine_tail, y), fma(square, cosine_tail, 1.0)
    # sin' = cos, about 1 - y^2/2; cos' = -sin, about -y
    sine = y + fma(cube, sine_tail, fma(low * -0.5, square, low))
    return sine, 1.0 + fma(square, cosine_tail, -(low * y))


def _quadrant_sign(quadrant: Value) -> Value:
    """The sign bit that the second bit of the quadrant gives."""
    return (quadrant & 2) << (quadrant.dtype.bits - 2)


def sin(x: Value) -> Value:
    """sin or cos of the rest, and the sign of x and of the quadrant."""
    y, low, quadrant = reduce(absolute(x))
    sine, cosine = _sin_cos(y.cast(x.dtype), low, x.dtype.bits)
    value = where((quadrant & 1) == 0, sine, cosine)
    return (value.bits ^ _quadrant_sign(quadrant) ^ sign_of(x)).bitcast(x.dtype)


def cos(x: Value) -> Value:
    """The sine a quadrant later."""
    y, low, quadrant = reduce(absolute(x))
    sine, cosine = _sin_cos(y.cast(x.dtype), low, x.dtype.bits)
    value = where((quadrant & 1) == 0, cosine, sine)
    return (value.bits ^ _quadrant_sign(quadrant + 1)).bitcast(x.dtype)


def tan(x: Value) -> Value:
    """sin/cos of the rest, or -cos/sin: three roundings, so for float32 all is done in float64."""
    y, low, quadrant = reduce(absolute(x))
    sine, cosine = _sin_cos(y, low, x.dtype.bits)
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
