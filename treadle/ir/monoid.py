"""The monoids over which a reduction folds: an identity and an associative `combine`.

A monoid may carry a tuple of state (argmax: value and index). `combine` is written with nodes, so a
reduction over any of these needs no special case in any backend; the interpreter folds it too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from treadle.ir import ops
from treadle.ir.dtype import DType
from treadle.ir.node import Node

State = tuple[Node, ...]


@dataclass(frozen=True)
class Monoid:
    """name; size of the state; identity(component, dtype) as a Python value; combine(a, b)."""

    name: str
    size: int
    identity: Callable[[int, DType], int | float | bool]
    combine: Callable[[State, State], State]


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
    )
}
