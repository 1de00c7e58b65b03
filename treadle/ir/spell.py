"""Integer algebra read back: as a number, and as people write it."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from math import prod

from treadle.ir import ops
from treadle.ir.node import Node, toposort


def _check(position: int, size: int) -> int:
    if not 0 <= position < size:
        raise IndexError(f"index {position} is out of range for a dimension of size {size}")
    return position


_VALUES: dict[ops.Op, Callable[..., int]] = {
    ops.CONST: lambda n: n.arg,
    ops.ISUM: lambda n, *xs: n.arg[0] + sum(map(operator.mul, xs, n.arg[1])),
    ops.IPROD: lambda n, *xs: prod(xs),
    ops.IFLOOR: lambda n, a, b: a // b if b else 0,
    ops.IMOD: lambda n, a, b: a % b if b else 0,
    ops.IMAX: lambda n, a, b: max(a, b),
    ops.IMIN: lambda n, a, b: min(a, b),
    ops.CHECK: lambda n, position, size: _check(position, size),
    ops.LT: lambda n, a, b: a < b,
    ops.LE: lambda n, a, b: a <= b,
    ops.EQ: lambda n, a, b: a == b,
    ops.NE: lambda n, a, b: a != b,
    ops.AND: lambda n, a, b: a & b,
    ops.OR: lambda n, a, b: a | b,
    ops.NOT: lambda n, a: not a,
}


def evaluate(value: int | Node, values: Mapping[Node, int] | Mapping[str, int]) -> int:
    """The number that an index is (or, of a condition, the bool).

    values: of its variables, ranges or any other nodes in it, by node; variables also by name.
    ValueError if one is missing; IndexError if a CHECK in it fails.
    """
    if not isinstance(value, Node):
        return value
    known: dict[Node | str, int] = dict(values.items())
    for n in toposort(value):
        if n in known:
            continue
        function = _VALUES.get(n.op)
        if function is not None:
            known[n] = function(n, *[known[s] for s in n.src])
        elif n.op is ops.VARIABLE and n.arg[0] in known:
            known[n] = known[n.arg[0]]
        elif n is value:
            raise ValueError(f"{spell(n)} has no value here")
        else:
            raise ValueError(f"{spell(value)} needs a value for {spell(n)}")
    return known[value]


def _spell_sum(n: Node, *atoms: str) -> str:
    constant, factors = n.arg
    parts = [
        (factor, atom if abs(factor) == 1 else f"{abs(factor)}*{_operand(atom)}")
        for factor, atom in zip(factors, atoms)
    ]
    parts.sort(key=lambda part: part[0] < 0)  # a positive term first, if there is one
    if constant:
        parts.append((constant, str(abs(constant))))
    first = ("-" if parts[0][0] < 0 else "") + parts[0][1]
    return first + "".join(f" {'-' if f < 0 else '+'} {part}" for f, part in parts[1:])


def _operand(text: str) -> str:
    return f"({text})" if any(sign in text for sign in (" ", "//", "%")) else text


def _divisor(text: str) -> str:
    return f"({text})" if any(sign in text for sign in (" ", "//", "%", "*")) else text


_SPELLINGS: dict[ops.Op, Callable[..., str]] = {
    ops.CONST: lambda n: str(n.value),
    ops.VARIABLE: lambda n: str(n.arg[0]),
    ops.RANGE: lambda n: f"r{n.arg[0]}",
    ops.ISUM: _spell_sum,
    ops.IPROD: lambda n, *xs: "*".join(map(_operand, xs)),
    ops.IFLOOR: lambda n, a, b: f"{_operand(a)}//{_divisor(b)}",
    ops.IMOD: lambda n, a, b: f"{_operand(a)}%{_divisor(b)}",
    ops.IMAX: lambda n, a, b: f"max({a}, {b})",
    ops.IMIN: lambda n, a, b: f"min({a}, {b})",
    ops.LT: lambda n, a, b: f"{a} < {b}",
    ops.EQ: lambda n, a, b: f"{a} == {b}",
    ops.AND: lambda n, a, b: f"{a} and {b}",
}


def spell(value: int | Node) -> str:
    """A value as people write it, for messages: `2*T + 1`, `(T - 1)//2`, `r0` for range 0."""
    if not isinstance(value, Node):
        return str(value)
    text: dict[Node, str] = {}
    for n in toposort(value):
        spelling = _SPELLINGS.get(n.op)
        text[n] = f"<{n.op.name}>" if spelling is None else spelling(n, *[text[s] for s in n.src])
    return text[value]
