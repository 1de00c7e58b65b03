"""The graph of one call of a captured function, made when somebody asks for it.

A derivative flows back through a result as if the function had not been captured, and an index out
of range is told with its line: both need the graph over the leaves and numbers of that call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from treadle.engine.normal import Normal
from treadle.engine.recipe import Call
from treadle.graph.build import const
from treadle.ir import ops
from treadle.ir.dtype import float64, uint64
from treadle.ir.node import Node, toposort

Origin = tuple[str, Any]  # ("cell" | "gradient" | "constant" | "float" | "key", which)


class GraphOfCalls:
    """What is the same in every call. roots: a normal form (not its leaves: what is captured keeps
    no value alive); leaves, numbers: the origin of each of its leaves and numbers."""

    def __init__(self, normal: Normal, origins: Mapping[Node, Origin]) -> None:
        self.roots = normal.roots
        self.leaves = [origins.get(leaf, ("constant", leaf)) for leaf in normal.leaves]
        self.numbers = [origins.get(n, ("constant", n)) for n in normal.scalars]


class CallGraph:
    """The graph of one call."""

    def __init__(self, graph: GraphOfCalls, call: Call) -> None:
        find: dict[str, Callable[[Any], Node]] = {
            "cell": lambda number: call.cells[number].node,
            "gradient": lambda number: call.cells[number]._grad.node,
            "constant": lambda node: node,
            "float": lambda number: const(float(call.floats[number]), float64),
            "key": lambda number: const(call.keys[number], uint64),
        }
        self.normal_roots = graph.roots
        self.leaves = [find[kind](which) for kind, which in graph.leaves]
        self.numbers = [find[kind](which) for kind, which in graph.numbers]
        self.done: dict[Node, Node] = {}

    def node(self, node: Node) -> Node:
        """What a node of the normal form is in this call; one in the body of a loop is itself."""
        if not self.done:
            for each in toposort(self.normal_roots):
                if each.op is ops.BUFFER:
                    self.done[each] = self.leaves[each.arg[0]]
                elif each.op is ops.SCALAR:
                    self.done[each] = self.numbers[each.arg]
                else:
                    self.done[each] = each.with_src(tuple([self.done[s] for s in each.src]))
        return self.done.get(node, node)

    def root(self, number: int) -> Node:
        """The graph of a root."""
        return self.node(self.normal_roots[number])

    def roots(self) -> list[Node]:
        """The graphs of all roots."""
        return [self.node(root) for root in self.normal_roots]
