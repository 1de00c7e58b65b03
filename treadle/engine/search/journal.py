"""Every candidate that was tried, written down at once: a search that is killed goes on from here.

JSON lines: first the version, then a line a candidate. A line cut short by the kill is passed over.
A file of another version is put aside. Where nothing can be written the entries are in memory
alone, and that is said.
"""

from __future__ import annotations

import contextlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path

from treadle.engine import lines, tuned

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
        try:
            written = lines.read(path, HEAD)
        except lines.OtherVersion:
            written = []
            with contextlib.suppress(OSError):  # then nothing can be written, which is said
                path.replace(path.with_name(f"{path.name}.other"))
        except OSError as error:
            self._keep_in_memory(error)
            return
        for _, line in written:
            try:
                entry = Entry(**json.loads(line))
            except (ValueError, TypeError):
                continue
            if isinstance(entry.seconds, int | float | None):
                self.entries[entry.of, entry.actions] = entry

    def known(self, of: str, actions: str) -> Entry | None:
        """What became of a candidate before."""
        return self.entries.get((of, actions))

    def note(self, entry: Entry) -> None:
        """Writes an entry down."""
        self.entries[entry.of, entry.actions] = entry
        if self.path is not None:
            try:
                lines.append(self.path, HEAD, json.dumps(asdict(entry)))
            except (OSError, lines.OtherVersion) as error:
                self._keep_in_memory(error)

    def _keep_in_memory(self, error: Exception) -> None:
        tuned.report(f"{self.path} cannot be used, a search that ends early begins anew: {error}")
        self.path = None
