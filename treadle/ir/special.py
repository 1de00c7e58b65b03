"""erfc, the normal distribution, erfinv, lgamma and digamma, in spelled operations, for float32
and float64.

Written as the functions in `transcendental.py`, and of them; `polynomials.py` has the coefficients.
"""

from __future__ import annotations

from math import inf, log, nan, pi, sqrt

from treadle.ir import ops, polynomials, transcendental
from treadle.ir.formula import Value, fma, polynomial, rint, two_product, where
from treadle.ir.transcendental import (
    absolute,
    exp_polynomial,
    format_of,
    reduce_exp,
    scale,
    with_sign_of,
)

ERFC_MIDDLE = {32: 2.0, 64: 4.0}
ERFC_ZERO = {32: 10.2, 64: 27.3}  # from here on erfc is 0
NORMAL_ZERO = 5.6  # further below 0, the normal distribution of a float32 is less than 2^-26
ERFINV_FAR = 5.0  # from this -ln(1 - x^2) on the polynomial is in its square root
GAMMA_FAR = 8.0  # from here on Stirling's series is good enough


def erfc(x: Value) -> Value:
    """e^(-a^2) p(t) / (1 + 2a) with t = (a - c)/(a + c), for a = |x|; 2 - that below 0. What a * a
    loses by rounding goes into the exponential."""
    bits = x.dtype.bits
    a = absolute(x)
    is_zero = a > ERFC_ZERO[bits]
    a = where(is_zero, ERFC_ZERO[bits], a)
    middle = ERFC_MIDDLE[bits]
    t = (a - middle) / (a + middle)
    square, low = two_product(a, a)
    r, exponent = reduce_exp(-square, 2 * format_of(x).bias)
    quotient = polynomial(t, polynomials.ERFC[bits]) / fma(a, 2.0, 1.0)
    value = scale(exp_polynomial(r - low) * quotient, exponent, is_zero)
    return where(x < 0.0, 2.0 - value, value)


def normal_cdf(x: Value) -> Value:
    """The normal distribution function, to the precision of 1: what x times it needs. Of a float32,
    2^p(-|x|) below 0, and 1 - 2^p(-|x|) above."""
    if x.dtype.bits == 64:
        return fma(transcendental.erf(x * sqrt(0.5)), 0.5, 0.5)
    a = absolute(x)
    tail = transcendental.exp2_normal(polynomial(a, polynomials.NORMAL_TAIL[32]))
    tail = where(a > NORMAL_ZERO, 0.0, tail)
    return where(x < 0.0, tail, 1.0 - tail)


def erfinv(x: Value) -> Value:
    """x p(w) with w = -ln(1 - x^2), or x p(sqrt(w)) where that is large. Of a float64 it is a start
    for one step of Halley's, which triples the digits."""
    bits = x.dtype.bits
    a = absolute(x)
    w = -transcendental.log(fma(-a, a, 1.0))
    root = Value(ops.SQRT(w.node))
    near = polynomial(w, polynomials.ERFINV_NEAR[bits])
    far = polynomial(root - 3.0, polynomials.ERFINV_FAR[bits])
    y = a * where(w < ERFINV_FAR, near, far)
    if bits == 64:
        # erf(y) - a: far out by erfc, because 1 - a is exact there and erf has lost the digits
        excess = where(a < 0.5, transcendental.erf(y) - a, (1.0 - a) - erfc(y))
        step = excess * transcendental.exp(y * y) * (sqrt(pi) / 2)
        y = y - step / fma(y, step, 1.0)
    y = where(a == 1.0, inf, y)
    return with_sign_of(absolute(where(a > 1.0, nan, y)), x)


def _half_turn(r: Value) -> tuple[Value, Value]:
    """sin(pi r) and cos(pi r) for |r| <= 1/2, from the sine and the cosine of half the angle."""
    bits = r.dtype.bits
    y = r * (pi / 2)
    square = y * y
    sine = fma(y * square, polynomial(square, polynomials.SIN[bits]), y)
    cosine = fma(square, polynomial(square, (-0.5, *polynomials.COS[bits])), 1.0)
    return (sine + sine) * cosine, (cosine - sine) * (cosine + sine)


def _log_gamma(z: Value) -> Value:
    """ln |gamma(z)| for z >= -1/2.

    From 8 on by Stirling's series. Below, with t = z - m between -1/2 and 1/2 for a whole m, it is
    ln gamma(2 + t), a polynomial with the zero of gamma's logarithm at 2 taken out, and the
    logarithm of the product of the factors in between.
    """
    bits = z.dtype.bits
    large = z >= GAMMA_FAR
    v = where(large, 2.0, z)
    product = where(v < 1.5, where(v < 0.5, v * (v + 1.0), v), 1.0)
    whole = where(v < 1.5, where(v < 0.5, v.like(0.0), 1.0), v.like(2.0))
    for n in range(1, 7):
        further = v >= n + 1.5
        product = where(further, product * (v - n), product)
        whole = where(further, n + 2.0, whole)
    t = v - whole
    logarithm = transcendental.log(where(large, z, absolute(product)))
    below = fma(
        t, polynomial(t, polynomials.LOG_GAMMA[bits]), where(v < 1.5, -logarithm, logarithm)
    )
    inverse = 1.0 / z
    series = inverse * polynomial(inverse * inverse, polynomials.STIRLING[bits])
    above = fma(z - 0.5, logarithm - 1.0, series + (log(2 * pi) - 1) / 2)
    return where(large, above, below)


def lgamma(x: Value) -> Value:
    """ln |gamma(x)|; below -1/2 by gamma(-a) gamma(a) = -pi / (a sin(pi a)). Far below 0 every
    number is whole, and a pole."""
    a = absolute(x)
    pole = rint(a) == a
    reflected = x < -0.5
    direct = _log_gamma(where(reflected, a, x))
    sine, _ = _half_turn(absolute(a - rint(a)))
    mirror = (log(pi) - transcendental.log(a * sine)) - direct
    return where(reflected, where(pole, inf, mirror), direct)


def digamma(x: Value) -> Value:
    """The derivative of ln gamma: from 8 on ln(z) - 1/(2z) - p(1/z^2)/z^2; below, of z + 8, less
    1/z + 1/(z + 1) + .. + 1/(z + 7), whose sum is one quotient; below 0 by
    digamma(1 - x) - digamma(x) = pi / tan(pi x)."""
    reflected = x < 0.0
    z = where(reflected, 1.0 - x, x)
    small = z < GAMMA_FAR
    v = where(small, z, 1.0)
    # 1/(v + n) + 1/(v + 7 - n) is (2v + 7) / (w + n (7 - n)) with w = v (v + 7)
    w = v * (v + (GAMMA_FAR - 1))
    numerator, denominator = v.like(1.0), w
    for n in range(1, int(GAMMA_FAR) // 2):
        factor = w + n * (GAMMA_FAR - 1 - n)
        numerator = fma(numerator, factor, denominator)
        denominator = denominator * factor
    shift = fma(v, 2.0, GAMMA_FAR - 1) * (numerator / denominator)
    far = where(small, z + GAMMA_FAR, z)
    inverse = 1.0 / far
    square = inverse * inverse
    series = fma(square, polynomial(square, polynomials.DIGAMMA[x.dtype.bits]), inverse * 0.5)
    value = transcendental.log(far) - series
    value = where(small, value - shift, value)
    r = x - rint(x)
    sine, cosine = _half_turn(r)
    pole = where(r == 0.0, nan, cosine / sine)
    return where(reflected, fma(pole, -pi, value), value)
