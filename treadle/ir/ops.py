"""The op table: one row per operation, and everything the system knows of it.

A row says what the operation is called, how many sources it has, the dtype and the shape of its
result, bounds (for integers of type `index`), what it means as a function of NumPy arrays, its
algebra, and the stages in which it may stand:

    g  graph     tensors: elementwise, movement, reduce, gather, scatter, scan, buffers
    k  kernel    scalars over ranges: load, store, reduce over ranges; no movement
    p  program   an ordered list for one target: loops, loads, stores, the spelled operations

Derivatives (`graph/grad.py`), batching, and spellings (renderers) are tables of their own, keyed by
these rows; `tests/test_laws.py` checks that none is missing.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from treadle.ir import meaning as m
from treadle.ir import reference
from treadle.ir.dtype import bool_ as BOOL
from treadle.ir.node import Node, Shape

Bounds = tuple[int, int]
UNBOUNDED: Bounds = (-(1 << 62), 1 << 62)  # of an index that comes from data


@dataclass(frozen=True, eq=False, repr=False)
class Op:
    """A row. `meaning(node, *arrays)`: the value of `node` given its sources' values.

    shape, free, bounds: what a new node's are (see `Node`); they may read its sources and arg.
    """

    name: str
    arity: int | None  # None: any number of sources
    stages: str  # letters of "gkp"
    kind: str  # alu | leaf | movement | reduce | memory | control | index
    dtype: str = "same"  # same as source 0 | bool | given (the builder decides)
    accepts: str = "biufx"  # dtype kinds of the sources
    flags: frozenset[str] = frozenset()  # commutative associative spelled linear stateful
    shape: Callable[[Node], Shape] | None = None  # None: that of source 0
    free: Callable[[Node], int] | None = None  # None: the ranges of all sources
    bounds: Callable[[Node], Bounds | None] | None = None  # None: unknown, or no index
    meaning: Callable[..., Any] | None = None

    def __repr__(self) -> str:
        return f"ops.{self.name.upper()}"

    def __call__(self, *src: Node, arg: Any = None, dtype: Any = None) -> Node:
        """The node of this op; the dtype follows the row's rule unless given."""
        if dtype is None:
            dtype = src[0].dtype
            if self.dtype == "bool":
                dtype = BOOL if dtype.lanes == 1 else BOOL.vec(dtype.lanes)
        return Node(self, dtype, src, arg)


TABLE: dict[str, Op] = {}


def _row(name: str, arity: int | None, stages: str, kind: str, **rest: Any) -> Op:
    flags = frozenset(rest.pop("flags", "").split())
    TABLE[name] = Op(name, arity, stages, kind, flags=flags, **rest)
    return TABLE[name]


def _alu(name: str, arity: int, accepts: str, function: Callable[..., Any], **rest: Any) -> Op:
    stages = rest.pop("stages", "gkp")
    quiet = m.quiet(function)
    return _row(
        name, arity, stages, "alu", accepts=accepts, meaning=lambda n, *a: quiet(*a), **rest
    )


def _no_shape(node: Node) -> Shape:
    return ()


def _arg_shape(node: Node) -> Shape:
    shape: Shape = node.arg[1]
    return shape


