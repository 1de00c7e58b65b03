"""Where a measurement runs: what the machine is, and with or without page faults of fresh memory.

By default the C library gives large blocks back to the system at once, so that PyTorch pays for
fresh pages in every call. `main_of` runs a bench twice, as it is and with memory kept, each
in a process of its own.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Callable, Collection, Mapping

from treadle import host
from treadle.tools.bench.machine import MEMORY_KEPT, load, processor


def threads() -> int:
    """Threads that treadle uses, and that the others get."""
    return host.threads()


def machine() -> str:
    """The processor, how many of it, and how busy they are."""
    return f"{threads()} x {processor()}, load {load():.1f}"


def options(
    page: str, cases: Collection[str] = (), flags: Mapping[str, str] | None = None
) -> argparse.Namespace:
    """The command line of a bench: names of cases, and flags (name -> what it does).

    page: the docstring of the bench. The names are in `names`, all of the cases if none is given.
    """
    parser = argparse.ArgumentParser(
        description=page, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    if cases:
        parser.add_argument(
            "names", nargs="*", metavar="case", help=", ".join(cases).replace("%", "%%")
        )
    for flag, what in (flags or {}).items():
        parser.add_argument(flag, action="store_true", help=what.replace("%", "%%"))
    asked = parser.parse_args()
    wrong = [name for name in getattr(asked, "names", ()) if name not in cases]
    if wrong:
        parser.error(f"there is no case {', '.join(wrong)}; there are {', '.join(cases)}")
    asked.names = getattr(asked, "names", ()) or list(cases)
    return asked


def main_of(
    file: str,
    main: Callable[[argparse.Namespace], None],
    asked: argparse.Namespace,
    both: bool = False,
) -> None:
    """Run `main(asked)` with memory kept; `both`: first without, too."""
    if "MALLOC_TRIM_THRESHOLD_" in os.environ or os.environ.get("BENCH") == "as it is":
        main(asked)
        return
    print(machine())
    ways = {"fresh memory is touched first (page faults)": {"BENCH": "as it is"}} if both else {}
    ways["memory is kept (no page faults)"] = MEMORY_KEPT
    for title, variables in ways.items():
        print(f"\n{title}", flush=True)
        call = [sys.executable, file, *sys.argv[1:]]
        subprocess.run(call, env={**os.environ, **variables}, check=True)
