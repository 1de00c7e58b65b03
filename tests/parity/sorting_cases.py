"""Cases of sorting, counting and rearrange."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from cases import Case

torch = pytest.importorskip("torch", reason="parity needs PyTorch: make test-full")

RNG = np.random.default_rng(13)
X = RNG.permutation(12).reshape(3, 4) / 4 - 1.3  # no two are equal
MASK = X > 0
HOLES = np.where(X > 0.8, np.nan, X)


def part(name: str, number: int, *args: Any, **named: Any) -> dict[str, Callable[..., Any]]:
    """One of the results, on both sides."""

    def ours(x: Any, *more: Any) -> Any:
        return getattr(x, name)(*more, *args, **named)[number]

    def theirs(x: Any, *more: Any) -> Any:
        place = torch.Tensor if hasattr(torch.Tensor, name) else torch
        return getattr(place, name)(x, *more, *args, **named)[number]

    return {"ours": ours, "theirs": theirs}


SORTING: dict[str, list[Case]] = {
    "masked_select": [Case((X, MASK))],
    "tensor_split": [Case((X,), **part("tensor_split", 1, 3, 1))],
    "index_put": [
        Case((X, np.array([2, 0, 2]), X[::-1] * 2), (True,),
             ours=lambda x, i, y, more: x.index_put((i,), y, more),
             theirs=lambda x, i, y, more: x.index_put((i,), y, more))
    ],
    "sort": [Case((X,), **part("sort", 0, 0, True))],
    "msort": [Case((X,))],
    "topk": [Case((X,), **part("topk", 0, 2, 0, False))],
    "kthvalue": [Case((X,), **part("kthvalue", 0, 3))],
    "median": [Case((X,)), Case((X,), **part("median", 0, 1))],
    "nanmedian": [Case((X,)), Case((HOLES,), **part("nanmedian", 0, 1), order=0)],
    "mode": [Case((X,), **part("mode", 0, 1))],
    "quantile": [Case((X,), (0.3, 1)), Case((X,), (0.7,), {"interpolation": "midpoint"})],
    "nanquantile": [Case((X,), (0.3, 1))],
    "repeat_interleave": [
        Case((X,), (2, 1)),
        Case((X, np.array([1, 0, 2])), (0,)),
    ],
    "rearrange": [
        Case((X,), ("h (b w) -> b (w h) 1",), {"b": 2},
             theirs=lambda x, _, b: x.reshape(3, 2, 2).permute(1, 2, 0).reshape(2, 6, 1))
    ],
}  # fmt: skip
