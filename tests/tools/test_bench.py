"""`treadle bench`: what it measures really runs, and what it keeps can be read and compared."""

from __future__ import annotations

import copy
import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from treadle import events
from treadle.__main__ import main
from treadle.ir import text
from treadle.kernel.schedule_text import parse_actions
from treadle.tools.bench import child, command, folder, machine, report, runner, targets, timing
from treadle.tools.bench import compare as comparing
from treadle.tools.bench.case import Case, normal, plain
from treadle.tools.bench.child import Settings
from treadle.tools.bench.suite import CASES, choose

SMALL = Case("small/affine", "x * 2 + 1", normal((4, 8)), plain(lambda library, x: x * 2 + 1))
SHORT = Settings(turns=2, seconds=0.0, calls=2)


def library(*blocks: float, **more: Any) -> dict[str, Any]:
    """A library's entry whose blocks have these medians."""
    return {"error": "", "version": "1", "first_seconds": 0.1, "blocks": [[b] for b in blocks],
            "compile": dict.fromkeys(
                ("build_seconds", "code_seconds", "search_seconds", "kernels", "lines"), 1),
            "program": {**dict.fromkeys(
                ("launches", "kernels", "arena_bytes", "loads", "stores", "bytes", "operations"),
                1), **more},
            "memory": {"device_peak_bytes": 1, "process_peak_bytes": 1}}  # fmt: skip


def run_of(*entries: dict[str, Any]) -> dict[str, Any]:
    """A run of these cases."""
    return {"version": folder.VERSION, "created": "", "settings": {}, "cases": list(entries),
            "machine": {"commit": "a", "threads": 2, "processor": "P"}}  # fmt: skip


def entry(name: str, **libraries: dict[str, Any]) -> dict[str, Any]:
    """A case that was measured."""
    return {"name": name, "what": "", "error": "", "busy": 0.0, "operations": 10, "bytes": 0,
            "target": 1.5, "libraries": libraries}  # fmt: skip


def measured(case: Case, monkeypatch: pytest.MonkeyPatch, settings: Settings = SHORT) -> Any:
    """A case measured in this process, without rests."""
    monkeypatch.setattr(timing, "AWAKE", 0.0)
    monkeypatch.setattr(child, "ALONE", 0.0)
    return child.measure(case, settings)


# ---- timing --------------------------------------------------------------------------------------
def test_candidates_run_in_turns_and_warm_calls_are_not_counted() -> None:
    said: list[str] = []
    calls = {name: (lambda name=name: said.append(name)) for name in "ab"}
    found = timing.in_turns(calls, turns=2, calls=3, warm=1, rest=0.0, awake=0.0)
    assert "".join(said) == "aaaabbbb" * 2
    assert [len(block) for block in found["a"].blocks] == [3, 3]


def test_short_calls_are_repeated_until_the_block_is_long_enough() -> None:
    found = timing.in_turns(
        {"a": lambda: None}, turns=1, calls=3, warm=1, rest=0, awake=0, block_seconds=10.0
    )
    assert len(found["a"].seconds) == timing.MOST_CALLS


# ---- cases ---------------------------------------------------------------------------------------
def test_every_case_says_what_it_is_and_has_a_name_of_its_own() -> None:
    assert all(name == case.name and case.what for name, case in CASES.items())
    assert {case.group for case in CASES.values()} >= {"matmul", "conv", "softmax", "step", "cold"}
    assert 3 <= len(choose([], quick=True)) < len(CASES) / 2


def test_choosing_by_part_pattern_or_not_at_all() -> None:
    assert choose(["matmul/64/"]) == choose(["matmul/64/*"])
    with pytest.raises(ValueError, match=r"no case matches 'nothing'; there are groups matmul"):
        choose(["nothing"])


def test_a_case_is_measured_with_its_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    found = measured(SMALL, monkeypatch)["treadle"]
    assert [len(block) for block in found["blocks"]] == [2, 2]
    assert found["program"]["launches"] == 1
    assert found["program"]["bytes"] == 2 * 4 * 32
    assert found["memory"]["arguments"] == found["memory"]["results"] == 4 * 32
    folder.check(found, folder.LIBRARY)


def test_search_is_told_apart_from_compiling() -> None:
    with child.Watch() as watch:
        events.emit("search", kernels=1, seconds=1.5)
        events.emit("search", kernels=2, seconds=0.5)
    assert watch.compile()["search_seconds"] == 2.0
    assert watch.compile()["code_seconds"] == 0


