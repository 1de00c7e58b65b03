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
from functools import cache, partial
from math import gcd, inf

from treadle import host
from treadle.backend.base import Target
from treadle.ir import index, ops
from treadle.ir.node import Node
from treadle.kernel.analysis import Access, points, upper
from treadle.kernel.choice import Choice, Contraction, Tile, guard_of, stored_along
from treadle.kernel.dot import dot_for
from treadle.kernel.kernel import Extent
from treadle.kernel.kernel import kept as kept_leaves
from treadle.kernel.narrow import grouped, is_narrow
from treadle.kernel.plan import Plan
from treadle.kernel.sieve import in_steps, is_limit
from treadle.kernel.split_k import Cut, find_cut
from treadle.kernel.tiles import SUM_BLOCK, by_rows, tile

SPARE_REGISTERS = 1  # beside accumulators, one row of operands and one spread number
CONTIGUOUS = 0.2  # cycles to pack an element in its order
KEPT = 0.5  # what it must save to pack an element once and keep it: it takes memory
TRANSPOSED = 3.0  # cycles to pack an element against its order
STORE_APART = 1.6  # cycles to store an element by loops of its own
LINE = 64  # bytes of a cache line
PANEL_ROWS = 96  # rows for which packing what is contiguous already pays
NARROW_ROWS = 16  # the same of what is put in groups, or converted, on the way
APART_CODE = 20_000.0  # cycles that the code of a store apart costs
ROWS_PACKED = 1.5  # cycles to pack an element of the rows
CONFLICT = 2.0  # what rows cost that push each other out of the first cache
ACROSS = 2.0  # cycles to read an element from memory across its rows: few loads are under way then
SCATTERED = 4.0  # cycles to store an element alone
REST = 2000.0  # cycles that the code of a rest costs, per vector of the tile
RESTS = 16  # times at most that it counts: it is compiled once, but entered each time
MASKED = 1.2  # what masks on the vectors of both factors cost
GUARDED = 1.8  # what a factor costs whose vectors are read under a guard
CUT_STEPS = 4096  # of a sum: the panels of shorter ones stay in the second cache
CUT_ROWS = 128  # for which packing a panel in every call is little beside the products
ADDED = 2.0  # cycles to add a vector of a sum's parts to another
ALONE = 16.0  # what a factor costs that is gathered at every use
EXPOSED = 1.7  # cycles of a step that a second product in a cycle leaves no time to hide
EXPOSED_ROW = 0.15  # the same of each row of a tile


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
    outputs = kept_leaves(statement)
    if any(
        kept_leaves(s) != outputs or s.order[: len(outputs)] != outputs
        for s in plan.kernel.statements
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
    tile(plan, min(_choices(plan, contraction), key=lambda choice: choice.cycles))


# ---- choices -------------------------------------------------------------------------------------
def _choices(plan: Plan, contraction: Contraction) -> Iterator[Choice]:
    sides = (contraction, contraction.turned())
    kept = any(_is_unchanging(plan, side.second) for side in sides)
    cut = None if kept else _cut(plan, contraction)
    dear = [side for side in sides if cut and _packs_little(plan, side)]
    for side in dear or sides:
        for lanes in (name for name in side.columns if not in_steps(plan.kernel, name)):
            for row in side.rows:
                yield _outer_choice(plan, side, lanes, row, cut if dear else None)
    dot = _dot_choice(plan, contraction, cut)
    if dot is not None:
        yield dot


def _is_unchanging(plan: Plan, loads: Sequence[Access]) -> bool:
    """Whether something is read, and all of it is the same at every call."""
    buffers = [load.node.src[0] for load in loads]
    same = [b.op is ops.ARG and b.arg[0] in plan.unchanging for b in buffers]
    return bool(same) and all(same)


def _cut(plan: Plan, contraction: Contraction) -> Cut | None:
    """How the sum is cut, if tile after tile would read both factors from memory: in blocks whose
    part of them stays in a quarter of the second cache, where the results have to stay, too. (Of a
    sum over one range the panels are packed in blocks anyway.)"""
    factors, summed = (*contraction.first, *contraction.second), contraction.summed
    room = plan.target.cache_bytes[1] // 4 // contraction.statement.values[0].dtype.itemsize
    elements, steps = sum(map(_elements, factors)), points(plan.kernel, summed)
    if len(summed) == 1 or any(map(is_narrow, factors)) or elements < 2 * room or steps < CUT_STEPS:
        return None
    return find_cut(plan, contraction.outputs, summed, steps * room // elements, 2 * room)


def _packs_little(plan: Plan, side: Contraction) -> bool:
    """Whether packing panels in every call is little beside the products, and neither factor stays
    in the second cache by itself. (A cut keeps panels from being packed once for all calls.)"""
    room = plan.target.cache_bytes[1] // 4 // side.statement.values[0].dtype.itemsize
    smaller = min(sum(map(_elements, factor)) for factor in (side.first, side.second))
    return smaller >= room and points(plan.kernel, side.rows) >= CUT_ROWS


def _outer_choice(
    plan: Plan, contraction: Contraction, lanes: str, row: str, cut: Cut | None
) -> Choice:
    """Lanes along an output of the second factor."""
    leaves = plan.kernel.leaves
    node = leaves[lanes].node
    moving = [
        a for a in contraction.second if a.offset.free & node.free or guard_of(a).free & node.free
    ]
    contiguous = all(a.stride(node) == 1 for a in moving)
    walked = points(plan.kernel, (*contraction.columns, *contraction.summed))  # of a batch: one
    far = contiguous and too_large(plan, moving, walked)
    can_pack = len(moving) == 1 and axis_of(plan, moving[0].node, lanes) is not None
    packed = can_pack and (not contiguous or _pays_to_pack(plan, contraction, moving[0], far))
    kept = packed and _is_unchanging(plan, moving)
    width = plan.target.lanes(contraction.statement.values[0].dtype)
    extent = _size(leaves[lanes].extent)
    steps = points(plan.kernel, contraction.summed)
    together = min(steps, 2 * SUM_BLOCK) if len(contraction.summed) == 1 else steps
    panel = together * plan.target.vector_bytes  # of one vector; a longer sum is cut in blocks
    times = points(plan.kernel, [n for n in contraction.outputs if n not in (lanes, row)])
    if cut is not None:
        reading, steps, times = "near", cut.steps, times * cut.blocks
    elif packed:
        reading = "long" if panel > plan.target.cache_bytes[1] // 4 else "near"
    else:
        reading = "far" if far else "near"
    costs = _row_costs(plan, contraction, row) if cut is None else (None, 1.0, 0.0)
    rows_packed, times_more, fetched = costs
    best = partial(
        _best_tile,
        _size(leaves[row].extent),
        extent,
        steps,
        (width,) if extent % width == 0 or width < 8 else (width, width // 2),
        plan.target,
        times=times,
        apart=1.0 if cut or rows_packed else _apart(plan, contraction, row),
    )
    tile = best(reading)
    cycles = tile.cycles
    if reading == "far" and _panel_stays(plan, contraction, moving[0], tile.vectors):
        near, first = best("near").cycles, -(-_size(leaves[row].extent) // tile.rows)
        cycles = near + (cycles - near) / first
    results = points(plan.kernel, contraction.outputs)
    if cut is not None:
        cycles += _adding_up(cut, results, width)
    if packed:
        against = KEPT if kept else TRANSPOSED
        cycles += _elements(moving[0]) * (CONTIGUOUS if contiguous else against)
    elif not contiguous:
        cycles *= ALONE
    elif any(guard_of(a) is not index.TRUE for a in moving):
        cycles *= GUARDED
    if cut is None:
        cycles = cycles * times_more + fetched
    if not stored_along(plan, lanes):
        cycles += APART_CODE
        cycles += results * (STORE_APART if stored_along(plan, row) else SCATTERED)
    return Choice(contraction, lanes, row, lanes, tile, packed, cut, cycles, rows_packed, kept)


def _pays_to_pack(plan: Plan, contraction: Contraction, load: Access, far: bool) -> bool:
    """Whether a second factor that is contiguous along the lanes is packed all the same."""
    rows = points(plan.kernel, contraction.rows)
    group = grouped(plan, contraction.statement, contraction.summed[-1])
    if rows >= NARROW_ROWS and (group is not None or is_narrow(load)):
        return True
    again = rows >= PANEL_ROWS // plan.target.products
    return (far and again) or by_rows(plan, contraction)


def _row_costs(
    plan: Plan, contraction: Contraction, row: str
) -> tuple[Access | None, float, float]:
    """What the way costs in which the first factor is read: (the load of it that is packed, if one
    is; how many times more a tile takes; cycles beside all tiles)."""
    load, step = _read_across(plan, contraction, row)
    if load is None:
        return None, 1.0, 0.0
    conflict = _conflict(plan, contraction, row, load, step)
    many = points(plan.kernel, contraction.columns) >= PANEL_ROWS
    if conflict and many and _is_across(plan, contraction, row, load):
        return load, 1.0, _elements(load) * ROWS_PACKED
    return None, CONFLICT if conflict else 1.0, _fetching(plan, contraction, load)


def _apart(plan: Plan, contraction: Contraction, row: str) -> float:
    """How many lines of the first cache lie between what a tile reads for one row and the next, 1
    at most: the pixels of an image share lines, so tall tiles cost no more than wide ones."""
    node = plan.kernel.leaves[row].node
    steps = [(a.stride(node), a.dtype_bytes) for a in contraction.first]
    bytes_apart = (abs(n) * width if isinstance(n, int) else LINE for n, width in steps)
    return min(1.0, max(bytes_apart, default=LINE) / LINE)


def _panel_stays(plan: Plan, contraction: Contraction, load: Access, vectors: int) -> bool:
    """Whether a panel that is read in place comes from memory for the first tile of rows alone, and
    then stays in the second cache. (What is a multiple of a page apart shares few of its sets.)"""
    step = load.stride(plan.kernel.leaves[contraction.summed[-1]].node)
    panel = points(plan.kernel, contraction.summed) * vectors * plan.target.vector_bytes
    if not isinstance(step, int) or step * load.dtype_bytes % host.PAGE == 0:
        return False
    return panel <= plan.target.cache_bytes[1] // 2


def _read_across(plan: Plan, contraction: Contraction, row: str) -> tuple[Access | None, int]:
    """The one load of the first factor that moves with the rows, if a sum over one range does not
    read it side by side, and the bytes from one step to the next."""
    node = plan.kernel.leaves[row].node
    moving = [a for a in contraction.first if a.offset.free & node.free]
    if len(moving) != 1 or len(contraction.summed) != 1:
        return None, 0
    (load,), (name,) = moving, contraction.summed
    step = load.stride(plan.kernel.leaves[name].node)
    if is_narrow(load) or guard_of(load) is not index.TRUE or not isinstance(step, int):
        return None, 0
    return (load, step * load.dtype_bytes) if step > 1 else (None, 0)


def _is_across(plan: Plan, contraction: Contraction, row: str, load: Access) -> bool:
    """Whether the last two axes of a load are the sum and the rows."""
    places = [axis_of(plan, load.node, name) for name in (contraction.summed[0], row)]
    return places == [load.node.arg - 2, load.node.arg - 1]


def _conflict(plan: Plan, contraction: Contraction, row: str, load: Access, step: int) -> bool:
    """Whether the lines of a tile do not stay in the first cache until the next tile reads what
    else is in them: where rows are a multiple of a page long, all of them fall on the few lines of
    one set. Or whether the rows of a tile are apart, too, so that each number is a line of its
    own."""
    if load.stride(plan.kernel.leaves[row].node) != 1:
        return True
    sets = host.PAGE // max(LINE, gcd(host.PAGE, step))
    held = sets * plan.target.cache_bytes[0] // host.PAGE
    # what spreads over all sets and is not packed comes from the second cache in time
    matters = sets * LINE < host.PAGE or _is_across(plan, contraction, row, load)
    return matters and points(plan.kernel, contraction.summed) > held


def _fetching(plan: Plan, contraction: Contraction, load: Access) -> float:
    """Cycles to fetch a load of the first factor that is read across its rows, where the caches do
    not hold it."""
    walked = points(plan.kernel, (*contraction.rows, *contraction.summed))
    return min(_elements(load), walked) * ACROSS if too_large(plan, [load], walked) else 0.0


def _adding_up(cut: Cut, results: int, width: int) -> float:
    """Cycles to add the subtotals of all blocks to the partial results, and these up."""
    return (cut.blocks + cut.pieces) * results / width * ADDED


def _dot_choice(plan: Plan, contraction: Contraction, cut: Cut | None) -> Choice | None:
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
    times = points(plan.kernel, [n for n in contraction.outputs if n not in (column, row)])
    steps, along = points(plan.kernel, contraction.summed), _size(leaves[lanes].extent)
    if cut is not None:
        steps, times = cut.steps, times * cut.blocks
        along = cut.points if cut.leaf == lanes else along
    steps = max(1, steps // along) * -(-along // width)
    tile = _best_tile(
        _size(leaves[row].extent),
        _size(leaves[column].extent),
        steps,
        (1,),
        plan.target,
        "dot",
        times,
    )
    cycles = tile.cycles
    cycles *= MASKED if any(guard_of(a).free & node.free for a in moving) else 1.0
    if cut is not None:
        cycles += _adding_up(cut, points(plan.kernel, contraction.outputs), 1)
    return Choice(contraction, lanes, row, column, tile, False, cut, cycles)


def _elements(access: Access) -> int:
    return max(1, upper(index.product(access.node.src[0].shape)))


def too_large(plan: Plan, loads: Sequence[Access], walked: float = inf) -> bool:
    """Whether a factor is too large to stay in the second cache while so many elements of it are
    walked by columns."""
    second = plan.target.cache_bytes[1]
    return any(min(_elements(a), walked) * a.dtype_bytes > second for a in loads)


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


# per way of reading: (vectors read per row, cycles of a step beside products, the same per row that
# is a line of its own, cycles at the end per vector of the tile, cycles to read a vector of the
# columns). "near": the vector factor is packed or stays in the second cache; "long": its panels are
# packed, but do not stay there; "far": it is walked in memory; "dot": the lanes lie along the sum.
_READING = {
    "near": (1, 0.3, 0.05, 2, 0.5),
    "long": (1, 0.3, 0.05, 2, 6.0),
    "far": (1, 3.0, 0.5, 2, 0.5),
    "dot": (2, 0.3, 0.05, 36, 0.5),
}


def _cycles(
    rows: int, vectors: int, steps: int, reading: str, products: int, apart: float
) -> float:
    """Cycles of one tile over all steps of the sum, at so many products in each. apart: lines of
    the first cache from one row to the next, 1 at most."""
    per_row, beside, beside_row, ending, column = _READING[reading]
    loads = per_row * rows + 2 * vectors
    most = max(rows * vectors / products, loads / 2, 4.5, column * vectors)
    step = most + beside + beside_row * apart * rows + 0.05 * vectors
    return steps * step + ending * rows * vectors + 6 * rows + 20


@cache
def _best_tile(
    rows: int,
    columns: int,
    steps: int,
    lane_choices: tuple[int, ...],
    target: Target,
    reading: str,
    times: int,
    apart: float = 1.0,
) -> Tile:
    """The tile of least cost when all is done so many times, rests included; each rest is code that
    must be compiled. Of tiles that cost about the same, one that leaves little to hide."""
    best: Tile | None = None
    least = inf
    exposed = (target.products - 1) * steps * times
    at = partial(_cycles, steps=steps, reading=reading, products=target.products, apart=apart)
    for lanes in lane_choices:
        needed = -(-columns // lanes)
        for m in range(1, min(rows, 14) + 1):
            for v in range(1, min(needed, 4) + 1):
                if m * v + min(m, v) + 1 > target.registers - SPARE_REGISTERS:
                    continue
                (whole_rows, rest_rows), (whole, rest) = divmod(rows, m), divmod(needed, v)
                total = whole_rows * whole * at(m, v)
                total += whole_rows * at(m, rest) if rest else 0
                total += whole * at(rest_rows, v) if rest_rows else 0
                total += at(rest_rows, rest) if rest and rest_rows else 0
                rests = (1 + bool(rest_rows)) * (1 + bool(rest)) - 1
                total = total * times + rests * min(times, RESTS) * REST / target.products * m * v
                across = whole + bool(rest)
                tiles = (whole_rows + bool(rest_rows)) * across
                more = exposed * (EXPOSED * tiles + EXPOSED_ROW * apart * rows * across)
                if total + more < least:
                    best, least = Tile(m, v, lanes, total), total + more
    assert best is not None
    return best


def _size(extent: Extent) -> int:
    """An extent as the cost sees it: a symbolic one is taken to be large, an empty one to be 1."""
    return max(1, extent if isinstance(extent, int) else min(upper(extent), 512))
