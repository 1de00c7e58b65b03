"""How far the approximated functions are from the truth, in units in the last place.

    python tools/ulp.py                      every function, both dtypes, on LLVM
    python tools/ulp.py exp sin --dtype float32 --dense 16 --backend c

One line a function: the largest error seen, where, and how many results were not the nearest
float, over every exponent, both signs, and 2^dense mantissas (23: all float32; float64 takes an
eighth). float32 is compared with float64; float64 with NumPy's longdouble, which must be wider (it
is on x86), and erf of float64 with decimal arithmetic.
"""

from __future__ import annotations

import argparse
import ctypes
import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
from minimax import erf as decimal_erf

from treadle import extras
from treadle.backend.base import Backend, Function
from treadle.ir import ops
from treadle.ir import reference as special
from treadle.ir.dtype import DType, from_name, from_numpy, index, void
from treadle.ir.node import Node

Array = Any

UNARY = ("exp", "exp2", "expm1", "log", "log2", "log1p", "sin", "cos", "tan", "atan", "tanh", "erf")
# Judged by float64 functions that are off by an ulp or two themselves.
SPECIAL = {
    "erfc": math.erfc, "normal_cdf": special.normal_cdf, "erfinv": special.erfinv,
    "lgamma": special.lgamma, "digamma": special.digamma,
}  # fmt: skip
# They cross zero, and are measured for x > 0.
CROSSING = ("lgamma", "digamma")
# Their ulp is that of the value or of 1, whichever is greater.
ABSOLUTE = (*CROSSING, "normal_cdf")
NAMES = (*UNARY, "pow", *SPECIAL)
LANES = 16
NUMPY_NAME = {"atan": "arctan", "pow": "power"}


def kernel(op: ops.Op, dtype: DType, count: int) -> Function:
    """out[i] = op(in0[i], ..) for i in 0 .. count, 16 at a time."""
    arity = op.arity or 0
    args = [Node(ops.ARG, dtype, (), (n, (count,))) for n in range(arity + 1)]
    ends = (Node(ops.CONST, index, (), 0), Node(ops.CONST, index, (), count))
    loop = Node(ops.LOOP, index, ends, (0, LANES))
    reads = [Node(ops.READ, dtype.vec(LANES), (arg, loop)) for arg in args[:arity]]
    value = Node(op, dtype.vec(LANES), tuple(reads))
    write = Node(ops.WRITE, void, (args[arity], loop, value))
    body = (loop, *reads, value, write, Node(ops.END, void, (loop,)))
    return Function(f"{op.name}_{dtype!r}", tuple(args), body)


def runner(backend: Backend, op: ops.Op, dtype: DType, count: int) -> Callable[..., None]:
    """run(*inputs, output): the operation on arrays of `count`, a multiple of 16."""
    function = kernel(op, dtype, count)
    library = backend.load(backend.compile(backend.render([function])))
    address = library.address(function.name)
    native = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)(address)

    def run(*arrays: Array, library: Any = library) -> None:
        flag = np.zeros(1, np.int64)
        slots = np.array([flag.ctypes.data, *(a.ctypes.data for a in arrays), 1], np.int64)
        places = np.arange(1, len(arrays) + 2, dtype=np.int32)
        native(slots.ctypes.data, places.ctypes.data, 0)

    return run


def errors(got: Array, exact: Array, absolute: bool = False) -> Array:
    """The distance in ulps of got's dtype at the exact value (in a wider dtype); where either is
    NaN or the exact value rounds to inf, 0 if they agree and inf if not. absolute: ulps of 1 where
    the value is smaller."""
    info = np.finfo(got.dtype)
    with np.errstate(all="ignore"):
        nearest = exact.astype(got.dtype)
        _, exponent = np.frexp(np.abs(exact))
        least = -info.nmant if absolute else info.minexp - info.nmant
        spacing = np.maximum(exponent - 1 - info.nmant, least)
        distance = np.abs(np.ldexp(got.astype(exact.dtype) - exact, -spacing))
        agree = (got == nearest) | (np.isnan(got) & np.isnan(nearest))
        special = ~np.isfinite(got) | ~np.isfinite(nearest)
    distance = np.where(special, np.where(agree, 0.0, np.inf), distance)
    wrong_zero = (got == 0) & (nearest == 0) & (np.signbit(got) != np.signbit(nearest))
    return np.where(wrong_zero, np.inf, distance)


def fractions(dtype: DType, dense: int, seed: int = 0) -> Array:
    """2^dense values of the stored mantissa, random but for the ends."""
    count = 1 << np.finfo(dtype.storage).nmant
    if 1 << dense >= count:
        return np.arange(count)
    ends = np.array([0, 1, 2, count - 2, count - 1])
    random = np.random.default_rng(seed).integers(0, count, 1 << dense)
    return np.concatenate([ends, random])


