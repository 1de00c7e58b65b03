"""What layers begin with: the parameters and buffers that they make, and checks of sizes."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from treadle import convert
from treadle.engine.device import canonical
from treadle.ir import dtype as dt
from treadle.ir.dtype import DType, float32
from treadle.nn.parameter import Parameter
from treadle.tensor import Tensor

Dtype = DType | str | None  # what a layer's argument `dtype` may be; None is float32


def kind_of(dtype: Dtype) -> DType:
    """The dtype that an argument of a layer names."""
    return float32 if dtype is None else convert.as_dtype(dtype)


def drawn(bound: float, shape: tuple[int, ...], dtype: Dtype, device: str | None) -> Parameter:
    """A parameter uniform in -bound .. bound."""
    values = Tensor.uniform(shape, low=-bound, high=bound, dtype=kind_of(dtype))
    return Parameter(values, device=device)


def filled(value: float, shape: tuple[int, ...], dtype: Dtype, device: str | None) -> Parameter:
    """A parameter that begins as one number."""
    return Parameter(buffer(value, shape, dtype, device))


def buffer(value: float, shape: tuple[int, ...], dtype: Dtype, device: str | None) -> Tensor:
    """A tensor that begins as one number, in memory: so a program that updates it is the same the
    first time as ever after."""
    kind = kind_of(dtype)
    stored = dt.from_compute(kind, np.full(shape, value, kind.compute))
    return Tensor._of(convert.leaf(stored, kind, canonical(device)))


def check_sizes(layer: Any, **sizes: Any) -> None:
    """TypeError or ValueError that names the layer, unless each size is an int of 0 or more."""
    for name, size in sizes.items():
        what = f"{type(layer).__name__}: {name}={size!r} must be an int of 0 or more"
        try:
            number = operator.index(size)
        except TypeError:
            raise TypeError(what) from None
        if number < 0:
            raise ValueError(what)


def fan_bound(fan_in: int) -> float:
    """The bound of a layer's weights and biases: 1/sqrt(fan_in).

    It is the Kaiming bound gain*sqrt(3/fan_in) for a leaky relu of slope sqrt(5), whose gain is
    sqrt(2/(1 + 5)): gain*sqrt(3) = 1.
    """
    return 1 / math.sqrt(fan_in) if fan_in else 0.0
