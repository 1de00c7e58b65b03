"""Connectionist temporal classification: a loss of sequences that are not aligned.

Source: Graves, Fernandez, Gomez and Schmidhuber, "Connectionist temporal classification", 2006.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from treadle.graph import shapes
from treadle.graph.build import (
    cast,
    const,
    constant_of,
    expand,
    gather,
    iota,
    node_of,
    pad,
    reduce,
    reshape,
    shrink,
    stop_gradient,
    where,
)
from treadle.graph.elementwise import (
    add,
    div,
    eq,
    le,
    logical_and,
    lt,
    maximum,
    minimum,
    mul,
    ne,
    neg,
    sub,
)
from treadle.graph.functions import exp, log
from treadle.graph.losses import check_reduction, reduced
from treadle.graph.movement import cat, stack
from treadle.graph.public import public
from treadle.graph.running import cumsum
from treadle.graph.scan import scan
from treadle.graph.shapes import Dim, text
from treadle.ir.dtype import int64
from treadle.ir.node import Node


@public("ctc_loss", source="PyTorch")
def ctc_loss(
    log_probs: Node,
    targets: Node,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Node:
    """-log of the probability of the targets, summed over all ways to place them in time.

    log_probs: logarithms of probabilities, (time, batch, classes) or (time, classes). targets:
    class ids without blanks, (batch, longest), or all of them one after another in one dimension.
    The lengths are integers, one per sample (tensors or sequences). "mean" divides each loss by its
    number of targets (at least 1) first. zero_infinity: samples whose targets do not fit in their
    time count 0, and have no derivative. One loop over the time in the program, and one back.

    >>> scores = Tensor.zeros(4, 1, 3).log_softmax(-1)
    >>> round(scores.ctc_loss(Tensor([[1, 2]]), [4], [2]).item(), 4)
    0.8432
    """
    check_reduction("ctc_loss", reduction)
    x = log_probs
    if not x.dtype.is_float:
        raise TypeError(f"ctc_loss: the scores are {x.dtype}; they must be floating")
    if len(x.shape) not in (2, 3):
        raise ValueError(
            f"ctc_loss: log_probs has the shape {text(x.shape)}; it must be (time, batch, classes) "
            "or (time, classes)"
        )
    single = len(x.shape) == 2
    if single:
        x = reshape(x, (x.shape[0], 1, x.shape[1]))
    _, batch, classes = x.shape
    if isinstance(classes, int) and not 0 <= blank < classes:
        raise ValueError(f"ctc_loss: blank={blank} is none of {classes} classes")
    times = _lengths("input_lengths", input_lengths, batch)
    # the lengths themselves, if they are among those that there can be
    times = gather(iota(shapes.add(x.shape[0], 1), int64), times, 0)
    counts = _lengths("target_lengths", target_lengths, batch)
    labels = _labels(targets, counts, target_lengths, batch)
    scores = cast(x, x.dtype.accumulator)
    losses = neg(_log_likelihood(scores, labels, times, counts, blank))
    if zero_infinity:
        losses = where(eq(losses, math.inf), 0, losses)
    if reduction == "mean":
        losses = div(losses, cast(maximum(counts, 1), losses.dtype))
    result = cast(reduced(losses, reduction), x.dtype)
    return reshape(result, ()) if single else result


def _lengths(name: str, given: Any, batch: Dim) -> Node:
    """One integer per sample, as a node of shape (batch,)."""
    if isinstance(given, Sequence):
        numbers = [cast(node_of(number), int64) for number in given]
        node = stack(numbers) if numbers else const(0, int64, (0,))
    else:
        node = cast(node_of(given), int64)
    if not node.shape:
        node = reshape(node, (1,))
    if not shapes.same_shape(node.shape, (batch,)):
        raise ValueError(
            f"ctc_loss: {name} has shape {text(node.shape)}; it must have one number for each of "
            f"{shapes.dim_text(batch)} samples"
        )
    return node


def _known(lengths: Any) -> list[int] | None:
    """The numbers in a sequence; None if they are tensors."""
    if not isinstance(lengths, Sequence):
        return None
    constants = [constant_of(node_of(number)) for number in lengths]
    values = [int(constant.value) for constant in constants if constant is not None]
    return values if len(values) == len(constants) else None


def _labels(targets: Node, counts: Node, lengths: Any, batch: Dim) -> Node:
    """The class ids as (batch, longest); beyond a sample's count they are any."""
    ids = cast(targets, int64)
    if len(ids.shape) == 2:
        return ids
    if len(ids.shape) != 1:
        raise ValueError(f"ctc_loss: targets have one or two dimensions, not {text(ids.shape)}")
    total = ids.shape[0]
    known = _known(lengths)
    longest: Dim = total if known is None else max(known, default=0)
    if total == 0 or longest == 0:
        return const(0, int64, (batch, 0))
    first = sub(cumsum(counts, 0), counts)
    place = add(reshape(first, (batch, 1)), iota(longest, int64))
    inside = minimum(place, shapes.subtract(total, 1) if isinstance(total, int) else total)
    flat = gather(ids, reshape(inside, (shapes.total(place.shape),)), 0)
    return reshape(flat, place.shape)


