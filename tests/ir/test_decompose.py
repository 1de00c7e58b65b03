"""Decompositions: legal expressions, with the values of `meaning.py` and the errors of
docs/numerics.md. Here they are evaluated by NumPy; tests/backend compares backends with that."""

import math
import re
from decimal import Decimal
from functools import cache
from pathlib import Path

import minimax
import numpy as np
import pytest
import ulp
from hypothesis import given, settings
from hypothesis import strategies as st

from treadle.ir import law, ops
from treadle.ir import polynomials as tables
from treadle.ir.decompose import FORMULAS, decompose
from treadle.ir.dtype import (
    TENSOR_DTYPES,
    bfloat16,
    bool_,
    float16,
    float32,
    float64,
    from_compute,
    int8,
    round_to,
    to_compute,
    uint8,
    uint64,
)
from treadle.ir.formula import Value, constant, where
from treadle.ir.node import toposort

ROOT = Path(__file__).resolve().parents[2]
INTEGERS = [dtype for dtype in TENSOR_DTYPES if dtype.is_int]
FLOATS = [dtype for dtype in TENSOR_DTYPES if dtype.is_float]


def evaluate(op, dtype, *arrays):
    """The decomposition on arrays in the compute type, node by node."""
    parameters, value = decompose(op, dtype)
    values = dict(zip(parameters, arrays, strict=True))
    for node in toposort(value):
        if node in values:
            continue
        if node.op is ops.CONST:
            values[node] = np.asarray(node.value, node.dtype.compute)
            continue
        result = node.op.meaning(node, *(values[s] for s in node.src))
        values[node] = round_to(node.dtype, np.asarray(result))
    return np.broadcast_to(values[value], np.shape(arrays[0]))


def meaning(op, dtype, *arrays):
    """What the table says that the op means."""
    parameters, _ = decompose(op, dtype)
    return round_to(dtype, op.meaning(op(*parameters), *arrays))


def assert_same(found, expected):
    """Equal bit by bit, but for what a NaN carries."""
    assert found.dtype == expected.dtype
    unsigned = f"u{found.dtype.itemsize}"
    number = ~(np.isnan(found) & np.isnan(expected))
    np.testing.assert_array_equal(found.view(unsigned)[number], expected.view(unsigned)[number])


