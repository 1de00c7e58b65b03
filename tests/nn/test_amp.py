"""Mixed precision: dtypes inside autocast, captured functions, and the scale of losses."""

import numpy as np
import pytest

from treadle import Tensor, jit, nn
from treadle.graph.public import METHODS
from treadle.nn.amp import GradScaler, autocast
from treadle.precision import NARROW, WIDE

X = Tensor([[1.0, 2.0], [3.0, 4.0]])


def test_the_names_are_public() -> None:
    known = set(METHODS)
    assert known >= NARROW - {"addmv", "addbmm", "baddbmm", "addr", "einsum"}
    assert not NARROW & WIDE


def test_products_are_narrow_and_sums_wide() -> None:
    with autocast():
        half = X @ X
        assert half.dtype.name == "bfloat16"
        assert X.linear(X, Tensor([1.0, 2.0])).dtype.name == "bfloat16"
        assert (half + 1).dtype.name == "bfloat16" and (X + 1).dtype.name == "float32"
        assert half.softmax(1).dtype.name == half.sum().dtype.name == "float32"
        assert half.relu().dtype.name == "bfloat16"
        assert X.double().matmul(X.double()).dtype.name == "float64"
        with autocast(enabled=False):
            assert (X @ X).dtype.name == "float32"
        with autocast(dtype="float16"):
            assert (X @ X).dtype.name == "float16"
        assert (X @ X).dtype.name == "bfloat16"
    assert (X @ X).dtype.name == "float32"
    with pytest.raises(ValueError, match="dtype is float16 or bfloat16, not float64"):
        autocast(dtype="float64")
    with pytest.raises(ValueError, match="cuda"):
        autocast("cuda")


def test_weights_stay_wide_and_so_do_their_gradients() -> None:
    layer = nn.Linear(2, 3)
    with autocast():
        loss = layer(X).square().mean()
    loss.backward()
    assert layer.weight.dtype.name == "float32"
    assert layer.weight.grad is not None and layer.weight.grad.dtype.name == "float32"


@pytest.mark.parametrize("kind", [nn.RNN, nn.LSTM, nn.GRU])
def test_recurrent_layers_carry_wide_states(kind: type[nn.Module]) -> None:
    layer = kind(2, 3)
    with autocast():
        narrow, _ = layer(X.reshape(2, 1, 2))
    assert narrow.dtype.name == "float32"
    np.testing.assert_allclose(narrow.numpy(), layer(X.reshape(2, 1, 2))[0].numpy(), atol=0.05)


def test_a_captured_function_is_traced_for_each() -> None:
    product = jit(lambda x: x @ x)
    assert product(X).dtype.name == "float32"
    with autocast():
        assert product(X).dtype.name == "bfloat16"
        assert product(X).dtype.name == "bfloat16"
    assert product(X).dtype.name == "float32"
    inside = jit(autocast(dtype="float16")(lambda x: x @ x))
    assert inside(X).dtype.name == "float16"


def steps(captured: bool) -> tuple[list[float], list[float], list[int]]:
    """Five steps of which the third has a gradient that is not finite: weights, scales, and how
    many steps count."""
    weight = Tensor([1.0], requires_grad=True)
    optimizer = nn.optim.Adam([weight], lr=0.5)
    scaler = GradScaler(init_scale=8.0, growth_interval=2)

    def step(factor: Tensor) -> None:
        optimizer.zero_grad()
        scaler.scale((weight * factor).sum()).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_([weight], 1.0)
        scaler.step(optimizer)
        scaler.update()

    run = jit(step) if captured else step
    weights, scales, counts = [], [], []
    for factor in (1.0, 1.0, float("inf"), 1.0, 1.0):
        run(Tensor([factor]))
        weights.append(weight.item())
        scales.append(scaler.get_scale())
        counts.append(int(optimizer.state_dict()["state"][0]["step"].item()))
    return weights, scales, counts  # type: ignore[return-value]


@pytest.mark.parametrize("captured", [False, True])
def test_a_step_that_is_not_finite_is_not_made(captured: bool) -> None:
    weights, scales, counts = steps(captured)
    np.testing.assert_allclose(weights, [0.5, 0.0, 0.0, -0.5, -1.0], atol=1e-5)
    assert scales == [8.0, 16.0, 8.0, 8.0, 16.0]
    assert counts == [1, 2, 2, 3, 4]


def test_small_gradients_survive_float16() -> None:
    weight = Tensor([1.0], dtype="float16", requires_grad=True)
    scaler = GradScaler(init_scale=2.0**10)
    scaler.scale((weight * 2.0**-20).sum() * 2.0**-10).backward()
    assert weight.grad is not None and weight.grad.item() == 2.0**-20
    assert GradScaler(enabled=False).scale(X) is X
    assert [each.tolist() for each in scaler.scale([Tensor(1.0), Tensor(2.0)])] == [1024, 2048]


def test_what_the_scaler_refuses_and_keeps() -> None:
    weight = Tensor([1.0], requires_grad=True)
    optimizer, scaler = nn.optim.SGD([weight], lr=0.5), GradScaler()
    with pytest.raises(RuntimeError, match="no gradients were unscaled"):
        scaler.update()
    with pytest.raises(RuntimeError, match="no parameter of this optimizer has a gradient"):
        scaler.step(optimizer)
    scaler.scale(weight.sum()).backward()
    scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match="already called for this optimizer since update"):
        scaler.unscale_(optimizer)
    scaler.step(optimizer)
    with pytest.raises(RuntimeError, match="already called for this optimizer since update"):
        scaler.step(optimizer)
    scaler.update(4.0)
    other = GradScaler()
    other.load_state_dict(scaler.state_dict())
    assert other.get_scale() == 4.0 and other.state_dict() == scaler.state_dict()
    with pytest.raises(RuntimeError, match="not enabled"):
        other.load_state_dict({})
    with pytest.raises(ValueError, match="growth_factor=1"):
        GradScaler(growth_factor=1)
