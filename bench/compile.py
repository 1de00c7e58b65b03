"""Cold start: from nothing to the first result, with empty caches and with a warm disk cache.

Each case runs in a fresh process. Columns in ms: the import, the Python of the engine (trace,
schedule, build and emit), code generation, the whole first realize; with nodes, kernels and lines
of IR.

    python bench/compile.py [case ..]
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time

CASES = ("first", "matmul_softmax", "digits", "transformer", "chain_1000", "chain_10000", "wide")


def case_first():  # type: ignore[no-untyped-def]
    from treadle import Tensor

    x = Tensor([1.0, 2.0, 3.0])
    return lambda: (x * 2 + 1).realize()


def case_matmul_softmax():  # type: ignore[no-untyped-def]
    from treadle import Tensor

    a, b = Tensor.rand(64, 64).realize(), Tensor.rand(64, 64).realize()
    return lambda: (a @ b).softmax(1).realize()


def case_digits():  # type: ignore[no-untyped-def]
    sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "examples"))
    import digits

    return one_step(digits)


def one_step(digits):  # type: ignore[no-untyped-def]
    """The demo's training step, weights made before."""
    import numpy as np

    from treadle import Tensor, nn

    model = digits.Convnet()
    optimizer = nn.optim.Adam(model.parameters(), lr=digits.RATE)
    Tensor.realize(*model.parameters())
    (images, labels), _ = digits.load_digits()
    batch = next(digits.batches((images, labels), 1, 128, np.random.default_rng(0)))

    def step() -> None:
        optimizer.zero_grad()
        model(Tensor(batch[0])).cross_entropy(Tensor(batch[1])).backward()
        optimizer.step()

    return step


def case_transformer():  # type: ignore[no-untyped-def]
    from transformer import Transformer, training_step

    return training_step(
        Transformer(layers=12, width=64, heads=4, vocabulary=128), batch=4, length=32
    )


def chain(length: int):  # type: ignore[no-untyped-def]
    from treadle import Tensor

    x = Tensor([0.5] * 16)

    def run() -> None:
        y = x
        for _ in range(length):
            y = y.sin()
        y.realize()

    return run


def case_wide():  # type: ignore[no-untyped-def]
    import numpy as np

    from treadle import Tensor

    xs = [Tensor(np.full(16, i, np.float32)) for i in range(2000)]

    def run() -> None:
        total = xs[0]
        for x in xs[1:]:
            total = total + x
        total.realize()

    return run


def measure(name: str) -> dict[str, float]:
    """Run one case in this process."""
    start = time.perf_counter()
    import treadle  # noqa: F401

    imported = time.perf_counter()
    from treadle import log
    from treadle.ir.node import toposort

    seen: list[dict] = []
    kinds = {"compile": seen.append, "schedule": seen.append}
    for kind, listener in kinds.items():
        log.listeners.setdefault(kind, []).append(listener)
    prepare = {
        "chain_1000": lambda: chain(1000),
        "chain_10000": lambda: chain(10000),
    }.get(name) or globals()[f"case_{name}"]
    run = prepare()
    seen.clear()
    begin = time.perf_counter()
    run()
    first = time.perf_counter() - begin
    begin = time.perf_counter()
    run()
    second = time.perf_counter() - begin
    compiles = [e for e in seen if e["event"] == "compile"]
    return {
        "import": (imported - start) * 1e3,
        "first": first * 1e3,
        "second": second * 1e3,
        "code": sum(e["code_seconds"] for e in compiles) * 1e3,
        "build": sum(e["build_seconds"] for e in compiles) * 1e3,
        "lines": sum(e["lines"] for e in compiles),
        "distinct": sum(e["kernels"] for e in compiles),
        "nodes": sum(len(toposort(e["roots"])) for e in seen if e["event"] == "schedule"),
        "kernels": sum(len(list(e["schedule"].calls())) for e in seen if e["event"] == "schedule"),
    }


def child(name: str, cache: str) -> dict[str, float]:
    """Run one case in a fresh process."""
    environment = {**os.environ, "CACHE_DIR": cache}
    out = subprocess.run(
        [sys.executable, __file__, "--case", name],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if out.returncode:
        raise RuntimeError(f"case {name} failed:\n{out.stderr}")
    return json.loads(out.stdout.splitlines()[-1])  # type: ignore[no-any-return]


def main() -> None:
    if sys.argv[1:2] == ["--case"]:
        print(json.dumps(measure(sys.argv[2])))
        return
    from timing import table

    rows = []
    for name in sys.argv[1:] or CASES:
        colds, warms = [], []
        for _ in range(3):
            with tempfile.TemporaryDirectory() as cache:
                colds.append(child(name, cache))
                warms.append(child(name, cache))
        cold, warm = (sorted(runs, key=lambda r: r["first"])[1] for runs in (colds, warms))
        rows.append(
            (name, *(f"{cold[k]:.0f}" for k in ("import", "first", "build", "code")),
             f"{warm['first']:.0f}", f"{cold['second']:.1f}",
             *(f"{cold[k]:.0f}" for k in ("nodes", "kernels", "distinct", "lines")))
        )  # fmt: skip
    heads = (
        "case",
        "import",
        "first",
        "build",
        "LLVM",
        "first, warm disk",
        "second",
        "nodes",
        "kernels",
        "distinct",
        "lines",
    )
    print("ms, medians of 3 processes")
    print(table(rows, heads))


if __name__ == "__main__":
    main()
