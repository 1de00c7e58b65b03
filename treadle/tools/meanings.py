"""What saved programs compute, by each of the meanings there are, on seeded inputs.

graph                    treadle.backend.interp.graph
kernels of a schedule    treadle.backend.interp.kernel, one call after the other
statements               treadle.kernel.interpret
functions                treadle.backend.interp.program, or compiled for a device
a whole schedule         compiled for a device, by the engine
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from treadle.backend.base import Backend, Function
from treadle.backend.interp.graph import evaluate
from treadle.backend.interp.kernel import evaluate_kernel
from treadle.backend.interp.program import run_tasks
from treadle.engine import device as devices
from treadle.engine.compile import Compiler
from treadle.engine.program import Program, nbytes
from treadle.engine.storage import Buffer
from treadle.ir import index, ops
from treadle.ir.dtype import DType, from_compute, to_compute
from treadle.ir.node import Node, toposort
from treadle.schedule.plan import Call, Item, Loop, Schedule

Array = np.ndarray

NUMBER = 7  # of integer scalars: keys and big counts
SIZE = 5  # of variables, if they may be that
LARGEST = 1 << 24  # elements of all inputs together
LARGEST_VALUE = 1 << 26  # elements of one value: the interpreter of graphs holds each as a whole
TOLERANCES = {8: 1e-9, 4: 1e-4, 2: 2e-2, 1: 0.3}  # by the bytes of a float: sums in another order


class TooLarge(Exception):
    """A program that cannot be run here on made-up inputs, or not in a sensible time; the message
    says why."""


@dataclass
class Given:
    """Inputs of a program. arrays: by the number of the leaf or the position of the buffer, in the
    storage type of the dtype; scalars: by number, in the dtype's compute type; bits: the same as
    their bits; variables: by name."""

    arrays: dict[int, Array]
    scalars: dict[int, Any]
    bits: dict[int, int]
    variables: dict[str, int]

    @property
    def numbers(self) -> list[Any]:
        """The scalars as a list."""
        return [self.scalars.get(n, 0) for n in range(1 + max(self.scalars, default=-1))]

    def set_scalar(self, number: int, dtype: DType, bits: int) -> None:
        """Give a scalar a value by its bits."""
        self.bits[number] = bits
        self.scalars[number] = np.asarray(dtype.from_bits(bits), dtype.compute)[()]

    def copies(self) -> dict[int, Array]:
        """The arrays, to write to."""
        return {number: array.copy() for number, array in self.arrays.items()}


def inputs(roots: Sequence[Node], seed: int = 0, high: int = 4, scale: float = 1.0) -> Given:
    """Inputs for every leaf below the roots: normal floats times `scale`, integers from 0 up to
    `high` (they may be indices). TooLarge if they are more than LARGEST elements, and for a loop
    whose end depends on its data: it might never come."""
    random = np.random.default_rng(seed)
    nodes = toposort(roots, into_args=True)
    if any(node.op.name == "while" for node in nodes):
        raise TooLarge("how long a loop of it runs depends on its data")
    leaves = [node for node in nodes if node.op in _LEAVES]
    sizes = {n.arg[0]: min(n.arg[2], max(n.arg[1], SIZE)) for n in leaves if n.op is ops.VARIABLE}
    given = Given({}, {}, {}, sizes)
    total = 0
    for node in leaves:
        if node.op is ops.SCALAR:
            number = NUMBER if node.dtype.kind in "iu" else float(random.uniform(0.25, 1.75))
            given.set_scalar(node.arg, node.dtype, node.dtype.to_bits(number))
        elif node.op in (ops.BUFFER, ops.ARG) and isinstance(node.arg[0], int):
            shape = tuple(index.evaluate(size, sizes) for size in node.shape)
            total += prod(shape)
            if total > LARGEST:
                raise TooLarge(f"its inputs have more than {LARGEST:,} elements")
            if node.arg[0] not in given.arrays:
                given.arrays[node.arg[0]] = _values(random, node.dtype, shape, high, scale)
    return given


_LEAVES = (ops.BUFFER, ops.ARG, ops.SCALAR, ops.VARIABLE)


def _values(
    random: np.random.Generator, dtype: DType, shape: tuple[int, ...], high: int, scale: float
) -> Array:
    values: Any
    if dtype.kind in "fc":
        values = scale * random.standard_normal(shape)
        if dtype.kind == "c":
            values = values + 1j * scale * random.standard_normal(shape)
    else:
        values = random.integers(0, 2 if dtype.kind == "b" else high, shape)
    cast = np.asarray(values).astype(dtype.compute)
    return np.ascontiguousarray(from_compute(dtype, cast)).reshape(shape)


# ---- graphs --------------------------------------------------------------------------------------
def of_graph(roots: Sequence[Node], given: Given) -> list[Array]:
    """The values of the roots, in `dtype.compute`. TooLarge if a value on the way is."""
    leaves: dict[Node, Any] = {}
    for node in toposort(roots):
        is_one = not isinstance(node.dtype, tuple)
        if is_one and node.op.kind != "movement" and ops.numel(node.shape) > LARGEST_VALUE:
            raise TooLarge(f"a value has more than {LARGEST_VALUE:,} elements")
        if node.op is ops.BUFFER:
            leaves[node] = to_compute(node.dtype, given.arrays[node.arg[0]])
        elif node.op is ops.SCALAR:
            leaves[node] = given.scalars[node.arg]
    return [np.asarray(value) for value in evaluate(roots, leaves, given.variables)]


def sound_inputs(
    roots: Sequence[Node], scalars: Mapping[int, tuple[DType, int]] | None = None
) -> tuple[Given, list[Array]]:
    """Inputs, and the values that the roots have for them: such that no index is out of range, and
    that moving floats by a rounding does not move results by more than their tolerance; a sine of
    large numbers says nothing about who computed it. scalars: (dtype, bits) of those that are
    known. TooLarge if none of a few tries is sound."""
    why = ""
    for high, scale in ((4, 1.0), (4, 0.1), (1, 1.0), (1, 0.1)):
        given = inputs(roots, high=high, scale=scale)
        for number, (dtype, bits) in (scalars or {}).items():
            given.set_scalar(number, dtype, bits)
        with np.errstate(all="ignore"):
            try:
                values = of_graph(roots, given)
            except IndexError as error:
                why = str(error)
                continue
            moved = of_graph(roots, _moved(given))
        limits = [tolerance(root.dtype) for root in roots]
        if all(apart(m, v, limit) <= 1 for m, v, limit in zip(moved, values, limits)):
            return given, values
        why = "its results depend on how inputs are rounded"
    raise TooLarge(why)


def _moved(given: Given) -> Given:
    """The same inputs with float32 and float64 moved by about a rounding."""
    random = np.random.default_rng(1)
    arrays = dict(given.arrays)
    for number, array in arrays.items():
        if array.dtype in (np.float32, np.float64):
            step = np.finfo(array.dtype).eps * random.choice([-1, 1], array.shape)
            arrays[number] = (array * (1 + step)).astype(array.dtype)
    return Given(arrays, given.scalars, given.bits, given.variables)


# ---- schedules -----------------------------------------------------------------------------------
Watcher = Callable[[Call, Given], None]


def of_schedule(
    plan: Schedule, roots: Sequence[Node], given: Given, watch: Watcher | None = None
) -> list[Array]:
    """The values of the roots that the kernels of a schedule compute, one after the other.
    Temporaries share the arena as they will. watch: is told of every call before it runs."""
    arena = np.full(plan.arena, 0xAB, np.uint8)
    held: list[Array] = []
    for number, info in enumerate(plan.buffers):
        shape = tuple(index.evaluate(size, given.variables) for size in info.shape)
        count = prod(shape) * info.dtype.itemsize
        if info.role == "input":
            held.append(given.arrays[number].copy().reshape(shape))
            continue
        own = info.role == "output"
        raw = np.full(count, 0xAB, np.uint8) if own else arena[info.offset : info.offset + count]
        held.append(raw.view(info.dtype.storage).reshape(shape))
    run = _Interpreted(held, given, watch)
    run.items(plan.items, dict(given.variables))
    return [_as_root(root, held[number], given) for root, number in zip(roots, plan.outputs)]


def _as_root(root: Node, stored: Array, given: Given) -> Array:
    """The value of a root in memory, whose buffer may have another shape."""
    shape = tuple(index.evaluate(size, given.variables) for size in root.shape)
    return to_compute(root.dtype, stored).reshape(shape)


@dataclass
class _Interpreted:
    """Memory in which the items of a schedule run."""

    held: list[Array]
    given: Given
    watch: Watcher | None

    def items(self, items: Sequence[Item], variables: dict[str, int]) -> None:
        """Run items in order."""
        for item in items:
            if isinstance(item, Loop):
                for step in range(index.evaluate(item.trips, variables)):
                    if item.test and bool(self.held[item.test[0]]) != item.test[1]:
                        break
                    self.items(item.body, {**variables, item.counter.arg[0]: step})
                continue
            own = {name: index.evaluate(size, variables) for name, size in item.variables.items()}
            of_call = Given(
                dict(enumerate([self.held[buffer] for buffer in item.buffers])),
                {n: self.given.scalars[node.arg] for n, node in enumerate(item.scalars)},
                {n: self.given.bits[node.arg] for n, node in enumerate(item.scalars)},
                {**variables, **own},
            )
            if self.watch is not None:
                self.watch(item, of_call)
            evaluate_kernel(item.kernel, of_call.arrays, of_call.numbers, of_call.variables)


def of_program(
    plan: Schedule, roots: Sequence[Node], given: Given, device: str = "CPU"
) -> list[Array]:
    """The values of the roots when the schedule is compiled and run as one program. IndexError for
    an index out of range."""
    backend = devices.backend(device)
    compiler = Compiler(backend, devices.PLUGINS[device])
    runner = devices.runner(device)
    program = Program(plan, backend, compiler, runner.builder)
    buffers: dict[int, Buffer] = {}
    for number, info in enumerate(plan.buffers):
        if info.role == "input":
            buffers[number] = _filled(given.arrays[number])
        elif info.role == "output":
            buffers[number] = Buffer(nbytes(info, given.variables))
    scalars = [given.bits.get(n, 0) for n in range(1 + max(given.bits, default=-1))]
    flag = program.run(runner, buffers, scalars, given.variables)
    if flag:
        raise IndexError(f"check {flag}: an index is out of range")
    results = []
    for root, number in zip(roots, plan.outputs):
        shape = tuple(index.evaluate(s, given.variables) for s in plan.buffers[number].shape)
        stored = buffers[number].array(root.dtype, shape).copy()
        results.append(_as_root(root, stored, given))
    return results


def _filled(array: Array) -> Buffer:
    buffer = Buffer(array.nbytes)
    buffer.memory[: array.nbytes] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return buffer


# ---- functions -----------------------------------------------------------------------------------
def of_functions(
    functions: Sequence[Function], given: Given, scratch: Mapping[int, Array]
) -> dict[int, Array]:
    """The arrays after the functions have run, by the interpreter of programs. scratch: memory for
    the buffers that the caller provides."""
    memory = {**given.copies(), **{n: array.copy() for n, array in scratch.items()}}
    for function in functions:
        if run_tasks(function, memory, given.scalars, given.variables) is not None:
            raise IndexError("an index is out of range")
    return memory


def of_compiled(
    functions: Sequence[Function],
    given: Given,
    scratch: Mapping[int, Array],
    backend: Backend,
    runner: Any,
) -> dict[int, Array]:
    """The same, compiled for a device."""
    library = backend.load(backend.compile(backend.render(functions)))
    arrays = {**given.arrays, **scratch}
    buffers = {number: _filled(array) for number, array in arrays.items()}
    slots: dict[Any, int] = {}
    values = [0]
    for function in functions:
        for param in function.params:
            which = param.arg if param.op is ops.SCALAR else param.arg[0]
            if (param.op, which) not in slots:
                slots[param.op, which] = len(values)
                values.append(_slot_value(param, which, buffers, given))
    code = len(values)  # the slot of the code of the first check
    records = runner.builder(code + 1)
    for function in functions:
        places = [slots[p.op, p.arg if p.op is ops.SCALAR else p.arg[0]] for p in function.params]
        tasks = index.evaluate(function.tasks, given.variables)
        launch = (library.address(function.name), (*places, code), tasks, 1 if tasks == 1 else 0)
        records.phase([launch])
    program = records.build()
    for slot, value in enumerate([*values[1:], 1], start=1):
        program.slots[slot] = value if value < 1 << 63 else value - (1 << 64)
    runner.run(program)
    if program.flag[0]:
        raise IndexError("an index is out of range")
    return {number: _read(buffers[number], array) for number, array in arrays.items()}


def _slot_value(param: Node, which: Any, buffers: Mapping[int, Buffer], given: Given) -> int:
    if param.op is ops.ARG:
        return buffers[which].address
    return given.bits[which] if param.op is ops.SCALAR else given.variables[which]


def _read(buffer: Buffer, like: Array) -> Array:
    return buffer.memory[: like.nbytes].view(like.dtype).reshape(like.shape).copy()


# ---- comparing -----------------------------------------------------------------------------------
def apart(got: Array, want: Array, limit: float) -> float:
    """How far two arrays are apart: 0 if they are equal (NaN as NaN), else the greatest difference
    relative to the greatest number, divided by `limit`; infinite where one has no number and the
    other has, where integers differ, and where nothing but equality will do (limit 0)."""
    if got.shape != want.shape:
        return float("inf")
    if got.dtype.kind not in "fc" or not limit:
        return 0.0 if np.array_equal(got, want) else float("inf")
    same = (got == want) | (np.isnan(got) & np.isnan(want))
    if same.all():
        return 0.0
    inside = np.isfinite(want)
    if not np.array_equal(np.isfinite(got), inside) or not same[~inside].all():
        return float("inf")
    wide = np.complex128 if got.dtype.kind == "c" else np.float64
    difference = np.abs(got[inside].astype(wide) - want[inside].astype(wide)).max(initial=0.0)
    largest = np.abs(want[inside].astype(wide)).max(initial=0.0) or 1.0
    return float(difference / largest / limit)


def tolerance(dtype: DType) -> float:
    """How far results may be apart that differ in the order of sums only."""
    if dtype.kind not in "fc":
        return 0.0
    return TOLERANCES[dtype.itemsize // (2 if dtype.kind == "c" else 1)]
