"""Functions of one real variable: exponentials, trigonometry, activations.

Integers and bools become float32. A function made of several operations computes half and bfloat16
in float32 and rounds once (`rounded_once`). Each is written so that neither the value nor its
derivatives overflow on the way: the branch that is not chosen stays finite.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from treadle.graph.build import Operand, alu, as_float, node_of, where
from treadle.graph.elementwise import abs_, add, div, le, lt, mul, neg, rounded_once, sub
from treadle.graph.public import public
from treadle.ir import ops
from treadle.ir.node import Node
from treadle.ir.ops import Op


def _function(
    name: str, op: Op, text: str, aliases: tuple[str, ...] = ()
) -> Callable[[Operand], Node]:
    def function(x: Operand) -> Node:
        return alu(op, as_float(x))

    function.__doc__ = f"{text}, in floating point."
    return public(name, source="PyTorch", namespace=True, aliases=aliases)(function)


exp = _function("exp", ops.EXP, "e to the power x")
exp2 = _function("exp2", ops.EXP2, "2 to the power x")
expm1 = _function("expm1", ops.EXPM1, "exp(x) - 1, exact near 0")
log = _function("log", ops.LOG, "The natural logarithm; -inf of 0, NaN below")
log2 = _function("log2", ops.LOG2, "The logarithm to base 2; -inf of 0, NaN below")
log1p = _function("log1p", ops.LOG1P, "log(1 + x), exact near 0")
sqrt = _function("sqrt", ops.SQRT, "The square root; NaN below 0")
sin = _function("sin", ops.SIN, "The sine of x radians")
cos = _function("cos", ops.COS, "The cosine of x radians")
tan = _function("tan", ops.TAN, "The tangent of x radians")
atan = _function("atan", ops.ATAN, "The angle, in radians, whose tangent is x", ("arctan",))
tanh = _function("tanh", ops.TANH, "The hyperbolic tangent")
erf = _function("erf", ops.ERF, "The error function")


@public("log10", source="PyTorch", namespace=True)
@rounded_once
def log10(x: Node) -> Node:
    """The logarithm to base 10, in floating point; -inf of 0, NaN below.

    >>> Tensor([1.0, 100.0]).log10()
    Tensor([0., 2.])
    """
    return mul(log2(x), math.log10(2.0))


def _halves(x: Node) -> tuple[Node, Node]:
    """exp(x)/2 and exp(-x)/2, as squares, so that they do not overflow before they must."""
    rising, falling = exp(mul(x, 0.5)), exp(mul(x, -0.5))
    return mul(rising, mul(rising, 0.5)), mul(falling, mul(falling, 0.5))


@public("sinh", source="PyTorch", namespace=True)
@rounded_once
def sinh(x: Node) -> Node:
    """The hyperbolic sine, exact near 0: there, with t = expm1(x), it is (t + t/(t + 1)) / 2.

    >>> Tensor([0.0]).sinh()
    Tensor([0.])
    """
    small = lt(abs_(x), 1)
    t = expm1(where(small, x, 0))
    rising, falling = _halves(x)
    return where(small, mul(add(t, div(t, add(t, 1))), 0.5), sub(rising, falling))


@public("cosh", source="PyTorch", namespace=True)
@rounded_once
def cosh(x: Node) -> Node:
    """The hyperbolic cosine; near 0, with t = expm1(x), it is 1 + t^2/(t + 1)/2, whose derivative
    keeps its digits there.

    >>> Tensor([0.0]).cosh()
    Tensor([1.])
    """
    small = lt(abs_(x), 1)
    t = expm1(where(small, x, 0))
    return where(small, add(mul(div(mul(t, t), add(t, 1)), 0.5), 1), add(*_halves(x)))


# ---- activations ---------------------------------------------------------------------------------
@public("relu", source="PyTorch")
def relu(x: Operand) -> Node:
    """x where it is above 0, else 0; NaN stays NaN. The derivative at 0 is 0.

    >>> Tensor([-1.0, 2.0]).relu()
    Tensor([0., 2.])
    """
    node = node_of(x)
    return where(le(node, 0), 0, node)


@public("sigmoid", source="PyTorch")
@rounded_once
def sigmoid(x: Node) -> Node:
    """1 / (1 + exp(-x)).

    With e = exp(-|x|) it is 1/(1 + e) from 0 on and e/(1 + e) below, so that nothing overflows;
    |x| is chosen by `where`, not by abs, whose derivative at 0 would be 0.

    >>> Tensor([0.0, 100.0]).sigmoid()
    Tensor([0.5, 1. ])
    """
    rising = le(0, x)
    e = exp(where(rising, neg(x), x))
    return div(where(rising, 1, e), add(e, 1))


@public("silu", source="PyTorch", aliases=("swish",))
@rounded_once
def silu(x: Node) -> Node:
    """x * sigmoid(x).

    >>> Tensor([0.0, 100.0]).silu()
    Tensor([  0., 100.])
    """
    return mul(x, sigmoid(x))


@public("gelu", source="PyTorch")
@rounded_once
def gelu(x: Node, approximate: str = "none") -> Node:
    """x times the probability that a normal variable is below x: x/2 * (1 + erf(x/sqrt 2)); with
    approximate="tanh", x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3))).

    Source: Hendrycks and Gimpel, "Gaussian error linear units", 2016.

    >>> Tensor([0.0, 100.0]).gelu()
    Tensor([  0., 100.])
    """
    if approximate == "none":
        return mul(x, alu(ops.NORMAL_CDF, x))
    if approximate != "tanh":
        raise ValueError(f"gelu: approximate is 'none' or 'tanh', not {approximate!r}")
    cubic = add(x, mul(mul(mul(x, x), x), 0.044715))
    return mul(x, sigmoid(mul(cubic, math.sqrt(8 / math.pi))))  # (1 + tanh(u))/2 is sigmoid(2u)
