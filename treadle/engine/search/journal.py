"""Every candidate that was tried, written down at once: a search that is killed goes on from here.

JSON lines: first the version, then a line a candidate. A line cut short by the kill is passed over.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

HEAD = json.dumps({"treadle search journal": 1})


@dataclass(frozen=True)
class Entry:
    """What became of a candidate. of: what was searched (a digest); actions: its list as text;
    seconds: what it took, or None; failed, why: what went wrong, or ""."""

    of: str
    actions: str
    seconds: float | None
    check: str = ""
    failed: str = ""
    why: str = ""


class Journal:
    """The entries in a file, or only in memory if there is no path."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.entries: dict[tuple[str, str], Entry] = {}
        if path is not None and path.exists():
            self._read(path)

    def _read(self, path: Path) -> None:
        lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
        if lines[0] != HEAD:
            path.unlink()  # another version's: what it says is of no use
            return
        for line in lines[1:]:
            try:
                entry = Entry(**json.loads(line))
            except (ValueError, TypeError):
                continue
            self.entries[entry.of, entry.actions] = entry
        if lines[-1]:  # the next entry begins a line of its own
            self._write("\n")

    def known(self, of: str, actions: str) -> Entry | None:
        """What became of a candidate before."""
        return self.entries.get((of, actions))

    def note(self, entry: Entry) -> None:
        """Writes an entry down."""
        self.entries[entry.of, entry.actions] = entry
        if self.path is not None and not self.path.exists():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._write(HEAD + "\n")
        self._write(json.dumps(asdict(entry)) + "\n")

    def _write(self, what: str) -> None:
        if self.path is not None:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(what)
