"""Loops, branches, memory, masks, checks and parameters, on every backend of a CPU; the same small
programs run by the interpreter, LLVM and C through their runners."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from treadle import extras
from treadle.backend.base import Backend, Function
from treadle.backend.interp.program import run_function, run_tasks
from treadle.ir import ops
from treadle.ir.dtype import (
    BY_NAME,
    TENSOR_DTYPES,
    DType,
    bfloat16,
    bool_,
    float16,
    float32,
    index,
    int32,
    void,
)
from treadle.ir.node import Node

BACKENDS = ("interp", "llvm", "c")


@functools.cache
def backend(name: str) -> Backend:
    try:
        return extras.load(f"treadle.backend.{name}").BACKEND
    except (ImportError, RuntimeError) as error:
        pytest.skip(f"{name}: {error}")


# ---- a small language for programs ---------------------------------------------------------------


def number(value: int | float | bool, dtype: DType = index) -> Node:
    return Node(ops.CONST, dtype, (), dtype.to_bits(value))


def buffer(position: int, dtype: DType, *shape: int | Node) -> Node:
    return Node(ops.ARG, dtype, (), (position, shape))


def loop(first: Node, stop: Node, step: int = 1, number_: int = 0) -> Node:
    return Node(ops.LOOP, index, (first, stop), (number_, step))


def end(head: Node) -> Node:
    return Node(ops.END, void, (head,))


def read(dtype: DType, place: Node, offset: Node, *mask: Node) -> Node:
    return Node(ops.READ, dtype, (place, offset, *mask))


def write(place: Node, offset: Node, value: Node, *mask: Node, hint: str | None = None) -> Node:
    return Node(ops.WRITE, void, (place, offset, value, *mask), hint)


def splat(value: Node, lanes: int) -> Node:
    return Node(ops.SPLAT, value.dtype.vec(lanes), (value,))


def aligned(array: np.ndarray) -> np.ndarray:
    """A copy that begins at a multiple of 64 bytes, as every buffer of the engine does."""
    memory = np.zeros(array.nbytes + 64, np.uint8)
    start = -memory.ctypes.data % 64
    copy = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


TASK = Node(ops.SPECIAL, index, (), ("task", 0, 4))


def run(
    name: str,
    function: Function,
    buffers: Sequence[np.ndarray],
    scalars: Sequence[np.ndarray] = (),
    variables: dict[str, int] | None = None,
    first_code: int = 10,
    threads: int = 2,
) -> int:
    """Run all tasks on a backend, through its runner; the error flag. The buffers are written."""
    b = backend(name)
    library = b.load(b.compile(b.render([function])))
    runner = b.run(threads=threads, portable=False)
    values: list[int] = [0]
    memory = [aligned(array) for array in buffers]
    for param in function.params:
        if param.op is ops.ARG:
            values.append(memory[param.arg[0]].ctypes.data)
        elif param.op is ops.VARIABLE:
            assert variables is not None
            values.append(variables[param.arg[0]])
        else:
            bits = np.zeros(8, np.uint8)
            stored = np.frombuffer(np.asarray(scalars[param.arg]).tobytes(), np.uint8)
            bits[: len(stored)] = stored
            values.append(int(bits.view(np.int64)[0]))
    values.append(first_code)
    builder = runner.builder(len(values))
    tasks = function.tasks
    assert isinstance(tasks, int)
    builder.kernel(library.address(function.name), range(1, len(values)), tasks, 0)
    program = builder.build()
    program.slots[1:] = values[1:]
    runner.run(program)
    for array, copy in zip(buffers, memory, strict=True):
        array[...] = copy
    return int(program.flag[0])


@pytest.fixture(params=BACKENDS)
def on(request: pytest.FixtureRequest) -> str:
    backend(request.param)
    return str(request.param)


# ---- loops and branches --------------------------------------------------------------------------


@pytest.mark.parametrize("count", [0, 1, 5])
def test_a_loop_with_a_symbolic_bound(on: str, count: int) -> None:
    n = Node(ops.VARIABLE, index, (), ("n", 0, 8))
    x, y = buffer(0, int32, 8), buffer(1, int32, 8)
    i = loop(number(0), n)
    value = read(int32, x, i)
    twice = ops.ADD(value, value)
    f = Function("f", (x, y, n), (i, value, twice, write(y, i, twice), end(i)))
    source, out = np.arange(8, dtype=np.int32), np.full(8, -1, np.int32)
    run(on, f, [source, out], variables={"n": count})
    assert out.tolist() == [2 * k for k in range(count)] + [-1] * (8 - count)


@pytest.mark.parametrize("bounds", [(0, 6, 2), (1, 6, 3), (4, 4, 1), (5, 4, 1), (2, 3, 4)])
def test_constant_bounds_and_steps(on: str, bounds: tuple[int, int, int]) -> None:
    first, stop, step = bounds
    y = buffer(0, int32, 8)
    i = loop(number(first), number(stop), step)
    f = Function("f", (y,), (i, write(y, i, number(1, int32)), end(i)))
    out = np.zeros(8, np.int32)
    run(on, f, [out])
    assert np.flatnonzero(out).tolist() == list(range(first, stop, step))


@pytest.mark.parametrize("name", ["int32", "uint32", "int8", "uint64"])
def test_counters_and_offsets_of_other_integers(on: str, name: str) -> None:
    dtype = BY_NAME[name]
    y = buffer(0, dtype, 8)
    i = Node(ops.LOOP, dtype, (number(1, dtype), number(7, dtype)), (0, 2))
    out = np.zeros(8, dtype.storage)
    run(on, Function("f", (y,), (i, write(y, i, i), end(i))), [out])
    assert out.tolist() == [0, 1, 0, 3, 0, 5, 0, 0]


def test_nested_loops_accumulate_in_scratch(on: str) -> None:
    x, y = buffer(0, float32, 3, 4), buffer(1, float32, 3)
    total = Node(ops.DEFINE, float32, (), ("total", 1, "thread"))
    i, j = loop(number(0), number(3)), loop(number(0), number(4), 1, 1)
    row = ops.MUL(i, number(4))
    place = ops.ADD(row, j)
    before, value = read(float32, total, number(0)), read(float32, x, place)
    after = ops.ADD(before, value)
    body = (
        total, i, row, write(total, number(0), number(0.0, float32)),
        j, place, before, value, after, write(total, number(0), after), end(j),
        before, write(y, i, before), end(i),
    )  # fmt: skip
    source = np.arange(12, dtype=np.float32).reshape(3, 4)
    out = np.zeros(3, np.float32)
    run(on, Function("f", (x, y), body), [source, out])
    assert out.tolist() == source.sum(1).tolist()


def test_a_value_hidden_in_a_loop_is_visible_again_after_it(on: str) -> None:
    x = buffer(0, int32, 4)
    value = read(int32, x, number(0))
    i = loop(number(0), number(2))
    raised = ops.ADD(value, number(1, int32))
    body = (
        value, i, value, raised, write(x, number(0), raised), end(i),
        write(x, number(1), value), value, write(x, number(2), value),
    )  # fmt: skip
    out = np.array([7, 0, 0, 0], np.int32)
    run(on, Function("f", (x,), body), [out])
    assert out.tolist() == [9, 7, 9, 0]


def test_branches(on: str) -> None:
    y = buffer(0, int32, 4)
    condition = ops.LT(TASK, number(2))
    branch = Node(ops.IF, void, (condition,))
    body = (TASK, condition, branch, write(y, TASK, number(5, int32)), end(branch))
    out = np.zeros(4, np.int32)
    run(on, Function("f", (y,), body, tasks=4), [out])
    assert out.tolist() == [5, 5, 0, 0]


def test_tasks_are_all_run_once(on: str) -> None:
    y = buffer(0, int32, 1000)
    value = read(int32, y, TASK)
    body = (TASK, value, write(y, TASK, ops.ADD(value, number(1, int32))))
    body = (*body[:2], body[2].src[2], body[2])
    for tasks in (0, 1, 7, 1000):
        out = np.zeros(1000, np.int32)
        run(on, Function("f", (y,), body, tasks=tasks), [out])
        assert out.tolist() == [1] * tasks + [0] * (1000 - tasks)


# ---- memory --------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", TENSOR_DTYPES, ids=repr)
@pytest.mark.parametrize("lanes", [1, 8])
def test_masked_reads_and_writes(on: str, dtype: DType, lanes: int) -> None:
    x, y, m = buffer(0, dtype, 16), buffer(1, dtype, 16), buffer(2, bool_, 16)
    i = loop(number(0), number(16), lanes)
    mask = read(bool_.vec(lanes), m, i)
    value = read(dtype.vec(lanes), x, i, mask)
    other = Node(ops.NOT, bool_.vec(lanes), (mask,))
    writes = write(y, i, value, mask), write(x, i, value, other)
    f = Function("f", (x, y, m), (i, mask, value, other, *writes, end(i)))
    source = np.arange(1, 17).astype(dtype.storage)
    mask_values = np.arange(16) % 3 == 0
    arrays = [source.copy(), np.full(16, 1, dtype.storage), mask_values]
    run(on, f, arrays)
    zero = np.zeros(1, dtype.storage)
    assert arrays[0].tolist() == np.where(mask_values, source, zero).tolist()
    assert arrays[1].tolist() == np.where(mask_values, source, np.ones(1, dtype.storage)).tolist()


def test_a_mask_keeps_an_access_inside_its_buffer() -> None:
    x, y = buffer(0, float32, 5), buffer(1, float32, 8)
    lanes = Node(ops.LANES, index.vec(8), ())
    mask = Node(ops.LT, bool_.vec(8), (lanes, splat(number(5), 8)))
    value = read(float32.vec(8), x, number(0), mask)
    body = (lanes, splat(number(5), 8), mask, value, write(y, number(0), value))
    out = np.full(8, 9, np.float32)
    run_function(Function("f", (x, y), body), [np.arange(5, dtype=np.float32), out])
    assert out.tolist() == [0, 1, 2, 3, 4, 0, 0, 0]
    unmasked = read(float32.vec(8), x, number(0))
    with pytest.raises(IndexError, match="touches elements 0 to 7"):
        run_function(Function("f", (x,), (unmasked,)), [np.zeros(5, np.float32)])


def test_vector_access_under_one_condition(on: str) -> None:
    x, y = buffer(0, float32, 32), buffer(1, float32, 32)
    offset = ops.MUL(TASK, number(8))
    condition = ops.LT(TASK, number(2))
    mask = splat(condition, 8)
    value = read(float32.vec(8), x, offset, mask)
    shown = write(y, offset, value), write(x, offset, value, mask)
    body = tuple(dict.fromkeys((TASK, offset, condition, mask, value, *shown)))
    source, out = np.arange(32, dtype=np.float32), np.full(32, 5, np.float32)
    run(on, Function("f", (x, y), body, tasks=4), [source, out])
    assert out.tolist() == [*range(16), *[0] * 16]


@pytest.mark.parametrize("offset", [0, 4, 1])
def test_nontemporal_stores_are_stores(on: str, offset: int) -> None:
    x, y = buffer(0, float32, 80), buffer(1, float32, 80)
    i = loop(number(0), number(64), 16)
    value = read(float32.vec(16), x, i)
    place = ops.ADD(i, number(offset))
    body = (i, value, place, write(y, place, value, hint="nontemporal"), end(i))
    source, out = np.arange(80, dtype=np.float32), np.zeros(80, np.float32)
    run(on, Function("f", (x, y), body), [source, out])
    assert out[offset : offset + 64].tolist() == list(range(64))
    assert out[:offset].tolist() == [0] * offset


@pytest.mark.parametrize("dtype", TENSOR_DTYPES, ids=repr)
def test_scratch_memory_of_every_dtype(on: str, dtype: DType) -> None:
    x, y = buffer(0, dtype, 8), buffer(1, dtype, 8)
    scratch = Node(ops.DEFINE, dtype, (), ("s", 8, "thread"))
    whole = read(dtype.vec(8), x, number(0))
    i = loop(number(0), number(8))
    back = ops.SUB(number(7), i)
    one = read(dtype, scratch, back)
    body = (
        scratch,
        whole,
        write(scratch, number(0), whole),
        i,
        back,
        one,
        write(y, i, one),
        end(i),
    )
    source = np.arange(8).astype(dtype.storage)
    out = np.zeros(8, dtype.storage)
    run(on, Function("f", (x, y), body), [source, out])
    assert out.tolist() == source[::-1].tolist()


# ---- vectors -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["float32", "int64", "bool", "uint8", "bfloat16", "float16"])
def test_pack_lane_splat_shuffle(on: str, name: str) -> None:
    dtype = BY_NAME[name]
    x, y = buffer(0, dtype, 4), buffer(1, dtype, 16)
    parts = [read(dtype, x, number(n)) for n in (3, 1, 2, 0)]
    packed = Node(ops.PACK, dtype.vec(4), tuple(parts))
    lane = Node(ops.LANE, dtype, (packed,), 1)
    spread = splat(lane, 4)
    mixed = Node(ops.INTRINSIC, dtype.vec(4), (packed, spread), ("shuffle", (0, 5, 3, 4)))
    body = (
        *parts, packed, lane, spread, mixed,
        write(y, number(0), packed), write(y, number(4), spread), write(y, number(8), mixed),
        Node(ops.INTRINSIC, void, (x, number(2)), ("prefetch",)),
    )  # fmt: skip
    source = np.array([1, 0, 3, 4]).astype(dtype.storage)
    out = np.zeros(16, dtype.storage)
    run(on, Function("f", (x, y), body), [source, out])
    a = source.tolist()
    order = [a[3], a[1], a[2], a[0], a[1], a[1], a[1], a[1], a[3], a[1], a[0], a[1]]
    assert out[:12].tolist() == order


def test_constants_in_vectors(on: str) -> None:
    y = buffer(0, index, 8)
    lanes = Node(ops.LANES, index.vec(4), ())
    most = Node(ops.CONST, index.vec(4), (), -(1 << 63))
    total = Node(ops.ADD, index.vec(4), (lanes, most))
    f = Function("f", (y,), (lanes, total, write(y, number(0), total)))
    out = np.zeros(8, np.int64)
    run(on, f, [out])
    assert out[:4].tolist() == [-(1 << 63) + n for n in range(4)]


def test_float_constants_are_exact(on: str) -> None:
    values = [0.0, -0.0, 0.1, float("inf"), float("-inf"), float("nan"), 2.0**-140, 3.4e38]
    y = buffer(0, float32, 8)
    f = Function(
        "f", (y,), tuple(write(y, number(n), number(v, float32)) for n, v in enumerate(values))
    )
    out = np.ones(8, np.float32)
    run(on, f, [out])
    expected = np.array(values, np.float32)
    assert out.view(np.uint32).tolist() == expected.view(np.uint32).tolist()


# ---- parameters and checks -----------------------------------------------------------------------


@pytest.mark.parametrize("dtype", TENSOR_DTYPES, ids=repr)
def test_run_time_scalars(on: str, dtype: DType) -> None:
    y = buffer(0, dtype, 2)
    s = [Node(ops.SCALAR, dtype, (), n) for n in range(2)]
    f = Function("f", (y, *s), (write(y, number(0), s[1]), write(y, number(1), s[0])))
    given = np.array([1, 0], bool) if dtype is bool_ else np.array([3, 77]).astype(dtype.storage)
    out = np.zeros(2, dtype.storage)
    run(on, f, [out], scalars=[given[0], given[1]])
    assert out.tolist() == given[::-1].tolist()


@pytest.mark.parametrize("lanes", [1, 4])
def test_a_failed_check_sets_the_flag_once(on: str, lanes: int) -> None:
    x = buffer(0, int32, 16)
    offset = ops.MUL(TASK, number(4))
    value = read(int32.vec(lanes), x, offset)
    limit = number(100, int32) if lanes == 1 else splat(number(100, int32), lanes)
    wrong = Node(ops.LE, bool_.vec(lanes), (limit, value))
    flag = Node(ops.FLAG, void, (wrong,), 3)
    later = Node(ops.FLAG, void, (wrong,), 5)
    body = tuple(dict.fromkeys((TASK, offset, value, limit, wrong, flag, later)))
    f = Function("f", (x,), body, tasks=4)
    good = np.arange(16, dtype=np.int32)
    assert run(on, f, [good.copy()], first_code=10) == 0
    bad = good.copy()
    bad[8 if lanes == 1 else 11] = 100
    assert run(on, f, [bad], first_code=10, threads=1) == 13
    assert run_tasks(f, [bad]) == 3


def test_what_breaks_the_law_is_refused() -> None:
    y = buffer(0, float32, 4)
    i = loop(number(0), number(4))
    inside = ops.ADD(i, i)
    after = Function("f", (y,), (i, inside, end(i), write(y, inside, number(0.0, float32))))
    with pytest.raises(ValueError, match="outside its loop"):
        run_function(after, [np.zeros(4, np.float32)])
    for name in BACKENDS:
        b = backend(name)
        opened = Function("f", (y,), (i,))
        with pytest.raises(ValueError, match="not closed"):
            if name == "interp":
                run_function(opened, [np.zeros(4, np.float32)])
            b.render([opened])
        if name == "interp":
            continue
        with pytest.raises(ValueError, match="before it is defined"):
            b.render([Function("f", (y,), (write(y, i, number(0.0, float32)),))])
        with pytest.raises(ValueError, match="one name"):
            b.render([Function("f", (), ()), Function("f", (), ())])
        thread = Node(ops.SPECIAL, index, (), ("thread", 0, 4))
        with pytest.raises(ValueError, match="no threads"):
            b.render([Function("f", (), (thread,))])
        shared = Node(ops.DEFINE, float32, (), ("s", 8, "shared"))
        with pytest.raises(ValueError, match="a thread's, of constant size"):
            b.render([Function("f", (), (shared,))])
        library = b.load(b.compile(b.render([Function("f", (), ())])))
        with pytest.raises(KeyError, match="no function 'g'"):
            library.address("g")


def test_threads_of_a_block_meet_at_barriers() -> None:
    """Each thread writes its number, all wait, and each reads its neighbour's."""
    y = buffer(0, index, 4)
    me = Node(ops.SPECIAL, index, (), ("thread", 0, 4))
    shared = Node(ops.DEFINE, index, (), ("s", 4, "shared"))
    barrier = Node(ops.INTRINSIC, void, (), ("barrier",))
    neighbour = ops.TMOD(ops.ADD(me, number(1)), number(4))
    value = read(index, shared, neighbour)
    body = (
        me, shared, write(shared, me, me), barrier,
        neighbour.src[0], neighbour, value, write(y, me, value),
    )  # fmt: skip
    out = np.zeros(4, np.int64)
    run_function(Function("f", (y,), body, block=(4,)), [out])
    assert out.tolist() == [1, 2, 3, 0]


