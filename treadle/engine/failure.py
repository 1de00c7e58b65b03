"""What to say of an index that a program found out of range: which, in what, and on which line.

Public functions that take integers `note` the indexing operations that they make. When a check of a
program fails, `describe` finds the operation in the graph as the user built it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from treadle.engine.normal import Normal
from treadle.graph.places import INDEXING, Place, all_below, indexing_below, place_of, places, put
from treadle.graph.simplify import simplify
from treadle.ir import index, ops
from treadle.ir.node import Node, toposort


def note(name: str, result: Any, arguments: Iterable[Any], chooses: bool = False) -> None:
    """Remember the user's line for the indexing operations that the public function `name` has made
    of its arguments, or of what stands in a list there. Nothing is looked at unless one of them
    holds integers, or the function `chooses` indices by itself."""
    flat = [
        each for part in arguments for each in (part if isinstance(part, tuple | list) else (part,))
    ]
    given = [node for node in flat if isinstance(node, Node)]
    if not chooses and not any(node.dtype.is_int for node in given):
        return
    parts = result if isinstance(result, tuple | list) else (result,)
    made = indexing_below([node for node in parts if isinstance(node, Node)], given)
    new = [node for node in made if node not in places]
    if new:
        line = user_line()
        place = Place(name, (line,) if line else ())
        for node in new:
            put(node, place)


def user_line() -> str:
    """The innermost line on the stack that is not inside treadle."""
    frame: Any = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").split(".")[0] == "treadle":
        frame = frame.f_back
    return "" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"


def find(failed: Node, normal: Normal, values: Sequence[Node]) -> Node | None:
    """The indexing operation, in the graphs of `values`, that became `failed` when their normal
    form was simplified; None if rules have changed it too much."""
    for node, place in all_below(values).items():
        put(node, place)
    # the original graph and its normal form have the same order, and the same bodies of loops
    pairs = dict(zip(toposort(normal.roots), toposort(values), strict=False))
    everything = toposort(normal.roots, into_args=True)
    candidates = [(n, pairs.get(n, n)) for n in everything if n.op in INDEXING]
    best: tuple[int, Node] | None = None
    for node, own in candidates:
        if node is failed:
            return own
        below = toposort(simplify([node]))
        if failed in below and (best is None or len(below) < best[0]):
            best = len(below), own
    if best is not None:
        return best[1]
    known = {place_of(own) for _, own in candidates}  # one line has made them all
    return candidates[0][1] if len(known) == 1 else None


def describe(
    failed: Node,
    own: Node | None,
    bindings: dict[str, int],
    compute: Callable[[Node], np.ndarray],
) -> str:
    """The message for a failed check.

    failed: the operation that was checked; own: the same as the user built it, if that is known.
    compute: the value of a node of the user's graph.
    """
    if failed.op is ops.KERNEL:  # no matter which of its indices: only the kernel knows them
        written = None if own is None else place_of(own)
        what = f"{failed.arg[2]}: an index is out of range"
        return what if written is None else f"{what}, at {written.text}"
    axis = failed.arg if failed.op is ops.GATHER else failed.arg[0]
    size = failed.src[0].shape[axis]
    size = size if isinstance(size, int) else index.evaluate(size, bindings)
    place = None if own is None else place_of(own)
    name = failed.op.name if place is None else place.name
    what = f"{name}: an index is out of range for an axis of size {size}"
    beyond = None if own is None else _beyond(own, size, compute)
    if beyond is not None:
        what = f"{name}: index {beyond[0]} is out of range for an axis of size {beyond[1]}"
    return what if place is None or not place.lines else f"{what}, at {place.text}"


def _beyond(own: Node, size: int, compute: Callable[[Node], np.ndarray]) -> tuple[int, int] | None:
    """(an index that is out of range, the size of its axis), as the user wrote the index."""
    try:
        for written, sizes in _written(own.src[1]):
            axis = int(compute(sizes).flat[0])
            numbers = compute(written)  # in memory that the next computation may use again
            wrong = numbers[(numbers < -axis) | (numbers >= axis)]
            if wrong.size:
                return int(wrong.flat[0]), axis
        indices = compute(own.src[1])
    except Exception:  # the indices may depend on what has failed
        return None
    wrong = indices[(indices < 0) | (indices >= size)]
    return (int(wrong.flat[0]), size) if wrong.size else None


def _written(indices: Node) -> list[tuple[Node, Node]]:
    """(indices, size of the axis) wherever indices below 0 were counted from the end:
    `where(index < 0, index + size, index)`."""
    found = []
    for node in toposort(indices):
        if node.op is ops.WHERE:
            below, counted, written = node.src
            if below.op is ops.LT and counted.op is ops.ADD and below.src[0] is written:
                found += [(written, size) for size in counted.src if size is not written]
    return found
