"""What a call costs beside the arithmetic: captured and eager, from Python.

    python bench/overhead.py [--torch] [--busy]

Every time is a median, with half the distance between the quartiles beside it. "native" is the time
inside the one native call, waking threads included, "above" all the rest; its budget is 5 us + 0.15
us per implicit input (a closed-over tensor). --torch: PyTorch beside it, in turns. --busy: the same
calls while another process spins on every core.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from treadle import Tensor, jit, nn, no_grad
from treadle.captured import Jit
from treadle.tools.bench.timing import Times, in_turns, table

Row = tuple[str, ...]
Call = Callable[[], object]


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


def timed(call: Call, calls: int, warm: int = 30, before: Call | None = None) -> Times:
    """The times of single calls. before: what is done before each, outside of the time."""
    for _ in range(warm):
        call()
    seconds = []
    for _ in range(calls):
        if before is not None:
            before()
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return Times(seconds)


def quietest(call: Call, calls: int = 300, blocks: int = 5) -> Times:
    """The block of calls with the least median: neighbours disturb whole blocks."""
    return min((timed(call, calls) for _ in range(blocks)), key=lambda times: times.median)


def shown(times: Times) -> str:
    """Microseconds, and the spread."""
    return f"{times.median * 1e6:.1f} +- {times.spread * 100:.0f}%"


# ---- captured functions --------------------------------------------------------------------------
def captured(name: str, function: Jit, *args: Any) -> Row:
    """Time a captured function, and the native call in it."""
    whole_alone = quietest(lambda: function(*args))
    assert function.last is not None
    program = function.last.captured
    inner = program.runner
    noted = program.runner = Timed(inner)
    blocks = []
    for _ in range(5):
        whole, native = [], []
        for _ in range(400):
            start = time.perf_counter()
            function(*args)
            whole.append(time.perf_counter() - start)
            native.append(noted.seconds)
        above = Times([a - b for a, b in zip(whole, native, strict=True)])
        blocks.append((above.median, above, statistics.median(native)))
    program.runner = inner
    _, above, native_median = min(blocks, key=lambda block: block[0])
    inputs = len(program.closed.cells)
    return (
        name, shown(whole_alone), f"{native_median * 1e6:.1f}", shown(above), f"{inputs}",
        f"{5 + 0.15 * inputs:.1f}",
    )  # fmt: skip


def model(width: int = 64) -> nn.Module:
    """The network of the first line: 64-64-64-10."""
    return nn.Sequential(
        nn.Linear(64, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 10)
    )


def network() -> tuple[Jit, Tensor]:
    """The MLP, captured, and its input at batch 1."""
    return jit(model()), Tensor(np.zeros((1, 64), np.float32))


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
    hot = quietest(lambda: chain(x), calls=100)
    assert chain.last is not None
    kernels = len(list(chain.last.captured.schedule.calls()))
    return f"{kernels} small kernels", shown(hot), f"{hot.median * 1e6 / kernels:.3f} each", "0.2"


def idle() -> Row:
    """A call after 2 ms in which nothing ran."""
    run, x = network()
    times = timed(lambda: run(x), 300, before=lambda: time.sleep(0.002))
    return "the MLP after 2 ms of idleness", shown(times), "", "40"


# ---- what is kept of unchanged weights -----------------------------------------------------------
def packing(name: str, layer: nn.Module, *shape: int) -> Row:
    """A layer whose weight stays as it is, and one whose weight is written before every call."""
    run = jit(layer)
    x = Tensor(np.ones(shape, np.float32))
    weight: Any = layer.weight
    kept = quietest(lambda: run(x), calls=40, blocks=3)

    def write() -> None:
        weight.mul_(1)
        weight.realize()

    again = min(
        (timed(lambda: run(x), 40, 5, write) for _ in range(3)), key=lambda times: times.median
    )
    assert run.last is not None
    found = run.last.captured.kept
    size = "0" if found is None else f"{found.bytes / 2**20:.2f}"
    return name, shown(kept), shown(again), size


# ---- beside others -------------------------------------------------------------------------------
@contextmanager
def spinning() -> Iterator[None]:
    """Every core is wanted by another process."""
    program = "while True: pass"
    children = [
        subprocess.Popen([sys.executable, "-c", program])
        for _ in range(len(os.sched_getaffinity(0)))
    ]
    try:
        time.sleep(0.3)
        yield
    finally:
        for child in children:
            child.kill()
            child.wait()


def block(call: Call, seconds: float = 1.0) -> float:
    """The mean time of a call over a while, in microseconds: with what it waits for a core."""
    calls = 0
    start = time.perf_counter()
    while time.perf_counter() - start < seconds:
        call()
        calls += 1
    return (time.perf_counter() - start) / calls * 1e6


def busy() -> list[Row]:
    """Alone, and while others spin."""
    run, x = network()
    square = Tensor(np.ones((512, 512), np.float32))
    product = jit(lambda x: x @ x)
    rows = []
    for name, call in (
        ("the MLP", lambda: run(x)),
        ("512 x 512 x 512, two threads", lambda: product(square)),
    ):
        block(call, 0.2)
        alone = min(block(call, 0.3) for _ in range(3))
        with spinning():
            beside = statistics.median(block(call) for _ in range(3))
        rows.append((name, f"{alone:.1f}", f"{beside:.1f}", f"{beside / alone:.2f}", "2.5"))
    return rows


def torch_rows() -> list[Row]:
    """The MLP here and in PyTorch, eager, in turns."""
    torch = __import__("torch")
    theirs = torch.nn.Sequential(
        torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 64), torch.nn.ReLU(),
        torch.nn.Linear(64, 10),
    )  # fmt: skip
    y = torch.zeros(1, 64)
    run, x = network()
    with torch.inference_mode():
        found = in_turns(
            {"ours": lambda: run(x), "torch": lambda: theirs(y)}, turns=5, calls=400, warm=30
        )
    ratio = found["torch"].median / found["ours"].median
    return [("the MLP", shown(found["ours"]), shown(found["torch"]), f"{ratio:.2f}", "3")]


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--torch", action="store_true", help="PyTorch beside it")
    parser.add_argument("--busy", action="store_true", help="beside a process on every core")
    options = parser.parse_args()
    with no_grad():
        run, x = network()
        inference = captured("MLP 64-64-64-10, batch 1", run, x)
        replays = [many(1000), idle()]
        packed = [
            packing("conv 8x64x56x56, 3x3", nn.Conv2d(64, 64, 3, padding=1), 8, 64, 56, 56),
            packing("conv 8x512x7x7, 3x3", nn.Conv2d(512, 512, 3, padding=1), 8, 512, 7, 7),
            packing("1x2048 @ 2048x8192", nn.Linear(2048, 8192), 1, 2048),
            packing("64x4096 @ 4096x512", nn.Linear(4096, 512), 64, 4096),
        ]
        beside = torch_rows() if options.torch else []
        loaded = busy() if options.busy else []
    heads = ("captured, us", "call", "native", "above", "implicit inputs", "budget")
    print(table([identity(), inference, training(20), training(150)], heads))
    print("\n" + table(replays, ("replay, us", "call", "per kernel", "target")))
    heads = ("unchanged weights, us", "kept", "written before each call", "MiB kept")
    print("\n" + table(packed, heads))
    a, b = (Tensor(np.ones(4, np.float32)) for _ in range(2))
    eager, lazy = quietest(lambda: (a + b).realize()), quietest(lambda: a + b)
    rows = [("eager add", shown(eager), "60"), ("lazy add", shown(lazy), "8")]
    print("\n" + table(rows, ("two tensors of 4 elements, us", "time", "target")))
    if beside:
        print("\n" + table(beside, ("beside PyTorch, us", "ours", "PyTorch", "ratio", "target")))
    if loaded:
        heads = ("cores wanted by others, mean us", "alone", "beside", "ratio", "at most")
        print("\n" + table(loaded, heads))


if __name__ == "__main__":
    main()
