"""What becomes one kernel, with values, counts and reasons."""

import random

import numpy as np
import pytest
from running import Inputs, agree, distinct, kernels, largest, leaf, reasons, run

from treadle.backend.base import Target
from treadle.graph import build as b
from treadle.graph import (
    convolution,
    elementwise,
    embeddings,
    grad,
    linear,
    losses,
    neural,
    normalization,
    pools,
    reduction,
)
from treadle.graph.public import METHODS
from treadle.ir import index, ops
from treadle.ir.dtype import float16, float32, float64, int64
from treadle.ir.node import Node, toposort
from treadle.ir.verify import verify
from treadle.schedule.schedule import schedule

GELU = METHODS["gelu"].function


def test_elementwise_is_one_flat_kernel() -> None:
    inputs = Inputs()
    x, y = inputs.new(3, 4, 5), inputs.new(5)
    same = b.alu(ops.MAX, b.alu(ops.ADD, b.alu(ops.MUL, x, 2.0), 1.0), 0.0)
    plan = agree([same], inputs.arrays)
    (call,) = plan.calls()
    (store,) = call.kernel.src
    assert store.arg[0] == 1 and store.src[2].arg == (0, 60)
    broadcast = agree([b.alu(ops.ADD, x, y)], inputs.arrays)
    (call,) = broadcast.calls()
    assert call.kernel.src[0].arg[0] == 3


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_softmax(name: str) -> None:
    inputs = Inputs()
    x = inputs.new(6, 8)
    plan = agree([METHODS[name].function(x, -1)], inputs.arrays)
    assert kernels(plan) == 1
    # the row of every loop is the row of the store: two ranges are enough
    (call,) = plan.calls()
    assert {n.arg for n in toposort(call.kernel) if n.op is ops.RANGE} == {(0, 6), (1, 8)}


def test_softmax_over_the_first_axis() -> None:
    inputs = Inputs()
    assert kernels(agree([neural.softmax(inputs.new(6, 8), 0)], inputs.arrays)) == 1


def test_layer_norm() -> None:
    inputs = Inputs()
    x, weight, bias = inputs.new(2, 6, 8), inputs.new(8), inputs.new(8)
    assert kernels(agree([normalization.layer_norm(x, (8,), weight, bias)], inputs.arrays)) == 1


def test_batch_norm_with_its_statistics() -> None:
    inputs = Inputs()
    x, weight, bias = inputs.new(4, 6, 3, 3), inputs.new(6), inputs.new(6)
    mean, variance = normalization.batch_statistics(x)
    plan = agree([normalization.batch_norm(x, mean, variance, weight, bias)], inputs.arrays)
    assert kernels(plan) == 1


def test_mean_and_variance_are_two_stores_of_one_kernel() -> None:
    inputs = Inputs()
    x = inputs.new(6, 8)
    plan = agree([reduction.mean(x, 1), reduction.var(x, 1)], inputs.arrays)
    (call,) = plan.calls()
    assert len(call.kernel.src) == 2
    assert kernels(agree([reduction.mean(x), reduction.var(x)], inputs.arrays)) == 1


@pytest.mark.parametrize("mode", ["none", "mean", "sum"])
def test_cross_entropy(mode: str) -> None:
    inputs = Inputs()
    x, target = inputs.new(6, 8), inputs.new(6, dtype=int64, high=8)
    plan = agree([losses.cross_entropy(x, target, reduction=mode)], inputs.arrays)
    assert kernels(plan) == 1


def test_matmul_with_bias_and_gelu() -> None:
    inputs = Inputs()
    x, w, bias = inputs.new(6, 8), inputs.new(8, 5), inputs.new(5)
    y = GELU(b.alu(ops.ADD, linear.matmul(x, w), bias))
    assert kernels(agree([y], inputs.arrays)) == 1


def test_convolution_with_bias_and_relu() -> None:
    inputs = Inputs()
    x, w, bias = inputs.new(2, 3, 8, 8), inputs.new(4, 3, 3, 3), inputs.new(4)
    y = b.alu(ops.MAX, convolution.conv2d(x, w, bias, padding=1, stride=2), 0.0)
    plan = agree([y], inputs.arrays)
    (call,) = plan.calls()
    # what the padding reads is 0 by the guard of the load: no select
    assert not [n for n in toposort(call.kernel) if n.op is ops.WHERE]


