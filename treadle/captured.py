"""`jit`: a function as one program, traced once and replayed.

    function --trace--> graphs --Captured--> Program;   call --guards hold--> replay

`Jit` is the function that `jit` returns. For each *signature* (structure of the arguments, shapes,
dtypes, devices, Python values that are no floats) it keeps what was captured (`Variant`), with
guards on everything else that the trace could have read. What is captured is in
`engine/capture.py`, what is guarded in `engine/guards.py`, and docs/jit.md says it to users.
"""

from __future__ import annotations

import functools
import inspect
import types
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import repeat
from operator import attrgetter, is_
from typing import Any

import numpy as np

from treadle import config
from treadle.dims import Dim
from treadle.engine import inside, trace
from treadle.engine.capture import Captured
from treadle.engine.direct import Direct
from treadle.engine.footprint import Memory, footprint
from treadle.engine.guards import PLAIN, Guards, Item
from treadle.engine.realize import LOCK, realize
from treadle.engine.recipe import Stale
from treadle.engine.storage import memory
from treadle.engine.trace import JitError
from treadle.events import emit
from treadle.generator import give_back, next_keys
from treadle.graph.tree import Structure, flatten, unflatten
from treadle.ir.ops import BUFFER
from treadle.tensor import Tensor
from treadle.tensor import mode as face_mode
from treadle.tracer import Given, Result, Traced, flows, trace_function

SIGNATURES = 64  # kept by one function; the one used longest ago goes first
SAME_SIGNATURE = 8  # variants kept of one signature

_grad = attrgetter("_grad")
_value = attrgetter("value")
_KNOBS = [knob for knob in config.KNOBS.values() if knob.changes_code]
_KNOBS += [config.DEVICE, config.THREADS, config.PORTABLE_POOL]


def jit(
    function: Callable[..., Any] | None = None,
    *,
    static: int | str | Sequence[int | str] = (),
    donate: int | Sequence[int] = (),
) -> Any:
    """The function, captured: its first call with a signature traces it and makes one program of
    it, later ones only run that program. Works on functions and methods, and as `@jit(..)` with
    options.

    Results are what the function itself would give, always in memory of their own. Tensors that it
    reaches from outside are read, and changed, as they are at each call. Float arguments are
    run-time numbers; ints, bools, strings and other objects are part of the signature.

    static: arguments (numbers or names) whose floats are part of the signature too. donate:
    positions of tensor arguments whose memory results may take over; the caller cannot use them
    afterwards. JitError says what cannot be captured, where, and what to do. See docs/jit.md.

    >>> @jit
    ... def double(x):
    ...     return x * 2
    >>> double(Tensor([1.0, 2.0])).tolist()
    [2.0, 4.0]
    """
    if function is None:
        return functools.partial(jit, static=static, donate=donate)
    return Jit(function, static, donate)


