"""A kernel in the making: what the families of the heuristic share."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

from treadle.backend.base import Target
from treadle.kernel.actions import Action, serial_leaves
from treadle.kernel.analysis import Facts, points
from treadle.kernel.kernel import Kernel, ScheduleError, Stmt
from treadle.kernel.layout import layouts
from treadle.kernel.stage import Stage

SERIAL_WORK = 20_000  # additions below which a kernel is one task
TASK_MEMORY = 1 << 20  # bytes of scratch on the stack of a thread, at most
TASK_WORK = 32_768  # additions that a task should have
FEW_TASKS = 8  # tasks below which a kernel is cut finer: never a matter of the threads there are


class Plan:
    """A kernel being scheduled, and the actions so far. unchanging: the positions of buffers that
    hold the same at every call: packing them costs nothing, for it is done once."""

    def __init__(
        self, kernel: Kernel, target: Target, unchanging: frozenset[int] = frozenset()
    ) -> None:
        self.kernel = kernel
        self.target = target
        self.unchanging = unchanging
        self.actions: list[Action] = []
        self.note_facts()

    def do(self, action: Action) -> None:
        """Applies an action and notes it."""
        self.kernel = action(self.kernel)
        self.actions.append(action)

    def attempt(self, choose: Callable[[], None]) -> bool:
        """Chooses actions, and takes them back if one does not apply. Whether all did."""
        before = self.kernel, list(self.actions)
        try:
            choose()
        except ScheduleError:
            self.kernel, self.actions = before
            return False
        return True

    def note_facts(self) -> None:
        """Looks at the statements anew: after ranges were merged, before they are split."""
        self.facts = {s.name: Facts(self.kernel, s) for s in self.kernel.statements}
        self.__dict__.pop("serial", None)

    def fits(self, stage: Stage, room: int = TASK_MEMORY // 2) -> bool:
        """Whether something can be staged in so many bytes; half of a task's memory leaves room for
        more."""
        try:
            staged = stage(self.kernel)
            size = layouts(staged)[stage.name].size
        except ScheduleError:
            return False
        width = staged.scratch[stage.name].node.dtype.itemsize
        return isinstance(size, int) and size * width <= room

    @cached_property
    def serial(self) -> frozenset[str]:
        """Leaves whose order is part of a scatter's meaning."""
        found: frozenset[str] = frozenset()
        for statement in self.kernel.statements:
            found |= serial_leaves(self.kernel, statement)
        return found

    def users(self, leaf: str) -> list[Stmt]:
        """The statements that run under a leaf."""
        return [s for s in self.kernel.statements if leaf in s.order]

    def reduced(self, leaf: str) -> bool:
        """Whether some statement reduces over a leaf."""
        return any(leaf in s.reduced for s in self.kernel.statements)

    def unrolled(self, statement: Stmt) -> tuple[str, ...]:
        """The leaves of a statement that are written out already."""
        return tuple(n for n in statement.order if self.kernel.leaves[n].kind == "unroll")

    def work(self) -> int:
        """Additions of the whole kernel."""
        return sum(
            points(self.kernel, s.order) * self.facts[s.name].cost for s in self.kernel.statements
        )
