"""Mixed precision: inside `autocast`, products run in half precision and what needs it in float32.

Which public names are which is a table, PyTorch's. The weights stay what they are; their casts are
part of the graph, so gradients arrive in the weights' own dtype.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ContextDecorator
from functools import wraps
from typing import Any

from treadle import convert
from treadle.engine import device as devices
from treadle.ir.dtype import DType, bfloat16, float16, float32
from treadle.tensor import Tensor, mode

# run in the narrow dtype: their time is that of the products
NARROW = frozenset((
    "matmul", "mm", "bmm", "mv", "addmm", "addmv", "addbmm", "baddbmm", "addr", "linear", "einsum",
    "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d",
    "scaled_dot_product_attention",
))  # fmt: skip
# run in float32: large sums, and functions that reach far
WIDE = frozenset((
    "acos", "asin", "cosh", "exp", "expm1", "log", "log10", "log1p", "log2", "pow", "reciprocal",
    "rsqrt", "sinh", "tan", "softplus", "softmax", "log_softmax", "softmin", "logsumexp",
    "layer_norm", "group_norm", "norm", "normalize", "sum", "prod", "cumsum", "cumprod",
    "cosine_similarity", "cosine_embedding_loss", "cross_entropy", "nll_loss", "mse_loss",
    "l1_loss", "smooth_l1_loss", "huber_loss", "kl_div", "binary_cross_entropy_with_logits",
    "poisson_nll_loss", "gaussian_nll_loss", "hinge_embedding_loss", "margin_ranking_loss",
    "triplet_margin_loss", "soft_margin_loss", "multi_margin_loss", "multilabel_margin_loss",
    "ctc_loss",
))  # fmt: skip
_HALVES = (float16, bfloat16)
_SINGLES = (*_HALVES, float32)


class autocast(ContextDecorator):
    """Inside, products (linear maps, convolutions, attention, `@`) run in half precision whatever
    the dtype of their floating operands, and losses, norms, softmax and large sums in float32.

    device_type: the name of a device; it says nothing more here. dtype: bfloat16 unless given, or
    float16 (train with `GradScaler` then). enabled: False for an outer one to end inside. float64
    stays what it is. Works as a decorator too. Source: PyTorch's `torch.autocast`.

    >>> with autocast():
    ...     (Tensor([[1.0]]) @ Tensor([[2.0]])).dtype
    bfloat16
    """

    def __init__(
        self,
        device_type: str = "CPU",
        dtype: DType | str | None = None,
        enabled: bool = True,
        cache_enabled: bool | None = None,
    ) -> None:
        devices.canonical(device_type)
        narrow = bfloat16 if dtype is None else convert.as_dtype(dtype)
        if narrow not in _HALVES:
            raise ValueError(f"autocast: dtype is float16 or bfloat16, not {narrow}")
        self.narrow = narrow if enabled else None
        self.before: list[DType | None] = []

    def __enter__(self) -> autocast:
        self.before.append(mode.narrow)
        mode.narrow = self.narrow
        return self

    def __exit__(self, *error: Any) -> None:
        mode.narrow = self.before.pop()


def as_asked(name: str, run: Callable[..., Any]) -> Callable[..., Any]:
    """The function of a public name that casts its tensors inside `autocast`."""
    if name not in NARROW and name not in WIDE:
        return run
    products = name in NARROW

    @wraps(run)
    def casting(*args: Any, **named: Any) -> Any:
        if mode.narrow is None:
            return run(*args, **named)
        dtype, those = (mode.narrow, _SINGLES) if products else (float32, _HALVES)

        def fitted(value: Any) -> Any:
            fits = not isinstance(value, Tensor) or value.dtype not in those
            return value if fits or value.dtype is dtype else value.cast(dtype)

        return run(*map(fitted, args), **{key: fitted(value) for key, value in named.items()})

    return casting
