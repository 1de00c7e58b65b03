"""What PyTorch's users type and once did not get: arguments, names, and errors in their place."""

import numpy as np
import pytest

import treadle
from treadle import Tensor, nn
from treadle.nn import functional as F

EMPTY = Tensor.zeros(0, 3)
X = Tensor.arange(24.0).reshape(2, 3, 4)


@pytest.mark.parametrize(
    "call",
    [
        lambda n: X.topk(n(1)),
        lambda n: X.sum((n(0), n(1))),
        lambda n: X.std(n(1), correction=n(1)),
        lambda n: X.permute(n(2), n(0), n(1)),
        lambda n: X.reshape(n(6), n(-1)),
        lambda n: X.chunk(n(2), n(1)),
        lambda n: X.roll(n(1), dims=n(0)),
        lambda n: X.stack([X, X], n(1)),
        lambda n: X.slice_scatter(X[:1], n(0), n(1), n(2), n(1)),
        lambda n: X.tensordot(X, n(3)),
        lambda n: X.norm(n(2), dim=n(1)),
        lambda n: X.histc(n(4), n(0), n(9)),
        lambda n: Tensor.eye(n(3)).matrix_power(n(2)),
        lambda n: treadle.fft.fft(X, n(4), n(1)),
        lambda n: treadle.zeros((n(2), 3)),
        lambda n: treadle.arange(n(1), n(9), n(2)),
        lambda n: F.max_pool2d(X, n(2), stride=(n(1), n(2))),
        lambda n: F.adaptive_avg_pool2d(X, (n(2), None)),
        lambda n: F.interpolate(X[None], size=n(5)),
        lambda n: F.pad(X, (n(1), n(2))),
        lambda n: F.one_hot(Tensor([0, 2]), n(3)),
        lambda n: nn.GroupNorm(n(3), n(3))(X),
        lambda n: nn.ZeroPad2d(n(1))(X),
        lambda n: nn.Conv1d(n(3), n(6), (n(3),), padding=n(1), groups=n(3))(X) * 0,
        lambda n: treadle.vmap(lambda x: x.sum(n(0)), n(1), n(0))(X),
        lambda n: treadle.grad(lambda x, y: (x * y).sum(), n(1))(X, X),
        lambda n: treadle.jit(lambda x: x.topk(n(2))[0])(X),
    ],
)
def test_integers_of_numpy_are_sizes_axes_and_counts(call):
    own, numpys = call(int), call(np.int64)
    for a, b in zip(*(r if isinstance(r, tuple) else (r,) for r in (own, numpys)), strict=True):
        assert a.dtype is b.dtype and a.shape == b.shape and a.tolist() == b.tolist()


def test_a_number_of_numpy_is_a_tensor_where_there_can_be_one():
    assert (Tensor([1], dtype="int8") + np.int64(1)).dtype is treadle.int64
    assert Tensor([True]).where(np.float64(2.0), np.int8(1)).dtype is treadle.float32
    assert F.dropout(X, np.float32(0.0)).tolist() == X.tolist()


def test_an_integer_tensor_is_read_as_a_size_axis_or_count():
    assert X.topk(Tensor([1, 2]).sum()).values.shape == (2, 3, 3)
    with pytest.raises(TypeError, match=r"k must be an int, not a tensor of float32 \(\)"):
        X.topk(Tensor(1.0))


@pytest.mark.parametrize("name", ["sum", "mean", "std", "max", "any", "squeeze", "count_nonzero"])
def test_a_dimension_that_a_number_does_not_have(name):
    assert getattr(Tensor(3.0), name)(-1).shape == ()
    with pytest.raises(IndexError, match=f"{name}: dim=1 is out of range for a 0-d tensor"):
        getattr(Tensor(3.0), name)(1)


@pytest.mark.parametrize("shape", [(-2, 4), (2, -3, 1), (-2,)])
def test_a_size_below_nothing(shape):
    with pytest.raises(ValueError, match=r"expand: the shape .* has a negative size"):
        Tensor(3.0).expand(shape)


