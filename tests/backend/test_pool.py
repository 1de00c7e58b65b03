"""The native Program runner: exact results however threads come and go, and a pool that survives.

No time is asserted. `python bench/pool.py` prints what a call, a kernel and a phase cost.
"""

from __future__ import annotations

import _thread
import functools
import os
import random
import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import numpy as np
import pytest

from treadle.backend.llvm import pool as pool_module
from treadle.backend.llvm.pool import (
    RECORD,
    Compiled,
    NativeProgram,
    Pool,
    ProgramBuilder,
    compile_plain,
)
from treadle.backend.llvm.pool_ir import WORDS, pool_text

ROOT = Path(__file__).resolve().parents[2]

# Kernels for the tests. Parameter p is slots[map[p]].
KERNELS = """
; parameters: array, value.  array[task] += value
define void @add(ptr %slots, ptr %map, i64 %task) {
  %array = call ptr @address(ptr %slots, ptr %map, i64 0)
  %value = call i64 @parameter(ptr %slots, ptr %map, i64 1)
  %cell = getelementptr i64, ptr %array, i64 %task
  %old = load i64, ptr %cell
  %new = add i64 %old, %value
  store i64 %new, ptr %cell
  ret void
}

; parameters: out, in, size.  out[task] = 3 * in[(5 * task + 1) % size] + task
define void @mix(ptr %slots, ptr %map, i64 %task) {
  %out = call ptr @address(ptr %slots, ptr %map, i64 0)
  %in = call ptr @address(ptr %slots, ptr %map, i64 1)
  %size = call i64 @parameter(ptr %slots, ptr %map, i64 2)
  %five = mul i64 %task, 5
  %one = add i64 %five, 1
  %index = urem i64 %one, %size
  %from = getelementptr i64, ptr %in, i64 %index
  %value = load i64, ptr %from
  %three = mul i64 %value, 3
  %sum = add i64 %three, %task
  %to = getelementptr i64, ptr %out, i64 %task
  store i64 %sum, ptr %to
  ret void
}

; parameters: log, length, outer, inner.  log[length++] = 100 * outer + inner
define void @note(ptr %slots, ptr %map, i64 %task) {
  %log = call ptr @address(ptr %slots, ptr %map, i64 0)
  %length.at = call ptr @address(ptr %slots, ptr %map, i64 1)
  %outer = call i64 @parameter(ptr %slots, ptr %map, i64 2)
  %inner = call i64 @parameter(ptr %slots, ptr %map, i64 3)
  %length = load i64, ptr %length.at
  %hundred = mul i64 %outer, 100
  %both = add i64 %hundred, %inner
  %cell = getelementptr i64, ptr %log, i64 %length
  store i64 %both, ptr %cell
  %longer = add i64 %length, 1
  store i64 %longer, ptr %length.at
  ret void
}

; parameter: the task that fails.  The flag becomes 7 unless it is set already
define void @fail(ptr %slots, ptr %map, i64 %task) {
  %which = call i64 @parameter(ptr %slots, ptr %map, i64 0)
  %fails = icmp eq i64 %task, %which
  br i1 %fails, label %flag, label %done
flag:
  %flag.at = load ptr, ptr %slots
  %pair = cmpxchg ptr %flag.at, i64 0, i64 7 seq_cst monotonic
  br label %done
done:
  ret void
}

; parameters: array, turns.  Something that takes a while, then array[task] += 1
define void @slow(ptr %slots, ptr %map, i64 %task) {
entry:
  %array = call ptr @address(ptr %slots, ptr %map, i64 0)
  %turns = call i64 @parameter(ptr %slots, ptr %map, i64 1)
  %cell = getelementptr i64, ptr %array, i64 %task
  br label %turn
turn:
  %index = phi i64 [ 0, %entry ], [ %next, %turn ]
  %same = load volatile i64, ptr %cell
  %next = add i64 %index, 1
  %more = icmp slt i64 %next, %turns
  br i1 %more, label %turn, label %done
done:
  %new = add i64 %same, 1
  store i64 %new, ptr %cell
  ret void
}

define internal i64 @parameter(ptr %slots, ptr %map, i64 %number) {
  %slot.at = getelementptr i32, ptr %map, i64 %number
  %slot = load i32, ptr %slot.at
  %value.at = getelementptr i64, ptr %slots, i32 %slot
  %value = load i64, ptr %value.at
  ret i64 %value
}
define internal ptr @address(ptr %slots, ptr %map, i64 %number) {
  %value = call i64 @parameter(ptr %slots, ptr %map, i64 %number)
  %address = inttoptr i64 %value to ptr
  ret ptr %address
}
"""


