"""SCAN: a loop whose body is a schedule of its own."""

import numpy as np
import pytest
from running import Inputs, agree, kernels, run

from treadle.graph import build as b
from treadle.graph import linear, scan
from treadle.graph.loops import cond, while_loop
from treadle.ir import index, ops
from treadle.ir.dtype import bool_, int64
from treadle.ir.node import Node
from treadle.schedule.plan import FOREVER
from treadle.schedule.schedule import Call, Loop, Schedule


def _loop(plan: Schedule) -> Loop:
    (loop,) = [item for item in plan.items if isinstance(item, Loop)]
    return loop


@pytest.mark.parametrize("reverse", [False, True])
def test_a_recurrence(reverse: bool) -> None:
    inputs = Inputs()
    h, xs, w = inputs.new(3, 4), inputs.new(5, 3, 4), inputs.new(4, 4)

    def step(state: Node, x: Node) -> tuple[Node, Node]:
        new = b.alu(ops.TANH, b.alu(ops.ADD, linear.matmul(state, w), x))
        return new, new

    last, every = scan.scan(step, h, xs, reverse=reverse)
    plan = agree([last, every], inputs.arrays)
    loop = _loop(plan)
    # the matrix product reads all of the old state, so the new one is copied over it afterwards
    assert loop.trips == 5 and len(loop.body) == 2
    assert len(loop.body[0].writes) == 2
    assert kernels(agree([every], inputs.arrays)) == 3


def test_an_elementwise_recurrence_is_in_place() -> None:
    inputs = Inputs()
    h, xs = inputs.new(3, 4), inputs.new(5, 3, 4)
    last, every = scan.scan(
        lambda s, x: (b.alu(ops.ADD, b.alu(ops.MUL, s, 0.5), x), b.alu(ops.NEG, s)), h, xs
    )
    plan = agree([last, every], inputs.arrays)
    assert len(_loop(plan).body) == 1


def test_steps_do_not_count() -> None:
    plans = []
    for steps in (2, 1000):
        inputs = Inputs()
        h, xs = inputs.new(3), inputs.new(steps, 3)
        last, every = scan.scan(lambda s, x: (b.alu(ops.ADD, b.alu(ops.MUL, s, 0.5), x), s), h, xs)
        plans.append(agree([last, b.alu(ops.EXP, b.alu(ops.NEG, every))], inputs.arrays))
    assert kernels(plans[0]) == kernels(plans[1])
    assert [type(item) for item in plans[0].items] == [type(item) for item in plans[1].items]


def test_no_step_at_all() -> None:
    inputs = Inputs()
    h, xs = inputs.new(3), inputs.new(0, 3)
    last, every = scan.scan(lambda s, x: (b.alu(ops.ADD, s, x), s), h, xs)
    agree([last, every], inputs.arrays)


def test_carries_that_change_places() -> None:
    inputs = Inputs()
    h, xs = inputs.new(3), inputs.new(4, 3)
    (first, second), every = scan.scan(
        lambda s, x: ((s[1], b.alu(ops.ADD, s[0], x)), s[0]), (h, b.alu(ops.MUL, h, 2.0)), xs
    )
    agree([first, second, every], inputs.arrays)


def test_a_carry_that_stays() -> None:
    inputs = Inputs()
    h, xs = inputs.new(3), inputs.new(4, 3)
    (kept, total), _ = scan.scan(
        lambda s, x: ((s[0], b.alu(ops.ADD, s[1], b.alu(ops.MUL, s[0], x))), x), (h, h), xs
    )
    agree([kept, total], inputs.arrays)


def test_what_is_not_read_is_not_computed() -> None:
    inputs = Inputs()
    h, xs = inputs.new(3), inputs.new(4, 3)
    last, _ = scan.scan(lambda s, x: (b.alu(ops.ADD, s, x), b.alu(ops.EXP, s)), h, xs)
    plan = agree([last], inputs.arrays)
    assert len(_loop(plan).body) == 1
    (call,) = _loop(plan).body
    assert isinstance(call, Call) and len(call.writes) == 1


