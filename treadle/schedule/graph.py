"""The nodes of one level (a program, or the body of a loop), and what is asked of all of them."""

from __future__ import annotations

from collections.abc import Sequence

from treadle.ir import ops
from treadle.ir.node import Node, toposort
from treadle.schedule.movement import PURE, is_partition

# the same elements in the same order
TRANSPARENT = frozenset((ops.RESHAPE, ops.STOP, ops.CONTIGUOUS, ops.AGAIN))
INDICES = frozenset(op for op in ops.TABLE.values() if op.kind == "index")
# leaves that are no memory
FREE = INDICES | {ops.CONST, ops.SCALAR, ops.VARIABLE, ops.IOTA}
LEAVES = FREE | {ops.BUFFER, ops.PLACEHOLDER}
_PASSING = ("alu", "movement")  # kinds of ops that have no loop of their own


class Graph:
    """roots: what is asked for. targets: what is stored for each of them (a reshape of a stored
    value is the same memory). order: every node, sources first; place: a node's number in it.
    uses: how many nodes and targets use a node; user: one of them. above_reduce: the nodes that
    have a reduction below them with only elementwise operations and movements between."""

    def __init__(self, roots: Sequence[Node], placed: set[int]) -> None:
        """placed: the numbers of the roots that must be stored in their own shape."""
        self.roots = roots
        self.order = toposort(roots)
        self.place = {node: number for number, node in enumerate(self.order)}
        self.uses = dict.fromkeys(self.order, 0)
        self.user: dict[Node, Node] = {}  # one of the users of a node
        self.above_reduce: set[Node] = set()
        for node in self.order:
            for source in node.src:
                self.uses[source] += 1
                self.user[source] = node
                folds = source.op is ops.REDUCE and not is_partition(source)
                if folds or source in self.above_reduce:
                    self.above_reduce.add(node)
            if node.op.kind not in _PASSING and node.op is not ops.OUT and not is_partition(node):
                self.above_reduce.discard(node)
        self.targets = [
            root if number in placed else _underlying(root) for number, root in enumerate(roots)
        ]
        for target in self.targets:
            self.uses[target] += 1
        self._users: dict[Node, list[Node]] = {}

    def users(self, node: Node) -> list[Node]:
        """The nodes that use a node."""
        if not self._users:
            for user in self.order:
                for source in dict.fromkeys(user.src):
                    self._users.setdefault(source, []).append(user)
        return self._users.get(node, [])


def _underlying(root: Node) -> Node:
    node = root
    while node.op in TRANSPARENT:
        node = node.src[0]
    if node.op in LEAVES and node is not root:
        return root  # a copy: the leaf's own memory is not given away
    return node


def pure_base(node: Node) -> Node:
    """What is left below movements that only re-index."""
    while node.op in PURE or node.op in TRANSPARENT:
        node = node.src[0]
    return node
