"""Eigenvalues, singular values, and what follows from them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from treadle.graph import shapes
from treadle.graph.build import const, constant_of, iota, pad, reduce, reshape, where, zeros_like
from treadle.graph.call import Parts, transposed
from treadle.graph.elementwise import add, div, eq, gt, maximum, mul, neg, sub
from treadle.graph.linalg.adjoint import adjoint, turned
from treadle.graph.linalg.formula import Formula, matrices, opaque, results, square
from treadle.graph.linalg.jacobi import eigen, known_sizes, singular
from treadle.graph.linalg.panels import column_of
from treadle.graph.linalg.results import EighResult, SVDResult, TensorSVDResult
from treadle.graph.linear import matmul
from treadle.graph.movement import diagonal, narrow
from treadle.graph.parts import complex_of, imag, parts_of, real
from treadle.graph.public import public
from treadle.graph.reduction import sum_
from treadle.graph.shapes import text
from treadle.graph.simplify import simplify
from treadle.ir.dtype import int64
from treadle.ir.node import Node


def row_of(x: Node) -> Node:
    """(.., n) -> (.., 1, n)."""
    return reshape(x, (*x.shape[:-1], 1, x.shape[-1]))


def _inverse_differences(values: Node) -> Node:
    """1 / (x_j - x_i), 0 on the diagonal."""
    number = iota(values.shape[-1], int64)
    main = eq(number, column_of(number))
    return where(main, 0, div(1, where(main, 1, sub(row_of(values), column_of(values)))))


# ---- Hermitian matrices --------------------------------------------------------------------------
def _eigen_tangent(
    sources: Sequence[Node], outputs: Sequence[Node], tangents: Sequence[Node]
) -> list[Node]:
    """With dA Hermitian and P = V^H dA V: dw = diag P, dV = V (P / (w_j - w_i))."""
    values, vectors = outputs
    moved = mul(add(tangents[0], adjoint(tangents[0])), 0.5)
    inner = matmul(matmul(adjoint(vectors), moved), vectors)
    turn = mul(inner, _inverse_differences(values))
    return [real(diagonal(inner, 0, -2, -1)), matmul(vectors, turn)]


EIGH = Formula("eigh", 1, _eigen_tangent)


@public("eigh", source="PyTorch", method=False, linalg=True)
def eigh(x: Node, UPLO: str = "L") -> EighResult[Node]:
    """(eigenvalues, eigenvectors) of symmetric (complex ones: Hermitian) matrices (.., n, n): the
    values (.., n) are real and ascend, and the columns of the second are orthonormal. UPLO: which
    triangle is read, "L" or "U".

    Signs (phases) of vectors, and bases of equal values, are not determined; the derivative of a
    vector that belongs to two equal values is inf or NaN. The derivative is symmetric (Hermitian).

    >>> linalg.eigh(Tensor([[2.0, 0.0], [0.0, 1.0]]))[0].tolist()
    [1.0, 2.0]
    """
    a = square("eigh", x)
    known_sizes("eigh", a)
    if UPLO.upper() not in ("L", "U"):
        raise ValueError(f"linalg.eigh: UPLO is 'L' or 'U', not {UPLO!r}")
    is_lower = UPLO.upper() == "L"
    values, vectors = opaque(lambda a: eigen(a if is_lower else adjoint(a)), (a,), EIGH)
    return EighResult(values, vectors)


@public("eigvalsh", source="PyTorch", method=False, linalg=True)
def eigvalsh(x: Node, UPLO: str = "L") -> Node:
    """The eigenvalues of symmetric (Hermitian) matrices, ascending: the first result of `eigh`.

    >>> treadle.linalg.eigvalsh(Tensor([[1.0, 0.0], [0.0, 3.0]]))
    Tensor([1., 3.])
    """
    return eigh(x, UPLO)[0]


# ---- singular values -----------------------------------------------------------------------------
def _singular_tangent(
    sources: Sequence[Node], outputs: Sequence[Node], tangents: Sequence[Node]
) -> list[Node]:
    """With P = U^H dA V and F = 1 / (s_j^2 - s_i^2): ds = Re diag P,
    dU = U (F (P S + S P^H) + i Im diag P / 2S) + (1 - U U^H) dA V / S, and dV likewise with P^H:
    of the phases, which are not determined, both take half of what changes."""
    values, (moved,) = outputs[1], tangents
    width = values.shape[-1]
    u, v = outputs[0], adjoint(outputs[2])
    inner = matmul(matmul(adjoint(u), moved), v)
    factor = _inverse_differences(mul(values, values))

    def side(vectors: Node, inner: Node, image: Node) -> Node:
        scaled = mul(inner, row_of(values))
        found = matmul(vectors, mul(factor, add(scaled, adjoint(scaled))))
        if inner.dtype.is_complex:
            phase = div(imag(diagonal(inner, 0, -2, -1)), mul(values, 2))
            found = add(found, mul(vectors, row_of(complex_of(zeros_like(phase), phase))))
        if not shapes.same(vectors.shape[-2], width):
            beyond = sub(image, matmul(vectors, inner))
            found = add(found, div(beyond, row_of(values)))
        return found

    by_u = side(u, inner, matmul(moved, v))
    by_v = side(v, adjoint(inner), matmul(adjoint(moved), u))
    return [by_u, real(diagonal(inner, 0, -2, -1)), adjoint(by_v)]


class Full(Formula):
    """The derivative of all results of a full svd: those of the reduced one, and the vectors beyond
    k, which are not determined and have none. That of another result is asked for alone where
    reverse mode finds zeros for them."""

    def jvp(self, call: Node, tangents: Parts) -> Parts:
        raise NotImplementedError(self.words(call))

    def vjp(self, call: Node, cotangents: Parts, needed: Sequence[bool]) -> Parts:
        arriving = [x for x in cotangents[3:] if x is not None]
        beyond = simplify([part for x in arriving for part in parts_of(x)])
        if any(zero is None or zero.value != 0 for zero in map(constant_of, beyond)):
            raise NotImplementedError(self.words(call))

        def formula(seeds: Sequence[Node]) -> Parts:
            return self.tangents(call.src, results(call), seeds)

        return transposed(formula, call.src, cotangents[:3])

    def words(self, call: Node) -> str:
        """What the error says."""
        return (
            f"linalg.svd of matrices of shape {text(call.src[0].shape)}: with full_matrices=True "
            "the last vectors are not determined and have no derivative: use full_matrices=False"
        )


SVD = Formula("svd", 1, _singular_tangent)
SVD_FULL = Full("full svd", 1, _singular_tangent)


@public("svd", source="PyTorch", method=False, linalg=True)
def svd(x: Node, full_matrices: bool = True) -> SVDResult[Node]:
    """(U, S, Vh) with x == U @ diag(S) @ Vh: orthonormal columns of U and rows of Vh, singular
    values S >= 0 that descend.

    x: (.., m, n), k = min(m, n). U: (.., m, m), S: (.., k), Vh: (.., n, n); without
    `full_matrices`, (.., m, k) and (.., k, n). Signs (phases) are not determined; the derivative of
    vectors that belong to equal values is inf or NaN, and the vectors beyond k have none:
    NotImplementedError from reverse mode where they count, and from forward mode with
    `full_matrices` and m != n.

    >>> U, S, Vh = treadle.linalg.svd(Tensor([[3.0, 0.0], [0.0, 2.0]]))
    >>> S
    Tensor([3., 2.])
    """
    (a,) = matrices("svd", x)
    known_sizes("svd", a)
    rows, columns = a.shape[-2:]
    if not full_matrices or rows == columns:
        u, values, vh = opaque(lambda a: singular(a, False), (a,), SVD)
        return SVDResult(u, values, vh)

    def parts(a: Node) -> list[Node]:
        u, values, vh = singular(a, True)
        k = values.shape[-1]
        rest = narrow(u, -1, k, rows) if rows > columns else narrow(vh, -2, k, columns)
        return [narrow(u, -1, 0, k), values, narrow(vh, -2, 0, k), rest]

    u, values, vh, rest = opaque(parts, (a,), SVD_FULL)
    if rows > columns:
        return SVDResult(_beside(u, rest), values, vh)
    return SVDResult(u, values, turned(_beside(turned(vh), turned(rest))))


def _beside(x: Node, rest: Node) -> Node:
    """Columns joined as a sum of padded ones, whose derivative shows which of them count."""
    none = [(0, 0)] * (len(x.shape) - 1)
    left, right = pad(x, [*none, (0, rest.shape[-1])]), pad(rest, [*none, (x.shape[-1], 0)])
    return add(left, right)


@public("svdvals", source="PyTorch", method=False, linalg=True)
def svdvals(x: Node) -> Node:
    """The singular values of matrices, descending.

    >>> treadle.linalg.svdvals(Tensor([[3.0, 0.0], [0.0, 2.0]]))
    Tensor([3., 2.])
    """
    return svd(x, full_matrices=False)[1]


@public("svd", source="PyTorch")
def svd_of_tensor(x: Node, some: bool = True, compute_uv: bool = True) -> TensorSVDResult[Node]:
    """(U, S, V) with x == U @ diag(S) @ V.mH, as `linalg.svd` with full_matrices=not some; without
    `compute_uv`, U and V are zeros.

    >>> Tensor([[3.0, 0.0], [0.0, 4.0]]).svd()[1]
    Tensor([4., 3.])
    """
    u, values, vh = svd(x, full_matrices=not (some and compute_uv))
    if compute_uv:
        return TensorSVDResult(u, values, adjoint(vh))
    return TensorSVDResult(zeros_like(u), values, zeros_like(vh))


# ---- what follows from them ----------------------------------------------------------------------
def _threshold(name: str, x: Node, values: Node, atol: Any, rtol: Any) -> Node:
    """max(atol, rtol * the greatest value), as a column beside values. rtol is max(m, n) * epsilon
    unless one of them is given."""
    rows, columns = known_sizes(name, x)
    if rtol is None:
        epsilon = values.dtype.eps
        if atol is None:
            rtol = max(rows, columns) * epsilon
        else:  # a positive atol counts alone
            rtol = where(gt(atol, 0), 0, max(rows, columns) * epsilon)
    some = values.shape[-1] != 0
    greatest = reduce("max", values, -1) if some else const(0, values.dtype, values.shape[:-1])
    found = maximum(const(0, values.dtype) if atol is None else atol, mul(greatest, rtol))
    return reshape(found, (*found.shape, 1))


def _pinv_tangent(
    sources: Sequence[Node], outputs: Sequence[Node], tangents: Sequence[Node]
) -> list[Node]:
    """dP = -P dA P + P P^H dA^H (1 - A P) + (1 - P A) dA^H P^H P. Source: Golub and Pereyra, "The
    differentiation of pseudo-inverses", 1973."""
    a, (p,), (moved,) = sources[0], outputs, tangents
    back = adjoint(moved)
    left = matmul(matmul(p, adjoint(p)), back)
    right = matmul(matmul(back, adjoint(p)), p)
    first = add(neg(matmul(matmul(p, moved), p)), sub(left, matmul(matmul(left, a), p)))
    return [add(first, sub(right, matmul(p, matmul(a, right))))]


