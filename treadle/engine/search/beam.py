"""The order in which candidates are tried.

Each round makes the neighbours of the best lists, guesses their times, and measures the most
promising ones, a batch at a time. A guess is the cost of `cost.py`, corrected by what the list that
it came from was measured to take beside its own cost; so the model's faults that a family of lists
shares do not matter. Neighbours of lists that were only guessed are made too: a step that gains
nothing alone is passed over on the way to one that does. What is guessed to be many times slower
than another list is not run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from treadle.engine.search.cost import Cost, estimate
from treadle.engine.search.moves import Candidate, neighbours, start
from treadle.kernel.actions import Action
from treadle.kernel.kernel import Kernel, ScheduleError

MOST_LINES = 2000  # of code, about: more is not compiled
MOST_SPILLED = 2  # accumulators without a register
ROUNDS_WITHOUT_GAIN = 16
GAIN = 0.99  # a new best must take less than this part of the old
AHEAD = 2  # lists only guessed whose neighbours are made, in a round
SLOWER = 4.0  # what is guessed to take so many times the best is not measured
CYCLE = 1 / 3e9  # seconds, until something is measured

# seconds of each candidate of a batch, None for one that failed; the best time so far
Measure = Callable[[Sequence[Candidate], float], Sequence[float | None]]


@dataclass
class Found:
    """A list on the way: its cost, what it is guessed or was measured to take (in seconds; None if
    it was not measured), and whether its neighbours were made."""

    candidate: Candidate
    cost: Cost
    guess: float
    seconds: float | None = None
    expanded: bool = False


@dataclass
class Beam:
    """A search. width: lists that are pursued at once. batch: candidates measured at a time.
    out_of_time: asked between batches."""

    kernel: Kernel
    measure: Measure
    width: int = 4
    batch: int = 8
    out_of_time: Callable[[], bool] = lambda: False
    known: dict[str, Found] = field(default_factory=dict)
    failed: set[str] = field(default_factory=set)

    def run(self, starts: Iterable[Sequence[Action]]) -> list[Found]:
        """Searches from these lists until nothing is gained any more, or the time is over. Returns
        what was measured, the fastest first."""
        for actions in starts:
            self._add(start(self.kernel, actions), per_cycle=CYCLE)
        began = list(self.known.values())
        self._look_ahead()
        least = min((found.guess for found in self.known.values()), default=0.0)
        self._try([found for found in began if found.guess <= SLOWER * least])
        if not self.measured():
            self._try(self._chosen())
        if not self.measured():  # nothing that promised more can be run
            self._try([found for found in began if found.candidate.text in self.known])
        idle = 0
        while idle < ROUNDS_WITHOUT_GAIN and self.known and not self.out_of_time():
            before = self.best
            grown = self._grow()
            chosen = self._chosen()
            if not chosen and not grown:
                break
            self._try(chosen)
            idle = 0 if self.best < before * GAIN else idle + 1
        return self.measured()

    @property
    def best(self) -> float:
        """The least seconds so far."""
        return min((f.seconds for f in self.known.values() if f.seconds), default=float("inf"))

    def measured(self) -> list[Found]:
        """What was measured, the fastest first."""
        found = [f for f in self.known.values() if f.seconds is not None]
        return sorted(found, key=lambda f: f.seconds or 0.0)

    # ---- a round ---------------------------------------------------------------------------------
    def _grow(self) -> bool:
        """Makes the neighbours of the best lists; False if all of them were made before."""
        grown = False
        beam = self.measured()[: self.width]
        for found in [f for f in beam if not f.expanded][: max(1, self.width // 2)]:
            self._expand(found)
            grown = True
        return self._look_ahead() or grown

    def _look_ahead(self) -> bool:
        """Makes the neighbours of the most promising lists that are only guessed."""
        grown = False
        for _ in range(AHEAD):
            waiting = (f for f in self.known.values() if f.seconds is None and not f.expanded)
            ahead = min(waiting, key=lambda f: f.guess, default=None)
            if ahead is None or ahead.guess > self.best or self.out_of_time():
                break
            self._expand(ahead)
            grown = True
        return grown

    def _expand(self, found: Found) -> None:
        found.expanded = True
        per_cycle = (found.seconds or found.guess) / found.cost.cycles
        for candidate in neighbours(self.kernel, found.candidate):
            self._add(candidate, per_cycle)

    def _add(self, candidate: Candidate, per_cycle: float) -> None:
        text = candidate.text
        if text in self.failed:
            return
        try:
            old = self.known.get(text)
            cost = estimate(candidate.kernel) if old is None else old.cost
        except ScheduleError:
            self.failed.add(text)
            return
        if cost.lines > MOST_LINES or cost.spilled > MOST_SPILLED:
            self.failed.add(text)
            return
        guess = cost.cycles * per_cycle
        if old is None:
            self.known[text] = Found(candidate, cost, guess)
        elif old.seconds is None:
            old.guess = min(old.guess, guess)

    def _chosen(self) -> list[Found]:
        """What is measured next: the most promising list of each kind of step, for half of the
        batch, then whatever is most promising."""
        unknown = [f for f in self.known.values() if f.seconds is None]
        least = min([self.best, *(found.guess for found in unknown)])
        near = (found for found in unknown if found.guess <= SLOWER * least)
        waiting = sorted(near, key=lambda found: found.guess)
        of_kind: dict[str, Found] = {}
        for found in waiting:
            of_kind.setdefault(found.candidate.step, found)
        varied = sorted(of_kind.values(), key=lambda f: f.guess)[: self.batch // 2]
        rest = [f for f in waiting if f not in varied]
        return [*varied, *rest[: self.batch - len(varied)]]

    def _try(self, batch: list[Found]) -> None:
        times = self.measure([found.candidate for found in batch], self.best)
        for found, seconds in zip(batch, times, strict=True):
            if seconds is None:
                text = found.candidate.text
                self.failed.add(text)
                self.known.pop(text, None)
            else:
                found.seconds = seconds
