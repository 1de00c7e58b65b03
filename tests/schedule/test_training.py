"""Whole training steps: values against the graph's meaning, kernels counted, memory bounded."""

from running import Inputs, agree, distinct, kernels, largest

from treadle.graph import build as b
from treadle.graph import (
    convolution,
    embeddings,
    grad,
    linear,
    losses,
    movement,
    neural,
    normalization,
    pools,
    simplify,
)
from treadle.graph.public import METHODS
from treadle.ir import ops
from treadle.ir.dtype import float64, int64
from treadle.ir.node import Node

GELU = METHODS["gelu"].function


class Step:
    """A training step with Adam: roots, what they replace, and their inputs."""

    def __init__(self) -> None:
        self.inputs = Inputs()
        self.weights: list[Node] = []
        self.roots: list[Node] = []
        self.assigns: dict[int, int] = {}

    def weight(self, *shape: int) -> Node:
        self.weights.append(self.inputs.new(*shape))
        return self.weights[-1]

    def finish(self, loss: Node) -> None:
        self.roots.append(loss)
        cotangent = [b.ones_like(loss)]
        for p, g in zip(self.weights, grad.gradients([loss], cotangent, self.weights)):
            self.adam(p, g)
        self.roots = simplify.simplify(self.roots)

    def adam(self, p: Node, g: Node) -> None:
        m = self.inputs.new(*p.shape)
        v = self.inputs.given(abs(self.inputs.random.normal(size=p.shape)))
        rate = Node(ops.SCALAR, float64, (), 0)
        new_m = b.alu(ops.ADD, b.alu(ops.MUL, m, 0.5), b.alu(ops.MUL, g, 0.5))
        new_v = b.alu(ops.ADD, b.alu(ops.MUL, v, 0.5), b.alu(ops.MUL, b.alu(ops.MUL, g, g), 0.5))
        step = b.alu(ops.DIV, new_m, b.alu(ops.ADD, b.alu(ops.SQRT, new_v), 2.0))
        new_p = b.alu(ops.SUB, p, b.alu(ops.MUL, rate, step))
        for root, old in ((new_p, p), (new_m, m), (new_v, v)):
            self.assigns[len(self.roots)] = old.arg[0]
            self.roots.append(root)


def _relu(x: Node) -> Node:
    return b.alu(ops.MAX, x, 0.0)


def _convnet(batch: int, side: int, first: int, second: int, classes: int) -> Step:
    step = Step()
    w = step.weight
    h, t = step.inputs.new(batch, 1, side, side), step.inputs.new(batch, dtype=int64, high=classes)
    h = _relu(convolution.conv2d(h, w(first, 1, 5, 5), w(first)))
    h = _relu(convolution.conv2d(h, w(first, first, 5, 5), w(first)))
    h = pools.max_pool2d(h, 2)
    h = _relu(convolution.conv2d(h, w(second, first, 3, 3), w(second)))
    h = _relu(convolution.conv2d(h, w(second, second, 3, 3), w(second)))
    h = normalization.batch_norm(h, *normalization.batch_statistics(h), w(second), w(second))
    h = movement.flatten(pools.max_pool2d(h, 2), 1)
    logits = neural.linear(h, w(classes, h.shape[1]), w(classes))
    step.finish(losses.cross_entropy(logits, t))
    return step


def test_a_convolutional_network() -> None:
    step = _convnet(2, 22, 3, 4, 5)
    plan = agree(step.roots, step.inputs.arrays, step.assigns, scalars=[0.1], tolerance=1e-7)
    assert kernels(plan) <= 30
    activations = 2 * 3 * 18 * 18
    assert largest(plan) <= activations
    assert len(plan.in_place) >= len(step.assigns) - 2


def test_its_temporaries_are_its_activations() -> None:
    step = _convnet(16, 28, 8, 16, 10)
    plan = agree(step.roots, step.inputs.arrays, step.assigns, scalars=[0.1], tolerance=1e-6)
    maps = [(8, 24), (8, 24), (8, 20), (16, 8), (16, 8), (16, 6)]
    alive = sum(16 * channels * side * side * 8 for channels, side in maps)
    assert plan.arena <= 2 * alive


def _transformer(layers: int, batch: int, time: int, width: int, heads: int, words: int) -> Step:
    step = Step()
    w = step.weight
    ids = step.inputs.new(batch, time, dtype=int64, high=words)
    targets = step.inputs.new(batch * time, dtype=int64, high=words)
    table = w(words, width)
    h = b.alu(ops.ADD, embeddings.embedding(ids, table), w(time, width))
    for _ in range(layers):
        a = normalization.layer_norm(h, (width,), w(width), w(width))
        a = neural.linear(a, w(3 * width, width), w(3 * width))
        q, k, v = [
            b.permute(
                b.reshape(
                    b.shrink(a, ((0, batch), (0, time), (n * width, (n + 1) * width))),
                    (batch, time, heads, width // heads),
                ),
                (0, 2, 1, 3),
            )
            for n in range(3)
        ]
        a = neural.scaled_dot_product_attention(q, k, v, is_causal=True)
        a = b.reshape(b.permute(a, (0, 2, 1, 3)), (batch, time, width))
        h = b.alu(ops.ADD, h, neural.linear(a, w(width, width), w(width)))
        a = normalization.layer_norm(h, (width,), w(width), w(width))
        a = GELU(neural.linear(a, w(4 * width, width), w(4 * width)))
        h = b.alu(ops.ADD, h, neural.linear(a, w(width, 4 * width), w(width)))
    h = normalization.layer_norm(h, (width,), w(width), w(width))
    logits = linear.matmul(h, b.permute(table, (1, 0)))
    step.finish(losses.cross_entropy(b.reshape(logits, (batch * time, words)), targets))
    return step


def test_a_transformer() -> None:
    step = _transformer(2, 2, 8, 16, 2, 11)
    plan = agree(step.roots, step.inputs.arrays, step.assigns, scalars=[0.1], tolerance=1e-6)
    assert kernels(plan) <= 85
    assert plan.in_place == set(step.assigns)
    assert largest(plan) <= 2 * 8 * 64


def test_layers_share_their_kernels() -> None:
    few, more = [_transformer(layers, 2, 8, 16, 2, 11) for layers in (3, 5)]
    plans = [
        agree(step.roots, step.inputs.arrays, step.assigns, scalars=[0.1], tolerance=1e-6)
        for step in (few, more)
    ]
    assert kernels(plans[1]) - kernels(plans[0]) >= 60
    assert distinct(plans[1]) - distinct(plans[0]) <= 2
    # what checked the ids has run before the first weight changes
    calls = list(plans[1].calls())
    first = min(n for n, call in enumerate(calls) if call.in_place)
    assert all(n < first for n, call in enumerate(calls) if call.may_fail)
    assert first < len(calls) * 3 // 4  # a gradient is used up when it is there
