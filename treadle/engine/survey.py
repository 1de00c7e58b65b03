"""Who else holds a value: asked by counting references, in C, for many cells at once.

A captured function overwrites memory in place at every call. It may do so if nobody else can see
the old value: no pending graph, no other tensor. Whoever can holds a reference to the leaf; so if
there is none beyond those that are known, nobody has to be looked for. Known references are there
whatever else is, so it is enough to look at the sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from sys import getrefcount
from typing import Any

_node = attrgetter("node")
_place = attrgetter("node.arg")


def places(cells: Sequence[Any]) -> list[Any]:
    """The arg of the node of each cell. That of a leaf is (slot, shape, device): it is another one
    if the cell holds another leaf."""
    return list(map(_place, cells))


def references(cells: Sequence[Any]) -> list[int]:
    """The references to the node of each cell."""
    return list(map(getrefcount, map(_node, cells)))


def held_elsewhere(cells: Sequence[Any]) -> bool:
    """Whether anybody holds the node of one of the cells, beside that cell."""
    return sum(map(getrefcount, map(_node, cells))) != ALONE * len(cells)


class _Holder:
    def __init__(self, node: Any) -> None:
        self.node = node


# The references to a node that one cell holds and nobody else, as `references` counts them; and to
# an object that one list holds and nobody else, as `getrefcount` does over that list.
ALONE = references([_Holder(object())])[0]
IN_LIST = next(map(getrefcount, [object()]))
