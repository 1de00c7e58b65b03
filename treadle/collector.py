"""Python's cyclic garbage collector, kept out of the way where many nodes are made."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_collector() -> Iterator[None]:
    """A block that makes many nodes, none of them garbage: the cyclic collector would walk them
    all, again and again, and find nothing."""
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()