def edges(dtype):
    """Integers at which an operation may go wrong."""
    top, bottom = int(dtype.max), int(dtype.min)
    numbers = {0, 1, 2, 3, 5, 7, 8, 15, 16, 31, 32, 63, 64, 65, 100, top, top - 1, top // 2}
    numbers |= {-n for n in numbers} | {bottom, bottom + 1}
    return np.array(sorted(n for n in numbers if bottom <= n <= top), dtype.storage)


def pairs(values):
    return tuple(grid.ravel() for grid in np.meshgrid(values, values))


# ---- the table -----------------------------------------------------------------------------------


def test_every_operation_that_is_not_spelled_has_a_decomposition():
    inherent = {ops.SPLAT, ops.PACK, ops.LANE, ops.STOP, ops.COMPLEX, ops.REAL, ops.IMAG}
    for op in ops.TABLE.values():
        if op.kind != "alu" or op in ops.SPELLED or op in inherent:
            continue
        for dtype in TENSOR_DTYPES:
            if dtype.kind in op.accepts and (op is not ops.THREEFRY or dtype is uint64):
                _, value = decompose(op, dtype)
                assert value.dtype is dtype


@pytest.mark.parametrize("dtype", TENSOR_DTYPES, ids=repr)
def test_values_are_legal_programs_of_spelled_operations(dtype):
    for op, rows in FORMULAS.items():
        if dtype.kind not in rows or (op is ops.THREEFRY and dtype is not uint64):
            continue
        parameters, value = decompose(op, dtype)
        assert [p.arg for p in parameters] == [(n, ()) for n in range(op.arity)]
        for node in toposort(value):
            if node not in parameters:
                assert node.op in ops.SPELLED, f"{op.name} uses {node.op.name}"
                assert law.fault(node, "p") is None, f"{op.name}: {node!r}"


def test_a_decomposition_is_made_once():
    assert decompose(ops.EXP, float32) is decompose(ops.EXP, float32)


@pytest.mark.parametrize(
    "op, dtype",
    [
        (ops.ADD, float32),
        (ops.EXP, int8),
        (ops.IDIV, float32),
        (ops.THREEFRY, uint8),
        (ops.ABS, bool_),
        (ops.EXP, float32.vec(4)),
    ],
)
def test_what_has_none_is_an_error_that_names_it(op, dtype):
    with pytest.raises(KeyError, match=re.escape(f"{op.name} of {dtype!r}")):
        decompose(op, dtype)


# Operations of a value, constants not counted: what a function costs on every lane.
COST = {
    "exp": 24, "exp2": 23, "log": 34, "sin": 50, "tanh": 35, "erf": 42, "normal_cdf": 30,
    "pow": 132,
}  # fmt: skip


@pytest.mark.parametrize("name", COST)
def test_cost_of_float32_functions(name):
    parameters, value = decompose(ops.TABLE[name], float32)
    count = sum(n.op is not ops.CONST for n in toposort(value)) - len(parameters)
    assert count <= COST[name]


# ---- exact operations ----------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", INTEGERS, ids=repr)
@pytest.mark.parametrize("op", [ops.IDIV, ops.MOD, ops.LSHIFT, ops.RSHIFT], ids=lambda op: op.name)
def test_integer_operations(op, dtype):
    every = np.arange(dtype.min, dtype.max + 1, dtype=dtype.storage) if dtype.bits == 8 else None
    a, b = pairs(edges(dtype) if every is None else every)
    found = evaluate(op, dtype, a, b)
    np.testing.assert_array_equal(found, meaning(op, dtype, a, b))
    assert found.dtype == dtype.storage


@settings(deadline=None)
@given(st.data())
def test_integer_operations_on_any_numbers(data):
    dtype = data.draw(st.sampled_from(INTEGERS))
    op = data.draw(st.sampled_from([ops.IDIV, ops.MOD, ops.LSHIFT, ops.RSHIFT]))
    number = st.integers(int(dtype.min), int(dtype.max))
    a, b = (np.array([data.draw(number)], dtype.storage) for _ in range(2))
    assert evaluate(op, dtype, a, b) == meaning(op, dtype, a, b)


@pytest.mark.parametrize("dtype", INTEGERS, ids=repr)
def test_absolute_value_of_integers(dtype):
    values = edges(dtype)
    np.testing.assert_array_equal(evaluate(ops.ABS, dtype, values), meaning(ops.ABS, dtype, values))


def float_edges(dtype):
    """Floats of every kind, as they are computed with."""
    with np.errstate(over="ignore"):
        numbers = [0.0, 1e-45, 1e-40, 2.0**-24, 0.25, 0.5, 0.75, 1, 1.5, 2, 2.5, 100.5, 1e30]
        values = np.array([*numbers, np.inf]).astype(dtype.compute)
    return round_to(dtype, np.concatenate([values, -values, values[:1] * np.nan]))


@pytest.mark.parametrize("dtype", FLOATS, ids=repr)
@pytest.mark.parametrize("op", [ops.ABS, ops.CEIL], ids=lambda op: op.name)
def test_exact_functions_of_floats(op, dtype):
    values = float_edges(dtype)
    assert_same(evaluate(op, dtype, values), meaning(op, dtype, values))


@pytest.mark.parametrize("dtype", FLOATS, ids=repr)
def test_a_zero_cotangent_times_anything_is_zero(dtype):
    g, d = pairs(float_edges(dtype))
    with np.errstate(all="ignore"):
        assert_same(evaluate(ops.ZMUL, dtype, g, d), meaning(ops.ZMUL, dtype, g, d))


def test_threefry_gives_the_known_answers_of_random123():
    def words(low, high):
        return np.array([low | high << 32], np.uint64)

    known = [
        ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
        ((0xFFFFFFFF,) * 2, (0xFFFFFFFF,) * 2, (0x1CB996FC, 0xBB002BE7)),
        ((0x243F6A88, 0x85A308D3), (0x13198A2E, 0x03707344), (0xC4923A9C, 0x483DF7A0)),
    ]
    for counter, key, expected in known:
        found = evaluate(ops.THREEFRY, uint64, words(*counter), words(*key))
        assert found == words(*expected)


# ---- approximated functions ----------------------------------------------------------------------


@cache
def bounds():
    """The bounds that docs/numerics.md states: (function, dtype) -> ulps."""
    text = (ROOT / "docs" / "numerics.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| ([\d.]+) \| ([\d.]+) \|", text, re.M)
    return {(name, dtype): float(b) for name, *pair in rows for dtype, b in zip(FLOATS[2:], pair)}


FUNCTIONS = [op.name for op, rows in FORMULAS.items() if "f" in rows][3:]


def test_every_function_has_a_bound():
    assert {(name, dtype) for name in FUNCTIONS for dtype in (float32, float64)} == set(bounds())


def check(name, dtype, *values):
    """The results keep the stated bound, and special values are exact."""
    found = evaluate(ops.TABLE[name], dtype, *values)
    distance = ulp.errors(found, ulp.reference(name, *values), name in ulp.ABSOLUTE)
    worst = int(np.argmax(distance))
    given = ", ".join(repr(v[worst]) for v in values)
    assert distance[worst] <= bounds()[name, dtype], f"{name}({given}) gives {found[worst]!r}"


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_float32_keeps_its_bound_over_all_exponents(name):
    check(name, float32, *ulp.operands(name, float32, dense=7))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_float32_keeps_its_bound_where_functions_bend(name):
    x = np.random.default_rng(3).uniform(-4, 4, 100_000).astype(np.float32)
    if name == "pow":
        y = np.random.default_rng(4).uniform(-100, 100, len(x)).astype(np.float32)
        check(name, float32, np.abs(x) * np.float32(0.3) + np.float32(0.4), y)
    else:
        check(name, float32, x[x > 0] if name in ulp.CROSSING else x)


wider = pytest.mark.skipif(
    np.finfo(np.longdouble).nmant <= 52, reason="NumPy has no float wider than float64 here"
)


@pytest.mark.sampled(2)
@wider
@pytest.mark.parametrize("name", FUNCTIONS)
def test_float64_keeps_its_bound_over_all_exponents(name):
    values = [v[::11] for v in ulp.operands(name, float64, dense=1)]
    near = np.random.default_rng(5).uniform(0 if name in ulp.CROSSING else -4, 4, 300)
    check(name, float64, *(np.concatenate([v, near]) for v in values))


@pytest.mark.parametrize("name", ["exp", "log", "erf"])
def test_float64_against_decimal_arithmetic(name):
    exact = {"exp": Decimal.exp, "log": Decimal.ln, "erf": minimax.erf}[name]
    x = np.random.default_rng(6).uniform(0.01, 5, 200)
    found = evaluate(ops.TABLE[name], float64, x)
    for argument, value in zip(x.tolist(), found.tolist(), strict=True):
        true = exact(Decimal(argument))
        ulp = Decimal(math.ulp(float(true)))
        assert abs(Decimal(value) - true) <= ulp * Decimal(bounds()[name, float64]), argument


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dtype", [float16, bfloat16], ids=repr)
@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name != "pow"])
def test_sixteen_bit_floats_round_the_float32_result(name, dtype):
    stored = np.arange(1 << 16, dtype=np.uint16).view(dtype.storage)
    x = to_compute(dtype, stored)
    found = evaluate(ops.TABLE[name], dtype, x)
    exact = meaning(ops.TABLE[name], dtype, x)
    off = from_compute(dtype, found).view(np.int16) - from_compute(dtype, exact).view(np.int16)
    off = np.where(np.isnan(found) & np.isnan(exact), 0, off)
    if name in ulp.ABSOLUTE:  # where they are small an ulp of the float32 is many of the result's
        off = np.where(np.abs(exact) < 0.5, 0, off)
    assert np.abs(off).max() <= 1
    assert np.count_nonzero(off) < len(off) / 1000


