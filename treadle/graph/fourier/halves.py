"""Transforms of real signals, and those whose results are real, at half the cost: half of the
numbers say all, since the others are their conjugates, X_(n - k) = conj X_k.

Of an even length n = 2h the even elements are the real, the odd ones the imaginary parts of one
complex signal of length h, from whose transform Z both transforms are taken apart:

    X_k = E_k - i w**k O_k, where 2 E_k = Z_k + conj Z_(h - k), 2 O_k = Z_k - conj Z_(h - k),
    w = exp(-2 pi i / n)
"""

from __future__ import annotations

from treadle.graph.build import contiguous, flip, iota, permute, reshape, where
from treadle.graph.elementwise import add, eq, gt, logical_and, logical_or, lt, neg, sub
from treadle.graph.fourier.lengths import radices
from treadle.graph.fourier.roots import line
from treadle.graph.fourier.transform import (
    PART,
    TIME,
    conjugate,
    inverse,
    padded,
    times,
    transform,
)
from treadle.graph.movement import cat, narrow
from treadle.ir.dtype import int64
from treadle.ir.node import Node


def _packed(n: int) -> bool:
    """Whether a real signal is transformed as a complex one of half its length."""
    return n % 2 == 0 and len(radices(n)) > 1


def half(x: Node, scale: float = 1.0) -> Node:
    """The first n // 2 + 1 numbers of `scale` times the transform of real signals."""
    batch, _, n, inside = x.shape
    h = n // 2
    if not _packed(n):
        return narrow(transform(x, scale), TIME, 0, h + 1)
    pairs = contiguous(permute(reshape(x, (batch, h, 2, inside)), (0, 2, 1, 3)))
    z = contiguous(transform(pairs, scale / 2))
    z = cat([z, narrow(z, TIME, 0, 1)], dim=TIME)
    other = conjugate(flip(z, TIME))
    c, s = (reshape(each, (h + 1, 1)) for each in line(h + 1, n, x.dtype))
    return add(add(z, other), times(sub(z, other), neg(s), neg(c)))


def whole(x: Node, n: int, scale: float = 1.0) -> Node:
    """`scale` times the inverse transform, without its division by n, of n numbers of which the
    first n // 2 + 1 are given: real signals (.., 1, n, ..).

    What would make the result complex, the imaginary parts of X_0 and of X_(n / 2), counts as 0.
    """
    batch, parts, count, inside = x.shape
    if parts == 1:
        x = padded(x, 0, 1, PART)
    k = reshape(iota(count, int64), (count, 1))
    free = logical_and(gt(k, 0), lt(k, (n + 1) // 2))
    is_real = reshape(eq(iota(2, int64), 0), (2, 1, 1))
    x = where(logical_or(is_real, free), x, 0.0)
    if not _packed(n):
        rest = conjugate(flip(narrow(x, TIME, 1, (n + 1) // 2), TIME))
        return narrow(inverse(cat([x, rest], dim=TIME), scale), PART, 0, 1)
    h = n // 2
    other = conjugate(flip(x, TIME))
    even, odd = (narrow(f(x, other), TIME, 0, h) for f in (add, sub))
    c, s = (reshape(each, (h, 1)) for each in line(h, n, x.dtype))
    z = inverse(add(even, times(odd, neg(s), c)), scale)
    return reshape(permute(z, (0, 2, 1, 3)), (batch, 1, n, inside))
