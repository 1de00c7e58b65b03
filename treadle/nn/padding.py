"""Padding as modules. padding: an int for every side, or (low, high) of the last dimension, then of
the one before, and so on; below 0 it takes away."""

from __future__ import annotations

from typing import Any, ClassVar

from treadle.graph.shapes import plain
from treadle.nn.module import Module
from treadle.tensor import Tensor


class _Padding(Module):
    count: ClassVar[int]  # of spatial dimensions
    mode: ClassVar[str] = "constant"

    def __init_subclass__(cls, count: int | None = None, mode: str | None = None) -> None:
        super().__init_subclass__()
        cls.count = cls.count if count is None else count
        cls.mode = cls.mode if mode is None else mode

    def __init__(self, padding: Any) -> None:
        padding = plain(padding)
        several = isinstance(padding, (tuple, list))
        self.padding = tuple(padding) if several else (padding,) * (2 * self.count)
        if len(self.padding) != 2 * self.count or any(type(n) is not int for n in self.padding):
            raise ValueError(
                f"{type(self).__name__}: padding={padding!r} must be an int, or {2 * self.count} "
                "of them: (low, high) of the last dimension first"
            )

    def forward(self, x: Tensor) -> Tensor:
        if x.ndim not in (self.count + 1, self.count + 2):
            raise ValueError(
                f"{type(self).__name__}: x of shape {x.shape} must have {self.count + 1} or "
                f"{self.count + 2} dimensions"
            )
        return x.pad(self.padding, mode=self.mode)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _Constant(_Padding, count=0):
    """Sides filled with one number."""

    def __init__(self, padding: Any, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, x: Tensor) -> Tensor:
        return x.pad(self.padding, value=self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_Constant, count=1):
    """One number around (.., length).

    >>> nn.ConstantPad1d(1, 0.5)(Tensor.ones(1, 3, 8)).shape
    (1, 3, 10)
    """


class ConstantPad2d(_Constant, count=2):
    """One number around (.., height, width).

    >>> nn.ConstantPad2d(1, 0.5)(Tensor.ones(1, 3, 8, 8)).shape
    (1, 3, 10, 10)
    """


class ConstantPad3d(_Constant, count=3):
    """One number around (.., depth, height, width).

    >>> nn.ConstantPad3d(1, 0.5)(Tensor.ones(1, 3, 8, 8, 8)).shape
    (1, 3, 10, 10, 10)
    """


class ZeroPad1d(_Padding, count=1):
    """0 around (.., length).

    >>> nn.ZeroPad1d(1)(Tensor.ones(1, 3, 8)).shape
    (1, 3, 10)
    """


class ZeroPad2d(_Padding, count=2):
    """0 around (.., height, width).

    >>> nn.ZeroPad2d(1)(Tensor.ones(1, 3, 8, 8)).shape
    (1, 3, 10, 10)
    """


class ZeroPad3d(_Padding, count=3):
    """0 around (.., depth, height, width).

    >>> nn.ZeroPad3d(1)(Tensor.ones(1, 3, 8, 8, 8)).shape
    (1, 3, 10, 10, 10)
    """


class ReflectionPad1d(_Padding, count=1, mode="reflect"):
    """(.., length) mirrored at its outermost elements.

    >>> nn.ReflectionPad1d(1)(Tensor.ones(1, 3, 8)).shape
    (1, 3, 10)
    """


class ReflectionPad2d(_Padding, count=2, mode="reflect"):
    """(.., height, width) mirrored at its outermost elements.

    >>> nn.ReflectionPad2d(1)(Tensor.ones(1, 3, 8, 8)).shape
    (1, 3, 10, 10)
    """


class ReflectionPad3d(_Padding, count=3, mode="reflect"):
    """(.., depth, height, width) mirrored at its outermost elements.

    >>> nn.ReflectionPad3d(1)(Tensor.ones(1, 3, 8, 8, 8)).shape
    (1, 3, 10, 10, 10)
    """


class ReplicationPad1d(_Padding, count=1, mode="replicate"):
    """(.., length) with its outermost elements again and again.

    >>> nn.ReplicationPad1d(1)(Tensor.ones(1, 3, 8)).shape
    (1, 3, 10)
    """


class ReplicationPad2d(_Padding, count=2, mode="replicate"):
    """(.., height, width) with its outermost elements again and again.

    >>> nn.ReplicationPad2d(1)(Tensor.ones(1, 3, 8, 8)).shape
    (1, 3, 10, 10)
    """


class ReplicationPad3d(_Padding, count=3, mode="replicate"):
    """(.., depth, height, width) with its outermost elements again and again.

    >>> nn.ReplicationPad3d(1)(Tensor.ones(1, 3, 8, 8, 8)).shape
    (1, 3, 10, 10, 10)
    """


class CircularPad1d(_Padding, count=1, mode="circular"):
    """(.., length) as one period of what repeats.

    >>> nn.CircularPad1d(1)(Tensor.ones(1, 3, 8)).shape
    (1, 3, 10)
    """


class CircularPad2d(_Padding, count=2, mode="circular"):
    """(.., height, width) as one period of what repeats.

    >>> nn.CircularPad2d(1)(Tensor.ones(1, 3, 8, 8)).shape
    (1, 3, 10, 10)
    """


class CircularPad3d(_Padding, count=3, mode="circular"):
    """(.., depth, height, width) as one period of what repeats.

    >>> nn.CircularPad3d(1)(Tensor.ones(1, 3, 8, 8, 8)).shape
    (1, 3, 10, 10, 10)
    """
