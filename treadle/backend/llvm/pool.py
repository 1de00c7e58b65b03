"""Programs of kernels and the pool of threads that runs them: the Python half.

    builder = ProgramBuilder(slot_count=3)
    builder.kernel(address, [1, 2], tasks=8)
    program = builder.build()
    program.slots[1:3] = x.ctypes.data, y.ctypes.data
    pool = Pool(threads=2)
    pool.run(program)

A kernel is a native function `void k(int64 *slots, int32 *map, int64 task)`. Its parameter p is
`slots[map[p]]`: an address, the bits of a scalar, a variable's value, a loop's step. `slots[0]` is
the address of the error flag, a word that is 0 while all is well; kernels set it by
compare-exchange and the pool stops before the next phase when it is not 0. The caller reads it
after `run`.

How threads share the work, sleep, and are interrupted is written in `pool_ir`.
"""

from __future__ import annotations

import _thread
import ctypes
import functools
import itertools
import os
import platform
import sys
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

import llvmlite.binding as llvm
import numpy as np
import numpy.typing as npt

from .pool_ir import (
    BUSY,
    FINISHED,
    FUTEX_NUMBER,
    HOLD,
    KERNEL,
    LOOP_BEGIN,
    LOOP_END,
    PROGRAM_WORDS,
    RECORD_BYTES,
    REST,
    STATE_WORDS,
    STOP,
    WAKE,
    WORDS,
    pool_text,
)

# A record of a Program, 64 bytes. Which fields count depends on `kind`:
#
# KERNEL      phase_length: how many KERNEL records from here on are one phase (read at its first);
#             fn, map: addresses; ntasks: calls, 0 for none; chunks: into how many chunks the kernel
#             is worth cutting, 1 for none, 0 for as many as there are tasks. A phase is cut into
#             the sum of them, at most 32; `SERIAL_PER_CHUNK` kernels of 1 chunk count as one
# LOOP_BEGIN  counter_slot: the slot that holds the step, 0 .. trips - 1; target: its LOOP_END;
#             test: if not 0, a slot with the address of a byte, which is read before each trip: the
#             loop ends when it is not `wanted`
# LOOP_END    target: its LOOP_BEGIN
# HOLD        from here on the program cannot be given up
#
# `ntasks` and `trips` may be rewritten between runs.
_FIELDS: Final = {
    "kind": ("KIND", np.int32),
    "phase_length": ("LENGTH", np.int32),
    "fn": ("FUNCTION", np.int64),
    "map": ("MAP", np.int64),
    "ntasks": ("TASKS", np.int64),
    "counter_slot": ("COUNTER", np.int64),
    "trips": ("TRIPS", np.int64),
    "target": ("TARGET", np.int64),
    "chunks": ("CHUNKS", np.int32),
    "test": ("TEST", np.int64),
    "wanted": ("WANTED", np.int64),
}
RECORD: Final = np.dtype(
    {
        "names": list(_FIELDS),
        "formats": [kind for _, kind in _FIELDS.values()],
        "offsets": [RECORD_BYTES[name] for name, _ in _FIELDS.values()],
        "itemsize": 64,
    }
)


