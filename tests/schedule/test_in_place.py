"""What is written over old memory: assigns, updates of a region, scatter."""

import numpy as np
from running import TARGET, Inputs, agree, distinct, kernels, leaf

from treadle.graph import build as b
from treadle.graph import embeddings, grad, linear, losses, neural, reduction
from treadle.ir import ops
from treadle.ir.dtype import float32, float64, int64
from treadle.ir.node import Node
from treadle.schedule.schedule import schedule


def test_one_after_the_other() -> None:
    inputs = Inputs()
    x, y = inputs.new(6, 8), inputs.new(6, 8)
    plan = agree([b.alu(ops.ADD, y, 1.0), b.alu(ops.ADD, x, 1.0)], inputs.arrays, {0: 0})
    assert plan.in_place == {0}
    # the reader of the old x comes first, or at the same element
    assert plan.outputs[0] == 0


def test_a_swap_takes_one_fresh_buffer() -> None:
    inputs = Inputs()
    x, y = inputs.new(6, 8), inputs.new(6, 8)
    plan = agree([b.alu(ops.ADD, y, 1.0), b.alu(ops.MUL, x, 2.0)], inputs.arrays, {0: 0, 1: 1})
    assert len(plan.in_place) == 1


def test_other_elements_are_still_needed() -> None:
    inputs = Inputs()
    x = inputs.new(6, 6)
    for root in (b.permute(x, (1, 0)), b.flip(x, 0), neural.softmax(x), linear.matmul(x, x)):
        assert agree([root], inputs.arrays, {0: 0}).in_place == set()


def test_assign_without_reading_the_old_value() -> None:
    inputs = Inputs()
    inputs.new(6, 8)
    y = inputs.new(6, 8)
    plan = agree([b.alu(ops.NEG, y)], inputs.arrays, {0: 0})
    assert plan.in_place == {0}


def test_a_leaf_assigned_to_another_is_copied() -> None:
    inputs = Inputs()
    inputs.new(6, 8)
    y = inputs.new(6, 8)
    plan = agree([y], inputs.arrays, {0: 0})
    assert plan.in_place == {0} and kernels(plan) == 1


def test_another_shape_is_fresh() -> None:
    inputs = Inputs()
    x = inputs.new(6, 8)
    assert agree([reduction.sum_(x, 0)], inputs.arrays, {0: 0}).in_place == set()


def test_a_region_is_written_and_nothing_else() -> None:
    inputs = Inputs()
    x, v = inputs.new(6, 8), inputs.new(2, 8)
    part = ((1, 2), (0, 1))
    plan = agree([b.update(x, v, part)], inputs.arrays, {0: 0})
    assert (kernels(plan), plan.in_place) == (1, {0})
    plan = agree([b.update(x, v, part)], inputs.arrays)
    assert kernels(plan) == 2
    twice = b.update(b.update(x, v, part), b.alu(ops.MUL, v, 2.0), ((2, 1), (0, 1)))
    plan = agree([twice], inputs.arrays, {0: 0})
    assert (kernels(plan), plan.in_place) == (2, {0})
    plan = agree([twice], inputs.arrays)
    assert kernels(plan) == 3


def test_a_region_that_reads_itself() -> None:
    inputs = Inputs()
    x = inputs.new(6, 8)
    own = b.alu(ops.ADD, b.shrink(x, ((1, 3), (0, 8))), 1.0)
    plan = agree([b.update(x, own, ((1, 1), (0, 1)))], inputs.arrays, {0: 0})
    assert (kernels(plan), plan.in_place) == (1, {0})
    moved = b.shrink(x, ((2, 4), (0, 8)))
    plan = agree([b.update(x, moved, ((0, 1), (0, 1)))], inputs.arrays, {0: 0})
    assert plan.in_place == set()
    overlapping = b.shrink(x, ((1, 3), (0, 8)))
    plan = agree([b.update(x, overlapping, ((0, 1), (0, 1)))], inputs.arrays, {0: 0})
    assert plan.in_place == set()


