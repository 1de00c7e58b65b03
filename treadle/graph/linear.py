"""Products of vectors and matrices, each a sum over a product of stretched operands.

Half and bfloat16 are multiplied and summed in float32 and rounded once, at the result. Integers
multiply and add in their own dtype and wrap at its width.
"""

from __future__ import annotations

from typing import Any

from treadle.graph import shapes
from treadle.graph.build import (
    alu,
    broadcast_shapes,
    cast,
    contiguous,
    expand,
    operands,
    reduce,
    reshape,
)
from treadle.graph.complexes import is_real, multiplied
from treadle.graph.elementwise import add, mul
from treadle.graph.movement import transpose
from treadle.graph.parts import by_parts, real
from treadle.graph.public import public
from treadle.graph.shapes import text
from treadle.ir import ops
from treadle.ir.dtype import bool_
from treadle.ir.node import Node


def _checked(a: Any, b: Any, name: str) -> tuple[Node, Node]:
    """Both in one dtype. TypeError for bool, ValueError for 0-d tensors."""
    if not isinstance(a, Node) or not isinstance(b, Node):
        given = f"{shapes.words(a)} and {shapes.words(b)}"
        raise TypeError(f"{name} is for two tensors, not for {given}: a number multiplies with *")
    x, y = operands(a, b)
    if x.dtype is bool_:
        raise TypeError(f"{name} is for numbers, not for bool: cast the tensors first")
    if not x.shape or not y.shape:
        raise ValueError(
            f"{name}: shapes {text(x.shape)} and {text(y.shape)}: a 0-d tensor has no dimension to "
            "sum over; use *"
        )
    return x, y


@public("matmul", source="PyTorch", namespace=True)
def matmul(x: Node, other: Node) -> Node:
    """The matrix product `@`: (.., m, k) @ (.., k, n) -> (.., m, n), leading dimensions broadcast.
    A 1-d operand is a row on the left, a column on the right, and is not in the result's shape.

    >>> Tensor([[1, 2], [3, 4]]) @ Tensor([10, 1])
    Tensor([12, 34])
    """
    a, b = _checked(x, other, "matmul")
    if a.dtype.is_complex:
        return _complex_matmul(x, other, a, b)
    return _matmul(a, b)


def _complex_matmul(x: Node, other: Node, a: Node, b: Node) -> Node:
    """Four real matrix products, or two if one of the factors is real. Each reads parts that stand
    in memory for themselves, and is stored for itself."""
    a, b = (by_parts(contiguous, each) for each in (a, b))

    def product(one: Node, two: Node) -> Node:
        return contiguous(_matmul(one, two))

    if is_real(x):
        return by_parts(lambda part: product(real(a), part), b)
    if is_real(other):
        return by_parts(lambda part: product(part, real(b)), a)
    return multiplied(product, a, b)


def _matmul(a: Node, b: Node) -> Node:
    inner = b.shape[max(0, len(b.shape) - 2)]
    if not shapes.same(a.shape[-1], inner):
        raise ValueError(
            f"matmul: {text(a.shape)} @ {text(b.shape)}: the last size of the first, "
            f"{shapes.dim_text(a.shape[-1])}, is not the inner size of the second, "
            f"{shapes.dim_text(inner)}"
        )
    row, column = len(a.shape) == 1, len(b.shape) == 1
    left = reshape(a, (1, *a.shape)) if row else a
    right = reshape(b, (1, *b.shape)) if column else transpose(b, -2, -1)
    batch = broadcast_shapes(left.shape[:-2], right.shape[:-2], name="matmul")
    product = contract(left, right)
    rows, columns = (() if row else (a.shape[-2],)), (() if column else (b.shape[-1],))
    return reshape(product, (*batch, *rows, *columns))


