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
    """The greatest element of each window of (.., length).

    >>> nn.MaxPool1d(2)(Tensor.ones(1, 3, 8)).shape
    (1, 3, 4)
    """


class MaxPool2d(Applied, function="max_pool2d", **MAX):
    """The greatest element of each window of (.., height, width).

    >>> nn.MaxPool2d(2)(Tensor.ones(1, 3, 8, 8)).shape
    (1, 3, 4, 4)
    """


class MaxPool3d(Applied, function="max_pool3d", **MAX):
    """The greatest element of each window of (.., depth, height, width).

    >>> nn.MaxPool3d(2)(Tensor.ones(1, 3, 8, 8, 8)).shape
    (1, 3, 4, 4, 4)
    """


class AvgPool1d(Applied, function="avg_pool1d", **MEAN_OF_LENGTHS):
    """The mean of each window of (.., length).

    >>> nn.AvgPool1d(2)(Tensor.ones(1, 3, 8)).shape
    (1, 3, 4)
    """


class AvgPool2d(Applied, function="avg_pool2d", **MEAN):
    """The mean of each window of (.., height, width).

    >>> nn.AvgPool2d(2)(Tensor.ones(1, 3, 8, 8)).shape
    (1, 3, 4, 4)
    """


class AvgPool3d(Applied, function="avg_pool3d", **MEAN):
    """The mean of each window of (.., depth, height, width).

    >>> nn.AvgPool3d(2)(Tensor.ones(1, 3, 8, 8, 8)).shape
    (1, 3, 4, 4, 4)
    """


class LPPool1d(Applied, function="lp_pool1d", **NORM):
    """The norm of each window of (.., length).

    >>> nn.LPPool1d(2, 2)(Tensor.ones(1, 3, 8)).shape
    (1, 3, 4)
    """


class LPPool2d(Applied, function="lp_pool2d", **NORM):
    """The norm of each window of (.., height, width).

    >>> nn.LPPool2d(2, 2)(Tensor.ones(1, 3, 8, 8)).shape
    (1, 3, 4, 4)
    """


class LPPool3d(Applied, function="lp_pool3d", **NORM):
    """The norm of each window of (.., depth, height, width).

    >>> nn.LPPool3d(2, 2)(Tensor.ones(1, 3, 8, 8, 8)).shape
    (1, 3, 4, 4, 4)
    """


class AdaptiveMaxPool1d(
    Applied, function="adaptive_max_pool1d", output_size=..., return_indices=False
):
    """The greatest elements of `output_size` windows.

    >>> nn.AdaptiveMaxPool1d(2)(Tensor.ones(1, 3, 8)).shape
    (1, 3, 2)
    """


class AdaptiveMaxPool2d(
    Applied, function="adaptive_max_pool2d", output_size=..., return_indices=False
):
    """The greatest elements of `output_size` windows, an int or (height, width).

    >>> nn.AdaptiveMaxPool2d(2)(Tensor.ones(1, 3, 8, 8)).shape
    (1, 3, 2, 2)
    """


class AdaptiveMaxPool3d(
    Applied, function="adaptive_max_pool3d", output_size=..., return_indices=False
):
    """The greatest elements of `output_size` windows, an int or (depth, height, width).

    >>> nn.AdaptiveMaxPool3d(2)(Tensor.ones(1, 3, 8, 8, 8)).shape
    (1, 3, 2, 2, 2)
    """


class AdaptiveAvgPool1d(Applied, function="adaptive_avg_pool1d", output_size=...):
    """The means of `output_size` windows.

    >>> nn.AdaptiveAvgPool1d(2)(Tensor.ones(1, 3, 8)).shape
    (1, 3, 2)
    """


class AdaptiveAvgPool2d(Applied, function="adaptive_avg_pool2d", output_size=...):
    """The means of `output_size` windows, an int or (height, width).

    >>> nn.AdaptiveAvgPool2d(2)(Tensor.ones(1, 3, 8, 8)).shape
    (1, 3, 2, 2)
    """


class AdaptiveAvgPool3d(Applied, function="adaptive_avg_pool3d", output_size=...):
    """The means of `output_size` windows, an int or (depth, height, width).

    >>> nn.AdaptiveAvgPool3d(2)(Tensor.ones(1, 3, 8, 8, 8)).shape
    (1, 3, 2, 2, 2)
    """


