"""Angles from ratios: inverse trigonometric and hyperbolic functions, and what goes with them.

Integers and bools become float32; half and bfloat16 are computed in float32 and rounded once. Each
is a formula in `atan`, `log1p` and `sqrt` that keeps its relative precision near its zeros, is
right at infinities, and whose derivative is right at the ends of the domain, where it is infinite.
"""

from __future__ import annotations

import math

from treadle.graph.build import Operand, alu, cast, full_like, stop_gradient, where
from treadle.graph.elementwise import (
    abs_,
    add,
    div,
    eq,
    floats,
    isinf,
    logical_and,
    logical_or,
    lt,
    maximum,
    mul,
    neg,
    rounded_once,
    square,
    sub,
)
from treadle.graph.floating import copysign, signbit
from treadle.graph.functions import atan, log, log1p, sin, sqrt
from treadle.graph.public import public
from treadle.ir import ops
from treadle.ir.node import Node

_LARGE = 2.0**28  # from here on x^2 + 1 and x^2 - 1 are x^2, in every float


def _fma(a: Operand, b: Operand, c: Operand) -> Node:
    """a * b + c, rounded once."""
    return alu(ops.FMA, a, b, c)


# ---- circles -------------------------------------------------------------------------------------
@public("asin", source="PyTorch", namespace=True, aliases=("arcsin",))
@rounded_once
def asin(x: Node) -> Node:
    """The angle, in radians from -pi/2 to pi/2, whose sine is x; NaN outside [-1, 1].

    The tangent of half the angle is x / (1 + sqrt(1 - x^2)).

    >>> Tensor([0.0, 2.0]).asin()
    Tensor([ 0., nan])
    """
    return mul(atan(div(x, add(sqrt(_fma(neg(x), x, 1)), 1))), 2)


@public("acos", source="PyTorch", namespace=True, aliases=("arccos",))
@rounded_once
def acos(x: Node) -> Node:
    """The angle, in radians from 0 to pi, whose cosine is x; NaN outside [-1, 1].

    Of |x| the tangent of half the angle is sqrt(1 - x^2) / (1 + |x|).

    >>> Tensor([1.0, 2.0]).acos()
    Tensor([ 0., nan])
    """
    negative = lt(x, 0)
    size = where(negative, neg(x), x)
    angle = mul(atan(div(sqrt(_fma(neg(x), x, 1)), add(size, 1))), 2)
    return where(negative, sub(math.pi, angle), angle)


@public("atan2", source="PyTorch", namespace=True, aliases=("arctan2",))
def atan2(x: Operand, other: Operand) -> Node:
    """The angle, in radians from -pi to pi, of the point with the coordinates (other, x): the
    quadrant is right where that of atan(x / other) is not. Signs of zeros count, as in C.

    atan of the ratio that is at most 1, from the axis that is nearer; no derivative at (0, 0).

    >>> Tensor([0.0]).atan2(Tensor([-1.0]))
    Tensor([3.1415927])
    """
    first, second = floats(x, other)
    dtype = first.dtype
    b, a = cast(first, dtype.accumulator), cast(second, dtype.accumulator)
    steep = lt(abs_(a), abs_(b))
    numerator, denominator = where(steep, neg(a), b), where(steep, b, a)
    nowhere = eq(denominator, 0)
    ratio = where(nowhere, stop_gradient(numerator), div(numerator, where(nowhere, 1, denominator)))
    corner = logical_and(isinf(a), isinf(b))
    unit = copysign(copysign(1.0, numerator), alu(ops.MUL, copysign(1.0, a), copysign(1.0, b)))
    ratio = where(corner, unit, ratio)
    quarter, half = copysign(math.pi / 2, b), copysign(math.pi, b)
    behind = signbit(a)
    turned = where(steep, quarter, half)
    angle = atan(ratio)
    return cast(where(logical_or(steep, behind), add(turned, angle), angle), dtype)


@public("hypot", source="PyTorch", namespace=True)
def hypot(x: Operand, other: Operand) -> Node:
    """sqrt(x^2 + other^2), which does not overflow on the way; inf if either is infinite.

    Both are divided by the greater: the result does not depend on what they are divided by, so no
    derivative passes through that.

    >>> Tensor([3.0]).hypot(Tensor([4.0]))
    Tensor([5.])
    """
    first, second = floats(x, other)
    dtype = first.dtype
    a, b = cast(first, dtype.accumulator), cast(second, dtype.accumulator)
    greater = maximum(abs_(stop_gradient(a)), abs_(stop_gradient(b)))
    scale = where(logical_or(eq(greater, 0), eq(greater, math.inf)), 1, greater)
    length = mul(sqrt(add(square(div(a, scale)), square(div(b, scale)))), scale)
    return cast(where(logical_or(isinf(a), isinf(b)), math.inf, length), dtype)


