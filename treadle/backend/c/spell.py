"""How C spells the scalar operations: one expression each, of which every lane is computed.

Each operation on each type becomes a small function of the module, written once: `add_float32(a,
b)`, `max_float32x16(a, b)`. On vectors an operator of C does (compilers have vector types); what is
no operator is a loop over the lanes. As in every backend, a 16-bit float stands in a register as
the float32 of the same value and is rounded after each operation; a bool is a byte that is 0 or 1.
"""

from __future__ import annotations

from functools import cache

from treadle.ir import ops
from treadle.ir.dots import GROUP, Dot
from treadle.ir.dtype import DType, bfloat16, float16, float32, float64
from treadle.ir.matrix import Matrix
from treadle.ir.ops import Op

# ---- types and constants -------------------------------------------------------------------------

_LETTER = {"b": "u", "u": "u", "i": "i", "x": "i"}


@cache
def register_type(dtype: DType) -> str:
    """The type of a value in a variable: `f32`, `i64x8`."""
    if dtype.kind == "f":
        element = "f64" if dtype.bits == 64 else "f32"
    else:
        element = f"{_LETTER[dtype.kind]}{8 * dtype.itemsize}"
    return element if dtype.lanes == 1 else f"{element}x{dtype.lanes}"


@cache
def memory_type(dtype: DType) -> str:
    """The type of the same value in memory: 16-bit floats are their bits."""
    if dtype.kind == "f" and dtype.bits == 16:
        return "u16" if dtype.lanes == 1 else f"u16x{dtype.lanes}"
    return register_type(dtype)


def constant(dtype: DType, value: int | float | bool) -> str:
    """A scalar constant of a register type."""
    if dtype.kind == "f":
        letter = "" if dtype.bits == 64 else "f"
        if value != value:
            return f'__builtin_nan{letter}("")'
        if value in (float("inf"), float("-inf")):
            return f"{'-' if value < 0 else ''}__builtin_inf{letter}()"
        return f"{float(value).hex()}{letter}"
    number = int(value)
    if dtype.kind == "u":
        return f"(({register_type(dtype)}){number}ULL)"
    if number == -(1 << 63):  # the literal would be the negation of a number that is too large
        return "((i64)(-9223372036854775807LL - 1))"
    return f"(({register_type(dtype)}){number}LL)"


# ---- expressions ---------------------------------------------------------------------------------

_LEAST = "a != a ? a : b != b ? b : a == b ? (__builtin_signbit(a) ? {} : {}) : a {} b ? a : b"

# op -> kinds -> the expression of one lane; those that begin with "=" are right on vectors too
_EXPRESSIONS: dict[Op, dict[str, str]] = {
    ops.ADD: {"iufx": "= a + b", "b": "= a | b"},
    ops.SUB: {"iufx": "= a - b"},
    ops.MUL: {"iufx": "= a * b", "b": "= a & b"},
    ops.DIV: {"f": "= a / b"},
    ops.FMA: {"f": "__builtin_fma{f}(a, b, c)"},
    ops.NEG: {"iuf": "= -a"},
    ops.SQRT: {"f": "__builtin_sqrt{f}(a)"},
    ops.FLOOR: {"f": "__builtin_floor{f}(a)"},
    ops.TRUNC: {"f": "__builtin_trunc{f}(a)"},
    ops.RINT: {"f": "__builtin_rint{f}(a)"},
    ops.MAX: {"f": _LEAST.format("b", "a", ">"), "iux": "a > b ? a : b", "b": "= a | b"},
    ops.MIN: {"f": _LEAST.format("a", "b", "<"), "iux": "a < b ? a : b", "b": "= a & b"},
    ops.AND: {"biu": "= a & b"},
    ops.OR: {"biu": "= a | b"},
    ops.XOR: {"biu": "= a ^ b"},
    ops.NOT: {"iu": "= ~a", "b": "= a ^ 1"},
    ops.LT: {"biufx": "a < b"},
    ops.LE: {"biufx": "a <= b"},
    ops.EQ: {"biufx": "a == b"},
    ops.NE: {"biufx": "a != b"},
    ops.TDIV: {"iux": "= a / b"},
    ops.TMOD: {"iux": "= a % b"},
    ops.SHL: {"iu": "= a << b"},
    ops.SHR: {"iu": "= a >> b"},
}
_EXPRESSION = {
    (op, kind): text
    for op, table in _EXPRESSIONS.items()
    for kinds, text in table.items()
    for kind in kinds
}
# Of a 16-bit float these give a 16-bit float again; the result of any other is rounded.
_EXACT = {ops.NEG, ops.FLOOR, ops.TRUNC, ops.RINT, ops.MAX, ops.MIN}
SPELLED = frozenset(_EXPRESSIONS) | {ops.WHERE, ops.CAST, ops.BITCAST}


