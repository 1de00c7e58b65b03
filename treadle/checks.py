"""What is asked before a tensor is written to, or given a gradient."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from sys import getrefcount
from typing import Any, TypeVar, cast
from weakref import ref

from treadle.engine.cell import Cell
from treadle.engine.jobs import device_of
from treadle.graph import shapes
from treadle.ir.node import Node

F = TypeVar("F", bound=Callable[..., Any])
R = TypeVar("R")

# what PyTorch gives a view for: a write into it would change the tensor that it is a part of
VIEWS = frozenset((
    "H", "T", "adjoint", "chunk", "diagonal", "dsplit", "expand", "expand_as", "flatten", "hsplit",
    "imag", "mH", "mT", "moveaxis", "movedim", "narrow", "permute", "ravel", "real", "reshape",
    "reshape_as", "select", "split", "split_with_sizes", "squeeze", "swapaxes", "swapdims", "t",
    "tensor_split", "transpose", "unbind", "unflatten", "unfold", "unsqueeze", "view", "view_as",
    "vsplit",
))  # fmt: skip


class _Late:
    """Stands for a method until it is used, as those of tensors do."""

    def __get__(self, instance: Any, owner: type) -> None:
        _Written.count = getrefcount(instance)


class _Written:
    """Counts who holds it while it is written to, in the three ways in which a tensor is."""

    count = 0
    late = _Late()

    def __setitem__(self, key: Any, value: Any) -> None:
        _Written.count = getrefcount(self)

    def write_(self, *args: Any, **named: Any) -> None:
        """As the methods that work in place."""
        _Written.count = getrefcount(self)


def _of_a_temporary(write: Callable[[], None], write_held: Callable[[], None]) -> int:
    """What `getrefcount` says in the write to an object that nobody holds; 0 if this Python says
    the same of one that a variable holds."""
    write_held()
    count_held = _Written.count
    write()
    return _Written.count if _Written.count < count_held else 0


def _put() -> None:
    _Written()[0] = 0


def _put_held() -> None:
    held = _Written()
    held[0] = 0


def _call() -> None:
    _Written().write_()


def _call_held() -> None:
    held = _Written()
    held.write_()


def _find() -> None:
    _ = _Written().late


def _find_held() -> None:
    held = _Written()
    _ = held.late


NOBODY = _of_a_temporary(_put, _put_held)
NOBODY_CALLS = _of_a_temporary(_call, _call_held)
NOBODY_FINDS = _of_a_temporary(_find, _find_held)


def lost(what: str = "x[..] = value") -> RuntimeError:
    """The error for a write that nobody could see."""
    return RuntimeError(
        f"{what}: the tensor that is written to is a temporary, which nobody holds, and the value "
        "would be lost: write x[0, 1] = v for x[0][1] = v, x[0] = v for x[0].copy_(v), and x[0] = "
        "v or x.copy_(v) inside no_grad() for x.data"
    )


def part(result: R, whole: Cell, key: tuple[Any, ...] = ()) -> R:
    """A tensor (or several) that PyTorch would give as a view of another; it remembers which. With
    a tensor in the key of an index it would be no view."""
    if any(isinstance(each, Node) for each in key):
        return result
    alive = [other for other in getattr(whole, "_wholes", ()) if other() is not None]
    parts: Any = result if isinstance(result, tuple | list) else (result,)
    for each in parts:
        each._wholes = (ref(whole), *alive)
    return result


def refuse_lost(tensor: Any, what: str) -> None:
    """RuntimeError for a write into a temporary that is a part of a tensor that lives on."""
    if any(whole() is not None for whole in getattr(tensor, "_wholes", ())):
        raise lost(what)


def kept(write: F) -> F:
    """A function that writes to its first argument, which refuses to write what nobody sees."""
    what = f"{write.__name__}(..)"

    @wraps(write)
    def run(self: Any, *args: Any, **named: Any) -> Any:
        if getrefcount(self) == NOBODY_CALLS:
            refuse_lost(self, what)
        return write(self, *args, **named)

    return cast(F, run)


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
