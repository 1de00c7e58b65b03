"""Signs, neighbours and comparisons of floats, and small arithmetic compositions.

All broadcast and promote. Integers and bools become float32 where a function is for floats.
"""

from __future__ import annotations

import math

from treadle.graph.build import (
    Operand,
    alu,
    bitcast,
    cast,
    const,
    node_of,
    operands,
    stop_gradient,
    where,
)
from treadle.graph.elementwise import (
    abs_,
    add,
    div,
    eq,
    floats,
    isfinite,
    isnan,
    le,
    logical_and,
    logical_not,
    logical_or,
    lt,
    mul,
    ne,
    neg,
    pow_,
    sub,
)
from treadle.graph.functions import log
from treadle.graph.public import public
from treadle.ir import ops
from treadle.ir.dtype import BY_NAME, DType, bool_, float64, int32
from treadle.ir.node import Node


# ---- signs ---------------------------------------------------------------------------------------
@public("signbit", source="PyTorch", namespace=True, gradient="int")
def signbit(x: Operand) -> Node:
    """Whether the sign is minus: of -0.0 too, and of a NaN that carries it; of integers x < 0.

    >>> Tensor([-0.0, 1.0]).signbit()
    Tensor([ True, False])
    """
    node = node_of(x)
    if node.dtype.is_float:
        return lt(bitcast(stop_gradient(node), BY_NAME[f"int{node.dtype.bits}"]), 0)
    return lt(node, 0) if node.dtype.kind == "i" else const(False, bool_, node.shape)


@public("copysign", source="PyTorch", namespace=True)
def copysign(x: Operand, other: Operand) -> Node:
    """|x| with the sign of `other`, which may be that of a zero. The derivative at x = 0 is 0, and
    so is that by `other`.

    >>> Tensor([1.0, 2.0]).copysign(Tensor([-0.0, 3.0]))
    Tensor([-1.,  2.])
    """
    value, sign = floats(x, other)
    size = abs_(value)
    return where(signbit(sign), neg(size), size)


@public("heaviside", source="PyTorch", gradient="no")
def heaviside(x: Operand, values: Operand) -> Node:
    """0 below 0, 1 above, `values` at 0; 0 for NaN.

    >>> Tensor([-2.0, 0.0, 3.0]).heaviside(Tensor(0.5))
    Tensor([0. , 0.5, 1. ])
    """
    node, middle = operands(x, values)
    return where(eq(node, 0), middle, cast(lt(0, node), node.dtype))


@public("positive", source="PyTorch", namespace=True)
def positive(x: Operand) -> Node:
    """x itself, `+x`. TypeError for bool.

    >>> Tensor([1, -2]).positive()
    Tensor([ 1, -2])
    """
    node = node_of(x)
    if node.dtype is bool_:
        raise TypeError("positive is for numbers, not for bool: cast the tensor first")
    return node


# ---- neighbours ----------------------------------------------------------------------------------
@public("nextafter", source="PyTorch", namespace=True)
def nextafter(x: Operand, other: Operand) -> Node:
    """The next number of the dtype after x in the direction of `other`; `other` if they are equal.

    The bits of positive floats, read as integers, count upwards; those of negative ones downwards.
    The derivative by x is 1; there is none by `other`.

    >>> Tensor([0.0]).nextafter(Tensor([1.0])) > 0
    Tensor([ True])
    """
    given, goal = floats(x, other)
    value, goal = stop_gradient(given), stop_gradient(goal)
    whole = BY_NAME[f"int{value.dtype.bits}"]
    bits = bitcast(value, whole)
    away = eq(lt(value, goal), lt(0, value))
    step = bitcast(add(bits, where(away, const(1, whole), const(-1, whole))), value.dtype)
    least = bitcast(const(1, whole), value.dtype)
    step = where(eq(value, 0), where(lt(0, goal), least, neg(least)), step)
    step = where(logical_or(isnan(value), isnan(goal)), math.nan, step)
    # less 0.0, which has the derivative -1 and changes no number, not even -0.0
    nothing = where(isfinite(value), sub(value, given), 0.0)
    return sub(where(eq(value, goal), goal, step), nothing)


@public("frac", source="PyTorch")
def frac(x: Operand) -> Node:
    """x - trunc(x), with the sign of x. TypeError for integers.

    >>> Tensor([-1.5, 2.25]).frac()
    Tensor([-0.5 ,  0.25])
    """
    node = node_of(x)
    if not node.dtype.is_float:
        raise TypeError(f"frac is for floats, not for {node.dtype}: cast the tensor first")
    return sub(node, alu(ops.TRUNC, node))


