"""Results of a loop whose derivative is a formula, and what all of linear algebra checks.

A factorization is computed by a loop. Its derivative is not that of the loop but a formula in its
inputs, its results and their tangents: `Formula` is the rule of a CALL that says so. Reverse mode
transposes the formula, which is linear in the tangents; a second derivative is that of the formula.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from treadle.graph import shapes
from treadle.graph.body import close, parameter
from treadle.graph.build import cast, zeros_like
from treadle.graph.call import Parts, Rule, outputs_of, transposed
from treadle.graph.shapes import text
from treadle.ir import ops
from treadle.ir.dtype import float32, float64, promote
from treadle.ir.node import Node

Tangents = Callable[[Sequence[Node], Sequence[Node], Sequence[Node]], Parts]


def opaque(
    function: Callable[..., Sequence[Node]], inputs: Sequence[Node], rule: Rule
) -> list[Node]:
    """What the function makes of the inputs, as outputs of one CALL with this rule."""
    own = [parameter(x.dtype, x.shape) for x in inputs]
    body, constants = close(function(*own), own, is_loop=False)
    return outputs_of(body, (*inputs, *constants), rule)


def results(whole: Node) -> list[Node]:
    """The outputs of a CALL."""
    return [Node(ops.OUT, dtype, (whole,), number) for number, dtype in enumerate(whole.dtype)]


class Formula(Rule):
    """A derivative that is a formula: `tangents(sources, results, tangents)` gives the tangent of
    each result, None for one that has none, from those of the first `inputs` sources. The others
    are computed from these, and are there so that the formula need not do it again."""

    def __init__(self, name: str, inputs: int, tangents: Tangents) -> None:
        super().__init__(name)
        self.inputs, self.tangents = inputs, tangents

    def jvp(self, call: Node, tangents: Parts) -> Parts:
        moving = zip(tangents[: self.inputs], call.src)
        given = [zeros_like(x) if t is None else t for t, x in moving]
        return self.tangents(call.src, results(call), given)

    def vjp(self, call: Node, cotangents: Parts, needed: Sequence[bool]) -> Parts:
        own = call.src[: self.inputs]
        found = transposed(lambda seeds: self.jvp(call, seeds), own, cotangents)
        return [*found, *[None] * (len(call.src) - len(found))]


# ---- checks --------------------------------------------------------------------------------------
def matrices(name: str, *given: Any) -> tuple[Node, ...]:
    """Tensors of matrices in one dtype. TypeError unless that is float32, float64, or complex;
    ValueError for one with fewer than two dimensions."""
    found = floating(name, *given)
    for x in found:
        if len(x.shape) < 2:
            raise ValueError(
                f"linalg.{name} is for matrices, in the last two dimensions, not for a tensor of "
                f"shape {text(x.shape)}"
            )
    return found


def floating(name: str, *given: Any) -> tuple[Node, ...]:
    """Tensors in one dtype. TypeError unless that is float32, float64, or complex."""
    for x in given:
        if not isinstance(x, Node):
            raise TypeError(f"linalg.{name} is for tensors, not for {shapes.words(x)}")
    dtype = given[0].dtype
    for x in given[1:]:
        dtype = promote(dtype, x.dtype)
    if dtype.real not in (float32, float64):
        raise TypeError(
            f"linalg.{name} is for float32 and float64 (and complex numbers of these), not for "
            f"{dtype}: cast the tensor, as in x.float()"
        )
    return tuple([cast(x, dtype) for x in given])


def square(name: str, x: Node) -> Node:
    """One tensor of square matrices. ValueError if they are not."""
    (x,) = matrices(name, x)
    if not shapes.same(x.shape[-2], x.shape[-1]):
        raise ValueError(f"linalg.{name} is for square matrices, not for shape {text(x.shape)}")
    return x
