"""Attention as one kernel: loops of their own for a statement, loops that end at the diagonal,
panels in blocks, and the list that the heuristic makes of them.
"""

import math

import numpy as np
import pytest
from kernels import CPU, buffer, check, load, matmul, number, ranges, reduce, sink, softmax, store

from treadle.ir import ops
from treadle.ir.dtype import bool_, float32, int64
from treadle.ir.node import Node
from treadle.kernel.actions import Split, apply, grid, unroll, vector
from treadle.kernel.bound import Bound
from treadle.kernel.build import build
from treadle.kernel.heuristic import heuristic
from treadle.kernel.kernel import ScheduleError
from treadle.kernel.layout import layouts
from treadle.kernel.retile import Fission
from treadle.kernel.schedule_text import parse_actions, show_actions
from treadle.kernel.stage import Keep, Stage


def at_most(a: Node, b: Node) -> Node:
    return Node(ops.LE, bool_, (ops.CAST(a, dtype=int64), ops.CAST(b, dtype=int64)))


def attention(
    heads: int, queries: int, keys: int, size: int, out: int, causal: bool = True
) -> Node:
    h, i, k, n, m = ranges(heads, queries, keys, out, size)
    query, key = buffer(1, heads, queries, size), buffer(2, heads, keys, size)
    scores = reduce("add", ops.MUL(load(query, h, i, m), load(key, h, k, m)), m)
    if causal:
        scores = ops.WHERE(at_most(k, i), scores, number(-math.inf), dtype=float32)
    powers = ops.EXP(ops.SUB(scores, reduce("max", scores, k)))
    total = reduce("add", ops.MUL(powers, load(buffer(3, heads, keys, out), h, k, n)), k)
    result = ops.DIV(total, reduce("add", powers, k))
    return sink(store(buffer(0, heads, queries, out), result, h, i, n))


def test_fission_runs_a_statement_for_the_whole_block_first() -> None:
    actions = [Split("j", "jo", (("jb", 4),)), Fission("add0", "jo", "s")]
    checked = check(attention(2, 12, 9, 5, 6), actions)
    (scores,) = [s for s in checked.kernel.statements if s.name == "add0"]
    assert scores.order == ("i", "jo", "sj", "sk", "m")
    assert layouts(checked.kernel)["add0"].size == 4 * 9  # the scores of one block


@pytest.mark.parametrize("block", [4, 5, 8, 12])
def test_fission_of_a_block_that_does_not_divide(block: int) -> None:
    actions = [
        Keep("add3", "row"),
        Split("j", "jo", (("jb", block),)),
        Fission("add0", "jo", "s"),
        Fission("add2", "jo", "t"),
        Split("tj", "tjo", (("tju", 2),)),
        unroll("tju"),
        grid("i", "jo"),
    ]
    check(attention(2, 12, 9, 5, 6), actions)


@pytest.mark.parametrize(
    ("action", "says"),
    [
        (Fission("add2", "j", "m"), "shares no loop inside j"),
        (Fission("add0", "k", "s"), "max1 reads add0 before it is computed|shares no loop"),
        (Fission("nothing", "j", "s"), "no statement is called"),
        (Bound("k3", "j", 4), "every point of k3 counts"),
        (Bound("k", "j", 4), "has no bound of its own"),
        (Bound("k2", "j", 0), "at least 1"),
        (Bound("j", "i", 4), "every point|stores every point|no bound of its own"),
    ],
)
def test_what_does_not_apply_says_why(action: Fission | Bound, says: str) -> None:
    with pytest.raises(ScheduleError, match=says):
        action(build(attention(2, 12, 9, 5, 6, causal=False), CPU))


CAUSAL = """
keep add3 as row
split j: jo | jb(4)
fission add0 at jo as s
fission add2 at jo as t
bound k3 at jo in STEP
bound k2 at jo in STEP
bound k at jo in STEP
bound sk at jo in STEP
grid i, jo
"""


@pytest.mark.parametrize("step", [1, 4, 5, 8])
def test_loops_end_at_the_diagonal(step: int) -> None:
    actions = parse_actions(CAUSAL.replace("STEP", str(step)))
    assert parse_actions(show_actions(actions)) == actions
    checked = check(attention(2, 16, 16, 3, 5), actions)
    (end,) = {
        checked.kernel.leaves[name].extent for name in ("k", "k2", "k3", "sk")
    }  # the same for what writes the scores and what reads them
    assert isinstance(end, Node)
    check(attention(2, 16, 11, 3, 5), actions)  # more queries than keys
    check(attention(2, 7, 16, 3, 5), actions)  # a block that does not divide, and unread keys


