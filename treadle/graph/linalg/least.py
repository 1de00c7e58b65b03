"""Least squares; and what has complex results, which is not there."""

from __future__ import annotations

from typing import Any, NoReturn

from treadle.graph import shapes
from treadle.graph.build import broadcast_shapes, cast, const, expand, reshape
from treadle.graph.elementwise import sub
from treadle.graph.linalg.adjoint import adjoint, squared
from treadle.graph.linalg.factors import qr
from treadle.graph.linalg.formula import floating, matrices
from treadle.graph.linalg.panels import column_of
from treadle.graph.linalg.results import EighResult, LstsqResult
from treadle.graph.linalg.spectral import matrix_rank, pinv, svdvals
from treadle.graph.linalg.triangular import solved
from treadle.graph.linear import matmul
from treadle.graph.public import public
from treadle.graph.reduction import sum_
from treadle.graph.shapes import text
from treadle.ir.dtype import int64
from treadle.ir.node import Node

DRIVERS = (None, "gels", "gelsy", "gelsd", "gelss")


@public("lstsq", source="PyTorch", method=False, linalg=True)
def lstsq(A: Node, B: Node, rcond: Any = None, *, driver: str | None = None) -> LstsqResult[Node]:
    """(solution, residuals, rank, singular_values): X (.., n, k) for which |A @ X - B| is least,
    and of these the shortest.

    A: (.., m, n). B: matrices (.., m, k), or as many vectors (m,) as A has matrices. Singular
    values up to rcond * the greatest count as 0; rcond is max(m, n) * epsilon unless given. driver:
    "gels" takes A to be of full rank and solves by QR; the others, "gelsy" (the default), "gelsd"
    and "gelss", by singular values. As in PyTorch, residuals (the squared distances) are empty for
    "gelsy" and for m <= n, rank for "gels", and singular_values but for "gelsd" and "gelss".

    >>> a, b = Tensor([[1.0], [1.0]]), Tensor([[1.0], [3.0]])
    >>> treadle.linalg.lstsq(a, b)[0].round(decimals=3)
    Tensor([[2.]])
    """
    a, b = floating("lstsq", A, B)
    (a,) = matrices("lstsq", a)
    if driver not in DRIVERS:
        raise ValueError(
            f"linalg.lstsq: driver is 'gels', 'gelsy', 'gelsd' or 'gelss', not {driver!r}"
        )
    is_vector = len(b.shape) == len(a.shape) - 1 and shapes.same_shape(b.shape, a.shape[:-1])
    b = column_of(b) if is_vector else b
    if len(b.shape) < 2 or not shapes.same(a.shape[-2], b.shape[-2]):
        raise ValueError(
            f"linalg.lstsq: matrices of shape {text(a.shape)} do not fit a right-hand side of "
            f"shape {text(B.shape)}"
        )
    batch = broadcast_shapes(a.shape[:-2], b.shape[:-2], name="linalg.lstsq")
    b = expand(b, (*batch, *b.shape[-2:]))
    x = _by_qr(a, b) if driver == "gels" else matmul(pinv(a, rtol=rcond), b)
    nothing = const(0, a.dtype.real, (0,))
    is_tall = shapes.at_most(a.shape[-2], a.shape[-1]) is False
    residuals = nothing
    if is_tall and driver in ("gels", "gelsd", "gelss"):
        rest = sub(matmul(a, x), b)
        residuals = sum_(squared(rest), -2)
    rank = cast(nothing, int64) if driver == "gels" else matrix_rank(a, rtol=rcond)
    values = svdvals(a) if driver in ("gelsd", "gelss") else nothing
    return LstsqResult(reshape(x, x.shape[:-1]) if is_vector else x, residuals, rank, values)


def _by_qr(a: Node, b: Node) -> Node:
    """The least-squares solution, or the shortest of many."""
    rows, columns = a.shape[-2:]
    if shapes.at_most(columns, rows):
        q, r = qr(a)
        return solved(r, matmul(adjoint(q), b), upper=True)
    q, r = qr(adjoint(a))
    return matmul(q, solved(adjoint(r), b, upper=False))


# ---- complex -------------------------------------------------------------------------------------
def _complex(name: str) -> NoReturn:
    raise NotImplementedError(
        f"linalg.{name}: the complex eigenvalues of matrices that are not symmetric are not "
        "there; of symmetric (Hermitian) matrices use linalg.eigh or linalg.eigvalsh"
    )


@public("eig", source="PyTorch", method=False, linalg=True, gradient="no")
def eig(x: Node) -> EighResult[Node]:
    """NotImplementedError: there is no algorithm for complex eigenvalues. Of symmetric matrices see
    `eigh`.

    >>> try:
    ...     treadle.linalg.eig(Tensor([[0.0, 1.0], [-1.0, 0.0]]))
    ... except NotImplementedError:
    ...     print("complex")
    complex
    """
    _complex("eig")


@public("eigvals", source="PyTorch", method=False, linalg=True, gradient="no")
def eigvals(x: Node) -> Node:
    """NotImplementedError, as `eig`. Of symmetric matrices see `eigvalsh`.

    >>> treadle.linalg.eigvalsh(Tensor([[2.0]])).tolist()
    [2.0]
    """
    _complex("eigvals")
