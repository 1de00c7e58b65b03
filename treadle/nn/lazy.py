"""Layers that learn the number of inputs from the first tensor that they see."""

from __future__ import annotations

from typing import Any

from treadle.engine import trace
from treadle.engine.trace import JitError
from treadle.nn.convolution import (
    Conv1d,
    Conv2d,
    Conv3d,
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
)
from treadle.nn.layers import Linear
from treadle.nn.module import Module
from treadle.nn.norm import (
    BatchNorm1d,
    BatchNorm2d,
    BatchNorm3d,
    InstanceNorm1d,
    InstanceNorm2d,
    InstanceNorm3d,
)
from treadle.tensor import Tensor

__all__ = [
    "LazyBatchNorm1d", "LazyBatchNorm2d", "LazyBatchNorm3d", "LazyConv1d", "LazyConv2d",
    "LazyConv3d", "LazyConvTranspose1d", "LazyConvTranspose2d", "LazyConvTranspose3d",
    "LazyInstanceNorm1d", "LazyInstanceNorm2d", "LazyInstanceNorm3d", "LazyLinear",
]  # fmt: skip


class Lazy(Module):
    """The base: it keeps the other arguments of a layer, and becomes that layer at its first call,
    on the device and with the mode that it was given."""

    becomes: type[Module]
    last = False  # whether the inputs are the last dimension, and not the channels
    needs_first_call = True  # its parameters do not exist before

    def __init__(self, *args: Any, **named: Any) -> None:
        self.arguments = args, named

    def forward(self, x: Tensor) -> Any:
        name = type(self).__name__
        if trace.current() is not None:
            raise JitError(
                f"{name} makes its parameters at its first call: call the model once outside of "
                "the captured function before"
            )
        dimension = -1 if self.last else self.channels(x)
        if x.ndim < 1 + (dimension == 1):
            raise ValueError(f"{name}: x of shape {x.shape} has no dimension of inputs")
        args, named = self.arguments
        mode = self.training
        self.__class__ = self.becomes  # type: ignore[assignment]
        del self.arguments
        self.__init__(x.shape[dimension], *args, **named)  # type: ignore[misc]
        self.training = mode
        return self(x)

    def channels(self, x: Tensor) -> int:
        """The number of the dimension of channels, which is 0 for an x without a batch."""
        return 0 if x.ndim == int(self.becomes.__name__[-2]) + 1 else 1

    def extra_repr(self) -> str:
        args, named = self.arguments
        return ", ".join([*map(repr, args), *(f"{key}={value!r}" for key, value in named.items())])


class LazyLinear(Lazy):
    """`Linear` whose in_features are the size of the last dimension at the first call.

    Its parameters exist from that call on: make it, with a batch, before the optimizer.
    Source: PyTorch.

    >>> layer = nn.LazyLinear(2)
    >>> layer(Tensor.ones(4, 3)).shape
    (4, 2)
    >>> layer
    Linear(3, 2)
    """

    becomes = Linear
    last = True


class LazyConv1d(Lazy):
    """`Conv1d` whose in_channels are the channels at the first call; see `LazyLinear`.

    >>> nn.LazyConv1d(5, 3)(Tensor.ones(2, 3, 8)).shape
    (2, 5, 6)
    """

    becomes = Conv1d


class LazyConv2d(Lazy):
    """`Conv2d` whose in_channels are the channels at the first call; see `LazyLinear`.

    >>> nn.LazyConv2d(5, 3)(Tensor.ones(2, 3, 8, 8)).shape
    (2, 5, 6, 6)
    """

    becomes = Conv2d


class LazyConv3d(Lazy):
    """`Conv3d` whose in_channels are the channels at the first call; see `LazyLinear`.

    >>> nn.LazyConv3d(5, 3)(Tensor.ones(2, 3, 4, 8, 8)).shape
    (2, 5, 2, 6, 6)
    """

    becomes = Conv3d


class LazyConvTranspose1d(Lazy):
    """`ConvTranspose1d` whose in_channels are the channels at the first call; see `LazyLinear`.

    >>> nn.LazyConvTranspose1d(5, 3)(Tensor.ones(2, 3, 8)).shape
    (2, 5, 10)
    """

    becomes = ConvTranspose1d


class LazyConvTranspose2d(Lazy):
    """`ConvTranspose2d` whose in_channels are the channels at the first call; see `LazyLinear`.

    >>> nn.LazyConvTranspose2d(5, 3)(Tensor.ones(2, 3, 8, 8)).shape
    (2, 5, 10, 10)
    """

    becomes = ConvTranspose2d


class LazyConvTranspose3d(Lazy):
    """`ConvTranspose3d` whose in_channels are the channels at the first call; see `LazyLinear`.

    >>> nn.LazyConvTranspose3d(5, 3)(Tensor.ones(2, 3, 4, 8, 8)).shape
    (2, 5, 6, 10, 10)
    """

    becomes = ConvTranspose3d


class LazyBatchNorm1d(Lazy):
    """`BatchNorm1d` whose num_features are the channels at the first call; see `LazyLinear`.

    >>> nn.LazyBatchNorm1d()(Tensor.ones(2, 3, 8)).shape
    (2, 3, 8)
    """

    becomes = BatchNorm1d

    def channels(self, x: Tensor) -> int:
        return 1


class LazyBatchNorm2d(Lazy):
    """`BatchNorm2d` whose num_features are the channels at the first call; see `LazyLinear`.

    >>> nn.LazyBatchNorm2d()(Tensor.ones(2, 3, 8, 8)).shape
    (2, 3, 8, 8)
    """

    becomes = BatchNorm2d

    def channels(self, x: Tensor) -> int:
        return 1


class LazyBatchNorm3d(Lazy):
    """`BatchNorm3d` whose num_features are the channels at the first call; see `LazyLinear`.

    >>> nn.LazyBatchNorm3d()(Tensor.ones(2, 3, 4, 8, 8)).shape
    (2, 3, 4, 8, 8)
    """

    becomes = BatchNorm3d

    def channels(self, x: Tensor) -> int:
        return 1


class LazyInstanceNorm1d(Lazy):
    """`InstanceNorm1d` whose num_features are the channels at the first call; see `LazyLinear`.

    >>> nn.LazyInstanceNorm1d()(Tensor.ones(2, 3, 8)).shape
    (2, 3, 8)
    """

    becomes = InstanceNorm1d


class LazyInstanceNorm2d(Lazy):
    """`InstanceNorm2d` whose num_features are the channels at the first call; see `LazyLinear`.

    >>> nn.LazyInstanceNorm2d()(Tensor.ones(2, 3, 8, 8)).shape
    (2, 3, 8, 8)
    """

    becomes = InstanceNorm2d


class LazyInstanceNorm3d(Lazy):
    """`InstanceNorm3d` whose num_features are the channels at the first call; see `LazyLinear`.

    >>> nn.LazyInstanceNorm3d()(Tensor.ones(2, 3, 4, 8, 8)).shape
    (2, 3, 4, 8, 8)
    """

    becomes = InstanceNorm3d
