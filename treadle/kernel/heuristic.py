"""Which actions a kernel gets when nobody says: `heuristic(kernel, target) -> list[Action]`.

A `Plan` applies each action as it chooses it, so later choices see the kernel as it is by then. The
families: contractions (`contraction.py`) get register tiles; two of them over the same rows go
block by block (`blocks.py`); reductions over small windows are written out (`windows.py`);
everything else is loops over memory, here: also the product of a few vectors by a large matrix,
which is read once for all of them. For those, in this order:

    merge     adjacent ranges that are contiguous in every access become one
    lanes     each statement gets the range that has stride 1 in most of its accesses
    tasks     leading parallel ranges, in pieces of enough work
    columns   a reduction over rows with lanes along them takes several whole rows at a time
    unroll    several vectors at once; reductions with an accumulator each

`WAYS` are the ways to choose, the best first. A list that an action or lowering refuses is a fault
of its way, and no reason to fail: `pipeline.py` takes the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from treadle.backend.base import Target
from treadle.kernel import blocks, contraction, matrices, stream, windows
from treadle.kernel.actions import (
    Action,
    Place,
    Reorder,
    Split,
    Tail,
    grid,
    unroll,
    vector,
)
from treadle.kernel.analysis import Facts, points, upper
from treadle.kernel.choice import Contraction
from treadle.kernel.cooperate import Cooperate, CooperateTasks
from treadle.kernel.kernel import Extent, Kernel, ScheduleError, Stmt, kept
from treadle.kernel.layout import layouts
from treadle.kernel.merge import merge
from treadle.kernel.plan import FEW_TASKS, SERIAL_WORK, TASK_MEMORY, TASK_WORK, Plan
from treadle.kernel.sieve import sieves
from treadle.kernel.stage import Keep
from treadle.kernel.traffic import (
    ask_ahead,
    moved_bytes,
    past_caches,
    second_cache,
    stream_loads,
    stream_stores,
)

CHUNK = 65_536  # elements of a task of a flat loop over much memory
COLUMN_TILE = 4096  # columns whose accumulators stay in the first cache
ROWS_AT_ONCE = 8
KEEP_COST = 8  # additions that make a value worth a store and a load


Way = Callable[[Plan], None]


def heuristic(kernel: Kernel, target: Target) -> list[Action]:
    """The actions for a kernel as `build` makes it, on this target."""
    return schedule(kernel, target).actions


def schedule(
    kernel: Kernel,
    target: Target,
    way: Way | None = None,
    unchanging: frozenset[int] = frozenset(),
) -> Plan:
    """The kernel scheduled by the heuristic, with the actions that did it.

    way: one of `WAYS`, the first unless it is named. unchanging: the positions of buffers that hold
    the same at every call. ScheduleError if an action refuses.
    """
    plan = Plan(kernel, target, unchanging)
    (way or WAYS[0])(plan)
    if not _settle(plan):  # a task needs more memory than there is: one loop after the other
        plan = Plan(kernel, target, unchanging)
        _settle(plan)
    return plan


def _choose(plan: Plan) -> None:
    work = _merge(plan)
    chain = blocks.find(plan)
    if chain is not None and blocks.schedule(plan, chain):
        return
    found = find_contraction(plan)
    if found is None:
        small = windows.find(plan)
        if small is not None:
            windows.schedule(plan, small)
        else:
            _over_memory(plan, work)
        return
    lanes = choose_lanes(plan)
    few = stream.few_rows(plan, found, lanes)
    if few:
        plan.do(unroll(*few))
        _in_lanes(plan, lanes, work)
        return
    tiled = matrices.choose(plan, found)
    if tiled is None or not plan.attempt(lambda: matrices.schedule(plan, found, tiled)):
        contraction.schedule(plan, found)


def _loops(plan: Plan) -> None:
    """Loops over memory, whatever the kernel is."""
    _over_memory(plan, _merge(plan))


def _as_built(plan: Plan) -> None:
    """One loop after the other."""


WAYS: tuple[Way, ...] = (_choose, _loops, _as_built)


def _over_memory(plan: Plan, work: int) -> None:
    keep_dear_values(plan)
    lanes = choose_lanes(plan)
    if not stream.rows_at_once(plan, lanes):
        _in_lanes(plan, lanes, work)


def _in_lanes(plan: Plan, lanes: dict[str, int], work: int) -> None:
    if by_columns(plan, lanes, work):
        return
    choose_tasks(plan, lanes, work)
    for leaf in lanes:
        split_lanes(plan, leaf, lanes[leaf], work)
    ask_ahead(plan)


def _merge(plan: Plan) -> int:
    """Merges what can be; returns the additions of the kernel as it was built."""
    work = plan.work()
    merge(plan, list(plan.kernel.leaves))
    if plan.actions:
        plan.note_facts()
    return work


def _settle(plan: Plan) -> bool:
    """Moves scratch buffers that are too large for a stack to memory of the caller's. False if a
    task has one of its own."""
    sizes = layouts(plan.kernel)
    for scratch in list(plan.kernel.scratch.values()):
        if scratch.scope != "thread" or scratch.name not in sizes:
            continue
        if upper(sizes[scratch.name].size) * scratch.node.dtype.itemsize > TASK_MEMORY:
            try:
                plan.do(Place(scratch.name, "root"))
            except ScheduleError:
                return False
    return True


def find_contraction(plan: Plan) -> Contraction | None:
    """The contraction that a kernel is. If only every n-th term of its sum counts, it goes over
    those alone, with the remainders that tell which outermost."""
    before = plan.kernel, list(plan.actions)
    remainders = []
    for sieve in sieves(plan.kernel):
        try:
            plan.do(sieve)
        except ScheduleError:
            continue  # a part of the last multiple would be left over
        remainders.append(f"{sieve.leaf}r")
    if remainders:
        results = kept(plan.kernel.statements[0])
        plan.do(Reorder((*remainders, *(name for name in results if name not in remainders))))
        plan.note_facts()
    found = contraction.find(plan)
    if remainders and found is None:
        plan.kernel, plan.actions = before
        plan.note_facts()
    return found


# ---- keep ----------------------------------------------------------------------------------------
def keep_dear_values(plan: Plan) -> None:
    """Stores a value that is dear and needed again in a later loop of its row (the exponentials of
    a softmax), where the row stays in the first cache."""
    for statement in plan.kernel.statements:
        if not statement.reduced or plan.facts[statement.name].cost < KEEP_COST:
            continue
        row = points(plan.kernel, [n for n in statement.order if n in statement.reduced])
        if row * statement.values[0].dtype.itemsize > plan.target.cache_bytes[0]:
            continue
        try:
            plan.do(Keep(statement.name, f"{statement.name}_row"))
        except ScheduleError:
            continue  # nothing later computes the same
    plan.note_facts()


# ---- lanes ---------------------------------------------------------------------------------------
def choose_lanes(plan: Plan) -> dict[str, int]:
    """leaf -> lanes, at most one leaf in each statement, the heaviest statements first."""
    chosen: dict[str, int] = {}
    if plan.target.vector_bytes == 0:
        return chosen
    by_weight = sorted(plan.kernel.statements, key=lambda s: -points(plan.kernel, s.order))
    taken: set[str] = set()  # statements that have lanes
    for statement in by_weight:
        if statement.name in taken:
            continue
        scores = {name: _lane_score(plan, statement, name) for name in statement.order}
        free = [
            name
            for name in reversed(statement.order)
            if scores[name] > 0 and not any(s.name in taken for s in plan.users(name))
        ]
        if free:
            leaf = max(free, key=scores.__getitem__)
            chosen[leaf] = _lane_count(plan, leaf)
            taken |= {s.name for s in plan.users(leaf)}
    return chosen


def _lane_score(plan: Plan, statement: Stmt, name: str) -> int:
    """How well a range does in lanes: consecutive accesses speak for it, scattered ones against."""
    leaf = plan.kernel.leaves[name]
    if leaf.extent == 1 or name in plan.serial:
        return -1
    score = 0
    for access in plan.facts[statement.name].accesses:
        step = access.stride(leaf.node)
        if step == 1:
            score += 2
        elif step != 0:
            score -= 1 if access.is_store else 2
    return score


def _lane_count(plan: Plan, name: str) -> int:
    narrowest = min(
        (a.dtype_bytes for s in plan.users(name) for a in plan.facts[s.name].accesses), default=4
    )
    lanes = plan.target.vector_bytes // max(narrowest, 4)
    extent = plan.kernel.leaves[name].extent
    while isinstance(extent, int) and lanes // 2 >= extent:
        lanes //= 2
    return max(lanes, 2)


# ---- tasks ---------------------------------------------------------------------------------------
def _parallel_prefix(plan: Plan) -> list[str]:
    """The leading ranges that all statements share and none reduces."""
    first, *others = plan.kernel.statements
    prefix: list[str] = []
    for position, name in enumerate(first.order):
        if any(s.order[position : position + 1] != (name,) for s in others):
            break
        if plan.reduced(name) or name in plan.serial:
            break
        prefix.append(name)
    return prefix


def choose_tasks(plan: Plan, lanes: dict[str, int], work: int) -> None:
    """Puts leading parallel ranges into the grid, or cuts a reduction."""
    if work < SERIAL_WORK:
        return
    prefix = _parallel_prefix(plan)
    wanted = max(plan.target.min_parallel, 2)
    scalar = [name for name in prefix if name not in lanes]
    tasks = points(plan.kernel, scalar)
    columns = [name for name in prefix if name in lanes]
    if tasks >= wanted or (tasks > 1 and not columns):
        _grid_rows(plan, scalar, work)
    elif not columns or points(plan.kernel, columns) * tasks < wanted * 64:
        _cut_reduction(plan, lanes, work)


def _grid_rows(plan: Plan, prefix: Sequence[str], work: int) -> None:
    """Whole ranges while there is enough work in a task, then a piece of the next."""
    chosen: list[str] = []
    tasks = 1
    for name in prefix:
        extent = plan.kernel.leaves[name].extent
        size = upper(extent)
        if work // (tasks * size) >= TASK_WORK:
            chosen.append(name)
            tasks *= size
            continue
        rows = -(-TASK_WORK * tasks * size // work)
        rows = min(rows, -(-size // 2)) if tasks == 1 else rows
        rows = _even(rows, size) if isinstance(extent, int) else rows
        if rows < size:
            plan.do(Split(name, f"{name}g", ((f"{name}r", rows),)))
            chosen.append(f"{name}g")
        break
    if chosen:
        plan.do(grid(*chosen))


def _even(piece: int, size: int) -> int:
    """A length near `piece` that divides `size`, so that no rest needs code of its own; `piece` if
    there is none between its half and its double."""
    near = range(max(1, piece // 2), min(2 * piece, size // 2) + 1)
    return min((n for n in near if size % n == 0), key=lambda n: abs(n - piece), default=piece)


def _cut_reduction(plan: Plan, lanes: dict[str, int], work: int) -> None:
    """The outermost reduction in tasks of a fixed size."""
    first = plan.kernel.statements[0]
    if not first.order:
        return
    name = first.order[0]
    if not plan.reduced(name) or name in plan.serial:
        return
    if any(s.order and s.order[0] != name for s in plan.kernel.statements if s.reduced):
        return
    size = upper(plan.kernel.leaves[name].extent)
    per_point = max(1, work // max(1, size))
    piece = max(1, 2 * TASK_WORK // per_point)
    tile = lanes.get(name, 1) * (ROWS_AT_ONCE if name in lanes else 1)
    piece = -(-piece // tile) * tile
    if piece * 2 > size:
        return
    plan.do(Split(name, f"{name}g", ((f"{name}p", piece),)))
    plan.do(CooperateTasks(f"{name}g", f"{name}t"))
    if name in lanes:
        lanes[f"{name}p"] = lanes.pop(name)


# ---- columns -------------------------------------------------------------------------------------
def by_columns(plan: Plan, lanes: dict[str, int], work: int) -> bool:
    """Reductions whose lanes lie along the results, and whose rows are far apart: each pass takes a
    few whole rows, with the accumulators of many columns in the first cache. Walking one column
    block down all rows would touch a page for every vector."""
    reductions = [s for s in plan.kernel.statements if s.reduced]
    prefix = _parallel_prefix(plan)
    if len(lanes) != 1 or not reductions or not prefix or prefix[-1] not in lanes:
        return False
    name, width = next(iter(lanes.items()))
    written_out = plan.unrolled(reductions[0])
    rows = [n for n in reductions[0].order[len(prefix) :] if n not in written_out]
    if any(s.order != reductions[0].order for s in reductions) or len(rows) != 1:
        return False
    endings = (*prefix, *written_out)
    if any(s.order != endings for s in plan.kernel.statements if not s.reduced):
        return False
    sums = points(plan.kernel, written_out)
    (row,) = rows
    columns = upper(plan.kernel.leaves[name].extent)
    if work < SERIAL_WORK * 4 or columns < 8 * width or not plan.reduced(row):
        return False
    scalar = prefix[:-1]
    tasks = points(plan.kernel, scalar)
    together = max(1, (4 if moved_bytes(plan) > second_cache(plan) else 2) // sums)
    tile = width * together
    wanted = plan.target.threads
    piece = min(COLUMN_TILE // sums, max(tile, columns * tasks // wanted))
    piece = piece // tile * tile
    parts = ((f"{name}m", piece // tile), (f"{name}u", together), (f"{name}v", width))
    plan.do(Split(name, f"{name}g", parts))
    at_once = row
    most_tasks = tasks * -(-columns // tile)
    if most_tasks < FEW_TASKS and upper(plan.kernel.leaves[row].extent) >= 8 * ROWS_AT_ONCE:
        at_once = _cut_rows(plan, row, -(-2 * FEW_TASKS // most_tasks))
    extent = plan.kernel.leaves[at_once].extent
    steps = min(ROWS_AT_ONCE, upper(extent))
    if steps > 1:
        plan.do(Split(at_once, f"{at_once}o", ((f"{at_once}u", steps),)))
        plan.do(unroll(f"{at_once}u", *written_out, f"{name}u"))
        if not isinstance(extent, int) or extent % steps:
            plan.do(Tail(f"{at_once}u", "mask"))
    plan.do(vector(f"{name}v"))
    if not isinstance(plan.kernel.leaves[f"{name}g"].extent, int) or columns % tile:
        plan.do(Tail(f"{name}v", "mask"))
    plan.do(grid(*scalar, f"{name}g"))
    plan.do(Reorder((f"{at_once}o" if steps > 1 else at_once, f"{name}m")))
    return True


def _cut_rows(plan: Plan, row: str, pieces: int) -> str:
    """The rows in pieces that are tasks; returns the leaf of the rows of a piece."""
    size = upper(plan.kernel.leaves[row].extent)
    piece = -(-size // pieces)
    piece = -(-piece // ROWS_AT_ONCE) * ROWS_AT_ONCE
    plan.do(Split(row, f"{row}g", ((f"{row}p", piece),)))
    plan.do(Reorder((f"{row}g", *(n for n in plan.kernel.statements[0].order if n != f"{row}g"))))
    plan.do(CooperateTasks(f"{row}g", f"{row}t"))
    return f"{row}p"


def _facts(plan: Plan, statement: Stmt) -> Facts:
    """What was noted about a statement, before its reduction was cut in tasks."""
    return plan.facts[statement.name.removesuffix("_tasks")]


# ---- lanes and unrolling -------------------------------------------------------------------------
def split_lanes(plan: Plan, name: str, lanes: int, work: int) -> None:
    """A range in lanes: vectors, several at once, and a grid leaf where it is to give the tasks."""
    leaf = plan.kernel.leaves[name]
    cost = sum(_facts(plan, s).cost for s in plan.users(name))
    reduces = plan.reduced(name)
    count = 1 if _gathers(plan, name) else _unrolled(leaf.extent, lanes, cost, work)
    if reduces and any(plan.unrolled(statement) for statement in plan.users(name)):
        count = min(count, 2)  # each row that is written out has accumulators of its own
    parts = [(f"{name}v", lanes)]
    loop = f"{name}o"
    if count > 1:
        parts.insert(0, (f"{name}u", count))
    tile = lanes * count
    outer = f"{name}o"
    gridded = any(
        s.order and plan.kernel.leaves[s.order[0]].kind == "grid" for s in plan.users(name)
    )
    tasks = work >= SERIAL_WORK and not gridded and not reduces and name in _parallel_prefix(plan)
    if tasks:
        piece = _piece(plan, name, work, tile)
        if piece > tile:
            loop = f"{name}m"
            parts.insert(0, (loop, piece // tile))
            outer = f"{name}g"
    plan.do(Split(name, outer, tuple(parts)))
    if tasks:
        plan.do(grid(outer))
    if count > 1:
        plan.do(unroll(f"{name}u"))
        if reduces:
            plan.do(Cooperate(f"{name}u"))
    plan.do(vector(f"{name}v"))
    extent = leaf.extent
    if not isinstance(extent, int) or (count > 1 and extent > tile and extent % tile):
        plan.do(Tail(f"{name}v", "mask"))
    if not past_caches(plan):
        return
    stream_stores(plan, name)
    stream_loads(plan, name, loop, tile)


def _gathers(plan: Plan, name: str) -> bool:
    """Whether lanes along a range are read one by one: enough independent loads in one vector."""
    node = plan.kernel.leaves[name].node
    accesses = (a for s in plan.users(name) for a in _facts(plan, s).accesses)
    return any(not a.is_store and a.stride(node) not in (0, 1) for a in accesses)


def _unrolled(extent: Extent, lanes: int, cost: int, work: int) -> int:
    """How many vectors at once: more for cheap values, a number that divides if there is one."""
    most = 8 if cost <= 8 else 4 if cost <= 24 else 2
    if work < SERIAL_WORK:
        most = 1
    if not isinstance(extent, int):
        return min(most, 4)
    vectors = -(-extent // lanes)
    if vectors <= most:
        return max(1, vectors)
    if extent % lanes == 0:
        for count in range(most, most // 2, -1):
            if vectors % count == 0:
                return count
    return min(most, 4)


def _piece(plan: Plan, name: str, work: int, tile: int) -> int:
    """Elements of a task along a range that is in lanes: a multiple of the tile."""
    size = max(1, upper(plan.kernel.leaves[name].extent))
    per_point = max(1, work // size)
    piece = max(TASK_WORK // per_point, min(CHUNK, size // 16))
    return max(1, piece // tile) * tile
