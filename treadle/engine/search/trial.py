"""A kernel with random inputs: run by a candidate's code, checked, timed.

What is timed is one native call in which the kernel runs many times, on as many threads as it will
run on: so what Python costs has no part in it. Nothing of the result counts before it is compared
with `sample.py`.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np

from treadle.backend.base import Backend
from treadle.engine.compile import Compiled, Compiler
from treadle.engine.program import Program
from treadle.engine.search.sample import Expected, expected, scalar_value
from treadle.engine.storage import Buffer
from treadle.ir import index, ops
from treadle.ir.dtype import DType, from_compute, to_compute
from treadle.ir.node import Node, toposort
from treadle.schedule.plan import BufferInfo, Call, Loop, Schedule

BLOCK = 0.004  # seconds of a timed block, about
BLOCKS = 10
SLOW = 0.1  # seconds of one run beyond which it is not repeated, unless it is near the best
LOSES = 1.25  # a candidate that takes so much longer than the best is timed no more
TRIPS = index.variable("#trips", 1, 1 << 40)
COUNTER = index.variable("#trip", 0, 1 << 40)
SWEPT = 64 << 20  # bytes that are read to empty the caches

Array = np.ndarray

_FAR_FROM_ZERO = {"log", "log2", "log1p", "sqrt", "pow", "div", "lgamma", "digamma"}


class Wrong(ValueError):
    """A result that is not what the kernel means."""


@dataclass(frozen=True)
class Argument:
    """A buffer of a kernel: dtype and shape, and whether it is stored to and loaded from."""

    dtype: DType
    shape: tuple[int, ...]
    stored: bool
    loaded: bool


def arguments(kernel: Node, variables: Mapping[str, int]) -> dict[int, Argument]:
    """The buffers of a kernel by position."""
    nodes = toposort(kernel)
    stored = {n.src[0].arg[0] for n in nodes if n.op is ops.STORE}
    loaded = {n.src[0].arg[0] for n in nodes if n.op is ops.LOAD}
    found = {}
    for node in nodes:
        if node.op is ops.ARG:
            position, shape = node.arg
            sizes = tuple(index.evaluate(size, variables) for size in shape)
            found[position] = Argument(node.dtype, sizes, position in stored, position in loaded)
    return dict(sorted(found.items()))


def usual_variables(kernel: Node, known: Mapping[str, int]) -> dict[str, int]:
    """A value for every Variable of a kernel: the given one, or a moderate one."""
    found = {}
    for node in toposort(kernel, into_args=True):
        if node.op is ops.VARIABLE:
            name, low, high = node.arg
            found[name] = known.get(name, max(low, min(high, 512)))
    return found


class Trial:
    """A kernel on a backend and its runner, with inputs of its own. Unknown if its outputs cannot
    be checked."""

    def __init__(
        self,
        kernel: Node,
        backend: Backend,
        runner: Any,
        variables: Mapping[str, int],
        seed: int = 0,
    ) -> None:
        self.kernel = kernel
        self.backend = backend
        self.runner = runner
        self.variables = usual_variables(kernel, variables)
        self.arguments = arguments(kernel, self.variables)
        self.inputs = self._inputs(np.random.default_rng(seed))
        self.expected: list[Expected] = expected(kernel, self.inputs, self.variables)
        self.buffers = {n: Buffer(a.nbytes) for n, a in self.inputs.items()}
        nodes = toposort(kernel, into_args=True)
        numbers = {n.arg: n for n in nodes if n.op is ops.SCALAR}
        self.scalars = tuple(numbers[n] for n in sorted(numbers))
        self.checks = tuple(n for n in nodes if n.op is ops.CHECK)
        self.swept = np.ones(0, np.uint8)

    def _inputs(self, random: np.random.Generator) -> dict[int, Array]:
        """Random contents: floats around 0 (around 1 where an operation wants them positive),
        integers that are good indices."""
        nodes = toposort(self.kernel)
        positive = any(n.op.name in _FAR_FROM_ZERO for n in nodes)
        low, high = (0.5, 1.5) if positive else (-1.0, 1.0)
        limits = _index_limits(self.kernel, self.variables)
        found = {}
        for position, argument in self.arguments.items():
            dtype, shape = argument.dtype, argument.shape
            values: Array
            if dtype.is_float:
                values = random.random(shape, np.float32) * (high - low) + low
            elif dtype.storage.kind == "b":
                values = random.integers(0, 2, shape) > 0
            else:
                values = random.integers(0, limits.get(position, 8), shape)
            found[position] = from_compute(dtype, values.astype(dtype.compute))
        return found

    # ---- running ---------------------------------------------------------------------------------
    def program(self, compiled: Compiled, plugin: str) -> Program:
        """The kernel's code, run as often as the variable #trips says."""
        compiler = Compiler(self.backend, plugin)
        compiler.know(self.kernel, compiled)
        buffers = tuple(range(len(self.arguments)))
        call = Call(self.kernel, buffers, self.scalars, checks=self.checks)
        infos = [
            BufferInfo(a.dtype, a.shape, "output" if a.stored else "input")
            for a in self.arguments.values()
        ]
        schedule = Schedule([Loop([call], TRIPS, COUNTER)], infos, 0, [], set())
        return Program(schedule, self.backend, compiler, self.runner.builder)

    def run(self, program: Program, trips: int) -> None:
        """Runs the kernel so often. Wrong if a check of an index failed."""
        bits = [n.dtype.to_bits(scalar_value(n)) for n in self.scalars]
        variables = {**self.variables, TRIPS.arg[0]: trips}
        if program.run(self.runner, self.buffers, bits, variables):
            raise Wrong("an index is out of range")

    def fill(self) -> None:
        """The buffers as they are before the kernel runs; what is only stored to is poisoned."""
        for position, values in self.inputs.items():
            argument = self.arguments[position]
            memory = self.buffers[position].array(argument.dtype, argument.shape)
            if argument.loaded:
                memory[...] = values
            else:
                memory.reshape(-1).view(np.uint8)[...] = 0xFF

    def check(self, program: Program) -> tuple[str, float]:
        """Runs once and compares the sampled outputs: (how, in words; the seconds that it ran).
        Wrong if they differ."""
        self.fill()
        start = time.perf_counter()
        self.run(program, 1)
        ran = time.perf_counter() - start
        looked = 0
        worst = 0.0
        for wanted in self.expected:
            argument = self.arguments[wanted.buffer]
            array = self.buffers[wanted.buffer].array(argument.dtype, argument.shape)
            if not wanted.values.size:
                continue
            got = array[wanted.at] if wanted.at else array.reshape(-1)[:1]
            off = _difference(argument.dtype, got, wanted.values)
            if not off <= wanted.tolerance:
                raise Wrong(
                    f"an output is off by {off:.3g}, where {wanted.tolerance:.3g} is rounding"
                )
            worst = max(worst, off)
            looked += wanted.values.size
        return f"{looked} outputs within {worst:.1e} of float64", ran

    # ---- timing ----------------------------------------------------------------------------------
    def seconds(self, program: Program, first: float, best: float = inf) -> float:
        """Seconds of one run: the least of some blocks, fewer if the best is out of reach. first:
        what the first run took."""
        if first > (SLOW if best == inf else max(SLOW, 2 * LOSES * best)):
            return first
        start = time.perf_counter()
        self.run(program, 1)
        pace = min(first, time.perf_counter() - start)
        trips = max(1, min(10_000, int(BLOCK / max(pace, 1e-7))))
        found = inf
        for block in range(BLOCKS):
            start = time.perf_counter()
            self.run(program, trips)
            found = min(found, (time.perf_counter() - start) / trips)
            if found > best * (2 * LOSES if block == 0 else LOSES):
                break
            if block >= 2 and found > SLOW:
                break
        return found

    def cold_seconds(self, program: Program, times: int = 5) -> float:
        """Seconds of one run after other data went through the caches, the least of some."""
        if not self.swept.size:
            self.swept = np.ones(SWEPT, np.uint8)
        found = inf
        for _ in range(times):
            self.swept += 1
            if found > SLOW and found < inf:
                break
            start = time.perf_counter()
            self.run(program, 1)
            found = min(found, time.perf_counter() - start)
        return found


def _difference(dtype: DType, got: Array, wanted: Array) -> float:
    """The greatest difference; NaN against NaN and equal infinities are none."""
    if not dtype.is_float:
        return float((got.astype(np.int64) != wanted.reshape(got.shape).astype(np.int64)).any())
    values = np.asarray(to_compute(dtype, got), np.float64)
    wanted = wanted.reshape(values.shape)
    same = (values == wanted) | (np.isnan(values) & np.isnan(wanted))
    with np.errstate(invalid="ignore"):
        off = np.where(same, 0.0, np.abs(values - wanted))
    return float(np.where(np.isnan(off), inf, off).max())


def _index_limits(kernel: Node, variables: Mapping[str, int]) -> dict[int, int]:
    """For each buffer that indices are read from, the size that they are checked against."""
    limits: dict[int, int] = {}
    for node in toposort(kernel):
        if node.op is ops.CHECK:
            size = max(1, index.evaluate(node.src[1], variables))
            for load in toposort(node.src[0]):
                if load.op is ops.LOAD:
                    position = load.src[0].arg[0]
                    limits[position] = min(size, limits.get(position, size))
    return limits
