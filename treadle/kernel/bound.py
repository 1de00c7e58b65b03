"""Loops that stop where nothing more counts: a causal mask read as a limit.

What a reduction folds in under `where(k <= j, x, -inf)` is its identity for every k past j. In a
block of rows up to j the loop over k may end there, and so may the loops that compute only what it
would have read.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from treadle.ir import index, ops
from treadle.ir.dtype import index as INDEX
from treadle.ir.monoid import find
from treadle.ir.node import Node, toposort
from treadle.kernel.actions import legal
from treadle.kernel.build import substituted
from treadle.kernel.kernel import Kernel, Leaf, ScheduleError, Stmt, loads, replaced


@dataclass(frozen=True)
class Bound:
    """Ends the loop over a whole range, in every run of the leaf `at`, at the last point that
    counts, rounded up to `step` points. ScheduleError if points beyond may count: a reduction must
    fold in its identity there, as a select says; what is stored in scratch memory must be read by
    loops with this bound only (so the last reader is bounded first)."""

    leaf: str
    at: str
    step: int

    def __str__(self) -> str:
        return f"bound {self.leaf} at {self.at} in {self.step}"

    def __call__(self, kernel: Kernel) -> Kernel:
        leaf, owner = kernel.leaf(self.leaf), kernel.range_of[self.leaf]
        if owner.leaves != (leaf.name,) or leaf.kind != "loop" or not isinstance(leaf.extent, int):
            raise ScheduleError(f"{leaf.name} is not a whole range of a known size any more")
        if self.step < 1:
            raise ScheduleError("a loop ends after a multiple of at least 1 point")
        kernel.leaf(self.at)
        users = [s for s in kernel.statements if leaf.name in s.order]
        extents = {self._extent(kernel, leaf, statement) for statement in users}
        if len(extents) > 1:
            names = ", ".join(s.name for s in users)
            raise ScheduleError(f"{names} need different parts of {leaf.name}")
        changed = replace(leaf, extent=index.dim(extents.pop()))
        nodes = {leaf.node: changed.node}
        ranges = {
            name: replace(r, value=index.substitute(r.value, nodes))
            for name, r in kernel.ranges.items()
        }
        ranges[owner.name] = replace(ranges[owner.name], extent=changed.extent)
        statements = tuple(substituted(s, nodes) for s in kernel.statements)
        changed_kernel = replace(kernel, statements=statements, ranges=ranges)
        return legal(changed_kernel.with_leaves(changed))

    def _extent(self, kernel: Kernel, leaf: Leaf, statement: Stmt) -> Node:
        """How many points of the leaf count for a statement in a run of `at`."""
        if self.at not in statement.order[: statement.order.index(leaf.name)]:
            raise ScheduleError(f"{self.at} is no loop around {leaf.name} of {statement.name}")
        position = statement.order.index(self.at) + 1
        inside = sum(kernel.leaves[n].bit for n in statement.order[position:])
        if leaf.name in statement.reduced:
            for limit in _limits(kernel, leaf, statement):
                outer, inner = index.split(limit, inside)
                last = index.add(outer, index.bounds(inner)[1])
                blocks = index.floordiv(index.add(last, self.step), self.step)
                whole, rest = divmod(index.as_int(leaf.extent), self.step)
                if not rest:  # so that it is seen to be a multiple
                    return index.mul(index.minimum(blocks, whole), self.step)
                return index.minimum(index.mul(blocks, self.step), leaf.extent)
            raise ScheduleError(f"every point of {leaf.name} counts for {statement.name}")
        return _bound_of_readers(kernel, leaf, statement)


def _limits(kernel: Kernel, leaf: Leaf, statement: Stmt) -> Iterator[Node]:
    """Expressions over leaves such that for points of the leaf beyond, what is folded in is the
    identity."""
    values = [inlined(kernel, value) for value in statement.values]
    conditions = dict.fromkeys(n.src[0] for n in toposort(values) if n.op is ops.WHERE)
    for condition in conditions:
        limit = _last(kernel, leaf, condition)
        if limit is not None and all(
            _outside(value, condition) == _identity(statement, component)
            for component, value in enumerate(values)
        ):
            yield limit


def _identity(statement: Stmt, component: int) -> int | float | bool:
    dtype = statement.targets[component].dtype
    return find(statement.monoid or "").identity(component, dtype)


def inlined(kernel: Kernel, value: Node) -> Node:
    """A value with what it reads of copies in scratch memory replaced by what was copied, which may
    itself read copies."""
    copies = {s.targets[0].arg[0]: s for s in kernel.statements if _is_copy(s)}
    while True:
        mapping: dict[Node, Node] = {}
        for node in toposort(value):
            if node.op is ops.LOAD and node.src[0].arg[0] in copies:
                copy = copies[node.src[0].arg[0]]
                pairs = map(_place, copy.index, node.src[1 : 1 + node.arg])
                places = {own: read for own, read in pairs if own.op is ops.RANGE}
                mapping[node] = index.substitute(copy.values[0], places)
        if not mapping:
            return value
        value = replaced(Stmt("", (), (), (value,), None, ()), mapping).values[0]


def _is_copy(statement: Stmt) -> bool:
    """Whether a statement writes plain values to scratch memory, each to a place of its own."""
    plain = all(_place(i, i)[0].op in (ops.RANGE, ops.CONST) for i in statement.index)
    return not statement.is_store and statement.monoid is None and plain


def _place(own: Node, read: Node) -> tuple[Node, Node]:
    """The range along which a copy is written at `own`, perhaps some points away, and its value
    where the copy is read at `read`."""
    away = index.terms(own)[0]
    return index.sub(own, away), index.sub(read, away)


def _last(kernel: Kernel, leaf: Leaf, condition: Node) -> Node | None:
    """The last point of the leaf for which a comparison of indices may hold, over leaves."""
    if condition.op not in (ops.LE, ops.LT):
        return None
    sides = [s.src[0] if s.op is ops.CAST else s for s in condition.src]
    if any(s.dtype is not INDEX for s in sides):
        return None
    difference = kernel.over_leaves(index.sub(*sides))
    if index.coefficient(difference, leaf.node) != 1:
        return None
    last = index.sub(leaf.node, difference)
    if last.free & leaf.bit:
        return None  # it is in a quotient or a remainder too
    return index.sub(last, 1) if condition.op is ops.LT else last


def _outside(root: Node, condition: Node) -> int | float | bool | None:
    """What a value is where a condition is false, if that is known; of finite operands."""
    known: dict[Node, int | float | bool | None] = {}
    for node in toposort(root):
        src = [known[s] for s in node.src]
        result: int | float | bool | None = None
        if node.op is ops.CONST:
            result = node.value
        elif node.op is ops.WHERE and node.src[0] is condition:
            result = src[2]
        elif node.op is ops.CAST:
            result = src[0] if node.dtype.is_float else None
        elif node.op is ops.EXP or node.op is ops.EXP2:
            result = 0.0 if src[0] == -math.inf else None
        elif node.op is ops.MUL:
            result = 0.0 if 0.0 in src and -math.inf not in src else None
        elif node.op is ops.DIV:
            result = 0.0 if src[0] == 0.0 else None
        elif node.op is ops.SUB or node.op is ops.ADD:
            result = -math.inf if src[0] == -math.inf else None
        known[node] = result
    return known[root]


def _bound_of_readers(kernel: Kernel, leaf: Leaf, writer: Stmt) -> Node:
    """The extent of the loops that read what a statement writes along the leaf."""
    if writer.is_store:
        raise ScheduleError(f"{writer.name} stores every point of {leaf.name}")
    names = {target.arg[0] for target in writer.targets}
    axes = [d for d, i in enumerate(writer.index) if kernel.over_leaves(i) is leaf.node]
    if len(axes) != 1:
        raise ScheduleError(f"{writer.name} does not write along {leaf.name}")
    extents: set[Node] = set()
    for statement in kernel.statements:
        for load in loads(statement):
            if load.src[0].arg[0] not in names:
                continue
            place = kernel.over_leaves(load.src[1 + axes[0]])
            if place is not leaf.node:
                reader = kernel.by_number.get(place.arg[0]) if place.op is ops.RANGE else None
                extents.add(index.as_node(leaf.extent if reader is None else reader.extent))
    if len(extents) != 1 or index.as_node(leaf.extent) in extents:
        raise ScheduleError(f"what reads {writer.name} has no bound of its own: bound it first")
    return extents.pop()
