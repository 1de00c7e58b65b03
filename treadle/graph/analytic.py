"""Functions of complex numbers that have a complex derivative: quotients, powers, exponentials.

The value is computed from the parts, so that it is accurate and right at zeros, infinities and NaN
(the special cases of the Array API standard, which are those of C99, Annex G). Derivatives do not
look at that: `Analytic` is the rule of a CALL whose derivative is a formula in its operands and its
result. The functions of angles are in `angles.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from treadle.graph.body import parameters_like
from treadle.graph.build import ON_PAIRS, alu, const, full_like, where
from treadle.graph.call import Parts, Rule, outputs_of
from treadle.graph.complexes import conjugate, is_real
from treadle.graph.elementwise import (
    abs_,
    add,
    div,
    eq,
    isfinite,
    isinf,
    logical_and,
    logical_not,
    logical_or,
    lt,
    maximum,
    minimum,
    mul,
    neg,
    sub,
)
from treadle.graph.floating import copysign
from treadle.graph.functions import cos, exp, expm1, log, log1p, sin, sqrt
from treadle.graph.parts import by_parts, complex_of, imag, real
from treadle.graph.trigonometry import atan2, hypot
from treadle.ir import ops
from treadle.ir.dtype import DType, float32, float64
from treadle.ir.node import Node
from treadle.ir.ops import Op

Formula = Callable[..., Node]


class Analytic(Rule):
    """An elementwise function of complex numbers. value: what it is, of nodes; derivatives: one by
    each operand, formulas in the operands and the result."""

    def __init__(self, name: str, value: Formula, *derivatives: Formula) -> None:
        super().__init__(name)
        self.value, self.derivatives = value, derivatives

    def __call__(self, *xs: Node) -> Node:
        """The function of operands of one complex dtype and shape."""
        body = _body(self, len(xs), xs[0].dtype, xs[0].shape)
        return outputs_of([body], xs, self)[0]

    def _slopes(self, call: Node) -> list[Callable[[], Node]]:
        y = ops.OUT(call, arg=0, dtype=call.dtype[0])
        return [lambda d=d: d(*call.src, y) for d in self.derivatives]  # type: ignore[misc]

    def jvp(self, call: Node, tangents: Parts) -> Parts:
        parts = [
            alu(ops.ZMUL, t, slope())
            for t, slope in zip(tangents, self._slopes(call))
            if t is not None
        ]
        return [parts[0] if len(parts) == 1 else add(*parts)]

    def vjp(self, call: Node, cotangents: Parts, needed: Sequence[bool]) -> Parts:
        (g,) = cotangents
        return [
            alu(ops.ZMUL, g, conjugate(slope())) if wanted else None
            for wanted, slope in zip(needed, self._slopes(call))
        ]

    def batched(self, call: Node, has: Sequence[bool], size: Any) -> Rule:
        return self if all(has) else super().batched(call, has, size)


@lru_cache(maxsize=256)
def _body(rule: Analytic, count: int, dtype: DType, shape: Any) -> Node:
    like = Node(ops.PLACEHOLDER, dtype, (), (0, shape))
    return rule.value(*parameters_like([like] * count))


def on(op: Op, function: Analytic) -> Analytic:
    """Files a function as what an operation is of complex numbers."""
    ON_PAIRS[op] = lambda nodes, given: function(*nodes)
    return function


# ---- sizes ---------------------------------------------------------------------------------------
# dtype -> (least normal number, greatest number, a power of 4 that makes the least ones normal)
LIMITS = {
    float32: (2.0**-126, (2 - 2.0**-23) * 2.0**127, 2.0**48),
    float64: (2.0**-1022, (2 - 2.0**-52) * 2.0**1023, 2.0**104),
}


def greatest(dtype: DType) -> float:
    """The greatest finite number of a part."""
    return LIMITS[dtype][1]


def moderate(x: Node, y: Node) -> tuple[Node, Node, Node]:
    """(f x, f y, f): a power of 4 by which the square of neither is lost or overflows."""
    least, most, up = LIMITS[x.dtype]
    size = maximum(abs_(x), abs_(y))
    small, large = lt(size, least * up), lt(most / 16, size)
    factor = where(small, up, where(large, 1 / 16, full_like(x, 1)))
    return mul(x, factor), mul(y, factor), factor


# ---- quotients -----------------------------------------------------------------------------------
def _divide(z: Node, w: Node) -> Node:
    """(a + ib) / (c + id), by Smith's method: with |d| <= |c| and r = d/c it is
    ((a + br) + i (b - ar)) / (c + dr), else the same of the parts the other way round.

    Very large and very small numbers are scaled first by powers of 2. What is divided by 0 is each
    part divided by 0, what is finite divided by infinity is 0. (Smith, "Algorithm 116: complex
    division", 1962; Baudin and Smith, "A robust complex division in Scilab", 2012.)
    """
    a, b, scale_up = _halved(real(z), imag(z))
    c, d, scale_down = _halved(real(w), imag(w))
    infinite = logical_or(isinf(c), isinf(d))
    c, d = (
        where(infinite, copysign(where(isinf(part), full_like(part, 1), 0), part), part)
        for part in (c, d)
    )
    turned = lt(abs_(c), abs_(d))
    p, q = where(turned, b, a), where(turned, neg(a), b)  # (b - ia) / (d - ic) is the same
    u, v = where(turned, d, c), where(turned, neg(c), d)
    ratio = div(v, u)
    whole = add(u, mul(v, ratio))
    re = div(add(p, _small_product(q, v, u, ratio)), whole)
    im = div(sub(q, _small_product(p, v, u, ratio)), whole)
    scale = where(infinite, 0, div(scale_down, scale_up))
    nothing = logical_and(eq(c, 0), eq(d, 0))
    size = abs_(real(w))
    return complex_of(
        where(nothing, div(real(z), size), mul(re, scale)),
        where(nothing, div(imag(z), size), mul(im, scale)),
    )


def _small_product(part: Node, v: Node, u: Node, ratio: Node) -> Node:
    """part * v / u, of which v / u may be lost."""
    return where(eq(ratio, 0), mul(v, div(part, u)), mul(part, ratio))


def _halved(x: Node, y: Node) -> tuple[Node, Node, Node]:
    """(f x, f y, f) for a power of 2 by which a sum of two does not overflow, nor is a part of
    their ratio lost."""
    least, most, up = LIMITS[x.dtype]
    size = maximum(abs_(x), abs_(y))
    epsilon = 2.0**-23 if x.dtype is float32 else 2.0**-52
    small, large = lt(size, 2 * least / epsilon), lt(most / 4, size)
    factor = where(small, up, where(large, 0.25, full_like(x, 1)))
    return mul(x, factor), mul(y, factor), factor


DIVIDE = Analytic(
    "divide",
    _divide,
    lambda z, w, y: alu(ops.DIV, 1, w),
    lambda z, w, y: alu(ops.NEG, alu(ops.DIV, y, w)),
)


def _quotient(nodes: Sequence[Node], given: Sequence[Any]) -> Node:
    z, w = nodes
    if is_real(given[1]):
        return by_parts(lambda part: div(part, real(w)), z)
    return DIVIDE(z, w)


ON_PAIRS[ops.DIV] = _quotient


# ---- size ----------------------------------------------------------------------------------------
def absolute(z: Node) -> Node:
    """The distance from 0, which does not overflow on the way; its derivative at 0 is 0."""
    x, y = real(z), imag(z)
    nowhere = logical_and(eq(x, 0), eq(y, 0))
    return where(nowhere, 0, hypot(where(nowhere, 1, x), y))


ON_PAIRS[ops.ABS] = lambda nodes, given: absolute(*nodes)


# ---- exponentials --------------------------------------------------------------------------------
# dtype -> (from where on e^x is near its end, by how much x is made smaller there)
_STEEP = {float32: (80.0, 60.0), float64: (700.0, 600.0)}


def rising(x: Node) -> tuple[Node, Node]:
    """Two factors whose product is e^x, of which none overflows before a product with a number
    below 1 must."""
    limit, step = _STEEP[x.dtype]
    steep = lt(limit, x)
    return exp(where(steep, sub(x, step), x)), where(steep, math.exp(step), full_like(x, 1))


def _exp(z: Node) -> Node:
    """e^x (cos y + i sin y)."""
    x, y = real(z), imag(z)
    rise, scale = rising(x)
    lost = logical_and(isinf(x), logical_not(isfinite(y)))  # the direction at infinity
    re = where(lost, rise, mul(mul(rise, cos(y)), scale))
    im = where(logical_and(lost, lt(x, 0)), 0, mul(mul(rise, sin(y)), scale))
    return complex_of(re, where(eq(y, 0), y, im))


def _expm1(z: Node) -> Node:
    """exp(z) - 1; its real part near 0 is expm1(x) cos y - 2 sin^2(y/2)."""
    x, y = real(z), imag(z)
    whole = _exp(z)
    half = sin(mul(y, 0.5))
    near = sub(mul(expm1(x), cos(y)), mul(mul(half, half), 2))
    return complex_of(where(lt(abs_(x), 1), near, sub(real(whole), 1)), imag(whole))


EXP = on(ops.EXP, Analytic("exp", _exp, lambda z, y: y))
EXPM1 = on(ops.EXPM1, Analytic("expm1", _expm1, lambda z, y: EXP(z)))
EXP2 = on(
    ops.EXP2,
    Analytic("exp2", lambda z: _exp(mul(z, math.log(2))), lambda z, y: mul(y, math.log(2))),
)


# ---- logarithms and roots ------------------------------------------------------------------------
def log_size(x: Node, y: Node) -> Node:
    """log(sqrt(x^2 + y^2)); near 1 log1p((m - 1) (m + 1) + n^2) / 2 of the greater part m and the
    lesser n, which loses no digits."""
    a, b, factor = moderate(x, y)
    size = hypot(a, b)
    m, n = maximum(abs_(a), abs_(b)), minimum(abs_(a), abs_(b))
    near = mul(log1p(alu(ops.FMA, n, n, mul(sub(m, 1), add(m, 1)))), 0.5)
    far = sub(log(size), log(factor))
    return where(logical_and(lt(0.5, size), lt(size, 3)), where(eq(factor, 1), near, far), far)


def _log(z: Node) -> Node:
    """log|z| + i angle, cut along the negative real axis."""
    x, y = real(z), imag(z)
    return complex_of(log_size(x, y), atan2(y, x))


def _log1p(z: Node) -> Node:
    """log(1 + z), exact near 0."""
    x, y = real(z), imag(z)
    whole = add(x, 1)
    near = mul(log1p(alu(ops.FMA, y, y, mul(x, add(x, 2)))), 0.5)
    small = logical_and(lt(abs_(x), 0.5), lt(abs_(y), 0.5))
    return complex_of(where(small, near, log_size(whole, y)), atan2(y, whole))


def root(x: Node, y: Node) -> tuple[Node, Node]:
    """The parts of the square root, of which the real one is not below 0: with
    t = sqrt((|x| + |z|) / 2), t and |y| / 2t, or the other way round if x is below 0."""
    a, b, factor = moderate(x, y)
    t = sqrt(mul(add(abs_(a), hypot(a, b)), 0.5))
    other = where(eq(t, 0), 0, div(abs_(b), mul(t, 2)))
    back = div(1, sqrt(factor))
    left = lt(x, 0)
    re = mul(where(left, other, t), back)
    im = copysign(mul(where(left, t, other), back), y)
    endless = isinf(y)
    return where(endless, math.inf, re), where(endless, y, im)


def _sqrt(z: Node) -> Node:
    return complex_of(*root(real(z), imag(z)))


def _scaled_log(base: float) -> Formula:
    return lambda z: by_parts(lambda part: mul(part, 1 / math.log(base)), _log(z))


def _slope_of_log(base: float) -> Formula:
    return lambda z, y: alu(ops.DIV, 1 / math.log(base), z)


LOG = on(ops.LOG, Analytic("log", _log, lambda z, y: alu(ops.DIV, 1, z)))
LOG2 = on(ops.LOG2, Analytic("log2", _scaled_log(2), _slope_of_log(2)))
LOG10 = Analytic("log10", _scaled_log(10), _slope_of_log(10))
LOG1P = on(ops.LOG1P, Analytic("log1p", _log1p, lambda z, y: alu(ops.DIV, 1, add(z, 1))))
SQRT = on(ops.SQRT, Analytic("sqrt", _sqrt, lambda z, y: alu(ops.DIV, 0.5, y)))
RSQRT = Analytic(
    "rsqrt",
    lambda z: _divide(const(1, z.dtype, z.shape), _sqrt(z)),
    lambda z, y: mul(mul(y, mul(y, y)), -0.5),
)


# ---- powers --------------------------------------------------------------------------------------
def _power(z: Node, w: Node) -> Node:
    """exp(w log z). 0 to a power with a positive real part is 0, and to the power 0 it is 1."""
    power = _exp(mul(w, _log(z)))
    at_zero = where(lt(0, real(w)), const(0, z.dtype), const(complex(math.nan, math.nan), z.dtype))
    return where(eq(w, 0), 1, where(eq(z, 0), at_zero, power))


POWER: Analytic = on(
    ops.POW,
    Analytic(
        "pow",
        _power,
        lambda z, w, y: alu(ops.ZMUL, w, POWER(z, sub(w, 1))),
        lambda z, w, y: alu(ops.ZMUL, y, LOG(z)),
    ),
)


def _sigmoid(z: Node) -> Node:
    """1 / (1 + exp(-z))."""
    return _divide(const(1, z.dtype, z.shape), add(_exp(alu(ops.NEG, z)), 1))


SIGMOID: Analytic = Analytic("sigmoid", _sigmoid, lambda z, y: mul(y, SIGMOID(alu(ops.NEG, z))))
