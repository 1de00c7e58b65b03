"""Functions whose derivative is not that of what they do: computed again, stopped, or written by
the user."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import update_wrapper, wraps
from inspect import signature
from types import MethodType
from typing import Any

from treadle.engine.cell import NO_BINDINGS, bind
from treadle.engine.history import fold, unfold
from treadle.graph import shapes
from treadle.graph.build import stop_gradient as stop
from treadle.graph.build import zeros_like
from treadle.graph.call import CHECKPOINT, Parts, Rule, call, outputs_like, transposed
from treadle.graph.tree import Structure, flatten, leaves_like, unflatten
from treadle.ir.node import Node, toposort
from treadle.tensor import Tensor, enable_grad
from treadle.transforms.trees import kind


def stop_gradient(tree: Any) -> Any:
    """The tree with every tensor detached: its value, through which no derivative flows.

    Source: JAX's `lax.stop_gradient`.

    >>> grad(lambda x: x * stop_gradient(x))(Tensor(3.0)).item()
    3.0
    """
    leaves, structure = flatten(tree)
    return unflatten(
        structure,
        [
            Tensor._of(stop(leaf.node), leaf.bindings) if isinstance(leaf, Tensor) else leaf
            for leaf in leaves
        ],
    )


def checkpoint(f: Callable[..., Any]) -> Callable[..., Any]:
    """The same function, whose derivative keeps its inputs only: what f computes is computed again
    when the derivative needs it. Less memory for more time.

    f takes and returns trees of tensors and may use tensors from outside (the weights of a layer);
    derivatives flow to these too. Values and derivatives are those of f, random draws are drawn
    once more from the same keys, and what f changes outside (running statistics) changes once.
    Call it on the function, `checkpoint(block)(x)`; may be nested. Source: JAX's `checkpoint`.

    >>> grad(checkpoint(lambda x: x.sin().sin().sum()))(Tensor([0.0])).tolist()
    [1.0]
    """
    if not callable(f):
        raise TypeError(
            f"checkpoint takes a function, not a {type(f).__name__}: write checkpoint(f)(x)"
        )

    @wraps(f)
    def run(*args: Any, **named: Any) -> Any:
        given = [leaf.node for leaf in flatten((args, named))[0] if isinstance(leaf, Tensor)]
        inputs = list(dict.fromkeys(given))
        leaves, structure = flatten(f(*args, **named))
        # what is in memory already needs nothing to be computed again
        computed = [
            n
            for n, leaf in enumerate(leaves)
            if isinstance(leaf, Tensor) and leaf.node not in inputs
        ]
        roots = computed_inside([leaves[n].node for n in computed], inputs)
        outputs = call(roots, inputs, CHECKPOINT) if roots else []
        for number, node in zip(computed, outputs):
            leaves[number] = Tensor._of(node, leaves[number].bindings)
        return unflatten(structure, leaves)

    return run


def computed_inside(roots: Iterable[Node], inputs: Iterable[Node]) -> list[Node]:
    """The graphs of what a function returned. Where it has read a value, that is a leaf: it is
    what it was computed from again, if one of the inputs is below."""
    found = []
    for root in roots:
        whole, folded = unfold(root)
        if folded:
            inside = set(inputs)
            for node in toposort(whole):
                if not inside.isdisjoint(node.src):
                    inside.add(node)
            outside = {node: leaf for node, leaf in folded.items() if node not in inside}
            (whole,) = fold([whole], outside)
        found.append(whole)
    return found


class _Custom:
    """A function with a derivative that the user wrote."""

    def __init__(self, f: Callable[..., Any]) -> None:
        if not callable(f):
            raise TypeError(f"{self.kind} takes a function, not a {type(f).__name__}")
        update_wrapper(self, f)
        self.function = f
        self.name = getattr(f, "__name__", type(f).__name__)

    kind = ""  # the name of the decorator

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def rule(self, shape: _Shape) -> Rule:
        """The rule of a call."""
        raise NotImplementedError

    def __call__(self, *args: Any, **named: Any) -> Any:
        if named:
            bound = signature(self.function).bind(*args, **named)
            bound.apply_defaults()
            args = bound.args
            if bound.kwargs:
                raise TypeError(f"{self.kind}: {self.name} has arguments that are only named")
        shape = _Shape(self, args)
        inputs = shape.inputs
        result = self.function(*args)
        shape.result = flatten(result)[1]
        roots = computed_inside(shape.nodes("the function", result), inputs)
        outputs = call(roots, inputs, self.rule(shape))
        return unflatten(shape.result, [Tensor._of(node, shape.bindings) for node in outputs])


class _Shape:
    """What is known of one call of a custom function without the values of its tensors.

    arguments: the structure of each; leaves: of all arguments, None for a tensor; counts: how many
    leaves each argument has; holds: whether it has a tensor; result: the structure of the result.
    """

    def __init__(self, custom: _Custom, args: tuple[Any, ...]) -> None:
        self.custom = custom
        pairs = [flatten(arg) for arg in args]
        tensors = [leaf for leaves, _ in pairs for leaf in leaves if isinstance(leaf, Tensor)]
        self.inputs = [tensor.node for tensor in tensors]
        self.arguments = [structure for _, structure in pairs]
        self.counts = [len(leaves) for leaves, _ in pairs]
        self.holds = [any(isinstance(leaf, Tensor) for leaf in leaves) for leaves, _ in pairs]
        self.is_tensor = [isinstance(leaf, Tensor) for leaves, _ in pairs for leaf in leaves]
        self.leaves = [
            None if isinstance(leaf, Tensor) else leaf for leaves, _ in pairs for leaf in leaves
        ]
        self.result = Structure(None)
        self.count = len(tensors)
        self.bindings = NO_BINDINGS
        for tensor in tensors:
            self.bindings = bind(self.bindings, tensor.bindings)

    def trees(self, nodes: Iterable[Node | None], others: Sequence[Any]) -> tuple[Any, ...]:
        """One tree per argument: tensors of these nodes, and what stands in `others` elsewhere."""
        left = iter(nodes)
        leaves = [
            self.tensor(next(left)) if is_tensor else other
            for is_tensor, other in zip(self.is_tensor, others)
        ]
        found, start = [], 0
        for structure, count in zip(self.arguments, self.counts):
            found.append(unflatten(structure, leaves[start : start + count]))
            start += count
        return tuple(found)

    def primals(self, whole: Node) -> tuple[Any, ...]:
        """The arguments, as trees of tensors over the sources of a CALL."""
        return self.trees(whole.src[: self.count], self.leaves)

    def results(self, nodes: Iterable[Node]) -> Any:
        """A tree like the result."""
        return unflatten(self.result, [self.tensor(node) for node in nodes])

    def tensor(self, node: Node | None) -> Tensor | None:
        return None if node is None else Tensor._of(node, self.bindings)

    # ---- what the user's functions return --------------------------------------------------------
    def error(self, who: str, what: str) -> str:
        """A message about what one of the user's functions returned."""
        return f"{self.custom.kind}: {who} of {self.custom.name} {what}"

    def nodes(self, who: str, tree: Any) -> list[Node]:
        """The nodes of a tree of tensors."""
        leaves = flatten(tree)[0]
        for leaf in leaves:
            if not isinstance(leaf, Tensor):
                what = f"must return tensors, in trees, and returned a {type(leaf).__name__}"
                raise TypeError(self.error(who, what))
        return [leaf.node for leaf in leaves]

    def pair(self, who: str, returned: Any, names: str) -> tuple[Any, Any]:
        """A pair that was returned."""
        if not isinstance(returned, tuple) or len(returned) != 2:
            raise TypeError(self.error(who, f"must return ({names}), not {kind(returned)}"))
        return returned

    def same_result(self, who: str, tree: Any, whole: Node) -> None:
        """The result that a rule computes along is like that of the function."""
        self.like(who, "a result", flatten(tree)[1], self.result, "")
        for node, shape, dtype in zip(self.nodes(who, tree), whole.shape, whole.dtype):
            self.fits(who, "a result", node, shape, dtype)

    def cotangents(self, who: str, returned: Any, whole: Node) -> list[Node | None]:
        """One for each tensor among the arguments, from a tuple with one tree per argument."""
        wanted = sum(self.holds)
        if not isinstance(returned, tuple | list) and wanted == 1:
            returned = (returned,)
        if not isinstance(returned, tuple | list) or len(returned) not in (wanted, len(self.holds)):
            raise TypeError(
                self.error(
                    who,
                    f"must return a tuple of {wanted}, a cotangent for each argument that holds a "
                    f"tensor, not {kind(returned)}",
                )
            )
        parts = iter(returned)
        if len(returned) == wanted:
            trees = [next(parts) if holds else None for holds in self.holds]
        else:
            trees = list(parts)
        return self.parts(who, "a cotangent", trees, whole.src)

    def parts(
        self, who: str, what: str, trees: Sequence[Any], sources: Sequence[Node]
    ) -> list[Node | None]:
        """The nodes of trees like the arguments, in which None is zero: one for each tensor."""
        leaves: list[Any] = []
        for number, (tree, structure) in enumerate(zip(trees, self.arguments)):
            try:
                leaves += leaves_like(structure, tree)
            except ValueError as error:
                which = f"gives {what} for argument {number} "
                raise ValueError(self.error(who, which + str(error))) from None
        found = [leaf for leaf, is_tensor in zip(leaves, self.is_tensor) if is_tensor]
        return [self.part(who, what, leaf, x) for leaf, x in zip(found, sources)]

    def part(self, who: str, what: str, leaf: Any, x: Node) -> Node | None:
        """A cotangent or tangent of a value, checked; None if that has no derivative."""
        if leaf is None:
            return None
        if not isinstance(leaf, Tensor):
            raise TypeError(
                self.error(who, f"gives a {type(leaf).__name__} as {what}, not a tensor")
            )
        if not x.dtype.is_inexact:
            return None
        self.fits(who, what, leaf.node, x.shape, x.dtype)
        return leaf.node

    def like(self, who: str, what: str, got: Any, wanted: Any, why: str) -> None:
        if got != wanted:
            raise ValueError(
                self.error(who, f"gives {what} of structure {got}, and it must be {wanted}{why}")
            )

    def fits(self, who: str, what: str, node: Node, shape: Any, dtype: Any) -> None:
        if node.dtype is not dtype or not shapes.same_shape(node.shape, shape):
            raise ValueError(
                self.error(
                    who,
                    f"gives {what} of {node.dtype} {shapes.text(node.shape)}, which must be of "
                    f"{dtype} {shapes.text(shape)}",
                )
            )

    def refuse_outside(self, wanted: Iterable[bool]) -> None:
        """NotImplementedError if a derivative by something from outside is wanted."""
        if any(list(wanted)[self.count :]):
            raise NotImplementedError(
                f"{self.custom.kind}: {self.custom.name} uses a tensor from outside whose "
                "derivative is wanted, and its rule knows nothing of that one: make it an "
                "argument, or detach it"
            )


