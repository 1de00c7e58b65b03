"""What each op must look like: `fault(node, stage letter)` says what is wrong with one node.

Every op is held to its row in the table (arity, stages, dtypes) and to its own law in `LAWS`, a
function from a node to what is wrong with it, or None. `verify.py` walks programs with it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from treadle.ir import index, ops
from treadle.ir.dots import GROUP, dot_of
from treadle.ir.dtype import DType, bool_
from treadle.ir.dtype import index as INDEX
from treadle.ir.law_bodies import BODY_LAWS
from treadle.ir.matrix import matrix_of
from treadle.ir.monoid import MONOIDS, find, known, spell
from treadle.ir.node import Node

Law = Callable[[Node], str | None]
LAWS: dict[ops.Op, Law] = {**BODY_LAWS}


def fault(node: Node, letter: str) -> str | None:
    """What is wrong with one node in a stage ("g", "k" or "p"), or None. Its sources are taken to
    be right."""
    op = node.op
    if letter not in op.stages:
        return "it may not stand in this stage"
    if op.arity is not None and len(node.src) != op.arity:
        return f"it needs {op.arity} sources and has {len(node.src)}"
    if op.kind == "alu":
        why = _alu_fault(node, letter)
        if why is not None:
            return why
    elif op.dtype == "same" and node.dtype is not (node.src[0].dtype if node.src else INDEX):
        return f"its dtype {node.dtype} is not that of its source, {node.src[0].dtype}"
    law = LAWS.get(op)
    try:
        return None if law is None else law(node)
    except (TypeError, ValueError, AttributeError, IndexError):
        return "its arg or its sources are not of the form that its row in the table says"


def _alu_fault(node: Node, letter: str) -> str | None:
    """A scalar operation: dtypes that the row accepts, all equal; in a graph, equal shapes."""
    src = node.src
    why = _dtype_fault(node.op, node.dtype, tuple([s.dtype for s in src]), letter)
    if why is None and letter == "g":
        shape = src[0].shape
        for source in src:
            if source.shape != shape:
                return f"its sources have different shapes, {shape} and {source.shape}"
    return why


@lru_cache(maxsize=4096)
def _dtype_fault(op: ops.Op, dtype: Any, sources: tuple[Any, ...], letter: str) -> str | None:
    if not isinstance(dtype, DType):
        return f"it has one output, but its dtype is {dtype}"
    own = op not in _OWN_DTYPES
    first = sources[0]
    for source in sources:
        if not isinstance(source, DType):
            return "a source with several outputs is read through `out`"
        if source.kind not in op.accepts and op is not ops.CAST:
            return f"it does not accept {source}"
        if own and source is not first:
            return f"its sources have different dtypes, {first} and {source}"
        if source.lanes != dtype.lanes and op not in _CHANGES_LANES:
            return f"a source of {source.lanes} lanes in an operation of {dtype.lanes}"
    expected = bool_.vec(dtype.lanes) if op.dtype == "bool" else first
    if own and dtype is not expected:
        return f"its dtype is {dtype}, but it gives {expected}"
    if own and first is INDEX and letter != "p" and op.dtype != "bool":
        return "arithmetic on indices is made by index.py (isum, iprod ..)"
    return None


_OWN_DTYPES = (
    ops.WHERE, ops.CAST, ops.BITCAST, ops.SPLAT, ops.PACK, ops.LANE,
    ops.COMPLEX, ops.REAL, ops.IMAG,
)  # fmt: skip
_CHANGES_LANES = (ops.SPLAT, ops.PACK, ops.LANE)


# ---- well-formed args ----------------------------------------------------------------------------
def is_shape(value: Any) -> bool:
    return isinstance(value, tuple) and all(map(index.is_dim, value))


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 0


def _are_axes(value: Any, rank: int) -> bool:
    """A tuple of different axes, in order."""
    if not isinstance(value, tuple) or not all(type(axis) is int for axis in value):
        return False
    return list(value) == sorted(set(value)) and all(0 <= axis < rank for axis in value)


def _are_pairs(value: Any, rank: int) -> bool:
    """A tuple of one pair of dimensions per axis."""
    return (
        isinstance(value, tuple)
        and len(value) == rank
        and all(isinstance(pair, tuple) and len(pair) == 2 and is_shape(pair) for pair in value)
    )


def _exceeds(a: Any, b: Any) -> bool:
    """Whether a > b for certain."""
    return index.lt(b, a) is index.TRUE


def law(*rows: ops.Op) -> Callable[[Law], Law]:
    """Files a function as the law of these ops."""

    def register(function: Law) -> Law:
        for row in rows:
            LAWS[row] = function
        return function

    return register


# ---- scalar operations and leaves ----------------------------------------------------------------
@law(ops.WHERE)
def _where(node: Node) -> str | None:
    condition, a, b = node.src
    if condition.dtype.kind != "b":
        return f"its condition is {condition.dtype}, not bool"
    if not a.dtype is b.dtype is node.dtype:
        return f"it chooses between {a.dtype} and {b.dtype} and gives {node.dtype}"
    return None


@law(ops.BITCAST)
def _bitcast(node: Node) -> str | None:
    if node.src[0].dtype.bits != node.dtype.bits:
        return f"{node.src[0].dtype} and {node.dtype} differ in width"
    return None


@law(ops.COMPLEX)
def _complex(node: Node) -> str | None:
    right = all(part.dtype is node.dtype.real for part in node.src) and node.dtype.is_complex
    return None if right else f"its parts are not those of {node.dtype}"


@law(ops.REAL, ops.IMAG)
def _part(node: Node) -> str | None:
    right = node.dtype is node.src[0].dtype.real
    return None if right else f"{node.dtype} is no part of {node.src[0].dtype}"


@law(ops.CONST)
def _const(node: Node) -> str | None:
    dtype, bits = node.dtype, node.arg
    if type(bits) is not int:
        return f"its bits are {bits!r}, not an int"
    low, high = 0, (1 << max(1, dtype.bits)) - 1
    if dtype.kind in "iux":
        signed = dtype.kind != "u"
        low, high = (-(1 << (dtype.bits - 1)), high >> 1) if signed else (low, high)
    return None if low <= bits <= high else f"{bits} are no bits of {dtype}"


@law(ops.VARIABLE)
def _variable(node: Node) -> str | None:
    name, low, high = node.arg
    right = isinstance(name, str) and type(low) is type(high) is int and low <= high
    return None if right and node.dtype is INDEX else "its arg is not (name, low, high)"


@law(ops.SCALAR)
def _scalar(node: Node) -> str | None:
    return None if _is_count(node.arg) else "its arg is not a position"


@law(ops.BUFFER, ops.PLACEHOLDER, ops.ARG)
def _array(node: Node) -> str | None:
    length = 3 if node.op is ops.BUFFER else 2
    right = isinstance(node.arg, tuple) and len(node.arg) == length and is_shape(node.arg[1])
    return None if right else f"its arg is not (number, shape{', device' * (length == 3)})"


@law(ops.IOTA)
def _iota(node: Node) -> str | None:
    if not index.is_dim(node.arg):
        return "its arg is not a size"
    return None if node.dtype.is_int else f"it counts in {node.dtype}, not an integer"


# ---- movement ------------------------------------------------------------------------------------
@law(ops.RESHAPE)
def _reshape(node: Node) -> str | None:
    if not is_shape(node.arg):
        return "its arg is not a shape"
    before, after = index.product(node.src[0].shape), index.product(node.arg)
    if before != after:
        return f"{index.spell(before)} elements become {index.spell(after)}"
    return None


@law(ops.PERMUTE)
def _permute(node: Node) -> str | None:
    right = sorted(node.arg) == list(range(len(node.src[0].shape)))
    return None if right else "its arg is not an order of the axes"


@law(ops.EXPAND)
def _expand(node: Node) -> str | None:
    before = node.src[0].shape
    if not is_shape(node.arg) or len(before) != len(node.arg):
        return "its arg is not a shape of as many axes"
    if any(a is not b and a != b and a != 1 for a, b in zip(before, node.arg)):
        return f"only axes of size 1 can be expanded: {before} to {node.arg}"
    return None


@law(ops.PAD)
def _pad(node: Node) -> str | None:
    right = _are_pairs(node.arg, len(node.src[0].shape))
    return None if right else "its arg is not a pair (low, high) per axis"


@law(ops.SHRINK)
def _shrink(node: Node) -> str | None:
    shape = node.src[0].shape
    if not _are_pairs(node.arg, len(shape)):
        return "its arg is not a pair (start, stop) per axis"
    outside = any(_exceeds(a, b) or _exceeds(b, size) for (a, b), size in zip(node.arg, shape))
    return f"its region leaves the shape {shape}" if outside else None


@law(ops.FLIP)
def _flip(node: Node) -> str | None:
    right = _are_axes(node.arg, len(node.src[0].shape))
    return None if right else "its arg is not a tuple of axes"


@law(ops.WINDOW, ops.UNWINDOW)
def _window(node: Node) -> str | None:
    shape = node.src[0].shape
    axis, size, stride, dilation = node.arg
    if not (_is_count(axis) and axis + 1 < len(shape) and index.is_dim(size)):
        return "its arg does not begin with the first of two axes, and a size"
    if not (_is_count(stride) and _is_count(dilation) and stride):
        return "its stride is not a positive int, or its dilation is negative"
    if node.op is ops.WINDOW and size != 0 and shape[axis + 1] != 0:
        last = index.add(
            index.mul(index.sub(size, 1), stride),
            index.mul(index.sub(shape[axis + 1], 1), dilation),
        )
        if _exceeds(index.add(last, 1), shape[axis]):
            return f"its windows leave the axis of size {shape[axis]}"
    return None


# ---- reduce, gather, scatter, scan ---------------------------------------------------------------
def _monoid_fault(node: Node, values: Sequence[Node], name: Any) -> str | None:
    if not known(name):
        return f"there is no monoid {name!r}"
    monoid = find(name)
    if len(values) != monoid.size:
        return f"the state of {spell(name)} has {monoid.size} parts, and it gets {len(values)}"
    dtypes = tuple(value.dtype for value in values)
    if node.dtype is not dtypes[0] if monoid.size == 1 else node.dtype != dtypes:
        return f"it folds {dtypes} into {node.dtype}"
    return None


@law(ops.REDUCE)
def _reduce(node: Node) -> str | None:
    name, axes = node.arg
    if not node.src or not _are_axes(axes, len(node.src[0].shape)):
        return "its arg is not (monoid, axes in order)"
    if any(source.shape != node.src[0].shape for source in node.src):
        return "its sources have different shapes"
    return _monoid_fault(node, node.src, name)


def _same_but_along(a: tuple[Any, ...], b: tuple[Any, ...], axis: Any) -> bool:
    if not (_is_count(axis) and axis < len(a) and len(a) == len(b)):
        return False
    return a[:axis] == b[:axis] and a[axis + 1 :] == b[axis + 1 :]


@law(ops.GATHER)
def _gather(node: Node) -> str | None:
    x, position = node.src
    if not position.dtype.is_int:
        return f"its index is {position.dtype}, not an integer"
    if not _same_but_along(x.shape, position.shape, node.arg):
        return f"along axis {node.arg}, shapes {x.shape} and {position.shape} do not fit"
    return None


@law(ops.SCATTER)
def _scatter(node: Node) -> str | None:
    base, position, value = node.src
    axis, monoid = node.arg
    if not position.dtype.is_int:
        return f"its index is {position.dtype}, not an integer"
    if position.shape != value.shape or not _same_but_along(base.shape, value.shape, axis):
        return f"along axis {axis}, {base.shape} does not take {position.shape}, {value.shape}"
    if value.dtype is not base.dtype:
        return f"it combines {value.dtype} into {base.dtype}"
    return None if monoid == "set" or monoid in MONOIDS else f"there is no monoid {monoid!r}"


@law(ops.UPDATE)
def _update(node: Node) -> str | None:
    x, value = node.src
    if value.dtype is not x.dtype or len(value.shape) != len(x.shape):
        return "its value has another dtype or rank than its base"
    if not _are_pairs(node.arg, len(x.shape)) or any(step == 0 for _, step in node.arg):
        return "its arg is not a pair (start, step) per axis"
    for (start, step), count, size in zip(node.arg, value.shape, x.shape):
        last = index.add(start, index.mul(index.sub(count, 1), step))
        if count != 0 and _exceeds(index.add(last, 1), size):
            return f"its region leaves the shape {x.shape}"
    return None


@law(ops.AGAIN)
def _again(node: Node) -> str | None:
    return None if isinstance(node.src[1].dtype, DType) else "it waits for several values"


@law(ops.OUT)
def _out(node: Node) -> str | None:
    several = node.src[0].dtype
    if not isinstance(several, tuple) or type(node.arg) is not int:
        return "it picks one of several outputs"
    if not 0 <= node.arg < len(several) or node.dtype is not several[node.arg]:
        return f"output {node.arg} of {several} is not {node.dtype}"
    return None


# ---- kernels -------------------------------------------------------------------------------------
@law(ops.RANGE)
def _range(node: Node) -> str | None:
    number, size = node.arg
    right = node.dtype is INDEX and _is_count(number) and index.is_dim(size)
    return None if right else "its arg is not (number, size)"


def _access_fault(node: Node, first: int, axes: Any) -> str | None:
    """An access by one index per axis from source `first` on, and perhaps a guard."""
    buffer, rest = node.src[0], node.src[first:]
    if buffer.op not in (ops.ARG, ops.DEFINE):
        return f"it accesses {buffer.op.name}, which is no buffer"
    if buffer.op is ops.ARG and axes != len(buffer.arg[1]):
        return f"it has {axes} indices for a buffer of {len(buffer.arg[1])} axes"
    if not _is_count(axes) or len(rest) not in (axes, axes + 1):
        return f"it has {len(rest)} sources for {axes} indices and a guard"
    if any(position.dtype is not INDEX for position in rest[:axes]):
        return "an index is not of dtype index"
    if len(rest) > axes and rest[axes].dtype is not bool_:
        return f"its guard is {rest[axes].dtype}, not bool"
    return None


@law(ops.LOAD)
def _load(node: Node) -> str | None:
    if not node.src:
        return "it has no buffer"
    if node.dtype is not node.src[0].dtype:
        return f"it loads {node.dtype} from a buffer of {node.src[0].dtype}"
    return _access_fault(node, 1, node.arg)


@law(ops.STORE)
def _store(node: Node) -> str | None:
    axes, monoid = node.arg
    if len(node.src) < 2:
        return "it has no buffer or no value"
    buffer, value = node.src[:2]
    if value.dtype is not buffer.dtype:
        return f"it stores {value.dtype} in a buffer of {buffer.dtype}"
    if monoid is not None and not known(monoid):
        return f"there is no monoid {monoid!r}"
    return _access_fault(node, 2, axes)


@law(ops.KREDUCE)
def _kreduce(node: Node) -> str | None:
    name, count = node.arg
    if not _is_count(count) or len(node.src) <= count:
        return "its arg is not (monoid, parts of the state), or it has no range"
    if any(bound.op is not ops.RANGE for bound in node.src[count:]):
        return "it reduces over something that is no range"
    return _monoid_fault(node, node.src[:count], name)


@law(ops.CHECK)
def _check(node: Node) -> str | None:
    right = all(source.dtype.kind in "xiu" for source in node.src)
    return None if right else "it checks something that is no integer"


@law(ops.SINK)
def _sink(node: Node) -> str | None:
    stores = [source.op is ops.STORE for source in node.src]
    if not any(stores):
        return None  # the roots of a graph, or of a monoid
    if not all(stores):
        return "a kernel's sink has stores only"
    for store in node.src:
        loose = store.free & ~_bound_by_place(store)
        if loose:
            numbers = [n for n in range(loose.bit_length()) if loose >> n & 1]
            return f"its store depends on ranges {numbers} that its indices do not have"
    return None


def _bound_by_place(store: Node) -> int:
    """The ranges that a store's indices depend on; all, where a monoid combines in memory."""
    if store.arg[1] is not None:
        return store.free
    bound = 0
    for position in store.src[2:]:
        bound |= position.free
    return bound


