"""Contractions whose sum is cut: partial results of tasks, blocks that a cache holds."""

from dataclasses import replace

import pytest
from kernels import CPU, buffer, check, convolution, load, matmul, ranges, reduce, sink, store

from treadle.ir import index, ops
from treadle.ir.node import Node
from treadle.kernel import contraction, split_k
from treadle.kernel.actions import Reorder, Split, unroll, vector
from treadle.kernel.build import build
from treadle.kernel.heuristic import heuristic
from treadle.kernel.retile import Detach
from treadle.kernel.schedule_text import show_actions

SMALL = replace(CPU, cache_bytes=(1 << 10, 1 << 13, 1 << 20))


def filter_gradient(
    batch: int, outputs: int, channels: int, size: int, width: int, pad: int = 0
) -> Node:
    """out[o, c, u, v] = 2 * sum over n, y, x of g[n, o, y, x] image[n, c, y + u, x + v]."""
    side = size + width - 1 - 2 * pad
    o, c, u, v, n, y, x = ranges(outputs, channels, width, width, batch, size, size)
    row, column = index.add(y, u, -pad), index.add(x, v, -pad)
    inside = index.both(
        index.le(0, row), index.lt(row, side), index.le(0, column), index.lt(column, side)
    )
    guard = None if inside is index.TRUE else inside
    image = load(buffer(2, batch, channels, side, side), n, c, row, column, guard=guard)
    product = ops.MUL(load(buffer(1, batch, outputs, size, size), n, o, y, x), image)
    total = reduce("add", product, *(r for r in (n, y, x) if r.op is ops.RANGE))
    place = (o, c, u, v)
    return sink(store(buffer(0, outputs, channels, width, width), ops.ADD(total, total), *place))


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cuts short sums, too."""
    monkeypatch.setattr(contraction, "CUT_STEPS", 32)
    monkeypatch.setattr(contraction, "CUT_ROWS", 8)
    monkeypatch.setattr(split_k, "FEW_STEPS", 8)


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize(
    "shape, cut",
    [
        ((8, 16, 3, 6, 3), "split n: nb | ni(3)"),  # some rows of an image at a time
        ((1, 16, 4, 16, 2), "split n: ng | nb(1) | ni(1)"),  # those of the only image
        ((4, 16, 2, 8, 3, 1), "stage arg2 at nb as patch"),  # a border of zeros
        ((12, 16, 2, 5, 3, 1), "trim n"),  # rows of it are left out
        ((4, 4, 1, 12, 3), "split o: oo | ov(16)"),  # lanes along the sum
    ],
)
def test_the_gradient_of_a_filter_goes_through_memory_once(
    shape: tuple[int, ...], cut: str
) -> None:
    root = filter_gradient(*shape)
    actions = heuristic(build(root, SMALL), SMALL)
    text = show_actions(actions)
    assert " tasks " in text and "subtotal add0_tasks at" in text
    assert cut in text
    check(root, actions, target=SMALL)


def test_only_long_sums_with_few_results_are_cut() -> None:
    whole = filter_gradient(128, 32, 32, 20, 5)
    assert "cooperate mg tasks mt" in show_actions(heuristic(build(whole, CPU), CPU))
    for root in (
        filter_gradient(1, 32, 32, 20, 5),  # the second cache holds all of it
        filter_gradient(8, 512, 512, 14, 3),  # it does not hold the results
        convolution(8, 64, 56, 64, 3),  # nor these
        convolution(1, 512, 7, 512, 3, pad=1),  # packing would cost as much as the products
        convolution(1, 1024, 7, 512, 3, pad=1),
        convolution(8, 512, 7, 512, 3, pad=1),
        matmul(64, 512, 65536),  # the panels of one range are packed in blocks
    ):
        assert "cooperate" not in show_actions(heuristic(build(root, CPU), CPU))


def test_all_results_may_be_stored_by_loops_of_their_own() -> None:
    actions = [
        Split("j", "jo", (("jv", 4),)),
        vector("jv"),
        Detach("add0", "root", "t"),
        Reorder(("tj", "ti")),
        Split("ti", "tio", (("tiu", 2),)),
        unroll("tiu"),
    ]
    checked = check(matmul(6, 8, 5), actions)
    assert checked.kernel.scratch["t"].scope == "root"
