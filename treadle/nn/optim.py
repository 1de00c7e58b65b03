"""Optimizers: how parameters follow their gradients.

A rule is a pure function: from a parameter, its gradient and its state to their new values, as
lazy tensors (`Optimizer.update`). `step()` puts the values into the cells and computes everything
that is pending, weights, state and running statistics, as one program. The learning rate and the
count of steps are tensors, so that program is the same at every step.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from treadle.engine.cell import Cell, pending_assigns
from treadle.engine.realize import realize
from treadle.ir.dtype import DType
from treadle.ir.node import Node
from treadle.nn.init import buffer
from treadle.nn.parameter import clear_gradient
from treadle.tensor import Tensor, no_grad

Group = dict[str, Any]  # "params" and the settings of one group of parameters
State = dict[str, Tensor]  # what a rule remembers of one parameter, by name


class Optimizer:
    """The base of optimizers: groups of parameters with their settings, state, and the step.

    params: the parameters, or dicts {"params": .., setting: ..} for groups with settings of their
    own. A rule of your own needs `update`, and `start` if it has state:

    >>> class Sign(Optimizer):
    ...     def update(self, parameter, gradient, state, group, rate):
    ...         return parameter - rate * gradient.sign(), {}
    >>> weight = Tensor([1.0, 2.0], requires_grad=True)
    >>> (weight * weight).sum().backward()
    >>> Sign([weight], {"lr": 0.5}).step()
    >>> weight.tolist()
    [0.5, 1.5]

    Half and bfloat16 parameters are updated in float32, which is also the dtype of their state.
    """

    counts_steps = False  # whether the rule needs the number of the step

    def __init__(self, params: Iterable[Any], defaults: dict[str, Any]) -> None:
        if isinstance(params, (Tensor, Mapping)):
            raise TypeError(
                f"params is a list of tensors or of groups, not a {type(params).__name__}"
            )
        self.defaults = defaults
        self.param_groups: list[Group] = []
        self.state: dict[Tensor, State] = {}
        self._rates: dict[tuple[int, DType, str], tuple[float, Tensor]] = {}
        self._counts: dict[Tensor, Tensor] = {}  # parameter -> the number of its coming step
        given = list(params)
        if not given:
            raise ValueError("the optimizer got no parameters")
        groups = given if isinstance(given[0], Mapping) else [{"params": given}]
        for group in groups:
            self.add_param_group(group)

    def named_members(self) -> Iterator[tuple[str, Any]]:
        """Nothing: a module that holds its optimizer does not hold the parameters twice."""
        return iter(())

    # ---- settings --------------------------------------------------------------------------------
    def add_param_group(self, group: Mapping[str, Any]) -> None:
        """Add parameters: {"params": .., setting: ..}; settings that it lacks are the defaults.

        ValueError for a parameter that is here already, TypeError for what is no leaf or no
        floating tensor.
        """
        params = group["params"]
        members = [params] if isinstance(params, Tensor) else list(params)
        unknown = [key for key in group if key != "params" and key not in self.defaults]
        if unknown:
            raise ValueError(
                f"{type(self).__name__} has no setting {unknown}; it has {list(self.defaults)}"
            )
        known = {id(p) for other in self.param_groups for p in other["params"]}
        for parameter in members:
            if not isinstance(parameter, Tensor):
                raise TypeError(f"a parameter is a Tensor, not a {type(parameter).__name__}")
            if not parameter.dtype.is_float or not parameter.is_leaf:
                raise TypeError(
                    f"a parameter of shape {parameter.shape} and dtype {parameter.dtype} cannot be "
                    "learnt: it must be floating, and not computed from other parameters"
                )
            if id(parameter) in known:
                raise ValueError(f"the parameter of shape {parameter.shape} is given twice")
            known.add(id(parameter))
        settings = {**self.defaults, **group, "params": members}
        self.check(settings)
        self.param_groups.append(settings)

    def check(self, group: Group) -> None:
        """ValueError for settings that make no sense."""
        if not isinstance(group["lr"], Tensor):
            check_range("lr", group["lr"], 0)
        check_range("weight_decay", group.get("weight_decay", 0), 0)

    @property
    def lr(self) -> Any:
        """The learning rate of every group; assignable. A new value compiles nothing."""
        rates = [group["lr"] for group in self.param_groups]
        if any(rate is not rates[0] and rate != rates[0] for rate in rates):
            raise ValueError(f"the groups have different rates, {rates}: see param_groups")
        return rates[0]

    @lr.setter
    def lr(self, value: float | Tensor) -> None:
        for number, group in enumerate(self.param_groups):
            group["lr"] = value
            for key in [key for key in self._rates if key[0] == number]:
                self._rate(*key)

    def _rate(self, number: int, dtype: DType, device: str) -> Tensor:
        """The learning rate of a group as a tensor in memory: a number that changes is not a
        constant of the program."""
        value = self.param_groups[number]["lr"]
        if isinstance(value, Tensor):
            return value.to(dtype=dtype)
        known = self._rates.get((number, dtype, device))
        if known is None or known[0] != value:
            known = value, Tensor(np.asarray(value, dtype.compute), device=device)
            self._rates[number, dtype, device] = known
        return known[1]

    # ---- the rule --------------------------------------------------------------------------------
    def start(self, parameter: Tensor, group: Group) -> State:
        """The state of a parameter before its first step: tensors in memory, made by `zeros`.
        State that `update` returns and `start` does not is added when it comes."""
        return {}

    def numbers(self, group: Group, rate: Tensor, count: Tensor | None) -> tuple[Tensor, ...]:
        """The last arguments of `update`: what all parameters of a group share in a step.

        count: the number of this step, from 1, if the rule `counts_steps`.
        """
        return (rate,)

    def update(
        self, parameter: Tensor, gradient: Tensor, state: State, group: Group, *numbers: Tensor
    ) -> tuple[Tensor, State]:
        """(the parameter's new value, the new values of its state)."""
        raise NotImplementedError(f"{type(self).__name__} needs a method update(..)")

    # ---- the step --------------------------------------------------------------------------------
    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients (or set them to 0)."""
        for parameter in self._parameters():
            clear_gradient(parameter, set_to_none)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Move every parameter that has a gradient. Computes all that is pending, in one program.

        closure: a function that computes the loss and calls backward; its result is returned.
        RuntimeError if no parameter has a gradient. If the step fails (an index of the batch out of
        range, Ctrl-C), parameters, state and running statistics are what they were before.
        """
        result = None if closure is None else closure()
        active = [p for p in self._parameters() if p.grad is not None]
        if not active:
            raise RuntimeError(
                "step: no parameter has a gradient. Call loss.backward() before, on a loss that "
                "depends on the parameters that the optimizer was given"
            )
        counts = dict(self._counts)
        if self.counts_steps:
            self._begin(active)
        changes = []
        shared: dict[Any, tuple[Tensor, ...]] = {}
        for number, group in enumerate(self.param_groups):
            for parameter in group["params"]:
                if parameter.grad is not None:
                    changes += self._changes(number, parameter, parameter.grad, shared)
        changes += self._advance(active)
        try:
            commit(changes)
        except BaseException:
            self._counts = counts
            raise
        return result

    def _parameters(self) -> Iterator[Tensor]:
        return (parameter for group in self.param_groups for parameter in group["params"])

    def _changes(
        self,
        number: int,
        parameter: Tensor,
        gradient: Tensor,
        shared: dict[Any, tuple[Tensor, ...]],
    ) -> list[Change]:
        """The changes of a parameter of group `number` and of its state. shared: what `numbers`
        gave for the parameters before."""
        group = self.param_groups[number]
        wide, device = parameter.dtype.accumulator, parameter.device
        value = parameter.to(dtype=wide)
        if parameter not in self.state:
            self.state[parameter] = self.start(value, group)
        state = self.state[parameter]
        count = self._counts.get(parameter)
        key = number, wide, device, id(count)
        if key not in shared:
            rate = self._rate(number, wide, device)
            shared[key] = self.numbers(group, rate, None if count is None else count.to(dtype=wide))
        new, after = self.update(value, gradient.to(dtype=wide), state, group, *shared[key])
        changes: list[Change] = [(parameter, new.to(dtype=parameter.dtype))]
        changes += [(state.setdefault(name, each), each) for name, each in after.items()]
        return changes

    # ---- counting --------------------------------------------------------------------------------
    # Parameters with one history share one tensor, so that a step counts once and not once per
    # parameter. It holds the number of the coming step: the rule reads memory, and nothing in the
    # program waits for the addition.
    def _begin(self, active: list[Tensor]) -> None:
        """Count from 1 for parameters that make their first step."""
        fresh: dict[str, Tensor] = {}
        for parameter in active:
            if parameter not in self._counts:
                device = parameter.device
                if device not in fresh:
                    fresh[device] = Tensor(np.ones((), np.float32), device=device)
                self._counts[parameter] = fresh[device]

    def _advance(self, active: list[Tensor]) -> list[Change]:
        """The changes of the counts. Where only some of those who share a count make the step,
        they share a new one from now on."""
        sharing = Counter(id(count) for count in self._counts.values())
        steps: dict[int, list[Tensor]] = {}
        for parameter in active:
            if parameter in self._counts:
                steps.setdefault(id(self._counts[parameter]), []).append(parameter)
        changes: list[Change] = []
        for key, members in steps.items():
            count = self._counts[members[0]]
            following = count + 1
            if len(members) < sharing[key]:
                count = following
                self._counts.update(dict.fromkeys(members, count))
            changes.append((count, following))
        return changes

    # ---- saving ----------------------------------------------------------------------------------
    def state_dict(self) -> dict[str, Any]:
        """What has to be kept to go on later: {"state": {number of the parameter: its state},
        "param_groups": the settings, with numbers for parameters}, as PyTorch has it."""
        numbers = {parameter: number for number, parameter in enumerate(self._parameters())}
        state: dict[int, dict[str, Tensor]] = {}
        for parameter, number in numbers.items():
            if parameter in self.state:
                state[number] = dict(self.state[parameter])
                if parameter in self._counts:
                    state[number]["step"] = self._counts[parameter] - 1
        groups = [
            {**group, "params": [numbers[parameter] for parameter in group["params"]]}
            for group in self.param_groups
        ]
        return {"state": state, "param_groups": groups}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Go on from what `state_dict` gave, for the same parameters in the same order.

        ValueError that lists everything that does not fit; nothing is then changed.
        """
        groups, states = state_dict["param_groups"], state_dict["state"]
        sizes = [len(group["params"]) for group in groups]
        own = [len(group["params"]) for group in self.param_groups]
        if sizes != own:
            raise ValueError(f"the state has groups of {sizes} parameters, the optimizer of {own}")
        parameters = list(self._parameters())
        numbers = [number for group in groups for number in group["params"]]
        problems = []
        loaded: dict[Tensor, State] = {}
        for number, parameter in zip(numbers, parameters):
            wide, device = parameter.dtype.accumulator, parameter.device
            given = {name: v for name, v in states.get(number, {}).items() if v is not None}
            loaded[parameter] = each = {n: Tensor(v, wide, device) for n, v in given.items()}
            problems += [
                f"parameter {number}: {name} has shape {tensor.shape}, not {parameter.shape}"
                for name, tensor in each.items()
                if tensor.shape != (() if name == "step" else parameter.shape)
            ]
        if problems:
            raise ValueError("the state does not fit the optimizer:\n  " + "\n  ".join(problems))
        self.state = {parameter: state for parameter, state in loaded.items() if state}
        self._counts = {}
        counts: dict[Any, Tensor] = {}
        for parameter, state in self.state.items():
            if "step" in state:
                step, device = float(state.pop("step")), parameter.device
                fresh = Tensor(np.full((), step + 1, np.float32), device=device)
                self._counts[parameter] = counts.setdefault((step, device), fresh)
        for group, settings in zip(self.param_groups, groups):
            group.update({key: value for key, value in settings.items() if key != "params"})


Change = tuple[Tensor, Tensor]  # a cell, and what is put into it


def commit(changes: list[Change]) -> None:
    """Put values into cells, and compute them and every other assigned value that is pending, in
    one program.

    If that fails, the cells are as before; of the others, one whose value cannot be computed goes
    back to the value that it had in memory.
    """
    before = [(cell, cell.node, cell.target) for cell, _ in changes]
    changed = {id(cell) for cell, _ in changes}
    others = [(c, c.target) for c in pending_assigns() if id(c) not in changed]
    try:
        with no_grad():
            for cell, value in changes:
                cell.assign(value)
        realize([cell for cell, _ in (*changes, *others)])
    except BaseException as error:
        for cell, node, target in before:
            if cell.requires_grad:
                cell._track(node)
            else:
                cell.node, cell.target = node, target
        if isinstance(error, Exception):
            for other, memory in others:
                _settle(other, memory)
        raise


def _settle(cell: Cell, memory: Node | None) -> None:
    """Compute an assigned value, or go back to the leaf that the cell held if that fails."""
    try:
        realize([cell])
    except Exception:
        assert memory is not None
        cell.node, cell.target = memory, None


def zeros(parameter: Tensor) -> Tensor:
    """State of the shape of a parameter that begins as 0, in memory: so the program of the first
    step is that of every step."""
    return buffer(0, parameter.shape, parameter.dtype, parameter.device)


def check_range(name: str, value: Any, low: float, below: float = math.inf) -> None:
    """ValueError if a setting is not a number in low <= value < below."""
    if not isinstance(value, (int, float)) or not low <= value < below:
        limit = "" if below == math.inf else f" and below {below}"
        raise ValueError(f"{name}={value!r} must be a number of at least {low}{limit}")


class SGD(Optimizer):
    """Gradient descent: parameter - lr * gradient.

    momentum: a step is the gradient plus `momentum` times the last step; dampening: the gradient
    counts 1 - dampening in that, after the first step; nesterov: look ahead by one more step.
    weight_decay: what is added to the gradient for each unit of the parameter. maximize: ascend.
    Source: PyTorch's `SGD`; Sutskever et al., "On the importance of initialization and momentum in
    deep learning", 2013.
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | Tensor = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        settings = {
            "lr": lr, "momentum": momentum, "dampening": dampening, "weight_decay": weight_decay,
            "nesterov": nesterov, "maximize": maximize,
        }  # fmt: skip
        super().__init__(params, settings)

    def check(self, group: Group) -> None:
        super().check(group)
        check_range("momentum", group["momentum"], 0)
        if group["nesterov"] and (not group["momentum"] or group["dampening"]):
            raise ValueError("nesterov=True needs a momentum and no dampening")

    def start(self, parameter: Tensor, group: Group) -> State:
        # without dampening the first step, buffer = gradient, is that of a buffer of 0
        plain = group["momentum"] and not group["dampening"]
        return {"momentum_buffer": zeros(parameter)} if plain else {}

    def update(
        self, parameter: Tensor, gradient: Tensor, state: State, group: Group, *numbers: Tensor
    ) -> tuple[Tensor, State]:
        (rate,) = numbers
        momentum = group["momentum"]
        step = _with_decay(parameter, gradient, group)
        after: State = {}
        if momentum:
            last = state.get("momentum_buffer")
            buffer = step if last is None else last * momentum + step * (1 - group["dampening"])
            after["momentum_buffer"] = buffer
            step = step + buffer * momentum if group["nesterov"] else buffer
        return parameter - rate * step, after


class Adam(Optimizer):
    """Steps of a size that adapts to each element: lr * mean / (sqrt(square) + eps).

    mean and square are running means of the gradient and of its square, by betas, divided by
    1 - beta**step because they begin as 0. weight_decay: what is added to the gradient for each
    unit of the parameter. amsgrad: use the greatest square so far. maximize: ascend.
    Source: Kingma and Ba, "Adam: a method for stochastic optimization", 2015.
    """

    counts_steps = True
    decoupled = False  # whether decay acts on the parameter and not on the gradient

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        settings = {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "amsgrad": amsgrad,
            "maximize": maximize,
        }  # fmt: skip
        super().__init__(params, settings)

    def check(self, group: Group) -> None:
        super().check(group)
        check_range("eps", group["eps"], 0)
        for number, beta in enumerate(group["betas"]):
            check_range(f"betas[{number}]", beta, 0, 1)

    def start(self, parameter: Tensor, group: Group) -> State:
        names = ["exp_avg", "exp_avg_sq"] + ["max_exp_avg_sq"] * group["amsgrad"]
        return {name: zeros(parameter) for name in names}

    def numbers(self, group: Group, rate: Tensor, count: Tensor | None) -> tuple[Tensor, ...]:
        """(rate, rate / (1 - beta1**step), 1 / sqrt(1 - beta2**step))."""
        assert count is not None
        # 1 - beta**step = -expm1(step * log(beta)), exact also while it is small
        first, second = (
            -(count * (math.log(beta) if beta else -math.inf)).expm1() for beta in group["betas"]
        )
        return rate, rate / first, second.rsqrt()

    def update(
        self, parameter: Tensor, gradient: Tensor, state: State, group: Group, *numbers: Tensor
    ) -> tuple[Tensor, State]:
        rate, size, scale = numbers
        beta1, beta2 = group["betas"]
        if self.decoupled:
            step = -gradient if group["maximize"] else gradient
            parameter = parameter * (1 - rate * group["weight_decay"])
        else:
            step = _with_decay(parameter, gradient, group)
        mean, square = state["exp_avg"], state["exp_avg_sq"]
        mean = mean + (step - mean) * (1 - beta1)
        square = square * beta2 + step * step * (1 - beta2)
        after = {"exp_avg": mean, "exp_avg_sq": square}
        if group["amsgrad"]:
            square = square.maximum(state.get("max_exp_avg_sq", square))
            after["max_exp_avg_sq"] = square
        return parameter - mean / (square.sqrt() * scale + group["eps"]) * size, after


class AdamW(Adam):
    """Adam with decoupled decay: the parameter is first multiplied by 1 - lr * weight_decay.

    Source: Loshchilov and Hutter, "Decoupled weight decay regularization", 2019.
    """

    decoupled = True

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, maximize=maximize)


def _with_decay(parameter: Tensor, gradient: Tensor, group: Group) -> Tensor:
    """The direction of descent: the gradient (negative to maximize), plus the decay."""
    step = -gradient if group["maximize"] else gradient
    return step + parameter * group["weight_decay"] if group["weight_decay"] else step
