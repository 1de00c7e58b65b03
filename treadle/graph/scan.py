"""Loops with a carried value: `scan`, its derivatives, and many of them at once.

A recurrence of a thousand steps is one SCAN node, whose body stands in it once: a SINK over
PLACEHOLDERs. A program stays as long as its body, however often the body runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from treadle.graph import shapes
from treadle.graph.batching import WHOLE_BATCHING, Batched, batched, moved_axis, with_axis
from treadle.graph.body import (
    check_carry,
    check_leaves,
    close,
    outputs_of,
    parameter,
    substitute,
)
from treadle.graph.build import cast, const, reduce, reshape, shrink, where, zeros_like
from treadle.graph.forward import WHOLE_JVP, Tangents, tangents
from treadle.graph.grad import WHOLE_VJP, gradients, joined
from treadle.graph.places import remember_bodies
from treadle.graph.tree import flatten, unflatten
from treadle.ir import ops
from treadle.ir.dtype import void
from treadle.ir.node import Node, toposort


def scan(
    f: Callable[[Any, Any], Any],
    init: Any,
    xs: Any = None,
    length: Any = None,
    reverse: bool = False,
) -> tuple[Any, Any]:
    """Carry a value through a loop: `carry, y = f(carry, x)` for every x along the first axis.

    init: a tree of nodes. xs: a tree of nodes with a common first dimension, or None with a
    `length`. f gets trees of nodes like `init` and like one step of `xs`; it returns a carry with
    the structure, shapes and dtypes of `init`, and a tree of results. Nodes from outside that f
    uses are constant in the loop. `reverse` runs from the last x to the first.

    Returns the last carry, and the tree of results, stacked along a new first axis in the order of
    xs. f is called once. Source: `jax.lax.scan`. Example: running sums are
    `scan(lambda total, x: (add(total, x), add(total, x)), zero, xs)`.
    """
    carries, carry_structure = flatten(init)
    inputs, input_structure = flatten(xs)
    check_leaves("scan", "init", init)
    check_leaves("scan", "xs", xs)
    steps = _length(inputs, length)
    own_carries = [parameter(c.dtype, c.shape) for c in carries]
    own_inputs = [parameter(x.dtype, x.shape[1:]) for x in inputs]
    returned = f(unflatten(carry_structure, own_carries), unflatten(input_structure, own_inputs))
    if not isinstance(returned, tuple) or len(returned) != 2:
        raise TypeError(f"scan: the function must return (carry, result), not {returned!r:.80}")
    new_carries, new_structure = flatten(returned[0])
    results, result_structure = flatten(returned[1])
    check_leaves("scan", "the carry that the function returns", returned[0])
    check_leaves("scan", "the result that the function returns", returned[1])
    check_carry("scan", "the function", (carry_structure, carries), (new_structure, new_carries))
    body, constants = close([*new_carries, *results], [*own_carries, *own_inputs])
    outputs = _loop(
        body, (*carries, *inputs, *constants), len(carries), len(inputs), steps, reverse
    )
    return (
        unflatten(carry_structure, outputs[: len(carries)]),
        unflatten(result_structure, outputs[len(carries) :]),
    )


def _loop(
    body: Sequence[Node],
    sources: tuple[Node, ...],
    carries: int,
    inputs: int,
    length: Any,
    reverse: bool,
) -> list[Node]:
    """The outputs of a SCAN whose parameters in `body` count from 0.

    A loop of no steps is none: nothing of its body runs, not even what is the same in every step.
    """
    if length == 0 and isinstance(length, int):
        empty = [const(0, result.dtype, (0, *result.shape)) for result in body[carries:]]
        return [_as_computed_from(sources, result) for result in (*sources[:carries], *empty)]
    sink = Node(ops.SINK, void, tuple(body))
    dtypes = tuple([result.dtype for result in body])
    loop = Node(ops.SCAN, dtypes, sources, (sink, carries, inputs, length, reverse))
    return outputs_of(remember_bodies(loop))


# ---- checks --------------------------------------------------------------------------------------
def _length(inputs: Sequence[Node], length: Any) -> Any:
    """The number of steps, which xs and `length` must agree on."""
    if length is None and not inputs:
        raise ValueError("scan: without xs, give the number of steps as length=")
    steps = None if length is None else shapes.as_dim(length)
    for x in inputs:
        if not x.shape:
            raise ValueError("scan: xs holds a tensor of shape (), which has no axis to step along")
        if steps is None:
            steps = x.shape[0]
        elif not shapes.same(steps, x.shape[0]):
            raise ValueError(
                f"scan: {shapes.dim_text(steps)} steps are wanted, but xs holds a tensor of shape "
                f"{shapes.text(x.shape)}; its first dimension must be the number of steps"
            )
    if shapes.at_most(0, steps) is not True:
        raise ValueError(f"scan: length={shapes.dim_text(steps)} is not a number of steps")
    return steps


def _as_computed_from(sources: Sequence[Node], value: Node) -> Node:
    """The value, whose derivative by each of the sources is zero where it is none of them."""
    for x in sources:
        if x is not value and x.dtype is value.dtype:
            nothing = shrink(reshape(x, (shapes.total(x.shape),)), [(0, 0)])
            value = where(True, value, reduce("add", nothing))
    return value


# ---- derivatives ---------------------------------------------------------------------------------
def _parameters(node: Node) -> list[Node]:
    """The parameters of a SCAN's body, one for each source: what it is in one step."""
    _, carries, inputs, _, _ = node.arg
    steps = [
        source.shape[1:] if carries <= i < carries + inputs else source.shape
        for i, source in enumerate(node.src)
    ]
    return [
        Node(ops.PLACEHOLDER, source.dtype, (), (i, shape))
        for i, (source, shape) in enumerate(zip(node.src, steps))
    ]


