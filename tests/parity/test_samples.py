"""A part of PyTorch's sample inputs; `python tools/parity.py --check` tries them all.

A part of the samples cannot miss more often than all of them did when tools/parity.txt was written.
"""

import random
import re
import warnings
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="parity needs PyTorch: make test-full")
pytest.importorskip("expecttest", reason="PyTorch's sample inputs need expecttest")
pytestmark = pytest.mark.full

import parity  # noqa: E402  (tools/parity.py, which needs both)
import parity_rules as rules  # noqa: E402

NAMES = 200  # tried in one run
SAMPLES = 4  # of one name, in one dtype
COUNTS = parity.read_counts()
SLOW = rules.COMPILED | {n for n, t in COUNTS.items() if any("longer" in m for m in t.misses)}
CHOSEN = random.Random(20).sample(sorted(set(COUNTS) - SLOW), min(NAMES, len(set(COUNTS) - SLOW)))


@pytest.fixture(scope="module")
def known():
    return parity.known_names()


def test_counts():
    """What is promised: 280 names, each with 95 % of its samples."""
    assert sum(each.rate >= 0.95 for each in COUNTS.values()) >= 280
    assert all(each.passed <= each.total for each in COUNTS.values())


def test_every_miss_has_its_reason():
    """An entry of docs/differences.md by its name; few are defects, and they are listed there."""
    page = (Path(parity.ROOT) / "docs" / "differences.md").read_text()
    entries = set(re.findall(r"^- \*\*([^*]+?)\.?\*\*", page, re.MULTILINE))
    assert {entry for *_, entry in rules.ENTRIES} <= entries
    reasons = {rules.reason(name, miss) for name, t in COUNTS.items() for miss in t.misses}
    assert reasons - {"defect"} <= entries


@pytest.mark.parametrize("name", CHOSEN)
def test_samples(name, known):
    assert name in known, "a name that was there is gone"
    info = known[name][0]
    dtypes = [each for each in parity.DTYPES if getattr(torch, each) in info.dtypes]
    dtype = random.Random(name).choice(dtypes)
    misses = []
    with warnings.catch_warnings(), np.errstate(all="ignore"), parity.config.DEVICE.set("INTERP"):
        warnings.simplefilter("ignore")
        for sample in list(parity.samples_of(info, dtype))[:SAMPLES]:
            miss, *_ = parity.try_sample(info, sample, dtype, "INTERP")
            misses += [miss] if miss else []
    allowed = COUNTS[name].total - COUNTS[name].passed
    assert len(misses) <= allowed, f"{dtype}: {misses}"
