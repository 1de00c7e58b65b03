"""Ranges that a kernel takes apart are taken apart for good, so that its indices become affine.

A reshape of unequal axes leaves r // n and r % n of a range r in the indices (the heads of
attention inside the rows of a projection). If n divides the size of r then r = n*outer + inner,
where r // n is `outer` and r % n is `inner`: a loop over r becomes two, which every access walks in
steps.
"""

from __future__ import annotations

from treadle.ir import index, ops
from treadle.ir.node import Node, toposort
from treadle.schedule.movement import Position

_PARTS = (ops.IFLOOR, ops.IMOD)


def takes_apart(position: Position) -> bool:
    """Whether an index divides something."""
    for i in position:
        if i.op in _PARTS:
            return True
        if i.op is ops.ISUM:
            for atom in i.src:
                if atom.op in _PARTS:
                    return True
    return False


def split_ranges(sink: Node, rank: int) -> Node:
    """The kernel with every such range split. The `rank` first ranges are those of its stores: they
    keep their order, and so do those of the reductions."""
    while True:
        order = toposort(sink)
        pieces = _pieces(order)
        if not pieces:
            return sink
        ranges = sorted({n for n in order if n.op is ops.RANGE}, key=lambda r: r.arg[0])
        new: dict[Node, tuple[Node, ...]] = {}
        number = 0
        stores = rank
        for r in ranges:
            number = max(number, r.arg[0] + stores - rank)
            size = r.arg[1]
            inner = pieces.get(r)
            sizes = (size,) if inner is None else (index.dim(index.floordiv(size, inner)), inner)
            new[r] = tuple([index.range_(number + k, part) for k, part in enumerate(sizes)])
            number += len(sizes)
            if r.arg[0] < rank:
                stores += len(sizes) - 1
        sink, rank = _replaced(order, new), stores


def _pieces(order: list[Node]) -> dict[Node, int]:
    """For each range that is divided by a divisor of its size, the least such divisor."""
    pieces: dict[Node, int] = {}
    for node in order:
        if node.op in _PARTS and node.src[0].op is ops.RANGE and node.src[1].op is ops.CONST:
            r, divisor = node.src[0], node.src[1].arg
            if index.mod(r.arg[1], divisor) is index.const(0):
                pieces[r] = min(divisor, pieces.get(r, divisor))
    return pieces


def _replaced(order: list[Node], ranges: dict[Node, tuple[Node, ...]]) -> Node:
    """The last node of the order, with each range replaced by its parts."""
    new: dict[Node, Node] = {}
    for node in order:
        if node.op is ops.RANGE:
            parts = ranges[node]
            value = parts[0]
            if len(parts) == 2:
                value = index.add(index.mul(value, parts[1].arg[1]), parts[1])
            new[node] = value
        elif node.op is ops.KREDUCE:
            count = node.arg[1]
            folded = [part for r in node.src[count:] for part in ranges[r] if part.op is ops.RANGE]
            values = [new[s] for s in node.src[:count]]
            new[node] = node.with_src((*values, *folded))
        else:
            new[node] = index.rebuild(node, tuple([new[s] for s in node.src]))
    return new[order[-1]]
