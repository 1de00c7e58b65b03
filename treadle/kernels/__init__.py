"""Kernels that users write: `custom_kernel`, `custom_monoid`; see docs/kernels.md."""

from treadle.kernels.custom import CustomKernel, custom_kernel
from treadle.kernels.language import (
    Builder,
    Fold,
    Index,
    Input,
    Output,
    Range,
    Value,
    custom_monoid,
)

__all__ = [
    "Builder",
    "CustomKernel",
    "Fold",
    "Index",
    "Input",
    "Output",
    "Range",
    "Value",
    "custom_kernel",
    "custom_monoid",
]
