"""Tensors from arrays and back, by way of the graph interpreter, for tests of public functions."""

import itertools
from typing import Any

import numpy as np

from treadle.backend.interp.graph import evaluate
from treadle.ir import ops
from treadle.ir.dtype import DType, from_numpy
from treadle.ir.node import Node, Shape

_slots = itertools.count()
_arrays: dict[Node, np.ndarray] = {}


def tensor(data: Any, dtype: DType | None = None, shape: Shape | None = None) -> Node:
    """A leaf that holds the data; `shape` if it has symbolic dimensions."""
    array = np.asarray(data)
    if dtype is None:
        dtype = from_numpy(array.dtype)
    arg = (next(_slots), array.shape if shape is None else shape, "CPU")
    leaf = Node(ops.BUFFER, dtype, (), arg)
    _arrays[leaf] = array.astype(dtype.compute)
    return leaf


def run(node: Node, **variables: int) -> np.ndarray:
    """The value of a node."""
    (value,) = evaluate([node], _arrays, variables)
    assert value.dtype == node.dtype.compute
    return value


def same(node: Node, expected: Any, **variables: int) -> None:
    """Assert that a node has exactly the expected values, bit for bit, NaN included, and shape."""
    value, wanted = run(node, **variables), np.asarray(expected)
    assert value.shape == wanted.shape
    assert value.dtype == wanted.dtype
    np.testing.assert_array_equal(value, wanted)
    if value.dtype.kind == "f":
        numbers = ~np.isnan(value)
        np.testing.assert_array_equal(np.signbit(value[numbers]), np.signbit(wanted[numbers]))


def close(node: Node, expected: Any, ulps: float = 4, **variables: int) -> None:
    """Assert that a node is within some units in the last place of the expected values."""
    value, wanted = run(node, **variables), np.asarray(expected)
    assert value.shape == wanted.shape
    assert value.dtype == wanted.dtype
    eps = np.finfo(value.dtype).eps
    np.testing.assert_allclose(value, wanted, rtol=ulps * eps, atol=ulps * eps * 1e-6)
