"""The table of public names: where each lives, what defines it, and whether it has a gradient.

Functions are written on nodes, `@public(...)` files them here, and the face makes from the table
the methods of Tensor, the functions of the namespace, their docs and their parity tests. A function
takes its tensors first and plain Python arguments after; one spelling of each argument is enough:
`axis` for `dim` and `keepdims` for `keepdim` are accepted here, for all of them.

Most names are rare, and a program uses a few. So the table is full before anything that it names
is imported: `names.txt` says every row, in the words of its decorator (`tools/stubs.py --write`
writes it, a test compares). The module of a row is loaded when its function is first asked for.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from inspect import CO_VARARGS, cleandoc, unwrap
from pathlib import Path
from types import CodeType
from typing import Any, TypeVar

import numpy as np

from treadle.extras import load
from treadle.graph.examples import EXAMPLES
from treadle.graph.shapes import plain

NAMES = Path(__file__).with_name("names.txt")
NOT_CURRENT = f"treadle/graph/{NAMES.name} is not current: python tools/stubs.py --write"

SOURCES = ("PyTorch", "Array API", "NumPy", "tinygrad", "treadle")
GRADIENTS = ("yes", "no", "int")
# our name of an argument -> what else users call it
SPELLINGS = {
    "x": ("input", "A"),
    "x1": ("input", "input1"),
    "x2": ("other", "input2"),
    "ids": ("input",),
    "p": ("input",),
    "A": ("input",),
    "B": ("b", "other"),
    "arrays": ("tensors",),
    "split_size": ("split_size_or_sections",),
    "indices_or_sections": ("indices", "sections", "tensor_indices_or_sections"),
    "dim": ("axis",),
    "axis": ("dim",),
    "dims": ("dim", "axes", "axis"),
    "keepdim": ("keepdims",),
    "keepdims": ("keepdim",),
    "shape": ("size",),
    "size": ("shape",),
    "dim0": ("axis0",),
    "dim1": ("axis1",),
    "dim2": ("axis2",),
    "repeats": ("sizes", "dims"),
    "shifts": ("shift",),
    "diagonal": ("k",),
    "first": ("condition",),
    "second": ("other",),
    "end": ("stop",),
    "steps": ("num",),
}

TENSORS = frozenset(("Node", "Operand", "Any"))  # in types of arguments that may hold tensors

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(eq=False)
class Public:
    """A public name.

    module: where it is registered, as a name below `treadle.graph`. tables: those that hold it.
    source: the project or standard whose semantics it follows. gradient: "yes"; "no" (the
    derivative is zero almost everywhere, or there is none); "int" (the result is an integer or a
    bool). kind: "method"; "property" (a method without parentheses); "creates" (takes no tensor: a
    static method); "like" (creates, as the tensor that is its first argument); "random" (creates,
    and its first argument is a key that the face draws); "keyed" (a method that may draw: the face
    gives its keyword `random_key` a function that does); "reads" (a method whose result's size may
    depend on values: the face gives its keyword `read` a function that runs and reads them, see
    `masks.py`). results: what it returns, as its definition writes it: `Node`, or a tuple of nodes.
    """

    name: str
    module: str
    tables: tuple[str, ...]
    source: str
    gradient: str
    kind: str
    results: str
    aliases: tuple[str, ...]
    written: Callable[..., Any] | None = None  # once the module is loaded

    @property
    def function(self) -> Callable[..., Any]:
        """What the face calls, with nodes for tensors. Loads the module where it is written."""
        if self.written is None:
            load(f"{__package__}.{self.module}")
        if self.written is None:
            raise RuntimeError(f"{self.name}: {NOT_CURRENT}")
        return self.written

    @cached_property
    def spellings(self) -> dict[str, str]:
        """What users may write for each argument -> its name."""
        own = _arguments(self.function)
        return {**other_spellings(self.function), **dict(zip(own, own))}

    @cached_property
    def numbers(self) -> frozenset[str]:
        """The arguments that hold no tensor: sizes, axes, counts, settings."""
        types = unwrap(self.function).__annotations__
        return frozenset(
            own
            for own in _arguments(self.function)
            if TENSORS.isdisjoint(re.findall(r"\w+", types.get(own, "Any")))
        )

    def number(self, at: int | str, value: Any) -> Any:
        """An argument, by place or name. NumPy's scalars count as tensors of their dtype only
        where there can be a tensor; elsewhere they are Python's numbers."""
        if not isinstance(value, (np.generic, tuple, list)):
            return value
        if isinstance(at, int):
            names = _arguments(self.function)
            at = names[min(at, len(names) - 1)]
        return plain(value) if self.spellings.get(at, at) in self.numbers else value

    def __call__(self, *args: Any, **named: Any) -> Any:
        """The function, of nodes, whose keyword arguments may have another spelling."""
        args, named = self.called(args, named)
        return self.function(*args, **named)

    def called(
        self, args: tuple[Any, ...], named: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Arguments by our names for them. What is taken as `*shape` or `*dims`, or by position
        alone, may be given by that keyword."""
        given: dict[str, str] = {}
        for key in named:
            own = self.spellings.get(key, key)
            if own in given:
                both = " and ".join(sorted((key, given[own]), key=own.__ne__))
                raise TypeError(f"{self.name}: {both} are one argument; give one of them")
            given[own] = key
        values = {own: named[key] for own, key in given.items()}
        code: CodeType = unwrap(self.function).__code__
        for own in code.co_varnames[len(args) : code.co_posonlyargcount]:
            if own in values:
                args = (*args, values.pop(own))
        if code.co_flags & CO_VARARGS and _arguments(self.function)[-1] in values:
            args = (*args, values.pop(_arguments(self.function)[-1]))
        return args, values

    @property
    def doc(self) -> str:
        """What it does, in the words of its docstring."""
        return self.function.__doc__ or ""

    @property
    def row(self) -> str:
        """Its line in the file of names."""
        tables, aliases = ",".join(self.tables), ",".join(self.aliases)
        words = (self.name, self.module, tables, self.source, self.gradient, self.kind)
        return "\t".join((*words, self.results, aliases))

    @staticmethod
    def of_row(row: str) -> Public:
        """The entry that a line of the file describes."""
        name, module, tables, source, gradient, kind, results, aliases = row.split("\t")
        others = tuple(aliases.split(",")) if aliases else ()
        return Public(
            name, module, tuple(tables.split(",")), source, gradient, kind, results, others
        )


METHODS: dict[str, Public] = {}  # of Tensor, aliases too
NAMESPACE: dict[str, Public] = {}  # treadle.name, aliases too
LINALG: dict[str, Public] = {}  # treadle.linalg.name
FFT: dict[str, Public] = {}  # treadle.fft.name
SPECIAL: dict[str, Public] = {}  # treadle.special.name
TABLES = {
    "method": METHODS,
    "namespace": NAMESPACE,
    "linalg": LINALG,
    "fft": FFT,
    "special": SPECIAL,
}


def file_under_its_names(entry: Public) -> None:
    """Put an entry into its tables. ValueError if another that is written has one of its names."""
    for table in entry.tables:
        for each in (entry.name, *entry.aliases):
            before = TABLES[table].get(each)
            if before is not None and before.written is not None:
                raise ValueError(f"the public name {each} is given twice")
            TABLES[table][each] = entry


# row -> its entry, until its module is loaded
EXPECTED = {row: Public.of_row(row) for row in NAMES.read_text(encoding="utf-8").splitlines()}
for _entry in EXPECTED.values():
    file_under_its_names(_entry)


def public(
    name: str,
    *,
    source: str,
    method: bool = True,
    namespace: bool = False,
    linalg: bool = False,
    fft: bool = False,
    special: bool = False,
    aliases: tuple[str, ...] = (),
    gradient: str = "yes",
    kind: str = "method",
    module: str | None = None,
) -> Callable[[F], F]:
    """File a function under its public name; the function itself is returned unchanged, so that
    the library's own calls cost nothing more. module: who registers it, if another wrote it."""
    wanted = (method, namespace, linalg, fft, special)
    tables = tuple([table for table, holds in zip(TABLES, wanted, strict=True) if holds])

    def register(function: F) -> F:
        if name in EXAMPLES:
            function.__doc__ = f"{cleandoc(function.__doc__ or '')}\n{EXAMPLES[name]}"
        own = unwrap(function)
        own.__qualname__ = name  # Python's own messages ("missing 1 argument") say it
        place = (module or own.__module__).removeprefix(f"{__package__}.")
        results = str(own.__annotations__.get("return", ""))
        described = Public(name, place, tables, source, gradient, kind, results, aliases)
        entry = EXPECTED.pop(described.row, described)
        file_under_its_names(entry)  # the file may lack it, or have an old row of that name
        entry.written = function
        return function

    return register


def other_spellings(function: Callable[..., Any]) -> dict[str, str]:
    """What else users may write for the arguments of a function, each with our name for it."""
    arguments = _arguments(function)
    # (what two of them may be called is the first)
    pairs = {other: own for own in reversed(arguments) for other in SPELLINGS.get(own, ())}
    return {other: own for other, own in pairs.items() if other not in arguments}


def _arguments(function: Callable[..., Any]) -> tuple[str, ...]:
    """The names of a function's arguments; `*arguments` is the last."""
    code: CodeType = unwrap(function).__code__
    count = code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & CO_VARARGS)
    return code.co_varnames[:count]
