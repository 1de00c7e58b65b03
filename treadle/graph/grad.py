"""Reverse-mode derivatives: one table of rules, and the walk that applies them.

A row of `VJP` has one rule per source of its operation: `rule(g, y, *sources)` is what the
cotangent g of the result y adds to the cotangent of that source; None, for a rule and for what it
gives: the derivative is zero.
Rules are written with the library's own functions, so their results can be differentiated again.

Where a local derivative can be infinite at a finite point, it meets the cotangent in `zmul(g, d)`,
which is zero where g is zero: an element that `where` did not select adds nothing, not NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import log, pi, sqrt
from typing import Any, Literal, overload

from treadle.graph import adjoints as a
from treadle.graph import build as b
from treadle.graph.parts import by_parts, complex_of, imag, real
from treadle.graph.polygamma import trigamma
from treadle.graph.shapes import text
from treadle.ir import ops
from treadle.ir.node import Node, toposort
from treadle.ir.ops import Op

Rule = Callable[..., Node | None]

add, sub, mul, div, power, zmul = (
    partial(b.alu, op) for op in (ops.ADD, ops.SUB, ops.MUL, ops.DIV, ops.POW, ops.ZMUL)
)
neg, exp, sin, cos, ln, equal, less = (
    partial(b.alu, op) for op in (ops.NEG, ops.EXP, ops.SIN, ops.COS, ops.LOG, ops.EQ, ops.LT)
)

# fmt: off
REDUCE_VJP: dict[str, Rule] = {
    "add": a.spread, "mul": a.through_the_product, "max": a.to_the_extreme, "min": a.to_the_extreme,
    "argmax": a.to_the_argument, "argmin": a.to_the_argument,
}
VJP: dict[Op, tuple[Rule | None, ...]] = {
    ops.ADD:   (lambda g, y, x, z: g,                 lambda g, y, x, z: g),
    ops.SUB:   (lambda g, y, x, z: g,                 lambda g, y, x, z: neg(g)),
    ops.MUL:   (lambda g, y, x, z: mul(g, z),         lambda g, y, x, z: mul(g, x)),
    ops.DIV:   (lambda g, y, x, z: zmul(g, div(1, z)), lambda g, y, x, z: neg(zmul(g, div(y, z)))),
    ops.FMA:   (lambda g, y, x, z, c: mul(g, z),      lambda g, y, x, z, c: mul(g, x),
                lambda g, y, x, z, c: g),
    # d x**z / dx = z * x**(z-1), and 0 for z = 0 at every x; zmul(z, .) has d/dz of that, too
    ops.POW:   (lambda g, y, x, z: zmul(g, zmul(z, power(x, sub(z, 1)))),
                lambda g, y, x, z: zmul(g, zmul(y, ln(x)))),
    ops.ZMUL:  (lambda g, y, x, z: zmul(g, z),        lambda g, y, x, z: zmul(g, x)),
    ops.MAX:   (a.to_the_chosen,                lambda g, y, x, z: a.to_the_chosen(g, y, z, x)),
    ops.MIN:   (a.to_the_chosen,                lambda g, y, x, z: a.to_the_chosen(g, y, z, x)),
    ops.NEG:   (lambda g, y, x: neg(g),),
    ops.ABS:   (lambda g, y, x: b.where(equal(x, 0), 0, b.where(less(x, 0), neg(g), g)),),
    ops.SQRT:  (lambda g, y, x: zmul(g, div(0.5, y)),),
    ops.EXP:   (lambda g, y, x: zmul(g, y),),
    ops.EXP2:  (lambda g, y, x: zmul(g, mul(y, log(2))),),
    ops.EXPM1: (lambda g, y, x: zmul(g, exp(x)),),
    ops.LOG:   (lambda g, y, x: zmul(g, div(1, x)),),
    ops.LOG2:  (lambda g, y, x: zmul(g, div(1 / log(2), x)),),
    ops.LOG1P: (lambda g, y, x: zmul(g, div(1, add(x, 1))),),
    ops.SIN:   (lambda g, y, x: mul(g, cos(x)),),
    ops.COS:   (lambda g, y, x: neg(mul(g, sin(x))),),
    ops.TAN:   (lambda g, y, x: zmul(g, add(mul(y, y), 1)),),
    ops.ATAN:  (lambda g, y, x: div(g, add(mul(x, x), 1)),),
    ops.TANH:  (lambda g, y, x: mul(g, sub(1, mul(y, y))),),
    ops.ERF:   (lambda g, y, x: mul(g, mul(exp(neg(mul(x, x))), 2 / sqrt(pi))),),
    ops.ERFC:  (lambda g, y, x: neg(mul(g, mul(exp(neg(mul(x, x))), 2 / sqrt(pi)))),),
    ops.NORMAL_CDF: (lambda g, y, x: mul(g, mul(exp(mul(mul(x, x), -0.5)), 1 / sqrt(2 * pi))),),
    ops.ERFINV: (lambda g, y, x: zmul(g, mul(exp(mul(y, y)), sqrt(pi) / 2)),),
    ops.LGAMMA: (lambda g, y, x: zmul(g, b.alu(ops.DIGAMMA, x)),),
    ops.DIGAMMA: (lambda g, y, x: zmul(g, trigamma(x)),),
    ops.WHERE: (None, a.to_the_first, a.to_the_second),
    ops.CAST:     (lambda g, y, x: b.cast(g, x.dtype),),
    # a complex cotangent has those of the parts as its parts: dL/d re + i dL/d im (as PyTorch)
    ops.COMPLEX:  (lambda g, y, re, im: real(g),  lambda g, y, re, im: imag(g)),
    ops.REAL:     (lambda g, y, x: complex_of(g, b.zeros_like(g)),),
    ops.IMAG:     (lambda g, y, x: complex_of(b.zeros_like(g), g),),
    ops.RESHAPE:  (lambda g, y, x: b.reshape(g, x.shape),),
    ops.PERMUTE:  (lambda g, y, x: b.permute(g, a.inverse(y.arg)),),
    ops.FLIP:     (lambda g, y, x: b.flip(g, y.arg),),
    ops.EXPAND:   (a.of_expand,),
    ops.PAD:      (a.of_pad,),
    ops.SHRINK:   (a.of_shrink,),
    ops.WINDOW:   (a.of_window,),
    ops.UNWINDOW: (a.of_unwindow,),
    ops.REDUCE:   (lambda g, y, *x: REDUCE_VJP[y.arg[0]](g, y, *x), None),
    ops.GATHER:   (a.of_gather, None),
    ops.SCATTER:  (a.to_the_base, None, a.to_the_value),
    ops.UPDATE:   (a.outside_the_region, a.in_the_region),
    ops.CONTIGUOUS: (lambda g, y, x: g,),
    ops.COPY:     (a.to_the_device,),
    ops.AGAIN:    (lambda g, y, x, after: g,   None),
    # constant almost everywhere
    **dict.fromkeys((ops.FLOOR, ops.CEIL, ops.TRUNC, ops.RINT), (lambda g, y, x: b.zeros_like(g),)),
    # not of numbers, without sources, or meant to stop here
    **dict.fromkeys((
        ops.LT, ops.LE, ops.EQ, ops.NE, ops.AND, ops.OR, ops.XOR, ops.NOT, ops.IDIV, ops.MOD,
        ops.LSHIFT, ops.RSHIFT, ops.THREEFRY, ops.CONST,
        ops.VARIABLE, ops.SCALAR, ops.BUFFER, ops.PLACEHOLDER, ops.IOTA, ops.STOP,
    ), ()),
}
# Operations whose sources share their work: (y, one cotangent per output, whether each source is
# wanted) -> one cotangent per source. None is zero. `scan.py` puts SCAN here,
# `call.py` CALL.
WHOLE_VJP: dict[Op, Callable[[Node, Sequence[Node | None], list[bool]], Sequence[Node | None]]] = {}
# What has none, and why.
WITHOUT: dict[Op, str] = {ops.BITCAST: "bits do not vary smoothly"}
# fmt: on


def is_float(dtype: Any) -> bool:
    """Whether there is anything of numbers that vary smoothly: floating or complex."""
    return any(d.is_inexact for d in dtype) if isinstance(dtype, tuple) else bool(dtype.is_inexact)


def joined(one: Node, other: Node) -> Node:
    """The sum of two cotangents."""
    return ops.ADD(one, other) if one.dtype.kind == "f" else by_parts(_joined_parts, one, other)


def _joined_parts(one: Node, other: Node) -> Node:
    """The sum, where one of the two often is 0: what comes through one part of a complex number."""
    for nothing, rest in ((one, other), (other, one)):
        known = b.constant_of(nothing)
        if known is not None and known.value == 0:
            return rest
    return ops.ADD(one, other)


def reaching(order: Sequence[Node], wanted: Sequence[Node]) -> set[Node]:
    """The wanted nodes, and the nodes through which a cotangent can flow to one of them."""
    reaches = set(wanted)
    for node in order:
        row = VJP.get(node.op, node.src)
        flows = any(s in reaches and rule is not None for s, rule in zip(node.src, row))
        if flows and is_float(node.dtype):
            reaches.add(node)
    return reaches


def _contributions(node: Node, g: Any, reaches: set[Node]) -> Iterator[tuple[Node, Node | None]]:
    """What the cotangent of a node (one per output if it has several; None is zero) adds to each
    source in `reaches`."""
    if g is None or (isinstance(g, list) and not any(g)):
        yield from ((source, None) for source in node.src if source in reaches)
        return
    if node.op in WITHOUT or not (node.op in VJP or node.op in WHOLE_VJP):
        raise NotImplementedError(
            f"{node.op.name} has no derivative ({WITHOUT.get(node.op, 'no rule is written')}); "
            "detach its input if none is wanted"
        )
    if node.op in WHOLE_VJP:
        yield from zip(node.src, WHOLE_VJP[node.op](node, g, [s in reaches for s in node.src]))
        return
    for source, rule in zip(node.src, VJP[node.op]):
        if rule is not None and source in reaches:
            yield source, rule(g, node, *node.src)


@overload
def gradients(
    outputs: Sequence[Node],
    cotangents: Sequence[Node],
    wanted: Sequence[Node],
    unreached: Literal["raise", "zero"] = "raise",
) -> list[Node]: ...


@overload
def gradients(
    outputs: Sequence[Node],
    cotangents: Sequence[Node],
    wanted: Sequence[Node],
    unreached: Literal["none"],
) -> list[Node | None]: ...


def gradients(
    outputs: Sequence[Node],
    cotangents: Sequence[Node],
    wanted: Sequence[Node],
    unreached: str = "raise",
) -> Sequence[Node | None]:
    """The derivatives of sum(cotangent * output) by each wanted node, of its shape and dtype.

    outputs, wanted: floating or complex. cotangents: one per output, of its shape and dtype. A
    wanted node on which no output depends (through differentiable operations) is an error, or as
    `unreached` says "zero" or "none" (None). NotImplementedError names an operation without a
    derivative.
    """
    for node in (*outputs, *wanted):
        if not is_float(node.dtype):
            raise TypeError(f"only floating tensors have derivatives, not one of {node.dtype}")
    order = toposort(outputs)
    reaches = reaching(order, wanted)
    found: dict[Node, Any] = {}
    for output, g in zip(outputs, cotangents, strict=True):
        if (g.shape, g.dtype) != (output.shape, output.dtype):
            raise ValueError(
                f"the gradient of an output has its shape and dtype, {output.dtype} of shape "
                f"{text(output.shape)}, not {g.dtype} of shape {text(g.shape)}"
            )
        found[output] = joined(found[output], g) if output in found else g
    for node in reversed(order):
        if node not in reaches or node not in found:
            continue
        if node.op is ops.OUT:  # one output of several: they meet at their node
            outs = found.setdefault(node.src[0], [None] * len(node.src[0].dtype))
            outs[node.arg] = found[node]
            continue
        for source, part in _contributions(node, found[node], reaches):
            before = found.setdefault(source, None)
            if part is not None:
                found[source] = part if before is None else joined(before, part)
    for number, node in enumerate(wanted):
        if node not in found and unreached == "raise":
            raise ValueError(
                f"the result does not depend on tensor {number} of the {len(wanted)} that it is to "
                f"be differentiated by ({node.dtype} of shape {text(node.shape)})"
            )
        if found.get(node) is None and (node in found or unreached == "zero"):
            found[node] = b.zeros_like(node)
    return [found.get(node) for node in wanted]
