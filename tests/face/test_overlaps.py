"""Writes whose right side overlaps what they write to: the right side is read first, as in NumPy. A
write into a part of a tensor that nobody holds would be lost, and raises."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import treadle
from treadle import Tensor, nn, no_grad

SQUARE = np.arange(9.0).reshape(3, 3)


def shifted(x: Any) -> None:
    x[1:] = x[:-1]


def shifted_back(x: Any) -> None:
    x[:-1] = x[1:]


def added_shifted(x: Any) -> None:
    x[1:] += x[:-1]


def added_transposed(x: Any) -> None:
    x += x.T


def transposed(x: Any) -> None:
    x[:] = x.T


def reversed_(x: Any) -> None:
    x[::-1] = x if isinstance(x, np.ndarray) else x[:]


def column_of_row(x: Any) -> None:
    x[:, 0] = x[0]


def rows_moved(x: Any) -> None:
    x[[0, 1, 2]] = x[[2, 0, 1]]


def by_mask(x: Any) -> None:
    x[x > 4] = x[x > 4] * 2 + x.sum()


def added_by_mask(x: Any) -> None:
    x[x > 4] += x[x > 4]


def added_twice(x: Any) -> None:
    x[[0, 0]] += 1


def times_sums(x: Any) -> None:
    x *= x.sum(0)


WRITES = [
    shifted, shifted_back, added_shifted, added_transposed, transposed, reversed_, column_of_row,
    rows_moved, by_mask, added_by_mask, added_twice, times_sums,
]  # fmt: skip


@pytest.mark.parametrize("write", WRITES, ids=lambda write: write.__name__)
@pytest.mark.parametrize("captured", [False, True])
def test_the_right_side_is_read_first(write: Callable[[Any], None], captured: bool) -> None:
    if captured and "mask" in write.__name__:
        pytest.skip("the size of x[mask] is a value, which a captured function does not read")
    expected, x = SQUARE.copy(), Tensor(SQUARE)
    run = treadle.jit(write) if captured else write
    for _ in range(3):
        write(expected)
        run(x)
        assert x.tolist() == expected.tolist()


def test_methods_that_write_read_first() -> None:
    x = Tensor(SQUARE)
    assert x.copy_(x.T).tolist() == SQUARE.T.tolist()
    assert x.add_(x.flip(0)).tolist() == (SQUARE.T + SQUARE.T[::-1]).tolist()
    x = Tensor(SQUARE)
    assert x.scatter_(0, Tensor([[2, 1, 0]]), x).tolist()[2][0] == 0.0
    x = Tensor(SQUARE)
    x[0], x[1] = x[1], x[0]  # no views: what stands on the right does not change
    assert x.tolist() == SQUARE[[1, 0, 2]].tolist()


def test_what_is_expanded_has_its_own_elements() -> None:
    row = Tensor([1.0, 2.0, 3.0])
    wide = row.expand(2, 3)
    wide[0] = 5.0
    wide[:, 1] += Tensor([1.0, 2.0])
    wide.mul_(2)
    assert wide.tolist() == [[10.0, 12.0, 10.0], [2.0, 8.0, 6.0]]
    assert row.tolist() == [1.0, 2.0, 3.0]


LOST: dict[str, Callable[[Tensor], Any]] = {
    "zero_": lambda x: x[0].zero_(),
    "copy_": lambda x: x[1:].copy_(x[:-1]),
    "fill_": lambda x: x.diagonal().fill_(1.0),
    "mul_": lambda x: x.T.mul_(2),
    "uniform_": lambda x: x.view(9).uniform_(),
    "add_": lambda x: x.data.add_(1),
    "sub_": lambda x: x.unbind()[1].sub_(1),
    "clamp_": lambda x: x.detach().clamp_(0, 1),
    "div_": lambda x: x[0].view(3, 1).T.div_(2),
    "assign": lambda x: x[0].assign(x[1]),
    "normal_": lambda x: nn.init.normal_(x.data),
    "zeros_": lambda x: nn.init.zeros_(x[0]),
}


@pytest.mark.parametrize("name", LOST)
def test_a_write_that_nobody_would_see(name: str) -> None:
    for x in (Tensor(SQUARE), Tensor.zeros(3, 3), Tensor(SQUARE) + 1):
        for _ in range(2):  # a method is made when it is first used
            with pytest.raises(RuntimeError, match=rf"{name}\(..\): .* a temporary, which nobody"):
                LOST[name](x)


def test_what_somebody_holds_is_written_to() -> None:
    x = Tensor(SQUARE)
    row, turned, same = x[0], x.T, x.detach()
    row.zero_()
    turned.fill_(1.0)
    same += 1
    assert row.sum().item() == 0 and turned.sum().item() == 9
    assert same.tolist() == (SQUARE + 1).tolist() and x.tolist() == SQUARE.tolist()
    x[0] += 1
    assert x[0].tolist() == [1.0, 2.0, 3.0]
    rows = [x[0], x[1]]
    rows[0].zero_()
    assert rows[0].tolist() == [0.0, 0.0, 0.0]


def test_temporaries_that_are_no_part_of_another_are_written_to() -> None:
    x = Tensor(SQUARE)
    assert Tensor.zeros(3).fill_(1.0).tolist() == [1.0, 1.0, 1.0]
    assert Tensor.zeros(4).view(2, 2).fill_(1.0).tolist() == [[1.0, 1.0], [1.0, 1.0]]
    assert x[0].clone().zero_().tolist() == [0.0, 0.0, 0.0]
    assert x[Tensor([0])].mul_(2).tolist() == [[0.0, 2.0, 4.0]]  # PyTorch copies here, too
    assert (x * 2).add_(1).tolist() == (SQUARE * 2 + 1).tolist()
    assert nn.init.ones_(Tensor.empty(2)).tolist() == [1.0, 1.0]
    weight = Tensor([1.0], requires_grad=True)
    with no_grad():
        weight.mul_(3)
    assert weight.tolist() == [3.0]
