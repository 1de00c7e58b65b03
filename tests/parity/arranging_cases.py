"""Cases of functions that join, split, and make matrices of diagonals and blocks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from cases import Case

from treadle import Tensor

torch = pytest.importorskip("torch", reason="parity needs PyTorch: make test-full")
RNG = np.random.default_rng(21)


def n(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape)


def joined(name: str, *arrays: np.ndarray) -> list[Case]:
    """A function of a list of tensors."""

    def call(place: Any) -> Callable[..., Any]:
        return lambda *xs: getattr(place, name)(list(xs) if place is Tensor or many else xs)

    many = name not in ("block_diag", "cartesian_prod")
    if many:
        return [Case(arrays, ours=call(Tensor), theirs=call(torch))]
    return [Case(arrays, ours=call(Tensor), theirs=lambda *xs: getattr(torch, name)(*xs))]


def part(name: str, number: int, *args: Any) -> list[Case]:
    """One of the results of a method, of a tensor of three dimensions."""

    def call(x: Any) -> Any:
        return getattr(x, name)(*args)[number]

    return [Case((n(4, 6, 2),), ours=call, theirs=call)]


def grid(x: Any, y: Any) -> Any:
    """The second coordinates."""
    first = Tensor.meshgrid(x, y) if isinstance(x, Tensor) else torch.meshgrid(x, y, indexing="ij")
    return first[1]


def stretched(x: Any, y: Any) -> Any:
    place = Tensor if isinstance(x, Tensor) else torch
    return place.broadcast_tensors(x, y)[0]


def both(name: str) -> list[Case]:
    """A method with two results, joined."""

    def call(x: Any) -> Any:
        place = Tensor if isinstance(x, Tensor) else torch
        return place.stack(list(getattr(x, name)(dim=1) if place is Tensor
                                else getattr(torch, name)(x, dim=1)))  # fmt: skip

    return [Case((n(3, 4),), ours=call, theirs=call)]


def at(name: str, *args: Any, **named: Any) -> Callable[..., Any]:
    """A method that writes at indices along dimension 0."""
    return lambda x, i, *source: getattr(x, name)(0, i, *source, *args, **named)


def written(name: str, *args: Any, order: int = 2, **named: Any) -> Case:
    call = at(name, *args, **named)
    arrays = (n(3, 4), PICK, n(2, 4)) if name == "scatter_reduce" else (n(3, 4), ROWS, n(3, 4))
    return Case(arrays, ours=call, theirs=call, order=order)


PICK = np.array([[0, 2, 1, 1], [2, 0, 1, 0]])
ROWS = np.array([2, 0, 2])
ARRANGING: dict[str, list[Case]] = {
    "atleast_1d": [Case((n(3),), theirs=torch.atleast_1d)],
    "atleast_2d": [Case((n(3),), theirs=torch.atleast_2d)],
    "atleast_3d": [Case((n(3),), theirs=torch.atleast_3d)],
    "hstack": joined("hstack", n(3, 2), n(3, 4)),
    "vstack": joined("vstack", n(3), n(2, 3)),
    "dstack": joined("dstack", n(3, 2), n(3, 2)),
    "column_stack": joined("column_stack", n(3), n(3, 2)),
    "block_diag": joined("block_diag", n(3), n(2, 3)),
    "cartesian_prod": joined("cartesian_prod", n(3), n(2)),
    "hsplit": part("hsplit", 1, 3),
    "vsplit": part("vsplit", 1, [1, 3]),
    "dsplit": part("dsplit", 0, 2),
    "split_with_sizes": part("split_with_sizes", 1, [1, 3]),
    "narrow": [Case((n(3, 4),), (1, -3, 2))],
    "select": [Case((n(3, 4),), (1, -1))],
    "view_as": [Case((n(3, 4), n(2, 6)), order=0)],
    "adjoint": [Case((n(2, 3, 4),))],
    "type_as": [Case((n(3, 4), n(2)), order=0)],
    "sum_to_size": [Case((n(2, 3, 4),), (3, 1))],
    "unfold": [Case((n(3, 7),), (1, 3, 2))],
    "fliplr": [Case((n(3, 4),))],
    "flipud": [Case((n(3, 4),))],
    "rot90": [Case((n(3, 4),), (3,)), Case((n(3, 4, 2),), (1, (0, 2)))],
    "pad_to": [Case((n(3, 4),), (5, None),
                    theirs=lambda x, *_: torch.nn.functional.pad(x, (0, 0, 0, 2)))],
    "shrink_to": [Case((n(3, 4),), (2, None), theirs=lambda x, *_: x[:2])],
    "swapdims": [Case((n(3, 4, 2),), (0, 2))],
    "meshgrid": [Case((n(3), n(2)), ours=grid, theirs=grid)],
    "broadcast_tensors": [Case((n(3, 1), n(2)), ours=stretched, theirs=stretched)],
    "diag_embed": [Case((n(2, 3),), (-1, 0, 2))],
    "diag": [Case((n(3),), (1,)), Case((n(3, 4),), (1,))],
    "diagflat": [Case((n(2, 2),), (1,))],
    "diagonal_scatter": [Case((n(3, 4), n(3)), (1,))],
    "select_scatter": [Case((n(3, 4), n(3)), (1, 2))],
    "slice_scatter": [Case((n(3, 4), n(3, 2)), (1, 0, None, 2))],
    "index_add": [written("index_add", alpha=3)],
    "index_copy": [Case((n(3, 4), ROWS[:2], n(2, 4)), ours=at("index_copy"),
                        theirs=at("index_copy"))],
    "index_fill": [Case((n(3, 4), ROWS), ours=at("index_fill", 2.0), theirs=at("index_fill", 2.0))],
    "index_reduce": [
        written("index_reduce", reduce, order=1, include_self=own)
        for reduce in ("prod", "mean", "amax", "amin") for own in (True, False)
    ],
    "scatter_reduce": [
        written("scatter_reduce", reduce, order=1, include_self=own)
        for reduce in ("sum", "prod", "mean", "amax", "amin") for own in (True, False)
    ],
    "take": [Case((n(3, 4), PICK))],
    "put": [Case((n(3, 4), PICK, n(2, 4)), (True,))],
    "aminmax": both("aminmax"),
    "var_mean": both("var_mean"),
    "std_mean": both("std_mean"),
    "nansum": [Case((n(3, 4),), (1,))],
    "nanmean": [Case((n(3, 4),), (1,))],
}  # fmt: skip
