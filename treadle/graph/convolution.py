"""Convolutions, of any number of spatial dimensions, and their adjoints.

The windows of a padded input are a movement (WINDOW), not an array: a convolution is one sum, over
channels and taps, of products whose indices are all affine, and so are its derivatives.
Half and bfloat16 are computed in float32 and rounded once, at the result.
"""

from __future__ import annotations

from collections.abc import Callable

from treadle.graph import shapes
from treadle.graph.build import (
    alu,
    cast,
    expand,
    operands,
    pad,
    reduce,
    reshape,
    shrink,
    unwindow,
)
from treadle.graph.public import public
from treadle.graph.shapes import Dim
from treadle.graph.windows import (
    Padding,
    Sizes,
    convolution_padding,
    count_windows,
    interleave,
    padding_pairs,
    per_axis,
    reach_of,
    windows_of,
)
from treadle.ir import ops
from treadle.ir.dtype import DType, bool_
from treadle.ir.node import Node


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
        raise TypeError(f"{name} is for numbers, not for bool: cast the tensors first")
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
    strides = per_axis(name, "stride", stride, count, 1)
    dilations = per_axis(name, "dilation", dilation, count, 1)
    reach = reach_of(kernel, dilations)
    pairs = convolution_padding(name, padding, count, reach, stride)
    counts = [count_windows(name, *axis) for axis in zip(x.shape[2:], pairs, reach, strides)]
    padded = pad(x, ((0, 0), (0, 0), *pairs))
    windows = windows_of(padded, counts, kernel, strides, dilations)
    # (batch, group, out, in, window, tap, ..): summed over `in` and the taps
    batch, outputs, inputs = x.shape[0], weight.shape[0], weight.shape[1]
    left = reshape(windows, (batch, groups, 1, inputs, *windows.shape[2:]))
    taps = interleave((1,) * count, kernel)
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
    strides = per_axis(name, "stride", stride, count, 1)
    dilations = per_axis(name, "dilation", dilation, count, 1)
    extras = per_axis(name, "output_padding", output_padding, count, 0)
    pairs = padding_pairs(name, padding, count)
    batch, inputs, outputs = x.shape[0], shapes.divide(x.shape[1], groups), weight.shape[1]
    # (batch, group, in, out, place, tap, ..): summed over `in` and the taps
    left = reshape(x, (batch, groups, inputs, 1, *interleave(x.shape[2:], (1,) * count)))
    regions: list[tuple[Dim, Dim]] = [(0, size) for size in left.shape[:4]]
    for number, (before, after) in enumerate(pairs):
        axis = 4 + 2 * number
        if not extras[number] < max(strides[number], dilations[number]):
            raise ValueError(
                f"{name}: output_padding={output_padding!r} must be smaller than stride or dilation"
            )
        span = reach_of(kernel, dilations)[number]
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
    taps = interleave((1,) * count, kernel)
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
