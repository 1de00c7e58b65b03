"""Weak scalars: Python numbers, which take the dtype of the arrays they meet.

Some are known only when the program runs: a float argument of a captured function is a number of
the program (a SCALAR of a trace, see engine/trace.py). Arithmetic of such numbers is done in
float64, as Python does it.
"""

from __future__ import annotations

from typing import Any

from treadle.ir import ops
from treadle.ir.dtype import DType, bool_, complex64, complex128, float32, float64, int64
from treadle.ir.node import Node, remember


def weak_dtype(dtype: DType | None, scalar: bool | int | float | complex) -> DType:
    """The dtype of arrays of `dtype` (None: there are none) combined with a Python scalar: a float
    turns integers into float32, an int turns bool into int64, a complex number makes complex64 of
    all but float64, of which it makes complex128."""
    if isinstance(scalar, complex):
        if dtype is None or dtype.is_complex:
            return dtype or complex64
        return complex128 if dtype is float64 else complex64
    kind = 0 if isinstance(scalar, bool) else 1 if isinstance(scalar, int) else 2
    if dtype is None:
        return (bool_, int64, float32)[kind]
    if kind == 0 or dtype.is_inexact:
        return dtype
    if kind == 1:
        return int64 if dtype is bool_ else dtype
    return float32


def is_weak(x: Any) -> bool:
    """Whether an operand is a run-time Python float, or arithmetic of such."""
    if not isinstance(x, Node) or x.dtype is not float64 or x.shape:
        return False
    weak: bool = remember(x, "weak", _is_weak)
    return weak


def _is_weak(root: Node) -> bool:
    stack, seen = [root], {root}
    found = False
    while stack:
        node = stack.pop()
        if node.shape or (not node.src and node.op not in (ops.SCALAR, ops.CONST)):
            return False
        found = found or (node.op is ops.SCALAR and node.arg < 0)
        stack += [source for source in node.src if source not in seen]
        seen.update(node.src)
    return found
