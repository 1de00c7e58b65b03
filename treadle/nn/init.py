"""How parameters begin: draws from treadle's own seeded generator.

A function named `.._` fills a tensor that exists, and returns it. "Fan" is the number of inputs (or
outputs) that a weight (out, in, ..) connects to one output (or input).
"""

from __future__ import annotations

import math

import numpy as np

from treadle import checks, elsewhere
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


@elsewhere.as_pytorch
def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0) -> Tensor:
    """Fill a tensor with uniform numbers from a up to b.

    >>> nn.init.uniform_(Tensor.ones(2, 3)).shape
    (2, 3)
    """
    return _fill(tensor, Tensor.uniform(tensor.shape, low=a, high=b, dtype=tensor.dtype))


@elsewhere.as_pytorch
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


@elsewhere.as_pytorch
def xavier_uniform_(tensor: Tensor, gain: float = 1.0) -> Tensor:
    """Uniform in -a .. a for a = gain*sqrt(6/(fan_in + fan_out)).

    Source: Glorot and Bengio, "Understanding the difficulty of training deep feedforward neural
    networks", 2010.

    >>> nn.init.xavier_uniform_(Tensor.ones(2, 3)).shape
    (2, 3)
    """
    bound = gain * math.sqrt(6 / sum(_fans(tensor)))
    return uniform_(tensor, -bound, bound)


@elsewhere.as_pytorch
def xavier_normal_(tensor: Tensor, gain: float = 1.0) -> Tensor:
    """Normal with the standard deviation gain*sqrt(2/(fan_in + fan_out)); see `xavier_uniform_`.

    >>> nn.init.xavier_normal_(Tensor.ones(2, 3)).shape
    (2, 3)
    """
    return normal_(tensor, 0.0, gain * math.sqrt(2 / sum(_fans(tensor))))


@elsewhere.as_pytorch
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


@elsewhere.as_pytorch
def kaiming_normal_(
    tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu"
) -> Tensor:
    """Normal with the standard deviation gain/sqrt(fan); see `kaiming_uniform_`.

    >>> nn.init.kaiming_normal_(Tensor.ones(2, 3)).shape
    (2, 3)
    """
    return normal_(tensor, 0.0, calculate_gain(nonlinearity, a) / math.sqrt(_fan(tensor, mode)))


@elsewhere.as_pytorch
def trunc_normal_(
    tensor: Tensor, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0
) -> Tensor:
    """Fill a tensor with normal numbers, those from a to b alone. Source: PyTorch.

    >>> weight = nn.init.trunc_normal_(Tensor.ones(2, 3), std=3.0, a=-1.0, b=1.0)
    >>> bool((weight.abs() <= 1).all())
    True
    """
    if not a < b or std <= 0:
        raise ValueError(f"trunc_normal_: a={a!r} must be below b={b!r}, and std={std!r} above 0")
    low, high = (math.erf((end - mean) / (std * math.sqrt(2.0))) for end in (a, b))
    share = Tensor.uniform(tensor.shape, low=low, high=high)  # of the error function
    values = share.erfinv() * (std * math.sqrt(2.0)) + mean
    return _fill(tensor, values.clamp(a, b).to(dtype=tensor.dtype, device=tensor.device))


@elsewhere.as_pytorch
def orthogonal_(tensor: Tensor, gain: float = 1.0) -> Tensor:
    """Fill a tensor, seen as a matrix of its first dimension by all others, with an orthogonal
    matrix (of orthogonal rows, or columns if there are fewer) times `gain`.

    Source: PyTorch; Saxe, McClelland and Ganguli, "Exact solutions to the nonlinear dynamics of
    learning in deep linear neural networks", 2014.

    >>> weight = nn.init.orthogonal_(Tensor.ones(2, 3))
    >>> (weight @ weight.T).round(decimals=3).abs()
    Tensor([[1., 0.],
            [0., 1.]])
    """
    if tensor.ndim < 2:
        raise ValueError(f"orthogonal_: a tensor of shape {tensor.shape} needs two dimensions")
    rows, columns = tensor.shape[0], math.prod(tensor.shape[1:])
    if not tensor.numel():
        return tensor
    wide = Tensor.randn(max(rows, columns), min(rows, columns), device=tensor.device)
    q, r = wide.qr()
    q = q * r.diagonal().sign()  # uniform among the orthogonal matrices
    matrix = q.T if rows < columns else q
    return _fill(tensor, (matrix.reshape(tensor.shape) * gain).to(dtype=tensor.dtype))


def eye_(tensor: Tensor) -> Tensor:
    """Fill a matrix with the identity. Source: PyTorch.

    >>> nn.init.eye_(Tensor.zeros(2, 2))
    Tensor([[1., 0.],
            [0., 1.]])
    """
    if tensor.ndim != 2:
        raise ValueError(f"eye_: a tensor of shape {tensor.shape} is no matrix")
    return _fill(tensor, Tensor.eye(*tensor.shape, dtype=tensor.dtype, device=tensor.device))


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Fill the weight (out, in, ..) of a convolution so that each channel goes through unchanged,
    as far as there are as many, in each of `groups`. Source: PyTorch.

    >>> nn.init.dirac_(Tensor.ones(1, 1, 3))
    Tensor([[[0., 1., 0.]]])
    """
    if tensor.ndim not in (3, 4, 5) or groups < 1 or tensor.shape[0] % groups:
        raise ValueError(
            f"dirac_: shape {tensor.shape} must be (out, in, ..) of a convolution, and groups="
            f"{groups!r} divide out"
        )
    outputs, inputs, *window = tensor.shape
    shares = np.zeros((groups, outputs // groups, inputs, *window), tensor.dtype.compute)
    middle = tuple(size // 2 for size in window)
    for channel in range(min(outputs // groups, inputs)):
        shares[(slice(None), channel, channel, *middle)] = 1
    values = shares.reshape(tensor.shape)
    return _fill(tensor, Tensor(values, dtype=tensor.dtype, device=tensor.device))


@elsewhere.as_pytorch
def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01) -> Tensor:
    """Fill a matrix with normal numbers, and put 0 into the share `sparsity` of each column.

    Source: PyTorch; Martens, "Deep learning via Hessian-free optimization", 2010.

    >>> int((nn.init.sparse_(Tensor.ones(4, 3), 0.5) == 0).sum())
    6
    """
    if tensor.ndim != 2 or not 0 <= sparsity <= 1:
        raise ValueError(
            f"sparse_: a tensor of shape {tensor.shape} must be a matrix, sparsity={sparsity!r} in "
            "0 .. 1"
        )
    count = math.ceil(sparsity * tensor.shape[0])
    order = Tensor.rand(*tensor.shape, device=tensor.device).argsort(0).argsort(0)
    values = Tensor.normal(tensor.shape, std=std, dtype=tensor.dtype).to(device=tensor.device)
    return _fill(tensor, values.masked_fill(order < count, 0.0))


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


for _name in [name for name in globals() if name.endswith("_") and not name.startswith("_")]:
    globals()[_name] = checks.kept(globals()[_name])
