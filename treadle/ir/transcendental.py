"""exp, log, tanh, erf, pow and their kin, in spelled operations, for float32 and float64.

The plan is the same in each: bring the argument into a small interval exactly (a sum or product
with a power of two), evaluate a polynomial there (`polynomials.py`), undo the first step with as
few roundings as will do. `docs/numerics.md` has the errors reached; `tools/ulp.py` measures them.

Comparisons are written so that NaN falls through to a result that is NaN.
"""

from __future__ import annotations

from math import inf, nan
from typing import NamedTuple

from treadle.ir import polynomials
from treadle.ir.dtype import DType, uint32, uint64
from treadle.ir.formula import (
    Number,
    Pair,
    Value,
    fast_two_sum,
    fma,
    polynomial,
    trunc,
    two_product,
    where,
)


class Format(NamedTuple):
    """What the formulas need to know of a binary floating type: its layout, constants in one or
    two parts, and where a function's other cases begin."""

    unsigned: DType
    mantissa: int  # stored bits of it
    bias: int  # of the exponent
    root_half_bits: int  # the bits of sqrt(1/2)
    log2e: float
    ln2_high: float  # so few bits that the product with an exponent is exact
    ln2_low: float
    two_over_ln2: tuple[float, float]
    exp_range: tuple[float, float]  # below it e^x is 0, above it is inf
    exp2_range: tuple[float, float]
    expm1_minus_one: float  # below it, e^x - 1 is -1
    tiny_square: float  # where x^2 is less, f(x) = x for an f with f(0) = 0 and slope 1
    tanh_one: float  # above it, tanh is 1
    erf_edge: float  # from here on erf is computed as 1 - erfc
    erf_middle: float
    erf_one: float  # above it, erf is 1

    @property
    def round_magic(self) -> float:
        """x + this - this is x to the nearest whole number, which stands in the sum's low bits."""
        return 1.5 * 2.0**self.mantissa

    @property
    def smallest_normal(self) -> float:
        return 2.0 ** (1 - self.bias)

    @property
    def one_bits(self) -> int:
        return self.bias << self.mantissa

    @property
    def whole_bits(self) -> int:
        """The bits of 2^mantissa: or-ed into a small integer they make a float larger by it."""
        return (self.bias + self.mantissa) << self.mantissa

    @property
    def sign_bit(self) -> int:
        return 1 << (self.unsigned.bits - 1)


TANH_EDGE = 0.55  # where tanh passes 1/2

FORMATS: dict[int, Format] = {
    32: Format(
        unsigned=uint32,
        mantissa=23,
        bias=127,
        root_half_bits=0x3F3504F3,
        log2e=1.4426950408889634,
        ln2_high=0.693145751953125,
        ln2_low=1.428606765330187e-06,
        two_over_ln2=(2.885390043258667, 3.851926067e-08),
        exp_range=(-104.0, 89.0),
        exp2_range=(-151.0, 129.0),
        expm1_minus_one=-18.0,
        tiny_square=2.0**-50,
        tanh_one=10.0,
        erf_edge=0.92,
        erf_middle=0.0,
        erf_one=4.0,
    ),
    64: Format(
        unsigned=uint64,
        mantissa=52,
        bias=1023,
        root_half_bits=0x3FE6A09E667F3BCD,
        log2e=1.4426950408889634,
        ln2_high=0.6931471806019545,
        ln2_low=-4.2009150726810846e-11,
        two_over_ln2=(2.8853900817779268, 4.0710547481862066e-17),
        exp_range=(-746.0, 710.0),
        exp2_range=(-1076.0, 1025.0),
        expm1_minus_one=-38.0,
        tiny_square=2.0**-108,
        tanh_one=20.0,
        erf_edge=0.75,
        erf_middle=1.0,
        erf_one=5.95,
    ),
}


def format_of(x: Value) -> Format:
    """The format of a float32 or float64."""
    return FORMATS[x.dtype.bits]


def clamp(x: Value, low: Number, high: Number) -> Value:
    """x brought into [low, high]; NaN stays NaN."""
    x = where(x < low, low, x)
    return where(x > high, high, x)


