"""Special functions, inverse functions and comparisons of floats: values beside Python's, special
values, and derivatives at the ends of the domains. No other library is needed."""

import math

import numpy as np
import pytest
from arrays import close, run, same, tensor
from gradcheck import leaf

from treadle import Tensor
from treadle.backend.interp.graph import evaluate
from treadle.graph import elementwise as e
from treadle.graph import floating, functions, special, trigonometry
from treadle.graph.build import ones_like
from treadle.graph.grad import gradients
from treadle.graph.public import METHODS
from treadle.ir.dtype import bfloat16, bool_, float16, float32, float64, int8, int32, int64

INF, NAN = math.inf, math.nan
FLOATS = (float16, bfloat16, float32, float64)
R = np.random.default_rng(12)

# name -> (Python's function, where it is sampled)
KNOWN = {
    "asin": (math.asin, (-1, 1)), "acos": (math.acos, (-1, 1)), "asinh": (math.asinh, (-50, 50)),
    "acosh": (math.acosh, (1, 50)), "atanh": (math.atanh, (-1, 1)), "erfc": (math.erfc, (-3, 9)),
    "lgamma": (math.lgamma, (0.01, 50)), "sinh": (math.sinh, (-9, 9)),
    "cosh": (math.cosh, (-9, 9)), "deg2rad": (math.radians, (-400, 400)),
    "rad2deg": (math.degrees, (-9, 9)), "logit": (lambda p: math.log(p / (1 - p)), (0.01, 0.99)),
    "sinc": (lambda x: math.sin(math.pi * x) / (math.pi * x), (-0.9, 0.9)),
}  # fmt: skip


@pytest.mark.parametrize("dtype", FLOATS, ids=repr)
@pytest.mark.parametrize("name", KNOWN)
def test_values(name, dtype):
    function, (low, high) = KNOWN[name]
    x = run(tensor(R.uniform(low, high, 200), dtype))
    inside = x[(x > low) & (x < high)] if name in ("asin", "acos", "atanh") else x
    expected = np.array([function(v) for v in inside.astype(np.float64).tolist()])
    found = run(METHODS[name].function(tensor(inside, dtype))).astype(np.float64)
    digits = {"float16": 10, "bfloat16": 7, "float32": 23, "float64": 52}[dtype.name]
    near = np.abs(found - expected) <= 6 * 2.0**-digits * np.maximum(np.abs(expected), 2.0**-10)
    absolute = np.abs(found - expected) <= 8 * 2.0**-digits  # of what passes through zero
    assert np.all(near | absolute if name in ("lgamma", "logit") else near)


@pytest.mark.parametrize("name", ["asin", "asinh", "atanh", "sinh", "erfinv", "deg2rad"])
def test_odd_functions_keep_small_numbers_and_the_sign_of_zero(name):
    x = np.array([0.0, -0.0, 1e-30, -1e-30], np.float32)
    slope = {"erfinv": math.sqrt(math.pi) / 2, "deg2rad": math.pi / 180}.get(name, 1.0)
    found = run(METHODS[name].function(tensor(x)))
    np.testing.assert_array_equal(np.signbit(found), np.signbit(x))
    np.testing.assert_allclose(found, x * np.float32(slope), rtol=3e-7)


SPECIAL = {
    "asin": [(1.0, math.pi / 2), (-1.0, -math.pi / 2), (1.5, NAN), (-INF, NAN)],
    "acos": [(1.0, 0.0), (-1.0, math.pi), (0.0, math.pi / 2), (-1.5, NAN), (INF, NAN)],
    "asinh": [(INF, INF), (-INF, -INF), (1e30, math.asinh(1e30))],
    "acosh": [(1.0, 0.0), (INF, INF), (0.5, NAN), (-1.0, NAN), (-1e10, NAN), (-INF, NAN)],
    "atanh": [(1.0, INF), (-1.0, -INF), (1.5, NAN)],
    "erfc": [(0.0, 1.0), (INF, 0.0), (-INF, 2.0), (9.0, math.erfc(9.0))],
    "erfinv": [(1.0, INF), (-1.0, -INF), (1.5, NAN), (INF, NAN)],
    "lgamma": [(1.0, 0.0), (2.0, 0.0), (0.0, INF), (-3.0, INF), (INF, INF), (-INF, INF)],
    "digamma": [(0.0, -INF), (-0.0, INF), (-2.0, NAN), (INF, INF), (-INF, NAN)],
    "logit": [(0.0, -INF), (1.0, INF), (0.5, 0.0), (-0.5, NAN), (1.5, NAN)],
    "sinc": [(0.0, 1.0), (-0.0, 1.0), (3.0, 0.0), (INF, NAN)],
}


