"""Layers and losses as functions: `import treadle.nn.functional as F`.

Most are methods of Tensor under their own names; `F.relu(x)` is `x.relu()`.
"""

from __future__ import annotations

from collections.abc import Callable

from treadle.tensor import Tensor, no_grad


def _method(name: str) -> Callable[..., Tensor]:
    method: Callable[..., Tensor] = getattr(Tensor, name)
    return method


# activations
relu = _method("relu")
gelu = _method("gelu")
silu = _method("silu")
sigmoid = _method("sigmoid")
tanh = _method("tanh")
softmax = _method("softmax")
log_softmax = _method("log_softmax")

# linear maps, convolutions, pools, attention
linear = _method("linear")
embedding = _method("embedding")
one_hot = _method("one_hot")
pad = _method("pad")
conv1d = _method("conv1d")
conv2d = _method("conv2d")
conv3d = _method("conv3d")
conv_transpose1d = _method("conv_transpose1d")
conv_transpose2d = _method("conv_transpose2d")
conv_transpose3d = _method("conv_transpose3d")
max_pool1d = _method("max_pool1d")
max_pool2d = _method("max_pool2d")
max_pool3d = _method("max_pool3d")
avg_pool1d = _method("avg_pool1d")
avg_pool2d = _method("avg_pool2d")
avg_pool3d = _method("avg_pool3d")
scaled_dot_product_attention = _method("scaled_dot_product_attention")

# normalisation
layer_norm = _method("layer_norm")
rms_norm = _method("rms_norm")
group_norm = _method("group_norm")

# losses
mse_loss = _method("mse_loss")
l1_loss = _method("l1_loss")
cross_entropy = _method("cross_entropy")
nll_loss = _method("nll_loss")
binary_cross_entropy = _method("binary_cross_entropy")
binary_cross_entropy_with_logits = _method("binary_cross_entropy_with_logits")


def dropout(x: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
    """x with each element set to 0 with probability p and the others divided by 1 - p; x itself
    when not training."""
    return x.dropout(p) if training else x


def batch_norm(
    x: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float | Tensor = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """x (batch, channels, ..) normalised per channel, times weight, plus bias.

    training: by the moments of the batch, of which `momentum` goes into the running ones (put into
    those tensors, pending); else by the running ones. ValueError for one element per channel in
    training, which has no variance. Source: Ioffe and Szegedy, "Batch normalization", 2015.
    """
    if not training:
        if running_mean is None or running_var is None:
            raise ValueError("batch_norm: without training it needs running_mean and running_var")
        return x.batch_norm(running_mean, running_var, weight, bias, eps)
    mean, var = x.batch_statistics()
    channels = x.shape[1]
    count = x.numel() // channels if channels else 0
    if count == 1:
        raise ValueError(
            f"batch_norm: x of shape {x.shape} has one element per channel, which has no variance: "
            "give a larger batch, or call eval()"
        )
    unbiased = var * (count / (count - 1)) if count else var
    with no_grad():
        for running, new in ((running_mean, mean), (running_var, unbiased)):
            if running is not None:
                old = running.to(dtype=new.dtype)
                running.assign((old + (new - old) * momentum).to(dtype=running.dtype))
    return x.batch_norm(mean, var, weight, bias, eps)
