"""Systems whose unknowns are tensors, and matrices that are made from vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from treadle.graph import shapes
from treadle.graph.build import const, expand, reshape
from treadle.graph.creation import eye
from treadle.graph.elementwise import add, mul, sub
from treadle.graph.linalg.adjoint import adjoint
from treadle.graph.linalg.formula import floating, matrices
from treadle.graph.linalg.panels import column_of
from treadle.graph.linalg.solving import inv, solve
from treadle.graph.linear import matmul
from treadle.graph.movement import cat, movedim, narrow, tril
from treadle.graph.public import public
from treadle.graph.running import cumprod
from treadle.graph.scan import scan
from treadle.graph.shapes import normalize_axes, text
from treadle.ir.node import Node


# ---- tensors as matrices -------------------------------------------------------------------------
@public("tensorinv", source="PyTorch", method=False, linalg=True)
def tensorinv(x: Node, ind: int = 2) -> Node:
    """The inverse of x for `tensordot`: the tensor whose last dimensions are the first `ind` of x,
    with tensordot(tensorinv(x, ind), x, ind) the identity.

    The products of the first `ind` sizes and of the others must be equal. ValueError otherwise.

    >>> treadle.linalg.tensorinv(Tensor.eye(6).reshape(6, 2, 3), ind=1).shape
    (2, 3, 6)
    """
    (a,) = floating("tensorinv", x)
    if type(ind) is not int or ind < 1:
        raise ValueError(f"linalg.tensorinv: ind is an int above 0, not {shapes.words(ind)}")
    first, last = a.shape[:ind], a.shape[ind:]
    rows, columns = shapes.total(first), shapes.total(last)
    if not shapes.same(rows, columns):
        raise ValueError(
            f"linalg.tensorinv: the sizes {text(first)} and {text(last)} of a tensor of shape "
            f"{text(a.shape)} have different products, with ind={ind}"
        )
    return reshape(inv(reshape(a, (rows, columns))), (*last, *first))


@public("tensorsolve", source="PyTorch", method=False, linalg=True)
def tensorsolve(A: Node, B: Node, dims: Sequence[int] | None = None) -> Node:
    """X with tensordot(A, X, X.ndim) == B. The first dimensions of A are those of B, the others
    those of X, after the dimensions `dims` of A have been moved to its end.

    >>> A = Tensor.eye(6).reshape(2, 3, 6)
    >>> treadle.linalg.tensorsolve(A, Tensor.ones(2, 3)).shape
    (6,)
    """
    a, b = floating("tensorsolve", A, B)
    if dims is not None:
        moved = normalize_axes(tuple(dims), len(a.shape))
        a = movedim(a, moved, tuple(range(-len(moved), 0)))
    rows, wanted = shapes.total(b.shape), a.shape[len(b.shape) :]
    columns = shapes.total(wanted)
    first = shapes.total(a.shape[: len(b.shape)])
    fits = shapes.same(rows, columns) and shapes.same(first, rows)
    if not fits:
        raise ValueError(
            f"linalg.tensorsolve: a tensor of shape {text(A.shape)} is no system for a right-hand "
            f"side of shape {text(B.shape)}: the sizes of the unknown, {text(wanted)}, must have "
            "the product of those of the right-hand side"
        )
    return reshape(solve(reshape(a, (rows, columns)), reshape(b, (rows,))), wanted)


# ---- matrices from vectors -----------------------------------------------------------------------
@public("vander", source="PyTorch", method=False, linalg=True)
def vander(x: Node, *, N: int | None = None) -> Node:
    """The powers 0 to N - 1 of each element, in a new last dimension: (.., n) -> (.., n, N). N is n
    unless given. A number is a vector of one.

    >>> treadle.linalg.vander(Tensor([1, 2, 3])).tolist()
    [[1, 1, 1], [1, 2, 4], [1, 3, 9]]
    """
    x = x if x.shape else reshape(x, (1,))
    count: Any = x.shape[-1] if N is None else N
    if shapes.at_most(0, count) is not True:
        raise ValueError(f"linalg.vander: N is a number of powers, not {shapes.words(N)}")
    column = column_of(x)
    one = const(1, x.dtype, column.shape)
    if count in (0, 1):
        return narrow(one, -1, 0, count)
    others = expand(column, (*x.shape, shapes.subtract(count, 1)))
    return cumprod(cat([one, others], dim=-1), -1)


@public("householder_product", source="PyTorch", method=False, linalg=True)
def householder_product(x: Node, tau: Node) -> Node:
    """The first n columns of the product of k reflections 1 - tau_i v_i v_i^H.

    x: (.., m, n) with m >= n, whose columns hold v_i below the diagonal; above it v_i is 0, and on
    it 1. tau: (.., k), k <= n. Source: LAPACK's orgqr.

    >>> treadle.linalg.householder_product(Tensor([[0.0], [1.0]]), Tensor([1.0])).tolist()
    [[0.0], [-1.0]]
    """
    a, scales = floating("householder_product", x, tau)
    (a,) = matrices("householder_product", a)
    *batch, rows, columns = a.shape
    count = scales.shape[-1] if scales.shape else 0
    is_tall = shapes.at_most(columns, rows) is not False
    fits = is_tall and shapes.at_most(count, columns) is not False
    if not scales.shape or not fits or not shapes.same_shape(scales.shape[:-1], tuple(batch)):
        raise ValueError(
            "linalg.householder_product is for matrices (.., m, n) with m >= n and tau (.., k) "
            f"with k <= n, not for {text(a.shape)} and {text(scales.shape)}"
        )
    start = expand(eye(rows, columns, dtype=a.dtype), a.shape)
    vectors = narrow(add(tril(a, -1), start), -1, 0, count)

    def step(found: Node, now: Any) -> tuple[Node, tuple[()]]:
        vector, scale = (column_of(each) for each in now)
        image = matmul(adjoint(vector), found)
        return sub(found, mul(column_of(scale), mul(vector, image))), ()

    parts = (movedim(vectors, -1, 0), movedim(scales, -1, 0))
    product: Node = scan(step, start, parts, reverse=True)[0]
    return product


@public("orgqr", source="PyTorch")
def orgqr(x: Node, input2: Node) -> Node:
    """`linalg.householder_product`.

    >>> Tensor([[0.0], [1.0]]).orgqr(Tensor([1.0])).tolist()
    [[0.0], [-1.0]]
    """
    return householder_product(x, input2)
