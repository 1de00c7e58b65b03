"""The functions of `treadle.fft`: NumPy's and PyTorch's, and those of the Array API standard.

https://data-apis.org/array-api/2024.12/extensions/fourier_transform_functions.html

All are made of three transforms along one axis: of complex numbers, of real ones (of which half is
kept), and of such a half to real ones. Tensors stand here as *parts*, real nodes of shape
(1 or 2, *shape).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from treadle.graph import shapes
from treadle.graph.build import as_float, cast, permute, reshape
from treadle.graph.build import contiguous as stored
from treadle.graph.fourier import halves
from treadle.graph.fourier.transform import conjugate, inverse, padded, transform
from treadle.graph.movement import narrow, stack
from treadle.graph.parts import complex_of, imag, real
from treadle.graph.public import public
from treadle.graph.shapes import at_most, normalize_axis, text
from treadle.ir.dtype import float32
from treadle.ir.node import Node

# Which direction divides by how much of n: the exponent of n in the factor of (the transform, its
# inverse). Source: the Array API standard, as NumPy has it.
NORMS = {None: (0, -1), "backward": (0, -1), "ortho": (-0.5, -0.5), "forward": (-1, 0)}
FORWARD, BACKWARD = 0, 1
TRANSFORMS = (transform, inverse)
Lengths = list[tuple[int, int]]  # the axes that are transformed, each with the length it gets


# ---- arguments -----------------------------------------------------------------------------------
def _parts(name: str, x: Node) -> Node:
    """A tensor as parts."""
    if not x.shape:
        raise ValueError(f"{name}: a 0-d tensor has no dimension to transform")
    if x.dtype.is_complex:
        return stored(stack([real(x), imag(x)]))  # what chooses its part is slow in a product
    wide = floating(x)
    return reshape(wide, (1, *wide.shape))


def floating(x: Node) -> Node:
    """A real tensor in the type that it is transformed in: float64, or else float32."""
    found = as_float(x)
    return cast(found, float32) if found.dtype.itemsize < float32.itemsize else found


def _real_parts(name: str, x: Node) -> Node:
    if x.dtype.is_complex:
        raise TypeError(f"{name} is for real tensors, not for {x.dtype}: take x.real, or use fft")
    return _parts(name, x)


def _complex(parts: Node) -> Node:
    """The complex tensor of two parts."""
    shape = parts.shape[1:]
    return complex_of(*[reshape(narrow(parts, 0, k, k + 1), shape) for k in (0, 1)])


def _lengths(name: str, x: Node, s: Any, dims: Any) -> Lengths:
    """The axes and lengths that `s` and `dims` say: all dimensions, or the last ones that `s` has
    lengths for; without a length (None, -1) a dimension keeps its size."""
    ndim = len(x.shape)
    sizes = _listed(s)
    if dims is None:
        if len(sizes or ()) > ndim:
            raise ValueError(f"{name}: s has {len(sizes or ())} lengths for shape {text(x.shape)}")
        dims = range(ndim - len(sizes), ndim) if sizes is not None else range(ndim)
    axes = [normalize_axis(axis, ndim) for axis in _listed(dims) or ()]
    if len(set(axes)) < len(axes):
        raise ValueError(f"{name}: dim={tuple(dims)} names the same dimension twice")
    if sizes is not None and len(sizes) != len(axes):
        raise ValueError(f"{name}: s has {len(sizes)} lengths for {len(axes)} dimensions")
    return [(a, _length(name, x, a, n)) for a, n in zip(axes, sizes or [None] * len(axes))]


def _listed(given: Any) -> list[Any] | None:
    """A number or several as a list."""
    if given is None:
        return None
    return list(given) if isinstance(given, (tuple, list, range)) else [given]


def _length(name: str, x: Node, axis: int, n: Any) -> int:
    """How many numbers an axis is to have."""
    size = x.shape[axis] if n is None or n == -1 else shapes.as_dim(n)
    if not isinstance(size, int):
        raise ValueError(
            f"{name}: the length of a transform is a known number; that of dimension {axis} of "
            f"shape {text(x.shape)} is {shapes.dim_text(size)}"
        )
    if size < 1:
        raise ValueError(f"{name}: a transform has at least one element, not {size}")
    return size


def _doubled(name: str, x: Node, lengths: Lengths, given: Any) -> int:
    """Of a transform to real numbers: how many they are. From m numbers 2 (m - 1), unless it is
    given."""
    last = (_listed(given) or [None])[-1]
    if last is not None and last != -1:
        return lengths[-1][1]
    count = 2 * (lengths[-1][1] - 1)
    if count < 1:
        raise ValueError(
            f"{name}: of one number, 2 * (1 - 1) = 0 real ones would be made: give their number"
        )
    return count


def _scale(name: str, norm: Any, n: int, direction: int) -> float:
    """The factor of one transform of length n."""
    if not isinstance(norm, str | None) or norm not in NORMS:
        raise ValueError(f"{name}: norm is 'backward', 'ortho' or 'forward', not {norm!r}")
    return float(n ** NORMS[norm][direction])


# ---- along an axis -------------------------------------------------------------------------------
def _resized(x: Node, axis: int, n: int) -> Node:
    """Cut at the end, or with zeros there, to n numbers along an axis."""
    size = x.shape[axis]
    if at_most(n, size) is True:
        return narrow(x, axis, 0, n)
    if at_most(size, n) is not True:
        raise ValueError(
            f"a transform of {n} of the {shapes.dim_text(size)} elements of a dimension: it cannot "
            "be said whether these are too few or too many"
        )
    return padded(x, 0, shapes.subtract(n, size), axis)


def _along(x: Node, axis: int, function: Callable[[Node], Node]) -> Node:
    """What a function of signals makes of parts along one axis of the tensor."""
    parts, *shape = x.shape
    before, after = shape[:axis], shape[axis + 1 :]
    sizes = (parts, shapes.total(before), shape[axis], shapes.total(after))
    y = permute(function(permute(reshape(x, sizes), (1, 0, 2, 3))), (1, 0, 2, 3))
    return stored(reshape(y, (y.shape[0], *before, y.shape[2], *after)))


def _transformed(name: str, x: Node, lengths: Lengths, norm: Any, direction: int) -> Node:
    """Transforms of complex numbers along axes, one after the other."""
    for axis, n in lengths:
        function = partial(TRANSFORMS[direction], scale=_scale(name, norm, n, direction))
        x = _along(_resized(x, axis + 1, n), axis, function)
    return x


def _complex_to_complex(name: str, x: Node, s: Any, dims: Any, norm: Any, direction: int) -> Node:
    parts = _parts(name, x)
    parts = _transformed(name, parts, _lengths(name, x, s, dims), norm, direction)
    _scale(name, norm, 1, direction)
    if parts.shape[0] == 1:  # along no dimension
        parts = padded(parts, 0, 1, 0)
    return _complex(parts)


def _real_to_complex(name: str, x: Node, s: Any, dims: Any, norm: Any, direction: int) -> Node:
    """Half of the last of the axes is computed; with direction BACKWARD the inverse, which of real
    numbers is the conjugate of the transform but for its factor."""
    parts = _real_parts(name, x)
    lengths = _some(name, _lengths(name, x, s, dims))
    axis, n = lengths[-1]
    scale = _scale(name, norm, n, direction)
    parts = _along(_resized(parts, axis + 1, n), axis, partial(halves.half, scale=scale))
    if direction == BACKWARD:
        parts = conjugate(parts, 0)
    return _complex(_transformed(name, parts, lengths[:-1], norm, direction))


def _complex_to_real(name: str, x: Node, s: Any, dims: Any, norm: Any, direction: int) -> Node:
    """The last of the axes becomes real; with direction FORWARD the transform, which is the inverse
    of the conjugate."""
    parts = _parts(name, x)
    lengths = _some(name, _lengths(name, x, s, dims))
    axis, _ = lengths[-1]
    n = _doubled(name, x, lengths, s)
    scale = _scale(name, norm, n, direction)
    parts = _transformed(name, parts, lengths[:-1], norm, direction)
    parts = _resized(parts, axis + 1, n // 2 + 1)
    if direction == FORWARD:
        parts = conjugate(parts, 0)
    found = _along(parts, axis, partial(halves.whole, n=n, scale=scale))
    return reshape(found, found.shape[1:])


def _some(name: str, lengths: Lengths) -> Lengths:
    if not lengths:
        raise ValueError(f"{name} transforms at least one dimension: dim names none")
    return lengths


# ---- one dimension -------------------------------------------------------------------------------
@public("fft", source="Array API", method=False, fft=True)
def fft(x: Node, n: int | None = None, dim: int = -1, norm: str | None = None) -> Node:
    """The discrete Fourier transform along a dimension: X_k = sum of x_j exp(-2 pi i j k / n).

    n: the length; the tensor is cut, or filled with zeros, at its end. norm: "backward" divides the
    inverse by n, "forward" the transform, "ortho" both by its root. float64 and complex128 give
    complex128, everything else complex64.

    >>> treadle.fft.fft(Tensor([1.0, 2.0, 3.0, 4.0])).real.tolist()
    [10.0, -2.0, -2.0, -2.0]
    """
    return _complex_to_complex("fft", x, [n], [dim], norm, FORWARD)


@public("ifft", source="Array API", method=False, fft=True)
def ifft(x: Node, n: int | None = None, dim: int = -1, norm: str | None = None) -> Node:
    """The inverse of `fft`: x_j = 1/n sum of X_k exp(2 pi i j k / n).

    >>> treadle.fft.ifft(Tensor([4.0, 0.0, 0.0, 0.0])).real.tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    return _complex_to_complex("ifft", x, [n], [dim], norm, BACKWARD)


