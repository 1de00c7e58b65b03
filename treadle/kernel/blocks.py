"""Kernels of two contractions over the same rows, with loops over a row between: attention.

    scores[j, k] = sum over m of queries[j, m] * keys[k, m]
    loops over k for each j: a maximum, exponentials and their sum
    totals[j, n] = sum over k of powers[j, k] * values[k, n]

A task takes a block of rows: it computes the block's scores as a tile-by-tile product, goes over
them row by row, and multiplies the block with the values. The scores of a block stay in the second
cache, and in a causal kernel every loop ends at the block's diagonal. No carried rescaling is
needed until a row of scores no longer fits there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from treadle.ir import index, ops
from treadle.ir.node import Node
from treadle.kernel.actions import Reorder, Split, grid, unroll, vector
from treadle.kernel.analysis import points
from treadle.kernel.bound import Bound
from treadle.kernel.contraction import SPARE_REGISTERS
from treadle.kernel.cooperate import Cooperate
from treadle.kernel.kernel import Stmt, loads, shared_prefix
from treadle.kernel.layout import buffer_offset
from treadle.kernel.plan import FEW_TASKS, SERIAL_WORK, Plan
from treadle.kernel.retile import Fission
from treadle.kernel.stage import Keep, Stage, stage_name

MOST_ROWS = 32  # rows of a block
VECTORS = 4  # of a tile


@dataclass(frozen=True)
class Chain:
    """scores, totals: the contractions. folds: the reductions of a row between them. outer: the
    loops around all, the rows innermost. key: the leaf of a row in the scores; summed: in the
    totals; column: the leaf of the totals that is no row."""

    scores: Stmt
    folds: tuple[Stmt, ...]
    totals: Stmt
    outer: tuple[str, ...]
    key: str
    summed: str
    column: str


def find(plan: Plan) -> Chain | None:
    """The chain that a kernel is, if it is one."""
    if plan.serial or not plan.target.vector_bytes:
        return None
    outer = shared_prefix([s.order for s in plan.kernel.statements])
    sums = [s for s in plan.kernel.statements if _is_contraction(s)]
    others = [s for s in plan.kernel.statements if s.reduced and s not in sums]
    if len(sums) != 2 or not outer or any(plan.reduced(name) for name in outer):
        return None
    scores, totals = sums
    folds = tuple(s for s in others if set(s.order) - s.reduced == set(outer))
    keys = [name for name in scores.order[len(outer) :] if name not in scores.reduced]
    columns = [name for name in totals.order[len(outer) :] if name not in totals.reduced]
    if len(folds) != len(others) or len(keys) != 1 or len(columns) != 1 or len(totals.reduced) != 1:
        return None
    (summed,) = totals.reduced
    if any(not isinstance(plan.kernel.leaves[n].extent, int) for n in (outer[-1], *keys, summed)):
        return None
    return Chain(scores, folds, totals, outer, keys[0], summed, columns[0])


def _is_contraction(statement: Stmt) -> bool:
    value = statement.values[0]
    return statement.monoid == "add" and value.op is ops.MUL and value.dtype.is_float


def schedule(plan: Plan, chain: Chain) -> bool:
    """Blocks of rows as tasks, and loops of its own for each part. False, with the plan as it was,
    if the kernel does not fit."""
    return plan.attempt(lambda: _schedule(plan, chain))


def _schedule(plan: Plan, chain: Chain) -> None:
    width = plan.target.lanes(chain.scores.values[0].dtype)
    length = index.as_int(plan.kernel.leaves[chain.key].extent)
    row = chain.outer[-1]
    rows = _rows(plan, chain, length)
    parallel = plan.work() >= SERIAL_WORK
    vectors = next((n for n in (VECTORS, 2, 1) if length % (n * width) == 0), VECTORS)
    first, kept = chain.folds[0], next(s for s in reversed(chain.folds) if s.monoid == "add")
    if first is not kept and any(n.op is ops.WHERE for n in plan.facts[first.name].nodes):
        plan.do(Keep(first.name, f"{first.name}_row"))  # what a mask selects is selected once
    plan.do(Keep(kept.name, f"{kept.name}_row"))
    plan.do(Split(row, f"{row}o", ((f"{row}b", rows),)))
    plan.do(Fission(chain.scores.name, f"{row}o", "s"))
    plan.do(Fission(chain.totals.name, f"{row}o", "t"))
    key = _inner(plan, chain.scores.name, f"s{row}")[0]
    over_rows = [_inner(plan, fold.name, f"{row}b")[0] for fold in chain.folds]
    _end_at_diagonal(plan, f"{row}o", vectors * width, (chain.summed, *over_rows[::-1], key))
    _tile(plan, f"s{row}", key, rows, vectors, "panel")
    if parallel:
        plan.do(grid(*chain.outer[:-1], f"{row}o"))
    _tile(plan, f"t{row}", chain.column, rows, VECTORS, "values")
    for leaf in dict.fromkeys(over_rows):
        _in_lanes(plan, leaf, vectors, width)
    for statement in plan.kernel.statements:
        if statement.is_store and _contiguous(plan, statement):
            _in_lanes(plan, statement.order[-1], 1, width)


def _rows(plan: Plan, chain: Chain, length: int) -> int:
    """Rows of a block: as many as leave room in the second cache, and tasks enough; a number that
    divides if there is one."""
    count = index.as_int(plan.kernel.leaves[chain.outer[-1]].extent)
    row_bytes = 2 * length * chain.scores.values[0].dtype.itemsize  # scores, and what is kept
    most = max(1, min(MOST_ROWS, plan.target.cache_bytes[1] // 2 // row_bytes, count))
    others = points(plan.kernel, chain.outer[:-1])
    while most > 1 and others * -(-count // most) < FEW_TASKS:
        most //= 2
    return next((n for n in range(most, most // 2, -1) if count % n == 0), most)


def _inner(plan: Plan, statement: str, leaf: str) -> tuple[str, ...]:
    """The leaves of a statement inside one of them."""
    order = plan.kernel.statement(statement).order
    return order[order.index(leaf) + 1 :]


def _end_at_diagonal(plan: Plan, at: str, step: int, leaves: Sequence[str]) -> None:
    """Ends loops over a row where nothing more counts, if all of them can end there. What is read
    last comes first."""

    def bound() -> None:
        for leaf in dict.fromkeys(leaves):
            plan.do(Bound(leaf, at, step))

    plan.attempt(bound)


def _tile(plan: Plan, row: str, column: str, rows: int, vectors: int, name: str) -> None:
    """A register tile of a contraction: rows against vectors of columns."""
    (statement,) = [s for s in plan.users(row) if column in s.order]
    width = plan.target.lanes(statement.values[0].dtype)
    size = index.bounds(index.as_node(plan.kernel.leaves[column].extent))[1]
    vectors = min(vectors, -(-size // width))
    free = plan.target.registers - SPARE_REGISTERS
    at_once = max(
        n
        for n in range(1, rows + 1)
        if rows % n == 0 and (n * vectors + min(n, vectors) < free or n == 1)
    )
    load = _moving(plan, statement, column)
    if load is not None:
        _stage(plan, load, column, vectors, width, name)
    tile = ((f"{column}u", vectors), (f"{column}v", width))
    plan.do(Split(column, f"{column}o", tile))
    plan.do(Split(row, f"{row}o", ((f"{row}u", at_once),)))
    plan.do(unroll(f"{row}u", f"{column}u"))
    plan.do(vector(f"{column}v"))
    sums = [n for n in plan.kernel.statement(statement.name).order if n in statement.reduced]
    plan.do(Reorder((f"{column}o", f"{row}o", *sums)))


def _moving(plan: Plan, statement: Stmt, column: str) -> Node | None:
    """The load of a buffer that moves with the columns, unless it is contiguous along them."""
    node = plan.kernel.leaves[column].node
    for load in loads(statement):
        if isinstance(load.src[0].arg[0], int):
            place = load.src[1 : 1 + load.arg]
            offset = plan.kernel.over_leaves(buffer_offset(load.src[0], place))
            if offset.free & node.free and index.coefficient(offset, node) != 1:
                return load
    return None


def _stage(plan: Plan, load: Node, column: str, vectors: int, width: int, name: str) -> None:
    """Packs a factor in panels as wide as the tile, once for all tasks."""
    node = plan.kernel.leaves[column].node
    places = [plan.kernel.over_leaves(i) for i in load.src[1 : 1 + load.arg]]
    (axis,) = [a for a, place in enumerate(places) if place.free & node.free]
    layout = (*(a for a in range(load.arg) if a != axis), axis)
    buffer = stage_name(plan.kernel, load)
    plan.do(Stage(buffer, "root", name, "root", layout, block=vectors * width))
    own = f"{name}{axis}"
    plan.do(Split(own, f"{own}o", ((f"{own}u", vectors), (f"{own}v", width))))
    plan.do(vector(f"{own}v"))
    plan.do(grid(f"{own}o"))


def _contiguous(plan: Plan, statement: Stmt) -> bool:
    """Whether the last loop around a store walks its buffer element by element."""
    node = plan.kernel.leaves[statement.order[-1]].node
    offset = plan.kernel.over_leaves(buffer_offset(statement.targets[0], statement.index))
    return index.coefficient(offset, node) == 1


def _in_lanes(plan: Plan, leaf: str, vectors: int, width: int) -> None:
    """A loop in lanes, several vectors at once; reductions with an accumulator each."""
    size = index.bounds(index.as_node(plan.kernel.leaves[leaf].extent))[1]
    if size < width:
        return
    plan.do(Split(leaf, f"{leaf}o", ((f"{leaf}u", vectors), (f"{leaf}v", width))))
    plan.do(unroll(f"{leaf}u"))
    if plan.reduced(f"{leaf}u"):
        plan.do(Cooperate(f"{leaf}u"))
    plan.do(vector(f"{leaf}v"))
