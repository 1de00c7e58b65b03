"""Products against NumPy: all ranks, dtypes, and shapes that do not match."""

import numpy as np
import pytest
from arrays import close, run, same, tensor

from treadle.graph import linear
from treadle.ir import index, ops
from treadle.ir.dtype import bfloat16, bool_, float16, float32, int8, int64
from treadle.ir.node import toposort

R = np.random.default_rng(5)


def small(*shape):
    return R.integers(-3, 4, shape).astype(np.float32)


SHAPES = [
    ((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 4)), ((2, 3), (3, 4)), ((5, 2, 3), (3, 4)),
    ((2, 3), (5, 3, 4)), ((5, 2, 3), (5, 3, 4)), ((6, 1, 2, 3), (5, 3, 4)), ((3,), (5, 3, 4)),
    ((5, 2, 3), (3,)), ((0, 3), (3, 4)), ((2, 0), (0, 4)), ((1, 1), (1, 1)), ((2, 1), (1, 3)),
]  # fmt: skip


@pytest.mark.parametrize(("left", "right"), SHAPES)
def test_matmul(left, right):
    a, b = small(*left), small(*right)
    same(linear.matmul(tensor(a), tensor(b)), a @ b + np.float32(0))


@pytest.mark.parametrize(
    ("left", "right", "message"),
    [
        ((2, 3), (4, 5), r"\(2, 3\) @ \(4, 5\): the last size of the first, 3, is not .* 4"),
        ((3,), (4,), "is not the inner size"),
        ((), (3,), "0-d tensor has no dimension"),
        ((2, 2, 3), (3, 3, 4), "do not broadcast"),
    ],
)
def test_matmul_errors(left, right, message):
    with pytest.raises(ValueError, match=message):
        linear.matmul(tensor(np.ones(left)), tensor(np.ones(right)))


def test_dtypes():
    a, b = small(2, 3), small(3, 2)
    assert linear.matmul(tensor(a, int8), tensor(b, int64)).dtype is int64
    assert linear.matmul(tensor(a, int64), tensor(b)).dtype is float32
    same(linear.matmul(tensor([[100, 100]], int8), tensor([[1], [1]], int8)), np.int8([[-56]]))
    with pytest.raises(TypeError, match="matmul is for numbers, not for bool"):
        linear.matmul(tensor(a, bool_), tensor(b, bool_))
    with pytest.raises(TypeError, match="matmul is for two tensors"):
        linear.matmul(tensor(a), 2)


@pytest.mark.parametrize("dtype", [float16, bfloat16])
def test_half_is_multiplied_and_summed_in_float32(dtype):
    a = np.full((1, 4096), 1.0)
    assert run(linear.matmul(tensor(a, dtype), tensor(a.T.copy(), dtype))) == 4096
    product = linear.matmul(tensor(a, dtype), tensor(a.T.copy(), dtype))
    (multiply,) = [n for n in toposort(product) if n.op is ops.MUL]
    assert multiply.dtype is float32


def test_one_sum_over_one_product():
    nodes = toposort(linear.matmul(tensor(small(2, 3)), tensor(small(3, 4))))
    (total,) = [n for n in nodes if n.op is ops.REDUCE]
    assert total.src[0].op is ops.MUL
    assert total.src[0].shape == (2, 4, 3)


def test_named_products():
    a, b, v = small(2, 3), small(3, 4), small(3)
    same(linear.dot(tensor(v), tensor(v)), v @ v)
    same(linear.mv(tensor(a), tensor(v)), a @ v)
    same(linear.mm(tensor(a), tensor(b)), a @ b)
    same(linear.bmm(tensor(a[None]), tensor(b[None])), (a @ b)[None])
    same(linear.outer(tensor(v), tensor(a[0])), np.outer(v, a[0]))
    close(
        linear.addmm(tensor(small(4) * 0 + 1), tensor(a), tensor(b), beta=2, alpha=0.5),
        (2 + 0.5 * (a @ b)).astype(np.float32),
    )
    for function, wrong, message in [
        (linear.dot, (a, b), "dot is for two vectors"),
        (linear.mv, (a, b), "mv is for a matrix and a vector"),
        (linear.mm, (v, b), "mm is for two matrices"),
        (linear.bmm, (a, b), "bmm is for two 3-d tensors"),
        (linear.outer, (a, v), "outer is for two vectors"),
        (linear.bmm, (a[None], np.stack([b, b])), "number of matrices"),
    ]:
        with pytest.raises(ValueError, match=message):
            function(*[tensor(w) for w in wrong])


def test_symbolic_sizes():
    size = index.variable("T", 1, 8)
    a = small(5, 3)
    x = tensor(a, shape=(size, 3))
    same(linear.matmul(x, tensor(a[:3])), a @ a[:3], T=5)
    same(linear.matmul(tensor(a.T.copy(), shape=(3, size)), x), a.T @ a, T=5)
