"""A case: how a public function is called, here and in PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass
class Case:
    """arrays: the tensors it is called with, first. args, named: what comes after. theirs: how
    PyTorch calls it, if not by the same name and arguments. order: how far it is compared."""

    arrays: tuple[np.ndarray, ...]
    args: tuple[Any, ...] = ()
    named: dict[str, Any] = field(default_factory=dict)
    theirs: Callable[..., Any] | None = None
    ours: Callable[..., Any] | None = None
    order: int = 2