def test_inputs_through_movements_and_computed_ones() -> None:
    inputs = Inputs()
    h, xs, w = inputs.new(3), inputs.new(3, 4), inputs.new(3, 3)
    moved = b.permute(b.flip(xs, 1), (1, 0))
    last, every = scan.scan(
        lambda s, x: (b.alu(ops.ADD, linear.mv(b.permute(w, (1, 0)), s), x), s), h, moved
    )
    plan = agree([last, every], inputs.arrays)
    assert kernels(plan) == 4  # the movements are indices of the loads in the body
    row = b.alu(ops.EXP, b.shrink(w, ((0, 1), (0, 3))))
    last, every = scan.scan(
        lambda s, x: (b.alu(ops.ADD, s, b.alu(ops.MUL, x, row)), s),
        b.reshape(h, (1, 3)),
        b.reshape(b.alu(ops.EXP, xs), (4, 1, 3)),
    )
    agree([last, every], inputs.arrays)


def test_a_loop_in_a_loop() -> None:
    inputs = Inputs()
    h, xs, ys = inputs.new(3), inputs.new(4, 3), inputs.new(2, 3)

    def outer(state: Node, x: Node) -> tuple[Node, Node]:
        inner, rows = scan.scan(
            lambda s, y: (b.alu(ops.ADD, b.alu(ops.MUL, s, 0.5), b.alu(ops.MUL, x, y)), s),
            state,
            ys,
        )
        return inner, b.reduce("add", rows, 0)

    last, every = scan.scan(outer, h, xs)
    plan = agree([last, every], inputs.arrays)
    inner = [item for item in _loop(plan).body if isinstance(item, Loop)]
    assert len(inner) == 1 and inner[0].counter is not _loop(plan).counter


def test_two_loops_and_what_lies_between() -> None:
    inputs = Inputs()
    h, xs = inputs.new(3), inputs.new(6, 3)
    first, rows = scan.scan(lambda s, x: (b.alu(ops.ADD, s, x), s), h, xs)
    scaled = b.alu(ops.MUL, rows, 0.5)
    second, more = scan.scan(lambda s, x: (b.alu(ops.MAX, s, x), s), first, scaled)
    plan = agree([second, more, rows], inputs.arrays)
    assert len([item for item in plan.items if isinstance(item, Loop)]) == 2


def test_a_symbolic_number_of_steps() -> None:
    inputs = Inputs()
    T = index.variable("T", 1, 9)
    h = inputs.new(3)
    for steps in (1, 5, 9):
        inputs.arrays = inputs.arrays[:1]
        inputs.new(steps, 3)
        xs = Node(ops.BUFFER, h.dtype, (), (1, (T, 3), "CPU"))
        last, every = scan.scan(lambda s, x: (b.alu(ops.ADD, b.alu(ops.MUL, s, 0.5), x), s), h, xs)
        plan = agree([last, every], inputs.arrays, variables={"T": steps})
        assert _loop(plan).trips is T


def test_assigned_carries() -> None:
    inputs = Inputs()
    h, xs = inputs.new(3), inputs.new(4, 3)
    last, _ = scan.scan(lambda s, x: (b.alu(ops.ADD, s, x), s), h, xs)
    plan = agree([last], inputs.arrays, {0: 0})
    memory = run(plan, inputs.arrays)
    assert memory[plan.outputs[0]].shape == (3,)


@pytest.mark.parametrize("which", range(4))
def test_what_an_inner_loop_ends_with_goes_wherever_it_is_wanted(which: int) -> None:
    """As a carry, as a result of the step, as both; and so do its stacked results."""
    inputs = Inputs()
    h, xs, ys = inputs.new(3), inputs.new(4, 3), inputs.new(2, 3)

    def outer(state: Node, x: Node) -> tuple[Node, tuple[Node, ...]]:
        last, rows = scan.scan(
            lambda s, y: (b.alu(ops.ADD, b.alu(ops.MUL, s, 0.5), b.alu(ops.MUL, x, y)), s),
            state,
            ys,
        )
        moved = b.alu(ops.ADD, state, x)
        return [(last, (last,)), (moved, (last,)), (last, (rows,)), (moved, (last, rows, last))][
            which
        ]

    last, every = scan.scan(outer, h, xs)
    agree([last, *every], inputs.arrays)


