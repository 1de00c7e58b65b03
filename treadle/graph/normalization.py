"""Normalisation: numbers with mean 0 and variance 1, or of a size, over some of the dimensions.

Half and bfloat16 are computed in float32 and rounded once, at the result. What is divided by a
number per row is multiplied by its reciprocal: one division a row, and so in the derivative.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from treadle.graph import shapes
from treadle.graph.build import as_float, cast, dim_value, normalize_axes, pad, reduce, reshape
from treadle.graph.elementwise import add, div, maximum, mul, pow_, reciprocal, rsqrt, square, sub
from treadle.graph.movement import transpose
from treadle.graph.public import public
from treadle.graph.reduction import norm
from treadle.graph.windows import windows_of
from treadle.ir.node import Node, Shape


def check_parameters(name: str, expected: Shape, **tensors: Node | None) -> None:
    """ValueError for a parameter that does not have the shape that it must have."""
    for what, tensor in tensors.items():
        if tensor is not None and not shapes.same_shape(tensor.shape, expected):
            raise ValueError(
                f"{name}: {what} has shape {shapes.text(tensor.shape)}; it must have "
                f"{shapes.text(expected)}"
            )


def _moments(x: Node, axes: Sequence[int]) -> tuple[Node, Node]:
    """(x minus its mean, the mean square of that), the latter with axes of size 1: two passes,
    exact for a large mean."""
    count = dim_value(shapes.total([x.shape[axis] for axis in axes]), x.dtype)
    away = sub(x, div(reduce("add", x, axes, True), count))
    return away, div(reduce("add", square(away), axes, True), count)


def _scaled(x: Node, weight: Node | None, bias: Node | None, shape: Shape) -> Node:
    """x * weight + bias, both reshaped to `shape`, in the dtype of x."""
    if weight is not None:
        x = mul(x, reshape(cast(weight, x.dtype), shape))
    if bias is not None:
        x = add(x, reshape(cast(bias, x.dtype), shape))
    return x


def _last_axes(name: str, x: Node, normalized_shape: Any) -> tuple[tuple[int, ...], Shape]:
    """The axes that a `normalized_shape` names: the last ones of x, whose sizes it repeats."""
    shape = shapes.as_shape(normalized_shape)
    first = len(x.shape) - len(shape)
    if not shape or first < 0 or not shapes.same_shape(x.shape[first:], shape):
        raise ValueError(
            f"{name}: normalized_shape {shapes.text(shape)} is not how x of shape "
            f"{shapes.text(x.shape)} ends"
        )
    return tuple(range(first, len(x.shape))), shape


@public("layer_norm", source="PyTorch")
def layer_norm(
    x: Node,
    normalized_shape: Any,
    weight: Node | None = None,
    bias: Node | None = None,
    eps: float = 1e-5,
) -> Node:
    """x with mean 0 and variance 1 over its last dimensions, times weight, plus bias.

    normalized_shape: the sizes of those dimensions (an int for one), the shape of weight and bias.
    eps is added to the variance. Source: Ba, Kiros and Hinton, "Layer normalization", 2016.

    >>> Tensor([[1.0, 3.0]]).layer_norm(2, eps=0.0)
    Tensor([[-1.,  1.]])
    """
    x = as_float(x)
    axes, shape = _last_axes("layer_norm", x, normalized_shape)
    check_parameters("layer_norm", shape, weight=weight, bias=bias)
    away, variance = _moments(cast(x, x.dtype.accumulator), axes)
    normal = mul(away, rsqrt(add(variance, eps)))
    return cast(_scaled(normal, weight, bias, shape), x.dtype)


@public("rms_norm", source="PyTorch")
def rms_norm(
    x: Node, normalized_shape: Any, weight: Node | None = None, eps: float | None = None
) -> Node:
    """x divided by its root mean square over its last dimensions, times weight.

    normalized_shape: the sizes of those dimensions (an int for one); weight has this shape. eps is
    added to the mean square; None is the distance from 1 to the next number of the dtype of x.
    Source: Zhang and Sennrich, "Root mean square layer normalization", 2019.

    >>> Tensor([[3.0, 3.0]]).rms_norm(2, eps=0.0)
    Tensor([[1., 1.]])
    """
    x = as_float(x)
    axes, shape = _last_axes("rms_norm", x, normalized_shape)
    check_parameters("rms_norm", shape, weight=weight)
    wide = cast(x, x.dtype.accumulator)
    count = dim_value(shapes.total(shape), wide.dtype)
    power = div(reduce("add", square(wide), axes, True), count)
    scale = rsqrt(add(power, x.dtype.eps if eps is None else eps))
    return cast(_scaled(mul(wide, scale), weight, None, shape), x.dtype)


def _channel_axis(name: str, x: Node) -> None:
    if len(x.shape) < 2:
        raise ValueError(
            f"{name}: x has shape {shapes.text(x.shape)}; it must be (batch, channels, ..)"
        )


@public("batch_norm", source="PyTorch")
def batch_norm(
    x: Node,
    mean: Node,
    var: Node,
    weight: Node | None = None,
    bias: Node | None = None,
    eps: float = 1e-5,
) -> Node:
    """(x - mean) / sqrt(var + eps) * weight + bias, with one number each per channel.

    x: (batch, channels, ..). mean, var, weight, bias: (channels,). In training, mean and var are
    `batch_statistics(x)`; else what was collected from them.
    Source: Ioffe and Szegedy, "Batch normalization", 2015.

    >>> Tensor([[2.0], [4.0]]).batch_norm(Tensor([3.0]), Tensor([1.0]), eps=0.0)
    Tensor([[-1.],
            [ 1.]])
    """
    x = as_float(x)
    _channel_axis("batch_norm", x)
    check_parameters("batch_norm", (x.shape[1],), mean=mean, var=var, weight=weight, bias=bias)
    wide = x.dtype.accumulator
    column = (x.shape[1], *[1] * (len(x.shape) - 2))
    away = sub(cast(x, wide), reshape(cast(mean, wide), column))
    normal = mul(away, reshape(rsqrt(add(cast(var, wide), eps)), column))
    return cast(_scaled(normal, weight, bias, column), x.dtype)


@public("batch_statistics", source="treadle")
def batch_statistics(x: Node) -> tuple[Node, Node]:
    """(mean, variance) of each channel of x (batch, channels, ..): sums divided by the number of
    elements, not one less. Of half and bfloat16 they are float32.

    >>> Tensor([[2.0], [4.0]]).batch_statistics()
    (Tensor([3.]), Tensor([1.]))
    """
    x = as_float(x)
    _channel_axis("batch_statistics", x)
    wide = cast(x, x.dtype.accumulator)
    axes = (0, *range(2, len(x.shape)))
    count = dim_value(shapes.total([x.shape[axis] for axis in axes]), wide.dtype)
    mean = div(reduce("add", wide, axes), count)
    _, variance = _moments(wide, axes)
    return mean, reshape(variance, mean.shape)


@public("group_norm", source="PyTorch", aliases=("groupnorm",))
def group_norm(
    x: Node,
    num_groups: int,
    weight: Node | None = None,
    bias: Node | None = None,
    eps: float = 1e-5,
) -> Node:
    """x with mean 0 and variance 1 within each of `num_groups` parts of its channels, for every
    sample, times weight, plus bias.

    x: (batch, channels, ..). weight, bias: (channels,).
    Source: Wu and He, "Group normalization", 2018.

    >>> Tensor([[1.0, 3.0, 5.0, 5.0]]).group_norm(2, eps=1e-12)
    Tensor([[-1.,  1.,  0.,  0.]])
    """
    x = as_float(x)
    _channel_axis("group_norm", x)
    channels = x.shape[1]
    whole = type(num_groups) is int and num_groups >= 1
    each = shapes.divide(channels, num_groups) if whole else 0
    if not whole or not shapes.same(shapes.multiply(each, num_groups), channels):
        raise ValueError(
            f"group_norm: {shapes.dim_text(channels)} channels do not divide into "
            f"num_groups={num_groups!r}"
        )
    check_parameters("group_norm", (channels,), weight=weight, bias=bias)
    grouped = (x.shape[0], num_groups, each, *x.shape[2:])
    wide = reshape(cast(x, x.dtype.accumulator), grouped)
    away, variance = _moments(wide, tuple(range(2, len(grouped))))
    normal = reshape(mul(away, rsqrt(add(variance, eps))), x.shape)
    column = (channels, *[1] * (len(x.shape) - 2))
    return cast(_scaled(normal, weight, bias, column), x.dtype)


@public("instance_norm", source="PyTorch", aliases=("instancenorm",))
def instance_norm(
    x: Node, weight: Node | None = None, bias: Node | None = None, eps: float = 1e-5
) -> Node:
    """x with mean 0 and variance 1 within each channel of each sample, times weight, plus bias.

    x: (batch, channels, ..). weight, bias: (channels,). eps is added to the variance.
    Source: Ulyanov, Vedaldi and Lempitsky, "Instance normalization", 2016.

    >>> Tensor([[[1.0, 3.0]]]).instance_norm(eps=0.0).tolist()
    [[[-1.0, 1.0]]]
    """
    x = as_float(x)
    _channel_axis("instance_norm", x)
    check_parameters("instance_norm", (x.shape[1],), weight=weight, bias=bias)
    away, variance = _moments(cast(x, x.dtype.accumulator), tuple(range(2, len(x.shape))))
    normal = mul(away, rsqrt(add(variance, eps)))
    column = (x.shape[1], *[1] * (len(x.shape) - 2))
    return cast(_scaled(normal, weight, bias, column), x.dtype)


@public("layernorm", source="tinygrad")
def layernorm(x: Node, dim: Any = -1, eps: float = 1e-5) -> Node:
    """x with mean 0 and variance 1 over the given dimensions; see `layer_norm` for weight and bias.

    >>> Tensor([[1.0, 3.0]]).layernorm(eps=0.0).tolist()
    [[-1.0, 1.0]]
    """
    x = as_float(x)
    away, variance = _moments(cast(x, x.dtype.accumulator), normalize_axes(dim, len(x.shape)))
    return cast(mul(away, rsqrt(add(variance, eps))), x.dtype)


@public("batchnorm", source="tinygrad")
def batchnorm(
    x: Node,
    weight: Node | None,
    bias: Node | None,
    mean: Node,
    invstd: Node,
    dim: Any = 1,
) -> Node:
    """(x - mean) * invstd * weight + bias along the given dimensions; invstd is
    1 / sqrt(variance). See `batch_norm` for PyTorch's.

    >>> Tensor([[3.0]]).batchnorm(None, None, Tensor([1.0]), Tensor([2.0])).tolist()
    [[4.0]]
    """
    x = as_float(x)
    axes = normalize_axes(dim, len(x.shape))
    column = tuple([size if axis in axes else 1 for axis, size in enumerate(x.shape)])
    expected = tuple([x.shape[axis] for axis in axes])
    check_parameters("batchnorm", expected, mean=mean, weight=weight, bias=bias)
    wide = x.dtype.accumulator
    away = sub(cast(x, wide), reshape(cast(mean, wide), column))
    scale = cast(invstd, wide)
    scale = reshape(scale, column) if len(scale.shape) == len(axes) else scale
    return cast(_scaled(mul(away, scale), weight, bias, column), x.dtype)


@public("local_response_norm", source="PyTorch")
def local_response_norm(
    x: Node, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Node:
    """x / (k + alpha * m)**beta for m the mean square over `size` neighbouring channels, those
    outside counting as 0.

    x: (batch, channels, ..), of three dimensions or more. Source: Krizhevsky, Sutskever and Hinton,
    "ImageNet classification with deep convolutional neural networks", 2012.

    >>> Tensor([[[1.0], [1.0]]]).local_response_norm(2, alpha=2.0, beta=1.0, k=0.0).tolist()
    [[[1.0], [0.5]]]
    """
    if len(x.shape) < 3:
        raise ValueError(
            f"local_response_norm: x has shape {shapes.text(x.shape)}; it must be (batch, "
            "channels, ..) of three dimensions or more"
        )
    if type(size) is not int or size < 1:
        raise ValueError(f"local_response_norm: size={size!r} must be an int of at least 1")
    x = as_float(x)
    wide = cast(x, x.dtype.accumulator)
    last = len(x.shape) - 1
    squares = transpose(square(wide), 1, last)
    outer: list[tuple[shapes.Dim, shapes.Dim]] = [(0, 0)] * last
    padded = pad(squares, [*outer, (size // 2, (size - 1) // 2)])
    mean = div(reduce("add", windows_of(padded, [x.shape[1]], [size], [1], [1]), last + 1), size)
    scale = pow_(add(mul(transpose(mean, 1, last), alpha), k), beta)
    return cast(div(wide, scale), x.dtype)


@public("normalize", source="PyTorch")
def normalize(x: Node, p: float = 2.0, dim: Any = 1, eps: float = 1e-12) -> Node:
    """x divided by its p-norm along the given dimensions, which is taken to be at least eps.

    >>> Tensor([[0.0, 4.0]]).normalize().tolist()
    [[0.0, 1.0]]
    """
    x = as_float(x)
    wide = cast(x, x.dtype.accumulator)
    size = maximum(norm(wide, p, dim, True), eps)
    return cast(mul(wide, reciprocal(size)), x.dtype)
