"""The table of public names: complete rows, both spellings of arguments, Python's own messages."""

import inspect

import numpy as np
import pytest
from arrays import same, tensor

from treadle.graph import (  # noqa: F401  (importing them fills the table)
    counting,
    creation,
    einops,
    elementwise,
    functions,
    indexing,
    linear,
    masks,
    movement,
    random,
    reduction,
    running,
    selection,
    sorting,
)
from treadle.graph.public import GRADIENTS, METHODS, NAMESPACE, SOURCES, public

X = np.arange(6, dtype=np.float32).reshape(2, 3)
KINDS = ("method", "property", "creates", "like", "random", "keyed", "reads")


@pytest.mark.parametrize("table", [METHODS, NAMESPACE], ids=["methods", "namespace"])
def test_every_row_is_complete(table):
    assert table
    for name, entry in table.items():
        assert name in (entry.name, *entry.aliases)
        assert entry.source in SOURCES, name
        assert entry.gradient in GRADIENTS, name
        assert entry.kind in KINDS, name
        assert len(entry.doc) > 10, name
        assert inspect.unwrap(entry.function).__qualname__ == entry.name
        if entry.kind == "random":
            assert next(iter(inspect.signature(entry.function).parameters)) == "key"


def test_a_name_is_given_once():
    with pytest.raises(ValueError, match="the public name exp is given twice"):
        public("exp", source="PyTorch")(lambda x: x)


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("sum", {"axis": 1, "keepdims": True}, X.sum(1, keepdims=True)),
        ("flip", {"dims": (0,)}, X[::-1]),
        ("flip", {"axis": 1}, X[:, ::-1]),
        ("permute", {"dims": (1, 0)}, X.T),
        ("permute_dims", {"axes": (1, 0)}, X.T),
        ("reshape", {"shape": (3, 2)}, X.reshape(3, 2)),
        ("expand", {"size": (1, 2, 3)}, X[None]),
        ("roll", {"shifts": 1, "axis": 1}, np.roll(X, 1, 1)),
        ("unsqueeze", {"axis": 0}, X[None]),
        ("cumsum", {"axis": 1}, X.cumsum(1)),
    ],
)
def test_spellings(name, arguments, expected):
    same(METHODS[name](tensor(X), **arguments), expected)


def test_creation_by_keyword():
    assert METHODS["zeros"](size=(2, 3)).shape == (2, 3)
    assert METHODS["full"](shape=(2,), fill_value=1).shape == (2,)
    assert METHODS["rand"](1, size=(4,)).shape == (4,)


def test_messages_of_python_use_the_public_name():
    with pytest.raises(TypeError, match=r"matmul\(\) missing 1 required positional argument"):
        METHODS["matmul"].function(tensor(X))
    with pytest.raises(TypeError, match=r"gelu\(\) got an unexpected keyword argument 'fast'"):
        METHODS["gelu"].function(tensor(X), fast=True)
    with pytest.raises(TypeError, match="sum: dim and axis are one argument"):
        METHODS["sum"](tensor(X), dim=0, axis=0)
