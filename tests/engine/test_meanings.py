"""Random graphs mean the same in every evaluation there is: the simplified graph, the kernels of
its schedule, these kernels as the heuristic schedules them, and the whole path on every device.

`tools/fuzz.py` does the same for as long as one likes. What it found once stands in `graphs/`.
"""

from __future__ import annotations

from pathlib import Path

import fuzz
import fuzz_graphs
import fuzz_meanings
import numpy as np
import pytest

from treadle import config
from treadle.engine import device
from treadle.ir import ops
from treadle.ir.node import toposort

HERE = Path(__file__).resolve().parent
INTERPRETED = ("graph", "kernels", "heuristic", "INTERP")


@pytest.fixture(autouse=True)
def no_disk_cache():
    with config.CACHE.set(0):
        yield


def has_c() -> bool:
    try:
        device.backend("C")
    except (ImportError, RuntimeError):
        return False
    return True


needs_c = pytest.mark.skipif(not has_c(), reason="the device C needs gcc or clang")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("first", range(0, 400, 80))
def test_random_graphs(first):
    failures = {}
    for seed in range(first, first + 80):
        wrong = fuzz_meanings.check(fuzz_graphs.make(seed), (*INTERPRETED, "CPU"))
        if wrong:
            failures[seed] = wrong
    assert not failures, f"python tools/fuzz.py {min(failures)} 1 makes the first small"


@needs_c
def test_random_graphs_in_c():
    failures = {}
    for seed in range(1000, 1025):
        wrong = fuzz_meanings.check(fuzz_graphs.make(seed), ("CPU", "C"))
        if wrong:
            failures[seed] = wrong
    assert not failures


@pytest.mark.parametrize(
    "path", sorted((HERE / "graphs").glob("*.txt")), ids=lambda path: path.stem
)
def test_what_was_found_once(path):
    names = (*INTERPRETED, "CPU", "C") if has_c() else (*INTERPRETED, "CPU")
    assert fuzz_meanings.check(fuzz.read(path.read_text()), names) == []


def test_a_graph_follows_from_its_seed():
    assert fuzz.show(fuzz_graphs.make(3)) == fuzz.show(fuzz_graphs.make(3))
    assert fuzz.show(fuzz_graphs.make(3)) != fuzz.show(fuzz_graphs.make(4))


def test_the_graphs_cover_the_operations():
    """Every operation of the graph stage that a random graph can have is in one of 500."""
    seen = set()
    for seed in range(500):
        graph = fuzz_graphs.make(seed)
        seen.update(node.op for node in toposort([value.node for value in graph.roots], True))
    expected = {op for op in ops.TABLE.values() if "g" in op.stages}
    # derivatives, calls, kernels of users, random draws, transfers and stop_gradient have tests of
    # their own, and so have complex numbers; IPROD to IMIN need products of sizes; FMA, POW and
    # ZMUL are made by rules
    beyond = {
        ops.FMA, ops.POW, ops.THREEFRY, ops.ZMUL, ops.SCALAR, ops.COPY, ops.STOP, ops.CALL,
        ops.AGAIN, ops.KERNEL, ops.IPROD, ops.IFLOOR, ops.IMOD, ops.IMAX, ops.IMIN, ops.ISUM,
        ops.COMPLEX, ops.REAL, ops.IMAG,
    }  # fmt: skip
    assert {op.name for op in expected - beyond - seen} == set()


# ---- the tool itself -----------------------------------------------------------------------------
def test_text_of_a_graph_is_read_again():
    graph = fuzz_graphs.make(7)
    again = fuzz.read(fuzz.show(graph))
    assert [value.node for value in again.roots] == [value.node for value in graph.roots]
    assert again.variables == graph.variables
    for one, other in zip(again.roots, graph.roots):
        np.testing.assert_array_equal(one.array, other.array)
        assert one.error == other.error


def test_a_failure_is_made_small(monkeypatch):
    """An evaluation that gets every product wrong: what is left is one product of two leaves."""

    def wrong(graph):
        correct = fuzz_meanings.of_graph(graph)
        below = [toposort(value.node) for value in graph.roots]
        return [
            array + 1000 if any(node.op is ops.MUL for node in nodes) else array
            for nodes, array in zip(below, correct)
        ]

    monkeypatch.setitem(fuzz_meanings.MEANINGS, "wrong", wrong)
    failing = (fuzz_graphs.make(seed) for seed in range(100))
    graph = next(g for g in failing if fuzz_meanings.check(g, ["wrong"]))
    small = fuzz.shrink(graph, ["wrong"])
    operations = [node.op for node in toposort([value.node for value in small.roots])]
    assert operations.count(ops.MUL) == 1
    assert set(operations) <= {ops.MUL, ops.BUFFER, ops.RESHAPE, ops.EXPAND, ops.CONST}


@pytest.mark.parametrize(
    ("got", "wrong"),
    [([1.0, np.nan, 0.0], False), ([1.0, np.nan, -0.0], True), ([1.0, 2.0, 0.0], True)],
)
def test_exact_values_are_compared_to_the_bit(got, wrong):
    (root,) = fuzz_graphs.make(2).roots[:1]
    value = fuzz_graphs.Value(root.node, np.array([1.0, np.nan, 0.0]))
    if not root.node.dtype.is_float:
        pytest.fail("the root of seed 2 is meant to be a float")
    assert bool(fuzz_meanings.difference(value, np.array(got))) is wrong
