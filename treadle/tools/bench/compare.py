"""Two runs beside each other: folders that were kept, or two commits, measured in turns.

A commit is checked out into a git worktree of its own, which is gone afterwards. Both are measured
by the bench of *this* checkout, laid over theirs, so that a change of the bench is no change of
what it measures. Rounds alternate between the two, each round a fresh process of each, so that a
minute in which the machine is slow is one for both.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from treadle.tools.bench import folder as folders
from treadle.tools.bench import machine
from treadle.tools.bench.case import Case
from treadle.tools.bench.child import Settings
from treadle.tools.bench.runner import Place, merged, run_case
from treadle.tools.bench.suite import matches
from treadle.tools.worktree import resolve, worktree

ROUNDS = 4

Data = dict[str, Any]


@contextmanager
def place(repository: Path, word: str) -> Iterator[tuple[Place, str]]:
    """(where a version can be measured, what it is called): a commit, or `.`, the working tree."""
    if word == ".":
        yield Place(repository), machine.commit(repository)
        return
    commit = resolve(repository, word)
    with worktree(repository, commit) as root:
        tools = machine.PACKAGE / "tools"
        theirs = root / "treadle" / "tools"
        shutil.copytree(tools / "bench", theirs / "bench", dirs_exist_ok=True)
        shutil.copy(tools / "worktree.py", theirs)
        yield Place(root), commit


def measure_two(
    words: tuple[str, str],
    cases: Sequence[Case],
    settings: Settings,
    report: Callable[[str], None],
    repository: Path = machine.PACKAGE.parent,
    rounds: int = ROUNDS,
) -> tuple[Data, Data]:
    """The runs of two commits, round by round in turns. ValueError for what is no commit."""
    with place(repository, words[0]) as first, place(repository, words[1]) as second:
        settings = replace(settings, artifacts="")
        runs = [_run(commit, settings) for _, commit in (first, second)]
        for case in cases:
            entries: tuple[list[Data], list[Data]] = ([], [])
            for number in range(rounds):
                # the one that begins changes, so that none profits from its place
                for side in (0, 1) if number % 2 == 0 else (1, 0):
                    where = (first, second)[side][0]
                    entries[side].append(run_case(case, settings, where))
            for run, parts in zip(runs, entries, strict=True):
                run["cases"].append(joined(parts))
            report(case.name)
    return runs[0], runs[1]


def _run(commit: str, settings: Settings) -> Data:
    return {
        "version": folders.VERSION,
        "created": "",
        "machine": {**machine.describe(), "commit": commit},
        "settings": asdict(settings),
        "cases": [],
    }


def joined(parts: Sequence[Data]) -> Data:
    """The entries of several processes as one."""
    wrong = [part for part in parts if part["error"]]
    if wrong:
        return wrong[0]
    names = parts[0]["libraries"]
    libraries = {name: merged_warm([part["libraries"][name] for part in parts]) for name in names}
    return {**parts[0], "libraries": libraries}


def merged_warm(parts: Sequence[Data]) -> Data:
    """Blocks of several processes together. (Cold figures are lists already.)"""
    if "cold" not in parts[0]:
        return merged(parts)
    whole = merged([{key: part[key] for key in part if key != "cold"} for part in parts])
    cold = {
        name: [second for part in parts for second in part["cold"][name]]
        for name in parts[0]["cold"]
    }
    return {**whole, "cold": cold}


def kept(words: tuple[str, str]) -> tuple[Data, Data] | None:
    """The runs in two folders; None if the words are to be commits. ValueError if one is a folder
    and the other is not: figures of different minutes do not compare."""
    are_kept = [folders.is_run(Path(word)) for word in words]
    if all(are_kept):
        return folders.read(Path(words[0])), folders.read(Path(words[1]))
    for word in words:
        named = Path(word).is_absolute() or word.startswith(("./", "../"))  # no commit is called so
        if named and not Path(word).is_dir():
            raise ValueError(f"there is no folder {word}")
        if Path(word).is_dir() and word != "." and not folders.is_run(Path(word)):
            raise ValueError(f"{word} holds no run: there is no run.json in it")
    if any(are_kept):
        raise ValueError("compare takes two folders with runs, or two commits, not one of each")
    return None


def only(runs: tuple[Data, Data], patterns: Sequence[str]) -> tuple[Data, Data]:
    """Two runs without the cases that no pattern matches; all if there is none. ValueError for a
    pattern that matches no case of them."""
    names = sorted({entry["name"] for run in runs for entry in run["cases"]})
    for pattern in patterns:
        if not any(matches(name, [pattern]) for name in names):
            raise ValueError(f"no case matches {pattern!r}; the runs have {', '.join(names)}")
    before, after = (
        {**run, "cases": [e for e in run["cases"] if not patterns or matches(e["name"], patterns)]}
        for run in runs
    )
    return before, after


def keep(folder: Path, runs: tuple[Data, Data], created: str) -> None:
    """Write both runs under a folder, as `before` and `after`."""
    for name, run in zip(("before", "after"), runs, strict=True):
        folders.write(folder / name, {**run, "created": run["created"] or created})
