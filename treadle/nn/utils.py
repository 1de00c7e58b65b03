"""What is done to gradients between `backward` and the optimizer's step."""

from __future__ import annotations

import math
from collections.abc import Iterable

from treadle.tensor import Tensor, no_grad


def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
) -> Tensor:
    """Scale the gradients so that their norm, all taken as one vector, is at most `max_norm`.

    Returns the norm before, which like the gradients is pending: the optimizer's step computes
    them. norm_type: the p of the norm, above 0; inf is the greatest magnitude. error_if_nonfinite:
    RuntimeError if the norm is not finite, for which it is computed now. Parameters without a
    gradient do not count; without any the norm is 0. Source: PyTorch.

    >>> weight = Tensor([3.0, 4.0], requires_grad=True)
    >>> (weight * weight / 2).sum().backward()
    >>> norm = nn.utils.clip_grad_norm_([weight], 1.0)
    >>> weight.grad.round(decimals=3)
    Tensor([0.6, 0.8])
    """
    if not max_norm >= 0:
        raise ValueError(f"clip_grad_norm_: max_norm={max_norm!r} must be 0 or more")
    if not norm_type > 0:
        raise ValueError(f"clip_grad_norm_: norm_type={norm_type!r} must be above 0")
    with no_grad():
        gradients = _gradients(parameters)
        total = _norm_of_all(gradients, norm_type)
        if error_if_nonfinite and not math.isfinite(total.item()):
            raise RuntimeError(f"clip_grad_norm_: the norm of the gradients is {total.item()}")
        scale = (max_norm / (total + 1e-6)).clamp(max=1.0)
        for gradient in gradients:
            wide = gradient.to(dtype=scale.dtype) * scale.to(device=gradient.device)
            gradient.assign(wide.to(dtype=gradient.dtype))
    return total


def clip_grad_value_(parameters: Tensor | Iterable[Tensor], clip_value: float) -> None:
    """Bring every element of the gradients into -clip_value .. clip_value. Source: PyTorch.

    >>> weight = Tensor([3.0, 4.0], requires_grad=True)
    >>> (weight * weight / 2).sum().backward()
    >>> nn.utils.clip_grad_value_([weight], 1.0)
    >>> weight.grad.round(decimals=3)
    Tensor([1., 1.])
    """
    if not clip_value >= 0:
        raise ValueError(f"clip_grad_value_: clip_value={clip_value!r} must be 0 or more")
    with no_grad():
        for gradient in _gradients(parameters):
            gradient.assign(gradient.clamp(-clip_value, clip_value))


clip_grad_norm = clip_grad_norm_
clip_grad_value = clip_grad_value_


def _gradients(parameters: Tensor | Iterable[Tensor]) -> list[Tensor]:
    """The gradients that there are, of one parameter or of several."""
    several = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    for parameter in several:
        if not isinstance(parameter, Tensor):
            raise TypeError(f"a parameter is a Tensor, not a {type(parameter).__name__}")
    return [parameter.grad for parameter in several if parameter.grad is not None]


def _norm_of_all(gradients: list[Tensor], p: float) -> Tensor:
    """The norm of the norms, which is that of all elements: carried in float32, or in float64 if
    a gradient is."""
    wide = "float64" if any(each.itemsize == 8 for each in gradients) else "float32"
    total = Tensor(0.0, dtype=wide)
    for gradient in gradients:
        size = gradient.to(dtype=wide).norm(p).to(device=total.device)
        total = total.maximum(size) if math.isinf(p) else total + size**p
    return total if math.isinf(p) else total ** (1 / p)
