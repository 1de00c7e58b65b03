"""From scheduled kernels to functions: what is emitted, where, and how often."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernels import (
    CPU,
    arrays_for,
    buffer,
    check,
    elementwise,
    load,
    matmul,
    number,
    ranges,
    reduce,
    row_sum,
    run_functions,
    sink,
    softmax,
    store,
)

from treadle import config
from treadle.ir import index, ops
from treadle.ir.dtype import TENSOR_DTYPES, bfloat16, bool_, float32, float64, int32, int64
from treadle.ir.dtype import index as INDEX
from treadle.ir.node import Node
from treadle.kernel.actions import Split, Tail, apply, grid, unroll, vector
from treadle.kernel.build import build
from treadle.kernel.cooperate import Cooperate
from treadle.kernel.lower import lower


def inner_loop(body: tuple[Node, ...]) -> list[Node]:
    """The steps of the innermost loop of a function that has one."""
    depths, deepest, found = 0, 0, []
    for node in body:
        depths += (node.op is ops.LOOP) - (node.op is ops.END)
        if node.op is ops.LOOP and depths > deepest:
            deepest, found = depths, []
        elif depths == deepest and node.op is not ops.END:
            found.append(node)
    return found


def gather(rows: int, width: int, count: int) -> Node:
    """out[i, j] = table[check(where[i]), j]."""
    i, j = ranges(count, width)
    where = ops.CAST(load(buffer(2, count, dtype=int64), i), dtype=INDEX)
    row = Node(ops.CHECK, INDEX, (where, index.as_node(rows)), 3)
    return sink(store(buffer(0, count, width), load(buffer(1, rows, width), row, j), i, j))


# ---- placing -------------------------------------------------------------------------------------
def test_addresses_are_split_by_loop() -> None:
    """In the loop over k only what depends on k is computed."""
    checked = check(matmul(4, 5, 6))
    inside = [node.op.name for node in inner_loop(checked.functions[0].body)]
    assert sorted(inside) == ["add", "add", "fma", "mul", "read", "read", "read", "write"]


def test_what_does_not_depend_on_the_loop_is_outside() -> None:
    i, j = ranges(3, 4)
    value = ops.MUL(load(buffer(1, 3, 4), i, j), ops.EXP(load(buffer(2, 3), i)))
    checked = check(sink(store(buffer(0, 3, 4), value, i, j)))
    assert ops.EXP not in {node.op for node in inner_loop(checked.functions[0].body)}
    assert checked.count(ops.EXP) == 1


def test_unrolled_tiles_read_each_operand_once() -> None:
    actions = [
        Split("j", "jo", (("ju", 2), ("jv", 4))),
        Split("i", "io", (("iu", 3),)),
        unroll("iu", "ju"),
        vector("jv"),
    ]
    checked = check(matmul(3, 8, 5), actions)
    inside = inner_loop(checked.functions[0].body)
    reads = [n for n in inside if n.op is ops.READ and n.src[0].op is ops.ARG]
    assert len(reads) == 3 + 2
    assert sum(n.op is ops.FMA for n in inside) == 6
    offsets = {n.src[1] for n in inside if n.op is ops.WRITE}
    assert len(offsets) == 6 and all(o.op is ops.CONST for o in offsets)


def test_fma_is_one_rounding_of_a_product_and_a_sum() -> None:
    assert check(matmul(2, 2, 3)).count(ops.FMA) == 1
    i, j = ranges(2, 3)
    x = load(buffer(1, 2, 3), i, j)
    assert check(sink(store(buffer(0, 2), reduce("max", ops.MUL(x, x), j), i))).count(ops.FMA) == 0


def test_a_row_without_lanes_is_one_scalar() -> None:
    checked = check(softmax(3, 4), [grid("i")])
    defined = [n for n in checked.functions[0].body if n.op is ops.DEFINE]
    assert [n.arg[1] for n in defined] == [1, 1]


def test_lanes_are_folded_by_halves_where_there_are_shuffles() -> None:
    actions = [Split("j", "o", (("v", 8),)), vector("v")]
    assert check(row_sum(2, 16), actions).count(ops.LANE) == 8
    shuffling = replace(CPU, intrinsics=frozenset({"shuffle"}))
    checked = check(row_sum(2, 16), actions, target=shuffling)
    assert (checked.count(ops.INTRINSIC), checked.count(ops.LANE)) == (3, 1)


def test_functions_follow_from_the_kernel_alone() -> None:
    kernel = apply(build(matmul(9, 17, 5), CPU), [Split("j", "o", (("v", 8),)), vector("v")])
    assert lower(kernel, "f") == lower(kernel, "f")


def test_parameters_come_in_order() -> None:
    n = index.variable("n", 0, 9)
    (i,) = ranges(n)
    scalar = Node(ops.SCALAR, float32, (), 0)
    value = ops.MUL(load(buffer(1, n), i), scalar)
    checked = check(sink(store(buffer(0, n), value, i)), scalars=(3.0,), variables={"n": 5})
    kinds = [p.op.name for p in checked.functions[0].params]
    assert kinds == ["arg", "arg", "scalar", "variable"]


# ---- tails ---------------------------------------------------------------------------------------
@settings(deadline=None, max_examples=50)
@given(
    st.integers(0, 40).filter(lambda n: n != 1),
    st.integers(1, 3),
    st.sampled_from([2, 4, 8]),
    st.sampled_from(["peel", "mask"]),
)
def test_every_element_is_written_once(size: int, count: int, lanes: int, tail: str) -> None:
    parts = (("m", 2), ("u", count), ("v", lanes))
    actions = [Split("i", "g", parts), unroll("u"), vector("v"), grid("g"), Tail("g", tail)]
    checked = check(elementwise(size), actions)
    assert checked.functions[0].tasks == -(-size // (2 * count * lanes))


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 20), st.integers(0, 20))
def test_unknown_sizes_are_masked(rows: int, columns: int) -> None:
    n, m = index.variable("n", 0, 32), index.variable("m", 0, 32)
    actions = [
        grid("i"),
        Split("j", "o", (("u", 2), ("v", 4))),
        unroll("u"),
        vector("v"),
        Cooperate("u"),
    ]
    check(row_sum(n, m), actions, variables={"n": rows, "m": columns})


def test_lanes_past_the_end_raise_no_flag() -> None:
    actions = [Split("i", "o", (("v", 8),)), vector("v")]
    check(gather(4, 1, 5), actions)


# ---- data-dependent places -----------------------------------------------------------------------
@pytest.mark.parametrize("lanes", [False, True])
def test_a_gather_reads_rows(lanes: bool) -> None:
    root = gather(4, 6, 5)
    actions = [Split("j", "o", (("v", 4),)), vector("v")] if lanes else []
    checked = check(root, actions)
    given_arrays = arrays_for(root, {})
    np.testing.assert_array_equal(checked.arrays[0], given_arrays[1][given_arrays[2]])


@pytest.mark.parametrize("bad", [-1, 4, 1 << 40])
def test_an_index_out_of_range_sets_the_flag_and_reads_inside(bad: int) -> None:
    root = gather(4, 6, 5)
    arrays = arrays_for(root, {})
    arrays[2][2] = bad
    for actions in ([], [Split("i", "o", (("v", 4),)), vector("v")]):
        kernel = apply(build(root, CPU), actions)
        assert run_functions(kernel, lower(kernel, "f"), dict(arrays)) == 3
        with config.CHECK_INDEX.set(0):
            assert run_functions(kernel, lower(kernel, "f"), dict(arrays)) is None


def test_a_scatter_combines_in_order() -> None:
    (i,) = ranges(6)
    where = ops.CAST(load(buffer(2, 6, dtype=int32), i), dtype=INDEX)
    place = Node(ops.CHECK, INDEX, (where, index.as_node(3)), 0)
    values = {
        1: np.array([1, 2, 3, 4, 5, 6], np.float32),
        2: np.array([0, 1, 0, 2, 1, 0], np.int32),
    }
    start = np.array([10, 20, 30], np.float32)
    for monoid, want in (("add", [20, 27, 34]), ("max", [10, 20, 30]), (None, [6, 5, 4])):
        root = sink(store(buffer(0, 3), load(buffer(1, 6), i), place, monoid=monoid))
        got = check(root, arrays={**values, 0: start.copy()})
        assert got.arrays[0].tolist() == want


# ---- dtypes --------------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", TENSOR_DTYPES, ids=str)
def test_every_dtype_in_lanes(dtype: object) -> None:
    (i,) = ranges(13)
    x = load(buffer(1, 13, dtype=dtype), i)
    root = sink(
        store(buffer(0, 13, dtype=dtype), ops.MAX(x, load(buffer(2, 13, dtype=dtype), i)), i)
    )
    check(root, [Split("i", "o", (("u", 2), ("v", 4))), unroll("u"), vector("v")])


def test_casts_and_conditions_in_lanes() -> None:
    (i,) = ranges(11)
    x = load(buffer(1, 11), i)
    flag = ops.AND(ops.LT(x, number(0.5)), load(buffer(2, 11, dtype=bool_), i))
    value = ops.WHERE(flag, ops.CAST(x, dtype=float64), number(2.0, float64), dtype=float64)
    root = sink(store(buffer(0, 11, dtype=float64), value, i))
    check(root, [Split("i", "o", (("v", 4),)), vector("v")])


def test_half_precision_sums_in_float32() -> None:
    check(
        matmul(5, 9, 7, dtype=bfloat16), [Split("j", "o", (("v", 4),)), vector("v")], tolerance=1e-2
    )


# ---- stores that are not contiguous --------------------------------------------------------------
def test_a_transposing_store() -> None:
    i, j = ranges(7, 9)
    root = sink(store(buffer(0, 9, 7), load(buffer(1, 7, 9), i, j), j, i))
    for name in "ij":
        checked = check(root, [Split(name, "o", (("v", 4),)), vector("v")])
        np.testing.assert_array_equal(checked.arrays[0], arrays_for(root, {})[1].T)


def test_a_guarded_store_writes_where_it_may() -> None:
    i, j = ranges(5, 7)
    root = sink(
        store(
            buffer(0, 5, 7), load(buffer(1, 5, 7), i, j), i, j, guard=index.lt(index.add(i, j), 6)
        )
    )
    check(root)
    check(root, [Split("j", "o", (("v", 4),)), vector("v")])


def test_quotients_and_remainders_of_negative_places() -> None:
    (i,) = ranges(12)
    shifted = index.sub(i, 5)
    value = ops.ADD(
        ops.CAST(index.floordiv(shifted, 3), dtype=float32),
        ops.CAST(index.mod(shifted, 4), dtype=float32),
    )
    root = sink(store(buffer(0, 12), value, i))
    for actions in ([], [Split("i", "o", (("v", 4),)), vector("v")]):
        got = check(root, actions).arrays[0]
        places = np.arange(12) - 5
        np.testing.assert_array_equal(got, places // 3 + places % 4)
