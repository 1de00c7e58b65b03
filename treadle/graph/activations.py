"""Activations: the functions between the layers of a network.

Integers and bools become float32; half and bfloat16 are computed in float32 and rounded once. The
pieces of a function are chosen by `where`, with an argument in each branch for which that branch
stays finite: so derivatives of every order are right, and at a joint they are those of PyTorch.
`relu`, `sigmoid`, `silu` and `gelu` are in `functions.py`, `softmax` in `neural.py`.
"""

from __future__ import annotations

from typing import Any

from treadle.graph import shapes
from treadle.graph.build import (
    as_float,
    cast,
    iota,
    node_of,
    normalize_axis,
    operands,
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
    logical_and,
    lt,
    mul,
    neg,
    rounded_once,
    sub,
)
from treadle.graph.functions import exp, expm1, log, log1p, sigmoid, tanh
from treadle.graph.movement import narrow
from treadle.graph.neural import softmax
from treadle.graph.public import public
from treadle.graph.random import rand
from treadle.graph.reduction import argmax
from treadle.ir.dtype import DType, int64
from treadle.ir.node import Node

# The slopes that keep mean 0 and variance 1. Source: Klambauer et al., "Self-normalizing neural
# networks", 2017.
_SELU_ALPHA = 1.6732632423543772
_SELU_SCALE = 1.0507009873554805


# ---- piecewise linear ----------------------------------------------------------------------------
def _between(x: Node, low: Any, high: Any) -> Node:
    """x brought into [low, high], with the derivative 0 at both; NaN stays NaN."""
    return where(le(x, low), low, where(le(high, x), high, x))


@public("hardtanh", source="PyTorch")
def hardtanh(x: Node, min_val: float = -1.0, max_val: float = 1.0) -> Node:
    """x brought into [min_val, max_val], which for integers are truncated; NaN stays NaN. The
    derivative at both ends is 0. ValueError if min_val is above max_val.

    >>> Tensor([-4.0, 0.5, 4.0]).hardtanh()
    Tensor([-1. ,  0.5,  1. ])
    """
    if min_val > max_val:
        raise ValueError(f"hardtanh: min_val={min_val!r} is above max_val={max_val!r}")
    node = node_of(x)
    if node.dtype.is_int:
        return _between(node, int(min_val), int(max_val))
    return _between(node, min_val, max_val)


@public("relu6", source="PyTorch")
def relu6(x: Node) -> Node:
    """x brought into [0, 6]; NaN stays NaN. The derivative at 0 and at 6 is 0.

    >>> Tensor([-1.0, 2.0, 8.0]).relu6()
    Tensor([0., 2., 6.])
    """
    return _between(node_of(x), 0, 6)


@public("leaky_relu", source="PyTorch")
@rounded_once
def leaky_relu(x: Node, negative_slope: float = 0.01) -> Node:
    """x where it is above 0, else negative_slope * x.

    >>> Tensor([-1.0, 2.0]).leaky_relu(0.25)
    Tensor([-0.25,  2.  ])
    """
    return where(lt(0, x), x, mul(x, negative_slope))


@public("prelu", source="PyTorch")
def prelu(x: Node, weight: Node) -> Node:
    """x where it is above 0, else weight * x.

    weight: (1,) or (), or one number per channel, which is dimension 1 of x (of shape (n,) or (),
    x has one channel). Source: He et al., "Delving deep into rectifiers", 2015.

    >>> Tensor([-1.0, 2.0]).prelu(Tensor([0.25]))
    Tensor([-0.25,  2.  ])
    """
    x, slope = operands(as_float(x), as_float(weight))
    channels = x.shape[1] if len(x.shape) > 1 else 1
    count = shapes.total(slope.shape)
    if len(slope.shape) > 1 or not (count == 1 or shapes.same(count, channels)):
        raise ValueError(
            f"prelu: a weight of shape {shapes.text(slope.shape)} does not belong to x of shape "
            f"{shapes.text(x.shape)}: give one number, or {shapes.dim_text(channels)}, one per "
            "channel (dimension 1)"
        )
    column = (count, *[1] * (len(x.shape) - 2)) if len(x.shape) > 1 else ()
    wide = x.dtype.accumulator
    value, factor = cast(x, wide), reshape(cast(slope, wide), column)
    return cast(where(lt(0, value), value, mul(value, factor)), x.dtype)


