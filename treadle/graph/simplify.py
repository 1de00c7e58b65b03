"""What is done to a graph before it is scheduled: a table of rules, and two passes over the whole.

A rule looks at one node and its sources, and keeps every value bit for bit under our numerics:
nothing is reassociated, x * 0 stays (x may be inf), -0.0 is not 0.0. Exceptions name themselves in
their algebra: a sum may be added up in any order, so a sum of n equal numbers may be their product
with n, which is rounded once.

The passes need to know who else uses a node: loops that run side by side become one, and a
reduction of a reduction becomes one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from treadle.graph import shapes
from treadle.graph.body import parameters_like, substitute
from treadle.graph.build import (
    alu,
    cast,
    const,
    constant_of,
    dim_value,
    expand,
    flip,
    gather,
    pad,
    permute,
    reshape,
    shrink,
    where,
)
from treadle.graph.call import again, inline_output
from treadle.graph.narrow import widened
from treadle.graph.pairs import paired
from treadle.ir import ops
from treadle.ir.dtype import DType, bool_, int64
from treadle.ir.monoid import find
from treadle.ir.node import Node, Shape, map_arg, toposort
from treadle.ir.ops import Op
from treadle.ir.rewrite import Rules, hits, rewrite

RULES = Rules("graph")
rule = RULES.rule

rule("inline", ops.OUT, algebra="call(body, x) -> body(x)")(inline_output)


def simplify(roots: Iterable[Node]) -> list[Node]:
    """Roots with the same values, from fewer and cheaper operations. Derivatives are taken before:
    `stop_gradient` goes here. Linear in the size of the graph."""
    return _merged(rewrite(widened(paired(list(roots))), RULES))


def _merged(roots: Sequence[Node]) -> list[Node]:
    return merge_reductions(merge_loops(roots))


# ---- elementwise ---------------------------------------------------------------------------------
_ARITHMETIC = tuple(
    op
    for op in ops.TABLE.values()
    if op.kind == "alu" and "g" in op.stages and op.meaning and op.dtype != "given"
)


@rule("fold", *_ARITHMETIC, algebra="op(constants) -> constant; x + 0, x * 1 .. -> x if exact")
def _fold(node: Node) -> Node | None:
    for source in node.src:
        if source.op in (ops.CONST, ops.EXPAND) and constant_of(source) is not None:
            return alu(node.op, *node.src)
    return None


@rule("stop", ops.STOP, algebra="stop_gradient(x) -> x")
def _stop(node: Node) -> Node | None:
    return node.src[0]


@rule("again", ops.AGAIN, algebra="again(constant) -> constant; again(move(x)) -> move(again(x))")
def _again(node: Node) -> Node | None:
    x, after = node.src
    if x.op in (ops.CONST, ops.VARIABLE, ops.IOTA):
        return x
    return again(x, after) if x.op.kind == "movement" else None


@rule("kernel", ops.KERNEL, algebra="the derivative of a kernel -> its name")
def _kernel(node: Node) -> Node | None:
    sink, shapes, derivative = node.arg
    if isinstance(derivative, str):
        return None
    return Node(node.op, node.dtype, node.src, (sink, shapes, derivative.name))


@rule("twice", ops.NOT, ops.NEG, algebra="~~x -> x, --x -> x")
def _twice(node: Node) -> Node | None:
    return node.src[0].src[0] if node.src[0].op is node.op else None


@rule("not equal", ops.NOT, algebra="~(x == y) -> x != y, ~(x != y) -> x == y, NaN or not")
def _not_equal(node: Node) -> Node | None:
    test = node.src[0]
    opposite = {ops.EQ: ops.NE, ops.NE: ops.EQ}.get(test.op)
    return None if opposite is None else opposite(*test.src)


@rule("add negative", ops.ADD, algebra="x + -y -> x - y, -x + y -> y - x")
def _add_negative(node: Node) -> Node | None:
    x, y = node.src
    if y.op is ops.NEG:
        return ops.SUB(x, y.src[0])
    return ops.SUB(y, x.src[0]) if x.op is ops.NEG else None


@rule("subtract negative", ops.SUB, algebra="x - -y -> x + y")
def _subtract_negative(node: Node) -> Node | None:
    x, y = node.src
    return ops.ADD(x, y.src[0]) if y.op is ops.NEG else None


@rule("idempotent", ops.MAX, ops.MIN, ops.AND, ops.OR, algebra="max(x, x) -> x, x & x -> x ..")
def _idempotent(node: Node) -> Node | None:
    return node.src[0] if node.src[0] is node.src[1] else None


@rule("known factor", ops.ZMUL, algebra="zmul(c, d) -> c * d for a constant c; 0 if c is 0")
def _known_factor(node: Node) -> Node | None:
    known = constant_of(node.src[0])
    if known is None:
        return None
    return const(0, node.dtype, node.shape) if known.value == 0 else alu(ops.MUL, *node.src)


@rule("decided", ops.WHERE, algebra="where(c, x, x) -> x; where(constant, x, y) -> x or y")
def _decided(node: Node) -> Node | None:
    test, x, y = node.src
    known = constant_of(test)
    if known is None:
        return x if x is y else None
    return x if known.value else y


@rule("negated", ops.WHERE, algebra="where(~c, x, y) -> where(c, y, x)")
def _negated(node: Node) -> Node | None:
    test, x, y = node.src
    return where(test.src[0], y, x) if test.op is ops.NOT else None


@rule("nested", ops.WHERE, algebra="where(c, where(c, x, _), where(c, _, y)) -> where(c, x, y)")
def _nested(node: Node) -> Node | None:
    test, x, y = node.src
    if x.op is ops.WHERE and x.src[0] is test:
        return where(test, x.src[1], y)
    if y.op is ops.WHERE and y.src[0] is test:
        return where(test, x, y.src[2])
    return None


# ---- casts ---------------------------------------------------------------------------------------
_FRACTION = {
    "float8_e4m3": 4,
    "float8_e5m2": 3,
    "float16": 11,
    "bfloat16": 8,
    "float32": 24,
    "float64": 53,
}
_EXPONENT = {
    "float8_e4m3": 4,
    "float8_e5m2": 5,
    "float16": 5,
    "bfloat16": 8,
    "float32": 8,
    "float64": 11,
}


def holds(wide: DType, small: DType) -> bool:
    """Whether every value of `small` is a value of `wide`."""
    if wide is small or small is bool_:
        return True
    if small.is_float:
        fits = wide.is_float and _FRACTION[wide.name] >= _FRACTION[small.name]
        return fits and _EXPONENT[wide.name] >= _EXPONENT[small.name]
    digits = small.bits - (small.kind == "i")
    if wide.is_float:
        return digits <= _FRACTION[wide.name]
    if small.kind == "i":
        return wide.kind == "i" and wide.bits >= small.bits
    return wide.is_int and digits <= wide.bits - (wide.kind == "i")


@rule("cast chain", ops.CAST, algebra="cast(cast(x, b), c) -> cast(x, c) if b holds every x")
def _cast_chain(node: Node) -> Node | None:
    if node.src[0].op is not ops.CAST:
        return None
    (x,) = node.src[0].src
    first, between, last = x.dtype, node.src[0].dtype, node.dtype
    if first.kind == "x" or last.kind == "x" or not holds(between, first):
        return None
    # an integer that does not fit wraps; a float that does not fit saturates
    if between.is_float and first.is_int and last.is_int and not holds(last, first):
        return None
    return cast(x, last)


@rule("cast constant", ops.CAST, algebra="cast(constant) -> constant")
def _cast_constant(node: Node) -> Node | None:
    return cast(node.src[0], node.dtype) if node.src[0].dtype.kind != "x" else None


# ---- movement ------------------------------------------------------------------------------------
_MOVES: dict[Op, Callable[[Node, Any], Node]] = {
    ops.RESHAPE: reshape,
    ops.PERMUTE: permute,
    ops.EXPAND: expand,
    ops.PAD: pad,
    ops.SHRINK: shrink,
    ops.FLIP: flip,
}


@rule("same movement", *_MOVES, algebra="reshape(reshape(x)) -> reshape(x), and so every movement")
def _same_movement(node: Node) -> Node | None:
    if node.src[0].op is not node.op and node.shape != node.src[0].shape:
        return None
    return _MOVES[node.op](node.src[0], node.arg)


@rule(
    "still",
    *(ops.RESHAPE, ops.PERMUTE, ops.SHRINK, ops.FLIP, ops.WINDOW),
    algebra="a movement of a constant -> the constant",
)
def _still(node: Node) -> Node | None:
    known = constant_of(node.src[0])
    if known is None or (node.op is ops.RESHAPE and node.src[0] is known):
        return None
    return const(known.value, node.dtype, node.shape)


@rule("zeros", ops.PAD, ops.UNWINDOW, algebra="pad, unwindow of 0 or nothing -> 0")
def _zeros(node: Node) -> Node | None:
    known = constant_of(node.src[0])
    is_zero = known is not None and known.arg == 0
    if not is_zero and not shapes.is_empty(node.src[0].shape):
        return None
    return const(0, node.dtype, node.shape)


@rule("shrink of pad", ops.SHRINK, algebra="shrink(pad(x)) -> pad(shrink(x)): what each leaves")
def _shrink_of_pad(node: Node) -> Node | None:
    if node.src[0].op is not ops.PAD:
        return None
    (x,) = node.src[0].src
    kept: list[tuple[Any, Any]] = []
    added: list[tuple[Any, Any]] = []
    for (start, stop), (low, _), size in zip(node.arg, node.src[0].arg, x.shape):
        end = shapes.add(low, size)
        # each end of the region must be known to lie in x, or in the padding beside it
        first_inside, last_inside = shapes.at_most(low, start), shapes.at_most(stop, end)
        meets = shapes.at_most(start, end) and shapes.at_most(low, stop)
        if first_inside is None or last_inside is None or meets is not True:
            return None
        first = start if first_inside else low
        last = stop if last_inside else end
        kept.append((shapes.subtract(first, low), shapes.subtract(last, low)))
        added.append((shapes.subtract(first, start), shapes.subtract(stop, last)))
    return pad(shrink(x, kept), added)


# ---- nothing to do -------------------------------------------------------------------------------
# The builders leave these: a derivative flows through them, although it is empty.
@rule("empty", ops.SCATTER, ops.UPDATE, algebra="x with nothing put into it -> x")
def _empty(node: Node) -> Node | None:
    return node.src[0] if shapes.is_empty(node.src[1].shape) else None


@rule("empty reduce", ops.REDUCE, algebra="the fold of nothing -> the monoid's identity")
def _empty_reduce(node: Node) -> Node | None:
    monoid, axes = node.arg
    if len(node.src) > 1 or all(node.src[0].shape[axis] != 0 for axis in axes):
        return None
    return const(find(monoid).identity(0, node.dtype), node.dtype, node.shape)


# ---- reduce --------------------------------------------------------------------------------------
_IDEMPOTENT = ("max", "min", "and", "or")


@rule(
    "reduce of expand",
    ops.REDUCE,
    algebra="max of n equal x -> x (min, and, or too); sum of n equal x -> n * x, rounded once",
)
def _reduce_of_expand(node: Node) -> Node | None:
    monoid, axes = node.arg
    source = node.src[0]
    if source.op is not ops.EXPAND or monoid not in (*_IDEMPOTENT, "add"):
        return None
    (x,) = source.src
    sizes = source.shape
    stretched = [a for a in axes if x.shape[a] == 1 and shapes.at_most(1, sizes[a]) is True]
    if not stretched or (monoid == "add" and node.dtype.accumulator is not node.dtype):
        return None
    others = tuple(axis for axis in axes if axis not in stretched)
    rest = tuple(1 if axis in stretched else size for axis, size in enumerate(sizes))
    one = expand(x, rest)
    folded = Node(ops.REDUCE, node.dtype, (one,), (monoid, others)) if others else one
    folded = reshape(folded, node.shape)
    if monoid != "add":
        return folded
    total = alu(ops.MUL, folded, _count([sizes[axis] for axis in stretched], node.dtype))
    return total if others else _as_sum(total)


def _as_sum(x: Node) -> Node:
    """A value as a sum has it: a float sum begins with 0, so it is never -0.0."""
    return alu(ops.ADD, x, 0) if x.dtype.is_float else x


def _count(sizes: Sequence[Any], dtype: DType) -> Node:
    """The product of sizes as a number of `dtype`; of an integer dtype it wraps."""
    total = shapes.total(sizes)
    if isinstance(total, Node) or dtype.is_float:
        return dim_value(total, dtype)
    return Node(ops.CONST, dtype, (), dtype.to_bits(total))


_LEAVES = (ops.BUFFER, ops.PLACEHOLDER, ops.CONTIGUOUS, ops.COPY, ops.AGAIN)


@rule(
    "indicator",
    ops.REDUCE,
    algebra="sum over r of where(r == a, f[r], 0) -> where(0 <= a < n, f[a], 0) for an f in memory",
)
def _indicator(node: Node) -> Node | None:
    monoid, axes = node.arg
    chosen = node.src[0]
    if monoid != "add" or len(axes) != 1 or chosen.op is not ops.WHERE:
        return None
    test, f, other = chosen.src
    zero = constant_of(other)
    if test.op is not ops.EQ or f.op not in _LEAVES or zero is None or zero.value != 0:
        return None
    (axis,) = axes
    for number, wanted in (test.src, test.src[::-1]):
        constant_along = wanted.op is ops.EXPAND and wanted.src[0].shape[axis] == 1
        if constant_along and _counts_along(number, axis):
            return _as_sum(reshape(_element(f, wanted.src[0], axis), node.shape))
    return None


def _element(f: Node, index: Node, axis: int) -> Node:
    """The sum, with zeros, of the element of each row of f that the index names, if it is there."""
    row = (*f.shape[:axis], 1, *f.shape[axis + 1 :])
    place = cast(expand(index, row), int64)
    below = alu(ops.LT, place, dim_value(f.shape[axis], int64))
    inside = alu(ops.AND, alu(ops.LE, 0, place), below)
    found = where(inside, gather(f, where(inside, place, 0), axis), 0)
    return alu(ops.ADD, found, 0)  # a sum of -0.0 and zeros is 0.0


def _counts_along(x: Node, axis: int) -> bool:
    """Whether x is 0, 1 .. along an axis, of an integer type, for every place of its shape."""
    if x.op is ops.EXPAND:
        x = x.src[0]
    if any(size != 1 for number, size in enumerate(x.shape) if number != axis):
        return False
    if x.op is ops.RESHAPE:
        x = x.src[0]
    return x.op is ops.IOTA and len(x.shape) == 1


@rule("known branch", ops.OUT, algebra="cond(constant, x, y) -> x or y; the test of a cond -> it")
def _known_branch(node: Node) -> Node | None:
    loop = node.src[0]
    if loop.op is not ops.COND:
        return None
    test, *operands = loop.src
    if node.arg == 0:
        return test
    known = constant_of(test)
    if known is None:
        return None
    body = loop.arg[0 if known.value else 1]
    return substitute([body.src[node.arg - 1]], dict(zip(parameters_like(operands), operands)))[0]


# ---- passes --------------------------------------------------------------------------------------
def merge_loops(roots: Sequence[Node]) -> list[Node]:
    """SCANs with equal sources and equal carries as one, which returns what is read of either: a
    loop and the run that its derivative needs differ in nothing but their results. Results that
    nobody reads go. Bodies are treated in the same way."""
    order = toposort(roots)
    if not any(node.op in _WITH_BODIES for node in order):
        return list(roots)
    wanted: dict[Any, dict[Node, int]] = {}  # loop -> result in the body -> its output number
    for node in order:
        if node.op is ops.OUT and node.src[0].op is ops.SCAN:
            body, carries = node.src[0].arg[:2]
            results = wanted.setdefault(_loop_key(node.src[0]), {})
            if node.arg >= carries:
                results.setdefault(body.src[node.arg], carries + len(results))
    done: dict[Node, Node] = {}
    merged: dict[Any, Node] = {}
    for node in order:
        src = tuple([done[s] for s in node.src])
        if node.op is ops.SCAN:
            key = _loop_key(node)
            if key in merged:
                hits["graph.merge loops"] += 1
            else:
                merged[key] = _with_results(node, src, list(wanted.get(key, ())))
            done[node] = merged[key]
        elif node.op is ops.OUT and node.src[0].op is ops.SCAN:
            body, carries = node.src[0].arg[:2]
            results = wanted[_loop_key(node.src[0])]
            number = node.arg if node.arg < carries else results[body.src[node.arg]]
            done[node] = Node(ops.OUT, node.dtype, src, number)
        elif node.op in _WITH_BODIES:
            arg = map_arg(node.arg, lambda body: body.with_src(tuple(_merged(body.src))))
            done[node] = Node(node.op, node.dtype, src, arg)
        else:
            done[node] = node.with_src(src)
    return [done[root] for root in roots]


_WITH_BODIES = (ops.SCAN, ops.WHILE, ops.COND)


def _loop_key(loop: Node) -> Any:
    body, carries, *rest = loop.arg
    return (loop.src, body.src[:carries], *rest)


def _with_results(loop: Node, src: tuple[Node, ...], results: Sequence[Node]) -> Node:
    """A SCAN with other sources, and with these results of its body."""
    body, carries, *rest = loop.arg
    inner = _merged([*body.src[:carries], *results])
    sink = Node(ops.SINK, body.dtype, tuple(inner))
    return Node(ops.SCAN, tuple([r.dtype for r in inner]), src, (sink, carries, *rest))


def merge_reductions(roots: Sequence[Node]) -> list[Node]:
    """A reduction of a reduction by the same monoid, with nothing but permutations and axes of size
    1 between, as one: sum over i of sum over j -> sum over (i, j), if nobody else reads the inner.
    """
    order = toposort(roots)
    if sum(node.op is ops.REDUCE for node in order) < 2:
        return list(roots)
    users = Counter(roots)
    for node in order:
        users.update(node.src)
    done: dict[Node, Node] = {}
    for node in order:
        new = node.with_src(tuple([done[s] for s in node.src]))
        if node.op is ops.REDUCE and len(node.src) == 1:
            new = _one_reduction(node, done, users) or new
        done[node] = new
    return [done[root] for root in roots]


def _one_reduction(node: Node, done: dict[Node, Node], users: Counter[Node]) -> Node | None:
    """The REDUCE `node` with the one below it, if there is one that only it reads."""
    below = node.src[0]
    # where each axis of node's source stands in `below`; None: it is an axis of size 1
    places: list[int | None] = list(range(len(below.shape)))
    while below.op in (ops.PERMUTE, ops.RESHAPE) and users[below] == 1:
        if below.op is ops.PERMUTE:
            lower: list[int | None] = list(below.arg)
        else:
            found = _between_ones(below.src[0].shape, below.shape)
            if found is None:
                return None
            lower = found
        places = [None if place is None else lower[place] for place in places]
        below = below.src[0]
    if below.op is not ops.REDUCE or below.arg[0] != node.arg[0] or users[below] != 1:
        return None
    # the inner one may have become a longer reduction already, then what it was is permuted below
    inner = done[below]
    if inner.op is not ops.REDUCE:
        return None
    rank = len(inner.src[0].shape)
    kept = [axis for axis in range(rank) if axis not in inner.arg[1]]
    outer = [kept[place] for axis in node.arg[1] if (place := places[axis]) is not None]
    axes = tuple(sorted((*inner.arg[1], *outer)))
    hits["graph.merge reductions"] += 1
    total = Node(ops.REDUCE, node.dtype, inner.src, (node.arg[0], axes))
    left = [p for axis, p in enumerate(places) if axis not in node.arg[1] and p is not None]
    remaining = [axis for axis in range(rank) if axis not in axes]
    order = [remaining.index(kept[place]) for place in left]
    ones = [number for number in range(len(remaining)) if number not in order]
    return reshape(permute(total, (*order, *ones)), node.shape)


def _between_ones(old: Shape, new: Shape) -> list[int | None] | None:
    """For a reshape that only adds or takes away axes of size 1: the old axis of each new one, None
    for one of size 1. None if it does more."""
    long = [axis for axis, size in enumerate(old) if size != 1]
    if [old[axis] for axis in long] != [size for size in new if size != 1]:
        return None
    rest = iter(long)
    return [next(rest) if size != 1 else None for size in new]