# ---- index algebra -------------------------------------------------------------------------------
@law(ops.ISUM)
def _isum(node: Node) -> str | None:
    constant, factors = node.arg
    if len(factors) != len(node.src) or not factors or 0 in factors:
        return "it does not have one factor, not 0, for each term"
    if any(atom.op in (ops.ISUM, ops.CONST) for atom in node.src):
        return "a term of it is a sum or a constant"
    if index.add(constant, *map(index.mul, node.src, factors)) is not node:
        return "it is not canonical: build it with index.add"
    return None


@law(ops.IPROD, ops.IFLOOR, ops.IMOD, ops.IMAX, ops.IMIN)
def _index(node: Node) -> str | None:
    if any(source.dtype is not INDEX for source in node.src):
        return "a source is not of dtype index"
    if node.op is ops.IPROD and any(a.op in (ops.ISUM, ops.IPROD, ops.CONST) for a in node.src):
        return "a factor of it is a sum, a product or a constant"
    return None


# ---- programs ------------------------------------------------------------------------------------
@law(ops.DEFINE)
def _define(node: Node) -> str | None:
    name, size, scope = node.arg
    right = isinstance(name, str) and index.is_dim(size) and scope in ("thread", "shared")
    return None if right else "its arg is not (name, size, thread or shared)"