# fmt: off
# ruff: noqa: E501  (a row of the table and its comment stand on one line)
# ---- scalar operations ---------------------------------------------------------------------------
# Those flagged `spelled` are what a backend must say; the rest are decomposed (`decompose.py`).
# name               arity accepts meaning
ADD   = _alu("add",   2, "biufx", np.add,          flags="commutative associative spelled linear")
SUB   = _alu("sub",   2, "iufx",  np.subtract,     flags="spelled linear")
MUL   = _alu("mul",   2, "biufx", np.multiply,     flags="commutative associative spelled")
DIV   = _alu("div",   2, "f",     np.divide,       flags="spelled")
FMA   = _alu("fma",   3, "f",     m.fused_multiply_add, flags="spelled")
NEG   = _alu("neg",   1, "iuf",   np.negative,     flags="spelled linear")
SQRT  = _alu("sqrt",  1, "f",     m.wide(np.sqrt), flags="spelled")
FLOOR = _alu("floor", 1, "f",     np.floor,        flags="spelled")
TRUNC = _alu("trunc", 1, "f",     np.trunc,        flags="spelled")
RINT  = _alu("rint",  1, "f",     np.rint,         flags="spelled")     # halves to even
MAX   = _alu("max",   2, "biufx", m.maximum,       flags="commutative associative spelled")
MIN   = _alu("min",   2, "biufx", m.minimum,       flags="commutative associative spelled")
AND   = _alu("and",   2, "biu",   np.bitwise_and,  flags="commutative associative spelled")
OR    = _alu("or",    2, "biu",   np.bitwise_or,   flags="commutative associative spelled")
XOR   = _alu("xor",   2, "biu",   np.bitwise_xor,  flags="commutative associative spelled")
NOT   = _alu("not",   1, "biu",   np.invert,       flags="spelled")
LT    = _alu("lt",    2, "biufx", np.less,         flags="spelled", dtype="bool")
LE    = _alu("le",    2, "biufx", np.less_equal,   flags="spelled", dtype="bool")
EQ    = _alu("eq",    2, "biufx", np.equal,        flags="commutative spelled", dtype="bool")
NE    = _alu("ne",    2, "biufx", np.not_equal,    flags="commutative spelled", dtype="bool")
# quotient and remainder as C has them, and shifts within the width: only for valid operands
TDIV  = _alu("tdiv",  2, "iux",   m.truncating_divide, flags="spelled", stages="kp")
TMOD  = _alu("tmod",  2, "iux",   m.truncating_modulo, flags="spelled", stages="kp")
SHL   = _alu("shl",   2, "iu",    m.shift_left,    flags="spelled", stages="kp")
SHR   = _alu("shr",   2, "iu",    m.shift_right,   flags="spelled", stages="kp")
# the total forms, with a value for every operand (docs/numerics.md)
IDIV  = _alu("idiv",  2, "iu",    m.floor_divide)
MOD   = _alu("mod",   2, "iu",    m.floor_modulo)
LSHIFT = _alu("lshift", 2, "iu",  m.shift_left)
RSHIFT = _alu("rshift", 2, "iu",  m.shift_right)
CEIL  = _alu("ceil",  1, "f",     np.ceil)
ABS   = _alu("abs",   1, "iuf",   np.abs)
EXP   = _alu("exp",   1, "f",     m.wide(np.exp))
EXP2  = _alu("exp2",  1, "f",     m.wide(np.exp2))
EXPM1 = _alu("expm1", 1, "f",     m.wide(np.expm1))
LOG   = _alu("log",   1, "f",     m.wide(np.log))
LOG2  = _alu("log2",  1, "f",     m.wide(np.log2))
LOG1P = _alu("log1p", 1, "f",     m.wide(np.log1p))
SIN   = _alu("sin",   1, "f",     m.wide(np.sin))
COS   = _alu("cos",   1, "f",     m.wide(np.cos))
TAN   = _alu("tan",   1, "f",     m.wide(np.tan))
ATAN  = _alu("atan",  1, "f",     m.wide(np.arctan))
TANH  = _alu("tanh",  1, "f",     m.wide(np.tanh))
ERF   = _alu("erf",   1, "f",     reference.each(math.erf))
ERFC  = _alu("erfc",  1, "f",     reference.each(math.erfc))
NORMAL_CDF = _alu("normal_cdf", 1, "f", reference.each(reference.normal_cdf))
ERFINV = _alu("erfinv", 1, "f",   reference.each(reference.erfinv))
LGAMMA = _alu("lgamma", 1, "f",   reference.each(reference.lgamma))
DIGAMMA = _alu("digamma", 1, "f", reference.each(reference.digamma))
POW   = _alu("pow",   2, "f",     m.wide(np.power))
THREEFRY = _alu("threefry", 2, "u", m.threefry)                          # uint64 counter, key
# a zero cotangent times anything is zero: where(g == 0, 0, g * d). Linear in g by declaration.
ZMUL  = _alu("zmul",  2, "f",     lambda g, d: np.where(g == 0, np.zeros_like(g), g * d), flags="linear")

