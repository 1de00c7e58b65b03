"""Dot instructions on every backend of a CPU: the same bits, whatever the lanes."""

from __future__ import annotations

import numpy as np
import pytest

from tests.backend.test_program_structure import backend, buffer, number, read, run, write
from treadle.backend.base import Function
from treadle.ir import ops
from treadle.ir.dots import DOTS, GROUP, Dot, dot_of
from treadle.ir.node import Node
from treadle.ir.verify import LawError, verify

BACKENDS = ("interp", "llvm", "c")


@pytest.fixture(params=BACKENDS)
def on(request: pytest.FixtureRequest) -> str:
    backend(request.param)
    return str(request.param)


def summed(on: str, dot: Dot, lanes: int, total: np.ndarray, a: np.ndarray, b: np.ndarray) -> list:
    """The sums after one instruction on groups that stand in memory as narrow numbers."""
    if on == "llvm" and dot.feature not in backend("llvm").target.intrinsics:
        pytest.skip(f"this processor has no {dot.feature}")
    size = dot.size * lanes
    t = buffer(0, dot.total, lanes)
    factors = [buffer(n + 1, dtype, size) for n, dtype in enumerate(dot.factors)]
    old = read(dot.total.vec(lanes), t, number(0))
    groups = [read(GROUP.vec(lanes), x, number(0)) for x in factors]
    new = Node(ops.INTRINSIC, old.dtype, (old, *groups), dot.arg)
    body = (old, *groups, new, write(t, number(0), new))
    out = total.copy()
    run(on, Function("f", (t, *factors), body), [out, a, b])
    return out.view(np.int32).tolist()


@pytest.mark.parametrize("lanes", [1, 2, 4, 8, 16, 32])
@pytest.mark.parametrize("dot", DOTS, ids=lambda dot: dot.feature)
def test_the_same_bits(on: str, dot: Dot, lanes: int) -> None:
    random = np.random.default_rng(lanes)
    size = dot.size * lanes
    if dot.total.is_float:
        bits = random.standard_normal((2, size)) * 2.0 ** random.integers(-20, 20, (2, size))
        a, b = (bits.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
        total = random.standard_normal(lanes).astype(np.float32)
    else:
        info = [np.iinfo(dtype.storage) for dtype in dot.factors]
        a, b = (
            random.integers(i.min, i.max, size, endpoint=True).astype(dtype.storage)
            for i, dtype in zip(info, dot.factors)
        )
        a[:2], b[:2] = info[0].min, info[1].min  # the greatest products there are
        total = random.integers(-(2**31), 2**31, lanes).astype(np.int32)
    got = summed(on, dot, lanes, total, a, b)
    want = dot.meaning(total, a.view(np.uint32), b.view(np.uint32))
    assert got == want.view(np.int32).tolist()


def test_special_numbers(on: str) -> None:
    """NaN and infinities go through, subnormal numbers are zeros, the second product is first."""
    inf, nan, tiny, small = np.inf, np.nan, 2.0**-133, 2.0**-70
    rows = [
        (0.0, (inf, 1), (1, 1), inf), (inf, (-inf, 0), (1, 1), nan), (0.0, (0, 0), (inf, 1), nan),
        (0.0, (nan, 0), (1, 1), nan), (0.0, (tiny, 0), (2.0**100, 1), 0.0),
        (0.0, (small, 0), (small, 0), 0.0), (2.0**-140, (0, 0), (1, 1), 0.0),
        (-0.0, (-0.0, -0.0), (1, 1), -0.0), (1.0, (3e38, -3e38), (4, 4), -inf),
        (0.0, (2.0**-30, 1), (1, 1), 1.0), (1.0, (3, 5), (7, -2), 12.0),
        (0.0, (2.0**60, 1), (1, 1), 2.0**60), (0, (0, 0), (0, 0), 0),
        (-1.0, (2.0**-30, 1), (1, 1), 2.0**-30), (0, (0, 0), (0, 0), 0), (0, (0, 0), (0, 0), 0),
    ]  # fmt: skip
    total = np.array([row[0] for row in rows], np.float32)
    a, b = (
        (np.array([row[n] for row in rows], np.float32).reshape(-1).view(np.uint32) >> 16).astype(
            np.uint16
        )
        for n in (1, 2)
    )
    got = summed(on, DOTS[0], 16, total, a, b)
    want = np.array([row[3] for row in rows], np.float32)
    np.testing.assert_array_equal(np.array(got, np.int32).view(np.float32), want)


def test_the_law_of_a_dot() -> None:
    dot = DOTS[0]
    t = buffer(0, dot.total, 1)
    total, group = number(0.0, dot.total), number(0, GROUP)

    def program(*sources: Node) -> Function:
        value = Node(ops.INTRINSIC, dot.total, sources, dot.arg)
        return Function("f", (t,), (value, write(t, number(0), value)))

    verify(program(total, group, group), "program")
    with pytest.raises(LawError, match="it needs sources of float32, uint32, uint32"):
        verify(program(total, total, group), "program")
    with pytest.raises(ValueError, match="there is no dot instruction"):
        dot_of(("dot", "float16", "float16"))
