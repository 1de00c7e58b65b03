"""Pools: one number for each window over the last dimensions, by the greatest, the mean or a norm;
pools whose number of windows is given; and the way back from the greatest elements.

Half and bfloat16 are computed in float32 and rounded once, at the result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from treadle.graph import shapes
from treadle.graph.build import (
    alu,
    as_float,
    cast,
    const,
    dim_value,
    expand,
    gather,
    iota,
    pad,
    reduce,
    reshape,
    scatter,
    where,
)
from treadle.graph.elementwise import abs_, div, mul, pow_, sign
from treadle.graph.functions import relu
from treadle.graph.public import public
from treadle.graph.shapes import Dim
from treadle.graph.windows import (
    Padding,
    Sizes,
    count_windows,
    padding_pairs,
    per_axis,
    reach_of,
    windows_of,
)
from treadle.ir import ops
from treadle.ir.dtype import DType, int64
from treadle.ir.node import Node

NOWHERE = int64.max  # the place of what is no element of x


# ---- geometry ------------------------------------------------------------------------------------
class _Pool:
    """The geometry of a pool over the last `count` dimensions of x.

    counts: windows per dimension. pairs: the padding asked for. filled: the padding that holds
    every window (with ceil_mode the last one may stand over the end).
    """

    def __init__(
        self,
        name: str,
        count: int,
        x: Node,
        kernel_size: Sizes,
        stride: Sizes,
        padding: Padding,
        dilation: Sizes,
        ceil_mode: bool,
    ) -> None:
        if len(x.shape) < count:
            raise ValueError(
                f"{name}: x of shape {shapes.text(x.shape)} has fewer than {count} dimensions"
            )
        self.kernel = per_axis(name, "kernel_size", kernel_size, count, 1)
        self.stride = (
            self.kernel if stride in (None, ()) else per_axis(name, "stride", stride, count, 1)
        )
        self.dilation = per_axis(name, "dilation", dilation, count, 1)
        self.pairs = padding_pairs(name, padding, count)
        self.sizes = x.shape[len(x.shape) - count :]
        self.counts: list[Dim] = []
        self.filled: list[tuple[int, Dim]] = []
        self.ceil_mode = ceil_mode
        reaches = reach_of(self.kernel, self.dilation)
        for size, pair, reach, step in zip(self.sizes, self.pairs, reaches, self.stride):
            if max(pair) > reach // 2:
                raise ValueError(
                    f"{name}: padding={padding!r} is more than half of a window that spans {reach}"
                )
            if not ceil_mode:
                self.counts.append(count_windows(name, size, pair, reach, step))
                self.filled.append(pair)
                continue
            # the last window must begin inside x or the padding before it
            starts = shapes.subtract(shapes.add(size, pair[0]), 1)
            rounded_up = count_windows(name, size, (pair[0], pair[1] + step - 1), reach, step)
            windows = shapes.least(rounded_up, shapes.add(shapes.divide(starts, step), 1))
            needed = shapes.add(shapes.multiply(shapes.subtract(windows, 1), step), reach)
            over = shapes.subtract(needed, shapes.add(size, pair[0]))
            self.counts.append(windows)
            self.filled.append((pair[0], shapes.greatest(over, 0)))

    def windows(self, x: Node, filling: int | float | bool) -> Node:
        """x with each pooled dimension as (window, element), padding filled."""
        outer = ((0, 0),) * (len(x.shape) - len(self.kernel))
        padded = pad(x, (*outer, *self.filled), filling)
        return windows_of(padded, self.counts, self.kernel, self.stride, self.dilation)

    def elements(self, x: Node) -> tuple[int, ...]:
        """The axes of `windows(x)` along which a window extends."""
        first = len(x.shape) - len(self.kernel)
        return tuple(first + 2 * number + 1 for number in range(len(self.kernel)))

    def divisor(self, include_padding: bool, dtype: DType) -> Node | float:
        """How many elements each window has: those of x, and of the padding if it is to count."""
        total: Node | float = 1.0
        outside = self.ceil_mode or (not include_padding and any(map(any, self.pairs)))
        for number, (kernel, (before, after)) in enumerate(zip(self.kernel, self.pairs)):
            inside: Node | float = float(kernel)
            if outside:
                start = alu(ops.MUL, iota(self.counts[number], int64), self.stride[number])
                low, high = (0, after) if include_padding else (before, 0)
                end = dim_value(shapes.add(self.sizes[number], before + high), int64)
                stop = alu(ops.MIN, alu(ops.ADD, start, kernel), end)
                inside = cast(alu(ops.SUB, stop, alu(ops.MAX, start, low)), dtype)
                trailing = (1,) * (len(self.kernel) - number - 1)
                inside = reshape(inside, (self.counts[number], *trailing))
            if isinstance(total, Node) or isinstance(inside, Node):
                total = alu(ops.MUL, total, inside)
            else:
                total = total * inside
        return total


def _places(sizes: Sequence[Dim]) -> Node:
    """The place of every element in its plane, counted in row-major order."""
    return reshape(iota(shapes.total(sizes), int64), tuple(sizes))


def _greatest(windows: Node, places: Node, axes: Sequence[int]) -> tuple[Node, Node]:
    """(the greatest of each window, its place); of equal ones the first, which gets the gradient.
    places: of the shape that the last axes of `windows` have."""
    values, found = reduce("argmax", (windows, expand(places, windows.shape)), tuple(axes))
    return values, found


# ---- pools of a size -----------------------------------------------------------------------------
def _max_pool(count: int) -> Callable[..., Any]:
    name = f"max_pool{count}d"

    def function(
        x: Node,
        kernel_size: Sizes = 2,
        stride: Sizes = None,
        padding: Padding = 0,
        dilation: Sizes = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Any:
        pool = _Pool(name, count, x, kernel_size, stride, padding, dilation, ceil_mode)
        windows, elements = pool.windows(x, x.dtype.min), pool.elements(x)
        if not return_indices:
            return reduce("max", windows, elements)
        return _greatest(windows, pool.windows(_places(pool.sizes), NOWHERE), elements)

    function.__doc__ = f"""The greatest element of each window over the last {count} dimension(s).

    kernel_size, stride (None: kernel_size), dilation: an int, or one per dimension. padding: the
    same, or pairs (before, after), of elements that are never the greatest. ceil_mode: a last
    window that stands over the end counts too. NaN is greater than any number. Equal greatest
    elements share the gradient evenly. return_indices: give (values, indices) instead: the place
    of each value in its plane, int64, as `max_unpool{count}d` takes it; then the first of equal
    elements gets the gradient.
    """
    return public(name, source="PyTorch")(function)


def _avg_pool(count: int) -> Callable[..., Node]:
    name = f"avg_pool{count}d"

    def function(
        x: Node,
        kernel_size: Sizes = 2,
        stride: Sizes = None,
        padding: Padding = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> Node:
        if divisor_override == 0:
            raise ValueError(f"{name}: divisor_override must not be 0")
        x = x if x.dtype.is_int else as_float(x)
        wide = cast(x, int64 if x.dtype.is_int else x.dtype.accumulator)
        pool = _Pool(name, count, x, kernel_size, stride, padding, 1, ceil_mode)
        total = reduce("add", pool.windows(wide, 0), pool.elements(x))
        divisor = divisor_override or pool.divisor(count_include_pad, wide.dtype)
        if not x.dtype.is_int:
            return cast(alu(ops.DIV, total, divisor), x.dtype)
        whole = divisor if isinstance(divisor, Node) else int(divisor)
        return cast(div(total, whole, rounding_mode="trunc"), x.dtype)

    function.__doc__ = f"""The mean of each window over the last {count} dimension(s).

    kernel_size, stride (None: kernel_size): an int, or one per dimension. padding: the same, or
    pairs (before, after), of zeros. ceil_mode: a last window that stands over the end counts too.
    count_include_pad: whether zeros of the padding count as elements. divisor_override: what sums
    are divided by instead. Means of integers are truncated.
    """
    return public(name, source="PyTorch")(function)


max_pool1d, max_pool2d, max_pool3d = (_max_pool(count) for count in (1, 2, 3))
avg_pool1d, avg_pool2d, avg_pool3d = (_avg_pool(count) for count in (1, 2, 3))


def _lp_pool(count: int) -> Callable[..., Node]:
    name = f"lp_pool{count}d"
    average = (avg_pool1d, avg_pool2d, avg_pool3d)[count - 1]

    def function(
        x: Node,
        norm_type: float,
        kernel_size: Sizes,
        stride: Sizes = None,
        ceil_mode: bool = False,
    ) -> Node:
        if not norm_type:
            raise ValueError(f"{name}: norm_type must not be 0")
        x = as_float(x)
        wide = cast(x, x.dtype.accumulator)
        mean = average(pow_(wide, norm_type), kernel_size, stride, 0, ceil_mode)
        elements = 1
        for size in per_axis(name, "kernel_size", kernel_size, count, 1):
            elements *= size
        total = mul(mul(sign(mean), relu(abs_(mean))), float(elements))
        return cast(pow_(total, 1.0 / norm_type), x.dtype)

    function.__doc__ = f"""The norm of each window over the last {count} dimension(s): the root of
    order `norm_type` of the sum of the powers x**norm_type.

    kernel_size, stride (None: kernel_size): an int, or one per dimension. ceil_mode: a last window
    that stands over the end counts too, its sum scaled up to that of a whole window.
    """
    return public(name, source="PyTorch")(function)


lp_pool1d, lp_pool2d, lp_pool3d = (_lp_pool(count) for count in (1, 2, 3))


# ---- pools of a number of windows ----------------------------------------------------------------
def _output_sizes(name: str, count: int, x: Node, output_size: Sizes) -> list[Dim]:
    """How many windows every pooled dimension gets; None keeps its size."""
    if len(x.shape) not in (count + 1, count + 2):
        raise ValueError(
            f"{name}: x has shape {shapes.text(x.shape)}; it must have {count} spatial dimensions "
            "behind (batch, channels) or (channels)"
        )
    given = output_size if isinstance(output_size, (tuple, list)) else (output_size,) * count
    if len(given) != count or any(n is not None and (type(n) is not int or n < 0) for n in given):
        raise ValueError(
            f"{name}: output_size={output_size!r} must be an int of at least 0 or None, or {count} "
            "of them"
        )
    return [size if n is None else n for n, size in zip(given, x.shape[-count:])]


def _shares(
    name: str, x: Node, sizes: Sequence[Dim], filling: Any
) -> tuple[Node, tuple[int, ...], list[Node | Dim]]:
    """Each of the last dimensions of x divided into so many windows, window i being from
    floor(i*size/n) up to, without, ceil((i + 1)*size/n), as a pair of axes (window, element).

    Returns them with `filling` where a window is shorter than the longest, the axes of their
    elements, and how many each window has, per dimension.
    """
    first = len(x.shape) - len(sizes)
    counts: list[Node | Dim] = []
    for number in reversed(range(len(sizes))):
        axis, windows = first + number, sizes[number]
        before, size, after = x.shape[:axis], x.shape[axis], x.shape[axis + 1 :]
        if windows == 1 or windows is size or windows == size:
            length = shapes.divide(size, windows) if windows == 1 else 1
            x = reshape(x, (*before, windows, length, *after))
            counts.insert(0, length)
            continue
        if not isinstance(size, int) or not isinstance(windows, int):
            raise ValueError(
                f"{name}: a dimension of size {shapes.dim_text(size)} cannot be divided into "
                f"{shapes.dim_text(windows)} windows: the sizes must be known, or the windows 1"
            )
        if windows and size % windows == 0:
            x = reshape(x, (*before, windows, size // windows, *after))
            counts.insert(0, size // windows)
            continue
        if not size:
            raise ValueError(f"{name}: a dimension of size 0 has no elements for {windows} windows")
        starts = [n * size // windows for n in range(windows)]
        stops = [-(-(n + 1) * size // windows) for n in range(windows)]
        longest = max([stop - start for start, stop in zip(starts, stops)], default=1)
        window = iota(windows, int64)
        start = alu(ops.IDIV, mul(window, size), windows)
        stop = alu(ops.IDIV, alu(ops.ADD, mul(window, size), size + windows - 1), windows)
        places = alu(ops.ADD, reshape(start, (windows, 1)), iota(longest, int64))
        inside = alu(ops.LT, places, reshape(stop, (windows, 1)))
        index = reshape(where(inside, places, 0), (windows * longest, *[1] * len(after)))
        taken = gather(x, expand(index, (*before, windows * longest, *after)), axis)
        inside = reshape(inside, (windows, longest, *[1] * len(after)))
        x = where(inside, reshape(taken, (*before, windows, longest, *after)), filling)
        counts.insert(0, alu(ops.SUB, stop, start))
    return x, tuple(first + 2 * number + 1 for number in range(len(sizes))), counts


def _adaptive_max(count: int) -> Callable[..., Any]:
    name = f"adaptive_max_pool{count}d"

    def function(x: Node, output_size: Sizes, return_indices: bool = False) -> Any:
        sizes = _output_sizes(name, count, x, output_size)
        windows, elements, _ = _shares(name, x, sizes, x.dtype.min)
        if not return_indices:
            return reduce("max", windows, elements)
        places, _, _ = _shares(name, _places(x.shape[-count:]), sizes, NOWHERE)
        return _greatest(windows, places, elements)

    function.__doc__ = f"""The greatest element of each of `output_size` windows that divide the
    last {count} dimension(s) as evenly as possible.

    x: (batch, channels, ..) or (channels, ..). output_size: an int, or one per dimension; None
    keeps a size. return_indices: give (values, indices), as of `max_pool{count}d`.
    """
    return public(name, source="PyTorch")(function)


def _adaptive_avg(count: int) -> Callable[..., Node]:
    name = f"adaptive_avg_pool{count}d"

    def function(x: Node, output_size: Sizes) -> Node:
        x = as_float(x)
        wide = cast(x, x.dtype.accumulator)
        sizes = _output_sizes(name, count, x, output_size)
        windows, elements, counts = _shares(name, wide, sizes, 0)
        total = reduce("add", windows, elements)
        divisor: Node | None = None
        for number, length in enumerate(counts):
            if isinstance(length, Node) and length.dtype is int64:
                shape = (sizes[number], *[1] * (count - number - 1))
                each = reshape(cast(length, wide.dtype), shape)
            else:
                each = dim_value(length, wide.dtype)
            divisor = each if divisor is None else mul(divisor, each)
        assert divisor is not None
        return cast(alu(ops.DIV, total, divisor), x.dtype)

    function.__doc__ = f"""The mean of each of `output_size` windows that divide the last {count}
    dimension(s) as evenly as possible.

    x: (batch, channels, ..) or (channels, ..). output_size: an int, or one per dimension; None
    keeps a size.
    """
    return public(name, source="PyTorch")(function)


adaptive_max_pool1d, adaptive_max_pool2d, adaptive_max_pool3d = (
    _adaptive_max(count) for count in (1, 2, 3)
)
adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d = (
    _adaptive_avg(count) for count in (1, 2, 3)
)


# ---- back to where the greatest stood ------------------------------------------------------------
def _unpooled_sizes(
    name: str,
    x: Node,
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    output_size: Sizes,
) -> list[int]:
    """The sizes that a max pool with these windows was given: the least that fit, or those asked
    for, which may be up to one stride off."""
    count = len(kernel)
    usual = [
        shapes.add(shapes.multiply(shapes.subtract(size, 1), step), each - 2 * before)
        for size, each, step, before in zip(x.shape[-count:], kernel, stride, padding)
    ]
    if output_size is None:
        return usual
    wanted = list(output_size)
    wanted = wanted[-count:] if len(wanted) == len(x.shape) else wanted
    if len(wanted) != count or any(
        abs(size - least) >= step for size, least, step in zip(wanted, usual, stride)
    ):
        raise ValueError(
            f"{name}: output_size={output_size!r} is not within one stride of "
            f"{shapes.text(usual)}, to which these windows lead back"
        )
    return wanted


def _max_unpool(count: int) -> Callable[..., Node]:
    name = f"max_unpool{count}d"

    def function(
        x: Node,
        indices: Node,
        kernel_size: Sizes,
        stride: Sizes = None,
        padding: Sizes = 0,
        output_size: Sizes = None,
    ) -> Node:
        if len(x.shape) not in (count + 1, count + 2):
            raise ValueError(
                f"{name}: x has shape {shapes.text(x.shape)}; it must have {count} spatial "
                "dimensions behind (batch, channels) or (channels)"
            )
        if not indices.dtype.is_int or not shapes.same_shape(indices.shape, x.shape):
            raise ValueError(
                f"{name}: the indices are {indices.dtype} of shape {shapes.text(indices.shape)}; "
                f"they must be integers of the shape of x, {shapes.text(x.shape)}"
            )
        kernel = per_axis(name, "kernel_size", kernel_size, count, 1)
        steps = kernel if stride is None else per_axis(name, "stride", stride, count, 1)
        before = per_axis(name, "padding", padding, count, 0)
        sizes = _unpooled_sizes(name, x, kernel, steps, before, output_size)
        rows = x.shape[:-count]
        flat = (*rows, shapes.total(x.shape[-count:]))
        base = const(0, x.dtype, (*rows, shapes.total(sizes)))
        placed = scatter(base, reshape(indices, flat), reshape(x, flat), len(rows))
        return reshape(placed, (*rows, *sizes))

    function.__doc__ = f"""The values that `max_pool{count}d` with return_indices=True gave, back at
    their places; 0 everywhere else.

    indices: int64, of the shape of x; where one stands twice the last value stays. kernel_size,
    stride, padding: those of the pool. output_size: the spatial sizes (or the whole shape) of what
    was pooled, where they do not follow.
    """
    return public(name, source="PyTorch")(function)


max_unpool1d, max_unpool2d, max_unpool3d = (_max_unpool(count) for count in (1, 2, 3))
