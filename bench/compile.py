"""Cold start: from nothing to the first result, with empty caches and with a warm disk cache.

    python bench/compile.py [--processor-time] [case ..]

Each case runs in fresh processes. Columns in ms: the import (with NumPy's), the whole first run, in
it the Python that builds kernels and code generation, the first run with a warm disk cache, the
second run; then the nodes, kernels, distinct kernels and lines of code of the first.

Python's bytecode is there, as after an installation. --processor-time counts the time that the main
thread really ran: what to compare on a machine that others use too.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

# Nothing of treadle is imported up here: how long that takes is measured.
Run = Callable[[], object]

PROCESSES = 3
PROCESSOR_TIME = {"--processor-time": "the time that the main thread really ran"}


def first() -> Run:
    """Three numbers, one kernel."""
    from treadle import Tensor

    x = Tensor([1.0, 2.0, 3.0])
    return lambda: (x * 2 + 1).realize()


def matmul_softmax() -> Run:
    """A contraction and a row."""
    from treadle import Tensor

    a, b = Tensor.rand(64, 64).realize(), Tensor.rand(64, 64).realize()
    return lambda: (a @ b).softmax(1).realize()


def digits() -> Run:
    """The demo's training step; the weights are made before."""
    import numpy as np

    from treadle import Tensor, nn

    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))
    import digits as demo

    model = demo.Convnet()
    optimizer = nn.optim.Adam(model.parameters(), lr=demo.RATE)
    Tensor.realize(*model.parameters())
    training, _ = demo.load_digits()
    images, labels = next(demo.batches(training, 1, 128, np.random.default_rng(0)))

    def step() -> None:
        optimizer.zero_grad()
        model(Tensor(images)).cross_entropy(Tensor(labels)).backward()
        optimizer.step()

    return step


def transformer() -> Run:
    """A training step of twelve blocks."""
    from transformer import Transformer, training_step

    model = Transformer(layers=12, width=64, heads=4, vocabulary=128)
    return training_step(model, batch=4, length=32)


def chain(length: int) -> Run:
    """A deep graph: one operation after another."""
    from treadle import Tensor

    x = Tensor([0.5] * 16)

    def run() -> None:
        y = x
        for _ in range(length):
            y = y.sin()
        y.realize()

    return run


def wide() -> Run:
    """The sum of two thousand tensors."""
    import numpy as np

    from treadle import Tensor

    xs = [Tensor(np.full(16, i, np.float32)) for i in range(2000)]

    def run() -> None:
        total = xs[0]
        for x in xs[1:]:
            total = total + x
        total.realize()

    return run


CASES: dict[str, Callable[[], Run]] = {
    "first": first,
    "matmul_softmax": matmul_softmax,
    "digits": digits,
    "transformer": transformer,
    "chain_1000": partial(chain, 1000),
    "chain_10000": partial(chain, 10000),
    "wide": wide,
}


def measure(name: str, clock: str) -> dict[str, float]:
    """Run one case in this process, which has not imported treadle yet. clock: a function of the
    module time."""
    imported = seconds(lambda: __import__("treadle"), clock)
    from treadle import events
    from treadle.ir.node import toposort

    compiles: list[dict[str, Any]] = []
    schedules: list[dict[str, Any]] = []
    run = CASES[name]()
    with events.listen("compile", compiles.append), events.listen("schedule", schedules.append):
        cold = seconds(run, clock)
        again = seconds(run, clock)
    return {
        "import": imported * 1e3,
        "first": cold * 1e3,
        "second": again * 1e3,
        "code": sum(event["code_seconds"] for event in compiles) * 1e3,
        "build": sum(event["build_seconds"] for event in compiles) * 1e3,
        "lines": sum(event["lines"] for event in compiles),
        "distinct": sum(event["kernels"] for event in compiles),
        "nodes": sum(len(toposort(event["roots"])) for event in schedules),
        "kernels": sum(len(list(event["schedule"].calls())) for event in schedules),
    }


def seconds(run: Run, clock: str) -> float:
    """How long a call takes."""
    now = getattr(time, clock)
    start: float = now()
    run()
    passed: float = now() - start
    return passed


def in_a_process(name: str, clock: str, cache: Path, bytecode: Path) -> dict[str, float]:
    """Run one case in a fresh process with the disk cache and Python's in these folders."""
    variables = {
        "CACHE_DIR": str(cache),
        "PYTHONPYCACHEPREFIX": str(bytecode),
        "PYTHONDONTWRITEBYTECODE": "",
    }
    found = subprocess.run(
        [sys.executable, __file__, "--case", name, clock],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    if found.returncode:
        raise RuntimeError(f"case {name} failed:\n{found.stderr}")
    measured: dict[str, float] = json.loads(found.stdout.splitlines()[-1])
    return measured


def row_of(name: str, clock: str, folder: Path) -> tuple[str, ...]:
    """Measure one case: the process of the median first run, cold and warm."""
    bytecode = folder / "bytecode"
    in_a_process(name, clock, folder / "unmeasured", bytecode)
    colds, warms = [], []
    for number in range(PROCESSES):
        cache = folder / f"{name}{number}"
        colds.append(in_a_process(name, clock, cache, bytecode))
        warms.append(in_a_process(name, clock, cache, bytecode))
    cold, warm = (
        sorted(runs, key=lambda run: run["first"])[PROCESSES // 2] for runs in (colds, warms)
    )
    times = [cold[key] for key in ("import", "first", "build", "code")]
    counts = [cold[key] for key in ("nodes", "kernels", "distinct", "lines")]
    row = [f"{number:.0f}" for number in (*times, warm["first"])]
    return (name, *row, f"{cold['second']:.1f}", *(f"{number:.0f}" for number in counts))


def main() -> None:
    """Print the table."""
    if sys.argv[1:2] == ["--case"]:  # the process of one case
        print(json.dumps(measure(*sys.argv[2:])))
        return
    from environment import machine, options

    from treadle.tools.bench.timing import table

    asked = options(__doc__, CASES, PROCESSOR_TIME)
    clock = "thread_time" if asked.processor_time else "perf_counter"
    print(machine())
    with tempfile.TemporaryDirectory() as folder:
        rows = [row_of(name, clock, Path(folder)) for name in asked.names]
    heads = ("import", "first", "build", "LLVM", "first, warm disk", "second")
    counted = ("nodes", "kernels", "distinct", "lines")
    whose = " of the main thread" if asked.processor_time else ""
    print(f"ms{whose}, medians of {PROCESSES} processes")
    print(table(rows, ("case", *heads, *counted)))


if __name__ == "__main__":
    main()
