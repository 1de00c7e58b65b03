"""The contract between the compiler and a backend: what a target is, must spell, and runs.

A backend is a package `treadle.backend.<name>` whose module exports `BACKEND: Backend`. It imports
only the ground, `ir/` and this file.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from treadle.ir.dtype import DType
from treadle.ir.node import Node

# Processors, as compilers call them, and the feature of processors, whose cores start two
# multiply-adds of 64 bytes in a cycle. (A virtual machine may hide a name, but hardly a feature.)
TWO_PRODUCTS = {
    "skylake-avx512", "cascadelake", "cooperlake", "icelake-server", "sapphirerapids",
    "emeraldrapids", "graniterapids", "graniterapids-d", "diamondrapids", "znver5", "amx-tile",
}  # fmt: skip


@dataclass(frozen=True)
class Target:
    """What a device can do, as data: codegen, heuristics and renderers read it, nobody asks twice.

    vector_bytes: width of a vector register (0: no vectors). registers: how many of them.
    products: vector multiply-adds that a core starts in a cycle. streams: places of memory
    that it had better read at a time: one alone does not ask for as much as memory gives.
    cache_bytes: sizes of L1, L2 (per core) and L3, or of shared memory for a GPU.
    threads: hardware threads that run tasks. min_parallel: tasks below which work is too little
    to fill the device. buffers: how many a kernel may have. ops: kernel operations at most.
    dtypes: names of those it can store and compute. intrinsics: names of the typed table it has.
    """

    name: str
    kind: str  # "cpu" | "gpu"
    arch: str = ""
    features: str = ""
    vector_bytes: int = 32
    registers: int = 16
    products: int = 1
    streams: int = 1
    cache_bytes: tuple[int, ...] = (32768, 1 << 20, 32 << 20)
    threads: int = 1
    min_parallel: int = 4
    buffers: int = 64
    ops: int = 512
    # the order of a set differs from process to process, and the repr is part of cache keys
    dtypes: frozenset[str] = field(default=frozenset(), repr=False)
    intrinsics: frozenset[str] = field(default=frozenset(), repr=False)
    shared_bytes: int = 0
    block_threads: int = 1

    def lanes(self, dtype: DType) -> int:
        """Lanes of one vector register of this type (1 without vectors)."""
        return max(1, self.vector_bytes // dtype.itemsize)


class Function(NamedTuple):
    """A program for one target: see docs/design.md, section 5."""

    name: str
    params: tuple[Node, ...]  # ARG, SCALAR and VARIABLE nodes
    body: tuple[Node, ...]
    tasks: int | Node = 1
    block: tuple[int, ...] = ()  # threads of a block, for GPU targets


class Library(Protocol):
    """Compiled functions."""

    def address(self, name: str) -> int: ...


@dataclass(frozen=True)
class Backend:
    """The stages of one backend.

    render: functions to one source text. compile: text to bytes that can be kept on disk (object
    code). load: bytes to a Library. code_key: everything beside the source that changes the bytes
    (versions, cpu, flags), for the disk cache. run: makes the runner of Programs for `threads`.
    """

    name: str
    target: Target
    render: Callable[[Sequence[Function]], str]
    compile: Callable[[str], bytes]
    load: Callable[[bytes], Library]
    code_key: str
    run: Callable[..., Any]
    options: dict[str, Any] = field(default_factory=dict)