@public("rfft", source="Array API", method=False, fft=True)
def rfft(x: Node, n: int | None = None, dim: int = -1, norm: str | None = None) -> Node:
    """`fft` of real numbers: the first n // 2 + 1 results, whose conjugates are the others.

    TypeError for complex tensors.

    >>> treadle.fft.rfft(Tensor([1.0, 2.0, 3.0, 4.0])).real.tolist()
    [10.0, -2.0, -2.0]
    """
    return _real_to_complex("rfft", x, [n], [dim], norm, FORWARD)


@public("irfft", source="Array API", method=False, fft=True)
def irfft(x: Node, n: int | None = None, dim: int = -1, norm: str | None = None) -> Node:
    """The inverse of `rfft`: n real numbers, 2 (m - 1) of m complex ones unless n is given.

    The imaginary parts of the first and, of an even n, of the last number are taken as 0.

    >>> treadle.fft.irfft(Tensor([10.0, -2.0, -2.0]), n=4).tolist()
    [1.0, 3.0, 3.0, 3.0]
    """
    return _complex_to_real("irfft", x, [n], [dim], norm, BACKWARD)


@public("hfft", source="Array API", method=False, fft=True)
def hfft(x: Node, n: int | None = None, dim: int = -1, norm: str | None = None) -> Node:
    """`fft` of n numbers whose second half are the conjugates of the first, which is given: n real
    numbers, 2 (m - 1) of m complex ones unless n is given.

    >>> treadle.fft.hfft(Tensor([1.0, 1.0, 1.0])).tolist()
    [4.0, 0.0, 0.0, 0.0]
    """
    return _complex_to_real("hfft", x, [n], [dim], norm, FORWARD)


