"""Tensors made from nothing but numbers. `dtype` is float32 unless given or decided by integers."""

from __future__ import annotations

import math
from typing import Any

from treadle.graph import shapes
from treadle.graph.build import alu, cast, const, expand, iota, reshape, where
from treadle.graph.constants import number
from treadle.graph.elementwise import add, div, eq, lt, mul, sub
from treadle.graph.public import public
from treadle.graph.shapes import Dim, as_dim, as_shape, check_sizes, text
from treadle.ir import ops
from treadle.ir.dtype import DType, float32, float64, int64
from treadle.ir.node import Node, Shape


@public("full", source="PyTorch", namespace=True, kind="creates")
def full(size: Any, fill_value: Any, *, dtype: DType | None = None) -> Node:
    """A tensor of a shape filled with one number (or the element of a 0-d tensor), which decides
    the dtype unless one is given.

    >>> Tensor.full((2,), 7)
    Tensor([7, 7])
    """
    return _filled(fill_value, dtype, check_sizes(as_shape(size), "full"))


def _filled(value: Any, dtype: DType | None, shape: Shape) -> Node:
    """A tensor of a shape filled with a number. TypeError if it is none."""
    if isinstance(value, (bool, int, float, complex)):
        return number(value, dtype, shape)
    if isinstance(value, Node) and value.shape == ():
        return expand(cast(value, dtype or value.dtype), shape)
    raise TypeError(f"fill_value is a number or a 0-d tensor, not {shapes.words(value)}")


@public("zeros", source="PyTorch", namespace=True, kind="creates", aliases=("empty",))
def zeros(*size: Any, dtype: DType | None = None) -> Node:
    """A tensor of zeros. (`empty` is zeros too: there is no memory without values.)

    >>> Tensor.zeros(2, dtype="int8")
    Tensor([0, 0], dtype=int8)
    """
    return const(0, dtype or float32, check_sizes(as_shape(*size), "zeros"))


@public("ones", source="PyTorch", namespace=True, kind="creates")
def ones(*size: Any, dtype: DType | None = None) -> Node:
    """A tensor of ones.

    >>> Tensor.ones(2, 3)
    Tensor([[1., 1., 1.],
            [1., 1., 1.]])
    """
    return const(1, dtype or float32, check_sizes(as_shape(*size), "ones"))


@public("zeros_like", source="PyTorch", namespace=True, kind="like", aliases=("empty_like",))
def zeros_like(x: Node, *, dtype: DType | None = None) -> Node:
    """Zeros in the shape of x, and of its dtype unless one is given.

    >>> Tensor([5, 6]).zeros_like()
    Tensor([0, 0])
    """
    return const(0, dtype or x.dtype, x.shape)


@public("ones_like", source="PyTorch", namespace=True, kind="like")
def ones_like(x: Node, *, dtype: DType | None = None) -> Node:
    """Ones in the shape of x, and of its dtype unless one is given.

    >>> Tensor([5, 6]).ones_like()
    Tensor([1, 1])
    """
    return const(1, dtype or x.dtype, x.shape)


@public("full_like", source="PyTorch", namespace=True, kind="like")
def full_like(x: Node, fill_value: Any, *, dtype: DType | None = None) -> Node:
    """One number (or the element of a 0-d tensor) in the shape of x, and of its dtype unless one is
    given.

    >>> Tensor([1.0, 2.0]).full_like(7)
    Tensor([7., 7.])
    """
    return _filled(fill_value, dtype or x.dtype, x.shape)


@public("eye", source="PyTorch", kind="creates")
def eye(n: Dim, m: Dim | None = None, *, dtype: DType | None = None) -> Node:
    """The matrix of n rows and m columns (n unless given) with ones on its diagonal.

    >>> Tensor.eye(2)
    Tensor([[1., 0.],
            [0., 1.]])
    """
    rows, columns = check_sizes((as_dim(n), as_dim(n if m is None else m)), "eye")
    row, column = iota(rows, int64), iota(columns, int64)
    return cast(eq(reshape(row, (rows, 1)), reshape(column, (1, columns))), dtype or float32)


