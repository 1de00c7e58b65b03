"""The device C: functions as GNU C, compiled by the system's compiler."""

from __future__ import annotations

import ctypes
import os
from concurrent.futures import ThreadPoolExecutor, wait
from functools import cache
from typing import Any

from treadle import host
from treadle.backend.base import TWO_PRODUCTS, Backend, Target
from treadle.backend.c.compile import Library, compiler
from treadle.backend.c.render import render
from treadle.backend.records import Program, Record, Runner
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
    words = {name.strip("_").lower().replace("_", "-") for name in compiler().macros}
    return Target(
        name="C",
        kind="cpu",
        vector_bytes=vector_bytes,
        registers=registers,
        products=2 if words & TWO_PRODUCTS else 1,
        cache_bytes=host.cache_bytes(),
        threads=host.threads(),
        dtypes=frozenset(dtype.name for dtype in TENSOR_DTYPES),
        intrinsics=frozenset({"prefetch", "shuffle"}),
    )


@cache
def _kernel(address: int) -> Any:
    """A native function, to be called with the addresses of slots and map and a task. Such a call
    releases the interpreter's lock."""
    word = ctypes.c_void_p
    return ctypes.CFUNCTYPE(None, word, word, ctypes.c_int64)(address)


@cache
def _workers(threads: int, process: int) -> ThreadPoolExecutor:
    """Threads of this process (a forked child makes its own)."""
    return ThreadPoolExecutor(threads, thread_name_prefix="treadle-c")


def run(threads: int, portable: bool = False, compile: object = None) -> Runner:
    """The runner of programs. A kernel's tasks are shared out among threads in equal pieces.

    It sleeps portably in any case, and has no code to compile.
    """

    def launch(program: Program, record: Record) -> None:
        kernel = _kernel(int(record["fn"]))
        slots, map_ = program.slots.ctypes.data, record["map"].ctypes.data
        tasks = int(record["ntasks"])
        pieces = min(threads, tasks, record["chunks"] or tasks)

        def work(piece: int) -> None:
            for task in range(tasks * piece // pieces, tasks * (piece + 1) // pieces):
                kernel(slots, map_, task)

        if pieces == 1:
            work(0)
        elif pieces > 1:
            workers = _workers(threads, os.getpid())
            futures = [workers.submit(work, piece) for piece in range(pieces)]
            try:
                for future in futures:
                    future.result()
            finally:
                wait(futures)  # whatever comes, nobody writes to a buffer after this

    return Runner(launch)


BACKEND = Backend(
    name="c",
    target=_target(),
    render=render,
    compile=compiler().compile,
    load=Library,
    code_key=compiler().key,
    run=run,
)
