"""Running cases, each in a fresh process: memory that was kept, caches and threads of one case do
not reach the next, and one that crashes or hangs loses nothing else."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import Any

from treadle.tools.bench import folder as folders
from treadle.tools.bench import machine
from treadle.tools.bench.case import Case
from treadle.tools.bench.child import Settings, distance

# How long the import takes is measured, so nothing may be imported before.
START = """
import time
start = time.perf_counter()
import treadle
imported = time.perf_counter() - start
from treadle.tools.bench.child import main
main(imported)
"""
PROCESSES = 5  # of a cold start

Data = dict[str, Any]


@dataclass(frozen=True)
class Place:
    """Where to run: the folder from which treadle is imported, and the seconds that a process may
    take."""

    root: Path = machine.PACKAGE.parent
    timeout: float = 600.0


def child(case: Case, settings: Settings, place: Place, cache: Path) -> Data:
    """What one process saw of a case. RuntimeError with its last words if it failed."""
    asked = json.dumps({"case": case.name, "settings": asdict(settings)})
    variables = {
        **os.environ,
        **machine.MEMORY_KEPT,
        "PYTHONPATH": str(place.root),
        "PYTHONDONTWRITEBYTECODE": "",
        "CACHE_DIR": str(cache),
        "TREADLE_CACHE_DIR": str(cache),
        "TORCHINDUCTOR_CACHE_DIR": str(cache / "inductor"),
        "CACHEDB": str(cache / "tinygrad.db"),
    }
    try:
        status, out, said = told(START, asked, variables, cache, place.timeout)
    except subprocess.TimeoutExpired:
        raise RuntimeError(f"{case.name} took more than {place.timeout:.0f} s") from None
    if status:
        last = said.strip().splitlines()[-1:] or [f"exit status {status}"]
        raise RuntimeError(last[0])
    seen: Data = json.loads(out.splitlines()[-1])
    return seen


def told(
    program: str, asked: str, variables: dict[str, str], folder: Path, timeout: float
) -> tuple[int, str, str]:
    """(exit status, output, errors) of a Python program that reads `asked`. When it ends, whatever
    way, the processes that it has started (compilers, workers) end with it: one that lives on would
    disturb the next case. Output goes to files, for a pipe is at its end only when the last of them
    has closed it. subprocess.TimeoutExpired after `timeout` seconds."""
    with TemporaryFile("w+") as given, TemporaryFile("w+") as out, TemporaryFile("w+") as said:
        given.write(asked)
        given.seek(0)
        process = subprocess.Popen(
            [sys.executable, "-c", program],
            stdin=given, stdout=out, stderr=said, env=variables, cwd=folder,
            start_new_session=True,
        )  # fmt: skip
        try:
            status = process.wait(timeout)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        out.seek(0)
        said.seek(0)
        return status, out.read(), said.read()


def run_case(case: Case, settings: Settings, place: Place | None = None) -> Data:
    """A case as an entry of run.json; if it failed, with the reason as its "error"."""
    place = place or Place()
    entry: Data = {
        "name": case.name,
        "what": case.what,
        "error": "",
        "busy": machine.busy(),
        "operations": case.operations,
        "bytes": case.bytes,
        "target": case.target.ratio,
        "libraries": {},
    }
    with TemporaryDirectory(prefix="treadle-bench-") as cache:
        try:
            if case.cold:
                entry["libraries"] = _cold(case, settings, place, Path(cache))
            else:
                entry["libraries"] = child(case, settings, place, Path(cache))
        except RuntimeError as error:
            entry["error"] = str(error)
    return entry


def _cold(case: Case, settings: Settings, place: Place, cache: Path) -> Data:
    """Fresh processes of each library in turns, with an empty disk cache, then with what the first
    of the two left there. The very first process only makes bytecode, and says what is right. A
    library that fails has an "error", the others go on."""
    own = replace(settings, libraries=("treadle",))
    right = child(case, own, place, _new(cache, "unmeasured"))["treadle"]["sampled"]
    found: dict[str, list[Data]] = {name: [] for name in settings.libraries}
    failed: Data = {}
    for number in range(min(PROCESSES, settings.turns)):
        for name in settings.libraries:
            if name in failed:
                continue
            one = replace(settings, libraries=(name,))
            empty = _new(cache, f"{name}{number}")
            try:
                seen, warm = (child(case, one, place, empty)[name] for _ in range(2))
                for each in (seen, warm):
                    apart = distance(each.pop("sampled"), right)
                    if not apart <= case.tolerance:
                        raise RuntimeError(f"{case.name}: the result of {name} is {apart:.1e} off")
            except RuntimeError as error:
                if name == "treadle":
                    raise
                failed[name] = {"error": str(error)}
                continue
            seen["cold"]["warm_disk_seconds"] = warm["blocks"][0][0]
            found[name].append(seen)
    return {name: failed.get(name) or merged(parts) for name, parts in found.items()}


def _new(cache: Path, name: str) -> Path:
    made = cache / name
    made.mkdir()
    return made


def merged(parts: Sequence[Data]) -> Data:
    """What several processes saw, as if one had: all blocks, and lists of the cold figures."""
    whole = {**parts[0], "blocks": [block for part in parts for block in part.get("blocks", ())]}
    if "cold" in parts[0]:
        whole["cold"] = {name: [part["cold"][name] for part in parts] for name in parts[0]["cold"]}
    return whole


def new(settings: Settings, created: str) -> Data:
    """A run without cases."""
    return {
        "version": folders.VERSION,
        "created": created,
        "machine": machine.describe(),
        "settings": json.loads(json.dumps(asdict(settings))),
        "cases": [],
    }


def begun(folder: Path, settings: Settings) -> Data:
    """The run in a folder, to go on with. ValueError if it is of another commit, machine or way to
    measure: figures of one run have to be of one kind."""
    data = folders.read(folder)
    now = new(settings, data["created"])
    for part in ("settings", "machine"):
        differing = [
            f"{name} was {before!r}, is {now[part].get(name)!r}"
            for name, before in data[part].items()
            if before != now[part].get(name)
        ]
        if differing:
            raise ValueError(
                f"the run in {folder} cannot be gone on with: {', '.join(differing)}; "
                "measure with what it was measured with, or into another folder"
            )
    return data


def lacking(data: Data, cases: Sequence[Case]) -> list[Case]:
    """The cases that a run does not have, or that failed in it."""
    kept = {entry["name"] for entry in data["cases"] if not entry["error"]}
    return [case for case in cases if case.name not in kept]


def run_all(
    data: Data, cases: Sequence[Case], settings: Settings, folder: Path, report: Any
) -> None:
    """Run cases into a run, and write the folder after each, so that an interrupted run keeps what
    it has. report(entry): called with each entry."""
    for case in cases:
        kept = folders.artifacts(folder.resolve(), case.name)
        entry = run_case(case, replace(settings, artifacts=str(kept)))
        data["cases"] = [each for each in data["cases"] if each["name"] != case.name]
        data["cases"].append(entry)
        folders.write(folder, data)
        report(entry)
