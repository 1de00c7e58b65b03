"""Monoids: the identity is one, and combining is associative, bit for bit where it is exact."""

import itertools

import numpy as np
import pytest

from treadle.ir import ops, text
from treadle.ir.dtype import bool_, float32, int32, uint8
from treadle.ir.monoid import MONOIDS, find, places, written
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
        if node.op is ops.CONST:
            values[node] = np.asarray(node.value, node.dtype.compute)
        elif node not in values:
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
    if monoid.enter is None  # those round: see below
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


WEIGHTED = [monoid for monoid in MONOIDS.values() if monoid.enter is not None]
VALUES = [-np.inf, -3.0, 0.0, 2.5, 40.0, np.inf, np.nan]


def entered(monoid, value):
    """The state of one number (weighted: of the number and itself)."""
    places = [Node(ops.PLACEHOLDER, float32, (), (n, ())) for n in range(monoid.size - 1)]
    given = (places[0],) if monoid.name != "softmax" else (places[0], places[1])
    roots = monoid.enter(given)
    values = {place: np.float32(value) for place in places}
    for node in toposort(roots):
        if node not in values:
            if node.op is ops.CONST:
                values[node] = np.float32(node.value)
            else:
                with np.errstate(invalid="ignore"):
                    values[node] = node.op.meaning(node, *(values[s] for s in node.src))
    return tuple(np.asarray(values[root], np.float32) for root in roots)


def close(a, b):
    return all(np.allclose(x, y, rtol=1e-5, equal_nan=True) for x, y in zip(a, b))


@pytest.mark.parametrize("monoid", WEIGHTED, ids=lambda monoid: monoid.name)
def test_weighted_sums_have_an_identity_and_are_associative(monoid):
    dtypes = (float32,) * monoid.size
    one = identity(monoid, dtypes)
    values = [v for v in VALUES if monoid.name != "softmax" or np.isfinite(v)]
    found = [entered(monoid, value) for value in values]
    for state in [one, *found]:
        if not np.isnan(state[0]):  # what stands beside a greatest value of NaN does not matter
            assert same(combine(monoid, dtypes, one, state), state)
            assert same(combine(monoid, dtypes, state, one), state)
    for a, b, c in itertools.product(found, repeat=3):
        left = combine(monoid, dtypes, combine(monoid, dtypes, a, b), c)
        right = combine(monoid, dtypes, a, combine(monoid, dtypes, b, c))
        if monoid.name != "welford":
            assert close(left, right), (a, b, c)
        else:  # its last part is NaN where a value is infinite, its mean that of a sum
            values = np.array([a[1], b[1], c[1]], np.float64)
            with np.errstate(invalid="ignore"):
                expected = (3, values.mean(), ((values - values.mean()) ** 2).sum())
            assert close(left, expected)
            assert close(right, expected)


def test_a_written_monoid_is_the_one_it_was_written_from():
    first, second = places((float32, int32))
    combined = MONOIDS["argmax"].combine(first, second)
    sink = written(combined, (-np.inf, 2**31 - 1))
    assert text.parse(text.show(sink)) is sink
    assert find(sink).combine(first, second) == combined
    assert [find(sink).identity(n, t) for n, t in enumerate((float32, int32))] == [
        -np.inf,
        2**31 - 1,
    ]