@public("ihfft", source="Array API", method=False, fft=True)
def ihfft(x: Node, n: int | None = None, dim: int = -1, norm: str | None = None) -> Node:
    """The inverse of `hfft`: the first n // 2 + 1 numbers of the inverse transform of real ones.

    >>> treadle.fft.ihfft(Tensor([4.0, 0.0, 0.0, 0.0])).real.tolist()
    [1.0, 1.0, 1.0]
    """
    return _real_to_complex("ihfft", x, [n], [dim], norm, BACKWARD)


# ---- several dimensions --------------------------------------------------------------------------
@public("fftn", source="Array API", method=False, fft=True)
def fftn(x: Node, s: Any = None, dims: Any = None, norm: str | None = None) -> Node:
    """`fft` along several dimensions, one after the other.

    s: their lengths (-1 keeps one). dims (or axes): which; without them all, or the last ones that
    `s` has lengths for.

    >>> treadle.fft.fftn(Tensor.ones(2, 2)).real.tolist()
    [[4.0, 0.0], [0.0, 0.0]]
    """
    return _complex_to_complex("fftn", x, s, dims, norm, FORWARD)


@public("fft2", source="PyTorch", method=False, fft=True)
def fft2(x: Node, s: Any = None, dims: Any = (-2, -1), norm: str | None = None) -> Node:
    """`fftn` along two dimensions, the last ones unless `dims` (or axes) names others.

    >>> treadle.fft.fft2(Tensor.ones(2, 2)).real.tolist()
    [[4.0, 0.0], [0.0, 0.0]]
    """
    return _complex_to_complex("fft2", x, s, dims, norm, FORWARD)


@public("ifftn", source="Array API", method=False, fft=True)
def ifftn(x: Node, s: Any = None, dims: Any = None, norm: str | None = None) -> Node:
    """`ifft` along several dimensions: the inverse of `fftn`.

    >>> treadle.fft.ifftn(Tensor.ones(2, 2)).real.tolist()
    [[1.0, 0.0], [0.0, 0.0]]
    """
    return _complex_to_complex("ifftn", x, s, dims, norm, BACKWARD)


