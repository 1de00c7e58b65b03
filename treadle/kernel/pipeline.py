"""The passes of this floor, from a kernel node to functions for a target."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from treadle import config
from treadle.backend.base import Function, Target
from treadle.ir import index, passes
from treadle.ir.node import Node
from treadle.ir.passes import Pass
from treadle.kernel.actions import Action, apply, grid
from treadle.kernel.build import build
from treadle.kernel.heuristic import WAYS, Way, schedule
from treadle.kernel.kernel import Extent, Kernel, ScheduleError
from treadle.kernel.layout import root_buffers
from treadle.kernel.lower import lower as lower_kernel
from treadle.kernel.plan import Plan
from treadle.kernel.schedule_text import parse_actions

__all__ = ["PASSES", "Context", "Lowered", "ScheduleError", "lower"]


@dataclass
class Context:
    """For whom a kernel is lowered, what its functions are called, and the plan once it is made.

    written: a schedule that is to be followed, and the ranges that vmap added around it: the arg of
    its SINK where the user wrote one, or what a search found. unchanging: the positions of buffers
    that hold the same at every call. way: how the heuristic chooses, one of its `WAYS`. refused:
    why its first list does not do.
    """

    target: Target
    name: str
    written: tuple[str, tuple[int, ...]] | None = None
    unchanging: frozenset[int] = frozenset()
    way: Way = WAYS[0]
    refused: str = ""
    plan: Plan | None = None


@dataclass(frozen=True)
class Lowered:
    """The functions of a kernel, to be called in order.

    chunks: per function, into how many pieces its tasks are worth cutting (1: run it alone; 0: as
    many as there are tasks). scratch: the bytes of each buffer that the caller provides; they are
    the ARG parameters at the positions after the kernel's own buffers. kernel, actions, origin:
    what was scheduled, how, and who said so, to show.
    """

    functions: tuple[Function, ...]
    chunks: tuple[int, ...]
    scratch: tuple[Extent, ...]
    kernel: Kernel
    actions: tuple[Action, ...]
    origin: str = "by the heuristic"


def _schedule(kernel: Kernel, context: Context) -> Kernel:
    if context.written is None:
        context.plan = schedule(kernel, context.target, context.way, context.unchanging)
    else:
        context.plan = _follow(kernel, context.target, *context.written)
    return context.plan.kernel


def _follow(kernel: Kernel, target: Target, written: str, batch: tuple[int, ...]) -> Plan:
    """The kernel after the actions of a written schedule. What vmap added are tasks around them."""
    actions = parse_actions(written)
    names = [leaf.name for leaf in kernel.leaves.values() if leaf.number in batch]
    if names:
        actions.insert(0, grid(*names))
    plan = Plan(kernel, target)
    plan.kernel, plan.actions = apply(kernel, actions), actions
    return plan


PASSES = (
    Pass(
        "build",
        lambda sink, context: build(sink, context.target),
        "kernel",
        "statements",
        "one statement per reduction and store, under the loops they share",
    ),
    Pass(
        "schedule",
        _schedule,
        "statements",
        "statements",
        "the actions written or found, or the heuristic's: tiles, lanes, tasks, what is staged",
    ),
    Pass(
        "lower",
        lambda kernel, context: tuple(lower_kernel(kernel, context.name)),
        "statements",
        "functions",
        "loops, addresses and vectors, in the order of execution",
    ),
)


def lower(
    sink: Node,
    target: Target,
    name: str,
    found: str | None = None,
    unchanging: frozenset[int] = frozenset(),
) -> Lowered:
    """A kernel node, scheduled as its SINK says, or by the actions that a search found, or else by
    the heuristic, as functions called `name`, or `name_0`, ... unchanging: the positions of buffers
    that hold the same at every call. ScheduleError if actions do not apply that the heuristic did
    not choose (or those, too, with the knob VERIFY)."""
    context = Context(target, name, sink.arg if found is None else (found, ()), unchanging)
    functions = _run(sink, context, WAYS)
    assert context.plan is not None
    plan = context.plan
    scratch = tuple(
        index.dim(index.mul(node.shape[0], node.dtype.itemsize))
        for node in root_buffers(plan.kernel).values()
    )
    chunks = tuple(1 if f.tasks == 1 else 0 for f in functions)
    lowered = Lowered(functions, chunks, scratch, plan.kernel, tuple(plan.actions))
    if not context.refused:
        return lowered
    return replace(lowered, origin=f"by plain loops: the heuristic's do not do ({context.refused})")


def _run(sink: Node, context: Context, ways: Sequence[Way]) -> tuple[Function, ...]:
    """The functions of a kernel. A list of the heuristic's that is refused is no fault of the
    user's: the next of its ways is slower, and right."""
    context.way, *others = ways
    try:
        functions: tuple[Function, ...] = passes.run(PASSES, sink, context)
        return functions
    except ScheduleError as error:
        if context.written is not None or config.VERIFY or not others:
            raise
        context.refused = context.refused or str(error)
    return _run(sink, context, others)