class Helper:
    """A function of the module. needs: what must stand before it."""

    def __init__(self, name: str, text: str, needs: tuple[Helper, ...] = ()) -> None:
        self.name = name
        self.text = text
        self.needs = needs


def _function(name: str, result: str, kinds: list[str], body: str) -> str:
    given = ", ".join(f"{kind} {letter}" for kind, letter in zip(kinds, "abc", strict=False))
    return f"INLINE {result} {name}({given}) {{ {body} }}"


def _per_lane(name: str, result: DType, sources: list[DType], one: Helper) -> Helper:
    """`one` applied in every lane of vectors (to all lanes alike where a source is a scalar)."""
    letters = [f"{n}[l]" if d.lanes > 1 else n for n, d in zip("abc", sources, strict=False)]
    of = register_type(result)
    loop = f"for (int l = 0; l < {result.lanes}; l++) r[l] = {one.name}({', '.join(letters)});"
    kinds = [register_type(source) for source in sources]
    return Helper(name, _function(name, of, kinds, f"{of} r; {loop} return r;"), (one,))


@cache
def operation(op: Op, sources: tuple[DType, ...], result: DType) -> Helper:
    """The function of a spelled operation on these types."""
    name = "_".join([op.name, *dict.fromkeys(map(repr, (*sources, result)))])
    scalars = tuple(source.scalar for source in sources)
    vector = result.lanes > 1
    if op is ops.CAST:
        text, needs = _cast(sources[0].scalar, result.scalar)
    elif op is ops.BITCAST:
        text, needs = _bitcast(sources[0].scalar, result.scalar)
    elif op is ops.WHERE:
        text, needs = "a ? b : c", ()
    else:
        text, needs = _expression(op, scalars[0])
    if vector and not (text.startswith("=") and not needs):
        return _per_lane(name, result, list(sources), operation(op, scalars, result.scalar))
    kinds = [register_type(source) for source in sources]
    body = f"return {text.removeprefix('= ')};"
    return Helper(name, _function(name, register_type(result), kinds, body), needs)


def _expression(op: Op, source: DType) -> tuple[str, tuple[Helper, ...]]:
    text = _EXPRESSION[op, source.kind]
    if source.kind != "f":
        return text, ()
    text = text.replace("{f}", "" if source.bits == 64 else "f")
    if source.bits != 16 or op in _EXACT or op.dtype == "bool":
        return text, ()
    if op is ops.FMA and source is float16:
        # the product and the sum may need more than the bits of a float32
        cast = operation(ops.CAST, (float64,), source)
        return f"{cast.name}(__builtin_fma((f64)a, (f64)b, (f64)c))", (cast,)
    rounding = round_to(source)
    return f"{rounding.name}({text.removeprefix('= ')})", (rounding,)


# ---- dot instructions ----------------------------------------------------------------------------

_FLUSH = Helper(  # a subnormal number as a zero of its sign
    "flush", "INLINE f32 flush(f32 a) { return __builtin_fabsf(a) < 0x1p-126f ? a * 0 : a; }"
)


