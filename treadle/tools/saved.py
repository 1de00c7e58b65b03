"""Programs that were saved as text: what `explain`, DEBUG, `treadle bench` and `treadle replay`
write, read back.

A file may hold several programs between other lines. A program is a run of lines that
`treadle.ir.text` writes, at any indentation:

- a *graph*: nodes, then `roots ..`. Before it, `# assigns 0:2, 1:3` says which leaves the roots
  replace;
- a *kernel*: nodes that end in a `sink`. After it, `schedule:` and actions, a line each, are the
  schedule to give it;
- a *function* of the program stage: `function name`, then what `show_function` writes.

Everything else in the file is for people.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from treadle.backend.base import Function
from treadle.ir import ops, text
from treadle.ir.node import Node
from treadle.ir.verify import verify
from treadle.kernel.kernel import ScheduleError
from treadle.kernel.schedule_text import parse_actions

_NODE = re.compile(r"%\d+ = \w+ ")
_ASSIGNS = re.compile(r"# assigns (.*)")
_FUNCTION = ("function ", "param ", "let ", "tasks ", "block ", "again ")


@dataclass(frozen=True)
class Saved:
    """kind: "graph", "kernel" or "function". roots: of a graph; of a kernel its SINK. assigns: see
    docs/design.md, section 3. function: of the program stage. line: where it begins in the file."""

    kind: str
    roots: tuple[Node, ...] = ()
    assigns: dict[int, int] = field(default_factory=dict)
    function: Function | None = None
    line: int = 1


def show(roots: Sequence[Node], assigns: dict[int, int], *remarks: str) -> str:
    """A graph as a text that `read` reads; remarks: lines of comment."""
    lines = [f"# {remark}" for remark in remarks]
    if assigns:
        lines.append("# assigns " + ", ".join(f"{root}:{leaf}" for root, leaf in assigns.items()))
    return "\n".join([*lines, text.show(roots)])


def read(source: str) -> list[Saved]:
    """The programs in a text. ValueError names the line that is wrong, the law of a stage that is
    broken, or says that there is none."""
    found = [_program(*run) for run in _runs(source)]
    if not found:
        raise ValueError("there is no program in this text (lines like `%0 = const float32 1.0`)")
    return found


def read_graph(path: Path) -> Saved:
    """The graph that is alone in a file. ValueError for anything else, OSError without a file."""
    found = read(path.read_text(encoding="utf-8"))
    kinds = [program.kind for program in found]
    if kinds != ["graph"]:
        raise ValueError(f"it holds {' and '.join(f'a {kind}' for kind in kinds)}, not one graph")
    return found[0]


def _runs(source: str) -> Iterator[tuple[str, list[str], int, list[str] | None]]:
    """(kind, lines, number of the first, assigns before or actions after) of each program."""
    lines = [line.strip() for line in source.splitlines()]
    number = 0
    assigns = ""
    while number < len(lines):
        line = lines[number]
        first = number
        noted = _ASSIGNS.fullmatch(line)
        if noted:
            assigns = noted[1]
        if line.startswith("function ") or _NODE.match(line):
            is_function = line.startswith("function ")
            number += 1
            while number < len(lines) and _belongs(lines[number], is_function):
                number += 1
            block = lines[first:number]
            if number < len(lines) and lines[number].startswith("%") and not _begins(lines[number]):
                raise ValueError(f"line {number + 1} is no node of a program: {lines[number]}")
            if is_function:
                yield "function", block, first + 1, []
            elif " = sink " in block[-1]:
                number, actions = _actions(lines, number)
                yield "kernel", block, first + 1, actions
            else:
                yield "graph", block, first + 1, [assigns]
            assigns = ""
        else:
            number += 1


def _begins(line: str) -> bool:
    """Whether a line is the first node of a program."""
    return line.startswith("%0 = ")


def _belongs(line: str, is_function: bool) -> bool:
    """Whether a line goes on with the program that has begun."""
    if is_function:
        return line.startswith(("%", *_FUNCTION[1:]))
    if _begins(line):
        return False
    return line.startswith("roots") or bool(_NODE.match(line))


def _actions(lines: list[str], number: int) -> tuple[int, list[str] | None]:
    """(the line after them, the actions) that follow a kernel at this line; None if it says nothing
    of a schedule, which is not an empty one."""
    if number >= len(lines) or lines[number] != "schedule:":
        return number, None
    number += 1
    first = number
    while number < len(lines) and (lines[number].startswith("#") or _is_action(lines[number])):
        number += 1
    return number, [line for line in lines[first:number] if not line.startswith("#")]


def _is_action(line: str) -> bool:
    try:
        return bool(parse_actions(line))
    except ScheduleError:
        return False


def _program(kind: str, lines: list[str], first: int, beside: list[str] | None) -> Saved:
    source = "\n".join(lines)
    try:
        if kind == "function":
            function = text.parse_function(source, Function)
            verify(function, "program")
            return Saved(kind, function=function, line=first)
        roots = text.parse_roots(source)
        verify(roots, kind)
        if kind == "graph":
            return Saved(kind, roots, _assigned("".join(beside or ()), len(roots)), line=first)
    except ValueError as error:
        raise ValueError(f"in the program at line {first}: {error}") from None
    (sink,) = roots
    if beside is not None:
        sink = Node(ops.SINK, sink.dtype, sink.src, ("\n".join(beside), ()))
    return Saved(kind, (sink,), line=first)


def _assigned(noted: str, roots: int) -> dict[int, int]:
    """What a line `# assigns 0:2, 1:3` says: which leaf each root replaces."""
    found: dict[int, int] = {}
    for pair in noted.split(",") if noted else ():
        root, _, leaf = pair.partition(":")
        if not (root.strip().isdigit() and leaf.strip().isdigit() and int(root) < roots):
            raise ValueError(f"`# assigns {noted}` is not of the form root:leaf, root:leaf ..")
        found[int(root)] = int(leaf)
    return found
