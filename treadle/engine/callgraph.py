"""The graph of one call of a captured function, made when somebody asks for it.

A derivative flows back through a result as if the function had not been captured, and an index out
of range is told with its line: both need the graph over the leaves and numbers of that call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from treadle.engine.recipe import Call
from treadle.graph.build import const
from treadle.ir import ops
from treadle.ir.dtype import float64, uint64
from treadle.ir.node import Node, toposort

Origin = tuple[str, Any]  # ("cell" | "gradient" | "constant" | "float" | "key", which)


class CallGraph:
    """roots: a normal form; leaves, numbers: the origin of each of its leaves and numbers."""

    def __init__(
        self,
        roots: Sequence[Node],
        leaves: Sequence[Origin],
        numbers: Sequence[Origin],
        call: Call,
    ) -> None:
        find: dict[str, Callable[[Any], Node]] = {
            "cell": lambda number: call.cells[number].node,
            "gradient": lambda number: call.cells[number].grad.node,
            "constant": lambda node: node,
            "float": lambda number: const(float(call.floats[number]), float64),
            "key": lambda number: const(call.keys[number], uint64),
        }
        self.normal_roots = roots
        self.leaves = [find[kind](which) for kind, which in leaves]
        self.numbers = [find[kind](which) for kind, which in numbers]
        self.done: dict[Node, Node] = {}

    def node(self, node: Node) -> Node:
        """What a node of the normal form is in this call."""
        if not self.done:
            for each in toposort(self.normal_roots):
                if each.op is ops.BUFFER:
                    self.done[each] = self.leaves[each.arg[0]]
                elif each.op is ops.SCALAR:
                    self.done[each] = self.numbers[each.arg]
                else:
                    self.done[each] = each.with_src(tuple([self.done[s] for s in each.src]))
        return self.done[node]

    def root(self, number: int) -> Node:
        """The graph of a root."""
        return self.node(self.normal_roots[number])

    def roots(self) -> list[Node]:
        """The graphs of all roots."""
        return [self.node(root) for root in self.normal_roots]
