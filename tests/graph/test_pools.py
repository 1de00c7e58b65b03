"""Adaptive pools, pools back, resampling, patches and bags against NumPy; their errors."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from gradcheck import check, leaf
from hypothesis import given, settings
from hypothesis import strategies as st

from treadle import Tensor, Variable
from treadle.backend.interp.graph import evaluate
from treadle.graph import embeddings, patches, pools, resampling, sampling

Array = np.ndarray
RANDOM = np.random.default_rng(4)


def values(f: Callable[..., Any], *arrays: Array) -> Any:
    nodes = [leaf(i, np.asarray(a)) for i, a in enumerate(arrays)]
    result = f(*nodes)
    roots = list(result) if isinstance(result, tuple) else [result]
    found = evaluate(roots, dict(zip(nodes, map(np.asarray, arrays))))
    return found if isinstance(result, tuple) else found[0]


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 9), st.integers(1, 9))
def test_adaptive_pools_divide_as_evenly_as_possible(size: int, windows: int) -> None:
    x = RANDOM.normal(size=(2, 3, size))
    parts = [x[:, :, i * size // windows : -(-(i + 1) * size // windows)] for i in range(windows)]
    means = np.stack([part.mean(2) for part in parts], 2)
    np.testing.assert_allclose(values(lambda t: pools.adaptive_avg_pool1d(t, windows), x), means)
    greatest, places = values(lambda t: pools.adaptive_max_pool1d(t, windows, True), x)
    np.testing.assert_array_equal(greatest, np.stack([part.max(2) for part in parts], 2))
    np.testing.assert_array_equal(np.take_along_axis(x, places, 2), greatest)


def test_places_of_the_greatest() -> None:
    x = np.array([[[[1.0, 1.0], [np.nan, 2.0]]]])
    found, places = values(lambda t: pools.max_pool2d(t, 2, return_indices=True), x)
    assert np.isnan(found).all() and places.tolist() == [[[[2]]]]
    x = np.full((1, 1, 2, 2), -np.inf)
    _, places = values(lambda t: pools.max_pool2d(t, 2, padding=1, return_indices=True), x)
    assert places.reshape(-1).tolist() == [0, 1, 2, 3], "never in the padding"


@pytest.mark.parametrize(("kernel", "padding", "size"), [(2, 0, 6), (2, 0, 7), (3, 1, 8)])
def test_back_from_the_greatest(kernel: int, padding: int, size: int) -> None:
    x = RANDOM.permutation(size).reshape(1, size) + 1.0
    greatest, places = values(
        lambda t: pools.max_pool1d(t, kernel, None, padding, return_indices=True), x
    )
    back = values(
        lambda v, i: pools.max_unpool1d(v, i, kernel, None, padding, (size,)), greatest, places
    )
    np.testing.assert_array_equal(back, np.where(np.isin(x, greatest), x, 0))


def test_a_symbolic_size_is_pooled_to_one() -> None:
    size = Variable("T", 1, 9)
    x = Tensor(np.arange(9.0)).reshape(1, 9)
    part = x[:, : size.bind(4)]
    assert part.adaptive_avg_pool1d(1).tolist() == [[1.5]]
    with pytest.raises(ValueError, match=r"size T cannot be divided into 2 windows"):
        part.adaptive_avg_pool1d(2)


def test_interpolation() -> None:
    x = np.array([[[0.0, 3.0]]])
    linear = values(lambda t: resampling.interpolate(t, 4, mode="linear"), x)
    assert linear.tolist() == [[[0.0, 0.75, 2.25, 3.0]]]
    aligned = values(lambda t: resampling.interpolate(t, 4, None, "linear", True), x)
    np.testing.assert_allclose(aligned, [[[0.0, 1.0, 2.0, 3.0]]])
    nearest = values(lambda t: resampling.interpolate(t, 3), x)
    assert nearest.tolist() == [[[0.0, 0.0, 3.0]]]
    ids = np.arange(4, dtype=np.int32).reshape(1, 1, 4)
    found = values(lambda t: resampling.interpolate(t, scale_factor=0.5), ids)
    assert found.tolist() == [[[0, 2]]] and found.dtype == np.int32
    check(lambda t: resampling.interpolate(t, 5, mode="linear"), RANDOM.normal(size=(1, 2, 3)))


def test_the_identity_as_an_affine_map() -> None:
    theta = np.array([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]])
    x = RANDOM.normal(size=(1, 2, 3, 4))
    for corners in (False, True):
        same = values(
            lambda t, m, corners=corners: sampling.grid_sample(
                t, sampling.affine_grid(m, (1, 2, 3, 4), corners), align_corners=corners
            ),
            x,
            theta,
        )
        np.testing.assert_allclose(same, x, atol=1e-12)


@settings(deadline=None, max_examples=20)
@given(st.integers(1, 3), st.integers(1, 2), st.integers(0, 2), st.integers(1, 2))
def test_columns_and_images_are_adjoint(
    kernel: int, dilation: int, padding: int, stride: int
) -> None:
    x = RANDOM.normal(size=(1, 2, 5, 6))
    named = {"dilation": dilation, "padding": padding, "stride": stride}
    columns = values(lambda t: patches.im2col(t, kernel, **named), x)
    y = RANDOM.normal(size=columns.shape)
    image = values(lambda t: patches.col2im(t, (5, 6), kernel, **named), y)
    np.testing.assert_allclose((columns * y).sum(), (image * x).sum())


@settings(deadline=None, max_examples=20)
@given(
    st.lists(st.lists(st.integers(0, 3), max_size=4), min_size=1, max_size=4),
    st.sampled_from(["sum", "mean", "max"]),
    st.sampled_from([None, 2, -1]),
)
def test_bags(bags: list[list[int]], mode: str, padding: int | None) -> None:
    table = RANDOM.normal(size=(4, 2))
    ids = np.array([i for bag in bags for i in bag], np.int64)
    offsets = np.cumsum([0, *map(len, bags)])[:-1]
    found = values(
        lambda i, t, o: embeddings.embedding_bag(i, t, o, mode=mode, padding_idx=padding),
        ids,
        table,
        offsets,
    )
    reduce = {"sum": np.sum, "mean": np.mean, "max": np.max}[mode]
    for bag, row in zip(bags, found):
        rows = [table[i] for i in bag if padding is None or i != padding % 4]
        np.testing.assert_allclose(row, reduce(rows, axis=0) if rows else [0, 0])


def z(*shape: int) -> Tensor:
    return Tensor.zeros(*shape)


ERRORS: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: z(2, 3).adaptive_avg_pool2d(2), ValueError, r"shape \(2, 3\).* 2 spatial dimensions"),
    (lambda: z(1, 3, 3).adaptive_max_pool2d((1, -1)), ValueError, r"output_size=\(1, -1\) must be"),
    (lambda: z(1, 4).max_unpool1d(z(1, 4), 2), ValueError, "the indices are float32"),
    (lambda: z(1, 4).lp_pool1d(0, 2), ValueError, "norm_type must not be 0"),
    (lambda: z(1, 1, 4).interpolate(), ValueError, "give either size or scale_factor"),
    (lambda: z(1, 1, 4).interpolate(2, mode="bilinear"), ValueError, "its modes are 'nearest'"),
    (lambda: z(1, 1, 4).interpolate(2, align_corners=True), ValueError, "align_corners is for"),
    (lambda: z(1, 1, 4, 4).interpolate(2, mode="area", antialias=True), ValueError,
     "antialias is for bilinear, bicubic, not for area"),
    (lambda: z(1, 1, 4, 4).grid_sample(z(2, 4, 4, 2)), ValueError, "do not fit"),
    (lambda: z(1, 1, 4, 4).grid_sample(z(1, 4, 4, 2), "cubic"), ValueError, "mode is 'bilinear'"),
    (lambda: z(2, 3, 3).affine_grid((2, 1, 4, 4)), ValueError, "theta of shape"),
    (lambda: z(3, 2, 2).pixel_shuffle(2), ValueError, "the channels of x .* must divide by 4"),
    (lambda: z(1, 3, 3).channel_shuffle(2), ValueError, "channels of x .* must divide by 2"),
    (lambda: z(4).im2col(2), ValueError, "im2col: x has shape"),
    (lambda: z(1, 4, 3).col2im((3, 3), 2), ValueError, "fold: x of shape .* does not fit"),
    (lambda: z(2).long().embedding_bag(z(3, 2)), ValueError, "need offsets"),
    (lambda: z(2, 2).long().embedding_bag(z(3, 2), mode="min"), ValueError, "'sum', 'mean'"),
    (lambda: z(2, 2).local_response_norm(2), ValueError, "of three dimensions or more"),
    (lambda: z(2).feature_dropout(), ValueError, "must be \\(batch, channels"),
    (lambda: z(2).alpha_dropout(2.0), ValueError, "p=2.0 is not a probability"),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(ERRORS)))
def test_errors(number: int) -> None:
    call, error, message = ERRORS[number]
    with pytest.raises(error, match=message):
        call()


def test_alpha_dropout_keeps_mean_and_variance() -> None:
    Tensor.manual_seed(0)
    x = Tensor.randn(100_000).alpha_dropout(0.3)
    assert abs(x.mean().item()) < 0.02 and abs(x.var().item() - 1) < 0.02
    whole = Tensor.ones(50, 40, 6).feature_dropout(0.25).numpy()
    assert (whole == whole[:, :, :1]).all() and abs((whole == 0).mean() - 0.25) < 0.03
