"""Tiles of matrix instructions as program nodes: vectors of all their elements, row after row.

A tile's leaves are neither loops nor lanes. What a statement reads or writes under them is a matrix
in memory: its offset must be affine in both, with the elements of a row side by side.
"""

from __future__ import annotations

from treadle.ir import index, ops
from treadle.ir.dots import GROUP
from treadle.ir.dtype import DType, void
from treadle.ir.node import Node
from treadle.kernel.emit import Emitter, elements
from treadle.kernel.kernel import Extent, ScheduleError, Stmt, memory_name
from treadle.kernel.mma import matrix_for


class TileEmitter(Emitter):
    """Emits reads, products and writes of tiles."""

    def corner(self, offset: Node, rows: Node, columns: Node, each: int = 1) -> tuple[Node, Extent]:
        """(offset of a tile's first element, by how much its rows are apart). each: elements that a
        lane of it holds."""
        first, moving = index.split(offset, rows.free | columns.free)
        stride = index.coefficient(moving, rows)
        if moving is not index.add(index.mul(rows, stride), index.mul(columns, each)):
            raise ScheduleError(
                f"what is read or written at {index.spell(offset)} is no tile with the elements of "
                "its rows side by side"
            )
        self.prepare([first])
        return first, stride

    def tile_place(self, offset: Node) -> tuple[Node, int]:
        """(program offset, lanes) of the sums of a tile, which lie together."""
        m, n = self.tile[:2]
        first, stride = self.corner(offset, m.node, n.node)
        if stride != n.extent:
            raise ScheduleError(f"the sums of {m.name} and {n.name} do not lie in tiles")
        return self.value(first), index.as_int(m.extent) * index.as_int(n.extent)

    def copy_tile(self, buffer: Node, offset: Node, value: Node) -> None:
        """A tile of sums to memory, where its rows may be apart."""
        m, n = (leaf.node for leaf in self.tile)
        tile = self._read_tile(value, m, n, value.dtype)
        first, stride = self.corner(offset, m, n)
        src = (self.buffer(buffer), self.value(first), self._distance(stride), tile)
        self.append(Node(ops.INTRINSIC, void, src, ("tile_write", *_shape(m, n))))

    def products(self, statement: Stmt, value: Node, sums: Node) -> Node:
        """A tile of sums after the products of two tiles of factors."""
        m, n, k = self.tile
        matrix = matrix_for(self.kernel, statement, m.bit)
        assert matrix is not None
        numbers = self.kernel.fresh_numbers()
        group = index.range_(next(numbers), matrix.k // matrix.size)
        member = index.range_(next(numbers), matrix.size)
        along = index.add(index.mul(group, matrix.size), member)
        reads = [factor.src[0] if factor.op is ops.CAST else factor for factor in value.src]
        first, second = reads if reads[0].free & m.bit else reversed(reads)
        tiles = []
        for read, rows, columns in ((first, m.node, group), (second, group, n.node)):
            whole = index.substitute(read, {k.node: along})
            one = index.substitute(whole, {member: 0})
            if index.split(whole.src[1], member)[1] is not member:
                name = memory_name(read.src[0])
                raise ScheduleError(
                    f"{name} lies in no groups of {matrix.size} along {k.name}: stage it"
                )
            tiles.append(self._read_tile(one, rows, columns, GROUP))
        return self.append(Node(ops.INTRINSIC, sums.dtype, (sums, *tiles), matrix.arg))

    def _read_tile(self, read: Node, rows: Node, columns: Node, dtype: DType) -> Node:
        if len(read.src) > 2:
            raise ScheduleError(f"{memory_name(read.src[0])} is read under a guard: stage it")
        shape = _shape(rows, columns)
        dtype = dtype.vec(shape[0] * shape[1])
        each = elements(Node(ops.READ, dtype.scalar, read.src))
        first, stride = self.corner(read.src[1], rows, columns, each)
        offset, buffer = self.value(first), self.buffer(read.src[0])
        name = read.src[0].arg[0]
        needs = self.info[first][0]
        if isinstance(name, str):
            needs |= self.layouts[name].mask
            held = self.scopes[-1].registers.get((buffer, offset))
            if held is not None and held.dtype is dtype:
                return held
            self.flush()
        if each == 1 and stride == shape[1]:
            return self.place(Node(ops.READ, dtype, (buffer, offset)), self.depth(needs))
        src = (buffer, offset, self._distance(stride))
        return self.place(Node(ops.INTRINSIC, dtype, src, ("tile_read", *shape)), self.depth(needs))

    def _distance(self, stride: Extent) -> Node:
        node = index.as_node(stride)
        self.prepare([node])
        return self.value(node)


def _shape(rows: Node, columns: Node) -> tuple[int, int]:
    """The numbers of two ranges' points."""
    return index.as_int(rows.arg[1]), index.as_int(columns.arg[1])
