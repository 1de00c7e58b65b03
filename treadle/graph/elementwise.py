"""Elementwise functions: arithmetic, comparison, logic, bits, and choosing.

All broadcast and promote; Python scalars are weak (`build.operands`). What is for floats turns
integers and bools into float32. Functions of one real variable are in `functions.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar
from typing import cast as typed

from treadle.graph import shapes
from treadle.graph.build import (
    SCALARS,
    Operand,
    alu,
    as_float,
    cast,
    const,
    expand,
    full_like,
    node_of,
    ones_like,
    operands,
    weak_dtype,
    where,
)
from treadle.graph.constants import is_beyond
from treadle.graph.public import public
from treadle.ir import ops
from treadle.ir.dtype import bool_, float64, int64, promote, uint64
from treadle.ir.node import Node
from treadle.ir.ops import Op

F = TypeVar("F", bound=Callable[..., Node])


def rounded_once(function: F) -> F:
    """A function of a float tensor that takes any dtype: integers and bools become float32, and
    half and bfloat16 are computed in float32 and rounded at the result."""

    @wraps(function)
    def run(x: Operand, *args: Any, **named: Any) -> Node:
        x = as_float(x)
        wide = x.dtype.accumulator
        if wide is x.dtype:
            return function(x, *args, **named)
        return cast(function(cast(x, wide), *args, **named), x.dtype)

    return typed(F, run)


def floats(*xs: Operand) -> tuple[Node, ...]:
    """Operands promoted to one floating type: float32 if all are integers."""
    return tuple([as_float(x) for x in operands(*xs)])


def _numbers(name: str, *xs: Operand) -> tuple[Node, ...]:
    """Operands promoted to one type that is not bool. TypeError if all are bool."""
    nodes = operands(*xs)
    if nodes[0].dtype is bool_:
        raise TypeError(f"{name} is for numbers, not for bool: cast one of the tensors first")
    return nodes


# ---- arithmetic ----------------------------------------------------------------------------------
@public("add", source="PyTorch", namespace=True)
def add(x: Operand, other: Operand, *, alpha: Operand = 1) -> Node:
    """x + alpha * other. Of bools: or.

    >>> Tensor([1, 2]).add(Tensor([10, 20]), alpha=2)
    Tensor([21, 42])
    """
    return alu(ops.ADD, x, other if alpha == 1 else mul(other, alpha))


@public("sub", source="PyTorch", namespace=True, aliases=("subtract",))
def sub(x: Operand, other: Operand, *, alpha: Operand = 1) -> Node:
    """x - alpha * other.

    >>> Tensor([10, 20]) - Tensor([1, 2])
    Tensor([ 9, 18])
    """
    a, b = _numbers("-", x, other)
    return alu(ops.SUB, a, b if alpha == 1 else mul(b, alpha))


@public("rsub", source="PyTorch")
def rsub(x: Operand, other: Operand, *, alpha: Operand = 1) -> Node:
    """other - alpha * x.

    >>> Tensor([1, 2]).rsub(10)
    Tensor([9, 8])
    """
    a, b = _numbers("-", other, x)
    return alu(ops.SUB, a, b if alpha == 1 else mul(b, alpha))


@public("mul", source="PyTorch", namespace=True, aliases=("multiply",))
def mul(x: Operand, other: Operand) -> Node:
    """x * other. Of bools: and.

    >>> Tensor([1, 2]) * Tensor([[10], [20]])
    Tensor([[10, 20],
            [20, 40]])
    """
    return alu(ops.MUL, x, other)


@public("div", source="PyTorch", namespace=True, aliases=("divide", "true_divide"))
def div(x: Operand, other: Operand, *, rounding_mode: str | None = None) -> Node:
    """x / other, in floating point (integers give float32). rounding_mode="floor" is `//` and
    "trunc" rounds towards zero; both keep integers.

    >>> Tensor([7, -7]).div(2, rounding_mode="trunc")
    Tensor([ 3, -3])
    """
    if rounding_mode is None:
        return alu(ops.DIV, *floats(x, other))
    if rounding_mode == "floor":
        return floor_divide(x, other)
    if rounding_mode != "trunc":
        raise ValueError(f"div: rounding_mode is None, 'floor' or 'trunc', not {rounding_mode!r}")
    a, b = _numbers("div", x, other)
    if a.dtype.is_float:
        return alu(ops.TRUNC, div(a, b))
    quotient = alu(ops.IDIV, a, b)
    inexact = ne(mul(quotient, b), a)
    return where(logical_and(lt(quotient, 0), inexact), add(quotient, 1), quotient)


@public("floor_divide", source="PyTorch", namespace=True, gradient="no")
def floor_divide(x: Operand, other: Operand) -> Node:
    """The quotient rounded down, `//`. Of integers by zero it is 0; of floats x / 0.

    >>> Tensor([7, -7]) // 2
    Tensor([ 3, -4])
    """
    a, b = _numbers("//", x, other)
    if not a.dtype.is_float:
        return alu(ops.IDIV, a, b)
    wide = a.dtype.accumulator
    return cast(_floor_quotient(cast(a, wide), cast(b, wide)), a.dtype)


def _floor_quotient(a: Node, b: Node) -> Node:
    """floor(a / b) of the exact quotient, as Python has it: 1.0 // 0.1 is 9.

    A quotient that needs all the digits of the type is whole already, so a / b is the answer.
    """
    quotient = div(a, b)
    remainder = _truncated_remainder(a, b)
    whole = alu(ops.RINT, div(sub(a, remainder), b))
    below = logical_and(ne(remainder, 0), ne(lt(remainder, 0), lt(b, 0)))
    exact = where(below, sub(whole, 1), whole)
    exact = where(eq(exact, 0), mul(quotient, 0), exact)  # 0 with the sign of the quotient
    digits = 2.0**53 if a.dtype is float64 else 2.0**24
    infinite = logical_and(eq(abs_(a), math.inf), ne(b, 0))
    return where(
        lt(abs_(quotient), digits), exact, where(infinite, full_like(a, math.nan), quotient)
    )


@public("remainder", source="PyTorch", namespace=True, aliases=("mod",))
def remainder(x: Operand, other: Operand) -> Node:
    """What `//` leaves, with the sign of `other`: `%`. Of integers by zero it is 0, of floats NaN.

    Exact while |x / other| < 2**48 (float64: 2**106), NaN beyond that.

    >>> Tensor([7, -7]) % 3
    Tensor([1, 2])
    """
    a, b = _numbers("%", x, other)
    if not a.dtype.is_float:
        return alu(ops.MOD, a, b)
    wide_a, wide_b = cast(a, a.dtype.accumulator), cast(b, a.dtype.accumulator)
    rest = _truncated_remainder(wide_a, wide_b)
    other_sign = logical_and(ne(rest, 0), ne(lt(rest, 0), lt(wide_b, 0)))
    rest = where(other_sign, add(rest, wide_b), rest)
    zero = where(lt(wide_b, 0), neg(sub(0, rest)), add(rest, 0.0))  # with the sign of b
    return cast(where(eq(rest, 0), zero, rest), a.dtype)


@public("fmod", source="PyTorch")
def fmod(x: Operand, other: Operand) -> Node:
    """What division rounded towards zero leaves, with the sign of x; else as `remainder`.

    >>> Tensor([7, -7]).fmod(3)
    Tensor([ 1, -1])
    """
    a, b = _numbers("fmod", x, other)
    if a.dtype.is_float:
        wide = a.dtype.accumulator
        return cast(_truncated_remainder(cast(a, wide), cast(b, wide)), a.dtype)
    rest = alu(ops.MOD, a, b)
    other_sign = logical_and(ne(rest, 0), ne(lt(rest, 0), lt(a, 0)))
    return where(other_sign, sub(rest, b), rest)


def _truncated_remainder(a: Node, b: Node) -> Node:
    """a - trunc(a / b) * b, exactly.

    With q the quotient rounded to p digits, a - q*b has at most p digits, so one fma gives it
    exactly and makes it smaller by 2**p. Twice, and then |rest| < |b| but perhaps, since q was
    rounded, on the wrong side of 0.
    """
    a, b = operands(a, b)
    rest = a
    for _ in range(2):
        quotient = alu(ops.TRUNC, div(rest, b))
        rest = where(eq(quotient, 0), rest, alu(ops.FMA, neg(quotient), b, rest))
    wrong_side = logical_and(ne(rest, 0), ne(lt(rest, 0), lt(a, 0)))
    magnitude = where(lt(a, 0), neg(abs_(b)), abs_(b))
    rest = where(wrong_side, add(rest, magnitude), rest)
    signed = where(logical_and(eq(rest, 0), lt(a, 0)), neg(sub(0, rest)), rest)  # 0 like a
    return where(lt(abs_(rest), abs_(b)), signed, full_like(rest, math.nan))


@public("neg", source="PyTorch", namespace=True, aliases=("negative",))
def neg(x: Operand) -> Node:
    """-x. TypeError for bool (`~x` negates a condition).

    >>> -Tensor([1, -2])
    Tensor([-1,  2])
    """
    return alu(ops.NEG, x)


@public("abs", source="PyTorch", namespace=True, aliases=("absolute",))
def abs_(x: Operand) -> Node:
    """The magnitude of x; the least integer, which has none, stays as it is.

    >>> Tensor([-1, 2]).abs()
    Tensor([1, 2])
    """
    node = node_of(x)
    return node if node.dtype.kind in "bu" else alu(ops.ABS, node)


@public("sign", source="Array API", namespace=True, gradient="no")
def sign(x: Operand) -> Node:
    """-1, 0 or 1 as x is below, at or above 0; NaN of NaN. The derivative is 0.

    >>> Tensor([-3, 0, 5]).sign()
    Tensor([-1,  0,  1])
    """
    node = node_of(x)
    if node.dtype.kind in "bu":
        return cast(ne(node, 0), node.dtype)
    rest = const(0, node.dtype)
    if node.dtype.is_float:  # NaN stays; what is rounded down has a derivative, 0
        rest = where(eq(node, 0), rest, alu(ops.FLOOR, node))
    return where(lt(0, node), 1, where(lt(node, 0), -1, rest))


# ---- powers --------------------------------------------------------------------------------------
@public("pow", source="PyTorch", namespace=True)
def pow_(x: Operand, exponent: Operand) -> Node:
    """x to a power, `**`. Integers to an integer power are exact and wrap at the width.

    ValueError for integers to a negative Python int. Where such an exponent stands in a tensor the
    result is 0, or 1 and -1 for the bases that have an integer inverse.

    >>> Tensor([2.0, 3.0]) ** 2
    Tensor([4., 9.])
    """
    if isinstance(exponent, (int, float)) and isinstance(x, Node):
        simple = _known_power(x, exponent)
        if simple is not None:
            return simple
    base, power = _numbers("**", x, exponent)
    if base.dtype.is_float:
        return alu(ops.POW, base, power)
    return _integer_power(base, power)


def _known_power(x: Node, exponent: int | float) -> Node | None:
    """x**exponent by other operations, or None if there are none."""
    if x.dtype.is_int and isinstance(exponent, int) and not isinstance(exponent, bool):
        if exponent < 0:
            raise ValueError("** of integers to a negative power: cast the tensor to a float first")
        return by_squaring(x, exponent)
    if x.dtype.is_float and exponent in _POWERS:
        return _POWERS[exponent](x)
    return None


def by_squaring(x: Node, exponent: int) -> Node:
    """x**exponent by one multiplication or two per binary digit."""
    result = None
    while exponent:
        if exponent & 1:
            result = x if result is None else mul(result, x)
        exponent >>= 1
        if exponent:
            x = mul(x, x)
    return where(True, ones_like(x), x) if result is None else result


def _integer_power(x: Node, power: Node) -> Node:
    """x**power of integer tensors, by squaring over every digit that the type has."""
    result, factor, left = ones_like(x), x, power
    for digit in range(x.dtype.bits):
        odd = ne(alu(ops.AND, left, 1), 0)
        result = where(odd, mul(result, factor), result)
        if digit + 1 < x.dtype.bits:
            factor = mul(factor, factor)
            left = alu(ops.RSHIFT, left, 1)
    if x.dtype.kind == "u":
        return result
    minus = where(eq(alu(ops.AND, power, 1), 0), const(1, x.dtype), const(-1, x.dtype))
    inverse = where(eq(x, 1), 1, where(eq(x, -1), minus, const(0, x.dtype)))
    return where(lt(power, 0), inverse, result)


@public("square", source="PyTorch", namespace=True)
def square(x: Operand) -> Node:
    """x * x, in the dtype of x; int64 of a bool.

    >>> Tensor([-3, 5]).square()
    Tensor([ 9, 25])
    """
    node = node_of(x)
    node = cast(node, int64) if node.dtype is bool_ else node
    return mul(node, node)


@public("reciprocal", source="PyTorch", namespace=True)
def reciprocal(x: Operand) -> Node:
    """1 / x, in floating point.

    >>> Tensor([2.0, 4.0]).reciprocal()
    Tensor([0.5 , 0.25])
    """
    return div(1, x if isinstance(x, Node) else node_of(x))


@public("rsqrt", source="PyTorch")
@rounded_once
def rsqrt(x: Node) -> Node:
    """1 / sqrt(x), in floating point.

    >>> Tensor([4.0, 16.0]).rsqrt()
    Tensor([0.5 , 0.25])
    """
    return div(1, alu(ops.SQRT, x))


@rounded_once
def _half_power(x: Node) -> Node:
    """x**0.5, which is sqrt(x) but of -inf, inf, and of -0.0, 0.0 (to which x + 0.0 turns it)."""
    return where(eq(x, -math.inf), math.inf, alu(ops.SQRT, add(x, 0.0)))


# The exponents whose powers are cheaper, and no less exact, by other operations. These agree with
# POW for every x: infinities, zeros of both signs, and where x * x would overflow and its inverse
# be lost.
_POWERS: dict[float, Callable[[Node], Node]] = {
    1: lambda x: x,
    2: square,
    3: rounded_once(lambda x: mul(mul(x, x), x)),
    0.5: _half_power,
    -0.5: rounded_once(lambda x: reciprocal(_half_power(x))),
    -1: reciprocal,
    -2: rounded_once(lambda x: square(reciprocal(x))),
}


# ---- rounding ------------------------------------------------------------------------------------
def _rounding(name: str, op: Op, text: str, *aliases: str) -> Callable[[Operand], Node]:
    def function(x: Operand) -> Node:
        node = node_of(x)
        return alu(op, node) if node.dtype.is_float else node

    function.__doc__ = f"{text}; integers stay as they are."
    file = public(name, source="PyTorch", namespace=True, gradient="no", aliases=aliases)
    return file(function)


floor = _rounding("floor", ops.FLOOR, "x rounded down to a whole number")
ceil = _rounding("ceil", ops.CEIL, "x rounded up to a whole number")
trunc = _rounding("trunc", ops.TRUNC, "x rounded towards zero to a whole number", "fix")


@public("round", source="PyTorch", namespace=True, gradient="no")
def round_(x: Operand, decimals: int = 0) -> Node:
    """x rounded to the nearest whole number, halves to the even one; with `decimals`, to so many
    digits behind the point (or, below 0, before it). Integers stay as they are.

    >>> Tensor([0.5, 1.5, 2.5]).round()
    Tensor([0., 2., 2.])
    """
    node, digits = node_of(x), shapes.as_int(decimals, "decimals")
    if not node.dtype.is_float:
        if digits < 0:
            raise ValueError("round: decimals below 0 are for floats: cast the tensor first")
        return node
    if digits == 0:
        return alu(ops.RINT, node)
    wide = cast(node, node.dtype.accumulator)
    scale = 10.0 ** abs(digits)
    if digits > 0:
        return cast(div(alu(ops.RINT, mul(wide, scale)), scale), node.dtype)
    return cast(mul(alu(ops.RINT, div(wide, scale)), scale), node.dtype)


# ---- comparison ----------------------------------------------------------------------------------
def _is_beyond(number: Operand, other: Operand) -> bool:
    """Whether a Python int is below, or above, all numbers that a tensor's dtype holds."""
    if not isinstance(number, int) or not isinstance(other, Node):
        return False
    return is_beyond(number, weak_dtype(other.dtype, number))


