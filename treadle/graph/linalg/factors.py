"""Factorizations of matrices, loops over panels of columns: Cholesky's, LU with pivots, QR."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from treadle.graph import shapes
from treadle.graph.build import (
    alu,
    cast,
    const,
    contiguous,
    expand,
    gather,
    iota,
    reduce,
    reshape,
    where,
    zeros_like,
)
from treadle.graph.creation import eye
from treadle.graph.elementwise import (
    abs_,
    add,
    div,
    eq,
    floor_divide,
    ge,
    gt,
    logical_and,
    lt,
    mul,
    neg,
    sub,
)
from treadle.graph.functions import sqrt
from treadle.graph.linalg.adjoint import (
    adjoint,
    direction,
    made_real,
    squared,
    turned,
)
from treadle.graph.linalg.formula import Formula, matrices, opaque, square
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
from treadle.graph.linalg.results import QRResult
from treadle.graph.linalg.triangular import solved, substituted
from treadle.graph.linear import matmul
from treadle.graph.movement import movedim, narrow, tril, triu
from treadle.graph.parts import complex_of, imag, real
from treadle.graph.public import public
from treadle.graph.reduction import argmax
from treadle.graph.scan import scan
from treadle.graph.shapes import Dim
from treadle.ir import ops
from treadle.ir.dtype import int32, int64
from treadle.ir.node import Node


def at(x: Node, place: Node, axis: int) -> Node:
    """The slice of x at a place that the device knows, with the axis of size 1. Of an axis without
    elements, which no loop ever asks for, zeros."""
    shape = list(x.shape)
    shape[axis] = 1
    if x.shape[axis] == 0:
        return const(0, x.dtype, tuple(shape))
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
    """The lower Cholesky factor, panel by panel: a panel of a less what the columns before it make
    of it, which is a product, and then column by column. Above the diagonal nothing is read."""
    size = a.shape[-1]
    count = panels(size)
    if count == 1:
        return [_lower_panel(a, const(0, int64))]
    width = count * PANEL
    along = floor_divide(iota(width, int64), PANEL)

    def step(factor: Node, now: Any) -> tuple[Node, tuple[()]]:
        block, panel = now
        rest = sub(panel, matmul(factor, adjoint(block_of(factor, block, -2))))
        done = _lower_panel(contiguous(rest), mul(block, PANEL))
        return where(eq(along, block), repeated(done, -1, width), factor), ()

    wide = with_ones(a, width)
    start = const(0, a.dtype, wide.shape)
    factor, _ = scan(step, start, (iota(count, int64), cut(wide, -1)))
    return [narrow(narrow(factor, -2, 0, size), -1, 0, size)]


def _lower_panel(a: Node, first: Node) -> Node:
    """The columns of a Cholesky factor from those of a matrix (.., m, n), of which the diagonal
    begins in row `first`: column j less what the columns before it make of its row of the diagonal,
    divided by the root of the element there."""
    rows, columns = a.shape[-2:]
    down = column_of(iota(rows, int64))
    number = iota(columns, int64)

    def step(factor: Node, now: Any) -> tuple[Node, tuple[()]]:
        place, column = now
        corner = add(place, first)
        rest = sub(column_of(column), matmul(factor, adjoint(at(factor, corner, -2))))
        scaled = div(rest, sqrt(real(at(rest, corner, -2))))
        scaled = made_real(scaled, eq(down, corner))
        kept = where(ge(down, corner), scaled, 0)
        return where(eq(number, place), kept, factor), ()

    factor: Node = scan(step, const(0, a.dtype, a.shape), (number, movedim(a, -1, 0)))[0]
    return factor


def half(x: Node) -> Node:
    """The lower triangle with half the diagonal: of a Hermitian S, half(S) + half(S)^H is S."""
    return add(tril(x, -1), mul(tril(triu(x)), 0.5))


def _lower_tangent(
    inputs: Sequence[Node], outputs: Sequence[Node], tangents: Sequence[Node]
) -> list[Node]:
    """With dA Hermitian: dL = L half(L^-1 dA L^-H). Source: Murray, "Differentiation of the
    Cholesky decomposition", 2016."""
    (factor,), (moved,) = outputs, tangents
    moved = mul(add(moved, adjoint(moved)), 0.5)
    inner = solved(factor, adjoint(solved(factor, moved, upper=False)), upper=False)
    return [matmul(factor, half(inner))]


