"""Between what users hold (numbers, lists, arrays, Tensors) and nodes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from treadle.dims import Dim
from treadle.engine import device as devices
from treadle.engine.cell import NO_BINDINGS, Cell, bind
from treadle.engine.jobs import device_of
from treadle.engine.storage import Buffer, memory
from treadle.graph import build
from treadle.ir import dtype as dt
from treadle.ir import ops
from treadle.ir.dtype import DType
from treadle.ir.node import Node

_PYTHON = {bool: dt.bool_, int: dt.int64, float: dt.float32}


def as_dtype(dtype: DType | str | type | np.dtype) -> DType:
    """A dtype from a treadle dtype, its name, a Python type or a NumPy dtype. TypeError
    otherwise."""
    if isinstance(dtype, DType):
        return dtype
    if isinstance(dtype, type) and dtype in _PYTHON:
        return _PYTHON[dtype]
    if isinstance(dtype, str) and dtype in dt.BY_NAME and dt.BY_NAME[dtype] in dt.TENSOR_DTYPES:
        return dt.BY_NAME[dtype]
    if isinstance(dtype, str):
        names = ", ".join(d.name for d in dt.TENSOR_DTYPES)
        raise TypeError(f"there is no dtype {dtype!r}; there are {names}")
    return dt.from_numpy(np.dtype(dtype))


def to_node(data: Any, dtype: DType | None, device: str) -> Node:
    """The value of anything array-like as a node: a constant for numbers, a leaf for arrays."""
    if isinstance(data, bool | int | float) and not isinstance(data, np.generic):
        number = build.const(data, dtype or _PYTHON[type(data)])
        return number if device == devices.canonical(None) else leaf_of(number, device)
    if isinstance(data, Cell):
        return data.node
    array: np.ndarray
    if isinstance(data, bytes | bytearray | memoryview):
        array = np.frombuffer(data, np.uint8)
    elif isinstance(data, list | tuple):
        array, dtype = from_lists(data, dtype)
    elif hasattr(data, "__array__") or isinstance(data, np.ndarray):
        array = np.asarray(data)
    elif hasattr(data, "__dlpack__"):
        array = np.from_dlpack(data)
    else:
        raise TypeError(
            "a Tensor is made from numbers, nested lists, bytes or arrays, not "
            f"{type(data).__name__}"
        )
    own = dt.from_numpy(array.dtype)
    node = leaf(np.asarray(array, dtype=own.storage), own, device)
    return node if dtype is None else build.cast(node, dtype)


def from_lists(data: Any, dtype: DType | None) -> tuple[np.ndarray, DType | None]:
    """Nested lists as an array. ValueError for ragged ones, OverflowError for integers too
    large."""
    rows = [_plain(item) for item in data]
    try:
        array = np.array(rows) if rows else np.zeros(np.shape(rows), np.float32)
    except ValueError:
        raise ValueError(f"the nested lists are ragged: {_ragged(rows)}") from None
    _check_numbers(array, rows, dtype)
    if array.dtype.kind == "f" and not _has_arrays(rows):
        array = array.astype(np.float64 if dtype is dt.float64 else np.float32)
    if dtype is not None and dtype.is_int and array.dtype.kind in "iu" and array.size:
        low, high = int(array.min()), int(array.max())
        if low < dtype.min or high > dtype.max:
            raise OverflowError(f"an integer in the list does not fit {dtype}: {low} .. {high}")
    return array, dtype


def _plain(item: Any) -> Any:
    if isinstance(item, list | tuple):
        return [_plain(part) for part in item]
    return np.asarray(item) if isinstance(item, Cell) else item


def _has_arrays(rows: Any) -> bool:
    if isinstance(rows, list):
        return any(_has_arrays(row) for row in rows)
    return isinstance(rows, np.ndarray | np.generic)


def _check_numbers(array: np.ndarray, rows: list[Any], dtype: DType | None) -> None:
    """TypeError if the array that NumPy made of lists does not hold numbers that we have;
    OverflowError for Python integers that do not fit the dtype (int64 if there is none)."""
    kind = array.dtype.kind
    wanted = dtype or dt.int64
    if kind in "bi" or (kind == "f" and not (np.abs(array) >= 2.0**63).any()):
        return
    numbers = list(_items(rows))
    if kind == "f" and any(isinstance(number, float | np.floating) for number in numbers):
        return  # integers beside floats are floats
    for number in numbers:
        if isinstance(number, int) and wanted.is_int and not wanted.min <= number <= wanted.max:
            fits = 0 <= number <= dt.uint64.max
            hint = "give dtype=uint64" if fits and not dtype else "integers have at most 64 bits"
            raise OverflowError(f"the integer {number} does not fit {wanted}: {hint}")
        if not isinstance(number, bool | int | float | np.generic | np.ndarray):
            raise TypeError(f"the lists hold {number!r}, which is not a number that a tensor holds")
    if kind == "O":
        raise OverflowError("the lists hold an integer of more than 64 bits beside floats")


def _items(rows: list[Any]) -> Iterator[Any]:
    """What stands in nested lists."""
    stack = list(reversed(rows))
    while stack:
        item = stack.pop()
        if isinstance(item, list):
            stack.extend(reversed(item))
        else:
            yield item


def _ragged(rows: list[Any]) -> str:
    """Which two parts of nested lists have different lengths, outermost first."""
    level: list[tuple[str, Any]] = [("x", rows)]
    while True:
        first, *others = [(place, _length(part)) for place, part in level]
        for place, length in others:
            if length != first[1]:
                return f"{place} has {length}, {first[0]} has {first[1]}"
        level = [(f"{place}[{n}]", each) for place, part in level for n, each in enumerate(part)]


def _length(part: Any) -> str:
    return f"length {len(part)}" if isinstance(part, list) or np.ndim(part) else "no length"


def leaf(array: np.ndarray, dtype: DType, device: str) -> Node:
    """A leaf that holds a copy of the array (of the dtype's storage type)."""
    buffer = Buffer(array.nbytes)
    buffer.array(dtype, array.shape)[...] = array
    return memory.leaf(dtype, array.shape, device, buffer)


def leaf_of(node: Node, device: str) -> Node:
    """The value of a constant as a leaf on a device."""
    value = np.asarray(node.value, dtype=node.dtype.compute)
    return leaf(dt.from_compute(node.dtype, value), node.dtype, device)


def moved(node: Node, device: str) -> Node:
    """The value of a node on another device."""
    return node if device_of(node) == device else ops.COPY(node, arg=device)


def operand(value: Any, other: Cell) -> tuple[Node, dict[str, int]]:
    """A value used beside a tensor: a Tensor, an array, or a Python number, which takes the
    tensor's dtype."""
    if isinstance(value, Cell):
        return value.node, value.bindings
    if isinstance(value, bool | int | float):
        return build.const(value, other.node.dtype), NO_BINDINGS
    node = to_node(value, None, device_of(other.node))
    return build.cast(node, other.node.dtype), NO_BINDINGS


def unwrap(value: Any, bindings: dict[str, int]) -> tuple[Any, dict[str, int]]:
    """A Python argument with Tensors, Dims and arrays inside it replaced by nodes."""
    if isinstance(value, Cell):
        return value.node, bind(bindings, value.bindings)
    if value is None or isinstance(value, int | float | str):
        return value, bindings
    if isinstance(value, Dim):
        return value.node, bind(bindings, value.bindings)
    if isinstance(value, tuple | list):
        parts = []
        for part in value:
            new, bindings = unwrap(part, bindings)
            parts.append(new)
        return type(value)(parts) if type(value) in (tuple, list) else tuple(parts), bindings
    if isinstance(value, dict):
        out = {}
        for key, part in value.items():
            out[key], bindings = unwrap(part, bindings)
        return out, bindings
    if isinstance(value, np.ndarray | np.generic):
        return to_node(value, None, devices.canonical(None)), bindings
    if isinstance(value, slice):
        (start, stop, step), bindings = unwrap((value.start, value.stop, value.step), bindings)
        return slice(start, stop, step), bindings
    return value, bindings


def index_key(key: Any, cell: Cell) -> tuple[Any, dict[str, int]]:
    """What stands in `x[...]`, as graph functions take it: lists of numbers become index
    tensors."""
    parts = key if isinstance(key, tuple) else (key,)
    clean = []
    bindings = cell.bindings
    for part in parts:
        if isinstance(part, list | range):
            array, _ = from_lists(list(part), None)
            if array.size == 0:
                array = array.astype(np.int64)
            part = leaf(array, dt.from_numpy(array.dtype), device_of(cell.node))
        else:
            part, bindings = unwrap(part, bindings)
        clean.append(part)
    return tuple(clean), bindings


def show(tensor: Any) -> str:
    """How a tensor prints: its numbers, and its dtype where it is not the default one."""
    array = tensor.numpy()
    text = np.array2string(array, separator=", ", prefix="Tensor(", threshold=1000)
    dtype = "" if tensor.dtype in (dt.float32, dt.int64, dt.bool_) else f", dtype={tensor.dtype}"
    device = "" if tensor.device == devices.canonical(None) else f", device={tensor.device}"
    flag = ", requires_grad=True" if tensor._requires_grad else ""
    empty = f", shape={array.shape}" if array.size == 0 else ""
    return f"Tensor({text}{empty}{dtype}{device}{flag})"
