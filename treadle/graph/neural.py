"""Layers of networks as functions: linear maps, softmax, normalisation, dropout, attention.

Half and bfloat16 are computed in float32 and rounded once, at the result. What is divided by a
number per row is multiplied by its reciprocal: one division a row, and so in the derivative.
"""

from __future__ import annotations

import math
from typing import Any

from treadle.graph import shapes
from treadle.graph.build import (
    as_float,
    cast,
    const,
    dim_value,
    iota,
    normalize_axis,
    operands,
    reduce,
    reshape,
    stop_gradient,
    where,
)
from treadle.graph.elementwise import add, div, eq, le, mul, reciprocal, sub
from treadle.graph.functions import exp, log, sqrt
from treadle.graph.linear import matmul
from treadle.graph.movement import transpose
from treadle.graph.normalization import check_parameters
from treadle.graph.public import public
from treadle.graph.random import rand
from treadle.ir.dtype import DType, bool_, int64
from treadle.ir.node import Node, Shape


# ---- linear maps ---------------------------------------------------------------------------------
@public("linear", source="PyTorch")
def linear(x: Node, weight: Node, bias: Node | None = None) -> Node:
    """x times the transposed weight, plus the bias, along the last dimension.

    x: (.., in). weight: (out, in), or (in,) for one output without a dimension. bias: (out,).

    >>> Tensor([[1.0, 2.0]]).linear(Tensor([[1.0, 1.0], [0.0, 3.0]]), Tensor([0.5, 0.0]))
    Tensor([[3.5, 6. ]])
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
    check_parameters("linear", wanted, bias=bias)
    wide = x.dtype.accumulator
    right = cast(weight, wide)
    result = matmul(cast(x, wide), transpose(right, 0, 1) if matrix else right)
    if bias is not None:
        result = add(result, cast(bias, wide))
    return cast(result, x.dtype)


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

    >>> Tensor([[0.0, 0.0], [0.0, 1000.0]]).softmax(1)
    Tensor([[0.5, 0.5],
            [0. , 1. ]])
    """
    shifted, axis, result = _softmax_input(x, dim, dtype)
    powers = exp(shifted)
    return cast(mul(powers, reciprocal(_row_sum(powers, axis))), result)


@public("log_softmax", source="PyTorch")
def log_softmax(x: Node, dim: int = -1, dtype: DType | None = None) -> Node:
    """The logarithm of `softmax`, exact where softmax itself would be 0. dtype: what x is cast to
    first.

    >>> Tensor([0.0, 100.0]).log_softmax()
    Tensor([-100.,    0.])
    """
    shifted, axis, result = _softmax_input(x, dim, dtype)
    return cast(sub(shifted, log(_row_sum(exp(shifted), axis))), result)


# ---- dropout -------------------------------------------------------------------------------------
@public("dropout", source="PyTorch", kind="keyed")
def dropout(x: Node, p: float = 0.5, *, random_key: Any) -> Node:
    """x with each element set to 0 with probability p, and the others divided by 1 - p.

    random_key: which random numbers, see `random.py`; or a function that gives a key when one is
    needed.
    Source: Srivastava et al., "Dropout: a simple way to prevent overfitting", 2014.

    >>> Tensor([1.0, 2.0]).dropout(0.0)
    Tensor([1., 2.])
    """
    return _dropped("dropout", x, p, x.shape, random_key)


@public("feature_dropout", source="PyTorch", kind="keyed")
def feature_dropout(x: Node, p: float = 0.5, *, random_key: Any) -> Node:
    """x (batch, channels, ..) with whole channels of samples set to 0 with probability p, and the
    others divided by 1 - p. random_key: as of `dropout`.

    Source: Tompson et al., "Efficient object localization using convolutional networks", 2015.

    >>> Tensor.ones(1, 2, 3).feature_dropout(0.5).shape
    (1, 2, 3)
    """
    return _dropped("feature_dropout", x, p, _of_channels("feature_dropout", x), random_key)


@public("alpha_dropout", source="PyTorch", kind="keyed")
def alpha_dropout(x: Node, p: float = 0.5, *, random_key: Any) -> Node:
    """x with each element set to the least value of `selu` with probability p, and all scaled and
    shifted so that mean 0 and variance 1 stay. random_key: as of `dropout`.

    Source: Klambauer et al., "Self-normalizing neural networks", 2017.

    >>> Tensor([1.0, 2.0]).alpha_dropout(0.0)
    Tensor([1., 2.])
    """
    return _saturated("alpha_dropout", x, p, x.shape, random_key)


@public("feature_alpha_dropout", source="PyTorch", kind="keyed")
def feature_alpha_dropout(x: Node, p: float = 0.5, *, random_key: Any) -> Node:
    """`alpha_dropout` of whole channels of x (batch, channels, ..). random_key: as of `dropout`.

    >>> Tensor.ones(1, 2, 3).feature_alpha_dropout(0.0).shape
    (1, 2, 3)
    """
    shape = _of_channels("feature_alpha_dropout", x)
    return _saturated("feature_alpha_dropout", x, p, shape, random_key)


def _of_channels(name: str, x: Node) -> Shape:
    """One number for each channel of each sample."""
    if len(x.shape) < 2:
        raise ValueError(
            f"{name}: x has shape {shapes.text(x.shape)}; it must be (batch, channels, ..)"
        )
    return (*x.shape[:2], *[1] * (len(x.shape) - 2))


def _kept(p: float, shape: Shape, random_key: Any) -> Node:
    """Which numbers stay, each with probability 1 - p."""
    return le(p, rand(random_key() if callable(random_key) else random_key, shape))


def _check_probability(name: str, p: float) -> None:
    if not 0 <= p <= 1:
        raise ValueError(f"{name}: p={p!r} is not a probability in 0..1")


def _dropped(name: str, x: Node, p: float, shape: Shape, random_key: Any) -> Node:
    _check_probability(name, p)
    x = as_float(x)
    if p == 0:
        return x
    if p == 1:
        return mul(x, 0)
    wide = cast(x, x.dtype.accumulator)
    return cast(where(_kept(p, shape, random_key), mul(wide, 1 / (1 - p)), 0), x.dtype)


# The value of selu far below 0: -scale * alpha.
_SELU_FLOOR = -1.7580993408473766


def _saturated(name: str, x: Node, p: float, shape: Shape, random_key: Any) -> Node:
    """With x of mean 0 and variance 1 and a share p at the floor f, the mean is p f and the
    variance (1 - p)(1 + p f^2)."""
    _check_probability(name, p)
    x = as_float(x)
    if p == 0:
        return x
    if p == 1:
        return mul(x, 0)
    wide = cast(x, x.dtype.accumulator)
    scale = ((1 - p) * (1 + p * _SELU_FLOOR**2)) ** -0.5
    mixed = where(_kept(p, shape, random_key), wide, _SELU_FLOOR)
    return cast(mul(sub(mixed, p * _SELU_FLOOR), scale), x.dtype)


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

    >>> q = k = v = Tensor.ones(2, 8, 5, 16)
    >>> q.scaled_dot_product_attention(k, v, is_causal=True).shape
    (2, 8, 5, 16)
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