def _on_one_side(op: Op, number: int, x: Node, swapped: bool) -> Node:
    """`number op x`, or `x op number`, of a number beyond what the dtype of x holds: the same for
    every integer, for which 0 stands, and what an infinity gives for floats."""
    sign = -1 if number < 0 else 1
    if x.dtype.is_inexact:
        endless = sign * math.inf
        return alu(op, x, endless) if swapped else alu(op, endless, x)
    return expand(alu(op, 0, sign) if swapped else alu(op, sign, 0), x.shape)


def _compared(op: Op, x: Operand, y: Operand) -> Node:
    """The comparison `op` of x and y, exact also of two integers that no integer dtype holds
    both."""
    sides: list[Operand] = [n if isinstance(n, SCALARS) else node_of(n) for n in (x, y)]
    a, b = sides
    if _is_beyond(a, b):
        return _on_one_side(op, a, b, False)
    if _is_beyond(b, a):
        return _on_one_side(op, b, a, True)
    are_ints = all(isinstance(side, Node) and side.dtype.is_int for side in sides)
    if are_ints and promote(a.dtype, b.dtype).is_float:  # uint64 with a signed dtype
        unsigned = alu(op, cast(a, uint64), cast(b, uint64))
        if a.dtype is uint64:
            return where(lt(b, 0), alu(op, 0, -1), unsigned)
        return where(lt(a, 0), alu(op, -1, 0), unsigned)
    return alu(op, a, b)


