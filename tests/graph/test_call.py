"""CALL and AGAIN: text, law, values, what is inlined, when what is computed again runs."""

from typing import Any

import numpy as np
import pytest
from gradcheck import check, leaf

from treadle.backend.base import Target
from treadle.backend.interp.graph import evaluate
from treadle.graph import build as b
from treadle.graph.call import CHECKPOINT, Checkpoint, again, call, inline
from treadle.graph.grad import gradients
from treadle.graph.scan import scan
from treadle.graph.simplify import simplify
from treadle.ir import ops
from treadle.ir.dtype import float32, uint64
from treadle.ir.node import Node, toposort
from treadle.ir.text import parse_roots, show
from treadle.ir.verify import verify
from treadle.schedule.schedule import schedule

TARGET = Target("test", "cpu")
RANDOM = np.random.default_rng(5)
X = RANDOM.uniform(0.5, 1.5, (3, 4))
W = RANDOM.uniform(0.5, 1.5, (4, 4))


def mul(x: Node, y: Node) -> Node:
    return b.alu(ops.MUL, x, y)


def product(x: Node, w: Node) -> Node:
    """The matrix product of x and w."""
    n, k, m = *x.shape, w.shape[1]
    rows = b.expand(b.reshape(x, (n, k, 1)), (n, k, m))
    return b.reduce("add", mul(rows, b.expand(b.reshape(w, (1, k, m)), (n, k, m))), 1)


def layer(x: Node, w: Node) -> Node:
    return b.alu(ops.TANH, product(b.alu(ops.SIN, product(x, w)), w))


def checkpointed(x: Node, w: Node) -> Node:
    return call([layer(x, w)], [x], CHECKPOINT)[0]


def ops_below(*roots: Node) -> set[ops.Op]:
    return {node.op for node in toposort(roots, into_args=True)}


def test_text_law_and_value() -> None:
    x, w = leaf(0, X), leaf(1, W)
    node = checkpointed(x, w)
    text = show([node])
    assert '@"checkpoint"' in text
    assert parse_roots(text) == (node,)
    verify([node], "graph")
    (found, want) = evaluate([node, layer(x, w)], {x: X, w: W})
    np.testing.assert_array_equal(found, want)


def test_a_name_that_nothing_has_is_an_error() -> None:
    text = show([checkpointed(leaf(0, X), leaf(1, W))])
    with pytest.raises(ValueError, match="nothing in this process has the name 'checkpoin'"):
        parse_roots(text.replace('"checkpoint"', '"checkpoin"'))


def test_names_are_different() -> None:
    first, second = Checkpoint("mine"), Checkpoint("mine")
    assert (first.name, second.name) == ("mine", "mine 2")


def test_a_body_that_does_not_fit() -> None:
    node = checkpointed(leaf(0, X), leaf(1, W)).src[0]
    with pytest.raises(ValueError, match="its body reads placeholder 1"):
        verify([node.with_src(node.src[:1])], "graph")
    with pytest.raises(ValueError, match="its arg is not"):
        verify([Node(ops.CALL, node.dtype, node.src, (node.arg[0], "checkpoint"))], "graph")


def test_inlined_it_is_the_graph_of_the_function_itself() -> None:
    x, w = leaf(0, X), leaf(1, W)
    assert inline([checkpointed(checkpointed(x, w), w)]) == [layer(layer(x, w), w)]
    assert simplify([checkpointed(x, w)]) == simplify([layer(x, w)])


def test_inlined_in_the_body_of_a_loop() -> None:
    w = leaf(1, W)

    def step(h: Node, _: Any) -> tuple[Node, Node]:
        return checkpointed(h, w), h

    (last, _) = scan(step, leaf(0, X), None, length=3)
    assert ops.CALL in ops_below(last)
    assert ops.CALL not in ops_below(*inline([last]))


def test_derivatives_to_third_order() -> None:
    check(checkpointed, X[:2, :2], W[:2, :2], order=3)
    check(lambda x, w: checkpointed(checkpointed(x, w), w), X[:2, :2], W[:2, :2])


def test_nested() -> None:
    def inner(x: Node, w: Node) -> Node:
        return call([checkpointed(checkpointed(x, w), w)], [x], CHECKPOINT)[0]

    check(inner, X[:2, :2], W[:2, :2])


def test_the_key_of_a_draw_is_an_input() -> None:
    """So it is drawn again, and bodies that differ in nothing but their keys are equal."""

    def noisy(x: Node, key: int) -> Node:
        drawn = b.alu(ops.THREEFRY, b.iota(4, uint64), b.const(key, uint64))
        return call([mul(x, b.cast(drawn, x.dtype))], [x], CHECKPOINT)[0]

    x = leaf(0, X[0])
    first, second = noisy(x, 1 << 40), noisy(x, 1 << 41)
    assert first is not second
    assert first.src[0].arg[0] is second.src[0].arg[0]
    (g,) = gradients([first], [b.ones_like(first)], [x])
    keys = [n.src[1] for n in toposort(g) if n.op is ops.THREEFRY]
    assert all(ops.AGAIN in ops_below(key) for key in keys)
    np.testing.assert_array_equal(
        evaluate([g], {x: X[0]})[0], evaluate([first], {x: np.ones(4)})[0]
    )


def test_again_stands_below_movements() -> None:
    x, late = leaf(0, X), leaf(1, W)
    moved = again(b.permute(x, (1, 0)), b.reshape(late, (16,)))
    assert moved is b.permute(ops.AGAIN(x, late), (1, 0))


# ---- when it runs --------------------------------------------------------------------------------
def deep(layers: int, wrap: bool) -> list[Node]:
    """The gradients of a chain of layers by their weights."""
    h = Node(ops.BUFFER, float32, (), (0, (64, 32), "CPU"))
    weights = [Node(ops.BUFFER, float32, (), (1 + n, (32, 32), "CPU")) for n in range(layers)]
    for w in weights:
        value = layer(layer(h, w), w)
        h = call([value], [h], CHECKPOINT)[0] if wrap else value
    return gradients([h], [Node(ops.BUFFER, float32, (), (1 + layers, h.shape, "CPU"))], weights)


def test_it_is_computed_again_when_it_is_needed() -> None:
    """The values inside of one layer are in memory at a time, beside the inputs of all."""
    value = 64 * 32 * 4
    arena = {wrap: schedule(simplify(deep(12, wrap)), {}, TARGET).arena for wrap in (False, True)}
    assert arena[False] > 36 * value
    assert arena[True] <= (12 + 10) * value


def test_it_compiles_nothing_twice() -> None:
    """Twelve layers are the kernels of two: those of the first time, and those of the second."""
    few, many = (
        {call.kernel for call in schedule(simplify(deep(n, True)), {}, TARGET).calls()}
        for n in (3, 12)
    )
    assert few == many


def test_a_loop_is_computed_again_after_the_cotangent_is_there() -> None:
    x = Node(ops.BUFFER, float32, (), (0, (8, 16), "CPU"))
    start = Node(ops.BUFFER, float32, (), (1, (16,), "CPU"))
    (last, _) = scan(lambda h, v: (b.alu(ops.TANH, mul(h, v)), h), start, x)
    (h,) = call([last], [start, x], CHECKPOINT)
    y = b.alu(ops.SIN, h)
    found = gradients([y], [b.ones_like(y)], [start, x])
    loops = [item for item in schedule(simplify([y, *found]), {}, TARGET).items if item.waits]
    assert loops
