"""Tables of vectors: embeddings and bags of them, as functions and as modules."""

from __future__ import annotations

from typing import Any, Self

from treadle.nn import begin
from treadle.nn.begin import Dtype
from treadle.nn.module import Module
from treadle.nn.parameter import Parameter
from treadle.tensor import Tensor, no_grad


# ---- functions -----------------------------------------------------------------------------------
def embedding(
    ids: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """The rows of a table (rows, dimension) that ids (..) name: (.., dimension).

    max_norm: rows that are looked up and whose norm (the p-norm for p = norm_type) is greater are
    first scaled down to it, in the table itself. NotImplementedError for sparse=True. The other
    arguments: see `Tensor.embedding`.
    """
    _only_dense("embedding", sparse)
    if max_norm is not None:
        _shorten(weight, ids, max_norm, norm_type)
    return ids.embedding(weight, padding_idx, scale_grad_by_freq)


def embedding_bag(
    ids: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """The rows of a table that each bag of ids names, reduced to one: (bags, dimension).

    max_norm, norm_type, sparse: see `embedding`. The other arguments: see `Tensor.embedding_bag`.
    """
    _only_dense("embedding_bag", sparse)
    if max_norm is not None:
        _shorten(weight, ids, max_norm, norm_type)
    return ids.embedding_bag(
        weight,
        offsets,
        scale_grad_by_freq,
        mode,
        per_sample_weights,
        include_last_offset,
        padding_idx,
    )


def _only_dense(name: str, sparse: bool) -> None:
    if sparse:
        raise NotImplementedError(f"{name}: sparse=True is not supported: gradients are dense")


def _shorten(weight: Tensor, ids: Tensor, max_norm: float, norm_type: float) -> None:
    """Scale the rows that ids name down to a norm, in the table."""
    with no_grad():
        rows = weight.shape[0]
        used = Tensor.zeros(rows, dtype="bool")
        used[ids.flatten()] = True
        sizes = weight.norm(norm_type, 1)
        scale = (used & (sizes > max_norm)).where(max_norm / (sizes + 1e-7), 1.0)
        weight.assign(weight * scale.to(dtype=weight.dtype).unsqueeze(1))


# ---- modules -------------------------------------------------------------------------------------
class _Table(Module):
    """weight: (num_embeddings, embedding_dim), normal at first. padding_idx: a row that begins as 0
    and is not learnt. max_norm: see `functional.embedding`."""

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None,
        device: str | None,
        dtype: Dtype,
    ) -> None:
        begin.check_sizes(self, num_embeddings=num_embeddings, embedding_dim=embedding_dim)
        if padding_idx is not None and not -num_embeddings <= padding_idx < num_embeddings:
            raise ValueError(f"padding_idx={padding_idx} is no row of {num_embeddings} embeddings")
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.padding_idx = None if padding_idx is None else padding_idx % num_embeddings
        table = Tensor.randn(num_embeddings, embedding_dim, dtype=begin.kind_of(dtype))
        if self.padding_idx is not None:
            rows = Tensor.arange(num_embeddings).reshape(num_embeddings, 1)
            table = rows.eq(self.padding_idx).where(0.0, table)
        self.weight = Parameter(table, device=device)

    @classmethod
    def from_pretrained(cls, embeddings: Any, freeze: bool = True, **settings: Any) -> Self:
        """A module whose table is `embeddings` (rows, dimension); with freeze=True it is not
        learnt. settings: those of the class."""
        table = Tensor(embeddings)
        if table.ndim != 2:
            raise ValueError(
                f"the embeddings have shape {table.shape}; they must be (rows, dimension)"
            )
        module = cls(*table.shape, **settings)
        module.weight = Parameter(table, requires_grad=not freeze)
        return module

    def extra_repr(self) -> str:
        padding = "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        return f"{self.num_embeddings}, {self.embedding_dim}{padding}"


class Embedding(_Table):
    """A table of vectors, looked up by integer ids: (..) -> (.., embedding_dim).

    weight: (num_embeddings, embedding_dim), normal at first. padding_idx: a row that begins as 0
    and is not learnt. max_norm, norm_type, scale_grad_by_freq: see `functional.embedding`. An id
    that is no row is an IndexError when it is read.

    >>> nn.Embedding(10, 3)(Tensor([[1, 2]])).shape
    (1, 2, 3)
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        device: str | None = None,
        dtype: Dtype = None,
    ) -> None:
        _only_dense("Embedding", sparse)
        super().__init__(num_embeddings, embedding_dim, padding_idx, device, dtype)
        self.max_norm, self.norm_type = max_norm, norm_type
        self.scale_grad_by_freq = scale_grad_by_freq

    def forward(self, ids: Tensor) -> Tensor:
        return embedding(
            ids,
            self.weight,
            self.padding_idx,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
        )


class EmbeddingBag(_Table):
    """Bags of ids, each as one vector: the sum, mean or greatest elements of the rows it names.

    Called with ids (bags, n), or ids (n,) and offsets (bags,), and perhaps per_sample_weights; see
    `Tensor.embedding_bag`. weight: (num_embeddings, embedding_dim), normal at first.

    >>> nn.EmbeddingBag(10, 3)(Tensor([[1, 2], [3, 4]])).shape
    (2, 3)
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        device: str | None = None,
        dtype: Dtype = None,
    ) -> None:
        _only_dense("EmbeddingBag", sparse)
        super().__init__(num_embeddings, embedding_dim, padding_idx, device, dtype)
        self.max_norm, self.norm_type = max_norm, norm_type
        self.scale_grad_by_freq, self.mode = scale_grad_by_freq, mode
        self.include_last_offset = include_last_offset

    def forward(
        self,
        ids: Tensor,
        offsets: Tensor | None = None,
        per_sample_weights: Tensor | None = None,
    ) -> Tensor:
        return embedding_bag(
            ids,
            self.weight,
            offsets,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.mode,
            False,
            per_sample_weights,
            self.include_last_offset,
            self.padding_idx,
        )
