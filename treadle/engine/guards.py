"""What a trace could have read from outside, and whether it is still the same.

A function reads more than its arguments: variables of the functions around it, globals that its
code names, attributes of the objects that it reaches, items of their lists and dicts. `Guards`
finds all of these before a trace and remembers what they hold. Whether they still hold it is asked
at every call, so `hold` compares by identity and in C: the containers are read through live views.

What is looked into: functions, methods, partials, objects with attributes, classes, lists, dicts,
tuples and sets that belong to the user or to `treadle.nn`. The standard library and installed
packages are not; of a module of the user, what the code names. A container of more than `LARGE`
items that holds only numbers and text counts as unchanged while it is the same object of the same
length.
"""

from __future__ import annotations

import functools
import sys
import types
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from operator import attrgetter, is_
from typing import Any

import numpy as np

from treadle.engine.cell import Cell
from treadle.ir.dtype import DType

LARGE = 1000
PLAIN = (type(None), bool, int, float, complex, str, bytes, np.generic, DType, range, slice)
CLOSED = (np.ndarray, types.BuiltinFunctionType, types.GeneratorType, Exception)
OPEN_LIBRARIES = ("treadle.nn", "types")  # (`types` has SimpleNamespace)

Read = Callable[[], Iterable[Any]]
Write = Callable[[Any, Any], None]


class Missing:
    """In place of a variable that has no value."""


MISSING = Missing()
END = Missing()
_THE_END = (END,)
_NO_VALUE = types.CellType()
_content = attrgetter("cell_contents")


class View:
    """One container: how a message calls it ({} stands for the item), the names of its items, and
    how its items are read now: through `live`, or by the function `read`. names: of the items now;
    write(key, value) puts a value into it, if that can be done.
    """

    __slots__ = ("keys", "live", "name", "names", "read", "write")

    def __init__(
        self,
        name: str,
        names: Iterable[Any],
        live: Iterable[Any] | None = None,
        read: Read | None = None,
        write: Write | None = None,
    ) -> None:
        self.name = name
        self.write = write
        self.names = names
        self.keys = list(names)
        self.live = live
        self.read = read

    def now(self) -> list[Any]:
        """The items as they are."""
        return list(self.read() if self.live is None else self.live)  # type: ignore[misc]

    def item(self, position: int) -> str:
        """How a message calls an item."""
        return self.name.format(self.spelled(self.keys[position]))

    def spelled(self, key: Any) -> str:
        """A name as it stands in a message: an attribute's as it is, a key of a dict by its
        repr."""
        return key if isinstance(key, str) and not self.name.endswith("]") else shown(key)

    def growth(self) -> str:
        """What a message says if there are more or fewer items."""
        now = list(self.names)
        known = set(map(id, self.keys))
        for key in now:
            if id(key) not in known and not any(same(key, old) for old in self.keys):
                return f"{self.name.format(self.spelled(key))} is new"
        left = set(map(id, now))
        gone = [key for key in self.keys if id(key) not in left]
        return f"{self.name.format(self.spelled(gone[0]) if gone else '..')} is gone"


@dataclass(frozen=True)
class Item:
    """An item of a container. name: how a message calls it; position: its place in `Guards.known`;
    key, write: how to put a value there."""

    name: str
    position: int
    key: Any
    write: Write | None

    def put(self, value: Any) -> None:
        """Put a value there."""
        assert self.write is not None
        self.write(self.key, value)


