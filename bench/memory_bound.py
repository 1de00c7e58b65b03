"""Kernels that move memory, beside PyTorch and the machine's copy rate, in one process.

    python bench/memory_bound.py [--processor-time]

Twice: as it is, and with memory kept, so that PyTorch touches no fresh pages. The targets are
ratios to the second. --processor-time: both with one thread, and the time that it really ran: what
to compare on a machine that others use too.
"""

from __future__ import annotations

import argparse
import sys
import time

import numpy as np
from environment import main_of, options, threads

from treadle import Tensor, config
from treadle.tools.bench.timing import Call, in_turns, table

Cases = dict[str, Call]
SIZE = 16 << 20
SIDE = 4096
PROCESSOR_TIME = {"--processor-time": "one thread each, and the time that it really ran"}

# case -> the target: PyTorch's time divided by ours
TARGETS = {
    "relu(a*2+1)": 2.3, "exp": 2.3, "sum axis 0": 1.8, "sum axis 1": 1.0, "sum of all": 1.0,
    "softmax": 1.5, "layer norm": 1.5,
}  # fmt: skip


def on_treadle(x: Tensor, square: Tensor, weight: Tensor, bias: Tensor) -> Cases:
    """The cases on treadle; each call computes anew and frees the last result."""
    return {
        "relu(a*2+1)": lambda: (x * 2 + 1).relu().realize(),
        "exp": lambda: x.exp().realize(),
        "sum axis 0": lambda: square.sum(0).realize(),
        "sum axis 1": lambda: square.sum(1).realize(),
        "sum of all": lambda: square.sum().realize(),
        "softmax": lambda: square.softmax(1).realize(),
        "layer norm": lambda: square.layer_norm((SIDE,), weight, bias).realize(),
        "copy": lambda: Tensor(x).clone().realize(),
    }


def on_pytorch(x: np.ndarray, square: np.ndarray, weight: np.ndarray, bias: np.ndarray) -> Cases:
    """The same on PyTorch."""
    import torch

    torch.set_num_threads(threads())
    a, s, w, b = (torch.from_numpy(v) for v in (x, square, weight, bias))
    target = torch.empty_like(a)
    functional = torch.nn.functional
    return {
        "relu(a*2+1)": lambda: torch.relu(a * 2 + 1),
        "exp": lambda: torch.exp(a),
        "sum axis 0": lambda: s.sum(0),
        "sum axis 1": lambda: s.sum(1),
        "sum of all": lambda: s.sum(),
        "softmax": lambda: torch.softmax(s, 1),
        "layer norm": lambda: functional.layer_norm(s, (SIDE,), w, b),
        "copy": lambda: target.copy_(a),
    }


def side_by_side(mine: Cases, theirs: Cases, name: str) -> Cases:
    """One case on each library there is."""
    return {"ours": mine[name]} | ({"torch": theirs[name]} if theirs else {})


def main(asked: argparse.Namespace) -> None:
    """Print the table."""
    if asked.processor_time:
        config.THREADS.value = 1
    generator = np.random.default_rng(0)
    x = generator.standard_normal(SIZE, dtype=np.float32)
    square = x.reshape(SIDE, SIDE)
    weight, bias = generator.standard_normal((2, SIDE), dtype=np.float32)
    mine = on_treadle(*(Tensor(v).realize() for v in (x, square, weight, bias)))
    theirs: Cases = {}
    try:
        theirs = on_pytorch(x, square, weight, bias)
    except ImportError:
        print("PyTorch is not installed: its column is empty", file=sys.stderr)
    clock = time.process_time if asked.processor_time else time.perf_counter
    times = {
        name: in_turns(side_by_side(mine, theirs, name), clock=clock) for name in ("copy", *TARGETS)
    }
    copy_rate = max(2 * x.nbytes / t.median for t in times["copy"].values()) / 1e9
    rows = []
    for name, target in TARGETS.items():
        own, other = times[name]["ours"], times[name].get("torch")
        moved = x.nbytes * (1 if name.startswith("sum") else 2)
        rate = moved / own.median / 1e9
        beside = ("-", "-", "-")
        if other is not None:
            ratio = other.median / own.median
            beside = (f"{other.median * 1e3:.2f}", f"{other.spread:.0%}", f"{ratio:.2f}")
        row = (name, f"{own.median * 1e3:.2f}", f"{own.spread:.0%}", *beside, f"{target}")
        rows.append((*row, f"{rate:.1f}", f"{rate / copy_rate:.2f}"))
    print(f"16M float32, ms, medians; copy rate {copy_rate:.1f} GB/s (the faster of the copies)")
    heads = ("case", "ours", "+-", "PyTorch", "+-", "ratio", "target", "GB/s", "of copy")
    print(table(rows, heads))


if __name__ == "__main__":
    main_of(__file__, main, options(__doc__, flags=PROCESSOR_TIME), both=True)
