"""Losses: how far a prediction is from its target.

Half and bfloat16 are computed in float32 and rounded once, at the result. `reduction` is "mean",
"sum" or "none" (one loss per sample or element).

A class id selects its score with `gather`: one checked load per sample, so a target out of range is
an IndexError, and the loss reads its row of scores in two loops and not three. The derivative of a
gather of one element per row compares the class numbers with the target, elementwise; so it is one
kernel with the softmax of the row (`graph/grad.py`).
"""

from __future__ import annotations

from typing import Any

from treadle.graph import shapes
from treadle.graph.build import (
    alu,
    as_float,
    cast,
    dim_value,
    gather,
    operands,
    reduce,
    reshape,
    stop_gradient,
    where,
)
from treadle.graph.elementwise import abs_, add, div, le, mul, ne, neg, square, sub
from treadle.graph.functions import exp, log, log1p
from treadle.graph.public import public
from treadle.ir import ops
from treadle.ir.dtype import bool_, int64
from treadle.ir.node import Node

REDUCTIONS = ("mean", "sum", "none")


def check_reduction(name: str, reduction: Any) -> None:
    if reduction not in REDUCTIONS:
        raise ValueError(f"{name}: reduction is 'mean', 'sum' or 'none', not {reduction!r}")


def reduced(losses: Node, reduction: str, count: Node | None = None) -> Node:
    """The losses as asked for; the mean divides by `count`, or by how many there are."""
    if reduction == "none":
        return losses
    total = reduce("add", losses)
    if reduction == "sum":
        return total
    if count is None:
        count = dim_value(shapes.total(losses.shape), losses.dtype)
    return div(total, count)


def alike(name: str, x: Node, target: Node) -> tuple[Node, Node, Any]:
    """(prediction, target, dtype of the loss), both in the type to compute in. ValueError if their
    shapes differ: to broadcast one of them here is nearly always a mistake."""
    if not shapes.same_shape(x.shape, target.shape):
        raise ValueError(
            f"{name}: the prediction has shape {shapes.text(x.shape)} and the target "
            f"{shapes.text(target.shape)}; they must be equal: reshape or expand one of them"
        )
    x, target = operands(as_float(x), as_float(target))
    wide = x.dtype.accumulator
    return cast(x, wide), cast(target, wide), x.dtype


def _weighted(name: str, losses: Node, weight: Node | None) -> Node:
    """The losses times a weight that broadcasts to them."""
    if weight is None:
        return losses
    result = mul(losses, cast(weight, losses.dtype))
    if result.shape != losses.shape:
        raise ValueError(
            f"{name}: a weight of shape {shapes.text(weight.shape)} does not broadcast to the "
            f"prediction's {shapes.text(losses.shape)}"
        )
    return result


def each_weighted(name: str, losses: Node, weight: Node | None) -> Node:
    """The losses times a weight of their shape."""
    if weight is not None and not shapes.same_shape(weight.shape, losses.shape):
        raise ValueError(
            f"{name}: a weight of shape {shapes.text(weight.shape)} for a prediction of shape "
            f"{shapes.text(losses.shape)}; they must be equal: expand it"
        )
    return losses if weight is None else mul(losses, cast(weight, losses.dtype))


def _by_weight(name: str, losses: Node, weight: Node | None, reduction: str) -> Node:
    """The losses as asked for, each times its weight; their mean divides by the sum of weights."""
    count = None if weight is None else reduce("add", cast(weight, losses.dtype))
    return reduced(each_weighted(name, losses, weight), reduction, count)


# ---- regression ----------------------------------------------------------------------------------
@public("mse_loss", source="PyTorch")
def mse_loss(x: Node, target: Node, reduction: str = "mean", weight: Node | None = None) -> Node:
    """The squared differences. x and target have one shape (they do not broadcast).

    weight: of the same shape, what each counts; their mean divides by the sum of weights.

    >>> Tensor([1.0, 5.0]).mse_loss(Tensor([2.0, 2.0])).item()
    5.0
    """
    check_reduction("mse_loss", reduction)
    a, b, dtype = alike("mse_loss", x, target)
    return cast(_by_weight("mse_loss", square(sub(a, b)), weight, reduction), dtype)


@public("l1_loss", source="PyTorch")
def l1_loss(x: Node, target: Node, reduction: str = "mean", weight: Node | None = None) -> Node:
    """The absolute differences. x and target have one shape (they do not broadcast).

    weight: see `mse_loss`.

    >>> Tensor([1.0, 5.0]).l1_loss(Tensor([2.0, 2.0])).item()
    2.0
    """
    check_reduction("l1_loss", reduction)
    a, b, dtype = alike("l1_loss", x, target)
    return cast(_by_weight("l1_loss", abs_(sub(a, b)), weight, reduction), dtype)


