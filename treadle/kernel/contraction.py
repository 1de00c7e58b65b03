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
from dataclasses import dataclass, replace

from treadle.ir import index, ops
from treadle.ir.node import Node, toposort
from treadle.kernel.actions import Reorder, Split, grid, unroll, vector
from treadle.kernel.analysis import Access, points, upper
from treadle.kernel.kernel import Extent, Stmt
from treadle.kernel.plan import SERIAL_WORK, Plan
from treadle.kernel.stage import Stage, stage_name

PANEL_USES = 36  # rows that make packing a panel worth while
PANEL_COLUMNS = 64
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

    @property
    def outputs(self) -> tuple[str, ...]:
        """The leaves of the result, in the order of the statement."""
        return tuple(n for n in self.statement.order if n not in self.statement.reduced)


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
        contraction = replace(contraction, rows=contraction.columns, columns=contraction.rows)
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


def _packing(plan: Plan, contraction: Contraction, lanes: str) -> tuple[str, int, int] | None:
    """(buffer, its axis in lanes, number of axes) of the factor to be packed in panels: one that is
    read at a stride, or that does not stay in the second cache."""
    node = plan.kernel.leaves[lanes].node
    facts = plan.facts[contraction.statement.name]
    moving = [a for a in facts.accesses if a.stride(node) != 0]
    if len(moving) != 1 or points(plan.kernel, contraction.rows) < PANEL_USES:
        return None
    load = moving[0].node
    axis = _axis(plan, load, lanes)
    nbytes = upper(index.product(load.src[0].shape)) * load.dtype.itemsize
    if axis is None or (moving[0].stride(node) == 1 and nbytes <= plan.target.cache_bytes[1]):
        return None
    panel = points(plan.kernel, contraction.summed) * load.dtype.itemsize * PANEL_COLUMNS
    return (stage_name(plan.kernel, load), axis, load.arg) if panel <= plan.target.cache_bytes[1] else None


def _pack(plan: Plan, packing: tuple[str, int, int], lanes: str, width: int) -> None:
    """Stages a panel in every task, the axis in lanes innermost."""
    buffer, axis, axes = packing
    layout = () if axis == axes - 1 else (*(a for a in range(axes) if a != axis), axis)
    plan.do(Stage(buffer, f"{lanes}o", "panel", layout=layout))
    own = f"panel{axis}"
    plan.do(Split(own, f"{own}o", ((f"{own}v", width),)))
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
    packing = _packing(plan, contraction, lanes)
    tile = _best_tile(
        _size(leaves[row].extent),
        _size(leaves[lanes].extent),
        points(plan.kernel, contraction.summed),
        _lane_choices(plan, contraction, leaves[lanes].extent),
        plan.target.registers,
        dot=False,
    )
    plan.do(Split(lanes, f"{lanes}o", ((f"{lanes}u", tile.vectors), (f"{lanes}v", tile.lanes))))
    others = [name for name in contraction.outputs if name not in (row, lanes)]
    blocks = _split_rows(plan, row, tile.rows, [*others, f"{lanes}o"])
    summed = contraction.summed[-1]
    extent = leaves[summed].extent
    steps = _sum_steps(extent, tile.rows * tile.vectors)
    if steps > 1 and steps != extent:
        plan.do(Split(summed, f"{summed}o", ((f"{summed}u", steps),)))
        plan.do(unroll(f"{summed}u"))
    elif steps > 1:
        plan.do(unroll(summed))
    _unroll_tile(plan, f"{row}u", f"{lanes}u", tile)
    plan.do(vector(f"{lanes}v"))
    _tasks(plan, contraction, [*others, *blocks, f"{lanes}o"], f"{row}o")
    if packing is not None:
        _pack(plan, packing, lanes, tile.lanes)


def _unroll_tile(plan: Plan, rows: str, columns: str, tile: Tile) -> None:
    """The operands of the axis that is unrolled innermost stay in registers: the smaller one."""
    plan.do(unroll(rows, columns) if tile.vectors <= tile.rows else unroll(columns, rows))


def _split_rows(plan: Plan, row: str, rows: int, others: Sequence[str]) -> tuple[str, ...]:
    """Cuts the rows in tiles, and the tiles in blocks where the rest gives too few tasks. Returns
    the block's leaf."""
    tiles = -(-upper(plan.kernel.leaves[row].extent) // rows)
    tasks = points(plan.kernel, others)
    blocks = min(tiles, -(-TASKS_PER_THREAD * plan.target.threads // tasks))
    per_block = -(-tiles // blocks)
    if blocks == 1:
        plan.do(Split(row, f"{row}o", ((f"{row}u", rows),)))
        return ()
    plan.do(Split(row, f"{row}g", ((f"{row}o", per_block), (f"{row}u", rows))))
    return (f"{row}g",)


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
    plan.do(Split(lanes, f"{lanes}o", ((f"{lanes}v", width),)))
    plan.do(Split(column, f"{column}o", ((f"{column}u", tile.vectors),)))
    others = [name for name in contraction.outputs if name not in (row, column)]
    blocks = _split_rows(plan, row, tile.rows, [*others, f"{column}o"])
    _unroll_tile(plan, f"{row}u", f"{column}u", tile)
    plan.do(vector(f"{lanes}v"))
    _tasks(plan, contraction, [*others, *blocks, f"{column}o"], f"{row}o")


# ---- tasks -----------------------------------------------------------------------------------------
def _tasks(plan: Plan, contraction: Contraction, outer: Sequence[str], tiles: str) -> None:
    """Batch ranges, row blocks and column panels are tasks; inside one run the tiles of the rows,
    and in a tile the sum."""
    statement = plan.kernel.statement(contraction.statement.name)
    sums = [
        name
        for name in statement.order
        if name in statement.reduced and plan.kernel.leaves[name].kind == "loop"
    ]
    if plan.work() >= SERIAL_WORK:
        plan.do(grid(*outer))
        plan.do(Reorder((tiles, *sums)))
    else:
        plan.do(Reorder((*outer, tiles, *sums)))
