"""The device CPU: LLVM IR as text, compiled by llvmlite, run by a pool of threads of our own."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from treadle import host
from treadle.backend.base import TWO_PRODUCTS, Backend, Target
from treadle.backend.llvm import dots, tiles
from treadle.backend.llvm.compile import Library, compiler
from treadle.backend.llvm.pool import Pool, ProgramBuilder
from treadle.backend.llvm.render import render
from treadle.ir.dtype import TENSOR_DTYPES

__all__ = ["BACKEND", "Runner"]

# feature -> (bytes of a vector register, how many there are); the first that the processor has
VECTORS = {
    "avx512f": (64, 32),
    "avx2": (32, 16),
    "sse2": (16, 16),
    "neon": (16, 32),
    "v": (16, 32),
}


class Runner(Pool):
    """What runs programs: a pool of threads; `builder` lists the records of one."""

    builder = ProgramBuilder


Compile = Callable[[str], bytes]


@cache
def _loader(compile: Compile) -> Callable[[str], Library]:
    def load(text: str) -> Library:
        return compiler().load(compile(text))

    return load


def run(threads: int, portable: bool = False, compile: Compile | None = None) -> Runner:
    """The runner of programs on `threads` threads.

    compile: what makes object code of the pool's own text; `BACKEND.compile`, or a function that
    looks into a cache first (the pool takes as long to compile as several kernels).
    """
    return Runner(threads, portable, compile_ir=_loader(compile or BACKEND.compile))


def present(features: str) -> set[str]:
    """The features that a processor has, from LLVM's list of features."""
    return {word[1:] for word in features.split(",") if word.startswith("+")}


def vector_registers(features: str) -> tuple[int, int]:
    """(bytes, how many) of the vector registers, from LLVM's list of features; (0, 16) for none."""
    return next((VECTORS[name] for name in VECTORS if name in present(features)), (0, 16))


def instructions(features: str) -> frozenset[str]:
    """Which dot and matrix instructions there are, from LLVM's list of features."""
    found = present(features)
    table = {**dots.FEATURES, **tiles.FEATURES}
    return frozenset(
        name for needed, names in table.items() if found.issuperset(needed) for name in names
    )


def _target() -> Target:
    vector_bytes, registers = vector_registers(compiler().features)
    return Target(
        name="CPU",
        kind="cpu",
        arch=compiler().cpu,
        features=compiler().features,
        vector_bytes=vector_bytes,
        registers=registers,
        products=2 if {compiler().cpu, *present(compiler().features)} & TWO_PRODUCTS else 1,
        streams=8 if "amx-tile" in present(compiler().features) else 1,
        cache_bytes=host.cache_bytes(),
        threads=host.threads(),
        dtypes=frozenset(dtype.name for dtype in TENSOR_DTYPES),
        intrinsics=instructions(compiler().features) | {"prefetch", "shuffle"},
    )


BACKEND = Backend(
    name="llvm",
    target=_target(),
    render=render,
    compile=compiler().compile,
    load=compiler().load,
    code_key=compiler().key,
    run=run,
)