# ---- two classes ---------------------------------------------------------------------------------
@public("binary_cross_entropy", source="PyTorch", aliases=("binary_crossentropy",))
def binary_cross_entropy(
    x: Node, target: Node, weight: Node | None = None, reduction: str = "mean"
) -> Node:
    """-(target * log(x) + (1 - target) * log(1 - x)) of probabilities x, with logarithms taken to
    be at least -100; NaN for an x outside 0..1. weight: broadcasts to x.

    >>> Tensor([1.0, 0.5]).binary_cross_entropy(Tensor([1.0, 1.0]), reduction="none")
    Tensor([-0.       ,  0.6931472])
    """
    check_reduction("binary_cross_entropy", reduction)
    p, t, dtype = alike("binary_cross_entropy", x, target)
    hit, miss = (alu(ops.MAX, logarithm, -100.0) for logarithm in (log(p), log1p(neg(p))))
    losses = neg(add(mul(t, hit), mul(sub(1, t), miss)))
    return cast(reduced(_weighted("binary_cross_entropy", losses, weight), reduction), dtype)


@public(
    "binary_cross_entropy_with_logits", source="PyTorch", aliases=("binary_crossentropy_logits",)
)
def binary_cross_entropy_with_logits(
    x: Node,
    target: Node,
    weight: Node | None = None,
    reduction: str = "mean",
    pos_weight: Node | None = None,
) -> Node:
    """The binary cross entropy of probabilities sigmoid(x), exact for scores x of any size.

    weight: broadcasts to x. pos_weight: how much targets of 1 count; broadcasts to x.

    >>> Tensor([0.0]).binary_cross_entropy_with_logits(Tensor([1.0])).item()
    0.6931471824645996
    """
    name = "binary_cross_entropy_with_logits"
    check_reduction(name, reduction)
    z, t, dtype = alike(name, x, target)
    # softplus(-z) = log(1 + exp(-z)) = max(-z, 0) + log1p(exp(-|z|)); branches by `where`, because
    # abs and max have no second derivative at 0
    rising = le(0, z)
    softplus = add(where(rising, 0, neg(z)), log1p(exp(where(rising, neg(z), z))))
    if pos_weight is not None:
        factor = add(1, mul(sub(cast(pos_weight, z.dtype), 1), t))
        softplus = mul(factor, softplus)
        if softplus.shape != z.shape:
            raise ValueError(
                f"{name}: a pos_weight of shape {shapes.text(pos_weight.shape)} does not broadcast "
                f"to the prediction's {shapes.text(x.shape)}"
            )
    losses = add(mul(sub(1, t), z), softplus)
    return cast(reduced(_weighted(name, losses, weight), reduction), dtype)


# ---- classes -------------------------------------------------------------------------------------
def _class_axis(name: str, x: Node) -> int:
    """The axis of the classes: (classes,), or (batch, classes, ..)."""
    if not x.shape:
        raise ValueError(f"{name}: x of shape () has no dimension of classes")
    if not x.dtype.is_float:
        raise TypeError(f"{name}: the scores are {x.dtype}; they must be floating")
    return min(1, len(x.shape) - 1)


class _Classes:
    """Targets that are class ids: what they select, and how much each sample counts."""

    def __init__(
        self, name: str, x: Node, target: Node, weight: Node | None, ignore_index: int
    ) -> None:
        if isinstance(ignore_index, bool):  # PyTorch's size_average once stood in its place
            raise TypeError(f"{name}: ignore_index is a class id, not {ignore_index}")
        self.axis = axis = _class_axis(name, x)
        expected = (*x.shape[:axis], *x.shape[axis + 1 :])
        if not shapes.same_shape(target.shape, expected):
            raise ValueError(
                f"{name}: scores of shape {shapes.text(x.shape)} need class ids of shape "
                f"{shapes.text(expected)}, not {shapes.text(target.shape)}"
            )
        ids = cast(target, int64)
        kept = ne(ids, ignore_index)
        self.column = (*x.shape[:axis], 1, *x.shape[axis + 1 :])
        self.ids = reshape(where(kept, ids, 0), self.column)
        wide = x.dtype.accumulator
        self.counts = cast(kept, wide)
        if weight is not None:
            every = reshape(self.ids, (shapes.total(self.column),))
            each = reshape(gather(cast(weight, wide), every, 0), target.shape)
            self.counts = where(kept, each, 0)
        self.kept = kept

    def select(self, x: Node) -> Node:
        """The element of each sample's class, with the axis of classes kept."""
        return gather(x, self.ids, self.axis)

    def finish(self, losses: Node, reduction: str) -> Node:
        """Losses that are weighted, with 0 for ignored samples, reduced; the mean is by weight."""
        return reduced(losses, reduction, reduce("add", self.counts))

    def drop(self, column: Node) -> Node:
        """A value per sample without the axis of classes, 0 for ignored samples."""
        return where(self.kept, reshape(column, self.kept.shape), 0)


def _check_weight(name: str, x: Node, weight: Node | None, axis: int) -> None:
    if weight is None:
        return
    if len(weight.shape) != 1 or not shapes.same(weight.shape[0], x.shape[axis]):
        raise ValueError(
            f"{name}: a weight of shape {shapes.text(weight.shape)} does not belong to scores of "
            f"shape {shapes.text(x.shape)}; it must have one number per class, "
            f"({shapes.dim_text(x.shape[axis])},)"
        )


