"""Arithmetic of complex numbers, as operations on their parts.

`ON_PAIRS` has a rule for each operation that complex numbers have, and for each reduction, by the
name of its monoid; `build.py` looks them up when it meets a complex operand. A rule is
`rule(nodes, given)`: the operands in one complex dtype and one shape, and what they were made of.
A real factor or divisor (of a real dtype, or a real Python number) scales both parts, so that
it makes no NaN of an infinite part.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from treadle.graph import shapes
from treadle.graph.build import (
    ON_PAIRS,
    alu,
    cast,
    const,
    pad,
    permute,
    reduce,
    reshape,
    shrink,
)
from treadle.graph.parts import by_parts, complex_of, imag, real
from treadle.ir import ops
from treadle.ir.dtype import bool_
from treadle.ir.node import Node
from treadle.ir.ops import Op

Given = Sequence[Any]
Rule = Callable[[Sequence[Node], Given], Node]


def is_real(x: Any) -> bool:
    """Whether an operand is of a real dtype, or a real Python number."""
    return x.dtype.kind != "c" if isinstance(x, Node) else not isinstance(x, complex)


def conjugate(x: Node) -> Node:
    """re - i im; a real number, as it is."""
    return complex_of(real(x), alu(ops.NEG, imag(x))) if x.dtype.is_complex else x


def rule(op: Op) -> Callable[[Rule], Rule]:
    """Files a function as what an operation does to complex numbers."""

    def register(function: Rule) -> Rule:
        ON_PAIRS[op] = function
        return function

    return register


def _parts_alone(op: Op) -> Rule:
    """Real parts with real parts, imaginary ones with imaginary ones."""
    return lambda nodes, given: by_parts(lambda *parts: alu(op, *parts), *nodes)


def _verdict(op: Op, together: Op) -> Rule:
    """A comparison of both parts, as one bool."""

    def compare(nodes: Sequence[Node], given: Given) -> Node:
        a, b = nodes
        return alu(together, alu(op, real(a), real(b)), alu(op, imag(a), imag(b)))

    return compare


ON_PAIRS |= {op: _parts_alone(op) for op in (ops.ADD, ops.SUB, ops.NEG)}
ON_PAIRS |= {ops.EQ: _verdict(ops.EQ, ops.AND), ops.NE: _verdict(ops.NE, ops.OR)}


@rule(ops.MUL)
def _product(nodes: Sequence[Node], given: Given) -> Node:
    """(a + ib) (c + id) = (ac - bd) + i (ad + bc)."""
    x, y = nodes
    if is_real(given[0]):
        return by_parts(lambda part: alu(ops.MUL, real(x), part), y)
    if is_real(given[1]):
        return by_parts(lambda part: alu(ops.MUL, part, real(y)), x)
    return multiplied(lambda u, v: alu(ops.MUL, u, v), x, y)


def multiplied(product: Callable[[Node, Node], Node], x: Node, y: Node) -> Node:
    """A product that is linear in both factors (of numbers, of matrices), of complex ones: four of
    real ones."""
    (a, b), (c, d) = (real(x), imag(x)), (real(y), imag(y))
    re = alu(ops.SUB, product(a, c), product(b, d))
    return complex_of(re, alu(ops.ADD, product(a, d), product(b, c)))


@rule(ops.ZMUL)
def _zero_cotangent(nodes: Sequence[Node], given: Given) -> Node:
    """A zero cotangent times anything is zero."""
    g, d = nodes
    return multiplied(lambda u, v: alu(ops.ZMUL, u, v), g, d)


@rule(ops.CAST)
def _cast(nodes: Sequence[Node], given: Given) -> Node:
    """To complex numbers, from one complex type to the other, or to bool: whether it is not 0."""
    (x,), (dtype,) = nodes, given
    if not x.dtype.is_complex:
        return complex_of(cast(x, dtype.real), const(0, dtype.real, x.shape))
    if dtype.is_complex:
        return by_parts(lambda part: cast(part, dtype.real), x)
    if dtype is bool_:
        return alu(ops.OR, cast(real(x), bool_), cast(imag(x), bool_))
    raise TypeError(f"{x.dtype} numbers are no {dtype}: take x.real, x.imag or abs(x)")


# ---- reductions ----------------------------------------------------------------------------------
def _sum(x: Node, axes: tuple[int, ...]) -> Node:
    """The sums of the parts."""
    return by_parts(lambda part: reduce("add", part, axes), x)


def _product_of_all(x: Node, axes: tuple[int, ...]) -> Node:
    """One half times the other, again and again: what is missing to a power of two is 1."""
    rows = [axis for axis in range(len(x.shape)) if axis not in axes]
    left = tuple([x.shape[axis] for axis in rows])
    count = shapes.total([x.shape[axis] for axis in axes])
    level = reshape(permute(x, (*rows, *axes)), (*left, count))
    width = 1 << max(0, shapes.bounds(count)[1] - 1).bit_length()
    level = pad(level, (*[(0, 0)] * len(left), (0, shapes.subtract(width, count))), value=1)
    whole = [(0, size) for size in left]
    while width > 1:
        width //= 2
        halves = [shrink(level, (*whole, (start, start + width))) for start in (0, width)]
        level = alu(ops.MUL, *halves)
    return reshape(level, left)


ON_PAIRS |= {"add": _sum, "mul": _product_of_all}
