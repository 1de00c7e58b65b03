"""The disk cache of compiled code: small files that may be lost, damaged or written by several
processes at once, and are then simply not there.

Every file starts with a digest of the rest, so that a truncated or damaged one reads as missing;
files appear by an atomic rename. What is in them is the caller's: `compile.py` keeps the code of a
module in one file, and for each kernel another, which says how it is launched and in which module
it is. When a process that has written something ends, the cache is cut to its limit, once an hour.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import hashlib
import os
import struct
import time
from pathlib import Path

from treadle import config
from treadle.events import emit

DIGEST = 16  # bytes
LIMIT_BYTES = 512 << 20  # of all files
BLOCK = 4096  # bytes: what a small file takes on most disks
PAUSE = 3600  # seconds from one trim to the next
STAMP = "trimmed"  # a file as old as the last trim


def digest(*parts: bytes | str) -> str:
    """A hexadecimal name for the parts; their boundaries count."""
    state = hashlib.blake2b(digest_size=DIGEST)
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        state.update(struct.pack("<q", len(data)) + data)
    return state.hexdigest()


def folder() -> Path:
    """Where the cache lives: the knob CACHE_DIR, or the user's cache directory."""
    chosen = str(config.CACHE_DIR.value)
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA")
    return Path(base) / "treadle" if base else Path.home() / ".cache" / "treadle"


def read(name: str) -> bytes | None:
    """The content of an entry, or None if it is missing or damaged."""
    if not config.CACHE:
        return None
    try:
        data = (folder() / name).read_bytes()
    except OSError:
        return None
    content = data[DIGEST:]
    if hashlib.blake2b(content, digest_size=DIGEST).digest() != data[:DIGEST]:
        emit("cache.damaged", name=name)
        return None
    return content


def write(name: str, content: bytes) -> None:
    """Store an entry. A full or read-only disk costs only the cache, and is reported as an
    event."""
    if not config.CACHE:
        return
    try:
        place = folder()
        place.mkdir(parents=True, exist_ok=True)
        temporary = place / f"writing-{os.getpid()}-{time.perf_counter_ns()}"
        with open(temporary, "xb") as file:  # "x": nobody else writes to this file
            file.write(hashlib.blake2b(content, digest_size=DIGEST).digest() + content)
        os.replace(temporary, place / name)
        _trim_at_exit()
    except OSError as error:
        emit("cache.unwritable", name=name, error=str(error))


@functools.cache
def _trim_at_exit() -> None:
    atexit.register(trim_now_and_then)


def trim_now_and_then() -> None:
    """Trim, unless a process has done so within the last hour: looking at a hundred thousand files
    takes longer than most programs do."""
    stamp = folder() / STAMP
    with contextlib.suppress(OSError):
        if stamp.exists() and time.time() - stamp.stat().st_mtime < PAUSE:
            return
        stamp.touch()  # before the work: other processes that end now need not join in
        trim()


def trim(limit: int = LIMIT_BYTES) -> None:
    """Delete the entries written longest ago until the cache takes at most `limit` bytes of disk.

    A file takes whole blocks, so the limit bounds how many files there are, too.
    """
    entries = []
    with os.scandir(folder()) as files:
        for file in files:
            with contextlib.suppress(OSError):  # another process was faster
                status = file.stat()
                size = -(-status.st_size // BLOCK) * BLOCK
                entries.append((status.st_mtime, size, file.path))
    total = sum(size for _, size, _ in entries)
    for _, size, path in sorted(entries):
        if total <= limit:
            break
        with contextlib.suppress(OSError):  # another process may be reading it
            os.unlink(path)
        total -= size
