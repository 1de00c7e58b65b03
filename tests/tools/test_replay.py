"""`treadle replay`: what is recorded, what is kept of it, and that a changed pass is seen."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from treadle import Tensor, config, events
from treadle.__main__ import main
from treadle.engine import programs
from treadle.graph import simplify
from treadle.ir import ops
from treadle.kernel import pipeline
from treadle.tools import meanings, saved
from treadle.tools.replay import compare, lowering, record
from treadle.tools.replay.compare import CORPUS, Change
from treadle.tools.worktree import resolve, worktree

TWO = """
%0 = buffer float32 : (0, (40, 6), "CPU")
%1 = buffer float32 : (1, (40, 6), "CPU")
%2 = mul float32 %0, %1
%3 = reduce float32 %2 : ("add", (1,))
roots %3, %2
"""
ONE = """
%0 = buffer int32 : (0, (3,), "CPU")
%1 = add int32 %0, %0
roots %1
"""


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """A corpus of two programs."""
    folder = tmp_path / "corpus"
    folder.mkdir()
    (folder / "two.txt").write_text(TWO)
    (folder / "one.txt").write_text(ONE)
    return folder


# ---- recording -----------------------------------------------------------------------------------
def test_every_program_that_is_made_is_recorded_once(tmp_path: Path) -> None:
    x = Tensor(np.arange(5, dtype=np.float32), device="CPU").realize()
    with config.RECORD.set(str(tmp_path)), events.listen("schedule", record.on_schedule):
        for _ in range(2):
            programs.kept.clear()
            (x * 2 + 1).realize()
        (x * 3.25).realize()
    texts = [path.read_text() for path in tmp_path.glob("*.txt")]
    assert len(texts) == 2
    assert all(text.startswith("# from tests/tools/test_replay.py::test_every") for text in texts)
    assert all(saved.read(text)[0].kind == "graph" for text in texts)


def recorded(name: str, text: str) -> record.Recorded:
    (program,) = saved.read(text)
    return record.Recorded(Path(name), text, record.features(program.roots, program.assigns))


def test_a_choice_has_every_feature_and_no_two_programs_that_differ_in_numbers() -> None:
    head = "# from tests/x"
    found = [
        recorded("a", head + ONE),
        recorded("b", head + ONE.replace("(3,)", "(4,)")),
        recorded("c", head + TWO),
        recorded("d", head + TWO.replace("float32", "float64")),
    ]
    chosen = record.choose(found, 10)
    assert {each.path.name for each in chosen} == {"a", "c", "d"}
    assert len(record.choose(found, 1)) == 1


def test_what_programs_made_is_kept_in_any_case() -> None:
    found = [recorded("a", "# from tests/x" + ONE), recorded("b", "# from demo.py" + ONE)]
    assert {each.path.name for each in record.choose(found, 10)} <= {"a", "b"}
    assert [each.path.name for each in record.choose(found[::-1], 10)] == ["b"]


def test_keeping_replaces_what_was_there(tmp_path: Path) -> None:
    (tmp_path / "old.txt").write_text(ONE)
    assert record.keep([recorded("new.txt", TWO)], tmp_path) == len(TWO)
    assert [path.name for path in tmp_path.iterdir()] == ["new.txt"]


def test_the_committed_corpus_is_read_and_some_of_it_lowered() -> None:
    paths = sorted(CORPUS.glob("*.txt"))
    assert 100 <= len(paths) <= 400
    assert sum(path.stat().st_size for path in paths) < 1 << 20
    for path in paths[::10]:
        (program,) = saved.read(path.read_text())
        found = lowering.lower(program)
        assert found["error"] == "" and saved.read(found["graph"])[0].kind == "graph"


# ---- comparing -----------------------------------------------------------------------------------
def changes(before: Any, after: Any) -> dict[str, Change]:
    return {change.name: change for change in compare.compare(before, after)}


def test_the_same_passes_give_the_same_texts(corpus: Path) -> None:
    found = changes(lowering.lower_all(corpus), lowering.lower_all(corpus))
    assert {change.kind for change in found.values()} == {"identical"}
    assert compare.summary(list(found.values())) == "2 programs: 2 identical"


def test_a_changed_heuristic_is_seen(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = lowering.lower_all(corpus)
    build, schedule, lower = pipeline.PASSES

    def plainly(kernel: Any, context: Any) -> Any:
        """No action at all."""
        context.plan = pipeline.Plan(kernel, context.target)
        return kernel

    monkeypatch.setattr(pipeline, "PASSES", (build, schedule._replace(how=plainly), lower))
    after = lowering.lower_all(corpus)
    found = changes(before, after)
    assert found["two"].kind == "cost"
    assert {"actions", "source"} <= set(found["two"].stages)
    assert "graph" not in found["two"].stages
    assert found["two"].counts["steps"][0] == before["two"]["counts"]["steps"]
    assert str(found["two"]).startswith("two  cost: ")
    diff = compare.diff(before["two"], after["two"])
    assert "--- before/actions" in diff and "-vector " in diff
    assert "--- before/graph" not in diff


def test_a_changed_result_is_seen(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = [tmp_path / "before", tmp_path / "after"]
    before = lowering.lower_all(corpus)
    said = [lowering.run_all(corpus, ["one", "two"], folders[0], 60)]
    rules = simplify.simplify

    def wrong(roots: Any) -> Any:
        return [ops.MUL(r, r) if r.dtype.is_float else r for r in rules(roots)]

    monkeypatch.setattr(simplify, "simplify", wrong)
    found = changes(before, lowering.lower_all(corpus))
    said.append(lowering.run_all(corpus, ["one", "two"], folders[1], 60))
    assert said == [{}, {}]
    compare.note_results(list(found.values()), folders, said)
    assert (found["one"].kind, found["two"].kind) == ("identical", "result")
    assert "limits apart" in str(found["two"])


def test_a_program_that_fails_now_is_broken_and_an_unknown_operation_is_not(
    corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = lowering.lower_all(corpus)
    (corpus / "one.txt").write_text(ONE.replace("add", "nothing"))
    unknown = lowering.lower_all(corpus)
    assert unknown["one"]["error"].startswith("cannot be read")
    assert changes(unknown, whole)["one"].kind == "unknown before"
    assert changes(whole, unknown)["one"].kind == "broken"

    def fail(roots: Any) -> Any:
        raise KeyError("nothing")

    monkeypatch.setattr(simplify, "simplify", fail)
    found = compare.compare(whole, lowering.lower_all(corpus))
    assert [change.kind for change in found] == ["broken", "broken"]
    assert "KeyError: 'nothing'" in str(found[1])


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (b"", "there is no program in this text"),
        (b"\xff\xfe", "codec can't decode"),
        ((ONE + ONE).encode(), "it holds a graph and a graph, not one graph"),
        (ONE.replace("add", "newer").encode(), "there is no op 'newer'"),
    ],
)
def test_a_text_that_neither_side_can_read_is_said(
    corpus: Path, damage: bytes, message: str
) -> None:
    (corpus / "one.txt").write_bytes(damage)
    both = lowering.lower_all(corpus)
    said = compare.summary(compare.compare(both, both))
    assert said.startswith("2 programs: 1 failing, 1 identical")
    assert "one  failing: cannot be read: " in said and message in said


def test_a_change_says_what_the_program_is_of(corpus: Path) -> None:
    (corpus / "one.txt").write_text("# from demo.py" + ONE)
    before = lowering.lower_all(corpus)
    after = {name: {**data, "source": "another"} for name, data in before.items()}
    assert str(changes(before, after)["one"]) == "one  text: source  (demo.py)"


def test_worse_comes_first() -> None:
    counts = {"launches": 2, "lines": 10}

    def lowered(**changed: int) -> dict[str, Any]:
        stages = dict.fromkeys(lowering.STAGES, str(changed))
        return {"error": "", "counts": {**counts, **changed}, **stages}

    before = {name: lowered() for name in "abc"}
    after = {"a": lowered(lines=12), "b": lowered(launches=4), "c": lowered(launches=1)}
    found = compare.compare(before, after)
    assert [change.name for change in found] == ["b", "a", "c"]
    assert "together: launches +1, lines +2" in compare.summary(found)


# ---- running -------------------------------------------------------------------------------------
def test_inputs_are_the_same_every_time_and_of_the_right_type() -> None:
    (program,) = saved.read(TWO)
    first, second = meanings.inputs(program.roots), meanings.inputs(program.roots)
    assert first.arrays[0].dtype == np.float32 and first.arrays[0].shape == (40, 6)
    np.testing.assert_array_equal(first.arrays[1], second.arrays[1])


def test_inputs_on_which_rounding_decides_are_not_used() -> None:
    text = """
