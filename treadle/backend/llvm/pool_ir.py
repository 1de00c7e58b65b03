"""The native half of the thread pool: the protocol, and the LLVM IR that carries it out.

A *Program* is an array of 64-byte records that one native call runs from the first to the last.
Its kernels come in *phases*: kernels that do not depend on each other. A phase is cut into at
most 32 *chunks*, each a contiguous range of the tasks of all its kernels, and threads claim
chunks. Nobody waits for a thread that is not there: if no other thread comes, the caller runs
every chunk itself.

Who does what
-------------
The *caller* is the thread inside `Pool.run`; it is thread 0. *Workers* are threads 1, 2, ... At
any moment of a program one thread, or none, is the *conductor*: it alone reads the records and
moves the cursor. At the start that is the caller. The conductor runs serial phases itself, one
after the other. When it meets a phase of several chunks it publishes the phase and stops being
the conductor; the thread that finishes the phase's last chunk is the next conductor. So a program
is a chain of conductors, and a phase follows the one before it without a barrier at which all
threads would have to arrive.

The ticket
----------
All claiming goes through one 64-bit word:

    bit 63        the program has finished
    bits 62..32   serial number of the phase
    bits 31..0    one bit a chunk: claimed (bits of chunks that the phase does not have are set)

A thread that sees a clear bit sets it by compare-exchange of the whole word; success means that
it owns that chunk *of that phase*, since a new phase has a new serial number. A chunk that is
owned and not finished keeps its phase from ending, so the description of the phase (first record,
number of tasks, number of chunks) stays what it is until the owner is done: it is read after the
claim. Before the claim a thread reads only the ticket and, as a mere preference, the number of
chunks. The serial number repeats after 2**31 phases: a thread would have to sleep between its
load and its compare-exchange for exactly that many phases, at least 40 seconds of them, to claim
a wrong chunk.

Thread t of T looks for a clear bit from chunk t * chunks / T upwards, and around. When all
threads are there, each works through the same part of each phase, in the caches where its data
already is.

Memory order
------------
- The conductor writes the description and `remaining` = chunks, then stores the ticket; a claim
  is an acquire of the ticket. So an owner sees the description, the slots, and all earlier
  phases.
- A finished chunk subtracts one from `remaining`, acquire and release. The thread that takes it
  to 0 has thereby acquired what all chunks of the phase wrote: it may conduct.
- The end of a program is a store of the ticket with bit 63 (when the conductor is not the
  caller); the caller acquires it. After that store no thread touches the program's memory.

Sleeping
--------
A thread without work watches the ticket for `spin` pauses, then sets its bit in `sleepers`, looks
at the ticket once more, and sleeps. A publisher stores the ticket and then reads `sleepers`. All
four accesses are sequentially consistent, so either the sleeper sees the new ticket or the
publisher sees the sleeper. Only those workers are woken that have a chunk of their own (1 ..
chunks - 1), and nobody is when `sleepers` is 0; a woken thread's bit is cleared by who wakes it.
There are two ways to sleep:

- *futex* (Linux): `futex` on the serial half of the ticket, so that a change of phase between the
  look and the sleep makes the sleep return at once. The waker names the threads by the futex bit
  set.
- *portable*: the worker returns to Python and waits there for a lock, its gate. Native code
  cannot open a gate, so the caller leaves with code WAKE when a phase has chunks left and workers
  that would have one are asleep. A bit cleared by a waker is a promise that the gate opens: a
  worker that finds its bit gone when it wants to take it back waits at the gate all the same. The
  promise is noted in `owed`, since an exception may come between clearing the bit and opening the
  gate; a gate that is opened once too often only makes its worker look at the ticket once more.

A worker that was never started counts as asleep at a gate, in both ways: starting it is waking
it.

Leaving
-------
The caller leaves after `slice` ticks, between records or between chunks, and Python delivers
signals and enters again. If it leaves as the conductor, the program pauses at the cursor;
otherwise workers go on claiming meanwhile. To give a program up, Python sets `abort` and enters
until the program has finished: chunks are still claimed and counted but their kernels are not
run, and the next conductor stops. So nothing is left inside a kernel, and the pool needs no
repair. Once a HOLD record is passed, `abort` has no effect and the caller leaves only to wake:
what follows runs to its end.

A conductor that finds the error flag (the word at slots[0]) set before a phase ends the program
too, unless a HOLD record was passed.
"""

from __future__ import annotations

import platform
from string import Template
from typing import Final

from .pool_claim import CLAIMING, ENTRIES, SLEEPING
from .pool_conduct import CONDUCTOR

# The pool's state: 64-bit words, grouped so that what different threads write at different times
# lies on different pairs of 64-byte cache lines (processors fetch lines in pairs).
WORDS: Final = {
    # every thread, at each claim
    "TICKET": 0,
    # every thread, at the end of each chunk
    "REMAINING": 16,
    # bit t: thread t sleeps, or is about to
    "SLEEPERS": 32,
    # the conductor writes: the current phase and where the program stands
    "PHASE_RECORD": 48,
    "PHASE_TASKS": 49,
    "PHASE_CHUNKS": 50,
    "HELD": 51,
    "CURSOR": 52,
    # written when a program begins; see PROGRAM_WORDS
    "PROGRAM": 64,
    "RECORDS": 65,
    "COUNT": 66,
    "SLOTS": 67,
    # the caller's own
    "ACTIVE": 80,
    "PAUSED": 81,
    "DEADLINE": 82,
    "OWED": 83,  # bit t: the gate of thread t is to be opened
    # seldom written, read by all. GATED, bit t: thread t, when it sleeps, is woken by Python
    "ABORT": 96,
    "QUIT": 97,
    "GATED": 98,
    "THREADS": 99,
    "SPIN": 100,
    "SLICE": 101,
    "FUTEX": 102,  # the number of the system call; 0: sleep the portable way
    "SYSCALL": 103,  # the address of libc's `syscall`
    "REST_SECONDS": 104,  # a timespec: the longest sleep of a caller
    "REST_NANOSECONDS": 105,
}
STATE_WORDS: Final = 112