@law(ops.LOOP)
def _loop(node: Node) -> str | None:
    number, step = node.arg
    if not (_is_count(number) and _is_count(step) and step):
        return "its arg is not (number, positive step)"
    right = all(source.dtype is node.dtype for source in node.src) and node.dtype.kind in "xiu"
    return None if right else "its counter, first and stop are not integers of one dtype"


@law(ops.END)
def _end(node: Node) -> str | None:
    right = node.src[0].op in (ops.LOOP, ops.IF)
    return None if right else f"it closes {node.src[0].op.name}, which is no loop and no if"


@law(ops.IF)
def _if(node: Node) -> str | None:
    right = node.src[0].dtype is bool_
    return None if right else f"its condition is {node.src[0].dtype}, not one bool"


@law(ops.SPECIAL)
def _special(node: Node) -> str | None:
    what, axis, size = node.arg
    right = what in ("task", "thread") and _is_count(axis) and index.is_dim(size)
    return None if right else "its arg is not (task or thread, axis, size)"


@law(ops.READ)
def _read(node: Node) -> str | None:
    return _flat_access_fault(node, node.dtype, 2)


@law(ops.WRITE)
def _write(node: Node) -> str | None:
    if len(node.src) < 3:
        return "it has no value"
    return _flat_access_fault(node, node.src[2].dtype, 3)