def test_a_result_that_was_computed_before_is_no_measurement(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kept: list[Any] = []

    def cached(library: Any, x: Any) -> Any:
        kept.append(x * 2)
        return kept[0]

    monkeypatch.setattr(child.LIBRARIES["treadle"], "captured", lambda self, function: function)
    with pytest.raises(RuntimeError, match="different inputs give the same result"):
        measured(replace(SMALL, build=plain(cached)), monkeypatch)


def test_a_result_that_does_not_change_any_more_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[Any] = []

    def stuck(library: Any, x: Any) -> Any:
        kept.append(x * 2 if len(kept) < child.SETS else kept[0] * 0)
        return kept[-1]

    monkeypatch.setattr(child.LIBRARIES["treadle"], "captured", lambda self, function: function)
    with pytest.raises(RuntimeError, match="away from the first with these inputs"):
        measured(replace(SMALL, build=plain(stuck)), monkeypatch, replace(SHORT, calls=1))


def test_the_distance_of_results() -> None:
    assert child.distance([[2.0, 4.0]], [[2.0, 5.0]]) == 0.2
    assert child.distance([[1.0]], [[1.0, 1.0]]) == np.inf
    assert child.distance([[1.0, np.nan]], [[1.0, 1.0]]) == np.inf


def test_a_state_that_does_not_change_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RuntimeError, match="the state has not changed"):
        measured(replace(SMALL, consumes=True), monkeypatch)


def test_arrays_are_the_same_in_every_process() -> None:
    first, second = child.draw(SMALL), child.draw(SMALL)
    np.testing.assert_array_equal(first["sets"][0][0], second["sets"][0][0])
    assert not np.array_equal(first["sets"][0][0], first["sets"][1][0])


def test_artifacts_parse_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CACHE", "0")
    found = runner.run_case(CASES["matmul/64/NN"], replace(SHORT, artifacts=str(tmp_path)))
    assert found["error"] == ""
    assert text.parse_roots((tmp_path / "graph_0.txt").read_text())
    assert text.parse((tmp_path / "kernel_0.txt").read_text()).op.name == "sink"
    assert parse_actions((tmp_path / "actions_0.txt").read_text())
    assert "define" in (tmp_path / "source_0.txt").read_text()
    assert found["libraries"]["treadle"]["compile"]["kernels"] == 1


def test_a_case_that_fails_says_why_and_loses_nothing_else(tmp_path: Path) -> None:
    wrong = replace(CASES["matmul/64/NN"], name="matmul/none")
    data = runner.new(SHORT, "now")
    runner.run_all(data, [wrong], SHORT, tmp_path, lambda entry: None)
    assert data["cases"][0]["error"] == "KeyError: 'matmul/none'"
    assert folder.read(tmp_path) == json.loads(json.dumps(data))
    assert "KeyError" in report.run_table(data)


def test_processes_that_a_case_started_end_with_it() -> None:
    """A compiler that lives on holds the output: who reads it to its end would wait for it."""
    forgotten = (
        "import subprocess, sys; subprocess.Popen(['sleep', '600']); print(sys.stdin.read())"
    )
    variables = dict(os.environ)
    status, out, said = runner.told(forgotten + "; print(1 / 0)", "a", variables, Path(), 60)
    assert (status, out) == (1, "a\n") and "ZeroDivisionError" in said
    with pytest.raises(subprocess.TimeoutExpired):
        runner.told(forgotten + "; import time; time.sleep(600)", "a", variables, Path(), 0.5)


