"""Finding the tensors and modules that an object holds.

Any object can be a module. Its members are its attributes, the items of a list or tuple, the values
of a dict; a member of a member has a dotted name, as in `layers.0.weight`.
"""

from __future__ import annotations

import types
from collections.abc import Iterator
from typing import Any

import numpy as np

from treadle.ir.dtype import DType
from treadle.tensor import Tensor

# What is never looked into: it holds no tensors, or holds the whole program.
CLOSED = (
    str, bytes, bytearray, int, float, complex, type(None), set, frozenset, np.ndarray, np.generic,
    DType, type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType,
    types.MethodType,
)  # fmt: skip

Named = list[tuple[str, Any]]


def walk(root: Any) -> Named:
    """Every tensor that `root` holds, and every object that could be a module, `root` among them,
    with their dotted names; an object comes before its members.

    What is reached by two paths stands there twice, under both names; a path that leads back to
    an object that it came through ends there. Each object is looked into once.
    """
    return [] if isinstance(root, CLOSED) else _below(root, {})


def _below(thing: Any, known: dict[int, tuple[Any, Named]]) -> Named:
    """`walk`, with what is known of objects by their id. (The object is kept beside it: an id is
    only unique among objects that live.)"""
    if isinstance(thing, Tensor):
        return [("", thing)]
    if id(thing) in known:
        return known[id(thing)][1]
    known[id(thing)] = thing, []  # what a path leading back here finds
    found: Named = [] if isinstance(thing, (list, tuple, dict)) else [("", thing)]
    for name, member in _members(thing):
        if not isinstance(member, CLOSED):
            for inner, each in _below(member, known):
                found.append((f"{name}.{inner}" if inner else name, each))
    known[id(thing)] = thing, found
    return found


def _members(thing: Any) -> Iterator[tuple[str, Any]]:
    """(name, value) of what an object holds. A class may say it itself, by a method
    `named_members`."""
    if hasattr(type(thing), "named_members"):
        yield from thing.named_members()
    elif isinstance(thing, dict):
        yield from ((str(key), value) for key, value in thing.items())
    elif isinstance(thing, (list, tuple)):
        yield from ((str(number), value) for number, value in enumerate(thing))
    else:
        yield from vars(thing).items() if hasattr(thing, "__dict__") else ()
        for kind in type(thing).__mro__:
            slots = vars(kind).get("__slots__", ())
            for name in (slots,) if isinstance(slots, str) else slots:
                if hasattr(thing, name) and name not in ("__dict__", "__weakref__"):
                    yield name, getattr(thing, name)


def named_tensors(root: Any) -> dict[str, Tensor]:
    """Every tensor that is a parameter or a buffer of `root`, by its dotted name.

    A tensor that was computed from parameters, and so carries a gradient without being a leaf, is
    a result that somebody kept, and is neither. ValueError if two tensors have one name,
    RuntimeError if a layer does not have its parameters yet.
    """
    tensors: dict[str, Tensor] = {}
    for name, thing in walk(root):
        if getattr(type(thing), "needs_first_call", False):
            raise RuntimeError(
                f"{type(thing).__name__} {name!r} makes its parameters at its first call: call the "
                "model once, with a batch, before you ask for its parameters or its state"
            )
        if not isinstance(thing, Tensor) or not thing.is_leaf:
            continue
        if tensors.get(name, thing) is not thing:
            raise ValueError(
                f"two different tensors are both named {name!r}: rename a key or attribute"
            )
        tensors[name] = thing
    return tensors
