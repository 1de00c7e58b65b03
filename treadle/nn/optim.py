"""Optimizers: how parameters follow their gradients."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from treadle import elsewhere
from treadle.nn import averaging as swa_utils
from treadle.nn import lr_scheduler
from treadle.nn.adaptive import Adadelta, Adagrad, Adamax, NAdam, RAdam, RMSprop
from treadle.nn.classic import ASGD, LBFGS, Rprop
from treadle.nn.layerwise import LAMB, LARS, Lion, Muon
from treadle.nn.optimizer import Group, Optimizer, State, check_range, towards, with_decay, zeros
from treadle.tensor import Tensor

__all__ = [
    "ASGD", "LAMB", "LARS", "LBFGS", "SGD", "Adadelta", "Adagrad", "Adam", "AdamW", "Adamax",
    "Lion", "Muon", "NAdam", "Optimizer", "RAdam", "RMSprop", "Rprop", "lr_scheduler", "swa_utils",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """AttributeError that says what to write, for names of PyTorch that are other ones here."""
    raise elsewhere.of_part("treadle.nn.optim", name)


class SGD(Optimizer):
    """Gradient descent: parameter - lr * gradient.

    momentum: a step is the gradient plus `momentum` times the last step; dampening: the gradient
    counts 1 - dampening in that, after the first step; nesterov: look ahead by one more step.
    weight_decay: what is added to the gradient for each unit of the parameter. maximize: ascend.
    Source: PyTorch's `SGD`; Sutskever et al., "On the importance of initialization and momentum in
    deep learning", 2013.

    >>> weight = Tensor([1.0], requires_grad=True)
    >>> (weight * 2).sum().backward()
    >>> nn.optim.SGD([weight], lr=0.5).step()
    >>> round(weight.item(), 4)
    0.0
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
        self,
        parameter: Tensor,
        gradient: Tensor,
        state: State,
        group: Group,
        rate: Tensor,
        numbers: State,
    ) -> tuple[Tensor, State]:
        momentum = group["momentum"]
        step = with_decay(parameter, gradient, group)
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
    unit of the parameter; decoupled_weight_decay: decay the parameter itself, as `AdamW`. amsgrad:
    use the greatest square so far. maximize: ascend.
    Source: Kingma and Ba, "Adam: a method for stochastic optimization", 2015.

    >>> weight = Tensor([1.0], requires_grad=True)
    >>> (weight * 2).sum().backward()
    >>> nn.optim.Adam([weight], lr=0.5).step()
    >>> round(weight.item(), 4)
    0.5
    """

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
        decoupled_weight_decay: bool = False,
    ) -> None:
        settings = {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "amsgrad": amsgrad,
            "maximize": maximize, "decoupled_weight_decay": decoupled_weight_decay,
        }  # fmt: skip
        super().__init__(params, settings)

    def start(self, parameter: Tensor, group: Group) -> State:
        names = ["exp_avg", "exp_avg_sq"] + ["max_exp_avg_sq"] * group["amsgrad"]
        return {name: zeros(parameter) for name in names}

    def numbers(self, step: Any, group: Group) -> dict[str, Any]:
        """What mean and root are multiplied by, because running means begin as 0."""
        beta1, beta2 = group["betas"]
        return {"mean": 1 / (1 - beta1**step), "root": (1 - beta2**step) ** -0.5}

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
        if group["decoupled_weight_decay"]:
            step = -gradient if group["maximize"] else gradient
            parameter = parameter * (1 - rate * group["weight_decay"])
        else:
            step = with_decay(parameter, gradient, group)
        mean, square = state["exp_avg"], state["exp_avg_sq"]
        mean = towards(mean, step, beta1)
        square = towards(square, step * step, beta2)
        after = {"exp_avg": mean, "exp_avg_sq": square}
        if group["amsgrad"]:
            square = square.maximum(state.get("max_exp_avg_sq", square))
            after["max_exp_avg_sq"] = square
        root = square.sqrt() * numbers["root"] + group["eps"]
        return parameter - mean * numbers["mean"] / root * rate, after


class AdamW(Adam):
    """Adam with decoupled decay: the parameter is first multiplied by 1 - lr * weight_decay.

    Source: Loshchilov and Hutter, "Decoupled weight decay regularization", 2019.

    >>> weight = Tensor([1.0], requires_grad=True)
    >>> (weight * 2).sum().backward()
    >>> nn.optim.AdamW([weight], lr=0.5).step()
    >>> round(weight.item(), 4)
    0.495
    """

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
        super().__init__(
            params,
            lr,
            betas,
            eps,
            weight_decay,
            amsgrad,
            maximize=maximize,
            decoupled_weight_decay=True,
        )
