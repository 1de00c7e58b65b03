"""One case in a process of its own, and what was seen of it as plain data.

A call of a captured function is never the same as the one before: the suite draws SETS sets of
inputs and takes them in turns, so nothing that was computed for one call is right for the next.
After the timing the last result is compared with the first one of its set, and the sets' results
with each other: what did not compute is found. A training step changes its weights, and its loss
has to change.
"""

from __future__ import annotations

import json
import sys
import time
import zlib
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from treadle import events
from treadle.engine.estimate import estimate, total_of
from treadle.engine.storage import allocator
from treadle.ir import text
from treadle.ir.node import Node
from treadle.tools.bench import machine, timing
from treadle.tools.bench.case import Case
from treadle.tools.bench.libraries import LIBRARIES, Library, listed
from treadle.tools.bench.suite import CASES
from treadle.tools.debug import known_sizes

SETS = 2
SEED = 5
SAMPLED = 1 << 20  # elements of a result that are compared, at most
FEW = 1000  # of those, that are told to other processes
ALONE = 0.02  # seconds of rest before a block if no other library's threads spin

Data = dict[str, Any]


@dataclass(frozen=True)
class Settings:
    """How to measure: turns, and at least so many seconds and calls in each; the libraries; where
    IR, actions and sources go ("" for nowhere)."""

    turns: int = 7
    seconds: float = 0.2
    calls: int = 3
    libraries: tuple[str, ...] = ("treadle",)
    artifacts: str = ""


class Rotation:
    """A function on each of several sets of inputs in turn."""

    def __init__(self, function: Callable[..., Any], sets: Sequence[Sequence[Any]]) -> None:
        self.function = function
        self.sets = sets
        self.number = -1
        self.result: Any = None

    def __call__(self) -> None:
        self.number = (self.number + 1) % len(self.sets)
        self.result = None  # its memory may be used again
        self.result = self.function(*self.sets[self.number])


class Watch:
    """What the engine says while a function runs first: schedules, compilation, search."""

    def __init__(self) -> None:
        self.heard: dict[str, list[Data]] = {"schedule": [], "compile": [], "search": []}

    def __enter__(self) -> Watch:
        self.stack = ExitStack()
        for name, found in self.heard.items():
            self.stack.enter_context(events.listen(name, found.append))
        return self

    def __exit__(self, *error: object) -> None:
        self.stack.close()

    def compile(self) -> Data:
        """Where the time of compilation went, and what was compiled."""
        compiled = self.heard["compile"]
        return {
            "build_seconds": sum(event["build_seconds"] for event in compiled),
            "code_seconds": sum(event["code_seconds"] for event in compiled),
            "search_seconds": sum(event.get("seconds", 0.0) for event in self.heard["search"]),
            "kernels": sum(event["kernels"] for event in compiled),
            "lines": sum(event["lines"] for event in compiled),
        }

    def program(self) -> Data:
        """What runs: launches, what they move and compute, and the memory between them."""
        schedules = [event["schedule"] for event in self.heard["schedule"]]
        calls = [call for schedule in schedules for call in schedule.calls()]
        total = total_of(estimate(call.kernel, known_sizes(call)) for call in calls)
        return {
            "launches": len(calls),
            "kernels": len({call.kernel for call in calls}),
            "arena_bytes": sum(schedule.arena for schedule in schedules),
            "loads": total.loads,
            "stores": total.stores,
            "bytes": total.bytes,
            "operations": total.operations,
        }

    def write(self, folder: Path) -> None:
        """Graphs, and each kernel with its schedule under one number; sources."""
        folder.mkdir(parents=True, exist_ok=True)
        kernels: dict[Node, int] = {}
        for number, event in enumerate(self.heard["schedule"]):
            (folder / f"graph_{number}.txt").write_text(text.show(event["roots"]))
            for call in event["schedule"].calls():
                kernels.setdefault(call.kernel, len(kernels))
        for kernel, number in kernels.items():
            (folder / f"kernel_{number}.txt").write_text(text.show(kernel))
        # nothing was compiled before, so this is in the order of the kernels
        lowered = [each for event in self.heard["compile"] for each in event["lowered"]]
        for number, each in enumerate(lowered):
            actions = "".join(f"{action}\n" for action in each.actions)
            (folder / f"actions_{number}.txt").write_text(actions)
        for number, event in enumerate(self.heard["compile"]):
            (folder / f"source_{number}.txt").write_text(event["source"])


@dataclass
class Ready:
    """A library's function that has run once on each set: its results, what was seen of it."""

    rotation: Rotation
    expected: list[list[np.ndarray]]
    seen: Data


def prepare(case: Case, library: Library, arrays: Data, artifacts: str) -> Ready:
    """Build the case, and run it once on each set."""
    weights = [library.tensor(array, case.dtype) for array in arrays["weights"]]
    sets = [[library.tensor(array, case.dtype) for array in drawn] for drawn in arrays["sets"]]
    function = library.captured(case.build(library, *weights))
    rotation = Rotation(function, sets)
    seen: Data = {"version": library.version(), "error": ""}
    expected = []
    with Watch() as watch:
        start = time.perf_counter()
        rotation()
        seen["first_seconds"] = time.perf_counter() - start
    expected.append(sampled(library, rotation.result))
    for _ in sets[1:]:
        rotation()
        expected.append(sampled(library, rotation.result))
    if library.name == "treadle":
        seen["compile"], seen["program"] = watch.compile(), watch.program()
        if artifacts:
            watch.write(Path(artifacts))
        seen["memory"] = {
            "device_peak_bytes": allocator.peak,
            "process_peak_bytes": machine.peak_bytes(),
        }
        needed_by = getattr(function, "memory", None)  # a captured function says it
        if needed_by is not None:
            needed = needed_by(*sets[0])
            seen["memory"] |= {
                "arguments": needed.arguments,
                "closed_over": needed.closed_over,
                "results": needed.results,
                "temporaries": needed.temporaries,
                "peak": needed.peak,
            }
    return Ready(rotation, expected, seen)


