"""Products of a few vectors by a large matrix, which memory bounds: the vectors are written out,
and the matrix is scheduled as any loop over memory is, read once, in one stream.
"""

from __future__ import annotations

from treadle.ir import ops
from treadle.kernel.actions import Prefetch, Reorder, Split, Tail, grid, unroll, vector
from treadle.kernel.analysis import points
from treadle.kernel.choice import Contraction
from treadle.kernel.contraction import too_large
from treadle.kernel.cooperate import Cooperate
from treadle.kernel.kernel import memory_name
from treadle.kernel.plan import Plan

TOGETHER = 2  # vectors of each of several rows at a time
AHEAD = 8  # steps before the reads of a row memory is asked for it
BLOCKS = 8  # times so many rows that are a task
FEW_ROWS = 4  # products for which the matrix is read as for one vector


def few_rows(plan: Plan, contraction: Contraction, lanes: dict[str, int]) -> tuple[str, ...]:
    """The rows of a product of a few vectors by a matrix too large to stay in the second cache, if
    `lanes` runs along what is contiguous in the matrix; () for other products. Tiles would read
    several short pieces of it at a time, which takes memory twice as long as one stream."""
    for side in (contraction, contraction.turned()):
        rows = [plan.kernel.leaves[name].extent for name in side.rows]
        known = all(isinstance(extent, int) for extent in rows) and lanes.keys().isdisjoint(
            side.rows
        )
        if not known or points(plan.kernel, side.rows) > FEW_ROWS or len(side.second) != 1:
            continue
        (matrix,) = side.second
        along = [plan.kernel.leaves[name].node for name in lanes]
        if too_large(plan, side.second) and any(matrix.stride(node) == 1 for node in along):
            return side.rows
    return ()


def rows_at_once(plan: Plan, lanes: dict[str, int]) -> bool:
    """Schedules the product of a large matrix, whose rows lie along the sum, by a vector: several
    rows at a time, where the target reads several streams faster than one. Whether it did."""
    streams, statement = plan.target.streams, plan.kernel.statements[0]
    *outer, row, name = statement.order if len(statement.order) > 1 else ("", "")
    if streams < 2 or not row or lanes.keys() != {name} or statement.reduced != {name}:
        return False
    if statement.monoid != "add" or statement.values[0].op is not ops.MUL:
        return False
    if any(s.order != (*outer, row) for s in plan.kernel.statements[1:]):
        return False
    leaves = plan.kernel.leaves
    rows, extent = leaves[row].extent, leaves[name].extent
    accesses = plan.facts[statement.name].accesses
    matrix = [a for a in accesses if a.stride(leaves[row].node) != 0]
    tile = lanes[name] * TOGETHER
    if not isinstance(rows, int) or not isinstance(extent, int) or plan.serial:
        return False
    if rows < streams * BLOCKS or extent < 2 * tile or len(matrix) != 1:
        return False
    if matrix[0].stride(leaves[name].node) != 1 or not too_large(plan, matrix):
        return False
    plan.do(Split(row, f"{row}g", ((f"{row}o", BLOCKS), (f"{row}u", streams))))
    plan.do(Split(name, f"{name}o", ((f"{name}u", TOGETHER), (f"{name}v", lanes[name]))))
    plan.do(unroll(f"{row}u", f"{name}u"))
    plan.do(Cooperate(f"{name}u"))
    plan.do(vector(f"{name}v"))
    if extent % tile:
        plan.do(Tail(f"{name}v", "mask"))
    plan.do(grid(*outer, f"{row}g"))
    plan.do(Reorder((f"{row}o", f"{name}o")))
    if "prefetch" in plan.target.intrinsics:
        buffer = memory_name(matrix[0].node.src[0])
        plan.do(Prefetch(buffer, statement.name, f"{name}o", AHEAD))
    return True
