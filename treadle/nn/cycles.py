"""Schedules that go up and down, and several at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from treadle.nn.optimizer import Group, Optimizer
from treadle.nn.schedules import LRScheduler, Rates, ReduceLROnPlateau, per_group, set_rate

MODES = ("triangular", "triangular2", "exp_range")


class CyclicLR(LRScheduler):
    """The rate goes from base_lr up to max_lr and down again, and the momentum the other way.

    step_size_up, step_size_down: steps of the way up and down (None: as many). mode: how high it
    goes: "triangular" always to max_lr; "triangular2" half as high in each cycle; "exp_range" by
    gamma**step. scale_fn(x): the height as a function of the number of the cycle, from 1, or
    (scale_mode="iterations") of the step. cycle_momentum: whether the momentum (of SGD; the first
    beta of Adam) goes from max_momentum down to base_momentum meanwhile.
    Source: PyTorch; Smith, "Cyclical learning rates for training neural networks", 2017.

    >>> opt = nn.optim.SGD([Tensor([1.0], requires_grad=True)], lr=1.0)
    >>> schedule, rates = CyclicLR(opt, 0.0, 1.0, 2, cycle_momentum=False), []
    >>> for _ in range(5):
    ...     rates.append(opt.lr); schedule.step()
    >>> rates
    [0.0, 0.5, 1.0, 0.5, 0.0]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: float | list[float],
        max_lr: float | list[float],
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.8,
        max_momentum: float | list[float] = 0.9,
        last_epoch: int = -1,
    ) -> None:
        if mode not in MODES and scale_fn is None:
            raise ValueError(f"CyclicLR: mode={mode!r} is not one of {MODES}")
        if scale_mode not in ("cycle", "iterations"):
            raise ValueError(f"CyclicLR: scale_mode={scale_mode!r} is not 'cycle' or 'iterations'")
        down = step_size_up if step_size_down is None else step_size_down
        if min(step_size_up, down) <= 0:
            raise ValueError(f"CyclicLR: step sizes {step_size_up} and {down} must be above 0")
        if cycle_momentum and not all(map(_momentum_of, optimizer.param_groups)):
            raise ValueError(
                f"CyclicLR: {type(optimizer).__name__} has no momentum: cycle_momentum=False"
            )
        self.mode, self.gamma, self.cycle_momentum = mode, gamma, cycle_momentum
        self.total_size, self.step_ratio = step_size_up + down, step_size_up / (step_size_up + down)
        self._scale, self._by_cycle = scale_fn, scale_mode == "cycle"
        if scale_fn is None:
            self._by_cycle = mode != "exp_range"
        self.max_lrs = per_group(self, optimizer, max_lr)
        self.base_momentums = per_group(self, optimizer, base_momentum)
        self.max_momentums = per_group(self, optimizer, max_momentum)
        bases = per_group(self, optimizer, base_lr)
        if last_epoch == -1:
            for group, rate in zip(optimizer.param_groups, bases):
                group.pop("initial_lr", None)
                set_rate(group, rate)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> Rates:
        height = self._height()
        if self.cycle_momentum:
            pairs = zip(self.base_momentums, self.max_momentums)
            for group, (base, most) in zip(self.optimizer.param_groups, pairs):
                _set_momentum(group, most - (most - base) * height)
        return [base + (most - base) * height for base, most in zip(self.base_lrs, self.max_lrs)]

    def _height(self) -> float:
        """Where on the way from base to max this step is."""
        cycle = 1 + self.last_epoch // self.total_size
        share = 1 + self.last_epoch / self.total_size - cycle
        if share <= self.step_ratio:
            up = share / self.step_ratio
        else:
            up = (share - 1) / (self.step_ratio - 1)
        return up * self._scaled(cycle if self._by_cycle else self.last_epoch)

    def _scaled(self, x: float) -> float:
        if self._scale is not None:
            return self._scale(x)
        if self.mode == "triangular2":
            return 1 / 2 ** (x - 1)
        return self.gamma**x if self.mode == "exp_range" else 1.0

    def state_dict(self) -> dict[str, Any]:
        """As of every schedule, without `scale_fn`."""
        return {name: value for name, value in super().state_dict().items() if name != "_scale"}


def _momentum_of(group: Group) -> bool:
    return "momentum" in group or "betas" in group


def _set_momentum(group: Group, value: float) -> None:
    if "momentum" in group:
        group["momentum"] = value
    else:
        group["betas"] = (value, *group["betas"][1:])


class ChainedScheduler(LRScheduler):
    """Several schedules of one optimizer, which all make every step: their factors multiply.

    Source: PyTorch.

    >>> opt = nn.optim.SGD([Tensor([1.0], requires_grad=True)], lr=1.0)
    >>> lr_scheduler = nn.optim.lr_scheduler
    >>> halving = lr_scheduler.ExponentialLR(opt, 0.5)
    >>> both = ChainedScheduler([halving, lr_scheduler.ConstantLR(opt, 0.5, total_iters=1)])
    >>> both.step()
    >>> opt.lr
    0.5
    """

    def __init__(self, schedulers: Sequence[Any], optimizer: Optimizer | None = None) -> None:
        if not schedulers:
            raise ValueError("ChainedScheduler: it needs at least one schedule")
        own = schedulers[0].optimizer if optimizer is None else optimizer
        for schedule in schedulers:
            if getattr(schedule, "optimizer", None) is not own:
                raise ValueError("ChainedScheduler: every schedule must be of one optimizer")
            if isinstance(schedule, ReduceLROnPlateau):
                raise ValueError("ChainedScheduler: ReduceLROnPlateau needs a metric at every step")
        self.optimizer = own
        self._schedulers = list(schedulers)
        self._last_lr = self._rates()

    def step(self, epoch: int | None = None) -> None:
        """Let every schedule make its next step."""
        if epoch is not None:
            raise NotImplementedError("ChainedScheduler: step(epoch=) is not there: step() goes on")
        for schedule in self._schedulers:
            schedule.step()
        self._last_lr = self._rates()

    def state_dict(self) -> dict[str, Any]:
        state = {n: v for n, v in super().state_dict().items() if n != "_schedulers"}
        return {**state, "_schedulers": [each.state_dict() for each in self._schedulers]}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        super().load_state_dict({n: v for n, v in state_dict.items() if n != "_schedulers"})
        for schedule, part in zip(self._schedulers, state_dict["_schedulers"]):
            schedule.load_state_dict(part)
