"""`interpolate(antialias=True)` against PyTorch: values and gradients."""

import numpy as np
import pytest

from treadle import Tensor

torch = pytest.importorskip("torch", reason="parity needs PyTorch: make test-full")
pytestmark = pytest.mark.full
X = np.random.default_rng(6).normal(size=(1, 2, 13, 10))


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("size", [(5, 4), (20, 3), (1, 1)])
def test_values_and_gradients(mode, size):
    for aligned in (False, True):
        named = {"size": size, "mode": mode, "align_corners": aligned, "antialias": True}
        ours, theirs = Tensor(X, requires_grad=True), torch.tensor(X, requires_grad=True)
        found = ours.interpolate(**named)
        expected = torch.nn.functional.interpolate(theirs, **named)
        np.testing.assert_allclose(found.numpy(), expected.numpy(force=True), atol=1e-14)
        found.square().sum().backward()
        expected.square().sum().backward()
        np.testing.assert_allclose(ours.grad.numpy(), theirs.grad.numpy(), atol=1e-13)


def test_images_are_a_step_off_at_most():
    x = np.random.default_rng(7).integers(0, 256, (1, 3, 20, 20)).astype(np.uint8)
    named = {"scale_factor": 0.4, "mode": "bilinear", "antialias": True}
    found = Tensor(x).interpolate(**named).numpy().astype(int)
    expected = torch.nn.functional.interpolate(torch.tensor(x), **named).numpy().astype(int)
    assert abs(found - expected).max() <= 1
