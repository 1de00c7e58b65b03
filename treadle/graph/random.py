"""Random tensors: functions of a key and a shape.

Element number i of a draw is made from the 64 bits Threefry-2x32(counter = i, key), so it depends
on nothing but the key and i. A key is a uint64, an int or a node of shape (); the face takes one
from its sequence when a draw is created.
"""

from __future__ import annotations

import math
from typing import Any

from treadle.graph import shapes
from treadle.graph.build import (
    alu,
    cast,
    const,
    contiguous,
    iota,
    pad,
    reshape,
    where,
)
from treadle.graph.elementwise import add, mul, ne
from treadle.graph.functions import cos, log, sqrt
from treadle.graph.movement import narrow, stack
from treadle.graph.public import public
from treadle.graph.shapes import Axes, Dim, as_dim, as_shape, check_sizes
from treadle.ir import ops
from treadle.ir.dtype import DType, float32, float64, int32, int64, uint32, uint64
from treadle.ir.node import Node, Shape

Key = Any  # int | Node (uint64, shape ())

# The bits of a float's fraction, of which every number k / 2**bits in [0, 1) is exact.
_FRACTION = {
    "float64": 53,
    "float32": 24,
    "float16": 11,
    "bfloat16": 8,
    "float8_e4m3": 4,
    "float8_e5m2": 3,
}


def bits(key: Key, count: Dim, stream: int = 0) -> Node:
    """`count` times 64 random bits. Streams 0, 1 .. of one key are independent: stream s uses the
    counters from s * 2**48 on."""
    known = const(key & (2**64 - 1), uint64) if isinstance(key, int) else key
    if not isinstance(known, Node) or known.dtype is not uint64 or known.shape:
        raise TypeError(f"a random key is an int or a uint64 of shape (), not {shapes.words(key)}")
    counter = add(iota(count, uint64), stream << 48)
    return alu(ops.THREEFRY, counter, known)


def _floating(dtype: DType | None, name: str) -> DType:
    wanted = dtype or float32
    if not wanted.is_float:
        raise TypeError(f"{name} gives floating-point numbers, not {wanted}; use randint")
    return wanted


def _size(size: tuple[Any, ...], name: str) -> Shape:
    return check_sizes(as_shape(*size), name)


def _uniform(key: Key, shape: Shape, dtype: DType, stream: int = 0) -> Node:
    """Uniform on the multiples of 2**-p in [0, 1), exactly: p high bits, for p digits of dtype."""
    digits = _FRACTION[dtype.name]
    whole = alu(ops.RSHIFT, bits(key, shapes.total(shape), stream), 64 - digits)
    small = cast(whole, int64 if digits > 31 else int32)  # signed: what processors convert fast
    return reshape(cast(mul(cast(small, dtype.accumulator), 2.0**-digits), dtype), shape)


@public("rand", source="PyTorch", kind="random", gradient="no")
def rand(key: Key, *size: Any, dtype: DType | None = None) -> Node:
    """Uniform on [0, 1): every multiple of 2**-24 (float64: 2**-53) is equally likely.

    >>> Tensor.rand(2, 3).shape
    (2, 3)
    """
    return _uniform(key, _size(size, "rand"), _floating(dtype, "rand"))


@public("uniform", source="tinygrad", kind="random", gradient="no")
def uniform(
    key: Key, *size: Any, low: float = 0.0, high: float = 1.0, dtype: DType | None = None
) -> Node:
    """Uniform from `low` up to `high`.

    >>> Tensor.uniform(2, 3, low=-1.0, high=1.0).shape
    (2, 3)
    """
    wanted = _floating(dtype, "uniform")
    unit = _uniform(key, _size(size, "uniform"), wanted.accumulator)
    return cast(add(mul(unit, high - low), low), wanted)


@public("randn", source="PyTorch", kind="random", gradient="no")
def randn(key: Key, *size: Any, dtype: DType | None = None) -> Node:
    """Normal numbers of mean 0 and variance 1.

    >>> Tensor.randn(2, 3, dtype="float16").dtype
    float16
    """
    return _normal(key, _size(size, "randn"), _floating(dtype, "randn"))


@public("normal", source="tinygrad", kind="random", gradient="no")
def normal(
    key: Key, *size: Any, mean: float = 0.0, std: float = 1.0, dtype: DType | None = None
) -> Node:
    """Normal numbers of a mean and a standard deviation (0 or more).

    >>> Tensor.normal(2, 3, mean=5.0, std=0.1).shape
    (2, 3)
    """
    wanted = _floating(dtype, "normal")
    if std < 0:
        raise ValueError(f"normal: std must be 0 or more, not {std}")
    drawn = _normal(key, _size(size, "normal"), wanted.accumulator)
    return cast(add(mul(drawn, std), mean), wanted)


