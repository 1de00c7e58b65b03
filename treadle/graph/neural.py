"""Layers of networks as functions: linear maps, softmax, normalisation, dropout, attention.

Half and bfloat16 are computed in float32 and rounded once, at the result. What is divided by a
number per row is multiplied by its reciprocal: one division a row, and so in the derivative.
Convolutions and pools are in `convolution.py`, losses in `losses.py`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from treadle.graph import convolution, losses, shapes
from treadle.graph.build import (
    as_float,
    cast,
    const,
    dim_value,
    expand,
    gather,
    iota,
    normalize_axis,
    operands,
    reduce,
    reshape,
    stop_gradient,
    where,
)
from treadle.graph.elementwise import add, div, eq, le, mul, reciprocal, rsqrt, square, sub
from treadle.graph.functions import exp, log, sqrt
from treadle.graph.linear import matmul
from treadle.graph.movement import transpose
from treadle.graph.public import public
from treadle.graph.random import rand
from treadle.ir.dtype import DType, bool_, int64
from treadle.ir.node import Node, Shape

__all__ = ["convolution", "losses"]  # whose functions join the table with these


# ---- linear maps ---------------------------------------------------------------------------------
@public("linear", source="PyTorch")
def linear(x: Node, weight: Node, bias: Node | None = None) -> Node:
    """x times the transposed weight, plus the bias, along the last dimension.

    x: (.., in). weight: (out, in), or (in,) for one output without a dimension. bias: (out,).
    """
    x, weight = operands(x, weight)
    wanted = weight.shape[:-1]
    matrix = len(weight.shape) == 2
    fits = (matrix or len(weight.shape) == 1) and len(x.shape) > 0
    if not fits or not shapes.same(x.shape[-1], weight.shape[-1]):
        raise ValueError(
            f"linear: x of shape {shapes.text(x.shape)} and a weight of shape "
            f"{shapes.text(weight.shape)} do not fit: the weight is (out, in), and x ends in `in`"
        )
    _check_shapes("linear", wanted, bias=bias)
    wide = x.dtype.accumulator
    right = cast(weight, wide)
    result = matmul(cast(x, wide), transpose(right, 0, 1) if matrix else right)
    if bias is not None:
        result = add(result, cast(bias, wide))
    return cast(result, x.dtype)


@public("embedding", source="PyTorch")
def embedding(ids: Node, weight: Node, padding_idx: int | None = None) -> Node:
    """The rows of a table that ids name: ids (..) and weight (rows, ..) give (.., ..).

    padding_idx: a row that gets no gradient. An id that is no row is an IndexError when it is read.
    """
    if not ids.dtype.is_int:
        raise TypeError(f"embedding: the ids are {ids.dtype}; they must be integers")
    if len(weight.shape) < 1:
        raise ValueError("embedding: the table has shape (); it must have a dimension of rows")
    count, rest = shapes.total(ids.shape), weight.shape[1:]
    column = reshape(ids, (count, *[1] * len(rest)))
    found = gather(weight, expand(column, (count, *rest)), 0)
    if padding_idx is not None:
        row = _padding_row(padding_idx, weight.shape[0])
        found = where(eq(column, row), stop_gradient(found), found)
    return reshape(found, (*ids.shape, *rest))


def _padding_row(padding_idx: int, rows: Any) -> int:
    last = shapes.bounds(rows)[1]
    if type(padding_idx) is not int or not -last <= padding_idx < last:
        raise ValueError(
            f"embedding: padding_idx={padding_idx!r} is not a row of {shapes.dim_text(rows)}"
        )
    return padding_idx % last


# ---- softmax -------------------------------------------------------------------------------------
def _softmax_input(x: Node, dim: int, dtype: DType | None) -> tuple[Node, int, DType]:
    """(x minus the greatest of its row, axis, dtype of the result). The shift changes nothing in
    the result, so no derivative passes through it."""
    x = as_float(x if dtype is None else cast(x, dtype))
    axis = normalize_axis(dim, len(x.shape))
    wide = cast(x, x.dtype.accumulator)
    if not x.shape:
        return sub(wide, stop_gradient(wide)), axis, x.dtype
    return sub(wide, stop_gradient(reduce("max", wide, axis, True))), axis, x.dtype


def _row_sum(x: Node, axis: int) -> Node:
    """The sum along an axis, which stays with size 1; of a 0-d tensor itself."""
    return reduce("add", x, axis, True) if x.shape else x


@public("softmax", source="PyTorch")
def softmax(x: Node, dim: int = -1, dtype: DType | None = None) -> Node:
    """exp(x) divided by its sum along a dimension: positive numbers that add up to 1.

    dtype: what x is cast to first. NaN for a row that holds NaN or inf, or nothing but -inf.
    """
    shifted, axis, result = _softmax_input(x, dim, dtype)
    powers = exp(shifted)
    return cast(mul(powers, reciprocal(_row_sum(powers, axis))), result)


@public("log_softmax", source="PyTorch")
def log_softmax(x: Node, dim: int = -1, dtype: DType | None = None) -> Node:
    """The logarithm of `softmax`, exact where softmax itself would be 0. dtype: what x is cast to
    first."""
    shifted, axis, result = _softmax_input(x, dim, dtype)
    return cast(sub(shifted, log(_row_sum(exp(shifted), axis))), result)


# ---- normalisation -------------------------------------------------------------------------------
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


def _check_shapes(name: str, expected: Shape, **tensors: Node | None) -> None:
    """ValueError for a parameter that does not have the shape that it must have."""
    for what, tensor in tensors.items():
        if tensor is not None and not shapes.same_shape(tensor.shape, expected):
            raise ValueError(
                f"{name}: {what} has shape {shapes.text(tensor.shape)}; it must have "
                f"{shapes.text(expected)}"
            )


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
    """
    x = as_float(x)
    axes, shape = _last_axes("layer_norm", x, normalized_shape)
    _check_shapes("layer_norm", shape, weight=weight, bias=bias)
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
    """
    x = as_float(x)
    axes, shape = _last_axes("rms_norm", x, normalized_shape)
    _check_shapes("rms_norm", shape, weight=weight)
    wide = cast(x, x.dtype.accumulator)
    count = dim_value(shapes.total(shape), wide.dtype)
    power = div(reduce("add", square(wide), axes, True), count)
    scale = rsqrt(add(power, _EPSILON[x.dtype.name] if eps is None else eps))
    return cast(_scaled(mul(wide, scale), weight, None, shape), x.dtype)


_EPSILON = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "float64": 2.0**-52}


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
    """
    x = as_float(x)
    _channel_axis("batch_norm", x)
    _check_shapes("batch_norm", (x.shape[1],), mean=mean, var=var, weight=weight, bias=bias)
    wide = x.dtype.accumulator
    column = (x.shape[1], *[1] * (len(x.shape) - 2))
    away = sub(cast(x, wide), reshape(cast(mean, wide), column))
    normal = mul(away, reshape(rsqrt(add(cast(var, wide), eps)), column))
    return cast(_scaled(normal, weight, bias, column), x.dtype)


