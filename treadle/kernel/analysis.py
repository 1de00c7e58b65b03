"""What heuristics ask of a kernel: how its accesses move with a range, and how much work it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from treadle.ir import index, ops
from treadle.ir.dtype import index as INDEX
from treadle.ir.node import Node, toposort
from treadle.kernel.kernel import Extent, Kernel, Stmt
from treadle.kernel.layout import buffer_offset

# what an operation costs beside an addition
WEIGHTS = {"exp": 8, "exp2": 8, "log": 10, "log2": 10, "tanh": 12, "sin": 12, "cos": 12, "erf": 14,
           "div": 4, "sqrt": 4, "pow": 24, "threefry": 60, "tan": 20, "atan": 16, "expm1": 12,
           "log1p": 14, "erfc": 20, "erfinv": 24, "lgamma": 50, "digamma": 40, "idiv": 12,
           "mod": 12, "normal_cdf": 10}  # fmt: skip

_ADDRESS = (ops.ISUM, ops.IPROD, ops.IFLOOR, ops.IMOD, ops.IMAX, ops.IMIN, ops.CHECK)


@dataclass(frozen=True)
class Access:
    """A load or store of a buffer of the call: its node (the target of a store) and the flat
    offset, over the nodes of leaves."""

    node: Node
    offset: Node
    is_store: bool

    @property
    def dtype_bytes(self) -> int:
        """Bytes of an element."""
        return int(self.node.dtype.itemsize)

    def stride(self, moving: Node) -> Extent | None:
        """By how many elements it moves with a range; None if not evenly."""
        if not self.offset.free & moving.free:
            return 0
        _, rest = index.split(self.offset, moving)
        step = index.coefficient(rest, moving)
        return step if rest is index.mul(moving, step) else None

    def affine_stride(self, moving: Node) -> Extent | None:
        """As `stride`, but what goes through loaded indices does not count (they are accesses of
        their own)."""
        total: Extent = 0
        for factor, atom in index.terms(self.offset)[1]:
            if not atom.free & moving.free or atom.op is ops.CHECK:
                continue
            if atom is moving:
                total = index.dim(index.add(total, factor))
            elif atom.op is ops.IPROD and moving in atom.src:
                return self.stride(moving)
            elif atom.op is not ops.IPROD or any(
                a.op is not ops.CHECK and a.free & moving.free for a in atom.src
            ):
                return None
        return total


class Facts:
    """Cached facts about one statement of a kernel: as it was when they were asked for."""

    def __init__(self, kernel: Kernel, statement: Stmt) -> None:
        self.kernel = kernel
        self.statement = statement
        self.nodes: Sequence[Node] = toposort(statement.roots)

    @cached_property
    def accesses(self) -> list[Access]:
        """Every access to a buffer of the call; the store last."""
        found = []
        for node in self.nodes:
            if node.op is ops.LOAD and isinstance(node.src[0].arg[0], int):
                offset = buffer_offset(node.src[0], node.src[1 : 1 + node.arg])
                found.append(Access(node, self.kernel.over_leaves(offset), False))
        if self.statement.is_store:
            target = self.statement.targets[0]
            offset = buffer_offset(target, self.statement.index)
            found.append(Access(target, self.kernel.over_leaves(offset), True))
        return found

    def within(self, root: Node) -> tuple[Access, ...]:
        """The loads of buffers below a node of the statement."""
        below = set(toposort(root))
        return tuple(a for a in self.accesses if not a.is_store and a.node in below)

    @cached_property
    def plain(self) -> int:
        """The leaves whose values are used other than in addresses (iota, masks, guards)."""
        found = 0
        for node in self.nodes:
            if node.op is not ops.LOAD and node.op not in _ADDRESS:
                for source in node.src:
                    if source.dtype is INDEX:
                        found |= self.kernel.over_leaves(source).free
        return found

    @cached_property
    def cost(self) -> int:
        """Operations for one point, in additions."""
        total = 1
        for node in self.nodes:
            if node.op is ops.LOAD:
                total += 1
            elif node.op.kind == "alu" and node.dtype is not INDEX:
                total += WEIGHTS.get(node.op.name, 1)
        return total


def upper(extent: Extent) -> int:
    """The greatest value of an extent."""
    return extent if isinstance(extent, int) else index.bounds(extent)[1]


def points(kernel: Kernel, names: Sequence[str]) -> int:
    """The greatest number of points of some leaves."""
    total = 1
    for name in names:
        total *= max(1, upper(kernel.leaves[name].extent))
    return total
