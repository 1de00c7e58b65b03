"""Products of a few vectors by a large matrix, which memory bounds: the vectors are written out,
and the matrix is scheduled as any loop over memory is, read once, in one stream.
"""

from __future__ import annotations

from treadle.kernel.analysis import points
from treadle.kernel.contraction import too_large
from treadle.kernel.plan import Plan
from treadle.kernel.tiles import Contraction

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
