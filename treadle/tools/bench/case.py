"""What a case of the suite is.

A case is one function for every library: treadle's names are those of PyTorch, so the same lines
build both. What differs (capturing, gradients, reading numbers) is in `libraries.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from treadle.tools.bench.libraries import Library

Arrays = Sequence[np.ndarray]
Maker = Callable[[np.random.Generator], Arrays]
Function = Callable[..., Any]


def nothing(random: np.random.Generator) -> Arrays:
    """No arrays."""
    return ()


@dataclass(frozen=True)
class Target:
    """What a case has to reach; what is not given is not asked.

    ratio: PyTorch's time divided by ours. alone: the ratio is asked of the geometric mean of the
    case's group, and of the case alone only this much. stream: (a case that only moves memory, how
    many times as long a byte may take as there); instead: that is enough, whatever the ratio.
    empty, warm: seconds of the first call, with an empty and with a warm disk cache.
    """

    ratio: float | None = None
    alone: float | None = None
    stream: tuple[str, float] | None = None
    instead: bool = False
    empty: float | None = None
    warm: float | None = None


@dataclass(frozen=True)
class Case:
    """One thing to measure.

    inputs: draws the arrays of one call. The suite draws several sets and takes them in turns, so
    that no call has the data of the one before. weights: draws the arrays that all calls share.
    build(library, *weights) -> the function of the inputs that is timed; the library captures it.
    dtype: what floating arrays are cast to. operations, bytes: what the least program would compute
    and move. consumes: each call changes the state that the next one reads (a training step), so
    that results are not compared. tolerance: how far results of two libraries may be apart,
    relative to the largest number. target: what is to be reached. quick: whether it is part of
    `--quick`. cold: the first call in a fresh process is what counts.
    """

    name: str
    what: str
    inputs: Maker
    build: Callable[..., Function]
    weights: Maker = nothing
    dtype: str = "float32"
    operations: int = 0
    bytes: int = 0
    consumes: bool = False
    tolerance: float = 1e-4
    target: Target = Target()
    quick: bool = False
    cold: bool = False

    @property
    def group(self) -> str:
        """The first part of the name."""
        return self.name.split("/")[0]


def normal(*shapes: tuple[int, ...]) -> Maker:
    """Draws an array of normal numbers of each shape."""

    def make(random: np.random.Generator) -> Arrays:
        return [random.standard_normal(shape, dtype=np.float32) for shape in shapes]

    return make


def plain(function: Callable[..., Any]) -> Callable[..., Function]:
    """What builds a case from `function(library, *weights, *inputs)`."""

    def build(library: Library, *weights: Any) -> Function:
        return lambda *inputs: function(library, *weights, *inputs)

    return build
