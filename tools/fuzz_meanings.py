"""Every way in which a graph can be evaluated, and how two evaluations are compared.

The ways by name (`MEANINGS`):

    graph     the simplified graph, with NumPy          heuristic  its kernels, as the heuristic
    kernels   the kernels of its schedule, with NumPy              schedules them, with NumPy
    INTERP, CPU, C   the whole path on that device
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from fuzz_graphs import Graph, Value

from treadle import config
from treadle.backend.interp.graph import evaluate
from treadle.backend.interp.kernel import evaluate_kernel
from treadle.engine import device as devices
from treadle.engine.normal import normalise
from treadle.engine.storage import Buffer, memory
from treadle.graph import simplify
from treadle.graph.body import substitute
from treadle.ir import dtype as dt
from treadle.ir import index
from treadle.ir.node import Node
from treadle.kernel.build import build
from treadle.kernel.heuristic import schedule as schedule_kernel
from treadle.kernel.interpret import interpret
from treadle.schedule.plan import Call, Loop
from treadle.schedule.schedule import schedule
from treadle.tensor import Tensor

DEVICES = ("INTERP", "CPU", "C")
RunKernel = Callable[[Node, list[np.ndarray], Sequence[Any], dict[str, int]], None]


def of_graph(graph: Graph) -> list[np.ndarray]:
    """The values of the roots after the rules of the graph."""
    roots = simplify.simplify([value.node for value in graph.roots])
    return evaluate(roots, graph.leaves, graph.variables)


# ---- kernels with NumPy --------------------------------------------------------------------------
def of_kernels(graph: Graph) -> list[np.ndarray]:
    """The values that the kernels of the schedule mean."""
    return _scheduled(graph, evaluate_kernel)


def of_heuristic(graph: Graph) -> list[np.ndarray]:
    """The values that the kernels mean after the heuristic's actions."""
    target = devices.backend("INTERP").target

    def run(
        kernel: Node, arrays: list[np.ndarray], scalars: Sequence[Any], variables: dict[str, int]
    ) -> None:
        planned = schedule_kernel(build(kernel, target), target).kernel
        interpret(planned, dict(enumerate(arrays)), scalars, variables)

    return _scheduled(graph, run)


def _scheduled(graph: Graph, run_kernel: RunKernel) -> list[np.ndarray]:
    """The values of the roots when each kernel of the schedule is run by `run_kernel`. Temporaries
    really share the arena."""
    normal = normalise([value.node for value in graph.roots])
    plan = schedule(simplify.simplify(normal.roots), {}, devices.backend("INTERP").target)
    arena = np.full(plan.arena, 0xAB, np.uint8)
    held: list[np.ndarray] = []
    given = [dt.from_compute(leaf.dtype, graph.leaves[leaf]) for leaf in normal.leaves]
    scalars = [node.value for node in normal.scalars]
    for number, info in enumerate(plan.buffers):
        shape = tuple(_number(size, graph.variables) for size in info.shape)
        count = int(np.prod(shape, dtype=np.int64))
        if info.role == "input":
            held.append(np.array(given[number], order="C"))
        elif info.role == "output":
            held.append(
                np.full(count * info.dtype.itemsize, 0xAB, np.uint8).view(info.dtype.storage)
            )
        else:
            part = arena[info.offset : info.offset + count * info.dtype.itemsize]
            held.append(part.view(info.dtype.storage).reshape(shape))
    _run_items(plan.items, held, scalars, graph.variables, run_kernel)
    results = []
    for value, number in zip(graph.roots, plan.outputs):
        stored = held[number].reshape(value.array.shape)
        results.append(dt.to_compute(value.node.dtype, stored))
    return results


def _run_items(
    items: Sequence[Call | Loop],
    held: list[np.ndarray],
    scalars: Sequence[Any],
    variables: Mapping[str, int],
    run: RunKernel,
) -> None:
    for item in items:
        if isinstance(item, Loop):
            for step in range(_number(item.trips, variables)):
                if item.test is not None and bool(held[item.test[0]].item()) != item.test[1]:
                    break
                counted = {**variables, item.counter.arg[0]: step}
                _run_items(item.body, held, scalars, counted, run)
            continue
        own = {name: _number(size, variables) for name, size in item.variables.items()}
        arrays = [held[buffer] for buffer in item.buffers]
        numbers = [scalars[node.arg] for node in item.scalars]
        run(item.kernel, arrays, numbers, {**variables, **own})


