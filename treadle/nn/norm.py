"""Normalisation: by batch, sample, layer and group."""

from __future__ import annotations

from typing import Any

from treadle.nn import begin, running
from treadle.nn.begin import Dtype
from treadle.nn.module import Module
from treadle.tensor import Tensor


class BatchNorm(Module):
    """Each channel with mean 0 and variance 1 over the batch, times weight, plus bias.

    x: (batch, channels, ..). In training the moments are those of the batch, and running_mean and
    running_var move towards them by `momentum` (None: they become the average over all batches);
    in eval the running ones are used. track_running_stats=False: always those of the batch.
    affine=False: no weight and bias; bias=False: no bias. The running variance divides by one less
    than the count.

    A running statistic is a pending value until somebody needs it: `opt.step()` computes it along.
    Source: Ioffe and Szegedy, "Batch normalization", 2015.

    >>> nn.BatchNorm(3)(Tensor.ones(2, 3, 8, 8)).shape
    (2, 3, 8, 8)
    """

    ranks: tuple[int, ...] = ()  # numbers of dimensions that are allowed; none: any from 2

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: str | None = None,
        dtype: Dtype = None,
        *,
        bias: bool = True,
    ) -> None:
        begin.check_sizes(self, num_features=num_features)
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        shape = (num_features,)
        self.weight = begin.filled(1, shape, dtype, device) if affine else None
        self.bias = begin.filled(0, shape, dtype, device) if affine and bias else None
        tracked = track_running_stats
        self.running_mean = begin.buffer(0, shape, dtype, device) if tracked else None
        self.running_var = begin.buffer(1, shape, dtype, device) if tracked else None
        self.num_batches_tracked = begin.buffer(0, (), "int64", device) if tracked else None

    def forward(self, x: Tensor) -> Tensor:
        if x.ndim < 2 or (self.ranks and x.ndim not in self.ranks):
            wanted = " or ".join(map(str, self.ranks)) or "at least 2"
            raise ValueError(
                f"{type(self).__name__}: x of shape {x.shape} must have {wanted} dimensions"
            )
        if x.shape[1] != self.num_features:
            raise ValueError(
                f"{type(self).__name__}: x of shape {x.shape} must have {self.num_features} "
                "channels, in dimension 1"
            )
        momentum: float | Tensor = 0.0 if self.momentum is None else self.momentum
        mean, batches = self.running_mean, self.num_batches_tracked
        if self.training and mean is not None and batches is not None:
            batches.assign(batches + 1)
            if self.momentum is None:
                momentum = 1.0 / batches.to(dtype=mean.dtype)
        return running.batch_norm(
            x,
            mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            momentum,
            self.eps,
        )

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"track_running_stats={self.track_running_stats}"
        )


class BatchNorm1d(BatchNorm):
    """`BatchNorm` of (batch, channels) or (batch, channels, length).

    >>> nn.BatchNorm1d(3)(Tensor.ones(2, 3, 8)).shape
    (2, 3, 8)
    """

    ranks = (2, 3)


class BatchNorm2d(BatchNorm):
    """`BatchNorm` of (batch, channels, height, width).

    >>> nn.BatchNorm2d(3)(Tensor.ones(2, 3, 8, 8)).shape
    (2, 3, 8, 8)
    """

    ranks = (4,)


class BatchNorm3d(BatchNorm):
    """`BatchNorm` of (batch, channels, depth, height, width).

    >>> nn.BatchNorm3d(3)(Tensor.ones(2, 3, 8, 8, 8)).shape
    (2, 3, 8, 8, 8)
    """

    ranks = (5,)


class InstanceNorm(Module):
    """Each channel of each sample with mean 0 and variance 1, times weight, plus bias.

    x: (batch, channels, ..). affine=True: with weight and bias; bias=False: without bias.
    track_running_stats=True: running_mean and running_var move by `momentum` in training, and are
    used in eval; else the moments are always those of the sample.
    Source: Ulyanov, Vedaldi and Lempitsky, "Instance normalization", 2016. The classes with a
    number of dimensions take x without a batch, too, as PyTorch's do; this one is tinygrad's.

    >>> nn.InstanceNorm(3)(Tensor.ones(2, 3, 8)).shape
    (2, 3, 8)
    """

    rank = 0  # of x with a batch; 0: any from 3, and there is a batch

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: str | None = None,
        dtype: Dtype = None,
        *,
        bias: bool = True,
    ) -> None:
        begin.check_sizes(self, num_features=num_features)
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        shape = (num_features,)
        self.weight = begin.filled(1, shape, dtype, device) if affine else None
        self.bias = begin.filled(0, shape, dtype, device) if affine and bias else None
        tracked = track_running_stats
        self.running_mean = begin.buffer(0, shape, dtype, device) if tracked else None
        self.running_var = begin.buffer(1, shape, dtype, device) if tracked else None
        self.num_batches_tracked = begin.buffer(0, (), "int64", device) if tracked else None

    def forward(self, x: Tensor) -> Tensor:
        name, alone = type(self).__name__, x.ndim == self.rank - 1
        if not alone and (x.ndim != self.rank if self.rank else x.ndim < 3):
            wanted = f"{self.rank - 1} or {self.rank}" if self.rank else "at least 3"
            raise ValueError(f"{name}: x of shape {x.shape} must have {wanted} dimensions")
        x = x.unsqueeze(0) if alone else x
        if x.shape[1] != self.num_features and (self.affine or self.track_running_stats):
            raise ValueError(f"{name}: x of shape {x.shape} must have {self.num_features} channels")
        result = running.instance_norm(
            x,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            self.momentum,
            self.eps,
        )
        return result.squeeze(0) if alone else result

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"track_running_stats={self.track_running_stats}"
        )


