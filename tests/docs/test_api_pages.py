"""The API pages are what `tools/api_pages.py` makes, and name everything there is."""

from __future__ import annotations

import api_pages

from treadle.graph.public import METHODS


def test_the_pages_are_current() -> None:
    assert not api_pages.outdated(), "renew them: python tools/api_pages.py --write"


def test_every_method_stands_on_its_page_once() -> None:
    headings = [line for line in api_pages.pages()["methods.md"].splitlines() if line[:4] == "### "]
    assert sorted(headings) == sorted(f"### {entry.name}" for entry in {*METHODS.values()})


def test_an_example_is_a_block_of_code() -> None:
    text = "What it does.\n\n>>> f(1)\n2\n\nMore."
    assert list(api_pages.documentation(text)) == [
        "What it does.", "", "```python", ">>> f(1)", "2", "```", "", "More.",
    ]  # fmt: skip
