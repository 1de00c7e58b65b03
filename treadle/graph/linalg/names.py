"""What `treadle.linalg` shares with the namespace, as the Array API standard has it there.

https://data-apis.org/array-api/2024.12/extensions/linear_algebra_functions.html
"""

from __future__ import annotations

from typing import Any

from treadle.graph import linear, movement, products, reduction, standard
from treadle.graph.public import public
from treadle.graph.shapes import text
from treadle.ir.dtype import DType
from treadle.ir.node import Node


def in_linalg(name: str, function: Any) -> None:
    """File a function under `treadle.linalg` too."""
    public(name, source="Array API", method=False, linalg=True, module=__name__)(function)


in_linalg("matmul", linear.matmul)
in_linalg("outer", linear.outer)
in_linalg("tensordot", products.tensordot)
in_linalg("vecdot", products.vecdot)
in_linalg("matrix_transpose", standard.matrix_transpose)


@public("cross", source="Array API", method=False, linalg=True)
def cross(x: Node, other: Node, *, dim: int = -1) -> Node:
    """The vector product along an axis of size 3, the last one unless `dim` is given.

    >>> treadle.linalg.cross(Tensor([1, 0, 0]), Tensor([0, 1, 0])).tolist()
    [0, 0, 1]
    """
    return products.cross(x, other, dim)


@public("diagonal", source="Array API", method=False, linalg=True)
def diagonal(x: Node, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Node:
    """The diagonals of matrices as a new last dimension; offset > 0 above the main one.

    >>> treadle.linalg.diagonal(Tensor([[1, 2], [3, 4]])).tolist()
    [1, 4]
    """
    return movement.diagonal(x, offset, dim1, dim2)


@public("trace", source="Array API", method=False, linalg=True)
def trace(x: Node, *, offset: int = 0, dtype: DType | None = None) -> Node:
    """The sum of the diagonal of each matrix; integers and bools are summed in int64, or in the
    `dtype` that is given.

    >>> treadle.linalg.trace(Tensor([[1, 2], [3, 4]])).item()
    5
    """
    if len(x.shape) < 2:
        raise ValueError(f"linalg.trace is for matrices, not for shape {text(x.shape)}")
    return reduction.sum_(movement.diagonal(x, offset, -2, -1), -1, dtype=dtype)
