"""The longer rules of the VJP table in `grad.py`: back through reductions, windows, memory.

Each is `rule(g, y, *sources)`: the part of the cotangent g of the result y that belongs to one of
its sources.
"""

from __future__ import annotations

from collections.abc import Sequence

from treadle.graph import shapes
from treadle.graph.build import (
    Operand,
    alu,
    cast,
    const,
    constant_of,
    expand,
    flip,
    gather,
    iota,
    pad,
    permute,
    reduce,
    reshape,
    scatter,
    shrink,
    unwindow,
    update,
    where,
    window_pair,
    zeros_like,
)
from treadle.ir import ops
from treadle.ir.dtype import int64
from treadle.ir.node import Node, Shape, toposort


def _equal(x: Operand, y: Operand) -> Node:
    return alu(ops.EQ, x, y)


def to_the_chosen(g: Node, y: Node, x: Node, other: Node) -> Node:
    """maximum, minimum: all of g if x is the result, half of it if both are."""
    chosen = where(_equal(x, y), g, 0)
    return where(_equal(x, other), alu(ops.MUL, g, 0.5), chosen)


def to_the_first(g: Node, y: Node, test: Node, x: Node, other: Node) -> Node | None:
    """where: g where the condition holds."""
    return None if _is_always(test, False) else where(test, g, 0)


def to_the_second(g: Node, y: Node, test: Node, x: Node, other: Node) -> Node | None:
    """where: g where the condition does not hold. y = where(z <= 0, 0, z) is at most 0 where z is:
    then it is asked, as others read it anyway, and z need not be in memory."""
    if _is_always(test, True):
        return None
    if test.op is ops.LE and test.src == (other, x) and _is_always(x, 0):
        test = alu(ops.LE, y, x)
    return where(test, 0, g)


def _is_always(x: Node, value: float) -> bool:
    known = constant_of(x)
    return known is not None and bool(known.value == value)


# ---- reductions ----------------------------------------------------------------------------------
def spread(g: Node, y: Node, *sources: Node) -> Node:
    """sum: g (of the shape of the REDUCE y) repeated over the axes that y reduced."""
    shape = y.src[0].shape
    kept = tuple(1 if axis in y.arg[1] else size for axis, size in enumerate(shape))
    return expand(reshape(g, kept), shape)


def to_the_extreme(g: Node, y: Node, x: Node) -> Node:
    """max, min: shared evenly among the elements equal to the extreme (as PyTorch's amax)."""
    tied = cast(_equal(x, spread(y, y)), x.dtype)
    share = alu(ops.DIV, g, reduce("add", tied, y.arg[1]))
    return alu(ops.MUL, spread(share, y), tied)


def to_the_argument(g: Sequence[Node | None], y: Node, x: Node, index: Node) -> Node:
    """argmax, argmin: to the element that was chosen. g has one cotangent per output of y."""
    chosen = _equal(index, spread(ops.OUT(y, arg=1, dtype=y.dtype[1]), y))
    value = zeros_like(x) if g[0] is None else spread(g[0], y)
    return where(chosen, value, 0)


def through_the_product(g: Node, y: Node, x: Node) -> Node:
    """prod: back down a binary tree of products, where each of a pair gets g times the other. That
    is exact with zeros among the factors, to any order."""
    axes, rows = y.arg[1], y.shape
    order = (*(axis for axis in range(len(x.shape)) if axis not in axes), *axes)
    columns = permute(x, order)
    count = shapes.total(columns.shape[len(rows) :])
    width = 1 << max(0, shapes.bounds(count)[1] - 1).bit_length()
    level = reshape(columns, (*rows, count))
    level = pad(level, (*[(0, 0)] * len(rows), (0, shapes.subtract(width, count))), value=1)
    pairs = []
    while width > 1:
        width //= 2
        pairs.append(reshape(level, (*rows, 2, width)))
        level = reduce("mul", pairs[-1], (len(rows),))
    g = reshape(g, (*rows, 1))
    for pair in reversed(pairs):
        below = reshape(g, (*rows, 1, pair.shape[-1]))
        g = alu(ops.MUL, expand(below, pair.shape), flip(pair, (len(rows),)))
        g = reshape(g, (*rows, 2 * pair.shape[-1]))
    inside = shrink(g, [(0, size) for size in (*rows, count)])
    return permute(reshape(inside, columns.shape), inverse(order))


# ---- movement ------------------------------------------------------------------------------------
def inverse(order: Sequence[int]) -> tuple[int, ...]:
    """The permutation that undoes `order`."""
    return tuple(sorted(range(len(order)), key=order.__getitem__))


def of_expand(g: Node, y: Node, x: Node) -> Node:
    """expand: summed over the axes that were stretched."""
    axes = tuple(axis for axis, size in enumerate(x.shape) if size != y.shape[axis])
    return reshape(reduce("add", g, axes), x.shape)


def of_pad(g: Node, y: Node, x: Node) -> Node:
    """pad: without the padding."""
    return shrink(g, [(low, shapes.add(low, n)) for (low, _), n in zip(y.arg, x.shape)])


def of_shrink(g: Node, y: Node, x: Node) -> Node:
    """shrink: zero where nothing was taken."""
    return pad(g, [(low, shapes.subtract(n, high)) for (low, high), n in zip(y.arg, x.shape)])


