"""Optimizers whose steps adapt to every element by what its gradients have been, after Adam's kind.

Each rule is the formula of its paper as PyTorch has it, with PyTorch's names of settings and state.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from treadle.nn.begin import buffer
from treadle.nn.optimizer import Group, Optimizer, State, check_range, towards, with_decay, zeros
from treadle.tensor import Tensor

Betas = tuple[float, float]


class RMSprop(Optimizer):
    """Steps of lr * gradient / (sqrt(square) + eps), for a running mean `square` of the gradient's
    square.

    alpha: what stays of the mean at every step. momentum: a step is this plus `momentum` times the
    last one. centered: the square of the running mean of the gradient is taken off. maximize:
    ascend. Source: PyTorch's `RMSprop`; Tieleman and Hinton, lecture 6.5, 2012; Graves, "Generating
    sequences with recurrent neural networks", 2013.

    >>> weight = Tensor([1.0], requires_grad=True)
    >>> (weight * 2).sum().backward()
    >>> RMSprop([weight], lr=0.1, alpha=0.0).step()
    >>> round(weight.item(), 4)
    0.9
    """

    counts_steps = True

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | Tensor = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        settings = {
            "lr": lr, "alpha": alpha, "eps": eps, "weight_decay": weight_decay,
            "momentum": momentum, "centered": centered, "maximize": maximize,
        }  # fmt: skip
        super().__init__(params, settings)

    def check(self, group: Group) -> None:
        super().check(group)
        for name in ("alpha", "eps", "momentum"):
            check_range(name, group[name], 0)

    def start(self, parameter: Tensor, group: Group) -> State:
        names = ["square_avg"] + ["momentum_buffer"] * bool(group["momentum"])
        return {name: zeros(parameter) for name in names + ["grad_avg"] * group["centered"]}

    def update(
        self,
        parameter: Tensor,
        gradient: Tensor,
        state: State,
        group: Group,
        rate: Tensor,
        numbers: State,
    ) -> tuple[Tensor, State]:
        step = with_decay(parameter, gradient, group)
        square = towards(state["square_avg"], step * step, group["alpha"])
        after = {"square_avg": square}
        if group["centered"]:
            mean = towards(state["grad_avg"], step, group["alpha"])
            after["grad_avg"] = mean
            square = square - mean * mean
        step = step / (square.sqrt() + group["eps"])
        if group["momentum"]:
            step = state["momentum_buffer"] * group["momentum"] + step
            after["momentum_buffer"] = step
        return parameter - rate * step, after


class Adagrad(Optimizer):
    """Steps of lr * gradient / (sqrt(sum) + eps), for the sum of all squares of the gradient.

    lr_decay: the rate of step number n is lr / (1 + (n - 1) * lr_decay).
    initial_accumulator_value: what the sum begins as. maximize: ascend.
    Source: PyTorch's `Adagrad`; Duchi, Hazan and Singer, "Adaptive subgradient methods for online
    learning and stochastic optimization", 2011.

    >>> weight = Tensor([1.0], requires_grad=True)
    >>> (weight * 2).sum().backward()
    >>> Adagrad([weight], lr=0.5).step()
    >>> weight.tolist()
    [0.5]
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | Tensor = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        *,
        maximize: bool = False,
    ) -> None:
        settings = {
            "lr": lr, "lr_decay": lr_decay, "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value, "eps": eps,
            "maximize": maximize,
        }  # fmt: skip
        super().__init__(params, settings)

    def check(self, group: Group) -> None:
        super().check(group)
        for name in ("lr_decay", "initial_accumulator_value", "eps"):
            check_range(name, group[name], 0)

    def start(self, parameter: Tensor, group: Group) -> State:
        first = group["initial_accumulator_value"]
        return {"sum": buffer(first, parameter.shape, parameter.dtype, parameter.device)}

    def numbers(self, step: Any, group: Group) -> dict[str, Any]:
        """How much the rate has fallen."""
        return {"share": 1 / (1 + (step - 1) * group["lr_decay"])}

    def update(
        self,
        parameter: Tensor,
        gradient: Tensor,
        state: State,
        group: Group,
        rate: Tensor,
        numbers: State,
    ) -> tuple[Tensor, State]:
        step = with_decay(parameter, gradient, group)
        total = state["sum"] + step * step
        step = step / (total.sqrt() + group["eps"])
        return parameter - rate * numbers["share"] * step, {"sum": total}


