"""The examples in docstrings.

They are written for who calls with Tensors, those of public functions too, although these are
functions of nodes: every example sees the names that `from treadle import *` gives, `nn`, NumPy as
`np`, and its own module's.
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
    for module_name in modules():
        module = importlib.import_module(module_name)
        for found in FINDER.find(module, globs={**vars(module), **names()}):
            if found.examples:
                yield found


@pytest.mark.parametrize("example", list(examples()), ids=lambda example: example.name)
def test_example(example: doctest.DocTest) -> None:
    report: list[str] = []
    failed, tried = doctest.DocTestRunner(optionflags=FLAGS).run(example, out=report.append)
    assert tried
    assert not failed, "".join(report)
