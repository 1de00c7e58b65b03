"""`treadle repro FILE`: run a saved program pass by pass, and compare with the interpreter.

Each program of the file (see `saved.py`) goes through the passes that are left for it. What a pass
gives is evaluated by the interpreter of its stage on seeded inputs, and compared with the meaning
of the text itself; at last it is compiled and run. The first pass after which results differ is
the one to look at; of a schedule, also the first action.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from treadle import config
from treadle.backend.base import Function
from treadle.backend.interp.kernel import evaluate_kernel
from treadle.engine import device as devices
from treadle.engine import programs
from treadle.engine.estimate import estimate
from treadle.engine.normal import normalise
from treadle.ir import index, ops, passes, text
from treadle.ir.dtype import DType, to_compute
from treadle.ir.node import Node, toposort
from treadle.ir.passes import Pass
from treadle.kernel import pipeline
from treadle.kernel.interpret import interpret
from treadle.kernel.kernel import Kernel
from treadle.kernel.layout import root_buffers
from treadle.schedule.plan import Call
from treadle.tools import meanings, saved
from treadle.tools.meanings import Array, Given, TooLarge
from treadle.tools.saved import Saved

INFINITE = float("inf")
MOST_POINTS = 1 << 25  # of a kernel, for the interpreter of kernels
MOST_STAGED = 1 << 20  # of a kernel, for that of statements: it holds scratch for every iteration
MOST_STEPS = 1 << 22  # operations, for the interpreter of programs

KERNEL_PASSES = tuple(f"kernel.{each.name}" for each in pipeline.PASSES)
NAMES = (*(each.name for each in programs.PASSES), *KERNEL_PASSES, "compile", "program")
# what a program of each kind goes through
PATHS = {"graph": NAMES, "kernel": (*KERNEL_PASSES, "compile"), "function": ("compile",)}


@dataclass(frozen=True)
class Step:
    """What was found after a pass. apart: how far the results are from the meaning of the text,
    relative to `limit`, the most that the order of sums explains (above 1: wrong). note: what else
    there is to say, or why nothing could be compared."""

    name: str
    apart: float = 0.0
    note: str = ""

    @property
    def is_wrong(self) -> bool:
        """Whether the pass has changed what the program means."""
        return not self.apart <= 1

    def __str__(self) -> str:
        verdict = "WRONG" if self.is_wrong else "equal" if self.apart == 0 else "close"
        if not self.is_wrong and "not compared" in self.note:
            verdict = "?"
        return f"{self.name:<16} {verdict:<6} {self.note}".rstrip()


Steps = Iterator[Step]


class _Judge:
    """What the results should be. dtypes: of each result."""

    def __init__(self, expected: Sequence[Array], dtypes: Sequence[DType]) -> None:
        self.expected = list(expected)
        self.dtypes = list(dtypes)

    def step(self, name: str, run: Callable[[], Sequence[Array]], note: str = "") -> Step:
        """The verdict on the results of `run`."""
        try:
            got = run()
        except (TooLarge, MemoryError) as error:
            return Step(name, note=f"not compared: {error}")
        except (IndexError, ValueError) as error:
            return Step(name, INFINITE, f"{type(error).__name__}: {error}")
        worst, which = 0.0, 0
        for number, (value, want, dtype) in enumerate(zip(got, self.expected, self.dtypes)):
            relative = meanings.apart(np.asarray(value), want, meanings.tolerance(dtype))
            if relative > worst:
                worst, which = relative, number
        if worst > 1:
            what = difference(got[which], self.expected[which])
            return Step(name, worst, f"result {which} is {what}")
        return Step(name, worst, note)


def difference(got: Array, want: Array) -> str:
    """The first element that differs most, in words."""
    got, want = np.asarray(got), np.asarray(want)
    if got.shape != want.shape:
        return f"of shape {got.shape} instead of {want.shape}"
    with np.errstate(all="ignore"):
        distance = np.abs(got.astype(np.complex128) - want.astype(np.complex128))
    distance = np.where(np.isnan(distance), np.inf, distance)
    distance = np.where((got == want) | ((got != got) & (want != want)), 0, distance)
    at = np.unravel_index(int(distance.argmax()), got.shape)
    place = "".join(f"[{int(i)}]" for i in at)
    return f"{got[at]} instead of {want[at]} at {place or 'its one place'}"


# ---- graphs --------------------------------------------------------------------------------------
def check_graph(program: Saved, first: str, device: str) -> Steps:
    """A graph through the passes of the engine, its kernels through theirs, and the whole."""
    roots, assigns, inputs, expected = _prepared(program)
    judge = _Judge(expected, [root.dtype for root in roots])
    order = programs.Order(assigns, devices.backend(device).target, roots)
    value: Any = roots
    for each in programs.PASSES:
        if NAMES.index(each.name) < NAMES.index(first) and each.gives == "graph":
            continue  # the text is what it gave
        value = _passed(each, each.name, value, order)
        if each.gives == "graph":
            run = partial(meanings.of_graph, value, inputs)
            yield judge.step(each.name, run, f"{len(toposort(value))} nodes")
    kernels: dict[Node, Given] = {}

    def watch(call: Call, given: Given) -> None:
        _refuse_large(call.kernel, given)
        if call.kernel not in kernels:
            copies = given.copies()
            kernels[call.kernel] = Given(copies, given.scalars, given.bits, given.variables)

    calls = len(list(value.calls()))
    run = partial(meanings.of_schedule, value, roots, inputs, watch)
    yield judge.step("schedule", run, f"{calls} calls")
    for number, (kernel, given) in enumerate(kernels.items()):
        for step in check_kernel(kernel, given, first, device):
            where = f"kernel {number}" + (f", {step.note}" if step.note else "")
            yield Step(step.name, step.apart, where)
    run = partial(meanings.of_program, value, roots, inputs, device)
    yield judge.step("program", run, f"on {device}")


class PassFailed(Exception):
    """A pass that raised, or broke the law of what it gives. name: of the pass."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(why)
        self.name = name