def _per_class(weight: Node, x: Node, axis: int) -> Node:
    """A weight per class, in a shape that broadcasts to x."""
    return reshape(cast(weight, x.dtype), (weight.shape[0], *[1] * (len(x.shape) - axis - 1)))


@public("nll_loss", source="PyTorch")
def nll_loss(
    x: Node,
    target: Node,
    weight: Node | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> Node:
    """-x at the target's class, for logarithms of probabilities x.

    x: (classes,) or (batch, classes, ..). target: integers, the shape of x without the classes.
    weight: one number per class; the mean is weighted by it. Samples whose target is `ignore_index`
    do not count. A target that is no class is an IndexError when the loss is computed.

    >>> Tensor([[-1.0, -2.0]]).nll_loss(Tensor([1])).item()
    2.0
    """
    check_reduction("nll_loss", reduction)
    axis = _class_axis("nll_loss", x)
    _check_weight("nll_loss", x, weight, axis)
    if not target.dtype.is_int:
        raise TypeError(f"nll_loss: the targets are class ids, integers, not {target.dtype}")
    classes = _Classes("nll_loss", x, target, weight, ignore_index)
    chosen = cast(classes.drop(classes.select(x)), classes.counts.dtype)
    return cast(classes.finish(neg(mul(classes.counts, chosen)), reduction), x.dtype)


@public("cross_entropy", source="PyTorch")
def cross_entropy(
    x: Node,
    target: Node,
    weight: Node | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Node:
    """The cross entropy of softmax(x) along the classes, and a target: -log of the probability that
    x gives to the target's class.

    x: scores, (classes,) or (batch, classes, ..). target: integers, the shape of x without the
    classes; or floats of the shape of x, the probability of every class. weight: one number per
    class; with class ids the mean is weighted by it. ignore_index: samples with this class id do
    not count. label_smoothing: how much of the target, 0..1, is spread evenly over the classes.
    A class id that is none is an IndexError when the loss is computed.

    >>> Tensor([[100.0, 0.0], [0.0, 0.0]]).cross_entropy(Tensor([0, 1]), reduction="none")
    Tensor([0.       , 0.6931472])
    """
    check_reduction("cross_entropy", reduction)
    axis = _class_axis("cross_entropy", x)
    _check_weight("cross_entropy", x, weight, axis)
    if not 0 <= label_smoothing <= 1:
        raise ValueError(f"cross_entropy: label_smoothing={label_smoothing!r} is not in 0..1")
    if target.dtype is bool_:
        raise TypeError("cross_entropy: the target is bool; give class ids or probabilities")
    scores = cast(x, x.dtype.accumulator)
    # -log softmax(x) = log sum exp(x - peak) - (x - peak) for any peak: no derivative through it
    peak = stop_gradient(reduce("max", scores, axis, True))
    spread = log(reduce("add", exp(sub(scores, peak)), axis, True))
    if target.dtype.is_float and len(target.shape) == len(x.shape) - 1:
        raise TypeError(
            f"cross_entropy: class ids are integers, not {target.dtype}: write target.long(); "
            f"probabilities have the shape {x.shape} of the scores"
        )
    if target.dtype.is_float:
        losses = _by_probability(scores, target, weight, axis, label_smoothing, peak, spread)
        count = shapes.divide(shapes.total(x.shape), x.shape[axis]) if x.shape[axis] != 0 else 0
        return cast(reduced(losses, reduction, dim_value(count, scores.dtype)), x.dtype)
    classes = _Classes("cross_entropy", x, target, weight, ignore_index)
    # selected from x itself, which may be in memory, and not from the float32 copy
    chosen = sub(spread, sub(cast(classes.select(x), scores.dtype), peak))
    losses = mul(classes.counts, classes.drop(chosen))
    if label_smoothing:
        every = sub(spread, sub(scores, peak))
        if weight is not None:
            every = mul(every, _per_class(weight, scores, axis))
        evenly = classes.drop(reduce("add", every, axis, True))
        evenly = mul(evenly, div(label_smoothing, dim_value(x.shape[axis], scores.dtype)))
        losses = add(mul(losses, 1 - label_smoothing), evenly)
    return cast(classes.finish(losses, reduction), x.dtype)


def _by_probability(
    scores: Node,
    target: Node,
    weight: Node | None,
    axis: int,
    label_smoothing: float,
    peak: Node,
    spread: Node,
) -> Node:
    """One loss per sample for targets that are probabilities of every class."""
    _, probability, _ = alike("cross_entropy", scores, target)
    probability = cast(probability, scores.dtype)
    if label_smoothing:
        even = div(label_smoothing, dim_value(scores.shape[axis], scores.dtype))
        probability = add(mul(probability, 1 - label_smoothing), even)
    if weight is not None:
        probability = mul(probability, _per_class(weight, scores, axis))
    losses = mul(probability, sub(spread, sub(scores, peak)))
    return reduce("add", losses, axis)
