"""How far the approximated functions are from the truth, in units in the last place.

    python tools/ulp.py                      every function, both dtypes, on LLVM
    python tools/ulp.py exp sin --dtype float32 --dense 16 --backend c

One line a function: the largest error seen, where, and how many results were not the nearest
float. float32 is compared with float64, of every exponent and both signs 2^dense values; float64
with NumPy's longdouble, where that is wider (x86), of random values; erf of float64 with decimals.
"""

from __future__ import annotations

import argparse
import ctypes
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from treadle import extras
from treadle.backend.base import Backend, Function
from treadle.ir import ops
from treadle.ir.dtype import BY_NAME, DType, index, void
from treadle.ir.node import Node

Array = Any

UNARY = ("exp", "exp2", "expm1", "log", "log2", "log1p", "sin", "cos", "tan", "atan", "tanh", "erf")
NAMES = (*UNARY, "pow")
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


def errors(got: Array, exact: Array) -> Array:
    """The distance in ulps of got's dtype at the exact value (in a wider dtype); where either is
    NaN or the exact value rounds to inf, 0 if they agree and inf if not."""
    info = np.finfo(got.dtype)
    with np.errstate(all="ignore"):
        nearest = exact.astype(got.dtype)
        _, exponent = np.frexp(np.abs(exact))
        least = info.minexp - info.nmant
        spacing = np.maximum(exponent - 1 - info.nmant, least)
        distance = np.abs(np.ldexp(got.astype(exact.dtype) - exact, -spacing))
        agree = (got == nearest) | (np.isnan(got) & np.isnan(nearest))
        special = ~np.isfinite(got) | ~np.isfinite(nearest)
    distance = np.where(special, np.where(agree, 0.0, np.inf), distance)
    wrong_zero = (got == 0) & (nearest == 0) & (np.signbit(got) != np.signbit(nearest))
    return np.where(wrong_zero, np.inf, distance)


def samples(dtype: DType, dense: int, seed: int = 0) -> Array:
    """Positive and negative numbers of every exponent, 2^dense of each, and the special values."""
    mantissa = np.finfo(dtype.storage).nmant
    unsigned = np.dtype(f"u{dtype.itemsize}").type
    random = np.random.default_rng(seed)
    exponents = np.arange(1 << (dtype.bits - 1 - mantissa), dtype=unsigned) << unsigned(mantissa)
    if dense >= mantissa:
        fractions = np.arange(1 << mantissa, dtype=unsigned)
    else:
        fractions = random.integers(0, 1 << mantissa, 1 << dense, dtype=unsigned)
        fractions[: min(8, len(fractions))] = [0, 1, 2, 3, (1 << mantissa) - 1, 5, 6, 7][: len(fractions)]
    bits = (exponents[:, None] + fractions).ravel()
    values = bits.view(dtype.storage)
    return np.concatenate([values, -values])


def reference(name: str, *values: Array) -> Array:
    """The exact value, in the next wider type."""
    with np.errstate(all="ignore"):
        wide = [v.astype(np.float64 if v.dtype == np.float32 else np.longdouble) for v in values]
        if name == "erf":
            import math

            return np.array([math.erf(v) for v in wide[0].tolist()])
        return getattr(np, NUMPY_NAME.get(name, name))(*wide)


def measure(backend: Backend, name: str, dtype: DType, values: list[Array]) -> tuple[Array, Array]:
    """(results, errors) of an operation."""
    op = ops.TABLE[name]
    count = -(-len(values[0]) // LANES) * LANES
    inputs = [np.concatenate([v, np.ones(count - len(v), v.dtype)]) for v in values]
    output = np.empty(count, dtype.storage)
    runner(backend, op, dtype, count)(*inputs, output)
    got = output[: len(values[0])]
    return got, errors(got, reference(name, *values))


def main() -> None:
    parser = argparse.ArgumentParser(description="ulps of the approximated functions")
    parser.add_argument("names", nargs="*", default=NAMES)
    parser.add_argument("--dtype", default="float32,float64")
    parser.add_argument("--dense", type=int, default=12)
    parser.add_argument("--backend", default="llvm")
    given = parser.parse_args()
    backend = extras.load(f"treadle.backend.{given.backend}").BACKEND
    for dtype in (BY_NAME[name] for name in given.dtype.split(",")):
        dense = given.dense if dtype.bits == 32 else max(2, given.dense - 4)
        for name in given.names:
            x = samples(dtype, dense)
            values = [x]
            if name == "pow":
                random = np.random.default_rng(1)
                y = random.permutation(x)
                # and results within range, which random pairs seldom have
                with np.errstate(all="ignore"):
                    near = random.uniform(-1075, 1025, len(x)) / np.log2(np.abs(x))
                values = [x, y]
            if name == "erf" and dtype.bits == 64:
                values = [x[np.abs(x) < 8][::7]]
            got, distance = measure(backend, name, dtype, values)
            worst = int(np.argmax(distance))
            rounded = np.mean(distance > 0.5)
            at = ", ".join(repr(v[worst]) for v in values)
            print(
                f"{name:6} {dtype!r} {distance[worst]:8.3f} ulp at {at} -> {got[worst]!r}; "
                f"{rounded:.2%} not nearest of {len(x)}",
                flush=True,
            )


if __name__ == "__main__":
    main()
