"""What the scheduler hands to those above: kernels in launch order, buffers, and the reasons."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from treadle.ir.dtype import DType
from treadle.ir.node import Node, Shape

FOREVER = 1 << 62  # trips of a loop that only its test ends


class Reason(NamedTuple):
    """Why a value is stored in memory, or why kernels are one kernel.

    rule: the name of the rule of `decide.py` that decided. text: what it says, with `{}` for the
    numbers. numbers: what the rule compared. node: the graph node in question.
    """

    rule: str
    text: str
    numbers: tuple[float | int | str, ...]
    node: Node

    def __str__(self) -> str:
        return f"{self.rule}: {self.text.format(*map(_spell, self.numbers))}"


def _spell(number: float | int | str) -> str:
    return f"{number:.3g}" if isinstance(number, float) else str(number)


@dataclass(eq=False)
class Call:
    """One launch of a kernel.

    kernel: a SINK of stores (docs/design.md, section 3); equal kernels are the same node.
    buffers: the buffer of each ARG, by position. scalars: the graph's SCALAR for each SCALAR of the
    kernel, by position. variables: the values of VARIABLEs that the schedule itself introduced (the
    length of a flattened kernel); all others are bound by whoever runs the program.
    checks: the graph node (GATHER or SCATTER) that each CHECK of the kernel serves, by its number.
    tests: the (indices, size) that its checks test, and whether it tests all of these indices.
    unchanging: the positions of buffers that hold the same at every call of a captured program.
    may_fail: whether a check may find an index outside; not if an earlier call tests the same.
    in_place: whether it writes over memory that the caller holds an old value in.
    device: where it runs ("" if nothing in it says). It is a transfer if it reads another device.
    """

    kernel: Node
    buffers: tuple[int, ...]
    scalars: tuple[Node, ...] = ()
    variables: dict[str, int | Node] = field(default_factory=dict)
    checks: tuple[Node, ...] = ()
    tests: dict[tuple[Node, int | Node], bool] = field(default_factory=dict)
    unchanging: frozenset[int] = frozenset()
    may_fail: bool = False
    reasons: tuple[Reason, ...] = ()
    in_place: bool = False
    device: str = ""
    phase: int = 0
    reads: frozenset[int] = frozenset()  # the buffers that it loads from
    writes: frozenset[int] = frozenset()  # the buffers that it stores to
    waits: frozenset[int] = frozenset()  # buffers that have to be whole before it begins


@dataclass(eq=False)
class Loop:
    """A body that is run `trips` times. counter: a VARIABLE of its kernels: 0, 1 .. trips-1. test:
    (buffer, wanted): it ends before the first trip at which the bool in this buffer is not that."""

    body: list[Call | Loop]
    trips: int | Node
    counter: Node
    test: tuple[int, bool] | None = None
    phase: int = 0
    reads: frozenset[int] = frozenset()
    writes: frozenset[int] = frozenset()
    waits: frozenset[int] = frozenset()


Item = Call | Loop


@dataclass(eq=False)
class BufferInfo:
    """A piece of memory. role: "input" (the caller's, holding a leaf), "output" (the caller's, for
    a root), or "temporary" (`offset` bytes into the arena)."""

    dtype: DType
    shape: Shape
    role: str
    device: str = ""
    offset: int = -1


@dataclass(eq=False)
class Schedule:
    """items: in launch order; consecutive ones of equal `phase` do not depend on each other.
    buffers: inputs first, numbered as the graph's BUFFER leaves. arena: bytes for all temporaries.
    outputs: the buffer of each root. in_place: the roots that were written over the buffer that
    `assigns` gave them; another root of `assigns` has fresh memory."""

    items: list[Item]
    buffers: list[BufferInfo]
    arena: int
    outputs: list[int]
    in_place: set[int]

    def calls(self) -> Iterator[Call]:
        """Every call, those inside loops too, in launch order."""
        stack = self.items[::-1]
        while stack:
            item = stack.pop()
            if isinstance(item, Loop):
                stack.extend(reversed(item.body))
            else:
                yield item