@public("ifft2", source="PyTorch", method=False, fft=True)
def ifft2(x: Node, s: Any = None, dims: Any = (-2, -1), norm: str | None = None) -> Node:
    """`ifftn` along two dimensions, the last ones unless `dims` (or axes) names others.

    >>> treadle.fft.ifft2(Tensor.ones(2, 2)).real.tolist()
    [[1.0, 0.0], [0.0, 0.0]]
    """
    return _complex_to_complex("ifft2", x, s, dims, norm, BACKWARD)


@public("rfftn", source="Array API", method=False, fft=True)
def rfftn(x: Node, s: Any = None, dims: Any = None, norm: str | None = None) -> Node:
    """`rfft` along the last of several dimensions, `fft` along the others.

    >>> treadle.fft.rfftn(Tensor.ones(2, 2)).real.tolist()
    [[4.0, 0.0], [0.0, 0.0]]
    """
    return _real_to_complex("rfftn", x, s, dims, norm, FORWARD)


@public("rfft2", source="PyTorch", method=False, fft=True)
def rfft2(x: Node, s: Any = None, dims: Any = (-2, -1), norm: str | None = None) -> Node:
    """`rfftn` along two dimensions, the last ones unless `dims` (or axes) names others.

    >>> treadle.fft.rfft2(Tensor.ones(2, 2)).real.tolist()
    [[4.0, 0.0], [0.0, 0.0]]
    """
    return _real_to_complex("rfft2", x, s, dims, norm, FORWARD)


@public("irfftn", source="Array API", method=False, fft=True)
def irfftn(x: Node, s: Any = None, dims: Any = None, norm: str | None = None) -> Node:
    """The inverse of `rfftn`; the last length is 2 (m - 1) of m numbers unless `s` says it.

    >>> treadle.fft.irfftn(Tensor([[4.0, 0.0], [0.0, 0.0]])).tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    """
    return _complex_to_real("irfftn", x, s, dims, norm, BACKWARD)


@public("irfft2", source="PyTorch", method=False, fft=True)
def irfft2(x: Node, s: Any = None, dims: Any = (-2, -1), norm: str | None = None) -> Node:
    """`irfftn` along two dimensions, the last ones unless `dims` (or axes) names others.

    >>> treadle.fft.irfft2(Tensor([[4.0, 0.0], [0.0, 0.0]])).tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    """
    return _complex_to_real("irfft2", x, s, dims, norm, BACKWARD)


@public("hfftn", source="PyTorch", method=False, fft=True)
def hfftn(x: Node, s: Any = None, dims: Any = None, norm: str | None = None) -> Node:
    """`fft` along all but the last of several dimensions, then `hfft` along that.

    >>> treadle.fft.hfftn(Tensor([[1.0, 0.0], [0.0, 0.0]])).tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    """
    return _complex_to_real("hfftn", x, s, dims, norm, FORWARD)


@public("hfft2", source="PyTorch", method=False, fft=True)
def hfft2(x: Node, s: Any = None, dims: Any = (-2, -1), norm: str | None = None) -> Node:
    """`hfftn` along two dimensions, the last ones unless `dims` (or axes) names others.

    >>> treadle.fft.hfft2(Tensor([[1.0, 0.0], [0.0, 0.0]])).tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    """
    return _complex_to_real("hfft2", x, s, dims, norm, FORWARD)


@public("ihfftn", source="PyTorch", method=False, fft=True)
def ihfftn(x: Node, s: Any = None, dims: Any = None, norm: str | None = None) -> Node:
    """The inverse of `hfftn`: `ihfft` along the last dimension, `ifft` along the others.

    >>> treadle.fft.ihfftn(Tensor.ones(2, 2)).real.tolist()
    [[1.0, 0.0], [0.0, 0.0]]
    """
    return _real_to_complex("ihfftn", x, s, dims, norm, BACKWARD)


@public("ihfft2", source="PyTorch", method=False, fft=True)
def ihfft2(x: Node, s: Any = None, dims: Any = (-2, -1), norm: str | None = None) -> Node:
    """`ihfftn` along two dimensions, the last ones unless `dims` (or axes) names others.

    >>> treadle.fft.ihfft2(Tensor.ones(2, 2)).real.tolist()
    [[1.0, 0.0], [0.0, 0.0]]
    """
    return _real_to_complex("ihfft2", x, s, dims, norm, BACKWARD)
