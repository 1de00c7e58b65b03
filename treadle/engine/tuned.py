"""Schedules that a search found, in files that are merged, shipped and read at compile time.

A file has JSON a line: first its version, then a result each. A result says, for the text of a
kernel and the description of a target, a list of actions, what it took and what the heuristic's
took. Names and numbers of the caller's do not matter: kernels number their buffers, ranges and
run-time numbers themselves, and Variables are numbered here.

The first of these that knows a kernel decides: the files of the knob TUNED (several are separated
like folders in PATH), `name.tuned.jsonl` beside the script `name.py` that runs, and, with the
knob BEAM, what earlier searches left in the cache directory. What cannot be used (another version,
a damaged line, actions that do not apply any more) is reported and passed over.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import sys
import warnings
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from treadle import config, extras
from treadle.backend.base import Target
from treadle.engine import disk, lines
from treadle.ir import index, ops, text
from treadle.ir.node import Node, toposort

VERSION = 1
HEAD = json.dumps({"treadle tuned schedules": VERSION})
SUFFIX = ".tuned.jsonl"

Key = tuple[str, str]  # kernel, target
Table = dict[Key, "Result"]


@dataclass(frozen=True)
class Result:
    """What a search found for a kernel on a target.

    kernel: its text. target: see `target_text`. actions: the list as text. seconds,
    heuristic_seconds: of one run, by this list and by the heuristic's. check: how the result was
    compared with float64.
    """

    kernel: str
    target: str
    actions: str
    seconds: float
    heuristic_seconds: float
    check: str

    @property
    def key(self) -> Key:
        """What it is looked up by."""
        return self.kernel, self.target

    @property
    def gain(self) -> float:
        """How many times as fast as the heuristic's list."""
        return self.heuristic_seconds / self.seconds


FIELDS = {field.name: str if field.type == "str" else (int, float) for field in fields(Result)}


# ---- keys ----------------------------------------------------------------------------------------
def canonical(kernel: Node) -> tuple[Node, dict[str, str]]:
    """The kernel with its Variables called n0, n1, .. in order of first use; and their new names by
    the old ones."""
    variables = [n for n in toposort(kernel, into_args=True) if n.op is ops.VARIABLE]
    names = {n.arg[0]: f"n{number}" for number, n in enumerate(dict.fromkeys(variables))}
    renamed = {
        old: Node(old.op, old.dtype, (), (names[old.arg[0]], *old.arg[1:])) for old in variables
    }
    return (index.substitute(kernel, renamed) if renamed else kernel), names


def kernel_text(kernel: Node) -> str:
    """The text of a kernel, whatever its Variables are called."""
    return text.show(canonical(kernel)[0])


def target_text(target: Target) -> str:
    """What a target is, as far as schedules go: a list for another number of threads, or for other
    registers or caches, is another list."""
    caches = "/".join(f"{size >> 10}K" for size in target.cache_bytes)
    vectors = f"{target.registers} registers of {target.vector_bytes} bytes"
    vectors += f", {target.products} products a cycle" if target.products > 1 else ""
    return f"{target.name} {target.arch}: {vectors}, caches {caches}, {target.threads} threads"


# ---- files ---------------------------------------------------------------------------------------
def read(path: Path) -> Table:
    """The results of a file, the fastest of each kernel; empty, and reported, if there is no file
    or its version is another. Lines that say nothing usable are reported and passed over."""
    try:
        return results(path)
    except ValueError as error:
        report(f"{error}; search again with `treadle tune`")
        return {}


def results(path: Path) -> Table:
    """As `read`, but a file that is not there or of another version is a ValueError."""
    try:
        written = lines.read(path, HEAD)
    except OSError as error:
        raise ValueError(f"{path} has no tuned schedules that can be read: {error}") from None
    except lines.OtherVersion as error:
        raise ValueError(_other_version(path, error)) from None
    found: list[Result] = []
    for number, line in written:
        result = _parsed(line)
        if result is None:
            report(f"{path}, line {number}: no result of a search: {line[:60]!r}")
        else:
            found.append(result)
    return best_of(found)


def _other_version(path: Path, error: lines.OtherVersion) -> str:
    first = str(error)
    return f"{path} is not of version {VERSION} of tuned schedules: its first line is {first!r}"


def _parsed(line: str) -> Result | None:
    try:
        row = json.loads(line)
    except ValueError:
        return None
    if not isinstance(row, dict) or set(row) != set(FIELDS):
        return None
    if not all(isinstance(row[name], FIELDS[name]) for name in FIELDS):
        return None
    result = Result(**row)
    return result if min(result.seconds, result.heuristic_seconds) > 0 else None


