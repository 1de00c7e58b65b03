"""What is made from the decorators of public functions: the types of Tensor's methods,
`treadle/vocabulary.pyi`, those of the functions of the namespaces, `treadle/functions.pyi`,
`linalg.pyi`, `fft.pyi` and `special.pyi`, and the file of public names, `treadle/graph/names.txt`.

    python tools/stubs.py             say which files are not current
    python tools/stubs.py --write     renew them

A public function is written on nodes, and its signature says so. The stub says what the method
takes (`Array` for a node, `Operand` where a number may stand for one) and that it gives Tensors. It
refuses nothing that runs, but a first argument by PyTorch's name `input`: the other spellings of
arguments are in it too.
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
from types import ModuleType

from treadle import graph, methods
from treadle.graph import counting, results
from treadle.graph.linalg import results as of_matrices
from treadle.graph.public import (
    FFT,
    LINALG,
    NAMES,
    NAMESPACE,
    SPECIAL,
    TABLES,
    Public,
    other_spellings,
)
from treadle.graph.public import METHODS as METHOD_TABLE
from treadle.special import OF_METHODS

FOLDER = Path(methods.__file__).parent
WIDTH = 100
CLASS = '''\
# The class has methods named `bool`, `float` and `int`; there they are `builtins.int` etc.
Number: TypeAlias = bool | int | float
Array: TypeAlias = Tensor | np.ndarray[Any, Any] | np.generic
Operand: TypeAlias = Array | Number | Dim
Size: TypeAlias = int | Dim
DTypeLike: TypeAlias = DType | str | type | np.dtype[Any]

class Vocabulary:
    """The public names as methods; Tensor is its one subclass."""
'''


def classes(module: ModuleType) -> list[str]:
    """The names of the classes of a module, as ruff sorts them."""
    found = [name for name, each in vars(module).items() if inspect.isclass(each)]
    return sorted(
        [n for n in found if vars(module)[n].__module__ == module.__name__], key=str.lower
    )


# module -> the names that a stub may use
IMPORTS = {
    "collections.abc": ["Sequence"],
    "typing": ["Any", "TypeAlias", "overload"],
    "treadle.dims": ["Dim"],
    "treadle.graph.counting": classes(counting),
    "treadle.graph.linalg.norms": ["Order"],
    "treadle.graph.linalg.results": classes(of_matrices),
    "treadle.graph.results": classes(results),
    "treadle.graph.shapes": ["Axes"],
    "treadle.graph.windows": ["Padding", "Sizes"],
    "treadle.ir.dtype": ["DType"],
    "treadle.tensor": ["Tensor"],
    "treadle.vocabulary": ["Array", "DTypeLike", "Number", "Operand", "Size"],
}
# stub -> what its functions are, and their table
FUNCTIONS = {
    "functions": ("The functions of the namespace `treadle`", NAMESPACE),
    "linalg": ("The functions of `treadle.linalg`", LINALG),
    "fft": ("The functions of `treadle.fft`", FFT),
    "special": (
        "The functions of `treadle.special`",
        SPECIAL | {name: METHOD_TABLE[method] for name, method in OF_METHODS.items()},
    ),
}

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
    if default is None and type_of not in ("Any", "Axes", "Sizes") and not type_of.endswith("None"):
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
    given_first = entry.kind not in ("creates", "random") and parameters[0]
    for parameter in parameters:
        others = [name for name, own in other_names if own == parameter.name]
        if parameter is given_first:
            others = []  # the tensor itself, by position
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
    indent: int = 4,
) -> str:
    """The text of one method or function, formatted as ruff does."""
    words = takes.listed()
    end = f") -> {gives}:"
    lines = [f"def {name}({', '.join(words)}{end}"]
    width = WIDTH - indent
    if len(lines[0]) > width:
        inside = f"    {', '.join(words)}"
        rows = [inside] if len(inside) <= width else [f"    {word}," for word in words]
        lines = [f"def {name}(", *rows, end]
    if remark:
        lines[-1] += f"  # {remark}"
    lines = [f"@{decorator}" for decorator in decorators] + lines
    lines += textwrap.indent(textwrap.fill(f'"""{doc}"""', width - 4), " " * 4).splitlines()
    return textwrap.indent("\n".join(lines), " " * indent)


def definitions(
    name: str,
    signatures: Sequence[Arguments],
    gives: str,
    doc: str,
    decorator: str = "",
    indent: int = 4,
) -> Iterator[str]:
    """The text of one method or function: as many overloads as it has signatures."""
    decorators = ["overload"] * (len(signatures) > 1) + [decorator] * bool(decorator)
    for takes in signatures:
        yield definition(name, takes, gives, doc, decorators, indent=indent)


def summary(entry: Public) -> str:
    """The first sentence of what the documentation says."""
    paragraph = " ".join(inspect.cleandoc(entry.doc).partition("\n\n")[0].split())
    return re.split(r"(?<=[.)]) (?=[A-Z`])", paragraph, maxsplit=1)[0]


def signatures_of(entry: Public) -> list[Arguments]:
    """What the function of a public name takes, with what the face adds."""
    found = [takes.with_keywords(ADDED.get(entry.kind, ())) for takes in arguments(entry)]
    if entry.kind == "random":
        return [takes.without_first() for takes in found]  # the face draws the key
    return found


def as_function(name: str, entry: Public) -> Iterator[str]:
    """A function of a namespace."""
    gives = annotation(entry.results, RESULTS)
    yield from definitions(name, signatures_of(entry), gives, summary(entry), indent=0)


def from_table(name: str, entry: Public) -> Iterator[str]:
    """A method, property or static creator."""
    signatures = signatures_of(entry)
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


def with_imports(doc: str, body: str) -> str:
    """The text of a stub: what it is, what it uses, and its definitions."""
    used = set(re.findall(r"\w+", body))
    made = {line.partition(":")[0] for line in body.splitlines() if ": TypeAlias" in line}
    groups = [["import builtins"] * ("builtins." in body), ["import numpy as np"] * ("np" in used)]
    groups.append([])
    for module, names in IMPORTS.items():
        chosen = [name for name in names if name in used - made]
        line = f"from {module} import {', '.join(chosen)}"
        if len(line) > WIDTH:
            line = f"from {module} import (\n    " + ",\n    ".join(chosen) + ",\n)"
        groups[2 if module.startswith("treadle") else 0] += [line] * bool(chosen)
    head = "\n\n".join("\n".join(group) for group in groups if group)
    return f'"""{doc}.\n\nMade by `tools/stubs.py --write`.\n"""\n\n{head}\n\n{body}\n'


def vocabulary() -> str:
    """The whole text of `treadle/vocabulary.pyi`."""
    parts = [CLASS.rstrip("\n")]
    for name, entry in METHODS.items():
        parts += from_table(name, entry)
        if methods.has_in_place(entry):
            parts += in_place(name, entry)
    body = "\n\n".join([*parts, *casts(), *writes(), *operators()])
    return with_imports("The methods of Tensor that come from the table of public names", body)


def of_functions(doc: str, table: dict[str, Public]) -> str:
    """The whole text of the stub of a namespace."""
    rows = sorted(table.items())
    return with_imports(doc, "\n\n".join(part for row in rows for part in as_function(*row)))


def files() -> dict[Path, str]:
    """Every file that is made, with its text."""
    return {
        NAMES: names(),
        FOLDER / "vocabulary.pyi": vocabulary(),
        **{FOLDER / f"{name}.pyi": of_functions(*row) for name, row in FUNCTIONS.items()},
    }


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="Write the types of methods and functions.")
    parser.add_argument("--write", action="store_true", help="renew the files")
    write = parser.parse_args().write
    for path, text in files().items():
        if write:
            path.write_text(text, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            print(f"{path} is not current")


if __name__ == "__main__":
    main()
