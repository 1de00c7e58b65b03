"""Movement against NumPy, and what folds at construction."""

import numpy as np
import pytest
from arrays import run, same, tensor

from treadle.graph import build as b
from treadle.graph import movement as m
from treadle.ir import index, ops
from treadle.ir.dtype import bool_, float32, int64
from treadle.ir.node import toposort

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
E = np.zeros((0, 3), np.float32)


# ---- shape ---------------------------------------------------------------------------------------
@pytest.mark.parametrize("shape", [(24,), (4, 6), (-1,), (2, -1, 2), (1, 24, 1), (3, 2, 4)])
def test_reshape(shape):
    same(m.reshape_method(tensor(X), *shape), X.reshape(shape))
    same(m.reshape_method(tensor(X), list(shape)), X.reshape(shape))


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((5, 5), r"\(2, 3, 4\) does not have the elements of \(5, 5\)"),
        ((-1, 5), "does not divide into"),
        ((-1, -1), "only one size may be -1"),
        ((-2, -12), "negative size"),
    ],
)
def test_reshapes_that_cannot_be(shape, message):
    with pytest.raises(ValueError, match=message):
        m.reshape_method(tensor(X), *shape)


def test_reshape_of_nothing():
    same(m.reshape_method(tensor(E), 3, -1), E.reshape(3, 0))
    with pytest.raises(ValueError, match="could be any size"):
        m.reshape_method(tensor(E), 0, -1)
    same(m.reshape_method(tensor(np.float32(2)), 1, 1), np.array([[2]], np.float32))
    with pytest.raises(TypeError, match=r"a size is an int or a Variable, not 2\.5"):
        m.reshape_method(tensor(E), 2.5)


def test_flatten_and_unflatten():
    same(m.flatten(tensor(X)), X.ravel())
    same(m.flatten(tensor(X), 1), X.reshape(2, 12))
    same(m.flatten(tensor(X), 0, 1), X.reshape(6, 4))
    same(m.flatten(tensor(np.float32(1))), np.ones(1, np.float32))
    same(m.unflatten(tensor(X), -1, (2, -1)), X.reshape(2, 3, 2, 2))
    with pytest.raises(ValueError, match="comes after"):
        m.flatten(tensor(X), 2, 1)
    with pytest.raises(ValueError, match=r"size 4 does not split into \(3, 2\)"):
        m.unflatten(tensor(X), 2, (3, 2))


def test_permute_and_transpose():
    same(m.permute_method(tensor(X), 2, 0, -2), X.transpose(2, 0, 1))
    same(m.transpose(tensor(X), 0, -1), X.swapaxes(0, 2))
    same(m.movedim(tensor(X), 0, -1), np.moveaxis(X, 0, -1))
    same(m.movedim(tensor(X), (0, 1), (2, 0)), np.moveaxis(X, (0, 1), (2, 0)))
    same(m.reversed_dims(tensor(X)), X.T)
    same(m.matrix_transpose(tensor(X)), X.swapaxes(1, 2))
    same(m.transpose(tensor(np.float32(1)), 0, -1), np.float32(1))
    with pytest.raises(ValueError, match="does not name each of 3 dimensions once"):
        m.permute_method(tensor(X), 0, 0, 1)
    with pytest.raises(ValueError, match="mT needs two dimensions"):
        m.matrix_transpose(tensor([1.0]))


def test_squeeze_unsqueeze_expand():
    x = X.reshape(1, 6, 1, 4)
    same(m.squeeze(tensor(x)), x.squeeze())
    same(m.squeeze(tensor(x), 2), x.squeeze(2))
    same(m.squeeze(tensor(x), (0, -2, 1)), x.squeeze((0, 2)))
    same(m.unsqueeze(tensor(X), -1), X[..., None])
    same(m.unsqueeze(tensor(X), 1), X[:, None])
    same(m.expand_method(tensor(x), 5, -1, 2, -1), np.broadcast_to(x, (5, 6, 2, 4)))
    same(m.expand_as(tensor(X[:, :1]), tensor(X)), np.broadcast_to(X[:, :1], X.shape))
    same(m.expand_method(tensor(np.float32(1)), 2, 0), np.zeros((2, 0), np.float32))
    with pytest.raises(IndexError):
        m.unsqueeze(tensor(X), 4)
    for shape in ((2, 3, 5), (3, 4), (-1, 2, 3, 4)):
        with pytest.raises(ValueError, match=r"shape \(2, 3, 4\) does not fit"):
            m.expand_method(tensor(X), *shape)


