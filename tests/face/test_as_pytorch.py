"""What once missed in tools/parity.py, each with the value that is right."""

import numpy as np
import pytest

import treadle
from treadle import Tensor

ROW = [[1.0, 2.0, 3.0, 4.0, 5.0]]


@pytest.mark.parametrize(
    "mode, amounts, expected",
    [
        ("replicate", (-4, 2), [5, 5, 5]),
        ("replicate", (-6, 3), [5, 5]),
        ("replicate", (1, -5), [1]),
        ("reflect", (-2, 1), [3, 4, 5, 4]),
        ("reflect", (-5, 2), [4, 3]),
        ("circular", (-2, 1), [3, 4, 5, 3]),
        ("constant", (-5, 2), [0, 0]),
    ],
)
def test_padding_after_removing(mode, amounts, expected):
    assert Tensor(ROW).pad(amounts, mode=mode).tolist() == [expected]


@pytest.mark.parametrize(
    "bounds, dtype, expected",
    [
        ((0.5, 2.7), "int32", [0, 1, 2]),
        ((0.5, 2.7), "int64", [0, 1]),
        ((-1.5, 3, 1.5), "int16", [-1, 0, 1]),
        ((0.5, 3, 0.9), "int32", [0, 0, 0]),
    ],
)
def test_integers_between_floats(bounds, dtype, expected):
    assert Tensor.arange(*bounds, dtype=dtype).tolist() == expected


def test_a_step_that_truncates_to_nothing():
    with pytest.raises(ValueError, match="arange: of int64 step is truncated"):
        Tensor.arange(0.0, 1.0, 0.5, dtype="int64")


@pytest.mark.parametrize("ids", [[0, 3], [-1, 0]])
def test_class_ids_out_of_range(ids):
    with pytest.raises(
        IndexError, match=r"one_hot: index -?\d is out of range for an axis of size 3"
    ):
        Tensor(ids).one_hot(3).realize()


def test_areas_over_bytes():
    y, x = Tensor([[200, 100]], dtype="uint8"), Tensor([[9, 3]], dtype="uint8")
    assert y.trapezoid(x).tolist() == [-900.0]
    assert y.cumulative_trapezoid().tolist() == [[150.0]]


def test_the_sum_of_singular_values():
    x = np.random.default_rng(1).standard_normal((2, 3, 4))
    found = Tensor(x).norm("nuc", dim=(1, 2))
    np.testing.assert_allclose(found.numpy(), np.linalg.svd(x)[1].sum(-1))
    assert Tensor([[3.0, 0.0], [0.0, 4.0]]).norm("nuc").item() == pytest.approx(7.0)


def test_the_exponential_of_halves():
    x = Tensor([[0.0, 1.0], [0.0, 0.0]], dtype="bfloat16")
    found = treadle.linalg.matrix_exp(x)
    assert (found.dtype.name, found.tolist()) == ("bfloat16", [[1.0, 1.0], [0.0, 1.0]])


def test_the_slope_of_the_next_number():
    x, y = Tensor([1.0, -0.0], requires_grad=True), Tensor([2.0, -1.0])
    found = x.nextafter(y)
    expected = np.nextafter(np.float32([1, -0.0]), np.float32([2, -1]))
    np.testing.assert_array_equal(found.numpy(), expected)
    assert found.sum().gradient(x)[0].tolist() == [1.0, 1.0]


def test_one_number_becomes_a_sum():
    assert Tensor(3, dtype="int32").sum_to_size(()).dtype.name == "int64"
