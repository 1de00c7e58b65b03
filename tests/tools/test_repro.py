"""`treadle repro`: saved programs run from where they stand, and the pass that errs is named."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import treadle
from treadle import Tensor, config
from treadle.__main__ import main
from treadle.backend.base import Function
from treadle.engine import programs
from treadle.ir import ops
from treadle.ir.node import Node
from treadle.kernel import pipeline
from treadle.kernel.actions import Kind
from treadle.tools import repro, saved
from treadle.tools.repro import NAMES

GRAPH = """
# assigns 0:1
%0 = buffer float32 : (0, (4, 6), "CPU")
%1 = buffer float32 : (1, (4, 6), "CPU")
%2 = mul float32 %0, %1
%3 = reduce float32 %2 : ("add", (1,))
%4 = exp float32 %0
roots %4, %3
"""


@pytest.fixture(autouse=True)
def no_disk_cache() -> Any:
    with config.CACHE.set(0):
        yield


def names(text: str, first: str = "") -> list[tuple[str, bool]]:
    """(pass, whether it errs) of the steps of the first program of a text."""
    return [(step.name, step.is_wrong) for step in repro.check(saved.read(text)[0], first)]


def with_pass(owner: Any, name: str, change: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a pass of a list be followed by `change(value)`."""
    changed = tuple(
        p._replace(how=lambda v, c, how=p.how: change(how(v, c))) if p.name == name else p
        for p in owner.PASSES
    )
    monkeypatch.setattr(owner, "PASSES", changed)


# ---- reading -------------------------------------------------------------------------------------
def test_a_graph_is_read_with_its_assigns_and_written_again() -> None:
    (program,) = saved.read(GRAPH)
    assert program.kind == "graph" and program.assigns == {0: 1} and len(program.roots) == 2
    again = saved.show(program.roots, program.assigns, "from here")
    assert again.startswith("# from here\n# assigns 0:1\n%0")
    assert saved.read(again)[0].roots == program.roots


def test_what_explain_prints_is_read(tmp_path: Path) -> None:
    x = Tensor(np.ones((8, 16), np.float32), device="CPU").realize()
    shown = treadle.explain((x @ x.T).softmax(1), source=True)
    found = saved.read(shown)
    assert [program.kind for program in found] == ["kernel", "kernel"]
    assert all("vector" in program.roots[0].arg[0] for program in found)
    (tmp_path / "shown.txt").write_text(shown)
    assert main(["repro", str(tmp_path / "shown.txt")]) == 0


@pytest.mark.parametrize(("level", "kinds"), [(4, {"kernel"}), (6, {"kernel", "graph"})])
def test_what_debug_prints_is_read(
    level: int, kinds: set[str], capsys: pytest.CaptureFixture[str]
) -> None:
    programs.kept.clear()
    programs.compilers.clear()
    x = Tensor(np.ones((8, 8), np.float32), device="CPU").realize()
    with config.DEBUG.set(level):
        (x @ x + 0.3).softmax(1).realize()
    found = saved.read(capsys.readouterr().err)
    assert {program.kind for program in found} == kinds
    assert not any(step.is_wrong for program in found for step in repro.check(program))


def test_a_written_schedule_is_kept_also_an_empty_one() -> None:
    x = Tensor(np.ones((4, 8), np.float32), device="CPU").realize()
    shown = treadle.explain(x.exp())
    (kernel,) = [p.roots[0] for p in saved.read(shown)]
    assert kernel.arg[0].splitlines()[-1].startswith("vector ")
    head, _, rest = shown.partition("schedule:\n")
    (empty,) = [p.roots[0] for p in saved.read(f"{head}schedule:\n")]
    assert empty.arg == ("", ()) and rest
    (free,) = [p.roots[0] for p in saved.read(head)]
    assert free.arg is None
    assert {n for n, wrong in names(f"{head}schedule:\n", "kernel.schedule") if not wrong} == {
        "kernel.schedule",
        "kernel.lower",
        "compile",
    }


def test_every_stage_is_printed_and_read_back(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "program.txt"
    path.write_text(GRAPH)
    for upto, kind in (
        ("simplify", "graph"),
        ("schedule", "kernel"),
        ("kernel.schedule", "kernel"),
        ("kernel.lower", "function"),
    ):
        assert main(["repro", str(path), "--print", upto]) == 0
        shown = capsys.readouterr().out
        assert {program.kind for program in saved.read(shown)} == {kind}
        (tmp_path / "next.txt").write_text(shown)
        assert main(["repro", str(tmp_path / "next.txt")]) == 0
        assert "WRONG" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nothing here", "there is no program in this text"),
        ("%0 = nothing float32", "in the program at line 1: line 1: there is no op 'nothing'"),
        ("words\n%0 = exp float32 %7\n", "in the program at line 2: line 1: '%7' is no node"),
        (GRAPH.replace("%2 = mul", "%{2 = mul"), "line 5 is no node of a program: %{2 = mul"),
        (GRAPH.replace("(4, 6)", "(4, -6)"), "breaks the law of the graph stage"),
        (GRAPH.replace("0:1", "7:1"), "`# assigns 7:1` is not of the form"),
        (GRAPH.replace("0:1", "x"), "`# assigns x` is not of the form"),
    ],
)
def test_a_text_that_cannot_be_read(text: str, message: str, tmp_path: Path, capsys: Any) -> None:
    with pytest.raises(ValueError, match=message):
        saved.read(text)
    (tmp_path / "wrong.txt").write_text(text)
    assert main(["repro", str(tmp_path / "wrong.txt")]) == 2
    assert "wrong.txt: " in capsys.readouterr().err


