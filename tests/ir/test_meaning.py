"""The meanings of scalar operations on their hard values (docs/numerics.md)."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from treadle.ir import dtype as d
from treadle.ir import ops
from treadle.ir.dtype import float16, float32, float64
from treadle.ir.node import Node

EVERY_INT8 = np.arange(-128, 128, dtype=np.int8)
EVERY_UINT8 = np.arange(256, dtype=np.uint8)


def leaf(number, dtype):
    return Node(ops.PLACEHOLDER, dtype, (), (number, ()))


def run(op, *arrays, dtypes=None, dtype=None):
    """The meaning of an op on arrays of these dtypes."""
    arrays = [np.asarray(a) for a in arrays]
    dtypes = dtypes or [d.from_numpy(a.dtype) for a in arrays]
    node = op(*(leaf(n, t) for n, t in enumerate(dtypes)), dtype=dtype)
    return np.asarray(op.meaning(node, *arrays))


def pairs(values):
    a, b = np.meshgrid(values, values, indexing="ij")
    return a.ravel(), b.ravel()


def wrapped(value, array):
    return d.from_numpy(array.dtype).to_bits(value)


@pytest.mark.parametrize("values", [EVERY_INT8, EVERY_UINT8], ids=["int8", "uint8"])
def test_integer_division_is_floored_and_total(values):
    a, b = pairs(values)
    quotient, remainder = run(ops.IDIV, a, b), run(ops.MOD, a, b)
    assert quotient.dtype == remainder.dtype == values.dtype
    for x, y, q, r in zip(a.tolist(), b.tolist(), quotient.tolist(), remainder.tolist()):
        assert q == (wrapped(x // y, values) if y else 0)
        assert r == (x % y if y else 0)


def test_c_division_truncates():
    a, b = pairs(EVERY_INT8)
    valid = (b != 0) & ~((a == -128) & (b == -1))
    a, b = a[valid], b[valid]
    quotient, remainder = run(ops.TDIV, a, b), run(ops.TMOD, a, b)
    expected = [int(Fraction(x, y)) for x, y in zip(a.tolist(), b.tolist())]
    assert quotient.tolist() == expected
    assert remainder.tolist() == [x - y * q for x, y, q in zip(a.tolist(), b.tolist(), expected)]


@pytest.mark.parametrize("values", [EVERY_INT8, EVERY_UINT8], ids=["int8", "uint8"])
def test_shifts_past_the_width_are_defined(values):
    a, b = pairs(values)
    left, right = run(ops.LSHIFT, a, b), run(ops.RSHIFT, a, b)
    assert left.dtype == right.dtype == values.dtype
    for x, y, up, down in zip(a.tolist(), b.tolist(), left.tolist(), right.tolist()):
        inside = 0 <= y < 8
        assert up == (wrapped(x << y, values) if inside else 0)
        assert down == (x >> y if inside else -1 if x < 0 else 0)


def test_integer_arithmetic_wraps():
    a, b = pairs(EVERY_INT8)
    for op, exact in [(ops.ADD, int.__add__), (ops.SUB, int.__sub__), (ops.MUL, int.__mul__)]:
        expected = [wrapped(exact(x, y), a) for x, y in zip(a.tolist(), b.tolist())]
        assert run(op, a, b).tolist() == expected
    assert run(ops.NEG, np.int8(-128)) == -128
    assert run(ops.ABS, np.int8(-128)) == -128
    assert run(ops.NEG, np.uint8(1)) == 255


def test_extremes_of_floats():
    nan, inf = np.float32(np.nan), np.float32(np.inf)
    one = np.float32(1)
    for op in (ops.MAX, ops.MIN):
        assert math.isnan(run(op, nan, one))
        assert math.isnan(run(op, one, nan))
    plus, minus = np.float32(0.0), np.float32(-0.0)
    for a, b in ((plus, minus), (minus, plus)):
        assert not np.signbit(run(ops.MAX, a, b))
        assert np.signbit(run(ops.MIN, a, b))
    assert np.signbit(run(ops.MAX, minus, minus))
    assert run(ops.MAX, -inf, one) == 1
    assert run(ops.MAX, np.bool_(True), np.bool_(False)).dtype == bool


INTEGERS = [t for t in d.TENSOR_DTYPES if t.is_int]


@pytest.mark.parametrize("target", INTEGERS, ids=repr)
@pytest.mark.parametrize("source", [float16, float32, float64], ids=repr)
def test_float_to_integer_saturates(source, target):
    values = [math.nan, math.inf, -math.inf, 0.0, -0.0, -0.9, 1.5, 127.9, 128.0, -129.0, 65504.0]
    values += [2.0**31, -(2.0**31), 2.0**63, -(2.0**63), 2.0**64, 1e30]
    with np.errstate(over="ignore"):
        given_ = np.array(values).astype(source.storage)
    got = run(ops.CAST, given_, dtype=target)
    assert got.dtype == target.storage
    for value, result in zip(given_.astype(np.float64).tolist(), got.tolist()):
        if math.isnan(value):
            expected = 0
        elif math.isinf(value):
            expected = target.max if value > 0 else target.min
        else:
            expected = min(max(math.trunc(value), target.min), target.max)
        assert result == expected


def test_casts_that_are_questions_or_wrap():
    truth = run(ops.CAST, np.array([0.0, -0.0, np.nan, 0.1]), dtype=d.bool_)
    assert truth.tolist() == [False, False, True, True]
    assert run(ops.CAST, np.array([300, -1], np.int32), dtype=d.uint8).tolist() == [44, 255]
    assert run(ops.CAST, np.array([True]), dtype=float32).tolist() == [1.0]
    assert run(ops.CAST, np.array([70000], np.int32), dtype=float16).tolist() == [math.inf]


@settings(deadline=None, max_examples=300)
@given(*[st.floats(width=32, allow_nan=False, allow_infinity=False)] * 3)
def test_fma_rounds_once_in_float32(a, b, c):
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    got = float(run(ops.FMA, *(np.float32(v) for v in (a, b, c))))
    assert nearest(got, exact, np.float32)


@settings(deadline=None, max_examples=200)
@given(*[st.floats(allow_nan=False, allow_infinity=False)] * 3)
def test_fma_rounds_once_in_float64(a, b, c):
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    got = float(run(ops.FMA, *(np.float64(v) for v in (a, b, c))))
    assert nearest(got, exact, np.float64)


def nearest(got, exact, kind):
    """Whether no float of this kind is nearer to the exact value."""
    if math.isinf(got):
        return abs(exact) >= Fraction(float(np.finfo(kind).max))
    with np.errstate(over="ignore"):
        around = [float(np.nextafter(kind(got), kind(end))) for end in (-np.inf, np.inf)]
    distance = abs(Fraction(got) - exact)
    return all(math.isinf(n) or abs(Fraction(n) - exact) >= distance for n in around)


def test_fma_of_special_values():
    inf, nan = np.float64(np.inf), np.float64(np.nan)
    one = np.float64(1)
    assert run(ops.FMA, inf, one, one) == math.inf
    assert math.isnan(run(ops.FMA, inf, one, -inf))
    assert math.isnan(run(ops.FMA, nan, one, one))
    assert np.signbit(run(ops.FMA, -one, np.float64(0), np.float64(-0.0)))


def test_threefry_gives_the_known_answers():
    """Random123's kat_vectors for threefry2x32 with 20 rounds."""
    ones = 0xFFFFFFFF
    known = [
        ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
        ((ones, ones), (ones, ones), (0x1CB996FC, 0xBB002BE7)),
        ((0x243F6A88, 0x85A308D3), (0x13198A2E, 0x03707344), (0xC4923A9C, 0x483DF7A0)),
    ]
    for counter, key, answer in known:
        words = [np.uint64(low | high << 32) for low, high in (counter, key)]
        bits = int(run(ops.THREEFRY, *words))
        assert (bits & ones, bits >> 32) == answer


