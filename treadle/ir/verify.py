"""The law of each stage: which nodes may stand in a program, and how.

`verify(program, stage)` raises :class:`LawError` with the neighbourhood of the fault as text.
`law.py` says what is wrong with one node. What holds of a node holds for good, so it is remembered
on the node: checking a program again after a pass costs only the nodes that are new.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NoReturn

from treadle.ir import law_kernel as law_kernel  # adds its law
from treadle.ir import ops
from treadle.ir.law import fault
from treadle.ir.node import Node, remember, remember_below, toposort
from treadle.ir.text import FunctionLike, excerpt

STAGES = {"graph": "g", "kernel": "k", "program": "p"}


class LawError(ValueError):
    """A program breaks the law of its stage: the fault of a pass, not of the user."""


def verify(program: Node | Iterable[Node] | FunctionLike, stage: str) -> None:
    """Checks everything below the roots of a graph or a kernel, or a Function of the program stage.

    stage: "graph", "kernel" or "program". LawError if the law is broken.
    """
    if stage not in STAGES:
        raise ValueError(f"there is no stage {stage!r}; there are {', '.join(STAGES)}")
    if isinstance(program, FunctionLike):
        if stage != "program":
            raise TypeError(f"a Function is of the program stage, not of the {stage} stage")
        _verify_function(program)
        return
    if stage == "program":
        raise TypeError("a program is verified as a Function, with its parameters and body")
    for root in [program] if isinstance(program, Node) else list(program):
        _verify_below(root, stage)


def _held(node: Node) -> list[tuple[Node, str]]:
    """The programs inside a node's arg that have a stage of their own, with that stage: the kernel
    that a user wrote, and the monoids that are written out, which are graphs of numbers."""
    if node.op is ops.KERNEL:
        return [(node.arg[0], "kernel")]
    if node.op not in (ops.STORE, ops.KREDUCE) or not isinstance(node.arg, tuple):
        return []
    return [(part, "graph") for part in node.arg if isinstance(part, Node)]


def _verify_below(root: Node, stage: str) -> None:
    letter = STAGES[stage]
    key = f"lawful {letter}"
    inside: set[Node] = set()  # of programs of the other stage, which have its law
    below = toposort(root, into_args=True, unless=key)
    for program, other in [found for node in below for found in _held(node)]:
        if other != stage:
            _verify_below(program, other)
            inside.update(toposort(program, into_args=True))

    def check(node: Node) -> bool:
        why = None if node in inside else fault(node, letter)
        if why is None:
            return True
        near = {node, *node.src, *[below for source in node.src for below in source.src]}
        users = [n for n in toposort(root, into_args=True) if node in n.src]
        shown = [n for n in toposort(node) if n in near] + users[:3]
        raise LawError(_message(node, stage, why, shown))

    remember_below(root, key, check)


def _message(node: Node, stage: str, why: str, shown: Iterable[Node]) -> str:
    lines = excerpt(shown, node).replace("\n", "\n  ")
    return f"{node.op.name} breaks the law of the {stage} stage: {why}\n  {lines}"


def _fault_in_program(node: Node) -> str | None:
    return fault(node, "p")


def _verify_function(function: FunctionLike) -> None:
    """Parameters, then the body in order: a value is defined at its place, and visible until the
    loop or if in which it stands ends; those are closed innermost first."""
    body = function.body

    def fail(place: int, node: Node, why: str) -> NoReturn:
        around = body[max(0, place - 6) : place + 3]
        message = _message(node, "program", why, around)
        raise LawError(f"{function.name}, step {place}: {message}")

    for param in function.params:
        if param.op not in (ops.ARG, ops.SCALAR, ops.VARIABLE):
            fail(0, param, "it is no parameter")
    visible = set(function.params)
    open_: list[tuple[Node, list[Node]]] = []  # each loop or if, and what was defined in it
    for place, node in enumerate(body):
        why = remember(node, "lawful p", _fault_in_program)
        if why is not None:
            fail(place, node, why)
        if node.op is ops.END:
            if not open_ or open_[-1][0] is not node.src[0]:
                fail(place, node, "it does not close the innermost open loop or if")
            visible.difference_update(open_.pop()[1])
            continue
        for source in node.src:
            if source not in visible and source.op is not ops.CONST:
                fail(place, node, f"its source {source.op.name} is not visible here")
        if node.op in (ops.LOOP, ops.IF):
            if any(node is opened for opened, _ in open_):
                fail(place, node, "it is open already")
            open_.append((node, [node]))
            visible.add(node)
        elif node not in visible:
            visible.add(node)
            if open_:
                open_[-1][1].append(node)
    if open_:
        fail(len(body), open_[-1][0], "it is never closed")
