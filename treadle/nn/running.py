"""Normalisation by batch and by sample, with running moments, as functions."""

from __future__ import annotations

import math

from treadle.tensor import Tensor, no_grad


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
    if x.shape == (0,):
        return x  # a batch of nothing may lack its channels, as in PyTorch
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
    _follow(running_mean, mean, momentum)
    _follow(running_var, unbiased, momentum)
    return x.batch_norm(mean, var, weight, bias, eps)


def instance_norm(
    x: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float | Tensor = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """x (batch, channels, ..) normalised per channel of each sample, times weight, plus bias.

    use_input_stats: by the moments of the sample, whose mean over the batch goes into the running
    ones by `momentum`; else by the running ones. ValueError for one element per channel, which has
    no variance. Source: Ulyanov, Vedaldi and Lempitsky, "Instance normalization", 2016.
    """
    if not use_input_stats:
        if running_mean is None or running_var is None:
            raise ValueError(
                "instance_norm: without use_input_stats it needs running_mean and running_var"
            )
        return x.batch_norm(running_mean, running_var, weight, bias, eps)
    if x.ndim < 3 or math.prod(x.shape[2:]) == 1:
        raise ValueError(
            f"instance_norm: x of shape {x.shape} must have more than one element per channel"
        )
    if running_mean is not None or running_var is not None:
        wide = x.detach().to(dtype=x.dtype.accumulator)
        dims = tuple(range(2, x.ndim))
        _follow(running_mean, wide.mean(dims).mean(0), momentum)
        _follow(running_var, wide.var(dims).mean(0), momentum)
    return x.instance_norm(weight, bias, eps)


def _follow(running: Tensor | None, new: Tensor, momentum: float | Tensor) -> None:
    """Move a running moment towards a new one."""
    if running is None:
        return
    with no_grad():
        old = running.to(dtype=new.dtype)
        running.assign((old + (new - old) * momentum).to(dtype=running.dtype))
