"""The table of public names: where each lives, what defines it, and whether it has a gradient.

Functions are written on nodes, `@public(...)` files them here, and the face makes from the table
the methods of Tensor, the functions of the namespace, their docs and their parity tests. A function
takes its tensors first and plain Python arguments after; one spelling of each argument is enough:
`axis` for `dim` and `keepdims` for `keepdim` are accepted here, for all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from inspect import cleandoc, unwrap
from types import CodeType
from typing import Any, TypeVar, cast

from treadle.graph.examples import EXAMPLES

SOURCES = ("PyTorch", "Array API", "NumPy", "tinygrad", "treadle")
GRADIENTS = ("yes", "no", "int")
# our name of an argument -> what else users call it
SPELLINGS = {
    "dim": ("axis",),
    "dims": ("dim", "axes", "axis"),
    "keepdim": ("keepdims",),
    "shape": ("size",),
    "size": ("shape",),
    "repeats": ("sizes",),
    "shifts": ("shift",),
    "diagonal": ("k",),
    "end": ("stop",),
    "steps": ("num",),
}
_VARIADIC = 0x04  # the flag of a code object that has `*arguments`

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Public:
    """A public name.

    function: what the face calls, with nodes for tensors. source: the project or standard whose
    semantics it follows. gradient: "yes"; "no" (the derivative is zero almost everywhere, or there
    is none); "int" (the result is an integer or a bool). kind: "method"; "property" (a method
    without parentheses); "creates" (takes no tensor: a static method); "like" (creates, as the
    tensor that is its first argument); "random" (creates, and its first argument is a key that the
    face draws); "keyed" (a method that may draw: the face gives its keyword `random_key` a function
    that does); "reads" (a method whose result's size may depend on values: the face gives its
    keyword `read` a function that runs and reads them, see `masks.py`).
    """

    name: str
    function: Callable[..., Any]
    source: str
    gradient: str
    kind: str
    aliases: tuple[str, ...]

    @property
    def doc(self) -> str:
        """What it does, in the words of its docstring."""
        return self.function.__doc__ or ""

    @property
    def results(self) -> str:
        """What it returns, as its definition writes it: `Node`, or a tuple of nodes."""
        return str(unwrap(self.function).__annotations__["return"])


METHODS: dict[str, Public] = {}  # of Tensor, aliases too
NAMESPACE: dict[str, Public] = {}  # treadle.name, aliases too
LINALG: dict[str, Public] = {}  # treadle.linalg.name


def public(
    name: str,
    *,
    source: str,
    method: bool = True,
    namespace: bool = False,
    linalg: bool = False,
    aliases: tuple[str, ...] = (),
    gradient: str = "yes",
    kind: str = "method",
) -> Callable[[F], F]:
    """File a function under its public name; the function itself is returned unchanged, so that
    the library's own calls cost nothing more."""

    def register(function: F) -> F:
        if name in EXAMPLES:
            function.__doc__ = f"{cleandoc(function.__doc__ or '')}\n{EXAMPLES[name]}"
        unwrap(function).__qualname__ = name  # Python's own messages ("missing 1 argument") say it
        entry = Public(name, _either_spelling(function, name), source, gradient, kind, aliases)
        for table, wanted in ((METHODS, method), (NAMESPACE, namespace), (LINALG, linalg)):
            for each in (name, *aliases) if wanted else ():
                if each in table:
                    raise ValueError(f"the public name {each} is given twice")
                table[each] = entry
        return function

    return register


def other_spellings(function: Callable[..., Any]) -> dict[str, str]:
    """What else users may write for the arguments of a function, each with our name for it."""
    arguments = _arguments(function)
    pairs = {other: own for own in arguments for other in SPELLINGS.get(own, ())}
    return {other: own for other, own in pairs.items() if other not in arguments}


def _arguments(function: Callable[..., Any]) -> tuple[str, ...]:
    """The names of a function's arguments; `*arguments` is the last."""
    code: CodeType = unwrap(function).__code__
    count = code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & _VARIADIC)
    return code.co_varnames[:count]


def _either_spelling(function: F, name: str) -> F:
    """`function` that also takes the other spellings of its keyword arguments, and what it takes as
    `*shape` or `*dims` by that keyword."""
    ours = other_spellings(function)
    starred = _arguments(function)[-1] if unwrap(function).__code__.co_flags & _VARIADIC else None
    if not ours and starred is None:
        return function

    @wraps(function)
    def either(*args: Any, **named: Any) -> Any:
        for other in [key for key in named if key in ours]:
            own = ours[other]
            if own in named:
                raise TypeError(f"{name}: {own} and {other} are one argument; give one of them")
            named[own] = named.pop(other)
        if starred in named:
            args = (*args, named.pop(starred))
        return function(*args, **named)

    return cast(F, either)
