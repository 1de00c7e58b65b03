"""Named tuples of results: they unpack as tuples do, and their fields have the names that PyTorch
and the Array API standard give them.

Each is generic in what it holds: nodes where functions are written, Tensors for users.
"""

from __future__ import annotations

from typing import Generic, NamedTuple, TypeVar

X = TypeVar("X")


class ValuesIndices(NamedTuple, Generic[X]):
    """Elements, and where each stands along a dimension."""

    values: X
    indices: X


class MinMax(NamedTuple, Generic[X]):
    """The least and the greatest element."""

    min: X
    max: X
