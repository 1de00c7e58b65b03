"""What a list of actions may become in one step: each list as text, with what it would cost.

This is what a search knows of lists that were not measured. It is made by the worker processes,
several lists at a time, and sent as JSON.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from treadle.engine.search.cost import Cost, estimate
from treadle.engine.search.moves import Candidate, neighbours, start
from treadle.kernel.actions import Action
from treadle.kernel.kernel import Kernel, ScheduleError
from treadle.kernel.schedule_text import parse_actions

MOST_LINES = 1500  # of code, about: more is not compiled
MOST_SPILLED = 2  # accumulators without a register


@dataclass(frozen=True)
class Option:
    """A list of actions that may be tried. family: what becomes of which range, whatever the
    sizes and the order; the faults of the cost are alike within a family."""

    actions: str
    family: str
    cost: Cost

    def to_json(self) -> list[Any]:
        """As a JSON value."""
        return [self.actions, self.family, self.cost.cycles, self.cost.lines, self.cost.spilled]

    @staticmethod
    def from_json(value: list[Any]) -> Option:
        """What `to_json` gave."""
        actions, family, *cost = value
        return Option(actions, family, Cost(*cost))


def beginning(kernel: Kernel, actions: Iterable[Action]) -> Option:
    """A list to begin with, however dear. ScheduleError if it does not apply."""
    return _priced(start(kernel, actions))


def options(kernel: Kernel, actions: str) -> list[Option]:
    """The lists one step away from a list that are worth a thought."""
    found: dict[str, Option] = {}
    for candidate in neighbours(kernel, start(kernel, parse_actions(actions))):
        if candidate.text in found:
            continue
        try:
            option = _priced(candidate)
        except ScheduleError:
            continue
        if option.cost.lines <= MOST_LINES and option.cost.spilled <= MOST_SPILLED:
            found[option.actions] = option
    return list(found.values())


def _priced(candidate: Candidate) -> Option:
    return Option(candidate.text, _family(candidate.kernel), estimate(candidate.kernel))


def _family(kernel: Kernel) -> str:
    """For each statement, which ranges are tasks, written out, lanes or inside an instruction."""
    parts = []
    for statement in kernel.statements:
        leaves = (kernel.leaves[name] for name in statement.order)
        kinds = {f"{n.kind} {kernel.range_of[n.name].name}" for n in leaves if n.kind != "loop"}
        parts.append(f"{statement.name}: {', '.join(sorted(kinds))}")
    return "; ".join(parts)
