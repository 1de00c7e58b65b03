"""Devices by name, and the runner of programs of each."""

from __future__ import annotations

import functools
import os
from typing import Any

from treadle import config, extras
from treadle.backend.base import Backend

# device name -> the plugin that serves it
PLUGINS = {"CPU": "llvm", "C": "c", "INTERP": "interp"}


def canonical(name: str | None) -> str:
    """The device's own spelling; None is the default device (the knob DEVICE)."""
    found = str(config.DEVICE.value if name is None else name).upper()
    if found not in PLUGINS:
        raise ValueError(f"there is no device {name!r}; there are {', '.join(PLUGINS)}")
    return found


@functools.cache
def backend(device: str) -> Backend:
    """The backend of a device. ImportError or RuntimeError that says what to install."""
    plugin = extras.load(f"treadle.backend.{PLUGINS[device]}")
    return plugin.BACKEND  # type: ignore[no-any-return]


def threads() -> int:
    """Threads that run a program: the knob THREADS, or the cores this process may use (at most 32)."""
    chosen = int(config.THREADS)
    if chosen:
        return max(1, min(32, chosen))
    try:
        return min(32, len(os.sched_getaffinity(0)))
    except AttributeError:
        return min(32, os.cpu_count() or 1)


@functools.cache
def _runner(device: str, count: int, portable: bool) -> Any:
    return backend(device).run(threads=count, portable=portable)


def runner(device: str) -> Any:
    """What runs the programs of a device, for the thread count that is set now."""
    return _runner(device, threads(), bool(config.PORTABLE_POOL))
