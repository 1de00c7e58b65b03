"""The command line of `treadle replay`."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from treadle.engine.search.workers import with_path
from treadle.tools.replay import compare as comparing
from treadle.tools.replay import record
from treadle.tools.replay.compare import CORPUS, KINDS, ROOT
from treadle.tools.words import at_least, refuse
from treadle.tools.worktree import resolve

MOST = 300  # texts of a corpus
SECONDS = 60.0  # for running what changed
MEASURED = (
    "matmul/1024/", "matmul/64x4096x512/NN", "matmul/16x200", "matmul_bfloat16", "matvec",
    "conv/", "conv_gradient", "depthwise", "elementwise", "sum/", "softmax", "layer_norm",
    "cross_entropy", "attention", "step/", "decoder", "resnet18/",
)  # fmt: skip

DESCRIPTION = """\
What two commits make of the same programs.

  treadle replay compare HEAD~1               lower the corpus by both, say what changed
  treadle replay compare HEAD~1 --diff NAME   and show how a text changed
  treadle replay record                       make the corpus anew: of the tests and examples
  treadle replay record -- python script.py   of what a command runs
"""


def options(words: Sequence[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="treadle replay",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--corpus", type=Path, default=CORPUS, help="the folder of the texts")
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    recording = verbs.add_parser("record", help="record what a command makes, keep a choice of it")
    recording.add_argument("--most", type=int, default=MOST, help="texts to keep at most")
    recording.add_argument("command", nargs="*", help="after --; else the tests and the example")
    two = verbs.add_parser("compare", help="compare this checkout with a commit")
    two.add_argument("commit", help="what to compare with, as git names it")
    two.add_argument("--diff", nargs="*", metavar="NAME", help="show diffs: of these, or the worst")
    two.add_argument("--worst", type=int, default=10, help="how many changes to list")
    two.add_argument("--lowering-only", action="store_true", help="run nothing")
    two.add_argument("--seconds", type=float, help=f"for running what changed: {SECONDS:.0f}")
    two.add_argument("--soft", action="store_true", help="only tell; end with 0 whatever is found")
    return parser.parse_args(words)


def main(words: Sequence[str]) -> int:
    """The command; returns its exit status: 1 if a program broke or has another result."""
    chosen = options(words)
    soft = getattr(chosen, "soft", False)
    try:
        status = {"record": recorded, "compare": compared}[chosen.verb](chosen)
        return 0 if soft else status
    except (ValueError, RuntimeError, OSError) as error:
        if soft:
            print(f"no replay: {error}")
            return 0
        print(f"treadle replay: {error}", file=sys.stderr)
        return 2


def recorded(chosen: argparse.Namespace) -> int:
    """Run commands with the knob RECORD, choose, keep."""
    commands = [chosen.command] if chosen.command else default_commands()
    at_least(chosen.most, 1, "--most")
    with tempfile.TemporaryDirectory(prefix="treadle-record-") as folder:
        variables = {**with_path(ROOT), "RECORD": folder}
        for command in commands:
            print("recording:", " ".join(command), flush=True)
            where = None if chosen.command else ROOT
            status = subprocess.run(command, env=variables, cwd=where, check=False).returncode
            if status:
                print(f"it ended with status {status}: what it made is recorded", file=sys.stderr)
        found = record.load(Path(folder))
        kept = record.choose(found, chosen.most)
        if not kept:
            raise ValueError("nothing was recorded")
        total = record.keep(kept, chosen.corpus)
    print(f"{len(found)} programs, {len(kept)} kept: {total:,} bytes in {chosen.corpus}")
    return 0


def default_commands() -> list[list[str]]:
    """The tests, the example, and what is measured."""
    tests = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not full"]
    example = [sys.executable, "examples/digits.py", "--epochs", "1", "--output", os.devnull]
    bench = [sys.executable, "-m", "treadle", "bench", "--blocks", "2", "--seconds", "0", *MEASURED]
    return [[*tests, "-n", "2", "tests"], example, [*bench, "--out", tempfile.mkdtemp()]]


def compared(chosen: argparse.Namespace) -> int:
    """Compare this checkout with a commit."""
    began = time.monotonic()
    if chosen.lowering_only:
        refuse(chosen, ("seconds",), "--lowering-only runs nothing")
    seconds = SECONDS if chosen.seconds is None else chosen.seconds
    at_least(seconds, 0, "--seconds")
    at_least(chosen.worst, 0, "--worst")
    texts = {path.stem for path in chosen.corpus.glob("*.txt")}
    if not texts:
        raise ValueError(f"there is no corpus in {chosen.corpus}: treadle replay record")
    for name in chosen.diff or ():
        if name not in texts:
            raise ValueError(f"there is no text {name!r} in {chosen.corpus}")
    commit = resolve(ROOT, chosen.commit)
    with comparing.sides(ROOT, commit, chosen.corpus.resolve()) as pair:
        before, after = comparing.both(pair)
        changes = comparing.compare(before, after)
        if not chosen.lowering_only:
            comparing.run_both(pair, changes, seconds)
    changes = sorted(changes, key=lambda c: (KINDS.index(c.kind), -c.worst, c.name))
    took = time.monotonic() - began
    print(f"this checkout against {commit[:12]}, {took:.0f} s")
    print(comparing.summary(changes, chosen.worst))
    if chosen.diff is not None:
        worst = [change.name for change in changes if change.kind != "identical"][:1]
        for name in chosen.diff or worst:
            print(f"\n=== {name}\n{comparing.diff(before[name], after[name])}")
    return 1 if any(change.kind in ("broken", "result") for change in changes) else 0
