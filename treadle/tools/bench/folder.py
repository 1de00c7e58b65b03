"""A run as a folder: `run.json` with every figure, and beside it what ran.

    run.json                      machine, settings, and per case each library's samples
    cases/NAME/graph_0.txt        the graph before scheduling (NAME is the case's with __ for /)
    cases/NAME/kernel_0.txt       each kernel of treadle, as a node
    cases/NAME/actions_0.txt      the schedule that this kernel was given
    cases/NAME/source_0.txt       the text given to the compiler

The texts parse back (`treadle repro`, `treadle.ir.text`). The shape of run.json is SHAPE; its
version counts up whenever an older reader would misread it.
"""

from __future__ import annotations

import json
from pathlib import Path
from statistics import median
from typing import Any

from treadle.tools.bench.statistics import Difference, Summary, compare, summarise

VERSION = 1

NUMBER = (int, float)
# name -> type, a table of its own, or [table] for a list of such; a name with ? may be absent
LIBRARY: dict[str, Any] = {
    "error": str,
    "version?": str,
    "blocks?": [[NUMBER]],  # seconds: of every call, a list per block
    "first_seconds?": NUMBER,  # of the first call, compilation included
    "compile?": {
        "build_seconds": NUMBER, "code_seconds": NUMBER, "search_seconds": NUMBER,
        "kernels": int, "lines": int,
    },
    "program?": {
        "launches": int, "kernels": int, "arena_bytes": int,
        "loads": int, "stores": int, "bytes": int, "operations": int,
    },
    "memory?": {
        "device_peak_bytes": int, "process_peak_bytes": int, "arguments?": int,
        "closed_over?": int, "results?": int, "temporaries?": int, "peak?": int,
    },
    "cold?": {  # seconds, one per process
        "import_seconds?": [NUMBER], "warm_disk_seconds?": [NUMBER],
        "second_seconds?": [NUMBER], "whole_seconds?": [NUMBER],
    },
}  # fmt: skip
# of treadle everything is known, but not every case is a cold start
OWN = {name if name == "cold?" else name.removesuffix("?"): of for name, of in LIBRARY.items()}
CASE: dict[str, Any] = {
    "name": str,
    "what": str,
    "error": str,
    "busy": NUMBER,
    "operations": int,
    "bytes": int,
    "target": (int, float, type(None)),
    "libraries": dict,  # name -> LIBRARY, "treadle" -> OWN
}
SHAPE: dict[str, Any] = {
    "version": int,
    "created": str,
    "machine": {"processor": str, "threads": int, "commit": str},
    "settings": dict,
    "cases": [CASE],
}

Data = dict[str, Any]


def check(data: Any, shape: Any = SHAPE, where: str = "run") -> None:
    """ValueError that names the place where data does not have a shape."""
    if isinstance(shape, list):
        _expect(data, list, where)
        if shape[0] is NUMBER and not data:
            raise ValueError(f"{where} is empty")
        for number, each in enumerate(data):
            check(each, shape[0], f"{where}[{number}]")
    elif isinstance(shape, dict):
        _expect(data, dict, where)
        for name, inner in shape.items():
            plain = name.removesuffix("?")
            if plain in data:
                check(data[plain], inner, f"{where}.{plain}")
            elif plain == name:
                raise ValueError(f"{where} has no {name!r}")
        if shape is CASE:
            for name, library in data["libraries"].items():
                check(library, OWN if name == "treadle" else LIBRARY, f"{where}.libraries.{name}")
    else:
        _expect(data, shape, where)


def _expect(data: Any, kind: Any, where: str) -> None:
    if not isinstance(data, kind):
        raise ValueError(f"{where} is {type(data).__name__}, which it may not be")


def write(folder: Path, data: Data) -> None:
    """Keep a run. The file is there whole or not at all."""
    check(data)
    folder.mkdir(parents=True, exist_ok=True)
    unfinished = folder / "run.json.new"
    unfinished.write_text(json.dumps(data, indent=1), encoding="utf-8")
    unfinished.replace(folder / "run.json")


def is_run(folder: Path) -> bool:
    """Whether a folder holds a run."""
    return (folder / "run.json").is_file()


def read(folder: Path) -> Data:
    """A run that was kept. FileNotFoundError or ValueError if there is none that can be read."""
    path = folder / "run.json"
    if not is_run(folder):
        raise FileNotFoundError(f"{folder} holds no run: there is no run.json in it")
    try:
        data: Data = json.loads(path.read_text(encoding="utf-8"))
        _expect(data, dict, "run")
        if data.get("version") != VERSION:
            raise ValueError(f"it is of version {data.get('version')!r}; this reads {VERSION}")
        check(data)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is no run that can be read: {error}") from None
    return data


def artifacts(folder: Path, case: str) -> Path:
    """Where the texts of a case are."""
    return folder / "cases" / case.replace("/", "__")


def samples(library: Data) -> list[float]:
    """One number for each block: the median of its calls."""
    return [median(block) for block in library.get("blocks", ())]


def summary(library: Data) -> Summary | None:
    """The summary of a library's blocks, if it ran."""
    found = samples(library)
    return summarise(found) if found else None


def difference(before: Data, after: Data) -> Difference | None:
    """How a library's times differ from another's, if both ran."""
    first, second = samples(before), samples(after)
    return compare(first, second) if first and second else None
