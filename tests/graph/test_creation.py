"""Tensors made from numbers, and random ones: known answers, and draws as functions of keys."""

import math

import numpy as np
import pytest
from arrays import close, run, same

from treadle.graph import build, counting, creation, random
from treadle.ir import index, meaning, ops
from treadle.ir.dtype import (
    bfloat16,
    bool_,
    float16,
    float32,
    float64,
    int8,
    int32,
    int64,
    uint8,
    uint64,
)
from treadle.ir.node import toposort


# ---- creation ------------------------------------------------------------------------------------
def test_filled():
    same(creation.zeros(2, 3), np.zeros((2, 3), np.float32))
    same(creation.ones((2, 0), dtype=int8), np.ones((2, 0), np.int8))
    same(creation.full((2,), True), np.array([True, True]))
    same(creation.full([], 3), np.int64(3))
    same(creation.full((1,), 2.9, dtype=int32), np.int32([2]))
    same(creation.full_like(creation.zeros(2), 7), np.float32([7, 7]))
    same(creation.zeros_like(creation.ones(2), dtype=bool_), np.zeros(2, bool))
    same(creation.ones_like(creation.zeros(1, dtype=int64)), np.ones(1, np.int64))
    with pytest.raises(ValueError, match=r"zeros: the shape .* has a negative size"):
        creation.zeros(2, -1)
    with pytest.raises(OverflowError, match="256 does not fit uint8"):
        creation.full((2,), 256, dtype=uint8)
    with pytest.raises(TypeError, match="a size is an int"):
        creation.ones(2.5)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, -0.0, 2**24 + 1, 1e-45])
def test_constants_keep_every_bit(value):
    same(creation.full((), float(value), dtype=float32), np.float32(value))
    same(creation.full((), float(value), dtype=float64), np.float64(value))


def test_floats_as_integer_constants_are_cast():
    assert build.const(math.nan, int32).value == 0
    assert build.const(1e30, int32).value == 2**31 - 1
    assert build.const(-2.9, int8).value == -2


def test_eye():
    same(creation.eye(3), np.eye(3, dtype=np.float32))
    same(creation.eye(2, 3, dtype=int64), np.eye(2, 3, dtype=np.int64))
    same(creation.eye(0), np.zeros((0, 0), np.float32))


@pytest.mark.parametrize(
    "numbers", [(5,), (0,), (-3,), (2, 7), (2, 9, 3), (9, 2, -2), (5, 5), (0, 5, 5), (0, 6, 5)]
)
def test_arange_of_ints(numbers):
    same(creation.arange(*numbers), np.arange(*numbers, dtype=np.int64))
    same(creation.arange(*numbers, dtype=float32), np.arange(*numbers).astype(np.float32))


@pytest.mark.parametrize("numbers", [(5.0,), (0, 1, 0.1), (1.0, -1.0, -0.25), (0.5, 0.4)])
def test_arange_of_floats(numbers):
    close(creation.arange(*numbers), np.arange(*numbers).astype(np.float32), ulps=2)
    assert creation.arange(*numbers, dtype=float16).dtype is float16


def test_arange_errors():
    with pytest.raises(ValueError, match="step must not be 0"):
        creation.arange(1, 2, 0)
    with pytest.raises(OverflowError):
        creation.arange(300, dtype=uint8)
    same(creation.arange(256, dtype=uint8), np.arange(256, dtype=np.uint8))
    size = index.variable("T", 1, 9)
    same(creation.arange(size), np.arange(4), T=4)
    same(creation.arange(0, size, 2), np.arange(0, 5, 2), T=5)
    same(creation.arange(size, dtype=float32), np.arange(4, dtype=np.float32), T=4)


def test_linspace():
    close(creation.linspace(-1, 2, 7), np.linspace(-1, 2, 7, dtype=np.float32))
    assert run(creation.linspace(0, 0.7, 11))[-1] == np.float32(0.7)
    same(creation.linspace(3, 9, 1), np.float32([3]))
    same(creation.linspace(3, 9, 0), np.zeros(0, np.float32))
    with pytest.raises(ValueError, match="steps is a number of 0 or more"):
        creation.linspace(0, 1, -1)


# ---- random --------------------------------------------------------------------------------------
def test_threefry_known_answers():
    """The vectors that are published with Random123 (threefry2x32, 20 rounds)."""
    for counter, key, answer in [
        ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
        ((0xFFFFFFFF,) * 2, (0xFFFFFFFF,) * 2, (0x1CB996FC, 0xBB002BE7)),
        ((0x243F6A88, 0x85A308D3), (0x13198A2E, 0x03707344), (0xC4923A9C, 0x483DF7A0)),
    ]:
        words = [np.array([low | high << 32], np.uint64) for low, high in (counter, key)]
        assert int(meaning.threefry(*words)[0]) == answer[0] | answer[1] << 32


