"""Where a measurement runs: what the machine is, and with or without page faults of fresh memory.

By default the C library gives large blocks back to the system at once, so that PyTorch pays for
fresh pages in every call. `main_of` runs a bench twice, as it is and with memory kept, each
in a process of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable

from treadle import host
from treadle.tools.bench.machine import MEMORY_KEPT, load, processor


def threads() -> int:
    """Threads that treadle uses, and that the others get."""
    return host.threads()


def machine() -> str:
    """The processor, how many of it, and how busy they are."""
    return f"{threads()} x {processor()}, load {load():.1f}"


def main_of(file: str, main: Callable[[], None], both: bool = False) -> None:
    """Run `main` with memory kept; `both`: first without, too."""
    if "MALLOC_TRIM_THRESHOLD_" in os.environ or os.environ.get("BENCH") == "as it is":
        main()
        return
    print(machine())
    ways = {"fresh memory is touched first (page faults)": {"BENCH": "as it is"}} if both else {}
    ways["memory is kept (no page faults)"] = MEMORY_KEPT
    for title, variables in ways.items():
        print(f"\n{title}", flush=True)
        call = [sys.executable, file, *sys.argv[1:]]
        subprocess.run(call, env={**os.environ, **variables}, check=True)
