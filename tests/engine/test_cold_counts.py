"""What a cold start costs, in counts: distinct kernels, lines of code, analyses done again."""

from __future__ import annotations

import numpy as np
import pytest

from treadle import Tensor, config
from treadle.engine import programs
from treadle.events import listen
from treadle.ir import index, ops
from treadle.ir.node import toposort
from treadle.kernel import kernel as kernels
from treadle.nn import functional as F

RNG = np.random.default_rng(7)


def normal(*shape: int) -> Tensor:
    return Tensor(RNG.standard_normal(shape).astype(np.float32)).realize()


@pytest.fixture
def compiles(monkeypatch):
    """What is compiled in a test, by a process that has compiled nothing and has no disk cache."""
    monkeypatch.setattr(programs, "kept", programs.kept.__class__())
    monkeypatch.setattr(programs, "compilers", {})
    heard: list[dict] = []
    with config.CACHE.set(0), listen("compile", heard.append):
        yield heard


def test_blocks_of_a_decoder_have_equal_kernels(compiles):
    """Twelve blocks compile no more kernels than four: weights are buffers, not parts of code.
    (The first ones differ by what they read of the input.)"""

    def distinct(layers: int) -> int:
        compiles.clear()
        programs.compilers.clear()
        x = normal(1, 1, 32)
        for _ in range(layers):
            scale, bias, up, down = normal(32), normal(32), normal(64, 32), normal(32, 64)
            y = F.layer_norm(x, (32,), scale, bias)
            x = x + F.linear(F.gelu(F.linear(y, up)), down)
        x.realize()
        return sum(event["kernels"] for event in compiles)

    assert distinct(12) == distinct(4) <= 7


def test_one_program_is_one_module(compiles):
    x = normal(1, 8, 12, 12)
    for channels in (8, 16, 24):
        x = F.relu(F.conv2d(x, normal(channels, x.shape[1], 3, 3), None, 1, 1))
    x.realize()
    assert len(compiles) == 1
    assert compiles[0]["kernels"] >= 3


def test_the_loads_of_an_expression_are_looked_up_once(compiles):
    """Actions change the loops of a statement and keep its expressions."""
    kernels._loads_below.cache_clear()
    F.conv2d(normal(1, 64, 28, 28), normal(64, 64, 3, 3), None, 1, 1).realize()
    found = kernels._loads_below.cache_info()
    assert found.misses <= 12
    assert found.hits > 2 * found.misses


def test_padding_of_a_mask_is_its_condition(compiles):
    """A pool pads with -inf by a mask; which elements the mask has is asked once."""
    result = F.max_pool2d(-abs(normal(2, 4, 13, 13)), 3, 2, 1)
    assert np.isfinite(result.numpy()).all()
    sinks = [sink for event in compiles for sink in event["sinks"]]
    chosen = [node for node in toposort(sinks) if node.op is ops.WHERE]
    assert chosen
    assert not any(node.src[1] is index.TRUE for node in chosen)
