"""Fourier transforms of any length: `treadle.fft.rfft(x)`. Names and arguments are those of the
Array API standard, of NumPy and of PyTorch.

The functions are in `treadle/graph/fourier/`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from treadle import methods
from treadle.graph.public import FFT


def __getattr__(name: str) -> Callable[..., Any]:
    """The function of this name. AttributeError if there is none."""
    if name not in FFT:
        raise AttributeError(f"module 'treadle.fft' has no attribute {name!r}")
    made = globals()[name] = methods.function(name, FFT)
    return made


def __dir__() -> list[str]:
    return sorted({*globals(), *FFT})
