"""A part of the sweep of every public function over every dtype; `python tools/dtypes.py` does all.

Which part is drawn from the name, so that it is the same in every run: each function in dtypes of
two kinds, on the interpreter, and a few functions in all dtypes, compiled.
"""

from __future__ import annotations

import random

import calls
import dtypes
import pytest

from treadle import config
from treadle.ir.dtype import FLOAT8, bfloat16, bool_, float16, float32

NAMES = sorted(calls.CALLS)
KINDS = (
    (bool_,),
    tuple(d for d in dtypes.INTEGERS if d.kind == "i"),
    tuple(d for d in dtypes.INTEGERS if d.kind == "u"),
    (float16, bfloat16),
    (float32,),
    FLOAT8,
)
AT_ONCE = 12  # functions in one test: what they need is compiled or interpreted together
COMPILED = random.Random(7).sample(sorted(calls.ELEMENTWISE | calls.REDUCTION), 16)


def test_every_public_function_has_a_call() -> None:
    assert set(calls.CALLS) == set(calls.public_names())


def chosen(name: str) -> list[dtypes.DType]:
    draw = random.Random(name)
    return [draw.choice(kind) for kind in draw.sample(KINDS, 2)]


@pytest.mark.parametrize("first", range(0, len(NAMES), AT_ONCE))
def test_functions(first: int) -> None:
    faults = {}
    with config.DEVICE.set("INTERP"):
        for name in NAMES[first : first + AT_ONCE]:
            faults[name] = dtypes.try_function(name, chosen(name)).faults
    assert not any(faults.values()), {name: each for name, each in faults.items() if each}


@pytest.mark.parametrize("name", COMPILED)
def test_compiled_functions(name: str) -> None:
    assert dtypes.try_function(name).faults == []


def test_the_page_names_every_function() -> None:
    text = dtypes.PAGE.read_text()
    assert [name for name in NAMES if f"`{name}`" not in text] == []
    assert "## Wrong" not in text, "python tools/dtypes.py writes the page"
