"""`while_loop` and `cond`: bodies that run as often, or only if, a value says so.

Both are one node whose bodies stand in it once, SINKs over PLACEHOLDERs as in `scan.py`. A program
sees one thing: a loop that tests a byte in memory before each trip. A `while_loop` writes it in
every trip; the branches of a `cond` are two loops of at most one trip, of which one is made.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any, NoReturn

from treadle.graph import build as b
from treadle.graph import shapes
from treadle.graph.batching import WHOLE_BATCHING, Batched, batched, with_axis
from treadle.graph.body import (
    below,
    check_carry,
    check_leaves,
    close,
    outputs_of,
    parameter,
    parameters_like,
    substitute,
)
from treadle.graph.forward import WHOLE_JVP, Tangents, pushed
from treadle.graph.grad import WHOLE_VJP, gradients
from treadle.graph.places import INDEXING, LOOPS, hand_on, remember_bodies
from treadle.graph.tree import difference, flatten, paths, unflatten
from treadle.ir import ops
from treadle.ir.dtype import bool_, void
from treadle.ir.node import Node, map_arg, toposort


def while_loop(condition: Callable[[Any], Any], body: Callable[[Any], Any], init: Any) -> Any:
    """Carry a value through a loop: `while condition(carry): carry = body(carry)`.

    init: a tree of nodes. Both functions get such a tree; condition returns a bool node of shape
    (), body a carry with the structure, shapes and dtypes of `init`. Nodes from outside that they
    use are constant in the loop. Returns the last carry: `init` if the condition does not hold at
    first. Each function is called once. Source: `jax.lax.while_loop`. Example: halving until a
    number is below 1 is `while_loop(lambda x: less(1, x), lambda x: mul(x, 0.5), x)`.
    """
    carries, structure = flatten(init)
    check_leaves("while_loop", "init", init)
    own = [parameter(c.dtype, c.shape) for c in carries]
    returned = body(unflatten(structure, own))
    check_leaves("while_loop", "what the body returns", returned)
    new, new_structure = flatten(returned)
    check_carry("while_loop", "the body", (structure, carries), (new_structure, new))
    test = condition(unflatten(structure, own))
    _check_test("while_loop: the condition must return", test)
    start, again = (substitute([test], dict(zip(own, now)))[0] for now in (carries, new))
    outputs = _while([again, *new], [parameter(bool_, ()), *own], [start, *carries])
    return unflatten(structure, outputs[1:])


def cond(
    predicate: Node,
    true_function: Callable[..., Any],
    false_function: Callable[..., Any],
    *operands: Any,
    outside: Collection[Node] = frozenset(),
) -> Any:
    """`true_function(*operands)` if the predicate holds, else `false_function(*operands)`; only
    that one is computed.

    predicate: a bool node of shape (). operands: trees of nodes. Both functions return trees of
    equal structure, shapes and dtypes; each is called once. outside: the nodes that were there
    before: what the functions make of them runs in their branch. Source: `jax.lax.cond`. Example:
    `cond(less(0, x), lambda y: y, lambda y: neg(y), x)` is the absolute value of x.
    """
    _check_test("cond: the predicate must be", predicate)
    given, structure = flatten(operands)
    check_leaves("cond", "the operands", operands)
    own = [parameter(x.dtype, x.shape) for x in given]
    branches = []
    for name, function in (("true_function", true_function), ("false_function", false_function)):
        returned = function(*unflatten(structure, own))
        check_leaves("cond", f"what {name} returns", returned)
        branches.append(flatten(returned))
    (one, one_structure), (other, other_structure) = branches
    if one_structure != other_structure:
        where, left, right = difference(one_structure, other_structure, "result")
        raise ValueError(
            f"cond: both functions must return trees of one structure, but {where} is {left} from "
            f"true_function and {right} from false_function (* is a tensor)"
        )
    for path, x, y in zip(paths(one_structure, "result"), one, other):
        if x.dtype is not y.dtype or not shapes.same_shape(x.shape, y.shape):
            raise (TypeError if x.dtype is not y.dtype else ValueError)(
                f"cond: both functions must return tensors of the same dtypes and shapes, but "
                f"{path} is {_kind(x)} from true_function and {_kind(y)} from false_function"
            )
    outputs = _cond(predicate, (one, other), own, given, outside)
    return unflatten(one_structure, outputs[1:])


# ---- nodes ---------------------------------------------------------------------------------------
def _while(roots: Sequence[Node], own: Sequence[Node], start: Sequence[Node]) -> list[Node]:
    """The outputs of a WHILE that carries `start`, whose body computes the roots from `own`. The
    first of each is what is tested."""
    body, constants = close(roots, own)
    sink = Node(ops.SINK, void, tuple(body))
    dtypes = tuple([root.dtype for root in body])
    loop = Node(ops.WHILE, dtypes, (*start, *constants), (sink, len(body)))
    return outputs_of(remember_bodies(loop))


def _cond(
    test: Node,
    branches: Sequence[Sequence[Node]],
    own: Sequence[Node],
    operands: Sequence[Node],
    outside: Collection[Node] = frozenset(),
) -> list[Node]:
    """The outputs of a COND whose branches compute these results from `own`, which stand for the
    operands. Operands that no branch reads are left out."""
    one, other = branches
    inside = set(below([*one, *other], outside))
    read = {p: x for p, x in zip(own, operands) if p in inside}
    roots, constants = close([*one, *other], list(read), outside=outside)
    bodies = (tuple(roots[: len(one)]), tuple(roots[len(one) :]))
    sinks = tuple([Node(ops.SINK, void, body) for body in bodies])
    dtypes = (bool_, *[root.dtype for root in one])
    choice = Node(ops.COND, dtypes, (test, *read.values(), *constants), sinks)
    return outputs_of(remember_bodies(choice))


# ---- checks --------------------------------------------------------------------------------------
def _check_test(what: str, test: Any) -> None:
    """TypeError or ValueError unless something is a bool of shape ()."""
    if not isinstance(test, Node):
        raise TypeError(
            f"{what} a bool tensor of shape (), not a {type(test).__name__}; a value that Python "
            "knows needs no loop in the program: use `if` or `while`"
        )
    if test.dtype is not bool_:
        raise TypeError(f"{what} a bool tensor, not one of {test.dtype}: compare it, as in x != 0")
    if test.shape != ():
        raise ValueError(
            f"{what} a bool tensor of shape (), not of shape {shapes.text(test.shape)}: say with "
            ".all() or .any() which of its elements count"
        )


def _kind(x: Node) -> str:
    return f"{x.dtype} of shape {shapes.text(x.shape)}"


# ---- derivatives ---------------------------------------------------------------------------------
def _while_vjp(node: Node, cotangents: Any, needed: Any) -> NoReturn:
    raise NotImplementedError(
        "while_loop has no derivative backwards: nobody knows beforehand how many trips there are, "
        "so their values have no place to be kept for the way back. Use scan with a fixed length "
        "(a step that is done can keep its carry by `where`), or differentiate forwards with jvp"
    )


def _cond_vjp(
    node: Node, cotangents: Sequence[Node | None], needed: Sequence[bool]
) -> list[Node | None]:
    """Backward through a COND: a COND with the same test, whose branches are the derivatives of the
    branches. They compute again what they need of the values inside: to keep those would take
    memory for both branches, whichever runs."""
    test, *operands = node.src
    own = parameters_like(operands)
    arriving = {i: g for i, g in enumerate(cotangents[1:]) if g is not None}
    seeds = [parameter(g.dtype, g.shape) for g in arriving.values()]
    wanted = [i for i in range(len(operands)) if needed[1 + i]]
    branches = [
        gradients([body.src[i] for i in arriving], seeds, [own[i] for i in wanted], "zero")
        for body in node.arg
    ]
    outputs = _cond(test, branches, [*own, *seeds], [*operands, *arriving.values()])
    found = dict(zip(wanted, outputs[1:]))
    return [None, *(found.get(i) for i in range(len(operands)))]


def _while_jvp(node: Node, arriving: Tangents) -> tuple[Sequence[Node], Tangents]:
    """Forward through a WHILE: one loop that carries the values and their tangents. A carry has a
    tangent if it comes with one, or if a trip gives it one."""
    body, carries = node.arg
    own = parameters_like(node.src)
    fresh = [parameter(p.dtype, p.shape) for p in own]
    moving = {i for i, tangent in enumerate(arriving) if tangent is not None}
    while True:
        derived = pushed(body.src, {own[i]: fresh[i] for i in sorted(moving)})
        more = {i for i in range(carries) if derived[i][1] is not None} - moving
        if not more:
            break
        moving |= more
    carried = [i for i in sorted(moving) if i < carries]
    given = {fresh[i]: arriving[i] or b.zeros_like(node.src[i]) for i in sorted(moving)}
    ends = [derived[i][1] or b.zeros_like(body.src[i]) for i in carried]
    outputs = _while_of(
        [*(value for value, _ in derived), *ends],
        [*own[:carries], *(fresh[i] for i in carried)],
        {**dict(zip(own, node.src)), **given},
    )
    found = dict(zip(carried, outputs[carries:]))
    return outputs[:carries], [found.get(i) for i in range(carries)]


def _while_of(
    roots: Sequence[Node], carried: Sequence[Node], entering: Mapping[Node, Node]
) -> list[Node]:
    """The outputs of a WHILE whose body computes the roots from the nodes `carried` and from
    constants. entering: what each of them is before the loop."""
    own = [parameter(p.dtype, p.shape) for p in carried]
    body = substitute(roots, {**entering, **dict(zip(carried, own))})
    return _while(body, own, [entering[p] for p in carried])


def _cond_jvp(node: Node, arriving: Tangents) -> tuple[Sequence[Node], Tangents]:
    """Forward through a COND: each branch computes its values and their tangents. A result has a
    tangent if either branch gives it one."""
    test, *operands = node.src
    own = parameters_like(operands)
    moving = {p: t for p, t in zip(own, arriving[1:]) if t is not None}
    seeds = {p: parameter(p.dtype, p.shape) for p in moving}
    one, other = [pushed(body.src, seeds) for body in node.arg]
    shown = [i for i, (x, y) in enumerate(zip(one, other)) if x[1] or y[1]]
    branches = [
        [
            *(value for value, _ in branch),
            *(branch[i][1] or b.zeros_like(branch[i][0]) for i in shown),
        ]
        for branch in (one, other)
    ]
    outputs = _cond(test, branches, [*own, *seeds.values()], [*operands, *moving.values()])
    count = 1 + len(one)
    found = dict(zip(shown, outputs[count:]))
    return outputs[:count], [None, *(found.get(i) for i in range(len(one)))]


# ---- many at once --------------------------------------------------------------------------------
def _while_batched(node: Node, sources: Sequence[Batched], size: Any) -> list[Batched]:
    """A WHILE for every example. If they all make the same trips it is one loop whose trips do all
    examples, and a carry has the axis if it comes with it, or if a trip gives it one. Else the loop
    goes on while any example does, and those that are done keep their carries."""
    body, carries = node.arg
    own = parameters_like(node.src)
    fresh = [parameter(p.dtype, (size, *p.shape)) for p in own]
    roots = list(body.src)
    batches = {i for i, (_, has) in enumerate(sources) if has}
    while True:
        if 0 in batches:
            batches |= set(range(carries))
            roots = guarded(body.src, own[0])
        done = batched(roots, {own[i]: fresh[i] for i in sorted(batches)}, size)
        more = {i for i in range(carries) if done[i][1]} - batches
        if not more:
            break
        batches |= more
    ends = [
        with_axis(*end, size) if i in batches else end[0] for i, end in enumerate(done[:carries])
    ]
    names = [fresh[i] if i in batches else own[i] for i in range(len(own))]
    entering = dict(
        zip(
            names,
            [with_axis(*s, size) if i in batches else s[0] for i, s in enumerate(sources)],
        )
    )
    if 0 not in batches:
        outputs = _while_of(ends, names[:carries], entering)
        return [(output, i in batches) for i, output in enumerate(outputs)]
    goes_on = names[0]
    kept = [_where(goes_on, end, old) for end, old in zip(ends[1:], names[1:carries])]
    still = b.alu(ops.AND, goes_on, ends[0])
    any_ = parameter(bool_, ())
    entering[any_] = b.reduce("or", entering[goes_on], 0)
    outputs = _while_of(
        [b.reduce("or", still, 0), still, *kept], [any_, *names[:carries]], entering
    )
    return [(output, True) for output in outputs[1:]]


def _cond_batched(node: Node, sources: Sequence[Batched], size: Any) -> list[Batched]:
    """A COND for every example. With one test for all it is a COND of all; else both branches are
    computed for all examples, and `where` chooses."""
    (test, has_own), *operands = sources
    own = parameters_like(node.src[1:])
    names = [
        parameter(p.dtype, (size, *p.shape)) if has else p for p, (_, has) in zip(own, operands)
    ]
    given = {p: name for p, name in zip(own, names) if p is not name}
    one, other = [list(body.src) for body in node.arg]
    if has_own:
        chosen = parameter(bool_, ())
        given[chosen] = parameter(bool_, (size,))
        one, other = guarded(one, chosen), guarded(other, ops.NOT(chosen))
    both = [batched(roots, given, size) for roots in (one, other)]
    values = [operand for operand, _ in operands]
    if not has_own:
        flags = [x[1] or y[1] for x, y in zip(*both)]
        branches = [
            [with_axis(*end, size) if has else end[0] for end, has in zip(ends, flags)]
            for ends in both
        ]
        return list(zip(_cond(test, branches, names, values), (False, *flags)))
    known = dict(zip((*names, given[chosen]), (*values, test)))
    count = len(one)
    ends = substitute([with_axis(*end, size) for end in (*both[0], *both[1])], known)
    results = [_where(test, x, y) for x, y in zip(ends[:count], ends[count:])]
    return [(test, True), *((result, True) for result in results)]


def guarded(roots: Sequence[Node], chosen: Node) -> list[Node]:
    """The roots, to be computed also where they are not `chosen` (a bool of shape ()) and nobody
    looks at them: there no index is out of range, because it is 0, and no loop runs on and on."""
    done: dict[Node, Node] = {}
    for node in toposort(roots):
        src = tuple([done[source] for source in node.src])
        arg = node.arg
        if node.op in (ops.GATHER, ops.SCATTER):
            src = (src[0], b.where(chosen, src[1], 0), *src[2:])
        elif node.op is ops.WHILE:
            src = (b.alu(ops.AND, src[0], chosen), *src[1:])
        elif node.op in (ops.SCAN, ops.COND):
            number = len(src) - (node.op is ops.COND)  # of one more parameter of the body
            arg = map_arg(arg, partial(_guarded_body, number))
            src = src if arg == node.arg else (*src, chosen)
        done[node] = Node(node.op, node.dtype, src, arg)
        if node.op in INDEXING:
            hand_on(node, done[node])
        elif node.op in LOOPS:
            remember_bodies(done[node])
    return [done[root] for root in roots]


def _guarded_body(number: int, part: Node) -> Node:
    """A body, guarded by its parameter of this number; what else stands in an arg (a symbolic
    length) as it is."""
    chosen = Node(ops.PLACEHOLDER, bool_, (), (number, ()))
    return part.with_src(tuple(guarded(part.src, chosen))) if part.op is ops.SINK else part


def _where(test: Node, x: Node, y: Node) -> Node:
    """where(test, x, y) for a test per example."""
    return b.where(b.reshape(test, (*test.shape, *[1] * (len(x.shape) - 1))), x, y)


WHOLE_VJP[ops.WHILE] = _while_vjp
WHOLE_VJP[ops.COND] = _cond_vjp
WHOLE_JVP[ops.WHILE] = _while_jvp
WHOLE_JVP[ops.COND] = _cond_jvp
WHOLE_BATCHING[ops.WHILE] = _while_batched
WHOLE_BATCHING[ops.COND] = _cond_batched
