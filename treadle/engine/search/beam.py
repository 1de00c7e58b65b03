"""The order in which lists are tried.

Each round measures the most promising lists, a batch at a time, and makes the neighbours of the
best ones meanwhile. A guess is the cost of `cost.py`, corrected by what lists of the same family
were measured to take beside their cost; so the faults of the model that a family shares do not
matter, and half of a batch are families of their own. Neighbours of lists that were only guessed
are made too: a step that gains nothing alone is passed over on the way to one that does. What is
guessed to be many times slower than another list is not run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from math import inf
from statistics import median

from treadle.engine.search.options import Option, beginning
from treadle.kernel.actions import Action
from treadle.kernel.kernel import Kernel

ROUNDS_WITHOUT_GAIN = 16  # at least; as many more as it took to find the best
GAIN = 0.99  # a new best must take less than this part of the old
SLOWER = 4.0  # what is guessed to take so many times the best is not measured

# seconds of each list of a batch, None for one that failed, and the neighbours of each of the
# others; given the best time so far
Work = Callable[
    [Sequence[str], Sequence[str], float], tuple[Sequence[float | None], Sequence[Sequence[Option]]]
]


@dataclass(eq=False)
class Found:
    """A list on the way: where it came from, what it was measured to take (in seconds; None if it
    was not measured), and whether its neighbours were made."""

    option: Option
    parent: Found | None
    seconds: float | None = None
    expanded: bool = False

    @property
    def pace(self) -> float:
        """Seconds that it was measured to take for each cycle that it should."""
        return (self.seconds or 0.0) / self.option.cost.cycles


@dataclass
class Beam:
    """A search. width: lists whose neighbours are made at once. batch: lists measured at a time.
    out_of_time: asked between rounds."""

    kernel: Kernel
    work: Work
    width: int = 4
    batch: int = 8
    out_of_time: Callable[[], bool] = lambda: False
    known: dict[str, Found] = field(default_factory=dict)
    failed: set[str] = field(default_factory=set)
    paces: dict[str, list[float]] = field(default_factory=dict)  # of each family

    def run(self, starts: Iterable[Sequence[Action]]) -> list[Found]:
        """Searches from these lists until nothing is gained any more, or the time is over. Returns
        what was measured, the fastest first."""
        for actions in starts:
            self._add(beginning(self.kernel, actions), None)
        self._round([], list(self.known.values()))
        rounds, gained = 0, 0
        while rounds - gained < ROUNDS_WITHOUT_GAIN + gained and not self.out_of_time():
            before = self.best
            guesses = self._guesses()
            batch, parents = self._chosen(guesses), self._parents(guesses)
            if not batch and not parents:
                break
            self._round(batch, parents)
            rounds += 1
            if self.best < before * GAIN:
                gained = rounds
        return self.measured()

    @property
    def best(self) -> float:
        """The least seconds so far."""
        return min((f.seconds for f in self.known.values() if f.seconds), default=inf)

    def measured(self) -> list[Found]:
        """What was measured, the fastest first."""
        found = [f for f in self.known.values() if f.seconds is not None]
        return sorted(found, key=lambda f: f.seconds or 0.0)

    # ---- what is promising -----------------------------------------------------------------------
    def _guesses(self) -> list[tuple[float, Found]]:
        """What was not measured, with the seconds that it is guessed to take; the least first."""
        paces = {family: sum(found) / len(found) for family, found in self.paces.items()}
        usual = median(paces.values()) if paces else 1.0
        waiting = [f for f in self.known.values() if f.seconds is None]
        guessed = [(f.option.cost.cycles * self._pace(f, paces, usual), f) for f in waiting]
        return sorted(guessed, key=lambda pair: pair[0])

    def _pace(self, found: Found, paces: dict[str, float], usual: float) -> float:
        """By what a list's cost is multiplied: the pace of the list that it came from, if that is
        of the same family; else of its family; else of the family that it came from, and so on."""
        parent = found.parent
        if parent is not None and parent.seconds and parent.option.family == found.option.family:
            return parent.pace
        older: Found | None = found
        while older is not None:
            if older.option.family in paces:
                return paces[older.option.family]
            older = older.parent
        return usual

    def _chosen(self, guesses: Sequence[tuple[float, Found]]) -> list[Found]:
        """What is measured next: the most promising list of each family, for half of the batch,
        then whatever is most promising."""
        least = min([self.best, *(guess for guess, _ in guesses[:1])])
        near = [found for guess, found in guesses if guess <= SLOWER * least]
        varied = list(_one_of_each(near))[: self.batch // 2]
        rest = [found for found in near if found not in varied]
        return [*varied, *rest[: self.batch - len(varied)]]

    def _parents(self, guesses: Sequence[tuple[float, Found]]) -> list[Found]:
        """The lists whose neighbours are made next, half as many as the beam is wide: the best one
        of those measured, and families of their own that are guessed to be better. Where there are
        none any more, the beam begins anew from the best list of each other family."""
        measured = [f for f in self.measured() if not f.expanded]
        beam = [f for f in self.measured()[: self.width] if not f.expanded]
        ahead = (f for guess, f in guesses if not f.expanded and guess <= self.best)
        wanted = dict.fromkeys([*beam[:1], *_one_of_each(ahead), *beam, *_one_of_each(measured)])
        return list(islice(wanted, max(2, self.width // 2)))

    # ---- a round ---------------------------------------------------------------------------------
    def _round(self, batch: Sequence[Found], parents: Sequence[Found]) -> None:
        """Measures a batch, and makes neighbours."""
        lists = [found.option.actions for found in batch]
        times, grown = self.work(lists, [found.option.actions for found in parents], self.best)
        for found, seconds in zip(batch, times, strict=True):
            found.seconds = seconds
            if seconds is None:
                self.failed.add(found.option.actions)
                self.known.pop(found.option.actions, None)
            else:
                self.paces.setdefault(found.option.family, []).append(found.pace)
        for parent, near in zip(parents, grown, strict=True):
            parent.expanded = True
            for option in near:
                self._add(option, parent)

    def _add(self, option: Option, parent: Found | None) -> None:
        if option.actions not in self.failed:
            self.known.setdefault(option.actions, Found(option, parent))


def _one_of_each(lists: Iterable[Found]) -> Iterator[Found]:
    """The first list of each family."""
    seen: set[str] = set()
    for found in lists:
        if found.option.family not in seen:
            seen.add(found.option.family)
            yield found
