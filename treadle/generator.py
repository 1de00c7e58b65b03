"""The sequence of random keys. A draw takes its key when it is created, so what it gives depends on
nothing that happens later: not on the order of reading, the device, or the number of threads."""

from __future__ import annotations

import operator
import threading

import numpy as np

from treadle.ir.meaning import threefry

_lock = threading.Lock()
_state = {"seed": 0, "count": 0}


def manual_seed(seed: int) -> None:
    """Start the sequence of keys anew. seed: an int of at most 64 bits."""
    try:
        number = operator.index(seed)
    except TypeError:
        raise TypeError(f"manual_seed: a seed is an int, not {seed!r}") from None
    if not -(1 << 63) <= number < 1 << 64:
        raise OverflowError(f"manual_seed: a seed has at most 64 bits: {number}")
    with _lock:
        _state.update(seed=number & ((1 << 64) - 1), count=0)


def next_key() -> int:
    """The next key, a uint64: Threefry of a counter under the seed."""
    with _lock:
        count = _state["count"]
        _state["count"] = count + 1
        words = np.array([[count], [_state["seed"]]], np.uint64)  # arrays wrap without a warning
        return int(threefry(words[0], words[1])[0])
