"""Squares that are turned on the way: a copy that reads along one leaf and writes along another.

Without it, what lies apart in one of the two is read or written element by element.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from treadle.kernel.actions import unroll, vector
from treadle.kernel.kernel import Kernel, ScheduleError, exact


@dataclass(frozen=True)
class Transpose:
    """Copies squares: vectors along `read`, one for each step of `write`, are turned into vectors
    along `write`, one for each step of `read`."""

    statement: str
    write: str
    read: str

    def __str__(self) -> str:
        return f"transpose {self.statement}: {self.write}, {self.read}"

    def __call__(self, kernel: Kernel) -> Kernel:
        statement = kernel.statement(self.statement)
        if statement.monoid is not None or statement.is_store:
            raise ScheduleError(f"{self.statement} is no copy to scratch memory")
        if "shuffle" not in kernel.target.intrinsics:
            raise ScheduleError(f"{kernel.target.name} does not shuffle vectors")
        leaves = [kernel.leaf(name) for name in (self.write, self.read)]
        if leaves[0].extent != leaves[1].extent:
            raise ScheduleError(f"{self.write} and {self.read} are no square")
        for leaf in leaves:
            owner = kernel.range_of[leaf.name]
            if leaf.name not in statement.order:
                raise ScheduleError(f"{leaf.name} is no leaf of {self.statement}")
            if not exact(kernel, owner):
                raise ScheduleError(f"the squares along {owner.name} are not all whole")
        kernel = vector(self.read)(unroll(self.write)(kernel))
        statement = kernel.statement(self.statement)
        order = [name for name in statement.order if kernel.leaves[name].kind == "unroll"]
        if order[-1] != self.write:
            raise ScheduleError(f"{order[-1]} is inside of {self.write}")
        return kernel.with_statement(replace(statement, turned=self.write))