def _log_likelihood(scores: Node, labels: Node, times: Node, counts: Node, blank: int) -> Node:
    """The logarithm of the probability of each sample's labels, (batch,).

    Over the labels with blanks between, around and after them, `reached[s]` is the logarithm of the
    probability that the first of them up to s have been said.
    """
    steps, batch, _ = scores.shape
    longest = labels.shape[1]
    known = lt(iota(longest, int64), reshape(counts, (batch, 1)))
    labels = where(known, labels, blank)
    states = shapes.add(shapes.multiply(longest, 2), 1)
    blanks = const(blank, int64, labels.shape)
    pairs = reshape(stack([blanks, labels], dim=2), (batch, shapes.multiply(longest, 2)))
    path = cat([pairs, const(blank, int64, (batch, 1))], dim=1)
    whole = (steps, batch, states)
    said = gather(scores, expand(path, whole), 2)
    earlier = shrink(pad(path, [(0, 0), (2, 0)], value=-1), [(0, batch), (0, states)])
    may_skip = logical_and(ne(path, blank), ne(path, earlier))
    number = iota(states, int64)
    nowhere = const(-math.inf, scores.dtype)
    # before the first step only the first state has been reached: from it the first two can be
    start = expand(where(eq(number, 0), const(0, scores.dtype), nowhere), (batch, states))

    def step(reached: Node, x: Any) -> tuple[Node, Any]:
        now, time = x
        one, two = _behind(reached, 1), _behind(reached, 2)
        moved = _log_sum([reached, one, where(may_skip, two, nowhere)])
        return where(lt(time, reshape(times, (batch, 1))), add(moved, now), reached), ()

    reached, _ = scan(step, start, (said, iota(steps, int64)), steps)
    last = reshape(mul(counts, 2), (batch, 1))
    ends = where(logical_and(le(sub(last, 1), number), le(number, last)), reached, nowhere)
    return _log_sum_along(ends)


def _behind(reached: Node, distance: int) -> Node:
    """What the states that are `distance` before each have, -inf before the first."""
    batch, states = reached.shape
    padded = pad(reached, [(0, 0), (distance, 0)], value=-math.inf)
    return shrink(padded, [(0, batch), (0, states)])


def _log_sum(terms: Sequence[Node]) -> Node:
    """log of the sum of exp of the terms."""
    return _log_sum_along(stack(list(terms), dim=-1))


def _log_sum_along(x: Node) -> Node:
    """`_log_sum` along the last dimension; -inf, without a derivative, where all are -inf."""
    greatest = stop_gradient(reduce("max", x, -1, True))
    shift = where(eq(greatest, -math.inf), 0, greatest)
    total = reduce("add", exp(sub(x, shift)), -1)
    none = eq(total, 0)
    return where(none, -math.inf, add(log(where(none, 1, total)), reshape(shift, total.shape)))