def sampled(library: Library, result: Any) -> list[np.ndarray]:
    """Some numbers of each tensor of a result."""
    found = []
    for tensor in listed(result):
        flat = library.array(tensor).reshape(-1)
        found.append(flat[:: max(1, flat.size // SAMPLED)].copy())
    return found


def distance(some: Sequence[ArrayLike], others: Sequence[ArrayLike]) -> float:
    """The greatest difference of two results, relative to the greatest number of the second;
    infinite if one is NaN, or of another shape."""
    worst = 0.0
    for one, other in zip(map(np.asarray, some), map(np.asarray, others), strict=True):
        if one.shape != other.shape:
            return float("inf")
        largest = float(np.abs(other).max(initial=0.0)) or 1.0
        apart = float(np.abs(one - other).max(initial=0.0)) / largest
        worst = max(worst, apart if apart == apart else float("inf"))
    return worst


def refuse(case: Case, ready: dict[str, Ready]) -> None:
    """RuntimeError if results of two libraries differ, or sets give the same result."""
    for each in ready.values():
        if distance(each.expected[0], each.expected[1]) == 0:
            raise RuntimeError(f"{case.name}: different inputs give the same result")
    first = next(iter(ready.values()))
    for name, each in ready.items():
        # a step that changes its state starts from equal states
        apart = distance(each.expected[0], first.expected[0])
        if not apart <= case.tolerance:
            raise RuntimeError(f"{case.name}: the result of {name} is {apart:.1e} off")


def stale(case: Case, library: Library, ready: Ready) -> str:
    """Why the last timed call cannot have computed its result, or ""."""
    last = sampled(library, ready.rotation.result)
    expected = ready.expected[ready.rotation.number]
    apart = distance(last, expected)
    if case.consumes and apart == 0:
        return "the state has not changed from the first call to the last"
    if not case.consumes and not apart <= case.tolerance:
        return f"the last result is {apart:.1e} away from the first with these inputs"
    return ""


def draw(case: Case) -> Data:
    """The arrays of a case: the same in every process."""
    random = np.random.default_rng((SEED, zlib.crc32(case.name.encode())))
    return {
        "weights": case.weights(random),
        "sets": [case.inputs(random) for _ in range(SETS)],
    }


def measure(case: Case, settings: Settings) -> Data:
    """A case, on each library in turns. A library that cannot run it has an "error"."""
    arrays = draw(case)
    libraries: dict[str, Library] = {}
    ready: dict[str, Ready] = {}
    result: Data = {}
    for name in settings.libraries:
        try:
            library = LIBRARIES[name]()
            ready[name] = prepare(case, library, arrays, settings.artifacts)
            libraries[name] = library
        except Exception as error:
            if name == "treadle":
                raise
            result[name] = {"error": f"{type(error).__name__}: {error}"}
    refuse(case, ready)
    times = timing.in_turns(
        {name: each.rotation for name, each in ready.items()},
        settings.turns,
        settings.calls,
        block_seconds=settings.seconds,
        rest=timing.REST if len(ready) > 1 else ALONE,
        awake=timing.AWAKE,
    )
    for name, each in ready.items():
        wrong = stale(case, libraries[name], each)
        if wrong:
            raise RuntimeError(f"{case.name}, {name}: {wrong}")
        result[name] = {**each.seen, "blocks": times[name].blocks}
    return result


def measure_cold(case: Case, settings: Settings, imported: float) -> Data:
    """The first call in this fresh process, and the second, on one library."""
    (name,) = settings.libraries
    arrays = draw(case)
    start = time.perf_counter()
    library = LIBRARIES[name]()
    ready = prepare(case, library, arrays, settings.artifacts)
    whole = time.perf_counter() - start
    first = ready.seen["first_seconds"]
    start = time.perf_counter()
    ready.rotation()
    second = time.perf_counter() - start
    seen = {"import_seconds": imported, "whole_seconds": imported + whole, "second_seconds": second}
    few = [flat[:: max(1, flat.size // FEW)].tolist() for flat in ready.expected[0]]
    return {name: {**ready.seen, "blocks": [[first]], "cold": seen, "sampled": few}}


def main(imported: float) -> None:
    """Measure what standard input asks for, {"case": name, "settings": ..}, and print JSON."""
    asked = json.load(sys.stdin)
    options = asked["settings"]
    settings = Settings(**{**options, "libraries": tuple(options["libraries"])})
    sys.argv[0] = f"treadle bench {asked['case']}"  # what recorded programs are of
    case = CASES[asked["case"]]
    if case.cold:
        found = measure_cold(case, settings, imported)
    else:
        found = measure(case, settings)
    print(json.dumps(found))
