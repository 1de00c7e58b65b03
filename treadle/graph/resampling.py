"""Tensors of other spatial sizes: interpolation, shuffled pixels.

An axis is resampled by itself: its new elements are sums of a few old ones, which `gather` reads at
computed places, with weights that follow from the position. The numbers of positions are float32,
as PyTorch has them (float64 for float64), so that equal arguments select equal elements.
Half and bfloat16 are computed in float32 and rounded once, at the result.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from treadle.graph import shapes
from treadle.graph.build import (
    as_float,
    cast,
    const,
    expand,
    gather,
    iota,
    permute,
    reduce,
    reshape,
    where,
)
from treadle.graph.elementwise import (
    abs_,
    add,
    clamp,
    div,
    floor,
    lt,
    maximum,
    minimum,
    mul,
    round_,
    sub,
)
from treadle.graph.pools import adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d
from treadle.graph.public import public
from treadle.graph.shapes import Dim
from treadle.graph.windows import Sizes
from treadle.ir.dtype import DType, float32, int64, uint8
from treadle.ir.node import Node

# mode -> the numbers of spatial dimensions that it is for
_MODES = {
    "nearest": (1, 2, 3), "nearest-exact": (1, 2, 3), "linear": (1,), "bilinear": (2,),
    "bicubic": (2,), "trilinear": (3,), "area": (1, 2, 3),
}  # fmt: skip
_SMOOTH = ("linear", "bilinear", "bicubic", "trilinear")  # those that align_corners is for
Taps = list[tuple[Node, Node | None]]  # (places of old elements, their weights; None for 1)


# ---- interpolation -------------------------------------------------------------------------------
@public("interpolate", source="PyTorch")
def interpolate(
    x: Node,
    size: Sizes = None,
    scale_factor: Sizes = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Node:
    """x (batch, channels, ..) with other spatial sizes, of which it has 1 to 3.

    size: the new sizes, an int or one per spatial dimension; or scale_factor: by how much sizes
    grow (rounded down). mode: "nearest", "nearest-exact" (as images are resized elsewhere),
    "linear", "bilinear", "trilinear" (for 1, 2, 3 spatial dimensions), "bicubic" (for 2), or "area"
    (means). align_corners: for the linear ones and bicubic: whether the first and last elements are
    at the ends (True), or elements are squares side by side. recompute_scale_factor: take positions
    from the sizes and not from scale_factor. antialias: for "bilinear" and "bicubic", where a size
    shrinks every new element is a mean over all old ones that it covers (as in Pillow).

    >>> Tensor([[[1.0, 2.0]]]).interpolate(scale_factor=2).tolist()
    [[[1.0, 1.0, 2.0, 2.0]]]
    """
    count = len(x.shape) - 2
    if mode not in _MODES or count not in _MODES[mode]:
        here = [name for name, counts in _MODES.items() if count in counts]
        what = ", ".join(map(repr, here)) or "none: x is (batch, channels, ..) of 3 to 5 dimensions"
        raise ValueError(
            f"interpolate: mode={mode!r} is not for x of shape {shapes.text(x.shape)}: its modes "
            f"are {what}"
        )
    if antialias and mode not in _KERNELS:
        raise ValueError(f"interpolate: antialias is for {', '.join(_KERNELS)}, not for {mode}")
    if align_corners is not None and mode not in _SMOOTH:
        raise ValueError(f"interpolate: align_corners is for {', '.join(_SMOOTH)}, not for {mode}")
    sizes, factors = _new_sizes(x, count, size, scale_factor, recompute_scale_factor)
    if mode == "area":
        return (adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d)[count - 1](x, sizes)
    smooth = mode in _SMOOTH
    rounds = smooth and x.dtype is uint8  # images stay images: PyTorch rounds along each dimension
    whole = as_float(x) if smooth else x
    result = cast(whole, whole.dtype.accumulator) if smooth else whole
    for number in reversed(range(count)):
        axis, new, factor = 2 + number, sizes[number], factors[number]
        old = known_size(x.shape[axis])
        if not smooth and new and new % old == 0 and factor in (None, 1 / (new // old)):
            result = _repeated(result, axis, new // old)
            continue
        wide = result.dtype if smooth and result.dtype.itemsize == 8 else float32
        if antialias:
            result = _smoothed(result, axis, _KERNELS[mode], new, factor, bool(align_corners))
            result = clamp(round_(result), 0, 255) if rounds else result
            continue
        taps = _TAPS[mode](old, new, factor, bool(align_corners), wide)
        if new != old or factor not in (None, 1.0):
            result = _resampled(result, axis, taps)
            result = clamp(round_(result), 0, 255) if rounds else result
    return cast(result, uint8 if rounds else whole.dtype)


def known_size(size: Dim, name: str = "interpolate") -> int:
    """A spatial size, which must be an int of at least 1."""
    if not isinstance(size, int):
        raise ValueError(
            f"{name}: the size {shapes.dim_text(size)} is not known here: give x a size that "
            "is an int"
        )
    if size < 1:
        raise ValueError(f"{name}: there is a spatial dimension of size 0")
    return size


def _new_sizes(
    x: Node, count: int, size: Sizes, scale_factor: Sizes, recompute: bool | None
) -> tuple[list[int], list[float | None]]:
    """(the new sizes, old positions per new one where scale_factor decides that)."""
    if (size is None) == (scale_factor is None):
        raise ValueError("interpolate: give either size or scale_factor")
    given = size if scale_factor is None else scale_factor
    each = list(given) if isinstance(given, (tuple, list)) else [given] * count
    what = "size" if scale_factor is None else "scale_factor"
    if len(each) != count:
        raise ValueError(f"interpolate: {what}={given!r} must be one number, or {count} of them")
    if scale_factor is None:
        if recompute:
            raise ValueError("interpolate: recompute_scale_factor is for scale_factor, not size")
        if any(type(n) is not int or n < 1 for n in each):
            raise ValueError(f"interpolate: size={given!r} must hold ints of at least 1")
        return each, [None] * count
    if any(not isinstance(n, (int, float)) or not n > 0 for n in each):
        raise ValueError(f"interpolate: scale_factor={given!r} must hold numbers above 0")
    old = [known_size(n) for n in x.shape[2:]]
    sizes = [math.floor(float(n) * factor) for n, factor in zip(old, each)]
    if min(sizes) < 1:
        raise ValueError(f"interpolate: scale_factor={given!r} leaves nothing of {x.shape[2:]}")
    return sizes, [None if recompute else 1.0 / factor for factor in each]


def _repeated(x: Node, axis: int, times: int) -> Node:
    """Every element `times` times along an axis."""
    before, size, after = x.shape[:axis], x.shape[axis], x.shape[axis + 1 :]
    column = reshape(x, (*before, size, 1, *after))
    return reshape(expand(column, (*before, size, times, *after)), (*before, size * times, *after))


def _positions(
    old: int, new: int, factor: float | None, align_corners: bool, shift: float, dtype: DType
) -> Node:
    """Where new elements are among the old: i*step for aligned corners, else (i + shift)*step -
    shift."""
    place = cast(iota(new, int64), dtype)
    if align_corners:
        return mul(place, const((old - 1) / (new - 1) if new > 1 else 0.0, dtype))
    step = const(old / new if factor is None else factor, dtype)
    return sub(mul(add(place, shift), step), shift) if shift else mul(place, step)


def _nearest(old: int, new: int, factor: float | None, aligned: bool, dtype: DType) -> Taps:
    at = floor(_positions(old, new, factor, False, 0.0, dtype))
    return [(cast(minimum(at, float(old - 1)), int64), None)]


def _nearest_exact(old: int, new: int, factor: float | None, aligned: bool, dtype: DType) -> Taps:
    place = add(cast(iota(new, int64), dtype), 0.5)
    at = floor(mul(place, const(old / new if factor is None else factor, dtype)))
    return [(cast(minimum(at, float(old - 1)), int64), None)]


def _linear(old: int, new: int, factor: float | None, aligned: bool, dtype: DType) -> Taps:
    at = maximum(_positions(old, new, factor, aligned, 0.5, dtype), 0.0)
    first = minimum(floor(at), float(old - 1))
    share = clamp(sub(at, first), 0.0, 1.0)
    low = cast(first, int64)
    return [(low, sub(1.0, share)), (minimum(add(low, 1), old - 1), share)]


def _cubic(old: int, new: int, factor: float | None, aligned: bool, dtype: DType) -> Taps:
    at = _positions(old, new, factor, aligned, 0.5, dtype)
    first = floor(at)
    low = cast(first, int64)
    weights = cubic_weights(sub(at, first))
    return [
        (maximum(minimum(add(low, n - 1), old - 1), 0), weight) for n, weight in enumerate(weights)
    ]


_TAPS: dict[str, Callable[[int, int, float | None, bool, DType], Taps]] = {
    "nearest": _nearest,
    "nearest-exact": _nearest_exact,
    "linear": _linear,
    "bilinear": _linear,
    "trilinear": _linear,
    "bicubic": _cubic,
}


def _near(t: Node, a: float) -> Node:
    """(a + 2) t^3 - (a + 3) t^2 + 1: the cubic weight of distances up to 1. Keys, "Cubic
    convolution interpolation for digital image processing", 1981."""
    return add(mul(mul(sub(mul(t, a + 2), a + 3), t), t), 1.0)


