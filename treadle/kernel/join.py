"""Loops that run one after the other become one: the inverse of what `build` does where a loop was
begun anew for statements that might have gone in it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from treadle.kernel.actions import legal
from treadle.kernel.build import substituted
from treadle.kernel.kernel import Kernel, ScheduleError, Stmt, loads


@dataclass(frozen=True)
class Join:
    """Makes one loop of several over ranges of one extent that follow each other under the same
    outer loops. What a later one reads of an earlier one's results must be of the same iteration:
    so a row of results becomes a single one, or a block."""

    leaves: tuple[str, ...]

    def __str__(self) -> str:
        return f"join {', '.join(self.leaves)}"

    def __call__(self, kernel: Kernel) -> Kernel:
        first, *others = [kernel.leaf(name) for name in self.leaves]
        if not others or len(set(self.leaves)) < len(self.leaves):
            raise ScheduleError("it takes two different leaves or more")
        for leaf in (first, *others):
            if kernel.range_of[leaf.name].leaves != (leaf.name,) or leaf.kind != "loop":
                raise ScheduleError(f"{leaf.name} is not a whole range any more")
            if leaf.extent is not first.extent and leaf.extent != first.extent:
                raise ScheduleError(f"{leaf.name} does not run as often as {first.name}")
        for statement in kernel.statements:
            inside = [name for name in self.leaves if name in statement.order]
            if len(inside) > 1:
                raise ScheduleError(f"{' and '.join(inside)} are both loops of {statement.name}")
        joined = {leaf.name for leaf in others}
        nodes = {leaf.node: first.node for leaf in others if leaf.node is not first.node}
        statements = tuple(
            self._renamed(substituted(s, nodes), joined) if joined & set(s.order) else s
            for s in kernel.statements
        )
        changed = replace(
            kernel,
            statements=statements,
            leaves={n: leaf for n, leaf in kernel.leaves.items() if n not in joined},
            ranges={n: r for n, r in kernel.ranges.items() if not joined & set(r.leaves)},
        )
        self._require_one_loop(changed)
        self._require_same_iteration(changed)
        return legal(changed)

    def _renamed(self, statement: Stmt, joined: set[str]) -> Stmt:
        def name(leaf: str) -> str:
            return self.leaves[0] if leaf in joined else leaf

        return replace(
            statement,
            order=tuple(map(name, statement.order)),
            reduced=frozenset(map(name, statement.reduced)),
        )

    def _require_one_loop(self, kernel: Kernel) -> None:
        """All statements of the loop stand together, under the same loops."""
        leaf = self.leaves[0]
        places = [n for n, s in enumerate(kernel.statements) if leaf in s.order]
        inside = kernel.statements[places[0] : places[-1] + 1]
        outer = {s.order[: s.order.index(leaf)] for s in inside if leaf in s.order}
        for statement in inside:
            if leaf not in statement.order:
                raise ScheduleError(f"{statement.name} stands between these loops")
        if len(outer) > 1:
            shown = "; ".join(", ".join(order) or "none" for order in sorted(outer))
            raise ScheduleError(f"these loops stand inside different ones: {shown}; reorder first")

    def _require_same_iteration(self, kernel: Kernel) -> None:
        node = kernel.leaves[self.leaves[0]].node
        written = {t.arg[0]: s for s in kernel.statements for t in s.targets}
        for statement in kernel.statements:
            if self.leaves[0] not in statement.order:
                continue
            for load in loads(statement):
                writer = written.get(load.src[0].arg[0])
                if writer is None or isinstance(load.src[0].arg[0], int):
                    continue
                for own, read in zip(writer.index, load.src[1 : 1 + load.arg]):
                    if own.free & node.free and own is not read:
                        raise ScheduleError(
                            f"{statement.name} reads {load.src[0].arg[0]} of another iteration"
                        )
