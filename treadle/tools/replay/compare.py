"""Two lowerings of a corpus beside each other: identical, changed text, changed cost, changed
result; worst first."""

from __future__ import annotations

import difflib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from treadle.tools import meanings
from treadle.tools.replay.lowering import NOT_RUN, STAGES
from treadle.tools.worktree import worktree

ROOT = Path(__file__).resolve().parents[3]
CORPUS = ROOT / "tests" / "replay" / "corpus"

# count -> how much a change of it weighs against others: what costs time at run time comes first
WEIGHTS = {
    "launches": 3.0, "phases": 2.0, "bytes": 2.0, "operations": 2.0, "arena": 1.0, "kernels": 1.0,
    "lines": 0.5, "steps": 0.5, "loads": 0.5, "stores": 0.5,
}  # fmt: skip
KINDS = (
    "broken", "result", "cost", "text", "mended", "failing", "unknown before", "identical",
)  # fmt: skip

RAN = "it ran"
LONGEST = 600  # seconds of a process
Data = dict[str, Any]


@dataclass
class Change:
    """What became of one text. kind: one of KINDS. stages: those whose text changed. counts:
    (before, after) of those that changed. worst: how much worse the counts are, below 0 if better.
    note: of a result or an error. of: what the program was made by."""

    name: str
    kind: str = "identical"
    stages: list[str] = field(default_factory=list)
    counts: dict[str, tuple[int, int]] = field(default_factory=dict)
    worst: float = 0.0
    note: str = ""
    of: str = ""

    def __str__(self) -> str:
        counts = ", ".join(f"{n} {a:,} -> {b:,}" for n, (a, b) in self.counts.items())
        said = "; ".join(part for part in (counts, self.note) if part)
        of = f"  ({self.of})" if self.of else ""
        return f"{self.name}  {self.kind}: {said or ', '.join(self.stages)}{of}"


def compare(before: dict[str, Data], after: dict[str, Data]) -> list[Change]:
    """What changed, for every text of both, the worst first."""
    changes = [_change(name, before[name], new) for name, new in after.items() if name in before]
    return sorted(changes, key=lambda c: (KINDS.index(c.kind), -c.worst, c.name))


def _change(name: str, old: Data, new: Data) -> Change:
    change = Change(name, of=new.get("of", ""))
    if new["error"] or old["error"]:
        change.note = new["error"] or old["error"]
        if not new["error"]:
            is_new = old["error"].startswith("cannot be read")
            change.kind = "unknown before" if is_new else "mended"
        else:
            change.kind = "failing" if old["error"] else "broken"
        return change
    change.stages = [stage for stage in STAGES if old[stage] != new[stage]]
    if change.stages:
        change.kind = "text"
    for count, value in new["counts"].items():
        was = old["counts"].get(count, value)
        if was != value:
            change.counts[count] = (was, value)
            change.worst += WEIGHTS.get(count, 0.0) * (value - was) / max(was, 1)
    if change.counts:
        change.kind = "cost"
    return change


def note_results(changes: Sequence[Change], folders: Sequence[Path], said: Sequence[Data]) -> None:
    """Compare the results of those that were run on both sides: NAME.npz in both folders, or what
    was said instead."""
    for change in changes:
        files = [folder / f"{change.name}.npz" for folder in folders]
        words = [each.get(change.name, RAN) for each in said]
        if all(path.exists() for path in files):
            distance = _apart(*files)
            if distance > 1:
                change.kind, change.note = "result", f"its results are {distance:.1e} limits apart"
            elif distance > 0:
                change.note = "results differ by rounding"
        elif words[1] not in (words[0], RAN) and not words[1].startswith(NOT_RUN):
            change.kind, change.note = "result", f"before: {words[0]}; after: {words[1]}"


def _apart(before: Path, after: Path) -> float:
    with np.load(before) as old, np.load(after) as new:
        limits = new["limits"]
        return max(
            (
                meanings.apart(new[f"r{n}"], old[f"r{n}"], float(limit))
                for n, limit in enumerate(limits)
            ),
            default=0.0,
        )


def diff(before: Data, after: Data, stages: Sequence[str] = STAGES) -> str:
    """A unified diff of the stages that changed."""
    lines: list[str] = []
    for stage in stages:
        if before.get(stage) != after.get(stage):
            lines += difflib.unified_diff(
                str(before.get(stage, "")).splitlines(),
                str(after.get(stage, "")).splitlines(),
                f"before/{stage}",
                f"after/{stage}",
                lineterm="",
            )
    return "\n".join(lines)


