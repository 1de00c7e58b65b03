"""The VJP table: every row against finite differences, and what the walk promises."""

from collections.abc import Callable

import numpy as np
import pytest
from gradcheck import check, leaf
from samples import SAMPLES, TIED, X

from treadle.backend.interp.graph import evaluate
from treadle.graph import build as b
from treadle.graph import custom, functions, grad, loops, scan
from treadle.graph.call import call
from treadle.graph.grad import gradients
from treadle.ir import index, ops
from treadle.ir.dtype import bfloat16, float16, float32, float64, int64
from treadle.ir.node import Node, toposort

# Rows whose every rule is None: the derivative is zero, or there is none to ask for.
ZERO = {op for op, row in grad.VJP.items() if not any(row)}
OPTIONS = {ops.CAST: {"step": 0.25, "tolerance": 1e-5}}  # linear, and rounded to float32
CASES = [
    pytest.param(f, arrays, OPTIONS.get(op, {}), id=f"{op.name}-{number}")
    for op, samples in SAMPLES.items()
    for number, (f, arrays) in enumerate(samples)
]


def buffer(shape: tuple[int, ...], number: int = 0, dtype: object = float64) -> Node:
    return Node(ops.BUFFER, dtype, (), (number, shape, "CPU"))


def one(dtype: object = float64) -> Node:
    return b.const(1.0, dtype)


def test_every_row_has_a_sample() -> None:
    assert set(SAMPLES) == set(grad.VJP) - ZERO


def test_every_graph_operation_is_decided() -> None:
    refused = set(grad.WITHOUT)
    assert scan and call and loops and custom, "importing them adds their rows"
    decided = set(grad.VJP) | set(grad.WHOLE_VJP) | {ops.OUT, ops.SINK} | refused
    assert decided >= {op for op in ops.TABLE.values() if "g" in op.stages and op.kind != "index"}


@pytest.mark.parametrize(("f", "arrays", "options"), CASES)
def test_row_against_finite_differences(
    f: Callable[..., Node], arrays: tuple[np.ndarray, ...], options: dict[str, float]
) -> None:
    check(f, *arrays, **options)


def test_symbolic_sizes() -> None:
    """Rules with sizes in them, on dimensions that are bound later."""
    rows = index.variable("R", 1, 16)

    def f(x: Node) -> Node:
        wide = b.expand(b.reshape(x, (rows, 1, 4)), (rows, 3, 4))
        padded = b.pad(b.flip(wide, 0), ((1, 2), (0, 0), (0, 0)), 1.0)
        part = b.shrink(padded, ((1, padded.shape[0]), (0, 2), (0, 4)))
        return b.reduce("mul", b.permute(part, (2, 1, 0)), (1, 2))

    check(f, X, shapes=[(rows, 4)], variables={"R": 3})


# ---- zero cotangents -----------------------------------------------------------------------------
UNBOUNDED: dict[str, tuple[Callable[[Node], Node], float]] = {
    # a function with an infinite derivative at a point, and the point
    "sqrt": (lambda x: b.alu(ops.SQRT, x), 0.0),
    "log": (lambda x: b.alu(ops.LOG, x), 0.0),
    "log2": (lambda x: b.alu(ops.LOG2, x), 0.0),
    "log1p": (lambda x: b.alu(ops.LOG1P, x), -1.0),
    "reciprocal": (lambda x: b.alu(ops.DIV, 1.0, x), 0.0),
    "div": (lambda x: b.alu(ops.DIV, b.alu(ops.ADD, x, 1.0), x), 0.0),
    "pow": (lambda x: b.alu(ops.POW, x, 0.5), 0.0),
    "power of": (lambda x: b.alu(ops.POW, 0.0, x), -1.0),
    "exp": (lambda x: b.alu(ops.EXP, x), 1000.0),
    "exp2": (lambda x: b.alu(ops.EXP2, x), 2000.0),
    "expm1": (lambda x: b.alu(ops.EXPM1, x), 1000.0),
    "product": (lambda x: b.alu(ops.MUL, x, b.alu(ops.SQRT, x)), 0.0),
    "norm": (lambda x: b.alu(ops.SQRT, b.reduce("add", b.alu(ops.MUL, x, x), 0, True)), 0.0),
}


