"""Sums of which only every n-th term counts go over those terms alone."""

from dataclasses import replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from kernels import CPU, buffer, check, load, ranges, reduce, sink, store

from treadle.ir import index, ops
from treadle.ir.node import Node
from treadle.kernel.actions import apply
from treadle.kernel.build import build
from treadle.kernel.heuristic import heuristic
from treadle.kernel.kernel import ScheduleError
from treadle.kernel.schedule_text import parse_actions, show_actions
from treadle.kernel.sieve import Sieve, sieves

SHUFFLES = replace(CPU, intrinsics=frozenset({"shuffle"}))


def adjoint(
    channels: int, size: int, outputs: int, width: int, pad: int, stride: int, length: int
) -> Node:
    """out[o, k] = sum over c, u of y[c, (k + pad - u) / stride] * weight[c, o, u], where the
    division is exact and the place exists: the gradient of a strided convolution by its input."""
    o, k, c, u = ranges(outputs, length, channels, width)
    reached = index.add(k, pad, index.mul(u, -1))
    place = index.floordiv(reached, stride)
    guard = index.both(
        index.le(0, reached),
        index.lt(place, size),
        index.eq(index.mod(reached, stride), 0),
    )
    y = load(buffer(1, channels, size), c, place, guard=guard)
    weight = load(buffer(2, channels, outputs, width), c, o, u, guard=guard)
    total = reduce("add", ops.MUL(y, weight), *(r for r in (c, u) if r.op is ops.RANGE))
    return sink(store(buffer(0, outputs, length), total, o, k))


def test_a_sieve_visits_the_terms_that_count() -> None:
    kernel = build(adjoint(4, 8, 5, 3, 1, 2, 16), CPU)
    assert sieves(kernel) == [Sieve("l", "j")]
    sieved = apply(kernel, [Sieve("l", "j")])
    terms = sieved.leaves["lq"].extent
    remainder = sieved.leaves["jr"].node
    # k + 1 - u is even: u = 1 for even k, u = 0 and 2 for odd k
    counts = [index.substitute(index.as_node(terms), {remainder: n}) for n in (0, 1)]
    assert [index.as_int(count) for count in counts] == [1, 2]


def test_the_heuristic_sieves_and_makes_a_tile_of_it() -> None:
    root = adjoint(16, 14, 32, 3, 1, 2, 28)
    actions = heuristic(build(root, SHUFFLES), SHUFFLES)
    text = show_actions(actions)
    assert "sieve l by j" in text.splitlines()
    assert any(line.startswith("vector") for line in text.splitlines())
    assert parse_actions(text) == actions
    check(root, actions, target=SHUFFLES)


def test_what_is_no_sieve_says_so() -> None:
    kernel = build(adjoint(4, 8, 5, 3, 1, 2, 16), CPU)
    with pytest.raises(ScheduleError, match="chooses from k"):
        Sieve("k", "j")(kernel)
    with pytest.raises(ScheduleError, match="not summed"):
        Sieve("i", "j")(kernel)
    with pytest.raises(ScheduleError, match="2 does not divide"):
        Sieve("l", "j")(build(adjoint(4, 8, 5, 3, 1, 2, 15), CPU))


@settings(deadline=None, max_examples=12)
@given(
    st.integers(1, 5), st.integers(1, 9), st.integers(1, 20), st.integers(1, 5),
    st.integers(0, 3), st.integers(2, 3), st.integers(0, 2),
)  # fmt: skip
@example(1, 1, 2, 4, 1, 2, 2)  # trimmed after it was staged
@example(1, 1, 2, 4, 2, 2, 2)  # trimmed, and not staged
def test_sieved_sums_mean_the_same(
    channels: int, size: int, outputs: int, width: int, pad: int, stride: int, more: int
) -> None:
    root = adjoint(channels, size, outputs, width, pad, stride, size * stride + more)
    kernel = build(root, SHUFFLES)
    for sieve in sieves(kernel):
        if not (size * stride + more) % stride:
            check(root, [sieve], target=SHUFFLES)
    check(root, heuristic(kernel, SHUFFLES), target=SHUFFLES)
