"""LARS, LAMB, Lion, LinearWarmup by their formulas; settings; schedules; steps that are skipped."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from treadle import JitError, Tensor, jit, nn

Array = np.ndarray
State = dict[str, Array]


def lars(p: Array, g: Array, state: State, step: int) -> Array:
    size, slope = np.linalg.norm(p), np.linalg.norm(g)
    trust = 0.01 * size / (slope + 0.1 * size)
    state["b"] = 0.9 * state.get("b", 0) + (g + 0.1 * p) * trust * 0.5
    return p - state["b"]


def lamb(p: Array, g: Array, state: State, step: int) -> Array:
    state["m"] = 0.9 * state.get("m", 0) + 0.1 * g
    state["v"] = 0.99 * state.get("v", 0) + 0.01 * g * g
    move = state["m"] / (1 - 0.9**step) / (np.sqrt(state["v"] / (1 - 0.99**step)) + 1e-6) + 0.1 * p
    return p - 0.5 * np.linalg.norm(p) / np.linalg.norm(move) * move


def lion(p: Array, g: Array, state: State, step: int) -> Array:
    move = np.sign(0.9 * state.get("m", 0) + 0.1 * g)
    state["m"] = 0.8 * state.get("m", 0) + 0.2 * g
    return p * (1 - 0.5 * 0.1) - 0.5 * move


@pytest.mark.parametrize(
    ("name", "settings", "formula"),
    [
        ("LARS", {"tcoef": 0.01}, lars),
        ("LAMB", {"betas": (0.9, 0.99)}, lamb),
        ("Lion", {"betas": (0.9, 0.8)}, lion),
    ],
)
def test_formulas(name: str, settings: dict[str, Any], formula: Callable[..., Array]) -> None:
    random = np.random.default_rng(0)
    expected = random.normal(size=(2, 3))
    parameter = Tensor(expected, requires_grad=True)
    optimizer = getattr(nn.optim, name)([parameter], lr=0.5, weight_decay=0.1, **settings)
    state: State = {}
    for step in range(1, 5):
        gradient = random.normal(size=(2, 3))
        parameter.grad = Tensor(gradient)
        optimizer.step()
        expected = formula(expected, gradient, state, step)
    np.testing.assert_allclose(parameter.numpy(), expected, rtol=1e-9)


def test_a_parameter_of_zeros_trusts_the_rate() -> None:
    for kind in (nn.optim.LARS, nn.optim.LAMB):
        parameter = Tensor.zeros(2, requires_grad=True)
        parameter.grad = Tensor([1.0, 1.0])
        kind([parameter], lr=0.5).step()
        np.testing.assert_allclose(parameter.numpy(), [-0.5, -0.5], rtol=1e-5)


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("RMSprop", {"alpha": -1}, "alpha=-1 must be a number of at least 0"),
        ("Adadelta", {"rho": 2.0}, r"rho=2.0 must be in 0\.\.1"),
        ("Lion", {"betas": (0.9, 1.0)}, r"betas\[1\]=1.0 must be a number of at least 0 and below"),
        ("NAdam", {"eps": -1.0}, "eps=-1.0 must be"),
        ("Muon", {}, r"Muon is for matrices, not for a parameter of shape \(2,\)"),
    ],
)
def test_settings_that_make_no_sense(name: str, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        getattr(nn.optim, name)([Tensor([1.0, 2.0], requires_grad=True)], **settings)


def optimizer(**settings: Any) -> Any:
    return nn.optim.SGD([Tensor([1.0], requires_grad=True)], lr=1.0, **settings)


def test_a_captured_step_sees_the_rate() -> None:
    weight = Tensor([0.0], requires_grad=True)
    own = nn.optim.SGD([weight], lr=1.0)
    schedule = nn.optim.lr_scheduler.ExponentialLR(own, 0.5)

    @jit
    def step() -> None:
        weight.grad = Tensor([-1.0])
        own.step()

    for _ in range(4):
        step()
        schedule.step()
    assert weight.item() == 1 + 1 / 2 + 1 / 4 + 1 / 8
    assert sum(map(len, step.variants.values())) <= 2, "the first call has no gradient yet"


def test_a_rate_that_is_a_tensor_stays_that_tensor() -> None:
    rate = Tensor(1.0)
    own = nn.optim.SGD([Tensor([1.0], requires_grad=True)], lr=rate)
    schedule = nn.optim.lr_scheduler.StepLR(own, 1, 0.5)
    schedule.step()
    assert own.param_groups[0]["lr"] is rate and rate.item() == 0.5
    assert schedule.get_last_lr() == [0.5]


def test_warmup_and_going_on() -> None:
    own = optimizer()
    schedule = nn.optim.lr_scheduler.LinearWarmup(own, 4, start_factor=0.5)
    rates = []
    for _ in range(6):
        rates.append(own.lr)
        schedule.step()
    assert rates == [0.625, 0.75, 0.875, 1.0, 1.0, 1.0]
    other = optimizer()
    other.load_state_dict(own.state_dict())
    again = nn.optim.lr_scheduler.LinearWarmup(other, 4, last_epoch=1)
    assert other.lr == 0.75 and again.last_epoch == 2
    with pytest.raises(KeyError, match="group 0 has no 'initial_lr'"):
        nn.optim.lr_scheduler.StepLR(optimizer(), 1, last_epoch=3)


def test_schedules_multiply() -> None:
    own = optimizer()
    kinds = nn.optim.lr_scheduler
    first, second = kinds.ExponentialLR(own, 0.5), kinds.StepLR(own, 2, 0.1)
    for _ in range(2):
        first.step()
        second.step()
    np.testing.assert_allclose(own.lr, 0.025)


def test_what_schedules_refuse() -> None:
    kinds = nn.optim.lr_scheduler
    with pytest.raises(TypeError, match=r"StepLR: it takes an optimizer of nn\.optim, not a int"):
        kinds.StepLR(3, 1)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"give total_steps, or epochs and steps_per_epoch"):
        kinds.OneCycleLR(optimizer(), 0.1)
    with pytest.raises(ValueError, match="2 values for an optimizer of 1 groups"):
        kinds.LambdaLR(optimizer(), [abs, abs])
    with pytest.raises(ValueError, match="the cycle is over"):
        schedule = kinds.OneCycleLR(optimizer(momentum=0.5), 0.1, 2)
        for _ in range(4):
            schedule.step()
    schedule = kinds.ExponentialLR(optimizer(), 0.5)
    with pytest.raises(JitError, match=r"ExponentialLR\.step\(\) inside a captured function"):
        jit(lambda x: (schedule.step(), x)[1])(Tensor([1.0]))


def test_a_step_that_is_skipped_changes_nothing() -> None:
    for kind in (nn.optim.Adam, nn.optim.SGD):
        settings = {"momentum": 0.9, "dampening": 0.5} if kind is nn.optim.SGD else {}
        weights = [Tensor([1.0, 2.0], requires_grad=True) for _ in range(2)]
        one, other = (kind([weight], lr=0.1, **settings) for weight in weights)
        for number in range(3):
            for weight, own in zip(weights, (one, other)):
                weight.grad = Tensor([1.0, -1.0]) * (number + 1)
                own.step()
            if number == 1:
                weights[0].grad = Tensor([float("nan"), 1.0])
                one.step(skip=Tensor(True))
        assert weights[0].tolist() == weights[1].tolist()
        first, second = one.state_dict()["state"][0], other.state_dict()["state"][0]
        assert {k: v.tolist() for k, v in first.items()} == {
            k: v.tolist() for k, v in second.items()
        }