@pytest.mark.parametrize("name", UNBOUNDED)
def test_what_where_does_not_choose_has_no_gradient(name: str) -> None:
    """where(x == point, 0, f(x)) has derivative 0 at the point, and not NaN."""
    f, point = UNBOUNDED[name]
    value = np.array([point])
    x = leaf(0, value)
    chosen = b.where(b.alu(ops.EQ, x, point), 0.0, f(x))
    (derived,) = gradients([chosen], [b.ones_like(chosen)], [x])
    (found,) = evaluate([derived], {x: value})
    np.testing.assert_array_equal(found, [0.0])


def test_relu_asks_its_result() -> None:
    points = np.array([-2, -0.0, 0, np.nan, 3, np.inf, -np.inf, 1e-310])
    weights = np.arange(1.0, 9.0)
    x, cotangent = leaf(0, points), leaf(1, weights)
    y = functions.relu(x)
    (gradient,) = gradients([y], [cotangent], [x])
    assert gradient.src[0].op is ops.LE and gradient.src[0].src[0] is y
    (found,) = evaluate([gradient], {x: points, cotangent: weights})
    np.testing.assert_array_equal(found, [0, 0, 0, 4, 5, 6, 0, 8])  # as PyTorch


def test_powers_at_zero() -> None:
    """x**0 has derivative 0 everywhere; x**1 has 1, and x**2 has 0 and then 2, at 0 too."""
    x = leaf(0, np.zeros(1))
    for exponent, want in ((0.0, (0.0, 0.0)), (1.0, (1.0, 0.0)), (2.0, (0.0, 2.0))):
        y = b.alu(ops.POW, x, exponent)
        (first,) = gradients([y], [b.ones_like(y)], [x])
        (second,) = gradients([first], [b.ones_like(y)], [x], unreached="zero")
        found = evaluate([first, second], {x: np.zeros(1)})
        np.testing.assert_array_equal(np.concatenate(found), want)


def test_tied_extremes_share() -> None:
    x = leaf(0, TIED)
    ones = np.ones((2, 2))
    pair = leaf(1, ones)
    y = b.reduce("max", pair)
    (derived,) = gradients([y], [b.const(1.0, float64)], [pair])
    np.testing.assert_array_equal(evaluate([derived], {pair: ones})[0], np.full((2, 2), 0.25))
    both = b.alu(ops.MAX, x, x)
    (derived,) = gradients([both], [b.ones_like(both)], [x])
    np.testing.assert_array_equal(evaluate([derived], {x: TIED})[0], np.ones((2, 4)))


def test_a_product_with_zeros() -> None:
    """With one zero, only its factor has a gradient; with two, none has, but second ones exist."""
    rows = np.array([[2.0, 0.0, 5.0], [0.0, 3.0, 0.0]])
    x = leaf(0, rows)
    y = b.reduce("mul", x, 1)
    (derived,) = gradients([y], [b.ones_like(y)], [x])
    np.testing.assert_array_equal(evaluate([derived], {x: rows})[0], [[0, 10, 0], [0, 0, 0]])
    check(lambda x: b.reduce("mul", x, 1), rows, order=3)


def test_repeated_indices() -> None:
    """Scatter "set": the last of several values for one place has the gradient, the others none."""
    base, value = np.zeros((3,)), np.array([1.0, 2.0, 3.0])
    where = np.array([1, 1, 2])
    nodes = [leaf(0, base), leaf(1, where), leaf(2, value)]
    y = b.scatter(*nodes, 0)
    derived = gradients([y], [b.ones_like(y)], [nodes[0], nodes[2]])
    found = evaluate(derived, dict(zip(nodes, (base, where, value))))
    np.testing.assert_array_equal(found[0], [1, 0, 0])
    np.testing.assert_array_equal(found[1], [0, 1, 1])


