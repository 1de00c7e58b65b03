"""Products of rows that need not be stored: the scores of an attention.

    total[i, n] = sum over k of  f(scores[i, :])[k] * values[k, n]

where `scores` is itself a contraction, and f a function of a row (exponentials, less the greatest
score of the row). In memory the scores are the largest array of an attention; those of a block of
rows stay in the second cache. So the sum, the scores and all reductions of a row between them are
one kernel. This module finds such sums in a graph; `kernel/blocks.py` schedules their kernels.

A softmax divides its row by a sum before the product. The division is moved behind it first:
sum over k of (e[k] * r) * v[k] = r * sum over k of e[k] * v[k]; it is less work, and then the row
itself is what its sum folds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from treadle.backend.base import Target
from treadle.ir import index, ops
from treadle.ir.node import Node
from treadle.schedule.cost import Sizes
from treadle.schedule.graph import TRANSPARENT, Graph
from treadle.schedule.movement import is_partition

LEAST = 16  # rows, and elements of a row: below, a block is not worth its loops
NEAR = 1 << 16  # scores that stay in a cache in any case
BLOCK_ROWS = 8  # rows of a block, at least
LONGEST = 64  # nodes between a sum and its scores


@dataclass(frozen=True)
class Chain:
    """total: the sum; members: all that is computed between it and the scores, with these; rows:
    the reductions of a row among the members (they fold over the range that the sum folds)."""

    total: Node
    members: frozenset[Node]
    rows: frozenset[Node]


@dataclass(frozen=True)
class _Operand:
    """A factor of the product that a sum folds: its number, and the nodes from it down to the
    weights, which are no movement."""

    number: int
    path: list[Node]

    @property
    def weights(self) -> Node:
        return self.path[-1]


def find_chains(graph: Graph, target: Target, sizes: Sizes) -> dict[Node, Chain]:
    """The chains of a graph, by each of their nodes."""
    found: dict[Node, Chain] = {}
    for total in graph.order if _has_blocks(target) else ():
        for operand in _operands(total):
            between = _between(graph, operand, target, sizes)
            ends = _sums(graph, total, operand.weights, sizes) if between else set()
            if between is None or not ends:
                continue
            members, rows = between
            inside = {*members, *ends, *operand.path, total.src[0]}
            if _stays_inside(graph, members, inside) and found.keys().isdisjoint(members):
                chain = Chain(total, frozenset(members | ends), frozenset(rows | ends))
                found |= dict.fromkeys((total, *chain.members), chain)
    return found


def divide_last(graph: Graph, target: Target, sizes: Sizes) -> Sequence[Node]:
    """The graph's roots with the factor of a row moved behind the sum, where that makes a chain;
    the same roots if it makes none."""
    chains: dict[Node, _Operand] = {}
    for total in graph.order if _has_blocks(target) else ():
        for operand in _operands(total):
            weights = operand.weights
            if weights.op is ops.MUL and any(map(_is_of_row, weights.src)):
                between = _between(graph, operand, target, sizes)
                inside = {*operand.path, total.src[0]}
                if between and between[1] and _stays_inside(graph, between[0], inside | between[0]):
                    chains[total] = operand
    if not chains:
        return graph.roots
    done: dict[Node, Node] = {}
    for node in graph.order:
        new = node.with_src(tuple([done[source] for source in node.src]))
        done[node] = _with_factor_last(new, chains[node]) if node in chains else new
    return [done[root] for root in graph.roots]


def _has_blocks(target: Target) -> bool:
    """Whether kernels for this target go through rows block by block."""
    return target.kind == "cpu" and target.vector_bytes > 0


def _is_contraction(node: Node) -> bool:
    """Whether a node may be one, as far as the graph alone shows."""
    return node.op is ops.REDUCE and node.arg[0] == "add" and node.src[0].op is ops.MUL


def _operands(total: Node) -> Iterator[_Operand]:
    """The factors of what a contraction sums along the rows of their weights, if it is one."""
    for number, operand in enumerate(total.src[0].src if _is_contraction(total) else ()):
        path = [operand]
        while path[-1].op.kind == "movement":
            path.append(path[-1].src[0])
        rows = path[-1].op.kind == "alu" and len(path[-1].shape) > 1
        if rows and total.arg[1] == (_last_axis(path),):
            yield _Operand(number, path)


def _last_axis(path: Sequence[Node]) -> int | None:
    """Where the last axis of the weights at the end of a path is at its beginning, if it is there
    as it was."""
    node = path[-1]
    axis = len(node.shape) - 1
    for moved in reversed(path[:-1]):
        if moved.op is ops.PERMUTE:
            axis = moved.arg.index(axis)
        elif moved.op is ops.RESHAPE:
            inner = index.product(node.shape[axis + 1 :])
            places = [
                a
                for a, size in enumerate(moved.shape)
                if size == node.shape[axis] and index.product(moved.shape[a + 1 :]) == inner
            ]
            if not places:
                return None
            axis = places[0]
        elif moved.op is not ops.EXPAND or moved.shape[axis] != node.shape[axis]:
            return None
        node = moved
    return axis


def _is_worth_it(weights: Node, target: Target, sizes: Sizes) -> bool:
    """Whether rows are many and long, and a block of them fits into the second cache."""
    count, length = weights.shape[-2:]
    if not (isinstance(count, int) and isinstance(length, int)):
        return False
    block = 2 * BLOCK_ROWS * length * weights.dtype.itemsize
    fits = block <= target.cache_bytes[1] // 2
    return min(count, length) >= LEAST and fits and sizes(weights.shape) > NEAR


def _folds_rows(node: Node, weights: Node, sizes: Sizes) -> bool:
    """Whether a reduction folds the rows of the weights, and nothing else."""
    if node.op is not ops.REDUCE or is_partition(node) or isinstance(node.dtype, tuple):
        return False
    shape = node.src[0].shape
    last = node.arg[1] == (len(shape) - 1,)
    return last and shape[-1] == weights.shape[-1] and sizes(shape) == sizes(weights.shape)


def _is_pointwise(node: Node) -> bool:
    return node.op.kind in ("alu", "movement") or node.op in TRANSPARENT


def _between(
    graph: Graph, operand: _Operand, target: Target, sizes: Sizes
) -> tuple[set[Node], set[Node]] | None:
    """(what is computed between an operand's weights and one contraction of their shape, with both;
    the reductions of rows among it). None, if anything else is there."""
    weights = operand.weights
    if weights not in graph.above_reduce or not _is_worth_it(weights, target, sizes):
        return None
    members: set[Node] = set()
    rows: set[Node] = set()
    scores: Node | None = None
    stack = [weights]
    while stack:
        node = stack.pop()
        if node in members:
            continue
        members.add(node)
        if len(members) > LONGEST:
            return None
        if node.op is ops.REDUCE and _folds_rows(node, weights, sizes):
            rows.add(node)
        elif node.op is ops.REDUCE:
            same = sizes(node.shape) == sizes(weights.shape)
            if scores is not None or not _is_contraction(node) or not same:
                return None
            scores = node
            continue
        elif not _is_pointwise(node):
            return None
        stack.extend(s for s in node.src if s in graph.above_reduce or s.op is ops.REDUCE)
    return (members, rows) if scores is not None else None


def _sums(graph: Graph, total: Node, weights: Node, sizes: Sizes) -> set[Node]:
    """Reductions of the weights' rows that only what reads the total reads: it is divided by
    them."""
    after: set[Node] = set()
    node = total
    while graph.uses[node] == 1 and node in graph.user and _is_pointwise(graph.user[node]):
        node = graph.user[node]
        after.add(node)
    rows = (user for user in graph.users(weights) if _folds_rows(user, weights, sizes))
    return {row for row in rows if _ends_in(graph, row, after)}


def _ends_in(graph: Graph, root: Node, after: set[Node]) -> bool:
    """Whether all that is computed of a value is computed for nodes of `after`."""
    seen = {root}
    stack = [root]
    while stack:
        node = stack.pop()
        users = graph.users(node)
        if node in graph.targets or not users or len(seen) > LONGEST:
            return False  # it is asked for itself
        for user in users:
            if user not in after and user not in seen:
                if not _is_pointwise(user):
                    return False
                seen.add(user)
                stack.append(user)
    return True


def _stays_inside(graph: Graph, members: set[Node], inside: set[Node]) -> bool:
    """Whether nothing but what is inside needs the members."""
    return all(
        node not in graph.targets and all(user in inside for user in graph.users(node))
        for node in members
    )


# ---- the factor of a row -------------------------------------------------------------------------
def _is_of_row(factor: Node) -> bool:
    """Whether a factor is the same for all elements of a row."""
    return factor.op is ops.EXPAND and factor.src[0].shape[-1] == 1 != factor.shape[-1]


def _with_factor_last(total: Node, operand: _Operand) -> Node:
    """The sum with a factor of a row behind it, for a sum whose product has such an operand."""
    product = total.src[0]
    path = [product.src[operand.number]]
    while len(path) < len(operand.path):
        path.append(path[-1].src[0])
    first, second = path.pop().src
    row, factor = (first, second) if _is_of_row(second) else (second, first)
    for movement in reversed(path):
        row = movement.with_src((row,))
        factor = movement.with_src((factor,))
    operands = [row if n == operand.number else other for n, other in enumerate(product.src)]
    summed = total.with_src((product.with_src(tuple(operands)),))
    axes = total.arg[1]
    parts = tuple([(0, 1 if axis in axes else size) for axis, size in enumerate(factor.shape)])
    once = Node(ops.SHRINK, factor.dtype, (factor,), parts)
    return ops.MUL(summed, Node(ops.RESHAPE, once.dtype, (once,), total.shape))