@public("batch_statistics", source="treadle")
def batch_statistics(x: Node) -> tuple[Node, Node]:
    """(mean, variance) of each channel of x (batch, channels, ..): sums divided by the number of
    elements, not one less. Of half and bfloat16 they are float32."""
    x = as_float(x)
    _channel_axis("batch_statistics", x)
    wide = cast(x, x.dtype.accumulator)
    axes = (0, *range(2, len(x.shape)))
    count = dim_value(shapes.total([x.shape[axis] for axis in axes]), wide.dtype)
    mean = div(reduce("add", wide, axes), count)
    _, variance = _moments(wide, axes)
    return mean, reshape(variance, mean.shape)


@public("group_norm", source="PyTorch")
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
    _check_shapes("group_norm", (channels,), weight=weight, bias=bias)
    grouped = (x.shape[0], num_groups, each, *x.shape[2:])
    wide = reshape(cast(x, x.dtype.accumulator), grouped)
    away, variance = _moments(wide, tuple(range(2, len(grouped))))
    normal = reshape(mul(away, rsqrt(add(variance, eps))), x.shape)
    column = (channels, *[1] * (len(x.shape) - 2))
    return cast(_scaled(normal, weight, bias, column), x.dtype)


# ---- dropout -------------------------------------------------------------------------------------
@public("dropout", source="PyTorch", kind="keyed")
def dropout(x: Node, p: float = 0.5, *, random_key: Any) -> Node:
    """x with each element set to 0 with probability p, and the others divided by 1 - p.

    random_key: which random numbers, see `random.py`; or a function that gives a key when one is
    needed.
    Source: Srivastava et al., "Dropout: a simple way to prevent overfitting", 2014.
    """
    if not 0 <= p <= 1:
        raise ValueError(f"dropout: p={p!r} is not a probability in 0..1")
    x = as_float(x)
    if p == 0:
        return x
    if p == 1:
        return mul(x, 0)
    kept = le(p, rand(random_key() if callable(random_key) else random_key, x.shape))
    wide = cast(x, x.dtype.accumulator)
    return cast(where(kept, mul(wide, 1 / (1 - p)), 0), x.dtype)


