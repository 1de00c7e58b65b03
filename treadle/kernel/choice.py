"""What a register tile is made from: a contraction, and a choice of how to compute it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from treadle.ir import index
from treadle.ir.node import Node
from treadle.kernel.analysis import Access
from treadle.kernel.kernel import Stmt, kept
from treadle.kernel.narrow import Grouped
from treadle.kernel.plan import Plan
from treadle.kernel.split_k import Cut


@dataclass(frozen=True)
class Contraction:
    """A sum of products. rows, columns: output leaves that only the first, only the second factor
    depends on; first, second: the loads of the factors; summed: the reduced leaves; grouped: what
    is inside an instruction, once that is decided."""

    statement: Stmt
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    summed: tuple[str, ...]
    first: tuple[Access, ...]
    second: tuple[Access, ...]
    grouped: Grouped | None = None

    @property
    def outputs(self) -> tuple[str, ...]:
        """The leaves of the result, in the order of the statement."""
        return kept(self.statement)

    def turned(self) -> Contraction:
        """The same with the factors in the other order."""
        return replace(
            self, rows=self.columns, columns=self.rows, first=self.second, second=self.first
        )


@dataclass(frozen=True)
class Tile:
    """`rows` numbers (or vectors) against `vectors` vectors of `lanes` each (1: vectors of the
    sum). cycles: of all the tiles of the kernel."""

    rows: int
    vectors: int
    lanes: int
    cycles: float


@dataclass(frozen=True)
class Choice:
    """A way to do it: the contraction with its vector factor second, the leaf in lanes, the leaf
    of the tile's rows (and of its columns, if the lanes run along the sum), the tile, whether the
    second factor is packed, how the sum is cut if it is, the whole cost in cycles, the load of the
    first factor that is packed, if one is, and whether the second never changes, so that its
    panels are kept."""

    contraction: Contraction
    lanes: str
    row: str
    column: str
    tile: Tile
    packed: bool
    cut: Cut | None
    cycles: float
    rows_packed: Access | None = None
    kept: bool = False


def guard_of(access: Access) -> Node:
    """The guard of a load (CONST true if it has none)."""
    load = access.node
    return load.src[-1] if len(load.src) > 1 + load.arg else index.TRUE


def stored_along(plan: Plan, name: str) -> bool:
    """Whether the results lie contiguously along a range."""
    node = plan.kernel.leaves[name].node
    stores = (a for facts in plan.facts.values() for a in facts.accesses if a.is_store)
    return all(a.stride(node) == 1 for a in stores)