@pytest.mark.parametrize(
    "call",
    [
        lambda: EMPTY[[0]],
        lambda: EMPTY.index_select(0, Tensor([0])),
        lambda: EMPTY.take(Tensor([-1])),
        lambda: EMPTY.scatter(0, Tensor([[0]]), 1.0),
        lambda: EMPTY.gather(0, Tensor([[0]])),
        lambda: EMPTY.narrow(0, Tensor(0), 1),
        lambda: Tensor([0]).embedding(EMPTY),
    ],
)
def test_an_index_into_nothing(call):
    with pytest.raises(IndexError, match=r"every index is out of range: dimension 0 .* no element"):
        call()


def test_no_index_into_nothing():
    none = Tensor([], dtype="int64")
    assert EMPTY[none].shape == EMPTY.index_select(0, none).shape == (0, 3)


def test_bytes_in_another_dtype():
    x = Tensor([1.0, -2.0])
    assert (
        x.view(treadle.int32).tolist() == x.view(dtype="int32").tolist() == [1065353216, -(2**30)]
    )
    assert x.view(2, 1).shape == x.view(size=(2, 1)).shape == (2, 1)


def test_truth_in_place():
    x = Tensor([1.0, 3.0, 0.0])
    assert x.lt_(2) is x and x.dtype is treadle.float32
    assert x.tolist() == [1.0, 0.0, 1.0]
    assert x.logical_not_().tolist() == [0.0, 1.0, 0.0]


def test_numbers_of_the_same_kind_in_place():
    x = Tensor([1, 2], dtype="int32")
    x += Tensor([10, 20])
    x[0] += Tensor(5)
    assert x.dtype is treadle.int32 and x.tolist() == [16, 22]
    y = Tensor([1.0, 2.0])
    y *= Tensor([2.0, 3.0], dtype="float64")
    assert y.dtype is treadle.float32 and y.tolist() == [2.0, 6.0]
    y += x
    assert y.tolist() == [18.0, 28.0]
    with pytest.raises(TypeError, match="add_ gives float32, which a tensor of int32"):
        x += y
    with pytest.raises(TypeError, match="add_ gives int64, which a tensor of bool"):
        flags = x > 16
        flags += Tensor([1, 2])


def test_more_that_works_in_place():
    x = Tensor([-4.0, 3.0])
    assert x.sign_() is x and x.tolist() == [-1.0, 1.0]
    x.index_put_((Tensor([0, 0]),), Tensor([5.0, 6.0]), accumulate=True)
    assert x.tolist() == [10.0, 1.0]


def test_other_words_for_arguments():
    x = Tensor([[1, 2], [3, 4]])
    assert x.swapaxes(axis0=0, axis1=1).tolist() == [[1, 3], [2, 4]]
    assert x.tile(dims=(1, 2)).tolist() == [[1, 2, 1, 2], [3, 4, 3, 4]]
    assert x.where(condition=x > 2, other=0).tolist() == [[0, 0], [3, 4]]
    assert x.gather(1, Tensor([[1], [0]]), sparse_grad=False).tolist() == [[2], [3]]
    with pytest.raises(NotImplementedError, match="gather: sparse_grad=True"):
        x.gather(1, Tensor([[1]]), sparse_grad=True)


def test_indices_from_the_end():
    assert Tensor([1, 2, 3]).index_fill(0, Tensor([-1]), 9).tolist() == [1, 2, 9]
    with pytest.raises(IndexError, match="index_fill: index -4 is out of range"):
        Tensor([1, 2, 3]).index_fill(0, Tensor([-4]), 9).realize()


def test_an_index_with_more_dimensions_than_a_number():
    with pytest.raises(ValueError, match="scatter: the index of shape"):
        Tensor(3.0).scatter(0, Tensor([[0]]), 1.0)


def test_a_number_moved():
    assert Tensor(3.0).movedim(0, -1).item() == 3.0


