"""What it costs to compute a value again, and what it costs to keep it: the one cost function.

The unit is one simple vector operation. A float32 written and read again costs 12 each: a memory
that moves a few GB/s per core against registers that do 16 operations at a time.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

from treadle.ir import index, ops
from treadle.ir.node import Node, Shape
from treadle.ir.ops import Op
from treadle.schedule.movement import is_partition

TRANSFER = 12.0  # one element written to memory, or read from it
ROUND_TRIP = 2 * TRANSFER
OPERAND_TILE = 4  # outputs that share one evaluation of a contraction's operand in its inner loop
HIDDEN = 4  # operations on one operand of a product that take no longer than to read the other
GATHERED = 6  # operations of a load at an index that comes from data, and its check
FAR = 64  # nodes after which a cone counts as too dear to compute again

# Operations that cost more than one simple one (polynomials of `ir/decompose.py`, divisions).
WEIGHTS: dict[Op, int] = {
    ops.DIV: 4, ops.SQRT: 4, ops.EXP: 8, ops.EXP2: 8, ops.EXPM1: 12, ops.LOG: 10, ops.LOG2: 10,
    ops.LOG1P: 12, ops.SIN: 12, ops.COS: 12, ops.TAN: 16, ops.ATAN: 14, ops.TANH: 12, ops.ERF: 14,
    ops.ERFC: 20, ops.NORMAL_CDF: 10, ops.ERFINV: 24, ops.LGAMMA: 50, ops.DIGAMMA: 40, ops.POW: 24,
    ops.IDIV: 16, ops.MOD: 16, ops.THREEFRY: 60, ops.STOP: 0,
}  # fmt: skip


class Sizes:
    """Element counts, remembered by shape; a symbolic dimension counts with its upper bound."""

    def __init__(self) -> None:
        self._known: dict[Shape, int] = {}

    def __call__(self, shape: Shape) -> int:
        found = self._known.get(shape)
        if found is None:
            found = 1
            for size in shape:
                found *= index.bounds(size)[1]
            self._known[shape] = found
        return found


def weight(node: Node) -> int:
    """The cost of one evaluation of an elementwise node."""
    if node.op is ops.CAST:
        return 0 if widens(node) else 1
    return WEIGHTS.get(node.op, 1)


def widens(node: Node) -> bool:
    """Whether a node is a cast whose source takes no more memory and no more operations."""
    return node.op is ops.CAST and node.src[0].dtype.bits <= node.dtype.bits


@dataclass
class Cone:
    """What stands between a value and memory. operations: weighted, per element of the value.
    leaves: elements read per element of the value. reductions: those in between that are not
    stored (the cone ends there)."""

    operations: float
    leaves: float
    reductions: list[Node]


def cone(root: Node, stored: Container[Node], sizes: Sizes) -> Cone:
    """The elementwise region below a value, down to stored values, reductions and leaves."""
    whole = max(1, sizes(root.shape))
    result = Cone(0.0, 0.0, [])
    seen = {root}
    stack = [root]
    while stack:
        node = stack.pop()
        kind = node.op.kind
        if node.op is ops.GATHER:
            result.operations += GATHERED * min(1.0, sizes(node.shape) / whole)
        passed = kind in ("alu", "movement") or is_partition(node)
        if node is not root and (node in stored or not passed):
            if node.op is ops.OUT:
                node = node.src[0]
            if node.op is ops.REDUCE and node not in stored:
                result.reductions.append(node)
            if node.shape and node.op is not ops.IOTA:
                shape = node.src[0].shape if isinstance(node.dtype, tuple) else node.shape
                result.leaves += min(1.0, sizes(shape) / whole)
            continue
        if kind == "alu":
            result.operations += weight(node) * min(1.0, sizes(node.shape) / whole)
        if len(seen) > FAR:
            result.operations = max(result.operations, float(FAR))
            break
        for source in node.src:
            if source not in seen:
                seen.add(source)
                stack.append(source)
    return result


def operand_repeats(missing: int) -> float:
    """How often the inner loop of a contraction evaluates an element of an operand that `missing`
    outputs use. A stored operand is only loaded there."""
    return max(1.0, missing / OPERAND_TILE)


def recompute(cost: Cone, repeats: float, readers: int) -> float:
    """What computing a value where it is needed costs beyond storing it once, per element:
    (repeats - 1) more evaluations, and every reader but one reads all leaves, not one value."""
    return cost.operations * (repeats - 1) + TRANSFER * (cost.leaves - 1) * (readers - 1)
