"""Linear algebra: `treadle.linalg.solve(a, b)`. Names and arguments are PyTorch's `torch.linalg`.

All take batches of matrices, in the last two dimensions, in float32 or float64. The functions are
in `treadle/graph/linalg/`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from treadle import methods
from treadle.graph.public import LINALG


def __getattr__(name: str) -> Callable[..., Any]:
    """The function of this name. AttributeError if there is none."""
    if name not in LINALG:
        raise AttributeError(f"module 'treadle.linalg' has no attribute {name!r}")
    made = globals()[name] = methods.function(name, LINALG)
    return made


def __dir__() -> list[str]:
    return sorted({*globals(), *LINALG})
