"""Optimizers against the formulas in NumPy, and how they treat groups, counts and failures."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from treadle import Tensor, events, nn, no_grad
from treadle.engine import programs, realize
from treadle.nn.optim import SGD, Adam, AdamW, Optimizer
from treadle.nn.optimizer import zeros

Array = np.ndarray
SHAPES = [(3, 4), (5,), (), (2, 1, 2)]
STEPS = 5
LEARNT = Tensor([1.0], requires_grad=True)


# ---- the formulas, in float64 --------------------------------------------------------------------
def sgd(
    lr: float,
    momentum: float = 0,
    dampening: float = 0,
    weight_decay: float = 0,
    nesterov: bool = False,
    maximize: bool = False,
) -> Callable[[Array, Iterator[Array]], Array]:
    def run(p: Array, gradients: Iterator[Array]) -> Array:
        last = None
        for g in gradients:
            g = (-g if maximize else g) + weight_decay * p
            if momentum:
                last = g if last is None else momentum * last + (1 - dampening) * g
                g = g + momentum * last if nesterov else last
            p = p - lr * g
        return p

    return run


def adam(
    lr: float,
    betas: tuple[float, float] = (0.9, 0.999),
    eps: float = 1e-8,
    weight_decay: float = 0,
    amsgrad: bool = False,
    maximize: bool = False,
    decoupled: bool = False,
) -> Callable[[Array, Iterator[Array]], Array]:
    def run(p: Array, gradients: Iterator[Array]) -> Array:
        m, v, peak = np.zeros_like(p), np.zeros_like(p), np.zeros_like(p)
        for step, g in enumerate(gradients, start=1):
            g = -g if maximize else g
            if decoupled:
                p = p * (1 - lr * weight_decay)
            else:
                g = g + weight_decay * p
            m = betas[0] * m + (1 - betas[0]) * g
            v = betas[1] * v + (1 - betas[1]) * g * g
            peak = np.maximum(peak, v)
            second = peak if amsgrad else v
            denominator = np.sqrt(second) / np.sqrt(1 - betas[1] ** step) + eps
            p = p - lr / (1 - betas[0] ** step) * m / denominator
        return p

    return run


CASES: list[tuple[type[Optimizer], Any, dict[str, Any]]] = [
    (SGD, sgd, {"lr": 0.1}),
    (SGD, sgd, {"lr": 0.1, "momentum": 0.9}),
    (SGD, sgd, {"lr": 0.1, "momentum": 0.9, "dampening": 0.3, "weight_decay": 0.05}),
    (SGD, sgd, {"lr": 0.1, "momentum": 0.8, "nesterov": True, "weight_decay": 0.1}),
    (SGD, sgd, {"lr": 0.1, "momentum": 0.8, "maximize": True}),
    (Adam, adam, {"lr": 0.01}),
    (Adam, adam, {"lr": 0.01, "betas": (0.5, 0.7), "eps": 1e-3, "weight_decay": 0.1}),
    (Adam, adam, {"lr": 0.01, "betas": (0.0, 0.9), "amsgrad": True, "maximize": True}),
    (AdamW, adam, {"lr": 0.01, "weight_decay": 0.1, "decoupled": True}),
    (AdamW, adam, {"lr": 0.01, "weight_decay": 0.1, "decoupled": True, "amsgrad": True}),
]


def gradient(step: int, shape: tuple[int, ...]) -> Array:
    return np.asarray(np.random.default_rng([step, len(shape)]).normal(size=shape))


def start(shape: tuple[int, ...]) -> Array:
    return np.asarray(np.random.default_rng(7).normal(size=shape))


def set_gradients(parameters: list[Tensor], step: int, dtype: str = "float64") -> None:
    for parameter in parameters:
        parameter.grad = None
        weights = Tensor(gradient(step, parameter.shape), dtype=dtype)
        (parameter * weights).sum().backward()


@pytest.mark.parametrize(("kind", "formula", "settings"), CASES)
def test_formulas(kind: Any, formula: Any, settings: dict[str, Any]) -> None:
    parameters = [Tensor(start(shape), requires_grad=True) for shape in SHAPES]
    optimizer = kind(parameters, **{k: v for k, v in settings.items() if k != "decoupled"})
    for step in range(STEPS):
        set_gradients(parameters, step)
        optimizer.step()
    for parameter, shape in zip(parameters, SHAPES):
        expected = formula(**settings)(start(shape), (gradient(n, shape) for n in range(STEPS)))
        np.testing.assert_allclose(parameter.numpy(), expected, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_half_parameters_keep_float32_state(dtype: str) -> None:
    weight = Tensor(np.float32([1, -2, 3]), dtype=dtype, requires_grad=True)
    optimizer = Adam([weight], lr=0.25)
    # so small that the square is 0 in float16
    gradients = np.float32([1e-4, -1e-4, 2e-4])
    (weight * Tensor(gradients, dtype=dtype)).sum().backward()
    optimizer.step()
    assert weight.dtype.name == dtype
    assert all(t.dtype.name == "float32" for t in optimizer.state[weight].values())
    np.testing.assert_allclose(weight.numpy(), [0.75, -1.75, 2.75], atol=1e-3)


# ---- settings ------------------------------------------------------------------------------------
@contextmanager
def programs_built() -> Iterator[list[Any]]:
    """A list that grows by one for each program that is scheduled inside the block."""
    programs.kept.clear()
    built: list[Any] = []
    with events.listen("schedule", built.append):
        yield built


@pytest.mark.parametrize(
    ("kind", "settings"), [(SGD, {"momentum": 0.9}), (Adam, {}), (AdamW, {"amsgrad": True})]
)
def test_the_second_step_builds_nothing(kind: Any, settings: dict[str, Any]) -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm(4), nn.Linear(4, 2))
    optimizer = kind(model.parameters(), lr=0.1, **settings)
    after = []
    with programs_built() as built:
        for step, rate in enumerate([0.1, 0.0, 1.0, 0.37]):
            optimizer.lr = rate
            optimizer.zero_grad()
            x = np.float32(gradient(step, (6, 3)))
            model(Tensor(x)).square().mean().backward()
            optimizer.step()
            after.append(len(built))
    assert after[0] == 2, "one program for what the weights begin as, one for the step"
    assert after == [2] * 4


def test_the_rate_can_be_changed_everywhere() -> None:
    first, second = (Tensor([0.0], requires_grad=True) for _ in range(2))
    optimizer = SGD([{"params": first}, {"params": [second], "lr": 0.5}], lr=0.1)

    def moved() -> list[float]:
        optimizer.zero_grad()
        before = first.item(), second.item()
        (first + second).sum().backward()
        optimizer.step()
        return [round(a - b.item(), 6) for a, b in zip(before, (first, second))]

    assert moved() == [0.1, 0.5]
    with pytest.raises(ValueError, match=r"different rates, \[0\.1, 0\.5\]"):
        _ = optimizer.lr
    optimizer.lr = 0.25
    assert optimizer.lr == 0.25 and moved() == [0.25, 0.25]
    optimizer.param_groups[1]["lr"] = 0.75
    assert moved() == [0.25, 0.75]
    optimizer.lr = Tensor(2.0)
    assert moved() == [2.0, 2.0]


def test_groups() -> None:
    weight, bias = Tensor([1.0], requires_grad=True), Tensor([1.0], requires_grad=True)
    optimizer = AdamW([{"params": [weight], "weight_decay": 0.5}], lr=0.1, weight_decay=0.0)
    optimizer.add_param_group({"params": iter([bias])})
    assert [group["weight_decay"] for group in optimizer.param_groups] == [0.5, 0.0]
    weight.grad = bias.grad = Tensor([0.0])
    optimizer.step()
    np.testing.assert_allclose([weight.item(), bias.item()], [0.95, 1.0], rtol=1e-6)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (lambda: SGD([]), ValueError, "the optimizer got no parameters"),
        (lambda: SGD(Tensor([1.0])), TypeError, "params is a list of tensors or of groups, not"),
        (lambda: SGD([3]), TypeError, "a parameter is a Tensor, not a int"),
        (lambda: SGD([Tensor([1])]), TypeError, "dtype int64 cannot be learnt"),
        (lambda: SGD([LEARNT * 2]), TypeError, "not computed from"),
        (lambda: SGD([Tensor([1.0])] * 2), ValueError, r"shape \(1,\) is given twice"),
        (lambda: SGD([Tensor([1.0])], lr=-1), ValueError, "lr=-1 must be a number of at least 0"),
        (lambda: SGD([Tensor([1.0])], nesterov=True), ValueError, "nesterov=True needs a momentum"),
        (lambda: Adam([Tensor([1.0])], betas=(0.9, 1.0)), ValueError, r"betas\[1\]=1.0 must be"),
        (lambda: Adam([Tensor([1.0])], eps=float("nan")), ValueError, "eps=nan must be"),
        (
            lambda: SGD([{"params": [Tensor([1.0])], "betas": 1}]),
            ValueError,
            r"SGD has no setting \['betas'\]",
        ),
    ],
)
def test_bad_arguments(arguments: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        arguments()


# ---- the step ------------------------------------------------------------------------------------
def test_a_step_without_gradients() -> None:
    optimizer = SGD([Tensor([1.0], requires_grad=True)])
    with pytest.raises(
        RuntimeError, match=r"no parameter has a gradient\. Call loss\.backward\(\)"
    ):
        optimizer.step()


def test_a_closure() -> None:
    weight = Tensor([3.0], requires_grad=True)
    optimizer = SGD([weight], lr=0.5)

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = weight.square().sum()
        loss.backward()
        return loss

    assert optimizer.step(closure).item() == 9.0
    assert weight.tolist() == [0.0]


def test_a_parameter_without_gradient_is_skipped_and_does_not_count() -> None:
    values = [np.array([1.0]), np.array([2.0])]
    always, sometimes = (Tensor(value, requires_grad=True) for value in values)
    optimizer = Adam([always, sometimes], lr=0.1, weight_decay=0.1)
    seen: list[list[float]] = [[], []]
    for step in range(6):
        optimizer.zero_grad()
        with_both = step in (1, 2, 4)
        ((always * (step + 1)).sum() + (sometimes * 2 if with_both else 0)).sum().backward()
        seen[0].append(step + 1)
        seen[1] += [2] * with_both
        optimizer.step()
    for tensor, value, gradients in zip((always, sometimes), values, seen):
        formula = adam(lr=0.1, weight_decay=0.1)
        expected = formula(value, iter([np.array([float(g)]) for g in gradients]))
        np.testing.assert_allclose(tensor.numpy(), expected, rtol=1e-12)
    steps = [state["step"].item() for state in optimizer.state_dict()["state"].values()]
    assert steps == [6.0, 3.0]


def test_parameters_of_one_history_share_their_count() -> None:
    parameters = [Tensor([1.0], requires_grad=True) for _ in range(3)]
    optimizer = Adam(parameters)
    set_gradients(parameters, 0, "float32")
    optimizer.step()
    assert len({id(history) for history in optimizer._histories.values()}) == 1
    set_gradients(parameters[:2], 1, "float32")
    parameters[2].grad = None
    optimizer.step()
    assert len({id(history) for history in optimizer._histories.values()}) == 2
    assert [history.step.item() for history in optimizer._histories.values()] == [3.0, 3.0, 2.0]


def test_a_step_computes_all_that_is_pending() -> None:
    model = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm(3))
    optimizer = SGD(model.parameters(), lr=0.1)
    loss = model(Tensor([[1.0, 2.0], [3.0, 5.0]])).square().sum()
    loss.backward()
    optimizer.step()
    for name, tensor in model.state_dict().items():
        assert realize.settled(tensor), name
    assert realize.settled(loss), "the loss reads weights that are gone"


def test_zero_grad() -> None:
    weight = Tensor([1.0], requires_grad=True)
    optimizer = SGD([weight])
    weight.sum().backward()
    optimizer.zero_grad(set_to_none=False)
    assert weight.grad is not None and weight.grad.tolist() == [0.0]
    optimizer.zero_grad()
    assert weight.grad is None


def test_a_failed_step_leaves_everything_as_it_was() -> None:
    model = nn.Sequential(nn.Embedding(5, 3), nn.BatchNorm(3))
    written = Tensor([1.0, 2.0]).realize()
    optimizer = Adam(model.parameters(), lr=0.1)

    def step(ids: list[int]) -> None:
        optimizer.zero_grad()
        model(Tensor(ids)).square().sum().backward()
        optimizer.step()

    def everything() -> list[list[float]]:
        tensors = [*model.parameters(), model[1].running_mean, model[1].running_var]
        for history in optimizer._histories.values():
            tensors += [history.step, *history.numbers.values()]
        for state in optimizer.state.values():
            tensors += state.values()
        return [tensor.tolist() for tensor in tensors]

    step([0, 1, 4])
    before = everything()
    written[0] = 7.0
    with pytest.raises(IndexError, match="is out of range for an axis of size 5"):
        step([0, 9, 1])
    assert everything() == before
    assert written.tolist() == [7.0, 2.0], "an assignment that has nothing to do with it stays"
    step([0, 1, 4])
    assert everything() != before


def test_a_rule_of_ones_own() -> None:
    class Sign(Optimizer):
        def start(self, parameter: Tensor, group: dict[str, Any]) -> dict[str, Tensor]:
            return {"total": zeros(parameter)}

        def numbers(self, step: Any, group: dict[str, Any]) -> dict[str, Any]:
            return {"factor": 1 / step}

        def update(
            self, parameter: Any, gradient: Any, state: Any, group: Any, rate: Any, numbers: Any
        ) -> Any:
            new = parameter - rate * numbers["factor"] * gradient.sign()
            return new, {"total": state["total"] + gradient.abs()}

    weight = Tensor([1.0, 1.0], requires_grad=True)
    optimizer = Sign([weight], {"lr": 1.0})
    for _ in range(2):
        weight.grad = Tensor([3.0, -4.0])
        optimizer.step()
    np.testing.assert_allclose(weight.numpy(), [-0.5, 2.5])
    assert optimizer.state[weight]["total"].tolist() == [6.0, 8.0]


def test_a_loop_that_never_reads_keeps_no_graph() -> None:
    weight = Tensor([1.0], requires_grad=True)
    optimizer = SGD([weight], lr=0.1, momentum=0.9)
    for _ in range(4):
        optimizer.zero_grad()
        weight.square().sum().backward()
        optimizer.step()
        assert realize.settled(weight) and not weight.node.src


def test_weights_can_be_assigned_between_steps() -> None:
    weight = Tensor([1.0], requires_grad=True)
    average = Tensor([1.0])
    optimizer = SGD([weight], lr=0.5)
    for _ in range(2):
        weight.grad = Tensor([1.0])
        optimizer.step()
        with no_grad():
            average.assign(average * 0.5 + weight * 0.5)
            weight.assign(weight * 2)
    assert weight.tolist() == [1.0] and average.tolist() == [0.625]


def test_a_step_of_twenty_parameters_is_one_phase_of_two_kernels() -> None:
    parameters = [Tensor(start((n, 3)), requires_grad=True).realize() for n in range(2, 22)]
    optimizer = Adam(parameters)
    set_gradients(parameters, 0)
    Tensor.realize(*[p.grad for p in parameters if p.grad is not None])
    programs.kept.clear()
    optimizer.step()
    ((_, program),) = programs.kept.items()
    calls = list(program.schedule.calls())
    assert len(calls) == 21 and len({call.kernel for call in calls}) == 2
    assert {call.phase for call in calls} == {0}


def test_betas_can_be_changed() -> None:
    weight = Tensor([1.0], requires_grad=True, dtype="float64")
    optimizer = Adam([weight], lr=0.1)
    for betas in ((0.9, 0.999), (0.5, 0.9), (0.5, 0.9)):
        optimizer.param_groups[0]["betas"] = betas
        weight.grad = Tensor([2.0], dtype="float64")
        optimizer.step()
    m, v, p = 0.0, 0.0, 1.0
    for step, (first, second) in enumerate([(0.9, 0.999), (0.5, 0.9), (0.5, 0.9)], start=1):
        m, v = first * m + (1 - first) * 2, second * v + (1 - second) * 4
        root = np.sqrt(v / (1 - second**step)) + 1e-8
        p -= 0.1 * m / (1 - first**step) / root
    np.testing.assert_allclose(weight.item(), p, rtol=1e-12)


# ---- saving --------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "kind", [lambda p: SGD(p, lr=0.1, momentum=0.9), lambda p: Adam(p, lr=0.1)]
)
def test_state_goes_on_in_another_process(kind: Any) -> None:
    def run(saved: dict[str, Any] | None, values: list[Array], steps: range) -> tuple[Any, Any]:
        parameters = [Tensor(value, requires_grad=True) for value in values]
        optimizer = kind(parameters)
        if saved is not None:
            optimizer.load_state_dict(saved)
        for step in steps:
            set_gradients(parameters, step)
            optimizer.step()
        return [p.numpy() for p in parameters], optimizer.state_dict()

    begin = [start(shape) for shape in SHAPES]
    whole, _ = run(None, begin, range(4))
    half, saved = run(None, begin, range(2))
    arrays = {
        "state": {
            number: {name: tensor.numpy() for name, tensor in state.items()}
            for number, state in saved["state"].items()
        },
        "param_groups": saved["param_groups"],
    }
    rest, _ = run(arrays, half, range(2, 4))
    for a, b in zip(whole, rest):
        np.testing.assert_allclose(a, b, rtol=1e-13)


def test_state_that_does_not_fit() -> None:
    optimizer = Adam([Tensor([1.0, 2.0], requires_grad=True)])
    group = dict(optimizer.state_dict()["param_groups"][0])
    state = {0: {"step": 3.0, "exp_avg": np.zeros(3), "exp_avg_sq": np.zeros((2, 1))}}
    with pytest.raises(ValueError) as caught:
        optimizer.load_state_dict({"state": state, "param_groups": [group]})
    assert "parameter 0: exp_avg has shape (3,), not (2,)" in str(caught.value)
    assert "parameter 0: exp_avg_sq has shape (2, 1), not (2,)" in str(caught.value)
    with pytest.raises(ValueError, match=r"groups of \[2\] parameters, the optimizer of \[1\]"):
        optimizer.load_state_dict({"state": {}, "param_groups": [{"params": [0, 1]}]})
    optimizer.load_state_dict({"state": {}, "param_groups": [{**group, "lr": 0.5}]})
    assert optimizer.lr == 0.5
