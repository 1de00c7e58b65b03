"""Random graphs, with the value of every node and how far another right evaluation may be from it.

A graph grows from leaves by *productions*: functions that take values of the pool and make a node
of them. Each value carries an error: 0 where every right evaluation gives these very bits, else a
bound on the distance in every finite element, by the rules of running error analysis. What jumps (a
comparison, a cast to an integer, an argmax) takes exact values only. So a comparison of two
evaluations needs no guessed tolerance.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from treadle.backend.interp.graph import evaluate
from treadle.graph import build, linear, reduction, running
from treadle.graph.loops import cond, while_loop
from treadle.graph.scan import scan
from treadle.ir import dtype as dt
from treadle.ir import index, ops
from treadle.ir.dtype import DType
from treadle.ir.node import Node

SMALL = 700  # elements of an array at most
SMALL_SIZES = (1, 2, 3, 4, 5, 7, 8, 16, 17, 33)
LARGE = 100_000  # in a graph that wants threads and tiles
LARGE_SIZES = (1, 2, 5, 16, 17, 33, 64, 100, 257, 1000)
DTYPES = dt.TENSOR_DTYPES
FLOATS = tuple(d for d in DTYPES if d.is_float)
SPECIAL = (float("inf"), float("-inf"), float("nan"), 0.0, -0.0, 1e-40, 3e38, -65504.0)
EPSILON = {dt.float16: 2.0**-11, dt.bfloat16: 2.0**-8, dt.float32: 2.0**-24, dt.float64: 2.0**-53}


@dataclass
class Value:
    """A node, its value in `dtype.compute`, and the bound on the error of every finite element."""

    node: Node
    array: np.ndarray
    error: float = 0.0

    @property
    def exact(self) -> bool:
        return self.error == 0.0

    @property
    def magnitude(self) -> float:
        """The greatest absolute value among the finite elements, with the error."""
        finite = np.abs(self.array[np.isfinite(self.array)].astype(np.float64))
        return float(finite.max(initial=0.0)) + self.error

    @property
    def finite(self) -> bool:
        return bool(np.isfinite(self.array).all())


@dataclass
class Graph:
    """roots to compute; the arrays of the leaves; the values of the Variables. large: too much for
    the interpreter of programs."""

    roots: list[Value]
    leaves: dict[Node, np.ndarray]
    variables: dict[str, int] = field(default_factory=dict)
    large: bool = False


Made = tuple[Node, float]
Production = Callable[["Maker"], Made | None]
PRODUCTIONS: dict[Production, int] = {}


def production(weight: int = 1) -> Callable[[Production], Production]:
    """File a production under how often it is chosen."""

    def register(function: Production) -> Production:
        PRODUCTIONS[function] = weight
        return function

    return register


class Maker:
    """A graph that grows. Everything follows from the seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.numbers = np.random.default_rng(seed)
        self.pool: list[Value] = []
        self.leaves: dict[Node, np.ndarray] = {}
        self.variables: dict[str, int] = {}
        self.large = self.chance(0.1)
        self.most = LARGE if self.large else SMALL

    # ---- choices ---------------------------------------------------------------------------------
    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def size(self) -> int:
        if self.chance(0.02):
            return 0
        return self.random.choice(LARGE_SIZES if self.large else SMALL_SIZES)

    def shape(self) -> tuple[int, ...]:
        """A shape of at most 4 axes, not too large."""
        sizes = [self.size() for _ in range(self.random.choice((0, 1, 1, 2, 2, 2, 3, 3, 4)))]
        while np.prod(sizes) > self.most:
            sizes[sizes.index(max(sizes))] = 2
        return tuple(sizes)

    def pick(self, accept: Callable[[Value], bool] = lambda value: True) -> Value | None:
        """A value of the pool, one of the newer ones more often; None if none is accepted."""
        fitting = [value for value in self.pool if accept(value)]
        if not fitting:
            return None
        return fitting[max(self.random.randrange(len(fitting)) for _ in range(2))]

    def partner(self, one: Value) -> Value | None:
        """A value of the same dtype that broadcasts with `one`."""
        return self.pick(lambda v: v.node.dtype is one.node.dtype and _broadcasts(one, v))

    # ---- growing ---------------------------------------------------------------------------------
    def leaf(self, dtype: DType, shape: tuple[int, ...], array: np.ndarray | None = None) -> Value:
        """A new BUFFER with random content, special values among it now and then."""
        node = Node(ops.BUFFER, dtype, (), (len(self.leaves), shape, "CPU"))
        self.leaves[node] = self.content(dtype, shape) if array is None else array
        return self.add(node)

    def content(self, dtype: DType, shape: tuple[int, ...]) -> np.ndarray:
        if dtype.kind == "b":
            return self.numbers.random(shape) < 0.5
        if dtype.is_float:
            values = self.numbers.integers(-32, 33, shape) / 8.0
            if self.chance(0.25):
                strange = self.numbers.choice(np.array(SPECIAL), shape)
                values = np.where(self.numbers.random(shape) < 0.2, strange, values)
            with np.errstate(over="ignore"):
                return dt.round_to(dtype, values.astype(dtype.compute))
        low, high = (-9, 10) if dtype.kind == "i" else (0, 10)
        values = self.numbers.integers(low, high, shape).astype(dtype.compute)
        if self.chance(0.25):
            ends = np.array([dtype.min, dtype.max], dtype.compute)
            extreme = self.numbers.random(shape) < 0.2
            values = np.where(extreme, self.numbers.choice(ends, shape), values)
        return values

    def add(self, node: Node, error: float = 0.0) -> Value:
        """The node with its value, into the pool."""
        value = Value(node, self.evaluate(node), error if node.dtype.is_float else 0.0)
        self.pool.append(value)
        return value

    def evaluate(self, node: Node) -> np.ndarray:
        """The judge's value of a node."""
        known = self.leaves | {value.node: value.array for value in self.pool}
        (array,) = evaluate([node], known, self.variables)
        return np.asarray(array)

    def grow(self) -> None:
        """One production, if it can be applied."""
        choice = self.random.choices(list(PRODUCTIONS), list(PRODUCTIONS.values()))[0]
        made = choice(self)
        if made is None or _elements(made[0], self.variables) > self.most or made[1] > 1e3:
            return
        self.add(*made)


