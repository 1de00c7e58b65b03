"""Contractions with few results and a long sum (split-K): the gradient of a filter over a batch.

Tile after tile over the whole sum would read both factors from memory for every tile. So the sum is
cut: tasks take pieces of its outermost range, each with partial results of its own, and go through
a piece in blocks whose factors the second cache holds, all tiles for each block. A last phase adds
the pieces up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from treadle.kernel.actions import Reorder, Split, Tail, grid, vector
from treadle.kernel.analysis import points
from treadle.kernel.layout import ROOT
from treadle.kernel.merge import merge
from treadle.kernel.plan import SERIAL_WORK, Plan
from treadle.kernel.retile import Detach

PIECES = 16  # tasks that a sum is cut in, at most: never a matter of the threads there are
FEW_STEPS = 128  # of a sum in a block, below which adding the blocks up costs too much


@dataclass(frozen=True)
class Cut:
    """How a sum is cut: the outermost leaf in so many pieces; the leaf of which a block has so many
    points, with the leaves between the two outside of it and `inner`, all that are inside, whole.
    blocks: how many there are; steps: of the sum in each."""

    first: str
    pieces: int
    between: tuple[str, ...]
    leaf: str
    points: int
    blocks: int
    steps: int


def find_cut(
    plan: Plan, outputs: Sequence[str], summed: Sequence[str], most: int, results: int
) -> Cut | None:
    """How to cut a sum over `summed` in blocks of at most so many steps; None if it is as short, or
    there are more than so many results to add up again and again."""
    sizes: dict[str, int] = {}
    for name in (*outputs, *summed):
        extent = plan.kernel.leaves[name].extent
        if not isinstance(extent, int) or plan.kernel.range_of[name].leaves != (name,):
            return None
        sizes[name] = extent
    if points(plan.kernel, outputs) > results:
        return None
    steps = 1
    position = len(summed) - 1
    while position >= 0 and steps * sizes[summed[position]] <= most:
        steps *= sizes[summed[position]]
        position -= 1
    if position < 0:
        return None
    leaf, between = summed[position], tuple(summed[1:position])
    block = _divisor(sizes[leaf], max(1, most // steps))
    first = summed[0]
    outside = sizes[first] // (block if first == leaf else 1)
    pieces = _divisor(outside, PIECES)
    steps *= block
    if pieces < 2 or steps < FEW_STEPS:
        return None
    blocks = points(plan.kernel, summed) // steps
    return Cut(first, pieces, between, leaf, block, blocks, steps)


def _divisor(size: int, most: int) -> int:
    """The greatest divisor of a size that is not above `most`."""
    return next(n for n in range(max(1, min(size, most)), 0, -1) if size % n == 0)


def cut_sum(plan: Plan, cut: Cut) -> tuple[str, tuple[str, ...], str]:
    """Splits the leaves of a sum. (the leaf of the pieces, those of the blocks, that of which a
    block has some points)."""
    first, leaf = cut.first, cut.leaf
    inside = ((f"{leaf}i", cut.points),)
    extent = plan.kernel.leaves[first].extent
    assert isinstance(extent, int)
    if first == leaf:
        count = extent // cut.points // cut.pieces
        plan.do(Split(first, f"{first}g", ((f"{first}b", count), *inside)))
        return f"{first}g", (f"{first}b",), f"{leaf}i"
    plan.do(Split(first, f"{first}g", ((f"{first}b", extent // cut.pieces),)))
    plan.do(Split(leaf, f"{leaf}b", inside))
    return f"{first}g", (f"{first}b", *cut.between, f"{leaf}b"), f"{leaf}i"


def store_whole(plan: Plan, statement: str, outputs: Sequence[str], lanes: str) -> None:
    """Stores all results by loops of their own, in the order in which they lie in memory. lanes:
    the range that the sum had in lanes: what is read along others is apart there."""
    plan.do(Detach(statement, ROOT, "t"))
    names = [f"t{name}" for name in outputs]
    plan.do(Reorder(tuple(names)))
    plan.note_facts()
    rows = names[: outputs.index(lanes) + 1] if lanes in outputs[:-1] else []
    rows += (merged := merge(plan, names[len(rows) :]))[:-1]
    along, last = merged[-1], plan.kernel.statements[-1]
    work = points(plan.kernel, last.order) * plan.facts[last.name].cost
    extent = plan.kernel.leaves[along].extent
    assert isinstance(extent, int)
    width = plan.target.lanes(last.values[0].dtype)
    while width > 1 and width // 2 >= extent:
        width //= 2
    outer = rows[0] if rows else f"{along}g"
    inside = () if rows else ((f"{along}m", -(-extent // width // PIECES)),)
    plan.do(Split(along, f"{along}g", (*inside, (f"{along}v", width))))
    if width > 1:
        plan.do(vector(f"{along}v"))
        plan.do(Tail(f"{along}v", "mask"))
    if work >= SERIAL_WORK:
        plan.do(grid(outer))
