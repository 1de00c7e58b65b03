"""The laws that the source keeps: floors, imports, sizes, knobs, docstrings, what is shipped.

`docs/design.md` says why. Most of these read the source with `ast`, so they hold for a file as
soon as it exists. A new module needs a row in FLOORS; a file or function that has to be long needs
one in REASONS.
"""

import ast
import importlib
import inspect
import io
import re
import sys
import tokenize
import tomllib
from collections.abc import Container, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "treadle"
KNOBS_PAGE = ROOT / "docs" / "knobs.md"

FILE_LIMIT = 450  # lines of code: docstrings, comments and blank lines are free
FUNCTION_LIMIT = 60

# "treadle/file.py" or "treadle/file.py:Class.function" -> why it is better long than in pieces
REASONS: dict[str, str] = {}

GROUND, LANGUAGE, CONTRACT, ENGINE, FACE, OUTSIDE, TOP = 0, 1, 2, 6, 7, 8, 9
PLUGIN = -1  # treadle/backend/NAME/: found by name, imported by no floor

# The longest prefix of a module's name decides.
FLOORS: dict[str, int] = {
    "treadle": TOP,
    "treadle.config": GROUND,
    "treadle.events": GROUND,
    "treadle.extras": GROUND,
    "treadle.errors": GROUND,
    "treadle.collector": GROUND,
    "treadle.host": GROUND,
    "treadle.ir": LANGUAGE,
    "treadle.backend": CONTRACT,
    "treadle.backend.base": CONTRACT,
    "treadle.backend.records": CONTRACT,
    "treadle.graph": 3,
    "treadle.schedule": 4,
    "treadle.kernel": 5,
    "treadle.engine": ENGINE,
    "treadle.face": FACE,
    "treadle.tensor": FACE,
    "treadle.fft": FACE,
    "treadle.linalg": FACE,
    "treadle.special": FACE,
    "treadle.exchange": FACE,
    "treadle.interop": FACE,
    "treadle.standard": FACE,
    "treadle.methods": FACE,
    "treadle.precision": FACE,
    "treadle.rearranging": FACE,
    "treadle.printing": FACE,
    "treadle.elsewhere": FACE,
    "treadle.checks": FACE,
    "treadle.convert": FACE,
    "treadle.dims": FACE,
    "treadle.generator": FACE,
    "treadle.captured": FACE,
    "treadle.kernels": FACE,
    "treadle.tracer": FACE,
    "treadle.transforms": FACE,
    "treadle.vocabulary": FACE,
    "treadle.nn": OUTSIDE,
    "treadle.onnx": OUTSIDE,
    "treadle.models": OUTSIDE,
    "treadle.tools": OUTSIDE,
    "treadle.__main__": OUTSIDE,
}
SIBLINGS = {3, 4, 5}

# Which libraries beyond the standard one a part may import directly. Everything else goes through
# treadle/extras.py, so that `import treadle` needs NumPy alone.
LIBRARIES: dict[str, set[str]] = {
    "treadle": {"numpy"},
    "treadle.backend.llvm": {"numpy", "llvmlite"},
    "treadle.backend.opencl": {"numpy", "pyopencl"},
    "treadle.backend.cuda": {"numpy", "cuda"},
    "treadle.backend.webgpu": {"numpy", "wgpu"},
    "treadle.onnx": {"numpy", "onnx"},
}

Function = ast.FunctionDef | ast.AsyncFunctionDef

LOADER = "treadle/extras.py"  # the one file with a function that imports


@dataclass(frozen=True)
class Source:
    """A module of the package: its place, its dotted name, its text and its tree."""

    path: str
    module: str
    is_package: bool
    text: str
    tree: ast.Module

    def resolve(self, name: str | None, level: int) -> str:
        """The absolute name of what `from <level dots><name> import ...` means here."""
        if level == 0:
            return name or ""
        parts = self.module.split(".")
        base = parts[: len(parts) - level + self.is_package]
        return ".".join([*base, name] if name else base)