def test_updates_that_read_what_they_update_copy_nothing() -> None:
    inputs = Inputs()
    x = inputs.new(6, 8)
    y = b.alu(ops.EXP, x)
    for row in range(6):
        own = b.alu(ops.ADD, b.shrink(y, ((row, row + 1), (0, 8))), 1.0)
        y = b.update(y, own, ((row, 1), (0, 1)))
    assert kernels(agree([y], inputs.arrays)) == 7
    y = x
    for row in range(6):
        own = b.alu(ops.ADD, b.shrink(y, ((row, row + 1), (0, 8))), 1.0)
        y = b.update(y, own, ((row, 1), (0, 1)))
    plan = agree([y], inputs.arrays, {0: 0})
    assert (kernels(plan), plan.in_place, plan.arena) == (6, {0}, 0)
    # a value in between is asked for: it is copied once
    first = b.update(x, b.shrink(y, ((0, 1), (0, 8))), ((0, 1), (0, 1)))
    second = b.update(first, b.shrink(first, ((0, 1), (0, 8))), ((2, 1), (0, 1)))
    agree([first, second], inputs.arrays, {1: 0})
    agree([second, b.reduce("add", first, 0)], inputs.arrays)


def test_a_later_region_reads_what_an_earlier_one_overwrote() -> None:
    inputs = Inputs()
    x = inputs.new(1)
    first = b.alu(ops.TANH, x)
    plan = agree([b.update(first, x, ((0, 2),)), b.alu(ops.NEG, x)], inputs.arrays, {0: 0})
    assert plan.in_place == set()


def test_scatter_checks_before_it_writes() -> None:
    inputs = Inputs()
    x, v, ids = inputs.new(6, 8), inputs.new(3, 8), inputs.new(3, dtype=int64, high=6)
    where = b.expand(b.reshape(ids, (3, 1)), (3, 8))
    for monoid in ("set", "add", "max"):
        scattered = b.scatter(x, where, v, 0, monoid)
        # an index out of range must leave the old x as it was
        assert agree([scattered], inputs.arrays, {0: 0}).in_place == set()
        # unless a gather has tested the same indices before
        rows = b.gather(x, where, 0)
        plan = agree([rows, scattered], inputs.arrays, {1: 0})
        assert plan.in_place == {1} and kernels(plan) == 2
        assert [call.may_fail for call in plan.calls()] == [True, False]


def test_checked_kernels_come_before_what_is_overwritten() -> None:
    inputs = Inputs()
    table, ids, x = inputs.new(9, 4), inputs.new(5, dtype=int64, high=9), inputs.new(6, 8)
    roots = [b.alu(ops.ADD, x, 1.0), embeddings.embedding(ids, table)]
    plan = agree(roots, inputs.arrays, {0: 2})
    assert plan.in_place == {0}
    checked, overwriting = plan.calls()
    assert checked.may_fail and overwriting.in_place and checked.phase < overwriting.phase


def test_an_overwritten_value_that_a_check_needs_is_fresh() -> None:
    inputs = Inputs()
    x, ids = inputs.new(6, 8), inputs.new(3, dtype=int64, high=6)
    new = b.alu(ops.ADD, x, 1.0)
    plan = agree([new, embeddings.embedding(ids, new)], inputs.arrays, {0: 0})
    assert plan.in_place == set()


def _adam(inputs: Inputs, roots: list[Node], assigns: dict[int, int], p: Node, g: Node) -> None:
    m, v = inputs.new(*p.shape), inputs.given(abs(inputs.random.normal(size=p.shape)))
    rate = Node(ops.SCALAR, float64, (), 0)
    new_m = b.alu(ops.ADD, b.alu(ops.MUL, m, 0.9), b.alu(ops.MUL, g, 0.1))
    new_v = b.alu(ops.ADD, b.alu(ops.MUL, v, 0.99), b.alu(ops.MUL, b.alu(ops.MUL, g, g), 0.01))
    step = b.alu(ops.DIV, new_m, b.alu(ops.ADD, b.alu(ops.SQRT, new_v), 1e-3))
    for root, old in ((b.alu(ops.SUB, p, b.alu(ops.MUL, rate, step)), p), (new_m, m), (new_v, v)):
        assigns[len(roots)] = old.arg[0]
        roots.append(root)


