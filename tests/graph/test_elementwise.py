"""Elementwise functions against NumPy, and the numbers that docs/numerics.md promises."""

import math

import numpy as np
import pytest
from arrays import close, run, same, tensor
from hypothesis import given, settings
from hypothesis import strategies as st

from treadle.graph import elementwise as e
from treadle.graph import functions as f
from treadle.graph import masks
from treadle.graph.build import where
from treadle.ir import ops
from treadle.ir.dtype import (
    BY_NAME,
    TENSOR_DTYPES,
    bfloat16,
    bool_,
    float16,
    float32,
    float64,
    int8,
    int32,
    int64,
    uint8,
)

INF, NAN = math.inf, math.nan
SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, 2.5, -2.5, 1e-3, 7e8, INF, -INF, NAN], np.float32)
A = np.array([[1.0, -2.0, 3.5], [0.5, 7.0, -0.25]], np.float32)
B = np.array([2.0, -3.0, 0.5], np.float32)
INTS = np.array([-7, -1, 0, 1, 6, 100], np.int32)


# ---- operands ------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("dtype", "scalar", "result"),
    [
        (float32, 1, float32),
        (float16, 2.5, float16),
        (bfloat16, True, bfloat16),
        (float64, 3, float64),
        (int8, 100, int8),
        (int64, 1.5, float32),
        (uint8, 1.5, float32),
        (bool_, True, bool_),
        (bool_, 1, int64),
        (bool_, 1.0, float32),
    ],
)
def test_python_scalars_are_weak(dtype, scalar, result):
    assert e.add(tensor([1], dtype), scalar).dtype is result
    assert e.add(scalar, tensor([1], dtype)).dtype is result


@pytest.mark.parametrize("a", TENSOR_DTYPES)
@pytest.mark.parametrize("b", TENSOR_DTYPES)
def test_promotion_is_symmetric_and_never_a_silent_float64(a, b):
    result = e.add(tensor([1], a), tensor([1], b)).dtype
    assert result is e.add(tensor([1], b), tensor([1], a)).dtype
    assert (result is float64) == (float64 in (a, b))


def test_an_int_that_does_not_fit_is_an_error():
    with pytest.raises(OverflowError, match="300 does not fit uint8"):
        e.add(tensor([1], uint8), 300)
    with pytest.raises(OverflowError, match="-1 does not fit uint8"):
        e.add(tensor([1], uint8), -1)
    with pytest.raises(OverflowError, match="too large for a float"):
        e.add(tensor([1.0]), 10**400)


def test_shapes_that_do_not_broadcast_are_named():
    with pytest.raises(ValueError, match=r"\+: shapes \(2, 3\) and \(4,\).*3 against 4 in dim"):
        e.add(tensor(np.zeros((2, 3))), tensor(np.zeros(4)))


def test_numpy_scalars_keep_their_dtype():
    assert e.add(tensor([1], int8), np.int32(2)).dtype is int32
    with pytest.raises(TypeError, match="expected a tensor or a number, not str"):
        e.add(tensor([1.0]), "2")


def test_broadcasting_and_empty_and_0d():
    same(e.add(tensor(A), tensor(B)), A + B)
    same(e.mul(tensor(np.zeros((0, 3), np.float32)), tensor(B)), np.zeros((0, 3), np.float32))
    same(e.sub(tensor(np.float32(3)), tensor(np.float32(1))), np.float32(2))


