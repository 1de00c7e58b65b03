"""Fair timing: what is compared runs in turns, in one process.

Pools of two libraries spin in one process and disturb each other, so each turn is a block: a rest,
in which the other's threads go to sleep, unmeasured calls until the cores are awake, then the
measured ones. Calls of one block share their luck, so statistics treat a block as one sample.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

Call = Callable[[], object]
Clock = Callable[[], float]

REST = 0.3  # seconds before a block: OpenMP's threads spin for up to 0.2
AWAKE = 0.1  # seconds of unmeasured calls: idle cores start slowly
MOST_CALLS = 200  # measured calls of a block, however short they are


@dataclass
class Times:
    """Seconds of every measured call; blocks: the same, a list for each turn."""

    seconds: list[float]
    blocks: list[list[float]] = field(default_factory=list)

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def spread(self) -> float:
        """Half the distance between the quartiles, relative to the median."""
        if len(self.seconds) < 2:
            return 0.0
        low, _, high = statistics.quantiles(self.seconds, n=4)
        return (high - low) / 2 / self.median


def in_turns(
    candidates: Mapping[str, Call],
    turns: int = 7,
    calls: int = 5,
    warm: int = 2,
    clock: Clock = time.perf_counter,
    *,
    block_seconds: float = 0.0,
    rest: float = REST,
    awake: float = AWAKE,
) -> dict[str, Times]:
    """Time every candidate in `turns` alternating blocks of `calls` calls.

    block_seconds: a block has more calls than that (at most MOST_CALLS) if they are so short that
    it would take less time. rest, awake: seconds before a block without and with calls.
    """
    blocks: dict[str, list[list[float]]] = {name: [] for name in candidates}
    for _ in range(turns):
        for name, call in candidates.items():
            time.sleep(rest)
            pace = warm_up(call, warm, awake)
            count = max(calls, min(MOST_CALLS, int(block_seconds / max(pace, 1e-9))))
            blocks[name].append(timed(call, count, clock))
    return {
        name: Times([second for block in listed for second in block], listed)
        for name, listed in blocks.items()
    }


def warm_up(call: Call, times: int, seconds: float) -> float:
    """Call at least so often and so long. Returns the seconds of the last call."""
    began = last = time.perf_counter()
    pace, done = 0.0, 0
    while done < times or last - began < seconds:
        call()
        now = time.perf_counter()
        pace, last, done = now - last, now, done + 1
    return pace


def timed(call: Call, calls: int, clock: Clock = time.perf_counter) -> list[float]:
    """The seconds of each of so many calls."""
    seconds = []
    for _ in range(calls):
        start = clock()
        call()
        seconds.append(clock() - start)
    return seconds


def table(rows: Sequence[tuple[str, ...]], heads: tuple[str, ...]) -> str:
    """A Markdown table with aligned columns."""
    widths = [max(len(row[i]) for row in (heads, *rows)) for i in range(len(heads))]
    line = "| " + " | ".join(f"{{:<{w}}}" for w in widths) + " |"
    rule = "|" + "|".join("-" * (w + 2) for w in widths) + "|"
    return "\n".join([line.format(*heads), rule, *(line.format(*row) for row in rows)])
