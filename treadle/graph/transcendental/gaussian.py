"""What belongs to the normal distribution: its probabilities, their logarithms and inverse.

Integers and bools become float32; halves are computed in float32 and rounded once.
"""

from __future__ import annotations

import math

from treadle.graph.build import stop_gradient, where
from treadle.graph.elementwise import (
    add,
    div,
    eq,
    lt,
    maximum,
    mul,
    neg,
    rounded_once,
    square,
    sub,
)
from treadle.graph.functions import exp, log, log1p, sqrt
from treadle.graph.public import public
from treadle.graph.special import erfc
from treadle.ir.node import Node

_STEP = 0.5  # of the sum for erfcx, whose error is exp(-(pi / step)**2)
_TERMS = 13  # the last of which is exp(-(12.5 * step)**2)
_NEWTON = 4  # steps that double the digits of ndtri


@public("erfcx", source="PyTorch", method=False, special=True)
@rounded_once
def erfcx(x: Node) -> Node:
    """exp(x**2) * erfc(x), which does not vanish for large x.

    The trapezoidal rule for the integral that erfc is, with points halfway: 2hx/pi times the sum of
    exp(-t**2) / (t**2 + x**2) over t = (n + 1/2) h, and, up to x = pi/h, what its pole adds.
    Source: Matta and Reichel, "Uniform computation of the error function and other related
    functions", 1971.

    >>> treadle.special.erfcx(Tensor([0.0, 30.0]))
    Tensor([1.        , 0.01879589])
    """
    size = where(lt(x, 0), neg(x), x)  # which has a derivative at 0
    limit = math.pi / _STEP
    total: Node | None = None
    for n in range(_TERMS):
        t = ((n + 0.5) * _STEP) ** 2
        part = div(math.exp(-t), add(square(size), t))
        total = part if total is None else add(total, part)
    assert total is not None
    near = where(lt(size, limit), size, limit)
    pole = div(mul(exp(square(near)), 2), add(exp(mul(near, 2 * limit)), 1))
    rising = add(mul(mul(total, size), 2 * _STEP / math.pi), where(lt(size, limit), pole, 0))
    return where(lt(x, 0), sub(mul(exp(square(x)), 2), rising), rising)


@public("ndtr", source="PyTorch", method=False, special=True)
@rounded_once
def ndtr(x: Node) -> Node:
    """The probability that a normal variable is below x.

    >>> treadle.special.ndtr(Tensor([0.0]))
    Tensor([0.5])
    """
    return mul(erfc(mul(x, -math.sqrt(0.5))), 0.5)


@public("log_ndtr", source="PyTorch", method=False, special=True)
@rounded_once
def log_ndtr(x: Node) -> Node:
    """The logarithm of `ndtr`, which is finite where that vanishes.

    >>> treadle.special.log_ndtr(Tensor([0.0, -20.0]))
    Tensor([  -0.6931472, -203.91716  ])
    """
    left = lt(x, -1)
    far, near = where(left, x, -1), where(left, -1, x)
    below = sub(log(mul(erfcx(mul(far, -math.sqrt(0.5))), 0.5)), mul(square(far), 0.5))
    return where(left, below, log1p(mul(erfc(mul(near, math.sqrt(0.5))), -0.5)))


@public("ndtri", source="PyTorch", method=False, special=True)
@rounded_once
def ndtri(p: Node) -> Node:
    """The number that a normal variable is below with the probability p; -inf of 0, inf of 1, NaN
    outside.

    Newton's method for log_ndtr(x) = log(p) in the lower half, where that is concave; the upper one
    by symmetry.

    >>> treadle.special.ndtri(Tensor([0.5, 0.975])).numpy().round(3).tolist()
    [0.0, 1.9600000381469727]
    """
    upper = lt(0.5, p)
    lower = where(upper, sub(1, p), p)
    inside = lt(0, lower)
    wanted = log(where(inside, lower, 0.5))
    tail = mul(wanted, -2)
    far = lt(4, tail)  # the tail is about exp(-x**2 / 2) / (|x| sqrt(2 pi))
    ample = where(far, tail, 4)
    start = where(far, sub(ample, log(mul(ample, 2 * math.pi))), sub(tail, 2 * math.log(2)))
    x = neg(sqrt(stop_gradient(maximum(start, 0))))
    for _ in range(_NEWTON):
        found = log_ndtr(x)
        slope = add(add(found, mul(square(x), 0.5)), 0.5 * math.log(2 * math.pi))
        x = sub(x, mul(sub(found, wanted), exp(slope)))
    x = where(eq(lower, 0.5), mul(sub(lower, 0.5), math.sqrt(2 * math.pi)), x)
    x = where(inside, x, where(eq(lower, 0), -math.inf, math.nan))
    return where(upper, neg(x), x)