class InstanceNorm1d(InstanceNorm):
    """`InstanceNorm` of (batch, channels, length).

    >>> nn.InstanceNorm1d(3)(Tensor.ones(2, 3, 8)).shape
    (2, 3, 8)
    """

    rank = 3


class InstanceNorm2d(InstanceNorm):
    """`InstanceNorm` of (batch, channels, height, width).

    >>> nn.InstanceNorm2d(3)(Tensor.ones(2, 3, 8, 8)).shape
    (2, 3, 8, 8)
    """

    rank = 4


class InstanceNorm3d(InstanceNorm):
    """`InstanceNorm` of (batch, channels, depth, height, width).

    >>> nn.InstanceNorm3d(3)(Tensor.ones(2, 3, 8, 8, 8)).shape
    (2, 3, 8, 8, 8)
    """

    rank = 5


class LayerNorm(Module):
    """x with mean 0 and variance 1 over its last dimensions, times weight, plus bias.

    normalized_shape: the sizes of those dimensions, an int for one; the shape of weight and bias.
    Source: Ba, Kiros and Hinton, "Layer normalization", 2016.

    >>> nn.LayerNorm(2, eps=1e-12)(Tensor([[1.0, 3.0]]))
    Tensor([[-1.,  1.]])
    """

    def __init__(
        self,
        normalized_shape: Any,
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: str | None = None,
        dtype: Dtype = None,
    ) -> None:
        self.normalized_shape = shape = _shape(self, normalized_shape)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        self.weight = begin.filled(1, shape, dtype, device) if elementwise_affine else None
        self.bias = begin.filled(0, shape, dtype, device) if elementwise_affine and bias else None

    def forward(self, x: Tensor) -> Tensor:
        return x.layer_norm(self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        affine = self.elementwise_affine
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={affine}"


class LayerNorm2d(LayerNorm):
    """`LayerNorm` over the channels of x (batch, channels, height, width), for each pixel.
    Source: tinygrad.

    >>> nn.LayerNorm2d(3)(Tensor.ones(2, 3, 8, 8)).shape
    (2, 3, 8, 8)
    """

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class RMSNorm(Module):
    """x divided by its root mean square over its last dimensions, times weight.

    normalized_shape: the sizes of those dimensions, an int for one. eps: None is the distance from
    1 to the next number of the dtype of x.
    Source: Zhang and Sennrich, "Root mean square layer normalization", 2019.

    >>> nn.RMSNorm(2, eps=1e-12)(Tensor([[3.0, 3.0]]))
    Tensor([[1., 1.]])
    """

    def __init__(
        self,
        normalized_shape: Any,
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: str | None = None,
        dtype: Dtype = None,
    ) -> None:
        self.normalized_shape = shape = _shape(self, normalized_shape)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        self.weight = begin.filled(1, shape, dtype, device) if elementwise_affine else None

    def forward(self, x: Tensor) -> Tensor:
        return x.rms_norm(self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        affine = self.elementwise_affine
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={affine}"


class GroupNorm(Module):
    """Each of `num_groups` parts of the channels of a sample with mean 0 and variance 1, times
    weight, plus bias. x: (batch, num_channels, ..). Source: Wu and He, "Group normalization", 2018.

    >>> nn.GroupNorm(2, 4)(Tensor.ones(2, 4, 8)).shape
    (2, 4, 8)
    """

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: str | None = None,
        dtype: Dtype = None,
        *,
        bias: bool = True,
    ) -> None:
        begin.check_sizes(self, num_groups=num_groups, num_channels=num_channels)
        if num_groups < 1 or num_channels % num_groups:
            raise ValueError(
                f"GroupNorm: {num_channels} channels do not divide into {num_groups} groups"
            )
        self.num_groups, self.num_channels = num_groups, num_channels
        self.eps, self.affine = eps, affine
        self.weight = begin.filled(1, (num_channels,), dtype, device) if affine else None
        self.bias = begin.filled(0, (num_channels,), dtype, device) if affine and bias else None

    def forward(self, x: Tensor) -> Tensor:
        return x.group_norm(self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}"


def _shape(layer: Module, normalized_shape: Any) -> tuple[int, ...]:
    """The sizes of `normalized_shape`, which may be one int."""
    several = isinstance(normalized_shape, (tuple, list))
    sizes = tuple(normalized_shape) if several else (normalized_shape,)
    for size in sizes:
        begin.check_sizes(layer, normalized_shape=size)
    return sizes
