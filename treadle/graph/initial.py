"""Random weights as networks begin with them: scaled by how many numbers a sum is made of."""

from __future__ import annotations

import math
from typing import Any

from treadle.graph.public import public
from treadle.graph.random import Key, normal, uniform
from treadle.graph.shapes import as_shape, check_sizes, text
from treadle.ir.dtype import DType
from treadle.ir.node import Node


def _sizes(size: tuple[Any, ...], name: str, least: int = 0) -> tuple[int, ...]:
    """The sizes of weights, as ints. ValueError if there are too few."""
    shape = check_sizes(as_shape(*size), name)
    known = [n for n in shape if isinstance(n, int)]
    if len(known) < len(shape):
        raise ValueError(f"{name}: the scale follows from the sizes, so they are ints")
    if len(known) < least:
        raise ValueError(f"{name} needs {least} dimension or more, not the shape {text(shape)}")
    return tuple(known)


def _kaiming(inputs: int, a: float) -> float:
    """The standard deviation that keeps the variance through a leaky ReLU of slope a (He et al.,
    "Delving deep into rectifiers", 2015)."""
    return math.sqrt(2 / (1 + a * a)) / math.sqrt(max(1, inputs))


@public("kaiming_uniform", source="tinygrad", kind="random", gradient="no")
def kaiming_uniform(key: Key, *size: Any, a: float = 0.01, dtype: DType | None = None) -> Node:
    """Uniform with the standard deviation of He et al. for a leaky ReLU of slope `a`; all sizes but
    the first are the inputs of one sum.

    >>> Tensor.kaiming_uniform(2, 3).shape
    (2, 3)
    """
    shape = _sizes(size, "kaiming_uniform", 1)
    bound = math.sqrt(3) * _kaiming(math.prod(shape[1:]), a)
    return uniform(key, shape, low=-bound, high=bound, dtype=dtype)


@public("kaiming_normal", source="tinygrad", kind="random", gradient="no")
def kaiming_normal(key: Key, *size: Any, a: float = 0.01, dtype: DType | None = None) -> Node:
    """Normal with the standard deviation of He et al. for a leaky ReLU of slope `a`; all sizes but
    the first are the inputs of one sum.

    >>> Tensor.kaiming_normal(2, 3).shape
    (2, 3)
    """
    shape = _sizes(size, "kaiming_normal", 1)
    return normal(key, shape, std=_kaiming(math.prod(shape[1:]), a), dtype=dtype)


@public("glorot_uniform", source="tinygrad", kind="random", gradient="no")
def glorot_uniform(key: Key, *size: Any, dtype: DType | None = None) -> Node:
    """Uniform up to sqrt(6 / (outputs + inputs)) on both sides of 0 (Glorot and Bengio, 2010): the
    first size is the outputs, the product of the others the inputs.

    >>> Tensor.glorot_uniform(2, 3).shape
    (2, 3)
    """
    shape = _sizes(size, "glorot_uniform", 1)
    bound = math.sqrt(6 / max(1, shape[0] + math.prod(shape[1:])))
    return uniform(key, shape, low=-bound, high=bound, dtype=dtype)


@public("scaled_uniform", source="tinygrad", kind="random", gradient="no")
def scaled_uniform(key: Key, *size: Any, dtype: DType | None = None) -> Node:
    """Uniform up to 1 / sqrt(number of elements) on both sides of 0.

    >>> Tensor.scaled_uniform(2, 3).shape
    (2, 3)
    """
    shape = _sizes(size, "scaled_uniform")
    bound = 1 / math.sqrt(max(1, math.prod(shape)))
    return uniform(key, shape, low=-bound, high=bound, dtype=dtype)
