"""Run the code of a Markdown page, and compare what it shows with what the page says it shows.

    python tools/run_page.py docs/tour.md            print where the page differs, exit with 1
    python tools/run_page.py --write docs/tour.md    write what the code shows into the page

The ```python blocks of a page run in order and share their names. As in a notebook, a block shows
what it prints, and the value of its last line if that is an expression and not None. A block right
after it (```text, ```llvm ..) is what it shows. In a ```console block each line `$ command` is run
by the shell at the root of the project, and the lines after it are what it shows.

A comment before a block says what is special about it; the rendered page does not have it:

    <!-- page: numbers vary -->    any number in its output may be another (times, line counts)
    <!-- page: output varies -->   its output is an example, and is not compared
    <!-- page: not run -->         it is not run

Each page has a process of its own, in which every knob has its default and the disk cache is empty,
so that a page shows the same whoever runs it. What would depend on the machine is for the page to
avoid: `docs/tour.md` compiles for a Target that it spells out. An output that still holds, numbers
apart where they vary, is left as it is.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import io
import os
import re
import subprocess
import sys
import tempfile
import traceback
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from treadle import config  # noqa: E402  (of this checkout, whatever is installed)

RUN = ("python", "console")  # languages of blocks that are run; any other may be an output
MARKS = ("numbers vary", "output varies", "not run")

FENCE = re.compile(r"(```+)(\w*)\s*")
MARK = re.compile(r"<!-- page: (.*) -->")
NUMBER = re.compile(r"\d[\d,]*(\.\d+)?(e[-+]?\d+)?")


class PageError(Exception):
    """A page that cannot be run; the message is for who wrote it."""


@dataclass(frozen=True)
class Block:
    """A fenced block of a page: lines first .. last - 1 (counted from 0) are those of its fences
    and between; mark: what a comment says of it, or ""."""

    language: str
    first: int
    last: int
    mark: str
    lines: tuple[str, ...]


def blocks(lines: list[str]) -> list[Block]:
    """The blocks of a page. PageError for one that is not closed and for an unknown mark."""
    found: list[Block] = []
    mark = ""
    number = 0
    while number < len(lines):
        opened = FENCE.fullmatch(lines[number])
        noted = MARK.fullmatch(lines[number])
        if opened:
            first = number
            while number + 1 < len(lines) and lines[number + 1] != opened[1]:
                number += 1
            if number + 1 == len(lines):
                raise PageError(f"line {first + 1}: this block is not closed")
            number += 1
            inner = tuple(lines[first + 1 : number])
            found.append(Block(opened[2], first, number + 1, mark, inner))
            mark = ""
        elif noted:
            mark = noted[1]
            if mark not in MARKS:
                raise PageError(f"line {number + 1}: a mark is one of {MARKS}, not {mark!r}")
        elif lines[number]:
            mark = ""
        number += 1
    return found


class Page:
    """A page that is being run. name: how messages call it; names: what its Python has defined."""

    def __init__(self, text: str, name: str) -> None:
        self.lines = text.splitlines()
        self.name = name
        self.names: dict[str, Any] = {"__name__": "__page__"}

    def run(self) -> str:
        """The text of the page, as it should be."""
        listed = blocks(self.lines)
        result: list[str] = []
        position = 0
        for block, after in zip(listed, [*listed[1:], None]):
            if block.language not in RUN or block.mark == "not run":
                continue
            result += self.lines[position : block.first]
            if block.language == "console":
                result += self._console(block)
                position = block.last
                continue
            result += self.lines[block.first : block.last]
            said = after if after and self._is_output(block, after) else None
            result += self._shown(block, said)
            position = said.last if said else block.last
        return "\n".join([*result, *self.lines[position:], ""])

    def _is_output(self, block: Block, after: Block) -> bool:
        between = self.lines[block.last : after.first]
        return after.language not in RUN and not any(between)

    def _shown(self, block: Block, said: Block | None) -> list[str]:
        """The lines after a block of Python: its output as a block, in the page's words if they
        hold."""
        shown = self._python(block)
        if said and same(list(said.lines), shown, block.mark):
            return self.lines[block.last : said.last]
        if not shown:
            return []
        fence = "```"
        while any(line.startswith(fence) for line in shown):
            fence += "`"
        return ["", f"{fence}{said.language if said else 'text'}", *shown, fence]

    def _python(self, block: Block) -> list[str]:
        """What a block of Python shows. PageError if it raises."""
        shown = io.StringIO()
        try:
            tree = ast.parse("\n" * (block.first + 1) + "\n".join(block.lines), self.name)
            last = tree.body[-1] if tree.body else None
            if isinstance(last, ast.Expr):
                tree.body.pop()
            with redirect_stdout(shown), redirect_stderr(shown):
                exec(compile(tree, self.name, "exec"), self.names)
                if isinstance(last, ast.Expr):
                    value = eval(compile(ast.Expression(last.value), self.name, "eval"), self.names)
                    if value is not None:
                        print(repr(value))
        except Exception as error:
            inside = error.__traceback__.tb_next if error.__traceback__ else None
            lines = traceback.format_exception(error.with_traceback(inside))
            raise PageError(shown.getvalue() + "".join(lines)) from None
        return lines_of(shown.getvalue())

    def _console(self, block: Block) -> list[str]:
        """A block of commands with what each shows."""
        shown: list[str] = []
        for line in block.lines:
            if line.startswith("$ "):
                shown += [line, *command(line.removeprefix("$ "))]
        kept = same(list(block.lines), shown, block.mark)
        inside = block.lines if kept else shown
        return [self.lines[block.first], *inside, self.lines[block.last - 1]]


def command(line: str) -> list[str]:
    """What a command line shows. PageError if it fails."""
    run = subprocess.run(
        line, shell=True, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    if run.returncode:
        raise PageError(f"`{line}` ended with {run.returncode}:\n{run.stdout}")
    return lines_of(run.stdout)


def lines_of(text: str) -> list[str]:
    """Lines without blanks at their ends, and without empty ones at the ends of the text."""
    lines = [line.rstrip() for line in text.splitlines()]
    while lines and not lines[-1]:
        lines.pop()
    while lines and not lines[0]:
        lines.pop(0)
    return lines


def same(said: list[str], shown: list[str], mark: str) -> bool:
    """Whether an output is the one on the page, as far as its mark lets them differ."""
    if mark == "output varies":
        return bool(said) == bool(shown)
    if mark == "numbers vary":
        # a number of other width moves the columns beside it
        said, shown = (
            [" ".join(NUMBER.sub("#", line).split()) for line in lines] for lines in (said, shown)
        )
    return said == shown


def as_for_anyone(cache: str) -> None:
    """Make this process like any other: at the root of the project, knobs at their defaults, the
    disk cache in the folder `cache`, this Python first in the path of commands."""
    for knob in config.KNOBS.values():
        knob.value = knob.default
        os.environ.pop(knob.name, None)
        os.environ.pop(f"TREADLE_{knob.name}", None)
    config.CACHE_DIR.value = os.environ["TREADLE_CACHE_DIR"] = cache
    os.environ["PYTHONPATH"] = str(ROOT)
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    os.chdir(ROOT)


def run_page(path: Path, write: bool) -> bool:
    """Run one page in this process. Writes it, or prints how it differs. Returns whether it was
    right (or is now)."""
    before = path.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as cache:
        as_for_anyone(cache)
        name = str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)
        after = Page(before, name).run()
    if write:
        if after != before:
            path.write_text(after, encoding="utf-8")
        return True
    for line in difflib.unified_diff(
        before.splitlines(), after.splitlines(), name, "as it runs", lineterm=""
    ):
        print(line)
    return after == before


def main() -> int:
    """The command; returns its exit status."""
    parser = argparse.ArgumentParser(description="Run the code of Markdown pages.")
    parser.add_argument("pages", type=Path, nargs="+", help="Markdown files")
    parser.add_argument("--write", action="store_true", help="put the outputs right")
    options = parser.parse_args()
    if len(options.pages) == 1:
        try:
            return 0 if run_page(options.pages[0].resolve(), options.write) else 1
        except PageError as error:
            print(f"{options.pages[0]}: {error}", file=sys.stderr)
            return 2
    own = [sys.executable, __file__, *(["--write"] if options.write else [])]
    return max(subprocess.run([*own, str(page)], check=False).returncode for page in options.pages)


if __name__ == "__main__":
    sys.exit(main())
