"""Hurwitz's zeta function and what it gives: polygamma; the logarithm of the multivariate gamma.

Integers and bools become float32; halves are computed in float32 and rounded once.
"""

from __future__ import annotations

import math

from treadle.graph.build import Operand, alu, cast, where
from treadle.graph.elementwise import (
    add,
    div,
    eq,
    floats,
    floor,
    le,
    lt,
    mul,
    neg,
    pow_,
    rounded_once,
    sub,
)
from treadle.graph.functions import cos, sin
from treadle.graph.public import public
from treadle.graph.special import digamma, lgamma
from treadle.ir import ops
from treadle.ir.node import Node

_SHIFT = 12  # terms that are added up before the rest is good enough
# B(2k) / (2k)! for the Bernoulli numbers B2, B4 ..
_BERNOULLI = [
    number / math.factorial(2 * k)
    for k, number in enumerate(
        (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510), 1
    )
]


def _summed(s: Operand, q: Node) -> Node:
    """The sum of (q + k)**-s for q > 0: of its first terms, and Euler and Maclaurin's formula."""
    total: Node | None = None
    for k in range(_SHIFT):
        part = pow_(add(q, k), neg(s))
        total = part if total is None else add(total, part)
    assert total is not None
    z = add(q, _SHIFT)
    power = pow_(z, neg(s))
    total = add(total, add(div(mul(power, z), sub(s, 1)), mul(power, 0.5)))
    inverse = div(1, z)
    square = mul(inverse, inverse)
    factor: Node = mul(mul(power, inverse), s)  # s (s + 1) .. (s + 2k) / z**(s + 2k + 1)
    for k, number in enumerate(_BERNOULLI):
        total = add(total, mul(factor, number))
        factor = mul(mul(factor, square), mul(add(s, 2 * k + 1), add(s, 2 * k + 2)))
    return total


@public("zeta", source="PyTorch", method=False, special=True)
def zeta(x: Operand, other: Operand) -> Node:
    """Hurwitz's zeta function, the sum of 1 / (q + k)**x over k = 0, 1 ..; Riemann's for q = 1.

    other: q. inf at x = 1 and for q = 0, -1, -2 ..; NaN for x < 1 and for other q below 0.

    >>> treadle.special.zeta(Tensor([2.0]), 1.0)
    Tensor([1.6449339])
    """
    first, second = floats(x, other)
    wide = first.dtype.accumulator
    s, a = cast(first, wide), cast(second, wide)
    defined = alu(ops.AND, lt(1, s), lt(0, a))
    found = _summed(where(defined, s, 2), where(defined, a, 1))
    pole = alu(ops.OR, eq(s, 1), alu(ops.AND, le(a, 0), eq(a, floor(a))))
    pole = alu(ops.AND, pole, le(1, s))
    outside = where(pole, math.inf, math.nan)
    return cast(where(defined, found, outside), first.dtype)


def _cotangent(order: int, x: Node) -> Node:
    """The derivative of this order of pi cot(pi x): a polynomial in c = cot(pi x), because the
    derivative of c is -pi (1 + c**2)."""
    polynomial = [0.0, math.pi]
    for _ in range(order):
        slope = [k * c for k, c in enumerate(polynomial)][1:]
        polynomial = [
            -math.pi * (a + b) for a, b in zip([*slope, 0.0, 0.0], [0.0, 0.0, *slope], strict=True)
        ]
    rest = mul(sub(x, alu(ops.RINT, x)), math.pi)
    c = div(cos(rest), sin(rest))
    total = mul(c, polynomial[-1])
    for each in polynomial[-2:0:-1]:
        total = mul(add(total, each), c)
    return add(total, polynomial[0])


@rounded_once
def _polygamma(x: Node, n: int) -> Node:
    """(-1)**(n + 1) n! zeta(n + 1, x); below 0 by the derivatives of what digamma(1 - x) less
    digamma(x) is, pi cot(pi x)."""
    reflected = lt(x, 0)
    whole = alu(ops.AND, reflected, eq(x, floor(x)))
    other = where(reflected, sub(1, x), x)
    found = mul(_summed(n + 1, other), (-1) ** (n + 1) * math.factorial(n))
    mirror = _cotangent(n, where(alu(ops.AND, reflected, eq(whole, False)), x, 0.5))
    below = sub(mul(found, (-1) ** n), mirror)
    return where(whole, (-1) ** (n + 1) * math.inf, where(reflected, below, found))


@public("polygamma", source="PyTorch")
def polygamma(x: Node, n: int) -> Node:
    """The derivative of `digamma` of the order n, an int of 0 or more.

    >>> Tensor([1.0]).polygamma(1)
    Tensor([1.6449339])
    """
    if type(n) is not int or n < 0:
        raise ValueError(f"polygamma: n is an int of 0 or more, not {n!r}")
    return digamma(x) if n == 0 else _polygamma(x, n)


@public("polygamma", source="PyTorch", method=False, special=True)
def polygamma_of_order(n: int, x: Node) -> Node:
    """The derivative of `digamma` of the order n, an int of 0 or more.

    >>> treadle.special.polygamma(1, Tensor([1.0]))
    Tensor([1.6449339])
    """
    return polygamma(x, n)


@public("mvlgamma", source="PyTorch")
@rounded_once
def mvlgamma(x: Node, p: int) -> Node:
    """The logarithm of the multivariate gamma function of dimension p: the sum of lgamma(x - j/2)
    over j = 0 .. p - 1, and p (p - 1) / 4 log pi. NaN where x is not above (p - 1) / 2.

    >>> Tensor([2.0]).mvlgamma(2)
    Tensor([0.4515827])
    """
    if type(p) is not int or p < 1:
        raise ValueError(f"mvlgamma: p is an int of 1 or more, not {p!r}")
    total = lgamma(x)
    for j in range(1, p):
        total = add(total, lgamma(sub(x, j / 2)))
    return add(total, p * (p - 1) / 4 * math.log(math.pi))
