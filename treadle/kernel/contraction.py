"""Register tiles for contractions: sums of products whose factors each miss an output range.

A tile computes `rows` of one factor's range against `vectors` of the other's at once, so that each
element that is read serves several products. Which range lies in lanes is a choice:

    lanes along an output    one factor is a vector, the other one number for all lanes (matmul)
    lanes along the sum      both factors are vectors, lanes are added up at the end (A @ B.T)

A factor that is read at a stride is packed into panels first; a result that is stored at a stride
is written by loops of its own. Every choice has a cost in cycles and the least is taken; nothing is
measured. The constants come from measurements of 64 schedules on 13 shapes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache

from treadle.ir import index, ops
from treadle.ir.node import Node
from treadle.kernel.actions import Reorder, Split, Tail, grid, unroll, vector
from treadle.kernel.analysis import Access, points, upper
from treadle.kernel.dot import dot_for
from treadle.kernel.kernel import Extent, ScheduleError, Stmt, kept
from treadle.kernel.narrow import (
    Grouped,
    axis_before,
    cast_of,
    convert_rows,
    grouped,
    is_narrow,
    panel_group,
    split_group,
)
from treadle.kernel.plan import SERIAL_WORK, Plan
from treadle.kernel.retile import Detach, Subtotal
from treadle.kernel.sieve import in_steps, is_limit
from treadle.kernel.stage import Stage, stage_name
from treadle.kernel.trim import trim_sums

PRODUCTS = 16  # in one step of the loop over the sum, at least
SUM_BLOCK = 1024  # terms of a sum whose panel is packed at a time, about
TASKS_PER_THREAD = 4
SPARE_REGISTERS = 2  # beside accumulators, one row of operands and one spread number
TRANSPOSED = 3.0  # cycles to pack an element against its order
TRANSPOSED_FAR = 8.0  # the same of a factor that the second cache does not hold
STORE_APART = 1.6  # cycles to store an element by loops of its own
LONG_ENDING = 160  # operations on a tile's results beyond which they get loops of their own
PANEL_ROWS = 96  # rows for which packing what is contiguous already pays
NARROW_ROWS = 16  # the same of what is put in groups, or converted, on the way
APART_CODE = 20_000.0  # cycles that the code of a store apart costs
SCATTERED = 4.0  # cycles to store an element alone
REST = 2000.0  # cycles that the code of a rest costs, per vector of the tile
RESTS = 16  # times at most that it counts: it is compiled once, but entered each time
MASKED = 1.2  # what masks on the vectors of both factors cost
GUARDED = 1.8  # what a factor costs whose vectors are read under a guard
ALONE = 16.0  # what a factor costs that is gathered at every use


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
    second factor is packed, and the whole cost in cycles."""

    contraction: Contraction
    lanes: str
    row: str
    column: str
    tile: Tile
    packed: bool
    cycles: float


def find(plan: Plan) -> Contraction | None:
    """The contraction that makes up most of a kernel, if every other statement runs under the loops
    of its results."""
    if plan.serial or not plan.target.vector_bytes:
        return None
    reductions = [s for s in plan.kernel.statements if s.reduced]
    statement = max(reductions, key=lambda s: points(plan.kernel, s.order), default=None)
    if statement is None:
        return None
    value = statement.values[0]
    if statement.monoid != "add" or value.op is not ops.MUL:
        return None
    if not value.dtype.is_float and dot_for(plan.kernel, statement) is None:
        return None
    outputs = kept(statement)
    if any(
        kept(s) != outputs or s.order[: len(outputs)] != outputs for s in plan.kernel.statements
    ):
        return None
    if statement is not plan.kernel.statements[0]:
        return None
    first, second = (plan.kernel.over_ranges(factor).free for factor in value.src)
    leaves = plan.kernel.leaves
    known = [name for name in outputs if not is_limit(plan.kernel, name)]
    rows = tuple(n for n in known if first & leaves[n].bit and not second & leaves[n].bit)
    columns = tuple(n for n in known if second & leaves[n].bit and not first & leaves[n].bit)
    if not rows or not columns or all(in_steps(plan.kernel, n) for n in (*rows, *columns)):
        return None
    summed = tuple(name for name in statement.order if name in statement.reduced)
    one, two = (plan.facts[statement.name].within(factor) for factor in value.src)
    return Contraction(statement, rows, columns, summed, one, two)