CHOLESKY = Formula("cholesky", 1, _lower_tangent)


@public("cholesky", source="PyTorch", linalg=True)
def cholesky(x: Node, upper: bool = False) -> Node:
    """The lower triangular L with L @ L.mH == x for positive definite matrices (.., n, n), which
    are symmetric (complex ones: Hermitian) and of which the lower triangle is read; with `upper`,
    L.mH, from the upper triangle.

    NaN where a matrix is not positive definite. The derivative is symmetric (Hermitian).

    >>> treadle.linalg.cholesky(Tensor([[4.0, 2.0], [2.0, 5.0]]))
    Tensor([[2., 0.],
            [1., 2.]])
    """
    a = square("cholesky", x)
    (factor,) = opaque(_lower, (adjoint(a) if upper else a,), CHOLESKY)
    return adjoint(factor) if upper else factor


# ---- LU ------------------------------------------------------------------------------------------
def lu_parts(a: Node) -> list[Node]:
    """[factors, order, pivots] of (.., m, n): L below the diagonal and U in one matrix, with
    a[order] == L @ U, and the row (int32, from 0) that each row was exchanged with.

    Trip by trip a panel is factored, its exchanges are those of all rows, its rows of U come from a
    triangular system, and the product of both is taken from what is below and to the right.
    """
    *batch, rows, columns = a.shape
    order = expand(iota(rows, int64), (*batch, rows))
    if rows == 0 or columns == 0:
        return [a, order, const(0, int32, (*batch, 0))]
    steps = shapes.least(rows, columns)
    count = panels(steps)
    if count == 1:
        return _lu_panel(a, const(0, int64), steps)
    height, width = (max(count, panels(size)) * PANEL for size in (rows, columns))
    down, along = (floor_divide(iota(size, int64), PANEL) for size in (height, width))
    down = column_of(down)

    def step(carry: Any, block: Node) -> tuple[Any, Node]:
        factors, order = carry
        first = mul(block, PANEL)
        panel, moves, pivots = _lu_panel(contiguous(block_of(factors, block, -1)), first, PANEL)
        rest = contiguous(gather(factors, expand(column_of(moves), factors.shape), -2))
        corner = block_of(panel, block, -2)
        top = substituted(corner, block_of(rest, block, -2), upper=False, unit=True)
        below, right = gt(down, block), gt(along, block)
        less = sub(rest, matmul(where(below, panel, 0), top))
        factors = where(logical_and(below, right), less, rest)
        factors = where(logical_and(eq(down, block), right), repeated(top, -2, height), factors)
        factors = where(eq(along, block), repeated(panel, -1, width), factors)
        return (factors, gather(order, moves, -1)), pivots

    wide = stretched(a, height, width)
    start = (wide, expand(iota(height, int64), (*batch, height)))
    (factors, order), pivots = scan(step, start, iota(count, int64))
    pivots = reshape(movedim(pivots, 0, -2), (*batch, count * PANEL))
    factors = narrow(narrow(factors, -2, 0, rows), -1, 0, columns)
    return [factors, narrow(order, -1, 0, rows), narrow(pivots, -1, 0, steps)]


def _pivot_size(x: Node) -> Node:
    """By which pivots are chosen: |x|, of complex numbers |re| + |im|, as LAPACK does."""
    return add(abs_(real(x)), abs_(imag(x))) if x.dtype.is_complex else abs_(x)


