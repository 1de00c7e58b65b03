"""What a value in memory was computed from, kept where a gradient may flow back through it.

Reading `loss.item()` replaces the loss's graph by a leaf. `loss.backward()` must still work, so a
leaf that was computed from a tracked leaf (one whose gradient somebody wants) remembers its node.
`unfold` puts these nodes back for differentiation; `fold` then uses the values that are in memory
instead of computing them again.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Sequence

from treadle.engine.cell import Cell
from treadle.engine.storage import memory
from treadle.graph.body import substitute
from treadle.ir import ops
from treadle.ir.node import Node, toposort


def track(cell: Cell, leaf: Node) -> None:
    """`cell` requires the gradient of `leaf`. A leaf that it held before stays tracked while a
    graph reads it: what was computed from the old value still has a gradient."""
    memory.tracked[leaf.arg[0]] = weakref.ref(cell)


def untrack(leaf: Node) -> None:
    """Nobody requires the gradient of `leaf` any more."""
    memory.tracked.pop(leaf.arg[0], None)


def is_tracked(node: Node) -> bool:
    """Whether a node is a leaf whose gradient somebody requires."""
    return node.op is ops.BUFFER and node.arg[0] in memory.tracked


def requirer(leaf: Node) -> Cell | None:
    """The cell that requires the gradient of a tracked leaf, if it still lives."""
    cell: Cell | None = memory.tracked[leaf.arg[0]]()
    return cell


def carries_gradient(leaves: Iterable[Node]) -> bool:
    """Whether a value computed from these leaves may be differentiated."""
    return any(
        leaf.arg[0] in memory.tracked
        or leaf.arg[0] in memory.history
        or leaf.arg[0] in memory.spent
        for leaf in leaves
    )


def remember(leaf: Node, value: Node | Callable[[], Node], clock: int) -> None:
    """`leaf` holds the value of a node, which was computed when the memory's clock stood at
    `clock`. value: the node, or a function that makes it when somebody asks."""
    memory.history[leaf.arg[0]] = value, clock


def remembered() -> list[Node]:
    """Every node that a leaf remembers."""
    for slot, (value, clock) in list(memory.history.items()):
        if not isinstance(value, Node):
            memory.history[slot] = value(), clock
    return [value for value, _ in memory.history.values() if isinstance(value, Node)]


def forget(leaf: Node) -> None:
    """`leaf` holds a value that cannot be differentiated any more: what it was computed from was
    overwritten by the same program."""
    memory.spent.add(leaf.arg[0])


def unfold(root: Node) -> tuple[Node, dict[Node, Node]]:
    """The graph of a value with every remembered node put back, and {remembered node: leaf}.

    RuntimeError if something that a remembered node was computed from has been overwritten.
    """
    (whole,), folded = unfold_all([root])
    return whole, folded


def unfold_all(roots: Sequence[Node]) -> tuple[list[Node], dict[Node, Node]]:
    """`unfold`, for several values at once."""
    roots = list(roots)
    folded: dict[Node, Node] = {}
    while True:
        found: dict[Node, Node] = {}
        for node in toposort(roots):
            if node.op is not ops.BUFFER:
                continue
            slot = node.arg[0]
            if slot in memory.spent:
                raise _overwritten("a tensor")
            if slot in memory.history:
                value, clock = memory.history[slot]
                before = value if isinstance(value, Node) else value()
                for leaf in toposort(before):
                    if leaf.op is ops.BUFFER and memory.version(leaf) > clock:
                        raise _overwritten(f"a tensor of shape {leaf.shape}")
                memory.history[slot] = before, clock
                found[node] = before
        if not found:
            return roots, folded
        roots = substitute(roots, found)
        values = substitute(list(folded), found)
        folded = dict(zip(values, folded.values(), strict=True))
        folded |= {before: leaf for leaf, before in found.items()}


def fold(nodes: Iterable[Node], folded: dict[Node, Node]) -> list[Node]:
    """The nodes with remembered nodes replaced by the leaves that hold their values."""
    return substitute(nodes, folded) if folded else list(nodes)


def _overwritten(what: str) -> RuntimeError:
    return RuntimeError(
        f"{what} that this value was computed from has been overwritten since (by an optimizer "
        "step or an in-place operation): call backward() before that, or compute the value again"
    )
