"""The trace of a function: what is different in the engine while it runs to be captured.

One function is traced at a time, by the thread that holds the engine's lock. Meanwhile `realize`
runs nothing, reading a value is an error, a random draw takes a key that stands for the key of each
call, and so does a float argument for its value.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from threading import get_ident

from treadle.engine.failure import user_line
from treadle.ir import ops
from treadle.ir.dtype import DType, float64, uint64
from treadle.ir.node import Node, toposort

_numbers = itertools.count(-1, -1)  # of SCALARs: those of a normal form count from 0


class JitError(RuntimeError):
    """A function cannot be captured as it is written; the message says what to do.

    >>> try:
    ...     jit(lambda x: x if x.sum() > 0 else -x)(Tensor([1.0]))
    ... except JitError:
    ...     print("write where(x.sum() > 0, x, -x)")
    write where(x.sum() > 0, x, -x)
    """


class Trace:
    """name: of the function. keys: what its random draws took, in order. words: what a leaf or a
    number stands for, as the user would say it. sizes: the Variables whose value was read."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.thread = get_ident()
        self.keys: list[Node] = []
        self.words: dict[Node, str] = {}
        self.sizes: set[str] = set()

    def new_key(self) -> Node:
        """A number for the key of a random draw."""
        self.keys.append(_number(uint64))
        return self.keys[-1]

    def new_float(self, words: str) -> Node:
        """A number for a Python float."""
        number = _number(float64)
        self.words[number] = words
        return number

    def refusal(self, what: str, node: Node) -> JitError:
        """The error for reading a value: `what` would have read `node`."""
        origins = [self.words[leaf] for leaf in toposort(node) if leaf in self.words]
        origin = f", which depends on {origins[0]}," if origins else ""
        message = (
            f"{self.name} is being captured, and {what} reads the value of a tensor{origin} at "
            f"{user_line()}. A captured function runs once for many calls, so it cannot look at "
            "values: return the tensor and read it outside, or choose with tensors (where, maximum)"
        )
        if any(leaf.op is ops.SCALAR for leaf in toposort(node)):
            message += '; or name the argument in jit(f, static=("name",)) to capture each value'
        return JitError(message)


_active: Trace | None = None


def _number(dtype: DType) -> Node:
    return Node(ops.SCALAR, dtype, (), next(_numbers))


def current() -> Trace | None:
    """The trace that this thread is in."""
    trace = _active
    return trace if trace is not None and trace.thread == get_ident() else None


def forbid_reading(what: str, node: Node) -> None:
    """JitError if a function is being traced. what: the call that reads the value of `node`."""
    trace = current()
    if trace is not None:
        raise trace.refusal(what, node)


@contextmanager
def tracing(name: str) -> Iterator[Trace]:
    """A block in which a function is traced. The engine's lock is held around it."""
    global _active
    _active = trace = Trace(name)
    try:
        yield trace
    finally:
        _active = None
