"""Every command and script says what it takes, and does nothing else."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest

from treadle.__main__ import COMMANDS, main

ROOT = Path(__file__).parents[2]
SCRIPTS = [
    path
    for folder in ("bench", "tools")
    for path in sorted((ROOT / folder).glob("*.py"))
    if "__main__" in path.read_text(encoding="utf-8")
]
WORDS = {
    "bench": ("compare", "show"),
    "replay": ("compare", "record"),
    "tune": ("merge", "show"),
}


def needs_pytorch(path: Path) -> bool:
    """Whether PyTorch is imported before a script asks for its arguments."""
    return "\nimport torch" in path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "path",
    [pytest.param(path, marks=pytest.mark.full if needs_pytorch(path) else ()) for path in SCRIPTS],
    ids=lambda path: f"{path.parent.name}-{path.stem}",
)
def test_a_script_says_what_it_takes(
    path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", [str(path), "--help"])
    monkeypatch.setattr(sys, "path", [str(path.parent), *sys.path])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(path), run_name="__main__")
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith("usage: ")


@pytest.mark.parametrize(
    "words",
    [[name, *more] for name in COMMANDS for more in [(), *((w,) for w in WORDS.get(name, ()))]],
    ids=" ".join,
)
def test_a_command_says_what_it_takes(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([*words, "--help"])
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith(f"usage: treadle {' '.join(words)}")
