"""The sequence of random keys. A draw takes its key when it is created, so what it gives depends on
nothing that happens later: not on the order of reading, the device, or the number of threads."""

from __future__ import annotations

import operator
import threading

import numpy as np

from treadle.engine import inside, trace
from treadle.engine.trace import JitError
from treadle.ir.meaning import threefry
from treadle.ir.node import Node

_AHEAD = 256  # keys made at once

_lock = threading.Lock()
_state = {"seed": 0, "count": 0}
_ready: list[int] = []  # the next keys, the last one first


def manual_seed(seed: int) -> None:
    """Start the sequence of keys anew. seed: an int of at most 64 bits.

    >>> treadle.manual_seed(7)
    >>> first = Tensor.rand(3)
    >>> treadle.manual_seed(7)
    >>> (first == Tensor.rand(3)).all()
    Tensor(True)
    """
    try:
        number = operator.index(seed)
    except TypeError:
        raise TypeError(f"manual_seed: a seed is an int, not {seed!r}") from None
    if not -(1 << 63) <= number < 1 << 64:
        raise OverflowError(f"manual_seed: a seed has at most 64 bits: {number}")
    if trace.current() is not None:
        raise JitError(
            "manual_seed inside a captured function would be done once and not at every call: seed "
            "outside it"
        )
    with _lock:
        _state.update(seed=number & ((1 << 64) - 1), count=0)
        _ready.clear()


def next_key() -> int | Node:
    """The next key, a uint64: Threefry of a counter under the seed. While a function is traced: a
    number that is drawn anew at each call of it. Inside vmap: as its `randomness` says."""
    return inside.keyed(_next_key) if inside.scopes else _next_key()


def _next_key() -> int | Node:
    tracing = trace.current()
    return next_keys(1)[0] if tracing is None else tracing.new_key()


def give_back(keys: list[int]) -> None:
    """These keys, the last that were taken, were not used: they are the next ones again."""
    with _lock:
        _ready.extend(reversed(keys))


def next_keys(number: int) -> list[int]:
    """The next keys, in order."""
    with _lock:
        while len(_ready) < number:
            first = _state["count"]
            _state["count"] = first + _AHEAD
            # (arrays wrap without a warning)
            counters = np.arange(first, first + _AHEAD, dtype=np.uint64)
            keys = threefry(counters, np.array([_state["seed"]], np.uint64))
            _ready[:0] = keys.tolist()[::-1]
        return [_ready.pop() for _ in range(number)]
