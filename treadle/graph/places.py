"""Where the indexing operations of a graph come from: the public name, and the line of the user.

An index is found out of range when the program runs, long after the line that is to blame. So the
face notes each indexing operation here (`engine/failure.py`), and what makes a graph into another,
for a body or for many examples, hands the notes on.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple
from weakref import WeakKeyDictionary

from treadle.ir import ops
from treadle.ir.node import Node, arg_nodes, toposort

INDEXING = frozenset((ops.GATHER, ops.SCATTER, ops.KERNEL))
LOOPS = frozenset((ops.SCAN, ops.WHILE, ops.COND))
NOTED = INDEXING | LOOPS
MOST_LINES = 3  # that one place names
MOST_NODES = 256  # that a public function makes, about: further down is what others have made


class Place(NamedTuple):
    """Where an indexing operation comes from: the public name, and "file:line" of the user. The
    bodies of two loops can be one node: then it comes from several lines."""

    name: str
    lines: tuple[str, ...]

    @property
    def text(self) -> str:
        """The lines in words; "" if none is known."""
        return " or ".join(self.lines)

    def joined(self, other: Place) -> Place:
        """One of the two, nobody knows which."""
        return Place(self.name, tuple(dict.fromkeys((*self.lines, *other.lines)))[:MOST_LINES])


# of indexing operations; and of their indices, which gradients use too
places: WeakKeyDictionary[Node, Place] = WeakKeyDictionary()
uses: WeakKeyDictionary[Node, Place] = WeakKeyDictionary()
# Of loops: the places in their bodies when they were made. Equal bodies are one node, of which
# `places` knows the last line that made it; loops differ, because they read different leaves.
within: WeakKeyDictionary[Node, dict[Node, Place]] = WeakKeyDictionary()


def place_of(node: Node) -> Place | None:
    """What is known of an indexing operation, or of one with the same indices."""
    found = places.get(node)
    if found is None and node.op is not ops.KERNEL:
        found = uses.get(node.src[1])
    return found


def put(node: Node, place: Place) -> None:
    """Note the place of an indexing operation."""
    places[node] = place
    if node.op is not ops.KERNEL:
        uses[node.src[1]] = place


def hand_on(old: Node, new: Node, became: Mapping[Node, Node] = MappingProxyType({})) -> None:
    """An indexing operation or a loop has become another of its kind. became: what the nodes of
    its bodies have become, those that changed."""
    if new is old:
        return
    if old.op in INDEXING:
        if new.op in INDEXING and (place := place_of(old)) is not None:
            put(new, place)
    elif old in within:
        within[new] = {became.get(node, node): place for node, place in within[old].items()}


def remember_bodies(loop: Node) -> Node:
    """The loop, just made, of which the places in its bodies are now noted."""
    order = toposort(arg_nodes(loop.arg), into_args=True)
    noted = [(node, place_of(node)) for node in order if node.op in INDEXING]
    found = {node: place for node, place in noted if place is not None}
    if found:
        within[loop] = found
    return loop


def all_below(roots: Iterable[Node]) -> dict[Node, Place]:
    """The places of all indexing operations in graphs and in the bodies of their loops."""
    found: dict[Node, Place] = {}
    for node in toposort(roots):
        if node.op in INDEXING and node in places:
            found[node] = places[node]
        elif node.op in LOOPS and node in within:
            for inner, place in within[node].items():
                found[inner] = found.get(inner, place).joined(place)
    return found


def indexing_below(results: Iterable[Node], given: Collection[Node]) -> list[Node]:
    """The indexing operations between results and what they were made of, if that is not far."""
    found = []
    seen = set(given)
    stack = list(results)
    while stack and len(seen) < MOST_NODES:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        if node.op in INDEXING:
            found.append(node)
        stack.extend(node.src)
    return found
