"""The search of a kernel's schedule, from its node to a result that is kept.

It begins with the heuristic's list, the empty list, and lists that were found for kernels of the
same operations on other sizes. In the end the fastest few and the heuristic's are measured again,
in turns, with warm caches and with cold ones; what counts is the mean of both.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path

from treadle import config
from treadle.backend.base import Backend
from treadle.engine import device as devices
from treadle.engine import disk, tuned
from treadle.engine.search.beam import Beam, Found
from treadle.engine.search.journal import Entry, Journal
from treadle.engine.search.moves import start
from treadle.engine.search.options import Option
from treadle.engine.search.progress import Progress
from treadle.engine.search.workers import Workers
from treadle.events import emit
from treadle.ir import text
from treadle.ir.node import Node
from treadle.kernel import pipeline
from treadle.kernel.actions import Action
from treadle.kernel.build import build
from treadle.kernel.kernel import Kernel, ScheduleError
from treadle.kernel.schedule_text import parse_actions, show_actions

FINALISTS = 4
FINAL_ROUNDS = 3
BEAM_SHARE = 0.85  # of the time: the rest is for the last measurement
WORTH_IT = 0.98  # what is not faster than this part of the heuristic's time is not taken


class NotSearched(ValueError):
    """A kernel for which no schedule can be searched. The message says why."""


@dataclass
class Search:
    """One kernel being searched. seconds: how long it may take; variables: the values of its
    Variables; starts: lists to begin with, beside those that are taken by themselves (None)."""

    kernel: Node
    device: str
    workers: Workers
    journal: Journal
    seconds: float
    width: int = 4
    variables: dict[str, int] | None = None
    starts: Sequence[Sequence[Action]] | None = None
    watch: Callable[[float, float, int], None] = lambda passed, best, tried: None

    def __post_init__(self) -> None:
        node, names = tuned.canonical(self.kernel)
        self.node = node
        self.text = text.show(node)
        given = self.variables or {}
        self.values = {names[name]: value for name, value in given.items() if name in names}
        self.backend: Backend = devices.backend(self.device)
        self.target = tuned.target_text(self.backend.target)
        self.of = disk.digest(self.text, self.target, repr(sorted(self.values.items())))
        self.began = time.perf_counter()
        self.tried = 0

    def run(self) -> tuned.Result:
        """The result. NotSearched if even the heuristic's list cannot be checked."""
        if self.kernel.arg is not None:
            raise NotSearched("its schedule was written by the user")
        if self.backend.target.kind != "cpu" or not self.backend.target.vector_bytes:
            raise NotSearched(f"{self.backend.target.name} is no device with loops to schedule")
        built = build(self.node, self.backend.target)
        chosen = pipeline.lower(self.node, self.backend.target, "kernel").actions
        reference = show_actions(chosen)
        if self.work([reference], [], inf)[0][0] is None:
            entry = self.journal.known(self.of, reference)
            raise NotSearched(entry.why if entry is not None else "it cannot be run")
        return self._decide(reference, self.explore(built, self._starts(built, chosen)))

    def explore(self, built: Kernel, starts: Sequence[Sequence[Action]]) -> list[Found]:
        """What was measured on the way from these lists, the fastest first."""
        batch = max(4, 2 * self.width)
        return Beam(built, self.work, self.width, batch, self.out_of_time).run(starts)

    def _starts(self, built: Kernel, chosen: tuple[Action, ...]) -> list[Sequence[Action]]:
        if self.starts is not None:
            return list(self.starts)
        starts: list[Sequence[Action]] = [chosen, ()]
        shape = _without_sizes(self.text)
        for result, _ in tuned.table().values():
            if result.target == self.target and _without_sizes(result.kernel) == shape:
                try:
                    actions = parse_actions(result.actions)
                    start(built, actions)
                except ScheduleError:
                    continue  # it was for other sizes
                starts.append(actions)
        return starts

    # ---- measuring -------------------------------------------------------------------------------
    def passed(self) -> float:
        """Seconds since the beginning."""
        return time.perf_counter() - self.began

    def out_of_time(self) -> bool:
        """Whether the time for trying candidates is over."""
        return self.passed() > BEAM_SHARE * self.seconds

    def work(
        self, lists: Sequence[str], parents: Sequence[str], best: float
    ) -> tuple[list[float | None], list[list[Option]]]:
        """Seconds of each list, None for those that failed: from the journal, or measured now; and
        the neighbours of the parents."""
        entries = {actions: self.journal.known(self.of, actions) for actions in lists}
        times = {actions: e.seconds for actions, e in entries.items() if e is not None}
        new = [actions for actions in lists if actions not in times]
        best = min([best, *(seconds for seconds in times.values() if seconds)])
        compiled, near = self.workers.prepare(self.text, new, parents)
        for actions, (file, answer) in zip(new, compiled, strict=True):
            if "failed" not in answer and self.out_of_time() and best < inf:
                times[actions] = None  # not tried, and not noted as failed
                continue
            if "failed" not in answer:
                answer = self.workers.time(self.text, self.values, file, best)
                Path(file).unlink(missing_ok=True)
            times[actions] = seconds = answer.get("seconds")
            self.tried += 1
            best = min(best, seconds or inf)
            self.journal.note(
                Entry(
                    self.of,
                    actions,
                    seconds,
                    answer.get("check", ""),
                    answer.get("failed", ""),
                    answer.get("why", ""),
                )
            )
            self.watch(self.passed(), best, self.tried)
        return [times[actions] for actions in lists], near

    def _decide(self, reference: str, found: Sequence[Found]) -> tuned.Result:
        """Measures the fastest and the heuristic's again, in turns, and takes the best."""
        lists = [f.option.actions for f in found[:FINALISTS]]
        lists = list(dict.fromkeys([reference, *lists]))
        compiled, _ = self.workers.prepare(self.text, lists)
        warm = dict.fromkeys(lists, inf)
        cold = dict.fromkeys(lists, inf)
        checks: dict[str, str] = {}
        for _ in range(FINAL_ROUNDS if len(lists) > 1 else 1):
            for actions, (file, answer) in zip(lists, compiled, strict=True):
                if "failed" not in answer:
                    answer = self.workers.time(self.text, self.values, file, inf, cold=True)
                if "failed" in answer:
                    continue
                warm[actions] = min(warm[actions], answer["seconds"])
                cold[actions] = min(cold[actions], answer["cold_seconds"])
                checks[actions] = answer["check"]
        scores = {actions: (warm[actions] + cold[actions]) / 2 for actions in lists}
        usual = scores[reference]
        if usual == inf:
            raise NotSearched("the heuristic's schedule failed when it was measured again")
        best = min(lists, key=scores.__getitem__)
        if scores[best] > WORTH_IT * usual:
            best = reference
        return tuned.Result(self.text, self.target, best, scores[best], usual, checks[best])


