"""The lists of actions that are one step away from a list: with a step more, with a parameter
changed, with an action taken away.

Whether a list is legal is decided by the actions themselves: what raises `ScheduleError` is no
candidate. A step is an action together with those without which it is no good: lanes are a split
and a `vector`, a staged operand is copied by lanes too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, permutations

from treadle.engine.search.nearer import AHEAD
from treadle.engine.search.steps import OF_WHOLE_RANGES, STEPS
from treadle.kernel.actions import Action, Kind, Prefetch, Reorder, Split, Tail, apply
from treadle.kernel.analysis import upper
from treadle.kernel.kernel import TAILS, Kernel, ScheduleError
from treadle.kernel.layout import ROOT, layouts
from treadle.kernel.retile import Detach
from treadle.kernel.stage import Stage
from treadle.kernel.tree import require_within_phases

MOST_UNROLLED = 128  # points of a statement that are written out, lanes not counted
MOST_SCRATCH = 1 << 20  # bytes of a scratch buffer on a thread's stack


@dataclass(frozen=True)
class Candidate:
    """A list of actions, the kernel after it, and the step that led to it."""

    actions: tuple[Action, ...]
    kernel: Kernel
    step: str

    @property
    def text(self) -> str:
        """The list as text."""
        return "\n".join(map(str, self.actions))


def start(kernel: Kernel, actions: Iterable[Action]) -> Candidate:
    """A list to begin with. ScheduleError if it does not apply."""
    listed = tuple(actions)
    return Candidate(listed, _checked(apply(kernel, listed)), "start")


def neighbours(kernel: Kernel, candidate: Candidate) -> Iterator[Candidate]:
    """Every legal list one step away. kernel: as it is before any action."""
    actions = candidate.actions
    states = list(accumulate(actions, lambda state, action: action(state), initial=kernel))
    yield from _longer(states, candidate)
    for number, action in enumerate(actions):
        before, after = actions[:number], actions[number + 1 :]
        for other in _changed(action, candidate.kernel):
            made = _made(states[number], (other, *after), "change")
            if made is not None:
                yield replace(made, actions=(*before, *made.actions))
        made = _without(states[number], after)
        yield replace(made, actions=(*before, *made.actions))


def _longer(states: Sequence[Kernel], candidate: Candidate) -> Iterator[Candidate]:
    """One step more: at the end, and before the first action that fixes what a tile is; or at the
    beginning, for what needs whole ranges. states: the kernel before each action, and at the
    end."""
    actions = candidate.actions
    fixing = next((n for n, a in enumerate(actions) if isinstance(a, Stage | Detach)), len(actions))
    for position in sorted({0, fixing, len(actions)}):
        before, after = actions[:position], actions[position:]
        state = states[position]
        for name, step in STEPS.items():
            if (position == 0) != (name in OF_WHOLE_RANGES) and actions:
                continue
            for more in step(state):
                made = _made(state, (*more, *after), name)
                if made is not None:
                    yield replace(made, actions=(*before, *made.actions))


def _made(kernel: Kernel, actions: tuple[Action, ...], step: str) -> Candidate | None:
    try:
        return Candidate(actions, _checked(apply(kernel, actions)), step)
    except ScheduleError:
        return None


def _checked(kernel: Kernel) -> Kernel:
    """The kernel, if it can be lowered, its code is of a reasonable size, and its scratch memory
    fits a stack."""
    require_within_phases(kernel)
    for statement in kernel.statements:
        written = 1
        for name in statement.order:
            leaf = kernel.leaves[name]
            written *= leaf.extent if leaf.kind == "unroll" and isinstance(leaf.extent, int) else 1
        if written > MOST_UNROLLED:
            raise ScheduleError(f"{statement.name} would be written out {written} times")
    for name, layout in layouts(kernel).items():
        scratch = kernel.scratch[name]
        if (
            scratch.scope != ROOT
            and upper(layout.size) * scratch.node.dtype.itemsize > MOST_SCRATCH
        ):
            raise ScheduleError(f"{name} is too large for a stack")
    return kernel


def _without(state: Kernel, actions: Iterable[Action]) -> Candidate:
    """The later actions without the one before them, and without those that do not apply then."""
    left = []
    for action in actions:
        try:
            state = _checked(action(state))
        except ScheduleError:
            continue
        left.append(action)
    return Candidate(tuple(left), state, "remove")


# ---- changed parameters --------------------------------------------------------------------------
def _changed(action: Action, kernel: Kernel) -> Iterator[Action]:
    """The action with one of its parameters another."""
    match action:
        case Split():
            yield from _resized(action, kernel)
        case Kind(kind, leaves) if kind in ("unroll", "grid") and 1 < len(leaves) <= 4:
            for order in permutations(leaves):
                if order != leaves:
                    yield replace(action, leaves=order)
        case Kind(kind, leaves) if len(leaves) > 1:
            yield from (replace(action, leaves=rest) for rest in _one_less(leaves))
        case Reorder(leaves):
            for place in range(len(leaves) - 1):
                a, b = leaves[place : place + 2]
                yield Reorder((*leaves[:place], b, a, *leaves[place + 2 :]))
        case Prefetch():
            for ahead in AHEAD:
                if ahead != action.ahead:
                    yield replace(action, ahead=ahead)
        case Tail():
            yield from (Tail(action.leaf, how) for how in TAILS)
        case Stage() if action.at != ROOT:
            loops = (leaf.name for leaf in kernel.leaves.values() if leaf.kind in ("loop", "grid"))
            yield from (replace(action, at=name) for name in loops if name != action.at)


def _one_less(names: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    for place in range(len(names)):
        yield names[:place] + names[place + 1 :]


def _resized(action: Split, kernel: Kernel) -> Iterator[Action]:
    """Other sizes of one part: near ones, halves and doubles; powers of 2 where lanes are."""
    for place, (name, size) in enumerate(action.inner):
        leaf = kernel.leaves.get(name)
        if leaf is not None and leaf.kind == "vector":
            sizes = {size // 2, size * 2}
        elif size <= 16:
            sizes = {size - 2, size - 1, size + 1, size + 2, size // 2, size * 2}
        else:
            sizes = {size // 2, size * 2, size * 3 // 4, size * 3 // 2, *_divisors(action, kernel)}
        for other in sorted(sizes - {size}):
            if other >= 2:
                inner = (*action.inner[:place], (name, other), *action.inner[place + 1 :])
                yield replace(action, inner=inner)


def _divisors(action: Split, kernel: Kernel) -> set[int]:
    """Sizes near that of a part's which cut the range evenly."""
    ranges = [kernel.range_of[n] for n, _ in action.inner if n in kernel.leaves]
    if len(action.inner) != 1 or not ranges or not isinstance(ranges[0].extent, int):
        return set()
    extent, size = ranges[0].extent, action.inner[0][1]
    return {n for n in range(size // 2, size * 2) if n and extent % n == 0}
