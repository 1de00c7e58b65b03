"""Files that PyTorch's `torch.save` wrote, of every age, read without running what is in them.

A pickle is a program: it names functions and has them called. Here it may name the few in
`_Builder.table`, which make tensors and containers; anything else is refused by name. Nothing is
allocated because a header says so: sizes are first compared with the bytes that are there.
Source: the formats of PyTorch's `torch/serialization.py`: zip archives since 1.6, before that
pickles behind a magic number, and at first tar archives.
"""

from __future__ import annotations

import io
import math
import os
import pickle
import pickletools
import struct
import tarfile
import zipfile
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import numpy as np

from treadle import convert
from treadle.engine.device import canonical
from treadle.ir import dtype as dt
from treadle.nn.parameter import Parameter
from treadle.tensor import Tensor

MAGIC = 0x1950A86A20F9469CFC6C  # begins a file of the years before zip archives
LEAST_ROOM = 1 << 28  # bytes that tensors may take whatever the size of the file
# class of a storage in PyTorch -> name of its dtype
_STORAGES = {
    "DoubleStorage": "float64", "FloatStorage": "float32", "HalfStorage": "float16",
    "BFloat16Storage": "bfloat16", "LongStorage": "int64", "IntStorage": "int32",
    "ShortStorage": "int16", "CharStorage": "int8", "ByteStorage": "uint8", "BoolStorage": "bool",
    "UntypedStorage": "uint8", "ComplexFloatStorage": "complex64",
    "ComplexDoubleStorage": "complex128",
}  # fmt: skip
# a dtype of PyTorch -> our name, where it is another
_DTYPES = {"float8_e4m3fn": "float8_e4m3", "half": "float16", "float": "float32", "long": "int64"}
_MARKS = ("torch.Tensor", "torch.nn.parameter.Parameter", "torch.nn.parameter.Buffer")


def torch_load(
    source: str | os.PathLike[str] | bytes | IO[bytes], device: str | None = None
) -> Any:
    """What a file of PyTorch's `torch.save` holds: tensors in dicts, lists and tuples, numbers and
    strings. No code in the file is run.

    source: a path, the bytes of a file, or an open binary file. Parameters are Parameters, on
    `device`. Tensors that shared memory in PyTorch are copies of their own here.
    `pickle.UnpicklingError` that names what the file wanted to call, if it holds more than that (a
    whole model, say: save its state dict); ValueError for a file that is broken, is none of
    PyTorch's, or has a dtype that treadle has not. Source: PyTorch's `torch.load`.

    >>> import io, pickle, zipfile
    >>> file = io.BytesIO()
    >>> with zipfile.ZipFile(file, "w") as archive:  # as `torch.save` writes a dict
    ...     archive.writestr("model/data.pkl", pickle.dumps({"epoch": 3}, protocol=2))
    >>> nn.torch_load(file.getvalue())
    {'epoch': 3}
    """
    data = _bytes_of(source)
    where = os.fspath(source) if isinstance(source, (str, os.PathLike)) else "the file"
    try:
        return _load(data, canonical(device))
    except _Refused as error:
        raise pickle.UnpicklingError(
            f"torch_load: {where} wants to call {error}, which is refused: a checkpoint may hold "
            "tensors, numbers, strings and containers only. Save model.state_dict() instead of the "
            "model"
        ) from None
    except _Unknown as error:
        raise ValueError(f"torch_load: {where}: {error}") from None
    except (
        pickle.UnpicklingError, zipfile.BadZipFile, tarfile.TarError, struct.error, EOFError,
        LookupError, TypeError, AttributeError, ValueError, OverflowError, MemoryError,
        NotImplementedError, RuntimeError, AssertionError,
    ) as error:  # fmt: skip
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise ValueError(f"torch_load: {where} is not a whole PyTorch file: {reason}") from None


class _Refused(Exception):
    """The name of a function that is not to be called."""


class _Unknown(Exception):
    """What a whole file has that treadle has not, in words."""


def _bytes_of(source: Any) -> bytes:
    if isinstance(source, (bytes, bytearray, memoryview)):
        return bytes(source)
    if isinstance(source, (str, os.PathLike)):
        return Path(source).read_bytes()
    if hasattr(source, "read"):
        found = source.read()
        if isinstance(found, bytes):
            return found
    raise TypeError(f"torch_load takes a path, bytes or an open binary file, not {source!r:.80}")


