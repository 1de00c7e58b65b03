"""Fourier transforms beside PyTorch, in one process.

    python bench/fft.py [case ..]

Ours are captured functions, which keep their tables of roots of unity, as PyTorch's plans are kept;
PyTorch writes into an array that is there. A ratio is our time divided by PyTorch's, of medians,
and of the least times, which say more on a machine that others use too.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from environment import main_of, options, threads

import treadle
from treadle import Tensor
from treadle.tools.bench.timing import Call, in_turns, table

# case -> the function, the shape of its argument, and whether that is real
CASES: dict[str, tuple[str, tuple[int, ...], bool]] = {
    **{f"fft 2^{power}": ("fft", (1 << power,), False) for power in range(10, 21, 2)},
    "fft 64 x 4096": ("fft", (64, 4096), False),
    "rfft 64 x 4096": ("rfft", (64, 4096), True),
    "irfft 64 x 4096": ("irfft", (64, 2049), False),
    "fft 1009 (prime)": ("fft", (1009,), False),
    "fft 100003 (prime)": ("fft", (100_003,), False),
    "fft2 512 x 512": ("fft2", (512, 512), False),
    "rfft2 512 x 512": ("rfft2", (512, 512), True),
}


def calls(name: str, shape: tuple[int, ...], is_real: bool) -> dict[str, Call]:
    """A transform by both libraries; checked before it is timed."""
    import torch

    torch.set_num_threads(threads())
    random = np.random.default_rng(0)
    array: Any = random.standard_normal(shape, dtype=np.float32)
    if not is_real:
        array = array + np.complex64(1j) * random.standard_normal(shape, dtype=np.float32)
    ours, theirs = treadle.jit(getattr(treadle.fft, name)), getattr(torch.fft, name)
    x, y = Tensor(array).realize(), torch.from_numpy(array)
    out = theirs(y)
    error = np.linalg.norm((ours(x).numpy() - out.numpy()).ravel())
    assert error < 1e-5 * np.linalg.norm(out.numpy().ravel()), f"{name} {shape}: {error}"
    return {"ours": lambda: ours(x).realize(), "theirs": lambda: theirs(y, out=out)}


def main(asked: argparse.Namespace) -> None:
    """Print the table."""
    rows = []
    for case in asked.names:
        found = in_turns(calls(*CASES[case]), turns=5)
        ours, theirs = found["ours"], found["theirs"]
        ratio = ours.median / theirs.median
        least = [min(each.seconds) for each in (ours, theirs)]
        times = [f"{1e3 * each:.3f}" for each in (ours.median, theirs.median, *least)]
        spread = f"{max(ours.spread, theirs.spread):.0%}"
        rows.append(
            (case, *times[:2], f"{ratio:.2f}", spread, *times[2:], f"{least[0] / least[1]:.2f}")
        )
    heads = ("ours, ms", "PyTorch, ms", "ratio")
    print(table(rows, ("case", *heads, "+-", *[f"least {head}" for head in heads])))


if __name__ == "__main__":
    main_of(__file__, main, options(__doc__, CASES))
