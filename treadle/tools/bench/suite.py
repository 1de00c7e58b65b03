"""The table of all cases, and choosing from it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from treadle.tools.bench import kernels, models
from treadle.tools.bench.case import Case

CASES: dict[str, Case] = {case.name: case for case in (*kernels.cases(), *models.cases())}


def choose(patterns: Sequence[str], quick: bool = False) -> list[Case]:
    """The cases whose names match one of the patterns (`matmul/*`, or a part of the name), in the
    order of the table; all if there is no pattern. quick: only those of the small suite.
    ValueError if nothing matches.

    >>> [case.name for case in choose(["cold/first"])]
    ['cold/first']
    """
    for pattern in patterns:
        if not any(matches(case.name, [pattern]) for case in CASES.values()):
            groups = ", ".join(dict.fromkeys(case.group for case in CASES.values()))
            raise ValueError(f"no case matches {pattern!r}; there are groups {groups}")
    chosen = [case for case in CASES.values() if not patterns or matches(case.name, patterns)]
    if not quick:
        return chosen
    short = [case for case in chosen if case.quick]
    if not short:
        raise ValueError(f"no case of --quick matches {' or '.join(map(repr, patterns))}")
    return short


def matches(name: str, patterns: Iterable[str]) -> bool:
    """Whether a name has one of the patterns in it, or is like it."""
    return any(pattern in name or fnmatchcase(name, pattern) for pattern in patterns)
