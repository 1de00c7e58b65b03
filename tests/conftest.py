"""Every test runs with the laws of the stages checked after every pass, and with a disk cache of
the session's own, so that nothing compiled before (or by other code) is used."""

from __future__ import annotations

import os
import tempfile
from collections import Counter

import pytest

_cache = tempfile.TemporaryDirectory(prefix="treadle-tests-")
os.environ.setdefault("VERIFY", "1")  # before treadle is imported, and for child processes
os.environ.setdefault("CACHE_DIR", _cache.name)
os.environ.setdefault("SCIPY_ARRAY_API", "1")  # SciPy takes tensors as they are; it asks once


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of a test that is `sampled(n)`, `make test` runs the first of every n cases."""
    seen: Counter[str] = Counter()
    for item in items:
        marker = item.get_closest_marker("sampled")
        if marker is not None:
            name = item.nodeid.partition("[")[0]
            if seen[name] % marker.args[0]:
                item.add_marker("full")
            seen[name] += 1
