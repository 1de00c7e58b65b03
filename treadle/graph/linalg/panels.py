"""Matrices in panels: what a factorization by columns does to a narrow strip of a matrix stays in
the fastest memory, and what follows for all the rest is a product of matrices.

A loop over panels has one body, so every trip works on whole matrices: what belongs to the panel is
gathered, and what changes is chosen by numbers of blocks. Source: Golub and Van Loan, "Matrix
Computations", 3.2.11 and 5.2.3.
"""

from __future__ import annotations

from treadle.graph.build import expand, gather, iota, pad, reshape, where
from treadle.graph.elementwise import add, eq, ge, logical_and, mul
from treadle.graph.movement import movedim
from treadle.graph.shapes import Dim
from treadle.ir.dtype import int64
from treadle.ir.node import Node

PANEL = 32  # columns; a strip of 512 float32 rows is 64 KiB
WHOLE = 96  # up to here one panel holds the matrix: products of matrices would gain nothing


def panels(size: Dim) -> int:
    """How many panels cover so many columns; 1 where one does, or where the size is a Variable."""
    if not isinstance(size, int) or size <= WHOLE:
        return 1
    return -(-size // PANEL)


def stretched(x: Node, rows: int, columns: int) -> Node:
    """Matrices with zeros below and to the right."""
    down, along = x.shape[-2:]
    assert isinstance(down, int) and isinstance(along, int)
    none = [(0, 0)] * (len(x.shape) - 2)
    return pad(x, [*none, (0, rows - down), (0, columns - along)])


def with_ones(x: Node, width: int) -> Node:
    """Square matrices stretched to a width, with ones on the new diagonal."""
    number = iota(width, int64)
    down = reshape(number, (width, 1))
    added = logical_and(ge(number, x.shape[-1]), eq(down, number))
    return where(added, 1, stretched(x, width, width))


def cut(x: Node, axis: int) -> Node:
    """The blocks of PANEL rows (axis -2) or columns (axis -1), stacked along a new first axis."""
    axis %= len(x.shape)
    size = x.shape[axis]
    assert isinstance(size, int)
    shape = (*x.shape[:axis], size // PANEL, PANEL, *x.shape[axis + 1 :])
    return movedim(reshape(x, shape), axis, 0)


def numbers(block: Node) -> Node:
    """The numbers of the rows (or columns) of a block."""
    return add(mul(block, PANEL), iota(PANEL, int64))


def block_of(x: Node, block: Node, axis: int) -> Node:
    """The rows (axis -2) or columns (axis -1) of one block, whose number the device knows."""
    shape = [1] * len(x.shape)
    shape[axis] = PANEL
    wanted = (*x.shape[:-2], PANEL, x.shape[-1]) if axis == -2 else (*x.shape[:-1], PANEL)
    return gather(x, expand(reshape(numbers(block), tuple(shape)), wanted), axis)


def repeated(x: Node, axis: int, width: int) -> Node:
    """A block of rows (axis -2) or columns (axis -1) in the place of every one."""
    axis %= len(x.shape)
    shape = (*x.shape[:axis], 1, *x.shape[axis:])
    copies = (*x.shape[:axis], width // PANEL, *x.shape[axis:])
    return reshape(
        expand(reshape(x, shape), copies), (*x.shape[:axis], width, *x.shape[axis + 1 :])
    )


def column_of(number: Node) -> Node:
    """(n,) -> (n, 1)."""
    return reshape(number, (*number.shape, 1))
