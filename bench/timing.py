"""Fair timing: what is compared runs in turns, in one process, and the ratio is of medians.

Pools of two libraries spin in one process and disturb each other, so each turn is a block: a rest,
in which the other's threads go to sleep, unmeasured calls until the cores are awake, then the
measured ones.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

Call = Callable[[], object]
REST = 0.3  # seconds before a block: OpenMP's threads spin for up to 0.2
AWAKE = 0.1  # seconds of unmeasured calls: idle cores start slowly


@dataclass
class Times:
    """Seconds of every measured call."""

    seconds: list[float]

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def spread(self) -> float:
        """Half the distance between the quartiles, relative to the median."""
        low, _, high = statistics.quantiles(self.seconds, n=4)
        return (high - low) / 2 / self.median


def in_turns(
    candidates: Mapping[str, Call],
    turns: int = 7,
    calls: int = 5,
    warm: int = 2,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, Times]:
    """Time every candidate in `turns` alternating blocks of `calls` calls."""
    times: dict[str, list[float]] = {name: [] for name in candidates}
    for _ in range(turns):
        for name, call in candidates.items():
            time.sleep(REST)
            began = time.perf_counter()
            done = 0
            while done < warm or time.perf_counter() - began < AWAKE:
                call()
                done += 1
            for _ in range(calls):
                start = clock()
                call()
                times[name].append(clock() - start)
    return {name: Times(seconds) for name, seconds in times.items()}


def table(rows: Sequence[tuple[str, ...]], heads: tuple[str, ...]) -> str:
    """A Markdown table with aligned columns."""
    widths = [max(len(row[i]) for row in (heads, *rows)) for i in range(len(heads))]
    line = "| " + " | ".join(f"{{:<{w}}}" for w in widths) + " |"
    rule = "|" + "|".join("-" * (w + 2) for w in widths) + "|"
    return "\n".join([line.format(*heads), rule, *(line.format(*row) for row in rows)])
