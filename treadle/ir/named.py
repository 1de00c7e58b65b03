"""Things that may stand in the arg of a node although they are no data: text knows them by name.

A rule that a user wrote for a derivative is a Python function. A graph that holds one is printed
with its name, and text that is parsed in the same process finds it again by that name.
"""

from __future__ import annotations

import itertools
import weakref


class Named:
    """An object with a name of its own among all that live. Equal only to itself."""

    name: str

    def __init__(self, name: str) -> None:
        """name: what it would like to be called; a number is added if another one is."""
        numbers = itertools.count(2)
        self.name = name
        while self.name in _living:
            self.name = f"{name} {next(numbers)}"
        _living[self.name] = self

    def __repr__(self) -> str:
        return f"@{self.name}"


_living: weakref.WeakValueDictionary[str, Named] = weakref.WeakValueDictionary()


def named(name: str) -> Named:
    """The living object of this name. ValueError if there is none."""
    found = _living.get(name)
    if found is None:
        raise ValueError(f"nothing in this process has the name {name!r}")
    return found
