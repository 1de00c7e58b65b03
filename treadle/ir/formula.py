"""Formulas over nodes, written as formulas: `fma(x, x, 1.0)`, `where(x < 0, -x, x)`.

A :class:`Value` wraps a scalar node. Arithmetic and comparisons on it make nodes of spelled
operations; a Python number beside a Value becomes a constant of the Value's dtype. Only the
decompositions are written this way: every operator is exactly one operation of the program.
"""

from __future__ import annotations

from treadle.ir import ops
from treadle.ir.dtype import BY_NAME, DType
from treadle.ir.node import Node

Number = int | float | bool


class Value:
    """A scalar node with operators. `/` and `//` are DIV (floats) and TDIV (integers); `%` is TMOD.

    `==` and `!=` make nodes, so a Value is not hashable; compare `value.node` with `is`.
    """

    __slots__ = ("node",)
    __hash__ = None  # type: ignore[assignment]  # how Python says so

    def __init__(self, node: Node) -> None:
        self.node = node

    @property
    def dtype(self) -> DType:
        dtype: DType = self.node.dtype
        return dtype

    def like(self, other: Operand) -> Value:
        """A number as a constant of this dtype; a Value as it is."""
        return other if isinstance(other, Value) else constant(self.dtype, other)

    def _with(self, op: ops.Op, other: Operand) -> Value:
        return Value(op(self.node, self.like(other).node))

    def __add__(self, other: Operand) -> Value:
        return self._with(ops.ADD, other)

    def __radd__(self, other: Number) -> Value:
        return self.like(other) + self

    def __sub__(self, other: Operand) -> Value:
        return self._with(ops.SUB, other)

    def __rsub__(self, other: Number) -> Value:
        return self.like(other) - self

    def __mul__(self, other: Operand) -> Value:
        return self._with(ops.MUL, other)

    def __rmul__(self, other: Number) -> Value:
        return self.like(other) * self

    def __truediv__(self, other: Operand) -> Value:
        return self._with(ops.DIV, other)

    def __rtruediv__(self, other: Number) -> Value:
        return self.like(other) / self

    def __floordiv__(self, other: Operand) -> Value:
        return self._with(ops.TDIV, other)

    def __mod__(self, other: Operand) -> Value:
        return self._with(ops.TMOD, other)

    def __and__(self, other: Operand) -> Value:
        return self._with(ops.AND, other)

    def __or__(self, other: Operand) -> Value:
        return self._with(ops.OR, other)

    def __xor__(self, other: Operand) -> Value:
        return self._with(ops.XOR, other)

    def __lshift__(self, other: Operand) -> Value:
        return self._with(ops.SHL, other)

    def __rshift__(self, other: Operand) -> Value:
        return self._with(ops.SHR, other)

    def __lt__(self, other: Operand) -> Value:
        return self._with(ops.LT, other)

    def __le__(self, other: Operand) -> Value:
        return self._with(ops.LE, other)

    def __gt__(self, other: Operand) -> Value:
        return self.like(other) < self

    def __ge__(self, other: Operand) -> Value:
        return self.like(other) <= self

    def __eq__(self, other: Operand) -> Value:  # type: ignore[override]  # a node
        return self._with(ops.EQ, other)

    def __ne__(self, other: Operand) -> Value:  # type: ignore[override]  # a node
        return self._with(ops.NE, other)

    def __neg__(self) -> Value:
        return Value(ops.NEG(self.node))

    def __invert__(self) -> Value:
        return Value(ops.NOT(self.node))

    def cast(self, dtype: DType) -> Value:
        """The value as `dtype`; itself if it is one."""
        return self if self.dtype is dtype else Value(ops.CAST(self.node, dtype=dtype))

    def bitcast(self, dtype: DType) -> Value:
        """The bits read as `dtype`, which has the same width; itself if it is one."""
        return self if self.dtype is dtype else Value(ops.BITCAST(self.node, dtype=dtype))

    @property
    def bits(self) -> Value:
        """The bits of a float as an unsigned integer."""
        return self.bitcast(BY_NAME[f"uint{self.dtype.bits}"])


Operand = Value | Number
Pair = tuple[Value, Value]  # an unevaluated sum high + low, |low| at most about an ulp of high


def constant(dtype: DType, number: Number) -> Value:
    """A constant. Float constants round to nearest."""
    return Value(Node(ops.CONST, dtype, (), dtype.to_bits(number)))


def where(condition: Value, a: Operand, b: Operand) -> Value:
    """`a` where the condition holds, else `b`; one of them is a Value."""
    if isinstance(a, Value):
        b = a.like(b)
    elif isinstance(b, Value):
        a = b.like(a)
    else:
        raise TypeError("where: one of the two choices must be a Value, to give the dtype")
    return Value(ops.WHERE(condition.node, a.node, b.node, dtype=a.dtype))


def fma(a: Value, b: Operand, c: Operand) -> Value:
    """a * b + c, rounded once."""
    return Value(ops.FMA(a.node, a.like(b).node, a.like(c).node))


def floor(x: Value) -> Value:
    """The greatest whole number that is not above x."""
    return Value(ops.FLOOR(x.node))


def trunc(x: Value) -> Value:
    """The whole number next to x, towards zero."""
    return Value(ops.TRUNC(x.node))


def rint(x: Value) -> Value:
    """The nearest whole number; halves go to the even one."""
    return Value(ops.RINT(x.node))


def polynomial(x: Value, coefficients: tuple[float, ...]) -> Value:
    """c0 + c1 x + c2 x^2 .. by Horner's rule, one rounding a step."""
    total = x.like(coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        total = fma(total, x, coefficient)
    return total


# ---- what rounding loses -------------------------------------------------------------------------


def two_product(a: Value, b: Value) -> Pair:
    """a * b and the error of that product, exactly."""
    product = a * b
    return product, fma(a, b, -product)


def two_sum(a: Value, b: Value) -> Pair:
    """a + b and the error of that sum, exactly."""
    total = a + b
    of_b = total - a
    return total, (a - (total - of_b)) + (b - of_b)


def fast_two_sum(a: Value, b: Value) -> Pair:
    """a + b and the error of that sum, exactly where |a| >= |b| or a is 0."""
    total = a + b
    return total, b - (total - a)
