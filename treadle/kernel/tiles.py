"""Register tiles as a choice says: the actions that make them.

A tile computes `rows` of one factor's range against `vectors` of the other's at once. A factor that
is read at a stride is packed into panels first; one that is read under a guard is copied with its
border of zeros; a result that is stored at a stride is written by loops of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from treadle import host
from treadle.ir import index
from treadle.ir.node import Node
from treadle.kernel.actions import Reorder, Split, Tail, grid, unroll, vector
from treadle.kernel.analysis import points, upper
from treadle.kernel.choice import Choice, Contraction, Tile, guard_of, stored_along
from treadle.kernel.cooperate import CooperateTasks
from treadle.kernel.kernel import kept
from treadle.kernel.narrow import convert_rows, grouped, split_group
from treadle.kernel.packing import bands, pack, pack_rows, packed_load, stage_guarded
from treadle.kernel.plan import SERIAL_WORK, TASK_MEMORY, TASK_WORK, Plan
from treadle.kernel.retile import Detach, Subtotal
from treadle.kernel.split_k import Cut, cut_sum, store_whole
from treadle.kernel.trim import trim_sums

PRODUCTS = 16  # in one step of the loop over the sum, at least
SUM_BLOCK = 1024  # terms of a sum whose panel is packed at a time, about
SLAB_BLOCK = 128  # the same of several panels at a time
SLAB = 8  # panels that are packed at a time, at most
SLAB_ROWS = 64  # for which reading a matrix is much of the work, at most
SHORT_SUM = 128  # terms of a sum beside which storing results is what takes time
ROWS_FIRST = 4  # tiles of rows of a task then
TASKS_PER_THREAD = 4
FINER = 4  # times more of them where a task copies nothing that others copy, too: all end together
FINE_TILES = 2  # tiles of rows of such a task, at least
LONG_ENDING = 160  # operations on a tile's results beyond which they get loops of their own


def tile(plan: Plan, choice: Choice) -> None:
    """Tiles a contraction, with the rest of its results in tasks and loops."""
    if choice.cut is not None:
        _cut_tiles(plan, choice, choice.cut)
    elif choice.lanes in choice.contraction.summed:
        _dot_tiles(plan, choice)
    else:
        _outer_tiles(plan, choice)


def _split_group(plan: Plan, choice: Choice) -> Choice:
    """The choice with its innermost products inside an instruction, where there is one."""
    contraction = choice.contraction
    *outer, name = contraction.summed
    group = grouped(plan, contraction.statement, name)
    if group is None:
        return choice
    summed = (*outer, split_group(plan, contraction.statement.name, group))
    return replace(choice, contraction=replace(contraction, summed=summed, grouped=group))


# ---- lanes along an output -----------------------------------------------------------------------
def _outer_tiles(plan: Plan, choice: Choice) -> None:
    apart = _store_lanes(plan, choice)
    choice = _split_group(plan, choice)
    contraction, lanes, row, tile = choice.contraction, choice.lanes, choice.row, choice.tile
    slab, rows_alone = _slab(plan, choice), _rows_alone(plan, choice)
    rows_first = rows_alone or by_rows(plan, contraction)
    parts = [(f"{lanes}o", slab), (f"{lanes}u", tile.vectors), (f"{lanes}v", tile.lanes)]
    panels = f"{lanes}g" if slab > 1 else f"{lanes}o"
    plan.do(Split(lanes, panels, tuple(parts if slab > 1 else parts[1:])))
    others = [name for name in contraction.outputs if name not in (row, lanes)]
    together = ROWS_FIRST if rows_first and not rows_alone else 0
    beside = others if rows_alone else [*others, panels]
    copied = choice.packed or any(guard_of(a) is not index.TRUE for a in contraction.first)
    wanted = _wanted(plan, 1 if copied else FINER)
    blocks = () if slab > 1 else _split_rows(plan, row, tile.rows, beside, wanted, together)
    if slab > 1:
        plan.do(Split(row, f"{row}o", ((f"{row}u", tile.rows),)))
    ahead = bands(plan, choice, (*others, *blocks), _wanted(plan))
    nest = (*ahead, panels) if slab > 1 else _nest(plan, choice, ahead, panels)
    tasks, loops = (ahead, (panels,)) if rows_first else _outer_loops(plan, nest, wanted)
    alone = choice.packed and _panel_alone(plan, choice, tasks, ahead)
    block, summed = _block_sum(plan, choice, slab) if alone else ((), contraction.summed[-1])
    _unroll_sum(plan, summed, tile.rows * tile.vectors)
    _unroll_tile(plan, f"{row}u", f"{lanes}u", tile)
    plan.do(vector(f"{lanes}v"))
    inside = (f"{lanes}o", f"{row}o") if slab > 1 else (f"{row}o",)
    _arrange(plan, choice, tasks, [*loops, *block, *inside])
    if block:
        plan.do(Subtotal(contraction.statement.name, f"{row}o"))
    if choice.rows_packed is not None:
        load = choice.rows_packed.node
        at = tasks[-1] if rows_alone and tasks else "root"
        plan.attempt(lambda: pack_rows(plan, load, tile.rows, tasks, at))
    if choice.packed:
        pack(plan, choice, tasks, block, alone)
    if tasks:
        stage_guarded(plan, choice, contraction.statement.name, tasks[-1])
    if len(contraction.first) == 1 == len(choice.contraction.summed):
        name = choice.contraction.summed[0]
        convert_rows(plan, contraction.statement.name, contraction.first[0], row, name)
    trim_sums(plan, contraction.statement.name)
    if apart is not None and not block:  # else the results are in memory already
        _store_apart(plan, choice, apart)


def by_rows(plan: Plan, contraction: Contraction) -> bool:
    """Whether tasks are rows of the results and not panels: where a sum is so short that writing
    them is what takes time, and panel after panel would write short pieces of long rows."""
    results = points(plan.kernel, contraction.outputs)
    width = contraction.statement.values[0].dtype.itemsize
    short = points(plan.kernel, contraction.summed) <= SHORT_SUM
    return short and results * width > 4 * plan.target.cache_bytes[1]


def _rows_alone(plan: Plan, choice: Choice) -> bool:
    """Whether tasks are rows because each packs those that it reads: nothing else is packed, and
    there are enough of them. (Else all rows are packed first, and every task waits for that.)"""
    if choice.rows_packed is None or choice.packed:
        return False
    tiles = upper(plan.kernel.leaves[choice.row].extent) // choice.tile.rows
    return tiles >= _wanted(plan)


def _slab(plan: Plan, choice: Choice) -> int:
    """How many panels a task packs at a time of a factor that it reads along its rows, for a long
    sum or one that jumps from page to page: the longer the pieces of them, the sooner memory knows
    what comes next. (A core that starts one product in a cycle has the time to wait for short
    ones.)"""
    contraction, panel = choice.contraction, choice.tile.vectors * choice.tile.lanes
    extent = plan.kernel.leaves[contraction.summed[-1]].extent
    least = SUM_BLOCK // 2 if _jumps(plan, choice) else 2 * SUM_BLOCK
    long = isinstance(extent, int) and extent > least and len(contraction.summed) == 1
    node = plan.kernel.leaves[choice.lanes].node
    contiguous = all(a.stride(node) in (0, 1) for a in contraction.second)
    packs = choice.packed and not choice.kept
    if plan.target.products == 1 or not (long and packs and contiguous):
        return 1
    width: int = contraction.statement.values[0].dtype.itemsize
    results = points(plan.kernel, contraction.rows) * panel * width
    panels = -(-upper(plan.kernel.leaves[choice.lanes].extent) // panel)
    return max(1, min(SLAB, TASK_MEMORY // 2 // results, -(-panels // plan.target.threads)))


def _jumps(plan: Plan, choice: Choice) -> bool:
    """Whether a panel is read in pieces that lie in a page each, of a matrix that the second cache
    does not hold, and serves so few rows that reading it is much of the work."""
    contraction = choice.contraction
    node = plan.kernel.leaves[contraction.summed[-1]].node
    walked = points(plan.kernel, (*contraction.columns, *contraction.summed))
    for a in contraction.second:
        step = a.stride(node)
        if isinstance(step, int) and step * a.dtype_bytes >= host.PAGE:
            large = walked * a.dtype_bytes > plan.target.cache_bytes[1]
            return large and points(plan.kernel, contraction.rows) <= SLAB_ROWS
    return False


def _block_sum(plan: Plan, choice: Choice, slab: int) -> tuple[tuple[str, ...], str]:
    """Cuts a long sum whose factor is packed into even blocks, so that a panel stays in the second
    cache: (the leaf of the blocks, if there are any; the innermost leaf of the sum)."""
    *outer, name = choice.contraction.summed
    extent = plan.kernel.leaves[name].extent
    if outer or not isinstance(extent, int) or (slab == 1 and extent <= 2 * SUM_BLOCK):
        return (), name
    count = -(-extent // (SLAB_BLOCK if slab > 1 else SUM_BLOCK))
    plan.do(Split(name, f"{name}b", ((f"{name}i", -(-extent // count)),)))
    return (f"{name}b",), f"{name}i"


def _unroll_sum(plan: Plan, name: str, products: int) -> None:
    """Writes out enough steps of the sum to hide the loop: few for large tiles."""
    extent = plan.kernel.leaves[name].extent
    if not isinstance(extent, int):
        return
    steps = max(1, min(4, -(-PRODUCTS // max(1, products))))
    while extent % steps:
        steps -= 1
    if 1 < steps < extent:
        plan.do(Split(name, f"{name}o", ((f"{name}u", steps),)))
        plan.do(unroll(f"{name}u"))


def _unroll_tile(plan: Plan, rows: str, columns: str, tile: Tile) -> None:
    """The operands of the axis that is unrolled innermost stay in registers: the smaller one."""
    plan.do(unroll(rows, columns) if tile.vectors <= tile.rows else unroll(columns, rows))


def _split_rows(
    plan: Plan, row: str, rows: int, others: Sequence[str], wanted: int, together: int = 0
) -> tuple[str, ...]:
    """Cuts the rows in tiles, and the tiles in blocks: of so many, or where the rest gives too few
    tasks. (More than there have to be only of several tiles each.) Returns the block's leaf."""
    tiles = -(-upper(plan.kernel.leaves[row].extent) // rows)
    rest = points(plan.kernel, others)
    least, most = -(-_wanted(plan) // rest), -(-wanted // rest)
    blocks = max(1, min(tiles, least), min(tiles // FINE_TILES, most))
    if together:
        blocks = -(-tiles // together)
    if blocks == 1:
        plan.do(Split(row, f"{row}o", ((f"{row}u", rows),)))
        return ()
    per_block = -(-tiles // blocks)
    plan.do(Split(row, f"{row}g", ((f"{row}o", per_block), (f"{row}u", rows))))
    return (f"{row}g",)


def _outer_loops(
    plan: Plan, nest: Sequence[str], wanted: int
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(leaves that are tasks, leaves that are loops inside one): as few ranges as give so many
    tasks, and none of one step."""
    if plan.work() < SERIAL_WORK:
        return (), tuple(nest)
    chosen: list[str] = []
    for name in nest:
        if points(plan.kernel, chosen) >= wanted:
            break
        if plan.kernel.leaves[name].extent != 1:
            chosen.append(name)
    return tuple(chosen), tuple(n for n in nest if n not in chosen)


def _wanted(plan: Plan, finer: int = 1) -> int:
    """How many tasks are enough; so many times more, where each has enough to do."""
    enough = TASKS_PER_THREAD * plan.target.threads
    return max(enough, min(finer * enough, plan.work() // TASK_WORK))


def _nest(plan: Plan, choice: Choice, ahead: tuple[str, ...], panels: str) -> tuple[str, ...]:
    """The loops around the tiles of rows, that over packed panels last. If the second cache holds a
    panel, but not all, it goes ahead of those that would read all of them again and again, as long
    as what they read of the first factor stays there, too."""
    room, contraction = plan.target.cache_bytes[1] // 2, choice.contraction
    vector = points(plan.kernel, contraction.summed) * plan.target.vector_bytes
    count = -(-upper(plan.kernel.ranges[choice.lanes].extent) // choice.tile.lanes)
    free = plan.kernel.over_leaves(packed_load(plan, choice)).free if choice.packed else 0
    if not choice.packed or not vector * choice.tile.vectors <= room < vector * count:
        return *ahead, panels
    first = sum(
        upper(index.product(a.node.src[0].shape)) * a.dtype_bytes for a in contraction.first
    )
    at = len(ahead)
    while at and not free & plan.kernel.leaves[ahead[at - 1]].bit:
        if first > room * points(plan.kernel, ahead[: at - 1]):
            break
        at -= 1
    return *ahead[:at], panels, *ahead[at:]


def _arrange(plan: Plan, choice: Choice, tasks: Sequence[str], loops: Sequence[str]) -> None:
    """Tasks outermost, then the loops in this order, then those of the sum."""
    if tasks:
        plan.do(grid(*tasks))
    statement = plan.kernel.statement(choice.contraction.statement.name)
    sums = [
        name
        for name in statement.order
        if name in statement.reduced and plan.kernel.leaves[name].kind == "loop"
    ]
    plan.do(Reorder((*loops, *(name for name in sums if name not in loops))))


def _panel_alone(plan: Plan, choice: Choice, tasks: Sequence[str], outside: Sequence[str]) -> bool:
    """Whether a panel is hardly read twice by what is outside of its loop, tasks or loops, so that
    each task packs its own. (What never changes is packed by all, for it is kept.)"""
    if choice.kept:
        return False
    free = plan.kernel.over_leaves(packed_load(plan, choice)).free
    same = [name for name in outside if not free & plan.kernel.leaves[name].bit]
    return not tasks or points(plan.kernel, same) <= 2


def _store_lanes(plan: Plan, choice: Choice) -> str | None:
    """The range along which stores of their own run: a contiguous one, or "" if there is none.
    None if the tile stores its results as they are: along its lanes, with little to do for each."""
    tile = choice.tile
    statement = choice.contraction.statement
    ending = sum(plan.facts[s.name].cost for s in plan.kernel.statements if s is not statement)
    along = stored_along(plan, choice.lanes) or choice.lanes in choice.contraction.summed
    if along and ending * tile.rows * tile.vectors <= LONG_ENDING:
        return None
    return next((n for n in (choice.column, choice.row) if stored_along(plan, n)), "")


def _store_apart(plan: Plan, choice: Choice, along: str) -> None:
    """The stores in loops of their own, with lanes along a range of the tile."""
    statement = plan.kernel.statement(choice.contraction.statement.name)
    loops = [name for name in kept(statement) if plan.kernel.leaves[name].kind in ("grid", "loop")]
    plan.do(Detach(statement.name, loops[-1], "t"))
    if not along:
        return
    lanes = f"t{along}"
    leaf = plan.kernel.leaves[lanes]
    width = plan.target.lanes(statement.values[0].dtype)
    while width // 2 >= upper(leaf.extent):
        width //= 2
    if width < 2:
        return
    others = [n for n in plan.kernel.statements[-1].order if n.startswith("t")]
    plan.do(Reorder((*(n for n in others if n != lanes), lanes)))
    plan.do(Split(lanes, f"{lanes}o", ((f"{lanes}v", width),)))
    if isinstance(leaf.extent, Node):
        plan.do(Tail(f"{lanes}v", "mask"))
    plan.do(vector(f"{lanes}v"))


# ---- lanes along the sum -------------------------------------------------------------------------
def _dot_tiles(plan: Plan, choice: Choice) -> None:
    contraction, lanes, row, column = choice.contraction, choice.lanes, choice.row, choice.column
    tile = choice.tile
    apart = _store_lanes(plan, choice)
    width = plan.target.lanes(contraction.statement.values[0].dtype)
    plan.do(Split(lanes, f"{lanes}o", ((f"{lanes}v", width),)))
    plan.do(Split(column, f"{column}o", ((f"{column}u", tile.vectors),)))
    others = [name for name in contraction.outputs if name not in (row, column)]
    blocks = _split_rows(plan, row, tile.rows, [*others, f"{column}o"], _wanted(plan))
    _unroll_tile(plan, f"{row}u", f"{column}u", tile)
    plan.do(vector(f"{lanes}v"))
    tasks, loops = _outer_loops(plan, [*others, *blocks, f"{column}o"], _wanted(plan))
    _arrange(plan, choice, tasks, [*loops, f"{row}o"])
    if apart is not None:
        _store_apart(plan, choice, apart)


# ---- sums that are cut ---------------------------------------------------------------------------
def _cut_tiles(plan: Plan, choice: Choice, cut: Cut) -> None:
    """All tiles for each block of the sum, whose subtotals go to partial results in memory."""
    contraction, lanes, row, column = choice.contraction, choice.lanes, choice.row, choice.column
    tile, name = choice.tile, contraction.statement.name
    apart = lanes in contraction.summed or _store_lanes(plan, choice) is not None
    pieces, blocks, inside = cut_sum(plan, cut)
    summed = inside if cut.leaf == contraction.summed[-1] else contraction.summed[-1]
    if lanes in contraction.summed:
        lanes = summed
        width = plan.target.lanes(contraction.statement.values[0].dtype)
        plan.do(Split(lanes, f"{lanes}o", ((f"{lanes}v", width),)))
        plan.do(Split(column, f"{column}o", ((f"{column}u", tile.vectors),)))
    else:
        parts = ((f"{lanes}u", tile.vectors), (f"{lanes}v", tile.lanes))
        plan.do(Split(lanes, f"{lanes}o", parts))
        _unroll_sum(plan, summed, tile.rows * tile.vectors)
    plan.do(Split(row, f"{row}o", ((f"{row}u", tile.rows),)))
    _unroll_tile(plan, f"{row}u", f"{column}u", tile)
    plan.do(vector(f"{lanes}v"))
    others = [n for n in contraction.outputs if n not in (row, column)]
    plan.do(Reorder((pieces, *blocks, *others, f"{column}o", f"{row}o")))
    plan.do(CooperateTasks(pieces, f"{cut.first}t"))
    partial = f"{name}_tasks"
    plan.do(Subtotal(partial, f"{row}o"))
    if choice.packed:
        pack(plan, choice, (), blocks[-1:], alone=True)
    stage_guarded(plan, choice, f"{partial}_sub", blocks[-1])
    trim_sums(plan, f"{partial}_sub")
    if apart:
        store_whole(plan, name, contraction.outputs, choice.lanes)
