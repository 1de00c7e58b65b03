"""Functions whose derivative is not that of what they do: computed again, stopped, or written by
the user."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any

from treadle.engine.history import fold, unfold
from treadle.graph.build import stop_gradient as stop
from treadle.graph.call import CHECKPOINT, call
from treadle.graph.tree import flatten, unflatten
from treadle.ir.node import Node, toposort
from treadle.tensor import Tensor


def stop_gradient(tree: Any) -> Any:
    """The tree with every tensor detached: its value, through which no derivative flows.

    Source: JAX's `lax.stop_gradient`.

    >>> grad(lambda x: x * stop_gradient(x))(Tensor(3.0)).item()
    3.0
    """
    leaves, structure = flatten(tree)
    return unflatten(
        structure,
        [
            Tensor._of(stop(leaf.node), leaf.bindings) if isinstance(leaf, Tensor) else leaf
            for leaf in leaves
        ],
    )


def checkpoint(f: Callable[..., Any]) -> Callable[..., Any]:
    """The same function, whose derivative keeps its inputs only: what f computes is computed again
    when the derivative needs it. Less memory for more time.

    f takes and returns trees of tensors and may use tensors from outside (the weights of a layer);
    derivatives flow to these too. Values and derivatives are those of f, random draws are drawn
    once more from the same keys, and what f changes outside (running statistics) changes once.
    Call it on the function, `checkpoint(block)(x)`; may be nested. Source: JAX's `checkpoint`.

    >>> grad(checkpoint(lambda x: x.sin().sin().sum()))(Tensor([0.0])).tolist()
    [1.0]
    """
    if not callable(f):
        raise TypeError(
            f"checkpoint takes a function, not a {type(f).__name__}: write checkpoint(f)(x)"
        )

    @wraps(f)
    def run(*args: Any, **named: Any) -> Any:
        given = [leaf.node for leaf in flatten((args, named))[0] if isinstance(leaf, Tensor)]
        inputs = list(dict.fromkeys(given))
        leaves, structure = flatten(f(*args, **named))
        # what is in memory already needs nothing to be computed again
        computed = [
            n
            for n, leaf in enumerate(leaves)
            if isinstance(leaf, Tensor) and leaf.node not in inputs
        ]
        roots = computed_inside([leaves[n].node for n in computed], inputs)
        outputs = call(roots, inputs, CHECKPOINT) if roots else []
        for number, node in zip(computed, outputs):
            leaves[number] = Tensor._of(node, leaves[number].bindings)
        return unflatten(structure, leaves)

    return run


def computed_inside(roots: Iterable[Node], inputs: Iterable[Node]) -> list[Node]:
    """The graphs of what a function returned. Where it has read a value, that is a leaf: it is
    what it was computed from again, if one of the inputs is below."""
    found = []
    for root in roots:
        whole, folded = unfold(root)
        if folded:
            inside = set(inputs)
            for node in toposort(whole):
                if not inside.isdisjoint(node.src):
                    inside.add(node)
            outside = {node: leaf for node, leaf in folded.items() if node not in inside}
            (whole,) = fold([whole], outside)
        found.append(whole)
    return found
