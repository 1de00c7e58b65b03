"""Reverse-mode derivatives: one table of rules, and the walk that applies them.

A row of `VJP` has one rule per source of its operation. `rule(g, y, *sources)` is what the cotangent
g of the result y adds to the cotangent of that source; None says that the derivative is zero. Rules
are written with the library's own functions, so their results can be differentiated again.

Where a local derivative can be infinite at a finite point it meets the cotangent in `zmul(g, d)`,
which is zero where g is zero: an element that `where` did not select adds nothing, not NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import log, pi, sqrt
from typing import Any

from treadle.graph import build as b
from treadle.graph import shapes
from treadle.ir import ops
from treadle.ir.dtype import int64
from treadle.ir.node import Node, Shape, toposort
from treadle.ir.ops import Op

Rule = Callable[..., Node]


add, sub, mul, div, power, equal, less, zmul, neg, exp, sin, cos, natural_log = (
    partial(b.alu, op)
    for op in (ops.ADD, ops.SUB, ops.MUL, ops.DIV, ops.POW, ops.EQ, ops.LT, ops.ZMUL, ops.NEG,
               ops.EXP, ops.SIN, ops.COS, ops.LOG)
)  # fmt: skip


def _shared(g: Node, y: Node, x: Node, other: Node) -> Node:
    """maximum, minimum: the cotangent goes to the source that is the result, half to each if tied."""
    chosen = b.where(equal(x, y), g, b.zeros_like(g))
    return b.where(equal(x, other), mul(g, 0.5), chosen)


def _spread(y: Node, reduced: Node) -> Node:
    """A value of the shape of the REDUCE y, repeated over the axes that y reduced."""
    shape = y.src[0].shape
    kept = tuple(1 if axis in y.arg[1] else size for axis, size in enumerate(shape))
    return b.expand(b.reshape(reduced, kept), shape)


def _reduce_extreme(g: Node, y: Node, x: Node) -> Node:
    """max, min: shared evenly among the elements equal to the extreme (PyTorch's amax)."""
    tied = b.cast(equal(x, _spread(y, y)), x.dtype)
    return mul(_spread(y, div(g, b.reduce("add", tied, y.arg[1]))), tied)


def _reduce_argument(g: Sequence[Node | None], y: Node, x: Node, index: Node) -> Node:
    """argmax, argmin: the value's cotangent goes to the element that was chosen."""
    chosen = equal(index, _spread(y, ops.OUT(y, arg=1, dtype=y.dtype[1])))
    return b.where(chosen, _spread(y, g[0] or b.zeros_like(y)), b.zeros_like(x))


def _reduce_product(g: Node, y: Node, x: Node) -> Node:
    """prod: back through the product as a binary tree, whose derivative is exact with zeros too."""
    axes, rows = y.arg[1], y.shape
    order = (*(axis for axis in range(len(x.shape)) if axis not in axes), *axes)
    columns = b.permute(x, order)
    flat = b.reshape(columns, (*rows, shapes.total(columns.shape[len(rows) :])))
    width = 1 << max(0, ops.numel(flat.shape[-1:]) - 1).bit_length()
    margin = shapes.subtract(width, flat.shape[-1])
    level = b.pad(flat, (*(((0, 0),) * len(rows)), (0, margin)), value=1)
    pairs = []
    while width > 1:
        width //= 2
        pairs.append(b.reshape(level, (*rows, 2, width)))
        level = b.reduce("mul", pairs[-1], (len(rows),))
    g = b.reshape(g, (*rows, 1))
    for pair in reversed(pairs):  # each of a pair gets g times the other
        below = b.reshape(g, (*rows, 1, pair.shape[-1]))
        g = mul(b.expand(below, pair.shape), b.flip(pair, (len(rows),)))
        g = b.reshape(g, (*rows, 2 * pair.shape[-1]))
    inside = b.shrink(g, tuple((0, size) for size in flat.shape))
    return b.permute(b.reshape(inside, columns.shape), _inverse(order))


REDUCE_VJP: dict[str, Rule] = {
    "add": lambda g, y, x: _spread(y, g),
    "mul": _reduce_product,
    "max": _reduce_extreme,
    "min": _reduce_extreme,
    "argmax": _reduce_argument,
    "argmin": _reduce_argument,
}


def _inverse(order: Sequence[int]) -> tuple[int, ...]:
    return tuple(sorted(range(len(order)), key=order.__getitem__))


def _unexpand(g: Node, y: Node, x: Node) -> Node:
    axes = [axis for axis, size in enumerate(x.shape) if size != y.shape[axis]]
    return b.reshape(b.reduce("add", g, tuple(axes)), x.shape)


def _unwindow(g: Node, y: Node, x: Node) -> Node:
    axis, _, stride, dilation = y.arg
    return b.unwindow(g, axis, x.shape[axis], stride, dilation)


def _window(g: Node, y: Node, x: Node) -> Node:
    axis, _, stride, dilation = y.arg
    return b.window_pair(g, axis, x.shape[axis], stride, dilation)


def _scatter_add(g: Node, y: Node, x: Node, index: Node) -> Node:
    """gather: added up where it was read. One element of each row is a comparison, which fuses."""
    axis = y.arg
    if index.shape[axis] == 1:
        read = equal(_numbers(x.shape, axis), b.cast(index, int64))
        return b.where(read, g, 0)
    return b.scatter(b.zeros_like(x), index, g, axis, "add")


def _numbers(shape: Shape, axis: int) -> Node:
    """0, 1 .. along an axis, for every place of a shape."""
    column = tuple(size if each == axis else 1 for each, size in enumerate(shape))
    return b.expand(b.reshape(b.iota(shape[axis], int64), column), shape)


def _scatter_base(g: Node, y: Node, base: Node, index: Node, value: Node) -> Node:
    """set: what was overwritten has no part in the result."""
    axis, monoid = y.arg
    return g if monoid == "add" else b.scatter(g, index, b.zeros_like(value), axis)


def _scatter_value(g: Node, y: Node, base: Node, index: Node, value: Node) -> Node:
    """set: of several values for one place the last remains, and only that one gets a gradient."""
    axis, monoid = y.arg
    found = b.gather(g, index, axis)
    if monoid == "add":
        return found
    number = _numbers(value.shape, axis)
    last = b.scatter(b.const(0, int64, base.shape), index, number, axis)
    remains = equal(b.gather(last, index, axis), number)
    return b.where(remains, found, b.zeros_like(found))


def _region(g: Node, y: Node, x: Node, value: Node) -> Node:
    """The elements of g that an UPDATE wrote."""
    spans = [
        (start, shapes.add(shapes.add(start, 1), shapes.multiply(shapes.subtract(count, 1), step)))
        for (start, step), count in zip(y.arg, value.shape)
    ]
    g = b.shrink(g, spans)
    for axis, ((_, step), count) in enumerate(zip(y.arg, value.shape)):
        if step != 1:
            g = b.reshape(g, (*g.shape[: axis + 1], 1, *g.shape[axis + 1 :]))
            g = b.window_pair(g, axis, count, step, 1)
            g = b.reshape(g, (*g.shape[: axis + 1], *g.shape[axis + 2 :]))
    return g


def _return(g: Node, y: Node, x: Node) -> Node:
    """COPY: back to the device of x, which its nearest leaf or copy names."""
    nearest = next(n for n in reversed(toposort(x)) if n.op in (ops.BUFFER, ops.COPY))
    return ops.COPY(g, arg=nearest.arg[2] if nearest.op is ops.BUFFER else nearest.arg)


# fmt: off
FLAT: tuple[None, ...] = (None, None, None)  # piecewise constant or not of numbers: derivative zero
VJP: dict[Op, tuple[Rule | None, ...]] = {
    ops.ADD:   (lambda g, y, x, z: g,                     lambda g, y, x, z: g),
    ops.SUB:   (lambda g, y, x, z: g,                     lambda g, y, x, z: neg(g)),
    ops.MUL:   (lambda g, y, x, z: mul(g, z),             lambda g, y, x, z: mul(g, x)),
    ops.DIV:   (lambda g, y, x, z: zmul(g, div(1, z)),    lambda g, y, x, z: neg(zmul(g, div(y, z)))),
    ops.FMA:   (lambda g, y, x, z, c: mul(g, z),          lambda g, y, x, z, c: mul(g, x),
                lambda g, y, x, z, c: g),
    # d x**z / dx = z * x**(z-1), zero for z = 0 at every x; zmul(z, .) keeps d/dz of it
    ops.POW:   (lambda g, y, x, z: zmul(g, zmul(z, power(x, sub(z, 1)))),
                lambda g, y, x, z: zmul(g, zmul(y, natural_log(x)))),
    ops.ZMUL:  (lambda g, y, x, z: zmul(g, z),            lambda g, y, x, z: zmul(g, x)),
    ops.MAX:   (lambda g, y, x, z: _shared(g, y, x, z),   lambda g, y, x, z: _shared(g, y, z, x)),
    ops.MIN:   (lambda g, y, x, z: _shared(g, y, x, z),   lambda g, y, x, z: _shared(g, y, z, x)),
    ops.NEG:   (lambda g, y, x: neg(g),),
    ops.ABS:   (lambda g, y, x: b.where(equal(x, 0), b.zeros_like(g), b.where(less(x, 0), neg(g), g)),),
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
    ops.WHERE: (None, lambda g, y, c, x, z: b.where(c, g, b.zeros_like(g)),
                lambda g, y, c, x, z: b.where(c, b.zeros_like(g), g)),
    ops.CAST:  (lambda g, y, x: b.cast(g, x.dtype),),
    ops.RESHAPE: (lambda g, y, x: b.reshape(g, x.shape),),
    ops.PERMUTE: (lambda g, y, x: b.permute(g, _inverse(y.arg)),),
    ops.EXPAND:  (_unexpand,),
    ops.PAD:     (lambda g, y, x: b.shrink(g, tuple((low, shapes.add(low, n)) for (low, _), n in zip(y.arg, x.shape))),),
    ops.SHRINK:  (lambda g, y, x: b.pad(g, tuple((low, shapes.subtract(n, high)) for (low, high), n in zip(y.arg, x.shape))),),
    ops.FLIP:    (lambda g, y, x: b.flip(g, y.arg),),
    ops.WINDOW:   (_unwindow,),
    ops.UNWINDOW: (_window,),
    ops.REDUCE:  (lambda g, y, *x: REDUCE_VJP[y.arg[0]](g, y, *x), None),
    ops.GATHER:  (_scatter_add, None),
    ops.SCATTER: (_scatter_base, None, _scatter_value),
    ops.UPDATE:  (lambda g, y, x, value: b.update(g, b.zeros_like(value), y.arg), _region),
    ops.CONTIGUOUS: (lambda g, y, x: g,),
    ops.COPY:    (_return,),
    ops.STOP:    FLAT,
    **dict.fromkeys((ops.FLOOR, ops.CEIL, ops.TRUNC, ops.RINT, ops.LT, ops.LE, ops.EQ, ops.NE,
                     ops.AND, ops.OR, ops.XOR, ops.NOT, ops.IDIV, ops.MOD, ops.LSHIFT, ops.RSHIFT,
                     ops.THREEFRY, ops.CONST, ops.VARIABLE, ops.SCALAR, ops.BUFFER,
                     ops.PLACEHOLDER, ops.IOTA), FLAT),
}
# Operations with several outputs whose sources share their work: (y, cotangents, needed) -> one per
# source. A cotangent that is None is zero.
WHOLE_VJP: dict[Op, Callable[[Node, Sequence[Node | None], list[bool]], Sequence[Node | None]]] = {}
# fmt: on
# Operations that have none: reached by a cotangent, they raise. `ops.SCATTER` joins for some monoids.
WITHOUT: dict[Op, str] = {ops.BITCAST: "bits do not vary smoothly"}


def _is_float(dtype: Any) -> bool:
    return any(d.is_float for d in dtype) if isinstance(dtype, tuple) else bool(dtype.is_float)


def _reaching(order: Sequence[Node], wanted: Sequence[Node]) -> set[Node]:
    """The wanted nodes, and the nodes through which a cotangent can flow to one of them."""
    reaches = set(wanted)
    for node in order:
        row = VJP.get(node.op, node.src)
        flows = any(s in reaches and rule is not None for s, rule in zip(node.src, row))
        if flows and _is_float(node.dtype):
            reaches.add(node)
    return reaches


def _contributions(node: Node, g: Any, reaches: set[Node]) -> Iterator[tuple[Node, Node | None]]:
    """What the cotangent of a node (one per output if it has several) adds to each source."""
    if node.op in WHOLE_VJP:
        yield from zip(node.src, WHOLE_VJP[node.op](node, g, [s in reaches for s in node.src]))
    elif node.op in VJP:
        for source, rule in zip(node.src, VJP[node.op]):
            if rule is not None and source in reaches:
                yield source, rule(g, node, *node.src)
    else:
        why = WITHOUT.get(node.op, "no rule is written")
        raise NotImplementedError(
            f"{node.op.name} has no derivative ({why}); detach its input if none is wanted"
        )


def gradients(
    outputs: Sequence[Node],
    cotangents: Sequence[Node],
    wanted: Sequence[Node],
    unreached: str = "raise",
) -> list[Node | None]:
    """The derivatives of sum(cotangent * output) by each wanted node, of its shape and dtype.

    outputs, wanted: floating. cotangents: one per output, of its shape and dtype. A wanted node on
    which no output depends (through differentiable operations) is an error, or as `unreached`
    says "zero" or "none" (None). NotImplementedError names an operation without a derivative.
    """
    for node in (*outputs, *wanted):
        if not _is_float(node.dtype):
            raise TypeError(f"only floating tensors have derivatives, not one of {node.dtype}")
    order = toposort(outputs)
    reaches = _reaching(order, wanted)
    found: dict[Node, Any] = {}
    for output, g in zip(outputs, cotangents, strict=True):
        if (g.shape, g.dtype) != (output.shape, output.dtype):
            raise ValueError(
                f"the gradient of an output must have its shape and dtype: {g.dtype} {g.shape} "
                f"for {output.dtype} {output.shape}"
            )
        found[output] = ops.ADD(found[output], g) if output in found else g
    for node in reversed(order):
        if node not in reaches or node not in found:
            continue
        if node.op is ops.OUT:  # one output of several: they meet at their node
            outs = found.setdefault(node.src[0], [None] * len(node.src[0].dtype))
            outs[node.arg] = found[node]
            continue
        for source, g in _contributions(node, found[node], reaches):
            if g is not None:
                found[source] = ops.ADD(found[source], g) if source in found else g
    missing = [i for i, node in enumerate(wanted) if node not in found]
    if missing and unreached == "raise":
        raise ValueError(f"the outputs do not depend on input {missing[0]} of {len(wanted)}")
    if unreached == "zero":
        found |= {wanted[i]: b.zeros_like(wanted[i]) for i in missing}
    return [found.get(node) for node in wanted]
