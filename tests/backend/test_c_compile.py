"""The C compiler as a part that may be missing or may fail, and what C cannot say."""

from __future__ import annotations

import pytest

from treadle.backend.base import Function
from treadle.backend.c import compile as c_compile
from treadle.backend.c.render import render
from treadle.ir import ops
from treadle.ir.dtype import float32, index, void
from treadle.ir.node import Node


@pytest.fixture
def compiler() -> c_compile.Compiler:
    try:
        return c_compile.compiler()
    except RuntimeError as error:
        pytest.skip(str(error))


def test_without_a_compiler_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(c_compile.shutil, "which", lambda name: None)
    monkeypatch.setattr(c_compile.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(RuntimeError, match="install gcc or clang, or run `pip install ziglang`"):
        c_compile.Compiler()


@pytest.mark.parametrize(
    ("present", "command"),
    [
        ({"gcc", "clang", "zig"}, ["/bin/gcc"]),
        ({"clang", "zig"}, ["/bin/clang"]),
        ({"zig"}, ["/bin/zig", "cc"]),
    ],
)
def test_the_order_of_compilers(
    monkeypatch: pytest.MonkeyPatch, present: set[str], command: list[str]
) -> None:
    found = {name: f"/bin/{name}" for name in present}
    monkeypatch.setattr(c_compile.shutil, "which", found.get)
    assert c_compile.find_command() == command


def test_what_the_compiler_says_is_wrapped(compiler: c_compile.Compiler) -> None:
    said = r"refused code that treadle wrote(.|\n)*error: expected"
    with pytest.raises(RuntimeError, match=said):
        compiler.compile("nonsense")


def test_the_key_knows_the_processor(compiler: c_compile.Compiler) -> None:
    assert "-ffp-contract=off" in compiler.key
    assert compiler.command[0] in compiler.key
    assert c_compile.Compiler().key == compiler.key


def test_vectors_have_powers_of_two_lanes() -> None:
    y = Node(ops.ARG, float32, (), (0, (8,)))
    value = Node(ops.CONST, float32.vec(3), (), float32.to_bits(1.0))
    write = Node(ops.WRITE, void, (y, Node(ops.CONST, index, (), 0), value))
    with pytest.raises(ValueError, match="3 lanes, only of powers of two"):
        render([Function("f", (y,), (write,))])
