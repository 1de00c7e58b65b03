"""Matrix instructions as an action: a tile of a sum of products is computed at once.

Three leaves of kind "mma" are inside the instruction: m and n tell its results apart, k is summed.
On a CPU the results are a tile in a register, which only a copy to memory can read (`Detach` makes
one); so they lie tile by tile in their scratch buffer. Factors are read as tiles, where they lie in
memory as the instruction takes them: the first along its rows, the second in groups along k
(`stage .. group`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from treadle.ir import index, ops
from treadle.ir.matrix import MATRICES, Matrix
from treadle.ir.node import Node
from treadle.kernel.actions import legal
from treadle.kernel.kernel import Kernel, Leaf, ScheduleError, Stmt, exact

GPU_ROWS, GPU_SUM, GPU_COLUMNS = 64, 16, 256  # m, k and the greatest n of a GPU's instruction

Leaves = tuple[Leaf, Leaf, Leaf]


@dataclass(frozen=True)
class Mma:
    """Computes the leaves (m, n, k) of a sum of products by one matrix instruction. inflight: how
    many of its groups may still run when the next begins (for GPU targets)."""

    statement: str
    leaves: tuple[str, str, str]
    inflight: int = 0

    def __str__(self) -> str:
        inflight = f" inflight {self.inflight}" if self.inflight else ""
        return f"mma {self.statement}: {', '.join(self.leaves)}{inflight}"

    def __call__(self, kernel: Kernel) -> Kernel:
        statement = kernel.statement(self.statement)
        m, n, k = (kernel.leaf(name) for name in self.leaves)
        for leaf in (m, n, k):
            if leaf.name not in statement.order:
                raise ScheduleError(f"{leaf.name} is no leaf of {self.statement}")
            if kernel.step(leaf.name) != 1:
                raise ScheduleError(f"{leaf.name} is not the innermost part of its range")
            if leaf.kind != "loop":
                raise ScheduleError(f"{leaf.name} is {leaf.kind} already")
        if k.name not in statement.reduced or {m.name, n.name} & statement.reduced:
            raise ScheduleError(f"{k.name} must be summed over, {m.name} and {n.name} must not")
        require, arrange = _BY_KIND[kernel.target.kind]
        require(kernel, statement, (m, n, k))
        order = (*(name for name in statement.order if name not in self.leaves), *self.leaves)
        changed = replace(statement, mma=self.leaves, inflight=self.inflight, order=order)
        kernel = kernel.with_leaves(*(replace(leaf, kind="mma") for leaf in (m, n, k)))
        return arrange(legal(kernel.with_statement(changed).arranged()), changed)


# ---- on a GPU ------------------------------------------------------------------------------------
def _require_gpu(kernel: Kernel, statement: Stmt, leaves: Leaves) -> None:
    m, n, k = (leaf.extent for leaf in leaves)
    if "mma" not in kernel.target.intrinsics:
        raise ScheduleError(f"{kernel.target.name} has no matrix instruction")
    if m != GPU_ROWS or k != GPU_SUM:
        raise ScheduleError(f"the instruction takes m = {GPU_ROWS} and k = {GPU_SUM}")
    if not isinstance(n, int) or n % 8 or n > GPU_COLUMNS:
        raise ScheduleError(f"n must be a multiple of 8 up to {GPU_COLUMNS}")
    value = statement.values[0]
    if statement.monoid != "add" or value.op is not ops.MUL or value.dtype.name != "float32":
        raise ScheduleError(f"{statement.name} is no sum of products in float32")
    for factor in value.src:
        load = factor.src[0] if factor.op is ops.CAST else factor
        if load.op is not ops.LOAD or load.dtype.name not in ("bfloat16", "float16"):
            raise ScheduleError("each factor must be a bfloat16 or float16 element, widened")


# ---- on a CPU ------------------------------------------------------------------------------------
def matrix_for(kernel: Kernel, statement: Stmt, rows: int) -> Matrix | None:
    """The instruction of the target for the products that a statement sums, if there is one. rows:
    the leaves that only its first factor depends on, as a mask."""
    factors = tile_factors(kernel, statement, rows)
    if factors is None:
        return None
    dtypes = tuple(load.dtype for load in factors)
    return next(
        (
            matrix
            for matrix in MATRICES
            if matrix.feature in kernel.target.intrinsics
            and matrix.factors == dtypes
            and matrix.total is statement.values[0].dtype
        ),
        None,
    )


def tile_factors(kernel: Kernel, statement: Stmt, rows: int) -> tuple[Node, Node] | None:
    """The loads whose products a statement sums, that which moves with the rows first; None if it
    sums something else."""
    value = statement.values[0]
    if statement.monoid != "add" or value.op is not ops.MUL:
        return None
    one, two = (factor.src[0] if factor.op is ops.CAST else factor for factor in value.src)
    if one.op is not ops.LOAD or two.op is not ops.LOAD:
        return None
    return (one, two) if kernel.over_leaves(one).free & rows else (two, one)


def _require_cpu(kernel: Kernel, statement: Stmt, leaves: Leaves) -> None:
    m, n, k = leaves
    matrix = matrix_for(kernel, statement, m.bit)
    if matrix is None:
        raise ScheduleError(
            f"{statement.name} sums no products for which {kernel.target.name} has a matrix "
            "instruction"
        )
    if (m.extent, n.extent, k.extent) != (matrix.m, matrix.n, matrix.k):
        raise ScheduleError(
            f"the instruction takes m = {matrix.m}, n = {matrix.n} and k = {matrix.k}"
        )
    for leaf in leaves:
        owner = kernel.range_of[leaf.name]
        if not exact(kernel, owner):
            raise ScheduleError(f"the last tile of {owner.name} is not whole: pad it first")
    factors = tile_factors(kernel, statement, m.bit)
    assert factors is not None
    first, second = (kernel.over_leaves(load).free for load in factors)
    if not (first & m.bit and first & k.bit and second & n.bit and second & k.bit):
        raise ScheduleError(f"one factor must go along {m.name} and {k.name}, one along {n.name}")
    if first & n.bit or second & m.bit:
        raise ScheduleError(f"a factor goes along both {m.name} and {n.name}")


def _lay_in_tiles(kernel: Kernel, statement: Stmt) -> Kernel:
    """The results lie tile by tile: the columns in blocks as wide as a tile."""
    n = kernel.leaves[statement.mma[1]]
    axes = range(len(statement.index))
    cut = [a for a in axes if kernel.over_leaves(statement.index[a]).free & n.bit]
    name = statement.targets[0].arg[0]
    order = (*(a for a in axes if a not in cut), *cut)
    laid = replace(
        kernel.scratch[name], layout=tuple(map(str, order)), block=index.as_int(n.extent)
    )
    return replace(kernel, scratch={**kernel.scratch, name: laid})


_BY_KIND: dict[
    str,
    tuple[Callable[[Kernel, Stmt, Leaves], None], Callable[[Kernel, Stmt], Kernel]],
] = {
    "gpu": (_require_gpu, lambda kernel, statement: kernel),
    "cpu": (_require_cpu, _lay_in_tiles),
}


def require_tiles_apart(kernel: Kernel) -> None:
    """ScheduleError if a statement would read single elements of a tile that is in a register."""
    inside = {name: s.name for s in kernel.statements for name in s.mma}
    for statement in kernel.statements:
        within = [name for name in statement.order if name in inside]
        if not within or statement.mma:
            continue
        value = statement.values[0]
        whole = value.op is ops.LOAD and isinstance(value.src[0].arg[0], str)
        if statement.monoid is not None or statement.is_store or not whole:
            raise ScheduleError(
                f"{statement.name} runs inside of a matrix instruction: detach "
                f"{inside[within[0]]} first"
            )