def test_bitcast_keeps_shape_and_bits():
    assert run(ops.BITCAST, np.float32(1.0), dtype=d.uint32).shape == ()
    assert int(run(ops.BITCAST, np.float32(1.0), dtype=d.uint32)) == 0x3F800000
    strided = np.arange(6, dtype=np.int32).reshape(2, 3).T
    back = run(ops.BITCAST, run(ops.BITCAST, strided, dtype=float32), dtype=d.int32)
    assert np.array_equal(back, strided)
    brain = run(ops.BITCAST, np.uint16(0x3FC0), dtype=d.bfloat16)
    assert float(brain) == 1.5


def test_a_zero_cotangent_times_anything_is_zero():
    g = np.array([0.0, 0.0, -0.0, 2.0])
    slope = np.array([np.inf, np.nan, 3.0, np.inf])
    assert run(ops.ZMUL, g, slope).tolist() == [0.0, 0.0, 0.0, math.inf]


def test_float32_functions_are_rounded_from_float64():
    x = np.linspace(-20, 20, 1001).astype(np.float32)
    for op, exact in [(ops.EXP, np.exp), (ops.TANH, np.tanh), (ops.SIN, np.sin)]:
        got = run(op, x)
        assert got.dtype == np.float32
        assert np.array_equal(got, exact(x.astype(np.float64)).astype(np.float32))
    assert run(ops.ERF, np.float32(0.5)) == np.float32(math.erf(0.5))


@pytest.mark.parametrize("op", [op for op in ops.TABLE.values() if op.meaning], ids=repr)
def test_every_meaning_takes_0d_arrays_and_empty_ones(op):
    kind = next(k for k in "fiubc" if k in op.accepts)
    dtype = {"f": float32, "i": d.int32, "u": d.uint64, "b": d.bool_, "c": d.complex64}[kind]
    target = (d.complex64 if op is ops.COMPLEX else dtype.real) if op.dtype == "given" else None
    dtypes = [dtype] * op.arity
    if op is ops.WHERE:
        dtypes[0] = d.bool_
    for shape in ((), (0,), (2, 3)):
        arrays = [np.ones(shape, t.storage) for t in dtypes]
        out = run(op, *arrays, dtypes=dtypes, dtype=target)
        assert out.shape == shape
        assert out.dtype == (d.bool_ if op.dtype == "bool" else target or dtype).compute
