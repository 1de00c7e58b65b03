"""Cases of methods that are for matrices of a kind: square, positive definite, triangular."""

from __future__ import annotations

import numpy as np
import pytest
from cases import Case

torch = pytest.importorskip("torch", reason="parity needs PyTorch: make test-full")
RNG = np.random.default_rng(12)
A = RNG.normal(size=(2, 3, 3)) + 3 * np.eye(3)  # regular, with a determinant above 0
A *= np.sign(np.linalg.det(A))[:, None, None]
B = RNG.normal(size=(2, 3, 2))
TALL = RNG.normal(size=(4, 3))


def part(name, number, *args):
    """One of the results of a method, in both libraries."""

    def call(*xs):
        return getattr(xs[0], name)(*xs[1:], *args)[number]

    return {"ours": call, "theirs": call}


def definite(name):
    """Of the positive definite matrix that a regular one makes."""

    def call(x):
        return getattr(x @ x.mT, name)()

    return {"ours": call, "theirs": call}


def triangular(name):
    """Of the lower triangle of the last tensor: PyTorch's own derivative is not zero above it."""

    def call(*xs):
        return getattr(xs[0], name)(*xs[1:-1], xs[-1].tril())

    return {"ours": call, "theirs": call}


def squared(number):
    """A result of svd but for the signs of its columns."""

    def call(x):
        return x.svd()[number] ** 2

    return {"ours": call, "theirs": call}


LINALG: dict[str, list[Case]] = {
    "det": [Case((A,))],
    "slogdet": [Case((A,), **part("slogdet", 1))],
    "logdet": [Case((A,))],
    "inverse": [Case((A,))],
    "pinverse": [Case((TALL,))],
    "matrix_exp": [Case((A,)), Case((A[0] / 9,))],
    "matrix_power": [Case((A,), (5,)), Case((A,), (-3,)), Case((A,), (0,), order=0)],
    "cholesky": [Case((A,), **definite("cholesky"))],
    "cholesky_solve": [Case((B, A), **triangular("cholesky_solve"))],
    "cholesky_inverse": [
        Case(
            (A[0],),
            ours=lambda x: x.tril().cholesky_inverse(),
            theirs=lambda x: x.tril().cholesky_inverse(),
        )
    ],
    "triangular_solve": [Case((B, A), **part("triangular_solve", 0, False, True))],
    "qr": [Case((TALL,), **part("qr", 0)), Case((TALL,), **part("qr", 1))],
    "orgqr": [Case((TALL, RNG.normal(size=3)))],
    "svd": [Case((TALL,), **squared(number)) for number in range(3)],
}
