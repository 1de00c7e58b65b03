"""Runs and comparisons as tables for people."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any

from treadle.tools.bench import folder as folders
from treadle.tools.bench.statistics import Difference, geometric_mean
from treadle.tools.bench.timing import table

Data = dict[str, Any]

HEADS = (
    "case", "ms", "95 %", "G/s", "first ms", "LLVM ms", "temporaries MB", "peak MB", "beside",
    "ratio", "95 %", "target",
)  # fmt: skip


def seconds(value: float) -> str:
    """Milliseconds, with three digits."""
    return f"{value * 1e3:.3g}" if value < 1 else f"{value * 1e3:.0f}"


def rows(entry: Data) -> list[tuple[str, ...]]:
    """The lines of a case: one, and one more for each library beyond the second."""
    own = entry["libraries"].get("treadle")
    found = folders.summary(own or {})
    if entry["error"] or own is None or found is None:
        return [(entry["name"], entry["error"] or "not run", *[""] * (len(HEADS) - 2))]
    memory = own.get("memory", {})
    head = (
        entry["name"],
        seconds(found.median),
        f"+-{found.spread:.0%}",
        rate(entry, found.median),
        seconds(own["first_seconds"]),
        seconds(own["compile"]["code_seconds"]),
        f"{memory.get('temporaries', own['program']['arena_bytes']) / 1e6:.2f}",
        f"{memory['process_peak_bytes'] / 1e6:.0f}",
    )
    lines = [beside(entry, name) for name in entry["libraries"] if name != "treadle"]
    first, *rest = lines or [("", "", "", "")]
    return [(*head, *first), *[(*[""] * len(head), *line) for line in rest]]


def rate(entry: Data, median: float) -> str:
    """GFLOP/s where operations count, else GB/s."""
    if not median:
        return ""
    if entry["operations"]:
        return f"{entry['operations'] / median / 1e9:.0f} op"
    return f"{entry['bytes'] / median / 1e9:.0f} B" if entry["bytes"] else ""


def beside(entry: Data, name: str) -> tuple[str, str, str, str]:
    """Another library's time, and its ratio to ours."""
    other = entry["libraries"][name]
    found = folders.summary(other)
    difference = folders.difference(entry["libraries"]["treadle"], other)
    if found is None or difference is None:
        return f"{name}: {other['error'] or 'not run'}", "", "", ""
    target = entry["target"] if name == "torch" else None
    return (
        f"{name} {seconds(found.median)}",
        f"{difference.ratio:.2f}",
        f"{difference.low:.2f}..{difference.high:.2f}",
        f"{target:g}" if target else "",
    )


def run_table(data: Data) -> str:
    """A run as a table, under it what else there is to say of cold starts, and the geometric means
    of groups that have a target."""
    lines = [table([row for entry in data["cases"] for row in rows(entry)], HEADS)]
    lines += [line for entry in data["cases"] for line in cold(entry)]
    for library in dict.fromkeys(name for entry in data["cases"] for name in entry["libraries"]):
        if library == "treadle":
            continue
        ratios: dict[str, list[float]] = {}
        for entry in data["cases"]:
            libraries = entry["libraries"]
            if library in libraries and not entry["error"] and entry["target"]:
                found = folders.difference(libraries["treadle"], libraries[library])
                if found is not None:
                    ratios.setdefault(entry["name"].split("/")[0], []).append(found.ratio)
        for group, values in ratios.items():
            if len(values) > 1:
                lines.append(
                    f"{group}: {len(values)} cases, geometric mean {geometric_mean(values):.2f} "
                    f"of {library}, least {min(values):.2f}"
                )
    return "\n".join(lines)


COLD = {
    "import_seconds": "the import", "warm_disk_seconds": "first with a warm disk cache",
    "second_seconds": "second", "whole_seconds": "all until the first result",
}  # fmt: skip


def cold(entry: Data) -> list[str]:
    """What else there is to say of a cold start, a line for each library; medians, in ms."""
    lines = []
    for name, library in entry["libraries"].items():
        found = library.get("cold", {})
        said = [
            f"{words} {seconds(median(found[part]))}"
            for part, words in COLD.items()
            if part in found
        ]
        if said:
            lines.append(f"{entry['name']}, {name}, ms: {', '.join(said)}")
    return lines


def verdict(difference: Difference) -> str:
    """What a difference means, in a word or two."""
    if not difference.is_significant():
        return "no difference found"
    return "faster" if difference.ratio < 1 else "SLOWER"


def comparison_rows(before: Data, after: Data) -> list[tuple[str, ...]]:
    """The cases that both runs have, the largest change first."""
    first = {entry["name"]: entry for entry in before["cases"]}
    found: list[tuple[float, tuple[str, ...]]] = []
    for entry in after["cases"]:
        name = entry["name"]
        if name not in first or "treadle" not in entry["libraries"]:
            continue
        old, new = first[name]["libraries"].get("treadle"), entry["libraries"]["treadle"]
        difference = folders.difference(old or {}, new)
        if old is None or difference is None:
            continue
        times = [folders.summary(each) for each in (old, new)]
        row = (
            name,
            *[seconds(each.median) for each in times if each is not None],
            f"{difference.ratio:.3f}",
            f"{difference.low:.3f}..{difference.high:.3f}",
            f"{difference.p:.3f}",
            f"{difference.delta:+.2f}",
            verdict(difference),
            counts(old, new),
        )
        found.append((abs(difference.ratio - 1), row))
    return [row for _, row in sorted(found, key=lambda pair: -pair[0])]


COUNTS = (
    ("program", "launches"), ("program", "kernels"), ("program", "bytes"),
    ("program", "operations"), ("compile", "lines"), ("memory", "temporaries"),
)  # fmt: skip


def counts(old: Data, new: Data) -> str:
    """The counts that changed: they do not depend on the machine's mood."""
    changed = []
    for part, name in COUNTS:
        before, after = (each.get(part, {}).get(name) for each in (old, new))
        if before is not None and after is not None and before != after:
            changed.append(f"{name} {before:,} -> {after:,}")
    return ", ".join(changed)


COMPARED = (
    "case", "before ms", "after ms", "ratio", "95 %", "p", "delta", "verdict", "counts",
)  # fmt: skip


def comparison(before: Data, after: Data) -> str:
    """Two runs beside each other."""
    lines = comparison_rows(before, after)
    if not lines:
        return "the two runs have no case in common"
    text = [table(lines, COMPARED)]
    names = [{entry["name"] for entry in each["cases"]} for each in (before, after)]
    for words, missing in (("before", names[0] - names[1]), ("after", names[1] - names[0])):
        if missing:
            text.append(f"only {words}: {', '.join(sorted(missing))}")
    differing = machine_differences(before["machine"], after["machine"])
    if differing:
        text.append("the runs are not of one machine or setting: " + ", ".join(differing))
    return "\n".join(text)


def machine_differences(before: Data, after: Data) -> list[str]:
    """In what two machine descriptions differ, apart from the commit."""
    names: Sequence[str] = [n for n in before if n not in ("commit", "treadle")]
    return [f"{n}: {before[n]} and {after.get(n)}" for n in names if before[n] != after.get(n)]
