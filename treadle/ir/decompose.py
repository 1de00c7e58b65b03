"""What the scalar operations that a backend need not spell are made of.

`decompose(op, dtype)` gives an operation's value over parameters, in spelled operations only. Every
backend renders the same expression, for scalars and for vectors, so all have the same bits; and so
there are no branches: both sides of every case are computed and WHERE chooses.

Integers and what is exact are here; `transcendental.py` and `trigonometric.py` hold the functions
that are approximated. Half and bfloat16 are computed in float32 and rounded once.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from treadle.ir import ops, special, transcendental, trigonometric
from treadle.ir.dtype import DType, float32, uint32, uint64
from treadle.ir.formula import Value, constant, floor, where
from treadle.ir.node import Node
from treadle.ir.ops import Op

Formula = Callable[..., Value]


def decompose(op: Op, dtype: DType) -> tuple[tuple[Node, ...], Node]:
    """The parameters of `op` on operands of `dtype`, and its value in spelled operations.

    Parameter n is `PLACEHOLDER` with arg `(n, ())`. dtype is a scalar type; a renderer of vectors
    gives every node of the value as many lanes. KeyError if the operation has no decomposition
    (it is spelled, or the dtype is not one it accepts).
    """
    found = _decomposed(op, dtype)
    if found is None:
        known = ", ".join(sorted(row.name for row in FORMULAS))
        raise KeyError(f"{op.name} of {dtype!r} has no decomposition; there are: {known}")
    return found


@cache
def _decomposed(op: Op, dtype: DType) -> tuple[tuple[Node, ...], Node] | None:
    rows = FORMULAS.get(op, {})
    formula = rows.get(dtype.kind)
    if formula is None or dtype.lanes != 1 or (op is ops.THREEFRY and dtype is not uint64):
        return None
    parameters = tuple(Node(ops.PLACEHOLDER, dtype, (), (n, ())) for n in range(op.arity or 0))
    operands = [Value(parameter) for parameter in parameters]
    if dtype.bits == 16 and dtype.is_float and op not in ANY_WIDTH:
        value = formula(*(operand.cast(float32) for operand in operands)).cast(dtype)
    else:
        value = formula(*operands)
    return parameters, value.node


# ---- integers ------------------------------------------------------------------------------------


def _divide_signed(a: Value, b: Value) -> Value:
    zero, minus = b == 0, b == -1
    safe = where(zero | minus, 1, b)
    quotient = a // safe
    remainder = a - quotient * safe
    # the remainder has the sign of a; where that is not the sign of b, down is one further
    further = (remainder != 0) & ((remainder ^ safe) < 0)
    floored = where(further, quotient - 1, quotient)
    return where(zero, 0, where(minus, -a, floored))


def _divide_unsigned(a: Value, b: Value) -> Value:
    zero = b == 0
    return where(zero, 0, a // where(zero, 1, b))


def _modulo_signed(a: Value, b: Value) -> Value:
    safe = where((b == 0) | (b == -1), 1, b)  # the remainder by 1 is the 0 that is wanted
    remainder = a % safe
    further = (remainder != 0) & ((remainder ^ safe) < 0)
    return where(further, remainder + safe, remainder)


def _modulo_unsigned(a: Value, b: Value) -> Value:
    return a % where(b == 0, 1, b)


def _shift_left(a: Value, b: Value) -> Value:
    valid = b.bits < a.dtype.bits  # a negative shift is a large unsigned one
    return where(valid, a << where(valid, b, 0), 0)


def _shift_right_signed(a: Value, b: Value) -> Value:
    width = a.dtype.bits  # a shift by width - 1 leaves the sign everywhere
    return a >> where(b.bits < width, b, width - 1)


def _shift_right_unsigned(a: Value, b: Value) -> Value:
    valid = b < a.dtype.bits
    return where(valid, a >> where(valid, b, 0), 0)


def _absolute_signed(a: Value) -> Value:
    return where(a < 0, -a, a)


def _unchanged(a: Value) -> Value:
    return a


_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))


def _threefry(counter: Value, key: Value) -> Value:
    """Threefry-2x32, 20 rounds: `meaning.threefry` says more."""
    x0, x1 = counter.cast(uint32), (counter >> 32).cast(uint32)
    k0, k1 = key.cast(uint32), (key >> 32).cast(uint32)
    keys = (k0, k1, k0 ^ k1 ^ 0x1BD11BDA)
    x0, x1 = x0 + k0, x1 + k1
    for group in range(5):
        for distance in _ROTATIONS[group % 2]:
            x0 = x0 + x1
            x1 = ((x1 << distance) | (x1 >> (32 - distance))) ^ x0
        x0 = x0 + keys[(group + 1) % 3]
        x1 = x1 + keys[(group + 2) % 3] + (group + 1)
    return x0.cast(uint64) | (x1.cast(uint64) << 32)


# ---- floats, exact -------------------------------------------------------------------------------


def _absolute_float(a: Value) -> Value:
    return (a.bits & ((1 << (a.dtype.bits - 1)) - 1)).bitcast(a.dtype)


def _ceiling(a: Value) -> Value:
    return -floor(-a)


def _zero_multiply(g: Value, d: Value) -> Value:
    return where(g == constant(g.dtype, 0), 0, g * d)


# ---- the table -----------------------------------------------------------------------------------

# operation -> kind of dtype -> formula
FORMULAS: dict[Op, dict[str, Formula]] = {
    ops.IDIV: {"i": _divide_signed, "u": _divide_unsigned},
    ops.MOD: {"i": _modulo_signed, "u": _modulo_unsigned},
    ops.LSHIFT: {"i": _shift_left, "u": _shift_left},
    ops.RSHIFT: {"i": _shift_right_signed, "u": _shift_right_unsigned},
    ops.ABS: {"i": _absolute_signed, "u": _unchanged, "f": _absolute_float},
    ops.THREEFRY: {"u": _threefry},
    ops.CEIL: {"f": _ceiling},
    ops.ZMUL: {"f": _zero_multiply},
    ops.EXP: {"f": transcendental.exp},
    ops.EXP2: {"f": transcendental.exp2},
    ops.EXPM1: {"f": transcendental.expm1},
    ops.LOG: {"f": transcendental.log},
    ops.LOG2: {"f": transcendental.log2},
    ops.LOG1P: {"f": transcendental.log1p},
    ops.TANH: {"f": transcendental.tanh},
    ops.ERF: {"f": transcendental.erf},
    ops.ERFC: {"f": special.erfc},
    ops.NORMAL_CDF: {"f": special.normal_cdf},
    ops.ERFINV: {"f": special.erfinv},
    ops.LGAMMA: {"f": special.lgamma},
    ops.DIGAMMA: {"f": special.digamma},
    ops.POW: {"f": transcendental.power},
    ops.SIN: {"f": trigonometric.sin},
    ops.COS: {"f": trigonometric.cos},
    ops.TAN: {"f": trigonometric.tan},
    ops.ATAN: {"f": trigonometric.atan},
}

# Float operations that need no wider type: they are exact, or round once by themselves.
ANY_WIDTH = frozenset({ops.ABS, ops.CEIL, ops.ZMUL})