def _scan_vjp(
    node: Node, cotangents: Sequence[Node | None], needed: Sequence[bool]
) -> list[Node | None]:
    """Backward through a SCAN: a second loop, in the other direction, whose body is the derivative
    of the body. It carries the cotangents of the carries, and sums those of the constants.

    The values that the carries had at each step come from a run of the first loop that also
    returns them (`graph/simplify.py` merges it with the loop whose derivative this is).
    """
    body, carries, inputs, length, reverse = node.arg
    sources = node.src
    first_constant = carries + inputs
    parameters = _parameters(node)
    moving = [i for i in range(carries) if sources[i].dtype.is_inexact]
    results = [i for i in range(carries, len(body.src)) if cotangents[i] is not None]
    by_step = [i for i in range(carries, first_constant) if needed[i]]
    summed = [i for i in range(first_constant, len(sources)) if needed[i]]

    ends = [body.src[i] for i in (*moving, *results)]
    seeds = [parameter(end.dtype, end.shape) for end in ends]
    wanted = [parameters[i] for i in (*moving, *by_step, *summed)]
    transposed = gradients(ends, seeds, wanted, unreached="zero")
    below = set(toposort(transposed))
    read = [i for i, parameter in enumerate(parameters) if parameter in below]

    histories = _histories(node, parameters, [i for i in read if i < carries])
    stacked = {i: histories[i] if i < carries else sources[i] for i in read if i < first_constant}
    constant = {parameters[i]: sources[i] for i in read if i >= first_constant}

    def step(carry: Any, x: Any) -> tuple[Any, Any]:
        (carried, sums), (values, arriving) = carry, x
        given = dict(zip((parameters[i] for i in stacked), values))
        seeded = dict(zip(seeds, (*carried, *arriving)))
        derived = substitute(transposed, {**given, **constant, **seeded})
        outgoing = derived[len(moving) : len(moving) + len(by_step)]
        parts = derived[len(moving) + len(by_step) :]
        sums = [joined(total, cast(part, total.dtype)) for total, part in zip(sums, parts)]
        return (derived[: len(moving)], sums), outgoing

    (carried, sums), outgoing = scan(
        step,
        (
            [cotangents[i] or zeros_like(sources[i]) for i in moving],
            [cast(zeros_like(sources[i]), sources[i].dtype.accumulator) for i in summed],
        ),
        (list(stacked.values()), [cotangents[i] for i in results]),
        length,
        not reverse,
    )
    derivatives = dict(zip((*moving, *by_step), (*carried, *outgoing)))
    derivatives |= {i: cast(total, sources[i].dtype) for i, total in zip(summed, sums)}
    return [derivatives.get(i) if needed[i] else None for i in range(len(sources))]


def _histories(node: Node, parameters: Sequence[Node], wanted: Sequence[int]) -> dict[int, Node]:
    """For each wanted carry of a SCAN, the values with which its steps began, stacked."""
    if not wanted:
        return {}
    body, carries, inputs, length, reverse = node.arg
    longer = [*body.src, *(parameters[i] for i in wanted)]
    outputs = _loop(longer, node.src, carries, inputs, length, reverse)
    return dict(zip(wanted, outputs[len(body.src) :]))


