"""The demo's network follows PyTorch step by step, from the same weights and batches."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from treadle import Tensor, nn

torch = pytest.importorskip("torch", reason="parity needs PyTorch: make test-full")
pytestmark = pytest.mark.full
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples"))
digits = pytest.importorskip("digits", reason="examples/digits.py needs pillow and tqdm")
functional = torch.nn.functional
BATCH = 16


class TheirConvnet(torch.nn.Module):
    """`digits.Convnet`, in PyTorch."""

    def __init__(self) -> None:
        super().__init__()
        kit = torch.nn
        self.conv1 = kit.Conv2d(1, 32, 5)
        self.conv2 = kit.Conv2d(32, 32, 5, bias=False)
        self.norm1 = kit.BatchNorm2d(32)
        self.conv3 = kit.Conv2d(32, 64, 3)
        self.conv4 = kit.Conv2d(64, 64, 3, bias=False)
        self.norm2 = kit.BatchNorm2d(64)
        self.head = kit.Linear(64 * 3 * 3, 10)

    def forward(self, x):
        x = self.conv2(self.conv1(x).relu()).relu()
        x = functional.max_pool2d(self.norm1(x), 2)
        x = self.conv4(self.conv3(x).relu()).relu()
        x = functional.max_pool2d(self.norm2(x), 2)
        return self.head(x.flatten(1))


def test_the_twin_has_the_layers_of_the_demo():
    ours = {name: t.shape for name, t in digits.Convnet().state_dict().items()}
    theirs = {
        name: tuple(t.shape)
        for name, t in TheirConvnet().state_dict().items()
        if "num_batches" not in name
    }
    assert {n: s for n, s in ours.items() if "num_batches" not in n} == theirs


@pytest.mark.parametrize(("dtype", "steps", "limit"), [("float64", 20, 1e-9), ("float32", 5, 1e-3)])
@pytest.mark.parametrize("kind", ["SGD", "Adam"])
def test_the_demo_follows_pytorch(kind, dtype, steps, limit):
    torch.manual_seed(0)
    theirs = TheirConvnet().to(getattr(torch, dtype))
    ours = digits.Convnet().to(dtype)
    ours.load_state_dict({name: t.numpy() for name, t in theirs.state_dict().items()})
    rate = 0.02 if kind == "SGD" else 0.001
    their_opt = getattr(torch.optim, kind)(theirs.parameters(), lr=rate)
    our_opt = getattr(nn.optim, kind)(ours.parameters(), lr=rate)
    (images, labels), _ = digits.load_digits()
    for step in range(steps):
        part = slice(step * BATCH, (step + 1) * BATCH)
        x, y = images[part].astype(dtype), labels[part]

        their_opt.zero_grad()
        their_loss = functional.cross_entropy(theirs(torch.tensor(x)), torch.tensor(y))
        their_loss.backward()
        their_opt.step()

        our_opt.zero_grad()
        our_loss = ours(Tensor(x)).cross_entropy(Tensor(y))
        our_loss.backward()
        our_opt.step()

        assert abs(our_loss.item() - their_loss.item()) < limit * max(1, abs(their_loss.item()))
    found = ours.state_dict()
    for name, tensor in theirs.state_dict().items():
        if "num_batches" not in name:
            np.testing.assert_allclose(
                found[name].numpy(), tensor.numpy(), rtol=limit, atol=limit, err_msg=name
            )
    ours.eval()
    theirs.eval()
    test = images[-50:].astype(dtype)
    np.testing.assert_allclose(
        ours(Tensor(test)).numpy(),
        theirs(torch.tensor(test)).detach().numpy(),
        rtol=limit * 10,
        atol=limit * 10,
    )
