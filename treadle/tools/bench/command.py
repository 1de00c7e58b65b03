"""The command line of `treadle bench`."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from treadle import extras
from treadle.tools.bench import folder as folders
from treadle.tools.bench import machine, report, targets
from treadle.tools.bench.case import Case
from treadle.tools.bench.child import Settings
from treadle.tools.bench.compare import keep, kept, measure_two, only
from treadle.tools.bench.libraries import LIBRARIES
from treadle.tools.bench.runner import begun, lacking, new, run_all
from treadle.tools.bench.suite import choose
from treadle.tools.bench.timing import table
from treadle.tools.words import at_least, refuse

Data = dict[str, Any]

QUICK = Settings(turns=5, seconds=0.05)
FULL = Settings()

DESCRIPTION = """\
Measure kernels, models and training steps, each in a process of its own, and keep everything in a
folder. Figures are medians of blocks with a 95 % interval; PyTorch's run in the same process in
turns. See docs/measuring.md.

  treadle bench matmul --torch                 the cases with matmul in their name
  treadle bench --quick --out before           a small part of the suite, kept
  treadle bench show before                    print a kept run again
  treadle bench show before --targets          beside what is to be reached, as Markdown
  treadle bench compare before after           two kept runs
  treadle bench compare HEAD~1 . softmax       a commit and the working tree, measured in turns
