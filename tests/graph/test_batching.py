"""The batching table: every row against a loop over examples."""

from collections.abc import Callable

import numpy as np
import pytest
from gradcheck import leaf, weighted
from samples import SAMPLES
from transformcheck import SIZE, check_batched, examples

from treadle.backend.interp.graph import evaluate
from treadle.graph import batching, call, custom, loops, scan
from treadle.graph import build as b
from treadle.graph.batching import batched, with_axis
from treadle.graph.forward import tangents
from treadle.graph.grad import gradients
from treadle.ir import index, ops
from treadle.ir.dtype import float64, int64, uint64
from treadle.ir.node import Node, toposort

RANDOM = np.random.default_rng(23)
X = RANDOM.uniform(0.5, 1.5, (3, 4))
COUNTS = RANDOM.integers(1, 50, (3, 4))
KEYS = np.array([3, 2**40], np.uint64)


def integers(op: ops.Op) -> Callable[..., Node]:
    return lambda *xs: b.cast(b.alu(op, *xs), float64)


Samples = list[tuple[Callable[..., Node], tuple[np.ndarray, ...]]]
# Samples of the operations that have no derivative
MORE: dict[ops.Op, Samples] = {
    **{
        op: [(integers(op), (X, X[:1]))]
        for op in (ops.LT, ops.LE, ops.EQ, ops.NE)
    },
    **{
        op: [(integers(op), (COUNTS, COUNTS[::-1].copy()))]
        for op in (ops.AND, ops.OR, ops.XOR, ops.IDIV, ops.MOD, ops.LSHIFT, ops.RSHIFT)
    },
    ops.NOT: [(integers(ops.NOT), (COUNTS,))],
    ops.THREEFRY: [(integers(ops.THREEFRY), (KEYS, KEYS[::-1].copy()))],
    ops.STOP: [(b.stop_gradient, (X,))],
    ops.BITCAST: [(lambda x: b.cast(b.bitcast(x, int64), float64), (X,))],
    ops.SCATTER: [
        (lambda x, i, v: b.scatter(x, i, v, 1, "max"), (X, COUNTS[:, :2] % 4, X[:, :2]))
    ],
}  # fmt: skip
CASES = [
    pytest.param(f, arrays, id=f"{op.name}-{number}")
    for table in (SAMPLES, MORE)
    for op, samples in table.items()
    for number, (f, arrays) in enumerate(samples)
]


def test_every_graph_operation_is_decided() -> None:
    assert scan and call and loops and custom, "importing them adds their rows"
    leaves = {op for op in ops.TABLE.values() if op.kind == "leaf"}
    decided = set(batching.BATCHING) | set(batching.WHOLE_BATCHING) | {ops.OUT, ops.SINK} | leaves
    assert decided >= {op for op in ops.TABLE.values() if "g" in op.stages and op.kind != "index"}


def test_every_row_has_a_sample() -> None:
    assert set(SAMPLES) | set(MORE) == set(batching.BATCHING)


@pytest.mark.parametrize(("f", "arrays"), CASES)
def test_row(f: Callable[..., Node], arrays: tuple[np.ndarray, ...]) -> None:
    check_batched(f, arrays)


@pytest.mark.parametrize(("f", "arrays"), CASES)
def test_batched_twice(f: Callable[..., Node], arrays: tuple[np.ndarray, ...]) -> None:
    """Inside, the first argument has an axis of two equal examples; outside, each may have one."""

    def twice(*nodes: Node) -> Node:
        first = leaf(77, arrays[0])
        pair = b.expand(nodes[0], (2, *nodes[0].shape))
        ((both, _),) = batched([f(first, *nodes[1:])], {first: pair}, 2)
        return both

    check_batched(twice, arrays)


@pytest.mark.parametrize("op", SAMPLES, ids=lambda op: op.name)
def test_derivatives_of_rows(op: ops.Op) -> None:
    """Per-example gradients, and their tangents."""
    for f, arrays in SAMPLES[op]:
        floating = [i for i, a in enumerate(arrays) if a.dtype.kind == "f"]

        def derived(*nodes: Node, f: Callable[..., Node] = f, at: list[int] = floating) -> Node:
            wanted = [nodes[i] for i in at]
            one = b.const(1.0, float64)
            found = gradients([weighted([f(*nodes)], 1)], [one], wanted, unreached="zero")
            given = {node: b.alu(ops.COS, node) for node in wanted}
            moved = [t for t in tangents(found, given) if t is not None]
            return b.alu(ops.ADD, weighted(found, 2), weighted(moved, 3))

        check_batched(derived, arrays)


