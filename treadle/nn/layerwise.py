"""Optimizers that look at a parameter as a whole (LARS, LAMB, Muon), and one by signs (Lion)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from treadle.nn.adaptive import Betas
from treadle.nn.optimizer import Group, Optimizer, State, check_range, towards, with_decay, zeros
from treadle.tensor import Tensor


class LARS(Optimizer):
    """Gradient descent with momentum, whose rate for every parameter is proportional to
    |parameter| / (|gradient| + weight_decay * |parameter|).

    tcoef: the factor of that, "trust". It is 1 where one of the norms is 0. maximize: ascend.
    Source: You, Gitman and Ginsburg, "Large batch training of convolutional networks", 2017.

    >>> weight = Tensor([3.0, 4.0], requires_grad=True)
    >>> weight.sum().backward()
    >>> LARS([weight], lr=1.0).step()
    >>> weight.tolist()[0] < 3
    True
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | Tensor = 1e-3,
        momentum: float = 0.9,
        weight_decay: float = 1e-4,
        nesterov: bool = False,
        tcoef: float = 0.001,
        *,
        maximize: bool = False,
    ) -> None:
        settings = {
            "lr": lr, "momentum": momentum, "weight_decay": weight_decay, "nesterov": nesterov,
            "tcoef": tcoef, "maximize": maximize,
        }  # fmt: skip
        super().__init__(params, settings)

    def check(self, group: Group) -> None:
        super().check(group)
        check_range("momentum", group["momentum"], 0)
        check_range("tcoef", group["tcoef"], 0)

    def start(self, parameter: Tensor, group: Group) -> State:
        return {"momentum_buffer": zeros(parameter)}

    def update(
        self,
        parameter: Tensor,
        gradient: Tensor,
        state: State,
        group: Group,
        rate: Tensor,
        numbers: State,
    ) -> tuple[Tensor, State]:
        size, slope = parameter.norm(), gradient.norm()
        trust = group["tcoef"] * size / (slope + group["weight_decay"] * size)
        trust = ((size > 0) & (slope > 0)).where(trust, 1.0)
        step = with_decay(parameter, gradient, group) * trust * rate
        buffer = state["momentum_buffer"] * group["momentum"] + step
        step = step + buffer * group["momentum"] if group["nesterov"] else buffer
        return parameter - step, {"momentum_buffer": buffer}


class LAMB(Optimizer):
    """Adam whose step for every parameter, decay included, is scaled to the size of the parameter:
    by |parameter| / |step|, which is 1 where one of the two is 0.

    maximize: ascend. Source: You et al., "Large batch optimization for deep learning: training BERT
    in 76 minutes", 2020.

    >>> weight = Tensor([3.0, 4.0], requires_grad=True)
    >>> weight.sum().backward()
    >>> LAMB([weight], lr=0.1).step()
    >>> weight.tolist()[0] < 3
    True
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | Tensor = 1e-3,
        betas: Betas = (0.9, 0.999),
        eps: float = 1e-6,
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
    ) -> None:
        settings = {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay,
            "maximize": maximize,
        }  # fmt: skip
        super().__init__(params, settings)

    def start(self, parameter: Tensor, group: Group) -> State:
        return {name: zeros(parameter) for name in ("exp_avg", "exp_avg_sq")}

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
        slope = -gradient if group["maximize"] else gradient
        mean = towards(state["exp_avg"], slope, beta1)
        square = towards(state["exp_avg_sq"], slope * slope, beta2)
        step = mean * numbers["mean"] / (square.sqrt() * numbers["root"] + group["eps"])
        step = step + parameter * group["weight_decay"]
        size, length = parameter.norm(), step.norm()
        trust = ((size > 0) & (length > 0)).where(size / length, 1.0)
        return parameter - rate * trust * step, {"exp_avg": mean, "exp_avg_sq": square}


class Lion(Optimizer):
    """Steps of one size, lr, in the direction of the signs of a running mean of the gradient.

    betas: what stays of the mean in the step, and in what is kept. weight_decay: the parameter is
    multiplied by 1 - lr * weight_decay. maximize: ascend.
    Source: Chen et al., "Symbolic discovery of optimization algorithms", 2023.

    >>> weight = Tensor([3.0, 4.0], requires_grad=True)
    >>> weight.sum().backward()
    >>> Lion([weight], lr=0.5).step()
    >>> weight.tolist()
    [2.5, 3.5]
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | Tensor = 1e-4,
        betas: Betas = (0.9, 0.99),
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
    ) -> None:
        settings = {"lr": lr, "betas": betas, "weight_decay": weight_decay, "maximize": maximize}
        super().__init__(params, settings)

    def start(self, parameter: Tensor, group: Group) -> State:
        return {"exp_avg": zeros(parameter)}

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
        slope = -gradient if group["maximize"] else gradient
        step = towards(state["exp_avg"], slope, beta1).sign()
        new = parameter * (1 - rate * group["weight_decay"]) - rate * step
        return new, {"exp_avg": towards(state["exp_avg"], slope, beta2)}


