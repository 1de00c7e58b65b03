"""Functions that derivatives see as a whole: `CALL`, and its first use, `checkpoint`.

A CALL holds what a function computed as a body over its inputs, and a rule that says how it is
differentiated. It means nothing else: before a graph is scheduled, `inline` puts the body in its
place, and what is left is the graph that the function itself would have built, node for node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from treadle.graph.batching import WHOLE_BATCHING, Batched, batched, with_axis
from treadle.graph.body import close, parameter, parameters_like, substitute, unmoved
from treadle.graph.build import constant_of, reduce, zeros_like
from treadle.graph.forward import WHOLE_JVP, tangents
from treadle.graph.grad import WHOLE_VJP, gradients
from treadle.graph.places import NOTED, hand_on
from treadle.ir import ops
from treadle.ir.dtype import void
from treadle.ir.named import Named
from treadle.ir.node import Node, remember, toposort
from treadle.ir.rewrite import Rules, rewrite

Parts = Sequence[Node | None]  # None is zero


class Rule(Named):
    """How a CALL is differentiated. together: whether for many examples every output is stacked,
    also one that is the same for all, because its cotangent counts in each example."""

    together = True

    def vjp(self, call: Node, cotangents: Parts, needed: Sequence[bool]) -> Parts:
        """The cotangent of each source that is needed, from one per output of the call."""
        raise NotImplementedError

    def jvp(self, call: Node, tangents: Parts) -> Parts:
        """The tangent of each output, from one per source."""
        raise NotImplementedError

    def batched(self, call: Node, has: Sequence[bool], size: Any) -> Rule:
        """The rule of the call for `size` examples, some of whose sources have their axis."""
        return BatchedRule(call, has, size)


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
    became: dict[Node, Node] = {}
    found = rewrite(roots, INLINE, became)
    for old, new in became.items():
        if old.op in NOTED:
            hand_on(old, new, became)
    return found


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

    together = False

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

    def jvp(self, call: Node, tangents: Parts) -> Parts:
        """The tangents are a function of inputs and tangents, with a checkpoint of its own."""
        arriving = tuple([i for i, t in enumerate(tangents) if t is not None])
        given = [t for t in tangents if t is not None]
        sources = (*call.src, *given)
        derived = remember(
            call.arg[0],
            ("jvp", arriving),
            lambda body: _jvp_of(body, parameters_like(sources), arriving),
        )
        found = iter(outputs_of([t for t in derived if t is not None], sources, self))
        return [None if t is None else next(found) for t in derived]

    def batched(self, call: Node, has: Sequence[bool], size: Any) -> Rule:
        return self


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


def _jvp_of(body: Node, parameters: Sequence[Node], arriving: Sequence[int]) -> Parts:
    """The tangents of the outputs of a body; the last parameters are those of `arriving`."""
    moving = zip(arriving, parameters[len(parameters) - len(arriving) :])
    return tangents(body.src, {parameters[number]: tangent for number, tangent in moving})


# ---- rules of users ------------------------------------------------------------------------------
def outputs_like(whole: Node) -> list[Node]:
    """Nodes with the dtypes and shapes of the outputs of a CALL: the results of its body."""
    return list(whole.arg[0].src)


def transposed(
    linear: Callable[[list[Node]], Parts], inputs: Sequence[Node], cotangents: Parts
) -> Parts:
    """The transpose of a linear function, applied: from a cotangent for each result of `linear` to
    one for each of its inputs, which are like the nodes given."""
    seeds = [parameter(x.dtype, x.shape) for x in inputs]
    pairs = [(y, g) for y, g in zip(linear(seeds), cotangents) if y is not None and g is not None]
    wanted = [seed for seed in seeds if seed.dtype.is_inexact]
    found = gradients([y for y, _ in pairs], [g for _, g in pairs], wanted, unreached="none")
    # the derivative of a linear function does not depend on where it is taken
    anywhere = {seed: zeros_like(seed) for seed in seeds}
    made = {
        seed: None if part is None else substitute([part], anywhere)[0]
        for seed, part in zip(wanted, found)
    }
    return [made.get(seed) for seed in seeds]


class BatchedRule(Rule):
    """The rule of a CALL for many examples: that of one example, for all. example: the CALL of one;
    has: which of its sources have the axis of the examples. Every output has it."""

    def __init__(self, example: Node, has: Sequence[bool], size: Any) -> None:
        self.rule: Rule = example.arg[1]
        super().__init__(f"batched {self.rule.name}")
        own = tuple([parameter(x.dtype, x.shape) for x in example.src])
        self.example = example.with_src(own)
        self.has, self.size = has, size

    def vjp(self, call: Node, cotangents: Parts, needed: Sequence[bool]) -> Parts:
        own, stacked = self._stand_ins(cotangents)
        parts = self.rule.vjp(self.example, own, needed)
        found = self._for_all(parts, call, stacked)
        return [
            None if part is None else self._like_source(*part, has)
            for part, has in zip(found, self.has)
        ]

    def jvp(self, call: Node, tangents: Parts) -> Parts:
        # a source that all examples share moves along one tangent in all of them
        own, stacked = self._stand_ins(
            [
                t if t is None or has else with_axis(t, False, self.size)
                for t, has in zip(tangents, self.has)
            ]
        )
        found = self._for_all(self.rule.jvp(self.example, own), call, stacked)
        return [None if part is None else with_axis(*part, self.size) for part in found]

    def _stand_ins(self, parts: Parts) -> tuple[Parts, dict[Node, Node]]:
        """A stand-in for one example of each stacked node, and {stand-in: stacked node}."""
        own = [None if p is None else parameter(p.dtype, p.shape[1:]) for p in parts]
        return own, {o: p for o, p in zip(own, parts) if o is not None and p is not None}

    def _for_all(self, parts: Parts, call: Node, stacked: dict[Node, Node]) -> list[Batched | None]:
        """What was made for one example, made for all."""
        pairs = list(zip(self.example.src, call.src, self.has))
        stacked = {**stacked, **{own: x for own, x, has in pairs if has}}
        roots = substitute(
            [part for part in parts if part is not None],
            {own: x for own, x, has in pairs if not has},
        )
        found = iter(batched(roots, stacked, self.size))
        return [None if part is None else next(found) for part in parts]

    def _like_source(self, part: Node, stacked: bool, has: bool) -> Node:
        """The cotangent of a source: summed over the examples if all share it."""
        part = with_axis(part, stacked, self.size)
        return part if has else reduce("add", part, 0)


# ---- rows of the tables --------------------------------------------------------------------------
def _call_vjp(node: Node, cotangents: Parts, needed: Sequence[bool]) -> Parts:
    rule: Rule = node.arg[1]
    return rule.vjp(node, cotangents, needed)


def _call_jvp(node: Node, arriving: Parts) -> tuple[None, Parts]:
    rule: Rule = node.arg[1]
    return None, rule.jvp(node, arriving)


def _call_batched(node: Node, sources: Sequence[Batched], size: Any) -> list[Batched]:
    """The same call, whose body is for all examples."""
    nodes = [source for source, _ in sources]
    has = [has for _, has in sources]
    pairs = zip(parameters_like(node.src), parameters_like(nodes), has)
    done = batched(node.arg[0].src, {own: new for own, new, has in pairs if has}, size)
    rule: Rule = node.arg[1]
    if rule.together:
        done = [(with_axis(*each, size), True) for each in done]
    outputs = outputs_of([y for y, _ in done], nodes, rule.batched(node, has, size))
    return [(output, has) for output, (_, has) in zip(outputs, done)]


WHOLE_VJP[ops.CALL] = _call_vjp
WHOLE_JVP[ops.CALL] = _call_jvp
WHOLE_BATCHING[ops.CALL] = _call_batched