PINV = Formula("pinv", 1, _pinv_tangent)


@public("pinv", source="PyTorch", method=False, linalg=True)
def pinv(
    x: Node, rcond: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None
) -> Node:
    """The pseudo-inverses of matrices: (.., m, n) -> (.., n, m).

    SVDResult values up to max(atol, rtol * the greatest) count as 0; rtol (also called rcond) is
    max(m, n) * epsilon unless a positive atol is given. hermitian: x is symmetric (Hermitian), of
    which the lower triangle is read.

    >>> treadle.linalg.pinv(Tensor([[2.0, 0.0], [0.0, 0.0]]))
    Tensor([[0.5, 0. ],
            [0. , 0. ]])
    """
    (a,) = matrices("pinv", x)
    if 0 in known_sizes("pinv", a):
        return turned(a)
    rtol = rcond if rtol is None else rtol
    tolerances = [t for t in (atol, rtol) if isinstance(t, Node)]

    def inverse(a: Node, *given: Node) -> list[Node]:
        left = iter(given)
        own = [next(left) if isinstance(t, Node) else t for t in (atol, rtol)]
        if hermitian:
            values, vectors = eigen(a)
            sizes = where(gt(values, 0), values, neg(values))
            u, vh = vectors, adjoint(vectors)
        else:
            u, values, vh = singular(a, is_full=False)
            sizes = values
        counts = gt(sizes, _threshold("pinv", a, sizes, *own))
        inverted = where(counts, div(1, where(counts, values, 1)), 0)
        return [matmul(mul(adjoint(vh), row_of(inverted)), adjoint(u))]

    return opaque(inverse, (a, *tolerances), PINV)[0]


@public("pinverse", source="PyTorch")
def pinverse(x: Node, rcond: Any = 1e-15) -> Node:
    """`linalg.pinv` with rtol=rcond.

    >>> Tensor([[2.0]]).pinverse()
    Tensor([[0.5]])
    """
    return pinv(x, rtol=rcond)


@public("matrix_rank", source="PyTorch", method=False, linalg=True, gradient="int")
def matrix_rank(
    x: Node, tol: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None
) -> Node:
    """How many singular values are above max(atol, rtol * the greatest), int64; as `pinv`. tol: an
    absolute tolerance alone.

    >>> treadle.linalg.matrix_rank(Tensor([[1.0, 0.0], [0.0, 0.0]]))
    Tensor(1)
    """
    (a,) = matrices("matrix_rank", x)
    if tol is not None:
        atol, rtol = tol, 0
    values = eigvalsh(a) if hermitian else svdvals(a)
    sizes = where(gt(values, 0), values, neg(values))
    counts = gt(sizes, _threshold("matrix_rank", a, sizes, atol, rtol))
    return sum_(counts, -1)
