"""Running cases, each in a fresh process: memory that was kept, caches and threads of one case do
not reach the next, and one that crashes or hangs loses nothing else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from treadle.tools.bench import folder as folders
from treadle.tools.bench import machine
from treadle.tools.bench.case import Case
from treadle.tools.bench.child import Settings

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
        found = subprocess.run(
            [sys.executable, "-c", START],
            input=asked, env=variables, cwd=cache, timeout=place.timeout,
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise RuntimeError(f"{case.name} took more than {place.timeout:.0f} s") from None
    if found.returncode:
        last = found.stderr.strip().splitlines()[-1:] or [f"exit status {found.returncode}"]
        raise RuntimeError(last[0])
    seen: Data = json.loads(found.stdout.splitlines()[-1])
    return seen


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
        "target": case.target,
        "libraries": {},
    }
    with tempfile.TemporaryDirectory(prefix="treadle-bench-") as cache:
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
    of the two left there. The very first process only makes bytecode."""
    own = replace(settings, libraries=("treadle",))
    child(case, own, place, _new(cache, "unmeasured"))
    found: Data = {}
    for number in range(min(PROCESSES, settings.turns)):
        for name in settings.libraries:
            one = replace(settings, libraries=(name,))
            empty = _new(cache, f"{name}{number}")
            seen = child(case, one, place, empty)[name]
            warm = child(case, one, place, empty)[name]
            seen["cold"]["warm_disk_seconds"] = warm["blocks"][0][0]
            found.setdefault(name, []).append(seen)
    return {name: merged(parts) for name, parts in found.items()}


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


def run_all(
    cases: Sequence[Case], settings: Settings, folder: Path, created: str, report: Any
) -> Data:
    """Run cases, and write the folder after each, so that an interrupted run keeps what it has.
    report(entry): called with each entry."""
    data: Data = {
        "version": folders.VERSION,
        "created": created,
        "machine": machine.describe(),
        "settings": asdict(settings),
        "cases": [],
    }
    for case in cases:
        kept = folders.artifacts(folder.resolve(), case.name)
        entry = run_case(case, replace(settings, artifacts=str(kept)))
        data["cases"].append(entry)
        folders.write(folder, data)
        report(entry)
    return data
