"""`x[...]` to read and to write, against NumPy, by examples and by random indices."""

import numpy as np
import pytest
from arrays import run, same, tensor
from hypothesis import given, settings
from hypothesis import strategies as st

from treadle.graph import selection as s
from treadle.graph.indexing import getitem, setitem
from treadle.ir import index, ops
from treadle.ir.dtype import bfloat16, float32, int8, int64, uint8, uint64
from treadle.ir.node import Node, toposort

X = np.arange(120, dtype=np.float32).reshape(4, 5, 6)
ALL = slice(None)


def as_nodes(key):
    """An index with its arrays as tensors."""
    if isinstance(key, tuple):
        return tuple(tensor(k) if isinstance(k, np.ndarray) else k for k in key)
    return tensor(key) if isinstance(key, np.ndarray) else key


BASIC = [
    0, -1, (1, 2), (1, -2, 3), ALL, ..., None, (), (..., 2), (1, ...), (None, 1, None, ..., None),
    slice(1, 3), slice(-2, None), slice(None, None, 2), slice(None, None, -1), slice(3, None, -2),
    slice(10, 20), slice(3, 1), slice(-100, 100), slice(4, None), slice(None, -100, -3),
    (ALL, slice(1, 4, 2), slice(None, None, -2)), (slice(None, None, 3), 1, slice(0, 0)),
    (slice(2, 0, -1), ..., slice(5, None, -5)),
]  # fmt: skip

I1 = np.array([3, 0, -1, 0])
I2 = np.array([[0, 1], [2, -4]])
ADVANCED = [
    I1, I2, (ALL, I1), (..., I1), (I1, I1), (I1, ALL, I1), (ALL, I1, I1), (1, ALL, I1), (I1, 1, 2),
    (ALL, 1, I1), (I2, None, I2), (I2, I2, ALL), (I1, slice(1, 4)), (slice(0, 3, 2), I2),
    (np.array(2),), (ALL, np.array(-1)), (np.array(1), ALL, np.array([0, 1])),
    (I1[:, None], I1[None]), (np.zeros(0, np.int64),), (I1, slice(None, None, -2), np.array([[5]])),
    (slice(3, 0, -1), I2 % 3, 1), (None, I1, None, 2),
]  # fmt: skip


@pytest.mark.parametrize("key", BASIC + ADVANCED, ids=repr)
def test_read(key):
    same(getitem(tensor(X), as_nodes(key)), X[key])


@pytest.mark.parametrize("key", BASIC + ADVANCED, ids=repr)
def test_write(key):
    place = X[key].shape
    value = np.random.default_rng(0).standard_normal(place).astype(np.float32)
    if place and len(place) < 4:  # where an element is named twice the last value stays
        value = np.random.default_rng(1).standard_normal(place[-1:]).astype(np.float32)
    for new in (value, 7.5):
        expected = X.copy()
        expected[key] = new
        given_ = tensor(new) if isinstance(new, np.ndarray) else new
        same(setitem(tensor(X), as_nodes(key), given_), expected)
    same(tensor(X), X)


bounds = st.one_of(st.none(), st.integers(-9, 9))
slices = st.builds(slice, bounds, bounds, st.sampled_from([None, 1, 2, 3, -1, -2, -3]))
items = st.one_of(st.integers(-4, 3), slices, st.sampled_from([None, I1[:2] % 3, I2 % 2]))


@settings(deadline=None, max_examples=150)
@given(st.lists(items, max_size=4), st.booleans())
def test_random_indices(parts, dots):
    consumed = sum(part is not None for part in parts)
    key = (*parts, ...) if dots or consumed < 3 else tuple(parts)
    if consumed > 3:
        with pytest.raises(IndexError, match="too long"):
            getitem(tensor(X), as_nodes(key))
        return
    same(getitem(tensor(X), as_nodes(key)), X[key])
    expected = X.copy()
    expected[key] = -1
    same(setitem(tensor(X), as_nodes(key), -1), expected)


def test_basic_reads_are_movement():
    for key in BASIC:
        kinds = {node.op.kind for node in toposort(getitem(tensor(X), key))}
        assert kinds <= {"leaf", "movement"}


def test_one_index_tensor_is_one_gather_in_place():
    nodes = toposort(getitem(tensor(X), (ALL, tensor(I1))))
    assert [n.arg for n in nodes if n.op is ops.GATHER] == [1]
    assert not [n for n in nodes if n.op is ops.PERMUTE]


