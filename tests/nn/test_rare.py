"""Layers that come to their parameters late, and what else is rare: without PyTorch."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import treadle
import treadle.nn.functional as F
from treadle import JitError, Tensor, jit, nn
from treadle.elsewhere import OF_PARTS

LAZY = {
    "LazyLinear": ((4,), (2, 3)),
    "LazyConv1d": ((4, 2), (2, 3, 5)),
    "LazyConv2d": ((4, 2), (2, 3, 5, 5)),
    "LazyConv3d": ((4, 2), (2, 3, 5, 5, 5)),
    "LazyConvTranspose1d": ((4, 2), (2, 3, 5)),
    "LazyConvTranspose2d": ((4, 2), (2, 3, 5, 5)),
    "LazyConvTranspose3d": ((4, 2), (2, 3, 5, 5, 5)),
    "LazyBatchNorm1d": ((), (2, 3)),
    "LazyBatchNorm2d": ((), (2, 3, 5, 5)),
    "LazyBatchNorm3d": ((), (2, 3, 2, 2, 2)),
    "LazyInstanceNorm1d": ((), (2, 3, 5)),
    "LazyInstanceNorm2d": ((), (2, 3, 5, 5)),
    "LazyInstanceNorm3d": ((), (2, 3, 2, 2, 2)),
}


@pytest.mark.parametrize("name", LAZY)
def test_a_layer_that_learns_its_inputs(name: str) -> None:
    arguments, shape = LAZY[name]
    layer = getattr(nn, name)(*arguments).eval()
    plain = getattr(nn, name.removeprefix("Lazy"))(3, *arguments)
    layer(Tensor.ones(shape))
    assert type(layer) is type(plain)
    assert not layer.training
    shapes = {key: value.shape for key, value in plain.state_dict().items()}
    assert {key: value.shape for key, value in layer.state_dict().items()} == shapes
    assert repr(layer) == repr(plain)


def test_before_the_first_call_there_are_no_parameters_to_miss() -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.LazyLinear(2, bias=False))
    assert "LazyLinear(2, bias=False)" in repr(model)
    copies = copy.deepcopy(model).train()
    for use in (lambda: list(model.parameters()), model.state_dict, model.half):
        with pytest.raises(RuntimeError, match="LazyLinear '2' makes its parameters at its first"):
            use()
    with pytest.raises(JitError, match="call the model once outside of the captured function"):
        jit(copies)(Tensor.ones(5, 3))
    model(Tensor.ones(5, 3))
    nn.optim.SGD(model.parameters(), lr=0.1)
    assert jit(model)(Tensor.ones(5, 3)).shape == (5, 2)
    assert model[2].weight.shape == (2, 4)


def test_a_convolution_of_one_image_without_a_batch() -> None:
    assert nn.LazyConv2d(4, 2)(Tensor.ones(3, 5, 5)).shape == (4, 4, 4)


def test_instance_norm_of_any_dimensions() -> None:
    x = np.random.default_rng(0).normal(size=(2, 3, 4, 5)).astype(np.float32)
    found = nn.InstanceNorm(3, affine=True)(Tensor(x)).numpy()
    mean, var = x.mean((2, 3), keepdims=True), x.var((2, 3), keepdims=True)
    np.testing.assert_allclose(found, (x - mean) / np.sqrt(var + 1e-5), rtol=1e-4, atol=1e-5)
    assert nn.InstanceNorm(3)(Tensor(x[..., 0])).shape == (2, 3, 4)
    with pytest.raises(ValueError, match=r"x of shape \(2, 3\) must have at least 3 dimensions"):
        nn.InstanceNorm(3)(Tensor.ones(2, 3))


@pytest.mark.parametrize("shape", [(3, 5), (5, 3), (4, 4), (3, 2, 2)])
def test_orthogonal_weights(shape: tuple[int, ...]) -> None:
    weight = nn.init.orthogonal_(Tensor.zeros(shape), gain=2.0).numpy().reshape(shape[0], -1)
    short = weight if weight.shape[0] <= weight.shape[1] else weight.T
    np.testing.assert_allclose(short @ short.T, 4 * np.eye(len(short)), atol=1e-4)


def test_truncated_normal_weights() -> None:
    treadle.manual_seed(0)
    weight = nn.init.trunc_normal_(Tensor.zeros(4000), 0.5, 1.0, -0.5, 2.0).numpy()
    assert weight.min() >= -0.5
    assert weight.max() <= 2.0
    # the mean of a normal distribution between these bounds, by its densities there
    density = np.exp(-np.square([-1.0, 1.5]) / 2) / np.sqrt(2 * np.pi)
    inside = 0.9331927987 - 0.1586552539
    assert abs(weight.mean() - (0.5 + (density[0] - density[1]) / inside)) < 0.05


def test_sparse_weights() -> None:
    weight = nn.init.sparse_(Tensor.ones(10, 6), 0.25, std=0.1)
    assert ((weight == 0).sum(0) == 3).all()


def test_a_second_parametrization_and_back() -> None:
    class Doubled(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x * 2

    layer = nn.Linear(3, 2)
    before = layer.weight.numpy()
    register = nn.utils.parametrize.register_parametrization
    register(register(layer, "weight", Doubled()), "weight", Doubled())
    register(layer, "bias", Doubled())
    assert nn.utils.parametrize.is_parametrized(layer, "bias")
    np.testing.assert_allclose(layer.weight.numpy(), 4 * before)
    layer(Tensor.ones(1, 3)).sum().backward()
    original = layer.parametrizations["weight"].original
    np.testing.assert_allclose(original.grad.numpy(), np.full((2, 3), 4.0))
    remove = nn.utils.parametrize.remove_parametrizations
    remove(layer, "weight")
    np.testing.assert_allclose(layer.weight.numpy(), 4 * before)
    assert type(layer).__name__ == "ParametrizedLinear"
    remove(layer, "bias", leave_parametrized=False)
    assert type(layer) is nn.Linear
    assert {*layer.state_dict()} == {"weight", "bias"}


def test_quasi_newton_needs_a_closure_and_says_so() -> None:
    weight = Tensor([1.0], requires_grad=True)
    optimizer = nn.optim.LBFGS([weight])
    with pytest.raises(TypeError, match="needs a function that computes the loss again"):
        optimizer.step()
    with pytest.raises(ValueError, match="line_search_fn='armijo' is not None or 'strong_wolfe'"):
        nn.optim.LBFGS([weight], line_search_fn="armijo")


def test_functions_under_other_names() -> None:
    x = Tensor([-1.0, 2.0])
    assert F.relu_(x) is x
    assert x.tolist() == [0.0, 2.0]
    values, places = F.max_pool1d_with_indices(Tensor([[1.0, 3.0, 2.0, 0.0]]), 2)
    assert (values.tolist(), places.tolist()) == ([[3.0, 2.0]], [[1, 2]])


@pytest.mark.parametrize(
    ("module", "name"), [(module, name) for module, names in OF_PARTS.items() for name in names]
)
def test_what_is_elsewhere_says_where(module: str, name: str) -> None:
    place: Any = treadle
    for part in module.split(".")[1:]:
        place = getattr(place, part)
    with pytest.raises(AttributeError, match="write "):
        getattr(place, name)
    assert not hasattr(place, name)
    assert not hasattr(place, "no_such_name")
