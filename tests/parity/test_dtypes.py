"""A part of the comparison with PyTorch in every dtype: all with `tools/dtypes_pytorch.py`."""

import random
import warnings

import pytest

pytest.importorskip("torch", reason="parity needs PyTorch: make test-full")
pytestmark = pytest.mark.full

import dtypes_pytorch  # noqa: E402  (tools/dtypes_pytorch.py, which needs PyTorch)

from treadle import config  # noqa: E402

TRIED = 3  # dtypes of each function, drawn from its name
AT_ONCE = 20


def test_most_functions_are_compared():
    assert len(dtypes_pytorch.FUNCTIONS) > 400
    assert set(dtypes_pytorch.DECIDED) <= set(dtypes_pytorch.FUNCTIONS)


@pytest.mark.parametrize("first", range(0, len(dtypes_pytorch.FUNCTIONS), AT_ONCE))
def test_functions(first):
    wrong = {}
    with config.DEVICE.set("INTERP"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in dtypes_pytorch.FUNCTIONS[first : first + AT_ONCE]:
            wrong[name] = dtypes_pytorch.faults(
                name, random.Random(name).sample(dtypes_pytorch.DTYPES, TRIED)
            )
    assert not any(wrong.values()), {name: each for name, each in wrong.items() if each}