class Guards:
    """What is reached from `roots`, (name, value) each, when this is made.

    cells: every tensor found. An object may hold numbers that change from call to
    call, for which it keeps tensors. Its method `before_call` brings these up to date (`refreshers`
    has them, for the caller to call), and `unguarded` lists the numbers: (dict, key) each. names:
    of globals and attributes in the code; opaque: whether code was found that is not looked into,
    other than that of treadle and of the standard library. moved: the items that `changes` found to
    be other floats; floats: the items that are run-time numbers (`promote`).
    """

    def __init__(self, roots: Iterable[tuple[str, Any]]) -> None:
        self.views: list[View] = []
        self.cells: list[Cell] = []
        self.refreshers: list[Callable[[], None]] = []
        self.moved: set[str] = set()
        self.floats: list[Item] = []
        self.names: set[str] = set()
        self.opaque = False
        self.unguarded: list[tuple[dict[Any, Any], Any]] = []
        self._seen: dict[int, Any] = {}
        self._pending = deque(roots)
        while self._pending:
            name, value = self._pending.popleft()
            self._visit(name, value)
        self._reads = [view.read for view in self.views if view.read is not None]
        self._lives = [*(view.live for view in self.views if view.live is not None), _THE_END]
        self.views.sort(key=lambda view: view.live is not None)  # in the order of `_now`
        del self._seen, self._pending
        self._free = self._find_unguarded()
        self.accept()

    # ---- the question ----------------------------------------------------------------------------
    def _find_unguarded(self) -> list[tuple[int, dict[Any, Any], Any]]:
        """(position, dict, key) of each item that may change."""
        found = []
        position = 0
        for view in self.views:
            for held, key in self.unguarded:
                if held is view.names:
                    found.append((position + view.keys.index(key), held, key))
            position += len(view.keys)
        return found

    def _now(self) -> Iterator[Any]:
        """Every item as it is now, and END."""
        if not self._reads:
            return chain.from_iterable(self._lives)
        return chain(*[read() for read in self._reads], *self._lives)

    def hold(self) -> bool:
        """Whether every item is the same object as at the trace."""
        if not self.views:
            return True
        for position, held, key in self._free:
            self.known[position] = held.get(key)
        if not self.floats:
            return all(map(is_, self._now(), self.known))  # (END stands at the same place in both)
        now = list(self._now())
        if len(now) != len(self.known):
            return False
        for item in self.floats:
            if type(now[item.position]) is not float:
                return False
            self.known[item.position] = now[item.position]
        return all(map(is_, now, self.known))

    def changes(self) -> tuple[dict[Cell, Cell], str]:
        """({tensor: the one in its place now}, what else has changed, in words, or "").

        A plain value that is another object of equal value is taken for unchanged from now on.
        """
        replaced: dict[int, tuple[Cell, Cell]] = {}
        kept: set[int] = set()
        reason = ""
        self.moved = set()
        for view in self.views:
            if len(view.now()) != len(view.keys):
                return {}, view.growth()
        for item, old, new in self._items():
            if isinstance(old, Cell) and isinstance(new, Cell):
                if old is new:
                    kept.add(id(old))
                elif replaced.setdefault(id(old), (old, new))[1] is not new:
                    return {}, f"{item.name} is another tensor"
            elif old is not new and not same(old, new):
                reason = reason or f"{item.name} was {shown(old)} and is {shown(new)}"
                if not (type(old) is float and type(new) is float):
                    return {}, reason
                self.moved.add(item.name)
            else:
                self.known[item.position] = new
        if not kept.isdisjoint(replaced):
            reason = reason or "a tensor was replaced in one of the places that hold it"
        return dict(replaced.values()), reason

    def _items(self) -> Iterator[tuple[Item, Any, Any]]:
        """Every item of the containers that have not grown, with its value before and now."""
        position = 0
        for view in self.views:
            now = view.now()
            if len(now) == len(view.keys):
                for offset, (key, new) in enumerate(zip(view.keys, now, strict=True)):
                    item = Item(view.item(offset), position + offset, key, view.write)
                    yield item, self.known[item.position], new
            position += len(view.keys)

    def rebound(self) -> list[tuple[Item, Cell]]:
        """The items that are other tensors than before, with these."""
        found = [each for each in self._items() if each[1] is not each[2]]
        return [(item, new) for item, _, new in found if isinstance(new, Cell)]

    # ---- floats that change ----------------------------------------------------------------------
    def promote(self, names: set[str]) -> None:
        """The floats with these names are run-time numbers: they may change."""
        self.floats = [
            item
            for item, _, now in self._items()
            if item.name in names and type(now) is float and item.write is not None
        ]

    def float_values(self) -> list[float]:
        """The run-time numbers as `hold` has seen them last."""
        return [self.known[item.position] for item in self.floats]

    def put(self, values: Sequence[Any]) -> None:
        """Put these in the place of the run-time numbers."""
        for item, value in zip(self.floats, values, strict=True):
            item.put(value)

    def take_back(self, values: Sequence[Any]) -> None:
        """Put the run-time numbers back where these values still are."""
        now = list(self._now())
        for item, value in zip(self.floats, values, strict=True):
            if now[item.position] is value:
                item.put(self.known[item.position])

    def accept(self) -> None:
        """What is there now is what is expected from now on."""
        self.known = list(self._now())

    # ---- the walk --------------------------------------------------------------------------------
    def _visit(self, name: str, value: Any) -> None:
        if isinstance(value, PLAIN):
            return
        if id(value) in self._seen:
            return
        self._seen[id(value)] = value
        if isinstance(value, Cell):
            self.cells.append(value)
            return
        if isinstance(value, CLOSED):
            return
        for kind, look in _LOOKS:
            if isinstance(value, kind):
                look(self, name, value)
                return
        self._object(name, value)

    def _add(
        self,
        name: str,
        names: Iterable[Any],
        live: Iterable[Any] | None = None,
        read: Read | None = None,
        write: Write | None = None,
    ) -> None:
        """Guard the items of a container and look into them; see `View`."""
        view = View(name, names, live, read, write)
        self.views.append(view)
        free = [key for held, key in self.unguarded if held is names]
        for position, value in enumerate(view.now()):
            if view.keys[position] not in free:
                self._pending.append((view.item(position), value))

    def _mapping(self, name: str, value: dict[Any, Any]) -> None:
        if len(value) <= LARGE or not _all_plain(value.values()):
            write = value.__setitem__
            self._add(f"{_braces(name)}[{{}}]", value, value.values(), write=write)
        else:
            self._add(f"len({_braces(name)})", [""], read=lambda: (len(value),))

    def _sequence(self, name: str, value: Any) -> None:
        if len(value) <= LARGE or not _all_plain(value):
            write = getattr(value, "__setitem__", None)
            self._add(f"{_braces(name)}[{{}}]", _Positions(value), value, write=write)
        else:
            self._add(f"len({_braces(name)})", [""], read=lambda: (len(value),))

    def _tuple(self, name: str, value: tuple[Any, ...]) -> None:
        """Look into the items; they are always the same."""
        self._pending += [(f"{name}[{n}]", each) for n, each in enumerate(value)]

    def _function(self, name: str, value: types.FunctionType) -> None:
        cells = value.__closure__ or ()
        if cells:
            names = value.__code__.co_freevars
            read = functools.partial(_contents, cells)
            self._add("{}", names, read=read, write=functools.partial(_fill, cells, names))
        module = str(value.__globals__.get("__name__"))
        if _is_library(module):
            self.opaque = self.opaque or _top(module) not in (*sys.stdlib_module_names, "treadle")
            return
        named = names_in(value.__code__)
        self.names |= named
        self._globals(value.__globals__, named)
        for defaults in (value.__defaults__, value.__kwdefaults__):
            if defaults:
                self._pending.append((f"a default of {value.__name__}", defaults))

    def _globals(self, own: dict[str, Any], named: frozenset[str]) -> None:
        """Guard the globals that code names, and of the user's modules among them the attributes
        that it names."""
        names = [name for name in sorted(named) if name in own]
        if names:
            read = functools.partial(_items, own, names)
            self._add("{}", names, read=read, write=own.__setitem__)
        for name in names:
            module = own[name]
            if isinstance(module, types.ModuleType) and not _is_library(module.__name__):
                inside = vars(module)
                found = [each for each in sorted(named) if each in inside]
                if found:
                    read = functools.partial(_items, inside, found)
                    self._add(f"{name}.{{}}", found, read=read)

    def _module(self, name: str, value: types.ModuleType) -> None:
        """Nothing: what the code names of it is found with the globals of the code."""

    def _method(self, name: str, value: types.MethodType) -> None:
        self._pending.append((name, value.__func__))
        self._pending.append((name, value.__self__))

    def _partial(self, name: str, value: functools.partial[Any]) -> None:
        for part in (value.func, value.args, value.keywords):
            self._pending.append((name, part))

    def _class(self, name: str, value: type) -> None:
        """Guard what a class of the user holds, and look into its functions."""
        for kind in value.__mro__:
            if not _is_library(kind.__module__) and (kind is value or id(kind) not in self._seen):
                self._seen[id(kind)] = kind
                held = vars(kind)
                self._add(f"{kind.__name__}.{{}}", held, held.values())

    def _descriptor(self, name: str, value: Any) -> None:
        for part in ("__func__", "fget"):
            if hasattr(value, part):
                self._pending.append((name, getattr(value, part)))

    def _object(self, name: str, value: Any) -> None:
        """Guard the attributes of an object, unless it belongs to a library."""
        wrapped = getattr(value, "__wrapped__", None)
        if isinstance(wrapped, types.FunctionType):
            self._pending.append((name, wrapped))
        kind = type(value)
        if _is_library(kind.__module__) and not kind.__module__.startswith(OPEN_LIBRARIES):
            return
        if hasattr(kind, "before_call"):
            self.refreshers.append(value.before_call)
            self.unguarded += value.unguarded()
        held = getattr(value, "__dict__", None)
        if held is not None:
            write = held.__setitem__
            self._add(f"{_braces(name)}.{{}}", held, held.values(), write=write)
        slots = _slots(kind)
        if slots:
            read = functools.partial(_attributes, value, slots)
            write = functools.partial(setattr, value)
            self._add(f"{_braces(name)}.{{}}", slots, read=read, write=write)
        self._pending.append((kind.__name__, kind))


