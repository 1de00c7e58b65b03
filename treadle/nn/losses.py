"""Losses as modules: each calls the function of `nn.functional` with the tensors that it is called
with. `reduction` is "mean", "sum" or "none"; weights are buffers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from treadle.nn import functional
from treadle.nn.applied import Applied
from treadle.nn.module import Module
from treadle.tensor import Tensor


class _Loss(Applied):
    reductions: ClassVar[tuple[str, ...]] = ("mean", "sum", "none")

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        chosen = self.settings()["reduction"]
        if chosen not in self.reductions:
            *first, last = map(repr, self.reductions)
            raise ValueError(
                f"{type(self).__name__}: reduction is {', '.join(first)} or {last}, not {chosen!r}"
            )


# ---- numbers -------------------------------------------------------------------------------------
class MSELoss(_Loss, function="mse_loss", reduction="mean"):
    """The squared differences of a prediction and a target of one shape.

    >>> round(nn.MSELoss()(Tensor([1.0, 5.0]), Tensor([2.0, 2.0])).item(), 4)
    5.0
    """


class L1Loss(_Loss, function="l1_loss", reduction="mean"):
    """The absolute differences of a prediction and a target of one shape.

    >>> round(nn.L1Loss()(Tensor([1.0, 5.0]), Tensor([2.0, 2.0])).item(), 4)
    2.0
    """


class SmoothL1Loss(_Loss, function="smooth_l1_loss", positional=0, reduction="mean", beta=1.0):
    """Differences that count by their square below `beta`, and by their size above.

    >>> round(nn.SmoothL1Loss()(Tensor([1.0, 5.0]), Tensor([2.0, 2.0])).item(), 4)
    1.5
    """


class HuberLoss(_Loss, function="huber_loss", reduction="mean", delta=1.0):
    """`SmoothL1Loss` times delta.

    >>> round(nn.HuberLoss()(Tensor([1.0, 5.0]), Tensor([2.0, 2.0])).item(), 4)
    1.5
    """


class PoissonNLLLoss(
    _Loss,
    function="poisson_nll_loss",
    positional=2,
    log_input=True,
    full=False,
    eps=1e-8,
    reduction="mean",
):
    """Minus the log likelihood of counts under Poisson distributions. log_input: what comes in are
    logarithms of rates. full: with Stirling's approximation of the term that is constant.

    >>> round(nn.PoissonNLLLoss()(Tensor([1.0, 5.0]), Tensor([2.0, 2.0])).item(), 4)
    69.5657
    """


class GaussianNLLLoss(
    _Loss, function="gaussian_nll_loss", positional=0, full=False, eps=1e-6, reduction="mean"
):
    """Minus the log likelihood of a target under normal distributions: called with means, target
    and variances. full: with the constant term.

    >>> nn.GaussianNLLLoss()(Tensor([1.0]), Tensor([3.0]), Tensor([1.0])).item()
    2.0
    """


# ---- classes -------------------------------------------------------------------------------------
class CrossEntropyLoss(
    _Loss,
    function="cross_entropy",
    positional=1,
    weight=None,
    ignore_index=-100,
    reduction="mean",
    label_smoothing=0.0,
):
    """The cross entropy of softmax(scores) and a target: class ids, or probabilities of classes.

    scores: (classes,) or (batch, classes, ..). weight: one number per class. ignore_index: a class
    id that does not count. label_smoothing: how much of the target is spread over all classes.

    >>> round(nn.CrossEntropyLoss()(Tensor([[0.0, 0.0]]), Tensor([1])).item(), 4)
    0.6931
    """


class NLLLoss(
    _Loss, function="nll_loss", positional=1, weight=None, ignore_index=-100, reduction="mean"
):
    """Minus the logarithm of probability that `scores` give to the target's class; see
    `CrossEntropyLoss`.

    >>> nn.NLLLoss()(Tensor([[-1.0, -2.0]]), Tensor([1])).item()
    2.0
    """


class KLDivLoss(_Loss, function="kl_div", positional=0, reduction="mean", log_target=False):
    """The Kullback-Leibler divergence of a target from a prediction, given as logarithms.
    reduction: also "batchmean", the sum divided by the size of the batch.

    >>> nn.KLDivLoss(reduction="sum")(Tensor([0.5, 0.5]).log(), Tensor([0.5, 0.5])).item()
    0.0
    """

    reductions = ("mean", "sum", "none", "batchmean")


class BCELoss(_Loss, function="binary_cross_entropy", positional=1, weight=None, reduction="mean"):
    """The binary cross entropy of probabilities and targets. weight: broadcasts to them.

    >>> round(nn.BCELoss()(Tensor([0.5]), Tensor([1.0])).item(), 4)
    0.6931
    """


class BCEWithLogitsLoss(
    _Loss,
    function="binary_cross_entropy_with_logits",
    positional=1,
    weight=None,
    reduction="mean",
    pos_weight=None,
):
    """The binary cross entropy of sigmoid(scores) and targets, exact for scores of any size.

    weight: broadcasts to them. pos_weight: how much targets of 1 count; broadcasts too.

    >>> round(nn.BCEWithLogitsLoss()(Tensor([0.0]), Tensor([1.0])).item(), 4)
    0.6931
    """


class SoftMarginLoss(_Loss, function="soft_margin_loss", positional=0, reduction="mean"):
    """log(1 + exp(-target * x)) for targets of 1 and -1.

    >>> round(nn.SoftMarginLoss()(Tensor([0.0]), Tensor([1])).item(), 4)
    0.6931
    """


class MultiLabelSoftMarginLoss(
    _Loss,
    function="multilabel_soft_margin_loss",
    positional=1,
    weight=None,
    reduction="mean",
):
    """The mean over classes of the binary cross entropy with logits. weight: one per class.

    >>> nn.MultiLabelSoftMarginLoss()(Tensor([[100.0, 100.0]]), Tensor([[0.0, 1.0]])).item()
    50.0
    """


class MultiMarginLoss(
    _Loss,
    function="multi_margin_loss",
    positional=3,
    p=1,
    margin=1.0,
    weight=None,
    reduction="mean",
):
    """By how much other classes come nearer than `margin` to the target's score, to the power p.

    >>> nn.MultiMarginLoss()(Tensor([[0.5, 2.0]]), Tensor([0])).item()
    1.25
    """


class CTCLoss(_Loss, function="ctc_loss", blank=0, reduction="mean", zero_infinity=False):
    """Minus the log probability of label sequences whose places in time are not known. Called with
    (log_probs, targets, input_lengths, target_lengths); see `Tensor.ctc_loss`.

    >>> scores = Tensor.zeros(4, 1, 3).log_softmax(-1)
    >>> round(nn.CTCLoss()(scores, Tensor([[1, 2]]), [4], [2]).item(), 4)
    0.8432
    """


# ---- pairs and triples ---------------------------------------------------------------------------
class MarginRankingLoss(
    _Loss, function="margin_ranking_loss", positional=1, margin=0.0, reduction="mean"
):
    """By how much x1 fails to be above x2 (target 1) or below (target -1) by the margin.

    >>> nn.MarginRankingLoss()(Tensor([3.0]), Tensor([1.0]), Tensor([-1])).item()
    2.0
    """


class HingeEmbeddingLoss(
    _Loss, function="hinge_embedding_loss", positional=1, margin=1.0, reduction="mean"
):
    """A distance where the target is 1; by how much it is below the margin where it is -1.

    >>> nn.HingeEmbeddingLoss()(Tensor([0.5, 0.5]), Tensor([1, -1])).item()
    0.5
    """


class CosineEmbeddingLoss(
    _Loss, function="cosine_embedding_loss", positional=1, margin=0.0, reduction="mean"
):
    """1 - cosine where the target is 1; by how much the cosine is above the margin where -1.

    >>> nn.CosineEmbeddingLoss()(Tensor([[1.0, 0.0]]), Tensor([[0.0, 1.0]]), Tensor([1])).item()
    1.0
    """


class TripletMarginLoss(
    _Loss,
    function="triplet_margin_loss",
    positional=4,
    margin=1.0,
    p=2.0,
    eps=1e-6,
    swap=False,
    reduction="mean",
):
    """By how much a positive example fails to be nearer to the anchor than a negative one by the
    margin. Called with (anchor, positive, negative); see `Tensor.triplet_margin_loss`.

    >>> x, near, far = Tensor([[0.0, 0.0]]), Tensor([[3.0, 4.0]]), Tensor([[0.0, 2.0]])
    >>> round(nn.TripletMarginLoss()(x, near, far).item(), 4)
    4.0
    """


class TripletMarginWithDistanceLoss(Module):
    """`TripletMarginLoss` with a distance of one's own, a function of two tensors; by default the
    Euclidean distance.

    >>> x, near, far = Tensor([[0.0, 0.0]]), Tensor([[3.0, 4.0]]), Tensor([[0.0, 2.0]])
    >>> round(nn.TripletMarginWithDistanceLoss()(x, near, far).item(), 4)
    4.0
    """

    def __init__(
        self,
        *,
        distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
        margin: float = 1.0,
        swap: bool = False,
        reduction: str = "mean",
    ) -> None:
        self.distance_function = distance_function
        self.margin, self.swap, self.reduction = margin, swap, reduction

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        return functional.triplet_margin_with_distance_loss(
            anchor,
            positive,
            negative,
            distance_function=self.distance_function,
            margin=self.margin,
            swap=self.swap,
            reduction=self.reduction,
        )


# ---- distances -----------------------------------------------------------------------------------
class CosineSimilarity(Applied, function="cosine_similarity", dim=1, eps=1e-8):
    """The cosine of the angle between two tensors along a dimension.

    >>> nn.CosineSimilarity()(Tensor([[3.0, 0.0]]), Tensor([[0.0, 2.0]]))
    Tensor([0.])
    """


class PairwiseDistance(Module):
    """The p-norm of x1 - x2 + eps along the last dimension.

    >>> nn.PairwiseDistance(eps=0.0)(Tensor([[0.0, 0.0]]), Tensor([[3.0, 4.0]]))
    Tensor([5.])
    """

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        self.norm, self.eps, self.keepdim = p, eps, keepdim

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return x1.pairwise_distance(x2, self.norm, self.eps, self.keepdim)