# ---- order ---------------------------------------------------------------------------------------
def test_flip_roll_repeat_tile():
    same(m.flip_method(tensor(X), 0, -1), np.flip(X, (0, 2)))
    same(m.flip_method(tensor(X), [1]), np.flip(X, 1))
    same(m.flip_method(tensor(X)), np.flip(X))
    same(m.roll(tensor(X), 5), np.roll(X, 5))
    same(m.roll(tensor(X), -1, 2), np.roll(X, -1, 2))
    same(m.roll(tensor(X), (1, 7), (0, 1)), np.roll(X, (1, 7), (0, 1)))
    same(m.roll(tensor(E), 1, 0), E)
    same(m.repeat(tensor(X), 2, 1, 1, 3), np.tile(X, (2, 1, 1, 3)))
    same(m.repeat(tensor(X), (1, 0, 2)), np.tile(X, (1, 0, 2)))
    same(m.tile(tensor(X), 2), np.tile(X, 2))
    with pytest.raises(ValueError, match="give one for each"):
        m.repeat(tensor(X), 2)


# ---- join and split ------------------------------------------------------------------------------
@pytest.mark.parametrize("count", [1, 2, 3, 8, 9, 20])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_cat(count, axis):
    parts = [X + n if n % 2 else -X for n in range(count)]
    same(m.cat([tensor(p) for p in parts], dim=axis), np.concatenate(parts, axis))


def test_cat_and_stack_as_people_write_them():
    x, y = tensor(X), tensor(X + 1)
    wanted = np.concatenate([X, X + 1], 1)
    same(m.cat([x, y], 1), wanted)
    same(m.cat(x, y, dim=1), wanted)
    same(m.cat((x, y), dim=-2), wanted)
    same(m.stack([x, y], dim=-1), np.stack([X, X + 1], -1))
    same(m.stack(x, y), np.stack([X, X + 1]))
    assert m.cat(tensor([1]), tensor([1.0], float32)).dtype is float32
    assert m.cat(tensor([True]), tensor([3])).dtype is int64
    same(m.cat([tensor([-0.0]), tensor([-0.0])]), np.array([-0.0, -0.0]))
    same(m.cat([tensor(E), tensor(X[0, :, :3])]), X[0, :, :3])
    same(m.cat([tensor(E), tensor(E)]), E)


def test_cat_and_stack_errors():
    with pytest.raises(ValueError, match=r"\(2, 3, 4\) and \(3, 4\) differ in more than"):
        m.cat([tensor(X), tensor(X[0])])
    with pytest.raises(ValueError, match="0-d tensors cannot be joined; use stack"):
        m.cat([tensor(1.0), tensor(2.0)])
    with pytest.raises(ValueError, match="at least one tensor"):
        m.cat([])
    with pytest.raises(ValueError, match=r"stack: the shapes \(2, 3, 4\) and \(3, 4\)"):
        m.stack([tensor(X), tensor(X[0])])
    with pytest.raises(TypeError, match="takes tensors"):
        m.cat([tensor(X), 1])


def test_many_parts_are_stored_and_few_are_chosen():
    few = toposort(m.cat([tensor([1.0]) for _ in range(8)]))
    many = toposort(m.cat([tensor([1.0]) for _ in range(9)]))
    assert not [n for n in few if n.op is ops.UPDATE]
    assert len([n for n in many if n.op is ops.UPDATE]) == 9