def _passed(each: Pass, name: str, value: Any, context: Any) -> Any:
    """What one pass gives, with its law checked. PassFailed if it gives nothing that is lawful."""
    try:
        with config.VERIFY.set(1):
            return passes.run([each], value, context)
    except Exception as error:
        raise PassFailed(name, f"{type(error).__name__}: {error}") from error


def _prepared(
    program: Saved,
) -> tuple[tuple[Node, ...], dict[int, int], Given, list[Array]]:
    """The graph in normal form, its assigns, inputs for which no index is out of range, and what
    the graph makes of them."""
    normal = normalise(program.roots)
    numbers = {leaf.arg[0]: number for number, leaf in enumerate(normal.leaves)}
    assigns = {root: numbers[leaf] for root, leaf in program.assigns.items() if leaf in numbers}
    known = {
        number: (scalar.dtype, scalar.arg)
        for number, scalar in enumerate(normal.scalars)
        if scalar.op is ops.CONST
    }
    return normal.roots, assigns, *meanings.sound_inputs(normal.roots, known)


def _refuse_large(kernel: Node, given: Given, most: int = MOST_POINTS) -> None:
    ranges = [node for node in toposort(kernel) if node.op is ops.RANGE]
    points = prod(index.evaluate(node.arg[1], given.variables) for node in ranges)
    if points > most:
        raise TooLarge(f"a kernel has {points:,} points")


