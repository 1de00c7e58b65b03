"""`scan`: its values, its shape in the program, its derivatives, its errors."""

from typing import Any, NamedTuple

import numpy as np
import pytest
from gradcheck import check, leaf

from treadle.backend.interp.graph import evaluate
from treadle.graph import build as b
from treadle.graph.body import substitute
from treadle.graph.grad import gradients
from treadle.graph.scan import scan
from treadle.graph.simplify import simplify
from treadle.ir import index, ops
from treadle.ir.dtype import float16, float32, float64, int64
from treadle.ir.node import Node, toposort

RANDOM = np.random.default_rng(3)
XS = RANDOM.standard_normal((5, 3))
START = RANDOM.standard_normal(3)
WEIGHT = 0.5 * RANDOM.standard_normal((3, 3))


def add(x: Any, y: Any) -> Node:
    return b.alu(ops.ADD, x, y)


def mul(x: Any, y: Any) -> Node:
    return b.alu(ops.MUL, x, y)


def product(w: Node, h: Node) -> Node:
    """A matrix times a vector."""
    return b.reduce("add", mul(w, h), 1)


def running_sum(start: Node, xs: Node, reverse: bool = False) -> tuple[Node, Node]:
    def step(total: Node, x: Node) -> tuple[Node, Node]:
        total = add(total, x)
        return total, total

    return scan(step, start, xs, reverse=reverse)


def recurrence(start: Node, xs: Node, w: Node, reverse: bool = False) -> tuple[Node, Node]:
    """h = tanh(w h + x), the smallest recurrent network."""

    def step(h: Node, x: Node) -> tuple[Node, Node]:
        h = b.alu(ops.TANH, add(product(w, h), x))
        return h, mul(h, h)

    return scan(step, start, xs, reverse=reverse)


def values(roots: list[Node], *arrays: np.ndarray, **variables: int) -> list[np.ndarray]:
    return evaluate(roots, {leaf(i, a): a for i, a in enumerate(arrays)}, variables)


@pytest.mark.parametrize("reverse", [False, True])
def test_running_sums(reverse: bool) -> None:
    last, sums = running_sum(leaf(0, START), leaf(1, XS), reverse)
    found_last, found = values([last, sums], START, XS)
    order = XS[::-1] if reverse else XS
    want = START + np.cumsum(order, axis=0)
    np.testing.assert_allclose(found, want[::-1] if reverse else want)
    np.testing.assert_allclose(found_last, want[-1])


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("output", [0, 1])
def test_recurrence_to_second_order(reverse: bool, output: int) -> None:
    check(lambda h, xs, w: recurrence(h, xs, w, reverse)[output], START, XS, WEIGHT)


def test_third_order() -> None:
    check(lambda h, xs, w: recurrence(h, xs, w)[0], START, XS[:2], WEIGHT, order=3)


def test_scan_inside_scan() -> None:
    """The inner loop reads the outer carry and the outer weight; all are differentiated."""

    def f(h: Node, xs: Node, w: Node) -> Node:
        def outer(h: Node, x: Node) -> tuple[Node, Node]:
            def inner(z: Node, y: Node) -> tuple[Node, None]:
                return add(mul(z, y), h), None

            z, _ = scan(inner, b.zeros_like(h), w)
            return b.alu(ops.TANH, add(z, x)), mul(z, x)

        return add(*[b.reduce("add", o) for o in scan(outer, h, xs)])

    check(f, START, XS[:3], WEIGHT)


def test_same_program_for_2_and_1000_steps() -> None:
    def size(steps: int) -> int:
        h, xs, w = leaf(0, START), leaf(1, np.zeros((steps, 3))), leaf(2, WEIGHT)
        last, _ = recurrence(h, xs, w)
        derived = gradients([b.reduce("add", last)], [b.const(1.0, float64)], [h, xs, w])
        return len(toposort(derived, into_args=True))

    assert size(2) == size(1000)


