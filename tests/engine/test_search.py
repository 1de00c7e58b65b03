"""Search over schedules: candidates are right, failures cost only the candidate, nothing found is
lost. What is counted here are lists, requests and lines, never times."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import kernels
import numpy as np
import pytest

from treadle import Tensor, config, explain, ir
from treadle.backend.interp.kernel import evaluate_kernel
from treadle.engine import device, programs, tuned
from treadle.engine.search import session, worker
from treadle.engine.search.beam import Beam
from treadle.engine.search.cost import estimate
from treadle.engine.search.journal import HEAD, Entry, Journal
from treadle.engine.search.moves import Candidate, neighbours, start
from treadle.engine.search.options import options
from treadle.engine.search.sample import Unknown, expected
from treadle.engine.search.session import NotSearched, Search
from treadle.engine.search.workers import Workers
from treadle.ir import index, ops, text
from treadle.ir.node import Node
from treadle.kernel import pipeline
from treadle.kernel.build import build
from treadle.kernel.heuristic import heuristic
from treadle.kernel.kernel import Kernel
from treadle.kernel.schedule_text import parse_actions

CPU = kernels.CPU

SMALL = {
    "matmul": kernels.matmul(13, 21, 18),
    "transposed": kernels.matmul(9, 17, 16, right=True),
    "softmax": kernels.softmax(5, 37),
    "convolution": kernels.convolution(1, 3, 6, 5, 3, pad=1),
    "row sum": kernels.row_sum(6, 40),
    "column sum": kernels.column_sum(40, 18),
    "elementwise": kernels.elementwise(11, 19),
}


def starts_of(sink: Node) -> tuple[Kernel, list[Candidate]]:
    """The kernel, and the empty and the heuristic's list."""
    built = build(sink, CPU)
    return built, [start(built, ()), start(built, heuristic(built, CPU))]


# ---- candidates ----------------------------------------------------------------------------------
@pytest.mark.parametrize("name", SMALL)
def test_candidates_mean_what_the_kernel_means(name: str) -> None:
    built, starts = starts_of(SMALL[name])
    pick = random.Random(0)
    for beginning in starts:
        near = list(neighbours(built, beginning))
        for candidate in pick.sample(near, 4):
            assert "\n".join(map(str, parse_actions(candidate.text))) == candidate.text
            kernels.check(SMALL[name], candidate.actions)
        further = list(neighbours(built, pick.choice(near)))
        for candidate in pick.sample(further, 2):
            kernels.check(SMALL[name], candidate.actions)


def test_every_way_to_change_a_list_occurs() -> None:
    built, (empty, usual) = starts_of(kernels.softmax(64, 512))
    assert {c.step for c in neighbours(built, empty)} >= {"lanes", "unroll", "tasks", "keep"}
    near = list(neighbours(built, usual))
    assert {c.step for c in near} >= {"change", "remove", "unroll"}
    shorter = [c for c in near if c.step == "remove"]
    assert len(shorter) == len(usual.actions)
    assert all(len(c.actions) < len(usual.actions) for c in shorter)


def test_actions_for_special_kernels_are_proposed() -> None:
    target = replace(CPU, intrinsics=frozenset({"dot_bf16"}))
    product = build(kernels.matmul(16, 64, 32, dtype=ir.dtype.bfloat16), target)
    (grouped,) = (c for c in neighbours(product, start(product, ())) if c.step == "instruction")
    assert grouped.text == "split k: ko | kp(2)\nmma add0: kp"
    lanes = start(product, parse_actions(grouped.text + "\nsplit j: jo | jv(16)\nvector jv"))
    assert any("group 0,2" in c.text for c in neighbours(product, lanes))
    tiles = [c.text for c in neighbours(product, start(product, ())) if c.step == "panel"]
    assert any("as panel" in text for text in tiles)


def test_what_does_not_fit_a_stack_is_no_candidate() -> None:
    built, (empty, _) = starts_of(kernels.matmul(8, 100_000, 64))
    stages = [c.text for c in neighbours(built, empty) if c.step == "stage"]
    assert not any("stage arg2 at i as" in t for t in stages)
    assert any("at root" in t for t in stages)


# ---- cost and beam -------------------------------------------------------------------------------
@pytest.mark.parametrize("sink", [kernels.matmul(256, 256, 256), kernels.softmax(512, 1024)])
def test_the_cost_knows_good_lists_from_bad_ones(sink: Node) -> None:
    _, (empty, usual) = starts_of(sink)
    assert estimate(usual.kernel).cycles < estimate(empty.kernel).cycles / 8


