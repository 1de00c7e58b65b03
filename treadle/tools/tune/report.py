"""Tables of what a search found."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from treadle.engine.tuned import Result
from treadle.tools.bench.timing import table
from treadle.tools.tune.collect import Seen

_PLAIN = {
    "load", "store", "sink", "isum", "iprod", "cast", "kreduce", "ifloor", "imod", "lt", "and",
}  # fmt: skip


@dataclass(frozen=True)
class Outcome:
    """A kernel of a script, and its result or why there is none."""

    seen: Seen
    result: Result | None
    why: str = ""


def named(kernel: str) -> str:
    """A kernel in a few words: its reductions and operations, and the shapes of its buffers."""
    shapes = re.findall(r"= arg \w+ : \((\d+), \(([^\n]*)\)\)$", kernel, re.MULTILINE)
    buffers = [shape.rstrip(",").replace(", ", "x") or "1" for _, shape in sorted(shapes)]
    sums = re.findall(r'= kreduce .* : \("(\w+)"', kernel)
    found = re.findall(r"= (\w+) \w+ %", kernel)
    operations = [name for name in dict.fromkeys(found) if name not in _PLAIN]
    words = "+".join([*dict.fromkeys(sums), *operations][:4]) or "copy"
    return f"{words} {' '.join(buffers[:3])}"[:56]


def microseconds(seconds: float) -> str:
    """A time in readable digits."""
    return f"{seconds * 1e6:,.1f}"


def shown(results: Iterable[Result], lists: bool) -> str:
    """A table of results, the greatest gain first; with their lists if asked."""
    ordered = sorted(results, key=lambda result: -result.gain)
    rows = [
        (
            named(r.kernel),
            microseconds(r.heuristic_seconds),
            microseconds(r.seconds),
            f"{r.gain:.2f}",
            str(len(r.actions.splitlines())),
            r.check,
        )
        for r in ordered
    ]
    text = table(rows, ("kernel", "heuristic us", "found us", "gain", "actions", "check"))
    if not lists:
        return text
    details = [
        f"{named(r.kernel)} on {r.target}\n" + "\n".join(f"    {a}" for a in r.actions.splitlines())
        for r in ordered
    ]
    return "\n\n".join([text, *details])


def gained(outcomes: Sequence[Outcome]) -> str:
    """A table of a script's kernels by time share, and what the whole gains."""
    whole = sum(o.seen.seconds for o in outcomes) or 1.0
    rows = []
    after = 0.0
    for outcome in outcomes:
        seen, result = outcome.seen, outcome.result
        gain = result.gain if result is not None else 1.0
        after += seen.seconds / gain
        rows.append(
            (
                named(seen.kernel),
                str(seen.runs),
                f"{seen.seconds / whole:.0%}",
                microseconds(result.heuristic_seconds) if result else "",
                microseconds(result.seconds) if result else "",
                f"{gain:.2f}" if result else outcome.why,
            )
        )
    heads = ("kernel", "runs", "share", "heuristic us", "found us", "gain")
    return f"{table(rows, heads)}\nkernels of the script: {whole / after:.2f} times as fast"
