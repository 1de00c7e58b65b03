"""Functions that derivatives see as a whole: `CALL`, and its first use, `checkpoint`.

A CALL holds what a function computed as a body over its inputs, and a rule that says how it is
differentiated. It means nothing else: before a graph is scheduled, `inline` puts the body in its
place, and what is left is the graph that the function itself would have built, node for node.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from treadle.graph.batching import WHOLE_BATCHING, Batched, batched
from treadle.graph.body import close, parameter, parameters_like, substitute, unmoved
from treadle.graph.build import constant_of
from treadle.graph.forward import WHOLE_JVP, tangents
from treadle.graph.grad import WHOLE_VJP, gradients
from treadle.ir import ops
from treadle.ir.dtype import void
from treadle.ir.named import Named
from treadle.ir.node import Node, remember, toposort
from treadle.ir.rewrite import Rules, rewrite

Parts = Sequence[Node | None]  # None is zero


class Rule(Named):
    """How a CALL is differentiated."""

    def vjp(self, call: Node, cotangents: Parts, needed: Sequence[bool]) -> Parts:
        """The cotangent of each source that is needed, from one per output of the call."""
        raise NotImplementedError(f"{self.name} has no derivative in reverse mode")


# ---- making and inlining -------------------------------------------------------------------------
def call(roots: Sequence[Node], inputs: Sequence[Node], rule: Rule) -> list[Node]:
    """The roots, computed from the inputs and whatever else is below them, as outputs of one CALL.

    Its sources are the inputs, the keys of random draws, and the nodes from outside that the roots
    read. What is made of constants alone is part of the body.
    """
    # a constant may stand anywhere in the body: it is not taken for the input
    own = [parameter(x.dtype, x.shape) if constant_of(x) else x for x in inputs]
    drawn = [unmoved(n.src[1]) for n in toposort(roots) if n.op is ops.THREEFRY]
    keys = list(dict.fromkeys(key for key in drawn if key.op is ops.CONST))
    body, constants = close(roots, (*own, *keys), is_loop=False)
    return outputs_of(body, (*inputs, *keys, *constants), rule)


def outputs_of(body: Sequence[Node], sources: Sequence[Node], rule: Named) -> list[Node]:
    """The outputs of a CALL whose body has one parameter per source, counted from 0."""
    dtypes = tuple([result.dtype for result in body])
    sink = Node(ops.SINK, void, tuple(body))
    whole = Node(ops.CALL, dtypes, tuple(sources), (sink, rule))
    return [Node(ops.OUT, dtype, (whole,), number) for number, dtype in enumerate(dtypes)]


INLINE = Rules("call")


@INLINE.rule("inline", ops.OUT, algebra="call(body, x) -> body(x)")
def inline_output(node: Node) -> Node | None:
    """An output of a CALL, computed by its body."""
    whole = node.src[0]
    if whole.op is not ops.CALL:
        return None
    (result,) = substitute(
        [whole.arg[0].src[node.arg]], dict(zip(parameters_like(whole.src), whole.src))
    )
    return result


def inline(roots: Sequence[Node]) -> list[Node]:
    """The graphs without CALLs, also in the bodies of loops."""
    return rewrite(roots, INLINE)


def may_call(order: Iterable[Node]) -> bool:
    """Whether there may be a CALL among nodes or in their bodies."""
    return any(node.op.kind == "control" for node in order)


# ---- to be computed again ------------------------------------------------------------------------
def again(x: Node, after: Node) -> Node:
    """`x`, from which something is computed again as soon as `after` is there. The results are not
    the nodes that were made from `x` the first time."""
    moves = []
    while x.op.kind == "movement":  # what only moves is no computation
        moves.append(x)
        x = x.src[0]
    new = ops.AGAIN(x, unmoved(after))
    for move in reversed(moves):
        new = move.with_src((new,))
    return new


class Checkpoint(Rule):
    """The derivative of the body, which is computed again from the inputs when a cotangent arrives:
    until then nothing but the inputs is kept."""

    def vjp(self, call: Node, cotangents: Parts, needed: Sequence[bool]) -> Parts:
        arriving = tuple([i for i, g in enumerate(cotangents) if g is not None])
        parameters = parameters_like(call.src)
        key = (arriving, tuple(needed))
        seeds, derived = remember(
            call.arg[0], ("vjp", *key), lambda body: _vjp_of(body, parameters, *key)
        )
        given = [g for g in cotangents if g is not None]
        late = next((g for g in given if constant_of(g) is None), given[0])
        replaced = {p: again(x, late) for p, x in zip(parameters, call.src)}
        replaced |= zip(seeds, given)
        found = substitute([node for node in derived if node is not None], replaced)
        left = iter(found)
        return [None if node is None else next(left) for node in derived]


CHECKPOINT = Checkpoint("checkpoint")


def _vjp_of(
    body: Node, parameters: Sequence[Node], arriving: Sequence[int], needed: Sequence[bool]
) -> tuple[list[Node], list[Node | None]]:
    """The derivative of a body: the cotangents of its outputs `arriving`, as seeds, and what they
    make of each parameter that is needed."""
    ends = [body.src[number] for number in arriving]
    seeds = [parameter(end.dtype, end.shape) for end in ends]
    wanted = [p for p, need in zip(parameters, needed) if need]
    found = iter(gradients(ends, seeds, wanted, unreached="none"))
    return seeds, [next(found) if need else None for need in needed]


def _call_vjp(node: Node, cotangents: Parts, needed: Sequence[bool]) -> Parts:
    rule: Rule = node.arg[1]
    return rule.vjp(node, cotangents, needed)


def _call_jvp(node: Node, arriving: Parts) -> tuple[None, Parts]:
    """The tangents of the body."""
    parameters = parameters_like(node.src)
    own = {p: parameter(p.dtype, p.shape) for p, t in zip(parameters, arriving) if t is not None}
    derived = tangents(node.arg[0].src, own)
    given = dict(zip(parameters, node.src))
    given |= {own[p]: t for p, t in zip(parameters, arriving) if t is not None}
    found = iter(substitute([t for t in derived if t is not None], given))
    return None, [None if t is None else next(found) for t in derived]


def _call_batched(node: Node, sources: Sequence[Batched], size: Any) -> list[Batched]:
    """The same call, whose body is for all examples."""
    body, rule = node.arg
    nodes = [source for source, _ in sources]
    pairs = zip(parameters_like(node.src), parameters_like(nodes), sources)
    stacked = {own: new for own, new, (_, has) in pairs if has}
    done = batched(body.src, stacked, size)
    outputs = outputs_of([y for y, _ in done], nodes, rule)
    return [(output, has) for output, (_, has) in zip(outputs, done)]


WHOLE_VJP[ops.CALL] = _call_vjp
WHOLE_JVP[ops.CALL] = _call_jvp
WHOLE_BATCHING[ops.CALL] = _call_batched
