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
            raise TypeError(f"params is a list of tensors or of groups, not a {type(params).__name__}")
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
            raise ValueError(f"{type(self).__name__} has no setting {unknown}; it has {list(self.defaults)}")
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
    def start(self, parameter: Tensor, gradient: Tensor, group: Group) -> State:
        """The state of a parameter before its first step."""
        return {}

    def numbers(self, group: Group, rate: Tensor, count: Tensor | None) -> tuple[Tensor, ...]:
        """What `update` gets as its last arguments: numbers that all parameters of a group share.

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
        for group in self.param_groups:
            for parameter in group["params"]:
                clear_gradient(parameter, set_to_none)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Move every parameter that has a gradient. Computes all that is pending, in one program.

        closure: a function that computes the loss and calls backward; its result is returned.
        RuntimeError if no parameter has a gradient. If the step fails (an index of the batch out of
        range, Ctrl-C), parameters, state and running statistics are what they were before.
        """
        result = None if closure is None else closure()
        counts = dict(self._counts)
        changes: list[tuple[Tensor, Tensor]] = []
        active: list[Tensor] = []
        shared: dict[Any, tuple[Tensor, ...]] = {}
        for number, group in enumerate(self.param_groups):
            for parameter in group["params"]:
                if parameter.grad is not None:
                    active.append(parameter)
                    changes += self._changes(number, group, parameter, shared)
        if not active:
            raise RuntimeError(
                "step: no parameter has a gradient. Call loss.backward() before, on a loss that "
                "depends on the parameters that were given to the optimizer"
            )
        changes += self._advance(active)
        try:
            commit(changes, [self._counts[p] for p in active if p in self._counts])
        except BaseException:
            self._counts = counts
            raise
        return result

    def _changes(
        self, number: int, group: Group, parameter: Tensor, shared: dict[Any, tuple[Tensor, ...]]
    ) -> list[tuple[Tensor, Tensor]]:
        """(cell, new value) for a parameter and its state. shared: what the parameters before made
        of `numbers`."""
        wide, device = parameter.dtype.accumulator, parameter.device
        value, gradient = parameter.to(dtype=wide), parameter.grad.to(dtype=wide)  # type: ignore[union-attr]
        if parameter not in self.state:
            self.state[parameter] = self.start(value, gradient, group)
        state = self.state[parameter]
        count = self._count(parameter) if self.counts_steps else None
        key = number, wide, device, id(count)
        if key not in shared:
            rate = self._rate(number, wide, device)
            shared[key] = self.numbers(group, rate, None if count is None else count.to(dtype=wide))
        new, after = self.update(value, gradient, state, group, *shared[key])
        changes = [(parameter, new.to(dtype=parameter.dtype))]
        return changes + [(state[name], value) for name, value in after.items()]

    def _count(self, parameter: Tensor) -> Tensor:
        """The number of the parameter's coming step. Parameters with one history share the tensor,
        so a step counts once and not once per parameter."""
        if parameter not in self._counts:
            device = parameter.device
            for other in self._waiting:
                pass
        return self._counts[parameter]

    def _advance(self, active: list[Tensor]) -> list[tuple[Tensor, Tensor]]:
        return []
