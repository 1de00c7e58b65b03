"""A corpus lowered by this checkout: the text of every stage and the counts, as plain data. No code
is generated, so some hundred programs take seconds."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from treadle.engine import device as devices
from treadle.engine import programs
from treadle.engine.estimate import estimate, total_of
from treadle.ir import passes, text
from treadle.ir.node import Node
from treadle.kernel import pipeline
from treadle.tools import meanings, saved
from treadle.tools.debug import known_sizes
from treadle.tools.saved import Saved

Data = dict[str, Any]
NOT_RUN = "not run: "
ORIGIN = "from "  # what a recorded text says first: which test or program made it
STAGES = ("graph", "kernels", "actions", "source")


def lower(program: Saved, device: str = "CPU") -> Data:
    """A program lowered: {"graph": text, "kernels": .., "actions": .., "source": .., "counts": ..},
    or {"error": why not}."""
    try:
        return _lower(program, device)
    except Exception as error:  # whatever this checkout says about it is the finding
        return {"error": f"{type(error).__name__}: {error}".splitlines()[0]}


def _lower(program: Saved, device: str) -> Data:
    backend = devices.backend(device)
    order = programs.Order(program.assigns, backend.target, program.roots)
    schedule = passes.run(programs.PASSES, program.roots, order)
    calls = list(schedule.calls())
    distinct: dict[Node, int] = {}
    for call in calls:
        distinct.setdefault(call.kernel, len(distinct))
    lowered = [
        pipeline.lower(kernel, backend.target, f"k{number}") for kernel, number in distinct.items()
    ]
    functions = [function for each in lowered for function in each.functions]
    source = backend.render(functions)
    total = total_of(estimate(call.kernel, known_sizes(call)) for call in calls)
    return {
        "error": "",
        "graph": text.show(order.roots),
        "kernels": "\n".join(
            [*(text.show(kernel) for kernel in distinct), *map(_launched(distinct), calls)]
        ),
        "actions": "\n".join(
            f"kernel {number}\n" + "\n".join(map(str, each.actions))
            for number, each in enumerate(lowered)
        ),
        "source": source,
        "counts": {
            "launches": len(calls),
            "kernels": len(distinct),
            "phases": len({call.phase for call in calls}),
            "arena": schedule.arena,
            "lines": source.count("\n"),
            "steps": sum(len(function.body) for function in functions),
            "loads": total.loads,
            "stores": total.stores,
            "bytes": total.bytes,
            "operations": total.operations,
        },
    }


def _launched(numbers: dict[Node, int]) -> Callable[[Any], str]:
    return lambda call: f"phase {call.phase}: kernel {numbers[call.kernel]} of {call.buffers}"


def lower_all(corpus: Path, names: Iterable[str] | None = None) -> dict[str, Data]:
    """Every text of a corpus, or those of these names, by name."""
    found: dict[str, Data] = {}
    for path in sorted(corpus.glob("*.txt")):
        if names is None or path.stem in names:
            found[path.stem] = _of_file(path, lower)
    return found


def _of_file(path: Path, how: Callable[[Saved], Data]) -> Data:
    origin = ""
    try:
        _, _, origin = path.read_text(encoding="utf-8").partition("\n")[0].partition(f"# {ORIGIN}")
        program = saved.read_graph(path)
    except (ValueError, OSError) as error:  # damaged, or of what this checkout does not know
        return {"of": origin, "error": f"cannot be read: {error}"}
    return {"of": origin, **how(program)}


def run_all(corpus: Path, names: Sequence[str], folder: Path, seconds: float) -> dict[str, str]:
    """Compile and run programs on seeded inputs, as many as there is time for; the results go to
    `folder` as NAME.npz. Returns what is said of those that did not run."""
    folder.mkdir(parents=True, exist_ok=True)
    ends = time.monotonic() + seconds
    said: dict[str, str] = {}
    for name in names:
        if time.monotonic() > ends:
            said[name] = f"{NOT_RUN}there was no time left"
            continue
        program = saved.read_graph(corpus / f"{name}.txt")
        try:
            with np.errstate(all="ignore"):
                results = _run(program)
        except meanings.TooLarge as error:
            said[name] = f"{NOT_RUN}{error}"
            continue
        except Exception as error:  # an index out of range on both sides is no difference
            said[name] = f"{type(error).__name__}: {error}".splitlines()[0]
            continue
        limits = [meanings.tolerance(root.dtype) for root in program.roots]
        arrays = {f"r{number}": np.asarray(value) for number, value in enumerate(results)}
        np.savez(folder / f"{name}.npz", limits=np.asarray(limits), **arrays)  # type: ignore[arg-type]
    return said


def _run(program: Saved, device: str = "CPU") -> list[Any]:
    given, _ = meanings.sound_inputs(program.roots)
    order = programs.Order(program.assigns, devices.backend(device).target, program.roots)
    schedule = passes.run(programs.PASSES, program.roots, order)
    return list(meanings.of_program(schedule, program.roots, given, device))


def main() -> None:
    """Do what standard input asks for, as JSON: {"corpus", "out"} lowers to the file `out`;
    with "names", "folder" and "seconds" it runs these."""
    asked = json.load(sys.stdin)
    corpus = Path(asked["corpus"])
    if "folder" in asked:
        found: Any = run_all(corpus, asked["names"], Path(asked["folder"]), asked["seconds"])
    else:
        found = lower_all(corpus)
    Path(asked["out"]).write_text(json.dumps(found), encoding="utf-8")
