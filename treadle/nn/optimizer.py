"""What optimizers have in common: groups of parameters, state, and the step.

A rule is a pure function: from a parameter, its gradient and its state to their new values, as
lazy tensors (`Optimizer.update`). `step()` puts the values into the cells and computes everything
that is pending, weights, state and running statistics, as one program. The learning rate and the
count of steps are tensors, so that program is the same at every step.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from treadle import elsewhere
from treadle.engine import trace
from treadle.engine.cell import Cell, pending_assigns
from treadle.engine.realize import realize
from treadle.engine.storage import memory
from treadle.graph.shapes import plain
from treadle.ir.dtype import DType, float64, from_compute
from treadle.ir.node import Node
from treadle.nn.begin import buffer
from treadle.nn.parameter import clear_gradient
from treadle.tensor import Tensor, no_grad

Group = dict[str, Any]  # "params" and the settings of one group of parameters
State = dict[str, Tensor]  # what a rule remembers of one parameter, by name


Change = tuple[Tensor, Tensor]  # a cell, and what is put into it


@dataclass
class History:
    """What parameters share that have made the same steps. It is about the step to come, so that
    the program of a step reads it from memory and waits for nothing.

    step: the number of that step, from 1. numbers: what the rule's `numbers` says for it, under
    these settings.
    """

    step: Tensor
    numbers: State
    settings: Group


class Optimizer:
    """The base of optimizers: groups of parameters with their settings, state, and the step.

    params: the parameters, or dicts {"params": .., setting: ..} for groups with settings of their
    own. A rule of your own needs `update`; `start` if it has state; and `numbers` if it goes by the
    number of the step:

    >>> class Sign(Optimizer):
    ...     def update(self, parameter, gradient, state, group, rate, numbers):
    ...         return parameter - rate * gradient.sign(), {}
    >>> weight = Tensor([1.0, 2.0], requires_grad=True)
    >>> (weight * weight).sum().backward()
    >>> Sign([weight], {"lr": 0.5}).step()
    >>> weight.tolist()
    [0.5, 1.5]

    Half and bfloat16 parameters are updated in float32, which is also the dtype of their state.
    counts_steps: keep the number of the step although no `numbers` need it, as PyTorch does.
    numbers_in_state: the names of state that is of shape ().
    """

    counts_steps = False
    numbers_in_state: tuple[str, ...] = ("step",)

    def __init_subclass__(cls) -> None:
        """`foreach`, `fused`, `capturable`, `differentiable` may be given to every optimizer."""
        if "__init__" in vars(cls):
            cls.__init__ = elsewhere.as_pytorch(cls.__init__)  # type: ignore[method-assign]

    def __init__(self, params: Iterable[Any], defaults: dict[str, Any]) -> None:
        if isinstance(params, (Tensor, Mapping)) or not isinstance(params, Iterable):
            raise TypeError(
                f"params is a list of tensors or of groups, not a {type(params).__name__}; those "
                "of a model are nn.get_parameters(model)"
            )
        self.defaults = defaults
        self.param_groups: list[Group] = []
        self.state: dict[Tensor, State] = {}
        self._rates: dict[tuple[int, DType, str], tuple[float, Tensor]] = {}
        self._rate_kinds = ""  # of each group: whether its rate is a tensor or a number
        self._histories: dict[Tensor, History] = {}
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
        for name in ("weight_decay", "eps"):
            check_range(name, group.get(name, 0), 0)
        for number, beta in enumerate(group.get("betas", ())):
            check_range(f"betas[{number}]", beta, 0, 1)

    @property
    def lr(self) -> Any:
        """The learning rate of every group; assignable. A new value compiles nothing."""
        rates = [group["lr"] for group in self.param_groups]
        if any(rate is not rates[0] and rate != rates[0] for rate in rates):
            raise ValueError(f"the groups have different rates, {rates}: see param_groups")
        return rates[0]

    @lr.setter
    def lr(self, value: float | Tensor) -> None:
        for group in self.param_groups:
            group["lr"] = value

    def _rate(self, number: int, dtype: DType, device: str) -> Tensor:
        """The learning rate of a group as a tensor in memory, always the same one: a number that
        changes is not a constant of the program."""
        value = self.param_groups[number]["lr"]
        if isinstance(value, Tensor):
            return value.to(dtype=dtype)
        key = number, dtype, device
        if key not in self._rates:
            self._rates[key] = value, buffer(value, (), dtype, device)
        before, tensor = self._rates[key]
        if before != value:  # (nobody else holds this tensor, and nothing that reads it is pending)
            stored = memory[tensor.node].array(dtype, ())
            stored[...] = from_compute(dtype, np.asarray(value, dtype.compute))
            memory.overwritten(tensor.node)
            self._rates[key] = value, tensor
        return tensor

    # ---- in captured functions -------------------------------------------------------------------
    def before_call(self) -> None:
        """Bring the tensors of the learning rates up to date: a captured function reads those."""
        for number, dtype, device in self._rates:
            self._rate(number, dtype, device)
        kinds = "".join(["t" if isinstance(g["lr"], Tensor) else "n" for g in self.param_groups])
        if kinds != self._rate_kinds:
            self._rate_kinds = kinds

    def unguarded(self) -> list[tuple[dict[str, Any], str]]:
        """The numbers that may change without a captured function being traced again."""
        rates = [(g, "lr") for g in self.param_groups if not isinstance(g["lr"], Tensor)]
        return [*rates, (vars(self), "_rates")]

    # ---- the rule --------------------------------------------------------------------------------
    def start(self, parameter: Tensor, group: Group) -> State:
        """The state of a parameter before its first step: tensors in memory, made by `zeros`.
        State that `update` returns and `start` does not is added when it comes."""
        return {}

    def numbers(self, step: Any, group: Group) -> dict[str, Any]:
        """Numbers that follow from the settings (but not the rate) and the number of the step, from
        1. They are made ready one step ahead, once for all parameters.

        step: a float or a tensor: write the formulas with operators.
        """
        return {}

    def update(
        self,
        parameter: Tensor,
        gradient: Tensor,
        state: State,
        group: Group,
        rate: Tensor,
        numbers: State,
    ) -> tuple[Tensor, State]:
        """(the parameter's new value, the new values of its state)."""
        raise NotImplementedError(f"{type(self).__name__} needs a method update(..)")

    # ---- the step --------------------------------------------------------------------------------
    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients (or set them to 0)."""
        for _, parameter in self._numbered():
            clear_gradient(parameter, set_to_none)

    def step(self, closure: Callable[[], Any] | None = None, *, skip: Tensor | None = None) -> Any:
        """Move every parameter that has a gradient. Computes all that is pending, in one program.

        closure: a function that computes the loss and calls backward; its result is returned.
        skip: a bool of shape (); where it is true, parameters and state stay as they are.
        RuntimeError if no parameter has a gradient. If the step fails (an index of the batch out of
        range, Ctrl-C), parameters, state and running statistics are what they were before.
        """
        result = None if closure is None else closure()
        active = [(n, p) for n, p in self._numbered() if p.grad is not None]
        if not active:
            raise RuntimeError(
                "step: no parameter has a gradient. Call loss.backward() before, on a loss that "
                "depends on the parameters that the optimizer was given"
            )
        before = dict(self._histories)
        try:
            self._begin(active)
            changes = [change for n, p in active for change in self._changes(n, p)]
            numbers = self._advance(active)
            if skip is not None:
                changes, numbers = _unless(skip, changes), _unless(skip, numbers)
            commit(changes, numbers)
        except BaseException:
            self._histories = before
            raise
        return result

    def _numbered(self) -> Iterator[tuple[int, Tensor]]:
        """(number of its group, parameter) of every parameter."""
        return ((n, p) for n, group in enumerate(self.param_groups) for p in group["params"])

    def _changes(self, number: int, parameter: Tensor) -> list[Change]:
        """The changes of a parameter of group `number` and of its state."""
        group, gradient = self.param_groups[number], parameter.grad
        assert gradient is not None
        wide = parameter.dtype.accumulator
        value = parameter.to(dtype=wide)
        if parameter not in self.state:
            self.state[parameter] = self.start(value, group)
        state = self.state[parameter]
        rate = self._rate(number, wide, parameter.device)
        history = self._histories.get(parameter)
        numbers = {} if history is None else history.numbers
        new, after = self.update(value, gradient.to(dtype=wide), state, group, rate, numbers)
        changes: list[Change] = [(parameter, new.to(dtype=parameter.dtype))]
        changes += [(state.setdefault(name, each), each) for name, each in after.items()]
        return changes

    # ---- counting --------------------------------------------------------------------------------
    def _begin(self, active: list[tuple[int, Tensor]], steps: Mapping[Tensor, float] = {}) -> None:
        """Give a history to parameters that have none, if the rule goes by the step. steps: how
        many steps they have made, where it is not 0."""
        fresh: dict[Any, History] = {}
        for number, parameter in active:
            group = self.param_groups[number]
            if parameter not in self._histories:
                wide, device = parameter.dtype.accumulator, parameter.device
                coming = steps.get(parameter, 0.0) + 1
                key = number, wide, device, coming
                if key not in fresh:
                    values = self.numbers(coming, group)
                    if not values and not self.counts_steps:
                        continue
                    numbers = {n: buffer(v, (), wide, device) for n, v in values.items()}
                    step = buffer(coming, (), float64, device)
                    fresh[key] = History(step, numbers, settings_of(group))
                self._histories[parameter] = fresh[key]
            history = self._histories[parameter]
            if history.settings != settings_of(group):
                history.numbers = self._numbers(history.step, history, group)
                history.settings = settings_of(group)

    def _numbers(self, step: Tensor, history: History, group: Group) -> State:
        """What `numbers` says for a step, in the dtypes that the history has."""
        values = self.numbers(step, group)
        return {name: v.to(dtype=history.numbers[name].dtype) for name, v in values.items()}

    def _advance(self, active: list[tuple[int, Tensor]]) -> list[Change]:
        """The changes of the histories. Where only some of those who share one make the step, they
        share a new one from now on."""
        sharing = Counter(id(history) for history in self._histories.values())
        moving: dict[int, list[tuple[int, Tensor]]] = {}
        for number, parameter in active:
            if parameter in self._histories:
                key = id(self._histories[parameter])
                moving.setdefault(key, []).append((number, parameter))
        changes: list[Change] = []
        for key, members in moving.items():
            number, parameter = members[0]
            group, history = self.param_groups[number], self._histories[parameter]
            step = history.step + 1
            numbers = self._numbers(step, history, group)
            if len(members) < sharing[key]:
                history = History(step, numbers, history.settings)
                self._histories.update((each, history) for _, each in members)
            changes.append((history.step, step))
            changes += [(history.numbers[name], value) for name, value in numbers.items()]
        return changes

    # ---- saving ----------------------------------------------------------------------------------
    def state_dict(self) -> dict[str, Any]:
        """What has to be kept to go on later: {"state": {number of the parameter: its state},
        "param_groups": the settings, with numbers for parameters}, as PyTorch has it."""
        numbers = {parameter: number for number, (_, parameter) in enumerate(self._numbered())}
        state: dict[int, dict[str, Tensor]] = {}
        for parameter, number in numbers.items():
            if parameter in self.state:
                state[number] = dict(self.state[parameter])
                if parameter in self._histories:
                    state[number]["step"] = (self._histories[parameter].step - 1).to("float32")
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
        parameters = [parameter for _, parameter in self._numbered()]
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
                if tensor.shape != (() if name in self.numbers_in_state else parameter.shape)
            ]
        if problems:
            raise ValueError("the state does not fit the optimizer:\n  " + "\n  ".join(problems))
        self.state = {parameter: state for parameter, state in loaded.items() if state}
        for group, settings in zip(self.param_groups, groups):
            group.update({key: value for key, value in settings.items() if key != "params"})
        steps = {p: float(s.pop("step")) for p, s in self.state.items() if "step" in s}
        self._histories = {}
        self._begin([(n, p) for n, p in self._numbered() if p in steps], steps)


def commit(changes: list[Change], numbers: list[Change]) -> None:
    """Put values into cells, and compute them and every other assigned value that is pending, in
    one program.

    changes, numbers: emptied, since a value that somebody still holds would be computed for itself
    too. numbers are small and do not take over the memory of the old ones: so nothing in the
    program waits until those have been read. If the program fails, the cells are as before; of the
    others, one whose value cannot be computed goes back to the value that it had in memory.
    """
    cells = [cell for cell, _ in (*changes, *numbers)]
    before = [(cell, cell.node, cell.target) for cell in cells]
    changed = set(map(id, cells))
    others = [(c, c.target) for c in pending_assigns() if id(c) not in changed]
    try:
        with no_grad():
            for cell in cells[: len(changes)]:
                cell.assign(changes.pop(0)[1])
        for cell in cells[len(before) - len(numbers) :]:
            # (what is captured finds the old leaf by the target, and decides for itself)
            target = None if trace.current() is None else cell.target or cell.node
            cell.hold(numbers.pop(0)[1].node, target)
        realize([*cells, *(cell for cell, _ in others)])
    except BaseException as error:
        for cell, node, target in before:
            if cell._requires_grad:
                cell._track(node)
            else:
                cell.hold(node, target)
        if isinstance(error, Exception):
            for other, memory in others:
                _settle(other, memory)
        raise


def _unless(skip: Tensor, changes: list[Change]) -> list[Change]:
    """The changes, none where `skip` is true; state that is new begins as 0 there."""
    return [
        (cell, skip.where(value.zeros_like() if cell is value else cell.detach(), value))
        for cell, value in changes
    ]


def _settle(cell: Cell, memory: Node | None) -> None:
    """Compute an assigned value, or go back to the leaf that the cell held if that fails."""
    try:
        realize([cell])
    except Exception:
        assert memory is not None
        cell.hold(memory)


def settings_of(group: Group) -> Group:
    """The settings that `Optimizer.numbers` may depend on."""
    return {key: value for key, value in group.items() if key not in ("params", "lr")}


def with_decay(parameter: Tensor, gradient: Tensor, group: Group) -> Tensor:
    """The direction of descent: the gradient (negative to maximize), plus the decay."""
    step = -gradient if group["maximize"] else gradient
    return step + parameter * group["weight_decay"] if group["weight_decay"] else step


def towards(mean: Tensor, value: Tensor, kept: float) -> Tensor:
    """A running mean after one more value: `kept` times the mean, and the rest of the value."""
    return mean * kept + value * (1 - kept)


def zeros(parameter: Tensor) -> Tensor:
    """State of the shape of a parameter that begins as 0, in memory: so the program of the first
    step is that of every step."""
    return buffer(0, parameter.shape, parameter.dtype, parameter.device)


def check_range(name: str, value: Any, low: float, below: float = math.inf) -> None:
    """ValueError if a setting is not a number in low <= value < below."""
    if not isinstance(plain(value), (int, float)) or not low <= value < below:
        limit = "" if below == math.inf else f" and below {below}"
        raise ValueError(f"{name}={value!r} must be a number of at least {low}{limit}")
