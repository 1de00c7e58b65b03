"""The law of KERNEL: a kernel that the user wrote, inside a graph."""

from __future__ import annotations

from treadle.ir import ops
from treadle.ir.law import is_shape, law
from treadle.ir.named import Named
from treadle.ir.node import Node, toposort


@law(ops.KERNEL)
def _kernel(node: Node) -> str | None:
    sink, shapes, rule = node.arg
    outputs = len(node.dtype)
    if sink.op is not ops.SINK or not isinstance(rule, Named | str):
        return "its arg is not (sink, output shapes, rule)"
    if len(shapes) != outputs or not all(map(is_shape, shapes)):
        return f"it has {len(shapes)} shapes for {outputs} outputs"
    stored = [store.src[0] for store in sink.src]
    if sorted(argument.arg[0] for argument in stored) != list(range(outputs)):
        return "its stores are not one for each output"
    for leaf in toposort(sink):
        if leaf.op is ops.ARG and leaf.arg[0] < outputs:
            number, shape = leaf.arg
            if (leaf.dtype, shape) != (node.dtype[number], shapes[number]) or leaf not in stored:
                return f"output {number} is not {leaf.dtype} of shape {shape}"
        elif leaf.op in (ops.ARG, ops.SCALAR):
            number = leaf.arg if leaf.op is ops.SCALAR else leaf.arg[0] - outputs
            source = node.src[number]
            if (leaf.dtype, leaf.shape) != (source.dtype, source.shape):
                return f"source {number} is not {leaf.dtype} of shape {leaf.shape}"
    return None
