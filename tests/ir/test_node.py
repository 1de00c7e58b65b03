"""Nodes: interned, weakly held, with what every pass asks for; the walks over them."""

import gc
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from treadle.ir import index, node, ops
from treadle.ir.dtype import bool_, float32, float64
from treadle.ir.node import Node, arg_nodes, map_arg, remember, remember_below, toposort

ROOT = Path(__file__).resolve().parents[2]


def placeholder(number=0, shape=(3, 4), dtype=float32):
    return Node(ops.PLACEHOLDER, dtype, (), (number, shape))


def test_equal_programs_are_the_same_object():
    x = placeholder()
    assert ops.ADD(x, x) is ops.ADD(x, x)
    assert ops.ADD(x, x) is not ops.MUL(x, x)
    assert placeholder(dtype=float64) is not x


def test_constants_are_told_apart_by_their_bits():
    bits = [float32.to_bits(v) for v in (0.0, -0.0, float("nan"), 1.0)]
    constants = [Node(ops.CONST, float32, (), b) for b in bits]
    assert len(set(constants)) == 4
    assert Node(ops.CONST, float32, (), float32.to_bits(float("nan"))) is constants[2]
    assert Node(ops.CONST, bool_, (), 1) is not Node(ops.CONST, float32, (), 1)
    assert constants[3].value == 1.0


def test_a_node_lives_as_long_as_it_is_held():
    x = placeholder(77)
    gc.collect()
    before = len(node._table)
    kept = ops.SIN(ops.EXP(x))
    assert len(node._table) == before + 2
    del kept
    assert len(node._table) == before


def test_a_deep_chain_dies_without_recursion():
    x = placeholder(78)
    gc.collect()
    before = len(node._table)
    deep = x
    for _ in range(100_000):
        deep = ops.SIN(deep)
    assert len(toposort(deep)) == 100_001
    del deep
    gc.collect()
    assert len(node._table) == before


def test_shape_free_and_bounds():
    x = placeholder()
    assert ops.ADD(x, x).shape == (3, 4)
    i, j = index.range_(0, 5), index.range_(3, 6)
    assert index.add(i, j).free == 0b1001
    assert index.add(i, j).bounds == (0, 9)
    a = Node(ops.ARG, float32, (), (0, (5, 6)))
    load = Node(ops.LOAD, float32, (a, i, j), 2)
    assert Node(ops.KREDUCE, float32, (load, j), ("add", 1)).free == 1


def test_dtype_follows_the_row():
    x = placeholder()
    assert ops.LT(x, x).dtype is bool_
    assert ops.ADD(x, x).dtype is float32
    wide = Node(ops.SPLAT, float32.vec(4), (Node(ops.SCALAR, float32, (), 0),))
    assert ops.LT(wide, wide).dtype is bool_.vec(4)


def test_toposort_is_in_order_of_the_program():
    x, y = placeholder(0), placeholder(1)
    root = ops.SUB(ops.MUL(x, y), ops.EXP(x))
    assert toposort(root) == [x, y, ops.MUL(x, y), ops.EXP(x), root]
    assert toposort([ops.EXP(x), root])[:2] == [x, ops.EXP(x)]
    length = index.variable("T", 1, 8)
    shaped = placeholder(0, (length, 2))
    assert toposort(shaped) == [shaped]
    assert toposort(shaped, into_args=True) == [length, shaped]


def test_nodes_inside_args():
    t = index.variable("T", 1, 8)
    arg = ("a", (1, (t, 2)), t)
    assert list(arg_nodes(arg)) == [t, t]
    assert map_arg(arg, lambda n: 5) == ("a", (1, (5, 2)), 5)


def test_remember_computes_once():
    calls = []
    x = placeholder(79)

    def count(n):
        calls.append(n)
        return len(calls)

    assert remember(x, "count", count) == remember(x, "count", count) == 1
    assert len(calls) == 1


def test_remember_below_runs_sources_first_and_each_once():
    deep = placeholder(80)
    for _ in range(5000):
        deep = ops.ADD(deep, ops.SIN(deep))
    seen = []

    def depth(n):
        seen.append(n)
        return 1 + max([s.memo["depth"] for s in n.src], default=0)

    assert remember_below(deep, "depth", depth) == 10_001
    assert len(seen) == len(set(seen)) == 10_001


def test_a_digest_sees_op_dtype_arg_and_sources():
    x, y = placeholder(0), placeholder(1)
    different = [
        ops.ADD(x, y), ops.ADD(y, x), ops.SUB(x, y), x, y,
        placeholder(0, (3, 5)), placeholder(0, dtype=float64),
        placeholder(0, (index.variable("T", 1, 5), 4)),
        placeholder(0, (index.variable("T", 1, 6), 4)),
    ]  # fmt: skip
    assert len({n.digest for n in different}) == len(different)
    assert all(len(n.digest) == 16 for n in different)


PROGRAM = """
from treadle.ir import index, ops
from treadle.ir.dtype import float32
from treadle.ir.node import Node
from treadle.ir.text import show

def build(backwards):
    t, s = [index.variable(n, 1, 9) for n in ("T", "S")][:: -1 if backwards else 1]
    if backwards:
        t, s = s, t
    parts = [index.mul(t, 3), index.floordiv(s, 2), index.mod(t, 4), index.mul(s, t)]
    size = index.add(*(parts[::-1] if backwards else parts))
    x = Node(ops.PLACEHOLDER, float32, (), (0, (size,)))
    half = Node(ops.CONST, float32, (), float32.to_bits(0.1))
    return ops.MUL(ops.EXP(x), Node(ops.EXPAND, float32, (half,), (size,)))
"""


def test_digest_and_text_are_equal_in_another_process_that_built_in_another_order():
    scope: dict = {}
    exec(PROGRAM, scope)
    mine = scope["build"](False)
    script = PROGRAM + "n = build(True)\nprint(n.digest.hex())\nprint(show(n), end='')"
    environment = {**os.environ, "PYTHONHASHSEED": "77", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env=environment, check=True
    )
    digest, _, text = done.stdout.partition("\n")
    assert digest == mine.digest.hex()
    assert text == scope["show"](mine)


def test_a_node_is_not_pickled_but_a_dtype_is():
    with pytest.raises(TypeError, match="pickled as text"):
        pickle.dumps(placeholder())
    assert pickle.loads(pickle.dumps(float32.vec(8))) is float32.vec(8)
