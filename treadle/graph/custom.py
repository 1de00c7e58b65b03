"""Kernels that the user wrote: the op KERNEL, its derivatives, and many examples at once.

`treadle/kernels.py` makes their nodes. A kernel is a sink of stores over ranges (docs/design.md,
section 3), in which the outputs are the first ARGs and the sources follow; a source that is a
number is a SCALAR. What a derivative is nobody can read off stores, so the user gives it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from treadle.graph import build as b
from treadle.graph.batching import WHOLE_BATCHING, Batched, batched, with_axis
from treadle.graph.body import parameter, substitute
from treadle.graph.forward import WHOLE_JVP, Tangents
from treadle.graph.grad import WHOLE_VJP, gradients
from treadle.graph.shapes import Dim
from treadle.ir import index, ops
from treadle.ir.dtype import DType
from treadle.ir.named import Named
from treadle.ir.node import Node, Shape, toposort

Nodes = Sequence[Node]
# (inputs, outputs, one cotangent per output) -> one cotangent per input, None for zero
Vjp = Callable[[Nodes, Nodes, Nodes], Sequence[Node | None]]
# (inputs, outputs, one tangent per input) -> one tangent per output, None for zero
Jvp = Callable[[Nodes, Nodes, Nodes], Sequence[Node | None]]


class Derivative(Named):
    """How a kernel is differentiated. Calls of one kernel share it, so that equal calls are equal
    nodes."""

    def __init__(self, name: str, vjp: Vjp | None, jvp: Jvp | None) -> None:
        super().__init__(name)
        self.vjp = vjp
        self.jvp = jvp
        self._batched: dict[tuple[tuple[bool, ...], Dim], Derivative] = {}

    def batched(self, has: tuple[bool, ...], size: Dim) -> Derivative:
        """That of the kernel for `size` examples, where the inputs that `has` says have an axis of
        examples."""
        if (has, size) not in self._batched:
            vjp = None if self.vjp is None else _for_examples(self.vjp, has, size, has)
            jvp = None if self.jvp is None else _for_examples(self.jvp, has, size, None)
            self._batched[has, size] = Derivative(f"{self.name} batched", vjp, jvp)
        return self._batched[has, size]


def call(
    sink: Node, outputs: Sequence[tuple[DType, Shape]], inputs: Nodes, rule: Derivative | str
) -> list[Node]:
    """The results of a kernel on these inputs. rule: its derivative, or only its name."""
    dtypes = tuple([dtype for dtype, _ in outputs])
    shapes = tuple([shape for _, shape in outputs])
    node = Node(ops.KERNEL, dtypes, tuple(inputs), (sink, shapes, rule))
    return results(node)


def results(node: Node) -> list[Node]:
    """All outputs of a KERNEL."""
    return [ops.OUT(node, arg=number, dtype=dtype) for number, dtype in enumerate(node.dtype)]


# ---- derivatives ---------------------------------------------------------------------------------
def _derivative(node: Node) -> Derivative:
    rule = node.arg[2]
    if not isinstance(rule, Derivative):
        raise NotImplementedError(
            f"{rule} has no derivative: a kernel is differentiated by a function that you give, "
            "@custom_kernel(vjp=..), or detach its inputs if no derivative is wanted"
        )
    return rule


def _seeds(node: Node, cotangents: Sequence[Node | None]) -> list[Node]:
    return [g or b.zeros_like(out) for g, out in zip(cotangents, results(node))]


def _vjp(
    node: Node, cotangents: Sequence[Node | None], needed: Sequence[bool]
) -> list[Node | None]:
    rule = _derivative(node)
    if rule.vjp is None:
        raise NotImplementedError(
            f"{rule.name} has a jvp only: reverse mode needs vjp=.., too, in @custom_kernel"
        )
    found = rule.vjp(node.src, results(node), _seeds(node, cotangents))
    return [g if wanted else None for g, wanted in zip(found, needed)]


def _jvp(node: Node, tangents: Tangents) -> tuple[None, Tangents]:
    rule = _derivative(node)
    if rule.jvp is not None:
        zeros = [t or b.zeros_like(source) for t, source in zip(tangents, node.src)]
        return None, rule.jvp(node.src, results(node), zeros)
    return None, _transposed(node, rule, tangents)


def _transposed(node: Node, rule: Derivative, tangents: Tangents) -> Tangents:
    """Forward mode from the VJP, which is linear in its cotangents: its own VJP by those."""
    assert rule.vjp is not None
    outputs = results(node)
    seeds = [parameter(out.dtype, out.shape) for out in outputs]
    pairs = [
        (g, tangent)
        for g, tangent in zip(rule.vjp(node.src, outputs, seeds), tangents)
        if g is not None and tangent is not None
    ]
    floats = [seed for seed in seeds if seed.dtype.is_float]
    ends, moved = [g for g, _ in pairs], [tangent for _, tangent in pairs]
    found = dict(zip(floats, gradients(ends, moved, floats, unreached="zero")))
    zeros = {seed: b.zeros_like(seed) for seed in seeds}
    parts = [found.get(seed) for seed in seeds]
    return [None if part is None else substitute([part], zeros)[0] for part in parts]


# ---- many examples -------------------------------------------------------------------------------
def _for_examples(
    rule: Any, has: tuple[bool, ...], size: Dim, unbatched: tuple[bool, ...] | None
) -> Any:
    """A VJP or JVP of one example as that of many.

    unbatched: for each result, whether it has the axis of the examples; the derivative by an input
    that all examples share is the sum over them. None: all results have it.
    """

    def run(inputs: Nodes, outputs: Nodes, given: Nodes) -> list[Node | None]:
        ones = [parameter(x.dtype, x.shape[1:] if own else x.shape) for x, own in zip(inputs, has)]
        many = [*ones, *(parameter(x.dtype, x.shape[1:]) for x in outputs)]
        shared = unbatched is not None
        moving = [True] * len(given) if shared else list(has)
        many += [
            parameter(x.dtype, x.shape[1:] if own else x.shape) for x, own in zip(given, moving)
        ]
        count = len(inputs), len(inputs) + len(outputs)
        found = rule(many[: count[0]], many[count[0] : count[1]], many[count[1] :])
        wanted = [part for part in found if part is not None]
        axes = [*has, *(True for _ in outputs), *moving]
        everything = [*inputs, *outputs, *given]
        stacked = {p: x for p, x, own in zip(many, everything, axes) if own}
        same = {p: x for p, x, own in zip(many, everything, axes) if not own}
        made = [with_axis(*part, size) for part in batched(wanted, stacked, size)]
        left = iter(substitute(made, same))
        results_of = [None if part is None else next(left) for part in found]
        if unbatched is None:
            return results_of
        return [
            b.reduce("add", part, 0) if part is not None and not own else part
            for part, own in zip(results_of, unbatched)
        ]

    return run


def _batch(node: Node, sources: Sequence[Batched], size: Dim) -> list[Batched]:
    """One more range around the kernel. A written schedule still applies: what vmap added is
    outermost, around every statement; so all sources have the axis if a reduction needs it."""
    sink, shapes, rule = node.arg
    if size == 0:
        empty = zip(node.dtype, shapes)
        return [(b.const(0, dtype, (0, *shape)), True) for dtype, shape in empty]
    has = tuple([own for _, own in sources])
    wider, common = with_range(sink, len(node.dtype), has, size)
    if sink.arg is not None and not common and not all(has):
        has = (True,) * len(has)
        sources = [(with_axis(*source, size), True) for source in sources]
        wider, _ = with_range(sink, len(node.dtype), has, size)
    if isinstance(rule, Derivative):
        rule = rule.batched(has, size)
    outputs = [(dtype, (size, *shape)) for dtype, shape in zip(node.dtype, shapes)]
    return [(out, True) for out in call(wider, outputs, [x for x, _ in sources], rule)]


def with_range(sink: Node, outputs: int, has: Sequence[bool], size: Dim) -> tuple[Node, bool]:
    """A kernel with one more range, the first index of every output and of the sources that `has`
    says; and whether everything in it depends on that range."""
    order = toposort(sink)
    number = 1 + max([node.arg[0] for node in order if node.op is ops.RANGE], default=-1)
    own = index.range_(number, size)
    new: dict[Node, Node] = {}

    def widened(argument: Node) -> bool:
        number: int = argument.arg[0]
        return number < outputs or has[number - outputs]

    for node in order:
        source = tuple([new[s] for s in node.src])
        made = index.rebuild(node, source)
        if node.op is ops.ARG and widened(node):
            made = Node(ops.ARG, node.dtype, (), (node.arg[0], (size, *node.shape)))
        elif node.op is ops.LOAD and widened(node.src[0]):
            made = Node(ops.LOAD, node.dtype, (source[0], own, *source[1:]), node.arg + 1)
        elif node.op is ops.STORE:
            axes, monoid = node.arg
            made = Node(ops.STORE, node.dtype, (*source[:2], own, *source[2:]), (axes + 1, monoid))
        elif node.op is ops.SCALAR and has[node.arg]:
            argument = Node(ops.ARG, node.dtype, (), (outputs + node.arg, (size,)))
            made = Node(ops.LOAD, node.dtype, (argument, own), 1)
        new[node] = made
    wide = new[sink]
    if sink.arg is not None:
        written, outer = sink.arg
        wide = Node(ops.SINK, sink.dtype, wide.src, (written, (*outer, number)))
    folds = [new[node] for node in order if node.op is ops.KREDUCE]
    return wide, all(fold.free & own.free == own.free for fold in folds)


WHOLE_VJP[ops.KERNEL] = _vjp
WHOLE_JVP[ops.KERNEL] = _jvp
WHOLE_BATCHING[ops.KERNEL] = _batch
