"""The command `treadle`: each word is a tool with options of its own (`treadle bench --help`)."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from treadle import extras

# word -> (the module whose `main(arguments)` it is, what it does)
COMMANDS: dict[str, tuple[str, str]] = {
    "bench": (
        "treadle.tools.bench.command",
        "measure kernels, models and training steps; compare two runs or two commits",
    ),
    "replay": (
        "treadle.tools.replay.command",
        "compare what two commits make of recorded programs",
    ),
    "repro": (
        "treadle.tools.repro",
        "run a saved program pass by pass, and find the pass that changes what it computes",
    ),
    "tune": (
        "treadle.tools.tune.command",
        "search schedules for the kernels of a script; show and merge what was found",
    ),
}


def usage() -> str:
    """The commands, a line each."""
    width = max(map(len, COMMANDS))
    lines = [f"  {word:<{width}}  {what}" for word, (_, what) in COMMANDS.items()]
    return "\n".join(["usage: treadle COMMAND [option ..]", "", *lines])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit status."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if not words or words[0] in ("-h", "--help"):
        print(usage())
        return 0 if words else 2
    if words[0] not in COMMANDS:
        print(f"treadle: there is no command {words[0]!r}\n{usage()}", file=sys.stderr)
        return 2
    module, _ = COMMANDS[words[0]]
    status: int = extras.load(module).main(words[1:])
    return status


if __name__ == "__main__":
    sys.exit(main())
