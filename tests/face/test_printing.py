"""How tensors print: the numbers that PyTorch's options mean."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest

import treadle
from treadle import Tensor


@pytest.fixture(autouse=True)
def default_options() -> Iterator[None]:
    yield
    treadle.set_printoptions(profile="default")


def test_precision_and_exponents() -> None:
    x = Tensor([math.pi * 1000, 1e-3])
    treadle.set_printoptions(precision=3, sci_mode=False)
    assert repr(x) == "Tensor([3141.593,    0.001])"
    treadle.set_printoptions(sci_mode=True)  # the precision stays
    assert repr(x) == "Tensor([3.142e+03, 1.000e-03])"
    treadle.set_printoptions()
    assert repr(Tensor([0.5, math.nan, math.inf])) == "Tensor([0.5, nan, inf])"
    treadle.set_printoptions(sci_mode=True)
    assert repr(Tensor([math.nan, -math.inf])) == "Tensor([nan, -inf])"
    assert repr(Tensor([1, 2])) == "Tensor([1, 2])"
    assert repr(Tensor(0.25)) == "Tensor(2.500e-01)"


def test_threshold_edges_and_width() -> None:
    x = Tensor(np.arange(10))
    treadle.set_printoptions(threshold=5, edgeitems=1)
    assert repr(x) == "Tensor([0, ..., 9])"
    treadle.set_printoptions(threshold=math.inf)
    assert repr(x) == "Tensor([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])"
    treadle.set_printoptions(linewidth=20)
    assert len(repr(x).splitlines()) == 3
    treadle.set_printoptions(profile="full")
    assert "..." not in repr(Tensor(np.arange(2000)))
    treadle.set_printoptions(profile="default")
    assert "..." in repr(Tensor(np.arange(2000)))


def test_it_is_our_option_alone() -> None:
    before = np.get_printoptions()
    treadle.set_printoptions(precision=1, edgeitems=1)
    repr(Tensor([1.0]))
    assert np.get_printoptions() == before


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"precision": -1}, ValueError, "precision=-1 must be an int of 0 or more"),
        ({"edgeitems": 1.5}, ValueError, "edgeitems=1.5 must be an int"),
        ({"profile": "long"}, ValueError, "profile='long' is not one of"),
        ({"sci_mode": 1}, TypeError, "sci_mode=1 is not True, False or None"),
    ],
)
def test_what_is_refused(options: dict, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        treadle.set_printoptions(**options)
