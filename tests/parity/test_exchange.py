"""Memory shared with PyTorch by DLPack, both ways; and other libraries that take any array."""

from __future__ import annotations

import numpy as np
import pytest

import treadle as xp
from treadle import Tensor, jit, no_grad

torch = pytest.importorskip("torch", reason="parity needs PyTorch: make test-full")
pytestmark = pytest.mark.full


def test_out_without_a_copy() -> None:
    x = Tensor([1.0, 2.0, 3.0])
    theirs = torch.from_dlpack(x)
    theirs[0] = 5
    assert x.tolist() == [5, 2, 3]  # one memory
    x += 1
    assert x.tolist() == [6, 3, 4]
    assert theirs.tolist() == [5, 2, 3]  # which treadle does not write to


def test_out_of_a_captured_function() -> None:
    @jit
    def step(x: Tensor) -> Tensor:
        x.assign(x + 1)
        return x.sum()

    x = Tensor([1.0, 2.0])
    for _ in range(4):
        theirs = torch.from_dlpack(x)
        before = theirs.tolist()
        step(x)
        assert theirs.tolist() == before and x.tolist() == [n + 1 for n in before]


def test_out_of_what_a_captured_function_closes_over() -> None:
    x = Tensor([1.0, 2.0]).realize()

    @jit
    def step(y: Tensor) -> Tensor:
        x.assign(x + y)
        return x.sum()

    for _ in range(4):
        theirs = torch.from_dlpack(x)
        before = theirs.tolist()
        step(Tensor([1.0, 1.0]))
        assert theirs.tolist() == before and x.tolist() == [n + 1 for n in before]


def test_in_without_a_copy() -> None:
    theirs = torch.arange(64.0)
    x = xp.from_dlpack(theirs, copy=False)
    theirs[0] = 5
    assert x[:2].tolist() == [5, 1]
    x -= 1
    x.realize()
    assert theirs[:2].tolist() == [5, 1]
    p = xp.from_dlpack(theirs)
    p.requires_grad = True
    with no_grad():
        p -= 1
    assert p[:2].tolist() == [4, 0] and theirs[:2].tolist() == [5, 1]
    copied = xp.from_dlpack(theirs, copy=True)
    theirs[0] = 9
    assert float(copied[0]) == 5


def test_what_cannot_be_shared() -> None:
    theirs = torch.arange(64.0)
    assert xp.from_dlpack(theirs[1:])[:2].tolist() == [1, 2]
    assert xp.from_dlpack(theirs.reshape(8, 8).T)[0, 1].item() == 8
    with pytest.raises(BufferError, match="copy=False"):
        xp.from_dlpack(theirs[1:], copy=False)
    with pytest.raises(BufferError, match=r"x\.detach"):
        torch.from_dlpack(Tensor([1.0], requires_grad=True))
    with pytest.raises(TypeError, match="no __dlpack__"):
        xp.from_dlpack([1.0])
    with pytest.raises(BufferError, match="stream"):
        Tensor([1.0]).__dlpack__(stream=1)


def test_bfloat16_and_other_dtypes() -> None:
    for name in ["bfloat16", "float16", "float64", "int8", "uint8", "int64", "bool"]:
        x = Tensor([0, 1, 2]).cast(name)
        theirs = torch.from_dlpack(x)
        assert str(theirs.dtype) == f"torch.{name}"
        assert theirs.float().tolist() == x.float().tolist()
        back = xp.from_dlpack(theirs)
        assert back.dtype is x.dtype and back.tolist() == x.tolist()


@pytest.mark.parametrize(
    ("dtype", "theirs"),
    [
        (xp.bfloat16, torch.bfloat16),
        (xp.float8_e4m3, torch.float8_e4m3fn),
        (xp.float8_e5m2, torch.float8_e5m2),
        (xp.float16, torch.float16),
    ],
    ids=repr,
)
def test_narrow_floats(dtype: object, theirs: torch.dtype) -> None:
    x = Tensor([0.0, 1.5, -2.0]).cast(dtype)
    shared = torch.from_dlpack(x)
    assert shared.dtype is theirs and shared.float().tolist() == [0, 1.5, -2]
    assert xp.from_dlpack(shared).dtype is dtype
    ours, known = xp.finfo(dtype), torch.finfo(theirs)
    assert (ours.bits, ours.eps, ours.max, ours.min) == (
        known.bits, known.eps, known.max, known.min
    )  # fmt: skip
    assert ours.smallest_normal == known.smallest_normal
    assert xp.isdtype(dtype, "real floating")


def test_memory_outlives_the_tensor() -> None:
    theirs = torch.from_dlpack(Tensor(np.arange(1000.0)) * 2)
    copied = torch.utils.dlpack.from_dlpack(Tensor(np.arange(1000.0)).__dlpack__(copy=True))
    for _ in range(10):
        (Tensor(np.zeros(1000)) + 1).realize()
    assert float(theirs.sum()) == 999_000 and float(copied.sum()) == 499_500


# ---- libraries that take any array ---------------------------------------------------------------
def test_array_api_compat() -> None:
    compat = pytest.importorskip("array_api_compat")
    x = Tensor([[1.0, 2.0]])
    assert compat.array_namespace(x) is xp
    assert compat.is_array_api_obj(x)
    assert compat.size(x) == 2 and compat.device(x) == x.device


def test_einops() -> None:
    einops = pytest.importorskip("einops")
    ours = pytest.importorskip("einops.array_api")
    x = Tensor(np.arange(24.0)).reshape(2, 3, 4)
    got = ours.rearrange(x, "a b c -> (a c) b")
    assert np.array_equal(got.numpy(), einops.rearrange(x.numpy(), "a b c -> (a c) b"))
    got = ours.reduce(x, "a b c -> b", "mean")
    assert np.allclose(got.numpy(), x.numpy().mean((0, 2)))


# ---- NumPy ---------------------------------------------------------------------------------------
def test_universal_functions_keep_gradients() -> None:
    x = Tensor([1.0, 2.0], requires_grad=True)
    y = (np.sin(x) * np.array([1.0, 2.0], np.float32)).sum()
    y.backward()
    assert x.grad is not None
    assert np.allclose(x.grad.numpy(), np.cos([1.0, 2.0]) * [1, 2])


def test_numpy_never_detaches_in_silence() -> None:
    x = Tensor([1.0, 2.0], requires_grad=True)
    for call in (np.asarray, np.mean, np.add.reduce, np.stack, lambda x: np.concatenate([x, x])):
        with pytest.raises(RuntimeError, match=r"x\.detach"):
            call(x)
    assert np.mean(x.detach()) == 1.5
    array = np.zeros(2)
    array += Tensor([1.0, 2.0])
    assert array.tolist() == [1, 2]
    with pytest.raises(TypeError, match="out"):
        np.add(1, 1, out=x)
