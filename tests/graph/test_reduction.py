"""Reductions against NumPy: axes, keepdim, dtypes, NaN, and nothing to reduce."""

import math

import numpy as np
import pytest
from arrays import close, run, same, tensor

from treadle.graph import public, running
from treadle.graph import reduction as r
from treadle.graph.linear import matmul
from treadle.ir import index, ops
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

NAN, INF = math.nan, math.inf
X = np.random.default_rng(3).integers(-4, 5, (2, 3, 4)).astype(np.float32)
AXES = [None, 0, -1, (0, 2), (-2, -1), (0, 1, 2), ()]


@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("axes", AXES)
@pytest.mark.parametrize(
    ("function", "reference"),
    [(r.sum_, np.sum), (r.prod, np.prod), (r.max_, np.max), (r.min_, np.min), (r.mean, np.mean)],
)
def test_axes_and_keepdim(function, reference, axes, keepdim):
    expected = reference(X, axis=axes, keepdims=keepdim).astype(np.float32)
    close(function(tensor(X), axes, keepdim), expected + np.float32(0))


def test_wrong_axes():
    with pytest.raises(IndexError, match="dim=3 is out of range for a 3-d tensor: use -3 to 2"):
        r.sum_(tensor(X), 3)
    with pytest.raises(ValueError, match="same dimension twice"):
        r.sum_(tensor(X), (0, -3))
    with pytest.raises(TypeError, match="dim must be an int"):
        r.sum_(tensor(X), 0.5)


def test_the_other_spelling():
    entry = public.METHODS["sum"]
    same(entry(tensor(X), axis=1, keepdims=True), X.sum(1, keepdims=True))
    with pytest.raises(TypeError, match="dim and axis are one argument"):
        entry(tensor(X), dim=1, axis=1)
    with pytest.raises(TypeError, match=r"sum\(\) got an unexpected keyword argument 'axes'"):
        entry(tensor(X), axes=1)


@pytest.mark.parametrize(
    ("dtype", "result"),
    [(bool_, int64), (int8, int64), (uint8, int64), (uint64, uint64), (float16, float16)],
)
def test_dtype_of_a_sum(dtype, result):
    assert r.sum_(tensor([1, 1], dtype)).dtype is result
    assert r.prod(tensor([1, 1], dtype)).dtype is result
    assert r.sum_(tensor([1, 1], dtype), dtype=float64).dtype is float64


def test_integers_do_not_overflow_early():
    same(r.sum_(tensor([100, 100, 100], int8)), np.int64(300))
    same(r.sum_(tensor([True] * 5)), np.int64(5))
    assert r.mean(tensor([1, 2], int32)).dtype is float32
    same(r.mean(tensor([1, 2], int32)), np.float32(1.5))


@pytest.mark.parametrize("dtype", [float16, bfloat16])
def test_half_is_carried_in_float32(dtype):
    ones = tensor(np.ones(5000), dtype)
    assert run(r.sum_(ones)) == run(tensor(np.float64(5000), dtype)) if dtype is float16 else True
    assert run(r.mean(ones)) == 1
    assert run(r.std(tensor([1.0, 3.0], dtype), correction=0)) == 1


def test_nothing_to_reduce():
    empty = tensor(np.zeros((0, 3), np.float32))
    same(r.sum_(empty, 0), np.zeros(3, np.float32))
    same(r.prod(empty, 0), np.ones(3, np.float32))
    same(r.sum_(empty, 1), np.zeros(0, np.float32))
    assert np.isnan(run(r.mean(empty)))
    assert not run(r.any_(empty))
    assert run(r.all_(empty))
    same(r.max_(empty, 1), np.zeros(0, np.float32))
    for function in (r.max_, r.min_, r.argmax, r.argmin):
        with pytest.raises(ValueError, match=r"dimension 0 of shape \(0, 3\) has no elements"):
            function(empty, 0)
        with pytest.raises(ValueError, match="has no elements"):
            function(empty)
    same(r.argmax(empty, 1), np.zeros(0, np.int64))
    same(r.logsumexp(empty, 0), np.full(3, -INF, np.float32))


def test_nan_propagates():
    x = np.array([[1.0, NAN, 3.0], [4.0, 5.0, NAN]], np.float32)
    same(r.max_(tensor(x), 1), np.array([NAN, NAN], np.float32))
    same(r.min_(tensor(x), 0), np.array([1.0, NAN, NAN], np.float32))
    same(r.argmax(tensor(x), 1), np.argmax(x, 1))
    same(r.argmin(tensor(x), 1), np.argmin(x, 1))


@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_positions(name):
    function, reference = getattr(r, name), getattr(np, name)
    same(function(tensor(X)), reference(X))
    for axis in (0, 1, -1):
        same(function(tensor(X), axis), reference(X, axis))
        same(function(tensor(X), axis, True), reference(X, axis, keepdims=True))
    same(function(tensor(X), keepdim=True), reference(X, keepdims=True))
    same(function(tensor(np.float32(3))), np.int64(0))
    same(function(tensor([False, True, True])), np.int64(reference([0, 1, 1])))
    same(function(tensor([200, 3, 200], uint8)), np.int64(reference([200, 3, 200])))
    inf = np.array([-INF, -INF, INF, INF], np.float32)
    same(function(tensor(inf)), np.int64(reference(inf)))


def test_argmax_is_one_pass():
    (found,) = [n for n in toposort(r.argmax(tensor(X), 1)) if n.op is ops.REDUCE]
    assert found.arg[0] == "argmax"


