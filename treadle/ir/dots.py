"""Dot instructions: sums of a few products of narrow numbers in every lane of a vector.

A lane of 32 bits holds a *group*: two numbers of 16 bits, or four of 8, the first in the lowest
bits. The instruction adds the products of two groups to a lane of the sum. In a program it is
`INTRINSIC(sum, group, group)` with the arg `("dot", dtype, dtype)` of the factors; groups are
uint32.

What it computes is written down in `Dot.meaning`, and every backend does just that. Integer sums
wrap. For bfloat16 it is what the instruction VDPBF16PS does (Intel, Software Developer's Manual,
volume 2; an EPYC gives the same bits): the products are added one after the other, the second
before the first, each rounded once with the sum, to the nearest even; a subnormal number counts as
a zero of its sign, whether it is a factor, a sum, or what comes out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from treadle.ir.dtype import (
    DType,
    bfloat16,
    float32,
    int8,
    int16,
    int32,
    to_compute,
    uint8,
    uint32,
)  # fmt: skip
from treadle.ir.meaning import fused_multiply_add, quiet

GROUP = uint32  # the bits of a group


class Dot(NamedTuple):
    """One instruction. feature: what a Target lists that has it; factors: the dtypes of what is
    multiplied; total: of the sum."""

    feature: str
    factors: tuple[DType, DType]
    total: DType

    @property
    def size(self) -> int:
        """How many products it adds to a lane."""
        return GROUP.itemsize // self.factors[0].itemsize

    @property
    def arg(self) -> tuple[str, str, str]:
        """The arg of its INTRINSIC."""
        return "dot", self.factors[0].name, self.factors[1].name

    def meaning(self, total: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """The sum after one instruction, for arrays of lanes."""
        one, two = (
            list(members(dtype, np.asarray(group, np.uint32), self.size))
            for dtype, group in zip(self.factors, (a, b))
        )
        for x, y in reversed(list(zip(one, two))):
            if self.total is float32:
                total = flushed(fused(flushed(x), flushed(y), flushed(total)))
            else:
                total = total + x.astype(np.int32) * y.astype(np.int32)
        return total


fused = quiet(fused_multiply_add)


def members(dtype: DType, group: np.ndarray, size: int) -> Iterator[np.ndarray]:
    """The numbers of every group, by their place in it."""
    width = 8 * dtype.itemsize
    storage = np.dtype(f"u{dtype.itemsize}")
    for place in range(size):
        bits = (group >> np.uint32(width * place)).astype(storage)
        yield to_compute(dtype, bits.view(dtype.storage))


def flushed(x: np.ndarray) -> np.ndarray:
    """Subnormal numbers as zeros of their sign."""
    x = np.asarray(x, np.float32)
    return np.where(np.abs(x) < np.finfo(np.float32).tiny, np.copysign(np.float32(0), x), x)


DOTS = (
    Dot("dot_bf16", (bfloat16, bfloat16), float32),
    Dot("dot_i16", (int16, int16), int32),
    Dot("dot_i8", (uint8, int8), int32),
)
_BY_ARG = {dot.arg: dot for dot in DOTS}


def dot_of(arg: object) -> Dot:
    """The instruction that an INTRINSIC's arg names. ValueError if there is none."""
    found = _BY_ARG.get(arg) if isinstance(arg, tuple) else None
    if found is None:
        names = ", ".join(map(repr, _BY_ARG))
        raise ValueError(f"there is no dot instruction {arg!r}; there are {names}")
    return found
