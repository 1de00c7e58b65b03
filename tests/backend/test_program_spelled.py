"""Every scalar operation, of every dtype, as scalars and as vectors: the renderers against the
interpreter, bit by bit, on the values where machines differ. An operation that is not spelled is
its decomposition, on every backend the same one."""

from __future__ import annotations

import ctypes
import functools
import itertools
from collections.abc import Sequence

import numpy as np
import pytest

from treadle import extras
from treadle.backend.base import Backend, Function
from treadle.backend.c import spell as c_spell
from treadle.backend.interp.program import run_function
from treadle.backend.llvm import spell as llvm_spell
from treadle.ir import dtype as dtypes
from treadle.ir import ops
from treadle.ir.decompose import decompose
from treadle.ir.dtype import TENSOR_DTYPES, DType, bool_, from_compute, index, void
from treadle.ir.node import Node, toposort
from treadle.ir.ops import Op

BACKENDS = ("llvm", "c")
LANES = (1, 4, 16)


@functools.cache
def backend(name: str) -> Backend:
    try:
        return extras.load(f"treadle.backend.{name}").BACKEND
    except (ImportError, RuntimeError) as error:
        pytest.skip(f"{name}: {error}")


def edge_values(dtype: DType) -> np.ndarray:
    """Values at which an operation may go wrong, as the dtype stores them."""
    if dtype is bool_:
        return np.array([False, True])
    if dtype.is_float:
        info = {"float64": np.finfo(np.float64), "float16": np.finfo(np.float16)}
        found = info.get(dtype.name, np.finfo(np.float32))
        small = 2.0**-133 if dtype is dtypes.bfloat16 else float(found.smallest_subnormal)
        largest = 3.3895e38 if dtype is dtypes.bfloat16 else float(found.max)
        positive = [0.0, small, 3 * small, float(found.tiny), 0.3, 0.5, 1.0, 1.5, 2.5, 2.9, 3.0]
        positive += [126.5, 127.9, 255.5, 256.0, 1023.0, 32767.5, 65504.0, largest, np.inf]
        if float(found.max) > 1e5:
            positive += [65519.0, 65521.0, 2.0**31, 2.0**32, 2.0**63, 2.0**64, 2.0**-25, 1e30]
            positive += [2147483520.0, 4294967040.0, 1.0 + 2.0**-11, 1 + 3 * 2.0**-11, 2.0**24 + 2]
            positive += [1 + 2.0**-8, 1 + 3 * 2.0**-8, 1 + 2.0**-7, 2.0**-24 * 0.75, 2.0**-127]
        if dtype is dtypes.float64:
            positive += [1e300, 2147483647.5, 4294967295.5, 1.0 + 2.0**-11 + 2.0**-40]
            positive += [1.0 + 2.0**-24 + 2.0**-50, 1.0 + 2.0**-11 + 2.0**-30, 65520.0 - 2**-20]
        with np.errstate(over="ignore"):
            values = np.array([*positive, *(-x for x in positive), np.nan]).astype(dtype.compute)
        return from_compute(dtype, values)
    top = int(dtype.max)
    numbers = {0, 1, 2, 3, 5, 7, 8, 15, 31, 63, 64, 100, top, top - 1, top // 2, top // 2 + 1}
    if dtype.kind in "ix":
        numbers |= {-n for n in numbers} | {-top - 1}
    if dtype.bits >= 32:
        numbers |= {2**24 + 1, 2**24 + 3, 65519, 65520, 65521}
    if dtype.bits == 64:
        numbers |= {2**53 + 1, 2**53 + 3, 2**40 + 2**16 + 1, 2**62 + 2**38 + 1}
    return np.array(sorted(numbers), dtype.storage)


def function(op: Op, sources: Sequence[DType], result: DType, count: int, lanes: int) -> Function:
    """out[i] = op(in0[i], in1[i] ..) for i in 0 .. count, `lanes` elements at a time."""
    vector = [dtype.vec(lanes) for dtype in sources]
    args = [Node(ops.ARG, d, (), (n, (count,))) for n, d in enumerate([*sources, result])]
    ends = (Node(ops.CONST, index, (), 0), Node(ops.CONST, index, (), count))
    loop = Node(ops.LOOP, index, ends, (0, lanes))
    reads = [Node(ops.READ, d, (a, loop)) for a, d in zip(args[:-1], vector, strict=True)]
    value = Node(op, result.vec(lanes), tuple(reads))
    write = Node(ops.WRITE, void, (args[-1], loop, value))
    name = "_".join([op.name, *(d.name for d in sources), result.name, str(lanes)])
    body = (loop, *dict.fromkeys(reads), value, write, Node(ops.END, void, (loop,)))
    return Function(name, tuple(args), body)


def call(address: int, arrays: Sequence[np.ndarray]) -> None:
    """One call by the native signature, with these buffers as parameters."""
    flag = np.zeros(1, np.int64)
    slots = np.array([flag.ctypes.data, *(a.ctypes.data for a in arrays), 1], np.int64)
    places = np.arange(1, len(arrays) + 2, dtype=np.int32)
    native = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)(address)
    native(slots.ctypes.data, places.ctypes.data, 0)


def accepts(op: Op, dtype: DType) -> bool:
    return dtype.kind in op.accepts


def valid(op: Op, columns: list[np.ndarray]) -> list[np.ndarray]:
    """Without the operands that an operation for valid ones may not be given."""
    a, b = columns[0], columns[-1]
    keep = np.ones(len(a), bool)
    if op in (ops.TDIV, ops.TMOD):
        keep = b != 0
        if a.dtype.kind == "i":
            keep &= ~((a == np.iinfo(a.dtype).min) & (b == -1))
    elif op in (ops.SHL, ops.SHR):
        keep = (b >= 0) & (b < a.dtype.itemsize * 8)
    return [column[keep] for column in columns]


