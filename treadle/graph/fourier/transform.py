"""The transform itself, on *signals*: real nodes of shape (batch, parts, time, inside).

The two parts are the real and the imaginary one; a real signal has one part. `inside` are the axes
behind the one that is transformed: a transform along any axis moves nothing. Complex arithmetic is
written on the parts, where a product of complex matrices is one product of real ones of twice the
size, and where i * conj(x), the two parts exchanged, is a movement.
"""

from __future__ import annotations

import math

from treadle.graph.build import (
    alu,
    cast,
    const,
    contiguous,
    flip,
    iota,
    pad,
    permute,
    reshape,
    where,
)
from treadle.graph.elementwise import add, eq, lt, minimum, mul, neg, remainder, sub
from treadle.graph.fourier.lengths import DIRECT, radices, roomy
from treadle.graph.linear import contract
from treadle.graph.movement import cat, narrow, stack
from treadle.ir import ops
from treadle.ir.dtype import DType, float64, int64
from treadle.ir.node import Node

PART = 1
TIME = 2


# ---- roots of unity ------------------------------------------------------------------------------
def roots(numbers: Node, n: int) -> tuple[Node, Node]:
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


def table(x: Node, dtype: DType) -> Node:
    """Numbers kept in memory, which a captured function computes once, as all that is constant."""
    return contiguous(cast(x, dtype))


def times(x: Node, cosine: Node, sine: Node) -> Node:
    """A signal times cosine + i sine, which have its shape, or stretch to it, without the parts."""
    c, s = (reshape(each, (1, 1, *each.shape)) for each in (cosine, sine))
    if x.shape[PART] == 1:
        return mul(x, cat([c, s], dim=PART))
    # i (a + ib) = -b + ia
    return add(mul(x, c), mul(flip(x, PART), mul(s, _signs(x, PART, -1, 1))))


def conjugate(x: Node, axis: int = PART) -> Node:
    """The parts of the conjugates; what is real is its own."""
    return mul(x, _signs(x, axis, 1, -1)) if x.shape[axis] == 2 else x


def _signs(x: Node, axis: int, real: int, imaginary: int) -> Node:
    """A factor of each part of a signal."""
    along = [1] * len(x.shape)
    along[axis] = 2
    return reshape(where(eq(iota(2, int64), 0), const(real, x.dtype), imaginary), along)


# ---- short transforms ----------------------------------------------------------------------------
def _matrix(r: int, parts: int, scale: float, dtype: DType) -> Node:
    """(2r, parts * r): the matrix that makes of the parts of r numbers those of their transform."""
    k = iota(r, int64)
    c, s = roots(remainder(mul(reshape(k, (r, 1)), reshape(k, (1, r))), r), r)
    # (a + ib) (cos - i sin): the real part is cos a + sin b, the imaginary one cos b - sin a
    of_real, of_imaginary = stack([c, neg(s)]), stack([s, c])  # (2, k, j)
    columns = [of_real] if parts == 1 else [of_real, of_imaginary]
    return table(mul(reshape(stack(columns, dim=2), (2 * r, parts * r)), scale), dtype)


def _product(x: Node, scale: float) -> Node:
    """The transforms of short signals (batch, parts, r, inside), as one matrix product."""
    batch, parts, r, inside = x.shape
    flat = reshape(x, (batch, parts * r, inside))
    matrix = _matrix(r, parts, scale, x.dtype)
    return reshape(contract(matrix, permute(flat, (0, 2, 1))), (batch, 2, r, inside))


def _chirped(x: Node, scale: float) -> Node:
    """The transforms of signals (batch, parts, r, inside) of any length r, as a convolution.

    2jk = j**2 + k**2 - (k - j)**2, so with the chirp u_j = exp(-pi i j**2 / r) the transform is
    u_k * sum over j of (x_j u_j) / u_(k - j). Source: Bluestein, IEEE Trans. Audio Electroacoust.
    18, 1970.
    """
    r = x.shape[TIME]
    length = roomy(2 * r - 1)
    c, s = _chirp(iota(r, int64), r)
    at = (r, 1)
    cosine, sine = (reshape(table(each, x.dtype), at) for each in (c, neg(s)))
    turned = times(x, cosine, sine)
    room = [(0, 0)] * len(x.shape)
    room[TIME] = (0, length - r)
    # 1 / u_d for d = 1 - r .. r - 1, those below 0 at the end, where the period puts them
    k = iota(length, int64)
    distance = minimum(k, sub(length, k))
    filter_ = stack([where(lt(distance, r), each, 0.0) for each in _chirp(distance, r)])
    filter_ = table(mul(filter_, scale / length), x.dtype)
    spectrum = contiguous(transform(reshape(filter_, (1, 2, length, 1))))
    cosines, sines = (
        reshape(narrow(spectrum, PART, part, part + 1), (length, 1)) for part in (0, 1)
    )
    product = times(transform(pad(turned, room)), cosines, sines)
    return times(narrow(inverse(product), TIME, 0, r), cosine, sine)


def _chirp(k: Node, r: int) -> tuple[Node, Node]:
    """cos and sin of pi k**2 / r."""
    return roots(remainder(mul(k, k), 2 * r), 2 * r)


# ---- transforms of any length --------------------------------------------------------------------
def transform(x: Node, scale: float = 1.0) -> Node:
    """`scale` times the transforms of signals (batch, 1 or 2, n, inside): (batch, 2, n, inside).

    After some steps the signals are (batch, 2, n / done, done, inside), transformed along `done`:
    a step takes r of what is left, turns every element by exp(-2 pi i j k / (r done)), and
    transforms along the r (Stockham's order, which sorts as it goes).
    """
    batch, _, n, inside = x.shape
    steps = radices(n)
    done = 1
    for number, r in enumerate(steps):
        parts, left = x.shape[PART], n // (r * done)
        if done > 1:
            j, k = reshape(iota(r, int64), (r, 1)), reshape(iota(done, int64), (1, done))
            c, s = roots(mul(j, k), r * done)
            cosine, sine = (reshape(table(each, x.dtype), (r, 1, done, 1)) for each in (c, neg(s)))
            x = times(reshape(x, (batch, parts, r, left, done, inside)), cosine, sine)
        last = number == len(steps) - 1
        short = _product if r <= DIRECT else _chirped
        x = short(reshape(x, (batch, parts, r, left * done * inside)), scale if last else 1.0)
        x = permute(reshape(x, (batch, 2, r, left, done * inside)), (0, 1, 3, 2, 4))
        x = reshape(x if last else contiguous(x), (batch, 2, n, inside))
        done *= r
    return x


def inverse(x: Node, scale: float = 1.0) -> Node:
    """`scale` times the inverse transforms, without their division by n, of signals.

    With y = i conj(x), the parts of x exchanged, the inverse of x is i conj(transform of y).
    """
    if x.shape[PART] == 1:
        return conjugate(transform(x, scale))
    return flip(transform(flip(x, PART), scale), PART)