# ---- kernels -------------------------------------------------------------------------------------
def check_kernel(sink: Node, given: Given, first: str, device: str) -> Steps:
    """A kernel through the passes of the kernel floor, then compiled."""
    backend = devices.backend(device)
    _refuse_large(sink, given)
    written = {store.src[0].arg[0]: store.src[0].dtype for store in sink.src}
    expected = given.copies()
    with np.errstate(all="ignore"):
        evaluate_kernel(sink, expected, given.numbers, given.variables)

    def results(arrays: dict[int, Array]) -> list[Array]:
        return [to_compute(dtype, arrays[position]) for position, dtype in written.items()]

    def meaning(kernel: Kernel) -> list[Array]:
        _refuse_large(sink, given, MOST_STAGED)
        return results(_interpreted(kernel, given))

    judge = _Judge(results(expected), list(written.values()))
    context = pipeline.Context(backend.target, "k0", sink.arg)
    build, schedule, lower = pipeline.PASSES
    wanted = NAMES.index(first)
    built = _passed(build, "kernel.build", sink, context)
    if wanted <= NAMES.index("kernel.build"):
        yield judge.step("kernel.build", partial(meaning, built))
    kernel = _passed(schedule, "kernel.schedule", built, context)
    if wanted <= NAMES.index("kernel.schedule"):
        step = judge.step("kernel.schedule", partial(meaning, kernel))
        if step.is_wrong and context.plan is not None:
            action = first_wrong(judge, built, context.plan.actions, meaning)
            step = Step(step.name, step.apart, f"{step.note}; {action}")
        yield step
    functions = tuple(_passed(lower, "kernel.lower", kernel, context))
    scratch = scratch_of(kernel, given)
    if wanted <= NAMES.index("kernel.lower"):
        run = lambda: results(_stepped(sink, functions, given, scratch))  # noqa: E731
        yield judge.step("kernel.lower", run)
    if wanted <= NAMES.index("compile"):
        runner = devices.runner(device)
        run = lambda: results(  # noqa: E731
            meanings.of_compiled(functions, given, scratch, backend, runner)
        )
        yield judge.step("compile", run)


def first_wrong(
    judge: _Judge,
    kernel: Kernel,
    actions: Sequence[Any],
    run: Callable[[Kernel], list[Array]],
) -> str:
    """The first action after which a kernel means something else. run: gives its results."""
    for number, action in enumerate(actions, start=1):
        kernel = action(kernel)
        if judge.step("", partial(run, kernel)).is_wrong:
            return f"the first wrong action is the {number}. of {len(actions)}: {action}"
    return "no action alone is wrong"


def scratch_of(kernel: Kernel, given: Given) -> dict[int, Array]:
    """Memory for the buffers that the caller of a kernel provides, with nothing sensible in it."""
    found = {}
    for node in root_buffers(kernel).values():
        size = index.evaluate(node.shape[0], given.variables)
        found[node.arg[0]] = np.full(size, 77).astype(node.dtype.storage)
    return found


def _interpreted(kernel: Kernel, given: Given) -> dict[int, Array]:
    arrays = given.copies()
    with np.errstate(all="ignore"):
        interpret(kernel, arrays, given.numbers, given.variables)
    return arrays


def _stepped(
    sink: Node, functions: Sequence[Function], given: Given, scratch: dict[int, Array]
) -> dict[int, Array]:
    operations = estimate(sink, given.variables).operations
    if operations > MOST_STEPS:
        raise TooLarge(f"{operations:,} operations are many for the interpreter of programs")
    with np.errstate(all="ignore"):
        return meanings.of_functions(functions, given, scratch)


def check_function(function: Function, first: str, device: str) -> Steps:
    """A function of the program stage: interpreted, and compiled."""
    backend, runner = devices.backend(device), devices.runner(device)
    given = meanings.inputs(function.params)
    dtypes = {p.arg[0]: p.dtype for p in function.params if p.op is ops.ARG}

    def results(arrays: dict[int, Array]) -> list[Array]:
        return [to_compute(dtype, arrays[position]) for position, dtype in dtypes.items()]

    with np.errstate(all="ignore"):
        expected = results(meanings.of_functions([function], given, {}))
    judge = _Judge(expected, list(dtypes.values()))
    run = lambda: results(meanings.of_compiled([function], given, {}, backend, runner))  # noqa: E731
    yield judge.step("compile", run)


def fitting(found: Sequence[Saved], *names: str) -> list[Saved]:
    """The programs that go through these passes ("": any). ValueError if none does."""
    fit = [each for each in found if all(name in ("", *PATHS[each.kind]) for name in names)]
    if not fit:
        kinds = dict.fromkeys(each.kind for each in found)
        said = "; ".join(f"a {kind} goes through {', '.join(PATHS[kind])}" for kind in kinds)
        asked = " and ".join(filter(None, names))
        raise ValueError(f"no program in it goes through {asked}: {said}")
    return fit


