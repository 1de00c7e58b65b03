"""Schedules as text: they parse back, and the two printed lists run."""

from pathlib import Path

import numpy as np
import pytest
from kernels import CPU, GPU, arrays_for, check, matmul

from treadle.ir.dtype import bfloat16, to_compute
from treadle.kernel.actions import (
    Fuse,
    Hint,
    Kind,
    Place,
    Prefetch,
    Reorder,
    Split,
    Tail,
    apply,
    grid,
    local,
    unroll,
    vector,
)
from treadle.kernel.bound import Bound
from treadle.kernel.build import build
from treadle.kernel.cooperate import Cooperate, CooperateTasks
from treadle.kernel.gpu import Occupancy, Persist, Skew, Snake
from treadle.kernel.gpu import check as check_gpu
from treadle.kernel.interpret import interpret
from treadle.kernel.kernel import ScheduleError
from treadle.kernel.lower import lower
from treadle.kernel.mma import Mma
from treadle.kernel.retile import Detach, Fission, StageStore, Subtotal
from treadle.kernel.schedule_text import parse_actions, show_actions
from treadle.kernel.stage import Keep, Stage
from treadle.kernel.trim import Trim

GOLDEN = Path(__file__).parent / "golden"

ACTIONS = [
    Split("j", "j1", (("ju", 4), ("jv", 16))),
    Fuse(("i", "j"), "ij"),
    Reorder(("i1", "k1")),
    grid("i0", "j1"),
    local("iw", "jw"),
    Kind("local", ("qw",), 0),
    unroll("ku", "iu"),
    vector("jv"),
    Tail("i0", "shift"),
    Hint("store0", "nontemporal"),
    Place("max0", "root"),
    Prefetch("arg1", "add1", "i", 1),
    Prefetch("arg1", "add1", "jo", 16, past_caches=True),
    Cooperate("ku"),
    CooperateTasks("kg", "kt"),
    Stage("arg2", "j1", "B"),
    Stage("arg2#1", "root", "B", "root", (1, 0)),
    Stage("arg1", "k0", "A", "shared", (), 4, 128, "tma", 4, 1, ("add0", "add1")),
    StageStore("store0", "iw", "C", "shared", 128, "tma", (64, 128)),
    Keep("add1", "row"),
    Detach("add0", "lo", "t"),
    Fission("add0", "jo", "s"),
    Bound("l", "jo", 64),
    Trim("n"),
    Subtotal("add0", "jo"),
    Mma("add0", ("im", "jm", "km"), 1),
    Skew("add1", 1),
    Persist(132),
    Occupancy(2),
    Snake("ju"),
]


@pytest.mark.parametrize("action", ACTIONS, ids=str)
def test_every_action_parses_back(action: object) -> None:
    assert parse_actions(str(action)) == [action]


def test_a_list_parses_back() -> None:
    assert parse_actions(show_actions(ACTIONS)) == ACTIONS


@pytest.mark.parametrize("name", ["matmul_cpu", "matmul_gpu"])
def test_the_printed_lists_print_as_they_are_written(name: str) -> None:
    text = (GOLDEN / f"{name}.txt").read_text()
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    assert show_actions(parse_actions(text)).splitlines() == lines


@pytest.mark.parametrize(("n", "m", "k"), [(24, 128, 8), (13, 70, 9), (5, 64, 3)])
def test_the_cpu_list_runs(n: int, m: int, k: int) -> None:
    actions = parse_actions((GOLDEN / "matmul_cpu.txt").read_text())
    checked = check(matmul(n, m, k), actions)
    given = arrays_for(matmul(n, m, k), {})
    np.testing.assert_allclose(checked.arrays[0], given[1] @ given[2], rtol=1e-4, atol=1e-5)


def test_the_gpu_list_type_checks_and_runs() -> None:
    root = matmul(1024, 256, 64, dtype=bfloat16)
    kernel = build(root, GPU)
    scheduled = apply(kernel, parse_actions((GOLDEN / "matmul_gpu.txt").read_text()))
    check_gpu(scheduled)
    given = arrays_for(root, {})
    a, b = (to_compute(bfloat16, given[position]) for position in (1, 2))
    interpret(scheduled, given)
    np.testing.assert_allclose(to_compute(bfloat16, given[0]), a @ b, rtol=1e-2, atol=1e-2)
    with pytest.raises(ScheduleError, match="no CPU has that"):
        lower(scheduled, "f")


def test_the_gpu_list_with_too_much_memory_is_refused() -> None:
    text = (GOLDEN / "matmul_gpu.txt").read_text().replace(" shape 64,128", "")
    kernel = build(matmul(1024, 256, 64, dtype=bfloat16), GPU)
    with pytest.raises(ScheduleError, match="262144 bytes of shared memory"):
        check_gpu(apply(kernel, parse_actions(text)))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("grid i\nspin j", "line 2: 'spin j' is no action; actions begin with bound, cooperate"),
        ("split j: j1 | ju", r"each part after the first is written name\(size\)"),
        ("mma add0: i, j", "it takes three leaves"),
        ("stage arg1 at k as A depth", "'depth' is no option here"),
    ],
)
def test_what_does_not_parse_says_why(text: str, message: str) -> None:
    with pytest.raises(ScheduleError, match=message):
        parse_actions(text)


def test_comments_and_empty_lines_do_not_count() -> None:
    assert parse_actions("\n# a comment\n grid i  # and another\n") == [grid("i")]


def test_an_action_that_does_not_apply_names_itself() -> None:
    with pytest.raises(
        ScheduleError, match=r"split q: a \| b\(4\): no leaf is called 'q'; there are"
    ):
        apply(build(matmul(4, 4, 4), CPU), parse_actions("split q: a | b(4)"))
