"""One call of a function, what PyTorch gave for it, and whether treadle gives that too.

It needs no PyTorch: `tools/parity.py` makes calls and what is expected of PyTorch's sample inputs,
and tests/face/test_recorded.py reads those that it recorded.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import parity_rules as rules

from treadle import Tensor

# relative and absolute tolerance of a value
TOLERANCES = {
    "float64": (1e-7, 1e-7),
    "complex64": (2e-4, 2e-5),
    "complex128": (1e-7, 1e-7),
    "float32": (2e-4, 2e-5),
    "float16": (5e-3, 5e-3),
    "bfloat16": (4e-2, 4e-2),
}
GRADIENTS = 5  # how much looser a gradient is judged, in which many cotangents add up


# ---- a call and what is expected -----------------------------------------------------------------
@dataclass
class Array:
    """A tensor of either library: its numbers (of bfloat16 as float32, exactly) and its dtype."""

    values: np.ndarray
    dtype: str
    requires_grad: bool = False

    def tensor(self, device: str) -> Tensor:
        made = Tensor(self.values, device=device)
        made = made.bfloat16() if self.dtype == "bfloat16" else made
        return made.detach().realize().requires_grad_(self.requires_grad)


@dataclass
class Call:
    """A name of PyTorch's with its arguments; tensors in them are Arrays."""

    name: str
    arguments: tuple[Any, ...]
    named: dict[str, Any]


@dataclass
class Expected:
    """What a call gives. error: its message, if it raises. results: Arrays and Python values.
    values: False if only shapes and dtypes are to agree. cotangents: one for each result that has
    a derivative, None for the others. gradients: one for each argument that asks for one, in order,
    None where PyTorch gives none."""

    results: list[Any] = field(default_factory=list)
    error: str = ""
    values: bool = True
    cotangents: list[Array | None] = field(default_factory=list)
    gradients: list[Array | None] = field(default_factory=list)


def array(x: Tensor) -> Array:
    """A tensor of treadle's as an Array."""
    name = str(x.dtype).removeprefix("dtypes.")
    return Array(np.asarray((x.float() if name == "bfloat16" else x).numpy()), name)


def flat(result: Any) -> list[Any]:
    """The parts of a result that may be nested."""
    if isinstance(result, tuple | list):
        return [part for each in result for part in flat(each)]
    return [result]


# ---- judgement -----------------------------------------------------------------------------------
def differs(ours: Any, theirs: Any, values: bool = True, loose: float = 1) -> str:
    """How a result differs from PyTorch's, or "". loose: how many tolerances it may be off."""
    if not isinstance(theirs, Array):
        if isinstance(ours, Tensor):
            return "a tensor where PyTorch gives a Python value"
        return "" if ours == theirs or (ours != ours and theirs != theirs) else "another value"
    if not isinstance(ours, Tensor):
        return f"a {type(ours).__name__} where PyTorch gives a tensor"
    mine = array(ours)
    if mine.values.shape != theirs.values.shape:
        return f"shape {mine.values.shape}, PyTorch {theirs.values.shape}"
    if mine.dtype != theirs.dtype:
        return f"dtype {mine.dtype}, PyTorch {theirs.dtype}"
    return "" if not values or same_numbers(mine, theirs, loose) else "other numbers"


def same_numbers(a: Array, b: Array, loose: float = 1) -> bool:
    """Whether two arrays of one dtype agree, within its rounding."""
    relative, absolute = TOLERANCES.get(b.dtype, (0.0, 0.0))
    if not relative:
        return bool(np.array_equal(a.values, b.values))
    exact = np.complex128 if b.values.dtype.kind == "c" else np.float64
    wide = [each.values.astype(exact) for each in (a, b)]
    close = np.isclose(*wide, rtol=relative * loose, atol=absolute * loose, equal_nan=True)
    return bool(np.all(close))