@public("nan_to_num", source="PyTorch")
def nan_to_num(
    x: Operand, nan: float | None = 0.0, posinf: float | None = None, neginf: float | None = None
) -> Node:
    """x with NaN replaced by `nan`, inf by `posinf` and -inf by `neginf`; None: 0, and the greatest
    and least number of the dtype. Integers stay as they are.

    >>> Tensor([float("nan"), 1.0]).nan_to_num(nan=5.0)
    Tensor([5., 1.])
    """
    node = node_of(x)
    if not node.dtype.is_float:
        return node
    largest = node.dtype.largest
    top = largest if posinf is None else posinf
    bottom = -largest if neginf is None else neginf
    result = where(isposinf(node), top, where(isneginf(node), bottom, node))
    return where(isnan(node), 0.0 if nan is None else nan, result)


# ---- infinities of one sign ----------------------------------------------------------------------
@public("isposinf", source="PyTorch", namespace=True, gradient="int")
def isposinf(x: Operand) -> Node:
    """Whether an element is inf; of integers none is.

    >>> Tensor([1.0, float("inf"), -float("inf")]).isposinf()
    Tensor([False,  True, False])
    """
    return _is_infinity(x, math.inf)


@public("isneginf", source="PyTorch", namespace=True, gradient="int")
def isneginf(x: Operand) -> Node:
    """Whether an element is -inf; of integers none is.

    >>> Tensor([1.0, float("inf"), -float("inf")]).isneginf()
    Tensor([False, False,  True])
    """
    return _is_infinity(x, -math.inf)


def _is_infinity(x: Operand, infinity: float) -> Node:
    node = node_of(x)
    if node.dtype.max != math.inf:
        return const(False, bool_, node.shape)
    return eq(node, infinity)