def test_a_cold_start_that_fails_or_is_wrong_costs_its_library(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def child(case: Case, settings: Settings, place: runner.Place, cache: Path) -> dict[str, Any]:
        (name,) = settings.libraries
        if name == "torch":
            raise RuntimeError("no compiler")
        result = [2.0, 1.0] if name == "tinygrad" else [2.0, 2.0]
        seen = {**library(1.0), "cold": {"import_seconds": 0.1}, "sampled": [result]}
        return {name: seen}

    monkeypatch.setattr(runner, "child", child)
    four = replace(SHORT, libraries=("treadle", "torch", "tinygrad", "torch_compile"))
    found = runner.run_case(CASES["cold/first"], four)
    assert found["error"] == ""
    assert found["libraries"]["torch"] == {"error": "no compiler"}
    assert "the result of tinygrad is 5.0e-01 off" in found["libraries"]["tinygrad"]["error"]
    for name in ("treadle", "torch_compile"):
        assert found["libraries"][name]["blocks"] == [[1.0]] * 2
        assert found["libraries"][name]["cold"]["warm_disk_seconds"] == [1.0] * 2
        assert "sampled" not in found["libraries"][name]


def test_an_interrupted_run_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ran: list[str] = []

    def run_case(case: Case, settings: Settings) -> dict[str, Any]:
        if len(ran) == 2:
            raise KeyboardInterrupt
        ran.append(case.name)
        return entry(case.name, treadle=library(*FAST))

    monkeypatch.setattr(machine, "busy", lambda seconds=0.0: 0.0)
    monkeypatch.setattr("treadle.tools.bench.runner.run_case", run_case)
    words = ["bench", "matmul/64/", "--out", str(tmp_path)]
    assert main(words) == 1
    assert "--resume goes on" in (shown := capsys.readouterr()).err
    assert all(name in shown.out for name in ran)
    monkeypatch.setattr(
        "treadle.tools.bench.runner.run_case",
        lambda case, settings: entry(case.name, treadle=library(*FAST)),
    )
    assert main(words) == 2
    assert "holds a run: --resume goes on with it" in capsys.readouterr().err
    assert main([*words, "--resume"]) == 0
    assert "[3/4] matmul/64/TN" in capsys.readouterr().err
    assert [each["name"] for each in folder.read(tmp_path)["cases"]] == [
        case.name for case in choose(["matmul/64/"])
    ]
    assert main([*words, "--resume", "--blocks", "9"]) == 2
    assert "cannot be gone on with: turns was 7, is 9" in capsys.readouterr().err


# ---- folders -------------------------------------------------------------------------------------
def test_a_run_is_kept_and_read(tmp_path: Path) -> None:
    run = run_of(entry("a/b", treadle=library(1.0, 2.0), torch={"error": "missing"}))
    folder.write(tmp_path, run)
    assert folder.read(tmp_path) == run
    assert folder.samples(run["cases"][0]["libraries"]["treadle"]) == [1.0, 2.0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda run: run.pop("machine"), "run has no 'machine'"),
        (lambda run: run["cases"][0].pop("busy"), r"run\.cases\[0\] has no 'busy'"),
        (lambda run: run["cases"][0].update(operations=1.5), r"operations is float"),
        (lambda run: run["cases"][0]["libraries"]["treadle"]["program"].pop("loads"),
         r"libraries\.treadle\.program has no 'loads'"),
    ],
)  # fmt: skip
def test_a_run_of_another_shape_is_refused(change: Any, message: str, tmp_path: Path) -> None:
    run = copy.deepcopy(run_of(entry("a/b", treadle=library(1.0))))
    change(run)
    with pytest.raises(ValueError, match=message):
        folder.write(tmp_path, run)


def test_a_folder_without_a_run_and_a_later_version_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"there is no run\.json in it"):
        folder.read(tmp_path)
    (tmp_path / "run.json").write_text(json.dumps({"version": 99}))
    with pytest.raises(ValueError, match=r"is of version 99; this reads 1"):
        folder.read(tmp_path)


@pytest.mark.parametrize("damage", ["", "{", "[]", "3", "[" * 100_000, '{"version": "1"}'])
def test_a_damaged_folder_is_named(damage: str, tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "run.json").write_text(damage)
    for words in (["show"], ["show", "--targets"], ["compare", str(tmp_path)]):
        assert main(["bench", *words, str(tmp_path)]) == 2
        assert f"{tmp_path / 'run.json'} is no run that can be read: " in capsys.readouterr().err


