"""Every page shows what its code shows, and points to what is there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from treadle.kernel.schedule_text import FORMS, VERBS, parse_actions

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
RUN = re.compile(r"^```(python|console)\s*$", re.MULTILINE)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
NAMED = re.compile(r"`((?:treadle|tools|tests|docs|examples|bench)/[\w/.]+\.(?:py|md))`")


def text(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", [p for p in PAGES if RUN.search(text(p))], ids=name)
def test_a_page_shows_what_its_code_shows(page: Path) -> None:
    command = [sys.executable, str(ROOT / "tools" / "run_page.py"), str(page)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert result.returncode == 0, (
        f"{name(page)} is not what its code shows. If the code is right: "
        f"python tools/run_page.py --write {name(page)}\n{result.stdout}{result.stderr}"
    )


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", text(page), re.MULTILINE)
    kept = [re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings]
    return {heading.replace(" ", "-") for heading in kept}


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_somewhere(page: Path) -> None:
    broken = []
    for link in LINK.findall(text(page)):
        if link.startswith(("http:", "https:", "mailto:")):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(link)
    assert not broken, f"{name(page)} links to what is not there: {broken}"


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_files_that_a_page_names_exist(page: Path) -> None:
    missing = [path for path in NAMED.findall(text(page)) if not (ROOT / path).exists()]
    assert not missing, f"{name(page)} names files that are not there: {missing}"


def test_the_table_of_contents_has_every_page() -> None:
    listed = set(LINK.findall(text(ROOT / "docs" / "index.md")))
    pages = {page.name for page in (ROOT / "docs").glob("*.md")} - {"index.md"}
    assert pages <= listed


def test_the_page_on_kernels_shows_every_action() -> None:
    page = text(ROOT / "docs" / "kernels.md").partition("## All actions")[2].partition("\n## ")[0]
    examples = [
        line.replace("\\|", "|") for line in re.findall(r"^\| `(.*?)` \|", page, re.MULTILINE)
    ]
    shown = parse_actions("\n".join(examples))
    assert [str(action) for action in shown] == examples
    forms = {number for number, form in enumerate(FORMS) for e in examples if form[0].fullmatch(e)}
    missing = [form[0].pattern for number, form in enumerate(FORMS) if number not in forms]
    assert not missing, f"docs/kernels.md has no example of {missing}"
    assert {e.split()[0] for e in examples} == set(VERBS.split(", "))
