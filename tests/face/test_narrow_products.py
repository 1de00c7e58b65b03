"""Matrix products of bfloat16, float16 and small integers, as users write them."""

from __future__ import annotations

import numpy as np
import pytest

from treadle import Tensor

RANDOM = np.random.default_rng(0)


def whole(*shape: int) -> np.ndarray:
    """Small whole numbers, whose products and sums are exact."""
    return RANDOM.integers(-3, 4, shape).astype(np.float32)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("k", [5, 64, 67])
@pytest.mark.parametrize("layout", ["NN", "NT", "TN", "TT"])
def test_every_layout_is_exact_on_whole_numbers(dtype: str, k: int, layout: str) -> None:
    a, b = whole(33, k), whole(k, 70)
    x = Tensor(a.T.copy() if layout[0] == "T" else a).cast(dtype).realize()
    y = Tensor(b.T.copy() if layout[1] == "T" else b).cast(dtype).realize()
    x, y = (z.transpose(0, 1) if how == "T" else z for z, how in zip((x, y), layout))
    want = Tensor(a @ b).cast(dtype).cast("float32").numpy()
    np.testing.assert_array_equal((x @ y).cast("float32").numpy(), want)


def test_batches_what_comes_before_and_after() -> None:
    a, b, bias = whole(3, 20, 15), whole(3, 15, 40), whole(40)
    x, y, z = (Tensor(v).cast("bfloat16").realize() for v in (a, b, bias))
    got = ((x.relu() * 2) @ y + z).relu().cast("float32").numpy()
    np.testing.assert_array_equal(got, np.maximum(np.maximum(a, 0) * 2 @ b + bias, 0))


def test_gradients_of_a_product() -> None:
    a, b = whole(20, 34), whole(34, 18)
    x, y = (Tensor(v).cast("bfloat16").realize() for v in (a, b))
    x.requires_grad = y.requires_grad = True
    (x @ y).sum().backward()
    assert x.grad is not None and y.grad is not None
    np.testing.assert_array_equal(x.grad.cast("float32").numpy(), np.tile(b.sum(1), (20, 1)))
    np.testing.assert_array_equal(y.grad.cast("float32").numpy(), np.tile(a.sum(0), (18, 1)).T)


def test_rounding_is_that_of_a_float32_sum() -> None:
    n = 300
    x, y = (Tensor(RANDOM.standard_normal((n, n))).cast("bfloat16").realize() for _ in range(2))
    a, b = (z.cast("float64").numpy() for z in (x, y))
    got = (x @ y).cast("float64").numpy()
    allowed = n * 2.0**-24 * (np.abs(a) @ np.abs(b))  # and the result is rounded to 8 bits
    assert np.all(np.abs(got - a @ b) <= allowed + np.abs(a @ b) * 2.0**-8)


def test_infinities_and_nan() -> None:
    a, b = whole(18, 33), whole(33, 20)
    a[2, 5], a[3, 32], a[4, 0], b[7, 11] = np.inf, -np.inf, np.nan, np.inf
    x, y = (Tensor(v).cast("bfloat16").realize() for v in (a, b))
    with np.errstate(invalid="ignore"):
        want = a @ b
    np.testing.assert_array_equal((x @ y).cast("float32").numpy(), want)


@pytest.mark.parametrize("kinds", [("uint8", "int8"), ("int8", "int8"), ("int16", "uint8")])
@pytest.mark.parametrize("k", [8, 33])
def test_integers_are_exact(kinds: tuple[str, str], k: int) -> None:
    info = [np.iinfo(kind) for kind in kinds]
    a = RANDOM.integers(info[0].min, info[0].max, (21, k), endpoint=True).astype(kinds[0])
    b = RANDOM.integers(info[1].min, info[1].max, (k, 37), endpoint=True).astype(kinds[1])
    got = (Tensor(a).cast("int32") @ Tensor(b).cast("int32")).numpy()
    np.testing.assert_array_equal(got, a.astype(np.int32) @ b.astype(np.int32))


def test_a_matrix_by_its_own_transpose() -> None:
    """Both factors are loads of one buffer."""
    x = np.random.default_rng(0).integers(-4, 5, (100, 257)).astype(np.float32)
    half = Tensor(x).cast("bfloat16").realize()
    np.testing.assert_array_equal((half.float() @ half.float().T).numpy(), x @ x.T)