class Muon(Optimizer):
    """Steps that are nearly orthogonal matrices: the momentum with all its singular values brought
    close to 1. For matrices only: give other parameters to AdamW.

    momentum, nesterov: as of `SGD`, by running means. weight_decay: the parameter is multiplied by
    1 - lr * weight_decay. ns_steps: how many times x becomes a x + b (x x') x + c (x x')^2 x, for
    (a, b, c) = ns_coefficients; eps: the least norm that x is divided by before. adjust_lr_fn: the
    rate times sqrt(max(1, rows/columns)) ("original", None) or 0.2*sqrt(max(rows, columns))
    ("match_rms_adamw"). PyTorch computes steps in bfloat16, here they are in the parameter's own
    dtype, or float32. Source: PyTorch's `Muon`; Jordan et al., "Muon: an optimizer for hidden
    layers in neural networks", 2024.

    >>> weight = Tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    >>> (weight * weight).sum().backward()
    >>> Muon([weight]).step()
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | Tensor = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.775, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ) -> None:
        settings = {
            "lr": lr, "weight_decay": weight_decay, "momentum": momentum, "nesterov": nesterov,
            "ns_coefficients": ns_coefficients, "eps": eps, "ns_steps": ns_steps,
            "adjust_lr_fn": adjust_lr_fn,
        }  # fmt: skip
        super().__init__(params, settings)

    def check(self, group: Group) -> None:
        super().check(group)
        check_range("momentum", group["momentum"], 0)
        if group["adjust_lr_fn"] not in (None, "original", "match_rms_adamw"):
            raise ValueError(
                "Muon: adjust_lr_fn is None, 'original' or 'match_rms_adamw', not "
                f"{group['adjust_lr_fn']!r}"
            )
        if len(group["ns_coefficients"]) != 3 or not 0 <= group["ns_steps"] < 100:
            raise ValueError(
                "Muon: it takes three ns_coefficients and less than 100 ns_steps, not "
                f"{group['ns_coefficients']!r} and {group['ns_steps']!r}"
            )
        for parameter in group["params"]:
            if parameter.ndim != 2:
                raise ValueError(
                    f"Muon is for matrices, not for a parameter of shape {parameter.shape}: give "
                    "it to another optimizer, AdamW for example"
                )

    def start(self, parameter: Tensor, group: Group) -> State:
        return {"momentum_buffer": zeros(parameter)}

    def update(
        self,
        parameter: Tensor,
        gradient: Tensor,
        state: State,
        group: Group,
        rate: Tensor,
        numbers: State,
    ) -> tuple[Tensor, State]:
        rows, columns = parameter.shape
        momentum = group["momentum"]
        buffer = towards(state["momentum_buffer"], gradient, momentum)
        step = towards(buffer, gradient, momentum) if group["nesterov"] else buffer
        if rows > columns:  # the smaller of the two products is the cheaper
            step = _orthogonal(step.T, group).T
        else:
            step = _orthogonal(step, group)
        scale = math.sqrt(max(1, rows / columns))
        if group["adjust_lr_fn"] == "match_rms_adamw":
            scale = 0.2 * math.sqrt(max(rows, columns))
        kept = parameter * (1 - rate * group["weight_decay"])
        return kept - rate * scale * step, {"momentum_buffer": buffer}


def _orthogonal(x: Tensor, group: Group) -> Tensor:
    """x with its singular values brought near 1, by a polynomial of odd degree in them, repeated:
    it maps 0..1 close to 1. It first is divided by its norm, so that they are at most 1."""
    a, b, c = group["ns_coefficients"]
    x = x / x.norm().maximum(group["eps"])
    for _ in range(group["ns_steps"]):
        square = x @ x.T
        x = x * a + (square * b + square @ square * c) @ x
    return x
