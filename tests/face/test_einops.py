"""The library einops takes tensors, whatever is imported first, and is not imported by us."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import treadle
from treadle import Tensor

einops = pytest.importorskip("einops", reason="einops is not installed")

A = np.arange(2 * 3 * 4 * 5, dtype=np.float32).reshape(2, 3, 4, 5)
B = np.cos(np.arange(15, dtype=np.float32)).reshape(5, 3)

CALLS: list[Callable[[Any, Any], Any]] = [
    lambda a, b: einops.rearrange(a, "b c h w -> b (h w) c"),
    lambda a, b: einops.rearrange(a, "b c (h h2) w -> (b h2) c h w", h2=2),
    lambda a, b: einops.rearrange([a, a], "n b c h w -> b (n c) h w"),
    lambda a, b: einops.rearrange(a, "b c h w -> b c () h w ()"),
    *[
        lambda a, b, how=how: einops.reduce(a, "b c (h 2) w -> w b h", how)
        for how in ("sum", "mean", "max", "min", "prod")
    ],
    lambda a, b: einops.reduce(a > 50, "b c h w -> c", "any"),
    lambda a, b: einops.reduce(a > 50, "b c h w -> c", "all"),
    lambda a, b: einops.reduce(a, "b c h w -> b c () ()", "max"),
    lambda a, b: einops.repeat(b, "x y -> y (x 2) n", n=3),
    lambda a, b: einops.repeat(b, "x y -> n x m y", n=1, m=4),
    lambda a, b: einops.einsum(a, b, "n c h w, w d -> n h d c"),
    lambda a, b: einops.pack([b, b[0]], "* y")[0],
    lambda a, b: einops.unpack(a, [(3,), (2,)], "b c h *")[1],
    lambda a, b: einops.unpack(einops.rearrange(b, "x y -> (x y)"), [(5,), (2, 5)], "*")[1],
]


@pytest.mark.parametrize("call", CALLS)
def test_its_functions(call: Callable[[Any, Any], Any]) -> None:
    found = call(Tensor(A), Tensor(B))
    expected = call(A, B)
    assert isinstance(found, Tensor)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-5)


def test_what_it_says_of_a_tensor() -> None:
    assert einops.parse_shape(Tensor(A), "b c _ w") == {"b": 2, "c": 3, "w": 5}
    assert isinstance(einops.asnumpy(Tensor(B)), np.ndarray)
    with pytest.raises(einops.EinopsError, match="Shape mismatch"):
        einops.rearrange(Tensor(A), "(b k) c h w -> b k c h w", k=3)


def test_gradients_and_capturing() -> None:
    x = Tensor(B, requires_grad=True)
    einops.reduce(x * x, "a b -> b", "sum")[1].backward()
    expected = np.zeros_like(B)
    expected[:, 1] = 2 * B[:, 1]
    np.testing.assert_allclose(x.grad.numpy(), expected)
    swapped = treadle.jit(lambda x: einops.rearrange(x, "a b -> b a") + 1)
    for _ in range(3):
        np.testing.assert_allclose(swapped(Tensor(B)).numpy(), B.T + 1)


@pytest.mark.parametrize("order", ["einops, treadle", "treadle, einops"])
def test_either_may_be_imported_first(order: str) -> None:
    program = f"""
import sys
import {order}
x = treadle.Tensor([[1, 2, 3], [4, 5, 6]])
assert einops.rearrange(x, "a b -> b a").tolist() == [[1, 4], [2, 5], [3, 6]]
assert "Waiting" not in str(sys.meta_path)
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_it_is_not_imported_by_us() -> None:
    program = "import sys, treadle; treadle.Tensor([1]).numpy(); assert 'einops' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)