def _number(size: int | Node, variables: Mapping[str, int]) -> int:
    return size if isinstance(size, int) else index.evaluate(size, dict(variables))


# ---- devices -------------------------------------------------------------------------------------
def on_device(device: str) -> Callable[[Graph], list[np.ndarray]]:
    """The evaluation by the whole path on a device."""

    def run(graph: Graph) -> list[np.ndarray]:
        with config.DEVICE.set(device):
            leaves = {leaf: _placed(leaf, array, device) for leaf, array in graph.leaves.items()}
            nodes = substitute([value.node for value in graph.roots], leaves)
            tensors = [Tensor._of(node, graph.variables) for node in nodes]
            if tensors:
                tensors[0].realize(*tensors[1:])
            return [tensor.numpy() for tensor in tensors]

    return run


def _placed(leaf: Node, array: np.ndarray, device: str) -> Node:
    stored = dt.from_compute(leaf.dtype, array)
    buffer = Buffer(stored.nbytes)
    buffer.array(leaf.dtype, stored.shape)[...] = stored
    return memory.leaf(leaf.dtype, leaf.shape, device, buffer)


MEANINGS: dict[str, Callable[[Graph], list[np.ndarray]]] = {
    "graph": of_graph,
    "kernels": of_kernels,
    "heuristic": of_heuristic,
    **{device: on_device(device) for device in DEVICES},
}


# ---- comparing -----------------------------------------------------------------------------------
def difference(value: Value, got: np.ndarray) -> str | None:
    """What is wrong with a value that another evaluation gives, in words; None if nothing is."""
    want = value.array
    if got.shape != want.shape:
        return f"shape {got.shape} instead of {want.shape}"
    if not value.node.dtype.is_float:
        wrong = got != want
    elif value.exact:
        same = (got == want) & (np.signbit(got) == np.signbit(want))
        wrong = ~(same | (np.isnan(got) & np.isnan(want)))
    else:
        finite = np.isfinite(want)
        with np.errstate(invalid="ignore"):
            off = np.abs(got.astype(np.float64) - want.astype(np.float64))
        same = (got == want) | (np.isnan(got) & np.isnan(want))
        wrong = ~np.where(finite, off <= value.error, same)
    if not wrong.any():
        return None
    first = tuple(int(i[0]) for i in np.nonzero(np.atleast_1d(wrong)))
    one, other = (np.atleast_1d(a)[first] for a in (got, want))
    return (
        f"{int(wrong.sum())} of {wrong.size} elements, the first at {first}: "
        f"{one!r} instead of {other!r}, error allowed {value.error:.3g}"
    )


def check(graph: Graph, names: Sequence[str]) -> list[str]:
    """Every disagreement between the judge and the evaluations named, and between CPU and C, which
    agree in every bit when they have the same registers."""
    found = []
    results: dict[str, list[np.ndarray]] = {}
    for name in names:
        if graph.large and name == "INTERP":
            continue
        try:
            results[name] = MEANINGS[name](graph)
        except MemoryError:
            continue  # with NumPy a kernel is arrays over all of its ranges at once
        except Exception as error:  # whatever it is, it is what we look for
            found.append(f"{name}: {type(error).__name__}: {error}")
            continue
        for number, (value, got) in enumerate(zip(graph.roots, results[name])):
            wrong = difference(value, np.asarray(got))
            if wrong:
                found.append(f"{name}: root {number}: {wrong}")
    if "CPU" in results and "C" in results and _same_registers("CPU", "C"):
        for number, (one, other) in enumerate(zip(results["CPU"], results["C"])):
            if not np.array_equal(one, other, equal_nan=one.dtype.kind == "f"):
                found.append(f"C: root {number}: not the bits of CPU")
    return found


def _same_registers(one: str, other: str) -> bool:
    """Whether the heuristic sees the same machine, and so orders sums alike."""
    a, b = (devices.backend(name).target for name in (one, other))
    return (a.vector_bytes, a.registers) == (b.vector_bytes, b.registers)
