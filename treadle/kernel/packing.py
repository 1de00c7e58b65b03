"""Copies of a tile's factors where it reads them best: panels of vectors, rows of the other factor,
boxes with their border of zeros.

A copy belongs to a task or to the whole kernel; then it is a phase of its own, with tasks of its
own.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd

from treadle.ir import index
from treadle.ir.node import Node
from treadle.kernel.actions import Reorder, Split, grid, unroll, vector
from treadle.kernel.analysis import points, upper
from treadle.kernel.choice import Choice, guard_of
from treadle.kernel.layout import layouts
from treadle.kernel.narrow import Grouped, axis_before, cast_of, panel_group, split_group
from treadle.kernel.plan import FEW_TASKS, SERIAL_WORK, TASK_MEMORY, Plan
from treadle.kernel.stage import Stage, stage_name
from treadle.kernel.transpose import Transpose

SQUARE = 4  # rows of a square that is turned, at least
ROWS_TOGETHER = 32  # steps of the sum of which rows are packed at a time


def packed_load(plan: Plan, choice: Choice) -> Node:
    """The load of the second factor that moves with the lanes."""
    node = plan.kernel.ranges[choice.lanes].node
    loads = (a.node for a in choice.contraction.second)
    return next(load for load in loads if plan.kernel.over_ranges(load).free & node.free)


def pack(
    plan: Plan, choice: Choice, tasks: Sequence[str], block: Sequence[str], alone: bool
) -> None:
    """Stages the vector factor in panels: in every task its own, or once for the whole kernel if
    several tasks read the same or a panel would be too large for a task's memory."""
    lanes, width = choice.lanes, choice.tile.lanes
    load = packed_load(plan, choice)
    axis = axis_before(plan, load, lanes)
    layout = () if axis == load.arg - 1 else (*(a for a in range(load.arg) if a != axis), axis)
    group = panel_group(plan, load, choice.contraction.grouped)
    if group is not None:
        layout = (*(a for a in range(load.arg) if a != axis), axis)
    buffer = stage_name(plan.kernel, load)
    at = block[0] if block else f"{lanes}o"
    cast = cast_of(plan, choice.contraction.statement.name, load)
    at_task = Stage(buffer, at, "panel", layout=layout, group=group, cast=cast)
    tile = choice.tile.vectors * width
    at_root = Stage(buffer, "root", "panel", "root", layout, block=tile, group=group, cast=cast)
    shared = not (alone and plan.fits(at_task))

    def stage() -> None:
        plan.do(at_root if shared else at_task)
        if group is not None:
            split_group(plan, "copy_panel", Grouped(f"panel{group[0]}", group[1]))

    if not plan.attempt(stage):
        return  # it is read where no loop goes: gathered, then
    own, last = f"panel{axis}", f"panel{load.arg - 1}"
    if group is not None or own == last or not _pack_squares(plan, own, last, width):
        plan.do(Split(own, f"{own}o", ((f"{own}v", width),)))
        plan.do(vector(f"{own}v"))
    if shared and tasks:
        _share_packing(plan, f"{own}o" if layout else "")


def _pack_squares(plan: Plan, write: str, read: str, width: int) -> bool:
    """Packs by squares that are turned in registers what is read along one range of a panel and
    written along another, if the panel consists of such squares. Whether it does."""
    extent = plan.kernel.ranges[read].extent if read in plan.kernel.ranges else 1
    side = gcd(width, extent) if isinstance(extent, int) else 1

    def squares() -> None:
        plan.do(Split(write, f"{write}o", ((f"{write}v", side),)))
        plan.do(Split(read, f"{read}o", ((f"{read}v", side),)))
        plan.do(Transpose("copy_panel", f"{write}v", f"{read}v"))

    return side >= SQUARE and plan.attempt(squares)