SPECIAL = {
    "exp": [(np.inf, np.inf), (-np.inf, 0.0), (0.0, 1.0), (-0.0, 1.0)],
    "exp2": [(np.inf, np.inf), (-np.inf, 0.0), (-0.0, 1.0), (10.0, 1024.0), (-3.0, 0.125)],
    "expm1": [(np.inf, np.inf), (-np.inf, -1.0), (-0.0, -0.0), (0.0, 0.0)],
    "log": [(np.inf, np.inf), (0.0, -np.inf), (-0.0, -np.inf), (1.0, 0.0), (-1.0, np.nan)],
    "log2": [(np.inf, np.inf), (-0.0, -np.inf), (1024.0, 10.0), (-np.inf, np.nan)],
    "log1p": [(np.inf, np.inf), (-1.0, -np.inf), (-2.0, np.nan), (-0.0, -0.0)],
    "sin": [(np.inf, np.nan), (-np.inf, np.nan), (-0.0, -0.0), (0.0, 0.0)],
    "cos": [(np.inf, np.nan), (-np.inf, np.nan), (-0.0, 1.0)],
    "tan": [(np.inf, np.nan), (-np.inf, np.nan), (-0.0, -0.0)],
    "atan": [(np.inf, math.pi / 2), (-np.inf, -math.pi / 2), (-0.0, -0.0)],
    "tanh": [(np.inf, 1.0), (-np.inf, -1.0), (-0.0, -0.0), (0.0, 0.0)],
    "erf": [(np.inf, 1.0), (-np.inf, -1.0), (-0.0, -0.0), (0.0, 0.0)],
    "erfc": [(np.inf, 0.0), (-np.inf, 2.0), (0.0, 1.0), (30.0, 0.0)],
    "normal_cdf": [(np.inf, 1.0), (-np.inf, 0.0), (0.0, 0.5), (-0.0, 0.5), (10.0, 1.0)],
    "erfinv": [(1.0, np.inf), (-1.0, -np.inf), (-0.0, -0.0), (1.5, np.nan)],
    "lgamma": [(np.inf, np.inf), (-np.inf, np.inf), (0.0, np.inf), (-3.0, np.inf), (1.0, 0.0)],
    "digamma": [(np.inf, np.inf), (0.0, -np.inf), (-0.0, np.inf), (-2.0, np.nan)],
}


