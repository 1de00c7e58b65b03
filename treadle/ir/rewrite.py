"""Named rewrite rules in tables, and the one rewriter that applies them.

A rule is a function from a node to its replacement or None, filed under the ops it may match, so
that a node meets only the rules for its op. `rewrite` goes bottom-up, each node once: interning
makes the memo exact, and a replacement is itself rewritten until no rule matches it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from treadle.ir.node import Node, arg_nodes, map_arg
from treadle.ir.ops import Op

hits: Counter[str] = Counter()  # how often each rule matched, by "table.rule"


class Rule(NamedTuple):
    """name; the ops whose nodes it may match; the algebra as text; the function."""

    name: str
    ops: tuple[Op, ...]
    algebra: str
    apply: Callable[[Node], Node | None]


@dataclass
class Rules:
    """A table of rules, filled by a decorator:
    `@table.rule("add zero", ops.ADD, algebra="x + 0 -> x")`."""

    name: str
    rules: list[Rule] = field(default_factory=list)
    by_op: dict[Op, list[Rule]] = field(default_factory=dict)

    def rule(
        self, name: str, *ops: Op, algebra: str
    ) -> Callable[[Callable[[Node], Node | None]], Callable[[Node], Node | None]]:
        def register(function: Callable[[Node], Node | None]) -> Callable[[Node], Node | None]:
            rule = Rule(name, ops, algebra, function)
            self.rules.append(rule)
            for op in ops:
                self.by_op.setdefault(op, []).append(rule)
            return function

        return register

    def once(self, node: Node) -> Node | None:
        """The replacement by the first rule that matches, or None."""
        for rule in self.by_op.get(node.op, ()):
            new = rule.apply(node)
            if new is not None and new is not node:
                hits[f"{self.name}.{rule.name}"] += 1
                return new
        return None


def rewrite(
    roots: Iterable[Node], table: Rules, memo: dict[Node, Node] | None = None
) -> list[Node]:
    """The roots with every node below them (inside args too) rewritten. Iterative.

    memo may be passed again to share work between calls with the same table. RuntimeError if the
    rules go round in a circle.
    """
    done: dict[Node, Node] = {} if memo is None else memo
    waiting: dict[Node, Node] = {}  # node -> its replacement, which is being rewritten
    roots = list(roots)
    stack = roots[::-1]
    while stack:
        node = stack[-1]
        if node in done:
            stack.pop()
            continue
        if node in waiting:
            if waiting[node] not in done:
                raise RuntimeError(f"the rules of {table.name} lead from {node} back to it")
            done[node] = done[waiting.pop(node)]
            continue
        below = node.src
        if node.arg is not None:
            below += arg_nodes(node.arg)
        missing = [n for n in below if n not in done]
        if missing:
            stack.extend(missing[::-1])
            continue
        new = _rebuilt(node, done)
        better = table.once(new) if new.op in table.by_op else None
        if better is None:
            done[node] = done[new] = new
        else:
            waiting[node] = waiting[new] = better
            stack += (new, better) if new is not node else (better,)
    return [done[root] for root in roots]


def _rebuilt(node: Node, done: dict[Node, Node]) -> Node:
    """The node on rewritten sources, with rewritten nodes in its arg."""
    src = tuple([done[source] for source in node.src])
    arg = node.arg
    if arg is not None and arg_nodes(arg):
        arg = map_arg(arg, done.__getitem__)
    elif src == node.src:
        return node
    return Node(node.op, node.dtype, src, arg)
