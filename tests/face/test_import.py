"""What `import treadle` loads, and what first uses of names load. Each runs in a new process."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
import stubs

import treadle
from treadle.graph.public import NAMES, NOT_CURRENT, TABLES

LOADED = "print(*sorted(m for m in sys.modules if m.startswith('treadle.')))"
FIRST_STEP = """
x, w = treadle.Tensor([[1.0, 2.0]]), treadle.Tensor([[3.0], [4.0]], requires_grad=True)
(x @ w).relu().sum().backward()
"""


@cache
def output(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", f"import sys, treadle\n{code}"],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(treadle.__file__).parent.parent,
    )
    return done.stdout.strip()


def loaded(code: str = "") -> set[str]:
    """The modules of treadle that a program loads."""
    return {name.removeprefix("treadle.") for name in output(f"{code}\n{LOADED}").split()}


def test_the_file_of_names_is_up_to_date() -> None:
    assert NAMES.read_text(encoding="utf-8") == stubs.names(), NOT_CURRENT


def test_import_loads_the_common_ground_alone() -> None:
    found = loaded()
    rare = {"captured", "kernels", "linalg", "nn", "standard", "transforms", "kernel"}
    assert not found & rare
    assert not {name for name in found if name.startswith(("backend.llvm", "graph.linalg"))}
    written = {entry.module for table in TABLES.values() for entry in table.values()}
    common = {"elementwise", "functions", "masks", "movement", "polygamma", "reduction", "running"}
    assert {name for name in written if f"graph.{name}" in found} <= common
    assert len(found) <= 110
    libraries = "print(*[m for m in ('llvmlite', 'tempfile', 'torch') if m in sys.modules])"
    assert not output(libraries)


def test_the_first_step_loads_what_it_names() -> None:
    assert loaded(FIRST_STEP) - loaded() == {"graph.complexes", "graph.linear"}
    run = loaded(f"{FIRST_STEP}w.grad.tolist()") - loaded()
    own = {name for name in run if not name.startswith(("backend.", "ir.", "kernel"))}
    assert own == {"graph.complexes", "graph.linear"}
    assert len(run) <= 60


@pytest.mark.parametrize("step", [1, -1])
def test_every_name_is_found_where_the_file_says(step: int) -> None:
    """In both orders, so that nearly every module is loaded by a name of its own."""
    asked = output(
        "from treadle.graph.public import TABLES\n"
        "entries = [entry for table in TABLES.values() for entry in table.values()]\n"
        f"print(all(callable(entry.function) for entry in entries[::{step}]))"
    )
    assert asked == "True"


def test_names_that_load_late() -> None:
    asked = output(
        "from treadle.captured import Jit\n"  # the module does not take the function's place
        "import treadle.tensor\n"
        "from treadle import *\n"
        "print(all(getattr(treadle, name) is globals()[name] for name in treadle.__all__))\n"
        "print(jit is treadle.jit, callable(jit), callable(treadle.grad))\n"
        "print(set(treadle.LATE) - set(dir(treadle)), hasattr(treadle, 'Transformer'))"
    )
    assert asked.split("\n") == ["True", "True True True", "set() False"]


def test_a_method_is_made_once_and_keeps_its_place() -> None:
    asked = output(
        "from treadle.vocabulary import Vocabulary\n"
        "class Own(treadle.Tensor):\n"
        "    __slots__ = ()\n"
        "    def relu6(self):\n"
        "        return super().relu6() * 2\n"
        "print(Own([7.0]).relu6().tolist())\n"
        "before = vars(Vocabulary)['relu6']\n"
        "print(treadle.Tensor.relu6 is before, treadle.Tensor([7.0]).relu6().tolist())\n"
        "print(treadle.Tensor.zeros(2).tolist(), treadle.Tensor([[1, 2]]).T.shape)"
    )
    assert asked.split("\n") == ["[12.0]", "True [6.0]", "[0.0, 0.0] (2, 1)"]