@functools.cache
def kernels() -> Compiled:
    return compile_plain(KERNELS)


def kernel(name: str) -> int:
    return kernels().address(name)


WAYS = [(1, False), (2, False), (4, False), (2, True), (4, True)]


@pytest.fixture(params=WAYS, ids=lambda way: f"{way[0]}-{'gate' if way[1] else 'default'}")
def pool(request: pytest.FixtureRequest):
    threads, portable = request.param
    pool = Pool(threads, portable=portable)
    yield pool
    close(pool)


def alive(pool: Pool) -> int:
    """How many workers it has."""
    return sum(worker.alive for worker in pool._crew.workers)


def close(pool: Pool) -> None:
    """Close a pool: none of its workers is left."""
    workers = pool._crew.workers
    pool.close()
    assert not any(worker.alive for worker in workers)


def mixing(size: int, chunks: int, trips: int) -> tuple[NativeProgram, np.ndarray, np.ndarray]:
    """Two arrays, each computed from the other in turn: every phase needs all of the one before."""
    builder = ProgramBuilder(slot_count=5)
    builder.begin_loop(4, trips)
    builder.kernel(kernel("mix"), [2, 1, 3], size, chunks)
    builder.kernel(kernel("mix"), [1, 2, 3], size, chunks)
    builder.end_loop()
    program = builder.build()
    left, right = np.arange(size), np.zeros(size, np.int64)
    program.slots[1:4] = left.ctypes.data, right.ctypes.data, size
    return program, left, right


def mixed(size: int, trips: int) -> np.ndarray:
    left = np.arange(size)
    task = np.arange(size)
    for _ in range(2 * trips):
        left = 3 * left[(5 * task + 1) % size] + task
    return left


def adding(size: int, phases: int = 1, chunks: int = 0) -> tuple[NativeProgram, np.ndarray]:
    builder = ProgramBuilder(slot_count=3)
    for _ in range(phases):
        builder.kernel(kernel("add"), [1, 2], size, chunks)
    program = builder.build()
    array = np.zeros(size, np.int64)
    program.slots[1:3] = array.ctypes.data, 1
    return program, array


def check_works(pool: Pool) -> None:
    program, array = adding(64, phases=5)
    for turn in range(1, 4):
        pool.run(program)
        assert program.completed
        assert (array == 5 * turn).all()


def test_layout():
    assert RECORD.itemsize == 64
    assert RECORD.fields["chunks"][1] == 56
    assert WORDS["TICKET"] == 0  # the futex is the second half of the first word


@pytest.mark.parametrize("machine", ["x86_64", "AMD64", "aarch64", "arm64", "riscv64"])
def test_text_depends_on_nothing_but_the_machine(machine):
    assert pool_text(machine) == pool_text(machine)
    assert ("x86.sse2.pause()\n  br" in pool_text(machine)) == (machine in ("x86_64", "AMD64"))


@pytest.mark.parametrize("chunks", [1, 2, 3, 7, 31, 32, 0])
def test_every_phase_sees_the_one_before(pool, chunks):
    size, trips = 97, 300
    program, left, _ = mixing(size, chunks, trips)
    pool.run(program)
    assert program.completed
    assert (left == mixed(size, trips)).all()


