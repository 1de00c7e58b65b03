"""Reductions over small windows are written out, with lanes along their results; lanes that are a
few elements apart are read as whole vectors."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernels import CPU, buffer, check, load, ranges, reduce, sink, store

from treadle.ir import index, ops
from treadle.ir.node import Node
from treadle.kernel.actions import Split, vector
from treadle.kernel.build import build
from treadle.kernel.heuristic import heuristic
from treadle.kernel.schedule_text import show_actions

SHUFFLES = replace(CPU, intrinsics=frozenset({"shuffle"}))


def depthwise(
    batch: int, channels: int, rows: int, columns: int, width: int, pad: int, stride: int
) -> Node:
    """out[i, c, y, x] = sum over u, v of image[i, c, y*stride + u - pad, ..] * weight[c, u, v]"""
    heights, widths = ((n + 2 * pad - width) // stride + 1 for n in (rows, columns))
    i, c, y, x, u, v = ranges(batch, channels, heights, widths, width, width)
    row = index.add(index.mul(y, stride), u, -pad)
    column = index.add(index.mul(x, stride), v, -pad)
    inside = index.both(
        index.le(0, row), index.lt(row, rows), index.le(0, column), index.lt(column, columns)
    )
    guard = None if inside is index.TRUE else inside
    image = load(buffer(1, batch, channels, rows, columns), i, c, row, column, guard=guard)
    over = [r for r in (u, v) if r.op is ops.RANGE]
    total = reduce("add", ops.MUL(image, load(buffer(2, channels, width, width), c, u, v)), *over)
    return sink(store(buffer(0, batch, channels, heights, widths), total, i, c, y, x))


def greatest_of_three(length: int, stride: int) -> Node:
    """A maximum over windows of one long row."""
    x, u = ranges((length - 3) // stride + 1, 3)
    value = load(buffer(1, length), index.add(index.mul(x, stride), u))
    return sink(store(buffer(0, (length - 3) // stride + 1), reduce("max", value, u), x))


def chosen(root: Node) -> list[str]:
    return show_actions(heuristic(build(root, SHUFFLES), SHUFFLES)).splitlines()


def test_a_depthwise_convolution_has_rows_in_lanes_and_its_window_written_out() -> None:
    actions = chosen(depthwise(2, 8, 56, 56, 3, 1, 1))
    assert "split l: lo | lv(8)" in actions  # 7 * 8 == 56: no lane is wasted
    assert "unroll m, n, ku" in actions
    assert "stage arg1 at j as patch" in actions


def test_without_a_border_nothing_is_copied() -> None:
    assert not any(line.startswith("stage") for line in chosen(depthwise(2, 8, 56, 56, 3, 0, 1)))


def test_a_written_out_window_asks_for_nothing_and_reads_no_lane_alone() -> None:
    root = depthwise(1, 2, 16, 32, 3, 1, 2)
    actions = heuristic(build(root, SHUFFLES), SHUFFLES)
    done = check(root, actions, target=SHUFFLES)
    last = max(n for n, node in enumerate(done.functions[0].body) if node.op is ops.FMA)
    first = min(n for n, node in enumerate(done.functions[0].body) if node.op is ops.FMA)
    inside = done.functions[0].body[first:last]
    assert not any(node.op in (ops.PACK, ops.LANE, ops.IF) for node in inside)
    assert not any(node.op is ops.READ and len(node.src) > 2 for node in inside)


def test_one_long_row_is_cut_in_tasks() -> None:
    actions = chosen(greatest_of_three(100_000, 1))
    assert "grid ig" in actions and "unroll j" in actions


@pytest.mark.parametrize("step", [2, 3, 4])
@pytest.mark.parametrize("size", [5, 16, 37])
def test_lanes_apart_are_read_as_vectors_that_end_with_the_last(step: int, size: int) -> None:
    """The buffer ends with the last element that counts: reading past it would raise."""
    (i,) = ranges(size)
    length = step * (size - 1) + 1
    root = sink(store(buffer(0, size), load(buffer(1, length), index.mul(i, step)), i))
    done = check(root, [Split("i", "io", (("iv", 8),)), vector("iv")], target=SHUFFLES)
    assert done.count(ops.PACK) == 0
    reads = done.count(ops.READ)
    assert reads == step * ((size >= 8) + (size % 8 > 0))


@settings(deadline=None, max_examples=20)
@given(
    st.integers(1, 2), st.integers(1, 3), st.integers(3, 12), st.integers(3, 40),
    st.integers(1, 3), st.integers(0, 1), st.integers(1, 3),
)  # fmt: skip
def test_windows_mean_the_same(
    batch: int, channels: int, rows: int, columns: int, width: int, pad: int, stride: int
) -> None:
    root = depthwise(batch, channels, rows, columns, width, pad, stride)
    check(root, heuristic(build(root, SHUFFLES), SHUFFLES), target=SHUFFLES)


@settings(deadline=None, max_examples=10)
@given(st.integers(3, 300), st.integers(1, 5))
def test_windows_of_a_row_mean_the_same(length: int, stride: int) -> None:
    root = greatest_of_three(length, stride)
    check(root, heuristic(build(root, SHUFFLES), SHUFFLES), target=SHUFFLES)


@pytest.mark.parametrize("lanes", [2, 4, 8])
@pytest.mark.parametrize("step", [2, 3, 4])
def test_few_lanes_far_apart_stay_inside_the_buffer(lanes: int, step: int) -> None:
    """The last element that is read is the last of the buffer."""
    (i,) = ranges(lanes)
    value = load(buffer(1, step * (lanes - 1) + 1), index.mul(i, step))
    check(sink(store(buffer(0, lanes), value, i)), [vector("i")], target=SHUFFLES)
