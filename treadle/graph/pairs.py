"""Complex tensors in memory: tensors of real numbers with one axis more, of the two parts.

In a graph complex numbers are pairs already (`parts.py`). Before it is scheduled, what is complex
for itself (leaves, what loops carry, results) becomes real: a tensor of shape S is one of shape
S + (2,), the parts side by side as NumPy and every other library keep them. So no schedule, kernel
or backend knows of complex numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from treadle.graph.build import alu, expand, iota, reshape, shrink, where
from treadle.graph.call import inline, may_call
from treadle.ir import ops
from treadle.ir.dtype import int32
from treadle.ir.node import Node, Shape, toposort

_LOOPS = frozenset((ops.SCAN, ops.WHILE, ops.COND))
_PARTS = {ops.REAL: 0, ops.IMAG: 1}


def paired(roots: Sequence[Node]) -> list[Node]:
    """The roots with complex tensors as pairs in memory; the same roots if there are none."""
    order = toposort(roots)
    if not any(map(_is_complex, order)):
        return list(roots)
    if may_call(order):
        roots = inline(roots)
        order = toposort(roots)
    done: dict[Node, Node] = {}

    def whole(node: Node) -> Node:
        """A node as it is in memory. That of a COMPLEX is made for who needs it together."""
        if node not in done:
            done[node] = _side_by_side(*[done[part] for part in node.src])
        return done[node]

    for node in order:
        if node.op in _PARTS:
            (x,) = node.src
            part = _PARTS[node.op]
            done[node] = done[x.src[part]] if x.op is ops.COMPLEX else _taken(done[x], part)
        elif node.op is not ops.COMPLEX:
            done[node] = _stored(node, tuple([whole(source) for source in node.src]))
    return [whole(root) for root in roots]


def _is_complex(node: Node) -> bool:
    dtype = node.dtype
    if isinstance(dtype, tuple):
        return any(each.kind == "c" for each in dtype)
    return bool(dtype.kind == "c")


def _stored(node: Node, sources: tuple[Node, ...]) -> Node:
    """The node on what its sources are in memory."""
    op = node.op
    if op is ops.KERNEL and any(map(_is_complex, (node, *node.src))):
        raise TypeError("a custom kernel is for real numbers: give it x.real and x.imag")
    if op in _LOOPS:
        return Node(op, _real_dtype(node.dtype), sources, _bodies(node.arg))
    if not _is_complex(node):
        return node.with_src(sources)
    if op in (ops.BUFFER, ops.PLACEHOLDER):
        number, shape, *device = node.arg
        return Node(op, node.dtype.real, (), (number, (*shape, 2), *device))
    return Node(op, node.dtype.real, sources, node.arg)  # a whole that stays as it is


def _real_dtype(dtype: Any) -> Any:
    return tuple([each.real for each in dtype])


def _bodies(arg: Any) -> Any:
    """The arg of a loop with the same done in its bodies."""
    return tuple(
        [
            Node(ops.SINK, part.dtype, tuple(paired(part.src)), part.arg)
            if isinstance(part, Node) and part.op is ops.SINK
            else part
            for part in arg
        ]
    )


def _taken(pair: Node, part: int) -> Node:
    """One part of what is in memory as pairs."""
    shape = pair.shape[:-1]
    return reshape(shrink(pair, [*((0, size) for size in shape), (part, part + 1)]), shape)


def _side_by_side(re: Node, im: Node) -> Node:
    """Two parts as one tensor in memory."""
    shape: Shape = (*re.shape, 2)
    is_real = expand(alu(ops.EQ, iota(2, int32), 0), shape)
    return where(is_real, *[expand(reshape(part, (*part.shape, 1)), shape) for part in (re, im)])
