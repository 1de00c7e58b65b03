"""Dropout as functions and as modules. In training each element, or each channel, is dropped with
probability p; otherwise x comes back as it is. inplace: put the result into x, too."""

from __future__ import annotations

from collections.abc import Callable

from treadle.nn.module import Module
from treadle.tensor import Tensor

# each takes a tensor and a probability
Drop = Callable[[Tensor, float], Tensor]


# ---- functions -----------------------------------------------------------------------------------
def dropout(x: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """x with each element set to 0 with probability p and the others divided by 1 - p; x itself
    when not training. inplace: put the result into x, too."""
    return _applied(Tensor.dropout, x, p, training, inplace)


def alpha_dropout(
    x: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """x with each element set to the least value of `selu` with probability p, scaled and shifted
    to keep mean 0 and variance 1; x itself when not training."""
    return _applied(Tensor.alpha_dropout, x, p, training, inplace)


def feature_alpha_dropout(
    x: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """`alpha_dropout` of whole channels of x (batch, channels, ..)."""
    return _applied(Tensor.feature_alpha_dropout, x, p, training, inplace)


def dropout1d(x: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """x, (channels, length) with or without a batch, with whole channels set to 0 with probability
    p and the others divided by 1 - p; x itself when not training."""
    return _of_channels("dropout1d", (2, 3), x, p, training, inplace)


def dropout2d(x: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """`dropout1d` of x (batch, channels, height, width); one of three dimensions is taken as
    (batch, channels, length), as PyTorch does."""
    return _of_channels("dropout2d", (3, 4), x, p, training, inplace)


def dropout3d(x: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """`dropout1d` of x, (channels, depth, height, width) with or without a batch."""
    return _of_channels("dropout3d", (4, 5), x, p, training, inplace)


def _of_channels(
    name: str, ranks: tuple[int, int], x: Tensor, p: float, training: bool, inplace: bool
) -> Tensor:
    """Dropout of channels. ranks: the numbers of dimensions without a batch and with one."""
    if x.ndim not in ranks:
        raise ValueError(
            f"{name}: x of shape {x.shape} must have {ranks[0]} or {ranks[1]} dimensions"
        )
    alone = x.ndim == ranks[0] and name != "dropout2d"

    def drop(x: Tensor, p: float) -> Tensor:
        if not alone:
            return x.feature_dropout(p)
        return x.unsqueeze(0).feature_dropout(p).squeeze(0)

    return _applied(drop, x, p, training, inplace)


def _applied(drop: Drop, x: Tensor, p: float, training: bool, inplace: bool) -> Tensor:
    if not 0 <= p <= 1:
        raise ValueError(f"dropout: p={p!r} is not a probability in 0..1")
    result = drop(x, p) if training else x
    return x.assign(result) if inplace and training else result


# ---- modules -------------------------------------------------------------------------------------
class Dropout(Module):
    """In training, each element is 0 with probability p, and the others are divided by 1 - p.

    >>> nn.Dropout(0.5).eval()(Tensor([1.0, 2.0]))
    Tensor([1., 2.])
    """

    drop: Callable[..., Tensor] = staticmethod(dropout)

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        if not 0 <= p <= 1:
            raise ValueError(f"{type(self).__name__}: p={p!r} is not a probability in 0..1")
        self.p, self.inplace = p, inplace

    def forward(self, x: Tensor) -> Tensor:
        return self.drop(x, self.p, self.training, self.inplace)

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace=True" if self.inplace else f"p={self.p}"


class Dropout1d(Dropout):
    """`Dropout` of whole channels of (channels, length), with or without a batch.

    >>> nn.Dropout1d(0.5).eval()(Tensor.ones(1, 1, 2)).sum().item()
    2.0
    """

    drop: Callable[..., Tensor] = staticmethod(dropout1d)


class Dropout2d(Dropout):
    """`Dropout` of whole channels of (batch, channels, height, width).

    >>> nn.Dropout2d(0.5).eval()(Tensor.ones(1, 1, 2, 2)).sum().item()
    4.0
    """

    drop: Callable[..., Tensor] = staticmethod(dropout2d)


class Dropout3d(Dropout):
    """`Dropout` of whole channels of (channels, depth, height, width), with or without a batch.

    >>> nn.Dropout3d(0.5).eval()(Tensor.ones(1, 1, 2, 2, 2)).sum().item()
    8.0
    """

    drop: Callable[..., Tensor] = staticmethod(dropout3d)


class AlphaDropout(Dropout):
    """`Dropout` that keeps mean 0 and variance 1 behind `SELU`: dropped elements get its least
    value. Source: Klambauer et al., "Self-normalizing neural networks", 2017.

    >>> nn.AlphaDropout(0.5).eval()(Tensor([1.0, 2.0]))
    Tensor([1., 2.])
    """

    drop: Callable[..., Tensor] = staticmethod(alpha_dropout)


class FeatureAlphaDropout(Dropout):
    """`AlphaDropout` of whole channels of (batch, channels, ..).

    >>> nn.FeatureAlphaDropout(0.5).eval()(Tensor.ones(1, 2, 2)).sum().item()
    4.0
    """

    drop: Callable[..., Tensor] = staticmethod(feature_alpha_dropout)
