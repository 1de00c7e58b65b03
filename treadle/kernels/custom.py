"""`custom_kernel`: a function that describes a kernel becomes an operation on tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import update_wrapper
from inspect import signature
from typing import Any
from weakref import WeakKeyDictionary

from treadle import convert, extras
from treadle.engine import device as devices
from treadle.engine.cell import NO_BINDINGS, Cell
from treadle.engine.failure import user_line
from treadle.engine.jobs import device_of
from treadle.graph import build as b
from treadle.graph import custom
from treadle.graph.places import Place, put
from treadle.graph.shapes import text
from treadle.graph.tree import Structure, flatten, unflatten
from treadle.graph.weak import is_weak
from treadle.ir import index, ops
from treadle.ir.dtype import DType, float64, void
from treadle.ir.node import Node, Shape, toposort
from treadle.kernels.language import Builder, Input, Output, Value
from treadle.tensor import Tensor, enable_grad
from treadle.transforms.trees import tensors

Rule = Callable[..., Any]

# the bindings of symbolic sizes in the sources of a kernel, for the functions of its derivative
_bindings: WeakKeyDictionary[Node, dict[str, int]] = WeakKeyDictionary()


@dataclass
class Described:
    """A kernel for one combination of shapes, dtypes and static arguments.

    sink: its stores, or None if no output has an element. outputs: dtype and shape of all;
    stored: the numbers of those that have elements. structure: of the tree that is returned.
    fits: the devices on which the written schedule applies.
    """

    sink: Node | None
    outputs: list[tuple[DType, Shape]]
    stored: list[int]
    structure: Structure
    fits: set[str] = field(default_factory=set)


class CustomKernel:
    """An operation whose kernel the user wrote; see `custom_kernel`."""

    def __init__(
        self, function: Callable[..., Any], schedule: str | None, vjp: Rule | None, jvp: Rule | None
    ) -> None:
        update_wrapper(self, function)
        self.function = function
        self.name = getattr(function, "__name__", "kernel")
        self.schedule = schedule
        self.vjp, self.jvp = vjp, jvp
        self._described: dict[Any, Described] = {}
        self._rules: dict[Any, custom.Derivative] = {}

    def scheduled(self, schedule: str | Iterable[Any] | None) -> CustomKernel:
        """The same operation with another schedule."""
        return CustomKernel(self.function, as_text(schedule), self.vjp, self.jvp)

    def __call__(self, *args: Any, **static: Any) -> Any:
        beside = next((arg.node for arg in args if isinstance(arg, Cell)), None)
        home = devices.canonical(None) if beside is None else device_of(beside)
        arguments = [self._argument(arg, home) for arg in args]
        bindings = NO_BINDINGS
        for arg in args:
            bindings = convert.unwrap(arg, bindings)[1]
        nodes = [node for node in arguments if isinstance(node, Node)]
        described = self._describe(arguments, static)
        device = next((device_of(n) for n in nodes if n.shape or not is_weak(n)), "")
        self._check_schedule(described, device or devices.canonical(None))
        results = [b.const(0, dtype, shape) for dtype, shape in described.outputs]
        if described.sink is not None:
            rule = self._rule(arguments, described.structure, len(described.outputs))
            wanted = [described.outputs[number] for number in described.stored]
            made = custom.call(described.sink, wanted, nodes, rule)
            kernel = made[0].src[0]
            _bindings[kernel] = bindings
            put(kernel, Place(self.name, (user_line(),)))
            for number, node in zip(described.stored, made):
                results[number] = node
        return tensors(unflatten(described.structure, results), bindings)

    # ---- arguments -------------------------------------------------------------------------------
    def _argument(self, arg: Any, device: str) -> Any:
        """An argument as a node, if it is a tensor, an array (it is put on the device) or a float;
        others are static."""
        if isinstance(arg, Cell):
            return arg.node
        if isinstance(arg, float):
            return b.const(arg, float64)
        if hasattr(arg, "__array__"):
            return convert.to_node(arg, None, device)
        try:
            hash(arg)
        except TypeError:
            raise TypeError(
                f"{self.name}: an argument is a tensor, an array, a number, or something that does "
                f"not change; not a {type(arg).__name__}"
            ) from None
        return arg

    def _describe(self, arguments: Sequence[Any], static: dict[str, Any]) -> Described:
        kinds = [
            (arg.dtype, arg.shape, _is_number(arg)) if isinstance(arg, Node) else (type(arg), arg)
            for arg in arguments
        ]
        try:
            key = (*kinds, *sorted(static.items()))
            found = self._described.get(key)
        except TypeError:
            raise TypeError(
                f"{self.name}: named arguments are static: numbers, strings and tuples of them; "
                "give tensors by position"
            ) from None
        if found is None:
            found = self._described[key] = self._trace(arguments, static)
        return found

    def _trace(self, arguments: Sequence[Any], static: dict[str, Any]) -> Described:
        builder = Builder()
        names = list(signature(self.function).parameters)[1:]
        names += [f"input{number}" for number in range(len(names), len(arguments))]
        given: list[Any] = []
        numbers: dict[Node, Node] = {}
        inputs: list[Node] = []  # an ARG for each source, numbered from 0
        for arg, name in zip(arguments, names):
            if not isinstance(arg, Node):
                given.append(arg)
                continue
            position = len(inputs)
            inputs.append(Node(ops.ARG, arg.dtype, (), (position, arg.shape)))
            if _is_number(arg):  # weak while the kernel is described: numbered below 0
                own = Node(ops.SCALAR, arg.dtype, (), -1 - position)
                numbers[own] = Node(ops.SCALAR, arg.dtype, (), position)
                given.append(Value(own))
            else:
                given.append(Input(builder, inputs[-1], name))
        returned = self.function(builder, *given, **static)
        leaves, structure = flatten(returned)
        for leaf in leaves:
            if not isinstance(leaf, Output):
                raise TypeError(
                    f"{self.name}: return k.output(value, *indices), or a tuple, list or dict of "
                    f"them; it returned {leaf!r}"
                )
        if not leaves:
            raise TypeError(f"{self.name}: return k.output(value, *indices); it returned nothing")
        return self._sink(leaves, structure, inputs, numbers)

    def _sink(
        self,
        leaves: list[Output],
        structure: Structure,
        inputs: list[Node],
        numbers: dict[Node, Node],
    ) -> Described:
        """The stores of the outputs that have elements; they are the first ARGs."""
        stored = [number for number, out in enumerate(leaves) if 0 not in out.shape]
        outputs = [(out.value.dtype, out.shape) for out in leaves]
        if not stored:
            return Described(None, outputs, stored, structure)
        stores = []
        for position, number in enumerate(stored):
            out = leaves[number]
            argument = Node(ops.ARG, out.value.dtype, (), (-1 - position, out.shape))
            source = (argument, out.value, *out.place)
            stores.append(Node(ops.STORE, void, source, (len(out.place), None)))
        arg = None if self.schedule is None else (self.schedule, ())
        sink = Node(ops.SINK, void, tuple(stores), arg)
        new: dict[Node, Node] = dict(numbers)
        for node in toposort(sink):
            if node.op is ops.ARG:
                number = node.arg[0]
                moved = -1 - number if number < 0 else number + len(stored)
                new[node] = Node(ops.ARG, node.dtype, (), (moved, node.shape))
            elif node not in new:
                new[node] = index.rebuild(node, tuple([new[s] for s in node.src]))
        return Described(new[sink], outputs, stored, structure)

    def _check_schedule(self, described: Described, device: str) -> None:
        """The written schedule applies; else an error now, and not when the value is needed."""
        if self.schedule is None or described.sink is None or device in described.fits:
            return
        pipeline = extras.load("treadle.kernel.pipeline")
        target = devices.backend(device).target
        try:
            pipeline.lower(described.sink, target, self.name)
        except ValueError as error:
            loops = pipeline.build(described.sink, target)
            raise ValueError(
                f"{self.name}: the schedule does not apply: {error}. The kernel before it:\n{loops}"
            ) from None
        described.fits.add(device)

    # ---- derivatives -----------------------------------------------------------------------------
    def _rule(
        self, arguments: Sequence[Any], structure: Structure, outputs: int
    ) -> custom.Derivative | str:
        if self.vjp is None and self.jvp is None:
            return self.name
        static = tuple([None if isinstance(arg, Node) else (arg,) for arg in arguments])
        key = (static, structure)
        if key not in self._rules:
            vjp = None if self.vjp is None else _vjp(self.name, self.vjp, static, structure)
            jvp = None if self.jvp is None else _jvp(self.name, self.jvp, static, structure)
            self._rules[key] = custom.Derivative(self.name, vjp, jvp)
        return self._rules[key]


def _is_number(node: Node) -> bool:
    """Whether an argument is a Python float, perhaps of a captured function."""
    return node.dtype is float64 and not node.shape and (node.op is ops.CONST or is_weak(node))


# ---- the user's derivatives as functions of nodes ------------------------------------------------
Static = tuple[Any, ...]  # for each argument None if it is a node, else (its value,)


def _with_static(nodes: Iterable[Any], static: Static) -> tuple[Any, ...]:
    left = iter(nodes)
    return tuple([next(left) if each is None else each[0] for each in static])


def _in_words(
    name: str, rule: Rule, which: str, static: Static, structure: Structure
) -> Callable[[Any, Any, Any], tuple[Any, ...]]:
    """`rule` on nodes: it gets trees of tensors, and its results come as a tuple of nodes."""

    def run(inputs: Any, outputs: Any, given: Any) -> tuple[Any, ...]:
        bindings = _bindings.get(outputs[0].src[0] if outputs[0].src else outputs[0], NO_BINDINGS)
        own = tensors(list(inputs), bindings)
        moved = tensors(list(given), bindings)
        results = unflatten(structure, tensors(list(outputs), bindings))
        if which == "vjp":
            moved = unflatten(structure, moved)
        else:
            moved = _with_static(moved, tuple([None if s is None else (None,) for s in static]))
        with enable_grad():
            returned = rule(_with_static(own, static), results, moved)
        return tuple(returned) if isinstance(returned, tuple | list) else (returned,)

    return run


def _derivative_node(name: str, which: str, part: Any, like: Node) -> Node | None:
    if part is None:
        return None
    if not isinstance(part, Tensor):
        raise TypeError(f"{name}: its {which} returns tensors or None, not {part!r}")
    node = part.node
    if (node.dtype, node.shape) != (like.dtype, like.shape):
        raise ValueError(
            f"{name}: its {which} returned {node.dtype} of shape {text(node.shape)} for "
            f"{like.dtype} of shape {text(like.shape)}"
        )
    return node


def _vjp(name: str, rule: Rule, static: Static, structure: Structure) -> custom.Vjp:
    run = _in_words(name, rule, "vjp", static, structure)

    def vjp(inputs: Any, outputs: Any, cotangents: Any) -> list[Node | None]:
        parts = run(inputs, outputs, cotangents)
        if len(parts) != len(static):
            raise ValueError(
                f"{name}: its vjp returned {len(parts)} cotangents for {len(static)} arguments; "
                "None stands for zero, and for an argument that is no tensor"
            )
        own = [part for part, each in zip(parts, static) if each is None]
        return [_derivative_node(name, "vjp", part, x) for part, x in zip(own, inputs)]

    return vjp


def _jvp(name: str, rule: Rule, static: Static, structure: Structure) -> custom.Jvp:
    run = _in_words(name, rule, "jvp", static, structure)

    def jvp(inputs: Any, outputs: Any, moved: Any) -> list[Node | None]:
        parts = run(inputs, outputs, moved)
        if len(parts) != len(outputs):
            raise ValueError(
                f"{name}: its jvp returned {len(parts)} tangents for {len(outputs)} results"
            )
        return [_derivative_node(name, "jvp", part, y) for part, y in zip(parts, outputs)]

    return jvp


def as_text(schedule: str | Iterable[Any] | None) -> str | None:
    """A schedule as text: it may be given as a list of actions."""
    if schedule is None or isinstance(schedule, str):
        return schedule
    return "\n".join(str(action) for action in schedule)


def custom_kernel(
    function: Callable[..., Any] | None = None,
    *,
    schedule: str | Iterable[Any] | None = None,
    vjp: Rule | None = None,
    jvp: Rule | None = None,
) -> Any:
    """Make an operation of a function that describes its kernel.

    function: `f(k, *inputs, **static)`. k is a `Builder`: `k.range`, `k.reduce`, `k.output`. An
    input stands for a tensor (`x[i, j]` is an element, `x.shape`, `x.dtype`) or for a float, a
    run-time number. Ints, strings and named arguments are passed as they are. It is called once per
    combination of shapes, dtypes and static arguments, and returns `k.output(..)` or a tree of
    them.

    schedule: actions, as text or as a list; without it the heuristic chooses. vjp: `vjp(inputs,
    outputs, cotangents)` returns one cotangent per argument; it may use any operation, other
    kernels too. jvp: `jvp(inputs, outputs, tangents)` returns one tangent per result; without it
    forward mode transposes vjp.

    >>> @custom_kernel
    ... def outer(k, x, y):
    ...     i, j = k.ranges(x.shape[0], y.shape[0])
    ...     return k.output(x[i] * y[j], i, j)
    >>> outer(Tensor([1.0, 2.0]), Tensor([3.0, 4.0])).tolist()
    [[3.0, 4.0], [6.0, 8.0]]
    """

    def make(described: Callable[..., Any]) -> CustomKernel:
        return CustomKernel(described, as_text(schedule), vjp, jvp)

    return make if function is None else make(function)
