"""What linear algebra says of real and of complex matrices alike: transposes, adjoints, and the
sizes and directions of elements. Of a real matrix the adjoint is the transpose."""

from __future__ import annotations

from treadle.graph.build import iota, where
from treadle.graph.complexes import conjugate
from treadle.graph.elementwise import add, div, eq, mul
from treadle.graph.linalg.panels import column_of
from treadle.graph.movement import transpose, tril
from treadle.graph.parts import complex_of, imag, real
from treadle.ir.dtype import int64
from treadle.ir.node import Node


def turned(x: Node) -> Node:
    """The transposes of matrices."""
    return transpose(x, -2, -1)


def adjoint(x: Node) -> Node:
    """The conjugates of the transposes of matrices."""
    return conjugate(turned(x))


def squared(x: Node) -> Node:
    """|x|^2, a real number."""
    if not x.dtype.is_complex:
        return mul(x, x)
    return add(mul(real(x), real(x)), mul(imag(x), imag(x)))


def direction(x: Node, size: Node) -> Node:
    """x / |x| for numbers of a known size; 0 of 0."""
    return div(x, where(eq(size, 0), 1, size))


def made_real(x: Node, chosen: Node) -> Node:
    """The elements without their imaginary parts where they are chosen."""
    return complex_of(real(x), where(chosen, 0, imag(x))) if x.dtype.is_complex else x


def hermitian(x: Node) -> Node:
    """The Hermitian (of a real one: symmetric) matrices of which x has the lower triangle. The
    imaginary parts of the diagonal are not read."""
    number = iota(x.shape[-1], int64)
    whole = add(tril(x), adjoint(tril(x, -1)))
    return made_real(whole, eq(column_of(number), number))
