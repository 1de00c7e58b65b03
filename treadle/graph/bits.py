"""Tensors whose bytes are read as another dtype."""

from __future__ import annotations

from typing import Any

from treadle.graph import shapes
from treadle.graph.build import alu, cast, reshape, shrink
from treadle.graph.build import bitcast as same_size
from treadle.graph.movement import stack
from treadle.graph.public import public
from treadle.graph.shapes import as_shape, text
from treadle.ir import ops
from treadle.ir.dtype import BY_NAME, DTYPES, DType
from treadle.ir.node import Node


@public("view", source="PyTorch")
def view(x: Node, *shape: Any, dtype: DType | None = None) -> Node:
    """The elements in another shape, as `reshape`; or, given a dtype, their bytes read as that, as
    `bitcast`. Never shares memory in a way that a write could show.

    >>> Tensor([1, 2, 3, 4]).view(2, -1)
    Tensor([[1, 2],
            [3, 4]])
    >>> Tensor([1.0]).view(treadle.int32)
    Tensor([1065353216], dtype=int32)
    """
    if dtype is None and len(shape) == 1 and isinstance(shape[0], (DType, str)):
        return bitcast(x, shape[0])
    if dtype is not None:
        if shape:
            raise TypeError("view: give either a shape or a dtype")
        return bitcast(x, dtype)
    return reshape(x, as_shape(*shape))


def _named(dtype: DType | str) -> DType:
    """A dtype that is given by its name, too."""
    if isinstance(dtype, str) and BY_NAME.get(dtype) not in DTYPES:
        raise TypeError(f"there is no dtype {dtype!r}; there are {', '.join(map(repr, DTYPES))}")
    return BY_NAME[dtype] if isinstance(dtype, str) else dtype


def _whole(size: int) -> DType:
    """The unsigned integer of that many bytes."""
    return BY_NAME[f"uint{size * 8}"]


@public("bitcast", source="tinygrad", gradient="no")
def bitcast(x: Node, dtype: DType | str) -> Node:
    """The bytes of x read as another dtype, little end first. A dtype of half the size makes the
    last dimension twice as long, one of twice the size half as long. TypeError for bool.

    >>> Tensor([1.0]).bitcast("int32").tolist()
    [1065353216]
    """
    dtype = _named(dtype)
    have, want = x.dtype.itemsize, dtype.itemsize
    if have == want:
        return same_size(x, dtype)
    bits = same_size(x, _whole(have))
    if not x.shape:
        raise ValueError(f"bitcast: a 0-d tensor of {x.dtype} has no dimension to become {dtype}")
    before, last = x.shape[:-1], x.shape[-1]
    if have > want:
        parts = [
            cast(alu(ops.RSHIFT, bits, 8 * want * k), _whole(want)) for k in range(have // want)
        ]
        joined = stack(parts, dim=len(x.shape))
        return same_size(reshape(joined, (*before, shapes.multiply(last, len(parts)))), dtype)
    count = want // have
    length = shapes.divide(last, count)
    if not shapes.same(shapes.multiply(length, count), last):
        raise ValueError(
            f"bitcast: the last dimension of shape {text(x.shape)} is no multiple of {count}, as "
            f"{x.dtype} to {dtype} needs"
        )
    rows = reshape(cast(bits, _whole(want)), (*before, length, count))
    full = [(0, size) for size in (*before, length)]
    total = None
    for k in range(count):
        part = reshape(shrink(rows, [*full, (k, k + 1)]), (*before, length))
        shifted = alu(ops.LSHIFT, part, 8 * have * k)
        total = shifted if total is None else alu(ops.OR, total, shifted)
    assert total is not None, "a larger dtype has two parts or more"
    return same_size(total, dtype)
