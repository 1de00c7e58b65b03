"""Activations as modules. inplace: put the result into the tensor that came in, too."""

from __future__ import annotations

from treadle.nn import functional
from treadle.nn.applied import Applied
from treadle.nn.begin import Dtype, filled
from treadle.nn.module import Module
from treadle.tensor import Tensor


# ---- of each element -----------------------------------------------------------------------------
class CELU(Applied, function="celu", alpha=1.0, inplace=False):
    """x where it is above 0, else alpha * (exp(x / alpha) - 1).

    >>> nn.CELU()(Tensor([-4.0, 0.0, 4.0]))
    Tensor([-0.9816844,  0.       ,  4.       ])
    """


class ELU(Applied, function="elu", alpha=1.0, inplace=False):
    """x where it is above 0, else alpha * (exp(x) - 1).

    >>> nn.ELU()(Tensor([-4.0, 0.0, 4.0]))
    Tensor([-0.9816844,  0.       ,  4.       ])
    """


class GELU(Applied, function="gelu", approximate="none"):
    """x times the probability that a normal variable is below x. approximate: "none" or "tanh".

    >>> nn.GELU()(Tensor([-4.0, 0.0, 4.0]))
    Tensor([-1.2666309e-04,  0.0000000e+00,  3.9998734e+00])
    """

    def __init__(self, approximate: str = "none") -> None:
        if approximate not in ("none", "tanh"):
            raise ValueError(f"GELU: approximate is 'none' or 'tanh', not {approximate!r}")
        super().__init__(approximate)


class Hardshrink(Applied, function="hardshrink", lambd=0.5):
    """x where it is beyond lambd on either side, else 0.

    >>> nn.Hardshrink()(Tensor([-4.0, 0.0, 4.0]))
    Tensor([-4.,  0.,  4.])
    """


class Hardsigmoid(Applied, function="hardsigmoid", inplace=False):
    """x / 6 + 1/2 brought into 0 .. 1.

    >>> nn.Hardsigmoid()(Tensor([-4.0, 0.0, 4.0]))
    Tensor([0. , 0.5, 1. ])
    """


class Hardswish(Applied, function="hardswish", inplace=False):
    """x * (x / 6 + 1/2 brought into 0 .. 1).

    >>> nn.Hardswish()(Tensor([-4.0, 0.0, 4.0]))
    Tensor([0., 0., 4.])
    """


class Hardtanh(Applied, function="hardtanh", min_val=-1.0, max_val=1.0, inplace=False):
    """x brought into min_val .. max_val.

    >>> nn.Hardtanh()(Tensor([-4.0, 0.0, 4.0]))
    Tensor([-1.,  0.,  1.])
    """


class LeakyReLU(Applied, function="leaky_relu", negative_slope=0.01, inplace=False):
    """x where it is above 0, else negative_slope * x.

    >>> nn.LeakyReLU()(Tensor([-4.0, 0.0, 4.0]))
    Tensor([-0.04,  0.  ,  4.  ])
    """


class LogSigmoid(Applied, function="logsigmoid"):
    """The logarithm of `Sigmoid`.

    >>> nn.LogSigmoid()(Tensor([-4.0, 0.0, 4.0]))
    Tensor([-4.01815   , -0.6931472 , -0.01814993])
    """


class Mish(Applied, function="mish", inplace=False):
    """x * tanh(softplus(x)).

    >>> nn.Mish()(Tensor([-4.0, 0.0, 4.0]))
    Tensor([-0.07259174,  0.        ,  3.997413  ])
    """


class ReLU(Applied, function="relu", inplace=False):
    """x where it is above 0, else 0.

    >>> nn.ReLU()(Tensor([-4.0, 0.0, 4.0]))
    Tensor([0., 0., 4.])
    """


class ReLU6(Applied, function="relu6", inplace=False):
    """x brought into 0 .. 6.

    >>> nn.ReLU6()(Tensor([-4.0, 0.0, 4.0]))
    Tensor([0., 0., 4.])
    """


class SELU(Applied, function="selu", inplace=False):
    """ELU with the slopes that keep mean 0 and variance 1.

    >>> nn.SELU()(Tensor([-4.0, 0.0, 4.0]))
    Tensor([-1.7258986,  0.       ,  4.202804 ])
    """


class SiLU(Applied, function="silu", inplace=False):
    """x * sigmoid(x).

    >>> nn.SiLU()(Tensor([-4.0, 0.0, 4.0]))
    Tensor([-0.07194484,  0.        ,  3.928055  ])
    """


