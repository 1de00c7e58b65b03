"""Derivatives of functions, of any order: reverse mode."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

from treadle.engine.cell import NO_BINDINGS, bind
from treadle.engine.history import fold, track, unfold
from treadle.engine.storage import memory
from treadle.graph import build
from treadle.graph.body import substitute
from treadle.graph.grad import gradients
from treadle.graph.tree import flatten, unflatten
from treadle.ir.node import Node
from treadle.tensor import Tensor, enable_grad
from treadle.transforms.trees import kind


def value_and_grad(
    f: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False
) -> Callable[..., tuple[Any, Any]]:
    """The function that returns `f(..)` and its derivative by the arguments numbered `argnums`.

    f returns one floating tensor of one element; with `has_aux` a pair of that and something else,
    and so does the new function: `((value, aux), derivative)`. An argument may be a tree (tuple,
    list, dict) of floating tensors; its derivative is a tree of the same structure. Source: JAX's
    `value_and_grad`.

    >>> value_and_grad(lambda x: (x * x).sum())(Tensor([1.0, 2.0]))[1].tolist()
    [2.0, 4.0]
    """
    numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)

    @wraps(f)
    def run(*args: Any, **named: Any) -> tuple[Any, Any]:
        given: dict[Node, Node] = {}
        inner = list(args)
        trees = []
        for number in numbers:
            if not -len(args) <= number < len(args):
                number_given = "1 was" if len(args) == 1 else f"{len(args)} were"
                raise TypeError(f"grad: there is no argument {number}: {number_given} given")
            inner[number] = _stand_ins("grad", args[number], given)
            trees.append(inner[number])
        with enable_grad():
            result, aux = _split("grad", f(*inner, **named), has_aux)
        if not isinstance(result, Tensor) or result.numel() != 1 or not result.dtype.is_float:
            shown = repr(result)
            if isinstance(result, Tensor):
                shown = f"a tensor of {result.dtype} {result.shape}"
            raise TypeError(
                f"grad: the function must return one floating number as a tensor, not {shown}"
            )
        seed = build.const(1, result.dtype, result.node.shape)
        wanted = _nodes_of(trees)
        root, folded = unfold(result.node)
        found = fold(gradients([root], [seed], wanted, unreached="zero"), folded)
        own, *parts = _given([result.node, *found], given, result.bindings)
        derived = unflatten(flatten(trees)[1], parts)
        value = (own, _outside(aux, given)) if has_aux else own
        return value, derived[0] if isinstance(argnums, int) else tuple(derived)

    return run


def vjp(f: Callable[..., Any], *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """(outputs, pullback): what f returns, and the function that takes cotangents, a tree like the
    outputs, to a tuple with one tree of cotangents for each of the primals.

    primals: trees of floating tensors; f returns a tree of floating tensors, with `has_aux` a pair
    of that and something else, which is returned as a third. The pullback may be called many times.
    Source: JAX's and torch.func's `vjp`.

    >>> y, pullback = vjp(lambda x: x * x, Tensor([1.0, 2.0]))
    >>> pullback(Tensor([1.0, 10.0]))[0].tolist()
    [2.0, 40.0]
    """
    given: dict[Node, Node] = {}
    trees = tuple([_stand_ins("vjp", primal, given) for primal in primals])
    with enable_grad():
        result, aux = _split("vjp", f(*trees), has_aux)
    leaves, structure = flatten(result)
    bindings = NO_BINDINGS
    for leaf in leaves:
        if not isinstance(leaf, Tensor) or not leaf.dtype.is_float:
            shown = f"one of {leaf.dtype}" if isinstance(leaf, Tensor) else kind(leaf)
            raise TypeError(f"vjp: the function must return floating tensors, not {shown}")
        bindings = bind(bindings, leaf.bindings)
    wanted = _nodes_of(trees)
    roots = [leaf.node for leaf in leaves]

    def pullback(cotangents: Any) -> tuple[Any, ...]:
        """Cotangents of the outputs to cotangents of the primals."""
        parts, own = flatten(cotangents)
        if own != structure:
            raise ValueError(f"vjp: cotangents of structure {own} for outputs {structure}")
        for part in parts:
            if not isinstance(part, Tensor):
                raise TypeError(f"vjp: a cotangent must be a tensor, not {kind(part)}")
        unfolded = [unfold(root) for root in roots]
        folded = {node: leaf for _, own in unfolded for node, leaf in own.items()}
        seeds = [part.node for part in parts]
        ends = [root for root, _ in unfolded]
        found = fold(gradients(ends, seeds, wanted, unreached="zero"), folded)
        joined = bindings
        for part in parts:
            joined = bind(joined, part.bindings)
        back: tuple[Any, ...] = unflatten(flatten(trees)[1], _given(found, given, joined))
        return back

    outputs = unflatten(structure, _given(roots, given, bindings))
    return (outputs, pullback, _outside(aux, given)) if has_aux else (outputs, pullback)


def _split(name: str, result: Any, has_aux: bool) -> tuple[Any, Any]:
    """(what is differentiated, what is not) of a result."""
    if not has_aux:
        return result, None
    if not isinstance(result, tuple) or len(result) != 2:
        raise TypeError(
            f"{name}: with has_aux the function must return (result, aux), not {kind(result)}"
        )
    return result


def _stand_ins(name: str, tree: Any, given: dict[Node, Node]) -> Any:
    """The tree with a stand-in for each tensor."""
    leaves, structure = flatten(tree)
    return unflatten(structure, [_argument(name, leaf, given) for leaf in leaves])


def _nodes_of(tree: Any) -> list[Node]:
    """The node of every tensor in a tree."""
    return [leaf.node for leaf in flatten(tree)[0]]


def _given(
    roots: Sequence[Node], given: dict[Node, Node], bindings: dict[str, int]
) -> list[Tensor]:
    """Graphs over stand-ins as tensors of the arguments themselves."""
    return [Tensor._of(node, bindings) for node in substitute(roots, given)]


def _outside(tree: Any, given: dict[Node, Node]) -> Any:
    """A tree of results with the arguments in the place of their stand-ins."""
    leaves, structure = flatten(tree)
    return unflatten(
        structure,
        [
            Tensor._of(substitute([leaf.node], given)[0], leaf.bindings)
            if isinstance(leaf, Tensor)
            else leaf
            for leaf in leaves
        ],
    )


def _argument(name: str, leaf: Any, given: dict[Node, Node]) -> Tensor:
    """A stand-in for an argument: a leaf of its own, which `given` maps to the argument's value."""
    if not isinstance(leaf, Tensor):
        raise TypeError(
            f"{name}: arguments to differentiate by are tensors, not {type(leaf).__name__}"
        )
    if not leaf.dtype.is_float:
        raise TypeError(
            f"{name}: only floating-point tensors have a derivative; an argument is {leaf.dtype}"
        )
    stand_in = memory.defer(leaf.node, leaf.device)
    given[stand_in] = leaf.node
    argument = Tensor._of(stand_in, leaf.bindings)
    track(argument, stand_in)  # a value read inside the function keeps its history
    return argument


def grad(
    f: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """The function that computes the derivative of f; see `value_and_grad`. With `has_aux` it
    returns `(derivative, aux)`.

    >>> grad(grad(lambda x: x**3))(Tensor(2.0)).item()
    12.0
    """
    both = value_and_grad(f, argnums, has_aux)

    @wraps(f)
    def run(*args: Any, **named: Any) -> Any:
        value, derived = both(*args, **named)
        return (derived, value[1]) if has_aux else derived

    return run
