"""Element types: names, bits, rounding, promotion."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from treadle.ir import dtype as d
from treadle.ir.dtype import TENSOR_DTYPES, bfloat16, float16, float32, float64, promote

FLOATS = [t for t in TENSOR_DTYPES if t.is_float]
INTEGERS = [t for t in TENSOR_DTYPES if t.is_int]


def test_vectors_are_interned():
    assert float32.vec(8) is float32.vec(8)
    assert float32.vec(8).vec(1) is float32
    assert float32.vec(8).scalar is float32
    assert repr(bfloat16.vec(16)) == "bfloat16x16"
    assert d.from_name("bfloat16x16") is bfloat16.vec(16)
    assert bfloat16.vec(4).accumulator is float32.vec(4)
    with pytest.raises(ValueError, match="no dtype is called 'float33'; there are bool"):
        d.from_name("float33")


@pytest.mark.parametrize("dtype", FLOATS, ids=repr)
@settings(deadline=None, max_examples=200)
@given(value=st.floats() | st.floats(width=32) | st.sampled_from([65519.9, 65520.0, 3.4e38, 1e39]))
def test_float_bits_are_those_of_numpy(dtype, value):
    with np.errstate(all="ignore"):
        rounded = np.asarray(value, dtype.compute)
        stored = np.asarray(d.from_compute(dtype, rounded))
    bits = dtype.to_bits(value)
    if math.isnan(value):
        assert math.isnan(dtype.from_bits(bits))
        return
    assert bits == int(stored.view(f"u{dtype.itemsize}"))
    back = dtype.from_bits(bits)
    assert type(back) is float
    assert dtype.to_bits(back) == bits


@pytest.mark.parametrize("dtype", INTEGERS, ids=repr)
@settings(deadline=None, max_examples=60)
@given(value=st.integers(-(1 << 70), 1 << 70))
def test_integers_wrap_to_their_width(dtype, value):
    kept = dtype.to_bits(value)
    assert (kept - value) % (1 << dtype.bits) == 0
    assert dtype.min <= kept <= dtype.max
    assert dtype.from_bits(kept) == kept


def test_bfloat16_rounds_to_nearest_even():
    for value, expected in [
        (1.0, 0x3F80), (1 + 2**-8, 0x3F80), (1 + 3 * 2**-8, 0x3F82), (1 + 2**-8 + 2**-20, 0x3F81),
        (math.inf, 0x7F80), (-math.inf, 0xFF80), (3.4e38, 0x7F80), (1e-45, 0x0000),
    ]:  # fmt: skip
        assert bfloat16.to_bits(value) == expected
    assert math.isnan(bfloat16.from_bits(bfloat16.to_bits(math.nan)))


@pytest.mark.parametrize("dtype", TENSOR_DTYPES, ids=repr)
def test_numpy_types_come_and_go(dtype):
    if dtype is not bfloat16:
        assert d.from_numpy(dtype.storage) is dtype
        assert d.from_numpy(dtype.storage.newbyteorder(">")) is dtype
    assert dtype.storage.itemsize == dtype.itemsize


@pytest.mark.parametrize("name", ["complex256", "object", "U3", "datetime64[s]", "longdouble"])
def test_numpy_types_without_a_counterpart(name):
    with pytest.raises(TypeError, match="has no treadle dtype; supported: bool, int8"):
        d.from_numpy(np.dtype(name))


def test_promotion_is_a_commutative_idempotent_table():
    for a in TENSOR_DTYPES:
        assert promote(a, a) is a
        for b in TENSOR_DTYPES:
            assert promote(a, b) is promote(b, a)


def test_promotion_agrees_with_numpy_where_the_array_api_speaks():
    for a in TENSOR_DTYPES:
        for b in TENSOR_DTYPES:
            mixed = a.is_float != b.is_float or bfloat16 in (a, b) or {a, b} & {d.uint64}
            if not mixed:
                assert promote(a, b) is d.from_numpy(np.promote_types(a.storage, b.storage))


def test_promotion_where_it_is_ours():
    assert promote(float16, d.int64) is float16
    assert promote(float16, bfloat16) is float32
    assert promote(bfloat16, float64) is float64
    assert promote(d.uint64, d.int8) is float32
    assert promote(d.uint8, d.int8) is d.int16
    assert promote(d.bool_, bfloat16) is bfloat16
