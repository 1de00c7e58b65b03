"""State dicts: loading with every mismatch listed, and safetensors files."""

import json
import struct
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from treadle import Tensor, nn
from treadle.ir import dtype as dt


def model() -> nn.Sequential:
    return nn.Sequential(nn.Linear(2, 3), nn.BatchNorm(3), nn.Linear(3, 1))


def arrays(module: nn.Module) -> dict[str, np.ndarray]:
    return {name: tensor.numpy() for name, tensor in module.state_dict().items()}


def assert_same(first: nn.Module, second: nn.Module) -> None:
    left, right = arrays(first), arrays(second)
    assert list(left) == list(right)
    for name in left:
        np.testing.assert_array_equal(left[name], right[name], err_msg=name)


def test_load_puts_values_into_the_same_tensors() -> None:
    source, target = model(), model()
    source(Tensor([[1.0, 2.0], [3.0, 5.0]])).numpy()  # moves the running statistics
    before = list(target.state_dict().values())
    assert target.load_state_dict(source.state_dict()) == ([], [])
    assert all(a is b for a, b in zip(before, target.state_dict().values()))
    assert target[0].weight.requires_grad and not target[1].running_mean.requires_grad
    assert_same(source, target)
    source[0].weight.data.numpy()
    nn.init.zeros_(source[0].weight)
    assert target[0].weight.numpy().any(), "the loaded values are the model's own"


def test_load_takes_arrays_and_plain_objects() -> None:
    target = {"a": [Tensor([1.0, 2.0])]}
    nn.load_state_dict(target, {"a.0": np.float32([3, 4])})
    assert target["a"][0].tolist() == [3.0, 4.0]


def test_every_mismatch_is_listed_and_nothing_changes() -> None:
    target = model()
    before = arrays(target)
    state: dict[str, Any] = dict(model().state_dict())
    del state["0.bias"]
    state["extra"] = Tensor([1.0])
    state["2.weight"] = Tensor.zeros(1, 4)
    state["2.bias"] = Tensor([1])
    state["1.weight"] = "words"
    with pytest.raises(RuntimeError) as caught:
        target.load_state_dict(state)
    message = str(caught.value)
    assert "does not fit Sequential" in message
    for line in (
        "0.bias: missing in the state dict",
        "extra: not in the model",
        "2.weight: shape (1, 4), but the model has (1, 3)",
        "2.bias: int64, but the model has float32",
        "1.weight: a str, neither a tensor nor an array",
    ):
        assert line in message
    for name, value in before.items():
        np.testing.assert_array_equal(target.state_dict()[name].numpy(), value)


def test_not_strict() -> None:
    target = model()
    state = {"0.bias": np.array([1.0, 2.0, 3.0]), "extra": np.zeros(1)}
    found = target.load_state_dict(state, strict=False)
    assert found.unexpected_keys == ["extra"] and "0.weight" in found.missing_keys
    assert "0.bias" not in found.missing_keys
    assert target[0].bias.tolist() == [1.0, 2.0, 3.0]
    assert target[0].bias.dtype.name == "float32"
    with pytest.raises(RuntimeError, match=r"0\.bias: shape \(2,\), but the model has \(3,\)"):
        target.load_state_dict({"0.bias": np.zeros(2)}, strict=False)


def test_an_optimizer_goes_on_after_a_load() -> None:
    target = nn.Linear(1, 1, bias=False)
    optimizer = nn.optim.SGD(target.parameters(), lr=1.0)
    target.load_state_dict({"weight": np.float32([[5]])})
    target(Tensor([[2.0]])).sum().backward()
    optimizer.step()
    assert target.weight.tolist() == [[3.0]]


@pytest.mark.parametrize("dtype", (*dt.TENSOR_DTYPES, *dt.FLOAT8, dt.complex64), ids=str)
def test_every_dtype_survives_a_file(dtype: dt.DType, tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    values = Tensor([[0, 1, 1], [1, 0, 1]], dtype=dtype)
    given = {"x": values, "empty": values[:, :0], "scalar": values[0, 1], "turned": values.T}
    nn.safe_save(given, path, metadata={"by": "test"})
    found = nn.safe_load(path)
    assert set(found) == set(given)
    for name, tensor in given.items():
        assert found[name].dtype is dtype and found[name].shape == tensor.shape
        np.testing.assert_array_equal(found[name].numpy(), tensor.numpy(), err_msg=name)
    assert not found["x"].requires_grad


def test_bfloat16_is_not_rounded_again(tmp_path: Path) -> None:
    values = Tensor([1.0078125, float("inf"), -0.0, 3e38, 1e-40], dtype="bfloat16")
    nn.safe_save({"x": values}, tmp_path / "x")
    found = nn.safe_load(tmp_path / "x")["x"].numpy()
    np.testing.assert_array_equal(found.view(np.uint32), values.numpy().view(np.uint32))


def test_a_model_through_a_file(tmp_path: Path) -> None:
    source, target = model(), model()
    nn.safe_save(source.state_dict(), tmp_path / "m.safetensors")
    target.load_state_dict(nn.safe_load(tmp_path / "m.safetensors"))
    assert_same(source, target)


def test_saving_replaces_the_file_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "x"
    nn.safe_save({"x": Tensor([1.0])}, path)
    with pytest.raises(TypeError, match="a dict from names to tensors; this one has 'y': int"):
        nn.safe_save({"x": Tensor([2.0]), "y": 3}, path)  # type: ignore[dict-item]
    nn.safe_save({"x": Tensor([2.0])}, path)
    assert nn.safe_load(path)["x"].tolist() == [2.0]
    assert [file.name for file in tmp_path.iterdir()] == ["x"]


def test_the_library_without_specs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before its version 0.8 the library took bytes."""
    library = pytest.importorskip("safetensors", reason="the extra safetensors is not installed")
    seen = {}

    def serialize_file(parts: dict[str, Any], path: Path, metadata: Any) -> None:
        seen.update(parts)
        path.write_bytes(b"")

    monkeypatch.delattr(library, "TensorSpec", raising=False)
    monkeypatch.setattr(library, "serialize_file", serialize_file)
    nn.safe_save({"x": Tensor([1.0, 2.0])}, tmp_path / "x")
    assert seen == {"x": {"dtype": "float32", "shape": (2,), "data": np.float32([1, 2]).tobytes()}}


def test_files_that_are_broken_or_foreign(tmp_path: Path) -> None:
    path = tmp_path / "bad"
    path.write_bytes(b"\x10\0\0\0\0\0\0\0{")
    with pytest.raises(ValueError, match="bad is not a whole safetensors file"):
        nn.safe_load(path)
    header = json.dumps({"x": {"dtype": "F8_E8M0", "shape": [1], "data_offsets": [0, 1]}}).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header + b"\0")
    with pytest.raises(ValueError, match="x is F8_E8M0, which treadle has not"):
        nn.safe_load(path)
    with pytest.raises(FileNotFoundError):
        nn.safe_load(tmp_path / "absent")


def test_without_the_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "safetensors", None)
    with pytest.raises(ImportError, match=r"pip install 'treadle\[safetensors\]'"):
        nn.safe_save({"x": Tensor([1.0])}, tmp_path / "x")
