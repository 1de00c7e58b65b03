"""Eigenvalues of Hermitian matrices and singular values, by rotations of pairs of rows.

Jacobi's method, with all disjoint pairs at once: row i of the upper half and row i of the lower
half are rotated so that they become orthogonal (or their element in a Hermitian matrix 0), then the
rows move on as the players of a tournament do, in which everybody meets everybody. A trip of one
loop is a round. A real symmetric matrix is a Hermitian one whose rotations are real. Sources: Golub
and Van Loan, "Matrix Computations", 8.5; Hestenes, "Inversion of matrices by biorthogonalization",
1958.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from treadle.graph.build import (
    alu,
    const,
    contiguous,
    expand,
    gather,
    iota,
    pad,
    reduce,
    reshape,
    where,
)
from treadle.graph.complexes import conjugate
from treadle.graph.creation import eye
from treadle.graph.elementwise import (
    abs_,
    add,
    div,
    eq,
    gt,
    logical_and,
    logical_or,
    lt,
    mul,
    ne,
    neg,
    remainder,
    sub,
)
from treadle.graph.functions import sqrt
from treadle.graph.linalg.adjoint import adjoint, direction, hermitian, squared
from treadle.graph.linalg.factors import inverse_order, reflected
from treadle.graph.linalg.panels import column_of
from treadle.graph.linear import matmul
from treadle.graph.loops import while_loop
from treadle.graph.movement import cat, diagonal, movedim, narrow, roll, transpose, tril
from treadle.graph.parts import real
from treadle.graph.scan import scan
from treadle.ir import ops
from treadle.ir.dtype import bool_, int64
from treadle.ir.node import Node

SWEEPS = 30  # convergence is quadratic; about ten are needed for any size
BLOCK = 16  # rows
WHOLE = 64  # up to here rows are rotated one by one


def known_sizes(name: str, x: Node) -> tuple[int, int]:
    """The sizes of matrices. NotImplementedError if one is a Variable."""
    rows, columns = x.shape[-2:]
    if not isinstance(rows, int) or not isinstance(columns, int):
        raise NotImplementedError(f"linalg.{name}: the sizes of the matrices must be known")
    return rows, columns


# ---- rounds --------------------------------------------------------------------------------------
def _moved_on(x: Node, axis: int) -> Node:
    """The rows in their places for the next round: the first stays, all others turn in a circle."""
    size = x.shape[axis]
    assert isinstance(size, int)
    half = size // 2
    place = iota(size, int64)
    came = where(lt(place, half), sub(place, 1), add(place, 1))
    came = where(eq(place, 1), half, where(eq(place, size - 1), half - 1, came))
    came = where(eq(place, 0), 0, came) if half > 1 else place
    shape = [1] * len(x.shape)
    shape[axis] = size
    return gather(x, expand(reshape(came, tuple(shape)), x.shape), axis)


def _halves(x: Node, axis: int) -> tuple[Node, Node]:
    size = x.shape[axis]
    assert isinstance(size, int)
    return narrow(x, axis, 0, size // 2), narrow(x, axis, size // 2, size)


def _rotated(x: Node, sine: Node, half: Node) -> Node:
    """Each pair of rows rotated: as a change of x by s (y - t x), whose rounding leaves the lengths
    of rows alone on average; c x + s y would let them grow. Source: Rutishauser, "The Jacobi method
    for real symmetric matrices", 1966."""
    partner = roll(x, x.shape[-2] // 2, -2)
    s = column_of(cat([neg(sine), conjugate(sine)], dim=-1))
    t = column_of(cat([neg(conjugate(half)), half], dim=-1))
    return contiguous(add(x, mul(s, sub(partner, mul(t, x)))))


def _angles(first: Node, second: Node, product: Node) -> tuple[Node, Node]:
    """The sine, and the tangent of half the angle, of the smaller rotation that makes [[first,
    product], [its conjugate, second]] diagonal, both times the direction of the product."""
    length = abs_(product)
    none = eq(length, 0)
    ratio = div(sub(second, first), mul(where(none, 1, length), 2))
    size = div(1, add(abs_(ratio), sqrt(add(mul(ratio, ratio), 1))))
    tangent = where(none, 0, where(lt(ratio, 0), neg(size), size))
    cosine = div(1, sqrt(add(mul(tangent, tangent), 1)))
    sine, along = mul(tangent, cosine), direction(product, length)
    return mul(sine, along), mul(div(sine, add(cosine, 1)), along)


def _to_even(x: Node, axes: Sequence[int]) -> Node:
    """With a row (and column) of zeros if their number is odd."""
    size = x.shape[axes[0]]
    assert isinstance(size, int)
    amounts = [(0, 0)] * len(x.shape)
    for axis in axes:
        amounts[axis] = (0, size % 2)
    return pad(x, amounts)


# ---- rounds of blocks ----------------------------------------------------------------------------
def _blocks(size: int) -> int:
    """How many blocks of rows a matrix is cut into; an even number."""
    return 2 * -(-size // (2 * BLOCK))


def _lengthened(x: Node, axes: Sequence[int]) -> Node:
    """With rows (and columns) of zeros until there are as many as the blocks have."""
    size = x.shape[axes[0]]
    assert isinstance(size, int)
    amounts = [(0, 0)] * len(x.shape)
    for axis in axes:
        amounts[axis] = (0, _blocks(size) * BLOCK - size)
    return pad(x, amounts)


def _paired(x: Node) -> Node:
    """(.., n, m) -> (.., pairs, 2 BLOCK, m): each block of the upper half above its partner."""
    *batch, size, columns = x.shape
    pairs = size // (2 * BLOCK)
    cut = reshape(x, (*batch, 2, pairs, BLOCK, columns))
    return reshape(transpose(cut, -4, -3), (*batch, pairs, 2 * BLOCK, columns))


def _apart(x: Node) -> Node:
    """The inverse of `_paired`, with the blocks in their places for the next round."""
    *batch, pairs, both, columns = x.shape
    cut = transpose(reshape(x, (*batch, pairs, 2, BLOCK, columns)), -4, -3)
    blocks = reshape(cut, (*batch, 2 * pairs, BLOCK * columns))
    return contiguous(reshape(_moved_on(blocks, -2), (*batch, pairs * both, columns)))


def _diagonal_pairs(a: Node) -> Node:
    """The square matrix of each pair of blocks: (.., n, n) -> (.., pairs, 2 BLOCK, 2 BLOCK)."""
    *batch, size, _ = a.shape
    count = size // BLOCK
    cut = reshape(a, (*batch, count, BLOCK, count, BLOCK))
    own = movedim(diagonal(cut, 0, -4, -2), -1, -3)
    beside = movedim(diagonal(cut, count // 2, -4, -2), -1, -3)
    first, second = narrow(own, -3, 0, count // 2), narrow(own, -3, count // 2, count)
    upper = cat([first, beside], dim=-1)
    return cat([upper, cat([adjoint(beside), second], dim=-1)], dim=-2)


def _swept(a: Node) -> Node:
    """The rotations of a sweep over small Hermitian matrices, as unitary matrices Q: those of
    Q a Q^H are nearer to diagonal ones. After a sweep all rows are in their places again."""
    width = a.shape[-1]
    start = expand(eye(width, dtype=a.dtype), a.shape)
    step = lambda carry, _: (_turned_pair(*carry), ())  # noqa: E731
    vectors: Node = scan(step, (contiguous(a), start), length=width - 1)[0][1]
    return _orthonormal(vectors)


def _orthonormal(q: Node) -> Node:
    """The unitary matrix beside one that is unitary but for rounding: a step of Newton's and
    Schulz's iteration, q + (1 - q q^H) q / 2."""
    rest = sub(eye(q.shape[-2], dtype=q.dtype), matmul(q, adjoint(q)))
    return contiguous(add(q, mul(matmul(contiguous(rest), q), 0.5)))


def _turned_pair(a: Node, vectors: Node) -> tuple[Node, Node]:
    """A round: every pair of rows and columns of a rotated until their element is 0, the pairs of
    `vectors` likewise, and all moved on."""
    half = a.shape[-1] // 2
    first, second = _halves(real(diagonal(a, 0, -2, -1)), -1)
    upper = narrow(a, -2, 0, half)
    angles = _angles(first, second, diagonal(upper, half, -2, -1))
    a = _rotated(adjoint(_rotated(a, *angles)), *angles)
    a = _moved_on(_moved_on(a, -2), -1)
    return a, _moved_on(_rotated(vectors, *angles), -2)


def _scale(x: Node) -> Node:
    """The greatest size of each matrix's elements, 1 for one of zeros."""
    greatest = reduce("max", abs_(x), (-2, -1), True)
    return where(eq(greatest, 0), 1, greatest)


def _order(keys: Node, descending: bool) -> Node:
    """The order of numbers in one dimension: [i] is the place of the i-th."""
    size = keys.shape[-1]
    mine, other = column_of(keys), reshape(keys, (*keys.shape[:-1], 1, size))
    number = iota(size, int64)
    earlier = lt(number, column_of(number))
    before = gt(other, mine) if descending else lt(other, mine)
    unequal = alu(ops.NOT, logical_or(lt(other, mine), gt(other, mine)))  # equal, or NaN
    ahead = logical_or(before, logical_and(unequal, earlier))
    rank = reduce("add", where(ahead, const(1, int64), const(0, int64)), -1)
    return inverse_order(rank)


def _taken(x: Node, order: Node) -> Node:
    """The rows of x in an order."""
    return gather(x, expand(column_of(order), x.shape), -2)


# ---- Hermitian matrices --------------------------------------------------------------------------
def eigen(x: Node) -> list[Node]:
    """[values, vectors] of Hermitian (.., n, n), of which the lower triangle is read: the values
    ascend, and column i of vectors belongs to value i."""
    size = x.shape[-1]
    assert isinstance(size, int)
    if size == 0:
        return [real(diagonal(x, 0, -2, -1)), x]
    scale = _scale(tril(x))
    a = div(hermitian(x), scale)
    start = expand(eye(size, dtype=x.dtype), a.shape)
    longer = _to_even if size <= WHOLE else _lengthened
    a, vectors = _diagonalized(longer(a, (-2, -1)), longer(start, (-2,)))
    values = real(diagonal(a, 0, -2, -1))
    # the vectors of rows that were added have nothing in the places of the others
    added = eq(reduce("add", squared(vectors), -1), 0)
    order = _order(where(added, math.inf, values), descending=False)
    values = narrow(gather(values, order, -1), -1, 0, size)
    vectors = narrow(_taken(vectors, order), -2, 0, size)
    return [mul(values, reshape(scale, (*scale.shape[:-2], 1))), adjoint(vectors)]


def _diagonalized(a: Node, start: Node) -> tuple[Node, Node]:
    """A Hermitian matrix rotated until it is diagonal, and the same rotations of the rows of
    `start`."""
    width = a.shape[-1]
    assert isinstance(width, int)
    in_blocks = width > WHOLE
    rounds = _blocks(width) - 1 if in_blocks else width - 1
    off_diagonal = ne(iota(width, int64), column_of(iota(width, int64)))
    epsilon = (2 if in_blocks else 1) * a.dtype.real.eps
    bound = mul(reduce("add", squared(a), (-2, -1)), epsilon**2)

    def goes_on(carry: Any) -> Node:
        number, a, _ = carry
        rest = reduce("max", where(off_diagonal, squared(a), 0), (-2, -1))
        unfinished = reduce("or", gt(rest, bound)) if rest.shape else gt(rest, bound)
        return logical_and(lt(number, SWEEPS * rounds), unfinished)

    def turn(carry: Any) -> Any:
        number, a, vectors = carry
        if not in_blocks:
            return add(number, 1), *_turned_pair(a, vectors)
        turn = _swept(_diagonal_pairs(a))
        for _ in range(2):
            a = adjoint(_apart(matmul(turn, _paired(a))))
        return add(number, 1), contiguous(a), _apart(matmul(turn, _paired(vectors)))

    _, a, vectors = while_loop(goes_on, turn, (const(0, int64), a, start))
    return a, vectors


# ---- singular values -----------------------------------------------------------------------------
def singular(x: Node, is_full: bool) -> list[Node]:
    """[U, S, V^H] of (.., m, n); S descends. With `is_full` U and V are square."""
    rows, columns = x.shape[-2:]
    assert isinstance(rows, int) and isinstance(columns, int)
    if rows < columns:
        v, values, uh = singular(adjoint(x), is_full)
        return [adjoint(uh), values, adjoint(v)]
    if columns == 0:
        width = rows if is_full else 0
        u = expand(eye(rows, width, dtype=x.dtype), (*x.shape[:-2], rows, width))
        return [u, real(diagonal(x, 0, -2, -1)), narrow(x, -2, 0, 0)]
    scale = _scale(x)
    start = expand(eye(columns, dtype=x.dtype), (*x.shape[:-2], columns, columns))
    longer = _to_even if columns <= WHOLE else _lengthened
    parts, vectors = _orthogonal(longer(adjoint(div(x, scale)), (-2,)), longer(start, (-2,)))
    squares = reduce("add", squared(parts), -1)
    added = eq(reduce("add", squared(vectors), -1), 0)
    order = _order(where(added, -1, squares), descending=True)
    parts = narrow(_taken(parts, order), -2, 0, columns)
    vectors = narrow(_taken(vectors, order), -2, 0, columns)
    values = sqrt(reduce("add", squared(parts), -1))
    # orthogonal columns are what QR makes of them; it also finds those that belong to 0
    q, r = reflected(adjoint(parts), rows if is_full else columns)
    main = real(diagonal(r, 0, -2, -1))
    main = pad(main, [*[(0, 0)] * (len(x.shape) - 2), (0, q.shape[-1] - columns)])
    signs = where(lt(main, 0), const(-1, main.dtype), const(1, main.dtype))
    u = mul(q, reshape(signs, (*signs.shape[:-1], 1, signs.shape[-1])))
    return [u, mul(values, reshape(scale, (*scale.shape[:-2], 1))), vectors]


def _orthogonal(parts: Node, vectors: Node) -> tuple[Node, Node]:
    """The rows rotated until all are orthogonal, and the same rotations of `vectors`: a sweep goes
    on to another if it found two rows whose product is more than rounding makes of it."""
    width = parts.shape[-2]
    assert isinstance(width, int)
    in_blocks = width > WHOLE
    rounds = _blocks(width) - 1 if in_blocks else width - 1
    epsilon = parts.dtype.real.eps
    small = mul(reduce("add", squared(parts), (-2, -1), True), epsilon)
    bound = epsilon * max(4, width) ** 0.5

    def goes_on(carry: Any) -> Node:
        number, unfinished, _, _ = carry
        inside = ne(remainder(number, rounds), 0)
        more = logical_or(logical_or(eq(number, 0), inside), unfinished)
        return logical_and(lt(number, SWEEPS * rounds), more)

    def by_rows(parts: Node, vectors: Node) -> tuple[Node, Node, Node]:
        upper, lower = _halves(parts, -2)
        first, second = (reduce("add", squared(half), -1) for half in (upper, lower))
        product = reduce("add", mul(upper, conjugate(lower)), -1)
        size = add(mul(sqrt(first), sqrt(second)), reshape(small, (*small.shape[:-2], 1)))
        large = gt(abs_(product), mul(size, bound))
        angles = _angles(first, second, product)
        parts, vectors = (_moved_on(_rotated(x, *angles), -2) for x in (parts, vectors))
        return large, parts, vectors

    def by_blocks(parts: Node, vectors: Node) -> tuple[Node, Node, Node]:
        pairs = _paired(parts)
        products = contiguous(matmul(pairs, adjoint(pairs)))
        lengths = sqrt(real(diagonal(products, 0, -2, -1)))
        least = reshape(small, (*small.shape, 1))
        size = add(
            mul(column_of(lengths), reshape(lengths, (*lengths.shape[:-1], 1, 2 * BLOCK))), least
        )
        number = iota(2 * BLOCK, int64)
        large = logical_and(gt(abs_(products), mul(size, bound)), ne(number, column_of(number)))
        turn = _swept(products)
        return large, _apart(matmul(turn, pairs)), _apart(matmul(turn, _paired(vectors)))

    def turn(carry: Any) -> Any:
        number, unfinished, parts, vectors = carry
        large, parts, vectors = (by_blocks if in_blocks else by_rows)(parts, vectors)
        inside = ne(remainder(number, rounds), 0)  # a sweep begins with none
        unfinished = logical_or(logical_and(unfinished, inside), reduce("or", large))
        return add(number, 1), unfinished, parts, vectors

    carry = (const(0, int64), const(False, bool_), parts, vectors)
    _, _, parts, vectors = while_loop(goes_on, turn, carry)
    return parts, vectors
