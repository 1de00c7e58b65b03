"""Factorizations as results, and systems solved from them: LU and Cholesky's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from treadle.graph import shapes
from treadle.graph.build import (
    broadcast_shapes,
    cast,
    dim_value,
    expand,
    gather,
    iota,
    reduce,
    reshape,
    where,
)
from treadle.graph.complexes import conjugate
from treadle.graph.creation import eye
from treadle.graph.elementwise import add, eq, gt, ne, sub
from treadle.graph.linalg.adjoint import adjoint, turned
from treadle.graph.linalg.factors import cholesky, inverse_order, lu_parts
from treadle.graph.linalg.formula import Formula, floating, matrices, opaque, square
from treadle.graph.linalg.panels import column_of
from treadle.graph.linalg.results import (
    CholeskyExResult,
    LUFactorExResult,
    LUFactorResult,
    LUResult,
)
from treadle.graph.linalg.solving import no_check
from treadle.graph.linalg.triangular import solved
from treadle.graph.linear import matmul
from treadle.graph.movement import cat, diagonal, movedim, narrow, tril, triu
from treadle.graph.public import public
from treadle.graph.scan import scan
from treadle.graph.shapes import text
from treadle.ir.dtype import int32, int64
from treadle.ir.node import Node


# ---- Cholesky ------------------------------------------------------------------------------------
@public("cholesky_ex", source="PyTorch", method=False, linalg=True)
def cholesky_ex(
    x: Node, *, upper: bool = False, check_errors: bool = False
) -> CholeskyExResult[Node]:
    """(cholesky(x), info): info, int32, is the order of the first leading minor that is not
    positive definite, or 0. From there on the factor is NaN.

    >>> treadle.linalg.cholesky_ex(Tensor([[4.0]]))
    CholeskyExResult(L=Tensor([[2.]]), info=Tensor(0, dtype=int32))
    """
    no_check("cholesky_ex", check_errors)
    factor = cholesky(x, upper)
    main = diagonal(factor, 0, -2, -1)
    return CholeskyExResult(factor, _first(ne(main, main)))


def _first(wrong: Node) -> Node:
    """The number of the first place that is true, from 1; 0 if there is none."""
    size = wrong.shape[-1]
    beyond = add(dim_value(size, int64), 1)
    first = reduce("min", where(wrong, add(iota(size, int64), 1), beyond), -1)
    return cast(where(gt(first, dim_value(size, int64)), 0, first), int32)


@public("cholesky_solve", source="PyTorch")
def cholesky_solve(x: Node, input2: Node, upper: bool = False) -> Node:
    """The solution X of A @ X == x from the Cholesky factor of A: A is L @ L.mH for a lower
    triangular L, or U.mH @ U with `upper`. Batches broadcast.

    >>> Tensor([[8.0]]).cholesky_solve(Tensor([[2.0]])).item()
    2.0
    """
    b, factor = matrices("cholesky_solve", x, input2)
    if not shapes.same(square("cholesky_solve", factor).shape[-1], b.shape[-2]):
        raise ValueError(
            f"cholesky_solve: a factor of shape {text(factor.shape)} does not fit a right-hand "
            f"side of shape {text(b.shape)}"
        )
    lower = adjoint(factor) if upper else factor
    return solved(adjoint(lower), solved(lower, b, upper=False), upper=True)


@public("cholesky_inverse", source="PyTorch")
def cholesky_inverse(x: Node, upper: bool = False) -> Node:
    """The inverse of A from its Cholesky factor x: A is x @ x.mH for a lower triangular x, or
    x.mH @ x with `upper`.

    >>> Tensor([[2.0]]).cholesky_inverse()
    Tensor([[0.25]])
    """
    factor = square("cholesky_inverse", x)
    return cholesky_solve(expand(eye(x.shape[-1], dtype=x.dtype), x.shape), factor, upper)


# ---- LU ------------------------------------------------------------------------------------------
def _lu_tangent(
    sources: Sequence[Node], outputs: Sequence[Node], tangents: Sequence[Node]
) -> list[Node | None]:
    """With A the rows in their order, and C = L^-1 dA U^-1 of the first k rows and columns:
    dL = L tril(C, -1) and dU = triu(C) U there; below that dL = (dA - L dU) U^-1, and to the right
    dU = L^-1 (dA - dL U)."""
    factors, order, _ = outputs
    rows, columns = factors.shape[-2:]
    width = shapes.least(rows, columns)
    moved = gather(tangents[0], expand(column_of(order), tangents[0].shape), -2)

    def part(x: Node, low: bool, right: bool) -> Node:
        x = narrow(x, -2, width, rows) if low else narrow(x, -2, 0, width)
        return narrow(x, -1, width, columns) if right else narrow(x, -1, 0, width)

    def over(x: Node) -> Node:
        return turned(solved(turned(upper), turned(x), upper=False))

    corner = part(factors, False, False)
    upper = triu(corner)
    lower = add(tril(corner, -1), eye(width, dtype=factors.dtype))
    inner = over(solved(lower, part(moved, False, False), upper=False, unit=True))
    by_lower, by_upper = matmul(lower, tril(inner, -1)), matmul(triu(inner), upper)
    found = add(by_lower, by_upper)
    if not shapes.same(rows, width):
        rest = sub(part(moved, True, False), matmul(part(factors, True, False), by_upper))
        found = cat([found, over(rest)], dim=-2)
    if not shapes.same(columns, width):
        rest = sub(part(moved, False, True), matmul(by_lower, part(factors, False, True)))
        found = cat([found, solved(lower, rest, upper=False, unit=True)], dim=-1)
    return [found, None, None]


LU = Formula("lu", 1, _lu_tangent)


def _factors(name: str, x: Node, pivot: bool) -> list[Node]:
    (a,) = matrices(name, x)
    if pivot is not True:
        raise NotImplementedError(f"linalg.{name}: pivot={pivot!r} is not supported, only True")
    if shapes.is_empty(a.shape):
        return lu_parts(a)
    return opaque(lu_parts, (a,), LU)


@public("lu_factor", source="PyTorch", method=False, linalg=True)
def lu_factor(x: Node, *, pivot: bool = True) -> LUFactorResult[Node]:
    """(LU, pivots) of matrices (.., m, n): L below the diagonal, where it is 1, and U in one
    matrix; pivots (int32, from 1) says with which row each row was exchanged, in turn.

    >>> treadle.linalg.lu_factor(Tensor([[1.0, 2.0], [2.0, 0.0]]))[1].tolist()
    [2, 2]
    """
    factors, _, pivots = _factors("lu_factor", x, pivot)
    return LUFactorResult(factors, add(pivots, 1))


@public("lu_factor_ex", source="PyTorch", method=False, linalg=True)
def lu_factor_ex(
    x: Node, *, pivot: bool = True, check_errors: bool = False
) -> LUFactorExResult[Node]:
    """(LU, pivots, info) as `lu_factor`: info, int32, is the number of the first zero pivot, from
    1, or 0.

    >>> treadle.linalg.lu_factor_ex(Tensor([[2.0]]))[2].item()
    0
    """
    no_check("lu_factor_ex", check_errors)
    factors, pivots = lu_factor(x, pivot=pivot)
    return LUFactorExResult(factors, pivots, _first(eq(diagonal(factors, 0, -2, -1), 0)))


@public("lu", source="PyTorch", method=False, linalg=True)
def lu(x: Node, *, pivot: bool = True) -> LUResult[Node]:
    """(P, L, U) of matrices (.., m, n) with P @ L @ U == x: a permutation (.., m, m), a lower
    triangular matrix with ones on its diagonal (.., m, k) and an upper triangular one (.., k, n),
    k = min(m, n).

    >>> treadle.linalg.lu(Tensor([[1.0, 2.0], [2.0, 0.0]]))[2]
    Tensor([[2., 0.],
            [0., 2.]])
    """
    factors, order, _ = _factors("lu", x, pivot)
    rows, columns = factors.shape[-2:]
    width = shapes.least(rows, columns)
    lower = tril(narrow(factors, -1, 0, width), -1)
    lower = add(lower, eye(rows, width, dtype=factors.dtype))
    places = column_of(iota(rows, int64))
    found = reshape(order, (*order.shape[:-1], 1, rows))
    permutation = cast(eq(found, places), factors.dtype)
    return LUResult(permutation, lower, triu(narrow(factors, -2, 0, width)))


def _order_of(pivots: Node, size: Any) -> Node:
    """The order of rows that exchanges (from 1) make, one after the other."""
    number = iota(size, int64)

    def step(order: Node, now: Any) -> tuple[Node, tuple[()]]:
        place, pivot = now
        pivot = column_of(pivot)
        swapped = where(eq(number, place), pivot, where(eq(number, pivot), place, number))
        return gather(order, swapped, -1), ()

    start = expand(number, (*pivots.shape[:-1], size))
    steps = movedim(sub(cast(pivots, int64), 1), -1, 0)
    order: Node = scan(step, start, (iota(pivots.shape[-1], int64), steps))[0]
    return order


@public("lu_solve", source="PyTorch", method=False, linalg=True)
def lu_solve(LU: Node, pivots: Node, B: Node, *, left: bool = True, adjoint: bool = False) -> Node:
    """The solution X of A @ X == B (X @ A == B with left=False, A.mH in the place of A with
    `adjoint`) from `lu_factor(A)`. Batches broadcast; inf and NaN where A is singular.

    >>> factors, pivots = treadle.linalg.lu_factor(Tensor([[2.0, 0.0], [0.0, 4.0]]))
    >>> treadle.linalg.lu_solve(factors, pivots, Tensor([[2.0], [2.0]])).tolist()
    [[1.0], [0.5]]
    """
    factors, b = floating("lu_solve", LU, B)
    factors, (b,) = square("lu_solve", factors), matrices("lu_solve", b)
    if not left:
        b = turned(b)
    size = factors.shape[-1]
    if not shapes.same(b.shape[-2], size) or not shapes.same(pivots.shape[-1], size):
        raise ValueError(
            f"linalg.lu_solve: factors of shape {text(LU.shape)} and pivots of shape "
            f"{text(pivots.shape)} do not fit a right-hand side of shape {text(B.shape)}"
        )
    batch = broadcast_shapes(factors.shape[:-2], b.shape[:-2], name="linalg.lu_solve")
    b = expand(b, (*batch, *b.shape[-2:]))
    order = expand(_order_of(pivots, size), (*batch, size))
    factors = conjugate(factors) if adjoint else factors
    if adjoint is left:  # U^T L^T P^T x = b
        middle = solved(turned(factors), b, upper=False)
        last = solved(turned(factors), middle, upper=True, unit=True)
        x = gather(last, expand(column_of(inverse_order(order)), b.shape), -2)
    else:
        first = gather(b, expand(column_of(order), b.shape), -2)
        x = solved(factors, solved(factors, first, upper=False, unit=True), upper=True)
    return x if left else turned(x)