def _aligned(count: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Zeros that begin at a multiple of 128 bytes."""
    size = count * np.dtype(dtype).itemsize
    memory = np.zeros(size + 128, np.uint8)
    start = -memory.ctypes.data % 128
    return memory[start : start + size].view(dtype)


class NativeProgram:
    """Records, slots and maps in memory, ready to run. `ProgramBuilder.build` makes one.

    records: what runs; `records[i]["ntasks"]` and `["trips"]` may be rewritten between runs.
    slots: the table of int64 that kernels read; slot 0 is the address of `flag` unless rewritten.
    flag: one int64, for the error flag.
    """

    def __init__(
        self,
        records: npt.NDArray[np.void],
        slots: npt.NDArray[np.int64],
        maps: npt.NDArray[np.int32],
    ) -> None:
        self.records = records
        self.slots = slots
        self.flag: npt.NDArray[np.int64] = _aligned(1, np.int64)
        self._maps = maps
        self._words = _aligned(len(PROGRAM_WORDS), np.int64)
        slots[0] = self.flag.ctypes.data
        self._words[PROGRAM_WORDS["RECORDS"]] = records.ctypes.data
        self._words[PROGRAM_WORDS["COUNT"]] = len(records)
        self._words[PROGRAM_WORDS["SLOTS"]] = slots.ctypes.data
        self.address = ctypes.c_void_p(self._words.ctypes.data)

    @property
    def start(self) -> int:
        """The record that a run begins with."""
        return int(self._words[PROGRAM_WORDS["START"]])

    @start.setter
    def start(self, record: int) -> None:
        self._words[PROGRAM_WORDS["START"]] = record

    @property
    def completed(self) -> bool:
        """Whether the last run came to the last record: no error flag, and not given up."""
        return bool(self._words[PROGRAM_WORDS["COMPLETED"]])


class ProgramBuilder:
    """Lists the records of a program. Each method returns the number of the record that it adds.

    slot_count: how many slots the program has, slot 0 (the error flag's address) included.
    """

    def __init__(self, slot_count: int) -> None:
        if slot_count < 1:
            raise ValueError(f"a program has at least slot 0; slot_count is {slot_count}")
        self._slot_count = slot_count
        self._records: list[dict[str, int]] = []
        self._maps: list[int] = []
        self._open_loops: list[int] = []
        self._held = False

    def kernel(self, fn: int, map: Sequence[int], tasks: int, chunks: int = 0) -> int:
        """A phase of one kernel. fn: the address; chunks: see RECORD."""
        return self.phase([(fn, map, tasks, chunks)])

    def phase(self, kernels: Sequence[tuple[int, Sequence[int], int, int]]) -> int:
        """Kernels (fn, map, tasks, chunks) that do not depend on each other, as one phase."""
        first = len(self._records)
        for position, (fn, map, tasks, chunks) in enumerate(kernels):
            if fn == 0 or tasks < 0 or chunks < 0:
                raise ValueError(f"kernel at {fn:#x} with {tasks} tasks in {chunks} chunks")
            for slot in map:
                self._check_slot(slot)
            self._records.append(
                {
                    "kind": KERNEL,
                    "phase_length": len(kernels) - position,
                    "fn": fn,
                    "map": len(self._maps),  # `build` makes it an address
                    "ntasks": tasks,
                    "chunks": chunks,
                }
            )
            self._maps.extend(map)
        return first

    def begin_loop(self, counter_slot: int, trips: int, test: int = 0, wanted: int = 1) -> int:
        """Repeat what follows, up to `end_loop`, for steps 0 .. trips - 1 in `counter_slot`. With a
        slot `test`, end before the first step at which the byte at its address is not `wanted`."""
        self._check_slot(counter_slot)
        self._check_slot(test)
        if counter_slot == 0 or trips < 0:
            raise ValueError(f"a loop of {trips} trips whose step is slot {counter_slot}")
        self._open_loops.append(len(self._records))
        self._records.append(
            {
                "kind": LOOP_BEGIN,
                "counter_slot": counter_slot,
                "trips": trips,
                "test": test,
                "wanted": wanted,
            }
        )
        return self._open_loops[-1]

    def end_loop(self) -> int:
        """End the innermost loop that is open."""
        if not self._open_loops:
            raise ValueError("end_loop without begin_loop")
        begin, end = self._open_loops.pop(), len(self._records)
        self._records[begin]["target"] = end
        self._records.append({"kind": LOOP_END, "target": begin})
        return end

    def hold(self) -> int:
        """From here on the program runs to its end: in-place stores follow, no checked access."""
        if self._open_loops:
            raise ValueError("hold inside a loop: the next trip would follow the in-place stores")
        if self._held:
            raise ValueError("a program holds once")
        self._held = True
        self._records.append({"kind": HOLD})
        return len(self._records) - 1

    def build(self) -> NativeProgram:
        """The program. Its slots are 0 but for slot 0; fill them before running."""
        if self._open_loops:
            raise ValueError(f"{len(self._open_loops)} loops are not ended")
        maps: npt.NDArray[np.int32] = _aligned(max(1, len(self._maps)), np.int32)
        maps[: len(self._maps)] = self._maps
        records = _aligned(len(self._records), RECORD)
        for number, record in enumerate(self._records):
            for name, value in record.items():
                records[number][name] = value
            if record["kind"] == KERNEL:
                records[number]["map"] = maps.ctypes.data + 4 * record["map"]
        return NativeProgram(records, _aligned(self._slot_count, np.int64), maps)

    def _check_slot(self, slot: int) -> None:
        if not 0 <= slot < self._slot_count:
            raise ValueError(f"slot {slot} is not one of the {self._slot_count} slots")


class Compiled(Protocol):
    """Machine code in memory, alive as long as this object."""

    def address(self, name: str) -> int:
        """The address of an external function."""
        ...


class _Plain:
    """What `compile_plain` returns."""

    _number = itertools.count()

    def __init__(self, text: str) -> None:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        module = llvm.parse_assembly(text)
        machine = llvm.Target.from_default_triple().create_target_machine(
            cpu=llvm.get_host_cpu_name(),
            features=llvm.get_host_cpu_features().flatten(),
            opt=1,
            jit=True,
        )
        library = llvm.JITLibraryBuilder().add_ir(text)
        for function in module.functions:
            if not function.is_declaration and function.linkage is llvm.Linkage.external:
                library.export_symbol(function.name)
        self._compiler = llvm.create_lljit_compiler(machine)
        self._code = library.link(self._compiler, f"plain{next(self._number)}")

    def address(self, name: str) -> int:
        return int(self._code[name])


def compile_plain(text: str) -> Compiled:
    """Compile IR text for this machine, without passes and without a cache."""
    return _Plain(text)


class _Native:
    """The compiled pool, and what was measured about its clock. One per process, never freed:
    threads may be inside it until the process ends."""

    def __init__(self, compile_ir: Callable[[str], Compiled]) -> None:
        self.code = compile_ir(pool_text())
        self.begin = self._function("begin", ctypes.c_int32, 2)
        self.resume = self._function("resume", ctypes.c_int32, 1)
        self.abort = self._function("abort", ctypes.c_int32, 1)
        self.take = self._function("take", ctypes.c_int64, 1)
        self.dismiss = self._function("dismiss", ctypes.c_int64, 1)
        self.worker = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_int32)(
            self.code.address("treadle_pool_worker")
        )
        self.ticks_per_second = self._measure_clock()
        self.futex, self.syscall = _find_futex()

    def _function(self, name: str, result: Any, arguments: int) -> Callable[..., int]:
        """A function of addresses. Such a call releases the interpreter's lock."""
        prototype = ctypes.CFUNCTYPE(result, *[ctypes.c_void_p] * arguments)
        function: Callable[..., int] = prototype(self.code.address(f"treadle_pool_{name}"))
        return function

    def _measure_clock(self) -> float:
        """Ticks a second, from a fifth of a millisecond: enough for slices of about 20 ms."""
        ticks = self._function("ticks", ctypes.c_int64, 0)
        start, start_ticks = time.perf_counter_ns(), ticks()
        while time.perf_counter_ns() - start < 200_000:
            pass
        return (ticks() - start_ticks) * 1e9 / (time.perf_counter_ns() - start)


def _find_futex() -> tuple[int, int]:
    """The number of the futex call and the address of libc's `syscall`, or (0, 0)."""
    number = FUTEX_NUMBER.get(platform.machine(), 0)
    if not sys.platform.startswith("linux") or sys.maxsize < 2**32 or number == 0:
        return 0, 0
    try:
        syscall = ctypes.CDLL(None).syscall
    except (OSError, AttributeError):
        return 0, 0
    return number, ctypes.cast(syscall, ctypes.c_void_p).value or 0


def _processors() -> int:
    """How many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@functools.cache
def _native(compile_ir: Callable[[str], Compiled]) -> _Native:
    return _Native(compile_ir)


class _Crew:
    """A pool's state in memory and its workers. A forked child gets a new one: threads do not
    survive a fork, and the state may say that they hold a chunk."""

    def __init__(
        self, native: _Native, threads: int, futex: int, spin: int, seconds: float
    ) -> None:
        self.native = native
        self.state = _aligned(STATE_WORDS, np.int64)
        self.address: int = self.state.ctypes.data
        self.workers = [_Worker(native, self.state, thread) for thread in range(threads)]
        everyone = 2**threads - 2  # a worker that is not started yet sleeps
        words = {
            "TICKET": 2**32 - 1,  # no chunk to claim
            "SLEEPERS": everyone,
            "GATED": everyone,
            "THREADS": threads,
            "SPIN": spin,
            "SLICE": min(int(seconds * native.ticks_per_second) or 2**62, 2**62),
            "FUTEX": futex,
            "SYSCALL": native.syscall,
            "REST_SECONDS": int(seconds),
            "REST_NANOSECONDS": int(seconds % 1 * 1e9),
        }
        for name, value in words.items():
            self.state[WORDS[name]] = value

    def wake(self) -> None:
        """Start, or let through their gates, the workers that have a chunk in the current phase.

        An exception may interrupt this anywhere; what is owed is then done by the next call."""
        owed = self.native.take(self.address)
        for thread in range(1, owed.bit_length()):
            if owed >> thread & 1:
                self._wake(thread)
                self.state[WORDS["OWED"]] &= ~(1 << thread)

    def _wake(self, thread: int) -> None:
        worker = self.workers[thread]
        if worker.started.locked():
            worker.open()
            return
        # Not started, or interrupted before that was known: a second one finds the first and ends.
        # (`threading.Thread.start` does not survive an exception from a signal; this does.)
        try:
            _thread.start_new_thread(worker.work, ())
            worker.asked = True
        except RuntimeError as error:
            # Its bit stays clear: it is never called again, and the others do its work.
            warnings.warn(f"a thread of the pool does not start: {error}", stacklevel=2)

    def dismiss(self) -> None:
        """Let every worker end: those that sleep are woken, and one that finds no work stops."""
        owed = self.native.dismiss(self.address)
        deadline = time.monotonic() + 1.0
        for thread in range(1, owed.bit_length()):
            if owed >> thread & 1:
                self.workers[thread].open()
        for worker in self.workers:
            if worker.asked and worker.identity != threading.get_ident():
                worker.join(timeout=max(0.0, deadline - time.monotonic()))


class _Worker:
    """A thread that is inside the native function or waits at its gate. It keeps `state` alive.

    asked: whether a thread was made for it, which may take a while to start.
    Its locks: `started` is held from its first moment on, `ended` until its last; it takes `gate`
    to sleep.
    """

    def __init__(self, native: _Native, state: npt.NDArray[Any], thread: int) -> None:
        self.started, self.gate, self.ended = threading.Lock(), threading.Lock(), threading.Lock()
        self.gate.acquire()
        self.ended.acquire()
        self.asked = False
        self.identity = 0
        self._enter = native.worker
        self._state = state
        self._thread = thread

    def work(self) -> None:
        """What the thread does."""
        if not self.started.acquire(blocking=False):
            return
        self.identity = threading.get_ident()
        while self._enter(self._state.ctypes.data, self._thread) != STOP:
            self.gate.acquire()
        self.ended.release()

    @property
    def alive(self) -> bool:
        """Whether it has started and not ended."""
        return self.started.locked() and self.ended.locked()

    def join(self, timeout: float) -> None:
        """Wait for its end."""
        if self.ended.acquire(timeout=timeout):
            self.ended.release()

    def open(self) -> None:
        """Let it through its gate. Only the caller does, so a gate that is seen open stays open
        until the worker goes through: either way it looks at the ticket after this."""
        if self.gate.locked():
            self.gate.release()


class Pool:
    """Threads that run programs, one program at a time.

    threads: how many work on a program, the caller included; at most 32, since a phase has 32
        chunks (more are not started; `threads` says how many there are).
    portable: sleep by Python's locks even where the system has a quicker way.
    spin: for how many pauses (each some 10 ns) an idle thread watches before it sleeps.
    slice_seconds: how often Python may deliver signals.
    compile_ir: compiles LLVM IR text.

    Workers are started when a program first has work for them. They are daemon threads; they end
    when the pool is dropped or closed, or the process exits. A forked child has a working pool.
    """

    def __init__(
        self,
        threads: int,
        portable: bool = False,
        spin: int | None = None,
        slice_seconds: float = 0.02,
        compile_ir: Callable[[str], Compiled] = compile_plain,
    ) -> None:
        if threads < 1:
            raise ValueError(f"a pool has at least 1 thread, not {threads}")
        threads = min(threads, 32)
        native = _native(compile_ir)
        if spin is None:
            # More threads than processors: one that spins may keep another from finishing.
            spin = 5000 if threads <= _processors() else 200
        futex = 0 if portable else native.futex
        self.threads = threads
        self.portable = futex == 0
        self._new_crew = functools.partial(_Crew, native, threads, futex, spin, slice_seconds)
        self._begin = native.begin
        self._resume = native.resume
        self._assemble()
        _pools.add(self)

    def run(self, program: NativeProgram) -> None:
        """Run a program to its end; the error flag, if it is set, is for the caller to read.

        One program at a time: the caller holds a lock around this. Any thread may call.

        An exception that Python raises meanwhile (KeyboardInterrupt) gives the program up and
        propagates, after the kernels that have begun are done. `program.completed` says whether the
        program came to its end all the same, which it does once its in-place stores have begun.
        """
        try:
            code = self._begin(self._address, program.address)
            while code > 0:
                code = self._attend(code)
        except BaseException:
            self._give_up()
            raise
        if code < 0:
            if code == BUSY:
                raise RuntimeError("the pool runs a program already")
            raise RuntimeError("the process was forked during this program; its threads are gone")

    def close(self) -> None:
        """End the workers. The pool can be used again and then starts new ones."""
        self._dismiss()
        self._assemble()

    def _attend(self, code: int) -> int:
        """Do what the native code came back for, and enter it again."""
        if code == WAKE:
            self._crew.wake()
        elif code == REST:
            time.sleep(1e-4)  # a worker is at the last chunk of a phase, or conducts
        return self._resume(self._address)

    def _give_up(self) -> None:
        """Abandon the program that runs, if one does; not to be interrupted half-way."""
        code = WAKE if self._crew.native.abort(self._address) else FINISHED
        while code > 0:
            try:
                code = self._attend(code)
            except BaseException:
                continue  # the exception that brought us here is the one to propagate

    def _assemble(self) -> None:
        self._crew = crew = self._new_crew()
        self._address = ctypes.c_void_p(crew.address)
        self._dismiss = weakref.finalize(self, crew.dismiss)

    def _after_fork(self) -> None:
        """In a forked child. A program that ran in the parent is not to be resumed here."""
        self._dismiss.detach()
        self._assemble()


_pools: weakref.WeakSet[Pool] = weakref.WeakSet()


def _after_fork_in_child() -> None:
    for pool in list(_pools):
        pool._after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
