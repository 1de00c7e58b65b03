"""The processes of a search, seen from outside: what they do is bounded in time, and may fail.

Candidates are compiled by several processes at once, which make the neighbours of lists, too. When
all of that is done, one process times the candidates, one after the other, and nothing else runs:
it has the processors to itself, and as many threads as the kernel will have. A process that crashes
or takes too long is replaced, and only the candidate that it was at is lost.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import treadle.engine
from treadle import host
from treadle.engine.search.options import Option

ROOT = Path(treadle.engine.__file__).resolve().parents[2]
START_SECONDS = 60.0  # for a process to be there
COMPILE_SECONDS = 20.0
RUN_SECONDS = 10.0  # at least; more for a kernel whose best list takes long

Answer = dict[str, Any]


def command(device: str) -> list[str]:
    """What a worker is started with."""
    return [sys.executable, "-m", "treadle.engine.search.worker", device]


def with_path(folder: Path) -> dict[str, str]:
    """The environment of this process, with modules of a folder first."""
    path = os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH"))))
    return {**os.environ, "PYTHONPATH": path}


class Worker:
    """One process, started when it is first asked if not before. argv: what it is."""

    def __init__(self, argv: Sequence[str]) -> None:
        self.argv = list(argv)
        self.process: subprocess.Popen[str] | None = None
        self.answers: queue.Queue[str | None] = queue.Queue()
        self.restarts = -1
        self.is_there = False  # the process has said so

    def ask(self, request: Answer, seconds: float) -> Answer:
        """The answer to a request; {"failed": "crash"} or {"failed": "hang"} if there is none in
        this time."""
        self.start()
        assert self.process is not None and self.process.stdin is not None
        try:
            if not self.is_there and self.answers.get(timeout=START_SECONDS) is None:
                raise OSError("it ended before it said that it is there")
            self.is_there = True
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
            line = self.answers.get(timeout=seconds)
        except queue.Empty:
            self.close()
            return {"failed": "hang", "why": f"it took more than {seconds:.0f} s"}
        except OSError:  # a broken pipe
            line = None
        if line is None:
            status = self.process.wait()
            self.close()
            return {"failed": "crash", "why": f"its process ended with status {status}"}
        try:
            answer: Answer = json.loads(line)
        except ValueError:  # it was killed while it answered
            self.close()
            return {"failed": "crash", "why": "its process ended within its answer"}
        return answer

    def start(self) -> None:
        """Starts the process, if there is none, and does not wait until it is there."""
        if self.process is not None:
            return
        self.restarts += 1
        self.is_there = False
        self.process = subprocess.Popen(
            self.argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            encoding="utf-8",
            env={**with_path(ROOT), "DEBUG": "0", "TREADLE_DEBUG": "0"},
        )
        self.answers = queue.Queue()
        threading.Thread(
            target=_listen, args=(self.process.stdout, self.answers), daemon=True
        ).start()

    def close(self) -> None:
        """Ends the process."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            for stream in (self.process.stdin, self.process.stdout):
                with contextlib.suppress(OSError):  # what was not written yet goes nowhere
                    if stream is not None:
                        stream.close()
            self.process = None


def _listen(stream: Any, answers: queue.Queue[str | None]) -> None:
    """Puts every line of a process into a queue, and None at its end."""
    with contextlib.suppress(ValueError):  # it was closed meanwhile
        for line in stream:
            answers.put(line)
    answers.put(None)


class Workers:
    """The processes of a search on a device. argv: what each is started with; limits: seconds for
    compiling and for running a candidate."""

    def __init__(
        self,
        device: str,
        argv: Sequence[str] | None = None,
        compile_seconds: float = COMPILE_SECONDS,
        run_seconds: float = RUN_SECONDS,
    ) -> None:
        argv = command(device) if argv is None else argv
        self.compilers = [Worker(argv) for _ in range(min(8, host.threads()))]
        self.timer = Worker(argv)
        self.compile_seconds = compile_seconds
        self.run_seconds = run_seconds
        self.folder = tempfile.TemporaryDirectory(prefix="treadle-search-")
        self.number = 0
        self.tried = ""  # the kernel that the timing process has inputs for

    def __enter__(self) -> Workers:
        """Starts all processes at once: they come up while the first lists are made."""
        for worker in (*self.compilers, self.timer):
            worker.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def prepare(
        self, kernel: str, lists: Sequence[str], parents: Sequence[str] = ()
    ) -> tuple[list[tuple[str, Answer]], list[list[Option]]]:
        """(file, answer) for each list of actions of a kernel's text, compiled; and the neighbours
        of each of the parents. Several processes share the work. A process that is killed takes a
        candidate with it, which may be why; neighbours are asked for again."""
        files = [str(Path(self.folder.name, str(self.number + n))) for n in range(len(lists))]
        self.number += len(lists)
        requests = [{"do": "grow", "actions": actions} for actions in parents]
        requests += [
            {"do": "compile", "actions": actions, "file": file}
            for actions, file in zip(lists, files, strict=True)
        ]
        free: queue.Queue[Worker] = queue.Queue()
        for worker in self.compilers:
            free.put(worker)

        def one(request: Answer) -> Answer:
            worker = free.get()
            try:
                answer = worker.ask({**request, "kernel": kernel}, self.compile_seconds)
                if answer.get("failed") == "crash" and request["do"] == "grow":
                    return worker.ask({**request, "kernel": kernel}, self.compile_seconds)
                return answer
            finally:
                free.put(worker)

        with ThreadPoolExecutor(len(self.compilers)) as pool:
            answers = list(pool.map(one, requests))
        grown, compiled = answers[: len(parents)], answers[len(parents) :]
        near = [[Option.from_json(o) for o in answer.get("options", ())] for answer in grown]
        return list(zip(files, compiled, strict=True)), near

    def time(
        self, kernel: str, variables: dict[str, int], file: str, best: float, cold: bool = False
    ) -> Answer:
        """The time of a compiled candidate. best: seconds of the best so far (inf: none)."""
        known = best if best < 1e9 else None
        request = {"do": "time", "kernel": kernel, "variables": variables, "file": file}
        limit = max(self.run_seconds, 100 * (known or 0.0))
        if kernel != self.tried:
            self.tried = kernel
            limit += START_SECONDS
        return self.timer.ask({**request, "best": known, "cold": cold}, limit)

    def close(self) -> None:
        """Ends all processes."""
        for worker in (*self.compilers, self.timer):
            worker.close()
        self.folder.cleanup()
