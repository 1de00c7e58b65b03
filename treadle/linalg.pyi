"""The functions of `treadle.linalg`.

Made by `tools/stubs.py --write`.
"""

import builtins
from collections.abc import Sequence
from typing import Any, overload

from treadle.graph.linalg.norms import Order
from treadle.graph.linalg.results import (
    CholeskyExResult,
    EighResult,
    InvExResult,
    LstsqResult,
    LUFactorExResult,
    LUFactorResult,
    LUResult,
    QRResult,
    SlogdetResult,
    SolveExResult,
    SVDResult,
)
from treadle.graph.shapes import Axes
from treadle.tensor import Tensor
from treadle.vocabulary import Array, DTypeLike

def cholesky(x: Array, upper: builtins.bool = False) -> Tensor:
    """The lower triangular L with L @ L.mH == x for positive definite matrices (.., n, n), which
    are symmetric (complex ones: Hermitian) and of which the lower triangle is read; with `upper`,
    L.mH, from the upper triangle."""

def cholesky_ex(
    x: Array, *, upper: builtins.bool = False, check_errors: builtins.bool = False
) -> CholeskyExResult[Tensor]:
    """(cholesky(x), info): info, int32, is the order of the first leading minor that is not
    positive definite, or 0."""

def cond(x: Array, p: Order | None = None) -> Tensor:
    """The condition numbers of matrices: by the ratio of the greatest and the least singular value
    (p of None, 2, or its inverse for -2), else norm(x, p) * norm(inverse, p) of square ones."""

def cross(x: Array, other: Array, *, dim: builtins.int = -1, axis: builtins.int = ...) -> Tensor:
    """The vector product along an axis of size 3, the last one unless `dim` is given."""

def det(x: Array) -> Tensor:
    """The determinants of matrices (.., n, n); 1 of an empty one."""

def diagonal(
    x: Array,
    *,
    offset: builtins.int = 0,
    dim1: builtins.int = -2,
    dim2: builtins.int = -1,
    axis1: builtins.int = ...,
    axis2: builtins.int = ...,
) -> Tensor:
    """The diagonals of matrices as a new last dimension; offset > 0 above the main one."""

def eig(x: Array) -> EighResult[Tensor]:
    """NotImplementedError: there is no algorithm for complex eigenvalues."""

def eigh(x: Array, UPLO: str = "L") -> EighResult[Tensor]:
    """(eigenvalues, eigenvectors) of symmetric (complex ones: Hermitian) matrices (.., n, n): the
    values (.., n) are real and ascend, and the columns of the second are orthonormal."""

def eigvals(x: Array) -> Tensor:
    """NotImplementedError, as `eig`."""

def eigvalsh(x: Array, UPLO: str = "L") -> Tensor:
    """The eigenvalues of symmetric (Hermitian) matrices, ascending: the first result of `eigh`."""

def householder_product(x: Array, tau: Array) -> Tensor:
    """The first n columns of the product of k reflections 1 - tau_i v_i v_i^H."""

def inv(x: Array) -> Tensor:
    """The inverses of matrices (.., n, n); inf and NaN where one is singular."""

def inv_ex(x: Array, *, check_errors: builtins.bool = False) -> InvExResult[Tensor]:
    """(inv(x), info): info, int32, is the number of the first zero pivot, from 1, or 0."""

@overload
def lstsq(
    A: Array, B: Array, rcond: Any = None, *, driver: str | None = None
) -> LstsqResult[Tensor]:
    """(solution, residuals, rank, singular_values): X (.., n, k) for which |A @ X - B| is least,
    and of these the shortest."""

@overload
def lstsq(
    A: Array, *, b: Array, rcond: Any = None, driver: str | None = None
) -> LstsqResult[Tensor]:
    """(solution, residuals, rank, singular_values): X (.., n, k) for which |A @ X - B| is least,
    and of these the shortest."""

@overload
def lstsq(
    A: Array, *, other: Array, rcond: Any = None, driver: str | None = None
) -> LstsqResult[Tensor]:
    """(solution, residuals, rank, singular_values): X (.., n, k) for which |A @ X - B| is least,
    and of these the shortest."""

def lu(x: Array, *, pivot: builtins.bool = True) -> LUResult[Tensor]:
    """(P, L, U) of matrices (.., m, n) with P @ L @ U == x: a permutation (.., m, m), a lower
    triangular matrix with ones on its diagonal (.., m, k) and an upper triangular one (.., k, n), k
    = min(m, n)."""

def lu_factor(x: Array, *, pivot: builtins.bool = True) -> LUFactorResult[Tensor]:
    """(LU, pivots) of matrices (.., m, n): L below the diagonal, where it is 1, and U in one
    matrix; pivots (int32, from 1) says with which row each row was exchanged, in turn."""

