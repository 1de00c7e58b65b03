"""What a call costs beside the arithmetic: captured and eager, from Python.

    python bench/overhead.py [--torch]

Each line is a median over many calls. "native" is the time inside the one native call, waking
threads included, "above" all the rest; its budget is 5 us + 0.15 us per implicit input (a
closed-over tensor).
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from timing import table

from treadle import Tensor, jit, nn, no_grad
from treadle.jit import Jit

Row = tuple[str, ...]


class Timed:
    """A runner of programs that notes how long the native call took."""

    def __init__(self, runner: Any) -> None:
        self.run_inner = runner.run
        self.seconds = 0.0

    def run(self, records: Any) -> None:
        """Run, and note the time."""
        start = time.perf_counter()
        self.run_inner(records)
        self.seconds = time.perf_counter() - start


def median(call: Callable[[], object], calls: int = 400, warm: int = 30) -> float:
    """The median time of a call in microseconds."""
    for _ in range(warm):
        call()
    times = []
    for _ in range(calls):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e6


def captured(name: str, function: Jit, *args: Any) -> Row:
    """Time a captured function, and the native call in it."""
    for _ in range(30):
        function(*args)
    assert function.last is not None
    program = function.last.captured
    alone = min(median(lambda: function(*args), calls=200, warm=5) for _ in range(5))
    timed = program.runner = Timed(program.runner)
    whole, native = [], []
    for _ in range(2000):
        start = time.perf_counter()
        function(*args)
        whole.append(time.perf_counter() - start)
        native.append(timed.seconds)
    above = statistics.median(a - b for a, b in zip(whole, native, strict=True)) * 1e6
    inputs = len(program.closed.cells)
    budget = 5 + 0.15 * inputs
    inside = statistics.median(native) * 1e6
    return name, f"{alone:.1f}", f"{inside:.1f}", f"{above:.1f}", f"{inputs}", f"{budget:.1f}"


def model(width: int = 64) -> nn.Module:
    """The network of the first line: 64-64-64-10."""
    return nn.Sequential(
        nn.Linear(64, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 10)
    )


def inference() -> Row:
    """An MLP at batch 1."""
    network = model()
    run = jit(network)
    x = Tensor(np.zeros((1, 64), np.float32))
    with no_grad():
        return captured("MLP 64-64-64-10, batch 1", run, x)


def identity() -> Row:
    """The least that a captured function can do."""
    return captured("x + 1, 4 elements", jit(lambda x: x + 1), Tensor(np.zeros(4, np.float32)))


def training(count: int) -> Row:
    """A step of Adam over `count` small weights."""
    weights = [Tensor(np.ones(8, np.float32), requires_grad=True) for _ in range(count)]
    opt = nn.optim.Adam(weights, lr=0.001)

    @jit
    def step(x: Tensor) -> None:
        opt.zero_grad()
        sum(((w * x) ** 2).sum() for w in weights).backward()
        opt.step()

    return captured(f"Adam over {count} weights", step, Tensor(np.ones(8, np.float32)))


def many(count: int) -> Row:
    """A chain of `count` small kernels: each `clone` is a kernel of its own."""

    @jit
    def chain(x: Tensor) -> Tensor:
        for _ in range(count):
            x = (x - x.mean()).clone()
        return x

    x = Tensor(np.arange(16, dtype=np.float32))
    for _ in range(5):
        chain(x)
    assert chain.last is not None
    kernels = len(list(chain.last.captured.schedule.calls()))
    hot = min(median(lambda: chain(x), calls=100, warm=5) for _ in range(5))
    return f"{kernels} small kernels", f"{hot:.0f}", f"{hot / kernels:.3f}"


def idle() -> Row:
    """A call after 2 ms in which nothing ran."""
    network = model()
    run = jit(network)
    x = Tensor(np.zeros((1, 64), np.float32))
    times = []
    with no_grad():
        for _ in range(200):
            time.sleep(0.002)
            start = time.perf_counter()
            run(x)
            times.append(time.perf_counter() - start)
    return "the MLP after 2 ms of idleness", f"{statistics.median(times) * 1e6:.1f}", ""


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--torch", action="store_true", help="PyTorch beside it")
    options = parser.parse_args()
    heads = ("captured, us", "call", "native", "above", "implicit inputs", "budget")
    rows = [identity(), inference(), training(20), training(150)]
    print(table(rows, heads))
    print()
    print(table([many(1000), idle()], ("replay, us", "call", "per kernel")))
    a, b = (Tensor(np.ones(4, np.float32)) for _ in range(2))
    eager = min(median(lambda: (a + b).realize()) for _ in range(5))
    lazy = min(median(lambda: a + b) for _ in range(5))
    print()
    print(table([("eager add", f"{eager:.1f}", "60"), ("lazy add", f"{lazy:.1f}", "8")],
                ("two tensors of 4 elements, us", "time", "budget")))  # fmt: skip
    if options.torch:
        torch_rows()


def torch_rows() -> None:
    """The MLP in PyTorch, eager, for comparison."""
    torch = __import__("torch")
    network = torch.nn.Sequential(
        torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 64), torch.nn.ReLU(),
        torch.nn.Linear(64, 10),
    )  # fmt: skip
    x = torch.zeros(1, 64)
    with torch.inference_mode():
        print(f"\nMLP in PyTorch: {median(lambda: network(x)):.1f} us")


if __name__ == "__main__":
    main()