WHERE = _row("where", 3, "gkp", "alu", dtype="given", flags="spelled",
             shape=lambda n: n.src[1].shape, meaning=lambda n, c, a, b: np.where(c, a, b))
CAST = _row("cast", 1, "gkp", "alu", dtype="given", flags="spelled",
            bounds=lambda n: UNBOUNDED if n.dtype.kind == "x" else None,
            meaning=lambda n, a: m.quiet(m.cast)(a, n.src[0].dtype, n.dtype))
BITCAST = _row("bitcast", 1, "gkp", "alu", dtype="given", accepts="iuf", flags="spelled",
               meaning=lambda n, a: m.bitcast(a, n.src[0].dtype, n.dtype))

# A complex number is a pair of real ones: every operation is done on the parts, when it is built. What is complex in a
# graph is a leaf, an output of a loop, one of these pairs, or any of them as a whole in CONTIGUOUS, COPY, AGAIN, STOP.
COMPLEX = _row("complex", 2, "g", "alu", dtype="given", accepts="f", flags="linear",
               meaning=lambda n, re, im: m.complex_of(re, im, n.dtype))
REAL = _row("real", 1, "g", "alu", dtype="given", accepts="c", flags="linear", meaning=lambda n, z: z.real)
IMAG = _row("imag", 1, "g", "alu", dtype="given", accepts="c", flags="linear", meaning=lambda n, z: z.imag)

# ---- leaves --------------------------------------------------------------------------------------
CONST = _row("const", 0, "gkp", "leaf", dtype="given", shape=_no_shape, flags="spelled",   # arg: bits
             bounds=lambda n: (n.arg, n.arg) if n.dtype.kind == "x" else None)
VARIABLE = _row("variable", 0, "gkp", "leaf", dtype="given", shape=_no_shape,     # arg: (name, low, high)
                bounds=lambda n: (n.arg[1], n.arg[2]))
SCALAR = _row("scalar", 0, "gkp", "leaf", dtype="given", shape=_no_shape)         # arg: position; a run-time number
BUFFER = _row("buffer", 0, "g", "leaf", dtype="given", shape=_arg_shape)          # arg: (slot, shape, device)
PLACEHOLDER = _row("placeholder", 0, "g", "leaf", dtype="given", shape=_arg_shape)  # arg: (number, shape); of a scan's body, of a monoid
IOTA = _row("iota", 0, "g", "leaf", dtype="given", shape=lambda n: (n.arg,))      # arg: n; 0, 1 .. n-1


# ---- movement: which element of the source stands where -------------------------------------------
def _permuted(node: Node) -> Shape:
    return tuple(node.src[0].shape[axis] for axis in node.arg)


# Sums of symbolic dimensions: the algebra of `index.py`, which needs this table and puts itself here.
dimension_algebra: dict[str, Callable[[Any, Any], Any]] = {}


def _plus(a: Any, b: Any) -> Any:
    return a + b if type(a) is int and type(b) is int else dimension_algebra["add"](a, b)


def _minus(a: Any, b: Any) -> Any:
    return a - b if type(a) is int and type(b) is int else dimension_algebra["sub"](a, b)


def _padded(node: Node) -> Shape:
    pairs = zip(node.src[0].shape, node.arg, strict=True)
    return tuple([_plus(_plus(low, size), high) for size, (low, high) in pairs])


def _windowed(node: Node) -> Shape:
    axis, size = node.arg[0], node.arg[1]
    shape = node.src[0].shape
    return (*shape[:axis], size, *shape[axis + 1 :])