def _far(t: Node, a: float) -> Node:
    """a t^3 - 5a t^2 + 8a t - 4a: that of distances from 1 to 2."""
    return sub(mul(add(mul(sub(mul(t, a), 5 * a), t), 8 * a), t), 4 * a)


def cubic_weights(share: Node) -> list[Node]:
    """The weights of the elements at -1, 0, 1, 2 for a position `share` behind 0, with Keys's a =
    -3/4."""
    a = -0.75
    rest = sub(1.0, share)
    return [_far(add(share, 1.0), a), _near(share, a), _near(rest, a), _far(add(rest, 1.0), a)]


# ---- without aliasing ----------------------------------------------------------------------------
def _cubic_kernel(t: Node) -> Node:
    """Keys's weight of a distance, with a = -1/2."""
    far = where(lt(t, 2.0), _far(t, -0.5), 0.0)
    return where(lt(t, 1.0), _near(t, -0.5), far)


# mode -> (how far its kernel reaches, its weight of a distance)
_KERNELS: dict[str, tuple[int, Callable[[Node], Node]]] = {
    "bilinear": (1, lambda t: maximum(sub(1.0, t), 0.0)),
    "bicubic": (2, _cubic_kernel),
}


def _smoothed(
    x: Node,
    axis: int,
    kernel: tuple[int, Callable[[Node], Node]],
    new: int,
    factor: float | None,
    align_corners: bool,
) -> Node:
    """An axis resampled with a kernel that is as much wider as the axis shrinks: each new element
    reads all old ones within its reach, with weights that add up to 1."""
    old, dtype = known_size(x.shape[axis]), x.dtype
    if align_corners:
        step = (old - 1) / (new - 1) if new > 1 else 0.0
    else:
        step = old / new if factor is None else factor
    width = max(step, 1.0)
    reach = kernel[0] * width
    count = min(2 * math.ceil(reach) + 1, old)
    center = mul(add(cast(iota(new, int64), dtype), 0.5), const(step, dtype))
    first = maximum(cast(add(sub(center, reach), 0.5), int64), 0)
    end = minimum(cast(add(add(center, reach), 0.5), int64), old)
    place = add(reshape(first, (new, 1)), iota(count, int64))
    away = sub(add(cast(place, dtype), 0.5), reshape(center, (new, 1)))
    weight = where(lt(place, reshape(end, (new, 1))), kernel[1](abs_(mul(away, 1 / width))), 0.0)
    weight = div(weight, reduce("add", weight, 1, True))
    after = x.shape[axis + 1 :]
    flat = reshape(minimum(place, old - 1), (new * count, *[1] * len(after)))
    index = expand(flat, (*x.shape[:axis], new * count, *after))
    read = reshape(gather(x, index, axis), (*x.shape[:axis], new, count, *after))
    return reduce("add", mul(read, reshape(weight, (new, count, *[1] * len(after)))), axis + 1)