def test_split_chunk_unbind():
    for got, wanted in [
        (m.split(tensor(X), 2, 1), [X[:, :2], X[:, 2:]]),
        (m.split(tensor(X), [1, 0, 3], -1), [X[..., :1], X[..., 1:1], X[..., 1:]]),
        (m.chunk(tensor(X), 3, 2), [X[..., :2], X[..., 2:]]),
        (m.unbind(tensor(X), 1), [X[:, n] for n in range(3)]),
    ]:
        assert len(got) == len(wanted)
        for part, expected in zip(got, wanted, strict=True):
            same(part, expected)
    assert [p.shape for p in m.split(tensor(E), 2)] == [(0, 3)]
    with pytest.raises(ValueError, match=r"\[1, 1\] do not add up to 3"):
        m.split(tensor(X), [1, 1], 1)
    with pytest.raises(ValueError, match="chunks must be 1 or more"):
        m.chunk(tensor(X), 0)
    with pytest.raises(ValueError, match="0-d tensor has no dimension"):
        m.unbind(tensor(1.0))
    with pytest.raises(ValueError, match="has the size T"):
        m.unbind(tensor(X, shape=(index.variable("T", 1, 2), 3, 4)))


# ---- padding -------------------------------------------------------------------------------------
def test_pad():
    same(m.pad_method(tensor(X), [1, 2]), np.pad(X, ((0, 0), (0, 0), (1, 2))))
    same(
        m.pad_method(tensor(X), (1, 2, 3, 0), value=-1.5),
        np.pad(X, ((0, 0), (3, 0), (1, 2)), constant_values=-1.5),
    )
    same(m.pad_method(tensor(X), ((1, 0), (0, 0), (0, 1))), np.pad(X, ((1, 0), (0, 0), (0, 1))))
    same(m.pad_method(tensor(X), [-1, 1]), np.pad(X[..., 1:], ((0, 0), (0, 0), (0, 1))))
    same(m.pad_method(tensor(X), []), X)
    assert m.pad_method(tensor([True]), [1, 1], value=True).dtype is bool_


@pytest.mark.parametrize(
    ("mode", "name"), [("reflect",) * 2, ("replicate", "edge"), ("circular", "wrap")]
)
def test_pad_modes(mode, name):
    wanted = np.pad(X, ((0, 0), (2, 1), (3, 2)), name)
    same(m.pad_method(tensor(X), [3, 2, 2, 1], mode), wanted)


def test_pad_errors():
    with pytest.raises(ValueError, match="mode is 'constant'"):
        m.pad_method(tensor(X), [1, 1], "mirror")
    with pytest.raises(ValueError, match="3 amounts for a tensor of 3 dimensions"):
        m.pad_method(tensor(X), [1, 1, 1])
    with pytest.raises(ValueError, match="2 pairs for a tensor of 3"):
        m.pad_method(tensor(X), ((1, 1), (1, 1)))
    with pytest.raises(ValueError, match="'reflect' adds less than the size 4"):
        m.pad_method(tensor(X), [4, 0], "reflect")
    with pytest.raises(ValueError, match="takes more than dimension 2"):
        m.pad_method(tensor(X), [-3, -3])
    with pytest.raises(OverflowError):
        m.pad_method(tensor([1], dtype=None), [1, 1], value=2**70)


def test_shrink():
    same(m.shrink_method(tensor(X), (None, (1, 3), (0, 2))), X[:, 1:3, :2])
    with pytest.raises(ValueError, match=r"\(2, 5\) is not a part of a dimension of size 4"):
        b.shrink(tensor(X), ((0, 2), (0, 3), (2, 5)))


# ---- diagonals and triangles ---------------------------------------------------------------------
@pytest.mark.parametrize("offset", [-3, -2, -1, 0, 1, 2, 4])
def test_diagonals_and_triangles(offset):
    x = X[0]
    same(m.diagonal(tensor(x), offset), np.diagonal(x, offset))
    same(m.diagonal(tensor(X), offset, 2, 0), np.diagonal(X, offset, 2, 0))
    same(m.tril(tensor(x), offset), np.tril(x, offset))
    same(m.triu(tensor(X), offset), np.triu(X, offset))