def check(program: Saved, first: str = "", device: str = "CPU") -> Steps:
    """The steps of a program from a pass on, up to the first that is wrong. ValueError if it does
    not go through that pass, IndexError, TooLarge or MemoryError if it cannot be run."""
    fitting([program], first)
    first = first or PATHS[program.kind][0]
    if program.kind == "graph":
        steps = check_graph(program, first, device)
    elif program.function is not None:
        steps = check_function(program.function, first, device)
    else:
        (sink,) = program.roots
        steps = check_kernel(sink, meanings.inputs([sink]), first, device)
    try:
        for step in steps:
            yield step
            if step.is_wrong:
                return
    except PassFailed as failed:
        yield Step(failed.name, INFINITE, str(failed))


# ---- the command ---------------------------------------------------------------------------------
def printed(program: Saved, upto: str, device: str, first: str = "") -> str:
    """The text of what a program is after a pass, begun at another. ValueError if there is no text
    after that pass, or if it is before the other."""
    first = first or PATHS[program.kind][0]
    if NAMES.index(upto) < NAMES.index(first):
        raise ValueError(f"the pass {upto} is before {first}")
    if upto in ("compile", "program"):
        raise ValueError(f"there is no text after {upto!r}")
    target = devices.backend(device).target
    parts: list[str] = []
    kernels = program.roots
    if program.kind == "graph":
        order = programs.Order(program.assigns, target, program.roots)
        value: Any = program.roots
        for each in programs.PASSES:
            if NAMES.index(each.name) < NAMES.index(first) and each.gives == "graph":
                continue  # the text is what it gave
            value = passes.run([each], value, order)
            if each.name == upto and each.gives == "graph":
                return saved.show(value, program.assigns)
        kernels = tuple(dict.fromkeys(call.kernel for call in value.calls()))
    for number, sink in enumerate(kernels):
        parts.append(f"# kernel {number}\n{text.show(sink)}")
        if upto == "schedule":
            continue
        lowered = pipeline.lower(sink, target, f"k{number}")
        if upto == "kernel.lower":
            parts[-1] = "\n".join(text.show_function(f) for f in lowered.functions)
        elif upto == "kernel.schedule":
            parts[-1] += "schedule:\n" + "".join(f"{action}\n" for action in lowered.actions)
    return "\n".join(parts)


DESCRIPTION = """\
Run the programs in a text pass by pass, and compare what each pass gives with what the interpreter
makes of the text. Ends with 1 if a pass changes the result, and says which.

The passes: {names}
"""


def main(words: Sequence[str]) -> int:
    """The command; returns its exit status."""
    parser = argparse.ArgumentParser(
        prog="treadle repro",
        description=DESCRIPTION.format(names=", ".join(NAMES)),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", type=Path, help="a saved program, or what explain or DEBUG wrote")
    parser.add_argument("--from", dest="first", choices=NAMES, default="", metavar="PASS")
    parser.add_argument("--print", dest="upto", choices=NAMES, default="", metavar="PASS")
    parser.add_argument("--device", default="CPU", help="where it is compiled for")
    chosen = parser.parse_args(words)
    try:
        device = devices.canonical(chosen.device)
        found = saved.read(chosen.file.read_text(encoding="utf-8"))
        fit = fitting(found, chosen.first, chosen.upto)
        for each in found:
            if each not in fit:
                print(f"the {each.kind} at line {each.line} is left out", file=sys.stderr)
        if chosen.upto:
            texts = [printed(program, chosen.upto, device, chosen.first) for program in fit]
            print("\n".join(texts), end="")
            return 0
        return max(report(program, chosen.first, device) for program in fit)
    except (OSError, ValueError, ImportError) as error:
        print(f"treadle repro: {chosen.file}: {error}", file=sys.stderr)
        return 2


def report(program: Saved, first: str, device: str) -> int:
    """Print the steps of a program. Returns 1 if one is wrong."""
    print(f"{program.kind} at line {program.line}")
    try:
        for step in check(program, first, device):
            print(f"  {step}")
            if step.is_wrong:
                print(f"the first pass after which results differ: {step.name}")
                return 1
    except (IndexError, TooLarge, MemoryError) as error:
        print(f"  cannot be run on made-up inputs: {error}")
    return 0
