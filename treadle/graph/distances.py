"""Losses of regression, of ranking and of embeddings, and distances.

Half and bfloat16 are computed in float32 and rounded once, at the result. `reduction` is "mean",
"sum" or "none". The losses of classes are in `losses.py`.
"""

from __future__ import annotations

import math

from treadle.graph import shapes
from treadle.graph.activations import softplus_of
from treadle.graph.build import (
    Operand,
    as_float,
    broadcast,
    cast,
    dim_value,
    gather,
    iota,
    node_of,
    operands,
    reduce,
    reshape,
    stop_gradient,
    where,
)
from treadle.graph.elementwise import (
    abs_,
    add,
    div,
    eq,
    le,
    lt,
    minimum,
    mul,
    ne,
    neg,
    square,
    sub,
)
from treadle.graph.floating import xlogy
from treadle.graph.functions import exp, log, sqrt
from treadle.graph.losses import alike, check_reduction, cross_entropy, each_weighted, reduced
from treadle.graph.public import public
from treadle.graph.reduction import norm
from treadle.ir.dtype import DType, int64
from treadle.ir.node import Node


def _together(*xs: Operand) -> tuple[DType, list[Node]]:
    """(dtype of the result, the tensors in the type to compute in). They may broadcast."""
    nodes = [as_float(x) for x in operands(*xs)]  # labels that are integers decide nothing
    wide = nodes[0].dtype.accumulator
    return nodes[0].dtype, [cast(node, wide) for node in nodes]


def _finished(losses: Node, reduction: str, dtype: DType) -> Node:
    return cast(reduced(losses, reduction), dtype)


# ---- regression ----------------------------------------------------------------------------------
@public("smooth_l1_loss", source="PyTorch")
def smooth_l1_loss(x: Node, target: Node, reduction: str = "mean", beta: float = 1.0) -> Node:
    """Of the difference d: d^2 / (2 beta) where |d| < beta, else |d| - beta/2; with beta=0, |d|.
    x and target have one shape. ValueError for beta below 0.

    >>> Tensor([0.5, 3.0]).smooth_l1_loss(Tensor([0.0, 0.0]), reduction="none")
    Tensor([0.125, 2.5  ])
    """
    check_reduction("smooth_l1_loss", reduction)
    if beta < 0:
        raise ValueError(f"smooth_l1_loss: beta={beta!r} is below 0")
    a, b, dtype = alike("smooth_l1_loss", x, target)
    difference = sub(a, b)
    size = abs_(difference)
    if beta == 0:
        return _finished(size, reduction, dtype)
    near = div(mul(square(difference), 0.5), beta)
    return _finished(where(lt(size, beta), near, sub(size, beta / 2)), reduction, dtype)


@public("huber_loss", source="PyTorch")
def huber_loss(
    x: Node,
    target: Node,
    reduction: str = "mean",
    delta: float = 1.0,
    weight: Node | None = None,
) -> Node:
    """Of the difference d: d^2 / 2 where |d| <= delta, else delta * (|d| - delta/2). x and target
    have one shape. weight: of that shape, what each counts; the mean is that
    of all. ValueError unless delta is above 0. Source: Huber, 1964.

    >>> Tensor([0.5, 3.0]).huber_loss(Tensor([0.0, 0.0]), reduction="none")
    Tensor([0.125, 2.5  ])
    """
    check_reduction("huber_loss", reduction)
    if delta <= 0:
        raise ValueError(f"huber_loss: delta={delta!r} must be above 0")
    a, b, dtype = alike("huber_loss", x, target)
    difference = sub(a, b)
    size = abs_(difference)
    near, far = mul(square(difference), 0.5), mul(sub(size, delta / 2), delta)
    losses = each_weighted("huber_loss", where(le(size, delta), near, far), weight)
    return _finished(losses, reduction, dtype)


