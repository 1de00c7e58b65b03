"""Forward-mode derivatives: one table of rules, and the walk that applies them.

A row of `JVP` is `rule(y, tangents)`: the tangent of the result y, given one tangent per source
(None: zero). There is little to write, because the table of VJPs says most of it already:

- the Jacobian of an elementwise operation is diagonal, hence symmetric, so that its JVP is its VJP
  applied to the tangent: `zmul`, too, keeps its promise that zero times anything is zero;
- a linear operation does to the tangent what it does to the value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from treadle.graph import build as b
from treadle.graph.adjoints import SCATTER_WEIGHTS
from treadle.graph.grad import REDUCE_VJP, VJP, WITHOUT, is_float
from treadle.graph.parts import complex_of, imag, real
from treadle.ir import ops
from treadle.ir.node import Node, toposort
from treadle.ir.ops import Op

Tangents = Sequence[Node | None]
Rule = Callable[[Node, Tangents], Any]
# (y, one tangent per source) -> (y's outputs as they are computed along with the tangents, or None
# for those of y itself; one tangent per output)
WholeRule = Callable[[Node, Tangents], tuple[Sequence[Node] | None, Tangents]]


# ---- rules ---------------------------------------------------------------------------------------
def elementwise(y: Node, tangents: Tangents) -> Node | None:
    """The sum of what each source's rule in the table of VJPs makes of its tangent."""
    total: Node | None = None
    for tangent, rule in zip(tangents, VJP[y.op]):
        if tangent is not None and rule is not None:
            part = rule(tangent, y, *y.src)
            if part is not None:
                total = part if total is None else b.alu(ops.ADD, total, part)
    return total


def linear(y: Node, tangents: Tangents) -> Node:
    """The same operation on tangents; sources without one (indices, but zeros for floats) are as
    they are."""
    sources = [
        tangent or (b.zeros_like(source) if is_float(source.dtype) else source)
        for tangent, source in zip(tangents, y.src)
    ]
    return y.with_src(tuple(sources))


def of_mul(y: Node, tangents: Tangents) -> Node:
    """x * z: dx * z + x * dz. What `where` did not select is a zero cotangent x, which may meet an
    infinite dz when reverse mode is differentiated forward: zero it stays. But a sum of products of
    stretched operands is a matrix product, and its tangents are sums of plain products, too."""
    x, z = y.src
    plain = x.op.kind == z.op.kind == "movement"
    pairs = [(z, tangents[0]), (x, tangents[1])]
    parts = [
        b.alu(ops.MUL if plain or b.constant_of(factor) else ops.ZMUL, factor, tangent)
        for factor, tangent in pairs
        if tangent is not None
    ]
    return parts[0] if len(parts) == 1 else b.alu(ops.ADD, *parts)


def of_zmul(y: Node, tangents: Tangents) -> Node:
    """zmul(g, d): zmul(dg, d) + zmul(g, dd), where g = 0 makes both d and dd of no account."""
    (g, d), (first, second) = y.src, tangents
    parts = [] if first is None else [ops.ZMUL(first, d)]
    parts += [] if second is None else [ops.ZMUL(g, second)]
    return parts[0] if len(parts) == 1 else b.alu(ops.ADD, *parts)


def of_reduce(y: Node, tangents: Tangents) -> Any:
    """A sum is linear. Else: the sum of tangent * weight, where the weights are the derivative of
    one result by each of its elements: what the VJP makes of ones."""
    monoid, axes = y.arg
    tangent = tangents[0]
    assert tangent is not None  # the other sources are positions
    if monoid == "add":
        return y.with_src((tangent,))
    if isinstance(y.dtype, tuple):
        ones = b.ones_like(ops.OUT(y, arg=0, dtype=y.dtype[0]))
        weights = REDUCE_VJP[monoid]((ones, None), y, *y.src)
        return b.reduce("add", b.alu(ops.ZMUL, tangent, weights), axes), None
    weights = REDUCE_VJP[monoid](b.ones_like(y), y, *y.src)
    return b.reduce("add", b.alu(ops.ZMUL, tangent, weights), axes)


def of_scatter(y: Node, tangents: Tangents) -> Node | None:
    """Linear where values are set or added; else each element's tangent has a factor of its own."""
    axis, monoid = y.arg
    if monoid not in SCATTER_WEIGHTS:
        return linear(y, tangents)
    weights = SCATTER_WEIGHTS[monoid](y)
    of_base, of_value = (
        b.zeros_like(source) if tangent is None else b.alu(ops.ZMUL, tangent, weight)
        for source, tangent, weight in zip(
            (y.src[0], y.src[2]), (tangents[0], tangents[2]), weights
        )
    )
    return b.scatter(of_base, y.src[1], of_value, axis, "add")


