"""Captured and uncaptured agree bit for bit, over models and training steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from treadle import Tensor, checkpoint, cond, config, jit, manual_seed, nn, no_grad, scan

Step = Callable[..., Any]


def mlp() -> nn.Module:
    return nn.Sequential(
        nn.Linear(6, 16), nn.GELU(), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 3)
    )


class Convnet(nn.Module):
    """The network of examples/digits.py, smaller."""

    def __init__(self) -> None:
        self.conv1 = nn.Conv2d(1, 4, 5)
        self.conv2 = nn.Conv2d(4, 4, 5, bias=False)
        self.norm1 = nn.BatchNorm(4)
        self.conv3 = nn.Conv2d(4, 8, 3)
        self.norm2 = nn.BatchNorm(8)
        self.head = nn.Linear(8 * 4 * 4, 3)

    def forward(self, x: Tensor) -> Tensor:
        x = self.conv2(self.conv1(x).relu()).relu()
        x = self.norm1(x).max_pool2d(2)
        x = self.norm2(self.conv3(x).relu()).max_pool2d(2)
        return self.head(x.flatten(1))


class Block(nn.Module):
    """A transformer block and a head."""

    def __init__(self) -> None:
        self.norm1, self.norm2 = nn.LayerNorm(8), nn.LayerNorm(8)
        self.qkv, self.out = nn.Linear(8, 24), nn.Linear(8, 8)
        self.up, self.down = nn.Linear(8, 16), nn.Linear(16, 8)
        self.head = nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        q, k, v = (
            part.reshape(batch, length, 2, width // 2).transpose(1, 2)
            for part in self.qkv(self.norm1(x)).chunk(3, -1)
        )
        mixed = q.scaled_dot_product_attention(k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        x = x + self.down(self.up(self.norm2(x)).gelu())
        return self.head(x.mean(1))


class Noisy(nn.Module):
    """A network with dropout."""

    def __init__(self) -> None:
        self.first, self.second = nn.Linear(6, 32), nn.Linear(32, 3)
        self.drop = nn.Dropout(0.5)

    def forward(self, x: Tensor) -> Tensor:
        return self.second(self.drop(self.first(x).relu()))


class Recurrent(nn.Module):
    """A loop over the letters of a text, whose state a gate may leave as it is."""

    def __init__(self) -> None:
        self.inner, self.outer = nn.Linear(6, 8), nn.Linear(8, 8, bias=False)
        self.head = nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        def step(state: Tensor, letter: Tensor) -> tuple[Tensor, None]:
            moved = (letter + self.outer(state)).tanh()
            return cond(
                moved.sum() > 0, lambda m, s: m, lambda m, s: (m + s) / 2, moved, state
            ), None

        letters = self.inner(x).transpose(0, 1)
        return self.head(scan(step, letters[0] * 0, letters)[0])


class Words(nn.Module):
    """Word vectors, looked up by numbers, and blocks whose values are computed again."""

    def __init__(self) -> None:
        self.table = nn.Embedding(11, 6)
        self.blocks = [nn.Sequential(nn.LayerNorm(6), nn.Linear(6, 6), nn.SiLU()) for _ in range(2)]
        self.head = nn.Linear(6, 3)

    def forward(self, x: Tensor) -> Tensor:
        y = self.table((x[..., 0].abs() * 5).int() % 11)
        for block in self.blocks:
            y = y + checkpoint(block)(y)
        return self.head(y.amax(1))


MODELS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "mlp": (mlp, (8, 6)),
    "convnet": (Convnet, (3, 1, 28, 28)),
    "transformer": (Block, (2, 5, 8)),
    "dropout": (Noisy, (8, 6)),
    "recurrent": (Recurrent, (4, 5, 6)),
    "words": (Words, (4, 5, 6)),
}
OPTIMIZERS: dict[str, Callable[[Any], nn.optim.Optimizer]] = {
    "adam": lambda parameters: nn.optim.Adam(parameters, lr=0.01),
    "momentum": lambda parameters: nn.optim.SGD(parameters, lr=0.01, momentum=0.9),
}


def train(name: str, optimizer: str, captured: bool) -> tuple[list[Any], dict[str, Any]]:
    """The losses of five steps, and all parameters, buffers and gradients afterwards."""
    manual_seed(7)
    make, shape = MODELS[name]
    model = make()
    opt = OPTIMIZERS[optimizer](model.parameters())
    random = np.random.default_rng(3)

    def step(x: Tensor, y: Tensor) -> Tensor:
        opt.zero_grad()
        loss = model(x).cross_entropy(y)
        loss.backward()
        opt.step()
        return loss

    run: Step = jit(step) if captured else step
    losses = []
    for _ in range(5):
        x = Tensor(random.standard_normal(shape).astype(np.float32))
        y = Tensor(random.integers(0, 3, shape[0]))
        losses.append(run(x, y))
    state = {key: tensor.numpy() for key, tensor in model.state_dict().items()}
    for key, tensor in model.named_parameters():
        assert tensor.grad is not None
        state[f"{key}.grad"] = tensor.grad.numpy()
    return [loss.numpy() for loss in losses], state


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_training_is_the_same_captured_or_not(name: str, optimizer: str) -> None:
    losses, state = train(name, optimizer, captured=False)
    captured_losses, captured_state = train(name, optimizer, captured=True)
    np.testing.assert_array_equal(captured_losses, losses)
    assert captured_state.keys() == state.keys()
    for key, value in state.items():
        np.testing.assert_array_equal(captured_state[key], value, err_msg=key)


@pytest.mark.parametrize("name", MODELS)
def test_inference_is_the_same_captured_or_not(name: str) -> None:
    manual_seed(1)
    make, shape = MODELS[name]
    model = make().eval()
    run = jit(model)
    random = np.random.default_rng(5)
    for _ in range(3):
        x = Tensor(random.standard_normal(shape).astype(np.float32))
        with no_grad():
            np.testing.assert_array_equal(run(x).numpy(), model(x).numpy())


def test_train_and_eval_of_batch_norm() -> None:
    manual_seed(1)
    norm = nn.BatchNorm(3)
    twin = nn.BatchNorm(3)
    run = jit(norm)
    random = np.random.default_rng(5)
    for training in (True, True, False, True, False):
        norm.train(training)
        twin.train(training)
        x = Tensor(random.standard_normal((4, 3)).astype(np.float32))
        np.testing.assert_array_equal(run(x).numpy(), twin(x).numpy())
    for own, other in zip(norm.buffers(), twin.buffers(), strict=True):
        np.testing.assert_array_equal(own.numpy(), other.numpy())


def test_twenty_parameters_under_adam() -> None:
    def run(captured: bool) -> list[Any]:
        random = np.random.default_rng(2)
        weights = [
            Tensor(random.standard_normal((n + 1, 3)).astype(np.float32), requires_grad=True)
            for n in range(20)
        ]
        opt = nn.optim.AdamW(weights, lr=0.1)

        def step(x: Tensor) -> None:
            opt.zero_grad()
            sum((((w @ x) - 1) ** 2).sum() for w in weights).backward()
            opt.step()

        call = jit(step) if captured else step
        for rate in (0.1, 0.05, 0.02, 0.01):
            opt.lr = rate
            call(Tensor(random.standard_normal(3).astype(np.float32)))
        return [w.numpy() for w in weights]

    for own, other in zip(run(True), run(False), strict=True):
        np.testing.assert_array_equal(own, other)


@pytest.mark.parametrize("name", MODELS)
def test_any_number_of_threads_gives_the_same(name: str) -> None:
    runs = []
    for threads in (1, 2, 4):
        with config.THREADS.set(threads):
            runs += [train(name, "adam", captured) for captured in (False, True)]
    losses, state = runs[0]
    for other_losses, other_state in runs[1:]:
        np.testing.assert_array_equal(other_losses, losses)
        for key, value in state.items():
            np.testing.assert_array_equal(other_state[key], value, err_msg=key)
