"""Programs as text that parses back to the same nodes, at every stage, one line a node.

    %0 = placeholder float32 : (0, (4, 8))
    %1 = const float32 0.5
    %2 = expand float32 %1 : (4, 8)
    %3 = mul float32 %0, %2
    %4 = reduce float32 %3 : ("add", (1,))

A line is `%number = op dtype sources : arg`. An arg is Python data in which `%n` is a node, a bare
name a dtype and `@"name"` a thing that is known by its name (`named.py`); a constant stands as its
value. A node with several outputs has a tuple of dtypes. The root is the last node, or a last line
`roots %3, %4` names several. Sources come before users in an order that depends on the program
alone, so equal programs have equal texts in every process. `#` begins a comment line. A Function
adds lines of its own: see `show_function`.
"""

from __future__ import annotations

import json
import math
import re
import struct
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol, TypeVar, runtime_checkable

from treadle.ir import ops
from treadle.ir.dtype import DType, bfloat16, from_name
from treadle.ir.named import Named, named
from treadle.ir.node import Node, arg_nodes, toposort

Made = TypeVar("Made")


@runtime_checkable
class FunctionLike(Protocol):
    """What `show_function` reads: `backend.base.Function` has it."""

    @property
    def name(self) -> str: ...
    @property
    def params(self) -> tuple[Node, ...]: ...
    @property
    def body(self) -> tuple[Node, ...]: ...
    @property
    def tasks(self) -> int | Node: ...
    @property
    def block(self) -> tuple[int, ...]: ...


# ---- printing ------------------------------------------------------------------------------------
def show(roots: Node | Iterable[Node]) -> str:
    """The program below a node, or below several (then the last line names the roots)."""
    single = isinstance(roots, Node)
    listed = [roots] if isinstance(roots, Node) else list(roots)
    numbers: dict[Node, int] = {}
    lines = []
    for node in toposort(listed, into_args=True):
        numbers[node] = len(numbers)
        lines.append(_line(node, numbers))
    if not single:
        lines.append(f"roots {_references(listed, numbers)}".rstrip())
    return "\n".join(lines) + "\n"


def show_function(function: FunctionLike) -> str:
    """A program-stage function: its name, parameters and tasks, then the body in order.

    A node that others need and that does not stand in the body itself is a `let` line; a node that
    has a line already and stands in the body is `again %n`. Indentation shows loops; it means
    nothing.
    """
    numbers: dict[Node, int] = {}
    lines = [f"function {function.name}"]
    for param in function.params:
        lines += _needed(param, numbers, "")
        lines.append(f"param {_defined(param, numbers)}")
    tasks = function.tasks
    if isinstance(tasks, Node):
        lines += _needed(tasks, numbers, "")
        lines.append(f"tasks {_defined(tasks, numbers)}")
    else:
        lines.append(f"tasks {tasks}")
    if function.block:
        lines.append(f"block {_literal(function.block, numbers)}")
    depth = 1
    for node in function.body:
        if node.op is ops.END:
            depth -= 1
        indent = "  " * depth
        lines += _needed(node, numbers, indent)
        again = "again " if node in numbers else ""
        lines.append(f"{indent}{again}{_defined(node, numbers)}")
        if node.op in (ops.LOOP, ops.IF):
            depth += 1
    return "\n".join(lines) + "\n"


def _needed(node: Node, numbers: dict[Node, int], indent: str) -> Iterator[str]:
    """The `let` lines of what stands below a node and has no line yet."""
    below = [n for n in (*node.src, *arg_nodes(node.arg)) if n not in numbers]
    if below:
        for needed in toposort(below, into_args=True):
            if needed not in numbers:
                yield f"{indent}let {_defined(needed, numbers)}"


def _defined(node: Node, numbers: dict[Node, int]) -> str:
    """The line of a node that has none yet, else its name."""
    if node in numbers:
        return f"%{numbers[node]}"
    numbers[node] = len(numbers)
    return _line(node, numbers)


def _line(node: Node, numbers: dict[Node, int]) -> str:
    text = f"%{numbers[node]} = {node.op.name} {_literal(node.dtype, numbers)}"
    if node.op is ops.CONST:
        return f"{text} {show_constant(node.dtype, node.arg)}"
    if node.src:
        text += f" {_references(node.src, numbers)}"
    if node.arg is not None:
        try:
            text += f" : {_literal(node.arg, numbers)}"
        except TypeError as error:
            raise TypeError(f"{node.op.name} has an arg that is no program data: {error}") from None
    return text