def test_1000_steps_have_the_gradient_of_the_unrolled_loop() -> None:
    steps = 1000
    xs = RANDOM.standard_normal((steps, 3))
    h_node, xs_node, w_node = leaf(0, START), leaf(1, xs), leaf(2, WEIGHT)
    last, _ = recurrence(h_node, xs_node, w_node)
    derived = gradients([b.reduce("add", last)], [b.const(1.0, float64)], [h_node, w_node, xs_node])
    found = values(derived, START, xs, WEIGHT)
    before = [START]
    for x in xs:
        before.append(np.tanh(WEIGHT @ before[-1] + x))
    g, dw, dx = np.ones(3), np.zeros((3, 3)), np.zeros((steps, 3))
    for t in reversed(range(steps)):
        inner = g * (1 - before[t + 1] ** 2)
        dw += np.outer(inner, before[t])
        dx[t] = inner
        g = WEIGHT.T @ inner
    np.testing.assert_allclose(found[1], dw, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found[2], dx, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found[0], g, rtol=1e-9, atol=1e-12)


class State(NamedTuple):
    position: Node
    count: Node


def test_trees_counters_and_length() -> None:
    """Trees keep their kind; an integer carry counts; xs may be absent; results may be too."""

    def step(state: State, _: None) -> tuple[State, dict[str, list[Node]]]:
        state = State(add(state.position, b.cast(state.count, float64)), add(state.count, 1))
        return state, {"seen": [state.count]}

    first = State(b.const(0.0, float64), b.const(0, int64))
    last, seen = scan(step, first, length=4)
    assert isinstance(last, State)
    position, count, stacked = values([*last, seen["seen"][0]])
    assert (position, count) == (6.0, 4)
    np.testing.assert_array_equal(stacked, [1, 2, 3, 4])


def test_zero_steps() -> None:
    xs = np.zeros((0, 3))
    last, sums = running_sum(leaf(0, START), leaf(1, xs))
    assert sums.shape == (0, 3)
    derived = gradients([b.reduce("add", last)], [b.const(1.0, float64)], [leaf(0, START)])
    found_last, found = values([last, *derived], START, xs)
    np.testing.assert_array_equal(found_last, START)
    np.testing.assert_array_equal(found, np.ones(3))


def test_a_loop_of_no_steps_is_no_loop() -> None:
    """Nor is an index checked that every step would have read."""
    table = leaf(0, START)

    def step(total: Node, x: Node) -> tuple[Node, Node]:
        return add(total, b.gather(table, b.const(7, int64, (1,)), 0)), x

    carry, ys = scan(step, b.const(1.0, float64, (1,)), leaf(1, XS[:0]))
    left = toposort(simplify([carry, ys]))  # a derivative by the table flows before: of zeros
    assert not [node for node in left if node.op in (ops.SCAN, ops.GATHER)]
    assert ys.shape == (0, 3)


def test_symbolic_length() -> None:
    steps = index.variable("T", 1, 64)
    h, w = leaf(0, START), leaf(2, WEIGHT)
    xs = leaf(1, XS, shape=(steps, 3))
    last, squares = recurrence(h, xs, w)
    assert squares.shape == (steps, 3)
    total = add(b.reduce("add", last), b.reduce("add", squares))
    derived = gradients([total], [b.const(1.0, float64)], [h, xs, w])
    static = recurrence(h, leaf(1, XS), w)
    total = add(b.reduce("add", static[0]), b.reduce("add", static[1]))
    want = values(
        gradients([total], [b.const(1.0, float64)], [h, leaf(1, XS), w]), START, XS, WEIGHT
    )
    found = evaluate(derived, {h: START, xs: XS, w: WEIGHT}, {"T": 5})
    for one, other in zip(found, want):
        np.testing.assert_array_equal(one, other)


def test_what_does_not_vary_is_computed_outside() -> None:
    w = leaf(2, WEIGHT)
    outside = b.alu(ops.EXP, w)
    last, _ = scan(lambda h, x: (add(product(outside, h), x), None), leaf(0, START), leaf(1, XS))
    loop = last.src[0]
    assert loop.src[-1] is outside
    assert ops.EXP not in {node.op for node in toposort(loop.arg[0])}