# ---- passes --------------------------------------------------------------------------------------
def test_a_right_program_goes_through_every_pass() -> None:
    found = names(GRAPH)
    assert [name for name, _ in found[:2]] == ["simplify", "schedule"]
    assert {name for name, _ in found} == set(NAMES)
    assert not any(wrong for _, wrong in found)


@pytest.mark.parametrize("first", NAMES)
def test_beginning_at_a_pass_leaves_out_those_before(first: str) -> None:
    found = {name for name, _ in names(GRAPH, first)}
    before = set(NAMES[: NAMES.index(first)]) - {"schedule"}  # a graph has to be scheduled
    assert found & before == set()
    assert set(NAMES[NAMES.index(first) :]) <= found


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--from program", "no program in it goes through program: a kernel goes through kernel.b"),
        ("--print simplify", "no program in it goes through simplify"),
        ("--print compile", "there is no text after 'compile'"),
        ("--from kernel.lower --print kernel.build", "kernel.build is before kernel.lower"),
    ],
)
def test_a_pass_that_a_program_does_not_go_through(
    words: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (program,) = saved.read(GRAPH)
    path = tmp_path / "kernel.txt"
    path.write_text(repro.printed(program, "schedule", "INTERP"))
    assert main(["repro", str(path), *words.split()]) == 2
    assert message in capsys.readouterr().err


def test_what_has_no_memory_is_not_run(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "huge.txt").write_text(GRAPH.replace("(4, 6)", f"(4, {10**15})"))
    assert main(["repro", str(tmp_path / "huge.txt")]) == 0
    assert "cannot be run on made-up inputs: " in capsys.readouterr().out


def test_a_wrong_rule_of_the_graph_is_found(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    swap = lambda roots: [Node(ops.SIN, roots[0].dtype, roots[0].src), *roots[1:]]  # noqa: E731
    with_pass(programs, "simplify", swap, monkeypatch)
    assert names(GRAPH) == [("simplify", True)]
    (tmp_path / "graph.txt").write_text(GRAPH)
    assert main(["repro", str(tmp_path / "graph.txt")]) == 1
    shown = capsys.readouterr().out
    assert "result 0 is" in shown and "instead of" in shown
    assert shown.endswith("the first pass after which results differ: simplify\n")
    assert main(["repro", str(tmp_path / "graph.txt"), "--from", "schedule"]) == 0


def test_a_schedule_that_reads_the_wrong_buffer_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def swap(plan: Any) -> Any:
        for call in plan.calls():
            call.buffers = (*call.buffers[:-1], call.buffers[0])
        return plan

    with_pass(programs, "schedule", swap, monkeypatch)
    assert names(GRAPH)[-1] == ("schedule", True)


def test_a_wrong_lowering_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def forget(functions: tuple[Function, ...]) -> tuple[Function, ...]:
        """The last write of a loop is left out."""
        body = list(functions[-1].body)
        last = max(n for n, node in enumerate(body) if node.op is ops.WRITE)
        return (*functions[:-1], functions[-1]._replace(body=(*body[:last], *body[last + 1 :])))

    with_pass(pipeline, "lower", forget, monkeypatch)
    *_, last = repro.check(saved.read(GRAPH)[0])
    assert last.name == "kernel.lower" and "instead of" in last.note


def test_a_program_that_breaks_the_law_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = lambda roots: [Node(ops.EXP, treadle.int32, roots[0].src)]  # noqa: E731
    with_pass(programs, "simplify", wrong, monkeypatch)
    (step,) = repro.check(saved.read(GRAPH)[0])
    assert step.name == "simplify" and "LawError" in step.note


def test_the_wrong_action_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    action = Kind.__call__

    def wrong(self: Kind, kernel: Any) -> Any:
        """Whoever asks for lanes gets a kernel whose stores add 1 to what they should."""
        kernel = action(self, kernel)
        if self.kind != "vector":
            return kernel
        one = Node(ops.CONST, treadle.float32, (), treadle.float32.to_bits(1.0))
        return replace(
            kernel,
            statements=tuple(
                replace(s, values=(ops.ADD(s.values[0], one),)) if s.is_store else s
                for s in kernel.statements
            ),
        )

    monkeypatch.setattr(Kind, "__call__", wrong)
    steps = list(repro.check(saved.read(GRAPH)[0]))
    assert steps[-1].name == "kernel.schedule" and steps[-1].is_wrong
    assert "the first wrong action is the" in steps[-1].note and "vector" in steps[-1].note


def test_a_loop_whose_end_depends_on_data_is_not_run(capsys: Any, tmp_path: Path) -> None:
    with config.DEBUG.set(6):
        treadle.while_loop(lambda n: n < 5, lambda n: n + 1, Tensor(0)).realize()
    (tmp_path / "loop.txt").write_text(capsys.readouterr().err.split("kernel")[0])
    assert main(["repro", str(tmp_path / "loop.txt")]) == 0
    assert "how long a loop of it runs depends on its data" in capsys.readouterr().out