def _references(nodes: Iterable[Node], numbers: dict[Node, int]) -> str:
    return ", ".join([f"%{numbers[node]}" for node in nodes])


def _literal(value: Any, numbers: dict[Node, int]) -> str:
    if isinstance(value, Node):
        return f"%{numbers[value]}"
    if isinstance(value, tuple):
        parts = [_literal(part, numbers) for part in value]
        return f"({parts[0]},)" if len(parts) == 1 else f"({', '.join(parts)})"
    if isinstance(value, DType):
        return repr(value)
    if isinstance(value, str):
        return json.dumps(value)
    if isinstance(value, Named):
        return f"@{json.dumps(value.name)}"
    if value is None or type(value) in (bool, int, float):
        return repr(value)
    raise TypeError(f"{value!r} of type {type(value).__name__}")


class _Partial(dict[Node, Any]):
    """Numbers of some nodes; the others have no line and stand as `%?`."""

    def __missing__(self, node: Node) -> str:
        return "?"


def excerpt(nodes: Iterable[Node], marked: Node) -> str:
    """The lines of some nodes of a program, for messages, even of nodes that no stage allows.

    One is marked; sources that have no line are `%?`. Does not parse.
    """
    numbers = _Partial()
    lines = []
    for node in nodes:
        numbers.setdefault(node, len(numbers))
        try:
            line = _line(node, numbers)
        except (TypeError, ValueError, struct.error):  # its arg is no program data
            line = f"%{numbers[node]} = {node!r}"
        lines.append(line + ("    <-- here" if node is marked else ""))
    return "\n".join(lines)


def show_constant(dtype: DType, bits: int) -> str:
    """The value of a constant, in the fewest digits that give its bits back."""
    value = dtype.from_bits(bits)
    if not isinstance(value, float):
        return repr(value)
    if math.isnan(value):
        return "nan" if bits == dtype.to_bits(math.nan) else f"nan:{bits:#x}"
    if dtype.scalar is bfloat16:
        trials = [f"{value:.{digits}g}" for digits in range(1, 6)]
    else:
        trials = [str(dtype.compute.type(value))]
    exact = [repr(float(text)) for text in trials if dtype.to_bits(float(text)) == bits]
    return min([repr(value), *exact], key=len)


# ---- parsing -------------------------------------------------------------------------------------
def parse(text: str) -> Node:
    """The root of a text that `show` made of one node. ValueError naming the line that is wrong."""
    nodes = parse_roots(text)
    if len(nodes) != 1:
        raise ValueError(f"the text has {len(nodes)} roots, not one: use parse_roots")
    return nodes[0]


def parse_roots(text: str) -> tuple[Node, ...]:
    """The roots of a text that `show` made. ValueError naming the line that is wrong."""
    reader = _Reader(text)
    roots: tuple[Node, ...] | None = None
    for line in reader:
        if roots is not None:
            raise reader.error("nothing may follow the roots")
        if line.startswith("roots"):
            roots = reader.references(line.removeprefix("roots"))
        else:
            reader.define(line)
    if roots is None:
        if not reader.nodes:
            raise ValueError("the text has no node")
        roots = (list(reader.nodes.values())[-1],)
    return roots


def parse_function(
    text: str,
    make: Callable[[str, tuple[Node, ...], tuple[Node, ...], int | Node, tuple[int, ...]], Made],
) -> Made:
    """`make(name, params, body, tasks, block)` of a text that `show_function` made; pass
    `backend.base.Function`. ValueError naming the line that is wrong."""
    reader = _Reader(text)
    name = ""
    params: list[Node] = []
    body: list[Node] = []
    tasks: int | Node = 1
    block: tuple[int, ...] = ()
    for line in reader:
        word, _, rest = line.partition(" ")
        if word == "function":
            name = rest
        elif word == "param":
            params.append(reader.named(rest))
        elif word == "let":
            reader.define(rest)
        elif word == "tasks":
            tasks = reader.named(rest) if rest.startswith("%") else reader.literal(rest)
        elif word == "block":
            block = reader.literal(rest)
        elif word == "again":
            body.extend(reader.references(rest))
        else:
            body.append(reader.define(line))
    if not name:
        raise ValueError("the text has no line `function name`")
    return make(name, tuple(params), tuple(body), tasks, block)


_DEFINITION = re.compile(r"%(\d+) = (\w+) (\([^)]*\)|\w+)(?: (.*))?")
_TOKEN = re.compile(
    r"""\s*(?:(?P<node>%\d+)|(?P<string>@?"(?:\\.|[^"\\])*")|(?P<word>[A-Za-z_]\w*)"""
    r"""|(?P<number>[-+]?(?:inf|nan|\d[\d.]*(?:e[-+]?\d+)?))|(?P<mark>[(),]))"""
)
_WORDS = {"None": None, "True": True, "False": False, "inf": math.inf, "nan": math.nan}


