"""What is asked before a tensor is written to, or given a gradient."""

from __future__ import annotations

from sys import getrefcount
from typing import Any

from treadle.engine.cell import Cell
from treadle.engine.jobs import device_of
from treadle.graph import shapes


class _Written:
    """Counts who holds it while it is written to, as `Tensor.__setitem__` does."""

    count = 0

    def __setitem__(self, key: Any, value: Any) -> None:
        _Written.count = getrefcount(self)


def _holders_of_a_temporary() -> int:
    """What `getrefcount` says in the write to an object that nobody holds; 0 if this Python says
    the same of one that a variable holds."""
    held = _Written()
    held[0] = 0
    count_held = _Written.count
    _Written()[0] = 0
    return _Written.count if _Written.count < count_held else 0


NOBODY = _holders_of_a_temporary()


def lost() -> RuntimeError:
    """The error for a write that nobody could see."""
    return RuntimeError(
        "x[..] = value: the tensor that is written to is a temporary, which nobody holds, and the "
        "value would be lost: write x[0, 1] = v for x[0][1] = v, and x[0] = v inside no_grad() for "
        "x.data[0] = v"
    )


def fits_as_gradient(tensor: Cell, value: Any) -> None:
    """TypeError or ValueError unless a value may be the gradient of a tensor."""
    if not isinstance(value, Cell):
        raise TypeError(f"x.grad is a Tensor or None, not a {type(value).__name__}")
    own, given = tensor.node, value.node
    if not shapes.same_shape(given.shape, own.shape):
        raise ValueError(
            f"x.grad: a gradient of shape {shapes.text(given.shape)} for a tensor of shape "
            f"{shapes.text(own.shape)}: they must be equal"
        )
    if given.dtype is not own.dtype:
        raise TypeError(
            f"x.grad: a gradient of {given.dtype} for a tensor of {own.dtype}; cast it: "
            f".cast({own.dtype})"
        )
    place, other = device_of(own), device_of(given)
    if place != other:
        raise ValueError(
            f"x.grad: a gradient on {other} for a tensor on {place}; move it: .to({place!r})"
        )