def absolute(x: Value) -> Value:
    """|x|, by its bits."""
    return (x.bits & (format_of(x).sign_bit - 1)).bitcast(x.dtype)


def sign_of(x: Value) -> Value:
    """The sign bit of x, in its place."""
    return x.bits & format_of(x).sign_bit


def with_sign_of(magnitude: Value, x: Value) -> Value:
    """The magnitude, whose sign bit is not set, with the sign of x."""
    return (magnitude.bits | sign_of(x)).bitcast(x.dtype)


# ---- powers of two -------------------------------------------------------------------------------


def power_of_two(biased: Value, dtype: DType) -> Value:
    """2^n from n + bias in the low bits of an integer; bits above the exponent's are lost."""
    return (biased << FORMATS[dtype.bits].mantissa).bitcast(dtype)


def scale(x: Value, twice_biased: Value, is_zero: Value | None = None) -> Value:
    """x * 2^n from n + 2 bias, in two factors: so a result below the normal numbers is rounded
    once, one above the largest is inf, and every n that a float's exponent can be is right.

    is_zero: where the result is 0. A factor of 0 gives it at once; that it is too small for a
    number costs some processors a hundred cycles to find out (a masked softmax took 5 times as
    long)."""
    half = twice_biased >> 1
    last = power_of_two(twice_biased - half, x.dtype)
    if is_zero is not None:
        last = where(is_zero, 0.0, last)
    return x * power_of_two(half, x.dtype) * last


def reduce_exp(x: Value, bias: int) -> tuple[Value, Value]:
    """r, |r| <= ln(2)/2, and n + bias in the low bits of an integer, with x = n ln(2) + r."""
    form = format_of(x)
    magic = form.round_magic + bias
    shifted = fma(x, form.log2e, magic)
    n = shifted - magic
    r = fma(n, -form.ln2_high, x)  # exact
    return fma(n, -form.ln2_low, r), shifted.bits


def exp_polynomial(r: Value) -> Value:
    return polynomial(r, (1.0, 1.0, *polynomials.EXP[r.dtype.bits]))


def exp(x: Value) -> Value:
    """e^x = 2^n e^r."""
    form = format_of(x)
    r, exponent = reduce_exp(clamp(x, *form.exp_range), 2 * form.bias)
    return scale(exp_polynomial(r), exponent, x < form.exp_range[0])


def _exp_normal(x: Value) -> Value:
    """e^x where the result is a normal number."""
    r, exponent = reduce_exp(x, format_of(x).bias)
    return exp_polynomial(r) * power_of_two(exponent, x.dtype)


def exp2(x: Value) -> Value:
    """2^x = 2^n 2^r."""
    limits = format_of(x).exp2_range
    return _exp2_sum(clamp(x, *limits), None, x < limits[0])


def _exp2_sum(high: Value, low: Value | None, is_zero: Value) -> Value:
    """2^(high + low), for a high that is in range; 0 where `is_zero`."""
    form = format_of(high)
    magic = form.round_magic + 2 * form.bias
    shifted = high + magic
    r = high - (shifted - magic)  # exact
    if low is not None:
        r = r + low
    return scale(polynomial(r, (1.0, *polynomials.EXP2[r.dtype.bits])), shifted.bits, is_zero)


def exp2_normal(x: Value) -> Value:
    """2^x where the result is a normal number."""
    form = format_of(x)
    magic = form.round_magic + form.bias
    shifted = x + magic
    r = x - (shifted - magic)  # exact
    power = power_of_two(shifted.bits, x.dtype)
    return polynomial(r, (1.0, *polynomials.EXP2[r.dtype.bits])) * power


def _expm1_polynomial(r: Value) -> Value:
    """e^r - 1 = r + r^2 p(r)."""
    return fma(r * r, polynomial(r, polynomials.EXP[r.dtype.bits]), r)


