"""The functions of `treadle.fft`.

Made by `tools/stubs.py --write`.
"""

import builtins
from typing import Any

from treadle.tensor import Tensor
from treadle.vocabulary import Array, DTypeLike

def fft(
    x: Array,
    n: builtins.int | None = None,
    dim: builtins.int = -1,
    norm: str | None = None,
    *,
    axis: builtins.int = ...,
) -> Tensor:
    """The discrete Fourier transform along a dimension: X_k = sum of x_j exp(-2 pi i j k / n)."""

def fft2(
    x: Array,
    s: Any = None,
    dims: Any = ...,
    norm: str | None = None,
    *,
    dim: Any = ...,
    axes: Any = ...,
    axis: Any = ...,
) -> Tensor:
    """`fftn` along two dimensions, the last ones unless `dims` (or axes) names others."""

def fftfreq(
    n: builtins.int,
    d: builtins.float = 1.0,
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
    requires_grad: builtins.bool = False,
) -> Tensor:
    """The frequencies of the n numbers that `fft` gives, of samples that are `d` apart: 0, 1 .. (n
    - 1) // 2, then -(n // 2) .. -1, each divided by n * d."""

def fftn(
    x: Array,
    s: Any = None,
    dims: Any = None,
    norm: str | None = None,
    *,
    dim: Any = ...,
    axes: Any = ...,
    axis: Any = ...,
) -> Tensor:
    """`fft` along several dimensions, one after the other."""

def fftshift(
    x: Array, dims: Any = None, *, dim: Any = ..., axes: Any = ..., axis: Any = ...
) -> Tensor:
    """The number of frequency 0 moved from the front to the middle, along some dimensions (all
    unless `dims` or axes names them)."""

def hfft(
    x: Array,
    n: builtins.int | None = None,
    dim: builtins.int = -1,
    norm: str | None = None,
    *,
    axis: builtins.int = ...,
) -> Tensor:
    """`fft` of n numbers whose second half are the conjugates of the first, which is given: n real
    numbers, 2 (m - 1) of m complex ones unless n is given."""

def hfft2(
    x: Array,
    s: Any = None,
    dims: Any = ...,
    norm: str | None = None,
    *,
    dim: Any = ...,
    axes: Any = ...,
    axis: Any = ...,
) -> Tensor:
    """`hfftn` along two dimensions, the last ones unless `dims` (or axes) names others."""

def hfftn(
    x: Array,
    s: Any = None,
    dims: Any = None,
    norm: str | None = None,
    *,
    dim: Any = ...,
    axes: Any = ...,
    axis: Any = ...,
) -> Tensor:
    """`fft` along all but the last of several dimensions, then `hfft` along that."""

def ifft(
    x: Array,
    n: builtins.int | None = None,
    dim: builtins.int = -1,
    norm: str | None = None,
    *,
    axis: builtins.int = ...,
) -> Tensor:
    """The inverse of `fft`: x_j = 1/n sum of X_k exp(2 pi i j k / n)."""

def ifft2(
    x: Array,
    s: Any = None,
    dims: Any = ...,
    norm: str | None = None,
    *,
    dim: Any = ...,
    axes: Any = ...,
    axis: Any = ...,
) -> Tensor:
    """`ifftn` along two dimensions, the last ones unless `dims` (or axes) names others."""

def ifftn(
    x: Array,
    s: Any = None,
    dims: Any = None,
    norm: str | None = None,
    *,
    dim: Any = ...,
    axes: Any = ...,
    axis: Any = ...,
) -> Tensor:
    """`ifft` along several dimensions: the inverse of `fftn`."""

def ifftshift(
    x: Array, dims: Any = None, *, dim: Any = ..., axes: Any = ..., axis: Any = ...
) -> Tensor:
    """The inverse of `fftshift`."""

def ihfft(
    x: Array,
    n: builtins.int | None = None,
    dim: builtins.int = -1,
    norm: str | None = None,
    *,
    axis: builtins.int = ...,
) -> Tensor:
    """The inverse of `hfft`: the first n // 2 + 1 numbers of the inverse transform of real ones."""

def ihfft2(
    x: Array,
    s: Any = None,
    dims: Any = ...,
    norm: str | None = None,
    *,
    dim: Any = ...,
    axes: Any = ...,
    axis: Any = ...,
) -> Tensor:
    """`ihfftn` along two dimensions, the last ones unless `dims` (or axes) names others."""

def ihfftn(
    x: Array,
    s: Any = None,
    dims: Any = None,
    norm: str | None = None,
    *,
    dim: Any = ...,
    axes: Any = ...,
    axis: Any = ...,
) -> Tensor:
    """The inverse of `hfftn`: `ihfft` along the last dimension, `ifft` along the others."""

def irfft(
    x: Array,
    n: builtins.int | None = None,
    dim: builtins.int = -1,
    norm: str | None = None,
    *,
    axis: builtins.int = ...,
) -> Tensor:
    """The inverse of `rfft`: n real numbers, 2 (m - 1) of m complex ones unless n is given."""

def irfft2(
    x: Array,
    s: Any = None,
    dims: Any = ...,
    norm: str | None = None,
    *,
    dim: Any = ...,
    axes: Any = ...,
    axis: Any = ...,
) -> Tensor:
    """`irfftn` along two dimensions, the last ones unless `dims` (or axes) names others."""

def irfftn(
    x: Array,
    s: Any = None,
    dims: Any = None,
    norm: str | None = None,
    *,
    dim: Any = ...,
    axes: Any = ...,
    axis: Any = ...,
) -> Tensor:
    """The inverse of `rfftn`; the last length is 2 (m - 1) of m numbers unless `s` says it."""

def rfft(
    x: Array,
    n: builtins.int | None = None,
    dim: builtins.int = -1,
    norm: str | None = None,
    *,
    axis: builtins.int = ...,
) -> Tensor:
    """`fft` of real numbers: the first n // 2 + 1 results, whose conjugates are the others."""

def rfft2(
    x: Array,
    s: Any = None,
    dims: Any = ...,
    norm: str | None = None,
    *,
    dim: Any = ...,
    axes: Any = ...,
    axis: Any = ...,
) -> Tensor:
    """`rfftn` along two dimensions, the last ones unless `dims` (or axes) names others."""

def rfftfreq(
    n: builtins.int,
    d: builtins.float = 1.0,
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
    requires_grad: builtins.bool = False,
) -> Tensor:
    """The frequencies of the n // 2 + 1 numbers that `rfft` gives, of samples that are `d` apart:
    0, 1 .. n // 2, each divided by n * d."""

def rfftn(
    x: Array,
    s: Any = None,
    dims: Any = None,
    norm: str | None = None,
    *,
    dim: Any = ...,
    axes: Any = ...,
    axis: Any = ...,
) -> Tensor:
    """`rfft` along the last of several dimensions, `fft` along the others."""