def test_errors_of_reading():
    for key, message in [
        (4, "index 4 is out of range for dimension 0 of size 4"),
        ((0, -6), "index -6 is out of range for dimension 1 of size 5"),
        ((0, 0, 0, 0), "an index of 4 dimensions is too long for a 3-d tensor"),
        ((..., 0, ...), "only one '...'"),
        ("a", "an index is an int"),
        (1.0, "an index is an int"),
        (slice(0.5, 1), "the bounds of a slice are ints"),
    ]:
        with pytest.raises(IndexError, match=message):
            getitem(tensor(X), key)
    with pytest.raises(ValueError, match="must not be 0"):
        getitem(tensor(X), slice(None, None, 0))
    with pytest.raises(IndexError, match="must be of integers, not float32"):
        getitem(tensor(X), tensor(np.float32([1])))
    with pytest.raises(IndexError, match=r"masked_select.* cannot be read here"):
        getitem(tensor(X), tensor(X > 3))
    with pytest.raises(ValueError, match="index: shapes"):
        getitem(tensor(X), (tensor([0, 1]), tensor([0, 1, 2])))


@pytest.mark.parametrize("bad", [4, -5, 1000])
def test_an_index_out_of_range_is_an_error_when_it_runs(bad):
    with pytest.raises(IndexError, match="out of range"):
        run(getitem(tensor(X), tensor([0, bad])))
    with pytest.raises(IndexError, match="out of range"):  # also where the flat place would exist
        run(getitem(tensor(X), (tensor([0, 1]), tensor([0, bad + 1 if bad > 0 else bad - 1]))))
    with pytest.raises(IndexError, match="out of range"):
        run(setitem(tensor(X), tensor([0, bad]), 1))


def test_index_dtypes():
    same(getitem(tensor(X), tensor([3, 1], uint8)), X[[3, 1]])
    same(getitem(tensor(X), tensor([-1], int8)), X[[-1]])
    with pytest.raises(IndexError):
        run(getitem(tensor(X), tensor(np.array([2**64 - 1], np.uint64))))
    big = np.arange(300)
    same(getitem(tensor(big), tensor([255], uint8)), big[[255]])
    assert tensor([1], uint64).dtype is uint64


def test_errors_of_writing():
    with pytest.raises(ValueError, match=r"shape \(3,\) does not fit a place of shape \(5, 6\)"):
        setitem(tensor(X), 0, tensor([1.0, 2.0, 3.0]))
    with pytest.raises(OverflowError):
        setitem(tensor([1], int8), 0, 200)


def test_writing_casts_and_drops_leading_ones():
    same(setitem(tensor([1, 2], int64), 0, 2.9), np.array([2, 2]))
    expected = X.copy()
    expected[1, :, 0] = np.arange(5)
    same(setitem(tensor(X), (1, ALL, 0), tensor(np.arange(5).reshape(1, 1, 5))), expected)
    written = setitem(tensor([1.0, 2.0], bfloat16), tensor([0]), 1.0001)
    assert written.dtype is bfloat16
    assert run(written)[0] == 1


def test_mask_assignment():
    mask = X > 50
    for key, value in [(mask, 2.0), ((..., mask), np.float32(3)), (mask[:, :, 0], 1.0)]:
        expected = X.copy()
        expected[key] = value
        same(setitem(tensor(X), as_nodes(key), value), expected)
    rows = np.array([True, False, True, False])
    expected = X.copy()
    expected[rows] = np.ones((1, 5, 6)) * np.arange(6)
    same(setitem(tensor(X), as_nodes(rows), tensor(np.arange(6.0, dtype=np.float32))), expected)
    expected = X.copy()
    expected[:, X[0] > 5] = 0
    same(setitem(tensor(X), (ALL, tensor(X[0] > 5)), 0), expected)
    with pytest.raises(ValueError, match=r"shape \(2, 4, 6\) does not fit a place of shape"):
        setitem(tensor(X), as_nodes(rows), tensor(np.ones((2, 4, 6), np.float32)))
    with pytest.raises(IndexError, match="does not match"):
        setitem(tensor(X), as_nodes(mask[1:]), 0)


