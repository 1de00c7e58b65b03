"""Answers about whole tensors, as Python bools. Where values decide, they are read now."""

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


# ---- what a tensor is ----------------------------------------------------------------------------
@public("is_floating_point", source="PyTorch", gradient="no")
def is_floating_point(x: Node) -> bool:
    """Whether the dtype is one of floating-point numbers.

    >>> Tensor([1.0]).is_floating_point(), Tensor([1]).is_floating_point()
    (True, False)
    """
    return bool(x.dtype.is_float)


@public("is_signed", source="PyTorch", gradient="no")
def is_signed(x: Node) -> bool:
    """Whether the dtype has numbers below 0.

    >>> Tensor([1]).is_signed(), Tensor([1], dtype="uint8").is_signed()
    (True, False)
    """
    return x.dtype.kind in "ifc"


@public("is_same_size", source="PyTorch", gradient="no")
def is_same_size(x: Node, other: Node) -> bool:
    """Whether two tensors have one shape.

    >>> Tensor([1, 2]).is_same_size(Tensor([[1, 2]]))
    False
    """
    return same_shape(x.shape, other.shape)


@public("is_contiguous", source="PyTorch", gradient="no")
def is_contiguous(x: Node) -> bool:
    """True: every tensor is contiguous.

    >>> Tensor([[1, 2], [3, 4]]).T.is_contiguous()
    True
    """
    return True


@public("type_as", source="PyTorch")
def type_as(x: Node, other: Node) -> Node:
    """x in the dtype of another tensor.

    >>> Tensor([1, 2]).type_as(Tensor([0.5]))
    Tensor([1., 2.])
    """
    return cast(x, other.dtype)
