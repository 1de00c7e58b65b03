"""torch_load: what a file may hold, what is refused, what is broken. Files of PyTorch's own are
read in tests/parity."""

import io
import pickle
import struct
import tarfile
import zipfile
from collections import OrderedDict
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from treadle import Tensor, nn
from treadle.nn.checkpoint import MAGIC


class Global:
    """Pickles as a name of a module, which need not exist."""

    def __init__(self, module: str, name: str) -> None:
        self.module, self.name = module, name


class Call:
    """Pickles as a call."""

    def __init__(self, function: Any, *args: Any) -> None:
        self.function, self.args = function, args

    def __reduce__(self) -> Any:
        return self.function, self.args


class Storage:
    def __init__(self, kind: str, key: str, array: np.ndarray) -> None:
        self.kind, self.key, self.array = kind, key, array

    def reference(self) -> tuple[Any, ...]:
        kind = Global("torch", self.kind)
        return ("storage", kind, self.key, "cpu", self.array.size)


class Pickler(pickle._Pickler):  # type: ignore[misc,name-defined]
    """Writes names and calls as they are asked for."""

    dispatch: ClassVar[dict[Any, Any]] = dict(pickle._Pickler.dispatch)  # type: ignore[attr-defined]

    def persistent_id(self, item: Any) -> Any:
        return item.reference() if isinstance(item, Storage) else None

    def save_global_(self, item: Global) -> None:
        self.write(b"c" + f"{item.module}\n{item.name}\n".encode())

    dispatch[Global] = save_global_

    def save_reduce(self, func: Any, args: Any, *rest: Any, **named: Any) -> None:
        self.save(func)
        self.save(args)
        self.write(b"R")


def pickled(item: Any) -> bytes:
    stream = io.BytesIO()
    Pickler(stream, 2).dump(item)
    return stream.getvalue()


def call(name: str, *args: Any) -> Call:
    module, _, function = name.rpartition(".")
    return Call(Global(module, function), *args)