# ---- attention -----------------------------------------------------------------------------------
@public("scaled_dot_product_attention", source="PyTorch", kind="keyed")
def scaled_dot_product_attention(
    query: Node,
    key: Node,
    value: Node,
    attn_mask: Node | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
    *,
    random_key: Any = None,
) -> Node:
    """softmax(query key^T * scale + mask) value, the softmax along the keys.

    query: (.., queries, d). key: (.., keys, d). value: (.., keys, e). Gives (.., queries, e);
    leading dimensions broadcast. attn_mask: bool (True: may be looked at) or floats that are added,
    broadcast to (.., queries, keys). is_causal: query i looks at the keys up to i. scale: None is
    1/sqrt(d). enable_gqa: key and value have fewer heads (dimension -3), each for several of query.
    A query that may look at nothing gives 0. dropout_p: how many weights are dropped.
    random_key: as of `dropout`. Source: Vaswani et al., "Attention is all you need", 2017.
    """
    name = "scaled_dot_product_attention"
    query, key, value = operands(as_float(query), as_float(key), as_float(value))
    dtype, wide = query.dtype, query.dtype.accumulator
    _check_attention(name, query, key, value)
    q, k, v = cast(query, wide), cast(key, wide), cast(value, wide)
    leading = q.shape[:-2]
    if enable_gqa:
        q, k, v = _grouped_heads(name, q, k, v)
    size = dim_value(q.shape[-1], wide)
    factor = div(1.0, sqrt(size)) if scale is None else const(float(scale), wide)
    scores = mul(matmul(q, transpose(k, -2, -1)), factor)
    if enable_gqa:
        scores = reshape(scores, (*leading, *scores.shape[-2:]))
    weights = _attention_weights(name, scores, attn_mask, is_causal)
    if dropout_p:
        weights = dropout(weights, dropout_p, random_key=random_key)
    if enable_gqa:
        weights = reshape(weights, (*q.shape[:-1], k.shape[-2]))
    result = matmul(weights, v)
    if enable_gqa:
        result = reshape(result, (*leading, *result.shape[-2:]))
    return cast(result, dtype)


def _check_attention(name: str, q: Node, k: Node, v: Node) -> None:
    all_shapes = (
        f"query {shapes.text(q.shape)}, key {shapes.text(k.shape)}, value {shapes.text(v.shape)}"
    )
    if min(len(q.shape), len(k.shape), len(v.shape)) < 2:
        raise ValueError(f"{name}: {all_shapes} must have at least 2 dimensions")
    if not shapes.same(q.shape[-1], k.shape[-1]):
        raise ValueError(f"{name}: {all_shapes}: query and key must have one last dimension")
    if not shapes.same(k.shape[-2], v.shape[-2]):
        raise ValueError(f"{name}: {all_shapes}: key and value must have one number of keys")


def _grouped_heads(name: str, q: Node, k: Node, v: Node) -> tuple[Node, Node, Node]:
    """Heads as (heads of k, queries' heads for each): k and v get a dimension of 1 there, which
    broadcasts and is never stored."""
    if min(len(q.shape), len(k.shape), len(v.shape)) < 3:
        raise ValueError(f"{name}: enable_gqa needs a dimension of heads, (.., heads, tokens, d)")
    heads, shared = q.shape[-3], k.shape[-3]
    several = shapes.divide(heads, shared) if shapes.at_most(1, shared) else 0
    fits = shapes.same(shapes.multiply(several, shared), heads) and shapes.same(shared, v.shape[-3])
    if not fits:
        raise ValueError(
            f"{name}: enable_gqa: {shapes.dim_text(heads)} heads of the query do not divide among "
            f"{shapes.dim_text(shared)} of key and {shapes.dim_text(v.shape[-3])} of value"
        )
    q = reshape(q, (*q.shape[:-3], shared, several, *q.shape[-2:]))
    k = reshape(k, (*k.shape[:-2], 1, *k.shape[-2:]))
    v = reshape(v, (*v.shape[:-2], 1, *v.shape[-2:]))
    return q, k, v


def _attention_weights(name: str, scores: Node, mask: Node | None, is_causal: bool) -> Node:
    """softmax of the scores that a query may look at; 0 where it may look at none."""
    if is_causal:
        queries, keys = scores.shape[-2:]
        row = reshape(iota(queries, int64), (queries, 1))
        scores = where(le(iota(keys, int64), row), scores, -math.inf)
    if mask is None:
        return softmax(scores, -1)
    before = scores.shape
    if mask.dtype is bool_:
        scores = where(mask, scores, -math.inf)
    else:
        scores = add(scores, cast(mask, scores.dtype))
    if scores.shape != before:
        raise ValueError(
            f"{name}: attn_mask of shape {shapes.text(mask.shape)} does not broadcast to the "
            f"scores' {shapes.text(before)}"
        )
    peak = stop_gradient(reduce("max", scores, -1, True))
    powers = exp(sub(scores, where(eq(peak, -math.inf), 0, peak)))
    total = reduce("add", powers, -1, True)
    return mul(powers, reciprocal(where(eq(total, 0), 1, total)))
