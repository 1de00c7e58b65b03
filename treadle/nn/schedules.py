"""Schedules: how the learning rate of an optimizer changes from step to step (or epoch to epoch).

A schedule sets `group["lr"]` when its `step()` is called, which is after the optimizer's. The
optimizer keeps the rate in a tensor, so a captured step sees the new one and compiles nothing. As
PyTorch's, most are rules from the last rate to the next: two schedules of one optimizer multiply,
and a rate that was changed by hand goes on from there.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from treadle.engine import trace
from treadle.engine.trace import JitError
from treadle.graph.shapes import as_int
from treadle.nn.optimizer import Group, Optimizer
from treadle.tensor import Tensor, no_grad

Rates = list[float]


class LRScheduler:
    """The base of schedules: counts, and sets the rates that `get_lr` gives.

    last_epoch: the number of the last step that was made: -1 to begin; another one to go on with an
    optimizer whose groups have their "initial_lr" (its state dict keeps it).

    >>> class Halving(LRScheduler):
    ...     def get_lr(self):
    ...         return [base / 2**self.last_epoch for base in self.base_lrs]
    """

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        if not isinstance(optimizer, Optimizer):
            raise TypeError(
                f"{type(self).__name__}: it takes an optimizer of nn.optim, not a "
                f"{type(optimizer).__name__}"
            )
        self.optimizer = optimizer
        for number, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", _number(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(
                    f"{type(self).__name__}: group {number} has no 'initial_lr', which a schedule "
                    f"that goes on at last_epoch={last_epoch} needs: load the optimizer's state"
                )
        self.base_lrs: Rates = [group["initial_lr"] for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self._last_lr: Rates = []
        self.step()

    def get_lr(self) -> Rates:
        """The rate of every group for step number `last_epoch`; its rate now is in `_rates()`."""
        raise NotImplementedError(f"{type(self).__name__} needs a method get_lr()")

    def get_last_lr(self) -> Rates:
        """The rates that were set last."""
        return self._last_lr

    def step(self, epoch: int | None = None) -> None:
        """Go to the next step, or to the one of that number (from the beginning)."""
        self._outside_captured_functions()
        if epoch is not None:
            self._set(self.base_lrs)
            self.last_epoch = -1
        for _ in range(1 if epoch is None else epoch + 1):
            self.last_epoch += 1
            self._set(self.get_lr())

    def _outside_captured_functions(self) -> None:
        if trace.current() is not None:
            raise JitError(
                f"{type(self).__name__}.step() inside a captured function would be done once and "
                "not at every call: call it outside, after the function"
            )

    def _rates(self) -> Rates:
        return [_number(group["lr"]) for group in self.optimizer.param_groups]

    def _set(self, rates: Rates) -> None:
        for group, rate in zip(self.optimizer.param_groups, rates):
            set_rate(group, rate)
        self._last_lr = self._rates()

    def state_dict(self) -> dict[str, Any]:
        """What has to be kept to go on later: numbers and lists, without the optimizer."""
        return {name: value for name, value in vars(self).items() if name != "optimizer"}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Go on from what `state_dict` gave."""
        vars(self).update(state_dict)


def _number(rate: Any) -> float:
    return float(rate.item()) if isinstance(rate, Tensor) else float(rate)


def set_rate(group: Group, rate: float) -> None:
    """Set the learning rate of a group; a tensor stays the same tensor."""
    if isinstance(group["lr"], Tensor):
        with no_grad():
            group["lr"].assign(rate)
    else:
        group["lr"] = rate


# ---- by factors ----------------------------------------------------------------------------------
class LambdaLR(LRScheduler):
    """base * f(n). lr_lambda: f, or one per group.

    >>> opt = nn.optim.SGD([Tensor([1.0], requires_grad=True)], lr=0.5)
    >>> schedule = LambdaLR(opt, lambda n: 1 / (n + 1))
    >>> schedule.step(); opt.lr
    0.25
    """

    def __init__(
        self,
        optimizer: Optimizer,
        lr_lambda: Callable[[int], float] | Sequence[Callable[[int], float]],
        last_epoch: int = -1,
    ) -> None:
        self.lr_lambdas = per_group(self, optimizer, lr_lambda)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> Rates:
        return [base * f(self.last_epoch) for base, f in zip(self.base_lrs, self.lr_lambdas)]

    def state_dict(self) -> dict[str, Any]:
        return {name: v for name, v in super().state_dict().items() if name != "lr_lambdas"}