class Adadelta(Optimizer):
    """Steps of lr * gradient * sqrt(moves + eps) / sqrt(square + eps), for running means of the
    squares of gradients and of the moves that were made.

    rho: what stays of the means at every step. maximize: ascend. Source: PyTorch's `Adadelta`;
    Zeiler, "ADADELTA: an adaptive learning rate method", 2012.

    >>> weight = Tensor([1.0], requires_grad=True)
    >>> (weight * 2).sum().backward()
    >>> Adadelta([weight]).step()
    >>> weight.item() < 1
    True
    """

    counts_steps = True

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | Tensor = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        *,
        maximize: bool = False,
    ) -> None:
        settings = {
            "lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay, "maximize": maximize,
        }  # fmt: skip
        super().__init__(params, settings)

    def check(self, group: Group) -> None:
        super().check(group)
        if not 0 <= group["rho"] <= 1:
            raise ValueError(f"rho={group['rho']!r} must be in 0..1")
        check_range("eps", group["eps"], 0)

    def start(self, parameter: Tensor, group: Group) -> State:
        return {name: zeros(parameter) for name in ("square_avg", "acc_delta")}

    def update(
        self,
        parameter: Tensor,
        gradient: Tensor,
        state: State,
        group: Group,
        rate: Tensor,
        numbers: State,
    ) -> tuple[Tensor, State]:
        rho, eps = group["rho"], group["eps"]
        step = with_decay(parameter, gradient, group)
        square = towards(state["square_avg"], step * step, rho)
        move = (state["acc_delta"] + eps).sqrt() / (square + eps).sqrt() * step
        moves = towards(state["acc_delta"], move * move, rho)
        return parameter - rate * move, {"square_avg": square, "acc_delta": moves}


