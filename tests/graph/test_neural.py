"""Convolutions, pools, softmax, normalisation, attention, losses: values, gradients, errors."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from gradcheck import check, leaf
from hypothesis import given, settings
from hypothesis import strategies as st

from treadle.backend.interp.graph import evaluate
from treadle.graph import build as b
from treadle.graph import (
    convolution,
    embeddings,
    losses,
    neural,
    normalization,
    pools,
    resampling,
)
from treadle.graph.grad import gradients
from treadle.graph.public import METHODS
from treadle.ir import index, ops
from treadle.ir.dtype import bfloat16, float16, float32, float64
from treadle.ir.node import Node, toposort

Array = np.ndarray
RANDOM = np.random.default_rng(11)


@pytest.fixture(autouse=True)
def same_numbers_whatever_ran_before() -> None:
    RANDOM.bit_generator.state = np.random.default_rng(11).bit_generator.state


def normal(*shape: int) -> Array:
    return RANDOM.standard_normal(shape)


def values(f: Callable[..., Any], *arrays: Array) -> Any:
    nodes = [leaf(i, np.asarray(a)) for i, a in enumerate(arrays)]
    result = f(*nodes)
    roots = list(result) if isinstance(result, tuple) else [result]
    found = evaluate(roots, dict(zip(nodes, map(np.asarray, arrays))))
    return found if isinstance(result, tuple) else found[0]


def count_ops(root: Node) -> dict[str, int]:
    names = [node.op.name for node in toposort(root)]
    return {name: names.count(name) for name in set(names)}


# ---- convolution ---------------------------------------------------------------------------------
def convolved(
    x: Array,
    w: Array,
    stride: Sequence[int],
    pairs: Sequence[tuple[int, int]],
    dilation: Sequence[int],
    groups: int,
) -> Array:
    """The definition, one output at a time."""
    padded = np.pad(x, ((0, 0), (0, 0), *pairs))
    kernel = w.shape[2:]
    sizes = [
        (n - d * (k - 1) - 1) // s + 1
        for n, k, s, d in zip(padded.shape[2:], kernel, stride, dilation)
    ]
    out = np.zeros((x.shape[0], w.shape[0], *sizes), x.dtype)
    each_in, each_out = x.shape[1] // groups, w.shape[0] // groups
    for n, o, *p in np.ndindex(*out.shape):
        first = o // each_out * each_in
        for i, *k in np.ndindex(each_in, *kernel):
            place = [a * s + c * d for a, s, c, d in zip(p, stride, k, dilation)]
            out[(n, o, *p)] += w[(o, i, *k)] * padded[(n, first + i, *place)]
    return out


CONVOLUTIONS: dict[str, tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    "plain": ((2, 3, 5, 4), (4, 3, 3, 2), {}),
    "strided": ((1, 2, 7, 6), (3, 2, 3, 2), {"stride": (2, 3), "padding": 1}),
    "dilated": ((1, 2, 8, 7), (2, 2, 3, 3), {"dilation": (2, 1), "padding": (0, 2)}),
    "grouped": ((2, 4, 4, 4), (6, 2, 2, 2), {"groups": 2, "padding": ((1, 0), (2, 1))}),
    "depthwise": ((1, 3, 5, 5), (3, 1, 3, 3), {"groups": 3, "stride": 2}),
    "1d": ((2, 3, 7), (2, 3, 3), {"padding": ((2, 1),), "stride": 2}),
    "3d": ((1, 2, 3, 4, 3), (2, 2, 2, 2, 2), {"padding": 1, "dilation": 2}),
}


def full(value: Any, count: int) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, tuple) else (value,) * count


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolution(name: str) -> None:
    x_shape, w_shape, options = CONVOLUTIONS[name]
    count = len(w_shape) - 2
    function = getattr(convolution, f"conv{count}d")
    x, w, bias = normal(*x_shape), normal(*w_shape), normal(w_shape[0])
    pairs = [p if isinstance(p, tuple) else (p, p) for p in full(options.get("padding", 0), count)]
    stride, dilation = (
        full(options.get("stride", 1), count),
        full(options.get("dilation", 1), count),
    )
    want = convolved(x, w, stride, pairs, dilation, options.get("groups", 1))
    found = values(lambda x, w, c: function(x, w, c, **options), x, w, bias)
    np.testing.assert_allclose(found, want + bias.reshape(-1, *[1] * count), rtol=1e-12, atol=1e-12)
    check(lambda x, w, c: function(x, w, c, **options), x, w, bias)


@settings(deadline=None, max_examples=25)
@given(
    size=st.integers(1, 9),
    kernel=st.integers(1, 4),
    stride=st.integers(1, 3),
    dilation=st.integers(1, 3),
    before=st.integers(0, 3),
    after=st.integers(0, 3),
)
def test_convolution_of_any_geometry(
    size: int, kernel: int, stride: int, dilation: int, before: int, after: int
) -> None:
    x, w = normal(1, 2, size), normal(2, 2, kernel)
    options = {"stride": stride, "dilation": dilation, "padding": ((before, after),)}
    if size + before + after < dilation * (kernel - 1) + 1:
        with pytest.raises(ValueError, match="does not fit a dimension"):
            values(lambda x, w: convolution.conv1d(x, w, **options), x, w)
        return
    want = convolved(x, w, [stride], [(before, after)], [dilation], 1)
    found = values(lambda x, w: convolution.conv1d(x, w, **options), x, w)
    np.testing.assert_allclose(found, want, rtol=1e-12, atol=1e-12)


def test_same_and_valid_padding() -> None:
    x, w = normal(1, 1, 6), normal(1, 1, 4)
    same = values(lambda x, w: convolution.conv1d(x, w, padding="same"), x, w)
    np.testing.assert_allclose(same, convolved(x, w, [1], [(1, 2)], [1], 1))
    valid = values(lambda x, w: convolution.conv1d(x, w, padding="valid"), x, w)
    np.testing.assert_allclose(valid, convolved(x, w, [1], [(0, 0)], [1], 1))


def test_convolution_without_a_batch_and_of_an_empty_one() -> None:
    w = leaf(1, normal(4, 3, 2, 2))
    assert convolution.conv2d(leaf(0, normal(3, 5, 5)), w).shape == (4, 4, 4)
    empty = normal(0, 3, 5, 5)
    assert values(convolution.conv2d, empty, normal(4, 3, 2, 2)).shape == (0, 4, 4, 4)


def test_a_convolution_is_one_sum_of_products() -> None:
    """No array of patches: windows, one product, one reduce, forward and in both derivatives."""
    x, w = leaf(0, normal(2, 3, 8, 8)), leaf(1, normal(4, 3, 3, 3))
    y = convolution.conv2d(x, w, padding=1)
    assert count_ops(y)["reduce"] == 1
    for wanted in (x, w):
        (derived,) = gradients([y], [leaf(2, normal(2, 4, 8, 8))], [wanted])
        assert count_ops(derived)["mul"] == 1
        assert "contiguous" not in count_ops(derived)


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_transposed_convolution_is_the_adjoint(name: str) -> None:
    """sum(y * conv(x, w)) is linear in x; its derivative is conv_transpose(y, w)."""
    x_shape, w_shape, options = CONVOLUTIONS[name]
    count = len(w_shape) - 2
    forward = getattr(convolution, f"conv{count}d")
    backward = getattr(convolution, f"conv_transpose{count}d")
    x, w = normal(*x_shape), normal(*w_shape)
    y = RANDOM.standard_normal(values(lambda x, w: forward(x, w, **options), x, w).shape)
    full_size = values(lambda y, w: backward(y, w, **options), y, w)
    extra = tuple(n - m for n, m in zip(x_shape[2:], full_size.shape[2:]))
    found = values(lambda y, w: backward(y, w, output_padding=extra, **options), y, w)
    nodes = [leaf(i, a) for i, a in enumerate((x, w, y))]
    (derived,) = gradients([forward(*nodes[:2], **options)], [nodes[2]], [nodes[0]])
    (want,) = evaluate([derived], dict(zip(nodes, (x, w, y))))
    np.testing.assert_allclose(found, want, rtol=1e-12, atol=1e-12)
    check(lambda y, w: backward(y, w, **options), y, w)


def test_convolution_of_half_is_summed_in_float32() -> None:
    """4,096 products of 1 would stop at 2,048 in half."""
    x, w = np.ones((1, 4096, 1), np.float16), np.ones((1, 4096, 1), np.float16)
    result = values(convolution.conv1d, x, w)
    assert result.dtype == np.float16
    assert result.item() == 4096


def test_convolution_with_a_symbolic_batch_and_size() -> None:
    batch, size = index.variable("B", 1, 8), index.variable("H", 3, 32)
    x, w = normal(2, 3, 6, 5), normal(4, 3, 3, 3)
    nodes = [leaf(0, x, shape=(batch, 3, size, 5)), leaf(1, w)]
    y = convolution.conv2d(*nodes, padding=1, stride=(2, 1))
    assert y.shape[0] is batch
    pooled = pools.max_pool2d(y, 3, 2, 1, ceil_mode=True)
    derived = gradients([pooled], [b.ones_like(pooled)], nodes)
    found = evaluate([pooled, *derived], dict(zip(nodes, (x, w))), {"B": 2, "H": 6})
    static = [leaf(0, x), leaf(1, w)]
    y = convolution.conv2d(*static, padding=1, stride=(2, 1))
    pooled = pools.max_pool2d(y, 3, 2, 1, ceil_mode=True)
    derived = gradients([pooled], [b.ones_like(pooled)], static)
    for one, other in zip(found, evaluate([pooled, *derived], dict(zip(static, (x, w))))):
        np.testing.assert_allclose(one, other, rtol=1e-12)


# ---- pools ---------------------------------------------------------------------------------------
def pooled(
    x: Array, kernel: int, stride: int, pair: tuple[int, int], dilation: int, ceil: bool
) -> list[list[int]]:
    """Along the last axis: the places, counted from the first element of x, of each window."""
    size, reach = x.shape[-1], dilation * (kernel - 1) + 1
    room = size + sum(pair) - reach
    windows = (-(-room // stride) if ceil else room // stride) + 1
    if ceil and (windows - 1) * stride >= size + pair[0]:
        windows -= 1
    return [[o * stride + k * dilation - pair[0] for k in range(kernel)] for o in range(windows)]


@settings(deadline=None, max_examples=60)
@given(
    size=st.integers(1, 9),
    kernel=st.integers(1, 4),
    stride=st.integers(1, 5),
    dilation=st.integers(1, 2),
    pair=st.tuples(st.integers(0, 2), st.integers(0, 2)),
    ceil=st.booleans(),
    include=st.booleans(),
)
def test_pools_of_any_geometry(
    size: int,
    kernel: int,
    stride: int,
    dilation: int,
    pair: tuple[int, int],
    ceil: bool,
    include: bool,
) -> None:
    reach = dilation * (kernel - 1) + 1
    x = normal(2, size)
    if max(pair) <= reach // 2 and size + sum(pair) >= reach:
        places = pooled(x, kernel, stride, pair, dilation, ceil)
        inside = [[p for p in window if 0 <= p < size] for window in places]
        want = np.stack([x[:, window].max(1, initial=-np.inf) for window in inside], 1)
        found = values(lambda x: pools.max_pool1d(x, kernel, stride, (pair,), dilation, ceil), x)
        np.testing.assert_array_equal(found, want)
    if max(pair) <= kernel // 2 and size + sum(pair) >= kernel:
        places = pooled(x, kernel, stride, pair, 1, ceil)
        first, last = (-pair[0], size + pair[1]) if include else (0, size)
        counted = [sum(first <= p < last for p in window) for window in places]
        inside = [[p for p in window if 0 <= p < size] for window in places]
        want = np.stack([x[:, w].sum(1) / max(n, 1) for w, n in zip(inside, counted)], 1)
        found = values(lambda x: pools.avg_pool1d(x, kernel, stride, (pair,), ceil, include), x)
        np.testing.assert_allclose(found, want, rtol=1e-12, atol=1e-15)


def test_pools_of_two_dimensions() -> None:
    x = normal(2, 3, 6, 8)
    blocks = x.reshape(2, 3, 3, 2, 4, 2)
    np.testing.assert_array_equal(values(pools.max_pool2d, x), blocks.max((3, 5)))
    np.testing.assert_allclose(values(pools.avg_pool2d, x), blocks.mean((3, 5)))
    np.testing.assert_allclose(
        values(lambda x: pools.avg_pool2d(x, 2, divisor_override=3), x),
        blocks.sum((3, 5)) / 3,
    )
    check(lambda x: pools.max_pool2d(x, 3, 2, 1), x)
    check(lambda x: pools.avg_pool2d(x, 3, 2, 1, True, False), x)
    check(lambda x: pools.max_pool3d(x, 2, 1), x)


def test_pools_of_integers() -> None:
    x = np.arange(8).reshape(1, 8)
    assert values(pools.max_pool1d, x).tolist() == [[1, 3, 5, 7]]
    assert values(lambda x: pools.max_pool1d(x, 3, 2, 1), -x).tolist() == [[0, -1, -3, -5]]
    means = values(pools.avg_pool1d, np.array([[-3, 2, 4, 7]]))  # truncated
    assert means.dtype == np.int64 and means.tolist() == [[0, 5]]
    padded = values(lambda x: pools.avg_pool1d(x, 3, 1, 1, False, False), x[:, :4])
    assert padded.tolist() == [[0, 1, 2, 2]]


# ---- softmax and normalisation -------------------------------------------------------------------
def soft(x: Array, axis: int = -1) -> Array:
    powers = np.exp(x - x.max(axis, keepdims=True))
    return powers / powers.sum(axis, keepdims=True)


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_softmax(dim: int) -> None:
    x = 3 * normal(3, 4, 5)
    np.testing.assert_allclose(values(lambda x: neural.softmax(x, dim), x), soft(x, dim))
    np.testing.assert_allclose(
        values(lambda x: neural.log_softmax(x, dim), x), np.log(soft(x, dim)), atol=1e-12
    )
    check(lambda x: neural.softmax(x, dim), x)
    check(lambda x: neural.log_softmax(x, dim), x)


def test_softmax_of_extremes() -> None:
    x = np.array([[1000.0, 1000.0, -1000.0], [-np.inf, 0.0, 0.0]])
    found = values(neural.softmax, x)
    np.testing.assert_array_equal(found, [[0.5, 0.5, 0.0], [0.0, 0.5, 0.5]])
    logs = values(neural.log_softmax, x)
    np.testing.assert_allclose(logs[0], [-np.log(2), -np.log(2), -2000 - np.log(2)])
    assert values(neural.softmax, np.float64(3.0)) == 1.0
    assert values(neural.softmax, np.zeros((3, 0))).shape == (3, 0)
    assert np.isnan(values(neural.softmax, np.array([np.nan, 1.0]))).all()


@pytest.mark.parametrize("dtype", [float16, bfloat16])
def test_half_is_rounded_once(dtype: Any) -> None:
    """In half itself the sum of 4,096 equal powers would stop at 2,048 (bfloat16: at 256)."""
    x = b.const(1.0, dtype, (4096,))
    (found,) = evaluate([neural.softmax(x)], {})
    np.testing.assert_array_equal(found, np.full(4096, 1 / 4096))
    assert neural.softmax(x).dtype is dtype


def normalised(x: Array, axes: tuple[int, ...], eps: float = 1e-5) -> Array:
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + eps)


def test_layer_norm() -> None:
    x, w, c = normal(3, 4, 5), normal(4, 5), normal(4, 5)
    found = values(lambda x, w, c: normalization.layer_norm(x, (4, 5), w, c), x, w, c)
    np.testing.assert_allclose(found, normalised(x, (1, 2)) * w + c, rtol=1e-10)
    np.testing.assert_allclose(
        values(lambda x: normalization.layer_norm(x, 5, eps=0.1), x), normalised(x, (2,), 0.1)
    )
    check(lambda x, w, c: normalization.layer_norm(x, (4, 5), w, c), x, w, c)


def test_layer_norm_of_a_large_mean_is_exact() -> None:
    x = (np.arange(64) % 2 + 4096).astype(np.float32)
    np.testing.assert_allclose(
        values(lambda x: normalization.layer_norm(x, 64, eps=0.0), x), 2 * (x % 2) - 1
    )


def test_rms_norm() -> None:
    x, w = normal(3, 5), normal(5)
    root = np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6)
    found = values(lambda x, w: normalization.rms_norm(x, 5, w, 1e-6), x, w)
    np.testing.assert_allclose(found, x / root * w)
    check(lambda x, w: normalization.rms_norm(x, 5, w), x, w)


def test_batch_norm() -> None:
    x, w, c = normal(4, 3, 5, 2), normal(3), normal(3)

    def trained(x: Node, w: Node, c: Node) -> Node:
        return normalization.batch_norm(x, *normalization.batch_statistics(x), w, c)

    want = normalised(x, (0, 2, 3)) * w.reshape(3, 1, 1) + c.reshape(3, 1, 1)
    np.testing.assert_allclose(values(trained, x, w, c), want)
    check(trained, x, w, c)
    mean, var = values(normalization.batch_statistics, x)
    np.testing.assert_allclose(mean, x.mean((0, 2, 3)))
    np.testing.assert_allclose(var, x.var((0, 2, 3)))
    flat = normal(6, 3)
    found = values(lambda x, m, v: normalization.batch_norm(x, m, v, eps=0.0), flat, c, w * w)
    np.testing.assert_allclose(found, (flat - c) / np.abs(w))


def test_group_norm() -> None:
    x, w, c = normal(2, 6, 3), normal(6), normal(6)
    want = normalised(x.reshape(2, 3, 2, 3), (2, 3)).reshape(x.shape) * w[:, None] + c[:, None]
    np.testing.assert_allclose(
        values(lambda x, w, c: normalization.group_norm(x, 3, w, c), x, w, c), want
    )
    check(lambda x, w, c: normalization.group_norm(x, 3, w, c), x, w, c)


# ---- linear, embedding, dropout ------------------------------------------------------------------
def test_linear() -> None:
    x, w, c = normal(2, 3, 4), normal(5, 4), normal(5)
    np.testing.assert_allclose(values(neural.linear, x, w, c), x @ w.T + c)
    np.testing.assert_allclose(values(neural.linear, x[0, 0], w), x[0, 0] @ w.T)
    np.testing.assert_allclose(values(neural.linear, x, w[0], np.asarray(c[0])), x @ w[0] + c[0])
    check(neural.linear, x, w, c)


def test_embedding() -> None:
    table, ids = normal(6, 3), np.array([[0, 5], [2, 2]])
    np.testing.assert_array_equal(values(embeddings.embedding, ids, table), table[ids])
    assert values(embeddings.embedding, np.array(4), table).shape == (3,)
    check(embeddings.embedding, ids, table)
    nodes = [leaf(0, ids), leaf(1, table)]
    rows = embeddings.embedding(*nodes, padding_idx=-4)
    (derived,) = gradients([rows], [b.ones_like(rows)], [nodes[1]])
    (found,) = evaluate([derived], dict(zip(nodes, (ids, table))))
    np.testing.assert_array_equal(found[:, 0], [1, 0, 0, 0, 0, 1])
    with pytest.raises(IndexError, match="6 is out of range"):
        values(embeddings.embedding, ids + 1, table)


def test_dropout() -> None:
    x = np.ones(10_000)
    found = values(lambda x: neural.dropout(x, 0.25, random_key=3), x)
    assert set(np.unique(found)) == {0.0, 1 / 0.75}
    assert abs((found == 0).mean() - 0.25) < 0.02
    again = values(lambda x: neural.dropout(x, 0.25, random_key=3), x)
    np.testing.assert_array_equal(found, again)
    assert (values(lambda x: neural.dropout(x, 0.25, random_key=4), x) != found).any()
    np.testing.assert_array_equal(values(lambda x: neural.dropout(x, 0.0, random_key=3), x), x)
    assert not values(lambda x: neural.dropout(x, 1.0, random_key=3), x).any()
    drawn = values(lambda x: neural.dropout(x, 0.25, random_key=lambda: 3), x)
    np.testing.assert_array_equal(found, drawn)
    check(lambda x: neural.dropout(x, 0.5, random_key=1), normal(4, 5))


# ---- attention -----------------------------------------------------------------------------------
def attended(q: Array, k: Array, v: Array, allowed: Array | None = None, bias: Any = 0.0) -> Array:
    scores = q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1]) + bias
    if allowed is not None:
        scores = np.where(allowed, scores, -np.inf)
    return soft(scores) @ v


def test_attention() -> None:
    q, k, v = normal(2, 3, 4, 5), normal(2, 3, 6, 5), normal(2, 3, 6, 7)
    f = neural.scaled_dot_product_attention
    np.testing.assert_allclose(values(f, q, k, v), attended(q, k, v))
    causal = np.tril(np.ones((4, 6), bool))
    found = values(lambda q, k, v: f(q, k, v, is_causal=True), q, k, v)
    np.testing.assert_allclose(found, attended(q, k, v, causal))
    np.testing.assert_allclose(values(f, q, k, v, causal), attended(q, k, v, causal))
    bias = normal(3, 4, 6)
    np.testing.assert_allclose(values(f, q, k, v, bias), attended(q, k, v, bias=bias))
    found = values(lambda q, k, v: f(q, k, v, scale=1.0), q, k, v)
    np.testing.assert_allclose(found, attended(q * np.sqrt(5), k, v))
    check(lambda q, k, v: f(q, k, v, is_causal=True), q[0, 0], k[0, 0], v[0, 0])
    check(f, q[0, 0], k[0, 0], v[0, 0], bias[0])


def test_attention_with_fewer_heads_of_keys() -> None:
    q, k, v = normal(2, 6, 4, 5), normal(2, 3, 4, 5), normal(2, 3, 4, 5)
    found = values(
        lambda q, k, v: neural.scaled_dot_product_attention(q, k, v, enable_gqa=True), q, k, v
    )
    want = attended(q, np.repeat(k, 2, 1), np.repeat(v, 2, 1))
    np.testing.assert_allclose(found, want)


def test_a_query_that_may_look_at_nothing() -> None:
    q, k, v = normal(2, 3), normal(4, 3), normal(4, 3)
    allowed = np.array([[True, False, True, True], [False] * 4])
    found = values(neural.scaled_dot_product_attention, q, k, v, allowed)
    np.testing.assert_allclose(found[0], attended(q[:1], k, v, allowed[:1])[0])
    np.testing.assert_array_equal(found[1], 0)
    check(neural.scaled_dot_product_attention, q, k, v, allowed)


# ---- losses --------------------------------------------------------------------------------------
def cross_entropy(
    x: Array,
    ids: Array,
    weight: Array,
    ignore: int,
    smoothing: float,
    reduction: str,
) -> Array:
    """The definition, sample by sample; x is (samples, classes)."""
    logs = np.log(soft(x))
    found, counts = [], []
    for row, target in zip(logs, ids):
        if target == ignore:
            found.append(0.0)
            counts.append(0.0)
            continue
        hard = -weight[target] * row[target]
        even = -(weight * row).sum() / len(row)
        found.append((1 - smoothing) * hard + smoothing * even)
        counts.append(weight[target])
    if reduction == "none":
        return np.array(found)
    return np.sum(found) / (np.sum(counts) if reduction == "mean" else 1)


@pytest.mark.parametrize("reduction", losses.REDUCTIONS)
@pytest.mark.parametrize("smoothing", [0.0, 0.2])
@pytest.mark.parametrize("weighted", [False, True])
def test_cross_entropy_with_class_ids(reduction: str, smoothing: float, weighted: bool) -> None:
    x, ids = 2 * normal(6, 4), np.array([0, 3, 1, 2, 3, 3])
    weight = RANDOM.uniform(0.5, 2, 4) if weighted else np.ones(4)
    want = cross_entropy(x, ids, weight, 2, smoothing, reduction)

    def loss(x: Node, ids: Node, weight: Node) -> Node:
        return losses.cross_entropy(x, ids, weight if weighted else None, 2, reduction, smoothing)

    np.testing.assert_allclose(values(loss, x, ids, weight), want)
    check(loss, x, ids, weight, wanted=[0])


def test_cross_entropy_with_more_dimensions_and_with_none() -> None:
    x, ids = normal(2, 3, 4, 2), RANDOM.integers(0, 3, (2, 4, 2))
    rows = np.moveaxis(x, 1, -1).reshape(-1, 3)
    want = cross_entropy(rows, ids.ravel(), np.ones(3), -100, 0.1, "none").reshape(ids.shape)
    found = values(lambda x, t: losses.cross_entropy(x, t, None, -100, "none", 0.1), x, ids)
    np.testing.assert_allclose(found, want)
    one = values(losses.cross_entropy, x[0, :, 0, 0], np.array(ids[0, 0, 0]))
    np.testing.assert_allclose(one, -np.log(soft(x[0, :, 0, 0])[ids[0, 0, 0]]))


def test_cross_entropy_with_probabilities() -> None:
    x, target, weight = normal(5, 4), soft(normal(5, 4)), RANDOM.uniform(0.5, 2, 4)
    smooth = target * 0.9 + 0.1 / 4
    want = -(weight * smooth * np.log(soft(x))).sum() / 5

    def loss(x: Node, target: Node, weight: Node) -> Node:
        return losses.cross_entropy(x, target, weight, label_smoothing=0.1)

    np.testing.assert_allclose(values(loss, x, target, weight), want)
    check(loss, x, target, weight)


def test_cross_entropy_is_the_loss_of_its_own_softmax() -> None:
    """The derivative is (softmax - indicator) / samples, and nothing is scattered for it."""
    x, ids = normal(5, 4), np.array([0, 3, 1, 2, 3])
    nodes = [leaf(0, x), leaf(1, ids)]
    loss = losses.cross_entropy(*nodes)
    (derived,) = gradients([loss], [b.const(1.0, float64)], [nodes[0]])
    (found,) = evaluate([derived], dict(zip(nodes, (x, ids))))
    np.testing.assert_allclose(found, (soft(x) - np.eye(4)[ids]) / 5)
    assert "scatter" not in count_ops(derived)
    assert count_ops(derived)["gather"] == 1  # of the index itself: so it is checked


def test_cross_entropy_errs_for_a_class_that_is_none() -> None:
    x = normal(2, 3)
    for bad in (3, -1):
        with pytest.raises(IndexError, match=f"{bad} is out of range"):
            values(losses.cross_entropy, x, np.array([0, bad]))
    assert np.isnan(values(losses.cross_entropy, x, np.array([-100, -100])))


def test_nll_loss() -> None:
    logs, ids = np.log(soft(normal(5, 4))), np.array([0, 3, 1, -100, 3])
    weight = RANDOM.uniform(0.5, 2, 4)
    kept = ids != -100
    each = -weight[ids[kept]] * logs[kept, ids[kept]]
    found = values(losses.nll_loss, logs, ids, weight)
    np.testing.assert_allclose(found, each.sum() / weight[ids[kept]].sum())
    check(losses.nll_loss, logs, ids)


def test_regression_losses() -> None:
    x, target = normal(3, 4), normal(3, 4)
    np.testing.assert_allclose(values(losses.mse_loss, x, target), ((x - target) ** 2).mean())
    np.testing.assert_allclose(values(losses.l1_loss, x, target), np.abs(x - target).mean())
    found = values(lambda x, t: losses.mse_loss(x, t, "sum"), x, target)
    np.testing.assert_allclose(found, ((x - target) ** 2).sum())
    check(losses.mse_loss, x, target)
    check(losses.l1_loss, x, target)
    assert np.isnan(values(losses.mse_loss, np.zeros((0, 3)), np.zeros((0, 3))))


def test_binary_losses() -> None:
    z, target = 2 * normal(3, 4), RANDOM.random((3, 4))
    p, weight = 1 / (1 + np.exp(-z)), RANDOM.random(4)
    each = -(target * np.log(p) + (1 - target) * np.log(1 - p))
    np.testing.assert_allclose(values(losses.binary_cross_entropy, p, target), each.mean())
    found = values(losses.binary_cross_entropy, p, target, weight)
    np.testing.assert_allclose(found, (each * weight).mean())
    with_logits = losses.binary_cross_entropy_with_logits
    np.testing.assert_allclose(values(with_logits, z, target), each.mean())
    found = values(lambda z, t, w: with_logits(z, t, pos_weight=w), z, target, weight)
    each = -(weight * target * np.log(p) + (1 - target) * np.log(1 - p))
    np.testing.assert_allclose(found, each.mean())
    check(losses.binary_cross_entropy, p, target)
    check(with_logits, z, target)
    check(with_logits, 0 * z, target)


def test_binary_losses_of_extremes() -> None:
    sure = np.array([0.0, 1.0])
    assert values(losses.binary_cross_entropy, sure, sure) == 0
    assert values(losses.binary_cross_entropy, sure, 1 - sure) == 100
    large = np.array([1000.0, -1000.0])
    found = values(losses.binary_cross_entropy_with_logits, large, np.array([1.0, 1.0]))
    assert found == 500


# ---- errors --------------------------------------------------------------------------------------
def z(*shape: int, dtype: Any = np.float32) -> Node:
    return leaf(0, np.zeros(shape, dtype))


def ids(*shape: int) -> Node:
    return z(*shape, dtype=np.int64)


ERRORS: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "channels": (
        lambda: convolution.conv2d(z(2, 4, 9, 9), z(8, 3, 3, 3)),
        ValueError,
        r"conv2d: a weight of shape \(8, 3, 3, 3\) with groups=1 takes 3 channels, but x of shape "
        r"\(2, 4, 9, 9\) has 4",
    ),
    "kernel": (
        lambda: convolution.conv1d(z(2, 4, 2), z(8, 4, 3)),
        ValueError,
        "conv1d: a window that spans 3 elements does not fit a dimension of 2",
    ),
    "bias": (
        lambda: convolution.conv1d(z(2, 4, 5), z(8, 4, 3), z(4)),
        ValueError,
        r"conv1d: the bias has shape \(4,\); a weight of shape \(8, 4, 3\) needs \(8,\)",
    ),
    "rank": (
        lambda: convolution.conv2d(z(3, 2, 4, 9, 9), z(8, 4, 3, 3)),
        ValueError,
        r"x has shape \(3, 2, 4, 9, 9\); it must have 2 spatial dimensions",
    ),
    "groups": (
        lambda: convolution.conv1d(z(1, 4, 9), z(3, 2, 3), groups=2),
        ValueError,
        "3 channels do not divide into groups=2",
    ),
    "same": (
        lambda: convolution.conv1d(z(1, 4, 9), z(3, 4, 3), padding="same", stride=2),
        ValueError,
        "padding='same' is for stride=1, not stride=2",
    ),
    "stride": (
        lambda: convolution.conv2d(z(1, 4, 9, 9), z(3, 4, 3, 3), stride=(1, 2, 3)),
        ValueError,
        r"stride=\(1, 2, 3\) must be an int of at least 1, or 2 of them",
    ),
    "padding": (
        lambda: convolution.conv2d(z(1, 4, 9, 9), z(3, 4, 3, 3), padding="full"),
        ValueError,
        "padding is an int, 2 of them, pairs, 'valid' or 'same', not 'full'",
    ),
    "pool": (
        lambda: pools.max_pool2d(z(4, 4), 2, padding=2),
        ValueError,
        "padding=2 is more than half of a window that spans 2",
    ),
    "linear": (
        lambda: neural.linear(z(2, 3), z(5, 4)),
        ValueError,
        r"linear: x of shape \(2, 3\) and a weight of shape \(5, 4\) do not fit",
    ),
    "embedding": (
        lambda: embeddings.embedding(z(2, 3), z(5, 4)),
        TypeError,
        "the ids are float32; they must be integers",
    ),
    "softmax": (lambda: neural.softmax(z(2, 3), 2), IndexError, "dim=2 is out of range"),
    "layer_norm": (
        lambda: normalization.layer_norm(z(2, 3), (2,)),
        ValueError,
        r"normalized_shape \(2,\) is not how x of shape \(2, 3\) ends",
    ),
    "batch_norm": (
        lambda: normalization.batch_norm(z(2, 3, 4), z(4), z(4)),
        ValueError,
        r"batch_norm: mean has shape \(4,\); it must have \(3,\)",
    ),
    "group_norm": (
        lambda: normalization.group_norm(z(2, 3, 4), 2),
        ValueError,
        "3 channels do not divide into num_groups=2",
    ),
    "dropout": (
        lambda: neural.dropout(z(2), 1.5, random_key=0),
        ValueError,
        "p=1.5 is not a probability",
    ),
    "attention": (
        lambda: neural.scaled_dot_product_attention(z(4, 5), z(6, 4), z(6, 4)),
        ValueError,
        r"query \(4, 5\), key \(6, 4\), value \(6, 4\): query and key must have one last dimension",
    ),
    "mask": (
        lambda: neural.scaled_dot_product_attention(z(4, 5), z(6, 5), z(6, 4), z(2, 4, 6)),
        ValueError,
        r"attn_mask of shape \(2, 4, 6\) does not broadcast to the scores' \(4, 6\)",
    ),
    "mse": (
        lambda: losses.mse_loss(z(4, 1), z(4)),
        ValueError,
        r"the prediction has shape \(4, 1\) and the target \(4,\)",
    ),
    "targets": (
        lambda: losses.cross_entropy(z(4, 3), ids(4, 3)),
        ValueError,
        r"scores of shape \(4, 3\) need class ids of shape \(4,\), not \(4, 3\)",
    ),
    "weight": (
        lambda: losses.cross_entropy(z(4, 3), ids(4), z(4)),
        ValueError,
        r"a weight of shape \(4,\) does not belong to scores of shape \(4, 3\)",
    ),
    "reduction": (
        lambda: losses.cross_entropy(z(4, 3), ids(4), reduction="avg"),
        ValueError,
        "reduction is 'mean', 'sum' or 'none', not 'avg'",
    ),
    "scores": (
        lambda: losses.cross_entropy(ids(4, 3), ids(4)),
        TypeError,
        "the scores are int64; they must be floating",
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name: str) -> None:
    call, kind, message = ERRORS[name]
    with pytest.raises(kind, match=message):
        call()


def test_everything_is_public() -> None:
    names = (
        "linear conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d max_pool1d "
        "max_pool2d max_pool3d avg_pool1d avg_pool2d avg_pool3d softmax log_softmax layer_norm "
        "batch_norm group_norm rms_norm dropout embedding scaled_dot_product_attention "
        "cross_entropy nll_loss mse_loss l1_loss binary_cross_entropy "
        "binary_cross_entropy_with_logits"
    )
    assert set(names.split()) <= set(METHODS)
    assert ops.WINDOW in {
        n.op for n in toposort(METHODS["conv2d"].function(z(1, 1, 4, 4), z(1, 1, 2, 2)))
    }
    assert neural.softmax(z(2, 3)).dtype is float32


def test_resized_bytes_are_bytes() -> None:
    x = np.array([[[[0, 255], [10, 20]]]], dtype=np.uint8)
    found = values(lambda x: resampling.interpolate(x, (2, 3), mode="bilinear"), x)
    assert found.dtype == np.uint8
    assert found.tolist() == [[[[0, 128, 255], [10, 15, 20]]]]
