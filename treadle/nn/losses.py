"""Losses as modules. `reduction` is "mean", "sum" or "none"."""

from __future__ import annotations

from treadle.nn.module import Module
from treadle.tensor import Tensor


class _Loss(Module):
    def __init__(self, reduction: str = "mean") -> None:
        if reduction not in ("mean", "sum", "none"):
            raise ValueError(
                f"{type(self).__name__}: reduction is 'mean', 'sum' or 'none', not {reduction!r}"
            )
        self.reduction = reduction

    def extra_repr(self) -> str:
        return f"reduction={self.reduction!r}"


class MSELoss(_Loss):
    """The squared differences of a prediction and a target of one shape."""

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        return x.mse_loss(target, self.reduction)


class L1Loss(_Loss):
    """The absolute differences of a prediction and a target of one shape."""

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        return x.l1_loss(target, self.reduction)


class CrossEntropyLoss(_Loss):
    """The cross entropy of softmax(scores) and a target: class ids, or probabilities of classes.

    scores: (classes,) or (batch, classes, ..). weight: one number per class. ignore_index: a class
    id that does not count. label_smoothing: how much of the target is spread over all classes.
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        *,
        ignore_index: int = -100,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(reduction)
        self.weight, self.ignore_index, self.label_smoothing = weight, ignore_index, label_smoothing

    def forward(self, scores: Tensor, target: Tensor) -> Tensor:
        return scores.cross_entropy(
            target, self.weight, self.ignore_index, self.reduction, self.label_smoothing
        )


class NLLLoss(_Loss):
    """Minus the logarithm of probability that `scores` give to the target's class; see
    `CrossEntropyLoss`."""

    def __init__(
        self, weight: Tensor | None = None, *, ignore_index: int = -100, reduction: str = "mean"
    ) -> None:
        super().__init__(reduction)
        self.weight, self.ignore_index = weight, ignore_index

    def forward(self, scores: Tensor, target: Tensor) -> Tensor:
        return scores.nll_loss(target, self.weight, self.ignore_index, self.reduction)


class BCELoss(_Loss):
    """The binary cross entropy of probabilities and targets. weight: broadcasts to them."""

    def __init__(self, weight: Tensor | None = None, *, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.weight = weight

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        return x.binary_cross_entropy(target, self.weight, self.reduction)


class BCEWithLogitsLoss(_Loss):
    """The binary cross entropy of sigmoid(scores) and targets, exact for scores of any size.

    weight: broadcasts to them. pos_weight: how much targets of 1 count; broadcasts too.
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        *,
        reduction: str = "mean",
        pos_weight: Tensor | None = None,
    ) -> None:
        super().__init__(reduction)
        self.weight, self.pos_weight = weight, pos_weight

    def forward(self, scores: Tensor, target: Tensor) -> Tensor:
        return scores.binary_cross_entropy_with_logits(
            target, self.weight, self.reduction, self.pos_weight
        )