def summary(changes: Sequence[Change], shown: int = 10) -> str:
    """How many of each kind, and the worst."""
    counts = {kind: sum(change.kind == kind for change in changes) for kind in KINDS}
    head = ", ".join(f"{count} {kind}" for kind, count in counts.items() if count)
    worst = [change for change in changes if change.kind not in ("identical", "unknown before")]
    lines = [f"{len(changes)} programs: {head}", *[f"  {change}" for change in worst[:shown]]]
    if len(worst) > shown:
        lines.append(f"  .. and {len(worst) - shown} more")
    totals = _totals(changes)
    if totals:
        lines.append(f"  together: {totals}")
    return "\n".join(lines)


def _totals(changes: Sequence[Change]) -> str:
    sums: dict[str, tuple[int, int]] = {}
    for change in changes:
        for count, (was, value) in change.counts.items():
            before, after = sums.get(count, (0, 0))
            sums[count] = before + was, after + value
    return ", ".join(f"{count} {b - a:+,}" for count, (a, b) in sums.items())


# ---- two checkouts -------------------------------------------------------------------------------
START = "from treadle.tools.replay.lowering import main; main()"


class Side:
    """A checkout that lowers the corpus in a process of its own."""

    def __init__(self, root: Path, corpus: Path, folder: Path) -> None:
        self.root = root
        self.corpus = corpus
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def start(self, **asked: Any) -> subprocess.Popen[str]:
        """Begin to do what is asked."""
        self.out = self.folder / "out.json"
        cache = self.folder / "cache"
        variables = {**os.environ, "PYTHONPATH": str(self.root), "CACHE_DIR": str(cache)}
        variables |= {"VERIFY": "0", "RECORD": ""}
        process = subprocess.Popen(
            [sys.executable, "-c", START],
            stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=variables,
            cwd=self.folder,
        )  # fmt: skip
        assert process.stdin is not None
        asked = {"corpus": str(self.corpus), "out": str(self.out), **asked}
        process.stdin.write(json.dumps(asked))
        process.stdin.close()
        process.stdin = None
        return process

    def finish(self, process: subprocess.Popen[str]) -> Data:
        """What it found. RuntimeError with its last words if it failed."""
        try:
            _, errors = process.communicate(timeout=LONGEST)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise RuntimeError(f"the replay of {self.root} took more than {LONGEST} s") from None
        if process.returncode:
            last = errors.strip().splitlines()[-1:] or [f"exit status {process.returncode}"]
            raise RuntimeError(f"the replay of {self.root} failed: {last[0]}")
        found: Data = json.loads(self.out.read_text(encoding="utf-8"))
        return found


@contextmanager
def sides(root: Path, commit: str, corpus: Path) -> Iterator[tuple[Side, Side]]:
    """The checkout of a commit, with the replay of this one laid over its own, and this one."""
    with (
        tempfile.TemporaryDirectory(prefix="treadle-replay-") as name,
        worktree(root, commit) as old,
    ):
        tools = Path(__file__).resolve().parents[1]
        for part in ("replay", "meanings.py", "saved.py", "worktree.py"):
            source, target = tools / part, old / "treadle" / "tools" / part
            if source.is_dir():
                shutil.copytree(source, target, dirs_exist_ok=True)
            else:
                shutil.copy(source, target)
        folder = Path(name)
        yield Side(old, corpus, folder / "before"), Side(root, corpus, folder / "after")


def both(pair: tuple[Side, Side], **asked: Any) -> list[Data]:
    """What both find, at the same time."""
    processes = [side.start(**asked) for side in pair]
    return [side.finish(process) for side, process in zip(pair, processes, strict=True)]


def run_both(pair: tuple[Side, Side], changes: Sequence[Change], seconds: float) -> None:
    """Run what changed on both sides, and note how results differ."""
    names = [change.name for change in changes if change.kind in ("cost", "text")]
    folders = [side.folder / "results" for side in pair]
    processes = [
        side.start(names=names, folder=str(folder), seconds=seconds)
        for side, folder in zip(pair, folders, strict=True)
    ]
    said = [side.finish(process) for side, process in zip(pair, processes, strict=True)]
    note_results(changes, folders, said)
