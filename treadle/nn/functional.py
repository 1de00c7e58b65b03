"""Layers and losses as functions: `import treadle.nn.functional as F`.

Most are methods of Tensor under their own names; `F.relu(x)` is `x.relu()`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from treadle.graph.public import METHODS
from treadle.tensor import Tensor, no_grad

# PyTorch's functions that may put the result into the tensor that came in
IN_PLACE = frozenset((
    "relu", "relu6", "elu", "selu", "celu", "silu", "mish", "leaky_relu", "hardtanh",
    "hardswish", "hardsigmoid", "threshold", "rrelu",
))  # fmt: skip


def __getattr__(name: str) -> Callable[..., Any]:
    """The method of Tensor with this name. AttributeError if there is none."""
    entry = METHODS.get(name)
    if entry is None or entry.kind == "property":
        raise AttributeError(f"module 'treadle.nn.functional' has no attribute {name!r}")
    method: Callable[..., Any] = getattr(Tensor, name)
    made = globals()[name] = _in_place(method) if name in IN_PLACE else method
    return made


def __dir__() -> list[str]:
    return sorted({*globals(), *METHODS})


def _in_place(method: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The function with PyTorch's argument `inplace`."""

    @wraps(method)
    def run(x: Tensor, *args: Any, inplace: bool = False, **named: Any) -> Tensor:
        result = method(x, *args, **named)
        return x.assign(result) if inplace else result

    return run


def dropout(x: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """x with each element set to 0 with probability p and the others divided by 1 - p; x itself
    when not training. inplace: put the result into x, too."""
    result = x.dropout(p) if training else x
    return x.assign(result) if inplace else result


def batch_norm(
    x: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float | Tensor = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """x (batch, channels, ..) normalised per channel, times weight, plus bias.

    training: by the moments of the batch, of which `momentum` goes into the running ones (put into
    those tensors, pending); else by the running ones. ValueError for one element per channel in
    training, which has no variance. Source: Ioffe and Szegedy, "Batch normalization", 2015.
    """
    if not training:
        if running_mean is None or running_var is None:
            raise ValueError("batch_norm: without training it needs running_mean and running_var")
        return x.batch_norm(running_mean, running_var, weight, bias, eps)
    mean, var = x.batch_statistics()
    channels = x.shape[1]
    count = x.numel() // channels if channels else 0
    if count == 1:
        raise ValueError(
            f"batch_norm: x of shape {x.shape} has one element per channel, which has no variance: "
            "give a larger batch, or call eval()"
        )
    unbiased = var * (count / (count - 1)) if count else var
    with no_grad():
        for running, new in ((running_mean, mean), (running_var, unbiased)):
            if running is not None:
                old = running.to(dtype=new.dtype)
                running.assign((old + (new - old) * momentum).to(dtype=running.dtype))
    return x.batch_norm(mean, var, weight, bias, eps)
