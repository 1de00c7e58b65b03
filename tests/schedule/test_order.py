"""Launch order, phases, the arena, limits, and graphs that are deep or wide."""

from itertools import pairwise

import numpy as np
from running import Inputs, agree, distinct, kernels, leaf

from treadle import host
from treadle.backend.base import Target
from treadle.graph import build as b
from treadle.graph import linear, neural
from treadle.ir import ops
from treadle.ir.dtype import float32
from treadle.ir.node import toposort
from treadle.schedule import memory
from treadle.schedule.plan import BufferInfo, Call
from treadle.schedule.schedule import schedule

TARGET = Target("test", "cpu")


def test_independent_kernels_are_one_phase() -> None:
    inputs = Inputs()
    roots = [b.reduce("add", inputs.new(n + 2, 3), 0) for n in range(6)]
    plan = agree(roots, inputs.arrays)
    assert [call.phase for call in plan.calls()] == [0] * 6
    chained = b.reduce(
        "add", b.permute(linear.matmul(inputs.new(4, 4), inputs.new(4, 4)), (1, 0)), 0
    )
    assert kernels(agree([*roots, chained], inputs.arrays)) >= 7


def test_temporaries_share_memory_when_their_readers_are_done() -> None:
    inputs = Inputs()
    x = inputs.new(8, 8)
    for _ in range(12):
        x = linear.matmul(b.alu(ops.MUL, x, 0.1), inputs.new(8, 8))
    plan = agree([x], inputs.arrays)
    temporaries = [info for info in plan.buffers if info.role == "temporary"]
    assert len(temporaries) == 11
    assert plan.arena == 2 * 8 * 8 * 8
    assert all(info.offset % host.ALIGNMENT == 0 for info in temporaries)


def test_large_temporaries_begin_at_a_page() -> None:
    arena = memory._Arena()
    assert arena.allocate(0, 100) == 0
    assert arena.allocate(1, 1 << 20) == host.PAGE
    assert arena.allocate(2, 1000) == 128  # in what was left out
    arena.free(1)
    assert arena.allocate(3, 1 << 20) == host.PAGE
    assert arena.size == (1 << 20) + host.PAGE


def test_what_frees_memory_runs_early() -> None:
    inputs = Inputs()
    x = inputs.new(8, 64)
    products = [linear.matmul(b.permute(x, (1, 0)), inputs.new(8, 64)) for _ in range(6)]
    roots = [b.reduce("max", b.permute(linear.matmul(p, p), (1, 0)), (0, 1)) for p in products]
    plan = agree(roots, inputs.arrays)
    assert plan.arena <= 4 * 64 * 64 * 8  # not 12 of them


def test_the_arena_fills_gaps() -> None:
    sizes = {0: 100, 1: 1000, 2: 50, 3: 900, 4: 60}
    buffers = [BufferInfo(float32, (size,), "temporary") for size in sizes.values()]
    writes = [{0}, {1}, {2}, {3}, {4}]
    reads = [set(), {0}, {1}, {2}, {3}]
    sink = schedule([leaf(0, (2,), float32)], {}, TARGET).items[0].kernel  # type: ignore[union-attr]
    calls = [
        Call(sink, (), phase=n, reads=frozenset(r), writes=frozenset(w))
        for n, (r, w) in enumerate(zip(reads, writes))
    ]
    arena = memory.plan(calls, buffers)
    for call in calls:  # what is live in one phase does not overlap
        live = call.reads | call.writes
        spans = sorted((buffers[n].offset, buffers[n].offset + 4 * sizes[n]) for n in live)
        assert all(end <= start for (_, end), (start, _) in pairwise(spans))
    assert arena <= 64 * (-(-4000 // 64)) + 64 * (-(-3600 // 64))


def test_a_long_chain_is_cut_into_equal_kernels() -> None:
    x = leaf(0, (64,), float32)
    for _ in range(10_000):
        x = b.alu(ops.SIN, x)
    plan = schedule([x], {}, Target("t", "cpu", ops=500))
    assert (kernels(plan), distinct(plan)) == (20, 1)
    assert plan.arena == 2 * 64 * 4


def test_a_wide_sum_keeps_to_the_buffers_of_the_target() -> None:
    inputs = Inputs()
    leaves = [inputs.new(5) for _ in range(600)]
    total = leaves[0]
    for x in leaves[1:]:
        total = b.alu(ops.ADD, total, x)
    level = leaves
    while len(level) > 1:
        pairs = [b.alu(ops.ADD, x, y) for x, y in zip(level[::2], level[1::2])]
        level = pairs + level[len(pairs) * 2 :]
    for root in (total, level[0]):
        plan = agree([root], inputs.arrays, target=Target("t", "cpu", buffers=16))
        assert max(len(call.buffers) for call in plan.calls()) <= 16


def test_repeated_shifts_do_not_grow_without_end() -> None:
    inputs = Inputs()
    x = inputs.new(8)
    for _ in range(60):
        x = b.alu(ops.MUL, b.alu(ops.ADD, x, b.flip(x, 0)), 0.5)
    plan = agree([x], inputs.arrays)
    assert max(len(toposort(call.kernel)) for call in plan.calls()) < 400


def test_rows_of_rows_are_cut() -> None:
    inputs = Inputs()
    x = inputs.new(6, 8)
    for _ in range(30):
        x = neural.softmax(x)
    plan = agree([x], inputs.arrays)
    folds = [sum(n.op is ops.KREDUCE for n in toposort(call.kernel)) for call in plan.calls()]
    assert max(folds) <= 10


def test_five_thousand_independent_updates() -> None:
    roots = [b.alu(ops.ADD, leaf(n, (n % 50 + 2, 4), float32), 1.0) for n in range(5000)]
    plan = schedule(roots, {n: n for n in range(5000)}, TARGET)
    assert (kernels(plan), distinct(plan), plan.in_place) == (5000, 1, set(range(5000)))


def test_flat_kernels_share_a_body_by_size_class() -> None:
    shapes = [(4, 4), (3,), (2, 3, 4), (1 << 15,), (1 << 16,)]
    roots = [b.alu(ops.EXP, leaf(n, shape, float32)) for n, shape in enumerate(shapes)]
    plan = schedule(roots, {}, TARGET)
    assert distinct(plan) == 2
    lengths = [call.variables["#length"] for call in plan.calls()]
    assert sorted(lengths) == sorted(int(np.prod(shape)) for shape in shapes)
    alone = schedule(roots[:1], {}, TARGET)
    assert [call.variables for call in alone.calls()] == [{}]


def test_a_leaf_as_a_root_is_copied() -> None:
    inputs = Inputs()
    x = inputs.new(3, 4)
    plan = agree([x, b.reshape(x, (12,)), b.const(2.0, x.dtype, (2, 2))], inputs.arrays)
    assert len(set(plan.outputs)) == 3 and 0 not in plan.outputs


def test_a_slot_that_the_graph_no_longer_reads() -> None:
    x = leaf(2, (3,), float32)
    plan = schedule([b.alu(ops.NEG, x)], {}, TARGET)
    assert [info.role for info in plan.buffers] == ["input", "input", "input", "output"]
