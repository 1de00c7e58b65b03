"""Norms of vectors and matrices, and condition numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from treadle.graph import reduction, shapes
from treadle.graph.build import cast, reduce, reshape, where
from treadle.graph.elementwise import abs_, div, eq, mul
from treadle.graph.linalg.formula import matrices, square
from treadle.graph.linalg.solving import inv_ex
from treadle.graph.linalg.spectral import svdvals
from treadle.graph.movement import movedim
from treadle.graph.public import public
from treadle.graph.reduction import max_, min_, sum_
from treadle.graph.shapes import normalize_axes, text
from treadle.ir.dtype import DType
from treadle.ir.node import Node

Order = int | float | str | None
# of the singular values, and of the sums of |x| along the other dimension
BY_VALUES: dict[Any, Callable[..., Node]] = {"nuc": sum_, 2: max_, -2: min_}
BY_SUMS: dict[Any, tuple[int, Callable[..., Node]]] = {
    1: (-2, max_),
    -1: (-2, min_),
    math.inf: (-1, max_),
    -math.inf: (-1, min_),
}
ORDERS = ("fro", *BY_VALUES, *BY_SUMS)


def _floating(name: str, x: Node, dtype: DType | None) -> Node:
    found = x if dtype is None else cast(x, dtype)
    if not found.dtype.is_inexact or not x.dtype.is_inexact:
        raise TypeError(
            f"linalg.{name} is for floating-point tensors, not for {found.dtype}: cast the tensor, "
            "as in x.float()"
        )
    return found


@public("vector_norm", source="PyTorch", method=False, linalg=True)
def vector_norm(
    x: Node,
    ord: int | float | str = 2,
    dim: Any = None,
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
) -> Node:
    """(sum of |x|**ord)**(1/ord) of all elements, or along one dimension or several; inf and -inf
    give the greatest and the least |x|, 0 counts what is not 0.

    dtype: in which it is computed. The derivative of 0 is 0.

    >>> treadle.linalg.vector_norm(Tensor([3.0, 4.0])).item()
    5.0
    """
    if isinstance(ord, str):
        raise ValueError(f"linalg.vector_norm: ord is a number, not {ord!r}")
    return reduction.norm(_floating("vector_norm", x, dtype), ord, dim, keepdim)


@public("matrix_norm", source="PyTorch", method=False, linalg=True)
def matrix_norm(
    x: Node,
    ord: int | float | str = "fro",
    dim: Any = (-2, -1),
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
) -> Node:
    """The norms of matrices, in the two dimensions `dim`.

    ord: "fro", the root of the sum of squares; "nuc", the sum of the singular values; 2 or -2, the
    greatest or least of them; 1 or -1, the greatest or least sum of |x| down a column; inf or -inf,
    along a row.

    >>> treadle.linalg.matrix_norm(Tensor([[1.0, -2.0], [3.0, 4.0]]), 1).item()
    6.0
    """
    a = _floating("matrix_norm", x, dtype)
    axes = normalize_axes(dim, len(a.shape)) if isinstance(dim, tuple | list) else ()
    if len(axes) != 2:
        raise ValueError(
            f"linalg.matrix_norm: dim names the two dimensions of a matrix, not {shapes.words(dim)}"
        )
    if ord not in ORDERS or isinstance(ord, bool):
        raise ValueError(
            "linalg.matrix_norm: ord is 'fro', 'nuc', inf, -inf, 1, -1, 2 or -2, not "
            f"{shapes.words(ord)}"
        )
    if ord == "fro":
        return reduction.norm(a, 2, axes, keepdim)
    ends = tuple([axis % len(a.shape) for axis in dim])
    moved = movedim(a, ends, (-2, -1))
    if ord in BY_VALUES:
        found = _of_none(BY_VALUES[ord], svdvals(*matrices("matrix_norm", moved)))
    else:
        axis, choose = BY_SUMS[ord]
        found = _of_none(choose, sum_(abs_(moved), axis))
    if not keepdim:
        return found
    return reshape(found, tuple([1 if n in axes else s for n, s in enumerate(a.shape)]))


def _of_none(choose: Any, x: Node) -> Node:
    """Along the last dimension; 0 of nothing, as PyTorch's greatest singular value."""
    return reduce("add", x, -1) if x.shape[-1] == 0 else choose(x, -1)


