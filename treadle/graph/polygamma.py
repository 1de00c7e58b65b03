"""The derivative of digamma, from which all further derivatives of gamma's logarithm follow."""

from __future__ import annotations

from functools import partial
from math import pi

from treadle.graph.build import alu, where
from treadle.ir import ops
from treadle.ir.node import Node

add, sub, mul, div = (partial(alu, op) for op in (ops.ADD, ops.SUB, ops.MUL, ops.DIV))

_SHIFT = 12  # how far the argument is moved up before the series is good enough
# the Bernoulli numbers B2, B4 .. of the series
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)


def trigamma(x: Node) -> Node:
    """The second derivative of ln gamma(x); inf at 0 and at the negative whole numbers.

    1/x^2 + 1/(x + 1)^2 + .. and, of the far end z, 1/z + 1/(2 z^2) + B2/z^3 + B4/z^5 ..; below 0
    by trigamma(1 - x) + trigamma(x) = (pi / sin(pi x))^2. Made of operations that have derivatives
    themselves, it gives those of any order.
    """
    reflected = alu(ops.LT, x, 0)
    z = where(reflected, sub(1, x), x)
    inverse = div(1, add(z, _SHIFT))
    square = mul(inverse, inverse)
    series = mul(square, _BERNOULLI[-1])
    for number in _BERNOULLI[-2::-1]:
        series = mul(square, add(series, number))
    total = add(inverse, add(mul(square, 0.5), mul(inverse, series)))
    for k in range(_SHIFT - 1, -1, -1):
        each = div(1, add(z, k))
        total = add(total, mul(each, each))
    rest = where(reflected, sub(x, alu(ops.RINT, x)), 0.5)
    mirror = div(pi, alu(ops.SIN, mul(rest, pi)))
    return where(reflected, sub(mul(mirror, mirror), total), total)