_LOOKS: tuple[tuple[Any, Callable[[Guards, str, Any], None]], ...] = (
    (dict, Guards._mapping),
    ((tuple, frozenset), Guards._tuple),
    ((list, deque, set), Guards._sequence),
    (types.FunctionType, Guards._function),
    (types.MethodType, Guards._method),
    (functools.partial, Guards._partial),
    (types.ModuleType, Guards._module),
    (type, Guards._class),
    ((staticmethod, classmethod, property, functools.cached_property), Guards._descriptor),
)


# ---- small questions -----------------------------------------------------------------------------
def same(old: Any, new: Any) -> bool:
    """Whether two plain values are equal and of one type."""
    return type(old) is type(new) and isinstance(old, PLAIN) and bool(old == new)


def shown(value: Any) -> str:
    """A value as a message shows it."""
    if isinstance(value, Cell):
        return f"a tensor of shape {value.node.shape}"
    if isinstance(value, Missing):
        return "not there"
    return f"{value!r:.60}" if isinstance(value, PLAIN) else f"a {type(value).__name__}"


def names_in(code: types.CodeType) -> frozenset[str]:
    """The names of globals and attributes in a function's code and in the functions inside it."""
    found: set[str] = set()
    stack = [code]
    while stack:
        each = stack.pop()
        found.update(each.co_names)
        stack += [inner for inner in each.co_consts if isinstance(inner, types.CodeType)]
    return frozenset(found)


