"""The device INTERP: programs run step by step with NumPy. Slow; it gives the others their meaning.

Its code is the text of the functions; an address is a number under which a function is known.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from treadle.backend.base import Backend, Function, Target
from treadle.backend.interp import kernel as kernel  # gives the graph's KERNEL its meaning
from treadle.backend.interp.program import run_function
from treadle.backend.records import Program, Record, Runner
from treadle.ir import index, ops, text
from treadle.ir.dtype import TENSOR_DTYPES, DType, to_compute
from treadle.ir.node import Node

__all__ = ["BACKEND"]

SEPARATOR = "\f\n"  # between functions; the text of one has none

_functions: list[Function] = []  # a function's address is its place here, counted from 1


def render(functions: Sequence[Function]) -> str:
    """The functions as text."""
    return SEPARATOR.join(text.show_function(function) for function in functions)


def compile_text(source: str) -> bytes:
    """The text as bytes."""
    return source.encode()


class Library:
    """Functions read from their text."""

    def __init__(self, code: bytes) -> None:
        self._addresses: dict[str, int] = {}
        for part in code.decode().split(SEPARATOR):
            if part.strip():
                function = text.parse_function(part, Function)
                _functions.append(function)
                self._addresses[function.name] = len(_functions)

    def address(self, name: str) -> int:
        """The number of a function. KeyError if there is none of that name."""
        if name not in self._addresses:
            raise KeyError(f"the library has no function {name!r}")
        return self._addresses[name]


def _memory(address: int, dtype: DType, count: int) -> np.ndarray:
    """The elements at an address as an array, without a copy."""
    if count == 0:
        return np.empty(0, dtype.storage)
    memory = (ctypes.c_uint8 * (count * dtype.itemsize)).from_address(address)
    return np.ctypeslib.as_array(memory).view(dtype.storage)


def _elements(shape: Sequence[int | Node], variables: dict[str, int]) -> int:
    total = 1
    for size in shape:
        total *= index.evaluate(size, variables)
    return total


def launch(program: Program, record: Record) -> None:
    """Run every task of a KERNEL record; a check that fails sets the error flag."""
    function = _functions[record["fn"] - 1]
    *slots, base = (int(program.slots[slot]) for slot in record["map"])
    given = dict(zip(function.params, slots, strict=True))
    variables = {p.arg[0]: value for p, value in given.items() if p.op is ops.VARIABLE}
    buffers: dict[int, np.ndarray] = {}
    scalars: dict[int, Any] = {}
    for param, slot in given.items():
        if param.op is ops.ARG:
            count = _elements(param.arg[1], variables)
            buffers[param.arg[0]] = _memory(slot, param.dtype, count)
        elif param.op is ops.SCALAR:
            bits = np.array([slot], np.int64).view(param.dtype.storage)[:1]
            scalars[param.arg] = to_compute(param.dtype, bits)[0]
    for task in range(int(record["ntasks"])):
        failed = run_function(function, buffers, scalars, variables, task)
        if failed is not None and not program.flag[0]:
            program.flag[0] = base + failed


def run(threads: int, portable: bool = False, compile: object = None) -> Runner:
    """The runner of programs: one thread, whatever is asked for, since no result depends on it."""
    return Runner(launch)


BACKEND = Backend(
    name="interp",
    target=Target(
        name="INTERP",
        kind="cpu",
        vector_bytes=64,
        dtypes=frozenset(dtype.name for dtype in TENSOR_DTYPES),
        intrinsics=frozenset({"prefetch", "shuffle"}),
    ),
    render=render,
    compile=compile_text,
    load=Library,
    code_key="text",
    run=run,
)
