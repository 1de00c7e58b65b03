"""The graph interpreter: what it needs, what it rounds, and that it is not recursive."""

import numpy as np
import pytest
from arrays import run, tensor

from treadle.backend.interp.graph import evaluate
from treadle.graph import build as b
from treadle.ir import index, ops
from treadle.ir.dtype import bfloat16, float16, float32, int64, void
from treadle.ir.node import Node

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def test_a_leaf_or_a_variable_without_a_value():
    x = Node(ops.BUFFER, float32, (), (0, (2, 3), "CPU"))
    with pytest.raises(KeyError, match="no value was given for the leaf"):
        evaluate([b.alu(ops.EXP, x)], {})
    size = index.variable("T", 1, 4)
    with pytest.raises(KeyError, match="T"):
        evaluate([b.iota(size, int64)], {})


def test_scalars_are_leaves():
    x = Node(ops.BUFFER, float32, (), (0, (2, 3), "CPU"))
    rate = Node(ops.SCALAR, float32, (), 0)
    (value,) = evaluate([b.alu(ops.MUL, x, rate)], {x: X, rate: np.float32(2)})
    np.testing.assert_array_equal(value, X * 2)


@pytest.mark.parametrize("dtype", [float16, bfloat16])
def test_every_operation_rounds_to_its_dtype(dtype):
    third = b.alu(ops.DIV, tensor([1.0], dtype), tensor([3.0], dtype))
    again = b.cast(b.cast(third, float32), dtype)
    np.testing.assert_array_equal(run(third), run(again))
    total = b.reduce("max", third)
    np.testing.assert_array_equal(run(total), run(third)[0])


def test_several_roots_share_their_work():
    x = tensor(X)
    y = b.alu(ops.EXP, x)
    first, second, third = (run(n) for n in (y, b.reduce("add", y), b.reshape(y, (3, 2))))
    np.testing.assert_array_equal(first.reshape(3, 2), third)
    np.testing.assert_allclose(second, first.sum(), rtol=1e-6)


@pytest.mark.parametrize("reverse", [False, True])
def test_scan_is_a_loop(reverse):
    carry = Node(ops.PLACEHOLDER, float32, (), (0, ()))
    step = Node(ops.PLACEHOLDER, float32, (), (1, ()))
    scale = Node(ops.PLACEHOLDER, float32, (), (2, ()))
    new = b.alu(ops.ADD, b.alu(ops.MUL, carry, scale), step)
    body = Node(ops.SINK, void, (new, new))
    init, xs, factor = tensor(np.float32(1)), tensor(np.float32([1, 2, 3])), tensor(np.float32(2))
    loop = Node(ops.SCAN, (float32, float32), (init, xs, factor), (body, 1, 1, 3, reverse))
    last = run(Node(ops.OUT, float32, (loop,), 0))
    stacked = run(Node(ops.OUT, float32, (loop,), 1))
    assert last == (25 if reverse else 19)
    np.testing.assert_array_equal(stacked, [25, 12, 5] if reverse else [3, 8, 19])


def test_a_scan_of_no_steps():
    carry = Node(ops.PLACEHOLDER, float32, (), (0, (2,)))
    body = Node(ops.SINK, void, (carry, carry))
    init = tensor(np.float32([4, 5]))
    loop = Node(ops.SCAN, (float32, float32), (init,), (body, 1, 0, 0, False))
    np.testing.assert_array_equal(run(Node(ops.OUT, float32, (loop,), 0)), [4, 5])
    assert run(Node(ops.OUT, float32, (loop,), 1)).shape == (0, 2)
