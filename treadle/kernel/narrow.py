"""Factors of a contraction that are narrower than what they are summed in.

Where the target has an instruction for products of such numbers, a few neighbours along the sum are
put inside it (`Inside`), and panels lie in groups. Where it has none, they are converted as vectors
while they are staged, and not as single numbers in the tile.
"""

from __future__ import annotations

from dataclasses import dataclass

from treadle.ir import ops
from treadle.ir.dots import GROUP
from treadle.ir.dtype import BY_NAME
from treadle.ir.node import Node
from treadle.kernel.actions import Split, vector
from treadle.kernel.analysis import Access
from treadle.kernel.dot import Inside, dot_for
from treadle.kernel.kernel import Stmt
from treadle.kernel.plan import Plan
from treadle.kernel.stage import Stage, stage_name


@dataclass(frozen=True)
class Grouped:
    """Which products of a contraction are inside one instruction: those of so many neighbours along
    a leaf of the sum."""

    leaf: str
    size: int


def grouped(plan: Plan, statement: Stmt, leaf: str) -> Grouped | None:
    """The products along a leaf that one instruction of the target takes, if it has one for
    them."""
    dot = dot_for(plan.kernel, statement)
    extent = plan.kernel.leaves[leaf].extent
    if dot is None or not isinstance(extent, int) or extent < 2 * dot.size:
        return None
    return Grouped(leaf, dot.size)


def split_group(plan: Plan, statement: str, group: Grouped) -> str:
    """Puts the products inside the instruction; the leaf of the steps that remain."""
    outer, inside = f"{group.leaf}q", f"{group.leaf}p"
    plan.do(Split(group.leaf, outer, ((inside, group.size),)))
    plan.do(Inside(statement, inside))
    return outer


def panel_group(plan: Plan, load: Node, group: Grouped | None) -> tuple[int, int] | None:
    """How a panel of a factor lies in groups: (axis, size); None if the factor is narrower than the
    instruction takes it, or there is none."""
    if group is None or load.dtype.itemsize * group.size != GROUP.itemsize:
        return None
    return axis_before(plan, load, group.leaf), group.size


def axis_before(plan: Plan, load: Node, name: str) -> int:
    """The axis of a load that runs along a range which has been split."""
    node = plan.kernel.ranges[name].node
    places = load.src[1 : 1 + load.arg]
    return next(a for a, p in enumerate(places) if plan.kernel.over_ranges(p).free & node.free)


def is_narrow(access: Access) -> bool:
    """Whether a factor is stored in fewer bits than it is computed in."""
    dtype = access.node.dtype
    return dtype.accumulator is not dtype


def cast_of(plan: Plan, name: str, load: Node) -> str:
    """The dtype to which a load is converted before it is multiplied, if it is that at once and no
    instruction takes it as it is; else ""."""
    statement = plan.kernel.statement(name)
    factors = statement.values[0].src
    converted = any(f.op is ops.CAST and f.src[0] is load for f in factors)
    inside = any(plan.kernel.leaves[leaf].kind == "mma" for leaf in statement.order)
    return statement.values[0].dtype.name if converted and not inside else ""


def convert_rows(plan: Plan, statement: str, access: Access, row: str, summed: str) -> None:
    """Converts the rows of a tile before its sum, as vectors along the sum: in the tile they are
    single numbers."""
    cast = cast_of(plan, statement, access.node)
    if not cast or not is_narrow(access) or access.stride(plan.kernel.ranges[summed].node) != 1:
        return
    buffer = stage_name(plan.kernel, access.node)
    rows = Stage(buffer, f"{row}o", "rows", cast=cast)
    if not plan.fits(rows):
        return
    plan.do(rows)
    own = f"rows{axis_before(plan, access.node, summed)}"
    plan.do(Split(own, f"{own}o", ((f"{own}v", plan.target.lanes(BY_NAME[cast])),)))
    plan.do(vector(f"{own}v"))
