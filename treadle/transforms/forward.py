"""Derivatives of functions forward, and whole matrices of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from typing import Any, SupportsIndex

from treadle.engine.cell import bind
from treadle.engine.history import unfold_all
from treadle.graph import build, shapes
from treadle.graph.batching import batched, with_axis
from treadle.graph.body import parameter
from treadle.graph.forward import pushed
from treadle.graph.forward import tangents as tangents_of
from treadle.graph.grad import gradients
from treadle.graph.tree import flatten, unflatten
from treadle.ir import ops
from treadle.ir.dtype import int64
from treadle.ir.node import Node
from treadle.tensor import Tensor, enable_grad
from treadle.transforms.derivatives import grad, numbers_of
from treadle.transforms.stand_ins import finished, outputs_of, outside, picked, split
from treadle.transforms.trees import kind

Argnums = int | tuple[int, ...]


def jvp(
    f: Callable[..., Any], primals: Any, tangents: Any, has_aux: bool = False
) -> tuple[Any, ...]:
    """`f(*primals)`, and how it changes when the primals move along the tangents: (outputs, J t).

    primals: a tuple of arguments, each a tree of floating tensors. tangents: the same trees, with
    tensors of the same shapes and dtypes. The second result has the tree of the first; what is
    integer in it, or does not depend on the primals, has a tangent of zeros. With `has_aux` f
    returns a pair of its result and something else, which is returned as a third. TypeError for
    integer primals and for results that are no tensors, ValueError for other trees or shapes.
    Source: JAX's `jvp`.

    >>> value, change = jvp(lambda x: x * x, (Tensor(3.0),), (Tensor(1.0),))
    >>> value.item(), change.item()
    (9.0, 6.0)
    """
    _check_tuples("jvp", primals, tangents)
    moves = _tangent_leaves(primals, tangents)
    given: dict[Node, Node] = {}
    inner, _ = picked("jvp", primals, range(len(primals)), given)
    with enable_grad():
        result, aux = split("jvp", f(*inner), has_aux)
    leaves, structure, bindings = outputs_of("jvp", result)
    for move in moves:
        bindings = bind(bindings, move.bindings)
    roots, folded = unfold_all([leaf.node for leaf in leaves])
    pairs = pushed(roots, dict(zip(given, [move.node for move in moves])))
    moved = [build.zeros_like(value) if t is None else t for value, t in pairs]
    found = finished([*(value for value, _ in pairs), *moved], folded, given, bindings)
    outputs = unflatten(structure, found[: len(leaves)])
    changes = unflatten(structure, found[len(leaves) :])
    return (outputs, changes, outside(aux, given)) if has_aux else (outputs, changes)


def _check_tuples(name: str, primals: Any, tangents: Any) -> None:
    for what, given in (("primals", primals), ("tangents", tangents)):
        if not isinstance(given, tuple | list):
            raise TypeError(
                f"{name}: {what} is a tuple of the function's arguments, not {kind(given)}: write "
                f"{name}(f, (x,), (t,))"
            )


def _tangent_leaves(primals: Any, tangents: Any) -> list[Tensor]:
    """The tangents, one for each leaf of the primals."""
    leaves, structure = flatten(tuple(primals))
    moves, own = flatten(tuple(tangents))
    if own != structure:
        raise ValueError(f"jvp: the primals are {structure} and the tangents {own}: one tree each")
    for leaf, move in zip(leaves, moves):
        if not isinstance(leaf, Tensor):
            continue  # which its stand-in will say
        if not isinstance(move, Tensor):
            raise TypeError(f"jvp: tangents are tensors, not {kind(move)}: write Tensor(..)")
        if not shapes.same_shape(move.node.shape, leaf.node.shape):
            raise ValueError(
                f"jvp: a tangent has the shape of its primal, {leaf.shape}, not {move.shape}"
            )
        if move.dtype is not leaf.dtype:
            raise TypeError(
                f"jvp: a tangent has the dtype of its primal, {leaf.dtype}, not {move.dtype}: cast "
                f"it: .cast({leaf.dtype})"
            )
    return moves


# ---- whole matrices ------------------------------------------------------------------------------
def jacobian(
    f: Callable[..., Any], argnums: Argnums = 0, mode: str = "reverse"
) -> Callable[..., Any]:
    """The function that computes every derivative of every element of f's result, by every element
    of the arguments numbered `argnums`.

    For a result of shape s and an argument of shape a it is a tensor of shape (*s, *a); for trees,
    a tree like the result that holds trees like the argument. mode: "reverse" does the work of one
    derivative for each element of the result, "forward" for each element of the arguments, all at
    once; choose by what is fewer. TypeError unless arguments and results are floating. Source:
    JAX's `jacrev` and `jacfwd`, which are names of the two modes here, too.

    >>> jacobian(lambda x: x * x)(Tensor([1.0, 2.0])).tolist()
    [[2.0, 0.0], [0.0, 4.0]]
    """
    if mode not in ("reverse", "forward"):
        raise ValueError(f'jacobian: mode is "reverse" or "forward", not {mode!r}')
    rows = _by_result if mode == "reverse" else _by_argument

    @wraps(f)
    def run(*args: Any, **named: Any) -> Any:
        given: dict[Node, Node] = {}
        inner, trees = picked("jacobian", args, numbers_of(argnums), given)
        with enable_grad():
            leaves, structure, bindings = outputs_of("jacobian", f(*inner, **named))
        for leaf in leaves:
            if not leaf.dtype.is_float:
                raise TypeError(
                    f"jacobian: only floating-point results have a derivative, not {leaf.dtype}"
                )
        inputs = list(given)
        roots, folded = unfold_all([leaf.node for leaf in leaves])
        found = finished(rows(roots, inputs), folded, given, bindings)
        parts = []
        for first in range(0, len(found), len(inputs) or 1):
            tree = unflatten(flatten(trees)[1], found[first : first + len(inputs)])
            parts.append(tree[0] if isinstance(argnums, SupportsIndex) else tuple(tree))
        return unflatten(structure, parts)

    return run


def jacrev(f: Callable[..., Any], argnums: Argnums = 0) -> Callable[..., Any]:
    """`jacobian` in reverse mode. Source: JAX's and PyTorch's `jacrev`.

    >>> jacrev(lambda x: x.sum())(Tensor([1.0, 2.0])).tolist()
    [1.0, 1.0]
    """
    return jacobian(f, argnums, "reverse")


def jacfwd(f: Callable[..., Any], argnums: Argnums = 0) -> Callable[..., Any]:
    """`jacobian` in forward mode. Source: JAX's and PyTorch's `jacfwd`.

    >>> jacfwd(lambda x: x.sin())(Tensor(0.0)).item()
    1.0
    """
    return jacobian(f, argnums, "forward")


def hessian(f: Callable[..., Any], argnums: Argnums = 0) -> Callable[..., Any]:
    """The function that computes the second derivatives of f: forward over reverse mode.

    For a result of shape s and an argument of shape a it is a tensor of shape (*s, *a, *a); for
    trees, trees of trees. Source: JAX's `hessian`.

    >>> hessian(lambda x: (x**3).sum())(Tensor([1.0, 2.0])).tolist()
    [[6.0, 0.0], [0.0, 12.0]]
    """
    return jacobian(jacobian(f, argnums, "reverse"), argnums, "forward")


def hvp(f: Callable[..., Any], primals: Any, tangents: Any) -> Any:
    """The Hessian of f at the primals times the tangents, a tuple of trees like the primals.

    f returns one floating number as a tensor. Forward over reverse mode: the Hessian itself, whose
    size is the square of that of the primals, never exists. Primals and tangents are as of `jvp`.

    >>> (product,) = hvp(lambda x: (x**3).sum(), (Tensor([1.0, 2.0]),), (Tensor([1.0, 1.0]),))
    >>> product.tolist()
    [6.0, 12.0]
    """
    _check_tuples("hvp", primals, tangents)
    derivative = grad(f, tuple(range(len(primals))))
    return jvp(derivative, primals, tangents)[1]


def _by_result(roots: Sequence[Node], inputs: Sequence[Node]) -> Iterable[Node]:
    """For each root and input: the derivative of every element of the root by the input."""
    for root in roots:
        seed = parameter(root.dtype, root.shape)
        found = gradients([root], [seed], inputs, unreached="zero")
        for x, rows in zip(inputs, _for_each_unit(found, seed)):
            yield build.reshape(rows, (*root.shape, *x.shape))


def _by_argument(roots: Sequence[Node], inputs: Sequence[Node]) -> Iterable[Node]:
    """The same, forward."""
    columns = []
    for x in inputs:
        seed = parameter(x.dtype, x.shape)
        found = [
            build.zeros_like(root) if t is None else t
            for root, t in zip(roots, tangents_of(roots, {x: seed}))
        ]
        columns.append(_for_each_unit(found, seed))
    for number, root in enumerate(roots):
        for x, column in zip(inputs, columns):
            rank = len(root.shape)
            order = (*range(1, rank + 1), 0)
            last = build.permute(column[number], order)
            yield build.reshape(last, (*root.shape, *x.shape))


def _for_each_unit(nodes: Sequence[Node], seed: Node) -> list[Node]:
    """The nodes for every seed that is 1 in one place and 0 elsewhere, in order, stacked."""
    count = shapes.total(seed.shape)
    numbers = build.iota(count, int64)
    equal = build.alu(
        ops.EQ, build.reshape(numbers, (count, 1)), build.reshape(numbers, (1, count))
    )
    units = build.reshape(build.cast(equal, seed.dtype), (count, *seed.shape))
    return [with_axis(*pair, count) for pair in batched(nodes, {seed: units}, count)]
