"""Optimizers and schedules beside PyTorch's: twenty steps, eagerly and captured, and state that
goes from one to the other."""

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

from treadle import Tensor, jit, nn, no_grad

torch = pytest.importorskip("torch", reason="parity needs PyTorch: make test-full")
pytestmark = pytest.mark.full

CASES: list[tuple[str, dict[str, Any]]] = [
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1, "maximize": True}),
    ("Adam", {"lr": 0.1, "betas": (0.8, 0.9), "amsgrad": True, "weight_decay": 0.1}),
    ("AdamW", {"lr": 0.1, "amsgrad": True, "maximize": True}),
    ("RMSprop", {"lr": 0.01}),
    ("RMSprop", {"lr": 0.01, "alpha": 0.9, "momentum": 0.5, "centered": True, "weight_decay": 0.1}),
    ("Adagrad", {"lr": 0.1}),
    ("Adagrad", {"lr": 0.1, "lr_decay": 0.1, "initial_accumulator_value": 0.5, "maximize": True}),
    ("Adadelta", {}),
    ("Adadelta", {"lr": 0.5, "rho": 0.8, "weight_decay": 0.1}),
    ("Adamax", {}),
    ("Adamax", {"lr": 0.1, "betas": (0.7, 0.9), "weight_decay": 0.1}),
    ("NAdam", {}),
    ("NAdam", {"lr": 0.1, "momentum_decay": 0.1, "weight_decay": 0.1}),
    ("NAdam", {"lr": 0.1, "weight_decay": 0.1, "decoupled_weight_decay": True, "maximize": True}),
    ("RAdam", {"lr": 0.1}),
    ("RAdam", {"lr": 0.1, "betas": (0.7, 0.8), "weight_decay": 0.1}),
    ("RAdam", {"lr": 0.1, "weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("Rprop", {}),
    ("Rprop", {"lr": 0.1, "etas": (0.4, 1.5), "step_sizes": (0.05, 0.3), "maximize": True}),
    ("ASGD", {"lr": 0.1}),
    ("ASGD", {"lr": 0.1, "lambd": 0.1, "alpha": 0.5, "t0": 3, "weight_decay": 0.1}),
]
LAST_OF_EACH = dict(CASES)


def limit(name: str) -> float:
    """PyTorch keeps the product of NAdam's momenta, and the rates of ASGD, in float32."""
    return 1e-6 if name in ("NAdam", "ASGD") else 1e-9


def both(name: str, settings: dict[str, Any], dtype: str = "float64") -> tuple[Any, ...]:
    first = np.random.default_rng(0).normal(size=(3, 4)).astype(dtype)
    ours = Tensor(first, requires_grad=True)
    theirs = torch.tensor(first, requires_grad=True)
    own = getattr(nn.optim, name)([ours], **settings)
    other = getattr(torch.optim, name)([theirs], **settings)
    return ours, theirs, own, other


def their_step(parameter: Any, optimizer: Any, gradient: np.ndarray) -> None:
    parameter.grad = torch.tensor(gradient)
    optimizer.step()


def gradients(count: int) -> np.ndarray:
    return np.random.default_rng(1).normal(size=(count, 3, 4))


@pytest.mark.parametrize("captured", [False, True], ids=["eager", "jit"])
@pytest.mark.parametrize(("name", "settings"), CASES)
def test_twenty_steps(name: str, settings: dict[str, Any], captured: bool) -> None:
    ours, theirs, own, other = both(name, settings)

    def step(gradient: Tensor) -> None:
        ours.grad = gradient
        own.step()

    run: Callable[[Tensor], None] = jit(step) if captured else step
    for number, gradient in enumerate(gradients(20)):
        run(Tensor(gradient))
        their_step(theirs, other, gradient)
        if number == 9:
            own.lr = other.param_groups[0]["lr"] = 0.05
    np.testing.assert_allclose(ours.numpy(), theirs.detach().numpy(), rtol=limit(name), atol=1e-12)


@pytest.mark.parametrize(("name", "settings"), LAST_OF_EACH.items())
def test_state_goes_both_ways(name: str, settings: dict[str, Any]) -> None:
    _, theirs, _, other = both(name, settings)
    steps = gradients(6)
    for gradient in steps[:3]:
        their_step(theirs, other, gradient)
    ours = Tensor(theirs.detach().numpy(), requires_grad=True)
    own = getattr(nn.optim, name)([ours], **settings)
    own.load_state_dict(other.state_dict())
    for gradient in steps[3:]:
        ours.grad = Tensor(gradient)
        own.step()
        their_step(theirs, other, gradient)
    np.testing.assert_allclose(ours.numpy(), theirs.detach().numpy(), rtol=limit(name), atol=1e-12)
    state, expected = own.state_dict()["state"], other.state_dict()["state"]
    assert set(state[0]) == set(expected[0])
    for key, value in expected[0].items():
        np.testing.assert_allclose(state[0][key].numpy(), value.numpy(), rtol=1e-6)
    their_state = {
        "state": {0: {key: torch.tensor(value.numpy()) for key, value in state[0].items()}},
        "param_groups": other.state_dict()["param_groups"],
    }
    other.load_state_dict(their_state)
    their_step(theirs, other, steps[0])
    ours.grad = Tensor(steps[0])
    own.step()
    np.testing.assert_allclose(ours.numpy(), theirs.detach().numpy(), rtol=1e-6)


@pytest.mark.parametrize("fn", [None, "match_rms_adamw"])
@pytest.mark.parametrize("nesterov", [False, True])
def test_muon_is_theirs_but_for_bfloat16(fn: str | None, nesterov: bool) -> None:
    settings = {"lr": 0.1, "nesterov": nesterov, "adjust_lr_fn": fn}
    ours, theirs, own, other = both("Muon", settings, "float32")
    for gradient in np.float32(gradients(10)):
        ours.grad = Tensor(gradient)
        own.step()
        their_step(theirs, other, gradient)
    np.testing.assert_allclose(ours.numpy(), theirs.detach().numpy(), atol=0.03)


# ---- schedules -----------------------------------------------------------------------------------
def of(name: str, *args: Any, **named: Any) -> Callable[[Any, Any], Any]:
    """A schedule, made by either library."""
    return lambda kit, optimizer: getattr(kit, name)(optimizer, *args, **named)


def sequence(kit: Any, optimizer: Any) -> Any:
    parts = [
        kit.LinearLR(optimizer, 0.1, total_iters=3),
        kit.CosineAnnealingLR(optimizer, 5),
        kit.ExponentialLR(optimizer, 0.9),
    ]
    return kit.SequentialLR(optimizer, parts, [3, 9])


def chained(kit: Any, optimizer: Any) -> Any:
    parts = [kit.ConstantLR(optimizer, 0.5, 4), kit.ExponentialLR(optimizer, 0.9)]
    return kit.ChainedScheduler(parts)


SCHEDULES = {
    "StepLR": of("StepLR", 3, 0.5),
    "MultiStepLR": of("MultiStepLR", [2, 5, 5, 9], 0.5),
    "ExponentialLR": of("ExponentialLR", 0.9),
    "ConstantLR": of("ConstantLR", 0.5, 4),
    "LinearLR": of("LinearLR", 0.25, 0.75, 6),
    "PolynomialLR": of("PolynomialLR", 8, 2.0),
    "CosineAnnealingLR": of("CosineAnnealingLR", 5, 0.01),
    "CosineAnnealingWarmRestarts": of("CosineAnnealingWarmRestarts", 3, 2, 0.01),
    "LambdaLR": of("LambdaLR", lambda n: 0.9**n),
    "MultiplicativeLR": of("MultiplicativeLR", [lambda n: 0.9, lambda n: 1 / n]),
    "OneCycleLR": of("OneCycleLR", [0.5, 0.2], 20),
    "OneCycleLR, linear": of("OneCycleLR", 0.5, epochs=4, steps_per_epoch=5, three_phase=True,
                             anneal_strategy="linear"),
    "SequentialLR": sequence,
    "CyclicLR": of("CyclicLR", [0.1, 0.2], 1.0, 3, 4, "triangular2"),
    "CyclicLR, falling": of("CyclicLR", 0.1, 1.0, 3, mode="exp_range", gamma=0.9,
                            base_momentum=0.5),
    "ChainedScheduler": chained,
}  # fmt: skip


def optimizers(kind: str = "SGD", **settings: Any) -> tuple[Any, Any]:
    found = []
    for kit, make in ((nn.optim, lambda: Tensor([1.0], requires_grad=True)),
                      (torch.optim, lambda: torch.ones(1, requires_grad=True))):  # fmt: skip
        groups = [{"params": [make()], "lr": 0.1}, {"params": [make()], "lr": 0.3}]
        found.append(getattr(kit, kind)(groups, **settings))
    return found[0], found[1]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize("kind", ["SGD", "Adam"])
def test_schedules(name: str, kind: str) -> None:
    settings = {"momentum": 0.9} if kind == "SGD" else {}
    ours, theirs = optimizers(kind, **settings)
    own = SCHEDULES[name](nn.optim.lr_scheduler, ours)
    other = SCHEDULES[name](torch.optim.lr_scheduler, theirs)
    for step in range(20):
        rates = [group["lr"] for group in ours.param_groups]
        np.testing.assert_allclose(rates, [g["lr"] for g in theirs.param_groups], rtol=1e-12)
        np.testing.assert_allclose(own.get_last_lr(), other.get_last_lr(), rtol=1e-12)
        for key in ("momentum", "betas"):
            if key in ours.defaults:
                np.testing.assert_allclose(
                    ours.param_groups[0][key], theirs.param_groups[0][key], rtol=1e-12
                )
        if step == 10 and "Lambda" not in name and "Multiplicative" not in name:
            again, _ = optimizers(kind, **settings)
            again.load_state_dict(ours.state_dict())
            made = SCHEDULES[name](nn.optim.lr_scheduler, again)
            again.load_state_dict(ours.state_dict())
            made.load_state_dict(own.state_dict())
            ours, own = again, made
        if step < 19:
            own.step()
            other.step()


@pytest.mark.parametrize("mode", ["min", "max"])
@pytest.mark.parametrize("threshold_mode", ["rel", "abs"])
def test_a_plateau(mode: str, threshold_mode: str) -> None:
    ours, theirs = optimizers()
    settings = {
        "mode": mode, "factor": 0.5, "patience": 2, "threshold": 0.1, "cooldown": 1,
        "threshold_mode": threshold_mode, "min_lr": [0.02, 0.0],
    }  # fmt: skip
    own = nn.optim.lr_scheduler.ReduceLROnPlateau(ours, **settings)
    other = torch.optim.lr_scheduler.ReduceLROnPlateau(theirs, **settings)
    for value in np.random.default_rng(0).uniform(1, 2, 40):
        own.step(Tensor(value))
        other.step(float(np.float32(value)))
        rates = [group["lr"] for group in ours.param_groups]
        assert rates == [group["lr"] for group in theirs.param_groups]


@pytest.mark.parametrize("strategy", ["cos", "linear"])
def test_the_rate_of_averaging_after_another_schedule(strategy: str) -> None:
    ours, theirs = optimizers()
    rates = []
    for optimizer, schedules, averaging in (
        (ours, nn.optim.lr_scheduler, nn.optim.swa_utils),
        (theirs, torch.optim.lr_scheduler, torch.optim.swa_utils),
    ):
        first = schedules.ExponentialLR(optimizer, 0.9)
        second = averaging.SWALR(optimizer, [0.05, 0.2], 4, strategy)
        rates.append([])
        for epoch in range(12):
            optimizer_step = first if epoch < 4 else second
            with pytest.warns() if optimizer is theirs and not epoch else nullcontext():
                optimizer_step.step()
            rates[-1].append([group["lr"] for group in optimizer.param_groups])
    np.testing.assert_allclose(rates[0], rates[1], rtol=1e-12)


@pytest.mark.parametrize("decay", [None, 0.8])
def test_averaged_models(decay: float | None) -> None:
    own, other = nn.Linear(3, 2).double(), torch.nn.Linear(3, 2).double()
    ours, theirs = nn.optim.swa_utils, torch.optim.swa_utils
    mine = ours.AveragedModel(own, avg_fn=decay and ours.get_ema_avg_fn(decay))
    its = theirs.AveragedModel(other, avg_fn=decay and theirs.get_ema_avg_fn(decay))
    for weight in np.random.default_rng(3).normal(size=(4, 2, 3)):
        with no_grad(), torch.no_grad():
            own.weight.assign(Tensor(weight))
            other.weight.copy_(torch.tensor(weight))
        mine.update_parameters(own)
        its.update_parameters(other)
    assert set(mine.state_dict()) == set(its.state_dict())
    found, expected = mine.module.weight.numpy(), its.module.weight.detach().numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("search", [None, "strong_wolfe"])
def test_quasi_newton_steps(search: str | None) -> None:
    """Without a search the same path; with one (the interpolation is our own) the same minimum."""
    start = np.array([[-1.2, 1.0], [0.5, 2.0]])
    ours = Tensor(start, requires_grad=True)
    theirs = torch.tensor(start, requires_grad=True)
    settings = {"lr": 0.002 if search is None else 1, "max_iter": 12 if search is None else 80}
    settings |= {"history_size": 5, "line_search_fn": search}
    for weight, kit in ((ours, nn.optim), (theirs, torch.optim)):
        optimizer = kit.LBFGS([weight], **settings)

        def closure(weight: Any = weight, optimizer: Any = optimizer) -> Any:
            optimizer.zero_grad()
            x, y = weight[:, 0], weight[:, 1]
            loss = (100 * (y - x * x) ** 2 + (1 - x) ** 2).sum()
            loss.backward()
            return loss

        for _ in range(2):
            optimizer.step(closure)
    if search is None:
        np.testing.assert_allclose(ours.numpy(), theirs.detach().numpy(), rtol=1e-6)
    else:
        np.testing.assert_allclose(ours.numpy(), np.ones((2, 2)), atol=1e-4)