def _lu_panel(a: Node, first: Node, steps: Dim) -> list[Node]:
    """As `lu_parts`, of columns whose diagonal begins in row `first`.

    In trip j the row with the greatest element of column j is exchanged with the row of the
    diagonal, and its multiples are taken from the rows below. A column of zeros is left as it is.
    """
    *batch, rows, columns = a.shape
    down, along = iota(rows, int64), iota(columns, int64)

    def step(carry: Any, place: Node) -> tuple[Any, Node]:
        factors, order = carry
        corner = add(place, first)
        column = reshape(at(factors, place, -1), (*batch, rows))
        size = where(ge(down, corner), _pivot_size(column), -1)
        pivot = argmax(size, -1, keepdim=True)
        swapped = where(eq(down, corner), pivot, where(eq(down, pivot), corner, down))
        order = gather(order, swapped, -1)
        factors = gather(factors, expand(column_of(swapped), factors.shape), -2)
        row = at(factors, corner, -2)
        below = at(factors, place, -1)
        element = at(row, place, -1)
        multiples = where(eq(element, 0), 0, div(below, element))
        under = gt(column_of(down), corner)
        rest = sub(factors, mul(multiples, row))
        factors = where(
            logical_and(under, gt(along, place)),
            rest,
            where(logical_and(under, eq(along, place)), multiples, factors),
        )
        return (factors, order), cast(reshape(pivot, tuple(batch)), int32)

    start = (a, expand(down, (*batch, rows)))
    (factors, order), pivots = scan(step, start, iota(steps, int64))
    return [factors, order, movedim(pivots, 0, -1)]


# ---- QR ------------------------------------------------------------------------------------------
def reflected(a: Node, width: Dim) -> list[Node]:
    """[Q, R] of (.., m, n), with `width` columns of Q and rows of R.

    The reflections of a panel are together 1 - U T V^H, with the inverse of T the upper triangle of
    V^H U with ones on its diagonal. A second loop, backwards, applies them to the first columns of
    1. Source: Joffrain and others, "Accumulating Householder transformations, revisited", 2006.
    """
    rows, columns = a.shape[-2:]
    steps = shapes.least(rows, columns)
    count = panels(steps)
    batch = a.shape[:-2]
    if count == 1:
        upper, kept = _reflected_panel(a, const(0, int64), steps)

        def back_one(q: Node, now: Any) -> tuple[Node, tuple[()]]:
            vector, scaled = now[0], now[-1]
            return sub(q, mul(scaled, matmul(adjoint(vector), q))), ()

        start = expand(eye(rows, width, dtype=a.dtype), (*batch, rows, width))
        q, _ = scan(back_one, start, kept, reverse=True)
        return [q, triu(narrow(upper, -2, 0, width))]
    tall, wide = (max(count, panels(size)) * PANEL for size in (rows, columns))
    along = floor_divide(iota(wide, int64), PANEL)

    def step(upper: Node, block: Node) -> tuple[Node, tuple[Node, tuple[Node, ...]]]:
        panel = contiguous(block_of(upper, block, -1))
        panel, kept = _reflected_panel(panel, mul(block, PANEL), PANEL)
        kept = tuple([movedim(reshape(x, (PANEL, *batch, tall)), 0, -1) for x in kept])
        vectors, scaled = kept[0], kept[-1]
        products = matmul(adjoint(vectors), scaled)
        sizes = matmul(adjoint(scaled), upper)
        sizes = substituted(adjoint(products), sizes, upper=False, unit=True)
        upper = where(gt(along, block), sub(upper, matmul(vectors, sizes)), upper)
        return where(eq(along, block), repeated(panel, -1, wide), upper), (products, kept)

    def back(q: Node, now: Any) -> tuple[Node, tuple[()]]:
        products, (vectors, *scaled) = now
        sizes = substituted(products, matmul(adjoint(vectors), q), upper=True, unit=True)
        return sub(q, matmul(scaled[0] if scaled else vectors, sizes)), ()

    upper, kept = scan(step, stretched(a, tall, wide), iota(count, int64))
    start = expand(eye(tall, width, dtype=a.dtype), (*batch, tall, width))
    q, _ = scan(back, start, kept, reverse=True)
    upper = narrow(narrow(upper, -2, 0, width), -1, 0, columns)
    return [narrow(q, -2, 0, rows), triu(upper)]


