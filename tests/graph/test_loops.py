"""`while_loop` and `cond`: what they mean, their shape in the program, derivatives, errors."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from gradcheck import check, leaf
from transformcheck import Moving, check_batched

from treadle.backend.interp.graph import evaluate
from treadle.graph import build as b
from treadle.graph.forward import tangents
from treadle.graph.grad import gradients
from treadle.graph.loops import cond, while_loop
from treadle.graph.scan import scan
from treadle.graph.simplify import simplify
from treadle.ir import ops
from treadle.ir.dtype import bool_, float32, float64, int64
from treadle.ir.node import Node, toposort
from treadle.ir.text import parse, show
from treadle.ir.verify import LawError, verify

RANDOM = np.random.default_rng(5)
X = RANDOM.standard_normal(3)
WEIGHT = 0.5 * RANDOM.standard_normal((3, 3))


def add(x: Any, y: Any) -> Node:
    return b.alu(ops.ADD, x, y)


def mul(x: Any, y: Any) -> Node:
    return b.alu(ops.MUL, x, y)


def less(x: Any, y: Any) -> Node:
    return b.alu(ops.LT, x, y)


def doubled(x: Node, most: Any) -> tuple[Node, Node]:
    """(how often, x doubled until its sum is not below `most`)."""
    return while_loop(
        lambda carry: less(b.reduce("add", carry[1]), most),
        lambda carry: (add(carry[0], 1), mul(carry[1], 2.0)),
        (b.const(0, int64), x),
    )


def powers(x: Node, w: Node, way: Any) -> Node:
    """tanh(w x) x if `way`, else x^3; w is closed over."""
    return cond(
        way,
        lambda x: mul(b.alu(ops.TANH, b.reduce("add", mul(w, x), 1)), x),
        lambda x: mul(x, mul(x, x)),
        x,
    )


def values(roots: list[Node], *arrays: np.ndarray) -> list[np.ndarray]:
    return evaluate(simplify(roots), {leaf(i, np.asarray(a)): a for i, a in enumerate(arrays)})


@pytest.mark.parametrize(("most", "trips"), [(10.0, 2), (1000.0, 9), (1.0, 0)])
def test_while_loop(most: float, trips: int) -> None:
    x = np.ones(3)
    count, last = values([*doubled(leaf(0, x), most)], x)
    assert count == trips
    np.testing.assert_array_equal(last, 2.0**trips * x)


def test_the_functions_are_called_once() -> None:
    calls: list[str] = []

    def noted(name: str, value: Any) -> Any:
        calls.append(name)
        return value

    x = leaf(0, X)
    while_loop(
        lambda s: noted("condition", less(s, 3)),
        lambda s: noted("body", add(s, 1)),
        b.const(0, int64),
    )
    cond(b.const(True, bool_), lambda y: noted("true", y), lambda y: noted("false", y), x)
    assert sorted(calls) == ["body", "condition", "false", "true"]


@pytest.mark.parametrize("way", [True, False])
def test_cond(way: bool) -> None:
    (found,) = values([powers(leaf(0, X), leaf(1, WEIGHT), leaf(2, np.array(way)))], X, WEIGHT, way)
    np.testing.assert_allclose(found, np.tanh(WEIGHT @ X) * X if way else X**3)


def test_what_only_a_branch_needs_is_in_its_branch() -> None:
    """Also what it makes of nodes that it closes over; what was there before is not made again."""
    x, test = leaf(0, X), leaf(1, np.array(True))
    before = b.alu(ops.EXP, x)
    result = cond(
        test,
        lambda: b.alu(ops.SIN, before),
        lambda: b.reshape(before, (3,)),
        outside={x, before},
    )
    (node,) = [n for n in toposort(result) if n.op is ops.COND]
    assert node.src == (test, before)
    assert not any(n.op is ops.SIN for n in toposort(result))
    assert any(n.op is ops.SIN for n in toposort(node.arg[0]))


def test_text_and_law() -> None:
    x, w, test = leaf(0, X), leaf(1, WEIGHT), leaf(2, np.array(True))
    roots = [*doubled(powers(x, w, test), 100.0)]
    assert parse(show(roots[1])) is roots[1]
    verify(roots, "graph")
    (node,) = [n for n in toposort(roots) if n.op is ops.WHILE]
    with pytest.raises(LawError, match="bool of shape"):
        verify([node.with_src((b.const(1, int64), *node.src[1:]))], "graph")
    (node,) = [n for n in toposort(roots) if n.op is ops.COND]
    one, other = node.arg
    with pytest.raises(LawError, match="different results"):
        verify([Node(ops.COND, node.dtype, node.src, (one, other.with_src(())))], "graph")


@pytest.mark.parametrize("way", [True, False])
def test_cond_to_second_order(way: bool) -> None:
    check(lambda x, w: powers(x, w, b.const(way, bool_)), X, WEIGHT)
    summed = 1.0 if way else -1.0
    check(lambda x, w: powers(x, w, less(0, add(b.reduce("add", mul(x, 0.0)), summed))), X, WEIGHT)


@pytest.mark.parametrize("way", [True, False])
def test_cond_in_scan_to_second_order(way: bool) -> None:
    """The test depends on the step, and both branches on a weight outside."""

    def f(x: Node, w: Node) -> Node:
        def step(carry: Node, row: Node) -> tuple[Node, Node]:
            test = less(b.reduce("add", row), 0.0 if way else 0.3)
            carry = powers(add(carry, row), w, test)
            return carry, mul(carry, row)

        last, rows = scan(step, x, w)
        return add(b.reduce("add", last), b.reduce("add", rows))

    check(f, X, WEIGHT)


def test_a_branch_without_a_derivative_gives_zero() -> None:
    x, y = leaf(0, X), leaf(1, X)
    result = cond(less(b.reduce("add", x), 0), lambda x, y: mul(x, y), lambda x, y: x, x, y)
    found = gradients([result], [b.ones_like(result)], [x, y])
    ones, zeros = values(found, np.ones(3), X)
    np.testing.assert_array_equal(ones, np.ones(3))
    np.testing.assert_array_equal(zeros, np.zeros(3))


def test_integers_of_a_while_loop_stop_a_derivative() -> None:
    """Only a floating result of the loop would need its derivative backwards."""
    x = leaf(0, np.ones(3))
    count, last = doubled(b.stop_gradient(x), 100.0)
    found = gradients([mul(b.cast(count, float64), x)], [b.ones_like(x)], [x])
    np.testing.assert_array_equal(values(found, np.ones(3))[0], np.full(3, 6.0))
    _, last = doubled(x, 100.0)
    with pytest.raises(NotImplementedError, match=r"Use scan with a fixed length .* jvp"):
        gradients([last], [b.ones_like(last)], [x])


# ---- forwards, and many at once ------------------------------------------------------------------
def total(x: Node) -> Node:
    return b.reduce("add", x)


def newton(a: Node, start: Node) -> Node:
    """The square root of a, and how many steps it took."""
    root, steps = while_loop(
        lambda s: less(1e-9, b.alu(ops.ABS, b.alu(ops.SUB, mul(s[0], s[0]), a))),
        lambda s: (mul(0.5, add(s[0], b.alu(ops.DIV, a, s[0]))), add(s[1], 1)),
        (start, b.const(0, int64)),
    )
    return add(root, b.cast(steps, float64))


def summed_until(x: Node, most: Node) -> Node:
    """The sum of the first elements of x, as many as are needed to reach `most`, at most all; the
    index is out of range when it ends."""
    size = x.shape[0]

    def body(s: tuple[Node, Node]) -> tuple[Node, Node]:
        element = b.gather(x, b.reshape(s[0], (1,)), 0)
        return add(s[0], 1), add(s[1], mul(element, element))

    test = lambda s: b.alu(ops.AND, less(s[0], size), less(total(s[1]), most))  # noqa: E731
    _, found = while_loop(test, body, (b.const(0, int64), b.const(0.0, float64, (1,))))
    return total(found)


def chosen(x: Node, y: Node) -> Node:
    """A choice by each example's own values; its branches read elements that may not be there, and
    hold a loop that would never end in the other branch, a loop and another choice."""
    size = x.shape[0]
    count = b.cast(total(b.alu(ops.FLOOR, mul(x, 2.0))), int64)
    inside = b.alu(ops.AND, b.alu(ops.LE, 0, count), less(count, size))

    def there(x: Node, y: Node) -> Node:
        place = b.reshape(count, (1,))
        _, rows = scan(lambda s, v: (s, b.gather(mul(y, v), place, 0)), b.const(0, int64), x)
        other = cond(
            less(0, count),
            lambda: b.gather(x, place, 0),
            lambda: mul(total(x), b.gather(y, place, 0)),
        )
        growth = add(b.cast(count, float64), 1.0)
        grown = while_loop(lambda z: less(z, 3.0), lambda z: add(z, growth), total(x))
        return mul(add(total(rows), total(other)), grown)

    return cond(inside, there, lambda x, y: mul(total(x), total(b.alu(ops.SIN, y))), x, y)


LOOPS: list[tuple[Callable[..., Node], tuple[np.ndarray, ...]]] = [
    (newton, (np.array(2.0), np.array(1.0))),
    (summed_until, (np.array([1.0, 2.0, 0.5, 3.0]), np.array(5.1))),
    (summed_until, (np.array([1.0, 2.0, 0.5, 3.0]), np.array(50.0))),
    (summed_until, (np.array([1.0, 2.0]), np.array(-1.0))),
    (chosen, (np.array([0.6, 0.2, 0.7]), np.array([1.0, 2.0, 3.0]))),
    (chosen, (np.array([0.8, 0.7, 0.75]), np.array([1.0, 2.0, 3.0]))),
    (lambda x, w: powers(x, w, less(total(w), 0.0)), (X, WEIGHT)),
    (lambda x, w: powers(x, w, less(0.0, total(x))), (X, WEIGHT)),
]


@pytest.mark.parametrize(("f", "arrays"), LOOPS)
def test_tangents(f: Callable[..., Node], arrays: tuple[np.ndarray, ...]) -> None:
    """Against finite differences, and their own tangents against those of theirs."""
    moving = Moving(arrays)
    y = f(*moving.nodes)
    (tangent,) = tangents([y], moving.given)
    assert tangent is not None
    (got,) = moving.evaluate([tangent])
    np.testing.assert_allclose(got, moving.difference(y, 1e-5), rtol=1e-6, atol=1e-8)
    (second,) = tangents([tangent], moving.given)
    if second is not None:
        (got,) = moving.evaluate([second])
        np.testing.assert_allclose(got, moving.difference(tangent, 1e-5), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize(("f", "arrays"), LOOPS)
def test_many_at_once(f: Callable[..., Node], arrays: tuple[np.ndarray, ...]) -> None:
    check_batched(f, arrays)


def test_derivatives_of_a_choice_per_example() -> None:
    def derived(x: Node, y: Node) -> Node:
        result = cond(
            less(total(x), 2.0),
            lambda x, y: total(mul(x, mul(y, y))),
            lambda x, y: total(b.alu(ops.SIN, mul(x, y))),
            x,
            y,
        )
        by_x, by_y = gradients([result], [b.const(1.0, float64)], [x, y])
        return add(total(by_x), total(mul(by_y, x)))

    check_batched(derived, (np.array([1.0, 0.9]), np.array([0.3, -0.4])))


def c(value: Any, dtype: Any = float32, shape: tuple[int, ...] = ()) -> Node:
    return b.const(value, dtype, shape)


ERRORS: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "structure": (
        lambda: while_loop(lambda s: less(s["a"], 3), lambda s: {"a": (s["a"],)}, {"a": c(0)}),
        ValueError,
        r"carry\['a'\] enters as a tensor and the body returns it as \(\*,\)",
    ),
    "dtype": (
        lambda: while_loop(
            lambda s: less(s[0], 3), lambda s: (s[0], [b.cast(s[1][0], float64)]), (c(0), [c(0)])
        ),
        TypeError,
        r"carry\[1\]\[0\] enters as float32 and the body returns it as float64",
    ),
    "shape": (
        lambda: while_loop(lambda s: less(s, 3), lambda s: b.reshape(s, (1,)), c(0)),
        ValueError,
        r"carry enters with shape \(\) and the body returns it with shape \(1,\)",
    ),
    "condition not bool": (
        lambda: while_loop(lambda s: s, lambda s: s, c(0)),
        TypeError,
        "the condition must return a bool tensor, not one of float32: compare it",
    ),
    "condition of a shape": (
        lambda: while_loop(lambda s: less(s, 3), lambda s: s, c(0, shape=(2,))),
        ValueError,
        r"not of shape \(2,\): say with .all\(\) or .any\(\)",
    ),
    "condition in Python": (
        lambda: while_loop(lambda s: True, lambda s: s, c(0)),
        TypeError,
        "not a bool; a value that Python knows needs no loop",
    ),
    "no tensor": (
        lambda: while_loop(lambda s: less(s, 3), lambda s: 7, c(0)),
        TypeError,
        r"what the body returns must be tensors .* it holds 7 \(int\): write Tensor",
    ),
    "predicate": (
        lambda: cond(c(1.0), lambda: c(0), lambda: c(0)),
        TypeError,
        "the predicate must be a bool tensor, not one of float32",
    ),
    "branches: structure": (
        lambda: cond(c(True, bool_), lambda: (c(0),), lambda: c(0)),
        ValueError,
        r"result is \(\*,\) from true_function and a tensor from false_function",
    ),
    "branches: dtype": (
        lambda: cond(c(True, bool_), lambda: {"y": c(0)}, lambda: {"y": c(0, float64)}),
        TypeError,
        r"result\['y'\] is float32 of shape \(\) from true_function and float64 of shape \(\) from",
    ),
    "branches: shape": (
        lambda: cond(c(True, bool_), lambda: c(0), lambda: c(0, shape=(2,))),
        ValueError,
        r"result is float32 of shape \(\) from true_function and float32 of shape \(2,\)",
    ),
    "operand": (
        lambda: cond(c(True, bool_), lambda x: x, lambda x: x, [3]),
        TypeError,
        r"the operands must be tensors .* it holds 3 \(int\) at \[0\]\[0\]",
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name: str) -> None:
    call, kind, message = ERRORS[name]
    with pytest.raises(kind, match=message):
        call()
