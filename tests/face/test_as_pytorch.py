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


# ---- names that came later -----------------------------------------------------------------------
def test_divisors():
    rng = np.random.default_rng(2)
    a, b = rng.integers(-(2**40), 2**40, (2, 50))
    assert Tensor(a).gcd(Tensor(b)).tolist() == np.gcd(a, b).tolist()
    small = rng.integers(-100, 100, (2, 50))
    assert Tensor(small[0]).lcm(Tensor(small[1])).tolist() == np.lcm(*small).tolist()
    assert Tensor([0, 0], dtype="uint8").gcd(Tensor([0, 7], dtype="uint8")).tolist() == [0, 7]
    with pytest.raises(TypeError, match="gcd is for integers, not for float32"):
        Tensor([1.0]).gcd(Tensor([2.0]))


def test_mantissas():
    with np.errstate(all="ignore"):
        x = np.array([0.0, np.inf, np.nan, 5e-324, -1e-310, 2.2e-308, 1.0, 0.5, -3e300])
    mantissa, exponent = Tensor(x).frexp()
    expected = np.frexp(x)
    np.testing.assert_array_equal(mantissa.numpy(), expected[0])
    np.testing.assert_array_equal(exponent.numpy(), np.where(np.isfinite(x), expected[1], 0))


def test_choices():
    assert Tensor([1, 2, 3]).combinations(3).tolist() == [[1, 2, 3]]
    assert Tensor([1, 2]).combinations(2, True).tolist() == [[1, 1], [1, 2], [2, 2]]
    assert Tensor([1, 2]).combinations(3).shape == (0, 3)
    assert Tensor([1, 2]).combinations(1).tolist() == [[1], [2]]
    places = np.unravel_index([0, 5, 23], (2, 3, 4))
    found = Tensor([0, 5, 23]).unravel_index((2, 3, 4))
    assert [each.tolist() for each in found] == [each.tolist() for each in places]
    around = Tensor([50, -1]).unravel_index((2, 3))  # as in PyTorch
    assert [each.tolist() for each in around] == [[0, 1], [2, 2]]


def test_covariance():
    x = np.random.default_rng(3).standard_normal((3, 8))
    np.testing.assert_allclose(Tensor(x).cov().numpy(), np.cov(x))
    np.testing.assert_allclose(Tensor(x).corrcoef().numpy(), np.corrcoef(x))
    np.testing.assert_allclose(Tensor(x[0]).cov(correction=0).numpy(), np.cov(x[0], ddof=0))
    with pytest.raises(ValueError, match=r"cov: aweights has the shape \(2,\)"):
        Tensor(x).cov(aweights=Tensor([1.0, 2.0]))


def test_in_the_likeness_of_another():
    x = Tensor([[1, 2]], dtype="int16")
    made = [x.new_zeros(2, 3), x.new_ones((2, 3)), x.new_full((2, 3), 7), x.new_empty(2, 3)]
    assert [(each.shape, each.dtype.name) for each in made] == [((2, 3), "int16")] * 4
    assert made[2].sum().item() == 42
    assert x.new_ones(2, dtype="float64").dtype is treadle.float64
    f = Tensor([[1.0, 2.0]], dtype="float64")
    assert [y.dtype.name for y in (f.rand_like(), f.randn_like(dtype="float32"))] == [
        "float64",
        "float32",
    ]
    assert x.randint_like(3, 4).tolist() == [[3, 3]]


def test_names_of_special_that_are_methods():
    x = Tensor([0.5, 2.0])
    assert treadle.special.expit(x).tolist() == x.sigmoid().tolist()
    assert treadle.special.multigammaln(x + 1, 2).tolist() == (x + 1).mvlgamma(2).tolist()
    assert "erfcx" in dir(treadle.special)
    with pytest.raises(AttributeError, match=r"treadle\.special' has no attribute 'airy'"):
        treadle.special.airy(x)


def test_what_a_tensor_is():
    x = Tensor([[1.0, 2.0]])
    assert x.is_floating_point() and not Tensor([1]).is_floating_point()
    assert x.is_signed() and Tensor([1j]).is_signed()
    assert not Tensor([1], dtype="uint8").is_signed() and not Tensor([True]).is_signed()
    assert x.is_same_size(Tensor([[0, 0]])) and not x.is_same_size(x.T)
    assert x.T.is_contiguous() and x.is_contiguous(memory_format="contiguous_format")
    assert Tensor([1, 2]).type_as(x).dtype is treadle.float32
    assert x.adjoint().tolist() == x.mH.tolist() == [[1.0], [2.0]]
    assert Tensor([[1j, 2.0]]).adjoint().tolist() == [[-1j], [2.0]]
    assert Tensor([1.5]).fix().tolist() == treadle.fix(Tensor([1.5])).tolist() == [1.0]
    assert Tensor([1, 2]).ger(Tensor([3, 4])).tolist() == [[3, 4], [6, 8]]


def test_random_integers_in_place():
    x = Tensor.empty(1000, dtype="int64")
    assert x.random_(5) is x and (x.min().item(), x.max().item()) == (0, 4)
    y = Tensor.zeros(1000).random_(-2, 1)
    assert y.dtype is treadle.float32 and (y.min().item(), y.max().item()) == (-2, 0)
    with pytest.raises(
        NotImplementedError, match="random_: to=4 is not there: write low= and high"
    ):
        x.random_(0, to=4)


def test_a_diagonal_in_place():
    for shape in ((3, 3), (2, 4), (4, 2), (3, 3, 3)):
        x, expected = Tensor.zeros(*shape), np.zeros(shape)
        np.fill_diagonal(expected[: shape[1]] if len(shape) == 2 else expected, 7)
        assert x.fill_diagonal_(7) is x
        assert x.tolist() == expected.tolist()
    with pytest.raises(ValueError, match=r"fill_diagonal_: a tensor of shape \(2, 3, 3\)"):
        Tensor.zeros(2, 3, 3).fill_diagonal_(1)
    with pytest.raises(NotImplementedError, match="fill_diagonal_: wrap=True"):
        Tensor.zeros(3, 3).fill_diagonal_(1, wrap=True)


@pytest.mark.parametrize("name", ["chain_matmul", "vander", "lu", "is_tensor", "promote_types"])
def test_functions_that_are_elsewhere_say_where(name):
    with pytest.raises(AttributeError, match=f"no attribute '{name}': write "):
        getattr(treadle, name)


@pytest.mark.parametrize(
    "name", ["lu", "solve", "as_strided_", "new_tensor", "resize_", "to_sparse"]
)
def test_methods_that_are_elsewhere_say_where(name):
    with pytest.raises(AttributeError, match=f"no attribute '{name}': write "):
        getattr(Tensor([1.0]), name)
