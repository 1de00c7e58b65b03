"""Weights to begin with: their bounds and their spread."""

import math

import numpy as np
import pytest
from arrays import run

from treadle.graph import initial
from treadle.ir import index
from treadle.ir.dtype import float64

BOUNDS = {
    "kaiming_uniform": math.sqrt(3 * 2 / (1 + 0.01**2) / 60),
    "glorot_uniform": math.sqrt(6 / (40 + 60)),
    "scaled_uniform": 1 / math.sqrt(2400),
}


@pytest.mark.parametrize("name", BOUNDS)
def test_uniform(name):
    found = run(getattr(initial, name)(7, 40, 20, 3, dtype=float64))
    assert found.shape == (40, 20, 3)
    assert 0.99 * BOUNDS[name] < np.abs(found).max() <= BOUNDS[name]
    assert abs(found.mean()) < 0.05 * BOUNDS[name]


def test_normal():
    found = run(initial.kaiming_normal(7, (40, 60), a=1.0))
    assert found.dtype == np.float32
    assert abs(found.std() - math.sqrt(1 / 60)) < 0.005


def test_what_cannot_be():
    with pytest.raises(ValueError, match="kaiming_normal needs 1 dimension or more"):
        initial.kaiming_normal(7)
    with pytest.raises(ValueError, match="so they are ints"):
        initial.glorot_uniform(7, index.variable("n", 1, 9), 3)
