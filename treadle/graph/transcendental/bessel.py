"""Bessel functions of the orders 0 and 1.

Each is an integral over half a period of a smooth periodic function (Abramowitz and Stegun, 9.1.18,
9.1.20, 9.6.16), for which the mean over n equally spaced points is off by a Bessel function of the
order 2n; so few points give every digit, and all terms have the derivative that they ought to have.
Large arguments have Hankel's expansion (9.2.5, 9.7.1). Halves are computed in float32.
"""

from __future__ import annotations

import math

from treadle.graph.build import where
from treadle.graph.elementwise import abs_, add, div, lt, mul, neg, rounded_once, sub
from treadle.graph.functions import cos, exp, sin, sqrt
from treadle.graph.public import public
from treadle.ir.node import Node

_POINTS = 32
_FAR = 25.0  # from here on by Hankel's expansion, whose terms fall to exp(-2 * 25)
_TERMS = 18
_ANGLES = [math.pi * (k + 0.5) / _POINTS for k in range(_POINTS)]


def _mean(weights: list[float], values: list[Node]) -> Node:
    total: Node | None = None
    for weight, value in zip(weights, values, strict=True):
        part = mul(value, weight / len(values))
        total = part if total is None else add(total, part)
    assert total is not None
    return total


def _hankel(order: int) -> list[float]:
    """The coefficients of 1/x**k: (4n^2 - 1)(4n^2 - 9) .. (4n^2 - (2k-1)^2) / (k! 8^k)."""
    found = [1.0]
    for k in range(1, _TERMS):
        found.append(found[-1] * (4 * order**2 - (2 * k - 1) ** 2) / (8 * k))
    return found


def _series(x: Node, coefficients: list[float]) -> Node:
    """c0 + c1 x + c2 x**2 .."""
    total = mul(x, coefficients[-1])
    for each in coefficients[-2:0:-1]:
        total = mul(add(total, each), x)
    return add(total, coefficients[0])


# ---- oscillating ---------------------------------------------------------------------------------
def _oscillating(x: Node, order: int) -> Node:
    """J of the order 0 or 1."""
    weights = [math.sin(angle) ** (2 * order) for angle in _ANGLES]
    size = abs_(x)
    near = where(lt(size, _FAR), x, 0)
    inner = _mean(weights, [cos(mul(near, math.cos(angle))) for angle in _ANGLES])
    inner = mul(near, inner) if order else inner
    far = where(lt(size, _FAR), _FAR, size)
    inverse = div(1, far)
    square, a = mul(inverse, inverse), _hankel(order)
    even = _series(neg(square), a[0::2])
    odd = mul(_series(neg(square), a[1::2]), inverse)
    # cos and sin of far - pi/4, or of far - 3 pi/4
    both, apart = add(cos(far), sin(far)), sub(sin(far), cos(far))
    real, imaginary = (apart, neg(both)) if order else (both, apart)
    outer = mul(sqrt(mul(inverse, 1 / math.pi)), sub(mul(even, real), mul(odd, imaginary)))
    outer = where(lt(x, 0), neg(outer), outer) if order else outer
    return where(lt(size, _FAR), inner, outer)


@public("bessel_j0", source="PyTorch", method=False, special=True)
@rounded_once
def bessel_j0(x: Node) -> Node:
    """The Bessel function of the first kind of the order 0.

    >>> treadle.special.bessel_j0(Tensor([0.0]))
    Tensor([1.])
    """
    return _oscillating(x, 0)


@public("bessel_j1", source="PyTorch", method=False, special=True)
@rounded_once
def bessel_j1(x: Node) -> Node:
    """The Bessel function of the first kind of the order 1.

    >>> treadle.special.bessel_j1(Tensor([0.0]))
    Tensor([0.])
    """
    return _oscillating(x, 1)


@public("spherical_bessel_j0", source="PyTorch", method=False, special=True)
@rounded_once
def spherical_bessel_j0(x: Node) -> Node:
    """sin(x) / x, 1 at 0.

    >>> treadle.special.spherical_bessel_j0(Tensor([0.0]))
    Tensor([1.])
    """
    small = lt(abs_(x), 0.5)
    near, far = where(small, x, 0), where(small, 1, x)
    terms = [(-1) ** k / math.factorial(2 * k + 1) for k in range(9)]
    return where(small, _series(mul(near, near), terms), div(sin(far), far))


# ---- growing -------------------------------------------------------------------------------------
def _scaled(x: Node, order: int) -> Node:
    """exp(-|x|) times the modified Bessel function I of the order 0 or 1."""
    weights = [math.sin(angle) ** (2 * order) for angle in _ANGLES]
    size = abs_(x)
    near = where(lt(size, _FAR), size, 0)
    inner = _mean(weights, [exp(mul(near, math.cos(angle) - 1)) for angle in _ANGLES])
    inner = mul(where(lt(size, _FAR), x, 0), inner) if order else inner
    inverse = div(1, where(lt(size, _FAR), _FAR, size))
    outer = mul(_series(neg(inverse), _hankel(order)), sqrt(mul(inverse, 0.5 / math.pi)))
    outer = where(lt(x, 0), neg(outer), outer) if order else outer
    return where(lt(size, _FAR), inner, outer)


def _grown(scaled: Node, x: Node) -> Node:
    """Times exp(|x|), in two steps: it may be infinite where the product is not."""
    half = exp(mul(abs_(x), 0.5))
    return mul(mul(scaled, half), half)


@public("i0e", source="PyTorch", method=False, special=True)
@rounded_once
def i0e(x: Node) -> Node:
    """exp(-|x|) * i0(x).

    >>> treadle.special.i0e(Tensor([0.0]))
    Tensor([1.])
    """
    return _scaled(x, 0)


@public("i1e", source="PyTorch", method=False, special=True)
@rounded_once
def i1e(x: Node) -> Node:
    """exp(-|x|) * i1(x).

    >>> treadle.special.i1e(Tensor([0.0]))
    Tensor([0.])
    """
    return _scaled(x, 1)


@public("i0", source="PyTorch")
@rounded_once
def i0(x: Node) -> Node:
    """The modified Bessel function of the first kind of the order 0.

    >>> Tensor([0.0]).i0()
    Tensor([1.])
    """
    return _grown(_scaled(x, 0), x)


@public("i1", source="PyTorch", method=False, special=True, aliases=("modified_bessel_i1",))
@rounded_once
def i1(x: Node) -> Node:
    """The modified Bessel function of the first kind of the order 1.

    >>> treadle.special.i1(Tensor([0.0]))
    Tensor([0.])
    """
    return _grown(_scaled(x, 1), x)