def _resampled(x: Node, axis: int, taps: Taps) -> Node:
    """The sum of the elements at some places along an axis, times weights."""
    total: Node | None = None
    for places, weight in taps:
        column = (places.shape[0], *[1] * (len(x.shape) - axis - 1))
        index = expand(reshape(places, column), (*x.shape[:axis], column[0], *x.shape[axis + 1 :]))
        part = gather(x, index, axis)
        if weight is not None:
            part = mul(part, reshape(cast(weight, x.dtype), column))
        total = part if total is None else add(total, part)
    assert total is not None
    return total


# ---- shuffled pixels -----------------------------------------------------------------------------
def _factor(name: str, what: str, value: Any) -> int:
    if type(value) is not int or value < 1:
        raise ValueError(f"{name}: {what}={value!r} must be an int of at least 1")
    return value


def _parts(name: str, x: Node, axis: int, count: int, what: str) -> Dim:
    """The size of an axis divided by `count`. ValueError if it does not divide."""
    part = shapes.divide(x.shape[axis], count)
    if not shapes.same(shapes.multiply(part, count), x.shape[axis]):
        raise ValueError(
            f"{name}: the {what} of x of shape {shapes.text(x.shape)} must divide by {count}"
        )
    return part


def _image(name: str, x: Node) -> None:
    if len(x.shape) < 3:
        raise ValueError(
            f"{name}: x has shape {shapes.text(x.shape)}; it must be (.., channels, height, width)"
        )


