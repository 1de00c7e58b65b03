"""A function of one example as a function of many: `vmap`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from typing import Any

from treadle import elsewhere
from treadle.engine.cell import NO_BINDINGS, bind, pending_assigns
from treadle.engine.failure import note
from treadle.engine.inside import Key, Scope, inside
from treadle.engine.realize import realize
from treadle.engine.storage import memory
from treadle.graph import build, shapes
from treadle.graph.batching import batched, moved_axis, with_axis
from treadle.graph.body import parameter
from treadle.graph.shapes import Dim, plain
from treadle.graph.tree import flatten, opened, unflatten
from treadle.ir import ops
from treadle.ir.dtype import uint64
from treadle.ir.node import Node
from treadle.tensor import Tensor
from treadle.transforms.stand_ins import outputs_of
from treadle.transforms.trees import kind

RANDOMNESS = ("error", "same", "different")
_OF_EXAMPLES = 1 << 63  # the counters from here on give the keys of examples; draws stay below
_UNSET: Any = object()


@elsewhere.as_pytorch
def vmap(
    f: Callable[..., Any],
    in_axes: Any = 0,
    out_axes: Any = 0,
    randomness: str = "error",
    *,
    in_dims: Any = _UNSET,
    out_dims: Any = _UNSET,
) -> Callable[..., Any]:
    """The function that does f for every example of a batch, as one program.

    in_axes: along which axis the examples of each argument lie; None: the argument is the same for
    all. An int or None for all arguments, or a tuple with an entry for each, which may be a tree
    that the argument's tree begins with. Named arguments have their examples along axis 0.
    out_axes: where the axis of the examples is put in the results, likewise. (in_dims, out_dims:
    PyTorch's names of the two.) f sees the tensors of one example. It is called once, so it can
    read no value; what does not depend on an example is computed once.

    randomness: what a random draw in f does: "error"; "same" numbers for all examples; "different"
    numbers for each. To have them in your own hand, map over keys: `generator_key=key`.

    ValueError for batches of unequal sizes, an axis that does not exist, trees that do not match.
    RuntimeError for reading a value, and for changing a tensor from outside. Source: JAX's `vmap`;
    `randomness` PyTorch's.

    >>> vmap(lambda x, w: (x * w).sum(), in_axes=(0, None))(
    ...     Tensor([[1.0, 2.0], [3.0, 4.0]]), Tensor([1.0, 10.0])
    ... ).tolist()
    [21.0, 43.0]
    """
    axes = _one_of("in_axes", in_axes, "in_dims", in_dims)
    places = _one_of("out_axes", out_axes, "out_dims", out_dims)
    if randomness not in RANDOMNESS:
        raise ValueError(f"vmap: randomness is one of {', '.join(RANDOMNESS)}, not {randomness!r}")

    @wraps(f)
    def run(*args: Any, **named: Any) -> Any:
        realize(pending_assigns())  # what f reads must not be overwritten while it is called
        batch = _Batch(axes, args, named)

        def key(drawn: Key) -> Key:
            return _key_inside(batch, drawn, randomness)

        with inside("vmap", key) as scope:
            result = batch.call(f, scope)
        return batch.results(result, places, getattr(f, "__name__", "f"))

    return run


def _one_of(name: str, value: Any, other: str, given: Any) -> Any:
    """An argument that has two names."""
    if given is _UNSET:
        return value
    if value != 0:
        raise TypeError(f"vmap: {name} and {other} are one argument; give one of them")
    return given


class _Batch:
    """One call of a mapped function. leaves: those of its arguments; axes: along which the examples
    of each lie; size: how many examples there are; given: what the parameters of f are, for all
    examples."""

    def __init__(self, axes: Any, args: tuple[Any, ...], named: dict[str, Any]) -> None:
        spread = isinstance(axes, tuple | list)
        if spread and len(axes) != len(args):
            raise ValueError(
                f"vmap: in_axes has {len(axes)} entries for {len(args)} arguments: one for each"
            )
        whole = (args, named)
        self.leaves, self.structure = flatten(whole)
        positional = _spread(tuple(axes) if spread else axes, args, "in_axes")
        self.axes = [*positional, *_spread(0, named, "in_axes")]
        self.given: dict[Node, Node] = {}
        self.bindings: dict[str, int] = NO_BINDINGS
        self.size: Dim = None
        for number, (leaf, axis) in enumerate(zip(self.leaves, self.axes)):
            if isinstance(leaf, Tensor):
                self.bindings = bind(self.bindings, leaf.bindings)
            if axis is not None:
                self._check(number, leaf, axis, number >= len(positional))
        if self.size is None:
            raise ValueError(
                "vmap: no argument has examples: in_axes must name an axis of at least one"
            )

    def _check(self, number: int, leaf: Any, axis: int, is_named: bool) -> None:
        """Note the axis of a leaf, counted from 0, and its size."""
        if hasattr(leaf, "__array__") and not isinstance(leaf, Tensor):
            leaf = self.leaves[number] = Tensor(leaf)
        if not isinstance(leaf, Tensor):
            advice = "bind it: functools.partial(f, name=value)" if is_named else "say None for it"
            raise TypeError(
                f"vmap: {kind(leaf)} among the arguments has no axis of examples; {advice}"
                + ("" if is_named else ", as in in_axes=(0, None)")
            )
        shape = leaf.node.shape
        if not -len(shape) <= axis < len(shape):
            raise ValueError(
                f"vmap: in_axes says axis {axis} of a tensor of shape {leaf.shape}, which has "
                f"{len(shape)} dimensions"
            )
        self.axes[number] = axis = axis % len(shape)
        if self.size is None:
            self.size = shape[axis]
        elif not shapes.same(self.size, shape[axis]):
            raise ValueError(
                f"vmap: the arguments have unequal numbers of examples: {self._sizes()}"
            )

    def _sizes(self) -> str:
        """The tensors with examples, in words."""
        return ", ".join(
            [
                f"{leaf.shape[axis]} along axis {axis} of shape {leaf.shape}"
                for leaf, axis in zip(self.leaves, self.axes)
                if axis is not None and isinstance(leaf, Tensor) and axis < leaf.ndim
            ]
        )

    def call(self, f: Callable[..., Any], scope: Scope) -> Any:
        """What f returns for its parameters."""
        inner = []
        for leaf, axis in zip(self.leaves, self.axes):
            if axis is None:
                inner.append(leaf)
                continue
            whole = moved_axis(leaf.node, axis, 0)
            own = scope.parameter(whole, whole.shape[1:], leaf.device)
            self.given[own] = whole
            inner.append(Tensor._of(own, leaf.bindings))
        args, named = unflatten(self.structure, inner)
        return f(*args, **named)

    def results(self, result: Any, places: Any, name: str) -> Any:
        """What f returned, for all examples."""
        leaves, structure, bindings = outputs_of("vmap", result)
        axes = _spread(places, result, "out_axes")
        roots = spelled_out([leaf.node for leaf in leaves], self.given)
        outputs = []
        for (node, has), axis in zip(batched(roots, self.given, self.size), axes):
            outputs.append(self._placed(node, has, axis))
        note(f"vmap({name})", outputs, self.given.values())
        bindings = bind(self.bindings, bindings)
        return unflatten(structure, [Tensor._of(node, bindings) for node in outputs])

    def _placed(self, node: Node, has: bool, axis: int | None) -> Node:
        """A result with its examples along an axis; None: it has none."""
        if axis is None:
            if has:
                raise ValueError(
                    "vmap: out_axes says None for a result that differs from example to example"
                )
            return node
        whole = with_axis(node, has, self.size)
        rank = len(whole.shape)
        if not -rank <= axis < rank:
            raise ValueError(
                f"vmap: out_axes says axis {axis} of a result that has {rank} dimensions with that "
                "of the examples"
            )
        return moved_axis(whole, 0, axis % rank)


# ---- trees of axes -------------------------------------------------------------------------------
def _spread(axes: Any, tree: Any, name: str) -> list[int | None]:
    """An axis, or None, for each leaf of a tree. ValueError if `axes` is no beginning of it."""
    axes = plain(axes)
    if axes is None or (isinstance(axes, int) and not isinstance(axes, bool)):
        return [axes] * len(flatten(tree)[0])
    own, below = opened(axes), opened(tree)
    if own is None:
        raise TypeError(f"vmap: {name} is made of ints and None, not of {kind(axes)}")
    # a list of axes does for a tuple, and a tuple for any sequence
    if below is None or own[1] != below[1] or len(own[2]) != len(below[2]):
        raise ValueError(
            f"vmap: {name} has {flatten(axes)[1]} where there is {flatten(tree)[1]}: an entry for "
            "each, or one int or None for all"
        )
    return [axis for one, part in zip(own[2], below[2]) for axis in _spread(one, part, name)]


# ---- what f has made -----------------------------------------------------------------------------
def _key_inside(batch: _Batch, drawn: Key, randomness: str) -> Key:
    """The key of a draw in the function, from the one that it would have outside."""
    if randomness == "error":
        raise RuntimeError(
            'vmap: a random draw in the function: say randomness="different" for other numbers in '
            'every example, "same" for the same ones, or map over keys (generator_key=key)'
        )
    if randomness == "same":
        return drawn
    key = build.const(drawn, uint64) if isinstance(drawn, int) else drawn
    own = parameter(uint64, ())
    counters = build.alu(ops.ADD, build.iota(batch.size, uint64), _OF_EXAMPLES)
    batch.given[own] = build.alu(ops.THREEFRY, counters, key)
    return own


def spelled_out(roots: Sequence[Node], parameters: Iterable[Node]) -> list[Node]:
    """The graphs, in which a deferred leaf that stands for something computed from a parameter is
    that: `(x * 2).requires_grad_()` in a mapped function is such a leaf."""
    done = {own: own for own in parameters}
    inside = set(done)
    stack = list(roots)
    while stack:
        node = stack[-1]
        below = node.src
        if node.op is ops.BUFFER and memory.is_deferred(node):
            below = (memory.deferred[node.arg[0]][0],)
        missing = [] if node in done else [source for source in below if source not in done]
        if missing:
            stack += missing
            continue
        stack.pop()
        if node in done:
            continue
        if not inside.isdisjoint(below):
            inside.add(node)
        if node.src:
            done[node] = node.with_src(tuple([done[source] for source in below]))
        else:
            done[node] = done[below[0]] if node in inside else node
    return [done[root] for root in roots]
