"""Functions of complex angles, and the angles of complex numbers: sinh, tan, acos and the others.

Circles are hyperbolas turned by a right angle: sin(z) = -i sinh(iz), asin(z) = -i asinh(iz), and so
on. Inverse functions are Kahan's, which are exact near their zeros and know on which side of a cut
a zero stands. (W. Kahan, "Branch cuts for complex elementary functions", 1987.)
"""

from __future__ import annotations

import math

from treadle.graph.analytic import Analytic, Formula, greatest, on, rising, root
from treadle.graph.build import alu, full_like, where
from treadle.graph.elementwise import (
    abs_,
    add,
    div,
    eq,
    isfinite,
    isinf,
    isnan,
    le,
    logical_and,
    logical_not,
    logical_or,
    lt,
    mul,
    ne,
    neg,
    square,
    sub,
)
from treadle.graph.floating import copysign
from treadle.graph.functions import cos, cosh, exp, log, log1p, sin, sinh, sqrt, tan
from treadle.graph.parts import complex_of, imag, real
from treadle.graph.trigonometry import asinh, atan2, hypot
from treadle.ir import ops
from treadle.ir.dtype import float32
from treadle.ir.node import Node

Pair = tuple[Node, Node]


# ---- hyperbolas ----------------------------------------------------------------------------------
def _halves(x: Node) -> tuple[Node, Node, Node]:
    """(cosh x, sinh x, f), to be multiplied by f: where both are e^|x| / 2, that is put off."""
    rise, scale = rising(abs_(x))
    steep = ne(scale, 1)
    half = mul(rise, 0.5)
    return where(steep, half, cosh(x)), where(steep, copysign(half, x), sinh(x)), scale


def _sinh(x: Node, y: Node) -> Pair:
    """sinh x cos y + i cosh x sin y."""
    c, s, scale = _halves(x)
    lost = logical_and(logical_not(isfinite(y)), logical_or(eq(x, 0), isinf(x)))
    re = where(lost, x, mul(mul(s, cos(y)), scale))
    return re, where(eq(y, 0), y, mul(mul(c, sin(y)), scale))


def _cosh(x: Node, y: Node) -> Pair:
    """cosh x cos y + i sinh x sin y."""
    c, s, scale = _halves(x)
    wild = logical_not(isfinite(y))
    re = where(logical_and(wild, isinf(x)), math.inf, mul(mul(c, cos(y)), scale))
    nothing = logical_or(eq(y, 0), logical_and(wild, eq(x, 0)))
    zero = mul(copysign(full_like(x, 0), x), copysign(full_like(y, 1), y))
    return re, where(nothing, zero, mul(mul(s, sin(y)), scale))


def _tanh(x: Node, y: Node) -> Pair:
    """With t = tan y, b = 1 + t^2, s = sinh x: (b s sqrt(1 + s^2) + i t) / (1 + b s^2). For large x
    it is 1 with the sign of x, and 4 sin y cos y e^(-2|x|)."""
    far = lt(12.0 if x.dtype is float32 else 22.0, abs_(x))
    t, s = tan(y), sinh(where(far, 0, x))
    b = add(square(t), 1)
    whole = add(mul(b, square(s)), 1)
    re = div(mul(mul(b, s), sqrt(add(square(s), 1))), whole)
    falling = mul(exp(mul(abs_(x), -2)), 4)
    tail = where(isfinite(y), mul(mul(sin(y), cos(y)), falling), copysign(full_like(y, 0), y))
    re = where(far, copysign(full_like(x, 1), x), where(eq(x, 0), x, re))
    return re, where(eq(y, 0), y, where(far, tail, div(t, whole)))


# ---- their inverses ------------------------------------------------------------------------------
def _far(x: Node, y: Node) -> tuple[Node, Node]:
    """(whether 1 is nothing beside z, log(2 |z|) there)."""
    limit = greatest(x.dtype) / 4
    far = logical_or(lt(limit, abs_(x)), lt(limit, abs_(y)))
    return far, add(log(hypot(mul(x, 0.5), mul(y, 0.5))), 2 * math.log(2))


def _asinh(x: Node, y: Node) -> Pair:
    far, size = _far(x, y)
    (a, b), (c, d) = root(add(y, 1), neg(x)), root(sub(1, y), x)
    re = where(far, copysign(size, x), asinh(sub(mul(a, d), mul(c, b))))
    im = where(far, atan2(y, abs_(x)), atan2(y, sub(mul(a, c), mul(b, d))))
    return re, where(eq(y, 0), y, im)