@pytest.mark.parametrize("name", SPECIAL)
def test_special_values(name):
    x, expected = (np.array(column, np.float64) for column in zip(*SPECIAL[name], (NAN, NAN)))
    for dtype in (np.float32, np.float64):
        found = run(METHODS[name].function(tensor(x.astype(dtype))))
        tolerance = 8 * np.finfo(dtype).eps
        np.testing.assert_allclose(found, expected.astype(dtype), rtol=tolerance)


def test_digamma_by_its_recurrence_and_its_known_values():
    x = R.uniform(0.05, 30, 100)
    digamma = special.digamma
    close(e.sub(digamma(tensor(x + 1)), digamma(tensor(x))), 1 / x, ulps=400)
    euler = 0.5772156649015329
    known = {1.0: -euler, 0.5: -euler - 2 * math.log(2), 2.0: 1 - euler}
    close(digamma(tensor(np.array(list(known)))), np.array(list(known.values())), ulps=8)


# (name, x) -> derivative there
SLOPES = [
    ("asin", 1.0, INF), ("asin", -1.0, INF), ("acos", 1.0, -INF), ("acos", -1.0, -INF),
    ("acosh", 1.0, INF), ("acosh", -1e10, NAN), ("atanh", 1.0, INF), ("atanh", -1.0, INF),
    ("logit", 0.0, INF), ("logit", 1.0, INF), ("logit", 0.5, 4.0), ("sinc", 0.0, 0.0),
    ("sinc", 1.0, -1.0), ("sinh", -1e4, INF), ("cosh", -1e4, -INF), ("cosh", 1e-20, 1e-20),
    ("asinh", 0.0, 1.0), ("asinh", 1e200, 1e-200), ("erfinv", 0.0, math.sqrt(math.pi) / 2),
    ("erfc", 0.0, -2 / math.sqrt(math.pi)), ("digamma", 1.0, math.pi**2 / 6),
    ("digamma", 0.5, math.pi**2 / 2), ("digamma", -0.5, math.pi**2 / 2 + 4),
    ("lgamma", 1.0, -0.5772156649015329),
]  # fmt: skip


@pytest.mark.parametrize(("name", "at", "slope"), SLOPES)
def test_derivatives_at_the_ends(name, at, slope):
    value = np.array([at])
    x = leaf(0, value)
    y = METHODS[name].function(x)
    (derived,) = evaluate(gradients([y], [ones_like(y)], [x]), {x: value})
    np.testing.assert_allclose(derived, [slope], rtol=1e-14)


def test_higher_derivatives_of_the_logarithm_of_gamma():
    """At 1 they are (-1)^n (n - 1)! zeta(n)."""
    value = np.array([1.0])
    x = leaf(0, value)
    derived = special.lgamma(x)
    zeta = {2: math.pi**2 / 6, 3: 1.2020569031595943, 4: math.pi**4 / 90}
    for order in range(1, 5):
        (derived,) = gradients([derived], [ones_like(derived)], [x])
        if order > 1:
            expected = (-1) ** order * math.factorial(order - 1) * zeta[order]
            (found,) = evaluate([derived], {x: value})
            np.testing.assert_allclose(found, [expected], rtol=1e-12)


# ---- two operands --------------------------------------------------------------------------------
EDGES = np.array([0.0, -0.0, 1.0, -1.0, 3.0, 1e-40, 1e30, -1e30, INF, -INF, NAN], np.float32)
A, B = (grid.ravel() for grid in np.meshgrid(EDGES, EDGES))


@pytest.mark.parametrize(
    ("function", "expected", "exact"),
    [
        (trigonometry.atan2, np.arctan2, False),
        (trigonometry.hypot, np.hypot, False),
        (special.logaddexp, np.logaddexp, False),
        (floating.copysign, np.copysign, True),
        (floating.nextafter, np.nextafter, True),
        (floating.fmax, np.fmax, True),
        (floating.fmin, np.fmin, True),
    ],
)
def test_two_operands_on_every_pair_of_edges(function, expected, exact):
    with np.errstate(all="ignore"):
        wanted = expected(A, B)
    found = run(function(tensor(A), tensor(B)))
    np.testing.assert_allclose(found, wanted, rtol=0 if exact else 5e-7, atol=0)
    if function is not special.logaddexp and function not in (floating.fmax, floating.fmin):
        numbers = ~np.isnan(wanted)
        np.testing.assert_array_equal(np.signbit(found[numbers]), np.signbit(wanted[numbers]))


def test_zeros_of_quotients_and_remainders_have_signs():
    a = np.array([1.0, -1.0, 1.0, -1.0, -0.0, -0.5, 0.5], np.float32)
    b = np.array([1.0, 1.0, -1.0, -1.0, 1.0, -1.0, 1.0], np.float32)
    same(e.fmod(tensor(a), tensor(b)), np.fmod(a, b))
    same(e.remainder(tensor(a), tensor(b)), np.mod(a, b))
    same(e.floor_divide(tensor(a), tensor(b)), np.floor_divide(a, b))


