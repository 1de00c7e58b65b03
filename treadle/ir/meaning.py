"""What the scalar operations mean, as functions of NumPy arrays.

The interpreter runs these on whole arrays and constant folding runs them on 0-d arrays, so there is
one truth for both. Every backend is tested against them. `docs/numerics.md` is this file in prose.
Arguments and results are in the dtype's `compute` type; the caller rounds bfloat16.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from treadle.ir.dtype import DType, bfloat16, from_compute, to_compute

Array = np.ndarray[Any, np.dtype[Any]]
Function = Callable[..., Any]  # of arrays, to an array


def quiet(function: Function) -> Function:
    """Overflow, NaN and division by zero have values in our table; NumPy need not warn of them."""

    def run(*args: Array) -> Any:
        with np.errstate(all="ignore"):
            return function(*args)

    return run


def maximum(a: Array, b: Array) -> Array:
    """The greater; NaN if either is NaN; 0.0 is greater than -0.0."""
    if a.dtype.kind != "f":
        return np.maximum(a, b)
    tie = np.where(np.signbit(a), b, a)
    return np.where(a == b, tie, np.maximum(a, b))


def minimum(a: Array, b: Array) -> Array:
    """The lesser; NaN if either is NaN; -0.0 is less than 0.0."""
    if a.dtype.kind != "f":
        return np.minimum(a, b)
    tie = np.where(np.signbit(a), a, b)
    return np.where(a == b, tie, np.minimum(a, b))


def floor_divide(a: Array, b: Array) -> Array:
    """Integer quotient rounded down; 0 for a zero divisor; INT_MIN // -1 wraps to INT_MIN."""
    safe = np.where(b == 0, np.ones_like(b), b)
    if a.dtype.kind == "i":
        negated = np.where(safe == -1, np.subtract(np.zeros_like(a), a), 0)
        safe = np.where(safe == -1, np.ones_like(b), safe)
        quotient = np.where(b == -1, negated, a // safe)
    else:
        quotient = a // safe
    return np.where(b == 0, np.zeros_like(quotient), quotient).astype(a.dtype)


def floor_modulo(a: Array, b: Array) -> Array:
    """Integer remainder with the sign of the divisor; 0 for a zero divisor or a divisor of -1."""
    unit = (b == 0) | (b == -1) if a.dtype.kind == "i" else b == 0
    safe = np.where(unit, np.ones_like(b), b)
    return np.where(unit, np.zeros_like(a), a % safe).astype(a.dtype)


def truncating_divide(a: Array, b: Array) -> Array:
    """Integer quotient rounded towards zero, for divisors that are valid."""
    quotient, remainder = a // b, a % b
    rounded = quotient + ((remainder != 0) & ((a < 0) != (b < 0)))
    return np.asarray(rounded, a.dtype)


def truncating_modulo(a: Array, b: Array) -> Array:
    """Integer remainder with the sign of the dividend, for divisors that are valid."""
    return np.asarray(a - truncating_divide(a, b) * b, a.dtype)


def shift_left(a: Array, b: Array) -> Array:
    """Bits shifted out are lost; a shift by the width or more, or by less than 0, gives 0."""
    width = a.dtype.itemsize * 8
    valid = (b >= 0) & (b < width)
    return np.where(valid, np.left_shift(a, np.where(valid, b, 0)), 0).astype(a.dtype)


def shift_right(a: Array, b: Array) -> Array:
    """Arithmetic for signed types; a shift out of range gives 0, or -1 of a negative number."""
    width = a.dtype.itemsize * 8
    valid = (b >= 0) & (b < width)
    fill = np.where(a < 0, -1, 0) if a.dtype.kind == "i" else 0
    return np.where(valid, np.right_shift(a, np.where(valid, b, 0)), fill).astype(a.dtype)


def cast(values: Array, source: DType, target: DType) -> Array:
    """Values of `source` as `target`: float to integer truncates, saturates, and NaN gives 0;
    integers wrap; anything to bool asks whether it is not 0 (NaN is not)."""
    if target.kind == "b":
        return np.not_equal(values, 0)
    if source.is_float and target.kind in "iux":
        # the limits as floats: `below` is the first float above the greatest integer
        below = math.ldexp(1.0, target.bits - (target.kind != "u"))
        wide = np.trunc(values.astype(np.float64))
        inside = (wide >= float(target.min)) & (wide < below)
        whole = np.where(inside, wide, 0.0).astype(target.storage)
        whole = np.where(wide >= below, target.storage.type(target.max), whole)
        whole = np.where(wide < float(target.min), target.storage.type(target.min), whole)
        return whole.astype(target.storage)
    if target.is_float and target.bits == 8:  # rounded once, also from float64 and integers
        wide = values if values.dtype.kind == "f" else values.astype(np.float64)
        return to_compute(target, from_compute(target, wide))
    if target.scalar is bfloat16:
        return to_compute(target, from_compute(target, values))
    return values.astype(target.compute)


def fused_multiply_add(a: Array, b: Array, c: Array) -> Array:
    """a * b + c rounded once. float32 through float64 (round to odd makes the second rounding
    exact); float64 through exact rationals, element by element (slow, right)."""
    if a.dtype == np.float64:
        return _exact_fma(*np.broadcast_arrays(a, b, c))
    if a.dtype == np.float16:
        return (a.astype(np.float64) * b.astype(np.float64) + c.astype(np.float64)).astype(a.dtype)
    product = a.astype(np.float64) * b.astype(np.float64)  # exact: 48 bits
    addend = c.astype(np.float64)
    total = product + addend
    # two-sum: the error of the addition; if inexact, force the last bit of the sum to 1 (odd)
    virtual = total - product
    error = (product - (total - virtual)) + (addend - virtual)
    bits = np.atleast_1d(total).view(np.int64).reshape(total.shape)
    toward = np.where((error > 0) == (total > 0), 1, -1)
    inexact = np.isfinite(total) & (error != 0) & ((bits & 1) == 0)
    odd = np.atleast_1d(np.where(inexact, np.where(toward > 0, bits | 1, bits - 1), bits))
    return odd.view(np.float64).reshape(total.shape).astype(a.dtype)


def _exact_fma(a: Array, b: Array, c: Array) -> Array:
    from_float = float.as_integer_ratio
    out = np.empty(a.shape, np.float64)
    for i in np.ndindex(a.shape):
        x, y, z = float(a[i]), float(b[i]), float(c[i])
        plain = x * y + z
        if not (math.isfinite(x) and math.isfinite(y) and math.isfinite(z)):
            out[i] = plain
            continue
        (xn, xd), (yn, yd), (zn, zd) = from_float(x), from_float(y), from_float(z)
        numerator, denominator = xn * yn * zd + zn * xd * yd, xd * yd * zd
        if numerator == 0:
            out[i] = plain
            continue
        try:
            out[i] = numerator / denominator  # Python rounds the quotient of two ints correctly
        except OverflowError:
            out[i] = math.inf if numerator > 0 else -math.inf
    return out


def wide(function: Function) -> Function:
    """A float function computed in float64 and rounded once, so that the interpreter's float32
    is the correctly rounded value whatever NumPy's own loops do."""

    def run(*args: Array) -> Array:
        out = args[0].dtype
        with np.errstate(all="ignore"):
            return np.asarray(function(*(a.astype(np.float64) for a in args))).astype(out)

    return run


_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))