def test_triangle_errors():
    for function in (m.tril, m.triu, m.diagonal):
        with pytest.raises(ValueError, match="needs two dimensions or more"):
            function(tensor([1.0]))


# ---- windows -------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("size", "stride", "dilation"), [(1, 1, 1), (3, 1, 1), (2, 2, 1), (2, 3, 4)]
)
def test_window_and_its_adjoint(size, stride, dilation):
    x = np.random.default_rng(1).standard_normal((2, 11, 3))
    windows = (11 - dilation * (size - 1) - 1) // stride + 1
    rows = np.arange(windows)[:, None] * stride + np.arange(size)[None] * dilation
    got = b.window(tensor(x), 1, size, stride, dilation)
    same(got, x[:, rows])
    g = np.random.default_rng(2).standard_normal((2, windows, size, 3))
    back = run(b.reduce("add", b.unwindow(tensor(g), 1, 11, stride, dilation), 2))
    np.testing.assert_allclose((x * back).sum(), (run(got) * g).sum())
    pair = np.random.default_rng(3).standard_normal((2, 11, size, 3))
    there = run(b.window_pair(tensor(pair), 1, windows, stride, dilation))
    again = run(b.unwindow(tensor(g), 1, 11, stride, dilation))
    np.testing.assert_allclose((pair * again).sum(), (there * g).sum())


def test_a_window_that_does_not_fit():
    with pytest.raises(ValueError, match="size 5, stride 1, dilation 1 does not fit"):
        b.window(tensor(X), 2, 5)


# ---- folding -------------------------------------------------------------------------------------
def test_movement_folds_at_construction():
    x = tensor(X)
    assert b.reshape(b.reshape(x, (24,)), (2, 3, 4)) is x
    assert b.permute(b.permute(x, (2, 0, 1)), (1, 2, 0)) is x
    assert b.flip(b.flip(x, (0, 1)), (0, 1)) is x
    assert b.expand(x, (2, -1, 4)) is x
    assert b.shrink(x, ((0, 2), (0, 3), (0, 4))) is x
    assert b.pad(x, ((0, 0),) * 3) is x
    assert b.cast(x, float32) is x
    assert b.reduce("add", x, ()) is x
    twice = b.pad(b.pad(x, ((1, 0), (0, 0), (0, 0))), ((0, 2), (0, 0), (0, 0)))
    assert twice.src[0] is x and twice.arg[0] == (1, 2)
    part = b.shrink(b.shrink(x, ((0, 2), (1, 3), (0, 4))), ((1, 2), (0, 1), (0, 4)))
    assert part.src[0] is x and part.arg == ((1, 2), (1, 2), (0, 4))
    assert b.expand(b.expand(tensor(X[:1]), (2, 3, 4)), (2, 3, 4)).src[0].op is ops.BUFFER


def test_symbolic_sizes():
    size = index.variable("T", 1, 10)
    x = tensor(X, shape=(size, 3, 4))
    same(m.flatten(x), X.ravel(), T=2)
    same(m.reshape_method(x, -1, 12), X.reshape(2, 12), T=2)
    same(m.cat([x, x]), np.concatenate([X, X]), T=2)
    same(m.pad_method(x, ((1, 2), (0, 0), (0, 0))), np.pad(X, ((1, 2), (0, 0), (0, 0))), T=2)
    same(b.expand(tensor(X[:1]), (size, 3, 4)), np.broadcast_to(X[:1], X.shape), T=2)
    same(m.tril(m.permute_method(x, 1, 0, 2)), np.tril(X.transpose(1, 0, 2)), T=2)
    with pytest.raises(ValueError, match="T"):
        b.alu(ops.ADD, x, tensor(X))