RESHAPE = _row("reshape", 1, "g", "movement", flags="linear", shape=lambda n: n.arg)        # arg: shape
PERMUTE = _row("permute", 1, "g", "movement", flags="linear", shape=_permuted)              # arg: order of axes
EXPAND  = _row("expand",  1, "g", "movement", flags="linear", shape=lambda n: n.arg)        # arg: shape; 1 becomes n
PAD     = _row("pad",     1, "g", "movement", flags="linear", shape=_padded)                # arg: ((low, high), ..) zeros
SHRINK  = _row("shrink",  1, "g", "movement", flags="linear",                               # arg: ((start, stop), ..)
               shape=lambda n: tuple([_minus(stop, start) for start, stop in n.arg]))
FLIP    = _row("flip",    1, "g", "movement", flags="linear")                               # arg: axes
# On the adjacent axes (axis, axis + 1) of sizes (i, k). Each is the adjoint of the other:
#   window    y[i, k] -> out[o, k] = y[o*stride + k*dilation, k]        arg: (axis, size of o, stride, dilation)
#   unwindow  x[o, k] -> out[i, k] = x[(i - k*dilation)/stride, k] or 0  arg: (axis, size of i, stride, dilation)
WINDOW   = _row("window",   1, "g", "movement", flags="linear", shape=_windowed)
UNWINDOW = _row("unwindow", 1, "g", "movement", flags="linear", shape=_windowed)


# ---- reduce, gather, scatter, memory, loops (graph stage) --------------------------------------------
def _reduced(node: Node) -> Shape:
    axes = node.arg[1]
    return tuple(size for axis, size in enumerate(node.src[0].shape) if axis not in axes)


# arg: (monoid, axes). The axes leave the shape. Sources: one per component of the monoid's state.
REDUCE  = _row("reduce",  None, "g", "reduce", dtype="given", shape=_reduced)
# sources (x, index); arg: axis. out[.., i, ..] = x[.., index[.., i, ..], ..]: index has x's shape but along axis
GATHER  = _row("gather",  2, "g", "memory", shape=lambda n: n.src[1].shape)
# sources (base, index, value); arg: (axis, monoid or "set"). base with value combined in at index, in order
SCATTER = _row("scatter", 3, "g", "memory")
# sources (x, value); arg: ((start, step), ..) per axis: x with value in the region value.shape spans
UPDATE  = _row("update",  2, "g", "memory")
CONTIGUOUS = _row("contiguous", 1, "g", "memory", flags="linear")                # stored in memory here
COPY    = _row("copy",    1, "g", "memory", flags="linear")                      # arg: device
STOP    = _row("stop_gradient", 1, "g", "alu", accepts="biufcx", meaning=lambda n, a: a)
# sources (x, after): x, from which a later computation begins once `after` is there. What is made from it is not
# the same node as what was made from x: it is computed again, and not before it is needed
AGAIN   = _row("again",   2, "g", "memory")
# sources (init.., xs.., consts..); arg: (body, carries, xs, length, reverse). body: a SINK over PLACEHOLDERs
# (carries, one step of each xs, consts) of (carries.., ys..). Outputs: final carries, stacked ys
SCAN    = _row("scan",    None, "g", "control", dtype="given", shape=lambda n: _scan_shapes(n))
# sources (inputs..); arg: (body, rule). body: a SINK over PLACEHOLDERs, one per input. Outputs: the body's. The rule
# (a Named, graph/call.py) says how it is differentiated as a whole; before it is scheduled the body takes its place
CALL    = _row("call",    None, "g", "control", dtype="given", shape=lambda n: tuple([s.shape for s in n.arg[0].src]))
# A kernel that the user wrote. arg: (sink, output shapes, rule). sink: its stores over ARGs, outputs first, then the
# sources by position; a source that is a number is a SCALAR of its position. rule: its derivative, a Named
# (graph/custom.py), or only its name
KERNEL  = _row("kernel",  None, "g", "control", dtype="given", shape=lambda n: n.arg[1])
# sources (init.., consts..); arg: (body, carries). body: a SINK over PLACEHOLDERs (carries, consts) of (carries..).
# Runs again and again while carry 0, a bool of shape (), holds. Outputs: final carries
WHILE   = _row("while",   None, "g", "control", dtype="given", shape=lambda n: tuple([s.shape for s in n.arg[0].src]))
# sources (test, operands..); arg: (body if the test, a bool of shape (), holds, body if not). bodies: SINKs over
# PLACEHOLDERs (operands) of (results..). Only one of them runs. Outputs: the test, then the results
COND    = _row("cond",    None, "g", "control", dtype="given", shape=lambda n: ((), *[s.shape for s in n.arg[0].src]))
OUT     = _row("out",     1, "gkp", "control", dtype="given", shape=lambda n: _out_shape(n))  # arg: which output


