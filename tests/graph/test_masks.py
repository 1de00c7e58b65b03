"""Bool masks in `x[...]`, and 2,000 random index expressions, read and written, against NumPy."""

import numpy as np
import pytest
from arrays import run, same, tensor

import treadle
from treadle import JitError, Tensor, jit
from treadle.graph import masks
from treadle.graph.indexing import getitem, setitem
from treadle.ir.node import Node

RNG = np.random.default_rng(5)
ALL = slice(None)


def read(what: str, number: Node, *others: Node):
    """What the face gives to a function that reads a number."""
    return int(run(number)), others


def as_nodes(key):
    key = key if isinstance(key, tuple) else (key,)
    return tuple([tensor(k) if isinstance(k, np.ndarray) else k for k in key])


# ---- random expressions --------------------------------------------------------------------------
def random_slice(size: int) -> slice:
    bounds = [None if RNG.random() < 0.3 else int(RNG.integers(-size - 2, size + 3)) for _ in "ab"]
    return slice(*bounds, [None, 1, 2, -1, -2, 3, -3][RNG.integers(7)])


def random_items(shape: tuple[int, ...], common: tuple[int, ...]):
    """One item after the other, until the dimensions of a shape are used up or it stops early."""
    axis = 0
    while axis < len(shape):
        size = shape[axis]
        match RNG.choice(["int", "slice", "none", "tensor", "mask", "bool", "stop"],
                         p=[0.15, 0.3, 0.1, 0.2, 0.13, 0.02, 0.1]):  # fmt: skip
            case "int" if size:
                yield int(RNG.integers(-size, size))
                axis += 1
            case "slice":
                yield random_slice(size)
                axis += 1
            case "none":
                yield None
            case "tensor" if size:
                dims = common[RNG.integers(len(common) + 1) :]
                stretched = tuple([1 if RNG.random() < 0.2 else n for n in dims])
                yield RNG.integers(-size, size, stretched)
                axis += 1
            case "mask":
                covered = int(RNG.integers(1, len(shape) - axis + 1))
                yield RNG.random(shape[axis : axis + covered]) < RNG.random()
                axis += covered
            case "bool":
                yield bool(RNG.integers(2))
            case "stop":
                return


def random_index(shape: tuple[int, ...]):
    common = tuple([int(n) for n in RNG.integers(1, 4, RNG.integers(0, 3))])
    items = list(random_items(shape, common))
    if RNG.random() < 0.3:
        items.insert(len(items) if RNG.random() < 0.8 else RNG.integers(len(items) + 1), ...)
    return items[0] if len(items) == 1 and RNG.random() < 0.5 else tuple(items)


SHAPES = [(4, 5, 6), (7,), (3, 4), (2, 3, 2, 3), (5, 1, 3), (4, 0, 2), ()]


def test_2000_random_index_expressions():
    empty = failed = 0
    for number in range(2000):
        shape = SHAPES[number % len(SHAPES)]
        x = np.arange(1, 1 + np.prod(shape, dtype=int), dtype=np.float32).reshape(shape)
        key = random_index(shape)
        try:
            expected = x[key]
        except (IndexError, ValueError):  # masks and tensors that do not broadcast
            failed += 1
            with pytest.raises((IndexError, ValueError)):
                run(getitem(tensor(x), as_nodes(key), read))
            continue
        empty += expected.size == 0
        same(getitem(tensor(x), as_nodes(key), read), expected)
        value = -1 - RNG.integers(0, 99, expected.shape).astype(np.float32)
        if RNG.random() < 0.3:
            value = value[(0,) * value.ndim] if value.size else np.float32(-1)
        elif RNG.random() < 0.3 and value.ndim:
            value = value[..., :1]
        written = x.copy()
        written[key] = value
        same(setitem(tensor(x), as_nodes(key), tensor(value), read), written)
    assert empty < 900
    assert failed < 300


# ---- masks ---------------------------------------------------------------------------------------
X = np.arange(24, dtype=np.float32).reshape(4, 6)
M = X % 5 < 2


def test_writing_with_a_mask_reads_nothing():
    rows = np.array([True, False, True, True])
    for key, value in [
        (M, np.arange(M.sum(), dtype=np.float32)),
        (rows, np.arange(18, dtype=np.float32).reshape(3, 6)),
        (rows, np.arange(3, dtype=np.float32)[:, None]),
        ((rows, 1), np.float32([7, 8, 9])),
        ((slice(None, None, -1), M[0]), np.float32(3)),
        ((np.array(True), 2), np.float32(1)),
    ]:
        expected = X.copy()
        expected[key] = value
        same(setitem(tensor(X), as_nodes(key), tensor(value)), expected)