# What a program hands over: the addresses of its records and slots, the record to begin with, and a
# word that is set to 1 when the cursor has passed the last record, so that its owner knows it from
# one cut short.
PROGRAM_WORDS: Final = {"RECORDS": 0, "COUNT": 1, "SLOTS": 2, "COMPLETED": 3, "START": 4}

# Byte offsets in a record. `pool.RECORD` is the same layout for NumPy. What a loop tests lies where
# a kernel has its function and map.
RECORD_BYTES: Final = {
    "KIND": 0,
    "LENGTH": 4,
    "FUNCTION": 8,
    "MAP": 16,
    "TASKS": 24,
    "COUNTER": 32,
    "TRIPS": 40,
    "TARGET": 48,
    "CHUNKS": 56,
    "TEST": 8,
    "WANTED": 16,
}

KERNEL, LOOP_BEGIN, LOOP_END, HOLD = 0, 1, 2, 3

# What `begin` and `resume` return. Positive: enter again.
FINISHED, MORE, WAKE, REST, BUSY, LOST = 0, 1, 2, 3, -1, -2
# What `worker` returns.
STOP, PARK = 0, 1

# A serial kernel (chunks = 1) is one that is too small for its wake-up. This many of them, side by
# side in one phase, are counted as one chunk.
SERIAL_PER_CHUNK: Final = 8

# The number of the futex system call, where the libc call passes six 64-bit arguments and the
# serial half of the ticket is at byte 4.
FUTEX_NUMBER: Final = {"x86_64": 202, "aarch64": 98, "riscv64": 98}

# By machine: how to tell the processor that we spin, and a clock that ticks at a constant rate and
# costs a few nanoseconds. Intrinsics: inline assembly needs a parser that a JIT may not have.
# `llvm.readsteadycounter` is 0 where LLVM knows of no such clock: there a program is one slice.
_X86 = ("call void @llvm.x86.sse2.pause()", "call i64 @llvm.readcyclecounter()")
_ARM = (
    "call void @llvm.aarch64.isb(i32 15)",
    "call i64 @llvm.read_volatile_register.i64(metadata !0)",
)
_OTHER = ('fence syncscope("singlethread") seq_cst', "call i64 @llvm.readsteadycounter()")
_SPELLING = {"x86_64": _X86, "amd64": _X86, "aarch64": _ARM, "arm64": _ARM}


def pool_text(machine: str = "") -> str:
    """The pool as LLVM IR text for `machine` (as `platform.machine()` names it; "" is this one).

    It declares no symbol of the process, so that its object code can be kept on disk; the address
    of libc's `syscall` is a word of the state. External functions, of the addresses of a state
    and of a program's words:

    - `treadle_pool_begin(state, program) -> i32`: run a program; a code above.
    - `treadle_pool_resume(state) -> i32`: go on with it.
    - `treadle_pool_abort(state) -> i32`: give it up; MORE if there is one to `resume` to its end.
    - `treadle_pool_worker(state, thread) -> i32`: what a worker does; PARK to wait at its gate.
    - `treadle_pool_take(state) -> i64`: the bits of the workers whose gates the caller is to open.
    - `treadle_pool_dismiss(state) -> i64`: no program runs any more; the same for all workers.
    - `treadle_pool_ticks() -> i64`: the clock that slices are measured with.
    """
    pause, ticks = _SPELLING.get((machine or platform.machine()).lower(), _OTHER)
    names: dict[str, object] = dict(WORDS)
    names |= {f"PROGRAM_{name}": word for name, word in PROGRAM_WORDS.items()}
    names |= {f"RECORD_{name}": offset for name, offset in RECORD_BYTES.items()}
    names |= {"KERNEL": KERNEL, "LOOP_BEGIN": LOOP_BEGIN, "LOOP_END": LOOP_END, "HOLD": HOLD}
    names |= {"FINISHED": FINISHED, "MORE": MORE, "WAKE": WAKE, "REST": REST}
    names |= {"BUSY": BUSY, "LOST": LOST, "STOP": STOP, "PARK": PARK}
    names |= {"SERIAL_PER_CHUNK": SERIAL_PER_CHUNK, "ROUND_UP": SERIAL_PER_CHUNK - 1}
    names |= {"PAUSE": pause, "TICKS": ticks}
    return Template(_DECLARATIONS + CONDUCTOR + CLAIMING + SLEEPING + ENTRIES).substitute(names)


_DECLARATIONS = """
declare void @llvm.x86.sse2.pause()
declare void @llvm.aarch64.isb(i32)
declare i64 @llvm.readcyclecounter()
declare i64 @llvm.read_volatile_register.i64(metadata)
declare i64 @llvm.readsteadycounter()
declare i32 @llvm.fshr.i32(i32, i32, i32)
declare i32 @llvm.cttz.i32(i32, i1)
declare i64 @llvm.smin.i64(i64, i64)
declare i64 @llvm.smax.i64(i64, i64)
!0 = !{!"cntvct_el0"}

define i64 @treadle_pool_ticks() {
  %now = $TICKS
  ret i64 %now
}
"""
