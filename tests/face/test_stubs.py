"""The stubs are what `tools/stubs.py` makes, name everything there is, and tell a type checker what
it is."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
import stubs

import treadle
from treadle.graph.public import METHODS, NAMES
from treadle.methods import KINDS
from treadle.vocabulary import Vocabulary

STUB = stubs.FOLDER / "vocabulary.pyi"
FILES = [path for path in stubs.files() if path != NAMES]
TREE = ast.parse(STUB.read_text(encoding="utf-8"))
(CLASS,) = (node for node in TREE.body if isinstance(node, ast.ClassDef))
METHOD_NODES = {node.name: node for node in CLASS.body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_the_stubs_are_up_to_date(path: Path) -> None:
    written = path.read_text(encoding="utf-8")
    assert written == stubs.files()[path], "renew it: python tools/stubs.py --write"


def test_it_names_everything() -> None:
    names = {name for name, value in vars(Vocabulary).items() if not isinstance(value, str | tuple)}
    assert set(METHOD_NODES) == names - {"__module__", "__doc__", "__slots__"}


@pytest.mark.parametrize("name", sorted(METHODS))
def test_what_the_face_adds_is_in_the_signature(name: str) -> None:
    made = KINDS[METHODS[name].kind](METHODS[name], name)
    function = made.fget if isinstance(made, property) else getattr(made, "__func__", made)
    code = function.__code__
    added = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
    node = METHOD_NODES[name]
    assert set(added) <= {argument.arg for argument in node.args.kwonlyargs}


@pytest.mark.parametrize("stub", stubs.FUNCTIONS)
def test_a_namespace_has_the_functions_of_its_stub(stub: str) -> None:
    tree = ast.parse((stubs.FOLDER / f"{stub}.pyi").read_text(encoding="utf-8"))
    named = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    module = treadle if stub == "functions" else getattr(treadle, stub)
    assert named == set(stubs.FUNCTIONS[stub][1])
    assert named <= set(dir(module))


REVEALED = {
    "treadle.sin(x)": "Tensor",
    "treadle.add(1, x)": "Tensor",
    "treadle.sum(x, dim=0, keepdims=True)": "Tensor",
    "treadle.zeros(2, 3)": "Tensor",
    "treadle.meshgrid(x, x)": "list[Tensor]",
    "treadle.linalg.svd(x)": "SVDResult[Tensor]",
    "treadle.linalg.svd(x).S": "Tensor",
    "treadle.unique_counts(x).counts": "Tensor",
    "treadle.fft.rfft(x)": "Tensor",
    "treadle.special.zeta(x, 2.0)": "Tensor",
    "treadle.special.expit(x)": "Tensor",
    "treadle.float32": "DType",
    "x.sort(0).indices": "Tensor",
}
WRONG = ["treadle.sinn(x)", "treadle.linalg.svdd(x)", "treadle.sin('a')", "treadle.exp()"]


def test_what_a_type_checker_sees(tmp_path: Path) -> None:
    api = pytest.importorskip("mypy.api", reason="mypy is not installed: make lint types does")
    lines = [f"reveal_type({each})" for each in REVEALED] + WRONG
    snippet = tmp_path / "snippet.py"
    head = "import treadle\nx = treadle.Tensor([1.0])\n"
    snippet.write_text(head + "\n".join(lines) + "\n", encoding="utf-8")
    said, problem, _ = api.run(["--strict", "--cache-dir", str(tmp_path), str(snippet)])
    assert not problem, problem
    shown = re.findall(r'Revealed type is "(.*)"', said)
    assert len(shown) == len(REVEALED), said
    for (call, expected), found in zip(REVEALED.items(), shown):
        plain = re.sub(r"\b\w+\.", "", found)
        assert plain == expected or plain.endswith(f"fallback={expected}]"), call
    first = head.count("\n") + len(REVEALED) + 1
    errors = {int(line) for line in re.findall(r":(\d+): error", said)}
    assert errors == {first + n for n in range(len(WRONG))}, said