def _acos(x: Node, y: Node) -> Pair:
    far, size = _far(x, y)
    (a, b), (c, d) = root(sub(1, x), neg(y)), root(add(x, 1), y)
    re = where(far, atan2(abs_(y), x), mul(atan2(a, c), 2))
    im = where(far, copysign(size, neg(y)), asinh(sub(mul(c, b), mul(d, a))))
    return where(logical_and(eq(x, 0), isnan(y)), math.pi / 2, re), im


def _acosh(x: Node, y: Node) -> Pair:
    far, size = _far(x, y)
    (a, b), (c, d) = root(sub(x, 1), y), root(add(x, 1), y)
    re = where(far, size, asinh(add(mul(a, c), mul(b, d))))
    im = where(far, atan2(y, x), mul(atan2(b, c), 2))
    return re, where(logical_and(eq(x, 0), isnan(y)), math.pi / 2, im)


def _atanh(x: Node, y: Node) -> Pair:
    """Of |x|, with the signs of both put back at the end: the function is odd."""
    a, b = abs_(x), abs_(y)
    limit = greatest(x.dtype) ** 0.5 / 2
    far = logical_or(lt(limit, a), lt(limit, b))
    half = hypot(mul(a, 0.5), mul(b, 0.5))
    distant = where(isinf(half), 0, div(div(mul(a, 0.25), half), half))
    pole = logical_and(eq(a, 1), lt(b, 1 / limit))
    at_pole = where(eq(b, 0), math.inf, neg(log(div(sqrt(b), sqrt(hypot(b, full_like(b, 2)))))))
    rest = sub(1, a)
    near = mul(log1p(div(mul(a, 4), add(square(rest), square(b)))), 0.25)
    re = where(far, distant, where(pole, at_pole, near))
    turned = mul(atan2(mul(b, 2), sub(mul(rest, add(a, 1)), square(b))), 0.5)
    beside = mul(atan2(full_like(b, 2), neg(b)), 0.5)
    im = where(far, where(isnan(y), y, math.pi / 2), where(pole, beside, turned))
    im = where(logical_and(eq(b, 0), le(a, 1)), 0, im)
    re = where(eq(x, 0), 0, re)
    return copysign(re, x), copysign(im, y)


# ---- the functions -------------------------------------------------------------------------------
def _of_parts(function: object) -> Formula:
    return lambda z: complex_of(*function(real(z), imag(z)))  # type: ignore[operator]


def _turned(function: object) -> Formula:
    """-i f(iz): with f(iz) = a + ib it is b - ia."""

    def run(z: Node) -> Node:
        a, b = function(neg(imag(z)), real(z))  # type: ignore[operator]
        return complex_of(b, neg(a))

    return run


def _cos(z: Node) -> Node:
    """cos z = cosh(iz)."""
    return complex_of(*_cosh(neg(imag(z)), real(z)))


def _inverse_root(x: Node, y: Node) -> Node:
    """1 / (sqrt(x) sqrt(y)), in which cuts stay where they are."""
    return alu(ops.DIV, 1, mul(alu(ops.SQRT, x), alu(ops.SQRT, y)))


def _one_over(x: Node) -> Node:
    return alu(ops.DIV, 1, x)


SINH = Analytic("sinh", _of_parts(_sinh), lambda z, y: COSH(z))
COSH: Analytic = Analytic("cosh", _of_parts(_cosh), lambda z, y: SINH(z))
TANH = on(ops.TANH, Analytic("tanh", _of_parts(_tanh), lambda z, y: _one_over(square(COSH(z)))))
SIN = on(ops.SIN, Analytic("sin", _turned(_sinh), lambda z, y: COS(z)))
COS: Analytic = on(ops.COS, Analytic("cos", _cos, lambda z, y: alu(ops.NEG, SIN(z))))
TAN = on(ops.TAN, Analytic("tan", _turned(_tanh), lambda z, y: _one_over(square(COS(z)))))
ASINH = Analytic(
    "asinh",
    _of_parts(_asinh),
    lambda z, y: _one_over(alu(ops.SQRT, add(mul(z, z), 1))),
)
ACOSH: Analytic = Analytic(
    "acosh", _of_parts(_acosh), lambda z, y: _inverse_root(sub(z, 1), add(z, 1))
)
ATANH = Analytic("atanh", _of_parts(_atanh), lambda z, y: _one_over(mul(sub(1, z), add(z, 1))))
ASIN = Analytic("asin", _turned(_asinh), lambda z, y: _inverse_root(sub(1, z), add(z, 1)))
ACOS = Analytic(
    "acos",
    _of_parts(_acos),
    lambda z, y: alu(ops.NEG, _inverse_root(sub(1, z), add(z, 1))),
)
ATAN = on(ops.ATAN, Analytic("atan", _turned(_atanh), lambda z, y: _one_over(add(mul(z, z), 1))))
