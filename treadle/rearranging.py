"""treadle for the library einops: `einops.rearrange(x, "a b -> b a")` takes tensors, as do all its
functions. (`x.rearrange` needs no library.)

einops looks for a backend among the subclasses of a class of its own. That is there once einops is
imported, so until then a finder of modules waits for the import: nothing else is asked for it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import numpy as np

from treadle.tensor import Tensor

BACKENDS = "einops._backends"


class Operations:
    """What einops asks of a backend."""

    framework_name = __package__

    def is_appropriate_type(self, tensor: Any) -> bool:
        """Whether this backend is for a tensor."""
        return isinstance(tensor, Tensor)

    def from_numpy(self, x: np.ndarray) -> Tensor:
        """A tensor with the values of an array."""
        return Tensor(x)

    def to_numpy(self, x: Tensor) -> np.ndarray:
        """The values of a tensor as an array."""
        return x.numpy()

    def arange(self, start: int, stop: int) -> Tensor:
        """The integers from `start` up to `stop`."""
        return Tensor.arange(start, stop)

    def transpose(self, x: Tensor, axes: Sequence[int]) -> Tensor:
        """The axes in another order."""
        return x.permute(*axes)

    def reduce(self, x: Tensor, operation: str, axes: Sequence[int]) -> Tensor:
        """ "sum", "mean", "prod", "min", "max", "any" or "all" over axes."""
        reduced: Tensor = getattr(x, operation)(tuple(axes))
        return reduced

    def stack_on_zeroth_dimension(self, tensors: Sequence[Tensor]) -> Tensor:
        """Tensors of one shape beside each other."""
        return Tensor.stack(*tensors)

    def add_axes(self, x: Tensor, n_axes: int, pos2len: dict[int, int]) -> Tensor:
        """x with new axes of these lengths at these places, among `n_axes`."""
        sizes = list(x.shape)
        for position, length in sorted(pos2len.items()):
            x = x.unsqueeze(position)
            sizes.insert(position, length)
        return x.expand(*sizes)

    def concat(self, tensors: Sequence[Tensor], axis: int) -> Tensor:
        """Tensors one after another."""
        return Tensor.cat(*tensors, dim=axis)

    def is_float_type(self, x: Tensor) -> bool:
        """Whether there is a mean."""
        return x.dtype.is_inexact

    def einsum(self, pattern: str, *x: Tensor) -> Tensor:
        """The sum of products that a pattern says."""
        return Tensor.einsum(pattern, *x)


class Waiting:
    """A finder of modules that finds one, once, and completes it when it has run."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """How `BACKENDS` is loaded; None for any other module."""
        if name != BACKENDS:
            return None
        sys.meta_path.remove(self)
        spec = find_spec(name)
        if spec is not None and spec.loader is not None:
            run = spec.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                run(module)
                register(module)

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def register(backends: Any) -> None:
    """Let einops find the backend; the class lives as long as the module that holds it."""
    backends.TreadleBackend = type(
        "TreadleBackend", (Operations, backends.AbstractBackend), {"__doc__": Operations.__doc__}
    )


def attach() -> None:
    """Register the backend now, or when einops is imported."""
    if BACKENDS in sys.modules:
        register(sys.modules[BACKENDS])
    else:
        sys.meta_path.insert(0, Waiting())
