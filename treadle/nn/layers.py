"""Linear maps, embeddings, dropout, and changes of shape."""

from __future__ import annotations

from typing import Any

from treadle.nn import init
from treadle.nn.init import Dtype
from treadle.nn.module import Module
from treadle.nn.parameter import Parameter
from treadle.tensor import Tensor


class Linear(Module):
    """x @ weight.T + bias along the last dimension: (.., in_features) -> (.., out_features).

    weight: (out_features, in_features). bias: (out_features,), or None for bias=False. Both begin
    uniform in -b .. b for b = 1/sqrt(in_features).
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        device: str | None = None,
        dtype: Dtype = None,
    ) -> None:
        init.check_sizes(self, in_features=in_features, out_features=out_features)
        self.in_features, self.out_features = in_features, out_features
        bound = init.fan_bound(in_features)
        self.weight = init.drawn(bound, (out_features, in_features), dtype, device)
        self.bias = init.drawn(bound, (out_features,), dtype, device) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        return x.linear(self.weight, self.bias)

    def extra_repr(self) -> str:
        bias = "" if self.bias is not None else ", bias=False"
        return f"{self.in_features}, {self.out_features}{bias}"


class Embedding(Module):
    """A table of vectors, looked up by integer ids: (..) -> (.., embedding_dim).

    weight: (num_embeddings, embedding_dim), normal at first. padding_idx: a row that begins as 0
    and is not learnt. An id that is no row is an IndexError when it is read.
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        device: str | None = None,
        dtype: Dtype = None,
    ) -> None:
        init.check_sizes(self, num_embeddings=num_embeddings, embedding_dim=embedding_dim)
        if padding_idx is not None and not -num_embeddings <= padding_idx < num_embeddings:
            raise ValueError(f"padding_idx={padding_idx} is no row of {num_embeddings} embeddings")
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.padding_idx = None if padding_idx is None else padding_idx % num_embeddings
        table = Tensor.randn(num_embeddings, embedding_dim, dtype=init.kind_of(dtype))
        if self.padding_idx is not None:
            rows = Tensor.arange(num_embeddings).reshape(num_embeddings, 1)
            table = rows.eq(self.padding_idx).where(0.0, table)
        self.weight = Parameter(table, device=device)

    @classmethod
    def from_pretrained(
        cls, embeddings: Any, freeze: bool = True, padding_idx: int | None = None
    ) -> Embedding:
        """An embedding whose table is `embeddings` (rows, dimension); with freeze=True it is not
        learnt."""
        table = Tensor(embeddings)
        if table.ndim != 2:
            raise ValueError(
                f"the embeddings have shape {table.shape}; they must be (rows, dimension)"
            )
        layer = cls.__new__(cls)
        layer.num_embeddings, layer.embedding_dim = table.shape
        layer.padding_idx = padding_idx
        layer.weight = Parameter(table, requires_grad=not freeze)
        return layer

    def forward(self, ids: Tensor) -> Tensor:
        return ids.embedding(self.weight, self.padding_idx)

    def extra_repr(self) -> str:
        padding = "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        return f"{self.num_embeddings}, {self.embedding_dim}{padding}"


class Dropout(Module):
    """In training, each element is 0 with probability p, and the others are divided by 1 - p.

    inplace: put the result into the tensor that came in, too.
    """

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        if not 0 <= p <= 1:
            raise ValueError(f"Dropout: p={p!r} is not a probability in 0..1")
        self.p, self.inplace = p, inplace

    def forward(self, x: Tensor) -> Tensor:
        if not self.training:
            return x
        dropped = x.dropout(self.p)
        return x.assign(dropped) if self.inplace else dropped

    def extra_repr(self) -> str:
        return f"p={self.p}"


class Identity(Module):
    """What comes in. Arguments are accepted, so that it can stand for any layer."""

    def __init__(self, *args: Any, **named: Any) -> None:
        pass

    def forward(self, x: Tensor) -> Tensor:
        return x


class Flatten(Module):
    """The dimensions start_dim .. end_dim as one; by default all but the batch."""

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, x: Tensor) -> Tensor:
        return x.flatten(self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """Dimension `dim` as several, of sizes `unflattened_size`."""

    def __init__(self, dim: int, unflattened_size: tuple[int, ...]) -> None:
        self.dim, self.unflattened_size = dim, tuple(unflattened_size)

    def forward(self, x: Tensor) -> Tensor:
        return x.unflatten(self.dim, self.unflattened_size)

    def extra_repr(self) -> str:
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"