def lu_factor_ex(
    x: Array, *, pivot: builtins.bool = True, check_errors: builtins.bool = False
) -> LUFactorExResult[Tensor]:
    """(LU, pivots, info) as `lu_factor`: info, int32, is the number of the first zero pivot, from
    1, or 0."""

@overload
def lu_solve(
    LU: Array,
    pivots: Array,
    B: Array,
    *,
    left: builtins.bool = True,
    adjoint: builtins.bool = False,
) -> Tensor:
    """The solution X of A @ X == B (X @ A == B with left=False, A.mH in the place of A with
    `adjoint`) from `lu_factor(A)`."""

@overload
def lu_solve(
    LU: Array,
    pivots: Array,
    *,
    b: Array,
    left: builtins.bool = True,
    adjoint: builtins.bool = False,
) -> Tensor:
    """The solution X of A @ X == B (X @ A == B with left=False, A.mH in the place of A with
    `adjoint`) from `lu_factor(A)`."""

@overload
def lu_solve(
    LU: Array,
    pivots: Array,
    *,
    other: Array,
    left: builtins.bool = True,
    adjoint: builtins.bool = False,
) -> Tensor:
    """The solution X of A @ X == B (X @ A == B with left=False, A.mH in the place of A with
    `adjoint`) from `lu_factor(A)`."""

def matmul(x: Array, other: Array) -> Tensor:
    """The matrix product `@`: (.., m, k) @ (.., k, n) -> (.., m, n), leading dimensions
    broadcast."""

def matrix_exp(x: Array) -> Tensor:
    """The exponential of square matrices: 1 + x + x @ x / 2 + ..; of Pade's approximant, scaling
    and squaring."""

def matrix_norm(
    x: Array,
    ord: builtins.int | builtins.float | str = "fro",
    dim: Any = ...,
    keepdim: builtins.bool = False,
    *,
    dtype: DTypeLike | None = None,
    axis: Any = ...,
    keepdims: builtins.bool = ...,
) -> Tensor:
    """The norms of matrices, in the two dimensions `dim`."""

def matrix_power(x: Array, n: builtins.int) -> Tensor:
    """The product of n times each matrix (.., m, m), by repeated squaring; for n below 0 of its
    inverse."""

def matrix_rank(
    x: Array,
    tol: Any = None,
    hermitian: builtins.bool = False,
    *,
    atol: Any = None,
    rtol: Any = None,
) -> Tensor:
    """How many singular values are above max(atol, rtol * the greatest), int64; as `pinv`. tol: an
    absolute tolerance alone."""

def matrix_transpose(x: Array) -> Tensor:
    """Every matrix, in the last two dimensions, transposed."""

def multi_dot(tensors: Any) -> Tensor:
    """The product of two matrices or more, in the order that takes the fewest multiplications; the
    first may be a row and the last a column, of one dimension."""

def norm(
    x: Array,
    ord: Order | None = None,
    dim: Any = None,
    keepdim: builtins.bool = False,
    *,
    dtype: DTypeLike | None = None,
    axis: Any = ...,
    keepdims: builtins.bool = ...,
) -> Tensor:
    """`vector_norm` along one dimension, `matrix_norm` in two."""

def outer(x: Array, vec2: Array) -> Tensor:
    """Every element of one vector times every element of another: (m,), (n,) -> (m, n)."""

def pinv(
    x: Array,
    rcond: Any = None,
    hermitian: builtins.bool = False,
    *,
    atol: Any = None,
    rtol: Any = None,
) -> Tensor:
    """The pseudo-inverses of matrices: (.., m, n) -> (.., n, m)."""

def qr(x: Array, mode: str = "reduced") -> QRResult[Tensor]:
    """(Q, R) with Q @ R == x, orthonormal columns of Q, and R upper triangular, by Householder's
    reflections (the signs are LAPACK's; of complex matrices the diagonal of R is real)."""

def slogdet(x: Array) -> SlogdetResult[Tensor]:
    """(sign, logabsdet): the determinants are sign * exp(logabsdet); of complex matrices the sign
    is a complex number of size 1. 0 and -inf of a singular matrix, whose derivative is inf or
    NaN."""

@overload
def solve(A: Array, B: Array, *, left: builtins.bool = True) -> Tensor:
    """The solution X of A @ X == B, or of X @ A == B with left=False, by LU with partial pivots."""

@overload
def solve(A: Array, *, b: Array, left: builtins.bool = True) -> Tensor:
    """The solution X of A @ X == B, or of X @ A == B with left=False, by LU with partial pivots."""

@overload
def solve(A: Array, *, other: Array, left: builtins.bool = True) -> Tensor:
    """The solution X of A @ X == B, or of X @ A == B with left=False, by LU with partial pivots."""

