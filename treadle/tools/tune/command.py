"""The command line of `treadle tune`."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from treadle.engine import tuned
from treadle.engine.search.journal import Journal
from treadle.engine.search.progress import Progress
from treadle.engine.search.session import NotSearched, Search, journal_path, watched
from treadle.engine.search.workers import ROOT, Workers, with_path
from treadle.ir import text
from treadle.tools.bench.machine import busy
from treadle.tools.tune.collect import Seen
from treadle.tools.tune.report import Outcome, gained, shown
from treadle.tools.words import at_least

USAGE = """\
treadle tune SCRIPT [argument ..]   run a script, search schedules for its kernels; what follows
                                    SCRIPT are its own arguments, options of tune stand before
treadle tune show FILE ..           what files have found
treadle tune merge FILE .. -o FILE  the best of several files

A script that is called show or merge is written ./show."""

LEAST_SECONDS = 4.0  # that a kernel is searched
ENOUGH = 0.98  # of a script's time: the kernels beyond are not searched
BUSY = 0.2  # of the processors: times say little


def main(arguments: Sequence[str]) -> int:
    """Run the command; returns the exit status."""
    words = list(arguments)
    commands = {"show": _show, "merge": _merge}
    try:
        if words and words[0] in commands:
            return commands[words[0]](words[1:])
        return _tune(words)
    except ValueError as error:
        print(f"treadle tune: {error}", file=sys.stderr)
        return 2


def _parser(word: str, what: str) -> argparse.ArgumentParser:
    return argparse.ArgumentParser(
        prog=f"treadle tune {word}".strip(),
        description=what,
        epilog=USAGE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


# ---- show and merge ------------------------------------------------------------------------------
def _show(words: list[str]) -> int:
    parser = _parser("show", "What files of tuned schedules have found.")
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--actions", action="store_true", help="the lists, too")
    asked = parser.parse_args(words)
    results = tuned.best_of(r for path in asked.files for r in tuned.results(path).values())
    print(shown(results.values(), asked.actions))
    return 0


def _merge(words: list[str]) -> int:
    parser = _parser("merge", "Merges files of tuned schedules: the fastest of each kernel stays.")
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("-o", "--output", type=Path, help="the file to write; default: the first")
    asked = parser.parse_args(words)
    tables = [tuned.results(path) for path in asked.files]
    merged = tuned.best_of(result for table in tables for result in table.values())
    output = asked.output or asked.files[0]
    tuned.write(output, merged.values())
    counts = " and ".join(str(len(table)) for table in tables)
    print(f"{output}: {len(merged)} results from {counts}")
    return 0


# ---- tune ----------------------------------------------------------------------------------------
def _tune(words: list[str]) -> int:
    parser = _parser("", "Runs a script and searches schedules for its kernels.")
    parser.add_argument("script", type=Path)
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="of the script")
    parser.add_argument("--seconds", type=float, default=120.0, help="of the search, in all")
    parser.add_argument("--beam", type=int, default=4, help="lists that are pursued at once")
    parser.add_argument("-o", "--output", type=Path, help="default: SCRIPT.tuned.jsonl")
    asked = parser.parse_args(words)
    at_least(asked.seconds, 0, "--seconds")
    at_least(asked.beam, 1, "--beam")
    if not asked.script.is_file():
        print(f"treadle tune: there is no script {asked.script}", file=sys.stderr)
        return 2
    output = asked.output or tuned.beside_script(str(asked.script))
    assert output is not None
    tuned.append(output)  # whether that is possible is known before the search
    status, seen = run_script(asked.script, asked.arguments)
    if status:
        print(f"{asked.script} ended with status {status}", file=sys.stderr)
    if not seen:
        print(f"{asked.script} ran no kernels: nothing to tune", file=sys.stderr)
        return status or 1
    if busy() > BUSY:
        print("others use the processors now: what is measured may be wrong", file=sys.stderr)
    outcomes = search_all(seen, output, asked.seconds, asked.beam)
    print(gained(outcomes))
    print(f"written to {output}")
    return 0


def run_script(script: Path, arguments: Sequence[str]) -> tuple[int, list[Seen]]:
    """(the script's exit status, its kernels, the most costly first)."""
    with tempfile.TemporaryDirectory(prefix="treadle-tune-") as folder:
        result = Path(folder, "kernels")
        words = [sys.executable, "-m", "treadle.tools.tune.collect", str(result), str(script)]
        process = subprocess.Popen([*words, *arguments], env=with_path(ROOT))
        while True:
            try:
                status = process.wait()
                break
            except KeyboardInterrupt:
                continue  # the script has been interrupted as well: what it did until now counts
        lines = result.read_text(encoding="utf-8").splitlines() if result.exists() else []
    return status, [Seen(**json.loads(line)) for line in lines]


def search_all(
    seen: Sequence[Seen], output: Path, seconds: float, width: int, workers: Workers | None = None
) -> list[Outcome]:
    """Searches the kernels in this order, each for a time by its share. Ctrl-C ends the search;
    what was found stays."""
    whole = sum(kernel.seconds for kernel in seen)
    began = time.perf_counter()
    journal = Journal(journal_path(output))
    progress = Progress(seconds)
    outcomes: list[Outcome] = []
    before = 0.0
    try:
        with workers or Workers("CPU") as used:
            for number, kernel in enumerate(seen):
                passed = time.perf_counter() - began
                left = whole - before
                if passed >= seconds or before > ENOUGH * whole:
                    outcomes.append(Outcome(kernel, None, "not searched"))
                    continue
                share = max(LEAST_SECONDS, (seconds - passed) * kernel.seconds / max(left, 1e-12))
                before += kernel.seconds
                name = f"kernel {number + 1} of {len(seen)}"
                outcomes.append(_search(kernel, output, used, journal, share, width, (
                    progress, passed, name)))  # fmt: skip
    except KeyboardInterrupt:
        outcomes += [Outcome(k, None, "interrupted") for k in seen[len(outcomes) :]]
        print(f"the next search goes on from what is in {journal.path}", file=sys.stderr)
    finally:
        progress.close()
    return outcomes


def _search(
    kernel: Seen,
    output: Path,
    workers: Workers,
    journal: Journal,
    seconds: float,
    width: int,
    shown_by: tuple[Progress, float, str],
) -> Outcome:
    """The search of one kernel; its result is written at once."""
    if kernel.written:
        return Outcome(kernel, None, "written by hand")
    search = Search(
        text.parse(kernel.kernel), kernel.device, workers, journal, seconds, width, kernel.variables
    )
    search.watch = watched(*shown_by)
    try:
        result = search.run()
    except NotSearched as error:
        return Outcome(kernel, None, str(error))
    tuned.append(output, result)
    return Outcome(kernel, result)
