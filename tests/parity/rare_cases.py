"""Cases of names that few programs have."""

from __future__ import annotations

import numpy as np
import pytest
from cases import Case

torch = pytest.importorskip("torch", reason="parity needs PyTorch: make test-full")
RNG = np.random.default_rng(21)
S = RNG.uniform(0.5, 2.0, (3, 4)) * np.array([1.0, -1.0, 1.0, -1.0])  # of both signs
T = RNG.uniform(0.5, 2.0, (3, 4)) * np.array([-1.0, -1.0, 1.0, 1.0])
ROW = RNG.normal(size=4)
TIMES = np.array([3, 1, 2, 1])
PARTS = RNG.uniform(0.5, 1.0, 4)

RARE: dict[str, list[Case]] = {
    "clamp_max": [Case((S,), (0.7,))],
    "clamp_min": [Case((S,), (-0.7,))],
    "combinations": [
        Case((ROW,), (3,), theirs=torch.combinations),
        Case((ROW,), (2, True), theirs=torch.combinations),
    ],
    "corrcoef": [Case((S,), theirs=torch.corrcoef)],
    "cov": [
        Case((S,), named={"correction": 0}),
        Case(
            (S, TIMES, PARTS),
            ours=lambda x, f, a: x.cov(fweights=f, aweights=a),
            theirs=lambda x, f, a: torch.cov(x, fweights=f, aweights=a),
        ),
    ],
    "frexp": [Case((S,), ours=lambda x: x.frexp()[0], theirs=lambda x: torch.frexp(x)[0], order=1)],
    "i0": [Case((S,), order=1), Case((40 * S,), order=1)],
    "ldexp": [Case((S, T))],
    "logaddexp2": [Case((S, T))],
    "mvlgamma": [Case((abs(S) + 1,), (3,))],
    "new_full": [Case((S,), ((2,), 3.0), order=0)],
    "new_ones": [Case((S,), ((2, 3),), order=0)],
    "new_zeros": [Case((S,), ((2, 3),), order=0)],
    "nextafter": [Case((S, T), order=1)],
    "pdist": [
        Case((S,), (p,), theirs=torch.nn.functional.pdist, order=1) for p in (0.0, 1.0, 2.0, 3.0)
    ],
    "polygamma": [
        Case((abs(S),), (n,), theirs=lambda x, n: torch.polygamma(n, x)) for n in (0, 2, 3)
    ],
    "renorm": [Case((S,), (p, 0, 1.0)) for p in (1.0, 2.0, 3.0)],
    "rsub": [Case((S, T[0]), named={"alpha": 2}, theirs=torch.rsub)],
}
