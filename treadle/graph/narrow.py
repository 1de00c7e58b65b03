"""What no backend knows: floats of eight bits, and a cast to bfloat16 that rounds once.

float8 is stored, moved and cast; never computed with. Before a graph is scheduled, tensors of a
float8 become tensors of their codes, uint8. What only moves elements moves the codes; whatever
computes decodes them to float32 and encodes the result, rounded once.

Backends make a bfloat16 of a float32. What has more digits is rounded to odd first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from treadle.graph.build import alu, bitcast, cast, const, where
from treadle.ir import ops
from treadle.ir.dtype import (
    EXACT_INT,
    FLOAT8,
    FORMATS,
    ODD_FLOAT,
    ODD_INT,
    DType,
    bfloat16,
    float32,
    float64,
    int32,
    int64,
    uint8,
    uint32,
    uint64,
)
from treadle.ir.node import Node, toposort

_NARROW = frozenset(FLOAT8)
_LONG = frozenset((float64, int32, int64, uint32, uint64))  # with more digits than a float32
# what puts elements elsewhere and leaves them as they are
_MOVES = frozenset((ops.GATHER, ops.CONTIGUOUS, ops.COPY, ops.UPDATE, ops.AGAIN, ops.STOP))
_LEAVES = frozenset((ops.BUFFER, ops.SCALAR, ops.PLACEHOLDER))
_LOOPS = frozenset((ops.SCAN, ops.WHILE, ops.COND))


def widened(roots: Sequence[Node]) -> list[Node]:
    """The roots with float8 tensors as their codes, in uint8, and every cast rounding once; the
    same roots if there is neither."""
    order = toposort(roots)
    if all(_plain(node) and not _is_long_cast(node) for node in order):
        return list(roots)
    done: dict[Node, Node] = {}
    for node in order:
        done[node] = _lowered(node, [done[source] for source in node.src])
    return [done[root] for root in roots]


def _is_long_cast(node: Node) -> bool:
    return node.dtype is bfloat16 and node.op is ops.CAST and node.src[0].dtype in _LONG


def _plain(node: Node) -> bool:
    dtype = node.dtype
    return _NARROW.isdisjoint(dtype) if isinstance(dtype, tuple) else dtype not in _NARROW


def _stored(dtype: Any) -> Any:
    """The dtype of what stands for values of `dtype`."""
    if isinstance(dtype, tuple):
        return tuple([_stored(each) for each in dtype])
    return uint8 if dtype in _NARROW else dtype


def _lowered(node: Node, sources: Sequence[Node]) -> Node:
    """The node on the codes of its sources."""
    op, dtype = node.op, node.dtype
    if op in _LOOPS:
        return Node(op, _stored(dtype), tuple(sources), _bodies(node.arg))
    if op is ops.OUT:
        return _output(node, sources[0])
    if _is_long_cast(node):
        return cast(cast(_odd_float64(sources[0]), float32), bfloat16)
    if _plain(node) and all(map(_plain, node.src)):
        return node.with_src(tuple(sources))
    if op is ops.KERNEL:
        raise TypeError(f"a custom kernel cannot read or give {dtype}: cast to float16 or float32")
    if op in _LEAVES:
        return Node(op, uint8, (), node.arg)
    if op is ops.CONST:
        return const(node.arg, uint8)
    is_move = op in _MOVES or op.kind == "movement" or op is ops.WHERE
    if is_move or (op is ops.SCATTER and node.arg[1] == "set"):
        return Node(op, _stored(dtype), tuple(sources), node.arg)
    if op is ops.BITCAST:
        (code,) = sources
        return bitcast(code, _stored(dtype))
    if op is ops.CAST:
        (x,), (value,) = node.src, sources
        number = decoded(value, x.dtype) if x.dtype in _NARROW else value
        return encoded(number, dtype) if dtype in _NARROW else cast(number, dtype)
    return _computed(node, sources)


def _computed(node: Node, sources: Sequence[Node]) -> Node:
    """An operation done in float32, and its result encoded."""
    values = tuple(
        [
            decoded(value, source.dtype) if source.dtype in _NARROW else value
            for source, value in zip(node.src, sources)
        ]
    )
    dtype = node.dtype
    if isinstance(dtype, tuple):  # a reduction of several values: its OUTs encode
        wide: Any = tuple([float32 if each in _NARROW else each for each in dtype])
        return Node(node.op, wide, values, node.arg)
    result = Node(node.op, float32 if dtype in _NARROW else dtype, values, node.arg)
    return encoded(result, dtype) if dtype in _NARROW else result


def _output(node: Node, source: Node) -> Node:
    result = Node(ops.OUT, source.dtype[node.arg], (source,), node.arg)
    if node.dtype in _NARROW and result.dtype is float32:
        return encoded(result, node.dtype)
    return result


def _bodies(arg: Any) -> Any:
    """The arg of a loop with the same done in its bodies."""
    return tuple(
        [
            Node(ops.SINK, part.dtype, tuple(widened(part.src)), part.arg)
            if isinstance(part, Node) and part.op is ops.SINK
            else part
            for part in arg
        ]
    )


# ---- bfloat16 ------------------------------------------------------------------------------------
def _odd_float64(x: Node) -> Node:
    """A float64 of few digits, rounded to odd; `ir/dtype.py` says why, and does it to arrays."""
    if x.dtype in (int64, uint64):
        size = alu(ops.ABS, x) if x.dtype is int64 else x  # of the least int64: below 0
        small = alu(ops.LT, bitcast(size, uint64), EXACT_INT)
        x = where(small, x, _odd(x, ODD_INT))
    return bitcast(_odd(bitcast(cast(x, float64), uint64), ODD_FLOAT), float64)


def _odd(whole: Node, lost: int) -> Node:
    """Integers without their last bits; the last one kept is 1 where one of these was."""
    rest = alu(ops.AND, whole, (1 << lost) - 1)
    kept = alu(ops.SUB, whole, rest)
    return alu(ops.OR, kept, where(alu(ops.NE, rest, 0), 1 << lost, const(0, whole.dtype)))


# ---- codes ---------------------------------------------------------------------------------------
def decoded(code: Node, dtype: DType) -> Node:
    """The float32 of codes: exact."""
    form = FORMATS[dtype]
    size = cast(alu(ops.AND, code, 0x7F), uint32)
    shift = 23 - form.mantissa
    bits = alu(ops.ADD, alu(ops.LSHIFT, size, shift), (127 - form.bias) << 23)
    least = 2.0 ** (form.least_exponent - form.mantissa)
    value = where(
        alu(ops.LT, size, 1 << form.mantissa),
        alu(ops.MUL, cast(size, float32), least),
        bitcast(bits, float32),
    )
    value = where(alu(ops.LE, size, form.greatest), value, float("nan"))
    if form.has_infinity:
        value = where(alu(ops.EQ, size, form.overflow), float("inf"), value)
    return where(alu(ops.LE, 0x80, code), alu(ops.NEG, value), value)


def encoded(x: Node, dtype: DType) -> Node:
    """The codes of numbers, rounded to nearest once, ties to even.

    In units of the last place of its exponent a number is a small integer; the codes of an exponent
    follow those of the one below, so that rounding up to a power of two carries by itself.
    """
    form = FORMATS[dtype]
    if not x.dtype.is_float:
        x = cast(x, float64)
    wide = float64 if x.dtype is float64 else float32
    x = cast(x, wide)
    fraction, bias = (52, 1023) if wide is float64 else (23, 127)
    whole = uint64 if wide is float64 else uint32
    signed = int64 if wide is float64 else int32
    bits = bitcast(x, whole)
    magnitude = alu(ops.AND, bits, (1 << (wide.bits - 1)) - 1)
    exponent = cast(alu(ops.RSHIFT, magnitude, fraction), signed)
    exponent = alu(ops.MAX, exponent, form.least_exponent + bias)
    # times 2 ** (mantissa - (exponent - bias)), a normal number whose bits are made here
    field = cast(alu(ops.SUB, form.mantissa + 2 * bias, exponent), whole)
    scale = bitcast(alu(ops.LSHIFT, field, fraction), wide)
    steps = alu(ops.RINT, alu(ops.MUL, alu(ops.ABS, x), scale))
    steps = cast(alu(ops.MIN, steps, 256.0), signed)
    above = alu(ops.SUB, exponent, form.least_exponent + bias)
    code = alu(ops.ADD, alu(ops.LSHIFT, above, form.mantissa), steps)
    code = where(alu(ops.LT, form.greatest, code), form.overflow, code)
    code = where(alu(ops.NE, x, x), form.nan, code)
    sign = alu(ops.RSHIFT, bits, wide.bits - 8)
    return alu(ops.OR, cast(code, uint8), alu(ops.AND, cast(sign, uint8), 0x80))
