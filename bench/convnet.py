"""The demo's training step beside the same step on PyTorch, both with Adam and a batch of 128.

    python bench/convnet.py

The network is that of examples/digits.py; all run on the same batch again and again. Ours runs
captured by `jit`, too.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
import torch
from environment import main_of, options, threads

from treadle import Tensor, jit, nn
from treadle.tools.bench.timing import Call, in_turns, table

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))
import digits as demo

BATCH = 128


def on_treadle(images: np.ndarray, labels: np.ndarray, captured: bool) -> Call:
    """A step of the demo."""
    model = demo.Convnet()
    optimizer = nn.optim.Adam(model.parameters(), lr=demo.RATE)

    def step(x: Tensor, y: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = model(x).cross_entropy(y)
        loss.backward()
        optimizer.step()
        return loss

    run = jit(step) if captured else step
    return lambda: float(run(Tensor(images), Tensor(labels)).item())


def on_pytorch(images: np.ndarray, labels: np.ndarray) -> Call:
    """The same step on PyTorch."""
    torch.set_num_threads(threads())
    layers = torch.nn
    model = layers.Sequential(
        layers.Conv2d(1, 32, 5),
        layers.ReLU(),
        layers.Conv2d(32, 32, 5, bias=False),
        layers.ReLU(),
        layers.BatchNorm2d(32),
        layers.MaxPool2d(2),
        layers.Conv2d(32, 64, 3),
        layers.ReLU(),
        layers.Conv2d(64, 64, 3, bias=False),
        layers.ReLU(),
        layers.BatchNorm2d(64),
        layers.MaxPool2d(2),
        layers.Flatten(),
        layers.Linear(64 * 3 * 3, 10),
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=demo.RATE)
    x, y = torch.from_numpy(images), torch.from_numpy(labels)

    def step() -> float:
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return float(loss.item())

    return step


def main(asked: argparse.Namespace) -> None:
    """Print the table."""
    training, _ = demo.load_digits()
    images, labels = next(demo.batches(training, 1, BATCH, np.random.default_rng(0)))
    images = np.ascontiguousarray(images)
    steps = {
        "treadle": on_treadle(images, labels, captured=False),
        "treadle, captured": on_treadle(images, labels, captured=True),
        "PyTorch": on_pytorch(images, labels),
    }
    times = in_turns(steps, turns=5, calls=5)
    other = times["PyTorch"].median
    rows = [
        (name, f"{t.median * 1e3:.1f}", f"{t.spread:.0%}", f"{other / t.median:.2f}")
        for name, t in times.items()
    ]
    print(f"a training step of {BATCH} digits, medians, {threads()} threads")
    print(table(rows, ("library", "ms", "+-", "ratio")))


if __name__ == "__main__":
    main_of(__file__, main, options(__doc__), both=True)
