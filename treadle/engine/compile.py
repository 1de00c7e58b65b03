"""From kernel nodes to addresses: each distinct kernel is compiled once, and kept on disk.

All the kernels that a program lacks are compiled as one module: code generation is the cold start,
and it is a quarter dearer in many modules than in one. What launches a kernel (its functions, their
parameters, their task counts) is kept beside the code, so that a warm start builds no kernel at
all.
"""

from __future__ import annotations

import functools
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from treadle import config, extras
from treadle.backend.base import Backend, Function, Library
from treadle.engine import disk, tuned
from treadle.events import emit, wanted
from treadle.ir import ops, text
from treadle.ir.node import Node

PACKAGE = Path(__file__).resolve().parent.parent
FORMAT = "2"  # of the files

Wanted = tuple[Node, frozenset[int]]  # a kernel, and which of its buffers never change


class Launch(NamedTuple):
    """One native function of a kernel: how to call it.

    params: ("buffer" | "scalar" | "variable", position or name), in the order of its map.
    tasks: an int, or an index node over VARIABLEs. chunks: into how many pieces it is worth
    cutting. writes: the positions of the buffers that it stores to.
    """

    name: str
    params: tuple[tuple[str, int | str], ...]
    tasks: int | Node
    chunks: int
    writes: tuple[int, ...]


@dataclass
class Compiled:
    """A kernel ready to run: its launches in order, their addresses, and the sizes in bytes of the
    scratch buffers it needs (positions after the call's own buffers)."""

    launches: tuple[Launch, ...]
    scratch: tuple[int | Node, ...]
    library: Library | None = None
    addresses: tuple[int, ...] = ()


@functools.cache
def source_digest(plugin: str) -> str:
    """A digest of every source file that decides what code a kernel becomes."""
    files = [PACKAGE / "backend" / "base.py"]
    for folder in ("ir", "kernel", f"backend/{plugin}"):
        files += sorted((PACKAGE / folder).rglob("*.py"))
    return disk.digest(*(path.read_bytes() for path in files))


def _key(kernel: Node, unchanging: frozenset[int], backend: Backend, plugin: str) -> str:
    result = tuned.find(kernel, backend.target)
    return disk.digest(
        FORMAT,
        kernel.digest,
        repr(sorted(unchanging)),
        backend.code_key,
        repr(backend.target),
        source_digest(plugin),
        repr(config.code_settings()),
        result.actions if result is not None else "",
    )


class Compiler:
    """The compiled kernels of one backend in this process. plugin: the backend's folder."""

    def __init__(self, backend: Backend, plugin: str) -> None:
        self.backend = backend
        self.plugin = plugin
        self.kernels: dict[tuple[Wanted, tuple[int | str, ...]], Compiled] = {}
        self.modules: dict[str, Library] = {}

    def get(self, kernels: Sequence[Wanted]) -> list[Compiled]:
        """Each kernel compiled: from this process, from the disk, or now (all the rest at once)."""
        settings = config.code_settings()
        missing: dict[Wanted, str] = {}
        if config.BEAM:
            new = [each[0] for each in kernels if (each, settings) not in self.kernels]
            extras.load("treadle.engine.search.session").improve(dict.fromkeys(new), self.plugin)
        for kernel in kernels:
            if (kernel, settings) not in self.kernels and kernel not in missing:
                key = _key(*kernel, self.backend, self.plugin)
                found = self._from_disk(key)
                if found is None:
                    missing[kernel] = key
                else:
                    self.kernels[kernel, settings] = found
        if missing:
            for kernel, compiled in zip(missing, self._compile(missing), strict=True):
                self.kernels[kernel, settings] = compiled
        return [self.kernels[kernel, settings] for kernel in kernels]

    def know(self, kernel: Node, compiled: Compiled) -> None:
        """From now on the kernel is this code."""
        self.kernels[(kernel, frozenset()), config.code_settings()] = compiled

    def _compile(self, missing: dict[Wanted, str]) -> list[Compiled]:
        start = time.perf_counter()
        lowered = [
            tuned.lower(kernel, self.backend.target, f"k{key[:12]}", unchanging)
            for (kernel, unchanging), key in missing.items()
        ]
        functions = [function for kernel in lowered for function in kernel.functions]
        source = self.backend.render(functions)
        rendered = time.perf_counter()
        code = self.backend.compile(source)
        if wanted("compile"):
            emit(
                "compile",
                kernels=len(missing),
                lines=source.count("\n"),
                build_seconds=rendered - start,
                code_seconds=time.perf_counter() - rendered,
                source=source,
                sinks=[kernel for kernel, _ in missing],
                lowered=lowered,
            )
        module = disk.digest(code)
        library = self._load(module, code)
        disk.write(f"{module}.code", code)
        result = []
        for key, low in zip(missing.values(), lowered, strict=True):
            pairs = zip(low.functions, low.chunks, strict=True)
            launches = tuple(launch_of(function, chunks) for function, chunks in pairs)
            compiled = Compiled(launches, low.scratch)
            disk.write(f"{key}.json", to_json(module, compiled))
            result.append(self.link(compiled, library))
        return result

    def _from_disk(self, key: str) -> Compiled | None:
        entry = disk.read(f"{key}.json")
        if entry is None:
            return None
        module, compiled = from_json(entry)
        if module not in self.modules:
            code = disk.read(f"{module}.code")
            if code is None:
                return None
            self._load(module, code)
        emit("cache.hit", key=key)
        return self.link(compiled, self.modules[module])

    def _load(self, module: str, code: bytes) -> Library:
        self.modules[module] = self.backend.load(code)
        return self.modules[module]

    def link(self, compiled: Compiled, library: Library) -> Compiled:
        """The kernel with the addresses of its functions in a library."""
        compiled.library = library
        compiled.addresses = tuple(library.address(launch.name) for launch in compiled.launches)
        return compiled


def launch_of(function: Function, chunks: int) -> Launch:
    """How a function is launched."""
    names = {ops.ARG: "buffer", ops.SCALAR: "scalar", ops.VARIABLE: "variable"}
    params = []
    for param in function.params:
        which = param.arg[0] if param.op in (ops.ARG, ops.VARIABLE) else param.arg
        params.append((names[param.op], which))
    written = {
        n.src[0].arg[0] for n in function.body if n.op is ops.WRITE and n.src[0].op is ops.ARG
    }
    return Launch(function.name, tuple(params), function.tasks, chunks, tuple(sorted(written)))


def _size_text(size: int | Node) -> int | str:
    return size if isinstance(size, int) else text.show(size)


def _size_from(size: int | str) -> int | Node:
    return size if isinstance(size, int) else text.parse(size)


def to_json(module: str, compiled: Compiled) -> bytes:
    """What the disk keeps of a kernel beside the code of its module."""
    launches = [
        [n.name, n.params, _size_text(n.tasks), n.chunks, n.writes] for n in compiled.launches
    ]
    scratch = [_size_text(size) for size in compiled.scratch]
    return json.dumps([module, launches, scratch]).encode()


def from_json(entry: bytes) -> tuple[str, Compiled]:
    """(the module, the kernel) of what `to_json` made."""
    module, launches, scratch = json.loads(entry)
    return module, Compiled(
        tuple(
            Launch(name, tuple(map(tuple, params)), _size_from(tasks), chunks, tuple(writes))
            for name, params, tasks, chunks, writes in launches
        ),
        tuple(_size_from(size) for size in scratch),
    )
