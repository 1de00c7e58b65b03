"""Monoids: the identity is one, and combining is associative, bit for bit where it is exact."""

import itertools

import numpy as np
import pytest

from treadle.ir import ops
from treadle.ir.dtype import bool_, float32, int32, uint8
from treadle.ir.monoid import MONOIDS
from treadle.ir.node import Node, toposort

SAMPLES = {
    float32: [-np.inf, -2.0, -0.0, 0.0, 1.0, 8.0, np.inf, np.nan],
    int32: [-(2**31), -2, 0, 1, 7, 2**31 - 1],
    uint8: [0, 1, 7, 255],
    bool_: [False, True],
}
ACCEPTS = {"and": "biu", "or": "biu"}


def combine(monoid, dtypes, a, b):
    """The monoid's combine, run by the meanings of its nodes."""
    left = tuple(Node(ops.PLACEHOLDER, t, (), (n, ())) for n, t in enumerate(dtypes))
    right = tuple(Node(ops.PLACEHOLDER, t, (), (n + 9, ())) for n, t in enumerate(dtypes))
    values = dict(zip((*left, *right), (*a, *b)))
    out = monoid.combine(left, right)
    for node in toposort(out):
        if node not in values:
            values[node] = np.asarray(node.op.meaning(node, *(values[s] for s in node.src)))
    assert tuple(n.dtype for n in out) == dtypes
    return tuple(values[n] for n in out)


def states(monoid, dtype):
    for number, value in enumerate(SAMPLES[dtype]):
        first = np.asarray(value, dtype.compute)
        yield (first,) if monoid.size == 1 else (first, np.asarray(number % 3, np.int32))


def identity(monoid, dtypes):
    # the identity of a pair has the index's own dtype in its second place
    return tuple(
        np.asarray(t.from_bits(t.to_bits(monoid.identity(n, t))), t.compute)
        for n, t in enumerate(dtypes)
    )


CASES = [
    pytest.param(monoid, dtype, id=f"{monoid.name}-{dtype}")
    for monoid in MONOIDS.values()
    for dtype in SAMPLES
    if dtype.kind in ACCEPTS.get(monoid.name, "biuf")
]
# float sums and products round: their order is part of the schedule
EXACT = [case for case in CASES if case.id not in ("add-float32", "mul-float32")]


def same(a, b):
    return all(np.array_equal(x, y, equal_nan=x.dtype.kind == "f") for x, y in zip(a, b))


@pytest.mark.parametrize(("monoid", "dtype"), CASES)
def test_the_identity_is_one(monoid, dtype):
    dtypes = (dtype,) if monoid.size == 1 else (dtype, int32)
    one = identity(monoid, dtypes)
    for state in states(monoid, dtype):
        assert same(combine(monoid, dtypes, one, state), state)
        assert same(combine(monoid, dtypes, state, one), state)


@pytest.mark.parametrize(("monoid", "dtype"), EXACT)
def test_combining_is_associative(monoid, dtype):
    dtypes = (dtype,) if monoid.size == 1 else (dtype, int32)
    for a, b, c in itertools.product(states(monoid, dtype), repeat=3):
        left = combine(monoid, dtypes, combine(monoid, dtypes, a, b), c)
        right = combine(monoid, dtypes, a, combine(monoid, dtypes, b, c))
        assert same(left, right), (a, b, c)


@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_argmax_is_that_of_numpy(name):
    values = np.array([1.0, 5.0, -2.0, 5.0, -2.0, np.nan, np.nan, np.inf], np.float32)
    for length in range(1, len(values) + 1):
        state = identity(MONOIDS[name], (float32, int32))
        for position in range(length):
            item = (values[position], np.asarray(position, np.int32))
            state = combine(MONOIDS[name], (float32, int32), state, item)
        assert int(state[1]) == getattr(np, name)(values[:length])