@public("arange", source="PyTorch", namespace=True, kind="creates")
def arange(start: Any, end: Any = None, step: Any = 1, *, dtype: DType | None = None) -> Node:
    """start, start + step .. up to, without, `end`; with one number, from 0 up to it. int64 if all
    numbers are ints, else float32. An integer `dtype` truncates start and step, of which there are
    as many as of the floats; int64 truncates all three first.

    >>> Tensor.arange(2, 8, 3)
    Tensor([2, 5])
    """
    if end is None:
        start, end = 0, start
    if step == 0:
        raise ValueError("arange: step must not be 0")
    if dtype is int64:
        start, end, step = (int(n) if isinstance(n, float) else n for n in (start, end, step))
        if step == 0:
            raise ValueError("arange: of int64 step is truncated, and must not become 0")
    if any(isinstance(number, float) for number in (start, end, step)):
        span = (float(end) - float(start)) / float(step)
        if not math.isfinite(span):
            raise ValueError(f"arange: {start}, {end}, {step} do not give a number of elements")
        count = max(0, math.ceil(span))
        if dtype is None or not dtype.is_int:
            return _line(count, float(start), float(step), dtype or float32)
        return _integers(count, int(start), int(step), dtype)
    first, last, stride = as_dim(start), as_dim(end), as_dim(step)
    if not isinstance(first, int) or not isinstance(stride, int):
        raise TypeError("arange: start and step are numbers; only end may be a Variable")
    span = shapes.subtract(last, first) if stride > 0 else shapes.subtract(first, last)
    size = shapes.greatest(0, shapes.divide_up(span, abs(stride)))
    wanted = dtype or int64
    if not wanted.is_int:
        return cast(_line(size, float(first), float(stride), wanted), wanted)
    return _integers(size, first, stride, wanted)


def _integers(size: Dim, first: int, stride: int, dtype: DType) -> Node:
    """first + i * stride. OverflowError if the last of a known number does not fit."""
    if isinstance(size, int) and size:
        const(first + (size - 1) * stride, dtype)
    numbers = iota(size, dtype) if stride == 1 else cast(mul(iota(size, int64), stride), dtype)
    return add(numbers, first)


def _line(count: Dim, start: float, step: float, dtype: DType) -> Node:
    """start + i * step, rounded once (and again for half and bfloat16, computed in float32)."""
    wide = dtype.accumulator if dtype.is_float else float32
    numbers = cast(iota(count, int64), wide)
    return cast(alu(ops.FMA, numbers, step, start), dtype)


def _end(number: Any, dtype: DType) -> Node:
    """Where a line begins or ends: a number, or a 0-d tensor."""
    if isinstance(number, Node) and number.shape:
        raise ValueError(f"linspace: the ends are 0-d tensors, not of shape {text(number.shape)}")
    return cast(number, dtype) if isinstance(number, Node) else const(float(number), dtype)


@public("linspace", source="PyTorch", kind="creates")
def linspace(start: Any, end: Any, steps: int, *, dtype: DType | None = None) -> Node:
    """`steps` numbers at equal distances from `start` to exactly `end`, which are numbers or 0-d
    tensors.

    >>> Tensor.linspace(0, 1, 5)
    Tensor([0.  , 0.25, 0.5 , 0.75, 1.  ])
    """
    count = as_dim(steps)
    if not isinstance(count, int) or count < 0:
        raise ValueError(f"linspace: steps is a number of 0 or more, not {shapes.words(steps)}")
    wanted = dtype or float32
    wide = wanted.accumulator if wanted.is_float else float64
    first, last = (_end(each, wide) for each in (start, end))
    if count < 2:
        return cast(expand(first, (count,)), wanted)
    step = div(sub(last, first), count - 1)
    position = iota(count, int64)
    up = alu(ops.FMA, cast(position, wide), step, first)
    down = alu(ops.FMA, cast(sub(position, count - 1), wide), step, last)
    return cast(where(lt(position, count // 2), up, down), wanted)
