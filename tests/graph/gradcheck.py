"""Derivatives by finite differences, for the tests of gradients: first and second order."""

from collections.abc import Callable, Sequence

import numpy as np

from treadle.backend.interp.graph import evaluate
from treadle.graph import build
from treadle.graph.grad import gradients
from treadle.ir import ops
from treadle.ir.dtype import float64, from_numpy
from treadle.ir.node import Node, Shape

Function = Callable[..., Node]


def leaf(number: int, value: np.ndarray, shape: Shape | None = None) -> Node:
    """A BUFFER for an array; `shape` if it has symbolic dimensions."""
    arg = (number, value.shape if shape is None else shape, "CPU")
    return Node(ops.BUFFER, from_numpy(value.dtype), (), arg)


def weighted(outputs: Sequence[Node], seed: int) -> Node:
    """A float64 number that depends on every element of the outputs, each with its own weight."""
    total = build.const(0.0, float64)
    for number, output in enumerate(outputs):
        places = build.iota(build.shapes.total(output.shape), float64)
        phase = build.alu(ops.ADD, build.alu(ops.MUL, places, 0.7), float(seed + number))
        weights = build.reshape(build.alu(ops.SIN, phase), output.shape)
        product = build.alu(ops.MUL, build.cast(output, float64), weights)
        total = build.alu(ops.ADD, total, build.reduce("add", product))
    return total


def check(
    f: Function,
    *arrays: np.ndarray,
    wanted: Sequence[int] | None = None,
    order: int = 2,
    step: float = 1e-5,
    tolerance: float = 1e-6,
    shapes: Sequence[Shape | None] | None = None,
    variables: dict[str, int] | None = None,
) -> None:
    """Compare the gradient of f, and the gradient of its gradient, with central differences along
    random directions. f takes one node per array; the `wanted` ones are differentiated by (all
    floating ones unless given). `shapes` and `variables` say which dimensions are symbolic."""
    random = np.random.default_rng(0)
    nodes = [leaf(i, a, shapes[i] if shapes else None) for i, a in enumerate(arrays)]
    chosen = [i for i, a in enumerate(arrays) if a.dtype.kind == "f"] if wanted is None else wanted
    targets = [nodes[i] for i in chosen]

    def values(roots: Sequence[Node], moved: Sequence[np.ndarray]) -> list[np.ndarray]:
        return evaluate(roots, dict(zip(nodes, moved)), variables or {})

    value = weighted([f(*nodes)], seed=1)
    for depth in range(order):
        one = build.const(1.0, float64)
        derived = gradients([value], [one], targets, unreached="zero")
        found = values(derived, arrays)
        for array, node, derivative in zip((arrays[i] for i in chosen), targets, found):
            assert derivative.shape == array.shape
            assert derivative.dtype == node.dtype.compute
        for _ in range(2):
            directions = [random.standard_normal(arrays[i].shape) for i in chosen]
            ahead, behind = list(arrays), list(arrays)
            for i, d in zip(chosen, directions):
                ahead[i], behind[i] = arrays[i] + step * d, arrays[i] - step * d
            difference = (values([value], ahead)[0] - values([value], behind)[0]) / (2 * step)
            claimed = sum(float((g * d).sum()) for g, d in zip(found, directions))
            np.testing.assert_allclose(
                claimed, difference, rtol=tolerance, atol=tolerance, err_msg=f"order {depth + 1}"
            )
        value = weighted(derived, seed=5)
