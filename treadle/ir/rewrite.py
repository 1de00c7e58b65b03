"""Named rewrite rules in tables, and the one rewriter that applies them.

A rule is a function from a node to its replacement or None, filed under the ops it may match, so
that a node meets only the rules for its op. `rewrite` goes bottom-up, each node once: interning
makes the memo exact, and a replacement is itself rewritten until no rule matches it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from treadle.ir.node import Node, arg_nodes, map_arg
from treadle.ir.ops import Op

hits: Counter[str] = Counter()  # how often each rule matched, by "table.rule"


@dataclass(frozen=True)
class Rule:
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
    roots = list(roots)
    replacing: set[Node] = set()  # nodes that wait for their replacement to be rewritten
    stack: list[tuple[Node, Node | None]] = [(r, None) for r in reversed(roots)]
    while stack:
        node, replacement = stack.pop()
        if node in done:
            continue
        if replacement is not None:  # the replacement has been rewritten by now
            done[node] = done[replacement]
            replacing.discard(node)
            continue
        if node in replacing:
            raise RuntimeError(f"the rules of {table.name} turn {node} into something with itself")
        below = node.src if node.arg is None else (*node.src, *arg_nodes(node.arg))
        missing = [s for s in below if s not in done]
        if missing:
            stack.append((node, None))
            stack.extend((s, None) for s in reversed(missing))
            continue
        arg = node.arg if node.arg is None else map_arg(node.arg, done.__getitem__)
        src = tuple([done[s] for s in node.src])
        new = node if src == node.src and arg == node.arg else Node(node.op, node.dtype, src, arg)
        better = table.once(new)
        if better is None:
            done[node] = new
            done.setdefault(new, new)
        else:
            for waiting in (node,) if new is node else (node, new):
                replacing.add(waiting)
                stack.append((waiting, better))
            stack.append((better, None))
    return [done[r] for r in roots]
