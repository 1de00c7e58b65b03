"""Schedules as text: one action a line. `parse_actions(show_actions(actions)) == actions`.

    split j: j1 | ju(4) | jv(16)          fuse i, j: ij             reorder i1, k1
    grid i0, j1                           unroll ku, iu, ju         vector jv
    local il, jl slot 0                   tail i0 shift             hint store0 nontemporal
    cooperate ku                          cooperate kg tasks kt     subtotal add0 at jo
    stage arg2 at j1 as B layout 1,0      keep add1 as row          detach add0 at lo as t
    stage arg1 at k0 as A shared swizzle 128 depth 4 copy tma
    stage store0 at iw as C shared swizzle 128 copy tma shape 64,128
    mma add0: im, jm, km inflight 1       persist 132               skew add1 1
    mma add0: kp                          stage arg2 at j1 as B layout 0,1 group 0,2
    prefetch arg1 in add1 along i 1 nontemporal     join k, k2
    fission add0 at jo as s               bound sk at jo in 64
    trim n                                sieve m by k
    transpose copy_panel: panel1v, panel0v                      pad i 16

Empty lines do not count, nor what follows a `#` after a space.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from treadle.kernel.actions import Action, Fuse, Hint, Kind, Place, Prefetch, Reorder, Split, Tail
from treadle.kernel.bound import Bound
from treadle.kernel.cooperate import Cooperate, CooperateTasks
from treadle.kernel.dot import Inside
from treadle.kernel.gpu import Occupancy, Persist, Skew, Snake
from treadle.kernel.join import Join
from treadle.kernel.kernel import SCOPES, ScheduleError
from treadle.kernel.mma import Mma
from treadle.kernel.pad import Pad
from treadle.kernel.retile import Detach, Fission, StageStore, Subtotal
from treadle.kernel.sieve import Sieve
from treadle.kernel.stage import Keep, Stage
from treadle.kernel.transpose import Transpose
from treadle.kernel.trim import Trim

VERBS = (
    "bound, cooperate, detach, fission, fuse, grid, hint, join, keep, local, mma, occupancy, pad, "
    "persist, place, prefetch, reorder, sieve, skew, snake, split, stage, subtotal, tail, "
    "transpose, trim, unroll, vector"
)
_NAME = r"\w+"
_LIST = r"\w+(?:, *\w+)*"


def show_actions(actions: Iterable[Action]) -> str:
    """The actions as text, a line each."""
    return "\n".join(str(action) for action in actions)


def parse_actions(text: str) -> list[Action]:
    """The actions that a text lists. ScheduleError names the line that is none."""
    actions: list[Action] = []
    for number, line in enumerate(text.splitlines(), start=1):
        words = re.sub(r"(^|\s)#.*", "", line).strip()
        if not words:
            continue
        actions.append(_parse(words, number))
    return actions


def _parse(words: str, number: int) -> Action:
    for pattern, make in FORMS:
        found = pattern.fullmatch(words)
        if found is not None:
            return make(*found.groups())
    raise ScheduleError(f"line {number}: {words!r} is no action; actions begin with {VERBS}")


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(","))


def _split(leaf: str, outer: str, inner: str) -> Action:
    parts = (part.strip() for part in inner.split("|"))
    sizes = (re.fullmatch(r"(\w+)\((\d+)\)", part) for part in parts)
    pairs = [(m[1], int(m[2])) if m else None for m in sizes]
    if None in pairs:
        raise ScheduleError(f"split {leaf}: each part after the first is written name(size)")
    return Split(leaf, outer, tuple(pair for pair in pairs if pair is not None))


def _kind(kind: str, leaves: str, slot: str | None) -> Action:
    return Kind(kind, _names(leaves), None if slot is None else int(slot))


def _mma(statement: str, leaves: str, inflight: str | None) -> Action:
    names = _names(leaves)
    if len(names) == 1 and inflight is None:
        return Inside(statement, names[0])
    if len(names) != 3:
        raise ScheduleError(f"mma {statement}: it takes three leaves, m, n and k, or one of a sum")
    return Mma(statement, (names[0], names[1], names[2]), int(inflight or 0))


def _axis_and_size(text: str) -> tuple[int, int]:
    numbers = [int(part) for part in text.split(",")]
    if len(numbers) != 2:
        raise ScheduleError(f"group {text}: it takes an axis and a size")
    return numbers[0], numbers[1]


_MEMORY: dict[str, Callable[[str], object]] = {
    "layout": lambda text: tuple(int(axis) for axis in text.split(",")),
    "group": _axis_and_size,
    "block": int,
    "pad": int,
    "swizzle": int,
    "depth": int,
    "producer": int,
    "copy": str,
    "cast": str,
    "shape": lambda text: tuple(int(size) for size in text.split(",")),
    "readers": lambda text: tuple(text.split(",")),
}


_STAGE = tuple(word for word in _MEMORY if word != "shape")


def _options(text: str, allowed: Iterable[str]) -> dict[str, Any]:
    """`shared depth 4 copy tma` as keyword arguments."""
    words = text.split()
    found: dict[str, Any] = {}
    while words:
        word = words.pop(0)
        if word in SCOPES:
            found["scope"] = word
        elif word in allowed and words:
            found[word] = _MEMORY[word](words.pop(0))
        else:
            raise ScheduleError(f"{word!r} is no option here; there are {', '.join(allowed)}")
    return found


def _stage(buffer: str, at: str, name: str, rest: str) -> Action:
    return Stage(buffer, at, name, **_options(rest, _STAGE))


def _stage_store(statement: str, at: str, name: str, rest: str) -> Action:
    options = _options(rest, ("swizzle", "copy", "shape"))
    return StageStore(statement, at, name, **options)


FORMS: list[tuple[re.Pattern[str], Callable[..., Action]]] = [
    (re.compile(pattern), make)
    for pattern, make in (
        (rf"split ({_NAME}): *({_NAME}) *\|(.*)", _split),
        (rf"fuse ({_LIST}): *({_NAME})", lambda leaves, name: Fuse(_names(leaves), name)),
        (rf"join ({_LIST})", lambda leaves: Join(_names(leaves))),
        (rf"reorder ({_LIST})", lambda leaves: Reorder(_names(leaves))),
        (rf"(grid|local|unroll|vector) ({_LIST})(?: slot (\d+))?", _kind),
        (rf"tail ({_NAME}) ({_NAME})", Tail),
        (rf"hint ({_NAME}) ({_NAME})", Hint),
        (rf"place ({_NAME}) (thread|root)", Place),
        (
            rf"prefetch ({_NAME}) in ({_NAME}) along ({_NAME}) (\d+)( nontemporal)?",
            lambda buffer, name, leaf, n, past: Prefetch(
                buffer, name, leaf, int(n), past is not None
            ),
        ),
        (rf"cooperate ({_NAME})", Cooperate),
        (rf"cooperate ({_NAME}) tasks ({_NAME})", CooperateTasks),
        (rf"stage (store\d+) at ({_NAME}) as ({_NAME})(.*)", _stage_store),
        (rf"stage (\w+(?:#\d+)?) at ({_NAME}) as ({_NAME})(.*)", _stage),
        (rf"keep ({_NAME}) as ({_NAME})", Keep),
        (rf"detach ({_NAME}) at ({_NAME}) as ({_NAME})", Detach),
        (rf"bound ({_NAME}) at ({_NAME}) in (\d+)", lambda a, b, n: Bound(a, b, int(n))),
        (rf"trim ({_NAME})", Trim),
        (rf"transpose ({_NAME}): *({_NAME}), *({_NAME})", Transpose),
        (rf"fission ({_NAME}) at ({_NAME}) as ({_NAME})", Fission),
        (rf"subtotal ({_NAME}) at ({_NAME})", Subtotal),
        (rf"mma ({_NAME}): *({_LIST})(?: inflight (\d+))?", _mma),
        (rf"sieve ({_NAME}) by ({_NAME})", Sieve),
        (rf"pad ({_NAME}) (\d+)", lambda name, n: Pad(name, int(n))),
        (rf"skew ({_NAME}) (\d+)", lambda name, n: Skew(name, int(n))),
        (r"persist (\d+)", lambda n: Persist(int(n))),
        (r"occupancy (\d+)", lambda n: Occupancy(int(n))),
        (rf"snake ({_NAME})", Snake),
    )
]
