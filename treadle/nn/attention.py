"""Attention with several heads, as a function; the module is in `transformer.py`."""

from __future__ import annotations

import math

from treadle.tensor import Tensor


def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Attention of each query to keys, by several heads between learnt projections.

    query: (length, batch, embedding); key, value: (source, batch, ..); all three without a batch,
    too. in_proj_weight: the three projections, one above the other; with use_separate_proj_weight
    q_, k_ and v_proj_weight. bias_k, bias_v: one more key and value, (1, 1, embedding).
    add_zero_attn: one more of zeros. key_padding_mask: (batch, source); attn_mask: (length, source)
    or (batch * heads, length, source): bool, True where nothing is attended to, or added to scores.
    static_k, static_v: (batch * heads, source, embedding / heads) in place of projections.
    is_causal: a hint that attn_mask is causal. dropout_p: of attention, in training.

    Gives the result, shaped like query, and the attention (batch, length, source), the mean of
    heads (average_attn_weights=False: each, (batch, heads, length, source)), or None if
    need_weights is False. Source: PyTorch; Vaswani et al., "Attention is all you need", 2017.
    """
    alone = query.ndim == 2
    if alone:
        query, key, value = query.unsqueeze(1), key.unsqueeze(1), value.unsqueeze(1)
        key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
    _check(query, key, value, embed_dim_to_check, num_heads)
    if is_causal and attn_mask is None:
        raise ValueError(
            "multi_head_attention_forward: is_causal is a hint about attn_mask: give the mask too"
        )
    batch = query.shape[1]
    separate = (q_proj_weight, k_proj_weight, v_proj_weight)
    weights = separate if use_separate_proj_weight else _parts(in_proj_weight)
    rows = _projected((query, key, value), weights, _parts(in_proj_bias), (bias_k, bias_v))
    q, k, v = (
        _by_head(x, num_heads) if static is None else _static(static, batch, num_heads)
        for x, static in zip(rows, (None, static_k, static_v))
    )
    if add_zero_attn:
        k, v = k.pad((0, 0, 0, 1)), v.pad((0, 0, 0, 1))
    extra = int(bias_k is not None) + int(add_zero_attn)
    mask = _mask(attn_mask, key_padding_mask, (batch, num_heads), q, extra)
    found, attention = _attended(q, k, v, mask, dropout_p if training else 0.0, need_weights)
    joined = found.permute(2, 0, 1, 3).reshape(query.shape)
    result = joined.linear(out_proj_weight, out_proj_bias)
    if attention is not None and average_attn_weights:
        attention = attention.mean(1)
    if not alone:
        return result, attention
    return result.squeeze(1), None if attention is None else attention.squeeze(0)


def _projected(
    inputs: tuple[Tensor, Tensor, Tensor],
    weights: tuple[Tensor | None, ...],
    biases: tuple[Tensor | None, ...],
    more: tuple[Tensor | None, Tensor | None],
) -> list[Tensor]:
    """Queries, keys and values. more: a key and a value, (1, 1, embedding), that are added."""
    query, key, value = (
        x if weight is None else x.linear(weight, bias)
        for x, weight, bias in zip(inputs, weights, biases)
    )
    if more[0] is not None and more[1] is not None:
        key = Tensor.cat([key, more[0].expand(1, *key.shape[1:])])
        value = Tensor.cat([value, more[1].expand(1, *value.shape[1:])])
    return [query, key, value]


def _attended(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, dropout: float, need_weights: bool
) -> tuple[Tensor, Tensor | None]:
    """The values that queries attend to, by head, and how much to each if that is wanted."""
    if not need_weights:
        return q.scaled_dot_product_attention(k, v, mask, dropout), None
    scores = (q * (1 / math.sqrt(q.shape[-1]))) @ k.transpose(-1, -2)
    attention = (scores if mask is None else scores + mask).softmax(-1)
    attention = attention.dropout(dropout) if dropout else attention
    return attention @ v, attention


def _check(query: Tensor, key: Tensor, value: Tensor, embedding: int, heads: int) -> None:
    """ValueError for shapes that do not fit."""
    shapes = f"query {query.shape}, key {key.shape}, value {value.shape}"
    if query.ndim != 3 or key.ndim != 3 or value.ndim != 3:
        raise ValueError(
            f"attention: {shapes}: each must be (length, batch, features), or all "
            "(length, features)"
        )
    if query.shape[-1] != embedding or embedding % heads:
        raise ValueError(
            f"attention: {shapes}: queries must have {embedding} features, a multiple of the "
            f"{heads} heads"
        )
    if key.shape[:2] != value.shape[:2] or key.shape[1] != query.shape[1]:
        raise ValueError(
            f"attention: {shapes}: the batches must agree, and the lengths of key and value"
        )


def _parts(packed: Tensor | None) -> tuple[Tensor | None, ...]:
    """What belongs to queries, keys and values of three things that are one above the other."""
    return (None, None, None) if packed is None else tuple(packed.chunk(3, 0))


def _by_head(x: Tensor, heads: int) -> Tensor:
    """(length, batch, embedding) as (batch, heads, length, embedding / heads)."""
    length, batch, embedding = x.shape
    return x.reshape(length, batch, heads, embedding // heads).permute(1, 2, 0, 3)


def _static(x: Tensor, batch: int, heads: int) -> Tensor:
    """(batch * heads, length, size) as (batch, heads, length, size)."""
    return x.reshape(batch, heads, *x.shape[1:])


def _mask(
    attention: Tensor | None,
    padding: Tensor | None,
    sizes: tuple[int, int],
    query: Tensor,
    extra: int,
) -> Tensor | None:
    """Both masks as one that is added to scores (batch, heads, length, source), or None.

    extra: how many keys were added at the end, which nothing masks.
    """
    parts = []
    if attention is not None:
        several = attention.ndim == 3
        leading = sizes if several else (1, 1)
        parts.append(_added(attention, query).reshape(*leading, *attention.shape[-2:]))
    if padding is not None:
        parts.append(_added(padding, query).reshape(padding.shape[0], 1, 1, padding.shape[1]))
    if not parts:
        return None
    mask = parts[0] if len(parts) == 1 else parts[0] + parts[1]
    return mask.pad((0, extra)) if extra else mask


def _added(mask: Tensor, query: Tensor) -> Tensor:
    """A mask as numbers that are added to scores: -inf where a bool one is True."""
    if mask.dtype.name != "bool":
        return mask.to(dtype=query.dtype)
    return mask.where(-math.inf, 0.0).to(dtype=query.dtype)
