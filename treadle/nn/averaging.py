"""Averages of a model's parameters over training: `nn.optim.swa_utils`."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable
from typing import Any

from treadle.nn.begin import buffer
from treadle.nn.module import Module
from treadle.nn.norm import BatchNorm
from treadle.nn.optimizer import Optimizer
from treadle.nn.schedules import LRScheduler, Rates, per_group
from treadle.nn.walk import named_tensors
from treadle.tensor import Tensor, no_grad

__all__ = ["SWALR", "AveragedModel", "get_ema_avg_fn", "get_swa_avg_fn", "update_bn"]

Average = Callable[[Tensor, Tensor, Tensor], Tensor]
SHAPES = ("cos", "linear")


def get_ema_avg_fn(decay: float = 0.999) -> Average:
    """For `AveragedModel`: decay * average + (1 - decay) * parameter. Source: PyTorch.

    >>> nn.optim.swa_utils.get_ema_avg_fn(0.75)(Tensor(1.0), Tensor(5.0), Tensor(1))
    Tensor(2.)
    """
    if not 0 <= decay <= 1:
        raise ValueError(f"get_ema_avg_fn: decay={decay!r} must be in 0 .. 1")
    return lambda average, parameter, count: average * decay + parameter * (1 - decay)


def get_swa_avg_fn() -> Average:
    """For `AveragedModel`: the mean of all parameters so far. Source: PyTorch.

    >>> nn.optim.swa_utils.get_swa_avg_fn()(Tensor(1.0), Tensor(5.0), Tensor(3))
    Tensor(2.)
    """
    return lambda average, parameter, count: average + (parameter - average) / (count + 1)


class AveragedModel(Module):
    """A copy of a model whose parameters are averages of the model's, one more at each
    `update_parameters(model)`.

    avg_fn(average, parameter, count): the new average; the mean of all by default (stochastic
    weight averaging), `get_ema_avg_fn(decay)` for an exponential one. use_buffers: average the
    buffers of floats too; else they are copied. `update_bn` renews the statistics of batch norm.
    Source: PyTorch; Izmailov et al., "Averaging weights leads to wider optima", 2018.

    >>> model = nn.Linear(2, 1)
    >>> average = nn.optim.swa_utils.AveragedModel(model)
    >>> average.update_parameters(model)
    >>> average(Tensor.ones(3, 2)).shape
    (3, 1)
    """

    def __init__(
        self,
        model: Any,
        device: str | None = None,
        avg_fn: Average | None = None,
        use_buffers: bool = False,
    ) -> None:
        self.module = copy.deepcopy(model)
        if device is not None:
            self.module.to(device=device)
        self.n_averaged = buffer(0, (), "int64", device)
        self.avg_fn = get_swa_avg_fn() if avg_fn is None else avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **named: Any) -> Any:
        return self.module(*args, **named)

    def update_parameters(self, model: Any) -> None:
        """Take the model's parameters as they are now into the averages. ValueError if it does not
        hold what the copied model held."""
        own, others = named_tensors(self.module), named_tensors(model)
        if own.keys() != others.keys():
            wrong = sorted(own.keys() ^ others.keys())
            raise ValueError(f"update_parameters: the model is another one: it differs in {wrong}")
        is_first = int(self.n_averaged) == 0
        with no_grad():
            for name, average in own.items():
                value = others[name].detach().to(dtype=average.dtype, device=average.device)
                averaged = average.requires_grad or self.use_buffers
                if not is_first and averaged and average.dtype.is_float:
                    count = self.n_averaged.to(device=average.device)
                    value = self.avg_fn(average.detach(), value, count).to(dtype=average.dtype)
                average.assign(value)
            self.n_averaged.assign(self.n_averaged + 1)
        Tensor.realize(self.n_averaged, *own.values())


def update_bn(loader: Iterable[Any], model: Module, device: str | None = None) -> None:
    """Compute the running statistics of every batch norm anew, as means over the batches of
    `loader` (tensors, or tuples whose first is the input). Source: PyTorch.

    >>> model = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    >>> nn.optim.swa_utils.update_bn([Tensor.ones(4, 2)], model)
    >>> int(model[1].num_batches_tracked)
    1
    """
    layers = [m for m in model.modules() if isinstance(m, BatchNorm) and m.track_running_stats]
    if not layers:
        return
    training, momenta = model.training, [layer.momentum for layer in layers]
    with no_grad():
        for layer in layers:
            layer.momentum = None
            starts = {"running_mean": 0, "running_var": 1, "num_batches_tracked": 0}
            for name, value in starts.items():
                getattr(layer, name).assign(value)
        model.train()
        for batch in loader:
            x = batch[0] if isinstance(batch, list | tuple) else batch
            model(x if device is None else x.to(device))
            Tensor.realize(*model.buffers())
    for layer, momentum in zip(layers, momenta):
        layer.momentum = momentum
    model.train(training)


class SWALR(LRScheduler):
    """From the rate that there is to `swa_lr` in `anneal_epochs` steps, where it stays.

    anneal_strategy: "cos" or "linear". Source: PyTorch.

    >>> opt = nn.optim.SGD([Tensor([1.0], requires_grad=True)], lr=1.0)
    >>> schedule = nn.optim.swa_utils.SWALR(opt, 0.5, 2, "linear")
    >>> schedule.step(); schedule.step()
    >>> opt.lr
    0.5
    """

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: float | list[float],
        anneal_epochs: int = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ) -> None:
        if anneal_strategy not in SHAPES:
            raise ValueError(f"SWALR: anneal_strategy={anneal_strategy!r} is not one of {SHAPES}")
        if anneal_epochs < 0:
            raise ValueError(f"SWALR: anneal_epochs={anneal_epochs!r} must be an int of 0 or more")
        self.swa_lrs, self.anneal_epochs = per_group(self, optimizer, swa_lr), anneal_epochs
        self.anneal_strategy = anneal_strategy
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> Rates:
        before, share = self._share(self.last_epoch - 1), self._share(self.last_epoch)
        if before == 1:
            return list(self.swa_lrs)
        # the way began at the rate now, without the part that is done
        starts = [(now - end * before) / (1 - before) for now, end in self._ways()]
        return [start + (end - start) * share for start, end in zip(starts, self.swa_lrs)]

    def _ways(self) -> Iterable[tuple[float, float]]:
        return zip(self._rates(), self.swa_lrs)

    def _share(self, step: int) -> float:
        """How much of the way is done at a step."""
        done = 1.0 if not self.anneal_epochs else min(1.0, max(0, step) / self.anneal_epochs)
        return (1 - math.cos(math.pi * done)) / 2 if self.anneal_strategy == "cos" else done
