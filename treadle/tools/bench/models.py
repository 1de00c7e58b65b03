"""Cases that are models: a training step, a decoder with its cache, a residual network; warm, and
from a cold start. Weights are random; what they cost to run does not depend on their values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from treadle.tools.bench.case import Arrays, Case, Function, Target, normal, plain
from treadle.tools.bench.libraries import Library

BATCH = 128

# GPT-2 small
LAYERS, WIDTH, HEADS, VOCABULARY, CONTEXT = 12, 768, 12, 50257, 1024
CACHE = 256  # positions, of which the new token's is the last

# ResNet-18: (channels in, channels out, stride) of each block
BLOCKS = (
    (64, 64, 1), (64, 64, 1), (64, 128, 2), (128, 128, 1),
    (128, 256, 2), (256, 256, 1), (256, 512, 2), (512, 512, 1),
)  # fmt: skip


# ---- the demo's training step --------------------------------------------------------------------
def _digits_network(library: Library) -> Any:
    """The network of examples/digits.py."""
    nn = library.nn
    return nn.Sequential(
        nn.Conv2d(1, 32, 5),
        nn.ReLU(),
        nn.Conv2d(32, 32, 5, bias=False),
        nn.ReLU(),
        nn.BatchNorm2d(32),
        nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3),
        nn.ReLU(),
        nn.Conv2d(64, 64, 3, bias=False),
        nn.ReLU(),
        nn.BatchNorm2d(64),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(64 * 3 * 3, 10),
    )


def _digits_weights(random: np.random.Generator) -> Arrays:
    shapes = (
        (32, 1, 5, 5), (32,), (32, 32, 5, 5), (32,), (32,), (64, 32, 3, 3), (64,),
        (64, 64, 3, 3), (64,), (64,), (10, 64 * 3 * 3), (10,),
    )  # fmt: skip
    return [_scaled(random, shape) for shape in shapes]


def _digits_step(library: Library, *weights: Any) -> Function:
    model = _digits_network(library)
    with library.no_grad():
        for parameter, weight in zip(model.parameters(), weights, strict=True):
            parameter.copy_(weight)
    optimizer = library.optim.Adam(model.parameters(), lr=1e-3)

    def step(images: Any, labels: Any) -> Any:
        optimizer.zero_grad()
        loss = library.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        return loss

    return step


def _digits_batch(random: np.random.Generator) -> Arrays:
    images = random.random((BATCH, 1, 28, 28), dtype=np.float32)
    return [images, random.integers(0, 10, BATCH)]


# ---- a decoder -----------------------------------------------------------------------------------
@dataclass
class _Block:
    """The weights of one block, and its keys and values so far."""

    norm1: Any
    bias1: Any
    joint: Any
    joint_bias: Any
    out: Any
    out_bias: Any
    norm2: Any
    bias2: Any
    up: Any
    up_bias: Any
    down: Any
    down_bias: Any
    keys: Any
    values: Any


_BLOCK_SHAPES = (
    (WIDTH,), (WIDTH,), (3 * WIDTH, WIDTH), (3 * WIDTH,), (WIDTH, WIDTH), (WIDTH,),
    (WIDTH,), (WIDTH,), (4 * WIDTH, WIDTH), (4 * WIDTH,), (WIDTH, 4 * WIDTH), (WIDTH,),
    (1, HEADS, CACHE, WIDTH // HEADS), (1, HEADS, CACHE, WIDTH // HEADS),
)  # fmt: skip


def _decoder_weights(random: np.random.Generator) -> Arrays:
    ends = ((VOCABULARY, WIDTH), (CONTEXT, WIDTH), (WIDTH,), (WIDTH,))
    return [_scaled(random, shape) for shape in (*ends, *_BLOCK_SHAPES * LAYERS)]


def _decoder(library: Library, *weights: Any) -> Function:
    """The logits of one new token, whose keys and values enter the cache."""
    F = library.functional
    tokens, positions, norm, norm_bias = weights[:4]
    count = len(_BLOCK_SHAPES)
    rest = weights[4:]
    blocks = [_Block(*rest[n : n + count]) for n in range(0, len(rest), count)]

    def token(ids: Any) -> Any:
        x = F.embedding(ids, tokens) + positions[CACHE - 1]
        for block in blocks:
            x = x + _attend(library, block, F.layer_norm(x, (WIDTH,), block.norm1, block.bias1))
            y = F.linear(
                F.layer_norm(x, (WIDTH,), block.norm2, block.bias2), block.up, block.up_bias
            )
            x = x + F.linear(F.gelu(y), block.down, block.down_bias)
        return F.layer_norm(x, (WIDTH,), norm, norm_bias) @ tokens.transpose(0, 1)

    return token


def _attend(library: Library, block: _Block, x: Any) -> Any:
    F = library.functional
    joint = F.linear(x, block.joint, block.joint_bias).reshape(1, 1, 3, HEADS, WIDTH // HEADS)
    query, key, value = (joint[:, :, n].transpose(1, 2) for n in range(3))
    block.keys[:, :, CACHE - 1 :] = key
    block.values[:, :, CACHE - 1 :] = value
    attended = F.scaled_dot_product_attention(query, block.keys, block.values)
    return F.linear(attended.transpose(1, 2).reshape(1, 1, WIDTH), block.out, block.out_bias)


def _one_token(random: np.random.Generator) -> Arrays:
    return [random.integers(0, VOCABULARY, (1, 1))]


# ---- a residual network --------------------------------------------------------------------------
def _resnet_weights(random: np.random.Generator) -> Arrays:
    convolutions = [(64, 3, 7, 7)]
    for inputs, outputs, stride in BLOCKS:
        convolutions += [(outputs, inputs, 3, 3), (outputs, outputs, 3, 3)]
        if stride > 1:
            convolutions.append((outputs, inputs, 1, 1))
    arrays: list[np.ndarray] = []
    for shape in convolutions:
        channels = shape[0]
        mean, scale, shift = random.standard_normal((3, channels), dtype=np.float32) * 0.1
        variance = 0.5 + random.random(channels, dtype=np.float32)
        arrays += [_scaled(random, shape), mean, variance, scale + 1, shift]
    return [*arrays, _scaled(random, (1000, 512)), _scaled(random, (1000,))]


def _resnet(library: Library, *weights: Any) -> Function:
    F = library.functional

    def forward(x: Any) -> Any:
        rest = iter(weights)

        def convolve(x: Any, stride: int) -> Any:
            """A convolution and its norm, with the next five weights."""
            weight, mean, variance, scale, shift = (next(rest) for _ in range(5))
            y = F.conv2d(x, weight, None, stride, weight.shape[-1] // 2)
            return F.batch_norm(y, mean, variance, scale, shift)

        x = F.max_pool2d(F.relu(convolve(x, 2)), 3, 2, 1)
        for _, _, stride in BLOCKS:
            y = convolve(F.relu(convolve(x, stride)), 1)
            x = F.relu(y + (convolve(x, stride) if stride > 1 else x))
        return F.linear(x.mean((2, 3)), next(rest), next(rest))

    return forward


def _scaled(random: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Normal numbers, so small that values keep their size through a layer; ones for a vector."""
    if len(shape) == 1:
        return np.ones(shape, np.float32)
    fan_in = int(np.prod(shape[1:]))
    return random.standard_normal(shape, dtype=np.float32) * np.float32((2 / fan_in) ** 0.5)