class _Unpool(Applied):
    def forward(self, x: Tensor, indices: Tensor, output_size: Any = None) -> Tensor:
        unpool = getattr(functional, self.function)
        result: Tensor = unpool(x, indices, output_size=output_size, **self.settings())
        return result


class MaxUnpool1d(_Unpool, function="max_unpool1d", **UNPOOL):
    """The way back from `MaxPool1d`: called with what it gave, values and indices, and perhaps
    the size that there was.

    >>> largest, places = nn.MaxPool1d(2, return_indices=True)(Tensor.ones(1, 3, 8))
    >>> nn.MaxUnpool1d(2)(largest, places).shape
    (1, 3, 8)
    """


class MaxUnpool2d(_Unpool, function="max_unpool2d", **UNPOOL):
    """The way back from `MaxPool2d`; see `MaxUnpool1d`.

    >>> largest, places = nn.MaxPool2d(2, return_indices=True)(Tensor.ones(1, 3, 8, 8))
    >>> nn.MaxUnpool2d(2)(largest, places).shape
    (1, 3, 8, 8)
    """


class MaxUnpool3d(_Unpool, function="max_unpool3d", **UNPOOL):
    """The way back from `MaxPool3d`; see `MaxUnpool1d`.

    >>> largest, places = nn.MaxPool3d(2, return_indices=True)(Tensor.ones(1, 3, 8, 8, 8))
    >>> nn.MaxUnpool3d(2)(largest, places).shape
    (1, 3, 8, 8, 8)
    """


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
    """x in another size; see `Tensor.interpolate`.

    >>> nn.Upsample(scale_factor=2)(Tensor.ones(1, 3, 4, 4)).shape
    (1, 3, 8, 8)
    """


class UpsamplingNearest2d(Applied, function="upsample_nearest", size=None, scale_factor=None):
    """`Upsample` of images by the nearest element.

    >>> nn.UpsamplingNearest2d(scale_factor=2)(Tensor.ones(1, 3, 4, 4)).shape
    (1, 3, 8, 8)
    """


class UpsamplingBilinear2d(Applied, function="upsample_bilinear", size=None, scale_factor=None):
    """`Upsample` of images, bilinear, with aligned corners.

    >>> nn.UpsamplingBilinear2d(scale_factor=2)(Tensor.ones(1, 3, 4, 4)).shape
    (1, 3, 8, 8)
    """


# ---- rearranging ---------------------------------------------------------------------------------
class PixelShuffle(Applied, function="pixel_shuffle", upscale_factor=...):
    """Channels as pixels: (.., c * r * r, h, w) -> (.., c, h * r, w * r).

    >>> nn.PixelShuffle(2)(Tensor.ones(1, 4, 3, 3)).shape
    (1, 1, 6, 6)
    """


class PixelUnshuffle(Applied, function="pixel_unshuffle", downscale_factor=...):
    """Pixels as channels: (.., c, h * r, w * r) -> (.., c * r * r, h, w).

    >>> nn.PixelUnshuffle(2)(Tensor.ones(1, 1, 6, 6)).shape
    (1, 4, 3, 3)
    """


class ChannelShuffle(Applied, function="channel_shuffle", groups=...):
    """Channels interleaved: those of each of `groups` parts by turns.

    >>> nn.ChannelShuffle(2)(Tensor.ones(1, 4, 3, 3)).shape
    (1, 4, 3, 3)
    """


class Unfold(Applied, function="unfold", kernel_size=..., dilation=1, padding=0, stride=1):
    """The windows of images as columns: (batch, channels * elements, windows).

    >>> nn.Unfold(2)(Tensor.ones(1, 3, 4, 4)).shape
    (1, 12, 9)
    """


class Fold(
    Applied, function="fold", output_size=..., kernel_size=..., dilation=1, padding=0, stride=1
):
    """Columns added up in the places of their windows; the adjoint of `Unfold`.

    >>> nn.Fold((4, 4), 2)(Tensor.ones(1, 12, 9)).shape
    (1, 3, 4, 4)
    """


class LocalResponseNorm(
    Applied, function="local_response_norm", size=..., alpha=1e-4, beta=0.75, k=1.0
):
    """Each element divided by a power of the mean square of its neighbours in other channels.

    >>> nn.LocalResponseNorm(2)(Tensor.ones(1, 3, 8)).shape
    (1, 3, 8)
    """
