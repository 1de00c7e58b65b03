"""Special functions of mathematics: of the error function, of gamma, and logarithms of sums.

Integers and bools become float32; half and bfloat16 are computed in float32 and rounded once.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from treadle.graph.build import Operand, alu, as_float, cast, where
from treadle.graph.elementwise import (
    abs_,
    add,
    div,
    eq,
    floats,
    le,
    logical_and,
    logical_or,
    lt,
    mul,
    neg,
    rounded_once,
    sub,
)
from treadle.graph.functions import exp, log, log1p
from treadle.graph.public import public
from treadle.ir import ops
from treadle.ir.node import Node
from treadle.ir.ops import Op


def _special(name: str, op: Op, text: str) -> Callable[[Operand], Node]:
    def function(x: Operand) -> Node:
        return alu(op, as_float(x))

    function.__doc__ = f"{text}, in floating point."
    return public(name, source="PyTorch")(function)


erfc = _special("erfc", ops.ERFC, "1 - erf(x), exact where that is small")
erfinv = _special(
    "erfinv", ops.ERFINV, "The number whose error function is x; inf at 1, NaN outside [-1, 1]"
)
lgamma = _special(
    "lgamma", ops.LGAMMA, "The logarithm of |gamma(x)|; inf at 0, the negative integers and -inf"
)
digamma = _special(
    "digamma",
    ops.DIGAMMA,
    "The derivative of `lgamma`; -inf at 0.0, inf at -0.0, NaN at the negative integers",
)


@public("logit", source="PyTorch")
@rounded_once
def logit(x: Node, eps: float | None = None) -> Node:
    """log(x / (1 - x)), the inverse of sigmoid; NaN outside [0, 1]. eps: x is first brought into
    [eps, 1 - eps], with the derivative 0 outside.

    Far from 1/2 it is log(x) - log(1 - x), whose derivatives are right at 0 and 1.

    >>> Tensor([0.5, 1.0]).logit()
    Tensor([ 0., inf])
    """
    if eps is not None:
        low, high = eps, 1 - eps
        x = where(lt(x, low), low, where(lt(high, x), high, x))
    middle = lt(abs_(sub(x, 0.5)), 0.25)
    ratio = where(middle, div(x, sub(1, where(middle, x, 0))), x)
    return sub(log(ratio), log1p(neg(where(middle, 0, x))))


@public("logaddexp", source="PyTorch", namespace=True)
def logaddexp(x: Operand, other: Operand) -> Node:
    """log(exp(x) + exp(other)), which does not overflow.

    The greater plus log1p of exp of the difference; both ways to choose where they are equal have
    the same derivatives.

    >>> Tensor([1000.0]).logaddexp(Tensor([0.0]))
    Tensor([1000.])
    """
    first, second = floats(x, other)
    dtype = first.dtype
    a, b = cast(first, dtype.accumulator), cast(second, dtype.accumulator)
    rising = lt(a, b)
    high, low = where(rising, b, a), where(rising, a, b)
    # the difference of equal infinities is NaN
    same = logical_and(eq(a, b), logical_or(eq(a, math.inf), eq(a, -math.inf)))
    return cast(add(high, log1p(exp(where(same, 0, sub(low, high))))), dtype)


@public("logaddexp2", source="PyTorch")
def logaddexp2(x: Operand, other: Operand) -> Node:
    """log2(2**x + 2**other), which does not overflow.

    >>> Tensor([1000.0]).logaddexp2(Tensor([1000.0]))
    Tensor([1001.])
    """
    first, second = floats(x, other)
    wide = first.dtype.accumulator
    a, b = (mul(cast(each, wide), math.log(2)) for each in (first, second))
    return cast(div(logaddexp(a, b), math.log(2)), first.dtype)


@public("xlog1py", source="PyTorch", method=False, special=True)
def xlog1py(x: Operand, other: Operand) -> Node:
    """x * log1p(other), which is 0 where x is 0 unless `other` is NaN.

    >>> treadle.special.xlog1py(Tensor([0.0, 2.0]), Tensor([-1.0, 0.0]))
    Tensor([0., 0.])
    """
    first, second = floats(x, other)
    wide = first.dtype.accumulator
    factor, value = cast(first, wide), cast(second, wide)
    extreme = logical_or(le(value, -1), eq(value, math.inf))
    nothing = logical_and(eq(factor, 0), extreme)
    return cast(mul(factor, log1p(where(nothing, 0, value))), first.dtype)


@public("entr", source="PyTorch", method=False, special=True)
@rounded_once
def entr(x: Node) -> Node:
    """-x * log(x), a term of the entropy: 0 of 0, -inf below.

    >>> treadle.special.entr(Tensor([0.0, -1.0]))
    Tensor([  0., -inf])
    """
    positive = lt(0, x)
    found = where(positive, neg(mul(x, log(where(positive, x, 1)))), x)
    return where(lt(x, 0), -math.inf, found)
