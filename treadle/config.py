"""The knobs: every environment variable that treadle reads, in one typed table.

`config.DEBUG.value` is the setting; `with config.DEBUG.set(2):` changes it for a block. Each knob
is explained in docs/knobs.md.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, TypeVar

T = TypeVar("T", int, str)

KNOBS: dict[str, Knob[Any]] = {}


@dataclass
class Knob(Generic[T]):
    """name; the default, whose type (int or str) is the knob's; what it does; whether it changes
    generated code (then it is part of the disk cache's key)."""

    name: str
    default: T
    doc: str
    changes_code: bool = False
    value: T = field(init=False)
    settings: ClassVar[int] = 0  # counts the times that any knob was set

    def __post_init__(self) -> None:
        text = os.environ.get(f"TREADLE_{self.name}", os.environ.get(self.name))
        self.value = self.default if text is None else self.parse(text)
        KNOBS[self.name] = self

    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)
        Knob.settings += 1

    def parse(self, text: str) -> T:
        """The setting written as `text`. ValueError naming the knob if it is not of its type."""
        try:
            return type(self.default)(text)
        except ValueError:
            raise ValueError(
                f"{self.name}={text!r}: {self.name} takes an integer ({self.doc})"
            ) from None

    def __bool__(self) -> bool:
        return bool(self.value)

    def __int__(self) -> int:
        return int(self.value)

    @contextmanager
    def set(self, value: T) -> Iterator[None]:
        """The knob set to `value` inside a `with` block. TypeError if it is not of its type."""
        if not isinstance(value, type(self.default)):
            kind = {int: "an integer", str: "a text"}[type(self.default)]
            raise TypeError(f"{self.name} takes {kind} ({self.doc}), not {value!r}")
        before, self.value = self.value, value
        try:
            yield
        finally:
            self.value = before


def code_settings() -> tuple[int | str, ...]:
    """The settings of the knobs that change generated code: part of every key of a cache of it."""
    return tuple(knob.value for knob in KNOBS.values() if knob.changes_code)


DEBUG = Knob("DEBUG", 0, "what is printed while running, from 0 (nothing) to 6 (everything)")
DEVICE = Knob("DEVICE", "CPU", "the default device: CPU (LLVM), C or INTERP")
THREADS = Knob("THREADS", 0, "threads of the CPU backends; 0: one per core this process may use")
PORTABLE_POOL = Knob(
    "PORTABLE_POOL", 0, "1: threads sleep by Python's own primitives, not by futex"
)
VERIFY = Knob("VERIFY", 0, "1: check the law of a stage after every pass")
CHECK_INDEX = Knob("CHECK_INDEX", 1, "0: indices out of range are clamped and not reported", True)
CACHE = Knob("CACHE", 1, "0: do not read or write the disk cache")
CACHE_DIR = Knob("CACHE_DIR", "", "where the disk cache lives; empty: the user's cache directory")
RECORD = Knob("RECORD", "", "a folder into which the text of every program that is made is written")
TUNED = Knob("TUNED", "", "files of schedules that a search found, as `treadle tune` writes", True)
BEAM = Knob("BEAM", 0, "how many lists a search for schedules pursues; 0: no search, the heuristic")
BEAM_SECONDS = Knob("BEAM_SECONDS", 120, "seconds that BEAM may search in a process, in all")