@cache
def dot(instruction: Dot, lanes: int) -> Helper:
    """The function of a dot instruction, in plain C."""
    name = "_".join(map(str, (*instruction.arg, lanes)))
    factors = [_member(dtype) for dtype in instruction.factors]
    step = "a + {} * {}"
    needs: tuple[Helper, ...] = ()
    if instruction.total.is_float:
        step, needs = "flush(__builtin_fmaf(flush({}), flush({}), flush(a)))", (_FLUSH,)
    steps = [
        f"a = {step.format(*(f'({text.format(x, place)})' for text, x in zip(factors, 'bc')))};"
        for place in reversed(range(instruction.size))
    ]
    total = register_type(instruction.total)
    one = Helper(
        name if lanes == 1 else f"{name}_1",
        _function(
            name if lanes == 1 else f"{name}_1", total, [total, "u32", "u32"],
            " ".join((*steps, "return a;")),
        ),
        needs,
    )  # fmt: skip
    if lanes == 1:
        return one
    vectors = [dtype.vec(lanes) for dtype in (instruction.total, GROUP, GROUP)]
    return _per_lane(name, vectors[0], vectors, one)


@cache
def multiply(matrix: Matrix) -> Helper:
    """The function of a matrix instruction, in plain C."""
    name = "_".join(map(str, matrix.arg))
    kinds = [
        register_type(dtype.vec(lanes))
        for dtype, lanes in zip((matrix.total, GROUP, GROUP), matrix.lanes)
    ]
    groups, of = matrix.k // matrix.size, register_type(matrix.total)
    members = range(matrix.size)
    needs: tuple[Helper, ...] = ()
    step, end = "s{2} += {0} * {1};", "a[n] += " + " + ".join(f"s{m}" for m in members)
    if matrix.total.is_float:
        needs = (_FLUSH,)
        step = "s{2} = flush(__builtin_fmaf(flush({0}), flush({1}), s{2}));"
        end = "a[n] = flush(flush(a[n]) + flush(s0 + s1))"
    one, two = (_member(dtype) for dtype in matrix.factors)
    steps = " ".join(
        step.format(f"({one.format('x', m)})", f"({two.format('y', m)})", m) for m in members
    )
    body = (
        f"for (int n = 0; n < {matrix.lanes[0]}; n++) {{"
        f" {of} {', '.join(f's{m} = 0' for m in members)};"
        f" for (int g = 0; g < {groups}; g++) {{"
        f" u32 x = b[n / {matrix.n} * {groups} + g], y = c[g * {matrix.n} + n % {matrix.n}];"
        f" {steps} }} {end}; }} return a;"
    )
    return Helper(name, _function(name, kinds[0], kinds, body), needs)


def _member(dtype: DType) -> str:
    """A number of a group as a number of its own: over the group's name and the place."""
    if dtype is bfloat16:
        return "((union {{ u32 from; f32 to; }}){{ .from = {0} >> (16 * {1}) << 16 }}).to"
    return f"({register_type(dtype)})({{0}} >> ({dtype.bits} * {{1}}))"


# ---- forms of a value ----------------------------------------------------------------------------

_ROUND = {
    # add half of the last place kept, less one if the last bit kept is 0; NaN stays NaN
    "bfloat16": (
        "u32 v; __builtin_memcpy(&v, &a, 4);"
        " v = a != a ? v | 0x400000u : v + ((v >> 16 & 1u) + 0x7fffu);"
        " v &= 0xffff0000u; __builtin_memcpy(&a, &v, 4); return a;"
    ),
    "float16": "return (f32)(_Float16)a;",
}
_STORE = {
    "bfloat16": "u32 v; __builtin_memcpy(&v, &a, 4); return (u16)(v >> 16);",
    "float16": "_Float16 h = (_Float16)a; u16 v; __builtin_memcpy(&v, &h, 2); return v;",
}
_LOAD = {
    "bfloat16": "u32 v = (u32)a << 16; f32 r; __builtin_memcpy(&r, &v, 4); return r;",
    "float16": "_Float16 h; __builtin_memcpy(&h, &a, 2); return (f32)h;",
}


