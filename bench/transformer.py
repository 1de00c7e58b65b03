"""A decoder-only transformer, for measuring: pre-norm blocks, learned positions, a tied head."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from treadle import Tensor, checkpoint, nn


class Block(nn.Module):
    """Attention and a two-layer perceptron, each after a norm, each with a residual."""

    def __init__(self, width: int, heads: int) -> None:
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        qkv = self.qkv(self.norm1(x)).reshape(batch, length, 3, self.heads, width // self.heads)
        q, k, v = (qkv[:, :, i].transpose(1, 2) for i in range(3))
        attended = q.scaled_dot_product_attention(k, v, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(self.up(self.norm2(x)).gelu())


class Transformer(nn.Module):
    """layers blocks of a width; logits over a vocabulary at every position. again: whether the
    derivative computes what is inside of a block again."""

    def __init__(
        self,
        layers: int,
        width: int,
        heads: int,
        vocabulary: int,
        context: int = 1024,
        again: bool = False,
    ) -> None:
        self.again = again
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Embedding(context, width)
        self.blocks = [Block(width, heads) for _ in range(layers)]
        self.norm = nn.LayerNorm(width)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.tokens(ids) + self.positions(Tensor.arange(ids.shape[1]))
        for block in self.blocks:
            x = checkpoint(block)(x) if self.again else block(x)
        return self.norm(x) @ self.tokens.weight.transpose(0, 1)


def training_step(model: Transformer, batch: int, length: int) -> Callable[[], None]:
    """One step of Adam on random tokens, from forward to the update, as a function."""
    optimizer = nn.optim.Adam(model.parameters(), lr=1e-3)
    vocabulary = model.tokens.weight.shape[0]
    generator = np.random.default_rng(0)
    ids = Tensor(generator.integers(0, vocabulary, (batch, length + 1)))
    for parameter in model.parameters():
        parameter.realize()

    def step() -> None:
        optimizer.zero_grad()
        logits = model(ids[:, :-1])
        loss = logits.reshape(batch * length, vocabulary).cross_entropy(ids[:, 1:].reshape(-1))
        loss.backward()
        optimizer.step()

    return step