def test_symbolic_sizes():
    size = index.variable("T", 2, 9)
    x = tensor(X, shape=(size, 5, 6))
    for key in (
        0,
        -1,
        slice(1, None),
        slice(None, None, 2),
        slice(None, None, -1),
        slice(-1, None),
    ):
        same(getitem(x, key), X[key], T=4)
    same(getitem(x, slice(None, 3)), X[:3], T=4)
    same(getitem(x, tensor([-1, 0])), X[[-1, 0]], T=4)
    same(getitem(x, (tensor([-1, 0]), tensor([1, 1]))), X[[-1, 0], [1, 1]], T=4)
    expected = X.copy()
    expected[-1] = 0
    same(setitem(x, -1, 0), expected, T=4)
    with pytest.raises(IndexError, match="index 2 may be out of range for dimension 0 of size T"):
        getitem(x, 2)


# ---- gather and scatter along a dimension --------------------------------------------------------
def test_gather():
    picks = np.random.default_rng(0).integers(0, 5, (3, 7, 6))
    same(s.gather_method(tensor(X), 1, tensor(picks)), np.take_along_axis(X[:3], picks, 1))
    same(s.gather_method(tensor(X), -2, tensor(picks)), np.take_along_axis(X[:3], picks, 1))
    same(s.gather_method(tensor(np.float32(5)), 0, tensor(0)), np.float32(5))
    with pytest.raises(ValueError, match="outside dimension 1"):
        s.gather_method(tensor(X), 1, tensor(np.zeros((5, 5, 6), np.int64)))
    with pytest.raises(TypeError, match="indices are float32"):
        s.gather_method(tensor(X), 1, tensor(X))
    with pytest.raises(IndexError):
        run(s.gather_method(tensor(X), 1, tensor(picks - 1)))


def test_take_along_dim_and_index_select():
    picks = np.array([[[4], [0], [2]]])
    wide = np.broadcast_to(picks, (4, 3, 6))
    same(s.take_along_dim(tensor(X), tensor(picks), 1), np.take_along_axis(X, wide, 1))
    same(s.take_along_dim(tensor(X), tensor([7, 3])), X.ravel()[[7, 3]])
    same(s.index_select(tensor(X), -1, tensor([5, 0, 0])), X[..., [5, 0, 0]])
    same(s.index_select(tensor(X), 0, tensor(2)), X[[2]])
    with pytest.raises(ValueError, match="the index is 1-d"):
        s.index_select(tensor(X), 0, tensor([[1]]))
    with pytest.raises(ValueError, match="as many dimensions"):
        s.take_along_dim(tensor(X), tensor([1]), 1)


def test_scatter():
    base = np.zeros((3, 5), np.float32)
    where = np.array([[0, 1, 2, 0], [2, 2, 0, 1]])
    values = np.arange(10, dtype=np.float32).reshape(2, 5) + 1
    expected, added = base.copy(), base.copy()
    for i in range(2):
        for j in range(4):
            expected[where[i, j], j] = values[i, j]
            added[where[i, j], j] += values[i, j]
    same(s.scatter_method(tensor(base), 0, tensor(where), tensor(values)), expected)
    same(s.scatter_add(tensor(base), 0, tensor(where), tensor(values)), added)
    ones = base.copy()
    for i in range(2):
        ones[where[i], range(4)] = 1
    same(s.scatter_method(tensor(base), 0, tensor(where), 1), ones)
    same(s.scatter_method(tensor(base), 0, tensor(where), value=1.0), ones)
    doubled = s.scatter_method(tensor(ones), 0, tensor(where[:1]), 3.0, reduce="multiply")
    assert run(doubled)[0, 0] == 3
    with pytest.raises(TypeError, match="src is float64"):
        s.scatter_add(tensor(base), 0, tensor(where), tensor(values.astype(np.float64)))
    with pytest.raises(ValueError, match="larger than a tensor"):
        s.scatter_add(tensor(base), 0, tensor(where), tensor(values[:1]))
    with pytest.raises(TypeError, match="either src or value"):
        s.scatter_method(tensor(base), 0, tensor(where))
    with pytest.raises(ValueError, match="'add' or 'multiply'"):
        s.scatter_method(tensor(base), 0, tensor(where), 1.0, reduce="mean")


def test_scatter_add_of_half_is_carried_in_float32():
    total = s.scatter_add(
        tensor([0.0], bfloat16), 0, tensor(np.zeros(300, np.int64)), tensor(np.ones(300), bfloat16)
    )
    assert run(total)[0] == 300


def test_a_node_stays_what_it_was():
    x = tensor(X)
    assert getitem(x, ...) is x
    assert getitem(x, (ALL, ALL)) is x
    assert isinstance(setitem(x, ..., 0), Node)
    assert setitem(x, ..., 0).dtype is float32