@cache
def round_to(dtype: DType) -> Helper:
    """The function that rounds a float32 to a 16-bit float (ties to even, NaN stays NaN)."""
    name = f"round_{dtype.name}"
    return Helper(name, _function(name, "f32", ["f32"], _ROUND[dtype.name]))


@cache
def store_form(dtype: DType) -> Helper | None:
    """The function from a variable's form to memory's; None if they are one."""
    if dtype.name not in _STORE:
        return None
    if dtype.lanes > 1:
        return _form("store", dtype, memory_type(dtype), register_type(dtype))
    name = f"store_{dtype.name}"
    return Helper(name, _function(name, "u16", ["f32"], _STORE[dtype.name]))


@cache
def load_form(dtype: DType) -> Helper | None:
    """The function from memory's form to a variable's; None if they are one."""
    if dtype.name not in _LOAD:
        return None
    if dtype.lanes > 1:
        return _form("load", dtype, register_type(dtype), memory_type(dtype))
    name = f"load_{dtype.name}"
    return Helper(name, _function(name, "f32", ["u16"], _LOAD[dtype.name]))


def _form(word: str, dtype: DType, result: str, source: str) -> Helper:
    one = store_form(dtype.scalar) if word == "store" else load_form(dtype.scalar)
    assert one is not None
    name = f"{word}_{dtype!r}"
    loop = f"for (int l = 0; l < {dtype.lanes}; l++) r[l] = {one.name}(a[l]);"
    return Helper(name, _function(name, result, [source], f"{result} r; {loop} return r;"), (one,))


# ---- casts ---------------------------------------------------------------------------------------

_TO_ODD = Helper(
    # a double cut to the 24 bits of a float32, the last bit set if anything was lost: rounding that
    # to a half is rounding the double to a half
    "to_odd",
    "INLINE f64 to_odd(f64 a) { u64 v; __builtin_memcpy(&v, &a, 8);"
    " v = (v | ((v & 0x1fffffffu) + 0x1fffffffu)) & ~(u64)0x1fffffffu;"
    " __builtin_memcpy(&a, &v, 8); return a; }",
)


def _cast(source: DType, target: DType) -> tuple[str, tuple[Helper, ...]]:
    """Float to integer truncates, saturates, and NaN gives 0; integers wrap; to bool is `!= 0`."""
    to = register_type(target)
    if source is target:
        return "a", ()
    if target.kind == "b":
        return "a != 0", ()
    if not target.is_float:
        if not source.is_float:
            return f"({to})a", ()
        source = float32 if source.bits == 16 else source  # as it stands in the variable
        low = constant(source, float(target.min))
        above = constant(source, 2.0 ** (target.bits - (target.kind != "u")))
        least, most = constant(target, target.min), constant(target, target.max)
        return f"a != a ? 0 : a < {low} ? {least} : a >= {above} ? {most} : ({to})a", ()
    if target.bits != 16:
        return f"({to})a", ()
    rounding = round_to(target)
    if target is float16 and source.kind == "f" and source.bits == 64:
        return f"{rounding.name}((f32)to_odd(a))", (_TO_ODD, rounding)
    return f"{rounding.name}((f32)a)", (rounding,)


def _bitcast(source: DType, target: DType) -> tuple[str, tuple[Helper, ...]]:
    before, after = store_form(source), load_form(target)
    text = f"{before.name}(a)" if before else "a"
    old, new = memory_type(source), memory_type(target)
    if old != new:
        text = f"((union {{ {old} from; {new} to; }}){{ .from = {text} }}).to"
    if after:
        text = f"{after.name}({text})"
    return text, tuple(helper for helper in (before, after) if helper)
