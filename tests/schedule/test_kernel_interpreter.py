"""The meaning of kernel nodes: guards, reductions, checks, stores in order."""

import numpy as np
import pytest

from treadle.backend.interp.kernel import evaluate_kernel
from treadle.ir import index, ops
from treadle.ir.dtype import DType, bfloat16, float32, float64, int64, void
from treadle.ir.dtype import index as INDEX
from treadle.ir.node import Node


def _arg(position: int, shape: tuple[int, ...], dtype: DType = float64) -> Node:
    return Node(ops.ARG, dtype, (), (position, shape))


def _load(argument: Node, *place: Node, guard: Node | None = None) -> Node:
    src = (argument, *place) if guard is None else (argument, *place, guard)
    return Node(ops.LOAD, argument.dtype, src, len(place))


def _sink(argument: Node, value: Node, *place: Node, monoid: str | None = None) -> Node:
    store = Node(ops.STORE, void, (argument, value, *place), (len(place), monoid))
    return Node(ops.SINK, void, (store,))


def test_a_false_guard_reads_nothing() -> None:
    i = index.range_(0, 5)
    shifted = index.sub(i, 2)
    value = _load(_arg(1, (2,)), shifted, guard=index.both(index.le(2, i), index.lt(i, 4)))
    out = np.full(5, 9.0)
    evaluate_kernel(_sink(_arg(0, (5,)), value, i), [out, np.array([3.0, 4.0])])
    np.testing.assert_array_equal(out, [0, 0, 3, 4, 0])


def test_an_access_outside_is_an_error() -> None:
    i = index.range_(0, 5)
    kernel = _sink(_arg(0, (5,)), _load(_arg(1, (4,)), i), i)
    with pytest.raises(IndexError, match="leaves its buffer"):
        evaluate_kernel(kernel, [np.zeros(5), np.zeros(4)])


def test_reductions_bind_their_ranges() -> None:
    i, j = index.range_(0, 3), index.range_(1, 4)
    x = _load(_arg(1, (3, 4)), i, j)
    top = Node(ops.KREDUCE, float64, (x, j), ("max", 1))
    below = ops.SUB(x, top)
    total = Node(ops.KREDUCE, float64, (below, i, j), ("add", 1))
    values = np.arange(12.0).reshape(3, 4)
    out = np.zeros(())
    evaluate_kernel(_sink(_arg(0, ()), total), [out, values])
    assert out == (values - values.max(1, keepdims=True)).sum()
    # a value that does not depend on the range is folded as often
    constant = Node(ops.KREDUCE, float64, (ops.ADD(top, top), i, j), ("add", 1))
    evaluate_kernel(_sink(_arg(0, ()), constant), [out, values])
    assert out == 8 * values.max(1).sum()


def test_pairs() -> None:
    i, j = index.range_(0, 2), index.range_(1, 3)
    x = _load(_arg(1, (2, 3)), i, j)
    fold = Node(ops.KREDUCE, (float64, int64), (x, ops.CAST(j, dtype=int64), j), ("argmax", 2))
    place = Node(ops.OUT, int64, (fold,), 1)
    out = np.zeros(2, np.int64)
    values = np.array([[1.0, 5.0, 5.0], [np.nan, 2.0, np.nan]])
    evaluate_kernel(_sink(_arg(0, (2,), int64), place, i), [out, values])
    np.testing.assert_array_equal(out, [1, 0])


@pytest.mark.parametrize(
    ("monoid", "expected"), [(None, [7.0, 3.0]), ("add", [10.0, 4.0]), ("max", [7.0, 3.0])]
)
def test_stores_happen_in_order(monoid: str | None, expected: list[float]) -> None:
    i = index.range_(0, 3)
    where = ops.CAST(_load(_arg(2, (3,), int64), i), dtype=INDEX)
    checked = Node(ops.CHECK, INDEX, (where, index.const(2)), 0)
    kernel = _sink(_arg(0, (2,)), _load(_arg(1, (3,)), i), checked, monoid=monoid)
    out = np.array([1.0, 1.0])
    evaluate_kernel(kernel, [out, np.array([2.0, 3.0, 7.0]), np.array([0, 1, 0])])
    np.testing.assert_array_equal(out, expected)
    with pytest.raises(IndexError, match="index 5 is out of range for size 2"):
        evaluate_kernel(kernel, [out, np.array([9.0, 9.0, 9.0]), np.array([0, 5, 0])])
    np.testing.assert_array_equal(out, expected)  # nothing was stored


def test_scalars_variables_and_bfloat16() -> None:
    n = index.variable("n", 0, 100)
    i = index.range_(0, n)
    x = Node(ops.LOAD, bfloat16, (Node(ops.ARG, bfloat16, (), (1, (n,))), i), 1)
    scalar = Node(ops.SCALAR, float32, (), 0)
    value = ops.CAST(ops.MUL(ops.CAST(x, dtype=float32), scalar), dtype=bfloat16)
    out = np.zeros(3, np.uint16)
    ones = np.array([0x3F80, 0x4000, 0x4040], np.uint16)  # 1, 2, 3
    kernel = _sink(Node(ops.ARG, bfloat16, (), (0, (n,))), value, i)
    evaluate_kernel(kernel, [out, ones], [2.0], {"n": 2})
    np.testing.assert_array_equal(out, [0x4000, 0x4080, 0])
