"""Random schedules: actions whose operands are names of the kernel as it is by then.

Nothing here knows what is legal. `pick(choices)` is one of a sequence: of a seeded generator, or
drawn by hypothesis.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from treadle.kernel.actions import Action, Fuse, Hint, Kind, Place, Prefetch, Reorder, Split, Tail
from treadle.kernel.bound import Bound
from treadle.kernel.cooperate import Cooperate, CooperateTasks
from treadle.kernel.dot import Inside
from treadle.kernel.join import Join
from treadle.kernel.kernel import TAILS, Kernel, ScheduleError, Stmt, loads
from treadle.kernel.layout import ROOT
from treadle.kernel.mma import Mma
from treadle.kernel.pad import Pad
from treadle.kernel.retile import Detach, Fission, StageStore, Subtotal
from treadle.kernel.sieve import Sieve
from treadle.kernel.stage import Keep, Stage, stage_name
from treadle.kernel.transpose import Transpose
from treadle.kernel.trim import Trim

Pick = Callable[[Sequence[Any]], Any]
SIZES = (2, 3, 4, 5, 8, 16, 1)


class Choices:
    """What an action of a kernel may name."""

    def __init__(self, kernel: Kernel, pick: Pick) -> None:
        self.kernel = kernel
        self.pick = pick

    @property
    def statement(self) -> Stmt:
        """A statement."""
        return self.pick(self.kernel.statements)

    @property
    def leaf(self) -> str:
        """A leaf of some statement, or one that stands in none."""
        return self.pick([*self.kernel.leaves] or ["i"])

    def leaves(self, most: int) -> tuple[str, ...]:
        """Some leaves of one statement, in any order."""
        order = list(self.statement.order) or [self.leaf]
        count = self.pick(range(1, most + 1))
        found = []
        while order and len(found) < count:
            found.append(order.pop(self.pick(range(len(order)))))
        return tuple(found)

    @property
    def fresh(self) -> str:
        """A name that nothing has, nor begins another."""
        taken = {*self.kernel.leaves, *self.kernel.ranges, *self.kernel.scratch}
        number = 0
        while any(name.startswith(f"q{number}_") for name in taken):
            number += 1
        return f"q{number}_"

    # ---- actions ---------------------------------------------------------------------------------
    def split(self) -> Action:
        name = self.fresh
        parts = range(self.pick((1, 1, 2)))
        return Split(
            self.leaf, f"{name}o", tuple((f"{name}{'uvw'[n]}", self.pick(SIZES)) for n in parts)
        )

    def fuse(self) -> Action:
        order = self.statement.order
        first = self.pick(range(max(1, len(order))))
        return Fuse(tuple(order[first : first + self.pick((2, 3))]), self.fresh)

    def stage(self) -> Action:
        found = loads(self.statement)
        if not found:
            raise ScheduleError("it reads nothing")
        load = self.pick(found)
        axes = list(range(load.arg))
        layout = tuple(axes.pop(self.pick(range(len(axes)))) for _ in range(load.arg))
        at = self.pick([*self.statement.order, ROOT])
        scope = ROOT if at == ROOT else self.pick(("thread", "thread", ROOT))
        group = (self.pick(range(load.arg)), self.pick((2, 4))) if load.arg else None
        return Stage(
            stage_name(self.kernel, load),
            at,
            self.fresh,
            scope,
            self.pick(((), layout)),
            block=self.pick((0, 0, 4)),
            group=self.pick((None, None, group)),
            cast=self.pick(("", "", "float32", "int32")),
        )

    def prefetch(self) -> Action:
        buffer = f"arg{self.pick(range(4))}"
        return Prefetch(buffer, self.statement.name, self.leaf, self.pick((1, 4)))

    def place(self) -> Action:
        return Place(self.pick([*self.kernel.scratch] or ["x"]), self.pick(("root", "thread")))

    def kind(self, kind: str) -> Action:
        return Kind(kind, self.leaves(1 if kind == "vector" else 2))


VERBS: Mapping[str, Callable[[Choices], Action]] = {
    "split": Choices.split,
    "fuse": Choices.fuse,
    "join": lambda c: Join((c.leaf, c.leaf)),
    "reorder": lambda c: Reorder(c.leaves(3)),
    "grid": lambda c: c.kind("grid"),
    "unroll": lambda c: c.kind("unroll"),
    "vector": lambda c: c.kind("vector"),
    "tail": lambda c: Tail(c.leaf, c.pick(TAILS)),
    "hint": lambda c: Hint(c.statement.name, "nontemporal"),
    "place": Choices.place,
    "prefetch": Choices.prefetch,
    "cooperate": lambda c: Cooperate(c.leaf),
    "cooperate tasks": lambda c: CooperateTasks(c.leaf, c.fresh),
    "stage": Choices.stage,
    "stage store": lambda c: StageStore(c.statement.name, c.leaf, c.fresh),
    "keep": lambda c: Keep(c.statement.name, c.fresh),
    "detach": lambda c: Detach(c.statement.name, c.leaf, c.fresh),
    "fission": lambda c: Fission(c.statement.name, c.leaf, c.fresh),
    "subtotal": lambda c: Subtotal(c.statement.name, c.leaf),
    "bound": lambda c: Bound(c.leaf, c.leaf, c.pick((1, 2, 4))),
    "trim": lambda c: Trim(c.leaf),
    "mma": lambda c: Inside(c.statement.name, c.leaf),
    "mma of tiles": lambda c: Mma(c.statement.name, (c.leaf, c.leaf, c.leaf)),
    "pad": lambda c: Pad(c.leaf, c.pick(SIZES)),
    "transpose": lambda c: Transpose(c.statement.name, c.leaf, c.leaf),
    "sieve": lambda c: Sieve(c.leaf, c.leaf),
}
USUAL = ("split", "split", "unroll", "vector", "stage", "detach", "tail", "reorder", "grid")


def extended(
    kernel: Kernel, pick: Pick, most: int, actions: Sequence[Action] = ()
) -> tuple[Kernel, list[Action]]:
    """The kernel after as many random actions as are legal of `most`, and all actions. actions:
    those that led to it."""
    done = list(actions)
    verbs = [*VERBS, *USUAL * 2]
    for _ in range(most):
        try:
            action = VERBS[pick(verbs)](Choices(kernel, pick))
        except ScheduleError:
            continue
        done.append(action)
        try:
            kernel = action(kernel)
        except ScheduleError:
            done.pop()
        except Exception as error:
            error.add_note("after\n" + "\n".join(map(str, done)))
            raise
    return kernel, done
