"""Symbolic sizes as users see them: a `Variable`, bound to a value, in a shape.

A program is made once for all the values that a Variable may have:

    T = Variable("T", 1, 1024)
    y = x[: T.bind(37)].softmax(0)     # compiled once for every T
    y = x[: T.bind(512)].softmax(0)    # schedules and compiles nothing
"""

from __future__ import annotations

import operator
from functools import total_ordering
from typing import Any

from treadle.engine import trace
from treadle.engine.cell import bind
from treadle.ir import index
from treadle.ir.node import Node, Shape


@total_ordering
class Dim:
    """A symbolic size and the value it has now. Arithmetic gives Dims; `int(d)` is the value, by
    which sizes compare."""

    __slots__ = ("bindings", "node")

    def __init__(self, node: Node, bindings: dict[str, int]) -> None:
        self.node = node
        self.bindings = bindings

    def __int__(self) -> int:
        _note_read(self.bindings)
        return index.evaluate(self.node, self.bindings)

    __index__ = __int__

    def __repr__(self) -> str:
        bound = ", ".join(f"{name}={value}" for name, value in self.bindings.items())
        return f"<size {int(self)} bound to {bound}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, int | Dim) and int(self) == int(other)

    def __lt__(self, other: int | Dim) -> bool:
        return int(self) < int(other)

    def __hash__(self) -> int:
        return hash(int(self))

    def _combine(self, other: Any, function: Any, swap: bool = False) -> Any:
        if isinstance(other, Dim):
            bindings = bind(self.bindings, other.bindings)
            second: Any = other.node
        elif isinstance(other, int):
            bindings, second = self.bindings, other
        else:
            return NotImplemented
        node = function(second, self.node) if swap else function(self.node, second)
        return dim(node, bindings)

    def __add__(self, other: Any) -> Any:
        return self._combine(other, index.add)

    __radd__ = __add__

    def __mul__(self, other: Any) -> Any:
        return self._combine(other, index.mul)

    __rmul__ = __mul__

    def __sub__(self, other: Any) -> Any:
        return self._combine(other, index.sub)

    def __rsub__(self, other: Any) -> Any:
        return self._combine(other, index.sub, swap=True)

    def __floordiv__(self, other: Any) -> Any:
        return self._combine(other, index.floordiv)

    def __rfloordiv__(self, other: Any) -> Any:
        return self._combine(other, index.floordiv, swap=True)

    def __mod__(self, other: Any) -> Any:
        return self._combine(other, index.mod)

    def __rmod__(self, other: Any) -> Any:
        return self._combine(other, index.mod, swap=True)


class Variable:
    """A size that is known only when the program runs: between `low` and `high`, both included.

    >>> T = Variable("T", 1, 9)
    >>> Tensor.ones(9)[: T.bind(4)].sum().item()
    4.0
    """

    def __init__(self, name: str, low: int, high: int) -> None:
        if not name.isidentifier():
            raise ValueError(f"a Variable's name is an identifier, not {name!r}")
        self.name = name
        self.low, self.high = self._size(low), self._size(high)
        if not 0 <= self.low <= self.high:
            raise ValueError(f"Variable {name} needs 0 <= low <= high, not {low} and {high}")
        self.node = index.variable(name, self.low, self.high)

    def _size(self, value: Any) -> int:
        try:
            return operator.index(value)
        except TypeError:
            raise TypeError(f"Variable {self.name}: a size is an int, not {value!r}") from None

    def bind(self, value: int) -> Dim:
        """This size with a value. ValueError if it is outside the Variable's bounds, TypeError if
        it is not an int."""
        size = self._size(value)
        if not self.low <= size <= self.high:
            raise ValueError(
                f"{size} is not in Variable {self.name}'s bounds {self.low}..{self.high}"
            )
        return Dim(self.node, {self.name: size})

    def __repr__(self) -> str:
        return f"Variable({self.name!r}, {self.low}, {self.high})"


def dim(size: int | Node, bindings: dict[str, int]) -> int | Dim:
    """A size as users see it: an int, or a Dim."""
    size = index.dim(size)
    return size if isinstance(size, int) else Dim(size, bindings)


def values(shape: Shape, bindings: dict[str, int]) -> tuple[int, ...]:
    """The sizes that a shape has under these bindings."""
    if bindings:
        _note_read(bindings)
    return tuple(s if isinstance(s, int) else index.evaluate(s, bindings) for s in shape)


def _note_read(bindings: dict[str, int]) -> None:
    """A function that is traced has looked at a size: what it does may be for that size alone."""
    tracing = trace.current()
    if tracing is not None:
        tracing.sizes.update(bindings)
