"""SCAN: a loop whose body is a schedule of its own."""

import pytest
from running import Inputs, agree, kernels, run

from treadle.graph import build as b
from treadle.graph import linear, scan
from treadle.ir import index, ops
from treadle.ir.node import Node
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
