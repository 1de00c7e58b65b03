"""What `DEBUG` and `explain` show: each level adds to the one before, and reasons have numbers."""

from __future__ import annotations

import re

import numpy as np
import pytest

import treadle
from treadle import Tensor, config
from treadle.engine import programs

# what the first line of each level looks like, from 1 up
MARKS = (
    r"^run on \w+: 2 kernels",
    r"^  kernel 0: [\d.]+ us  \d+ loads, \d+ stores",
    r"^  kernel 0: because ",
    r"^(grid|loop) ",
    r"^define ",
    r"^%0 = buffer float32",
)


def shown(level: int, capsys: pytest.CaptureFixture[str]) -> str:
    """What a product and a softmax print, compiled anew."""
    programs.kept.clear()
    programs.compilers.clear()
    x = Tensor(np.ones((8, 8), np.float32), device="CPU").realize()
    with config.CACHE.set(0), config.DEBUG.set(level):
        (x @ x + 0.3).softmax(1).realize()
    return capsys.readouterr().err


@pytest.mark.parametrize("level", range(7))
def test_each_level_adds_to_the_one_before(level: int, capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(level, capsys)
    found = [bool(re.search(mark, text, re.MULTILINE)) for mark in MARKS]
    assert found == [True] * level + [False] * (len(MARKS) - level)


def test_explain_gives_kernels_reasons_and_counts_and_runs_nothing() -> None:
    x = Tensor(np.ones((8, 16), np.float32)).realize()
    y = (x @ x.T).softmax(1)
    text = treadle.explain(y, source=True)
    assert not y.is_realized
    assert text.startswith("2 kernels (2 distinct) in 2 phases")
    assert re.search(r"because recomputed reduction: .*\d+ times for its 64 elements", text)
    assert "kernel 0: 128 loads, 64 stores" in text
    assert "schedule:" in text and "define " in text
    y.realize()
    assert treadle.explain(y) == "nothing to run: the values are in memory"


def test_explain_writes_a_part_that_stands_in_a_formula_twice_once() -> None:
    """A formula of n nodes is a text of n parts, where a tree of them would have 2**n."""
    x = Tensor.ones(4).realize()
    for _ in range(40):
        x = (x + 1.5) * (x - 2.5)
    said = treadle.explain(x)
    assert len(said) < 40_000
    assert " where part0 = " in said