def of_window(g: Node, y: Node, x: Node) -> Node:
    """The adjoint of WINDOW is UNWINDOW."""
    axis, _, stride, dilation = y.arg
    return unwindow(g, axis, x.shape[axis], stride, dilation)


def of_unwindow(g: Node, y: Node, x: Node) -> Node:
    """The adjoint of UNWINDOW is WINDOW."""
    axis, _, stride, dilation = y.arg
    return window_pair(g, axis, x.shape[axis], stride, dilation)


# ---- memory --------------------------------------------------------------------------------------
def _numbers(shape: Shape, axis: int) -> Node:
    """0, 1 .. along an axis, for every place of a shape."""
    column = tuple(size if each == axis else 1 for each, size in enumerate(shape))
    return expand(reshape(iota(shape[axis], int64), column), shape)


def of_gather(g: Node, y: Node, x: Node, index: Node) -> Node:
    """gather: added up where it was read. If each row read one element, that is a comparison of the
    place with the index: elementwise, so it fuses with whatever else x gets."""
    axis = y.arg
    if index.shape[axis] == 1:
        numbers = _numbers(x.shape, axis)
        checked = gather(numbers, index, axis)  # the index itself; here too it must be in range
        return where(_equal(numbers, checked), g, 0)
    return scatter(zeros_like(x), index, g, axis, "add")


def to_the_base(g: Node, y: Node, base: Node, index: Node, value: Node) -> Node:
    """scatter: what was overwritten has no part in the result."""
    axis, monoid = y.arg
    if monoid in SCATTER_WEIGHTS:
        return alu(ops.ZMUL, g, SCATTER_WEIGHTS[monoid](y)[0])
    return g if monoid == "add" else scatter(g, index, zeros_like(value), axis)


def to_the_value(g: Node, y: Node, base: Node, index: Node, value: Node) -> Node:
    """scatter: of several values for one place the last remains, and it alone has a gradient."""
    axis, monoid = y.arg
    found = gather(g, index, axis)
    if monoid in SCATTER_WEIGHTS:
        return alu(ops.ZMUL, found, SCATTER_WEIGHTS[monoid](y)[1])
    if monoid == "add":
        return found
    number = _numbers(value.shape, axis)
    last = scatter(const(0, int64, base.shape), index, number, axis)
    return where(_equal(gather(last, index, axis), number), found, 0)


def of_the_extreme(y: Node) -> tuple[Node, Node]:
    """scatter with max, min: (d y / d base, d y / d value). All that equal the extreme of a place
    share evenly."""
    base, index, value = y.src
    axis = y.arg[0]
    in_base = cast(_equal(base, y), y.dtype)
    in_value = cast(_equal(value, gather(y, index, axis)), y.dtype)
    count = scatter(in_base, index, in_value, axis, "add")
    return (
        alu(ops.DIV, in_base, count),
        alu(ops.DIV, in_value, gather(count, index, axis)),
    )


def of_the_product(y: Node) -> tuple[Node, Node]:
    """scatter with mul: (d y / d base, d y / d value), the product of all other factors of a place.

    Zeros are left out of the product and counted: there is none among the others, or that is 0.
    """
    base, index, value = y.src
    axis = y.arg[0]
    zero_base, zero_value = (_equal(x, zeros_like(x)) for x in (base, value))
    factors = [where(zero_base, 1, base), where(zero_value, 1, value)]
    product = scatter(factors[0], index, factors[1], axis, "mul")
    counts = [cast(zero, int64) for zero in (zero_base, zero_value)]
    zeros = scatter(counts[0], index, counts[1], axis, "add")
    others = (
        alu(ops.DIV, product, factors[0]),
        alu(ops.DIV, gather(product, index, axis), factors[1]),
    )
    return (
        where(_equal(zeros, counts[0]), others[0], 0),
        where(_equal(gather(zeros, index, axis), counts[1]), others[1], 0),
    )


# monoid of a scatter whose derivative is a factor for each element -> those of base and value
SCATTER_WEIGHTS = {"max": of_the_extreme, "min": of_the_extreme, "mul": of_the_product}


def outside_the_region(g: Node, y: Node, x: Node, value: Node) -> Node:
    """update: zero where x was replaced."""
    return update(g, zeros_like(value), y.arg)


def in_the_region(g: Node, y: Node, x: Node, value: Node) -> Node:
    """update: the elements that were written."""
    reaches = [
        shapes.add(shapes.multiply(shapes.subtract(count, 1), step), 1)
        for (_, step), count in zip(y.arg, value.shape)
    ]
    g = shrink(g, [(start, shapes.add(start, reach)) for (start, _), reach in zip(y.arg, reaches)])
    for axis, ((_, step), count) in enumerate(zip(y.arg, value.shape)):
        if step != 1:
            g = reshape(g, (*g.shape[: axis + 1], 1, *g.shape[axis + 1 :]))
            g = window_pair(g, axis, count, step, 1)
            g = reshape(g, (*g.shape[: axis + 1], *g.shape[axis + 2 :]))
    return g


def to_the_device(g: Node, y: Node, x: Node) -> Node:
    """copy: back to the device of x, which its nearest leaf or copy names."""
    nearest = next(node for node in reversed(toposort(x)) if node.op in (ops.BUFFER, ops.COPY))
    return ops.COPY(g, arg=nearest.arg[2] if nearest.op is ops.BUFFER else nearest.arg)
