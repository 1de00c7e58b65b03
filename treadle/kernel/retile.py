"""Statements that leave the loops they were in: stores of a tile by loops of their own, and
reductions in two steps.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

from treadle.ir import index, ops
from treadle.ir.node import Node
from treadle.kernel.actions import legal, require_new
from treadle.kernel.kernel import (
    Kernel,
    Leaf,
    Range,
    ScheduleError,
    Scratch,
    Stmt,
    exact,
    replaced,
    scratch_reads,
)


@dataclass(frozen=True)
class Detach:
    """Gives what reads a reduction's tile loops of its own inside the leaf `at`, so that the store
    can run along another range than the sum does (a transposing store). The tile is copied to
    scratch memory called `name`; the new leaves are called name + the name of their range."""

    statement: str
    at: str
    name: str

    def __str__(self) -> str:
        return f"detach {self.statement} at {self.at} as {self.name}"

    def __call__(self, kernel: Kernel) -> Kernel:
        writer = kernel.statement(self.statement)
        kernel.leaf(self.at)
        if self.at not in writer.order or self.at in writer.reduced:
            raise ScheduleError(f"{self.at} is no loop around the results of {self.statement}")
        prefix = writer.order[: writer.order.index(self.at) + 1]
        held = {target.arg[0] for target in writer.targets}
        readers = [s for s in kernel.statements if scratch_reads(s) & held]
        kept = tuple(name for name in writer.order if name not in writer.reduced)
        for reader in readers:
            if reader.order != kept or reader.reduced:
                raise ScheduleError(f"{reader.name} does not run under the loops of the tile")
        tile = _Tile(kernel, self.name, prefix, kept[len(prefix) :])
        targets, mapping, scratch = self._copies(kernel, writer)
        copy = Stmt(
            f"copy_{self.name}", targets, writer.index, tuple(mapping), None, kept
        )
        statements: list[Stmt] = []
        for statement in kernel.statements:
            if readers and statement is readers[0]:
                statements.append(copy)
            if statement in readers:
                statement = tile.moved(kernel, replaced(statement, mapping))
            statements.append(statement)
        changed = replace(
            kernel,
            statements=tuple(statements),
            leaves={**kernel.leaves, **{leaf.name: leaf for leaf in tile.leaves}},
            ranges={**kernel.ranges, **{r.name: r for r in tile.ranges}},
            scratch={**kernel.scratch, **scratch},
        )
        return legal(changed.arranged())

    def _copies(
        self, kernel: Kernel, writer: Stmt
    ) -> tuple[tuple[Node, ...], dict[Node, Node], dict[str, Scratch]]:
        """(the copy's targets, loads of the results -> loads of their copies, the buffers)."""
        targets = []
        mapping: dict[Node, Node] = {}
        scratch: dict[str, Scratch] = {}
        axes = len(writer.index)
        for component, target in enumerate(writer.targets):
            name = self.name + (f"_{component}" if component else "")
            if name in kernel.scratch:
                raise ScheduleError(f"there is a scratch buffer called {name!r} already")
            node = Node(ops.ARG, target.dtype, (), (name, target.shape))
            scratch[name] = Scratch(name, node)
            targets.append(node)
            old = Node(ops.LOAD, target.dtype, (target, *writer.index), axes)
            mapping[old] = Node(ops.LOAD, target.dtype, (node, *writer.index), axes)
        return tuple(targets), mapping, scratch


class _Tile:
    """New ranges over the part of each range that lies inside a loop."""

    def __init__(
        self, kernel: Kernel, name: str, prefix: tuple[str, ...], inner: tuple[str, ...]
    ) -> None:
        self.prefix = prefix
        self.leaves: list[Leaf] = []
        self.ranges: list[Range] = []
        self.mapping: dict[Node, Node] = {}
        self.guards: list[Node] = []
        numbers = kernel.fresh_numbers()
        for owner in dict.fromkeys(kernel.range_of[leaf] for leaf in inner):
            inside = [leaf for leaf in owner.leaves if leaf in inner]
            if owner.leaves[len(owner.leaves) - len(inside) :] != tuple(inside):
                raise ScheduleError(f"range {owner.name} is not split in a block and a tile")
            own = f"{name}{owner.name}"
            require_new(kernel, [own])
            size = prod(index.as_int(kernel.leaves[leaf].extent) for leaf in inside)
            leaf = Leaf(own, size, next(numbers))
            nodes = (kernel.leaves[n].node for n in inside)
            first = index.substitute(owner.value, {n: 0 for n in nodes if n.op is ops.RANGE})
            place = index.add(first, leaf.node)
            self.leaves.append(leaf)
            self.ranges.append(Range(own, size, leaf.number, (own,), leaf.node))
            self.mapping[owner.node] = place
            if not exact(kernel, owner):
                self.guards.append(index.lt(place, owner.extent))

    def moved(self, kernel: Kernel, statement: Stmt) -> Stmt:
        """A statement over the new ranges."""

        def over(node: Node) -> Node:
            return index.substitute(kernel.over_ranges(node), self.mapping)

        guards = [] if statement.guard is None else [over(statement.guard)]
        guard = index.both(*guards, *self.guards)
        return replace(
            statement,
            values=tuple(over(v) for v in statement.values),
            index=tuple(over(i) for i in statement.index),
            guard=None if guard is index.TRUE else guard,
            order=(*self.prefix, *(leaf.name for leaf in self.leaves)),
        )


@dataclass(frozen=True)
class Subtotal:
    """Reduces what is inside a leaf into a subtotal, which is then combined into the result: so a
    tile's accumulators stay in registers although an outer loop of the sum runs over many tiles."""

    statement: str
    at: str

    def __str__(self) -> str:
        return f"subtotal {self.statement} at {self.at}"

    def __call__(self, kernel: Kernel) -> Kernel:
        whole = kernel.statement(self.statement)
        if self.at not in whole.order:
            raise ScheduleError(f"{self.at} is no leaf of {self.statement}")
        position = whole.order.index(self.at) + 1
        inside = whole.reduced & frozenset(whole.order[position:])
        if not inside or inside == whole.reduced:
            raise ScheduleError(
                f"{self.statement} must be reduced both inside and outside of {self.at}"
            )
        targets = []
        loads = []
        scratch = dict(kernel.scratch)
        for target in whole.targets:
            name = f"{target.arg[0]}_sub"
            node = Node(ops.ARG, target.dtype, (), (name, target.shape))
            scratch[name] = Scratch(name, node)
            targets.append(node)
            loads.append(Node(ops.LOAD, target.dtype, (node, *whole.index), len(whole.index)))
        first = replace(
            whole,
            name=f"{whole.name}_sub",
            targets=tuple(targets),
            reduced=inside,
            partial=whole.partial & inside,
        )
        second = replace(
            whole,
            values=tuple(loads),
            order=tuple(name for name in whole.order if name not in inside),
            reduced=whole.reduced - inside,
            partial=whole.partial - inside,
        )
        statements: list[Stmt] = []
        for statement in kernel.statements:
            statements += [first, second] if statement is whole else [statement]
        return legal(replace(kernel, statements=tuple(statements), scratch=scratch))
