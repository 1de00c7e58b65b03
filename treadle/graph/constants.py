"""Constants, and how a tensor of few elements is stretched: what every graph starts from.

`build.py` hands all of this on.
"""

from __future__ import annotations

import math
import sys
from functools import lru_cache
from typing import Any

import numpy as np

from treadle.graph.parts import by_parts, complex_of
from treadle.graph.weak import weak_dtype
from treadle.ir import meaning, ops
from treadle.ir.dtype import DType, float64, int64, uint64
from treadle.ir.node import Node, Shape

LARGEST = int(sys.float_info.max)
quiet_cast = meaning.quiet(meaning.cast)


def spelled(value: Any) -> str:
    """A number in a message: of an int of many digits how long it is."""
    is_long = isinstance(value, int) and value.bit_length() > 128
    return f"an int of {value.bit_length()} bits" if is_long else f"{value}"


def is_beyond(value: Any, dtype: DType) -> bool:
    """Whether a Python int is below, or above, all finite numbers of a dtype: of floats, those of
    the widest, for Python has no int that is infinite."""
    if not isinstance(value, int):
        return False
    if dtype.is_int:
        return not dtype.min <= value <= dtype.max
    return dtype.is_inexact and abs(value) > LARGEST


def const(value: bool | int | float | complex, dtype: DType, shape: Shape = ()) -> Node:
    """A constant of a shape. OverflowError for a Python int that does not fit an integer dtype; a
    float becomes an integer as `cast` does it (truncated, saturated, NaN gives 0)."""
    if dtype.kind == "c":
        pair = complex(value) if isinstance(value, complex) else complex(_float(value))
        return complex_of(const(pair.real, dtype.real, shape), const(pair.imag, dtype.real, shape))
    if isinstance(value, complex):
        raise TypeError(f"the complex number {value} does not fit {dtype}")
    node = _scalar(value, dtype, value == 0 and math.copysign(1, value) < 0)
    return stretch(node, shape) if shape else node


def _float(value: bool | int | float) -> float:
    """A number as a float. OverflowError for an int that is larger than all of them."""
    try:
        return float(value)
    except OverflowError:
        raise OverflowError(f"{spelled(value)} is too large for a float") from None


@lru_cache(maxsize=1024, typed=True)
def _scalar(value: bool | int | float, dtype: DType, negative_zero: bool) -> Node:
    """The CONST of shape (). The last argument tells -0.0 from 0.0, which is an equal key."""
    if dtype.is_int:
        if isinstance(value, float):
            value = int(quiet_cast(np.asarray(value), float64, dtype))
        elif not dtype.min <= value <= dtype.max:
            bounds = f"({dtype.min} to {dtype.max})"
            raise OverflowError(f"{spelled(value)} does not fit {dtype} {bounds}")
    elif dtype.is_float:
        _float(value)  # only asked: an int is rounded once, to its own dtype
    with np.errstate(over="ignore"):  # a float that is too large for the dtype is infinite in it
        return Node(ops.CONST, dtype, (), dtype.to_bits(value))


def number(
    value: bool | int | float | complex, dtype: DType | None = None, shape: Shape = ()
) -> Node:
    """The constant of a number that meets no array: bool, int64, float32 or complex64 unless a
    dtype is given. OverflowError for an int that does not fit, with what to do."""
    if dtype is None and isinstance(value, int) and not int64.min <= value <= int64.max:
        hint = "give dtype=uint64" if 0 <= value <= uint64.max else "integers have at most 64 bits"
        raise OverflowError(f"{spelled(value)} does not fit int64: {hint}")
    return const(value, dtype or weak_dtype(None, value), shape)


def constant_of(x: Node) -> Node | None:
    """The CONST that every element of `x` equals, if `x` is a constant that was only stretched."""
    if x.op is ops.EXPAND:
        x = x.src[0]
    if x.op is ops.RESHAPE:
        x = x.src[0]
    return x if x.op is ops.CONST else None


def full_like(x: Node, value: bool | int | float | complex, dtype: DType | None = None) -> Node:
    """A constant of the shape of `x`, and of its dtype unless one is given."""
    return const(value, dtype or x.dtype, x.shape)


def zeros_like(x: Node) -> Node:
    """Zeros of the shape and dtype of `x`."""
    return const(0, x.dtype, x.shape)


def ones_like(x: Node) -> Node:
    """Ones of the shape and dtype of `x`."""
    return const(1, x.dtype, x.shape)


def stretch(x: Node, shape: Shape) -> Node:
    """EXPAND to a shape that is known to fit, after a RESHAPE that adds the leading 1s."""
    if x.dtype.kind == "c":
        return by_parts(lambda part: stretch(part, shape), x)
    missing = len(shape) - len(x.shape)
    if missing:
        ones = (1,) * missing + x.shape
        x = Node(ops.RESHAPE, x.dtype, (x.src[0] if x.op is ops.RESHAPE else x,), ones)
    elif x.op is ops.EXPAND:
        x = x.src[0]  # 1 -> 1 -> n and 1 -> n -> n are 1 -> n
    return x if x.shape == shape else Node(ops.EXPAND, x.dtype, (x,), shape)
