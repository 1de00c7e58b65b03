"""The whole of this floor in one call: from a kernel node to functions for a target."""

from __future__ import annotations

from dataclasses import dataclass

from treadle.backend.base import Function, Target
from treadle.ir import index
from treadle.ir.node import Node
from treadle.kernel.actions import Action
from treadle.kernel.build import build
from treadle.kernel.heuristic import schedule
from treadle.kernel.kernel import Extent, Kernel
from treadle.kernel.layout import root_buffers
from treadle.kernel.lower import lower as lower_kernel


@dataclass(frozen=True)
class Lowered:
    """The functions of a kernel, to be called in order.

    chunks: per function, into how many pieces its tasks are worth cutting (1: run it alone; 0: as
    many as there are tasks). scratch: the bytes of each buffer that the caller provides; they are
    the ARG parameters at the positions after the kernel's own buffers. kernel, actions: what was
    scheduled and how, to show.
    """

    functions: tuple[Function, ...]
    chunks: tuple[int, ...]
    scratch: tuple[Extent, ...]
    kernel: Kernel
    actions: tuple[Action, ...]


def lower(sink: Node, target: Target, name: str) -> Lowered:
    """A kernel node, scheduled by the heuristic, as functions called `name`, or `name_0`, ..."""
    plan = schedule(build(sink, target), target)
    functions = tuple(lower_kernel(plan.kernel, name))
    scratch = tuple(
        index.dim(index.mul(node.shape[0], node.dtype.itemsize))
        for node in root_buffers(plan.kernel).values()
    )
    chunks = tuple(1 if f.tasks == 1 else 0 for f in functions)
    return Lowered(functions, chunks, scratch, plan.kernel, tuple(plan.actions))
