"""The JVP table: every row against finite differences, and against the table of VJPs."""

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from gradcheck import leaf, weighted
from samples import SAMPLES, TIED, X
from transformcheck import Moving, check_forward

from treadle.backend.interp.graph import evaluate
from treadle.graph import build as b
from treadle.graph import call, custom, forward, grad, loops, scan
from treadle.graph.forward import pushed, tangents
from treadle.graph.grad import gradients
from treadle.ir import ops
from treadle.ir.dtype import bfloat16, float16, float32, float64, int64
from treadle.ir.node import Node, toposort

RANDOM = np.random.default_rng(17)
CASES = [
    pytest.param(f, arrays, 0.25 if op is ops.CAST else 1e-5, id=f"{op.name}-{number}")
    for op, samples in SAMPLES.items()
    for number, (f, arrays) in enumerate(samples)
]


def test_every_graph_operation_is_decided() -> None:
    refused = set(grad.WITHOUT)
    assert scan and call and loops and custom, "importing them adds their rows"
    decided = set(forward.JVP) | set(forward.WHOLE_JVP) | {ops.OUT, ops.SINK} | refused
    assert decided >= {op for op in ops.TABLE.values() if "g" in op.stages and op.kind != "index"}


def test_whatever_has_a_vjp_has_a_jvp() -> None:
    assert set(grad.VJP) == set(forward.JVP)
    assert set(grad.WHOLE_VJP) == set(forward.WHOLE_JVP)
    zero = {op for op, row in grad.VJP.items() if not any(row)}
    assert zero <= {op for op, rule in forward.JVP.items() if rule is forward.nothing}


@pytest.mark.parametrize(("f", "arrays", "step"), CASES)
def test_row(f: Callable[..., Node], arrays: tuple[np.ndarray, ...], step: float) -> None:
    check_forward(f, arrays, step)


@pytest.mark.parametrize(("f", "arrays", "step"), CASES)
def test_one_argument_at_a_time(
    f: Callable[..., Node], arrays: tuple[np.ndarray, ...], step: float
) -> None:
    """With one tangent alone the others count as zero."""
    whole = Moving(arrays)
    y = f(*whole.nodes)
    total = tangents([y], whole.given)[0]
    alone = [tangents([y], {node: t})[0] for node, t in whole.given.items()]
    parts = [part for part in alone if part is not None]
    if total is None:
        assert not parts
        return
    found = whole.evaluate([total, *parts])
    np.testing.assert_allclose(found[0], sum(found[1:]), rtol=1e-9, atol=1e-12)


# ---- zero times infinity -------------------------------------------------------------------------
def test_a_zero_tangent_times_an_infinite_derivative_is_zero() -> None:
    x = leaf(0, np.zeros(2))
    t = leaf(1, np.zeros(2))
    for f in (partial(b.alu, ops.SQRT), partial(b.alu, ops.LOG)):
        (tangent,) = tangents([f(x)], {x: t})
        (found,) = evaluate([tangent], {x: np.zeros(2), t: np.array([0.0, 1.0])})
        assert found[0] == 0 and np.isinf(found[1])


@pytest.mark.parametrize("order", ["forward over reverse", "reverse over forward", "forward twice"])
def test_what_was_not_selected_has_no_second_derivative(order: str) -> None:
    """where(x == 0, 0, x * sqrt(x)) at 0."""
    x = leaf(0, np.array([0.0, 4.0]))
    t = b.ones_like(x)
    y = b.where(b.alu(ops.EQ, x, 0.0), 0.0, b.alu(ops.MUL, x, b.alu(ops.SQRT, x)))
    if order == "forward over reverse":
        (second,) = tangents(gradients([y], [t], [x]), {x: t})
    elif order == "reverse over forward":
        (second,) = gradients(list(tangents([y], {x: t})), [t], [x])
    else:
        (second,) = tangents(tangents([y], {x: t}), {x: t})
    np.testing.assert_allclose(evaluate([second], {x: np.array([0.0, 4.0])})[0], [0, 0.375])


