"""Factorizations of matrices, each a loop over columns: Cholesky's, LU with pivots, QR."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from treadle.graph import shapes
from treadle.graph.build import (
    alu,
    cast,
    const,
    expand,
    gather,
    iota,
    reduce,
    reshape,
    where,
)
from treadle.graph.creation import eye
from treadle.graph.elementwise import abs_, add, div, eq, ge, gt, logical_and, lt, mul, neg, sub
from treadle.graph.functions import sqrt
from treadle.graph.linalg.formula import Formula, matrices, opaque, square
from treadle.graph.linalg.triangular import solved
from treadle.graph.linear import matmul
from treadle.graph.movement import movedim, narrow, transpose, tril, triu
from treadle.graph.public import public
from treadle.graph.reduction import argmax
from treadle.graph.scan import scan
from treadle.graph.shapes import Dim
from treadle.ir import ops
from treadle.ir.dtype import int32, int64
from treadle.ir.node import Node


def turned(x: Node) -> Node:
    """The transposes of matrices."""
    return transpose(x, -2, -1)


def column_of(number: Node) -> Node:
    """(n,) -> (n, 1)."""
    return reshape(number, (*number.shape, 1))


def at(x: Node, place: Node, axis: int) -> Node:
    """The slice of x at a place that the device knows, with the axis of size 1."""
    shape = list(x.shape)
    shape[axis] = 1
    return gather(x, expand(reshape(place, (1,) * len(shape)), tuple(shape)), axis)


def inverse_order(order: Node) -> Node:
    """The inverse of permutations."""
    size = order.shape[-1]
    places = expand(iota(size, int64), (*order.shape, size))
    found = eq(column_of(order), places)  # [i, j]: order[i] == j
    numbers = expand(column_of(iota(size, int64)), places.shape)
    return reduce("add", where(found, numbers, 0), -2)


# ---- Cholesky ------------------------------------------------------------------------------------
def _lower(a: Node) -> list[Node]:
    """The lower Cholesky factor, column by column: column j of a less what the columns before it
    make of row j, divided by the root of its element j. Above the diagonal nothing is read."""
    size = a.shape[-1]
    number = iota(size, int64)

    def step(factor: Node, now: Any) -> tuple[Node, tuple[()]]:
        place, column = now
        row = at(factor, place, -2)
        rest = sub(column_of(column), matmul(factor, turned(row)))
        scaled = div(rest, sqrt(at(rest, place, -2)))
        here = eq(number, place)
        kept = where(ge(column_of(number), place), scaled, 0)
        return where(here, kept, factor), ()

    columns = movedim(a, -1, 0)
    factor, _ = scan(step, const(0, a.dtype, a.shape), (number, columns))
    return [factor]


def half(x: Node) -> Node:
    """The lower triangle with half the diagonal: of a symmetric S, half(S) + half(S).T is S."""
    return add(tril(x, -1), mul(tril(triu(x)), 0.5))


def _lower_tangent(
    inputs: Sequence[Node], outputs: Sequence[Node], tangents: Sequence[Node]
) -> list[Node]:
    """With dA symmetric: dL = L half(L^-1 dA L^-T). Source: Murray, "Differentiation of the
    Cholesky decomposition", 2016."""
    (factor,), (moved,) = outputs, tangents
    moved = mul(add(moved, turned(moved)), 0.5)
    inner = solved(factor, turned(solved(factor, moved, upper=False)), upper=False)
    return [matmul(factor, half(inner))]


CHOLESKY = Formula("cholesky", 1, _lower_tangent)


@public("cholesky", source="PyTorch", linalg=True)
def cholesky(x: Node, upper: bool = False) -> Node:
    """The lower triangular L with L @ L.T == x for symmetric positive definite matrices (.., n, n),
    of which the lower triangle is read; with `upper`, L.T, from the upper triangle.

    NaN where a matrix is not positive definite. The derivative is symmetric.

    >>> treadle.linalg.cholesky(Tensor([[4.0, 2.0], [2.0, 5.0]]))
    Tensor([[2., 0.],
            [1., 2.]])
    """
    a = square("cholesky", x)
    (factor,) = opaque(_lower, (turned(a) if upper else a,), CHOLESKY)
    return turned(factor) if upper else factor


# ---- LU ------------------------------------------------------------------------------------------
def lu_parts(a: Node) -> list[Node]:
    """[factors, order, pivots] of (.., m, n): L below the diagonal and U in one matrix, with
    a[order] == L @ U, and the row (int32, from 0) that each row was exchanged with.

    In trip j the row with the greatest element of column j is exchanged with row j, and its
    multiples are taken from the rows below. A column of zeros is left as it is.
    """
    *batch, rows, columns = a.shape
    down, along = iota(rows, int64), iota(columns, int64)
    order = expand(down, (*batch, rows))

    def step(carry: Any, place: Node) -> tuple[Any, Node]:
        factors, order = carry
        column = reshape(at(factors, place, -1), (*batch, rows))
        size = where(ge(down, place), abs_(column), -1)
        pivot = argmax(size, -1, keepdim=True)
        swapped = where(eq(down, place), pivot, where(eq(down, pivot), place, down))
        order = gather(order, swapped, -1)
        factors = gather(factors, expand(column_of(swapped), factors.shape), -2)
        row = at(factors, place, -2)
        below = at(factors, place, -1)
        corner = at(row, place, -1)
        multiples = where(eq(corner, 0), 0, div(below, corner))
        under = gt(column_of(down), place)
        rest = sub(factors, mul(multiples, row))
        factors = where(
            logical_and(under, gt(along, place)),
            rest,
            where(logical_and(under, eq(along, place)), multiples, factors),
        )
        return (factors, order), cast(reshape(pivot, tuple(batch)), int32)

    steps = shapes.least(rows, columns)
    if rows == 0 or columns == 0:
        return [a, order, const(0, int32, (*batch, 0))]
    (factors, order), pivots = scan(step, (a, order), iota(steps, int64))
    return [factors, order, movedim(pivots, 0, -1)]