@public("rrelu", source="PyTorch", kind="keyed")
def rrelu(
    x: Node,
    lower: float = 1 / 8,
    upper: float = 1 / 3,
    training: bool = False,
    *,
    random_key: Any = None,
) -> Node:
    """x where it is above 0, else a slope times x: random, uniform from `lower` to `upper`, in
    training; else the middle of the two. random_key: as of `dropout`.

    Source: Xu et al., "Empirical evaluation of rectified activations", 2015.

    >>> Tensor([-4.0, 2.0]).rrelu(0.25, 0.25)
    Tensor([-1.,  2.])
    """
    if lower > upper:
        raise ValueError(f"rrelu: lower={lower!r} is above upper={upper!r}")
    x = as_float(x)
    if not training:
        return leaky_relu(x, (lower + upper) / 2)
    drawn = rand(random_key() if callable(random_key) else random_key, x.shape)
    wide = cast(x, x.dtype.accumulator)
    slope = add(mul(cast(drawn, wide.dtype), upper - lower), lower)
    return cast(where(lt(0, wide), wide, mul(wide, slope)), x.dtype)


@public("threshold", source="PyTorch")
def threshold(x: Node, threshold: float, value: float) -> Node:
    """x where it is above `threshold`, else `value`, in the dtype of x; NaN stays NaN.
    OverflowError for an int that does not fit it.

    >>> Tensor([1.0, 2.0, 3.0]).threshold(1.5, 0.0)
    Tensor([0., 2., 3.])
    """
    node = node_of(x)
    if isinstance(value, int) and node.dtype.is_int:
        return where(le(node, threshold), value, node)
    return where(le(node, threshold), cast(node_of(value), node.dtype), node)


@public("hardshrink", source="PyTorch")
@rounded_once
def hardshrink(x: Node, lambd: float = 0.5) -> Node:
    """x, but 0 from -lambd to lambd; NaN stays NaN.

    >>> Tensor([-1.0, 0.2, 1.0]).hardshrink()
    Tensor([-1.,  0.,  1.])
    """
    return where(logical_and(le(-lambd, x), le(x, lambd)), 0, x)


@public("softshrink", source="PyTorch")
@rounded_once
def softshrink(x: Node, lambd: float = 0.5) -> Node:
    """x moved towards 0 by lambd, and 0 from -lambd to lambd; NaN stays NaN.

    >>> Tensor([-1.0, 0.25, 1.0]).softshrink()
    Tensor([-0.5,  0. ,  0.5])
    """
    if lambd < 0:
        raise ValueError(f"softshrink: lambd={lambd!r} is below 0")
    outside = where(lt(x, 0), add(x, lambd), sub(x, lambd))
    return where(logical_and(le(-lambd, x), le(x, lambd)), 0, outside)


@public("hardsigmoid", source="PyTorch")
@rounded_once
def hardsigmoid(x: Node) -> Node:
    """x/6 + 1/2 brought into [0, 1]. The derivative at both ends is 0.

    >>> Tensor([-4.0, 0.0, 4.0]).hardsigmoid()
    Tensor([0. , 0.5, 1. ])
    """
    return div(_between(add(x, 3), 0, 6), 6)


@public("hardswish", source="PyTorch")
@rounded_once
def hardswish(x: Node) -> Node:
    """x * hardsigmoid(x): 0 up to -3, x from 3 on, x (x + 3)/6 between.

    Source: Howard et al., "Searching for MobileNetV3", 2019.

    >>> Tensor([-4.0, 0.0, 4.0]).hardswish()
    Tensor([0., 0., 4.])
    """
    low, high = le(x, -3), le(3, x)
    inside = where(low, 0, where(high, 0, x))
    return where(low, 0, where(high, x, div(mul(inside, add(inside, 3)), 6)))


