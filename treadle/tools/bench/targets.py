"""A kept run beside the targets of the suite, as Markdown: met, missed, or not decided by the
intervals.

The targets are those of the cases as they are now, so that an old run can be judged by new ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from statistics import median
from typing import Any

from treadle.tools.bench import folder as folders
from treadle.tools.bench.case import Target
from treadle.tools.bench.report import seconds
from treadle.tools.bench.statistics import Summary, compare, mean_ratio, summarise
from treadle.tools.bench.suite import CASES
from treadle.tools.bench.timing import table

Data = dict[str, Any]

VERDICTS = ("met", "undecided", "missed", "not measured")  # the best first


@dataclass(frozen=True)
class Line:
    """A line of the table. times: milliseconds by library; figure, interval: what is judged;
    verdict: one of VERDICTS, or "" where nothing is asked."""

    name: str
    target: str = ""
    times: tuple[tuple[str, str], ...] = ()
    figure: str = ""
    interval: str = ""
    verdict: str = ""


def verdict(low: float, high: float, least: float) -> str:
    """Whether a figure, which lies between low and high, is `least` or more."""
    return "met" if low >= least else "missed" if high < least else "undecided"


def lines(data: Data) -> list[Line]:
    """The lines of a run, in the order of its cases; under each group its geometric mean."""
    found = []
    entries = {entry["name"]: entry for entry in data["cases"]}
    for group, members in groupby(entries.values(), lambda entry: entry["name"].split("/")[0]):
        several = list(members)
        for entry in several:
            target = CASES[entry["name"]].target if entry["name"] in CASES else Target()
            found += _of_case(entry, target, entries)
        found += _of_group(group, several)
    return found


def _of_case(entry: Data, target: Target, entries: dict[str, Data]) -> list[Line]:
    own = entry["libraries"].get("treadle")
    if entry["error"] or own is None or not own["blocks"]:
        return [Line(entry["name"], _asked(target), verdict="not measured")]
    if "cold" in own:
        return _cold(entry, target)
    times = tuple((name, _time(folders.summary(each))) for name, each in entry["libraries"].items())
    line = _beside_torch(Line(entry["name"], _asked(target), times), entry, target)
    if target.stream is None:
        return [line]
    streamed = _streamed(entry, target.stream, entries)
    if not target.instead:
        return [line, streamed]
    best = min(line.verdict, streamed.verdict, key=VERDICTS.index)
    return [replace(line, verdict=best), replace(streamed, name="or else", verdict="")]


def _time(found: Summary | None) -> str:
    return seconds(found.median) if found else ""


def _asked(target: Target) -> str:
    """The ratio that is asked of a case itself."""
    least = target.ratio if target.alone is None else target.alone
    return f"{least:g}" if least else ""


def _beside_torch(line: Line, entry: Data, target: Target) -> Line:
    torch = entry["libraries"].get("torch", {})
    difference = folders.difference(entry["libraries"]["treadle"], torch)
    if difference is None:
        return replace(line, verdict="not measured" if line.target else "")
    low, high = difference.low, difference.high
    return replace(
        line,
        figure=f"{difference.ratio:.2f}",
        interval=f"{low:.2f}..{high:.2f}",
        verdict=verdict(low, high, float(line.target)) if line.target else "",
    )


def _streamed(entry: Data, stream: tuple[str, float], entries: dict[str, Data]) -> Line:
    """How much longer a byte takes than in a case that only moves memory."""
    name, times = stream
    line = Line(f"{entry['name']}, a byte", f"at most {times:g} of {name}", verdict="not measured")
    other = entries.get(name, {"libraries": {}})
    plain = folders.samples(other["libraries"].get("treadle", {}))
    if not plain:
        return line
    own = folders.samples(entry["libraries"]["treadle"])
    found = compare(
        [second / other["bytes"] for second in plain],
        [second / entry["bytes"] for second in own],
    )
    return replace(
        line,
        figure=f"{found.ratio:.2f}",
        interval=f"{found.low:.2f}..{found.high:.2f}",
        verdict=verdict(-found.high, -found.low, -times),
    )


def _cold(entry: Data, target: Target) -> list[Line]:
    """Two lines: the first call with an empty disk cache, and with a warm one."""
    libraries = entry["libraries"]
    empty = {name: folders.samples(each) for name, each in libraries.items()}
    warm = {
        name: each.get("cold", {}).get("warm_disk_seconds", []) for name, each in libraries.items()
    }
    found = []
    for words, seen, most in (("empty", empty, target.empty), ("warm", warm, target.warm)):
        own = summarise(seen["treadle"])
        times = [(name, seconds(median(each)) if each else "") for name, each in seen.items()]
        found.append(
            Line(
                f"{entry['name']}, {words} cache",
                f"at most {most:g} s" if most else "",
                tuple(times),
                f"{own.median:.2f} s",
                f"{own.low:.2f}..{own.high:.2f} s",
                verdict(-own.high, -own.low, -most) if most else "",
            )
        )
    return found


def _of_group(group: str, entries: Sequence[Data]) -> list[Line]:
    """The geometric mean of a group whose cases have one ratio as their target."""
    targets = [CASES[each["name"]].target for each in entries if each["name"] in CASES]
    asked = {target.ratio for target in targets}
    means = any(target.alone is not None for target in targets)
    if len(asked) != 1 or None in asked or not (means or len(entries) > 1):
        return []
    (least,) = asked
    assert least is not None
    line = Line(f"{group}, geometric mean", f"{least:g}", verdict="not measured")
    pairs = [_samples(each) for each in entries]
    missing = sum(not all(pair) for pair in pairs)
    whole = [pair for pair in pairs if all(pair)]
    if not whole:
        return [line]
    mean, low, high = mean_ratio(whole)
    return [
        replace(
            line,
            name=f"{line.name} of {len(whole)}" + (f" ({missing} missing)" if missing else ""),
            figure=f"{mean:.2f}",
            interval=f"{low:.2f}..{high:.2f}",
            verdict=verdict(low, high, least),
        )
    ]


def _samples(entry: Data) -> tuple[list[float], list[float]]:
    """The blocks of ours and of PyTorch; an empty list for what did not run."""
    ours, theirs = (entry["libraries"].get(name, {}) for name in ("treadle", "torch"))
    return folders.samples(ours), folders.samples(theirs)


def markdown(data: Data) -> str:
    """The table, above it what was measured and how, under it the counts and what failed."""
    about, settings = data["machine"], data["settings"]
    names = list(dict.fromkeys(name for entry in data["cases"] for name in entry["libraries"]))
    found = lines(data)
    rows = [
        (line.name, line.target, *(dict(line.times).get(name, "") for name in names), line.figure,
         line.interval, line.verdict)
        for line in found
    ]  # fmt: skip
    heads = ("case", "target", *(f"{name}, ms" for name in names), "ratio", "95 %", "verdict")
    counts = [(sum(line.verdict == word for line in found), word) for word in VERDICTS]
    failed = [
        f"- {entry['name']}{', ' + name if name else ''}: {error}"
        for entry in data["cases"]
        for name, error in [("", entry["error"])]
        + [(name, each.get("error", "")) for name, each in entry["libraries"].items()]
        if error
    ]
    commit = about.get("commit", "")
    how = (
        f"{about.get('processor', '')}, {about.get('threads', '')} threads, "
        f"{data['created'][:10]}, commit {commit[:12]}"
        f"{' with changes' if commit.endswith('+') else ''}; medians of "
        f"{settings.get('turns', '')} blocks in turns. "
        "The ratio is PyTorch's time divided by ours."
    )
    said = ", ".join(f"{count} {word}" for count, word in counts if count) or "no targets"
    return "\n".join([how, "", table(rows, heads), "", said, *failed])
