"""Recording: with the knob RECORD, every program that is made is written as a text; and choosing a
corpus that is small and still has everything in it."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from treadle import config
from treadle.engine import disk
from treadle.ir import ops
from treadle.ir.node import Node, toposort
from treadle.tools import saved

MOST_BYTES = 24_000  # of a text: larger ones are models, of which few are enough
MODELS = 12  # that many of the larger ones
NUMBER = re.compile(r"\d+")

written: set[str] = set()


def on_schedule(data: dict[str, Any]) -> None:
    """Write the program of an event "schedule" into the folder RECORD, unless it is there."""
    try:
        text = saved.show(data["given"], data["assigns"], f"from {origin()}")
    except TypeError:
        return  # an unnamed rule of the user's, which no text can hold
    name = disk.digest(text.split("\n", 1)[1])[:16]
    if name in written:
        return
    written.add(name)
    folder = Path(config.RECORD.value)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.txt"
    if not path.exists():
        unfinished = folder / f"{name}.{os.getpid()}.new"
        unfinished.write_text(text, encoding="utf-8")
        unfinished.replace(path)


def origin() -> str:
    """Which test or program this process is running."""
    test = os.environ.get("PYTEST_CURRENT_TEST", "")
    return test.split(" ")[0] if test else Path(sys.argv[0]).name or "python"


@dataclass(frozen=True)
class Recorded:
    """A recorded program: its file, its text, what is in it."""

    path: Path
    text: str
    features: frozenset[Any]

    @property
    def size(self) -> int:
        """Bytes of the text."""
        return len(self.text)


def features(roots: Sequence[Node], assigns: dict[int, int]) -> frozenset[Any]:
    """What a program has that others may not have: operations on dtypes, pairs of operations that
    follow each other, ranks, args of few values, ways to store."""
    found: set[Any] = {("assigns", bool(assigns)), ("roots", min(len(roots), 4))}
    for node in toposort(roots):
        dtypes = node.dtype if isinstance(node.dtype, tuple) else (node.dtype,)
        found.add((node.op.name, *[str(dtype) for dtype in dtypes]))
        rank = len(node.shape)
        found.add((node.op.name, "rank", rank, any(isinstance(d, Node) for d in node.shape)))
        if node.op in (ops.REDUCE, ops.SCATTER, ops.UPDATE):
            found.add((node.op.name, NUMBER.sub("#", str(node.arg)[:40])))
        found |= {(node.op.name, source.op.name) for source in node.src}
    return frozenset(found)


def load(folder: Path) -> list[Recorded]:
    """The recorded programs of a folder, the smallest first."""
    found = []
    for path in folder.glob("*.txt"):
        text = path.read_text(encoding="utf-8")
        try:
            (program,) = saved.read(text)
        except ValueError:
            continue  # of names that only the test knew
        found.append(Recorded(path, text, features(program.roots, program.assigns)))
    return sorted(found, key=lambda each: (each.size, each.path.name))


def choose(recorded: Iterable[Recorded], most: int) -> list[Recorded]:
    """At most so many programs that have between them every feature that all have: of programs that
    differ in numbers only, one; then whichever adds most for its size."""
    shapes: dict[str, Recorded] = {}
    for each in recorded:
        shapes.setdefault(NUMBER.sub("#", each.text.split("\n", 1)[1]), each)
    small = [each for each in shapes.values() if each.size <= MOST_BYTES]
    large = [each for each in shapes.values() if each.size > MOST_BYTES]
    chosen = _cover(small, most)
    return chosen + _cover(large, MODELS)


def _cover(candidates: Sequence[Recorded], most: int) -> list[Recorded]:
    """Greedy: the one with the most features that none has yet, then the shorter one."""
    seen: set[Any] = set()
    chosen: list[Recorded] = []
    # a program's gain only falls, so it is looked at again only when it is first
    waiting = sorted(((len(each.features), n) for n, each in enumerate(candidates)), reverse=True)
    while waiting and len(chosen) < most:
        _, number = waiting.pop(0)
        gain = len(candidates[number].features - seen)
        if waiting and gain < waiting[0][0]:
            _insert(waiting, (gain, number))
            continue
        if not gain:
            break
        chosen.append(candidates[number])
        seen |= candidates[number].features
    return chosen


def _insert(waiting: list[tuple[int, int]], pair: tuple[int, int]) -> None:
    """Put a pair in its place in a list from large to small."""
    low, high = 0, len(waiting)
    while low < high:
        middle = (low + high) // 2
        if waiting[middle] > pair:
            low = middle + 1
        else:
            high = middle
    waiting.insert(low, pair)


def keep(chosen: Iterable[Recorded], corpus: Path) -> int:
    """Write a corpus in the place of the one that is there. Returns its bytes."""
    corpus.mkdir(parents=True, exist_ok=True)
    for old in corpus.glob("*.txt"):
        old.unlink()
    total = 0
    for each in chosen:
        (corpus / each.path.name).write_text(each.text, encoding="utf-8")
        total += each.size
    return total