def _zeros(node: Node | None, like: Node) -> Node:
    return zeros_like(like) if node is None else node


class custom_vjp(_Custom):
    """A function whose derivative in reverse mode is written by the user.

    `f.defvjp(forward, backward)`: forward takes the arguments of f and returns (result,
    residuals), any tree of tensors; backward(residuals, cotangents), with a tree of cotangents like
    the result, returns a tuple with one cotangent (a tree like the argument; None is zero) for each
    argument that holds tensors. Arguments that hold none are passed on as they are. Forward mode
    transposes backward, which is linear in the cotangent. Derivatives of higher order are those of
    forward and backward. TypeError and ValueError say what a rule returned that does not fit.
    Source: JAX's `custom_vjp`.

    >>> @custom_vjp
    ... def clipped(x):
    ...     return x
    >>> clipped.defvjp(lambda x: (x, None), lambda _, g: (g.clip(-1, 1),))
    >>> grad(lambda x: 5 * clipped(x))(Tensor(2.0)).item()
    1.0
    """

    kind = "custom_vjp"
    forward: Callable[..., Any] | None = None
    backward: Callable[..., Any] | None = None

    def defvjp(self, forward: Callable[..., Any], backward: Callable[..., Any]) -> None:
        """Give the two functions of the rule."""
        self.forward, self.backward = forward, backward

    def rule(self, shape: _Shape) -> Rule:
        if self.forward is None or self.backward is None:
            raise TypeError(f"custom_vjp: {self.name} has no rule: call {self.name}.defvjp(..)")
        return _VjpRule(shape, self.forward, self.backward)


