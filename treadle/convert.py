"""Between what users hold (numbers, lists, arrays, Tensors) and nodes."""

from __future__ import annotations

import ctypes
import math
import operator
import sys
import warnings
from collections.abc import Iterator
from functools import reduce
from typing import Any

import numpy as np

from treadle import extras
from treadle.dims import Dim
from treadle.engine import device as devices
from treadle.engine.cell import NO_BINDINGS, Cell, bind
from treadle.engine.jobs import device_of
from treadle.engine.storage import Buffer, memory
from treadle.graph import build, constants, parts, shapes
from treadle.ir import dtype as dt
from treadle.ir import meaning, ops
from treadle.ir.dtype import DType
from treadle.ir.node import Node

MOST_DIMENSIONS = 64  # of a NumPy array
_PYTHON = {bool: dt.bool_, int: dt.int64, float: dt.float32, complex: dt.complex64}
NUMBERS = (bool, int, float, complex)


def as_dtype(dtype: DType | str | type | np.dtype) -> DType:
    """A dtype from a treadle dtype, its name, a Python type or a NumPy dtype. TypeError
    otherwise."""
    if isinstance(dtype, DType):
        return dtype
    if isinstance(dtype, type) and dtype in _PYTHON:
        return _PYTHON[dtype]
    if isinstance(dtype, str) and dtype in dt.BY_NAME and dt.BY_NAME[dtype] in dt.DTYPES:
        return dt.BY_NAME[dtype]
    if isinstance(dtype, str):
        names = ", ".join(d.name for d in dt.DTYPES)
        raise TypeError(f"there is no dtype {dtype!r}; there are {names}")
    try:
        return dt.from_numpy(np.dtype(dtype))
    except TypeError:
        if isinstance(dtype, type | np.dtype):
            raise
        raise TypeError(
            "a dtype is a dtype of treadle, its name, bool, int, float, complex or a dtype of "
            f"NumPy, not {dtype!r} (a tensor of zeros of a shape is Tensor.zeros(2, 3))"
        ) from None


def to_node(data: Any, dtype: DType | None, device: str) -> Node:
    """The value of anything array-like as a node: a constant for numbers, a leaf for arrays."""
    if isinstance(data, np.generic):
        own = dt.from_numpy(data.dtype)
        number = build.const(data.item(), own)
        number = number if dtype is None else build.cast(number, dtype)
        return number if device == devices.canonical(None) else leaf_of(number, device)
    if isinstance(data, NUMBERS):
        number = constants.number(data, dtype)
        return number if device == devices.canonical(None) else leaf_of(number, device)
    if isinstance(data, Cell):
        return data.node
    array: np.ndarray
    if isinstance(data, bytes | bytearray | memoryview):
        array = np.frombuffer(data, np.uint8)
    elif isinstance(data, list | tuple | range):
        stored, own = from_lists(data, dtype)
        return leaf(stored, own, device)
    elif hasattr(data, "__array__") or hasattr(data, "__dlpack__"):
        array = as_array(data)
    else:
        dense = ": write Tensor(x.toarray())" if hasattr(data, "toarray") else ""
        raise TypeError(
            "a Tensor is made from numbers, nested lists, bytes or arrays, not "
            f"{type(data).__name__}{dense}"
        )
    own = dt.from_numpy(array.dtype)
    node = leaf(np.asarray(array, dtype=own.storage), own, device)
    return node if dtype is None else build.cast(node, dtype)


def as_array(data: Any) -> np.ndarray:
    """The array of another library's object, by `__array__` or DLPack. TypeError if it does not
    give one to NumPy (it may have a gradient, or a dtype that NumPy has not), or if it has a mask.
    """
    refuse_mask(data)
    try:
        return np.asarray(data) if hasattr(data, "__array__") else np.from_dlpack(data)
    except Exception as error:
        what = f"a {type(data).__module__.partition('.')[0]}.{type(data).__name__}"
        if getattr(data, "requires_grad", False):
            advice = "it requires a gradient, which ends here: give x.detach()"
        elif "bfloat16" in str(getattr(data, "dtype", "")):
            advice = "NumPy has no bfloat16: give x.float(), with dtype='bfloat16'"
        else:
            advice = f"it does not become a NumPy array: {error}"
        raise TypeError(f"{what} cannot be read: {advice}") from None


