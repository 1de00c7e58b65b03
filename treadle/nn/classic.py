"""Rules from before adaptive moments, and from beyond first derivatives: Rprop, ASGD, L-BFGS."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from treadle.nn.begin import buffer
from treadle.nn.line_search import strong_wolfe
from treadle.nn.optimizer import Group, Optimizer, State, check_range, with_decay, zeros
from treadle.nn.vectors import parameters_to_vector, vector_to_parameters
from treadle.tensor import Tensor, enable_grad, no_grad

CURVED = 1e-10  # below this, a step says nothing about curvature


class Rprop(Optimizer):
    """Each element moves by a step of its own, which grows while its gradient keeps its sign and
    shrinks when that changes; the size of the gradient does not count.

    etas: by what a step is multiplied when the sign changes, and when it stays. step_sizes: the
    least and the greatest step. lr: the first. maximize: ascend. For whole batches.
    Source: PyTorch's `Rprop`; Riedmiller and Braun, "A direct adaptive method for faster
    backpropagation learning", 1993.

    >>> weight = Tensor([1.0], requires_grad=True)
    >>> (weight * 2).sum().backward()
    >>> nn.optim.Rprop([weight], lr=0.5).step()
    >>> weight.tolist()
    [0.5]
    """

    counts_steps = True

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        maximize: bool = False,
    ) -> None:
        settings = {"lr": lr, "etas": etas, "step_sizes": step_sizes, "maximize": maximize}
        super().__init__(params, settings)

    def check(self, group: Group) -> None:
        super().check(group)
        less, more = group["etas"]
        if not 0 < less < 1 < more:
            raise ValueError(f"etas={group['etas']!r}: 0 < etas[0] < 1 < etas[1] must hold")
        least, greatest = group["step_sizes"]
        if not 0 <= least <= greatest:
            raise ValueError(f"step_sizes={group['step_sizes']!r} must be (least, greatest)")

    def start(self, parameter: Tensor, group: Group) -> State:
        size = buffer(_number(group["lr"]), parameter.shape, parameter.dtype, parameter.device)
        return {"prev": zeros(parameter), "step_size": size}

    def update(
        self,
        parameter: Tensor,
        gradient: Tensor,
        state: State,
        group: Group,
        rate: Tensor,
        numbers: State,
    ) -> tuple[Tensor, State]:
        (less, more), (least, greatest) = group["etas"], group["step_sizes"]
        step = -gradient if group["maximize"] else gradient
        agreement = step * state["prev"]
        turned = agreement < 0
        before = state["step_size"]
        size = turned.where(before * less, (agreement > 0).where(before * more, before))
        size = size.clamp(least, greatest)
        step = step.masked_fill(turned, 0)
        return parameter - step.sign() * size, {"prev": step, "step_size": size}


class ASGD(Optimizer):
    """Gradient descent that also keeps the average of the parameters over time, in the state "ax".

    lambd: how fast the rate falls: lr/(1 + lambd*lr*step)**alpha. t0: the step from which on it is
    an average; before, "ax" is the parameter. weight_decay, maximize: as for SGD.
    Source: PyTorch's `ASGD`; Polyak and Juditsky, "Acceleration of stochastic approximation by
    averaging", 1992.

    >>> weight = Tensor([1.0], requires_grad=True)
    >>> (weight * 2).sum().backward()
    >>> nn.optim.ASGD([weight], lr=0.25, lambd=0).step()
    >>> weight.tolist()
    [0.5]
    """

    numbers_in_state = ("step", "eta", "mu")

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | Tensor = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        *,
        maximize: bool = False,
    ) -> None:
        settings = {
            "lr": lr, "lambd": lambd, "alpha": alpha, "t0": t0, "weight_decay": weight_decay,
            "maximize": maximize,
        }  # fmt: skip
        super().__init__(params, settings)

    def start(self, parameter: Tensor, group: Group) -> State:
        dtype, device = parameter.dtype, parameter.device
        eta = buffer(_number(group["lr"]), (), dtype, device)
        return {"eta": eta, "mu": buffer(1, (), dtype, device), "ax": zeros(parameter)}

    def numbers(self, step: Any, group: Group) -> dict[str, Any]:
        """The number of the step."""
        return {"count": step}

    def update(
        self,
        parameter: Tensor,
        gradient: Tensor,
        state: State,
        group: Group,
        rate: Tensor,
        numbers: State,
    ) -> tuple[Tensor, State]:
        eta, count, lambd = state["eta"], numbers["count"], group["lambd"]
        step = with_decay(parameter, gradient, group)
        new = parameter * (1 - lambd * eta) - eta * step
        average = state["ax"] + (new - state["ax"]) * state["mu"]
        falling = rate / (1 + lambd * rate * count) ** group["alpha"]
        return new, {"ax": average, "eta": falling, "mu": 1 / (count - group["t0"]).clamp(min=1)}


class LBFGS(Optimizer):
    """A quasi-Newton rule: the curvature is estimated from the last steps and gradients.

    `step(closure)` calls the closure several times: it must clear the gradients, compute the loss,
    call backward, and return the loss. One group of parameters, and whole batches.
    max_iter, max_eval: iterations and calls of the closure in one `step`, at most (None: 1.25 times
    max_iter). tolerance_grad: it ends when no element of the gradient is larger; tolerance_change:
    when neither parameters nor loss change by more. history_size: steps that are remembered.
    line_search_fn: None, each step is `lr` times the direction; or "strong_wolfe".
    Source: PyTorch's `LBFGS`; Liu and Nocedal, "On the limited memory BFGS method for large scale
    optimization", 1989.

    >>> weight = Tensor([5.0, -3.0], requires_grad=True)
    >>> opt = nn.optim.LBFGS([weight], line_search_fn="strong_wolfe")
    >>> def closure():
    ...     opt.zero_grad()
    ...     loss = ((weight - 1) ** 2).sum()
    ...     loss.backward()
    ...     return loss
    >>> loss = opt.step(closure)
    >>> weight.round(decimals=3)
    Tensor([1., 1.])
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        if line_search_fn not in (None, "strong_wolfe"):
            raise ValueError(f"line_search_fn={line_search_fn!r} is not None or 'strong_wolfe'")
        settings = {
            "lr": lr, "max_iter": max_iter,
            "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
            "tolerance_grad": tolerance_grad, "tolerance_change": tolerance_change,
            "history_size": history_size, "line_search_fn": line_search_fn,
        }  # fmt: skip
        super().__init__(params, settings)
        if len(self.param_groups) != 1:
            raise ValueError(f"LBFGS has one group of parameters, not {len(self.param_groups)}")
        self._pairs: list[tuple[Tensor, Tensor, Tensor]] = []  # (y, s, 1 / y.s) of the last steps
        self._last: tuple[Tensor, Tensor] | None = None  # the last step and the gradient before it

    def check(self, group: Group) -> None:
        super().check(group)
        for name in ("max_iter", "history_size", "tolerance_grad", "tolerance_change"):
            check_range(name, group[name], 0)

    def step(self, closure: Callable[[], Any] | None = None, *, skip: Tensor | None = None) -> Any:
        """Iterate until a limit is met; the loss before the first iteration is returned."""
        if closure is None:
            raise TypeError("LBFGS.step(closure) needs a function that computes the loss again")
        if skip is not None:
            raise NotImplementedError("LBFGS.step: skip= is not there: a step is many evaluations")
        (group,) = self.param_groups
        with enable_grad():
            first = closure()
        loss, gradient, evaluations = float(first), self._gradient(), 1
        for iteration in range(group["max_iter"]):
            if float(gradient.abs().max()) <= group["tolerance_grad"]:
                break
            direction = self._direction(gradient)
            slope = float((gradient * direction).sum())
            if slope > -group["tolerance_change"]:
                break
            size = _number(group["lr"])
            if self._last is None:
                size *= min(1.0, 1 / float(gradient.abs().sum()))
            here, before = parameters_to_vector(group["params"]).detach(), loss

            def at(size: float, here: Tensor = here, direction: Tensor = direction) -> Any:
                return self._evaluated(closure, here + direction * size)

            last = gradient
            if group["line_search_fn"] is None:
                is_end = iteration + 1 == group["max_iter"]
                if is_end:
                    self._move(here + direction * size)
                else:
                    loss, gradient = at(size)
                evaluations += not is_end
            else:
                size, loss, gradient, calls = strong_wolfe(
                    at, direction, size, loss, gradient, slope, group["tolerance_change"]
                )
                self._move(here + direction * size)
                evaluations += calls
            move = (direction * size).realize()
            self._last = move, last
            still = float(move.abs().max()) <= group["tolerance_change"]
            if still or abs(loss - before) < group["tolerance_change"]:
                break
            if evaluations >= group["max_eval"]:
                break
        return first

    def state_dict(self) -> dict[str, Any]:
        """NotImplementedError: what it remembers belongs to one run."""
        raise NotImplementedError("LBFGS: state_dict() is not there: save the parameters alone")

    def _direction(self, gradient: Tensor) -> Tensor:
        """Minus the inverse curvature times the gradient, by the two loops of Nocedal and Wright,
        "Numerical optimization", algorithm 7.4."""
        if self._last is None:
            return (-gradient).realize()
        step, before = self._last
        change = gradient - before
        product = (change * step).sum()
        if float(product) > CURVED:
            self._pairs.append((change.realize(), step, (1 / product).realize()))
            self._pairs = self._pairs[-self.param_groups[0]["history_size"] :]
        direction, weights = -gradient, []
        for change, step, inverse in reversed(self._pairs):
            weights.append((step * direction).sum() * inverse)
            direction = direction - weights[-1] * change
        if self._pairs:
            change, _, inverse = self._pairs[-1]
            direction = direction / (inverse * (change * change).sum())
        for change, step, inverse in self._pairs:
            direction = direction + step * (weights.pop() - (change * direction).sum() * inverse)
        return direction.realize()

    def _evaluated(self, closure: Callable[[], Any], place: Tensor) -> tuple[float, Tensor]:
        """The loss and its gradient at other values of the parameters, which they have then."""
        self._move(place)
        with enable_grad():
            loss = float(closure())
        return loss, self._gradient()

    def _move(self, place: Tensor) -> None:
        with no_grad():
            vector_to_parameters(place, self.param_groups[0]["params"])

    def _gradient(self) -> Tensor:
        """The gradients as one vector, 0 where there is none."""
        parts = []
        for parameter in self.param_groups[0]["params"]:
            given = parameter.grad
            parts.append((zeros(parameter) if given is None else given.detach()).reshape(-1))
        return Tensor.cat(parts).realize()


def _number(rate: Any) -> float:
    return float(rate.item()) if isinstance(rate, Tensor) else float(rate)
