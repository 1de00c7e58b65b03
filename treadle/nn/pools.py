"""Pools, resampling, rearranging and local normalisation of images as modules; the functions of
`nn.functional` say what the settings mean. stride=None is kernel_size."""

from __future__ import annotations

from typing import Any

from treadle.nn import functional
from treadle.nn.applied import Applied
from treadle.tensor import Tensor

# the settings of a family, in the order in which PyTorch's modules take them
MAX: dict[str, Any] = {
    "kernel_size": ..., "stride": None, "padding": 0, "dilation": 1, "return_indices": False,
    "ceil_mode": False,
}  # fmt: skip
MEAN_OF_LENGTHS: dict[str, Any] = {
    "kernel_size": ..., "stride": None, "padding": 0, "ceil_mode": False,
    "count_include_pad": True,
}  # fmt: skip
MEAN: dict[str, Any] = {**MEAN_OF_LENGTHS, "divisor_override": None}
NORM: dict[str, Any] = {"norm_type": ..., "kernel_size": ..., "stride": None, "ceil_mode": False}
UNPOOL: dict[str, Any] = {"kernel_size": ..., "stride": None, "padding": 0}


class MaxPool1d(Applied, function="max_pool1d", **MAX):
    """The greatest element of each window of (.., length)."""


class MaxPool2d(Applied, function="max_pool2d", **MAX):
    """The greatest element of each window of (.., height, width)."""


class MaxPool3d(Applied, function="max_pool3d", **MAX):
    """The greatest element of each window of (.., depth, height, width)."""


class AvgPool1d(Applied, function="avg_pool1d", **MEAN_OF_LENGTHS):
    """The mean of each window of (.., length)."""


class AvgPool2d(Applied, function="avg_pool2d", **MEAN):
    """The mean of each window of (.., height, width)."""


class AvgPool3d(Applied, function="avg_pool3d", **MEAN):
    """The mean of each window of (.., depth, height, width)."""


class LPPool1d(Applied, function="lp_pool1d", **NORM):
    """The norm of each window of (.., length)."""


class LPPool2d(Applied, function="lp_pool2d", **NORM):
    """The norm of each window of (.., height, width)."""


class LPPool3d(Applied, function="lp_pool3d", **NORM):
    """The norm of each window of (.., depth, height, width)."""


class AdaptiveMaxPool1d(
    Applied, function="adaptive_max_pool1d", output_size=..., return_indices=False
):
    """The greatest elements of `output_size` windows."""


class AdaptiveMaxPool2d(
    Applied, function="adaptive_max_pool2d", output_size=..., return_indices=False
):
    """The greatest elements of `output_size` windows, an int or (height, width)."""


class AdaptiveMaxPool3d(
    Applied, function="adaptive_max_pool3d", output_size=..., return_indices=False
):
    """The greatest elements of `output_size` windows, an int or (depth, height, width)."""


class AdaptiveAvgPool1d(Applied, function="adaptive_avg_pool1d", output_size=...):
    """The means of `output_size` windows."""


class AdaptiveAvgPool2d(Applied, function="adaptive_avg_pool2d", output_size=...):
    """The means of `output_size` windows, an int or (height, width)."""


class AdaptiveAvgPool3d(Applied, function="adaptive_avg_pool3d", output_size=...):
    """The means of `output_size` windows, an int or (depth, height, width)."""


class _Unpool(Applied):
    def forward(self, x: Tensor, indices: Tensor, output_size: Any = None) -> Tensor:
        unpool = getattr(functional, self.function)
        result: Tensor = unpool(x, indices, output_size=output_size, **self.settings())
        return result


class MaxUnpool1d(_Unpool, function="max_unpool1d", **UNPOOL):
    """The way back from `MaxPool1d`: called with what it gave, values and indices, and perhaps
    the size that there was."""


class MaxUnpool2d(_Unpool, function="max_unpool2d", **UNPOOL):
    """The way back from `MaxPool2d`; see `MaxUnpool1d`."""


class MaxUnpool3d(_Unpool, function="max_unpool3d", **UNPOOL):
    """The way back from `MaxPool3d`; see `MaxUnpool1d`."""


# ---- resampling ----------------------------------------------------------------------------------
class Upsample(
    Applied,
    function="interpolate",
    size=None,
    scale_factor=None,
    mode="nearest",
    align_corners=None,
    recompute_scale_factor=None,
):
    """x in another size; see `Tensor.interpolate`."""


class UpsamplingNearest2d(Applied, function="upsample_nearest", size=None, scale_factor=None):
    """`Upsample` of images by the nearest element."""


class UpsamplingBilinear2d(Applied, function="upsample_bilinear", size=None, scale_factor=None):
    """`Upsample` of images, bilinear, with aligned corners."""


# ---- rearranging ---------------------------------------------------------------------------------
class PixelShuffle(Applied, function="pixel_shuffle", upscale_factor=...):
    """Channels as pixels: (.., c * r * r, h, w) -> (.., c, h * r, w * r)."""


class PixelUnshuffle(Applied, function="pixel_unshuffle", downscale_factor=...):
    """Pixels as channels: (.., c, h * r, w * r) -> (.., c * r * r, h, w)."""


class ChannelShuffle(Applied, function="channel_shuffle", groups=...):
    """Channels interleaved: those of each of `groups` parts by turns."""


class Unfold(Applied, function="unfold", kernel_size=..., dilation=1, padding=0, stride=1):
    """The windows of images as columns: (batch, channels * elements, windows)."""


class Fold(
    Applied, function="fold", output_size=..., kernel_size=..., dilation=1, padding=0, stride=1
):
    """Columns added up in the places of their windows; the adjoint of `Unfold`."""


class LocalResponseNorm(
    Applied, function="local_response_norm", size=..., alpha=1e-4, beta=0.75, k=1.0
):
    """Each element divided by a power of the mean square of its neighbours in other channels."""
