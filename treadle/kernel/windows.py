"""Reductions over small windows: depthwise convolutions, pools, what blurs an image.

Each result reads a few elements around a place of its own, and its neighbours read nearly the same
ones. So the steps of the window are written out, for several rows of results at once, with lanes
along the rows; and what is read under a guard (a border of zeros) is copied to a patch first, once
for each image, so that nothing asks for the border again.
"""

from __future__ import annotations

from dataclasses import dataclass

from treadle.ir.node import Node
from treadle.kernel.actions import Reorder, Split, grid, unroll, vector
from treadle.kernel.analysis import Access, points, upper
from treadle.kernel.kernel import Stmt, kept
from treadle.kernel.plan import SERIAL_WORK, Plan
from treadle.kernel.stage import Stage, stage_name

MOST_STEPS = 64  # of a window
WRITTEN_OUT = 40  # steps of the rows that are computed at once, about
MOST_STRIDE = 4  # elements from one lane to the next
TASKS_PER_THREAD = 4


@dataclass(frozen=True)
class Windows:
    """statement: the reduction. lanes: the leaf of the results along which windows move with a
    small stride. row: the innermost other leaf by which windows overlap, if there is one. images:
    the other leaves of the results. reads: the loads that move with the lanes and in the window."""

    statement: Stmt
    lanes: str
    row: str | None
    images: tuple[str, ...]
    reads: tuple[Access, ...]


def find(plan: Plan) -> Windows | None:
    """The windows that a kernel reduces over, if that is what it does."""
    if plan.serial or not plan.target.vector_bytes:
        return None
    statement, *others = plan.kernel.statements
    results = kept(statement)
    if not results or not _is_small(plan, statement) or statement.order[: len(results)] != results:
        return None
    if any(s.reduced or s.order != results for s in others):
        return None
    lanes = results[-1]
    if not all(_is_known(plan, name) for name in results[-2:]):
        return None
    node = plan.kernel.leaves[lanes].node
    accesses = [access for facts in plan.facts.values() for access in facts.accesses]
    if any(a.affine_stride(node) not in range(2 if a.is_store else MOST_STRIDE + 1)
           for a in accesses):  # fmt: skip
        return None
    inside = sum(plan.kernel.leaves[name].bit for name in statement.reduced)
    reads = tuple(
        a for a in plan.facts[statement.name].accesses if _moves(a, node.free) and _moves(a, inside)
    )
    if not reads or any(_moves(a, inside) for a in accesses if a.is_store):
        return None
    row = results[-2] if len(results) > 1 else None
    if row is not None and not _moves(reads[0], plan.kernel.leaves[row].bit):
        row = None
    return Windows(statement, lanes, row, results[: -1 if row is None else -2], reads)


def _is_small(plan: Plan, statement: Stmt) -> bool:
    """Whether a statement reduces one value over a window of a few steps."""
    steps = points(plan.kernel, list(statement.reduced))
    known = all(_is_known(plan, name) for name in statement.reduced)
    return known and 1 < steps <= MOST_STEPS and len(statement.values) == 1


def _is_known(plan: Plan, name: str) -> bool:
    """Whether a leaf has a number of points, not none."""
    extent = plan.kernel.leaves[name].extent
    return isinstance(extent, int) and extent > 0


def _moves(access: Access, bits: int) -> bool:
    return bool(access.offset.free & bits)


def schedule(plan: Plan, found: Windows) -> None:
    """Tiles of a few rows by a vector, the window written out."""
    lanes, row = found.lanes, found.row
    size = upper(plan.kernel.leaves[lanes].extent)
    width = _width(plan.target.lanes(found.statement.values[0].dtype), size)
    written = [name for name in found.statement.order if name in found.statement.reduced]
    guarded = [a.node for a in found.reads if len(a.node.src) > 1 + a.node.arg]
    parallel = plan.work() >= SERIAL_WORK
    images = found.images
    blocks: tuple[str, ...] = ()
    if row is None:
        blocks = _split(plan, lanes, width, "v", images if parallel else None)
    else:
        plan.do(Split(lanes, f"{lanes}o", ((f"{lanes}v", width),)))
        rows = _rows(upper(plan.kernel.leaves[row].extent), points(plan.kernel, written))
        blocks = _split(plan, row, rows, "u", images if parallel else None)
        written.append(f"{row}u")
    plan.do(unroll(*written))
    plan.do(vector(f"{lanes}v"))
    tasks = (*images, *blocks) if parallel else ()
    loops = (() if parallel else images) + (() if row is None else (f"{row}o",))
    if tasks:
        plan.do(grid(*tasks))
    plan.do(Reorder((*loops, f"{lanes}o")))
    outer = (*tasks[-1:], *loops)
    for number, load in enumerate(guarded):
        _stage(plan, load, f"patch{number or ''}", outer)


def _rows(size: int, steps: int) -> int:
    """Rows at once: a number that divides."""
    most = max(1, WRITTEN_OUT // steps)
    return max(n for n in range(1, min(size, most) + 1) if size % n == 0)


def _split(
    plan: Plan, name: str, tile: int, kind: str, images: tuple[str, ...] | None
) -> tuple[str, ...]:
    """Cuts a range in tiles, and the tiles in blocks where there are too few tasks (images: what
    makes tasks already; None: there are none). Returns the leaf of the blocks."""
    tiles = -(-upper(plan.kernel.leaves[name].extent) // tile)
    wanted = TASKS_PER_THREAD * plan.target.threads
    blocks = 1 if images is None else min(tiles, -(-wanted // points(plan.kernel, images)))
    if blocks == 1:
        plan.do(Split(name, f"{name}o", ((f"{name}{kind}", tile),)))
        return ()
    parts = ((f"{name}o", -(-tiles // blocks)), (f"{name}{kind}", tile))
    plan.do(Split(name, f"{name}g", parts))
    return (f"{name}g",)


def _width(most: int, size: int) -> int:
    """Lanes: all of a vector, or half of them where less goes past the end of a row."""
    half = most // 2
    return half if half > 1 and -(-size // half) * half < -(-size // most) * most else most


def _stage(plan: Plan, load: Node, name: str, loops: tuple[str, ...]) -> None:
    """Copies what a load reads, in the outermost of some loops where it fits."""
    buffer = stage_name(plan.kernel, load)
    stages = (Stage(buffer, leaf, name) for leaf in loops)
    stage = next((stage for stage in stages if plan.fits(stage)), None)
    if stage is None:
        return  # the guard says more than where the buffer ends, or there is no loop
    plan.do(stage)
    lanes = plan.target.lanes(load.dtype)
    copied = plan.kernel.statement(f"copy_{name}").order[-1]
    extent = plan.kernel.leaves[copied].extent
    if copied.startswith(name) and isinstance(extent, int) and extent > lanes // 2:
        plan.do(Split(copied, f"{copied}o", ((f"{copied}v", _width(lanes, extent)),)))
        plan.do(vector(f"{copied}v"))
