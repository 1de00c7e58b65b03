"""Options that make no sense where they stand: nothing that a user types is ignored."""

from __future__ import annotations

import math
from argparse import Namespace
from collections.abc import Iterable


def refuse(chosen: Namespace, options: Iterable[str], why: str) -> None:
    """ValueError if one of these options was given, which would do nothing here. Their defaults are
    None or False.

    >>> refuse(Namespace(seconds=3.0, quick=False), ("seconds", "quick"), "nothing is measured")
    Traceback (most recent call last):
    ValueError: nothing is measured, so --seconds would do nothing: leave it out
    """
    given = [name for name in options if not any(getattr(chosen, name) is x for x in (None, False))]
    if given:
        named = " and ".join(f"--{name.replace('_', '-')}" for name in given)
        raise ValueError(f"{why}, so {named} would do nothing: leave it out")


def at_least(number: float, least: float, option: str) -> None:
    """ValueError if a number is below what an option takes, or no finite number.

    >>> at_least(0, 1, "--blocks")
    Traceback (most recent call last):
    ValueError: --blocks is a number of at least 1, not 0
    """
    if not (math.isfinite(number) and number >= least):
        raise ValueError(f"{option} is a number of at least {least}, not {number}")
