"""Search from nothing: how near it comes to the best list known, shape by shape.

    python bench/search.py [--seconds 40] [name ..]

Each search begins with the empty list and never sees the heuristic's. The best known list is the
faster of the heuristic's and, for matrix products, tests/kernel/golden/matmul_cpu.txt. In the end
what was found and what is known are measured in turns; the ratio is of the least times.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from math import inf
from pathlib import Path

import numpy as np
from environment import machine

from treadle import Tensor
from treadle.engine.realize import prepare
from treadle.engine.search.journal import Journal
from treadle.engine.search.moves import start
from treadle.engine.search.session import Search
from treadle.engine.search.workers import Workers
from treadle.ir import text
from treadle.ir.node import Node
from treadle.kernel.build import build
from treadle.kernel.heuristic import heuristic
from treadle.kernel.kernel import ScheduleError
from treadle.kernel.schedule_text import parse_actions, show_actions
from treadle.tools.bench.timing import table

GOLDEN = Path(__file__).parents[1] / "tests" / "kernel" / "golden" / "matmul_cpu.txt"
ROUNDS = 5
FINALISTS = 3


def given(*shape: int) -> Tensor:
    """A random array in memory."""
    return Tensor(np.random.default_rng(0).standard_normal(shape, np.float32)).realize()


CASES: dict[str, Callable[[], Tensor]] = {
    "matmul 256": lambda: given(256, 256) @ given(256, 256),
    "matmul 512": lambda: given(512, 512) @ given(512, 512),
    "matmul 1000x777x1234": lambda: given(1000, 777) @ given(777, 1234),
    "matrix-vector 4096x1024": lambda: given(4096, 1024) @ given(1024),
    "conv 1x64x28x28 3x3": lambda: given(1, 64, 28, 28).conv2d(given(64, 64, 3, 3), padding=1),
    "softmax 2048x1024": lambda: given(2048, 1024).softmax(-1),
}


def kernel_of(tensor: Tensor) -> Node:
    """The one kernel of a computation."""
    (program,) = prepare([tensor])
    (call,) = program.schedule.calls()
    return call.kernel


def known_lists(search: Search) -> list[str]:
    """The lists that are known for a kernel: the heuristic's, and the one written by hand."""
    target = search.backend.target
    built = build(search.node, target)
    lists = [show_actions(heuristic(built, target))]
    try:
        start(built, parse_actions(GOLDEN.read_text()))
    except ScheduleError:
        return lists
    return [*lists, show_actions(parse_actions(GOLDEN.read_text()))]


def in_turns(workers: Workers, kernel: str, lists: Sequence[str]) -> list[float]:
    """The least seconds of each list, measured in turns."""
    least = [inf] * len(lists)
    compiled, _ = workers.prepare(kernel, lists)
    for _ in range(ROUNDS):
        for number, (file, answer) in enumerate(compiled):
            if "failed" not in answer:
                answer = workers.time(kernel, {}, file, inf)
            least[number] = min(least[number], answer.get("seconds", inf))
    return least


def row(name: str, seconds: float, workers: Workers) -> tuple[str, ...]:
    """One search."""
    search = Search(kernel_of(CASES[name]()), "CPU", workers, Journal(None), seconds, width=4)
    found = search.explore(build(search.node, search.backend.target), [()])
    passed = search.passed()
    known = known_lists(search)
    lists = [*known, *(f.option.actions for f in found[:FINALISTS])]
    times = in_turns(workers, text.show(search.node), lists)
    best_known = min(times[: len(known)], default=inf)
    best_found = min(times[len(known) :], default=inf)
    empty = next((entry.seconds for entry in search.journal.entries.values()), None)
    return (
        name,
        shown(empty or inf, 0),
        shown(best_known, 1),
        shown(best_found, 1),
        f"{best_known / best_found:.2f}" if best_known < inf else "",
        str(search.tried),
        f"{passed:.0f}",
    )


def shown(seconds: float, digits: int) -> str:
    """Microseconds; what was not measured has none."""
    return f"{1e6 * seconds:,.{digits}f}" if seconds < inf else "none"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="parts of the names of cases")
    parser.add_argument("--seconds", type=float, default=40.0, help="of each search")
    asked = parser.parse_args()
    names = [n for n in CASES if not asked.names or any(part in n for part in asked.names)]
    print(machine())
    heads = ("kernel", "empty list us", "best known us", "found us", "known/found", "lists", "s")
    rows = []
    with Workers("CPU") as workers:
        for name in names:
            rows.append(row(name, asked.seconds, workers))
            print(" | ".join(rows[-1]), flush=True)
    print(table(rows, heads))


if __name__ == "__main__":
    main()
