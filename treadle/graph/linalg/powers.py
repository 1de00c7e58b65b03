"""Products of many matrices: powers, the exponential, and a chain in its best order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from treadle.graph import shapes
from treadle.graph.build import cast, const, expand, reduce, reshape, where
from treadle.graph.call import Parts, Rule
from treadle.graph.creation import eye
from treadle.graph.elementwise import abs_, add, ceil, div, gt, lt, maximum, mul, sub
from treadle.graph.functions import exp2, log2
from treadle.graph.linalg.adjoint import adjoint
from treadle.graph.linalg.formula import opaque, square
from treadle.graph.linalg.solving import inv, solution
from treadle.graph.linear import matmul
from treadle.graph.loops import while_loop
from treadle.graph.movement import cat, narrow
from treadle.graph.public import public
from treadle.graph.shapes import text
from treadle.ir.dtype import float64
from treadle.ir.node import Node


# ---- powers --------------------------------------------------------------------------------------
@public("matrix_power", source="PyTorch", linalg=True)
def matrix_power(x: Node, n: int) -> Node:
    """The product of n times each matrix (.., m, m), by repeated squaring; for n below 0 of its
    inverse.

    >>> treadle.linalg.matrix_power(Tensor([[1.0, 1.0], [0.0, 1.0]]), 5).tolist()
    [[1.0, 5.0], [0.0, 1.0]]
    """
    if type(n) is not int:
        raise TypeError(f"matrix_power: n is an int, not {shapes.words(n)}")
    if len(x.shape) < 2 or not shapes.same(x.shape[-2], x.shape[-1]):
        raise ValueError(f"matrix_power is for square matrices, not for shape {text(x.shape)}")
    if n < 0:
        x, n = inv(x), -n
    found = None
    while n:
        if n % 2:
            found = x if found is None else matmul(found, x)
        n //= 2
        x = matmul(x, x) if n else x
    return where(True, eye(x.shape[-1], dtype=x.dtype), x) if found is None else found


# ---- the exponential -----------------------------------------------------------------------------
# the coefficients of the numerator of Pade's approximant, and the norm up to which it is exact to
# rounding. Source: Higham, "The scaling and squaring method for the matrix exponential revisited",
# 2005, table 2.3
PADE_7 = (17297280, 8648640, 1995840, 277200, 25200, 1512, 56, 1)
PADE_13 = (
    64764752532480000, 32382376266240000, 7771770303897600, 1187353796428800, 129060195264000,
    10559470521600, 670442572800, 33522128640, 1323241920, 40840800, 960960, 16380, 182, 1,
)  # fmt: skip
REACH = {7: 3.925724783138660, 13: 5.371920351148152}


def _even_powers(square_: Node, coefficients: Sequence[float], one: Node) -> Node:
    """The polynomial with these coefficients of a^2, by Horner's rule."""
    found = mul(one, coefficients[-1])
    for each in coefficients[-2::-1]:
        found = add(matmul(found, square_), mul(one, each))
    return found


def _exponential(a: Node) -> list[Node]:
    """exp(a) = exp(a / 2^s)^(2^s), s as small as the approximant allows: one loop squares as often
    as the greatest s of the batch says, and leaves those that are done."""
    pade = PADE_13 if a.dtype.real is float64 else PADE_7
    one = expand(eye(a.shape[-1], dtype=a.dtype), a.shape)
    size = reduce("max", reduce("add", abs_(a), -2), -1)
    is_finite = lt(size, float("inf"))
    halvings = ceil(log2(div(maximum(where(is_finite, size, 1), 1e-30), REACH[len(pade) - 1])))
    halvings = reshape(maximum(halvings, 0), (*a.shape[:-2], 1, 1))
    a = div(a, exp2(halvings))
    square_ = matmul(a, a)
    scaled = [each / pade[0] for each in pade]
    even = _even_powers(square_, scaled[0::2], one)
    odd = matmul(a, _even_powers(square_, scaled[1::2], one))
    start = solution(sub(even, odd), add(even, odd))
    last = reduce("max", halvings)

    def turn(carry: Any) -> Any:
        number, power = carry
        return add(number, 1), where(gt(halvings, number), matmul(power, power), power)

    _, found = while_loop(lambda carry: lt(carry[0], last), turn, (const(0, last.dtype), start))
    return [found]


