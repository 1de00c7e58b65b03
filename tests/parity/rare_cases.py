"""Cases of names that few programs have."""

from __future__ import annotations

import numpy as np
import pytest
from cases import Case

torch = pytest.importorskip("torch", reason="parity needs PyTorch: make test-full")
RNG = np.random.default_rng(21)
S = RNG.uniform(0.5, 2.0, (3, 4)) * np.array([1.0, -1.0, 1.0, -1.0])  # of both signs

RARE: dict[str, list[Case]] = {
    "nextafter": [Case((S, -S), order=1)],
}
