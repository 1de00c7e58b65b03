"""The stub of Tensor's methods is what `tools/stubs.py` makes, and names everything there is."""

from __future__ import annotations

import ast

import pytest
import stubs

from treadle.graph.public import METHODS
from treadle.methods import KINDS
from treadle.vocabulary import Vocabulary

TREE = ast.parse(stubs.STUB.read_text(encoding="utf-8"))
(CLASS,) = (node for node in TREE.body if isinstance(node, ast.ClassDef))
METHOD_NODES = {node.name: node for node in CLASS.body if isinstance(node, ast.FunctionDef)}


def test_the_stub_is_up_to_date() -> None:
    written = stubs.STUB.read_text(encoding="utf-8")
    assert written == stubs.stub(), "renew it: python tools/stubs.py --write"


def test_it_names_everything() -> None:
    names = {name for name, value in vars(Vocabulary).items() if not isinstance(value, str | tuple)}
    assert set(METHOD_NODES) == names - {"__module__", "__doc__", "__slots__"}


@pytest.mark.parametrize("name", sorted(METHODS))
def test_what_the_face_adds_is_in_the_signature(name: str) -> None:
    made = KINDS[METHODS[name].kind](METHODS[name])
    function = made.fget if isinstance(made, property) else getattr(made, "__func__", made)
    code = function.__code__
    added = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
    node = METHOD_NODES[name]
    assert set(added) <= {argument.arg for argument in node.args.kwonlyargs}
