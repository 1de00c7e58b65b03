"""Devices by name, and the runner of programs of each."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

from treadle import config, extras, host
from treadle.backend.base import Backend
from treadle.engine import disk

# device name -> the plugin that serves it
PLUGINS = {"CPU": "llvm", "C": "c", "INTERP": "interp"}


def canonical(name: str | None) -> str:
    """The device's own spelling; None is the default device (the knob DEVICE)."""
    found = str(config.DEVICE.value if name is None else name).upper()
    if found not in PLUGINS:
        wrong = f"device {name!r}" if name is not None else f"device DEVICE={config.DEVICE.value!r}"
        raise ValueError(f"there is no {wrong}; there are {', '.join(PLUGINS)}")
    return _present() if name is None and found == "CPU" else found


@functools.cache
def _present() -> str:
    """CPU; without llvmlite the interpreter serves."""
    if extras.is_installed("llvmlite"):
        return "CPU"
    warnings.warn(
        "llvmlite is not installed, so everything is computed with the slow device INTERP: "
        "pip install treadle, or set DEVICE=C to use a C compiler",
        stacklevel=2,
    )
    return "INTERP"


@functools.cache
def backend(device: str) -> Backend:
    """The backend of a device. ImportError or RuntimeError that says what to install."""
    found: Backend = extras.load(f"treadle.backend.{PLUGINS[device]}").BACKEND
    return found


@functools.cache
def kept_compile(device: str) -> Callable[[str], bytes]:
    """The backend's `compile` for text that is the same in every process: it looks on disk
    first."""
    plugin = backend(device)

    def compile_text(source: str) -> bytes:
        name = f"{disk.digest(source, plugin.code_key)}.text"
        code = disk.read(name)
        if code is None:
            code = plugin.compile(source)
            disk.write(name, code)
        return code

    return compile_text


@functools.cache
def _runner(device: str, count: int, portable: bool) -> Any:
    return backend(device).run(threads=count, portable=portable, compile=kept_compile(device))


def runner(device: str) -> Any:
    """What runs the programs of a device, for the thread count that is set now."""
    return _runner(device, host.threads(), bool(config.PORTABLE_POOL))