def schedule(plan: Plan, contraction: Contraction) -> None:
    """Tiles the contraction, with the rest of its output in tasks and loops."""
    choice = min(_choices(plan, contraction), key=lambda choice: choice.cycles)
    if choice.lanes in choice.contraction.summed:
        _dot_tiles(plan, choice)
    else:
        _outer_tiles(plan, choice)


# ---- choices -------------------------------------------------------------------------------------
def _choices(plan: Plan, contraction: Contraction) -> Iterator[Choice]:
    for side in (contraction, contraction.turned()):
        for lanes in (name for name in side.columns if not in_steps(plan.kernel, name)):
            for row in side.rows:
                yield _outer_choice(plan, side, lanes, row)
    dot = _dot_choice(plan, contraction)
    if dot is not None:
        yield dot


def _outer_choice(plan: Plan, contraction: Contraction, lanes: str, row: str) -> Choice:
    """Lanes along an output of the second factor."""
    leaves = plan.kernel.leaves
    node = leaves[lanes].node
    moving = [
        a for a in contraction.second if a.offset.free & node.free or _guard(a).free & node.free
    ]
    contiguous = all(a.stride(node) == 1 for a in moving)
    far = contiguous and too_large(plan, moving)
    again = points(plan.kernel, contraction.rows) >= PANEL_ROWS
    can_pack = len(moving) == 1 and axis_of(plan, moving[0].node, lanes) is not None
    packed = can_pack and (not contiguous or (far and again))
    group = grouped(plan, contraction.statement, contraction.summed[-1])
    steps = points(plan.kernel, contraction.summed)
    if group is not None:
        steps = -(-steps // group.size)
    if group is not None or any(is_narrow(a) for a in moving):
        packed = packed or (can_pack and points(plan.kernel, contraction.rows) >= NARROW_ROWS)
    width = plan.target.lanes(contraction.statement.values[0].dtype)
    extent = _size(leaves[lanes].extent)
    steps = points(plan.kernel, contraction.summed)
    together = min(steps, 2 * SUM_BLOCK) if len(contraction.summed) == 1 else steps
    panel = together * plan.target.vector_bytes  # of one vector; a longer sum is cut in blocks
    if packed:
        reading = "long" if panel > plan.target.cache_bytes[1] // 4 else "near"
    else:
        reading = "far" if far else "near"
    tile = _best_tile(
        _size(leaves[row].extent),
        extent,
        steps,
        (width,) if extent % width == 0 or width < 8 else (width, width // 2),
        plan.target.registers,
        reading,
        points(plan.kernel, [n for n in contraction.outputs if n not in (lanes, row)]),
    )
    cycles = tile.cycles
    if packed:
        near = _elements(moving[0]) * moving[0].dtype_bytes <= plan.target.cache_bytes[1] // 2
        against = TRANSPOSED if near else TRANSPOSED_FAR
        cycles += _elements(moving[0]) * (0.2 if contiguous else against)
    elif not contiguous:
        cycles *= ALONE
    elif any(_guard(a) is not index.TRUE for a in moving):
        cycles *= GUARDED
    results = points(plan.kernel, contraction.outputs)
    if not _stored_along(plan, lanes):
        cycles += APART_CODE
        cycles += results * (STORE_APART if _stored_along(plan, row) else SCATTERED)
    return Choice(contraction, lanes, row, lanes, tile, packed, cycles)


def _dot_choice(plan: Plan, contraction: Contraction) -> Choice | None:
    """Lanes along the sum, if both factors are contiguous along it."""
    leaves = plan.kernel.leaves
    lanes = contraction.summed[-1]
    node = leaves[lanes].node
    moving = [a for a in (*contraction.first, *contraction.second) if a.offset.free & node.free]
    if len(moving) < 2 or any(a.stride(node) != 1 for a in moving):
        return None
    row = max(contraction.rows, key=lambda name: upper(leaves[name].extent))
    column = max(contraction.columns, key=lambda name: upper(leaves[name].extent))
    width = plan.target.lanes(contraction.statement.values[0].dtype)
    vectors = -(-_size(leaves[lanes].extent) // width)
    steps = points(plan.kernel, contraction.summed[:-1]) * vectors
    tile = _best_tile(
        _size(leaves[row].extent),
        _size(leaves[column].extent),
        steps,
        (1,),
        plan.target.registers,
        "dot",
        points(plan.kernel, [n for n in contraction.outputs if n not in (column, row)]),
    )
    masked = MASKED if any(_guard(a).free & node.free for a in moving) else 1.0
    return Choice(contraction, lanes, row, column, tile, False, tile.cycles * masked)


def _guard(access: Access) -> Node:
    """The guard of a load (CONST true if it has none)."""
    load = access.node
    return load.src[-1] if len(load.src) > 1 + load.arg else index.TRUE


def _elements(access: Access) -> int:
    return max(1, upper(index.product(access.node.src[0].shape)))


def too_large(plan: Plan, loads: Sequence[Access]) -> bool:
    """Whether a factor is too large to stay in the second cache while it is walked by columns."""
    return any(_elements(a) * a.dtype_bytes > plan.target.cache_bytes[1] for a in loads)


def _stored_along(plan: Plan, name: str) -> bool:
    """Whether the results lie contiguously along a range."""
    node = plan.kernel.leaves[name].node
    stores = (a for facts in plan.facts.values() for a in facts.accesses if a.is_store)
    return all(a.stride(node) == 1 for a in stores)


def axis_of(plan: Plan, load: Node, name: str) -> int | None:
    """The one axis of a load along which a range runs with step 1, if there is just one."""
    node = plan.kernel.leaves[name].node
    found = None
    for axis, place in enumerate(load.src[1 : 1 + load.arg]):
        place = plan.kernel.over_ranges(place)
        if place.free & node.free:
            if place is not node or found is not None:
                return None
            found = axis
    return found


# per way of reading: (vectors read per row, cycles of a step beside products, the same per row,
# cycles at the end per vector of the tile, cycles to read a vector of the columns). "near": the
# vector factor is packed or stays in the second cache; "long": its panels are packed, but do not
# stay there; "far": it is walked in memory; "dot": the lanes lie along the sum.
_READING = {
    "near": (1, 0.3, 0.05, 2, 0.5),
    "long": (1, 0.3, 0.05, 2, 6.0),
    "far": (1, 3.0, 0.5, 2, 0.5),
    "dot": (2, 0.3, 0.05, 36, 0.5),
}


def _cycles(rows: int, vectors: int, steps: int, reading: str) -> float:
    """Cycles of one tile over all steps of the sum."""
    per_row, beside, beside_row, ending, column = _READING[reading]
    loads = per_row * rows + 2 * vectors
    most = max(rows * vectors, loads / 2, 4.5, column * vectors)
    step = most + beside + beside_row * rows + 0.05 * vectors
    return steps * step + ending * rows * vectors + 6 * rows + 20


@cache
def _best_tile(
    rows: int,
    columns: int,
    steps: int,
    lane_choices: tuple[int, ...],
    registers: int,
    reading: str,
    times: int,
) -> Tile:
    """The tile of least cost when all is done so many times, rests included; each rest is code that
    must be compiled."""
    best: Tile | None = None
    for lanes in lane_choices:
        needed = -(-columns // lanes)
        for m in range(1, min(rows, 14) + 1):
            for v in range(1, min(needed, 4) + 1):
                if m * v + min(m, v) + 1 > registers - SPARE_REGISTERS:
                    continue
                (whole_rows, rest_rows), (whole, rest) = divmod(rows, m), divmod(needed, v)
                total = whole_rows * whole * _cycles(m, v, steps, reading)
                total += whole_rows * _cycles(m, rest, steps, reading) if rest else 0
                total += whole * _cycles(rest_rows, v, steps, reading) if rest_rows else 0
                total += _cycles(rest_rows, rest, steps, reading) if rest and rest_rows else 0
                rests = (1 + bool(rest_rows)) * (1 + bool(rest)) - 1
                total = total * times + rests * min(times, RESTS) * REST * m * v
                if best is None or total < best.cycles:
                    best = Tile(m, v, lanes, total)
    assert best is not None
    return best


def _size(extent: Extent) -> int:
    """An extent as the cost sees it: a symbolic one is taken to be large, an empty one to be 1."""
    return max(1, extent if isinstance(extent, int) else min(upper(extent), 512))


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
    plan.do(Split(lanes, f"{lanes}o", ((f"{lanes}u", tile.vectors), (f"{lanes}v", tile.lanes))))
    others = [name for name in contraction.outputs if name not in (row, lanes)]
    blocks = _split_rows(plan, row, tile.rows, [*others, f"{lanes}o"])
    tasks, loops = _outer_loops(plan, [*others, *blocks], f"{lanes}o")
    alone = choice.packed and _panel_alone(plan, choice, tasks)
    block, summed = _block_sum(plan, choice) if alone else ((), contraction.summed[-1])
    _unroll_sum(plan, summed, tile.rows * tile.vectors)
    _unroll_tile(plan, f"{row}u", f"{lanes}u", tile)
    plan.do(vector(f"{lanes}v"))
    _arrange(plan, choice, tasks, [*loops, *block, f"{row}o"])
    if block:
        plan.do(Subtotal(contraction.statement.name, f"{row}o"))
    if choice.packed:
        _pack(plan, choice, tasks, block, alone)
    if tasks:
        _stage_guarded(plan, choice, tasks[-1])
    if len(contraction.first) == 1 == len(choice.contraction.summed):
        name = choice.contraction.summed[0]
        convert_rows(plan, contraction.statement.name, contraction.first[0], row, name)
    trim_sums(plan, contraction.statement.name)
    if apart is not None and not block:  # else the results are in memory already
        _store_apart(plan, choice, apart)


def _block_sum(plan: Plan, choice: Choice) -> tuple[tuple[str, ...], str]:
    """Cuts a long sum whose factor is packed into even blocks, so that a panel stays in the second
    cache: (the leaf of the blocks, if there are any; the innermost leaf of the sum)."""
    *outer, name = choice.contraction.summed
    extent = plan.kernel.leaves[name].extent
    if outer or not isinstance(extent, int) or extent <= 2 * SUM_BLOCK:
        return (), name
    count = -(-extent // SUM_BLOCK)
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


def _split_rows(plan: Plan, row: str, rows: int, others: Sequence[str]) -> tuple[str, ...]:
    """Cuts the rows in tiles, and the tiles in blocks where the rest gives too few tasks. Returns
    the block's leaf."""
    tiles = -(-upper(plan.kernel.leaves[row].extent) // rows)
    wanted = TASKS_PER_THREAD * plan.target.threads
    blocks = max(1, min(tiles, -(-wanted // points(plan.kernel, others))))
    if blocks == 1:
        plan.do(Split(row, f"{row}o", ((f"{row}u", rows),)))
        return ()
    per_block = -(-tiles // blocks)
    plan.do(Split(row, f"{row}g", ((f"{row}o", per_block), (f"{row}u", rows))))
    return (f"{row}g",)


def _outer_loops(
    plan: Plan, others: Sequence[str], panels: str
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(leaves that are tasks, leaves that are loops inside one): as few ranges as give enough
    tasks, the panels of the lanes last."""
    if plan.work() < SERIAL_WORK:
        return (), (*others, panels)
    wanted = TASKS_PER_THREAD * plan.target.threads
    chosen: list[str] = []
    for name in (*others, panels):
        if points(plan.kernel, chosen) >= wanted:
            break
        chosen.append(name)
    return tuple(chosen), tuple(n for n in (*others, panels) if n not in chosen)


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


def _packed_load(plan: Plan, choice: Choice) -> Node:
    """The load of the second factor that moves with the lanes."""
    node = plan.kernel.ranges[choice.lanes].node
    loads = (a.node for a in choice.contraction.second)
    return next(load for load in loads if plan.kernel.over_ranges(load).free & node.free)


def _panel_alone(plan: Plan, choice: Choice, tasks: Sequence[str]) -> bool:
    """Whether hardly two tasks read the same panel, so that each packs its own."""
    free = plan.kernel.over_leaves(_packed_load(plan, choice)).free
    same = [name for name in tasks if not free & plan.kernel.leaves[name].bit]
    return points(plan.kernel, same) <= 2 and (not tasks or tasks[-1] == f"{choice.lanes}o")


def _pack(
    plan: Plan, choice: Choice, tasks: Sequence[str], block: Sequence[str], alone: bool
) -> None:
    """Stages the vector factor in panels: in every task its own, or once for the whole kernel if
    several tasks read the same or a panel would be too large for a task's memory."""
    lanes, width = choice.lanes, choice.tile.lanes
    load = _packed_load(plan, choice)
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
    try:
        plan.do(at_root if shared else at_task)
    except ScheduleError:
        return  # it is read where no loop goes: gathered, then
    if group is not None:
        split_group(plan, "copy_panel", Grouped(f"panel{group[0]}", group[1]))
    own = f"panel{axis}"
    plan.do(Split(own, f"{own}o", ((f"{own}v", width),)))
    plan.do(vector(f"{own}v"))
    if shared and tasks:
        _share_packing(plan)


def _share_packing(plan: Plan) -> None:
    """Tasks for a packing that is a phase of its own."""
    copy = plan.kernel.statement("copy_panel")
    if points(plan.kernel, copy.order) < SERIAL_WORK:
        return
    loops = [name for name in copy.order if plan.kernel.leaves[name].kind == "loop"]
    if loops:
        plan.do(grid(max(loops, key=lambda name: upper(plan.kernel.leaves[name].extent))))


def _stage_guarded(plan: Plan, choice: Choice, at: str) -> None:
    """Copies the parts of the first factor that are read under a guard, with zeros where it is
    false, so that the tile reads them without asking."""
    for number, access in enumerate(choice.contraction.first):
        if _guard(access) is index.TRUE:
            continue
        name = f"patch{number or ''}"
        buffer = stage_name(plan.kernel, access.node)
        statement = plan.kernel.statement(choice.contraction.statement.name)
        loops = statement.order[statement.order.index(at) : statement.first_reduced()]
        stages = [Stage(buffer, leaf, name) for leaf in loops]
        fitting = next((stage for stage in stages if plan.fits(stage)), None)
        if fitting is None:
            continue  # the guard says more than where the buffer ends: it stays
        plan.do(fitting)
        width = plan.target.lanes(access.node.dtype)
        last = plan.kernel.statement(f"copy_{name}").order[-1]
        extent = plan.kernel.leaves[last].extent
        if isinstance(extent, int) and extent > width // 2 and last.startswith(name):
            plan.do(Split(last, f"{last}o", ((f"{last}v", width),)))
            plan.do(vector(f"{last}v"))


def _store_lanes(plan: Plan, choice: Choice) -> str | None:
    """The range along which stores of their own run: a contiguous one, or "" if there is none.
    None if the tile stores its results as they are: along its lanes, with little to do for each."""
    tile = choice.tile
    statement = choice.contraction.statement
    ending = sum(plan.facts[s.name].cost for s in plan.kernel.statements if s is not statement)
    along = _stored_along(plan, choice.lanes) or choice.lanes in choice.contraction.summed
    if along and ending * tile.rows * tile.vectors <= LONG_ENDING:
        return None
    return next((n for n in (choice.column, choice.row) if _stored_along(plan, n)), "")


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
    blocks = _split_rows(plan, row, tile.rows, [*others, f"{column}o"])
    _unroll_tile(plan, f"{row}u", f"{column}u", tile)
    plan.do(vector(f"{lanes}v"))
    tasks, loops = _outer_loops(plan, [*others, *blocks], f"{column}o")
    _arrange(plan, choice, tasks, [*loops, f"{row}o"])
    if apart is not None:
        _store_apart(plan, choice, apart)
