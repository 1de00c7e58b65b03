"""The primitives: what they refuse, and the pieces that the public functions do not reach."""

import numpy as np
import pytest
from arrays import run, same, tensor
from hypothesis import given, settings
from hypothesis import strategies as st

from treadle.graph import build as b
from treadle.graph import shapes
from treadle.graph.simplify import simplify
from treadle.ir import index, ops
from treadle.ir.dtype import (
    BY_NAME,
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

X = np.arange(12, dtype=np.float32).reshape(3, 4)
NUMERIC = ["int8", "uint8", "int32", "int64", "uint64", "float16", "bfloat16", "float32", "float64"]


# ---- constants -----------------------------------------------------------------------------------
def test_equal_numbers_of_two_types_are_two_constants():
    assert b.const(1.0, int64) is b.const(1, int64)
    assert b.const(0.0, float32) is not b.const(-0.0, float32)
    assert b.const(2.0**63, int64).value == 2**63 - 1  # a float saturates
    with pytest.raises(OverflowError):  # an equal int does not fit
        b.const(2**63, int64)
    assert b.const(1e300, float16).value == float("inf")


@settings(deadline=None)
@given(st.sampled_from(NUMERIC), st.floats() | st.integers(-128, 127))
def test_a_constant_is_what_a_cast_of_the_number_is(name, value):
    dtype = BY_NAME[name]
    if isinstance(value, int) and dtype.kind == "u":
        value = abs(value)
    source = tensor(np.float64(value))
    np.testing.assert_array_equal(run(b.const(value, dtype)), run(b.cast(source, dtype)))


def test_casts_of_constants_are_made_at_once():
    x = b.cast(b.const(-1.5, float32, (2, 3)), int8)
    assert b.constant_of(x).value == -1
    assert b.cast(b.const(1 / 3, float64), bfloat16).op is ops.CONST
    same(b.cast(b.const(300, int32, (1,)), uint8), np.array([44], np.uint8))


def test_dim_value():
    assert b.dim_value(3, float32) is b.const(3, float32)
    size = index.variable("T", 1, 9)
    same(b.dim_value(index.add(size, 1), float32), np.float32(6), T=5)


# ---- elementwise ---------------------------------------------------------------------------------
def test_where_folds():
    x, y = tensor(X), tensor(-X)
    known = [b.where(b.const(value, bool_, (3, 4)), x, y) for value in (True, False)]
    assert simplify(known) == [x, y]  # until then a loss is computed from both
    assert b.where(tensor(X > 2), x, x) is x


def test_bitcast():
    same(b.bitcast(tensor(np.float32([1.0])), int32), np.float32([1.0]).view(np.int32))
    assert b.bitcast(b.bitcast(tensor([1.0], bfloat16), float16), bfloat16).dtype is bfloat16
    with pytest.raises(TypeError, match="float32 and int64 do not have the same number of bits"):
        b.bitcast(tensor(X), int64)
    with pytest.raises(TypeError):
        b.bitcast(tensor([True]), uint8)


def test_stop_gradient_and_contiguous_are_made_once():
    x = b.alu(ops.EXP, tensor(X))
    assert b.stop_gradient(b.stop_gradient(x)) is b.stop_gradient(x)
    assert b.contiguous(b.contiguous(x)) is b.contiguous(x)
    assert b.contiguous(tensor(X)).op is ops.BUFFER


# ---- shapes --------------------------------------------------------------------------------------
def test_axes():
    assert shapes.normalize_axes(None, 3) == (0, 1, 2)
    assert shapes.normalize_axes((-1, 0), 3) == (0, 2)
    assert shapes.normalize_axes(0, 0) == ()
    assert shapes.normalize_axes((0,), 0) == ()
    with pytest.raises(IndexError, match="dim=1 is out of range for a 0-d tensor: use -1 to 0"):
        shapes.normalize_axis(1, 0)


def test_dimensions_are_decided_by_their_bounds_or_raise():
    size = index.variable("T", 2, 9)
    assert shapes.at_most(2, size)
    assert shapes.at_most(size, 1) is False
    assert shapes.at_most(size, 5) is None
    with pytest.raises(ValueError, match="T"):
        shapes.same(size, 5)
    assert not shapes.same(size, 10)
    assert shapes.text((size, 3)) == "(T, 3)"
    assert shapes.broadcast_shapes((size, 1), (1, 3)) == (size, 3)
    assert shapes.divide_up(7, 2) == 4


# ---- reduce, gather, scatter, update -------------------------------------------------------------
def test_reduce_drops_axes_of_size_one():
    x = tensor(X.reshape(3, 1, 4))
    assert b.reduce("max", x, 1).op is ops.RESHAPE
    both = b.reduce("max", x, (1, 2))
    assert both.arg == ("max", (1,))
    same(both, X.max(1))


def test_reduce_over_pairs_keeps_dims():
    value, place = b.reduce(
        "argmax", (tensor(X), b.expand(b.iota(4, int64), (3, 4))), 1, keepdim=True
    )
    same(value, X.max(1, keepdims=True))
    same(place, X.argmax(1)[:, None])


def test_gather_and_scatter_check_shapes():
    with pytest.raises(ValueError, match="every dimension but 1"):
        b.gather(tensor(X), tensor(np.zeros((2, 2), np.int64)), 1)
    with pytest.raises(ValueError, match="do not match the indices"):
        b.scatter(tensor(X), tensor(np.zeros((3, 2), np.int64)), tensor(X), 1)
    with pytest.raises(TypeError, match="cannot put float64 into float32"):
        b.scatter(tensor(X), tensor(np.zeros((3, 4), np.int64)), tensor(X.astype(float)), 1)
    none = tensor(np.zeros((3, 0), np.int64))
    assert b.scatter(tensor(X), none, tensor(X[:, :0]), 1).shape == X.shape


@pytest.mark.parametrize("monoid", ["set", "add", "mul", "max", "min"])
def test_scatter_combines_in_order(monoid):
    where = np.array([[0, 0, 3], [1, 2, 1], [3, 3, 3]])
    value = np.array([[2.0, 3, -4], [5, 6, 7], [0.5, 8, 9]], np.float32)
    named = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}
    combine = named.get(monoid, lambda old, new: new)
    expected = X.copy()
    for i in range(3):
        for j in range(3):
            expected[i, where[i, j]] = combine(expected[i, where[i, j]], value[i, j])
    same(b.scatter(tensor(X), tensor(where), tensor(value), 1, monoid), expected)


def test_update():
    expected = X.copy()
    expected[::2, 1:4:2] = -1
    value = tensor(np.full((2, 2), -1, np.float32))
    same(b.update(tensor(X), value, ((0, 2), (1, 2))), expected)
    whole = tensor(-X)
    assert b.update(tensor(X), whole, ((0, 1), (0, 1))) is whole
    with pytest.raises(ValueError, match=r"at \(0, 3\) do not lie within"):
        b.update(tensor(X), value, ((0, 2), (3, 1)))
    with pytest.raises(TypeError, match="cannot put float64"):
        b.update(tensor(X), tensor(X.astype(float)), ((0, 1), (0, 1)))


def test_iota():
    same(b.iota(3, uint8), np.arange(3, dtype=np.uint8))
    same(b.iota(3, float64), np.arange(3.0))
    with pytest.raises(ValueError, match="negative size"):
        b.iota(-1, int64)
    with pytest.raises(OverflowError, match="do not fit int8"):
        b.iota(129, int8)


def test_ten_thousand_operations_in_a_chain():
    x = tensor(np.float32([0.5]))
    for _ in range(10_000):
        x = b.alu(ops.SIN, x)
    assert 0 < run(x)[0] < 0.1