def test_the_power_of_nothing_has_a_slope():
    x = Tensor([0.0, 2.0, float("nan")], requires_grad=True)
    y = x**0
    y.sum().backward()
    np.testing.assert_array_equal(y.numpy(), [1, 1, 1])
    np.testing.assert_array_equal(x.grad.numpy(), [0, 0, 0])


def test_where_gradients_are_left():
    a, b = Tensor([1.0], requires_grad=True), Tensor([2.0], requires_grad=True)
    product = (a * b).sum()
    product.backward(retain_graph=True, inputs=[a])
    assert (a.grad.tolist(), b.grad) == ([2.0], None)
    product.backward(None, True)
    assert (a.grad.tolist(), b.grad.tolist()) == ([4.0], [1.0])
    with pytest.raises(RuntimeError, match="none of inputs= that has requires_grad"):
        product.backward(inputs=Tensor([1.0]))


def test_a_value_that_a_mode_does_not_take():
    assert Tensor([1, 2]).pad((1, 0), value=None).tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="pad: value=2 is for mode='constant', not for 'reflect'"):
        Tensor([1, 2]).pad((1, 0), "reflect", 2)


@pytest.mark.parametrize("name", ["mean", "nanmean"])
def test_a_mean_in_a_dtype_that_cannot_hold_it(name):
    with pytest.raises(TypeError, match=f"{name}: dtype=int32 cannot hold a mean"):
        getattr(Tensor([1.0, 2.0]), name)(dtype=treadle.int32)
    assert getattr(Tensor([1, 2]), name)(dtype=treadle.float64).dtype is treadle.float64


def test_repeats_below_nothing():
    with pytest.raises(ValueError, match="repeat_interleave: a number of repeats is below 0"):
        Tensor([1, 2]).repeat_interleave(Tensor([1, -1]))
    assert Tensor([]).repeat_interleave(Tensor([], dtype="int64")).shape == (0,)


def test_the_size_of_a_dimension_that_is_not_there():
    with pytest.raises(IndexError, match="dim=2 is out of range for a 2-d tensor"):
        Tensor.ones(2, 3).size(2)


def test_in():
    x = Tensor([[1.0, 2.0], [3.0, float("nan")]])
    assert 3.0 in x and 5 not in x and float("nan") not in x and "a" not in x


@pytest.mark.parametrize("name", ["index", "void", "float32x4", "int33"])
def test_what_is_no_dtype(name):
    with pytest.raises(TypeError, match=f"there is no dtype '{name}'; there are bool, int8"):
        Tensor([1.0]).bitcast(name)


@pytest.mark.parametrize("name", ["nll_loss", "cross_entropy"])
def test_what_once_stood_in_the_place_of_an_index(name):
    loss = getattr(treadle.nn.functional, name)
    with pytest.raises(TypeError, match=f"{name}: ignore_index is a class id, not False"):
        loss(Tensor.zeros(2, 3), Tensor([0, 2]), None, False)


def test_arguments_that_change_nothing_here():
    x = Tensor([0.0, 0.0])
    assert x.copy_(Tensor([1, 2]), non_blocking=True).tolist() == [1.0, 2.0]
    assert x.requires_grad_(requires_grad=True).requires_grad


def test_einsum_of_numbered_axes():
    x, y = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4)
    a, b = Tensor(x), Tensor(y)
    assert Tensor.einsum(a, [0, 1], b, [1, 2], [2, 0]).tolist() == (x @ y).T.tolist()
    assert Tensor.einsum(a, [0, 1], b, [1, 2]).tolist() == (x @ y).tolist()
    assert Tensor.einsum(a, [..., 1], [1, ...]).tolist() == x.T.tolist()
    with pytest.raises(TypeError, match="with numbers from 0 to 51, not"):
        Tensor.einsum(a, [0, 52], b, [1, 2])
    with pytest.raises(TypeError, match="write an equation and then its tensors"):
        Tensor.einsum(a, b)
