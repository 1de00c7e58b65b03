"""Symbolic dimensions: one schedule for every binding, with the values of each."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from running import agree, kernels, leaf, number

from treadle.graph import build as b
from treadle.graph import grad, linear, movement, neural, normalization, reduction
from treadle.ir import index, ops
from treadle.ir.dtype import float64
from treadle.ir.node import Node, toposort

T = index.variable("T", 1, 64)
BATCH = index.variable("B", 1, 8)
ROWS = index.dim(index.mul(BATCH, T))
BINDINGS = ({"T": 1, "B": 1}, {"T": 5, "B": 3}, {"T": 64, "B": 8})


def _heads(x: Node) -> Node:
    return b.permute(b.reshape(x, (BATCH, T, 2, 4)), (0, 2, 1, 3))


CASES: dict[str, tuple[Callable[..., Sequence[Node]], list[tuple[Any, ...]], int]] = {
    "softmax": (lambda x: [neural.softmax(x)], [(T, 8)], 1),
    "softmax over T": (lambda x: [neural.softmax(x, 0)], [(T, 8)], 1),
    "layer norm": (lambda x: [normalization.layer_norm(x, (8,))], [(BATCH, T, 8)], 1),
    "flat": (lambda x: [b.alu(ops.EXP, x)], [(BATCH, T, 8)], 1),
    "mean": (lambda x: [reduction.mean(x)], [(BATCH, T, 8)], 1),
    "matmul": (lambda x, w: [linear.matmul(x, w)], [(BATCH, T, 8), (8, 4)], 1),
    "rows": (
        lambda x, w: [b.reshape(linear.matmul(b.reshape(x, (ROWS, 8)), w), (BATCH, T, 4))],
        [(BATCH, T, 8), (8, 4)],
        1,
    ),
    "heads": (lambda x: [_heads(x)], [(BATCH, T, 8)], 1),
    "attention": (
        lambda q, k, v: [
            neural.scaled_dot_product_attention(_heads(q), _heads(k), _heads(v), is_causal=True)
        ],
        [(BATCH, T, 8)] * 3,
        3,
    ),
    "cat": (lambda x, y: [movement.cat([x, y], dim=1)], [(BATCH, T, 8), (BATCH, 3, 8)], 1),
    "pad": (lambda x: [b.pad(x, ((0, 0), (1, 2)))], [(BATCH, T)], 1),
    "shrink": (lambda x: [b.shrink(b.pad(x, ((2, 2),)), ((1, index.add(T, 1)),))], [(T,)], 1),
    "gradient": (
        lambda x, w: grad.gradients(
            [reduction.sum_(b.alu(ops.TANH, linear.matmul(x, w)))], [b.const(1.0, float64)], [x, w]
        ),
        [(T, 8), (8, 4)],
        3,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_values_and_counts(name: str) -> None:
    make, shapes, count = CASES[name]
    leaves = [leaf(slot, shape, float64) for slot, shape in enumerate(shapes)]
    roots = make(*leaves)
    plans = []
    for binding in BINDINGS:
        random = np.random.default_rng(0)
        arrays = [random.normal(size=[number(d, binding) for d in shape]) for shape in shapes]
        plans.append(agree(roots, arrays, variables=binding))
    assert [kernels(plan) for plan in plans] == [count] * len(BINDINGS)
    for plan in plans:
        assert [c.kernel for c in plan.calls()] == [c.kernel for c in plans[0].calls()]


def test_two_symbolic_lengths_share_a_flat_kernel() -> None:
    roots = [b.alu(ops.EXP, leaf(0, (T, 8), float64)), b.alu(ops.EXP, leaf(1, (BATCH, 3), float64))]
    random = np.random.default_rng(0)
    arrays = [random.normal(size=(5, 8)), random.normal(size=(3, 3))]
    plan = agree(roots, arrays, variables={"T": 5, "B": 3})
    first, second = plan.calls()
    assert first.kernel is second.kernel
    lengths = [number(call.variables["#length"], {"T": 5, "B": 3}) for call in (first, second)]
    assert sorted(lengths) == [9, 40]
    assert not any(n.op is ops.VARIABLE and n.arg[0] in "TB" for n in toposort(first.kernel, True))
