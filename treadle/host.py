"""What the machine tells of itself: processors that this process may use, sizes of caches,
memory."""

from __future__ import annotations

import ctypes
import os
import platform
import sys
from pathlib import Path

from treadle import config

ALIGNMENT = 64  # bytes: a cache line and the widest vector
PAGE = 4096  # bytes
LARGE_PAGE = 2 << 20  # bytes of the pages that a system may give to what is large
MOST_THREADS = 32  # a phase of a program is cut into at most so many chunks
_CACHES = {1: 32 << 10, 2: 1 << 20, 3: 32 << 20}  # level -> bytes where the system does not tell
_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_ASK_FOR_TILES = (158, 0x1023, 18)  # arch_prctl(ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA)


def threads() -> int:
    """Threads that run a program: the knob THREADS, or one per processor that this process may use;
    at least 1, at most 32. ValueError if the knob is below 0."""
    chosen = int(config.THREADS)
    if chosen < 0:
        raise ValueError(f"THREADS={chosen}: {config.THREADS.doc}; it is not below 0")
    if not chosen:
        try:
            chosen = len(os.sched_getaffinity(0))
        except AttributeError:  # only Linux has affinities
            chosen = os.cpu_count() or 1
    return max(1, min(MOST_THREADS, chosen))


def cache_bytes(directory: str = "/sys/devices/system/cpu/cpu0/cache") -> tuple[int, int, int]:
    """Bytes of the data caches: L1 and L2 of a core, and L3; usual sizes where Linux is silent."""
    sizes = dict(_CACHES)
    for entry in sorted(Path(directory).glob("index*")):
        try:
            kind, level, size = (
                (entry / name).read_text().strip() for name in ("type", "level", "size")
            )
            if kind != "Instruction" and int(level) in sizes:
                unit = _UNITS.get(size[-1], 1)
                sizes[int(level)] = int(size.rstrip("KMG")) * unit
        except (OSError, ValueError):  # a virtual machine may hide any of these
            continue
    return sizes[1], sizes[2], sizes[3]


def alignment(nbytes: int) -> int:
    """What divides the address of an array of so many bytes: 64, or a page where little is lost.

    A processor compares a load with the stores before it by their places in a page alone. If a
    result begins 64 bytes behind its operand, as blocks of 2^n bytes in a row do, each load waits
    for the store before it: exp of 64 MiB took 33 ms instead of 11. From equal places, loads are
    ahead of the stores that look like them.
    """
    return PAGE if nbytes >= 16 * PAGE else ALIGNMENT


def place(offset: int, nbytes: int) -> int:
    """The first address (or offset from one) that is not below `offset` and where an array of so
    many bytes may begin."""
    return offset + -offset % alignment(nbytes)


def memory_bytes(limit: str = "/sys/fs/cgroup/memory.max") -> int:
    """Bytes of memory that this process may use: the machine's, or a container's if that is less; 0
    where the system does not tell. limit: the file in which Linux says what a container may."""
    try:
        found = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # not on every system
        return 0
    try:
        return min(found, int(Path(limit).read_text()))
    except (OSError, ValueError):  # no container, or "max"
        return found


def ask_for_tiles() -> bool:
    """Asks Linux to let this process use the tile registers of x86 (AMX): whether it may. They make
    the state of a thread 8 kB larger, so nobody has them who has not asked. Threads inherit it."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return False
    return bool(ctypes.CDLL(None).syscall(*_ASK_FOR_TILES) == 0)