@dataclass(eq=False)
class Variant:
    """What was captured for a signature, and when it holds.

    structure, leaves: the tree of the result, whose leaves are `Result`s and values. draws: how
    many random keys a call takes. learning: the closed-over tensors whose `grad` counts; bare:
    which of them had none. rebound: places outside that get new tensors, by their number. sizes:
    the values of Variables that the trace has looked at. key: the signature; flat: how each
    argument looks, if they are only tensors and objects; settings: of knobs and no_grad.
    """

    captured: Captured
    guards: Guards
    structure: Structure
    leaves: list[Any]
    draws: int
    learning: list[Any]
    rebound: list[tuple[Item, int]]
    sizes: dict[str, int]
    key: tuple[Any, ...]
    flat: list[Any] | None
    settings: tuple[Any, ...]
    bare: list[bool] = field(init=False)
    direct: Direct | None = None  # the short way, if nothing is to be done beside the native call
    settings_seen: int = -1  # how often knobs had been set when they were last compared

    def __post_init__(self) -> None:
        self.bare = list(map(is_, map(_grad, self.learning), repeat(None)))
        more = self.sizes or self.draws or self.rebound or self.guards.floats
        if self.flat is not None and not more:
            self.direct = self.captured.direct(self.flat)

    def settings_hold(self) -> bool:
        """Whether the knobs, no_grad and autocast are set as they were."""
        mode = face_mode
        if self.settings[0] is not mode.recording or self.settings[1] is not mode.narrow:
            return False
        if self.settings_seen != config.Knob.settings:
            if self.settings != _settings():
                return False
            self.settings_seen = config.Knob.settings
        return True

    def holds(self) -> bool:
        """Whether what the function reads from outside is what it was; quickly."""
        for refresh in self.guards.refreshers:
            refresh()
        return self.guards.hold() and self.gradients_hold()

    def gradients_hold(self) -> bool:
        """Whether the same tensors have a gradient."""
        if not self.learning:
            return True
        return list(map(is_, map(_grad, self.learning), repeat(None))) == self.bare

    def mismatch(self) -> str:
        """Why this does not fit what the function reads from outside, or "". Tensors that stand in
        the place of others are taken for them from now on."""
        if self.holds():
            return ""
        replaced, reason = self.guards.changes()
        if reason:
            return reason
        try:
            self.captured.replace(replaced)
        except Stale as stale:
            return str(stale)
        self.learning = [replaced.get(cell, cell) for cell in self.learning]
        self.guards.accept()
        if not self.gradients_hold():
            return "a tensor has a gradient that had none, or the other way round"
        return ""

    def run(self, tensors: Sequence[Tensor], floats: Sequence[float], keys: Sequence[int]) -> Any:
        """Replay, after `holds`. Stale if a closed-over tensor does not fit."""
        if self.guards.floats:
            floats = [*floats, *self.guards.float_values()]
        made = self.captured.run(tensors, floats, keys)
        if self.rebound:
            self._rebind(made)
        return self.result(made)

    def result(self, made: Sequence[Any]) -> Any:
        """What the function returns, of what was made."""
        if self.structure.kind is None:
            leaf = self.leaves[0]
            return made[leaf.number] if type(leaf) is Result else leaf
        leaves = [made[leaf.number] if type(leaf) is Result else leaf for leaf in self.leaves]
        return unflatten(self.structure, leaves)

    def _rebind(self, made: Sequence[Any]) -> None:
        """Put new tensors into their places outside. They are what the next call finds there."""
        replaced = {}
        for item, number in self.rebound:
            item.put(made[number])
            old = self.guards.known[item.position]
            if isinstance(old, Tensor):
                replaced[old] = self.guards.known[item.position] = made[number]
        if len(set(map(id, replaced.values()))) == len(replaced):
            self.captured.replace(replaced)

    def sizes_hold(self, tensors: Sequence[Tensor]) -> str:
        """Why the sizes of these arguments do not fit, or ""."""
        for tensor in tensors:
            for name, value in tensor.bindings.items():
                if self.sizes.get(name, value) != value:
                    return (
                        f"Variable {name}, whose value the function has looked at, was "
                        f"{self.sizes[name]} and is {value}"
                    )
        return ""