def test_many_short_programs(pool):
    generator = random.Random(1)
    for _ in range(200):
        size, trips = generator.randint(1, 80), generator.randint(1, 8)
        program, left, _ = mixing(size, generator.randint(0, 33), trips)
        pool.run(program)
        assert (left == mixed(size, trips)).all()


def test_phases_of_several_kernels(pool):
    generator = random.Random(2)
    for _ in range(100):
        sizes = [generator.choice([0, 0, 1, 2, 5, 40]) for _ in range(generator.randint(1, 50))]
        builder = ProgramBuilder(slot_count=2 + len(sizes))
        builder.begin_loop(1, 5)
        step = [
            (kernel("add"), [2 + number, 1], size, generator.choice([0, 1, 3]))
            for number, size in enumerate(sizes)
        ]
        builder.phase(step)
        builder.end_loop()
        program = builder.build()
        arrays = [np.zeros(max(1, size), np.int64) for size in sizes]
        program.slots[2:] = [array.ctypes.data for array in arrays]
        pool.run(program)
        assert program.completed
        for array, size in zip(arrays, sizes):
            assert (array[:size] == 0 + 1 + 2 + 3 + 4).all()
            assert (array[size:] == 0).all()


def test_sleeping_between_programs():
    """No spinning at all: each phase meets sleepers, and workers go to sleep in each phase."""
    for threads, portable in WAYS:
        pool = Pool(threads, portable=portable, spin=0)
        program, left, _ = mixing(64, 4, 50)
        for turn in range(1, 9):
            pool.run(program)
            assert (left == mixed(64, 50 * turn)).all()
        pool.close()


def test_waiting_for_a_slow_worker():
    """The caller sleeps while others finish, in both ways, and is woken or looks again."""
    for threads, portable in WAYS:
        pool = Pool(threads, portable=portable, spin=20)
        builder = ProgramBuilder(slot_count=3)
        for _ in range(20):
            builder.kernel(kernel("slow"), [1, 2], 3, 3)
            builder.kernel(kernel("slow"), [1, 2], 1, 1)
        program = builder.build()
        array = np.zeros(3, np.int64)
        program.slots[1:3] = array.ctypes.data, 100_000
        pool.run(program)
        assert array.tolist() == [40, 20, 20]
        pool.close()


def test_loops_nest(pool):
    builder = ProgramBuilder(slot_count=5)
    builder.begin_loop(3, 3)
    builder.begin_loop(4, 2)
    builder.kernel(kernel("note"), [1, 2, 3, 4], 1)
    builder.end_loop()
    skipped = builder.begin_loop(4, 0)
    builder.kernel(kernel("note"), [1, 2, 3, 4], 1)
    builder.end_loop()
    builder.end_loop()
    builder.kernel(kernel("note"), [1, 2, 3, 4], 1)
    program = builder.build()
    log, length = np.zeros(50, np.int64), np.zeros(1, np.int64)
    program.slots[1:3] = log.ctypes.data, length.ctypes.data
    pool.run(program)
    # A loop of no trips sets its counter to 0; a counter ends at the number of trips.
    assert log[: length[0]].tolist() == [0, 1, 100, 101, 200, 201, 300]
    length[0] = 0
    program.records[skipped]["trips"] = 1
    pool.run(program)
    assert log[: length[0]].tolist() == [0, 1, 0, 100, 101, 100, 200, 201, 200, 301]


def test_a_loop_that_tests_a_byte(pool):
    """It tests before each trip what kernels have written; a choice is a loop of one trip."""
    builder = ProgramBuilder(slot_count=7)
    builder.begin_loop(3, 1 << 62, test=5)  # while the byte is 1
    builder.kernel(kernel("add"), [1, 2], 64)
    builder.kernel(kernel("add"), [5, 6], 1)
    builder.end_loop()
    builder.begin_loop(3, 1, test=5, wanted=0)
    builder.kernel(kernel("add"), [1, 2], 64)
    builder.end_loop()
    builder.begin_loop(3, 1, test=5)
    builder.kernel(kernel("add"), [1, 2], 1)
    builder.end_loop()
    program = builder.build()
    array, byte = np.zeros(64, np.int64), np.zeros(1, np.int64)
    program.slots[[1, 2, 5]] = array.ctypes.data, 1, byte.ctypes.data
    for first, more, expected in [(0, 0, 1), (1, -1, 2), (1, 1, 1), (3, 1, 0)]:
        array[:], byte[0], program.slots[6] = 0, first, more
        pool.run(program)
        assert program.completed
        assert (array == expected).all()


