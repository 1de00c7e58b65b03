"""Systems with a triangular matrix, by substitution: one loop over blocks of rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from treadle.graph import shapes
from treadle.graph.build import (
    broadcast_shapes,
    const,
    contiguous,
    expand,
    iota,
    reshape,
    where,
)
from treadle.graph.call import Parts, Rule
from treadle.graph.elementwise import add, div, eq, floor_divide, neg, sub
from treadle.graph.linalg.adjoint import adjoint, turned
from treadle.graph.linalg.formula import matrices, opaque, results
from treadle.graph.linalg.panels import (
    PANEL,
    block_of,
    column_of,
    cut,
    panels,
    repeated,
    stretched,
    with_ones,
)
from treadle.graph.linalg.results import TriangularSolveResult
from treadle.graph.linear import matmul
from treadle.graph.movement import diagonal, movedim, narrow, tril, triu
from treadle.graph.public import public
from treadle.graph.scan import scan
from treadle.graph.shapes import text
from treadle.ir.dtype import int64
from treadle.ir.node import Node


def substituted(a: Node, b: Node, upper: bool, unit: bool) -> Node:
    """x with a @ x == b, of which only the triangle is read: a loop that finds a block of rows of x
    per trip, from a product with those that are known; those that are not known yet are 0."""
    size = b.shape[-2]
    count = panels(size)
    if count == 1:
        return _by_rows(a, b, upper, unit)
    width = count * PANEL
    a = with_ones(triu(a) if upper else tril(a), width)
    b = stretched(b, width, b.shape[-1])
    number = column_of(floor_divide(iota(width, int64), PANEL))

    def step(x: Node, now: Any) -> tuple[Node, tuple[()]]:
        block, factors, wanted = now
        rest = contiguous(sub(wanted, matmul(factors, x)))
        found = _by_rows(contiguous(block_of(factors, block, -1)), rest, upper, unit)
        return where(eq(number, block), repeated(found, -2, width), x), ()

    parts = (iota(count, int64), cut(a, -2), cut(b, -2))
    x: Node = scan(step, const(0, b.dtype, b.shape), parts, reverse=upper)[0]
    return narrow(x, -2, 0, size)


def _by_rows(a: Node, b: Node, upper: bool, unit: bool) -> Node:
    """The same, a row of x per trip: row i is (b_i - sum of a_ij x_j over the rows that are known)
    / a_ii."""
    size = b.shape[-2]
    strict = triu(a, 1) if upper else tril(a, -1)
    number = column_of(iota(size, int64))
    parts: tuple[Node, ...] = (iota(size, int64), movedim(strict, -2, 0), movedim(b, -2, 0))
    if not unit:
        parts = (*parts, movedim(diagonal(a, 0, -2, -1), -1, 0))

    def step(x: Node, now: Any) -> tuple[Node, tuple[()]]:
        row, factors, wanted, *scale = now
        known = matmul(reshape(factors, (*factors.shape[:-1], 1, size)), x)
        found = sub(reshape(wanted, known.shape), known)
        if scale:
            found = div(found, reshape(scale[0], (*scale[0].shape, 1, 1)))
        return where(eq(number, row), found, x), ()

    x: Node = scan(step, const(0, b.dtype, b.shape), parts, reverse=upper)[0]
    return x


class Substitution(Rule):
    """The derivative of the solution of a triangular system, by matrix and right-hand side."""

    def __init__(self, upper: bool, unit: bool) -> None:
        super().__init__("triangular solve")
        self.upper, self.unit = upper, unit

    def jvp(self, call: Node, tangents: Parts) -> Parts:
        """d(a x) = da x + a dx = db."""
        (x,) = results(call)
        by_matrix, by_side = tangents[:2]
        right = by_side
        if by_matrix is not None:
            moved = neg(matmul(self.triangle(by_matrix), x))
            right = moved if right is None else add(right, moved)
        return [None if right is None else solved(call.src[0], right, self.upper, self.unit)]

    def vjp(self, call: Node, cotangents: Parts, needed: Sequence[bool]) -> Parts:
        """Of b it is that of x through the inverse of the adjoint, of a minus that times x."""
        (x,), (arriving,) = results(call), cotangents
        none = [None] * len(call.src)
        if arriving is None:
            return none
        back = solved(adjoint(call.src[0]), arriving, not self.upper, self.unit)
        by_matrix = neg(self.triangle(matmul(back, adjoint(x)))) if needed[0] else None
        return [by_matrix, back, *none[2:]]

    def triangle(self, x: Node) -> Node:
        """The part of the matrix that is read."""
        return triu(x, int(self.unit)) if self.upper else tril(x, -int(self.unit))


RULES = {
    (upper, unit): Substitution(upper, unit) for upper in (False, True) for unit in (False, True)
}


def solved(a: Node, b: Node, upper: bool, unit: bool = False) -> Node:
    """x with a @ x == b for a triangular matrix a; batches broadcast."""
    batch = broadcast_shapes(a.shape[:-2], b.shape[:-2], name="solve_triangular")
    a, b = expand(a, (*batch, *a.shape[-2:])), expand(b, (*batch, *b.shape[-2:]))
    return opaque(lambda a, b: [substituted(a, b, upper, unit)], (a, b), RULES[upper, unit])[0]


@public("solve_triangular", source="PyTorch", method=False, linalg=True)
def solve_triangular(
    x: Node, B: Node, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> Node:
    """The solution of a triangular system: X with x @ X == B, or X @ x == B with left=False.

    x: (.., n, n), of which the other triangle is not read, and with `unitriangular` neither is the
    diagonal, which is taken to be 1. B: (.., n, k), or (.., k, n); batches broadcast. A zero on
    the diagonal gives inf and NaN.

    >>> A = Tensor([[2.0, 0.0], [1.0, 1.0]])
    >>> treadle.linalg.solve_triangular(A, Tensor([[2.0], [3.0]]), upper=False)
    Tensor([[1.],
            [2.]])
    """
    a, b = matrices("solve_triangular", x, B)
    _check(a, b, left)
    if left:
        return solved(a, b, upper, unitriangular)
    return turned(solved(turned(a), turned(b), not upper, unitriangular))


def _check(a: Node, b: Node, left: bool) -> None:
    size = b.shape[-2 if left else -1]
    if not (shapes.same(a.shape[-2], a.shape[-1]) and shapes.same(a.shape[-1], size)):
        raise ValueError(
            f"linalg.solve_triangular: a matrix of shape {text(a.shape)} does not fit a right-hand "
            f"side of shape {text(b.shape)}"
        )


@public("triangular_solve", source="PyTorch")
def triangular_solve(
    x: Node, A: Node, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> TriangularSolveResult[Node]:
    """(X, A) with A @ X == x, or A.T @ X == x with `transpose`, for a triangular matrix A of which
    the other triangle is not read; batches broadcast.

    >>> A = Tensor([[2.0, 0.0], [1.0, 1.0]])
    >>> Tensor([[2.0], [3.0]]).triangular_solve(A, upper=False)[0]
    Tensor([[1.],
            [2.]])
    """
    b, a = matrices("triangular_solve", x, A)
    _check(a, b, left=True)
    wanted = turned(a) if transpose else a
    batch = broadcast_shapes(a.shape[:-2], b.shape[:-2], name="triangular_solve")
    solution = solved(wanted, b, upper is not transpose, unitriangular)
    return TriangularSolveResult(solution, expand(a, (*batch, *a.shape[-2:])))
