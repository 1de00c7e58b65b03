"""Matrix products beside PyTorch: a schedule written by hand, the heuristic's, and what each action
of the first buys.

    python bench/matmul.py [--actions]

The list is tests/kernel/golden/matmul_cpu.txt. Every result is compared with float64 before it is
timed. --actions prints the lists and times the first with one of its actions taken away.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from environment import main_of, options, threads

from treadle import Tensor
from treadle.engine import device as devices
from treadle.engine.realize import prepare
from treadle.engine.storage import Buffer
from treadle.ir.dtype import float32
from treadle.ir.node import Node
from treadle.kernel.actions import Action, apply
from treadle.kernel.build import build
from treadle.kernel.heuristic import heuristic
from treadle.kernel.layout import root_buffers
from treadle.kernel.lower import lower
from treadle.kernel.schedule_text import parse_actions, show_actions
from treadle.tools.bench.timing import in_turns, table

GOLDEN = Path(__file__).parents[1] / "tests" / "kernel" / "golden" / "matmul_cpu.txt"
SQUARE = ((512, 512, 512), (1024, 1024, 1024), (2048, 2048, 2048))
RAGGED = ((1000, 777, 1234), (900, 900, 900), (64, 4096, 512), (333, 129, 1001))
WITHOUT = ("stage arg2 at j1 as B", "grid i0, j1", "unroll ku, iu, ju", "vector jv")


class Scheduled:
    """A product of given matrices, (m, k) by (k, n), by a list of actions."""

    def __init__(self, sink: Node, actions: Sequence[Action], a: np.ndarray, b: np.ndarray) -> None:
        backend, runner = devices.backend("CPU"), devices.runner("CPU")
        kernel = apply(build(sink, backend.target), actions)
        functions = lower(kernel, "product")
        self._library = backend.load(backend.compile(backend.render(functions)))
        self._result = Buffer(4 * a.shape[0] * b.shape[1])
        self._buffers = [self._result, _filled(a), _filled(b)]
        self._buffers += [
            Buffer(node.dtype.itemsize * node.shape[0]) for node in root_buffers(kernel).values()
        ]
        records = runner.builder(2 + len(self._buffers))
        for function in functions:
            slots = (*(1 + param.arg[0] for param in function.params), 1 + len(self._buffers))
            chunks = 1 if function.tasks == 1 else 0
            records.phase([(self._library.address(function.name), slots, function.tasks, chunks)])
        self._program = records.build()
        for number, buffer in enumerate(self._buffers):
            self._program.slots[1 + number] = buffer.address
        self._run = runner.run
        self._shape = a.shape[0], b.shape[1]

    def __call__(self) -> None:
        self._run(self._program)

    def result(self) -> np.ndarray:
        """The product."""
        self()
        return self._result.array(float32, self._shape)


def _filled(values: np.ndarray) -> Buffer:
    buffer = Buffer(values.nbytes)
    buffer.array(float32, values.shape)[:] = values
    return buffer


def matrices(shape: tuple[int, int, int]) -> tuple[np.ndarray, np.ndarray]:
    """Random factors."""
    m, k, n = shape
    random = np.random.default_rng(0)
    return random.standard_normal((m, k), np.float32), random.standard_normal((k, n), np.float32)


def kernel_of(a: np.ndarray, b: np.ndarray) -> Node:
    """The one kernel of `a @ b`."""
    (program,) = prepare([Tensor(a).realize() @ Tensor(b).realize()])
    (call,) = program.schedule.calls()
    return call.kernel


def chosen_for(a: np.ndarray, b: np.ndarray) -> list[Action]:
    """The heuristic's actions for `a @ b`."""
    target = devices.backend("CPU").target
    return heuristic(build(kernel_of(a, b), target), target)


def scheduled(actions: Sequence[Action], a: np.ndarray, b: np.ndarray) -> Scheduled:
    """A product by these actions, found right. RuntimeError if it is not."""
    product = Scheduled(kernel_of(a, b), actions, a, b)
    exact = a.astype(np.float64) @ b
    error = np.abs(product.result() - exact).max() / np.abs(exact).max()
    if not error < 1e-5:
        raise RuntimeError(f"{a.shape} @ {b.shape} is wrong by {error:.1e}")
    return product


def compare() -> None:
    """By hand, by the heuristic, and PyTorch, on every shape."""
    actions = parse_actions(GOLDEN.read_text())
    rows = []
    for shape in (*SQUARE, *RAGGED):
        a, b = matrices(shape)
        chosen = chosen_for(a, b)
        x, y = torch.from_numpy(a), torch.from_numpy(b)
        out = torch.empty(shape[0], shape[2])
        calls: dict[str, Callable[[], object]] = {
            "list": scheduled(actions, a, b),
            "heuristic": scheduled(chosen, a, b),
            "torch": lambda x=x, y=y, out=out: torch.mm(x, y, out=out),
        }
        times = in_turns(calls)
        speed = {name: 2e-9 * np.prod(shape) / t.median for name, t in times.items()}
        ratios = [speed[name] / speed["torch"] for name in ("list", "heuristic")]
        spread = max(t.spread for t in times.values())
        numbers = [f"{number:.0f}" for number in speed.values()]
        row = ("x".join(map(str, shape)), *numbers, *(f"{ratio:.2f}" for ratio in ratios))
        rows.append((*row, f"{spread:.0%}"))
    print(f"float32, GFLOP/s, medians, {threads()} threads")
    heads = ("shape", "list", "heuristic", "PyTorch", "list ratio", "heuristic ratio", "+-")
    print(table(rows, heads))


def take_away() -> None:
    """The list without one of its actions: right, and slower."""
    text = GOLDEN.read_text()
    a, b = matrices(SQUARE[2])
    variants = {"all actions": scheduled(parse_actions(text), a, b)}
    for line in WITHOUT:
        fewer = "\n".join(kept for kept in text.splitlines() if not _needs(kept, line))
        variants[f"without {line}"] = scheduled(parse_actions(fewer), a, b)
    times = in_turns(variants, turns=3, calls=2, warm=1)
    whole = times["all actions"].median
    rows = [(n, f"{t.median * 1e3:.1f}", f"{t.median / whole:.2f}") for n, t in times.items()]
    print("2048 x 2048 x 2048")
    print(table(rows, ("schedule", "ms", "times as long")))


def _needs(line: str, without: str) -> bool:
    """Whether a line is the one taken away, or acts on what only that one makes."""
    return line == without or (without.startswith("stage") and "B1" in line)


def main(asked: argparse.Namespace) -> None:
    """Print the tables."""
    torch.set_num_threads(threads())
    compare()
    if asked.actions:
        print("\nThe list by hand\n" + show_actions(parse_actions(GOLDEN.read_text())))
        chosen = show_actions(chosen_for(*matrices(SQUARE[1])))
        print(f"\nThe heuristic's list for 1024\n{chosen}\n")
        take_away()


if __name__ == "__main__":
    main_of(__file__, main, options(__doc__, flags={"--actions": "what each action buys"}))