def pack_rows(plan: Plan, load: Node, rows: int, tasks: Sequence[str], at: str) -> None:
    """Stages a load of the first factor so that what a tile of so many rows reads in a step of the
    sum lies side by side: at a task, which packs its own, or at the root for all. A piece of the
    factor that stays in the first cache is read along its rows, and written along those of the
    tiles."""
    buffer = stage_name(plan.kernel, load)
    shared = Stage(buffer, "root", "rows", "root", block=rows)
    own = Stage(buffer, at, "rows", block=rows)
    own = own if at != "root" and plan.fits(own) else shared
    plan.do(own)
    step, along = f"rows{load.arg - 2}", f"rows{load.arg - 1}"
    width = rows & -rows
    parts = [(f"{along}u", rows // width)] if rows > width else []
    parts += [(f"{along}v", width)] if width > 1 else []
    if parts:
        plan.do(Split(along, f"{along}o", tuple(parts)))
    if rows > width:
        plan.do(unroll(f"{along}u"))
    if width > 1:
        plan.do(vector(f"{along}v"))
    plan.do(Split(step, f"{step}o", ((f"{step}i", ROWS_TOGETHER),)))
    plan.do(Reorder((f"{step}o", f"{along}o" if parts else along, f"{step}i")))
    if tasks and own is shared:
        plan.do(grid(f"{step}o"))
    # blocks of a factor that is read backwards do not end where its memory does
    layouts(plan.kernel)


def _share_packing(plan: Plan, turned: str) -> None:
    """Tasks for a packing that is a phase of its own. turned: the leaf of the vectors, if they are
    read against the order of memory: one after the other, they are written as they lie, and the
    lines that a vector reads serve the next steps of it."""
    copy = plan.kernel.statement("copy_panel")
    if points(plan.kernel, copy.order) < SERIAL_WORK:
        return
    loops = [name for name in copy.order if plan.kernel.leaves[name].kind == "loop"]
    if turned in loops and upper(plan.kernel.leaves[turned].extent) >= FEW_TASKS:
        plan.do(grid(turned))
    elif loops:
        plan.do(grid(max(loops, key=lambda name: upper(plan.kernel.leaves[name].extent))))


def bands(plan: Plan, choice: Choice, loops: tuple[str, ...], tasks: int) -> tuple[str, ...]:
    """Cuts the first loop along which a window is read under a guard (the rows of an image) in
    bands, so that what is copied with its border is copied once for a band. They divide the loop,
    and are as large as a quarter of the second cache and the number of tasks allow. Returns the
    loops."""
    room = min(TASK_MEMORY // 2, plan.target.cache_bytes[1] // 4)
    for at, name in enumerate(loops):
        leaf, band = plan.kernel.leaves[name], f"{name}g"
        guarded = [a for a in choice.contraction.first if guard_of(a).free & leaf.node.free]
        if not guarded or not isinstance(leaf.extent, int):
            continue
        stages = [Stage(stage_name(plan.kernel, a.node), band, "patch") for a in guarded]
        most = leaf.extent * points(plan.kernel, loops[:at]) // tasks
        for rows in (n for n in range(min(leaf.extent, most), 1, -1) if leaf.extent % n == 0):
            before = plan.kernel, list(plan.actions)
            plan.do(Split(name, band, ((f"{name}r", rows),)))
            fits = all(plan.fits(stage, room) for stage in stages)
            if fits and rows < leaf.extent:
                return (*loops[:at], band, f"{name}r", *loops[at + 1 :])
            plan.kernel, plan.actions = before
            if fits:
                break
        break
    return loops


def stage_guarded(plan: Plan, choice: Choice, name: str, at: str) -> None:
    """Copies the parts of the first factor that are read under a guard, with zeros where it is
    false, so that the tile reads them without asking."""
    for number, access in enumerate(choice.contraction.first):
        if guard_of(access) is index.TRUE:
            continue
        patch = f"patch{number or ''}"
        buffer = stage_name(plan.kernel, access.node)
        statement = plan.kernel.statement(name)
        loops = statement.order[statement.order.index(at) : statement.first_reduced()]
        stages = [Stage(buffer, leaf, patch) for leaf in loops]
        fitting = next((stage for stage in stages if plan.fits(stage)), None)
        if fitting is None:
            continue  # the guard says more than where the buffer ends: it stays
        plan.do(fitting)
        width = plan.target.lanes(access.node.dtype)
        last = plan.kernel.statement(f"copy_{patch}").order[-1]
        extent = plan.kernel.leaves[last].extent
        if isinstance(extent, int) and extent > width // 2 and last.startswith(patch):
            plan.do(Split(last, f"{last}o", ((f"{last}v", width),)))
            plan.do(vector(f"{last}v"))