def best_of(results: Iterable[Result]) -> Table:
    """The fastest result of each kernel on each target."""
    table: Table = {}
    for result in results:
        old = table.get(result.key)
        if old is None or result.seconds < old.seconds:
            table[result.key] = result
    return table


def append(path: Path, *results: Result) -> None:
    """Adds results to a file, and makes the file if there is none. ValueError if it cannot."""
    try:
        lines.append(path, HEAD, *(json.dumps(asdict(result)) for result in results))
    except OSError as error:
        raise ValueError(f"{path} cannot be written: {error}") from None
    except lines.OtherVersion as error:
        raise ValueError(_other_version(path, error)) from None


def write(path: Path, results: Iterable[Result]) -> None:
    """Writes a file anew. ValueError if it cannot be written."""
    rows = [HEAD, *(json.dumps(asdict(result)) for result in results)]
    temporary = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        temporary.write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
        os.replace(temporary, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise ValueError(f"{path} cannot be written: {error}") from None


# ---- looking up ----------------------------------------------------------------------------------
def places() -> tuple[Path, ...]:
    """The files that are looked into, in this order. That which a search is to make may be none
    yet."""
    named = [Path(name) for name in str(config.TUNED.value).split(os.pathsep) if name]
    beside = beside_script(getattr(sys.modules.get("__main__"), "__file__", None))
    found = [*named, *([beside] if beside is not None and beside.is_file() else [])]
    if not config.BEAM:
        return tuple(found)
    own = searched()
    listed = dict.fromkeys((*found, own))
    return tuple(path for path in listed if path != own or path.is_file())


def beside_script(script: str | None) -> Path | None:
    """The file that goes with a script."""
    return None if script is None else Path(script).with_suffix(SUFFIX)


def searched() -> Path:
    """Where BEAM leaves what it finds, unless TUNED names a file."""
    named = [name for name in str(config.TUNED.value).split(os.pathsep) if name]
    return Path(named[0]) if named else disk.folder() / f"searched{SUFFIX}"


@functools.cache
def _table(paths: tuple[Path, ...], tuned: str) -> dict[Key, tuple[Result, str]]:
    """Everything that these files say: (result, file) by key. tuned: the setting of TUNED."""
    table: dict[Key, tuple[Result, str]] = {}
    for path in paths:
        for key, result in read(path).items():
            table.setdefault(key, (result, str(path)))
    return table


def table() -> dict[Key, tuple[Result, str]]:
    """What is known now: (result, file) by key."""
    return _table(*_sources(str(config.TUNED.value), bool(config.BEAM)))


@functools.cache
def _sources(tuned: str, beam: bool) -> tuple[tuple[Path, ...], str]:
    """The files are looked for once a process, for these settings of the knobs."""
    return places(), tuned


def forget() -> None:
    """Reads the files anew when they are next asked for."""
    _sources.cache_clear()
    _table.cache_clear()


def find(kernel: Node, target: Target) -> Result | None:
    """The result for a kernel, if there is one and the user did not write its schedule."""
    known = table()
    if not known or kernel.arg is not None:
        return None
    found = known.get((kernel_text(kernel), target_text(target)))
    return None if found is None else found[0]


def learn(result: Result, path: str) -> None:
    """From now on this result is used in this process."""
    table()[result.key] = result, path


def lower(kernel: Node, target: Target, name: str, unchanging: frozenset[int] = frozenset()) -> Any:
    """The kernel lowered (see `kernel/pipeline.py`): by what a search found, if it applies."""
    pipeline = extras.load("treadle.kernel.pipeline")  # a warm start does without it
    result = find(kernel, target)
    if result is None:
        lowered = pipeline.lower(kernel, target, name, unchanging=unchanging)
        return lowered if kernel.arg is None else replace(lowered, origin="written by the user")
    path = table()[result.key][1]
    try:
        lowered = pipeline.lower(kernel, target, name, result.actions)
    except pipeline.ScheduleError as error:
        report(f"{path}: a tuned schedule does not apply, the heuristic's is used: {error}")
        return pipeline.lower(kernel, target, name, unchanging=unchanging)
    origin = f"found by search, {result.gain:.2f} times as fast: {path}"
    return replace(lowered, origin=origin)


def report(what: str) -> None:
    """Tells the user what was passed over."""
    warnings.warn(what, stacklevel=3)
