"""Files that PyTorch wrote, in both of its formats."""

import io
import pickle
from typing import Any

import numpy as np
import pytest

from treadle import Tensor, nn

torch = pytest.importorskip("torch", reason="parity needs PyTorch: make test-full")
pytestmark = pytest.mark.full
DTYPES = (
    "float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool",
    "uint16", "uint32", "uint64",
)  # fmt: skip


def saved(item: Any, zipped: bool) -> bytes:
    stream = io.BytesIO()
    torch.save(item, stream, _use_new_zipfile_serialization=zipped)
    return stream.getvalue()


@pytest.mark.parametrize("zipped", [True, False], ids=["zip", "legacy"])
def test_tensors_of_every_dtype_and_layout(zipped: bool) -> None:
    base = torch.arange(24).reshape(2, 3, 4)
    dtypes = DTYPES if zipped else DTYPES[:-3]
    items = {
        name: (base % 2 if name == "bool" else base).to(getattr(torch, name)) for name in dtypes
    }
    items |= {"part": base[:, 1:, ::2], "turned": base.mT, "empty": torch.zeros(0, 3)}
    items |= {"number": torch.tensor(2.5), "stretched": torch.ones(1).expand(5)}
    found = nn.torch_load(saved(items, zipped))
    for name, expected in items.items():
        numbers = expected.float() if name == "bfloat16" else expected
        np.testing.assert_array_equal(found[name].numpy(), numbers.numpy(), err_msg=name)
        if name in dtypes:
            assert found[name].dtype.name == name


@pytest.mark.parametrize("zipped", [True, False], ids=["zip", "legacy"])
def test_a_checkpoint_of_a_training(zipped: bool) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    model(torch.randn(5, 3)).sum().backward()
    optimizer.step()
    checkpoint = {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "weight": model[0].weight,
        "best": np.float64(0.5),
        "args": {
            "shape": torch.Size([2, 3]),
            "device": torch.device("cpu"),
            "dtype": torch.float16,
        },
    }
    found = nn.torch_load(saved(checkpoint, zipped))
    ours = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm(4))
    ours.load_state_dict(found["model"])
    np.testing.assert_array_equal(ours[0].weight.numpy(), model[0].weight.detach().numpy())
    assert isinstance(found["weight"], nn.Parameter) and found["weight"].requires_grad
    assert found["best"] == 0.5 and found["args"]["shape"] == (2, 3)
    assert found["args"]["device"] == "cpu" and found["args"]["dtype"] == "float16"
    own = nn.optim.Adam(ours.parameters(), lr=1.0)
    own.load_state_dict(found["optimizer"])
    assert own.lr == 0.01


def test_what_is_refused() -> None:
    with pytest.raises(pickle.UnpicklingError, match=r"torch\.nn\.modules\.linear\.Linear"):
        nn.torch_load(saved(torch.nn.Linear(2, 3), True))
    with pytest.raises(ValueError, match="a dtype that treadle has not"):
        nn.torch_load(saved(torch.zeros(2, dtype=torch.complex32), True))


def test_tensors_that_share_memory_are_copies() -> None:
    base = torch.zeros(4)
    first, second = nn.torch_load(saved([base, base[1:]], True))
    first.assign(Tensor.ones(4))
    assert second.tolist() == [0.0] * 3
