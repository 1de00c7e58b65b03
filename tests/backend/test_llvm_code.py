"""What the LLVM backend writes and compiles: counts of lines and instructions, alignment, keys."""

from __future__ import annotations

import re

import numpy as np
import pytest

from treadle import host
from treadle.backend.base import Function
from treadle.backend.llvm import BACKEND, vector_registers
from treadle.backend.llvm.compile import Compiler, compiler
from treadle.backend.llvm.render import INLINE_LINES, offset_multiples, render
from treadle.ir import ops
from treadle.ir.dtype import bool_, float32, index, void
from treadle.ir.node import Node

X = Node(ops.ARG, float32, (), (0, (1000,)))
Y = Node(ops.ARG, float32, (), (1, (1000,)))
N = Node(ops.VARIABLE, index, (), ("n", 0, 1000))
WIDE = float32.vec(16)


def number(value: int) -> Node:
    return Node(ops.CONST, index, (), value)


def real(value: float) -> Node:
    return Node(ops.CONST, float32, (), float32.to_bits(value))


def splat(value: Node) -> Node:
    return Node(ops.SPLAT, WIDE, (value,))


def streaming(operation: Node | None, offset: int = 0) -> Function:
    """y[i + offset] = operation(x[i]), 16 at a time, past the caches."""
    loop = Node(ops.LOOP, index, (number(0), N), (0, 16))
    value = Node(ops.READ, WIDE, (X, loop))
    place = ops.ADD(loop, number(offset))
    write = Node(ops.WRITE, void, (Y, place, value), "nontemporal")
    return Function("f", (X, Y, N), (loop, value, place, write, Node(ops.END, void, (loop,))))


def chain(op: ops.Op, length: int) -> Function:
    nodes = [Node(ops.READ, WIDE, (X, number(0)))]
    for _ in range(length):
        nodes.append(op(nodes[-1]))
    nodes.append(Node(ops.WRITE, void, (Y, number(0), nodes[-1])))
    return Function("f", (X, Y), tuple(nodes))


def test_stores_past_the_caches_only_where_the_alignment_is_known() -> None:
    aligned = render([streaming(None)])
    assert "align 64, !nontemporal !0" in aligned
    assert "align 32, !nontemporal !0" in render([streaming(None, 8)])
    odd = render([streaming(None, 1)])
    assert "!nontemporal !0" not in odd and "align 4" in odd


@pytest.mark.skipif("avx512f" not in BACKEND.target.features, reason="names of x86 instructions")
def test_stores_past_the_caches_are_whole_vectors() -> None:
    text = compiler().assembly(render([streaming(None)]))
    assert len(re.findall(r"vmovntps\s+%zmm", text)) == 1


def test_multiples_of_offsets() -> None:
    loop = Node(ops.LOOP, index, (number(32), N), (0, 16))
    nodes = {
        loop: 16,
        ops.MUL(N, number(24)): 24,
        ops.ADD(ops.MUL(N, number(24)), loop): 8,
        ops.ADD(loop, number(3)): 1,
        N: 1,
    }
    body = [ops.MUL(N, number(24)), *nodes]
    known = offset_multiples(Function("f", (N,), tuple(body)))
    assert {node: known.get(node, 1) for node in nodes} == nodes


@pytest.mark.parametrize("op", [ops.MAX, ops.MIN])
@pytest.mark.parametrize("limit", [0.0, -0.0, 6.0, float("inf"), float("-inf")])
@pytest.mark.parametrize("place", [0, 1])
def test_an_extreme_against_a_constant_is_a_comparison(
    op: ops.Op, limit: float, place: int
) -> None:
    value = Node(ops.READ, WIDE, (X, number(0)))
    fixed = splat(real(limit))
    sources = (fixed, value) if place else (value, fixed)
    result = op(*sources)
    body = (value, fixed, result, Node(ops.WRITE, void, (Y, number(0), result)))
    text = render([Function("f", (X, Y), body)])
    assert "llvm.m" not in text and text.count("fcmp") == 1
    assert "llvm.maximum" in render([_two(ops.MAX)])


def _two(op: ops.Op) -> Function:
    a, b = (Node(ops.READ, WIDE, (X, number(n))) for n in (0, 16))
    value = op(a, b)
    return Function("f", (X, Y), (a, b, value, Node(ops.WRITE, void, (Y, number(0), value))))


def test_lines_grow_by_one_for_each_operation() -> None:
    lines = [render([chain(ops.SQRT, n)]).count("\n") for n in (10, 11, 30)]
    assert lines[1] - lines[0] == 1
    assert lines[2] - lines[0] == 20


def test_a_long_chain_calls_what_a_short_one_inlines() -> None:
    short, long = render([chain(ops.EXP, 2)]), render([chain(ops.EXP, 2000)])
    assert "#2\n" not in short
    calls = [line for line in long.splitlines() if "call" in line and "@treadle.exp" in line]
    out_of_line = [line for line in calls if line.endswith("#2")]
    assert len(calls) == 2000
    assert 0 < len(calls) - len(out_of_line) <= INLINE_LINES
    assert long.count("define internal") == short.count("define internal")
    BACKEND.compile(long)


def test_text_names_no_machine_and_is_the_same_again() -> None:
    function = chain(ops.EXP, 3)
    text = render([function])
    assert text == render([function])
    assert "target triple" not in text and "target-cpu" not in text


def test_a_loop_that_surely_runs_has_no_guard() -> None:
    def lines(stop: Node, *params: Node) -> str:
        loop = Node(ops.LOOP, index, (number(0), stop), (0, 1))
        body = (loop, Node(ops.WRITE, void, (Y, loop, real(1.0))), Node(ops.END, void, (loop,)))
        return render([Function("f", (Y, *params), body)])

    assert lines(N, N).count("br i1") == 2
    assert lines(number(9)).count("br i1") == 1
    assert lines(number(1)).count("br ") == 0


def test_parameters_that_are_not_used_are_not_read() -> None:
    write = Node(ops.WRITE, void, (Y, number(0), real(1.0)))
    assert render([Function("f", (X, Y, N), (write,))]).count("load") == 2
    flag = Node(ops.FLAG, void, (Node(ops.CONST, bool_, (), 1),), 0)
    assert render([Function("f", (X, Y, N), (write, flag))]).count("load") == 5


def test_bad_text_is_refused_in_words() -> None:
    with pytest.raises(RuntimeError, match="expected"):
        BACKEND.compile("define void @f() { nonsense }")
    use_before = "define i64 @f() {\n  %a = add i64 %b, 1\n  %b = add i64 %a, 1\n  ret i64 %a\n}\n"
    with pytest.raises(RuntimeError, match="dominate"):
        BACKEND.compile(use_before)


def test_the_code_key_names_all_that_decides() -> None:
    made = compiler()
    for part in (made.triple, made.cpu, made.features, made.layout, "always_inliner"):
        assert part in BACKEND.code_key
    assert Compiler().key == made.key


@pytest.mark.parametrize(
    ("features", "registers"),
    [
        ("+avx2,+avx512f,+sse2", (64, 32)),
        ("-avx512f,+avx2,+sse2", (32, 16)),
        ("+neon", (16, 32)),
        ("-neon", (0, 16)),
    ],
)
def test_vector_registers(features: str, registers: tuple[int, int]) -> None:
    assert vector_registers(features) == registers


def test_target_of_this_machine() -> None:
    target = BACKEND.target
    assert target.lanes(float32) == max(1, target.vector_bytes // 4)
    assert target.threads == host.threads()
    assert all(size > 0 for size in target.cache_bytes)
    assert np.dtype(float32.storage).name in target.dtypes