def make(seed: int, steps: int | None = None) -> Graph:
    """The graph of a seed."""
    maker = Maker(seed)
    shape = maker.shape()
    maker.leaf(maker.random.choice(FLOATS), shape)
    for _ in range(maker.random.randrange(1, 4)):
        maker.leaf(maker.random.choice(DTYPES), shape if maker.chance(0.6) else maker.shape())
    leaves = len(maker.pool)
    for _ in range(maker.random.randrange(3, 30) if steps is None else steps):
        maker.grow()
    made = maker.pool[leaves:] or maker.pool
    roots = {value.node: value for value in made[-1:]}
    for _ in range(maker.random.randrange(3)):
        value = maker.random.choice(made)
        roots[value.node] = value
    return Graph(list(roots.values()), maker.leaves, maker.variables, maker.large)


def _broadcasts(one: Value, other: Value) -> bool:
    pairs = zip(reversed(one.node.shape), reversed(other.node.shape))
    return all(a is b or a == b or a == 1 or b == 1 for a, b in pairs)


def _elements(node: Node, variables: dict[str, int]) -> int:
    return int(np.prod([_number(size, variables) for size in node.shape], dtype=np.int64))


def _number(size: int | Node, variables: dict[str, int]) -> int:
    return size if isinstance(size, int) else index.evaluate(size, variables)


def epsilon(dtype: DType) -> float:
    """Half a unit in the last place of 1."""
    return EPSILON[dtype]