def _less(x: object, y: object) -> Node:
    return b.alu(ops.LT, x, y)


@pytest.mark.parametrize("most", [0, 1, 7])
def test_a_while_loop(most: int) -> None:
    """A scalar loop is one kernel a trip: the new carry and what is tested next."""
    inputs = Inputs()
    x, n = inputs.new(), inputs.given(np.array(most), int64)
    count, _ = while_loop(
        lambda s: _less(s[0], n),
        lambda s: (b.alu(ops.ADD, s[0], 1), b.alu(ops.MUL, s[1], b.cast(s[0], x.dtype))),
        (b.const(0, int64), x),
    )
    loop = _loop(agree([count, _], inputs.arrays))
    assert loop.trips == FOREVER and loop.test is not None and loop.test[1] is True
    assert len({call.phase for call in loop.body if isinstance(call, Call)}) <= 2


def test_a_while_loop_over_a_matrix_product() -> None:
    inputs = Inputs()
    h, w = inputs.new(4), inputs.new(4, 4)

    def square(x: Node) -> Node:
        return b.reduce("add", b.alu(ops.MUL, x, x))

    count, last = while_loop(
        lambda s: b.alu(ops.AND, _less(s[0], 50), _less(square(s[1]), 1e9)),
        lambda s: (b.alu(ops.ADD, s[0], 1), linear.mv(w, s[1])),
        (b.const(0, int64), h),
    )
    agree([count, b.alu(ops.NEG, last)], inputs.arrays)


@pytest.mark.parametrize("way", [True, False])
def test_a_branch_is_a_loop_of_one_trip(way: bool) -> None:
    inputs = Inputs()
    x, test, w = inputs.new(5), inputs.given(np.array(way), bool_), inputs.new(5, 5)
    result = cond(
        test,
        lambda y: (linear.mv(w, y), y, y),
        lambda y: (b.alu(ops.MUL, y, 2.0), y, b.alu(ops.ADD, y, 1.0)),
        x,
    )
    plan = agree(list(result), inputs.arrays)
    loops = [item for item in plan.items if isinstance(item, Loop)]
    assert [(loop.trips, loop.test and loop.test[1]) for loop in loops] == [(1, True), (1, False)]
    # what nobody reads is not computed
    assert kernels(agree([result[0]], inputs.arrays)) == 3


@pytest.mark.parametrize("limit", [3.0, -1e9])
def test_loops_and_branches_in_each_other(limit: float) -> None:
    inputs = Inputs()
    x, tests = inputs.new(5), inputs.given(np.array([True, False, True]), bool_)

    def grown(carry: Node) -> Node:
        return while_loop(
            lambda z: _less(b.reduce("max", z), limit), lambda z: b.alu(ops.ADD, z, 1.0), carry
        )

    def step(carry: Node, test: Node) -> tuple[Node, tuple[Node, Node]]:
        new = cond(test, lambda: grown(carry), lambda: b.alu(ops.MUL, carry, 3.0))
        return new, (new, carry)

    last, every = scan.scan(step, x, tests)
    agree([last, *every], inputs.arrays)

    def outer(s: tuple[Node, Node]) -> tuple[Node, Node]:
        moved, _ = scan.scan(lambda c, _: (b.alu(ops.ADD, c, 0.25), None), s[1], length=3)
        return b.alu(ops.ADD, s[0], 1), cond(_less(s[0], 2), lambda: moved, lambda: grown(s[1]))

    agree(list(while_loop(lambda s: _less(s[0], 4), outer, (b.const(0, int64), x))), inputs.arrays)


def test_what_may_not_end_comes_before_stores_in_place() -> None:
    """The caller's values are whole when a loop without end is given up."""
    inputs = Inputs()
    x, y = inputs.new(3), inputs.new(3)
    last = while_loop(lambda s: _less(b.reduce("max", s), 9.0), lambda s: b.alu(ops.ADD, s, 1.0), y)
    plan = agree([b.alu(ops.ADD, x, 1.0), last], inputs.arrays, {0: 0})
    assert plan.in_place == {0}
    assert isinstance(plan.items[-1], Call) and plan.items[-1].in_place
