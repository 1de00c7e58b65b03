"""Sums whose loops leave out padding."""

import numpy as np
import pytest
from kernels import buffer, check, load, matmul, ranges, reduce, sink, store

from treadle import Tensor, explain, vjp
from treadle.ir import index, ops
from treadle.ir.node import Node
from treadle.kernel.actions import Reorder, Split
from treadle.kernel.kernel import ScheduleError
from treadle.kernel.trim import Trim
from treadle.nn import functional


def shifted(size: int, taps: int, step: int, padding: int, upward: bool) -> Node:
    """out[i, j] = sum over m of x[step i +- m - padding] w[m, j], 0 where x ends."""
    length = (step * (size - 1) + taps) - 2 * padding if upward else size - 1
    i, j, m = ranges(size, 3, taps)
    place = index.add(index.mul(i, step), m if upward else index.mul(m, -1))
    place = index.sub(place, padding if upward else 0)
    guard = index.both(index.lt(-1, place), index.lt(place, length))
    x, weight = buffer(1, length), buffer(2, taps, 3)
    product = ops.MUL(load(x, place, guard=guard), load(weight, m, j))
    return sink(store(buffer(0, size, 3), reduce("add", product, m), i, j))


@pytest.mark.parametrize("upward", [True, False])
@pytest.mark.parametrize("size, taps, step, padding", [(6, 3, 1, 1), (5, 7, 2, 3), (2, 5, 1, 2)])
def test_the_points_that_are_left_out_read_padding(
    size: int, taps: int, step: int, padding: int, upward: bool
) -> None:
    if not upward:
        step, padding = 1, 0
    root = shifted(size, taps, step, padding, upward)
    (sum_,) = check(root, [Trim("k")]).kernel.statements[:1]
    assert "k" in sum_.reduced


def test_a_row_that_reads_nothing_else_is_zero() -> None:
    root = shifted(9, 2, 1, 0, upward=False)  # rows 0 to 9 of 8, and the last reads nothing
    i = np.ones(8, np.float32)
    checked = check(root, [Trim("k")], arrays={1: i})
    assert checked.kernel.leaves["k"].extent != 2


def test_what_has_no_guard_stays_whole() -> None:
    with pytest.raises(ScheduleError, match="every point of k counts"):
        check(matmul(4, 5, 6), [Trim("k")])
    with pytest.raises(ScheduleError, match="not the range of one sum"):
        check(matmul(4, 5, 6), [Trim("i")])
    with pytest.raises(ScheduleError, match="not a whole range"):
        check(shifted(6, 4, 1, 1, True), [Split("k", "ko", (("ki", 2),)), Trim("ki")])


def test_the_gradient_of_a_convolution_computes_no_rows_of_padding() -> None:
    random = np.random.default_rng(0)
    image = random.standard_normal((8, 16, 12, 12)).astype(np.float32)
    weight = random.standard_normal((16, 16, 5, 5)).astype(np.float32)
    result, pull = vjp(lambda x: functional.conv2d(x, Tensor(weight)), Tensor(image))
    cotangent = random.standard_normal(result.shape).astype(np.float32)
    gradient = pull(Tensor(cotangent))
    gradient = gradient[0] if isinstance(gradient, tuple | list) else gradient
    assert "trim " in explain(gradient)
    wanted = np.zeros(image.shape)
    for m, n in np.ndindex(5, 5):
        part = np.einsum("bohw,oc->bchw", np.float64(cotangent), weight[:, :, m, n])
        wanted[:, :, m : m + 8, n : n + 8] += part
    np.testing.assert_allclose(gradient.numpy(), wanted, rtol=1e-4, atol=1e-4)


def test_a_loop_whose_end_depends_on_others_stays_inside_them() -> None:
    root = shifted(6, 4, 1, 1, True)
    with pytest.raises(ScheduleError, match="where k of add0 ends depends on other loops"):
        check(root, [Trim("k"), Reorder(("k", "i"))])
    with pytest.raises(ScheduleError, match="where k ends is counted from i already"):
        check(root, [Trim("k"), Split("i", "io", (("ii", 2),))])
    check(root, [Split("i", "io", (("ii", 2),)), Trim("k")])