def test_error_flag_skips_the_rest(pool):
    builder = ProgramBuilder(slot_count=4)
    builder.kernel(kernel("add"), [1, 2], 64)
    builder.kernel(kernel("fail"), [3], 64)
    builder.kernel(kernel("add"), [1, 2], 64)
    builder.hold()
    builder.kernel(kernel("add"), [1, 2], 64)
    program = builder.build()
    array = np.zeros(64, np.int64)
    program.slots[1:4] = array.ctypes.data, 1, 40
    pool.run(program)
    assert program.flag[0] == 7
    assert not program.completed
    assert (array == 1).all()
    pool.run(program)  # the flag was not read: nothing runs
    assert (array == 1).all()
    program.flag[0] = 0
    program.slots[3] = -1
    pool.run(program)
    assert program.completed
    assert (array == 4).all()


def test_nothing_to_do(pool):
    pool.run(ProgramBuilder(slot_count=1).build())
    program, array = adding(8, phases=3)
    program.records["ntasks"] = 0
    pool.run(program)
    assert program.completed
    assert (array == 0).all()
    program.records["ntasks"] = [0, 5, 0]  # a symbolic size may change from run to run
    pool.run(program)
    assert array.tolist() == [1, 1, 1, 1, 1, 0, 0, 0]


def test_from_several_python_threads(pool):
    program, left, _ = mixing(64, 4, 5)
    lock = threading.Lock()

    def work() -> None:
        for _ in range(20):
            with lock:
                pool.run(program)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (left == mixed(64, 5 * 20 * 4)).all()


def test_two_pools_and_close():
    first, second = Pool(2), Pool(2, portable=True)
    for _ in range(3):
        check_works(first)
        check_works(second)
        while alive(first) + alive(second) < 2:  # they may take a while to come
            pass
        close(first)
        close(second)
    check_works(first)
    workers = first._crew.workers
    while not workers[1].alive:
        pass
    del first
    assert not workers[1].alive


def test_workers_start_when_there_is_work_for_them():
    pool = Pool(4)
    serial, _ = adding(64, phases=100, chunks=1)
    pool.run(serial)
    assert alive(pool) == 0
    two, _ = adding(64, chunks=2)
    pool.run(two)
    while not pool._crew.workers[1].alive:  # it may take a while to come
        pass
    assert alive(pool) == 1
    close(pool)


def test_an_exception_while_waking(monkeypatch):
    """A gate that was promised is opened all the same: no worker is left behind it."""
    pool = Pool(4, portable=True, spin=0)
    program, _ = adding(64, phases=30)
    open_gate = pool_module._Worker.open
    for when in ("before", "after"):
        check_works(pool)
        calls: list[int] = []

        def interrupted(worker, when=when, calls=calls):
            calls.append(1)
            if when == "after" or len(calls) != 2:
                open_gate(worker)
            if len(calls) == 2:
                raise KeyboardInterrupt

        with monkeypatch.context() as context:
            context.setattr(pool_module._Worker, "open", interrupted)
            with pytest.raises(KeyboardInterrupt):
                while True:
                    pool.run(program)
        check_works(pool)
        assert pool._crew.state[WORDS["OWED"]] == 0
    close(pool)