@cache
def sources() -> tuple[Source, ...]:
    """Every module under treadle/."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        relative = path.relative_to(ROOT)
        parts = relative.with_suffix("").parts
        is_package = parts[-1] == "__init__"
        module = ".".join(parts[:-1] if is_package else parts)
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text, str(relative))
        found.append(Source(relative.as_posix(), module, is_package, text, tree))
    return tuple(found)


def longest_prefix(module: str, table: Container[str]) -> str:
    """The longest dotted prefix of `module` that is a key of `table`."""
    parts = module.split(".")
    prefixes = (".".join(parts[:n]) for n in range(len(parts), 0, -1))
    return next(prefix for prefix in prefixes if prefix in table)


def floor(module: str) -> int | None:
    """The floor of a module of ours, or None if FLOORS has no row for it."""
    parts = module.split(".")
    if parts[:2] == ["treadle", "backend"] and len(parts) > 2 and module not in FLOORS:
        return PLUGIN
    prefix = longest_prefix(module, FLOORS)
    return None if prefix == "treadle" and module != "treadle" else FLOORS[prefix]


def part(module: str) -> str:
    """The unit whose modules may import each other: a backend, or a child of treadle/."""
    return ".".join(module.split(".")[: 3 if floor(module) == PLUGIN else 2])


def imports(source: Source) -> Iterator[tuple[int, str]]:
    """(line, module) of every import in a file, also inside functions and type-checking blocks."""
    modules = {other.module for other in sources()}
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = source.resolve(node.module, node.level)
            for alias in node.names:
                child = f"{base}.{alias.name}"
                yield node.lineno, child if child in modules else base


def parts_that_the_top_imports() -> set[str]:
    top = [source for source in sources() if source.module == "treadle"]
    targets = {target for source in top for _, target in imports(source)}
    return {part(target) for target in targets if target.split(".")[0] == "treadle"}


def may_import(importer: str, target: str, below_top: set[str]) -> bool:
    """Whether module `importer` may import module `target`, both ours."""
    if part(importer) == part(target):
        return True
    mine, theirs = floor(importer), floor(target)
    if mine is None or theirs is None or mine == TOP:
        return True  # a missing floor is another test's business
    if theirs == TOP:
        return mine == OUTSIDE and part(importer) not in below_top
    if mine == PLUGIN:
        return theirs in (GROUND, LANGUAGE, CONTRACT)
    if mine in SIBLINGS and theirs in SIBLINGS:
        return False
    if mine in (GROUND, FACE, OUTSIDE):
        return theirs <= mine and (theirs != PLUGIN or mine == OUTSIDE)
    return theirs < mine and theirs != PLUGIN


def test_every_module_stands_on_a_floor() -> None:
    homeless = [source.path for source in sources() if floor(source.module) is None]
    assert not homeless, f"no row in FLOORS for {homeless}"


def test_each_floor_imports_only_floors_below() -> None:
    below_top = parts_that_the_top_imports()
    wrong = [
        f"{source.path}:{line} imports {target}"
        for source in sources()
        for line, target in imports(source)
        if target.split(".")[0] == "treadle" and not may_import(source.module, target, below_top)
    ]
    assert not wrong, "imports that run up or across the floors:\n" + "\n".join(wrong)


@pytest.mark.parametrize(
    ("importer", "target", "allowed"),
    [
        ("treadle.config", "treadle.ir.node", False),
        ("treadle.ir.ops", "treadle.config", True),
        ("treadle.ir.ops", "treadle.ir.node", True),
        ("treadle.backend.base", "treadle.ir.node", True),
        ("treadle.backend", "treadle.backend.llvm", False),
        ("treadle.graph.vjp", "treadle.schedule.fuse", False),
        ("treadle.kernel.lower", "treadle.graph", False),
        ("treadle.kernel.lower", "treadle.backend.base", True),
        ("treadle.backend.llvm.emit", "treadle.backend.base", True),
        ("treadle.backend.llvm.emit", "treadle.backend.c", False),
        ("treadle.backend.llvm.emit", "treadle.kernel.lower", False),
        ("treadle.engine.run", "treadle.kernel.lower", True),
        ("treadle.engine.run", "treadle.backend.llvm", False),
        ("treadle.engine.run", "treadle.tensor", False),
        ("treadle.tensor", "treadle.captured", True),
        ("treadle.tensor", "treadle.nn", False),
        ("treadle.tensor", "treadle", False),
        ("treadle.nn.layers", "treadle.tensor", True),
        ("treadle.nn.layers", "treadle", False),
        ("treadle.models.resnet", "treadle", True),
        ("treadle.tools.replay", "treadle.backend.llvm", True),
        ("treadle", "treadle.nn", True),
    ],
)
def test_the_law_of_floors_itself(importer: str, target: str, allowed: bool) -> None:
    assert may_import(importer, target, {"treadle.nn", "treadle.tensor"}) is allowed


def test_libraries_are_imported_only_where_they_belong() -> None:
    wrong = []
    for source in sources():
        allowed = LIBRARIES[longest_prefix(source.module, LIBRARIES)]
        for line, target in imports(source):
            library = target.split(".")[0]
            if library not in {"treadle", *sys.stdlib_module_names, *allowed}:
                wrong.append(f"{source.path}:{line} imports {library}")
    assert not wrong, "\n".join(wrong)


def imports_inside(function: ast.AST) -> bool:
    """Whether a function has an import statement or calls the machinery of import."""
    for node in ast.walk(function):
        if isinstance(node, ast.Import | ast.ImportFrom):
            return True
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func).split(".")[-1]
            if name in ("import_module", "__import__"):
                return True
    return False


def functions(source: Source) -> Iterator[tuple[str, Function]]:
    """(qualified name, node) of every function of a file, methods and nested ones too."""
    pending: list[tuple[str, ast.AST]] = [("", source.tree)]
    while pending:
        prefix, node = pending.pop()
        for child in ast.iter_child_nodes(node):
            name = prefix
            if isinstance(child, Function | ast.ClassDef):
                name = f"{prefix}.{child.name}".lstrip(".")
                if not isinstance(child, ast.ClassDef):
                    yield name, child
            pending.append((name, child))


def test_no_function_imports() -> None:
    found = [
        (source.path, name)
        for source in sources()
        for name, function in functions(source)
        if imports_inside(function)
    ]
    wrong = [f"{path}: {name}" for path, name in found if path != LOADER]
    assert not wrong, "imports belong at the top of a file:\n" + "\n".join(wrong)
    assert len(found) <= 1, f"{LOADER} should have one function that imports: {found}"


def code_lines(source: Source) -> set[int]:
    """The numbers of the lines that hold code: not blank, not a comment, not of a docstring."""
    free = {
        tokenize.COMMENT,
        tokenize.NL,
        tokenize.NEWLINE,
        tokenize.INDENT,
        tokenize.DEDENT,
        tokenize.ENDMARKER,
    }
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source.text).readline):
        if token.type not in free:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(source.tree):
        match node:
            case ast.Expr(ast.Constant(str())):
                lines.difference_update(range(node.lineno, node.end_lineno + 1))
    return lines


@cache
def sizes() -> dict[str, tuple[int, int]]:
    """(lines of code, limit) of every file and every function, by its key in REASONS."""
    table = {}
    for source in sources():
        lines = code_lines(source)
        table[source.path] = len(lines), FILE_LIMIT
        for name, node in functions(source):
            own = lines.intersection(range(node.lineno, node.end_lineno + 1))
            table[f"{source.path}:{name}"] = len(own), FUNCTION_LIMIT
    return table


def test_sizes() -> None:
    wrong = [
        f"{key}: {size} lines of code, more than {limit}"
        for key, (size, limit) in sizes().items()
        if size > limit and key not in REASONS
    ]
    assert not wrong, "make it smaller, or write the reason in REASONS:\n" + "\n".join(wrong)


def test_reasons_are_needed_and_given() -> None:
    table = sizes()
    for key, reason in REASONS.items():
        assert key in table, f"REASONS names {key}, which does not exist"
        size, limit = table[key]
        assert size > limit, f"{key} has {size} lines of code and needs no reason any more"
        assert len(reason.split()) >= 4, f"{key}: {reason!r} is no reason"


def test_lines_of_code_are_counted_right() -> None:
    text = '"""Doc\nstring."""\n\n# why\nx = """a\nb"""\n\n\ndef f():\n    "doc"\n    return (\n'
    text += "        # a\n        1\n    )\n"
    source = Source("x.py", "x", False, text, ast.parse(text))
    assert code_lines(source) == {5, 6, 9, 11, 13, 14}


def test_every_knob_is_documented() -> None:
    if not (PACKAGE / "config.py").exists():
        return
    knobs = importlib.import_module("treadle.config").KNOBS
    assert knobs, "treadle.config.KNOBS is empty"
    for key, knob in knobs.items():
        assert knob.name == key, f"KNOBS[{key!r}] is named {knob.name!r}"
        assert knob.doc.strip(), f"{key} has no doc"
    if not KNOBS_PAGE.exists():
        pytest.skip("docs/knobs.md is not written yet")
    page = KNOBS_PAGE.read_text(encoding="utf-8")
    undocumented = [key for key in knobs if not re.search(rf"`{key}\b", page)]
    assert not undocumented, f"docs/knobs.md does not explain {undocumented}"


def test_every_module_and_every_exported_definition_has_a_docstring() -> None:
    wrong = []
    for source in sources():
        body = source.tree.body
        if body and not ast.get_docstring(source.tree):
            wrong.append(source.path)
        definitions = (node for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef))
        for node in definitions:
            if node.name in exports(source.tree) and not ast.get_docstring(node):
                wrong.append(f"{source.path}: {node.name}")
    assert not wrong, "no docstring: " + ", ".join(wrong)


def exports(tree: ast.Module) -> set[str]:
    """The names in a module's `__all__`, as far as they are written there as strings."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            constants = (word for word in ast.walk(node.value) if isinstance(word, ast.Constant))
            return {constant.value for constant in constants if isinstance(constant.value, str)}
    return set()


