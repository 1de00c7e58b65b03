"""Many examples at once: one table of rules, and the walk that applies them.

A graph for one example becomes a graph for all of them: every node that depends on an example gets
a new first axis. What does not depend on one stays as it is, and is stretched (which costs nothing)
where it meets one that does.

A row of `BATCHING` is `rule(y, sources, size)`: what does y for `size` examples, given each source
as (node, whether it has the axis), one at least of which has it; and the same of the result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from treadle.graph import build as b
from treadle.graph import shapes
from treadle.graph.parts import complex_of, imag, real
from treadle.graph.places import INDEXING, NOTED, hand_on, indexing_below
from treadle.graph.shapes import Dim
from treadle.ir import ops
from treadle.ir.node import Node, toposort
from treadle.ir.ops import Op

Batched = tuple[Node, bool]  # a node, and whether its first axis is that of the examples
Rule = Callable[[Node, Sequence[Batched], Dim], Batched]
# (y, sources, size) -> y's outputs
WholeRule = Callable[[Node, Sequence[Batched], Dim], Sequence[Batched]]


def with_axis(x: Node, has: bool, size: Dim) -> Node:
    """The node with the axis of the examples: if it has none, stretched along a new one."""
    if has:
        return x
    base = x.src[0] if x.op is ops.EXPAND else x
    return b.expand(b.reshape(base, (1, *base.shape)), (size, *x.shape))


def moved_axis(x: Node, source: int, destination: int) -> Node:
    """The node with one axis in another place, the others in their order."""
    order = [axis for axis in range(len(x.shape)) if axis != source]
    order.insert(destination, source)
    return b.permute(x, order)


# ---- rules ---------------------------------------------------------------------------------------
def same(y: Node, sources: Sequence[Batched], size: Dim) -> Batched:
    """Element by element: the same operation."""
    return y.with_src(tuple([with_axis(*source, size) for source in sources])), True


def adjusted(argument: Callable[[Any, Dim], Any]) -> Rule:
    """The same operation, whose arg is `argument(arg, size)`."""

    def rule(y: Node, sources: Sequence[Batched], size: Dim) -> Batched:
        whole = tuple([with_axis(*source, size) for source in sources])
        return Node(y.op, y.dtype, whole, argument(y.arg, size)), True

    return rule


def _later(axes: Iterable[int]) -> tuple[int, ...]:
    return tuple([axis + 1 for axis in axes])


def of_gather(y: Node, sources: Sequence[Batched], size: Dim) -> Batched:
    """Every example reads its own table; or all read one: then their indices stand one after
    another along its axis, and a derivative adds up in one table."""
    (x, own), (index, _) = sources
    axis = y.arg
    if own:
        return ops.GATHER(x, with_axis(*sources[1], size), arg=axis + 1), True
    together = moved_axis(index, 0, axis)
    before, after = together.shape[:axis], together.shape[axis + 2 :]
    count = shapes.multiply(size, together.shape[axis + 1])
    found = ops.GATHER(x, b.reshape(together, (*before, count, *after)), arg=axis)
    return moved_axis(b.reshape(found, together.shape), axis, 0), True


def of_again(y: Node, sources: Sequence[Batched], size: Dim) -> Batched:
    """What the computation waits for does not change what is computed."""
    (x, has), (after, _) = sources
    return y.with_src((x, after)), has


# ops whose arg names axes, or has an entry for each
_ADJUSTED: dict[Op, Callable[[Any, Dim], Any]] = {
    ops.RESHAPE: lambda shape, size: (size, *shape),
    ops.EXPAND: lambda shape, size: (size, *shape),
    ops.PERMUTE: lambda order, size: (0, *_later(order)),
    ops.PAD: lambda pairs, size: ((0, 0), *pairs),
    ops.SHRINK: lambda pairs, size: ((0, size), *pairs),
    ops.FLIP: lambda axes, size: _later(axes),
    ops.WINDOW: lambda arg, size: (arg[0] + 1, *arg[1:]),
    ops.UNWINDOW: lambda arg, size: (arg[0] + 1, *arg[1:]),
    ops.REDUCE: lambda arg, size: (arg[0], _later(arg[1])),
    ops.SCATTER: lambda arg, size: (arg[0] + 1, arg[1]),
    ops.UPDATE: lambda region, size: ((0, 1), *region),
}
_ELEMENTWISE = tuple([op for op in ops.TABLE.values() if op.kind == "alu" and "g" in op.stages])
BATCHING: dict[Op, Rule] = {
    **dict.fromkeys((*_ELEMENTWISE, ops.CONTIGUOUS, ops.COPY), same),
    **{op: adjusted(argument) for op, argument in _ADJUSTED.items()},
    ops.GATHER: of_gather,
    ops.AGAIN: of_again,
    ops.COMPLEX: lambda y, sources, size: (
        complex_of(*[with_axis(*source, size) for source in sources]),
        True,
    ),
    ops.REAL: lambda y, sources, size: (real(sources[0][0]), True),
    ops.IMAG: lambda y, sources, size: (imag(sources[0][0]), True),
}
# Operations with a body; the modules that make them put their rows here: `scan.py` that of SCAN.
WHOLE_BATCHING: dict[Op, WholeRule] = {}


# ---- the walk ------------------------------------------------------------------------------------
def batched(outputs: Iterable[Node], given: Mapping[Node, Node], size: Dim) -> list[Batched]:
    """The outputs for `size` examples at once, each with whether it has the axis of the examples,
    its first; one that has none is the same for all.

    given: what a leaf is in all the examples, stacked along a first axis of `size`.
    """
    roots = list(outputs)
    done: dict[Node, Any] = {}  # of a node with several outputs: one Batched per output
    for node in toposort(roots):
        if node in given:
            done[node] = (given[node], True)
            continue
        if node.op is ops.OUT and isinstance(done[node.src[0]], list):
            done[node] = done[node.src[0]][node.arg]
            continue
        sources = [done[source] for source in node.src]
        if not any(has for _, has in sources):
            done[node] = (node.with_src(tuple([source for source, _ in sources])), False)
            if node.op in NOTED:
                hand_on(node, done[node][0])
        elif node.op in WHOLE_BATCHING:
            done[node] = list(WHOLE_BATCHING[node.op](node, sources, size))
            _hand_on(node, done[node], sources)
        elif node.op is ops.OUT:
            done[node] = (node.with_src((sources[0][0],)), True)
        else:
            done[node] = BATCHING[node.op](node, sources, size)
            _hand_on(node, [done[node]], sources)
    return [done[root] for root in roots]


def _hand_on(node: Node, results: Sequence[Batched], sources: Sequence[Batched]) -> None:
    """What is known of an indexing operation holds for what does it for all examples."""
    if node.op in INDEXING:
        for new in indexing_below([y for y, _ in results], [x for x, _ in sources]):
            hand_on(node, new)
