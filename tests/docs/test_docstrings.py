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
from treadle.graph.public import FFT, LINALG, METHODS, NAMESPACE, SPECIAL

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


def of_tables() -> dict[str, str]:
    """The names of the tables of public names, with their documentation."""
    tables = {
        "Tensor": METHODS,
        "treadle": NAMESPACE,
        "linalg": LINALG,
        "fft": FFT,
        "special": SPECIAL,
    }
    return {
        f"{where}.{name}": entry.doc
        for where, table in tables.items()
        for name, entry in table.items()
    }


def public_names() -> dict[str, str]:
    """Every public name, with its documentation."""
    found = of_tables()
    for module in (treadle, nn, nn.optim, nn.utils, nn.init):
        own = [
            n for n, v in vars(module).items() if getattr(v, "__module__", "") == module.__name__
        ]
        for name in getattr(module, "__all__", own):
            value = getattr(module, name)
            if callable(value) and not name.startswith("_"):
                found[f"{module.__name__}.{name}"] = value.__doc__ or ""
    return found


def examples() -> Iterator[doctest.DocTest]:
    """One test for each docstring with an example: those of the tables, and those of modules."""
    parser, seen = doctest.DocTestParser(), set()
    for name, doc in of_tables().items():
        if ">>>" in doc and doc not in seen:
            seen.add(doc)
            yield parser.get_doctest(doc, names(), name, None, None)
    for module_name in modules():
        module = importlib.import_module(module_name)
        for found in FINDER.find(module, globs={**vars(module), **names()}):
            if found.examples and found.docstring not in seen:
                yield found


@pytest.mark.parametrize("example", list(examples()), ids=lambda example: example.name)
def test_example(example: doctest.DocTest) -> None:
    report: list[str] = []
    failed, tried = doctest.DocTestRunner(optionflags=FLAGS).run(example, out=report.append)
    assert tried
    assert not failed, "".join(report)


def test_every_public_name_has_an_example() -> None:
    lacking = [name for name, doc in public_names().items() if ">>>" not in doc]
    assert not lacking, "write a short example into the docstring"
