"""Sorting, quantiles and counting against NumPy, and what they cost, counted."""

import numpy as np
import pytest
from arrays import close, run, same, tensor
from hypothesis import given, settings
from hypothesis import strategies as st

import treadle
from treadle import JitError, Tensor, jit, vmap
from treadle.graph import counting, ordering, sorting
from treadle.ir import index, ops
from treadle.ir.dtype import bfloat16, float16, int8, uint64
from treadle.ir.node import toposort

RNG = np.random.default_rng(3)
SPECIAL = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 1e-40]


# ---- order ---------------------------------------------------------------------------------------
@pytest.mark.parametrize("size", [0, 1, 2, 49, 700])
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int64", "uint64", "float32"])
def test_sort(size, dtype):
    x = RNG.integers(0, 2 if dtype == "bool" else 100, (3, size)).astype(dtype)
    values, indices = sorting.sort(tensor(x), 1)
    same(indices, np.argsort(x, 1, kind="stable"))
    same(values, np.sort(x, 1))


@settings(deadline=None, max_examples=25)
@given(st.lists(st.sampled_from(SPECIAL), max_size=70))
def test_special_values_stand_where_numpy_has_them(numbers):
    x = np.array(numbers, np.float32)
    same(sorting.argsort(tensor(x)), np.argsort(x, kind="stable"))
    falling = np.argsort(-np.where(np.isnan(x), np.inf, np.minimum(x, 1e30)), kind="stable")
    plain = ~np.isnan(x)
    found = run(sorting.argsort(tensor(x), descending=True))
    missing = np.flatnonzero(~plain)
    assert found[: missing.size].tolist() == missing.tolist()
    rest = [place for place in falling.tolist() if plain[place]]
    assert found[missing.size :].tolist() == rest


def test_extremes_of_integers():
    x = np.array([2**64 - 1, 0, 2**63, 2**63 - 1], np.uint64)
    same(sorting.sort(tensor(x))[0], np.sort(x))
    assert tensor(x, uint64).dtype is uint64
    y = np.array([-(2**63), 2**63 - 1, 0, -1])
    same(sorting.sort(tensor(y), descending=True)[0], np.sort(y)[::-1])


def test_half():
    x = Tensor(RNG.normal(size=200).astype(np.float32))
    for dtype in (float16, bfloat16):
        rounded = x.cast(dtype)
        assert rounded.sort()[0].tolist() == np.sort(rounded.numpy()).tolist()


def test_a_size_that_is_not_known():
    size = index.variable("N", 1, 90)
    x = RNG.normal(size=57)
    same(sorting.sort(tensor(x, shape=(size,)))[0], np.sort(x), N=57)
    same(sorting.median(tensor(x, shape=(size,))), np.sort(x)[28], N=57)
    same(sorting.searchsorted(tensor(np.sort(x), shape=(size,)), tensor(0.0)),
         np.searchsorted(np.sort(x), 0.0), N=57)  # fmt: skip


def test_a_program_is_as_long_for_more_elements():
    nodes = [len(toposort(ordering.order(tensor(np.zeros(n, np.uint8))))) for n in (2000, 20000)]
    assert nodes[0] == nodes[1]
    short = ordering.order(tensor(np.zeros(700, np.uint8)))
    assert not [node for node in toposort(short) if node.op is ops.SCAN]


def test_topk_orders_what_can_be_among_them():
    x = RNG.permutation(20000)
    values, indices = sorting.topk(tensor(x), 7)
    same(values, np.arange(19999, 19992, -1))
    same(indices, np.argsort(-x)[:7])
    lengths = {node.src[0].shape[0] for node in toposort(indices) if node.op is ops.SCATTER}
    assert max(lengths) < 2000
    same(sorting.topk(tensor(np.zeros(20000)), 3)[1], np.arange(3))


def test_messages_of_sorting():
    x = tensor(np.zeros((2, 3)))
    with pytest.raises(ValueError, match=r"topk: k=4 is not a number of elements of dimension 1"):
        sorting.topk(x, 4)
    with pytest.raises(ValueError, match="kthvalue: k=0 is not one of 1 to 3"):
        sorting.kthvalue(x, 0)
    with pytest.raises(TypeError, match="quantile: the tensor must be floating-point, not int64"):
        sorting.quantile(tensor([1]), 0.5)
    with pytest.raises(ValueError, match=r"quantile: q is a probability from 0 to 1, not 1\.5"):
        sorting.quantile(x, 1.5)
    with pytest.raises(ValueError, match="interpolation is one of 'linear'"):
        sorting.quantile(x, 0.5, interpolation="cubic")
    with pytest.raises(ValueError, match="median: dimension 0 of shape"):
        sorting.median(tensor(np.zeros((0, 2))), 0)
    with pytest.raises(ValueError, match="searchsorted: values of shape"):
        sorting.searchsorted(x, tensor(np.zeros((3, 3))))


@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("size", [0, 1, 7, 8, 33])
def test_searchsorted(size, right):
    row = np.sort(RNG.integers(0, 9, size)).astype(np.float64)
    values = np.array([[-1.0, 0, 3, 9], [np.nan, np.inf, -np.inf, 4.5]])
    expected = np.searchsorted(row, values, "right" if right else "left")
    same(sorting.searchsorted(tensor(row), tensor(values), right=right), expected)
    order = RNG.permutation(size)
    mixed, sorter = row[order], np.argsort(row[order], kind="stable")
    found = sorting.searchsorted(tensor(mixed), tensor(values), sorter=tensor(sorter), right=right)
    same(found, expected)