class custom_jvp(_Custom):
    """A function whose derivative in forward mode is written by the user.

    `f.defjvp(rule)`: rule(primals, tangents), two tuples with one entry per argument (the tangent
    of what is no floating tensor is None), returns (result, its tangent), trees like the result of
    f. The rule is linear in the tangents; reverse mode transposes it. Source: JAX's `custom_jvp`.

    >>> @custom_jvp
    ... def softplus(x):
    ...     return (1 + x.exp()).log()
    >>> softplus.defjvp(lambda xs, ts: (softplus(*xs), ts[0] * xs[0].sigmoid()))
    >>> grad(softplus)(Tensor(1000.0)).item()
    1.0
    """

    kind = "custom_jvp"
    pushforward: Callable[..., Any] | None = None

    def defjvp(self, rule: Callable[..., Any]) -> None:
        """Give the rule."""
        self.pushforward = rule

    def rule(self, shape: _Shape) -> Rule:
        if self.pushforward is None:
            raise TypeError(f"custom_jvp: {self.name} has no rule: call {self.name}.defjvp(..)")
        return _JvpRule(shape, self.pushforward)


class _VjpRule(Rule):
    """The rule of one call of a `custom_vjp`."""

    def __init__(
        self, shape: _Shape, forward: Callable[..., Any], backward: Callable[..., Any]
    ) -> None:
        super().__init__(shape.custom.name)
        self.shape, self.forward, self.backward = shape, forward, backward

    def pulled(self, whole: Node, cotangents: Iterable[Node]) -> Parts:
        """What `backward` makes of cotangents: one for each tensor among the arguments."""
        shape = self.shape
        with enable_grad():
            returned = self.forward(*shape.primals(whole))
            result, residuals = shape.pair("forward", returned, "result, residuals")
            shape.same_result("forward", result, whole)
            found = self.backward(residuals, shape.results(cotangents))
        return shape.cotangents("backward", found, whole)

    def vjp(self, whole: Node, cotangents: Parts, needed: Sequence[bool]) -> Parts:
        self.shape.refuse_outside(needed)
        arriving = [_zeros(g, y) for g, y in zip(cotangents, outputs_like(whole))]
        found = self.pulled(whole, arriving)
        return [*found, *[None] * (len(whole.src) - len(found))]

    def jvp(self, whole: Node, tangents: Parts) -> Parts:
        self.shape.refuse_outside([t is not None for t in tangents])
        ys = outputs_like(whole)
        return transposed(lambda seeds: self.pulled(whole, seeds), ys, tangents)