def _shapes() -> list[tuple[int, ...]]:
    return [(n + 1, 3) if n % 3 else (n + 2,) if n % 2 else (2, n + 1, 2) for n in range(20)]


def test_adam_over_twenty_parameters_is_one_kernel_and_one_phase() -> None:
    inputs = Inputs()
    roots: list[Node] = []
    assigns: dict[int, int] = {}
    for shape in _shapes():
        _adam(inputs, roots, assigns, inputs.new(*shape), inputs.new(*shape))
    plan = agree(roots, inputs.arrays, assigns, scalars=[0.1])
    assert (kernels(plan), distinct(plan)) == (20, 1)
    assert {call.phase for call in plan.calls()} == {0}
    assert plan.in_place == set(range(60)) and plan.arena == 0
    assert sorted(call.variables["#length"] for call in plan.calls()) == sorted(
        p.size for p in inputs.arrays[::4]
    )


def test_a_made_up_optimizer_over_twenty_parameters() -> None:
    inputs = Inputs()
    roots: list[Node] = []
    assigns: dict[int, int] = {}
    for shape in _shapes():
        p, g, s, t = [inputs.new(*shape) for _ in range(4)]
        new_s = b.alu(ops.MAX, b.alu(ops.MUL, s, 0.5), b.alu(ops.ABS, g))
        new_t = b.alu(ops.TANH, b.alu(ops.SUB, t, g))
        new_p = b.alu(ops.SUB, p, b.alu(ops.MUL, g, 0.25))  # three states that share only g
        for root, old in ((new_p, p), (new_s, s), (new_t, t)):
            assigns[len(roots)] = old.arg[0]
            roots.append(root)
    plan = agree(roots, inputs.arrays, assigns)
    assert distinct(plan) <= 3 and {call.phase for call in plan.calls()} == {0}
    assert plan.in_place == set(range(60))


def test_the_optimizer_is_the_epilogue_of_a_gradient() -> None:
    inputs = Inputs()
    x, t = inputs.new(6, 8), inputs.new(6, dtype=int64, high=5)
    w, bias = inputs.new(8, 5), inputs.new(5)
    loss = losses.cross_entropy(b.alu(ops.ADD, linear.matmul(x, w), bias), t)
    roots, assigns = [loss], dict[int, int]()
    for p, g in zip((w, bias), grad.gradients([loss], [b.ones_like(loss)], [w, bias])):
        _adam(inputs, roots, assigns, p, g)
    plan = agree(roots, inputs.arrays, assigns, scalars=[0.1])
    assert plan.in_place == set(range(1, 7))
    updating = [call for call in plan.calls() if call.in_place]
    assert [len(call.writes) for call in updating] == [3, 3]


def test_a_part_of_an_array_is_not_its_memory() -> None:
    """A copy of the first columns reads where it writes, as a copy of the whole array does."""
    inputs = Inputs()
    x, v = inputs.new(10, 5), inputs.new(3, 2)
    rows = inputs.given(np.array([[0, 1], [1, 0], [2, 2]]), int64)
    once = b.update(x, b.scatter(b.shrink(x, ((0, 10), (0, 2))), rows, v, 0), ((0, 1), (0, 1)))
    part = b.scatter(b.shrink(once, ((0, 10), (0, 2))), rows, v, 0, "add")
    agree([b.update(once, part, ((0, 1), (0, 1)))], inputs.arrays)


def test_an_embedding_takes_no_memory_of_vocabulary_by_ids() -> None:
    table, ids = leaf(0, (50_257, 768), float32), leaf(1, (8_192,), int64)
    cotangent = leaf(2, (8_192, 768), float32)
    found = embeddings.embedding(ids, table)
    plan = schedule([found, *grad.gradients([found], [cotangent], [table])], {}, TARGET)
    assert plan.arena == 0
    assert sum(len(call.kernel.src) for call in plan.calls()) == 3  # gather; zeros, scatter