def _scan_shapes(node: Node) -> Shape:
    body, carries, _, length, _ = node.arg
    steps = [s.shape for s in body.src]
    return (*steps[:carries], *((length, *s) for s in steps[carries:]))


def _out_shape(node: Node) -> Shape:
    source = node.src[0]
    return source.shape[node.arg] if source.op.kind == "control" else source.shape


# ---- kernel stage ------------------------------------------------------------------------------------
# the results, in order. arg of a kernel's: None, or (schedule as text, ranges that vmap added); of a monoid's: its identity
SINK  = _row("sink",  None, "gk", "control", dtype="given", shape=_no_shape)
ARG   = _row("arg",   0, "kp", "leaf", dtype="given", shape=_arg_shape)          # arg: (position, shape): a buffer
RANGE = _row("range", 0, "kp", "index", dtype="given", shape=_no_shape,          # arg: (number, size)
             free=lambda n: 1 << n.arg[0], bounds=lambda n: (0, max(0, _upper(n.arg[1]) - 1)))
# sources (buffer, one index per axis, [guard]); arg: number of axes. A false guard reads nothing and gives 0
LOAD  = _row("load",  None, "kp", "memory", dtype="given", shape=_no_shape)
# sources (buffer, value, one index per axis, [guard]); arg: (number of axes, monoid or None)
STORE = _row("store", None, "kp", "memory", dtype="given", shape=_no_shape)
# sources (state.., ranges..); arg: (monoid: a name, or a node as in monoid.py; number of state components)
KREDUCE = _row("kreduce", None, "k", "reduce", dtype="given", shape=_no_shape, free=lambda n: _kreduce_free(n))
# sources (index, size); arg: which check of the kernel. The index, brought into [0, size); outside sets the flag
CHECK = _row("check", 2, "kp", "index", dtype="given", shape=_no_shape,
             bounds=lambda n: (0, max(0, _upper(n.src[1]) - 1)))


def _kreduce_free(node: Node) -> int:
    count = node.arg[1]
    free, bound = 0, 0
    for s in node.src[:count]:
        free |= s.free
    for r in node.src[count:]:
        bound |= r.free
    return free & ~bound


# ---- index arithmetic, canonical; built only by `index.py` ---------------------------------------------
def _upper(size: Any) -> int:
    return size if isinstance(size, int) else int(size.bounds[1])


def _sum_bounds(node: Node) -> Bounds:
    low = high = node.arg[0]
    for atom, c in zip(node.src, node.arg[1], strict=True):
        a, b = atom.bounds or UNBOUNDED
        low += c * (a if c > 0 else b)
        high += c * (b if c > 0 else a)
    return low, high


def _product_bounds(node: Node) -> Bounds:
    low, high = node.src[0].bounds or UNBOUNDED
    for s in node.src[1:]:
        corners = [x * y for x in (low, high) for y in s.bounds or UNBOUNDED]
        low, high = min(corners), max(corners)
    return low, high


def _operand_bounds(node: Node) -> tuple[Bounds, Bounds]:
    return node.src[0].bounds or UNBOUNDED, node.src[1].bounds or UNBOUNDED


