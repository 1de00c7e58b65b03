"""Tensors of the dtype and on the device of another, of its shape or of one of their own.

`x.new_zeros(2, 3)` has the dtype of x; `x.rand_like()` its shape too.
"""

from __future__ import annotations

from typing import Any

from treadle.graph import random
from treadle.graph.build import const
from treadle.graph.creation import full
from treadle.graph.public import public
from treadle.graph.shapes import as_shape, check_sizes
from treadle.ir.dtype import DType
from treadle.ir.node import Node


@public("new_zeros", source="PyTorch", kind="like", aliases=("new_empty",))
def new_zeros(x: Node, *size: Any, dtype: DType | None = None) -> Node:
    """Zeros of a shape, in the dtype of x unless one is given. (`new_empty` is zeros too.)

    >>> Tensor([1, 2]).new_zeros(3)
    Tensor([0, 0, 0])
    """
    return const(0, dtype or x.dtype, check_sizes(as_shape(*size), "new_zeros"))


@public("new_ones", source="PyTorch", kind="like")
def new_ones(x: Node, *size: Any, dtype: DType | None = None) -> Node:
    """Ones of a shape, in the dtype of x unless one is given.

    >>> Tensor([1, 2]).new_ones(3)
    Tensor([1, 1, 1])
    """
    return const(1, dtype or x.dtype, check_sizes(as_shape(*size), "new_ones"))


@public("new_full", source="PyTorch", kind="like")
def new_full(
    x: Node, size: Any, fill_value: bool | int | float, *, dtype: DType | None = None
) -> Node:
    """One number in a shape, in the dtype of x unless one is given.

    >>> Tensor([1.0, 2.0]).new_full((3,), 7)
    Tensor([7., 7., 7.])
    """
    return full(size, fill_value, dtype=dtype or x.dtype)


# ---- random --------------------------------------------------------------------------------------
@public("rand_like", source="PyTorch", kind="keyed", gradient="no")
def rand_like(x: Node, *, dtype: DType | None = None, random_key: Any) -> Node:
    """Uniform on [0, 1), in the shape of x and in its dtype unless one is given.

    >>> Tensor([1.0, 2.0]).rand_like().shape
    (2,)
    """
    return random.rand(_drawn(random_key), x.shape, dtype=dtype or x.dtype)


@public("randn_like", source="PyTorch", kind="keyed", gradient="no")
def randn_like(x: Node, *, dtype: DType | None = None, random_key: Any) -> Node:
    """Normal numbers of mean 0 and variance 1, in the shape of x and in its dtype unless one is
    given.

    >>> Tensor([1.0, 2.0]).randn_like().shape
    (2,)
    """
    return random.randn(_drawn(random_key), x.shape, dtype=dtype or x.dtype)


@public("randint_like", source="PyTorch", kind="keyed", gradient="no")
def randint_like(
    x: Node, low: int, high: Any = None, *, dtype: DType | None = None, random_key: Any
) -> Node:
    """Integers from `low` up to, without, `high` (or from 0 up to the one that is given), in the
    shape of x and in its dtype unless one is given.

    >>> Tensor([1, 2]).randint_like(5, 6)
    Tensor([5, 5])
    """
    from_, to = (0, low) if high is None else (low, high)
    return random.randint(_drawn(random_key), from_, to, x.shape, dtype=dtype or x.dtype)


def _drawn(key: Any) -> Any:
    """A key, or what draws one when it is called."""
    return key() if callable(key) else key
