"""Dot instructions as an action: what it refuses and means, when the heuristic takes it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kernel.kernels import (
    CPU,
    GPU,
    buffer,
    check,
    load,
    matmul,
    ranges,
    reduce,
    sink,
    store,
)
from treadle.backend.base import Target
from treadle.ir import index, ops
from treadle.ir.dots import DOTS, GROUP
from treadle.ir.dtype import DType, bfloat16, float32, int8, int16, int32, uint8
from treadle.ir.node import Node, toposort
from treadle.kernel.actions import Split, Tail, apply, unroll, vector
from treadle.kernel.build import build
from treadle.kernel.dot import Inside
from treadle.kernel.heuristic import heuristic
from treadle.kernel.kernel import ScheduleError
from treadle.kernel.schedule_text import parse_actions, show_actions

DOT = replace(CPU, intrinsics=frozenset(dot.feature for dot in DOTS) | {"shuffle"})


def integers(n: int, m: int, k: int, left: DType, right: DType) -> Node:
    """(n, k) @ (k, m) of narrow integers, summed in int32."""
    i, j, s = ranges(n, m, k)
    a = ops.CAST(load(buffer(1, n, k, dtype=left), i, s), dtype=int32)
    b = ops.CAST(load(buffer(2, k, m, dtype=right), s, j), dtype=int32)
    return sink(store(buffer(0, n, m, dtype=int32), reduce("add", ops.MUL(a, b), s), i, j))


def group_of(checked: object, *rows: ops.Op) -> list[Node]:
    """The program nodes of these ops that hold groups, by every function."""
    functions = checked.functions  # type: ignore[attr-defined]
    return [n for f in functions for n in f.body if n.op in rows and n.dtype.scalar is GROUP]


LIST = """
    split k: kq | kp(2)
    mma add0: kp
    split j: jo | jv(8)
    vector jv
    unroll i
