"""Sums that leave out what is padding: a guard read as two limits.

A load whose guard is false gives 0, and a sum of products folds in nothing there. Where a guard
says that of whole steps of the sum (the rows of a filter beyond the image, in the gradient of a
convolution), its loop need not run over them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace

from treadle.ir import index, ops
from treadle.ir.dtype import index as INDEX
from treadle.ir.node import Node
from treadle.kernel.actions import legal
from treadle.kernel.bound import inlined
from treadle.kernel.build import substituted
from treadle.kernel.kernel import Kernel, Leaf, ScheduleError, Stmt
from treadle.kernel.layout import layouts
from treadle.kernel.plan import Plan


@dataclass(frozen=True)
class Trim:
    """Runs the loop of a sum, a whole range of a known size, from the first to the last point where
    the guards of a factor may hold. ScheduleError if no guard says more than the range itself."""

    leaf: str

    def __str__(self) -> str:
        return f"trim {self.leaf}"

    def __call__(self, kernel: Kernel) -> Kernel:
        leaf, owner = kernel.leaf(self.leaf), kernel.range_of[self.leaf]
        if owner.leaves != (leaf.name,) or leaf.kind != "loop" or not isinstance(leaf.extent, int):
            raise ScheduleError(f"{leaf.name} is not a whole range of a known size any more")
        users = [s for s in kernel.statements if leaf.name in s.order]
        if len(users) != 1 or leaf.name not in users[0].reduced or users[0].monoid != "add":
            raise ScheduleError(f"{leaf.name} is not the range of one sum")
        first, end = _limits(kernel, leaf, users[0])
        count = index.maximum(index.sub(end, first), 0)
        if count is index.as_node(leaf.extent):
            raise ScheduleError(f"every point of {leaf.name} counts for {users[0].name}")
        changed = replace(leaf, extent=index.dim(count))
        moved = {leaf.node: index.add(first, changed.node)}
        statement = substituted(users[0], moved)
        ranges = {  # the parts of a fused or a sieved range are over it
            name: replace(part, value=index.substitute(part.value, moved))
            for name, part in kernel.ranges.items()
        }
        ranges[owner.name] = replace(owner, extent=changed.extent, value=changed.node)
        made = replace(kernel, ranges=ranges)
        made = legal(made.with_statement(statement).with_leaves(changed))
        layouts(made)  # what was staged along the range may not be found any more
        return made


def trim_sums(plan: Plan, name: str) -> None:
    """Trims what can be of the loops of a sum."""
    statement = plan.kernel.statement(name)
    for leaf in statement.order:
        if leaf in statement.reduced:
            with suppress(ScheduleError):
                plan.do(Trim(leaf))


def _limits(kernel: Kernel, leaf: Leaf, statement: Stmt) -> tuple[Node, Node]:
    """The first point of the leaf that counts, and the one after the last, over the leaves around
    it."""
    position = statement.order.index(leaf.name) + 1
    inside = sum(kernel.leaves[name].bit for name in statement.order[position:])
    first, end = index.const(0), index.as_node(leaf.extent)
    for condition in _conditions(inlined(kernel, statement.values[0])):
        if condition.op not in (ops.LT, ops.LE) or condition.src[0].dtype is not INDEX:
            continue
        difference = kernel.over_leaves(index.sub(*condition.src))
        if condition.op is ops.LE:
            difference = index.sub(difference, 1)  # a <= b is a - b - 1 < 0
        factor = index.coefficient(difference, leaf.node)
        if factor not in (1, -1):
            continue
        rest = index.sub(difference, index.mul(factor, leaf.node))
        if rest.free & leaf.bit:
            continue  # in a remainder or a quotient, too: this is no limit of the leaf
        outer, inner = index.split(rest, inside)
        least = index.add(outer, index.bounds(inner)[0])
        if factor == 1:  # leaf + rest < 0
            end = index.minimum(end, index.sub(0, least))
        else:  # rest - leaf < 0
            first = index.maximum(first, index.add(least, 1))
    return first, end


def _conditions(value: Node) -> Iterator[Node]:
    """The conditions that all have to hold where a product is not 0 for lack of a factor."""
    stack = [value]
    while stack:
        node = stack.pop()
        if node.op in (ops.MUL, ops.CAST):
            stack += node.src
        elif node.op is ops.LOAD and len(node.src) > 1 + node.arg:
            guards = [node.src[-1]]
            while guards:
                guard = guards.pop()
                if guard.op is ops.AND:
                    guards += guard.src
                else:
                    yield guard