class Sigmoid(Applied, function="sigmoid"):
    """1 / (1 + exp(-x)).

    >>> nn.Sigmoid()(Tensor([-4.0, 0.0, 4.0]))
    Tensor([0.01798621, 0.5       , 0.98201376])
    """


class Softplus(Applied, function="softplus", beta=1.0, threshold=20.0):
    """log(1 + exp(beta * x)) / beta; x itself where beta * x is above the threshold.

    >>> nn.Softplus()(Tensor([-4.0, 0.0, 4.0]))
    Tensor([0.01814993, 0.6931472 , 4.01815   ])
    """


class Softshrink(Applied, function="softshrink", lambd=0.5):
    """x brought nearer to 0 by lambd, and 0 where it is nearer than that.

    >>> nn.Softshrink()(Tensor([-4.0, 0.0, 4.0]))
    Tensor([-3.5,  0. ,  3.5])
    """


class Softsign(Applied, function="softsign"):
    """x / (1 + |x|).

    >>> nn.Softsign()(Tensor([-4.0, 0.0, 4.0]))
    Tensor([-0.8,  0. ,  0.8])
    """


class Tanh(Applied, function="tanh"):
    """The hyperbolic tangent.

    >>> nn.Tanh()(Tensor([-4.0, 0.0, 4.0]))
    Tensor([-0.9993293,  0.       ,  0.9993293])
    """


class Tanhshrink(Applied, function="tanhshrink"):
    """x - tanh(x).

    >>> nn.Tanhshrink()(Tensor([-4.0, 0.0, 4.0]))
    Tensor([-3.0006707,  0.       ,  3.0006707])
    """


class Threshold(Applied, function="threshold", threshold=..., value=..., inplace=False):
    """x where it is above the threshold, else the value.

    >>> nn.Threshold(1.5, 0.0)(Tensor([1.0, 2.0, 3.0]))
    Tensor([0., 2., 3.])
    """


class RReLU(Applied, function="rrelu", lower=1 / 8, upper=1 / 3, inplace=False):
    """x where it is above 0, else x times a slope: in training one drawn from lower .. upper for
    each element, in eval their mean.

    >>> nn.RReLU(0.25, 0.25)(Tensor([-4.0, 2.0]))
    Tensor([-1.,  2.])
    """

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = functional.rrelu(x, training=self.training, **self.settings())
        return result


class PReLU(Module):
    """x where it is above 0, else a learnt slope times x.

    weight: (num_parameters,), one slope for all channels (dimension 1 of x) or one for each; they
    begin as `init`. Source: He et al., "Delving deep into rectifiers", 2015.

    >>> nn.PReLU()(Tensor([-4.0, 0.0, 4.0]))
    Tensor([-1.,  0.,  4.])
    """

    def __init__(
        self,
        num_parameters: int = 1,
        init: float = 0.25,
        device: str | None = None,
        dtype: Dtype = None,
    ) -> None:
        self.num_parameters = num_parameters
        self.weight = filled(init, (num_parameters,), dtype, device)

    def forward(self, x: Tensor) -> Tensor:
        return x.prelu(self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"


# ---- along a dimension ---------------------------------------------------------------------------
class GLU(Applied, function="glu", dim=-1):
    """The first half of x along `dim` times the sigmoid of the second.

    >>> nn.GLU()(Tensor([3.0, 4.0, 0.0, 0.0]))
    Tensor([1.5, 2. ])
    """


class LogSoftmax(Applied, function="log_softmax", dim=...):
    """The logarithm of `Softmax`.

    >>> nn.LogSoftmax(dim=0)(Tensor([0.0, 0.0]))
    Tensor([-0.6931472, -0.6931472])
    """


class Softmax(Applied, function="softmax", dim=...):
    """exp(x) divided by its sum along a dimension.

    >>> nn.Softmax(dim=0)(Tensor([0.0, 0.0]))
    Tensor([0.5, 0.5])
    """


class Softmin(Applied, function="softmin", dim=...):
    """`Softmax` of -x.

    >>> nn.Softmin(dim=0)(Tensor([0.0, 0.0]))
    Tensor([0.5, 0.5])
    """


class Softmax2d(Applied, function="softmax"):
    """`Softmax` over the channels: x is (channels, height, width), with or without a batch.

    >>> nn.Softmax2d()(Tensor.zeros(1, 2, 1, 1)).flatten()
    Tensor([0.5, 0.5])
    """

    def forward(self, x: Tensor) -> Tensor:
        if x.ndim not in (3, 4):
            raise ValueError(f"Softmax2d: x of shape {x.shape} must have 3 or 4 dimensions")
        return x.softmax(-3)
