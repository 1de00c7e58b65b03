"""Passes: every step from a graph to machine code has a name, and stands in a list with its reason.

`run` takes a value through a list of passes. It can begin after one and stop after another by name;
with the knob VERIFY it checks the law of what each pass gives; each pass is an event.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from treadle import config
from treadle.events import emit, wanted
from treadle.ir.verify import verify


class Pass(NamedTuple):
    """name; how(value, context) -> value; what it takes and gives (a stage of LAWS, or another
    word); why it is there."""

    name: str
    how: Callable[[Any, Any], Any]
    takes: str
    gives: str
    why: str


def _functions(functions: Iterable[Any]) -> None:
    for function in functions:
        verify(function, "program")


# what is checked of a value, by the word for what it is
LAWS: dict[str, Callable[[Any], None]] = {
    "graph": lambda roots: verify(roots, "graph"),
    "schedule": lambda schedule: verify([call.kernel for call in schedule.calls()], "kernel"),
    "kernel": lambda kernel: verify(kernel, "kernel"),
    "functions": _functions,
}


def run(
    passes: Sequence[Pass],
    value: Any,
    context: Any,
    after: str | None = None,
    upto: str | None = None,
) -> Any:
    """The value after these passes, those behind `after` and up to `upto` if they are named.

    ValueError if there is no pass of that name. LawError (with the knob VERIFY) names the pass.
    """
    names = [each.name for each in passes]
    for name in (after, upto):
        if name is not None and name not in names:
            raise ValueError(f"there is no pass {name!r} here; there are {', '.join(names)}")
    first = 0 if after is None else names.index(after) + 1
    last = len(passes) if upto is None else names.index(upto) + 1
    for each in passes[first:last]:
        start = time.perf_counter()
        value = each.how(value, context)
        if config.VERIFY and each.gives in LAWS:
            LAWS[each.gives](value)
        if wanted("pass"):
            emit("pass", name=each.name, value=value, seconds=time.perf_counter() - start)
    return value
