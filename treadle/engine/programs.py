"""The Programs of this process: found by the normal form of a graph, or made now.

A graph is simplified and scheduled (`PASSES`), its kernels are compiled, and the Program is kept.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from treadle import config
from treadle.backend.base import Target
from treadle.engine import device as devices
from treadle.engine.compile import Compiler
from treadle.engine.normal import Normal
from treadle.engine.program import Program
from treadle.events import emit, wanted
from treadle.graph import simplify
from treadle.ir import ops, passes
from treadle.ir.node import Node, toposort
from treadle.ir.passes import Pass
from treadle.schedule.schedule import schedule as make_schedule

MOST = 512  # kept Programs; the one used longest ago goes first

kept: OrderedDict[Any, Program] = OrderedDict()
compilers: dict[str, Compiler] = {}


@dataclass
class Order:
    """What a schedule is made for: the assigns, the target; and the roots once they are simple."""

    assigns: dict[int, int]
    target: Target
    roots: Sequence[Node] = ()


def _simplify(roots: Sequence[Node], order: Order) -> Sequence[Node]:
    order.roots = simplify.simplify(roots)
    return order.roots


PASSES = (
    Pass(
        "simplify",
        _simplify,
        "graph",
        "graph",
        "the rules of graph/simplify.py, until none applies",
    ),
    Pass(
        "schedule",
        lambda roots, order: make_schedule(roots, order.assigns, order.target),
        "graph",
        "schedule",
        "what is stored, what is fused, in which order, in which memory",
    ),
)  # a kernel's own passes: kernel/pipeline.py


def find(
    device: str,
    normal: Normal,
    assigns: dict[int, int],
    unchanging: frozenset[int] = frozenset(),
) -> Program:
    """The Program for a normal graph: from the cache, or scheduled and compiled now. unchanging:
    the leaves that hold the same at every call, so that what is made of them alone is made once."""
    key = (device, normal.roots, tuple(assigns.items()), unchanging, config.code_settings())
    program = kept.get(key)
    if program is not None:
        kept.move_to_end(key)
        return program
    program = build(device, normal.roots, assigns, unchanging)
    kept[key] = program
    if len(kept) > MOST:
        kept.popitem(last=False)
    return program


def multiplies(kernel: Node) -> bool:
    """Whether a kernel sums products: a factor that never changes may be packed once."""
    sums = (node for node in toposort(kernel) if node.op is ops.KREDUCE)
    return any(value.op is ops.MUL for node in sums for value in node.src[: node.arg[1]])


def build(
    device: str, roots: tuple[Node, ...], assigns: dict[int, int], unchanging: frozenset[int]
) -> Program:
    """Simplify, schedule, compile."""
    backend = devices.backend(device)
    if device not in compilers:
        compilers[device] = Compiler(backend, devices.PLUGINS[device])
    order = Order(assigns, backend.target)
    schedule = passes.run(PASSES, roots, order)
    for call in schedule.calls():
        if unchanging and multiplies(call.kernel):  # others are the same kernels as elsewhere
            places = enumerate(call.buffers)
            call.unchanging = frozenset(n for n, buffer in places if buffer in unchanging)
    if wanted("schedule"):
        emit(
            "schedule",
            schedule=schedule,
            roots=order.roots,
            device=device,
            given=roots,
            assigns=assigns,
        )
    return Program(schedule, backend, compilers[device], devices.runner(device).builder)
