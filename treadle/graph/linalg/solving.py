"""Systems of linear equations, inverses and determinants, from one factorization LU."""

from __future__ import annotations

import math
from collections.abc import Sequence

from treadle.graph import shapes
from treadle.graph.build import (
    broadcast_shapes,
    cast,
    const,
    dim_value,
    expand,
    gather,
    iota,
    reduce,
    reshape,
    stop_gradient,
    where,
    zeros_like,
)
from treadle.graph.call import Parts, Rule
from treadle.graph.creation import eye
from treadle.graph.elementwise import abs_, add, eq, gt, logical_and, mul, ne, neg
from treadle.graph.functions import log
from treadle.graph.linalg.adjoint import adjoint, direction, turned
from treadle.graph.linalg.factors import inverse_order, lu_parts
from treadle.graph.linalg.formula import Formula, floating, opaque, results, square
from treadle.graph.linalg.panels import column_of
from treadle.graph.linalg.results import InvExResult, SlogdetResult, SolveExResult
from treadle.graph.linalg.triangular import substituted
from treadle.graph.linear import matmul
from treadle.graph.movement import diagonal, movedim
from treadle.graph.parts import complex_of, imag, real
from treadle.graph.public import public
from treadle.graph.reduction import prod, sum_
from treadle.graph.scan import scan
from treadle.graph.shapes import text
from treadle.ir.dtype import float64, int32, int64
from treadle.ir.node import Node


# ---- solutions -----------------------------------------------------------------------------------
class Solution(Rule):
    """The derivative of the solution of a system by its matrix and right-hand side. The sources of
    its CALL are the matrix, the side, and factors of the matrix, which serve every derivative."""

    def __init__(self, is_turned: bool) -> None:
        super().__init__("solve")
        self.is_turned = is_turned

    def jvp(self, call: Node, tangents: Parts) -> Parts:
        """d(A x) = dA x + A dx = db."""
        (x,) = results(call)
        a, _, *factors = call.src
        right = tangents[1]
        if tangents[0] is not None:
            by_matrix = adjoint(tangents[0]) if self.is_turned else tangents[0]
            moved = neg(matmul(by_matrix, x))
            right = moved if right is None else add(right, moved)
        return [None if right is None else factored(a, right, factors, self.is_turned)]

    def vjp(self, call: Node, cotangents: Parts, needed: Sequence[bool]) -> Parts:
        """Of b it is that of x through the inverse of the adjoint, of A minus that times x."""
        (x,), (arriving,) = results(call), cotangents
        a, _, *factors = call.src
        none = [None] * len(factors)
        if arriving is None:
            return [None, None, *none]
        back = factored(a, arriving, factors, not self.is_turned)
        pair = (x, adjoint(back)) if self.is_turned else (back, adjoint(x))
        return [neg(matmul(*pair)) if needed[0] else None, back, *none]


SOLUTION = {is_turned: Solution(is_turned) for is_turned in (False, True)}


def _substituted(b: Node, factors: Node, order: Node, is_turned: bool) -> Node:
    """A = P L U, where rows `order` of A are L U."""
    if is_turned:  # U^H L^H P^T x = b
        middle = substituted(adjoint(factors), b, upper=False, unit=False)
        last = substituted(adjoint(factors), middle, upper=True, unit=True)
        return gather(last, expand(column_of(inverse_order(order)), b.shape), -2)
    first = gather(b, expand(column_of(order), b.shape), -2)
    middle = substituted(factors, first, upper=False, unit=True)
    return substituted(factors, middle, upper=True, unit=False)


def factored(a: Node, b: Node, factors: Sequence[Node], is_turned: bool = False) -> Node:
    """x with A x == b (or A^H x == b), from the factors and order of A. Batches are equal."""
    (x,) = opaque(
        lambda a, b, factors, order: [_substituted(b, factors, order, is_turned)],
        (a, b, *factors),
        SOLUTION[is_turned],
    )
    return x


def solution(a: Node, b: Node) -> Node:
    """x with a @ x == b for matrices; batches broadcast."""
    factors, order, _ = lu_parts(stop_gradient(a))
    batch = broadcast_shapes(a.shape[:-2], b.shape[:-2], name="linalg.solve")
    a, b, factors = (expand(x, (*batch, *x.shape[-2:])) for x in (a, b, factors))
    order = expand(order, (*batch, order.shape[-1]))
    return factored(a, b, (factors, order))


