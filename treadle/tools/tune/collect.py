"""Runs a script and notes which kernels it runs, how often, and how long they take.

    python -m treadle.tools.tune.collect RESULT SCRIPT [argument ..]

Each program is run step by step, which is how the knob DEBUG times kernels, too. RESULT gets a line
of JSON for each kernel, also if the script is interrupted or fails.
"""

from __future__ import annotations

import json
import runpy
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from treadle import config, events
from treadle.engine import tuned
from treadle.engine.estimate import estimate
from treadle.ir import text
from treadle.schedule.plan import Call
from treadle.tools.debug import known_sizes, step_calls


@dataclass
class Seen:
    """A kernel of a script. kernel: its text; written: whether the user wrote its schedule;
    variables: the sizes with which it took longest; seconds: of all runs together; runs."""

    kernel: str
    device: str
    written: bool
    variables: dict[str, int]
    seconds: float = 0.0
    runs: int = 0


class Notes:
    """The kernels seen so far, by text and device."""

    def __init__(self) -> None:
        self.seen: dict[tuple[str, str], Seen] = {}
        self.most: dict[tuple[str, str], float] = {}

    def on_run(self, data: dict[str, Any]) -> None:
        """Notes the steps of a program that has run."""
        device = data["program"].backend.target.name
        for step, seconds in zip(data["steps"], data["seconds"], strict=True):
            calls = step_calls(step)
            weights = [_weight(call) for call in calls]
            whole = sum(weights) or 1.0
            for call, weight in zip(calls, weights, strict=True):
                self._note(call, device, data["variables"], seconds * weight / whole)

    def _note(self, call: Call, device: str, bound: dict[str, int], seconds: float) -> None:
        node, names = tuned.canonical(call.kernel)
        key = (text.show(node), device)
        if key not in self.seen:
            self.seen[key] = Seen(key[0], device, call.kernel.arg is not None, {})
        seen = self.seen[key]
        if seconds >= self.most.get(key, 0.0):
            self.most[key] = seconds
            sizes = known_sizes(call) | bound
            seen.variables = {new: sizes[old] for old, new in names.items() if old in sizes}
        seen.seconds += seconds
        seen.runs += 1


def _weight(call: Call) -> float:
    """What a kernel costs beside others of its phase, about: its bytes and operations."""
    what = estimate(call.kernel, known_sizes(call))
    return 1.0 + what.bytes + what.operations


def costly_first(seen: Iterable[Seen]) -> list[Seen]:
    """The kernels by their time."""
    return sorted(seen, key=lambda kernel: -kernel.seconds)


def main(arguments: list[str]) -> None:
    """Run the script and write what was seen."""
    result, script, *rest = arguments
    notes = Notes()
    events.listeners["run"] = [notes.on_run]  # in place of DEBUG's lines
    sys.argv = [script, *rest]
    sys.path[0] = str(Path(script).resolve().parent)
    try:
        with config.DEBUG.set(1), config.BEAM.set(0):
            events.listeners["trace"] = events.listeners["memory"] = []
            runpy.run_path(script, run_name="__main__")
    finally:
        lines = [json.dumps(asdict(seen)) for seen in costly_first(notes.seen.values())]
        Path(result).write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