STRIDED = "split i: io | iu(2) | iv(16)\nsplit j: jo | ju(6)\nunroll ju, iu\nvector iv\n"
ROWS = "split i: io | iu(6)\nsplit j: jo | ju(4) | jv(16)\nunroll iu, ju\nvector jv\n"


@pytest.mark.parametrize("actions", [STRIDED + "reorder io, jo, k", ROWS + "reorder io, jo, k"])
@pytest.mark.parametrize("size", [96, 100])
def test_the_cost_knows_how_much_code_there_will_be(actions: str, size: int) -> None:
    """Lanes at a stride are read and written one by one: ten times the lines of whole vectors."""
    sink = kernels.matmul(size, size, size)
    said = estimate(start(build(sink, CPU), parse_actions(actions)).kernel).lines
    backend = device.backend("CPU")
    code = backend.render(pipeline.lower(sink, backend.target, "f", actions).functions)
    assert said < code.count("\n") < 4 * said


def test_the_cost_counts_registers_that_are_missing() -> None:
    built = build(kernels.matmul(256, 256, 256), CPU)
    tile = "split j: jo | ju({}) | jv(16)\nsplit i: io | iu({})\nunroll iu, ju\nvector jv\n"
    fits, spills = (
        estimate(start(built, parse_actions(tile.format(*size) + "reorder io, jo, k")).kernel)
        for size in ((4, 6), (4, 12))
    )
    assert fits.spilled == 0 and spills.spilled > 16


def modelled(kernel: Kernel, actions: str) -> float:
    """What a list takes, if the cost is right."""
    return estimate(start(kernel, parse_actions(actions)).kernel).cycles


def test_the_beam_finds_its_way_from_nothing() -> None:
    """With the model in place of a clock, everything is counted: 20 lists are enough."""
    built, (_, usual) = starts_of(kernels.matmul(256, 256, 256))
    tried: list[str] = []

    def work(lists: Sequence[str], parents: Sequence[str], best: float) -> Any:
        tried.extend(lists)
        return [modelled(built, a) for a in lists], [options(built, a) for a in parents]

    beam = Beam(built, work, width=1, batch=4, out_of_time=lambda: len(tried) >= 17)
    found = beam.run([()])
    assert found[0].seconds is not None
    assert found[0].seconds < estimate(usual.kernel).cycles
    assert len(tried) == len(set(tried)) <= 20


def test_a_candidate_that_fails_is_not_tried_again() -> None:
    built = build(kernels.row_sum(64, 64), CPU)
    tried: list[str] = []

    def work(lists: Sequence[str], parents: Sequence[str], best: float) -> Any:
        tried.extend(lists)
        costs = [None if "vector" in a else modelled(built, a) for a in lists]
        return costs, [options(built, a) for a in parents]

    beam = Beam(built, work, width=1, batch=4, out_of_time=lambda: len(tried) >= 12)
    found = beam.run([()])
    assert len(tried) == len(set(tried))
    assert found and not any("vector" in f.option.actions for f in found)


# ---- what the results should be ------------------------------------------------------------------
def filled(sink: Node) -> dict[int, np.ndarray]:
    """Random arrays for the buffers of a kernel."""
    rng = np.random.default_rng(1)
    arrays = {}
    for node in ir.node.toposort(sink):
        if node.op is ops.ARG:
            position, shape = node.arg
            arrays[position] = rng.random(shape).astype(node.dtype.storage)
    return arrays


def argmax(rows: int, columns: int) -> Node:
    i, j = kernels.ranges(rows, columns)
    x = kernels.load(kernels.buffer(1, rows, columns), i, j)
    number = ops.CAST(j, dtype=ir.dtype.int64)
    both = kernels.reduce("argmax", (x, number), j)
    target = kernels.buffer(0, rows, dtype=ir.dtype.int64)
    return kernels.sink(kernels.store(target, kernels.out(both, 1), i))


@pytest.mark.parametrize("name", [*SMALL, "argmax"])
def test_samples_are_what_the_interpreter_computes(name: str) -> None:
    sink = SMALL.get(name) or argmax(7, 9)
    before, after = filled(sink), filled(sink)
    evaluate_kernel(sink, after)
    for wanted in expected(sink, before, {}):
        got = after[wanted.buffer][wanted.at]
        assert wanted.values.size
        assert np.abs(got - wanted.values).max() <= wanted.tolerance