def _comparison(
    name: str, alias: str | None, op: Op, swapped: bool, text: str
) -> Callable[..., Node]:
    def function(x: Operand, other: Operand) -> Node:
        return _compared(op, other, x) if swapped else _compared(op, x, other)

    function.__doc__ = (
        f"Whether {text}, as bool. False where either is NaN (`!=`: True). Integers are compared "
        "exactly, whatever their dtypes."
    )
    aliases = () if alias is None else (alias,)
    register = public(name, source="PyTorch", namespace=True, aliases=aliases, gradient="int")
    return register(function)


lt = _comparison("lt", "less", ops.LT, False, "x < other")
le = _comparison("le", "less_equal", ops.LE, False, "x <= other")
gt = _comparison("gt", "greater", ops.LT, True, "x > other")
ge = _comparison("ge", "greater_equal", ops.LE, True, "x >= other")
eq = _comparison("eq", None, ops.EQ, False, "x == other")  # `equal`: verdicts.py
ne = _comparison("ne", "not_equal", ops.NE, False, "x != other")


@public("isnan", source="PyTorch", namespace=True, gradient="int")
def isnan(x: Operand) -> Node:
    """Whether an element is NaN.

    >>> Tensor([1.0, float("inf"), float("nan")]).isnan()
    Tensor([False, False,  True])
    """
    node = node_of(x)
    return ne(node, node) if node.dtype.is_float else const(False, bool_, node.shape)


