"""Activations as modules."""

from __future__ import annotations

from treadle.nn.module import Module
from treadle.tensor import Tensor


class _Elementwise(Module):
    """A function of each element; `name` is its method of Tensor.

    inplace: put the result into the tensor that came in, too.
    """

    name: str

    def __init__(self, inplace: bool = False) -> None:
        self.inplace = inplace

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = getattr(x, self.name)()
        return x.assign(result) if self.inplace else result

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""


class ReLU(_Elementwise):
    """x where it is above 0, else 0. inplace: put the result into the tensor that came in, too."""

    name = "relu"


class SiLU(_Elementwise):
    """x * sigmoid(x). inplace: put the result into the tensor that came in, too."""

    name = "silu"


class Sigmoid(_Elementwise):
    """1 / (1 + exp(-x))."""

    name = "sigmoid"

    def __init__(self) -> None:
        super().__init__()


class Tanh(_Elementwise):
    """The hyperbolic tangent."""

    name = "tanh"

    def __init__(self) -> None:
        super().__init__()


class GELU(Module):
    """x times the probability that a normal variable is below x. approximate: "none" or "tanh"."""

    def __init__(self, approximate: str = "none") -> None:
        if approximate not in ("none", "tanh"):
            raise ValueError(f"GELU: approximate is 'none' or 'tanh', not {approximate!r}")
        self.approximate = approximate

    def forward(self, x: Tensor) -> Tensor:
        return x.gelu(self.approximate)

    def extra_repr(self) -> str:
        return f"approximate={self.approximate!r}"


class Softmax(Module):
    """exp(x) divided by its sum along a dimension."""

    def __init__(self, dim: int) -> None:
        self.dim = dim

    def forward(self, x: Tensor) -> Tensor:
        return x.softmax(self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class LogSoftmax(Module):
    """The logarithm of `Softmax`."""

    def __init__(self, dim: int) -> None:
        self.dim = dim

    def forward(self, x: Tensor) -> Tensor:
        return x.log_softmax(self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"