class Exponential(Rule):
    """exp([[A, E], [0, A]]) has exp(A) on its diagonal and the derivative at A along E beside it;
    the adjoint is the derivative at A^H. Source: Higham, "Functions of Matrices", 3.2."""

    def jvp(self, call: Node, tangents: Parts) -> Parts:
        return [None if tangents[0] is None else along(call.src[0], tangents[0])]

    def vjp(self, call: Node, cotangents: Parts, needed: Sequence[bool]) -> Parts:
        none = [None] * (len(call.src) - 1)
        if cotangents[0] is None:
            return [None, *none]
        return [along(adjoint(call.src[0]), cotangents[0]), *none]


EXPONENTIAL = Exponential("matrix exponential")


def along(a: Node, direction: Node) -> Node:
    """The derivative of the exponential at a matrix along another."""
    size = a.shape[-1]
    zero = const(0, a.dtype, a.shape)
    whole = cat([cat([a, direction], dim=-1), cat([zero, a], dim=-1)], dim=-2)
    found = _opaque_exponential(whole)
    return narrow(narrow(found, -2, 0, size), -1, size, shapes.add(size, size))


def _opaque_exponential(a: Node) -> Node:
    if shapes.is_empty(a.shape):
        return a
    return opaque(_exponential, (a,), EXPONENTIAL)[0]


@public("matrix_exp", source="PyTorch", linalg=True)
def matrix_exp(x: Node) -> Node:
    """The exponential of square matrices: 1 + x + x @ x / 2 + ..; of Pade's approximant, scaling
    and squaring. Of halves it is computed in float32 and rounded once.

    >>> treadle.linalg.matrix_exp(Tensor([[0.0, 1.0], [0.0, 0.0]])).tolist()
    [[1.0, 1.0], [0.0, 1.0]]
    """
    wide = cast(x, x.dtype.accumulator) if x.dtype.is_float else x
    return cast(_opaque_exponential(square("matrix_exp", wide)), x.dtype)


# ---- a chain -------------------------------------------------------------------------------------
@public("multi_dot", source="PyTorch", method=False, linalg=True)
def multi_dot(tensors: Any) -> Node:
    """The product of two matrices or more, in the order that takes the fewest multiplications; the
    first may be a row and the last a column, of one dimension.

    Source: Cormen, Leiserson, Rivest and Stein, "Introduction to Algorithms", 15.2.

    >>> treadle.linalg.multi_dot([Tensor([1.0, 2.0]), Tensor.eye(2), Tensor([3.0, 4.0])]).item()
    11.0
    """
    given = list(tensors)
    ranks = [len(x.shape) for x in given]
    is_chain = len(given) > 1 and all(rank == 2 for rank in ranks[1:-1])
    if not is_chain or not {ranks[0], ranks[-1]} <= {1, 2}:
        raise ValueError(
            "linalg.multi_dot is for two tensors or more, all matrices but the first and the last, "
            f"which may be vectors, not for shapes {', '.join(text(x.shape) for x in given)}"
        )
    first = 1 if ranks[0] == 1 else given[0].shape[0]
    last = 1 if ranks[-1] == 1 else given[-1].shape[-1]
    sizes = [shapes.bounds(size)[1] for size in (first, *[x.shape[0] for x in given[1:]], last)]
    return _multiplied(given, _splits(sizes))


def _splits(sizes: Sequence[int]) -> dict[tuple[int, int], int]:
    """(i, j) -> where the product of the matrices from i up to j is best divided; matrix i has
    sizes[i] rows and sizes[i + 1] columns."""
    count = len(sizes) - 1
    cost = {(i, i + 1): 0 for i in range(count)}
    best = {}
    for length in range(2, count + 1):
        for i in range(count - length + 1):
            j = i + length
            costs = {
                k: cost[i, k] + cost[k, j] + sizes[i] * sizes[k] * sizes[j] for k in range(i + 1, j)
            }
            best[i, j] = min(costs, key=costs.__getitem__)
            cost[i, j] = costs[best[i, j]]
    return best


def _multiplied(given: Sequence[Node], splits: dict[tuple[int, int], int]) -> Node:
    """The product, in that order; shorter parts come first."""
    wanted = [(0, len(given))]
    for i, j in wanted:  # grows while it is read
        if j - i > 1:
            wanted += [(i, splits[i, j]), (splits[i, j], j)]
    found = {}
    for i, j in reversed(wanted):
        if j - i == 1:
            found[i, j] = given[i]
        else:
            found[i, j] = matmul(found[i, splits[i, j]], found[splits[i, j], j])
    return found[0, len(given)]