def test_truth():
    x = np.array([[0.0, NAN], [0.0, 0.0]], np.float32)
    same(r.any_(tensor(x), 1), np.array([True, False]))
    same(r.all_(tensor(x)), np.bool_(False))
    same(r.count_nonzero(tensor(x)), np.int64(1))


@pytest.mark.parametrize("correction", [0, 1, 2.5, 100])
def test_variance(correction):
    x = X.astype(np.float64)
    squares = ((x - x.mean(1, keepdims=True)) ** 2).sum(1)
    with np.errstate(all="ignore"):
        expected = squares / max(0, 3 - correction)
    close(r.var(tensor(x), 1, correction=correction), expected, ulps=16)
    close(r.std(tensor(x), 1, correction=correction), np.sqrt(expected), ulps=16)


def test_variance_of_a_large_mean_and_pytorchs_arguments():
    x = np.array([1e6, 1e6 + 1, 1e6 + 2], np.float32)
    same(r.var(tensor(x)), np.float32(1))
    same(r.var(tensor(x), unbiased=False), np.float32(2 / 3))
    same(r.var(tensor(x), False), np.float32(2 / 3))
    with pytest.raises(TypeError, match="say the same"):
        r.var(tensor(x), unbiased=True, correction=1)
    with np.errstate(all="ignore"):
        assert np.isnan(run(r.var(tensor([1.0]))))


def test_logsumexp():
    x = np.array([[1000.0, 1000.0], [-INF, -INF], [INF, 1.0], [NAN, 1.0]], np.float32)
    expected = np.array([1000 + math.log(2), -INF, INF, NAN], np.float32)
    close(r.logsumexp(tensor(x), 1), expected)
    close(r.logsumexp(tensor(x), 1, True), expected[:, None])
    close(r.logsumexp(tensor(np.float32(3))), np.float32(3))


@pytest.mark.parametrize("size", [0, 1, 5, 32, 33, 1025])
def test_cumsum(size):
    x = np.arange(size * 2, dtype=np.int32).reshape(2, size) % 7
    same(running.cumsum(tensor(x), 1), np.cumsum(x, 1).astype(np.int64))
    same(running.cumsum(tensor(x), 0, dtype=float32), np.cumsum(x, 0).astype(np.float32))
    same(running.cumsum(tensor(x.T.copy()), -2), np.cumsum(x.T, 0).astype(np.int64))


@pytest.mark.parametrize(
    "shape, axis", [((70_001,), 0), ((80_000,), 0), ((70, 1000), 1), ((1300, 60), 0)]
)
def test_running_folds_of_many_elements(shape, axis):
    """Whose rows are cut in smaller blocks, ending with one or not."""
    x = np.random.default_rng(1).integers(-50, 50, shape).astype(np.int64)
    same(running.cumsum(tensor(x), axis), np.cumsum(x, axis))
    same(running.cumprod(tensor(x | 1), axis), np.cumprod(x | 1, axis))
    same(running.cummax(tensor(x), axis)[0], np.maximum.accumulate(x, axis))
    floats = x.astype(np.float64) / 16
    one_by_one = np.logaddexp.accumulate(floats, axis)  # which rounds at each element
    close(running.logcumsumexp(tensor(floats), axis), one_by_one, 1000)


def test_running_sums_round_seldom():
    """Sums of sums: what 100,000 numbers add up to is off by a few roundings, not by thousands."""
    x = np.random.default_rng(0).random(100_000, dtype=np.float32)
    exact = np.cumsum(x.astype(np.float64))
    off = np.abs(run(running.cumsum(tensor(x), 0)) - exact) / exact
    assert off.max() < 4e-7


def test_cumsum_keeps_what_comes_before_an_infinity():
    same(running.cumsum(tensor([1.0, INF, 2.0]), 0), np.array([1.0, INF, INF]))
    same(running.cumsum(tensor(np.float32(2)), 0), np.float32(2))


def test_symbolic_sizes():
    size = index.variable("T", 1, 100)
    x = tensor(X.reshape(8, 3), shape=(size, 3))
    same(r.sum_(x, 0), X.reshape(8, 3).sum(0), T=8)
    close(r.mean(x), X.mean(), T=8)
    same(r.argmax(x, 0), X.reshape(8, 3).argmax(0), T=8)
    close(r.var(x, 0), X.reshape(8, 3).var(0, ddof=1), T=8)
    same(running.cumsum(x, 0), X.reshape(8, 3).cumsum(0), T=8)
    maybe_empty = tensor(X.reshape(8, 3), shape=(index.variable("N", 0, 9), 3))
    with pytest.raises(ValueError, match="has no elements"):
        r.max_(maybe_empty, 0)
    close(matmul(x, tensor(X[0])), X.reshape(8, 3) @ X[0], T=8)


def test_a_sum_of_one_element_is_that_of_many():
    same(r.sum_(tensor([[-0.0], [1.0]]), 1), np.array([0.0, 1.0]))
    same(r.sum_(tensor([-0.0, -0.0])), np.float64(0.0))


def test_the_extreme_of_two_tensors():
    x, y = np.array([[1.0, 5.0]], np.float32), np.array([[3.0], [2.0]], np.float32)
    same(r.max_(tensor(x), tensor(y)), np.maximum(x, y))
    same(r.min_(tensor(x), other=tensor(y)), np.minimum(x, y))