# ---- elementwise ---------------------------------------------------------------------------------
_EXACT_UNARY = (ops.NEG, ops.ABS, ops.FLOOR, ops.CEIL, ops.TRUNC, ops.RINT, ops.SQRT, ops.NOT)
_STEPPED = (ops.FLOOR, ops.CEIL, ops.TRUNC, ops.RINT, ops.SQRT)
# op -> (least argument, greatest argument, the steepest slope between them)
_CURVES = {
    ops.EXP: (-60.0, 3.0, 20.1), ops.EXP2: (-60.0, 4.0, 11.1), ops.EXPM1: (-60.0, 3.0, 20.1),
    ops.LOG: (0.0625, 6e4, 16.0), ops.LOG2: (0.0625, 6e4, 23.1), ops.LOG1P: (-0.5, 6e4, 2.0),
    ops.SIN: (-1e4, 1e4, 1.0), ops.COS: (-1e4, 1e4, 1.0), ops.TANH: (-6e4, 6e4, 1.0),
    ops.ATAN: (-6e4, 6e4, 1.0), ops.ERF: (-6e4, 6e4, 1.13), ops.TAN: (-1.0, 1.0, 3.5),
    ops.ERFC: (-6e4, 6e4, 1.13), ops.NORMAL_CDF: (-6e4, 6e4, 0.4),
    ops.ERFINV: (-0.875, 0.875, 2.9), ops.LGAMMA: (0.5, 1e4, 9.3),
    ops.DIGAMMA: (0.5, 1e4, 5.0),
}  # fmt: skip


@production(3)
def unary(maker: Maker) -> Made | None:
    op = maker.random.choice(_EXACT_UNARY)
    x = maker.pick(lambda v: v.node.dtype.kind in op.accepts and (v.exact or op not in _STEPPED))
    return None if x is None else (build.alu(op, x.node), x.error)


@production(3)
def curve(maker: Maker) -> Made | None:
    op, (low, high, slope) = maker.random.choice(list(_CURVES.items()))
    x = maker.pick(lambda v: v.node.dtype.is_float)
    if x is None:
        return None
    if not x.finite and not x.exact:
        return None
    argument = x.node
    finite = x.array[np.isfinite(x.array)].astype(np.float64)
    if finite.size and not (low <= finite.min() - x.error and finite.max() + x.error <= high):
        argument = build.alu(ops.MIN, build.alu(ops.MAX, x.node, low), high)
    node = build.alu(op, argument)
    top = Value(node, maker.evaluate(node)).magnitude
    return node, slope * x.error + 8 * epsilon(x.node.dtype) * max(top, 1e-3)


@production(8)
def binary(maker: Maker) -> Made | None:
    op = maker.random.choice((ops.ADD, ops.SUB, ops.MUL, ops.MUL, ops.MAX, ops.MIN))
    x = maker.pick(lambda v: v.node.dtype.kind in op.accepts)
    y = None if x is None else maker.partner(x)
    if x is None or y is None:
        return None
    node = build.alu(op, x.node, y.node)
    error = x.error + y.error
    if not error or op in (ops.MAX, ops.MIN):
        return node, max(x.error, y.error)
    if not (x.finite and y.finite) or max(x.magnitude, y.magnitude) > 1e6:
        return None
    if op is ops.MUL:
        error = x.error * y.magnitude + y.error * x.magnitude
    largest = x.magnitude * y.magnitude if op is ops.MUL else x.magnitude + y.magnitude
    return node, error + 2 * epsilon(x.node.dtype) * largest


@production(2)
def quotient(maker: Maker) -> Made | None:
    x = maker.pick(lambda v: v.node.dtype.is_float)
    y = None if x is None else maker.partner(x)
    if x is None or y is None:
        return None
    node = build.alu(ops.DIV, x.node, y.node)
    if x.exact and y.exact:
        return node, 0.0
    least = float(np.abs(y.array).min(initial=1.0)) - y.error
    if not (x.finite and y.finite) or least < 0.0625 or x.magnitude > 1e6:
        return None
    error = x.error / least + x.magnitude * y.error / least**2
    return node, error + 2 * epsilon(x.node.dtype) * x.magnitude / least


@production(3)
def integers(maker: Maker) -> Made | None:
    op = maker.random.choice((ops.IDIV, ops.MOD, ops.AND, ops.OR, ops.XOR, ops.LSHIFT, ops.RSHIFT))
    x = maker.pick(lambda v: v.node.dtype.kind in op.accepts)
    y = None if x is None else maker.partner(x)
    return None if x is None or y is None else (build.alu(op, x.node, y.node), 0.0)


@production(3)
def comparison(maker: Maker) -> Made | None:
    op = maker.random.choice((ops.LT, ops.LE, ops.EQ, ops.NE))
    x = maker.pick(lambda v: v.exact and v.node.dtype.kind in op.accepts)
    y = None if x is None else maker.partner(x)
    if x is None or y is None or not y.exact:
        return None
    return build.alu(op, x.node, y.node), 0.0


