"""Roots of unity: the numbers by which transforms multiply, in float64 and rounded at the end.

Each table is kept in memory, and so is computed once in a captured function, as everything that
depends on no argument. The nodes of recent ones are remembered, so that it costs nothing to say
the same transform again.
"""

from __future__ import annotations

import math
from functools import lru_cache

from treadle.graph.build import alu, cast, const, contiguous, iota, reshape, where
from treadle.graph.elementwise import add, eq, mul, neg, remainder, sub
from treadle.graph.movement import stack
from treadle.ir import ops
from treadle.ir.dtype import DType, float64, int64
from treadle.ir.node import Node

Pair = tuple[Node, Node]  # cosines and sines
NARROW = 64  # a table with more columns is made of two


def roots(numbers: Node, n: int) -> Pair:
    """cos and sin of 2 pi k / n in float64, for integers 0 <= k < n.

    The angle is folded in integers to within an eighth of a turn, so that it has no error but that
    of its rounding, and multiples of a quarter turn are exact: 4k = q n + rest.
    """
    quarter = cast(alu(ops.RINT, mul(cast(numbers, float64), 4 / n)), int64)
    rest = sub(mul(numbers, 4), mul(quarter, n))
    angle = mul(cast(rest, float64), math.pi / 2 / n)
    c, s = alu(ops.COS, angle), alu(ops.SIN, angle)
    odd = eq(alu(ops.AND, quarter, const(1, int64)), 1)
    lower = eq(alu(ops.AND, quarter, const(2, int64)), 2)
    c, s = where(odd, neg(s), c), where(odd, c, s)
    return where(lower, neg(c), c), where(lower, neg(s), s)


def _kept(pair: Pair, dtype: DType) -> Pair:
    c, s = pair
    return contiguous(cast(c, dtype)), contiguous(cast(s, dtype))


@lru_cache(maxsize=64)
def line(count: int, n: int, dtype: DType) -> Pair:
    """cos and sin of 2 pi k / n for k below `count`, which is at most n."""
    return _kept(roots(iota(count, int64), n), dtype)


@lru_cache(maxsize=64)
def turns(rows: int, columns: int, dtype: DType) -> Pair:
    """cos and sin of 2 pi j k / (rows * columns) for j below `rows`, k below `columns`.

    Of many columns two tables of roots are enough, of which each number is a product: with
    k = a * fine + b it turns by the angle of j a * fine and by that of j b.
    """
    n = rows * columns
    fine = _near_root(columns)
    j = reshape(iota(rows, int64), (rows, 1))
    if columns <= NARROW or fine == 1:
        return _kept(roots(mul(j, reshape(iota(columns, int64), (1, columns))), n), dtype)
    a = reshape(iota(columns // fine, int64), (1, columns // fine))
    ca, sa = _kept(roots(mul(j, a), n // fine), float64)
    cb, sb = _kept(roots(mul(j, reshape(iota(fine, int64), (1, fine))), n), float64)
    ca, sa = (reshape(each, (rows, columns // fine, 1)) for each in (ca, sa))
    cb, sb = (reshape(each, (rows, 1, fine)) for each in (cb, sb))
    c, s = sub(mul(ca, cb), mul(sa, sb)), add(mul(sa, cb), mul(ca, sb))
    return _kept((reshape(c, (rows, columns)), reshape(s, (rows, columns))), dtype)


def _near_root(n: int) -> int:
    """The largest divisor of n that is not above its square root."""
    return next(d for d in range(math.isqrt(n), 0, -1) if n % d == 0)


@lru_cache(maxsize=64)
def chirp(r: int, dtype: DType) -> Pair:
    """cos and sin of pi k**2 / r for k below r."""
    k = iota(r, int64)
    return _kept(roots(remainder(mul(k, k), 2 * r), 2 * r), dtype)


@lru_cache(maxsize=64)
def matrix(r: int, parts: int, scale: float, dtype: DType) -> Node:
    """(2r, parts * r): what makes of the parts of r numbers those of `scale` times their transform.

    (a + ib) (cos - i sin) has the real part cos a + sin b and the imaginary part cos b - sin a.
    """
    k = iota(r, int64)
    c, s = roots(remainder(mul(reshape(k, (r, 1)), reshape(k, (1, r))), r), r)
    of_real, of_imaginary = stack([c, neg(s)]), stack([s, c])  # (2, k, j)
    columns = [of_real] if parts == 1 else [of_real, of_imaginary]
    whole = mul(reshape(stack(columns, dim=2), (2 * r, parts * r)), scale)
    return contiguous(cast(whole, dtype))