def test_xlogy_is_zero_at_zero():
    x = np.array([0.0, 0.0, 0.0, 0.0, 2.0, 2.0], np.float32)
    y = np.array([0.0, -1.0, INF, NAN, 0.0, 3.0], np.float32)
    close(floating.xlogy(tensor(x), tensor(y)), np.float32([0, 0, 0, NAN, -INF, 2 * math.log(3)]))


def test_heaviside():
    x = np.array([-2.0, 0.0, -0.0, 3.0, NAN], np.float32)
    same(floating.heaviside(tensor(x), 0.5), np.float32([0, 0.5, 0.5, 1, 0]))


# ---- one operand ---------------------------------------------------------------------------------
def test_signbit():
    signs = np.array([True, False, True, False, True])
    same(floating.signbit(tensor(np.float32([-0.0, 0.0, -1, INF, -INF]))), signs)
    same(floating.signbit(tensor([-3, 0, 3], int32)), np.array([True, False, False]))
    same(floating.signbit(tensor([True, False])), np.array([False, False]))
    for dtype in FLOATS:
        same(floating.signbit(tensor([-0.0, 2.0], dtype)), np.array([True, False]))


@pytest.mark.parametrize("dtype", FLOATS, ids=repr)
def test_nan_to_num_gives_the_greatest_finite_numbers(dtype):
    found = run(floating.nan_to_num(tensor([NAN, INF, -INF, 1.5], dtype)))
    top = {"float16": 65504.0, "bfloat16": 3.3895313892515355e38}.get(dtype.name)
    top = float(np.finfo(dtype.storage).max) if top is None else top
    assert found.tolist() == [0.0, top, -top, 1.5]
    found = run(floating.nan_to_num(tensor([NAN, INF, -INF], dtype), 1.0, 2.0, -3.0))
    assert found.tolist() == [1.0, 2.0, -3.0]


def test_nan_to_num_leaves_integers():
    same(floating.nan_to_num(tensor([1, 2], int8)), np.int8([1, 2]))


def test_frac_is_for_floats():
    same(floating.frac(tensor(np.float32([1.25, -1.25, 2.0]))), np.float32([0.25, -0.25, 0.0]))
    with pytest.raises(TypeError, match="frac is for floats, not for int64"):
        floating.frac(tensor([1, 2]))
    with pytest.raises(TypeError, match="positive is for numbers, not for bool"):
        floating.positive(tensor([True]))


def test_isclose():
    a = np.array([1.0, 1.0, INF, INF, NAN, 1e-9, 100.0])
    b = np.array([1.0 + 1e-6, 1.1, INF, -INF, NAN, 0.0, 100.0005])
    same(floating.isclose(tensor(a), tensor(b)), np.isclose(a, b))
    same(floating.isclose(tensor(a), tensor(b), equal_nan=True), np.isclose(a, b, equal_nan=True))
    assert Tensor(a[:1]).allclose(Tensor(b[:1])) is True
    assert Tensor(a).allclose(Tensor(b)) is False
    assert Tensor(a[:1]).equal(Tensor(a[:1])) is True
    assert Tensor(a[:1]).equal(Tensor(a[:1]).reshape(1, 1)) is False
    same(floating.isclose(tensor([2**62, 3]), tensor([2**62, 4])), np.array([True, False]))
    with pytest.raises(ValueError, match="isclose: rtol=-1 is below 0"):
        floating.isclose(tensor(a), tensor(b), rtol=-1)


def test_dtypes():
    for name in ("asin", "erfc", "lgamma", "logit", "sinc", "deg2rad"):
        assert METHODS[name].function(tensor([0, 1], int64)).dtype is float32
        for dtype in FLOATS:
            assert METHODS[name].function(tensor([0.25], dtype)).dtype is dtype
    assert trigonometry.hypot(tensor([3], int8), tensor([4], int8)).dtype is float32
    assert floating.float_power(tensor([3], int8), 2).dtype is float64
    assert floating.addcdiv(tensor([1]), tensor([1]), tensor([2])).dtype is float32
    assert floating.addcmul(tensor([1]), tensor([1]), tensor([2])).dtype is int64
    assert special.logaddexp(tensor([True], bool_), tensor([1])).dtype is float32


@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3)])
def test_nothing_and_single_numbers(shape):
    x = np.full(shape, 0.5, np.float32)
    for name in KNOWN:
        assert METHODS[name].function(tensor(x)).shape == shape
    same(functions.sinh(tensor(np.zeros(shape, np.float32))), np.zeros(shape, np.float32))
