"""Every test runs with the laws of the stages checked after every pass, and with a disk cache of
the session's own, so that nothing compiled before (or by other code) is used."""

from __future__ import annotations

import os
import tempfile

_cache = tempfile.TemporaryDirectory(prefix="treadle-tests-")
os.environ.setdefault("VERIFY", "1")  # before treadle is imported, and for child processes
os.environ.setdefault("CACHE_DIR", _cache.name)
os.environ.setdefault("SCIPY_ARRAY_API", "1")  # SciPy takes tensors as they are; it asks once
