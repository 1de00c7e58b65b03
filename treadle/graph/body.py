"""Bodies: functions that stand inside a node, as a SINK over PLACEHOLDERs.

A body reads nothing but its parameters, which count from 0: `close` makes one of a graph that a
function has built, and turns what the function used from outside into parameters too.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

from treadle.ir import ops
from treadle.ir.dtype import DType
from treadle.ir.node import Node, Shape, toposort

# While a body is traced its parameters have numbers below 0, each used once: so the parameters of
# two bodies, one inside the other, are never the same node. A finished body counts its own from 0.
_unused = itertools.count(-1, -1)


def parameter(dtype: DType, shape: Shape) -> Node:
    """A parameter of a body that is being traced, unlike any other node."""
    return Node(ops.PLACEHOLDER, dtype, (), (next(_unused), shape))


def parameters_like(nodes: Iterable[Node]) -> list[Node]:
    """The parameters of a finished body that get these nodes' values, counted from 0."""
    return [
        Node(ops.PLACEHOLDER, node.dtype, (), (number, node.shape))
        for number, node in enumerate(nodes)
    ]


_CHEAP_LEAVES = frozenset((ops.CONST, ops.VARIABLE, ops.IOTA))


def close(
    roots: Sequence[Node], parameters: Sequence[Node], is_loop: bool = True
) -> tuple[list[Node], list[Node]]:
    """(body, constants): the roots over parameters that count from 0, and the nodes from outside,
    which became the last parameters.

    What does not depend on a step of a loop is computed once, before it. Movements stay in the
    body, and so does what is nothing but a constant: to store them stretched would cost more.
    What is no loop keeps everything that is made of constants alone.
    """
    inside = set(parameters)
    cheap: set[Node] = set()
    constants: dict[Node, None] = {}
    for node in toposort(roots):
        if any(s in inside for s in node.src):
            inside.add(node)
            outside = [s for s in node.src if s not in inside and s not in cheap]
            constants |= {unmoved(s): None for s in outside}
        elif node.op in _CHEAP_LEAVES or _stays(node, cheap, is_loop):
            cheap.add(node)
    outside = [root for root in roots if root not in inside and root not in cheap]
    constants |= {unmoved(root): None for root in outside}
    own = (*parameters, *constants)
    return substitute(roots, dict(zip(own, parameters_like(own)))), list(constants)


def _stays(node: Node, cheap: set[Node], is_loop: bool) -> bool:
    """Whether what reads nothing but constants stays in the body."""
    if is_loop:
        return node.op.kind == "movement" and node.src[0] in cheap
    return bool(node.src) and all(source in cheap for source in node.src)


def unmoved(node: Node) -> Node:
    """What a chain of movements starts from."""
    while node.op.kind == "movement":
        node = node.src[0]
    return node


def substitute(roots: Iterable[Node], replacements: dict[Node, Node]) -> list[Node]:
    """The roots with nodes below them replaced. What stands inside an arg (the body of another
    loop, whose parameters are its own) stays as it is."""
    done = dict(replacements)
    found = list(roots)
    stack = list(found)
    while stack:
        node = stack[-1]
        missing = [] if node in done else [s for s in node.src if s not in done]
        if missing:
            stack += missing
            continue
        stack.pop()
        if node not in done:
            done[node] = node.with_src(tuple([done[s] for s in node.src]))
    return [done[root] for root in found]
