"""Convolutions of one to three spatial dimensions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from treadle.graph import shapes
from treadle.graph.windows import convolution_padding, padding_pairs, per_axis, reach_of
from treadle.nn import begin
from treadle.nn.begin import Dtype
from treadle.nn.module import Module
from treadle.tensor import Tensor

Sizes = int | tuple[int, ...]  # one number, or one per spatial dimension
PADDING_MODES = ("zeros", "reflect", "replicate", "circular")


class _Convolution(Module):
    """What convolutions, transposed or not, have in common: channels, windows, weight and bias."""

    count: int  # of spatial dimensions

    def __init__(
        self,
        channels: tuple[int, int],
        weight_channels: tuple[int, int],
        windows: tuple[Sizes, Sizes, Sizes],
        groups: int,
        bias: bool,
        device: str | None,
        dtype: Dtype,
    ) -> None:
        begin.check_sizes(self, in_channels=channels[0], out_channels=channels[1])
        self.in_channels, self.out_channels = channels
        self.groups = groups
        name, count = type(self).__name__, self.count
        self.kernel_size = per_axis(name, "kernel_size", windows[0], count, 1)
        self.stride = per_axis(name, "stride", windows[1], count, 1)
        self.dilation = per_axis(name, "dilation", windows[2], count, 1)
        bound = begin.fan_bound(weight_channels[1] * math.prod(self.kernel_size))
        shape = (*weight_channels, *self.kernel_size)
        self.weight = begin.drawn(bound, shape, dtype, device)
        self.bias = begin.drawn(bound, (self.out_channels,), dtype, device) if bias else None

    def extra_repr(self) -> str:
        ones, zeros = (1,) * self.count, (0,) * self.count
        usual = {
            "padding": (0, zeros), "dilation": (ones,), "output_padding": (zeros,), "groups": (1,),
            "padding_mode": ("zeros",),
        }  # fmt: skip
        parts = [f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}"]
        parts.append(f"stride={self.stride}")
        for name, values in usual.items():
            if hasattr(self, name) and getattr(self, name) not in values:
                parts.append(f"{name}={getattr(self, name)!r}")
        return ", ".join(parts if self.bias is not None else [*parts, "bias=False"])


def _divides(name: str, groups: int, *channels: int) -> None:
    if shapes.as_int(groups, f"{name}: groups") < 1 or any(number % groups for number in channels):
        raise ValueError(f"{name}: groups={groups!r} must divide the channels, {channels}")


class _Forward(_Convolution):
    """What the three convolutions that are not transposed do."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes = 1,
        padding: Any = 0,
        dilation: Sizes = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: str | None = None,
        dtype: Dtype = None,
    ) -> None:
        name = type(self).__name__
        _divides(name, groups, in_channels, out_channels)
        if padding_mode not in PADDING_MODES:
            raise ValueError(f"{name}: padding_mode={padding_mode!r} is not one of {PADDING_MODES}")
        super().__init__(
            (in_channels, out_channels),
            (out_channels, in_channels // groups),
            (kernel_size, stride, dilation),
            groups,
            bias,
            device,
            dtype,
        )
        self.padding, self.padding_mode = padding, padding_mode
        self._amounts()  # a padding that is none is refused now

    def forward(self, x: Tensor) -> Tensor:
        padding = self.padding
        if self.padding_mode != "zeros":
            x, padding = x.pad(self._amounts(), mode=self.padding_mode), 0
        convolve: Callable[..., Tensor] = getattr(x, f"conv{self.count}d")
        return convolve(self.weight, self.bias, self.stride, padding, self.dilation, self.groups)

    def _amounts(self) -> list[int]:
        """The padding as `pad` takes it: (low, high) of the last dimension first."""
        name, reach = type(self).__name__, reach_of(self.kernel_size, self.dilation)
        pairs = convolution_padding(name, self.padding, self.count, reach, self.stride)
        return [amount for pair in reversed(pairs) for amount in pair]


class Conv1d(_Forward):
    """A convolution: (batch, in_channels, length) -> (batch, out_channels, ..).

    weight: (out_channels, in_channels / groups, ..). bias: (out_channels,), or None for bias=False.
    Both begin uniform in -b .. b for b = 1/sqrt(inputs of one output). padding: an int, one per
    spatial dimension, pairs, "valid" or "same". padding_mode: what it is filled with: "zeros", or
    as `pad` has it, "reflect", "replicate", "circular". See `Tensor.conv1d`. Source: PyTorch.

    >>> nn.Conv1d(3, 5, 3)(Tensor.ones(2, 3, 8)).shape
    (2, 5, 6)
    """

    count = 1


class Conv2d(_Forward):
    """A convolution: (batch, in_channels, height, width) -> (batch, out_channels, ..).

    weight: (out_channels, in_channels / groups, ..). bias: (out_channels,), or None for bias=False.
    Both begin uniform in -b .. b for b = 1/sqrt(inputs of one output). padding: an int, one per
    spatial dimension, pairs, "valid" or "same". padding_mode: what it is filled with: "zeros", or
    as `pad` has it, "reflect", "replicate", "circular". See `Tensor.conv2d`. Source: PyTorch.

    >>> nn.Conv2d(3, 5, 3)(Tensor.ones(2, 3, 8, 8)).shape
    (2, 5, 6, 6)
    """

    count = 2


class Conv3d(_Forward):
    """A convolution: (batch, in_channels, depth, height, width) -> (batch, out_channels, ..).

    weight: (out_channels, in_channels / groups, ..). bias: (out_channels,), or None for bias=False.
    Both begin uniform in -b .. b for b = 1/sqrt(inputs of one output). padding: an int, one per
    spatial dimension, pairs, "valid" or "same". padding_mode: what it is filled with: "zeros", or
    as `pad` has it, "reflect", "replicate", "circular". See `Tensor.conv3d`. Source: PyTorch.

    >>> nn.Conv3d(3, 5, 3)(Tensor.ones(2, 3, 4, 8, 8)).shape
    (2, 5, 2, 6, 6)
    """

    count = 3


class _Transposed(_Convolution):
    """What the three transposed convolutions do."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes = 1,
        padding: Any = 0,
        output_padding: Sizes = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Sizes = 1,
        padding_mode: str = "zeros",
        device: str | None = None,
        dtype: Dtype = None,
    ) -> None:
        name = type(self).__name__
        _divides(name, groups, in_channels, out_channels)
        if padding_mode != "zeros":
            raise ValueError(f"{name}: padding_mode is 'zeros', not {padding_mode!r}")
        super().__init__(
            (in_channels, out_channels),
            (in_channels, out_channels // groups),
            (kernel_size, stride, dilation),
            groups,
            bias,
            device,
            dtype,
        )
        padding_pairs(name, padding, self.count)  # one that is none is refused now
        self.padding = padding
        self.output_padding = per_axis(name, "output_padding", output_padding, self.count, 0)

    def forward(self, x: Tensor, output_size: Any = None) -> Tensor:
        convolve: Callable[..., Tensor] = getattr(x, f"conv_transpose{self.count}d")
        return convolve(
            self.weight,
            self.bias,
            self.stride,
            self.padding,
            self.output_padding if output_size is None else self._missing(x, output_size),
            self.groups,
            self.dilation,
        )

    def _missing(self, x: Tensor, output_size: Any) -> list[int]:
        """The output_padding that makes the result as large as asked for: sizes of the spatial
        dimensions, or of all. ValueError if a stride is too small for that."""
        name = type(self).__name__
        wanted = [int(size) for size in output_size]
        if len(wanted) not in (self.count, x.ndim):
            raise ValueError(
                f"{name}: output_size={tuple(wanted)} needs {self.count} or {x.ndim} sizes for an "
                f"x of shape {x.shape}"
            )
        padding = padding_pairs(name, self.padding, self.count)
        least = [
            (size - 1) * s - sum(p) + d * (k - 1) + 1
            for size, s, p, d, k in zip(
                x.shape[-self.count :], self.stride, padding, self.dilation, self.kernel_size
            )
        ]
        more = [size - low for size, low in zip(wanted[-self.count :], least)]
        if not all(0 <= each < stride for each, stride in zip(more, self.stride)):
            most = [low + stride - 1 for low, stride in zip(least, self.stride)]
            raise ValueError(
                f"{name}: output_size={tuple(wanted)} cannot be: for an x of shape {x.shape} it is "
                f"from {tuple(least)} to {tuple(most)}"
            )
        return more


class ConvTranspose1d(_Transposed):
    """A transposed convolution: (batch, in_channels, length) -> (batch, out_channels, ..).

    weight: (in_channels, out_channels / groups, ..). bias: (out_channels,), or None for bias=False.
    See `Tensor.conv_transpose1d` for stride, padding, output_padding and dilation.
    Called with output_size, it takes the output_padding that gives these sizes.
    Source: PyTorch.

    >>> nn.ConvTranspose1d(3, 5, 3)(Tensor.ones(2, 3, 8)).shape
    (2, 5, 10)
    """

    count = 1


class ConvTranspose2d(_Transposed):
    """A transposed convolution: (batch, in_channels, height, width) -> (batch, out_channels, ..).

    weight: (in_channels, out_channels / groups, ..). bias: (out_channels,), or None for bias=False.
    See `Tensor.conv_transpose2d` for stride, padding, output_padding and dilation.
    Called with output_size, it takes the output_padding that gives these sizes.
    Source: PyTorch.

    >>> nn.ConvTranspose2d(3, 5, 3)(Tensor.ones(2, 3, 8, 8)).shape
    (2, 5, 10, 10)
    """

    count = 2


class ConvTranspose3d(_Transposed):
    """A transposed convolution of (batch, in_channels, depth, height, width), to out_channels.

    weight: (in_channels, out_channels / groups, ..). bias: (out_channels,), or None for bias=False.
    See `Tensor.conv_transpose3d` for stride, padding, output_padding and dilation.
    Called with output_size, it takes the output_padding that gives these sizes.
    Source: PyTorch.

    >>> nn.ConvTranspose3d(3, 5, 3)(Tensor.ones(2, 3, 4, 8, 8)).shape
    (2, 5, 6, 10, 10)
    """

    count = 3
