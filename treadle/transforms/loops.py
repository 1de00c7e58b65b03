"""Loops and branches that are in the program: `scan`, `while_loop`, `cond`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from treadle.engine.cell import NO_BINDINGS, bind, live
from treadle.engine.inside import inside
from treadle.graph import loops
from treadle.graph import scan as scans
from treadle.graph.tree import flatten
from treadle.tensor import Tensor
from treadle.transforms.trees import kind, nodes, tensors


def scan(
    f: Callable[[Any, Any], Any],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
) -> tuple[Any, Any]:
    """Carry a value through a loop: `carry, y = f(carry, x)` for each x along xs's first axis.

    init, xs: trees of tensors; f gets trees of tensors and returns `(carry, y)`, the carry with the
    structure, shapes and dtypes of `init`. Returns the last carry and the stacked ys. f is called
    once: the loop is a loop in the program too. Source: JAX's `lax.scan`.

    >>> last, sums = scan(lambda t, x: (t + x, t + x), Tensor(0.0), Tensor([1.0, 2.0, 3.0]))
    >>> sums.tolist()
    [1.0, 3.0, 6.0]
    """
    call = _Traced("scan", init, xs)

    def body(carry: Any, x: Any) -> Any:
        returned = f(carry, x)
        if not isinstance(returned, tuple) or len(returned) != 2:
            raise TypeError(f"scan: the function must return (carry, y), not {kind(returned)}")
        return returned

    carry, ys = scans.scan(call.traced(body), nodes(init), nodes(xs), length, reverse)
    return call.tensors(carry), call.tensors(ys)


def while_loop(condition: Callable[[Any], Any], body: Callable[[Any], Any], init: Any) -> Any:
    """Carry a value through a loop: `while condition(carry): carry = body(carry)`.

    init: a tree of tensors, which is the first carry; condition returns a bool tensor of shape (),
    body a carry with the structure, shapes and dtypes of `init`. Returns the last carry. Each
    function is called once: the loop is a loop in the program too, and how often it runs is found
    out when it runs. What the functions use from outside is constant in the loop; a random draw
    inside gives the same numbers in every trip. Ctrl-C ends a loop that does not end.

    It has forward derivatives (`jvp`) and can be batched; backwards it has none
    (NotImplementedError): use `scan` with a fixed length. TypeError and ValueError name the leaf of
    the carry that changes, or what the condition is instead of a bool. Source: JAX's
    `lax.while_loop`.

    >>> x = Tensor(1.0)
    >>> while_loop(lambda y: (y * y - 2).abs() > 1e-6, lambda y: (y + 2 / y) / 2, x).item()
    1.4142135381698608
    """
    call = _Traced("while_loop", init)
    last = loops.while_loop(call.traced(condition), call.traced(body), nodes(init))
    return call.tensors(last)


def cond(
    predicate: Tensor,
    true_function: Callable[..., Any],
    false_function: Callable[..., Any],
    *operands: Any,
) -> Any:
    """`true_function(*operands)` if the predicate holds, else `false_function(*operands)`.

    predicate: a bool tensor of shape (). operands: trees of tensors. Both functions return trees of
    one structure, with equal shapes and dtypes. Each is called once, and only what the chosen one
    computes runs: the choice is in the program. (`where` computes both.) It has all derivatives;
    under `vmap`, with a predicate of its own for each example, both branches run, and `where`
    chooses. TypeError and ValueError name the leaf in which the branches differ, or what the
    predicate is instead of a bool. Source: JAX's `lax.cond`.

    >>> x = Tensor([1.0, 2.0])
    >>> cond(x.sum() > 4, lambda x: x * 10, lambda x: -x, x).tolist()
    [-1.0, -2.0]
    """
    call = _Traced("cond", predicate, operands)
    result = loops.cond(
        nodes(predicate),
        call.traced(true_function),
        call.traced(false_function),
        *nodes(operands),
        outside={cell.node for cell in live()},
    )
    return call.tensors(result)


class _Traced:
    """A call of a loop: the values of the Variables in all that it gets, uses and returns, and the
    device of what it gets."""

    def __init__(self, name: str, *arguments: Any) -> None:
        self.name = name
        self.bindings = NO_BINDINGS
        self.note(arguments)
        given = (leaf for leaf in flatten(arguments)[0] if isinstance(leaf, Tensor))
        self.device = next((leaf.device for leaf in given), "")

    def note(self, tree: Any) -> None:
        for leaf in flatten(tree)[0]:
            if isinstance(leaf, Tensor):
                self.bindings = bind(self.bindings, leaf.bindings)

    def traced(self, f: Callable[..., Any]) -> Callable[..., Any]:
        """A function of tensors as one of nodes."""

        def run(*arguments: Any) -> Any:
            with inside(self.name) as scope:
                for own in flatten(arguments)[0]:
                    scope.adopt(own, self.device)
                returned = f(*[self.tensors(argument) for argument in arguments])
            self.note(returned)
            return nodes(returned)

        return run

    def tensors(self, tree: Any) -> Any:
        """The tree with a tensor for each node."""
        return tensors(tree, self.bindings)
