"""What a kernel moves and computes, counted from its node: what its time is compared with."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import NamedTuple

from treadle.ir import index, ops
from treadle.ir.node import Node, toposort
from treadle.ir.ops import numel


class Estimate(NamedTuple):
    """loads, stores: elements read and written, each element of a buffer counted once. bytes: of
    both. operations: scalar operations (an fma or a transcendental counts once)."""

    loads: int
    stores: int
    bytes: int
    operations: int


def estimate(kernel: Node, variables: dict[str, int]) -> Estimate:
    """The counts of one launch of a kernel under these values of its variables."""
    sizes: dict[int, int] = {}
    nodes = toposort(kernel)
    for node in nodes:
        if node.op is ops.RANGE:
            number, size = node.arg
            sizes[number] = index.evaluate(size, variables)
    loads = stores = moved = operations = 0
    read: dict[Node, int] = {}
    for node in nodes:
        if node.op is ops.LOAD:
            array = node.src[0]
            count = min(_points(_mask(node.src[1:]), sizes), _elements(array, variables))
            read[array] = max(read.get(array, 0), count)
        elif node.op is ops.STORE:
            count = _points(_mask(node.src[2:]) | node.src[1].free, sizes)
            stores += count
            moved += count * node.src[0].dtype.itemsize
        elif node.op is ops.KREDUCE:
            inside = _mask(node.src)
            operations += _points(inside, sizes) * node.arg[1]
        elif node.op.kind == "alu" and node.op not in (ops.CAST, ops.BITCAST):
            operations += _points(node.free, sizes)
    for array, count in read.items():
        loads += count
        moved += count * array.dtype.itemsize
    return Estimate(loads, stores, moved, operations)


def total_of(parts: Iterable[Estimate]) -> Estimate:
    """The sums of several counts."""
    listed = list(parts)
    return Estimate(
        sum(p.loads for p in listed),
        sum(p.stores for p in listed),
        sum(p.bytes for p in listed),
        sum(p.operations for p in listed),
    )


def _mask(nodes: tuple[Node, ...]) -> int:
    """The ranges that one of the nodes depends on, as bits."""
    free = 0
    for node in nodes:
        free |= node.free
    return free


def _points(mask: int, sizes: dict[int, int]) -> int:
    """How many values these ranges take together."""
    return prod(size for number, size in sizes.items() if mask >> number & 1)


def _elements(array: Node, variables: dict[str, int]) -> int:
    """How many elements a buffer has; at most so many where a variable has no value."""
    shape = array.arg[1]
    try:
        return prod(index.evaluate(size, variables) for size in shape)
    except ValueError:
        return numel(shape)
