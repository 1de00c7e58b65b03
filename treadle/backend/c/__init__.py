"""The device C: functions as GNU C, compiled by the system's compiler."""

from __future__ import annotations

from treadle import host
from treadle.backend.base import Backend, Target
from treadle.backend.c.compile import Library, compiler
from treadle.backend.c.render import render
from treadle.ir.dtype import TENSOR_DTYPES

__all__ = ["BACKEND"]

# macro -> (bytes of a vector register, how many there are); the first that the compiler defines
VECTORS = {
    "__AVX512F__": (64, 32),
    "__AVX2__": (32, 16),
    "__SSE2__": (16, 16),
    "__ARM_NEON": (16, 32),
}


def vector_registers(macros: dict[str, str]) -> tuple[int, int]:
    """(bytes, how many) of the vector registers, from the compiler's macros; (0, 16) for none."""
    return next((VECTORS[name] for name in VECTORS if name in macros), (0, 16))


def _target() -> Target:
    vector_bytes, registers = vector_registers(compiler().macros)
    return Target(
        name="C",
        kind="cpu",
        vector_bytes=vector_bytes,
        registers=registers,
        cache_bytes=host.cache_bytes(),
        threads=host.threads(),
        dtypes=frozenset(dtype.name for dtype in TENSOR_DTYPES),
        intrinsics=frozenset({"prefetch", "shuffle"}),
    )


def run(threads: int, portable: bool = False) -> object:
    raise NotImplementedError


BACKEND = Backend(
    name="c",
    target=_target(),
    render=render,
    compile=compiler().compile,
    load=Library,
    code_key=compiler().key,
    run=run,
)
