"""Layers and losses as functions: `import treadle.nn.functional as F`.

Most are methods of Tensor under their own names; `F.relu(x)` is `x.relu()`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from typing import Any

from treadle import elsewhere
from treadle.graph.public import METHODS
from treadle.nn.attention import multi_head_attention_forward
from treadle.nn.dropping import (
    alpha_dropout,
    dropout,
    dropout1d,
    dropout2d,
    dropout3d,
    feature_alpha_dropout,
)
from treadle.nn.fractional import fractional_max_pool2d, fractional_max_pool3d
from treadle.nn.labels import multilabel_margin_loss
from treadle.nn.running import batch_norm, instance_norm
from treadle.nn.tables import embedding, embedding_bag
from treadle.tensor import Tensor

# what is more than a method of Tensor under its own name
OWN = (
    multi_head_attention_forward, alpha_dropout, dropout, dropout1d, dropout2d, dropout3d,
    feature_alpha_dropout, batch_norm, instance_norm, embedding, embedding_bag,
    fractional_max_pool2d, fractional_max_pool3d, multilabel_margin_loss,
)  # fmt: skip

# PyTorch's functions that may put the result into the tensor that came in
IN_PLACE = frozenset((
    "relu", "relu6", "elu", "selu", "celu", "silu", "mish", "leaky_relu", "hardtanh",
    "hardswish", "hardsigmoid", "threshold", "rrelu",
))  # fmt: skip


def __getattr__(name: str) -> Callable[..., Any]:
    """The method of Tensor with this name. AttributeError if there is none."""
    plain = name.removesuffix("_with_indices") if "_pool" in name else name
    entry = METHODS.get(plain.removesuffix("_") if plain[:-1] in IN_PLACE else plain)
    if entry is None or entry.kind == "property":
        raise elsewhere.of_part("treadle.nn.functional", name)
    method: Callable[..., Any] = getattr(Tensor, plain)
    if name != plain:
        method = partial(method, return_indices=True)
    made = globals()[name] = _in_place(method) if name in IN_PLACE else method
    return made


def __dir__() -> list[str]:
    return sorted({*globals(), *METHODS})


def _in_place(method: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The function with PyTorch's argument `inplace`."""

    @wraps(method)
    def run(x: Tensor, *args: Any, inplace: bool = False, **named: Any) -> Tensor:
        result = method(x, *args, **named)
        return x.assign(result) if inplace else result

    return run


# ---- rearranging ---------------------------------------------------------------------------------
def unfold(
    x: Tensor, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Tensor:
    """The windows of images as columns: `Tensor.im2col`. (`Tensor.unfold` is another function.)"""
    return x.im2col(kernel_size, dilation, padding, stride)


def fold(
    x: Tensor,
    output_size: Any,
    kernel_size: Any,
    dilation: Any = 1,
    padding: Any = 0,
    stride: Any = 1,
) -> Tensor:
    """Columns added up in the places of their windows: `Tensor.col2im`."""
    return x.col2im(output_size, kernel_size, dilation, padding, stride)


def upsample(
    x: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """x in another size: `interpolate`, by its old name."""
    return x.interpolate(size, scale_factor, mode, align_corners)


def upsample_nearest(x: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """x in another size, by the nearest element."""
    return x.interpolate(size, scale_factor, "nearest")


def upsample_bilinear(x: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """Images in another size, bilinear, with aligned corners."""
    return x.interpolate(size, scale_factor, "bilinear", align_corners=True)


# ---- pairs ---------------------------------------------------------------------------------------
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """input1 @ weight[k] @ input2 for every k, plus bias: (.., in1) and (.., in2) -> (.., out).

    weight: (out, in1, in2). bias: (out,). ValueError for shapes that do not fit.
    """
    if weight.ndim != 3 or input1.shape[:-1] != input2.shape[:-1]:
        raise ValueError(
            f"bilinear: input1 {input1.shape} and input2 {input2.shape} must agree but for the "
            f"last dimension, and weight be (out, in1, in2), not {weight.shape}"
        )
    if (input1.shape[-1], input2.shape[-1]) != weight.shape[1:]:
        raise ValueError(
            f"bilinear: input1 {input1.shape} and input2 {input2.shape} do not fit a weight "
            f"(out, in1, in2) of shape {weight.shape}"
        )
    outputs, first, second = weight.shape
    rows = weight.permute(0, 2, 1).reshape(outputs * second, first)
    mapped = input1.linear(rows).reshape(*input1.shape[:-1], outputs, second)
    result: Tensor = (mapped @ input2.unsqueeze(-1)).squeeze(-1)
    return result if bias is None else result + bias


def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """By how much a positive example fails to be nearer to the anchor than a negative one by the
    margin. distance_function: of two tensors; the Euclidean distance unless given. swap: the
    negative counts by its distance from the positive, if that is less. reduction: "mean", "sum"
    or "none"."""
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(
            "triplet_margin_with_distance_loss: reduction is 'mean', 'sum' or 'none', not "
            f"{reduction!r}"
        )
    distance = Tensor.pairwise_distance if distance_function is None else distance_function
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = far.minimum(distance(positive, negative))
    losses = (near - far + margin).relu()
    return losses if reduction == "none" else losses.mean() if reduction == "mean" else losses.sum()


def pdist(x: Tensor, p: float = 2.0) -> Tensor:
    """The p-norm distances of all pairs of rows of x (rows, features), those of row 0 first.

    Source: PyTorch.

    >>> nn.functional.pdist(Tensor([[0.0, 0.0], [3.0, 4.0], [0.0, 1.0]])).shape
    (3,)
    """
    if x.ndim != 2:
        raise ValueError(f"pdist: x of shape {x.shape} must be (rows, features)")
    first, second = Tensor.triu_indices(x.shape[0], x.shape[0], 1)
    return (x[first] - x[second]).norm(p, dim=-1)


for _function in (
    *OWN, unfold, fold, upsample, upsample_nearest, upsample_bilinear, bilinear,
    triplet_margin_with_distance_loss, pdist,
):  # fmt: skip
    globals()[_function.__name__] = elsewhere.as_pytorch(_function)