def _flat_access_fault(node: Node, dtype: DType, count: int) -> str | None:
    """An access of `dtype` at a flat element offset, with a mask after `count` sources."""
    if len(node.src) not in (count, count + 1):
        return f"it has {len(node.src)} sources, not {count} and perhaps a mask"
    buffer, offset = node.src[:2]
    if buffer.op not in (ops.ARG, ops.DEFINE):
        return f"it accesses {buffer.op.name}, which is no buffer"
    if dtype.scalar is not buffer.dtype.scalar and not _holds_several(dtype.scalar, buffer.dtype):
        return f"it accesses a buffer of {buffer.dtype} as {dtype}"
    if offset.dtype.kind not in "xiu" or offset.dtype.lanes != 1:
        return f"its offset is {offset.dtype}, not one integer"
    if len(node.src) > count and node.src[count].dtype is not bool_.vec(dtype.lanes):
        return f"its mask is {node.src[count].dtype}, not {bool_.vec(dtype.lanes)}"
    return None


def _holds_several(dtype: DType, element: DType) -> bool:
    """Whether an access of this type is to the bits of several elements at once."""
    return dtype.kind == "u" and dtype.itemsize in (2 * element.itemsize, 4 * element.itemsize)


@law(ops.SPLAT)
def _splat(node: Node) -> str | None:
    source = node.src[0].dtype
    right = source.lanes == 1 and node.dtype.scalar is source
    return None if right else f"it spreads {source} over {node.dtype}"