# ---- what stays unbatched ------------------------------------------------------------------------
def test_what_does_not_depend_on_the_examples_is_computed_once() -> None:
    w, x = leaf(0, X), leaf(1, X)
    y = b.alu(ops.MUL, b.alu(ops.EXP, w), x)
    ((found, _),) = batched([y], {x: leaf(2, examples(X))}, SIZE)
    assert b.alu(ops.EXP, w) in toposort(found)


def test_constants_stay_constants() -> None:
    x = leaf(0, X)
    stretched = with_axis(b.const(2.0, float64, (3, 4)), False, SIZE)
    assert b.constant_of(stretched) is b.const(2.0, float64)
    assert with_axis(x, True, SIZE) is x


def test_reading_one_table_adds_up_in_one_table() -> None:
    table = leaf(0, RANDOM.standard_normal((50, 4)))
    ids = leaf(1, np.array([1, 3, 3]))
    at = b.expand(b.reshape(ids, (3, 1)), (3, 4))
    y = b.gather(table, at, 0)
    stacked = leaf(2, RANDOM.integers(0, 50, (8, 3)))
    ((found, _),) = batched([y], {ids: stacked}, 8)
    (derived,) = gradients([found], [b.ones_like(found)], [table])
    shapes = {node.shape for node in toposort(derived) if node.op is ops.SCATTER}
    assert shapes == {(50, 4)}


def test_symbolic_number_of_examples() -> None:
    size = index.variable("B", 1, 8)
    x, w, at = leaf(0, X), leaf(1, X), leaf(2, COUNTS % 3)
    y = b.alu(ops.ADD, b.gather(w, at, 0), b.reduce("add", b.alu(ops.MUL, x, w), 1, True))
    xs, rows = examples(X), examples(COUNTS % 3)
    own = leaf(3, xs, (size, 3, 4)), leaf(4, rows, (size, 3, 4))
    ((found, _),) = batched([y], {x: own[0], at: own[1]}, size)
    assert found.shape == (size, 3, 4)
    (got,) = evaluate([found], {own[0]: xs, own[1]: rows, w: X}, {"B": SIZE})
    want = [X[r, np.arange(4)] + (v * X).sum(1, keepdims=True) for v, r in zip(xs, rows)]
    np.testing.assert_allclose(got, want)


def test_no_examples() -> None:
    x = leaf(0, X)
    ((found, _),) = batched([b.reduce("add", x, 0)], {x: leaf(1, np.zeros((0, 3, 4)))}, 0)
    assert evaluate([found], {leaf(1, np.zeros((0, 3, 4))): np.zeros((0, 3, 4))})[0].shape == (0, 4)


def test_10_000_operations() -> None:
    x = leaf(0, X)
    y = x
    for _ in range(10_000):
        y = b.alu(ops.SIN, y)
    ((found, _),) = batched([y], {x: leaf(1, examples(X))}, SIZE)
    assert len(toposort(found)) == 10_001


# ---- several outputs, loops ----------------------------------------------------------------------
def test_outputs_of_pairs() -> None:
    def f(x: Node) -> Node:
        where = b.expand(b.reshape(b.iota(4, int64), (1, 4)), (3, 4))
        value, place = b.reduce("argmax", (x, where), 1)
        return b.alu(ops.ADD, value, b.cast(place, float64))

    check_batched(f, (X,))


XS = RANDOM.standard_normal((5, 3))
START = RANDOM.standard_normal(3)
WEIGHT = 0.5 * RANDOM.standard_normal((3, 3))


def recurrence(h: Node, xs: Node, w: Node, reverse: bool = False) -> Node:
    """h = tanh(w h + x), with a count that no example changes."""

    def step(carry: tuple[Node, Node], x: Node) -> tuple[tuple[Node, Node], tuple[Node, Node]]:
        h, count = carry
        product = b.reduce("add", b.alu(ops.MUL, w, h), 1)
        h = b.alu(ops.TANH, b.alu(ops.ADD, product, x))
        part = b.alu(ops.MUL, h, b.cast(count, float64))
        return (h, b.alu(ops.ADD, count, 1)), (part, count)

    (last, total), (shown, counts) = scan.scan(step, (h, b.const(0, int64)), xs, reverse=reverse)
    seen = b.alu(ops.ADD, total, b.reduce("add", counts, 0))
    return b.alu(ops.ADD, b.alu(ops.ADD, last, b.reduce("add", shown, 0)), b.cast(seen, float64))