def _scan_jvp(node: Node, arriving: Tangents) -> tuple[Sequence[Node], Tangents]:
    """Forward through a SCAN: one loop whose body computes the values and their tangents. A carry
    has a tangent if it comes with one, or if a step gives it one."""
    body, carries, inputs, length, reverse = node.arg
    parameters = _parameters(node)
    own = {i: parameter(p.dtype, p.shape) for i, p in enumerate(parameters) if p.dtype.is_inexact}
    moving = {i for i, tangent in enumerate(arriving) if tangent is not None}
    while True:
        derived = tangents(body.src, {parameters[i]: own[i] for i in own if i in moving})
        more = {i for i in range(carries) if derived[i] is not None} - moving
        if not more:
            break
        moving |= more
    given = {i: arriving[i] or zeros_like(node.src[i]) for i in sorted(moving)}
    carried = [i for i in given if i < carries]
    stepped = [i for i in given if carries <= i < carries + inputs]
    ends = [derived[i] or zeros_like(body.src[i]) for i in carried]
    shown = [i for i in range(carries, len(body.src)) if derived[i] is not None]
    constant = {own[i]: given[i] for i in given if i >= carries + inputs}
    constant |= dict(zip(parameters[carries + inputs :], node.src[carries + inputs :]))

    def step(carry: Any, x: Any) -> tuple[Any, Any]:
        names = [*parameters[:carries], *(own[i] for i in carried)]
        names += [*parameters[carries : carries + inputs], *(own[i] for i in stepped)]
        known = dict(zip(names, (*carry, *x)))
        roots = [*body.src[:carries], *ends, *body.src[carries:], *(derived[i] for i in shown)]
        results = substitute(roots, {**constant, **known})
        count = carries + len(ends)
        return tuple(results[:count]), tuple(results[count:])

    last, stacked = scan(
        step,
        (*node.src[:carries], *(given[i] for i in carried)),
        (*node.src[carries : carries + inputs], *(given[i] for i in stepped)),
        length,
        reverse,
    )
    results = len(body.src) - carries
    found = dict(zip((*carried, *shown), (*last[carries:], *stacked[results:])))
    return (*last[:carries], *stacked[:results]), [found.get(i) for i in range(len(body.src))]


# ---- many at once --------------------------------------------------------------------------------
def _scan_batched(node: Node, sources: Sequence[Batched], size: Any) -> list[Batched]:
    """A SCAN for every example: one loop whose steps do all examples. A carry has the axis if it
    comes with it, or if a step gives it one. In what is stacked the axis of the steps stays in
    front, so there the axis of the examples is the second."""
    body, carries, inputs, length, reverse = node.arg
    parameters = _parameters(node)
    own = [parameter(p.dtype, (size, *p.shape)) for p in parameters]
    batches = {i for i, (_, has) in enumerate(sources) if has}
    while True:
        done = batched(body.src, {parameters[i]: own[i] for i in batches}, size)
        more = {i for i in range(carries) if done[i][1]} - batches
        if not more:
            break
        batches |= more
    ends = [with_axis(*end, size) if i in batches else end[0] for i, end in enumerate(done)]
    entering = [
        with_axis(source, has, size) if i in batches else source
        for i, (source, has) in enumerate(sources)
    ]
    stepped = range(carries, carries + inputs)
    for i in stepped:
        if i in batches:
            entering[i] = moved_axis(entering[i], 0, 1)
    names = [own[i] if i in batches else parameters[i] for i in range(len(parameters))]
    constant = dict(zip(names[carries + inputs :], entering[carries + inputs :]))

    def step(carry: Any, x: Any) -> tuple[Any, Any]:
        known = dict(zip(names, (*carry, *x)))
        results = substitute([*ends[:carries], *(y for y, _ in done[carries:])], constant | known)
        return tuple(results[:carries]), tuple(results[carries:])

    last, stacked = scan(
        step, tuple(entering[:carries]), tuple([entering[i] for i in stepped]), length, reverse
    )
    flags = [has for _, has in done[carries:]]
    ys = [moved_axis(y, 1, 0) if has else y for y, has in zip(stacked, flags)]
    return [*((end, i in batches) for i, end in enumerate(last)), *zip(ys, flags)]


WHOLE_VJP[ops.SCAN] = _scan_vjp
WHOLE_JVP[ops.SCAN] = _scan_jvp
WHOLE_BATCHING[ops.SCAN] = _scan_batched
