"""Rare layers, initialisers and reparametrizations against PyTorch's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import treadle.nn.functional as F
from treadle import Tensor, jit, nn

torch = pytest.importorskip("torch", reason="parity needs PyTorch: make test-full")
pytestmark = pytest.mark.full
RANDOM = np.random.default_rng(5)


def same(found: Any, expected: Any, rtol: float = 1e-9) -> None:
    np.testing.assert_allclose(found.numpy(), expected.detach().numpy(), rtol=rtol, atol=1e-12)


@pytest.mark.parametrize("dimensions", [2, 3])
def test_fractional_pools(dimensions: int) -> None:
    x = RANDOM.normal(size=(2, 3, 9, 8, 7)[: dimensions + 2])
    samples = RANDOM.uniform(size=(2, 3, dimensions))
    name = f"fractional_max_pool{dimensions}d"
    for settings in (
        {"output_size": 4},
        {"output_ratio": 0.6},
        {"output_size": (1, 2, 3)[:dimensions]},
    ):
        mine, its = Tensor(x, requires_grad=True), torch.tensor(x, requires_grad=True)
        if "output_ratio" in settings:
            settings = {"output_ratio": (0.6,) * dimensions}
        found = getattr(F, name)(
            mine, 2, **settings, return_indices=True, _random_samples=Tensor(samples)
        )
        expected = getattr(torch.nn.functional, name)(
            its, 2, **settings, return_indices=True, _random_samples=torch.tensor(samples)
        )
        for a, b in zip(found, expected):
            same(a, b)
        (found[0] ** 2).sum().backward()
        (expected[0] ** 2).sum().backward()
        same(mine.grad, its.grad)


@pytest.mark.parametrize("p", [1.0, 2.0, 3.0])
def test_distances_of_pairs(p: float) -> None:
    x = RANDOM.normal(size=(5, 3))
    mine, its = Tensor(x, requires_grad=True), torch.tensor(x, requires_grad=True)
    found, expected = F.pdist(mine, p), torch.nn.functional.pdist(its, p)
    same(found, expected)
    found.exp().sum().backward()
    expected.exp().sum().backward()
    same(mine.grad, its.grad)


@pytest.mark.parametrize("layer", ["Linear", "Conv2d", "ConvTranspose2d"])
@pytest.mark.parametrize("dim", [0, 1, None])
def test_weight_norm(layer: str, dim: int | None) -> None:
    arguments = (3, 4) if layer == "Linear" else (3, 4, 2)
    x = RANDOM.normal(size=(2, 3) if layer == "Linear" else (2, 3, 5, 5))
    its = torch.nn.utils.parametrizations.weight_norm(
        getattr(torch.nn, layer)(*arguments).double(), dim=dim
    )
    ours = nn.utils.parametrizations.weight_norm(getattr(nn, layer)(*arguments).double(), dim=dim)
    assert type(ours).__name__ == type(its).__name__
    shapes = {key: tuple(value.shape) for key, value in its.state_dict().items()}
    assert {key: value.shape for key, value in ours.state_dict().items()} == shapes
    ours.load_state_dict({key: value.numpy() for key, value in its.state_dict().items()})
    same(ours.weight, its.weight)
    for run in (ours, jit(ours)):
        same(run(Tensor(x)), its(torch.tensor(x)))
    (ours(Tensor(x)) ** 2).sum().backward()
    (its(torch.tensor(x)) ** 2).sum().backward()
    for (name, a), (other, b) in zip(ours.named_parameters(), its.named_parameters()):
        assert name == other
        same(a.grad, b.grad)
    before = ours.weight.numpy()
    nn.utils.remove_weight_norm(ours)
    assert type(ours) is getattr(nn, layer)
    assert {*ours.state_dict()} == {"weight", "bias"}
    np.testing.assert_allclose(ours.weight.numpy(), before)


@pytest.mark.parametrize("layer", ["Linear", "ConvTranspose2d"])
def test_spectral_norm(layer: str) -> None:
    arguments = (3, 4) if layer == "Linear" else (3, 4, 2)
    x = RANDOM.normal(size=(2, 3) if layer == "Linear" else (2, 3, 5, 5))
    its = torch.nn.utils.parametrizations.spectral_norm(
        getattr(torch.nn, layer)(*arguments).double()
    )
    ours = nn.utils.parametrizations.spectral_norm(getattr(nn, layer)(*arguments).double())
    assert {*ours.state_dict()} == {*its.state_dict()}
    ours.load_state_dict({key: value.numpy() for key, value in its.state_dict().items()})
    for training in (True, True, False):
        ours.train(training)
        its.train(training)
        ours.zero_grad()
        its.zero_grad()
        found, expected = ours(Tensor(x)), its(torch.tensor(x))
        same(found, expected)
        (found**2).sum().backward()
        (expected**2).sum().backward()
        for (_, a), (_, b) in zip(ours.named_parameters(), its.named_parameters()):
            same(a.grad, b.grad, 1e-7)
        for key, value in its.state_dict().items():
            same(ours.state_dict()[key], value)


def test_norms_and_vectors() -> None:
    arrays = [RANDOM.normal(size=shape) for shape in ((2, 3), (4,), ())]
    mine, its = list(map(Tensor, arrays)), list(map(torch.tensor, arrays))
    same(nn.utils.parameters_to_vector(mine), torch.nn.utils.parameters_to_vector(its))
    for p in (1.0, 2.0, 3.5, float("inf")):
        same(nn.utils.get_total_norm(mine, p), torch.nn.utils.get_total_norm(its, p))


def test_a_batch_norm_folded_into_a_convolution() -> None:
    x = RANDOM.normal(size=(2, 3, 6, 6))
    for kind, transpose in (("Conv2d", False), ("ConvTranspose2d", True)):
        conv, bn = getattr(nn, kind)(3, 4, 3, bias=False).double(), nn.BatchNorm2d(4).double()
        bn(conv(Tensor(x)))
        conv.eval()
        bn.eval()
        fused = nn.utils.fuse_conv_bn_eval(conv, bn, transpose)
        np.testing.assert_allclose(
            fused(Tensor(x)).numpy(), bn(conv(Tensor(x))).numpy(), rtol=1e-9, atol=1e-12
        )


@pytest.mark.parametrize("side", ["left", "right"])
def test_padded_sequences(side: str) -> None:
    arrays = [RANDOM.normal(size=(size, 2)) for size in (3, 1, 0, 2)]
    rnn = torch.nn.utils.rnn
    for batch_first in (False, True):
        found = nn.utils.rnn.pad_sequence(list(map(Tensor, arrays)), batch_first, 9.0, side)
        expected = rnn.pad_sequence(list(map(torch.tensor, arrays)), batch_first, 9.0, side)
        same(found, expected)


def test_dirac_is_theirs() -> None:
    for shape, groups in (((4, 2, 3), 2), ((3, 5, 3, 4), 1), ((2, 2, 3, 3, 3), 1)):
        same(
            nn.init.dirac_(Tensor.zeros(shape), groups),
            torch.nn.init.dirac_(torch.zeros(shape), groups),
        )