@public("isinf", source="PyTorch", namespace=True, gradient="int")
def isinf(x: Operand) -> Node:
    """Whether an element is inf or -inf.

    >>> Tensor([1.0, float("inf"), float("nan")]).isinf()
    Tensor([False,  True, False])
    """
    node = node_of(x)
    if node.dtype.max != math.inf:  # integers, and the float8 that has no infinities
        return const(False, bool_, node.shape)
    return eq(abs_(node), math.inf)


@public("isfinite", source="PyTorch", namespace=True, gradient="int")
def isfinite(x: Operand) -> Node:
    """Whether an element is neither infinite nor NaN.

    >>> Tensor([1.0, float("inf"), float("nan")]).isfinite()
    Tensor([ True, False, False])
    """
    node = node_of(x)
    if not node.dtype.is_float:
        return const(True, bool_, node.shape)
    has_infinity = node.dtype.max == math.inf
    return lt(abs_(node), math.inf) if has_infinity else eq(node, node)


# ---- logic and bits ------------------------------------------------------------------------------
def _truth(x: Operand) -> Node:
    return const(x, bool_) if isinstance(x, int) else cast(node_of(x), bool_)


@public("logical_not", source="PyTorch", namespace=True, gradient="int")
def logical_not(x: Operand) -> Node:
    """Whether x is 0 (False).

    >>> Tensor([0, 1, 2]).logical_not()
    Tensor([ True, False, False])
    """
    return alu(ops.NOT, _truth(x))