# ---- nearly equal --------------------------------------------------------------------------------
@public("isclose", source="PyTorch", gradient="int")
def isclose(
    x: Operand, other: Operand, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> Node:
    """Whether |x - other| <= atol + rtol * |other|; infinities are close to themselves only, NaN to
    nothing unless `equal_nan`. Integers and bools are compared in float64.

    >>> Tensor([1.0, 2.0]).isclose(Tensor([1.0000001, 2.1]))
    Tensor([ True, False])
    """
    for name, value in (("rtol", rtol), ("atol", atol)):
        if value < 0:
            raise ValueError(f"isclose: {name}={value!r} is below 0")
    a, b = operands(x, other)
    equal = eq(a, b)
    if equal_nan:
        equal = logical_or(equal, logical_and(ne(a, a), ne(b, b)))
    wide = a.dtype.accumulator if a.dtype.is_inexact else float64
    distance = abs_(sub(cast(a, wide), cast(b, wide)))
    allowed = add(mul(abs_(cast(b, wide)), rtol), atol)
    return logical_or(equal, logical_and(isfinite(distance), le(distance, allowed)))


def _number_rather_than_nan(chosen: Node, a: Node, b: Node) -> Node:
    """a where it is chosen or b is NaN, else b."""
    return where(logical_or(chosen, isnan(b)), a, b) if a.dtype.is_float else where(chosen, a, b)


@public("fmax", source="PyTorch")
def fmax(x: Operand, other: Operand) -> Node:
    """The greater of two; where one is NaN, the other.

    >>> Tensor([1.0, float("nan")]).fmax(Tensor([0.0, 2.0]))
    Tensor([1., 2.])
    """
    a, b = operands(x, other)
    return _number_rather_than_nan(le(b, a), a, b)


@public("fmin", source="PyTorch")
def fmin(x: Operand, other: Operand) -> Node:
    """The lesser of two; where one is NaN, the other.

    >>> Tensor([1.0, float("nan")]).fmin(Tensor([0.0, 2.0]))
    Tensor([0., 2.])
    """
    a, b = operands(x, other)
    return _number_rather_than_nan(le(a, b), a, b)


# ---- arithmetic ----------------------------------------------------------------------------------
def _wide(*xs: Operand) -> tuple[DType, tuple[Node, ...]]:
    """Operands promoted to one dtype, and then to what it is computed in."""
    nodes = operands(*xs)
    dtype = nodes[0].dtype
    wide = dtype.accumulator if dtype.is_float else dtype
    return dtype, tuple([cast(node, wide) for node in nodes])


@public("addcmul", source="PyTorch")
def addcmul(x: Operand, tensor1: Operand, tensor2: Operand, *, value: Operand = 1) -> Node:
    """x + value * tensor1 * tensor2, rounded once in half and bfloat16.

    >>> Tensor([1.0]).addcmul(Tensor([2.0]), Tensor([3.0]), value=10)
    Tensor([61.])
    """
    dtype, (base, first, second) = _wide(x, tensor1, tensor2)
    product = mul(first, second)
    return cast(add(base, product if value == 1 else mul(product, value)), dtype)


@public("addcdiv", source="PyTorch")
def addcdiv(x: Operand, tensor1: Operand, tensor2: Operand, *, value: Operand = 1) -> Node:
    """x + value * tensor1 / tensor2, in floating point.

    >>> Tensor([1.0]).addcdiv(Tensor([6.0]), Tensor([3.0]), value=10)
    Tensor([21.])
    """
    dtype, (base, first, second) = _wide(*floats(x, tensor1, tensor2))
    quotient = div(first if value == 1 else mul(first, value), second)
    return cast(add(base, quotient), dtype)


@public("float_power", source="PyTorch")
def float_power(x: Operand, exponent: Operand) -> Node:
    """x to a power, in float64.

    >>> Tensor([2, 3]).float_power(2)
    Tensor([4., 9.], dtype=float64)
    """
    wide = [
        each if isinstance(each, int | float) else cast(each, float64) for each in (x, exponent)
    ]
    return pow_(cast(node_of(wide[0]), float64), wide[1])


@public("xlogy", source="PyTorch")
def xlogy(x: Operand, other: Operand) -> Node:
    """x * log(other), which is 0 where x is 0 unless `other` is NaN.

    >>> Tensor([0.0, 2.0]).xlogy(Tensor([0.0, 1.0]))
    Tensor([0., 0.])
    """
    dtype, (factor, value) = _wide(*floats(x, other))
    extreme = logical_or(le(value, 0), eq(value, math.inf))
    nothing = logical_and(eq(factor, 0), extreme)
    return cast(mul(factor, log(where(nothing, 1, value))), dtype)


# ---- powers of two -------------------------------------------------------------------------------
@public("ldexp", source="PyTorch")
def ldexp(x: Operand, other: Operand) -> Node:
    """x * 2**other, in floating point.

    >>> Tensor([1.0, 3.0]).ldexp(Tensor([4, -1]))
    Tensor([16. ,  1.5])
    """
    factor = pow_(2.0, node_of(other))
    return mul(*floats(x, factor))


@public("frexp", source="PyTorch")
def frexp(x: Node) -> tuple[Node, Node]:
    """(mantissa, exponent): x as mantissa * 2**exponent, the mantissa from 0.5 up to 1 in
    magnitude, the exponent int32. 0, infinities and NaN are their own mantissa, with exponent 0.

    >>> Tensor([8.0, 0.375]).frexp()
    (Tensor([0.5 , 0.75]), Tensor([ 4, -1], dtype=int32))
    """
    if not x.dtype.is_float:
        raise TypeError(f"frexp is for floats, not for {x.dtype}: cast the tensor first")
    wide = cast(x, x.dtype.accumulator)
    digits, bias = (52, 1022) if wide.dtype is float64 else (23, 126)
    small = lt(abs_(wide), 2.0 ** (1 - bias))
    value = where(small, mul(wide, 2.0**64), wide)
    bits = bitcast(stop_gradient(value), BY_NAME[f"int{wide.dtype.bits}"])
    field = alu(ops.AND, alu(ops.RSHIFT, bits, digits), 2 * bias + 3)
    exponent = sub(cast(field, int32), bias)
    special = logical_or(eq(wide, 0), logical_not(isfinite(wide)))
    # two factors: one alone could be too small for the type
    half = alu(ops.RSHIFT, exponent, 1)
    scale = mul(value, pow_(2.0, cast(neg(half), wide.dtype)))
    mantissa = mul(scale, pow_(2.0, cast(sub(half, exponent), wide.dtype)))
    exponent = where(special, 0, where(small, sub(exponent, 64), exponent))
    return cast(where(special, wide, mantissa), x.dtype), exponent