def test_what_is_read_elsewhere_is_not_bounded_before_its_reader() -> None:
    lines = CAUSAL.replace("STEP", "4").splitlines()
    early = [line for line in lines if not line.startswith(("bound k3", "bound k at"))]
    with pytest.raises(ScheduleError, match="has no bound of its own: bound it first"):
        apply(build(attention(2, 16, 16, 3, 5), CPU), parse_actions("\n".join(early)))


def test_a_row_that_keeps_what_is_masked_has_no_bound() -> None:
    i, j = ranges(8, 8)
    x = load(buffer(1, 8, 8), i, j)
    masked = ops.WHERE(
        at_most(j, i), x, number(1.0), dtype=float32
    )  # 1 is not the identity of a sum
    kernel = build(sink(store(buffer(0, 8), reduce("add", masked, j), i)), CPU)
    with pytest.raises(ScheduleError, match="every point of j counts"):
        Bound("j", "i", 4)(kernel)


def test_a_masked_sum_ends_early_and_is_the_same() -> None:
    i, j = ranges(8, 8)
    x = load(buffer(1, 8, 8), i, j)
    masked = ops.WHERE(at_most(j, i), x, number(0.0), dtype=float32)
    root = sink(store(buffer(0, 8), reduce("add", masked, j), i))
    checked = check(root, [Bound("j", "i", 1)])
    loops = checked.count(ops.LOOP)
    assert loops == 2 and isinstance(checked.kernel.leaves["j"].extent, Node)


def test_a_panel_in_blocks() -> None:
    actions = [
        Split("j", "jo", (("ju", 2), ("jv", 4))),
        unroll("ju"),
        vector("jv"),
        Stage("arg2", "root", "panel", "root", layout=(1, 0), block=8),
    ]
    checked = check(matmul(5, 24, 7, right=True), actions)
    assert layouts(checked.kernel)["panel"].size == 24 * 7
    ragged = check(matmul(5, 21, 7, right=True), actions)
    assert layouts(ragged.kernel)["panel"].size == 24 * 7
    text = show_actions(actions)
    assert "layout 1,0 block 8" in text and parse_actions(text) == actions
    own = [*actions[:3], Stage("arg2", "i", "panel", layout=(1, 0), block=8)]
    check(matmul(5, 21, 7, right=True), own)  # each thread has its own
    with pytest.raises(ScheduleError, match="a block has a size of at least 1"):
        Stage("arg2", "i", "panel", layout=(1, 0), block=-8)(build(matmul(5, 24, 7), CPU))


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "sizes",
    [(2, 64, 64, 16, 32), (1, 40, 100, 17, 19), (3, 33, 16, 8, 80), (2, 128, 128, 8, 8)],
)
@pytest.mark.parametrize("causal", [True, False])
def test_the_heuristic_goes_block_by_block(
    sizes: tuple[int, int, int, int, int], causal: bool
) -> None:
    root = attention(*sizes, causal=causal)
    actions = heuristic(build(root, CPU), CPU)
    lines = show_actions(actions).splitlines()
    assert sum(line.startswith("fission") for line in lines) == 2
    # exponentials, and what a mask selects
    assert sum(line.startswith("keep") for line in lines) == (2 if causal else 1)
    assert sum(line.startswith("bound") for line in lines) == (4 if causal and sizes[2] > 64 else 0)
    check(root, actions)


def test_a_softmax_alone_is_no_chain() -> None:
    lines = show_actions(heuristic(build(softmax(64, 64), CPU), CPU)).splitlines()
    assert not any(line.startswith("fission") for line in lines)


def test_infinities_and_nan_inside_the_triangle_are_kept() -> None:
    root = attention(1, 32, 32, 4, 16)
    random = np.random.default_rng(1)
    query = random.standard_normal((1, 32, 4)).astype(np.float32)
    query[0, 3] = np.nan
    actions = heuristic(build(root, CPU), CPU)
    ran = check(root, actions, arrays={1: query}).arrays[0]
    assert np.isnan(ran[0, 3]).all() and not np.isnan(np.delete(ran[0], 3, 0)).any()
