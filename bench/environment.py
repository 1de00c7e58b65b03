"""Where a measurement runs: what the machine is, and with or without page faults of fresh memory.

By default the C library gives large blocks back to the system at once, so that PyTorch pays for
fresh pages in every call. `main_of` runs a bench twice, as it is and with memory kept (KEPT), each
in a process of its own.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

KEPT = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(1 << 40)}


def threads() -> int:
    """Processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def machine() -> str:
    """The processor, how many of it, and how busy they are."""
    model = platform.processor() or platform.machine()
    information = Path("/proc/cpuinfo")
    if information.exists():
        lines = information.read_text().splitlines()
        model = next((n.partition(":")[2].strip() for n in lines if "model name" in n), model)
    load = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    return f"{threads()} x {model}{load}"


def main_of(file: str, main: Callable[[], None], both: bool = False) -> None:
    """Run `main` with memory kept; `both`: first without, too."""
    if "MALLOC_TRIM_THRESHOLD_" in os.environ or os.environ.get("BENCH") == "as it is":
        main()
        return
    print(machine())
    ways = {"fresh memory is touched first (page faults)": {"BENCH": "as it is"}} if both else {}
    ways["memory is kept (no page faults)"] = KEPT
    for title, variables in ways.items():
        print(f"\n{title}", flush=True)
        call = [sys.executable, file, *sys.argv[1:]]
        subprocess.run(call, env={**os.environ, **variables}, check=True)
