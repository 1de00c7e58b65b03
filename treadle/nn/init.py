"""How parameters begin: draws from treadle's own seeded generator.

A function named `.._` fills a tensor that exists, and returns it. "Fan" is the number of inputs (or
outputs) that a weight (out, in, ..) connects to one output (or input).
"""

from __future__ import annotations

import math

from treadle.tensor import Tensor, no_grad

_GAINS = {
    "linear": 1.0, "conv1d": 1.0, "conv2d": 1.0, "conv3d": 1.0, "conv_transpose1d": 1.0,
    "conv_transpose2d": 1.0, "conv_transpose3d": 1.0, "sigmoid": 1.0, "tanh": 5 / 3,
    "relu": math.sqrt(2.0), "selu": 3 / 4,
}  # fmt: skip


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """By how much weights before a nonlinearity are enlarged. param: the slope of "leaky_relu".

    >>> nn.init.calculate_gain("tanh")
    1.6666666666666667
    """
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else param
        return math.sqrt(2 / (1 + slope**2))
    if nonlinearity not in _GAINS:
        names = ", ".join([*_GAINS, "leaky_relu"])
        raise ValueError(f"there is no gain for {nonlinearity!r}; there are gains for {names}")
    return _GAINS[nonlinearity]


def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0) -> Tensor:
    """Fill a tensor with uniform numbers from a up to b.

    >>> nn.init.uniform_(Tensor.ones(2, 3)).shape
    (2, 3)
    """
    return _fill(tensor, Tensor.uniform(tensor.shape, low=a, high=b, dtype=tensor.dtype))


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0) -> Tensor:
    """Fill a tensor with normal numbers.

    >>> nn.init.normal_(Tensor.ones(2, 3)).shape
    (2, 3)
    """
    return _fill(tensor, Tensor.normal(tensor.shape, mean=mean, std=std, dtype=tensor.dtype))


def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fill a tensor with one number.

    >>> nn.init.constant_(Tensor.ones(2), 0.5)
    Tensor([0.5, 0.5])
    """
    return _fill(tensor, tensor.detach().full_like(val))


def zeros_(tensor: Tensor) -> Tensor:
    """Fill a tensor with 0.

    >>> nn.init.zeros_(Tensor.ones(2, 2))
    Tensor([[0., 0.],
            [0., 0.]])
    """
    return constant_(tensor, 0)


def ones_(tensor: Tensor) -> Tensor:
    """Fill a tensor with 1.

    >>> nn.init.ones_(Tensor.ones(2, 2))
    Tensor([[1., 1.],
            [1., 1.]])
    """
    return constant_(tensor, 1)


def xavier_uniform_(tensor: Tensor, gain: float = 1.0) -> Tensor:
    """Uniform in -a .. a for a = gain*sqrt(6/(fan_in + fan_out)).

    Source: Glorot and Bengio, "Understanding the difficulty of training deep feedforward neural
    networks", 2010.

    >>> nn.init.xavier_uniform_(Tensor.ones(2, 3)).shape
    (2, 3)
    """
    bound = gain * math.sqrt(6 / sum(_fans(tensor)))
    return uniform_(tensor, -bound, bound)


def xavier_normal_(tensor: Tensor, gain: float = 1.0) -> Tensor:
    """Normal with the standard deviation gain*sqrt(2/(fan_in + fan_out)); see `xavier_uniform_`.

    >>> nn.init.xavier_normal_(Tensor.ones(2, 3)).shape
    (2, 3)
    """
    return normal_(tensor, 0.0, gain * math.sqrt(2 / sum(_fans(tensor))))


def kaiming_uniform_(
    tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu"
) -> Tensor:
    """Uniform in -b .. b for b = gain*sqrt(3/fan). a: the slope of a leaky relu. mode: which fan.

    Source: He, Zhang, Ren and Sun, "Delving deep into rectifiers", 2015.

    >>> nn.init.kaiming_uniform_(Tensor.ones(2, 3)).shape
    (2, 3)
    """
    bound = math.sqrt(3.0) * calculate_gain(nonlinearity, a) / math.sqrt(_fan(tensor, mode))
    return uniform_(tensor, -bound, bound)


def kaiming_normal_(
    tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu"
) -> Tensor:
    """Normal with the standard deviation gain/sqrt(fan); see `kaiming_uniform_`.

    >>> nn.init.kaiming_normal_(Tensor.ones(2, 3)).shape
    (2, 3)
    """
    return normal_(tensor, 0.0, calculate_gain(nonlinearity, a) / math.sqrt(_fan(tensor, mode)))


def _fill(tensor: Tensor, value: Tensor) -> Tensor:
    with no_grad():
        return tensor.assign(value)


def _fans(tensor: Tensor) -> tuple[int, int]:
    """(fan_in, fan_out) of a weight (out, in, ..)."""
    if tensor.ndim < 2:
        raise ValueError(f"a tensor of shape {tensor.shape} has no fan: it needs (out, in, ..)")
    outputs, inputs, *window = tensor.shape
    taps = math.prod(window)
    return inputs * taps, outputs * taps


def _fan(tensor: Tensor, mode: str) -> int:
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"mode is 'fan_in' or 'fan_out', not {mode!r}")
    return _fans(tensor)[mode == "fan_out"]