@public("poisson_nll_loss", source="PyTorch")
def poisson_nll_loss(
    x: Node,
    target: Node,
    log_input: bool = True,
    full: bool = False,
    eps: float = 1e-8,
    reduction: str = "mean",
) -> Node:
    """The negative logarithm of the probability of counts under Poisson distributions, without
    what does not depend on x: exp(x) - target * x; without `log_input`, x - target * log(x + eps).

    full: with Stirling's approximation of log(target!) where target is above 1.

    >>> Tensor([0.0]).poisson_nll_loss(Tensor([2.0])).item()
    1.0
    """
    check_reduction("poisson_nll_loss", reduction)
    dtype, (rate, count) = _together(x, target)
    if log_input:
        losses = sub(exp(rate), mul(count, rate))
    else:
        losses = sub(rate, mul(count, log(add(rate, eps))))
    if full:
        several = lt(1, count)
        safe = where(several, count, 2.0)
        stirling = add(sub(mul(safe, log(safe)), safe), mul(log(mul(safe, 2 * math.pi)), 0.5))
        losses = add(losses, where(several, stirling, 0))
    return _finished(losses, reduction, dtype)


@public("gaussian_nll_loss", source="PyTorch")
def gaussian_nll_loss(
    x: Node,
    target: Node,
    var: Operand,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Node:
    """The negative logarithm of the density of targets under normal distributions with means x and
    variances `var`: half of log(var) + (x - target)^2 / var.

    var: a number, of the shape of x, or of that without or with 1 as the last dimension; it counts
    as eps where it is below, with the derivative that is there. full: with log(2 pi)/2.

    >>> Tensor([1.0]).gaussian_nll_loss(Tensor([3.0]), Tensor([1.0])).item()
    2.0
    """
    check_reduction("gaussian_nll_loss", reduction)
    variance = node_of(var)
    if len(variance.shape) == len(x.shape) - 1 and variance.shape:
        variance = reshape(variance, (*variance.shape, 1))
    dtype, (mean, goal, spread) = _together(x, target, variance)
    if broadcast(mean, spread, name="gaussian_nll_loss")[0] is not mean:
        raise ValueError(
            f"gaussian_nll_loss: a var of shape {shapes.text(variance.shape)} does not belong to x "
            f"of shape {shapes.text(x.shape)}"
        )
    small = lt(spread, eps)
    spread = where(small, add(sub(spread, stop_gradient(spread)), eps), spread)
    losses = mul(add(log(spread), div(square(sub(mean, goal)), spread)), 0.5)
    if full:
        losses = add(losses, math.log(2 * math.pi) / 2)
    return _finished(losses, reduction, dtype)


# ---- distributions -------------------------------------------------------------------------------
@public("kl_div", source="PyTorch")
def kl_div(x: Node, target: Node, reduction: str = "mean", log_target: bool = False) -> Node:
    """The Kullback-Leibler divergence of targets (probabilities; with `log_target` their
    logarithms) from x, which are logarithms of probabilities: target * (log(target) - x).

    reduction: also "batchmean", the sum divided by the size of the first dimension, which is the
    mathematical value; "mean" divides by the number of elements.

    >>> Tensor([0.5, 0.5]).log().kl_div(Tensor([0.5, 0.5]), reduction="sum").item()
    0.0
    """
    if reduction != "batchmean":
        check_reduction("kl_div", reduction)
    dtype, (own, goal) = _together(x, target)
    if log_target:
        losses = mul(exp(goal), sub(goal, own))
    else:
        losses = sub(xlogy(goal, goal), mul(goal, own))
    if reduction == "batchmean":
        count = losses.shape[0] if losses.shape else 1
        return cast(div(reduce("add", losses), dim_value(count, losses.dtype)), dtype)
    return _finished(losses, reduction, dtype)


@public("sparse_categorical_crossentropy", source="tinygrad")
def sparse_categorical_crossentropy(
    x: Node,
    y: Node,
    ignore_index: int = -1,
    label_smoothing: float = 0.0,
    reduction: str = "mean",
) -> Node:
    """`cross_entropy` of scores x (.., classes) and class ids y of the shape of x without the last
    dimension; samples with `ignore_index` do not count. Where a smoothed target ignores a sample,
    it does not count either.

    >>> Tensor([[100.0, 0.0]]).sparse_categorical_crossentropy(Tensor([1])).item()
    100.0
    """
    _check_ids("sparse_categorical_crossentropy", x, y)
    flat = reshape(x, (shapes.total(x.shape[:-1]), x.shape[-1]))
    ids = reshape(y, (shapes.total(y.shape),))
    losses = cross_entropy(flat, ids, None, ignore_index, reduction, label_smoothing)
    return reshape(losses, y.shape) if reduction == "none" else losses


def _check_ids(name: str, x: Node, ids: Node) -> None:
    """TypeError or ValueError unless ids are integers, one for every row of the scores x."""
    if not x.shape:
        raise ValueError(f"{name}: x of shape () has no dimension of classes")
    if not ids.dtype.is_int:
        raise TypeError(f"{name}: the targets are class ids, integers, not {ids.dtype}")
    if not shapes.same_shape(ids.shape, x.shape[:-1]):
        raise ValueError(
            f"{name}: scores of shape {shapes.text(x.shape)} need class ids of shape "
            f"{shapes.text(x.shape[:-1])}, not {shapes.text(ids.shape)}"
        )


# ---- distances -----------------------------------------------------------------------------------
@public("cosine_similarity", source="PyTorch")
def cosine_similarity(x1: Node, x2: Node, dim: int = 1, eps: float = 1e-8) -> Node:
    """The cosine of the angle between vectors along a dimension, whose norms are taken to be at
    least eps. The tensors broadcast.

    >>> Tensor([[3.0, 0.0]]).cosine_similarity(Tensor([[0.0, 2.0]]))
    Tensor([0.])
    """
    dtype, (a, b) = _together(x1, x2)
    a, b = broadcast(a, b, name="cosine_similarity")
    dot = reduce("add", mul(a, b), dim)
    return cast(div(div(dot, _length(a, dim, eps)), _length(b, dim, eps)), dtype)


def _length(x: Node, dim: int, eps: float) -> Node:
    """The norm along a dimension, but eps (without a derivative) where it is below."""
    total = reduce("add", square(x), dim)
    small = lt(total, eps * eps)
    return where(small, eps, sqrt(where(small, 1, total)))


@public("pairwise_distance", source="PyTorch")
def pairwise_distance(
    x1: Node, x2: Node, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Node:
    """The p-norm of x1 - x2 + eps along the last dimension. The tensors broadcast.

    >>> Tensor([[0.0, 0.0]]).pairwise_distance(Tensor([[3.0, 4.0]]), eps=0)
    Tensor([5.])
    """
    dtype, (a, b) = _together(x1, x2)
    return cast(norm(add(sub(a, b), eps), p, -1, keepdim), dtype)


@public("cdist", source="PyTorch")
def cdist(x1: Node, x2: Node, p: float = 2.0, compute_mode: str | None = None) -> Node:
    """The p-norms of the differences of all pairs of rows: (.., m, k), (.., n, k) -> (.., m, n).

    compute_mode: PyTorch's words for ways to compute it, which are one here.

    >>> Tensor([[0.0, 0.0]]).cdist(Tensor([[3.0, 4.0], [0.0, 1.0]]))
    Tensor([[5., 1.]])
    """
    dtype, (a, b) = _together(x1, x2)
    if len(a.shape) < 2 or len(b.shape) < 2 or not shapes.same(a.shape[-1], b.shape[-1]):
        raise ValueError(
            f"cdist: shapes {shapes.text(a.shape)} and {shapes.text(b.shape)} must be (.., m, k) "
            "and (.., n, k)"
        )
    if a.shape[-1] == 0:
        p = 2.0  # all norms of nothing are 0
    rows = reshape(a, (*a.shape[:-1], 1, a.shape[-1]))
    columns = reshape(b, (*b.shape[:-2], 1, *b.shape[-2:]))
    return cast(norm(sub(rows, columns), p, -1), dtype)


# ---- ranking and embeddings ----------------------------------------------------------------------
@public("margin_ranking_loss", source="PyTorch")
def margin_ranking_loss(
    x1: Node, x2: Node, target: Node, margin: float = 0.0, reduction: str = "mean"
) -> Node:
    """max(0, -target * (x1 - x2) + margin): target 1 wants x1 above `x2`, -1 below.

    >>> x = Tensor([3.0])
    >>> x.margin_ranking_loss(Tensor([1.0]), Tensor([-1])).item()
    2.0
    """
    check_reduction("margin_ranking_loss", reduction)
    dtype, (a, b, sign) = _together(x1, x2, target)
    return _finished(_at_least_zero(add(mul(neg(sign), sub(a, b)), margin)), reduction, dtype)


def _at_least_zero(x: Node) -> Node:
    """x, but 0 where it is below; the derivative at 0 is that of x."""
    return where(le(0, x), x, 0)


@public("hinge_embedding_loss", source="PyTorch")
def hinge_embedding_loss(
    x: Node, target: Node, margin: float = 1.0, reduction: str = "mean"
) -> Node:
    """x where the target is 1, max(0, margin - x) where it is -1.

    >>> Tensor([0.5, 0.25]).hinge_embedding_loss(Tensor([1, -1]), reduction="none")
    Tensor([0.5 , 0.75])
    """
    check_reduction("hinge_embedding_loss", reduction)
    dtype, (distance, sign) = _together(x, target)
    unlike = where(ne(sign, 1), _at_least_zero(sub(margin, distance)), 0)
    alike_ = where(ne(sign, -1), distance, 0)
    return _finished(add(unlike, alike_), reduction, dtype)


@public("cosine_embedding_loss", source="PyTorch")
def cosine_embedding_loss(
    x1: Node, x2: Node, target: Node, margin: float = 0.0, reduction: str = "mean"
) -> Node:
    """Of the cosine c between vectors of the last dimension: 1 - c where the target is 1,
    max(0, c - margin) where it is -1. x1: (vector,) or (batch, vector); target: () or (batch,).

    >>> x = Tensor([[1.0, 0.0]])
    >>> x.cosine_embedding_loss(Tensor([[0.0, 1.0]]), Tensor([1])).item()
    1.0
    """
    check_reduction("cosine_embedding_loss", reduction)
    if len(target.shape) != len(x1.shape) - 1:
        raise ValueError(
            f"cosine_embedding_loss: x1 of shape {shapes.text(x1.shape)} needs a target of one "
            f"dimension less, not of shape {shapes.text(target.shape)}"
        )
    dtype, (a, b) = _together(x1, x2)
    a, b = broadcast(a, b, name="cosine_embedding_loss")
    target = as_float(target)
    # as PyTorch has it: the squares are moved away from 0, and not the norms
    product, tiny = reduce("add", mul(a, b), -1), 1e-12
    lengths = mul(*(add(reduce("add", square(each), -1), tiny) for each in (a, b)))
    cosine = div(product, sqrt(lengths))
    near = where(eq(target, 1), sub(1, cosine), 0)
    far = where(eq(target, -1), _at_least_zero(sub(cosine, margin)), 0)
    return _finished(add(near, far), reduction, dtype)


@public("triplet_margin_loss", source="PyTorch")
def triplet_margin_loss(
    anchor: Node,
    positive: Node,
    negative: Node,
    margin: float = 1.0,
    p: float = 2.0,
    eps: float = 1e-6,
    swap: bool = False,
    reduction: str = "mean",
) -> Node:
    """max(0, d(anchor, positive) - d(anchor, negative) + margin) of `pairwise_distance`s.

    swap: the distance to the negative is that of the anchor or of the positive, whichever is
    smaller. Source: Balntas et al., "Learning local feature descriptors with triplets", 2016.

    >>> x = Tensor([[0.0, 0.0]])
    >>> x.triplet_margin_loss(Tensor([[3.0, 4.0]]), Tensor([[0.0, 2.0]]), eps=0).item()
    4.0
    """
    check_reduction("triplet_margin_loss", reduction)
    dtype, (a, near, far) = _together(anchor, positive, negative)
    apart = pairwise_distance(a, far, p, eps)
    if swap:
        apart = minimum(apart, pairwise_distance(near, far, p, eps))
    losses = _at_least_zero(add(sub(pairwise_distance(a, near, p, eps), apart), margin))
    return _finished(losses, reduction, dtype)


# ---- several labels ------------------------------------------------------------------------------
@public("soft_margin_loss", source="PyTorch")
def soft_margin_loss(x: Node, target: Node, reduction: str = "mean") -> Node:
    """log(1 + exp(-target * x)), for targets 1 and -1.

    >>> Tensor([1000.0, 1000.0]).soft_margin_loss(Tensor([1, -1]), reduction="none")
    Tensor([   0., 1000.])
    """
    check_reduction("soft_margin_loss", reduction)
    dtype, (score, sign) = _together(x, target)
    return _finished(softplus_of(neg(mul(sign, score))), reduction, dtype)


@public("multilabel_soft_margin_loss", source="PyTorch")
def multilabel_soft_margin_loss(
    x: Node, target: Node, weight: Node | None = None, reduction: str = "mean"
) -> Node:
    """The binary cross entropy of every class (the last dimension), averaged over the classes.

    >>> Tensor([[100.0, 100.0]]).multilabel_soft_margin_loss(Tensor([[0.0, 1.0]])).item()
    50.0
    """
    check_reduction("multilabel_soft_margin_loss", reduction)
    dtype, (score, goal) = _together(x, target)
    losses = add(mul(goal, softplus_of(neg(score))), mul(sub(1, goal), softplus_of(score)))
    if weight is not None:
        losses = mul(losses, cast(weight, losses.dtype))
    count = dim_value(losses.shape[-1], losses.dtype)
    return _finished(div(reduce("add", losses, -1), count), reduction, dtype)


@public("multi_margin_loss", source="PyTorch")
def multi_margin_loss(
    x: Node,
    target: Node,
    p: int = 1,
    margin: float = 1.0,
    weight: Node | None = None,
    reduction: str = "mean",
) -> Node:
    """The mean over the other classes of max(0, margin - x[target] + x[other])**p.

    x: (classes,) or (batch, classes); target: class ids. weight: one number per class.

    >>> Tensor([[0.5, 2.0]]).multi_margin_loss(Tensor([0])).item()
    1.25
    """
    check_reduction("multi_margin_loss", reduction)
    x = as_float(x if x.shape else reshape(x, (1,)))
    if len(x.shape) == 1 and target.shape == (1,):
        target = reshape(target, ())
    _check_ids("multi_margin_loss", x, target)
    if weight is not None and not shapes.same_shape(weight.shape, (x.shape[-1],)):
        raise ValueError(
            f"multi_margin_loss: a weight of shape {shapes.text(weight.shape)} must have one "
            f"number for each of {shapes.dim_text(x.shape[-1])} classes"
        )
    if p not in (1, 2):
        raise ValueError(f"multi_margin_loss: p is 1 or 2, not {p!r}")
    scores = cast(x, x.dtype.accumulator)
    count = x.shape[-1]
    ids = reshape(cast(target, int64), (*x.shape[:-1], 1))
    gaps = _at_least_zero(add(sub(scores, gather(scores, ids, len(x.shape) - 1)), margin))
    gaps = gaps if p == 1 else square(gaps)
    if weight is not None:
        each = reshape(ids, (shapes.total(ids.shape),))
        own = reshape(gather(cast(weight, scores.dtype), each, 0), ids.shape)
        gaps = mul(gaps, own)
    others = ne(iota(count, int64), ids)
    losses = div(reduce("add", where(others, gaps, 0), -1), dim_value(count, scores.dtype))
    return _finished(losses, reduction, x.dtype)
