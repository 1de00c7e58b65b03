"""What users of PyTorch and NumPy expect by habit: in-place forms, norms, powers, mixed lists."""

from __future__ import annotations

import math

import numpy as np
import pytest

import treadle
from treadle import Tensor, nn

INF, NAN = math.inf, math.nan


# ---- in place ------------------------------------------------------------------------------------
def test_forms_that_write_into_a_tensor():
    x = Tensor([1, 2, 3])
    assert x.fill_(2.7) is x
    assert x.tolist() == [2, 2, 2]
    assert x.copy_(Tensor([1.5, -2.5, 3.5])).tolist() == [1, -2, 3]
    assert x.copy_(np.float32(4)).tolist() == [4, 4, 4]
    assert x.fill_(Tensor(7.0)).tolist() == [7, 7, 7]
    assert x.zero_().tolist() == [0, 0, 0]
    assert x.dtype is treadle.int64


def test_a_parameter_is_written_only_without_recording():
    weight = nn.Parameter([1.0, 2.0])
    with pytest.raises(RuntimeError, match="no_grad"):
        weight.zero_()
    with treadle.no_grad():
        weight.zero_()
    assert weight.tolist() == [0, 0]
    assert weight.requires_grad


# ---- lists ---------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("data", "dtype"),
    [
        ([[Tensor(1.0), 2.0], [3.0, Tensor(4.0)]], "float32"),
        ([Tensor(1, dtype="int8"), 2], "int8"),
        ([Tensor(1, dtype="int8"), 2.5], "float32"),
        ([Tensor(1.0, dtype="bfloat16"), 2.5], "bfloat16"),
        ([np.float64(1), 2.0], "float64"),
        ([True, Tensor(2, dtype="int16")], "int16"),
        ([Tensor(1.0, dtype="float16"), Tensor(1.0, dtype="bfloat16")], "float32"),
    ],
)
def test_numbers_are_weak_among_tensors_in_a_list(data, dtype):
    x = Tensor(data)
    assert x.dtype.name == dtype
    items = data if x.ndim == 1 else [item for row in data for item in row]
    assert x.reshape(-1).tolist() == [float(item) for item in items]


def test_numbers_in_a_list_round_once():
    value = 1 + 2**-11 + 2**-30  # just above the middle of two halves; as a float32, the middle
    assert Tensor([value], dtype="float16").item() == float(np.float16(value)) > 1


# ---- powers --------------------------------------------------------------------------------------
SPECIAL = [-INF, -3.0, -0.0, 0.0, 1.0, INF, NAN, 1e20, -1e-20, 1e-40]


@pytest.mark.parametrize("exponent", [0, 0.5, -0.5, 1, 2, 3, -1, -2, 1.5])
def test_an_exponent_may_be_a_number_or_a_tensor(exponent):
    x = Tensor(SPECIAL)
    with np.errstate(all="ignore"):
        expected = np.power(
            np.array(SPECIAL, np.float32), np.full(len(SPECIAL), exponent, np.float32)
        )
    for got in (x**exponent, x ** Tensor(float(exponent))):
        np.testing.assert_allclose(got.numpy(), expected, rtol=1e-6)
        finite = ~np.isnan(expected)
        signs = np.signbit(got.numpy()), np.signbit(expected)
        np.testing.assert_array_equal(signs[0][finite], signs[1][finite])


# ---- norms and their derivatives -----------------------------------------------------------------
@pytest.mark.parametrize("p", [0, 0.5, 1, 2, 3, -1, INF, -INF])
def test_norm_is_numpys(p):
    array = np.array([[3.0, -4.0, 1.0], [1.0, 2.0, -2.0]], np.float32)
    x = Tensor(array)
    np.testing.assert_allclose(x.norm(p, 1).numpy(), np.linalg.norm(array, p, axis=1), rtol=2e-6)
    whole = np.linalg.norm(array.reshape(-1), p)
    np.testing.assert_allclose(x.norm(p).item(), whole, rtol=2e-6)
    assert x.norm(p, dim=0, keepdim=True).shape == (1, 3)


def test_norm_of_other_dtypes_and_of_nothing():
    assert Tensor([3, 4]).norm().item() == 5
    half = Tensor([300.0, 400.0], dtype="float16").norm()  # the squares are too large for a half
    assert (half.item(), half.dtype) == (500, treadle.float16)
    assert Tensor.zeros(0).norm().item() == 0


@pytest.mark.parametrize(
    ("function", "at", "derivative"),
    [
        (lambda x: x.norm(), [0.0, 0.0], [0, 0]),
        (lambda x: x.norm(3), [0.0, 0.0], [0, 0]),
        (lambda x: x.norm(0.5), [0.0, 2.0], [0, 1]),
        (lambda x: x.norm(INF), [2.0, -2.0], [0.5, -0.5]),
        (lambda x: x.std(), [2.0, 2.0], [0, 0]),
        (lambda x: x.std(), [1.0, 3.0], [-(0.5**0.5), 0.5**0.5]),
        (lambda x: (x**0.5).sum(), [0.25, 4.0], [1, 0.25]),
    ],
)
def test_the_derivative_at_a_minimum_is_zero(function, at, derivative):
    found = treadle.grad(function)(Tensor(at)).numpy()
    np.testing.assert_allclose(found, derivative, rtol=1e-6)


# ---- clipping ------------------------------------------------------------------------------------
def parameters_with_gradients() -> list[Tensor]:
    a, b = nn.Parameter([1.0, 1.0]), nn.Parameter([1.0])
    ((a * Tensor([3.0, -4.0])).sum() + (b * 12).sum()).backward()
    return [a, b]


@pytest.mark.parametrize(("p", "norm"), [(2.0, 13.0), (1.0, 19.0), (INF, 12.0)])
def test_gradients_are_clipped_by_their_norm(p, norm):
    a, b = parameters_with_gradients()
    assert nn.utils.clip_grad_norm_([a, b], 1.0, norm_type=p).item() == norm
    np.testing.assert_allclose(a.grad.numpy(), [3 / norm, -4 / norm], rtol=1e-6)
    np.testing.assert_allclose(b.grad.numpy(), [12 / norm], rtol=1e-6)


def test_a_small_norm_leaves_gradients_as_they_are():
    a, b = parameters_with_gradients()
    nn.utils.clip_grad_norm([a, b, nn.Parameter([1.0])], 20.0)
    assert (a.grad.tolist(), b.grad.tolist()) == ([3, -4], [12])
    assert nn.utils.clip_grad_norm_([], 1.0).item() == 0


def test_gradients_are_clipped_by_value():
    a, b = parameters_with_gradients()
    nn.utils.clip_grad_value_([a, b], 3.5)
    assert (a.grad.tolist(), b.grad.tolist()) == ([3, -3.5], [3.5])
    nn.utils.clip_grad_value(a, 1)
    assert a.grad.tolist() == [1, -1]


def test_a_norm_that_is_not_finite_can_be_an_error():
    a = nn.Parameter([1.0])
    (a * INF).sum().backward()
    with pytest.raises(RuntimeError, match="the norm of the gradients is inf"):
        nn.utils.clip_grad_norm_(a, 1.0, error_if_nonfinite=True)