class Adamax(Optimizer):
    """Adam with the greatest magnitude of the gradient, fading by the second beta, in place of the
    root of its mean square.

    maximize: ascend. Source: PyTorch's `Adamax`; Kingma and Ba, "Adam", 2015, section 7.1.

    >>> weight = Tensor([1.0], requires_grad=True)
    >>> (weight * 2).sum().backward()
    >>> Adamax([weight], lr=0.5).step()
    >>> weight.tolist()
    [0.5]
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | Tensor = 2e-3,
        betas: Betas = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        *,
        maximize: bool = False,
    ) -> None:
        settings = {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay,
            "maximize": maximize,
        }  # fmt: skip
        super().__init__(params, settings)

    def start(self, parameter: Tensor, group: Group) -> State:
        return {name: zeros(parameter) for name in ("exp_avg", "exp_inf")}

    def numbers(self, step: Any, group: Group) -> dict[str, Any]:
        """What the mean is multiplied by, because it begins as 0."""
        return {"mean": 1 / (1 - group["betas"][0] ** step)}

    def update(
        self,
        parameter: Tensor,
        gradient: Tensor,
        state: State,
        group: Group,
        rate: Tensor,
        numbers: State,
    ) -> tuple[Tensor, State]:
        beta1, beta2 = group["betas"]
        step = with_decay(parameter, gradient, group)
        mean = towards(state["exp_avg"], step, beta1)
        greatest = (state["exp_inf"] * beta2).maximum(step.abs() + group["eps"])
        new = parameter - rate * numbers["mean"] * mean / greatest
        return new, {"exp_avg": mean, "exp_inf": greatest}


class NAdam(Optimizer):
    """Adam with Nesterov's momentum: the step looks ahead by the momentum of the next one.

    momentum_decay: how fast the momentum of step n, betas[0] * (1 - 0.96**(n * momentum_decay)/2),
    grows. decoupled_weight_decay: decay the parameter and not the gradient, as `AdamW`. maximize:
    ascend. Source: PyTorch's `NAdam`; Dozat, "Incorporating Nesterov momentum into Adam", 2016.

    >>> weight = Tensor([1.0], requires_grad=True)
    >>> (weight * 2).sum().backward()
    >>> NAdam([weight]).step()
    >>> weight.item() < 1
    True
    """

    numbers_in_state = ("step", "mu_product")

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | Tensor = 2e-3,
        betas: Betas = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        settings = {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay,
            "momentum_decay": momentum_decay, "decoupled_weight_decay": decoupled_weight_decay,
            "maximize": maximize,
        }  # fmt: skip
        super().__init__(params, settings)

    def check(self, group: Group) -> None:
        super().check(group)
        check_range("momentum_decay", group["momentum_decay"], 0)

    def start(self, parameter: Tensor, group: Group) -> State:
        state = {name: zeros(parameter) for name in ("exp_avg", "exp_avg_sq")}
        return {**state, "mu_product": buffer(1, (), parameter.dtype, parameter.device)}

    def numbers(self, step: Any, group: Group) -> dict[str, Any]:
        """The momentum of this step and of the next; what the root is multiplied by."""
        beta1, beta2 = group["betas"]
        fall = 0.96 ** group["momentum_decay"]
        return {
            "now": beta1 * (1 - 0.5 * fall**step),
            "next": beta1 * (1 - 0.5 * fall ** (step + 1)),
            "root": (1 - beta2**step) ** -0.5,
        }

    def update(
        self,
        parameter: Tensor,
        gradient: Tensor,
        state: State,
        group: Group,
        rate: Tensor,
        numbers: State,
    ) -> tuple[Tensor, State]:
        beta1, beta2 = group["betas"]
        parameter, step = decayed(parameter, gradient, group, rate)
        mean = towards(state["exp_avg"], step, beta1)
        square = towards(state["exp_avg_sq"], step * step, beta2)
        product = state["mu_product"] * numbers["now"]
        root = square.sqrt() * numbers["root"] + group["eps"]
        own = rate * (1 - numbers["now"]) / (1 - product)
        ahead = rate * numbers["next"] / (1 - product * numbers["next"])
        new = parameter - own * step / root - ahead * mean / root
        return new, {"exp_avg": mean, "exp_avg_sq": square, "mu_product": product}


class RAdam(Optimizer):
    """Adam whose first steps, while the mean square is known from few gradients, do not divide by
    its root, and whose later ones are scaled by how well it is known.

    decoupled_weight_decay: decay the parameter and not the gradient, as `AdamW`. maximize: ascend.
    Source: PyTorch's `RAdam`; Liu et al., "On the variance of the adaptive learning rate and
    beyond", 2020.

    >>> weight = Tensor([1.0], requires_grad=True)
    >>> (weight * 2).sum().backward()
    >>> RAdam([weight], lr=0.25).step()
    >>> weight.tolist()
    [0.5]
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | Tensor = 1e-3,
        betas: Betas = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        settings = {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay,
            "decoupled_weight_decay": decoupled_weight_decay, "maximize": maximize,
        }  # fmt: skip
        super().__init__(params, settings)

    def start(self, parameter: Tensor, group: Group) -> State:
        return {name: zeros(parameter) for name in ("exp_avg", "exp_avg_sq")}

    def numbers(self, step: Any, group: Group) -> dict[str, Any]:
        """What the mean is multiplied by; and by what more where it is divided by the root: 0 for
        the first steps, which are not."""
        beta1, beta2 = group["betas"]
        bias = 1 - beta2**step
        most = 2 / (1 - beta2) - 1  # the length of the running mean in the end, and now
        length = most - 2 * step * beta2**step / bias
        share = (length - 4) * (length - 2) * most / ((most - 4) * (most - 2) * length)
        mean = 1 / (1 - beta1**step)
        if not isinstance(length, Tensor):
            return {"mean": mean, "adaptive": (share * bias) ** 0.5 if length > 5 else 0.0}
        known = length > 5
        scale = known.where((known.where(share, 1.0) * bias).sqrt(), 0.0)
        return {"mean": mean, "adaptive": scale}

    def update(
        self,
        parameter: Tensor,
        gradient: Tensor,
        state: State,
        group: Group,
        rate: Tensor,
        numbers: State,
    ) -> tuple[Tensor, State]:
        beta1, beta2 = group["betas"]
        parameter, step = decayed(parameter, gradient, group, rate)
        mean = towards(state["exp_avg"], step, beta1)
        square = towards(state["exp_avg_sq"], step * step, beta2)
        scale = numbers["adaptive"]
        adapted = scale / (square.sqrt() + group["eps"])
        scale = (scale > 0).where(adapted, 1.0)
        new = parameter - rate * numbers["mean"] * mean * scale
        return new, {"exp_avg": mean, "exp_avg_sq": square}


def decayed(
    parameter: Tensor, gradient: Tensor, group: Group, rate: Tensor
) -> tuple[Tensor, Tensor]:
    """(the parameter, the direction of descent), one of them with the decay."""
    if not group["decoupled_weight_decay"]:
        return parameter, with_decay(parameter, gradient, group)
    step = -gradient if group["maximize"] else gradient
    return parameter * (1 - rate * group["weight_decay"]), step