def test_a_thread_that_does_not_start(monkeypatch):
    def refuse(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    pool = Pool(4)
    with monkeypatch.context() as context:
        context.setattr(_thread, "start_new_thread", refuse)
        with pytest.warns(UserWarning, match="does not start"):
            check_works(pool)
    check_works(pool)


endless_trips = 2**60


def endless(chunks: int, held: bool = False) -> tuple[NativeProgram, np.ndarray]:
    """A loop that nobody waits for, then three in-place stores."""
    builder = ProgramBuilder(slot_count=5)
    builder.begin_loop(3, endless_trips)
    builder.kernel(kernel("slow"), [1, 4], 32, chunks)
    builder.end_loop()
    if held:
        builder.hold()
    for _ in range(3):
        builder.kernel(kernel("add"), [1, 2], 32, chunks)
    program = builder.build()
    array = np.zeros(32, np.int64)
    program.slots[1:5] = array.ctypes.data, 1_000_000, 0, 1000
    return program, array


@pytest.fixture
def ticking():
    """SIGALRM every 30 ms of waiting, as `KeyboardInterrupt` comes: between two bytecodes."""
    if not hasattr(signal, "setitimer"):
        pytest.skip("no interval timer here")
    handlers: list[object] = []
    old = signal.signal(signal.SIGALRM, lambda *_: handlers[-1]())
    yield handlers
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, old)


def interrupt() -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("chunks", [1, 4, 0])
def test_interrupted(pool, ticking, chunks):
    program, array = endless(chunks)
    ticking.append(interrupt)
    for _ in range(5):
        signal.setitimer(signal.ITIMER_REAL, 0.03)
        with pytest.raises(KeyboardInterrupt):
            pool.run(program)
        assert not program.completed
        done = array.copy()
        assert (done < 1_000_000).all()
        assert (done > 0).any()
        check_works(pool)
        assert (array == done).all()  # nobody is left in a kernel


def test_a_handler_that_does_not_raise(pool, ticking):
    """Signals are seen in passing; the program goes on where it was."""
    program, array = endless(4)
    seen = []

    def handler() -> None:
        seen.append(1)
        with pytest.raises(RuntimeError, match="runs a program already"):
            pool.run(program)
        if len(seen) == 4:
            ticking.append(interrupt)

    ticking.append(handler)
    signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)
    with pytest.raises(KeyboardInterrupt):
        pool.run(program)
    signal.setitimer(signal.ITIMER_REAL, 0)
    assert len(seen) == 4
    assert not program.completed
    assert (array > 0).any()
    check_works(pool)


def test_slices_do_not_change_anything(pool):
    pool_of_slices = Pool(pool.threads, pool.portable, slice_seconds=0.0)
    program, left, _ = mixing(97, 5, 200)
    pool_of_slices.run(program)
    assert (left == mixed(97, 200)).all()
    pool_of_slices.close()


def test_hold_completes(pool, ticking):
    builder = ProgramBuilder(slot_count=5)
    builder.kernel(kernel("add"), [1, 2], 32, 4)
    builder.hold()
    builder.begin_loop(3, 300)
    builder.kernel(kernel("slow"), [1, 4], 32, 4)
    builder.end_loop()
    builder.kernel(kernel("add"), [1, 2], 32, 4)
    program = builder.build()
    array = np.zeros(32, np.int64)
    program.slots[1:5] = array.ctypes.data, 1000, 0, 20_000
    ticking.append(interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.03)
    with pytest.raises(KeyboardInterrupt):
        pool.run(program)
        while True:  # the signal arrives after the program at the latest
            pass
    assert program.completed
    assert (array == 2300).all()
    check_works(pool)


def in_python(text: str) -> subprocess.CompletedProcess[str]:
    """Run `text` in a Python of its own, with this module's names."""
    start = "import sys, os, threading, time, signal, _thread\nfrom test_pool import *\n"
    paths = [str(ROOT), str(Path(__file__).parent)]
    return subprocess.run(
        [sys.executable, "-c", start + textwrap.dedent(text)],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
    )


