"""Convolutions and pools, of any number of spatial dimensions.

The windows of a padded input are a movement (WINDOW), not an array: a convolution is one sum, over
channels and taps, of products whose indices are all affine, and so are its derivatives.
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
    dim_value,
    expand,
    iota,
    operands,
    pad,
    reduce,
    reshape,
    shrink,
    unwindow,
    window_pair,
)
from treadle.graph.public import public
from treadle.graph.shapes import Dim
from treadle.ir import ops
from treadle.ir.dtype import DType, bool_, int64
from treadle.ir.node import Node

Sizes = Any  # an int, or one int per spatial dimension
Padding = Any  # Sizes, "same", "valid", or one pair (before, after) per spatial dimension
Pairs = tuple[tuple[int, int], ...]


# ---- arguments -----------------------------------------------------------------------------------
def _per_axis(name: str, what: str, value: Sizes, count: int, least: int) -> tuple[int, ...]:
    """An argument given once for all spatial dimensions, or for each of them."""
    given = tuple(value) if isinstance(value, (tuple, list)) else (value,) * count
    if len(given) == 1:
        given *= count
    if len(given) != count or any(type(n) is not int or n < least for n in given):
        raise ValueError(
            f"{name}: {what}={value!r} must be an int of at least {least}, or {count} of them"
        )
    return given


def _pairs(name: str, padding: Padding, count: int) -> Pairs:
    """Padding as (before, after) for each spatial dimension."""
    each = list(padding) if isinstance(padding, (tuple, list)) else [padding]
    if not any(isinstance(pair, (tuple, list)) for pair in each):
        return tuple((n, n) for n in _per_axis(name, "padding", padding, count, 0))
    if len(each) != count or not all(isinstance(pair, (tuple, list)) for pair in each):
        raise ValueError(f"{name}: padding={padding!r} must have one pair for each of {count} axes")
    if not all(len(pair) == 2 and all(type(n) is int and n >= 0 for n in pair) for pair in each):
        raise ValueError(f"{name}: padding={padding!r} must hold pairs of ints of at least 0")
    return tuple((before, after) for before, after in each)


def _reach(kernel: Sequence[int], dilation: Sequence[int]) -> tuple[int, ...]:
    """How many elements a window spans on each axis."""
    return tuple(step * (size - 1) + 1 for size, step in zip(kernel, dilation))


def _count(name: str, size: Dim, pair: tuple[Dim, Dim], reach: int, stride: int) -> Dim:
    """How many windows fit an axis. ValueError if none does."""
    padded = shapes.add(size, shapes.add(*pair))
    if shapes.at_most(reach, padded) is not True:
        raise ValueError(
            f"{name}: a window that spans {reach} elements does not fit a dimension of "
            f"{shapes.dim_text(padded)} (padding included)"
        )
    return shapes.add(shapes.divide(shapes.subtract(padded, reach), stride), 1)


def _windows(
    x: Node,
    counts: Sequence[Dim],
    kernel: Sequence[int],
    stride: Sequence[int],
    dilation: Sequence[int],
) -> Node:
    """Every one of the last axes of x as a pair of axes (window, element of the window)."""
    first = len(x.shape) - len(kernel)
    for number in reversed(range(len(kernel))):
        axis = first + number
        before, size, after = x.shape[:axis], x.shape[axis], x.shape[axis + 1 :]
        repeated = reshape(x, (*before, size, 1, *after))
        repeated = expand(repeated, (*before, size, kernel[number], *after))
        x = window_pair(repeated, axis, counts[number], stride[number], dilation[number])
    return x


def _interleave(first: Sequence[Dim], second: Sequence[Dim]) -> tuple[Dim, ...]:
    return tuple(size for pair in zip(first, second) for size in pair)


def _check_channels(
    name: str, x: Node, weight: Node, bias: Node | None, groups: int, transposed: bool
) -> None:
    """Errors for a weight or a bias that does not belong to x."""
    count = len(weight.shape) - 2
    if len(x.shape) != count + 2:
        raise ValueError(
            f"{name}: x has shape {shapes.text(x.shape)}; it must have {count} spatial dimensions "
            "behind (batch, channels) or (channels)"
        )
    if type(groups) is not int or groups < 1:
        raise ValueError(f"{name}: groups={groups!r} must be an int of at least 1")
    takes = weight.shape[0] if transposed else shapes.multiply(weight.shape[1], groups)
    makes = shapes.multiply(weight.shape[1], groups) if transposed else weight.shape[0]
    if not shapes.same(x.shape[1], takes):
        raise ValueError(
            f"{name}: a weight of shape {shapes.text(weight.shape)} with groups={groups} takes "
            f"{shapes.dim_text(takes)} channels, but x of shape {shapes.text(x.shape)} has "
            f"{shapes.dim_text(x.shape[1])}"
        )
    split = makes if not transposed else takes
    if not shapes.same(shapes.multiply(shapes.divide(split, groups), groups), split):
        raise ValueError(
            f"{name}: {shapes.dim_text(split)} channels do not divide into groups={groups}"
        )
    if bias is not None and (len(bias.shape) != 1 or not shapes.same(bias.shape[0], makes)):
        raise ValueError(
            f"{name}: the bias has shape {shapes.text(bias.shape)}; a weight of shape "
            f"{shapes.text(weight.shape)} needs ({shapes.dim_text(makes)},)"
        )


def _prepared(
    name: str, count: int, x: Node, weight: Node, bias: Node | None
) -> tuple[DType, bool, Node, Node, Node | None]:
    """(dtype of the result, whether x had a batch, x with a batch, weight, bias), the tensors in
    the type that sums are carried in."""
    x, weight = operands(x, weight)
    if x.dtype is bool_:
        raise TypeError(f"{name} is for numbers, not for bool")
    if len(weight.shape) != count + 2:
        raise ValueError(
            f"{name}: the weight has shape {shapes.text(weight.shape)}; it must have {count + 2} "
            "dimensions"
        )
    batched = len(x.shape) != count + 1
    if not batched:
        x = reshape(x, (1, *x.shape))
    wide = x.dtype.accumulator
    return (
        x.dtype,
        batched,
        cast(x, wide),
        cast(weight, wide),
        None if bias is None else cast(bias, wide),
    )


def _finished(x: Node, bias: Node | None, dtype: DType, batched: bool) -> Node:
    """The bias added, the batch taken away if there was none, rounded."""
    if bias is not None:
        x = alu(ops.ADD, x, reshape(bias, (bias.shape[0], *[1] * (len(x.shape) - 2))))
    return cast(x if batched else reshape(x, x.shape[1:]), dtype)


# ---- convolution ---------------------------------------------------------------------------------
def convolve(
    name: str,
    count: int,
    x: Node,
    weight: Node,
    bias: Node | None,
    stride: Sizes,
    padding: Padding,
    dilation: Sizes,
    groups: int,
) -> Node:
    """The convolution with `count` spatial dimensions that `conv1d` to `conv3d` are."""
    dtype, batched, x, weight, bias = _prepared(name, count, x, weight, bias)
    _check_channels(name, x, weight, bias, groups, transposed=False)
    kernel = weight.shape[2:]
    strides = _per_axis(name, "stride", stride, count, 1)
    dilations = _per_axis(name, "dilation", dilation, count, 1)
    reach = _reach(kernel, dilations)
    if padding == "same":
        if any(step != 1 for step in strides):
            raise ValueError(f"{name}: padding='same' is for stride=1, not stride={stride!r}")
        pairs: Pairs = tuple(((span - 1) // 2, span // 2) for span in reach)
    else:
        pairs = _pairs(name, 0 if padding == "valid" else padding, count)
    counts = [_count(name, *axis) for axis in zip(x.shape[2:], pairs, reach, strides)]
    padded = pad(x, ((0, 0), (0, 0), *pairs))
    windows = _windows(padded, counts, kernel, strides, dilations)
    # (batch, group, out, in, window, tap, ..): summed over `in` and the taps
    batch, outputs, inputs = x.shape[0], weight.shape[0], weight.shape[1]
    left = reshape(windows, (batch, groups, 1, inputs, *windows.shape[2:]))
    taps = _interleave((1,) * count, kernel)
    right = reshape(weight, (1, groups, shapes.divide(outputs, groups), inputs, *taps))
    summed = (3, *range(5, 5 + 2 * count, 2))
    total = reduce("add", alu(ops.MUL, left, right), summed)
    return _finished(reshape(total, (batch, outputs, *counts)), bias, dtype, batched)


_CONVOLUTION = """The convolution (cross-correlation) of x with a weight, over {count} dimension(s).

    x: (batch, in, ..) or (in, ..). weight: (out, in / groups, ..). bias: (out,).
    out[n, o, p] = bias[o] + sum over i, k of weight[o, i, k] * x[n, i, p*stride + k*dilation - pad]
    stride, dilation: an int, or one per dimension. padding: an int, one per dimension, one pair
    (before, after) per dimension, "valid" (none), or "same" (as many windows as elements; for
    stride 1). groups: into how many independent parts the channels are divided.
    """


def _convolution(count: int) -> Callable[..., Node]:
    name = f"conv{count}d"

    def function(
        x: Node,
        weight: Node,
        bias: Node | None = None,
        stride: Sizes = 1,
        padding: Padding = 0,
        dilation: Sizes = 1,
        groups: int = 1,
    ) -> Node:
        return convolve(name, count, x, weight, bias, stride, padding, dilation, groups)

    function.__doc__ = _CONVOLUTION.format(count=count)
    return public(name, source="PyTorch")(function)


conv1d, conv2d, conv3d = (_convolution(count) for count in (1, 2, 3))


def convolve_transposed(
    name: str,
    count: int,
    x: Node,
    weight: Node,
    bias: Node | None,
    stride: Sizes,
    padding: Padding,
    output_padding: Sizes,
    groups: int,
    dilation: Sizes,
) -> Node:
    """The transposed convolution that `conv_transpose1d` to `conv_transpose3d` are."""
    dtype, batched, x, weight, bias = _prepared(name, count, x, weight, bias)
    _check_channels(name, x, weight, bias, groups, transposed=True)
    kernel = weight.shape[2:]
    strides = _per_axis(name, "stride", stride, count, 1)
    dilations = _per_axis(name, "dilation", dilation, count, 1)
    extras = _per_axis(name, "output_padding", output_padding, count, 0)
    pairs = _pairs(name, padding, count)
    batch, inputs, outputs = x.shape[0], shapes.divide(x.shape[1], groups), weight.shape[1]
    # (batch, group, in, out, place, tap, ..): summed over `in` and the taps
    left = reshape(x, (batch, groups, inputs, 1, *_interleave(x.shape[2:], (1,) * count)))
    regions: list[tuple[Dim, Dim]] = [(0, size) for size in left.shape[:4]]
    for number, (before, after) in enumerate(pairs):
        axis = 4 + 2 * number
        if not extras[number] < max(strides[number], dilations[number]):
            raise ValueError(
                f"{name}: output_padding={output_padding!r} must be smaller than stride or dilation"
            )
        span = _reach(kernel, dilations)[number]
        places = shapes.multiply(shapes.subtract(left.shape[axis], 1), strides[number])
        full = shapes.add(places, span + extras[number])
        repeated = expand(left, (*left.shape[: axis + 1], kernel[number], *left.shape[axis + 2 :]))
        left = unwindow(repeated, axis, full, strides[number], dilations[number])
        stop = shapes.subtract(full, after)
        if shapes.at_most(before, stop) is not True:
            raise ValueError(
                f"{name}: padding={padding!r} removes more than the {shapes.dim_text(full)} "
                f"elements of spatial dimension {number}"
            )
        regions += [(before, stop), (0, kernel[number])]
    left = shrink(left, regions)
    taps = _interleave((1,) * count, kernel)
    right = reshape(weight, (1, groups, inputs, outputs, *taps))
    summed = (2, *range(5, 5 + 2 * count, 2))
    total = reduce("add", alu(ops.MUL, left, right), summed)
    shape = (batch, shapes.multiply(outputs, groups), *total.shape[3:])
    return _finished(reshape(total, shape), bias, dtype, batched)


_TRANSPOSED = """The adjoint of a convolution with the same arguments, over {count} dimension(s).

    x: (batch, in, ..) or (in, ..). weight: (in, out / groups, ..). bias: (out,). Sizes become
    (size - 1)*stride - 2*padding + dilation*(kernel - 1) + output_padding + 1.
    padding: an int, one per dimension, or one pair per dimension, of elements that are taken away.
    """


def _transposed(count: int) -> Callable[..., Node]:
    name = f"conv_transpose{count}d"

    def function(
        x: Node,
        weight: Node,
        bias: Node | None = None,
        stride: Sizes = 1,
        padding: Padding = 0,
        output_padding: Sizes = 0,
        groups: int = 1,
        dilation: Sizes = 1,
    ) -> Node:
        return convolve_transposed(
            name, count, x, weight, bias, stride, padding, output_padding, groups, dilation
        )

    function.__doc__ = _TRANSPOSED.format(count=count)
    return public(name, source="PyTorch")(function)


conv_transpose1d, conv_transpose2d, conv_transpose3d = (_transposed(count) for count in (1, 2, 3))


# ---- pools ---------------------------------------------------------------------------------------
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
        self.kernel = _per_axis(name, "kernel_size", kernel_size, count, 1)
        self.stride = self.kernel if stride is None else _per_axis(name, "stride", stride, count, 1)
        self.dilation = _per_axis(name, "dilation", dilation, count, 1)
        self.pairs = _pairs(name, padding, count)
        self.sizes = x.shape[len(x.shape) - count :]
        self.counts: list[Dim] = []
        self.filled: list[tuple[int, Dim]] = []
        self.ceil_mode = ceil_mode
        reaches = _reach(self.kernel, self.dilation)
        for size, pair, reach, step in zip(self.sizes, self.pairs, reaches, self.stride):
            if max(pair) > reach // 2:
                raise ValueError(
                    f"{name}: padding={padding!r} is more than half of a window that spans {reach}"
                )
            if not ceil_mode:
                self.counts.append(_count(name, size, pair, reach, step))
                self.filled.append(pair)
                continue
            # the last window must begin inside x or the padding before it
            starts = shapes.subtract(shapes.add(size, pair[0]), 1)
            rounded_up = _count(name, size, (pair[0], pair[1] + step - 1), reach, step)
            windows = shapes.least(rounded_up, shapes.add(shapes.divide(starts, step), 1))
            needed = shapes.add(shapes.multiply(shapes.subtract(windows, 1), step), reach)
            over = shapes.subtract(needed, shapes.add(size, pair[0]))
            self.counts.append(windows)
            self.filled.append((pair[0], shapes.greatest(over, 0)))

    def windows(self, x: Node, filling: int | float | bool) -> Node:
        """x with each pooled dimension as (window, element), padding filled."""
        outer = ((0, 0),) * (len(x.shape) - len(self.kernel))
        padded = pad(x, (*outer, *self.filled), filling)
        return _windows(padded, self.counts, self.kernel, self.stride, self.dilation)

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


def _max_pool(count: int) -> Callable[..., Node]:
    name = f"max_pool{count}d"

    def function(
        x: Node,
        kernel_size: Sizes = 2,
        stride: Sizes = None,
        padding: Padding = 0,
        dilation: Sizes = 1,
        ceil_mode: bool = False,
    ) -> Node:
        pool = _Pool(name, count, x, kernel_size, stride, padding, dilation, ceil_mode)
        return reduce("max", pool.windows(x, x.dtype.min), pool.elements(x))

    function.__doc__ = f"""The greatest element of each window over the last {count} dimension(s).

    kernel_size, stride (None: kernel_size), dilation: an int, or one per dimension. padding: the
    same, or pairs (before, after), of elements that are never the greatest. ceil_mode: a last
    window that stands over the end counts too. NaN is greater than any number. Equal greatest
    elements share the gradient evenly.
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
        x = as_float(x)
        wide = cast(x, x.dtype.accumulator)
        pool = _Pool(name, count, x, kernel_size, stride, padding, 1, ceil_mode)
        total = reduce("add", pool.windows(wide, 0), pool.elements(x))
        divisor = divisor_override or pool.divisor(count_include_pad, wide.dtype)
        return cast(alu(ops.DIV, total, divisor), x.dtype)

    function.__doc__ = f"""The mean of each window over the last {count} dimension(s).

    kernel_size, stride (None: kernel_size): an int, or one per dimension. padding: the same, or
    pairs (before, after), of zeros. ceil_mode: a last window that stands over the end counts too.
    count_include_pad: whether zeros of the padding count as elements. divisor_override: what sums
    are divided by instead.
    """
    return public(name, source="PyTorch")(function)


max_pool1d, max_pool2d, max_pool3d = (_max_pool(count) for count in (1, 2, 3))
avg_pool1d, avg_pool2d, avg_pool3d = (_avg_pool(count) for count in (1, 2, 3))