@public("norm", source="PyTorch")
def norm_of_tensor(
    x: Node,
    p: int | float | str = "fro",
    dim: Any = None,
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
) -> Node:
    """(sum of |x|**p)**(1/p); of all elements, or along one dimension or several. "fro" is p=2; inf
    and -inf give the greatest and the least |x|, 0 counts what is not 0; "nuc" is the sum of the
    singular values of a matrix, in the two dimensions `dim` (of a matrix: may be left out).

    0 of nothing. Integers give float32. The derivative of 0 is 0.

    >>> Tensor([3.0, 4.0]).norm()
    Tensor(5.)
    """
    if p != "nuc":
        return reduction.norm(x, p, dim, keepdim, dtype=dtype)
    dims = tuple(range(len(x.shape))) if dim is None else dim
    if not isinstance(dims, tuple | list) or len(dims) != 2:
        raise ValueError(
            f"norm: p='nuc' is for matrices: x has shape {shapes.text(x.shape)}, and dim={dim!r} "
            "must name two dimensions"
        )
    return matrix_norm(x, p, dims, keepdim, dtype=dtype)


@public("norm", source="PyTorch", method=False, linalg=True)
def norm(
    x: Node,
    ord: Order = None,
    dim: Any = None,
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
) -> Node:
    """`vector_norm` along one dimension, `matrix_norm` in two.

    Without `dim` that of a vector or a matrix; without `ord` the root of the sum of squares, of all
    elements if there is no `dim` either.

    >>> treadle.linalg.norm(Tensor([[3.0, 0.0], [0.0, 4.0]])).item()
    5.0
    """
    if ord is None:
        return vector_norm(x, 2, dim, keepdim, dtype=dtype)
    if dim is None:
        if len(x.shape) not in (1, 2):
            raise ValueError(
                f"linalg.norm: with an ord and no dim it is for vectors and matrices, not for "
                f"shape {text(x.shape)}: say which dimensions"
            )
        dim = tuple(range(len(x.shape)))
    dims = dim if isinstance(dim, tuple | list) else (dim,)
    if len(dims) == 1 and not isinstance(ord, str):
        return vector_norm(x, ord, dims, keepdim, dtype=dtype)
    return matrix_norm(x, ord, dims, keepdim, dtype=dtype)


@public("cond", source="PyTorch", method=False, linalg=True)
def cond(x: Node, p: Order = None) -> Node:
    """The condition numbers of matrices: by the ratio of the greatest and the least singular value
    (p of None, 2, or its inverse for -2), else norm(x, p) * norm(inverse, p) of square ones.

    inf of a singular matrix, 0 of an empty one.

    >>> treadle.linalg.cond(Tensor([[4.0, 0.0], [0.0, 2.0]])).item()
    2.0
    """
    (a,) = matrices("cond", x)
    if p is not None and p not in ORDERS:
        raise ValueError(
            "linalg.cond: p is None, 'fro', 'nuc', inf, -inf, 1, -1, 2 or -2, not "
            f"{shapes.words(p)}"
        )
    if p in (None, 2, -2):
        values = svdvals(a)
        if values.shape[-1] == 0:
            return reduce("add", values, -1)
        greatest, least = reduce("max", values, -1), reduce("min", values, -1)
        return div(least, greatest) if p == -2 else div(greatest, least)
    inverse, info = inv_ex(square("cond", a))
    product = mul(matrix_norm(a, p), matrix_norm(inverse, p))
    return where(eq(info, 0), product, math.inf)
