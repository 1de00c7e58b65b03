"""Events: the engine says what it does; tools and DEBUG levels listen. By default nobody does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

Listener = Callable[[dict[str, Any]], None]
listeners: dict[str, list[Listener]] = {}


def emit(event: str, **data: Any) -> None:
    """Tell every listener of `event`. Building costly data? Ask `wanted(event)` first."""
    for listener in listeners.get(event, ()):
        listener({"event": event, **data})


def wanted(event: str) -> bool:
    """Whether anyone listens to `event`."""
    return bool(listeners.get(event))


@contextmanager
def listen(event: str, listener: Listener) -> Iterator[None]:
    """Call `listener(data)` at every `event` inside the block."""
    listeners.setdefault(event, []).append(listener)
    try:
        yield
    finally:
        listeners[event].remove(listener)
