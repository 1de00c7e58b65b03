"""Running a schedule with the interpreter of kernels, and comparing it with that of graphs."""

import numpy as np

from treadle.backend.base import Target
from treadle.backend.interp.graph import evaluate
from treadle.backend.interp.kernel import evaluate_kernel
from treadle.ir import index, ops
from treadle.ir.dtype import from_compute, to_compute
from treadle.ir.node import Node, toposort
from treadle.schedule.schedule import Call, Loop, schedule

TARGET = Target("test", "cpu")


def leaf(slot, shape, dtype, device="CPU"):
    """The BUFFER leaf of a slot."""
    return Node(ops.BUFFER, dtype, (), (slot, tuple(shape), device))


def number(size, variables):
    """A dimension as an int."""
    atoms = [] if isinstance(size, int) else toposort(size)
    values = {n: variables[n.arg[0]] for n in atoms if n.op is ops.VARIABLE}
    return index.evaluate(size, values)


def run(plan, inputs, variables=None, scalars=()):
    """The memory of every buffer after the schedule has run. Temporaries really share the arena."""
    variables = dict(variables or {})
    arena = np.full(plan.arena, 0xAB, np.uint8)
    memory = []
    for position, info in enumerate(plan.buffers):
        shape = tuple(number(size, variables) for size in info.shape)
        if info.role == "input":
            memory.append(from_compute(info.dtype, inputs[position].copy()))
        elif info.role == "output":
            memory.append(np.full(shape, 0xAB, info.dtype.storage))
        else:
            count = int(np.prod(shape, dtype=np.int64)) * info.dtype.itemsize
            part = arena[info.offset : info.offset + count]
            assert part.size == count
            memory.append(part.view(info.dtype.storage).reshape(shape))
    run_items(plan.items, memory, variables, scalars)
    return memory


def run_items(items, memory, variables, scalars):
    for item in items:
        if isinstance(item, Loop):
            for step in range(number(item.trips, variables)):
                run_items(item.body, memory, {**variables, item.counter.arg[0]: step}, scalars)
            continue
        own = {name: number(size, variables) for name, size in item.variables.items()}
        values = [scalars[node.arg] for node in item.scalars]
        evaluate_kernel(
            item.kernel, [memory[b] for b in item.buffers], values, {**variables, **own}
        )


def agree(roots, inputs, assigns=None, variables=None, scalars=(), target=TARGET, rtol=1e-9):
    """The schedule of the roots, after a check that it computes what the graph means."""
    plan = schedule(roots, assigns or {}, target)
    leaves = {}
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
            np.testing.assert_allclose(got, want, rtol=rtol, atol=rtol)
        else:
            np.testing.assert_array_equal(got, want)
    held = {n for n, info in enumerate(plan.buffers) if info.role == "input"}
    untouched = held - {plan.outputs[r] for r in plan.in_place}
    for position in untouched:
        before = from_compute(plan.buffers[position].dtype, inputs[position])
        np.testing.assert_array_equal(memory[position], before)
    return plan


def kernels(plan):
    """How many launches."""
    return len(list(plan.calls()))


def distinct(plan):
    """How many different kernels."""
    return len({call.kernel for call in plan.calls()})


__all__ = ["Call", "Loop", "agree", "distinct", "kernels", "leaf", "run", "schedule", "TARGET"]