def test_a_draw_is_a_function_of_key_and_position():
    long, short = run(random.rand(5, 100)), run(random.rand(5, 10, 4))
    np.testing.assert_array_equal(long[:40], short.ravel())
    assert not np.array_equal(long, run(random.rand(6, 100)))
    key = build.const(5, uint64)
    np.testing.assert_array_equal(long, run(random.rand(key, 100)))
    np.testing.assert_array_equal(run(random.rand(-1, 3)), run(random.rand(2**64 - 1, 3)))
    with pytest.raises(TypeError, match="a random key"):
        random.rand(1.5, 3)


def test_two_keys_give_one_graph_but_for_the_key():
    one, two = random.randn(1, 3), random.randn(2, 3)
    ops_of = [[n.op for n in toposort(x)] for x in (one, two)]
    assert ops_of[0] == ops_of[1]


@pytest.mark.parametrize("dtype", [float16, bfloat16, float32, float64])
def test_uniform_is_exact_and_below_one(dtype):
    digits = {float16: 11, bfloat16: 8, float32: 24, float64: 53}[dtype]
    x = run(random.rand(3, 4000, dtype=dtype)).astype(np.float64)
    whole = x * 2.0**digits
    np.testing.assert_array_equal(whole, np.floor(whole))
    assert x.min() >= 0
    assert x.max() < 1
    assert abs(x.mean() - 0.5) < 0.02
    assert abs(x.var() - 1 / 12) < 0.005


@pytest.mark.parametrize("dtype", [float16, float32, float64])
def test_normal_moments(dtype):
    x = run(random.randn(4, 20000, dtype=dtype)).astype(np.float64)
    assert np.isfinite(x).all()
    assert abs(x.mean()) < 0.03
    assert abs(x.var() - 1) < 0.04
    assert abs((x**3).mean()) < 0.1
    assert abs((x**4).mean() - 3) < 0.25
    assert abs(np.corrcoef(x[:-1], x[1:])[0, 1]) < 0.03


def test_parameters():
    x = run(random.uniform(1, 2000, low=-3.0, high=5.0))
    assert -3 <= x.min() < -2.9
    assert 4.9 < x.max() <= 5
    y = run(random.normal(1, 5000, mean=10.0, std=0.5))
    assert abs(y.mean() - 10) < 0.05
    assert abs(y.std() - 0.5) < 0.02
    with pytest.raises(TypeError, match="use randint"):
        random.rand(1, 2, dtype=int64)
    with pytest.raises(ValueError, match="std must be 0 or more"):
        random.normal(1, 2, std=-1.0)


@pytest.mark.parametrize(("low", "high"), [(0, 10), (-5, 5), (0, 1), (0, 2**40), (-(2**63), 2**63)])
def test_randint(low, high):
    x = run(random.randint(9, low, high, (3000,)))
    assert x.dtype == np.int64
    assert x.min() >= low
    assert x.max() < high
    if high - low == 10:
        assert np.bincount(x - low).min() > 200
    if high - low > 2**32:
        assert len(np.unique(x)) == 3000


def test_randint_arguments():
    same(random.randint(9, 5, (2, 2)), run(random.randint(9, 0, 5, (2, 2))))
    assert random.randint(9, 5, (2,), dtype=uint8).dtype is uint8
    with pytest.raises(ValueError, match="no integer from 3 up to 3"):
        random.randint(1, 3, 3, (2,))
    with pytest.raises(OverflowError):
        random.randint(1, 0, 300, (2,), dtype=uint8)
    with pytest.raises(TypeError, match="randint takes"):
        random.randint(1, 3)


def test_bernoulli():
    chance = build.const(0.25, float32, (4000,))
    x = run(counting.bernoulli(chance, random_key=3))
    assert set(np.unique(x)) == {0, 1}
    assert abs(x.mean() - 0.25) < 0.03
    assert counting.bernoulli(0.5, size=(2, 3), dtype=bool_, random_key=3).shape == (2, 3)
    assert not run(counting.bernoulli(build.const(0.0, float32, (100,)), random_key=3)).any()
    assert run(counting.bernoulli(build.const(1.0, float32, (100,)), random_key=3)).all()


@pytest.mark.parametrize("size", [0, 1, 2, 3, 100, 1000])
def test_randperm(size):
    x = run(random.randperm(7, size))
    np.testing.assert_array_equal(np.sort(x), np.arange(size))
    assert x.dtype == np.int64
    if size > 10:
        assert not np.array_equal(x, run(random.randperm(8, size)))


def test_permutations_are_equally_likely():
    counts = {}
    for key in range(600):
        order = tuple(run(random.randperm(key, 3)))
        counts[order] = counts.get(order, 0) + 1
    assert len(counts) == 6
    assert min(counts.values()) > 65


def test_empty_draws():
    assert run(random.rand(1, 0, 3)).shape == (0, 3)
    assert run(random.randn(1, ())).shape == ()


def test_symbolic_draws():
    size = index.variable("T", 1, 9)
    same(random.rand(5, size, 2), run(random.rand(5, 4, 2)), T=4)


def test_a_key_stays_out_of_every_fold():
    (draw,) = [n for n in toposort(random.rand(5, 1)) if n.op is ops.THREEFRY]
    assert draw.src[1] is not None