def contract(left: Node, right: Node) -> Node:
    """(.., m, k) and (.., n, k) of one dtype -> (.., m, n): the sum over k of their product."""
    if left.dtype.kind == "c":
        return multiplied(contract, left, right)
    wide = left.dtype.accumulator
    batch = broadcast_shapes(left.shape[:-2], right.shape[:-2], name="matmul")
    (m, k), n = left.shape[-2:], right.shape[-2]
    whole = (*batch, m, n, k)
    a = expand(reshape(cast(left, wide), (*left.shape[:-1], 1, k)), whole)
    b = expand(reshape(cast(right, wide), (*right.shape[:-2], 1, n, k)), whole)
    return cast(reduce("add", alu(ops.MUL, a, b), -1), left.dtype)


def _ranks(a: Node, b: Node, wanted: tuple[int, int], name: str, words: str) -> None:
    if (len(a.shape), len(b.shape)) != wanted:
        raise ValueError(f"{name} is for {words}, not for {text(a.shape)} and {text(b.shape)}")


@public("dot", source="PyTorch")
def dot(x: Node, tensor: Node) -> Node:
    """The sum of the products of two vectors.

    >>> Tensor([1, 2]).dot(Tensor([3, 4]))
    Tensor(11)
    """
    _ranks(*_checked(x, tensor, "dot"), (1, 1), "dot", "two vectors")
    return matmul(x, tensor)


@public("mv", source="PyTorch")
def mv(x: Node, vec: Node) -> Node:
    """A matrix times a vector.

    >>> Tensor([[1, 2], [3, 4]]).mv(Tensor([10, 1]))
    Tensor([12, 34])
    """
    _ranks(*_checked(x, vec, "mv"), (2, 1), "mv", "a matrix and a vector")
    return matmul(x, vec)


@public("mm", source="PyTorch")
def mm(x: Node, mat2: Node) -> Node:
    """A matrix times a matrix.

    >>> Tensor([[1, 2], [3, 4]]).mm(Tensor([[10], [1]]))
    Tensor([[12],
            [34]])
    """
    _ranks(*_checked(x, mat2, "mm"), (2, 2), "mm", "two matrices")
    return matmul(x, mat2)


@public("bmm", source="PyTorch")
def bmm(x: Node, mat2: Node) -> Node:
    """As many matrix products as the two tensors have matrices: (b, m, k) with (b, k, n).

    >>> Tensor.ones(5, 2, 3).bmm(Tensor.ones(5, 3, 4)).shape
    (5, 2, 4)
    """
    a, b = _checked(x, mat2, "bmm")
    _ranks(a, b, (3, 3), "bmm", "two 3-d tensors")
    if not shapes.same(a.shape[0], b.shape[0]):
        raise ValueError(
            f"bmm: {text(a.shape)} and {text(b.shape)} differ in their number of matrices"
        )
    return matmul(a, b)


@public("outer", source="PyTorch", aliases=("ger",))
def outer(x: Node, vec2: Node) -> Node:
    """Every element of one vector times every element of another: (m,), (n,) -> (m, n).

    >>> Tensor([1, 2]).outer(Tensor([3, 4, 5]))
    Tensor([[ 3,  4,  5],
            [ 6,  8, 10]])
    """
    _ranks(x, vec2, (1, 1), "outer", "two vectors")
    return mul(reshape(x, (x.shape[0], 1)), reshape(vec2, (1, vec2.shape[0])))


@public("addmm", source="PyTorch")
def addmm(x: Node, mat1: Node, mat2: Node, *, beta: Any = 1, alpha: Any = 1) -> Node:
    """beta * x + alpha * (mat1 @ mat2).

    >>> Tensor.ones(2, 2).addmm(Tensor.eye(2), Tensor.eye(2), alpha=3)
    Tensor([[4., 1.],
            [1., 4.]])
    """
    product = mm(mat1, mat2)
    scaled = product if alpha == 1 else mul(product, alpha)
    return add(x if beta == 1 else mul(x, beta), scaled)