def test_a_missing_term_is_more_than_rounding() -> None:
    sink = kernels.matmul(64, 64, 1024)
    arrays = filled(sink)
    for position in (1, 2):
        arrays[position] -= 0.5
    (wanted,) = expected(sink, arrays, {})
    arrays[1][:, -1] = 0
    (other,) = expected(sink, arrays, {})
    assert np.median(np.abs(wanted.values - other.values)) > 20 * wanted.tolerance


def test_a_kernel_that_combines_into_memory_cannot_be_sampled() -> None:
    (i,) = kernels.ranges(4)
    place = kernels.load(kernels.buffer(2, 4, dtype=ir.dtype.int64), i)
    at = ops.CAST(place, dtype=ir.dtype.index)
    value = kernels.load(kernels.buffer(1, 4), i)
    sink = kernels.sink(kernels.store(kernels.buffer(0, 9), value, at, monoid="add"))
    with pytest.raises(Unknown, match="combines into memory"):
        expected(sink, filled(sink), {})


def test_a_kernel_with_a_single_result_is_tried(tmp_path: Path) -> None:
    asked = {"kernel": text.show(kernels.full_sum(6, 7)), "file": str(tmp_path / "candidate")}
    desk = worker.Desk("CPU")
    assert "lines" in worker.answer(desk, {"do": "compile", "actions": "", **asked})
    found = worker.answer(desk, {"do": "time", "variables": {}, "best": 1e-9, **asked})
    assert found["check"].startswith("1 output")


# ---- processes -----------------------------------------------------------------------------------
FAULTY = """
import os, sys, time
from treadle.engine.search import worker

class Faulty(worker.Desk):
    def compile(self, request):
        if "unroll" in request["actions"]:
            os._exit(3)
        if "split k" in request["actions"]:
            time.sleep(60)
        if "vector" in request["actions"]:
            request = {**request, "kernel": request["kernel"].replace("= mul ", "= add ")}
        if "hint" in request["actions"]:
            raise RuntimeError("broken")
        return super().compile(request)

    def grow(self, request):
        if not os.path.exists(sys.argv[0] + ".ended"):
            open(sys.argv[0] + ".ended", "w")
            os._exit(3)
        return super().grow(request)

worker.main(sys.argv[1], Faulty)
"""


@pytest.fixture
def faulty(tmp_path: Path) -> Iterator[Workers]:
    script = tmp_path / "faulty.py"
    script.write_text(FAULTY)
    with Workers("CPU", [sys.executable, str(script), "CPU"], compile_seconds=2.0) as workers:
        yield workers


def test_crashes_hangs_and_wrong_results_cost_only_the_candidate(faulty: Workers) -> None:
    kernel = text.show(kernels.matmul(16, 32, 8))
    lists = [
        "unroll k",
        "split k: ko | ki(4)",
        "split j: jo | jv(16)\nvector jv",
        "hint store0 nontemporal",
        "vector nothing",
        "grid i",
    ]
    faulty.prepare(kernel, [""])  # the processes are there
    outcomes = []
    compiled, near = faulty.prepare(kernel, lists, ["vector nothing", "grid i"])
    assert not near[0] and any("unroll" in o.actions for o in near[1])  # though a process ended
    for file, answer in compiled:
        if "failed" not in answer:
            answer = faulty.time(kernel, {}, file, float("inf"))
        outcomes.append(answer)
    assert [a.get("failed") for a in outcomes] == [
        "crash", "hang", "wrong", "error", "illegal", None,
    ]  # fmt: skip
    assert "status 3" in outcomes[0]["why"]
    assert "more than 2 s" in outcomes[1]["why"]
    assert "off by" in outcomes[2]["why"]
    assert "broken" in outcomes[3]["why"]
    assert outcomes[5]["check"].startswith("64 outputs within")
    assert sum(worker.restarts for worker in faulty.compilers) >= 1


class Model:
    """In place of the processes: a list takes what the cost says. It counts what it is asked."""

    def __init__(self, device: str = "CPU") -> None:
        self.asked: list[str] = []
        self.lists: dict[str, str] = {}

    def __enter__(self) -> Model:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def prepare(self, kernel: str, lists: Sequence[str], parents: Sequence[str] = ()) -> Any:
        answers = []
        for actions in lists:
            self.asked.append(actions)
            self.lists[f"list {len(self.asked)}"] = actions
            answers.append((f"list {len(self.asked)}", {"lines": 1}))
        built = build(text.parse(kernel), device.backend("CPU").target) if parents else None
        return answers, [options(built, a) for a in parents]

    def time(
        self, kernel: str, variables: dict, file: str, best: float, cold: bool = False
    ) -> dict:
        built = build(text.parse(kernel), device.backend("CPU").target)
        seconds = estimate(start(built, parse_actions(self.lists[file])).kernel).cycles * 1e-9
        return {"seconds": seconds, "cold_seconds": seconds, "check": "as modelled"}