def judge(call: Call, expected: Expected, device: str) -> tuple[str, bool]:
    """(how a call misses what is expected, or ""; whether gradients were compared)."""
    ours = rules.resolve(call.name)
    assert ours is not None
    leaves: list[Tensor] = []
    arguments = _tensors(call.arguments, device, leaves)
    named = _tensors(call.named, device, leaves)
    if expected.error:
        try:
            for part in flat(ours(*arguments, **named)):
                array(part)
        except Slow:
            raise
        except Exception:
            return "", False
        return f"PyTorch raises: {expected.error}", False
    result = ours(*arguments, **named)
    if call.name in rules.UNIQUE:
        result = rules.UNIQUE[call.name](flat(result))
    results = flat(result)
    if len(results) != len(expected.results):
        return f"{len(results)} results, PyTorch {len(expected.results)}", False
    if call.name in rules.CHOICES:
        expected = _as_chosen(call, results, expected)
    for mine, its in zip(results, expected.results, strict=True):
        if miss := differs(mine, its, expected.values, _greatest(call, its)):
            return miss, False
    if not any(each is not None for each in expected.cotangents):
        return "", False
    return _judge_gradients(call, results, leaves, expected, device)


def _greatest(call: Call, theirs: Any) -> float:
    """How much looser a result is judged: by its greatest number where that is what counts."""
    if call.name not in rules.BY_NORM or not theirs.values.size:
        return 1
    return max(1.0, float(np.abs(theirs.values).max()))


class Slow(Exception):
    """A sample took too long."""


def _tensors(value: Any, device: str, leaves: list[Tensor]) -> Any:
    """Arguments with tensors for Arrays; those that ask for a gradient are added to `leaves`."""
    if isinstance(value, Array):
        made = value.tensor(device)
        if value.requires_grad:
            leaves.append(made)
        return made
    if isinstance(value, list | tuple):
        return type(value)([_tensors(each, device, leaves) for each in value])
    if isinstance(value, dict):
        return {key: _tensors(each, device, leaves) for key, each in value.items()}
    return value


def _judge_gradients(
    call: Call, results: list[Any], leaves: list[Tensor], expected: Expected, device: str
) -> tuple[str, bool]:
    loss: Any = None
    for cotangent, mine in zip(expected.cotangents, results, strict=True):
        if cotangent is not None:
            part = (mine * cotangent.tensor(device).conj()).sum().real
            loss = part if loss is None else loss + part
    if loss is None or not loss.requires_grad:
        zero = all(its is None or not its.values.any() for its in expected.gradients)
        return "" if zero else "no gradient flows", False
    loss.backward()
    for mine, its in zip(leaves, expected.gradients, strict=True):
        # an argument without influence: None there, and None or 0 here
        if its is None or mine.grad is None:
            given = array(mine.grad) if mine.grad is not None else its
            if given is not None and given.values.any():
                return "a gradient where the other has none", False
        elif miss := differs(mine.grad, its, loose=GRADIENTS * _greatest(call, its)):
            return f"gradient: {miss}", False
    return "", True


def _as_chosen(call: Call, results: list[Any], expected: Expected) -> Expected:
    """What is expected if of equal elements those are named that we name: an index that names
    another element of the same value is right, and the derivative goes where it says."""
    position, default = rules.CHOICES[call.name]
    x, *rest = call.arguments
    dim = call.named.get("dim", rest[position] if len(rest) > position else default)
    values, indices = expected.results
    mine = array(results[1])
    same_kind = mine.values.shape == indices.values.shape and mine.dtype == indices.dtype
    if not same_kind or not x.values.ndim:
        return expected
    kept = values.values.ndim == x.values.ndim

    def aligned(numbers: np.ndarray) -> np.ndarray:
        return numbers if kept else np.expand_dims(numbers, dim)

    index = aligned(mine.values)
    found = np.take_along_axis(x.values, index, dim)
    if not np.array_equal(found, aligned(values.values), equal_nan=True):
        return expected
    gradients = expected.gradients
    if (cotangent := expected.cotangents[0]) is not None:
        spread = np.zeros_like(x.values)
        np.put_along_axis(spread, index, aligned(cotangent.values), dim)
        gradients = [Array(spread, x.dtype)]
    return Expected([values, mine], "", expected.values, expected.cotangents, gradients)


