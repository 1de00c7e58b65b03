"""Max pooling over regions whose places are drawn, so that sizes may shrink by any factor."""

from __future__ import annotations

import math
from typing import Any

from treadle.graph.shapes import plain
from treadle.nn.module import Module
from treadle.tensor import Tensor

Sizes = int | tuple[int, ...]


def _each(name: str, what: str, value: Any, count: int) -> tuple[int, ...]:
    value = plain(value)
    sizes = tuple(value) if isinstance(value, tuple | list) else (value,) * count
    if len(sizes) != count or any(type(size) is not int or size < 1 for size in sizes):
        raise ValueError(f"{name}: {what}={value!r} must be an int above 0, or {count} of them")
    return sizes


def _starts(sample: Tensor, size: int, kernel: int, count: int) -> Tensor:
    """Where the regions of one dimension begin: (batch, channels, count), from a number in 0 .. 1
    for each channel. Graham's pseudo-random sequences."""
    if count == 1:
        return (sample * 0).cast("int64") + (size - kernel)
    step = (size - kernel) / (count - 1)
    places = (Tensor.arange(count, device=sample.device) + sample) * step
    starts = places.cast("int64") - (sample * step).cast("int64")
    return (Tensor.arange(count, device=sample.device) == count - 1).where(size - kernel, starts)


def _pooled(
    name: str,
    x: Tensor,
    kernel_size: Sizes,
    output_size: Sizes | None,
    output_ratio: float | tuple[float, ...] | None,
    return_indices: bool,
    samples: Tensor | None,
    count: int,
) -> Any:
    if x.ndim not in (count + 1, count + 2):
        raise ValueError(
            f"{name}: x of shape {x.shape} must have {count + 1} or {count + 2} dimensions"
        )
    if (output_size is None) == (output_ratio is None):
        raise ValueError(f"{name}: give one of output_size and output_ratio")
    kernel = _each(name, "kernel_size", kernel_size, count)
    batch = x if x.ndim == count + 2 else x.unsqueeze(0)
    sizes = batch.shape[2:]
    if output_ratio is not None:
        ratios = output_ratio if isinstance(output_ratio, tuple) else (output_ratio,) * count
        output_size = tuple([int(size * ratio) for size, ratio in zip(sizes, ratios)])
    wanted = _each(name, "output_size", output_size, count)
    if any(n + k - 1 > size for n, k, size in zip(wanted, kernel, sizes)):
        raise ValueError(f"{name}: {wanted} regions of {kernel} do not fit into {sizes}")
    if samples is None:
        samples = Tensor.rand(*batch.shape[:2], count, device=x.device)
    place: Any = 0
    for axis, (size, k, n) in enumerate(zip(sizes, kernel, wanted)):
        own_sample = samples[..., 1 - axis if count == 2 else axis, None]  # in PyTorch's order
        starts = _starts(own_sample, size, k, n)
        own = starts.unsqueeze(-1) + Tensor.arange(k, device=x.device)  # (batch, channels, n, k)
        shape = [*batch.shape[:2], *(1,) * (2 * count)]
        shape[2 + axis], shape[2 + count + axis] = n, k
        place = place * size + own.reshape(shape)
    full = place.reshape(*batch.shape[:2], *wanted, math.prod(kernel))
    values = batch.flatten(2).gather(2, full.flatten(2)).reshape(full.shape)
    best = values.argmax(-1, keepdim=True)
    pooled = values.gather(-1, best).squeeze(-1)
    indices = full.gather(-1, best).squeeze(-1)
    if x.ndim == count + 1:
        pooled, indices = pooled.squeeze(0), indices.squeeze(0)
    return (pooled, indices) if return_indices else pooled


def fractional_max_pool2d(
    input: Tensor,
    kernel_size: Sizes,
    output_size: Sizes | None = None,
    output_ratio: float | tuple[float, ...] | None = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:
    """The greatest of each of output_size (or output_ratio times the size) regions of kernel_size,
    whose places are drawn; with return_indices also where in the plane it is.

    input: (batch, channels, height, width), or without a batch. _random_samples: the numbers in
    0 .. 1 to use, (batch, channels, 2). Source: PyTorch; Graham, "Fractional max-pooling", 2014.

    >>> F = nn.functional
    >>> F.fractional_max_pool2d(Tensor.ones(1, 1, 7, 7), 2, output_ratio=0.7).shape
    (1, 1, 4, 4)
    """
    return _pooled(
        "fractional_max_pool2d",
        input,
        kernel_size,
        output_size,
        output_ratio,
        return_indices,
        _random_samples,
        2,
    )


def fractional_max_pool3d(
    input: Tensor,
    kernel_size: Sizes,
    output_size: Sizes | None = None,
    output_ratio: float | tuple[float, ...] | None = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:
    """`fractional_max_pool2d` of (batch, channels, depth, height, width). Source: PyTorch.

    >>> nn.functional.fractional_max_pool3d(Tensor.ones(1, 1, 7, 7, 7), 2, 4).shape
    (1, 1, 4, 4, 4)
    """
    return _pooled(
        "fractional_max_pool3d",
        input,
        kernel_size,
        output_size,
        output_ratio,
        return_indices,
        _random_samples,
        3,
    )


class _Fractional(Module):
    count: int

    def __init__(
        self,
        kernel_size: Sizes,
        output_size: Sizes | None = None,
        output_ratio: float | tuple[float, ...] | None = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> None:
        name = type(self).__name__
        if (output_size is None) == (output_ratio is None):
            raise ValueError(f"{name}: give one of output_size and output_ratio")
        ratios = output_ratio if isinstance(output_ratio, tuple) else (output_ratio,)
        if any(ratio is not None and not 0 < ratio < 1 for ratio in ratios):
            raise ValueError(f"{name}: output_ratio={output_ratio!r} must be between 0 and 1")
        self.kernel_size = _each(name, "kernel_size", kernel_size, self.count)
        self.output_size, self.output_ratio = output_size, output_ratio
        self.return_indices = return_indices
        if _random_samples is not None:
            self.register_buffer("_random_samples", _random_samples)

    def forward(self, x: Tensor) -> Any:
        return _pooled(
            type(self).__name__,
            x,
            self.kernel_size,
            self.output_size,
            self.output_ratio,
            self.return_indices,
            getattr(self, "_random_samples", None),
            self.count,
        )


class FractionalMaxPool2d(_Fractional):
    """The greatest of regions whose places are drawn; see `functional.fractional_max_pool2d`.

    >>> nn.FractionalMaxPool2d(2, output_size=4)(Tensor.ones(1, 3, 7, 7)).shape
    (1, 3, 4, 4)
    """

    count = 2


class FractionalMaxPool3d(_Fractional):
    """The greatest of regions whose places are drawn; see `functional.fractional_max_pool2d`.

    >>> nn.FractionalMaxPool3d(2, output_size=4)(Tensor.ones(1, 3, 7, 7, 7)).shape
    (1, 3, 4, 4, 4)
    """

    count = 3
