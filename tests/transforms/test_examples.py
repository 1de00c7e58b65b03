"""What transforms are for, at real sizes: per-example gradients of a convolutional network, a
Hessian times a vector for a transformer block, MAML's inner loop, forward over reverse."""

from typing import Any

import numpy as np

from treadle import Tensor, checkpoint, grad, hvp, jit, jvp, value_and_grad, vmap
from treadle.graph.tree import flatten, unflatten

RANDOM = np.random.default_rng(51)
Weights = dict[str, Tensor]


def drawn(*shape: int, scale: float = 1.0) -> Tensor:
    return Tensor((RANDOM.standard_normal(shape) * scale).astype(np.float32))


def combined(f: Any, *trees: Any) -> Any:
    """f of the leaves of equal trees, as a tree."""
    leaves = [flatten(tree)[0] for tree in trees]
    return unflatten(flatten(trees[0])[1], [f(*each) for each in zip(*leaves)])


def close(found: Any, want: Any, tolerance: float = 1e-4) -> None:
    for a, b in zip(flatten(found)[0], flatten(want)[0]):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=tolerance, atol=tolerance)


# ---- per-example gradients -----------------------------------------------------------------------
def convnet_loss(weights: Weights, image: Tensor, label: Tensor) -> Tensor:
    x = image[None].conv2d(weights["first"], weights["bias"], padding=1).relu().max_pool2d(2)
    x = x.conv2d(weights["second"], padding=1).relu().max_pool2d(2)
    logits = x.flatten(1) @ weights["out"]
    return logits.cross_entropy(label[None])


def test_per_example_gradients_of_a_convolutional_network() -> None:
    weights = {
        "first": drawn(8, 1, 3, 3, scale=0.3),
        "bias": drawn(8, scale=0.1),
        "second": drawn(16, 8, 3, 3, scale=0.1),
        "out": drawn(16 * 7 * 7, 10, scale=0.05),
    }
    images, labels = drawn(16, 1, 28, 28), Tensor(RANDOM.integers(0, 10, 16))
    derivative = grad(convnet_loss)
    found = jit(vmap(derivative, in_axes=(None, 0, 0)))(weights, images, labels)
    for n in (0, 7, 15):
        close({k: g[n] for k, g in found.items()}, derivative(weights, images[n], labels[n]))
    mean = grad(lambda w: vmap(convnet_loss, (None, 0, 0))(w, images, labels).mean())(weights)
    close({k: g.mean(0) for k, g in found.items()}, mean)


# ---- the Hessian of a transformer block ----------------------------------------------------------
def block(weights: Weights, x: Tensor) -> Tensor:
    """Pre-norm attention with 4 heads and a feed-forward network."""
    time, width = x.shape
    heads = (x.layer_norm((width,)) @ weights["qkv"]).reshape(time, 3, 4, width // 4)
    q, k, v = heads.permute(1, 2, 0, 3).unbind(0)
    mixed = q.scaled_dot_product_attention(k, v, is_causal=True)
    x = x + mixed.permute(1, 0, 2).reshape(time, width) @ weights["proj"]
    return x + (x.layer_norm((width,)) @ weights["up"]).gelu() @ weights["down"]


def test_a_hessian_vector_product_of_a_transformer_block() -> None:
    width, time = 64, 32
    weights = {
        "qkv": drawn(width, 3 * width, scale=0.1),
        "proj": drawn(width, width, scale=0.1),
        "up": drawn(width, 4 * width, scale=0.1),
        "down": drawn(4 * width, width, scale=0.1),
    }
    move = combined(lambda w: drawn(*w.shape), weights)
    x, target = drawn(time, width), drawn(time, width)

    def loss(weights: Weights) -> Tensor:
        return (block(weights, x) - target).square().mean()

    (product,) = jit(lambda w, v: hvp(loss, (w,), (v,)))(weights, move)

    # reverse over reverse, and a difference of gradients
    def slope(weights: Weights) -> Tensor:
        found = grad(loss)(weights)
        return sum((found[k] * move[k]).sum() for k in found)

    close(product, grad(slope)(weights), 1e-4)
    step = 1e-2
    ahead = grad(loss)(combined(lambda w, v: w + step * v, weights, move))
    behind = grad(loss)(combined(lambda w, v: w - step * v, weights, move))
    for key, h in product.items():
        difference = (ahead[key] - behind[key]).numpy() / (2 * step)
        np.testing.assert_allclose(h.numpy(), difference, atol=0.05 * np.abs(difference).max())
    # a block whose insides are computed again has the same
    (again,) = hvp(
        lambda w: (checkpoint(block)(w, x) - target).square().mean(), (weights,), (move,)
    )
    close(again, product, 1e-4)


# ---- MAML ----------------------------------------------------------------------------------------
def regression(weights: Weights, x: Tensor, y: Tensor) -> Tensor:
    hidden = (x[:, None] * weights["in"] + weights["bias"]).tanh()
    return (hidden @ weights["out"] - y).square().mean()


def test_the_inner_loop_of_maml() -> None:
    """The gradient of the loss after two steps of gradient descent, for a batch of tasks at once
    (Finn, Abbeel and Levine, "Model-agnostic meta-learning", 2017)."""
    weights = {"in": drawn(40), "bias": drawn(40), "out": drawn(40, scale=0.2)}
    x = Tensor(RANDOM.uniform(-5, 5, (8, 10)).astype(np.float32))
    phase = Tensor(RANDOM.uniform(0, 3, (8, 1)).astype(np.float32))
    y = (x + phase).sin()

    def adapted(weights: Weights, x: Tensor, y: Tensor) -> Tensor:
        for _ in range(2):
            found = grad(regression)(weights, x, y)
            weights = combined(lambda w, g: w - 0.05 * g, weights, found)
        return regression(weights, x, y)

    def meta(weights: Weights) -> Tensor:
        return vmap(adapted, (None, 0, 0))(weights, x, y).mean()

    value, found = jit(value_and_grad(meta))(weights)
    tasks = [value_and_grad(adapted)(weights, x[n], y[n]) for n in range(8)]
    close(value, np.mean([v.item() for v, _ in tasks]))
    for key, g in found.items():
        close(g, np.mean([each[key].numpy() for _, each in tasks], axis=0))
    move = combined(lambda w: drawn(*w.shape), weights)
    ahead = meta(combined(lambda w, v: w + 1e-3 * v, weights, move)).item()
    behind = meta(combined(lambda w, v: w - 1e-3 * v, weights, move)).item()
    claimed = sum((found[k] * move[k]).sum().item() for k in found)
    np.testing.assert_allclose(claimed, (ahead - behind) / 2e-3, rtol=2e-2, atol=1e-3)


# ---- forward over reverse ------------------------------------------------------------------------
def test_forward_over_reverse_is_reverse_over_forward() -> None:
    weights = {"in": drawn(40), "bias": drawn(40), "out": drawn(40, scale=0.2)}
    move = combined(lambda w: drawn(*w.shape), weights)
    x = Tensor(RANDOM.uniform(-5, 5, 64).astype(np.float32))

    def loss(weights: Weights) -> Tensor:
        return regression(weights, x, x.sin())

    forward = jvp(grad(loss), (weights,), (move,))[1]
    reverse = grad(lambda w: jvp(loss, (w,), (move,))[1])(weights)
    close(forward, reverse)
    close(forward, hvp(loss, (weights,), (move,))[0])
