"""Matrix instructions on every backend that has them: the same bits."""

from __future__ import annotations

import numpy as np
import pytest

from tests.backend.test_program_structure import backend, buffer, number, read, run
from treadle.backend.base import Function
from treadle.ir import ops
from treadle.ir.dots import GROUP
from treadle.ir.dtype import void
from treadle.ir.matrix import MATRICES, Matrix, matrix_of
from treadle.ir.node import Node
from treadle.ir.verify import LawError, verify

BF16 = MATRICES[0]


@pytest.fixture(params=("interp", "llvm", "c"))
def on(request: pytest.FixtureRequest) -> str:
    backend(request.param)
    return str(request.param)


def read_tile(place: Node, rows: int, columns: int, stride: int) -> Node:
    src = (place, number(0), number(stride))
    return Node(ops.INTRINSIC, GROUP.vec(rows * columns), src, ("tile_read", rows, columns))


def program(matrix: Matrix, apart: int) -> Function:
    """One instruction on factors whose rows are `apart` elements further from each other than they
    are long; the sums are read side by side."""
    groups = matrix.k // matrix.size
    sums = buffer(0, matrix.total, matrix.lanes[0])
    first = buffer(1, matrix.factors[0], matrix.m * (matrix.k + apart))
    second = buffer(2, matrix.factors[1], groups * (matrix.n * matrix.size + apart))
    old = read(matrix.total.vec(matrix.lanes[0]), sums, number(0))
    a = read_tile(first, matrix.m, groups, matrix.k + apart)
    b = read_tile(second, groups, matrix.n, matrix.n * matrix.size + apart)
    new = Node(ops.INTRINSIC, old.dtype, (old, a, b), matrix.arg)
    src = (sums, number(0), number(matrix.n), new)
    write = Node(ops.INTRINSIC, void, src, ("tile_write", matrix.m, matrix.n))
    return Function("f", (sums, first, second), (old, a, b, new, write))


def summed(on: str, matrix: Matrix, total: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The sums after one instruction on matrices a (m, k) and b (groups, n * size)."""
    if on == "llvm" and matrix.feature not in backend("llvm").target.intrinsics:
        pytest.skip(f"this processor has no {matrix.feature}, or the process may not use it")
    apart = 16
    wide = [np.pad(x, ((0, 0), (0, apart))).reshape(-1) for x in (a, b)]
    out = total.copy()
    run(on, program(matrix, apart), [out, *wide])
    return out


def groups_of(a: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(a).view(np.uint32).reshape(-1)


def factors(matrix: Matrix, seed: int, exponent: int = 0) -> tuple[np.ndarray, ...]:
    """Random sums and factors, as they lie in memory."""
    random = np.random.default_rng(seed)
    shapes = (matrix.m, matrix.k), (matrix.k // matrix.size, matrix.n * matrix.size)
    made = []
    for dtype, shape in zip(matrix.factors, shapes):
        if dtype.is_float:
            x = random.standard_normal(shape) * 2.0 ** random.integers(
                -exponent, exponent + 1, shape
            )
            made.append((x.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16))
        else:
            info = np.iinfo(dtype.storage)
            made.append(random.integers(info.min, info.max, shape, dtype.storage, endpoint=True))
    if matrix.total.is_float:
        total = random.standard_normal(matrix.lanes[0]).astype(np.float32)
    else:
        total = random.integers(-(2**31), 2**31, matrix.lanes[0]).astype(np.int32)
    return total, *made


@pytest.mark.parametrize("matrix", MATRICES, ids=lambda matrix: "-".join(map(str, matrix.arg)))
@pytest.mark.parametrize("exponent", [0, 70])
def test_the_same_bits(on: str, matrix: Matrix, exponent: int) -> None:
    total, a, b = factors(matrix, 1, exponent)
    got = summed(on, matrix, total, a, b)
    want = matrix.meaning(total, groups_of(a), groups_of(b))
    assert got.view(np.int32).tolist() == want.view(np.int32).tolist()


@pytest.mark.parametrize("matrix", MATRICES[1:], ids=lambda matrix: "-".join(matrix.arg[1:3]))
def test_integers_are_the_product(on: str, matrix: Matrix) -> None:
    total, a, b = factors(matrix, 2)
    second = b.reshape(-1, matrix.n, matrix.size).transpose(0, 2, 1).reshape(matrix.k, matrix.n)
    want = total.reshape(matrix.m, matrix.n) + a.astype(np.int32) @ second.astype(np.int32)
    assert summed(on, matrix, total, a, b).tolist() == want.reshape(-1).tolist()


def test_order_and_special_numbers(on: str) -> None:
    """Sums of the first and of the second members apart; NaN and infinities go through; subnormal
    numbers are zeros."""
    inf, nan = np.inf, np.nan
    far = 2.0**100
    rows = [  # the first terms of a row of the first factor, what was there, and the sum
        ((1.0, 2.0, 3.0), 4.0, 10.0), ((inf, 1.0), 0.0, inf), ((inf, -inf), 0.0, nan),
        ((nan,), 1.0, nan), ((far, 1.0, -far), 0.0, 1.0),  # 1 is in the other sum
        ((far, 0.0, 1.0, 0.0, -far), 0.0, 0.0), ((far, 0.0, -far, 0.0, 1.0), 0.0, 1.0),
        ((2.0**-130,), 0.0, 0.0), ((0.0,), 2.0**-140, 0.0), ((-0.0,), -0.0, 0.0),
        ((2.0**-24, 2.0**-24), 1.0, 1 + 2.0**-23), ((2.0**-24,), 1.0, 1.0),
        ((3.0,), -3.0, 0.0), ((0.5,), 0.25, 0.75), ((), 7.0, 7.0), ((), 0.0, 0.0),
    ]  # fmt: skip
    a = np.zeros((BF16.m, BF16.k), np.float32)
    total = np.zeros((BF16.m, BF16.n), np.float32)
    for n, (terms, before, _) in enumerate(rows):
        a[n, : len(terms)] = terms
        total[n] = before
    narrow = (a.view(np.uint32) >> 16).astype(np.uint16)
    ones = np.full((BF16.k // 2, 2 * BF16.n), 0x3F80, np.uint16)
    ones[5:] = 0  # an infinity meets no zero
    got = summed(on, BF16, total.reshape(-1), narrow, ones).reshape(BF16.m, BF16.n)
    want = np.array([row[2] for row in rows], np.float32)
    np.testing.assert_array_equal(got, np.broadcast_to(want[:, None], got.shape))


def test_the_law() -> None:
    function = program(BF16, 0)
    verify(function, "program")
    old, a, _, new, write = function.body
    wrong = Node(ops.INTRINSIC, new.dtype, (old, a, old), BF16.arg)
    with pytest.raises(LawError, match="it needs sources of float32x256, uint32x256, uint32x256"):
        verify(function._replace(body=(old, a, wrong)), "program")
    short = Node(ops.INTRINSIC, GROUP.vec(8), a.src, ("tile_read", 4, 4))
    with pytest.raises(LawError, match="it moves uint32x8 as 4 x 4 elements"):
        verify(function._replace(body=(short,)), "program")
    empty = Node(ops.INTRINSIC, void, write.src[:3], write.arg)
    with pytest.raises(LawError, match="writes one tile or none"):
        verify(function._replace(body=(empty,)), "program")
    with pytest.raises(ValueError, match="there is no matrix instruction"):
        matrix_of(("mma", "float16", "float16", 16, 16, 32))
