"""Named tuples of results: they unpack as tuples do, and their fields have the names that PyTorch
and the Array API standard give them.

Each is generic in what it holds: nodes where functions are written, Tensors for users.
"""

from __future__ import annotations

from typing import Generic, NamedTuple, TypeVar

X = TypeVar("X")


# ---- elements and where they stand ---------------------------------------------------------------
class ValuesIndices(NamedTuple, Generic[X]):
    """Elements, and where each stands along a dimension."""

    values: X
    indices: X


class MinMax(NamedTuple, Generic[X]):
    """The least and the greatest element."""

    min: X
    max: X


class UniqueAllResult(NamedTuple, Generic[X]):
    """Different elements, where each stands first, which each element is, how often each stands."""

    values: X
    indices: X
    inverse_indices: X
    counts: X


class UniqueCountsResult(NamedTuple, Generic[X]):
    """Different elements, and how often each stands."""

    values: X
    counts: X


class UniqueInverseResult(NamedTuple, Generic[X]):
    """Different elements, and which of them each element is."""

    values: X
    inverse_indices: X


# ---- linear algebra ------------------------------------------------------------------------------
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