def samples(dtype: DType, dense: int, exponents: range | None = None) -> Array:
    """Numbers of these exponents (as stored; all if not given, NaN and inf among them), about
    2^dense of each, with both signs."""
    mantissa = np.finfo(dtype.storage).nmant
    every = range(1 << (dtype.bits - 1 - mantissa))
    unsigned = np.dtype(f"u{dtype.itemsize}")
    high = np.array(every if exponents is None else exponents, unsigned) << unsigned.type(mantissa)
    bits = (high[:, None] + fractions(dtype, dense).astype(unsigned)).ravel()
    values = bits.view(dtype.storage)
    return np.concatenate([values, -values])


def exponents_for(x: Array, seed: int = 0) -> Array:
    """For each x an exponent: mostly such that pow is in range, some whole, some anything."""
    random = np.random.default_rng(seed)
    info = np.finfo(x.dtype)
    with np.errstate(all="ignore"):
        result = random.uniform(info.minexp - info.nmant - 2, info.maxexp + 1, len(x))
        y = (result / np.log2(np.abs(x.astype(np.float64)))).astype(x.dtype)
        y = np.where(random.random(len(x)) < 0.2, np.rint(y), y)
    return np.where(random.random(len(x)) < 0.1, random.permutation(x), y)


def operands(name: str, dtype: DType, dense: int, exponents: range | None = None) -> list[Array]:
    """Samples for each operand of the function."""
    x = samples(dtype, dense, exponents)
    if name in CROSSING:
        x = x[x > 0]
    return [x, exponents_for(x)] if name == "pow" else [x]


def reference(name: str, *values: Array) -> Array:
    """The exact value, in the next wider type. TypeError where NumPy has none wider."""
    wider = np.float64 if values[0].dtype == np.float32 else np.longdouble
    if np.finfo(wider).nmant <= np.finfo(values[0].dtype).nmant:
        raise TypeError(f"NumPy has no float wider than {values[0].dtype} here")
    with np.errstate(all="ignore"):
        wide = [v.astype(wider) for v in values]
        if name in SPECIAL:
            return np.array([SPECIAL[name](v) for v in values[0].tolist()]).astype(wider)
        if name != "erf":
            return getattr(np, NUMPY_NAME.get(name, name))(*wide)
        if wider is np.float64:
            return np.array([math.erf(v) for v in wide[0].tolist()])
        return np.array([exact_erf(v) for v in values[0].tolist()])


def exact_erf(x: float) -> np.longdouble:
    """erf by its series in decimal arithmetic."""
    if not abs(x) < 6:
        return np.longdouble(math.erf(x))
    return np.longdouble(str(decimal_erf(Decimal(x)))) if x else np.longdouble(x)


def measure(backend: Backend, name: str, values: list[Array]) -> tuple[Array, Array]:
    """(results, errors) of an operation on arrays of float32 or float64."""
    op, dtype = ops.TABLE[name], from_numpy(values[0].dtype)
    count = -(-len(values[0]) // LANES) * LANES
    inputs = [np.concatenate([v, np.ones(count - len(v), v.dtype)]) for v in values]
    output = np.empty(count, dtype.storage)
    runner(backend, op, dtype, count)(*inputs, output)
    got = output[: len(values[0])]
    return got, errors(got, reference(name, *values), name in ABSOLUTE)


def report(backend: Backend, name: str, dtype: DType, dense: int) -> str:
    """One line: the largest error of a function, some exponents at a time."""
    worst, seen, rounded, where = -1.0, 0, 0, ""
    every = 1 << (dtype.bits - 1 - np.finfo(dtype.storage).nmant)
    step = max(1, (1 << 22) >> dense)
    for first in range(0, every, step):
        values = operands(name, dtype, dense, range(first, min(every, first + step)))
        if name in ("erf", *SPECIAL) and dtype.bits == 64 and len(values[0]):
            values = [values[0][:: 1 + len(values[0]) // 2000]]  # the reference is slow
        if not len(values[0]):
            continue
        got, distance = measure(backend, name, values)
        seen += len(got)
        rounded += int(np.sum(distance > 0.5))
        i = int(np.argmax(distance))
        if distance[i] > worst:
            worst = float(distance[i])
            where = ", ".join(repr(float(v[i])) for v in values) + f" -> {float(got[i])!r}"
    part = f"{rounded / seen:.2%} of {seen} not nearest"
    return f"{name:5} {dtype!r} {worst:6.3f} ulp at {where}; {part}"


def main() -> None:
    parser = argparse.ArgumentParser(description="errors of the approximated functions, in ulps")
    parser.add_argument("names", nargs="*", default=NAMES)
    parser.add_argument("--dtype", nargs="*", default=["float32", "float64"])
    parser.add_argument("--dense", type=int, default=12, help="log2 of the values per exponent")
    parser.add_argument("--backend", default="llvm")
    given = parser.parse_args()
    backend = extras.load(f"treadle.backend.{given.backend}").BACKEND
    for dtype in map(from_name, given.dtype):
        for name in given.names:
            print(report(backend, name, dtype, given.dense - (dtype.bits == 64) * 3), flush=True)


if __name__ == "__main__":
    main()
