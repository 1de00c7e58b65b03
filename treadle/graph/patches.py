"""Patches: the windows of an image as columns, and columns added up to an image."""

from __future__ import annotations

from typing import Any

from treadle.graph import shapes
from treadle.graph.build import cast, pad, permute, reduce, reshape, shrink, unwindow
from treadle.graph.public import public
from treadle.graph.windows import Sizes, count_windows, per_axis, reach_of, windows_of
from treadle.ir.node import Node


@public("im2col", source="PyTorch")
def im2col(
    x: Node, kernel_size: Sizes, dilation: Sizes = 1, padding: Sizes = 0, stride: Sizes = 1
) -> Node:
    """The windows of x (batch, channels, height, width) as columns: (batch, channels * elements of
    a window, windows). In `nn.functional` it is `unfold`.

    kernel_size, dilation, padding, stride: as of `conv2d`. x may lack the batch.

    >>> Tensor([[[[1.0, 2.0], [3.0, 4.0]]]]).im2col((1, 2)).tolist()
    [[[1.0, 3.0], [2.0, 4.0]]]
    """
    if len(x.shape) not in (3, 4):
        raise ValueError(
            f"unfold: x has shape {shapes.text(x.shape)}; it must be (batch, channels, height, "
            "width) or (channels, height, width)"
        )
    if len(x.shape) == 3:
        column = im2col(reshape(x, (1, *x.shape)), kernel_size, dilation, padding, stride)
        return reshape(column, column.shape[1:])
    kernel, steps, strides, pairs = _geometry("unfold", kernel_size, dilation, padding, stride)
    sizes = zip(x.shape[2:], pairs, reach_of(kernel, steps), strides)
    counts = [count_windows("unfold", *axis) for axis in sizes]
    windows = windows_of(pad(x, ((0, 0), (0, 0), *pairs)), counts, kernel, strides, steps)
    columns = permute(windows, (0, 1, 3, 5, 2, 4))
    rows = shapes.multiply(x.shape[1], kernel[0] * kernel[1])
    return reshape(columns, (x.shape[0], rows, shapes.total(counts)))


@public("col2im", source="PyTorch")
def col2im(
    x: Node,
    output_size: Sizes,
    kernel_size: Sizes,
    dilation: Sizes = 1,
    padding: Sizes = 0,
    stride: Sizes = 1,
) -> Node:
    """The adjoint of `im2col`: columns (batch, channels * elements of a window, windows) added up
    where they came from, (batch, channels, height, width). In `nn.functional` it is `fold`.

    output_size: (height, width). The other arguments: those of `im2col`. x may lack the batch.

    >>> Tensor([[[1.0, 3.0], [2.0, 4.0]]]).col2im((2, 2), (1, 2)).tolist()
    [[[[1.0, 2.0], [3.0, 4.0]]]]
    """
    if len(x.shape) not in (2, 3):
        raise ValueError(
            f"fold: x has shape {shapes.text(x.shape)}; it must be (batch, channels * elements, "
            "windows) or (channels * elements, windows)"
        )
    if len(x.shape) == 2:
        image = col2im(
            reshape(x, (1, *x.shape)), output_size, kernel_size, dilation, padding, stride
        )
        return reshape(image, image.shape[1:])
    kernel, steps, strides, pairs = _geometry("fold", kernel_size, dilation, padding, stride)
    sizes = per_axis("fold", "output_size", output_size, 2, 1)
    reaches = reach_of(kernel, steps)
    counts = [count_windows("fold", *axis) for axis in zip(sizes, pairs, reaches, strides)]
    channels = shapes.divide(x.shape[1], kernel[0] * kernel[1])
    expected = (x.shape[0], shapes.multiply(channels, kernel[0] * kernel[1]), shapes.total(counts))
    if not shapes.same_shape(x.shape, expected):
        raise ValueError(
            f"fold: x of shape {shapes.text(x.shape)} does not fit: windows of {kernel} in an "
            f"image of {sizes} make {shapes.dim_text(expected[2])} columns, of a multiple of "
            f"{kernel[0] * kernel[1]} elements"
        )
    split = reshape(x, (x.shape[0], channels, *kernel, *counts))
    image = permute(split, (0, 1, 4, 2, 5, 3))
    image = cast(image, x.dtype.accumulator)
    for axis, number in ((2, 0), (3, 1)):
        full = sizes[number] + sum(pairs[number])
        placed = unwindow(image, axis, full, strides[number], steps[number])
        image = reduce("add", placed, axis + 1)
    region = [(before, before + size) for size, (before, _) in zip(sizes, pairs)]
    image = shrink(image, [(0, image.shape[0]), (0, image.shape[1]), *region])
    return cast(image, x.dtype)


def _geometry(
    name: str, kernel_size: Any, dilation: Any, padding: Any, stride: Any
) -> tuple[Any, Any, Any, list[tuple[int, int]]]:
    """(kernel, dilation, stride, padding as pairs), each for height and width."""
    kernel = per_axis(name, "kernel_size", kernel_size, 2, 1)
    steps = per_axis(name, "dilation", dilation, 2, 1)
    strides = per_axis(name, "stride", stride, 2, 1)
    pairs = [(n, n) for n in per_axis(name, "padding", padding, 2, 0)]
    return kernel, steps, strides, pairs
