"""How LLVM spells the scalar operations: one table, for scalars and vectors of every dtype.

A value of a 16-bit float stands in a register as the float32 of the same value: arithmetic is done
there and rounded after each operation that can leave the 16 bits, and memory holds 16 bits. So no
target feature changes a result. A bool is an i1 in a register and a byte in memory.

No instruction carries a fast-math flag: a value that is computed in two kernels is the same value.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import cache
from typing import Protocol

from treadle.ir import ops
from treadle.ir.dtype import DType, bfloat16, float16, float32, float64
from treadle.ir.node import Node
from treadle.ir.ops import Op


class Body(Protocol):
    """What spelling an operation needs of the function that is being written."""

    def emit(self, instruction: str) -> str:
        """Write an instruction; the name of its value."""
        ...

    def intrinsic(self, name: str, result: str, *operands: tuple[str, str]) -> str:
        """Write a call of an LLVM intrinsic with (type, value) operands; the name of its value."""
        ...

    def call_round(self, dtype: DType, value: str) -> str:
        """Write the rounding of a float32 to bfloat16; the name of its value."""
        ...


# ---- types and constants -------------------------------------------------------------------------

_FLOATS = {"float16": "float", "bfloat16": "float", "float32": "float", "float64": "double"}
_STORED = {"bool": "i8", "float16": "half", "bfloat16": "i16"}


def _vector(lanes: int, element: str) -> str:
    return element if lanes == 1 else f"<{lanes} x {element}>"


@cache
def register_type(dtype: DType) -> str:
    """The type of a value in a register."""
    return _vector(dtype.lanes, _FLOATS.get(dtype.name, f"i{dtype.bits}"))


@cache
def memory_type(dtype: DType) -> str:
    """The type of the same value in memory."""
    return _vector(dtype.lanes, _STORED.get(dtype.name) or register_type(dtype.scalar))


@cache
def bits_type(dtype: DType) -> str:
    """The integers that have as many bits as the dtype has in memory."""
    return _vector(dtype.lanes, f"i{8 * dtype.itemsize}")


@cache
def suffix(type_name: str) -> str:
    """How a type stands in the name of an intrinsic: `<16 x float>` is `v16f32`."""
    lanes, _, element = type_name.strip("<>").rpartition(" x ")
    short = {"float": "f32", "double": "f64", "half": "f16", "ptr": "p0"}.get(element, element)
    return f"v{lanes}{short}" if lanes else short


def constant(dtype: DType, value: int | float | bool) -> str:
    """A constant of a register type, the same in every lane."""
    return _constant(dtype, dtype.to_bits(value))


@cache
def _constant(dtype: DType, bits: int) -> str:
    value = dtype.from_bits(bits)
    if dtype.kind == "f":
        # LLVM writes a float32 too as the 64 bits of the double of the same value
        text = "0x" + struct.pack(">d", value).hex().upper()
    elif dtype.kind == "b":
        text = "true" if value else "false"
    else:
        text = str(value)
    return text if dtype.lanes == 1 else f"splat ({register_type(dtype.scalar)} {text})"


def integers(dtype: DType, value: int) -> str:
    """A constant of `bits_type(dtype)`."""
    return str(value) if dtype.lanes == 1 else f"splat (i{8 * dtype.itemsize} {value})"


def constant_of(node: Node) -> str:
    """The operand that a CONST is."""
    return _constant(node.dtype, node.arg)


def splatted(node: Node) -> Node | None:
    """The CONST that a node is in every lane, or None."""
    if node.op is ops.SPLAT:
        node = node.src[0]
    return node if node.op is ops.CONST else None


# ---- operations ----------------------------------------------------------------------------------

Spelling = Callable[[Body, Node, list[str]], str]
SPELLINGS: dict[Op, Spelling] = {}

# Operations that are one instruction, by the kind of their sources.
_INSTRUCTIONS: dict[Op, dict[str, str]] = {
    ops.ADD: {"f": "fadd", "iux": "add", "b": "or"},
    ops.SUB: {"f": "fsub", "iux": "sub"},
    ops.MUL: {"f": "fmul", "iux": "mul", "b": "and"},
    ops.DIV: {"f": "fdiv"},
    ops.AND: {"biu": "and"},
    ops.OR: {"biu": "or"},
    ops.XOR: {"biu": "xor"},
    ops.TDIV: {"ix": "sdiv", "u": "udiv"},
    ops.TMOD: {"ix": "srem", "u": "urem"},
    ops.SHL: {"iu": "shl"},
    ops.SHR: {"i": "ashr", "u": "lshr"},
    ops.LT: {"f": "fcmp olt", "ix": "icmp slt", "ub": "icmp ult"},
    ops.LE: {"f": "fcmp ole", "ix": "icmp sle", "ub": "icmp ule"},
    ops.EQ: {"f": "fcmp oeq", "iuxb": "icmp eq"},
    ops.NE: {"f": "fcmp une", "iuxb": "icmp ne"},
}
# Operations that are one call of an intrinsic.
_INTRINSICS: dict[Op, dict[str, str]] = {
    ops.FMA: {"f": "llvm.fma"},
    ops.SQRT: {"f": "llvm.sqrt"},
    ops.FLOOR: {"f": "llvm.floor"},
    ops.TRUNC: {"f": "llvm.trunc"},
    ops.RINT: {"f": "llvm.roundeven"},
    ops.MAX: {"f": "llvm.maximum", "ix": "llvm.smax", "u": "llvm.umax"},
    ops.MIN: {"f": "llvm.minimum", "ix": "llvm.smin", "u": "llvm.umin"},
}
# Of a 16-bit float these give a 16-bit float again; the result of any other is rounded.
_EXACT = {ops.NEG, ops.FLOOR, ops.TRUNC, ops.RINT, ops.MAX, ops.MIN, ops.WHERE, ops.BITCAST}
_ROUNDED = frozenset(
    (op, dtype) for op in ops.SPELLED if op not in _EXACT for dtype in (float16, bfloat16)
) - {(ops.CAST, float16), (ops.CAST, bfloat16), (ops.FMA, float16)}  # these round by themselves


def _by_kind(table: dict[str, str]) -> dict[str, str]:
    return {kind: word for kinds, word in table.items() for kind in kinds}


_INSTRUCTION = {op: _by_kind(table) for op, table in _INSTRUCTIONS.items()}
_INTRINSIC = {op: _by_kind(table) for op, table in _INTRINSICS.items()}


@cache
def _instruction_head(op: Op, dtype: DType) -> str:
    return f"{_INSTRUCTION[op][dtype.kind]} {register_type(dtype)} "


def _instruction(body: Body, node: Node, operands: list[str]) -> str:
    a, b = operands
    return body.emit(f"{_instruction_head(node.op, node.src[0].dtype)}{a}, {b}")


@cache
def _intrinsic_name(op: Op, dtype: DType) -> str:
    return f"{_INTRINSIC[op][dtype.kind]}.{suffix(register_type(dtype))}"


def _intrinsic(body: Body, node: Node, operands: list[str]) -> str:
    of = register_type(node.dtype)
    return body.intrinsic(
        _intrinsic_name(node.op, node.dtype), of, *[(of, value) for value in operands]
    )


SPELLINGS |= dict.fromkeys(_INSTRUCTION, _instruction)
SPELLINGS |= dict.fromkeys(_INTRINSIC, _intrinsic)


def _spells(*rows: Op) -> Callable[[Spelling], Spelling]:
    def register(function: Spelling) -> Spelling:
        SPELLINGS.update(dict.fromkeys(rows, function))
        return function

    return register


# (op, sign bit of the constant) -> the comparison under which the other operand is the result.
# Unordered comparisons let NaN through; the sign decides between 0.0 and -0.0.
_AGAINST_CONSTANT = {
    (ops.MAX, False): "ugt",
    (ops.MAX, True): "uge",
    (ops.MIN, False): "ule",
    (ops.MIN, True): "ult",
}


@_spells(ops.MAX, ops.MIN)
def _extreme(body: Body, node: Node, operands: list[str]) -> str:
    """Against a constant, as in relu, a comparison and a selection do: a third of the
    instructions of llvm.maximum, which must think of NaN and of -0.0 in both operands."""
    kind = node.dtype.kind
    of = register_type(node.dtype)
    if kind == "b":
        word = "or" if node.op is ops.MAX else "and"
        return body.emit(f"{word} {of} {operands[0]}, {operands[1]}")
    if kind == "f":
        for place in (1, 0):
            fixed = splatted(node.src[place])
            if fixed is not None and fixed.value == fixed.value:
                negative = bool(fixed.arg >> (fixed.dtype.bits - 1))
                test = _AGAINST_CONSTANT[node.op, negative]
                other, limit = operands[1 - place], operands[place]
                condition = body.emit(f"fcmp {test} {of} {other}, {limit}")
                return _choose(body, node.dtype, condition, other, limit)
    return _intrinsic(body, node, operands)


def _choose(body: Body, dtype: DType, condition: str, yes: str, no: str) -> str:
    """yes where the condition (of as many lanes as dtype) holds, no elsewhere."""
    of, test = register_type(dtype), _vector(dtype.lanes, "i1")
    return body.emit(f"select {test} {condition}, {of} {yes}, {of} {no}")


@_spells(ops.FMA)
def _fused(body: Body, node: Node, operands: list[str]) -> str:
    """The product of two halves and a sum with a third may need more than the bits of a float32:
    it is rounded from a double."""
    if node.dtype.scalar is not float16:
        return _intrinsic(body, node, operands)
    double = float64.vec(node.dtype.lanes)
    wide = [_float_to_float(body, node.dtype, double, value) for value in operands]
    of = register_type(double)
    total = body.intrinsic(f"llvm.fma.{suffix(of)}", of, *((of, value) for value in wide))
    return _float_to_float(body, double, node.dtype, total)


@_spells(ops.NEG)
def _negate(body: Body, node: Node, operands: list[str]) -> str:
    of = register_type(node.dtype)
    if node.dtype.is_float:
        return body.emit(f"fneg {of} {operands[0]}")
    return body.emit(f"sub {of} {constant(node.dtype, 0)}, {operands[0]}")


@_spells(ops.NOT)
def _invert(body: Body, node: Node, operands: list[str]) -> str:
    ones = constant(node.dtype, True if node.dtype.kind == "b" else -1)
    return body.emit(f"xor {register_type(node.dtype)} {operands[0]}, {ones}")


@_spells(ops.WHERE)
def _where(body: Body, node: Node, operands: list[str]) -> str:
    condition, yes, no = operands
    of = register_type(node.dtype)
    test = register_type(node.src[0].dtype)
    return body.emit(f"select {test} {condition}, {of} {yes}, {of} {no}")


@_spells(ops.BITCAST)
def _bitcast(body: Body, node: Node, operands: list[str]) -> str:
    source, target = node.src[0].dtype, node.dtype
    stored = store_form(body, source, operands[0])
    bits = body.emit(f"bitcast {memory_type(source)} {stored} to {memory_type(target)}")
    return load_form(body, target, bits)


def alu(body: Body, node: Node, operands: list[str]) -> str:
    """Write a spelled operation; the name of its value."""
    value = SPELLINGS[node.op](body, node, operands)
    dtype = node.dtype
    if dtype.bits == 16 and (node.op, dtype.scalar) in _ROUNDED:
        return round_to(body, dtype, value)
    return value


# ---- forms of a value ----------------------------------------------------------------------------


def round_to(body: Body, dtype: DType, value: str) -> str:
    """A float32 in a register, rounded to the 16-bit float dtype (ties to even, NaN stays NaN)."""
    if dtype.scalar is bfloat16:
        return body.call_round(dtype, value)
    wide, narrow = register_type(dtype), memory_type(dtype)
    return body.emit(f"fpext {narrow} {body.emit(f'fptrunc {wide} {value} to {narrow}')} to {wide}")


def write_round(body: Body, dtype: DType, value: str) -> str:
    """The rounding to bfloat16 itself, on the bits: add half of the last place kept, less one if
    the last bit kept is 0. The native instruction would lose denormal numbers."""
    of, whole = register_type(dtype), _vector(dtype.lanes, "i32")
    wide = float32.vec(dtype.lanes)
    bits = body.emit(f"bitcast {of} {value} to {whole}")
    last = body.emit(f"lshr {whole} {bits}, {integers(wide, 16)}")
    odd = body.emit(f"and {whole} {last}, {integers(wide, 1)}")
    half = body.emit(f"add {whole} {odd}, {integers(wide, 0x7FFF)}")
    total = body.emit(f"add {whole} {bits}, {half}")
    quiet = body.emit(f"or {whole} {bits}, {integers(wide, 0x00400000)}")
    unordered = body.emit(f"fcmp uno {of} {value}, {value}")
    test = _vector(dtype.lanes, "i1")
    chosen = body.emit(f"select {test} {unordered}, {whole} {quiet}, {whole} {total}")
    kept = body.emit(f"and {whole} {chosen}, {integers(wide, -0x10000)}")
    return body.emit(f"bitcast {whole} {kept} to {of}")


def store_form(body: Body, dtype: DType, value: str) -> str:
    """A value from a register as memory holds it."""
    register, memory = register_type(dtype), memory_type(dtype)
    if register == memory:
        return value
    if dtype.kind == "b":
        return body.emit(f"zext {register} {value} to {memory}")
    if dtype.scalar is float16:
        return body.emit(f"fptrunc {register} {value} to {memory}")
    wide = float32.vec(dtype.lanes)
    bits = body.emit(f"bitcast {register} {value} to {bits_type(wide)}")
    high = body.emit(f"lshr {bits_type(wide)} {bits}, {integers(wide, 16)}")
    return body.emit(f"trunc {bits_type(wide)} {high} to {memory}")


def load_form(body: Body, dtype: DType, value: str) -> str:
    """A value from memory as registers hold it."""
    register, memory = register_type(dtype), memory_type(dtype)
    if register == memory:
        return value
    if dtype.kind == "b":
        return body.emit(f"icmp ne {memory} {value}, {integers(dtype, 0)}")
    if dtype.scalar is float16:
        return body.emit(f"fpext {memory} {value} to {register}")
    wide = float32.vec(dtype.lanes)
    low = body.emit(f"zext {memory} {value} to {bits_type(wide)}")
    bits = body.emit(f"shl {bits_type(wide)} {low}, {integers(wide, 16)}")
    return body.emit(f"bitcast {bits_type(wide)} {bits} to {register}")


# ---- casts ---------------------------------------------------------------------------------------


@_spells(ops.CAST)
def _cast(body: Body, node: Node, operands: list[str]) -> str:
    source, target = node.src[0].dtype, node.dtype
    if source is target:
        return operands[0]
    if target.kind == "b":
        return _to_bool(body, source, operands[0])
    if source.is_float and target.is_float:
        return _float_to_float(body, source, target, operands[0])
    if source.is_float:
        return _float_to_integer(body, source, target, operands[0])
    if target.is_float:
        return _integer_to_float(body, source, target, operands[0])
    return _integer_to_integer(body, source, target, operands[0])


def _to_bool(body: Body, source: DType, value: str) -> str:
    test = "fcmp une" if source.is_float else "icmp ne"
    return body.emit(f"{test} {register_type(source)} {value}, {constant(source, 0)}")


def _integer_to_integer(body: Body, source: DType, target: DType, value: str) -> str:
    if source.bits == target.bits:
        return value
    word = "trunc" if source.bits > target.bits else "sext" if source.kind in "ix" else "zext"
    return body.emit(f"{word} {register_type(source)} {value} to {register_type(target)}")


def _integer_to_float(body: Body, source: DType, target: DType, value: str) -> str:
    word = "sitofp" if source.kind in "ix" else "uitofp"
    wide = body.emit(f"{word} {register_type(source)} {value} to {register_type(target)}")
    return round_to(body, target, wide) if target.bits == 16 else wide


def _float_to_integer(body: Body, source: DType, target: DType, value: str) -> str:
    """Truncate; saturate; NaN gives 0. In comparisons, because the saturating conversions of LLVM
    take a vector apart."""
    if source.bits == 16:
        source = float32.vec(source.lanes)  # as it stands in the register: it holds the limits
    of, to = register_type(source), register_type(target)
    low, above = float(target.min), 2.0 ** (target.bits - (target.kind != "u"))
    least, limit = constant(source, low), constant(source, above)
    test = _vector(source.lanes, "i1")
    not_below = body.emit(f"fcmp oge {of} {value}, {least}")
    not_above = body.emit(f"fcmp olt {of} {value}, {limit}")
    inside = body.emit(f"and {test} {not_below}, {not_above}")
    safe = _choose(body, source, inside, value, constant(source, 0.0))
    word = "fptoui" if target.kind == "u" else "fptosi"
    whole = body.emit(f"{word} {of} {safe} to {to}")
    large = body.emit(f"fcmp oge {of} {value}, {limit}")
    whole = _choose(body, target, large, constant(target, int(target.max)), whole)
    if target.kind == "u":
        return whole
    small = body.emit(f"fcmp olt {of} {value}, {least}")
    return _choose(body, target, small, constant(target, int(target.min)), whole)


def _float_to_float(body: Body, source: DType, target: DType, value: str) -> str:
    of, to = register_type(source), register_type(target)
    if target.bits == 64:
        return body.emit(f"fpext {of} {value} to {to}")
    if source.bits == 64:
        if target.scalar is float16:
            value = _to_odd(body, source, value)
        value = body.emit(f"fptrunc {of} {value} to {to}")
    if target.bits == 16:
        return round_to(body, target, value)
    return value


def _to_odd(body: Body, dtype: DType, value: str) -> str:
    """A double cut to the 24 bits of a float32, its last bit set if anything was lost ("round to
    odd"): so that rounding the float32 to a half is rounding the double to a half."""
    of, whole = register_type(dtype), bits_type(dtype)
    lost = integers(dtype, (1 << 29) - 1)
    bits = body.emit(f"bitcast {of} {value} to {whole}")
    low = body.emit(f"and {whole} {bits}, {lost}")
    carry = body.emit(f"add {whole} {low}, {lost}")
    sticky = body.emit(f"or {whole} {bits}, {carry}")
    kept = body.emit(f"and {whole} {sticky}, {integers(dtype, -(1 << 29))}")
    return body.emit(f"bitcast {whole} {kept} to {of}")
