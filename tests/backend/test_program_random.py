"""Programs made at random: what the interpreter computes is what the compiled code computes."""

from __future__ import annotations

import ctypes
import functools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from treadle import extras
from treadle.backend.base import Backend, Function
from treadle.backend.interp.program import run_function
from treadle.ir import ops
from treadle.ir.dtype import TENSOR_DTYPES, DType, bool_, from_compute, index, to_compute, void
from treadle.ir.node import Node

LANES = 8
# those that have a value for every operand, and do not show what a NaN carries
SAFE = [
    op
    for op in ops.SPELLED
    if op not in (ops.CONST, ops.TDIV, ops.TMOD, ops.SHL, ops.SHR, ops.BITCAST)
]


@functools.cache
def backend(name: str) -> Backend:
    try:
        return extras.load(f"treadle.backend.{name}").BACKEND
    except (ImportError, RuntimeError) as error:
        pytest.skip(f"{name}: {error}")


@st.composite
def programs(draw: st.DrawFn) -> tuple[Function, list[DType]]:
    """A function that reads a vector of each of three dtypes, computes, and writes each value."""
    given_dtypes = draw(st.lists(st.sampled_from(TENSOR_DTYPES), min_size=3, max_size=3))
    nodes = []
    params = []
    zero = Node(ops.CONST, index, (), 0)
    for position, dtype in enumerate(given_dtypes):
        params.append(Node(ops.ARG, dtype, (), (position, (LANES,))))
        nodes.append(Node(ops.READ, dtype.vec(LANES), (params[-1], zero)))
    wanted = []
    for _ in range(draw(st.integers(1, 12))):
        op = draw(st.sampled_from(SAFE))
        first = draw(st.sampled_from(nodes))
        if op is ops.CAST:
            target = draw(st.sampled_from(TENSOR_DTYPES)).vec(LANES)
            wanted.append(Node(op, target, (first,)))
        elif op is ops.WHERE:
            test = Node(ops.CAST, bool_.vec(LANES), (draw(st.sampled_from(nodes)),))
            others = [n for n in nodes if n.dtype is first.dtype]
            value = Node(op, first.dtype, (test, first, draw(st.sampled_from(others))))
            wanted += [test, value]
        elif first.dtype.kind in op.accepts:
            others = [n for n in nodes if n.dtype is first.dtype]
            assert op.arity is not None
            rest = [draw(st.sampled_from(others)) for _ in range(op.arity - 1)]
            result = bool_.vec(LANES) if op.dtype == "bool" else first.dtype
            wanted.append(Node(op, result, (first, *rest)))
        nodes = list(dict.fromkeys([*nodes, *wanted]))
    outputs = []
    for position, node in enumerate(nodes, start=len(params)):
        out = Node(ops.ARG, node.dtype.scalar, (), (position, (LANES,)))
        outputs.append(out)
    writes = [
        Node(ops.WRITE, void, (out, zero, node)) for out, node in zip(outputs, nodes, strict=True)
    ]
    dtypes = [*given_dtypes, *(out.dtype for out in outputs)]
    return Function("f", (*params, *outputs), (*nodes, *writes)), dtypes


def random_values(dtype: DType, seed: int) -> np.ndarray:
    """Values of all magnitudes, some of them special."""
    random = np.random.default_rng(seed)
    if dtype is bool_:
        return random.integers(0, 2, LANES).astype(bool)
    if not dtype.is_float:
        raw = random.integers(0, 256, LANES * dtype.itemsize, np.uint8).view(dtype.storage)
        return raw >> random.integers(0, dtype.bits, LANES).astype(dtype.storage)
    values = np.ldexp(random.standard_normal(LANES), random.integers(-40, 40, LANES))
    values[random.integers(0, LANES, 2)] = random.choice([0.0, -0.0, np.inf, -np.inf, np.nan], 2)
    with np.errstate(over="ignore"):
        return from_compute(dtype, values.astype(dtype.compute))


@pytest.mark.parametrize("name", ["llvm", "c"])
@settings(deadline=None, max_examples=40)
@given(program=programs(), seed=st.integers(0, 2**32 - 1))
def test_compiled_programs_do_what_the_interpreter_does(
    name: str, program: tuple[Function, list[DType]], seed: int
) -> None:
    run = backend(name)
    function, dtypes = program
    inputs = [random_values(dtype, seed + n) for n, dtype in enumerate(dtypes[:3])]
    results = []
    library = run.load(run.compile(run.render([function])))
    for compiled in (False, True):
        arrays = [*inputs, *(np.zeros(LANES, dtype.storage) for dtype in dtypes[3:])]
        if compiled:
            slots = np.array([0, *(a.ctypes.data for a in arrays), 0], np.int64)
            places = np.arange(1, len(arrays) + 2, dtype=np.int32)
            native = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
            native(library.address("f"))(slots.ctypes.data, places.ctypes.data, 0)
        else:
            run_function(function, arrays)
        results.append(arrays)
    for dtype, expected, found in zip(dtypes, *results, strict=True):
        a, b = to_compute(dtype, expected), to_compute(dtype, found)
        np.testing.assert_array_equal(a, b)
        if dtype.is_float:
            np.testing.assert_array_equal(np.signbit(a[a == a]), np.signbit(b[b == b]))