class _Positions:
    """The positions in a sequence, however long it is now."""

    def __init__(self, sequence: Any) -> None:
        self.sequence = sequence

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.sequence)))


def _braces(name: str) -> str:
    """A name that may hold braces, for `str.format`."""
    return name.replace("{", "{{").replace("}", "}}")


def _items(mapping: dict[str, Any], names: list[str]) -> Iterator[Any]:
    return map(mapping.get, names, repeat(MISSING))


def _all_plain(values: Iterable[Any]) -> bool:
    return all(isinstance(value, PLAIN) for value in values)


def _contents(cells: tuple[types.CellType, ...]) -> list[Any]:
    try:
        return list(map(_content, cells))
    except ValueError:  # a variable has no value yet
        return [MISSING if cell == _NO_VALUE else cell.cell_contents for cell in cells]


def _fill(cells: tuple[types.CellType, ...], names: tuple[str, ...], name: str, value: Any) -> None:
    cells[names.index(name)].cell_contents = value


def _attributes(value: Any, slots: list[str]) -> Iterator[Any]:
    return (getattr(value, slot, MISSING) for slot in slots)


def _slots(kind: type) -> list[str]:
    found: list[str] = []
    for base in kind.__mro__:
        own = vars(base).get("__slots__", ())
        found += [own] if isinstance(own, str) else list(own)
    return [name for name in found if name not in ("__dict__", "__weakref__")]


def _top(module: str) -> str:
    return module.partition(".")[0]


@functools.cache
def _is_library(module: str | None) -> bool:
    """Whether a module belongs to the standard library, to treadle or to an installed package."""
    if module is None:
        return False
    top = _top(module)
    if top == "__main__":
        return False
    if top in sys.stdlib_module_names or top == "treadle":
        return True
    found = sys.modules.get(module)
    return "site-packages" in (getattr(found, "__file__", None) or "")