def refuse_mask(data: Any) -> None:
    """TypeError for a masked array of NumPy's."""
    masked = sys.modules.get("numpy.ma")
    if masked is not None and isinstance(data, masked.MaskedArray):
        raise TypeError(
            "a masked array: a tensor has no mask, so what is masked would count: give "
            "array.filled(value), or array.data and array.mask as two tensors"
        )


def blob(address: int, shape: tuple[int, ...], dtype: DType) -> np.ndarray:
    """The array in memory from an address on, read as it stands."""
    if address <= 0:
        raise ValueError(f"from_blob: the address is a number above 0, not {address}")
    sizes = shapes.check_sizes(shapes.as_shape(shape), "from_blob")
    count = math.prod(sizes) * dtype.itemsize
    there = memoryview((ctypes.c_char * count).from_address(address))
    stored = np.frombuffer(there, dtype.storage)
    return dt.to_compute(dtype, stored.reshape(sizes))


def fetched(url: str, gunzip: bool) -> bytes:
    """What an address gives."""
    with extras.load("urllib.request").urlopen(url) as answer:
        data: bytes = answer.read()
    return extras.load("gzip").decompress(data) if gunzip else data


def from_lists(data: Any, dtype: DType | None) -> tuple[np.ndarray, DType]:
    """Nested lists as an array (of the dtype's storage type) and its dtype, which is the one given,
    or that of the arrays and Tensors in the lists, among which Python numbers are weak.

    ValueError for ragged lists, OverflowError for integers too large.
    """
    found: set[DType] = set()
    rows = _plain(data, found)
    try:
        array = np.array(rows)
    except ValueError:
        raise ValueError(f"the nested lists are ragged: {_ragged(rows)}") from None
    _check_numbers(array, rows, dtype)
    own = dt.from_numpy(array.dtype)
    if dtype is None:
        # like the numbers in it
        python = 0j if own.is_complex else 0.0 if own.is_float else 0 if own.is_int else False
        dtype = build.weak_dtype(reduce(dt.promote, found) if found else None, python)
    if own.is_complex and not dtype.is_complex:
        raise TypeError(f"the lists hold complex numbers, which are no {dtype}")
    if dtype.is_int and own.is_int and array.size:
        low, high = int(array.min()), int(array.max())
        if low < dtype.min or high > dtype.max:
            raise OverflowError(f"an integer in the list does not fit {dtype}: {low} .. {high}")
    return dt.from_compute(dtype, meaning.quiet(meaning.cast)(array, own, dtype)), dtype


def _plain(item: Any, found: set[DType], depth: int = 0) -> Any:
    """Nested lists with arrays for Tensors. The dtypes of both are put into `found`. ValueError for
    more lists in lists than a tensor has dimensions."""
    if isinstance(item, list | tuple | range):
        if depth == MOST_DIMENSIONS:
            raise ValueError(
                f"the lists are nested more than {MOST_DIMENSIONS} deep, or a list holds itself"
            )
        return [p if type(p) in _PYTHON else _plain(p, found, depth + 1) for p in item]
    if isinstance(item, Cell):
        found.add(item.node.dtype)
        return np.asarray(item)
    if hasattr(item, "__array__"):
        item = as_array(item)
        found.add(dt.from_numpy(item.dtype))
    return item


def _check_numbers(array: np.ndarray, rows: list[Any], dtype: DType | None) -> None:
    """TypeError if the array that NumPy made of lists does not hold numbers that we have;
    OverflowError for Python integers that do not fit the dtype (int64 if there is none)."""
    kind = array.dtype.kind
    wanted = dtype or dt.int64
    if kind in "bic" or (kind == "f" and not (np.abs(array) >= 2.0**63).any()):
        return
    numbers = list(_items(rows))
    if kind == "f" and any(isinstance(number, float | np.floating) for number in numbers):
        return  # integers beside floats are floats
    for number in numbers:
        if isinstance(number, int) and wanted.is_int:
            constants.number(number, dtype)
        if not isinstance(number, (*NUMBERS, np.generic, np.ndarray)):
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


