"""From kernel nodes to statements: which loops are shared, and that the meaning is kept."""

import numpy as np
from kernels import (
    CPU,
    arrays_for,
    buffer,
    check,
    convolution,
    load,
    matmul,
    number,
    out,
    ranges,
    reduce,
    sink,
    softmax,
    store,
)

from treadle.ir import index, ops
from treadle.ir.dtype import float32, int64
from treadle.ir.node import Node, toposort
from treadle.kernel.build import build
from treadle.kernel.interpret import interpret
from treadle.kernel.kernel import Kernel


def orders(kernel: Kernel) -> dict[str, tuple[str, ...]]:
    return {s.name: s.order for s in kernel.statements}


def test_a_softmax_is_three_loops_in_one_row() -> None:
    kernel = build(softmax(4, 6), CPU)
    assert orders(kernel) == {"max0": ("i", "j"), "add1": ("i", "j2"), "store0": ("i", "j3")}
    assert [sorted(s.reduced) for s in kernel.statements] == [["j"], ["j2"], []]
    assert str(kernel).splitlines()[:3] == [
        "loop i < 4",
        "  loop j < 6 reduced",
        "    max0: max0[i] max= arg1[i, j]",
    ]


def test_a_softmax_over_columns_has_its_column_outermost() -> None:
    assert orders(build(softmax(4, 6, axis=0), CPU)) == {
        "max0": ("j", "i"), "add1": ("j", "i2"), "store0": ("j", "i3"),
    }  # fmt: skip


def test_sibling_reductions_share_their_loop() -> None:
    i, j = ranges(4, 6)
    x = load(buffer(1, 4, 6), i, j)
    total, squares = reduce("add", x, j), reduce("add", ops.MUL(x, x), j)
    root = sink(store(buffer(0, 4), ops.SUB(squares, ops.MUL(total, total)), i))
    kernel = build(root, CPU)
    assert {s.order for s in kernel.statements if s.reduced} == {("i", "j")}
    assert check(root).count(ops.LOOP) == 2


def test_a_reduction_over_rows_runs_in_the_row_loop() -> None:
    i, j = ranges(5, 7)
    total = reduce("add", ops.EXP(load(buffer(1, 5, 7), i, j)), j)
    root = sink(store(buffer(0), reduce("add", ops.LOG(total), i)))
    assert list(orders(build(root, CPU)).values()) == [("i", "j"), ("i",), ()]
    check(root)


def test_a_reduction_that_lacks_the_outer_range_comes_first() -> None:
    """out[i, j] = sum_k a[i, k] * max_l b[k, l]: the maxima are an array, computed before."""
    i, j, k, m = ranges(3, 4, 5, 6)
    inner = reduce("max", load(buffer(2, 5, 6), k, m), m)
    root = sink(
        store(buffer(0, 3, 4), reduce("add", ops.MUL(load(buffer(1, 3, 5), i, k), inner), k), i, j)
    )
    kernel = build(root, CPU)
    assert kernel.statements[0].order == ("k", "l")
    check(root)


def test_two_stores_over_the_same_ranges_share_the_last_loop() -> None:
    i, j = ranges(4, 6)
    x = load(buffer(2, 4, 6), i, j)
    total = reduce("add", x, j)
    doubled = store(buffer(0, 4, 6), ops.ADD(x, x), i, j)
    root = sink(doubled, store(buffer(1, 4, 6), ops.SUB(x, total), i, j))
    names = orders(build(root, CPU))
    assert names["store0"] == names["store1"]
    check(root)


def test_argmax_is_one_loop_with_two_results() -> None:
    i, j = ranges(4, 9)
    x = load(buffer(2, 4, 9), i, j)
    best = reduce("argmax", (x, ops.CAST(j, dtype=int64)), j)
    root = sink(
        store(buffer(0, 4), out(best, 0), i), store(buffer(1, 4, dtype=int64), out(best, 1), i)
    )
    got = check(root)
    given = arrays_for(root, {})[2]
    np.testing.assert_array_equal(got.arrays[1], given.argmax(1))
    assert len(build(root, CPU).statements) == 3


def test_a_reduction_over_ranges_of_one_point_is_its_value() -> None:
    i, j = ranges(4, 1)
    root = sink(store(buffer(0, 4), reduce("add", load(buffer(1, 4, 1), i, j), j), i))
    assert [s.name for s in build(root, CPU).statements] == ["store0"]
    check(root)


def test_the_other_factor_needs_no_guard() -> None:
    """Where the image is outside, the product is 0 whatever the weight is."""
    i, o, x, v = ranges(2, 3, 5, 3)
    place = index.add(x, v, -1)
    guard = index.both(index.le(0, place), index.lt(place, 5))
    image = load(buffer(1, 2, 5), i, place, guard=guard)
    weight = load(buffer(2, 3, 3), o, v, guard=guard)
    root = sink(store(buffer(0, 2, 3, 5), reduce("add", ops.MUL(image, weight), v), i, o, x))
    loads = [n for n in toposort(build(root, CPU).statements[0].values) if n.op is ops.LOAD]
    assert sorted(len(n.src) - 1 - n.arg for n in loads) == [0, 1]
    check(root)


def test_a_guard_that_keeps_a_load_inside_its_buffer_stays() -> None:
    i, v = ranges(5, 3)
    place = index.add(i, v, -1)
    guard = index.both(index.le(0, place), index.lt(place, 5))
    first = load(buffer(1, 5), place, guard=guard)
    second = load(buffer(2, 5), place, guard=guard)
    root = sink(store(buffer(0, 5), reduce("add", ops.MUL(first, second), v), i))
    loads = [n for n in toposort(build(root, CPU).statements[0].values) if n.op is ops.LOAD]
    assert [len(n.src) - 1 - n.arg for n in loads] == [1, 1]
    check(root)


def test_kernels_mean_what_numpy_says() -> None:
    for root, meaning in (
        (matmul(5, 7, 3), lambda a: a[1] @ a[2]),
        (matmul(5, 7, 3, True, True), lambda a: a[1].T @ a[2].T),
        (softmax(3, 9), lambda a: np.exp(a[1]) / np.exp(a[1]).sum(1, keepdims=True)),
    ):
        given = arrays_for(root, {})
        want = meaning(given)
        interpret(build(root, CPU), given)
        np.testing.assert_allclose(given[0], want, rtol=1e-5, atol=1e-6)


def test_a_convolution_means_what_it_says() -> None:
    root = convolution(2, 3, 5, 4, 3, pad=1)
    given = arrays_for(root, {})
    padded = np.pad(given[1], ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    want = np.einsum("ncyxuv,ocuv->noyx", windows, given[2])
    interpret(build(root, CPU), given)
    np.testing.assert_allclose(given[0], want, rtol=1e-5, atol=1e-5)


def test_empty_sums_and_empty_results() -> None:
    i, j = ranges(3, 0)
    root = sink(store(buffer(0, 3), reduce("add", load(buffer(1, 3, 0), i, j), j), i))
    assert check(root).arrays[0].tolist() == [0, 0, 0]
    (i,) = ranges(0)
    check(sink(store(buffer(0, 0), load(buffer(1, 0), i), i)))


def test_runtime_numbers_and_zero_dimensions() -> None:
    scalar = Node(ops.SCALAR, float32, (), 0)
    root = sink(store(buffer(0), ops.MUL(load(buffer(1)), ops.ADD(scalar, number(1.0)))))
    assert check(root, scalars=(2.0,)).functions[0].tasks == 1
