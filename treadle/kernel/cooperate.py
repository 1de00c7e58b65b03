"""Reductions by several workers: partial accumulators in registers, and partial results of tasks.

How a reduction is cut is part of the schedule, never of the number of threads, so a result is the
same from run to run and on every machine with the same schedule.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from treadle.ir import ops
from treadle.ir.node import Node
from treadle.kernel.actions import legal, require_new_ranges
from treadle.kernel.kernel import Kernel, Leaf, Range, ScheduleError, Scratch, Stmt, scratch_reads


@dataclass(frozen=True)
class Cooperate:
    """Lets an unrolled, reduced leaf keep an accumulator per step, folded when the reduction
    closes: independent chains of additions (lanes of a vector always do)."""

    leaf: str

    def __str__(self) -> str:
        return f"cooperate {self.leaf}"

    def __call__(self, kernel: Kernel) -> Kernel:
        leaf = kernel.leaf(self.leaf)
        readers = [s for s in kernel.statements if self.leaf in s.reduced]
        if not readers:
            raise ScheduleError(f"no statement reduces over {self.leaf}")
        if leaf.kind != "unroll":
            raise ScheduleError(
                f"{self.leaf} is {leaf.kind}: partial accumulators need it unrolled"
            )
        for statement in readers:
            kernel = kernel.with_statement(
                replace(statement, partial=statement.partial | {self.leaf})
            )
        return kernel


@dataclass(frozen=True)
class CooperateTasks:
    """Makes tasks of a reduced leaf: each task reduces its part into one place of a buffer that the
    whole kernel shares, and a second phase reduces over that buffer. `again` names the leaf over
    which it does. Right for reductions with too few results to keep the threads busy."""

    leaf: str
    again: str

    def __str__(self) -> str:
        return f"cooperate {self.leaf} tasks {self.again}"

    def __call__(self, kernel: Kernel) -> Kernel:
        leaf = kernel.leaf(self.leaf)
        require_new_ranges(kernel, [self.again])
        self._check(kernel, leaf)
        number = next(kernel.fresh_numbers())
        again = Leaf(self.again, leaf.extent, number)
        scratch = dict(kernel.scratch)
        statements: list[Stmt] = []
        pending: list[Stmt] = []  # second halves, before the first statement that reads them
        for statement in kernel.statements:
            names = {target.arg[0] for s in pending for target in s.targets}
            if pending and (scratch_reads(statement) & names or self.leaf not in statement.order):
                statements += pending
                pending = []
            if self.leaf in statement.reduced:
                first, second = self._halves(statement, leaf, again, scratch)
                statements.append(first)
                pending.append(second)
            else:
                statements.append(statement)
        statements += pending
        for name in self._left(statements):  # the next phase reads it
            scratch[name] = replace(scratch[name], scope="root")
        owner = Range(self.again, leaf.extent, number, (self.again,), again.node)
        kernel = replace(
            kernel,
            statements=tuple(statements),
            leaves={**kernel.leaves, self.leaf: replace(leaf, kind="grid"), self.again: again},
            ranges={**kernel.ranges, self.again: owner},
            scratch=scratch,
        )
        return legal(kernel.arranged())

    def _left(self, statements: Sequence[Stmt]) -> set[str]:
        """What is written inside the tasks and read after them."""
        inside = [s for s in statements if self.leaf in s.order]
        outside = [s for s in statements if self.leaf not in s.order]
        written = {t.arg[0] for s in inside if not s.is_store for t in s.targets}
        return written & {name for s in outside for name in scratch_reads(s)}

    def _check(self, kernel: Kernel, leaf: Leaf) -> None:
        if not any(self.leaf in s.reduced for s in kernel.statements):
            raise ScheduleError(f"no statement reduces over {self.leaf}")
        if leaf.kind != "loop":
            raise ScheduleError(f"{self.leaf} is {leaf.kind} already")
        for statement in kernel.statements:
            if self.leaf in statement.order and statement.order[0] != self.leaf:
                outside = statement.order[0]
                if kernel.leaves[outside].kind != "grid":
                    raise ScheduleError(
                        f"{self.leaf} is inside {outside} in {statement.name}: put it outermost"
                    )

    def _halves(
        self, statement: Stmt, leaf: Leaf, again: Leaf, scratch: dict[str, Scratch]
    ) -> tuple[Stmt, Stmt]:
        """The reduction within a task, and the one over the tasks."""
        parts: list[Node] = []
        loads: list[Node] = []
        for target in statement.targets:
            name = f"{target.arg[0]}_tasks"
            if name in scratch:
                raise ScheduleError(f"{statement.name} has been cut in tasks already")
            shape = (leaf.extent, *target.shape)
            part = Node(ops.ARG, target.dtype, (), (name, shape))
            scratch[name] = Scratch(name, part, scope="root")
            parts.append(part)
            place = (again.node, *statement.index)
            loads.append(Node(ops.LOAD, target.dtype, (part, *place), len(place)))
        reduced = statement.reduced - {self.leaf}
        first = replace(
            statement,
            name=f"{statement.name}_tasks",
            targets=tuple(parts),
            index=(leaf.node, *statement.index),
            monoid=statement.monoid if reduced else None,
            reduced=reduced,
        )
        kept = tuple(name for name in statement.order if name not in statement.reduced)
        second = replace(
            statement,
            values=tuple(loads),
            order=(*kept, self.again),
            reduced=frozenset((self.again,)),
            partial=frozenset(),
        )
        return first, second
