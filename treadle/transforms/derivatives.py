"""Derivatives of functions, of any order: reverse mode."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from operator import index
from typing import Any, SupportsIndex

from treadle.engine.cell import NO_BINDINGS, bind
from treadle.engine.history import unfold, unfold_all
from treadle.graph import build
from treadle.graph.grad import gradients
from treadle.graph.tree import flatten, unflatten
from treadle.ir.node import Node
from treadle.tensor import Tensor, enable_grad
from treadle.transforms.stand_ins import finished, outside, picked, split, stand_ins
from treadle.transforms.trees import kind


def numbers_of(argnums: int | tuple[int, ...]) -> tuple[int, ...]:
    """Which arguments are meant, as a tuple."""
    return (index(argnums),) if isinstance(argnums, SupportsIndex) else tuple(argnums)


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

    @wraps(f)
    def run(*args: Any, **named: Any) -> tuple[Any, Any]:
        given: dict[Node, Node] = {}
        inner, trees = picked("grad", args, numbers_of(argnums), given)
        with enable_grad():
            result, aux = split("grad", f(*inner, **named), has_aux)
        if not isinstance(result, Tensor) or result.numel() != 1 or not result.dtype.is_float:
            shown = repr(result)
            if isinstance(result, Tensor):
                shown = f"a tensor of {result.dtype} {result.shape}"
            raise TypeError(
                f"grad: the function must return one floating number as a tensor, not {shown}"
            )
        seed = build.const(1, result.dtype, result.node.shape)
        root, folded = unfold(result.node)
        found = gradients([root], [seed], list(given), unreached="zero")
        own, *parts = finished([root, *found], folded, given, result.bindings)
        derived = unflatten(flatten(trees)[1], parts)
        value = (own, outside(aux, given)) if has_aux else own
        return value, derived[0] if isinstance(argnums, SupportsIndex) else tuple(derived)

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
    trees = tuple([stand_ins("vjp", primal, given) for primal in primals])
    with enable_grad():
        result, aux = split("vjp", f(*trees), has_aux)
    leaves, structure = flatten(result)
    bindings = NO_BINDINGS
    for leaf in leaves:
        if not isinstance(leaf, Tensor) or not leaf.dtype.is_inexact:
            shown = f"one of {leaf.dtype}" if isinstance(leaf, Tensor) else kind(leaf)
            raise TypeError(f"vjp: the function must return floating tensors, not {shown}")
        bindings = bind(bindings, leaf.bindings)
    roots = [leaf.node for leaf in leaves]

    def pullback(cotangents: Any) -> tuple[Any, ...]:
        """Cotangents of the outputs to cotangents of the primals."""
        parts, own = flatten(cotangents)
        if own.plain != structure.plain:
            raise ValueError(f"vjp: cotangents of structure {own} for outputs {structure}")
        for part in parts:
            if not isinstance(part, Tensor):
                raise TypeError(f"vjp: a cotangent must be a tensor, not {kind(part)}")
        ends, folded = unfold_all(roots)
        seeds = [part.node for part in parts]
        found = gradients(ends, seeds, list(given), unreached="zero")
        joined = bindings
        for part in parts:
            joined = bind(joined, part.bindings)
        tensors = finished(found, folded, given, joined)
        back: tuple[Any, ...] = unflatten(flatten(trees)[1], tensors)
        return back

    outputs = unflatten(structure, finished(*unfold_all(roots), given, bindings))
    return (outputs, pullback, outside(aux, given)) if has_aux else (outputs, pullback)


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