# ---- arithmetic ----------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("function", "reference"),
    [
        (e.add, np.add),
        (e.sub, np.subtract),
        (e.mul, np.multiply),
        (e.div, np.divide),
        (e.maximum, np.maximum),
        (e.minimum, np.minimum),
        (e.lt, np.less),
        (e.le, np.less_equal),
        (e.gt, np.greater),
        (e.ge, np.greater_equal),
        (e.eq, np.equal),
        (e.ne, np.not_equal),
        (e.pow_, np.power),
        (e.fmod, np.fmod),
    ],
)
def test_floats_and_special_values(function, reference):
    x, y = np.meshgrid(SPECIAL, SPECIAL)
    with np.errstate(all="ignore"):
        expected = reference(x, y) if reference is not np.power else None
        if expected is None:
            expected = np.power(x.astype(np.float64), y.astype(np.float64)).astype(np.float32)
    if reference in (np.maximum, np.minimum):
        np.testing.assert_array_equal(run(function(tensor(x), tensor(y))), expected)
    elif reference is np.fmod:
        value = run(function(tensor(x), tensor(y)))
        possible = ~(np.abs(x) > np.abs(y) * 2.0**47)  # beyond that it is NaN by promise
        np.testing.assert_array_equal(value[possible], expected[possible])
    else:
        same(function(tensor(x), tensor(y)), expected)


def test_alpha_and_rounding_mode():
    same(e.add(tensor(A), tensor(B), alpha=2), A + 2 * B)
    same(e.sub(tensor(A), 1.0, alpha=0.5), A - np.float32(0.5))
    ints = np.array([-7, 7, -6, 5], np.int64)
    same(e.div(tensor(ints), 2, rounding_mode="trunc"), np.array([-3, 3, -3, 2]))
    same(e.div(tensor(ints), 2, rounding_mode="floor"), np.array([-4, 3, -3, 2]))
    same(e.div(tensor(ints), 2), (ints / 2).astype(np.float32))
    same(e.div(tensor(ints), 0, rounding_mode="trunc"), np.zeros(4, np.int64))
    same(e.div(tensor([-7.0]), 2.0, rounding_mode="trunc"), np.array([-3.0]))
    with pytest.raises(ValueError, match="rounding_mode"):
        e.div(tensor(ints), 2, rounding_mode="up")


finite = st.floats(-1e6, 1e6, width=32)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(finite, finite), min_size=1, max_size=8))
def test_floor_divide_and_remainder_are_pythons(pairs):
    pairs = [(a, b) for a, b in pairs if b and abs(a / b) < 2.0**46]
    a = np.array([p[0] for p in pairs], np.float32)
    b = np.array([p[1] for p in pairs], np.float32)
    x, y = tensor(a), tensor(b)
    np.testing.assert_array_equal(run(e.remainder(x, y)), np.mod(a, b))
    close(e.floor_divide(x, y), np.floor_divide(a, b), ulps=1)