def _logical(name: str, op: Op, text: str) -> Callable[..., Node]:
    def function(x: Operand, other: Operand) -> Node:
        return alu(op, _truth(x), _truth(other))

    function.__doc__ = f"Whether {text} true (not 0), as bool."
    return public(name, source="PyTorch", namespace=True, gradient="int")(function)


logical_and = _logical("logical_and", ops.AND, "both are")
logical_or = _logical("logical_or", ops.OR, "one or both are")
logical_xor = _logical("logical_xor", ops.XOR, "exactly one is")


def _bitwise(name: str, op: Op, text: str, aliases: tuple[str, ...] = ()) -> Callable[..., Node]:
    def function(x: Operand, other: Operand) -> Node:
        return alu(op, x, other)

    function.__doc__ = f"{text}. TypeError for floats."
    register = public(name, source="PyTorch", namespace=True, aliases=aliases, gradient="int")
    return register(function)


bitwise_and = _bitwise("bitwise_and", ops.AND, "The bits that both have, `&`")
bitwise_or = _bitwise("bitwise_or", ops.OR, "The bits that one or both have, `|`")
bitwise_xor = _bitwise("bitwise_xor", ops.XOR, "The bits that exactly one has, `^`")
bitwise_left_shift = _bitwise(
    "bitwise_left_shift",
    ops.LSHIFT,
    "x with its bits moved up by `other` places, `<<`; a shift by the width or more, or by less "
    "than 0, gives 0",
)
bitwise_right_shift = _bitwise(
    "bitwise_right_shift",
    ops.RSHIFT,
    "x with its bits moved down by `other` places, `>>`, keeping the sign; a shift by the width or "
    "more, or by less than 0, gives 0, or -1 of a negative number",
)