class _Reader:
    """The lines of a text, one after the other, and the nodes they define."""

    def __init__(self, text: str) -> None:
        self.lines = text.splitlines()
        self.number = 0
        self.nodes: dict[str, Node] = {}

    def __iter__(self) -> Iterator[str]:
        for number, line in enumerate(self.lines, 1):
            self.number = number
            if line.strip() and not line.strip().startswith("#"):
                yield line.strip()

    def error(self, why: str) -> ValueError:
        """What is wrong with the present line."""
        return ValueError(f"line {self.number}: {why}: {self.lines[self.number - 1].strip()}")

    def define(self, line: str) -> Node:
        """The node that a line `%n = op dtype sources : arg` defines."""
        match = _DEFINITION.fullmatch(line)
        if match is None:
            raise self.error("expected `%number = op dtype sources : arg`")
        number, op_name, dtype_text, rest = match.groups(default="")
        if number in self.nodes:
            raise self.error(f"%{number} is defined twice")
        op = ops.TABLE.get(op_name)
        if op is None:
            raise self.error(f"there is no op {op_name!r}")
        dtype = self.literal(dtype_text)
        src: tuple[Node, ...] = ()
        if op is ops.CONST:
            arg: Any = self.constant(dtype, rest)
        else:
            sources, colon, arg_text = rest.partition(": ") if rest else ("", "", "")
            src = self.references(sources)
            arg = self.literal(arg_text) if colon else None
        try:
            node = Node(op, dtype, src, arg)
        except (ValueError, TypeError, IndexError, AttributeError) as error:
            raise self.error(f"{op_name} cannot be made ({error})") from error
        self.nodes[number] = node
        return node

    def named(self, text: str) -> Node:
        """The node of a definition, or of a name `%n`."""
        return self.define(text) if "=" in text else self.node(text)

    def references(self, text: str) -> tuple[Node, ...]:
        """The nodes of `%1, %2`."""
        names = [name.strip() for name in text.split(",")] if text.strip() else []
        return tuple([self.node(name) for name in names])

    def node(self, name: str) -> Node:
        found = self.nodes.get(name.removeprefix("%")) if name.startswith("%") else None
        if found is None:
            raise self.error(f"{name!r} is no node of an earlier line")
        return found

    def constant(self, dtype: DType, text: str) -> int:
        """The bits of a constant written as its value."""
        try:
            if text.startswith("nan:"):
                return int(text.removeprefix("nan:"), 16)
            if dtype.kind == "b":
                return int({"True": True, "False": False}[text])
            return dtype.to_bits(float(text) if dtype.is_float else int(text))
        except (ValueError, KeyError):
            raise self.error(f"{text!r} is no value of {dtype}") from None

    def literal(self, text: str) -> Any:
        """The data that an arg or a dtype is written as."""
        stack: list[list[Any]] = [[]]
        position = 0
        text = text.strip()
        while position < len(text):
            match = _TOKEN.match(text, position)
            if match is None:
                raise self.error(f"cannot read {text[position:]!r}")
            position = match.end()
            token = match.group().strip()
            if token == "(":
                stack.append([])
            elif token == ")" and len(stack) > 1:
                closed = tuple(stack.pop())
                stack[-1].append(closed)
            elif token == ")":
                raise self.error("a bracket is closed that was not opened")
            elif token != ",":
                stack[-1].append(self.token(match.lastgroup, token))
        if len(stack) > 1 or len(stack[0]) != 1:
            raise self.error(f"expected one value, found {text!r}")
        return stack[0][0]

    def token(self, kind: str | None, token: str) -> Any:
        """The value of one token."""
        if kind == "node":
            return self.node(token)
        if kind == "word" and token not in _WORDS:
            try:
                return from_name(token)
            except ValueError as error:
                raise self.error(str(error)) from None
        if kind == "word":
            return _WORDS[token]
        if kind == "string":
            return self.named_thing(token[1:]) if token[0] == "@" else json.loads(token)
        try:
            return float(token) if set(token) & set(".einf") else int(token)
        except ValueError:
            raise self.error(f"{token!r} is no number") from None

    def named_thing(self, token: str) -> Named:
        """What is known by the name that is written here."""
        try:
            return named(json.loads(token))
        except ValueError as error:
            raise self.error(str(error)) from None
