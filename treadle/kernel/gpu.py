"""Actions that only an emitter for GPUs acts on: how pipelines of matrix instructions run.

They change no meaning: the kernel records them, checked against the statement and the target, and
`check` judges the whole list at the end. Source of the preconditions: what the instructions of
sm_90a demand, and the pipelines that reached the vendor's speed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import prod

from treadle.ir import index, ops
from treadle.ir.node import toposort
from treadle.kernel.kernel import Kernel, ScheduleError, Stmt, home, loads
from treadle.kernel.layout import layouts

WARPGROUP = 128  # threads that issue one matrix instruction
SWIZZLED_ROW = 128  # bytes of a row in a swizzled tile
BOX_ROWS = 256  # rows that the copy engine takes at once, at most


def _require_gpu(kernel: Kernel, what: str) -> None:
    if kernel.target.kind != "gpu":
        raise ScheduleError(f"{what} is for GPU targets; {kernel.target.name} is none")


@dataclass(frozen=True)
class Skew:
    """Runs a statement some iterations of its loop late, so that what it waits for is under way."""

    statement: str
    iterations: int

    def __str__(self) -> str:
        return f"skew {self.statement} {self.iterations}"

    def __call__(self, kernel: Kernel) -> Kernel:
        _require_gpu(kernel, "skew")
        statement = kernel.statement(self.statement)
        if not statement.mma:
            raise ScheduleError(f"{self.statement} is computed by no matrix instruction")
        if self.iterations not in (0, 1):
            raise ScheduleError("a statement can be late by 0 or 1 iterations")
        return kernel.with_statement(replace(statement, skew=self.iterations))


@dataclass(frozen=True)
class Persist:
    """Starts so many blocks, each of which takes one tile after the other."""

    blocks: int

    def __str__(self) -> str:
        return f"persist {self.blocks}"

    def __call__(self, kernel: Kernel) -> Kernel:
        _require_gpu(kernel, "persist")
        if self.blocks < 1:
            raise ScheduleError("at least one block must run")
        return replace(kernel, persist=self.blocks)


@dataclass(frozen=True)
class Occupancy:
    """Asks for so many blocks at once on a processor; the compiler limits registers accordingly."""

    blocks: int

    def __str__(self) -> str:
        return f"occupancy {self.blocks}"

    def __call__(self, kernel: Kernel) -> Kernel:
        _require_gpu(kernel, "occupancy")
        if self.blocks < 1:
            raise ScheduleError("at least one block must fit")
        return replace(kernel, occupancy=self.blocks)


@dataclass(frozen=True)
class Snake:
    """Walks an unrolled leaf to and fro, so that operands are used again while they are at hand."""

    leaf: str

    def __str__(self) -> str:
        return f"snake {self.leaf}"

    def __call__(self, kernel: Kernel) -> Kernel:
        leaf = kernel.leaf(self.leaf)
        if leaf.kind != "unroll":
            raise ScheduleError(f"{self.leaf} is {leaf.kind}, not unrolled")
        return kernel.with_leaves(replace(leaf, snake=True))


# ---- the whole list ------------------------------------------------------------------------------
def check(kernel: Kernel) -> None:
    """Judges a finished schedule for a GPU. ScheduleError says what is wrong."""
    if kernel.target.kind == "gpu":
        for judge in _JUDGES:
            judge(kernel)


def _check_block(kernel: Kernel) -> None:
    threads = 0
    for statement in kernel.statements:
        leaves = [kernel.leaves[name] for name in statement.order]
        own = prod(index.as_int(leaf.extent) for leaf in leaves if leaf.kind == "local")
        own *= WARPGROUP if statement.mma else 1
        threads = max(threads, own)
    if threads > kernel.target.block_threads:
        raise ScheduleError(
            f"a block has {threads} threads; {kernel.target.name} can run "
            f"{kernel.target.block_threads}"
        )


def _check_shared(kernel: Kernel) -> None:
    layout = layouts(kernel)
    used = 0
    for scratch in kernel.scratch.values():
        if scratch.scope == "shared":
            size = index.as_int(layout[scratch.name].size)
            if scratch.shape:
                size = prod(scratch.shape) * _locals(kernel, scratch.name)
            used += size * scratch.node.dtype.itemsize * scratch.depth
    if used > kernel.target.shared_bytes:
        raise ScheduleError(
            f"{used} bytes of shared memory are staged; a block has {kernel.target.shared_bytes}"
        )


def _locals(kernel: Kernel, name: str) -> int:
    """How many parts of a block each hold a piece of a scratch buffer."""
    leaves = (kernel.leaves[leaf] for leaf in home(kernel, name))
    return prod(index.as_int(leaf.extent) for leaf in leaves if leaf.kind == "local")


def _check_operands(kernel: Kernel) -> None:
    """Both factors of a matrix instruction are read from shared memory."""
    for statement in kernel.statements:
        if not statement.mma:
            continue
        for load in loads(statement):
            name = load.src[0].arg[0]
            scratch = kernel.scratch.get(name) if isinstance(name, str) else None
            if scratch is None or scratch.scope != "shared":
                raise ScheduleError(
                    f"{statement.name}: both operands of mma are to be staged, shared"
                )
            if scratch.copy == "tma" and scratch.depth - 1 - statement.inflight < 1:
                raise ScheduleError(
                    f"{name}: depth {scratch.depth} leaves no copy ahead of {statement.inflight} "
                    "groups in flight"
                )


def _check_copies(kernel: Kernel) -> None:
    for statement in kernel.statements:
        for target in statement.targets:
            scratch = kernel.scratch.get(target.arg[0]) if isinstance(target.arg[0], str) else None
            if scratch is not None and scratch.copy in ("tma", "cp16"):
                _check_wide_copy(statement, scratch.copy, scratch.swizzle)


def _check_wide_copy(statement: Stmt, copy: str, swizzle: int) -> None:
    """Rows begin at multiples of 16 bytes; a swizzled box has rows of whole 128 bytes or less."""
    for load in (n for n in toposort(statement.values) if n.op is ops.LOAD):
        buffer = load.src[0]
        row = buffer.shape[-1] if buffer.shape else 1
        if not isinstance(row, int) or row * buffer.dtype.itemsize % 16:
            raise ScheduleError(f"{copy}: rows of {statement.name} must be multiples of 16 bytes")
    if copy == "tma" and swizzle not in (0, SWIZZLED_ROW):
        raise ScheduleError(f"the copy engine swizzles rows of {SWIZZLED_ROW} bytes, not {swizzle}")


_JUDGES: tuple[Callable[[Kernel], None], ...] = (
    _check_block,
    _check_shared,
    _check_operands,
    _check_copies,
)