def cast(node: Node, dtype: DType) -> Node:
    """The node as a dtype. The imaginary parts of complex numbers that become real ones are left
    out, with a warning, as in PyTorch; to bool, they count."""
    if node.dtype.is_complex and not dtype.is_complex and dtype is not dt.bool_:
        warnings.warn(
            f"{node.dtype} as {dtype} leaves out the imaginary parts: x.real says so", stacklevel=5
        )
        node = parts.real(node)
    return build.cast(node, dtype)


def leaf(array: np.ndarray, dtype: DType, device: str) -> Node:
    """A leaf that holds a copy of the array (of the dtype's storage type)."""
    buffer = Buffer(array.nbytes)
    buffer.array(dtype, array.shape)[...] = array
    return memory.leaf(dtype, array.shape, device, buffer)


def leaf_of(node: Node, device: str) -> Node:
    """The value of a constant as a leaf on a device."""
    dtype = node.dtype
    number = complex(*[part.value for part in node.src]) if dtype.is_complex else node.value
    return leaf(dt.from_compute(dtype, np.asarray(number, dtype=dtype.compute)), dtype, device)


def moved(node: Node, device: str) -> Node:
    """The value of a node on another device."""
    return node if device_of(node) == device else ops.COPY(node, arg=device)


def operand(value: Any, other: Cell) -> tuple[Node, dict[str, int]]:
    """A value used beside a tensor: a Tensor, an array, or a Python number, which takes the
    tensor's dtype."""
    if isinstance(value, Cell):
        return value.node, value.bindings
    if isinstance(value, NUMBERS):
        return build.const(value, other.node.dtype), NO_BINDINGS
    node = to_node(value, None, device_of(other.node))
    return build.cast(node, other.node.dtype), NO_BINDINGS


def unwrap(
    value: Any, bindings: dict[str, int], beside: Node | None = None
) -> tuple[Any, dict[str, int]]:
    """A Python argument with Tensors, Dims and arrays inside it replaced by nodes. beside: the node
    of another argument, on whose device arrays are put."""
    if isinstance(value, Cell):
        return value.node, bind(bindings, value.bindings)
    if value is None or isinstance(value, int | float | complex | str):
        return value, bindings
    if isinstance(value, Dim):
        return value.node, bind(bindings, value.bindings)
    if isinstance(value, tuple | list):
        parts = []
        for part in value:
            new, bindings = unwrap(part, bindings, beside)
            parts.append(new)
        return type(value)(parts) if type(value) in (tuple, list) else tuple(parts), bindings
    if isinstance(value, dict):
        out = {}
        for key, part in value.items():
            out[key], bindings = unwrap(part, bindings, beside)
        return out, bindings
    if isinstance(value, np.ndarray | np.generic) or hasattr(value, "__array__"):
        device = devices.canonical(None) if beside is None else device_of(beside)
        return to_node(value, None, device), bindings
    if isinstance(value, slice):
        (start, stop, step), bindings = unwrap(
            (value.start, value.stop, value.step), bindings, beside
        )
        return slice(start, stop, step), bindings
    return value, bindings


def _bound(value: Any) -> Any:
    """A bound of a slice; an integer tensor of one element is read."""
    is_number = isinstance(value, Cell) and value.node.dtype.is_int and value.node.shape == ()
    return operator.index(value) if is_number else value


def index_key(key: Any, cell: Cell) -> tuple[Any, dict[str, int]]:
    """What stands in `x[...]`, as graph functions take it: lists of numbers become index
    tensors."""
    parts = key if isinstance(key, tuple) else (key,)
    clean = []
    bindings = cell.bindings
    for part in parts:
        if isinstance(part, list | range):
            array, dtype = from_lists(list(part), None if len(part) else dt.int64)
            part = leaf(array, dtype, device_of(cell.node))
        else:
            if isinstance(part, slice):
                part = slice(*map(_bound, (part.start, part.stop, part.step)))
            part, bindings = unwrap(part, bindings, cell.node)
        clean.append(part)
    return tuple(clean), bindings