def searched(workers: Model, journal: Journal, sink: Node, most: int = 9) -> tuned.Result:
    search = Search(sink, "CPU", workers, journal, 1000.0, width=1, starts=[()])
    search.out_of_time = lambda: search.tried >= most
    return search.run()


def test_a_search_gives_a_result_and_its_journal_all_that_was_tried(tmp_path: Path) -> None:
    path = tmp_path / "x.tuned.journal"
    first = Model()
    result = searched(first, Journal(path), kernels.row_sum(96, 96))
    assert result.gain >= 1.0 and result.check == "as modelled"
    lines = path.read_text().splitlines()
    assert lines[0] == HEAD
    noted = {json.loads(line)["actions"] for line in lines[1:]}
    assert len(noted) == len(lines) - 1 >= 9
    assert result.actions in noted <= set(first.asked)

    path.write_text("\n".join(lines)[:-5])  # killed while it wrote the last line
    again = Model()
    assert len(Journal(path).entries) == len(lines) - 2
    searched(again, Journal(path), kernels.row_sum(96, 96), most=1)
    known = {json.loads(line)["actions"] for line in lines[1:-1]}
    assert len(set(again.asked) - known) <= 4  # a batch


def test_the_journal_of_another_version_is_begun_anew(tmp_path: Path) -> None:
    path = tmp_path / "x.journal"
    path.write_text('{"treadle search journal": 0}\n{"of": "a"}\n')
    journal = Journal(path)
    assert not journal.entries
    journal.note(Entry("a", "grid i", 1.0))
    assert Journal(path).known("a", "grid i") == Entry("a", "grid i", 1.0)


def test_a_schedule_written_by_the_user_is_not_searched(tmp_path: Path) -> None:
    sink = kernels.matmul(8, 8, 8)
    written = Node(sink.op, sink.dtype, sink.src, ("grid i", ()))
    with pytest.raises(NotSearched, match="written by the user"):
        searched(Model(), Journal(None), written)


# ---- files ---------------------------------------------------------------------------------------
def a_result(seconds: float = 1e-3, actions: str = "grid i", kernel: str = "k") -> tuned.Result:
    target = tuned.target_text(device.backend("CPU").target)
    return tuned.Result(kernel, target, actions, seconds, 2e-3, "64 outputs")


def test_a_file_keeps_the_fastest_of_each_kernel(tmp_path: Path) -> None:
    path = tmp_path / "a.tuned.jsonl"
    for seconds in (3e-3, 1e-3, 2e-3):
        tuned.append(path, a_result(seconds))
    tuned.append(path, a_result(5e-3, kernel="other"))
    assert [r.seconds for r in tuned.read(path).values()] == [1e-3, 5e-3]


def test_another_version_and_damaged_lines_are_reported_and_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "a.tuned.jsonl"
    tuned.append(path, a_result())
    good = path.read_text()
    path.write_text(good + '{"kernel": "k"}\nnonsense\n')
    with pytest.warns(UserWarning, match="line [34]: no result") as warned:
        assert len(tuned.read(path)) == 1
    assert len(warned) == 2
    path.write_text(good.replace(": 1}", ": 99}", 1))
    with pytest.warns(UserWarning, match="not of version 1"):
        assert tuned.read(path) == {}
    with pytest.warns(UserWarning, match="no tuned schedules that can be read"):
        assert tuned.read(tmp_path / "missing") == {}


def test_keys_do_not_depend_on_names() -> None:
    def kernel(name: str) -> Node:
        n = index.variable(name, 1, 64)
        (i,) = kernels.ranges(n)
        return kernels.sink(kernels.store(kernels.buffer(0, n), kernels.number(1.5), i))

    assert kernel("rows") is not kernel("batch")
    assert tuned.kernel_text(kernel("rows")) == tuned.kernel_text(kernel("batch"))


X = np.random.default_rng(0).random((37, 64), np.float32)


@pytest.fixture
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """No program, no compiled kernel, no file that was read before."""
    for name in ("kept", "compilers"):
        monkeypatch.setattr(programs, name, type(getattr(programs, name))())
    tuned.forget()
    with config.CACHE_DIR.set(str(tmp_path / "cache")), config.CACHE.set(1):
        yield tmp_path
    tuned.forget()


