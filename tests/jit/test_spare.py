"""Leaves of results that nobody holds are used again; what anybody can still see is not."""

from __future__ import annotations

import numpy as np
import pytest

from treadle import Tensor, jit
from treadle.engine.storage import memory

START = np.arange(4, dtype=np.float32)


@pytest.fixture
def double():
    return jit(lambda x: x * 2)


def slot(x):
    return x.node.arg[0]


def test_dropped_results_make_no_leaves(double):
    x = Tensor(START)
    result = double(x)
    seen = set()
    for _ in range(20):
        result = double(x)
        seen.add(slot(result))
    assert len(seen) == 2  # the one that `result` holds while the next is made, and the other
    np.testing.assert_array_equal(result.numpy(), START * 2)


def test_results_that_are_held_keep_their_values(double):
    held = [double(Tensor(START + n)) for n in range(10)]
    assert len({slot(x) for x in held}) == 10
    for n, x in enumerate(held):
        np.testing.assert_array_equal(x.numpy(), (START + n) * 2)


def test_a_result_as_the_next_input(double):
    x = Tensor(START)
    for _ in range(10):
        x = double(x)
    np.testing.assert_array_equal(x.numpy(), START * 2**10)


def test_what_a_graph_reads_stays(double):
    pending = [double(Tensor(START + n)) + 1 for n in range(6)]
    for n, x in enumerate(pending):
        np.testing.assert_array_equal(x.numpy(), (START + n) * 2 + 1)


def test_arrays_of_results_stay(double):
    arrays = [double(Tensor(START + n)).numpy() for n in range(6)]
    for n, array in enumerate(arrays):
        np.testing.assert_array_equal(array, (START + n) * 2)


def test_memory_that_has_left_the_library_is_not_used_again(double):
    x = double(Tensor(START))
    buffer = memory[x.node]
    buffer.lent = True
    lent = buffer.memory[:16].view(np.float32)
    del x, buffer
    for n in range(1, 5):
        double(Tensor(START + n))
    np.testing.assert_array_equal(lent, START * 2)


def test_what_another_captured_function_has_made_something_of(double):
    weight = double(Tensor(np.full((4,), 1.0, np.float32)))
    holder = {"weight": weight}

    @jit
    def use(x):
        return x + (holder["weight"] * holder["weight"]).sum()

    del weight
    x = Tensor(START)
    for n in range(1, 9):
        holder["weight"] = double(Tensor(np.full((4,), float(n), np.float32)))
        for _ in range(3):
            found = use(x)
        np.testing.assert_array_equal(found.numpy(), START + 4 * (2 * n) ** 2)


def test_gradients_of_a_result_that_learns(double):
    for n in range(5):
        x = double(Tensor(START + n)).detach()
        x.requires_grad = True
        (x * x).sum().backward()
        np.testing.assert_array_equal(x.grad.numpy(), (START + n) * 4)


def test_results_end_with_the_function():
    function = jit(lambda x: x * 3)
    for _ in range(4):
        function(Tensor(START))
    spare = function.last.captured.plain[0][0]
    assert 0 < len(spare.leaves) <= 2
    large = jit(lambda x: x * 3)
    large(Tensor(np.zeros(1 << 20, np.float32)))
    assert large.last.captured.plain[0][0].leaves == []