@public("pixel_shuffle", source="PyTorch")
def pixel_shuffle(x: Node, upscale_factor: int) -> Node:
    """(.., channels*r*r, height, width) as (.., channels, height*r, width*r): channels become the
    pixels of squares. Source: Shi et al., "Real-time single image super-resolution", 2016.

    >>> Tensor([[[1.0]], [[2.0]], [[3.0]], [[4.0]]]).pixel_shuffle(2).tolist()
    [[[1.0, 2.0], [3.0, 4.0]]]
    """
    _image("pixel_shuffle", x)
    r = _factor("pixel_shuffle", "upscale_factor", upscale_factor)
    outer, (height, width) = x.shape[:-3], x.shape[-2:]
    channels = _parts("pixel_shuffle", x, len(outer), r * r, "channels")
    split = reshape(x, (*outer, channels, r, r, height, width))
    n = len(outer)
    moved = permute(split, (*range(n), n, n + 3, n + 1, n + 4, n + 2))
    return reshape(moved, (*outer, channels, shapes.multiply(height, r), shapes.multiply(width, r)))


@public("pixel_unshuffle", source="PyTorch")
def pixel_unshuffle(x: Node, downscale_factor: int) -> Node:
    """(.., channels, height*r, width*r) as (.., channels*r*r, height, width): what `pixel_shuffle`
    makes, back.

    >>> Tensor([[[1.0, 2.0], [3.0, 4.0]]]).pixel_unshuffle(2).tolist()
    [[[1.0]], [[2.0]], [[3.0]], [[4.0]]]
    """
    _image("pixel_unshuffle", x)
    r = _factor("pixel_unshuffle", "downscale_factor", downscale_factor)
    outer, channels = x.shape[:-3], x.shape[-3]
    n = len(outer)
    height = _parts("pixel_unshuffle", x, n + 1, r, "height")
    width = _parts("pixel_unshuffle", x, n + 2, r, "width")
    split = reshape(x, (*outer, channels, height, r, width, r))
    moved = permute(split, (*range(n), n, n + 2, n + 4, n + 1, n + 3))
    return reshape(moved, (*outer, shapes.multiply(channels, r * r), height, width))


@public("channel_shuffle", source="PyTorch")
def channel_shuffle(x: Node, groups: int) -> Node:
    """The channels of x (batch, channels, ..), which are so many groups one after the other, in
    turn from each group. Source: Zhang et al., "ShuffleNet", 2018.

    >>> Tensor([[[1.0], [2.0], [3.0], [4.0]]]).channel_shuffle(2).flatten().tolist()
    [1.0, 3.0, 2.0, 4.0]
    """
    if len(x.shape) < 3:
        raise ValueError(
            f"channel_shuffle: x has shape {shapes.text(x.shape)}; it must be (batch, channels, ..)"
        )
    count = _factor("channel_shuffle", "groups", groups)
    each = _parts("channel_shuffle", x, 1, count, "channels")
    batch, rest = x.shape[0], x.shape[2:]
    order = (0, 2, 1, *range(3, 3 + len(rest)))
    return reshape(permute(reshape(x, (batch, count, each, *rest)), order), x.shape)
