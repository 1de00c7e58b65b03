"""The normal form of a graph: what is left when names and numbers that do not matter are taken out.

Leaves are renamed in order of first use, and numbers that no rule consumes become run-time scalars.
So the second step of a training loop, with another batch, other weights, another learning rate, is
the same tuple of nodes as the first: the key of the schedule cache.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from treadle.ir import ops
from treadle.ir.node import Node, toposort

KEPT_FLOATS = frozenset((0.0, 1.0, -1.0, 2.0, 0.5))  # rules look for these; so do inf and NaN
KEPT_INTS = 4096  # small integers are counts, axes and sizes, which rules use


class Normal(NamedTuple):
    """roots: the renamed graph. leaves[n]: the BUFFER that leaf n stands for. scalars[n]: the
    number that SCALAR n stands for: a CONST, or the SCALAR of a trace (engine/trace.py). Numbers
    inside the body of a scan stay constants."""

    roots: tuple[Node, ...]
    leaves: tuple[Node, ...]
    scalars: tuple[Node, ...]


def is_runtime_number(node: Node) -> bool:
    """Whether a constant is data (a learning rate, a random key) and not structure."""
    dtype = node.dtype
    if dtype.kind == "f":
        value = node.value
        return math.isfinite(value) and value not in KEPT_FLOATS
    if dtype.kind in "iu":
        return abs(node.value) > KEPT_INTS
    return False


def normalise(roots: Sequence[Node]) -> Normal:
    """The normal form of the graph below the roots. One visit a node."""
    new: dict[Node, Node] = {}
    leaves: list[Node] = []
    scalars: list[Node] = []
    for node in toposort(roots):
        op = node.op
        if op is ops.BUFFER:
            _, shape, device = node.arg
            new[node] = Node(ops.BUFFER, node.dtype, (), (len(leaves), shape, device))
            leaves.append(node)
        elif op is ops.SCALAR or (op is ops.CONST and is_runtime_number(node)):
            new[node] = Node(ops.SCALAR, node.dtype, (), len(scalars))
            scalars.append(node)
        elif node.src:
            new[node] = node.with_src(tuple([new[s] for s in node.src]))
        else:
            new[node] = node
    return Normal(tuple(new[r] for r in roots), tuple(leaves), tuple(scalars))
