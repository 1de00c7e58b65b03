"""Linear maps, and changes of shape."""

from __future__ import annotations

from typing import Any

from treadle.nn import begin, functional
from treadle.nn.begin import Dtype
from treadle.nn.module import Module
from treadle.tensor import Tensor


class Linear(Module):
    """x @ weight.T + bias along the last dimension: (.., in_features) -> (.., out_features).

    weight: (out_features, in_features). bias: (out_features,), or None for bias=False. Both begin
    uniform in -b .. b for b = 1/sqrt(in_features).

    >>> nn.Linear(3, 2)(Tensor.ones(4, 3)).shape
    (4, 2)
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        device: str | None = None,
        dtype: Dtype = None,
    ) -> None:
        begin.check_sizes(self, in_features=in_features, out_features=out_features)
        self.in_features, self.out_features = in_features, out_features
        bound = begin.fan_bound(in_features)
        self.weight = begin.drawn(bound, (out_features, in_features), dtype, device)
        self.bias = begin.drawn(bound, (out_features,), dtype, device) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        return x.linear(self.weight, self.bias)

    def extra_repr(self) -> str:
        bias = "" if self.bias is not None else ", bias=False"
        return f"{self.in_features}, {self.out_features}{bias}"


class Bilinear(Module):
    """x1 @ weight[k] @ x2 for every k, plus bias: (.., in1) and (.., in2) -> (.., out).

    weight: (out_features, in1_features, in2_features). bias: (out_features,), or None for
    bias=False. Both begin uniform in -b .. b for b = 1/sqrt(in1_features).

    >>> nn.Bilinear(3, 4, 2)(Tensor.ones(5, 3), Tensor.ones(5, 4)).shape
    (5, 2)
    """

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        device: str | None = None,
        dtype: Dtype = None,
    ) -> None:
        begin.check_sizes(
            self, in1_features=in1_features, in2_features=in2_features, out_features=out_features
        )
        self.in1_features, self.in2_features = in1_features, in2_features
        self.out_features = out_features
        bound = begin.fan_bound(in1_features)
        shape = (out_features, in1_features, in2_features)
        self.weight = begin.drawn(bound, shape, dtype, device)
        self.bias = begin.drawn(bound, (out_features,), dtype, device) if bias else None

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        return functional.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        bias = "" if self.bias is not None else ", bias=False"
        return f"{self.in1_features}, {self.in2_features}, {self.out_features}{bias}"


class Identity(Module):
    """What comes in. Arguments are accepted, so that it can stand for any layer.

    >>> nn.Identity()(Tensor([1, 2]))
    Tensor([1, 2])
    """

    def __init__(self, *args: Any, **named: Any) -> None:
        pass

    def forward(self, x: Tensor) -> Tensor:
        return x


class Flatten(Module):
    """The dimensions start_dim .. end_dim as one; by default all but the batch.

    >>> nn.Flatten()(Tensor.ones(2, 3, 4)).shape
    (2, 12)
    """

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, x: Tensor) -> Tensor:
        return x.flatten(self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """Dimension `dim` as several, of sizes `unflattened_size`.

    >>> nn.Unflatten(1, (2, 3))(Tensor.ones(4, 6)).shape
    (4, 2, 3)
    """

    def __init__(self, dim: int, unflattened_size: tuple[int, ...]) -> None:
        self.dim, self.unflattened_size = dim, tuple(unflattened_size)

    def forward(self, x: Tensor) -> Tensor:
        return x.unflatten(self.dim, self.unflattened_size)

    def extra_repr(self) -> str:
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"
