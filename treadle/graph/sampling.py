"""Values at places that a grid names: `grid_sample`, and grids of affine maps.

Half and bfloat16 are computed in float32 and rounded once, at the result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from treadle.graph import shapes
from treadle.graph.build import (
    alu,
    as_float,
    cast,
    const,
    expand,
    gather,
    iota,
    permute,
    reshape,
    shrink,
    stop_gradient,
    where,
)
from treadle.graph.elementwise import abs_, add, clamp, div, floor, mul, ne, round_, sub
from treadle.graph.public import public
from treadle.graph.resampling import cubic_weights, known_size
from treadle.ir import ops
from treadle.ir.dtype import DType, int64
from treadle.ir.node import Node


@public("grid_sample", source="PyTorch")
def grid_sample(
    x: Node,
    grid: Node,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Node:
    """The values of x at the places that a grid names, between elements by interpolation.

    x: (batch, channels, height, width) or (batch, channels, depth, height, width). grid: (batch,
    .., 2) or (batch, .., 3) with as many dimensions: places as (x, y) or (x, y, z), from -1 to 1
    over the extent of x. Gives (batch, channels, ..). mode: "bilinear", "nearest", "bicubic" (for
    two dimensions). padding_mode: what is outside: "zeros", "border" (the element at the border),
    or "reflection". align_corners: whether -1 and 1 are the middles of the corner elements (True)
    or their outer edges. Source: Jaderberg et al., "Spatial transformer networks", 2015.

    >>> image = Tensor([[[[1.0, 3.0]]]])
    >>> image.grid_sample(Tensor([[[[0.0, 0.0]]]]))
    Tensor([[[[2.]]]])
    """
    count = len(x.shape) - 2
    fits = len(grid.shape) == len(x.shape) and grid.shape[-1] == count and count in (2, 3)
    if not fits or not shapes.same(x.shape[0], grid.shape[0]):
        raise ValueError(
            f"grid_sample: x of shape {shapes.text(x.shape)} and a grid of shape "
            f"{shapes.text(grid.shape)} do not fit: they are (batch, channels, ..) and (batch, .., "
            "2 or 3), with 2 or 3 spatial dimensions"
        )
    if mode not in ("bilinear", "nearest", "bicubic") or (mode == "bicubic" and count == 3):
        allowed = "'bilinear', 'nearest'" + (" or 'bicubic'" if count == 2 else "")
        raise ValueError(f"grid_sample: mode is {allowed}, not {mode!r}")
    if padding_mode not in _OUTSIDE:
        names = ", ".join(map(repr, _OUTSIDE))
        raise ValueError(f"grid_sample: padding_mode is one of {names}, not {padding_mode!r}")
    x, grid = as_float(x), as_float(grid)
    wide = x.dtype.accumulator
    sampler = _Sampler(cast(x, wide), padding_mode, bool(align_corners))
    # the last number of a place is that of the first spatial dimension
    places = [
        sampler.position(_component(cast(grid, wide), count - 1 - n), n) for n in range(count)
    ]
    sampled = _SAMPLES[mode](sampler, places)
    return cast(reshape(sampled, (*x.shape[:2], *grid.shape[1:-1])), x.dtype)


def _component(grid: Node, number: int) -> Node:
    """Number `number` of every place, in one dimension behind the batch."""
    rank = len(grid.shape)
    first = permute(grid, (rank - 1, *range(rank - 1)))
    flat = reshape(first, (grid.shape[-1], grid.shape[0], shapes.total(grid.shape[1:-1])))
    region = [(number, number + 1), *((0, size) for size in flat.shape[1:])]
    return reshape(shrink(flat, region), flat.shape[1:])


class _Sampler:
    """An array to be read at places that lie anywhere, which are one dimension behind the batch."""

    def __init__(self, x: Node, padding_mode: str, align_corners: bool) -> None:
        self.x = reshape(x, (*x.shape[:2], shapes.total(x.shape[2:])))
        self.sizes = [known_size(size, "grid_sample") for size in x.shape[2:]]
        self.padding_mode, self.align_corners = padding_mode, align_corners

    def position(self, place: Node, number: int) -> Node:
        """A place in -1 .. 1 as a position among the elements of a dimension."""
        size = self.sizes[number]
        if self.align_corners:
            return mul(add(place, 1.0), (size - 1) / 2)
        return sub(mul(add(place, 1.0), size / 2), 0.5)

    def inside(self, position: Node, number: int) -> Node:
        """A position outside brought to where its value is taken from (for zeros: itself)."""
        return _OUTSIDE[self.padding_mode](position, self.sizes[number], self.align_corners)

    def at(self, whole: Sequence[Node]) -> Node:
        """The elements at whole positions, (batch, channels, places); 0 for those outside."""
        flat: Node | None = None
        known: Node | None = None
        for position, size in zip(whole, self.sizes):
            within = alu(ops.AND, alu(ops.LE, 0.0, position), alu(ops.LE, position, size - 1.0))
            place = cast(clamp(position, 0.0, size - 1.0), int64)
            flat = place if flat is None else add(mul(flat, size), place)
            known = within if known is None else alu(ops.AND, known, within)
        assert flat is not None and known is not None
        batch, channels = self.x.shape[:2]
        shape = (batch, channels, flat.shape[1])
        column = (batch, 1, flat.shape[1])
        found = gather(self.x, expand(reshape(flat, column), shape), 2)
        return where(reshape(known, column), found, 0)


def _reflected(position: Node, low: float, span: float) -> Node:
    """A position mirrored at both ends of low .. low + span, as often as it takes."""
    if span <= 0:
        return mul(position, 0.0)
    away = abs_(sub(position, low))
    turns = floor(div(away, span))
    rest = sub(away, mul(stop_gradient(turns), span))
    odd = ne(sub(turns, mul(floor(mul(turns, 0.5)), 2.0)), 0.0)
    return add(where(odd, sub(span, rest), rest), low)


def _bordered(position: Node, size: int, align_corners: bool) -> Node:
    return clamp(position, 0.0, size - 1.0)


def _mirrored(position: Node, size: int, align_corners: bool) -> Node:
    low, span = (0.0, size - 1.0) if align_corners else (-0.5, float(size))
    return clamp(_reflected(position, low, span), 0.0, size - 1.0)


_OUTSIDE: dict[str, Callable[[Node, int, bool], Node]] = {
    "zeros": lambda position, size, align_corners: position,
    "border": _bordered,
    "reflection": _mirrored,
}


def _sample_nearest(sampler: _Sampler, places: Sequence[Node]) -> Node:
    return sampler.at([round_(sampler.inside(place, n)) for n, place in enumerate(places)])


def _sample_linear(sampler: _Sampler, places: Sequence[Node]) -> Node:
    """The elements around a place, each by how near it is in every dimension."""
    corners: list[tuple[list[Node], Node | None]] = [([], None)]
    for number, place in enumerate(places):
        position = sampler.inside(place, number)
        low = floor(position)
        share = sub(position, low)
        sides = ((low, sub(1.0, share)), (add(low, 1.0), share))
        corners = [
            ([*whole, at], weight if before is None else mul(before, weight))
            for whole, before in corners
            for at, weight in sides
        ]
    return _weighted_sum(sampler, corners)


def _sample_cubic(sampler: _Sampler, places: Sequence[Node]) -> Node:
    """The sixteen elements around a place, by the cubic weights of both dimensions."""
    corners: list[tuple[list[Node], Node | None]] = [([], None)]
    for number, place in enumerate(places):
        low = floor(place)
        weights = cubic_weights(sub(place, low))
        sides = [
            (sampler.inside(add(low, n - 1.0), number), weight) for n, weight in enumerate(weights)
        ]
        corners = [
            ([*whole, at], weight if before is None else mul(before, weight))
            for whole, before in corners
            for at, weight in sides
        ]
    return _weighted_sum(sampler, corners)


def _weighted_sum(sampler: _Sampler, corners: Sequence[tuple[list[Node], Node | None]]) -> Node:
    total: Node | None = None
    for whole, weight in corners:
        assert weight is not None
        column = (weight.shape[0], 1, weight.shape[1])
        part = mul(sampler.at(whole), reshape(weight, column))
        total = part if total is None else add(total, part)
    assert total is not None
    return total


_SAMPLES: dict[str, Callable[[_Sampler, Sequence[Node]], Node]] = {
    "bilinear": _sample_linear,
    "nearest": _sample_nearest,
    "bicubic": _sample_cubic,
}


@public("affine_grid", source="PyTorch")
def affine_grid(theta: Node, size: Sequence[int], align_corners: bool | None = None) -> Node:
    """The grid for `grid_sample` of affine maps: for each place (x, y, 1) of the result, theta
    times it.

    theta: (batch, 2, 3) for images, (batch, 3, 4) for volumes. size: the shape of the result,
    (batch, channels, ..). Gives (batch, .., 2 or 3). align_corners: as of `grid_sample`.

    >>> Tensor([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]]).affine_grid((1, 3, 4, 5)).shape
    (1, 4, 5, 2)
    """
    sizes = shapes.as_shape(*size)
    count = len(sizes) - 2
    if count not in (2, 3) or not shapes.same_shape(theta.shape, (sizes[0], count, count + 1)):
        raise ValueError(
            f"affine_grid: theta of shape {shapes.text(theta.shape)} and size {shapes.text(sizes)} "
            "do not fit: they are (batch, 2, 3) and (batch, channels, height, width), or (batch, "
            "3, 4) and (batch, channels, depth, height, width)"
        )
    theta = as_float(theta)
    wide = theta.dtype.accumulator
    rows = cast(theta, wide)
    spatial = tuple([known_size(n, "affine_grid") for n in sizes[2:]])
    total = _column(rows, count)
    # the first number of a place runs along the last spatial dimension
    for number in range(count):
        length = spatial[count - 1 - number]
        along = (length, *[1] * number)
        steps = reshape(_corners(length, bool(align_corners), wide), (*along, 1))
        total = add(total, mul(_column(rows, number), steps))
    return cast(expand(total, (sizes[0], *spatial, count)), theta.dtype)


def _column(theta: Node, number: int) -> Node:
    """A column of every matrix (batch, n, n + 1) of a batch, as (batch, 1 .., n)."""
    batch, count = theta.shape[:2]
    column = shrink(theta, [(0, batch), (0, count), (number, number + 1)])
    return reshape(column, (batch, *[1] * count, count))


def _corners(length: int, align_corners: bool, dtype: DType) -> Node:
    """`length` places from -1 to 1: ends of the range, or middles of equal parts of it."""
    if length == 1:
        return const(0.0, dtype, (1,))
    place = cast(iota(length, int64), dtype)
    if align_corners:
        return sub(mul(place, 2.0 / (length - 1)), 1.0)
    return sub(mul(add(place, 0.5), 2.0 / length), 1.0)