def _normal(key: Key, shape: Shape, dtype: DType) -> Node:
    """Box and Muller: sqrt(-2 log u) cos(2 pi v) for uniform u in (0, 1] and v in [0, 1).

    The two halves of one draw are u and v; float64 needs the bits of two draws. (Box and Muller,
    "A note on the generation of random normal deviates", 1958.)
    """
    count = shapes.total(shape)
    if dtype is float64:
        u = add(_uniform(key, (count,), float64, 0), 2.0**-54)
        v = _uniform(key, (count,), float64, 1)
    else:
        drawn = bits(key, count)
        high, low = alu(ops.RSHIFT, drawn, 32), alu(ops.AND, drawn, 0xFFFFFFFF)
        u = add(mul(cast(cast(high, uint32), float32), 2.0**-32), 2.0**-33)
        v = mul(cast(cast(low, uint32), float32), 2.0**-32)
    value = mul(sqrt(mul(log(u), -2.0)), cos(mul(v, 2 * math.pi)))
    return reshape(cast(value, dtype), shape)


@public("randint", source="PyTorch", kind="random", gradient="int")
def randint(
    key: Key, low: int, high: Axes = None, size: Axes = None, *, dtype: DType | None = None
) -> Node:
    """Integers from `low` up to, without, `high`: randint(low, high, size), or randint(high, size)
    from 0. int64 unless `dtype` is given.

    Of a range of r numbers none is more likely than another by more than r / 2**32 (beyond 2**32
    numbers: r / 2**64).

    >>> Tensor.randint(0, 10, (2, 3)).dtype
    int64
    """
    if size is None:
        low, high, size = 0, low, high
    if not isinstance(size, (tuple, list)) or isinstance(high, (tuple, list)) or high is None:
        raise TypeError("randint takes (high, size) or (low, high, size), where size is a tuple")
    span = high - low
    if span < 1:
        raise ValueError(f"randint: there is no integer from {low} up to {high}")
    if span > 2**64:
        raise ValueError(f"randint: from {low} to {high} is more than 64 bits")
    wanted = dtype or int64
    first = const(low, wanted)
    const(high - 1, wanted)  # both ends fit, or OverflowError
    shape = _size((tuple(size),), "randint")
    drawn = bits(key, shapes.total(shape))
    if span <= 2**32:  # the high half of a product of 32 random bits with the number of choices
        choice = alu(ops.RSHIFT, mul(alu(ops.RSHIFT, drawn, 32), span), 32)
    else:
        choice = drawn if span == 2**64 else alu(ops.MOD, drawn, span)
    return reshape(add(cast(choice, wanted), first), shape)


# ---- permutations --------------------------------------------------------------------------------
@public("randperm", source="PyTorch", kind="random", gradient="int")
def randperm(key: Key, n: int, *, dtype: DType | None = None) -> Node:
    """The numbers 0 .. n-1 in random order, int64 unless `dtype` is given.

    Random numbers are sorted whose low bits are the position, so no two are equal.

    >>> Tensor.randperm(4).sort()[0]
    Tensor([0, 1, 2, 3])
    """
    count = as_dim(n)
    if not isinstance(count, int) or count < 0:
        raise ValueError(f"randperm: n is an int of 0 or more, not {shapes.words(n)}")
    wanted = dtype or int64
    if count < 2:
        return iota(count, wanted)
    const(count - 1, wanted)
    digits = (count - 1).bit_length()
    low = (1 << digits) - 1
    tagged = alu(ops.OR, alu(ops.AND, bits(key, count), low ^ (2**64 - 1)), iota(count, uint64))
    size = 1 << digits
    filled = pad(tagged, ((0, size - count),), value=2**64 - 1)
    ordered = narrow(_sorted(filled, digits), 0, 0, count)
    return cast(alu(ops.AND, ordered, low), wanted)


def _sorted(x: Node, digits: int) -> Node:
    """2**digits numbers in ascending order, by Batcher's bitonic network ("Sorting networks and
    their applications", 1968): digits * (digits + 1) / 2 rounds of minima and maxima, each a
    movement and two operations an element."""
    for level in range(digits):
        for distance in range(level, -1, -1):
            x = contiguous(_compared(x, digits, level, distance))
    return x


def _compared(x: Node, digits: int, level: int, distance: int) -> Node:
    """One round: elements 2**distance apart are put in order, ascending in even blocks of
    2**(level + 1) elements and descending in odd ones."""
    size = 1 << digits
    step = 1 << distance
    pairs = reshape(x, (size // (2 * step), 2, step))
    first, second = narrow(pairs, 1, 0, 1), narrow(pairs, 1, 1, 2)
    lesser, greater = alu(ops.MIN, first, second), alu(ops.MAX, first, second)
    block = alu(ops.RSHIFT, iota(size // (2 * step), int32), level - distance)
    falling = reshape(ne(alu(ops.AND, block, 1), 0), (size // (2 * step), 1, 1))
    upper, lower = where(falling, greater, lesser), where(falling, lesser, greater)
    flat = (size // (2 * step), step)
    return reshape(stack(reshape(upper, flat), reshape(lower, flat), dim=1), (size,))
