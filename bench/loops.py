"""What a trip of a loop costs beside its arithmetic, and what a choice costs.

    python bench/loops.py

Nanoseconds a trip, from calls of a captured function with 10,000 and 110,000 trips: the difference,
so that the call itself does not count. Best of several.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from environment import options

from treadle import Tensor, cond, config, jit, scan, while_loop
from treadle.captured import Jit
from treadle.tools.bench.timing import table

FEW, MANY = 10_000, 110_000


def scalar(n: Tensor) -> Tensor:
    """x = x / 2 + 1, counted."""
    state = (Tensor(0), Tensor(4.0))
    return while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, s[1] * 0.5 + 1), state)[1]


def vector(n: Tensor) -> Tensor:
    """The same for 64 numbers, until their sum says so too."""
    state = (Tensor(0), Tensor.full((64,), 4.0))
    more = lambda s: (s[0] < n) & (s[1].sum() > 0)  # noqa: E731
    return while_loop(more, lambda s: (s[0] + 1, s[1] * 0.5 + 1), state)[1].sum()


def choice(n: Tensor) -> Tensor:
    """A choice in every trip."""

    def body(s: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        count, x = s
        return count + 1, cond(count % 2 == 0, lambda x: x * 0.5, lambda x: x + 1, x)

    return while_loop(lambda s: s[0] < n, body, (Tensor(0), Tensor(4.0)))[1]


def scans(x: Tensor) -> tuple[Jit, Jit]:
    """A loop whose number of trips is known beforehand: (few trips, many)."""
    step = lambda c, _: (c * 0.5 + 1, None)  # noqa: E731
    few, many = (jit(lambda n=n: scan(step, x, length=n)[0]) for n in (FEW, MANY))
    return few, many


def best(call: Callable[[], object], times: int = 7) -> float:
    """The least seconds of a call."""
    call()
    seconds = []
    for _ in range(times):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def trip(few: Callable[[], Tensor], many: Callable[[], Tensor]) -> str:
    """Nanoseconds of a trip."""
    seconds = best(lambda: many().item()) - best(lambda: few().item())
    return f"{seconds * 1e9 / (MANY - FEW):.0f}"


def counted(function: Callable[[Tensor], Tensor]) -> str:
    """Nanoseconds of a trip of a function of the number of trips."""
    captured = jit(function)
    few, many = (Tensor(np.array(n)) for n in (FEW, MANY))
    return trip(lambda: captured(few), lambda: captured(many))


def main() -> None:
    """Print the table for one thread and for all."""
    rows = []
    for threads in (1, 0):
        with config.THREADS.set(threads):
            own = [counted(f) for f in (scalar, vector, choice)]
            rows.append((str(threads or "all"), *own, trip(*scans(Tensor(np.float32(4.0))))))
    print(table(rows, ("threads", "scalar", "64 and their sum", "a choice", "scan")))


if __name__ == "__main__":
    options(__doc__)
    main()
