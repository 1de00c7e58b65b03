"""Forward mode against finite differences and reverse mode; batches against loops over examples."""

from collections.abc import Callable, Sequence
from itertools import product

import numpy as np
from gradcheck import leaf

from treadle.backend.interp.graph import evaluate
from treadle.graph import build as b
from treadle.graph.batching import batched
from treadle.graph.forward import pushed
from treadle.graph.grad import gradients
from treadle.ir import ops
from treadle.ir.node import Node, toposort

RANDOM = np.random.default_rng(17)
SIZE = 3  # examples in a batch


class Moving:
    """Nodes for arrays, and for a direction in which the floating ones move."""

    def __init__(self, arrays: Sequence[np.ndarray]) -> None:
        self.arrays = list(arrays)
        self.nodes = [leaf(i, a) for i, a in enumerate(arrays)]
        self.moving = [i for i, a in enumerate(arrays) if a.dtype.kind == "f"]
        self.directions = [RANDOM.standard_normal(arrays[i].shape) for i in self.moving]
        self.tangents = [leaf(100 + i, d) for i, d in enumerate(self.directions)]
        self.given = dict(zip((self.nodes[i] for i in self.moving), self.tangents))

    def evaluate(self, roots: Sequence[Node], step: float = 0.0) -> list[np.ndarray]:
        arrays = list(self.arrays)
        for i, direction in zip(self.moving, self.directions):
            arrays[i] = arrays[i] + step * direction
        return evaluate(
            roots, dict(zip((*self.nodes, *self.tangents), (*arrays, *self.directions)))
        )

    def difference(self, root: Node, step: float) -> np.ndarray:
        ahead, behind = self.evaluate([root], step), self.evaluate([root], -step)
        return (ahead[0] - behind[0]) / (2 * step)


def check_forward(f: Callable[..., Node], arrays: Sequence[np.ndarray], step: float = 1e-5) -> None:
    """First and second order against finite differences, and against reverse mode."""
    moving = Moving(arrays)
    y = f(*moving.nodes)
    for _ in range(2):
        ((value, tangent),) = pushed([y], moving.given)
        if tangent is None:
            tangent = b.zeros_like(y)
        assert (tangent.shape, tangent.dtype) == (y.shape, y.dtype)
        tolerance = 1e-5
        found = moving.evaluate([value, y, tangent])
        np.testing.assert_array_equal(found[0], found[1])
        np.testing.assert_allclose(
            found[2], moving.difference(y, step), rtol=tolerance, atol=tolerance
        )
        # <g, J t> = <J' g, t>
        g = b.alu(ops.COS, b.alu(ops.ADD, y, 0.3))
        derived = gradients([y], [g], list(moving.given), unreached="zero")
        inner = [
            b.reduce("add", b.alu(ops.MUL, d, t)) for d, t in zip(derived, moving.given.values())
        ]
        sides = moving.evaluate([b.reduce("add", b.alu(ops.MUL, g, tangent)), *inner])
        np.testing.assert_allclose(sides[0], sum(sides[1:]), rtol=1e-6, atol=1e-7)
        y = tangent


def examples(array: np.ndarray) -> np.ndarray:
    """As many variants of an array, stacked."""
    if array.dtype.kind == "f":
        return np.stack([array * (1 + 0.1 * n) for n in range(SIZE)])
    return np.stack([np.roll(array, n, axis=-1) for n in range(SIZE)])


def check_batched(f: Callable[..., Node], arrays: Sequence[np.ndarray]) -> None:
    """f of a batch of each subset of its arguments, against f of each example."""
    nodes = [leaf(i, a) for i, a in enumerate(arrays)]
    y = f(*nodes)
    for flags in product((False, True), repeat=len(arrays)):
        stacked = [examples(a) if flag else a for a, flag in zip(arrays, flags)]
        own = [leaf(100 + i, a) for i, a in enumerate(stacked)]
        given = {node: new for node, new, flag in zip(nodes, own, flags) if flag}
        ((found, has),) = batched([y], given, SIZE)
        if not has:  # no example is below it
            assert found is y
            assert set(given).isdisjoint(toposort(y))
            continue
        assert found.shape == (SIZE, *y.shape) and found.dtype is y.dtype
        (got,) = evaluate([found], dict(zip((*nodes, *own), (*arrays, *stacked))))
        for n in range(SIZE):
            one = [a[n] if flag else a for a, flag in zip(stacked, flags)]
            (want,) = evaluate([y], dict(zip(nodes, one)))
            np.testing.assert_allclose(got[n], want, rtol=1e-12, atol=1e-14)
