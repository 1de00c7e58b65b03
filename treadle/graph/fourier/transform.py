"""The transform itself, on *signals*: real nodes of shape (batch, parts, time, inside).

The two parts are the real and the imaginary one; a real signal has one part. `inside` are the axes
behind the one that is transformed: a transform along any axis moves nothing. Complex arithmetic is
written on the parts, where a product of complex matrices is one product of real ones of twice the
size, and where i * conj(x), the two parts exchanged, is a movement.
"""

from __future__ import annotations

from treadle.graph.build import const, contiguous, flip, iota, pad, permute, reshape, where
from treadle.graph.elementwise import add, eq, mul, neg
from treadle.graph.fourier.lengths import DIRECT, radices, roomy
from treadle.graph.fourier.roots import chirp, matrix, turns
from treadle.graph.linear import contract
from treadle.graph.movement import cat, narrow
from treadle.graph.shapes import Dim
from treadle.ir.dtype import int64
from treadle.ir.node import Node

PART = 1
TIME = 2


# ---- arithmetic of signals -----------------------------------------------------------------------
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
    """A factor of each part."""
    along = [1] * len(x.shape)
    along[axis] = 2
    return reshape(where(eq(iota(2, int64), 0), const(real, x.dtype), imaginary), along)


def padded(x: Node, before: Dim, after: Dim, axis: int = TIME) -> Node:
    """Zeros before and after the time, or along another axis."""
    room: list[tuple[Dim, Dim]] = [(0, 0)] * len(x.shape)
    room[axis] = (before, after)
    return pad(x, room)


# ---- short transforms ----------------------------------------------------------------------------
def _product(x: Node, scale: float) -> Node:
    """The transforms of short signals (batch, parts, r, inside), as one matrix product."""
    batch, parts, r, inside = x.shape
    flat = reshape(x, (batch, parts * r, inside))
    product = contract(matrix(r, parts, scale, x.dtype), permute(flat, (0, 2, 1)))
    return reshape(product, (batch, 2, r, inside))


def _convolution(x: Node, scale: float) -> Node:
    """The transforms of signals (batch, parts, r, inside) of any length r, as a convolution.

    2jk = j**2 + k**2 - (k - j)**2, so with the chirp u_j = exp(-pi i j**2 / r) the transform is
    u_k * sum over j of (x_j u_j) / u_(k - j). Source: Bluestein, IEEE Trans. Audio Electroacoust.
    18, 1970.
    """
    r = x.shape[TIME]
    length = roomy(2 * r - 1)
    c, s = (reshape(each, (r, 1)) for each in chirp(r, x.dtype))
    # 1 / u_d for d = 1 - r .. r - 1, those below 0 at the end, where the period puts them
    inverses = cat([reshape(each, (1, 1, r, 1)) for each in (c, s)], dim=PART)
    ahead = padded(inverses, 0, length - r)
    behind = padded(flip(narrow(inverses, TIME, 1, r), TIME), length - r + 1, 0)
    spectrum = contiguous(transform(contiguous(add(ahead, behind)), scale / length))
    of_filter = [narrow(spectrum, PART, part, part + 1) for part in (0, 1)]
    turned = contiguous(padded(times(x, c, neg(s)), 0, length - r))
    product = times(transform(turned), *[reshape(each, (length, 1)) for each in of_filter])
    return times(narrow(inverse(contiguous(product)), TIME, 0, r), c, neg(s))


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
            c, s = (reshape(each, (r, 1, done, 1)) for each in turns(r, done, x.dtype))
            x = times(reshape(x, (batch, parts, r, left, done, inside)), c, neg(s))
        last = number == len(steps) - 1
        short = _product if r <= DIRECT else _convolution
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
