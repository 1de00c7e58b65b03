"""What kernels do that move more than the caches hold: stores past them, and memory asked ahead."""

from __future__ import annotations

from treadle.ir import index
from treadle.kernel.actions import Hint, Prefetch
from treadle.kernel.analysis import upper
from treadle.kernel.kernel import Stmt, memory_name
from treadle.kernel.plan import Plan

AHEAD_BYTES = 8192  # how far before the reads of a stream memory is asked for it
CACHE_SHARE = 16 << 20  # bytes of the last cache that count for a thread: others want it too


def moved_bytes(plan: Plan) -> int:
    """Bytes of all the buffers that a kernel reads and writes."""
    moved = 0
    for facts in plan.facts.values():
        for access in facts.accesses:
            buffer = access.node if access.is_store else access.node.src[0]
            moved += access.dtype_bytes * max(1, upper(index.product(buffer.shape)))
    return moved


def past_caches(plan: Plan) -> bool:
    """Whether a kernel moves more than the last cache holds for it."""
    share = CACHE_SHARE * plan.target.threads
    return _last(plan) > 0 and moved_bytes(plan) > min(_last(plan), share)


def stream_stores(plan: Plan, name: str) -> None:
    """Stores past the caches."""
    for statement in plan.users(f"{name}v"):
        simple = statement.is_store and statement.monoid is None and statement.guard is None
        if simple and statement.name in plan.facts:
            plan.do(Hint(statement.name, "nontemporal"))


def stream_loads(plan: Plan, name: str, loop: str, tile: int) -> None:
    """Where one statement reads everything, once: memory is asked some iterations ahead. Of a
    reduction past the caches, which keep what else is in them. (What computes for long on what it
    reads looks ahead little by itself: operations that wait fill the processor's queue.)"""
    readers = [n for n, f in plan.facts.items() if any(not a.is_store for a in f.accesses)]
    if len(readers) != 1 or "prefetch" not in plan.target.intrinsics:
        return
    if upper(plan.kernel.leaves[loop].extent) < 2:
        return
    statement = next(
        (s for s in plan.users(loop) if s.name.removesuffix("_tasks") in readers), None
    )
    if statement is None:
        return
    lane = plan.kernel.leaves[f"{name}v"].node
    around = [plan.kernel.leaves[n].node for n in statement.order]
    if any(
        plan.kernel.over_leaves(access.offset).free & node.free == 0
        for access in plan.facts[readers[0]].accesses
        for node in around
    ):
        return  # a vector that is read again for every row stays in the caches
    for access in plan.facts[readers[0]].accesses:
        offset = plan.kernel.over_leaves(access.offset)
        if not access.is_store and index.coefficient(offset, lane) == 1:
            ahead = max(1, AHEAD_BYTES // (tile * access.dtype_bytes))
            buffer = memory_name(access.node.src[0])
            past_caches = not statement.is_store and moved_bytes(plan) > _last(plan)
            plan.do(Prefetch(buffer, statement.name, loop, ahead, past_caches))


def ask_ahead(plan: Plan) -> None:
    """In kernels of several loops over a row, the dearest one that does not store asks for the next
    row: the others find it in the cache, so memory would rest while this one computes."""
    rows = [leaf for leaf in plan.kernel.leaves.values() if leaf.kind == "grid"]
    if (
        not rows
        or "prefetch" not in plan.target.intrinsics
        or moved_bytes(plan) <= second_cache(plan)
    ):
        return
    row = rows[-1]
    readers: dict[str, list[Stmt]] = {}
    for statement in plan.kernel.statements:
        facts = plan.facts.get(statement.name)
        for access in facts.accesses if facts else ():
            if access.is_store or row.name not in statement.order:
                continue
            offset = plan.kernel.over_leaves(access.offset)
            if index.coefficient(offset, row.node) != 0:
                readers.setdefault(memory_name(access.node.src[0]), []).append(statement)
    for buffer, statements in readers.items():
        if len({s.name for s in statements}) > 1:
            dearest = max(statements, key=lambda s: (not s.is_store, plan.facts[s.name].cost))
            plan.do(Prefetch(buffer, dearest.name, row.name, 1))


def _last(plan: Plan) -> int:
    """Bytes of the third cache."""
    caches = plan.target.cache_bytes
    return caches[2] if len(caches) > 2 else 0


def second_cache(plan: Plan) -> int:
    """Bytes of the second cache."""
    caches = plan.target.cache_bytes
    return caches[1] if len(caches) > 1 else 0