class _JvpRule(Rule):
    """The rule of one call of a `custom_jvp`."""

    def __init__(self, shape: _Shape, pushforward: Callable[..., Any]) -> None:
        super().__init__(shape.custom.name)
        self.shape, self.pushforward = shape, pushforward

    def pushed(self, whole: Node, tangents: Iterable[Node]) -> Parts:
        """What the rule makes of tangents, one for each tensor: the tangent of each result."""
        shape = self.shape
        arriving = [t if t.dtype.is_inexact else None for t in tangents]
        nothing = [None] * len(shape.leaves)
        with enable_grad():
            returned = self.pushforward(shape.primals(whole), shape.trees(arriving, nothing))
        result, moved = shape.pair("the rule", returned, "result, tangent")
        shape.same_result("the rule", result, whole)
        try:
            leaves = leaves_like(shape.result, moved)
        except ValueError as error:
            raise ValueError(shape.error("the rule", f"gives a tangent {error}")) from None
        ys = outputs_like(whole)
        return [shape.part("the rule", "a tangent", leaf, y) for leaf, y in zip(leaves, ys)]

    def jvp(self, whole: Node, tangents: Parts) -> Parts:
        self.shape.refuse_outside([t is not None for t in tangents])
        return self.pushed(whole, [_zeros(t, x) for t, x in zip(tangents, self.inputs(whole))])

    def vjp(self, whole: Node, cotangents: Parts, needed: Sequence[bool]) -> Parts:
        self.shape.refuse_outside(needed)
        inputs = self.inputs(whole)
        found = transposed(lambda seeds: self.pushed(whole, seeds), inputs, cotangents)
        return [*found, *[None] * (len(whole.src) - len(found))]

    def inputs(self, whole: Node) -> Sequence[Node]:
        return whole.src[: self.shape.count]
