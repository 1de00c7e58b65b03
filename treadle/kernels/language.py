"""The kernel language from Python: what a function that describes a kernel gets, and what it makes.

Such a function is called once for each combination of shapes and dtypes. It gets a `Builder` and
its inputs, and describes one element of each output: values over ranges. Values have Python's
operators and the elementwise functions of the library; indices are sums and products of ranges.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from treadle.convert import as_dtype
from treadle.graph import build as b
from treadle.graph.public import METHODS
from treadle.graph.shapes import text
from treadle.graph.weak import is_weak
from treadle.ir import index, ops
from treadle.ir.dtype import DType, bool_, float32, int64
from treadle.ir.dtype import index as INDEX
from treadle.ir.monoid import MONOIDS, find, places, written
from treadle.ir.node import Node, Shape, toposort
from treadle.methods import CASTS, COMPARISONS, OPERATORS, UNARY
from treadle.schedule.demand import covers

LETTERS = "ijklmnopqrstuvwxyz"


class Value:
    """One number in a kernel, at every point of the ranges that it depends on.

    It has the operators of Python, and every elementwise method of a Tensor: `x.exp()`,
    `x.clamp(0, 1)`, `x.float()`. Python numbers beside it are weak, as beside a Tensor.
    """

    __slots__ = ("node",)
    __hash__ = object.__hash__

    def __init__(self, node: Node) -> None:
        self.node = node

    @property
    def dtype(self) -> DType:
        """The dtype of the number."""
        dtype: DType = self.node.dtype
        return dtype

    def cast(self, dtype: Any) -> Value:
        """The number as another dtype."""
        return Value(b.cast(self.node, as_dtype(dtype)))

    def __bool__(self) -> bool:
        raise TypeError(
            "a value of a kernel is not known while the kernel is described: choose by "
            "k.where(condition, x, y)"
        )

    def __getattr__(self, name: str) -> Any:
        if name in CASTS:
            return lambda: self.cast(CASTS[name])
        if name.startswith("_") or name not in METHODS:
            raise AttributeError(f"a value of a kernel has no {name!r}")
        return lambda *args, **named: elementwise(name, self, *args, **named)

    def __repr__(self) -> str:
        return f"<a value of {self.dtype} in a kernel>"


class Index(Value):
    """An integer of which the kernel knows the bounds: a range, a symbolic size, and sums,
    products, quotients and remainders of them by ints. Beside other values it is an int64."""

    __slots__ = ()

    def value(self) -> Value:
        """The index as a number of int64."""
        return Value(b.cast(self.node, int64))

    def cast(self, dtype: Any) -> Value:
        """The index as a number of a dtype."""
        return Value(b.cast(self.node, as_dtype(dtype)))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.value(), name)

    def __repr__(self) -> str:
        return f"<index {_spell(self.node)}>"


class Range(Index):
    """A range of a kernel: 0, 1 .. size-1. name: what schedules call its loop."""

    __slots__ = ("number", "size")

    def __init__(self, number: int, size: int | Node) -> None:
        super().__init__(index.range_(number, size))
        self.number = number
        self.size = index.dim(size)

    @property
    def name(self) -> str:
        """What schedules call its loop."""
        return range_name(self.number)


def range_name(number: int) -> str:
    """What the loop over a range is called."""
    return LETTERS[number] if number < len(LETTERS) else f"r{number}_"


def node_of(value: Any) -> Any:
    """What the functions of the graph take for a value: its node, an index as an int64."""
    if isinstance(value, Index):
        return value.value().node
    return value.node if isinstance(value, Value) else value


def elementwise(name: str, *args: Any, **named: Any) -> Any:
    """A public function on values. TypeError if it is not one of single elements."""
    nodes = [node_of(arg) for arg in args]
    result = METHODS[name](*nodes, **{key: node_of(arg) for key, arg in named.items()})
    parts = result if isinstance(result, tuple | list) else (result,)
    for part in parts:
        if not isinstance(part, Node) or part.shape or not _is_scalar(part, nodes):
            raise TypeError(
                f"{name} works on whole tensors; a kernel describes one element: use k.range, "
                "k.reduce and elementwise functions"
            )
    return Value(result) if isinstance(result, Node) else tuple([Value(part) for part in parts])


def _is_scalar(result: Node, given: Sequence[Any]) -> bool:
    """Whether what was made of the given nodes is operations of single elements only."""
    seen = {node for node in given if isinstance(node, Node)}
    stack = [result]
    while stack:
        node = stack.pop()
        if node not in seen:
            if "k" not in node.op.stages:
                return False
            seen.add(node)
            stack += node.src
    return True


# ---- operators -----------------------------------------------------------------------------------
_INDEX_OPERATORS: dict[str, Callable[[Node, Node], Node]] = {
    "add": index.add, "sub": index.sub, "mul": index.mul,
    "floordiv": index.floordiv, "mod": index.mod,
    "eq": index.eq, "lt": index.lt, "le": index.le,
    "ne": lambda x, y: b.alu(ops.NOT, index.eq(x, y)),
    "gt": lambda x, y: index.lt(y, x), "ge": lambda x, y: index.le(y, x),
}  # fmt: skip


def index_of(value: Any) -> Node | None:
    """An int or an Index as a node of index algebra; None for anything else."""
    if isinstance(value, Index):
        return value.node
    return index.const(value) if isinstance(value, int) and not isinstance(value, bool) else None


def _operator(short: str, name: str, swapped: bool = False) -> Callable[[Value, Any], Any]:
    def run(self: Value, other: Any) -> Any:
        if not isinstance(other, Value | bool | int | float):
            return NotImplemented
        x, y = (other, self) if swapped else (self, other)
        first, second = index_of(x), index_of(y)
        if short in _INDEX_OPERATORS and first is not None and second is not None:
            return _on_indices(short, first, second)
        return elementwise(name, x, y)

    return run


def _on_indices(short: str, x: Node, y: Node) -> Value:
    if short in ("floordiv", "mod") and (index.bounds(y)[0] < 1 or y.op is not ops.CONST):
        raise ValueError(
            f"an index is divided by an int that is positive, not by {_spell(y)}: for other "
            "numbers write i.value()"
        )
    made = _INDEX_OPERATORS[short](x, y)
    return Index(made) if made.dtype is INDEX else Value(made)


def _attach() -> None:
    for short, name in OPERATORS.items():
        setattr(Value, f"__{short}__", _operator(short, name))
        setattr(Value, f"__r{short}__", _operator(short, name, swapped=True))
    for short, name in COMPARISONS.items():
        setattr(Value, f"__{short}__", _operator(short, name))
    for short, name in UNARY.items():
        setattr(Value, f"__{short}__", lambda self, name=name: elementwise(name, self))


_attach()


def _spell(node: Node) -> str:
    """An index in the names of its ranges."""
    found = index.spell(node)
    for below in toposort(node):
        if below.op is ops.RANGE:
            found = found.replace(index.spell(below), range_name(below.arg[0]))
    return found


# ---- inputs and outputs --------------------------------------------------------------------------
class Input:
    """An array that a kernel reads: `x[i, j]` is its element there.

    shape: ints, and an `Index` for a symbolic size. dtype: of its elements.
    """

    def __init__(self, builder: Builder, argument: Node, name: str) -> None:
        self._builder = builder
        self._argument = argument
        self.name = name
        self.dtype: DType = argument.dtype
        self.shape = tuple([_size(size) for size in argument.shape])

    @property
    def ndim(self) -> int:
        """How many axes it has."""
        return len(self.shape)

    def __getitem__(self, place: Any) -> Value:
        return self.load(*(place if isinstance(place, tuple) else (place,)))

    def __iter__(self) -> Any:
        raise TypeError(f"{self.name} is read element by element: {self.name}[i]")

    def load(self, *place: Any, where: Any = None) -> Value:
        """The element at one index per axis. An index is an int, an `Index`, or an integer value,
        which is checked when the kernel runs (it counts from 0).

        where: a condition (True: none but that the index is inside); the value is 0 where it does
        not hold or where an index is outside. Without it, IndexError for an index that may be
        outside.
        """
        if len(place) != self.ndim:
            raise IndexError(
                f"{self.name} of shape {text(self._argument.shape)} takes {self.ndim} indices, one "
                f"per axis, not {len(place)}"
            )
        conditions = [] if where is None or where is True else [_condition(where)]
        sizes = self._argument.shape
        known = [(axis, i) for axis, each in enumerate(place) if (i := index_of(each)) is not None]
        if 0 in sizes:
            return self._nothing(known, where)
        for axis, i in known:
            inside = index.both(index.le(0, i), index.lt(i, sizes[axis]))
            if where is None and inside is not index.TRUE:
                low, high = index.bounds(i)
                raise IndexError(
                    f"{self.name}: index {_spell(i)} of axis {axis} runs from {low} to {high}, but "
                    f"the size is {index.spell(sizes[axis])}: guard it, "
                    f"{self.name}.load(.., where=condition), which reads 0 elsewhere"
                )
            conditions.append(inside)
        guard = index.both(*conditions)
        if guard is index.FALSE:
            return Value(b.const(0, self.dtype))
        at = dict(known)
        places = [
            at[axis] if axis in at else self._checked(axis, each, guard)
            for axis, each in enumerate(place)
        ]
        rest = () if guard is index.TRUE else (guard,)
        source = (self._argument, *places, *rest)
        return Value(Node(ops.LOAD, self.dtype, source, len(places)))

    def _nothing(self, known: Sequence[tuple[int, Node]], where: Any) -> Value:
        """An element of an array that has none: fine in a loop that does not run."""
        below = toposort([i for _, i in known])
        empty = any(node.op is ops.RANGE and node.arg[1] == 0 for node in below)
        if where is None and not empty:
            raise IndexError(f"{self.name} of shape {text(self._argument.shape)} has no element")
        return Value(b.const(0, self.dtype))

    def _checked(self, axis: int, place: Any, guard: Node) -> Node:
        if not isinstance(place, Value) or not place.dtype.is_int:
            what = f"a value of {place.dtype}" if isinstance(place, Value) else repr(place)
            raise TypeError(f"{self.name}: index {axis} is {what}; it must be an integer")
        found = ops.CAST(place.node, dtype=INDEX)
        if guard is not index.TRUE:
            found = ops.WHERE(guard, found, index.const(0), dtype=INDEX)
        return self._builder.check(found, self._argument.shape[axis])

    def __repr__(self) -> str:
        return f"<input {self.name}: {self.dtype} of shape {text(self._argument.shape)}>"


def _size(size: int | Node) -> int | Index:
    return size if isinstance(size, int) else Index(size)


def _condition(where: Any) -> Node:
    if where is False:
        return index.FALSE
    if not isinstance(where, Value) or where.dtype is not bool_:
        raise TypeError("where= is a condition: a comparison of indices or values")
    return where.node


class Output:
    """A result of a kernel: a value for every index. Made by `k.output`."""

    def __init__(self, value: Node, place: tuple[Node, ...], shape: Shape) -> None:
        self.value = value
        self.place = place
        self.shape = shape


class Fold:
    """A monoid that a user defines; see `custom_monoid`."""

    def __init__(self, identity: Sequence[bool | int | float], combine: Callable[..., Any]) -> None:
        self.identity = tuple(identity)
        self.combine = combine

    def node(self, dtypes: Sequence[DType]) -> Node:
        """The monoid on a state of these dtypes. TypeError if `combine` gives another state."""
        first, second = places(dtypes)
        states = [tuple([Value(node) for node in state]) for state in (first, second)]
        if len(dtypes) == 1:
            result = self.combine(states[0][0], states[1][0])
        else:
            result = self.combine(*states)
        parts = result if isinstance(result, tuple) else (result,)
        nodes = [b.node_of(node_of(part)) for part in parts]
        if tuple([node.dtype for node in nodes]) != tuple(dtypes):
            given = ", ".join(str(node.dtype) for node in nodes)
            raise TypeError(
                f"a monoid combines two states to one: its state is ({', '.join(map(str, dtypes))})"
                f", but the function returns ({given})"
            )
        return written(nodes, self.identity)


def custom_monoid(
    identity: Sequence[bool | int | float],
) -> Callable[[Callable[..., Any]], Fold]:
    """A monoid for `k.reduce`, from a function that combines two states.

    identity: the state of nothing, a number per component. The function gets two states (tuples of
    values; two values if there is one component) and returns one of the same dtypes. It must be
    associative and commutative, and the identity must change nothing: nobody checks this.

    >>> @custom_monoid(identity=(0.0, 0.0))
    ... def complex_sum(a, b):
    ...     return a[0] + b[0], a[1] + b[1]
    """
    return lambda combine: Fold(identity, combine)


class Builder:
    """What a kernel is described with: ranges, reductions, outputs, and functions of values."""

    def __init__(self) -> None:
        self._count = 0
        self._checks: dict[tuple[Node, Any], Node] = {}

    # ---- ranges and indices ----------------------------------------------------------------------
    def range(self, size: int | Index) -> Range:
        """A new range: 0, 1 .. size-1. Its loop is called i, j, k .. in the order in which ranges
        are made."""
        count = index_of(size)
        if count is None:
            raise TypeError(f"k.range takes a size, an int or a size of an input, not {size!r}")
        if index.bounds(count)[0] < 0:
            raise ValueError(f"k.range: a size of {_spell(count)} is negative")
        self._count += 1
        return Range(self._count - 1, index.dim(count))

    def ranges(self, *sizes: int | Index) -> tuple[Range, ...]:
        """A range for each size."""
        return tuple([self.range(size) for size in sizes])

    def check(self, place: Node, size: int | Node) -> Node:
        """An index that comes from data, brought into an axis; it is tested when the kernel
        runs."""
        if (place, size) not in self._checks:
            bound = index.as_node(size)
            made = Node(ops.CHECK, INDEX, (place, bound), len(self._checks))
            self._checks[place, size] = made
        return self._checks[place, size]

    # ---- values ----------------------------------------------------------------------------------
    def where(self, condition: Any, x: Any, y: Any) -> Value:
        """x where the condition holds, else y."""
        return Value(b.where(_condition_of(condition), node_of(x), node_of(y)))

    def maximum(self, x: Any, y: Any) -> Value:
        """The greater of two values, or of two indices (an index then)."""
        return _extreme("maximum", index.maximum, x, y)

    def minimum(self, x: Any, y: Any) -> Value:
        """The lesser of two values, or of two indices (an index then)."""
        return _extreme("minimum", index.minimum, x, y)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in METHODS:
            raise AttributeError(f"k has no {name!r}; it has the elementwise functions of Tensor")
        return lambda *args, **named: elementwise(name, *args, **named)

    # ---- reductions ------------------------------------------------------------------------------
    def reduce(self, monoid: str | Fold, values: Any, over: Range | Sequence[Range]) -> Any:
        """The values at all points of some ranges, folded by a monoid.

        monoid: "add", "mul", "max", "min", "and", "or"; of two values (a number and its place):
        "argmax", "argmin"; "logsumexp" of x, a pair (m, s) for m + log s; "welford" of x, a triple
        (count, mean, sum of squared distances from the mean); "softmax" of (x, v), a triple
        (m, s, o), where o / s is the mean of v weighted by e**x; or one made by `custom_monoid`.
        The last three take whole states, too. values: one, or a tuple. Half and bfloat16 are
        carried in float32. Returns one value, or a tuple.
        """
        ranges = _ranges(over)
        given = values if isinstance(values, tuple) else (values,)
        nodes = tuple([b.node_of(node_of(value)) for value in given])
        which, state, narrow = _state(monoid, nodes)
        result = _fold(which, state, ranges)
        if narrow is not None:
            result = (b.cast(result[0], narrow),)
        parts = tuple([Value(part) for part in result])
        return parts[0] if len(parts) == 1 else parts

    # ---- outputs ---------------------------------------------------------------------------------
    def output(self, value: Any, *place: Any, shape: Sequence[int | Index] | None = None) -> Output:
        """A result whose element at an index is a value. The function returns one or more of these.

        place: one index per axis. Ranges give the shape by their sizes; for other indices give
        `shape`, each element of which must be named exactly once.
        """
        node = b.node_of(node_of(value))
        if is_weak(node):
            node = b.cast(node, float32)
        nodes = [index_of(each) for each in place]
        if None in nodes:
            raise TypeError("k.output: an output is stored at ranges, not at indices from data")
        at = tuple([i for i in nodes if i is not None])
        if shape is None:
            wrong = [i for i, each in zip(at, place) if not isinstance(each, Range)]
            if wrong:
                raise ValueError(f"k.output: index {_spell(wrong[0])} is no range: give shape=")
            sizes: Shape = tuple([each.size for each in place])
        else:
            sizes = tuple([index.dim(_need_size(size)) for size in shape])
        if len(sizes) != len(at):
            raise ValueError(f"k.output: {len(at)} indices for a shape of {len(sizes)} axes")
        _check_once(node, at, sizes)
        return Output(node, at, sizes)


def _need_size(size: Any) -> Node:
    found = index_of(size)
    if found is None:
        raise TypeError(f"k.output: a size is an int or a size of an input, not {size!r}")
    return found


def _check_once(value: Node, at: tuple[Node, ...], shape: Shape) -> None:
    """Every element is written once, and by one value."""
    if 0 in shape:
        return
    used = 0
    for i in at:
        used |= i.free
    loose = [n for n in toposort(value) if n.op is ops.RANGE and n.free & value.free & ~used]
    if loose:
        name, size = range_name(loose[0].arg[0]), index.spell(loose[0].arg[1])
        raise ValueError(
            f"k.output: a race: the {size} points of range {name} all write the same element; give "
            f"{name} an axis of the output, or fold it with k.reduce"
        )
    if not covers(at, shape, used):
        names = ", ".join(_spell(i) for i in at)
        raise ValueError(
            f"k.output: the indices ({names}) do not name every element of shape {text(shape)} "
            "exactly once"
        )


def _condition_of(condition: Any) -> Any:
    if isinstance(condition, bool):
        return b.const(condition, bool_)
    return node_of(condition)


def _extreme(name: str, on_indices: Callable[[Node, Node], Node], x: Any, y: Any) -> Value:
    first, second = index_of(x), index_of(y)
    if first is not None and second is not None:
        return Index(on_indices(first, second))
    return Value(METHODS[name](*b.operands(node_of(x), node_of(y))))


def _ranges(over: Any) -> list[Range]:
    ranges = list(over) if isinstance(over, tuple | list) else [over]
    for each in ranges:
        if not isinstance(each, Range):
            raise TypeError(f"k.reduce folds over ranges of k.range, not over {each!r}")
    if len({each.number for each in ranges}) < len(ranges) or not ranges:
        raise ValueError("k.reduce: over= names one or more ranges, each once")
    return ranges


def _state(
    monoid: str | Fold, nodes: tuple[Node, ...]
) -> tuple[str | Node, tuple[Node, ...], DType | None]:
    """(monoid, state of one point, the dtype that the result is rounded to in the end)."""
    if isinstance(monoid, Fold):
        if len(nodes) != len(monoid.identity):
            raise ValueError(
                f"k.reduce: the monoid's state has {len(monoid.identity)} components, and "
                f"{len(nodes)} values are given"
            )
        return monoid.node([node.dtype for node in nodes]), nodes, None
    if monoid not in MONOIDS:
        raise ValueError(f"k.reduce: there is no monoid {monoid!r}; there are {', '.join(MONOIDS)}")
    row = MONOIDS[monoid]
    if row.enter is not None:
        common = b.operands(*nodes)[0].dtype if len(nodes) > 1 else nodes[0].dtype
        wide = (common if common.is_float else float32).accumulator
        nodes = tuple([b.cast(node, wide) for node in nodes])
        if len(nodes) == row.size - 1 or (len(nodes) == 1 and row.name == "welford"):
            nodes = row.enter(nodes)
    if len(nodes) != row.size:
        raise ValueError(f"k.reduce: {monoid} folds {row.size} values, and {len(nodes)} are given")
    first = nodes[0].dtype
    if monoid in ("add", "mul") and first is bool_:
        return monoid, (b.cast(nodes[0], int64),), None
    if monoid in ("add", "mul") and first.accumulator is not first:
        return monoid, (b.cast(nodes[0], first.accumulator),), first
    return monoid, nodes, None


def _fold(monoid: str | Node, state: tuple[Node, ...], ranges: Sequence[Range]) -> tuple[Node, ...]:
    row = find(monoid)
    dtypes = tuple([node.dtype for node in state])
    nothing = tuple([b.const(row.identity(c, dtype), dtype) for c, dtype in enumerate(dtypes)])
    if any(each.size == 0 for each in ranges):
        return nothing
    long = [each.node for each in ranges if each.size != 1]
    if not long:
        return row.combine(nothing, state)
    dtype = dtypes[0] if len(dtypes) == 1 else dtypes
    fold = Node(ops.KREDUCE, dtype, (*state, *long), (monoid, len(state)))
    if len(dtypes) == 1:
        return (fold,)
    return tuple([Node(ops.OUT, each, (fold,), c) for c, each in enumerate(dtypes)])