@law(ops.PACK)
def _pack(node: Node) -> str | None:
    right = len(node.src) == node.dtype.lanes
    right = right and all(source.dtype is node.dtype.scalar for source in node.src)
    return None if right else f"it packs {len(node.src)} values into {node.dtype}"


@law(ops.LANE)
def _lane(node: Node) -> str | None:
    source = node.src[0].dtype
    right = _is_count(node.arg) and node.arg < source.lanes and node.dtype is source.scalar
    return None if right else f"it takes lane {node.arg} of {source} as {node.dtype}"


@law(ops.FLAG)
def _flag(node: Node) -> str | None:
    return None if node.src[0].dtype.kind == "b" else "its condition is no bool"


@law(ops.INTRINSIC)
def _intrinsic(node: Node) -> str | None:
    if not isinstance(node.arg, tuple) or not node.arg or not isinstance(node.arg[0], str):
        return "its arg does not begin with the name of an intrinsic"
    fault = _INTRINSIC_FAULTS.get(node.arg[0])
    return None if fault is None else fault(node)


def _dot_fault(node: Node) -> str | None:
    lanes = node.dtype.lanes
    return _fault_of_tiles(node, dot_of(node.arg).total, (lanes, lanes, lanes))


def _mma_fault(node: Node) -> str | None:
    matrix = matrix_of(node.arg)
    return _fault_of_tiles(node, matrix.total, matrix.lanes)