def test_pools() -> None:
    inputs = Inputs()
    x = inputs.new(2, 3, 8, 8)
    assert kernels(agree([pools.max_pool2d(x, 2)], inputs.arrays)) == 1
    assert kernels(agree([pools.max_pool2d(x, 3, 2, 1)], inputs.arrays)) == 1
    assert kernels(agree([pools.avg_pool2d(x, 2)], inputs.arrays)) == 1


def test_argmax_is_one_pass() -> None:
    inputs = Inputs()
    x = inputs.new(6, 8)
    position = b.expand(b.iota(8, int64), (6, 8))
    value, place = b.reduce("argmax", (x, position), 1)
    for roots in ([place], [value, place]):
        plan = agree(roots, inputs.arrays)
        (call,) = plan.calls()
        assert len(call.kernel.src) == len(roots)
        assert len([n for n in toposort(call.kernel) if n.op is ops.KREDUCE]) == 1


@pytest.mark.parametrize("seed", range(20))
def test_a_row_expression_made_at_random(seed: int) -> None:
    choose = random.Random(seed)
    inputs = Inputs(seed)
    x = inputs.new(6, 8)
    values = [x, inputs.new(8), inputs.new(6, 1)]
    for step in range(9):
        a, c = choose.choice(values[-4:]), choose.choice(values)
        if step % 3 == 1:
            wide = b.expand(a, (6, 8))
            values.append(b.reduce(choose.choice(("add", "max", "min")), wide, 1, keepdim=True))
        else:
            op = choose.choice((ops.ADD, ops.MUL, ops.SUB, ops.MAX))
            values.append(b.alu(ops.TANH, b.alu(op, a, c)))
    root = values[-1]
    for value in values[3:]:
        root = b.alu(ops.ADD, root, value)
    assert kernels(agree([b.expand(root, (6, 8))], inputs.arrays)) == 1


def test_a_sum_over_all_rows_takes_no_tasks_from_a_kernel_of_rows() -> None:
    """In the gradient of a mean over labels that count, the count is one number for all rows."""
    x, counted = leaf(0, (512, 512), float32), leaf(1, (512,), float32)
    count = b.reduce("add", counted, 0)
    mean = b.alu(ops.DIV, neural.softmax(x), b.expand(b.reshape(count, (1, 1)), (512, 512)))
    plan = schedule([mean], {}, Target("t", "cpu", min_parallel=4))
    assert kernels(plan) == 2
    assert any("only 1 rows of 262144 elements" in text for text in reasons(plan))


def test_a_row_kernel_needs_rows_enough() -> None:
    wide = leaf(0, (1 << 20,), float32)
    plan = schedule([neural.softmax(wide)], {}, Target("t", "cpu", min_parallel=4))
    assert kernels(plan) > 1
    assert any("only 1 rows of 1048576 elements" in text for text in reasons(plan))
    assert (
        kernels(schedule([neural.softmax(leaf(0, (1 << 10,), float32))], {}, Target("t", "cpu")))
        == 1
    )


def test_attention_is_scores_softmax_and_sum() -> None:
    inputs = Inputs()
    q, k, v = inputs.new(2, 2, 5, 4), inputs.new(2, 2, 5, 4), inputs.new(2, 2, 5, 4)
    plan = agree([neural.scaled_dot_product_attention(q, k, v)], inputs.arrays)
    assert kernels(plan) == 3


def test_the_operand_of_a_contraction_is_stored_after_its_epilogue() -> None:
    inputs = Inputs()
    x, w, v = inputs.new(6, 8), inputs.new(8, 7), inputs.new(7, 5)
    hidden = GELU(linear.matmul(x, w))
    plan = agree([linear.matmul(hidden, v)], inputs.arrays)
    assert kernels(plan) == 2
    assert any(text.startswith("epilogue: ") for text in reasons(plan))
    assert largest(plan) <= 56


def test_a_dear_operand_is_computed_once_per_element() -> None:
    x, w = leaf(0, (64, 64), float32), leaf(1, (64, 64), float32)
    dear = schedule([linear.matmul(GELU(x), w)], {}, Target("t", "cpu"))
    assert kernels(dear) == 2
    assert any("recompute: recompute" in text and "> 24" in text for text in reasons(dear))
    narrow = leaf(1, (64, 8), float32)
    cheap = schedule([linear.matmul(b.alu(ops.MAX, x, 0.0), narrow)], {}, Target("t", "cpu"))
    assert kernels(cheap) == 1