def test_floor_divide_and_remainder_of_special_floats():
    x = np.array([1.0, -1.0, 1.0, -1.0, INF, 1.0, -1.0, 0.0, 5.0], np.float32)
    y = np.array([INF, INF, -INF, -INF, 1.0, 0.0, 0.0, 0.0, 0.1], np.float32)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(run(e.remainder(tensor(x), tensor(y))), np.mod(x, y))
        np.testing.assert_array_equal(run(e.floor_divide(tensor(x), tensor(y))), x // y)
    large = np.float32(2.0**100)
    assert np.isnan(run(e.remainder(tensor(large), 3.0)))  # beyond 2**48 there is no answer
    assert run(e.remainder(tensor(np.float32(2.0**40)), 3.0)) == 1
    assert run(e.floor_divide(tensor(np.float32(1e30)), 3.0)) == np.float32(1e30) / np.float32(3)


def test_integer_division_never_traps():
    a = np.array([7, -7, 7, -7, -128, 5], np.int8)
    b = np.array([2, 2, -2, -2, -1, 0], np.int8)
    same(e.floor_divide(tensor(a), tensor(b)), np.array([3, -4, -4, 3, -128, 0], np.int8))
    same(e.remainder(tensor(a), tensor(b)), np.array([1, 1, -1, -1, 0, 0], np.int8))
    same(e.fmod(tensor(a), tensor(b)), np.array([1, -1, 1, -1, 0, 0], np.int8))


def test_bools_are_not_numbers_but_add_and_multiply():
    t, g = tensor([True, False]), tensor([True, True])
    same(e.add(t, g), np.array([True, True]))
    same(e.mul(t, g), np.array([True, False]))
    for function in (e.sub, e.floor_divide, e.remainder, e.pow_):
        with pytest.raises(TypeError, match="bool"):
            function(t, g)
    with pytest.raises(
        TypeError, match="negation is for signed, unsigned, floating-point, not for bool"
    ):
        e.neg(t)


# ---- powers --------------------------------------------------------------------------------------
@settings(deadline=None, max_examples=40)
@given(
    st.sampled_from(["int8", "uint8", "int32", "int64", "uint64"]),
    st.integers(-20, 20),
    st.integers(0, 130),
)
def test_integer_powers_are_exact_and_wrap(name, base, power):
    dtype = BY_NAME[name]
    base = abs(base) if dtype.kind == "u" else base
    power = min(power, 127)
    wanted = dtype.to_bits(base**power)
    assert run(e.pow_(tensor([base], dtype), power))[0] == wanted
    assert run(e.pow_(tensor([base], dtype), tensor([power], dtype)))[0] == wanted


def test_integer_powers_below_zero():
    with pytest.raises(ValueError, match="negative power"):
        e.pow_(tensor([2]), -1)
    base = np.array([2, 1, -1, -1, 0])
    same(e.pow_(tensor(base), tensor([-2, -3, -2, -3, -1])), np.array([0, 1, 1, -1, 0]))


@pytest.mark.parametrize("power", [0, 1, 2, 3, 4, 0.5, -0.5, -1, -2, 2.5, 0.0])
def test_float_powers(power):
    x = np.array([0.5, 1.0, 3.0, 100.0], np.float32)
    expected = (x.astype(np.float64) ** power).astype(np.float32)
    close(e.pow_(tensor(x), power), expected, ulps=2)
    close(e.pow_(float(2), tensor(x)), (2.0 ** x.astype(np.float64)).astype(np.float32), ulps=1)


def test_pow_promotes():
    assert e.pow_(tensor([2]), 0.5).dtype is float32
    assert e.pow_(tensor([2], int32), tensor([2])).dtype is int64
    assert e.pow_(2, tensor([2.0], float16)).dtype is float16


# ---- rounding, sign, choosing --------------------------------------------------------------------
def test_rounding():
    x = np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 1e20, INF, NAN], np.float32)
    same(e.round_(tensor(x)), np.rint(x))
    same(e.floor(tensor(x)), np.floor(x))
    same(e.ceil(tensor(x)), np.ceil(x))
    same(e.trunc(tensor(x)), np.trunc(x))
    same(e.floor(tensor(INTS)), INTS)
    same(e.round_(tensor([1.2345, 2.5]), 2), np.array([1.23, 2.5]))
    same(e.round_(tensor([1234.0, 1250.0]), -2), np.array([1200.0, 1200.0]))
    with pytest.raises(ValueError, match="below 0"):
        e.round_(tensor(INTS), -1)


def test_sign_abs_neg():
    same(e.sign(tensor(SPECIAL)), np.array([0, 0, 1, -1, 1, -1, 1, 1, 1, -1, NAN], np.float32))
    same(e.sign(tensor(INTS)), np.sign(INTS))
    same(e.sign(tensor([0, 9], uint8)), np.array([0, 1], np.uint8))
    same(e.abs_(tensor(SPECIAL)), np.abs(SPECIAL))
    same(e.abs_(tensor([-128, 5], int8)), np.array([-128, 5], np.int8))
    same(e.abs_(tensor([True])), np.array([True]))
    same(e.neg(tensor([1, 0], uint8)), np.array([255, 0], np.uint8))


def test_clamp():
    same(e.clamp(tensor(A), -1, 2), np.clip(A, -1, 2))
    same(e.clamp(tensor(A), min=tensor(B)), np.maximum(A, B))
    same(e.clamp(tensor(A), max=0.0), np.minimum(A, np.float32(0)))
    same(e.clamp(tensor([1.0, NAN]), 0.0, tensor([NAN, 1.0])), np.array([NAN, NAN]))
    same(e.clamp(tensor([5.0]), 3.0, 1.0), np.array([1.0]))
    assert e.clamp(tensor(INTS), 0.5).dtype is float32
    with pytest.raises(ValueError, match="give min, max"):
        e.clamp(tensor(A))


