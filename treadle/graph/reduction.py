"""Reductions: functions that fold dimensions away.

All take `dim` (None: every dimension; an int or several) and `keepdim`. NaN propagates. Half and
bfloat16 are carried in float32 and rounded once, at the result.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from treadle.graph import shapes
from treadle.graph.build import (
    alu,
    cast,
    const,
    dim_value,
    expand,
    iota,
    node_of,
    normalize_axes,
    normalize_axis,
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
    floats,
    lt,
    maximum,
    minimum,
    ne,
    pow_,
    rounded_once,
    square,
    sub,
)
from treadle.graph.functions import exp, log, sqrt
from treadle.graph.public import public
from treadle.graph.results import MinMax
from treadle.graph.shapes import Dim, text
from treadle.ir import ops
from treadle.ir.dtype import DType, bool_, int32, int64, uint64
from treadle.ir.node import Node


def summed_type(dtype: DType) -> DType:
    """The type of a sum: 64 bits for integers and bools, so that it does not overflow early."""
    return int64 if dtype.kind in "bi" or (dtype.kind == "u" and dtype is not uint64) else dtype


def summed_by_standard(dtype: DType) -> DType:
    """The type of a sum in the Array API standard: unsigned integers add up in uint64."""
    return uint64 if dtype.kind == "u" else summed_type(dtype)


def _count(x: Node, axes: tuple[int, ...]) -> Dim:
    return shapes.total([x.shape[axis] for axis in axes])


# ---- sums ----------------------------------------------------------------------------------------
@public("sum", source="PyTorch")
def sum_(x: Node, dim: Any = None, keepdim: bool = False, *, dtype: DType | None = None) -> Node:
    """The sum; 0 of nothing. Bools and integers add up in int64 unless `dtype` is given.

    >>> Tensor([[1, 2], [3, 4]]).sum(1, keepdim=True)
    Tensor([[3],
            [7]])
    """
    return reduce("add", cast(x, dtype or summed_type(x.dtype)), dim, keepdim)


@public("prod", source="PyTorch")
def prod(x: Node, dim: Any = None, keepdim: bool = False, *, dtype: DType | None = None) -> Node:
    """The product; 1 of nothing. Bools and integers multiply in int64 unless `dtype` is given.

    >>> Tensor([2, 3, 4]).prod()
    Tensor(24)
    """
    return reduce("mul", cast(x, dtype or summed_type(x.dtype)), dim, keepdim)


@public("mean", source="PyTorch", namespace=True)
def mean(x: Node, dim: Any = None, keepdim: bool = False, *, dtype: DType | None = None) -> Node:
    """The sum divided by the number of elements; NaN of nothing. Integers give float32.

    >>> Tensor([[1.0, 3.0], [5.0, 7.0]]).mean(0)
    Tensor([3., 5.])
    """
    return _mean(_in_dtype(x, dtype, "mean"), dim, keepdim)


def _in_dtype(x: Node, dtype: DType | None, name: str) -> Node:
    """x in the dtype that was asked for. TypeError if that cannot hold a mean."""
    if dtype is None:
        return x
    if not (dtype.is_float or dtype.is_complex):
        raise TypeError(f"{name}: dtype={dtype} cannot hold a mean; give a floating-point dtype")
    return cast(x, dtype)


@rounded_once
def _mean(x: Node, dim: Any, keepdim: bool) -> Node:
    axes = normalize_axes(dim, len(x.shape))
    return div(reduce("add", x, axes, keepdim), dim_value(_count(x, axes), x.dtype))


@public("nansum", source="PyTorch")
def nansum(x: Node, dim: Any = None, keepdim: bool = False, *, dtype: DType | None = None) -> Node:
    """The sum of what is not NaN.

    >>> Tensor([1.0, float("nan"), 2.0]).nansum()
    Tensor(3.)
    """
    return sum_(_without_nan(x), dim, keepdim, dtype=dtype)


def _without_nan(x: Node) -> Node:
    return where(ne(x, x), const(0, x.dtype), x) if x.dtype.is_float else x


@public("nanmean", source="PyTorch")
def nanmean(x: Node, dim: Any = None, keepdim: bool = False, *, dtype: DType | None = None) -> Node:
    """The mean of what is not NaN; NaN of nothing.

    >>> Tensor([1.0, float("nan"), 2.0]).nanmean()
    Tensor(1.5)
    """
    return _nanmean(_in_dtype(x, dtype, "nanmean"), dim, keepdim)


@rounded_once
def _nanmean(x: Node, dim: Any, keepdim: bool) -> Node:
    total = reduce("add", _without_nan(x), dim, keepdim)
    return div(total, reduce("add", cast(eq(x, x), x.dtype), dim, keepdim))


@public("var", source="PyTorch")
def var(
    x: Node,
    dim: Any = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: int | float | None = None,
) -> Node:
    """The mean square distance from the mean, the sum of squares divided by `count - correction`.

    correction is 1 unless given; unbiased=True means 1 and unbiased=False means 0. NaN of too few
    elements. Integers give float32. Two passes: a large mean costs no digits.

    >>> Tensor([1.0, 2.0, 3.0]).var()
    Tensor(1.)
    """
    if isinstance(dim, bool):  # x.var(False), as PyTorch has it
        dim, unbiased = None, dim
    if unbiased is not None and correction is not None:
        raise TypeError("var: unbiased and correction say the same; give one of them")
    if correction is None:
        correction = 1 if unbiased is None or unbiased else 0
    return _variance(x, dim, correction, keepdim)


@rounded_once
def _variance(x: Node, dim: Any, correction: int | float, keepdim: bool) -> Node:
    axes = normalize_axes(dim, len(x.shape))
    away = square(sub(x, _mean(x, axes, True)))
    count = _count(x, axes)
    if isinstance(count, int):
        divisor = const(float(max(0, count - correction)), x.dtype)
    else:
        divisor = alu(ops.MAX, sub(dim_value(count, x.dtype), correction), 0)
    return div(reduce("add", away, axes, keepdim), divisor)


@public("std", source="PyTorch")
def std(
    x: Node,
    dim: Any = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: int | float | None = None,
) -> Node:
    """The square root of `var`.

    >>> Tensor([1.0, 2.0, 3.0]).std()
    Tensor(1.)
    """
    return _deviation(x, dim, unbiased, keepdim, correction)


@rounded_once
def _deviation(
    x: Node, dim: Any, unbiased: bool | None, keepdim: bool, correction: int | float | None
) -> Node:
    return _root(var(x, dim, unbiased, keepdim, correction=correction))


def _with_mean(name: str, spread: Callable[..., Node], text_: str) -> None:
    def function(
        x: Node,
        dim: Any = None,
        unbiased: bool | None = None,
        keepdim: bool = False,
        *,
        correction: int | float | None = None,
    ) -> tuple[Node, Node]:
        found = spread(x, dim, unbiased, keepdim, correction=correction)
        return found, _mean(x, None if isinstance(dim, bool) else dim, keepdim)

    function.__doc__ = f"({text_}, mean): `{name.removesuffix('_mean')}` and `mean` of the same."
    public(name, source="PyTorch")(function)


_with_mean("var_mean", var, "variance")
_with_mean("std_mean", std, "standard deviation")


def _root(total: Node) -> Node:
    """The square root of a sum of squares. At 0, its minimum, the derivative is taken to be 0 (the
    middle of the subgradients), although that of sqrt is infinite."""
    return where(eq(total, 0), 0, sqrt(total))


def norm(
    x: Node,
    p: int | float | str = "fro",
    dim: Any = None,
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
) -> Node:
    """(sum of |x|**p)**(1/p): the method `norm` (linalg/norms.py) but for its p="nuc"."""
    power = 2 if p == "fro" else p
    if isinstance(power, bool) or not isinstance(power, (int, float)) or math.isnan(power):
        raise ValueError(f"norm: p is a number, 'fro' or 'nuc', not {shapes.words(p)}")
    wide = x if dtype is None else cast(x, dtype)
    return _norm(abs_(wide) if wide.dtype.is_complex else wide, power, dim, keepdim)


@public("dist", source="PyTorch")
def dist(x: Node, other: Node, p: int | float = 2) -> Node:
    """The p-norm of x - other, of all elements; the two broadcast. Of integers in float32.

    >>> Tensor([1.0, 2.0]).dist(Tensor([4.0, 6.0]))
    Tensor(5.)
    """
    return norm(sub(*floats(x, other)), p)


@rounded_once
def _norm(x: Node, p: int | float, dim: Any, keepdim: bool) -> Node:
    if p == 2:
        return _root(sum_(square(x), dim, keepdim))
    size = abs_(x)
    if p == 1:
        return sum_(size, dim, keepdim)
    if p == 0:
        return sum_(where(ne(x, 0), 1, alu(ops.FLOOR, x)), dim, keepdim)  # derivative: 0
    if math.isinf(p):
        return max_(size, dim, keepdim) if p > 0 else min_(size, dim, keepdim)
    if p < 0:
        return pow_(sum_(pow_(size, p), dim, keepdim), 1 / p)
    powers = where(eq(x, 0), 0, pow_(size, p)) if p < 1 else pow_(size, p)
    total = sum_(powers, dim, keepdim)
    return where(eq(total, 0), 0, pow_(total, 1 / p))


@public("logsumexp", source="PyTorch")
def logsumexp(x: Node, dim: Any = None, keepdim: bool = False) -> Node:
    """log(sum(exp(x))), which does not overflow; -inf of nothing.

    >>> Tensor([1000.0, 0.0]).logsumexp()
    Tensor(1000.)
    """
    return _log_sum_exp(x, dim, keepdim)


@rounded_once
def _log_sum_exp(x: Node, dim: Any, keepdim: bool) -> Node:
    axes = normalize_axes(dim, len(x.shape))
    greatest = stop_gradient(reduce("max", x, axes, True))
    shift = where(lt(abs_(greatest), math.inf), greatest, 0)  # exp(inf - inf) would be NaN
    total = reduce("add", exp(sub(x, shift)), axes, keepdim)
    return add(log(total), reshape(shift, total.shape))


# ---- extremes ------------------------------------------------------------------------------------
def _check_not_empty(x: Node, axes: tuple[int, ...], name: str) -> None:
    """ValueError if there is a result to compute and nothing to compute it from."""
    count = _count(x, axes)
    others = shapes.total([size for axis, size in enumerate(x.shape) if axis not in axes])
    if shapes.at_most(1, count) is not True and others != 0:
        where_ = f"dimension {axes[0]} of" if len(axes) == 1 and len(x.shape) > 1 else "a tensor of"
        raise ValueError(f"{name}: {where_} shape {text(x.shape)} has no elements to choose from")


def _extreme(
    name: str, alias: str, text_: str, of_two: Callable[[Node, Node], Node]
) -> Callable[..., Node]:
    def function(
        x: Node, dim: Any = None, keepdim: bool = False, *, other: Node | None = None
    ) -> Node:
        if isinstance(dim, Node) and other is None:
            dim, other = None, dim
        if other is not None:
            return of_two(x, other)
        return _extreme_value(name, x, dim, keepdim)

    function.__doc__ = (
        f"The {text_} value (values only); NaN if there is one. ValueError of nothing. Equal "
        f"elements share the derivative evenly. With another tensor: `{of_two.__qualname__}`."
    )
    return public(name, source="PyTorch", namespace=True, aliases=(alias,))(function)


def _extreme_value(name: str, x: Node, dim: Any, keepdim: bool) -> Node:
    axes = normalize_axes(dim, len(x.shape))
    _check_not_empty(x, axes, name)
    return reduce(name, x, axes, keepdim)


max_ = _extreme("max", "amax", "greatest", maximum)
min_ = _extreme("min", "amin", "least", minimum)


@public("aminmax", source="PyTorch")
def aminmax(x: Node, *, dim: int | None = None, keepdim: bool = False) -> MinMax[Node]:
    """(the least, the greatest) value, of all or along a dimension; NaN if there is one.

    >>> Tensor([3, 1, 2]).aminmax()
    MinMax(min=Tensor(1), max=Tensor(3))
    """
    return MinMax(min_(x, dim, keepdim), max_(x, dim, keepdim))


def _arg_extreme(name: str, text_: str) -> Callable[..., Node]:
    def function(x: Node, dim: int | None = None, keepdim: bool = False) -> Node:
        return _position(name, x, dim, keepdim)

    function.__doc__ = (
        f"The index, int64, of the {text_} value along `dim`, or in the flattened tensor without "
        "it; of equals the first, and of NaN the first NaN. ValueError of nothing."
    )
    return public(name, source="PyTorch", namespace=True, gradient="int")(function)


argmax = _arg_extreme("argmax", "greatest")
argmin = _arg_extreme("argmin", "least")


def _position(name: str, x: Node, dim: int | None, keepdim: bool) -> Node:
    """One pass: the fold carries the pair (value, index)."""
    rank = len(x.shape)
    flat = x if dim is not None and rank else reshape(x, (shapes.total(x.shape),))
    axis = normalize_axis(0 if dim is None else dim, rank if dim is not None else 1)
    _check_not_empty(flat, (axis,), name)
    size = flat.shape[axis]
    narrow_type = int32 if shapes.bounds(size)[1] < 2**31 else int64
    column = (size,) + (1,) * (len(flat.shape) - axis - 1)
    positions = expand(reshape(iota(size, narrow_type), column), flat.shape)
    _, found = reduce(name, (flat, positions), (axis,), keepdim)
    if keepdim and dim is None:
        found = reshape(found, (1,) * rank)
    return cast(reshape(found, ()) if not rank else found, int64)


# ---- truth ---------------------------------------------------------------------------------------
@public("any", source="PyTorch", namespace=True, gradient="int")
def any_(x: Node, dim: Any = None, keepdim: bool = False) -> Node:
    """Whether some element is true (not 0); False of nothing.

    >>> Tensor([[True, False], [False, False]]).any(1)
    Tensor([ True, False])
    """
    return reduce("or", cast(x, bool_), dim, keepdim)


@public("all", source="PyTorch", namespace=True, gradient="int")
def all_(x: Node, dim: Any = None, keepdim: bool = False) -> Node:
    """Whether every element is true (not 0); True of nothing.

    >>> Tensor([[True, True], [True, False]]).all(1)
    Tensor([ True, False])
    """
    return reduce("and", cast(x, bool_), dim, keepdim)


@public("count_nonzero", source="PyTorch", namespace=True, gradient="int")
def count_nonzero(x: Node, dim: Any = None, keepdim: bool = False) -> Node:
    """How many elements are not 0, int64.

    >>> Tensor([0, 5, 7]).count_nonzero()
    Tensor(2)
    """
    return reduce("add", cast(ne(node_of(x), 0), int64), dim, keepdim)