@overload
def solve_ex(
    A: Array, B: Array, *, left: builtins.bool = True, check_errors: builtins.bool = False
) -> SolveExResult[Tensor]:
    """(solve(A, B), info): info, int32, is the number of the first zero pivot, from 1, or 0."""

@overload
def solve_ex(
    A: Array, *, b: Array, left: builtins.bool = True, check_errors: builtins.bool = False
) -> SolveExResult[Tensor]:
    """(solve(A, B), info): info, int32, is the number of the first zero pivot, from 1, or 0."""

@overload
def solve_ex(
    A: Array, *, other: Array, left: builtins.bool = True, check_errors: builtins.bool = False
) -> SolveExResult[Tensor]:
    """(solve(A, B), info): info, int32, is the number of the first zero pivot, from 1, or 0."""

@overload
def solve_triangular(
    x: Array,
    B: Array,
    *,
    upper: builtins.bool,
    left: builtins.bool = True,
    unitriangular: builtins.bool = False,
) -> Tensor:
    """The solution of a triangular system: X with x @ X == B, or X @ x == B with left=False."""

@overload
def solve_triangular(
    x: Array,
    *,
    b: Array,
    upper: builtins.bool,
    left: builtins.bool = True,
    unitriangular: builtins.bool = False,
) -> Tensor:
    """The solution of a triangular system: X with x @ X == B, or X @ x == B with left=False."""

@overload
def solve_triangular(
    x: Array,
    *,
    other: Array,
    upper: builtins.bool,
    left: builtins.bool = True,
    unitriangular: builtins.bool = False,
) -> Tensor:
    """The solution of a triangular system: X with x @ X == B, or X @ x == B with left=False."""

def svd(x: Array, full_matrices: builtins.bool = True) -> SVDResult[Tensor]:
    """(U, S, Vh) with x == U @ diag(S) @ Vh: orthonormal columns of U and rows of Vh, singular
    values S >= 0 that descend."""

def svdvals(x: Array) -> Tensor:
    """The singular values of matrices, descending."""

def tensordot(
    x: Array, other: Array, dims: Axes = 2, *, dim: Axes = ..., axes: Axes = ..., axis: Axes = ...
) -> Tensor:
    """The sum over pairs of axes of a product: `dims` pairs the last n axes of x with the first n
    of `other`, or lists the axes of each: `([1, 2], [0, 1])`."""

def tensorinv(x: Array, ind: builtins.int = 2) -> Tensor:
    """The inverse of x for `tensordot`: the tensor whose last dimensions are the first `ind` of x,
    with tensordot(tensorinv(x, ind), x, ind) the identity."""

@overload
def tensorsolve(
    A: Array,
    B: Array,
    dims: Sequence[builtins.int] | None = None,
    *,
    dim: Sequence[builtins.int] | None = ...,
    axes: Sequence[builtins.int] | None = ...,
    axis: Sequence[builtins.int] | None = ...,
) -> Tensor:
    """X with tensordot(A, X, X.ndim) == B."""

@overload
def tensorsolve(
    A: Array,
    *,
    b: Array,
    dims: Sequence[builtins.int] | None = None,
    dim: Sequence[builtins.int] | None = ...,
    axes: Sequence[builtins.int] | None = ...,
    axis: Sequence[builtins.int] | None = ...,
) -> Tensor:
    """X with tensordot(A, X, X.ndim) == B."""

@overload
def tensorsolve(
    A: Array,
    *,
    other: Array,
    dims: Sequence[builtins.int] | None = None,
    dim: Sequence[builtins.int] | None = ...,
    axes: Sequence[builtins.int] | None = ...,
    axis: Sequence[builtins.int] | None = ...,
) -> Tensor:
    """X with tensordot(A, X, X.ndim) == B."""

def trace(x: Array, *, offset: builtins.int = 0, dtype: DTypeLike | None = None) -> Tensor:
    """The sum of the diagonal of each matrix; integers and bools are summed in int64, or in the
    `dtype` that is given."""

def vander(x: Array, *, N: builtins.int | None = None) -> Tensor:
    """The powers 0 to N - 1 of each element, in a new last dimension: (.., n) -> (.., n, N)."""

def vecdot(x: Array, y: Array, *, dim: builtins.int = -1, axis: builtins.int = ...) -> Tensor:
    """The sum along one axis of the product; the other axes broadcast."""

def vector_norm(
    x: Array,
    ord: builtins.int | builtins.float | str = 2,
    dim: Any = None,
    keepdim: builtins.bool = False,
    *,
    dtype: DTypeLike | None = None,
    axis: Any = ...,
    keepdims: builtins.bool = ...,
) -> Tensor:
    """(sum of |x|**ord)**(1/ord) of all elements, or along one dimension or several; inf and -inf
    give the greatest and the least |x|, 0 counts what is not 0."""