# ---- what has none -------------------------------------------------------------------------------
def test_zero_is_none() -> None:
    x, other = leaf(0, X), leaf(1, X)
    t = b.ones_like(x)
    whole = b.cast(x, int64)
    outputs = [other, b.stop_gradient(x), whole, b.cast(whole, float64), b.alu(ops.FLOOR, x)]
    assert tangents(outputs, {x: t}) == [None] * 5
    assert tangents([x], {x: t}) == [t]


def test_no_derivative_is_an_error() -> None:
    x = Node(ops.BUFFER, float32, (), (0, (3,), "CPU"))
    with pytest.raises(NotImplementedError, match="bitcast has no derivative"):
        tangents([b.bitcast(b.cast(x, float16), bfloat16)], {x: x})


def test_ties_share() -> None:
    x = leaf(0, TIED)
    t = b.ones_like(x)
    (tangent,) = tangents([b.reduce("max", x, 1)], {x: t})
    np.testing.assert_array_equal(evaluate([tangent], {x: TIED})[0], [1, 1])


# ---- the walk ------------------------------------------------------------------------------------
def test_10_000_operations() -> None:
    x = leaf(0, X)
    y = x
    for _ in range(10_000):
        y = b.alu(ops.SIN, y)
    (tangent,) = tangents([y], {x: b.ones_like(x)})
    assert len(toposort(tangent)) < 40_010


# ---- loops ---------------------------------------------------------------------------------------
XS = RANDOM.standard_normal((5, 3))
START = RANDOM.standard_normal(3)
WEIGHT = 0.5 * RANDOM.standard_normal((3, 3))


def recurrence(h: Node, xs: Node, w: Node, reverse: bool = False) -> Node:
    """h = tanh(w h + x): a number that depends on the last h and on what every step shows."""

    def step(carry: tuple[Node, Node], x: Node) -> tuple[tuple[Node, Node], Node]:
        h, count = carry
        product = b.reduce("add", b.alu(ops.MUL, w, h), 1)
        h = b.alu(ops.TANH, b.alu(ops.ADD, product, x))
        return (h, b.alu(ops.ADD, count, 1)), b.alu(ops.MUL, h, b.cast(count, float64))

    (last, _), shown = scan.scan(step, (h, b.const(0, int64)), xs, reverse=reverse)
    return b.alu(ops.ADD, last, b.reduce("add", shown, 0))


@pytest.mark.parametrize("reverse", [False, True])
def test_loop(reverse: bool) -> None:
    check_forward(lambda *nodes: recurrence(*nodes, reverse), (START, XS, WEIGHT))


def test_one_loop_computes_values_and_tangents() -> None:
    moving = Moving((START, XS, WEIGHT))
    ((value, tangent),) = pushed([recurrence(*moving.nodes)], moving.given)
    loops = [node for node in toposort([value, tangent]) if node.op is ops.SCAN]
    assert len(loops) == 1
    assert loops[0].arg[1] == 3  # h, the count, and the tangent of h


@pytest.mark.parametrize("wanted", [0, 1, 2])
def test_a_loop_of_which_one_source_moves(wanted: int) -> None:
    """The carry moves from the first step on, whatever brings the motion in."""
    moving = Moving((START, XS, WEIGHT))
    y = recurrence(*moving.nodes)
    node = moving.nodes[wanted]
    (tangent,) = tangents([y], {node: moving.given[node]})
    alone = Moving((START, XS, WEIGHT))
    alone.moving, alone.directions = [wanted], [moving.directions[wanted]]
    found = moving.evaluate([tangent])[0]
    np.testing.assert_allclose(found, alone.difference(y, 1e-5), rtol=1e-6, atol=1e-8)


def test_forward_over_reverse_through_a_loop() -> None:
    moving = Moving((START, XS, WEIGHT))
    value = weighted([recurrence(*moving.nodes)], 1)
    derived = gradients([value], [b.const(1.0, float64)], moving.nodes)
    for node, derivative in zip(moving.nodes, derived):
        (tangent,) = tangents([derivative], moving.given)
        np.testing.assert_allclose(
            moving.evaluate([tangent])[0],
            moving.difference(derivative, 1e-5),
            rtol=1e-5,
            atol=1e-7,
            err_msg=str(node.shape),
        )
