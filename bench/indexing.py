"""Gathering, scattering, sorting and running sums beside PyTorch, in one process.

    python bench/indexing.py [case ..]

A ratio is our time divided by PyTorch's; the last column says how large it may be.
"""

from __future__ import annotations

import argparse

import numpy as np
from environment import main_of, options, threads

from treadle import Tensor, nn
from treadle.tools.bench.timing import Call, in_turns, table

VOCABULARY, WIDTH, IDS = 50_257, 768, 8_192
MILLION = 1_000_000

# case -> the target: our time divided by PyTorch's
TARGETS = {
    "embedding forward": 2.0,
    "embedding and backward": 2.0,
    "cumsum 10M": 3.0,
    "sort 1M": 5.0,
    "topk 1M": 5.0,
    "x[mask] 1M": 0.0,
    "scatter_add 1M": 0.0,
}
Cases = dict[str, Call]
Data = dict[str, np.ndarray]


def data() -> Data:
    """The arrays of all cases."""
    random = np.random.default_rng(0)
    return {
        "weight": random.standard_normal((VOCABULARY, WIDTH), dtype=np.float32),
        "ids": random.integers(0, VOCABULARY, IDS),
        "cotangent": random.standard_normal((IDS, WIDTH), dtype=np.float32),
        "long": random.standard_normal(10 * MILLION, dtype=np.float32),
        "x": random.standard_normal(MILLION, dtype=np.float32),
        "places": random.integers(0, MILLION, MILLION),
    }


def on_treadle(arrays: Data) -> Cases:
    """The cases on treadle; each call computes anew."""
    weight, ids, cotangent, long, x, places = (Tensor(array).realize() for array in arrays.values())
    mask = (x > 0).realize()
    leaf = weight.detach().clone().realize()
    leaf.requires_grad = True
    embedding = nn.functional.embedding

    def backward() -> None:
        leaf.grad = None
        loss = (embedding(ids, leaf) * cotangent).sum()
        loss.backward()
        assert leaf.grad is not None
        leaf.grad.realize()
        loss.item()

    return {
        "embedding forward": lambda: embedding(ids, weight).realize(),
        "embedding and backward": backward,
        "cumsum 10M": lambda: long.cumsum(0).realize(),
        "sort 1M": lambda: x.sort()[0].realize(),
        "topk 1M": lambda: x.topk(100)[0].realize(),
        "x[mask] 1M": lambda: x[mask].realize(),
        "scatter_add 1M": lambda: x.scatter_add(0, places, x).realize(),
    }


def on_pytorch(arrays: Data) -> Cases:
    """The same on PyTorch."""
    import torch

    torch.set_num_threads(threads())
    weight, ids, cotangent, long, x, places = (torch.from_numpy(array) for array in arrays.values())
    mask = x > 0
    leaf = weight.clone().requires_grad_()
    embedding = torch.nn.functional.embedding

    def backward() -> None:
        leaf.grad = None
        (embedding(ids, leaf) * cotangent).sum().backward()

    return {
        "embedding forward": lambda: embedding(ids, weight),
        "embedding and backward": backward,
        "cumsum 10M": lambda: long.cumsum(0),
        "sort 1M": lambda: x.sort()[0],
        "topk 1M": lambda: x.topk(100)[0],
        "x[mask] 1M": lambda: x[mask],
        "scatter_add 1M": lambda: x.scatter_add(0, places, x),
    }


def main(asked: argparse.Namespace) -> None:
    """Print the table."""
    arrays = data()
    mine, theirs = on_treadle(arrays), on_pytorch(arrays)
    rows = []
    for name in asked.names:
        pair = {"ours": mine[name], "torch": theirs[name]}
        times = in_turns(pair, turns=3, calls=3, warm=1)
        own, other = times["ours"], times["torch"]
        target = TARGETS[name]
        rows.append(
            (name, f"{own.median * 1e3:.2f}", f"{own.spread:.0%}", f"{other.median * 1e3:.2f}",
             f"{other.spread:.0%}", f"{own.median / other.median:.2f}",
             f"{target:.0f}" if target else "-")
        )  # fmt: skip
    heads = ("case", "ours, ms", "+-", "PyTorch, ms", "+-", "ratio", "at most")
    print(table(rows, heads))


if __name__ == "__main__":
    main_of(__file__, main, options(__doc__, TARGETS))
