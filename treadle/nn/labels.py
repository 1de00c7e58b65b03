"""Losses of many classes, or of several right ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from treadle import elsewhere
from treadle.nn.containers import ModuleList, Sequential
from treadle.nn.layers import Linear
from treadle.nn.module import Module
from treadle.tensor import Tensor

REDUCTIONS = ("none", "mean", "sum")


def multilabel_margin_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """By how much wrong classes come nearer than 1 to right ones: the sum of
    max(0, 1 - input[right] + input[wrong]) over all pairs, divided by the number of classes.

    input: (batch, classes), (classes,), or the score of the one class. target: of that shape, the
    ids of the right classes of each row; the first -1 ends them. Source: PyTorch.

    >>> scores = Tensor([[0.1, 0.2, 0.4, 0.8]])
    >>> F = nn.functional
    >>> round(F.multilabel_margin_loss(scores, Tensor([[3, 0, -1, 1]])).item(), 4)
    0.85
    """
    if reduction not in REDUCTIONS:
        raise ValueError(f"multilabel_margin_loss: reduction={reduction!r} is none of {REDUCTIONS}")
    if input.shape != target.shape or input.ndim > 2:
        raise ValueError(
            f"multilabel_margin_loss: input of shape {input.shape} and target of shape "
            f"{target.shape} must both be (batch, classes), or (classes,)"
        )
    if target.dtype.kind not in "iu":
        raise TypeError(f"multilabel_margin_loss: target is {target.dtype}; it must be class ids")
    if input.ndim == 0:
        input, target = input.reshape(1), target.reshape(1)
    count = input.shape[-1]
    is_given = (target >= 0).cast("int64").cumprod(-1).cast("bool")  # before the first -1
    ids = is_given.where(target, 0)
    right = input.gather(-1, ids).unsqueeze(-1)
    is_own = (ids.unsqueeze(-1) == Tensor.arange(count, device=input.device)) & (
        is_given.unsqueeze(-1)
    )
    counts = is_given.unsqueeze(-1) & ~is_own.any(-2, keepdim=True)
    gaps = (1 - right + input.unsqueeze(-2)).clamp(min=0)
    losses: Tensor = counts.where(gaps, 0).sum((-2, -1)) / count
    if reduction == "none":
        return losses
    return losses.mean() if reduction == "mean" else losses.sum()


class MultiLabelMarginLoss(Module):
    """By how much wrong classes come nearer than 1 to the right ones of each row; see
    `functional.multilabel_margin_loss`.

    >>> loss = nn.MultiLabelMarginLoss()
    >>> round(loss(Tensor([[0.1, 0.2, 0.4, 0.8]]), Tensor([[3, 0, -1, 1]])).item(), 4)
    0.85
    """

    @elsewhere.as_pytorch
    def __init__(self, reduction: str = "mean") -> None:
        if reduction not in REDUCTIONS:
            raise ValueError(
                f"MultiLabelMarginLoss: reduction={reduction!r} is none of {REDUCTIONS}"
            )
        self.reduction = reduction

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        return multilabel_margin_loss(x, target, self.reduction)


class Scored(NamedTuple):
    """output: the log probability of each target. loss: minus their mean."""

    output: Tensor
    loss: Tensor


class AdaptiveLogSoftmaxWithLoss(Module):
    """A softmax over many classes, the rare ones in clusters with narrower weights.

    cutoffs: the first class of each cluster, in order; the classes before cutoffs[0] are in the
    head, and class ids are by frequency. Cluster n sees in_features / div_value**(n + 1) features.
    Called with x (batch, in_features) and ids (batch,) it gives (output, loss). Every cluster is
    computed for every row: the shapes do not depend on the ids.
    Source: PyTorch; Grave et al., "Efficient softmax approximation for GPUs", 2017.

    >>> layer = nn.AdaptiveLogSoftmaxWithLoss(8, 10, [4, 7])
    >>> layer(Tensor.ones(3, 8), Tensor([0, 5, 9])).output.shape
    (3,)
    """

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        device: str | None = None,
        dtype: Any = None,
    ) -> None:
        ends = list(cutoffs)
        if not ends or ends != sorted({*ends}) or ends[0] < 1 or ends[-1] >= n_classes:
            raise ValueError(
                f"AdaptiveLogSoftmaxWithLoss: cutoffs={cutoffs!r} must rise, from 1 or more, and "
                f"be below n_classes={n_classes}"
            )
        self.in_features, self.n_classes = in_features, n_classes
        self.cutoffs, self.div_value, self.head_bias = [*ends, n_classes], div_value, head_bias
        self.shortlist_size, self.n_clusters = ends[0], len(ends)
        self.head = Linear(in_features, ends[0] + len(ends), head_bias, device, dtype)
        self.tail = ModuleList()
        for number, (first, end) in enumerate(zip(self.cutoffs, self.cutoffs[1:])):
            narrow = int(in_features // div_value ** (number + 1))
            self.tail.append(
                Sequential(
                    Linear(in_features, narrow, False, device, dtype),
                    Linear(narrow, end - first, False, device, dtype),
                )
            )

    def forward(self, x: Tensor, target: Tensor) -> Scored:
        if target.ndim != x.ndim - 1 or target.shape != x.shape[:-1]:
            raise ValueError(
                f"AdaptiveLogSoftmaxWithLoss: x of shape {x.shape} and target of shape "
                f"{target.shape} must be (batch, {self.in_features}) and (batch,), or without batch"
            )
        output = self.log_prob(x).gather(-1, target.cast("int64").unsqueeze(-1)).squeeze(-1)
        return Scored(output, -output.mean())

    def log_prob(self, x: Tensor) -> Tensor:
        """The log probability of every class: (batch, n_classes)."""
        head = self.head(x).log_softmax(-1)
        parts = [head[..., : self.shortlist_size]]
        for number, cluster in enumerate(self.tail):
            place = self.shortlist_size + number
            parts.append(cluster(x).log_softmax(-1) + head[..., place : place + 1])
        return Tensor.cat(parts, dim=-1)

    def predict(self, x: Tensor) -> Tensor:
        """The most probable class of each row."""
        return self.log_prob(x).argmax(-1)
