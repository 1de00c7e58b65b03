"""Matrix instructions: products of small matrices of narrow numbers, added to a matrix of sums.

The values are *tiles*, matrices as vectors of all their elements, row after row. The first factor
(m x k) and the second (k x n) hold groups along k, as dot instructions take them (`dots.py`): a
lane of the first is a group of its row, a lane of the second a group of its column. In a program
an instruction is `INTRINSIC(sums, first, second)` with the arg `("mma", dtype, dtype, m, n, k)`.
Tiles lie in memory with their rows any number of elements apart:

    INTRINSIC(buffer, offset, stride)         ("tile_read", rows, columns): a tile
    INTRINSIC(buffer, offset, stride, tile)   ("tile_write", rows, columns)

What an instruction computes is written down in `Matrix.meaning`. Integer sums wrap. For bfloat16 it
is what TDPBF16PS does (Intel, Software Developer's Manual, volume 2): the first members of all
groups are multiplied and summed in order from 0, so are the second members, each product rounded
once with the sum; then both sums are added, and the result is added to what was there. Rounding is
to the nearest even; a subnormal number counts as a zero of its sign.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from treadle.ir.dots import GROUP, flushed, fused, members
from treadle.ir.dtype import DType, bfloat16, float32, int8, int32, uint8


class Matrix(NamedTuple):
    """One instruction. feature: what a Target lists that has it; factors: the dtypes of what is
    multiplied; total: of the sums; m, n, k: rows and columns of the sums, and terms of each."""

    feature: str
    factors: tuple[DType, DType]
    total: DType
    m: int
    n: int
    k: int

    @property
    def size(self) -> int:
        """How many terms stand in a group."""
        return GROUP.itemsize // self.factors[0].itemsize

    @property
    def arg(self) -> tuple[str | int, ...]:
        """The arg of its INTRINSIC."""
        return "mma", self.factors[0].name, self.factors[1].name, self.m, self.n, self.k

    @property
    def lanes(self) -> tuple[int, int, int]:
        """How many lanes the tiles have: that of the sums, and those of both factors."""
        groups = self.k // self.size
        return self.m * self.n, self.m * groups, groups * self.n

    def meaning(self, total: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """The tile of sums after one instruction."""
        sums = np.reshape(total, (self.m, self.n))
        a, b = (
            np.stack(
                list(members(dtype, np.reshape(np.asarray(tile, np.uint32), shape), self.size))
            )
            for dtype, tile, shape in zip(
                self.factors, (first, second), ((self.m, -1), (-1, self.n))
            )
        )  # the members, and of each a matrix
        if not self.total.is_float:
            for one, two in zip(a.astype(np.int32), b.astype(np.int32)):
                sums = sums + one @ two
            return sums.reshape(-1)
        halves = []
        for one, two in zip(flushed(a), flushed(b)):
            half = np.zeros((self.m, self.n), np.float32)
            for term in range(one.shape[1]):
                half = flushed(fused(one[:, term, None], two[term], half))
            halves.append(half)
        with np.errstate(all="ignore"):
            return flushed(flushed(sums) + flushed(halves[0] + halves[1])).reshape(-1)


MATRICES = (
    Matrix("mma_bf16", (bfloat16, bfloat16), float32, 16, 16, 32),
    Matrix("mma_i8", (int8, int8), int32, 16, 16, 64),
    Matrix("mma_i8", (int8, uint8), int32, 16, 16, 64),
    Matrix("mma_i8", (uint8, int8), int32, 16, 16, 64),
    Matrix("mma_i8", (uint8, uint8), int32, 16, 16, 64),
)
_BY_ARG = {matrix.arg: matrix for matrix in MATRICES}


def matrix_of(arg: object) -> Matrix:
    """The instruction that an INTRINSIC's arg names. ValueError if there is none."""
    found = _BY_ARG.get(arg) if isinstance(arg, tuple) else None
    if found is None:
        names = ", ".join(map(repr, _BY_ARG))
        raise ValueError(f"there is no matrix instruction {arg!r}; there are {names}")
    return found
