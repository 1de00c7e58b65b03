"""Trees of tensors as trees of nodes, and back: what every function of functions needs."""

from __future__ import annotations

from typing import Any

from treadle.graph.tree import flatten, unflatten
from treadle.ir.node import Node
from treadle.tensor import Tensor


def nodes(tree: Any) -> Any:
    """The tree with the node of each Tensor in it."""
    leaves, structure = flatten(tree)
    return unflatten(structure, [n.node if isinstance(n, Tensor) else n for n in leaves])


def tensors(tree: Any, bindings: dict[str, int]) -> Any:
    """The tree with a Tensor for each node in it."""
    leaves, structure = flatten(tree)
    return unflatten(
        structure, [Tensor._of(n, bindings) if isinstance(n, Node) else n for n in leaves]
    )


def kind(value: Any) -> str:
    """A value that should have been another, in few words."""
    if isinstance(value, tuple):
        return f"a tuple of {len(value)}"
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"
