"""Parity with PyTorch: networks that learn step by step alike, layers, and state dicts."""

from typing import Any

import numpy as np
import pytest

from treadle import Tensor, nn

torch = pytest.importorskip("torch", reason="parity needs PyTorch: make test-full")
pytestmark = pytest.mark.full
Array = np.ndarray


def networks(dtype: str) -> tuple[nn.Module, Any]:
    """One convolutional network twice, with equal weights."""

    def make(kit: Any) -> Any:
        return kit.Sequential(
            kit.Conv2d(1, 6, 5),
            kit.ReLU(),
            kit.Conv2d(6, 8, 3, padding=1, bias=False),
            kit.BatchNorm2d(8),
            kit.ReLU(),
            kit.MaxPool2d(2),
            kit.Conv2d(8, 8, 3, stride=2, groups=2),
            kit.GELU(),
            kit.Flatten(),
            kit.LayerNorm(32),
            kit.Linear(32, 10),
        )

    torch.manual_seed(1)
    theirs = make(torch.nn).to(getattr(torch, dtype))
    ours = make(nn).to(dtype)
    ours.load_state_dict({name: t.numpy() for name, t in theirs.state_dict().items()})
    return ours, theirs


def batch(step: int, dtype: str) -> tuple[Array, Array]:
    random = np.random.default_rng(step)
    return random.normal(size=(8, 1, 14, 14)).astype(dtype), random.integers(0, 10, 8)


OPTIMIZERS: list[tuple[str, dict[str, Any]]] = [
    ("SGD", {"lr": 0.05}),
    ("SGD", {"lr": 0.02, "momentum": 0.9, "nesterov": True, "weight_decay": 1e-3}),
    ("SGD", {"lr": 0.02, "momentum": 0.9, "dampening": 0.5}),
    ("Adam", {"lr": 1e-3}),
    ("Adam", {"lr": 1e-3, "betas": (0.8, 0.95), "weight_decay": 1e-2, "amsgrad": True}),
    ("AdamW", {"lr": 1e-3, "weight_decay": 0.1}),
]


@pytest.mark.parametrize(("name", "settings"), OPTIMIZERS)
@pytest.mark.parametrize(("dtype", "steps", "limit"), [("float64", 20, 1e-9), ("float32", 5, 1e-3)])
def test_a_network_learns_step_by_step_alike(
    name: str, settings: dict[str, Any], dtype: str, steps: int, limit: float
) -> None:
    ours, theirs = networks(dtype)
    our_optimizer = getattr(nn.optim, name)(ours.parameters(), **settings)
    their_optimizer = getattr(torch.optim, name)(theirs.parameters(), **settings)
    for step in range(steps):
        x, y = batch(step, dtype)
        our_optimizer.zero_grad()
        loss = ours(Tensor(x)).cross_entropy(Tensor(y))
        loss.backward()
        our_optimizer.step()
        their_optimizer.zero_grad()
        expected = torch.nn.functional.cross_entropy(
            theirs(torch.from_numpy(x)), torch.from_numpy(y)
        )
        expected.backward()
        their_optimizer.step()
        assert abs(loss.item() - expected.item()) < limit, f"the loss of step {step}"
    found = ours.state_dict()
    assert list(found) == list(theirs.state_dict())
    for key, value in theirs.state_dict().items():
        np.testing.assert_allclose(
            found[key].numpy(), value.numpy(), rtol=limit, atol=limit, err_msg=key
        )
    ours.eval()
    theirs.eval()
    x, _ = batch(99, dtype)
    with torch.no_grad():
        scores = theirs(torch.from_numpy(x)).numpy()
    np.testing.assert_allclose(ours(Tensor(x)).numpy(), scores, rtol=limit, atol=limit)


@pytest.mark.parametrize(("name", "settings"), OPTIMIZERS)
def test_an_optimizer_goes_on_from_the_state_of_theirs(name: str, settings: dict[str, Any]) -> None:
    theirs = [torch.arange(4.0, dtype=torch.float64).requires_grad_()]
    their_optimizer = getattr(torch.optim, name)(theirs, **settings)
    gradients = np.random.default_rng(0).normal(size=(6, 4))

    def their_step(gradient: Array) -> None:
        theirs[0].grad = torch.from_numpy(gradient)
        their_optimizer.step()

    for gradient in gradients[:3]:
        their_step(gradient)
    ours = [Tensor(theirs[0].detach().numpy(), requires_grad=True)]
    our_optimizer = getattr(nn.optim, name)(ours, lr=1.0)
    our_optimizer.load_state_dict(their_optimizer.state_dict())
    for gradient in gradients[3:]:
        their_step(gradient)
        ours[0].grad = Tensor(gradient)
        our_optimizer.step()
    np.testing.assert_allclose(ours[0].numpy(), theirs[0].detach().numpy(), rtol=1e-9)
    saved, expected = our_optimizer.state_dict(), their_optimizer.state_dict()
    assert set(saved["state"].get(0, {})) == set(expected["state"].get(0, {}))
    for key, value in expected["state"].get(0, {}).items():
        np.testing.assert_allclose(saved["state"][0][key].numpy(), value.numpy(), rtol=1e-9)


