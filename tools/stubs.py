"""What is made from the decorators of public functions: the types of Tensor's methods,
`treadle/vocabulary.pyi`, and the file of public names, `treadle/graph/names.txt`.

    python tools/stubs.py             print the stub
    python tools/stubs.py --write     renew both files

A public function is written on nodes, and its signature says so. The stub says what the method
takes (`Array` for a node, `Operand` where a number may stand for one) and that it gives Tensors. It
refuses nothing that runs: the other spellings of arguments are in it too.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import inspect
import json
import pkgutil
import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from treadle import graph, methods
from treadle.graph import results
from treadle.graph.linalg import results as of_matrices
from treadle.graph.public import NAMES, TABLES, Public, other_spellings

STUB = Path(methods.__file__).with_name("vocabulary.pyi")
WIDTH = 100
HEAD = '''"""The methods of Tensor that come from the table of public names.

Made by `tools/stubs.py --write`.
"""

import builtins
from collections.abc import Sequence
from typing import Any, TypeAlias, overload

import numpy as np

from treadle.dims import Dim
from treadle.graph.linalg.results import (
    {of_matrices},
)
from treadle.graph.results import (
    {of_others},
)
from treadle.graph.windows import Padding, Sizes
from treadle.ir.dtype import DType
from treadle.tensor import Tensor

# The class has methods named `bool`, `float` and `int`; there they are `builtins.int` etc.
Number: TypeAlias = bool | int | float
Array: TypeAlias = Tensor | np.ndarray[Any, Any] | np.generic
Operand: TypeAlias = Array | Number | Dim
Size: TypeAlias = int | Dim
DTypeLike: TypeAlias = DType | str | type | np.dtype[Any]

class Vocabulary:
    """The public names as methods; Tensor is its one subclass."""
'''

# what stands in the annotations of functions of nodes -> what it is for who calls the method
ARGUMENTS = {"Node": "Array", "Dim": "Size", "DType": "DTypeLike"}
RESULTS = {"Node": "Tensor", "bool": "builtins.bool"}
# kind of a public name -> the keyword arguments that the face adds (`methods.py`)
ADDED = {
    "keyed": ["random_key: Any = ..."],
    "creates": ["device: str | None = None", "requires_grad: builtins.bool = False"],
    "like": ["device: str | None = None", "requires_grad: builtins.bool = False"],
    "random": [
        "device: str | None = None",
        "generator_key: builtins.int | None = None",
        "requires_grad: builtins.bool = False",
    ],
}
# .. and those that it gives by itself
GIVEN = {"reads": "read"}
DECORATORS = {"property": "property", "creates": "staticmethod", "random": "staticmethod"}
HIDDEN = ("bool", "float", "int")  # types with the name of a method


def entries() -> list[Public]:
    """Every public name of the source as it is now, by name. Imports every module of `graph/`."""
    for module in pkgutil.walk_packages(graph.__path__, f"{graph.__name__}."):
        importlib.import_module(module.name)
    found = {entry for table in TABLES.values() for entry in table.values()}
    return sorted((entry for entry in found if entry.written), key=lambda entry: entry.row)


ENTRIES = entries()
METHODS = {
    name: entry
    for entry in ENTRIES
    if "method" in entry.tables
    for name in (entry.name, *entry.aliases)
}


def names() -> str:
    """The whole text of `treadle/graph/names.txt`."""
    return "".join(f"{entry.row}\n" for entry in ENTRIES)


class Words(ast.NodeTransformer):
    """Replaces names in an annotation."""

    def __init__(self, table: dict[str, str]) -> None:
        self.table = table

    def visit_Name(self, node: ast.Name) -> ast.AST:
        name = self.table.get(node.id, node.id)
        return ast.Name(f"builtins.{name}" if name in HIDDEN else name)


@dataclass(frozen=True)
class Arguments:
    """What a method takes, as text: before and after the `*`."""

    positional: list[str]
    keywords: list[str]

    def of_self(self) -> Arguments:
        """With the tensor itself in place of the first, which may be one of `*tensors`."""
        first, *others = self.positional
        return Arguments([first if first.startswith("*") else "self", *others], self.keywords)

    def without_first(self) -> Arguments:
        """Without the first."""
        return Arguments(self.positional[1:], self.keywords)

    def with_keywords(self, more: Sequence[str]) -> Arguments:
        """With these keywords, in place of what has their names."""
        names = [word.partition(":")[0] for word in more]
        kept = [word for word in self.keywords if word.partition(":")[0] not in names]
        return Arguments(self.positional, [*kept, *more])

    def listed(self) -> list[str]:
        """As they stand between parentheses."""
        starred = any(word.startswith("*") for word in self.positional)
        bar = ["*"] if self.keywords and not starred else []
        return [*self.positional, *bar, *self.keywords]


def annotation(written: str, table: dict[str, str]) -> str:
    """An annotation of a function of nodes as the stub writes it."""
    return ast.unparse(Words(table).visit(ast.parse(written, mode="eval")))


def argument(parameter: inspect.Parameter) -> str:
    """One argument: `name: type = default`."""
    type_of = annotation(parameter.annotation, ARGUMENTS)
    default = parameter.default
    if default is inspect.Parameter.empty:
        return f"{parameter.name}: {type_of}"
    if default is None and type_of not in ("Any", "Sizes") and not type_of.endswith("None"):
        type_of += " | None"
    plain = default is None or isinstance(default, bool | int | float | str)
    shown = json.dumps(default) if isinstance(default, str) else repr(default) if plain else "..."
    return f"{parameter.name}: {type_of} = {shown}"


def arguments(entry: Public) -> list[Arguments]:
    """What a public function takes. The other spelling of an argument that may be left out is one
    keyword more; of one that must be given, it makes a signature of its own."""
    parameters = [
        parameter
        for parameter in inspect.signature(inspect.unwrap(entry.function)).parameters.values()
        if parameter.name != GIVEN.get(entry.kind)
    ]
    other_names = other_spellings(entry.function).items()
    found = [Arguments([], [])]
    spelled, needed = [], []
    for parameter in parameters:
        others = [name for name, own in other_names if own == parameter.name]
        type_of = annotation(parameter.annotation, ARGUMENTS)
        if parameter.kind is parameter.VAR_POSITIONAL:
            found[0].positional.append(f"*_{argument(parameter)}")
            others.insert(0, parameter.name)
        elif parameter.kind is parameter.KEYWORD_ONLY:
            found[0].keywords.append(argument(parameter))
        else:
            found[0].positional.append(argument(parameter))
            if parameter.default is parameter.empty:
                place = len(found[0].positional) - 1
                needed += [(place, f"{name}: {type_of}") for name in others]
                continue
        spelled += [f"{name}: {type_of} = ..." for name in others]
    found[0].keywords.extend(spelled)
    for place, word in needed:
        before, after = found[0].positional[:place], found[0].positional[place + 1 :]
        found.append(Arguments(before, [word, *after, *found[0].keywords]))
    return found


def definition(
    name: str,
    takes: Arguments,
    gives: str,
    doc: str,
    decorators: Sequence[str] = (),
    remark: str = "",
) -> str:
    """The text of one method, formatted as ruff does."""
    words = takes.listed()
    end = f") -> {gives}:"
    lines = [f"def {name}({', '.join(words)}{end}"]
    if len(lines[0]) > WIDTH - 4:
        inside = f"    {', '.join(words)}"
        rows = [inside] if len(inside) <= WIDTH - 4 else [f"    {word}," for word in words]
        lines = [f"def {name}(", *rows, end]
    if remark:
        lines[-1] += f"  # {remark}"
    lines = [f"@{decorator}" for decorator in decorators] + lines
    lines += textwrap.indent(textwrap.fill(f'"""{doc}"""', WIDTH - 8), " " * 4).splitlines()
    return textwrap.indent("\n".join(lines), " " * 4)


def definitions(
    name: str, signatures: Sequence[Arguments], gives: str, doc: str, decorator: str = ""
) -> Iterator[str]:
    """The text of one method: as many overloads as it has signatures."""
    decorators = ["overload"] * (len(signatures) > 1) + [decorator] * bool(decorator)
    for takes in signatures:
        yield definition(name, takes, gives, doc, decorators)


def summary(entry: Public) -> str:
    """The first sentence of what the documentation says."""
    paragraph = " ".join(inspect.cleandoc(entry.doc).partition("\n\n")[0].split())
    return re.split(r"(?<=[.)]) (?=[A-Z`])", paragraph, maxsplit=1)[0]


def from_table(name: str, entry: Public) -> Iterator[str]:
    """A method, property or static creator."""
    signatures = [takes.with_keywords(ADDED.get(entry.kind, ())) for takes in arguments(entry)]
    if entry.kind == "random":
        signatures = [takes.without_first() for takes in signatures]  # the face draws the key
    decorator = DECORATORS.get(entry.kind, "")
    if decorator != "staticmethod":
        signatures = [takes.of_self() for takes in signatures]
    gives = annotation(entry.results, RESULTS)
    yield from definitions(name, signatures, gives, summary(entry), decorator)


def in_place(name: str, entry: Public) -> Iterator[str]:
    """The form of a method that puts the result into the tensor."""
    signatures = [takes.of_self() for takes in arguments(entry)]
    doc = f"`{name}`, with the result put into this tensor. Returns it."
    yield from definitions(f"{name}_", signatures, "Tensor", doc)


def writes() -> Iterator[str]:
    """The methods that work in place and have no other form."""
    for function in methods.WRITES:
        parameters = list(inspect.signature(function).parameters.values())[1:]
        takes = Arguments(["self", *map(argument, parameters)], [])
        doc = " ".join(inspect.cleandoc(function.__doc__ or "").split())
        yield definition(function.__name__, takes, "Tensor", doc)


def casts() -> Iterator[str]:
    """The methods that cast to one dtype."""
    for name, dtype in methods.CASTS.items():
        yield definition(name, Arguments(["self"], []), "Tensor", f"This tensor as {dtype}.")


def operators() -> Iterator[str]:
    """The methods behind Python's operators."""
    for short, name in methods.OPERATORS.items():
        takes = operands(name)
        yield definition(f"__{short}__", takes, "Tensor", summary(METHODS[name]))
        yield definition(f"__r{short}__", takes, "Tensor", f"`{name}` with the operands swapped.")
        yield definition(f"__i{short}__", takes, "Tensor", f"`{name}_`.")
    for short, name in methods.COMPARISONS.items():
        takes, remark = operands(name), ""
        if short in ("eq", "ne"):
            remark = "type: ignore[override]  # bools, where object gives one"
        yield definition(f"__{short}__", takes, "Tensor", summary(METHODS[name]), remark=remark)
    for short, name in methods.UNARY.items():
        yield definition(f"__{short}__", Arguments(["self"], []), "Tensor", summary(METHODS[name]))


def operands(name: str) -> Arguments:
    """What the operator of a binary function takes."""
    return Arguments([*arguments(METHODS[name])[0].of_self().positional[:2], "/"], [])


def stub() -> str:
    """The whole text of `treadle/vocabulary.pyi`."""
    used = {word for entry in METHODS.values() for word in re.findall(r"\w+", entry.results)}
    named = [sorted(used & set(vars(module))) for module in (of_matrices, results)]
    imports = dict(zip(("of_matrices", "of_others"), map(",\n    ".join, named)))
    parts = [HEAD.format(**imports).rstrip("\n")]
    for name, entry in METHODS.items():
        parts += from_table(name, entry)
        if methods.has_in_place(entry):
            parts += in_place(name, entry)
    return "\n\n".join([*parts, *casts(), *writes(), *operators()]) + "\n"


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="Write the types of Tensor's methods.")
    parser.add_argument("--write", action="store_true", help=f"renew {STUB.name} and {NAMES.name}")
    if parser.parse_args().write:
        NAMES.write_text(names(), encoding="utf-8")
        STUB.write_text(stub(), encoding="utf-8")
    else:
        print(stub(), end="")


if __name__ == "__main__":
    main()
