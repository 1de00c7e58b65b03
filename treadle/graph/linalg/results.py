"""Named tuples of results of linear algebra, as `treadle/graph/results.py` has them of others."""

from __future__ import annotations

from typing import Generic, NamedTuple, TypeVar

X = TypeVar("X")


class EighResult(NamedTuple, Generic[X]):
    """Eigenvalues, and eigenvectors as columns."""

    eigenvalues: X
    eigenvectors: X


class SVDResult(NamedTuple, Generic[X]):
    """U @ diag(S) @ Vh."""

    U: X
    S: X
    Vh: X


class TensorSVDResult(NamedTuple, Generic[X]):
    """U @ diag(S) @ V.mT."""

    U: X
    S: X
    V: X


class QRResult(NamedTuple, Generic[X]):
    """Q @ R."""

    Q: X
    R: X


class LUResult(NamedTuple, Generic[X]):
    """P @ L @ U."""

    P: X
    L: X
    U: X


class LUFactorResult(NamedTuple, Generic[X]):
    """L and U in one matrix, and the exchanges of rows."""

    LU: X
    pivots: X


class LUFactorExResult(NamedTuple, Generic[X]):
    """L and U in one matrix, the exchanges of rows, and the number of the first zero pivot."""

    LU: X
    pivots: X
    info: X


class CholeskyExResult(NamedTuple, Generic[X]):
    """A Cholesky factor, and the number of the first minor that is not positive definite."""

    L: X
    info: X


class InvExResult(NamedTuple, Generic[X]):
    """An inverse, and the number of the first zero pivot."""

    inverse: X
    info: X


class SolveExResult(NamedTuple, Generic[X]):
    """A solution, and the number of the first zero pivot."""

    result: X
    info: X


class SlogdetResult(NamedTuple, Generic[X]):
    """sign * exp(logabsdet) is the determinant."""

    sign: X
    logabsdet: X


class LstsqResult(NamedTuple, Generic[X]):
    """A least-squares solution and what belongs to it."""

    solution: X
    residuals: X
    rank: X
    singular_values: X


class TriangularSolveResult(NamedTuple, Generic[X]):
    """A solution, and the matrix it belongs to."""

    solution: X
    cloned_coefficient: X
