"""What ops with a body must look like: the part of `law.py` about functions inside nodes.

A body is a SINK over PLACEHOLDERs, which count from 0 and stand for what the body gets.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from treadle.ir import index, ops
from treadle.ir.dtype import DType, bool_
from treadle.ir.named import Named
from treadle.ir.node import Node, toposort


def _scan(node: Node) -> str | None:
    body, carries, sequences, length, reverse = node.arg
    if body.op is not ops.SINK or type(reverse) is not bool or not index.is_dim(length):
        return "its arg is not (body, carries, sequences, length, reverse)"
    if not 0 <= carries <= len(body.src) or carries + sequences > len(node.src):
        return "its body or its sources are too few"
    if node.dtype != tuple(output.dtype for output in body.src):
        return f"its body gives {[output.dtype for output in body.src]}, and it {node.dtype}"
    for number, source in enumerate(node.src[:carries]):
        if (source.dtype, source.shape) != (body.src[number].dtype, body.src[number].shape):
            return f"carry {number} changes from step to step"
    steps = [source.shape for source in node.src]
    for number in range(carries, carries + sequences):
        if not steps[number] or steps[number][0] != length:
            return f"sequence {number - carries} does not have {length} steps"
        steps[number] = steps[number][1:]
    return _body_fault(body, [(s.dtype, shape) for s, shape in zip(node.src, steps)])


def _call(node: Node) -> str | None:
    body, rule = node.arg
    if body.op is not ops.SINK or not isinstance(rule, Named):
        return "its arg is not (body, rule)"
    if node.dtype != tuple(output.dtype for output in body.src):
        return f"its body gives {[output.dtype for output in body.src]}, and it {node.dtype}"
    return _body_fault(body, _kinds(node.src))


def _body_fault(body: Node, given: Sequence[tuple[DType, Any]]) -> str | None:
    """A body whose parameters are not among those that it gets, by their dtypes and shapes."""
    for leaf in toposort(body):
        if leaf.op is ops.BUFFER:
            return "its body reads a buffer: it may read its parameters only"
        if leaf.op is ops.PLACEHOLDER:
            number, shape = leaf.arg
            if not 0 <= number < len(given) or given[number] != (leaf.dtype, shape):
                return (
                    f"its body reads placeholder {number} of shape {shape}, which it does not get"
                )
    return None


def _kinds(nodes: Sequence[Node]) -> list[tuple[Any, Any]]:
    return [(node.dtype, node.shape) for node in nodes]


def _while(node: Node) -> str | None:
    body, carries = node.arg
    if body.op is not ops.SINK or not 0 < carries == len(body.src) <= len(node.src):
        return "its arg is not (body, carries)"
    if _kinds(node.src[:1]) != [(bool_, ())]:
        return "what it tests is not a bool of shape ()"
    if node.dtype != tuple([output.dtype for output in body.src]):
        return f"its body gives {[output.dtype for output in body.src]}, and it {node.dtype}"
    if _kinds(node.src[:carries]) != _kinds(body.src):
        return "a carry changes from trip to trip"
    return _body_fault(body, _kinds(node.src))


def _cond(node: Node) -> str | None:
    if len(node.arg) != 2 or any(body.op is not ops.SINK for body in node.arg):
        return "its arg is not (body, body)"
    if _kinds(node.src[:1]) != [(bool_, ())]:
        return "what it tests is not a bool of shape ()"
    one, other = node.arg
    if _kinds(one.src) != _kinds(other.src):
        return "its bodies have different results"
    if node.dtype != (bool_, *[output.dtype for output in one.src]):
        return f"its bodies give {[output.dtype for output in one.src]}, and it {node.dtype}"
    faults = [_body_fault(body, _kinds(node.src[1:])) for body in node.arg]
    return faults[0] or faults[1]


BODY_LAWS: dict[ops.Op, Callable[[Node], str | None]] = {
    ops.SCAN: _scan,
    ops.CALL: _call,
    ops.WHILE: _while,
    ops.COND: _cond,
}