@pytest.mark.parametrize("count", [0, 2, M.sum() - 1, M.sum() + 1])
def test_a_value_of_another_length_than_the_mask_is_an_error(count):
    with pytest.raises(IndexError):
        run(setitem(tensor(X), tensor(M), tensor(np.zeros(count, np.float32))))


def test_messages():
    with pytest.raises(IndexError, match=r"a mask of shape \(6,\) does not match .* \(4, 6\)"):
        getitem(tensor(X), tensor(M[0]), read)
    with pytest.raises(TypeError, match="masked_select: the mask must be bool"):
        Tensor(X).masked_select(Tensor(X))
    with pytest.raises(ValueError, match="masked_select: shapes"):
        Tensor(X).masked_select(Tensor([True, False]))
    with pytest.raises(ValueError, match="negative size"):
        Tensor(X).masked_select(Tensor(M), size=-1)


def test_inside_jit():
    @jit
    def reading(x):
        return x[x > 3]

    with pytest.raises(JitError, match=r"masked_select\(mask, size=n\)"):
        reading(Tensor(X))

    @jit
    def writing(x):
        x = x.clone()
        x[x > 3] = -1
        return x, x.masked_select(x < 2, size=5), (x < 0).nonzero(size=2)

    for shift in (0, 1):
        x = X + shift
        written, few, first = writing(Tensor(x))
        np.testing.assert_array_equal(written.numpy(), np.where(x > 3, -1, x))
        w = written.numpy()
        np.testing.assert_array_equal(few.numpy(), w[w < 2][:5])
        np.testing.assert_array_equal(first.numpy(), np.argwhere(w < 0)[:2])


def test_sizes_that_are_given():
    mask = np.array([False, True, True])
    x = Tensor([1, 2, 3])
    assert x.masked_select(Tensor(mask), size=4, fill_value=-1).tolist() == [2, 3, -1, -1]
    assert x.masked_select(Tensor(mask), size=1).tolist() == [2]
    assert x.masked_select(Tensor(mask), size=0).tolist() == []
    assert Tensor(mask).nonzero(size=3, fill_value=9).tolist() == [[1], [2], [9]]
    assert Tensor(np.zeros(0, bool)).nonzero(size=2).tolist() == [[0], [0]]
    assert Tensor(np.zeros((0, 2))).masked_select(Tensor(True), size=2, fill_value=5).tolist() == [
        5, 5]  # fmt: skip


@pytest.mark.parametrize("shape", [(3, 4), (5,), (0, 2), (2, 3, 2), ()])
def test_nonzero(shape):
    x = RNG.integers(0, 2, shape)
    assert Tensor(x).nonzero().tolist() == np.argwhere(x).tolist()
    assert Tensor(x).argwhere().shape == np.argwhere(x).shape
    columns = Tensor(x).nonzero(as_tuple=True)
    for ours, theirs in zip(columns, np.nonzero(np.atleast_1d(x)), strict=True):
        assert ours.tolist() == theirs.tolist()


def test_where_of_a_condition_alone():
    (found,) = treadle.where(Tensor([0, 3, 0, 4]))
    assert found.tolist() == [1, 3]
    with pytest.raises(TypeError, match="both cases"):
        treadle.where(Tensor([True]), 1)


def test_gradients_reach_what_was_selected():
    x = Tensor(X, requires_grad=True)
    mask = Tensor(M)
    (x[mask] * Tensor(np.arange(M.sum(), dtype=np.float32))).sum().backward()
    expected = np.zeros_like(X)
    expected[M] = np.arange(M.sum())
    np.testing.assert_array_equal(x.grad.numpy(), expected)
    value = Tensor(np.ones(M.sum(), np.float32), requires_grad=True)
    y = Tensor(X, requires_grad=True)
    z = y * 1
    z[mask] = value
    (z * Tensor(X)).sum().backward()
    np.testing.assert_array_equal(value.grad.numpy(), X[M])
    np.testing.assert_array_equal(y.grad.numpy(), np.where(M, 0, X))


def test_masked_scatter():
    same(
        masks.masked_scatter(tensor([1, 2, 3]), tensor([True, False, True]), tensor([7, 8, 9])),
        [7, 2, 8],
    )
    with pytest.raises(IndexError):
        run(masks.masked_scatter(tensor([1, 2]), tensor([True, True]), tensor([7])))


def test_on_the_default_device():
    x = np.arange(1000.0, dtype=np.float32)
    t = Tensor(x)
    np.testing.assert_array_equal(t[t % 7 < 2].numpy(), x[x % 7 < 2])
    t[t > 500] = Tensor(-x[x > 500])
    np.testing.assert_array_equal(t.numpy(), np.where(x > 500, -x, x))
