"""DLPack: memory that libraries share, in both directions (https://dmlc.github.io/dlpack).

NumPy makes and reads the capsules. It has no bfloat16 and no float8: such numbers travel as
unsigned integers, and the code of the element type in the capsule is changed on the way.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

import numpy as np

from treadle import convert, dims
from treadle.engine import device as devices
from treadle.engine.realize import LOCK, realize
from treadle.engine.storage import Buffer, memory
from treadle.host import ALIGNMENT
from treadle.ir import dtype as dt
from treadle.ir.node import Node

if TYPE_CHECKING:
    from treadle.tensor import Tensor

CPU = (1, 0)  # DLPack's number of the device, and which of them
# where the code of the element type stands in a managed tensor, by the name of its capsule
CODE_AT = {b"dltensor": 20, b"dltensor_versioned": 52}
UNSIGNED = 1  # the code of an element type; and those of the types that NumPy has not
CODES = {dt.bfloat16: 4, dt.float8_e4m3: 10, dt.float8_e5m2: 12}

_name = ctypes.pythonapi.PyCapsule_GetName
_name.restype, _name.argtypes = ctypes.c_char_p, [ctypes.py_object]
_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


def _code(capsule: Any) -> ctypes.c_uint8:
    """The code of the element type in a capsule; what is written there counts."""
    name = _name(capsule)
    address = _pointer(capsule, name)
    assert address is not None
    return ctypes.c_uint8.from_address(address + CODE_AT[name])


class _Offered:
    """A capsule that NumPy reads."""

    def __init__(self, capsule: Any) -> None:
        self.capsule = capsule

    def __dlpack__(self, **_: Any) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return CPU


def lent(
    tensor: Tensor,
    stream: Any = None,
    max_version: tuple[int, int] | None = None,
    dl_device: tuple[int, int] | None = None,
    copy: bool | None = None,
) -> Any:
    """The capsule of a tensor's memory, which is never overwritten from now on."""
    if stream is not None:
        raise BufferError(f"__dlpack__: stream={stream!r}, but the memory is the CPU's: give None")
    if dl_device is not None and tuple(dl_device) != CPU:
        raise BufferError(f"__dlpack__: dl_device={dl_device}, but the memory is the CPU's, (1, 0)")
    if tensor.requires_grad:
        raise BufferError(
            "__dlpack__: this tensor requires a gradient, which ends here: give x.detach()"
        )
    with LOCK:
        realize((tensor,))
        if copy:
            buffer = memory[tensor.node].copy()
            buffer.lend()
        else:
            buffer = memory.lend(tensor.node)
        array = buffer.array(tensor.dtype, dims.values(tensor.node.shape, tensor.bindings))
    capsule = array.__dlpack__(max_version=max_version)
    if tensor.dtype in CODES:
        _code(capsule).value = CODES[tensor.dtype]
    return capsule


def taken(x: Any, copy: bool | None = None) -> Node:
    """A leaf with another library's array, in its memory if that can be used."""
    if not hasattr(x, "__dlpack__"):
        raise TypeError(f"from_dlpack: a {type(x).__name__} has no __dlpack__: write Tensor(x)")
    convert.refuse_mask(x)
    kind, _ = where = x.__dlpack_device__()
    if kind != CPU[0]:
        raise BufferError(f"from_dlpack: memory of DLPack's device {where} is not the CPU's")
    capsule = _capsule(x)
    code = _code(capsule)
    special = next((dtype for dtype, known in CODES.items() if code.value == known), None)
    if special is not None:
        code.value = UNSIGNED
    array = np.from_dlpack(_Offered(capsule))
    dtype = special or dt.from_numpy(array.dtype)
    usable = array.flags.c_contiguous and array.size and not array.ctypes.data % ALIGNMENT
    if copy or not usable:
        if copy is False:
            raise BufferError(
                "from_dlpack: copy=False, but the memory is empty, not contiguous, or at an "
                f"address that {ALIGNMENT} does not divide"
            )
        return convert.leaf(array, dtype, devices.canonical(None))
    buffer = Buffer(array.nbytes, array.reshape(-1).view(np.uint8))
    return memory.leaf(dtype, array.shape, devices.canonical(None), buffer)


def _capsule(x: Any) -> Any:
    """The capsule of an array, of the newest version that it can make."""
    try:
        return x.__dlpack__(max_version=(1, 0))
    except TypeError:  # older than versions
        return x.__dlpack__()