def test_a_run_that_cannot_be_kept_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(folder: Path, data: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(machine, "busy", lambda seconds=0.0: 0.0)
    monkeypatch.setattr(
        "treadle.tools.bench.runner.run_case",
        lambda case, settings: entry(case.name, treadle=library(*FAST)),
    )
    (tmp_path / "file").write_text("")
    assert main(["bench", "matmul/64/NN", "--out", str(tmp_path / "file")]) == 2
    assert "File exists" in capsys.readouterr().err
    monkeypatch.setattr(folder, "write", full)
    assert main(["bench", "matmul/64/NN", "--out", str(tmp_path / "full")]) == 1
    shown = capsys.readouterr()
    assert "cannot be written: " in shown.err and "matmul/64/NN" in shown.out
    assert "kept in" not in shown.out


# ---- comparing -----------------------------------------------------------------------------------
FAST, SLOW = [1.0, 1.01, 0.99, 1.0, 1.02], [2.0, 2.02, 1.98, 2.01, 2.0]


def test_two_folders_compare(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = run_of(
        entry("a/same", treadle=library(*FAST)),
        entry("b/slower", treadle=library(*FAST)),
        entry("c/gone", treadle=library(*FAST)),
    )
    after = run_of(
        entry("a/same", treadle=library(*FAST)),
        entry("b/slower", treadle=library(*SLOW, launches=3)),
    )
    folder.write(tmp_path / "before", before)
    folder.write(tmp_path / "after", after)
    assert main(["bench", "compare", str(tmp_path / "before"), str(tmp_path / "after")]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert "b/slower" in shown[2] and "SLOWER" in shown[2] and "launches 1 -> 3" in shown[2]
    assert "a/same" in shown[3] and "no difference found" in shown[3]
    assert shown[4] == "only before: c/gone"
    sides = [str(tmp_path / "before"), str(tmp_path / "after")]
    assert main(["bench", "compare", *sides, "same"]) == 0
    assert "b/slower" not in capsys.readouterr().out
    assert main(["bench", "compare", *sides, "nothing"]) == 2
    assert "the runs have a/same, b/slower, c/gone" in capsys.readouterr().err
    assert main(["bench", "compare", *sides, "--blocks", "9", "--quick"]) == 2
    assert "both runs are kept ones, so --quick and --blocks would do" in capsys.readouterr().err


def test_two_commits_are_measured_in_turns(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    order: list[str] = []

    @contextmanager
    def place(repository: Path, word: str) -> Iterator[tuple[runner.Place, str]]:
        yield runner.Place(tmp_path / word), f"commit of {word}"

    def run_case(case: Case, settings: Settings, where: runner.Place) -> dict[str, Any]:
        order.append(where.root.name)
        return entry(case.name, treadle=library(*(SLOW if where.root.name == "b" else FAST)))

    monkeypatch.setattr(comparing, "place", place)
    monkeypatch.setattr(comparing, "run_case", run_case)
    runs = comparing.measure_two(("a", "b"), [SMALL], SHORT, lambda name: None, rounds=3)
    assert "".join(order) == "abbaab"  # neither always begins
    assert [run["machine"]["commit"] for run in runs] == ["commit of a", "commit of b"]
    assert [len(run["cases"][0]["libraries"]["treadle"]["blocks"]) for run in runs] == [15, 15]
    assert "SLOWER" in report.comparison(*runs)


def test_a_folder_and_a_commit_do_not_compare(tmp_path: Path, capsys: Any) -> None:
    folder.write(tmp_path, run_of(entry("a/b", treadle=library(1.0))))
    assert main(["bench", "compare", str(tmp_path), "HEAD"]) == 2
    assert "two folders with runs, or two commits, not one of each" in capsys.readouterr().err
    (tmp_path / "run.json").unlink()
    assert main(["bench", "compare", str(tmp_path), "HEAD"]) == 2
    assert "there is no run.json in it" in capsys.readouterr().err


def test_a_cold_start_is_told_in_its_parts() -> None:
    cold = {"import_seconds": [0.1, 0.3, 0.2], "second_seconds": [0.001] * 3}
    shown = report.run_table(run_of(entry("cold/x", treadle={**library(*FAST), "cold": cold})))
    assert "cold/x, treadle, ms: the import 200, second 1" in shown


def test_runs_of_two_machines_say_so() -> None:
    before = run_of(entry("a/b", treadle=library(*FAST)))
    after = {**before, "machine": {"commit": "b", "threads": 1, "processor": "P"}}
    assert "threads: 2 and 1" in report.comparison(before, after)
    assert "not of one machine" not in report.comparison(before, before)


def test_a_table_has_ratios_and_geometric_means() -> None:
    run = run_of(
        entry("a/x", treadle=library(*FAST), torch=library(*SLOW)),
        entry("a/y", treadle=library(*FAST), torch=library(*FAST)),
    )
    shown = report.run_table(run)
    assert "| 2.00" in shown
    assert "a: 2 cases, geometric mean 1.41 of torch, least 1.00" in shown


# ---- targets ------------------------------------------------------------------------------------
def test_targets_are_met_missed_or_undecided() -> None:
    assert targets.verdict(1.1, 1.2, 1.1) == "met"
    assert targets.verdict(1.0, 1.2, 1.1) == "undecided"
    assert targets.verdict(1.0, 1.05, 1.1) == "missed"


def judged(*entries: dict[str, Any]) -> dict[str, tuple[str, str]]:
    """Target and verdict of each line."""
    return {line.name: (line.target, line.verdict) for line in targets.lines(run_of(*entries))}


def test_a_group_is_judged_by_its_mean_and_each_case_by_less() -> None:
    seen = judged(
        entry("matmul/64/NN", treadle=library(*FAST), torch=library(*FAST)),
        entry("matmul/64/NT", treadle=library(*FAST), torch=library(*SLOW)),
        entry("matmul/64/TN", treadle=library(*FAST)),
    )
    assert seen["matmul/64/NN"] == ("0.95", "met")
    assert seen["matmul/64/TN"] == ("0.95", "not measured")
    assert seen["matmul, geometric mean of 2 (1 missing)"] == ("1.1", "met")


def test_a_case_near_the_rate_of_memory_has_met_its_target() -> None:
    copy = entry("elementwise/copy", treadle=library(*FAST))
    exp = entry("elementwise/exp", treadle=library(*FAST), torch=library(*FAST))
    for each in (copy, exp):
        each["bytes"] = 8
    assert judged(exp)["elementwise/exp"] == ("2.3", "missed")
    assert judged(copy, exp)["elementwise/exp"] == ("2.3", "met")
    token = entry("decoder/gpt2/token", treadle=library(*SLOW), torch=library(*SLOW))
    total = entry("sum/all", treadle=library(*FAST))
    token["bytes"], total["bytes"] = 10, 8  # 2 / 10 for a byte is 1.6 times 1 / 8
    seen = judged(total, token)
    assert seen["decoder/gpt2/token"] == ("1.2", "missed")
    assert seen["decoder/gpt2/token, a byte"] == ("at most 1.3 of sum/all", "missed")


def test_a_cold_start_is_judged_with_both_caches() -> None:
    own = {**library(*FAST), "cold": {"warm_disk_seconds": FAST}}
    seen = judged(entry("cold/gpt2", treadle=own, tinygrad={"error": "none"}))
    assert seen["cold/gpt2, empty cache"] == ("at most 1.5 s", "met")
    assert seen["cold/gpt2, warm cache"] == ("at most 0.4 s", "missed")


def test_the_table_of_targets_counts_and_names_what_failed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = {**entry("softmax/forward"), "error": "RuntimeError: off"}
    fast = entry("softmax/gradient", treadle=library(*FAST), torch=library(*SLOW))
    folder.write(tmp_path, run_of(wrong, fast))
    assert main(["bench", "show", str(tmp_path), "--targets"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[2].split(" | ")[1:4] == ["target", "treadle, ms", "torch, ms"]
    assert shown[-2:] == ["2 met, 1 not measured", "- softmax/forward: RuntimeError: off"]


# ---- the command line ----------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (["bench", "nothing"], 2, "no case matches 'nothing'"),
        (["bench", "compare", "/no/folder", "HEAD"], 2, "there is no folder /no/folder"),
        (["bench", "compare", "HEAD"], 2, "compare takes two folders with runs, or two commits"),
        (["bench", "show", "nowhere"], 2, "nowhere holds no run"),
        (["bench", "--blocks", "1", "softmax"], 2, "--blocks is a number of at least 2, not 1"),
        (["bench", "--seconds", "nan", "softmax"], 2, "--seconds is a number of at least 0"),
        (["bench", "--resume", "softmax"], 2, "--resume goes on with a run that was kept: name it"),
        (["bench", "--quick", "matmul/2048"], 2, "no case of --quick matches 'matmul/2048'"),
        (["bench", "--list", "--blocks", "3", "--torch"], 2,
         "--list measures nothing, so --blocks and --torch would do nothing"),
        (["nonsense"], 2, "there is no command 'nonsense'"),
    ],
)  # fmt: skip
def test_wrong_command_lines(
    words: list[str], status: int, message: str, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(machine, "busy", lambda seconds=0.0: 0.0)
    assert main(words) == status
    assert message in capsys.readouterr().err


def test_a_busy_machine_is_refused_or_warned_of(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(machine, "busy", lambda seconds=0.0: 0.9)
    assert command.main(["matmul/64/NN", "--require-quiet"]) == 3
    assert "others use 90% of the processors" in capsys.readouterr().err
    assert command.is_quiet(False)
    assert "warning: others use 90%" in capsys.readouterr().err


def test_the_list_of_commands_and_of_cases(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "bench" in capsys.readouterr().out
    assert main(["bench", "--list", "decoder"]) == 0
    assert "decoder/gpt2/token" in capsys.readouterr().out


def test_a_library_that_is_not_there_is_named_with_its_package(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("treadle.extras.is_installed", lambda package: False)
    with pytest.raises(ValueError, match=r"torch_compile needs torch, .*: pip install torch"):
        command.settings_of(command.options(["cold", "--torch-compile"]))