# ---- programs ------------------------------------------------------------------------------------


def test_a_program_with_a_loop_and_phases(on: str) -> None:
    """for step in range(5): a += step (4 tasks); then b = a, as a phase of its own."""
    a, b_ = buffer(0, index, 4), buffer(1, index, 4)
    step = Node(ops.VARIABLE, index, (), ("step", 0, 5))
    old = read(index, a, TASK)
    new = ops.ADD(old, step)
    adding = Function("adding", (a, step), (TASK, old, new, write(a, TASK, new)), tasks=4)
    copying = Function("copying", (a, b_), (TASK, old, write(b_, TASK, old)), tasks=4)
    be = backend(on)
    library = be.load(be.compile(be.render([adding, copying])))
    runner = be.run(threads=2, portable=False)
    build = runner.builder(5)  # flag, a, b, step, first code
    build.begin_loop(3, 5)
    record = build.phase([(library.address("adding"), [1, 3, 4], 4, 0)])
    build.end_loop()
    build.hold()
    build.phase([(library.address("copying"), [1, 2, 4], 4, 0)])
    program = build.build()
    x, y = np.arange(4), np.zeros(4, np.int64)
    program.slots[1:3] = x.ctypes.data, y.ctypes.data
    runner.run(program)
    assert y.tolist() == [10, 11, 12, 13]
    program.records[record]["ntasks"] = 2
    program.records[0]["trips"] = 1
    runner.run(program)
    assert x.tolist() == [10, 11, 12, 13]
    program.records[0]["trips"] = 0
    runner.run(program)
    assert program.completed


