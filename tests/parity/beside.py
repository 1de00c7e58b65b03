"""A function in both libraries: values, and gradients of a real sum over the parts of results."""

from __future__ import annotations

import numpy as np
import pytest

from treadle import Tensor, grad

torch = pytest.importorskip("torch", reason="parity needs PyTorch: make test-full")


def value_and_gradient(ours, theirs, array, rtol=1e-9):
    """Both libraries' values, and their gradients of a real sum with weights over the parts."""
    x = torch.tensor(array, requires_grad=True)
    wanted = theirs(x).resolve_conj().resolve_neg()
    parts = torch.view_as_real(wanted) if wanted.is_complex() else wanted
    weights = np.cos(np.arange(parts.numel())).reshape(parts.shape)
    (parts * torch.tensor(weights)).sum().backward()

    def total(y):
        got = ours(y)
        pair = Tensor.stack([got.real, got.imag], dim=-1) if got.dtype.is_complex else got
        return (pair * Tensor(weights)).sum()

    got = ours(Tensor(array))
    assert str(got.dtype) == str(wanted.dtype).removeprefix("torch.")
    np.testing.assert_allclose(got.numpy(), wanted.detach().numpy(), rtol=rtol, atol=rtol / 100)
    found = grad(total)(Tensor(array)).numpy()
    there = x.grad.resolve_conj().numpy()
    np.testing.assert_allclose(found, there, rtol=rtol, atol=rtol / 100)