@public(
    "bitwise_not", source="PyTorch", namespace=True, aliases=("bitwise_invert",), gradient="int"
)
def bitwise_not(x: Operand) -> Node:
    """x with every bit turned over, `~`; of bools: not. TypeError for floats.

    >>> ~Tensor([0, 5])
    Tensor([-1, -6])
    """
    return alu(ops.NOT, x)


# ---- choosing ------------------------------------------------------------------------------------
@public("maximum", source="PyTorch", namespace=True)
def maximum(x: Operand, other: Operand) -> Node:
    """The greater of two; NaN if either is NaN.

    >>> Tensor([1, 5]).maximum(Tensor([3, 2]))
    Tensor([3, 5])
    """
    return alu(ops.MAX, x, other)


@public("minimum", source="PyTorch", namespace=True)
def minimum(x: Operand, other: Operand) -> Node:
    """The lesser of two; NaN if either is NaN.

    >>> Tensor([1, 5]).minimum(Tensor([3, 2]))
    Tensor([1, 2])
    """
    return alu(ops.MIN, x, other)


@public("clamp", source="PyTorch", aliases=("clip",))
def clamp(x: Operand, min: Operand = None, max: Operand = None) -> Node:
    """x brought into [min, max]; a limit may be a number, a tensor, or None (no limit); `max` wins
    where min > max. NaN stays NaN. The derivative is 1 at a limit.

    >>> Tensor([-2, 0, 9]).clamp(-1, 3)
    Tensor([-1,  0,  3])
    """
    if min is None and max is None:
        raise ValueError("clamp: give min, max, or both")
    result = node_of(x)
    if min is not None:
        value, low = operands(result, min)
        result = where(le(low, value), value, maximum(value, low))
    if max is not None:
        value, high = operands(result, max)
        result = where(le(value, high), value, minimum(value, high))
    return result


@public("clamp_min", source="PyTorch")
def clamp_min(x: Operand, min: Operand) -> Node:
    """x, but `min` where it is below.

    >>> Tensor([-2, 9]).clamp_min(0)
    Tensor([0, 9])
    """
    return clamp(x, min)


@public("clamp_max", source="PyTorch")
def clamp_max(x: Operand, max: Operand) -> Node:
    """x, but `max` where it is above.

    >>> Tensor([-2, 9]).clamp_max(3)
    Tensor([-2,  3])
    """
    return clamp(x, None, max)


@public("masked_fill", source="PyTorch")
def masked_fill(x: Operand, mask: Operand, value: Operand) -> Node:
    """x with `value` (a number, or a 0-d tensor) where the bool tensor `mask` holds; the dtype of x
    stays.

    >>> Tensor([1, -2, 3]).masked_fill(Tensor([False, True, False]), 0)
    Tensor([1, 0, 3])
    """
    node = node_of(x)
    filling = value if isinstance(value, Node) else const(value, node.dtype)
    return where(mask, cast(filling, node.dtype), node)


@public("lerp", source="PyTorch")
def lerp(x: Operand, end: Operand, weight: Operand) -> Node:
    """From x to `end` by the part `weight`: x at 0, exactly `end` at 1.

    >>> Tensor([0.0, 10.0]).lerp(Tensor([4.0, 20.0]), 0.25)
    Tensor([ 1. , 12.5])
    """
    start, stop, part = floats(x, end, weight)
    wide = start.dtype.accumulator
    a, b, w = cast(start, wide), cast(stop, wide), cast(part, wide)
    way = sub(b, a)
    near_start = add(a, mul(w, way))
    near_end = sub(b, mul(way, sub(1, w)))
    return cast(where(lt(abs_(w), 0.5), near_start, near_end), start.dtype)
