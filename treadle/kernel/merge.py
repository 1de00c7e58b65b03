"""Adjacent ranges that are contiguous in every access become one."""

from __future__ import annotations

from collections.abc import Sequence

from treadle.ir import index
from treadle.kernel.actions import Fuse
from treadle.kernel.plan import Plan


def merge(plan: Plan, names: Sequence[str]) -> list[str]:
    """Fuses runs of these leaves, outermost first, that every access walks as one. Returns the
    leaves that are left."""
    merged: list[str] = []
    run: list[str] = []
    for name in names:
        if run and not _mergeable(plan, run[-1], name):
            merged.append(_fuse(plan, run))
            run = []
        run.append(name)
    return [*merged, _fuse(plan, run)] if run else merged


def _fuse(plan: Plan, run: list[str]) -> str:
    name = "".join(run)
    if len(run) > 1:
        plan.do(Fuse(tuple(run), name))
    return name


def _mergeable(plan: Plan, outer: str, inner: str) -> bool:
    users = plan.users(outer)
    if not users or users != plan.users(inner) or {outer, inner} & plan.serial:
        return False
    size = plan.kernel.leaves[inner].extent
    first, second = plan.kernel.leaves[outer].node, plan.kernel.leaves[inner].node
    for statement in users:
        at = statement.order.index(outer)
        if statement.order[at + 1 : at + 2] != (inner,):
            return False
        if (outer in statement.reduced) != (inner in statement.reduced):
            return False
        facts = plan.facts[statement.name]
        if facts.plain & (first.free | second.free):
            return False
        for access in facts.accesses:
            step, small = access.affine_stride(first), access.affine_stride(second)
            if step is None or small is None or index.mul(small, size) is not index.as_node(step):
                return False
    return True
