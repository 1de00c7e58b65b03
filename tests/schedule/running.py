"""Running a schedule with the interpreter of kernels, and comparing it with that of graphs."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from treadle.backend.base import Target
from treadle.backend.interp.graph import evaluate
from treadle.backend.interp.kernel import evaluate_kernel
from treadle.ir import index, ops
from treadle.ir.dtype import DType, float64, from_compute, to_compute
from treadle.ir.node import Node, toposort
from treadle.schedule.schedule import Loop, Schedule, schedule

TARGET = Target("test", "cpu")
Array = np.ndarray


class Inputs:
    """Leaves numbered in order, each with an array of random numbers."""

    def __init__(self, seed: int = 0) -> None:
        self.arrays: list[Array] = []
        self.random = np.random.default_rng(seed)

    def new(self, *shape: int, dtype: DType = float64, high: int = 4) -> Node:
        """A leaf: normal floats, or integers from 0 up to `high`."""
        values = self.random.normal(size=shape)
        if not dtype.is_float:
            values = self.random.integers(0, high, shape)
        return self.given(np.asarray(values, dtype.compute), dtype)

    def given(self, values: Array, dtype: DType = float64) -> Node:
        """A leaf with these values."""
        self.arrays.append(values)
        return leaf(len(self.arrays) - 1, values.shape, dtype)


def leaf(slot: int, shape: Sequence[Any], dtype: DType, device: str = "CPU") -> Node:
    """The BUFFER leaf of a slot."""
    return Node(ops.BUFFER, dtype, (), (slot, tuple(shape), device))


def number(size: Any, variables: Mapping[str, int]) -> int:
    """A dimension as an int."""
    atoms = [] if isinstance(size, int) else toposort(size)
    values = {n: variables[n.arg[0]] for n in atoms if n.op is ops.VARIABLE}
    return index.evaluate(size, values)


def run(
    plan: Schedule,
    inputs: Sequence[Array],
    variables: Mapping[str, int] | None = None,
    scalars: Sequence[Any] = (),
) -> list[Array]:
    """The memory of every buffer after the schedule has run. Temporaries really share an arena,
    and nothing that is not written holds a sensible number."""
    variables = dict(variables or {})
    arena = np.full(plan.arena, 0xAB, np.uint8)
    memory = []
    for position, info in enumerate(plan.buffers):
        shape = tuple([number(size, variables) for size in info.shape])
        count = int(np.prod(shape, dtype=np.int64)) * info.dtype.itemsize
        if info.role == "input":
            memory.append(np.zeros(shape, info.dtype.storage))
            if position < len(inputs) and inputs[position].size == memory[-1].size:
                memory[-1] = from_compute(info.dtype, inputs[position].copy())
        elif info.role == "output":
            memory.append(np.full(count, 0xAB, np.uint8).view(info.dtype.storage).reshape(shape))
        else:
            part = arena[info.offset : info.offset + count]
            assert part.size == count, "a temporary leaves the arena"
            memory.append(part.view(info.dtype.storage).reshape(shape))
    _run_items(plan.items, memory, variables, scalars)
    return memory


def _run_items(
    items: Sequence[Any], memory: list[Array], variables: dict[str, int], scalars: Sequence[Any]
) -> None:
    for item in items:
        if isinstance(item, Loop):
            for step in range(number(item.trips, variables)):
                if item.test is not None and bool(memory[item.test[0]]) != item.test[1]:
                    break
                _run_items(item.body, memory, {**variables, item.counter.arg[0]: step}, scalars)
            continue
        own = {name: number(size, variables) for name, size in item.variables.items()}
        values = [scalars[node.arg] for node in item.scalars]
        arrays = [memory[buffer] for buffer in item.buffers]
        evaluate_kernel(item.kernel, arrays, values, {**variables, **own})


def agree(
    roots: Sequence[Node],
    inputs: Sequence[Array],
    assigns: dict[int, int] | None = None,
    variables: Mapping[str, int] | None = None,
    scalars: Sequence[Any] = (),
    target: Target = TARGET,
    tolerance: float = 1e-9,
) -> Schedule:
    """The schedule of the roots, after a check that it computes what the graph means, and leaves
    every input alone that it does not take over."""
    plan = schedule(roots, assigns or {}, target)
    leaves: dict[Node, Any] = {}
    for node in toposort(roots):
        if node.op is ops.BUFFER:
            leaves[node] = inputs[node.arg[0]]
        if node.op is ops.SCALAR:
            leaves[node] = scalars[node.arg]
    expected = evaluate(roots, leaves, variables)
    memory = run(plan, inputs, variables, scalars)
    for root, want, buffer in zip(roots, expected, plan.outputs):
        got = to_compute(root.dtype, memory[buffer]).reshape(want.shape)
        if want.dtype.kind == "f":
            np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)
        else:
            np.testing.assert_array_equal(got, want)
    taken = {plan.outputs[root] for root in plan.in_place}
    for node, values in leaves.items():
        if node.op is ops.BUFFER and node.arg[0] not in taken:
            before = from_compute(node.dtype, values)
            np.testing.assert_array_equal(memory[node.arg[0]], before)
    return plan


def kernels(plan: Schedule) -> int:
    """How many launches."""
    return len(list(plan.calls()))


def distinct(plan: Schedule) -> int:
    """How many different kernels."""
    return len({call.kernel for call in plan.calls()})


def reasons(plan: Schedule) -> list[str]:
    """Every reason as text."""
    return [str(reason) for call in plan.calls() for reason in call.reasons]


def largest(plan: Schedule) -> int:
    """The most elements that a buffer of the schedule has."""
    return max(int(np.prod(info.shape)) for info in plan.buffers)
