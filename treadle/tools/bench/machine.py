"""What a measurement ran on: the machine, the versions, and who else wanted the processors."""

from __future__ import annotations

import os
import platform
import sys
import time
from pathlib import Path
from typing import Any

from treadle import config, host
from treadle.tools.bench.libraries import installed
from treadle.tools.worktree import git

BUSY = 0.15  # of all processors: from here on a measurement says little
PACKAGE = Path(__file__).resolve().parents[2]

# By default the C library gives large blocks back to the system at once, so that PyTorch pays for
# fresh pages in every call. Both sides run without that.
MEMORY_KEPT = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(1 << 40)}


def describe() -> dict[str, Any]:
    """The machine and the versions that matter."""
    return {
        "processor": processor(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "threads": host.threads(),
        "cache_bytes": list(host.cache_bytes()),
        "memory_bytes": host.memory_bytes(),
        "python": sys.version.split()[0],
        "numpy": installed("numpy"),
        "llvmlite": installed("llvmlite"),
        "treadle": installed("treadle"),
        "commit": commit(PACKAGE),
        "knobs": {name: knob.value for name, knob in config.KNOBS.items()},
        "has_bytecode": not sys.dont_write_bytecode,
    }


def processor() -> str:
    """The name of the processor."""
    information = Path("/proc/cpuinfo")
    if information.exists():
        for line in information.read_text().splitlines():
            if "model name" in line:
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def commit(folder: Path) -> str:
    """The commit of a checkout, with a + if files differ from it; "" outside of one."""
    try:
        found = git(folder, "rev-parse", "HEAD")
        changed = git(folder, "status", "--porcelain", "--untracked-files=no")
    except ValueError:
        return ""
    return f"{found}+" if changed else found


def load() -> float:
    """The processors' load of the last minute, or 0 where the system does not tell."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0


def busy(seconds: float = 0.3) -> float:
    """The part of all processors' time that others use now, between 0 and 1: this process sleeps
    while it looks. 0 where the system does not tell."""
    before = _processor_times()
    time.sleep(seconds)
    after = _processor_times()
    total = sum(after) - sum(before)
    idle = sum(after[3:5]) - sum(before[3:5])  # idle, and waiting for a disk
    return max(0.0, 1 - idle / total) if total else 0.0


def _processor_times() -> tuple[int, ...]:
    """The ticks that all processors spent, by kind: user, nice, system, idle, iowait, .."""
    try:
        with open("/proc/stat", encoding="ascii") as file:
            return tuple(int(word) for word in file.readline().split()[1:9])
    except OSError:
        return ()


def peak_bytes() -> int:
    """The most memory that this process has had at once; 0 where the system does not tell."""
    try:
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0
