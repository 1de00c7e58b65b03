"""NumPy's functions given tensors: `np.sin(x)` is `treadle.sin(x)`, with its gradient. What there
is no function for is computed by NumPy from arrays, which a tensor that requires a gradient
refuses to become."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from treadle.engine.cell import Cell
from treadle.graph.public import NAMESPACE

# NumPy's name of a function -> ours, where they differ
NAMES = {
    "conjugate": "conj",
    "invert": "bitwise_invert",
    "left_shift": "bitwise_left_shift",
    "power": "pow",
    "right_shift": "bitwise_right_shift",
    "rint": "round",
}


def ufunc(
    ours: ModuleType, function: np.ufunc, method: str, inputs: Sequence[Any], named: dict[str, Any]
) -> Any:
    """What a universal function of NumPy gives for tensors. TypeError for `out=` a tensor."""
    name = NAMES.get(function.__name__, function.__name__)
    if any(isinstance(each, Cell) for each in named.get("out", ())):
        raise TypeError(f"np.{function.__name__}: `out` is no tensor: write x[...] = {name}(..)")
    if method == "__call__" and not named and name in NAMESPACE:
        return getattr(ours, name)(*inputs)
    run: Callable[..., Any] = getattr(function, method)
    return run(*_plain(inputs), **_plain(named))


def function(function: Callable[..., Any], args: Sequence[Any], named: dict[str, Any]) -> Any:
    """What any other function of NumPy gives for tensors, which it gets as arrays."""
    return function(*_plain(args), **_plain(named))


def _plain(value: Any) -> Any:
    """Arguments with arrays for tensors."""
    if isinstance(value, Cell):
        return np.asarray(value)
    if isinstance(value, list | tuple):
        parts = [_plain(part) for part in value]
        return parts if isinstance(value, list) else tuple(parts)
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    return value