def test_where():
    test = tensor([True, False, True])
    same(where(test, tensor(B), 0), np.where([True, False, True], B, 0).astype(np.float32))
    same(masks.where_method(test, tensor(B), 0.0), run(where(test, tensor(B), 0.0)))
    same(masks.where_method(tensor(B), test, 0.0), run(where(test, tensor(B), 0.0)))
    with pytest.raises(TypeError, match=r"treadle\.where"):
        masks.where_method(test, test, 1)
    with pytest.raises(TypeError, match="condition is float32, not bool"):
        where(tensor(B), 1.0, 2.0)
    same(e.masked_fill(tensor(B), test, -INF), np.array([-INF, -3.0, -INF], np.float32))


def test_lerp_is_exact_at_both_ends():
    x, y = tensor(A), tensor(A[::-1].copy())
    same(e.lerp(x, y, 0.0), A)
    same(e.lerp(x, y, 1.0), A[::-1])
    close(e.lerp(x, y, tensor(np.float32(0.25))), A + (A[::-1] - A) * np.float32(0.25))


# ---- comparison, logic, bits ---------------------------------------------------------------------
def test_classification():
    same(e.isnan(tensor(SPECIAL)), np.isnan(SPECIAL))
    same(e.isinf(tensor(SPECIAL)), np.isinf(SPECIAL))
    same(e.isfinite(tensor(SPECIAL)), np.isfinite(SPECIAL))
    same(e.isnan(tensor(INTS)), np.zeros(6, bool))
    same(e.isfinite(tensor(INTS)), np.ones(6, bool))


def test_logic_asks_whether_it_is_not_zero():
    x, y = np.array([0.0, NAN, 2.0, 0.0], np.float32), np.array([0, 0, 3, 5])
    same(e.logical_and(tensor(x), tensor(y)), np.logical_and(x, y))
    same(e.logical_or(tensor(x), tensor(y)), np.logical_or(x, y))
    same(e.logical_xor(tensor(x), tensor(y)), np.logical_xor(x, y))
    same(e.logical_not(tensor(x)), np.logical_not(x))


def test_bits():
    a, b = np.array([12, -5, 127], np.int8), np.array([10, 3, -128], np.int8)
    same(e.bitwise_and(tensor(a), tensor(b)), a & b)
    same(e.bitwise_or(tensor(a), tensor(b)), a | b)
    same(e.bitwise_xor(tensor(a), tensor(b)), a ^ b)
    same(e.bitwise_not(tensor(a)), ~a)
    same(e.bitwise_not(tensor([True, False])), np.array([False, True]))
    with pytest.raises(TypeError, match="& is for bool, signed, unsigned, not for float32"):
        e.bitwise_and(tensor(A), 1)


def test_shifts_past_the_width_are_defined():
    x = np.array([1, -1, 5, -5, 7], np.int8)
    by = np.array([7, 8, -1, 100, 1], np.int8)
    same(e.bitwise_left_shift(tensor(x), tensor(by)), np.array([-128, 0, 0, 0, 14], np.int8))
    same(e.bitwise_right_shift(tensor(x), tensor(by)), np.array([0, -1, 0, -1, 3], np.int8))


# ---- functions -----------------------------------------------------------------------------------
UNARY = {
    f.exp: np.exp, f.exp2: np.exp2, f.expm1: np.expm1, f.log: np.log, f.log2: np.log2,
    f.log1p: np.log1p, f.sqrt: np.sqrt, f.sin: np.sin, f.cos: np.cos, f.tan: np.tan,
    f.atan: np.arctan, f.tanh: np.tanh, f.log10: np.log10, f.sinh: np.sinh, f.cosh: np.cosh,
    e.rsqrt: lambda v: 1 / np.sqrt(v), e.reciprocal: lambda v: 1 / v, e.square: np.square,
    f.sigmoid: lambda v: np.where(v >= 0, 1 / (1 + np.exp(-v)), np.exp(v) / (1 + np.exp(v))),
    f.relu: lambda v: np.where(v <= 0, 0, v),
    f.silu: lambda v: v / (1 + np.exp(-v)),
}  # fmt: skip