%0 = buffer float32 : (0, (50,), "CPU")
%1 = mul float32 %0, %0
%2 = add float32 %1, %1
%3 = exp float32 %2
%4 = sin float32 %3
"""
    (program,) = saved.read(text)
    first = meanings.inputs(program.roots)
    given, _ = meanings.sound_inputs(program.roots)
    assert np.abs(given.arrays[0]).max() < np.abs(first.arrays[0]).max()


def test_a_result_has_the_shape_of_its_root(corpus: Path) -> None:
    (corpus / "one.txt").write_text(ONE.replace("roots %1", "%2 = reshape int32 %1 : (1, 3, 1)"))
    assert main(["repro", str(corpus / "one.txt")]) == 0


def test_distance_of_results() -> None:
    one = np.array([1.0, np.nan, np.inf], np.float32)
    assert meanings.apart(one, one.copy(), 1e-4) == 0
    assert meanings.apart(np.array([1.0, 2.0]), np.array([1.0, 4.0]), 0.5) == 1.0
    assert meanings.apart(one, np.array([1.0, 1.0, np.inf], np.float32), 1.0) == np.inf
    assert meanings.apart(np.array([1]), np.array([2]), 0.0) == np.inf
    assert meanings.apart(np.zeros(2), np.zeros(3), 1.0) == np.inf


# ---- commits -------------------------------------------------------------------------------------
@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository of one commit."""
    if shutil.which("git") is None:
        pytest.skip("there is no git here")
    root = tmp_path / "repository"
    root.mkdir()
    (root / "file").write_text("first")
    own = ["-c", "user.name=n", "-c", "user.email=e@x"]
    for words in (["init", "-q"], ["add", "file"], [*own, "commit", "-q", "-m", "first"]):
        subprocess.run(["git", "-C", str(root), *words], check=True)
    return root


