"""What the native Program runner costs: medians in microseconds, mostly of kernels that do nothing.

Run it as `python bench/pool.py`.
"""

from __future__ import annotations

import ctypes
import itertools
import statistics
import time
from collections.abc import Callable

import numpy as np
from environment import options

from treadle.backend.llvm.pool import NativeProgram, Pool, ProgramBuilder, compile_plain
from treadle.backend.llvm.pool_ir import pool_text

KERNELS = """
define void @nothing(ptr %slots, ptr %map, i64 %task) {
  ret void
}
define i32 @bare(ptr %state, ptr %program) {
  ret i32 0
}
; slots[1][65536 * task ...] += 1, for 65,536 floats
define void @increase(ptr %slots, ptr %map, i64 %task) {
entry:
  %at = getelementptr i64, ptr %slots, i64 1
  %array = load ptr, ptr %at
  %first = mul i64 %task, 65536
  br label %loop
loop:
  %index = phi i64 [ 0, %entry ], [ %next, %loop ]
  %number = add i64 %first, %index
  %cell = getelementptr float, ptr %array, i64 %number
  %old = load <16 x float>, ptr %cell, align 4
  %new = fadd <16 x float> %old, splat (float 1.0)
  store <16 x float> %new, ptr %cell, align 4
  %next = add i64 %index, 16
  %more = icmp slt i64 %next, 65536
  br i1 %more, label %loop, label %done
done:
  ret void
}
"""


def median(
    call: Callable[[], object], repeat: int = 50, inner: int = 1, pause: float = 0.0
) -> float:
    """Microseconds of one call."""
    times = []
    for _ in range(repeat):
        time.sleep(pause)
        start = time.perf_counter_ns()
        for _ in itertools.repeat(None, inner):
            call()
        times.append((time.perf_counter_ns() - start) / inner / 1e3)
    return statistics.median(times)


def program(kernel: int, phases: int, tasks: int, chunks: int) -> NativeProgram:
    builder = ProgramBuilder(slot_count=2)
    for _ in range(phases):
        builder.kernel(kernel, [1], tasks, chunks)
    return builder.build()


def main() -> None:
    start = time.perf_counter()
    compile_plain(pool_text())
    print(f"{'compile the pool':58}{(time.perf_counter() - start) * 1e6:12.0f}")
    code = compile_plain(KERNELS)
    nothing, increase = code.address("nothing"), code.address("increase")

    prototype = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p)
    bare, one = prototype(code.address("bare")), program(nothing, 1, 1, 1)
    call = median(lambda: bare(one.address, one.address), inner=2000)
    print(f"{'a bare ctypes call of two addresses':58}{call:12.3f}")
    for threads, portable in ((1, False), (2, False), (2, True), (4, False)):
        pool = Pool(threads, portable=portable)
        way = "gates" if pool.portable else "futex"

        def show(what: str, value: float, head: str = f"{threads} threads, {way}: ") -> None:
            print(f"{head + what:58}{value:12.3f}")

        def run(what: NativeProgram, pool: Pool = pool, **how: float) -> float:
            return median(lambda: pool.run(what), **how)  # type: ignore[arg-type]

        serial = program(nothing, 1000, 1, 1)
        show("a program of one kernel, above the bare call", run(one, inner=2000) - call)
        show("one serial kernel, of 1000", run(serial) / 1000)
        for chunks in (2, 4, 32):
            phases = program(nothing, 1000, chunks, chunks)
            show(f"one phase of {chunks} chunks, of 1000", run(phases) / 1000)
        show("10 phases of 2 chunks after 2 ms", run(program(nothing, 10, 2, 2), pause=0.002))
        axpy = program(increase, 100, 8, 8)
        memory = np.zeros(8 * 65536, np.float32)
        axpy.slots[1] = memory.ctypes.data
        show("one x += 1 over 2 MiB in 8 chunks, of 100", run(axpy) / 100)
        pool.close()


if __name__ == "__main__":
    options(__doc__)
    main()
