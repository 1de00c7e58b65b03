"""Contractions by matrix instructions of a CPU: tiles of sums in registers, factors read as tiles.

A task computes some columns of the result. It packs the second factor for them in groups, once, so
that it stays in the second cache, and goes through the rows of the first, which is read where it is
if it lies so; else a few rows at a time are staged. Ranges are padded to whole tiles. Results go
through memory of the task, where vectors do what is left to do with them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from treadle.ir import index
from treadle.ir.matrix import Matrix
from treadle.ir.node import Node
from treadle.kernel.actions import Prefetch, Reorder, Split, grid, unroll, vector
from treadle.kernel.analysis import points, upper
from treadle.kernel.choice import Contraction, guard_of, stored_along
from treadle.kernel.contraction import axis_of
from treadle.kernel.dot import Inside
from treadle.kernel.kernel import loads
from treadle.kernel.mma import Mma, matrix_for, require_tiles_apart, tile_factors
from treadle.kernel.pad import Pad
from treadle.kernel.plan import SERIAL_WORK, TASK_MEMORY, Plan
from treadle.kernel.retile import Detach
from treadle.kernel.stage import Stage, stage_name
from treadle.kernel.transpose import Transpose

TILE = 17.0  # cycles of an instruction
READ = 20.0  # cycles to read a tile of a factor from the second cache
FEWEST = 8  # rows and columns for which it pays
MOVED = 0.12  # cycles to bring an element of a factor from the third cache
PACKED = 0.25  # cycles to pack an element beside one that is contiguous with it
TURNED = 0.5  # the same where squares are turned
STORED = 0.4  # cycles to store a result
STORED_TURNED = 0.8  # the same where results lie along the rows
TASK = 2000.0  # cycles to begin a task
MOST_TASKS = 32  # into which columns are cut, beyond what memory asks for
LINE = 64  # bytes; rows that do not begin at multiples of it are read twice


@dataclass(frozen=True)
class Factor:
    """One factor: its load, and the axes along its rows (or columns) and along the sum. turned: it
    is contiguous along the former where it should be along the latter, or the other way round."""

    load: Node
    across: int
    along: int
    turned: bool


@dataclass(frozen=True)
class Choice:
    """How a contraction is tiled. row, column, sum: the leaves that go inside an instruction;
    first, second: the factors that are staged (None: the first is read where it is); tiles: how
    many along rows and columns are in registers; strips, panels: how many times that a task has
    along the rows and the columns; stored_along: whether results are contiguous along the columns;
    cycles: the whole cost."""

    matrix: Matrix
    row: str
    column: str
    sum: str
    first: Factor | None
    second: Factor
    tiles: tuple[int, int]
    strips: int
    panels: int
    stored_along: bool
    cycles: float


def choose(plan: Plan, contraction: Contraction) -> Choice | None:
    """The best way to do a contraction by matrix instructions, if there is one."""
    found = [
        choice for side in (contraction, contraction.turned()) for choice in _choices(plan, side)
    ]
    return min(found, key=lambda choice: choice.cycles, default=None)


def _choices(plan: Plan, side: Contraction) -> Iterator[Choice]:
    leaves = plan.kernel.leaves
    sizes = {name: leaves[name].extent for name in (*side.rows, *side.columns, *side.summed)}
    if len(side.summed) != 1 or not all(isinstance(size, int) for size in sizes.values()):
        return
    (sum_,) = side.summed
    row = max(side.rows, key=lambda name: upper(sizes[name]))
    column = max(side.columns, key=lambda name: upper(sizes[name]))
    matrix = matrix_for(plan.kernel, side.statement, leaves[row].bit)
    factors = tile_factors(plan.kernel, side.statement, leaves[row].bit)
    if matrix is None or factors is None:
        return
    first = _factor(plan, factors[0], row, sum_, sum_)
    second = _factor(plan, factors[1], column, sum_, column)
    m, n, k = (upper(sizes[name]) for name in (row, column, sum_))
    if second is None or min(m, n) < FEWEST or k < matrix.k:
        return
    others = points(plan.kernel, [n for n in side.outputs if n not in (row, column)])
    lies_right = k % matrix.k == 0 and _lies_right(plan, side, row, sum_)
    along = stored_along(plan, column)
    if not along and not stored_along(plan, row):
        return
    room = min(TASK_MEMORY, plan.target.cache_bytes[1] // 2)
    for tiles in ((1, 1), (1, 2), (1, 4), (2, 1), (4, 1), (2, 2)):
        rows, columns = tiles[0] * matrix.m, tiles[1] * matrix.n
        down, right, deep = -(-m // rows), -(-n // columns), -(-k // matrix.k)
        if rows - matrix.m >= m or columns - matrix.n >= n:
            continue  # a smaller tile does
        bytes_ = deep * matrix.k * second.load.dtype.itemsize  # of a row, or of a column
        if columns * bytes_ > room:
            continue
        step = max(TILE * prod(tiles), READ * sum(tiles))
        tile = deep * step + rows * columns * (STORED if along else STORED_TURNED)
        packed = columns * k * (TURNED if second.turned else PACKED)
        cuts = _cuts(down, right, room // (columns * bytes_), plan.work() >= SERIAL_WORK)
        for blocks, panels in cuts:
            per_block = -(-down // blocks)
            staged = None
            if not lies_right or m % (per_block * rows):
                if first is None or rows * bytes_ > room:
                    continue
                staged = first
            moved = MOVED if staged is None else MOVED + (TURNED if staged.turned else PACKED)
            tasks = others * blocks * -(-right // panels)
            task = TASK + panels * packed + per_block * (panels * tile + rows * k * moved)
            cycles = -(-tasks // plan.target.threads) * task
            yield Choice(
                matrix, row, column, sum_, staged, second, tiles, per_block, panels, along, cycles
            )


def _cuts(down: int, right: int, most: int, parallel: bool) -> Iterator[tuple[int, int]]:
    """Into how many blocks of rows, and pieces of how many panels, the results may be cut."""
    least = -(-right // most)
    pieces = {-(-right // count) for count in range(least, min(right, least + MOST_TASKS) + 1)}
    for panels in sorted(pieces):
        for blocks in (1, 2, 4, 8, 16, 32):
            if blocks == 1 or (parallel and blocks <= down):
                yield blocks, panels


def _factor(plan: Plan, load: Node, across: str, along: str, contiguous: str) -> Factor | None:
    """A factor whose tiles should be contiguous along a range; None if they do not lie along one
    axis each, or along none that is contiguous."""
    axes = axis_of(plan, load, across), axis_of(plan, load, along)
    if axes[0] is None or axes[1] is None or axes[0] == axes[1]:
        return None
    last = load.arg - 1
    if last not in axes:
        return None
    wanted = axes[1] if contiguous == along else axes[0]
    return Factor(load, axes[0], axes[1], wanted != last)


def _lies_right(plan: Plan, side: Contraction, row: str, sum_: str) -> bool:
    """Whether tiles of the first factor can be read where it is."""
    if len(side.first) != 1:  # it is gathered
        return False
    (access,) = side.first
    stride = access.stride(plan.kernel.leaves[row].node)
    lines = isinstance(stride, int) and stride * access.dtype_bytes % LINE == 0
    along = access.stride(plan.kernel.leaves[sum_].node) == 1
    return lines and along and guard_of(access) is index.TRUE


# ---- the actions ---------------------------------------------------------------------------------
def schedule(plan: Plan, contraction: Contraction, choice: Choice) -> None:
    """Tiles a contraction so. ScheduleError if something stands in the way."""
    row, column, sum_ = choice.row, choice.column, choice.sum
    name = contraction.statement.name
    matrix, (down, right) = choice.matrix, choice.tiles
    others = [n for n in contraction.outputs if n not in (row, column)]
    plan.do(Pad(row, choice.strips * down * matrix.m))
    plan.do(Pad(column, choice.panels * right * matrix.n))
    plan.do(Pad(sum_, matrix.k))
    inner = ((f"{row}o", choice.strips), (f"{row}u", down), (f"{row}m", matrix.m))
    plan.do(Split(row, f"{row}g", inner))
    inner = ((f"{column}o", choice.panels), (f"{column}u", right), (f"{column}m", matrix.n))
    plan.do(Split(column, f"{column}g", inner))
    plan.do(Split(sum_, f"{sum_}o", ((f"{sum_}m", matrix.k),)))
    if plan.work() >= SERIAL_WORK:
        plan.do(grid(*others, f"{row}g", f"{column}g"))
    else:
        plan.do(Reorder((*others, f"{row}g", f"{column}g")))
    plan.do(unroll(f"{row}u", f"{column}u"))
    plan.do(Reorder((f"{row}o", f"{column}o")))
    plan.do(Mma(name, (f"{row}m", f"{column}m", f"{sum_}m")))
    _pack_columns(plan, choice)
    if choice.first is not None:
        _stage_rows(plan, choice, choice.first)
    plan.do(Detach(name, f"{column}o", "t"))
    _store(plan, choice)
    require_tiles_apart(plan.kernel)


def _pack_columns(plan: Plan, choice: Choice) -> None:
    """The second factor in groups along the sum, a panel of columns after the other."""
    factor, matrix = choice.second, choice.matrix
    rest = [a for a in range(factor.load.arg) if a not in (factor.across, factor.along)]
    layout = (*rest, factor.along, factor.across)
    block = choice.tiles[1] * matrix.n
    group = (factor.along, matrix.size)
    buffer = stage_name(plan.kernel, _padded(plan, factor.load))
    plan.do(Stage(buffer, f"{choice.column}g", "panel", layout=layout, block=block, group=group))
    along, across = f"panel{factor.along}", f"panel{factor.across}"
    groups = matrix.k // matrix.size
    if factor.turned:
        plan.do(Split(along, f"{along}o", ((f"{along}v", groups), (f"{along}p", matrix.size))))
        plan.do(Split(across, f"{across}o", ((f"{across}v", matrix.n),)))
        plan.do(Inside("copy_panel", f"{along}p"))
        plan.do(Transpose("copy_panel", f"{across}v", f"{along}v"))
        return
    plan.do(Split(along, f"{along}q", ((f"{along}p", matrix.size),)))
    plan.do(Inside("copy_panel", f"{along}p"))
    inner = ((f"{across}u", choice.tiles[1]), (f"{across}v", matrix.n))
    plan.do(Split(across, f"{across}o", inner))
    plan.do(unroll(f"{across}u"))
    plan.do(vector(f"{across}v"))


def _padded(plan: Plan, load: Node) -> Node:
    """A factor as it is now: padding made its ranges longer, and gave it a guard. Each factor has
    ranges of its own."""

    def ranges(each: Node) -> tuple[Node | int, ...]:
        return each.src[0], *(place.free for place in each.src[1 : 1 + each.arg])

    now = (each for statement in plan.kernel.statements for each in loads(statement))
    return next(each for each in now if ranges(each) == ranges(load))


def _stage_rows(plan: Plan, choice: Choice, factor: Factor) -> None:
    """Some rows of the first factor, contiguous along the sum."""
    matrix = choice.matrix
    rest = [a for a in range(factor.load.arg) if a not in (factor.across, factor.along)]
    layout = (*rest, factor.across, factor.along)
    buffer = stage_name(plan.kernel, _padded(plan, factor.load))
    along, across = f"strip{factor.along}", f"strip{factor.across}"
    at = f"{choice.row}o"
    if factor.turned:
        group = (factor.along, matrix.size)
        plan.do(Stage(buffer, at, "strip", layout=layout, group=group))
        groups = matrix.k // matrix.size
        plan.do(Split(along, f"{along}o", ((f"{along}v", groups), (f"{along}p", matrix.size))))
        plan.do(Split(across, f"{across}o", ((f"{across}v", matrix.m),)))
        plan.do(Inside("copy_strip", f"{along}p"))
        plan.do(Transpose("copy_strip", f"{along}v", f"{across}v"))
        return
    plan.do(Stage(buffer, at, "strip", layout=layout, block=matrix.k))
    plan.do(Split(along, f"{along}o", ((f"{along}v", matrix.k),)))
    plan.do(vector(f"{along}v"))


def _store(plan: Plan, choice: Choice) -> None:
    """What is done with a tile of results, along what is contiguous: a line of memory at a time.
    The next tile's lines are asked for."""
    stores = [s for s in plan.kernel.statements if s.is_store]
    along, size = choice.column, choice.tiles[1] * choice.matrix.n
    if not choice.stored_along:
        along, size = choice.row, choice.tiles[0] * choice.matrix.m
        _turn_tile(plan, choice)
    line = LINE // min(s.targets[0].dtype.itemsize for s in stores)
    lanes = f"t{along}"
    plan.do(
        Reorder(
            (
                *(
                    n
                    for n in stores[0].order
                    if n[1:] in (choice.row, choice.column) and n != lanes
                ),
                lanes,
            )
        )
    )
    plan.do(Split(lanes, f"{lanes}o", ((f"{lanes}v", min(size, line)),)))
    plan.do(vector(f"{lanes}v"))
    if choice.panels == 1 or "prefetch" not in plan.target.intrinsics:
        return
    for store in stores:
        buffer = f"arg{store.targets[0].arg[0]}"
        plan.do(Prefetch(buffer, store.name, f"{choice.column}o", 1))


def _turn_tile(plan: Plan, choice: Choice) -> None:
    """A copy of a tile of results that lies along its rows."""
    statement = plan.kernel.statement("copy_t")
    leaves = plan.kernel.leaves
    axes = {
        name: next(
            axis
            for axis, place in enumerate(statement.index)
            if plan.kernel.over_leaves(place).free & leaves[f"{name}m"].bit
        )
        for name in (choice.row, choice.column)
    }
    rest = [axis for axis in range(len(statement.index)) if axis not in axes.values()]
    layout = (*rest, axes[choice.column], axes[choice.row])
    plan.do(Stage("t", f"{choice.column}o", "turned", layout=layout))
    for name in (choice.row, choice.column):
        own = f"turned{axes[name]}"
        plan.do(Split(own, f"{own}o", ((f"{own}v", choice.matrix.n),)))
    plan.do(Transpose("copy_turned", *(f"turned{axes[n]}v" for n in (choice.row, choice.column))))