def test_the_vector_of_a_product_is_computed_once() -> None:
    """A layer norm before a matrix by vector product is not computed for every row; its bias and
    activation are. Cheap operations on the vector hide behind the reading of the matrix."""
    inputs = Inputs()
    x, weight, bias = inputs.new(1, 64), inputs.new(64), inputs.new(64)
    matrix, after = inputs.new(256, 64), inputs.new(256)
    normed = normalization.layer_norm(x, (64,), weight, bias)
    plan = agree([GELU(neural.linear(normed, matrix, after))], inputs.arrays)
    assert kernels(plan) == 2
    assert any(reason.startswith("epilogue") for reason in reasons(plan))
    plan = agree([neural.linear(b.alu(ops.ADD, x, weight), matrix, after)], inputs.arrays)
    assert kernels(plan) == 1


def test_two_products_by_vectors_are_two_kernels() -> None:
    inputs = Inputs()
    x, first, second = inputs.new(64), inputs.new(128, 64), inputs.new(32, 128)
    hidden = b.alu(ops.MAX, linear.matmul(first, x), 0.0)
    assert kernels(agree([linear.matmul(second, hidden)], inputs.arrays)) == 2


def test_a_sum_weighted_by_what_its_own_rows_give_is_one_kernel() -> None:
    inputs = Inputs()
    assert (
        kernels(agree([reduction.sum_(neural.softmax(inputs.new(9, 8), 1), 0)], inputs.arrays)) == 1
    )


def test_much_work_does_not_lose_its_tasks_to_a_short_row() -> None:
    inputs = Inputs()
    x, short = inputs.new(1 << 17), inputs.new(8)
    plan = agree([b.alu(ops.MUL, x, reduction.mean(short, None))], inputs.arrays)
    assert kernels(plan) == 2


def test_half_operands_are_read_as_they_are() -> None:
    x, w = leaf(0, (64, 64), float16), leaf(1, (64, 64), float16)
    plan = schedule([linear.matmul(x, w)], {}, Target("t", "cpu"))
    assert kernels(plan) == 1


def test_a_sum_of_sums_is_one_sum() -> None:
    inputs = Inputs()
    x = inputs.new(4, 5, 6)
    inner = b.reduce("add", b.alu(ops.EXP, x), 2)
    plan = agree([b.reduce("add", inner, 1)], inputs.arrays)
    (call,) = plan.calls()
    (fold,) = [n for n in toposort(call.kernel) if n.op is ops.KREDUCE]
    assert len(fold.src) == 3


def test_gradients_of_a_convolution_hold_no_columns() -> None:
    inputs = Inputs()
    x, w = inputs.new(2, 3, 8, 8), inputs.new(4, 3, 3, 3)
    y = convolution.conv2d(x, w, padding=1)
    g = inputs.new(*y.shape)
    for wanted in ([x], [w], [x, w]):
        plan = agree(grad.gradients([y], [g], wanted), inputs.arrays)
        assert kernels(plan) == len(wanted)


def test_gradient_of_a_pool_without_overlap_has_no_windows() -> None:
    inputs = Inputs()
    x = inputs.new(2, 3, 8, 8)
    y = pools.max_pool2d(x, 2)
    g = inputs.new(*y.shape)
    plan = agree(grad.gradients([y], [g], [x]), inputs.arrays)
    assert kernels(plan) <= 3
    assert largest(plan) <= 2 * 3 * 8 * 8


def test_siblings_share_their_loads() -> None:
    inputs = Inputs()
    x = inputs.new(6, 8)
    roots = [b.reduce("add", x, 0), b.reduce("max", b.alu(ops.MUL, x, x), 0)]
    plan = agree(roots, inputs.arrays)
    assert kernels(plan) == 1
    assert any(text.startswith("one kernel: ") for text in reasons(plan))
    roots = [b.alu(ops.EXP, x), b.alu(ops.TANH, x)]
    assert kernels(agree(roots, inputs.arrays)) == 1


def test_equal_layers_are_equal_kernels() -> None:
    inputs = Inputs()
    x = inputs.new(6, 8)
    for _ in range(5):
        x = b.alu(ops.TANH, b.alu(ops.ADD, linear.matmul(x, inputs.new(8, 8)), inputs.new(8)))
    plan = agree([x], inputs.arrays)
    assert (kernels(plan), distinct(plan)) == (5, 1)


def test_heads_leave_no_quotient_in_an_index() -> None:
    inputs = Inputs()
    x, w = inputs.new(2, 3, 5, 4), inputs.new(12, 12)
    rows = b.reshape(b.permute(x, (0, 2, 1, 3)), (2, 5, 12))
    plan = agree([rows, linear.matmul(rows, w)], inputs.arrays)
    for call in plan.calls():
        assert not [n for n in toposort(call.kernel) if n.op in (ops.IFLOOR, ops.IMOD)]


