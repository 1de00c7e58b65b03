"""Masks that are known when the code is written."""

from __future__ import annotations

import numpy as np

from treadle.ir import ops
from treadle.ir.node import Node, toposort

_LEAVES = (ops.CONST, ops.LANES)
_INNER = (ops.SPLAT, ops.PACK)
LARGEST = 64  # nodes of a mask that is still looked into


def known_lanes(mask: Node) -> list[bool] | None:
    """Which lanes a mask selects, if that follows from constants alone; None otherwise."""
    stack, below = [mask], {mask}
    while stack:
        node = stack.pop()
        if node.op.kind != "alu" and node.op not in _LEAVES and node.op not in _INNER:
            return None
        stack += [s for s in node.src if s not in below]
        below.update(node.src)
        if len(below) > LARGEST:
            return None
    values: dict[Node, np.ndarray] = {}
    for node in toposort(mask):
        values[node] = _value(node, [values[s] for s in node.src])
    lanes: list[bool] = np.broadcast_to(values[mask], mask.dtype.lanes).tolist()
    return lanes


def _value(node: Node, sources: list[np.ndarray]) -> np.ndarray:
    if node.op is ops.CONST:
        return np.asarray(node.value, node.dtype.compute)
    if node.op is ops.LANES:
        return np.arange(node.dtype.lanes, dtype=node.dtype.compute)
    if node.op is ops.SPLAT:
        return sources[0]
    if node.op is ops.PACK:
        return np.array(sources)
    assert node.op.meaning is not None
    return np.asarray(node.op.meaning(node, *sources))