# ---- QR ------------------------------------------------------------------------------------------
def reflected(a: Node, width: Dim) -> list[Node]:
    """[Q, R] of (.., m, n), with `width` columns of Q and rows of R.

    Trip j reflects what is below the diagonal of column j onto it: H = 1 - v v^T (2 / v^T v), with
    v = x + sign(x_j) |x| e_j, which cancels nothing. A column with nothing below the diagonal stays
    as it is. A second loop, backwards, applies the reflections to the first columns of 1.
    """
    rows, columns = a.shape[-2:]
    down = column_of(iota(rows, int64))

    def step(upper: Node, place: Node) -> tuple[Node, Node]:
        column = at(upper, place, -1)
        below = where(gt(down, place), column, 0)
        scale = reduce("max", abs_(below), -2, True)
        corner = at(column, place, -2)
        flat = eq(scale, 0)
        scale = where(flat, 1, alu(ops.MAX, scale, abs_(corner)))
        below, corner = div(below, scale), div(corner, scale)
        squares = reduce("add", mul(below, below), -2, True)
        length = sqrt(add(squares, mul(corner, corner)))
        signed = where(lt(corner, 0), neg(length), length)
        vector = where(eq(down, place), add(corner, signed), below)
        norm = add(squares, mul(add(corner, signed), add(corner, signed)))
        # normalized so that H = 1 - v v^T
        vector = where(flat, 0, div(vector, sqrt(div(norm, 2))))
        vector = where(ge(down, place), vector, 0)
        upper = sub(upper, mul(vector, matmul(turned(vector), upper)))
        exact = where(
            flat, at(upper, place, -1), where(eq(down, place), neg(mul(signed, scale)), 0)
        )
        here = logical_and(eq(iota(columns, int64), place), ge(down, place))
        return where(here, exact, upper), vector

    steps = shapes.least(rows, columns)
    upper, vectors = scan(step, a, iota(steps, int64))

    def back(q: Node, vector: Node) -> tuple[Node, tuple[()]]:
        return sub(q, mul(vector, matmul(turned(vector), q))), ()

    start = expand(eye(rows, width, dtype=a.dtype), (*a.shape[:-2], rows, width))
    q, _ = scan(back, start, vectors, reverse=True)
    return [q, triu(narrow(upper, -2, 0, width))]


def _qr_tangent(
    inputs: Sequence[Node], outputs: Sequence[Node], tangents: Sequence[Node]
) -> list[Node]:
    """With C = Q^T dA R^-1 (of the square part of R) and W = tril(C, -1) - tril(C, -1)^T:
    dQ = dA R^-1 - Q C + Q W, dR = Q^T dA - W R."""
    (q, r), (moved,) = outputs, tangents
    width = r.shape[-2]
    square_part, first = narrow(r, -1, 0, width), narrow(moved, -1, 0, width)
    quotient = turned(solved(turned(square_part), turned(first), upper=False))
    inner = matmul(turned(q), quotient)
    strict = tril(inner, -1)
    turn = sub(strict, turned(strict))
    by_q = add(sub(quotient, matmul(q, inner)), matmul(q, turn))
    return [by_q, sub(matmul(turned(q), moved), matmul(turn, r))]


def _no_tangent(
    inputs: Sequence[Node], outputs: Sequence[Node], tangents: Sequence[Node]
) -> list[Node]:
    rows, columns = inputs[0].shape[-2:]
    raise NotImplementedError(
        f"linalg.qr: mode='complete' has no derivative for matrices of {shapes.dim_text(rows)} "
        f"rows and {shapes.dim_text(columns)} columns, because the last columns of Q are not "
        "determined: use mode='reduced'"
    )


QR = Formula("qr", 1, _qr_tangent)
QR_COMPLETE = Formula("complete qr", 1, _no_tangent)


@public("qr", source="PyTorch", method=False, linalg=True)
def qr(x: Node, mode: str = "reduced") -> tuple[Node, Node]:
    """(Q, R) with Q @ R == x, orthonormal columns of Q, and R upper triangular, by Householder's
    reflections (the signs are LAPACK's).

    x: (.., m, n), k = min(m, n). "reduced": Q is (.., m, k) and R (.., k, n); "complete": (.., m,
    m) and (.., m, n); "r": Q is empty. A derivative asks for the first k columns to be independent,
    and with "complete" for m <= n.

    >>> q, r = treadle.linalg.qr(Tensor.ones(3, 2))
    >>> q.shape, r.shape
    ((3, 2), (2, 2))
    """
    (a,) = matrices("qr", x)
    if mode not in ("reduced", "complete", "r"):
        raise ValueError(f"linalg.qr: mode is 'reduced', 'complete' or 'r', not {mode!r}")
    rows, columns = a.shape[-2:]
    width = rows if mode == "complete" else shapes.least(rows, columns)
    is_thin = shapes.same(width, shapes.least(rows, columns))
    q, r = opaque(lambda a: reflected(a, width), (a,), QR if is_thin else QR_COMPLETE)
    return (const(0, a.dtype, (0,)) if mode == "r" else q), r


@public("qr", source="PyTorch")
def qr_of_tensor(x: Node, some: bool = True) -> tuple[Node, Node]:
    """`linalg.qr`, reduced if `some`, else complete.

    >>> Tensor([[2.0]]).qr()[0].abs()
    Tensor([[1.]])
    """
    return qr(x, "reduced" if some else "complete")