def test_a_program_stops_before_the_phase_after_a_failed_check(on: str) -> None:
    y = buffer(0, int32, 1)
    flag = Node(ops.FLAG, void, (number(True, bool_),), 2)
    failing = Function("failing", (y,), (flag, write(y, number(0), number(1, int32))))
    after = Function("after", (y,), (write(y, number(0), number(2, int32)),))
    be = backend(on)
    library = be.load(be.compile(be.render([failing, after])))
    runner = be.run(threads=1, portable=False)
    build = runner.builder(3)
    build.kernel(library.address("failing"), [1, 2], 1)
    build.kernel(library.address("after"), [1, 2], 1)
    program = build.build()
    out = np.zeros(1, np.int32)
    program.slots[1:] = out.ctypes.data, 40
    runner.run(program)
    assert (out[0], program.flag[0], program.completed) == (1, 42, False)


# ---- helpers of the renderers --------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [float16, bfloat16, float32], ids=repr)
def test_what_is_not_spelled_is_called_or_inlined_alike(on: str, dtype: DType) -> None:
    """A chain of operations gives the same bits inline, out of line, as scalars and as vectors."""
    x, y = buffer(0, dtype, 16), buffer(1, dtype, 16)

    def chain(length: int, lanes: int) -> Function:
        i = loop(number(0), number(16), lanes)
        values = [read(dtype.vec(lanes), x, i)]
        for _ in range(length):
            values.append(Node(ops.CEIL, dtype.vec(lanes), (values[-1],)))
            values.append(Node(ops.ABS, dtype.vec(lanes), (values[-1],)))
        body = (i, *values, write(y, i, values[-1]), end(i))
        return Function("f", (x, y), body)

    source = np.linspace(-8, 8, 16).astype(np.float32)
    stored = (source.view(np.uint32) >> 16).astype(np.uint16)
    given = stored if dtype is bfloat16 else source.astype(dtype.storage)
    results = []
    for length in (1, 200):
        for lanes in (1, 16):
            out: Any = np.zeros(16, dtype.storage)
            run(on, chain(length, lanes), [given, out])
            results.append(out.tolist())
    assert results[0] == results[1] == results[2] == results[3]