def _fault_of_tiles(node: Node, total: DType, lanes: tuple[int, int, int]) -> str | None:
    """A sum of so many lanes, and as many groups of each factor."""
    total = total.vec(lanes[0])
    wanted = (total, GROUP.vec(lanes[1]), GROUP.vec(lanes[2]))
    if node.dtype is total and tuple([s.dtype for s in node.src]) == wanted:
        return None
    return f"it needs sources of {', '.join(map(str, wanted))} and is of {total}"


def _tile_fault(node: Node) -> str | None:
    """A buffer, the offset of a tile's first element, the distance of its rows; a tile to write."""
    writes = node.arg[0] == "tile_write"
    buffer, offset, stride, *tile = node.src
    if buffer.op not in (ops.ARG, ops.DEFINE) or len(tile) != writes:
        return "it needs a buffer, an offset and a stride, and writes one tile or none"
    if any(place.dtype.kind not in "xiu" or place.dtype.lanes != 1 for place in (offset, stride)):
        return f"its offset and stride are {offset.dtype} and {stride.dtype}, not integers"
    rows, columns = node.arg[1:]
    dtype = tile[0].dtype if writes else node.dtype
    if dtype.lanes != rows * columns or dtype.scalar not in (buffer.dtype, GROUP):
        return f"it moves {dtype} as {rows} x {columns} elements of {buffer.dtype}"
    return None


_INTRINSIC_FAULTS = {
    "dot": _dot_fault,
    "mma": _mma_fault,
    "tile_read": _tile_fault,
    "tile_write": _tile_fault,
}