# ---- the table -----------------------------------------------------------------------------------
def cases() -> Iterator[Case]:
    """All of this file."""
    step = Case(
        "step/digits",
        f"the demo's training step, batch {BATCH}, with Adam",
        _digits_batch,
        _digits_step,
        weights=_digits_weights,
        consumes=True,
        target=Target(1.2),
        quick=True,
    )
    parameters = sum(int(np.prod(shape)) for shape in _BLOCK_SHAPES) * LAYERS
    token = Case(
        "decoder/gpt2/token",
        f"one token of a decoder of GPT-2's shape, cache of {CACHE}",
        _one_token,
        _decoder,
        weights=_decoder_weights,
        operations=2 * (parameters + VOCABULARY * WIDTH),
        bytes=4 * (parameters + VOCABULARY * WIDTH),
        tolerance=1e-3,
        target=Target(1.2, stream=("sum/all", 1.3)),
    )
    resnet = Case(
        "resnet18/1x3x224x224/forward",
        "ResNet-18, one image",
        normal((1, 3, 224, 224)),
        _resnet,
        weights=_resnet_weights,
        operations=2 * 1_814_073_344,
        tolerance=1e-3,
    )
    yield from (step, token, resnet)
    first = plain(lambda library, x: x * 2 + 1)
    yield Case("cold/first", "x * 2 + 1 of 3 numbers", normal((3,)), first, cold=True, quick=True)
    soon = Target(empty=1.5, warm=0.4)
    for case, name, target in (
        (step, "digits", Target()), (token, "gpt2", soon), (resnet, "resnet18", soon),
    ):  # fmt: skip
        yield replace(
            case,
            name=f"cold/{name}", cold=True, quick=False, target=target, operations=0, bytes=0,
        )  # fmt: skip