def of_again(y: Node, tangents: Tangents) -> Node | None:
    """The tangent is computed again, too, and no earlier."""
    return None if tangents[0] is None else y.with_src((tangents[0], y.src[1]))


def of_complex(y: Node, tangents: Tangents) -> Node:
    """The tangents of the parts are the parts of the tangent."""
    parts = [t or b.zeros_like(part) for t, part in zip(tangents, y.src)]
    return complex_of(*parts)


def of_part(part: Callable[[Node], Node]) -> Rule:
    """A part of the tangent."""
    return lambda y, tangents: None if tangents[0] is None else part(tangents[0])


def nothing(y: Node, tangents: Tangents) -> None:
    """Zero: constant almost everywhere, not of numbers, without sources, or meant to stop."""


_LINEAR = (
    ops.RESHAPE, ops.PERMUTE, ops.EXPAND, ops.PAD, ops.SHRINK, ops.FLIP, ops.WINDOW, ops.UNWINDOW,
    ops.CAST, ops.CONTIGUOUS, ops.COPY, ops.GATHER, ops.UPDATE,
)  # fmt: skip
JVP: dict[Op, Rule] = {
    **{op: elementwise if any(row) else nothing for op, row in VJP.items() if op.kind == "alu"},
    **{op: nothing for op in ops.TABLE.values() if op.kind == "leaf" and "g" in op.stages},
    **dict.fromkeys((ops.FLOOR, ops.CEIL, ops.TRUNC, ops.RINT), nothing),
    **dict.fromkeys(_LINEAR, linear),
    ops.MUL: of_mul,
    ops.ZMUL: of_zmul,
    ops.REDUCE: of_reduce,
    ops.SCATTER: of_scatter,
    ops.AGAIN: of_again,
    ops.COMPLEX: of_complex,
    ops.REAL: of_part(real),
    ops.IMAG: of_part(imag),
}
# Operations with a body, whose tangents are computed together with their values. The modules that
# make them put their rows here: `scan.py` that of SCAN.
WHOLE_JVP: dict[Op, WholeRule] = {}


# ---- the walk ------------------------------------------------------------------------------------
def tangents(outputs: Sequence[Node], given: Mapping[Node, Node]) -> Tangents:
    """The tangent of each output: how it changes when each given node moves along its own tangent,
    of its shape and dtype. None is zero; integers and bools have none.

    NotImplementedError names an operation without a derivative.
    """
    return [tangent for _, tangent in pushed(outputs, given)]


def pushed(outputs: Iterable[Node], given: Mapping[Node, Node]) -> list[tuple[Node, Node | None]]:
    """(value, tangent) of each output; see `tangents`. The value is the output itself, but for what
    comes out of a loop, of which the loop that computes its tangent is the source now."""
    roots = list(outputs)
    values: dict[Node, Node] = {}
    found: dict[Node, Any] = {}  # of a node with several outputs: one tangent per output
    parts: dict[Node, Sequence[Node]] = {}  # the outputs of a loop that is another one now
    for node in toposort(roots):
        if node in given:
            values[node], found[node] = node, given[node]
            continue
        if node.op is ops.OUT and node.src[0] in parts:
            values[node] = parts[node.src[0]][node.arg]
        else:
            values[node] = node.with_src(tuple([values[source] for source in node.src]))
        if node.op is ops.OUT:
            whole = found.get(node.src[0])
            found[node] = None if whole is None else whole[node.arg]
            continue
        arriving = [found.get(source) for source in node.src]
        if not any(tangent is not None for tangent in arriving) or not is_float(node.dtype):
            continue
        own = values[node]
        if node.op in WHOLE_JVP:
            new, found[node] = WHOLE_JVP[node.op](own, arriving)
            if new is not None:
                parts[node] = new
        else:
            found[node] = _rule(node)(own, arriving)
    return [(values[root], found.get(root)) for root in roots]


def _rule(node: Node) -> Rule:
    """The row of a node's operation. NotImplementedError if there is none."""
    if node.op in WITHOUT or node.op not in JVP:
        raise NotImplementedError(
            f"{node.op.name} has no derivative ({WITHOUT.get(node.op, 'no rule is written')}); "
            "detach its input if none is wanted"
        )
    return JVP[node.op]
