"""Linear algebra of complex matrices against PyTorch, gradients included."""

import numpy as np
import pytest
from beside import value_and_gradient

import treadle
from treadle import Tensor, linalg

torch = pytest.importorskip("torch", reason="parity needs PyTorch: make test-full")

RNG = np.random.default_rng(41)


def drawn(*shape):
    return RNG.normal(size=shape) + 1j * RNG.normal(size=shape)


SQUARE = drawn(2, 4, 4) + 3 * np.eye(4)
TALL, WIDE, SIDE = drawn(5, 3), drawn(3, 5), drawn(2, 4, 3)


def of_both(function):
    """A function of (library, matrices), as one of each library."""

    def ours(x):
        return function(treadle, x, Tensor)

    def theirs(x):
        return function(torch, x, torch.tensor)

    return ours, theirs


def positive(x):
    return x @ x.mH + 1


def sizes(x):
    """What does not depend on the phases of vectors."""
    return (x * x.conj()).real


def on_itself(x):
    return x @ x.mH


def outer_two(u, _, vh):
    return u @ vh


# name -> the function, of a library and a matrix, and the matrices
FUNCTIONS = {
    "det": (lambda t, x, _: t.linalg.det(x), SQUARE),
    "slogdet": (lambda t, x, _: t.linalg.slogdet(x)[1], SQUARE),
    "the sign of slogdet": (lambda t, x, _: t.linalg.slogdet(x)[0], SQUARE),
    "logdet": (lambda t, x, _: t.stack([each.logdet() for each in x]), SQUARE),
    "inv": (lambda t, x, _: t.linalg.inv(x), SQUARE),
    "solve": (lambda t, x, new: t.linalg.solve(x, new(SIDE)), SQUARE),
    "solve by the side": (lambda t, x, new: t.linalg.solve(new(SQUARE), x), SIDE),
    "solve from the right": (lambda t, x, new: t.linalg.solve(x, new(SIDE).mT, left=False), SQUARE),
    "solve_triangular": (
        lambda t, x, new: t.linalg.solve_triangular(x.tril(), new(SIDE), upper=False),
        SQUARE,
    ),
    "triangular_solve": (
        lambda t, x, new: new(SIDE).triangular_solve(x.triu(), transpose=True)[0],
        SQUARE,
    ),
    "matrix_power": (lambda t, x, _: t.linalg.matrix_power(x, -3), SQUARE),
    "matrix_exp": (lambda t, x, _: t.linalg.matrix_exp(x), SQUARE),
    "cholesky": (lambda t, x, _: t.linalg.cholesky(positive(x)), SQUARE),
    "upper cholesky": (lambda t, x, _: t.linalg.cholesky(positive(x), upper=True), SQUARE),
    "cholesky_solve": (lambda t, x, new: new(SIDE).cholesky_solve(x.tril()), SQUARE),
    "cholesky_inverse": (
        lambda t, x, _: t.linalg.cholesky(positive(x[0])).cholesky_inverse(),
        SQUARE,
    ),
    "lu": (lambda t, x, _: t.linalg.lu(x)[1] @ t.linalg.lu(x)[2].sin(), TALL),
    "lu_factor": (lambda t, x, _: t.linalg.lu_factor(x)[0], WIDE),
    "lu_solve": (
        lambda t, x, new: t.linalg.lu_solve(
            x, t.linalg.lu_factor(new(SQUARE))[1], new(SIDE), adjoint=True
        ),
        SQUARE,
    ),
    "lu_solve from the right": (
        lambda t, x, new: t.linalg.lu_solve(
            x, t.linalg.lu_factor(new(SQUARE))[1], new(SIDE).mT, left=False, adjoint=True
        ),
        SQUARE,
    ),
    "Q": (lambda t, x, _: t.linalg.qr(x)[0], TALL),
    "R": (lambda t, x, _: t.linalg.qr(x)[1], TALL),
    "R of a wide matrix": (lambda t, x, _: t.linalg.qr(x)[1], WIDE),
    "householder_product": (
        lambda t, x, new: t.linalg.householder_product(x, new(SIDE[0, :3, 0])),
        TALL,
    ),
    "eigvalsh": (lambda t, x, _: t.linalg.eigvalsh(x), SQUARE),
    "upper eigvalsh": (lambda t, x, _: t.linalg.eigvalsh(x, "U"), SQUARE),
    "eigenvectors": (lambda t, x, _: sizes(t.linalg.eigh(x + x.mH)[1]), SQUARE),
    "a projection": (lambda t, x, _: on_itself(t.linalg.eigh(x + x.mH)[1][..., :2]), SQUARE),
    "svdvals": (lambda t, x, _: t.linalg.svdvals(x), SQUARE),
    "U": (lambda t, x, _: sizes(t.linalg.svd(x, full_matrices=False)[0]), TALL),
    "Vh": (lambda t, x, _: sizes(t.linalg.svd(x, full_matrices=False)[2]), WIDE),
    "the unitary factor": (
        lambda t, x, _: outer_two(*t.linalg.svd(x, full_matrices=False)),
        TALL,
    ),
    "pinv": (lambda t, x, _: t.linalg.pinv(x), TALL),
    "lstsq": (lambda t, x, new: t.linalg.lstsq(x, new(TALL[:, :2])).solution, drawn(5, 3)),
    "the norm 2": (lambda t, x, _: t.linalg.matrix_norm(x, 2), SQUARE),
    "the norm -2": (lambda t, x, _: t.linalg.norm(x, -2, dim=(1, 2)), SQUARE),
    "the norm nuc": (lambda t, x, _: x.norm("nuc", dim=(1, 2)), SQUARE),
    "the norm 1": (lambda t, x, _: t.linalg.matrix_norm(x, 1), SQUARE),
    "the norm of a vector": (lambda t, x, _: t.linalg.vector_norm(x, 3), SQUARE),
    "cond": (lambda t, x, _: t.linalg.cond(x), SQUARE),
    "tensorinv": (lambda t, x, _: t.linalg.tensorinv(x.reshape(4, 2, 2), ind=1), SQUARE[0]),
    "tensorsolve": (lambda t, x, new: t.linalg.tensorsolve(x, new(SIDE[0, :, 0])), SQUARE[0]),
    "vander": (lambda t, x, _: t.linalg.vander(x, N=4), SIDE[0]),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_and_gradients(name):
    function, array = FUNCTIONS[name]
    value_and_gradient(*of_both(function), array)


def test_results_that_are_not_differentiated():
    x, there = Tensor(SQUARE), torch.tensor(SQUARE)
    assert linalg.lu_factor(x)[1].tolist() == torch.linalg.lu_factor(there)[1].tolist()
    assert linalg.matrix_rank(x).tolist() == torch.linalg.matrix_rank(there).tolist()
    for ours, theirs in (
        (linalg.inv_ex(x), torch.linalg.inv_ex(there)),
        (linalg.cholesky_ex(x @ x.mH), torch.linalg.cholesky_ex(there @ there.mH)),
        (linalg.qr(x, "complete"), torch.linalg.qr(there, "complete")),
        (linalg.lstsq(x, x, driver="gelsd"), torch.linalg.lstsq(there, there, driver="gelsd")),
        ((linalg.cond(x, 1),), (torch.linalg.cond(there, 1),)),
    ):
        for one, other in zip(ours, theirs, strict=True):
            assert str(one.dtype) == str(other.dtype).removeprefix("torch.")
            np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-9, atol=1e-12)