@production(3)
def choice(maker: Maker) -> Made | None:
    x = maker.pick()
    y = None if x is None else maker.partner(x)
    if x is None or y is None:
        return None
    test = maker.pick(
        lambda v: v.node.dtype is dt.bool_ and _broadcasts(v, x) and _broadcasts(v, y)
    )
    if test is None:
        return None
    try:
        return build.where(test.node, x.node, y.node), max(x.error, y.error)
    except ValueError:  # each pair broadcasts, but not all three
        return None


@production(4)
def cast(maker: Maker) -> Made | None:
    dtype = maker.random.choice(DTYPES)
    x = maker.pick(lambda v: v.exact or dtype.is_float)
    if x is None or (not x.exact and (not x.finite or x.magnitude > 6e4)):
        return None
    error = 0.0 if x.exact else x.error + epsilon(dtype) * x.magnitude
    return build.cast(x.node, dtype), error


@production(1)
def bitcast(maker: Maker) -> Made | None:
    x = maker.pick(lambda v: v.exact and v.node.dtype is not dt.bool_ and not _has_nan(v))
    if x is None:
        return None
    fitting = [d for d in DTYPES if d.itemsize == x.node.dtype.itemsize and d is not dt.bool_]
    return build.bitcast(x.node, maker.random.choice(fitting)), 0.0


def _has_nan(value: Value) -> bool:
    return bool(np.isnan(value.array).any()) if value.node.dtype.is_float else False


@production(2)
def with_number(maker: Maker) -> Made | None:
    x = maker.pick(lambda v: v.node.dtype.kind in "iuf")
    if x is None:
        return None
    numbers = (0, 1, 2, 3, 5) if x.node.dtype.is_int else (0.0, -1.5, 0.1)
    number = maker.random.choice(numbers)
    op = maker.random.choice((ops.ADD, ops.SUB, ops.MUL, ops.MAX))
    if not x.exact and (not x.finite or x.magnitude > 1e6):
        return None
    node = build.alu(op, x.node, number)
    if x.exact:
        return node, 0.0
    return node, 2 * x.error + 2 * epsilon(x.node.dtype) * (x.magnitude + 2)


