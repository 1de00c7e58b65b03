"""Inside a function that a transform has called: what is different in the engine while it runs.

`vmap` calls a function once for all examples, a loop once for all trips. What the function gets are
parameters, which have no value: to read one is an error. What it does to a tensor from outside
would be done once, and not for every example or step: that is an error, too, before it happens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import get_ident
from typing import Any
from weakref import WeakKeyDictionary

from treadle.engine.cell import Cell, live
from treadle.engine.failure import user_line
from treadle.graph.body import parameter
from treadle.ir.node import Node

Key = Any  # of a random draw: int | Node
# what would become of a change from inside, by transform
_WOULD_BE = {
    "vmap": "done once and not for every example",
    "scan": "done once and not at every step",
    "while_loop": "done once and not in every trip",
    "cond": "done whichever branch is chosen",
}


class Scope:
    """One call of a function by a transform. name: of the transform. outside: the cells that lived
    before. key: what becomes of the key of a random draw inside."""

    def __init__(self, name: str, key: Callable[[Key], Key]) -> None:
        self.name = name
        self.thread = get_ident()
        self.outside = {id(cell): cell for cell in live()}
        self.key = key
        self.is_over = False

    def parameter(self, node: Node, shape: Any, device: str) -> Node:
        """A parameter of the function, of the dtype of a node and on a device."""
        return self.adopt(parameter(node.dtype, shape), device)

    def adopt(self, own: Node, device: str) -> Node:
        """Take a parameter as one of the function's, on a device."""
        _homes[own] = self, device
        return own


scopes: list[Scope] = []  # that are open, in any thread, the innermost of a thread last
_homes: WeakKeyDictionary[Node, tuple[Scope, str]] = WeakKeyDictionary()


@contextmanager
def inside(name: str, key: Callable[[Key], Key] = lambda key: key) -> Iterator[Scope]:
    """A block in which a transform calls a function."""
    scope = Scope(name, key)
    scopes.append(scope)
    try:
        yield scope
    finally:
        scopes.remove(scope)
        scope.is_over = True
        scope.outside.clear()


def opened() -> list[Scope]:
    """The open scopes of this thread, the outermost first."""
    return [scope for scope in scopes if scope.thread == get_ident()] if scopes else []


def forbid_change(cell: Cell, what: str) -> None:
    """RuntimeError if `cell` lived before a scope that is open. what: what would change it."""
    for scope in opened():
        if id(cell) in scope.outside:
            raise RuntimeError(
                f"{what} at {user_line()} changes a tensor of shape {cell.node.shape} from outside "
                f"of the function given to {scope.name}, which would be {_WOULD_BE[scope.name]}: "
                "return the new value and assign it outside (a layer that keeps running statistics "
                "has eval() for this)"
            )


def some_are_left() -> bool:
    """Whether parameters of functions are alive, inside of these or left over from them."""
    return bool(_homes)


def device_of_parameter(node: Node) -> str:
    """The device of a parameter; "" if nothing is known of it."""
    return _homes[node][1] if node in _homes else ""


def refusal(node: Node) -> RuntimeError:
    """The error for reading what depends on a parameter."""
    scope = _homes[node][0] if node in _homes else None
    if scope is not None and scope.is_over:
        return RuntimeError(
            f"this value belongs to the function given to {scope.name}, which has returned: to use "
            "it outside, return it from that function"
        )
    if scope is None or scope.name != "vmap":
        name = "scan, while_loop or cond" if scope is None else scope.name
        return RuntimeError(
            f"a value inside the body of {name} cannot be read (item, numpy, print, if): the body "
            "is traced once, and its values exist only while it runs; choose by where() or cond()"
        )
    return RuntimeError(
        "a value inside a function given to vmap cannot be read (item, numpy, print, if): the "
        "function is called once for all examples, which may differ; choose by where(), or return "
        "the value and read it outside"
    )


def keyed(make: Callable[[], Key]) -> Key:
    """The key of a random draw, which `make` gives, as the open scopes make it."""
    key = None
    for scope in opened():
        key = scope.key(make() if key is None else key)
    return make() if key is None else key