"""


@pytest.mark.parametrize("k", [1, 2, 5, 8])
@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("right", [False, True])
def test_a_product_by_groups(k: int, left: bool, right: bool) -> None:
    sum_of = matmul(3, 11, k, left, right, dtype=bfloat16)
    if k == 1:  # a sum of one term is a product
        return
    checked = check(sum_of, parse_actions(LIST), target=DOT, tolerance=1e-2)
    dots = [n for f in checked.functions for n in f.body if n.op is ops.INTRINSIC]
    assert {n.arg for n in dots} == {("dot", "bfloat16", "bfloat16")}


def test_a_group_that_lies_in_memory_is_read_at_once() -> None:
    actions = parse_actions(LIST)
    a = check(matmul(3, 8, 6, dtype=bfloat16), actions, target=DOT, tolerance=1e-2)
    assert len(group_of(a, ops.READ)) == 3  # a row's pair each; the columns' are put together
    assert len(group_of(a, ops.OR)) == 1
    both = check(matmul(3, 8, 6, right=True, dtype=bfloat16), actions, target=DOT, tolerance=1e-2)
    assert len(group_of(both, ops.READ)) == 3 + 8
    assert len(group_of(both, ops.OR)) == 0


@pytest.mark.parametrize("scope", ["jo", "root"])
@pytest.mark.parametrize("k", [6, 7])
def test_panels_in_groups(scope: str, k: int) -> None:
    where = "root as panel root" if scope == "root" else "jo as panel"
    block = " block 8" if scope == "root" else ""
    text = f"""
        split k: kq | kp(2)
        mma add0: kp
        split j: jo | jv(8)
        vector jv
        reorder jo, i
        stage arg2 at {where} layout 0,1 group 0,2{block}
        split panel0: panel0q | panel0p(2)
        mma copy_panel: panel0p
        split panel1: panel1o | panel1v(8)
        vector panel1v
    """
    actions = parse_actions(text)
    assert parse_actions(show_actions(actions)) == actions
    checked = check(matmul(3, 16, k, dtype=bfloat16), actions, target=DOT, tolerance=1e-2)
    writes = [n for f in checked.functions for n in f.body if n.op is ops.WRITE]
    assert [n for n in writes if n.src[2].dtype is GROUP.vec(8)]
    reads = group_of(checked, ops.READ)
    assert any(n.dtype.lanes == 8 for n in reads)


def test_lanes_along_the_sum_hold_groups() -> None:
    text = "split k: ko | kv(4) | kp(2)\nmma add0: kp\nvector kv"
    checked = check(
        matmul(3, 5, 16, right=True, dtype=bfloat16),
        parse_actions(text),
        target=DOT,
        tolerance=2e-2,
    )
    assert {n.dtype.lanes for n in group_of(checked, ops.READ)} == {4}
    odd = matmul(3, 5, 15, right=True, dtype=bfloat16)
    with pytest.raises(ScheduleError, match="a group of kp is not whole: kv cannot be lanes"):
        apply(build(odd, DOT), parse_actions(text))


@pytest.mark.parametrize("k", [8, 10, 11, 13])
def test_four_bytes_at_once(k: int) -> None:
    text = LIST.replace("kp(2)", "kp(4)")
    for left, right in ((uint8, int8), (int8, uint8)):
        root = integers(3, 9, k, left, right)
        random = np.random.default_rng(k)
        arrays = {
            1: random.integers(0, 128, (3, k)).astype(left.storage),
            2: random.integers(0, 128, (k, 9)).astype(right.storage),
        }
        check(root, parse_actions(text), target=DOT, arrays=arrays, tolerance=0)


@pytest.mark.parametrize("left", [int8, uint8, int16])
@pytest.mark.parametrize("right", [int8, uint8, int16])
@pytest.mark.parametrize("k", [8, 9])
def test_integers_of_every_kind(left: DType, right: DType, k: int) -> None:
    random = np.random.default_rng(k)
    for n, m in ((3, 9), (100, 20)):
        root = integers(n, m, k, left, right)
        info = [np.iinfo(dtype.storage) for dtype in (left, right)]
        arrays = {
            1: random.integers(info[0].min, info[0].max, (n, k)).astype(left.storage),
            2: random.integers(info[1].min, info[1].max, (k, m)).astype(right.storage),
        }
        actions = heuristic(build(root, DOT), DOT)
        assert any(isinstance(action, Inside) for action in actions)
        check(root, actions, target=DOT, arrays=arrays, tolerance=0)


@settings(deadline=None, max_examples=25)
@given(
    st.integers(1, 40), st.integers(1, 70), st.integers(2, 40), st.booleans(), st.booleans(),
    st.sampled_from([64, 32, 16]),
)  # fmt: skip
def test_whatever_the_heuristic_does(
    n: int, m: int, k: int, left: bool, right: bool, width: int
) -> None:
    target = replace(DOT, vector_bytes=width, registers=32 if width == 64 else 16)
    root = matmul(n, m, k, left, right, dtype=bfloat16)
    check(root, heuristic(build(root, target), target), target=target, tolerance=3e-2)


@pytest.mark.parametrize(("n", "k"), [(7, 127), (16, 15), (16, 16), (33, 31)])
@pytest.mark.parametrize("first", [True, False])
def test_a_factor_that_is_read_backwards(n: int, k: int, first: bool) -> None:
    i, j, s = ranges(n, 17, k)
    back = index.sub(k - 1, s)
    a = load(buffer(1, n, k, dtype=bfloat16), i, back if first else s)
    b = load(buffer(2, k, 17, dtype=bfloat16), s if first else back, j)
    product = ops.MUL(ops.CAST(a, dtype=float32), ops.CAST(b, dtype=float32))
    root = sink(store(buffer(0, n, 17, dtype=float32), reduce("add", product, s), i, j))
    check(root, heuristic(build(root, DOT), DOT), target=DOT)


def takes_dots(root: Node, target: Target = DOT) -> bool:
    return any(isinstance(a, Inside) for a in heuristic(build(root, target), target))


def test_when_the_heuristic_takes_them() -> None:
    assert takes_dots(matmul(64, 64, 64, dtype=bfloat16))
    assert takes_dots(matmul(64, 64, 63, left=True, right=True, dtype=bfloat16))
    assert takes_dots(integers(64, 64, 64, uint8, int8))
    assert takes_dots(integers(64, 64, 64, int8, int8))
    assert not takes_dots(integers(64, 64, 64, int32, int8))
    assert not takes_dots(matmul(64, 64, 64, dtype=bfloat16), CPU)
    assert not takes_dots(integers(64, 64, 64, uint8, int8), CPU)
    assert not takes_dots(matmul(64, 64, 64, dtype=float32))
    assert not takes_dots(matmul(64, 64, 3, dtype=bfloat16))


def test_what_is_refused() -> None:
    product = build(matmul(4, 16, 8, dtype=bfloat16), DOT)
    split = [Split("k", "kq", (("kp", 2),))]

    def refused(*actions: object, kernel: object = product) -> str:
        with pytest.raises(ScheduleError) as error:
            apply(kernel, actions)  # type: ignore[arg-type]
        return str(error.value)

    assert "takes 2 products, not 8" in refused(Inside("add0", "k"))
    assert "is not the innermost part" in refused(*split, Inside("add0", "kq"))
    assert "is a loop of other statements too" in refused(Inside("add0", "j"))
    assert "kp is no leaf of store0" in refused(*split, Inside("store0", "kp"))
    assert "kp is unroll already" in refused(*split, unroll("kp"), Inside("add0", "kp"))
    assert "it can only be peeled" in refused(*split, Inside("add0", "kp"), Tail("kp", "mask"))
    plain = build(matmul(4, 16, 8, dtype=bfloat16), CPU)
    assert "for which CPU has an instruction" in refused(*split, Inside("add0", "kp"), kernel=plain)
    assert "takes three leaves" in refused(
        Inside("add0", "k"), kernel=build(matmul(4, 16, 8, dtype=bfloat16), GPU)
    )
    n = index.variable("n", 2, 64)
    symbolic = build(matmul(4, 16, n, dtype=bfloat16), DOT)  # type: ignore[arg-type]
    assert "is not known" in refused(*split, Inside("add0", "kp"), kernel=symbolic)
    staged = parse_actions("stage arg2 at root as panel root layout 0,1")
    more = [*staged, Split("panel0", "q", (("p", 2),)), Inside("copy_panel", "p")]
    assert "panel is not staged in groups of 2" in refused(*more)
    groups = parse_actions("stage arg2 at root as panel root layout 1,0 group 0,2")
    apart = [*groups, Split("panel1", "q", (("p", 2),)), Inside("copy_panel", "p")]
    assert "the groups of panel do not begin with p" in refused(*apart)
    with pytest.raises(ScheduleError, match="group names an axis and a size of at least 2"):
        apply(product, parse_actions("stage arg2 at root as panel root group 0,2"))


def test_a_vector_is_the_innermost_loop_but_for_a_group() -> None:
    kernel = build(matmul(4, 16, 32, right=True, dtype=bfloat16), DOT)
    split = Split("k", "ko", (("kv", 4), ("kp", 2)))
    with pytest.raises(ScheduleError, match="kv is not the innermost part of its range"):
        apply(kernel, [split, vector("kv")])
    assert apply(kernel, [split, Inside("add0", "kp"), vector("kv")])


# ---- conversions on the way ----------------------------------------------------------------------


@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("right", [False, True])
def test_what_is_staged_may_be_converted(left: bool, right: bool) -> None:
    text = "stage arg1 at i as rows cast float32\nstage arg2 at root as panel root cast float32"
    actions = parse_actions(text)
    assert parse_actions(show_actions(actions)) == actions
    checked = check(matmul(3, 5, 7, left, right, dtype=bfloat16), actions, tolerance=1e-2)
    assert {s.node.dtype for s in checked.kernel.scratch.values()} == {float32}
    with pytest.raises(ScheduleError, match="not every reader of arg1 converts it to float64"):
        apply(checked.kernel, parse_actions("stage arg1 at i as more cast float64"))


def test_single_numbers_are_not_converted_in_a_tile() -> None:
    root = matmul(100, 70, 90, dtype=bfloat16)
    kernel = apply(build(root, CPU), heuristic(build(root, CPU), CPU))
    assert all(n.op is not ops.CAST for n in toposort(kernel.statement("add0").values))
    assert {name: s.node.dtype for name, s in kernel.scratch.items() if name != "add0"} == {
        "panel": float32, "rows": float32,
    }  # fmt: skip


@settings(deadline=None, max_examples=15)
@given(st.integers(1, 120), st.integers(1, 70), st.integers(2, 40), st.booleans(), st.booleans())
def test_narrow_factors_without_an_instruction(
    n: int, m: int, k: int, left: bool, right: bool
) -> None:
    root = matmul(n, m, k, left, right, dtype=bfloat16)
    check(root, heuristic(build(root, CPU), CPU), tolerance=3e-2)