def _load(data: bytes, device: str) -> Any:
    """The object in a file, by what it begins with."""
    builder = _Builder(device, 4 * len(data) + LEAST_ROOM)
    if data[:4] == b"PK\x03\x04":
        found = _from_zip(data, builder)
    elif data[257:262] == b"ustar":
        found = _from_tar(data, builder)
    else:
        found = _from_stream(data, builder)
    builder.finish()
    return found


# ---- storages and tensors ------------------------------------------------------------------------
class _Storage:
    """A piece of memory: bytes of elements of one dtype (as PyTorch names it)."""

    __slots__ = ("kind", "swapped", "view")

    def __init__(self, view: memoryview, kind: str, swapped: bool) -> None:
        self.view, self.kind, self.swapped = view, kind, swapped


def _dtype(kind: str) -> dt.DType:
    """Our dtype for a name of PyTorch's."""
    dtype = dt.BY_NAME.get(_DTYPES.get(kind, kind))
    if dtype is None or dtype not in dt.DTYPES:
        raise _Unknown(f"it has a tensor of {kind}, a dtype that treadle has not")
    return dtype


class _Loading(Tensor):
    """A tensor while its file is read: nothing in the file can change what it is."""

    __slots__ = ()

    def __setstate__(self, state: Any) -> None:
        raise ValueError("a tensor is given a state")


class _Builder:
    """Makes the objects of one file.

    table: everything that a pickle may name. Its functions belong to this object, so that a file
    cannot change what the next one finds. room: the bytes that tensors may still take.
    """

    def __init__(self, device: str, room: int) -> None:
        self.device, self.room = device, room
        self.made: list[tuple[Tensor, type[Tensor]]] = []
        self.table: dict[str, Any] = {
            "collections.OrderedDict": OrderedDict,
            "builtins.set": set, "__builtin__.set": set,
            "builtins.complex": complex, "__builtin__.complex": complex,
            "_codecs.encode": _call(_encoded),
            "torch.Size": tuple,
            "torch.device": _call(_device_name),
            "torch._utils._rebuild_tensor": _call(self.tensor),
            "torch._utils._rebuild_tensor_v2": _call(self.tensor),
            "torch._utils._rebuild_tensor_v3": _call(self.typed_tensor),
            "torch._utils._rebuild_parameter": _call(self.parameter),
            "torch._utils._rebuild_parameter_with_state": _call(self.parameter),
            "torch._tensor._rebuild_from_type_v2": _call(_of_type),
            "numpy.dtype": _NumberType,
            **{f"numpy.{core}.multiarray.scalar": _call(_number) for core in ("core", "_core")},
            **{name: name for name in _MARKS},
        }  # fmt: skip

    def find(self, module: str, name: str) -> Any:
        """What a pickle means by a name."""
        whole = f"{module}.{name}"
        if whole in self.table:
            return self.table[whole]
        if module in ("torch", "torch.storage", "torch.cuda") and name in _STORAGES:
            return _STORAGES[name]
        if module == "torch" and _DTYPES.get(name, name) in dt.BY_NAME:
            return name
        if module == "torch" and name.startswith(
            ("float", "complex", "uint", "int", "bfloat", "q")
        ):
            raise _Unknown(f"it has torch.{name}, a dtype that treadle has not")
        raise _Refused(whole)

    def tensor(
        self,
        storage: Any,
        offset: Any,
        size: Any,
        stride: Any,
        requires_grad: Any = False,
        hooks: Any = None,
        metadata: Any = None,
        kind: str | None = None,
    ) -> Tensor:
        """A tensor that is a part of a storage: element i is at offset + sum of i * stride."""
        if not isinstance(storage, _Storage):
            raise ValueError("a tensor without a storage")
        dtype = _dtype(kind or storage.kind)
        numbers = [offset, *size, *stride]
        if any(type(n) is not int or n < 0 for n in numbers) or len(size) != len(stride):
            raise ValueError(f"a tensor of size {size!r:.60} and stride {stride!r:.60}")
        self.room -= math.prod(size) * dtype.itemsize
        if len(size) > convert.MOST_DIMENSIONS or self.room < 0:
            raise ValueError(f"a tensor of size {tuple(size)!r:.60} is larger than the file")
        count = len(storage.view) // dtype.itemsize
        last = offset + sum((n - 1) * step for n, step in zip(size, stride))
        if 0 not in size and last >= count:
            raise ValueError(f"a tensor of size {tuple(size)} in a storage of {count} elements")
        if 0 in size:
            array = np.zeros(tuple(size), dtype.storage)
        else:
            flat = np.frombuffer(storage.view[: count * dtype.itemsize], dtype.storage)
            steps = [step * dtype.itemsize for step in stride]
            array = np.lib.stride_tricks.as_strided(flat[offset:], tuple(size), steps)
        if storage.swapped:
            array = array.byteswap()
        made = _Loading._of(convert.leaf(array, dtype, self.device))
        return self.kept(made, Tensor, requires_grad)

    def typed_tensor(
        self,
        storage: Any,
        offset: Any,
        size: Any,
        stride: Any,
        requires_grad: Any,
        hooks: Any,
        kind: Any,
        metadata: Any = None,
    ) -> Tensor:
        """`tensor`, of a dtype of its own."""
        return self.tensor(storage, offset, size, stride, requires_grad, hooks, metadata, str(kind))

    def parameter(self, data: Any, requires_grad: Any, hooks: Any, state: Any = None) -> Tensor:
        """A parameter that holds a tensor."""
        if not isinstance(data, Tensor):
            raise ValueError("a parameter without a tensor")
        return self.kept(_Loading._of(data.detach().node), Parameter, requires_grad)

    def kept(self, tensor: Tensor, kind: type[Tensor], requires_grad: Any) -> Tensor:
        """A new tensor, which becomes one of class `kind` when the file has been read."""
        self.made.append((tensor, kind))
        if requires_grad is True and tensor.dtype.is_float:
            tensor.requires_grad = True
        return tensor

    def finish(self) -> None:
        """The file has been read: tensors become what they are to be."""
        for tensor, kind in self.made:
            tensor.__class__ = kind


