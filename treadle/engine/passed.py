"""What is computed a second time, and who is computed with it so that there is no third.

A loop that reads a value, as in `while float(error) > 1e-6`, computes the tensors of its step only
on the way to that value, and what nobody asked for is not stored. The next step would compute them
again, the one after it three steps at once, each time as another program. So the nodes that have
been computed are marked; when a graph takes one of them again, the live tensors that depend on it
are computed in the same program, as if they had been asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from treadle.engine.cell import Cell, dependants, live
from treadle.engine.history import carries_gradient, remembered
from treadle.graph.body import unmoved
from treadle.ir import ops
from treadle.ir.node import Node, toposort

_MARK = "computed"


def mark(roots: Iterable[Node]) -> None:
    """These graphs have been computed."""
    for node in toposort(roots, unless=_MARK):
        if node.memo is None:
            node.memo = {}
        node.memo[_MARK] = True


def again(order: Sequence[Node], bindings: dict[str, int]) -> list[Cell]:
    """The live cells that depend on what is computed again in a graph whose nodes are `order`, with
    these values of Variables. One that only moves what another holds costs nothing, and waits; so
    does one that takes over memory from which a derivative may be asked for."""
    twice = [node for node in order if node.memo and _MARK in node.memo and _is_work(node)]
    if not twice:
        return []
    pending = {cell: cell.node for cell in live() if cell.node.src}
    held = set(pending.values())
    joining = [
        cell
        for cell in dependants(pending, twice)
        if (_is_work(cell.node) or unmoved(cell.node) not in held)
        and cell.bindings.items() <= bindings.items()
    ]
    if not any(cell.target for cell in joining):
        return joining
    needed = _needed(pending)
    return [cell for cell in joining if cell.target not in needed]


def _needed(pending: dict[Cell, Node]) -> frozenset[Node]:
    """The leaves that a derivative of a live value may read."""
    lazy = (_leaves([node]) for node in pending.values())
    return _leaves(remembered()).union(*filter(carries_gradient, lazy))


def _leaves(roots: Iterable[Node]) -> frozenset[Node]:
    return frozenset(node for node in toposort(roots) if node.op is ops.BUFFER)


def _is_work(node: Node) -> bool:
    return bool(node.src) and node.op.kind != "movement"