# ---- exponential ---------------------------------------------------------------------------------
def _elu(x: Node, alpha: float, scale: float, inner: float) -> Node:
    """scale * x above 0, else scale * alpha * (exp(inner * x) - 1)."""
    positive = lt(0, x)
    below = mul(expm1(mul(where(positive, 0, x), inner)), alpha * scale)
    return where(positive, mul(x, scale), below)


@public("elu", source="PyTorch")
@rounded_once
def elu(x: Node, alpha: float = 1.0) -> Node:
    """x where it is above 0, else alpha * (exp(x) - 1).

    Source: Clevert, Unterthiner and Hochreiter, "Exponential linear units", 2016.

    >>> Tensor([-1.0, 2.0]).elu()
    Tensor([-0.63212055,  2.        ])
    """
    return _elu(x, alpha, 1.0, 1.0)


@public("selu", source="PyTorch")
@rounded_once
def selu(x: Node) -> Node:
    """`elu` with the two constants that keep mean 0 and variance 1.

    Source: Klambauer et al., "Self-normalizing neural networks", 2017.

    >>> Tensor([0.0, 1.0]).selu()
    Tensor([0.      , 1.050701])
    """
    return _elu(x, _SELU_ALPHA, _SELU_SCALE, 1.0)


@public("celu", source="PyTorch")
@rounded_once
def celu(x: Node, alpha: float = 1.0) -> Node:
    """x where it is above 0, else alpha * (exp(x/alpha) - 1): smooth for every alpha.

    Source: Barron, "Continuously differentiable exponential linear units", 2017.

    >>> Tensor([-1.0, 2.0]).celu()
    Tensor([-0.63212055,  2.        ])
    """
    if alpha == 0:
        raise ValueError("celu: alpha must not be 0")
    return _elu(x, alpha, 1.0, 1 / alpha)


def softplus_of(x: Node) -> Node:
    """log(1 + exp(x)), exact for every x: max(x, 0) + log1p(exp(-|x|)) by `where`, because abs and
    max have no second derivative at 0."""
    rising = le(0, x)
    return add(where(rising, x, 0), log1p(exp(where(rising, neg(x), x))))


@public("softplus", source="PyTorch")
@rounded_once
def softplus(x: Node, beta: float = 1.0, threshold: float = 20.0) -> Node:
    """log(1 + exp(beta * x)) / beta; x itself where beta * x is above `threshold`.

    >>> Tensor([0.0, 100.0]).softplus()
    Tensor([  0.6931472, 100.       ])
    """
    scaled = mul(x, beta)
    over = lt(threshold, scaled)
    return where(over, x, div(softplus_of(where(over, 0, scaled)), beta))


@public("logsigmoid", source="PyTorch")
@rounded_once
def logsigmoid(x: Node) -> Node:
    """log(sigmoid(x)), exact where sigmoid itself would be 0.

    >>> Tensor([0.0, 1000.0]).logsigmoid()
    Tensor([-0.6931472, -0.       ])
    """
    return neg(softplus_of(neg(x)))


@public("mish", source="PyTorch")
@rounded_once
def mish(x: Node) -> Node:
    """x * tanh(log(1 + exp(x))).

    Source: Misra, "Mish: a self regularized non-monotonic activation function", 2019.

    >>> Tensor([0.0, 1.0]).mish()
    Tensor([0.       , 0.8650984])
    """
    return mul(x, tanh(softplus_of(x)))


@public("quick_gelu", source="tinygrad")
@rounded_once
def quick_gelu(x: Node) -> Node:
    """x * sigmoid(1.702 x), which is near gelu.

    >>> Tensor([0.0, 1.0]).quick_gelu()
    Tensor([0.        , 0.84579575])
    """
    return mul(x, sigmoid(mul(x, 1.702)))