@public("solve", source="PyTorch", method=False, linalg=True)
def solve(A: Node, B: Node, *, left: bool = True) -> Node:
    """The solution X of A @ X == B, or of X @ A == B with left=False, by LU with partial pivots.

    A: (.., n, n). B: matrices (.., n, k) (or (.., k, n)), or vectors: one of (n,), or as many as A
    has matrices. Batches broadcast. inf and NaN where a matrix is singular.

    >>> linalg.solve(Tensor([[2.0, 0.0], [0.0, 4.0]]), Tensor([1.0, 1.0])).tolist()
    [0.5, 0.25]
    """
    a, b = floating("solve", A, B)
    a = square("solve", a)
    is_vector = len(b.shape) == 1 or shapes.same_shape(b.shape, a.shape[:-1])
    if is_vector:
        b = column_of(b)
    size = b.shape[-2 if left or is_vector else -1]
    if not b.shape or not shapes.same(size, a.shape[-1]):
        raise ValueError(
            f"linalg.solve: matrices of shape {text(a.shape)} do not fit a right-hand side of "
            f"shape {text(B.shape)}"
        )
    if is_vector:
        x = solution(a if left else turned(a), b)
        return reshape(x, x.shape[:-1])
    return solution(a, b) if left else turned(solution(turned(a), turned(b)))


@public("solve_ex", source="PyTorch", method=False, linalg=True)
def solve_ex(
    A: Node, B: Node, *, left: bool = True, check_errors: bool = False
) -> SolveExResult[Node]:
    """(solve(A, B), info): info, int32, is the number of the first zero pivot, from 1, or 0.

    >>> treadle.linalg.solve_ex(Tensor([[2.0, 0.0], [0.0, 4.0]]), Tensor([2.0, 2.0]))
    SolveExResult(result=Tensor([1. , 0.5]), info=Tensor(0, dtype=int32))
    """
    no_check("solve_ex", check_errors)
    return SolveExResult(solve(A, B, left=left), _first_zero(square("solve_ex", A)))


def no_check(name: str, check_errors: bool) -> None:
    """NotImplementedError for check_errors."""
    if check_errors:
        raise NotImplementedError(
            f"linalg.{name}: check_errors=True would have to read a value: look at `info`"
        )


def _first_zero(a: Node) -> Node:
    """The number of the first zero pivot, from 1; 0 if there is none."""
    from_one = add(iota(a.shape[-1], int64), 1)
    zero = eq(diagonal(lu_parts(stop_gradient(a))[0], 0, -2, -1), 0)
    last = dim_value(a.shape[-1], int64)
    first = reduce("min", where(zero, from_one, add(last, 1)), -1)
    return cast(where(gt(first, last), 0, first), int32)


@public("inv", source="PyTorch", method=False, linalg=True)
def inv(x: Node) -> Node:
    """The inverses of matrices (.., n, n); inf and NaN where one is singular.

    >>> linalg.inv(Tensor([[2.0, 0.0], [0.0, 4.0]])).tolist()
    [[0.5, 0.0], [0.0, 0.25]]
    """
    a = square("inv", x)
    return solution(a, expand(eye(a.shape[-1], dtype=a.dtype), a.shape))


@public("inv_ex", source="PyTorch", method=False, linalg=True)
def inv_ex(x: Node, *, check_errors: bool = False) -> InvExResult[Node]:
    """(inv(x), info): info, int32, is the number of the first zero pivot, from 1, or 0.

    >>> treadle.linalg.inv_ex(Tensor([[2.0]]))
    InvExResult(inverse=Tensor([[0.5]]), info=Tensor(0, dtype=int32))
    """
    no_check("inv_ex", check_errors)
    return InvExResult(inv(x), _first_zero(square("inv_ex", x)))


@public("inverse", source="PyTorch")
def inverse(x: Node) -> Node:
    """`linalg.inv`.

    >>> Tensor([[2.0, 0.0], [0.0, 4.0]]).inverse().tolist()
    [[0.5, 0.0], [0.0, 0.25]]
    """
    return inv(x)


# ---- determinants --------------------------------------------------------------------------------
def _parity(pivots: Node, like: Node) -> Node:
    """1 for an even number of exchanges, -1 for an odd one."""
    moved = ne(pivots, iota(pivots.shape[-1], int64))
    one = const(1, like.dtype.real)
    return reduce("mul", where(moved, neg(one), one), -1)