def kernel_of(tensor: Tensor) -> Node:
    from treadle.engine.realize import prepare

    (program,) = prepare([tensor])
    (call,) = program.schedule.calls()
    return call.kernel


def test_a_result_in_a_file_is_used_and_explained(fresh: Path) -> None:
    path = fresh / "x.tuned.jsonl"
    tuned.append(path, a_result(1e-3, "grid i", text.show(kernel_of(Tensor(X).sum(1)))))
    with config.TUNED.set(str(path)):
        said = explain(Tensor(X).sum(1))
        assert f"# found by search, 2.00 times as fast: {path}" in said
        assert "grid i" in said
        np.testing.assert_allclose(Tensor(X).sum(1).numpy(), X.sum(1), rtol=1e-5)
    assert "# by the heuristic" in explain(Tensor(X).sum(1))


@pytest.mark.parametrize("actions", ["grid nothing", "no action at all"])
def test_a_list_that_does_not_apply_is_reported_and_ignored(fresh: Path, actions: str) -> None:
    path = fresh / "x.tuned.jsonl"
    tuned.append(path, a_result(1e-3, actions, text.show(kernel_of(Tensor(X).sum(1)))))
    with config.TUNED.set(str(path)), pytest.warns(UserWarning, match="does not apply"):
        np.testing.assert_allclose(Tensor(X).sum(1).numpy(), X.sum(1), rtol=1e-5)


def test_a_file_that_a_search_will_make_is_not_missed(
    fresh: Path, recwarn: pytest.WarningsRecorder
) -> None:
    with config.BEAM.set(1), config.TUNED.set(str(fresh / "later.jsonl")):
        tuned.forget()
        assert not tuned.table() and not recwarn.list
    with config.BEAM.set(0), config.TUNED.set(str(fresh / "later.jsonl")):
        tuned.forget()
        assert not tuned.table()
        assert "later.jsonl has no tuned schedules" in str(recwarn.pop(UserWarning).message)


def test_a_result_for_another_target_is_not_used(fresh: Path) -> None:
    path = fresh / "x.tuned.jsonl"
    result = a_result(1e-3, "grid i", text.show(kernel_of(Tensor(X).sum(1))))
    other = type(result)(**{**vars(result), "target": "CPU abacus"})
    tuned.append(path, other)
    with config.TUNED.set(str(path)):
        assert "by the heuristic" in explain(Tensor(X).sum(1))


def test_a_file_beside_the_script_is_found(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = fresh / "train.py"
    monkeypatch.setattr(sys.modules["__main__"], "__file__", str(script), raising=False)
    path = fresh / "train.tuned.jsonl"
    assert tuned.places() == ()
    tuned.append(path, a_result())
    assert tuned.places() == (path,)


def test_beam_searches_once_and_keeps_what_it_found(
    fresh: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Model] = []

    def make(name: str) -> Model:
        made.append(Model())
        return made[-1]

    monkeypatch.setattr(session, "Workers", make)
    monkeypatch.setattr(session.Search, "out_of_time", lambda self: self.tried >= 6)
    with config.BEAM.set(1), config.TUNED.set(str(fresh / "own.tuned.jsonl")):
        np.testing.assert_allclose(Tensor(X).sum(1).numpy(), X.sum(1), rtol=1e-5)
        assert len(made) == 1 and made[0].asked
        np.testing.assert_allclose((Tensor(X) * 1).sum(1).numpy(), X.sum(1), rtol=1e-5)
        assert len(made) == 1
        monkeypatch.setattr(programs, "kept", type(programs.kept)())
        monkeypatch.setattr(programs, "compilers", {})
        tuned.forget()
        Tensor(X).sum(1).numpy()
        assert len(made) == 1
    assert len(tuned.read(fresh / "own.tuned.jsonl")) == 1


def test_what_cannot_be_kept_is_used_and_said(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (fresh / "file").touch()
    monkeypatch.setattr(session, "Workers", lambda name: Model())
    monkeypatch.setattr(session.Search, "out_of_time", lambda self: self.tried >= 2)
    with (
        config.BEAM.set(1),
        config.TUNED.set(str(fresh / "file" / "x")),
        pytest.warns(UserWarning, match="what the search finds is not kept"),
        pytest.warns(UserWarning, match="a search that ends early begins anew"),
    ):
        np.testing.assert_allclose(Tensor(X).sum(1).numpy(), X.sum(1), rtol=1e-5)
        assert "found by search" in explain(Tensor(X).sum(1)) or len(tuned.table()) == 1