@public("softsign", source="PyTorch")
@rounded_once
def softsign(x: Node) -> Node:
    """x / (1 + |x|).

    >>> Tensor([-1.0, 3.0]).softsign()
    Tensor([-0.5 ,  0.75])
    """
    return div(x, add(abs_(x), 1))


@public("tanhshrink", source="PyTorch")
@rounded_once
def tanhshrink(x: Node) -> Node:
    """x - tanh(x).

    >>> Tensor([0.0, 1.0]).tanhshrink()
    Tensor([0.        , 0.23840582])
    """
    return sub(x, tanh(x))


# ---- along a dimension ---------------------------------------------------------------------------
@public("softmin", source="PyTorch")
def softmin(x: Node, dim: int = -1, dtype: DType | None = None) -> Node:
    """`softmax` of -x. dtype: what -x is cast to first.

    >>> Tensor([0.0, 0.0, 1000.0]).softmin()
    Tensor([0.5, 0.5, 0. ])
    """
    return softmax(neg(as_float(x) if dtype is None else as_float(cast(x, dtype))), dim)


@public("glu", source="PyTorch")
def glu(x: Node, dim: int = -1) -> Node:
    """The first half of x along a dimension times the sigmoid of the second half. ValueError for a
    dimension of odd size.

    Source: Dauphin et al., "Language modeling with gated convolutional networks", 2017.

    >>> Tensor([3.0, 4.0, 0.0, 0.0]).glu()
    Tensor([1.5, 2. ])
    """
    x = as_float(x)
    axis = normalize_axis(dim, len(x.shape))
    size = x.shape[axis] if x.shape else 1
    half = shapes.divide(size, 2)
    if not shapes.same(shapes.multiply(half, 2), size):
        raise ValueError(
            f"glu: dimension {axis} of x of shape {shapes.text(x.shape)} has the odd size "
            f"{shapes.dim_text(size)} and no halves"
        )
    wide = cast(x, x.dtype.accumulator)
    gate = sigmoid(narrow(wide, axis, half, size))
    return cast(mul(narrow(wide, axis, 0, half), gate), x.dtype)


@public("gumbel_softmax", source="PyTorch", kind="keyed")
def gumbel_softmax(
    logits: Node,
    tau: float = 1.0,
    hard: bool = False,
    dim: int = -1,
    *,
    random_key: Any = None,
) -> Node:
    """A draw from the categorical distribution with these logits along a dimension, made smooth:
    softmax((logits + gumbel noise) / tau). hard: one-hot, with the derivative of the smooth one.

    random_key: as of `dropout`. Source: Jang, Gu and Poole, "Categorical reparameterization with
    Gumbel-softmax", 2017.

    >>> Tensor([1.0, 2.0, 3.0]).gumbel_softmax(hard=True).sum().item()
    1.0
    """
    if not tau > 0:
        raise ValueError(f"gumbel_softmax: tau={tau!r} must be above 0")
    x = as_float(logits)
    axis = normalize_axis(dim, len(x.shape))
    wide = cast(x, x.dtype.accumulator)
    drawn = rand(random_key() if callable(random_key) else random_key, x.shape, dtype=wide.dtype)
    noise = neg(log(neg(log(drawn))))
    smooth = softmax(div(add(wide, noise), tau), dim)
    if not hard:
        return cast(smooth, x.dtype)
    if not x.shape:
        return cast(add(smooth, sub(1, stop_gradient(smooth))), x.dtype)
    column = (x.shape[axis], *[1] * (len(x.shape) - axis - 1))
    places = reshape(iota(x.shape[axis], int64), column)
    chosen = cast(eq(places, argmax(smooth, axis, True)), wide.dtype)
    return cast(add(chosen, sub(smooth, stop_gradient(smooth))), x.dtype)
