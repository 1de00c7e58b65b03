"""Loops with a carried value: `scan`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from treadle.engine.cell import NO_BINDINGS, bind
from treadle.graph import scan as loops
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
    bindings = NO_BINDINGS
    for leaf in (*flatten(init)[0], *flatten(xs)[0]):
        if isinstance(leaf, Tensor):
            bindings = bind(bindings, leaf.bindings)

    def body(carry: Any, x: Any) -> Any:
        returned = f(tensors(carry, bindings), tensors(x, bindings))
        if not isinstance(returned, tuple) or len(returned) != 2:
            raise TypeError(f"scan: the function must return (carry, y), not {kind(returned)}")
        return tuple([nodes(tree) for tree in returned])

    carry, ys = loops.scan(body, nodes(init), nodes(xs), length, reverse)
    return tensors(carry, bindings), tensors(ys, bindings)