# ---- the walk ------------------------------------------------------------------------------------
def test_only_what_leads_to_a_wanted_node_is_differentiated() -> None:
    """The derivative by x of x * f(z) has nothing of the derivative of f."""
    x, z = buffer((3,)), buffer((3,), 1)
    y = b.alu(ops.MUL, x, b.alu(ops.SIN, z))
    (derived,) = gradients([y], [b.ones_like(y)], [x])
    assert derived is b.alu(ops.SIN, z)


def test_several_outputs_and_wanted_nodes_in_one_path() -> None:
    x = leaf(0, X)
    middle = b.alu(ops.SIN, x)
    outputs = [b.reduce("add", middle), b.reduce("add", b.alu(ops.MUL, middle, middle))]
    derived = gradients(outputs, [b.const(2.0, float64), b.const(3.0, float64)], [middle, x])
    found = evaluate(derived, {x: X})
    np.testing.assert_allclose(found[0], 2 + 6 * np.sin(X))
    np.testing.assert_allclose(found[1], (2 + 6 * np.sin(X)) * np.cos(X))


def test_dtypes_of_gradients() -> None:
    x = buffer((4,), dtype=float16)
    y = b.reduce("add", b.cast(x, float64))
    (derived,) = gradients([y], [b.const(1.0, float64)], [x])
    assert (derived.dtype, derived.shape) == (float16, (4,))


def test_unreached() -> None:
    x, z = buffer((3,)), buffer((2,), 1)
    y = b.reduce("add", x)
    with pytest.raises(ValueError, match=r"does not depend on tensor 1 of the 2 .*\(2,\)"):
        gradients([y], [one()], [x, z])
    assert gradients([y], [one()], [z], unreached="none") == [None]
    assert gradients([y], [one()], [z], unreached="zero") == [b.zeros_like(z)]
    through_integers = b.cast(b.cast(x, int64), float64)
    stopped = b.stop_gradient(x)
    for cut in (through_integers, stopped):
        assert gradients([b.reduce("add", cut)], [one()], [x], unreached="none") == [None]


def test_errors() -> None:
    x = buffer((3,))
    with pytest.raises(TypeError, match="only floating tensors have derivatives, not one of int64"):
        gradients([x], [one()], [buffer((3,), 1, int64)])
    with pytest.raises(ValueError, match=r"float64 of shape \(3,\), not float32 of shape \(\)"):
        gradients([x], [one(float32)], [x])
    bits = b.bitcast(b.bitcast(x, int64), float64)
    assert gradients([bits], [b.ones_like(x)], [x], unreached="none") == [None]
    half = buffer((3,), dtype=float16)
    other = b.cast(b.bitcast(half, bfloat16), float64)
    with pytest.raises(NotImplementedError, match="bitcast has no derivative"):
        gradients([other], [b.ones_like(other)], [half])


def test_deep_and_wide_graphs() -> None:
    """No walk is recursive, and the number of new nodes is proportional to the graph."""
    x = buffer((2,))
    deep = x
    for _ in range(10_000):
        deep = b.alu(ops.SIN, deep)
    (derived,) = gradients([deep], [b.ones_like(deep)], [x])
    assert len(toposort(derived)) < 4 * 10_000
    inputs = [buffer((2,), n) for n in range(5_000)]
    wide = inputs[0]
    for each in inputs[1:]:
        wide = b.alu(ops.ADD, wide, each)
    found = gradients([wide], [b.ones_like(wide)], inputs)
    assert set(found) == {b.ones_like(wide)}


def test_a_copy_goes_back_to_its_device() -> None:
    x = buffer((2,))
    y = b.alu(ops.MUL, ops.COPY(b.alu(ops.SIN, x), arg="OTHER"), 2.0)
    (derived,) = gradients([y], [b.ones_like(y)], [x])
    assert [n.arg for n in toposort(derived) if n.op is ops.COPY] == ["CPU"]