@pytest.mark.parametrize("portable", [False, True])
def test_control_c(portable):
    result = in_python(
        f"""
        pool = Pool(2, portable={portable})
        program, _ = endless(4)
        timer = threading.Timer(0.1, lambda: os.kill(os.getpid(), signal.SIGINT))
        timer.start()
        try:
            pool.run(program)
        except KeyboardInterrupt:
            print("interrupted")
        check_works(pool)
        threading.Timer(0.1, _thread.interrupt_main).start()
        pool.run(program)
        """
    )
    assert result.stdout == "interrupted\n"
    assert result.stderr.rstrip().endswith("KeyboardInterrupt")
    assert result.returncode != 0


@pytest.mark.parametrize("portable", [False, True])
def test_exit_with_live_workers(portable):
    result = in_python(
        f"""
        pools = [Pool(4, portable={portable}), Pool(2, portable={portable}, spin=10**9)]
        for pool in pools:
            check_works(pool)
        print("done")
        """
    )
    assert (result.returncode, result.stdout, result.stderr) == (0, "done\n", "")


@pytest.mark.parametrize("portable", [False, True])
def test_exit_while_another_thread_runs(portable):
    result = in_python(
        f"""
        pool = Pool(2, portable={portable})
        program, _ = endless(4)
        threading.Thread(target=pool.run, args=[program], daemon=True).start()
        time.sleep(0.1)
        print("done", flush=True)
        """
    )
    assert (result.returncode, result.stdout, result.stderr) == (0, "done\n", "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.parametrize("portable", [False, True])
def test_fork(portable):
    result = in_python(
        f"""
        import warnings
        warnings.simplefilter("ignore", DeprecationWarning)  # fork beside threads: what we test
        pool = Pool(2, portable={portable})
        check_works(pool)
        for _ in range(3):
            child = os.fork()
            if child == 0:
                check_works(pool)
                grandchild = os.fork()
                if grandchild == 0:
                    check_works(pool)
                    sys.exit(3)
                assert os.waitstatus_to_exitcode(os.waitpid(grandchild, 0)[1]) == 3
                sys.exit(4)
            check_works(pool)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 4

        # From another thread, and from a handler, while a program runs
        program, _ = endless(4)
        def fork():
            child = os.fork()
            if child == 0:
                check_works(pool)
                os._exit(5)
            results.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
            _thread.interrupt_main()
        results = []
        thread = threading.Timer(0.1, fork)
        thread.start()
        try:
            pool.run(program)
        except KeyboardInterrupt:
            pass
        thread.join()
        assert results == [5]
        check_works(pool)

        def handler(*_):
            child = os.fork()
            if child == 0:
                return
            results.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
            raise KeyboardInterrupt
        signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        try:
            pool.run(program)
        except KeyboardInterrupt:
            pass
        except RuntimeError as error:
            assert "forked" in str(error)
            check_works(pool)
            os._exit(6)
        assert results == [5, 6]
        check_works(pool)
        """
    )
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def test_builder_refuses():
    builder = ProgramBuilder(slot_count=2)
    with pytest.raises(ValueError, match="slot 2 is not one of the 2 slots"):
        builder.kernel(1, [2], 1)
    with pytest.raises(ValueError, match="end_loop without begin_loop"):
        builder.end_loop()
    builder.begin_loop(1, 2)
    with pytest.raises(ValueError, match="hold inside a loop"):
        builder.hold()
    with pytest.raises(ValueError, match="1 loops are not ended"):
        builder.build()
    with pytest.raises(ValueError, match="at least 1 thread, not 0"):
        Pool(0)


def test_thirty_two_threads():
    pool = Pool(100)
    assert pool.threads == 32
    program, left, _ = mixing(97, 0, 20)
    pool.run(program)
    assert (left == mixed(97, 20)).all()
    pool.close()


def test_automatic_way_to_sleep():
    number, syscall = pool_module._find_futex()
    assert (number == 0) == (syscall == 0)
    assert Pool(2).portable == (number == 0)
    assert Pool(2, portable=True).portable