def operands(sources: Sequence[DType], op: Op) -> list[np.ndarray]:
    """Every combination of edge values (a third operand takes every fifth), padded to 16."""
    edges = [edge_values(dtype) for dtype in sources]
    if len(edges) == 3 and sources[0].is_float:
        edges = [edge[::3] for edge in edges]
    rows = list(itertools.product(*(range(len(edge)) for edge in edges)))
    columns = [edge[[row[n] for row in rows]] for n, edge in enumerate(edges)]
    columns = valid(op, columns)
    padded = -len(columns[0]) % 16
    return [np.concatenate([c, np.repeat(c[-1:], padded)]) for c in columns]


def cases(dtype: DType) -> list[tuple[Op, tuple[DType, ...], DType]]:
    """(op, source dtypes, result dtype) of every spelled operation whose first operand is dtype."""
    found: list[tuple[Op, tuple[DType, ...], DType]] = []
    for op in ops.SPELLED:
        if op is ops.CAST:
            found += [(op, (dtype,), other) for other in TENSOR_DTYPES]
        elif op is ops.BITCAST and dtype is not bool_:
            same = [other for other in TENSOR_DTYPES if other.bits == dtype.bits]
            found += [(op, (dtype,), other) for other in same]
        elif op is ops.WHERE:
            found.append((op, (bool_, dtype, dtype), dtype))
        elif op not in (ops.CONST, ops.BITCAST) and accepts(op, dtype):
            assert op.arity is not None
            found.append((op, (dtype,) * op.arity, bool_ if op.dtype == "bool" else dtype))
    return found


def bits(dtype: DType, stored: np.ndarray) -> np.ndarray:
    """The bytes, with one pattern for all NaNs: what a NaN carries is nobody's business."""
    if dtype.is_float:
        values = dtypes.to_compute(dtype, stored)
        stored = np.where(np.isnan(values), np.full_like(stored, 0), stored)
        return np.stack([stored.view(f"u{dtype.itemsize}"), np.isnan(values)])
    return stored.view(f"u{dtype.itemsize}")


def judged(
    op: Op, sources: Sequence[DType], result: DType, columns: list[np.ndarray]
) -> np.ndarray:
    """What the interpreter says, all at once: of a spelled operation its meaning, of another its
    decomposition."""
    count = len(columns[0])
    expected = np.zeros(count, result.storage)
    f = function(op, sources, result, count, count)
    if op not in ops.SPELLED:
        f = expanded(f, op, sources[0])
    run_function(f, [*columns, expected])
    return expected


def expanded(f: Function, op: Op, dtype: DType) -> Function:
    """The function with its one operation replaced by the decomposition."""
    parameters, value = decompose(op, dtype)
    body = list(f.body)
    place = next(n for n, node in enumerate(body) if node.op is op)
    wide: dict[Node, Node] = dict(zip(parameters, body[place].src, strict=True))
    steps = []
    for node in toposort(value):
        if node not in wide:
            src = tuple(wide[s] for s in node.src)
            wide[node] = Node(node.op, node.dtype.vec(body[place].dtype.lanes), src, node.arg)
            steps.append(wide[node])
    buffer, offset, _ = body[place + 1].src
    body[place : place + 2] = [*steps, Node(ops.WRITE, void, (buffer, offset, wide[value]))]
    return Function(f.name, f.params, tuple(body))


def compare(run: Backend, todo: list[tuple[Op, tuple[DType, ...], DType]]) -> None:
    """Run every case on a backend with every number of lanes; all that differs is shown."""
    prepared = []
    for op, sources, result in todo:
        columns = operands(sources, op)
        expected = judged(op, sources, result, columns)
        for lanes in LANES:
            f = function(op, sources, result, len(columns[0]), lanes)
            prepared.append((f, columns, expected, result))
    library = run.load(run.compile(run.render([f for f, *_ in prepared])))
    wrong = []
    for f, columns, expected, result in prepared:
        found = np.zeros(len(expected), result.storage)
        call(library.address(f.name), [*columns, found])
        same = bits(result, found) == bits(result, expected)
        places = np.flatnonzero(~same.reshape(-1, len(found)).all(0))
        for i in places[:3]:
            given = [c[i] for c in columns]
            wrong.append(f"{f.name}: {given} gives {found[i]!r}, not {expected[i]!r}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", BACKENDS)
@pytest.mark.parametrize("dtype", TENSOR_DTYPES, ids=repr)
def test_spelled_operations_agree_with_the_interpreter(name: str, dtype: DType) -> None:
    compare(backend(name), cases(dtype))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", BACKENDS)
@pytest.mark.parametrize("dtype", TENSOR_DTYPES, ids=repr)
def test_other_operations_are_their_decompositions(name: str, dtype: DType) -> None:
    todo: list[tuple[Op, tuple[DType, ...], DType]] = []
    for op in ops.TABLE.values():
        if op.kind == "alu" and "p" in op.stages and op.arity is not None and accepts(op, dtype):
            if op in ops.SPELLED or op in (ops.SPLAT, ops.PACK, ops.LANE):
                continue
            if op is not ops.THREEFRY or dtype is dtypes.uint64:
                todo.append((op, (dtype,) * op.arity, dtype))
    if todo:
        compare(backend(name), todo)


def test_every_spelled_operation_has_a_spelling() -> None:
    wanted = {op for op in ops.SPELLED if op is not ops.CONST}
    assert wanted <= set(llvm_spell.SPELLINGS)
    assert wanted <= c_spell.SPELLED
