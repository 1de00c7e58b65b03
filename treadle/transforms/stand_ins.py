"""Stand-ins: what a function gets for the arguments that it is differentiated by.

A stand-in is a leaf of its own with the argument's value. So values can be read inside of the
function, and what the function computes depends on it and on nothing that merely equals it.
`given` maps each stand-in to the argument's node, which takes its place at the end. (The function
may change its argument in place, which then holds another node; the derivative is by the stand-in.)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from treadle.engine.cell import NO_BINDINGS, bind, dependants
from treadle.engine.history import carries_gradient, fold, track, unfold_all, untrack
from treadle.engine.storage import memory
from treadle.graph.body import substitute
from treadle.graph.tree import Structure, flatten, unflatten
from treadle.ir import ops
from treadle.ir.node import Node, toposort
from treadle.tensor import Tensor, enable_grad
from treadle.transforms.trees import kind


def picked(
    name: str, args: Sequence[Any], numbers: Iterable[int], given: dict[Node, Node]
) -> tuple[list[Any], list[Any]]:
    """(arguments, those that `numbers` name) of a call by the transform `name`, with stand-ins in
    these. TypeError if there is no such argument."""
    inner = list(args)
    trees = []
    for number in numbers:
        if not -len(args) <= number < len(args):
            number_given = "1 was" if len(args) == 1 else f"{len(args)} were"
            raise TypeError(f"{name}: there is no argument {number}: {number_given} given")
        inner[number] = stand_ins(name, args[number], given)
        trees.append(inner[number])
    return inner, trees


def stand_ins(name: str, tree: Any, given: dict[Node, Node]) -> Any:
    """The tree with a stand-in for each tensor."""
    leaves, structure = flatten(tree)
    return unflatten(structure, [_stand_in(name, leaf, given) for leaf in leaves])


def _stand_in(name: str, leaf: Any, given: dict[Node, Node]) -> Tensor:
    if not isinstance(leaf, Tensor):
        raise TypeError(
            f"{name}: arguments to differentiate by are tensors, not {type(leaf).__name__}: bind "
            "what is none, as in lambda x: f(x, 2)"
        )
    if leaf.dtype.is_complex and name == "jacobian":
        raise TypeError(
            f"jacobian: {leaf.dtype} numbers have a derivative by each of their parts: "
            "differentiate by x.real and x.imag, and join them inside with treadle.complex(re, im)"
        )
    if not leaf.dtype.is_inexact:
        raise TypeError(
            f"{name}: only floating-point tensors have a derivative; an argument is {leaf.dtype}: "
            "bind it, as in lambda x: f(x, indices)"
        )
    stand_in = memory.defer(leaf.node, leaf.device)
    given[stand_in] = leaf.node
    with enable_grad():  # else it would be detached from the stand-in
        argument = Tensor._of(stand_in, leaf.bindings)
    track(argument, stand_in)  # a value read inside the function keeps its history
    return argument


def split(name: str, result: Any, has_aux: bool) -> tuple[Any, Any]:
    """(what is differentiated, what is not) of a result."""
    if not has_aux:
        return result, None
    if not isinstance(result, tuple) or len(result) != 2:
        raise TypeError(
            f"{name}: with has_aux the function must return (result, aux), not {kind(result)}"
        )
    return result


def outputs_of(name: str, result: Any) -> tuple[list[Tensor], Structure, dict[str, int]]:
    """The tensors of a result, its structure, and the values of the Variables in their shapes.
    TypeError if it holds anything else."""
    leaves, structure = flatten(result)
    bindings = NO_BINDINGS
    for leaf in leaves:
        if not isinstance(leaf, Tensor):
            raise TypeError(
                f"{name}: the function must return tensors, in tuples, lists and dictionaries; it "
                f"returned {kind(leaf)}"
            )
        bindings = bind(bindings, leaf.bindings)
    return leaves, structure, bindings


def finished(
    roots: Iterable[Node],
    folded: dict[Node, Node],
    given: dict[Node, Node],
    bindings: dict[str, int],
) -> list[Tensor]:
    """Unfolded graphs over stand-ins as tensors of the arguments themselves.

    Where a value was read inside, it is used instead of being computed once more; but not if the
    arguments may be differentiated in their turn: what the value was computed from is a stand-in.
    """
    leaves = [node for node in toposort(given.values()) if node.op is ops.BUFFER]
    if folded and carries_gradient(leaves):
        below = set(dependants({node: node for node in folded}, given)) | set(given)
        folded = {node: leaf for node, leaf in folded.items() if node not in below}
    for stand_in in given:  # nobody wants a gradient of it: what was read inside leads to it still
        untrack(stand_in)
    return [Tensor._of(node, bindings) for node in substitute(fold(roots, folded), given)]


def outside(tree: Any, given: dict[Node, Node]) -> Any:
    """A tree of results with the arguments in the place of their stand-ins."""
    leaves, structure = flatten(tree)
    bindings = NO_BINDINGS
    for leaf in leaves:
        if isinstance(leaf, Tensor):
            bindings = bind(bindings, leaf.bindings)
    held = [leaf.node for leaf in leaves if isinstance(leaf, Tensor)]
    left = iter(finished(*unfold_all(held), given, bindings))
    return unflatten(
        structure, [next(left) if isinstance(leaf, Tensor) else leaf for leaf in leaves]
    )