def _reflected_panel(a: Node, first: Node, steps: Dim) -> tuple[Node, tuple[Node, ...]]:
    """Columns whose diagonal begins in row `first` with zeros below it, and the vectors u and v
    (where they are equal: one) of the reflections 1 - v u^H that do it, in a new first dimension.

    Trip j reflects column j onto its diagonal: v = x + sign(x_j) |x| e_j, which cancels nothing,
    with v^H v = 2, and u is v. Of complex numbers the sign is that of the real part, so that what
    comes to the diagonal is real, and u is v Re(v_j) / conj(v_j) (LAPACK's choice). A column with
    nothing to reflect stays as it is.
    """
    rows, columns = a.shape[-2:]
    down = column_of(iota(rows, int64))

    def step(upper: Node, place: Node) -> tuple[Node, tuple[Node, ...]]:
        row = add(place, first)
        column = at(upper, place, -1)
        below = where(gt(down, row), column, 0)
        scale = reduce("max", abs_(below), -2, True)
        corner = at(column, row, -2)
        flat = eq(scale, 0)
        if a.dtype.is_complex:
            flat = logical_and(flat, eq(imag(corner), 0))
        scale = where(flat, 1, alu(ops.MAX, scale, abs_(corner)))
        below, corner = div(below, scale), div(corner, scale)
        squares = reduce("add", squared(below), -2, True)
        length = sqrt(add(squares, squared(corner)))
        signed = where(lt(real(corner), 0), neg(length), length)
        summit = add(corner, signed)
        vector = where(eq(down, row), summit, below)
        norm = add(squares, squared(summit))
        vector = where(flat, 0, div(vector, sqrt(div(norm, 2))))
        vector = where(ge(down, row), vector, 0)
        kept: tuple[Node, ...] = (vector,)
        if a.dtype.is_complex:
            turn = direction(summit, abs_(summit))
            kept = (vector, mul(vector, mul(turn, real(turn))))
        upper = sub(upper, mul(vector, matmul(adjoint(kept[-1]), upper)))
        exact = where(flat, at(upper, place, -1), where(eq(down, row), neg(mul(signed, scale)), 0))
        here = logical_and(eq(iota(columns, int64), place), ge(down, row))
        return where(here, exact, upper), kept

    return scan(step, a, iota(steps, int64))


def _qr_tangent(
    inputs: Sequence[Node], outputs: Sequence[Node], tangents: Sequence[Node]
) -> list[Node]:
    """With C = Q^H dA R^-1 (of the square part of R) and W = tril(C, -1) - tril(C, -1)^H, with the
    imaginary parts of C on its diagonal: dQ = dA R^-1 - Q C + Q W, dR = Q^H dA - W R."""
    (q, r), (moved,) = outputs, tangents
    width = r.shape[-2]
    square_part, first = narrow(r, -1, 0, width), narrow(moved, -1, 0, width)
    quotient = turned(solved(turned(square_part), turned(first), upper=False))
    inner = matmul(adjoint(q), quotient)
    strict = tril(inner, -1)
    turn = sub(strict, adjoint(strict))
    if inner.dtype.is_complex:
        along = imag(inner)
        turn = add(turn, complex_of(zeros_like(along), tril(triu(along))))
    by_q = add(sub(quotient, matmul(q, inner)), matmul(q, turn))
    return [by_q, sub(matmul(adjoint(q), moved), matmul(turn, r))]


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
def qr(x: Node, mode: str = "reduced") -> QRResult[Node]:
    """(Q, R) with Q @ R == x, orthonormal columns of Q, and R upper triangular, by Householder's
    reflections (the signs are LAPACK's; of complex matrices the diagonal of R is real).

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
    return QRResult(const(0, a.dtype, (0,)) if mode == "r" else q, r)


@public("qr", source="PyTorch")
def qr_of_tensor(x: Node, some: bool = True) -> QRResult[Node]:
    """`linalg.qr`, reduced if `some`, else complete.

    >>> Tensor([[2.0]]).qr()[0].abs()
    Tensor([[1.]])
    """
    return qr(x, "reduced" if some else "complete")
