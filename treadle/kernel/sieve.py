"""Sums of which only every n-th term counts: the adjoint of a strided window.

    out[k] = sum over u of (c + k - u) % n == 0 ? value((c + k - u) / n, u) : 0

For k = n*ko + kr the terms that count are u = n*uo + (c + kr) % n, and (c + k - u) / n is ko - uo
and what depends on kr alone. So with the remainder in an outer loop the sum goes over uo, and its
places are affine again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from treadle.ir import index, ops
from treadle.ir.node import Node, toposort
from treadle.kernel.actions import exchange, legal, require_new_ranges
from treadle.kernel.build import substituted
from treadle.kernel.kernel import Kernel, Leaf, Range, ScheduleError, Stmt


@dataclass(frozen=True)
class Sieve:
    """Sums over the points of a range alone that count, where a guard demands that the place minus
    the point is a multiple. Splits the whole range `leaf` of the results by the multiple, in
    leaf + "q" and leaf + "r"; the sum over the whole range `summed` becomes one over summed + "q",
    whose length depends on the remainder: it has to stand inside of it."""

    summed: str
    leaf: str

    def __str__(self) -> str:
        return f"sieve {self.summed} by {self.leaf}"

    def __call__(self, kernel: Kernel) -> Kernel:
        for name in (self.summed, self.leaf):
            owner = kernel.range_of[kernel.leaf(name).name]
            if owner.leaves != (name,) or kernel.leaves[name].kind != "loop":
                raise ScheduleError(f"{name} is not a whole range any more")
        users = [s for s in kernel.statements if self.summed in s.order]
        if len(users) != 1 or self.summed not in users[0].reduced:
            raise ScheduleError(f"{self.summed} is not summed by one statement alone")
        (statement,) = users
        summed, place = kernel.leaves[self.summed], kernel.leaves[self.leaf]
        condition, period, constant = _condition(statement, summed, place)
        if not isinstance(place.extent, int) or place.extent % period:
            raise ScheduleError(f"{period} does not divide the length of {self.leaf}")
        numbers = kernel.fresh_numbers()
        outer = Leaf(f"{place.name}q", place.extent // period, next(numbers))
        rest = Leaf(f"{place.name}r", period, next(numbers))
        first = index.mod(index.add(rest.node, constant), period)
        count = index.floordiv(index.add(index.sub(summed.extent, first), period - 1), period)
        terms = Leaf(f"{summed.name}q", index.dim(count), next(numbers))
        require_new_ranges(kernel, [outer.name, rest.name, terms.name])
        known = substituted(statement, _known(statement, condition))
        kernel = exchange(kernel.with_statement(known), [place], [outer, rest])
        kernel = exchange(kernel, [summed], [terms])
        wholes = {
            place: index.add(index.mul(outer.node, period), rest.node),
            summed: index.add(index.mul(terms.node, period), first),
        }
        ranges = dict(kernel.ranges)
        for leaf, value in wholes.items():
            owner = kernel.range_of[leaf.name]
            ranges[owner.name] = replace(owner, leaves=(), value=value)
        for leaf in (outer, rest, terms):
            ranges[leaf.name] = Range(leaf.name, leaf.extent, leaf.number, (leaf.name,), leaf.node)
        return legal(replace(kernel, ranges=ranges).arranged())


def sieves(kernel: Kernel) -> list[Sieve]:
    """Every sum of a kernel of which a guard lets only every n-th term count."""
    found = []
    for statement in kernel.statements:
        for name in statement.order:
            if name not in statement.reduced:
                continue
            for other in statement.order:
                try:
                    if other not in statement.reduced:
                        _condition(statement, kernel.leaves[name], kernel.leaves[other])
                        found.append(Sieve(name, other))
                except ScheduleError:
                    continue
    return found


def in_steps(kernel: Kernel, name: str) -> bool:
    """Whether a leaf moves the places of a range by more than one, as quotients do."""
    node = kernel.leaves[name].node
    parts = (owner.value for owner in kernel.ranges.values() if not owner.leaves)
    return any(index.coefficient(value, node) not in (0, 1) for value in parts)


def is_limit(kernel: Kernel, name: str) -> bool:
    """Whether the length of a loop depends on a leaf, as on remainders."""
    bit = kernel.leaves[name].bit
    extents = (leaf.extent for leaf in kernel.leaves.values())
    return any(isinstance(extent, Node) and extent.free & bit for extent in extents)


def _condition(statement: Stmt, summed: Leaf, place: Leaf) -> tuple[Node, int, int]:
    """(the condition that place + constant - summed is a multiple, of what, the constant)."""
    for node in _guards(statement):
        if (
            node.op is not ops.EQ
            or node.src[0].op is not ops.IMOD
            or node.src[1].op is not ops.CONST
        ):
            continue
        dividend, divisor = node.src[0].src
        constant, parts = index.terms(dividend)
        factors = {atom: factor for factor, atom in parts}
        known = divisor.op is ops.CONST and node.src[1].arg == 0
        if known and factors == {place.node: 1, summed.node: -1}:
            return node, divisor.arg, constant
    raise ScheduleError(f"no guard of {statement.name} chooses from {summed.name} by {place.name}")


def _guards(statement: Stmt) -> list[Node]:
    """The conditions that every product of a sum demands: those of a factor that is a load."""
    value = statement.values[0]
    if statement.monoid != "add" or value.op is not ops.MUL:
        return []
    found: list[Node] = []
    stack = [s.src[-1] for s in value.src if s.op is ops.LOAD and len(s.src) > 1 + s.arg]
    while stack:
        part = stack.pop()
        if part.op is ops.AND:
            stack.extend(part.src)
        else:
            found.append(part)
    return found


def _known(statement: Stmt, condition: Node) -> dict[Node, Node]:
    """What conditions are where this one holds: it is true, and its dividend is negative where the
    quotient is."""
    dividend, divisor = condition.src[0].src
    quotient = index.floordiv(dividend, divisor)
    mapping = {condition: index.TRUE}
    negative = index.sub(-1, dividend)
    for node in toposort(statement.values):
        over_indices = node.op is ops.LT and node.src[0].dtype is dividend.dtype
        if over_indices and index.sub(*node.src) is negative:
            mapping[node] = index.le(0, quotient)
    return mapping
