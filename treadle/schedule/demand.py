"""Kernels while they are being decided: drafts, and what each asks of which node.

A *demand* says that a draft needs a node's element at a position, a tuple of indices over the
draft's ranges. Demands are pushed from consumers to sources; two consumers that ask for the same
element meet in one demand, which is how shared subexpressions and shared loops come about. A demand
is answered by memory (`stored`), or computed inside the draft from the demands in `sources`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from treadle.ir import index, ops
from treadle.ir.node import Node, Shape
from treadle.schedule.movement import Position, flatten
from treadle.schedule.plan import Reason


class Scope:
    """The loops of one reduction inside a draft. bound: the ranges it folds, as a mask; parent: the
    scope around it, or None for the loops of the stores."""

    __slots__ = ("bound", "parent")

    def __init__(self, bound: int, parent: Scope | None) -> None:
        self.bound = bound
        self.parent = parent


class Demand:
    """A draft's need of `node` at `position` where `valid` holds (None: everywhere).

    scopes: in which loops the value is used; None stands for the loops of the stores.
    through: the monoid of the reduction that folds this value, if only movement stands between.
    missing: for an operand of a sum of products, the number of outputs that use one of its elements
    although they are not its own; 0 elsewhere. tiled: whether both operands are such (it is a
    contraction). product: for the product of such a sum, the `missing` of its operands.
    """

    position: Position | None  # None: the whole value is needed in memory
    scopes: tuple[Scope | None, ...] = ()
    through: str | None = None
    missing: int = 0
    tiled: bool = False
    product: tuple[int, int] | None = None
    tested: bool = False  # whether `lacking` is known, of a reduction
    lacking: tuple[int, int] | None = None
    sources: Sequence[Demand] = ()
    ranges: tuple[Node, ...] = ()  # what a reduction folds over
    condition: Node | None = None  # where a padding movement reads its source
    stored: Value | None = None
    same: Demand | None = None  # the demand of the same kernel that has this very value
    value: Any = None  # filled by build.py
    vanishes: bool = False  # filled by build.py: the value is 0 where `valid` does not hold

    def __init__(
        self, node: Node, draft: Draft, position: Position | None, valid: Node | None
    ) -> None:
        self.node = node
        self.draft = draft
        self.position = position
        self.valid = valid


@dataclass(eq=False)
class Value:
    """A node's value in memory. makers: the drafts that write it, one after the other. places:
    for each component of the node that is read, the buffers that get it and the leading indices
    under which they do (inside a loop, its counter)."""

    node: Node
    makers: list[Draft] = field(default_factory=list)
    places: dict[int, list[tuple[int, Position]]] = field(default_factory=dict)


@dataclass
class Output:
    """A store of a draft: the demand whose value goes to `component` of `value`, at `position`.
    For the region of an UPDATE or SCATTER, `region` is that node, `index` the scatter's index."""

    demand: Demand
    value: Value
    component: int
    position: Position
    region: Node | None = None
    index: Demand | None = None


class Draft:
    """A kernel in the making, with a range for each dimension of `shape` that is not 1.

    kind: "kernel", "region" (writes a part of a value that others began), "loop" (or a choice),
    "custom" (a KERNEL).
    chains: the ranges around each row reduction, as masks. open: how many demands it has that may
    each cost a buffer. operations: scalar operations so far. apart: no other kernel joins it.
    chain: the `chain.Chain` that it computes.
    continues: the value that others begin and a region or loop goes on to write.
    """

    def __init__(self, node: Node, shape: Shape, kind: str = "kernel") -> None:
        self.node = node
        self.kind = kind
        self.sizes: list[Any] = [size for size in shape if size != 1]
        ranges = iter([index.range_(number, size) for number, size in enumerate(self.sizes)])
        self.position = tuple([index.const(0) if size == 1 else next(ranges) for size in shape])
        self.rank = len(self.sizes)  # ranges of the stores; those of reductions follow
        self.own = (1 << self.rank) - 1
        self.chains: list[int] = []
        self.contraction = False
        self.operations = 0
        self.open = 0
        self.outputs: list[Output] = []
        self.reads: dict[Value, None] = {}
        self.reasons: list[Reason] = []
        self.demands: dict[tuple[Node, Position | None, Node | None], Demand] = {}
        self.device = ""
        self.apart = False
        self.chain: Any = None
        self.continues: Value | None = None
        self._counts: dict[int, int] = {}

    def makers(self) -> Iterator[Draft]:
        """The drafts that this one waits for: who makes what it reads, and who begins what it goes
        on to write."""
        for value in self.reads:
            yield from value.makers
        if self.continues is not None:
            yield from self.continues.makers[: self.continues.makers.index(self)]

    def awaited(self) -> frozenset[int]:
        """The buffers that have to be whole before it begins."""
        found = [d.stored for d in self.demands.values() if d.position is None and d.stored]
        places = [place for value in found for place in value.places.values()]
        return frozenset([buffer for group in places for buffer, _ in group])

    def choose(self, sizes: list[Any], taken: int) -> tuple[Node, ...]:
        """Ranges for a reduction over these sizes: for each the lowest number of that size that is
        not `taken` (free where the reduction stands). So the row that a softmax sums is the row
        that it stores, and reductions of one row share their loop."""
        chosen = []
        for size in sizes:
            number = 0
            while number < len(self.sizes) and (
                taken >> number & 1
                or not (self.sizes[number] is size or self.sizes[number] == size)
            ):
                number += 1
            if number == len(self.sizes):
                self.sizes.append(size)
            taken |= 1 << number
            chosen.append(index.range_(number, size))
        return tuple(chosen)

    def count(self, mask: int) -> int:
        """How many times the loops of these ranges run: the product of their sizes."""
        found = self._counts.get(mask)
        if found is None:
            found = 1
            for number, size in enumerate(self.sizes):
                if mask >> number & 1:
                    found *= index.bounds(size)[1]
            self._counts[mask] = found
        return found


def free_ranges(position: Position, valid: Node | None) -> int:
    """The ranges that an element's position and condition depend on, as a mask."""
    mask = valid.free if valid is not None else 0
    for i in position:
        mask |= i.free
    return mask


def covers(position: Position, shape: Shape, own: int) -> bool:
    """Whether a position runs over every element of the shape exactly once while the ranges of
    `own` that it uses run."""
    seen = 0
    for size, i in zip(shape, position):
        if size == 1:
            if i.free:  # the only element, in a loop that may not run at all
                return False
            continue
        if i.op is not ops.RANGE:
            return not free_ranges(position, None) & ~own and _counts(position, shape)
        if i.free & seen or not i.free & own or not (i.arg[1] is size or i.arg[1] == size):
            return False
        seen |= i.free
    return True


def _counts(position: Position, shape: Shape) -> bool:
    """Whether the row-major number of an element is that of the ranges as digits: r0 + n0*r1 + ..,
    each range as long as the digit before it says, up to the whole."""
    constant, terms = index.terms(flatten(list(shape), list(position)))
    place = 1
    for factor, atom in sorted(terms, key=lambda term: term[0]):
        size = atom.arg[1] if atom.op is ops.RANGE else None
        if factor != place or not isinstance(size, int):
            return False
        place *= size
    return constant == 0 and place == index.product(shape)