def test_what_is_only_moved_is_not_stored() -> None:
    """A weight that a step stretches over a batch enters the loop as it is."""
    w, start = leaf(2, WEIGHT), leaf(0, np.zeros((64, 3)))

    def step(h: Node, x: Node) -> tuple[Node, Node]:
        turned = b.expand(b.reshape(b.permute(w, (1, 0)), (1, 3, 3)), (64, 3, 3))
        h = add(b.reduce("add", mul(turned, b.reshape(h, (64, 3, 1))), 1), x)
        return h, b.expand(b.reshape(w, (1, 3, 3)), (64, 3, 3))

    last, _ = scan(step, start, leaf(1, XS))
    assert last.src[0].src[2:] == (w,)
    (derived,) = gradients([last], [b.ones_like(last)], [w])
    assert (64, 3, 3) not in {s.shape for n in toposort(derived) for s in n.src if n.op is ops.SCAN}


def test_equal_loops_are_one_node() -> None:
    first = recurrence(leaf(0, START), leaf(1, XS), leaf(2, WEIGHT))
    again = recurrence(leaf(0, START), leaf(1, XS), leaf(2, WEIGHT))
    assert first[0] is again[0]


def test_gradients_of_half_constants_are_summed_in_float32() -> None:
    """2,048 ones added in half would stop at 2,048; each step here adds 1."""
    steps = 3000
    xs = np.ones((steps,), np.float16)
    w = leaf(0, np.float16(1.0).reshape(()))
    _, ys = scan(lambda c, x: (c, mul(x, w)), b.const(0.0, float16), leaf(1, xs))
    (derived,) = gradients([ys], [b.ones_like(ys)], [w])
    assert derived.dtype is float16
    assert values([derived], np.float16(1.0).reshape(()), xs)[0] == 3000


def test_no_quadratic_and_no_recursive_walk() -> None:
    x = leaf(0, START)
    for _ in range(20_000):
        x = ops.SIN(x)
    replaced = substitute([x], {leaf(0, START): leaf(1, START)})
    assert toposort(replaced)[0] is leaf(1, START)


# ---- errors --------------------------------------------------------------------------------------
def c(value: float, dtype: Any = float32, shape: tuple[int, ...] = ()) -> Node:
    return b.const(value, dtype, shape)


ERRORS = {
    "structure": (
        lambda: scan(lambda h, x: ((h, h), None), c(0.0), length=3),
        ValueError,
        r"carry enters as a tensor and the function returns it as \(\*, \*\)",
    ),
    "dtype": (
        lambda: scan(lambda h, x: (b.cast(h, float64), None), c(0.0), length=3),
        TypeError,
        "carry enters as float32 and the function returns it as float64",
    ),
    "shape": (
        lambda: scan(lambda h, x: (b.reshape(h, (2, 3)), None), c(0.0, shape=(6,)), length=3),
        ValueError,
        r"carry enters with shape \(6,\) and the function returns it with shape \(2, 3\)",
    ),
    "no length": (
        lambda: scan(lambda h, x: (h, None), c(0.0)),
        ValueError,
        "give the number of steps",
    ),
    "negative": (
        lambda: scan(lambda h, x: (h, None), c(0.0), length=-1),
        ValueError,
        "length=-1 is not a number of steps",
    ),
    "lengths": (
        lambda: scan(lambda h, x: (h, None), c(0.0), c(0.0, shape=(4, 2)), length=3),
        ValueError,
        r"3 steps are wanted, but xs holds a tensor of shape \(4, 2\)",
    ),
    "0-d": (
        lambda: scan(lambda h, x: (h, None), c(0.0), c(0.0)),
        ValueError,
        r"xs holds a tensor of shape \(\)",
    ),
    "not a pair": (
        lambda: scan(lambda h, x: h, c(0.0), length=3),
        TypeError,
        r"must return \(carry, result\)",
    ),
    "leaf": (
        lambda: scan(lambda h, x: (h, None), "zero", length=3),
        TypeError,
        r"init must be tensors in tuples, lists and dictionaries; it holds 'zero' \(str\)",
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name: str) -> None:
    call, kind, message = ERRORS[name]
    with pytest.raises(kind, match=message):
        call()