def test_a_worktree_has_a_commit_and_is_gone_afterwards(repository: Path) -> None:
    (repository / "file").write_text("changed")
    with worktree(repository, resolve(repository, "HEAD")) as root:
        assert (root / "file").read_text() == "first"
    assert not root.exists()
    listed = subprocess.run(
        ["git", "-C", str(repository), "worktree", "list"], capture_output=True, text=True
    )
    assert len(listed.stdout.splitlines()) == 1


def test_a_commit_that_is_not_there_is_an_error_or_only_said(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ValueError, match="a clone of depth 1 has its newest commit only"):
        resolve(repository, "HEAD~1")
    assert main(["replay", "compare", "no-such-commit"]) == 2
    assert "'no-such-commit' is no commit" in capsys.readouterr().err
    assert main(["replay", "compare", "no-such-commit", "--soft"]) == 0
    assert capsys.readouterr().out.startswith("no replay: ")


def test_without_a_corpus_there_is_nothing_to_compare(tmp_path: Path, capsys: Any) -> None:
    assert main(["replay", "--corpus", str(tmp_path), "compare", "HEAD"]) == 2
    assert "there is no corpus" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("record --most 0 -- true", "--most is a number of at least 1, not 0"),
        ("compare HEAD --lowering-only --seconds 5", "--lowering-only runs nothing, so --seconds"),
        ("compare HEAD --seconds nan", "--seconds is a number of at least 0, not nan"),
        ("compare HEAD --worst -1", "--worst is a number of at least 0, not -1"),
        ("compare HEAD --diff three", "there is no text 'three' in "),
    ],
)
def test_options_that_make_no_sense(words: str, message: str, corpus: Path, capsys: Any) -> None:
    assert main(["replay", "--corpus", str(corpus), *words.split()]) == 2
    assert message in capsys.readouterr().err


def test_a_command_is_recorded_where_it_is_typed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "own.txt").write_text("# from own.py" + ONE)
    monkeypatch.chdir(tmp_path)
    copy = 'cp own.txt "$RECORD"; exit 3'  # a command that records a program, and fails then
    assert main(["replay", "--corpus", "kept", "record", "--", "sh", "-c", copy]) == 0
    assert "it ended with status 3" in capfd.readouterr().err
    assert Path("kept", "own.txt").exists()


def test_a_record_that_cannot_be_written_names_the_knob(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with (
        config.RECORD.set(str(tmp_path / "file" / "folder")),
        pytest.raises(OSError, match=r"the knob RECORD: .*folder cannot be written"),
    ):
        record.on_schedule({"given": saved.read(ONE)[0].roots, "assigns": {}})
