"""The monoids over which a reduction folds: an identity and an associative `combine`.

A monoid may carry a tuple of state (argmax: value and index). `combine` is written with nodes, so a
reduction over any of these needs no special case in any backend; the interpreter folds it too. The
order in which states are combined is not promised: `combine` must be commutative too.

A monoid is named in programs by its name in `MONOIDS`, or, if it is not in that table, by a node
that says all of it: `SINK(combined..)` over two states of PLACEHOLDERs, the bits of the identity as
its arg (`written`). `find` gives the monoid of either.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from typing import Any, NamedTuple

from treadle.ir import ops
from treadle.ir.dtype import DType, void
from treadle.ir.node import Node, remember, toposort

State = tuple[Node, ...]


class Monoid(NamedTuple):
    """name; size of the state; identity(component, dtype) as a Python value; combine(a, b).

    enter: the state of one value, as users of the monoid mean it (the count 1 and the mean x of
    Welford's): from the values that a user gives to a whole state. None: they give the state.
    """

    name: str
    size: int
    identity: Callable[[int, DType], int | float | bool]
    combine: Callable[[State, State], State]
    enter: Callable[[State], State] | None = None


def find(which: Any) -> Monoid:
    """The monoid of a name or of a node. KeyError if there is none of that name."""
    if isinstance(which, Node):
        monoid: Monoid = remember(which, "monoid", _of_node)
        return monoid
    return MONOIDS[which]


def known(which: Any) -> bool:
    """Whether a program may name a monoid like this."""
    if isinstance(which, Node):
        identity = which.arg
        return which.op is ops.SINK and isinstance(identity, tuple) and bool(which.src)
    return which in MONOIDS


def spell(which: Any) -> str:
    """What a monoid is called in names and in text."""
    return "fold" if isinstance(which, Node) else str(which)


def written(combined: Sequence[Node], identity: Sequence[int | float | bool]) -> Node:
    """The node that says all of a monoid. combined: over PLACEHOLDERs (number, ()), those of one
    state numbered from 0, those of the other after them."""
    bits = tuple([node.dtype.to_bits(value) for node, value in zip(combined, identity)])
    return Node(ops.SINK, void, tuple(combined), bits)


def places(dtypes: Sequence[DType]) -> tuple[State, State]:
    """Two states of PLACEHOLDERs, as `written` takes them."""
    size = len(dtypes)
    nodes = [
        Node(ops.PLACEHOLDER, dtype, (), (number, ()))
        for number, dtype in enumerate((*dtypes, *dtypes))
    ]
    return tuple(nodes[:size]), tuple(nodes[size:])


def _of_node(sink: Node) -> Monoid:
    roots, identity = sink.src, sink.arg
    order = toposort(roots)
    first, second = places([root.dtype for root in roots])

    def combine(a: State, b: State) -> State:
        made: dict[Node, Node] = dict(zip((*first, *second), (*a, *b)))
        for node in order:
            if node not in made:
                made[node] = node.with_src(tuple([made[source] for source in node.src]))
        return tuple([made[root] for root in roots])

    def value(component: int, dtype: DType) -> int | float | bool:
        found: int | float | bool = dtype.from_bits(identity[component])
        return found

    return Monoid("fold", len(roots), value, combine)


# ---- extremes with their place -------------------------------------------------------------------
def _not_number(x: Node) -> Node:
    return ops.NE(x, x)


def _arg_extreme(before: Callable[[Node, Node], Node]) -> Callable[[State, State], State]:
    """(value, index) pairs: the extreme value, of equals the lowest index; a NaN beats numbers."""

    def combine(a: State, b: State) -> State:
        (x, i), (y, j) = a, b
        earlier = ops.LT(j, i)
        wins = before(x, y)  # y is strictly better
        tied = ops.EQ(x, y)
        if x.dtype.is_float:
            x_nan, y_nan = _not_number(x), _not_number(y)
            wins = ops.OR(wins, ops.AND(y_nan, ops.NOT(x_nan)))
            tied = ops.OR(tied, ops.AND(x_nan, y_nan))
        take = ops.OR(wins, ops.AND(tied, earlier))
        return ops.WHERE(take, y, x, dtype=x.dtype), ops.WHERE(take, j, i, dtype=i.dtype)

    return combine


def _before_max(x: Node, y: Node) -> Node:
    if x.dtype.kind == "b":
        return ops.AND(y, ops.NOT(x))
    return ops.LT(x, y)


def _before_min(x: Node, y: Node) -> Node:
    return _before_max(y, x)


# ---- sums that are carried as more than a number -------------------------------------------------
def _const(value: float, dtype: DType) -> Node:
    return Node(ops.CONST, dtype, (), dtype.to_bits(value))


def _weighted(a: State, b: State) -> State:
    """(m, s..) stands for the sums e**m * s. With M the greater m, s = e**(m-M)*s + e**(n-M)*t. The
    factor of the greater one is 1 even where it is infinite, so that nothing is -inf - -inf; two
    NaN stay NaN."""
    (m, *sums), (n, *others) = a, b
    most = ops.MAX(m, n)
    one = _const(1, m.dtype)
    p, q = (
        ops.WHERE(ops.EQ(x, most), one, ops.EXP(ops.SUB(x, most)), dtype=x.dtype) for x in (m, n)
    )
    added = (ops.ADD(ops.MUL(p, s), ops.MUL(q, t)) for s, t in zip(sums, others))
    return (most, *added)


def _welford(a: State, b: State) -> State:
    """(count, mean, sum of squared distances from it). Of two: with d the distance of the means,

        n = n1 + n2    mean = mean1 + d * n2/n    m2 = m2_1 + m2_2 + d**2 * n1 * n2/n

    (Chan, Golub and LeVeque, 1979). Where d overflows the mean is weighted; an infinite value gives
    the mean that a sum has, and its m2 is NaN from the beginning (`_count_one`).
    """
    (n1, mean1, m2_1), (n2, mean2, m2_2) = a, b
    n = ops.ADD(n1, n2)
    zero, one = _const(0, n.dtype), _const(1, n.dtype)
    w1, w2 = (ops.DIV(k, ops.MAX(n, one)) for k in (n1, n2))
    d = ops.SUB(mean2, mean1)
    finite = ops.EQ(ops.SUB(d, d), zero)
    stepped = ops.ADD(mean1, ops.MUL(d, w2))
    weighted = ops.ADD(ops.MUL(mean1, w1), ops.MUL(mean2, w2))
    mean = ops.WHERE(finite, stepped, weighted, dtype=d.dtype)
    m2 = ops.ADD(ops.ADD(m2_1, m2_2), ops.MUL(ops.MUL(d, d), ops.MUL(n1, w2)))
    first, second = ops.EQ(n2, zero), ops.EQ(n1, zero)  # a state beside an empty one stays
    mean, m2 = (
        ops.WHERE(first, x, ops.WHERE(second, y, both, dtype=x.dtype), dtype=x.dtype)
        for x, y, both in ((mean1, mean2, mean), (m2_1, m2_2, m2))
    )
    return n, mean, m2


def _count_one(x: State) -> State:
    """One number in Welford's state: an infinite one has no distance from itself."""
    return _const(1, x[0].dtype), x[0], ops.SUB(x[0], x[0])


def _simple(name: str, op: ops.Op, identity: Callable[[DType], int | float | bool]) -> Monoid:
    return Monoid(name, 1, lambda _, d: identity(d), lambda a, b: (op(a[0], b[0]),))


MONOIDS: dict[str, Monoid] = {
    monoid.name: monoid
    for monoid in (
        _simple("add", ops.ADD, lambda d: 0),
        _simple("mul", ops.MUL, lambda d: 1),
        _simple("max", ops.MAX, lambda d: d.min),
        _simple("min", ops.MIN, lambda d: d.max),
        _simple("and", ops.AND, lambda d: -1 if d.kind == "i" else d.max),
        _simple("or", ops.OR, lambda d: 0),
        Monoid("argmax", 2, lambda c, d: d.max if c else d.min, _arg_extreme(_before_max)),
        Monoid("argmin", 2, lambda c, d: d.max, _arg_extreme(_before_min)),
        # log of the sum of e**x: (greatest x, sum of e**(x - greatest)); the result is m + log(s)
        Monoid(
            "logsumexp", 2, lambda c, d: 0 if c else -inf, _weighted,
            enter=lambda x: (x[0], _const(1, x[0].dtype)),
        ),
        # (count, mean, sum of squared distances from the mean) of x
        Monoid("welford", 3, lambda c, d: 0, _welford, enter=_count_one),
        # values v weighted by e**x: (greatest x, sum of e**(x - greatest), sum of e**(..) * v); the
        # mean is o / s
        Monoid(
            "softmax", 3, lambda c, d: 0 if c else -inf, _weighted,
            enter=lambda x: (x[0], _const(1, x[0].dtype), x[1]),
        ),
    )
}  # fmt: skip
