"""The rules and passes of `graph/simplify.py`: each has an example that it changes, and keeps every
value; so do they all together on random graphs."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from gradcheck import leaf
from hypothesis import given, settings
from hypothesis import strategies as st

from treadle.backend.interp.graph import evaluate
from treadle.graph import build as b
from treadle.graph import custom
from treadle.graph.call import CHECKPOINT, call
from treadle.graph.grad import gradients
from treadle.graph.loops import cond
from treadle.graph.scan import scan
from treadle.graph.simplify import RULES, merge_reductions, simplify
from treadle.ir import index, ops
from treadle.ir.dtype import (
    TENSOR_DTYPES,
    DType,
    bool_,
    float16,
    float32,
    float64,
    int8,
    int32,
    int64,
    uint64,
    void,
)
from treadle.ir.node import Node, toposort
from treadle.ir.rewrite import hits

Array = np.ndarray
INF, NAN = np.inf, np.nan
SPECIAL = np.array(
    [[0.0, -0.0, 1.0, -1.0], [2.0, INF, -INF, NAN], [3.0, -2.0, 0.5, -0.0]], np.float32
)
OTHER = np.array([[1.0, -0.0, NAN, 0.0], [-1.0, INF, 2.0, 0.5], [3.0, 2.0, -0.5, INF]], np.float32)
X, Y = leaf(0, SPECIAL), leaf(1, OTHER)
TEST = leaf(2, SPECIAL > 0)
PLACE = tuple([index.range_(axis, size) for axis, size in enumerate(X.shape)])
TARGET, SOURCE = (Node(ops.ARG, float32, (), (number, X.shape)) for number in range(2))
COPY = Node(ops.LOAD, float32, (SOURCE, *PLACE), 2)
COPIED = Node(ops.SINK, void, (Node(ops.STORE, void, (TARGET, COPY, *PLACE), (2, None)),))
DERIVED = custom.Derivative("copied", None, None)
ROW = leaf(3, np.array([1, 7, -1]))
WHOLE = leaf(4, np.arange(12, dtype=np.int32).reshape(3, 4))
VALUES: dict[Node, Array] = {
    X: SPECIAL,
    Y: OTHER,
    TEST: SPECIAL > 0,
    ROW: np.array([1, 7, -1]),
    WHOLE: np.arange(12, dtype=np.int32).reshape(3, 4),
}


def raw(op: ops.Op, *src: Node, arg: Any = None, dtype: DType | None = None) -> Node:
    """A node as it is, past the folding of the builders."""
    return op(*src, arg=arg, dtype=dtype)


def full(value: float, dtype: DType = float32) -> Node:
    return b.const(value, dtype, (3, 4))


def one_hot_row() -> Node:
    numbers = b.expand(b.reshape(b.iota(4, int64), (1, 4)), (3, 4))
    return raw(ops.EQ, numbers, b.expand(b.reshape(ROW, (3, 1)), (3, 4)))


EXAMPLES: dict[str, list[Callable[[], Node]]] = {
    "fold": [
        lambda: raw(ops.ADD, full(2.0), full(3.0)),
        lambda: raw(ops.MUL, X, full(1.0)),
        lambda: raw(ops.ADD, X, full(-0.0)),
    ],
    "stop": [lambda: raw(ops.STOP, X)],
    "inline": [lambda: call([raw(ops.SIN, raw(ops.MUL, X, Y))], [X], CHECKPOINT)[0]],
    "again": [
        lambda: raw(ops.AGAIN, full(2.0), X),
        lambda: raw(ops.AGAIN, b.permute(X, (1, 0)), Y),
    ],
    "kernel": [lambda: custom.call(COPIED, [(float32, X.shape)], [X], DERIVED)[0]],
    "twice": [
        lambda: raw(ops.NOT, raw(ops.NOT, TEST)),
        lambda: raw(ops.NEG, raw(ops.NEG, X)),
    ],
    "not equal": [
        lambda: raw(ops.NOT, raw(ops.EQ, X, Y)),
        lambda: raw(ops.NOT, raw(ops.NE, X, Y)),
    ],
    "add negative": [
        lambda: raw(ops.ADD, X, raw(ops.NEG, Y)),
        lambda: raw(ops.ADD, raw(ops.NEG, X), Y),
    ],
    "subtract negative": [lambda: raw(ops.SUB, X, raw(ops.NEG, Y))],
    "idempotent": [lambda: raw(ops.MAX, X, X), lambda: raw(ops.AND, TEST, TEST)],
    "known branch": [
        lambda: cond(b.const(True, bool_), lambda x: x, lambda x: b.alu(ops.NEG, x), X),
        lambda: cond(b.const(False, bool_), lambda x: x, lambda x: b.alu(ops.NEG, x), X),
    ],
    "known factor": [
        lambda: raw(ops.ZMUL, full(-2.0), X),
        lambda: raw(ops.ZMUL, full(0.0), X),
        lambda: raw(ops.ZMUL, full(NAN), X),
    ],
    "decided": [
        lambda: raw(ops.WHERE, TEST, X, X, dtype=float32),
        lambda: raw(ops.WHERE, full(True, bool_), X, Y, dtype=float32),
        lambda: raw(ops.WHERE, full(False, bool_), X, Y, dtype=float32),
    ],
    "negated": [lambda: b.where(raw(ops.NOT, TEST), X, Y)],
    "nested": [
        lambda: b.where(TEST, b.where(TEST, X, full(5.0)), Y),
        lambda: b.where(TEST, X, b.where(TEST, full(5.0), Y)),
    ],
    "cast chain": [
        lambda: b.cast(raw(ops.CAST, X, dtype=float64), float16),
        lambda: b.cast(raw(ops.CAST, X, dtype=float64), int8),
        lambda: b.cast(raw(ops.CAST, TEST, dtype=float32), bool_),
        lambda: b.cast(raw(ops.CAST, WHOLE, dtype=float64), float32),
    ],
    "cast constant": [lambda: raw(ops.CAST, full(2.75), dtype=int32)],
    "same movement": [
        lambda: raw(ops.RESHAPE, raw(ops.RESHAPE, X, arg=(2, 6)), arg=(12,)),
        lambda: raw(ops.PERMUTE, raw(ops.PERMUTE, X, arg=(1, 0)), arg=(1, 0)),
        lambda: raw(ops.PAD, raw(ops.PAD, X, arg=((1, 0), (0, 2))), arg=((0, 1), (1, 0))),
        lambda: raw(ops.SHRINK, raw(ops.SHRINK, X, arg=((1, 3), (0, 3))), arg=((0, 1), (1, 2))),
        lambda: raw(ops.FLIP, raw(ops.FLIP, X, arg=(0,)), arg=(0, 1)),
        lambda: raw(ops.EXPAND, X, arg=(3, 4)),
    ],
    "still": [
        lambda: raw(ops.PERMUTE, full(2.0), arg=(1, 0)),
        lambda: raw(ops.RESHAPE, full(-0.0), arg=(12,)),
        lambda: raw(ops.WINDOW, full(2.0), arg=(0, 2, 1, 0)),
    ],
    "zeros": [
        lambda: raw(ops.PAD, full(0.0), arg=((1, 0), (0, 2))),
        lambda: raw(ops.UNWINDOW, full(0.0), arg=(0, 9, 1, 1)),
    ],
    "shrink of pad": [
        lambda: raw(ops.SHRINK, raw(ops.PAD, X, arg=((1, 2), (2, 1))), arg=((0, 3), (3, 7))),
        lambda: raw(ops.SHRINK, raw(ops.PAD, X, arg=((1, 2), (2, 1))), arg=((1, 4), (2, 6))),
        lambda: raw(ops.SHRINK, raw(ops.PAD, X, arg=((1, 2), (2, 1))), arg=((4, 6), (1, 2))),
    ],
    "empty": [
        lambda: raw(ops.UPDATE, X, b.shrink(Y, [(0, 3), (1, 1)]), arg=((0, 1), (2, 1))),
        lambda: b.scatter(WHOLE, b.cast(b.shrink(WHOLE, [(0, 0), (0, 4)]), int64),
                          b.shrink(WHOLE, [(0, 0), (0, 4)]), 0),
    ],
    "empty reduce": [
        lambda: b.reduce("max", b.shrink(X, [(0, 3), (1, 1)]), 1),
        lambda: b.reduce("add", b.shrink(X, [(0, 0), (0, 4)])),
    ],
    "reduce of expand": [
        lambda: b.reduce("max", b.expand(b.reshape(X, (3, 1, 4)), (3, 5, 4)), 1),
        lambda: b.reduce("max", b.expand(b.reshape(X, (3, 1, 4)), (3, 5, 4)), (0, 1)),
        lambda: b.reduce("add", b.expand(b.reshape(X, (3, 1, 4)), (3, 8, 4)), (1, 2)),
        lambda: b.reduce("add", b.expand(b.reshape(b.cast(WHOLE, int8), (1, 12)), (70, 12)), 0),
    ],
    "indicator": [
        lambda: b.reduce("add", b.where(one_hot_row(), X, 0.0), 1),
        lambda: b.reduce("add", b.where(one_hot_row(), WHOLE, 0), 1),
    ],
}  # fmt: skip


def same(found: Array, want: Array) -> None:
    """Equal bit for bit, but that every NaN is like another."""
    assert found.shape == want.shape
    assert found.dtype == want.dtype
    np.testing.assert_array_equal(found, want)
    if found.dtype.kind == "f":
        numbers = ~np.isnan(want)
        np.testing.assert_array_equal(np.signbit(found[numbers]), np.signbit(want[numbers]))


def test_every_rule_has_an_example() -> None:
    assert set(EXAMPLES) == {rule.name for rule in RULES.rules}
    assert len({rule.name for rule in RULES.rules}) == len(RULES.rules)


@pytest.mark.parametrize(
    ("name", "make"),
    [
        pytest.param(name, make, id=f"{name}-{number}")
        for name, examples in EXAMPLES.items()
        for number, make in enumerate(examples)
    ],
)
def test_rule(name: str, make: Callable[[], Node]) -> None:
    before = make()
    hits.clear()
    (after,) = simplify([before])
    assert hits[f"graph.{name}"] >= 1
    assert (after.shape, after.dtype) == (before.shape, before.dtype)
    same(evaluate([after], VALUES)[0], evaluate([before], VALUES)[0])


def test_a_rule_leaves_alone_what_it_would_change() -> None:
    """Near misses of the rules, each with a value that shows the difference."""
    for node in (
        raw(ops.ADD, X, full(0.0)),  # -0.0 + 0.0 is 0.0
        raw(ops.MUL, X, full(0.0)),  # inf * 0 is NaN
        raw(ops.SUB, X, X),  # inf - inf is NaN
        raw(ops.CAST, raw(ops.CAST, X, dtype=float16), dtype=float32),  # rounds
        raw(ops.CAST, raw(ops.CAST, WHOLE, dtype=float64), dtype=int8),  # saturates, would wrap
        raw(ops.CAST, raw(ops.CAST, X, dtype=int32), dtype=float32),  # truncates
        b.reduce("add", b.where(one_hot_row(), X, 1.0), 1),
    ):
        assert simplify([node]) == [node]


def extremes(dtype: DType) -> Array:
    """Values at the ends of a type, and around those of smaller types."""
    if dtype.is_float:
        numbers = [0.0, -0.0, 0.3, -2.7, 2049.0, 70000.0, 1e30, -1e30, 16777217.0, INF, -INF, NAN]
        ends = np.array(numbers)
        return evaluate([b.cast(leaf(0, ends), dtype)], {leaf(0, ends): ends})[0]
    if dtype is bool_:
        return np.array([False, True])
    powers = [sign << n for n in (7, 8, 11, 15, 24, 31, 53) for sign in (1, -1)]
    around = [power + d for power in powers for d in (-1, 0, 1)]
    inside = [n for n in (0, 1, *around, dtype.min, dtype.max) if dtype.min <= n <= dtype.max]
    return np.array(inside, dtype.storage)


@pytest.mark.parametrize("first", TENSOR_DTYPES, ids=str)
def test_every_chain_of_casts(first: DType) -> None:
    array = extremes(first)
    x = Node(ops.BUFFER, first, (), (0, array.shape, "CPU"))
    merged = 0
    for between in TENSOR_DTYPES:
        for last in TENSOR_DTYPES:
            if first is between or between is last:
                continue
            before = raw(ops.CAST, raw(ops.CAST, x, dtype=between), dtype=last)
            (after,) = simplify([before])
            merged += after is not before
            same(evaluate([after], {x: array})[0], evaluate([before], {x: array})[0])
    assert merged >= (0 if first in (float64, int64, uint64) else 2)


# ---- random graphs -------------------------------------------------------------------------------
UNARY = (ops.NEG, ops.ABS, ops.FLOOR, ops.STOP)
BINARY = (ops.ADD, ops.SUB, ops.MUL, ops.MAX, ops.MIN, ops.ZMUL, ops.DIV)


@st.composite
def graphs(draw: st.DrawFn) -> Node:
    """A graph of raw nodes over X, Y and constants, of shape (3, 4) at every step."""
    numbers = [X, Y, full(0.0), full(1.0), full(-0.0), full(2.0)]
    tests = [TEST, full(True, bool_), one_hot_row()]
    for _ in range(draw(st.integers(1, 14))):
        x, y = draw(st.sampled_from(numbers)), draw(st.sampled_from(numbers))
        test = draw(st.sampled_from(tests))
        kind = draw(st.integers(0, 11))
        if kind <= 1:
            numbers.append(raw(draw(st.sampled_from(UNARY)), x))
        elif kind <= 3:
            numbers.append(raw(draw(st.sampled_from(BINARY)), x, y))
        elif kind == 4:
            numbers.append(raw(ops.WHERE, test, x, y, dtype=float32))
        elif kind == 5:
            tests.append(raw(draw(st.sampled_from((ops.LT, ops.EQ, ops.NE))), x, y))
        elif kind == 6:
            tests.append(raw(ops.NOT, test))
        elif kind == 7:
            through = draw(st.sampled_from((float64, float16, int32, bool_, int8)))
            numbers.append(raw(ops.CAST, raw(ops.CAST, x, dtype=through), dtype=float32))
        elif kind == 8:
            numbers.append(moved(draw, x))
        elif kind == 9:
            axis = draw(st.integers(0, 1))
            monoid = draw(st.sampled_from(("add", "max", "min")))
            row = raw(ops.REDUCE, x, arg=(monoid, (axis,)), dtype=float32)
            ones = raw(ops.RESHAPE, row, arg=(3, 1) if axis else (1, 4))
            numbers.append(raw(ops.EXPAND, ones, arg=(3, 4)))
        elif kind == 10:
            chosen = b.where(test, x, full(0.0))
            numbers.append(b.expand(b.reduce("add", chosen, 1, True), (3, 4)))
        else:
            total = b.reduce("max", b.reduce("max", x, 0, True), 1)
            numbers.append(b.expand(b.reshape(total, (1, 1)), (3, 4)))
    return numbers[-1]


def moved(draw: st.DrawFn, x: Node) -> Node:
    """x after two movements, of shape (3, 4) again."""
    low, high, start = (draw(st.integers(0, 2)) for _ in range(3))
    choice = draw(st.integers(0, 3))
    if choice == 0:
        padded = raw(ops.PAD, x, arg=((low, high), (high, low)))
        first, second = min(start, low + high), min(low, low + high)
        return raw(ops.SHRINK, padded, arg=((first, first + 3), (second, second + 4)))
    if choice == 1:
        return raw(ops.PERMUTE, raw(ops.RESHAPE, x, arg=(4, 3)), arg=(1, 0))
    if choice == 2:
        return raw(ops.FLIP, raw(ops.FLIP, x, arg=(0,)), arg=(0, 1))
    return raw(ops.RESHAPE, raw(ops.RESHAPE, x, arg=(12,)), arg=(3, 4))


@settings(deadline=None, max_examples=300)
@given(graphs())
def test_random_graphs_keep_their_values(root: Node) -> None:
    hits.clear()
    (after,) = simplify([root])
    assert (after.shape, after.dtype) == (root.shape, root.dtype)
    added = 20 * hits["graph.indicator"] + 4 * hits["graph.reduce of expand"]
    assert len(toposort(after)) <= len(toposort(root)) + added + 5
    found, want = evaluate([after, root], VALUES)
    if hits["graph.reduce of expand"] or hits["graph.merge reductions"]:
        np.testing.assert_allclose(found, want, rtol=1e-5)
    else:
        same(found, want)
        assert simplify([after]) == [after]


# ---- passes --------------------------------------------------------------------------------------
@pytest.mark.parametrize("monoid", ["add", "max", "mul"])
def test_a_reduction_of_a_reduction_is_one(monoid: str) -> None:
    values = np.arange(1, 121).reshape(2, 3, 4, 5) % 7 + 1
    x = leaf(5, values)
    inner = b.reduce(monoid, x, (1, 3), keepdim=True)  # (2, 1, 4, 1)
    turned = b.permute(inner, (3, 2, 0, 1))  # (1, 4, 2, 1)
    for axes in ((1,), (2,), (1, 2), (0, 1)):
        before = raw(ops.REDUCE, turned, arg=(monoid, axes), dtype=int64)
        (after,) = simplify([before])
        assert [node.op for node in toposort(after)].count(ops.REDUCE) == 1
        same(evaluate([after], {x: values})[0], evaluate([before], {x: values})[0])


def test_a_reduction_that_others_read_stays() -> None:
    rows = b.reduce("add", WHOLE, 1)
    total = b.reduce("add", rows, 0)
    assert merge_reductions([rows, total]) == [rows, total]
    (merged,) = merge_reductions([total])
    assert merged.arg == ("add", (0, 1))


def loop() -> tuple[list[Node], list[Node]]:
    """(outputs, derivatives) of a loop, whose derivative runs it again with more results."""
    steps = leaf(6, np.linspace(-1, 1, 15).reshape(5, 3))
    start = b.const(0.5, float64, (3,))

    def step(h: Node, x: Node) -> tuple[Node, tuple[Node, Node]]:
        h = b.alu(ops.TANH, b.alu(ops.ADD, h, x))
        return h, (h, b.alu(ops.MUL, h, h))

    last, (every, _) = scan(step, start, steps)
    total = b.alu(ops.ADD, b.reduce("add", last), b.reduce("add", every))
    return [total], [g for g in gradients([total], [b.const(1.0, float64)], [steps]) if g]


def loops_of(roots: list[Node]) -> list[Node]:
    return [node for node in toposort(roots) if node.op is ops.SCAN]


def test_a_loop_and_its_run_for_the_derivative_are_one() -> None:
    outputs, derived = loop()
    before = [*outputs, *derived]
    assert len(loops_of(before)) == 3
    hits.clear()
    after = simplify(before)
    forward, backward = loops_of(after)
    assert hits["graph.merge loops"] == 1
    # the last carry, every h, the carry each step began with; the unread h * h is gone
    assert len(forward.dtype) == 3
    assert backward.arg[4] is not forward.arg[4]
    data = {leaf(6, np.zeros((5, 3))): np.linspace(-1, 1, 15).reshape(5, 3)}
    for found, want in zip(evaluate(after, data), evaluate(before, data)):
        same(found, want)


def test_loops_inside_loops_are_merged() -> None:
    xs = leaf(6, np.zeros((5, 3)))

    def f(start: Node) -> Node:
        def outer(h: Node, x: Node) -> tuple[Node, None]:
            def inner(z: Node, _: None) -> tuple[Node, None]:
                return b.alu(ops.SIN, b.alu(ops.ADD, z, h)), None

            return scan(inner, x, length=3)[0], None

        return scan(outer, start, xs)[0]

    start = leaf(7, np.zeros(3))
    total = f(start)
    derived = gradients([total], [b.ones_like(total)], [start])
    before = [total, *derived]
    after = simplify(before)
    data = {xs: np.linspace(-1, 1, 15).reshape(5, 3), start: np.array([0.1, 0.2, 0.3])}
    for found, want in zip(evaluate(after, data), evaluate(before, data)):
        same(found, want)
    forward, backward = loops_of(after)
    assert len(loops_of([forward.arg[0]])) == 1
    assert len(loops_of([backward.arg[0]])) == 2


def test_symbolic_sizes() -> None:
    n = index.variable("n", 1, 9)
    x = Node(ops.BUFFER, float32, (), (8, (n,), "CPU"))
    total = b.reduce("add", b.expand(b.reshape(x, (1, n, 1)), (n, n, 4)), (0, 2))
    stop = index.dim(index.add(n, 2))
    part = raw(ops.SHRINK, raw(ops.PAD, x, arg=((2, 1),)), arg=((2, stop),))
    (simple, whole) = simplify([total, part])
    assert "reduce" not in {node.op.name for node in toposort(simple)}
    assert whole is x
    values = np.array([1.0, 2.0, -3.0], np.float32)
    found, want = evaluate([simple, total], {x: values}, {"n": 3})
    np.testing.assert_array_equal(found, want)


def test_long_chains_are_linear_and_iterative() -> None:
    x = X
    for _ in range(20_000):
        x = raw(ops.STOP, raw(ops.SIN, x))
    (after,) = simplify([x])
    assert len(toposort(after)) == 20_001
