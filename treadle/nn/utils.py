"""What is done to gradients and parameters around the optimizer's step, and to layers."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable
from typing import Any

from treadle import elsewhere
from treadle.nn import parametrizations, parametrize, rnn
from treadle.nn.parametrizations import remove_parametrizations, spectral_norm, weight_norm
from treadle.nn.vectors import parameters_to_vector, vector_to_parameters
from treadle.tensor import Tensor, no_grad

__all__ = [
    "clip_grad_norm", "clip_grad_norm_", "clip_grad_value", "clip_grad_value_",
    "clip_grads_with_norm_", "fuse_conv_bn_eval", "get_total_norm", "parameters_to_vector",
    "parametrizations", "parametrize", "remove_spectral_norm", "remove_weight_norm", "rnn",
    "spectral_norm", "vector_to_parameters", "weight_norm",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """AttributeError that says what to write, for names of PyTorch that are other ones here."""
    raise elsewhere.of_part("treadle.nn.utils", name)


@elsewhere.as_pytorch
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
        _scale(gradients, max_norm, total)
    return total


@elsewhere.as_pytorch
def get_total_norm(
    tensors: Tensor | Iterable[Tensor], norm_type: float = 2.0, error_if_nonfinite: bool = False
) -> Tensor:
    """The norm of all elements of all tensors, taken as one vector; see `clip_grad_norm_`.

    Source: PyTorch.

    >>> nn.utils.get_total_norm([Tensor([3.0]), Tensor([4.0])])
    Tensor(5.)
    """
    if not norm_type > 0:
        raise ValueError(f"get_total_norm: norm_type={norm_type!r} must be above 0")
    total = _norm_of_all([tensors] if isinstance(tensors, Tensor) else list(tensors), norm_type)
    if error_if_nonfinite and not math.isfinite(total.item()):
        raise RuntimeError(f"get_total_norm: the norm of the tensors is {total.item()}")
    return total


@elsewhere.as_pytorch
def clip_grads_with_norm_(
    parameters: Tensor | Iterable[Tensor], max_norm: float, total_norm: Tensor
) -> None:
    """Scale the gradients by max_norm / total_norm where that is below 1: `clip_grad_norm_` with a
    norm that is known. Source: PyTorch.

    >>> weight = Tensor([3.0, 4.0], requires_grad=True)
    >>> (weight * weight / 2).sum().backward()
    >>> nn.utils.clip_grads_with_norm_([weight], 1.0, Tensor(10.0))
    >>> weight.grad.round(decimals=3)
    Tensor([0.3, 0.4])
    """
    if not max_norm >= 0:
        raise ValueError(f"clip_grads_with_norm_: max_norm={max_norm!r} must be 0 or more")
    with no_grad():
        _scale(_gradients(parameters), max_norm, total_norm)


@elsewhere.as_pytorch
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


def fuse_conv_bn_eval(conv: Any, bn: Any, transpose: bool = False) -> Any:
    """A convolution that does what `conv` and the batch norm `bn` after it do in eval.

    transpose: whether `conv` is a transposed one. Source: PyTorch.

    >>> conv, bn = nn.Conv2d(2, 3, 1).eval(), nn.BatchNorm2d(3).eval()
    >>> nn.utils.fuse_conv_bn_eval(conv, bn)(Tensor.ones(1, 2, 4, 4)).shape
    (1, 3, 4, 4)
    """
    if conv.training or bn.training:
        raise ValueError("fuse_conv_bn_eval: call .eval() of both layers before")
    if bn.running_mean is None:
        raise ValueError("fuse_conv_bn_eval: the batch norm has no running statistics")
    fused = copy.deepcopy(conv)
    with no_grad():
        scale = (bn.running_var + bn.eps).rsqrt()
        shift = -bn.running_mean * scale
        if bn.weight is not None:
            scale, shift = scale * bn.weight, shift * bn.weight + bn.bias
        bias = shift if conv.bias is None else shift + conv.bias * scale
        shape = [1] * conv.weight.ndim
        shape[1 if transpose else 0] = -1
        if transpose and conv.groups > 1:
            raise NotImplementedError("fuse_conv_bn_eval: transpose=True with groups")
        fused.weight.assign((conv.weight * scale.reshape(shape)).to(dtype=conv.weight.dtype))
        fused.bias = type(conv.weight)(bias.to(dtype=conv.weight.dtype))
    return fused


def remove_weight_norm(module: Any, name: str = "weight") -> Any:
    """Undo `weight_norm`: the weight is a parameter again. Source: PyTorch.

    >>> nn.utils.remove_weight_norm(nn.utils.weight_norm(nn.Linear(3, 2)))
    Linear(3, 2)
    """
    return remove_parametrizations(module, name)


def remove_spectral_norm(module: Any, name: str = "weight") -> Any:
    """Undo `spectral_norm`: the weight is a parameter again. Source: PyTorch.

    >>> nn.utils.remove_spectral_norm(nn.utils.spectral_norm(nn.Linear(3, 2)))
    Linear(3, 2)
    """
    return remove_parametrizations(module, name)


clip_grad_norm = clip_grad_norm_
clip_grad_value = clip_grad_value_


def _gradients(parameters: Tensor | Iterable[Tensor]) -> list[Tensor]:
    """The gradients that there are, of one parameter or of several."""
    if not isinstance(parameters, Iterable):
        raise TypeError(
            f"parameters are tensors in a list, not a {type(parameters).__name__}; those of a "
            "model are model.parameters()"
        )
    several = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    for parameter in several:
        if not isinstance(parameter, Tensor):
            raise TypeError(f"a parameter is a Tensor, not a {type(parameter).__name__}")
    return [parameter.grad for parameter in several if parameter.grad is not None]


def _scale(gradients: list[Tensor], max_norm: float, total: Tensor) -> None:
    scale = (max_norm / (total + 1e-6)).clamp(max=1.0)
    for gradient in gradients:
        wide = gradient.to(dtype=scale.dtype) * scale.to(device=gradient.device)
        gradient.assign(wide.to(dtype=gradient.dtype))


def _norm_of_all(gradients: list[Tensor], p: float) -> Tensor:
    """The norm of the norms, which is that of all elements: carried in float32, or in float64 if
    a gradient is."""
    wide = "float64" if any(each.itemsize == 8 for each in gradients) else "float32"
    total = Tensor(0.0, dtype=wide)
    for gradient in gradients:
        size = gradient.to(dtype=wide).norm(p).to(device=total.device)
        total = total.maximum(size) if math.isinf(p) else total + size**p
    return total if math.isinf(p) else total ** (1 / p)