def expm1(x: Value) -> Value:
    """2^n (e^r - 1) + (2^n - 1), with half of 2^n because 2^n may be too large."""
    form = format_of(x)
    r, exponent = reduce_exp(clamp(x, form.expm1_minus_one, form.exp_range[1]), form.bias - 1)
    half = power_of_two(exponent, x.dtype)
    halved = fma(_expm1_polynomial(r), half, half - 0.5)
    return where(x * x < form.tiny_square, x, halved + halved)


def tanh(x: Value) -> Value:
    """x + x^3 p(x^2) up to where it is 1/2; beyond, 1 - 2/(e^2|x| + 1) with the sign of x."""
    form = format_of(x)
    a = absolute(x)
    square = a * a
    near = fma(a * square, polynomial(square, polynomials.TANH[x.dtype.bits]), a)
    limited = where(a > form.tanh_one, form.tanh_one, a)
    far = 1.0 - 2.0 / (_exp_normal(limited + limited) + 1.0)
    return with_sign_of(where(a < TANH_EDGE, near, far), x)


# ---- logarithms ----------------------------------------------------------------------------------


def _split_bits(x: Value) -> tuple[Value, Value]:
    """Of a positive normal x: m in [sqrt(1/2), sqrt(2)) and 2^mantissa + bias + e, x = m 2^e."""
    form = format_of(x)
    shifted = x.bits + (form.one_bits - form.root_half_bits)
    m = (shifted & ((1 << form.mantissa) - 1)) + form.root_half_bits
    biased = (shifted >> form.mantissa) | form.whole_bits
    return m.bitcast(x.dtype), biased.bitcast(x.dtype)


def _split(x: Value) -> tuple[Value, Value]:
    """Of a positive x: m in [sqrt(1/2), sqrt(2)) and the whole number e, x = m 2^e."""
    form = format_of(x)
    lift = form.mantissa + 1  # makes numbers below the normal ones normal
    tiny = x < form.smallest_normal
    m, biased = _split_bits(where(tiny, x * 2.0**lift, x))
    offset = 2.0**form.mantissa + form.bias
    return m, biased - where(tiny, x.like(offset + lift), offset)


def _atanh_parts(f: Value) -> tuple[Value, Value]:
    """-f^2/2 and the rest of ln(1 + f) - f.

    ln(1 + f) = 2 atanh(s) with s = f/(2 + f), and 2s = f - f^2/2 + s f^2/2.
    """
    s = f / (f + 2.0)
    z = s * s
    half_square = f * f * 0.5
    rest = z * polynomial(z, polynomials.ATANH[f.dtype.bits])
    return -half_square, s * (half_square + (rest + rest))


def _log_sum(f: Value, e: Value) -> Value:
    """ln(1 + f) + e ln(2), for 1 + f between sqrt(1/2) and sqrt(2)."""
    form = format_of(f)
    low = e * form.ln2_low
    if f.dtype.bits == 32:
        tail = fma(f * f, polynomial(f, polynomials.LOG[32]), low)
    else:
        square, rest = _atanh_parts(f)
        tail = square + (rest + low)
    return fma(e, form.ln2_high, f + tail)


def _log_special(x: Value, low: Number, value: Value) -> Value:
    """The logarithm's value with its cases: -inf at `low`, NaN below; inf and NaN are kept."""
    value = where(x < inf, value, x)
    value = where(x == low, -inf, value)
    return where(x < low, nan, value)


def log(x: Value) -> Value:
    """ln(m 2^e)."""
    m, e = _split(x)
    return _log_special(x, 0.0, _log_sum(m - 1.0, e))


def log2(x: Value) -> Value:
    """e + f/ln(2) + log2(1 + f) - f/ln(2), with f/ln(2) in two parts."""
    m, e = _split(x)
    f = m - 1.0
    high, low = (part / 2 for part in format_of(x).two_over_ln2)
    product, error = two_product(f, f.like(high))
    error = fma(f, low, error)
    if x.dtype.bits == 32:
        tail = fma(f * f, polynomial(f, polynomials.LOG2[32]), error)
    else:
        square, rest = _atanh_parts(f)
        tail = fma(square + rest, high, error)
    return _log_special(x, 0.0, e + (product + tail))


