"""Python floats that are known only when the program runs.

A float argument of a captured function is a number of the program (a SCALAR of a trace, see
engine/trace.py). Arithmetic of such numbers is done in float64, as Python does it; where they meet
an array they take its dtype, as a Python float would: they are *weak*.
"""

from __future__ import annotations

from typing import Any

from treadle.ir import ops
from treadle.ir.dtype import float64
from treadle.ir.node import Node, remember


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
