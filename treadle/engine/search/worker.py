"""The process that compiles candidates and makes their neighbours, or runs and times them. It may
crash, hang or be killed.

A first line {} says that it is there. Requests come as JSON, a line each, on the standard input,
and are answered likewise:

    {"do": "compile", "kernel": text, "actions": text, "file": path}      -> {"lines": n}
    {"do": "grow", "kernel": text, "actions": text}                       -> {"options": [..]}
    {"do": "time", "kernel": text, "variables": {}, "file": path, "best": seconds, "cold": false}
                                       -> {"seconds": s, "check": words, "cold_seconds": if asked}

A failure is answered by {"failed": kind, "why": words}. The file of a candidate has what launches
it in its first line, and its code after that.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Callable
from math import inf
from pathlib import Path
from typing import IO, Any

from treadle import config
from treadle.backend.base import Backend
from treadle.engine import device as devices
from treadle.engine.compile import Compiled, Compiler, from_json, launch_of, to_json
from treadle.engine.search.options import options
from treadle.engine.search.sample import Unknown
from treadle.engine.search.trial import Trial, Wrong
from treadle.ir import text
from treadle.kernel import pipeline
from treadle.kernel.build import build
from treadle.kernel.kernel import Kernel, ScheduleError

MOST_CODE = 60_000  # lines that are given to the compiler


class Desk:
    """What a worker knows: its device, the kernel that it grew lists for, the trial that it did
    last."""

    def __init__(self, device: str) -> None:
        self.device = device
        self.backend: Backend = devices.backend(device)
        self.plugin = devices.PLUGINS[device]
        self.built: tuple[str, Kernel] | None = None
        self.last: tuple[str, Trial] | None = None

    # ---- requests --------------------------------------------------------------------------------
    def compile(self, request: dict[str, Any]) -> dict[str, Any]:
        """Compiles a candidate into a file."""
        kernel = text.parse(request["kernel"])
        lowered = pipeline.lower(kernel, self.backend.target, "candidate", request["actions"])
        source = self.backend.render(lowered.functions)
        lines = source.count("\n")
        if lines > MOST_CODE:
            return {"failed": "large", "why": f"{lines:,} lines of code"}
        code = self.backend.compile(source)
        pairs = zip(lowered.functions, lowered.chunks, strict=True)
        compiled = Compiled(tuple(launch_of(f, chunks) for f, chunks in pairs), lowered.scratch)
        Path(request["file"]).write_bytes(to_json("", compiled) + b"\n" + code)
        return {"lines": lines}

    def grow(self, request: dict[str, Any]) -> dict[str, Any]:
        """The lists one step away from a list, with what they would cost."""
        if self.built is None or self.built[0] != request["kernel"]:
            kernel = text.parse(request["kernel"])
            self.built = request["kernel"], build(kernel, self.backend.target)
        near = options(self.built[1], request["actions"])
        return {"options": [option.to_json() for option in near]}

    def time(self, request: dict[str, Any]) -> dict[str, Any]:
        """Runs a candidate, checks it, and times it."""
        trial = self._trial(request)
        entry, _, code = Path(request["file"]).read_bytes().partition(b"\n")
        library = self.backend.load(code)
        compiled = Compiler(self.backend, self.plugin).link(from_json(entry)[1], library)
        program = trial.program(compiled, self.plugin)
        check, first = trial.check(program)
        seconds = trial.seconds(program, first, request.get("best") or inf)
        found = {"seconds": seconds, "check": check}
        if request.get("cold"):
            found["cold_seconds"] = trial.cold_seconds(program)
        return found

    def _trial(self, request: dict[str, Any]) -> Trial:
        key = json.dumps([request["kernel"], request["variables"]])
        if self.last is None or self.last[0] != key:
            self.last = None  # its memory goes first
            kernel = text.parse(request["kernel"])
            runner = devices.runner(self.device)
            trial = Trial(kernel, self.backend, runner, request["variables"])
            self.last = key, trial
        return self.last[1]


def answer(desk: Desk, request: dict[str, Any]) -> dict[str, Any]:
    """What a request is answered with, whatever goes wrong."""
    work: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
        "compile": desk.compile,
        "grow": desk.grow,
        "time": desk.time,
    }
    try:
        return work[request["do"]](request)
    except ScheduleError as error:
        return {"failed": "illegal", "why": str(error)}
    except Wrong as error:
        return {"failed": "wrong", "why": str(error)}
    except Unknown as error:
        return {"failed": "unknown", "why": str(error)}
    except MemoryError as error:
        return {"failed": "memory", "why": str(error) or "no memory"}
    except (
        Exception
    ) as error:  # a candidate may find any fault there is; it must not end the search
        return {"failed": "error", "why": f"{type(error).__name__}: {error}"}


def serve(desk: Desk, requests: IO[str], answers: IO[str]) -> None:
    """Says that it is there, then answers requests until there are none."""
    answers.write("{}\n")
    answers.flush()
    for line in requests:
        answers.write(json.dumps(answer(desk, json.loads(line))) + "\n")
        answers.flush()


def volunteer() -> None:
    """If memory runs out, this process is the one to be killed."""
    with contextlib.suppress(OSError):  # only Linux has it
        Path("/proc/self/oom_score_adj").write_text("1000")


def main(device: str, make: Callable[[str], Desk] = Desk) -> None:
    """Serves the standard streams; what is printed meanwhile goes to the standard error."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    volunteer()
    with config.BEAM.set(0), config.TUNED.set(""):
        serve(make(device), sys.stdin, answers)


if __name__ == "__main__":
    main(sys.argv[1])