def tensor(
    array: np.ndarray, kind: str = "FloatStorage", key: str = "0", **changed: Any
) -> tuple[Call, Storage]:
    storage = Storage(kind, key, array)
    steps = tuple(step // array.itemsize for step in array.strides)
    said = {"offset": 0, "size": array.shape, "stride": steps, **changed}
    parts = (storage, said["offset"], said["size"], said["stride"], False, OrderedDict())
    return call("torch._utils._rebuild_tensor_v2", *parts), storage


def zipped(item: Any, *storages: Storage, **more: bytes) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("x/data.pkl", pickled(item))
        for storage in storages:
            archive.writestr(f"x/data/{storage.key}", storage.array.tobytes())
        for name, content in more.items():
            archive.writestr(f"x/{name}", content)
    return stream.getvalue()


X = np.arange(6, dtype=np.float32).reshape(2, 3)


def test_a_zip_archive(tmp_path: Path) -> None:
    made, storage = tensor(X)
    data = zipped({"w": made, "epoch": 3, "names": ["a", ("b",)], "none": None}, storage)
    (tmp_path / "x.pt").write_bytes(data)
    for source in (tmp_path / "x.pt", str(tmp_path / "x.pt"), data, io.BytesIO(data)):
        found = nn.torch_load(source)
        assert found["w"].tolist() == X.tolist() and type(found["w"]) is Tensor
        assert (found["epoch"], found["names"], found["none"]) == (3, ["a", ("b",)], None)


def test_parts_of_a_storage_and_orders_of_bytes() -> None:
    made, storage = tensor(X, offset=1, size=(2, 2), stride=(1, 3))
    assert nn.torch_load(zipped(made, storage)).tolist() == [[1.0, 4.0], [2.0, 5.0]]
    made, storage = tensor(X, size=(4, 2), stride=(0, 1))
    assert nn.torch_load(zipped(made, storage)).tolist() == [[0.0, 1.0]] * 4
    swapped = X.astype(">f4")
    made, storage = tensor(swapped)
    assert nn.torch_load(zipped(made, storage, byteorder=b"big")).tolist() == X.tolist()


def test_parameters_and_numbers() -> None:
    made, storage = tensor(X)
    parameter = call("torch._utils._rebuild_parameter", made, True, OrderedDict())
    kind = call("numpy.dtype", "f8", 0, 1)
    number = call("numpy.core.multiarray.scalar", kind, struct.pack("<d", 0.5))
    size = call("torch.Size", [2, 3])
    found = nn.torch_load(zipped([parameter, number, size], storage))
    assert isinstance(found[0], nn.Parameter) and found[0].requires_grad
    assert found[1:] == [0.5, (2, 3)]


REFUSED = {
    "a system call": call("os.system", "touch /tmp/should-not-exist"),
    "a built-in": call("builtins.eval", "1 + 1"),
    "getattr": call("builtins.getattr", "x", "upper"),
    "a module of ours": call("treadle.nn.checkpoint._Builder", "CPU", 1),
    "a whole model": call("torch.nn.modules.linear.Linear", 2, 3),
    "a dotted name": call("collections.OrderedDict.__init__", 1),
}


@pytest.mark.parametrize("what", REFUSED)
def test_code_is_refused_by_name(what: str) -> None:
    function = REFUSED[what].function
    wanted = f"wants to call {function.module}.{function.name}"
    for data in (zipped(REFUSED[what]), legacy(REFUSED[what])):
        with pytest.raises(pickle.UnpicklingError, match=wanted):
            nn.torch_load(data)


class State:
    """Pickles as a state given to what is made."""

    def __init__(self, made: Any, state: Any) -> None:
        self.made, self.state = made, state


def save_state(self: Any, item: State) -> None:
    self.save(item.made)
    self.save(item.state)
    self.write(b"b")


Pickler.dispatch[State] = save_state


@pytest.mark.parametrize(
    "target", [tensor(X)[0], Global("torch._utils", "_rebuild_tensor_v2"), Global("torch", "Size")]
)
def test_nothing_that_is_made_can_be_changed(target: Any) -> None:
    state = State(target, (None, {"node": 1, "_function": 2}))
    with pytest.raises(ValueError, match="is not a whole PyTorch file"):
        nn.torch_load(zipped(state, tensor(X)[1]))


@pytest.mark.parametrize(
    "changed",
    [
        {"size": (3, 3)},
        {"size": (2**40,), "stride": (0,)},
        {"size": (-1, 3)},
        {"stride": (3, -1)},
        {"offset": 1},
        {"offset": 2**70},
        {"size": (1,) * 65, "stride": (1,) * 65},
        {"size": (2,)},
        {"size": "ab"},
    ],
    ids=repr,
)
def test_sizes_are_compared_with_what_is_there(changed: dict[str, Any]) -> None:
    made, storage = tensor(X, **changed)
    with pytest.raises(ValueError, match="is not a whole PyTorch file: "):
        nn.torch_load(zipped(made, storage))


def test_a_storage_that_is_shorter_than_it_says() -> None:
    made, storage = tensor(X)
    short = Storage("FloatStorage", "0", X[:1])
    with pytest.raises(ValueError, match="storage 0 has 12 bytes, not 24"):
        nn.torch_load(zipped(made, short))
    made, _ = tensor(np.zeros(2, np.complex64), "QInt8Storage")
    with pytest.raises(pickle.UnpicklingError, match=r"torch\.QInt8Storage"):
        nn.torch_load(zipped(made, storage))


def test_archives_of_others() -> None:
    made, storage = tensor(X)
    with pytest.raises(ValueError, match=r"not of torch\.save"):
        nn.torch_load(zipped(made, storage, **{"constants.pkl": b""}))
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x/data.pkl", pickled(made))
        archive.writestr("x/data/0", bytes(10**6))
    with pytest.raises(ValueError, match="is compressed"):
        nn.torch_load(stream.getvalue())
    with pytest.raises(TypeError, match="a path, bytes or an open binary file"):
        nn.torch_load(3)  # type: ignore[arg-type]
    with pytest.raises(FileNotFoundError):
        nn.torch_load("nowhere.pt")


# ---- the formats before zip ----------------------------------------------------------------------
def legacy(item: Any, *storages: Storage) -> bytes:
    system = {"protocol_version": 1001, "little_endian": True, "type_sizes": {}}
    parts = [pickled(part) for part in (MAGIC, 1001, system, item, [s.key for s in storages])]
    for storage in storages:
        parts += [struct.pack("<q", storage.array.size), storage.array.tobytes()]
    return b"".join(parts)


class View(Storage):
    """A storage that is a part of another, as old files have it."""

    def reference(self) -> tuple[Any, ...]:
        kind = Global("torch", self.kind)
        return ("storage", kind, self.key, "cpu", self.array.size, ("v", 2, 3))


def test_pickles_behind_a_magic_number() -> None:
    made, storage = tensor(X)
    ids, second = tensor(np.arange(3), "LongStorage", "7")
    view = call("torch._utils._rebuild_tensor", View("FloatStorage", "0", X), 1, (2,), (1,))
    found = nn.torch_load(legacy([made, ids, view], storage, second))
    assert found[0].tolist() == X.tolist()
    assert found[1].tolist() == [0, 1, 2] and found[1].dtype.name == "int64"
    assert found[2].tolist() == [3.0, 4.0]


def test_the_first_format_of_all() -> None:
    kind = Global("torch", "FloatStorage")
    storages = pickled(1) + pickled((10, "cpu", kind)) + struct.pack("<q", 6) + X.tobytes()
    storages += pickled([(11, 10, 3, 3)])
    tensors = pickled(1) + pickled((5, 11, Global("torch", "FloatTensor")))
    tensors += struct.pack("<i4xqqq", 1, 2, 1, 1)

    class Number(Storage):
        def reference(self) -> Any:
            return 5

    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for name, content in (
            ("sys_info", pickled({})),
            ("pickle", pickled({"w": Number("", "", X)})),
            ("tensors", tensors),
            ("storages", storages),
        ):
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    assert nn.torch_load(stream.getvalue())["w"].tolist() == [4.0, 5.0]


# ---- files that are broken -----------------------------------------------------------------------
MADE, STORAGE = tensor(X)
FILES = [
    zipped({"w": MADE, "names": ["a", 1.5, {2}]}, STORAGE),
    legacy({"w": MADE, "names": ["a", 1.5, {2}]}, STORAGE),
]


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from(FILES),
    st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 255)), max_size=4),
    st.one_of(st.none(), st.integers(0, 10**6)),
)
def test_bytes_that_are_changed_or_missing(
    data: bytes, changes: list[tuple[int, int]], end: int | None
) -> None:
    broken = bytearray(data)
    for place, byte in changes:
        broken[place % len(broken)] = byte
    part = bytes(broken if end is None else broken[: end % len(broken)])
    try:
        nn.torch_load(part)
    except (ValueError, pickle.UnpicklingError) as error:
        assert str(error).startswith("torch_load: ")


def test_numbers_that_would_make_room_for_themselves() -> None:
    memo = b"\x80\x02Nr\xff\xff\xff\xff."  # LONG_BINPUT of the last number that there is
    text = b"\x80\x04\x8d" + struct.pack("<Q", 2**60) + b"ab."  # a string of 2**60 bytes
    for pickle_ in (memo, text):
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w") as archive:
            archive.writestr("x/data.pkl", pickle_)
        with pytest.raises(ValueError, match="is not a whole PyTorch file"):
            nn.torch_load(stream.getvalue())
