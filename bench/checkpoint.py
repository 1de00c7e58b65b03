"""What `checkpoint` saves and costs: a captured training step of a transformer of 12 layers.

The step is captured twice, plainly and with every block computed again for its derivative. Memory
is what `jit` says before it runs; times are medians, in turns. The gradients are compared first.
"""

from __future__ import annotations

import argparse

import numpy as np
from transformer import Transformer, training_step

from treadle import Tensor, jit, manual_seed
from treadle.tools.bench.timing import in_turns


def model_of(layers: int, width: int, again: bool) -> Transformer:
    """The same weights every time."""
    manual_seed(0)
    return Transformer(layers, width, heads=4, vocabulary=256, context=256, again=again)


def gradients(model: Transformer, ids: Tensor) -> list[np.ndarray]:
    """Of the sum of the logits' squares, by every weight."""
    (model(ids) ** 2).mean().backward()
    found = []
    for parameter in model.parameters():
        assert parameter.grad is not None
        found.append(parameter.grad.numpy())
        parameter.grad = None
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--length", type=int, default=256)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--turns", type=int, default=5)
    options = parser.parse_args()
    ids = Tensor(np.random.default_rng(1).integers(0, 256, (1, 64)))
    plain, again = (gradients(model_of(2, 64, again), ids) for again in (False, True))
    worst = max(np.abs(a - b).max() / np.abs(a).max() for a, b in zip(plain, again, strict=True))
    print(f"gradients differ by at most {worst:.1e} of the largest of each weight")
    steps = {}
    told = {}
    for name, again in (("plain", False), ("checkpoint", True)):
        model = model_of(options.layers, options.width, again)
        steps[name] = jit(training_step(model, options.batch, options.length))
        steps[name]()  # the state of the optimizer is made
        told[name] = steps[name].memory()
        print(f"{name:>10}  {told[name]}")
    times = in_turns(steps, turns=options.turns, calls=2, warm=1)
    ratio = told["checkpoint"].temporaries / told["plain"].temporaries
    slower = times["checkpoint"].median / times["plain"].median
    for name, measured in times.items():
        print(f"{name:>10}  {measured.median * 1e3:8.1f} ms, spread {measured.spread:.1%}")
    print(f"temporaries {ratio:.2f} of plain, time {slower:.2f} of plain")


if __name__ == "__main__":
    main()