class Jit:
    """A captured function; see `jit`."""

    def __init__(self, function: Callable[..., Any], static: Any, donate: Any) -> None:
        if not callable(function):
            raise TypeError(f"jit: {function!r:.80} is not a function")
        _refuse_pieces(function)
        functools.update_wrapper(self, function)
        self.function = function
        self.name = getattr(function, "__qualname__", type(function).__name__)
        self.names = _parameter_names(function)
        self.static = frozenset(self._named(each) for each in _listed(static))
        self.donate = frozenset(self._named(each) for each in _listed(donate))
        self.variants: OrderedDict[tuple[Any, ...], list[Variant]] = OrderedDict()
        self.objects: dict[int, Any] = {}
        self.last: Variant | None = None
        self.moving: set[str] = set()  # floats from outside that have changed, by their names
        self.fixed: set[str] = set()  # those that cannot be run-time numbers

    def _named(self, which: int | str) -> int | str:
        """A parameter by its name; by its number if that has none."""
        if isinstance(which, int):
            return self.names[which] if 0 <= which < len(self.names) else which
        if which not in self.names:
            raise ValueError(f"jit: {self.name} has no parameter {which!r}; it has {self.names}")
        return which

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    # ---- calling ---------------------------------------------------------------------------------
    def __call__(self, *args: Any, **named: Any) -> Any:
        if (inside.scopes and inside.opened()) or trace.current() is not None:
            # part of another function's program
            return self.function(*args, **named)
        with LOCK:
            last = self.last
            if last is not None and not named:
                try:
                    if last.direct is not None and last.settings_hold() and last.holds():
                        made = last.captured.replay(last.direct, args)
                        if made is not None:
                            return last.result(made)
                    tensors = self._match(last, args)
                    if tensors is not None and last.holds():
                        keys = next_keys(last.draws) if last.draws else ()
                        return last.run(tensors, (), keys)
                except Stale:
                    pass  # it is found again below, and says why
            return self._call(args, named)

    def _match(self, variant: Variant, args: Sequence[Any]) -> list[Tensor] | None:
        """The tensors among the arguments, if all are of the kinds that this was captured for."""
        if variant.flat is None or variant.sizes or len(args) != len(variant.flat):
            return None
        if not variant.settings_hold():
            return None
        buffers, history = memory.buffers, memory.history
        tensors = []
        for arg, kind in zip(args, variant.flat):
            if type(kind) is int:
                if id(arg) != kind:
                    return None
                continue
            cls, dtype, shape, device, learns = kind
            if type(arg) is not cls or arg._requires_grad is not learns or arg._grad is not None:
                return None
            node = arg.node
            if node.op is not BUFFER or arg.target is not None or node.arg[0] not in buffers:
                realize([arg])
                node = arg.node
            slot, size, place = node.arg
            if node.dtype is not dtype or size != shape or place != device or slot in history:
                return None
            tensors.append(arg)
        if len(tensors) > 1 and len(set(tensors)) < len(tensors):
            return None
        return tensors

    def _call(self, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Find the variant for these arguments, or trace one, and replay it."""
        given, key = self._sort(args, named)
        reason = ""
        for variant in self.variants.get(key, ()):
            mismatch = variant.sizes_hold(given.tensors) or variant.mismatch()
            if not mismatch:
                try:
                    result = variant.run(given.tensors, given.floats, next_keys(variant.draws))
                except Stale as stale:
                    mismatch = str(stale)
                else:
                    self._use(variant)
                    return result
            reason = reason or mismatch
            self.moving |= variant.guards.moved
        if self.variants:
            reason = reason or self._difference(key)
            emit("retrace", function=self.name, reason=reason)
        emit("trace", function=self.name, reason=reason)
        variant, keys, needed = self._trace(given, key)
        needed.check(self.name)
        result = variant.run(given.tensors, given.floats, keys)
        self._keep(variant, given)
        return result

    def memory(self, *args: Any, **named: Any) -> Memory:
        """The memory that a call with these arguments takes: bytes of `arguments`, `closed_over`
        tensors, `results` and `temporaries`, and the `peak`. The function is traced if it has to
        be, but nothing of it runs. Of a method, ask the class, as Python does not tell
        which object it is for: `Model.forward.memory(model, x)`.

        >>> jit(lambda x: x @ x).memory(Tensor.ones(8, 8)).results
        256
        """
        if trace.current() is not None:
            raise JitError(f"{self.name}.memory: ask outside of a captured function")
        with LOCK:
            given, key = self._sort(args, named)
            for variant in self.variants.get(key, ()):
                if not variant.sizes_hold(given.tensors) and not variant.mismatch():
                    return footprint(variant.captured, given.tensors)
            variant, keys, needed = self._trace(given, key)
            give_back(keys)
            self._keep(variant, given)
            return needed

    def _trace(self, given: Given, key: tuple[Any, ...]) -> tuple[Variant, list[int], Memory]:
        """A new variant, the random keys of its first call, and the memory that it takes."""
        guards = self._guards(given)
        guards.promote(self.moving - self.fixed)
        try:
            traced = self._traced(given, guards)
        except Exception:
            if not guards.floats:
                raise
            # a float that changes cannot be a run-time number here: it is traced for each value
            self.fixed |= {item.name for item in guards.floats}
            guards = self._guards(given)
            traced = self._traced(given, guards)
        variant = Variant(
            traced.captured,
            guards,
            traced.structure,
            traced.leaves,
            len(traced.keys),
            traced.learning,
            traced.rebound,
            traced.sizes,
            key,
            _flat(given, key),
            _settings(),
        )
        needed = footprint(traced.captured, given.tensors)
        emit("memory", function=self.name, memory=needed)
        return variant, traced.keys, needed

    def _guards(self, given: Given) -> Guards:
        objects = [(type(each).__name__.lower(), each) for each in given.objects]
        guards = Guards([(self.name, self.function), *objects])
        for refresh in guards.refreshers:
            refresh()
        return guards

    def _traced(self, given: Given, guards: Guards) -> Traced:
        before = [held[key] for held, key in guards.unguarded]
        traced = trace_function(self.function, self.name, given, guards)
        for (held, key), old in zip(guards.unguarded, before, strict=True):
            if held[key] is not old and held[key] != old:
                raise JitError(
                    f"{self.name} changes {key!r}, which would be done once and not at every call: "
                    "do that outside of the captured function"
                )
        return traced

    def _keep(self, variant: Variant, given: Given) -> None:
        same = self.variants.setdefault(variant.key, [])
        same.insert(0, variant)
        del same[SAME_SIGNATURE:]
        while len(self.variants) > SIGNATURES:
            self.variants.popitem(last=False)
        for each in given.objects:
            self._forget_with(each)
        self._use(variant)

    def _use(self, variant: Variant) -> None:
        """This variant is the one to try first."""
        if self.last is not None and self.last is not variant:
            self.last.captured.gradients.release()
        self.last = variant
        self.variants.move_to_end(variant.key)
        same = self.variants[variant.key]
        same.insert(0, same.pop(same.index(variant)))

    # ---- signatures ------------------------------------------------------------------------------
    def _sort(self, args: tuple[Any, ...], named: dict[str, Any]) -> tuple[Given, tuple[Any, ...]]:
        """The arguments sorted, and the key of their signature. JitError for one that has no place
        in a signature."""
        leaves, structure = flatten((args, named))
        realize([leaf for leaf in leaves if isinstance(leaf, Tensor)])
        given = Given(structure)
        parts: list[Any] = [structure, _settings()]
        numbers: dict[int, int] = {}
        donated: list[int] = []
        for leaf, argument in zip(leaves, self._arguments_of(args, named), strict=True):
            if isinstance(leaf, Tensor):
                number = numbers.setdefault(id(leaf), len(numbers))
                if number == len(given.tensors):
                    given.tensors.append(leaf)
                    given.tensor_words.append(f"argument {argument}")
                    donated += [number] if argument in self.donate else []
                given.places.append(("tensor", number))
                parts.append((*_kind(leaf), number))
            elif type(leaf) is float and argument not in self.static:
                given.places.append(("float", len(given.floats)))
                given.floats.append(leaf)
                given.float_words.append(f"argument {argument}")
                parts.append(float)
            else:
                given.places.append(("fixed", leaf))
                parts.append(self._fixed_part(leaf, argument, given))
        given.donated = tuple(donated)
        return given, tuple(parts)

    def _arguments_of(self, args: tuple[Any, ...], named: dict[str, Any]) -> Iterator[int | str]:
        """For each leaf the argument that it is in: the name of the parameter, or the number."""
        for number, arg in enumerate(args):
            name = self.names[number] if number < len(self.names) else number
            yield from repeat(name, len(flatten(arg)[0]))
        for key in sorted(named, key=repr):  # the order of `flatten`
            yield from repeat(key, len(flatten(named[key])[0]))

    def _fixed_part(self, leaf: Any, argument: int | str, given: Given) -> Any:
        """What a value that is neither a tensor nor a run-time float adds to the key."""
        if isinstance(leaf, np.ndarray):
            raise JitError(
                f"{self.name}: argument {argument} is a NumPy array, whose numbers would be "
                "captured as they are now: pass Tensor(array)"
            )
        if isinstance(leaf, Dim):
            return "size", leaf.node, tuple(leaf.bindings.items())
        if isinstance(leaf, PLAIN) and not isinstance(leaf, slice):
            return type(leaf), repr(leaf) if isinstance(leaf, float) else leaf
        given.objects.append(leaf)
        return "object", id(leaf)

    def _difference(self, key: tuple[Any, ...]) -> str:
        """In which way a signature is new."""
        before = next(reversed(self.variants))
        if before[0] != key[0]:
            return "the arguments have another structure"
        if before[1] != key[1]:
            return "no_grad or a knob has changed"
        for number, (old, new) in enumerate(zip(before[2:], key[2:], strict=True)):
            if old != new:
                return f"argument {number} was {_words(old)} and is {_words(new)}"
        return "the signature is another"

    # ---- objects ---------------------------------------------------------------------------------
    def _forget_with(self, thing: Any) -> None:
        """Forget what was captured for an object when it dies. (One that cannot tell is kept.)"""
        key = id(thing)
        if key in self.objects:
            return
        try:
            self.objects[key] = weakref.ref(thing, partial(_gone, weakref.ref(self), key))
        except TypeError:
            self.objects[key] = thing

    def forget(self, key: int) -> None:
        """The object with this id is gone."""
        self.objects.pop(key, None)
        for signature in [s for s in self.variants if ("object", key) in s]:
            del self.variants[signature]
        if self.last is not None and ("object", key) in self.last.key:
            self.last = None


def _gone(jitted: weakref.ref[Jit], key: int, _: object) -> None:
    found = jitted()
    if found is not None:
        found.forget(key)


# ---- small questions -----------------------------------------------------------------------------
def _settings() -> tuple[Any, ...]:
    """What changes a program beside the function and its arguments."""
    return (face_mode.recording, face_mode.narrow, *map(_value, _KNOBS))


def _kind(tensor: Tensor) -> tuple[Any, ...]:
    """What a tensor in memory adds to a key: all that a program depends on, except its numbers."""
    node = tensor.node
    return (
        type(tensor), node.dtype, node.arg[1:], tensor._requires_grad, flows(tensor),
        tensor._grad is None,
    )  # fmt: skip


def _flat(given: Given, key: tuple[Any, ...]) -> list[Any] | None:
    """How each argument looks, if they are objects and different tensors, none with a gradient:
    (class, dtype, shape, device, requires_grad), or the id of an object."""
    arguments = given.structure.parts[0].parts
    if given.structure.parts[1].parts or any(part.kind is not None for part in arguments):
        return None
    found: list[Any] = []
    for (kind, _), part in zip(given.places, key[2:], strict=True):
        if kind == "fixed" and part[0] == "object":
            found.append(part[1])
        elif kind == "tensor" and part[4] is part[3] and part[5]:
            cls, dtype, (shape, device), learns = part[:4]
            found.append((cls, dtype, shape, device, learns))
        else:
            return None
    return (
        found if sum(kind == "tensor" for kind, _ in given.places) == len(given.tensors) else None
    )


def _words(part: Any) -> str:
    """A part of a key in words."""
    if part is float:
        return "a float"
    if isinstance(part[0], type) and issubclass(part[0], Tensor):
        shape, device = part[2]
        return f"{part[1]} {shape} on {device}" + (" with a gradient" if part[4] else "")
    return "another object" if part[0] == "object" else repr(part[-1])


def _listed(which: Any) -> list[Any]:
    return [which] if isinstance(which, int | str) else list(which)


def _parameter_names(function: Callable[..., Any]) -> list[str]:
    """The names of the parameters that may be given by position."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [parameter.name for parameter in parameters if parameter.kind in positional]


def _refuse_pieces(function: Callable[..., Any]) -> None:
    """JitError for a function that runs in pieces."""
    tests = (
        inspect.isgeneratorfunction,
        inspect.iscoroutinefunction,
        inspect.isasyncgenfunction,
    )
    if any(test(function) for test in tests):
        raise JitError(
            f"{getattr(function, '__qualname__', function)} is a generator or a coroutine, which "
            "runs in pieces; a captured function runs as a whole: capture what it does between two "
            "yields"
        )
