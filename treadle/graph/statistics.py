"""Covariance and correlation, distances within a set, norms that are held to a limit."""

from __future__ import annotations

from treadle.graph import shapes
from treadle.graph.build import as_float, cast, dim_value, reshape, where
from treadle.graph.elementwise import add, clamp, div, floats, gt, maximum, mul, rounded_once, sub
from treadle.graph.enumeration import choices
from treadle.graph.functions import sqrt
from treadle.graph.linear import matmul
from treadle.graph.movement import diagonal, transpose
from treadle.graph.public import public
from treadle.graph.reduction import norm, sum_
from treadle.graph.selection import index_select
from treadle.graph.shapes import normalize_axis, text
from treadle.ir.node import Node


# ---- covariance ----------------------------------------------------------------------------------
@public("cov", source="PyTorch")
def cov(
    x: Node,
    *,
    correction: int = 1,
    fweights: Node | None = None,
    aweights: Node | None = None,
) -> Node:
    """The covariances of the rows of a matrix, whose columns are observations; of one row its
    variance, of shape ().

    correction: what is taken from the number of observations. fweights: how often each was made
    (integers); aweights: how much each counts, which promotes the result.

    >>> Tensor([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]).cov()
    Tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    if len(x.shape) > 2:
        raise ValueError(f"cov: takes a matrix or a row, not the shape {text(x.shape)}")
    given = as_float(x) if aweights is None else floats(x, aweights)[0]
    wide = cast(given, given.dtype.accumulator)
    rows = wide if len(x.shape) == 2 else reshape(wide, (1, shapes.total(x.shape)))
    weights = _weights(rows, fweights, aweights)
    if weights is None:
        count = dim_value(rows.shape[1], rows.dtype)
        away = sub(rows, div(sum_(rows, 1, True), count))
        products = matmul(away, transpose(away, 0, 1))
        rest = sub(count, correction)
    else:
        count = sum_(weights)
        away = sub(rows, div(sum_(mul(rows, weights), 1, True), count))
        products = matmul(mul(away, weights), transpose(away, 0, 1))
        rest = sub(count, _lost(weights, aweights, count, correction))
    found = cast(div(products, maximum(rest, 0)), given.dtype)
    return reshape(found, ()) if rows.shape[0] == 1 else found


def _weights(rows: Node, fweights: Node | None, aweights: Node | None) -> Node | None:
    """The weights of the observations, or None if all are 1."""
    found: Node | None = None
    for name, each in (("fweights", fweights), ("aweights", aweights)):
        if each is None:
            continue
        if not shapes.same_shape(each.shape, (rows.shape[1],)):
            raise ValueError(
                f"cov: {name} has the shape {text(each.shape)}; it must have one number for each "
                f"of {shapes.dim_text(rows.shape[1])} observations"
            )
        if name == "fweights" and not each.dtype.is_int:
            raise TypeError(f"cov: fweights are numbers of times, integers, not {each.dtype}")
        wide = cast(each, rows.dtype)
        found = wide if found is None else mul(found, wide)
    return found


def _lost(weights: Node, aweights: Node | None, count: Node, correction: int) -> Node | int:
    """What the correction takes from the sum of the weights."""
    if aweights is None or correction == 0:
        return correction
    mean = div(sum_(mul(weights, cast(aweights, weights.dtype))), count)
    return mul(mean, correction)


@public("corrcoef", source="PyTorch")
@rounded_once
def corrcoef(x: Node) -> Node:
    """The correlation of the rows of a matrix, whose columns are observations, within [-1, 1]; of
    one row 1, of shape ().

    >>> Tensor([[0.0, 1.0, 2.0], [4.0, 2.0, 0.0]]).corrcoef()
    Tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    covariance = cov(x)
    if not covariance.shape:
        return div(covariance, covariance)
    size = covariance.shape[0]
    deviation = sqrt(diagonal(covariance))
    found = div(covariance, reshape(deviation, (size, 1)))
    return clamp(div(found, deviation), -1, 1)


# ---- distances and norms -------------------------------------------------------------------------
@public("pdist", source="PyTorch")
@rounded_once
def pdist(x: Node, p: float = 2.0) -> Node:
    """The p-norms of the differences of all pairs of rows of a matrix (n, k), (0, 1), (0, 2) .. in
    a row of n (n - 1) / 2.

    >>> Tensor([[0.0, 0.0], [3.0, 4.0], [0.0, 1.0]]).pdist().numpy().round(2).tolist()
    [5.0, 1.0, 4.239999771118164]
    """
    if len(x.shape) != 2 or not isinstance(x.shape[0], int):
        raise ValueError(f"pdist: takes a matrix of known size, not the shape {text(x.shape)}")
    if p < 0:
        raise ValueError(f"pdist: p is 0 or more, not {p}")
    first, second = (index_select(x, 0, each) for each in choices(x.shape[0], 2, False))
    return norm(sub(first, second), p, -1)


@public("renorm", source="PyTorch")
@rounded_once
def renorm(x: Node, p: float, dim: int, maxnorm: float) -> Node:
    """x with every slice along `dim` whose p-norm is above `maxnorm` made as much smaller.

    >>> Tensor([[3.0, 4.0], [0.3, 0.4]]).renorm(2, 0, 1.0).numpy().round(3).tolist()
    [[0.6000000238418579, 0.800000011920929], [0.30000001192092896, 0.4000000059604645]]
    """
    if len(x.shape) < 2:
        raise ValueError(f"renorm: needs two dimensions or more, not the shape {text(x.shape)}")
    if not p > 0 or maxnorm < 0:
        raise ValueError(f"renorm: p is above 0 and maxnorm 0 or more, not {p} and {maxnorm}")
    axis = normalize_axis(dim, len(x.shape))
    others = [each for each in range(len(x.shape)) if each != axis]
    size = norm(x, p, others, True)
    factor = where(gt(size, maxnorm), div(maxnorm, add(size, 1e-7)), 1)
    return mul(x, factor)
