"""Look for a graph whose evaluations disagree: `python tools/fuzz.py [first] [count]`.

Each seed makes a graph (`fuzz_graphs.py`), which is evaluated in every way there is
(`fuzz_meanings.py`). A failure is made as small as it gets and printed as the text of its program
with the arrays of its leaves; `--replay FILE` evaluates what was printed.

    python tools/fuzz.py 0 1000                     seeds 0 .. 999
    python tools/fuzz.py 0 1000 --with CPU,C        only these evaluations
    python tools/fuzz.py --replay failure.txt
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from fuzz_graphs import Graph, Maker, Value, make
from fuzz_meanings import MEANINGS, check

from treadle.backend.interp.graph import evaluate
from treadle.graph.body import substitute
from treadle.ir import ops, text
from treadle.ir.node import Node, toposort


# ---- making a failure small ----------------------------------------------------------------------
def shrink(graph: Graph, names: Sequence[str]) -> Graph:
    """A graph that still fails in one of these ways, from which nothing can be taken: one root, as
    low as possible, over leaves as high as possible."""
    known = _values(graph)
    for value in sorted(known.values(), key=lambda v: len(toposort(v.node))):
        alone = replace(graph, roots=[value])
        if check(alone, names):
            graph = alone
            break
    changed = True
    while changed:
        changed = False
        for node in reversed(toposort([value.node for value in graph.roots])[:-1]):
            smaller = _cut(graph, node)
            if smaller is not None and check(smaller, names):
                graph, changed = smaller, True
                break
    below = toposort([value.node for value in graph.roots])
    graph.leaves = {leaf: array for leaf, array in graph.leaves.items() if leaf in below}
    return graph


def _values(graph: Graph) -> dict[Node, Value]:
    """Every node with one output as a root, with the error of the graph's own roots."""
    error = max(value.error for value in graph.roots)
    own = {value.node: value for value in graph.roots}
    order = [n for n in toposort(list(own)) if n.src and _is_array(n)]
    arrays = evaluate(order, graph.leaves, graph.variables)
    return {n: own.get(n, Value(n, np.asarray(a), error)) for n, a in zip(order, arrays)}


def _is_array(node: Node) -> bool:
    return not isinstance(node.dtype, tuple) and node.op.kind != "index"


def _cut(graph: Graph, node: Node) -> Graph | None:
    """The graph with a node replaced by a leaf that holds its value."""
    if not node.src or not _is_array(node):
        return None
    if any(isinstance(size, Node) for size in node.shape):
        return None
    number = 1 + max([leaf.arg[0] for leaf in graph.leaves], default=0)
    (array,) = evaluate([node], graph.leaves, graph.variables)
    leaf = Node(ops.BUFFER, node.dtype, (), (number, node.shape, "CPU"))
    roots = substitute([value.node for value in graph.roots], {node: leaf})
    values = [Value(root, old.array, old.error) for root, old in zip(roots, graph.roots)]
    return replace(graph, roots=values, leaves={**graph.leaves, leaf: np.asarray(array)})


# ---- text ----------------------------------------------------------------------------------------
def show(graph: Graph) -> str:
    """A graph as text that `read` reads: the arrays of its leaves, its variables, its program."""
    lines = [f"# leaf {leaf.arg[0]} {array.tolist()!r}" for leaf, array in graph.leaves.items()]
    lines += [f"# variable {name} {value}" for name, value in graph.variables.items()]
    lines += [f"# error {value.error!r}" for value in graph.roots]
    return "\n".join([*lines, text.show([value.node for value in graph.roots])])


def read(written: str) -> Graph:
    """The graph that `show` wrote."""
    roots = text.parse_roots(written)
    buffers = {n.arg[0]: n for n in toposort(roots) if n.op is ops.BUFFER}
    leaves, variables, errors = {}, {}, []
    for line in written.splitlines():
        if line.startswith("# leaf "):
            _, _, number, array = line.split(" ", 3)
            leaf = buffers.get(int(number))
            if leaf is not None:
                leaves[leaf] = _array(leaf, array)
        elif line.startswith("# variable "):
            _, _, name, value = line.split()
            variables[name] = int(value)
        elif line.startswith("# error "):
            errors.append(float(line.split()[2]))
    arrays = evaluate(roots, leaves, variables)
    values = [Value(n, np.asarray(a), e) for n, a, e in zip(roots, arrays, errors)]
    return Graph(values, leaves, variables)


def _array(leaf: Node, written: str) -> np.ndarray:
    """The array of a leaf: nested lists, or `seed n` for random content."""
    if written.startswith("seed "):
        return Maker(int(written.split()[1])).content(leaf.dtype, leaf.shape)
    names = {"nan": float("nan"), "inf": float("inf")}
    values = eval(written, {"__builtins__": {}}, names)
    return np.array(values, leaf.dtype.compute).reshape(leaf.shape)


# ---- the command ---------------------------------------------------------------------------------
def fuzz(first: int, count: int, names: Sequence[str]) -> int:
    """How many of the seeds fail; prints each failure, made small."""
    failures = 0
    began = time.monotonic()
    for seed in range(first, first + count):
        graph = make(seed)
        wrong = check(graph, names)
        if not wrong:
            continue
        failures += 1
        failing = sorted({line.split(":")[0] for line in wrong}, key=list(MEANINGS).index)
        small = shrink(graph, failing[:1])
        print(f"seed {seed}")
        remarks = [*wrong, "made small:", *check(small, names)]
        print("".join(f"# {line}\n" for line in remarks) + show(small))
    print(f"{failures} of {count} graphs fail; {time.monotonic() - began:.0f} s")
    return failures


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="Look for a graph whose evaluations disagree.")
    parser.add_argument("first", type=int, nargs="?", default=0, help="the first seed")
    parser.add_argument("count", type=int, nargs="?", default=200, help="how many seeds")
    parser.add_argument("--with", dest="names", default=",".join(MEANINGS), help="evaluations")
    parser.add_argument("--replay", type=Path, help="a file with a failure that was printed")
    options = parser.parse_args()
    names = options.names.split(",")
    unknown = [name for name in names if name not in MEANINGS]
    if unknown:
        parser.error(f"there is no evaluation {unknown[0]}; there are {', '.join(MEANINGS)}")
    if options.replay:
        wrong = check(read(options.replay.read_text()), names)
        print("\n".join(wrong) or "the evaluations agree")
        sys.exit(bool(wrong))
    sys.exit(bool(fuzz(options.first, options.count, names)))


if __name__ == "__main__":
    main()
