"""Who else holds a value: asked by counting references, in C, for many cells at once.

A captured function overwrites memory in place at every call. It may do so if nobody else can see
the old value: no pending graph, no other tensor. Whoever can holds a reference to the leaf; so if
there is none beyond those that are known, nobody has to be looked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from operator import attrgetter
from sys import getrefcount
from typing import Any

_node = attrgetter("node")
_arg = attrgetter("arg")
_place = attrgetter("node.arg")


def places(cells: Sequence[Any], watched: int) -> tuple[list[Any], list[int]]:
    """(the arg of the node of each cell, the references to the nodes of the first `watched`). The
    arg of a leaf is (slot, shape, device): it is another one if the cell holds another leaf."""
    if not watched:
        return list(map(_place, cells)), []
    nodes = list(map(_node, cells))
    return list(map(_arg, nodes)), list(map(getrefcount, islice(nodes, watched)))


def references(cells: Sequence[Any]) -> list[int]:
    """The references to the node of each cell, as `places` counts them."""
    nodes = list(map(_node, cells))
    return list(map(getrefcount, islice(nodes, None)))


class _Holder:
    arg = None

    def __init__(self, node: Any) -> None:
        self.node = node


# The references to a node that one cell holds and nobody else, as `places` counts them; and to an
# object that one list holds and nobody else, as `getrefcount` does over that list.
ALONE = places([_Holder(_Holder(None))], 1)[1][0]
IN_LIST = next(map(getrefcount, [object()]))
