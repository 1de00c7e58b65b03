"""Dot instructions as an action: a few steps of a sum are inside the instruction.

A leaf of kind "mma" on a CPU is neither a loop nor lanes: its steps lie side by side in one lane of
32 bits, a *group*. A sum of products takes a group of each factor in one instruction; a copy packs
groups where the steps are apart. The leaf does not change what a statement means, only what one
execution of it does.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from treadle.ir import index, ops
from treadle.ir.dots import DOTS, Dot
from treadle.ir.dtype import DType
from treadle.ir.node import Node
from treadle.kernel.kernel import Kernel, Leaf, ScheduleError, Stmt


@dataclass(frozen=True)
class Inside:
    """Takes the steps of a leaf into one instruction: products that a statement sums, or elements
    that a copy packs."""

    statement: str
    leaf: str

    def __str__(self) -> str:
        return f"mma {self.statement}: {self.leaf}"

    def __call__(self, kernel: Kernel) -> Kernel:
        if kernel.target.kind != "cpu":
            raise ScheduleError(f"{kernel.target.name} takes three leaves of a product: m, n, k")
        statement, leaf = kernel.statement(self.statement), kernel.leaf(self.leaf)
        if leaf.name not in statement.order:
            raise ScheduleError(f"{leaf.name} is no leaf of {self.statement}")
        if leaf.kind != "loop":
            raise ScheduleError(f"{leaf.name} is {leaf.kind} already")
        if kernel.step(leaf.name) != 1:
            raise ScheduleError(f"{leaf.name} is not the innermost part of its range")
        if any(leaf.name in s.order and s is not statement for s in kernel.statements):
            raise ScheduleError(f"{leaf.name} is a loop of other statements too")
        owner = kernel.range_of[leaf.name]
        if not isinstance(owner.extent, int) or owner.tail != "peel":
            raise ScheduleError(
                f"how many points {owner.name} has is not known, and the last group may be partial"
            )
        if statement.monoid is None and not statement.is_store:
            _require_groups(kernel, statement, leaf)
        else:
            _require_products(kernel, statement, leaf)
        return kernel.with_leaves(replace(leaf, kind="mma")).arranged()


def _require_groups(kernel: Kernel, statement: Stmt, leaf: Leaf) -> None:
    """The copy writes memory that lies in groups along this leaf."""
    target = statement.targets[0]
    axis, size = kernel.scratch[target.arg[0]].group or (None, 0)
    if axis is None or size != leaf.extent:
        raise ScheduleError(f"{target.arg[0]} is not staged in groups of {leaf.extent}")
    if index.mod(kernel.over_leaves(statement.index[axis]), size) is not leaf.node:
        raise ScheduleError(f"the groups of {target.arg[0]} do not begin with {leaf.name}")


def _require_products(kernel: Kernel, statement: Stmt, leaf: Leaf) -> None:
    dot = dot_for(kernel, statement)
    if dot is None:
        raise ScheduleError(
            f"{statement.name} sums no products for which {kernel.target.name} has an instruction"
        )
    if leaf.name not in statement.reduced or leaf.name in statement.partial:
        raise ScheduleError(f"{statement.name} does not sum over {leaf.name}")
    if leaf.extent != dot.size:
        raise ScheduleError(f"the instruction takes {dot.size} products, not {leaf.extent}")


def dot_for(kernel: Kernel, statement: Stmt) -> Dot | None:
    """The instruction of the target that sums the products of a statement, if there is one: that
    which takes the factors as they are, or one that takes them widened."""
    value = statement.values[0]
    if statement.monoid != "add" or value.op is not ops.MUL:
        return None
    narrow = tuple(factor.src[0].dtype for factor in value.src if factor.op is ops.CAST)
    found = [
        dot
        for dot in DOTS
        if dot.feature in kernel.target.intrinsics and value.dtype is dot.total and len(narrow) == 2
    ]
    for dot in found:
        if narrow in (dot.factors, dot.factors[::-1]):
            return dot
    return next((dot for dot in found if all(map(_holds, dot.factors, narrow))), None)


def _holds(wide: DType, narrow: DType) -> bool:
    """Whether an integer dtype has every value of another."""
    if wide.is_float or narrow.kind not in "iu":
        return False
    return wide.min <= narrow.min and narrow.max <= wide.max


def narrow_factors(dot: Dot, value: Node) -> tuple[Node, Node]:
    """The factors of a product as the instruction takes them: not wider, in its order."""
    a, b = (factor.src[0] for factor in value.src)
    if (b.dtype, a.dtype) == dot.factors:
        a, b = b, a
    one, two = (
        factor if factor.dtype is dtype else Node(ops.CAST, dtype, (factor,))
        for factor, dtype in zip((a, b), dot.factors)
    )
    return one, two
