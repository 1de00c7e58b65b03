"""A few of PyTorch's own samples of every shared name, without PyTorch: `tools/parity.py --record`
wrote down the calls, and what PyTorch gave for them."""

import random
import warnings
from collections import defaultdict
from pathlib import Path

import numpy as np
import parity_calls
import parity_rules as rules
import pytest

from treadle import config

CALLS = defaultdict(list)
for _call, _expected in parity_calls.read(Path(__file__).parent / "recorded.npz"):
    CALLS[_call.name].append((_call, _expected))
NAMES = sorted(CALLS)
GROUPS = 16  # tests into which the names are dealt
TRIED = 1  # sample of each, drawn by its name; the others in the full tests


def drawn(name):
    """The samples of a name in an order of its own."""
    return random.Random(name).sample(CALLS[name], len(CALLS[name]))


def misses(names, device, part=slice(TRIED)):
    found = []
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for name in names:
            where = "CPU" if name in rules.COMPILED else device
            with config.DEVICE.set(where):
                for call, expected in drawn(name)[part]:
                    miss, _ = parity_calls.judge(call, expected, where)
                    found += [f"{name}: {miss}"] if miss else []
    return found


def test_what_is_recorded():
    """At least the 280 names that are promised, halves, integers and gradients among them."""
    every = [pair for calls in CALLS.values() for pair in calls]
    arrays = [
        each
        for call, _ in every
        for each in parity_calls.flat([call.arguments, *call.named.values()])
        if isinstance(each, parity_calls.Array)
    ]
    assert len(NAMES) >= 400
    assert {"float32", "float16", "bfloat16", "int64", "bool"} <= {each.dtype for each in arrays}
    assert sum(bool(expected.gradients) for _, expected in every) >= 400


@pytest.mark.parametrize("group", range(GROUPS))
def test_the_meaning(group):
    assert not misses(NAMES[group::GROUPS], "INTERP")


@pytest.mark.full
def test_the_others():
    assert not misses(NAMES, "INTERP", slice(TRIED, None))


def test_compiled():
    """Some of them on the default device."""
    quick = [name for name in NAMES if name not in rules.COMPILED]
    assert not misses(random.Random(4).sample(quick, 20), "CPU")
