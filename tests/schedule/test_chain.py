"""An attention is one kernel wherever its scores are needed for nothing else."""

from collections.abc import Callable

import numpy as np
import pytest
from running import Inputs, agree, kernels

from treadle.backend.base import Target
from treadle.graph import build as b
from treadle.graph import elementwise, grad, linear, movement, neural
from treadle.graph.public import METHODS
from treadle.ir.dtype import bool_
from treadle.ir.node import Node
from treadle.schedule.schedule import Schedule

TARGET = Target("test", "cpu", vector_bytes=64, registers=32)
EXP = METHODS["exp"].function
Heads = tuple[Node, Node, Node]


def heads(inputs: Inputs, queries: int = 200, keys: int = 210, size: int = 12) -> Heads:
    return inputs.new(2, queries, size), inputs.new(2, keys, size), inputs.new(2, keys, 14)


def written_out(q: Node, k: Node, v: Node) -> Node:
    scores = linear.matmul(q, movement.transpose(k, -2, -1))
    return linear.matmul(neural.softmax(elementwise.mul(scores, 0.25), -1), v)


def causal(q: Node, k: Node, v: Node) -> Node:
    return neural.scaled_dot_product_attention(q, k, v, is_causal=True)


def biased(q: Node, k: Node, v: Node) -> Node:
    bias = b.iota(k.shape[1], q.dtype)
    return neural.scaled_dot_product_attention(q, k, v, attn_mask=bias)


def four_heads(q: Node, k: Node, v: Node) -> Node:
    many = b.reshape(q, (4, q.shape[1] // 2, q.shape[2]))
    return neural.scaled_dot_product_attention(many, k, v, enable_gqa=True)


def without_maximum(q: Node, k: Node, v: Node) -> Node:
    powers = EXP(linear.matmul(q, movement.transpose(k, -2, -1)))
    return elementwise.div(linear.matmul(powers, v), b.reduce("add", powers, -1, True))


def scheduled(roots: list[Node], inputs: Inputs) -> Schedule:
    return agree(roots, inputs.arrays, target=TARGET)


@pytest.mark.parametrize("attention", [written_out, causal, biased, four_heads, without_maximum])
def test_one_kernel_without_the_scores(attention: Callable[..., Node]) -> None:
    inputs = Inputs()
    plan = scheduled([attention(*heads(inputs))], inputs)
    assert kernels(plan) == 1 and plan.arena == 0


def test_a_mask_from_memory_with_rows_that_see_nothing() -> None:
    inputs = Inputs()
    q, k, v = heads(inputs)
    seen = inputs.random.random((200, 210)) < 0.5
    seen[3] = False
    mask = inputs.given(seen, bool_)
    root = neural.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    assert kernels(scheduled([root], inputs)) == 1


def test_keys_as_many_as_a_value_is_long() -> None:
    """Ranges of equal length must not be taken for each other."""
    inputs = Inputs()
    q, k, v = inputs.new(8, 200, 64), inputs.new(8, 64, 64), inputs.new(8, 64, 64)
    assert kernels(scheduled([causal(q, k, v)], inputs)) == 1


def test_scores_that_something_else_needs_are_stored() -> None:
    inputs = Inputs()
    q, k, v = heads(inputs)
    weights = neural.softmax(linear.matmul(q, movement.transpose(k, -2, -1)), -1)
    plan = scheduled([linear.matmul(weights, v), weights], inputs)
    assert kernels(plan) == 3


def test_a_sum_that_is_a_result_too() -> None:
    inputs = Inputs()
    q, k, v = heads(inputs)
    powers = EXP(linear.matmul(q, movement.transpose(k, -2, -1)))
    total = b.reduce("add", powers, -1, True)
    scheduled([elementwise.div(linear.matmul(powers, v), total), total], inputs)


def test_a_sum_over_the_rows_themselves_is_no_chain() -> None:
    """The factor of a row varies along what is summed: it stays where it is."""
    inputs = Inputs()
    q, k, v = inputs.new(2, 200, 12), inputs.new(2, 200, 12), inputs.new(2, 200, 14)
    weights = neural.softmax(linear.matmul(q, movement.transpose(k, -2, -1)), -1)
    scheduled([linear.matmul(movement.transpose(weights, -2, -1), v)], inputs)


@pytest.mark.parametrize("attention", [causal, written_out, four_heads])
def test_gradients_of_an_attention_agree(attention: Callable[..., Node]) -> None:
    inputs = Inputs()
    leaves = heads(inputs)
    result = attention(*leaves)
    loss = b.reduce("add", elementwise.mul(result, result), tuple(range(len(result.shape))))
    scheduled([loss, *grad.gradients([loss], [b.ones_like(loss)], list(leaves))], inputs)


def test_a_sum_of_products_with_a_number_has_no_rows() -> None:
    inputs = Inputs()
    x, y = inputs.new(5), inputs.new()
    number = b.broadcast_to(b.reshape(elementwise.mul(y, y), (1,)), (5,))
    scheduled([b.reduce("add", elementwise.mul(x, number), 0)], inputs)


@pytest.mark.parametrize("queries", [1, 8])
def test_few_rows_are_no_blocks(queries: int) -> None:
    inputs = Inputs()
    scheduled([written_out(*heads(inputs, queries, 300))], inputs)


def test_two_layers_are_two_kernels_of_attention() -> None:
    inputs = Inputs()
    x = inputs.new(2, 200, 14)
    for _ in range(2):
        x = written_out(x, x, x)
    assert kernels(scheduled([x], inputs)) == 2


def test_rows_too_long_for_a_block_are_stored() -> None:
    inputs = Inputs()
    small = Target("test", "cpu", vector_bytes=64, registers=32, cache_bytes=(32768, 1 << 14, 1))
    root = written_out(*heads(inputs))
    plan = agree([root], inputs.arrays, target=small)
    assert kernels(plan) > 1
    assert np.prod(plan.buffers[plan.outputs[0]].shape) == 2 * 200 * 14