def threefry(counter: Array, key: Array) -> Array:
    """Threefry-2x32 with 20 rounds: uint64 counter and key (each two 32-bit words, low word first)
    to 64 random bits.

    Source: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC11.
    """
    low = np.uint64(0xFFFFFFFF)
    x0, x1 = (counter & low).astype(np.uint32), (counter >> np.uint64(32)).astype(np.uint32)
    k0, k1 = (key & low).astype(np.uint32), (key >> np.uint64(32)).astype(np.uint32)
    keys = (k0, k1, k0 ^ k1 ^ np.uint32(0x1BD11BDA))
    x0, x1 = x0 + keys[0], x1 + keys[1]
    for group in range(5):
        for r in _ROTATIONS[group % 2]:
            x0 = x0 + x1
            x1 = ((x1 << np.uint32(r)) | (x1 >> np.uint32(32 - r))) ^ x0
        x0 = x0 + keys[(group + 1) % 3]
        x1 = x1 + keys[(group + 2) % 3] + np.uint32(group + 1)
    return x0.astype(np.uint64) | (x1.astype(np.uint64) << np.uint64(32))


def complex_of(re: Array, im: Array, dtype: DType) -> Array:
    """The complex numbers of these parts, bit for bit (re + 1j * im would lose infinities)."""
    pair = np.empty(np.shape(re), dtype.storage)
    pair.real, pair.imag = re, im
    return pair


def bitcast(values: Array, source: DType, target: DType) -> Array:
    """The same bits read as another type of the same width."""
    stored = np.asarray(from_compute(source, values), order="C")
    return to_compute(target, stored.view(target.storage))
