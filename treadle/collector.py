"""Python's cyclic garbage collector, kept out of the way where many nodes are made."""

from __future__ import annotations

import gc
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

Given = ParamSpec("Given")
Result = TypeVar("Result")


def without_collector(function: Callable[Given, Result]) -> Callable[Given, Result]:
    """A function that makes many nodes, none of them garbage: the cyclic collector would walk them
    all, again and again, and find nothing."""

    @wraps(function)
    def run(*args: Given.args, **named: Given.kwargs) -> Result:
        if not gc.isenabled():
            return function(*args, **named)
        gc.disable()
        try:
            return function(*args, **named)
        finally:
            gc.enable()

    return run
