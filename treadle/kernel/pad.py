"""Ranges that end later, so that tiles divide them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from treadle.ir import index, ops
from treadle.ir.node import Node, toposort
from treadle.kernel.actions import exchange, require_reached
from treadle.kernel.kernel import Kernel, ScheduleError, Stmt


@dataclass(frozen=True)
class Pad:
    """Makes a whole range end at a multiple of `size`. Past its old end nothing is read, so that
    factors are zeros there, and nothing is stored."""

    leaf: str
    size: int

    def __str__(self) -> str:
        return f"pad {self.leaf} {self.size}"

    def __call__(self, kernel: Kernel) -> Kernel:
        leaf, owner = kernel.leaf(self.leaf), kernel.range_of[self.leaf]
        whole = owner.leaves == (leaf.name,) and owner.value is leaf.node and leaf.kind == "loop"
        if not whole or leaf.node.op is not ops.RANGE:
            raise ScheduleError(f"{leaf.name} is not a whole range any more")
        if self.size < 1:
            raise ScheduleError("it takes a size of at least 1")
        require_reached(leaf, self.size)
        tiles = index.floordiv(index.add(leaf.extent, self.size - 1), self.size)
        longer = replace(leaf, extent=index.dim(index.mul(tiles, self.size)))
        exists = index.lt(longer.node, leaf.extent)
        if exists is index.TRUE:
            return kernel
        if any(not r.leaves and r.value.free & leaf.bit for r in kernel.ranges.values()):
            raise ScheduleError(f"other ranges are parts of {leaf.name} and would end later, too")
        statements = []
        for statement in kernel.statements:
            if leaf.name in statement.reduced and not _is_product(statement, leaf.bit):
                raise ScheduleError(
                    f"{statement.name} sums no products of two loads along {leaf.name}: past its "
                    "end there would be something to sum"
                )
            if leaf.name in statement.order:
                statement = _guarded(statement, leaf.node, longer.node, exists)
            statements.append(statement)
        changed = replace(owner, extent=longer.extent, value=longer.node)
        padded = replace(
            kernel, statements=tuple(statements), ranges={**kernel.ranges, owner.name: changed}
        )
        return exchange(padded, [leaf], [longer])


def _is_product(statement: Stmt, bit: int) -> bool:
    """Whether a statement sums products of two elements of buffers that both move with a range."""
    value = statement.values[0]
    if statement.monoid != "add" or value.op is not ops.MUL:
        return False
    factors = (factor.src[0] if factor.op is ops.CAST else factor for factor in value.src)
    return all(_is_element(factor) and factor.free & bit for factor in factors)


def _is_element(node: Node) -> bool:
    return node.op is ops.LOAD and isinstance(node.src[0].arg[0], int)


def _guarded(statement: Stmt, old: Node, new: Node, exists: Node) -> Stmt:
    """The statement over the longer range: it reads and writes buffers where a point exists."""
    over = {old: new}
    for node in toposort(statement.roots):
        if node in over:
            continue
        made = index.rebuild(node, tuple([over[s] for s in node.src])) if node.src else node
        if _is_element(made) and made.free & new.free:
            place, guards = made.src[: 1 + made.arg], made.src[1 + made.arg :]
            made = Node(ops.LOAD, made.dtype, (*place, index.both(*guards, exists)), made.arg)
        over[node] = made
    guard = None if statement.guard is None else over[statement.guard]
    if statement.is_store:
        guard = exists if guard is None else index.both(guard, exists)
    return replace(
        statement,
        values=tuple(over[value] for value in statement.values),
        index=tuple(over[i] for i in statement.index),
        guard=guard,
    )
