"""Gradients through random index expressions, read and written, against PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from treadle import Tensor

torch = pytest.importorskip("torch", reason="parity needs PyTorch: make test-full")
pytestmark = pytest.mark.full

RNG = np.random.default_rng(17)
SHAPE = (4, 5, 6)


def item(size: int) -> Any:
    """An int, a slice forwards (PyTorch has no other), a row of indices with repeats, or a mask."""
    match RNG.integers(5):
        case 0:
            return int(RNG.integers(-size, size))
        case 1:
            return slice(int(RNG.integers(-size, size)), None, int(RNG.integers(1, 3)))
        case 2:
            return RNG.integers(-size, size, 3)
        case 3:
            return RNG.permutation(size) < 3  # of as many elements as a row of indices has
        case _:
            return slice(None)


def index() -> tuple[Any, ...]:
    items = [item(size) for size in SHAPE[: RNG.integers(1, 4)]]
    place = int(RNG.integers(len(items) + 1))
    return (*items[:place], *([None] if RNG.random() < 0.2 else []), *items[place:])


def given(key: tuple[Any, ...], make: Any) -> tuple[Any, ...]:
    return tuple([make(k) if isinstance(k, np.ndarray) else k for k in key])


@pytest.mark.parametrize("number", range(40))
def test_gradients(number: int) -> None:
    key = index()
    x = RNG.normal(size=SHAPE)
    try:
        found = x[key]
    except IndexError:
        pytest.skip("does not broadcast")
    weight, value = RNG.normal(size=found.shape), RNG.normal(size=found.shape)
    repeats = any(
        isinstance(k, np.ndarray) and k.dtype != bool and np.unique(k % n).size < 3
        for k, n in zip([k for k in key if k is not None], SHAPE)
    )

    mine = Tensor(x, requires_grad=True)
    theirs = torch.tensor(x, requires_grad=True)
    same_place = theirs[given(key, torch.tensor)].detach().numpy()
    if same_place.shape != found.shape or (same_place != found).any():
        return  # an int apart from a tensor: the dimension stands elsewhere (docs/differences.md)
    (mine[given(key, Tensor)] * Tensor(weight)).sum().backward()
    (theirs[given(key, torch.tensor)] * torch.tensor(weight)).sum().backward()
    np.testing.assert_allclose(mine.grad.numpy(), theirs.grad.numpy(), atol=1e-12)
    if repeats:  # PyTorch gives every value of one place the gradient; here the last has it
        return

    written, other = Tensor(x, requires_grad=True), torch.tensor(x, requires_grad=True)
    put, put_theirs = Tensor(value, requires_grad=True), torch.tensor(value, requires_grad=True)
    whole = RNG.normal(size=SHAPE)
    result = written * 2
    result[given(key, Tensor)] = put
    (result * Tensor(whole)).sum().backward()
    expected = other * 2
    expected[given(key, torch.tensor)] = put_theirs
    (expected * torch.tensor(whole)).sum().backward()
    left = np.zeros(SHAPE) if written.grad is None else written.grad.numpy()  # None: all replaced
    np.testing.assert_allclose(left, other.grad.numpy(), atol=1e-12)
    np.testing.assert_allclose(put.grad.numpy(), put_theirs.grad.numpy(), atol=1e-12)
