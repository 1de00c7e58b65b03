"""The pages of `docs/api/`, from the table of public names and the docstrings of what is exported.

    python tools/api_pages.py            say which pages are not current
    python tools/api_pages.py --write    write them

A family is a module or several in which functions are written. Each name stands with what it takes
(as in the type stubs), the source of its semantics, whether it has a gradient, and its docstring.
"""

from __future__ import annotations

import argparse
import inspect
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import stubs

import treadle
from treadle import nn
from treadle.graph.public import FFT, LINALG, METHODS, NAMESPACE, SPECIAL, Public

PAGES = Path(__file__).parent.parent / "docs" / "api"
TABLES = {
    "methods": ("Methods of Tensor", METHODS),
    "namespace": ("Functions of `treadle`", NAMESPACE),
    "linalg": ("Functions of `treadle.linalg`", LINALG),
    "fft": ("Functions of `treadle.fft`", FFT),
    "special": ("Functions of `treadle.special`", SPECIAL),
}
MODULES: dict[str, tuple[str, ModuleType]] = {
    "nn": ("`treadle.nn`: layers, losses, state", nn),
    "optim": ("`treadle.nn.optim`: optimizers and schedules", nn.optim),
    "transforms": ("`treadle`: tensors, transforms, capturing, loops", treadle),
}
# family -> the modules of `treadle/graph/` that make it; one that is not here is a family
FAMILIES = {
    "Creating": ("creation", "random", "initial"),
    "Shapes": ("movement", "arranging", "diagonals", "einops", "patches"),
    "Indexing, gathering, selecting": (
        "indexing", "selection", "assigning", "masks", "embeddings",
    ),
    "Arithmetic, comparison, rounding": ("elementwise", "floating", "bits", "verdicts"),
    "Functions of one variable": ("functions", "special", "polygamma", "trigonometry"),
    "Activations": ("activations",),
    "Reducing and scanning": ("reduction", "running"),
    "Sorting and counting": ("sorting", "counting"),
    "Products and linear algebra": (
        "linear", "products", "factors", "solving", "spectral", "triangular",
    ),
    "Convolutions, pools, images": ("convolution", "pools", "resampling", "sampling"),
    "Fourier transforms": ("axes", "frames", "frequencies", "tapers"),
    "Layers": ("neural", "normalization"),
    "Losses and distances": ("losses", "distances", "ctc"),
}  # fmt: skip
GRADIENTS = {"yes": "differentiable", "no": "no derivative", "int": "of integers or bools"}


def documentation(text: str) -> Iterator[str]:
    """A docstring as markdown: its text, and each example as a block of code."""
    inside = False
    for line in inspect.cleandoc(text).splitlines():
        if line.startswith(">>>") and not inside:
            yield "```python"
            inside = True
        elif inside and not line:
            yield "```"
            inside = False
        yield line
    if inside:
        yield "```"


def signature(entry: Public, as_method: bool) -> str:
    """What a name takes, as the type stubs write it, in one line."""
    if entry.kind == "property":
        return f"x.{entry.name}"
    takes = stubs.arguments(entry)[0].with_keywords(stubs.ADDED.get(entry.kind, ()))
    if entry.kind == "random":
        takes = takes.without_first()
    owner = ""
    if as_method:
        of_class = stubs.DECORATORS.get(entry.kind) == "staticmethod"
        of_class = of_class or takes.positional[0].startswith("*")
        owner = "Tensor." if of_class else "x."
        takes = takes if of_class else takes.without_first()
    return f"{owner}{entry.name}({', '.join(takes.listed())})".replace("builtins.", "")


def family_of(entry: Public) -> str:
    """The family of a public name."""
    module = inspect.unwrap(entry.function).__module__.rpartition(".")[2]
    return next((family for family, modules in FAMILIES.items() if module in modules), module)


def of_table(title: str, table: dict[str, Public]) -> Iterator[str]:
    """The page of one table, by family."""
    families: dict[str, list[Public]] = {}
    for name, entry in table.items():
        if name == entry.name:
            families.setdefault(family_of(entry), []).append(entry)
    methods = table is METHODS
    yield from (f"# {title}", "", "Made by `python tools/api_pages.py --write`.", "")
    for family, entries in sorted(families.items()):
        yield from (f"## {family}", "")
        for entry in sorted(entries, key=lambda entry: entry.name):
            yield from (f"### {entry.name}", "", f"`{signature(entry, methods)}`", "")
            also = f" Also: {', '.join(entry.aliases)}." if entry.aliases else ""
            yield from (f"Source: {entry.source}; {GRADIENTS[entry.gradient]}.{also}", "")
            yield from (*documentation(entry.doc), "")


def of_module(title: str, module: ModuleType) -> Iterator[str]:
    """The page of what a module exports."""
    yield from (f"# {title}", "", "Made by `python tools/api_pages.py --write`.", "")
    for name in sorted(module.__all__):
        value: Any = getattr(module, name)
        if callable(value):
            yield from (f"## {name}", "", f"`{name}{_arguments(value)}`", "")
            yield from (*documentation(value.__doc__ or ""), "")


def _arguments(value: Any) -> str:
    """What something callable takes. Defaults that are objects are not written out."""
    try:
        found = inspect.signature(value)
    except ValueError:
        return "(..)"
    text = str(found).removesuffix(" -> 'None'").replace("'", "")
    return "(..)" if " object at 0x" in text or "<function" in text else text


def pages() -> dict[str, str]:
    """Every page, by the name of its file."""
    made = {name: of_table(*each) for name, each in TABLES.items()}
    made |= {name: of_module(*each) for name, each in MODULES.items()}
    return {f"{name}.md": "\n".join(lines).rstrip() + "\n" for name, lines in made.items()}


def outdated() -> list[str]:
    """The pages that are not what would be written."""
    return [
        name
        for name, text in pages().items()
        if not (PAGES / name).exists() or (PAGES / name).read_text(encoding="utf-8") != text
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description="Write the API pages.")
    parser.add_argument("--write", action="store_true", help="write what is not current")
    if not parser.parse_args().write:
        print(", ".join(outdated()) or "all pages are current")
        return
    PAGES.mkdir(exist_ok=True)
    for name, text in pages().items():
        (PAGES / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