def log1p(x: Value) -> Value:
    """ln((1 + f) 2^e) with 1 + f = (1 + x) 2^-e, where f is rounded once."""
    form = format_of(x)
    # a quarter of all, because 2^-e may be too small
    quarter = x * 0.25
    _, biased = _split_bits(fma(x, 0.25, 0.25))
    inverse = power_of_two((2 * form.bias) - biased.bits, x.dtype)
    f = fma(quarter, inverse, fma(inverse, 0.25, -1.0))
    e = biased - (2.0**form.mantissa + form.bias - 2)
    value = _log_special(x, -1.0, _log_sum(f, e))
    return where(x * x < form.tiny_square, x, value)


# ---- pow -----------------------------------------------------------------------------------------


def _log2_pair(x: Value) -> Pair:
    """log2 of a positive finite x to about one and a half times the precision of its dtype.

    log2(m 2^e) = e + 2/ln(2) atanh(s) with s = (m - 1)/(m + 1), and
    atanh(s) = s + s z (c + z p(z)) with z = s^2.
    """
    form = format_of(x)
    m, e = _split(x)
    f = m - 1.0
    d, d_low = fast_two_sum(x.like(1.0), m)
    inverse = 1.0 / d
    s = f * inverse
    s_low = fma(-s, d_low, fma(-s, d, f)) * inverse
    z, z_low = two_product(s, s)
    z_low = fma(s + s, s_low, z_low)
    first, *rest = polynomials.ATANH[x.dtype.bits]
    c, c_low = fast_two_sum(x.like(first), z * polynomial(z, tuple(rest)))
    w, w_low = two_product(z, c)
    w_low = fma(z, c_low, fma(z_low, c, w_low))
    cube, cube_low = two_product(s, w)
    cube_low = fma(s, w_low, fma(s_low, w, cube_low))
    high, low = fast_two_sum(s, cube)
    low = low + (cube_low + s_low)
    factor, factor_low = form.two_over_ln2
    product, product_low = two_product(high, x.like(factor))
    product_low = fma(low, factor, fma(high, factor_low, product_low))
    total, total_low = fast_two_sum(e, product)
    return total, total_low + product_low


def power(x: Value, y: Value) -> Value:
    """2^(y log2|x|), with the cases of IEEE 754's pow."""
    form = format_of(x)
    a = absolute(x)
    logarithm, logarithm_low = _log2_pair(a)
    exponent, error = two_product(y, logarithm)
    error = fma(y, logarithm_low, error)
    low, high = form.exp2_range
    clamped = clamp(exponent, low, high)
    error = where(clamped == exponent, error, 0.0)
    value = _exp2_sum(clamped, error, exponent < low)
    # where a or |y| is at an end, so is the result, or it is 1
    extreme = (a == 0.0) | (a == inf) | (absolute(y) == inf)
    end = where((a < 1.0) ^ (y < 0.0), x.like(0.0), inf)
    value = where(a == 1.0, 1.0, where(extreme, end, value))
    # of a negative x, y must be whole, and odd to give the sign
    half = y * 0.5
    whole = trunc(y) == y
    odd = whole & (trunc(half) != half)
    value = where(odd, with_sign_of(value, x), value)
    value = where((x < 0.0) & (a < inf) & ~whole, nan, value)
    value = where((x != x) | (y != y), x + y, value)
    return where((y == 0.0) | (x == 1.0), 1.0, value)


# ---- erf -----------------------------------------------------------------------------------------


def erf(x: Value) -> Value:
    """x + x p(x^2) near 0; elsewhere 1 - e^-q(|x|) with the sign of x."""
    form = format_of(x)
    bits = x.dtype.bits
    a = absolute(x)
    near = fma(a, polynomial(a * a, polynomials.ERF_NEAR[bits]), a)
    limited = where(a > form.erf_one, form.erf_one, a)
    if form.erf_middle:
        limited = limited - form.erf_middle
    far = 1.0 - _exp_normal(-polynomial(limited, polynomials.ERF_FAR[bits]))
    return with_sign_of(where(a < form.erf_edge, near, far), x)