def undocumented_names(module: str) -> Iterator[str]:
    """Exported names of a module that have no docstring, and public methods of its classes."""
    public = importlib.import_module(module)
    for name in getattr(public, "__all__", ()):
        thing = getattr(public, name)
        if not (inspect.isclass(thing) or inspect.isroutine(thing)):
            continue
        if not inspect.getdoc(thing):
            yield f"{module}.{name}"
        if inspect.isclass(thing) and thing.__module__.startswith("treadle"):
            for member, value in vars(thing).items():
                if member.startswith("_") or not inspect.isroutine(value):
                    continue
                if not inspect.getdoc(getattr(thing, member)):
                    yield f"{module}.{name}.{member}"


@pytest.mark.parametrize("module", ["treadle", "treadle.nn", "treadle.onnx", "treadle.tools"])
def test_the_face_has_docstrings(module: str) -> None:
    if any(source.module == module for source in sources()):
        wrong = sorted(undocumented_names(module))
        assert not wrong, "no docstring: " + ", ".join(wrong)


def test_everything_needed_at_run_time_is_shipped() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    patterns = settings["tool"]["setuptools"]["package-data"]["treadle"]
    names = {pattern.rsplit("/", 1)[-1] for pattern in patterns}
    folders = {source.path.rsplit("/", 1)[0] for source in sources()}
    packages = {source.path.rsplit("/", 1)[0] for source in sources() if source.is_package}
    assert folders == packages, f"no __init__.py in {sorted(folders - packages)}"
    files = [path for path in PACKAGE.rglob("*") if path.is_file()]
    missed = [
        path.relative_to(ROOT).as_posix()
        for path in files
        if path.suffix not in (".py", ".pyc")
        and path.name not in names
        and f"*{path.suffix}" not in names
    ]
    assert not missed, f"package-data in pyproject.toml does not ship {missed}"


def test_cells_get_another_node_by_put() -> None:
    """Who changes the node of another object, and not by `Cell.put`, goes uncounted: captured
    functions would not see it."""
    found = []
    for source in sources():
        if not source.module.startswith(("treadle.engine", "treadle.nn", "treadle.t", "treadle.j")):
            continue
        if source.path == "treadle/engine/jobs.py":
            continue  # its jobs have nodes too
        for statement in ast.walk(source.tree):
            if not isinstance(statement, ast.Assign | ast.AugAssign):
                continue
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            parts = [e for t in targets for e in (t.elts if isinstance(t, ast.Tuple) else [t])]
            for target in parts:
                is_own = isinstance(target, ast.Attribute) and ast.unparse(target.value) == "self"
                if isinstance(target, ast.Attribute) and target.attr == "node" and not is_own:
                    found.append(f"{source.path}:{statement.lineno}")
    assert found == []
