"""Statements that leave the loops they were in: loops of their own, stores of a tile by others than
its sum, and reductions in two steps.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

from treadle.ir import index, ops
from treadle.ir.node import Node
from treadle.kernel.actions import legal, require_new_ranges
from treadle.kernel.kernel import (
    Extent,
    Kernel,
    Leaf,
    Range,
    ScheduleError,
    Scratch,
    Stmt,
    exact,
    kept,
    replaced,
)
from treadle.kernel.layout import ROOT


@dataclass(frozen=True)
class Detach:
    """Gives what reads a reduction's tile loops of its own inside the leaf `at`, so that the store
    can run along another range than the sum does (a transposing store). The tile is copied to
    scratch memory called `name`; the new leaves are called name + the name of their range. At
    "root" the tile is all the results."""

    statement: str
    at: str
    name: str

    def __str__(self) -> str:
        return f"detach {self.statement} at {self.at} as {self.name}"

    def __call__(self, kernel: Kernel) -> Kernel:
        writer = kernel.statement(self.statement)
        prefix = _down_to(kernel, writer, self.at)
        results = kept(writer)
        position = kernel.statements.index(writer)
        readers = [s for s in kernel.statements[position + 1 :] if s.order[: len(prefix)] == prefix]
        if not readers or writer.is_store:
            raise ScheduleError(f"nothing inside {self.at} reads what {writer.name} computes")
        for reader in readers:
            if set(kept(reader)) != set(results):
                raise ScheduleError(f"{reader.name} does not run under the loops of the tile")
        tile = _Tile(kernel, self.name, results[len(prefix) :])
        targets, mapping, scratch = self._copies(kernel, writer)
        copy = Stmt(f"copy_{self.name}", targets, writer.index, tuple(mapping), None, results)
        statements: list[Stmt] = []
        for statement in kernel.statements:
            if statement is readers[0]:
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
            scope = ROOT if self.at == ROOT else "thread"
            scratch[name] = Scratch(name, node, scope, kernel.scratch[target.arg[0]].layout)
            targets.append(node)
            old = Node(ops.LOAD, target.dtype, (target, *writer.index), axes)
            mapping[old] = Node(ops.LOAD, target.dtype, (node, *writer.index), axes)
        return tuple(targets), mapping, scratch


def _down_to(kernel: Kernel, statement: Stmt, at: str) -> tuple[str, ...]:
    """The leaves of a statement down to `at`, a loop around its results (none down to "root")."""
    if at == ROOT:
        return ()
    kernel.leaf(at)
    if at not in statement.order or at in statement.reduced:
        raise ScheduleError(f"{at} is no loop around the results of {statement.name}")
    prefix = statement.order[: statement.order.index(at) + 1]
    for name in prefix:
        if name in statement.reduced:
            raise ScheduleError(f"{statement.name} is summed over {name}, which is outside of {at}")
    return prefix


@dataclass(frozen=True)
class Fission:
    """Gives a statement loops of its own inside the leaf `at`, where it shares some with others: it
    runs for the whole block before what follows it. The new leaves are called name + the name of
    their range (loop fission, as compilers call it)."""

    statement: str
    at: str
    name: str

    def __str__(self) -> str:
        return f"fission {self.statement} at {self.at} as {self.name}"

    def __call__(self, kernel: Kernel) -> Kernel:
        statement = kernel.statement(self.statement)
        prefix = _down_to(kernel, statement, self.at)
        others = {n for s in kernel.statements if s is not statement for n in s.order}
        inner = tuple(n for n in statement.order[len(prefix) :] if n in others)
        if not inner:
            raise ScheduleError(f"{self.statement} shares no loop inside {self.at}")
        for name in inner:
            if kernel.leaves[name].kind != "loop":
                raise ScheduleError(f"{name} is {kernel.leaves[name].kind} already")
        tile = _Tile(kernel, self.name, inner)
        moved = tile.moved(kernel, statement)
        changed = replace(
            kernel.with_statement(moved),
            leaves={**kernel.leaves, **{leaf.name: leaf for leaf in tile.leaves}},
            ranges={**kernel.ranges, **{r.name: r for r in tile.ranges}},
        )
        return legal(changed.arranged())


@dataclass(frozen=True)
class StageStore:
    """Puts what a store writes into scratch memory called `name` first, and stores it from there by
    loops of its own inside the leaf `at`, as `Detach` calls them. For GPU targets: scope, swizzle
    and copy as in `Stage`; shape: the piece of the tile that is in memory at a time, by dimension
    (the whole tile, if it is empty)."""

    statement: str
    at: str
    name: str
    scope: str = "thread"
    swizzle: int = 0
    copy: str = "plain"
    shape: tuple[int, ...] = ()

    def __str__(self) -> str:
        words = [f"stage {self.statement} at {self.at} as {self.name}"]
        if self.scope != "thread":
            words.append(self.scope)
        if self.swizzle:
            words.append(f"swizzle {self.swizzle}")
        if self.copy != "plain":
            words.append(f"copy {self.copy}")
        if self.shape:
            words.append("shape " + ",".join(map(str, self.shape)))
        return " ".join(words)

    def __call__(self, kernel: Kernel) -> Kernel:
        store = kernel.statement(self.statement)
        if not store.is_store or store.monoid is not None or store.guard is not None:
            raise ScheduleError(f"{self.statement} does not simply store to a buffer")
        prefix = _down_to(kernel, store, self.at)
        tile = _Tile(kernel, self.name, store.order[len(prefix) :])
        self._check(kernel, tile)
        target = store.targets[0]
        node = Node(ops.ARG, target.dtype, (), (self.name, target.shape))
        copy = replace(store, name=f"copy_{self.name}", targets=(node,))
        load = Node(ops.LOAD, target.dtype, (node, *store.index), len(store.index))
        moved = tile.moved(kernel, replace(store, values=(load,)))
        scratch = Scratch(
            self.name, node, self.scope, swizzle=self.swizzle, copy=self.copy, shape=self.shape
        )
        statements: list[Stmt] = []
        for statement in kernel.statements:
            statements += [copy, moved] if statement is store else [statement]
        changed = replace(
            kernel,
            statements=tuple(statements),
            leaves={**kernel.leaves, **{leaf.name: leaf for leaf in tile.leaves}},
            ranges={**kernel.ranges, **{r.name: r for r in tile.ranges}},
            scratch={**kernel.scratch, self.name: scratch},
        )
        return legal(changed.arranged())

    def _check(self, kernel: Kernel, tile: _Tile) -> None:
        if self.name in kernel.scratch:
            raise ScheduleError(f"there is a scratch buffer called {self.name!r} already")
        gpu_only = (self.scope, self.swizzle, self.copy, self.shape) != ("thread", 0, "plain", ())
        if gpu_only and kernel.target.kind != "gpu":
            raise ScheduleError(f"scope, swizzle, copy and shape are not for {kernel.target.name}")
        sizes = [leaf.extent for leaf in tile.leaves]
        if self.shape and (
            len(self.shape) != len(sizes)
            or any(not isinstance(n, int) or n % piece for n, piece in zip(sizes, self.shape))
        ):
            spelled = " x ".join(index.spell(size) for size in sizes)
            raise ScheduleError(f"shape {self.shape} does not divide the tile of {spelled}")


def _known(kernel: Kernel, name: str) -> int:
    extent = kernel.leaves[name].extent
    if not isinstance(extent, int):
        raise ScheduleError(f"{name} runs {index.spell(extent)} times, which is not known")
    return extent


class _Tile:
    """New ranges over the part of each range that lies inside a loop.

    Statements that move are over new places in the old ranges (and in the ranges that were fused
    into these): whole addresses fold before a place becomes the sum of block and tile.
    """

    def __init__(self, kernel: Kernel, name: str, inner: tuple[str, ...]) -> None:
        self.leaves: list[Leaf] = []
        self.own: dict[str, str] = {}  # old leaf -> the leaf that stands for its range
        self.ranges: list[Range] = []
        self.mapping: dict[Node, Node] = {}
        numbers = kernel.fresh_numbers()
        for owner in dict.fromkeys(kernel.range_of[leaf] for leaf in inner):
            inside = [leaf for leaf in owner.leaves if leaf in inner]
            if owner.leaves[len(owner.leaves) - len(inside) :] != tuple(inside):
                raise ScheduleError(f"range {owner.name} is not split in a block and a tile")
            if owner.tail == "shift":
                raise ScheduleError(f"the last tile of {owner.name} moves back: change its tail")
            own = f"{name}{owner.name}"
            require_new_ranges(kernel, [own])
            whole = len(inside) == len(owner.leaves)
            first, extent = (index.as_node(0), owner.extent) if whole else _block(kernel, inside)
            leaf = Leaf(own, extent, next(numbers))
            self.own |= dict.fromkeys(inside, own)
            self.leaves.append(leaf)
            self.ranges.append(Range(own, extent, leaf.number, (own,), leaf.node))
            self.mapping[owner.node] = leaf.node
            if whole:
                continue
            place = replace(
                owner,
                name=f"{own}_place",
                number=next(numbers),
                leaves=(),
                value=index.add(first, leaf.node),
                is_place=True,
            )
            self.ranges.append(place)
            self.mapping[owner.node] = place.node
        for part in kernel.ranges.values():
            if not part.leaves and part.value.free & sum(n.free for n in self.mapping):
                value = index.substitute(part.value, self.mapping)
                moved = replace(part, name=f"{part.name}_{name}", number=next(numbers), value=value)
                self.ranges.append(moved)
                self.mapping[part.node] = moved.node

    def moved(self, kernel: Kernel, statement: Stmt) -> Stmt:
        """A statement over the new ranges."""

        def over(node: Node) -> Node:
            return index.substitute(node, self.mapping)

        order: list[str] = []
        for name in statement.order:
            own = self.own.get(name, name)
            if own not in order:
                order.append(own)
        return replace(
            statement,
            values=tuple(over(v) for v in statement.values),
            index=tuple(over(i) for i in statement.index),
            guard=None if statement.guard is None else over(statement.guard),
            order=tuple(order),
            reduced=frozenset(self.own.get(name, name) for name in statement.reduced),
        )


def _block(kernel: Kernel, inside: list[str]) -> tuple[Node, Extent]:
    """(the first point, the number of points) of the part of a range that lies in these leaves."""
    owner = kernel.range_of[inside[0]]
    size = prod(_known(kernel, leaf) for leaf in inside)
    nodes = (kernel.leaves[n].node for n in inside)
    first = index.substitute(owner.value, {n: 0 for n in nodes if n.op is ops.RANGE})
    if exact(kernel, owner):
        return first, size
    return first, index.dim(index.minimum(size, index.sub(owner.extent, first)))  # the last one


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
            if name in scratch:
                raise ScheduleError(f"{whole.name} has a subtotal already")
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
