"""Where the derivative is 0 everywhere, 0 flows as in PyTorch; found by its sample inputs."""

import numpy as np
import pytest

from treadle import Tensor

torch = pytest.importorskip("torch", reason="parity needs PyTorch: make test-full")
pytestmark = pytest.mark.full
FUNCTIONS = {
    "sign": lambda x: x.sign(),
    "floor": lambda x: x.floor(),
    "norm": lambda x: x.unsqueeze(0).norm(0, 1),
    "sum of sign": lambda x: x.sign() + x,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_zero_flows(name):
    values = np.array([-2.5, -0.0, 0.0, 3.0, np.inf, -np.inf], np.float32)
    ours, theirs = Tensor(values, requires_grad=True), torch.tensor(values, requires_grad=True)
    mine, its = FUNCTIONS[name](ours), FUNCTIONS[name](theirs)
    np.testing.assert_array_equal(mine.numpy(), its.detach().numpy())
    mine.sum().backward()
    wanted = torch.ones(6) if name == "sum of sign" else torch.zeros(6)
    np.testing.assert_array_equal(ours.grad.numpy(), wanted.numpy())