@pytest.mark.parametrize("dtype", FLOATS, ids=repr)
@pytest.mark.parametrize("name", SPECIAL)
def test_special_values(name, dtype):
    x, expected = (np.array(column) for column in zip(*SPECIAL[name], (np.nan, np.nan)))
    found = evaluate(ops.TABLE[name], dtype, x.astype(dtype.compute))
    assert_same(found, round_to(dtype, expected.astype(dtype.compute)))


@pytest.mark.parametrize("dtype", [float32, float64], ids=repr)
def test_results_below_the_normal_numbers_are_rounded_once(dtype):
    info = np.finfo(dtype.storage)
    least = info.minexp - info.nmant
    n = np.arange(least - 3, info.minexp + 2).astype(dtype.storage)
    expected = np.ldexp(np.ones_like(n), n.astype(int))
    assert_same(evaluate(ops.EXP2, dtype, n), expected)
    assert_same(evaluate(ops.POW, dtype, np.full_like(n, 2), n), expected)
    # and back: logarithms of all powers of two are exact
    kept = expected > 0
    assert_same(evaluate(ops.LOG2, dtype, expected[kept]), n[kept])


def test_pow_has_the_special_cases_of_ieee_754():
    numbers = [0.0, 0.3, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 2.0**24, 2.0**25 + 2, 1e30, np.inf]
    values = np.array([*numbers, *(-n for n in numbers), np.nan, 1e-40], np.float32)
    x, y = pairs(values)
    check("pow", float32, x, y)
    wide = values.astype(np.float64)
    x, y = pairs(np.append(wide, [2.0**53, 2.0**53 - 1, -5e-324]))
    found, expected = evaluate(ops.POW, float64, x, y), meaning(ops.POW, float64, x, y)
    special = ~np.isfinite(expected) | (expected == 0) | (np.abs(expected) == 1)
    assert_same(found[special], expected[special])


def test_angles_next_to_a_multiple_of_a_quarter_turn():
    # the float32 and the float64 that lie nearest to one
    check("cos", float32, np.array([np.float32(16367173 * 2.0**72)]))
    x = np.array([math.ldexp(6381956970095103, 797)])
    assert evaluate(ops.COS, float64, x) == [-4.68716592425462761112e-19]
    assert evaluate(ops.SIN, float64, x) == [1.0]


@settings(deadline=None)
@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_odd_functions_are_odd(x):
    for name in ("sin", "tan", "atan", "tanh", "erf"):
        a = evaluate(ops.TABLE[name], float32, np.array([x], np.float32))
        b = evaluate(ops.TABLE[name], float32, np.array([-x], np.float32))
        assert_same(a, -b)


# ---- coefficients and the notation ---------------------------------------------------------------


@pytest.mark.parametrize("name", ["EXP2", "SIN"])
def test_the_tool_finds_the_coefficients_again(name):
    text = (ROOT / "treadle" / "ir" / "polynomials.py").read_text(encoding="utf-8")
    assert minimax.text(name + ":") in text


@pytest.mark.parametrize("name, bits", [("EXP", 32), ("ATAN", 64)])
def test_coefficients_reach_the_error_that_is_noted(name, bits):
    fit = minimax.ROWS[name, bits]()
    errors = fit.errors([Decimal(c) for c in getattr(tables, name)[bits]])
    assert max(map(abs, errors)) < Decimal(2) ** -(26 if bits == 32 else 57)


def test_formulas_are_written_with_operators():
    x = Value(decompose(ops.EXP, float32)[0][0])
    assert (x + 1.0).node is ops.ADD(x.node, constant(float32, 1).node)
    assert (1.0 - x).node is ops.SUB(constant(float32, 1).node, x.node)
    assert (x > 0).node is ops.LT(constant(float32, 0).node, x.node)
    assert x.cast(float32) is x
    with pytest.raises(TypeError, match="must be a Value"):
        where(x > 0, 1.0, 2.0)
    with pytest.raises(TypeError, match="unhashable"):
        hash(x)
