"""Integer algebra: addresses, dimensions, and conditions on them, in canonical form.

A value is an int or a node of dtype `index`. Every constructor folds as it builds, so no pass ever
simplifies an index: equal polynomials are the same node, and a constant is a CONST.

    value = constant + sum of (factor * atom)           ISUM, atoms in structural order
    atom  = RANGE | VARIABLE | any other node of dtype index
          | product of two or more atoms                IPROD, sorted; products distribute over sums
          | floor(value / positive) | value mod positive                            IFLOOR, IMOD
          | max(value, value) | min(value, value)       IMAX, IMIN, unless bounds decide

A divisor must be positive. Where one may be 0 (a Variable that may be 0), a quotient or remainder
has no promised value at that point; `evaluate` gives 0 there, as integer division does everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from math import gcd
from typing import Any

from treadle.ir import ops
from treadle.ir.arithmetic import (
    Index,
    Parts,
    Terms,
    add,
    as_int,
    as_node,
    bounds,
    built,
    coefficient,
    const,
    dim,
    floordiv,
    is_negative,
    mod,
    mul,
    never_negative,
    order,
    product,
    range_,
    remembered,
    split,
    sub,
    terms,
    variable,
    variables,
)
from treadle.ir.dtype import bool_
from treadle.ir.dtype import index as INDEX
from treadle.ir.node import Node, arg_nodes, map_arg
from treadle.ir.spell import evaluate, spell

__all__ = [
    "FALSE", "TRUE", "Index", "add", "as_int", "as_node", "both", "bounds", "coefficient", "const",
    "dim", "eq", "evaluate", "floordiv", "is_dim", "le", "lt", "maximum", "minimum", "mod", "mul",
    "product", "range_", "rebuild", "same", "spell", "split", "sub", "substitute", "terms",
    "variable", "variables",
]  # fmt: skip

TRUE = Node(ops.CONST, bool_, (), 1)
FALSE = Node(ops.CONST, bool_, (), 0)

ops.dimension_algebra.update(add=lambda a, b: dim(add(a, b)), sub=lambda a, b: dim(sub(a, b)))


def is_dim(value: Any) -> bool:
    """Whether it may stand in a shape: an int that is not negative, or an index node that is not
    constant."""
    if isinstance(value, Node):
        return value.dtype is INDEX and value.op is not ops.CONST
    return type(value) is int and value >= 0


def same(a: Index, b: Index) -> bool:
    """Whether two dimensions are equal, whatever their variables are.

    ValueError if they are equal for some values of the variables and not for others."""
    if a is b:
        return True
    condition = eq(a, b)
    if condition.op is ops.CONST:
        return bool(condition.arg)
    raise ValueError(
        f"cannot decide whether the dimensions {spell(a)} and {spell(b)} are equal: "
        "it depends on the values of their variables"
    )


# ---- maximum, minimum and conditions -------------------------------------------------------------
def maximum(a: Index, b: Index) -> Node:
    """The greater of two values."""
    return _extreme(ops.IMAX, as_node(a), as_node(b))


def minimum(a: Index, b: Index) -> Node:
    """The lesser of two values."""
    return _extreme(ops.IMIN, as_node(a), as_node(b))


def _extreme(op: ops.Op, a: Node, b: Node) -> Node:
    if never_negative(sub(a, b)):
        return a if op is ops.IMAX else b
    if never_negative(sub(b, a)):
        return b if op is ops.IMAX else a
    return Node(op, INDEX, tuple(sorted((a, b), key=order)))


@remembered
def lt(a: Index, b: Index) -> Node:
    """a < b as a bool node; a CONST where the bounds decide. Equal conditions are equal nodes:
    terms stand where their factor is positive, divided by what the factors have in common."""
    difference = sub(a, b)  # is it negative?
    if never_negative(difference):
        return FALSE
    if is_negative(difference):
        return TRUE
    constant, parts = terms(difference)
    common = gcd(*[factor for factor, _ in parts])
    limit = constant // common  # common*x + constant < 0  <=>  x < ceil(-constant/common)
    left, right = _sides(parts, common)
    if not left:
        return Node(ops.LT, bool_, (const(limit), built(0, right)))
    return Node(ops.LT, bool_, (built(0, left), built(-limit, right)))


def le(a: Index, b: Index) -> Node:
    """a <= b as a bool node, folded as in `lt`."""
    return lt(a, add(b, 1))


@remembered
def eq(a: Index, b: Index) -> Node:
    """a == b as a bool node, folded as in `lt`."""
    difference = sub(a, b)
    if difference.op is ops.CONST:
        return TRUE if difference.arg == 0 else FALSE
    if is_negative(difference) or is_negative(sub(b, a)):
        return FALSE
    constant, parts = terms(difference)
    common = gcd(*[factor for factor, _ in parts])
    if constant % common:
        return FALSE
    sign = common if parts[0][0] > 0 else -common
    left, right = _sides(parts, sign)
    return Node(ops.EQ, bool_, (built(0, left), built(-constant // sign, right)))


def _sides(parts: Parts, divisor: int) -> tuple[Terms, Terms]:
    """(left, right), with positive factors: the sum of the parts = divisor * (left - right)."""
    left: Terms = {}
    right: Terms = {}
    for factor, atom in parts:
        factor //= divisor
        if factor > 0:
            left[atom] = factor
        else:
            right[atom] = -factor
    return left, right


def both(*conditions: Node) -> Node:
    """All conditions hold: CONST False if one is, without those that are True or stand twice."""
    parts: set[Node] = set()
    pending = list(conditions)
    while pending:
        condition = pending.pop()
        if condition is FALSE:
            return FALSE
        if condition.op is ops.AND:
            pending.extend(condition.src)
        elif condition is not TRUE:
            parts.add(condition)
    if not parts:
        return TRUE
    first, *others = sorted(parts, key=order)
    for other in others:
        first = Node(ops.AND, bool_, (first, other))
    return first


# ---- substitution --------------------------------------------------------------------------------
_CONSTRUCTORS: dict[ops.Op, Callable[[Node, tuple[Node, ...]], Node]] = {
    ops.ISUM: lambda old, src: add(old.arg[0], *map(mul, src, old.arg[1])),
    ops.IPROD: lambda old, src: reduce(mul, src),
    ops.IFLOOR: lambda old, src: floordiv(*src),
    ops.IMOD: lambda old, src: mod(*src),
    ops.IMAX: lambda old, src: maximum(*src),
    ops.IMIN: lambda old, src: minimum(*src),
    ops.LT: lambda old, src: _condition(lt, old, src),
    ops.LE: lambda old, src: _condition(le, old, src),
    ops.EQ: lambda old, src: _condition(eq, old, src),
    ops.AND: lambda old, src: both(*src) if old.dtype is bool_ else old.with_src(src),
}


def _condition(build: Callable[..., Node], old: Node, src: tuple[Node, ...]) -> Node:
    return build(*src) if src[0].dtype is INDEX else old.with_src(src)


def rebuild(old: Node, src: tuple[Node, ...]) -> Node:
    """The operation of `old` on other sources, folded as this file folds."""
    if src == old.src:
        return old
    constructor = _CONSTRUCTORS.get(old.op)
    return old.with_src(src) if constructor is None else constructor(old, src)


def substitute(
    root: Node, mapping: Mapping[Node, Index], memo: dict[tuple[Node, int], Node] | None = None
) -> Node:
    """The root with nodes replaced, all at once, and every index rebuilt in canonical form.

    Works on any node of the graph or kernel stage, inside args too. A range that a KREDUCE binds
    is another thing than the free range of that number, and is not replaced. ValueError if a
    replacement depends on a range that a KREDUCE above its place binds (it would be captured).
    memo may be passed again to share work between calls with the same mapping.
    """
    done: dict[tuple[Node, int], Node] = {} if memo is None else memo
    if (root, 0) in done:
        return done[root, 0]
    replaced = 0  # ranges among the keys
    brought = 0  # ranges that replacements depend on
    for old, new in mapping.items():
        replaced |= old.free
        brought |= new.free if isinstance(new, Node) else 0
    ranges_only = all(old.op is ops.RANGE for old in mapping)
    stack = [(root, 0)]
    while stack:
        place = stack[-1]
        current, bound = place  # bound: the ranges, of interest here, that a KREDUCE above binds
        if place in done:
            stack.pop()
            continue
        if ranges_only and not current.free & replaced & ~bound:
            done[place] = current
            continue
        if current in mapping and not (current.op is ops.RANGE and current.free & bound):
            done[place] = _uncaptured(current, mapping[current], bound)
            continue
        if current.op is ops.KREDUCE:
            for bound_range in current.src[current.arg[1] :]:
                bound |= bound_range.free & (replaced | brought)
        inside = () if ranges_only else tuple(arg_nodes(current.arg))
        missing = [n for n in (*current.src, *inside) if (n, bound) not in done]
        if missing:
            stack.extend([(n, bound) for n in missing])
            continue
        stack.pop()
        new = current
        if inside:
            replacements = {n: _as_arg(done[n, bound]) for n in inside}
            arg = map_arg(current.arg, replacements.__getitem__)
            new = Node(current.op, current.dtype, current.src, arg)
        done[place] = rebuild(new, tuple([done[source, bound] for source in current.src]))
    return done[root, 0]


def _as_arg(replacement: Node) -> Index:
    return dim(replacement) if replacement.dtype is INDEX else replacement


def _uncaptured(old: Node, replacement: Index, bound: int) -> Node:
    if not isinstance(replacement, Node):
        return const(replacement)
    if replacement.free & bound:
        raise ValueError(
            f"{spell(old)} cannot be replaced by {spell(replacement)}: a reduction around it "
            "binds a range of the replacement"
        )
    return replacement