# ---- calls in a file -----------------------------------------------------------------------------
_KINDS: dict[str, Callable[[Any], Any]] = {
    "tuple": tuple,
    "slice": lambda parts: slice(*parts),
    "ellipsis": lambda parts: ...,
    "complex": lambda parts: complex(*parts),
    "float": float,
}


class Unspeakable(Exception):
    """A value that a file of calls cannot say."""


class Writer:
    """Calls as JSON, and the numbers of their arrays as one array of bytes."""

    def __init__(self) -> None:
        self.calls: list[Any] = []
        self.data = bytearray()

    def add(self, call: Call, expected: Expected) -> None:
        """Unspeakable if the call has an argument that cannot be written."""
        parts = (call.arguments, call.named, expected.results, expected.cotangents)
        written = [self._value(each) for each in (*parts, expected.gradients)]
        self.calls.append([call.name, expected.error, expected.values, *written])

    def _value(self, value: Any) -> Any:
        if isinstance(value, Array):
            numbers = np.ascontiguousarray(value.values)
            if value.dtype == "bfloat16":
                numbers = (numbers.view(np.uint32) >> 16).astype(np.uint16)
            offset = len(self.data)
            self.data += numbers.tobytes()
            return {"array": [value.dtype, list(value.values.shape), offset, value.requires_grad]}
        if value is None or isinstance(value, bool | int | str):
            return value
        if isinstance(value, float):
            return {"float": repr(value)}
        if isinstance(value, complex):
            return {"complex": [value.real, value.imag]}
        if value is ...:
            return {"ellipsis": 0}
        if isinstance(value, slice):
            return {"slice": [self._value(each) for each in (value.start, value.stop, value.step)]}
        if isinstance(value, tuple):
            return {"tuple": [self._value(each) for each in value]}
        if isinstance(value, list):
            return [self._value(each) for each in value]
        if isinstance(value, dict):
            return {"dict": {key: self._value(each) for key, each in value.items()}}
        raise Unspeakable(f"a {type(value).__name__} among the arguments")

    def save(self, path: Path) -> None:
        text = json.dumps(self.calls, separators=(",", ":")).encode()
        parts = {"calls": np.frombuffer(text, np.uint8), "data": np.frombuffer(self.data, np.uint8)}
        np.savez_compressed(path, **parts)


def read(path: Path) -> Iterator[tuple[Call, Expected]]:
    """The calls that a Writer saved, in order."""
    with np.load(path) as file:
        calls, data = json.loads(file["calls"].tobytes()), file["data"].tobytes()

    def value(written: Any) -> Any:
        if isinstance(written, list):
            return [value(each) for each in written]
        if not isinstance(written, dict):
            return written
        (kind, inside), *_ = written.items()
        if kind == "dict":
            return {key: value(each) for key, each in inside.items()}
        if kind != "array":
            return _KINDS[kind](value(inside))
        dtype, shape, offset, requires_grad = inside
        stored = np.dtype("uint16" if dtype == "bfloat16" else dtype)
        numbers = np.frombuffer(data, stored, int(np.prod(shape)), offset).reshape(shape)
        if dtype == "bfloat16":
            numbers = (numbers.astype(np.uint32) << 16).view(np.float32)
        return Array(numbers, dtype, requires_grad)

    for name, error, values, *written in calls:
        arguments, named, results, cotangents, gradients = (value(each) for each in written)
        expected = Expected(results, error, values, cotangents, gradients)
        yield Call(name, arguments, named), expected