def _call(function: Callable[..., Any]) -> _Call:
    return _Call(function)


class _Call:
    """A function that a pickle can call, but not look into or change."""

    __slots__ = ("_function",)

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def __call__(self, *args: Any) -> Any:
        return self._function(*args)

    def __setstate__(self, state: Any) -> None:
        raise ValueError("a function is given a state")


def _of_type(function: Any, kind: Any, args: Any, state: Any) -> Any:
    """A tensor with attributes, which are dropped."""
    if not isinstance(function, _Call) or kind not in _MARKS:
        raise ValueError(f"a tensor of the type {kind!r:.60}")
    return function(*args)


def _device_name(*parts: Any) -> str:
    return ":".join(map(str, parts))


def _encoded(text: Any, encoding: Any = "utf-8") -> bytes:
    """Bytes, which old pickles write as text."""
    if not isinstance(text, str) or encoding != "latin1":
        raise ValueError(f"text in the encoding {encoding!r:.40}")
    return text.encode("latin1")


class _NumberType:
    """The dtype of a NumPy number: its name and order of bytes."""

    __slots__ = ("name", "order")

    def __init__(self, name: Any, *flags: Any) -> None:
        self.name, self.order = name, "="

    def __setstate__(self, state: Any) -> None:
        self.order = state[1] if state[1] in ("<", ">") else "="


def _number(kind: Any, data: Any) -> Any:
    """A NumPy number as Python's."""
    if not isinstance(kind, _NumberType) or not str(kind.name).lstrip("biuf").isdigit():
        raise ValueError("a NumPy number of another type")
    return np.frombuffer(data, np.dtype(f"{kind.order}{kind.name}"))[0].item()


# ---- pickles -------------------------------------------------------------------------------------
class _Unpickler(pickle.Unpickler):
    """A pickle that may name nothing but what the builder has."""

    def __init__(
        self, stream: IO[bytes], builder: _Builder, storage: Callable[[Any], Any] | None = None
    ) -> None:
        super().__init__(stream, encoding="utf-8")
        self.builder, self.storage = builder, storage

    def find_class(self, module: str, name: str) -> Any:
        return self.builder.find(module, name)

    def persistent_load(self, key: Any) -> Any:
        if self.storage is None:
            raise ValueError("a storage where none belongs")
        return self.storage(key)


