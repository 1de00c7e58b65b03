"""Other commits of the repository, each in a git worktree that is gone afterwards."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class NoGit(ValueError):
    """There is no git, or no repository."""


def git(repository: Path, *words: str) -> str:
    """What a git command says. ValueError with its complaint if it fails; NoGit without git."""
    try:
        found = subprocess.run(
            ["git", "-C", str(repository), *words], capture_output=True, text=True, check=False
        )
    except OSError as error:
        raise NoGit(f"this needs git: {error}") from None
    if found.returncode:
        raise ValueError(f"git {words[0]}: {found.stderr.strip() or 'failed'}")
    return found.stdout.strip()


def resolve(repository: Path, word: str) -> str:
    """The full name of a commit. ValueError if there is none of that name here; NoGit if there is
    no repository."""
    try:
        git(repository, "rev-parse", "--git-dir")
    except ValueError as error:
        raise NoGit(str(error)) from None
    try:
        return git(repository, "rev-parse", "--verify", "--quiet", f"{word}^{{commit}}")
    except ValueError:
        raise ValueError(
            f"{word!r} is no commit of {repository} (a clone of depth 1 has its newest commit only)"
        ) from None


@contextmanager
def worktree(repository: Path, commit: str) -> Iterator[Path]:
    """A commit's files in a folder of their own."""
    with tempfile.TemporaryDirectory(prefix="treadle-commit-") as parent:
        root = Path(parent) / "tree"
        git(repository, "worktree", "add", "--detach", "--force", str(root), commit)
        try:
            yield root
        finally:
            git(repository, "worktree", "remove", "--force", str(root))