def _without_sizes(kernel: str) -> str:
    """What a kernel's text says beside numbers: its operations and how they hang together."""
    return re.sub(r"(?<![%\w])\d+", "N", kernel)


# ---- the knob BEAM -------------------------------------------------------------------------------
_spent = 0.0
_refused: set[Node] = set()


def improve(kernels: Iterable[Node], plugin: str) -> None:
    """Searches schedules for kernels that have none yet, as the knob BEAM says, and keeps what is
    found for this process and the next ones."""
    global _spent
    device = next(name for name, value in devices.PLUGINS.items() if value == plugin)
    target = devices.backend(device).target
    wanted = [
        k for k in kernels if k not in _refused and k.arg is None and tuned.find(k, target) is None
    ]
    budget = config.BEAM_SECONDS.value - _spent
    if not wanted or budget <= 0 or target.kind != "cpu" or not target.vector_bytes:
        return
    began = time.perf_counter()
    path = tuned.searched()
    keep = bool(config.CACHE) or bool(config.TUNED.value)
    progress = Progress(budget)
    try:
        with Workers(device) as workers:
            journal = Journal(journal_path(path) if keep else None)
            for number, kernel in enumerate(wanted):
                left = budget - (time.perf_counter() - began)
                if left <= 0:
                    break
                search = Search(
                    kernel,
                    device,
                    workers,
                    journal,
                    left / (len(wanted) - number),
                    int(config.BEAM),
                )
                search.watch = watched(progress, budget - left, f"kernel {number}")
                try:
                    result = search.run()
                except NotSearched:
                    _refused.add(kernel)
                    continue
                tuned.learn(result, str(path))
                try:
                    if keep:
                        tuned.append(path, result)
                except ValueError as error:
                    keep = False
                    tuned.report(f"what the search finds is not kept: {error}")
    finally:
        progress.close()
        seconds = time.perf_counter() - began
        _spent += seconds
        emit("search", kernels=len(wanted), seconds=seconds)


def watched(progress: Progress, before: float, name: str) -> Callable[[float, float, int], None]:
    """Shows what a search says on a bar. before: the seconds of the searches before it."""

    def watch(passed: float, best: float, tried: int) -> None:
        shown = f"{best * 1e6:.1f} us" if best < inf else "none"
        progress.show(before + passed, f"{name}: {tried} tried, best {shown}")

    return watch


def journal_path(results: Path) -> Path:
    """The journal that belongs to a file of results."""
    return results.with_name(results.name.removesuffix(".jsonl") + ".journal")
