"""The loop tree that a list of statements stands for, and the phases it falls into."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby

from treadle.kernel.kernel import Kernel, Leaf, ScheduleError, Stmt, home


@dataclass
class Loop:
    """A leaf and what runs under it. opens: the reductions whose first reduced loop this is.
    scratch: the names of buffers that live in one iteration of it."""

    leaf: Leaf
    body: list[Loop | Stmt] = field(default_factory=list)
    opens: list[Stmt] = field(default_factory=list)
    scratch: list[str] = field(default_factory=list)


@dataclass
class Phase:
    """Consecutive statements under the same grid leaves: one function, whose tasks are independent.
    body: what is under the grid leaves. scratch: the buffers that live in one task."""

    grid: tuple[Leaf, ...]
    body: list[Loop | Stmt]
    scratch: list[str]


def grid_of(kernel: Kernel, statement: Stmt) -> tuple[str, ...]:
    """The grid leaves of a statement."""
    return tuple(name for name in statement.order if kernel.leaves[name].kind == "grid")


def phases(kernel: Kernel) -> list[Phase]:
    """The phases in order, each with its loop tree."""
    runs = groupby(kernel.statements, key=lambda statement: grid_of(kernel, statement))
    return [_phase(kernel, grid, list(statements)) for grid, statements in runs]


def require_within_phases(kernel: Kernel) -> None:
    """ScheduleError if a statement reads scratch memory of a task in another phase than it is
    written in."""
    phase = 0
    grid: tuple[str, ...] = ()
    written: dict[str, int] = {}
    for statement, names in zip(kernel.statements, kernel.reads):
        if grid_of(kernel, statement) != grid:
            phase, grid = phase + 1, grid_of(kernel, statement)
        for name in names:
            if written.get(name, phase) != phase and kernel.scratch[name].scope != "root":
                raise ScheduleError(
                    f"{statement.name} reads {name} in another phase than it is written in: it "
                    "must live in scope root"
                )
        for target in statement.targets:
            written[target.arg[0]] = phase


def _phase(kernel: Kernel, grid: tuple[str, ...], statements: Sequence[Stmt]) -> Phase:
    leaves = tuple(kernel.leaves[name] for name in grid)
    phase = Phase(leaves, _nest(kernel, statements, len(grid)), [])
    by_home: dict[tuple[str, ...], list[str]] = {}
    for statement in statements:
        for target in statement.targets:
            name = target.arg[0]
            if isinstance(name, str) and kernel.scratch[name].scope != "root":
                names = by_home.setdefault(home(kernel, name), [])
                if name not in names:
                    names.append(name)
    _give_homes(phase, len(grid), by_home)
    return phase


def _nest(kernel: Kernel, statements: Sequence[Stmt], depth: int) -> list[Loop | Stmt]:
    """The loops of statements that share their first `depth` leaves."""
    items: list[Loop | Stmt] = []
    start = 0
    while start < len(statements):
        statement = statements[start]
        if len(statement.order) == depth:
            items.append(statement)
            start += 1
            continue
        name = statement.order[depth]
        stop = start + 1
        while stop < len(statements) and statements[stop].order[depth : depth + 1] == (name,):
            stop += 1
        under = statements[start:stop]
        opens = [s for s in under if s.reduced and s.first_reduced() == depth]
        items.append(Loop(kernel.leaves[name], _nest(kernel, under, depth + 1), opens))
        start = stop
    return items


def _give_homes(phase: Phase, depth: int, by_home: dict[tuple[str, ...], list[str]]) -> None:
    """Files every scratch buffer under the innermost loop that it lives in."""
    grid = tuple(leaf.name for leaf in phase.grid)
    pending: list[tuple[tuple[str, ...], list[Loop | Stmt]]] = [(grid, phase.body)]
    phase.scratch = [
        name for place, names in by_home.items() if len(place) <= depth for name in names
    ]
    while pending:
        place, items = pending.pop()
        for item in items:
            if isinstance(item, Loop):
                below = (*place, item.leaf.name)
                item.scratch.extend(by_home.get(below, ()))
                pending.append((below, item.body))
