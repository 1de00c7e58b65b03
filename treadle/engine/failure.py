"""What to say of an index that a program found out of range: which, in what, and on which line.

Public functions that take integers `note` the indexing operations that they make. When a check of a
program fails, `describe` finds the operation in the graph as the user built it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from treadle.engine.normal import Normal
from treadle.graph.simplify import simplify
from treadle.ir import index, ops
from treadle.ir.node import Node, toposort

MOST_NODES = 256  # that a public function makes, about: further down is what others have made


@dataclass(frozen=True)
class Place:
    """Where an indexing operation comes from: the public name, and "file:line" of the user."""

    name: str
    line: str


# of indexing operations; and of their indices, which gradients use too
places: WeakKeyDictionary[Node, Place] = WeakKeyDictionary()
uses: WeakKeyDictionary[Node, Place] = WeakKeyDictionary()


def note(name: str, result: Any, arguments: Iterable[Any], chooses: bool = False) -> None:
    """Remember the user's line for the indexing operations that the public function `name` has made
    of its arguments. Nothing is looked at unless one of them holds integers, or the function
    `chooses` indices by itself."""
    given = [node for node in arguments if isinstance(node, Node)]
    if not chooses and not any(node.dtype.is_int for node in given):
        return
    place = None
    parts = result if isinstance(result, tuple | list) else (result,)
    stack = [node for node in parts if isinstance(node, Node)]
    seen = set(given)
    while stack and len(seen) < MOST_NODES:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        if node.op in (ops.GATHER, ops.SCATTER) and node not in places:
            place = place or Place(name, user_line())
            places[node] = uses[node.src[1]] = place
        stack.extend(node.src)


def user_line() -> str:
    """The innermost line on the stack that is not inside treadle."""
    frame: Any = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").split(".")[0] == "treadle":
        frame = frame.f_back
    return "" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"


def find(failed: Node, normal: Normal, values: Sequence[Node]) -> Node | None:
    """The indexing operation, in the graphs of `values`, that became `failed` when their normal
    form was simplified; None if rules have changed it too much."""
    # the original graph and its normal form have the same order
    pairs = zip(toposort(normal.roots), toposort(values), strict=False)
    candidates = [(n, own) for n, own in pairs if n.op in (ops.GATHER, ops.SCATTER, ops.KERNEL)]
    best: tuple[int, Node] | None = None
    for node, own in candidates:
        if node is failed:
            return own
        below = toposort(simplify([node]))
        if failed in below and (best is None or len(below) < best[0]):
            best = len(below), own
    return None if best is None else best[1]


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
        written = None if own is None else places.get(own)
        what = f"{failed.arg[2]}: an index is out of range"
        return what if written is None else f"{what}, at {written.line}"
    axis = failed.arg if failed.op is ops.GATHER else failed.arg[0]
    size = failed.src[0].shape[axis]
    size = size if isinstance(size, int) else index.evaluate(size, bindings)
    place = None if own is None else places.get(own) or uses.get(own.src[1])
    name = failed.op.name if place is None else place.name
    what = f"{name}: an index is out of range"
    beyond = None if own is None else _beyond(own, size, compute)
    if beyond is not None:
        what = f"{name}: index {beyond[0]} is out of range for an axis of size {beyond[1]}"
    return what if place is None or not place.line else f"{what}, at {place.line}"


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
