"""Linear algebra against PyTorch, in milliseconds and as ratios in one run.

    python bench/linalg.py [--float64] [function ..]

Captured functions against eager PyTorch on as many threads; one matrix of each size, and a batch of
64 small ones.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from environment import options

from treadle import Tensor, jit, linalg
from treadle.tools.bench.timing import in_turns, table

SHAPES = ((64, 16, 16), (128, 128), (256, 256), (512, 512))
Arrays = dict[str, np.ndarray[Any, Any]]
# name -> (ours, PyTorch's, which matrices)
CASES: dict[str, tuple[Callable[..., Any], Callable[..., Any], tuple[str, ...]]] = {
    "cholesky": (linalg.cholesky, torch.linalg.cholesky, ("definite",)),
    "solve_triangular": (
        lambda a, b: linalg.solve_triangular(a, b, upper=False),
        lambda a, b: torch.linalg.solve_triangular(a, b, upper=False),
        ("lower", "any"),
    ),
    "lu_factor": (linalg.lu_factor, torch.linalg.lu_factor, ("any",)),
    "solve": (linalg.solve, torch.linalg.solve, ("any", "definite")),
    "inv": (linalg.inv, torch.linalg.inv, ("any",)),
    "qr": (linalg.qr, torch.linalg.qr, ("any",)),
    "eigh": (linalg.eigh, torch.linalg.eigh, ("definite",)),
    "svd": (
        lambda a: linalg.svd(a, False),
        lambda a: torch.linalg.svd(a, False),
        ("any",),
    ),
    "matrix_exp": (linalg.matrix_exp, torch.linalg.matrix_exp, ("any",)),
}


def matrices(shape: tuple[int, ...], dtype: str) -> Arrays:
    """Random matrices of each kind."""
    size = shape[-1]
    drawn = np.random.default_rng(0).standard_normal(shape).astype(dtype)
    definite = drawn @ drawn.swapaxes(-1, -2) / size + np.eye(size, dtype=dtype)
    lower = np.tril(drawn) + size * np.eye(size, dtype=dtype)
    return {"any": drawn, "definite": definite, "lower": lower}


def row(name: str, shape: tuple[int, ...], dtype: str) -> tuple[str, ...]:
    """The figures of one case."""
    ours, theirs, kinds = CASES[name]
    given = [matrices(shape, dtype)[kind] for kind in kinds]
    tensors, arrays = [Tensor(x) for x in given], [torch.from_numpy(x) for x in given]
    captured = jit(ours)

    def call() -> Any:
        found = captured(*tensors)
        return (found if isinstance(found, Tensor) else found[0]).numpy()

    times = in_turns({"ours": call, "theirs": lambda: theirs(*arrays)}, turns=2, calls=3, warm=1)
    own, other = times["ours"].median, times["theirs"].median
    shown = "x".join(map(str, shape))
    return name, shown, f"{own * 1e3:.2f}", f"{other * 1e3:.2f}", f"{own / other:.1f}"


def main(asked: argparse.Namespace) -> None:
    """Print the table."""
    dtype = "float64" if asked.float64 else "float32"
    rows = [row(name, shape, dtype) for name in asked.names for shape in SHAPES]
    print(table(rows, ("function", "shape", "treadle, ms", "PyTorch, ms", "ratio")))


if __name__ == "__main__":
    main(options(__doc__, CASES, {"--float64": "instead of float32"}))
