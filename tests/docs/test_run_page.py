"""`tools/run_page.py`: what it runs, compares and writes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import run_page

TOOL = Path(run_page.__file__)


def written(page: str) -> str:
    """The page with the outputs that running it gives; what is written must hold."""
    text = run_page.Page(page, "page.md").run()
    assert run_page.Page(text, "page.md").run() == text
    return str(text)


def test_it_shows_what_is_printed_and_the_last_value() -> None:
    first = "# A page\n\n```python\nx = 3\nprint(x)\nx + 1\n```\n"
    second = "\nText.\n\n```python\nx *= 2\nx\n```\n"
    shown = written(first + second)
    assert shown == f"{first}\n```text\n3\n4\n```\n{second}\n```text\n6\n```\n"


def test_it_replaces_an_output_and_keeps_its_language() -> None:
    page = "```python\nprint('new')\n```\n\n```llvm\nold\n```\n\nText.\n"
    assert written(page) == page.replace("old", "new")


def test_an_output_that_is_gone_goes_from_the_page() -> None:
    code = "```python\nx = 1\n```\n"
    assert written(f"{code}\n```text\n1\n```\n\nText.\n") == f"{code}\nText.\n"


def test_a_block_that_does_not_follow_at_once_is_no_output() -> None:
    page = "```python\nx = 1\n```\n\nText.\n\n```text\nkept\n```\n"
    assert written(page) == page


def test_blanks_at_ends_do_not_count() -> None:
    page = "```python\nprint('\\n a  \\n\\nb\\n')\n```\n\n```text\n a\n\nb\n```\n"
    assert written(page) == page


def test_an_output_with_a_fence_in_it() -> None:
    code = "```python\nprint('```')\n```\n"
    assert written(code) == f"{code}\n````text\n```\n````\n"


@pytest.mark.parametrize(
    ("mark", "shown"),
    [
        ("numbers vary", "took   1,234.5 ms, 7 of them\n"),
        ("output varies", "anything\n"),
        ("not run", "took 1 ms\n"),
    ],
)
def test_marks(mark: str, shown: str) -> None:
    code = "1 / 0" if mark == "not run" else "print('took 12.25 ms, 3 of them')"
    page = f"<!-- page: {mark} -->\n\n```python\n{code}\n```\n\n```text\n{shown}```\n"
    assert written(page) == page


def test_a_mark_is_for_the_next_block_alone() -> None:
    page = "<!-- page: not run -->\n```python\n1 / 0\n```\n\n```python\n2\n```\n"
    assert written(page) == f"{page}\n```text\n2\n```\n"
    page = "<!-- page: not run -->\n\nText.\n\n```python\n2\n```\n"
    assert written(page) == f"{page}\n```text\n2\n```\n"


def test_numbers_that_vary_are_all_that_may_vary() -> None:
    page = "<!-- page: numbers vary -->\n```python\nprint('2 s')\n```\n\n```text\n3 ms\n```\n"
    assert written(page) == page.replace("3 ms", "2 s")


def test_commands() -> None:
    page = "```console\n$ echo one; echo error >&2\nold\n$ echo two\n```\n"
    assert (
        written(page)
        == "```console\n$ echo one; echo error >&2\none\nerror\n$ echo two\ntwo\n```\n"
    )


@pytest.mark.parametrize(
    ("page", "words"),
    [
        ("```python\n1\n", "line 1: this block is not closed"),
        ("\n<!-- page: slow -->\n```python\n1\n```\n", "line 2: a mark is one of"),
        ("```console\n$ exit 3\n```\n", "`exit 3` ended with 3"),
        ("```python\nx = (\n```\n", "SyntaxError"),
        ("```python\nprint(5)\n1 / 0\n```\n", "5\nTraceback"),
    ],
)
def test_pages_that_cannot_be_run(page: str, words: str) -> None:
    with pytest.raises(run_page.PageError) as caught:
        run_page.Page(page, "page.md").run()
    assert words in str(caught.value)


def command(*arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, TOOL, *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**os.environ, **environment},
    )


def test_a_wrong_output_is_a_failure_and_a_diff(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```python\n1 + 1\n```\n\n```text\n3\n```\n", encoding="utf-8")
    result = command(page)
    assert result.returncode == 1
    assert "-3\n+2\n" in result.stdout


def test_an_error_names_the_line_of_the_page(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A page\n\n```python\nx = 1\nx / 0\n```\n", encoding="utf-8")
    result = command(page)
    assert result.returncode == 2
    assert 'page.md", line 5' in result.stderr
    assert "ZeroDivisionError" in result.stderr
    assert "run_page.py" not in result.stderr


def test_the_environment_of_who_runs_it_does_not_show(tmp_path: Path) -> None:
    """Of two pages, each in a process of its own; knobs have their defaults."""
    code = "from treadle import Tensor\n\nx = Tensor([1.0]) + 1\nprint(x.device, x)"
    pages = [tmp_path / name for name in ("one.md", "two.md")]
    for page in pages:
        page.write_text(f"```python\n{code}\n```\n", encoding="utf-8")
    result = command("--write", *pages, DEBUG="2", TREADLE_DEVICE="INTERP")
    assert result.returncode == 0, result.stderr
    for page in pages:
        assert "```text\nCPU Tensor([2.])\n```" in page.read_text(encoding="utf-8")
