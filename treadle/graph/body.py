"""Bodies: functions that stand inside a node, as a SINK over PLACEHOLDERs.

A body reads nothing but its parameters, which count from 0: `close` makes one of a graph that a
function has built, and turns what the function used from outside into parameters too.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from treadle.graph import shapes
from treadle.graph.places import NOTED, hand_on
from treadle.graph.tree import Structure, difference, flatten, paths
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
    roots: Sequence[Node],
    parameters: Sequence[Node],
    is_loop: bool = True,
    outside: Collection[Node] | None = None,
) -> tuple[list[Node], list[Node]]:
    """(body, constants): the roots over parameters that count from 0, and the nodes from outside,
    which became the last parameters.

    What does not depend on a step of a loop is computed once, before it. Movements stay in the
    body, and so does what is nothing but a constant: to store them stretched would cost more.
    What is no loop keeps everything that is made of constants alone.

    outside: for a body that may not run at all, the nodes that were there before. Everything else
    is computed in the body.
    """
    before = () if outside is None else outside
    inside = set(parameters)
    cheap: set[Node] = set()
    constants: dict[Node, None] = {}
    for node in below(roots, before):
        if node in inside:
            continue
        if node.op in _CHEAP_LEAVES or _stays(node, cheap, is_loop):
            cheap.add(node)
        elif node in before:
            if unmoved(node).op in _CHEAP_LEAVES:
                cheap.add(node)
        elif any(s in inside for s in node.src) or (outside is not None and node.src):
            inside.add(node)
            constants |= {unmoved(s): None for s in node.src if not (s in inside or s in cheap)}
    constants |= {unmoved(root): None for root in roots if not (root in inside or root in cheap)}
    own = (*parameters, *constants)
    return substitute(roots, dict(zip(own, parameters_like(own)))), list(constants)


def _stays(node: Node, cheap: set[Node], is_loop: bool) -> bool:
    """Whether what reads nothing but constants stays in the body."""
    if is_loop:
        return node.op.kind == "movement" and node.src[0] in cheap
    return bool(node.src) and all(source in cheap for source in node.src)


def below(roots: Sequence[Node], last: Collection[Node]) -> list[Node]:
    """The nodes below the roots, sources first, without those that are only below one of `last`."""
    if not last:
        return toposort(roots)
    order: dict[Node, None] = {}
    stack = list(reversed(roots))
    while stack:
        node = stack[-1]
        missing = [] if node in last else [s for s in node.src if s not in order]
        if node in order or not missing:
            order[stack.pop()] = None
        else:
            stack += reversed(missing)
    return list(order)


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
            new = done[node] = node.with_src(tuple([done[s] for s in node.src]))
            if node.op in NOTED:
                hand_on(node, new)
    return [done[root] for root in found]


def outputs_of(node: Node) -> list[Node]:
    """Every output of a node that has several."""
    return [ops.OUT(node, arg=number, dtype=dtype) for number, dtype in enumerate(node.dtype)]


# ---- checks --------------------------------------------------------------------------------------
def check_leaves(name: str, what: str, tree: Any) -> None:
    """TypeError if a tree holds anything but nodes."""
    leaves, structure = flatten(tree)
    for leaf, path in zip(leaves, paths(structure, "")):
        if not isinstance(leaf, Node):
            place = f" at {path}" if path else ""
            remedy = ": write Tensor(..)" if isinstance(leaf, (bool, int, float)) else ""
            raise TypeError(
                f"{name}: {what} must be tensors in tuples, lists and dictionaries; it holds "
                f"{leaf!r:.40} ({type(leaf).__name__}){place}{remedy}"
            )


def check_carry(
    name: str,
    function: str,
    before: tuple[Structure, Sequence[Node]],
    after: tuple[Structure, Sequence[Node]],
) -> None:
    """ValueError or TypeError, with its path, for the first leaf that a carry changes in."""
    if before[0] != after[0]:
        where, one, other = difference(before[0], after[0], "carry")
        raise ValueError(
            f"{name}: the carry must keep its structure, but {where} enters as {one} and {function}"
            f" returns it as {other} (* is a tensor)"
        )
    for path, old, new in zip(paths(before[0], "carry"), before[1], after[1]):
        if old.dtype is not new.dtype:
            raise TypeError(
                f"{name}: {path} enters as {old.dtype} and {function} returns it as {new.dtype}; "
                "cast one of them"
            )
        if not shapes.same_shape(old.shape, new.shape):
            raise ValueError(
                f"{name}: {path} enters with shape {shapes.text(old.shape)} and {function} returns "
                f"it with shape {shapes.text(new.shape)}; a carry keeps its shape"
            )