def _product(x: Node) -> Node:
    """The products along the last dimension. Of complex numbers they are a loop: the graph of
    `prod` would grow with the matrix."""
    if not x.dtype.is_complex:
        return prod(x, -1)
    one = const(1, x.dtype, x.shape[:-1])
    found: Node = scan(lambda known, each: (mul(known, each), ()), one, movedim(x, -1, 0))[0]
    return found


def _determinant(factors: Node, pivots: Node) -> Node:
    return mul(_product(diagonal(factors, 0, -2, -1)), _parity(pivots, factors))


def trace_of(x: Node) -> Node:
    """The sum of the diagonal of each matrix."""
    return sum_(diagonal(x, 0, -2, -1), -1)


def _det_tangent(
    sources: Sequence[Node], outputs: Sequence[Node], tangents: Sequence[Node]
) -> list[Node]:
    """d det = det tr(A^-1 dA). A singular matrix has a derivative too, which is that of the regular
    one beside it: with a small number in the place of zero pivots."""
    a, factors, order, pivots = sources
    tiny = const(1e-18 if factors.dtype.real is float64 else 1e-9, factors.dtype)
    size = factors.shape[-1]
    main = eq(column_of(iota(size, int64)), iota(size, int64))
    regular = where(logical_and(main, eq(factors, 0)), tiny, factors)
    known = outputs[0]
    value = where(eq(known, 0), _determinant(regular, pivots), known)
    return [mul(value, trace_of(factored(a, tangents[0], (regular, order))))]


def _slogdet_tangent(
    sources: Sequence[Node], outputs: Sequence[Node], tangents: Sequence[Node]
) -> list[Node | None]:
    """d log|det| + i d angle = tr(A^-1 dA), and the sign moves along the angle."""
    a, factors, order, _ = sources
    moved = trace_of(factored(a, tangents[0], (factors, order)))
    if not moved.dtype.is_complex:
        return [None, moved]
    turn = complex_of(zeros_like(imag(moved)), imag(moved))
    return [mul(outputs[0], turn), real(moved)]


DET = Formula("det", 1, _det_tangent)
SLOGDET = Formula("slogdet", 1, _slogdet_tangent)


@public("det", source="PyTorch", linalg=True)
def det(x: Node) -> Node:
    """The determinants of matrices (.., n, n); 1 of an empty one.

    >>> linalg.det(Tensor([[2.0, 1.0], [1.0, 4.0]])).item()
    7.0
    """
    a = square("det", x)
    (found,) = opaque(
        lambda a, factors, order, pivots: [_determinant(factors, pivots)],
        (a, *lu_parts(stop_gradient(a))),
        DET,
    )
    return found


@public("slogdet", source="PyTorch", linalg=True)
def slogdet(x: Node) -> SlogdetResult[Node]:
    """(sign, logabsdet): the determinants are sign * exp(logabsdet); of complex matrices the sign
    is a complex number of size 1. 0 and -inf of a singular matrix, whose derivative is inf or NaN.

    >>> treadle.linalg.slogdet(Tensor([[0.0, 1.0], [1.0, 0.0]]))
    SlogdetResult(sign=Tensor(-1.), logabsdet=Tensor(0.))
    """
    a = square("slogdet", x)

    def parts(a: Node, factors: Node, order: Node, pivots: Node) -> list[Node]:
        main = diagonal(factors, 0, -2, -1)
        sizes = abs_(main)
        signs = mul(_product(direction(main, sizes)), _parity(pivots, factors))
        return [signs, sum_(log(sizes), -1)]

    signs, logarithms = opaque(parts, (a, *lu_parts(stop_gradient(a))), SLOGDET)
    return SlogdetResult(signs, logarithms)


@public("logdet", source="PyTorch")
def logdet(x: Node) -> Node:
    """The logarithms of determinants; NaN of a negative one, -inf of 0. Of complex matrices the
    imaginary part is the angle.

    >>> Tensor([[2.0, 0.0], [0.0, 0.5]]).logdet()
    Tensor(0.)
    """
    signs, logarithms = slogdet(x)
    if signs.dtype.is_complex:
        return add(log(signs), logarithms)
    return where(eq(signs, -1), math.nan, logarithms)
