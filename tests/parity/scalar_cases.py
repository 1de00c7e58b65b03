"""Cases of elementwise functions and activations that take more than one array of any sign."""

from __future__ import annotations

import math

import numpy as np
import pytest
from cases import Case

torch = pytest.importorskip("torch", reason="parity needs PyTorch: make test-full")
RNG = np.random.default_rng(9)
S = RNG.uniform(0.5, 2.0, (3, 4)) * np.array([1.0, -1.0, 1.0, -1.0])  # of both signs
T = RNG.uniform(0.5, 2.0, (3, 4)) * np.array([-1.0, -1.0, 1.0, 1.0])
P = RNG.uniform(0.5, 2.0, (3, 4))  # positive
U = RNG.uniform(-0.9, 0.9, (3, 4))  # inside the unit interval
Q = RNG.uniform(0.1, 0.9, (3, 4))  # probabilities
SLOPES = np.array([0.1, -0.2, 0.3, 1.5])


def hardsigmoid(x):
    """PyTorch's own divides by a float32 6 in its derivative."""
    return torch.clamp(x + 3, 0, 6) / 6


def celu(x, alpha):
    """PyTorch's own takes 1/alpha in float32."""
    return torch.where(x > 0, x, alpha * torch.expm1(x / alpha))


SCALAR: dict[str, list[Case]] = {
    "asin": [Case((U,))],
    "acos": [Case((U,))],
    "atanh": [Case((U,))],
    "erfinv": [Case((U,))],
    "acosh": [Case((P + 0.6,))],
    "logit": [Case((Q,)), Case((Q,), (0.3,))],
    "lgamma": [Case((S,)), Case((P * 6,))],
    "digamma": [Case((S,)), Case((P * 6,))],
    "copysign": [Case((S, T))],
    "fmax": [Case((S, T))],
    "fmin": [Case((S, T))],
    "logaddexp": [Case((S, T))],
    "atan2": [Case((S, T))],
    "hypot": [Case((S, T))],
    "xlogy": [Case((S, P))],
    "float_power": [Case((P,), (2.5,)), Case((P, S))],
    "addcmul": [Case((S, T, P)), Case((S, T, P), named={"value": 0.5})],
    "addcdiv": [Case((S, T, P)), Case((S, T, P), named={"value": -2.0})],
    "prelu": [Case((S, SLOPES)), Case((S, SLOPES[:1]))],
    "threshold": [Case((S,), (0.7, -1.0))],
    "hardsigmoid": [Case((S * 3,), theirs=hardsigmoid)],
    "hardswish": [Case((S * 3,), theirs=lambda x: x * hardsigmoid(x))],
    "quick_gelu": [Case((S,), theirs=lambda x: x * torch.sigmoid(1.702 * x))],
    "gumbel_softmax": [
        Case((S,), ours=lambda x: x.gumbel_softmax().sum(-1), theirs=lambda x: x.sum(-1) * 0 + 1)
    ],
    "elu": [Case((S,), (0.7,))],
    "celu": [Case((S,), (0.7,), theirs=celu)],
    "softplus": [Case((S,), (1.7,)), Case((S,), (1.0, 1.2))],
    "glu": [Case((S,), (1,))],
    "nan_to_num": [Case((np.array([math.nan, math.inf, -math.inf, 1.5]),), (2.0, 3.0, 4.0))],
}
