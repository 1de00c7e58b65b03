"""The examples in docstrings: those of modules, classes and functions, and of public names.

A public function is written on nodes and documented for who calls it with Tensors, so its example
is run through the method that the face makes of it. Every example sees the names that a user has
after `from treadle import *`, NumPy as `np`, and its own module.
"""

from __future__ import annotations

import doctest
import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import treadle
from treadle import nn
from treadle.graph.public import METHODS, NAMESPACE

PACKAGE = Path(treadle.__file__).parent
FINDER = doctest.DocTestFinder(exclude_empty=True, recurse=True)
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def modules() -> Iterator[str]:
    """Every module of the package with an example in it; others need not be importable here."""
    for path in sorted(PACKAGE.rglob("*.py")):
        if ">>>" in path.read_text(encoding="utf-8"):
            parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
            yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def names() -> dict[str, Any]:
    user = {name: getattr(treadle, name) for name in treadle.__all__}
    return {**user, "treadle": treadle, "nn": nn, "np": np}


def examples() -> Iterator[doctest.DocTest]:
    """One test for each docstring with an example."""
    seen: set[str] = set()
    for module_name in modules():
        module = importlib.import_module(module_name)
        for found in FINDER.find(module, globs={**vars(module), **names()}):
            if found.examples and found.docstring not in seen:
                seen.add(found.docstring)
                yield found
    for name, entry in {**NAMESPACE, **METHODS}.items():
        if ">>>" in entry.doc and entry.doc not in seen:
            seen.add(entry.doc)
            yield doctest.DocTestParser().get_doctest(entry.doc, names(), name, None, None)


@pytest.mark.parametrize("example", list(examples()), ids=lambda example: example.name)
def test_example(example: doctest.DocTest) -> None:
    report: list[str] = []
    failed, tried = doctest.DocTestRunner(optionflags=FLAGS).run(example, out=report.append)
    assert tried
    assert not failed, "".join(report)
