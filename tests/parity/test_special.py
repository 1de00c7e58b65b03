"""The functions of treadle.special against PyTorch's, with derivatives where PyTorch has them.

PyTorch's bessel_j0 and bessel_j1 are right to six digits: those are compared with their integrals.
"""

import math

import numpy as np
import pytest

import treadle
from treadle import Tensor, special
from treadle.graph.public import SPECIAL

torch = pytest.importorskip("torch", reason="parity needs PyTorch: make test-full")
pytestmark = pytest.mark.full

WIDE = np.concatenate([np.linspace(-40, 40, 81), [0.0, 1e-6, -1e-8, 24.9, 25.1]])
CHANCES = np.concatenate([np.linspace(0.001, 0.999, 41), 10.0 ** np.linspace(-30, -3, 10)])
# name -> (where it is tried, how exactly)
SINGLE = {
    "entr": (abs(WIDE), 1e-14),
    "erfcx": (WIDE[WIDE > -26], 1e-13),
    "i0e": (WIDE, 1e-13),
    "i1": (WIDE, 1e-13),
    "i1e": (WIDE, 1e-13),
    "log_ndtr": (WIDE, 1e-12),
    "ndtr": (WIDE[WIDE > -4], 1e-12),
    "ndtri": (CHANCES, 1e-11),
    "spherical_bessel_j0": (WIDE, 1e-13),
}
WITHOUT_THEIRS = ("bessel_j0", "bessel_j1")
DERIVED = {"polygamma", "xlog1py", "zeta", *WITHOUT_THEIRS}


def test_every_function_is_compared():
    assert {entry.name for entry in SPECIAL.values()} == set(SINGLE) | DERIVED


@pytest.mark.parametrize("name", SINGLE)
def test_values_and_slopes(name):
    places, exact = SINGLE[name]
    ours = Tensor(places, requires_grad=True)
    theirs = torch.tensor(places, requires_grad=name != "spherical_bessel_j0")
    found, expected = getattr(special, name)(ours), getattr(torch.special, name)(theirs)
    np.testing.assert_allclose(found.numpy(), expected.numpy(force=True), rtol=exact, atol=1e-300)
    if theirs.requires_grad:
        expected.sum().backward()
        inside = np.isfinite(theirs.grad.numpy())
        (slopes,) = found.sum().gradient(ours)
        np.testing.assert_allclose(
            slopes.numpy()[inside], theirs.grad.numpy()[inside], rtol=100 * exact, atol=1e-13
        )


@pytest.mark.parametrize("order", [0, 1])
def test_bessel_functions(order):
    angles = (np.arange(4000) + 0.5) * math.pi / 4000
    expected = np.cos(order * angles - WIDE[:, None] * np.sin(angles)).mean(1)
    x = Tensor(WIDE, requires_grad=True)
    found = getattr(special, f"bessel_j{order}")(x)
    np.testing.assert_allclose(found.numpy(), expected, atol=2e-15)
    if order == 0:  # the derivative is -J1
        slopes = found.sum().gradient(x)[0]
        np.testing.assert_allclose(slopes.numpy(), -special.bessel_j1(x).numpy(), atol=2e-14)


def test_two_arguments():
    x, y = np.array([0.0, 0.0, 2.0, 3.0]), np.array([-1.0, np.inf, 0.5, -0.25])
    expected = torch.special.xlog1py(torch.tensor(x), torch.tensor(y))
    np.testing.assert_allclose(special.xlog1py(Tensor(x), Tensor(y)).numpy(), expected.numpy())
    s, q = np.array([1.5, 2.0, 1.0, 0.5, 3.0, 30.0]), np.array([0.1, 25.0, 1.0, 1.0, -2.0, 0.5])
    expected = torch.special.zeta(torch.tensor(s), torch.tensor(q))
    np.testing.assert_allclose(special.zeta(Tensor(s), Tensor(q)).numpy(), expected.numpy(), 1e-13)


def test_polygamma_below_zero():
    x = np.array([-0.3, -1.7, -4.2, 0.4])
    for n in (2, 3, 5):
        expected = torch.special.polygamma(n, torch.tensor(x)).numpy()
        np.testing.assert_allclose(special.polygamma(n, Tensor(x)).numpy(), expected, 1e-11)
    assert special.polygamma(3, Tensor([-2.0])).item() == math.inf


def test_halves_round_once():
    x = Tensor([3.0, -2.0, 0.1], dtype="float16")
    for name in SINGLE:
        found = getattr(special, name)(x)
        wide = getattr(special, name)(x.float()).half()
        assert found.dtype is treadle.float16
        np.testing.assert_array_equal(found.numpy(), wide.numpy())