"""

SIDES = "two folders, or two commits (`.` is the working tree) and parts of the names of cases"


def _parser(word: str, what: str) -> argparse.ArgumentParser:
    return argparse.ArgumentParser(
        prog=f"treadle bench {word}".strip(),
        description=what,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


OTHERS = tuple(name for name in LIBRARIES if name != "treadle")


def _how(parser: argparse.ArgumentParser) -> None:
    """The options of everything that measures."""
    parser.add_argument("--quick", action="store_true", help="few cases, short blocks")
    parser.add_argument("--out", type=Path, help="the folder to keep it in")
    parser.add_argument("--blocks", type=int, help="blocks of calls for each library")
    parser.add_argument("--seconds", type=float, help="how long a block takes at least")


def options(words: Sequence[str]) -> argparse.Namespace:
    """The command line of a run."""
    parser = _parser("", DESCRIPTION)
    parser.add_argument("names", nargs="*", help="parts or patterns of the names of cases")
    parser.add_argument("--list", action="store_true", help="print the cases and stop")
    _how(parser)
    for name in OTHERS:
        option = f"--{name.replace('_', '-')}"
        parser.add_argument(option, action="store_true", help=f"measure {name} beside it")
    parser.add_argument(
        "--resume",
        action="store_true",
        help="go on with the run in --out: only what it lacks is measured",
    )
    parser.add_argument(
        "--require-quiet",
        action="store_true",
        help=f"refuse if others use more than {100 * machine.BUSY:.0f} %% of the processors; "
        "else: warn",
    )
    return parser.parse_args(words)


def settings_of(chosen: argparse.Namespace) -> Settings:
    """How to measure. ValueError for what makes no sense."""
    base = QUICK if chosen.quick else FULL
    others = [name for name in OTHERS if getattr(chosen, name, False)]
    for name in others:
        package = LIBRARIES[name].package
        if not extras.is_installed(package):
            raise ValueError(
                f"{name} needs {package}, which is not installed: pip install {package}"
            )
    turns = base.turns if chosen.blocks is None else chosen.blocks
    seconds = base.seconds if chosen.seconds is None else chosen.seconds
    at_least(turns, 2, "--blocks")
    at_least(seconds, 0, "--seconds")
    return Settings(turns, seconds, base.calls, ("treadle", *others))


def main(words: Sequence[str]) -> int:
    """The command; returns its exit status: 1 if a case failed or was not reached, 2 for a wrong
    command line, 3 if the machine is busy and should not be."""
    verbs = {"show": show, "compare": compare}
    try:
        if words and words[0] in verbs:
            return verbs[words[0]](words[1:])
        return run(options(words))
    except (ValueError, OSError) as error:
        print(f"treadle bench: {error}", file=sys.stderr)
        return 2


def run(chosen: argparse.Namespace) -> int:
    """List cases, or measure them."""
    cases = choose(chosen.names, chosen.quick)
    if chosen.list:
        measuring = ("blocks", "seconds", "out", "resume", "require_quiet", *OTHERS)
        refuse(chosen, measuring, "--list measures nothing")
        print(table([(case.name, case.what) for case in cases], ("case", "what")))
        return 0
    settings = settings_of(chosen)
    folder, data = begin(chosen, settings)
    return measure(folder, data, cases, settings) if is_quiet(chosen.require_quiet) else 3


def begin(chosen: argparse.Namespace, settings: Settings) -> tuple[Path, Data]:
    """(where a run is kept, the run so far). ValueError if --out and --resume do not fit what is
    there, OSError if nothing can be written."""
    now = time.strftime("%Y-%m-%dT%H:%M:%S")
    if chosen.resume:
        if chosen.out is None:
            raise ValueError("--resume goes on with a run that was kept: name it, --out FOLDER")
        return chosen.out, begun(chosen.out, settings)
    folder = chosen.out or Path("bench-results") / now.replace(":", "")
    if folders.is_run(folder):
        raise ValueError(f"{folder} holds a run: --resume goes on with it, or name another folder")
    folder.mkdir(parents=True, exist_ok=True)
    return folder, new(settings, now)


def is_quiet(required: bool) -> bool:
    """Whether to go on: warns or complains if others use the processors."""
    busy = machine.busy(1.0)
    if busy <= machine.BUSY:
        return True
    words = f"others use {busy:.0%} of the processors (load {machine.load():.1f})"
    if required:
        print(f"treadle bench: {words}; --require-quiet refuses to measure now", file=sys.stderr)
        return False
    print(f"warning: {words}: only ratios of one run are worth anything now", file=sys.stderr)
    return True


def measure(folder: Path, data: Data, cases: Sequence[Case], settings: Settings) -> int:
    """Run the cases, print the table. What ends early shows what it has."""
    total = len(cases)
    cases = lacking(data, cases)
    done = total - len(cases)

    def tell(entry: Data) -> None:
        nonlocal done
        done += 1
        first = report.rows(entry)[0]
        print(f"[{done}/{total}] {' '.join(first[:4])}  {' '.join(first[8:11])}", file=sys.stderr)

    try:
        run_all(data, cases, settings, folder, tell)
    except KeyboardInterrupt:
        print(f"interrupted; --out {folder} --resume goes on", file=sys.stderr)
    except OSError as error:
        print(f"treadle bench: {folder} cannot be written: {error}", file=sys.stderr)
    print(report.run_table(data))
    if folders.is_run(folder):
        print(f"kept in {folder}")
    return 1 if done < total or any(entry["error"] for entry in data["cases"]) else 0


def show(words: Sequence[str]) -> int:
    """Print kept runs."""
    parser = _parser("show", "Prints kept runs.")
    parser.add_argument("folders", nargs="+", type=Path, help="as --out named them")
    parser.add_argument(
        "--targets",
        action="store_true",
        help="as Markdown beside the targets: met, missed, or not decided by the intervals",
    )
    asked = parser.parse_args(words)
    for folder in asked.folders:
        data = folders.read(folder)
        if asked.targets:
            print(targets.markdown(data))
            continue
        about = data["machine"]
        print(f"{folder}: {data['created']}, {about['threads']} x {about['processor']}")
        print(f"commit {about['commit'] or 'unknown'}\n{report.run_table(data)}")
    return 0


def compare(words: Sequence[str]) -> int:
    """Compare two runs or commits."""
    parser = _parser(
        "compare", "Compares two kept runs, or two commits that are measured in turns."
    )
    parser.add_argument("sides", nargs="*", metavar="A B [name ..]", help=SIDES)
    _how(parser)
    asked = parser.parse_args(words)
    if len(asked.sides) < 2:
        raise ValueError("compare takes two folders with runs, or two commits")
    first, second, *patterns = asked.sides
    if asked.out and folders.is_run(asked.out / "before"):
        raise ValueError(f"{asked.out} holds a comparison: name another folder")
    runs = kept((first, second))
    if runs is not None:
        refuse(asked, ("quick", "blocks", "seconds"), "both runs are kept ones")
        runs = only(runs, patterns)
    else:
        cases = choose(patterns, asked.quick or not patterns)
        tell = partial(print, "measured", file=sys.stderr)
        runs = measure_two((first, second), cases, settings_of(asked), tell)
    print(report.comparison(*runs))
    if asked.out:
        keep(asked.out, runs, time.strftime("%Y-%m-%dT%H:%M:%S"))
    return 0
