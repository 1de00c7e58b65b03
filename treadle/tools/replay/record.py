"""Recording: with the knob RECORD, every program that is made is written as a text; and choosing a
corpus that is small and still has everything in it."""

from __future__ import annotations

import heapq
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
from treadle.tools.replay.lowering import ORIGIN

MOST_BYTES = 24_000  # of a text: larger ones are models, of which few are enough
MODELS = 12  # that many of the larger ones
OVERHEAD = 1000  # bytes that a text of its own is like
NUMBER = re.compile(r"\d+")

written: set[str] = set()


def on_schedule(data: dict[str, Any]) -> None:
    """Write the program of an event "schedule" into the folder RECORD, unless it is there."""
    try:
        text = saved.show(data["given"], data["assigns"], f"{ORIGIN}{origin()}")
    except TypeError:
        return  # an unnamed rule of the user's, which no text can hold
    name = disk.digest(text.split("\n", 1)[1])[:16]
    if name in written:
        return
    written.add(name)
    folder = Path(config.RECORD.value)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{name}.txt"
        if not path.exists():
            unfinished = folder / f"{name}.{os.getpid()}.new"
            unfinished.write_text(text, encoding="utf-8")
            unfinished.replace(path)
    except OSError as error:
        raise OSError(f"the knob RECORD: {folder} cannot be written: {error}") from None


def origin() -> str:
    """Which test or program this process is running."""
    test = os.environ.get("PYTEST_CURRENT_TEST", "")
    if test:
        return test.split(" ")[0]
    program = sys.argv[0]
    return program if " " in program else Path(program).name or "python"


@dataclass(frozen=True)
class Recorded:
    """A recorded program: its file, its text, what is in it."""

    path: Path
    text: str
    features: frozenset[Any]

    @property
    def is_of_test(self) -> bool:
        """Whether a test made it, and not a program that somebody would run."""
        return self.text.startswith(f"# {ORIGIN}tests/")

    @property
    def size(self) -> int:
        """Bytes of the text."""
        return len(self.text)


def features(roots: Sequence[Node], assigns: dict[int, int]) -> frozenset[Any]:
    """What a program has that others may not have: operations on dtypes, pairs of operations that
    follow each other, ranks, monoids, and sizes of reductions, which decide how a kernel is
    scheduled (to a factor of 16)."""
    found: set[Any] = {("assigns", bool(assigns)), ("roots", min(len(roots), 4))}
    for node in toposort(roots):
        dtypes = node.dtype if isinstance(node.dtype, tuple) else (node.dtype,)
        found.add((node.op.name, *[str(dtype) for dtype in dtypes]))
        rank = len(node.shape)
        found.add((node.op.name, "rank", rank, any(isinstance(d, Node) for d in node.shape)))
        if node.op in (ops.REDUCE, ops.SCATTER, ops.UPDATE):
            found.add((node.op.name, NUMBER.sub("#", str(node.arg)[:40])))
        if node.op is ops.REDUCE:
            found.add(("points", ops.numel(node.src[0].shape).bit_length() // 4))
        found |= {(node.op.name, source.op.name) for source in node.src}
    return frozenset(found)


def load(folder: Path) -> list[Recorded]:
    """The recorded programs of a folder, the smallest first."""
    found = []
    for path in folder.glob("*.txt"):
        try:
            program = saved.read_graph(path)
        except ValueError:
            continue  # of names that only the test knew
        text = path.read_text(encoding="utf-8")
        found.append(Recorded(path, text, features(program.roots, program.assigns)))
    return sorted(found, key=lambda each: (each.size, each.path.name))


def choose(recorded: Iterable[Recorded], most: int) -> list[Recorded]:
    """At most so many programs that have between them every feature that all have: of programs that
    differ in numbers only, one; then whichever adds most for its size. What programs made, and not
    tests, is kept in any case."""
    shapes: dict[Any, Recorded] = {}
    for each in recorded:
        shape = NUMBER.sub("#", each.text.split("\n", 1)[1])
        shapes.setdefault((shape, each.features), each)
    kept = [each for each in shapes.values() if not each.is_of_test]
    tests = [each for each in shapes.values() if each.is_of_test]
    seen = {feature for each in kept for feature in each.features}
    small = [each for each in tests if each.size <= MOST_BYTES]
    kept += _cover(small, most - len(kept), seen)
    return kept + _cover([each for each in tests if each.size > MOST_BYTES], MODELS, seen)


def _cover(candidates: Sequence[Recorded], most: int, seen: set[Any]) -> list[Recorded]:
    """Greedy: the one that adds most to the features seen, for its size, again and again."""
    chosen: list[Recorded] = []
    # what one adds only gets less, so one that is first after it was counted anew is the best
    waiting = [(-_worth(each, seen), n) for n, each in enumerate(candidates)]
    heapq.heapify(waiting)
    while waiting and len(chosen) < most:
        _, number = heapq.heappop(waiting)
        each = candidates[number]
        worth = _worth(each, seen)
        if waiting and -worth > waiting[0][0]:
            heapq.heappush(waiting, (-worth, number))
        elif worth:
            chosen.append(each)
            seen |= each.features
    return chosen


def _worth(each: Recorded, seen: set[Any]) -> float:
    """What a program adds, for its size: reading many small ones is as dear as one large."""
    return len(each.features - seen) / (each.size + OVERHEAD)


def keep(chosen: Iterable[Recorded], corpus: Path) -> int:
    """Write a corpus in the place of the one that is there, which goes when all of the new one is
    written. Returns its bytes."""
    corpus.mkdir(parents=True, exist_ok=True)
    texts = {each.path.name: each.text for each in chosen}
    for name, text in texts.items():
        (corpus / name).write_text(text, encoding="utf-8")
    for old in corpus.glob("*.txt"):
        if old.name not in texts:
            old.unlink()
    return sum(map(len, texts.values()))