@pytest.mark.parametrize("function", UNARY, ids=lambda function: function.__qualname__)
@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float64"])
def test_functions_round_once(function, name):
    dtype = BY_NAME[name]
    x = np.array([0.0, 0.3, -0.3, 1.0, -1.0, 2.5, 9.0, -9.0, 80.0, -80.0, NAN, 1e-3])
    node = tensor(x, dtype)
    values = run(node).astype(np.float64)
    with np.errstate(all="ignore"):
        exact = np.asarray(UNARY[function](values))
        expected = exact.astype(dtype.compute)
    ulps = 600 if dtype is float64 else 8
    if dtype is bfloat16:
        np.testing.assert_allclose(run(function(node)), expected, rtol=2.0**-8)
    elif dtype is float16:  # rounded once: the correctly rounded value, up to a near tie
        np.testing.assert_allclose(run(function(node)), expected, rtol=2.0**-10)
    else:
        close(function(node), expected, ulps=4 if ulps == 600 else ulps)


@pytest.mark.parametrize("function", UNARY, ids=lambda function: function.__qualname__)
def test_functions_take_integers_and_special_values(function):
    if function not in (f.relu, e.square):
        assert function(tensor([1, 2])).dtype is float32
    with np.errstate(all="ignore"):
        wide = np.asarray(UNARY[function](np.array([0.0, INF, -INF, NAN])))
    if function is f.silu:
        wide = np.array([0.0, INF, NAN, NAN])
    if function is f.sigmoid:
        wide = np.array([0.5, 1.0, 0.0, NAN])
    value = run(function(tensor(np.array([0.0, INF, -INF, NAN], np.float32))))
    np.testing.assert_array_equal(np.isnan(value), np.isnan(wide))
    np.testing.assert_allclose(value, wide.astype(np.float32), rtol=1e-6)


def test_sinh_and_cosh_overflow_where_they_must():
    x = np.array([-89.2, 89.2, 88.9, 90.0], np.float32)
    with np.errstate(over="ignore"):
        close(f.sinh(tensor(x)), np.sinh(x.astype(np.float64)).astype(np.float32), ulps=32)
        close(f.cosh(tensor(x)), np.cosh(x.astype(np.float64)).astype(np.float32), ulps=32)


def test_gelu():
    x = np.linspace(-4, 4, 9, dtype=np.float32)
    exact = [v * 0.5 * (1 + math.erf(v / math.sqrt(2))) for v in x.astype(float)]
    np.testing.assert_allclose(run(f.gelu(tensor(x))), exact, atol=5e-7)
    rough = x * 0.5 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    np.testing.assert_allclose(run(f.gelu(tensor(x), approximate="tanh")), rough, atol=1e-6)
    with pytest.raises(ValueError, match="'none' or 'tanh'"):
        f.gelu(tensor(x), "fast")


# ---- folding -------------------------------------------------------------------------------------
def test_constants_fold_by_the_meaning_of_the_operation():
    two = e.node_of(2.0)
    assert e.mul(two, 3.0) is e.node_of(6.0)
    assert f.exp(e.node_of(0.0)) is e.node_of(1.0)
    assert e.div(e.node_of(0.0), 0.0).op is ops.CONST


@pytest.mark.parametrize("dtype", [float32, int32])
def test_neutral_elements_vanish_only_where_exact(dtype):
    x = tensor([1, 2], dtype)
    assert e.mul(x, 1) is x
    assert e.mul(1, x) is x
    assert e.sub(x, 0) is x
    assert e.add(x, -0.0 if dtype is float32 else 0) is x
    assert e.sub(0, x) is not x
    if dtype is float32:
        assert e.add(x, 0.0) is not x  # -0.0 + 0.0 is 0.0
        same(e.add(tensor([-0.0]), 0.0), np.array([0.0]))
        assert e.div(x, 1) is x
