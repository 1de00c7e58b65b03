"""See what runs: `explain(tensor)` before, the knob DEBUG while.

Each level of DEBUG adds to the one before:

    1  a line per program         4  each kernel as it is scheduled
    2  a line per kernel          5  the source given to the compiler
    3  why each array is stored   6  the graph before scheduling
"""

from __future__ import annotations

import sys
from typing import Any

from treadle import config, events, extras
from treadle.engine import realize as engine
from treadle.engine import tuned
from treadle.engine.cell import Cell
from treadle.engine.estimate import Estimate, estimate, total_of
from treadle.engine.program import Phase, Program, Step
from treadle.ir import text
from treadle.ir.node import Node, toposort
from treadle.schedule.plan import Call, Loop


def explain(*tensors: Cell, source: bool = False) -> str:
    """What computing these tensors would run, as text; nothing is run.

    Per kernel: why it ends where it does, what it loads, stores and computes, its node and the
    schedule, with who chose it; with `source`, the code given to the compiler too. Then
    the memory of the whole.

    >>> x = Tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> print(explain((x - x.mean()) * 2).splitlines()[0])
    1 kernels (1 distinct) in 1 phases; 2 arrays, 0 bytes of temporaries
    """
    for tensor in tensors:
        if not isinstance(tensor, Cell):
            raise TypeError(f"explain takes tensors, not {tensor!r}")
    programs = engine.prepare(tensors)
    if not programs:
        return "nothing to run: the values are in memory"
    return "\n\n".join(_program_text(program, source) for program in programs)


def _program_text(program: Program, source: bool) -> str:
    schedule = program.schedule
    lines = [_summary(program)]
    for number, call in enumerate(schedule.calls()):
        lines += ["", f"kernel {number}: {counts(estimate(call.kernel, known_sizes(call)))}"]
        lines += [f"  because {reason}" for reason in call.reasons]
        target = program.backend.target
        lowered = tuned.lower(call.kernel, target, f"kernel{number}", call.unchanging)
        lines += _indented(_kernel_text(call.kernel, lowered))
        if source:
            lines += _indented(program.backend.render(lowered.functions))
    return "\n".join(lines)


def _kernel_text(sink: Node, lowered: Any) -> str:
    """A kernel as a node, its schedule as actions, and the loops that they make."""
    words = map(str, (*lowered.actions, lowered.kernel))
    return text.show(sink) + f"schedule:\n# {lowered.origin}\n" + "\n".join(words)


def _summary(program: Program) -> str:
    schedule = program.schedule
    calls = list(schedule.calls())
    loops = sum(isinstance(item, Loop) for item in schedule.items)
    distinct = len({call.kernel for call in calls})
    phases = len({call.phase for call in calls})
    return (
        f"{len(calls)} kernels ({distinct} distinct) in {phases} phases"
        + (f" and {loops} loops" if loops else "")
        + f"; {len(schedule.buffers)} arrays, {schedule.arena:,} bytes of temporaries"
    )


def known_sizes(call: Call) -> dict[str, int]:
    """The sizes that the schedule itself gave to a call's variables, and the greatest value of
    those that the user binds."""
    sizes = {
        node.arg[0]: node.arg[2]
        for node in toposort(call.kernel, into_args=True)
        if node.op.name == "variable"
    }
    return sizes | {name: size for name, size in call.variables.items() if isinstance(size, int)}


def counts(what: Estimate) -> str:
    """Bytes and operations in readable units."""
    return (
        f"{what.loads:,} loads, {what.stores:,} stores, {what.bytes / 1e6:.3f} MB, "
        f"{what.operations / 1e6:.3f} Mop"
    )


def _indented(block: str) -> list[str]:
    return [f"    {line}" for line in block.splitlines()]


# ---- the ladder of DEBUG -------------------------------------------------------------------------
def _write(line: str) -> None:
    print(line, file=sys.stderr)


def _on_run(data: dict[str, Any]) -> None:
    program: Program = data["program"]
    if config.DEBUG.value >= 1:
        total = sum(data["seconds"]) * 1e3
        _write(f"run on {program.backend.target.name}: {_summary(program)}; {total:.3f} ms")
    if config.DEBUG.value >= 2:
        number = 0
        for step, seconds in zip(data["steps"], data["seconds"], strict=True):
            calls = step_calls(step)
            parts = [estimate(call.kernel, known_sizes(call)) for call in calls]
            what = total_of(parts)
            gigabytes, gigaops = (n / seconds / 1e9 for n in (what.bytes, what.operations))
            last = f"-{number + len(calls) - 1}" if len(calls) > 1 else ""
            _write(
                f"  kernel {number}{last}: {seconds * 1e6:.1f} us  {counts(what)}  "
                f"{gigabytes:.1f} GB/s  {gigaops:.1f} Gop/s"
            )
            number += len(calls)


def step_calls(step: Step) -> list[Call]:
    """The calls of a step, once each (a loop's are counted once)."""
    if isinstance(step, Phase):
        return list(step.calls)
    return [call for inner in step.steps for call in step_calls(inner)]


def _on_schedule(data: dict[str, Any]) -> None:
    schedule = data["schedule"]
    if config.DEBUG.value >= 6:
        _write("graph:\n" + text.show(data["roots"]))
    if config.DEBUG.value >= 3:
        for number, call in enumerate(schedule.calls()):
            for reason in call.reasons:
                _write(f"  kernel {number}: because {reason}")


def _on_compile(data: dict[str, Any]) -> None:
    if config.DEBUG.value >= 2:
        _write(
            f"compiled {data['kernels']} kernels: {data['lines']} lines, "
            f"{data['build_seconds'] * 1e3:.1f} ms to build, "
            f"{data['code_seconds'] * 1e3:.1f} ms to generate code"
        )
    if config.DEBUG.value >= 4:
        for sink, lowered in zip(data["sinks"], data["lowered"], strict=True):
            _write(_kernel_text(sink, lowered))
    if config.DEBUG.value >= 5:
        _write(data["source"])


def _on_trace(data: dict[str, Any]) -> None:
    if config.DEBUG.value >= 1:
        again = f" again: {data['reason']}" if data["reason"] else ""
        _write(f"trace {data['function']}{again}")


def _on_memory(data: dict[str, Any]) -> None:
    if config.DEBUG.value >= 1:
        _write(f"memory {data['function']}: {data['memory']}")


LISTENERS = {
    "run": _on_run,
    "schedule": _on_schedule,
    "compile": _on_compile,
    "trace": _on_trace,
    "memory": _on_memory,
}


for event, listener in LISTENERS.items():
    events.listeners.setdefault(event, []).append(listener)
if config.RECORD.value:
    events.listeners["schedule"].append(extras.load("treadle.tools.replay.record").on_schedule)