LAYERS: list[tuple[str, tuple[Any, ...], dict[str, Any], tuple[int, ...]]] = [
    ("Linear", (5, 3), {}, (2, 4, 5)),
    ("Conv1d", (4, 6, 3), {"stride": 2, "padding": 1, "groups": 2}, (2, 4, 9)),
    ("Conv2d", (2, 3, (3, 2)), {"dilation": 2, "padding": "same"}, (2, 2, 7, 6)),
    ("Conv2d", (2, 3, 3), {"padding": 1, "padding_mode": "reflect"}, (2, 2, 5, 5)),
    ("Conv2d", (2, 3, 3), {"padding": (2, 1), "padding_mode": "circular"}, (2, 2, 5, 5)),
    ("Conv3d", (2, 2, 2), {}, (1, 2, 3, 4, 3)),
    ("ConvTranspose1d", (2, 4, 3), {"stride": 2, "output_padding": 1, "groups": 2}, (2, 2, 5)),
    ("ConvTranspose2d", (2, 4, 3), {"padding": 1, "dilation": 2}, (2, 2, 5, 5)),
    ("BatchNorm1d", (3,), {"momentum": None}, (4, 3)),
    ("BatchNorm1d", (3,), {"track_running_stats": False, "affine": False}, (4, 3, 2)),
    ("BatchNorm3d", (3,), {"eps": 0.1}, (2, 3, 2, 2, 2)),
    ("LayerNorm", ((3, 4),), {"bias": False}, (2, 3, 4)),
    ("RMSNorm", (4,), {}, (2, 3, 4)),
    ("GroupNorm", (2, 4), {}, (2, 4, 3)),
    ("MaxPool1d", (3,), {"stride": 2, "padding": 1, "dilation": 2}, (2, 3, 9)),
    ("MaxPool2d", (3, 2), {"ceil_mode": True}, (1, 2, 6, 6)),
    ("AvgPool2d", (3, 2, 1), {"count_include_pad": False, "ceil_mode": True}, (1, 2, 6, 7)),
    ("AvgPool3d", (2,), {"divisor_override": 3}, (1, 2, 4, 4, 4)),
    ("GELU", (), {"approximate": "tanh"}, (3, 4)),
    ("SiLU", (), {}, (3, 4)),
    ("Softmax", (1,), {}, (3, 4)),
    ("LogSoftmax", (-1,), {}, (3, 4)),
    ("Flatten", (0, 1), {}, (2, 3, 4)),
    ("Unflatten", (1, (2, 3)), {}, (2, 6)),
]


@pytest.mark.parametrize(("name", "arguments", "settings", "shape"), LAYERS)
def test_layers(
    name: str, arguments: Any, settings: dict[str, Any], shape: tuple[int, ...]
) -> None:
    theirs = getattr(torch.nn, name)(*arguments, **settings).double()
    ours = getattr(nn, name)(*arguments, **settings).double()
    ours.load_state_dict({key: value.numpy() for key, value in theirs.state_dict().items()})
    data = np.random.default_rng(0).normal(size=shape)
    for _ in range(2):
        x = Tensor(data, requires_grad=True)
        y = torch.from_numpy(data).requires_grad_()
        ours(x).square().sum().backward()
        expected = theirs(y)
        expected.square().sum().backward()
        assert x.grad is not None
        np.testing.assert_allclose(x.grad.numpy(), y.grad.numpy(), rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(
            ours(x).numpy(), theirs(y).detach().numpy(), rtol=1e-9, atol=1e-11
        )
    gradients = dict(ours.named_parameters())
    for key, parameter in theirs.named_parameters():
        found = gradients[key].grad
        assert found is not None
        np.testing.assert_allclose(found.numpy(), parameter.grad.numpy(), rtol=1e-8, atol=1e-10)
    for key, value in theirs.state_dict().items():
        np.testing.assert_allclose(ours.state_dict()[key].numpy(), value.numpy(), rtol=1e-10)


@pytest.mark.parametrize(
    "name",
    [
        "uniform_",
        "normal_",
        "xavier_uniform_",
        "xavier_normal_",
        "kaiming_uniform_",
        "kaiming_normal_",
    ],
)
def test_init(name: str) -> None:
    ours, theirs = Tensor.zeros(300, 40, 5), torch.zeros(300, 40, 5)
    found = getattr(nn.init, name)(ours).numpy()
    expected = getattr(torch.nn.init, name)(theirs).numpy()
    np.testing.assert_allclose(found.std(), expected.std(), rtol=0.02)
    np.testing.assert_allclose(found.mean(), expected.mean(), atol=0.02)
    if "uniform" in name:
        np.testing.assert_allclose(
            [found.min(), found.max()], [expected.min(), expected.max()], rtol=0.01, atol=1e-3
        )


def test_our_file_is_read_by_their_library_and_back(tmp_path: Any) -> None:
    files = pytest.importorskip("safetensors.torch", reason="the extra safetensors is missing")
    tensors = {
        "a": Tensor([[1.5, -2.0]], dtype="bfloat16"),
        "b": Tensor([1, 2]),
        "c": Tensor([True, False]),
    }
    nn.safe_save(tensors, tmp_path / "x")
    found = files.load_file(tmp_path / "x")
    assert found["a"].dtype is torch.bfloat16 and found["a"].tolist() == [[1.5, -2.0]]
    assert found["b"].tolist() == [1, 2] and found["c"].tolist() == [True, False]
    files.save_file({"d": torch.tensor([[0.1]], dtype=torch.bfloat16)}, tmp_path / "y")
    ours = nn.safe_load(tmp_path / "y")["d"]
    assert ours.dtype.name == "bfloat16" and ours.tolist() == [[0.10009765625]]
