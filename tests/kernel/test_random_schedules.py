"""Whatever a user writes as a schedule is refused by a ScheduleError, or gives the same values."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernels import (
    CPU,
    arrays_for,
    column_sum,
    convolution,
    copies,
    elementwise,
    full_sum,
    matmul,
    row_sum,
    run_functions,
    softmax,
)
from schedules import extended
from test_actions import scatter
from test_blocks import attention
from test_dots import integers
from test_sieve import adjoint
from test_trim import shifted

from treadle.ir import index, ops
from treadle.ir.dots import DOTS
from treadle.ir.dtype import bfloat16, int8, to_compute, uint8
from treadle.ir.matrix import MATRICES
from treadle.ir.node import Node, toposort
from treadle.ir.verify import verify
from treadle.kernel.actions import Action, apply
from treadle.kernel.build import build
from treadle.kernel.heuristic import heuristic
from treadle.kernel.interpret import interpret
from treadle.kernel.kernel import Kernel, ScheduleError
from treadle.kernel.lower import lower
from treadle.kernel.schedule_text import parse_actions, show_actions

INSTRUCTIONS = frozenset(instruction.feature for instruction in (*DOTS, *MATRICES))
TARGET = replace(CPU, intrinsics=INSTRUCTIONS | {"shuffle", "prefetch"})
SIZE = index.variable("n", 0, 64)
KERNELS = {
    "matmul": matmul(5, 7, 6),
    "transposed": matmul(9, 17, 8, right=True),
    "bfloat16": matmul(5, 9, 8, right=True, dtype=bfloat16),
    "tiles": matmul(20, 18, 40, dtype=bfloat16),
    "int8": integers(4, 8, 8, uint8, int8),
    "convolution": convolution(1, 2, 5, 3, 3, pad=1),
    "strided": convolution(2, 2, 6, 3, 3, pad=1, stride=2),
    "softmax": softmax(4, 9),
    "softmax of columns": softmax(5, 8, axis=0),
    "row sum": row_sum(5, 12),
    "column sum": column_sum(9, 6),
    "full sum": full_sum(4, 8),
    "elementwise": elementwise(2, 3, 8),
    "n rows": row_sum(SIZE, 12),
    "n columns": row_sum(4, SIZE),
    "n x 5": elementwise(SIZE, 5),
    "adjoint": adjoint(2, 4, 3, 3, 1, 2, 8),
    "padded": shifted(6, 3, 1, 1, True),
    "attention": attention(2, 4, 6, 3, 2),
    "scatter": scatter(),
}


def require_same(root: Node, kernel: Kernel) -> None:
    """The kernel is refused when it is lowered, or means what it meant and computes it."""
    try:
        functions = lower(kernel, "f")
    except ScheduleError:
        return
    for function in functions:
        verify(function, "program")
    dtypes = {n.arg[0]: n.dtype for n in toposort(root) if n.op is ops.ARG}
    tolerance = 3e-2 if bfloat16 in dtypes.values() else 1e-4
    named = {n.arg[0] for n in toposort(root, into_args=True) if n.op is ops.VARIABLE}
    for size in (0, 1, 5, 16) if named else (0,):
        values = dict.fromkeys(named, size)
        arrays = arrays_for(root, values)
        expected, meant, ran = copies(arrays), copies(arrays), copies(arrays)
        interpret(build(root, TARGET), expected, (), values)
        interpret(kernel, meant, (), values)
        assert run_functions(kernel, functions, ran, (), values) is None
        for position, dtype in dtypes.items():
            want = to_compute(dtype, expected[position])
            for got in (meant, ran):
                np.testing.assert_allclose(
                    to_compute(dtype, got[position]), want, rtol=tolerance, atol=tolerance
                )


@pytest.mark.sampled(2)
@settings(deadline=None, max_examples=12)
@given(data=st.data())
@pytest.mark.parametrize("name", KERNELS)
def test_a_random_schedule_is_refused_or_right(name: str, data: st.DataObject) -> None:
    root = KERNELS[name]

    def pick(choices):
        return data.draw(st.sampled_from(choices))

    kernel = build(root, TARGET)
    usual = heuristic(kernel, TARGET)
    begun: list[Action] = usual[: pick(range(len(usual) + 1))] if pick((False, True)) else []
    kernel, actions = extended(apply(kernel, begun), pick, pick(range(2, 16)), begun)
    assert parse_actions(show_actions(actions)) == actions
    require_same(root, kernel)


# ---- what was wrong once -------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("row sum", "split j: jo | jv(16)\nsplit jo: a | b(16) | c(8)"),
        ("softmax", "split j3: a | b(1)\nsplit b: c | d(1)"),
        ("n x 5", "split j: a | b(3)\ngrid a, b"),
        ("n x 5", "detach store0 at i as t"),
        ("adjoint", "sieve l by j\ndetach add0 at jq as t\nfuse i, jq: a"),
        ("strided", "join n, o"),
        ("row sum", "cooperate j tasks a\ncooperate a tasks b"),
        ("adjoint", "sieve l by j\nsplit lq: a | b(16)\nvector jr"),
        ("matmul", "split j: a | b(16)\nsplit i: c | d(5)\ntail b shift\ndetach add0 at c as t"),
        ("matmul", "split j: a | b(4)\nvector b\ndetach add0 at a as t\ntail b shift"),
        ("n rows", "detach add0 at i as a\ndetach copy_a at i as b\nsplit i: c | d(9)"),
        ("convolution", "split l: a | b(4)\nreorder m, a, k\ntail a shift"),
        ("scatter", "split j: a | b(3) | c(5)\ntail a shift"),
        ("scatter", "prefetch arg0 in store0 along i 1"),
        ("scatter", "fuse i, j: a\nprefetch arg0 in store0 along a 1\nsplit a: b | c(4)"),
        ("row sum", "split j: a | b(4) | c(2)\nunroll b\ntail a shift"),
        ("full sum", "stage add0 at root as s root block 4"),
        ("strided", "unroll j, l\ndetach add0 at k as t\nfuse tj, tl: a"),
        ("bfloat16", "split k: a | b(2)\nmma add0: b\nsplit a: c | d(8)\nsplit d: e | f(1)"),
        ("int8", "split k: a | b(4)\nmma add0: b\nstage arg1 at i as s layout 1,0 cast int32"),
        ("strided", "subtotal add0 at m\nplace add0_sub root"),
        ("convolution", "subtotal add0 at n\nunroll m"),
        ("softmax of columns", "split i: a | b(8)\nunroll a, b\ncooperate b"),
        ("adjoint", "unroll i\nstage arg1 at i as s layout 1,0 group 0,4\nvector j"),
        ("convolution", "stage store0 at k as s\nstage store0 at k as t"),
    ],
)
def test_a_schedule_that_was_wrong(name: str, text: str) -> None:
    root = KERNELS[name]
    try:
        kernel = apply(build(root, TARGET), parse_actions(text))
    except ScheduleError:
        return
    require_same(root, kernel)