def _unpickle(
    stream: io.BytesIO, builder: _Builder, storage: Callable[[Any], Any] | None = None
) -> Any:
    """The next pickle of a stream. Its lengths are compared with what is there before it is run,
    and so are the numbers of its memo, for which Python would make room."""
    start = stream.tell()
    for number, (opcode, argument, _) in enumerate(pickletools.genops(stream)):
        if opcode.name in ("PUT", "BINPUT", "LONG_BINPUT") and int(argument or 0) > number:
            raise ValueError("a memo with gaps")
    stream.seek(start)
    return _Unpickler(stream, builder, storage).load()


def _storage_key(key: Any, length: int) -> tuple[Any, ...]:
    """What a pickle says about a storage: (dtype, key, elements, ..)."""
    if not isinstance(key, tuple) or len(key) < length or key[0] != "storage":
        if isinstance(key, tuple) and key and key[0] == "module":
            raise _Refused(str(key[1:2]))
        raise ValueError(f"a reference to {key!r:.60}")
    _, kind, name, _, count, *rest = key
    if kind not in _STORAGES.values() or type(count) is not int or count < 0:
        raise ValueError(f"a storage of {count!r:.30} elements of {kind!r:.30}")
    return kind, str(name), count, *rest


# ---- the three formats ---------------------------------------------------------------------------
def _from_zip(data: bytes, builder: _Builder) -> Any:
    """An archive with `data.pkl` and a file for every storage, all in one folder."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        files = {info.filename: info for info in archive.infolist()}
        for info in files.values():
            if info.compress_type != zipfile.ZIP_STORED:
                raise ValueError(f"{info.filename:.60} is compressed")
        if sum(info.file_size for info in files.values()) > len(data):
            raise ValueError("the archive says that it holds more than it does")
        root = next((n.rpartition("/")[0] for n in files if n.endswith("data.pkl")), None)
        if root is None or f"{root}/constants.pkl" in files:
            raise _Unknown("it is a zip archive, but not of torch.save (a TorchScript program?)")
        order = archive.read(f"{root}/byteorder") if f"{root}/byteorder" in files else b"little"
        swapped = order.strip() != _NATIVE_ORDER
        known: dict[str, memoryview] = {}

        def storage(key: Any) -> _Storage:
            kind, name, count, *_ = _storage_key(key, 5)
            if name not in known:
                known[name] = memoryview(archive.read(f"{root}/data/{name}"))
            size = count * _itemsize(kind)
            if len(known[name]) < size:
                raise ValueError(f"storage {name:.40} has {len(known[name])} bytes, not {size}")
            return _Storage(known[name][:size], kind, swapped)

        return _unpickle(io.BytesIO(archive.read(f"{root}/data.pkl")), builder, storage)


_NATIVE_ORDER = b"little" if np.little_endian else b"big"


def _itemsize(kind: str) -> int:
    return {"complex64": 8, "complex128": 16}.get(kind) or _dtype(kind).itemsize


def _from_stream(data: bytes, builder: _Builder) -> Any:
    """Pickles one after the other: magic number, version, system, the object, the keys of storages;
    then each storage, as its number of elements and their bytes.

    The object comes before the bytes of its storages: it is run twice, the second time with them.
    """
    stream = io.BytesIO(data)
    if _unpickle(stream, builder) != MAGIC:
        raise ValueError("it does not begin as one")
    _unpickle(stream, builder)
    system = _unpickle(stream, builder)
    swapped = bool(system.get("little_endian", True)) != np.little_endian
    start = stream.tell()
    kinds: dict[str, str] = {}

    def note(key: Any) -> _Storage:
        kind, name, *_ = _storage_key(key, 5)
        kinds[name] = kind
        return _Storage(memoryview(b""), kind, False)

    probe = _Builder(builder.device, builder.room)
    for name in ("_rebuild_tensor", "_rebuild_tensor_v2", "_rebuild_tensor_v3"):
        probe.table[f"torch._utils.{name}"] = _call(_nothing)
    for name in ("_rebuild_parameter", "_rebuild_parameter_with_state"):
        probe.table[f"torch._utils.{name}"] = _call(_nothing)
    _unpickle(stream, probe, note)
    keys = _unpickle(stream, builder)
    known = {str(key): _stored(stream, data, kinds[str(key)]) for key in keys}
    stream.seek(start)

    def storage(key: Any) -> _Storage:
        kind, name, _, *view = _storage_key(key, 5)
        whole = known[name]
        if view and view[0] is not None:
            _, offset, count = view[0]
            size = _itemsize(kind)
            if not 0 <= offset <= offset + count <= len(whole) // size:
                raise ValueError(f"a view of {count!r} elements at {offset!r}")
            whole = whole[offset * size : (offset + count) * size]
        return _Storage(whole, kind, swapped)

    return _unpickle(stream, builder, storage)


def _nothing(*args: Any) -> None:
    """In place of a tensor whose bytes are not there yet."""


def _stored(stream: io.BytesIO, data: bytes, kind: str) -> memoryview:
    """The next storage of a stream: the number of its elements, and they."""
    (count,) = struct.unpack("<q", stream.read(8))
    start, size = stream.tell(), count * _itemsize(kind)
    if not 0 <= size <= len(data) - start:
        raise ValueError(f"a storage of {count} elements, which are not there")
    stream.seek(start + size)
    return memoryview(data)[start : start + size]


def _from_tar(data: bytes, builder: _Builder) -> Any:
    """The oldest files: `storages`, `tensors` (parts of those) and `pickle` (which refers to
    tensors by number)."""
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
        parts = {}
        for member in archive:
            name = member.name.removeprefix("./")
            if name not in ("storages", "tensors", "pickle", "sys_info"):
                continue
            if not member.isreg() or member.sparse or member.size > len(data):
                raise ValueError(f"{name} is not a plain file")
            file = archive.extractfile(member)
            assert file is not None
            parts[name] = file.read()
    storages: dict[Any, _Storage] = {}
    stream = io.BytesIO(parts["storages"])
    for _ in range(_count(_unpickle(stream, builder), parts["storages"])):
        key, _, kind = _unpickle(stream, builder)
        if kind not in _STORAGES.values():
            raise ValueError(f"a storage of {kind!r:.30}")
        storages[key] = _Storage(
            _stored(stream, parts["storages"], kind), kind, not np.little_endian
        )
    for target, root, offset, count in _unpickle(stream, builder):
        whole = storages[root]
        size = _itemsize(whole.kind)
        part = whole.view[offset * size : (offset + count) * size]
        storages[target] = _Storage(part, whole.kind, whole.swapped)
    tensors: dict[Any, Tensor] = {}
    stream = io.BytesIO(parts["tensors"])
    names = _Builder(builder.device, builder.room)
    names.find = _any_tensor_type  # type: ignore[method-assign]
    for _ in range(_count(_unpickle(stream, builder), parts["tensors"])):
        key, root, _ = _unpickle(stream, names)
        (rank,) = struct.unpack("<i4x", stream.read(8))
        if not 0 <= rank <= convert.MOST_DIMENSIONS:
            raise ValueError(f"a tensor of {rank} dimensions")
        sizes = struct.unpack(f"<{rank}q", stream.read(8 * rank))
        stride = struct.unpack(f"<{rank}q", stream.read(8 * rank))
        (offset,) = struct.unpack("<q", stream.read(8))
        tensors[key] = builder.tensor(storages[root], offset, sizes, stride)

    def tensor(key: Any) -> Any:
        return tensors[int(key)]

    return _unpickle(io.BytesIO(parts["pickle"]), builder, tensor)


def _any_tensor_type(module: str, name: str) -> str:
    """The class of a tensor, which its storage tells too."""
    if not module.startswith("torch") or not name.endswith("Tensor"):
        raise _Refused(f"{module}.{name}")
    return name


def _count(number: Any, data: bytes) -> int:
    """How many things a part holds: no more than it has bytes."""
    if type(number) is not int or not 0 <= number <= len(data):
        raise ValueError(f"{number!r:.30} things in {len(data)} bytes")
    return number
