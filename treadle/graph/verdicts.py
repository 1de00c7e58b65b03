"""Answers about whole tensors, as Python bools: the values are read now."""

from __future__ import annotations

from treadle.graph.build import Operand, cast, reduce
from treadle.graph.elementwise import eq
from treadle.graph.floating import isclose
from treadle.graph.masks import Read
from treadle.graph.public import public
from treadle.graph.shapes import same_shape
from treadle.ir.dtype import int64
from treadle.ir.node import Node


def _answer(name: str, truth: Node, read: Read) -> bool:
    """Whether every element is true."""
    number, _ = read(name, cast(reduce("and", truth), int64))
    return bool(number)


@public("equal", source="PyTorch", gradient="int", kind="reads")
def equal(x: Node, other: Node, *, read: Read) -> bool:
    """Whether two tensors have one shape and equal elements (NaN equals nothing); `x == other`, or
    `treadle.equal(x, other)`, compares elements.

    >>> Tensor([1, 2]).equal(Tensor([1, 2])), Tensor([1, 2]).equal(Tensor([[1, 2]]))
    (True, False)
    """
    if not same_shape(x.shape, other.shape):
        return False
    return _answer("equal", eq(x, other), read)


@public("equal", source="Array API", method=False, namespace=True, gradient="int")
def equal_elements(x1: Operand, x2: Operand, /) -> Node:
    """Whether x1 == x2, element by element.

    >>> treadle.equal(Tensor([1, 2]), Tensor([1, 3]))
    Tensor([ True, False])
    """
    return eq(x1, x2)


@public("allclose", source="PyTorch", gradient="int", kind="reads")
def allclose(
    x: Node,
    other: Operand,
    rtol: float = 1e-5,
    atol: float = 1e-8,
    equal_nan: bool = False,
    *,
    read: Read,
) -> bool:
    """Whether `isclose` holds everywhere.

    >>> Tensor([1.0, 2.0]).allclose(Tensor([1.0, 2.000001]))
    True
    """
    truth = isclose(x, other, rtol, atol, equal_nan)
    return _answer("allclose", truth if truth.shape else reduce("and", truth), read)
