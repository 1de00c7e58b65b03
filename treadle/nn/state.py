"""State: the tensors of a model by name, and the files that hold them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from treadle import convert, extras
from treadle.engine.device import canonical
from treadle.ir import dtype as dt
from treadle.nn.parameter import is_parameter
from treadle.nn.walk import named_tensors, walk
from treadle.tensor import Tensor, no_grad

# safetensors' names of element types in its headers
_HEADER_NAMES = {
    "BOOL": dt.bool_, "I8": dt.int8, "I16": dt.int16, "I32": dt.int32, "I64": dt.int64,
    "U8": dt.uint8, "U16": dt.uint16, "U32": dt.uint32, "U64": dt.uint64,
    "F16": dt.float16, "BF16": dt.bfloat16, "F32": dt.float32, "F64": dt.float64,
    "F8_E4M3": dt.float8_e4m3, "F8_E5M2": dt.float8_e5m2, "C64": dt.complex64,
}  # fmt: skip
# what the library calls a dtype that has another name here
_LIBRARY_NAMES = {dt.float8_e4m3: "float8_e4m3fn"}


class IncompatibleKeys(NamedTuple):
    """missing_keys: names that only the model has. unexpected_keys: that only the state has."""

    missing_keys: list[str]
    unexpected_keys: list[str]


# ---- by name -------------------------------------------------------------------------------------
def get_parameters(model: Any) -> list[Tensor]:
    """Every parameter that an object holds, each once. The object need not be a Module.

    >>> [x.shape for x in nn.get_parameters(nn.Linear(3, 2))]
    [(2, 3), (2,)]
    """
    tensors = {id(t): t for t in named_tensors(model).values() if is_parameter(t)}
    return list(tensors.values())


def get_state_dict(model: Any, prefix: str = "") -> dict[str, Tensor]:
    """Every parameter and buffer that an object holds, by its dotted name behind `prefix`.

    They are the tensors themselves: copy them (`copy.deepcopy`) to keep what they are now. A tensor
    that two attributes share stands there twice. The object need not be a Module.

    >>> list(nn.get_state_dict(nn.Linear(3, 2)))
    ['weight', 'bias']
    """
    passing = {
        f"{name}.{buffer}" if name else buffer
        for name, thing in walk(model)
        for buffer in getattr(thing, "_transient", ())
    }
    return {
        prefix + name: tensor
        for name, tensor in named_tensors(model).items()
        if name not in passing
    }


def load_state_dict(
    model: Any, state_dict: Mapping[str, Any], strict: bool = True
) -> IncompatibleKeys:
    """Put the values of a state dict (tensors or NumPy arrays) into the tensors of a model.

    RuntimeError that lists everything that does not fit: names that are missing or unexpected,
    shapes, dtypes; the model is then unchanged. With strict=False names may differ (they are
    returned) and values are cast to the model's dtypes; shapes must always agree.

    >>> model, other = nn.Linear(3, 2), nn.Linear(3, 2)
    >>> result = nn.load_state_dict(model, nn.get_state_dict(other))
    >>> (model.weight == other.weight).all()
    Tensor(True)
    """
    if not isinstance(state_dict, Mapping):
        raise TypeError(
            f"load_state_dict takes a dict of tensors by name, not a {type(state_dict).__name__}: "
            "nn.safe_load(path) and nn.torch_load(path) read one from a file"
        )
    own = get_state_dict(model)
    missing = [name for name in own if name not in state_dict]
    unexpected = [name for name in state_dict if name not in own]
    problems = [f"{name}: missing in the state dict" for name in missing if strict]
    problems += [f"{name}: not in the model" for name in unexpected if strict]
    values: dict[str, Tensor] = {}
    for name, tensor in own.items():
        if name not in state_dict:
            continue
        value = state_dict[name]
        if not isinstance(value, Tensor) and not hasattr(value, "__array__"):
            problems.append(f"{name}: a {type(value).__name__}, neither a tensor nor an array")
            continue
        values[name] = value = Tensor(value, device=tensor.device)
        if value.shape != tensor.shape:
            problems.append(f"{name}: shape {value.shape}, but the model has {tensor.shape}")
        elif value.dtype is not tensor.dtype and strict:
            problems.append(f"{name}: {value.dtype}, but the model has {tensor.dtype}")
    if problems:
        listed = "\n  ".join(problems)
        raise RuntimeError(
            f"the state dict does not fit {type(model).__name__}:\n  {listed}\n"
            "strict=False lets names and dtypes differ, but not shapes"
        )
    with no_grad():
        for name, value in values.items():
            own[name].assign(value.to(dtype=own[name].dtype))
    return IncompatibleKeys(missing, unexpected)


def replace(tensor: Tensor, value: Tensor) -> None:
    """Make `tensor` hold `value`, which may be of any shape and dtype and on any device. It stays
    the same object, with its requires_grad."""
    required = tensor._requires_grad
    tensor.requires_grad = False
    tensor.hold(value.node)
    tensor.bindings = value.bindings
    tensor.requires_grad = required


# ---- files ---------------------------------------------------------------------------------------
def safe_save(
    tensors: Mapping[Any, Any],
    path: str | os.PathLike[str],
    metadata: Mapping[str, str] | None = None,
) -> None:
    """Write named tensors to a file in the safetensors format.

    tensors: as `get_state_dict` gives it. metadata: texts by name, to be kept beside. The file is
    replaced as a whole: whoever reads it sees the old one or the new one. OSError if it cannot be
    written. Needs the extra `safetensors`. Source: the safetensors format of Hugging Face.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "model.safetensors"
    ...     nn.safe_save({"scale": Tensor([1.0, 2.0])}, path)
    ...     print(nn.safe_load(path)["scale"].tolist())
    [1.0, 2.0]
    """
    if not isinstance(tensors, Mapping):
        raise TypeError(
            "safe_save takes a dict from names to tensors, as nn.get_state_dict(model) gives it, "
            f"not a {type(tensors).__name__}"
        )
    library = extras.load("safetensors")
    arrays = {}
    for name, tensor in tensors.items():
        if not isinstance(name, str) or not isinstance(tensor, Tensor):
            raise TypeError(
                "safe_save takes a dict from names to tensors; this one has "
                f"{name!r}: {type(tensor).__name__}"
            )
        if tensor.dtype is dt.complex128:
            raise TypeError(f"safe_save: the format has no complex128, of which {name} is")
        stored = dt.from_compute(tensor.dtype, tensor.numpy())
        arrays[name] = np.ascontiguousarray(stored).reshape(stored.shape), tensor.dtype
    parts = {name: _part(library, array, dtype) for name, (array, dtype) in arrays.items()}
    target = Path(path)
    if not target.parent.is_dir():
        raise FileNotFoundError(f"safe_save: there is no folder {target.parent}: make it first")
    unfinished = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        library.serialize_file(
            parts, unfinished, metadata=None if metadata is None else dict(metadata)
        )
        unfinished.replace(target)
    except library.SafetensorError as error:
        reason = str(error).partition(" at path")[0]
        raise OSError(f"safe_save: {os.fspath(path)} could not be written: {reason}") from None
    finally:
        unfinished.unlink(missing_ok=True)


def _part(library: Any, array: np.ndarray, dtype: dt.DType) -> Any:
    """One tensor as the library takes it: since its version 0.8 by address, before as bytes."""
    name = _LIBRARY_NAMES.get(dtype, dtype.name)
    if hasattr(library, "TensorSpec"):
        return library.TensorSpec(
            dtype=name, shape=array.shape, data_ptr=array.ctypes.data, data_len=array.nbytes
        )
    return {"dtype": name, "shape": array.shape, "data": array.tobytes()}


def safe_load(path: str | os.PathLike[str], device: str | None = None) -> dict[str, Tensor]:
    """The tensors in a file of the safetensors format, by name. No code in a file is ever run.

    ValueError for a file that is broken or holds a dtype that treadle has not. Needs the extra
    `safetensors`.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "model.safetensors"
    ...     nn.safe_save({"scale": Tensor([1.0, 2.0])}, path)
    ...     print(nn.safe_load(path)["scale"].tolist())
    [1.0, 2.0]
    """
    library = extras.load("safetensors")
    try:
        parts = library.deserialize(Path(path).read_bytes())
    except library.SafetensorError as error:
        raise ValueError(f"{os.fspath(path)} is not a whole safetensors file: {error}") from None
    place = canonical(device)
    tensors = {}
    for name, part in parts:
        dtype = _HEADER_NAMES.get(part["dtype"])
        if dtype is None:
            raise ValueError(f"{os.fspath(path)}: {name} is {part['dtype']}, which treadle has not")
        array = np.frombuffer(part["data"], dtype.storage).reshape(part["shape"])
        tensors[name] = Tensor._of(convert.leaf(array, dtype, place))
    return tensors
