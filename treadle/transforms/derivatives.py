"""Derivatives of functions, of any order: reverse mode."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from treadle.engine.history import fold, track, unfold
from treadle.engine.storage import memory
from treadle.graph import build
from treadle.graph.body import substitute
from treadle.graph.grad import gradients
from treadle.graph.tree import flatten, unflatten
from treadle.ir.node import Node
from treadle.tensor import Tensor, enable_grad


def value_and_grad(
    f: Callable[..., Any], argnums: int | tuple[int, ...] = 0
) -> Callable[..., tuple[Tensor, Any]]:
    """The function that returns `f(..)` and its derivative by the arguments numbered `argnums`.

    f returns one floating tensor of one element. An argument may be a tree (tuple, list, dict) of
    floating tensors; its derivative is a tree of the same structure. Source: JAX's
    `value_and_grad`.

    >>> value_and_grad(lambda x: (x * x).sum())(Tensor([1.0, 2.0]))[1].tolist()
    [2.0, 4.0]
    """
    numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)

    @wraps(f)
    def run(*args: Any, **named: Any) -> tuple[Tensor, Any]:
        inner = list(args)
        wanted: list[Node] = []
        given: dict[Node, Node] = {}
        structures = []
        for number in numbers:
            if not -len(args) <= number < len(args):
                number_given = "1 was" if len(args) == 1 else f"{len(args)} were"
                raise TypeError(f"grad: there is no argument {number}: {number_given} given")
            leaves, structure = flatten(args[number])
            own = [_argument(leaf, given) for leaf in leaves]
            wanted += [tensor.node for tensor in own]
            structures.append((structure, len(own)))
            inner[number] = unflatten(structure, own)
        with enable_grad():
            result = f(*inner, **named)
        if not isinstance(result, Tensor) or result.numel() != 1 or not result.dtype.is_float:
            shown = repr(result)
            if isinstance(result, Tensor):
                shown = f"a tensor of {result.dtype} {result.shape}"
            raise TypeError(
                f"grad: the function must return one floating number as a tensor, not {shown}"
            )
        seed = build.const(1, result.dtype, result.node.shape)
        root, folded = unfold(result.node)
        found = fold(gradients([root], [seed], wanted, unreached="zero"), folded)
        nodes = substitute([result.node, *found], given)
        value, *parts = [Tensor._of(node, result.bindings) for node in nodes]
        left = iter(parts)
        trees = [unflatten(s, [next(left) for _ in range(count)]) for s, count in structures]
        return value, trees[0] if isinstance(argnums, int) else tuple(trees)

    return run


def _argument(leaf: Any, given: dict[Node, Node]) -> Tensor:
    """A stand-in for an argument: a leaf of its own, which `given` maps to the argument's value."""
    if not isinstance(leaf, Tensor):
        raise TypeError(
            f"grad: arguments to differentiate by are tensors, not {type(leaf).__name__}"
        )
    if not leaf.dtype.is_float:
        raise TypeError(
            f"grad: only floating-point tensors have a derivative; an argument is {leaf.dtype}"
        )
    stand_in = memory.defer(leaf.node, leaf.device)
    given[stand_in] = leaf.node
    argument = Tensor._of(stand_in, leaf.bindings)
    track(argument, stand_in)  # a value read inside the function keeps its history
    return argument


def grad(f: Callable[..., Any], argnums: int | tuple[int, ...] = 0) -> Callable[..., Any]:
    """The function that computes the derivative of f; see `value_and_grad`.

    >>> grad(grad(lambda x: x**3))(Tensor(2.0)).item()
    12.0
    """
    both = value_and_grad(f, argnums)

    @wraps(f)
    def run(*args: Any, **named: Any) -> Any:
        return both(*args, **named)[1]

    return run