def _div_bounds(node: Node) -> Bounds:
    (a, b), (c, d) = _operand_bounds(node)
    corners = [x // y for x in (a, b) for y in (max(c, 1), max(d, 1))]
    if c < 1:
        corners.append(0)  # the value that a zero divisor gives
    return min(corners), max(corners)


def _mod_bounds(node: Node) -> Bounds:
    (a, b), (_, d) = _operand_bounds(node)
    return 0, max(0, min(d - 1, b) if a >= 0 else d - 1)


def _each(pick: Callable[[int, int], int]) -> Callable[[Node], Bounds]:
    def rule(node: Node) -> Bounds:
        (a, b), (c, d) = _operand_bounds(node)
        return pick(a, c), pick(b, d)
    return rule


# arg: (constant, coefficients): constant + sum of coefficient * source; sources are atoms in digest order
ISUM  = _row("isum",  None, "gk", "index", shape=_no_shape, bounds=_sum_bounds)
IPROD = _row("iprod", None, "gk", "index", shape=_no_shape, bounds=_product_bounds)
IFLOOR = _row("ifloor", 2, "gk", "index", shape=_no_shape, bounds=_div_bounds)    # floor(a / b), b > 0
IMOD  = _row("imod",  2, "gk", "index", shape=_no_shape, bounds=_mod_bounds)      # a - b*floor(a/b), b > 0
IMAX  = _row("imax",  2, "gk", "index", shape=_no_shape, bounds=_each(max))
IMIN  = _row("imin",  2, "gk", "index", shape=_no_shape, bounds=_each(min))

# ---- program stage ---------------------------------------------------------------------------------------
# A program is a list of these in order; a node that stands in it twice is done twice.
DEFINE = _row("define", 0, "p", "memory", dtype="given", shape=_no_shape)   # arg: (name, size, scope): thread | shared memory
LOOP   = _row("loop",   2, "p", "control", dtype="given", shape=_no_shape,  # sources (first, stop); arg: (number, step); its value is the counter
              free=lambda n: n.src[0].free | n.src[1].free)
END    = _row("end",    1, "p", "control", dtype="given", shape=_no_shape)  # sources (the LOOP or IF it closes)
IF     = _row("if",     1, "p", "control", dtype="given", shape=_no_shape)  # sources (condition)
SPECIAL = _row("special", 0, "p", "index", dtype="given", shape=_no_shape)  # arg: ("task" | "thread", axis, size)
# sources (buffer, element offset, [mask]); arg: hint or None. dtype's lanes: that many consecutive elements.
# An unsigned dtype of twice or four times the elements' size: the bits of as many of them, the first lowest
READ   = _row("read",   None, "p", "memory", dtype="given", shape=_no_shape)
# sources (buffer, element offset, value, [mask]); arg: hint ("nontemporal") or None
WRITE  = _row("write",  None, "p", "memory", dtype="given", shape=_no_shape)
SPLAT  = _row("splat",  1, "p", "alu", dtype="given", shape=_no_shape)      # a scalar in every lane
PACK   = _row("pack",   None, "p", "alu", dtype="given", shape=_no_shape)   # scalars to the lanes of a vector
LANE   = _row("lane",   1, "p", "alu", dtype="given", shape=_no_shape)      # arg: which lane, as a scalar
LANES  = _row("lanes",  0, "p", "index", dtype="given", shape=_no_shape)    # 0, 1 .. lanes-1 as a vector
FLAG   = _row("flag",   1, "p", "memory", dtype="given", shape=_no_shape)   # sources (condition); arg: check number; set the error flag where true
INTRINSIC = _row("intrinsic", None, "p", "memory", dtype="given", shape=_no_shape)  # arg: (name, ..); barrier, prefetch, shuffle, dot (dots.py): Target's table
# fmt: on

SPELLED = tuple(op for op in TABLE.values() if "spelled" in op.flags)


def numel(shape: Shape) -> int:
    """Elements of a shape; a symbolic dimension counts with its upper bound."""
    return prod(_upper(size) for size in shape)
