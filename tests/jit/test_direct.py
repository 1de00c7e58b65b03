"""The short way into a captured function gives what the long way gives."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest

from treadle import Tensor, events, jit, no_grad
from treadle.engine import direct


@contextmanager
def traces() -> Iterator[list[object]]:
    seen: list[object] = []
    with events.listen("trace", seen.append):
        yield seen


def row(*numbers: float) -> Tensor:
    return Tensor(np.array(numbers, np.float32)).realize()


def total() -> tuple[object, Tensor, Tensor]:
    """A captured sum that has the short way, and arguments that it knows."""
    add = jit(lambda x, y: x + y)
    x, y = row(1, 2), row(10, 20)
    for _ in range(3):
        assert add(x, y).tolist() == [11, 22]
    assert add.last.direct is not None
    return add, x, y


def test_what_was_written_to_an_argument_is_read() -> None:
    add, x, y = total()
    x.assign(row(5, 6))
    assert add(x, y).tolist() == [15, 26]
    x += 1
    assert add(x, y).tolist() == [16, 27]


def test_memory_that_others_see_and_memory_that_moved() -> None:
    add, x, y = total()
    shared = np.from_dlpack(x)
    assert add(x, y).tolist() == [11, 22]
    x.assign(row(7, 7)).realize()  # in memory of its own from now on
    assert add(x, y).tolist() == [17, 27]
    assert shared.tolist() == [1, 2]


def test_new_tensors_and_pending_ones() -> None:
    add, x, y = total()
    with traces() as seen:
        for number in range(direct.MOST_LEAVES + 3):
            assert add(row(number, 0), y).tolist() == [10 + number, 20]
        assert add(x * 2, y).tolist() == [12, 24]
        assert add(x, y).tolist() == [11, 22]
    assert not seen


def test_other_kinds_are_traced_apart() -> None:
    add, x, y = total()
    with traces() as seen:
        assert add(Tensor([1, 2]).realize(), y).tolist() == [11, 22]
        assert add(row(1), y).tolist() == [11, 21]
    assert len(seen) == 2
    assert add(x, y).tolist() == [11, 22]


def test_one_tensor_twice() -> None:
    add, x, _ = total()
    assert add(x, x).tolist() == [2, 4]


def test_a_gradient_flows_once_it_is_wanted() -> None:
    add, x, y = total()
    x.requires_grad = True
    add(x, y).sum().backward()
    assert x.grad is not None and x.grad.tolist() == [1, 1]
    assert add(x, y).requires_grad
    with no_grad():
        assert not add(x.detach(), y).requires_grad


def test_a_donated_argument_is_gone() -> None:
    double = jit(lambda x: x * 2, donate=0)
    for _ in range(3):
        x = row(1, 2)
        assert double(x).tolist() == [2, 4]
        with pytest.raises(RuntimeError, match="donated"):
            double(x)


def test_an_index_out_of_range_leaves_nothing_behind() -> None:
    pick = jit(lambda x, i: x[i])
    x, right, wrong = row(1, 2), Tensor([1]).realize(), Tensor([7]).realize()
    assert pick(x, right).tolist() == [2]
    for _ in range(2):
        with pytest.raises(IndexError, match="7"):
            pick(x, wrong)
        assert pick(x, right).tolist() == [2]


def test_a_method_knows_its_object() -> None:
    class Scale:
        def __init__(self, by: float) -> None:
            self.by = by

        @jit
        def __call__(self, x: Tensor) -> Tensor:
            return x * self.by

    two, three, x = Scale(2.0), Scale(3.0), row(1, 2)
    for _ in range(3):
        assert two(x).tolist() == [2, 4]
        assert three(x).tolist() == [3, 6]