@public("deg2rad", source="PyTorch")
@rounded_once
def deg2rad(x: Node) -> Node:
    """Degrees as radians: x * pi/180.

    >>> Tensor([180.0]).deg2rad()
    Tensor([3.1415927])
    """
    return mul(x, math.pi / 180)


@public("rad2deg", source="PyTorch")
@rounded_once
def rad2deg(x: Node) -> Node:
    """Radians as degrees: x * 180/pi.

    >>> Tensor([0.0]).rad2deg()
    Tensor([0.])
    """
    return mul(x, 180 / math.pi)


@public("sinc", source="PyTorch")
@rounded_once
def sinc(x: Node) -> Node:
    """sin(pi x) / (pi x); 1 at 0. Exactly 0 at the other whole numbers.

    Near 0 it is the series 1 - t^2/3! + t^4/5! .. of t = pi x, whose derivatives are right at 0.

    >>> Tensor([0.0, 0.5]).sinc()
    Tensor([1.        , 0.63661975])
    """
    near = lt(abs_(x), 0.25)
    squared = square(mul(where(near, x, 0), math.pi))
    series = sub(1, mul(squared, 1 / (18 * 19)))
    for n in range(8, 0, -1):
        series = sub(1, mul(squared, mul(series, 1 / (2 * n * (2 * n + 1)))))
    turn = sub(x, mul(alu(ops.RINT, mul(x, 0.5)), 2))  # exact: what is left of x after whole turns
    wave = sin(mul(turn, math.pi))
    whole = logical_and(eq(turn, alu(ops.RINT, turn)), lt(abs_(x), math.inf))
    wave = where(whole, sub(wave, stop_gradient(wave)), wave)
    return where(near, series, div(wave, mul(where(near, 1, x), math.pi)))


# ---- hyperbolas ----------------------------------------------------------------------------------
@public("asinh", source="PyTorch", namespace=True, aliases=("arcsinh",))
@rounded_once
def asinh(x: Node) -> Node:
    """The inverse of sinh: of x >= 0, log(x + sqrt(x^2 + 1)), which is
    log1p(x (1 + x / (1 + sqrt(x^2 + 1)))), exact near 0; of large x, log(x) + log(2).

    >>> Tensor([0.0]).asinh()
    Tensor([0.])
    """
    negative = signbit(x)
    size = where(negative, neg(x), x)
    large = lt(_LARGE, size)
    small = where(large, 1, size)
    near = log1p(mul(small, add(div(small, add(sqrt(_fma(small, small, 1)), 1)), 1)))
    far = add(log(where(large, size, 1)), math.log(2))
    value = where(large, far, near)
    return where(negative, neg(value), value)


@public("acosh", source="PyTorch", namespace=True, aliases=("arccosh",))
@rounded_once
def acosh(x: Node) -> Node:
    """The inverse of cosh, from 0 on; NaN below 1. log(x + sqrt(x^2 - 1)) is
    log1p((x - 1) + sqrt(x^2 - 1)), exact near 1; of large x, log(x) + log(2).

    >>> Tensor([1.0]).acosh()
    Tensor([0.])
    """
    large = lt(_LARGE, x)
    # below 1 the derivative is NaN, too: x is multiplied by it, not replaced
    small = where(large, 2, mul(x, where(lt(x, 1), math.nan, full_like(x, 1))))
    near = log1p(add(sub(small, 1), sqrt(_fma(small, small, -1))))
    far = add(log(where(large, x, 1)), math.log(2))
    return where(large, far, near)


@public("atanh", source="PyTorch", namespace=True, aliases=("arctanh",))
@rounded_once
def atanh(x: Node) -> Node:
    """The inverse of tanh, (log(1 + x) - log(1 - x)) / 2; NaN outside [-1, 1].

    >>> Tensor([0.0, 1.0]).atanh()
    Tensor([ 0., inf])
    """
    return mul(sub(log1p(x), log1p(neg(x))), 0.5)