class MultiplicativeLR(LambdaLR):
    """The last rate times f(n). lr_lambda: f, or one per group."""

    def get_lr(self) -> Rates:
        if self.last_epoch == 0:
            return self._rates()
        return [rate * f(self.last_epoch) for rate, f in zip(self._rates(), self.lr_lambdas)]


def per_group(schedule: Any, optimizer: Optimizer, value: Any) -> list[Any]:
    """What was given once for all groups of an optimizer, or for each."""
    count = len(optimizer.param_groups)
    each = list(value) if isinstance(value, (tuple, list)) else [value] * count
    if len(each) != count:
        raise ValueError(
            f"{type(schedule).__name__}: {len(each)} values for an optimizer of {count} groups"
        )
    return each


class _Factor(LRScheduler):
    """The last rate times a factor."""

    def factor(self) -> float:
        """What the rate is multiplied by for step `last_epoch`."""
        raise NotImplementedError

    def get_lr(self) -> Rates:
        factor = self.factor()
        return [rate * factor for rate in self._rates()]


class StepLR(_Factor):
    """The rate times gamma after every `step_size` steps."""

    def __init__(
        self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        if as_int(step_size, "StepLR: step_size") < 1:
            raise ValueError(f"StepLR: step_size={step_size!r} must be an int of 1 or more")
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def factor(self) -> float:
        due = self.last_epoch > 0 and self.last_epoch % self.step_size == 0
        return self.gamma if due else 1.0


class MultiStepLR(_Factor):
    """The rate times gamma at each of the steps in `milestones`."""

    def __init__(
        self,
        optimizer: Optimizer,
        milestones: Iterable[int],
        gamma: float = 0.1,
        last_epoch: int = -1,
    ) -> None:
        self.milestones, self.gamma = Counter(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def factor(self) -> float:
        return float(self.gamma ** self.milestones[self.last_epoch])


class ExponentialLR(_Factor):
    """The rate times gamma at every step."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def factor(self) -> float:
        return self.gamma if self.last_epoch > 0 else 1.0


class ConstantLR(_Factor):
    """The rate times `factor` for the first `total_iters` steps."""

    def __init__(
        self,
        optimizer: Optimizer,
        factor: float = 1 / 3,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if not 0 <= factor <= 1:
            raise ValueError(f"ConstantLR: factor={factor!r} must be in 0..1")
        self.share, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_epoch)

    def factor(self) -> float:
        if self.last_epoch == 0:
            return self.share
        return 1 / self.share if self.last_epoch == self.total_iters else 1.0


class LinearLR(_Factor):
    """base times a factor that goes from start_factor to end_factor in `total_iters` steps."""

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if not 0 < start_factor <= 1 or not 0 <= end_factor <= 1:
            raise ValueError(
                f"LinearLR: start_factor={start_factor!r} must be above 0, end_factor="
                f"{end_factor!r} at least 0, and both at most 1"
            )
        self.start_factor, self.end_factor, self.total_iters = start_factor, end_factor, total_iters
        super().__init__(optimizer, last_epoch)

    def factor(self) -> float:
        if self.last_epoch == 0:
            return self.start_factor
        if self.last_epoch > self.total_iters:
            return 1.0
        rise = self.end_factor - self.start_factor
        before = self.total_iters * self.start_factor + (self.last_epoch - 1) * rise
        return 1 + rise / before


class PolynomialLR(_Factor):
    """base * (1 - n/total_iters)**power, for the first `total_iters` steps; then 0."""

    def __init__(
        self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1
    ) -> None:
        self.total_iters, self.power = total_iters, power
        super().__init__(optimizer, last_epoch)

    def factor(self) -> float:
        now, total = self.last_epoch, self.total_iters
        if now == 0 or now > total:
            return 1.0
        return float(((1 - now / total) / (1 - (now - 1) / total)) ** self.power)


class LinearWarmup(LRScheduler):
    """The rate rises in `warmup_steps` equal steps to base, and stays there.

    start_factor: the share of base that it rises from, which no step has any more. Source: treadle.

    >>> opt = nn.optim.SGD([Tensor([1.0], requires_grad=True)], lr=1.0)
    >>> schedule = LinearWarmup(opt, 4)
    >>> opt.lr
    0.25
    """

    def __init__(
        self,
        optimizer: Optimizer,
        warmup_steps: int,
        start_factor: float = 0.0,
        last_epoch: int = -1,
    ) -> None:
        if warmup_steps < 1:
            raise ValueError(f"LinearWarmup: warmup_steps={warmup_steps!r} must be at least 1")
        self.warmup_steps, self.start_factor = warmup_steps, start_factor
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> Rates:
        risen = min(1.0, (self.last_epoch + 1) / self.warmup_steps)
        share = self.start_factor + (1 - self.start_factor) * risen
        return [base * share for base in self.base_lrs]


# ---- by cosines ----------------------------------------------------------------------------------
class CosineAnnealingLR(LRScheduler):
    """From base to eta_min along half a cosine in T_max steps, and back in as many.

    Source: PyTorch; Loshchilov and Hutter, "SGDR: stochastic gradient descent with warm restarts",
    2017.
    """

    def __init__(
        self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> Rates:
        now, half, least = self.last_epoch, self.T_max, self.eta_min
        if now == 0:
            return self._rates()
        if (now - 1 - half) % (2 * half) == 0:  # the last rate was the least: 0 of the cosine
            rise = (1 - math.cos(math.pi / half)) / 2
            return [
                rate + (base - least) * rise for rate, base in zip(self._rates(), self.base_lrs)
            ]
        ratio = _risen(now / half) / _risen((now - 1) / half)
        return [ratio * (rate - least) + least for rate in self._rates()]


def _risen(turn: float) -> float:
    return 1 + math.cos(math.pi * turn)


class CosineAnnealingWarmRestarts(LRScheduler):
    """From base to eta_min along half a cosine in T_0 steps, then again from base, every time in
    T_mult times as many. `step` also takes a fraction of an epoch.

    Source: PyTorch; Loshchilov and Hutter, "SGDR", 2017.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        T_0: int,
        T_mult: int = 1,
        eta_min: float = 0.0,
        last_epoch: int = -1,
    ) -> None:
        for name, value in (("T_0", T_0), ("T_mult", T_mult)):
            if as_int(value, f"CosineAnnealingWarmRestarts: {name}") < 1:
                raise ValueError(
                    f"CosineAnnealingWarmRestarts: {name}={value!r} must be an int of at least 1"
                )
        self.T_0, self.T_i, self.T_mult, self.eta_min = T_0, T_0, T_mult, eta_min
        self.T_cur: float = last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> Rates:
        share = _risen(self.T_cur / self.T_i) / 2
        return [self.eta_min + (base - self.eta_min) * share for base in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:
        """Go to the next step, or to the place `epoch`, which need not be whole."""
        self._outside_captured_functions()
        if epoch is not None and epoch < 0:
            raise ValueError(f"CosineAnnealingWarmRestarts: epoch={epoch!r} must be 0 or more")
        place = self.last_epoch + 1 if epoch is None else epoch
        self.T_cur, self.T_i = place, self.T_0
        while self.T_cur >= self.T_i:
            self.T_cur, self.T_i = self.T_cur - self.T_i, self.T_i * self.T_mult
            if self.T_mult == 1:
                self.T_cur %= self.T_0
        self.last_epoch = math.floor(place)
        self._set(self.get_lr())


class OneCycleLR(LRScheduler):
    """One rise from max_lr/div_factor to max_lr and one fall to far below, in total_steps steps;
    momentum goes the other way.

    max_lr: one number, or one per group. total_steps, or epochs and steps_per_epoch: how long.
    pct_start: the share of the rise. anneal_strategy: "cos" or "linear". cycle_momentum: move
    momentum (or the first beta) from max_momentum to base_momentum and back. final_div_factor: the
    last rate is the first divided by it. three_phase: fall to the first rate, then to the last.
    Source: PyTorch; Smith and Topin, "Super-convergence", 2018.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | Sequence[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: float | Sequence[float] = 0.85,
        max_momentum: float | Sequence[float] = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        if total_steps is None:
            if epochs is None or steps_per_epoch is None:
                raise ValueError("OneCycleLR: give total_steps, or epochs and steps_per_epoch")
            total_steps = epochs * steps_per_epoch
        if total_steps < 1 or not 0 <= pct_start <= 1:
            raise ValueError(
                f"OneCycleLR: total_steps={total_steps!r} must be at least 1 and pct_start="
                f"{pct_start!r} in 0..1"
            )
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                f"OneCycleLR: anneal_strategy is 'cos' or 'linear', not {anneal_strategy!r}"
            )
        self.total_steps, self.pct_start, self.three_phase = total_steps, pct_start, three_phase
        self.anneal_strategy, self.cycle_momentum = anneal_strategy, cycle_momentum
        self.max_lrs = per_group(self, optimizer, max_lr)
        self.first_lrs = [rate / div_factor for rate in self.max_lrs]
        self.last_lrs = [rate / final_div_factor for rate in self.first_lrs]
        self.base_momentums = per_group(self, optimizer, base_momentum)
        self.max_momentums = per_group(self, optimizer, max_momentum)
        if last_epoch == -1:
            for group, rate in zip(optimizer.param_groups, self.first_lrs):
                group["initial_lr"] = rate
        if cycle_momentum and not {"momentum", "betas"} & set(optimizer.defaults):
            raise ValueError(
                "OneCycleLR: cycle_momentum=True needs an optimizer with momentum or betas"
            )
        super().__init__(optimizer, last_epoch)

    def _phases(self) -> list[tuple[float, str, str, str, str]]:
        """(its last step, rates from, to, momentums from, to) of each phase."""
        rise, last = self.pct_start * self.total_steps - 1, self.total_steps - 1
        up = (rise, "first_lrs", "max_lrs", "max_momentums", "base_momentums")
        if not self.three_phase:
            return [up, (last, "max_lrs", "last_lrs", "base_momentums", "max_momentums")]
        down = 2 * self.pct_start * self.total_steps - 2
        return [
            up,
            (down, "max_lrs", "first_lrs", "base_momentums", "max_momentums"),
            (last, "first_lrs", "last_lrs", "max_momentums", "max_momentums"),
        ]

    def get_lr(self) -> Rates:
        now = self.last_epoch
        if now > self.total_steps:
            raise ValueError(
                f"OneCycleLR: step {now} of {self.total_steps}: the cycle is over. Give it as many "
                "steps as there are"
            )
        begin = 0.0
        phases = self._phases()
        for phase in phases:
            end = phase[0]
            if now <= end or phase is phases[-1]:
                break
            begin = end
        _, low, high, from_, to = phase
        share = (now - begin) / (end - begin) if end != begin else 1.0
        if self.cycle_momentum:
            for number, group in enumerate(self.optimizer.param_groups):
                value = self._between(
                    getattr(self, from_)[number], getattr(self, to)[number], share
                )
                if "betas" in group:
                    group["betas"] = (value, *group["betas"][1:])
                else:
                    group["momentum"] = value
        starts, stops = getattr(self, low), getattr(self, high)
        return [self._between(start, stop, share) for start, stop in zip(starts, stops)]

    def _between(self, start: float, stop: float, share: float) -> float:
        if self.anneal_strategy == "linear":
            return start + (stop - start) * share
        return stop + (start - stop) / 2 * _risen(share)


# ---- of schedules --------------------------------------------------------------------------------
class SequentialLR(LRScheduler):
    """Schedules one after the other. milestones: the steps at which the next one begins.

    >>> opt = nn.optim.SGD([Tensor([1.0], requires_grad=True)], lr=1.0)
    >>> parts = [LinearWarmup(opt, 2), ExponentialLR(opt, 0.5)]
    >>> schedule, rates = SequentialLR(opt, parts, [2]), []
    >>> for _ in range(4):
    ...     rates.append(opt.lr); schedule.step()
    >>> rates
    [0.5, 1.0, 1.0, 0.5]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        schedulers: Sequence[Any],
        milestones: Sequence[int],
        last_epoch: int = -1,
    ) -> None:
        if len(schedulers) < 1 or len(milestones) != len(schedulers) - 1:
            raise ValueError(
                f"SequentialLR: {len(schedulers)} schedulers need one milestone less, not "
                f"{len(milestones)}"
            )
        for schedule in schedulers:
            if getattr(schedule, "optimizer", None) is not optimizer:
                raise ValueError("SequentialLR: every schedule must be of this optimizer")
            if isinstance(schedule, ReduceLROnPlateau):
                raise ValueError("SequentialLR: ReduceLROnPlateau needs a metric at every step")
        self.optimizer = optimizer
        self._schedulers, self._milestones = list(schedulers), list(milestones)
        self.last_epoch = last_epoch + 1
        for group in optimizer.param_groups:
            set_rate(group, group["initial_lr"])
        for schedule in schedulers:  # each has made its first step: only the first one's counts
            schedule.last_epoch -= 1
        schedulers[0].step()
        self._last_lr = schedulers[0].get_last_lr()

    def step(self, epoch: int | None = None) -> None:
        """Go to the next step."""
        if epoch is not None:
            raise NotImplementedError("SequentialLR: step(epoch=) is not there: step() goes on")
        self.last_epoch += 1
        number = bisect_right(self._milestones, self.last_epoch)
        schedule = self._schedulers[number]
        if number and self._milestones[number - 1] == self.last_epoch:
            schedule.step(0)
        else:
            schedule.step()
        self._last_lr = schedule.get_last_lr()

    def state_dict(self) -> dict[str, Any]:
        state = {n: v for n, v in super().state_dict().items() if n != "_schedulers"}
        return {**state, "_schedulers": [each.state_dict() for each in self._schedulers]}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        parts = state_dict["_schedulers"]
        super().load_state_dict({n: v for n, v in state_dict.items() if n != "_schedulers"})
        for schedule, part in zip(self._schedulers, parts):
            schedule.load_state_dict(part)


class ReduceLROnPlateau:
    """The rate times `factor` when a metric has not improved for more than `patience` steps.

    mode: whether the metric is to fall ("min") or rise ("max"). threshold: by how much it must
    improve: a share of the best ("rel"), or that much ("abs"). cooldown: for how many steps after a
    reduction nothing counts. min_lr: the least rate, or one per group. eps: smaller changes of the
    rate are not made. Source: PyTorch.

    >>> opt = nn.optim.SGD([Tensor([1.0], requires_grad=True)], lr=1.0)
    >>> schedule = ReduceLROnPlateau(opt, factor=0.5, patience=0)
    >>> schedule.step(3.0); schedule.step(3.0); opt.lr
    0.5
    """

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: float | Sequence[float] = 0,
        eps: float = 1e-8,
    ) -> None:
        if factor >= 1:
            raise ValueError(f"ReduceLROnPlateau: factor={factor!r} must be below 1")
        if mode not in ("min", "max") or threshold_mode not in ("rel", "abs"):
            raise ValueError(
                "ReduceLROnPlateau: mode is 'min' or 'max' and threshold_mode 'rel' or 'abs', not "
                f"{mode!r} and {threshold_mode!r}"
            )
        self.optimizer = optimizer
        self.mode, self.factor, self.patience = mode, factor, patience
        self.threshold, self.threshold_mode = threshold, threshold_mode
        self.cooldown, self.eps = cooldown, eps
        self.min_lrs = per_group(self, optimizer, min_lr)
        self.best = math.inf if mode == "min" else -math.inf
        self.num_bad_epochs = self.cooldown_counter = self.last_epoch = 0
        self._last_lr = [_number(group["lr"]) for group in optimizer.param_groups]

    def step(self, metrics: Any, epoch: int | None = None) -> None:
        """Take note of a metric (a number, or a tensor of one element, which is read)."""
        now = float(metrics)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self._improves(now):
            self.best, self.num_bad_epochs = now, 0
        else:
            self.num_bad_epochs += 1
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            for group, least in zip(self.optimizer.param_groups, self.min_lrs):
                rate = _number(group["lr"])
                lower = max(rate * self.factor, least)
                if rate - lower > self.eps:
                    set_rate(group, lower)
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
        self._last_lr = [_number(group["lr"]) for group in self.optimizer.param_groups]

    def _improves(self, now: float) -> bool:
        sign = 1 if self.mode == "max" else -1
        if self.threshold_mode == "abs":
            wanted = self.best + sign * self.threshold
        else:
            wanted = self.best * (1 + sign * self.threshold)
        return now > wanted if self.mode == "max" else now < wanted

    def get_last_lr(self) -> Rates:
        """The rates that were set last."""
        return self._last_lr

    def state_dict(self) -> dict[str, Any]:
        """What has to be kept to go on later, without the optimizer."""
        return {name: value for name, value in vars(self).items() if name != "optimizer"}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Go on from what `state_dict` gave."""
        vars(self).update(state_dict)
