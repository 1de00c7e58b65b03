"""What the Python Array API standard asks of a namespace besides functions of arrays: dtypes and
what is known of them, devices, and how arrays come in.

https://data-apis.org/array-api/2024.12
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Any

from treadle import convert, exchange
from treadle.engine import device as devices
from treadle.graph import build
from treadle.ir import dtype as dt
from treadle.ir.dtype import DType
from treadle.tensor import Tensor

PYTHON_NUMBERS = (bool, int, float, complex)


class Device:
    """The devices, by name, as `device=` takes them.

    >>> "CPU" in Device.names()
    True
    """

    @staticmethod
    def names() -> list[str]:
        """Every device that a tensor can be put on."""
        return list(devices.PLUGINS)

    @staticmethod
    def default() -> str:
        """The device on which tensors are made unless one is given: the knob DEVICE."""
        return devices.canonical(None)


# ---- arrays that come in -------------------------------------------------------------------------
def asarray(
    obj: Any, /, *, dtype: Any = None, device: str | None = None, copy: bool | None = None
) -> Tensor:
    """A tensor of a number, nested lists, an array of any library, or a tensor. copy=False: the
    memory of `obj` or ValueError; else it is copied (a tensor's value never is: it cannot change).

    >>> asarray([1, 2], dtype=treadle.float32)
    Tensor([1., 2.])
    """
    if not isinstance(obj, Tensor) and copy is False:
        if not hasattr(obj, "__dlpack__"):
            raise ValueError(f"asarray: a {type(obj).__name__} is always copied; leave out copy=")
        try:
            obj = from_dlpack(obj, copy=False)
        except BufferError as error:
            raise ValueError(f"asarray: {error}") from None
    if not isinstance(obj, Tensor):
        return Tensor(obj, dtype=dtype, device=device)
    same = dtype is None or convert.as_dtype(dtype) is obj.dtype
    if same and device is None and not copy:
        return obj
    if copy is False and not same:
        raise ValueError(f"asarray: {dtype} of {obj.dtype} needs a copy; leave out copy=False")
    moved = obj.to(dtype=dtype, device=device)
    return moved.clone() if copy else moved


def from_dlpack(x: Any, /, *, device: str | None = None, copy: bool | None = None) -> Tensor:
    """The array of another library that speaks DLPack, without a copy where its memory allows:
    contiguous, on the CPU, at an address that 64 divides. What is written there later shows here;
    treadle never writes there. copy=True: always a copy; copy=False: BufferError if it needs one.

    >>> from_dlpack(np.arange(3))
    Tensor([0, 1, 2])
    """
    if isinstance(x, Tensor):
        taken = x.clone() if copy else x
    else:
        taken = Tensor._of(exchange.taken(x, copy))
    return taken if device is None else taken.to_device(device)


def astype(x: Tensor, dtype: Any, /, *, copy: bool = True, device: str | None = None) -> Tensor:
    """x as another dtype, and on another device if one is given. copy=False gives x itself if it
    is of that dtype already.

    >>> astype(Tensor([1.5, -2.0]), treadle.int64)
    Tensor([ 1, -2])
    """
    wanted = convert.as_dtype(dtype)
    if x.dtype.is_complex and not (wanted.is_complex or wanted is dt.bool_):
        raise TypeError(f"astype: {x.dtype} numbers are no {wanted}: take real(x), imag(x), abs(x)")
    if not copy and wanted is x.dtype and device in (None, x.device):
        return x
    return x.to(dtype=wanted, device=device)


# ---- dtypes --------------------------------------------------------------------------------------
KINDS: dict[str, tuple[DType, ...]] = {
    "bool": (dt.bool_,),
    "signed integer": (dt.int8, dt.int16, dt.int32, dt.int64),
    "unsigned integer": (dt.uint8, dt.uint16, dt.uint32, dt.uint64),
    "real floating": (dt.float32, dt.float64),
    "complex floating": dt.COMPLEX,
}
KINDS["integral"] = KINDS["signed integer"] + KINDS["unsigned integer"]
KINDS["numeric"] = KINDS["integral"] + KINDS["real floating"] + KINDS["complex floating"]
NARROW = (dt.float16, dt.bfloat16, *dt.FLOAT8)  # "real floating" too, but not the standard's


def isdtype(dtype: Any, kind: Any) -> bool:
    """Whether a dtype is of a kind: a dtype, one of the standard's words ("bool", "signed integer",
    "unsigned integer", "integral", "real floating", "complex floating", "numeric"), or a tuple of
    such, any of which will do.

    >>> isdtype(treadle.float32, "real floating"), isdtype(treadle.int8, ("bool", treadle.int16))
    (True, False)
    """
    own = convert.as_dtype(dtype)
    if isinstance(kind, tuple):
        return any(isdtype(own, each) for each in kind)
    if isinstance(kind, str) and kind in KINDS:
        return own in KINDS[kind] or (own in NARROW and kind in ("real floating", "numeric"))
    if isinstance(kind, str) and kind not in dt.BY_NAME:
        raise ValueError(f"isdtype: there is no kind {kind!r}; there are {', '.join(KINDS)}")
    return own is convert.as_dtype(kind)


def _dtype_of(what: Any) -> DType:
    return what.dtype if isinstance(what, Tensor) else convert.as_dtype(what)


def result_type(*arrays_and_dtypes: Any) -> DType:
    """The dtype that operations of these tensors, dtypes and Python numbers give; the numbers are
    weak.

    >>> result_type(treadle.int8, treadle.uint8), result_type(treadle.float32, 1)
    (int16, float32)
    """
    if not arrays_and_dtypes:
        raise ValueError("result_type: give at least one tensor or dtype")
    numbers = [each for each in arrays_and_dtypes if isinstance(each, PYTHON_NUMBERS)]
    others = [each for each in arrays_and_dtypes if not isinstance(each, PYTHON_NUMBERS)]
    found = reduce(dt.promote, map(_dtype_of, others)) if others else None
    for number in numbers:
        found = build.weak_dtype(found, number)
    assert found is not None
    return found


def can_cast(from_: Any, to: Any, /) -> bool:
    """Whether the standard's promotion leads from a dtype (or a tensor's) to another.

    >>> can_cast(treadle.int8, treadle.int16), can_cast(treadle.float64, treadle.float32)
    (True, False)
    """
    source, target = _dtype_of(from_), _dtype_of(to)
    if source is target:
        return True
    if source.kind == "b" or target.kind == "b" or (source.is_int and target.is_inexact):
        return False  # the standard promotes between no kinds of dtypes
    return dt.promote(source, target) is target


@dataclass(frozen=True)
class finfo:
    """What is known of a floating dtype, or of the parts of a complex one: bits, eps (1 to the
    next number), max, min, the smallest normal number.

    >>> finfo(treadle.float32).bits, finfo(treadle.float16).max
    (32, 65504.0)
    """

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: DType

    def __init__(self, type: Any, /) -> None:
        own = _dtype_of(type).real
        if not own.is_float:
            raise TypeError(f"finfo is of floating dtypes, not {own}; iinfo is of integers")
        most = own.largest
        values = (own.bits, own.eps, most, -most, own.smallest_normal, own)
        for name, value in zip(self.__dataclass_fields__, values):
            object.__setattr__(self, name, value)


@dataclass(frozen=True)
class iinfo:
    """What is known of an integer dtype: bits, max, min.

    >>> iinfo(treadle.int8).max
    127
    """

    bits: int
    max: int
    min: int
    dtype: DType

    def __init__(self, type: Any, /) -> None:
        own = _dtype_of(type)
        if not own.is_int:
            raise TypeError(f"iinfo is of integer dtypes, not {own}; finfo is of floats")
        values = (own.bits, own.max, own.min, own)
        for name, value in zip(self.__dataclass_fields__, values):
            object.__setattr__(self, name, value)


# ---- the namespace of itself ---------------------------------------------------------------------
class NamespaceInfo:
    """What `__array_namespace_info__()` gives: the standard's inspection of a namespace."""

    def capabilities(self) -> dict[str, Any]:
        """What of the standard is optional and there. Sizes that depend on values are (not inside
        `jit`)."""
        return {
            "boolean indexing": True,
            "data-dependent shapes": True,
            "max dimensions": convert.MOST_DIMENSIONS,
        }

    def default_device(self) -> str:
        """The device on which tensors are made unless one is given."""
        return devices.canonical(None)

    def default_dtypes(self, *, device: str | None = None) -> dict[str, DType]:
        """The dtypes that Python numbers, and indices, have by themselves."""
        devices.canonical(device)
        return {
            "real floating": dt.float32,
            "complex floating": dt.complex64,
            "integral": dt.int64,
            "indexing": dt.int64,
        }

    def dtypes(self, *, device: str | None = None, kind: Any = None) -> dict[str, DType]:
        """The standard's dtypes that there are, by their names there, of a kind or of several."""
        devices.canonical(device)
        known = (*KINDS["bool"], *KINDS["numeric"])
        found = [own for own in known if kind is None or isdtype(own, kind)]
        return {own.name: own for own in found}

    def devices(self) -> list[str]:
        """The devices by name."""
        return list(devices.PLUGINS)


def __array_namespace_info__() -> NamespaceInfo:
    """The inspection of this namespace, `treadle.__array_namespace_info__()`.

    >>> treadle.__array_namespace_info__().default_dtypes()["integral"]
    int64
    """
    return NamespaceInfo()
