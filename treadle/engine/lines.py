"""Files of lines that several processes add to, and that outlive a process which is killed.

The first line, the *head*, names the format and its version. A line is added by one write at the
end of the file, so lines of several processes do not mix; a line that was cut short is ended before
the next one. Two processes that begin a file at once leave a head more, which is passed over.
"""

from __future__ import annotations

import os
from pathlib import Path


class OtherVersion(ValueError):
    """A file whose head is another one. The message is that line."""


def read(path: Path, head: str) -> list[tuple[int, str]]:
    """The lines after the head with their numbers; none of an empty file. OtherVersion if the head
    is another; OSError if the file cannot be read."""
    lines = path.read_bytes().decode("utf-8", errors="replace").split("\n")
    if lines == [""]:
        return []
    if lines[0] != head:
        raise OtherVersion(lines[0][:80])
    return [(n, line) for n, line in enumerate(lines, start=1) if line not in ("", head)]


def append(path: Path, head: str, *added: str) -> None:
    """Adds lines; makes the file if there is none. Nothing is added to a file with another head:
    OtherVersion. OSError if the file cannot be written."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+b") as file:
        file.seek(0)
        first = file.readline().decode("utf-8", errors="replace")
        if first and first != f"{head}\n":
            raise OtherVersion(first.strip()[:80])
        begin = "" if first else f"{head}\n"
        if first:
            file.seek(-1, os.SEEK_END)
            begin = "" if file.read(1) == b"\n" else "\n"
        os.write(file.fileno(), "".join([begin, *(f"{line}\n" for line in added)]).encode())