def test_a_gathered_value_is_stored_and_a_leaf_is_not() -> None:
    inputs = Inputs()
    table, ids = inputs.new(9, 4), inputs.new(5, dtype=int64, high=9)
    assert kernels(agree([embeddings.embedding(ids, table)], inputs.arrays)) == 1
    plan = agree([embeddings.embedding(ids, b.alu(ops.EXP, table))], inputs.arrays)
    assert kernels(plan) == 2
    call = list(plan.calls())[-1]
    assert [check.op for check in call.checks] == [ops.GATHER] and call.may_fail


def test_an_index_is_checked_even_along_an_axis_of_one_element() -> None:
    inputs = Inputs()
    x, ids = inputs.new(), inputs.given(np.array([[0, 1, 0]]), int64)
    base = inputs.new(1, 3)
    row = b.reshape(x, (1, 1))
    for root in (b.gather(row, ids, 1), b.scatter(base, ids, b.expand(row, (1, 3)), 0)):
        plan = schedule([root], {}, Target("t", "cpu"))
        with pytest.raises(IndexError, match="index 1 is out of range for size 1"):
            run(plan, inputs.arrays)
        inputs.arrays[1] = np.array([[0, 0, 0]])
        agree([root], inputs.arrays)
        inputs.arrays[1] = np.array([[0, 1, 0]])


def test_a_pair_reduction_over_one_element() -> None:
    inputs = Inputs()
    x = inputs.new(3, 1)
    place = b.reduce("argmax", (x, b.expand(b.iota(1, int64), (3, 1))), 1)[1]
    (call,) = agree([place], inputs.arrays).calls()
    assert call.reads == frozenset()


def test_kernels_keep_the_law() -> None:
    inputs = Inputs()
    x, w, t = inputs.new(6, 8), inputs.new(8, 5), inputs.new(6, dtype=int64, high=5)
    y = neural.softmax(GELU(linear.matmul(x, w)))
    loss = losses.cross_entropy(y, t)
    plan = agree([loss, *grad.gradients([loss], [b.ones_like(loss)], [x, w])], inputs.arrays)
    for call in plan.calls():
        verify([call.kernel], "kernel")
        used = {n.arg[0] for n in toposort(call.kernel) if n.op is ops.ARG}
        assert used == set(range(len(call.buffers)))


def test_empty_values_take_no_kernel() -> None:
    inputs = Inputs()
    x, y = inputs.new(0, 4), inputs.new(3, 4)
    assert kernels(agree([b.alu(ops.ADD, x, 1.0)], inputs.arrays)) == 0
    padded = b.pad(x, ((1, 2), (0, 0)))
    assert kernels(agree([b.alu(ops.ADD, padded, y)], inputs.arrays)) == 1
    assert kernels(agree([b.reduce("add", b.alu(ops.EXP, x), 0)], inputs.arrays)) == 1


def test_scalars_and_variables() -> None:
    inputs = Inputs()
    x = inputs.new(3, 4)
    rate = Node(ops.SCALAR, float64, (), 1)
    other = Node(ops.SCALAR, float64, (), 0)
    y = b.alu(ops.ADD, b.alu(ops.MUL, x, rate), other)
    plan = agree([y], inputs.arrays, scalars=[0.5, 3.0])
    (call,) = plan.calls()
    assert call.scalars == (rate, other)
    T = index.variable("T", 1, 16)
    count = b.alu(ops.MUL, b.dim_value(T, float64), x)
    assert kernels(agree([count], inputs.arrays, variables={"T": 7})) == 1


def test_a_copy_between_devices_is_a_kernel_of_its_own() -> None:
    x = leaf(0, (3, 4), float64, "A")
    moved = Node(ops.COPY, float64, (b.alu(ops.EXP, x),), "B")
    plan = schedule([b.alu(ops.NEG, moved)], {}, Target("t", "cpu"))
    assert [call.device for call in plan.calls()] == ["A", "B", "B"]
    assert [plan.buffers[buffer].device for buffer in range(4)] == ["A", "B", "A", "B"]


def test_contiguous_is_stored() -> None:
    inputs = Inputs()
    x = inputs.new(3, 4)
    stored = b.contiguous(b.permute(x, (1, 0)))
    assert kernels(agree([b.alu(ops.NEG, stored)], inputs.arrays)) == 2
    assert elementwise.neg(x) is b.alu(ops.NEG, x)
