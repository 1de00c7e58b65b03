"""The one data structure: an immutable, interned node `Node(op, dtype, src, arg)`.

Two equal programs are the same object. So a common subexpression exists once, a program is a
dictionary key, and what a pure function says of a node can be remembered on it. The table that
interns is weak: a node lives as long as somebody holds it.

What every pass asks for is computed once, when the node is made, by the op's row in the table
(`ops.py`): its `shape` (graph stage), the set of ranges it depends on (`free`, a bit mask, kernel
stage) and, for integers of type `index`, its numeric `bounds`.
"""

from __future__ import annotations

import hashlib
import weakref
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from treadle.ir.ops import Op

Shape = tuple[Any, ...]  # of int or of a Node of dtype index (a symbolic dimension)


class _Entry(weakref.ref["Node"]):
    """A weak reference that knows its key, so that a dying node can leave the table."""

    __slots__ = ("key",)
    key: Key


Key = tuple[Any, ...]
Reference = weakref.ref["Node"]
Gone = Callable[[Reference], None]

_table: dict[Key, Reference] = {}
_new = object.__new__
_reference = weakref.ref


def _forget(entry: _Entry, table: dict[Key, Reference] = _table) -> None:
    # (a default argument: when Python ends, the names of modules are gone before the last nodes)
    if table.get(entry.key) is entry:
        del table[entry.key]


def leave(key: Key, table: dict[Key, Reference] = _table) -> None:
    """A node made by `Node.watched` is no more. (The default argument is there also when Python
    ends, after the names of modules are gone.)"""
    del table[key]


class Node:
    """One step of a program. Make it by calling `Node(op, dtype, src, arg)`; compare it with `is`.

    op: a row of the op table. dtype: a DType, or a tuple of them for a node with several outputs.
    src: the nodes it reads. arg: hashable data that belongs to the op (axes, a constant's bits);
    nodes of dtype index may stand inside it as symbolic dimensions.
    """

    __slots__ = ("__weakref__", "arg", "bounds", "dtype", "free", "memo", "op", "shape", "src")
    op: Op
    dtype: Any
    src: tuple[Node, ...]
    arg: Any
    shape: Shape
    free: int
    bounds: tuple[int, int] | None
    memo: dict[Any, Any] | None

    def __new__(cls, op: Op, dtype: Any, src: tuple[Node, ...] = (), arg: Any = None) -> Node:
        key = (op, dtype, src, arg)
        entry = _table.get(key)
        if entry is not None:
            found = entry()
            if found is not None:
                return found
        self = _new(cls)
        self.op = op
        self.dtype = dtype
        self.src = src
        self.arg = arg
        self.memo = None
        if op.free is None:
            free = 0
            for s in src:
                free |= s.free
            self.free = free
        else:
            self.free = op.free(self)
        self.shape = src[0].shape if op.shape is None else op.shape(self)
        self.bounds = None if op.bounds is None else op.bounds(self)
        entry = _Entry(self, _forget)
        entry.key = key
        _table[key] = entry
        return self

    @classmethod
    def watched(
        cls, op: Op, dtype: Any, arg: Any, shape: Shape, alive: dict[Reference, Key], gone: Gone
    ) -> Node:
        """A node without sources that is known not to exist yet, made faster, whose end its maker
        hears of: `gone(reference)` is called then, and has to call `leave(alive.pop(reference))`.
        shape: what the op's row would say of it."""
        self = _new(cls)
        self.op = op
        self.dtype = dtype
        self.src = ()
        self.arg = arg
        self.memo = None
        self.free = 0
        self.shape = shape
        self.bounds = None
        key = (op, dtype, (), arg)
        reference = _table[key] = _reference(self, gone)
        alive[reference] = key
        return self

    def __repr__(self) -> str:
        arg = "" if self.arg is None else f", arg={self.arg!r}"
        names = ", ".join(s.op.name for s in self.src)
        return f"<{self.op.name} {self.dtype} ({names}){arg}>"

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError("a Node is pickled as text: use treadle.ir.text.show and parse")

    @property
    def value(self) -> int | float | bool:
        """The Python value of a constant."""
        value: int | float | bool = self.dtype.from_bits(self.arg)
        return value

    @property
    def digest(self) -> bytes:
        """16 bytes that depend on the program alone: equal in every process, whatever was built
        before. Orders the terms of an index and names a kernel in the disk cache."""
        memo = self.memo
        if memo is not None and "digest" in memo:
            return cast(bytes, memo["digest"])
        return cast(bytes, remember_below(self, "digest", _digest))

    def with_src(self, src: tuple[Node, ...]) -> Node:
        """The same operation on other sources."""
        return self if src == self.src else Node(self.op, self.dtype, src, self.arg)


def remember(node: Node, key: Any, function: Callable[[Node], Any]) -> Any:
    """`function(node)`, computed once per node and key. The function must be pure."""
    memo = node.memo
    if memo is None:
        memo = node.memo = {}
    if key not in memo:
        memo[key] = function(node)
    return memo[key]


def remember_below(root: Node, key: Any, step: Callable[[Node], Any]) -> Any:
    """`step(root)`, where `step` may read `memo[key]` of every source and of every node inside the
    arg: it is run first on all nodes below that have none yet, each once."""
    for node in toposort(root, into_args=True, unless=key):
        value = step(node)
        if node.memo is None:
            node.memo = {}
        node.memo[key] = value
    assert root.memo is not None
    return root.memo[key]


def arg_nodes(arg: Any) -> tuple[Node, ...]:
    """The nodes inside an arg (symbolic dimensions, the body of a scan), in order."""
    if type(arg) is tuple:
        found: tuple[Node, ...] = ()
        for part in arg:
            if type(part) is Node or type(part) is tuple:
                found += arg_nodes(part)
        return found
    return (arg,) if type(arg) is Node else ()


def map_arg(arg: Any, replace: Callable[[Node], Any]) -> Any:
    """The arg with every node inside it replaced."""
    if type(arg) is tuple:
        return tuple([map_arg(part, replace) for part in arg])
    return replace(arg) if type(arg) is Node else arg


def toposort(
    roots: Node | Iterable[Node], into_args: bool = False, unless: Any = None
) -> list[Node]:
    """Every node below the roots once, sources before users, in an order that depends only on the
    program.

    into_args: nodes inside args count as sources. unless: leave out nodes that remember this key,
    and what is only below those.
    """
    order: list[Node] = []
    entered: set[Node] = set()
    stack: list[Node | None] = []
    stack.extend([roots] if isinstance(roots, Node) else list(roots)[::-1])
    while stack:
        node = stack.pop()
        if node is None:  # all below the next one is in the order
            order.append(stack.pop())  # type: ignore[arg-type]  # None stands on a node
            continue
        if node in entered or (unless is not None and node.memo and unless in node.memo):
            continue
        entered.add(node)
        below = node.src
        if into_args and node.arg is not None:
            below += arg_nodes(node.arg)
        if not below:
            order.append(node)
            continue
        stack.append(node)
        stack.append(None)
        for source in reversed(below):
            if source not in entered:
                stack.append(source)
    return order


def _digest(node: Node) -> bytes:
    arg = node.arg
    if arg_nodes(arg):
        arg = map_arg(arg, lambda n: n.digest)
    own = f"{node.op.name}|{node.dtype}|{arg!r}|".encode()
    below = [source.digest for source in node.src]
    return hashlib.blake2b(b"".join((own, *below)), digest_size=16).digest()