@pytest.mark.parametrize("reverse", [False, True])
def test_loop(reverse: bool) -> None:
    check_batched(lambda *nodes: recurrence(*nodes, reverse), (START, XS, WEIGHT))


def test_a_loop_for_all_examples_is_one_loop() -> None:
    nodes = [leaf(i, a) for i, a in enumerate((START, XS, WEIGHT))]
    xs = leaf(9, examples(XS))
    ((found, _),) = batched([recurrence(*nodes)], {nodes[1]: xs}, SIZE)
    (loop,) = [node for node in toposort(found) if node.op is ops.SCAN]
    assert [source.shape for source in loop.src[:2]] == [(SIZE, 3), ()]  # the count is one count
    assert loop.src[2].shape == (5, SIZE, 3)


def test_derivatives_of_a_loop() -> None:
    def derived(*nodes: Node) -> Node:
        value = weighted([recurrence(*nodes)], 1)
        found = gradients([value], [b.const(1.0, float64)], nodes)
        moved = tangents(found, {node: b.alu(ops.COS, node) for node in nodes})
        return b.alu(ops.ADD, weighted(found, 2), weighted([t for t in moved if t], 3))

    check_batched(derived, (START, XS[:2], WEIGHT))


def test_a_loop_that_never_sees_an_example_stays() -> None:
    nodes = [leaf(i, a) for i, a in enumerate((START, XS, WEIGHT))]
    y = recurrence(*nodes)
    other = leaf(5, START)
    results = batched([y, b.alu(ops.ADD, y, other)], {other: leaf(6, examples(START))}, SIZE)
    assert results[0] == (y, False)
    assert len([node for node in toposort(results[1][0]) if node.op is ops.SCAN]) == 1


def test_keys_give_each_example_its_own_numbers() -> None:
    key = Node(ops.PLACEHOLDER, uint64, (), (-1, ()))
    drawn = b.alu(ops.THREEFRY, b.iota(4, uint64), key)
    keys = leaf(0, np.arange(SIZE, dtype=np.uint64))
    ((found, _),) = batched([drawn], {key: keys}, SIZE)
    (got,) = evaluate([found], {keys: np.arange(SIZE, dtype=np.uint64)})
    for n in range(SIZE):
        one = b.alu(ops.THREEFRY, b.iota(4, uint64), b.const(n, uint64))
        np.testing.assert_array_equal(got[n], evaluate([one], {})[0])


def test_what_is_computed_again_for_an_example_is_the_same_for_all() -> None:
    x, late = leaf(0, X), leaf(1, X)
    y = ops.AGAIN(x, late)
    stacked = leaf(2, examples(X))
    assert batched([y], {late: stacked}, SIZE) == [(ops.AGAIN(x, stacked), False)]
    assert batched([y], {x: stacked}, SIZE) == [(ops.AGAIN(stacked, late), True)]
    assert tangents([y], {late: x}) == [None]


def test_a_call_for_all_examples_is_a_call() -> None:
    x, w = leaf(0, X), leaf(1, X)
    roots = [b.alu(ops.SIN, b.alu(ops.MUL, x, w)), b.alu(ops.EXP, w)]
    outputs = call.call(roots, [x, w], call.CHECKPOINT)
    check_batched(lambda x, w: b.alu(ops.ADD, *call.call(roots, [x, w], call.CHECKPOINT)), (X, X))
    found = batched(outputs, {x: leaf(2, examples(X))}, SIZE)
    assert [has for _, has in found] == [True, False]
    assert {y.src[0].op for y, _ in found} == {ops.CALL}
    one = b.ones_like(outputs[0])
    for one_of in (tangents(outputs, {x: w}), tangents(gradients(outputs[:1], [one], [w]), {x: w})):
        plain = call.inline([t for t in one_of if t is not None])
        assert ops.CALL not in {node.op for node in toposort(plain)}
