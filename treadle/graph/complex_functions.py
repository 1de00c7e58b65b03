"""Functions that make complex numbers, take them apart, or are for them alone.

https://data-apis.org/array-api/2024.12, and PyTorch where the standard has none.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from treadle.graph.build import (
    Operand,
    alu,
    as_float,
    broadcast,
    cast,
    const,
    full_like,
    iota,
    node_of,
    operands,
    reshape,
    shrink,
    where,
    zeros_like,
)
from treadle.graph.complexes import conjugate, multiplied
from treadle.graph.elementwise import (
    abs_,
    add,
    by_squaring,
    div,
    eq,
    floats,
    logical_and,
    logical_or,
    lt,
    mul,
    ne,
    sign,
)
from treadle.graph.functions import cos, sin
from treadle.graph.parts import by_parts, complex_of, imag, real
from treadle.graph.public import public
from treadle.graph.shapes import as_shape, text
from treadle.graph.trigonometry import atan2
from treadle.ir import ops
from treadle.ir.dtype import DType, bool_, complex128, float32, float64, int64
from treadle.ir.node import Node


# ---- parts ---------------------------------------------------------------------------------------
def _of_both(part: Callable[[Node], Node], x: Node) -> Node:
    """A part of complex numbers, which counts as computed from the other part, too."""
    if x.op is not ops.COMPLEX:
        return part(x)
    return where(True, part(x), imag(x) if part is real else real(x))


@public("real", source="PyTorch", kind="property")
def real_part(x: Node) -> Node:
    """The real part; of a real tensor, itself.

    >>> Tensor([1 + 2j, 3]).real
    Tensor([1., 3.])
    """
    return _of_both(real, x)


@public("imag", source="NumPy", kind="property")
def imaginary_part(x: Node) -> Node:
    """The imaginary part; of a real tensor, 0 (PyTorch raises).

    >>> Tensor([1 + 2j, 3]).imag
    Tensor([2., 0.])
    """
    return _of_both(imag, x) if x.dtype.is_complex else where(True, zeros_like(x), x)


@public("conj", source="Array API", namespace=True)
def conj(x: Node, /) -> Node:
    """The complex conjugate, which of a real number is the number.

    >>> Tensor([1 + 2j, 3]).conj()
    Tensor([1.-2.j, 3.-0.j], dtype=complex64)
    """
    return conjugate(x)


@public("real", source="Array API", method=False, namespace=True)
def real_of(x: Node, /) -> Node:
    """The real part, which of a real number is the number.

    >>> treadle.real(Tensor([1 + 2j, 3]))
    Tensor([1., 3.])
    """
    return _of_both(real, x)


@public("imag", source="Array API", method=False, namespace=True)
def imag_of(x: Node, /) -> Node:
    """The imaginary part, which of a real number is 0.

    >>> treadle.imag(Tensor([1 + 2j, 3]))
    Tensor([2., 0.])
    """
    return _of_both(imag, x) if x.dtype.is_complex else where(True, zeros_like(x), x)


@public("complex", source="PyTorch", namespace=True, method=False)
def complex_(real: Operand, imag: Operand) -> Node:
    """The complex numbers of these parts, which broadcast: complex128 of float64, else complex64.

    >>> treadle.complex(Tensor([1.0, 2.0]), Tensor(3.0))
    Tensor([1.+3.j, 2.+3.j], dtype=complex64)
    """
    return complex_of(*_two_parts("complex", real, imag))


def _two_parts(name: str, x: Operand, y: Operand) -> tuple[Node, ...]:
    """Two real operands as parts of one dtype and shape. TypeError if one is complex."""
    pair = floats(x, y)
    if pair[0].dtype.is_complex:
        raise TypeError(f"{name} is of two real numbers, and one of them is {pair[0].dtype}")
    wide = pair[0].dtype.accumulator
    return broadcast(*[cast(part, wide) for part in pair], name=name)


@public("polar", source="PyTorch", namespace=True, method=False)
def polar(abs: Operand, angle: Operand) -> Node:
    """The complex numbers at a distance from 0 and an angle, in radians: abs * exp(i angle).

    >>> treadle.polar(Tensor([2.0]), Tensor([0.0]))
    Tensor([2.+0.j], dtype=complex64)
    """
    size, turn = _two_parts("polar", abs, angle)
    return complex_of(mul(size, cos(turn)), mul(size, sin(turn)))


@public("view_as_real", source="PyTorch", namespace=True, method=False)
def view_as_real(x: Node) -> Node:
    """The parts along a new last dimension of size 2.

    >>> treadle.view_as_real(Tensor([1 + 2j, 3]))
    Tensor([[1., 2.],
            [3., 0.]])
    """
    if not x.dtype.is_complex:
        raise TypeError(f"view_as_real is for complex numbers, not for {x.dtype}")
    both = [reshape(part, (*x.shape, 1)) for part in (real(x), imag(x))]
    return where(eq(iota(2, int64), 0), *both)


@public("view_as_complex", source="PyTorch", namespace=True, method=False)
def view_as_complex(x: Node) -> Node:
    """The complex numbers whose parts stand along the last dimension, of size 2.

    >>> treadle.view_as_complex(Tensor([[1.0, 2.0], [3.0, 0.0]]))
    Tensor([1.+2.j, 3.+0.j], dtype=complex64)
    """
    if x.dtype not in (float32, float64):
        raise TypeError(f"view_as_complex is for float32 and float64, not for {x.dtype}")
    if not x.shape or x.shape[-1] != 2:
        raise ValueError(
            f"view_as_complex: the last dimension is of size 2, not that of {text(x.shape)}"
        )
    before = x.shape[:-1]
    whole = [(0, size) for size in before]
    both = [reshape(shrink(x, [*whole, (n, n + 1)]), before) for n in (0, 1)]
    return complex_of(*both)


@public("is_complex", source="PyTorch", namespace=True, gradient="no")
def is_complex(x: Node) -> bool:
    """Whether the dtype is complex.

    >>> Tensor([1j]).is_complex(), Tensor([1.0]).is_complex()
    (True, False)
    """
    return bool(x.dtype.is_complex)


@public("isreal", source="PyTorch", namespace=True, gradient="int")
def isreal(x: Node) -> Node:
    """Whether the imaginary part is 0.

    >>> Tensor([1 + 2j, 3]).isreal()
    Tensor([False,  True])
    """
    return eq(imag(x), 0) if x.dtype.is_complex else const(True, bool_, x.shape)


# ---- directions ----------------------------------------------------------------------------------
@public("angle", source="PyTorch", namespace=True)
def angle(x: Node) -> Node:
    """The angle of a complex number, in radians from -pi to pi; of a real one 0, or pi below 0.

    >>> Tensor([1j, -1]).angle()
    Tensor([1.5707964, 3.1415927])
    """
    if x.dtype.is_complex:
        return atan2(imag(x), real(x))
    node = as_float(x)
    return where(ne(node, node), node, where(lt(node, 0), math.pi, full_like(node, 0)))


@public("sgn", source="PyTorch", namespace=True)
def sgn(x: Node) -> Node:
    """x / abs(x), and 0 of 0; of real numbers, the sign.

    >>> Tensor([3 + 4j, 0]).sgn()
    Tensor([0.6+0.8j, 0. +0.j ], dtype=complex64)
    """
    if not x.dtype.is_complex:
        return sign(x)
    size = abs_(x)
    return where(eq(size, 0), 0, div(x, where(eq(size, 0), 1, size)))


# ---- of complex numbers, what others are of real ones --------------------------------------------
def quotient(of_reals: Callable[..., Node]) -> Callable[..., Node]:
    """x / other. TypeError for a quotient that is rounded."""

    def run(x: Operand, other: Operand, *, rounding_mode: str | None = None) -> Node:
        if rounding_mode is not None:
            return of_reals(x, other, rounding_mode=rounding_mode)
        return alu(ops.DIV, x, other)

    return run


MOST_PRODUCTS = 64  # powers up to which are products


def power(x: Operand, exponent: Operand) -> Node:
    """x to a power; whole ones that are small Python numbers by products."""
    if isinstance(exponent, int) and abs(exponent) <= MOST_PRODUCTS and isinstance(x, Node):
        product = by_squaring(x, abs(exponent))
        return product if exponent >= 0 else alu(ops.DIV, 1, product)
    return alu(ops.POW, x, exponent)


def double_power(x: Operand, exponent: Operand) -> Node:
    """`float_power`, in complex128."""
    return alu(ops.POW, *[cast(node_of(each), complex128) for each in (x, exponent)])


def each_part(of_reals: Callable[..., Node]) -> Callable[..., Node]:
    """Part by part."""

    def run(x: Node, *args: Any, **named: Any) -> Node:
        return by_parts(lambda part: of_reals(part, *args, **named), x)

    return run


def line_of_parts(of_reals: Callable[..., Node]) -> Callable[..., Node]:
    """A line between two numbers, part by part."""

    def run(start: Any, stop: Any, *args: Any, dtype: DType | None = None, **named: Any) -> Node:
        ends = [node_of(each) for each in (start, stop)]
        wanted = dtype or next(each.dtype for each in ends if each.dtype.is_complex)
        if not wanted.is_complex:
            raise TypeError(f"linspace: a complex number stands at an end, and dtype is {wanted}")
        first, last = [cast(each, wanted) for each in ends]
        return by_parts(lambda a, b: of_reals(a, b, *args, dtype=wanted.real, **named), first, last)

    return run


def conjugated(of_reals: Callable[..., Node]) -> Callable[..., Node]:
    """Of the conjugate of the first."""

    def run(x: Node, *args: Any, **named: Any) -> Node:
        return of_reals(conjugate(x), *args, **named)

    return run


def random_parts(scale: float) -> Callable[[Callable[..., Node]], Callable[..., Node]]:
    """Two real draws as one complex number, times a scale."""

    def of_reals_(of_reals: Callable[..., Node]) -> Callable[..., Node]:
        def run(key: Any, *size: Any, dtype: DType) -> Node:
            shape = (*as_shape(*size), 2)
            return mul(view_as_complex(of_reals(key, shape, dtype=dtype.real)), scale)

        return run

    return of_reals_


UNIFORM, NORMAL = random_parts(1.0), random_parts(math.sqrt(0.5))  # variance 1 of both together


def in_either(of_reals: Callable[..., Node]) -> Callable[..., Node]:
    """Whether it holds for one of the parts."""
    return lambda x: logical_or(of_reals(real(x)), of_reals(imag(x)))


def in_both(of_reals: Callable[..., Node]) -> Callable[..., Node]:
    """Whether it holds for both parts."""
    return lambda x: logical_and(of_reals(real(x)), of_reals(imag(x)))


def convolved(of_reals: Callable[..., Node]) -> Callable[..., Node]:
    """A convolution, which is linear in what is convolved and in the weights: four of real ones."""

    def run(x: Node, weight: Node, bias: Node | None = None, *args: Any, **named: Any) -> Node:
        product = multiplied(
            lambda one, other: of_reals(one, other, None, *args, **named), *operands(x, weight)
        )
        if bias is None:
            return product
        return add(product, reshape(bias, (-1, *[1] * (len(weight.shape) - 2))))

    return run


def added_spread(of_reals: Callable[..., Node]) -> Callable[..., Node]:
    """The variance: that of the real parts and that of the imaginary ones."""
    return lambda x, *args, **named: add(
        of_reals(real(x), *args, **named), of_reals(imag(x), *args, **named)
    )


def joined_spread(of_reals: Callable[..., Node]) -> Callable[..., Node]:
    """The standard deviation, the root of the sum of the squares of those of the parts."""
    return lambda x, *args, **named: abs_(each_part(of_reals)(x, *args, **named))


def with_mean(join: Callable[..., Any]) -> Callable[..., Any]:
    """(spread, mean), of which the mean is complex."""

    def of_reals_(of_reals: Callable[..., tuple[Node, Node]]) -> Callable[..., tuple[Node, Node]]:
        def run(x: Node, *args: Any, **named: Any) -> tuple[Node, Node]:
            found = [of_reals(part, *args, **named) for part in (real(x), imag(x))]
            spread, mean = zip(*found)
            return join(*spread), complex_of(*mean)

        return run

    return of_reals_


VAR_MEAN = with_mean(add)
STD_MEAN = with_mean(lambda re, im: abs_(complex_of(re, im)))
