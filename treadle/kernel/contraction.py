"""Register tiles for contractions: sums of products whose factors each miss an output range.

A tile computes `rows` of one factor's range against `vectors` of the other's at once, so that each
element that is read serves several products. Which range lies in lanes follows from the strides:

    lanes along an output    one factor is a vector, the other one number for all lanes (matmul)
    lanes along the sum      both factors are vectors, lanes are added up at the end (A @ B.T)

The tile is the one with the least cost in cycles; nothing is measured. The cost and its constants
come from measurements of 64 schedules on 13 shapes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from treadle.ir import ops
from treadle.ir.node import Node
from treadle.kernel.actions import Reorder, Split, Tail, grid, unroll, vector
from treadle.kernel.analysis import Access, points, upper
from treadle.kernel.kernel import Extent, Stmt
from treadle.kernel.plan import SERIAL_WORK, Plan

PANEL_USES = 36  # rows that make packing a panel worth while
PRODUCTS = 16  # in one step of the loop over the sum, at least
TASKS_PER_THREAD = 4
SPARE_REGISTERS = 2  # beside accumulators, one row of operands and one spread number


@dataclass(frozen=True)
class Contraction:
    """A sum of products. rows, columns: output leaves that only the first, only the second factor
    depends on; batch: those of both; summed: the reduced leaves. The lanes lie along `lanes`."""

    statement: Stmt
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    batch: tuple[str, ...]
    summed: tuple[str, ...]


@dataclass(frozen=True)
class Tile:
    """`rows` numbers (or vectors) against `vectors` vectors of `lanes` each."""

    rows: int
    vectors: int
    lanes: int


def find(plan: Plan) -> Contraction | None:
    """The contraction that a kernel is, if its only reduction is one and all its stores follow it."""
    reductions = [s for s in plan.kernel.statements if s.reduced]
    if len(reductions) != 1 or plan.serial or not plan.target.vector_bytes:
        return None
    statement = reductions[0]
    value = statement.values[0]
    if statement.monoid != "add" or value.op is not ops.MUL or not value.dtype.is_float:
        return None
    outputs = [name for name in statement.order if name not in statement.reduced]
    if any(set(s.order) != set(outputs) for s in plan.kernel.statements if s is not statement):
        return None
    first, second = (plan.kernel.over_leaves(factor).free for factor in value.src)
    sides: dict[tuple[bool, bool], list[str]] = {}
    for name in outputs:
        bit = plan.kernel.leaves[name].bit
        sides.setdefault((bool(first & bit), bool(second & bit)), []).append(name)
    rows, columns = sides.get((True, False), []), sides.get((False, True), [])
    if not rows or not columns:
        return None
    batch = sides.get((True, True), []) + sides.get((False, False), [])
    summed = tuple(name for name in statement.order if name in statement.reduced)
    return Contraction(statement, tuple(rows), tuple(columns), tuple(batch), summed)


def schedule(plan: Plan, contraction: Contraction) -> None:
    """Tiles the contraction, with the rest of its output in tasks and loops."""
    lanes = _lanes_along(plan, contraction)
    if lanes in contraction.summed:
        _dot_tiles(plan, contraction, lanes)
        return
    if lanes in contraction.rows:
        contraction = Contraction(
            contraction.statement,
            contraction.columns,
            contraction.rows,
            contraction.batch,
            contraction.summed,
        )
    _outer_tiles(plan, contraction, lanes)


# ---- which range lies in lanes ---------------------------------------------------------------------
def _lanes_along(plan: Plan, contraction: Contraction) -> str:
    candidates = (*contraction.rows, *contraction.columns, contraction.summed[-1])
    return max(candidates, key=lambda name: _score(plan, contraction, name))


def _score(plan: Plan, contraction: Contraction, name: str) -> float:
    """How well a range does in lanes. Consecutive accesses speak for it; a factor read at a stride
    must be packed, which pays if many rows use the panel; scattered stores speak against it, and
    so does folding lanes; a range that fills few lanes counts less."""
    node = plan.kernel.leaves[name].node
    summed = name in contraction.summed
    score = -1.0 if summed else 0.0
    for access in _accesses(plan):
        step = access.stride(node)
        if access.is_store:
            score += 0 if summed else 2 if step == 1 else -3
        elif access.node in _loads_of(contraction) and step != 0:
            packed = 2 if _packable(plan, contraction, access, name) else -6
            score += (2 if summed else 4) if step == 1 else packed
    lanes = plan.target.lanes(contraction.statement.values[0].dtype)
    return score * min(1.0, upper(plan.kernel.leaves[name].extent) / lanes) if score > 0 else score


def _packable(plan: Plan, contraction: Contraction, access: Access, name: str) -> bool:
    """Whether a factor can be packed in panels along a range, and the panels are used enough."""
    other = contraction.rows if name in contraction.columns else contraction.columns
    if name in contraction.summed or points(plan.kernel, other) < PANEL_USES:
        return False
    return _axis(plan, access.node, name) is not None


def _axis(plan: Plan, load: Node, name: str) -> int | None:
    """The one axis of a load along which a range runs with step 1."""
    node = plan.kernel.leaves[name].node
    found = None
    for axis, place in enumerate(load.src[1 : 1 + load.arg]):
        place = plan.kernel.over_leaves(place)
        if place.free & node.free:
            if place is not node or found is not None:
                return None
            found = axis
    return found


def _accesses(plan: Plan) -> Iterator[Access]:
    for facts in plan.facts.values():
        yield from facts.accesses


def _loads_of(contraction: Contraction) -> set[Node]:
    return {n for n in toposort(contraction.statement.values) if n.op is ops.LOAD}


def _pack(plan: Plan, contraction: Contraction, lanes: str, tile: Tile, at: str) -> None:
    """Stages the factor that is read in lanes as a panel, where that pays."""
    bit = plan.kernel.leaves[f"{lanes}v"].bit
    before = Plan.unscheduled_load(plan, contraction.statement.name, bit)
    if before is None:
        return
    load, axis, wide = before
    caches = plan.target.cache_bytes
    large = upper(index.product(load.src[0].shape)) * load.dtype.itemsize > caches[1]
    if wide and not large:
        return
    layout = () if axis == load.arg - 1 else (*(a for a in range(load.arg) if a != axis), axis)
    plan.do(Stage(f"arg{load.src[0].arg[0]}", at, "panel", layout=layout))
    own = f"panel{axis}"
    plan.do(Split(own, f"{own}o", ((f"{own}v", tile.lanes),)))
    plan.do(vector(f"{own}v"))


# ---- tiles -----------------------------------------------------------------------------------------
def _pieces(size: int, piece: int) -> tuple[int, int]:
    """(whole pieces, rest)."""
    return size // piece, size % piece


def _cycles(rows: int, vectors: int, steps: int, dot: bool) -> float:
    """Cycles of one tile over all steps of the sum."""
    loads = (2 * rows if dot else rows) + 2 * vectors
    step = max(rows * vectors, loads / 2, 4.5) + 0.05 * rows + 0.05 * vectors + 0.3
    ending = (36 if dot else 2) * rows * vectors + 6 * rows + 20
    return steps * step + ending


def _best_tile(
    rows: int, columns: int, steps: int, lane_choices: Sequence[int], registers: int, dot: bool
) -> Tile:
    """The tile of least total cost, rests included."""
    best: tuple[float, Tile] | None = None
    for lanes in lane_choices:
        vectors_needed = -(-columns // lanes)
        for m in range(1, min(rows, 14) + 1):
            for v in range(1, min(vectors_needed, 4) + 1):
                if m * v + min(m, v) + 1 > registers - SPARE_REGISTERS:
                    continue
                whole_rows, rest_rows = _pieces(rows, m)
                whole, rest = _pieces(vectors_needed, v)
                total = whole_rows * whole * _cycles(m, v, steps, dot)
                total += whole_rows * _cycles(m, rest, steps, dot) if rest else 0
                total += whole * _cycles(rest_rows, v, steps, dot) if rest_rows else 0
                total += _cycles(rest_rows, rest, steps, dot) if rest and rest_rows else 0
                if best is None or total < best[0]:
                    best = (total, Tile(m, v, lanes))
    assert best is not None
    return best[1]


def _lane_choices(plan: Plan, contraction: Contraction, extent: Extent) -> list[int]:
    full = plan.target.lanes(contraction.statement.values[0].dtype)
    choices = [full]
    if full > 4 and isinstance(extent, int) and extent % full:
        choices.append(full // 2)
    return choices


def _size(extent: Extent) -> int:
    """An extent as the cost sees it: a symbolic one is taken to be large."""
    return extent if isinstance(extent, int) else min(upper(extent), 512)


def _outer_tiles(plan: Plan, contraction: Contraction, lanes: str) -> None:
    """Lanes along an output range."""
    leaves = plan.kernel.leaves
    row = max(contraction.rows, key=lambda name: upper(leaves[name].extent))
    steps = points(plan.kernel, contraction.summed)
    tile = _best_tile(
        _size(leaves[row].extent),
        _size(leaves[lanes].extent),
        steps,
        _lane_choices(plan, contraction, leaves[lanes].extent),
        plan.target.registers,
        dot=False,
    )
    order = [name for name in contraction.statement.order if name not in contraction.statement.reduced]
    _split_output(plan, lanes, tile.vectors, tile.lanes)
    row_outer = _split_rows(plan, row, tile.rows, lanes, contraction)
    summed = contraction.summed[-1]
    extent = leaves[summed].extent
    unrolled = _sum_steps(extent, tile.rows * tile.vectors)
    if unrolled > 1 and unrolled != extent:
        plan.do(Split(summed, f"{summed}o", ((f"{summed}u", unrolled),)))
        plan.do(unroll(f"{summed}u"))
        if not isinstance(extent, int) or extent % unrolled:
            plan.do(Tail(f"{summed}u", "mask"))
    small, large = (f"{lanes}u", f"{row}u") if tile.vectors <= tile.rows else (f"{row}u", f"{lanes}u")
    plan.do(unroll(large, small))
    plan.do(vector(f"{lanes}v"))
    _tasks(plan, contraction, order, {lanes: (f"{lanes}o",), row: row_outer})


def _split_output(plan: Plan, name: str, vectors: int, lanes: int) -> None:
    plan.do(Split(name, f"{name}o", ((f"{name}u", vectors), (f"{name}v", lanes))))


def _split_rows(
    plan: Plan, row: str, rows: int, lanes: str, contraction: Contraction
) -> tuple[str, ...]:
    """Cuts the rows in tiles, and the tiles in blocks where there would be too few tasks."""
    tiles = -(-upper(plan.kernel.leaves[row].extent) // rows)
    others = [n for n in (*contraction.rows, *contraction.columns, *contraction.batch) if n not in (row, lanes)]
    tasks = upper(plan.kernel.leaves[f"{lanes}o"].extent) * points(plan.kernel, others)
    blocks = -(-TASKS_PER_THREAD * plan.target.threads // tasks)
    per_block = -(-tiles // min(blocks, tiles))
    if blocks == 1 or per_block == 1:
        plan.do(Split(row, f"{row}o", ((f"{row}u", rows),)))
        return (f"{row}o",)
    plan.do(Split(row, f"{row}g", ((f"{row}o", per_block), (f"{row}u", rows))))
    return (f"{row}g", f"{row}o")


def _sum_steps(extent: Extent, products: int) -> int:
    """How many steps of the sum to write out: enough to hide the loop, few for large tiles."""
    steps = max(1, min(4, -(-PRODUCTS // max(1, products))))
    if not isinstance(extent, int):
        return 1
    while steps > 1 and extent % steps:
        steps -= 1
    return steps


def _dot_tiles(plan: Plan, contraction: Contraction, lanes: str) -> None:
    """Lanes along the sum."""
    leaves = plan.kernel.leaves
    row = max(contraction.rows, key=lambda name: upper(leaves[name].extent))
    column = max(contraction.columns, key=lambda name: upper(leaves[name].extent))
    width = plan.target.lanes(contraction.statement.values[0].dtype)
    steps = max(1, points(plan.kernel, contraction.summed) // width)
    tile = _best_tile(
        _size(leaves[row].extent),
        _size(leaves[column].extent),
        steps,
        [1],
        plan.target.registers,
        dot=True,
    )
    order = [name for name in contraction.statement.order if name not in contraction.statement.reduced]
    plan.do(Split(lanes, f"{lanes}o", ((f"{lanes}v", width),)))
    if not isinstance(leaves[lanes].extent, int):
        plan.do(Tail(f"{lanes}v", "mask"))
    plan.do(Split(column, f"{column}o", ((f"{column}u", tile.vectors),)))
    plan.do(Split(row, f"{row}o", ((f"{row}u", tile.rows),)))
    small, large = (column, row) if tile.vectors <= tile.rows else (row, column)
    plan.do(unroll(f"{large}u", f"{small}u"))
    plan.do(vector(f"{lanes}v"))
    _tasks(plan, contraction, order, {column: (f"{column}o",), row: (f"{row}o",)})


# ---- tasks -----------------------------------------------------------------------------------------
def _tasks(
    plan: Plan, contraction: Contraction, order: Sequence[str], outer: dict[str, tuple[str, ...]]
) -> None:
    """The grid: batch ranges, row blocks, column panels; inside a task, tiles of rows."""
    work = plan.work()
    names: list[str] = []
    for name in order:
        names.extend(outer.get(name, (name,)))
    inner = [n for leaves in outer.values() if len(leaves) > 1 for n in leaves[1:]]
    if not inner and work >= SERIAL_WORK:
        rows = next(iter(reversed(outer.values())))
        others = [n for n in names if n not in rows]
        if points(plan.kernel, others) >= TASKS_PER_THREAD * plan.target.threads:
            inner = list(rows)
    chosen = [n for n in names if n not in inner]
    if work >= SERIAL_WORK and chosen:
        plan.do(grid(*chosen))
    loops = [n for n in (*names, *inner) if n not in chosen] if work >= SERIAL_WORK else names
    plan.do(Reorder((*dict.fromkeys(loops), *_sum_loops(plan, contraction))))


def _sum_loops(plan: Plan, contraction: Contraction) -> list[str]:
    statement = plan.kernel.statement(contraction.statement.name)
    return [
        name
        for name in statement.order
        if name in statement.reduced and plan.kernel.leaves[name].kind == "loop"
    ]
