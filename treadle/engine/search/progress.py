"""How far a search is, on the standard error: a bar of the seconds that it may take."""

from __future__ import annotations

import sys
from typing import Any

from treadle import extras


class Progress:
    """A bar by tqdm if that is installed, else a line that is written anew. total: seconds."""

    def __init__(self, total: float, quiet: bool = False) -> None:
        self.total = total
        self.done = 0.0
        self.quiet = quiet or not sys.stderr.isatty()
        self.bar: Any = None
        if not self.quiet and extras.is_installed("tqdm"):
            self.bar = extras.load("tqdm").tqdm(
                total=round(total),
                unit="s",
                leave=False,
                bar_format="{desc} {bar} {n:.0f}/{total} s",
            )

    def show(self, seconds: float, what: str) -> None:
        """So many seconds have passed, and this is being done."""
        step, self.done = seconds - self.done, seconds
        if self.bar is not None:
            self.bar.set_description_str(what, refresh=False)
            self.bar.update(max(0.0, min(step, self.total - self.bar.n)))
        elif not self.quiet:
            sys.stderr.write(f"\r{seconds:5.0f} of {self.total:.0f} s  {what:<60.60}")
            sys.stderr.flush()

    def close(self) -> None:
        """The end."""
        if self.bar is not None:
            self.bar.close()
        elif not self.quiet:
            sys.stderr.write("\r" + " " * 79 + "\r")