# ---- movement ------------------------------------------------------------------------------------
@production(3)
def reshape(maker: Maker) -> Made | None:
    x = maker.pick(lambda v: all(isinstance(size, int) for size in v.node.shape))
    if x is None:
        return None
    sizes = list(x.node.shape)
    for _ in range(maker.random.randrange(1, 4)):
        where = maker.random.randrange(len(sizes) + 1)
        if where < len(sizes) - 1 and maker.chance(0.5):
            sizes[where : where + 2] = [sizes[where] * sizes[where + 1]]
        elif where < len(sizes) and sizes[where] > 1 and maker.chance(0.7):
            parts = [d for d in range(1, sizes[where] + 1) if sizes[where] % d == 0]
            part = maker.random.choice(parts)
            sizes[where : where + 1] = [part, sizes[where] // part]
        elif len(sizes) < 5:
            sizes.insert(where, 1)
    return build.reshape(x.node, sizes), x.error


@production(3)
def permute(maker: Maker) -> Made | None:
    x = maker.pick(lambda v: len(v.node.shape) > 1)
    if x is None:
        return None
    order = list(range(len(x.node.shape)))
    maker.random.shuffle(order)
    return build.permute(x.node, order), x.error


@production(2)
def expand(maker: Maker) -> Made | None:
    x = maker.pick()
    if x is None:
        return None
    shape = [maker.size() if size == 1 and maker.chance(0.7) else size for size in x.node.shape]
    if maker.chance(0.4):
        shape.insert(0, maker.size())
    return build.expand(x.node, shape), x.error


@production(2)
def pad(maker: Maker) -> Made | None:
    x = maker.pick()
    if x is None:
        return None
    pairs = [(maker.random.randrange(3), maker.random.randrange(3)) for _ in x.node.shape]
    value = maker.random.choice((0, 1)) if x.node.dtype is not dt.bool_ else maker.chance(0.5)
    return build.pad(x.node, pairs, value), x.error


@production(2)
def shrink(maker: Maker) -> Made | None:
    x = maker.pick(lambda v: all(isinstance(size, int) for size in v.node.shape))
    if x is None:
        return None
    regions = []
    for size in x.node.shape:
        start = maker.random.randrange(size + 1) if maker.chance(0.4) else 0
        stop = maker.random.randrange(start, size + 1) if maker.chance(0.4) else size
        regions.append((start, stop))
    return build.shrink(x.node, regions), x.error


@production(1)
def flip(maker: Maker) -> Made | None:
    x = maker.pick(lambda v: len(v.node.shape) > 0)
    if x is None:
        return None
    axes = [axis for axis in range(len(x.node.shape)) if maker.chance(0.6)]
    return build.flip(x.node, axes), x.error


@production(2)
def window(maker: Maker) -> Made | None:
    x = maker.pick(lambda v: any(isinstance(s, int) and s > 1 for s in v.node.shape))
    if x is None or len(x.node.shape) > 4:
        return None
    axes = [a for a, s in enumerate(x.node.shape) if isinstance(s, int) and s > 1]
    axis = maker.random.choice(axes)
    length = x.node.shape[axis]
    size = maker.random.randrange(1, min(length, 4) + 1)
    dilation = maker.random.randrange(1, 3)
    if dilation * (size - 1) + 1 > length:
        dilation = 1
    return build.window(x.node, axis, size, maker.random.randrange(1, 4), dilation), x.error


@production(2)
def unwindow(maker: Maker) -> Made | None:
    x = maker.pick(
        lambda v: len(v.node.shape) > 1 and all(isinstance(s, int) for s in v.node.shape)
    )
    if x is None:
        return None
    axis = maker.random.randrange(len(x.node.shape) - 1)
    count, size = x.node.shape[axis : axis + 2]
    stride, dilation = maker.random.randrange(1, 4), maker.random.randrange(1, 3)
    if count == 0 or size == 0:
        return None
    length = (count - 1) * stride + (size - 1) * dilation + 1 + maker.random.randrange(2)
    return build.unwindow(x.node, axis, length, stride, dilation), x.error


@production(1)
def contiguous(maker: Maker) -> Made | None:
    x = maker.pick()
    return None if x is None else (build.contiguous(x.node), x.error)


@production(1)
def bound_length(maker: Maker) -> Made | None:
    """The first T rows, T a Variable."""
    x = maker.pick(lambda v: bool(v.node.shape) and isinstance(v.node.shape[0], int))
    if x is None or x.node.shape[0] == 0:
        return None
    high = x.node.shape[0]
    name = f"T{high}"
    maker.variables.setdefault(name, maker.random.randrange(high + 1))
    rows = index.variable(name, 0, high)
    regions = [(0, rows), *[(0, size) for size in x.node.shape[1:]]]
    return build.shrink(x.node, regions), x.error


# ---- reductions ----------------------------------------------------------------------------------
def _axes(maker: Maker, value: Value) -> list[int]:
    rank = len(value.node.shape)
    if maker.chance(0.6):
        return [maker.random.randrange(rank)]
    return sorted(maker.random.sample(range(rank), maker.random.randrange(1, rank + 1)))


def _sum_error(x: Value, terms: int, largest: float) -> float:
    dtype = x.node.dtype
    wide = epsilon(dtype.accumulator) if dtype.is_float else 0.0
    rounding = (
        epsilon(dtype) * largest if dtype.is_float and dtype.accumulator is not dtype else 0.0
    )
    return terms * (x.error + 2 * wide * largest) + rounding


@production(6)
def reduce(maker: Maker) -> Made | None:
    monoid = maker.random.choice(("add", "add", "add", "mul", "max", "min", "and", "or"))
    kinds = "biu" if monoid in ("and", "or") else "iuf" if monoid in ("add", "mul") else "biuf"
    x = maker.pick(lambda v: len(v.node.shape) > 0 and v.node.dtype.kind in kinds)
    if x is None:
        return None
    axes = _axes(maker, x)
    node = build.reduce(monoid, x.node, axes, keepdim=maker.chance(0.5))
    if monoid not in ("add", "mul") or not x.node.dtype.is_float:
        return node, x.error
    terms = int(np.prod([x.array.shape[axis] for axis in axes]))
    if monoid == "add":
        finite = np.where(np.isfinite(x.array), x.array, 0).astype(np.float64)
        largest = float(np.abs(finite).sum(tuple(axes)).max(initial=0.0))
        if largest > 6e4 or (not x.finite and not x.exact):
            return None
        return node, _sum_error(x, terms, largest)
    top = max(1.0, x.magnitude)
    if not x.finite or terms * np.log2(top) > 8 or terms > 64:
        return None
    return node, terms * (x.error + 2 * epsilon(x.node.dtype)) * top**terms


@production(1)
def running_sum(maker: Maker) -> Made | None:
    x = maker.pick(lambda v: len(v.node.shape) > 0 and v.node.dtype.kind in "iuf" and v.finite)
    if x is None or not all(isinstance(size, int) for size in x.node.shape) or x.magnitude > 100:
        return None
    axis = maker.random.randrange(len(x.node.shape))
    terms = x.node.shape[axis]
    error = _sum_error(x, terms, terms * x.magnitude) if x.node.dtype.is_float else 0.0
    return running.cumsum(x.node, axis), error


@production(2)
def position(maker: Maker) -> Made | None:
    x = maker.pick(lambda v: v.exact and len(v.node.shape) > 0 and v.array.size > 0)
    if x is None or not all(isinstance(size, int) for size in x.node.shape):
        return None
    function = maker.random.choice((reduction.argmax, reduction.argmin))
    return function(x.node, maker.random.randrange(len(x.node.shape)), maker.chance(0.5)), 0.0


@production(4)
def row(maker: Maker) -> Made | None:
    """A value beside a reduction of itself: what softmax and norms are made of."""
    monoid = maker.random.choice(("add", "max", "min"))
    x = maker.pick(lambda v: len(v.node.shape) > 0 and v.node.dtype.is_float and v.finite)
    if x is None or x.magnitude > 50 or x.array.size == 0:
        return None
    axes = _axes(maker, x)
    terms = int(np.prod([x.array.shape[axis] for axis in axes]))
    node = build.alu(ops.SUB, x.node, build.reduce(monoid, x.node, axes, keepdim=True))
    factor = terms if monoid == "add" else 1
    error = _sum_error(x, factor, factor * x.magnitude) + x.error
    return node, error + 4 * epsilon(x.node.dtype) * (factor + 1) * x.magnitude


@production(3)
def product(maker: Maker) -> Made | None:
    """A matrix product with something that fits."""
    x = maker.pick(lambda v: len(v.node.shape) > 1 and v.node.dtype.kind in "if" and v.finite)
    if x is None or x.magnitude > 50:
        return None
    inner = x.node.shape[-1]
    y = maker.pick(
        lambda v: (
            v.node.dtype is x.node.dtype
            and len(v.node.shape) == 2
            and inner in v.node.shape
            and v.finite
            and v.magnitude < 50
        )
    )
    if y is None:
        if isinstance(inner, int):
            y = maker.leaf(x.node.dtype, (maker.random.choice((1, 3, 17)), inner))
        if y is None or not y.finite:
            return None
    other = y.node if y.node.shape[0] == inner else build.permute(y.node, (1, 0))
    node = linear.matmul(x.node, other)
    if not x.node.dtype.is_float:
        return node, 0.0
    terms = x.array.shape[-1]
    largest = x.magnitude * y.magnitude
    each = x.error * y.magnitude + y.error * x.magnitude + epsilon(x.node.dtype) * largest
    return node, _sum_error(Value(x.node, x.array, each), terms, terms * largest)


# ---- data-dependent indices, regions, loops ------------------------------------------------------
def _places(maker: Maker, x: Value, axis: int) -> Node | None:
    """Indices into an axis: a leaf of them, or some integers of the pool brought into range."""
    size = x.node.shape[axis]
    shape = list(x.node.shape)
    if not all(isinstance(each, int) for each in shape) or size == 0:
        return None
    found = maker.pick(
        lambda v: (
            v.node.dtype in (dt.int64, dt.int32)
            and len(v.node.shape) == len(shape)
            and all(a == b for n, (a, b) in enumerate(zip(v.node.shape, shape)) if n != axis)
        )
    )
    if found is not None and maker.chance(0.5):
        return build.alu(ops.MOD, found.node, size)
    shape[axis] = maker.random.choice((1, 2, 5))
    dtype = maker.random.choice((dt.int64, dt.int32))
    array = maker.numbers.integers(0, size, shape).astype(dtype.compute)
    return maker.leaf(dtype, tuple(shape), array).node


@production(2)
def gather(maker: Maker) -> Made | None:
    x = maker.pick(lambda v: len(v.node.shape) > 0)
    if x is None:
        return None
    axis = maker.random.randrange(len(x.node.shape))
    places = _places(maker, x, axis)
    return None if places is None else (build.gather(x.node, places, axis), x.error)


@production(2)
def scatter(maker: Maker) -> Made | None:
    x = maker.pick(lambda v: len(v.node.shape) > 0 and v.node.dtype is not dt.bool_)
    if x is None:
        return None
    axis = maker.random.randrange(len(x.node.shape))
    places = _places(maker, x, axis)
    if places is None:
        return None
    value = maker.pick(lambda v: v.node.dtype is x.node.dtype and v.node.shape == places.shape)
    if value is None and not all(isinstance(size, int) for size in places.shape):
        return None
    if value is None:
        value = maker.leaf(x.node.dtype, places.shape)
    monoid = maker.random.choice(("set", "add", "max", "min"))
    node = build.scatter(x.node, places, value.node, axis, monoid)
    error = max(x.error, value.error)
    if monoid != "add" or not x.node.dtype.is_float:
        return node, error
    if not (x.finite and value.finite) or max(x.magnitude, value.magnitude) > 100:
        return None
    terms = value.array.shape[axis] + 1
    largest = terms * max(x.magnitude, value.magnitude)
    return node, _sum_error(Value(x.node, x.array, error), terms, largest)


@production(1)
def update(maker: Maker) -> Made | None:
    x = maker.pick(
        lambda v: len(v.node.shape) > 0 and all(isinstance(s, int) for s in v.node.shape)
    )
    if x is None or x.array.size == 0:
        return None
    region, shape = [], []
    for size in x.node.shape:
        start, step = maker.random.randrange(size), maker.random.randrange(1, 3)
        region.append((start, step))
        shape.append(maker.random.randrange(1, (size - start + step - 1) // step + 1))
    value = maker.leaf(x.node.dtype, tuple(shape))
    return build.update(x.node, value.node, region), x.error


@production(1)
def loop(maker: Maker) -> Made | None:
    """A recurrence along the first axis."""
    x = maker.pick(
        lambda v: len(v.node.shape) > 0 and v.node.dtype in (dt.float32, dt.float64) and v.finite
    )
    if x is None or x.magnitude > 50:
        return None
    length = x.node.shape[0]
    if not isinstance(length, int) or length == 0:
        return None

    def step(carry: Node, row: Node) -> tuple[Node, Node]:
        new = build.alu(ops.ADD, build.alu(ops.MUL, carry, 0.5), row)
        return new, build.alu(ops.MAX, new, 0.0)

    zero = build.const(0.0, x.node.dtype, x.node.shape[1:])
    last, rows = scan(step, zero, x.node, reverse=maker.chance(0.3))
    error = 2 * x.error + 8 * epsilon(x.node.dtype) * 2 * x.magnitude
    return (rows if maker.chance(0.6) else last), error


@production(1)
def branch(maker: Maker) -> Made | None:
    """One of two branches; the first is a loop that tests what it counts."""
    x = maker.pick(lambda v: v.node.dtype in (dt.float32, dt.float64) and v.finite)
    if x is None:
        return None
    test, trips = maker.leaf(dt.bool_, ()), maker.random.randrange(4)

    def looped(y: Node) -> Node:
        return while_loop(
            lambda carry: build.alu(ops.LT, carry[0], trips),
            lambda carry: (build.alu(ops.ADD, carry[0], 1), build.alu(ops.MUL, carry[1], 0.5)),
            (build.const(0, dt.int64), y),
        )[1]

    return cond(test.node, looped, lambda y: build.alu(ops.MAX, y, 0.0), x.node), x.error
