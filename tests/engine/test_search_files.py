"""What a search has found survives: killed writers, several writers, folders where nothing can be
written, files of another version."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from treadle.__main__ import main
from treadle.engine import lines, tuned
from treadle.engine.search.journal import Entry, Journal
from treadle.engine.search.workers import Worker

NEWER = '{"treadle tuned schedules": 2}\n{"kernel": "of the future"}\n'


def result(kernel: str = "k", seconds: float = 1e-3, target: str = "CPU") -> tuned.Result:
    return tuned.Result(kernel, target, "grid i", seconds, 2e-3, "64 outputs")


def test_a_line_that_was_cut_short_costs_only_itself(tmp_path: Path) -> None:
    path = tmp_path / "a.tuned.jsonl"
    tuned.append(path, result("first"), result("second"))
    path.write_bytes(path.read_bytes()[:-30])
    tuned.append(path, result("third"))
    with pytest.warns(UserWarning, match="line 3: no result"):
        assert [kernel for kernel, _ in tuned.read(path)] == ["first", "third"]


def test_bytes_that_are_no_text_cost_only_their_line(tmp_path: Path) -> None:
    path = tmp_path / "a.tuned.jsonl"
    tuned.append(path, result())
    path.write_bytes(path.read_bytes() + b"\xff\xfe\x00\n")
    with pytest.warns(UserWarning, match="line 3: no result"):
        assert len(tuned.read(path)) == 1


@pytest.mark.parametrize("seconds", ["NaN", "0.0", "-1.0", '"1"', "null"])
def test_a_time_that_is_none_is_no_result(tmp_path: Path, seconds: str) -> None:
    path = tmp_path / "a.tuned.jsonl"
    tuned.append(path, result())
    path.write_text(path.read_text().replace('"seconds": 0.001', f'"seconds": {seconds}'))
    with pytest.warns(UserWarning, match="line 2: no result"):
        assert not tuned.read(path)


WRITER = """
import sys
from pathlib import Path
from treadle.engine import tuned
for number in range(100):
    kernel = f"{sys.argv[2]} {number} " + "x" * 20_000
    tuned.append(Path(sys.argv[1]), tuned.Result(kernel, "CPU", "", 1e-3, 2e-3, ""))
"""


def test_several_processes_add_to_one_file_at_once(tmp_path: Path) -> None:
    path = tmp_path / "a.tuned.jsonl"
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(path), name]) for name in ("a", "b")
    ]
    assert [writer.wait() for writer in writers] == [0, 0]
    assert len(tuned.read(path)) == 200


def test_two_that_begin_a_file_at_once_leave_a_head_more(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("head\none\nhead\ntwo\n")
    assert lines.read(path, "head") == [(2, "one"), (4, "two")]


# ---- other versions ------------------------------------------------------------------------------
def test_nothing_is_written_to_a_file_of_a_newer_version(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    newer, own = tmp_path / "newer.tuned.jsonl", tmp_path / "own.tuned.jsonl"
    newer.write_text(NEWER)
    tuned.append(own, result())
    with pytest.raises(ValueError, match="not of version 1"):
        tuned.append(newer, result())
    assert main(["tune", "merge", str(newer), str(own)]) == 2
    assert main(["tune", "merge", str(own), str(newer)]) == 2
    script = tmp_path / "newer.py"
    script.write_text("raise SystemExit('it ran')")
    assert main(["tune", str(script)]) == 2  # before the script runs
    assert capsys.readouterr().err.count("not of version 1") == 3
    assert newer.read_text() == NEWER
    assert len(tuned.read(own)) == 1


def test_what_other_machines_found_stays_in_a_merge(tmp_path: Path) -> None:
    one, two, both = (tmp_path / name for name in ("one", "two", "both"))
    tuned.append(one, result(target="CPU of a"), result(target="CPU of b", seconds=3e-4))
    tuned.append(two, result(target="CPU of b"))
    assert main(["tune", "merge", str(one), str(two), "-o", str(both)]) == 0
    found = {target: r.seconds for (_, target), r in tuned.read(both).items()}
    assert found == {"CPU of a": 1e-3, "CPU of b": 3e-4}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["both", "one", "two"]


def test_a_journal_of_another_version_is_put_aside(tmp_path: Path) -> None:
    path = tmp_path / "x.journal"
    path.write_text('{"treadle search journal": 99}\nkept\n')
    Journal(path).note(Entry("a", "grid i", 1.0))
    assert Journal(path).known("a", "grid i")
    assert "kept" in path.with_name("x.journal.other").read_text()


# ---- where nothing can be written ----------------------------------------------------------------
@pytest.fixture
def nowhere(tmp_path: Path) -> Path:
    """A path at which there can be no file, whoever runs this."""
    (tmp_path / "file").touch()
    return tmp_path / "file" / "x"


def test_a_search_without_a_journal_goes_on(nowhere: Path) -> None:
    journal = Journal(nowhere)
    with pytest.warns(UserWarning, match="cannot be used, a search that ends early begins anew"):
        journal.note(Entry("a", "grid i", 1.0))
    journal.note(Entry("a", "grid j", 1.0))
    assert journal.known("a", "grid i") and journal.known("a", "grid j")


def test_where_results_cannot_be_written_is_said_before_the_search(
    nowhere: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "script.py"
    script.write_text("raise SystemExit('it ran')")
    assert main(["tune", "-o", str(nowhere), str(script)]) == 2
    tuned.append(tmp_path / "a", result())
    assert main(["tune", "merge", str(tmp_path / "a"), "-o", str(nowhere)]) == 2
    assert capsys.readouterr().err.count("cannot be written") == 2
    assert main(["tune", "show", str(tmp_path / "missing")]) == 2
    assert "no tuned schedules that can be read" in capsys.readouterr().err


def test_a_worker_that_is_killed_within_its_answer_has_crashed() -> None:
    words = "print('{}', flush=True); input(); print('{\"seconds\": 0.0', end='')"
    worker = Worker([sys.executable, "-c", words])
    assert worker.ask({"do": "time"}, 20.0)["failed"] == "crash"
    worker.close()
