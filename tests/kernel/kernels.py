"""Kernels that the tests of this folder schedule, and what runs them.

`check(sink, actions)` runs a kernel three ways and compares: as it is built, after the actions
(both by the meaning of kernels), and lowered to functions that the program interpreter runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from treadle.backend.base import Function, Target
from treadle.backend.interp.program import run_tasks
from treadle.ir import dtype as dtypes
from treadle.ir import index, ops
from treadle.ir.dtype import DType, float32, from_compute, to_compute, void
from treadle.ir.node import Node, toposort
from treadle.kernel.actions import Action, apply
from treadle.kernel.build import build
from treadle.kernel.interpret import interpret
from treadle.kernel.kernel import Kernel
from treadle.kernel.layout import root_buffers
from treadle.kernel.lower import lower

CPU = Target("CPU", "cpu", vector_bytes=64, registers=32, threads=2)
GPU = Target(
    "H200",
    "gpu",
    arch="sm_90a",
    shared_bytes=227 * 1024,
    block_threads=1024,
    intrinsics=frozenset({"mma", "tma"}),
)


# ---- making kernels ------------------------------------------------------------------------------
def ranges(*sizes: int | Node) -> list[Node]:
    """Ranges 0, 1, .. of these sizes."""
    return [index.range_(number, size) for number, size in enumerate(sizes)]


def buffer(position: int, *shape: int | Node, dtype: DType = float32) -> Node:
    return Node(ops.ARG, dtype, (), (position, shape))


def load(source: Node, *place: int | Node, guard: Node | None = None) -> Node:
    rest = () if guard is None else (guard,)
    at = tuple(index.as_node(i) for i in place)
    return Node(ops.LOAD, source.dtype, (source, *at, *rest), len(at))


def store(
    target: Node,
    value: Node,
    *place: int | Node,
    guard: Node | None = None,
    monoid: str | None = None,
) -> Node:
    rest = () if guard is None else (guard,)
    at = tuple(index.as_node(i) for i in place)
    return Node(ops.STORE, void, (target, value, *at, *rest), (len(at), monoid))


def reduce(monoid: str, value: Node | Sequence[Node], *over: Node) -> Node:
    values = (value,) if isinstance(value, Node) else tuple(value)
    dtype = values[0].dtype if len(values) == 1 else tuple(v.dtype for v in values)
    return Node(ops.KREDUCE, dtype, (*values, *over), (monoid, len(values)))


def out(reduction: Node, component: int) -> Node:
    return Node(ops.OUT, reduction.dtype[component], (reduction,), component)


def sink(*stores: Node) -> Node:
    return Node(ops.SINK, void, stores)


def number(value: float, dtype: DType = float32) -> Node:
    return Node(ops.CONST, dtype, (), dtype.to_bits(value))


def softmax(rows: int, columns: int, axis: int = 1) -> Node:
    i, j = ranges(rows, columns)
    over = j if axis == 1 else i
    x = load(buffer(1, rows, columns), i, j)
    greatest = reduce("max", x, over)
    e = ops.EXP(ops.SUB(x, greatest))
    return sink(store(buffer(0, rows, columns), ops.DIV(e, reduce("add", e, over)), i, j))


def matmul(
    n: int, m: int, k: int, left: bool = False, right: bool = False, dtype: DType = float32
) -> Node:
    """(n, k) @ (k, m); left, right: that factor is stored transposed."""
    i, j, s = ranges(n, m, k)
    a = load(buffer(1, *((k, n) if left else (n, k)), dtype=dtype), *((s, i) if left else (i, s)))
    b = load(buffer(2, *((m, k) if right else (k, m)), dtype=dtype), *((j, s) if right else (s, j)))
    if dtype is not dtypes.bfloat16:
        return sink(store(buffer(0, n, m, dtype=dtype), reduce("add", ops.MUL(a, b), s), i, j))
    wide = ops.MUL(ops.CAST(a, dtype=float32), ops.CAST(b, dtype=float32))
    value = ops.CAST(reduce("add", wide, s), dtype=dtype)
    return sink(store(buffer(0, n, m, dtype=dtype), value, i, j))


def convolution(
    batch: int, channels: int, side: int, outputs: int, width: int, pad: int = 0, stride: int = 1
) -> Node:
    size = (side + 2 * pad - width) // stride + 1
    i, o, y, x, c, u, v = ranges(batch, outputs, size, size, channels, width, width)
    row = index.add(index.mul(y, stride), u, -pad)
    column = index.add(index.mul(x, stride), v, -pad)
    inside = index.both(
        index.le(0, row), index.lt(row, side), index.le(0, column), index.lt(column, side)
    )
    guard = None if inside is index.TRUE else inside
    image = load(buffer(1, batch, channels, side, side), i, c, row, column, guard=guard)
    weight = load(buffer(2, outputs, channels, width, width), o, c, u, v)
    over = [r for r in (c, u, v) if r.op is ops.RANGE]
    total = reduce("add", ops.MUL(image, weight), *over)
    return sink(store(buffer(0, batch, outputs, size, size), total, i, o, y, x))


def column_sum(rows: int | Node, columns: int | Node) -> Node:
    j, i = ranges(columns, rows)
    return sink(
        store(buffer(0, columns), reduce("add", load(buffer(1, rows, columns), i, j), i), j)
    )


def row_sum(rows: int | Node, columns: int | Node) -> Node:
    i, j = ranges(rows, columns)
    return sink(store(buffer(0, rows), reduce("add", load(buffer(1, rows, columns), i, j), j), i))


def full_sum(rows: int | Node, columns: int | Node) -> Node:
    i, j = ranges(rows, columns)
    total = reduce("add", load(buffer(1, rows, columns), i, j), i, j)
    return sink(store(buffer(0), total))


def elementwise(*shape: int | Node) -> Node:
    place = ranges(*shape)
    x, y = load(buffer(1, *shape), *place), load(buffer(2, *shape), *place)
    return sink(store(buffer(0, *shape), ops.MAX(ops.MUL(x, y), number(0.25)), *place))


# ---- running them --------------------------------------------------------------------------------
@dataclass
class Checked:
    """The kernel after its actions, its functions, and the arrays that it left."""

    kernel: Kernel
    functions: list[Function]
    arrays: dict[int, np.ndarray]

    @property
    def steps(self) -> int:
        """Program nodes of all functions."""
        return sum(len(function.body) for function in self.functions)

    def count(self, *rows: ops.Op) -> int:
        """How many program nodes are of these ops."""
        return sum(node.op in rows for function in self.functions for node in function.body)


def arrays_for(root: Node, variables: Mapping[str, int], seed: int = 0) -> dict[int, np.ndarray]:
    """Random contents for every buffer of a kernel; small whole numbers for integers."""
    random = np.random.default_rng(seed)
    made: dict[int, np.ndarray] = {}
    for node in toposort(root):
        if node.op is not ops.ARG:
            continue
        shape = [index.evaluate(size, variables) for size in node.shape]
        if node.dtype.is_float:
            values = random.standard_normal(shape).astype(node.dtype.compute)
        elif node.dtype.kind == "b":
            values = random.integers(0, 2, shape).astype(bool)
        else:
            values = random.integers(0, 4, shape).astype(node.dtype.storage)
        made[node.arg[0]] = np.ascontiguousarray(from_compute(node.dtype, values))
    return made


def copies(arrays: Mapping[int, np.ndarray]) -> dict[int, np.ndarray]:
    return {position: array.copy() for position, array in arrays.items()}


def run_functions(
    kernel: Kernel,
    functions: Sequence[Function],
    arrays: dict[int, np.ndarray],
    scalars: Sequence[float] = (),
    variables: Mapping[str, int] | None = None,
) -> int | None:
    """Runs all functions in order on the arrays. The number of a check that failed, or None."""
    memory = dict(arrays)
    for node in root_buffers(kernel).values():
        size = index.evaluate(node.shape[0], variables or {})
        memory[node.arg[0]] = np.full(size, 77, node.dtype.storage)
    failed = None
    for function in functions:
        flag = run_tasks(function, memory, scalars, variables)
        failed = flag if failed is None else failed
    return failed


def check(
    root: Node,
    actions: Sequence[Action] = (),
    *,
    target: Target = CPU,
    variables: Mapping[str, int] | None = None,
    scalars: Sequence[float] = (),
    arrays: Mapping[int, np.ndarray] | None = None,
    tolerance: float = 1e-4,
) -> Checked:
    """Asserts that the three ways to run the kernel agree."""
    given = {**arrays_for(root, variables or {}), **(arrays or {})}
    dtype_of = {n.arg[0]: n.dtype for n in toposort(root) if n.op is ops.ARG}
    kernel = build(root, target)
    expected = copies(given)
    interpret(kernel, expected, scalars, variables)
    scheduled = apply(kernel, actions)
    meant = copies(given)
    interpret(scheduled, meant, scalars, variables)
    functions = lower(scheduled, "f")
    ran = copies(given)
    assert run_functions(scheduled, functions, ran, scalars, variables) is None
    for position, dtype in dtype_of.items():
        want = to_compute(dtype, expected[position])
        for got in (meant, ran):
            np.testing.assert_allclose(
                to_compute(dtype, got[position]), want, rtol=tolerance, atol=tolerance,
                err_msg=str(scheduled),
            )  # fmt: skip
    return Checked(scheduled, functions, ran)
