"""Kernels that move memory, beside PyTorch and the machine's copy rate, in one process.

    python bench/memory_bound.py

With MALLOC_MMAP_MAX_=0 in the environment, PyTorch runs without page faults of fresh memory; the
targets are ratios to that.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

import numpy as np
from timing import in_turns, table

from treadle import Tensor

Cases = dict[str, Callable[[], object]]
SIZE = 16 << 20
SIDE = 4096

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

    torch.set_num_threads(len(os.sched_getaffinity(0)))
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


def main() -> None:
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
    copy = in_turns(side_by_side(mine, theirs, "copy"))
    copy_rate = max(2 * x.nbytes / t.median for t in copy.values()) / 1e9
    rows = []
    for name in mine:
        times = in_turns(side_by_side(mine, theirs, name))
        moved = x.nbytes if name.startswith("sum") else 2 * x.nbytes
        rate = moved / times["ours"].median / 1e9
        ratio = times["torch"].median / times["ours"].median if theirs else float("nan")
        torch_ms = f"{times['torch'].median * 1e3:.2f}" if theirs else "-"
        rows.append(
            (name, f"{times['ours'].median * 1e3:.2f}", f"{times['ours'].spread:.0%}", torch_ms,
             f"{ratio:.2f}", f"{TARGETS.get(name, 1.0)}", f"{rate:.1f}", f"{rate / copy_rate:.2f}")
        )  # fmt: skip
    print(f"16M float32, medians; copy rate {copy_rate:.1f} GB/s (the faster of the two copies)")
    print(table(rows, ("case", "ms", "+-", "PyTorch ms", "ratio", "target", "GB/s", "of copy")))


if __name__ == "__main__":
    main()