def test_quantiles():
    x = RNG.normal(size=(5, 6))
    for q in (0.0, 0.25, 0.5, 1.0):
        close(sorting.quantile(tensor(x), q, 1), np.quantile(x, q, 1))
    wrong = tensor(np.float32([-0.01, 0.5, 1.01, np.nan, 2.0]))
    for how in ("linear", "lower", "higher", "midpoint", "nearest"):
        found = run(sorting.quantile(tensor(x), wrong, interpolation=how))
        assert np.isnan(found).tolist() == [True, False, True, True, True], how
    x[0, 1] = np.nan
    close(sorting.nanquantile(tensor(x), 0.3, 0), np.nanquantile(x, 0.3, 0))
    same(sorting.nanmedian(tensor(np.array([np.nan, 3.0, 1.0]))), np.float64(1.0))


# ---- names of the standard, transforms -----------------------------------------------------------
def test_namespace():
    x = np.array([3, 1, 2, 1])
    assert treadle.sort(Tensor(x), descending=True).tolist() == [3, 2, 1, 1]
    assert treadle.argsort(Tensor(x)).tolist() == [1, 3, 2, 0]
    assert treadle.unique_values(Tensor(x)).tolist() == [1, 2, 3]
    found = [part.tolist() for part in treadle.unique_all(Tensor(x))]
    assert found == [part.tolist() for part in np.unique_all(x)]
    assert [p.tolist() for p in treadle.unique_counts(Tensor(x))] == [[1, 2, 3], [2, 1, 1]]
    inverse = treadle.unique_inverse(Tensor(x))[1]
    assert inverse.tolist() == [2, 0, 1, 0]


def test_inside_jit_and_vmap():
    x = RNG.normal(size=(4, 60)).astype(np.float32)
    sorted_ = jit(lambda t: t.sort(1))(Tensor(x))[0]
    np.testing.assert_array_equal(sorted_.numpy(), np.sort(x, 1))
    each = vmap(lambda row: row.sort()[0])(Tensor(x))
    np.testing.assert_array_equal(each.numpy(), np.sort(x, 1))
    with pytest.raises(JitError, match="unique, whose result is of a size that values decide"):
        jit(lambda t: t.unique())(Tensor(x))


# ---- counting ------------------------------------------------------------------------------------
def test_unique_of_complex_numbers():
    """The real part comes first; every NaN is different."""
    x = np.array([[1 + 2j, 1 - 1j, -0.0], [1 + 2j, 0j, -2j]], np.complex64)
    found = treadle.unique_all(Tensor(x))
    for ours, theirs in zip(found, np.unique_all(x), strict=True):
        assert ours.numpy().dtype == theirs.dtype
        assert ours.tolist() == theirs.tolist()
    assert treadle.unique_counts(Tensor(x)).counts.tolist() == [1, 2, 1, 2]
    assert treadle.unique_inverse(Tensor(x)).inverse_indices.shape == x.shape
    unknown = Tensor([complex(1, np.nan), complex(1, np.nan), 1])
    assert treadle.unique_values(unknown).shape == (3,)
    rows, counts = Tensor(x[:, [0, 0]]).unique(dim=1, return_counts=True)
    assert rows.tolist() == [[1 + 2j], [1 + 2j]]
    assert counts.tolist() == [2]
    assert Tensor(x.ravel()).unique_consecutive().tolist() == [1 + 2j, 1 - 1j, 0, 1 + 2j, 0, -2j]


def test_unique_of_rows():
    x = RNG.integers(0, 2, (40, 4))
    values, inverse, counts = Tensor(x).unique(return_inverse=True, return_counts=True, dim=0)
    expected = np.unique(x, axis=0, return_inverse=True, return_counts=True)
    for ours, theirs in zip((values, inverse, counts), expected):
        assert ours.tolist() == theirs.tolist()


def test_bincount_and_one_hot():
    x = RNG.integers(0, 5, 30)
    assert Tensor(x).bincount(minlength=9).tolist() == np.bincount(x, minlength=9).tolist()
    weights = RNG.normal(size=30)
    np.testing.assert_allclose(Tensor(x).bincount(Tensor(weights)).numpy(), np.bincount(x, weights))
    with pytest.raises(IndexError):
        Tensor([0, -1]).bincount().realize()
    with pytest.raises(TypeError, match="bincount: counts integers, not float32"):
        Tensor([1.0]).bincount()
    assert Tensor([2, 0]).one_hot().tolist() == [[0, 0, 1], [1, 0, 0]]
    assert Tensor(1).one_hot(2).tolist() == [0, 1]
    with pytest.raises(TypeError, match="class ids are integers"):
        Tensor([1.0]).one_hot(3)
    with pytest.raises(ValueError, match="give the number of classes"):
        Tensor([1]).one_hot(0)


def test_multinomial():
    weights = np.array([[0.0, 1, 3, 0], [2, 0, 0, 2]], np.float32)
    treadle.manual_seed(1)
    drawn = Tensor(weights).multinomial(20000, replacement=True).numpy()
    shares = np.stack([np.bincount(row, minlength=4) / 20000 for row in drawn])
    np.testing.assert_allclose(shares, weights / weights.sum(1, keepdims=True), atol=0.02)
    once = Tensor(weights).multinomial(2).numpy()
    assert np.sort(once, 1).tolist() == [[1, 2], [0, 3]]
    first = np.array([Tensor(weights[0]).multinomial(2).numpy()[0] for _ in range(60)])
    assert 0.05 < (first == 1).mean() < 0.5
    with pytest.raises(IndexError, match="multinomial"):
        Tensor(weights).multinomial(3).realize()
    with pytest.raises(ValueError, match="cannot draw 5 of 4"):
        Tensor(weights).multinomial(5)
    node = counting.multinomial(tensor(weights), 2, random_key=3)
    assert node.shape == (2, 2)
    assert tensor([1], int8).dtype is int8
